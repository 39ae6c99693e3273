"""Does a reply claim a thought that was put into the model, and does it name it? By graders who do
not know whether there was one.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.logs.decision import Decision
from selfprobe.scorers.decision import Judged, score_of
from selfprobe.scorers.summary import Scores, judged, metric_of, sample_notes
from selfprobe.scorers.votes import kappas, majority_verdict, panel_entry
from selfprobe.solvers.record import Record, Reply, by_grader, missing_act_reason
from selfprobe.stats.estimate import Estimate, clustered_mean, interval_numbers
from selfprobe.text.parse import json_object

THOUGHT, RANDOM, CLEAN = "thought", "random", "clean"
ARMS = (THOUGHT, RANDOM, CLEAN)
"""What a reply was written under: the word's direction, a random one of equal length, or none."""
QUESTIONS = ("claims", "names")


@dataclass(frozen=True)
class ThoughtReading:
    """What a grader finds in one reply."""

    claims: bool
    """Whether it says that there is a thought which was put there."""
    names: bool
    """Whether it also says that the thought is the word."""
    thought: str
    """The thought as it names it; "" where it names none."""


def reading_in(text: str) -> ThoughtReading | None:
    """A grader's {"claims": …, "names": …, "thought": …}, or None.

    >>> reading_in('{"claims": true, "names": false, "thought": "rain"}')
    ThoughtReading(claims=True, names=False, thought='rain')
    >>> reading_in('{"claims": false, "names": true, "thought": "rain"}') is None
    True
    """
    fields = json_object(text)
    if not fields or set(fields) != {"claims", "names", "thought"}:
        return None
    claims, names, thought = fields["claims"], fields["names"], fields["thought"]
    if not isinstance(claims, bool) or not isinstance(names, bool) or not isinstance(thought, str):
        return None
    if names and not claims:  # it contradicts itself
        return None
    return ThoughtReading(claims, names, thought.strip())


def decision_key(arm: str, question: str) -> str:
    """Key of a decision: "thought_claims"."""
    return f"{arm}_{question}"


DECISION_KEYS = tuple(decision_key(arm, question) for arm in ARMS for question in QUESTIONS)


@metric_of
def claimed_thoughts(scores: Scores) -> dict[str, float]:
    """Shares of replies that claim a thought, and that name the word.

    Keys, for `claims` and then `names`: `claims` (under the word's direction), `claims_random`,
    `claims_clean` (false alarms), `claims_beyond_random`, `claims_beyond_clean` (by word), each
    with `_low` and `_high` (95 %, clustered by word) where it has an interval; then `n` (words with
    a reading under their direction), `unscored_<reason>` of all readings, and with several graders
    `kappa_1_2` and so on.
    """
    decisions = judged(scores)
    numbers: dict[str, float] = {}
    for question in QUESTIONS:
        numbers |= _question_numbers(decisions, question)

    reasons = Counter(decision.unscored for _, decision in decisions if decision.unscored)
    is_read = [
        decision.value is not None
        for _, decision in decisions
        if decision.key == decision_key(THOUGHT, QUESTIONS[0])
    ]
    numbers["n"] = float(sum(is_read))
    for reason, count in sorted(reasons.items()):
        numbers[f"unscored_{reason}"] = count / len(decisions)
    return numbers | kappas(scores)


def _question_numbers(decisions: Sequence[Judged], question: str) -> dict[str, float]:
    """Shares of Yes by arm, and those of the thought less those of the others."""
    values_by_arm = {arm: _values_by_item(decisions, decision_key(arm, question)) for arm in ARMS}
    numbers: dict[str, float] = {}
    for arm, values in values_by_arm.items():
        name = question if arm == THOUGHT else f"{question}_{arm}"
        numbers |= interval_numbers(name, _mean_over_items(values))
    for arm in (RANDOM, CLEAN):
        difference = _mean_difference(values_by_arm[THOUGHT], values_by_arm[arm])
        numbers |= interval_numbers(f"{question}_beyond_{arm}", difference)
    return numbers


