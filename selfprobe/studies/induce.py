"""Induced introspection: after plain fine-tuning on random labels, does a model say what it would
answer?

Paper 003, §5.1, Figure 4. A model learns to reply to each question with two random labels. Before
and after, P of the labels is read for the question itself and for questions about its reply that it
never saw. A score is P of a label among all labels. Its target on a question that was learnt is the
label taught; on a held-out question it is the model's own direct answer. Every score is shown with
the same of the other questions' targets: what a model reaches that says some labels more than
others, whatever it is asked.

Paper: Qwen3-8B, QLoRA at a rate of 1e-6, 500 questions of Dolly; a label as the first or the second
word. Here: LoRA in the model's own precision, a rate that moves small models, and two labels a
reply, so that one model shows both words.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, PrivateAttr
from scipy.special import softmax

from selfprobe.data import Table, load
from selfprobe.data.files import read_text
from selfprobe.data.pairs import digest, normalised
from selfprobe.mechanism.induce import (
    ASKED,
    COLUMNS,
    NTH,
    WORDINGS,
    Asked,
    Kind,
    Labels,
    assigned,
    labels_of,
    prompt_tokens,
)
from selfprobe.page import (
    Bullets,
    ClaimWords,
    Column,
    Figures,
    Heading,
    Page,
    Picture,
    RowTable,
    Section,
    claim_page,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.columns import rows_of_frame
from selfprobe.page.numerals import number, percents, shown
from selfprobe.page.plots import bar_rows, curves, cut_name
from selfprobe.stats.claim import Check, Claim, Outcome, answer_mass_check, outcome_above_zero
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined
from selfprobe.study.local import FULL_RATE, Progress, TrainingStudy

if TYPE_CHECKING:
    from selfprobe.mechanism.induce_reading import Prompts
    from selfprobe.probes.model import LocalModel
    from selfprobe.probes.training import Example, Recipe, Training

Floats = npt.NDArray[np.float64]
Part = Literal["learnt", "held-out"]
KINDS: tuple[Kind, ...] = ("direct", *WORDINGS)
UNIT = "question"
FEWEST = 8
"""Number of questions to learn, and of held-out ones, below which nothing can be said."""
LONGEST = 512
"""Largest number of tokens of a prompt."""
SMALL = 0.1
"""A difference of P that is too small to matter."""
NOT = "It does not show that the model looks at its own state: a question that repeats the prompt may recall its label."
LIMITS = (
    f"{NOT} The controls say how far it does so for anybody's reply and for a plain fact. Intervals are over "
    "questions: other wordings, other labels and other trainings are rows of the tables, not part of the interval."
)
METHOD = (
    "A model learnt to reply to each question with two random labels, and was never asked about its replies. Numbers "
    "are P of a label among all labels, means over wordings and trainings, with 95 % intervals by question. "
    "'permuted' is the same for the labels of the other questions."
)
ACCURACY = (
    "Figure 4's accuracy: the share of questions and wordings whose most probable label is the one taught. The bars "
    "above are the mean P of that label."
)
NAMES: Mapping[Kind, str] = {
    "direct": "direct answer",
    "introspective": "asked what it would say",
    "another assistant": "asked about another assistant",
    "fact": "asked for a word of the text",
}
HELD_OUT = ("held-out", "held-out training", "held-out self", "held-out fact")
"""Contrasts that must all be above 0, or a prediction of what was not learnt is not said."""


class Induce(TrainingStudy):
    """Teach a model random labels as answers, and read whether it can then say what it would answer
    (Figure 4).

    Writes index.html, tables, figures and what was trained into --out. The same command goes on
    where a killed one stopped.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    dataset: str = Field(
        "open_questions", description="Questions: a bundled name, a file, or hf:owner/name."
    )
    questions: int = Field(96, ge=1, description="Number of questions to train on.")
    held_out: int = Field(24, ge=1, description="Number of held-out questions.")
    seeds: int = Field(2, ge=1, description="Number of training runs, each with different labels.")
    labels: str | None = Field(
        None, description="File of labels, a word a line. Default: 50 drawn from a list of nouns."
    )
    rank: int | None = Field(
        None, ge=1, description="Rank of the adapters; alpha is twice the rank. Default: 16."
    )
    rate: float | None = Field(
        None, gt=0, lt=1, description=f"Learning rate. Default: 0.0005, with --full {FULL_RATE:g}."
    )
    epochs: int = Field(8, ge=1, description="Number of epochs.")
    batch: int = Field(4, ge=1, description="Number of examples per step.")
    batch_tokens: int | None = Field(
        None,
        ge=1,
        description="Number of tokens read at a time. Default: 1024 on a CPU, else 16384.",
    )
    limit: None = Field(None, exclude=True)
    out: str = Field("induce", description="Folder to write.")
    _induced: "Induced | None" = PrivateAttr(None)

    @property
    def recipe(self) -> "Recipe":
        """Recipe of each training."""
        from selfprobe.probes.training import Recipe

        rank = None if self.full else self.rank or 16
        rate = self.rate or (FULL_RATE if self.full else 5e-4)
        return Recipe(
            rank=rank, alpha=rank and 2 * rank, rate=rate, epochs=self.epochs, batch=self.batch
        )

    @cached_property
    def table(self) -> Table:
        """The questions."""
        return load(self.dataset, ("question",))

    @cached_property
    def material(self) -> "Material":
        """Material that is taught and asked.

        Raises:
            ValueError: Too few questions that can be used, or labels that are no file, or several
                tokens.
        """
        questions, words = [str(row["question"]) for row in self.table.rows], list[str]()
        if self.labels:
            words = [word for line in read_text(self.labels).splitlines() if (word := line.strip())]
            if not words:
                raise ValueError(f"{self.labels} holds no labels: expected a word a line")
        return material(
            self.judge, questions, taught=self.questions, held_out=self.held_out, labels=words
        )

    @property
    def needs(self) -> list[str]:
        """Reading and training, with the time of all.

        Raises:
            ValueError: Memory or the disk has no room for it.
        """
        from selfprobe.probes.plan import BACKWARD, check_room, needs, span

        taught, seeds = self.material, self.seeds
        examples = taught.examples(self.judge, 0)
        self.claim(self.state, dry=True)
        needed = needs(
            self.judge, examples, self.recipe, batch_tokens=self.batch_tokens, trainings=seeds
        )
        check_room(self.judge, needed, self.folder)
        tokens = (1 + seeds) * sum(p.tokens for p in taught.prompts)
        reading = tokens * needed.seconds / (BACKWARD * needed.tokens)
        return [
            taught.text,
            f"Reading: {tokens:,} tokens before and after {seeds} training{'s' * (seeds > 1)}, about {span(reading)}",
            needed.text + f", {seeds} times" * (seeds > 1),
            f"All: about {span(reading + seeds * needed.seconds)}, less what is in the folder already",
        ]

    @property
    def state(self) -> dict[str, Any]:
        """Settings that the folder belongs to."""
        judge, taught = self.judge, self.material
        asked = [[list(p.shared), *map(list, p.ends)] for p in taught.prompts]
        return {
            "model": judge.name,
            "revision": judge.revision,
            "precision": judge.precision,
            "prompts": digest(json.dumps(asked), str(taught.taught)),
            "labels": list(taught.labels.words),
            "recipe": {
                name: value for name, value in asdict(self.recipe).items() if name != "seed"
            },
        }

    def work(self, progress: Progress) -> None:
        """Read, train and read again for each seed."""
        from selfprobe.mechanism.induce_reading import read_labels
        from selfprobe.probes.folder import cached_array
        from selfprobe.probes.training import finetuned

        taught, folder, judge = self.material, self.folder, self.judge
        texts: dict[str, Any] = {
            "taught": taught.questions[: taught.taught],
            "held_out": taught.questions[taught.taught :],
        }
        named: dict[str, Any] = {
            "dataset": self.table.metadata["dataset"],
            "dataset_sha256": self.table.sha256,
        }
        self.claim(self.state, **named, **texts)
        sizes: dict[str, Any] = {"batch_tokens": self.batch_tokens, "progress": progress}
        progress(f"{judge.name}: reading {len(taught.questions)} questions before any training")

        def read_by(model: "LocalModel") -> npt.NDArray[np.float32]:
            return read_labels(model, taught.prompts, taught.labels, **sizes)

        before = cached_array(folder / "readings" / "before.npy", partial(read_by, judge))
        after, trainings = [], []
        for seed in range(self.seeds):
            name, recipe = f"seed {seed + 1} of {self.seeds}", replace(self.recipe, seed=seed)
            progress(f"{name}: training on {taught.taught} questions, {self.epochs} epochs")
            examples, place = taught.examples(judge, seed), folder / f"seed-{seed}"
            with finetuned(judge, examples, recipe, place, **sizes) as (tuned, training):
                progress(f"{name}: reading after the training")
                file = folder / "readings" / f"seed-{seed}.npy"
                logs = cached_array(file, partial(read_by, tuned))
            after.append(LabelReading(seed, logs, taught.answers(seed)))
            trainings.append(training)
        self._induced = Induced(judge.name, taught, before, tuple(after), tuple(trainings))

    def found(self) -> "Induced":
        """Readings before and after."""
        assert self._induced is not None, "it is asked for after the work"
        return self._induced

    @classmethod
    def page(cls, found: "Induced") -> Page:
        """The answer, with all tables."""
        frames = induced_tables(found)
        bars = frames["figure4"]
        chance = 1 / len(found.material.labels.words)
        claim = induced_claim(cut_name(found.name), frames)
        prompt_sections = [_prompt_section(kind, texts) for kind, texts in WORDINGS.items()]
        page = claim_page(
            "Can the model say what it would answer, though it never learnt that?",
            [claim],
            INDUCED_WORDS,
            picture=_bars("figure4", bars, "first", chance),
            table=_first_table(bars),
            tables={
                name: RowTable(row_type, rows_of_frame(row_type, frames[name], unit=UNIT))
                for name, row_type in ROW_TYPES.items()
            },
            method=[
                METHOD,
                "Each of these stood behind the question, after an empty line:",
                *prompt_sections,
            ],
            notes={claim.subject: [LIMITS]},
            paper=[
                ACCURACY,
                Figures(
                    [_accuracy(f"figure4_accuracy_{word}", bars, word, chance) for word in NTH]
                ),
                Figures(
                    [_bars("figure4_second", bars, "second", chance), _losses(frames["training"])]
                ),
            ],
            lines=[NOT],
        )
        return replace(
            page, sections=[*page.sections, Section("Runs", [Bullets(found.data)], name="runs")]
        )


