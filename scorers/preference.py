"""Verdicts on which of two texts is better, by each method of the latent-preference paper, ties,
and their one metric.

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
from selfprobe.stats.estimate import (
    Estimate,
    auroc,
    bootstrap,
    clustered_mean,
    interval_numbers,
    weighted_f1,
)
from selfprobe.text.parse import choice, json_value, words

Said = Literal["1", "2", "tie"]

VERDICT = "preferred"
"""Key of the decision that counts; others (one order, one text, the model's own answer) are only
shown.
"""

OWN = "own"
"""Key of the probed model's own answer, from the same passes."""

EQUAL_TEXTS = "not asked: both texts are the same"

_LEADING_SPACE_MARKS = "▁Ġ "  # tokenizers' marks of a leading space


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


def _preferred_text(margin: float) -> Said:
    """Verdict of a margin: above 0 text 1. The slack keeps a tie unchanged when x and 1 - x are
    averaged.
    """
    if abs(margin) <= 1e-9:
        return "tie"
    return "1" if margin > 0 else "2"


def preference_decision(
    key: str,
    margin: float | None,
    *,
    label: int | None,
    reason: str | None = None,
    reasoned: bool = False,
) -> Decision:
    """A preference as a decision: 1 right, 0 wrong, .5 for a tie; no value without a label.

    Args:
        key: `VERDICT`, or the key of a decision that is only shown.
        margin: Above 0 text 1 is preferred, below 0 text 2; None where there is no verdict.
        label: The better text; None where unknown.
        reason: Reason why there is no verdict.
        reasoned: See `Decision`.
    """
    assert (margin is None) == (reason is not None), "a verdict or a reason why there is none"
    better_text = None if label is None else str(label)
    preferred_text = None if margin is None else _preferred_text(margin)

    value: float | None = None
    if better_text is not None and preferred_text is not None:
        value = 0.5 if preferred_text == "tie" else float(preferred_text == better_text)

    return Decision(
        key=key,
        value=value,
        unscored=reason,
        truth=better_text,
        said=preferred_text,
        chance=0.5,
        constant=better_text,
        score=margin,
        reasoned=reasoned,
    )


def preference_in_words(decision: Decision) -> str:
    """Preference of a verdict, in words."""
    return "neither (a tie)" if decision.said == "tie" else f"text {decision.said}"


def reply_fault(reply: Reply) -> str | None:
    """Reason why a reply cannot be used, or None; "too_long" where the pair did not fit the model's
    context.
    """
    return "too_long" if reply.stop_reason == "model_length" else observer_fault(reply)


def unread_reason(reply_reason: str | None, draws: Sequence[Reply]) -> str:
    """Reason why neither the first reply nor its draws could be read."""
    if not draws:
        return reply_reason or UNPARSED
    for draw in draws:
        draw_fault = observer_fault(draw)
        if draw_fault:
            return draw_fault
    return UNPARSED


def first_token_shares(
    candidates: Sequence[TokenLogprob] | None, options: Sequence[str]
) -> dict[str, float] | None:
    """P(option) among the candidates for the first token; a leading space does not count. None
    without any.
    """
    shares = dict.fromkeys(options, 0.0)
    for candidate in candidates or []:
        token = candidate.token.strip().lstrip(_LEADING_SPACE_MARKS)
        if token in shares:
            shares[token] += math.exp(candidate.logprob)
    return shares if any(shares.values()) else None


def largest_unlisted_share(candidates: Sequence[TokenLogprob]) -> float:
    """Largest possible probability of a token outside the candidates: the last one's share, or what
    is left.
    """
    listed_shares = [math.exp(candidate.logprob) for candidate in candidates]
    left_share = 1 - sum(listed_shares)
    return max(0.0, min(min(listed_shares), left_share))


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
    items: list[Item] = []
    for sample_score in scores:
        sample_metadata = sample_score.sample_metadata or {}
        item = Item(
            decisions={decision.key: decision for decision in decisions_of(sample_score.score)},
            group=str(sample_metadata.get("group", sample_score.sample_id)),
            details=sample_score.score.metadata or {},
        )
        items.append(item)
    return items


def preference_numbers(items: Sequence[Item]) -> dict[str, float]:
    """Numbers of `preference`, from items."""
    numbers = summarise([(item.group, item.verdict) for item in items], "accuracy")
    numbers["pairs"] = len(items)
    numbers["questions"] = len({item.group for item in items})

    with_verdict = [item for item in items if item.verdict.said is not None]
    is_tie = [float(item.verdict.said == "tie") for item in with_verdict]
    numbers |= _mean_by_question("tie_rate", is_tie, with_verdict)

    decided = [
        item
        for item in with_verdict
        if item.verdict.said != "tie" and item.verdict.value is not None
    ]
    decided_values = [item.verdict.value for item in decided]
    numbers |= _mean_by_question("decided_accuracy", decided_values, decided)

    rng = np.random.default_rng(0)
    labelled = _labelled(items, VERDICT)
    if labelled:
        numbers |= _weighted_f1(labelled, rng)
    numbers |= _auroc("auroc", VERDICT, labelled, rng)
    numbers |= position_numbers(items)
    numbers |= _reading_numbers(items)

    if any(OWN in item.decisions for item in items):
        labelled = _labelled(items, OWN)
        own_values = [item.decisions[OWN].value for item in labelled]
        numbers |= _mean_by_question("own_accuracy", own_values, labelled)
        numbers |= _auroc("own_auroc", OWN, labelled, np.random.default_rng(0))
    return numbers


def _labelled(items: Sequence[Item], key: str) -> list[Item]:
    return [item for item in items if item.decisions[key].value is not None]


def _weighted_f1(labelled: Sequence[Item], rng: np.random.Generator) -> dict[str, float]:
    """F1 of the verdict; a tie is neither of the two labels."""
    text_number = {"1": 1, "2": 2}
    truths = np.array([int(item.verdict.truth or 0) for item in labelled])
    verdicts = np.array([text_number.get(item.verdict.said or "", 0) for item in labelled])
    estimate = bootstrap(
        weighted_f1,
        truths,
        verdicts,
        clusters=np.array([item.group for item in labelled]),
        rng=rng,
        unit="question",
    )
    return _known_interval_numbers("f1", estimate)


def _auroc(
    name: str, key: str, labelled: Sequence[Item], rng: np.random.Generator
) -> dict[str, float]:
    """AUROC of a decision's margins; none unless both labels occur and the margins differ."""
    truths = np.array([int(item.decisions[key].truth or 0) for item in labelled])
    margins = np.array([item.decisions[key].score for item in labelled], dtype=float)
    if len(set(truths)) != 2 or np.ptp(margins) <= 1e-9:
        return {}
    estimate = bootstrap(
        auroc,
        truths == 1,
        margins,
        clusters=np.array([item.group for item in labelled]),
        rng=rng,
        unit="question",
    )
    return _known_interval_numbers(name, estimate)


def position_numbers(items: Sequence[Item]) -> dict[str, float]:
    """Effects of the order alone, from pairs that were read in both orders."""
    in_both_orders = [item for item in items if len(item.details.get("p_first", {})) == 2]
    if not in_both_orders:
        return {}

    # both [item, order]
    first_probabilities = np.empty((len(in_both_orders), len(ORDERS)))
    for row, item in enumerate(in_both_orders):
        first_probabilities[row] = [item.details["p_first"][order] for order in ORDERS]
    is_tie = np.abs(first_probabilities - 0.5) <= 1e-9
    takes_first = np.where(is_tie, 0.5, first_probabilities > 0.5)

    numbers = _mean_by_question("said_1", takes_first.mean(axis=1), in_both_orders)
    numbers["said_2"] = 1 - numbers["said_1"]
    numbers["position_bias"] = abs(numbers["said_1"] - 0.5)

    decided = np.flatnonzero(~is_tie.any(axis=1))
    is_consistent = (takes_first[decided, 0] != takes_first[decided, 1]).astype(float)
    decided_items = [in_both_orders[index] for index in decided]
    numbers |= _mean_by_question("consistency", is_consistent, decided_items)

    has_label = [bool(item.verdict.truth) for item in in_both_orders]
    labelled_items = [item for item in in_both_orders if item.verdict.truth]
    return numbers | _one_order_numbers(labelled_items, first_probabilities[has_label, 0])


def _one_order_numbers(
    items: Sequence[Item], first_probabilities: npt.NDArray[np.float64]
) -> dict[str, float]:
    """The latent-preference paper: silent on calibration without a second order. Here: the log-odds
    less their median over the run.
    """
    if not items:
        return {}
    clipped = np.clip(first_probabilities, 1e-12, 1 - 1e-12)
    log_odds = np.log(clipped) - np.log1p(-clipped)
    margins_by_name = {
        "one_order": log_odds,
        "one_order_calibrated": log_odds - np.median(log_odds),
    }

    is_first_better = np.array([item.verdict.truth == "1" for item in items])
    truth_signs = np.where(is_first_better, 1, -1)
    numbers: dict[str, float] = {}
    for name, margins in margins_by_name.items():
        margin_signs = np.where(np.abs(margins) <= 1e-9, 0.0, np.sign(margins))
        is_right = 0.5 + truth_signs * margin_signs / 2
        numbers |= _mean_by_question(f"{name}_accuracy", is_right, items)
    return numbers


def _reading_numbers(items: Sequence[Item]) -> dict[str, float]:
    is_from_logprobs: list[bool] = []
    masses: list[float] = []
    for item in items:
        sources = item.details.get("read", {}).values()
        is_from_logprobs += [source == "logprobs" for source in sources]
        masses += item.details.get("mass", {}).values()

    numbers: dict[str, float] = {}
    if is_from_logprobs:
        numbers["from_logprobs"] = float(np.mean(is_from_logprobs))
    if masses:
        numbers["mass"] = float(np.mean(masses))
    return numbers


def _mean_by_question(
    name: str, values: Sequence[float | None] | npt.NDArray[np.float64], items: Sequence[Item]
) -> dict[str, float]:
    """Mean of the items' values under this name, with its interval; none without items."""
    if not items:
        return {}
    groups = np.array([item.group for item in items])
    estimate = clustered_mean(np.array(values, dtype=float), groups, unit="question")
    return _known_interval_numbers(name, estimate)


def _known_interval_numbers(name: str, estimate: Estimate) -> dict[str, float]:
    numbers = interval_numbers(name, estimate)
    return {key: number for key, number in numbers.items() if not math.isnan(number)}


ORDERS = ("shown", "swapped")
"""Names of the orders: text 1 as choice 1, and text 2 as choice 1."""

OPTIONS = ("1", "2")

_NUMBERED_CHOICE = re.compile(
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
    """The preference averaged over both orders: position drops out (latent-preference probes, §4.3,
    §5.1).
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        label = state.metadata["label"]
        if not record.answers:
            decisions = [
                preference_decision(key, None, label=label, reason="equal_texts")
                for key in (VERDICT, *ORDERS)
            ]
            return score_of(decisions, answer=None, explanation=EQUAL_TEXTS)

        readings = {
            order: read_order(record.answers[order], draws_of(record, order)) for order in ORDERS
        }
        reasoned = any(reply.reasoned for reply in record.answers.values())
        decisions = judge_orders(readings, label=label, reasoned=reasoned)

        first_probabilities: dict[str, float] = {}
        sources: dict[str, str] = {}
        masses: dict[str, float] = {}
        for order, reading in readings.items():
            if reading.p_first is not None:
                first_probabilities[order] = reading.p_first
            if reading.read:
                sources[order] = reading.read
            if reading.mass is not None:
                masses[order] = reading.mass

        return score_of(
            decisions,
            answer=decisions[0].said,
            explanation=_explain_orders(record, readings, decisions),
            details={"p_first": first_probabilities, "read": sources, "mass": masses},
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
    first_share = shares["1"]
    second_share = shares["2"]
    mass = first_share + second_share

    unlisted_share = largest_unlisted_share(reply.first_token)
    is_one_missing = first_share == 0 or second_share == 0
    if is_one_missing and unlisted_share >= max(first_share, second_share):
        return None
    first_share = first_share or unlisted_share
    second_share = second_share or unlisted_share
    return round(first_share / (first_share + second_share), 12), round(mass, 12)


def named_choice(text: str) -> str | None:
    """Single choice that a reply names, "1" or "2", or None; also where it begins with the priming
    text.

    >>> named_choice("Between Choice 1 and Choice 2, the more helpful response is Choice 2.")
    '2'
    >>> named_choice("1 or 2?") is None
    True
    """
    text = re.sub(r"^\W*between choice 1 and choice 2,", "", text, flags=re.IGNORECASE)
    bare_words = [word.strip("()[]{}*_`'\"“”.,;:!?#") for word in words(text, limit=2000)]
    named_options = set(bare_words) & set(OPTIONS)
    if len(named_options) != 1:
        return None

    (option,) = named_options
    if choice(text, OPTIONS) == option or _NUMBERED_CHOICE.search(text):
        return option
    return None


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
    if fault in (None, "truncated"):
        token_reading = p_first(reply)
        if token_reading is not None:
            first_probability, mass = token_reading
            return OrderReading(first_probability, "logprobs", n=0, mass=mass, fault=None)

    drawn_choices: list[str] = []
    for draw in draws:
        drawn_choice = None if draw.problem else named_choice(draw.text)
        if drawn_choice is not None:
            drawn_choices.append(drawn_choice)
    if drawn_choices:
        draw_count = len(drawn_choices)
        first_share = drawn_choices.count("1") / draw_count
        return OrderReading(first_share, "draws", n=draw_count, mass=None, fault=None)
    return OrderReading(None, None, n=0, mass=None, fault=unread_reason(fault, draws))


def judge_orders(
    readings: dict[str, OrderReading], *, label: int | None, reasoned: bool
) -> list[Decision]:
    """Verdict over both orders, then each order's alone, all as the number of the text.

    Paper: "take an average of the model's predicted probabilities" (§4.3). A pair with one
    unreadable order is unscored: one order alone has the position in it.
    """
    margins: list[float] = []
    faults: list[str] = []
    order_decisions: list[Decision] = []
    for order, reading in readings.items():
        margin: float | None = None
        if reading.p_first is not None:
            sign = 1 if order == "shown" else -1
            margin = (reading.p_first - 0.5) * sign
            margins.append(margin)
        if reading.fault:
            faults.append(reading.fault)
        order_decisions.append(
            preference_decision(order, margin, label=label, reason=reading.fault)
        )

    mean_margin = sum(margins) / 2 if len(margins) == 2 else None
    verdict = preference_decision(
        VERDICT,
        mean_margin,
        label=label,
        reason=faults[0] if faults else None,
        reasoned=reasoned,
    )
    return [verdict, *order_decisions]


def _verdict_line(verdict: Decision) -> str:
    preference_text = verdict.unscored or f"prefers {preference_in_words(verdict)}"
    return f"{preference_text}; label: {verdict.truth or 'none'}"


def _explain_orders(
    record: Record, readings: dict[str, OrderReading], decisions: Sequence[Decision]
) -> str:
    """Verdict, the answer of each order and its source, for the log browser."""
    lines = [_verdict_line(decisions[0]), ""]
    for order, reading in readings.items():
        if reading.p_first is None:
            reading_text = f"unscored, {reading.fault}"
        elif reading.read == "logprobs":
            reading_text = f"P(choice 1) = {reading.p_first:.3f}, from token probabilities"
        else:
            reading_text = f"P(choice 1) = {reading.p_first:.3f}, from {reading.n} sampled answers"
        lines.append(f"- {order}: {reading_text}; reply: {record.answers[order].text[:200]!r}")
    return "\n".join(lines)


TEXTS = ("text_1", "text_2")
LEVELS = ("1", "2", "3", "4", "5")

_STATED_SCORE = re.compile(
    r"(?<![\w.,/])([0-9]+(?:[.,][0-9]+)?)(?:\s?(?:/|out of|of)\s?5)?(?![\w/]|[.,]\d)", re.IGNORECASE
)
_SCALE_RANGE = re.compile(r"\b(?:from )?1 (?:to|-|–) 5\b|\b1[-–]5\b", re.IGNORECASE)


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
    """The text with the higher score is preferred; equal scores are a tie (latent-preference
    probes, §4.3).
    """
    return _score_ratings(direct_rating)


def _score_ratings(rate: Rate) -> Scorer:
    """The verdict on a pair from a rating of each text; the inside of `direct_score` and
    `g_eval_score`.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        label = state.metadata["label"]
        if not record.answers:
            decisions = [preference_decision(VERDICT, None, label=label, reason="equal_texts")]
            decisions += [Decision(key=text_key, unscored="equal_texts") for text_key in TEXTS]
            return score_of(decisions, answer=None, explanation=EQUAL_TEXTS)

        ratings = {
            text_key: rate(record.answers[text_key], draws_of(record, text_key))
            for text_key in TEXTS
        }
        reasoned = any(reply.reasoned for reply in record.answers.values())
        decisions = judge_ratings(ratings, label=label, reasoned=reasoned)

        sources: dict[str, str] = {}
        masses: dict[str, float] = {}
        for text_key, rating in ratings.items():
            if rating.read:
                sources[text_key] = rating.read
            if rating.mass is not None:
                masses[text_key] = rating.mass

        return score_of(
            decisions,
            answer=decisions[0].said,
            explanation=_explain_ratings(record, ratings, decisions),
            details={"read": sources, "mass": masses},
        )

    return score


def direct_rating(reply: Reply, draws: Sequence[Reply]) -> Rating:
    """The most probable level, or where the provider gives no token probabilities the written one.

    Paper: "predicted probabilities for possible answer choices" (§4.4). Two equally probable
    levels: the written one.
    """
    fault = reply_fault(reply)
    shares = _level_shares(reply, fault)
    if shares:
        largest_share = max(shares.values())
        best_levels = [level for level, share in shares.items() if share == largest_share]
        if len(best_levels) == 1:
            return Rating(float(best_levels[0]), "logprobs", sum(shares.values()))

    if fault:
        return Rating(None, None, fault=fault)
    written_score = stated_score(reply.text)
    if written_score is None:
        return Rating(None, None, fault=UNPARSED)
    return Rating(float(written_score), "text")


def _level_shares(reply: Reply, fault: str | None) -> dict[str, float] | None:
    """P(level) as the first token, which a reply that is cut after it still has."""
    if fault not in (None, "truncated"):
        return None
    return first_token_shares(reply.first_token, LEVELS)


def stated_score(text: str) -> int | None:
    """The single whole score from 1 to 5 that a reply states, or None.

    >>> stated_score("Score: **4** out of 5"), stated_score("5/5.")
    (4, 5)
    >>> stated_score("3.5"), stated_score("4 or 5")
    (None, None)
    """
    value = json_value(text, "score")
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 1 <= value <= 5 else None

    unstyled_text = text.replace("*", "").replace("_", " ")
    text_without_scale = _SCALE_RANGE.sub("", unstyled_text)
    stated_numbers = {match[1] for match in _STATED_SCORE.finditer(text_without_scale[:2000])}
    if len(stated_numbers) != 1 or not stated_numbers <= set(LEVELS):
        return None
    return int(stated_numbers.pop())


def judge_ratings(
    ratings: Mapping[str, Rating], *, label: int | None, reasoned: bool
) -> list[Decision]:
    """Verdict, then each text's score."""
    scores: list[float] = []
    faults: list[str] = []
    text_decisions: list[Decision] = []
    for text_key, rating in ratings.items():
        if rating.fault:
            faults.append(rating.fault)
        if rating.score is None:
            text_decisions.append(Decision(key=text_key, unscored=rating.fault))
        else:
            scores.append(rating.score)
            text_decisions.append(Decision(key=text_key, said=f"{rating.score:.4g}"))

    margin = scores[0] - scores[1] if len(scores) == 2 else None
    verdict = preference_decision(
        VERDICT, margin, label=label, reason=faults[0] if faults else None, reasoned=reasoned
    )
    return [verdict, *text_decisions]


def _explain_ratings(
    record: Record, ratings: Mapping[str, Rating], decisions: Sequence[Decision]
) -> str:
    """Verdict, both scores and their sources, for the log browser."""
    source_texts = {
        "logprobs": "token probabilities",
        "draws": "sampled scores",
        "text": "the written score",
    }
    lines = [_verdict_line(decisions[0]), ""]
    for text_key, rating in ratings.items():
        rating_text = f"unscored, {rating.fault}"
        if rating.score is not None and rating.read is not None:
            rating_text = f"{rating.score:.3f}, from {source_texts[rating.read]}"
        lines.append(f"- {text_key}: {rating_text}; reply: {record.answers[text_key].text[:200]!r}")
    return "\n".join(lines)


@scorer(metrics=[preference()])
def g_eval_score() -> Scorer:
    """The text with the higher Σ s·p(s) is preferred (latent-preference probes, §4.3; Liu et al.
    2023, equation 1).
    """
    return _score_ratings(expected_rating)


def expected_rating(reply: Reply, draws: Sequence[Reply]) -> Rating:
    """Σ s·p(s) / Σ p(s) over the levels among the first token's candidates, else the mean of the
    drawn scores.

    A level that is not among the candidates is less probable than each of them, and counts as 0.
    """
    fault = reply_fault(reply)
    shares = _level_shares(reply, fault)
    if shares:
        mass = sum(shares.values())
        weighted_levels = sum(int(level) * share for level, share in shares.items())
        return Rating(weighted_levels / mass, "logprobs", mass)

    drawn_scores: list[int] = []
    for draw in draws:
        drawn_score = None if draw.problem else stated_score(draw.text)
        if drawn_score is not None:
            drawn_scores.append(drawn_score)
    if drawn_scores:
        return Rating(sum(drawn_scores) / len(drawn_scores), "draws")
    return Rating(None, None, fault=unread_reason(fault, draws))


def unsettled_rating(reply: Reply) -> bool:
    """Whether a reply scores, but its first token does not show how surely: it is drawn again."""
    if reply.problem or stated_score(reply.text) is None:
        return False
    return first_token_shares(reply.first_token, LEVELS) is None


@scorer(metrics=[preference()])
def preference_probe_reading() -> Scorer:
    """Preferred text by the side of the probe's boundary (latent-preference probes, §3), and the
    model's own answer (§4.3).
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
    if reading.score is None or reading.own_answer is None:
        # "too long: 9000 tokens, the context is 8192" is counted as too_long.
        reason_text, _, _ = (reading.reason or "not_read").partition(":")
        reason = reason_text.replace(" ", "_")
        return [
            preference_decision(key, None, label=label, reason=reason) for key in (VERDICT, OWN)
        ]
    return [
        preference_decision(VERDICT, reading.score, label=label),
        preference_decision(OWN, reading.own_answer - 0.5, label=label),
    ]


def _explain_reading(reading: ProbeReading, decisions: list[Decision]) -> str:
    """Both verdicts, for the log browser."""
    verdict, own_answer = decisions
    if verdict.unscored or reading.score is None or reading.own_answer is None:
        return f"unscored, {reading.reason or 'the probe was not applied'}"
    own_text = "a tie" if own_answer.said == "tie" else f"text {own_answer.said}"
    return (
        f"the probe prefers {preference_in_words(verdict)} "
        f"(score {reading.score:+.4g}; above 0 is text 1); label: {verdict.truth or 'none'}\n"
        f"the model's own answer: {own_text} "
        f"(P(text 1) = {reading.own_answer:.3f})"
    )
