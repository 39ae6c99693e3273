"""Which of two texts gets the higher expected score, over the probabilities of all scores?"""

from collections.abc import Sequence

from inspect_ai.scorer import Scorer, scorer

from selfprobe.scorers.direct_score import LEVELS, Rating, compared, stated_score
from selfprobe.scorers.preference import fault_of, first_token_shares, preference, reply_fault
from selfprobe.solvers.record import Reply


@scorer(metrics=[preference()])
def g_eval_score() -> Scorer:
    """The text with the higher Σ s·p(s) is preferred (paper 004, §4.3; Liu et al. 2023, equation 1)."""
    return compared(expected)


def expected(reply: Reply, draws: Sequence[Reply]) -> Rating:
    """Σ s·p(s) / Σ p(s) over the levels among the first token's candidates, else the mean of the drawn scores.

    A level that is not among the candidates has less than each of them, and counts nothing.
    """
    fault = reply_fault(reply)
    shares = first_token_shares(reply.first_token, LEVELS) if fault in (None, "truncated") else None
    if shares:
        mass = sum(shares.values())
        return Rating(sum(int(level) * share for level, share in shares.items()) / mass, "logprobs", mass)
    scores = [stated for draw in draws if not draw.problem and (stated := stated_score(draw.text)) is not None]
    if scores:
        return Rating(sum(scores) / len(scores), "draws")
    return Rating(None, None, fault=fault_of(fault, draws))


def unsettled(reply: Reply) -> bool:
    """Whether a reply scores, but its first token does not tell how surely: then it is drawn again."""
    if reply.problem or stated_score(reply.text) is None:
        return False
    return first_token_shares(reply.first_token, LEVELS) is None
