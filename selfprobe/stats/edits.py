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

from selfprobe.stats.claim import ALPHA
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, t_quantile

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
        strongest = max(self.things, key=lambda thing: self.things[thing])
        return strongest if self.things[strongest] > max(self.controls) else ""

    @cached_property
    def studentised(self) -> FloatArray:
        """Changes of things, then of controls, centred and scaled by all of them, [edit]."""
        changes = np.array([*self.things.values(), *self.controls], dtype=float)
        deviations = changes - np.median(changes)
        mean_deviation = float(np.abs(deviations).mean())
        return np.asarray(deviations / max(LEAST_SCALE, mean_deviation))


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
    named_sources = {prompt.source for prompt in prompts if prompt.source}
    joining_things: list[Collection[str]] = []
    for prompt in prompts:
        is_own_cell = len(named_sources) > 1 and prompt.source
        joining_things.append([] if is_own_cell else prompt.things)

    labels = []
    for prompt, first_index in zip(prompts, _first_joined(joining_things), strict=True):
        if len(named_sources) > 1 and prompt.source:
            labels.append(f"source {prompt.source}")
        else:
            labels.append(f"prompt {first_index + 1}")
    return labels


def _first_joined(keys_by_prompt: Sequence[Iterable[str]]) -> list[int]:
    """For each prompt the first one with which it has a key in common, also by way of others."""
    parents = list(range(len(keys_by_prompt)))

    def root(index: int) -> int:
        while parents[index] != index:
            index = parents[index]
        return index

    prompt_by_key: dict[str, int] = {}
    for index, keys in enumerate(keys_by_prompt):
        for key in keys:
            own_root = root(index)
            key_root = root(prompt_by_key.setdefault(key, index))
            parents[max(own_root, key_root)] = min(own_root, key_root)
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
    prompts_by_cell: dict[str, list[PromptEdits]] = {}
    for label, prompt in zip(labels, prompts, strict=True):
        known_edits = prompt.known
        if known_edits.things and known_edits.controls:
            prompts_by_cell.setdefault(label, []).append(known_edits)
    return {label: merged_cell(members) for label, members in prompts_by_cell.items()}


def merged_cell(prompts: Sequence[PromptEdits]) -> EditCell:
    """One cell of the prompts of a source.

    Prompts that share a text are merged into one (`_merged_template`). Those that share none stand
    side by side, each centred by all of its values, so that noise of the answer to a whole prompt
    is taken out.

    Args:
        prompts: At least one, with known changes, a thing and a control each.
    """
    edited_texts = []
    for prompt in prompts:
        control_texts = [text for text, _ in prompt.controls]
        edited_texts.append([*prompt.things, *control_texts])
    templates: dict[int, list[PromptEdits]] = {}
    for prompt, first_index in zip(prompts, _first_joined(edited_texts), strict=True):
        templates.setdefault(first_index, []).append(prompt)
    if len(templates) == 1:
        return _merged_template(prompts)

    things: dict[str, float] = {}
    controls: list[float] = []
    for template_prompts in templates.values():
        cell = _merged_template(template_prompts)
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
    usual_count = float(np.median([len(prompt.controls) for prompt in prompts]))
    merged_prompts = [prompt for prompt in prompts if 2 * len(prompt.controls) >= usual_count]
    changes_by_thing: dict[str, list[float]] = {}
    for prompt in merged_prompts:
        for name, change in prompt.things.items():
            changes_by_thing.setdefault(name, []).append(change)
    things = {name: float(np.mean(changes)) for name, changes in changes_by_thing.items()}

    control_changes = [dict(prompt.controls) for prompt in merged_prompts]
    fewest_controls = min(len(prompt.controls) for prompt in merged_prompts)
    common_means = []
    for text in control_changes[0]:
        changes = [change_by_text.get(text) for change_by_text in control_changes]
        known_changes = [change for change in changes if change is not None]
        if len(known_changes) == len(merged_prompts):
            common_means.append(float(np.mean(known_changes)))
    stand_everywhere = all(
        len(changes) == len(merged_prompts) for changes in changes_by_thing.values()
    )
    if stand_everywhere and 2 * len(common_means) >= fewest_controls:
        return EditCell(things, tuple(common_means))

    sorted_changes = []
    for prompt in merged_prompts:
        counted_changes = [change for _, change in prompt.controls[:fewest_controls]]
        sorted_changes.append(sorted(counted_changes))
    mean_changes = np.array(sorted_changes).mean(axis=0)
    return EditCell(things, tuple(map(float, mean_changes)))


@dataclass(frozen=True)
class EditComparison:
    """Result of `compare_edits`."""

    p_by_thing: Mapping[str, float]
    """Thing → p that it moves the number no more than controls do; choosing the strongest is paid
    for. A thing that was shown has the p of the step at which it was.
    """
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
    shown_things: list[str] = []
    p_anything = math.nan
    while True:
        unexplained_cells = [cell.without(shown_things) for cell in cells]
        tested_cells = [cell for cell in unexplained_cells if cell.things and cell.controls]
        if not tested_cells:
            break
        step = _exchange(tested_cells, rng, draws)
        if math.isnan(p_anything):
            p_anything = step.p_anything
        p_by_thing.update(step.p_by_thing)
        new_things = sorted(name for name, p in step.p_by_thing.items() if p <= alpha)
        if not new_things:
            break
        new_things.sort(key=lambda name: step.p_by_thing[name])
        shown_things += new_things
    return EditComparison(p_by_thing, p_anything)


