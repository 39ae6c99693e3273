"""How near does the target's first token come to the probability that the observer aimed at?"""

import math
from collections.abc import Mapping

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import UNPARSED, Decision, observer_fault, predictions, score_of
from selfprobe.scorers.summary import summary
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import json_value


@scorer(metrics=[summary("closeness")])
def probability_hit() -> Scorer:
    """One decision per level: 1 - |p - actual|."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        decisions = [judge(p, record.acts, record.answers[f"p{p:g}"]) for p in state.metadata["levels"]]
        told = [f"- {d.key}: {d.said or d.unscored}; {prompt_in(record.answers[d.key])!r}" for d in decisions]
        return score_of(decisions, answer=predictions(decisions), explanation="\n".join(told))

    return score


def judge(p: float, acts: Mapping[str, Reply], reply: Reply) -> Decision:
    """Decision on one level. `floor` is the bare topic's, `ceiling` the agreement of two readings of one prompt."""
    key = f"p{p:g}"
    actual, again, bare = (likeliest(acts.get(name)) for name in (key, f"{key} again", "bare"))
    fault = observer_fault(reply) or (UNPARSED if prompt_in(reply) is None else None)
    fault = fault or ("target_no_logprobs" if actual is None else None)
    if fault or actual is None:
        return Decision(key=key, unscored=fault, reasoned=reply.reasoned)
    return Decision(
        key=key,
        value=1 - abs(p - actual),
        said=f"{actual:.4f}",
        floor=None if bare is None else 1 - abs(p - bare),
        ceiling=None if again is None else 1 - abs(actual - again),
        reasoned=reply.reasoned,
    )


def prompt_in(reply: Reply) -> str | None:
    """Text in {"prompt": …}, or None."""
    said = None if reply.problem else json_value(reply.text, "prompt")
    return said.strip() if isinstance(said, str) and said.strip() else None


def likeliest(reply: Reply | None) -> float | None:
    """Probability of the likeliest first token; None without logprobs, or without a reply."""
    if reply is None or not reply.first_token:
        return None
    return min(1.0, math.exp(max(token.logprob for token in reply.first_token)))
