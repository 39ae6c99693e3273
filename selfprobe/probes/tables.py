"""Tidy tables of an evaluation, one row per number: the source of the figures and the command line's output.

methods     probes against baselines and controls, at the chosen layer
differences each probe less asking and less each control, on the same pairs
layers      both probes at every layer (appendix A, figures 6 and 7)
subsets     both probes and prompting on every subset (LLMBar's adversarial ones, figure 4)
aspects     the same by aspect (SummEval, NEWSROOM, HANNA), and their mean
floors      what choosing among layers and signs reaches by luck
rounding    by block, of states read in half precision
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from selfprobe.data.pairs import Pair
from selfprobe.data.public_pairs import PairSet
from selfprobe.probes.evaluate import METRICS, Fits, at, by_length, fitted_apart, own_answers, selection_floor
from selfprobe.probes.fit import BoolArray, features, parse_orientation, principal
from selfprobe.probes.intervals import estimate
from selfprobe.probes.layer_fit import KINDS, RANDOM_DIRECTIONS, Scores
from selfprobe.probes.rate import DIRECT, G_EVAL
from selfprobe.stats.estimate import Estimate, clustered_mean

Logged = Mapping[str, Mapping[str, float]]
"""Method → pair id → margin, > 0: text 1; 0 is a tie."""
MEAN_OF_ASPECTS = "mean of aspects"


class MethodScores(NamedTuple):
    """One method's scores on the test halves."""

    scores: Scores
    """[column, pair], > 0: text 1; NaN outside the test half. A column is a half, or a random direction of one."""
    note: str
    learnt: BoolArray | None = None
    """[column, pair]: whether a column's fit saw the pair's label; None: no fit saw any."""


def _row(found: Estimate, **names: Any) -> dict[str, Any]:
    return names | asdict(found)


def all_scores(fits: Fits, logged: Logged | None = None) -> dict[str, MethodScores]:
    """Every method by its name, at the chosen layer.

    `logged`: margins of further methods on these pairs, see `Logged`.
    """
    return _probes(fits) | _controls(fits) | _asked(fits, logged or {})


def _probes(fits: Fits) -> dict[str, MethodScores]:
    settings = fits.settings
    note = {kind: f"layers {fits.numbered(fits.chosen(kind))}" for kind in KINDS}
    leak = " LEAKS test labels or test texts into the fit" if settings.leaks else ""
    way, _ = parse_orientation(settings.orientation)
    labelled = max(len(half.few) for half in fits.halves)  # a small training half has fewer than asked for
    alone = f"; sign and layer come from these {labelled} labels" if way == "few" and settings.layer == "train" else ""
    sign = f"{note['unsupervised']}, sign {settings.orientation}{alone}"
    unsigned = ", sign arbitrary" if way == "none" else ""
    seen = {kind: fits.labels_seen(kind) for kind in KINDS}
    if apart := fitted_apart(fits.harvest.pairs, settings):
        leak = f"; mean of {len(apart)} aspects, a probe each{leak}"
    table = {
        "supervised": MethodScores(fits.at_chosen("supervised"), note["supervised"] + leak, seen["supervised"]),
        "unsupervised": MethodScores(fits.at_chosen("unsupervised"), sign + unsigned + leak, seen["unsupervised"]),
    }
    if way == "none":
        table["unsupervised, flipped"] = table["unsupervised"]._replace(scores=-table["unsupervised"].scores)
    if way == "few":
        layers = fits.best(fits.few_score)
        few = MethodScores(
            at(fits.few, layers), f"layers {fits.numbered(layers)}, chosen by these labels", seen["unsupervised"]
        )
        table[f"supervised, the same {labelled} labels"] = few
    if settings.orders == "both":
        for kind in KINDS:
            one = fits.at_chosen(kind, fits.one_order[kind])
            table[f"{kind}, one order"] = MethodScores(one, "the same probes, first order only", seen[kind])
    return table


