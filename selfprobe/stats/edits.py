"""Edits against control edits: does taking a thing out of a text move a number more than taking other text out?

The unit of a claim on a text is a cell: the prompts of one source (a template), or a prompt that has no source. Within
a cell the labels "thing" and "control" are exchanged; centre and scale come from all values of the cell together, so
exchanging leaves them as they are and the test is exact (Fisher's randomisation test with the largest statistic, as in
Westfall and Young 1993). Rates under nulls of many shapes: docs/statistics.md.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from selfprobe.stats.estimate import FloatArray

LEAST_SCALE = 0.02
"""Least scale of a cell: stated probabilities are rounded, to .05 most often."""
ALPHA = 0.05
DRAWS = 999
"""Number of exchanges of the labels."""
TIE = 1e-9
"""Largest difference of statistics that is rounding error."""


@dataclass(frozen=True)
class Control:
    """A deletion of other text in one cell."""

    change: float
    """Change of the number, the mean over the prompts of the cell."""
    hits: frozenset[str] = frozenset()
    """Things that the deletion touches."""


@dataclass(frozen=True)
class EditCell:
    """Changes by the edits of one cell."""

    things: Mapping[str, float]
    """Thing → change of the number by taking it out, the mean over the prompts of the cell."""
    controls: tuple[Control, ...]

    def without(self, names: Collection[str]) -> "EditCell":
        """The cell without some things and the controls that touch them."""
        things = {name: change for name, change in self.things.items() if name not in names}
        controls = tuple(control for control in self.controls if not control.hits & set(names))
        return EditCell(things, controls)

    @cached_property
    def studentised(self) -> FloatArray:
        """Changes of things, then of controls, centred and scaled by all of them together, [edit]."""
        changes = [*self.things.values(), *(control.change for control in self.controls)]
        values = np.array(changes, dtype=float)
        deviations = values - np.median(values)
        return np.asarray(deviations / max(LEAST_SCALE, float(np.abs(deviations).mean())))


def merged_cell(things: Mapping[str, Sequence[float]], controls: Sequence[Sequence[float]]) -> EditCell:
    """One cell of the prompts of a source that have other controls each.

    A text moves all prompts of a source alike, so the sorted changes of the prompts' controls are averaged, as if one
    control had been the k-th strongest everywhere; a thing's changes are averaged over the prompts that hold it.

    Args:
        things: Thing → changes in the prompts that hold it.
        controls: Changes by controls, one sequence a prompt; the prompt with fewest says how many count.
    """
    fewest = min(map(len, controls))
    ranked = np.array([sorted(changes, reverse=True)[:fewest] for changes in controls])
    means = ranked.mean(axis=0) if fewest else np.empty(0)
    thing_means = {name: float(np.mean(changes)) for name, changes in things.items()}
    return EditCell(thing_means, tuple(Control(float(change)) for change in means))


@dataclass(frozen=True)
class EditComparison:
    """Result of `compare_edits`."""

    p_by_thing: Mapping[str, float]
    """Thing → p that it moves the number no more than controls do; choosing the strongest is paid for. A thing that was
    shown has the p of the step at which it was."""
    shown_things: tuple[str, ...]
    """Things that are shown to move the number, in the order in which they were taken out."""
    p_anything: float
    """p that none of the things moves the number."""


def compare_edits(
    cells: Sequence[EditCell], *, rng: np.random.Generator, draws: int = DRAWS, alpha: float = ALPHA
) -> EditComparison:
    """Which things move the number more than controls do, and whether any does.

    A thing's statistic is its mean studentised change times the root of its number of cells; things of as many cells
    compete, and the least p over these classes is compared with its own distribution. What is shown is taken out,
    with the controls that touch it, and the rest is asked again.

    Args:
        cells: One a source, or a prompt without a source; cells without a thing or a control are left out.
        rng: Generator of the exchanges.
        draws: Number of exchanges.
        alpha: Level of the test.
    """
    p_by_thing: dict[str, float] = {}
    shown: list[str] = []
    p_anything = math.nan
    while True:
        kept = [cell.without(shown) for cell in cells]
        kept = [cell for cell in kept if cell.things and cell.controls]
        if not kept:
            break
        step = _exchange(kept, rng, draws)
        if math.isnan(p_anything):
            p_anything = step.p_anything
        p_by_thing.update(step.p_by_thing)
        new = sorted(name for name, p in step.p_by_thing.items() if p <= alpha)
        if not new:
            break
        shown += sorted(new, key=lambda name: step.p_by_thing[name])
    return EditComparison(p_by_thing, tuple(shown), p_anything)


def _exchange(cells: Sequence[EditCell], rng: np.random.Generator, draws: int) -> EditComparison:
    """One step of the test: every thing of these cells competes."""
    names = sorted({name for cell in cells for name in cell.things})
    column_of = {name: index for index, name in enumerate(names)}
    cell_counts = np.zeros(len(names))
    sums = np.zeros((draws + 1, len(names)))
    anything = np.zeros(draws + 1)
    for cell in cells:
        values = cell.studentised
        orders = np.argsort(rng.random((draws + 1, len(values))), axis=1)[:, : len(cell.things)]
        orders[0] = np.arange(len(cell.things))
        drawn = values[orders]
        columns = [column_of[name] for name in cell.things]
        sums[:, columns] += drawn
        cell_counts[columns] += 1
        anything += drawn.max(axis=1)
    p_anything = float((anything >= anything[0] - TIE).mean())
    if (cell_counts == 1).all():
        exact = {name: exact_p(cells, sums[0, column_of[name]]) for name in names}
        return EditComparison(exact, (), p_anything)
    statistics = sums / np.sqrt(cell_counts)
    p_values = _p_by_class(statistics, cell_counts)
    return EditComparison({name: float(p_values[column_of[name]]) for name in names}, (), p_anything)


def _p_by_class(statistics: FloatArray, cell_counts: FloatArray) -> FloatArray:
    """p of each thing from `statistics  # [draw, thing]`, whose row 0 is the real one."""
    classes = [np.flatnonzero(cell_counts == count) for count in np.unique(cell_counts)]
    largest = np.column_stack([statistics[:, members].max(axis=1) for members in classes])
    least_p = _share_reaching(largest).min(axis=1)
    p_values = np.ones(statistics.shape[1])
    for index, members in enumerate(classes):
        real = statistics[0, members]
        own_p = (largest[:, index][:, None] >= real - TIE).mean(axis=0)
        if len(classes) > 1:
            own_p = (least_p[:, None] <= own_p + 1e-12).mean(axis=0)
        p_values[members] = own_p
    return p_values


def _share_reaching(largest: FloatArray) -> FloatArray:
    """For each draw and class the share of draws that reach as much, [draw, class]."""
    count = len(largest)
    columns = []
    for values in largest.T:
        below = np.searchsorted(np.sort(values), values - TIE)
        columns.append(1 - below / count)
    return np.column_stack(columns)


def exact_p(cells: Sequence[EditCell], value: float) -> float:
    """p that the largest of the things reaches a studentised change, where each thing is in one cell: no draws."""
    p_none = 1.0
    for cell in cells:
        edits = len(cell.studentised)
        reaching = int((cell.studentised >= value - TIE).sum())
        for index in range(len(cell.things)):
            p_none *= max(edits - reaching - index, 0) / (edits - index)
    return 1 - p_none


@dataclass(frozen=True)
class ControlsNeeded:
    """Smallest numbers of controls of a cell below which a p under alpha is impossible."""

    own: int
    """To show a thing that stands in one cell."""
    shared: int
    """To show a thing that stands in all cells."""
    anything: int
    """To show that something moves the number."""


def controls_needed(things: int, cells: int, alpha: float = ALPHA) -> ControlsNeeded:
    """Numbers of controls that a cell of so many things needs, whatever the model says.

    >>> controls_needed(1, 1), controls_needed(8, 3)
    (ControlsNeeded(own=19, shared=19, anything=19), ControlsNeeded(own=152, shared=1, anything=14))
    """
    own = math.ceil(things * (1 / alpha - 1))
    shared = 1
    while things / (things + shared) ** cells > alpha:
        shared += 1
    anything = 1
    while (things / (things + anything)) ** cells > alpha:
        anything += 1
    return ControlsNeeded(own, shared, anything)


def disjoint(spans: Sequence[tuple[int, int]], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Indices of spans that do not overlap: of each group that does one is kept, drawn at random.

    Args:
        spans: Start and end of each control in its text.
        rng: Generator of the draw.
    """
    kept: list[int] = []
    for index in rng.permutation(len(spans)):
        start, end = spans[index]
        if all(end <= spans[other][0] or spans[other][1] <= start for other in kept):
            kept.append(int(index))
    return np.array(sorted(kept), dtype=np.intp)
