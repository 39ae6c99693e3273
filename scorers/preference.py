"""Verdicts on which of two texts is better, ties, and the one metric of the four preference tasks (paper 004).

A tie is a verdict of its own: it counts half in accuracy, as in AUROC, and as a miss of the true label in F1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from inspect_ai.scorer import SampleScore

from selfprobe.scorers.decision import UNPARSED, Decision, decisions_of, observer_fault
from selfprobe.scorers.summary import Scores, metric_of, summarise
from selfprobe.solvers.record import Reply, TokenLogprob
from selfprobe.stats.estimate import Estimate, auroc, bootstrap, clustered_mean, weighted_f1

Said = Literal["1", "2", "tie"]

VERDICT = "preferred"
"""Key of the decision that counts; others (one order, one text, the model's own answer) are only shown."""

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
    """Verdict of a margin: above 0 text 1. The slack keeps a tie unchanged when x and 1 - x are averaged."""
    return "tie" if abs(margin) <= 1e-9 else "1" if margin > 0 else "2"


def verdict(key: str, margin: float | None, *, label: int | None, reason: str | None = None, **more: bool) -> Decision:
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
    value = None if said is None or label is None else 0.5 if said == "tie" else float(said == str(label))
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
    """Reason why a reply cannot be used, or None; "too_long" where the pair did not fit the model's context."""
    return "too_long" if reply.stop_reason == "model_length" else observer_fault(reply)


def fault_of(first: str | None, draws: Sequence[Reply]) -> str:
    """Reason why neither the first reply nor its draws could be read."""
    if draws:
        first = next((fault for draw in draws if (fault := observer_fault(draw))), None)
    return first or UNPARSED


def first_token_shares(candidates: Sequence[TokenLogprob] | None, options: Sequence[str]) -> dict[str, float] | None:
    """P(option) among the candidates for the first token; a leading space does not count. None without any."""
    found = dict.fromkeys(options, 0.0)
    for candidate in candidates or []:
        if (bare := candidate.token.strip().lstrip(_MARKS)) in found:
            found[bare] += math.exp(candidate.logprob)
    return found if any(found.values()) else None


def unlisted(candidates: Sequence[TokenLogprob]) -> float:
    """Largest possible probability of a token outside the candidates: the last one's share, or what is left."""
    listed = [math.exp(c.logprob) for c in candidates]
    return max(0.0, min(min(listed), 1 - sum(listed)))


@metric_of
def preference(scores: Scores) -> dict[str, float]:
    """Numbers of a method over all pairs; intervals are clustered by source question, what is undefined is left out.

    Keys: `accuracy` (a tie counts half), `f1` (weighted by label, as the paper's; a tie is a miss), `auroc` of the
    margin, `tie_rate` and `decided_accuracy` (without ties), each with `_low`, `_high`; `baseline_*` and `skill` as in
    `summary`; `n` verdicts with a label, `pairs` in all, `questions` they come from; `unscored`, `unscored_<reason>`
    (shares of pairs); `worst_case`, `best_case`. Where both orders were shown: `said_1`, `said_2` (share of single
    orders that take choice 1 or 2), `position_bias` (how far these are from equal: 0 none, .5 always the same),
    `consistency` (share of pairs whose two orders prefer the same text, of those where neither is a tie),
    `one_order_accuracy`, and `one_order_calibrated_accuracy`: the same without labels' help, less the median log-odds.
    Where answers were read: `from_logprobs` (share of readings from token probabilities, the others from draws) and
    `mass` (mean probability of all options). For a probe: `own_accuracy`, `own_auroc`, the model's own answers.
    """
    return summarised(items(scores))


def items(scores: Sequence[SampleScore]) -> list[Item]:
    """The pairs of every sample and epoch."""
    return [
        Item(
            decisions={d.key: d for d in decisions_of(sample.score)},
            group=str((sample.sample_metadata or {}).get("group", sample.sample_id)),
            details=sample.score.metadata or {},
        )
        for sample in scores
    ]


def summarised(found: Sequence[Item]) -> dict[str, float]:
    """Numbers of `preference`, from items."""
    out = summarise([(item.group, item.verdict) for item in found], "accuracy")
    out |= {"pairs": len(found), "questions": len({item.group for item in found})}
    said = [item for item in found if item.verdict.said is not None]
    if said:
        out |= _mean("tie_rate", [float(item.verdict.said == "tie") for item in said], said)
    decided = [item for item in said if item.verdict.said != "tie" and item.verdict.value is not None]
    out |= _mean("decided_accuracy", [item.verdict.value for item in decided], decided)
    out |= _ranked("", VERDICT, found) | _positions(found) | _readings(found)
    if any("own" in item.decisions for item in found):
        own = [item for item in found if item.decisions["own"].value is not None]
        out |= _mean("own_accuracy", [item.decisions["own"].value for item in own], own) | _ranked("own_", "own", found)
    return out


def _ranked(prefix: str, key: str, found: Sequence[Item]) -> dict[str, float]:
    """F1 of the verdict and AUROC of a decision's margins; AUROC needs both labels and margins that differ."""
    labelled = [item for item in found if item.decisions[key].value is not None]
    if not labelled:
        return {}
    truth = np.array([int(item.decisions[key].truth or 0) for item in labelled])
    said = np.array([{"1": 1, "2": 2}.get(item.decisions[key].said or "", 0) for item in labelled])
    margins = np.array([item.decisions[key].score for item in labelled], dtype=float)
    groups = np.array([item.group for item in labelled])
    rng, out = np.random.default_rng(0), dict[str, float]()
    if not prefix:
        out |= _keys("f1", bootstrap(weighted_f1, truth, said, clusters=groups, rng=rng, unit="question"))
    if len(set(truth)) == 2 and np.ptp(margins) > 1e-9:
        out |= _keys(f"{prefix}auroc", bootstrap(auroc, truth == 1, margins, clusters=groups, rng=rng, unit="question"))
    return out


def _positions(found: Sequence[Item]) -> dict[str, float]:
    """Effects of the order alone, from pairs that were read in both orders."""
    both = [item for item in found if len(item.details.get("p_first", {})) == 2]
    if not both:
        return {}
    p = np.array([[item.details["p_first"][order] for order in ("shown", "swapped")] for item in both])
    takes_first = np.where(np.abs(p - 0.5) <= 1e-9, 0.5, p > 0.5)
    out = _mean("said_1", takes_first.mean(axis=1), both)
    out |= {"said_2": 1 - out["said_1"], "position_bias": abs(out["said_1"] - 0.5)}
    decided = [i for i, pair in enumerate(takes_first) if 0.5 not in pair]
    agree = [float(takes_first[i, 0] != takes_first[i, 1]) for i in decided]
    out |= _mean("consistency", agree, [both[i] for i in decided])
    return out | _one_order([item for item in both if item.verdict.truth], p[[bool(i.verdict.truth) for i in both], 0])


def _one_order(found: Sequence[Item], p: npt.NDArray[np.float64]) -> dict[str, float]:
    """Paper 004: silent on calibration without a second order. Here: the log-odds less their median over the run."""
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


def _mean(name: str, values: Sequence[float | None] | npt.NDArray[np.float64], of: Sequence[Item]) -> dict[str, float]:
    if not len(of):
        return {}
    numbers, groups = np.array(values, dtype=float), np.array([item.group for item in of])
    return _keys(name, clustered_mean(numbers, groups, unit="question"))


def _keys(name: str, estimate: Estimate) -> dict[str, float]:
    ends = {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return {key: value for key, value in ends.items() if not math.isnan(value)}
