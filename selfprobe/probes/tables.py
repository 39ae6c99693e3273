"""Tidy tables of an evaluation, one row a number: what the figures and the command line show.

methods     probes against baselines and controls, at the chosen layer
layers      both probes at every layer (appendix A, figures 6 and 7)
subsets     both probes and prompting on every subset (LLMBar's adversarial ones, figure 4)
floors      what choosing among layers and signs reaches by luck
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.probes.controls import by_length, no_model, selection_floor
from selfprobe.probes.evaluate import KINDS, METRICS, Fits, Scores, own_answers
from selfprobe.stats.estimate import Estimate, bootstrap, undefined
from selfprobe.stats.rank import auroc, f1_of_counts

Logged = Mapping[str, Mapping[str, float]]
"""Method → pair id → margin, > 0: text 1."""


def estimate(
    scores: Scores,
    first_better: npt.NDArray[np.bool_],
    groups: npt.NDArray[Any],
    metric: str,
    *,
    resamples: int,
    seed: int = 0,
) -> Estimate:
    """Mean over `scores` [column, pair] (seeds, random directions; NaN: not tested) of a metric, with its interval.

    Questions are resampled, and all columns with them, so that a pair tested under several seeds counts as one.
    The interval holds for the probes as fitted; it has no part for another training half.
    """
    tested = ~np.isnan(scores).all(axis=0)
    if not tested.any():
        return undefined("no pair was tested", unit="question")
    columns, truth = scores[:, tested].T, first_better[tested]
    return bootstrap(
        {"auroc": _mean_auroc, "f1": _mean_f1, "accuracy": _mean_accuracy}[metric],
        columns if metric == "auroc" else _outcomes(columns, truth),
        truth,
        clusters=groups[tested],
        rng=np.random.default_rng(seed),
        resamples=resamples,
        unit="question",
    )


# F1 and accuracy of all columns at a time and from counts: a resample then costs microseconds.


def _outcomes(columns: Scores, truth: npt.NDArray[np.bool_]) -> Scores:
    """[pair, column, (1 said 1, 1 said 2, 1 tied, 2 said 1, 2 said 2, 2 tied)] of scores [pair, column]; NaN: none."""
    said = (columns > 0, columns < 0, columns == 0)
    kinds = [true[:, None] & answer for true in (truth, ~truth) for answer in said]
    return np.stack([kind.astype(float) for kind in kinds], axis=2)


def _mean_f1(outcomes: Scores, _: npt.NDArray[np.bool_]) -> float:
    a, b, tied_1, c, d, tied_2 = outcomes.sum(axis=0).T
    return float(np.mean(f1_of_counts([a, d], [a + c, b + d], [a + b + tied_1, c + d + tied_2])))


def _mean_accuracy(outcomes: Scores, _: npt.NDArray[np.bool_]) -> float:
    a, b, tied_1, c, d, tied_2 = outcomes.sum(axis=0).T
    with np.errstate(invalid="ignore"):
        return float(np.mean((a + d + (tied_1 + tied_2) / 2) / (a + b + tied_1 + c + d + tied_2)))


def _mean_auroc(columns: Scores, truth: npt.NDArray[np.bool_]) -> float:
    return float(np.mean([auroc(truth, column) for column in columns.T]))


def _row(found: Estimate, **names: Any) -> dict[str, Any]:
    return names | asdict(found)


def all_scores(fits: Fits, logged: Logged | None = None) -> dict[str, tuple[Scores, str]]:
    """Method → scores [column, pair] (> 0: text 1) at the chosen layer, NaN outside test halves, and a note.

    `logged`: verdicts of further methods on these pairs, see `probes.logged`.
    """
    settings, splits = fits.settings, fits.halves
    layers = {kind: fits.chosen(kind) for kind in KINDS}
    note = {kind: f"layers {sorted(set(layers[kind]))}" for kind in KINDS}
    leak = " LEAKS test labels or test texts into the fit" if settings.leaks else ""
    sign = f"{note['unsupervised']}, sign {settings.orientation}"
    unsigned = ", sign arbitrary" if settings.orientation == "none" else ""
    table: dict[str, tuple[Scores, str]] = {
        "supervised": (fits.at_chosen("supervised"), note["supervised"] + leak),
        "unsupervised": (fits.at_chosen("unsupervised"), sign + unsigned + leak),
    }
    if settings.orientation == "none":
        table["unsupervised, flipped"] = (-table["unsupervised"][0], sign + unsigned + leak)
    if settings.orders == "both":
        for kind in KINDS:
            table[f"{kind}, one order"] = (
                fits.at_chosen(kind, fits.one_order[kind]),
                "the same probes, first order only",
            )
    random = np.concatenate([fits.random[s, layer] for s, layer in enumerate(layers["supervised"])])
    table["random direction"] = (random, "same layers, sign by the training labels")
    table["no model (TF-IDF)"] = (no_model(fits.harvest.pairs, splits, folds=settings.folds), "same halves")
    table["no model (length)"] = (by_length(fits.harvest.pairs, splits), "longer or shorter, by the training half")
    own = own_answers(fits.harvest)
    log_odds = fits.harvest.log_probs[:, 0, 0].astype(float) - fits.harvest.log_probs[:, 0, 1]
    table["prompting"] = (_tested(own.mean(axis=1) - 0.5, fits), f"P(1), P(2) averaged over {own.shape[1]} orders")
    if own.shape[1] > 1:
        table["prompting, one order"] = (_tested(own[:, 0] - 0.5, fits), "first order, position bias and all")
    centred = np.stack([log_odds - np.median(log_odds[split.train]) for split in splits])
    table["prompting, one order, calibrated"] = (
        np.where(np.isnan(table["prompting"][0]), np.nan, centred),
        "less the median log-odds of the training half; no labels",
    )
    for method, margins in (logged or {}).items():
        verdicts = np.array([margins.get(pair.id, np.nan) for pair in fits.harvest.pairs])
        table[method] = (_tested(verdicts, fits), f"from logs; {int(np.isnan(verdicts).sum())} pairs without a verdict")
    return table


def _tested(scores: Scores, fits: Fits) -> Scores:
    """[pair] → [seed, pair], NaN outside the test half."""
    out = np.full((len(fits.halves), len(scores)), np.nan)
    for seed, split in enumerate(fits.halves):
        out[seed, split.test] = scores[split.test]
    return out


def methods_table(fits: Fits, *, logged: Logged | None = None) -> pd.DataFrame:
    """method, metric, value, low, high, n, unit, reason, note: probes, baselines, controls."""
    truth, groups, resamples = fits.harvest.labels == 1, fits.harvest.groups, fits.settings.resamples
    rows = [
        _row(estimate(scores, truth, groups, metric, resamples=resamples), method=method, metric=metric, note=note)
        for method, (scores, note) in all_scores(fits, logged).items()
        for metric in METRICS
    ]
    return pd.DataFrame(rows)


def layers_table(fits: Fits) -> pd.DataFrame:
    """layer, probe, metric, value, low, high …, chosen_by: share of seeds whose training half chose the layer."""
    truth, groups, rows = fits.harvest.labels == 1, fits.harvest.groups, []
    resamples = max(100, fits.settings.resamples // 5)
    for kind in KINDS:
        chosen = fits.chosen(kind)
        for layer in range(fits.harvest.identity.layers):
            for metric in ("f1", "auroc"):
                found = estimate(fits.scores[kind][:, layer], truth, groups, metric, resamples=resamples)
                share = chosen.count(layer) / len(chosen)
                rows.append(_row(found, layer=layer, probe=kind, metric=metric, chosen_by=share))
    return pd.DataFrame(rows)


def subsets_table(fits: Fits) -> pd.DataFrame:
    """subset, method, metric, value, low, high …: the test pairs of each subset apart."""
    truth, groups, rows = fits.harvest.labels == 1, fits.harvest.groups, []
    subsets = np.array([pair.subset for pair in fits.harvest.pairs])
    wanted = ("supervised", "unsupervised", "prompting", "no model (TF-IDF)", "no model (length)")
    table, resamples = all_scores(fits), fits.settings.resamples
    for subset in sorted(set(subsets.tolist())):
        inside = subsets == subset
        for method in wanted:
            scores = table[method][0][:, inside]
            for metric in ("f1", "accuracy"):
                found = estimate(scores, truth[inside], groups[inside], metric, resamples=resamples)
                rows.append(_row(found, subset=subset, method=method, metric=metric))
    return pd.DataFrame(rows)


def floors_table(fits: Fits) -> pd.DataFrame:
    """probe, metric, over, mean, high, n: the best of all layers (and both signs) with labels shuffled."""
    rows = []
    for kind in KINDS:
        for metric in ("f1", "auroc"):
            for both in (False, True):
                floor = selection_floor(
                    fits.scores[kind],
                    fits.harvest.labels == 1,
                    fits.harvest.groups,
                    both_signs=both,
                    metric=metric,
                    shuffles=2 * fits.settings.resamples // 5,
                )
                rows.append({"probe": kind} | asdict(floor))
    return pd.DataFrame(rows)


def selected_on_test(fits: Fits) -> pd.DataFrame:
    """probe, metric, value: best layer and sign picked by the test score, to be held against `floors_table`. LEAKS."""
    truth, rows = fits.harvest.labels == 1, []
    for kind in KINDS:
        for metric in ("f1", "auroc"):
            best = []
            for table in fits.scores[kind]:
                test = ~np.isnan(table).all(axis=0)
                best.append(max(METRICS[metric](truth[test], s * row[test]) for row in table for s in (1, -1)))
            rows.append({"probe": kind, "metric": metric, "value": float(np.mean(best))})
    return pd.DataFrame(rows)
