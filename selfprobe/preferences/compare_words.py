"""What paper 004 reads off its figures and says in words, as tables: sizes against methods, and where curves rise.

small_above_large   a small model's probe less a larger one's answers (§5.1)
drops               what adversarial subsets take from a probe and from asking (§5.4)
rise                at which share of a model's blocks its curve jumps and comes near its best (appendix A)
"""

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pandas as pd

from selfprobe.page import named
from selfprobe.sources.public_pairs import LLMBAR_NATURAL
from selfprobe.stats.estimate import Estimate

CHANCE = 0.5
NEAR = 0.9
"""A curve is near its best at this share of the way up from `CHANCE`."""
PROBES = ("supervised", "unsupervised")


def small_above_large(scores: pd.DataFrame) -> pd.DataFrame:
    """family, dataset, probe, small, large, times (as many parameters), value, low, high; F1, small less large.

    Paper: "almost always", read off figure 2. Here: each two models of a family. The interval takes both scores as
    independent (MOVER, Zou and Donner 2008); they are of the same pairs, so it is rather too wide.

    Args:
        scores: family, model, parameters, dataset (or group), method, metric, value, low, high.
    """
    column = "dataset" if "dataset" in scores else "group"
    f1 = scores[(scores.metric == "f1") & scores.value.notna() & scores.parameters.notna()]
    rows = []
    for (family, name), part in f1.groupby(["family", column], sort=False):
        by = {(row.model, row.method): row for row in part.itertuples()}
        models = part.drop_duplicates("model").sort_values("parameters")[["model", "parameters"]].to_numpy().tolist()
        for (small, few), (large, many) in combinations(models, 2):
            for probe in PROBES:
                one, other = by.get((small, probe)), by.get((large, "prompting"))
                if few < many and one is not None and other is not None:
                    of = {"family": family, column: name, "probe": probe, "small": small, "large": large}
                    rows.append(of | {"times": many / few} | _ends(mover((1, one), (-1, other))))
    return pd.DataFrame(rows)


def mover(*parts: tuple[float, Any]) -> Estimate:
    """The weighted sum of independent scores, with MOVER's interval (Zou and Donner 2008).

    Each end is as far from the sum as the parts' ends are from theirs, in quadrature.

    Args:
        parts: Each a weight and what has value, low and high: an estimate, or a row of a table.
    """
    value = sum(weight * part.value for weight, part in parts)
    down = [weight * (part.value - (part.low if weight > 0 else part.high)) for weight, part in parts]
    up = [weight * ((part.high if weight > 0 else part.low) - part.value) for weight, part in parts]
    return Estimate(value, value - math.hypot(*down), value + math.hypot(*up), 0, "question")


def _ends(found: Estimate) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def drops(adversarial: pd.DataFrame) -> pd.DataFrame:
    """model, family, subset, natural, probe, probe_drop, prompting_drop, value, low, high; F1, each with low and high.

    A drop is the score on the natural pairs less that on an adversarial subset; `value` is asking's less the probe's,
    above 0 where the probe's is the smaller one. Paper: "for all but one subset". Here: of each model and natural
    subset. The intervals take the scores as independent (`mover`); probe and asking are of the same pairs, so that
    they are rather too wide.

    Args:
        adversarial: model, family, subset, method, metric, value, low, high; empty where no run has LLMBar.
    """
    if not len(adversarial):
        return adversarial
    f1 = adversarial[(adversarial.metric == "f1") & adversarial.value.notna()]
    rows = []
    for (model, family), part in f1.groupby(["model", "family"], sort=False):
        by = {(row.subset, row.method): row for row in part.itertuples()}
        subsets = list(dict.fromkeys(part.subset))
        for natural, subset in product(subsets, subsets):
            if natural not in LLMBAR_NATURAL or subset in LLMBAR_NATURAL:
                continue
            for probe in PROBES:
                cells = [by.get((name, method)) for method in (probe, "prompting") for name in (natural, subset)]
                if any(cell is None for cell in cells):
                    continue
                own, own_hard, asked, asked_hard = cells
                lost = named("probe_drop", mover((1, own), (-1, own_hard)))
                lost |= named("prompting_drop", mover((1, asked), (-1, asked_hard)))
                of = {"model": model, "family": family, "subset": subset, "natural": natural, "probe": probe}
                found = mover((1, asked), (-1, asked_hard), (-1, own), (1, own_hard))
                rows.append(of | lost | _ends(found))
    return pd.DataFrame(rows)


def rise(depth: pd.DataFrame) -> pd.DataFrame:
    """Of each model, data set and probe: best, best_depth, jump, jump_depth, near_depth.

    `jump` is the largest rise of F1 from one read block to the next, at `jump_depth`; `near_depth` is the first block
    at which the curve has made `NEAR` of the way from chance to its best. Depths are shares of the model's blocks. NaN
    where even the best block is not shown to be above chance. Paper: in words ("a discontinuity", "by around 40-50 %").

    Args:
        depth: model, family, parameters, dataset, probe, metric, depth, value, low.
    """
    rows = []
    names = ["model", "family", "parameters", "dataset", "probe"]
    for key, part in depth[depth.metric == "f1"].groupby(names, sort=False, dropna=False):
        rows.append(dict(zip(names, key, strict=True)) | _of_curve(part.sort_values("depth")))
    return pd.DataFrame(rows)


def _of_curve(curve: pd.DataFrame) -> dict[str, float]:
    empty = {"best": math.nan, "best_depth": math.nan, "jump": math.nan, "jump_depth": math.nan, "near_depth": math.nan}
    known = curve[curve.value.notna()]
    if len(known) < 2:
        return empty
    best = known.loc[known.value.idxmax()]
    told = empty | {"best": float(best.value), "best_depth": float(best.depth)}
    if not best.low > CHANCE:
        return told
    steps = known.value.diff()
    near = known[known.value >= CHANCE + NEAR * (best.value - CHANCE)]
    return told | {
        "jump": float(steps.max()),
        "jump_depth": float(known.depth[steps.idxmax()]),
        "near_depth": float(near.depth.iloc[0]),
    }


def counted(found: pd.DataFrame) -> pd.DataFrame:
    """probe, cases, above, shown_above, shown_below of `small_above_large` or `drops`."""
    parts: Sequence[tuple[Any, pd.DataFrame]] = list(found.groupby("probe", sort=False))
    return pd.DataFrame(
        [
            {"probe": probe, "cases": len(part), "above": int((part.value > 0).sum())}
            | {"shown_above": int((part.low > 0).sum()), "shown_below": int((part.high < 0).sum())}
            for probe, part in parts
        ]
    )
