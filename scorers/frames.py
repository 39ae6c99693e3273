"""The self-picture's advantage over the picture of an assistant: answers about itself minus those
about another.

Both are compared with the observer's own act at the same item. A decision about another assistant
has `OTHER` before its key; `split` keeps it out of everything that counts the task's own decisions.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from selfprobe.scorers.decision import Judged
from selfprobe.solvers.observe import OTHER_PREFIX
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined

Place = tuple[Any, ...]
"""Place at which both questions were asked: the item first."""


@dataclass(frozen=True)
class Frames:
    """Scores of one observer asked about itself and about another assistant. Intervals are over
    items.
    """

    self_score: Estimate
    """Mean score of the answers about itself; undefined where it was not asked."""
    other_score: Estimate
    """Mean score of the answers about another assistant."""
    gain: Estimate
    """Own minus other, over the places that both frames score."""
    unscored: float
    """Share of the answers about another assistant that are unscored."""


def split(decisions: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """The decisions about the observer itself, and those about another assistant under the keys of
    the former.
    """
    self_decisions: list[Judged] = []
    other_decisions: list[Judged] = []
    for item, decision in decisions:
        if decision.key.startswith(OTHER_PREFIX):
            self_key = decision.key.removeprefix(OTHER_PREFIX)
            other_decisions.append((item, decision.model_copy(update={"key": self_key})))
        else:
            self_decisions.append((item, decision))
    return self_decisions, other_decisions


def frames(decisions: Sequence[Judged]) -> Frames | None:
    """Both frames of a task that scores each decision, or None where nobody asked about another
    assistant.
    """
    self_decisions, other_decisions = split(decisions)
    if not other_decisions:
        return None
    return paired_frames(_score_by_place(self_decisions), _score_by_place(other_decisions))


def _score_by_place(decisions: Sequence[Judged]) -> dict[Place, float]:
    """(item, key, epoch) → score, NaN where unscored; a sample carries both frames, so epochs are
    counted alike.
    """
    epoch_counts: Counter[Place] = Counter()
    score_by_place: dict[Place, float] = {}
    for item, decision in decisions:
        question = (item, decision.key)
        epoch = epoch_counts[question]
        score = math.nan if decision.value is None else decision.value
        score_by_place[*question, epoch] = score
        epoch_counts[question] += 1
    return score_by_place


def paired_frames(
    self_scores: Mapping[Place, float], other_scores: Mapping[Place, float]
) -> Frames:
    """Score about itself minus score about another, paired by place; intervals clustered by item.

    Args:
        self_scores: Place → score of the answer about itself, NaN where unscored.
        other_scores: Place → score of the answer about another assistant.
    """
    if self_scores:
        differences = {
            place: self_scores[place] - other_score
            for place, other_score in other_scores.items()
            if place in self_scores
        }
        self_estimate = _mean_by_item(self_scores)
        gain = _mean_by_item(differences, interval="t")
    else:
        self_estimate = undefined("it was not asked about itself")
        gain = undefined("it was not asked about itself")

    is_unscored = [math.isnan(score) for score in other_scores.values()]
    return Frames(
        self_score=self_estimate,
        other_score=_mean_by_item(other_scores),
        gain=gain,
        unscored=float(np.mean(is_unscored)),
    )


def _mean_by_item(
    values: Mapping[Place, float], *, interval: Literal["t", "auto"] = "auto"
) -> Estimate:
    items = np.array([str(place[0]) for place in values])
    return clustered_mean(np.array(list(values.values())), items, interval=interval)


def frame_numbers(frame_scores: Frames | None, name: str) -> dict[str, float]:
    """The numbers of both frames for a log, NaN where undefined; none without the arm.

    Args:
        frame_scores: Result of `frames`.
        name: Name of the task's score.

    Keys: `other_<name>` and `self_minus_other`, with `_low` and `_high`; `self_minus_other_n`
    (items with both) and `other_unscored` (share). The score about itself is the task's own.
    """
    if frame_scores is None:
        return {}
    numbers: dict[str, float] = {}
    estimates = {
        f"{OTHER_PREFIX}{name}": frame_scores.other_score,
        "self_minus_other": frame_scores.gain,
    }
    for number_name, estimate in estimates.items():
        numbers[number_name] = estimate.value
        numbers[f"{number_name}_low"] = estimate.low
        numbers[f"{number_name}_high"] = estimate.high
    numbers["self_minus_other_n"] = frame_scores.gain.n
    numbers[f"{OTHER_PREFIX}unscored"] = frame_scores.unscored
    return numbers
