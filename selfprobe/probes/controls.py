"""What a probe's score must be read against: no model at all, and the best of many by luck."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfprobe.data.pairs import Pair
from selfprobe.probes.fit import logistic, sign_agreement
from selfprobe.probes.layer_fit import Half, Scores
from selfprobe.stats.rank import auroc_table, f1_of_counts
from selfprobe.stats.text_only import pair_differences


def no_model(pairs: Sequence[Pair], splits: Sequence[Half], *, folds: int = 4) -> Scores:
    """Scores [seed, pair] of TF-IDF(text 1) − TF-IDF(text 2) under logistic regression on the same halves.

    Words and weights are learnt from the training half's texts alone. It sees neither question nor model. A half is
    NaN where that leaves nothing to learn, see `pair_differences`.
    """
    first, second = [p.text_1 for p in pairs], [p.text_2 for p in pairs]
    truth, groups = np.array([p.label == 1 for p in pairs]), np.array([p.group for p in pairs])
    scores = np.full((len(splits), len(pairs)), np.nan)
    for seed, split in enumerate(splits):
        x = pair_differences(first, second, split.train)
        if x is not None:
            fitted = logistic(x[split.train], truth[split.train], groups[split.train], folds=folds)
            scores[seed, split.test] = x[split.test] @ fitted.direction
    return scores


def by_length(pairs: Sequence[Pair], splits: Sequence[Half]) -> Scores:
    """Scores [seed, pair] of log(characters of text 1 / characters of text 2), its sign by the training half.

    What a direction that merely holds the length of the texts would reach.
    """
    longer = np.array([np.log((len(p.text_1) + 1) / (len(p.text_2) + 1)) for p in pairs])
    truth = np.array([p.label == 1 for p in pairs])
    scores = np.full((len(splits), len(pairs)), np.nan)
    for seed, split in enumerate(splits):
        sign = 1.0 if sign_agreement(truth[split.train], longer[split.train]) >= 0 else -1.0
        scores[seed, split.test] = sign * longer[split.test]
    return scores


@dataclass(frozen=True)
class Floor:
    """What choosing the best of several reaches when labels are shuffled."""

    metric: Literal["f1", "auroc"]
    over: str
    """What was chosen from, e.g. "30 layers, both signs"."""
    mean: float
    high: float
    """95 % of shuffles stay below."""
    n: int
    """Shuffles, over all seeds."""


def selection_floor(
    scores: Scores,
    first_better: npt.NDArray[np.bool_],
    groups: npt.NDArray[Any],
    *,
    both_signs: bool,
    metric: Literal["f1", "auroc"] = "f1",
    shuffles: int = 200,
    rng: np.random.Generator | None = None,
) -> Floor:
    """Best over layers (and signs) of `scores` [seed, layer, pair] against shuffled labels of the test half.

    A published "best layer" must beat this, not .5. Shuffling lays the labels, question by question in one random
    order, along the pairs, question by question in another: labels that go together stay together, and how often each
    label occurs is kept.
    """
    rng = rng or np.random.default_rng(0)
    best = []
    for table in scores:
        test = np.flatnonzero(~np.isnan(table).all(axis=0))
        truth = np.stack([shuffled(first_better[test], groups[test], rng) for _ in range(shuffles)])
        rated = _f1_table if metric == "f1" else auroc_table
        values = rated(truth, table[:, test])
        if both_signs:
            values = np.maximum(values, rated(truth, -table[:, test]))
        best.append(values.max(axis=0))
    found = np.concatenate(best)
    over = f"{scores.shape[1]} layers" + (", both signs" if both_signs else "")
    return Floor(metric, over, float(found.mean()), float(np.quantile(found, 0.95)), len(found))


def shuffled(
    labels: npt.NDArray[np.bool_], groups: npt.NDArray[Any], rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """`labels` moved to other questions, keeping those of a question together; see `selection_floor`."""
    _, of = np.unique(groups, return_inverse=True)
    target, source = (np.argsort(rng.permutation(of.max() + 1)[of], kind="stable") for _ in range(2))
    result = np.empty_like(labels)
    result[target] = labels[source]
    return result


def _f1_table(truth: npt.NDArray[np.bool_], scores: Scores) -> Scores:
    """Weighted F1 [layer, shuffle] of scores [layer, pair] against truth [shuffle, pair]."""
    said, true = np.stack([scores > 0, scores < 0]).astype(float), np.stack([truth, ~truth]).astype(float)
    return f1_of_counts(said @ true.swapaxes(1, 2), said.sum(axis=2)[:, :, None], true.sum(axis=2)[:, None])
