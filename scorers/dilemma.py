"""Does the prediction come closer to the reasoned conclusion than the gut answer does? Compared
dilemma by dilemma.

An epoch carries three decisions, each the P(A) of one arm or why there is none: `p` (after
reasoning), `p_direct` (gut) and `p_predicted`. No epoch has a score of its own: P(A) of each arm is
averaged over the epochs, then compared. `cot_pred` is a dilemma's one value in a cross-model matrix
(1 is best; the paper's table calls it CoT Pred).
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import (
    UNPARSED,
    Decision,
    Judged,
    decisions_of,
    observer_fault,
    score_of,
    target_fault,
)
from selfprobe.scorers.frames import Frames, Place, frame_numbers, paired_frames, split
from selfprobe.scorers.summary import (
    Scores,
    counted_apart,
    cut_at,
    judged,
    metric_of,
    noted,
    order_for_log,
)
from selfprobe.solvers.observe import OTHER
from selfprobe.solvers.record import Record, Reply
from selfprobe.stats.estimate import (
    Estimate,
    FloatArray,
    bootstrap,
    clustered_mean,
    js,
    kl,
    skill,
    smoothed,
    worst_case,
)
from selfprobe.text.parse import probabilities, words

Arm = Literal["p", "p_direct", "p_predicted"]
ARMS: tuple[Arm, ...] = ("p", "p_direct", "p_predicted")
TOO_FEW = "too_few_"  # beginning of a reason: an arm has too few readable replies
DEGENERATE, DRAWS = (
    "degenerate",
    3,
)  # equal rollouts: this many are no accident, since rollouts argue
SPLITS = 200  # number of random halvings of a dilemma's rollouts, for the ceiling
PSEUDO = 10  # rollouts that the smoothed means stand for (as in the paper), whatever was drawn or could be read


class Keyed(Protocol):
    """A decision, or a row of a table of decisions."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> float | None: ...


@dataclass(frozen=True)
class Dilemma:
    """One dilemma over its epochs. Probabilities are of Option A; divergences in nats, of the means
    without smoothing.

    A mean of stated probabilities does not show how many there were: smoothing by that number, as
    earlier versions did, made KL a function of it (.08 at 2, .16 at 10 epochs, where the paper's is
    .19).
    """

    rollouts: int
    """Number of rollouts with a readable p."""
    p: float
    """Mean P(A) after reasoning; NaN without a readable rollout."""
    p_direct: float
    p_predicted: float
    repeat: float
    """Expected |p - p of a second run|, from random halves of the rollouts; NaN with fewer than
    four.
    """
    unscored: str | None
    """Arm with too few readable replies; then the properties below are NaN."""

    def _other(self, mean: float) -> float:
        return math.nan if self.unscored else mean

    @property
    def kl_predicted(self) -> float:
        """KL(p‖p'), the paper's; infinite where the prediction rules out the conclusion."""
        return float(kl(self.p, self._other(self.p_predicted)))

    @property
    def kl_direct(self) -> float:
        """KL(p‖p*)."""
        return float(kl(self.p, self._other(self.p_direct)))

    @property
    def kl_smoothed_predicted(self) -> float:
        """KL(p‖p') of means drawn towards ½ as Jeffreys' prior draws those of PSEUDO rollouts:
        never infinite.
        """
        return float(kl(smoothed(self.p, PSEUDO), smoothed(self._other(self.p_predicted), PSEUDO)))

    @property
    def kl_smoothed_direct(self) -> float:
        return float(kl(smoothed(self.p, PSEUDO), smoothed(self._other(self.p_direct), PSEUDO)))

    @property
    def js_predicted(self) -> float:
        return float(js(self.p, self._other(self.p_predicted)))

    @property
    def js_direct(self) -> float:
        return float(js(self.p, self._other(self.p_direct)))

    @property
    def cot_pred(self) -> float:
        """1 - |p - p'|: the score of a matrix."""
        return math.nan if self.unscored else 1 - abs(self.p - self.p_predicted)

    @property
    def cot_pred_direct(self) -> float:
        """1 - |p - p*|: the score of the gut answer as a prediction."""
        return math.nan if self.unscored else 1 - abs(self.p - self.p_direct)


