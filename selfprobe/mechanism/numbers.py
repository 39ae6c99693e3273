"""Numbers of lens and attention: means by layer, the block where two arms part, paired differences by head.

Arrays in, tables out; the unit is the dilemma.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from selfprobe.mechanism.prompts import ARMS
from selfprobe.mechanism.reading import MEASURES, Reading
from selfprobe.stats.estimate import clustered_mean, holm, two_sided

FloatArray = npt.NDArray[np.float64]

PAIRS = (("introspective", "direct"), ("control", "direct"), ("introspective", "control"), ("introspective", "other"))
"""What is compared, first less second: the paper's, what an irrelevant text does, and what is left beside controls."""

SCALES = ("entropy", "over ln N", "without the first token", "over ln (N − 1), without the first token")
RESAMPLES = 2000
SHOWABLE = 6
"""Dilemmas whose random signs can give a p below .05: 2 / 2⁶ is. So many a bootstrapped interval needs, too."""
UNIT = "dilemma"


@dataclass(frozen=True)
class Parting:
    """Where two arms part: the single step that fits the size of the mean difference over layers best."""

    block: float
    """The first block after the step, from 0; NaN where they are not shown to differ at any, or one alone was read."""
    low: float
    high: float
    """Ends of the 95 % bootstrap interval over dilemmas."""
    p: float
    """Of no difference at any block: random signs of whole dilemmas, the largest of all blocks."""
    n: int
    fit: float = math.nan
    """Share of the squares between blocks that the step explains: 1 is a clean step."""


def arm(name: str) -> int:
    """The place of an arm in a reading's arrays."""
    return list(ARMS).index(name)


def lens_table(readings: Mapping[str, Reading], numbers: Sequence[int]) -> pd.DataFrame:
    """block, what (an arm, or `a − b`), value, low, high, n: mean logit of A less that of B, clustered by dilemma."""
    names = list(readings)
    values = np.stack([reading.lens for reading in readings.values()]).astype(float)  # [dilemma, arm, layer]
    columns = {name: values[:, arm(name)] for name in ARMS}
    columns |= {f"{a} − {b}": values[:, arm(a)] - values[:, arm(b)] for a, b in PAIRS}
    rows = [
        {"block": block, "what": what} | asdict(clustered_mean(by[:, at], names, unit=UNIT, interval="t"))
        for what, by in columns.items()
        for at, block in enumerate(numbers)
    ]
    return pd.DataFrame(rows)


def partings(readings: Mapping[str, Reading], numbers: Sequence[int]) -> pd.DataFrame:
    """what, block, low, high, p, n, fit: the block where the arms of each pair part."""
    values = np.stack([readings[name].lens for name in sorted(readings)]).astype(float)
    rows = []
    for a, b in PAIRS:
        found = parting(values[:, arm(a)] - values[:, arm(b)], numbers, rng=np.random.default_rng(0))
        rows.append({"what": f"{a} − {b}"} | asdict(found))
    return pd.DataFrame(rows)


def parting(differences: FloatArray, numbers: Sequence[int], *, rng: np.random.Generator) -> Parting:
    """The step in the size of the mean of `differences  # [dilemma, layer]`: least squares of two constants (Bai 1997).

    Of the size, as the sign may change from block to block. A size that rises slowly has its step in the middle of the
    rise. p draws the signs of whole dilemmas, which keeps how blocks go together; the interval draws dilemmas.
    """
    n, layers = differences.shape
    if n < 2:
        return Parting(math.nan, math.nan, math.nan, math.nan, n)
    length = np.sqrt((differences**2).mean(axis=0))
    scaled_down = differences / np.where(length > 0, length, 1.0)
    signs = rng.choice([-1.0, 1.0], size=(RESAMPLES, n))
    largest = np.abs(scaled_down.mean(axis=0)).max()
    chance = np.abs(signs @ scaled_down / n).max(axis=1)
    p = float((1 + np.count_nonzero(chance >= largest * (1 - 1e-9))) / (1 + RESAMPLES))
    if p > 0.05 or layers < 2:
        return Parting(math.nan, math.nan, math.nan, p, n)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) @ differences / n
    curve = np.abs(differences.mean(axis=0))
    at = int(_step(curve[None])[0])
    left = at * curve[:at].var() + (layers - at) * curve[at:].var()
    fit = float(1 - left / (layers * curve.var())) if curve.var() > 0 else math.nan
    low, high = np.quantile(_step(np.abs(drawn)), [0.025, 0.975], method="nearest")
    return Parting(numbers[at], numbers[int(low)], numbers[int(high)], p, n, fit)


