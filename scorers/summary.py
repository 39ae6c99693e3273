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
from typing import Concatenate, Literal, ParamSpec

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Value, metric

from selfprobe.errors import warn_once
from selfprobe.logs import CUT_METRIC
from selfprobe.scorers.decision import UNPARSED, Judged, Right, decisions_of
from selfprobe.scorers.frames import frame_numbers, frames, split
from selfprobe.solvers.observe import SKILL
from selfprobe.solvers.record import REASONS, Reply
from selfprobe.stats.estimate import (
    clustered_mean,
    interval_numbers,
    mode_baseline,
    skill,
    worst_case,
)
from selfprobe.text.kinds import may_refuse

# What is undefined is left out of the log, as after the first sample of every run: that needs no
# warning.
_ABSENT_HEADLINE_WARNING = f"Headline metric {SKILL.metric!r} not found"
logging.getLogger("inspect_ai.log._headline").addFilter(
    lambda record: not record.getMessage().startswith(_ABSENT_HEADLINE_WARNING)
)

MetricSettings = ParamSpec("MetricSettings")
Scores = Sequence[SampleScore]
Numbers = Callable[Concatenate[Scores, MetricSettings], Mapping[str, float]]
"""Function from all scores of a run, each epoch's apart, to its numbers by name."""


_RULES_BY_NAME: dict[str, set[Right]] = defaultdict(set)
"""Grading rules of the scorers that are imported, by name: a log keeps the name alone, and Inspect
makes the metrics of a run that was interrupted from its log.
"""


def _grading_rule(right: Right | str) -> Right | None:
    """The grading rule, or the one of this name; None where several or none are imported."""
    if not isinstance(right, str):
        return right
    known_rules = _RULES_BY_NAME[right]
    if len(known_rules) == 1:
        return next(iter(known_rules))
    warn_once(
        f"the grading rule {right!r} of a log is not known here: its metrics lack baselines and "
        "skill; the run that finishes it computes them"
    )
    return None


def metric_of(numbers: Numbers[MetricSettings]) -> Callable[MetricSettings, Metric]:
    """Inspect's metric from a function of all scores, with its name and settings; numbers that are
    NaN are left out.
    """
    _, *settings = inspect.signature(numbers).parameters.values()

    @wraps(numbers)
    def make_metric(*args: MetricSettings.args, **kwargs: MetricSettings.kwargs) -> Metric:
        for setting in (*args, *kwargs.values()):
            if callable(setting):
                _RULES_BY_NAME[getattr(setting, "__name__", "")].add(setting)

        def compute(scores: list[SampleScore]) -> Value:
            if not scores:
                return {}
            number_by_name = numbers(scores, *args, **kwargs)
            return {
                name: number for name, number in number_by_name.items() if not math.isnan(number)
            }

        return compute

    # mypy knows no such attribute
    setattr(make_metric, "__signature__", inspect.Signature(settings))  # noqa: B010
    return metric(scores="unreduced")(make_metric)


TOKEN_LIMIT_ARGUMENTS = ("answer_tokens", "act_tokens", "rollout_tokens", "reply_tokens")
"""Task arguments that limit replies."""

LEADING_NUMBERS = (
    "stderr",
    "skill",
    "ceiling",
    "unscored",
    "n",
    *(f"{CUT_METRIC}{argument}" for argument in TOKEN_LIMIT_ARGUMENTS),
)
"""Numbers that a reader of the log looks for, after the score itself."""

_REPLY_FAULTS = [
    UNPARSED,
    *(REASONS[problem] for problem in ("empty", "refused", "filtered", "truncated", "garbled")),
]
COMMON_UNSCORED_REASONS = (*_REPLY_FAULTS, *(f"target_{reason}" for reason in _REPLY_FAULTS))
"""Reasons that every task can have; one that did not happen is 0."""


UNSURE = "unsure_refusal"
"""Note: a target's reply opens as a refusal does, but may be fiction; it counts as behaviour."""

FOREIGN = "foreign_reply"
"""Note: a target's reply may be a proxy's: it is longer than its token limit allows or any model
writes, begins with its prompt, or is word for word the reply to another item. It counts as
behaviour, since nobody can know; a proxy's text that occurs once is not seen.
"""

MAX_CHARACTERS_PER_TOKEN = 100
"""Largest mean number of characters per token of a reply."""

MAX_REPLY_CHARACTERS = 2_000_000
"""Number of characters that no model writes in one reply, whatever its limit."""

MIN_COMPARED_CHARACTERS = 40
"""Length in characters from which equal replies are noted; shorter ones ("4, 8, 15") are equal by
chance.
"""


