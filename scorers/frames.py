"""The self-picture's advantage over the picture of an assistant: answers about itself minus those
about another.

Both are compared with the observer's own act at the same item. A decision about another assistant
has `OTHER` before its key; `split` keeps it out of everything that counts the task's own decisions.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from selfprobe.scorers.decision import Judged
from selfprobe.solvers.observe import OTHER
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined

Place = tuple[Any, ...]
"""Place at which both questions were asked: the item first."""


@dataclass(frozen=True)
class Frames:
    """Scores of one observer asked about itself and about another assistant. Intervals are over
    items.
    """

    own: Estimate
    """Mean score of the answers about itself; undefined where it was not asked."""
    other: Estimate
    """Mean score of the answers about another assistant."""
    gain: Estimate
    """Own minus other, over the places that both frames score."""
    unscored: float
    """Share of the answers about another assistant that are unscored."""


def split(decisions: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """The decisions about the observer itself, and those about another assistant under the keys of
    the former.
    """
    own = [(item, d) for item, d in decisions if not d.key.startswith(OTHER)]
    other = [
        (item, d.model_copy(update={"key": d.key.removeprefix(OTHER)}))
        for item, d in decisions
        if d.key.startswith(OTHER)
    ]
    return own, other


def frames(decisions: Sequence[Judged]) -> Frames | None:
    """Both frames of a task that scores each decision, or None where nobody asked about another
    assistant.
    """
    own, other = split(decisions)
    return paired_frames(_placed(own), _placed(other)) if other else None


def _placed(decisions: Sequence[Judged]) -> dict[Place, float]:
    """(item, key, epoch) → score, NaN where unscored; a sample carries both frames, so epochs are
    counted alike.
    """
    times: Counter[Place] = Counter()
    out: dict[Place, float] = {}
    for item, decision in decisions:
        place = (item, decision.key)
        out[*place, times[place]] = math.nan if decision.value is None else decision.value
        times[place] += 1
    return out


def paired_frames(own: Mapping[Place, float], other: Mapping[Place, float]) -> Frames:
    """Own minus other, paired by place, in intervals clustered by item.

    Args:
        own: Place → score of the answer about itself, NaN where unscored.
        other: Place → score of the answer about another assistant.
    """
    gains = {place: own[place] - value for place, value in other.items() if place in own}
    return Frames(
        own=_mean(own) if own else undefined("it was not asked about itself"),
        other=_mean(other),
        gain=_mean(gains, difference=True) if own else undefined("it was not asked about itself"),
        unscored=float(np.mean([math.isnan(value) for value in other.values()])),
    )


def _mean(values: Mapping[Place, float], *, difference: bool = False) -> Estimate:
    items = np.array([str(place[0]) for place in values])
    return clustered_mean(
        np.array(list(values.values())), items, interval="t" if difference else "auto"
    )


def frame_numbers(both: Frames | None, name: str) -> dict[str, float]:
    """The numbers of both frames for a log, NaN where undefined; none without the arm.

    Args:
        both: Result of `frames`.
        name: Name of the task's score.

    Keys: `other_<name>` and `self_minus_other`, with `_low` and `_high`; `self_minus_other_n`
    (items with both) and `other_unscored` (share). The score about itself is the task's own.
    """
    if both is None:
        return {}
    out: dict[str, float] = {}
    for key, estimate in {f"{OTHER}{name}": both.other, "self_minus_other": both.gain}.items():
        out |= {key: estimate.value, f"{key}_low": estimate.low, f"{key}_high": estimate.high}
    return out | {"self_minus_other_n": both.gain.n, f"{OTHER}unscored": both.unscored}
