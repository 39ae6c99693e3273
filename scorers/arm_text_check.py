"""Is a prompt in other words still the same task, and are its giveaways gone, or there?"""

from collections import Counter

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, decisions_of, observer_fault, score_of
from selfprobe.scorers.rewrite_check import most_say, plain
from selfprobe.scorers.summary import Scores, metric_of
from selfprobe.solvers.record import Record, Reply


@metric_of
def usable_texts(scores: Scores) -> dict[str, float]:
    """Number of versions that can be used by arm (`cue_out_n`), and share of each reason why one cannot."""
    counts = Counter(f"{d.key}_{d.unscored or 'n'}" for one in scores for d in decisions_of(one.score))
    return {name: float(count) for name, count in counts.items()}


@scorer(metrics=[usable_texts()])
def arm_text_check(added: int) -> Scorer:
    """1 for a version of the same task that lacks the giveaways (of `cue_in`: has them); else unscored with the reason.

    A paraphrase may keep or lose them: it is what any rewording does.

    Args:
        added: Number of giveaways that `cue_in` adds.
    """

    async def score(state: TaskState, target: Target) -> Score:
        made, about = state.store_as(Record).answers, state.metadata
        shown = {arm: added if arm == "cue_in" else len(about["cues"]) for arm in about["arms"]}
        decisions = [judged(arm, made[arm], made.get(f"check {arm}"), state.input_text, n) for arm, n in shown.items()]
        told = "\n".join(f"- {d.key}: {d.unscored or 'usable'}" for d in decisions)
        return score_of(decisions, answer=next((made[arm].text for arm in shown), None), explanation=told)

    return score


def judged(arm: str, reply: Reply, grade: Reply | None, original: str, cues: int) -> Decision:
    """One version, by the reply of whom it was checked by.

    Args:
        arm: What the writer was to do.
        reply: The writer's.
        grade: The grader's; None where there was nothing to check.
        original: The message as it was.
        cues: Number of passages that the grader was shown.
    """
    fault = observer_fault(reply) or ("same" if plain(reply.text) == plain(original) else None)
    reading = fault or most_say([grade] if grade else [], cues)
    if isinstance(reading, str):
        return Decision(key=arm, unscored=reading)
    same, left = reading
    lacks = {"cue_out": ("cues_left", bool(left)), "cue_in": ("cues_missing", len(left) < cues)}
    why, wrong = lacks.get(arm, ("", False))
    unscored = "other_task" if not same else why if wrong else None
    return Decision(key=arm, value=None if unscored else 1.0, unscored=unscored)