def sample_notes(replies: Iterable[Reply], *further_notes: str) -> dict[str, list[str]]:
    """Notes on one sample for `counted_apart`, as details of its score.

    Args:
        replies: The target's replies.
        further_notes: Notes of the scorer itself.
    """
    readable_replies = [reply for reply in replies if not reply.problem]
    notes: list[str] = []
    if any(may_refuse(reply.text) for reply in readable_replies):
        notes.append(UNSURE)
    if any(reply.echoes or _is_too_long(reply) for reply in readable_replies):
        notes.append(FOREIGN)
    notes += further_notes

    text_digests: set[str] = set()
    for reply in readable_replies:
        text = " ".join(reply.text.split())
        if len(text) >= MIN_COMPARED_CHARACTERS:
            text_digests.add(hashlib.sha256(text.encode()).hexdigest()[:12])

    details: dict[str, list[str]] = {}
    if notes:
        details["noted"] = notes
    if text_digests:
        details["wrote"] = sorted(text_digests)
    return details


def _is_too_long(reply: Reply) -> bool:
    max_characters = MAX_REPLY_CHARACTERS
    if reply.applied is not None and reply.applied.limit is not None:
        max_characters = min(max_characters, MAX_CHARACTERS_PER_TOKEN * reply.applied.limit)
    return len(reply.text) > max_characters


def notes_of(scores: Sequence[SampleScore]) -> list[set[str]]:
    """Notes of each sample: its own, and `FOREIGN` where one of its replies is also that to another
    item.
    """
    items_by_digest = defaultdict[str, set[str | int | None]](set)
    for sample_score in scores:
        for digest in (sample_score.score.metadata or {}).get("wrote", []):
            items_by_digest[digest].add(sample_score.sample_id)

    notes_by_sample: list[set[str]] = []
    for sample_score in scores:
        metadata = sample_score.score.metadata or {}
        notes = set(metadata.get("noted", []))
        if any(len(items_by_digest[digest]) > 1 for digest in metadata.get("wrote", [])):
            notes.add(FOREIGN)
        notes_by_sample.append(notes)
    return notes_by_sample


@metric_of
def counted_apart(scores: Scores, names: Sequence[str] = (UNSURE, FOREIGN)) -> dict[str, float]:
    """Share of samples per note: such replies count unchanged, and a reader may want to know of
    them.

    Args:
        scores: All scores of a run.
        names: All notes that a sample can have (`sample_notes`); one that none has is 0.
    """
    notes_by_sample = notes_of(scores)
    shares: dict[str, float] = {}
    for name in names:
        has_note = [name in notes for notes in notes_by_sample]
        shares[name] = float(np.mean(has_note))
    return shares


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
    return summarise(judged(scores), name, _grading_rule(right))


def judged(scores: Sequence[SampleScore]) -> list[Judged]:
    """Every decision of each sample and epoch with its item; a `cluster` of items counts as one."""
    judged_decisions: list[Judged] = []
    for sample_score in scores:
        sample_metadata = sample_score.sample_metadata or {}
        item = str(sample_metadata.get("cluster") or sample_score.sample_id)
        for decision in decisions_of(sample_score.score):
            judged_decisions.append((item, decision))
    return judged_decisions


def summarise(
    decisions: Sequence[Judged], name: str, right: Right | None = operator.eq
) -> dict[str, float]:
    """Numbers of `summary` for these decisions; undefined ones are left out, never 0, as baselines
    without a rule.
    """
    numbers_of_frames = frame_numbers(frames(decisions), name)
    decisions, _ = split(decisions)
    if not decisions:  # asked about another assistant alone
        return order_for_log(name, numbers_of_frames)

    scored = [(item, decision) for item, decision in decisions if decision.value is not None]
    numbers = _score_numbers(name, decisions)
    if right:
        numbers |= _baselines(scored, right)
    for anchor in ("ceiling", "floor"):
        numbers |= _interval(anchor, _values_of(decisions, anchor))
    numbers |= _unscored_numbers(decisions)

    values = np.array([decision.value for _, decision in scored], dtype=float)
    if np.all((values >= 0) & (values <= 1)):  # else the score has no bounds
        unscored_count = sum(bool(decision.unscored) for _, decision in decisions)
        worst_case_score, best_case_score = worst_case(values, unscored_count)
        numbers |= {"worst_case": worst_case_score, "best_case": best_case_score}

    numbers["reasoned_rate"] = float(np.mean([decision.reasoned for _, decision in decisions]))
    return order_for_log(name, numbers | numbers_of_frames)


def _score_numbers(name: str, decisions: Sequence[Judged]) -> dict[str, float]:
    """Score with its interval and standard error; also by key where there are several keys."""
    numbers = _interval(name, _values_of(decisions, "value"), stderr=True)
    keys = list(dict.fromkeys(decision.key for _, decision in decisions))
    if len(keys) < 2:
        return numbers
    for key in keys:
        decisions_at_key = [pair for pair in decisions if pair[1].key == key]
        numbers |= _interval(f"{key}_{name}", _values_of(decisions_at_key, "value"))
    return numbers


def _values_of(
    decisions: Sequence[Judged], field_name: Literal["value", "ceiling", "floor"]
) -> list[tuple[str, float]]:
    """Item and value of this field, of each decision that has one."""
    values: list[tuple[str, float]] = []
    for item, decision in decisions:
        field_value = getattr(decision, field_name)
        if field_value is not None:
            values.append((item, field_value))
    return values


