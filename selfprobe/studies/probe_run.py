"""Preference probes of a model, and a judge that is trained from it: what it knows before it speaks
(paper 004).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from selfprobe.errors.arguments import one_of
from selfprobe.page import Page, RowTable, write
from selfprobe.page.plots import cut_name
from selfprobe.studies.preferences.page import probe_page
from selfprobe.study import Repeated, options
from selfprobe.study.local import (
    FULL_RATE,
    GOING_ON,
    Blocks,
    OpenModel,
    Progress,
    SpreadStudy,
    TrainingStudy,
    said_plainly,
)

if TYPE_CHECKING:
    from selfprobe.data.public_pairs import PairSet
    from selfprobe.probes.finetune import Lesson
    from selfprobe.probes.fit import FitSettings
    from selfprobe.probes.forward import Reader
    from selfprobe.probes.training import Recipe

RATES: Mapping[str, tuple[float, float, int]] = {
    "small": (1e-4, FULL_RATE, 8),
    "released-code": (5e-5, 5e-7, 32),
}
"""Preset of a fine-tuned judge → rate of adapters, rate of all weights, examples of a step."""
TRAINING = ("rank", "full", "rate", "epochs", "batch", "samples", "seed")
"""Options of the fine-tuned judge."""
OpenModels = Annotated[
    tuple[str, ...], "weights", AfterValidator(lambda names: tuple(map(options.open_model, names)))
]
BLOCKS_HELP = "Blocks whose states are kept and read, as 8,16,24 or 0-31:4, from 0. Default: all."


class ProbeRun(SpreadStudy, TrainingStudy):
    """Read states at all layers, fit both probes, and compare them with prompting and controls.

    Writes probes, tables, figures, index.html and report.md into --out. The same command goes on
    where a killed one stopped. Two further parts need the probes in --out: ablate asks again with
    each probe's direction taken out, beside random ones (paper 004, appendix B); finetune trains
    the model as a judge on the half that its probe learnt from (section 5.2, appendix D).
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    datasets: tuple[str, ...] = Field(
        description="Comma-separated: llmbar, mt_bench …, NAME=PATH, or your own .jsonl, .json, .csv, .tsv, .parquet, "
        "hf:…."
    )
    question: str | None = Field(
        None, description='Criterion for your own pairs. Default: "more helpful".'
    )
    item: str | None = Field(
        None, description='Noun for the texts of your pairs, as "answer". Default: "response".'
    )
    limit: int | None = Field(
        2000,
        ge=1,
        description="Take at most N pairs of each data set, always the same ones, drawn at random.",
    )
    longest: int | None = Field(None, ge=1, description="Skip pairs longer than this many tokens.")
    path: Literal["auto", "shared_cache", "two_forwards"] = Field(
        "auto",
        description="Way of the forward passes; auto takes the fastest that agrees with two plain ones.",
    )
    batch_tokens: int | None = Field(
        None, ge=1, description="Number of tokens per batch. Default: 1024 on a CPU, else 16384."
    )
    layers: Blocks = Field("", description=BLOCKS_HELP)
    out: str = Field(
        "probes", description="Local folder of the states, probes, tables and the page."
    )
    parts: tuple[str, ...] = Field(
        ("probes",), description="Parts to make: probes, ablate, finetune."
    )
    models: OpenModels = Field(
        description="Models whose weights are read, comma-separated: smollm2, a folder, a .gguf file or a hub name; "
        "with several, each gets a folder in --out."
    )
    model: OpenModel = Field("", exclude=True)
    preset: Literal["strict", "paper", "released-code"] = Field(
        "strict",
        description="strict is the honest measurement; the others replicate. released-code also trains judges as the "
        "paper's public scripts do, one for each group of data sets (text quality, common sense).",
    )
    prompts: Literal["paper", "conversations"] | None = Field(
        None,
        description="Prompts: the paper's with the question in a separate line, or of whole conversations (MT-Bench "
        "without judges who are authors). Default: the preset's.",
    )
    aspects: Literal["together", "apart"] | None = Field(
        None,
        description="Probes for SummEval, NEWSROOM, HANNA: one for all aspects, or one for each and their mean. "
        "Default: the preset's (apart, except for strict).",
    )
    train: int | None = Field(
        None, ge=1, description="Train on N pairs of each data set, test on the others."
    )
    seeds: int | None = Field(None, ge=1, description="Number of random halves. Default: 5.")
    resamples: int | None = Field(
        None, ge=100, description="Number of resamples per interval. Default: 500."
    )
    orientation: str | None = Field(
        None,
        description="Sign of the unsupervised direction: few:K, logit, none or oracle. Default: the preset's.",
    )
    logs: Repeated = Field(
        (),
        description="Also show methods from logs of pairwise_preference, direct_scoring, g_eval.",
    )
    random_weights: bool | None = Field(
        None,
        description="Control: the same architecture with random weights. Default: up to 1 billion parameters.",
    )
    scoring: bool | None = Field(
        None,
        description="Also ask for a score of each text alone (direct scoring, G-Eval). Default: for summeval, "
        "newsroom, hanna.",
    )
    processes: int = Field(1, ge=1, description="Number of processes that fit.")
    against: str | None = Field(
        None,
        description="Folder of a run of this model and data without --system, whose probes also read these states.",
    )
    rate: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Learning rate of the judge; it falls to 0 over the last fifth of the steps. Default: "
        + ", ".join(
            f"{lora:g} (with --full {full:g}) of {name}" for name, (lora, full, _) in RATES.items()
        )
        + ".",
    )
    epochs: int = Field(1, ge=1, description="Number of passes of the judge over its examples.")
    batch: int | None = Field(
        None,
        ge=1,
        description="Number of the judge's examples per step. Default: "
        + ", ".join(f"{batch} of {name}" for name, (_, _, batch) in RATES.items())
        + ".",
    )
    samples: int = Field(
        5000,
        ge=1,
        description="Train the judge on a random sample of this many texts: a pair in one order each.",
    )
    seed: int = Field(0, ge=0, description="Random seed of the judge's training.")

    @model_validator(mode="before")
    @classmethod
    def _first(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {"model": next(iter(given.get("models") or ["smollm2"]))} | given

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if not self.models or len(set(self._folders)) < len(self.models):
            told = ", ".join(self.models) or "none"
            raise ValueError(
                f"each model needs a folder of its own in {self.out}, got models {told}"
            )
        return self

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        for name in self.parts or ("none",):
            one_of("--parts", name, ("probes", "ablate", "finetune"))
        for name in TRAINING if "finetune" not in self.parts else ():
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"--{name} goes with --parts finetune")
        return self

    @property
    def learns(self) -> Literal["full", "lora"] | None:
        """Kind of the weights that are trained."""
        return super().learns if "finetune" in self.parts else None

    @property
    def _folders(self) -> list[str]:
        several = len(self.models) > 1
        return [
            f"{self.out}/{cut_name(name.rstrip('/'), 100)}" if several else self.out
            for name in self.models
        ]

    @property
    def each(self) -> "Iterator[ProbeRun]":
        """The study of each model; of several one at a time is in memory."""
        if len(self.models) == 1:
            yield self
            return
        for model, folder in zip(self.models, self._folders, strict=True):
            yield self.model_copy(update={"models": (model,), "model": model, "out": folder})

    @property
    def fitting(self) -> "FitSettings":
        """Preset with the options that replace its values."""
        from selfprobe.probes.fit import PRESETS

        names = {"prompts", "aspects", "train", "seeds", "resamples", "orientation"}
        return replace(PRESETS[self.preset], **self.model_dump(include=names, exclude_none=True))

    @property
    def reading(self) -> dict[str, Any]:
        """Settings of `run_probes` that say which pairs are read, and how."""
        return self.model_dump(include={"limit", "longest", "path", "batch_tokens"}) | {
            "loading": self.loading
        }

    @cached_property
    def sets(self) -> "dict[str, PairSet]":
        """The pairs by data set.

        Raises:
            ValueError: There are none, or they cannot be read.
        """
        from selfprobe.data.own import Words
        from selfprobe.probes.run import load_sets

        words = Words(self.question or "", self.item or "")
        return load_sets(self.datasets, self.limit, words, prompts=self.fitting.prompts)

    def to_read(self, *, untrained: bool, copies: int) -> list[str]:
        """Passes, tokens, memory, disk and time of reading the states.

        Args:
            untrained: Whether they are read under random weights too.
            copies: Number of copies of the model, which share the pairs.

        Raises:
            ValueError: Too little can be read, or the disk is too small.
        """
        from selfprobe.probes import plan
        from selfprobe.probes.model import named_untrained
        from selfprobe.probes.run import check_sets

        given: dict[str, Any] = {"longest": self.longest, "batch_tokens": self.batch_tokens}
        states = self.folder / "activations"
        planned = plan.plan_harvest(self.judge, self.sets, states, **given, scoring=self.scoring)
        control = (
            plan.plan_harvest(named_untrained(self.judge), self.sets, states, **given)
            if untrained
            else None
        )
        check_sets(
            self.sets, self.fitting, {name: one.reasons for name, one in planned.sets.items()}
        )
        plan.check_disk(planned, control)
        return [
            plan.plan_text(planned, control),
            plan.time_text(self.judge, planned, control, copies),
        ]

    @cached_property
    def logged(self) -> Mapping[str, Any] | None:
        """Margins of other methods, from their logs."""
        from selfprobe.studies.preferences.judged import logged_margins

        return logged_margins(self.logs, self.sets) if self.logs else None

    @contextmanager
    def reader(self) -> "Iterator[Reader]":
        """Context with the reader of states: this process, or copies of the model on a cluster."""
        from selfprobe.probes.forward import read_in_process
        from selfprobe.study.on_ray import copies_on_cluster

        with copies_on_cluster(self.engine, self.ray_address, self.replicas) as copied:
            yield copied(self.judge, self.model, self.loading) if copied else read_in_process

    @property
    def needs(self) -> list[str]:
        """Lines on what each model takes."""
        from selfprobe.probes.folder import read_run
        from selfprobe.probes.rate import check_scoring
        from selfprobe.probes.run import check_sets

        check_sets(self.sets, self.fitting)
        check_scoring(self.sets, self.scoring)
        if self.against:
            read_run(Path(self.against))  # refused before a model is loaded
        _ = self.logged  # read before a model is loaded, as the sets are
        return [line for one in self.each for line in one.needed()]

    @property
    def recipe(self) -> "Recipe":
        """Recipe by which the judge is trained."""
        from selfprobe.probes.training import Recipe

        lora, full, batch = RATES["released-code" if self.grouped else "small"]
        rank, rate = (None, full) if self.full else (self.rank or 64, lora)
        given = {"batch": self.batch or batch, "epochs": self.epochs, "seed": self.seed}
        return Recipe(rank=rank, alpha=rank, rate=self.rate or rate, **given)

    @property
    def grouped(self) -> bool:
        """Whether one judge learns all data sets of a group."""
        return self.preset == "released-code"

    def needed(self) -> list[str]:
        """Lines on what its one model takes."""
        from selfprobe.probes.finetune import lessons
        from selfprobe.probes.folder import claim
        from selfprobe.probes.model import wants_untrained_control

        claim(self.folder, self.judge, self.sets)
        if self.against and "probes" in self.parts:
            self.refuse_other_run(Path(self.against))
        if "probes" not in self.parts:
            given = lessons(self.folder, self.judge, list(self.sets))
            return (
                self.to_train(given)
                if "finetune" in self.parts
                else [f"{len(given)} probes to ablate"]
            )
        with self.reader() as reader:
            untrained = wants_untrained_control(self.judge, self.random_weights)
            lines = self.to_read(untrained=untrained, copies=getattr(reader, "count", 1))
        after = ", ".join(part for part in self.parts if part != "probes")
        return [
            *lines,
            *([f"Then: {after}; what each takes is said when it begins"] if after else []),
        ]

    def refuse_other_run(self, against: Path) -> None:
        """Refuse probes that could not read the states of this run, before these are read.

        Raises:
            ValueError: They are of another model, of other settings or of other pairs.
        """
        from selfprobe.data.pairs import data_hash
        from selfprobe.probes.folder import read_run
        from selfprobe.probes.transfer import shared_sets

        hashes = {name: {"hash": data_hash(pair_set.pairs)} for name, pair_set in self.sets.items()}
        this_run = {
            "revision": self.judge.revision,
            "settings": asdict(self.fitting),
            "datasets": hashes,
        }
        shared_sets(against, read_run(against), self.folder, this_run)

    def to_train(self, given: "Sequence[Lesson]") -> list[str]:
        """Lines on what each training takes.

        Raises:
            ValueError: Memory or the disk does not suffice.
        """
        from selfprobe.probes.finetune import courses
        from selfprobe.probes.plan import check_room, needs

        lines = []
        for place, course in enumerate(courses(given, grouped=self.grouped)):
            sizes: dict[str, Any] = {"batch_tokens": self.batch_tokens, "trainings": place + 1}
            needed = needs(self.judge, course.examples(self.samples), self.recipe, **sizes)
            check_room(self.judge, needed, self.folder)
            learnt, tested = course.sizes
            lines += [
                f"{course.name}, {learnt} pairs to learn from, {tested} to test on",
                needed.text,
            ]
        return lines

    def work(self, progress: Progress) -> None:
        """Read, fit and test; of several models each folder gets its page when it is done."""
        for one in self.each:
            one.make_parts(progress)
            if one is not self:
                one.written(one.shown())

    def make_parts(self, progress: Progress) -> None:
        """Make the parts of its one model."""
        from selfprobe.probes.ablate import ablate_run
        from selfprobe.probes.finetune import finetune_run, lessons
        from selfprobe.probes.run import run_probes
        from selfprobe.probes.transfer import prompted_run

        if "probes" in self.parts:
            how: dict[str, Any] = {
                "settings": self.fitting,
                "logged": self.logged,
                "progress": progress,
            }
            how |= self.model_dump(include={"random_weights", "scoring", "processes"})
            with self.reader() as reader:
                run_probes(self.judge, self.sets, self.folder, reader=reader, **how, **self.reading)
        if self.against:
            prompted_run(Path(self.against), self.folder)
        if "ablate" in self.parts:
            ablate_run(self.folder, self.judge, datasets=list(self.sets), progress=progress)
        if "finetune" in self.parts:
            given = lessons(self.folder, self.judge, list(self.sets))
            for line in self.to_train(given) if "probes" in self.parts else ():
                progress(line)
            sizes: dict[str, Any] = {
                "samples": self.samples,
                "batch_tokens": self.batch_tokens,
                "grouped": self.grouped,
            }
            finetune_run(
                self.folder, self.judge, given, recipe=self.recipe, progress=progress, **sizes
            )

    def shown(self) -> Page:
        """The page of the model's folder; of several what each says."""
        if len(self.models) == 1:
            with said_plainly(GOING_ON):
                return probe_page(
                    self.folder, about="judges" if self.parts == ("finetune",) else "probes"
                )
        pages = {Path(one.out).name: one.shown() for one in self.each}
        tables = {
            f"{name}/{stem}": table
            for name, page in pages.items()
            for stem, table in page.tables.items()
        }
        notes = [f"{name}: {page.answer}" for name, page in pages.items()]
        return Page(
            "Do probes of these models judge better than asking them?", tables=tables, notes=notes
        )

    def written(self, page: Page) -> str:
        """Write the page beside the tables, which the run wrote; of several models each has its
        own.
        """
        if len(self.models) == 1:
            own = {
                name: table for name, table in page.tables.items() if isinstance(table, RowTable)
            }
            return f"Probes: {self.out}/*.safetensors   Page: {write(replace(page, tables=own), self.out)}"
        return f"Pages: {self.out}/*/index.html   Side by side: selfprobe report {' '.join(self._folders)}"
