"""How often the verdict of `selfprobe check` would be another one: items or epochs drawn anew."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from selfprobe.errors import InputError
from selfprobe.logs.reducers import parts_of
from selfprobe.studies.check_numbers import WORST_FIRST, ChangeVerdict, changes_of
from selfprobe.studies.check_pairs import BaselineRun, Pair

Draw = Callable[[np.random.Generator], list[Pair]]
"""Makes new runs before and after from a random generator."""


def item_draws(pairs: Sequence[Pair]) -> Draw:
    """Draws the items of both runs anew, whole clusters with replacement."""

    def resampled_pairs(rng: np.random.Generator) -> list[Pair]:
        return [_resampled_pair(old, new, rng) for old, new in pairs]

    return resampled_pairs


def _resampled_pair(old: BaselineRun, new: BaselineRun, rng: np.random.Generator) -> Pair:
    items_by_cluster = defaultdict[str, list[str]](list)
    for item in old.items:
        items_by_cluster[new.clusters.get(item, item)].append(item)
    cluster_names = sorted(items_by_cluster)
    source_items = dict[str, str]()
    clusters = dict[str, str]()
    drawn_indices = rng.integers(len(cluster_names), size=len(cluster_names))
    for draw, index in enumerate(drawn_indices):
        cluster = cluster_names[index]
        for item in items_by_cluster[cluster]:
            drawn_item = f"{item} {draw}"
            source_items[drawn_item] = item
            clusters[drawn_item] = f"{cluster} {draw}"
    old_draw = _resampled_run(old, source_items, clusters)
    new_draw = _resampled_run(new, source_items, clusters)
    return old_draw, new_draw


def _resampled_run(
    run: BaselineRun, source_items: dict[str, str], clusters: dict[str, str]
) -> BaselineRun:
    """A run of drawn items.

    Args:
        run: The run that is drawn from.
        source_items: Name of a drawn item → item that it is.
        clusters: Name of a drawn item → name of its cluster.
    """
    items = {name: run.items[item] for name, item in source_items.items() if item in run.items}
    blind = {name: run.blind[item] for name, item in source_items.items() if item in run.blind}
    reasoned = {
        name: run.reasoned[item] for name, item in source_items.items() if item in run.reasoned
    }
    return replace(run, items=items, blind=blind, reasoned=reasoned, clusters=clusters)


def epoch_deals(runs: Sequence[BaselineRun]) -> Draw:
    """Deals the epochs of each item to a run before and one after: the model against itself.

    Raises:
        InputError: A run has one epoch.
    """
    for run in runs:
        if run.epochs < 2:
            raise InputError(
                f"--aa deals the epochs of a run to two sides, and {run.name} has one; run it with "
                "--epochs 2 or more, or compare it with --baseline FILE.json, and its items are "
                "drawn anew"
            )
        for reducer in run.reducers:
            if parts_of(reducer)[1] > run.epochs // 2:
                raise InputError(
                    f"--aa deals the {run.epochs} epochs of {run.name} to two sides, and {reducer} "
                    "needs more of them; run it with more epochs, or compare it with --baseline "
                    "FILE.json"
                )

    def dealt_pairs(rng: np.random.Generator) -> list[Pair]:
        return [_dealt_pair(run, rng) for run in runs]

    return dealt_pairs


def _dealt_pair(run: BaselineRun, rng: np.random.Generator) -> Pair:
    items_before = dict[str, Any]()
    items_after = dict[str, Any]()
    for item, values_by_key in sorted(run.items.items()):
        epoch_count = max(map(len, values_by_key.values()), default=0)
        epochs = rng.permutation(epoch_count).tolist()
        half_count = epoch_count // 2
        items_before[item] = _values_of_epochs(values_by_key, epochs[:half_count])
        items_after[item] = _values_of_epochs(values_by_key, epochs[half_count : 2 * half_count])
    run_before = replace(run, items=items_before, reasoned={})
    run_after = replace(run, items=items_after, reasoned={})
    return run_before, run_after


def _values_of_epochs(
    values_by_key: dict[str, list[float | str]], epochs: Sequence[int]
) -> dict[str, list[float | str]]:
    """The values of some epochs at each key; the first value where a key has none of them."""
    values_at_epochs = {}
    for key, epoch_values in values_by_key.items():
        present_epochs = [epoch for epoch in sorted(epochs) if epoch < len(epoch_values)]
        present_values = [epoch_values[epoch] for epoch in present_epochs]
        values_at_epochs[key] = present_values if present_values else epoch_values[:1]
    return values_at_epochs


def verdict_counts(
    draw: Draw, draw_count: int, *, smallest: float, lower: Collection[str] = ()
) -> Counter[ChangeVerdict]:
    """Number of draws in which each verdict is the worst of all rows; equal draws in every call."""
    rng = np.random.default_rng(0)
    worst_counts = Counter[ChangeVerdict]()
    for _ in range(draw_count):
        changes = changes_of(draw(rng), smallest=smallest, lower=lower)
        verdicts = [change.verdict for change in changes]
        worst_verdict = min(verdicts, key=WORST_FIRST.index, default=ChangeVerdict.CANNOT_TELL)
        worst_counts[worst_verdict] += 1
    return worst_counts
