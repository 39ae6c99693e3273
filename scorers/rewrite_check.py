"""Check of a rewritten prompt: is it still the same task, and are the giveaways gone, or added?"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, decisions_of, observer_fault, score_of
from selfprobe.scorers.summary import Scores, cut_at, metric_of
from selfprobe.scorers.votes import kappas, majority_verdict, panel_entry
from selfprobe.solvers.compare import Alike
from selfprobe.solvers.record import Record, Reply, by_grader
from selfprobe.text.parse import json_object

Arm = Literal["rewrite", "paraphrase"]
ARMS: tuple[Arm, ...] = ("rewrite", "paraphrase")
"""Names of the versions: without the features, and merely in other words."""

MIN_VERSION_SIMILARITY = 0.3
"""Cosine similarity below which a version is another task, whatever the grader says; two prompts of
different topics have about 0.1 with the default embedder, and a reworded one 0.6 to 0.9.
"""


@metric_of
def rewritten(scores: Scores) -> dict[str, float]:
    """Shares of prompts by arm.

    Keys: `rewrite` and `paraphrase` (the features are gone and the task stays, of those that could
    be judged), `…_n`, and `…_<reason>` for each reason why a version is not usable, of all prompts;
    with several graders `kappa_1_2` and so on (see `kappas`).
    """
    decisions_by_arm = []
    for sample_score in scores:
        decisions = decisions_of(sample_score.score)
        decisions_by_arm.append({decision.key: decision for decision in decisions})
    return _rewriting_numbers(decisions_by_arm) | kappas(scores)


@scorer(metrics=[rewritten()])
def rewrite_check() -> Scorer:
    """1 for a version of the same task without the features, 0 where some are left; else unscored
    with the reason.

    Reason "same": nothing was changed. "other_task": the grader says so, or the two are not similar
    at all. With several graders the majority decides whether the task is the same, and for each
    feature whether it is left.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        versions = record.answers
        similarities = state.store_as(Alike).similarity
        features = state.metadata["features"]

        decisions: list[Decision] = []
        verdicts: dict[str, dict[str, bool | str]] = {}
        for arm in ARMS:
            grade_by_grader = {
                grader: grades[arm]
                for grader, grades in by_grader(record.grades).items()
                if arm in grades
            }
            verdicts[arm] = {
                grader: usable(grade, len(features)) for grader, grade in grade_by_grader.items()
            }
            decision = check(
                arm,
                versions[arm],
                list(grade_by_grader.values()),
                original=state.metadata["last"],
                features=features,
                similarity=similarities.get(arm, math.nan),
            )
            decisions.append(decision)

        decision_lines: list[str] = []
        for decision in decisions:
            usability = "usable" if decision.value else "features left"
            decision_lines.append(f"- {decision.key}: {decision.unscored or usability}")
        return score_of(
            decisions,
            answer=versions[ARMS[0]].text,
            explanation="\n".join(decision_lines),
            details=panel_entry(verdicts),
        )

    return score


def check(
    arm: Arm,
    reply: Reply,
    grades: Sequence[Reply],
    *,
    original: str,
    features: Sequence[str],
    similarity: float,
) -> Decision:
    """Decision on one version of a prompt; `said` are the features that are left, `score` is the
    similarity.

    Args:
        arm: Name of the version.
        reply: The writer's reply.
        grades: The graders' replies.
        original: The prompt's last user message.
        features: Features that were to be taken out.
        similarity: Cosine similarity of version and original; NaN where unknown.
    """
    known_similarity = None if math.isnan(similarity) else similarity
    reading = _version_fault(reply, original) or majority_reading(grades, len(features))
    if isinstance(reading, str):
        return Decision(key=arm, unscored=reading, score=known_similarity)

    same_task, left_numbers = reading
    if not same_task or similarity < MIN_VERSION_SIMILARITY:
        return Decision(key=arm, unscored="other_task", score=known_similarity)

    left_features = "; ".join(features[number - 1] for number in left_numbers)
    return Decision(
        key=arm,
        value=float(not left_features),
        said=left_features or None,
        score=known_similarity,
    )


def _version_fault(reply: Reply, original: str) -> str | None:
    """Reason why a writer's reply is no new version of the original, or None."""
    fault = observer_fault(reply)
    if fault is None and _plain(reply.text) == _plain(original):
        return "same"
    return fault


def majority_reading(grades: Sequence[Reply], feature_count: int) -> tuple[bool, list[int]] | str:
    """Whether the task is the same and which features are left, by most graders on each; or why
    that is unknown.
    """
    readings: list[tuple[bool, list[int]]] = []
    for grade in grades:
        reading = None if grade.problem else check_in(grade.text, feature_count)
        if reading is not None:
            readings.append(reading)
    if not readings:
        return "grader_failed"

    same_task = majority_verdict([is_same_task for is_same_task, _ in readings])
    named_numbers = dict.fromkeys(number for _, left_numbers in readings for number in left_numbers)
    left_numbers: list[int] = []
    has_tie = False
    for number in named_numbers:
        is_left = majority_verdict([number in left_of_grader for _, left_of_grader in readings])
        if is_left:
            left_numbers.append(number)
        has_tie = has_tie or is_left is None

    if same_task is None:
        return "tie"
    if same_task and has_tie and not left_numbers:
        return "tie"
    return same_task, left_numbers


