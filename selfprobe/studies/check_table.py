"""What `selfprobe check` reads of a run: one table of item, epoch and key, with a row wherever a
score belongs.
"""

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from inspect_ai.log import EvalLog, EvalSampleSummary
from inspect_ai.scorer import Score

from selfprobe.logs import Run, values_of
from selfprobe.logs.decision import Decision, last_decisions
from selfprobe.logs.reducers import known_reducer, parts_of, reducers_of
from selfprobe.studies.check_numbers import FAILED, NO_SCORE

NO_REASON = "no_reason"
"""Reason of a value that a scorer left out without one."""


class ForeignDecision(Decision):
    """Value of another suite's scorer; its key is the scorer's name, and after a dot the key of a
    dict.
    """

    value: float | None = None
    """Any number; None when unscored, and for a text ("B") that is no number."""


@dataclass(frozen=True)
class TableRow:
    """Value of one sample at one key, or the reason why there is none."""

    item: str
    epoch: int
    decision: Decision
    failed: bool = False
    """True if the sample ended in an error, and was not scored."""


@dataclass(frozen=True)
class ScoreColumn:
    """A value that each sample of another suite's run should have."""

    scorer: str
    key: str
    """Key in a dict, or place in a list; "" where the score is one value."""

    @property
    def name(self) -> str:
        """Name of the score: "match", "judge.tone"."""
        return f"{self.scorer}.{self.key}" if self.key else self.scorer


def is_failed(sample: EvalSampleSummary, header: EvalLog) -> bool:
    """True if a sample ended in an error and was not scored; with `score_on_error` Inspect scores
    it all the same.
    """
    scored_all_the_same = bool(header.eval.config.score_on_error and sample.scores)
    return bool(sample.error) and not scored_all_the_same


def judged_table(run: Run) -> list[TableRow]:
    """The rows of a run: every valid sample has one for each key that it should have, also without
    a score.

    `logs.decision_columns` has rows of decisions alone, and none of what is missing, of other
    suites' scores, and of samples that were scored after an error.
    """
    decisions = [last_decisions(sample.scores) for sample in run.summaries]
    if any(decisions):
        return list(_suite_rows(run, decisions))
    columns = score_columns(run)
    rows = list[TableRow]()
    for sample in run.summaries:
        failed = is_failed(sample, run.header)
        for column in columns:
            if failed:
                decision = ForeignDecision(key=column.name, unscored=FAILED)
            else:
                decision = _foreign_decision(column, (sample.scores or {}).get(column.scorer))
            rows.append(TableRow(str(sample.id), sample.epoch, decision, failed))
    return rows


def _suite_rows(run: Run, decisions: Sequence[Sequence[Decision]]) -> Iterator[TableRow]:
    """Rows of a run of the suite, whose scorers say which keys a sample has."""
    sample_keys = [
        [decision.key for decision in sample_decisions] for sample_decisions in decisions
    ]
    keys_of_item = defaultdict[str, dict[str, None]](dict)
    for sample, keys in zip(run.summaries, sample_keys, strict=True):
        keys_of_item[str(sample.id)] |= dict.fromkeys(keys)
    judged_keys = [keys for keys in sample_keys if keys]
    common_keys = judged_keys[0]
    for keys in judged_keys:
        common_keys = [key for key in common_keys if key in keys]
    for sample, sample_decisions in zip(run.summaries, decisions, strict=True):
        item = str(sample.id)
        failed = is_failed(sample, run.header)
        expected_keys = list(keys_of_item[item]) or common_keys or [run.identity.task]
        if failed:
            row_decisions = [Decision(key=key, unscored=FAILED) for key in expected_keys]
        else:
            present_keys = {decision.key for decision in sample_decisions}
            lacking_keys = [key for key in expected_keys if key not in present_keys]
            lacking_decisions = [Decision(key=key, unscored=NO_SCORE) for key in lacking_keys]
            row_decisions = [*sample_decisions, *lacking_decisions]
        for decision in row_decisions:
            yield TableRow(item, sample.epoch, decision, failed)


