"""The one metric: counts decisions the same way for every task.

It reads every epoch (unreduced), so that an interval is clustered by item and a rate counts each
decision once.
"""

import hashlib
import inspect
import logging
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Value, metric

from selfprobe.errors import warn_once
from selfprobe.logs import CUT_METRIC
from selfprobe.scorers.decision import UNPARSED, Judged, Right, decisions_of
from selfprobe.scorers.frames import frame_numbers, frames, split
from selfprobe.solvers.observe import SKILL
from selfprobe.solvers.record import REASONS, Reply
from selfprobe.stats.estimate import clustered_mean, mode_baseline, skill, worst_case
from selfprobe.text.kinds import may_refuse

# What is undefined is left out of the log, as after the first sample of every run: that needs no
# warning.
_ABSENT = f"Headline metric {SKILL.metric!r} not found"
logging.getLogger("inspect_ai.log._headline").addFilter(
    lambda record: not record.getMessage().startswith(_ABSENT)
)

Settings = ParamSpec("Settings")
Scores = Sequence[SampleScore]
Numbers = Callable[Concatenate[Scores, Settings], Mapping[str, float]]
"""Function from all scores of a run, each epoch's apart, to its numbers by name."""


_RULES: dict[str, set[Right]] = defaultdict(set)
"""Grading rules of the scorers that are imported, by name: a log keeps the name alone, and Inspect
makes the metrics of a run that was interrupted from its log.
"""


def _rule(right: Right | str) -> Right | None:
    """The grading rule, or the one of this name; None where there are several, or none is imported."""
    if not isinstance(right, str):
        return right
    known = _RULES[right]
    if len(known) == 1:
        return next(iter(known))
    warn_once(
        f"the grading rule {right!r} of a log is not known here: its metrics lack baselines and skill; "
        "the run that finishes it computes them"
    )
    return None


def metric_of(numbers: Numbers[Settings]) -> Callable[Settings, Metric]:
    """Inspect's metric from a function of all scores, with its name and settings; numbers that are
    NaN are left out.
    """
    _, *settings = inspect.signature(numbers).parameters.values()

    @wraps(numbers)
    def made(*args: Settings.args, **kwargs: Settings.kwargs) -> Metric:
        for rule in (*args, *kwargs.values()):
            if callable(rule):
                _RULES[getattr(rule, "__name__", "")].add(rule)

        def compute(scores: list[SampleScore]) -> Value:
            found = numbers(scores, *args, **kwargs) if scores else {}
            return {name: value for name, value in found.items() if not math.isnan(value)}

        return compute

    setattr(made, "__signature__", inspect.Signature(settings))  # noqa: B010  (mypy knows no such attribute)
    return metric(scores="unreduced")(made)


CUTTING = ("answer_tokens", "act_tokens", "rollout_tokens", "reply_tokens")
"""Task arguments that limit replies."""

FIRST = (
    "stderr",
    "skill",
    "ceiling",
    "unscored",
    "n",
    *(f"{CUT_METRIC}{name}" for name in CUTTING),
)
"""Numbers that a reader of the log looks for, after the score itself."""

_FAULTS = [
    UNPARSED,
    *(REASONS[problem] for problem in ("empty", "refused", "filtered", "truncated", "garbled")),
]
USUAL = (*_FAULTS, *(f"target_{reason}" for reason in _FAULTS))
"""Reasons that every task can have; one that did not happen is 0."""


UNSURE = "unsure_refusal"
"""Note: a target's reply opens as a refusal does, but may be fiction; it counts as behaviour."""

FOREIGN = "foreign_reply"
"""Note: a target's reply may be a proxy's: it is longer than its token limit allows or any model
writes, begins with its prompt, or is word for word the reply to another item. It counts as
behaviour, since nobody can know; a proxy's text that occurs once is not seen.
"""

LONGEST_TOKEN = 100
"""Largest mean number of characters per token of a reply."""

LONGEST = 2_000_000
"""Number of characters that no model writes in one reply, whatever its limit."""

OWN_WORDS = 40
"""Length in characters from which equal replies are noted; shorter ones ("4, 8, 15") are equal by
chance.
"""


