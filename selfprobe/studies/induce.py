"""Induced introspection: after plain fine-tuning on random labels, does a model say what it would
answer?

IntrospectBench, §5.1, Figure 4. A model learns to reply to each question with two random labels.
Before and after, P of the labels is read for the question itself and for questions about its reply
that it never saw. A score is P of a label among all labels. Its target on a question that was
learnt is the label taught; on a held-out question it is the model's own direct answer. Every score
is shown with the same of the other questions' targets: what a model reaches that says some labels
more than others, whatever it is asked.

Paper: Qwen3-8B, QLoRA at a rate of 1e-6, 500 questions of Dolly; a label as the first or the second
word. Here: LoRA in the model's own precision, a rate that moves small models, and two labels a
reply, so that one model shows both words. The paper's question ("my") and ours ("your") are both
asked; the answer is of ours, which have twins.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum, auto
from functools import cached_property, partial
from itertools import product
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
    QUESTION_FORMAT,
    READ_COLUMNS,
    WORD_ORDINALS,
    WORDINGS,
    YOUR_WORDING,
    Kind,
    Labels,
    ReadColumn,
    assigned_labels,
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
from selfprobe.page.numerals import number, percent_interval, signed_interval
from selfprobe.page.plots import bar_rows, curves, cut_name
from selfprobe.stats.claim import (
    Check,
    Claim,
    Outcome,
    above_zero_check,
    answer_mass_check,
)
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, undefined
from selfprobe.study.local import FULL_LEARNING_RATE, Progress, TrainingStudy
from selfprobe.text.counts import count_text

if TYPE_CHECKING:
    from selfprobe.mechanism.induce_reading import Prompts
    from selfprobe.probes.model import LocalModel
    from selfprobe.probes.training import Example, Recipe, Training

Part = Literal["learnt", "held-out"]
INDUCED_KINDS: tuple[Kind, ...] = ("direct", *WORDINGS)
UNIT = "question"
FEWEST_QUESTIONS = 8
"""Number of questions to learn, and of held-out ones, below which nothing can be said."""
LONGEST_PROMPT_TOKENS = 512
"""Largest number of tokens of a prompt."""
SMALLEST_P_DIFFERENCE = 0.1
"""A difference of P that is too small to matter."""
INDUCE_LIMIT = (
    "It does not show that the model looks at its own state: a question that repeats the prompt "
    "may recall its label."
)
LIMITS_NOTE = (
    f"{INDUCE_LIMIT} The controls say how far it does so for anybody's reply and for a plain "
    "fact. Intervals are over questions: other wordings, other labels and other trainings are rows "
    "of the tables, not part of the interval."
)
INDUCE_METHOD = (
    "A model learnt to reply to each question with two random labels, and was never asked about "
    "its replies. Numbers are P of a label among all labels, means over wordings and trainings, "
    "with 95 % intervals by question. 'permuted' is the same for the labels of the other questions."
)
ACCURACY_NOTE = (
    "Figure 4's accuracy: the share of questions and wordings whose most probable label is the one "
    'taught. The bars above are the mean P of that label. "As in the paper" asks "my" (§5.1), '
    'the other questions "your"; the answer above is of these.'
)
KIND_NAMES: Mapping[Kind, str] = {
    "direct": "direct answer",
    "introspective": "asked what it would say",
    "paper": "asked as in the paper",
    "another assistant": "asked about another assistant",
    "fact": "asked for a word of the text",
}
NEW_QUESTION_CONTRASTS = ("held-out", "held-out training", "held-out self", "held-out fact")
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
        None,
        gt=0,
        lt=1,
        description=f"Learning rate. Default: 0.0005, with --full {FULL_LEARNING_RATE:g}.",
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
        rate = self.rate or (FULL_LEARNING_RATE if self.full else 5e-4)
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
        questions = [str(row["question"]) for row in self.table.rows]
        words = list[str]()
        if self.labels:
            lines = [line.strip() for line in read_text(self.labels).splitlines()]
            words = [line for line in lines if line]
            if not words:
                raise ValueError(f"{self.labels} holds no labels: expected a word a line")
        return material(
            self.judge, questions, taught=self.questions, held_out=self.held_out, labels=words
        )

    @property
    def needs_lines(self) -> list[str]:
        """Reading and training, with the time of all.

        Raises:
            ValueError: Memory or the disk has no room for it.
        """
        from selfprobe.probes.plan import (
            STEP_FORWARD_PASSES,
            check_room,
            duration_text,
            estimate_needs,
            plan_lines,
        )

        examples = self.material.examples(self.judge, 0)
        self.claim_folder(self.state, dry=True)
        training_needs = estimate_needs(
            self.judge,
            examples,
            self.recipe,
            batch_tokens=self.batch_tokens,
            trainings=self.seeds,
        )
        check_room(self.judge, training_needs, self.folder)

        reading_count = 1 + self.seeds
        prompt_tokens_count = sum(prompts.tokens for prompts in self.material.prompts)
        tokens = reading_count * prompt_tokens_count
        reading_seconds = (
            tokens * training_needs.seconds / (STEP_FORWARD_PASSES * training_needs.tokens)
        )
        all_seconds = reading_seconds + self.seeds * training_needs.seconds
        reading = (
            f"{tokens:,} tokens before and after {count_text(self.seeds, 'training')}, "
            f"about {duration_text(reading_seconds)}"
        )
        all_work = f"about {duration_text(all_seconds)}, less what is in the folder already"
        rows = [("Reading", reading), training_needs.row(self.seeds), ("All", all_work)]
        return [self.material.text, *plan_lines(rows)]

    @property
    def state(self) -> dict[str, Any]:
        """Settings that the folder belongs to."""
        judge = self.judge
        prompt_parts = [
            [list(prompts.shared), *map(list, prompts.ends)] for prompts in self.material.prompts
        ]
        recipe = asdict(self.recipe)
        del recipe["seed"]
        return {
            "model": judge.name,
            "revision": judge.revision,
            "precision": judge.precision,
            "prompts": digest(json.dumps(prompt_parts), str(self.material.taught_count)),
            "labels": list(self.material.labels.words),
            "recipe": recipe,
        }

    def work(self, progress: Progress) -> None:
        """Read, train and read again for each seed."""
        from selfprobe.mechanism.induce_reading import read_labels
        from selfprobe.probes.folder import cached_array
        from selfprobe.probes.training import finetuned_model

        study_material = self.material
        judge = self.judge
        readings_folder = self.folder / "readings"
        self.claim_folder(
            self.state,
            dataset=self.table.metadata["dataset"],
            dataset_sha256=self.table.sha256,
            taught=study_material.questions[: study_material.taught_count],
            held_out=study_material.questions[study_material.taught_count :],
        )
        sizes: dict[str, Any] = {"batch_tokens": self.batch_tokens, "progress": progress}

        def read_by(model: "LocalModel") -> npt.NDArray[np.float32]:
            return read_labels(model, study_material.prompts, study_material.labels, **sizes)

        question_count = len(study_material.questions)
        progress(f"{judge.name}: reading {question_count} questions before any training")
        log_probs_before = cached_array(readings_folder / "before.npy", partial(read_by, judge))

        readings_after = list[LabelReading]()
        trainings = list["Training"]()
        for seed in range(self.seeds):
            seed_text = f"seed {seed + 1} of {self.seeds}"
            progress(
                f"{seed_text}: training on {study_material.taught_count} questions, {self.epochs} epochs"
            )
            examples = study_material.examples(judge, seed)
            recipe = replace(self.recipe, seed=seed)
            training_folder = self.folder / f"seed-{seed}"
            with finetuned_model(judge, examples, recipe, training_folder, **sizes) as (
                tuned,
                training,
            ):
                progress(f"{seed_text}: reading after the training")
                reading_file = readings_folder / f"seed-{seed}.npy"
                log_probs = cached_array(reading_file, partial(read_by, tuned))
            readings_after.append(LabelReading(seed, log_probs, study_material.answers(seed)))
            trainings.append(training)
        self._induced = Induced(
            judge.name, study_material, log_probs_before, tuple(readings_after), tuple(trainings)
        )

    def folder_content(self) -> "Induced":
        """Readings before and after."""
        assert self._induced is not None, "it is asked for after the work"
        return self._induced

    @classmethod
    def page(cls, induced: "Induced") -> Page:
        """The answer, with all tables."""
        frames = induced_tables(induced)
        bars = frames["figure4"]
        chance = 1 / len(induced.material.labels.words)
        claim = induced_claim(cut_name(induced.name), frames)
        tables = {
            name: RowTable(row_type, rows_of_frame(row_type, frames[name], unit=UNIT))
            for name, row_type in ROW_TYPES.items()
        }
        prompt_sections = [_prompt_section(kind, texts) for kind, texts in WORDINGS.items()]
        accuracy_pictures = [
            _accuracy_bars(f"figure4_accuracy_{word}", bars, word, chance) for word in WORD_ORDINALS
        ]
        second_word_picture = _label_bars("figure4_second", bars, "second", chance)
        page = claim_page(
            "Can the model say what it would answer, though it never learnt that?",
            [claim],
            INDUCED_WORDS,
            picture=_label_bars("figure4", bars, "first", chance),
            table=_first_table(bars),
            tables=tables,
            method=[
                INDUCE_METHOD,
                "Each of these stood behind the question, after an empty line:",
                *prompt_sections,
            ],
            notes={claim.subject: [LIMITS_NOTE]},
            paper=[
                ACCURACY_NOTE,
                Figures(accuracy_pictures),
                Figures([second_word_picture, _loss_curves(frames["training"])]),
            ],
            terminal_lines=[INDUCE_LIMIT],
        )
        runs_section = Section("Runs", [Bullets(induced.run_lines)], name="runs")
        return replace(page, sections=[*page.sections, runs_section])


def _prompt_section(prompt_kind: Kind, texts: Sequence[str]) -> Section:
    """The prompts of a kind, each with the place of the question."""
    ordinal_words = " / ".join(WORD_ORDINALS)
    prompts = [
        QUESTION_FORMAT.format(question="…", asked=text.format(nth=ordinal_words)) for text in texts
    ]
    return Section(KIND_NAMES[prompt_kind], [Bullets(prompts)])


WORD_HELP = (
    "Mean probability of the label that was taught for this word, among all labels, after the "
    "training."
)


def _first_table(bars: pd.DataFrame) -> PageTable:
    """Mean P of the label by what is asked, after the training; last that of other questions'
    labels.
    """
    learnt_bars = _learnt_bars(bars).set_index(["kind", "word"])
    rows = list[dict[str, Any]]()
    for kind in INDUCED_KINDS:
        value_by_word = {word: learnt_bars.value[kind, word] for word in WORD_ORDINALS}
        rows.append({"asked": KIND_NAMES[kind]} | value_by_word)
    permuted_by_word = {word: learnt_bars.permuted["introspective", word] for word in WORD_ORDINALS}
    rows.append({"asked": "other questions' labels"} | permuted_by_word)

    two_digits = partial(number, digits=2)
    columns = [Column("asked", "asked")]
    columns += [Column(f"{word} word", word, two_digits, help=WORD_HELP) for word in WORD_ORDINALS]
    return PageTable(rows, columns)


def _learnt_bars(bars: pd.DataFrame) -> pd.DataFrame:
    """The bars of learnt questions after the training."""
    return bars[(bars.phase == "after") & (bars.questions == "learnt")]


@dataclass(frozen=True)
class Material:
    """Material that is taught and asked: the same for all seeds, except who gets which label."""

    questions: tuple[str, ...]
    """Questions that are learnt, then the held-out ones."""
    taught_count: int
    """Number of questions that are learnt."""
    labels: Labels
    prompts: "tuple[Prompts, ...]"
    """Prompts [question]."""
    left_out: int = 0
    """Number of questions that could not be used: too long, or with a special token."""

    @property
    def text(self) -> str:
        """Line with the amounts."""
        held_out_count = len(self.questions) - self.taught_count
        line = (
            f"{self.taught_count} questions to learn, {held_out_count} held out, "
            f"{len(self.labels.words)} labels"
        )
        if self.left_out:
            line += f"; {self.left_out} questions left out (too long, or with a special token)"
        return line

    def answers(self, seed: int) -> npt.NDArray[np.int64]:
        """The labels of a seed [question, word]; −1 for held-out questions, which have none."""
        taught_labels = assigned_labels(self.taught_count, len(self.labels.words), seed=seed)
        no_labels = np.full((len(self.questions) - self.taught_count, 2), -1)
        return np.concatenate([taught_labels, no_labels])

    def examples(self, judge: "LocalModel", seed: int) -> "list[Example]":
        """Examples that are trained on: a question, and its two labels as the reply's beginning."""
        from selfprobe.probes.training import Example

        taught_questions = self.questions[: self.taught_count]
        taught_labels = self.answers(seed)[: self.taught_count]
        examples = []
        for question, (first_label, second_label) in zip(
            taught_questions, taught_labels, strict=True
        ):
            prompt = prompt_tokens(judge, question, ReadColumn("direct", 0))
            reply = (self.labels.start[first_label], self.labels.after[second_label])
            examples.append(Example(prompt, reply))
        return examples


