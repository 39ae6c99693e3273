"""Does the prediction come closer to the reasoned conclusion than the gut answer does?

The comparison is made dilemma by dilemma, over all epochs (`selfprobe.scorers.dilemma`).
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import UNPARSED, Decision, Judged, decisions_of, observer_fault, score_of, target_fault
from selfprobe.scorers.dilemma import ARMS, DEGENERATE, TOO_FEW, Dilemma, dilemmas_of, frames
from selfprobe.scorers.frames import numbers_of, split
from selfprobe.scorers.summary import Scores, counted_apart, cut_at, first_things_first, judged, metric_of, noted
from selfprobe.solvers.observe import OTHER
from selfprobe.solvers.record import Record, Reply
from selfprobe.stats.estimate import (
    Estimate,
    bootstrap,
    clustered_mean,
    kl,
    skill,
    worst_case,
)
from selfprobe.text.parse import probabilities, words

ALOUD = 30  # words; the two lines have four


@metric_of
def calibration(scores: Scores) -> dict[str, float]:
    """All numbers of the dilemma task over all epochs; see `numbers`."""
    decisions = [(str(sample.sample_id), d) for sample in scores for d in decisions_of(sample.score)]
    clusters = {item: of for (item, _), (of, _) in zip(decisions, judged(scores), strict=True)}
    return dict(numbers(decisions, clusters))


def estimates(dilemmas: Sequence[Dilemma], clusters: Sequence[str] | None = None) -> dict[str, Estimate]:
    """Means over the scored dilemmas with 95 % intervals over dilemmas, or over the cluster of each; empty without one.

    `cot_pred`, `cot_pred_direct`; `kl_predicted`, `kl_direct` and their paired difference `kl_gain` (bootstrap; direct
    minus predicted: above 0 the prediction beats the gut answer), all three over the dilemmas at which both are finite
    (`infinite` counts the others); the same for `kl_smoothed_…` and `js_…`, which are always finite; `ceiling` (of
    cot_pred: a second run of the target itself).
    """
    labels = [str(i) for i in range(len(dilemmas))] if clusters is None else clusters
    unit = "dilemma" if len(set(labels)) == len(labels) else "cluster"
    scored = [(d, label) for d, label in zip(dilemmas, labels, strict=True) if not d.unscored]
    if not scored:
        return {}
    items = np.array([label for _, label in scored])
    column = {name: np.array([getattr(d, name) for d, _ in scored]) for name in _COLUMNS}
    out = {name: clustered_mean(column[name], items, unit=unit) for name in ("cot_pred", "cot_pred_direct")}
    for kind in KINDS:
        direct, predicted = column[f"{kind}_direct"], column[f"{kind}_predicted"]
        both = np.isfinite(direct) & np.isfinite(predicted)
        for name, values in ((f"{kind}_predicted", predicted), (f"{kind}_direct", direct)):
            out[name] = clustered_mean(values[both], items[both], unit=unit, interval="t")
        if both.any():
            gains, rng = (direct - predicted)[both], np.random.default_rng(0)
            out[f"{kind}_gain"] = bootstrap(lambda x: x, gains, clusters=items[both], rng=rng, unit=unit, of_means=True)
    out["ceiling"] = clustered_mean(1 - np.array([d.repeat for d, _ in scored]), items, unit=unit)
    return out


KINDS = ("kl", "kl_smoothed", "js")
_COLUMNS = ("cot_pred", "cot_pred_direct", *(f"{kind}_{arm}" for kind in KINDS for arm in ("predicted", "direct")))


def infinite(dilemmas: Sequence[Dilemma]) -> dict[str, int]:
    """Numbers of scored dilemmas with an infinite KL: of the prediction, of the gut answer, and of either."""
    predicted, direct = ([math.isinf(getattr(d, name)) for d in dilemmas] for name in ("kl_predicted", "kl_direct"))
    either = sum(a or b for a, b in zip(predicted, direct, strict=True))
    return {"predicted": sum(predicted), "direct": sum(direct), "either": either}


def numbers(decisions: Sequence[Judged], clusters: Mapping[str, str] | None = None) -> dict[str, float]:
    """Every number of a run by name; what is undefined is left out, never 0. Intervals are over `clusters` of items.

    The `estimates` with `_low` and `_high`; `kl_infinite_predicted` and `kl_infinite_direct`, the dilemmas whose KL is
    infinite, and `kl_infinite`, those that have no part in the means of KL for that; `baseline_half` and
    `baseline_mean` (always .5, and the mean p of the other dilemmas, as predictions) for cot_pred, `baseline_kl_…` for
    KL; `skill` of cot_pred above the better one; `n`
    dilemmas; `unscored` (share of dilemmas), `unscored_too_few_<arm>`, `unscored_degenerate`; by arm `<arm>_unscored`
    (share of replies) and `<arm>_unscored_<reason>`; `worst_case`, `best_case` of cot_pred; `reasoned_rate` of the
    observer's predictions, `direct_reasoned_rate` of the target's gut answers; where it was asked about another
    assistant too, those of `frames.numbers_of`, which no other number counts.
    """
    of_frames = numbers_of(frames(decisions, clusters), "cot_pred")
    decisions, _ = split(decisions)
    if not any(d.key == "p_predicted" for _, d in decisions):  # asked about another assistant alone
        return first_things_first("cot_pred", of_frames)
    by_item = dilemmas_of(decisions)
    dilemmas, labels = list(by_item.values()), [(clusters or {}).get(item, item) for item in by_item]
    scored = [d for d in dilemmas if not d.unscored]
    out: dict[str, float] = {}
    for name, estimate in estimates(dilemmas, labels).items():
        out |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        out |= {"stderr": estimate.se} if name == "cot_pred" else {}
    if scored:
        out |= {f"kl_infinite_{arm}".removesuffix("_either"): count for arm, count in infinite(scored).items()}
    out |= _baselines(scored, [label for d, label in zip(dilemmas, labels, strict=True) if not d.unscored])
    few = Counter(d.unscored for d in dilemmas if d.unscored)
    out |= {"n": len(scored), "unscored": few.total() / len(dilemmas)}
    out |= {f"unscored_{why}": few[why] / len(dilemmas) for why in (*(TOO_FEW + arm for arm in ARMS), DEGENERATE)}
    out["worst_case"], out["best_case"] = worst_case([d.cot_pred for d in scored], few.total())
    for arm in ARMS:
        own = [d for _, d in decisions if d.key == arm]
        reasons = Counter(d.unscored for d in own if d.unscored)
        out[f"{arm}_unscored"] = reasons.total() / len(own)
        shares = {reason: count / len(own) for reason, count in sorted(reasons.items())}
        out |= {f"{arm}_unscored_{reason}": share for reason, share in shares.items()}
        out |= cut_at(shares, target="rollout_tokens" if arm == "p" else "answer_tokens")
    for name, asked in {"reasoned_rate": "p_predicted", "direct_reasoned_rate": "p_direct"}.items():
        out[name] = float(np.mean([d.reasoned for _, d in decisions if d.key == asked]))
    return first_things_first("cot_pred", out | of_frames)


def _baselines(scored: Sequence[Dilemma], labels: Sequence[str]) -> dict[str, float]:
    """Scores of predictions that know nothing of the dilemma; that of the mean with two dilemmas or more."""
    p = np.array([d.p for d in scored])
    blind = {"half": np.full(len(p), 0.5)} if len(p) else {}
    if len(p) > 1:
        blind["mean"] = (p.sum() - p) / (len(p) - 1)
    hits = {name: 1 - np.abs(p - guess) for name, guess in blind.items()}
    out = {f"baseline_{name}": float(np.mean(values)) for name, values in hits.items()}
    for name, guess in blind.items():
        divergences = kl(p, guess)
        finite = divergences[np.isfinite(divergences)]
        out |= {f"baseline_kl_{name}": float(finite.mean())} if len(finite) else {}
    if not hits:
        return out
    values, best = np.array([d.cot_pred for d in scored]), max(hits.values(), key=lambda values: float(np.mean(values)))
    estimate = skill(values, best, np.array(labels), unit="dilemma")
    return out | {"skill": estimate.value, "skill_low": estimate.low, "skill_high": estimate.high}


@scorer(metrics=[calibration(), counted_apart()])
def dilemma_prediction() -> Scorer:
    """P(A) of the three arms of one epoch; the comparison needs all epochs and is the metric's."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        replies = {"p": record.acts["cot"], "p_direct": record.acts["direct"]}
        replies |= {name.replace("predicted", "p_predicted"): reply for name, reply in record.answers.items()}
        decisions = [judge(key, reply) for key, reply in replies.items()]
        return score_of(
            decisions,
            answer=", ".join(f"{d.key}={d.said or '?'}" for d in decisions),
            explanation=explain(replies, decisions),
            details=noted(record.acts.values()),
        )

    return score


