"""Numbers of the preference tasks' logs: what each run prefers, and what the texts alone tell of
the better one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from selfprobe.data.pairs import Pair
from selfprobe.logs import Run
from selfprobe.logs.decision import decisions_of
from selfprobe.page import percent_interval
from selfprobe.scorers.preference import VERDICT
from selfprobe.stats.estimate import (
    FEW_CLUSTERS,
    Estimate,
    FloatArray,
    clustered_mean,
    complement,
    shifted,
    undefined,
)
from selfprobe.stats.text_only import (
    advantages_beyond_reader,
    pair_keyword_margins,
    pair_length_margins,
    pair_style_margins,
    pair_word_margins,
)
from selfprobe.study import Logs
from selfprobe.study.preference_logs import SINGLE_TEXT_TASKS, data_set_name, setting_texts
from selfprobe.text.counts import count_text

GUESSING = 0.5
"""Share of pairs that guessing gets."""
DECISIVE_PLACE_SHARE = 0.75
"""Share of showings in which one place is chosen, from which on place alone decides at least half
of the pairs.
"""

StrArray = npt.NDArray[np.str_]


class Place(Enum):
    """Place of a text in a showing."""

    FIRST = "first"
    SECOND = "second"


class TextReader(Enum):
    """Reader that sees the two texts alone; the value is its name on the page."""

    LENGTH = "length alone"
    WORDS = "words alone"
    STYLE = "style alone"


READER_MARGINS = {
    TextReader.LENGTH: (pair_length_margins,),
    TextReader.WORDS: (pair_word_margins, pair_keyword_margins),
    TextReader.STYLE: (pair_style_margins,),
}
"""Reader → functions that give its margins, above 0 where it takes text 1 for the better one."""


@dataclass(frozen=True)
class TextBaseline:
    """What a reader of the texts alone gets of the pairs on which a judge has a verdict."""

    accuracy: Estimate
    """Share of the pairs whose better text it names; a tie is half."""
    beyond: Estimate
    """The judge's advantage over guessing among pairs on which the reader says the same."""


@dataclass(frozen=True)
class JudgedPair:
    """A pair with a label and a verdict."""

    text_1: str
    text_2: str
    first_is_better: bool
    group: str
    """Question: pairs of one question are alike."""
    value: float
    """1 where the better text is preferred, 0 where the other one is, .5 for a tie."""


@dataclass(frozen=True)
class JudgedRun:
    """A finished run of a preference task."""

    method: str
    """Task, and its arguments where they are not the usual ones."""
    model: str
    dataset: str
    metrics: Mapping[str, float]
    """Metrics by the names that the metric `preference` gives them."""
    log: str
    probe_orders: str = ""
    """Orders that a probe's score is the mean of, "both" or "first"; "" where no probe judges."""
    baselines: Mapping[TextReader, TextBaseline] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.method.partition(",")[0]

    @property
    def pair_count(self) -> int:
        """Number of pairs, with a verdict or without."""
        return int(self.metrics.get("pairs", 0))

    def estimate(self, name: str) -> Estimate:
        """One of the metrics with its interval."""
        value = self.metrics.get(name, math.nan)
        low = self.metrics.get(f"{name}_low", math.nan)
        high = self.metrics.get(f"{name}_high", math.nan)
        question_count = int(self.metrics.get("questions", 0))
        if math.isnan(value):
            return undefined("no pair has a verdict", n=question_count, unit="question")
        reason = "no interval" if math.isnan(low) else ""
        return Estimate(value, low, high, question_count, "question", reason)

    @property
    def accuracy(self) -> Estimate:
        """Share of pairs whose better text it prefers."""
        return self.estimate("accuracy")

    @property
    def advantage(self) -> Estimate:
        """Its accuracy less what guessing gets."""
        return shifted(self.accuracy, -GUESSING)

    @property
    def worst_advantage(self) -> Estimate:
        """Its advantage if every pair without a verdict were wrong; the interval keeps its
        width.
        """
        worst_accuracy = self.metrics.get("worst_case", math.nan)
        if math.isnan(worst_accuracy):
            return self.advantage
        return shifted(self.advantage, worst_accuracy - self.accuracy.value)

    @property
    def is_scored_whole(self) -> bool:
        """Whether every pair has a verdict."""
        return self.worst_advantage.value >= self.advantage.value

    @property
    def scored_share(self) -> Estimate:
        """Share of pairs that have a verdict and a label."""
        if not self.pair_count or math.isnan(self.accuracy.value):
            return undefined("no pair has a verdict", n=self.pair_count, unit="pair")
        share = self.metrics.get("n", self.pair_count) / self.pair_count
        return Estimate(share, math.nan, math.nan, self.pair_count, "pair", "no interval")

    @property
    def place(self) -> Place | None:
        """The place that it chooses, whichever text stands there, in most showings (with the whole
        interval).
        """
        first_place_share = self.estimate("said_1")
        if first_place_share.low >= DECISIVE_PLACE_SHARE:
            return Place.FIRST
        if first_place_share.high <= 1 - DECISIVE_PLACE_SHARE:
            return Place.SECOND
        return None

    @property
    def has_no_place(self) -> bool:
        """Whether no text has a place: each is scored alone, or a probe's two orders are
        averaged.
        """
        return self.task in SINGLE_TEXT_TASKS or self.probe_orders == "both"

    @property
    def place_share(self) -> Estimate:
        """Share of showings in which it chooses the place that it chooses more often."""
        first = self.estimate("said_1")
        if self.task in SINGLE_TEXT_TASKS:
            return undefined("each text is scored alone", unit="question")
        if self.probe_orders == "both":
            return undefined("the probe averages both orders", unit="question")
        if math.isnan(first.value):
            return undefined("one order alone was read", unit="question")
        return max(first, complement(first), key=lambda share: share.value)

    @property
    def place_sentence(self) -> str:
        """How often it chooses that place, with the interval; "" where the place does not explain
        its choices.
        """
        if self.place is None:
            return ""
        share = percent_interval(self.place_share)
        place = self.place.value
        return f"takes the {place} place in {share} of showings, whichever text stands there"

    @property
    def few_questions(self) -> str:
        """End of a sentence where intervals count the pairs as few questions (a file's column
        `group`); "" else.
        """
        pairs = self.metrics.get("pairs", math.nan)
        questions = self.metrics.get("questions", math.nan)
        if not questions < min(FEW_CLUSTERS, pairs):
            return ""
        pairs_text = count_text(round(pairs), "pair")
        questions_text = count_text(round(questions), "question")
        return f"; intervals count its {pairs_text} as {questions_text}, and so few make them wide"