def _prompt_section(kind: Kind, texts: Sequence[str]) -> Section:
    """The prompts of a kind, each with the place of the question."""
    wordings = [text.format(nth=" / ".join(NTH)) for text in texts]
    return Section(
        NAMES[kind], [Bullets([ASKED.format(question="…", asked=wording) for wording in wordings])]
    )


WORD_HELP = "Mean probability of the label that was taught for this word, among all labels, after the training."


def _first_table(bars: pd.DataFrame) -> PageTable:
    """Mean P of the label by what is asked, after the training; last that of other questions'
    labels.
    """
    learnt = bars[(bars.phase == "after") & (bars.questions == "learnt")].set_index(
        ["kind", "word"]
    )
    rows = [
        {"asked": NAMES[kind]} | {word: learnt.value[kind, word] for word in NTH} for kind in KINDS
    ]
    permuted = {word: learnt.permuted["introspective", word] for word in NTH}
    rows.append({"asked": "other questions' labels"} | permuted)
    return PageTable(
        rows,
        [
            Column("asked", "asked"),
            *(Column(f"{word} word", word, _two, help=WORD_HELP) for word in NTH),
        ],
    )


@dataclass(frozen=True)
class Material:
    """Material that is taught and asked: the same for all seeds, except who gets which label."""

    questions: tuple[str, ...]
    """Questions that are learnt, then the held-out ones."""
    taught: int
    """Number of questions that are learnt."""
    labels: Labels
    prompts: "tuple[Prompts, ...]"
    """Prompts [question]."""
    left_out: int = 0
    """Number of questions that could not be used: too long, or with a special token."""

    @property
    def text(self) -> str:
        """Line with the amounts."""
        left = f"; {self.left_out} questions left out (too long, or with a special token)" * bool(
            self.left_out
        )
        held_out = len(self.questions) - self.taught
        return f"{self.taught} questions to learn, {held_out} held out, {len(self.labels.words)} labels{left}"

    def answers(self, seed: int) -> npt.NDArray[np.int64]:
        """The labels of a seed [question, word]; −1 for held-out questions, which have none."""
        none = np.full((len(self.questions) - self.taught, 2), -1)
        return np.concatenate([assigned(self.taught, len(self.labels.words), seed=seed), none])

    def examples(self, judge: "LocalModel", seed: int) -> "list[Example]":
        """Examples that are trained on: a question, and its two labels as the reply's beginning."""
        from selfprobe.probes.training import Example

        answers = [
            (self.labels.start[first], self.labels.after[second])
            for first, second in self.answers(seed)
        ]
        asked = [
            prompt_tokens(judge, question, Asked("direct", 0))
            for question in self.questions[: self.taught]
        ]
        return [Example(prompt, answer) for prompt, answer in zip(asked, answers, strict=False)]


