"""Verdicts on which of two texts is better, by each method of paper 004, ties, and their one
metric.

A tie is a verdict of its own: it counts half in accuracy, as in AUROC, and as a miss of the true
label in F1.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from inspect_ai.scorer import SampleScore, Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import UNPARSED, Decision, decisions_of, observer_fault, score_of
from selfprobe.scorers.summary import Scores, metric_of, summarise
from selfprobe.solvers.apply_probe import ProbeReading
from selfprobe.solvers.draw import draws_of
from selfprobe.solvers.record import Record, Reply, TokenLogprob
from selfprobe.stats.estimate import Estimate, auroc, bootstrap, clustered_mean, weighted_f1
from selfprobe.text.parse import choice, json_value, words

Said = Literal["1", "2", "tie"]

VERDICT = "preferred"
"""Key of the decision that counts; others (one order, one text, the model's own answer) are only
shown.
"""

_MARKS = "▁Ġ "  # tokenizers' marks of a leading space


@dataclass(frozen=True)
class Item:
    """Verdict on one pair, and its context."""

    decisions: Mapping[str, Decision]
    group: str
    """Source question: the unit that is resampled, as pairs of one question are alike."""
    details: Mapping[str, Any]
    """Metadata of the score."""

    @property
    def verdict(self) -> Decision:
        return self.decisions[VERDICT]


def _called(margin: float) -> Said:
    """Verdict of a margin: above 0 text 1. The slack keeps a tie unchanged when x and 1 - x are
    averaged.
    """
    return "tie" if abs(margin) <= 1e-9 else "1" if margin > 0 else "2"


def preference_decision(
    key: str, margin: float | None, *, label: int | None, reason: str | None = None, **more: bool
) -> Decision:
    """A preference as a decision: 1 right, 0 wrong, .5 for a tie; no value without a label.

    Args:
        key: `VERDICT`, or the key of a decision that is only shown.
        margin: Above 0 text 1 is preferred, below 0 text 2; None where there is no verdict.
        label: The better text; None where unknown.
        reason: Reason why there is no verdict.
        more: Further fields of the decision: `reasoned`.
    """
    assert (margin is None) == (reason is not None), "a verdict or a reason why there is none"
    said = None if margin is None else _called(margin)
    value = (
        None
        if said is None or label is None
        else 0.5
        if said == "tie"
        else float(said == str(label))
    )
    return Decision(
        key=key,
        value=value,
        unscored=reason,
        truth=None if label is None else str(label),
        said=said,
        chance=0.5,
        constant=None if label is None else str(label),
        score=margin,
        reasoned=more.get("reasoned", False),
    )


def in_words(decision: Decision) -> str:
    """Preference of a verdict, in words."""
    return "neither (a tie)" if decision.said == "tie" else f"text {decision.said}"


def reply_fault(reply: Reply) -> str | None:
    """Reason why a reply cannot be used, or None; "too_long" where the pair did not fit the model's
    context.
    """
    return "too_long" if reply.stop_reason == "model_length" else observer_fault(reply)


def unread_reason(first: str | None, draws: Sequence[Reply]) -> str:
    """Reason why neither the first reply nor its draws could be read."""
    if draws:
        first = next((fault for draw in draws if (fault := observer_fault(draw))), None)
    return first or UNPARSED


def first_token_shares(
    candidates: Sequence[TokenLogprob] | None, options: Sequence[str]
) -> dict[str, float] | None:
    """P(option) among the candidates for the first token; a leading space does not count. None
    without any.
    """
    found = dict.fromkeys(options, 0.0)
    for candidate in candidates or []:
        if (bare := candidate.token.strip().lstrip(_MARKS)) in found:
            found[bare] += math.exp(candidate.logprob)
    return found if any(found.values()) else None


def unlisted(candidates: Sequence[TokenLogprob]) -> float:
    """Largest possible probability of a token outside the candidates: the last one's share, or what
    is left.
    """
    listed = [math.exp(c.logprob) for c in candidates]
    return max(0.0, min(min(listed), 1 - sum(listed)))


@metric_of
def preference(scores: Scores) -> dict[str, float]:
    """Numbers of a method over all pairs; intervals are clustered by source question, what is
    undefined is left out.

    Keys: `accuracy` (a tie counts half), `f1` (weighted by label, as the paper's; a tie is a miss),
    `auroc` of the margin, `tie_rate` and `decided_accuracy` (without ties), each with `_low`,
    `_high`; `baseline_*` and `skill` as in `summary`; `n` verdicts with a label, `pairs` in all,
    `questions` they come from; `unscored`, `unscored_<reason>` (shares of pairs); `worst_case`,
    `best_case`. Where both orders were shown: `said_1`, `said_2` (share of single orders that take
    choice 1 or 2), `position_bias` (how far these are from equal: 0 none, .5 always the same),
    `consistency` (share of pairs whose two orders prefer the same text, of those where neither is a
    tie), `one_order_accuracy`, and `one_order_calibrated_accuracy`: the same without labels' help,
    less the median log-odds. Where answers were read: `from_logprobs` (share of readings from token
    probabilities, the others from draws) and `mass` (mean probability of all options). For a probe:
    `own_accuracy`, `own_auroc`, the model's own answers.
    """
    return preference_numbers(judged_pairs(scores))


def judged_pairs(scores: Sequence[SampleScore]) -> list[Item]:
    """The pairs of every sample and epoch."""
    return [
        Item(
            decisions={d.key: d for d in decisions_of(sample.score)},
            group=str((sample.sample_metadata or {}).get("group", sample.sample_id)),
            details=sample.score.metadata or {},
        )
        for sample in scores
    ]


def preference_numbers(found: Sequence[Item]) -> dict[str, float]:
    """Numbers of `preference`, from items."""
    out = summarise([(item.group, item.verdict) for item in found], "accuracy")
    out |= {"pairs": len(found), "questions": len({item.group for item in found})}
    said = [item for item in found if item.verdict.said is not None]
    if said:
        out |= _mean("tie_rate", [float(item.verdict.said == "tie") for item in said], said)
    decided = [
        item for item in said if item.verdict.said != "tie" and item.verdict.value is not None
    ]
    out |= _mean("decided_accuracy", [item.verdict.value for item in decided], decided)
    out |= _ranked("", VERDICT, found) | _positions(found) | _readings(found)
    if any("own" in item.decisions for item in found):
        own = [item for item in found if item.decisions["own"].value is not None]
        out |= _mean("own_accuracy", [item.decisions["own"].value for item in own], own) | _ranked(
            "own_", "own", found
        )
    return out


def _ranked(prefix: str, key: str, found: Sequence[Item]) -> dict[str, float]:
    """F1 of the verdict and AUROC of a decision's margins; AUROC needs both labels and margins that
    differ.
    """
    labelled = [item for item in found if item.decisions[key].value is not None]
    if not labelled:
        return {}
    truth = np.array([int(item.decisions[key].truth or 0) for item in labelled])
    said = np.array([{"1": 1, "2": 2}.get(item.decisions[key].said or "", 0) for item in labelled])
    margins = np.array([item.decisions[key].score for item in labelled], dtype=float)
    groups = np.array([item.group for item in labelled])
    rng, out = np.random.default_rng(0), dict[str, float]()
    if not prefix:
        out |= _keys(
            "f1", bootstrap(weighted_f1, truth, said, clusters=groups, rng=rng, unit="question")
        )
    if len(set(truth)) == 2 and np.ptp(margins) > 1e-9:
        out |= _keys(
            f"{prefix}auroc",
            bootstrap(auroc, truth == 1, margins, clusters=groups, rng=rng, unit="question"),
        )
    return out


def _positions(found: Sequence[Item]) -> dict[str, float]:
    """Effects of the order alone, from pairs that were read in both orders."""
    both = [item for item in found if len(item.details.get("p_first", {})) == 2]
    if not both:
        return {}
    p = np.array(
        [[item.details["p_first"][order] for order in ("shown", "swapped")] for item in both]
    )
    takes_first = np.where(np.abs(p - 0.5) <= 1e-9, 0.5, p > 0.5)
    out = _mean("said_1", takes_first.mean(axis=1), both)
    out |= {"said_2": 1 - out["said_1"], "position_bias": abs(out["said_1"] - 0.5)}
    decided = [i for i, pair in enumerate(takes_first) if 0.5 not in pair]
    agree = [float(takes_first[i, 0] != takes_first[i, 1]) for i in decided]
    out |= _mean("consistency", agree, [both[i] for i in decided])
    return out | _one_order(
        [item for item in both if item.verdict.truth], p[[bool(i.verdict.truth) for i in both], 0]
    )


def _one_order(found: Sequence[Item], p: npt.NDArray[np.float64]) -> dict[str, float]:
    """Paper 004: silent on calibration without a second order. Here: the log-odds less their median
    over the run.
    """
    if not found:
        return {}
    clipped = np.clip(p, 1e-12, 1 - 1e-12)
    odds = np.log(clipped) - np.log1p(-clipped)
    truth = np.array([1 if item.verdict.truth == "1" else -1 for item in found])
    out: dict[str, float] = {}
    for name, margin in (("one_order", odds), ("one_order_calibrated", odds - np.median(odds))):
        signs = np.where(np.abs(margin) <= 1e-9, 0.0, np.sign(margin))
        out |= _mean(f"{name}_accuracy", 0.5 + truth * signs / 2, found)
    return out


def _readings(found: Sequence[Item]) -> dict[str, float]:
    read = [how for item in found for how in item.details.get("read", {}).values()]
    mass = [share for item in found for share in item.details.get("mass", {}).values()]
    out = {"from_logprobs": float(np.mean([how == "logprobs" for how in read]))} if read else {}
    return out | ({"mass": float(np.mean(mass))} if mass else {})


def _mean(
    name: str, values: Sequence[float | None] | npt.NDArray[np.float64], of: Sequence[Item]
) -> dict[str, float]:
    if not len(of):
        return {}
    numbers, groups = np.array(values, dtype=float), np.array([item.group for item in of])
    return _keys(name, clustered_mean(numbers, groups, unit="question"))


def _keys(name: str, estimate: Estimate) -> dict[str, float]:
    ends = {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return {key: value for key, value in ends.items() if not math.isnan(value)}


ORDERS = ("shown", "swapped")
"""Names of the orders: text 1 as choice 1, and text 2 as choice 1."""

OPTIONS = ("1", "2")

_NAMED = re.compile(
    r"\b(?:choice|option|number|response|summary|story|statement|answer)\s*[:#]?\s*\W{0,2}([12])\b",
    re.I,
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
            silent = [
                preference_decision(key, None, label=label, reason="equal_texts")
                for key in (VERDICT, *ORDERS)
            ]
            return score_of(silent, answer=None, explanation="not asked: both texts are the same")
        readings = {
            order: read_order(record.answers[order], draws_of(record, order)) for order in ORDERS
        }
        decisions = judge_orders(
            readings, label=label, reasoned=any(r.reasoned for r in record.answers.values())
        )
        details = {
            "p_first": {k: r.p_first for k, r in readings.items() if r.p_first is not None},
            "read": {k: r.read for k, r in readings.items() if r.read},
            "mass": {k: r.mass for k, r in readings.items() if r.mass is not None},
        }
        explanation = _explain_orders(record, readings, decisions)
        return score_of(
            decisions, answer=decisions[0].said, explanation=explanation, details=details
        )

    return score


def p_first(reply: Reply) -> tuple[float, float] | None:
    """P(choice 1) of both choices, and their mass, from the first token's candidates; None where
    they do not show it.

    A choice that is not among the candidates is taken at its largest possible probability: the
    nearest to a tie that they allow. Where that equals the other's, nothing is known.
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


def named_choice(text: str) -> str | None:
    """Single choice that a reply names, "1" or "2", or None; also where it begins with the priming
    text.

    >>> named_choice("Between Choice 1 and Choice 2, the more helpful response is Choice 2."), named_choice("1 or 2?")
    ('2', None)
    """
    text = re.sub(r"^\W*between choice 1 and choice 2,", "", text, flags=re.IGNORECASE)
    named = {
        bare
        for word in words(text, limit=2000)
        if (bare := word.strip("()[]{}*_`'\"“”.,;:!?#")) in OPTIONS
    }
    if len(named) != 1:
        return None
    (one,) = named
    return one if choice(text, OPTIONS) == one or _NAMED.search(text) else None


def unsettled_choice(reply: Reply) -> bool:
    """Whether a reply answers, but its first token does not show how surely: then it is drawn
    again.
    """
    return not reply.problem and p_first(reply) is None and named_choice(reply.text) is not None


def read_order(reply: Reply, draws: Sequence[Reply]) -> OrderReading:
    """Reading of one order. A reply that is cut after its first token still has its token
    probabilities.
    """
    fault = reply_fault(reply)
    if fault in (None, "truncated") and (found := p_first(reply)) is not None:
        return OrderReading(found[0], "logprobs", 0, found[1], None)
    said = [
        choice
        for draw in draws
        if not draw.problem and (choice := named_choice(draw.text)) is not None
    ]
    if said:
        return OrderReading(said.count("1") / len(said), "draws", len(said), None, None)
    return OrderReading(None, None, 0, None, unread_reason(fault, draws))


def judge_orders(
    readings: dict[str, OrderReading], *, label: int | None, reasoned: bool
) -> list[Decision]:
    """Verdict over both orders, then each order's alone, all as the number of the text.

    Paper: "take an average of the model's predicted probabilities" (§4.3). A pair with one
    unreadable order is unscored: one order alone has the position in it.
    """
    margins = {
        order: None if r.p_first is None else (r.p_first - 0.5) * (1 if order == "shown" else -1)
        for order, r in readings.items()
    }
    known = [m for m in margins.values() if m is not None]
    both = sum(known) / 2 if len(known) == 2 else None
    fault = next((r.fault for r in readings.values() if r.fault), None)
    single = [
        preference_decision(k, m, label=label, reason=readings[k].fault) for k, m in margins.items()
    ]
    return [
        preference_decision(VERDICT, both, label=label, reason=fault, reasoned=reasoned),
        *single,
    ]


def _explain_orders(
    record: Record, readings: dict[str, OrderReading], decisions: Sequence[Decision]
) -> str:
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


TEXTS = ("text_1", "text_2")
LEVELS = ("1", "2", "3", "4", "5")

_SCORE = re.compile(
    r"(?<![\w.,/])([0-9]+(?:[.,][0-9]+)?)(?:\s?(?:/|out of|of)\s?5)?(?![\w/]|[.,]\d)", re.IGNORECASE
)
_SCALE = re.compile(r"\b(?:from )?1 (?:to|-|–) 5\b|\b1[-–]5\b", re.IGNORECASE)


@dataclass(frozen=True)
class Rating:
    """Rating of one text, from its replies."""

    score: float | None
    """Score from 1 to 5; None where there is none."""
    read: Literal["logprobs", "draws", "text"] | None
    """Source of the score: token probabilities, the mean of sampled scores, or the written score.
    """
    mass: float | None = None
    """Probability of all five levels as the first token."""
    fault: str | None = None
    """Reason why there is no score."""


Rate = Callable[[Reply, Sequence[Reply]], Rating]


@scorer(metrics=[preference()])
def direct_score() -> Scorer:
    """The text with the higher score is preferred; equal scores are a tie (paper 004, §4.3)."""
    return _rated(direct)


def _rated(rate: Rate) -> Scorer:
    """The verdict on a pair from a rating of each text; the inside of `direct_score` and
    `g_eval_score`.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record, label = state.store_as(Record), state.metadata["label"]
        if not record.answers:
            silent = [
                preference_decision(VERDICT, None, label=label, reason="equal_texts"),
                *map(_unrated, TEXTS),
            ]
            return score_of(silent, answer=None, explanation="not asked: both texts are the same")
        ratings = {text: rate(record.answers[text], draws_of(record, text)) for text in TEXTS}
        reasoned = any(reply.reasoned for reply in record.answers.values())
        decisions = judge_ratings(ratings, label=label, reasoned=reasoned)
        details = {
            "read": {k: r.read for k, r in ratings.items() if r.read},
            "mass": {k: r.mass for k, r in ratings.items() if r.mass is not None},
        }
        explanation = _explain_ratings(record, ratings, decisions)
        return score_of(
            decisions, answer=decisions[0].said, explanation=explanation, details=details
        )

    return score


def direct(reply: Reply, draws: Sequence[Reply]) -> Rating:
    """The most probable level, or where the provider gives no token probabilities the written one.

    Paper: "predicted probabilities for possible answer choices" (§4.4). Two equally probable
    levels: the written one.
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


def judge_ratings(
    ratings: Mapping[str, Rating], *, label: int | None, reasoned: bool
) -> list[Decision]:
    """Verdict, then each text's score."""
    first, second = (ratings[text].score for text in TEXTS)
    margin = None if first is None or second is None else first - second
    fault = next((r.fault for r in ratings.values() if r.fault), None)
    scores = [
        _unrated(key, rating.fault)
        if rating.score is None
        else Decision(key=key, said=f"{rating.score:.4g}")
        for key, rating in ratings.items()
    ]
    return [
        preference_decision(VERDICT, margin, label=label, reason=fault, reasoned=reasoned),
        *scores,
    ]


def _unrated(key: str, reason: str | None = "equal_texts") -> Decision:
    """Rating of a text without a score."""
    return Decision(key=key, unscored=reason)


def _explain_ratings(
    record: Record, ratings: Mapping[str, Rating], decisions: Sequence[Decision]
) -> str:
    """Verdict, both scores and their sources, for the log browser."""
    head = decisions[0]
    lines = [f"{head.unscored or f'prefers {in_words(head)}'}; label: {head.truth or 'none'}", ""]
    sources = {
        "logprobs": "token probabilities",
        "draws": "sampled scores",
        "text": "the written score",
    }
    for key, rating in ratings.items():
        how = f"unscored, {rating.fault}"
        if rating.score is not None and rating.read is not None:
            how = f"{rating.score:.3f}, from {sources[rating.read]}"
        lines.append(f"- {key}: {how}; reply: {record.answers[key].text[:200]!r}")
    return "\n".join(lines)


@scorer(metrics=[preference()])
def g_eval_score() -> Scorer:
    """The text with the higher Σ s·p(s) is preferred (paper 004, §4.3; Liu et al. 2023, equation
    1).
    """
    return _rated(expected)


def expected(reply: Reply, draws: Sequence[Reply]) -> Rating:
    """Σ s·p(s) / Σ p(s) over the levels among the first token's candidates, else the mean of the
    drawn scores.

    A level that is not among the candidates is less probable than each of them, and counts as 0.
    """
    fault = reply_fault(reply)
    shares = first_token_shares(reply.first_token, LEVELS) if fault in (None, "truncated") else None
    if shares:
        mass = sum(shares.values())
        return Rating(
            sum(int(level) * share for level, share in shares.items()) / mass, "logprobs", mass
        )
    scores = [
        stated
        for draw in draws
        if not draw.problem and (stated := stated_score(draw.text)) is not None
    ]
    if scores:
        return Rating(sum(scores) / len(scores), "draws")
    return Rating(None, None, fault=unread_reason(fault, draws))


def unsettled_rating(reply: Reply) -> bool:
    """Whether a reply scores, but its first token does not show how surely: then it is drawn again."""
    if reply.problem or stated_score(reply.text) is None:
        return False
    return first_token_shares(reply.first_token, LEVELS) is None


OWN = "own"
"""Key of the model's own answer, from the same passes."""


@scorer(metrics=[preference()])
def preference_probe_reading() -> Scorer:
    """Preferred text by the side of the probe's boundary (paper 004, §3), and the model's own
    answer (§4.3).
    """

    async def score(state: TaskState, target: Target) -> Score:
        reading = state.store_as(ProbeReading)
        decisions = judge_reading(reading, label=state.metadata["label"])
        return score_of(
            decisions, answer=decisions[0].said, explanation=_explain_reading(reading, decisions)
        )

    return score


def judge_reading(reading: ProbeReading, *, label: int | None) -> list[Decision]:
    """Verdict of the probe, then the model's own answer; both or neither could be read."""
    own = None if reading.own_answer is None else reading.own_answer - 0.5
    reason = None
    if reading.score is None or own is None:
        # "too long: 9000 tokens, the context is 8192" is counted as too_long.
        reason = (reading.reason or "not_read").partition(":")[0].replace(" ", "_")
    margins = {VERDICT: reading.score, OWN: own}
    return [
        preference_decision(key, None if reason else m, label=label, reason=reason)
        for key, m in margins.items()
    ]


def _explain_reading(reading: ProbeReading, decisions: list[Decision]) -> str:
    """Both verdicts, for the log browser."""
    head, own = decisions
    if head.unscored or reading.score is None or reading.own_answer is None:
        return f"unscored, {reading.reason or 'the probe was not applied'}"
    return (
        f"the probe prefers {in_words(head)} "
        f"(score {reading.score:+.4g}; above 0 is text 1); label: {head.truth or 'none'}\n"
        f"the model's own answer: {'a tie' if own.said == 'tie' else f'text {own.said}'} "
        f"(P(text 1) = {reading.own_answer:.3f})"
    )