def noted(replies: Iterable[Reply], *more: str) -> dict[str, list[str]]:
    """Notes on one sample for `counted_apart`, as details of its score.

    Args:
        replies: The target's replies.
        more: Further notes.
    """
    whole = [reply for reply in replies if not reply.problem]
    unsure = any(may_refuse(reply.text) for reply in whole)
    foreign = any(reply.echoes or _too_long(reply) for reply in whole)
    notes = [UNSURE] * unsure + [FOREIGN] * foreign + list(more)
    texts = [" ".join(reply.text.split()) for reply in whole]
    wrote = sorted(
        {hashlib.sha256(text.encode()).hexdigest()[:12] for text in texts if len(text) >= OWN_WORDS}
    )
    return ({"noted": notes} if notes else {}) | ({"wrote": wrote} if wrote else {})


def _too_long(reply: Reply) -> bool:
    limit = reply.applied.limit if reply.applied is not None else None
    return len(reply.text) > (LONGEST if limit is None else min(LONGEST, LONGEST_TOKEN * limit))


def notes_of(scores: Sequence[SampleScore]) -> list[set[str]]:
    """Notes of each sample: its own, and `FOREIGN` where one of its replies is also that to another
    item.
    """
    details = [sample.score.metadata or {} for sample in scores]
    items = defaultdict[str, set[str | int | None]](set)
    for sample, own in zip(scores, details, strict=True):
        for text in own.get("wrote", []):
            items[text].add(sample.sample_id)
    again = {text for text, those in items.items() if len(those) > 1}
    return [
        set(own.get("noted", [])) | {FOREIGN for text in own.get("wrote", []) if text in again}
        for own in details
    ]


@metric_of
def counted_apart(scores: Scores, names: Sequence[str] = (UNSURE, FOREIGN)) -> dict[str, float]:
    """Share of samples per note: such replies count unchanged, and a reader may want to know of
    them.

    Args:
        scores: All scores of a run.
        names: All notes that a sample can have (`noted`); one that none has is 0.
    """
    notes = notes_of(scores)
    return {name: float(np.mean([name in own for own in notes])) for name in names}


@metric_of
def summary(
    scores: Scores, name: str = "accuracy", right: Right | str = operator.eq
) -> dict[str, float]:
    """All numbers of a task: the score and its interval, baselines, skill, ceiling, unscored rates
    and bounds.

    Args:
        scores: All scores of a run.
        name: Name of the score: "accuracy", or "similarity".
        right: The grading rule, which the most frequent truth is graded by too; its name, where a
            log says it.

    Keys: first `<name>`, `stderr`, `skill`, `ceiling`, `unscored` (share of decisions), `n`
    (decisions scored); then `<name>_low`, `<name>_high` (95 %, clustered by item); per key of the
    score the same (`k1_accuracy` …); `baseline_*`; the ends of `skill` and `ceiling`; `floor` with
    its own; `unscored_<reason>`; `worst_case`, `best_case` (all unscored counted wrong, right);
    `reasoned_rate`; where most replies ended at the token limit, `cut_at_<argument>`, which names
    the task argument that raises it. A run that also asks about another assistant has those of
    `frames.frame_numbers`, which no other number counts.
    """
    return summarise(judged(scores), name, _rule(right))


def judged(scores: Sequence[SampleScore]) -> list[Judged]:
    """Every decision of every sample and epoch, with its item; items of one `cluster` count as one."""
    return [
        (str((sample.sample_metadata or {}).get("cluster") or sample.sample_id), decision)
        for sample in scores
        for decision in decisions_of(sample.score)
    ]


def summarise(
    decisions: Sequence[Judged], name: str, right: Right | None = operator.eq
) -> dict[str, float]:
    """Numbers of `summary` for these decisions; undefined ones are left out, never 0, as baselines
    without a rule.
    """
    of_frames = frame_numbers(frames(decisions), name)
    decisions, _ = split(decisions)
    if not decisions:  # asked about another assistant alone
        return first_things_first(name, of_frames)
    scored = [(item, d) for item, d in decisions if d.value is not None]
    out: dict[str, float] = _interval(
        name, [(i, d.value) for i, d in scored if d.value is not None], stderr=True
    )
    keys = list(dict.fromkeys(d.key for _, d in decisions))
    if len(keys) > 1:
        for key in keys:
            out |= _interval(
                f"{key}_{name}",
                [(i, d.value) for i, d in scored if d.key == key and d.value is not None],
            )
    out |= _baselines(scored, right) if right else {}
    for anchor in ("ceiling", "floor"):
        values = [(i, v) for i, d in decisions if (v := getattr(d, anchor)) is not None]
        out |= _interval(anchor, values)
    reasons = Counter(d.unscored for _, d in decisions if d.unscored)
    out |= {"n": len(scored), "unscored": sum(reasons.values()) / len(decisions)}
    out |= {
        f"unscored_{reason}": reasons[reason] / len(decisions)
        for reason in sorted({*USUAL, *reasons})
    }
    out |= cut_at({reason: count / len(decisions) for reason, count in reasons.items()})
    if all(
        0 <= d.value <= 1 for _, d in scored if d.value is not None
    ):  # else the score has no bounds
        worst, best = worst_case(
            np.array([d.value for _, d in scored], dtype=float), sum(reasons.values())
        )
        out |= {"worst_case": worst, "best_case": best}
    out["reasoned_rate"] = float(np.mean([d.reasoned for _, d in decisions]))
    return first_things_first(name, out | of_frames)


