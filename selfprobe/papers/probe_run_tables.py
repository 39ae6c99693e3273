"""Tables of several probe runs that the latent-preference paper shows or counts: means over its
groups of data sets, cases, transfer, drops on LLMBar, curves by depth.

No model is asked and nothing is fitted: every number is one of a run's folder, a mean of such, or a
count of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations, product
from typing import Any

import pandas as pd

from selfprobe.data.public_pairs import DATA_SET_GROUPS, LLMBAR_NATURAL
from selfprobe.stats.estimate import Estimate, interval_numbers, undefined
from selfprobe.studies.probe_claims import estimate_of
from selfprobe.studies.probe_compare import (
    TRANSFER_NUMBERS,
    ModelRun,
    joined,
    mean_of_estimates,
    score_table,
    weighted_sum,
)
from selfprobe.studies.probe_figures import PROBE_KINDS

WAYS_OF_ASKING = ("prompting", "direct scoring", "G-Eval")
"""Pairwise comparison, and what text quality has besides (§4.3)."""
EACH_WAY_OF_ASKING = "each way of asking"
SIX_DATA_SETS = "the paper's six"
ALL_DATA_SETS = "all"
SETS_OF_GROUPS = tuple(name for set_names in DATA_SET_GROUPS.values() for name in set_names)
HIGH_F1 = 0.95
"""F1 that unsupervised probes reach on other data sets "in several cases" (§5.3)."""
CHANCE_F1 = 0.5
SHARE_NEAR_BEST = 0.9
"""A curve is near its best at this share of the way up from `CHANCE_F1`."""


def group_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """group, data_sets, method, metric, value, low, high, n, unit, reason: undefined where a data
    set is missing.
    """
    rows = []
    for run in runs:
        scores = score_table([run]).drop(columns=list(run.names))
        for group, set_names in DATA_SET_GROUPS.items():
            group_scores = scores[scores.dataset.isin(set_names)]
            for (method, metric), method_scores in group_scores.groupby(
                ["method", "metric"], sort=False
            ):
                mean = _mean_over_sets(method_scores, set_names)
                row = {
                    "group": group,
                    "data_sets": ", ".join(set_names),
                    "method": method,
                    "metric": metric,
                }
                rows.append(run.names | row | asdict(mean))
    return pd.DataFrame(rows)


def _mean_over_sets(method_scores: pd.DataFrame, set_names: Sequence[str]) -> Estimate:
    """Mean of a method's scores over all of these data sets; undefined where one is missing."""
    score_by_set = method_scores.set_index("dataset")
    missing_sets = [name for name in set_names if name not in score_by_set.index]
    if missing_sets:
        reason = f"no {', '.join(missing_sets)}"
        return undefined(reason, n=int(method_scores.n.sum()), unit="question")
    return mean_of_estimates([estimate_of(score_by_set.loc[name]) for name in set_names])


def case_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """data_sets, probe, against, metric, cases (of a model and data set), above, shown_above,
    shown_below.

    `data_sets` is `SIX_DATA_SETS` (those of figures 2 and 3, which the paper counts) or
    `ALL_DATA_SETS`. Against `EACH_WAY_OF_ASKING`, the largest of direct scoring, G-Eval and
    pairwise comparison that the run has, each pair of scores on its own: `above` is above all of
    them, `shown_above` has all of their intervals over 0, `shown_below` any below.
    """
    differences = joined(runs, "differences").dropna(subset=["value"])
    case_columns = [*runs[0].names, "dataset", "probe", "metric"]
    from_asking = differences[differences.against.isin(WAYS_OF_ASKING)]
    by_case = from_asking.groupby(case_columns, sort=False, dropna=False)
    smallest_lead = by_case.agg(value=("value", "min"), low=("low", "min"), high=("high", "min"))
    from_each = smallest_lead.reset_index().assign(against=EACH_WAY_OF_ASKING)
    counted_differences = differences[differences.against.isin((*WAYS_OF_ASKING, "unsupervised"))]
    counted_differences = pd.concat([counted_differences, from_each], ignore_index=True)
    differences_of_six = counted_differences[counted_differences.dataset.isin(SETS_OF_GROUPS)]

    rows = []
    for data_sets, cases in (
        (SIX_DATA_SETS, differences_of_six),
        (ALL_DATA_SETS, counted_differences),
    ):
        comparisons = cases.groupby(["probe", "against", "metric"], sort=False)
        for (probe, against, metric), compared_cases in comparisons:
            names = {"data_sets": data_sets, "probe": probe, "against": against, "metric": metric}
            rows.append(names | _counts_of_cases(compared_cases))
    return pd.DataFrame(rows)


def _counts_of_cases(differences: pd.DataFrame) -> dict[str, int]:
    """Number of differences, of those above 0, and of those whose interval is above or below 0."""
    return {
        "cases": len(differences),
        "above": int((differences.value > 0).sum()),
        "shown_above": int((differences.low > 0).sum()),
        "shown_below": int((differences.high < 0).sum()),
    }


