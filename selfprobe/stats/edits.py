"""Edits against control edits: does taking a thing out of a text move a number more than taking
other text out?

The unit of a claim on a text is a cell: the prompts of one source (a template), or without sources
the prompts that are joined by a text that is taken out of several. Within a cell the labels "thing"
and "control" are exchanged; centre and scale come from all values of the cell together, so
exchanging leaves them as they are and the test is exact (Fisher's randomisation test with the
largest statistic, as in Westfall and Young 1993). Rates under nulls of many shapes:
docs/statistics.md.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from selfprobe.stats.claim import ALPHA
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean

LEAST_SCALE = 0.02
"""Least scale of a cell: stated probabilities are rounded, to .05 most often."""
EDIT_DRAWS = 999
"""Number of exchanges of the labels."""
STATISTIC_TIE = 1e-9
"""Largest difference of statistics that is rounding error."""


@dataclass(frozen=True)
class EditCell:
    """Changes by the edits of one cell."""

    things: Mapping[str, float]
    """Thing → change of the number by taking it out, the mean over the prompts of the cell."""
    controls: tuple[float, ...]
    """Change by each control, the mean over the prompts of the cell."""

    def without(self, names: Collection[str]) -> "EditCell":
        """The cell without some things."""
        things = {name: change for name, change in self.things.items() if name not in names}
        return EditCell(things, self.controls)

    @property
    def control_centre(self) -> float:
        """Median change by controls."""
        return float(np.median(self.controls))

    @property
    def strongest_beyond_controls(self) -> str:
        """The thing with the largest change, if that is above every control's; else ""."""
        name = max(self.things, key=lambda thing: self.things[thing])
        return name if self.things[name] > max(self.controls) else ""

    @cached_property
    def studentised(self) -> FloatArray:
        """Changes of things, then of controls, centred and scaled by all of them, [edit]."""
        values = np.array([*self.things.values(), *self.controls], dtype=float)
        deviations = values - np.median(values)
        return np.asarray(deviations / max(LEAST_SCALE, float(np.abs(deviations).mean())))


@dataclass(frozen=True)
class PromptEdits:
    """Changes by the edits of one prompt."""

    source: str
    """Source of the prompt; "" where none is named."""
    things: Mapping[str, float]
    """Thing → change of the number by taking it out; NaN where it is unknown."""
    controls: tuple[tuple[str, float], ...]
    """Text of each control and its change, in an order that has nothing to do with the changes."""

    @property
    def known(self) -> "PromptEdits":
        """The edits with a known change."""
        things = {name: change for name, change in self.things.items() if not math.isnan(change)}
        controls = tuple((text, change) for text, change in self.controls if not math.isnan(change))
        return PromptEdits(self.source, things, controls)


def cell_labels(prompts: Sequence[PromptEdits]) -> list[str]:
    """The cell of each prompt: its source where several are named, else the prompts that it shares
    a thing with.

    A sentence that stands in ten prompts is not ten independent tests of it.
    """
    are_named = len({prompt.source for prompt in prompts if prompt.source}) > 1
    keys_of_prompt = [
        set() if are_named and prompt.source else set(prompt.things) for prompt in prompts
    ]
    groups = _joined(keys_of_prompt)
    labels = []
    for prompt, group in zip(prompts, groups, strict=True):
        labels.append(
            f"source {prompt.source}" if are_named and prompt.source else f"prompt {group + 1}"
        )
    return labels


def _joined(keys_of_prompt: Sequence[Iterable[str]]) -> list[int]:
    """For each prompt the first one with which it has a key in common, also by way of others."""
    parents = list(range(len(keys_of_prompt)))

    def root(index: int) -> int:
        while parents[index] != index:
            index = parents[index]
        return index

    prompt_with_key: dict[str, int] = {}
    for index, keys in enumerate(keys_of_prompt):
        for key in keys:
            first, second = sorted((root(index), root(prompt_with_key.setdefault(key, index))))
            parents[second] = first
    return [root(index) for index in range(len(parents))]