def score_columns(run: Run) -> list[ScoreColumn]:
    """The values that each sample of another suite's run should have: those that any sample has,
    and those of scorers that gave no sample a score, which the log's results name.
    """
    keys_by_scorer = defaultdict[str, dict[str, None]](dict)
    for sample in run.summaries:
        for scorer, score in (sample.scores or {}).items():
            keys_by_scorer[scorer] |= dict.fromkeys(_keys(score))
    columns = [
        ScoreColumn(scorer, key) for scorer, keys in keys_by_scorer.items() for key in keys or [""]
    ]
    results = run.header.results
    for logged in results.scores if results else []:
        if logged.scorer not in keys_by_scorer and not logged.scored_samples:
            columns.append(ScoreColumn(logged.scorer, ""))
    return list(dict.fromkeys(columns))


def _keys(score: Score) -> list[str]:
    """Keys of a score's values; none where the whole score is left out, which says nothing of its
    keys.
    """
    if isinstance(score.value, Mapping):
        return [str(key) for key in score.value]
    if isinstance(score.value, list):
        return [str(place) for place in range(len(score.value))]
    return list(values_of(score))


def _foreign_decision(column: ScoreColumn, score: Score | None) -> ForeignDecision:
    if score is None:
        return ForeignDecision(key=column.name, unscored=NO_SCORE)
    values = values_of(score)
    if column.key in values:
        return ForeignDecision(
            key=column.name, value=number_of(values[column.key]), said=score.answer
        )
    lacks_key = isinstance(score.value, Mapping | list) and column.key not in _keys(score)
    reason = score.reason or (NO_SCORE if lacks_key else NO_REASON)
    return ForeignDecision(key=column.name, unscored=reason, said=score.answer)


NUMBER_BY_WORD = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0} | {
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
"""Inspect's letters for correct, partial, incorrect and no answer, and the words that it takes for
numbers.
"""


def number_of(value: object) -> float | None:
    """The number that Inspect takes a value for; None for other texts."""
    if isinstance(value, str):
        word = value if value in NUMBER_BY_WORD else value.lower()
        if word in NUMBER_BY_WORD:
            return NUMBER_BY_WORD[word]
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float):
        return None
    if abs(value) > sys.float_info.max:  # also of a whole number that no float can be
        return math.inf if value > 0 else -math.inf
    return None if math.isnan(value) else float(value)


def header_disagreement(run: Run) -> str:
    """Sentence on a scorer of which the log's header counts fewer scored samples than the log has,
    or "".

    Then somebody edited the log, or left samples out of its metrics in a way that is not known
    here.
    """
    header = run.header
    reducers = reducers_of(header)
    needs_several_epochs = any(
        parts_of(reducer)[0] in ("pass_at", "pass_k", "majority") for reducer in reducers
    )
    is_known = all(known_reducer(reducer) is not None for reducer in reducers)
    if header.results is None or header.invalidated or needs_several_epochs or not is_known:
        return ""
    places_by_name = defaultdict[str, set[tuple[str, int]]](set)
    for sample in run.summaries:
        if is_failed(sample, header):
            continue
        epoch = (
            sample.epoch if header.eval.config.epochs_reducer == [] else 1
        )  # else one value an item
        for scorer, score in (sample.scores or {}).items():
            for name in _scored_names(scorer, score):
                places_by_name[name].add((str(sample.id), epoch))
    for logged in header.results.scores:
        name = logged.scorer if logged.name == logged.scorer else f"{logged.scorer}.{logged.name}"
        scored_count = len(places_by_name[name])
        if logged.scored_samples is not None and logged.scored_samples < scored_count:
            return (
                f"the log's header counts {logged.scored_samples} scored samples of {name}, and {scored_count} have a "
                "score; score it again (inspect score)"
            )
    return ""


def _scored_names(scorer: str, score: Score) -> list[str]:
    """Names under which Inspect counts a score as scored: the scorer's, and of a dict those of its
    keys.
    """
    value = score.value
    if value != value:
        return []
    names = [scorer]
    if isinstance(value, Mapping):
        names += [f"{scorer}.{key}" for key, part in value.items() if part == part]
    return names