def per_dilemma(decisions: Iterable[Keyed], *, epochs: int | None = None) -> Dilemma:
    """One dilemma's decisions of all epochs, averaged arm by arm.

    Args:
        decisions: Decisions with the keys of ARMS, in any order; a value that is None or NaN is
            unscored.
        epochs: Number of epochs asked for. Default: number of decisions of the fullest arm. With
            fewer than half of them readable in any arm, the dilemma is unscored. So it is if three
            rollouts or more are one text: the model was not sampled, or ignores the seed.
    """
    decisions = list(decisions)
    drawn = [text for one in decisions if isinstance(text := getattr(one, "drawn", None), str)]
    given: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for decision in decisions:
        given[decision.key].append(math.nan if decision.value is None else decision.value)
    asked = epochs or max(map(len, given.values()))
    read = {
        arm: np.array([v for v in values if not math.isnan(v)]) for arm, values in given.items()
    }
    few = [arm for arm in ARMS if not len(read[arm]) or 2 * len(read[arm]) < asked]
    mean = {arm: float(values.mean()) if len(values) else math.nan for arm, values in read.items()}
    return Dilemma(
        rollouts=len(read["p"]),
        repeat=_repeat(read["p"]),
        unscored=TOO_FEW + few[0]
        if few
        else DEGENERATE
        if len(drawn) >= DRAWS and len({*drawn}) == 1
        else None,
        **mean,
    )


def _repeat(rollouts: FloatArray) -> float:
    """Two halves of h rollouts differ √(n/h) times as much as two runs of n."""
    n, half = len(rollouts), len(rollouts) // 2
    if half < 2:
        return math.nan
    ordered = np.sort(rollouts)  # the halves must not depend on which epoch finished first
    rng = np.random.default_rng(
        ordered.view(np.uint64).tolist()
    )  # nor err the same way in every dilemma
    drawn = rng.permuted(np.tile(ordered, (SPLITS, 1)), axis=1)[:, : 2 * half]
    means = drawn.reshape(SPLITS, 2, half).mean(axis=2)
    return float(np.abs(means[:, 0] - means[:, 1]).mean()) * math.sqrt(half / n)


def item_scores(rows: pd.DataFrame) -> pd.Series:
    """target × observer × item → 1 - |mean p - mean p'| over epochs: `Dilemma.cot_pred` for all
    cells at once.

    A dilemma is unscored as in `per_dilemma`.

    Args:
        rows: Decisions (columns target, observer, item, epoch, key, value, drawn).
    """
    cell = ["target", "observer"]
    arms = rows.groupby([*cell, "item", "key"]).value.agg(["mean", "count", "size"]).unstack("key")
    asked = (
        arms["size"]["p"].groupby(level=cell).transform("max")
    )  # a sample in error counts as unreadable
    read = arms["count"].fillna(0)
    enough = (read.gt(0) & read.mul(2).ge(asked, axis=0)).all(axis=1)
    texts = (
        rows.reindex(columns=[*cell, "item", "drawn"])
        .groupby([*cell, "item"])
        .drawn.agg(["count", "nunique"])
    )
    enough &= ~(texts["count"].ge(DRAWS) & texts["nunique"].eq(1))
    return (1 - (arms["mean"]["p"] - arms["mean"]["p_predicted"]).abs()).where(enough)