def judged_run(run: Run) -> JudgedRun:
    """Numbers of a finished run, from its log's header."""
    scores = run.results.scores if run.results else []
    # `inspect score` appends its own beside the task's.
    metrics = next((score.metrics for score in scores if "questions" in score.metrics), {})
    metadata = run.header.eval.metadata or {}
    return JudgedRun(
        method=", ".join([run.identity.task, *setting_texts(run)]),
        model=run.identity.model,
        dataset=data_set_name(run.header),
        metrics={name: float(metric.value) for name, metric in metrics.items()},
        log=run.log,
        probe_orders=str(metadata.get("orders", "")),
    )


def judged_runs_of(logs: Logs) -> list[JudgedRun]:
    """Numbers of each run, and of readers of the texts on the same pairs."""
    pairs_of_log: dict[str, list[JudgedPair]] = {run.log: [] for run in logs.runs.finished}
    for _, run, sample, score in logs.scored():
        pair = Pair(**sample.metadata["pair"])
        values = [decision.value for decision in decisions_of(score) if decision.key == VERDICT]
        if pair.label is None or not values or values[0] is None:
            continue
        judged_pair = JudgedPair(
            pair.text_1, pair.text_2, pair.label == 1, pair.group, float(values[0])
        )
        pairs_of_log[run.log].append(judged_pair)
    return [
        replace(judged_run(run), baselines=pair_text_baselines(pairs_of_log[run.log]))
        for run in logs.runs.finished
    ]


def pair_text_baselines(judged_pairs: Sequence[JudgedPair]) -> dict[TextReader, TextBaseline]:
    """What each reader of the texts gets of these pairs, learnt from those of other questions."""
    first_texts = [pair.text_1 for pair in judged_pairs]
    second_texts = [pair.text_2 for pair in judged_pairs]
    first_is_better = np.array([pair.first_is_better for pair in judged_pairs], dtype=bool)
    groups = np.array([pair.group for pair in judged_pairs], dtype=str)
    judge_values = np.array([pair.value for pair in judged_pairs], dtype=float)
    baselines = {}
    for reader, margin_functions in READER_MARGINS.items():
        margin_columns = []
        for margins_of in margin_functions:
            reader_margins = margins_of(first_texts, second_texts, first_is_better, groups)
            if reader_margins.ndim == 1:
                reader_margins = reader_margins[:, None]
            margin_columns.append(reader_margins)
        margins = np.concatenate(margin_columns, axis=1)
        right_margins = np.where(first_is_better[:, None], margins, -margins)
        baselines[reader] = text_baseline(judge_values, right_margins, groups)
    return baselines


def text_baseline(
    judge_values: FloatArray, reader_margins: FloatArray, groups: StrArray
) -> TextBaseline:
    """A reader's share of pairs, and what the judge knows beyond it.

    Args:
        judge_values: 1 where the judge prefers the better text, 0 or .5, [pair].
        reader_margins: Above 0 where a reader names the better text, [pair, reader]; NaN where it
            could learn nothing. The first one's accuracy counts.
        groups: Question of each pair.
    """
    if not np.isfinite(reader_margins).any():
        no_number = undefined("too few pairs to learn from", unit="question")
        return TextBaseline(no_number, no_number)
    reader_values = 0.5 + np.sign(reader_margins[:, 0].round(9)) / 2
    accuracy = clustered_mean(reader_values, groups, unit="question")
    advantages = advantages_beyond_reader(judge_values, reader_margins)
    if not np.isfinite(advantages).any():
        reason = "it leaves too few pairs to see more"
        return TextBaseline(accuracy, undefined(reason, unit="question"))
    advantage = clustered_mean(advantages, groups, unit="question", interval="difference")
    return TextBaseline(accuracy, advantage)