def cut_at(shares: Mapping[str, float], *, target: str = "act_tokens") -> dict[str, float]:
    """Share of replies that ended at the token limit, if most did, named after the task argument
    that raises it.

    >>> cut_at({"truncated": 0.9, "refusal": 0.1})
    {'cut_at_answer_tokens': 0.9}
    """
    arguments = {"truncated": "answer_tokens", "target_truncated": target}
    return {
        f"{CUT_METRIC}{name}": shares[why]
        for why, name in arguments.items()
        if shares.get(why, 0) > 0.5
    }


def first_things_first(name: str, numbers: dict[str, float]) -> dict[str, float]:
    """Defined numbers, those first that a reader of the log looks for."""
    of_frames = [key for key in numbers if key.startswith((f"other_{name}", "self_minus_other"))]
    ordered = {key: numbers[key] for key in (name, *of_frames, *FIRST) if key in numbers} | numbers
    return {key: value for key, value in ordered.items() if not math.isnan(value)}


def _interval(
    name: str, values: Sequence[tuple[str, float]], *, stderr: bool = False
) -> dict[str, float]:
    if not values:
        return {}
    estimate = clustered_mean(
        np.array([v for _, v in values]), np.array([item for item, _ in values])
    )
    error = {"stderr": estimate.se} if stderr else {}
    return {
        name: estimate.value,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        **error,
    }


def without_a_model(scored: Sequence[Judged], right: Right = operator.eq) -> dict[str, np.ndarray]:
    """Scores of what knows nothing of the target's inside, at each scored decision: name →
    `[decision]`.
    """
    candidates: dict[str, np.ndarray] = {}
    if scored and all(d.chance is not None for _, d in scored):
        candidates["chance"] = np.array([d.chance for _, d in scored], dtype=float)
    if scored and all(
        d.constant is not None for _, d in scored
    ):  # of numbered choices, the mode is a position
        slots = [d.constant for _, d in scored]
        most = max(sorted(set(slots), key=str), key=slots.count)
        candidates["constant"] = np.array([slot == most for slot in slots], dtype=float)
    elif scored and all(d.truth is not None for _, d in scored):
        candidates["mode"] = _mode_hits(scored, right)
    if scored and all(d.floor is not None for _, d in scored):
        candidates["floor"] = np.array([d.floor for _, d in scored], dtype=float)
    return candidates


def best_of(candidates: Mapping[str, np.ndarray]) -> np.ndarray:
    """Name of the largest mean, the first of equals."""
    means = {name: float(np.mean(hits)) for name, hits in candidates.items()}
    return candidates[max(means, key=lambda name: means[name])]


def _baselines(scored: Sequence[Judged], right: Right) -> dict[str, float]:
    """Scores of what knows nothing of the target's inside, and the skill above the best of them."""
    candidates = without_a_model(scored, right)
    if not candidates:
        return {}
    values = np.array([d.value for _, d in scored], dtype=float)
    estimate = skill(values, best_of(candidates), np.array([item for item, _ in scored]))
    out = {f"baseline_{name}": float(np.mean(hits)) for name, hits in candidates.items()}
    return out | {"skill": estimate.value, "skill_low": estimate.low, "skill_high": estimate.high}


def _mode_hits(scored: Sequence[Judged], right: Right) -> np.ndarray:
    """Per decision whether the best constant answer to the other items, at the same key, is right."""
    hits = np.zeros(len(scored))
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, decision) in enumerate(scored):
        places[decision.key].append(place)
    for at in places.values():
        truths, items = [str(scored[i][1].truth) for i in at], [scored[i][0] for i in at]
        hits[at] = mode_baseline(truths, clusters=items, right=right)
    return hits