def _step(curves: FloatArray) -> npt.NDArray[np.intp]:
    """Of each of `curves  # [curve, layer]` the first layer after the step that explains most squares."""
    layers = curves.shape[1]
    before = np.cumsum(curves, axis=1)[:, :-1]
    total = curves.sum(axis=1, keepdims=True)
    size = np.arange(1, layers)
    return 1 + np.asarray((before**2 / size + (total - before) ** 2 / (layers - size)).argmax(axis=1))


def scaled(readings: Mapping[str, Reading]) -> dict[str, FloatArray]:
    """Scale → entropy [dilemma, arm, layer, head] of the last token's pattern: `SCALES`."""
    measured = np.stack([reading.attention for reading in readings.values()]).astype(float)
    seen = np.stack([reading.tokens for reading in readings.values()]).astype(float)[:, :, None, None]
    plain, rest = (measured[:, :, MEASURES.index(name)] for name in ("entropy", "rest"))
    return dict(zip(SCALES, (plain, plain / np.log(seen), rest, rest / np.log(seen - 1)), strict=True))


def attention_table(readings: Mapping[str, Reading], numbers: Sequence[int]) -> pd.DataFrame:
    """block, what, scale, value, low, high, p, n: paired differences of entropy, mean over the heads of a block.

    p: paired t over dilemmas, as the paper's.
    """
    names, rows = list(readings), []
    for scale, entropies in scaled(readings).items():
        by_block = entropies.mean(axis=3)  # [dilemma, arm, layer]
        for a, b in PAIRS:
            paired = by_block[:, arm(a)] - by_block[:, arm(b)]
            for at, block in enumerate(numbers):
                found = clustered_mean(paired[:, at], names, unit=UNIT, interval="t")
                of = {"block": block, "what": f"{a} − {b}", "scale": scale}
                rows.append(of | asdict(found) | {"p": two_sided(found)})
    return pd.DataFrame(rows)


def heads_table(readings: Mapping[str, Reading], numbers: Sequence[int]) -> pd.DataFrame:
    """block, head, what, scale, value, p, holm, n: paired differences of entropy; Holm over all heads of a comparison.

    A head whose entropy never differs has no p, and is no member of the family.
    """
    n, tables = len(readings), []
    for scale, entropies in scaled(readings).items():
        for a, b in PAIRS:
            paired = entropies[:, arm(a)] - entropies[:, arm(b)]  # [dilemma, layer, head]
            mean = paired.mean(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                error = paired.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(mean.shape, math.nan)
                told = np.where(error > 1e-9 * np.maximum(np.abs(mean), 1e-3), np.abs(mean) / error, math.nan)
            p = 2 * stats.t.sf(told, n - 1)
            blocks, heads = np.meshgrid(numbers, np.arange(mean.shape[1]), indexing="ij")
            columns = {"block": blocks, "head": heads, "value": mean, "p": p, "holm": holm(p.ravel())}
            table = pd.DataFrame({name: np.ravel(column) for name, column in columns.items()})
            tables.append(table.assign(what=f"{a} − {b}", scale=scale, n=n))
    return pd.concat(tables, ignore_index=True)


def places_table(readings: Mapping[str, Reading], numbers: Sequence[int]) -> pd.DataFrame:
    """block, arm, place, value, low, high, n: where the last token looks, mean over heads (Figure 6, §5.2's .059)."""
    names, rows = list(readings), []
    measured = np.stack([reading.attention for reading in readings.values()]).astype(float).mean(axis=4)
    first, own, shared = (measured[:, :, MEASURES.index(name)] for name in ("first", "own", "shared"))
    places = {"first token": first, "dilemma": shared, "instruction": 1 - first - own - shared, "itself": own}
    for name in ARMS:
        for place, weights in places.items():
            for at, block in enumerate(numbers):
                found = clustered_mean(weights[:, arm(name), at], names, unit=UNIT, interval="t")
                rows.append({"block": block, "arm": name, "place": place} | asdict(found))
    return pd.DataFrame(rows)