def _exchange(cells: Sequence[EditCell], rng: np.random.Generator, draws: int) -> EditComparison:
    """One step of the test: every thing of these cells competes."""
    names = sorted({name for cell in cells for name in cell.things})
    column_by_name = {name: column for column, name in enumerate(names)}
    cell_counts = np.zeros(len(names))
    drawn_sums = np.zeros((draws + 1, len(names)))
    sums_of_largest = np.zeros(draws + 1)
    for cell in cells:
        thing_count = len(cell.things)
        changes = cell.studentised
        random_keys = rng.random((draws + 1, len(changes)))
        drawn_edits = np.argsort(random_keys, axis=1)[:, :thing_count]
        drawn_edits[0] = np.arange(thing_count)
        drawn_changes = changes[drawn_edits]
        columns = [column_by_name[name] for name in cell.things]
        drawn_sums[:, columns] += drawn_changes
        cell_counts[columns] += 1
        sums_of_largest += drawn_changes.max(axis=1)

    reaches_real = sums_of_largest >= sums_of_largest[0] - STATISTIC_TIE
    p_anything = float(reaches_real.mean())
    if (cell_counts == 1).all():
        p_values = np.array([exact_p(cells, real_sum) for real_sum in drawn_sums[0]])
    else:
        p_values = _p_by_class(drawn_sums / np.sqrt(cell_counts), cell_counts)
    p_by_thing = {name: float(p) for name, p in zip(names, p_values, strict=True)}
    return EditComparison(p_by_thing, p_anything)


def _p_by_class(statistics: FloatArray, cell_counts: FloatArray) -> FloatArray:
    """p of each thing from `statistics  # [draw, thing]`, whose row 0 is the real one."""
    classes = [np.flatnonzero(cell_counts == count) for count in np.unique(cell_counts)]
    largest = np.column_stack([statistics[:, members].max(axis=1) for members in classes])
    least_p = _share_reaching(largest).min(axis=1)
    p_values = np.ones(statistics.shape[1])
    for class_index, members in enumerate(classes):
        real_statistics = statistics[0, members]
        class_largest = largest[:, class_index][:, None]
        class_p = (class_largest >= real_statistics - STATISTIC_TIE).mean(axis=0)
        if len(classes) > 1:
            class_p = (least_p[:, None] <= class_p + 1e-12).mean(axis=0)
        p_values[members] = class_p
    return p_values


def _share_reaching(largest: FloatArray) -> FloatArray:
    """For each draw and class the share of draws that reach as much, [draw, class]."""
    columns = []
    for statistics in largest.T:
        smaller_counts = np.searchsorted(np.sort(statistics), statistics - STATISTIC_TIE)
        columns.append(1 - smaller_counts / len(largest))
    return np.column_stack(columns)


def exact_p(cells: Sequence[EditCell], value: float) -> float:
    """p that the largest of the things reaches a studentised change, where each thing is in one
    cell: no draws.
    """
    p_none = 1.0
    for cell in cells:
        edit_count = len(cell.studentised)
        reaching_count = int((cell.studentised >= value - STATISTIC_TIE).sum())
        for index in range(len(cell.things)):
            smaller_count = max(edit_count - reaching_count - index, 0)
            p_none *= smaller_count / (edit_count - index)
    return round(1 - p_none, 12)  # 19 controls give .05, not a rounding error more


@dataclass(frozen=True)
class ControlsNeeded:
    """Smallest numbers of controls of a cell below which a p under alpha is impossible."""

    for_one_cell: int
    """To show a thing that stands in one cell."""
    for_all_cells: int
    """To show a thing that stands in all cells."""
    for_anything: int
    """To show that something moves the number."""


def controls_needed(things: int, cells: int, alpha: float = ALPHA) -> ControlsNeeded:
    """Numbers of controls that a cell of so many things needs, whatever the model says.

    >>> controls_needed(1, 1)
    ControlsNeeded(for_one_cell=19, for_all_cells=19, for_anything=19)
    >>> controls_needed(8, 3)
    ControlsNeeded(for_one_cell=152, for_all_cells=1, for_anything=14)
    """
    for_one_cell = math.ceil(things * (1 / alpha - 1))
    for_all_cells = 1
    while things / (things + for_all_cells) ** cells > alpha:
        for_all_cells += 1
    for_anything = 1
    while (things / (things + for_anything)) ** cells > alpha:
        for_anything += 1
    return ControlsNeeded(for_one_cell, for_all_cells, for_anything)


def least_p_of_thing(cells: Collection[EditCell]) -> float:
    """The smallest p that a thing of these cells can have, whatever the model says; 1 without
    cells.
    """
    cells_by_thing: dict[str, list[int]] = {}
    edit_counts = []
    for cell_index, cell in enumerate(cells):
        edit_counts.append(len(cell.things) + len(cell.controls))
        for name in cell.things:
            cells_by_thing.setdefault(name, []).append(cell_index)
    thing_counts = Counter(map(tuple, cells_by_thing.values()))
    class_count = len({len(cell_indices) for cell_indices in thing_counts})

    least_p = 1.0
    for cell_indices, thing_count in thing_counts.items():
        exchange_count = math.prod(edit_counts[index] for index in cell_indices)
        least_p = min(least_p, class_count * thing_count / exchange_count)
    return least_p


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
    cell_count = len(differences)
    labels = np.arange(cell_count)
    mean = clustered_mean(differences, labels, unit=unit, level=level, interval="t")
    if cell_count < 2:
        return mean
    least_error = LEAST_SCALE / math.sqrt(cell_count)
    if mean.se >= least_error:
        return mean
    half_width = t_quantile(cell_count - 1, (1 - level) / 2) * least_error
    return Estimate(
        mean.value,
        mean.value - half_width,
        mean.value + half_width,
        cell_count,
        unit,
        se=least_error,
        df=cell_count - 1,
    )