def small_above_large(scores: pd.DataFrame) -> pd.DataFrame:
    """family, dataset, probe, small, large, times (as many parameters), value, low, high; F1, small
    less large.

    Paper: "almost always", read off figure 2. Here: each two models of a family. The interval takes
    both scores as independent (MOVER, Zou and Donner 2008); they are of the same pairs, so it is
    rather too wide.

    Args:
        scores: family, model, parameters, dataset, method, metric, value, low, high.
    """
    has_numbers = scores.value.notna() & scores.parameters.notna()
    f1_scores = scores[(scores.metric == "f1") & has_numbers]
    rows = []
    for (family, dataset), family_scores in f1_scores.groupby(["family", "dataset"], sort=False):
        score_by_model_and_method = {
            (score.model, score.method): score for score in family_scores.itertuples()
        }
        models_by_size = family_scores.drop_duplicates("model").sort_values("parameters")
        model_pairs = combinations(models_by_size.itertuples(), 2)
        for (small, large), probe in product(model_pairs, PROBE_KINDS):
            probe_score = score_by_model_and_method.get((small.model, probe))
            asking_score = score_by_model_and_method.get((large.model, "prompting"))
            if small.parameters == large.parameters or probe_score is None or asking_score is None:
                continue
            names = {
                "family": family,
                "dataset": dataset,
                "probe": probe,
                "small": small.model,
                "large": large.model,
                "times": large.parameters / small.parameters,
            }
            lead = weighted_sum((1, probe_score), (-1, asking_score))
            rows.append(names | _value_columns(lead))
    return pd.DataFrame(rows)


def case_counts(differences: pd.DataFrame) -> pd.DataFrame:
    """probe, cases, above, shown_above, shown_below of `small_above_large` or `drops`."""
    rows = []
    for probe, probe_differences in differences.groupby("probe", sort=False):
        rows.append({"probe": probe} | _counts_of_cases(probe_differences))
    return pd.DataFrame(rows)


def paired_transfer_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """tested_on, trained_on, metric, centre; the supervised and the unsupervised probe's value, low
    and high under that centre and under either one (`supervised_tested_value` …), and n.
    """
    transfers = joined(runs, "transfer")
    if not len(transfers):
        return transfers
    cell_columns = ["model", "family", "parameters", "tested_on", "trained_on", "metric", "centre"]
    supervised = _transfers_of_probe(transfers, "supervised", cell_columns)
    unsupervised = _transfers_of_probe(transfers, "unsupervised", cell_columns)
    return supervised.merge(unsupervised.drop(columns="n"), on=cell_columns)


def _transfers_of_probe(
    transfers: pd.DataFrame, probe: str, cell_columns: list[str]
) -> pd.DataFrame:
    scores = transfers[transfers.probe == probe][[*cell_columns, *TRANSFER_NUMBERS, "n"]]
    return scores.rename(columns={name: f"{probe}_{name}" for name in TRANSFER_NUMBERS})


def high_transfer_table(table1: pd.DataFrame) -> pd.DataFrame:
    """model, probe, cells, high, shown_high: F1 of a probe on another data set of at least
    `HIGH_F1` (§5.3).

    `high` counts numbers, `shown_high` the lower ends of their intervals.

    Args:
        table1: model, tested_on, trained_on, metric; supervised_value, supervised_low and the
            unsupervised probe's.
    """
    if not len(table1):
        return table1
    is_other_set = table1.tested_on != table1.trained_on
    transfers = table1[(table1.metric == "f1") & is_other_set]
    rows = []
    for model, model_transfers in transfers.groupby("model", sort=False):
        for probe in PROBE_KINDS:
            values = model_transfers[f"{probe}_value"]
            lower_ends = model_transfers[f"{probe}_low"]
            rows.append(
                {
                    "model": model,
                    "probe": probe,
                    "cells": int(values.notna().sum()),
                    "high": int((values >= HIGH_F1).sum()),
                    "shown_high": int((lower_ends >= HIGH_F1).sum()),
                }
            )
    return pd.DataFrame(rows)