@dataclass(frozen=True)
class LabelReading:
    """Reading of one model on all questions."""

    seed: int
    log_probs: npt.NDArray[np.float32]
    """Log-probabilities [question, column, label]; columns as in `COLUMNS`."""
    answers: npt.NDArray[np.int64]
    """The labels that were taught [question, word]; −1 where none was."""


@dataclass(frozen=True)
class Induced:
    """Readings, before any number is made of them."""

    name: str
    """Name of the model."""
    material: Material
    before: npt.NDArray[np.float32]
    """Log-probabilities [question, column, label] of the model before training."""
    after: tuple[LabelReading, ...]
    """Readings after training, by seed."""
    trainings: "tuple[Training, ...]"

    @property
    def data(self) -> list[str]:
        """Lines on what was learnt, and how."""
        one, count = self.trainings[0], len(self.trainings)
        what = "weights" if one.full else "parameters of the adapters"
        anew = "all weights trained anew" if one.full else "other first adapters"
        each = (
            f"{count} trainings, each with other labels for the questions and {anew}"
            if count > 1
            else "one training"
        )
        return [
            f"{self.material.text}; {each}",
            f"{one.parameters:,} {what}; {len(one.losses)} steps, {one.tokens:,} tokens, "
            f"{sum(t.seconds for t in self.trainings):.0f} s of training in all",
            f"Labels: {', '.join(self.material.labels.words)}",
        ]


