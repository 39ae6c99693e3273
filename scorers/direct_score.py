"""Which of two texts, each scored alone, gets the higher score from 1 to 5, stated or expected (G-Eval)?"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import UNPARSED, Decision, score_of
from selfprobe.scorers.preference import (
    VERDICT,
    fault_of,
    first_token_shares,
    in_words,
    preference,
    reply_fault,
    verdict,
)
from selfprobe.solvers.draw import draws_of
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import json_value

TEXTS = ("text_1", "text_2")
LEVELS = ("1", "2", "3", "4", "5")

_SCORE = re.compile(r"(?<![\w.,/])([0-9]+(?:[.,][0-9]+)?)(?:\s?(?:/|out of|of)\s?5)?(?![\w/]|[.,]\d)", re.IGNORECASE)
_SCALE = re.compile(r"\b(?:from )?1 (?:to|-|–) 5\b|\b1[-–]5\b", re.IGNORECASE)


@dataclass(frozen=True)
class Rating:
    """Rating of one text, from its replies."""

    score: float | None
    """Score from 1 to 5; None where there is none."""
    read: Literal["logprobs", "draws", "text"] | None
    """Source of the score: token probabilities, the mean of sampled scores, or the written score."""
    mass: float | None = None
    """Probability of all five levels as the first token."""
    fault: str | None = None
    """Reason why there is no score."""


Rate = Callable[[Reply, Sequence[Reply]], Rating]


@scorer(metrics=[preference()])
def direct_score() -> Scorer:
    """The text with the higher score is preferred; equal scores are a tie (paper 004, §4.3)."""
    return _compared(direct)


def _compared(rate: Rate) -> Scorer:
    """The verdict on a pair from a rating of each text; the inside of `direct_score` and `g_eval_score`."""

    async def score(state: TaskState, target: Target) -> Score:
        record, label = state.store_as(Record), state.metadata["label"]
        if not record.answers:
            silent = [verdict(VERDICT, None, label=label, reason="equal_texts"), *map(unrated, TEXTS)]
            return score_of(silent, answer=None, explanation="not asked: both texts are the same")
        ratings = {text: rate(record.answers[text], draws_of(record, text)) for text in TEXTS}
        reasoned = any(reply.reasoned for reply in record.answers.values())
        decisions = judge(ratings, label=label, reasoned=reasoned)
        details = {
            "read": {k: r.read for k, r in ratings.items() if r.read},
            "mass": {k: r.mass for k, r in ratings.items() if r.mass is not None},
        }
        explanation = explain(record, ratings, decisions)
        return score_of(decisions, answer=decisions[0].said, explanation=explanation, details=details)

    return score


def direct(reply: Reply, draws: Sequence[Reply]) -> Rating:
    """The most probable level, or where the provider gives no token probabilities the written one.

    Paper: "predicted probabilities for possible answer choices" (§4.4). Two equally probable levels: the written one.
    """
    fault = reply_fault(reply)
    shares = first_token_shares(reply.first_token, LEVELS) if fault in (None, "truncated") else None
    if shares:
        best = [level for level, share in shares.items() if share == max(shares.values())]
        if len(best) == 1:
            return Rating(float(best[0]), "logprobs", sum(shares.values()))
    if fault:
        return Rating(None, None, fault=fault)
    stated = stated_score(reply.text)
    return Rating(None, None, fault=UNPARSED) if stated is None else Rating(float(stated), "text")


def stated_score(text: str) -> int | None:
    """The single whole score from 1 to 5 that a reply states, or None.

    >>> stated_score("Score: **4** out of 5"), stated_score("3.5"), stated_score("4 or 5"), stated_score("5/5.")
    (4, None, None, 5)
    """
    value = json_value(text, "score")
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 1 <= value <= 5 else None
    plain = _SCALE.sub("", text.replace("*", "").replace("_", " "))
    found = {match[1] for match in _SCORE.finditer(plain[:2000])}
    return int(found.pop()) if len(found) == 1 and found <= set(LEVELS) else None


def judge(ratings: Mapping[str, Rating], *, label: int | None, reasoned: bool) -> list[Decision]:
    """Verdict, then each text's score."""
    first, second = (ratings[text].score for text in TEXTS)
    margin = None if first is None or second is None else first - second
    fault = next((r.fault for r in ratings.values() if r.fault), None)
    scores = [
        unrated(key, rating.fault) if rating.score is None else Decision(key=key, said=f"{rating.score:.4g}")
        for key, rating in ratings.items()
    ]
    return [verdict(VERDICT, margin, label=label, reason=fault, reasoned=reasoned), *scores]


def unrated(key: str, reason: str | None = "equal_texts") -> Decision:
    """Rating of a text without a score."""
    return Decision(key=key, unscored=reason)


def explain(record: Record, ratings: Mapping[str, Rating], decisions: Sequence[Decision]) -> str:
    """Verdict, both scores and their sources, for the log browser."""
    head = decisions[0]
    lines = [f"{head.unscored or f'prefers {in_words(head)}'}; label: {head.truth or 'none'}", ""]
    sources = {"logprobs": "token probabilities", "draws": "sampled scores", "text": "the written score"}
    for key, rating in ratings.items():
        how = f"unscored, {rating.fault}"
        if rating.score is not None and rating.read is not None:
            how = f"{rating.score:.3f}, from {sources[rating.read]}"
        lines.append(f"- {key}: {how}; reply: {record.answers[key].text[:200]!r}")
    return "\n".join(lines)


@scorer(metrics=[preference()])
def g_eval_score() -> Scorer:
    """The text with the higher Σ s·p(s) is preferred (paper 004, §4.3; Liu et al. 2023, equation 1)."""
    return _compared(expected)


def expected(reply: Reply, draws: Sequence[Reply]) -> Rating:
    """Σ s·p(s) / Σ p(s) over the levels among the first token's candidates, else the mean of the drawn scores.

    A level that is not among the candidates is less probable than each of them, and counts as 0.
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
    """Whether a reply scores, but its first token does not show how surely: then it is drawn again."""
    if reply.problem or stated_score(reply.text) is None:
        return False
    return first_token_shares(reply.first_token, LEVELS) is None