def drops(adversarial: pd.DataFrame) -> pd.DataFrame:
    """model, family, subset, natural, probe, probe_drop, prompting_drop, value, low, high; F1, each
    with low and high.

    A drop is the score on the natural pairs less that on an adversarial subset; `value` is asking's
    less the probe's, above 0 where the probe's is the smaller one. Paper: "for all but one subset".
    Here: of each model and natural subset. The intervals take the scores as independent
    (`weighted_sum`); probe and asking are of the same pairs, so that they are rather too wide.

    Args:
        adversarial: model, family, subset, method, metric, value, low, high; empty where no run has
            LLMBar.
    """
    if not len(adversarial):
        return adversarial
    f1_scores = adversarial[(adversarial.metric == "f1") & adversarial.value.notna()]
    rows = []
    for (model, family), model_scores in f1_scores.groupby(["model", "family"], sort=False):
        score_by_subset_and_method = {
            (score.subset, score.method): score for score in model_scores.itertuples()
        }
        subsets = list(dict.fromkeys(model_scores.subset))
        natural_subsets = [subset for subset in subsets if subset in LLMBAR_NATURAL]
        adversarial_subsets = [subset for subset in subsets if subset not in LLMBAR_NATURAL]
        for natural, subset, probe in product(natural_subsets, adversarial_subsets, PROBE_KINDS):
            names = {
                "model": model,
                "family": family,
                "subset": subset,
                "natural": natural,
                "probe": probe,
            }
            columns = _drop_columns(score_by_subset_and_method, natural, subset, probe)
            if columns:
                rows.append(names | columns)
    return pd.DataFrame(rows)


def _drop_columns(
    score_by_subset_and_method: Mapping[tuple[str, str], Any], natural: str, subset: str, probe: str
) -> dict[str, float]:
    """Drops of a probe and of asking, and their difference; empty where a score is missing."""
    natural_probe = score_by_subset_and_method.get((natural, probe))
    subset_probe = score_by_subset_and_method.get((subset, probe))
    natural_asking = score_by_subset_and_method.get((natural, "prompting"))
    subset_asking = score_by_subset_and_method.get((subset, "prompting"))
    if any(score is None for score in (natural_probe, subset_probe, natural_asking, subset_asking)):
        return {}
    probe_drop = weighted_sum((1, natural_probe), (-1, subset_probe))
    asking_drop = weighted_sum((1, natural_asking), (-1, subset_asking))
    difference = weighted_sum(
        (1, natural_asking), (-1, subset_asking), (-1, natural_probe), (1, subset_probe)
    )
    return {
        **interval_numbers("probe_drop", probe_drop),
        **interval_numbers("prompting_drop", asking_drop),
        **_value_columns(difference),
    }


def depth_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """The runs' layers, with `depth`: the block's number (the first is 1) as a share of the model's
    blocks.
    """
    layers = joined(runs, "layers")
    block_counts = {run.model: run.blocks for run in runs}
    return layers.assign(depth=(layers.layer + 1) / layers.model.map(block_counts))


def rise(depth: pd.DataFrame) -> pd.DataFrame:
    """Table of each model, data set and probe: best, best_depth, jump, jump_depth, near_depth.

    `jump` is the largest rise of F1 from one read block to the next, at `jump_depth`; `near_depth`
    is the first block at which the curve has made `SHARE_NEAR_BEST` of the way from chance to its
    best. Depths are shares of the model's blocks. NaN where even the best block is not shown to be
    above chance. Paper: in words ("a discontinuity", "by around 40-50 %").

    Args:
        depth: model, family, parameters, dataset, probe, metric, depth, value, low.
    """
    rows = []
    key_columns = ["model", "family", "parameters", "dataset", "probe"]
    f1_scores = depth[depth.metric == "f1"]
    for key, curve in f1_scores.groupby(key_columns, sort=False, dropna=False):
        names = dict(zip(key_columns, key, strict=True))
        rows.append(names | _rise_of_curve(curve.sort_values("depth")))
    return pd.DataFrame(rows)


def _rise_of_curve(curve: pd.DataFrame) -> dict[str, float]:
    columns = dict.fromkeys(("best", "best_depth", "jump", "jump_depth", "near_depth"), math.nan)
    scores = curve[curve.value.notna()]
    if len(scores) < 2:
        return columns
    best_block = scores.loc[scores.value.idxmax()]
    columns |= {"best": float(best_block.value), "best_depth": float(best_block.depth)}
    if not best_block.low > CHANCE_F1:
        return columns

    steps = scores.value.diff()
    score_near_best = CHANCE_F1 + SHARE_NEAR_BEST * (best_block.value - CHANCE_F1)
    blocks_near_best = scores[scores.value >= score_near_best]
    return columns | {
        "jump": float(steps.max()),
        "jump_depth": float(scores.depth[steps.idxmax()]),
        "near_depth": float(blocks_near_best.depth.iloc[0]),
    }


def _value_columns(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def mean_gaps(groups: pd.DataFrame) -> Iterator[str]:
    probe_means = groups[groups.method.isin(PROBE_KINDS)]  # a judge may learn from some sets alone
    is_incomplete = probe_means.reason.fillna("").str.startswith("no ")
    incomplete_means = probe_means[is_incomplete]
    keys = ["group", "model", "reason"]
    for (group, model, reason), _ in incomplete_means.groupby(keys, sort=False):
        yield f"{model} has {reason}: no mean over {group}, which takes {', '.join(DATA_SET_GROUPS[group])}."
