"""Check of a rewritten prompt: is it still the same task, and are the giveaways gone, or added?"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, decisions_of, observer_fault, score_of
from selfprobe.scorers.summary import Scores, cut_at, metric_of
from selfprobe.scorers.votes import kappas, most, panel_entry
from selfprobe.solvers.compare import Alike
from selfprobe.solvers.record import Record, Reply, by_grader
from selfprobe.text.parse import json_object

Arm = Literal["rewrite", "paraphrase"]
ARMS: tuple[Arm, ...] = ("rewrite", "paraphrase")
"""Names of the versions: without the features, and merely in other words."""

FAR = 0.3
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
    return _numbers([{d.key: d for d in decisions_of(sample.score)} for sample in scores]) | kappas(
        scores
    )


@scorer(metrics=[rewritten()])
def rewrite_check() -> Scorer:
    """1 for a version of the same task without the features, 0 where some are left; else unscored
    with the reason.

    Reason "same": nothing was changed. "other_task": the grader says so, or the two are not similar
    at all. With several graders the majority decides whether the task is the same, and for each
    feature whether it is left.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record, alike = state.store_as(Record), state.store_as(Alike)
        features, graders = state.metadata["features"], by_grader(record.grades)
        grades = {arm: {name: of[arm] for name, of in graders.items() if arm in of} for arm in ARMS}
        decisions = [
            check(
                arm,
                record.answers[arm],
                list(grades[arm].values()),
                original=state.metadata["last"],
                features=features,
                similarity=alike.similarity.get(arm, math.nan),
            )
            for arm in ARMS
        ]
        told = "\n".join(
            f"- {d.key}: {d.unscored or ('usable' if d.value else 'features left')}"
            for d in decisions
        )
        panel = panel_entry(
            {
                arm: {name: usable(reply, len(features)) for name, reply in grades[arm].items()}
                for arm in ARMS
            }
        )
        return score_of(
            decisions, answer=record.answers[ARMS[0]].text, explanation=told, details=panel
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
    known = None if math.isnan(similarity) else similarity
    fault = observer_fault(reply) or ("same" if _plain(reply.text) == _plain(original) else None)
    reading = fault or most_say(grades, len(features))
    if not isinstance(reading, str) and (not reading[0] or similarity < FAR):
        reading = "other_task"
    if isinstance(reading, str):
        return Decision(key=arm, unscored=reading, score=known)
    left = "; ".join(features[n - 1] for n in reading[1])
    return Decision(key=arm, value=float(not left), said=left or None, score=known)


def most_say(grades: Sequence[Reply], features: int) -> tuple[bool, list[int]] | str:
    """Whether the task is the same and which features are left, by most graders on each; or why
    that is unknown.
    """
    readings = [
        one for grade in grades if not grade.problem and (one := check_in(grade.text, features))
    ]
    if not readings:
        return "grader_failed"
    same = most([is_same for is_same, _ in readings])
    named = dict.fromkeys(n for _, numbers in readings for n in numbers)
    left = {n: most([n in numbers for _, numbers in readings]) for n in named}
    if same is None or (same and None in left.values() and True not in left.values()):
        return "tie"
    return same, [n for n, is_left in left.items() if is_left]


def usable(grade: Reply, features: int) -> bool | str:
    """Whether one grader says that the task is the same and no feature is left, or why that is
    unknown.
    """
    reading = most_say([grade], features)
    return reading if isinstance(reading, str) else reading[0] and not reading[1]


def check_in(text: str, features: int) -> tuple[bool, list[int]] | None:
    """A grader's {"same_task": …, "left": […]}, or None.

    >>> check_in('{"same_task": true, "left": [2]}', 2), check_in('{"same_task": true, "left": [3]}', 2)
    ((True, [2]), None)
    """
    found = json_object(text)
    if not found or set(found) != {"same_task", "left"}:
        return None
    same, left = found["same_task"], found["left"]
    if not isinstance(same, bool) or not isinstance(left, list):
        return None
    numbers = [n for n in left if type(n) is int and 1 <= n <= features]
    return (same, numbers) if len(numbers) == len(left) else None


def _plain(text: str) -> str:
    """Text as compared: white space and case do not count."""
    return " ".join(text.split()).casefold()


def _numbers(checks: Sequence[Mapping[str, Decision]]) -> dict[str, float]:
    """Numbers of `rewritten`, from decisions by key."""
    out: dict[str, float] = {}
    for arm in ARMS:
        values = [d.value for each in checks if (d := each[arm]).value is not None]
        out |= {f"{arm}_n": float(len(values))} | (
            {arm: sum(values) / len(values)} if values else {}
        )
        reasons = Counter(why for each in checks if (why := each[arm].unscored))
        out |= {f"{arm}_{why}": n / len(checks) for why, n in reasons.items()}
    return out | cut_at({"truncated": out.get("rewrite_truncated", 0.0)})


@metric_of
def usable_texts(scores: Scores) -> dict[str, float]:
    """Number of versions that can be used by arm (`cue_out_n`), and share of each reason why one
    cannot.
    """
    counts = Counter(
        f"{d.key}_{d.unscored or 'n'}" for one in scores for d in decisions_of(one.score)
    )
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
        made, about = state.store_as(Record).answers, state.metadata
        shown = {arm: added if arm == "cue_in" else len(about["cues"]) for arm in about["arms"]}
        decisions = [
            _judged(arm, made[arm], made.get(f"check {arm}"), state.input_text, n)
            for arm, n in shown.items()
        ]
        told = "\n".join(f"- {d.key}: {d.unscored or 'usable'}" for d in decisions)
        return score_of(
            decisions, answer=next((made[arm].text for arm in shown), None), explanation=told
        )

    return score


def _judged(arm: str, reply: Reply, grade: Reply | None, original: str, cues: int) -> Decision:
    """Decision on one version, by the reply of its checker.

    Args:
        arm: Name of the version: what the writer was to do.
        reply: The writer's reply.
        grade: The grader's reply; None where there was nothing to check.
        original: The message before.
        cues: Number of passages that the grader was shown.
    """
    fault = observer_fault(reply) or ("same" if _plain(reply.text) == _plain(original) else None)
    reading = fault or most_say([grade] if grade else [], cues)
    if isinstance(reading, str):
        return Decision(key=arm, unscored=reading)
    same, left = reading
    lacks = {"cue_out": ("cues_left", bool(left)), "cue_in": ("cues_missing", len(left) < cues)}
    why, wrong = lacks.get(arm, ("", False))
    unscored = "other_task" if not same else why if wrong else None
    return Decision(key=arm, value=None if unscored else 1.0, unscored=unscored)