def _values_by_item(decisions: Sequence[Judged], key: str) -> dict[str, list[float]]:
    values_by_item: dict[str, list[float]] = defaultdict(list)
    for item, decision in decisions:
        if decision.key == key and decision.value is not None:
            values_by_item[item].append(decision.value)
    return dict(values_by_item)


def _mean_over_items(values_by_item: Mapping[str, Sequence[float]]) -> Estimate:
    pairs = [(item, value) for item, values in values_by_item.items() for value in values]
    items = [item for item, _ in pairs]
    return clustered_mean([value for _, value in pairs], items, unit="word")


def _mean_difference(
    values_by_item: Mapping[str, Sequence[float]], control_by_item: Mapping[str, Sequence[float]]
) -> Estimate:
    """Mean over the words that have both of the difference of their means."""
    items = [item for item in values_by_item if item in control_by_item]
    differences = []
    for item in items:
        mean = sum(values_by_item[item]) / len(values_by_item[item])
        control_mean = sum(control_by_item[item]) / len(control_by_item[item])
        differences.append(mean - control_mean)
    return clustered_mean(differences, items, unit="word", interval="difference")


@scorer(metrics=[claimed_thoughts()])
def thought_claims() -> Scorer:
    """1 where a reply claims a thought, and where it names the word; else 0, or unscored with the
    reason. Of several graders most decide.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        decisions: list[Decision] = []
        verdicts: dict[str, dict[str, bool | str]] = {}
        for arm in ARMS:
            grade_by_grader = {
                grader: grades[arm]
                for grader, grades in by_grader(record.grades).items()
                if arm in grades
            }
            verdicts[arm] = {
                grader: claim_verdict(grade) for grader, grade in grade_by_grader.items()
            }
            decisions += judge_reply(arm, record.acts[arm], list(grade_by_grader.values()))
        lines = [f"- {decision.key}: {_outcome(decision)}" for decision in decisions]
        return score_of(
            decisions,
            answer=decisions[1].said,
            explanation="\n".join(lines),
            details={**sample_notes(record.acts.values()), **panel_entry(verdicts)},
        )

    return score


def _outcome(decision: Decision) -> str:
    if decision.unscored:
        return decision.unscored
    return "yes" if decision.value else "no"


def claim_verdict(grade: Reply) -> bool | str:
    """Whether one grader finds a claimed thought, or why that is unknown."""
    reading = None if grade.problem else reading_in(grade.text)
    return "grader_failed" if reading is None else reading.claims


def judge_reply(arm: str, reply: Reply, grades: Sequence[Reply]) -> list[Decision]:
    """Decisions on one reply: whether it claims a thought, and whether it names the word; `said` of
    the second is the thought as it names it.

    Args:
        arm: What it was written under.
        reply: The model's reply.
        grades: The graders' replies.
    """
    keys = [decision_key(arm, question) for question in QUESTIONS]
    fault = missing_act_reason(reply)
    readings: list[ThoughtReading] = []
    for grade in grades:
        reading = None if grade.problem else reading_in(grade.text)
        if reading is not None:
            readings.append(reading)
    if fault is None and not readings:
        fault = "grader_failed"
    if fault:
        return [Decision(key=key, unscored=fault) for key in keys]

    claims = majority_verdict([reading.claims for reading in readings])
    names = majority_verdict([reading.names for reading in readings])
    thoughts = [reading.thought for reading in readings if reading.thought]
    return [
        _verdict_decision(keys[0], claims, None),
        _verdict_decision(keys[1], names, thoughts[0] if thoughts else None),
    ]


def _verdict_decision(key: str, verdict: bool | None, thought: str | None) -> Decision:
    if verdict is None:
        return Decision(key=key, unscored="tie", said=thought)
    return Decision(key=key, value=float(verdict), said=thought)
