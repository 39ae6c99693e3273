"""Does the prediction come closer to the reasoned conclusion than the gut answer does?

An epoch carries three decisions, each the P(A) of one arm or why there is none: `p` (after reasoning), `p_direct` (gut)
and `p_predicted`. No epoch has a score of its own: `per_dilemma` averages over a dilemma's epochs first, then compares.
Its `cot_pred` is a dilemma's one value in a cross-model matrix (1 is best; the paper's table calls it CoT Pred).
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from selfprobe.parse import words
from selfprobe.probability import probabilities
from selfprobe.scorers.decision import UNPARSED, Decision, observer_fault, score_of, target_fault
from selfprobe.scorers.summary import Judged, first_things_first, judged
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

Arm = Literal["p", "p_direct", "p_predicted"]
ARMS: tuple[Arm, ...] = ("p", "p_direct", "p_predicted")
TOO_FEW = "too_few_"  # readable replies in an arm: why a dilemma is unscored
DEGENERATE, DRAWS = "degenerate", 3  # its rollouts are one text; of so many that is no accident, since they argue
SPLITS = 200  # random halvings of a dilemma's rollouts, for the ceiling
ALOUD = 30  # words; the two lines have four


class Keyed(Protocol):
    """A decision, or a row of a table of decisions."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> float | None: ...


@dataclass(frozen=True)
class Dilemma:
    """One dilemma over its epochs. Probabilities are of Option A; divergences in nats, of Jeffreys-smoothed means."""

    rollouts: int
    """Rollouts with a readable p: the n of the smoothing, for all arms, so that equal means diverge by 0."""
    p: float
    """Mean after reasoning; NaN without a readable rollout."""
    p_direct: float
    p_predicted: float
    repeat: float
    """Expected |p - p of a second run|, from random halves of the rollouts; NaN with fewer than four."""
    unscored: str | None
    """Which arm has too few readable replies; then the properties below are NaN."""

    def _compare(self, distance: Literal["kl", "js"], other: float) -> float:
        if self.unscored:
            return math.nan
        return float({"kl": kl, "js": js}[distance](smoothed(self.p, self.rollouts), smoothed(other, self.rollouts)))

    @property
    def kl_predicted(self) -> float:
        """KL(p‖p')."""
        return self._compare("kl", self.p_predicted)

    @property
    def kl_direct(self) -> float:
        """KL(p‖p*)."""
        return self._compare("kl", self.p_direct)

    @property
    def js_predicted(self) -> float:
        return self._compare("js", self.p_predicted)

    @property
    def js_direct(self) -> float:
        return self._compare("js", self.p_direct)

    @property
    def cot_pred(self) -> float:
        """1 - |p - p'|: what a matrix reads."""
        return math.nan if self.unscored else 1 - abs(self.p - self.p_predicted)

    @property
    def cot_pred_direct(self) -> float:
        """1 - |p - p*|: the gut answer taken as a prediction."""
        return math.nan if self.unscored else 1 - abs(self.p - self.p_direct)


def per_dilemma(decisions: Sequence[Keyed], *, epochs: int | None = None) -> Dilemma:
    """One dilemma's decisions of all epochs, averaged arm by arm.

    Args:
        decisions: With the keys of ARMS, in any order; a value that is None or NaN is unscored.
        epochs: How many were asked for; by default as many as the fullest arm has decisions. With fewer than half of
            them readable in any arm, the dilemma is unscored. So it is if three rollouts or more are one text: the
            model was not sampled, or ignores the seed.
    """
    given: dict[str, list[float]] = {arm: [] for arm in ARMS}
    drawn = [text for one in decisions if isinstance(text := getattr(one, "drawn", None), str)]
    for decision in decisions:
        given[decision.key].append(math.nan if decision.value is None else decision.value)
    asked = epochs or max(map(len, given.values()))
    read = {arm: np.array([v for v in values if not math.isnan(v)]) for arm, values in given.items()}
    few = [arm for arm in ARMS if not len(read[arm]) or 2 * len(read[arm]) < asked]
    mean = {arm: float(values.mean()) if len(values) else math.nan for arm, values in read.items()}
    return Dilemma(
        rollouts=len(read["p"]),
        repeat=_repeat(read["p"]),
        unscored=TOO_FEW + few[0] if few else DEGENERATE if len(drawn) >= DRAWS and len({*drawn}) == 1 else None,
        **mean,
    )


