"""The one metric: counts decisions the same way for every task.

Reads every epoch (unreduced), so that an interval is clustered by item and a rate counts each decision once.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Value, metric

from selfprobe.scorers.decision import Decision, decisions_of
from selfprobe.stats.estimate import clustered_mean, mode_baseline, skill, worst_case

Judged = tuple[str, Decision]
"""The item (sample id) and one decision about it."""


@metric(scores="unreduced")
def summary(name: str = "accuracy") -> Metric:
    """All numbers of a task: the score and its interval, baselines, skill, ceiling, unscored rates and bounds.

    Args:
        name: What the score is called: "accuracy", or "similarity".

    Keys: `<name>`, `<name>_low`, `<name>_high` (95 %, clustered by item); per key of the score the same
    (`k1_accuracy` …); `baseline_*`, `skill`, `skill_low`, `skill_high`; `ceiling`, `floor` with theirs;
    `n` decisions scored, `unscored` (share of decisions), `unscored_<reason>`; `worst_case`, `best_case` (all
    unscored counted wrong, right); `reasoned_rate`.
    """

    def compute(scores: list[SampleScore]) -> Value:
        return summarise(judged(scores), name) if scores else {}

    return compute


def judged(scores: Sequence[SampleScore]) -> list[Judged]:
    """Every decision of every sample and epoch, with its item."""
    return [(str(sample.sample_id), decision) for sample in scores for decision in decisions_of(sample.score)]


def summarise(decisions: Sequence[Judged], name: str) -> dict[str, float]:
    """The numbers of `summary` for these decisions; what is undefined is left out, never 0."""
    scored = [(item, d) for item, d in decisions if d.value is not None]
    out: dict[str, float] = _interval(name, [(i, d.value) for i, d in scored if d.value is not None])
    keys = list(dict.fromkeys(d.key for _, d in decisions))
    if len(keys) > 1:
        for key in keys:
            out |= _interval(f"{key}_{name}", [(i, d.value) for i, d in scored if d.key == key and d.value is not None])
    out |= _baselines(scored)
    for anchor in ("ceiling", "floor"):
        values = [(i, v) for i, d in decisions if (v := getattr(d, anchor)) is not None]
        out |= _interval(anchor, values)
    reasons = Counter(d.unscored for _, d in decisions if d.unscored)
    out |= {"n": len(scored), "unscored": sum(reasons.values()) / len(decisions)}
    out |= {f"unscored_{reason}": count / len(decisions) for reason, count in sorted(reasons.items())}
    if reasons and all(0 <= d.value <= 1 for _, d in scored if d.value is not None):  # else the score has no bounds
        worst, best = worst_case(np.array([d.value for _, d in scored], dtype=float), sum(reasons.values()))
        out |= {"worst_case": worst, "best_case": best}
    out["reasoned_rate"] = float(np.mean([d.reasoned for _, d in decisions]))
    return {key: value for key, value in out.items() if not math.isnan(value)}


def _interval(name: str, values: Sequence[tuple[str, float]]) -> dict[str, float]:
    if not values:
        return {}
    estimate = clustered_mean(np.array([v for _, v in values]), np.array([item for item, _ in values]))
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _baselines(scored: Sequence[Judged]) -> dict[str, float]:
    """What knows nothing of the target's inside reaches, and the skill above the best of it."""
    candidates: dict[str, np.ndarray] = {}
    if scored and all(d.chance is not None for _, d in scored):
        candidates["chance"] = np.array([d.chance for _, d in scored], dtype=float)
    if scored and all(d.constant is not None for _, d in scored):  # of numbered choices, the mode is a position
        slots = [d.constant for _, d in scored]
        most = max(sorted(set(slots), key=str), key=slots.count)
        candidates["constant"] = np.array([slot == most for slot in slots], dtype=float)
    elif scored and all(d.truth is not None for _, d in scored):
        candidates["mode"] = _mode_hits(scored)
    if scored and all(d.floor is not None for _, d in scored):
        candidates["floor"] = np.array([d.floor for _, d in scored], dtype=float)
    if not candidates:
        return {}
    means = {name: float(np.mean(hits)) for name, hits in candidates.items()}
    best = candidates[max(means, key=lambda name: means[name])]
    values = np.array([d.value for _, d in scored], dtype=float)
    estimate = skill(values, best, np.array([item for item, _ in scored]))
    out = {f"baseline_{name}": value for name, value in means.items()}
    return out | {"skill": estimate.value, "skill_low": estimate.low, "skill_high": estimate.high}


def _mode_hits(scored: Sequence[Judged]) -> np.ndarray:
    """Per decision whether the most frequent truth of the other items, at the same key, is right."""
    hits = np.zeros(len(scored))
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, decision) in enumerate(scored):
        places[decision.key].append(place)
    for at in places.values():
        hits[at] = mode_baseline([str(scored[i][1].truth) for i in at], clusters=[scored[i][0] for i in at])
    return hits
