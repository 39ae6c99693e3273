"""From a matrix to a claim: what it could detect, what the baselines explain, and what may be said.

Scores are `x  # [target, observer, item]` as in `selfprobe.matrix.advantage`; the claim is the one of paper 003, §4.1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.matrix.advantage import SelfAdvantage, total_weights
from selfprobe.stats.estimate import Estimate, clustered_mean


@dataclass(frozen=True)
class Verdict:
    """What the matrix says about privileged access."""

    kind: Literal["supported", "not supported", "underpowered"]
    """The finding."""
    sentence: str
    """Why, with the numbers."""
    models: tuple[str, ...] = ()
    """The models that have access (Holm-adjusted p below alpha), when supported."""


def item_sd(x: npt.ArrayLike) -> float:
    """Standard deviation over items of an item's own T, from a pilot; items with an unscored cell are left out."""
    scores = np.asarray(x, dtype=float)
    own = np.tensordot(total_weights(len(scores)), scores, 2)
    own = own[~np.isnan(own)]
    return float(own.std(ddof=1)) if len(own) > 1 else math.nan


def planned_sd(models: int, *, p0: float = 0.5, rho: float = 0.0) -> float:
    """The same without a pilot, for 0/1 scores with mean p0: sqrt(p0(1 - p0)(1 - rho)/(models - 1)).

    rho is the share of a score's variance that cells of an item have in common: through the item itself, its
    target's truth (row) or its observer's answer (column). All three cancel in T. Scores averaged over keys vary less.
    """
    if models < 2 or not 0 <= p0 <= 1 or not 0 <= rho <= 1:
        raise ValueError(f"expected models >= 2 and p0, rho in [0, 1], got {models}, {p0}, {rho}")
    return math.sqrt(p0 * (1 - p0) * (1 - rho) / (models - 1))


def power(effect: float, *, items: int, sd: float, alpha: float = 0.05) -> float:
    """Chance that T's (1 - alpha) interval lies above 0 when T is `effect`: one-sample t test, noncentral t.

    It speaks of T alone; the verdict asks for more (controls, permutation). NaN under two items.
    """
    if items < 2 or not sd > 0:
        return math.nan
    bar = special.stdtrit(items - 1, 1 - alpha / 2)
    return float(1 - special.nctdtr(items - 1, effect / sd * math.sqrt(items), bar))


def minimum_detectable(*, items: int, sd: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest T that `items` detect with this power; sd from `item_sd` or `planned_sd`. NaN under two items."""
    if items < 2 or not sd > 0:
        return math.nan
    bar = special.stdtrit(items - 1, 1 - alpha / 2)
    return float(special.nctdtrinc(items - 1, 1 - power, bar)) / math.sqrt(items) * sd


def over_baseline(x: npt.ArrayLike, hits: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean over models of self score minus a baseline's `hits  # [target, item]` on the same items, by item."""
    scores, baseline = np.asarray(x, dtype=float), np.asarray(hits, dtype=float)
    if scores.ndim != 3 or baseline.shape != (len(scores), scores.shape[2]):
        raise ValueError(f"expected hits [target, item] for scores of shape {scores.shape}, got {baseline.shape}")
    own = scores[np.arange(len(scores)), np.arange(len(scores))]
    items = np.broadcast_to(np.arange(scores.shape[2]), own.shape)
    return clustered_mean((own - baseline).ravel(), items.ravel(), interval="t", level=level)


def verdict(
    advantage: SelfAdvantage,
    *,
    capability: Estimate,
    mde: float,
    baselines: Mapping[str, Estimate] | None = None,
    smallest: float = 0.05,
    alpha: float = 0.05,
) -> Verdict:
    """Is privileged access supported, not supported, or could this matrix not tell?

    Supported: T's interval lies above 0; some model beats every other observer of it (Holm), or all do on average
    (`closest`); the permutation test agrees where it can (M >= 4; access by a few models only cannot reach it, then a
    named model stands in); the capability control and each of `baselines` (self minus baseline, `over_baseline`) lie
    above 0. Underpowered: T is undefined; or it, or a control, is not significant while `mde` exceeds the `smallest`
    advantage of interest and the interval holds that; or T is significant, but a control is undefined, as with two
    models. Else not supported.
    """
    t = advantage.total
    blind = not mde <= smallest
    size = f"the smallest advantage this size detects is {mde:.3f}, {'above' if blind else 'within'} {smallest:g}"
    if not t.low > 0:
        if math.isnan(t.low):
            return Verdict("underpowered", f"Nothing can be said: T is undefined or has no interval ({t.reason}).")
        text = f"The self advantage T = {_shown(t)} is not significantly above 0; {size}."
        return Verdict("underpowered" if blind and t.high > smallest else "not supported", text)
    named = tuple(model.model for model in advantage.models if model.p_holm < alpha)
    controls = {"over observers of like capability": capability, "over the closest other observer": advantage.closest}
    controls |= {f"over the baseline {name!r}": estimate for name, estimate in (baselines or {}).items()}
    if named:
        del controls["over the closest other observer"]
    who = f"own access of {', '.join(named)}" if named else "no single model stands out"
    head = f"The self advantage T = {_shown(t)} is above 0 ({who})"
    lost = {name: e for name, e in controls.items() if e.low <= 0}
    failed = [f"{name}: {_shown(e)}" for name, e in lost.items()]
    p = advantage.permutation.p
    if mixed := len(advantage.means) >= 4 and not p < alpha and not named:
        failed.append(f"permutation of the observers: p = {p:.3f}")
    if lost and not mixed and blind and all(e.high > smallest for e in lost.values()):
        return Verdict("underpowered", f"{head}, but not certainly {'; '.join(failed)}; {size}.")
    if failed:
        return Verdict("not supported", f"{head}, but does not survive {'; '.join(failed)}.")
    absent = [f"{name} ({e.reason})" for name, e in controls.items() if math.isnan(e.low)]
    if absent:
        return Verdict("underpowered", f"{head}, but it cannot be controlled {'; '.join(absent)}.")
    kept = "; ".join(f"{name}: {_shown(e)}" for name, e in controls.items())
    return Verdict("supported", f"{head}, permutation p = {p:.3g}, and stays {kept}.", named)


def _shown(e: Estimate) -> str:
    return f"{e.value:+.3f} [{e.low:+.3f}, {e.high:+.3f}]"