def material(
    judge: "LocalModel",
    questions: Sequence[str],
    *,
    taught: int,
    held_out: int,
    labels: Sequence[str] = (),
) -> Material:
    """A random sample of `questions`, drawn with a fixed seed.

    Raises:
        ValueError: Too few questions that can be used, or labels that are several tokens.
    """
    from selfprobe.mechanism.induce_reading import prompts_of
    from selfprobe.probes.tokens import held_special, special_tokens

    if min(taught, held_out) < FEWEST:
        raise ValueError(
            f"expected {FEWEST} questions to learn and {FEWEST} held-out ones or more, got {taught} and {held_out}: "
            "give larger --questions and --held-out"
        )
    drawn = list({normalised(text): text for text in questions}.values())
    special, limit = special_tokens(judge.tokenizer), min(LONGEST, judge.context)
    kept: dict[str, Prompts] = {}
    left_out = 0
    for at in np.random.default_rng(0).permutation(len(drawn)):
        if len(kept) == taught + held_out:
            break
        prompts = prompts_of(judge, drawn[at])
        if held_special([drawn[at]], special) or prompts.length + 2 > limit:
            left_out += 1
        else:
            kept[drawn[at]] = prompts
    if len(kept) < taught + held_out:
        raise ValueError(
            f"{taught} questions to learn and {held_out} held-out ones are asked for, and there are {len(kept)}"
            + (
                f" ({left_out} more are longer than {limit} tokens, or hold a special token)"
                if left_out
                else ""
            )
            + ": take fewer (--questions, --held-out), or another --dataset"
        )
    return Material(tuple(kept), taught, labels_of(judge, labels), tuple(kept.values()), left_out)


INDUCED_WORDS = ClaimWords(
    yes="predicts its own reply{also}: P of its label is {difference} above {competitor}",
    no="does not predict its own reply: P of its label is {effect} above what it is for another assistant",
    checks={
        "labels_learnt": "a model that learnt the labels",
        "answer_mass": "answering with the labels",
        "above_other_labels": "naming its own label more than other questions' labels",
        "above_before": "naming its own label more than before the training",
        "above_another_assistant": "naming it more than when asked about another assistant",
        "above_a_fact": "naming it more than when asked for a word of the text",
        "words_apart": "telling its second word from its first",
    },
    explained="echoes its label, as with {competitor}",
    write=partial(shown, sign=True),
    unmet={
        "labels_learnt": "did not learn the labels",
        "answer_mass": "puts {difference} of the probability on labels",
        "above_other_labels": "is not shown to name its own label more than other questions' labels ({difference})",
        "above_before": "is not shown to name its own label more than before the training ({difference})",
        "above_another_assistant": "names its label, perhaps no more than with {competitor} ({difference})",
        "above_a_fact": "names its label, perhaps no more than with {competitor} ({difference})",
        "words_apart": "names its label, perhaps whichever of its words is asked for ({difference})",
    },
    units={
        "labels_learnt": lambda lead: f"{shown(lead, sign=True)} above other questions' labels",
        "answer_mass": percents,
    },
)