@dataclass(frozen=True)
class LabelReading:
    """Reading of one model on all questions."""

    seed: int
    log_probs: npt.NDArray[np.float32]
    """Log-probabilities [question, column, label]; columns as in `READ_COLUMNS`."""
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
    def run_lines(self) -> list[str]:
        """Lines on what was learnt, and how."""
        training = self.trainings[0]
        training_count = len(self.trainings)
        weights = "parameters of the adapters"
        difference = "other first adapters"
        if training.full:
            weights = "weights"
            difference = "all weights trained anew"

        trainings_text = "one training"
        if training_count > 1:
            trainings_text = (
                f"{training_count} trainings, each with other labels for the questions and "
                f"{difference}"
            )
        all_seconds = sum(training.seconds for training in self.trainings)
        return [
            f"{self.material.text}; {trainings_text}",
            f"{training.parameters:,} {weights}; {len(training.losses)} steps, "
            f"{training.tokens:,} tokens, {all_seconds:.0f} s of training in all",
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
    from selfprobe.probes.tokens import first_special_token, special_tokens

    if min(taught, held_out) < FEWEST_QUESTIONS:
        raise ValueError(
            f"expected {FEWEST_QUESTIONS} questions to learn and {FEWEST_QUESTIONS} held-out ones "
            f"or more, got {taught} and {held_out}: give larger --questions and --held-out"
        )
    question_by_normal_form = {normalised(question): question for question in questions}
    different_questions = list(question_by_normal_form.values())
    special = special_tokens(judge.tokenizer)
    token_limit = min(LONGEST_PROMPT_TOKENS, judge.context)

    prompts_by_question: dict[str, Prompts] = {}
    unusable_count = 0
    for question_index in np.random.default_rng(0).permutation(len(different_questions)):
        if len(prompts_by_question) == taught + held_out:
            break
        question = different_questions[question_index]
        prompts = prompts_of(judge, question)
        if first_special_token([question], special) or prompts.length + 2 > token_limit:
            unusable_count += 1
        else:
            prompts_by_question[question] = prompts

    if len(prompts_by_question) < taught + held_out:
        unusable_text = ""
        if unusable_count:
            unusable_text = (
                f" ({unusable_count} more are longer than {token_limit} tokens, or hold a special "
                "token)"
            )
        raise ValueError(
            f"{taught} questions to learn and {held_out} held-out ones are asked for, and there "
            f"are {len(prompts_by_question)}{unusable_text}: take fewer (--questions, --held-out), "
            "or another --dataset"
        )
    return Material(
        tuple(prompts_by_question),
        taught,
        labels_of(judge, labels),
        tuple(prompts_by_question.values()),
        unusable_count,
    )


INDUCED_WORDS = ClaimWords(
    yes="predicts its own reply{also}: P of its label is {difference} above {competitor}",
    no=(
        "does not predict its own reply: P of its label is {effect} above what it is for another "
        "assistant"
    ),
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
    write=signed_interval,
    unmet={
        "labels_learnt": "did not learn the labels",
        "answer_mass": "puts {difference} of the probability on labels",
        "above_other_labels": (
            "is not shown to name its own label more than other questions' labels ({difference})"
        ),
        "above_before": (
            "is not shown to name its own label more than before the training ({difference})"
        ),
        "above_another_assistant": (
            "names its label, perhaps no more than with {competitor} ({difference})"
        ),
        "above_a_fact": "names its label, perhaps no more than with {competitor} ({difference})",
        "words_apart": (
            "names its label, perhaps whichever of its words is asked for ({difference})"
        ),
    },
    units={
        "labels_learnt": lambda lead: f"{signed_interval(lead)} above other questions' labels",
        "answer_mass": percent_interval,
    },
)


def induced_claim(subject: str, frames: Mapping[str, pd.DataFrame]) -> Claim:
    """Whether the model predicts its own reply, from the tables `figure4` and `contrasts`.

    The effect is P of its label when it is asked about itself, less P when it is asked about
    another assistant; there is none where the labels were not learnt.
    """
    learnt_bars = _learnt_bars(frames["figure4"])
    difference_by_name = {}
    for row in frames["contrasts"].itertuples():
        if row.word == "both" or row.contrast == "place":
            difference_by_name[row.contrast] = _estimate_of(row)
    learning = _learning_check(learnt_bars)
    if learning.outcome is not Outcome.HOLDS:
        difference_by_name = dict.fromkeys(
            difference_by_name, undefined("the labels were not learnt")
        )

    predicts_new_questions = all(
        difference_by_name[name].low > 0 for name in NEW_QUESTION_CONTRASTS
    )
    p_by_kind = learnt_bars.groupby("kind").value.mean()
    checks = (
        learning,
        answer_mass_check(_asked_label_mass(learnt_bars), remedy="give --labels that it says"),
        _difference_check(
            "above_other_labels", difference_by_name["label"], "other questions' labels"
        ),
        _difference_check("above_before", difference_by_name["training"], "before the training"),
        _difference_check(
            "above_another_assistant",
            difference_by_name["self"],
            f"another assistant: P {p_by_kind['another assistant']:.2f}",
            explains=True,
        ),
        _difference_check(
            "above_a_fact",
            difference_by_name["fact"],
            f"a word of the text: P {p_by_kind['fact']:.2f}",
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
        SMALLEST_P_DIFFERENCE,
        details={"also": ", to new questions too" if predicts_new_questions else ""},
    )


def _estimate_of(row: Any) -> Estimate:
    return Estimate(float(row.value), float(row.low), float(row.high), int(row.n), UNIT)


def _learning_check(learnt_bars: pd.DataFrame) -> Check:
    """Whether the direct answer to a learnt question is its label, more than other questions'
    labels are.
    """
    direct_bars = learnt_bars[learnt_bars.kind == "direct"]
    clearest_bar = max(direct_bars.itertuples(), key=lambda row: row.low - row.permuted)
    is_learnt = clearest_bar.low > clearest_bar.permuted
    difference = Estimate(
        clearest_bar.value - clearest_bar.permuted,
        clearest_bar.low - clearest_bar.permuted,
        clearest_bar.high - clearest_bar.permuted,
        int(clearest_bar.n),
        UNIT,
    )
    if is_learnt:
        return Check("labels_learnt", difference, Outcome.HOLDS)
    remedy = "train longer (--epochs), or with a larger --rate"
    return Check("labels_learnt", difference, Outcome.OPEN, remedy=remedy)


def _asked_label_mass(learnt_bars: pd.DataFrame) -> Estimate:
    """P of all labels together when it is asked what it would say, of the word for which it is
    less.
    """
    word_bars = learnt_bars[learnt_bars.kind == "introspective"]
    lowest_bound_bar = min(word_bars.itertuples(), key=lambda row: row.mass_low)
    return Estimate(
        float(lowest_bound_bar.mass),
        float(lowest_bound_bar.mass_low),
        float(lowest_bound_bar.mass_high),
        int(lowest_bound_bar.mass_n),
        UNIT,
    )


def _difference_check(
    name: str, difference: Estimate, compared_with: str, *, explains: bool = False
) -> Check:
    """Whether P of the label is above that of a control."""
    return above_zero_check(
        name,
        difference,
        smallest=SMALLEST_P_DIFFERENCE,
        compared_with=compared_with,
        explains=explains,
        remedy="more questions (--questions) narrow the interval",
    )


def _accuracy_bars(stem: str, bars: pd.DataFrame, word: str, chance: float) -> Picture:
    """Figure 4 as the paper names it: how often the label is the most probable one."""
    accuracy_columns = {"accuracy": "value", "accuracy_low": "low", "accuracy_high": "high"}
    shares = bars.drop(columns=["value", "low", "high"]).rename(columns=accuracy_columns)
    axis = f"questions whose most probable label is the {word} one"
    return _label_bars(stem, shares, word, chance, axis=axis)


def _label_bars(
    stem: str, bars: pd.DataFrame, word: str, chance: float, *, axis: str = ""
) -> Picture:
    """Figure 4 before and after for a word, with the controls below."""
    bar_by_key = {
        (bar.questions, bar.kind, bar.phase): bar for bar in bars[bars.word == word].itertuples()
    }
    name_by_questions_and_kind: dict[tuple[Part, Kind], str] = {}
    for kind, kind_name in KIND_NAMES.items():
        name_by_questions_and_kind["learnt", kind] = kind_name.replace("asked ", "asked\n")
    name_by_questions_and_kind["held-out", "introspective"] = "not learnt: its own\ndirect answer"

    marks = {}
    for key, name in name_by_questions_and_kind.items():
        marks[name] = {phase: bar_by_key[*key, phase] for phase in ("before", "after")}
    return bar_rows(
        stem,
        marks,
        caption=f"95 % intervals; dashed: chance, {chance:.2f}.",
        axis=axis or f"P of the {word} label among all labels",
        line=chance,
    )


def _loss_curves(losses: pd.DataFrame) -> Picture:
    curve_by_training = {}
    for seed, training_losses in losses.groupby("seed"):
        points = [undefined("", value=loss) for loss in training_losses.loss]
        curve_by_training[f"training {int(seed) + 1}"] = (list(training_losses.step), points)
    caption = "Loss by step: −log P of a label's token."
    return curves(
        "training",
        curve_by_training,
        caption=caption,
        x_title="step",
        y_title="loss",
        marks=False,
        alt=caption,
    )


def target_scores(
    reading: LabelReading,
    kind: Kind,
    word: int,
    questions: Part,
    *,
    of_other_word: bool = False,
    as_accuracy: bool = False,
) -> FloatArray:
    """P of the target, and its mean over the other questions' targets: [question, wording, (own,
    permuted)].

    `of_other_word`: the target is the label of the other word of the reply. `as_accuracy`: 1 where
    the target is the most probable label and 0 elsewhere, in place of P.
    """
    question_indices = np.flatnonzero(_is_of_part(reading, questions))
    log_probs = reading.log_probs[question_indices].astype(float)
    label_scores = softmax(log_probs, axis=2)  # [question, column, label]

    target_word = 1 - word if of_other_word else word
    if questions == "learnt":
        targets = reading.answers[question_indices, target_word]
    else:
        direct_column = READ_COLUMNS.index(ReadColumn("direct", target_word))
        targets = label_scores[:, direct_column].argmax(axis=1)

    if as_accuracy:
        label_count = label_scores.shape[2]
        label_scores = np.eye(label_count)[label_scores.argmax(axis=2)]
    asked_scores = label_scores[:, _columns_of(kind, word)]
    scores_of_targets = asked_scores[:, :, targets]  # [question, wording, question of the target]
    own_scores = np.einsum("qwq->qw", scores_of_targets)
    permuted_scores = (scores_of_targets.sum(axis=2) - own_scores) / (len(question_indices) - 1)
    return np.stack([own_scores, permuted_scores], axis=2)


def _is_of_part(reading: LabelReading, questions: Part) -> npt.NDArray[np.bool_]:
    """Whether each question is one of those that were learnt, or of the held-out ones."""
    is_learnt = reading.answers[:, 0] >= 0
    return is_learnt if questions == "learnt" else ~is_learnt


def _columns_of(kind: Kind, word: int) -> list[int]:
    """Columns of a reading in which a word is asked for, by wording."""
    return [
        column
        for column, asked in enumerate(READ_COLUMNS)
        if (asked.kind, asked.word) == (kind, word)
    ]


def _mean(
    values_by_reading: Sequence[FloatArray], *, interval: Literal["auto", "difference"] = "auto"
) -> Estimate:
    """Mean over arrays [question, wording] of some readings, questions resampled."""
    question_indices = []
    for values in values_by_reading:
        question_count, wording_count = values.shape
        question_indices.append(np.repeat(np.arange(question_count), wording_count))
    all_values = np.concatenate([values.ravel() for values in values_by_reading])
    return clustered_mean(
        all_values, np.concatenate(question_indices), unit=UNIT, interval=interval
    )


def readings_by_phase(induced: Induced) -> dict[str, tuple[LabelReading, ...]]:
    """Before and after; before, each seed's labels are looked for in what the model said as it
    came.
    """
    readings_before = [
        LabelReading(reading.seed, induced.before, reading.answers) for reading in induced.after
    ]
    return {"before": tuple(readings_before), "after": induced.after}


def figure4(induced: Induced) -> pd.DataFrame:
    """phase, questions, kind, word, value, low, high, n, permuted, mass, accuracy …: Figure 4, and
    the controls' bars.

    `value` is the mean P of the label, `accuracy` the share of questions and wordings whose most
    probable label it is (with its low, high and permuted); `mass` is P of all labels together over
    the whole vocabulary. A direct answer to a held-out question is its own target, and has no row.
    """
    parts: tuple[Part, ...] = ("learnt", "held-out")
    rows = []
    for phase, readings in readings_by_phase(induced).items():
        for questions, kind, word in product(parts, INDUCED_KINDS, (0, 1)):
            if (questions, kind) == ("held-out", "direct"):
                continue
            names = {
                "phase": phase,
                "questions": questions,
                "kind": kind,
                "word": WORD_ORDINALS[word],
            }
            rows.append(names | _bar_numbers(readings, kind, word, questions))
    return pd.DataFrame(rows)


def _bar_numbers(
    readings: Sequence[LabelReading], kind: Kind, word: int, questions: Part
) -> dict[str, Any]:
    p_scores = [target_scores(reading, kind, word, questions) for reading in readings]
    accuracy_scores = [
        target_scores(reading, kind, word, questions, as_accuracy=True) for reading in readings
    ]
    masses = [label_mass(reading, kind, word, questions) for reading in readings]
    mean_p = _mean([scores[..., 0] for scores in p_scores])
    accuracy = _mean([scores[..., 0] for scores in accuracy_scores])
    mass = _mean(masses)
    permuted_p = np.mean([scores[..., 1] for scores in p_scores])
    permuted_accuracy = np.mean([scores[..., 1] for scores in accuracy_scores])
    return _estimate_columns(mean_p) | {
        "permuted": float(permuted_p),
        "mass": mass.value,
        "mass_low": mass.low,
        "mass_high": mass.high,
        "mass_n": mass.n,
        "accuracy": accuracy.value,
        "accuracy_low": accuracy.low,
        "accuracy_high": accuracy.high,
        "accuracy_n": accuracy.n,
        "accuracy_permuted": float(permuted_accuracy),
    }


def label_mass(reading: LabelReading, kind: Kind, word: int, questions: Part) -> FloatArray:
    """P of all labels together over the whole vocabulary, [question, wording]."""
    is_of_part = _is_of_part(reading, questions)
    log_probs = reading.log_probs[is_of_part][:, _columns_of(kind, word)].astype(float)
    return np.asarray(np.exp(log_probs).sum(axis=2))


def _estimate_columns(estimate: Estimate) -> dict[str, Any]:
    columns = asdict(estimate)
    del columns["se"]
    return columns


class ComparedWith(Enum):
    """What is subtracted from P of the target when the model is asked about itself."""

    OTHER_LABELS = auto()
    """P of the other questions' targets."""
    BEFORE_TRAINING = auto()
    ANOTHER_ASSISTANT = auto()
    """P of the target when it is asked about another assistant."""
    FACT = auto()
    """P of the target when it is asked for a word of the text."""
    OTHER_WORD = auto()
    """P of the label of the reply's other word."""
    YOUR_FOR_MY = auto()
    """P of the target when "your" stands for the paper's "my", which is asked first."""


@dataclass(frozen=True)
class Contrast:
    """A difference of probabilities."""

    questions: Part
    compared_with: ComparedWith
    text: str


CONTRASTS: Mapping[str, Contrast] = {
    "label": Contrast(
        "learnt",
        ComparedWith.OTHER_LABELS,
        "asked what it would say: the label taught, less other questions' labels",
    ),
    "training": Contrast(
        "learnt",
        ComparedWith.BEFORE_TRAINING,
        "the same label after the training, less before it",
    ),
    "self": Contrast(
        "learnt",
        ComparedWith.ANOTHER_ASSISTANT,
        "asked about itself, less asked about another assistant",
    ),
    "fact": Contrast(
        "learnt", ComparedWith.FACT, "asked about itself, less asked for a word of the text"
    ),
    "place": Contrast(
        "learnt",
        ComparedWith.OTHER_WORD,
        "asked for the second word: the second label, less the first",
    ),
    "paper": Contrast(
        "learnt",
        ComparedWith.YOUR_FOR_MY,
        "asked “What will my … word likely be?”, as the paper does, less the same with “your”",
    ),
    "held-out": Contrast(
        "held-out",
        ComparedWith.OTHER_LABELS,
        "held-out questions: its own direct answer, less other questions' answers",
    ),
    "held-out training": Contrast(
        "held-out",
        ComparedWith.BEFORE_TRAINING,
        "the same after the training, less before it",
    ),
    "held-out self": Contrast(
        "held-out",
        ComparedWith.ANOTHER_ASSISTANT,
        "held-out questions: asked about itself, less asked about another assistant",
    ),
    "held-out fact": Contrast(
        "held-out",
        ComparedWith.FACT,
        "held-out questions: asked about itself, less asked for a word of the text",
    ),
}
"""Name → which probability is subtracted from which; after the training where none is named, and
all P of a label.
"""


def contrasts_of(induced: Induced) -> pd.DataFrame:
    """contrast, word, value, low, high, n: paired by question, over wordings and seeds; see
    `CONTRASTS`.
    """
    word_indices = {"both": (0, 1), "first": (0,), "second": (1,)}
    rows = []
    for name, contrast in CONTRASTS.items():
        for word_name, words in word_indices.items():
            is_of_second_alone = contrast.compared_with is ComparedWith.OTHER_WORD
            if is_of_second_alone and word_name != "second":
                continue
            differences = _contrast_by_seed(induced, contrast, words)
            estimate = _mean(differences, interval="difference")
            rows.append({"contrast": name, "word": word_name} | _estimate_columns(estimate))
    return pd.DataFrame(rows)


def _contrast_by_seed(
    induced: Induced, contrast: Contrast, words: tuple[int, ...]
) -> list[FloatArray]:
    """A contrast [question, wording of each word] of each seed."""
    readings = readings_by_phase(induced)
    differences_by_seed = []
    for reading_before, reading_after in zip(readings["before"], readings["after"], strict=True):
        differences = [_contrast(reading_before, reading_after, contrast, word) for word in words]
        differences_by_seed.append(np.concatenate(differences, axis=1))
    return differences_by_seed


def _contrast(
    reading_before: LabelReading, reading_after: LabelReading, contrast: Contrast, word: int
) -> FloatArray:
    """One contrast [question, wording] of one seed."""
    questions = contrast.questions
    scores = target_scores(reading_after, "introspective", word, questions)
    own_scores = scores[..., 0]
    match contrast.compared_with:
        case ComparedWith.OTHER_LABELS:
            control_scores = scores[..., 1]
        case ComparedWith.BEFORE_TRAINING:
            scores_before = target_scores(reading_before, "introspective", word, questions)
            if questions == "held-out":  # its direct answers, the targets, have changed as well
                changes = scores - scores_before
                return np.asarray(changes[..., 0] - changes[..., 1])
            control_scores = scores_before[..., 0]
        case ComparedWith.ANOTHER_ASSISTANT:
            control_scores = target_scores(reading_after, "another assistant", word, questions)[
                ..., 0
            ]
        case ComparedWith.FACT:
            control_scores = target_scores(reading_after, "fact", word, questions)[..., 0]
        case ComparedWith.OTHER_WORD:
            control_scores = target_scores(
                reading_after, "introspective", word, questions, of_other_word=True
            )[..., 0]
        case ComparedWith.YOUR_FOR_MY:
            control_scores = own_scores[:, [YOUR_WORDING]]
            own_scores = target_scores(reading_after, "paper", word, questions)[..., 0]
    return np.asarray(own_scores - control_scores)


def seed_table(induced: Induced) -> pd.DataFrame:
    """seed, loss (of the last eighth of the steps), kind, word, value, permuted: one row a seed and
    bar, after it.
    """
    rows = []
    for reading, training in zip(induced.after, induced.trainings, strict=True):
        last_step_count = max(1, len(training.losses) // 8)
        last_loss = float(np.mean(training.losses[-last_step_count:]))
        for kind, word in product(INDUCED_KINDS, (0, 1)):
            scores = target_scores(reading, kind, word, "learnt")
            own_score, permuted_score = scores.mean(axis=(0, 1))
            rows.append(
                {
                    "seed": reading.seed,
                    "loss": last_loss,
                    "kind": kind,
                    "word": WORD_ORDINALS[word],
                    "value": float(own_score),
                    "permuted": float(permuted_score),
                }
            )
    return pd.DataFrame(rows)


def wording_table(induced: Induced) -> pd.DataFrame:
    """kind, wording, value, permuted: after the training, learnt questions, mean over seeds."""
    rows = []
    for kind, texts in WORDINGS.items():
        for word in (0, 1):
            scores = [target_scores(reading, kind, word, "learnt") for reading in induced.after]
            mean_scores = np.mean(scores, axis=(0, 1))  # [wording, (own, permuted)]
            for text, (own_score, permuted_score) in zip(texts, mean_scores, strict=True):
                rows.append(
                    {
                        "kind": kind,
                        "wording": text.format(nth=WORD_ORDINALS[word]),
                        "value": float(own_score),
                        "permuted": float(permuted_score),
                    }
                )
    return pd.DataFrame(rows)


def loss_table(induced: Induced) -> pd.DataFrame:
    """seed, step, loss: the training curves."""
    frames = []
    for reading, training in zip(induced.after, induced.trainings, strict=True):
        steps = range(1, len(training.losses) + 1)
        columns = {"seed": reading.seed, "step": steps, "loss": training.losses}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


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
            lambda name: CONTRASTS[name].text,
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


def induced_tables(induced: Induced) -> dict[str, pd.DataFrame]:
    """All tables, by file stem."""
    return {
        "figure4": figure4(induced),
        "contrasts": contrasts_of(induced),
        "seeds": seed_table(induced),
        "wordings": wording_table(induced),
        "training": loss_table(induced),
    }