def usable(grade: Reply, feature_count: int) -> bool | str:
    """Whether one grader says that the task is the same and no feature is left, or why that is
    unknown.
    """
    reading = majority_reading([grade], feature_count)
    if isinstance(reading, str):
        return reading
    same_task, left_numbers = reading
    return same_task and not left_numbers


def check_in(text: str, feature_count: int) -> tuple[bool, list[int]] | None:
    """A grader's {"same_task": …, "left": […]}, or None.

    >>> check_in('{"same_task": true, "left": [2]}', 2)
    (True, [2])
    >>> check_in('{"same_task": true, "left": [3]}', 2) is None
    True
    """
    answer = json_object(text)
    if not answer or set(answer) != {"same_task", "left"}:
        return None
    same_task = answer["same_task"]
    left_numbers = answer["left"]
    if not isinstance(same_task, bool) or not isinstance(left_numbers, list):
        return None
    for number in left_numbers:
        if type(number) is not int or not 1 <= number <= feature_count:
            return None
    return same_task, left_numbers


def _plain(text: str) -> str:
    """Text as compared: white space and case do not count."""
    return " ".join(text.split()).casefold()


def _rewriting_numbers(checks: Sequence[Mapping[str, Decision]]) -> dict[str, float]:
    """Numbers of `rewritten`, from decisions by key."""
    numbers: dict[str, float] = {}
    for arm in ARMS:
        arm_decisions = [decision_by_arm[arm] for decision_by_arm in checks]
        values = [decision.value for decision in arm_decisions if decision.value is not None]
        numbers[f"{arm}_n"] = float(len(values))
        if values:
            numbers[arm] = sum(values) / len(values)

        reason_counts = Counter(
            decision.unscored for decision in arm_decisions if decision.unscored
        )
        for reason, count in reason_counts.items():
            numbers[f"{arm}_{reason}"] = count / len(checks)

    return numbers | cut_at({"truncated": numbers.get("rewrite_truncated", 0.0)})


@metric_of
def usable_texts(scores: Scores) -> dict[str, float]:
    """Number of versions that can be used by arm (`cue_out_n`), and share of each reason why one
    cannot.
    """
    counts: Counter[str] = Counter()
    for sample_score in scores:
        for decision in decisions_of(sample_score.score):
            counts[f"{decision.key}_{decision.unscored or 'n'}"] += 1
    return {name: float(count) for name, count in counts.items()}


@scorer(metrics=[usable_texts()])
def arm_text_check(added: int) -> Scorer:
    """1 for a version of the same task that lacks the giveaways (of `cue_in`: has them); else
    unscored with the reason.

    A paraphrase may keep or lose them: it is what any rewording does.

    Args:
        added: Number of giveaways that `cue_in` adds.
    """

    async def score(state: TaskState, target: Target) -> Score:
        replies = state.store_as(Record).answers
        arms = state.metadata["arms"]
        prompt_cue_count = len(state.metadata["cues"])

        decisions: list[Decision] = []
        for arm in arms:
            decision = _judge_arm_text(
                arm,
                replies[arm],
                replies.get(f"check {arm}"),
                original=state.input_text,
                cue_count=added if arm == "cue_in" else prompt_cue_count,
            )
            decisions.append(decision)

        decision_lines = [
            f"- {decision.key}: {decision.unscored or 'usable'}" for decision in decisions
        ]
        return score_of(
            decisions,
            answer=replies[arms[0]].text if arms else None,
            explanation="\n".join(decision_lines),
        )

    return score


def _judge_arm_text(
    arm: str, reply: Reply, grade: Reply | None, *, original: str, cue_count: int
) -> Decision:
    """Decision on one version, by the reply of its checker.

    Args:
        arm: Name of the version: what the writer was to do.
        reply: The writer's reply.
        grade: The grader's reply; None where there was nothing to check.
        original: The message before.
        cue_count: Number of passages that the grader was shown.
    """
    grades = [] if grade is None else [grade]
    reading = _version_fault(reply, original) or majority_reading(grades, cue_count)
    if isinstance(reading, str):
        return Decision(key=arm, unscored=reading)

    same_task, left_numbers = reading
    if not same_task:
        return Decision(key=arm, unscored="other_task")
    if arm == "cue_out" and left_numbers:
        return Decision(key=arm, unscored="cues_left")
    if arm == "cue_in" and len(left_numbers) < cue_count:
        return Decision(key=arm, unscored="cues_missing")
    return Decision(key=arm, value=1.0)