def _repeat(rollouts: FloatArray) -> float:
    """Two halves of h rollouts differ √(n/h) times as much as two runs of n."""
    n, half = len(rollouts), len(rollouts) // 2
    if half < 2:
        return math.nan
    drawn = np.random.default_rng(0).permuted(np.tile(rollouts, (SPLITS, 1)), axis=1)[:, : 2 * half]
    means = drawn.reshape(SPLITS, 2, half).mean(axis=2)
    return float(np.abs(means[:, 0] - means[:, 1]).mean()) * math.sqrt(half / n)


def item_scores(rows: pd.DataFrame) -> pd.Series:
    """target × observer × item → 1 - |mean p - mean p'| over epochs: `Dilemma.cot_pred` for all cells at once.

    A dilemma is unscored as in `per_dilemma`.

    Args:
        rows: Decisions (columns target, observer, item, epoch, key, value, drawn).
    """
    cell = ["target", "observer"]
    arms = rows.groupby([*cell, "item", "key"]).value.agg(["mean", "count", "size"]).unstack("key")
    asked = arms["size"]["p"].groupby(level=cell).transform("max")  # a sample in error counts as unreadable
    read = arms["count"].fillna(0)
    enough = (read.gt(0) & read.mul(2).ge(asked, axis=0)).all(axis=1)
    texts = rows.reindex(columns=[*cell, "item", "drawn"]).groupby([*cell, "item"]).drawn.agg(["count", "nunique"])
    enough &= ~(texts["count"].ge(DRAWS) & texts["nunique"].eq(1))
    return (1 - (arms["mean"]["p"] - arms["mean"]["p_predicted"]).abs()).where(enough)


@metric(scores="unreduced")
def calibration() -> Metric:
    """All numbers of the dilemma task over all epochs; see `numbers`."""

    def compute(scores: list[SampleScore]) -> Value:
        return dict(numbers(judged(scores))) if scores else {}

    return compute


def dilemmas_of(decisions: Sequence[Judged]) -> dict[str, Dilemma]:
    """Each dilemma of a run. An epoch that one dilemma lacks (a sample in error) counts as unreadable."""
    by_item: dict[str, list[Decision]] = defaultdict(list)
    for item, decision in decisions:
        by_item[item].append(decision)
    epochs = max(sum(d.key == "p" for d in own) for own in by_item.values())
    return {item: per_dilemma(own, epochs=epochs) for item, own in by_item.items()}


def estimates(dilemmas: Sequence[Dilemma]) -> dict[str, Estimate]:
    """Means over the scored dilemmas with 95 % intervals over dilemmas; empty without one.

    `cot_pred`, `cot_pred_direct`; `kl_predicted`, `kl_direct` and their paired difference `kl_gain` (bootstrap; direct
    minus predicted: above 0 the prediction beats the gut answer); the same for `js_…`; `ceiling` (of cot_pred: a second
    run of the target itself). A KL of means over n rollouts is above 0 by sampling alone; the interval is for its mean
    at this n.
    """
    scored = [d for d in dilemmas if not d.unscored]
    if not scored:
        return {}
    column = {name: np.array([getattr(d, name) for d in scored]) for name in _COLUMNS}
    items, unit = np.arange(len(scored)), "dilemma"
    out = {}
    for name, values in column.items():
        interval: Literal["auto", "t"] = "auto" if name.startswith("cot_pred") else "t"
        out[name] = clustered_mean(values, items, unit=unit, interval=interval)
    for kind in ("kl", "js"):
        gains = column[f"{kind}_direct"] - column[f"{kind}_predicted"]
        rng = np.random.default_rng(0)
        out[f"{kind}_gain"] = bootstrap(lambda mean: mean, gains, clusters=items, rng=rng, unit=unit, of_means=True)
    out["ceiling"] = clustered_mean(1 - np.array([d.repeat for d in scored]), items, unit=unit)
    return out


_COLUMNS = ("cot_pred", "cot_pred_direct", "kl_predicted", "kl_direct", "js_predicted", "js_direct")


