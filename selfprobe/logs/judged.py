"""The judged samples of a run: where the scores of a log become decisions.

A run of the suite has the decisions of its scorers. A run of another suite has none of ours: each
value of its scores is a `ForeignDecision`.
"""

import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inspect_ai.log import EvalLog, EvalSampleSummary
from inspect_ai.scorer import Score

from selfprobe.logs.decision import Decision, last_decisions, last_score

FAILED = "error"
"""Reason of a sample that ended in an error."""
NO_SCORE = "no score"
"""Reason of a value that a sample should have and has not."""
NO_REASON = "no_reason"
"""Reason of a value that a scorer left out without one."""


class ForeignDecision(Decision):
    """Value of another suite's scorer; its key is the scorer's name, and after a dot the key of a
    dict.
    """

    value: float | None = None
    """Any number; None when unscored, and for a text ("B") that is no number."""


@dataclass(frozen=True)
class JudgedSample:
    """A sample of a run, and the decisions of its last score."""

    summary: EvalSampleSummary
    decisions: tuple[Decision, ...]
    """Empty where the sample has no score of the suite."""
    failed: bool
    """True if the sample ended in an error, and was not scored."""

    @property
    def item(self) -> str:
        """Id of the sample."""
        return str(self.summary.id)

    @property
    def epoch(self) -> int:
        """Repetition of the item, from 1."""
        return self.summary.epoch

    @property
    def details(self) -> Mapping[str, Any]:
        """Metadata of the suite's last score; empty without one."""
        score = last_score(self.summary.scores)
        return (score.metadata if score else None) or {}


def judged_sample(sample: EvalSampleSummary, header: EvalLog) -> JudgedSample:
    """A sample with the decisions that its log holds."""
    return JudgedSample(sample, tuple(last_decisions(sample.scores)), is_failed(sample, header))


def is_failed(sample: EvalSampleSummary, header: EvalLog) -> bool:
    """True if a sample ended in an error and was not scored; with `score_on_error` Inspect scores
    it all the same.
    """
    scored_all_the_same = bool(header.eval.config.score_on_error and sample.scores)
    return bool(sample.error) and not scored_all_the_same


def with_every_key(
    judged_samples: Sequence[JudgedSample], header: EvalLog, task: str
) -> list[JudgedSample]:
    """The samples with a decision for each key that they should have: unscored where it is missing.

    Where no sample has a decision of the suite, the values of other scorers are the decisions.

    Args:
        judged_samples: All samples of a run.
        header: The run's log.
        task: Key of a sample where no sample says which keys it should have.
    """
    is_of_suite = any(sample.decisions for sample in judged_samples)
    if not is_of_suite:
        return _with_foreign_decisions(judged_samples, header)

    keys_of_item = defaultdict[str, dict[str, None]](dict)
    common_keys: list[str] | None = None
    for sample in judged_samples:
        sample_keys = [decision.key for decision in sample.decisions]
        keys_of_item[sample.item] |= dict.fromkeys(sample_keys)
        if common_keys is None:
            common_keys = sample_keys or None
        elif sample_keys:
            common_keys = [key for key in common_keys if key in sample_keys]

    complete_samples = list[JudgedSample]()
    for sample in judged_samples:
        expected_keys = list(keys_of_item[sample.item]) or common_keys or [task]
        if sample.failed:
            decisions = [Decision(key=key, unscored=FAILED) for key in expected_keys]
        else:
            present_keys = {decision.key for decision in sample.decisions}
            missing_keys = [key for key in expected_keys if key not in present_keys]
            missing_decisions = [Decision(key=key, unscored=NO_SCORE) for key in missing_keys]
            decisions = [*sample.decisions, *missing_decisions]
        complete_samples.append(replace(sample, decisions=tuple(decisions)))
    return complete_samples


# ---- scores of other suites


@dataclass(frozen=True)
class ScoreColumn:
    """A value that each sample of another suite's run should have."""

    scorer: str
    key: str
    """Key in a dict, or position in a list; "" where the score is one value."""

    @property
    def name(self) -> str:
        """Name of the score: "match", "judge.tone"."""
        return f"{self.scorer}.{self.key}" if self.key else self.scorer


def _with_foreign_decisions(
    judged_samples: Sequence[JudgedSample], header: EvalLog
) -> list[JudgedSample]:
    columns = _score_columns(judged_samples, header)
    complete_samples = list[JudgedSample]()
    for sample in judged_samples:
        decisions = list[Decision]()
        for column in columns:
            if sample.failed:
                decisions.append(ForeignDecision(key=column.name, unscored=FAILED))
            else:
                score = (sample.summary.scores or {}).get(column.scorer)
                decisions.append(_foreign_decision(column, score))
        complete_samples.append(replace(sample, decisions=tuple(decisions)))
    return complete_samples


def _score_columns(judged_samples: Sequence[JudgedSample], header: EvalLog) -> list[ScoreColumn]:
    """The values that each sample of another suite's run should have: those that any sample has,
    and those of scorers that gave no sample a score, which the log's results name.
    """
    keys_by_scorer = defaultdict[str, dict[str, None]](dict)
    for sample in judged_samples:
        for scorer, score in (sample.summary.scores or {}).items():
            keys_by_scorer[scorer] |= dict.fromkeys(_value_keys(score))
    columns = [
        ScoreColumn(scorer, key) for scorer, keys in keys_by_scorer.items() for key in keys or [""]
    ]
    logged_scores = header.results.scores if header.results else []
    for logged_score in logged_scores:
        if logged_score.scorer not in keys_by_scorer and not logged_score.scored_samples:
            columns.append(ScoreColumn(logged_score.scorer, ""))
    return list(dict.fromkeys(columns))


def _value_keys(score: Score) -> list[str]:
    """Keys of a score's values; none where the whole score is left out, which says nothing of its
    keys.
    """
    if isinstance(score.value, Mapping):
        return [str(key) for key in score.value]
    if isinstance(score.value, list):
        return [str(position) for position in range(len(score.value))]
    return list(values_of(score))


def _foreign_decision(column: ScoreColumn, score: Score | None) -> ForeignDecision:
    if score is None:
        return ForeignDecision(key=column.name, unscored=NO_SCORE)
    values = values_of(score)
    if column.key in values:
        number = number_of(values[column.key])
        return ForeignDecision(key=column.name, value=number, said=score.answer)

    lacks_key = isinstance(score.value, Mapping | list) and column.key not in _value_keys(score)
    default_reason = NO_SCORE if lacks_key else NO_REASON
    reason = score.reason or default_reason
    return ForeignDecision(key=column.name, unscored=reason, said=score.answer)


def values_of(score: Score) -> dict[str, Any]:
    """The values of a score, by key ("" where it has no keys), without what is unscored (NaN)."""
    score_value = score.value
    if isinstance(score_value, Mapping):
        value_by_key: Mapping[Any, Any] = score_value
    elif isinstance(score_value, list):
        value_by_key = dict(enumerate(score_value))
    else:
        value_by_key = {"": score_value}
    scored_values = {}
    for key, value in value_by_key.items():
        is_nan = value != value
        if value is not None and not is_nan:
            scored_values[str(key)] = value
    return scored_values


NUMBER_BY_WORD = {
    "C": 1.0,
    "P": 0.5,
    "I": 0.0,
    "N": 0.0,
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