def _controls(fits: Fits) -> dict[str, MethodScores]:
    pairs, splits, seen = fits.harvest.pairs, fits.halves, fits.labels_seen("supervised")
    random = np.concatenate(list(at(fits.random, fits.chosen("supervised"))))
    signed = np.repeat(seen, RANDOM_DIRECTIONS, axis=0)
    table = {"random direction": MethodScores(random, "same layers, sign by the training labels", signed)}
    if fits.untrained is not None:
        for kind in KINDS:
            scores = _aligned(fits.untrained.at_chosen(kind), fits.untrained.harvest.pairs, pairs)
            layers = f"the same fit to the same architecture, layers {fits.numbered(fits.untrained.chosen(kind))}"
            table[f"random weights, {kind}"] = MethodScores(scores, layers, fits.labels_seen(kind))
    table["no model (TF-IDF)"] = MethodScores(fits.words, "same halves", seen)
    table["no model (length)"] = MethodScores(by_length(pairs, splits), "longer or shorter, by the training half", seen)
    return table


def _asked(fits: Fits, logged: Logged) -> dict[str, MethodScores]:
    own = own_answers(fits.harvest)
    log_odds = fits.harvest.log_probs[:, 0, 0].astype(float) - fits.harvest.log_probs[:, 0, 1]
    mean = _tested(own.mean(axis=1) - 0.5, fits)
    table = {"prompting": MethodScores(mean, f"P(1), P(2) averaged over {own.shape[1]} orders")}
    if own.shape[1] > 1:
        table["prompting, one order"] = MethodScores(
            _tested(own[:, 0] - 0.5, fits), "first order, position bias and all"
        )
    centred = np.stack([log_odds - np.median(log_odds[split.train]) for split in fits.halves])
    table["prompting, one order, calibrated"] = MethodScores(
        np.where(np.isnan(mean), np.nan, centred), "less the median log-odds of the training half; no labels"
    )
    for method, margins in logged.items():
        verdicts = np.array([margins.get(pair.id, np.nan) for pair in fits.harvest.pairs])
        missing, ties = int(np.isnan(verdicts).sum()), int((verdicts == 0).sum())
        note = f"1 to 5, each text alone; {ties} ties" if method in (DIRECT, G_EVAL) else "from logs"
        table[method] = MethodScores(_tested(verdicts, fits), f"{note}; {missing} pairs without a verdict")
    return table


def _tested(scores: Scores, fits: Fits) -> Scores:
    """[pair] → [seed, pair], NaN outside the test half."""
    out = np.full((len(fits.halves), len(scores)), np.nan)
    for seed, split in enumerate(fits.halves):
        out[seed, split.test] = scores[split.test]
    return out