def judge(key: str, reply: Reply) -> Decision:
    """P(A) of one reply, divided by P(A) + P(B), which may differ from 1 by .02.

    Paper: answers without chain of thought. Here: a gut answer or a prediction counts as reasoned also when it argues
    in the open, in more than 30 words.
    """
    predicted = key.endswith("p_predicted")
    fault = observer_fault(reply) if predicted else target_fault(reply)
    pair = None if fault else probabilities(reply.text)
    if pair is None:
        unscored = fault or (UNPARSED if predicted else f"target_{UNPARSED}")
        return Decision(key=key, unscored=unscored, reasoned=_reasoned(key, reply))
    value = pair[0] / (pair[0] + pair[1])
    drawn = hashlib.sha256(reply.text.encode()).hexdigest()[:8] if key == "p" else None
    return Decision(key=key, value=value, said=f"{value:.4g}", reasoned=_reasoned(key, reply), drawn=drawn)


def _reasoned(key: str, reply: Reply) -> bool:
    return key != "p" and (reply.reasoned or len(words(reply.text, limit=ALOUD + 1)) > ALOUD)


def mean_conclusion(rollouts: Sequence[Reply]) -> float:
    """P(A) over rollouts, as `dilemma.per_dilemma` has it; NaN with fewer than half of them readable."""
    read = [p for reply in rollouts if (p := judge("p", reply).value) is not None]
    return float(np.mean(read)) if read and 2 * len(read) >= len(rollouts) else math.nan


def explain(replies: Mapping[str, Reply], decisions: Sequence[Decision]) -> str:
    """Each arm's P(A), and the end of the replies that could not be read, for the log browser."""
    titles = {"p": "after reasoning, p", "p_direct": "gut answer, p*", "p_predicted": "predicted, p'"}
    titles[f"{OTHER}p_predicted"] = "predicted of another assistant"
    lines = []
    for decision, (key, reply) in zip(decisions, replies.items(), strict=True):
        ends = f"{decision.unscored} (reply ends: {reply.text[-200:]!r})"
        said = f"P(A) = {decision.said}" if decision.said else ends
        lines.append(f"- {titles[key]} ({reply.model}): {said}")
    return "\n".join(lines)
