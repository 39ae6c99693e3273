"""A dilemma over its epochs: P(A) of each arm averaged, then compared.

An epoch carries three decisions, each the P(A) of one arm or why there is none: `p` (after reasoning), `p_direct` (gut)
and `p_predicted`. No epoch has a score of its own. `cot_pred` is a dilemma's one value in a cross-model matrix (1 is
best; the paper's table calls it CoT Pred).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pandas as pd

from selfprobe.scorers.decision import Decision, Judged
from selfprobe.scorers.frames import Frames, Place, compared, split
from selfprobe.stats.estimate import FloatArray, js, kl, smoothed

Arm = Literal["p", "p_direct", "p_predicted"]
ARMS: tuple[Arm, ...] = ("p", "p_direct", "p_predicted")
TOO_FEW = "too_few_"  # beginning of a reason: an arm has too few readable replies
DEGENERATE, DRAWS = "degenerate", 3  # equal rollouts: this many are no accident, since rollouts argue
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
    """One dilemma over its epochs. Probabilities are of Option A; divergences in nats, of the means without smoothing.

    A mean of stated probabilities does not show how many there were: smoothing by that number, as earlier versions did,
    made KL a function of it (.08 at 2, .16 at 10 epochs, where the paper's is .19).
    """

    rollouts: int
    """Number of rollouts with a readable p."""
    p: float
    """Mean P(A) after reasoning; NaN without a readable rollout."""
    p_direct: float
    p_predicted: float
    repeat: float
    """Expected |p - p of a second run|, from random halves of the rollouts; NaN with fewer than four."""
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
        """KL(p‖p') of means drawn towards ½ as Jeffreys' prior draws those of PSEUDO rollouts: never infinite."""
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
        decisions: Decisions with the keys of ARMS, in any order; a value that is None or NaN is unscored.
        epochs: Number of epochs asked for. Default: number of decisions of the fullest arm. With fewer than half of
            them readable in any arm, the dilemma is unscored. So it is if three rollouts or more are one text: the
            model was not sampled, or ignores the seed.
    """
    decisions = list(decisions)
    drawn = [text for one in decisions if isinstance(text := getattr(one, "drawn", None), str)]
    given: dict[str, list[float]] = {arm: [] for arm in ARMS}
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
    ordered = np.sort(rollouts)  # the halves must not depend on which epoch finished first
    rng = np.random.default_rng(ordered.view(np.uint64).tolist())  # nor err the same way in every dilemma
    drawn = rng.permuted(np.tile(ordered, (SPLITS, 1)), axis=1)[:, : 2 * half]
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


def blind(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """target × item → score of the predictions "always .5" and "mean p of the other dilemmas".

    Args:
        rows: Decisions of models on themselves, as in `item_scores`.
    """
    p = rows[rows.key == "p"].groupby(["target", "item"]).value.mean()
    of = p.groupby(level="target")
    others = (of.transform("sum") - p) / (of.transform("count") - 1).replace(0, np.nan)
    said, places = rows.key == "p_predicted", pd.MultiIndex.from_frame(rows[["target", "item"]])
    found = {}
    for name, guess in {"always .5": p.where(p.isna(), 0.5), "the mean of the other items": others}.items():
        guessed = rows.assign(value=rows.value.where(~said, guess.reindex(places).to_numpy()))
        found[name] = item_scores(guessed).droplevel("observer")
    return found


def dilemmas_of(decisions: Sequence[Judged]) -> dict[str, Dilemma]:
    """Each dilemma of a run. An epoch that one dilemma lacks (a sample in error) counts as unreadable."""
    by_item: dict[str, list[Decision]] = defaultdict(list)
    for item, decision in decisions:
        by_item[item].append(decision)
    epochs = max(sum(d.key == "p" for d in own) for own in by_item.values())
    return {item: per_dilemma(own, epochs=epochs) for item, own in by_item.items()}


def frames(decisions: Sequence[Judged], clusters: Mapping[str, str] | None = None) -> Frames | None:
    """cot_pred of the observer's predictions of itself and of another assistant; None where the latter were not asked.

    Both are compared with its own rollouts. Intervals are over `clusters` of items, where there are.
    """
    own, other = split(decisions)
    if not other:
        return None
    acts = [(item, d) for item, d in own if d.key != "p_predicted"]
    of = clusters or {}
    return compared(_cot_pred(own, of) if len(own) > len(acts) else {}, _cot_pred([*acts, *other], of))


def _cot_pred(decisions: Sequence[Judged], clusters: Mapping[str, str]) -> dict[Place, float]:
    return {(clusters.get(item, item), item): dilemma.cot_pred for item, dilemma in dilemmas_of(decisions).items()}
