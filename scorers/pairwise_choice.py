"""Which of two texts does a model prefer, asked in both orders?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, score_of
from selfprobe.scorers.preference import (
    VERDICT,
    fault_of,
    first_token_shares,
    in_words,
    preference,
    reply_fault,
    unlisted,
    verdict,
)
from selfprobe.solvers.draw import draws_of
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import choice, words

ORDERS = ("shown", "swapped")
"""Names of the orders: text 1 as choice 1, and text 2 as choice 1."""

OPTIONS = ("1", "2")

_NAMED = re.compile(
    r"\b(?:choice|option|number|response|summary|story|statement|answer)\s*[:#]?\s*\W{0,2}([12])\b", re.I
)


@dataclass(frozen=True)
class OrderReading:
    """Reading of one order's replies."""

    p_first: float | None
    """P(choice 1) among choices 1 and 2; None where there is no answer."""
    read: Literal["logprobs", "draws"] | None
    """Source of the reading: token probabilities, or the share of sampled answers."""
    n: int
    """Number of draws that could be read."""
    mass: float | None
    """P(1) + P(2) as the first token."""
    fault: str | None
    """Reason why there is no answer."""


@scorer(metrics=[preference()])
def pairwise_choice() -> Scorer:
    """The preference averaged over both orders, so that position drops out (paper 004, §4.3, §5.1)."""

    async def score(state: TaskState, target: Target) -> Score:
        record, label = state.store_as(Record), state.metadata["label"]
        if not record.answers:
            silent = [verdict(key, None, label=label, reason="equal_texts") for key in (VERDICT, *ORDERS)]
            return score_of(silent, answer=None, explanation="not asked: both texts are the same")
        readings = {order: read(record.answers[order], draws_of(record, order)) for order in ORDERS}
        decisions = judge(readings, label=label, reasoned=any(r.reasoned for r in record.answers.values()))
        details = {
            "p_first": {k: r.p_first for k, r in readings.items() if r.p_first is not None},
            "read": {k: r.read for k, r in readings.items() if r.read},
            "mass": {k: r.mass for k, r in readings.items() if r.mass is not None},
        }
        explanation = explain(record, readings, decisions)
        return score_of(decisions, answer=decisions[0].said, explanation=explanation, details=details)

    return score


def p_first(reply: Reply) -> tuple[float, float] | None:
    """P(choice 1) of both choices, and their mass, from the first token's candidates; None where they do not show it.

    A choice that is not among the candidates is taken at its largest possible probability: the nearest to a tie that
    they allow. Where that equals the other's, nothing is known.
    """
    shares = first_token_shares(reply.first_token, OPTIONS)
    if shares is None or reply.first_token is None:
        return None
    one, two = shares["1"], shares["2"]
    most = unlisted(reply.first_token)
    if not (one and two) and most >= max(one, two):
        return None
    one, two = one or most, two or most
    return round(one / (one + two), 12), round(shares["1"] + shares["2"], 12)


def chosen(text: str) -> str | None:
    """Single choice that a reply names, "1" or "2", or None; also where it begins with the priming text.

    >>> chosen("Between Choice 1 and Choice 2, the more helpful response is Choice 2."), chosen("1 or 2?")
    ('2', None)
    """
    text = re.sub(r"^\W*between choice 1 and choice 2,", "", text, flags=re.IGNORECASE)
    named = {bare for word in words(text, limit=2000) if (bare := word.strip("()[]{}*_`'\"“”.,;:!?#")) in OPTIONS}
    if len(named) != 1:
        return None
    (one,) = named
    return one if choice(text, OPTIONS) == one or _NAMED.search(text) else None


def unsettled(reply: Reply) -> bool:
    """Whether a reply answers, but its first token does not show how surely: then it is drawn again."""
    return not reply.problem and p_first(reply) is None and chosen(reply.text) is not None


def read(reply: Reply, draws: Sequence[Reply]) -> OrderReading:
    """Reading of one order. A reply that is cut after its first token still has its token probabilities."""
    fault = reply_fault(reply)
    if fault in (None, "truncated") and (found := p_first(reply)) is not None:
        return OrderReading(found[0], "logprobs", 0, found[1], None)
    said = [choice for draw in draws if not draw.problem and (choice := chosen(draw.text)) is not None]
    if said:
        return OrderReading(said.count("1") / len(said), "draws", len(said), None, None)
    return OrderReading(None, None, 0, None, fault_of(fault, draws))


def judge(readings: dict[str, OrderReading], *, label: int | None, reasoned: bool) -> list[Decision]:
    """Verdict over both orders, then each order's alone, all as the number of the text.

    Paper: "take an average of the model's predicted probabilities" (§4.3). A pair with one unreadable order is
    unscored: one order alone has the position in it.
    """
    margins = {
        order: None if r.p_first is None else (r.p_first - 0.5) * (1 if order == "shown" else -1)
        for order, r in readings.items()
    }
    known = [m for m in margins.values() if m is not None]
    both = sum(known) / 2 if len(known) == 2 else None
    fault = next((r.fault for r in readings.values() if r.fault), None)
    single = [verdict(k, m, label=label, reason=readings[k].fault) for k, m in margins.items()]
    return [verdict(VERDICT, both, label=label, reason=fault, reasoned=reasoned), *single]


def explain(record: Record, readings: dict[str, OrderReading], decisions: Sequence[Decision]) -> str:
    """Verdict, the answer of each order and its source, for the log browser."""
    head = decisions[0]
    lines = [f"{head.unscored or f'prefers {in_words(head)}'}; label: {head.truth or 'none'}", ""]
    for order, r in readings.items():
        if r.p_first is None:
            how = f"unscored, {r.fault}"
        else:
            source = "token probabilities" if r.read == "logprobs" else f"{r.n} sampled answers"
            how = f"P(choice 1) = {r.p_first:.3f}, from {source}"
        lines.append(f"- {order}: {how}; reply: {record.answers[order].text[:200]!r}")
    return "\n".join(lines)