def induced_claim(subject: str, frames: Mapping[str, pd.DataFrame]) -> Claim:
    """Whether the model predicts its own reply, from the tables `figure4` and `contrasts`.

    The effect is P of its label when it is asked about itself, less P when it is asked about
    another assistant; there is none where the labels were not learnt.
    """
    bars = frames["figure4"]
    learnt_bars = bars[(bars.phase == "after") & (bars.questions == "learnt")]
    contrasts = frames["contrasts"]
    difference_by_name = {}
    for row in contrasts.itertuples():
        if row.word == "both" or row.contrast == "place":
            difference_by_name[row.contrast] = _estimate_of(row)
    learning = _learning_check(learnt_bars)
    if learning.outcome is not Outcome.HOLDS:
        difference_by_name = dict.fromkeys(
            difference_by_name, undefined("the labels were not learnt")
        )
    shows_new = all(difference_by_name[name].low > 0 for name in HELD_OUT)
    asked_p = learnt_bars.groupby("kind").value.mean()
    checks = (
        learning,
        answer_mass_check(_asked_mass(learnt_bars), remedy="give --labels that it says"),
        _difference_check(
            "above_other_labels", difference_by_name["label"], "other questions' labels"
        ),
        _difference_check("above_before", difference_by_name["training"], "before the training"),
        _difference_check(
            "above_another_assistant",
            difference_by_name["self"],
            f"another assistant: P {asked_p['another assistant']:.2f}",
            explains=True,
        ),
        _difference_check(
            "above_a_fact",
            difference_by_name["fact"],
            f"a word of the text: P {asked_p['fact']:.2f}",
            explains=True,
        ),
        _difference_check(
            "words_apart", difference_by_name["place"], "its other word", explains=True
        ),
    )
    return Claim(
        subject,
        difference_by_name["self"],
        checks,
        SMALL,
        details={"also": ", to new questions too" if shows_new else ""},
    )


def _estimate_of(row: Any) -> Estimate:
    return Estimate(float(row.value), float(row.low), float(row.high), int(row.n), UNIT)


def _learning_check(learnt_bars: pd.DataFrame) -> Check:
    """Whether the direct answer to a learnt question is its label, more than other questions'
    labels are.
    """
    direct = learnt_bars[learnt_bars.kind == "direct"]
    best = max(direct.itertuples(), key=lambda row: row.low - row.permuted)
    is_learnt = best.low > best.permuted
    return Check(
        "labels_learnt",
        Estimate(
            best.value - best.permuted,
            best.low - best.permuted,
            best.high - best.permuted,
            int(best.n),
            UNIT,
        ),
        Outcome.HOLDS if is_learnt else Outcome.OPEN,
        remedy="" if is_learnt else "train longer (--epochs), or with a larger --rate",
    )


def _asked_mass(learnt_bars: pd.DataFrame) -> Estimate:
    """P of all labels together when it is asked what it would say, of the word for which it is
    less.
    """
    asked = learnt_bars[learnt_bars.kind == "introspective"]
    least = min(asked.itertuples(), key=lambda row: row.mass_low)
    return Estimate(
        float(least.mass), float(least.mass_low), float(least.mass_high), int(least.mass_n), UNIT
    )


def _difference_check(
    name: str, difference: Estimate, compared_with: str, *, explains: bool = False
) -> Check:
    """Whether P of the label is above that of a control."""
    outcome = outcome_above_zero(difference, smallest=SMALL)
    remedy = "" if outcome is Outcome.HOLDS else "more questions (--questions) narrow the interval"
    return Check(name, difference, outcome, compared_with, explains=explains, remedy=remedy)


def _two(value: float) -> str:
    return number(value, 2)


def _accuracy(stem: str, rows: pd.DataFrame, word: str, chance: float) -> Picture:
    """Figure 4 as the paper names it: how often the label is the most probable one."""
    ends = ["accuracy", "accuracy_low", "accuracy_high"]
    shares = rows.drop(columns=["value", "low", "high"]).rename(
        columns=dict(zip(ends, ["value", "low", "high"], strict=True))
    )
    return _bars(stem, shares, word, chance, of="questions whose most probable label is")