def _aligned(scores: Scores, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> Scores:
    """[column, pair] of `pairs` → of `wanted`, NaN where one is not among `pairs`."""
    place = {pair.id: i for i, pair in enumerate(pairs)}
    at_end = np.column_stack([scores, np.full(len(scores), np.nan)])
    return at_end[:, [place.get(pair.id, -1) for pair in wanted]]


def _estimate(
    fits: Fits, method: MethodScores, metric: str, *, less: MethodScores | None = None, inside: BoolArray | None = None
) -> Estimate:
    """A metric of a method, or of its paired difference from another, on all pairs or those `inside`."""
    scores = method.scores if inside is None else np.where(inside, method.scores, np.nan)
    truth, groups, learnt = fits.harvest.labels == 1, fits.harvest.groups, method.learnt
    resamples, other = fits.settings.resamples, None if less is None else less.scores
    return estimate(scores, truth, groups, metric, resamples=resamples, learnt=learnt, less=other)


def methods_table(fits: Fits, *, logged: Logged | None = None) -> pd.DataFrame:
    """method, metric, value, low, high, n, unit, reason, note: probes, baselines, controls."""
    rows = [
        _row(_estimate(fits, method, metric), method=name, metric=metric, note=method.note)
        for name, method in all_scores(fits, logged).items()
        for metric in METRICS
    ]
    return pd.DataFrame(rows)


def differences_table(fits: Fits, *, logged: Logged | None = None) -> pd.DataFrame:
    """probe, against, metric, value, low, high …: a probe less asking, a control or a logged method, on the same pairs.

    Random weights are compared kind with kind, and the supervised probe with the unsupervised one too.
    """
    table, rows = all_scores(fits, logged), []
    for kind in KINDS:
        others = ("prompting", "prompting, one order, calibrated", "no model (length)", "no model (TF-IDF)")
        for other in (*others, "unsupervised", f"random weights, {kind}", *(logged or {})):
            if other in table and other != kind:
                for metric in METRICS:
                    found = _estimate(fits, table[kind], metric, less=table[other])
                    rows.append(_row(found, probe=kind, against=other, metric=metric))
    return pd.DataFrame(rows)


def layers_table(fits: Fits) -> pd.DataFrame:
    """layer, probe, metric, value, low, high …, chosen_by: share of seeds whose training half chose the layer."""
    truth, groups, rows = fits.harvest.labels == 1, fits.harvest.groups, []
    resamples = max(100, fits.settings.resamples // 5)
    for kind in KINDS:
        chosen, learnt = fits.chosen(kind), fits.labels_seen(kind)
        for layer in range(fits.harvest.identity.layers):
            for metric in ("f1", "auroc"):
                scores = fits.scores[kind][:, layer]
                found = estimate(scores, truth, groups, metric, resamples=resamples, learnt=learnt)
                share = chosen.count(layer) / len(chosen)
                rows.append(_row(found, layer=fits.harvest.layers[layer], probe=kind, metric=metric, chosen_by=share))
    return pd.DataFrame(rows)


def subsets_table(fits: Fits) -> pd.DataFrame:
    """subset, method, metric, value, low, high …: numbers of each subset's test pairs."""
    return _by_part(fits, "subset", [pair.subset for pair in fits.harvest.pairs])


def aspects_table(fits: Fits) -> pd.DataFrame:
    """aspect, method, metric, value, low, high …: numbers of each aspect's test pairs, and `MEAN_OF_ASPECTS`.

    Probes learnt from all aspects or from each one, by the settings. The table is empty where the data have no aspects.
    """
    aspects = [pair.aspect for pair in fits.harvest.pairs]
    return _by_part(fits, "aspect", aspects, mean=MEAN_OF_ASPECTS) if any(aspects) else pd.DataFrame()


def _by_part(fits: Fits, column: str, names: Sequence[str], *, mean: str = "") -> pd.DataFrame:
    """Numbers of each part's test pairs; `mean`: name of a last row with their unweighted mean."""
    wanted = ("supervised", "unsupervised", "prompting", "no model (TF-IDF)", "no model (length)")
    table, parts, rows = all_scores(fits), np.array(names), []
    table = {method: table[method] for method in (*wanted, *(f"random weights, {k}" for k in KINDS)) if method in table}
    each = [parts == name for name in sorted(set(names))]
    for inside in (*each, None) if mean else each:
        for name, method in table.items():
            given = method if inside is not None else _repeated(method, each)
            for metric in ("f1", "accuracy", "auroc"):
                found = _estimate(fits, given, metric, inside=inside)
                part = mean if inside is None else str(parts[inside][0])
                rows.append(_row(found, **{column: part}, method=name, metric=metric))
    return pd.DataFrame(rows)


def _repeated(method: MethodScores, each: Sequence[BoolArray]) -> MethodScores:
    """The columns of a method once per part, on its pairs alone: their mean is the mean over parts."""
    scores = np.concatenate([np.where(inside, method.scores, np.nan) for inside in each])
    return MethodScores(scores, method.note, None if method.learnt is None else np.tile(method.learnt, (len(each), 1)))


def floors_table(fits: Fits) -> pd.DataFrame:
    """probe, metric, over, mean, high, n: the best of all layers (and both signs) with shuffled labels."""
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


def data_table(fits: Mapping[str, Fits], sets: Mapping[str, PairSet]) -> pd.DataFrame:
    """dataset, origin, pairs, ties, left_out, scored, unscored, reasons, humans_agree, humans_low, humans_high.

    The last three columns are filled where a data set has single votes (MT-Bench): how often two judges agree, with an
    interval by question, over the whole set.
    """
    rows = []
    for name, given in sets.items():
        read, agreed = fits[name].harvest, given.agreements
        by_question = clustered_mean([a for _, a in agreed], [question for question, _ in agreed], unit="question")
        rows.append(
            {"dataset": name, "origin": given.origin, "pairs": len(given.pairs), "ties": given.ties}
            | {"left_out": given.left_out, "scored": len(read.pairs), "unscored": len(read.unscored)}
            | {"reasons": "; ".join(sorted({reason.split(":")[0] for reason in read.unscored.values()}))}
            | {"humans_agree": by_question.value, "humans_low": by_question.low, "humans_high": by_question.high}
        )
    return pd.DataFrame(rows)


def rounding_table(fits: Fits) -> pd.DataFrame:
    """layer, rounding: φ⁺ − φ⁻'s rounding as a share of its spread; see `Harvest.rounding`. Empty for float32."""
    harvest = fits.harvest
    rounding = () if harvest.identity.dtype == "float32" else harvest.rounding
    return pd.DataFrame({"layer": harvest.layers[: len(rounding)], "rounding": rounding})


def selected_on_test(fits: Fits) -> pd.DataFrame:
    """probe, metric, value: best layer and sign by the test score, to be compared with `floors_table`. LEAKS."""
    truth, rows = fits.harvest.labels == 1, []
    for kind in KINDS:
        for metric in ("f1", "auroc"):
            best = []
            for table in fits.scores[kind]:
                test = ~np.isnan(table).all(axis=0)
                best.append(max(METRICS[metric](truth[test], s * row[test]) for row in table for s in (1, -1)))
            rows.append({"probe": kind, "metric": metric, "value": float(np.mean(best))})
    return pd.DataFrame(rows)


def components_table(fits: Fits) -> pd.DataFrame:
    """pair, aspect, group, preferred (1, 2), half (train, test), layer, first, second, share_first, share_second.

    Paper: one picture, of Llama 3.1 70B on MT-Bench, with all pairs fitted. Here: split 0's training half gives the
    means and both components, at the layer of its unsupervised probe, whose direction is the first one with its sign;
    all pairs are shown, so that those of the test half are new to it (of the first aspect, where each has its own
    probe). Shares are of the variance of all pairs shown.
    """
    layer = fits.chosen("unsupervised")[0]
    probe, half, harvest = fits.probes["unsupervised"][0][layer], fits.halves[0], fits.harvest
    rows = [i for i, pair in enumerate(harvest.pairs) if half.aspect in ("", pair.aspect)]
    pairs, learnt = [harvest.pairs[i] for i in rows], np.isin(rows, half.train)
    x = features(harvest.layer(probe.layer)[rows], probe.mean_plus, probe.mean_minus, orders=probe.orders)
    along = x @ probe.direction
    rest = x - along[:, None] * probe.direction
    second = principal(rest[learnt], symmetric=probe.orders == "both")
    total = float(x.var(axis=0).sum()) or 1.0
    return pd.DataFrame(
        {
            "pair": [pair.id for pair in pairs],
            "aspect": [pair.aspect for pair in pairs],
            "group": [pair.group for pair in pairs],
            "preferred": harvest.labels[rows],
            "half": np.where(learnt, "train", "test"),
            "layer": probe.layer,
            "first": along,
            "second": x @ second,
            "share_first": float(along.var()) / total,
            "share_second": float((x @ second).var()) / total,
        }
    )
