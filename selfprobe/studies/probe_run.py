"""Preference probes of a model, and a judge that is trained from it: what it knows before it speaks
(latent-preference probes).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from selfprobe.embed import DEFAULT_EMBEDDER, unfetched
from selfprobe.errors.arguments import one_of
from selfprobe.page import Page, RowTable, write
from selfprobe.page.plots import cut_name
from selfprobe.studies.probe_page import probe_page
from selfprobe.study import Repeated, options
from selfprobe.study.local import (
    FULL_LEARNING_RATE,
    RESUME_ADVICE,
    Blocks,
    OpenModel,
    Progress,
    SpreadStudy,
    TrainingStudy,
    user_errors_as_input_errors,
)

if TYPE_CHECKING:
    from selfprobe.data.public_pairs import PairSet
    from selfprobe.probes.finetune import Lesson
    from selfprobe.probes.fit import FitSettings
    from selfprobe.probes.forward import Reader
    from selfprobe.probes.training import Recipe

PRESET_RATES: Mapping[str, tuple[float, float, int]] = {
    "small": (1e-4, FULL_LEARNING_RATE, 8),
    "released-code": (5e-5, 5e-7, 32),
}
"""Preset of a fine-tuned judge → rate of adapters, rate of all weights, examples of a step."""
TRAINING_OPTIONS = ("rank", "full", "rate", "epochs", "batch", "samples", "seed")
"""Options of the fine-tuned judge."""
EMBEDDING_SECONDS = 0.07
"""Time of one core to embed a text of 256 tokens or more."""
OpenModels = Annotated[
    tuple[str, ...],
    "weights",
    AfterValidator(lambda models: tuple(map(options.open_model, models))),
]
BLOCKS_HELP = "Blocks whose states are kept and read, as 8,16,24 or 0-31:4, from 0. Default: all."


class ProbeRun(SpreadStudy, TrainingStudy):
    """Read states at all layers, fit both probes, and compare them with prompting and controls.

    Writes probes, tables, figures, index.html and report.md into --out. The same command goes on
    where a killed one stopped. Two further parts need the probes in --out: ablate asks again with
    each probe's direction taken out, beside random ones (latent-preference probes, appendix B);
    finetune trains the model as a judge on the half that its probe learnt from (section 5.2,
    appendix D).
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    datasets: tuple[str, ...] = Field(
        description=(
            "Comma-separated: llmbar, mt_bench …, NAME=PATH, or your own .jsonl, .json, .csv, "
            ".tsv, .parquet, hf:…."
        ),
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
        description=(
            "Way of the forward passes; auto takes the fastest that agrees with two plain ones."
        ),
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
        description=(
            "Models whose weights are read, comma-separated: smollm2, a folder, a .gguf file or a "
            "hub name; with several, each gets a folder in --out."
        ),
    )
    model: OpenModel = Field("", exclude=True)
    preset: Literal["strict", "paper", "released-code"] = Field(
        "strict",
        description=(
            "strict is the honest measurement; the others replicate. released-code also trains "
            "judges as the paper's public scripts do, one for each group of data sets (text "
            "quality, common sense)."
        ),
    )
    prompts: Literal["paper", "conversations"] | None = Field(
        None,
        description=(
            "Prompts: the paper's with the question in a separate line, or of whole conversations "
            "(MT-Bench without judges who are authors). Default: the preset's."
        ),
    )
    aspects: Literal["together", "apart"] | None = Field(
        None,
        description=(
            "Probes for SummEval, NEWSROOM, HANNA: one for all aspects, or one for each and their "
            "mean. Default: the preset's (apart, except for strict)."
        ),
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
        description=(
            "Sign of the unsupervised direction: few:K, logit, none or oracle. Default: the "
            "preset's."
        ),
    )
    centre: Literal["source", "tested"] | None = Field(
        None,
        description=(
            "Means that a probe takes off the states of other data sets: of its own training half, "
            "or of the pairs tested. Default: the preset's (tested, except for strict, which reads "
            "both orders: means drop out)."
        ),
    )
    logs: Repeated = Field(
        (),
        description="Also show methods from logs of pairwise_preference, direct_scoring, g_eval.",
    )
    random_weights: bool | None = Field(
        None,
        description=(
            "Control: the same architecture with random weights. Default: up to 1 billion "
            "parameters."
        ),
    )
    scoring: bool | None = Field(
        None,
        description=(
            "Also ask for a score of each text alone (direct scoring, G-Eval). Default: for "
            "summeval, newsroom, hanna."
        ),
    )
    processes: int = Field(1, ge=1, description="Number of processes that fit.")
    against: str | None = Field(
        None,
        description=(
            "Folder of a run of this model and data without --system, whose probes also read these "
            "states."
        ),
    )
    rate: float | None = Field(
        None,
        gt=0,
        lt=1,
        description=(
            "Learning rate of the judge; it falls to 0 over the last fifth of the steps. Default: "
        )
        + ", ".join(
            f"{lora:g} (with --full {full:g}) of {name}"
            for name, (lora, full, _) in PRESET_RATES.items()
        )
        + ".",
    )
    epochs: int = Field(1, ge=1, description="Number of passes of the judge over its examples.")
    batch: int | None = Field(
        None,
        ge=1,
        description="Number of the judge's examples per step. Default: "
        + ", ".join(f"{batch} of {name}" for name, (_, _, batch) in PRESET_RATES.items())
        + ".",
    )
    samples: int = Field(
        5000,
        ge=1,
        description=(
            "Train the judge on a random sample of this many texts: a pair in one order each."
        ),
    )
    seed: int = Field(0, ge=0, description="Random seed of the judge's training.")

    @model_validator(mode="before")
    @classmethod
    def _with_first_model(cls, options_by_name: dict[str, Any]) -> dict[str, Any]:
        models = options_by_name.get("models") or ["smollm2"]
        return {"model": next(iter(models))} | options_by_name

    @model_validator(mode="after")
    def _has_folder_for_each_model(self) -> Self:
        folder_count = len(set(self._folders))
        if not self.models or folder_count < len(self.models):
            models_text = ", ".join(self.models) or "none"
            raise ValueError(
                f"each model needs a folder of its own in {self.out}, got models {models_text}"
            )
        return self

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        for part in self.parts or ("none",):
            one_of("--parts", part, ("probes", "ablate", "finetune"))
        if "finetune" in self.parts:
            return self
        for option in TRAINING_OPTIONS:
            if getattr(self, option) != type(self).model_fields[option].default:
                raise ValueError(f"--{option} goes with --parts finetune")
        return self

    @property
    def learns(self) -> Literal["full", "lora"] | None:
        """Kind of the weights that are trained."""
        return super().learns if "finetune" in self.parts else None

    @property
    def _folders(self) -> list[str]:
        if len(self.models) <= 1:
            return [self.out] * len(self.models)
        return [f"{self.out}/{cut_name(name.rstrip('/'), 100)}" for name in self.models]

    @property
    def model_runs(self) -> "Iterator[ProbeRun]":
        """The study of each model; of several one at a time is in memory."""
        if len(self.models) == 1:
            yield self
            return
        for model, folder in zip(self.models, self._folders, strict=True):
            yield self.model_copy(update={"models": (model,), "model": model, "out": folder})

    @property
    def fit_settings(self) -> "FitSettings":
        """Preset with the options that replace its values."""
        from selfprobe.probes.fit import PRESETS

        fit_options = {
            "prompts",
            "aspects",
            "train",
            "seeds",
            "resamples",
            "orientation",
            "centre",
        }
        given_options = self.model_dump(include=fit_options, exclude_none=True)
        return replace(PRESETS[self.preset], **given_options)

    @property
    def reading_settings(self) -> dict[str, Any]:
        """Settings of `run_probes` that say which pairs are read, and how."""
        reading_options = self.model_dump(include={"limit", "longest", "path", "batch_tokens"})
        return reading_options | {"loading": self.loading}

    @cached_property
    def sets(self) -> "dict[str, PairSet]":
        """The pairs by data set.

        Raises:
            ValueError: There are none, or they cannot be read.
        """
        from selfprobe.data.own import Words
        from selfprobe.probes.run import load_sets

        words = Words(self.question or "", self.item or "")
        return load_sets(self.datasets, self.limit, words, prompts=self.fit_settings.prompts)

    def reading_lines(self, *, untrained: bool, copies: int) -> list[str]:
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

        sizes: dict[str, Any] = {"longest": self.longest, "batch_tokens": self.batch_tokens}
        states_folder = self.folder / "activations"
        harvest = plan.plan_harvest(
            self.judge, self.sets, states_folder, **sizes, scoring=self.scoring
        )
        control_harvest = None
        if untrained:
            untrained_judge = named_untrained(self.judge)
            control_harvest = plan.plan_harvest(untrained_judge, self.sets, states_folder, **sizes)

        unreadable = {name: set_plan.reasons for name, set_plan in harvest.sets.items()}
        check_sets(self.sets, self.fit_settings, unreadable)
        plan.check_disk(harvest, control_harvest)
        duration = plan.time_text(self.judge, harvest, control_harvest, copies)
        rows = plan.harvest_rows(harvest, control_harvest, duration=duration)
        rows.append(self.embedding_row)
        return [*plan.set_lines(harvest), "", *plan.plan_lines(rows)]

    @property
    def embedding_row(self) -> tuple[str, str]:
        """Number and time of the texts of the control by sentence embeddings, or why it is left
        out.
        """
        from selfprobe.probes.plan import duration_text

        fetch_note = unfetched(DEFAULT_EMBEDDER)
        if fetch_note:
            return "Without the control of sentence embeddings", fetch_note
        texts: set[str] = set()
        for pair_set in self.sets.values():
            for pair in pair_set.pairs:
                texts |= {pair.text_1, pair.text_2}
        seconds = len(texts) * EMBEDDING_SECONDS
        needs = f"{len(texts):,} texts, up to {duration_text(seconds)}"
        return "Control of sentence embeddings", needs

    @cached_property
    def margins_from_logs(self) -> Mapping[str, Any] | None:
        """Margins of other methods, from their logs."""
        from selfprobe.study.preference_logs import logged_margins

        return logged_margins(self.logs, self.sets) if self.logs else None

    @contextmanager
    def reader(self) -> "Iterator[Reader]":
        """Context with the reader of states: this process, or copies of the model on a cluster."""
        from selfprobe.probes.forward import read_in_process
        from selfprobe.study.on_ray import copies_on_cluster

        with copies_on_cluster(self.engine, self.ray_address, self.replicas) as reader_on_copies:
            if reader_on_copies:
                yield reader_on_copies(self.judge, self.model, self.loading)
            else:
                yield read_in_process

    @property
    def needs_lines(self) -> list[str]:
        """Lines on what each model takes."""
        from selfprobe.probes.folder import read_run
        from selfprobe.probes.rate import check_scoring
        from selfprobe.probes.run import check_sets

        # Whatever is refused is refused before a model is loaded.
        check_sets(self.sets, self.fit_settings)
        check_scoring(self.sets, self.scoring)
        if self.against:
            read_run(Path(self.against))
        _ = self.margins_from_logs

        lines = list[str]()
        for model_run in self.model_runs:
            lines += model_run.needs_of_model()
            lines += model_run.thinking_lines
        return lines

    @property
    def plan_lines(self) -> list[str]:
        """Lines of the plan; those on thinking are of each model, so that no model is loaded for
        this study as a whole, whose copies for single models would keep it.
        """
        return self.needs_lines

    @property
    def recipe(self) -> "Recipe":
        """Recipe by which the judge is trained."""
        from selfprobe.probes.training import Recipe

        rate_preset = "released-code" if self.grouped else "small"
        lora_rate, full_rate, batch_size = PRESET_RATES[rate_preset]
        rank = None if self.full else self.rank or 64
        preset_rate = full_rate if self.full else lora_rate
        return Recipe(
            rank=rank,
            alpha=rank,
            rate=self.rate or preset_rate,
            batch=self.batch or batch_size,
            epochs=self.epochs,
            seed=self.seed,
        )

    @property
    def grouped(self) -> bool:
        """Whether one judge learns all data sets of a group."""
        return self.preset == "released-code"

    def needs_of_model(self) -> list[str]:
        """Lines on what its one model takes."""
        from selfprobe.probes.finetune import lessons
        from selfprobe.probes.folder import check_folder
        from selfprobe.probes.model import wants_untrained_control

        check_folder(self.folder, self.judge, self.sets)
        if self.against and "probes" in self.parts:
            self.refuse_other_run(Path(self.against))
        if "probes" not in self.parts:
            judge_lessons = lessons(self.folder, self.judge, list(self.sets))
            if "finetune" in self.parts:
                return self.training_lines(judge_lessons)
            return [f"{len(judge_lessons)} probes to ablate"]

        with self.reader() as reader:
            untrained = wants_untrained_control(self.judge, self.random_weights)
            lines = self.reading_lines(untrained=untrained, copies=getattr(reader, "count", 1))
        later_parts = ", ".join(part for part in self.parts if part != "probes")
        if later_parts:
            lines.append(f"Then: {later_parts}; what each takes is said when it begins")
        return lines

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
            "settings": asdict(self.fit_settings),
            "datasets": hashes,
        }
        shared_sets(against, read_run(against), self.folder, this_run)

    def training_lines(self, judge_lessons: "Sequence[Lesson]") -> list[str]:
        """Lines on what each training takes.

        Raises:
            ValueError: Memory or the disk does not suffice.
        """
        from selfprobe.probes.finetune import courses
        from selfprobe.probes.plan import check_room, estimate_needs, plan_lines

        lines = list[str]()
        judge_courses = courses(judge_lessons, grouped=self.grouped)
        for training_number, course in enumerate(judge_courses, start=1):
            training_needs = estimate_needs(
                self.judge,
                course.examples(self.samples),
                self.recipe,
                batch_tokens=self.batch_tokens,
                trainings=training_number,
            )
            check_room(self.judge, training_needs, self.folder)
            learnt, tested = course.sizes
            lines.append(f"{course.name}, {learnt} pairs to learn from, {tested} to test on")
            lines += plan_lines([training_needs.row()])
        return lines

    def work(self, progress: Progress) -> None:
        """Read, fit and test; of several models each folder gets its page when it is done."""
        for model_run in self.model_runs:
            model_run.make_parts(progress)
            if model_run is not self:
                model_run.write_page(model_run.build_page())

    def make_parts(self, progress: Progress) -> None:
        """Make the parts of its one model."""
        from selfprobe.probes.ablate import ablate_run
        from selfprobe.probes.finetune import finetune_run, lessons
        from selfprobe.probes.run import run_probes
        from selfprobe.probes.transfer import prompted_run

        if "probes" in self.parts:
            fit_options = self.model_dump(include={"random_weights", "scoring", "processes"})
            with self.reader() as reader:
                run_probes(
                    self.judge,
                    self.sets,
                    self.folder,
                    reader=reader,
                    settings=self.fit_settings,
                    logged=self.margins_from_logs,
                    progress=progress,
                    **fit_options,
                    **self.reading_settings,
                )

        if self.against:
            prompted_run(Path(self.against), self.folder)

        if "ablate" in self.parts:
            ablate_run(self.folder, self.judge, datasets=list(self.sets), progress=progress)

        if "finetune" in self.parts:
            judge_lessons = lessons(self.folder, self.judge, list(self.sets))
            if "probes" in self.parts:
                for line in self.training_lines(judge_lessons):
                    progress(line)
            finetune_run(
                self.folder,
                self.judge,
                judge_lessons,
                recipe=self.recipe,
                progress=progress,
                samples=self.samples,
                batch_tokens=self.batch_tokens,
                grouped=self.grouped,
            )

    def build_page(self) -> Page:
        """The page of the model's folder; of several what each says."""
        if len(self.models) == 1:
            page_about: Literal["judges", "probes"] = "probes"
            if self.parts == ("finetune",):
                page_about = "judges"
            with user_errors_as_input_errors(RESUME_ADVICE):
                return probe_page(self.folder, about=page_about)

        page_by_folder = {Path(run.out).name: run.build_page() for run in self.model_runs}
        tables = dict[str, Any]()
        for folder_name, page in page_by_folder.items():
            for stem, table in page.tables.items():
                tables[f"{folder_name}/{stem}"] = table
        notes = [f"{folder_name}: {page.answer}" for folder_name, page in page_by_folder.items()]
        return Page(
            "Do probes of these models judge better than asking them?", tables=tables, notes=notes
        )

    def write_page(self, page: Page) -> str:
        """Write the page beside the tables, which the run wrote; of several models each has its
        own.
        """
        if len(self.models) > 1:
            return (
                f"Pages: {self.out}/*/index.html   "
                f"Side by side: selfprobe report {' '.join(self._folders)}"
            )
        row_tables = {
            name: table for name, table in page.tables.items() if isinstance(table, RowTable)
        }
        page_path = write(replace(page, tables=row_tables), self.out)
        return f"Probes: {self.out}/*.safetensors   Page: {page_path}"