def _bars(stem: str, rows: pd.DataFrame, word: str, chance: float, *, of: str = "P of") -> Picture:
    """Figure 4 before and after for a word, with the controls below."""
    held = {("held-out", "introspective"): "not learnt: its own\ndirect answer"}
    names = {
        ("learnt", kind): name.replace("asked ", "asked\n") for kind, name in NAMES.items()
    } | held
    found = {(r.questions, r.kind, r.phase): r for r in rows[rows.word == word].itertuples()}
    marks = {
        name: {phase: found[*key, phase] for phase in ("before", "after")}
        for key, name in names.items()
    }
    axis = f"{of} the {word} label among all labels" if of == "P of" else f"{of} the {word} one"
    return bar_rows(
        stem,
        marks,
        caption=f"95 % intervals; dashed: chance, {chance:.2f}.",
        axis=axis,
        line=chance,
    )


def _losses(rows: pd.DataFrame) -> Picture:
    lines = {
        f"training {int(seed) + 1}": (
            list(mine.step),
            [undefined("", value=loss) for loss in mine.loss],
        )
        for seed, mine in rows.groupby("seed")
    }
    caption = "Loss by step: −log P of a label's token."
    return curves(
        "training", lines, caption=caption, across="step", up="loss", marks=False, alt=caption
    )


def scored(
    reading: LabelReading,
    kind: Kind,
    word: int,
    part: Part,
    *,
    other_word: bool = False,
    named: bool = False,
) -> Floats:
    """P of the target, and its mean over the other questions' targets: [question, wording, (own,
    permuted)].

    `other_word`: the target is the label of the other word of the reply. `named`: 1 where the
    target is the most probable label and 0 elsewhere, in place of P.
    """
    taught = reading.answers[:, 0] >= 0
    rows = np.flatnonzero(taught if part == "learnt" else ~taught)
    each = softmax(reading.log_probs[rows].astype(float), axis=2)  # [question, column, label]
    place = 1 - word if other_word else word
    direct = each[:, COLUMNS.index(Asked("direct", place))].argmax(axis=1)
    target = reading.answers[rows, place] if part == "learnt" else direct
    columns = [n for n, asked in enumerate(COLUMNS) if (asked.kind, asked.word) == (kind, word)]
    if named:
        each = np.eye(each.shape[2])[each.argmax(axis=2)]
    of_targets = each[:, columns][:, :, target]  # [question, wording, question whose target it is]
    own = np.einsum("qwq->qw", of_targets)
    permuted = (of_targets.sum(axis=2) - own) / (len(rows) - 1)
    return np.stack([own, permuted], axis=2)


def _mean(values: Sequence[Floats], *, difference: bool = False) -> Estimate:
    """Mean over arrays [question, wording] of some readings, questions resampled."""
    clusters = np.concatenate([np.repeat(np.arange(len(v)), v.shape[1]) for v in values])
    flat = np.concatenate([v.ravel() for v in values])
    return clustered_mean(
        flat, clusters, unit=UNIT, interval="difference" if difference else "auto"
    )


def readings(found: Induced) -> dict[str, tuple[LabelReading, ...]]:
    """Before and after; before, each seed's labels are looked for in what the model said as it
    came.
    """
    return {
        "before": tuple(LabelReading(r.seed, found.before, r.answers) for r in found.after),
        "after": found.after,
    }


def figure4(found: Induced) -> pd.DataFrame:
    """phase, questions, kind, word, value, low, high, n, permuted, mass, accuracy …: Figure 4, and
    the controls' bars.

    `value` is the mean P of the label, `accuracy` the share of questions and wordings whose most
    probable label it is (with its low, high and permuted); `mass` is P of all labels together over
    the whole vocabulary. A direct answer to a held-out question is its own target, and has no row.
    """
    rows = []
    parts: tuple[Part, ...] = ("learnt", "held-out")
    for phase, read in readings(found).items():
        for part in parts:
            for kind in KINDS:
                for word in (0, 1):
                    if (part, kind) == ("held-out", "direct"):
                        continue
                    each = [scored(reading, kind, word, part) for reading in read]
                    right = [scored(reading, kind, word, part, named=True) for reading in read]
                    value = _mean([e[..., 0] for e in each])
                    share = _mean([e[..., 0] for e in right])
                    mass = _mean([label_mass(reading, kind, word, part) for reading in read])
                    rows.append(
                        {"phase": phase, "questions": part, "kind": kind, "word": NTH[word]}
                        | _row(value)
                        | {"permuted": float(np.mean([e[..., 1] for e in each]))}
                        | {
                            "mass": mass.value,
                            "mass_low": mass.low,
                            "mass_high": mass.high,
                            "mass_n": mass.n,
                        }
                        | {
                            "accuracy": share.value,
                            "accuracy_low": share.low,
                            "accuracy_high": share.high,
                        }
                        | {"accuracy_n": share.n}
                        | {"accuracy_permuted": float(np.mean([e[..., 1] for e in right]))}
                    )
    return pd.DataFrame(rows)