def edit_cells(
    prompts: Sequence[PromptEdits], labels: Sequence[str] | None = None
) -> dict[str, EditCell]:
    """Cell → its edits; cells without a known thing or a known control are left out.

    Args:
        prompts: Edits of each prompt.
        labels: Cell of each prompt. Default: `cell_labels`.
    """
    if labels is None:
        labels = cell_labels(prompts)
    prompts_of_cell: dict[str, list[PromptEdits]] = {}
    for label, prompt in zip(labels, prompts, strict=True):
        known = prompt.known
        if known.things and known.controls:
            prompts_of_cell.setdefault(label, []).append(known)
    return {label: merged_cell(members) for label, members in prompts_of_cell.items()}


def merged_cell(prompts: Sequence[PromptEdits]) -> EditCell:
    """One cell of the prompts of a source.

    Prompts that share a text are merged into one (`_merged_template`). Those that share none stand
    side by side, each centred by all of its values, so that noise of the answer to a whole prompt
    is taken out.

    Args:
        prompts: At least one, with known changes, a thing and a control each.
    """
    text_keys = [[*prompt.things, *(text for text, _ in prompt.controls)] for prompt in prompts]
    templates: dict[int, list[PromptEdits]] = {}
    for prompt, group in zip(prompts, _joined(text_keys), strict=True):
        templates.setdefault(group, []).append(prompt)
    if len(templates) == 1:
        return _merged_template(prompts)
    things: dict[str, float] = {}
    controls: list[float] = []
    for members in templates.values():
        cell = _merged_template(members)
        centre = float(np.median([*cell.things.values(), *cell.controls]))
        things |= {name: change - centre for name, change in cell.things.items()}
        controls += [change - centre for change in cell.controls]
    return EditCell(things, tuple(controls))


def _merged_template(prompts: Sequence[PromptEdits]) -> EditCell:
    """Prompts that share a text as one cell.

    A text moves all prompts of a template alike. Where all things stand in all prompts, and most
    controls do, a control is a text too: its mean over the prompts. Else the sorted changes of the
    prompts' controls are averaged, as if one control had been the k-th strongest everywhere; the
    prompt with fewest says how many count. Prompts with less than half as many controls as is usual
    are left out.
    """
    usual = float(np.median([len(prompt.controls) for prompt in prompts]))
    kept = [prompt for prompt in prompts if 2 * len(prompt.controls) >= usual]
    changes_of_thing: dict[str, list[float]] = {}
    for prompt in kept:
        for name, change in prompt.things.items():
            changes_of_thing.setdefault(name, []).append(change)
    things = {name: float(np.mean(changes)) for name, changes in changes_of_thing.items()}
    control_changes = [dict(prompt.controls) for prompt in kept]
    fewest = min(len(prompt.controls) for prompt in kept)
    common = [
        text for text in control_changes[0] if all(text in changes for changes in control_changes)
    ]
    stand_everywhere = all(len(changes) == len(kept) for changes in changes_of_thing.values())
    if stand_everywhere and 2 * len(common) >= fewest:
        means = [float(np.mean([changes[text] for changes in control_changes])) for text in common]
        return EditCell(things, tuple(means))
    ranked = np.sort(
        [[change for _, change in prompt.controls[:fewest]] for prompt in kept], axis=1
    )
    return EditCell(things, tuple(map(float, ranked.mean(axis=0))))


@dataclass(frozen=True)
class EditComparison:
    """Result of `compare_edits`."""

    p_by_thing: Mapping[str, float]
    """Thing → p that it moves the number no more than controls do; choosing the strongest is paid
    for. A thing that was shown has the p of the step at which it was.
    """
    shown_things: tuple[str, ...]
    """Things that are shown to move the number, in the order in which they were taken out."""
    p_anything: float
    """p that none of the things moves the number."""