def blind_scores(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """target × item → score of the predictions "always .5" and "mean p of the other dilemmas".

    Args:
        rows: Decisions of models on themselves, as in `item_scores`.
    """
    p = rows[rows.key == "p"].groupby(["target", "item"]).value.mean()
    of = p.groupby(level="target")
    others = (of.transform("sum") - p) / (of.transform("count") - 1).replace(0, np.nan)
    said, places = rows.key == "p_predicted", pd.MultiIndex.from_frame(rows[["target", "item"]])
    found = {}
    for name, guess in {
        "always .5": p.where(p.isna(), 0.5),
        "the mean of the other items": others,
    }.items():
        guessed = rows.assign(value=rows.value.where(~said, guess.reindex(places).to_numpy()))
        found[name] = item_scores(guessed).droplevel("observer")
    return found


def dilemmas_of(decisions: Sequence[Judged]) -> dict[str, Dilemma]:
    """Each dilemma of a run. An epoch that one dilemma lacks (a sample in error) counts as
    unreadable.
    """
    by_item: dict[str, list[Decision]] = defaultdict(list)
    for item, decision in decisions:
        by_item[item].append(decision)
    epochs = max(sum(d.key == "p" for d in own) for own in by_item.values())
    return {item: per_dilemma(own, epochs=epochs) for item, own in by_item.items()}


def dilemma_frames(
    decisions: Sequence[Judged], clusters: Mapping[str, str] | None = None
) -> Frames | None:
    """cot_pred of the observer's predictions of itself and of another assistant; None where the
    latter were not asked.

    Both are compared with its own rollouts. Intervals are over `clusters` of items, where there
    are.
    """
    own, other = split(decisions)
    if not other:
        return None
    acts = [(item, d) for item, d in own if d.key != "p_predicted"]
    of = clusters or {}
    return paired_frames(
        _cot_pred(own, of) if len(own) > len(acts) else {}, _cot_pred([*acts, *other], of)
    )


def _cot_pred(decisions: Sequence[Judged], clusters: Mapping[str, str]) -> dict[Place, float]:
    return {
        (clusters.get(item, item), item): dilemma.cot_pred
        for item, dilemma in dilemmas_of(decisions).items()
    }


ALOUD = 30  # words; the two lines have four


@metric_of
def calibration(scores: Scores) -> dict[str, float]:
    """All numbers of the dilemma task over all epochs; see `dilemma_numbers`."""
    decisions = [
        (str(sample.sample_id), d) for sample in scores for d in decisions_of(sample.score)
    ]
    clusters = {item: of for (item, _), (of, _) in zip(decisions, judged(scores), strict=True)}
    return dict(dilemma_numbers(decisions, clusters))


def dilemma_estimates(
    dilemmas: Sequence[Dilemma], clusters: Sequence[str] | None = None
) -> dict[str, Estimate]:
    """Means over the scored dilemmas with 95 % intervals over dilemmas, or over the cluster of
    each; empty without one.

    `cot_pred`, `cot_pred_direct`; `kl_predicted`, `kl_direct` and their paired difference `kl_gain`
    (bootstrap; direct minus predicted: above 0 the prediction beats the gut answer), all three over
    the dilemmas at which both are finite (`infinite_kl` counts the others); the same for
    `kl_smoothed_…` and `js_…`, which are always finite; `ceiling` (of cot_pred: a second run of the
    target itself).
    """
    labels = [str(i) for i in range(len(dilemmas))] if clusters is None else clusters
    unit = "dilemma" if len(set(labels)) == len(labels) else "cluster"
    scored = [(d, label) for d, label in zip(dilemmas, labels, strict=True) if not d.unscored]
    if not scored:
        return {}
    items = np.array([label for _, label in scored])
    column = {name: np.array([getattr(d, name) for d, _ in scored]) for name in _COLUMNS}
    out = {
        name: clustered_mean(column[name], items, unit=unit)
        for name in ("cot_pred", "cot_pred_direct")
    }
    for kind in KINDS:
        direct, predicted = column[f"{kind}_direct"], column[f"{kind}_predicted"]
        both = np.isfinite(direct) & np.isfinite(predicted)
        for name, values in ((f"{kind}_predicted", predicted), (f"{kind}_direct", direct)):
            out[name] = clustered_mean(values[both], items[both], unit=unit, interval="t")
        if both.any():
            gains, rng = (direct - predicted)[both], np.random.default_rng(0)
            out[f"{kind}_gain"] = bootstrap(
                lambda x: x, gains, clusters=items[both], rng=rng, unit=unit, of_means=True
            )
    out["ceiling"] = clustered_mean(1 - np.array([d.repeat for d, _ in scored]), items, unit=unit)
    return out


KINDS = ("kl", "kl_smoothed", "js")
_COLUMNS = (
    "cot_pred",
    "cot_pred_direct",
    *(f"{kind}_{arm}" for kind in KINDS for arm in ("predicted", "direct")),
)


def infinite_kl(dilemmas: Sequence[Dilemma]) -> dict[str, int]:
    """Numbers of scored dilemmas with an infinite KL: of the prediction, of the gut answer, and of
    either.
    """
    predicted, direct = (
        [math.isinf(getattr(d, name)) for d in dilemmas] for name in ("kl_predicted", "kl_direct")
    )
    either = sum(a or b for a, b in zip(predicted, direct, strict=True))
    return {"predicted": sum(predicted), "direct": sum(direct), "either": either}


def dilemma_numbers(
    decisions: Sequence[Judged], clusters: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Every number of a run by name; what is undefined is left out, never 0. Intervals are over
    `clusters` of items.

    The `dilemma_estimates` with `_low` and `_high`; `kl_infinite_predicted` and
    `kl_infinite_direct`, the dilemmas with an infinite KL, and `kl_infinite`, those that have no
    part in the means of KL for that; `baseline_half` and `baseline_mean` (always .5, and the mean p
    of the other dilemmas, as predictions) for cot_pred, `baseline_kl_…` for KL; `skill` of cot_pred
    above the better one; `n` dilemmas; `unscored` (share of dilemmas), `unscored_too_few_<arm>`,
    `unscored_degenerate`; by arm `<arm>_unscored` (share of replies) and `<arm>_unscored_<reason>`;
    `worst_case`, `best_case` of cot_pred; `reasoned_rate` of the observer's predictions,
    `direct_reasoned_rate` of the target's gut answers; where it was asked about another assistant
    too, those of `frames.frame_numbers`, which no other number counts.
    """
    of_frames = frame_numbers(dilemma_frames(decisions, clusters), "cot_pred")
    decisions, _ = split(decisions)
    if not any(d.key == "p_predicted" for _, d in decisions):  # asked about another assistant alone
        return order_for_log("cot_pred", of_frames)
    by_item = dilemmas_of(decisions)
    dilemmas, labels = (
        list(by_item.values()),
        [(clusters or {}).get(item, item) for item in by_item],
    )
    scored = [d for d in dilemmas if not d.unscored]
    out: dict[str, float] = {}
    for name, estimate in dilemma_estimates(dilemmas, labels).items():
        out |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        out |= {"stderr": estimate.se} if name == "cot_pred" else {}
    if scored:
        out |= {
            f"kl_infinite_{arm}".removesuffix("_either"): count
            for arm, count in infinite_kl(scored).items()
        }
    out |= _baselines(
        scored, [label for d, label in zip(dilemmas, labels, strict=True) if not d.unscored]
    )
    few = Counter(d.unscored for d in dilemmas if d.unscored)
    out |= {"n": len(scored), "unscored": few.total() / len(dilemmas)}
    out |= {
        f"unscored_{why}": few[why] / len(dilemmas)
        for why in (*(TOO_FEW + arm for arm in ARMS), DEGENERATE)
    }
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
    return order_for_log("cot_pred", out | of_frames)


def _baselines(scored: Sequence[Dilemma], labels: Sequence[str]) -> dict[str, float]:
    """Scores of predictions that know nothing of the dilemma; that of the mean with two dilemmas or
    more.
    """
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
    values, best = (
        np.array([d.cot_pred for d in scored]),
        max(hits.values(), key=lambda values: float(np.mean(values))),
    )
    estimate = skill(values, best, np.array(labels), unit="dilemma")
    return out | {"skill": estimate.value, "skill_low": estimate.low, "skill_high": estimate.high}


@scorer(metrics=[calibration(), counted_apart()])
def dilemma_prediction() -> Scorer:
    """P(A) of the three arms of one epoch; the comparison needs all epochs and is the metric's."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        replies = {"p": record.acts["cot"], "p_direct": record.acts["direct"]}
        replies |= {
            name.replace("predicted", "p_predicted"): reply
            for name, reply in record.answers.items()
        }
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

    Paper: answers without chain of thought. Here: a gut answer or a prediction counts as reasoned
    also when it argues in the open, in more than 30 words.
    """
    predicted = key.endswith("p_predicted")
    fault = observer_fault(reply) if predicted else target_fault(reply)
    pair = None if fault else probabilities(reply.text)
    if pair is None:
        unscored = fault or (UNPARSED if predicted else f"target_{UNPARSED}")
        return Decision(key=key, unscored=unscored, reasoned=_reasoned(key, reply))
    value = pair[0] / (pair[0] + pair[1])
    drawn = hashlib.sha256(reply.text.encode()).hexdigest()[:8] if key == "p" else None
    return Decision(
        key=key, value=value, said=f"{value:.4g}", reasoned=_reasoned(key, reply), drawn=drawn
    )


def _reasoned(key: str, reply: Reply) -> bool:
    return key != "p" and (reply.reasoned or len(words(reply.text, limit=ALOUD + 1)) > ALOUD)


def mean_conclusion(rollouts: Sequence[Reply]) -> float:
    """P(A) over rollouts, as `per_dilemma` has it; NaN with fewer than half of them readable."""
    read = [p for reply in rollouts if (p := judge("p", reply).value) is not None]
    return float(np.mean(read)) if read and 2 * len(read) >= len(rollouts) else math.nan


def explain(replies: Mapping[str, Reply], decisions: Sequence[Decision]) -> str:
    """Each arm's P(A), and the end of the replies that could not be read, for the log browser."""
    titles = {
        "p": "after reasoning, p",
        "p_direct": "gut answer, p*",
        "p_predicted": "predicted, p'",
    }
    titles[f"{OTHER}p_predicted"] = "predicted of another assistant"
    lines = []
    for decision, (key, reply) in zip(decisions, replies.items(), strict=True):
        ends = f"{decision.unscored} (reply ends: {reply.text[-200:]!r})"
        said = f"P(A) = {decision.said}" if decision.said else ends
        lines.append(f"- {titles[key]} ({reply.model}): {said}")
    return "\n".join(lines)