def label_mass(reading: LabelReading, kind: Kind, word: int, part: Part) -> Floats:
    """P of all labels together over the whole vocabulary, [question, wording]."""
    columns = [
        number for number, asked in enumerate(COLUMNS) if (asked.kind, asked.word) == (kind, word)
    ]
    is_of_part = (reading.answers[:, 0] >= 0) == (part == "learnt")
    log_probs = reading.log_probs[is_of_part][:, columns].astype(float)
    return np.asarray(np.exp(log_probs).sum(axis=2))


def _row(estimate: Estimate) -> dict[str, Any]:
    return {name: value for name, value in asdict(estimate).items() if name != "se"}


CONTRASTS = {
    "label": "asked what it would say: the label taught, less other questions' labels",
    "training": "the same label after the training, less before it",
    "self": "asked about itself, less asked about another assistant",
    "fact": "asked about itself, less asked for a word of the text",
    "place": "asked for the second word: the second label, less the first",
    "held-out": "held-out questions: its own direct answer, less other questions' answers",
    "held-out training": "the same after the training, less before it",
    "held-out self": "held-out questions: asked about itself, less asked about another assistant",
    "held-out fact": "held-out questions: asked about itself, less asked for a word of the text",
}
"""Name → which probability is subtracted from which; after the training where none is named, and
all P of a label.
"""


def contrasts_of(found: Induced) -> pd.DataFrame:
    """contrast, word, value, low, high, n: paired by question, over wordings and seeds; see
    `CONTRASTS`.
    """
    rows = []
    for name in CONTRASTS:
        for word in ("both", *NTH):
            words = (0, 1) if word == "both" else (NTH.index(word),)
            if name == "place" and word != "second":
                continue
            each = [
                np.concatenate([_contrast(found, k, name, w) for w in words], axis=1)
                for k in range(len(found.after))
            ]
            rows.append({"contrast": name, "word": word} | _row(_mean(each, difference=True)))
    return pd.DataFrame(rows)


def _contrast(found: Induced, k: int, name: str, word: int) -> Floats:
    """One contrast [question, wording] of one seed."""
    before, after = (read[k] for read in readings(found).values())
    own = scored(after, "introspective", word, "learnt")
    if name == "training":
        return np.asarray(own[..., 0] - scored(before, "introspective", word, "learnt")[..., 0])
    if name == "place":
        return np.asarray(
            own[..., 0] - scored(after, "introspective", word, "learnt", other_word=True)[..., 0]
        )
    other: Kind = "fact" if name.endswith("fact") else "another assistant"
    if name in ("self", "fact"):
        return np.asarray(own[..., 0] - scored(after, other, word, "learnt")[..., 0])
    if name == "label":
        return np.asarray(own[..., 0] - own[..., 1])
    said = scored(after, "introspective", word, "held-out")
    if name in ("held-out self", "held-out fact"):
        return np.asarray(said[..., 0] - scored(after, other, word, "held-out")[..., 0])
    came = (
        scored(before, "introspective", word, "held-out")
        if name == "held-out training"
        else np.zeros_like(said)
    )
    return np.asarray((said - came)[..., 0] - (said - came)[..., 1])