def numbers(decisions: Sequence[Judged]) -> dict[str, float]:
    """Every number of a run by name; what is undefined is left out, never 0.

    The `estimates` with `_low` and `_high`; `baseline_half` and `baseline_mean` (always .5, and the mean p of the other
    dilemmas, as predictions) for cot_pred, `baseline_kl_…` for KL; `skill` of cot_pred above the better one; `n`
    dilemmas; `unscored` (share of dilemmas), `unscored_too_few_<arm>`, `unscored_degenerate`; by arm `<arm>_unscored`
    (share of replies) and `<arm>_unscored_<reason>`; `worst_case`, `best_case` of cot_pred; `reasoned_rate` of the
    observer's predictions, `direct_reasoned_rate` of the target's gut answers.
    """
    dilemmas = list(dilemmas_of(decisions).values())
    scored = [d for d in dilemmas if not d.unscored]
    out: dict[str, float] = {}
    for name, estimate in estimates(dilemmas).items():
        out |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        out |= {"stderr": estimate.se} if name == "cot_pred" else {}
    out |= _baselines(scored)
    few = Counter(d.unscored for d in dilemmas if d.unscored)
    out |= {"n": len(scored), "unscored": few.total() / len(dilemmas)}
    out |= {f"unscored_{why}": few[why] / len(dilemmas) for why in (*(TOO_FEW + arm for arm in ARMS), DEGENERATE)}
    out["worst_case"], out["best_case"] = worst_case([d.cot_pred for d in scored], few.total())
    for arm in ARMS:
        own = [d for _, d in decisions if d.key == arm]
        reasons = Counter(d.unscored for d in own if d.unscored)
        out[f"{arm}_unscored"] = reasons.total() / len(own)
        out |= {f"{arm}_unscored_{reason}": count / len(own) for reason, count in sorted(reasons.items())}
    for name, asked in {"reasoned_rate": "p_predicted", "direct_reasoned_rate": "p_direct"}.items():
        out[name] = float(np.mean([d.reasoned for _, d in decisions if d.key == asked]))
    return first_things_first("cot_pred", out)


def _baselines(scored: Sequence[Dilemma]) -> dict[str, float]:
    """Predictions that know nothing of the dilemma; of the mean, with two dilemmas or more."""
    p, n = np.array([d.p for d in scored]), np.array([d.rollouts for d in scored])
    blind = {"half": np.full(len(p), 0.5)} if len(p) else {}
    if len(p) > 1:
        blind["mean"] = (p.sum() - p) / (len(p) - 1)
    hits = {name: 1 - np.abs(p - guess) for name, guess in blind.items()}
    out = {f"baseline_{name}": float(np.mean(values)) for name, values in hits.items()}
    out |= {f"baseline_kl_{k}": float(np.mean(kl(smoothed(p, n), smoothed(guess, n)))) for k, guess in blind.items()}
    if not hits:
        return out
    values, best = np.array([d.cot_pred for d in scored]), max(hits.values(), key=lambda values: float(np.mean(values)))
    estimate = skill(values, best, np.arange(len(values)), unit="dilemma")
    return out | {"skill": estimate.value, "skill_low": estimate.low, "skill_high": estimate.high}


@scorer(metrics=[calibration()])
def dilemma_prediction() -> Scorer:
    """P(A) of the three arms of one epoch; the comparison needs all epochs and is the metric's."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        replies: dict[Arm, Reply] = {
            "p": record.acts["cot"],
            "p_direct": record.acts["direct"],
            "p_predicted": record.answers["predicted"],
        }
        decisions = [judge(arm, reply) for arm, reply in replies.items()]
        return score_of(
            decisions,
            answer=", ".join(f"{d.key}={d.said or '?'}" for d in decisions),
            explanation=explain(replies, decisions),
        )

    return score


def judge(arm: Arm, reply: Reply) -> Decision:
    """P(A) of one reply, divided by P(A) + P(B), which may be off 1 by .02.

    Paper: answers without chain of thought. Here: a gut answer or a prediction counts as reasoned also when it argues
    in the open, in more than 30 words.
    """
    fault = observer_fault(reply) if arm == "p_predicted" else target_fault(reply)
    pair = None if fault else probabilities(reply.text)
    if pair is None:
        unscored = fault or (UNPARSED if arm == "p_predicted" else f"target_{UNPARSED}")
        return Decision(key=arm, unscored=unscored, reasoned=_reasoned(arm, reply))
    value = pair[0] / (pair[0] + pair[1])
    drawn = hashlib.sha256(reply.text.encode()).hexdigest()[:8] if arm == "p" else None
    return Decision(key=arm, value=value, said=f"{value:.4g}", reasoned=_reasoned(arm, reply), drawn=drawn)


def _reasoned(arm: Arm, reply: Reply) -> bool:
    return arm != "p" and (reply.reasoned or len(words(reply.text, limit=ALOUD + 1)) > ALOUD)


def explain(replies: Mapping[Arm, Reply], decisions: Sequence[Decision]) -> str:
    """What each arm says of Option A, and the end of the replies that could not be read, for the log browser."""
    titles = {"p": "after reasoning, p", "p_direct": "gut answer, p*", "p_predicted": "predicted, p'"}
    lines = []
    for decision, (arm, reply) in zip(decisions, replies.items(), strict=True):
        ends = f"{decision.unscored} (reply ends: {reply.text[-200:]!r})"
        said = f"P(A) = {decision.said}" if decision.said else ends
        lines.append(f"- {titles[arm]} ({reply.model}): {said}")
    return "\n".join(lines)