def compare_edits(
    cells: Sequence[EditCell],
    *,
    rng: np.random.Generator,
    draws: int = EDIT_DRAWS,
    alpha: float = ALPHA,
) -> EditComparison:
    """Which things move the number more than controls do, and whether any does.

    A thing's statistic is its mean studentised change times the root of its number of cells; things
    of as many cells compete, and the least p over these classes is compared with its own
    distribution. What is shown is taken out, and the rest is asked again.

    Args:
        cells: One a source, or a prompt without a source; cells without a thing or a control are
            left out.
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
    p_anything = float((anything >= anything[0] - STATISTIC_TIE).mean())
    if (cell_counts == 1).all():
        exact = {name: exact_p(cells, sums[0, column_of[name]]) for name in names}
        return EditComparison(exact, (), p_anything)
    statistics = sums / np.sqrt(cell_counts)
    p_values = _p_by_class(statistics, cell_counts)
    return EditComparison(
        {name: float(p_values[column_of[name]]) for name in names}, (), p_anything
    )


def _p_by_class(statistics: FloatArray, cell_counts: FloatArray) -> FloatArray:
    """p of each thing from `statistics  # [draw, thing]`, whose row 0 is the real one."""
    classes = [np.flatnonzero(cell_counts == count) for count in np.unique(cell_counts)]
    largest = np.column_stack([statistics[:, members].max(axis=1) for members in classes])
    least_p = _share_reaching(largest).min(axis=1)
    p_values = np.ones(statistics.shape[1])
    for index, members in enumerate(classes):
        real = statistics[0, members]
        own_p = (largest[:, index][:, None] >= real - STATISTIC_TIE).mean(axis=0)
        if len(classes) > 1:
            own_p = (least_p[:, None] <= own_p + 1e-12).mean(axis=0)
        p_values[members] = own_p
    return p_values


def _share_reaching(largest: FloatArray) -> FloatArray:
    """For each draw and class the share of draws that reach as much, [draw, class]."""
    count = len(largest)
    columns = []
    for values in largest.T:
        below = np.searchsorted(np.sort(values), values - STATISTIC_TIE)
        columns.append(1 - below / count)
    return np.column_stack(columns)


def exact_p(cells: Sequence[EditCell], value: float) -> float:
    """p that the largest of the things reaches a studentised change, where each thing is in one
    cell: no draws.
    """
    p_none = 1.0
    for cell in cells:
        edits = len(cell.studentised)
        reaching = int((cell.studentised >= value - STATISTIC_TIE).sum())
        for index in range(len(cell.things)):
            p_none *= max(edits - reaching - index, 0) / (edits - index)
    return round(1 - p_none, 12)  # 19 controls give .05, not a rounding error more


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


def least_p_of_thing(cells: Collection[EditCell]) -> float:
    """The smallest p that a thing of these cells can have, whatever the model says; 1 without
    cells.
    """
    cells_of_thing: dict[str, list[int]] = {}
    sizes = []
    for index, cell in enumerate(cells):
        sizes.append(len(cell.things) + len(cell.controls))
        for name in cell.things:
            cells_of_thing.setdefault(name, []).append(index)
    things_of_cells = Counter(map(tuple, cells_of_thing.values()))
    class_count = len({len(members) for members in things_of_cells})
    bounds = [
        class_count * count / math.prod(sizes[index] for index in members)
        for members, count in things_of_cells.items()
    ]
    return min([1.0, *bounds])


def least_p_of_anything(cells: Collection[EditCell]) -> float:
    """The smallest p of "none of the things moves the number", whatever the model says; 1 without
    cells.
    """
    shares = [len(cell.things) / (len(cell.things) + len(cell.controls)) for cell in cells]
    return math.prod(shares)


def mean_over_controls(
    cells: Iterable[EditCell], thing: str, *, level: float = 0.95, unit: str
) -> Estimate:
    """Mean over cells of the change by a thing less the centre of the controls', with a t interval.

    Stated probabilities are rounded, so that the interval is at least that of an error of
    `LEAST_SCALE` in each cell.

    Args:
        cells: Cells, of which those without the thing are passed over.
        thing: Name of the thing.
        level: Level of the interval.
        unit: Name of a cell.
    """
    differences = [
        cell.things[thing] - cell.control_centre for cell in cells if thing in cell.things
    ]
    count = len(differences)
    mean = clustered_mean(differences, np.arange(count), unit=unit, level=level, interval="t")
    if count < 2:
        return mean
    least_error = LEAST_SCALE / math.sqrt(count)
    if not math.isnan(mean.se) and mean.se >= least_error:
        return mean
    half = -float(special.stdtrit(count - 1, (1 - level) / 2)) * least_error
    return Estimate(
        mean.value, mean.value - half, mean.value + half, count, unit, se=least_error, df=count - 1
    )