def seeds(found: Induced) -> pd.DataFrame:
    """seed, loss (of the last eighth of the steps), kind, word, value, permuted: one row a seed and
    bar, after it.
    """
    rows = []
    for reading, training in zip(found.after, found.trainings, strict=True):
        last = training.losses[-max(1, len(training.losses) // 8) :]
        for kind in KINDS:
            for word in (0, 1):
                own, permuted = scored(reading, kind, word, "learnt").mean(axis=(0, 1))
                rows.append(
                    {
                        "seed": reading.seed,
                        "loss": float(np.mean(last)),
                        "kind": kind,
                        "word": NTH[word],
                    }
                    | {"value": float(own), "permuted": float(permuted)}
                )
    return pd.DataFrame(rows)


def wordings(found: Induced) -> pd.DataFrame:
    """kind, wording, word, value, permuted: after the training, learnt questions, mean over seeds."""
    rows = []
    for kind, texts in WORDINGS.items():
        for word in (0, 1):
            each = np.mean(
                [scored(reading, kind, word, "learnt") for reading in found.after], axis=(0, 1)
            )
            for text, (own, permuted) in zip(texts, each, strict=True):
                told = text.format(nth=NTH[word])
                rows.append(
                    {
                        "kind": kind,
                        "wording": told,
                        "value": float(own),
                        "permuted": float(permuted),
                    }
                )
    return pd.DataFrame(rows)


def curve(found: Induced) -> pd.DataFrame:
    """seed, step, loss: the training curves."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "seed": reading.seed,
                    "step": range(1, len(training.losses) + 1),
                    "loss": training.losses,
                }
            )
            for reading, training in zip(found.after, found.trainings, strict=True)
        ],
        ignore_index=True,
    )


@dataclass(frozen=True)
class InducedBar:
    """Probability of the label by what is asked (Figure 4)."""

    phase: Annotated[str, Heading("phase", "Before or after the training.")]
    questions: Annotated[str, Heading("questions", "Questions that were learnt, or held out.")]
    kind: Annotated[str, Heading("asked", "What is asked after the question.")]
    word: Annotated[str, Heading("word", "Word of the reply that is asked for.")]
    estimate: Annotated[
        Estimate, Heading("P of the label", "Probability of the label, among all labels.")
    ]
    permuted: Annotated[
        float, Heading("permuted", "The same for the labels of the other questions.")
    ]
    mass: Annotated[
        Estimate,
        Heading("P of all labels", "Probability of all labels together, among all tokens."),
    ]
    accuracy: Annotated[
        Estimate, Heading("accuracy", "Share whose most probable label is the one taught.")
    ]
    accuracy_permuted: Annotated[
        float,
        Heading(
            "accuracy, permuted", "The same for the labels of the other questions.", on_page=False
        ),
    ]


@dataclass(frozen=True)
class InducedContrast:
    """Differences of the probability of the label."""

    contrast: Annotated[
        str,
        Heading(
            "contrast",
            "Probability that is compared, and with which.",
            lambda name: CONTRASTS[name],
        ),
    ]
    word: Annotated[str, Heading("word", "Word of the reply that is asked for.")]
    estimate: Annotated[
        Estimate, Heading("difference of P", "The difference of the two probabilities.")
    ]


@dataclass(frozen=True)
class InducedSeed:
    """Probability of the label by training."""

    seed: Annotated[int, Heading("seed", "Number of the training, from 0.")]
    loss: Annotated[float, Heading("loss", "Mean loss of the last eighth of the steps.")]
    kind: Annotated[str, Heading("asked", "What is asked after the question.")]
    word: Annotated[str, Heading("word", "Word of the reply that is asked for.")]
    value: Annotated[
        float, Heading("P of the label", "Probability of the label, among all labels.")
    ]
    permuted: Annotated[
        float, Heading("permuted", "The same for the labels of the other questions.")
    ]


@dataclass(frozen=True)
class InducedWording:
    """Probability of the label by wording, after the training."""

    kind: Annotated[str, Heading("asked", "What is asked after the question.")]
    wording: Annotated[str, Heading("wording", "Words in which it is asked.")]
    value: Annotated[
        float, Heading("P of the label", "Probability of the label, among all labels.")
    ]
    permuted: Annotated[
        float, Heading("permuted", "The same for the labels of the other questions.")
    ]


@dataclass(frozen=True)
class TrainingStep:
    """Loss of the trainings by step."""

    seed: Annotated[int, Heading("seed", "Number of the training, from 0.")]
    step: Annotated[int, Heading("step", "Step of the training, from 1.")]
    loss: Annotated[float, Heading("loss", "−log P of a label's token.")]


ROW_TYPES: Mapping[str, type] = {
    "figure4": InducedBar,
    "contrasts": InducedContrast,
    "seeds": InducedSeed,
    "wordings": InducedWording,
    "training": TrainingStep,
}
"""File stem → what its rows hold."""


def induced_tables(found: Induced) -> dict[str, pd.DataFrame]:
    """All tables, by file stem."""
    makers = {
        "figure4": figure4,
        "contrasts": contrasts_of,
        "seeds": seeds,
        "wordings": wordings,
        "training": curve,
    }
    return {name: make(found) for name, make in makers.items()}
