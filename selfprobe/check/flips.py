"""How often the verdict of a gate flips: over resamples of the items, or over halves of one run's epochs."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from selfprobe.check.changes import Verdict, rows_of
from selfprobe.check.kept import Kept
from selfprobe.check.pairs import Pair
from selfprobe.errors import InputError

WORST: tuple[Verdict, ...] = ("worse", "cannot tell", "no worse", "unchanged", "better")


def worst(pairs: Sequence[Pair], *, smallest: float, lower: Collection[str] = ()) -> Verdict:
    """The worst verdict of all rows."""
    found = [row.verdict for row in rows_of(pairs, smallest=smallest, lower=lower)]
    return min(found, key=WORST.index, default="cannot tell")


def resampled(pairs: Sequence[Pair]) -> Callable[[np.random.Generator], list[Pair]]:
    """Draws the items of both runs anew, whole clusters with replacement."""
    return lambda rng: [_drawn(old, new, rng) for old, new in pairs]


def _drawn(old: Kept, new: Kept, rng: np.random.Generator) -> Pair:
    held: dict[str, list[str]] = {}
    for item in old.items:
        held.setdefault(new.clusters.get(item, item), []).append(item)
    names = sorted(held)
    picks = [(names[i], draw) for draw, i in enumerate(rng.integers(len(names), size=len(names)))]
    drawn = [(item, f"{item} {draw}", f"{name} {draw}") for name, draw in picks for item in held[name]]
    clusters = {name: cluster for _, name, cluster in drawn}

    def of(run: Kept) -> Kept:
        return replace(
            run,
            items={name: run.items[item] for item, name, _ in drawn},
            blind={name: run.blind[item] for item, name, _ in drawn if item in run.blind},
            reasoned={name: run.reasoned[item] for item, name, _ in drawn if item in run.reasoned},
            clusters=clusters,
        )

    return of(old), of(new)


def halved(runs: Sequence[Kept]) -> Callable[[np.random.Generator], list[Pair]]:
    """Deals the epochs of each item to a run before and one after: the model against itself.

    Raises:
        InputError: A run has one epoch.
    """
    for run in runs:
        if run.epochs < 2:
            raise InputError(
                f"--aa deals the epochs of a run to two sides, and {run.name} has one; run it with --epochs 2 or more, "
                "or hold it against a baseline, and its items are drawn anew"
            )
    return lambda rng: [_dealt(run, rng) for run in runs]


def _dealt(run: Kept, rng: np.random.Generator) -> Pair:
    sides: tuple[dict[str, dict[str, list[float | str]]], ...] = ({}, {})
    for item, cell in sorted(run.items.items()):
        epochs = rng.permutation(max(map(len, cell.values()), default=0))
        half = len(epochs) // 2
        for side, chosen in zip(sides, (epochs[:half], epochs[half : 2 * half]), strict=True):
            side[item] = {
                key: [given[i] for i in sorted(chosen) if i < len(given)] or given[:1] for key, given in cell.items()
            }
    before, after = (replace(run, items=side, reasoned={}) for side in sides)
    return before, after


def flips(
    draw: Callable[[np.random.Generator], list[Pair]], times: int, *, smallest: float, lower: Collection[str] = ()
) -> Counter[Verdict]:
    """How often which verdict is the worst; the same draws in every call."""
    rng = np.random.default_rng(0)
    return Counter(worst(draw(rng), smallest=smallest, lower=lower) for _ in range(times))