def _unscored_numbers(decisions: Sequence[Judged]) -> dict[str, float]:
    """Number of scored decisions, and shares of the unscored ones by reason."""
    decision_count = len(decisions)
    reason_counts = Counter(decision.unscored for _, decision in decisions if decision.unscored)
    scored_count = sum(decision.value is not None for _, decision in decisions)

    numbers: dict[str, float] = {
        "n": scored_count,
        "unscored": reason_counts.total() / decision_count,
    }
    for reason in sorted({*COMMON_UNSCORED_REASONS, *reason_counts}):
        numbers[f"unscored_{reason}"] = reason_counts[reason] / decision_count
    shares = {reason: count / decision_count for reason, count in reason_counts.items()}
    return numbers | cut_at(shares)


def cut_at(shares: Mapping[str, float], *, target: str = "act_tokens") -> dict[str, float]:
    """Share of replies that ended at the token limit, if most did, named after the task argument
    that raises it.

    >>> cut_at({"truncated": 0.9, "refusal": 0.1})
    {'cut_at_answer_tokens': 0.9}
    """
    argument_by_reason = {"truncated": "answer_tokens", "target_truncated": target}
    return {
        f"{CUT_METRIC}{argument}": shares[reason]
        for reason, argument in argument_by_reason.items()
        if shares.get(reason, 0) > 0.5
    }


def order_for_log(name: str, numbers: dict[str, float]) -> dict[str, float]:
    """Defined numbers, those first that a reader of the log looks for."""
    frame_names = [
        number_name
        for number_name in numbers
        if number_name.startswith((f"other_{name}", "self_minus_other"))
    ]
    leading_names = [
        number_name
        for number_name in (name, *frame_names, *LEADING_NUMBERS)
        if number_name in numbers
    ]
    ordered_names = dict.fromkeys([*leading_names, *numbers])
    return {
        number_name: numbers[number_name]
        for number_name in ordered_names
        if not math.isnan(numbers[number_name])
    }


def _interval(
    name: str, values: Sequence[tuple[str, float]], *, stderr: bool = False
) -> dict[str, float]:
    if not values:
        return {}
    items = np.array([item for item, _ in values])
    estimate = clustered_mean(np.array([value for _, value in values]), items)
    numbers = interval_numbers(name, estimate)
    if stderr:
        numbers["stderr"] = estimate.se
    return numbers


def without_a_model(scored: Sequence[Judged], right: Right = operator.eq) -> dict[str, np.ndarray]:
    """Scores of what knows nothing of the target's inside, at each scored decision: name →
    `[decision]`.
    """
    baselines: dict[str, np.ndarray] = {}
    if not scored:
        return baselines

    chance_values = [decision.chance for _, decision in scored]
    if None not in chance_values:
        baselines["chance"] = np.array(chance_values, dtype=float)

    right_slots = [decision.constant for _, decision in scored]
    truths = [decision.truth for _, decision in scored]
    if None not in right_slots:  # of numbered choices, the mode is a position
        slots = [str(slot) for slot in right_slots]
        commonest_slot = max(sorted(set(slots)), key=slots.count)
        baselines["constant"] = np.array([slot == commonest_slot for slot in slots], dtype=float)
    elif None not in truths:
        baselines["mode"] = _mode_hits(scored, right)

    floor_values = [decision.floor for _, decision in scored]
    if None not in floor_values:
        baselines["floor"] = np.array(floor_values, dtype=float)
    return baselines


def best_of(candidates: Mapping[str, np.ndarray]) -> np.ndarray:
    """Scores of the baseline with the largest mean, the first of equals."""
    means = {name: float(np.mean(hits)) for name, hits in candidates.items()}
    best_name = max(means, key=means.__getitem__)
    return candidates[best_name]


def _baselines(scored: Sequence[Judged], right: Right) -> dict[str, float]:
    """Scores of what knows nothing of the target's inside, and the skill above the best of them."""
    baselines = without_a_model(scored, right)
    if not baselines:
        return {}
    numbers = {f"baseline_{name}": float(np.mean(hits)) for name, hits in baselines.items()}

    values = np.array([decision.value for _, decision in scored], dtype=float)
    items = np.array([item for item, _ in scored])
    skill_estimate = skill(values, best_of(baselines), items)
    numbers["skill"] = skill_estimate.value
    numbers["skill_low"] = skill_estimate.low
    numbers["skill_high"] = skill_estimate.high
    return numbers


def _mode_hits(scored: Sequence[Judged], right: Right) -> np.ndarray:
    """Per decision whether the best constant answer to the other items at its key is right."""
    indices_by_key: dict[str, list[int]] = defaultdict(list)
    for index, (_, decision) in enumerate(scored):
        indices_by_key[decision.key].append(index)

    hits = np.zeros(len(scored))
    for indices in indices_by_key.values():
        truths = [str(scored[index][1].truth) for index in indices]
        items = [scored[index][0] for index in indices]
        hits[indices] = mode_baseline(truths, clusters=items, right=right)
    return hits
