"""The tidy tables of a matrix, from its logs; many are read in several processes.

The module says what a run says of its cell, which cells need no run since two models' own runs are
joined, and what counts as the same measurement: of which setting a matrix is (`choose_setting`),
and which cells may be compared.
"""

import itertools
import math
import operator
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Parallel, cpu_count, delayed

from selfprobe.errors import NoLogs, one_line
from selfprobe.logs import (
    CANNOT,
    UNREADABLE,
    Identity,
    Run,
    Runs,
    about_of,
    args_of,
    cause,
    decision_columns,
    differing,
    informed_of,
    none_found,
    target_of,
    token_count,
    valid_samples,
)
from selfprobe.logs.decision import Decision
from selfprobe.scorers.frames import Frames, frames
from selfprobe.solvers.observe import OTHER_PREFIX
from selfprobe.solvers.reply_notes import applied_in, remarks_in
from selfprobe.study._registry import measures
from selfprobe.text.counts import count_text
from selfprobe.text.safe import masked

CELL_COLUMNS = ["task", "target", "observer"]
MatrixCell = tuple[str, ...]
"""Task, target and observer; of an observer that is told of its target, how (`logs.informed_of`)
too.
"""
RowNumbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class RunContent:
    """The content of a run's log, as far as a matrix uses it."""

    sample_count: int
    error_count: int
    first_error: str
    """Error that ended the first sample in error."""
    columns: dict[str, list[Any]]
    """Decisions, see `logs.decision_columns`."""
    applied: dict[str, str]
    """See `reply_notes.applied_in`."""
    remarks: list[str]
    """See `reply_notes.remarks_in`."""
    tokens: int
    """Tokens of all calls of the run's items, those for invalidated samples too."""

    @property
    def has_decisions(self) -> bool:
        """Whether some decision is no mere error."""
        return any(self.columns["key"])


def run_content(run: Run) -> RunContent | str:
    """The content of a run's log, or why there is none."""
    try:
        all_samples = run.read_summaries(valid=False)
        run_samples = valid_samples(run.log, all_samples)
        samples_in_error = [sample for sample in run_samples if sample.error]
        return RunContent(
            sample_count=len(run_samples),
            error_count=len(samples_in_error),
            first_error=cause(run.log, samples_in_error[0]) if samples_in_error else "",
            columns=decision_columns(run, run_samples),
            applied=applied_in(run_samples),
            remarks=remarks_in(run_samples),
            tokens=token_count(all_samples),
        )
    except UNREADABLE as error:
        return f"cannot be read: {one_line(error)}"


def cell_of(cell: Sequence[str], run: Run, content: RunContent) -> dict[str, Any]:
    """The row of a cell that is a run; the columns are those of `Results.cells`."""
    log = run.header
    metadata = log.eval.metadata or {}
    status, reason = _status_and_reason(run, content)
    return dict(zip([*CELL_COLUMNS, "arm"], cell, strict=False)) | {
        "status": status,
        "reason": reason,
        "log": log.location,
        "samples": content.sample_count,
        "errors": content.error_count,
        "epochs": log.eval.config.epochs or 1,
        "version": str(log.eval.task_version),
        "dataset": metadata.get("dataset"),
        "dataset_sha256": metadata.get("dataset_sha256"),
        "selfprobe": metadata.get("selfprobe"),
        "inspect": log.eval.packages.get("inspect_ai"),
        "created": log.eval.created,
        "args": args_of(log),
        "settings": dict(run.identity.config),
        "items": sorted(run.items()),
        "joined": False,
        "applied": content.applied,
        "remarks": content.remarks,
        "tokens": content.tokens,
    }


def _status_and_reason(run: Run, content: RunContent) -> tuple[str, str]:
    """Status of a cell that is a run, and the reason where it is not complete."""
    if run.finished and not content.error_count:
        return "complete", ""
    if run.invalidated.are_all:
        return "failed", str(run.invalidated)

    log = run.header
    planned = run.planned_samples or content.sample_count
    if log.status == "started":
        reason = f"the run was cut off; {content.sample_count} of {planned} samples are in its log"
    else:
        reason = f"run ended as {log.status}; {content.error_count} of {planned} samples in error"

    first_error = content.first_error
    if not first_error and log.error:
        first_error = masked(log.error.message)
    if first_error:
        reason = f"{reason}: {first_error[:200]}"
    return "failed", reason


def joinable(task: str, chosen: Mapping[MatrixCell, Run]) -> list[MatrixCell]:
    """The cells of a task that are no run, and both of whose models ran on themselves."""
    own_models = [
        target for run_task, target, observer in chosen if run_task == task and target == observer
    ]
    joinable_cells = list[MatrixCell]()
    for target, observer in itertools.permutations(sorted(own_models), 2):
        cell = (task, target, observer)
        if cell not in chosen:
            joinable_cells.append(cell)
    return joinable_cells


def own_cell(cell: MatrixCell, side: int) -> MatrixCell:
    """The run on itself of a cell's target (1) or observer (2)."""
    return (cell[0], cell[side], cell[side])


def add_joined_cells(own_decisions: pd.DataFrame, cells: Sequence[MatrixCell]) -> pd.DataFrame:
    """The decisions of runs, and then those of cells that need no call: columns of
    `Results.decisions`.

    In such a cell the observer's predictions of itself are compared with the target's truths at the
    same questions.

    Args:
        own_decisions: Decisions of runs, among them those of the cells' models on themselves.
        cells: The cells that are no run.
    """
    if not cells or own_decisions.empty:
        return own_decisions
    decision_sides = [
        measures()[task].sides.get(key)
        for task, key in zip(own_decisions.task, own_decisions.key, strict=True)
    ]
    is_targets = np.array([side == "target" for side in decision_sides])
    is_observers = np.array([side == "observer" for side in decision_sides])
    pairs = _joined_row_pairs(own_decisions, cells, is_targets)

    # A row of a cell is copied from the side that makes the decision, else from the target.
    copied_rows = np.where(is_observers[pairs.target_rows], pairs.observer_rows, pairs.target_rows)
    source_rows = np.concatenate([np.arange(len(own_decisions)), copied_rows])
    observers = pd.Series([observer for _, _, observer in cells]).repeat(pairs.cell_sizes)
    targets = own_decisions.target.take(pairs.target_rows)
    columns: dict[str, Any] = {
        "target": pd.concat([own_decisions.target, targets], ignore_index=True),
        "observer": pd.concat([own_decisions.observer, observers], ignore_index=True),
    }

    # Where both sides make it, the observer's part of the row is the observer's.
    is_crossed = ~is_targets[pairs.target_rows] & ~is_observers[pairs.target_rows]
    crossed_pairs = np.flatnonzero(is_crossed)
    values_by_column = crossed_columns(
        own_decisions, pairs.target_rows[crossed_pairs], pairs.observer_rows[crossed_pairs]
    )
    for name, values in values_by_column.items():
        if values.dtype == object:
            own_values = _with_none(own_decisions[name])
        else:
            own_values = own_decisions[name].to_numpy()
        columns[name] = own_values[source_rows]
        columns[name][len(own_decisions) + crossed_pairs] = values

    table = own_decisions.drop(columns=list(columns)).take(source_rows).reset_index(drop=True)
    return table.assign(**columns)[list(own_decisions.columns)]


@dataclass(frozen=True)
class _JoinedRowPairs:
    """The decisions that are compared in cells that are no run."""

    target_rows: RowNumbers
    """[comparison], cell after cell."""
    observer_rows: RowNumbers
    """[comparison]; -1 where the target alone decides and the observer has no such row."""
    cell_sizes: list[int]
    """Number of comparisons of each cell."""


def _joined_row_pairs(
    own_decisions: pd.DataFrame, cells: Sequence[MatrixCell], is_targets: npt.NDArray[np.bool_]
) -> _JoinedRowPairs:
    """For each decision of a cell's target, the observer's decision at the same question.

    Args:
        own_decisions: Decisions of runs.
        cells: The cells that are no run.
        is_targets: [row]: whether the target alone makes the decision.
    """
    question_numbers = (
        own_decisions.groupby(["item", "epoch", "key"], sort=False).ngroup().to_numpy()
    )
    rows_by_cell: dict[Any, RowNumbers] = own_decisions.groupby(CELL_COLUMNS, sort=False).indices
    row_by_question = dict[Any, RowNumbers]()
    for cell, cell_rows in rows_by_cell.items():
        row_by_question[cell] = np.full(question_numbers.max() + 1, -1)
        row_by_question[cell][question_numbers[cell_rows]] = cell_rows

    no_rows = np.empty(0, dtype=np.intp)
    target_rows = [no_rows]
    observer_rows = [no_rows]
    cell_sizes = list[int]()
    for cell in cells:
        rows_of_target = rows_by_cell.get(own_cell(cell, 1), no_rows)
        observer_row_by_question = row_by_question.get(own_cell(cell, 2))
        if observer_row_by_question is None:
            rows_of_observer = np.full(len(rows_of_target), -1)
        else:
            rows_of_observer = observer_row_by_question[question_numbers[rows_of_target]]
        is_compared = is_targets[rows_of_target] | (rows_of_observer >= 0)
        target_rows.append(rows_of_target[is_compared])
        observer_rows.append(rows_of_observer[is_compared])
        cell_sizes.append(int(is_compared.sum()))
    return _JoinedRowPairs(
        target_rows=np.concatenate(target_rows),
        observer_rows=np.concatenate(observer_rows),
        cell_sizes=cell_sizes,
    )


def crossed_columns(
    own_decisions: pd.DataFrame,
    target_row: npt.NDArray[np.intp],
    observer_row: npt.NDArray[np.intp],
) -> dict[str, npt.NDArray[Any]]:
    """Observers' predictions of themselves, compared with other targets' truths; faults of either
    side stay reasons.

    Args:
        own_decisions: Decisions of models on themselves.
        target_row: [comparison]: row of the target's decision.
        observer_row: [comparison]: row of the observer's decision at the same question.

    Returns:
        Column → values [comparison], of the columns that are not the target's.
    """
    predictions = _with_none(own_decisions.said)
    unscored_reasons = _with_none(own_decisions.unscored)
    unread_reasons = _with_none(own_decisions.unread)
    has_prediction = own_decisions.said.notna().to_numpy()
    has_truth = own_decisions.truth.notna().to_numpy()
    has_unread_reason = own_decisions.unread.notna().to_numpy()

    is_target_fault = ~has_truth | has_unread_reason | has_prediction
    target_faults = unscored_reasons.copy()
    target_faults[~is_target_fault] = None
    observer_faults = np.where(has_unread_reason, unread_reasons, unscored_reasons)
    observer_faults[has_prediction] = None
    reasons = target_faults[target_row]
    reasons = np.where(pd.isna(reasons), observer_faults[observer_row], reasons)

    is_compared = pd.isna(reasons)
    values = np.full(len(target_row), math.nan)
    values[is_compared] = _crossed_values(
        own_decisions, target_row[is_compared], observer_row[is_compared]
    )
    return {
        "value": values,
        "unscored": reasons,
        "said": predictions[observer_row],
        "unread": np.full(len(target_row), None),
        "reasoned": own_decisions.reasoned.to_numpy()[observer_row],
    }


def _crossed_values(
    own_decisions: pd.DataFrame, target_row: RowNumbers, observer_row: RowNumbers
) -> npt.NDArray[np.float64]:
    """Grade [comparison] of the observer's prediction, given the target's truth.

    Args:
        own_decisions: Decisions of models on themselves.
        target_row: [comparison]: row of the target's decision, which has a truth.
        observer_row: [comparison]: row of the observer's decision, which has a prediction.
    """
    prediction_texts = own_decisions.said.astype(str)
    truth_texts = own_decisions.truth.astype(str)
    texts = pd.Index(pd.unique(np.concatenate([prediction_texts, truth_texts])))
    prediction_codes = texts.get_indexer(prediction_texts)[observer_row]
    truth_codes = texts.get_indexer(truth_texts)[target_row]

    values = np.full(len(target_row), math.nan)
    tasks, task_codes = np.unique(own_decisions.task, return_inverse=True)
    for task_code, task in enumerate(tasks):
        of_task = np.flatnonzero(task_codes[target_row] == task_code)
        task_predictions = prediction_codes[of_task]
        task_truths = truth_codes[of_task]
        right = measures()[task].right
        if right is operator.eq:
            values[of_task] = task_predictions == task_truths
            continue
        # Each different pair of texts is graded once.
        text_pairs, pair_numbers = np.unique(
            task_predictions * len(texts) + task_truths, return_inverse=True
        )
        pair_grades = [
            right(texts[text_pair // len(texts)], texts[text_pair % len(texts)])
            for text_pair in text_pairs
        ]
        values[of_task] = np.array(pair_grades, dtype=float)[pair_numbers]
    return values


def _with_none(column: pd.Series) -> npt.NDArray[np.object_]:
    """The values of a column of texts, None where there is none."""
    values: npt.NDArray[np.object_] = column.to_numpy(dtype=object, copy=True)
    values[column.isna().to_numpy()] = None
    return values


def joined_cell(
    cell: MatrixCell, target: dict[str, Any], observer: dict[str, Any]
) -> dict[str, Any]:
    """The row of a cell that is no run; complete where both models' runs on themselves are."""
    status = "complete"
    reason = ""
    for own_run in (target, observer):
        if own_run["status"] != "complete":
            status = "failed"
            reason = f"{own_run['target']} on itself: {own_run['reason']}"
            break

    applied = dict[str, str]()
    for role, own_run in (("target", target), ("observer", observer)):
        if role in own_run["applied"]:
            applied[role] = own_run["applied"][role]
    names = dict(zip(CELL_COLUMNS, cell, strict=True))
    joined_values = {
        "status": status,
        "reason": reason,
        "log": f"{target['log']} × {observer['log']}",
        "joined": True,
        "remarks": [],
        "applied": applied,
        "tokens": 0,
    }
    return target | names | joined_values


def no_log(ignored: Mapping[str, str]) -> str:
    """Reason of a cell without a log; a damaged log does not say whose it is."""
    reason = "there is no log of this cell"
    unreadable_count = sum(ignored_reason.startswith(CANNOT) for ignored_reason in ignored.values())
    if not unreadable_count:
        return reason
    return f"{reason} ({count_text(unreadable_count, 'log')} cannot be read)"


NOT_COMPARED = frozenset({"resamples", "about", "shown_items"})
"""Task arguments that leave a cell's scores alone, or name its arm: the ceiling, whom the observer
is asked about, and of which items it is shown replies.
"""


@dataclass(frozen=True)
class ChosenRuns:
    """One run a cell, all of one task in one setting."""

    runs: dict[MatrixCell, Run] = field(default_factory=dict)
    difference_by_unused_log: dict[str, str] = field(default_factory=dict)
    """Log → how its run was made otherwise."""
    difference_by_empty_cell: dict[MatrixCell, str] = field(default_factory=dict)
    """Cell without a run in the setting → how its best run was made otherwise."""
    settings: dict[str, str] = field(default_factory=dict)
    """Task → which settings its runs have, which of them counts, and how to choose another. Without
    a task whose runs are all of one setting.
    """


def choose_setting(
    cells: Mapping[MatrixCell, Sequence[Run]],
    *,
    free_arguments: Collection[str] = NOT_COMPARED,
    swept: Mapping[str, str] | None = None,
) -> ChosenRuns:
    """The run of each cell, with the setting that most cells of a task have; a cell without one is
    left out.

    A setting is the task's arguments and the data set. The one of several counts that most models
    finished on themselves; of equals one without an `effort`, then the one with more items, then
    the newer one. Within a cell finished runs come first, then those with the generation settings
    of its models' runs on themselves.

    Args:
        cells: Cell → its runs, each of another identity. The first entry of a cell is its task; a
            model's run on itself has its name twice.
        free_arguments: Arguments that may differ.
        swept: Task → the argument that makes its runs points of a curve: no word about those that
            differ in it alone.
    """
    cells_by_task = dict[str, dict[MatrixCell, Sequence[Run]]]()
    for cell, cell_runs in cells.items():
        cells_by_task.setdefault(cell[0], {})[cell] = cell_runs

    choice = ChosenRuns()
    for task, task_cells in cells_by_task.items():
        other_runs = _choose_task_runs(choice, task_cells, free_arguments)
        swept_name = swept.get(task) if swept else None
        reported_runs = [
            (usual_identity, run)
            for usual_identity, run in other_runs
            if _different_settings(run.identity, usual_identity) != {swept_name}
        ]
        if reported_runs:
            task_runs = [run for cell, run in choice.runs.items() if cell[0] == task]
            choice.settings[task] = _settings_sentence(task_runs, reported_runs)
    return choice


def _choose_task_runs(
    choice: ChosenRuns, cells: Mapping[MatrixCell, Sequence[Run]], free_arguments: Collection[str]
) -> list[tuple[Identity, Run]]:
    """Adds the runs of one task to a choice.

    Returns:
        The runs that do not count, each with the identity that it would have in the setting that
        counts.
    """
    own_cells_first = sorted(cells, key=lambda cell: cell[1] != cell[2])
    usual = _most_used_setting({cell: cells[cell] for cell in own_cells_first}, free_arguments)

    own_run_by_model = dict[str, Run]()
    other_runs = list[tuple[Identity, Run]]()
    for cell in own_cells_first:
        ranked_runs = sorted(
            cells[cell],
            key=lambda run: (_has_own_run_settings(run, own_run_by_model), *run.weight),
            reverse=True,
        )
        fitting_runs = [
            run
            for run in ranked_runs
            if _identity_in_setting(run, usual, free_arguments) == run.identity
        ]
        counted_run = fitting_runs[0] if fitting_runs else None
        for run in ranked_runs:
            if run is counted_run:
                continue
            usual_identity = _identity_in_setting(run, usual, free_arguments)
            if counted_run and usual_identity == run.identity:
                usual_identity = counted_run.identity
            choice.difference_by_unused_log[run.log] = differing(run.identity, [usual_identity])
            other_runs.append((usual_identity, run))

        if counted_run is None:
            choice.difference_by_empty_cell[cell] = choice.difference_by_unused_log[
                ranked_runs[0].log
            ]
            continue
        choice.runs[cell] = counted_run
        if cell[1] == cell[2]:
            own_run_by_model[cell[1]] = counted_run
    return other_runs


def _most_used_setting(
    cells: Mapping[MatrixCell, Sequence[Run]], free_arguments: Collection[str]
) -> Identity:
    """An identity with the arguments and the data that count."""
    all_runs = [(cell, run) for cell, cell_runs in cells.items() for run in cell_runs]
    finished_runs = [(cell, run) for cell, run in all_runs if run.finished]
    own_runs = [(cell, run) for cell, run in finished_runs if cell[1] == cell[2]]

    runs_by_setting = dict[object, list[tuple[MatrixCell, Run]]]()
    for cell, run in own_runs or finished_runs or all_runs:
        free_names = {*free_arguments, *_act_only(run)}
        args = [(name, value) for name, value in run.identity.args if name not in free_names]
        setting = (tuple(args), run.identity.data)
        runs_by_setting.setdefault(setting, []).append((cell, run))

    def weight(setting_runs: list[tuple[MatrixCell, Run]]) -> tuple[int, bool, tuple[object, ...]]:
        cell_count = len({cell for cell, _ in setting_runs})
        first_run = setting_runs[0][1]
        has_effort = "effort" in dict(first_run.identity.args)
        largest_weight = max(run.weight for _, run in setting_runs)
        return cell_count, not has_effort, largest_weight

    usual_runs = max(runs_by_setting.values(), key=weight)
    return usual_runs[0][1].identity


def _identity_in_setting(run: Run, setting: Identity, free_arguments: Collection[str]) -> Identity:
    """The identity that a run would have in a setting."""
    free_names = {*free_arguments, *_act_only(run)}
    args = {name: value for name, value in run.identity.args if name in free_names}
    args |= {name: value for name, value in setting.args if name not in free_names}
    return replace(run.identity, args=tuple(sorted(args.items())), data=setting.data)


def _act_only(run: Run) -> frozenset[str]:
    """Arguments on which a replay's scores do not depend."""
    measure = measures().get(run.identity.task)
    if measure and run.header.eval.task_args.get("target_log"):
        return measure.act_only
    return frozenset()


def _has_own_run_settings(run: Run, own_run_by_model: Mapping[str, Run]) -> bool:
    """Whether the models of a cell have the generation settings of their runs on themselves."""
    target_suffix = " of target"
    observer_config = dict[str, str]()
    target_config = dict[str, str]()
    for name, value in run.identity.config:
        if " of " not in name:
            observer_config[name] = value
        if name.endswith(target_suffix):
            target_config[name.removesuffix(target_suffix)] = value

    config_by_model = {run.identity.model: observer_config}
    config_by_model.setdefault(target_of(run.header), target_config)
    for model, config in config_by_model.items():
        own_run = own_run_by_model.get(model)
        if own_run is not None and dict(own_run.identity.config) != config:
            return False
    return True


def _different_settings(identity: Identity, other_identity: Identity) -> set[str]:
    """Names of the settings in which two runs differ."""
    settings = identity.settings
    other_settings = other_identity.settings
    names = settings.keys() | other_settings.keys()
    return {name for name in names if settings.get(name) != other_settings.get(name)}


def _settings_sentence(
    counted_runs: Sequence[Run], other_runs: Sequence[tuple[Identity, Run]]
) -> str:
    """Sentence on the settings that a task's runs have, on the one that counts, and on how to
    choose.

    Args:
        counted_runs: The runs in the setting that counts.
        other_runs: The others, each with the identity that it would have in that setting.
    """
    usual_settings = dict[str, str | None]()
    for usual_identity, run in other_runs:
        for name in _different_settings(run.identity, usual_identity):
            usual_settings.setdefault(name, usual_identity.settings.get(name))
    names = sorted(usual_settings)

    runs_by_values = dict[tuple[str | None, ...], list[Run]]()
    for usual_identity, run in other_runs:
        different_names = _different_settings(run.identity, usual_identity)
        run_settings = run.identity.settings
        values = list[str | None]()
        for name in names:
            settings = run_settings if name in different_names else usual_settings
            values.append(settings.get(name))
        runs_by_values.setdefault(tuple(values), []).append(run)

    setting_texts = [
        _setting_text(dict(zip(names, values, strict=True)), setting_runs)
        for values, setting_runs in runs_by_values.items()
    ]
    return (
        f"Runs of {len(runs_by_values) + 1} settings: "
        f"{_setting_text(usual_settings, counted_runs)} counts; "
        f"left out: {', '.join(setting_texts)}. To use another, give its logs alone."
    )


def _setting_text(settings: Mapping[str, str | None], setting_runs: Sequence[Run]) -> str:
    """A setting with its samples, runs and date."""
    label = ", ".join(f"{name} {settings[name] or 'not set'}" for name in sorted(settings))
    if not setting_runs:
        return f"{label} (no run)"

    specs = [run.header.eval for run in setting_runs]
    newest = max(specs, key=lambda spec: str(spec.created))
    created = str(newest.created)[:16].replace("T", " ")
    sample_count = max(len(run.items()) for run in setting_runs)
    facts = f"{sample_count} samples, {count_text(len(setting_runs), 'run')}, {created}"
    if "data set" in settings:
        dataset = (newest.metadata or {}).get("dataset", "?")
        facts = f"{dataset}; {facts}"
    return f"{label} ({facts})"


def incomparable_cells(cells: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(target, observer) → how the cell measured something else than the models' runs on themselves
    usually do.

    If there is no such run, most of all cells decide; of equally many, those of the first models by
    name. Generation settings may differ from model to model, and are those of the model's run on
    itself. A joined cell is as good as the two runs that it is made of.
    """
    run_by_pair = dict[tuple[str, str], Any]()
    for cell in cells.sort_values(["target", "observer"]).itertuples():
        if not cell.joined:
            run_by_pair[str(cell.target), str(cell.observer)] = cell
    own_pairs = [pair for pair in run_by_pair if pair[0] == pair[1]]
    deciding_runs = [run_by_pair[pair] for pair in own_pairs or run_by_pair]
    usual_conditions = _usual_conditions(deciding_runs)
    item_counts = Counter(tuple(run.items) for run in deciding_runs)
    usual_items = set[str]()
    if item_counts:
        usual_items = set(item_counts.most_common(1)[0][0])

    reason_by_pair = dict[tuple[str, str], str]()
    for pair, run in run_by_pair.items():
        differences = list[str]()
        for name, condition in sorted(_conditions(run).items()):
            usual = usual_conditions.get(name, condition)
            if condition != usual:
                differences.append(
                    f"{name} is {condition}, in most runs of models on themselves {usual}"
                )
        differences += _other_items(set(run.items), usual_items)
        differences += _other_settings(pair, run_by_pair)
        if differences:
            reason_by_pair[pair] = f"cannot be compared: {'; '.join(differences)}"

    for cell in cells[cells.joined.astype(bool)].itertuples():
        for model in (cell.target, cell.observer):
            if (model, model) in reason_by_pair:
                joined_pair = (str(cell.target), str(cell.observer))
                reason_by_pair[joined_pair] = reason_by_pair[model, model]
                break
    return reason_by_pair


def _conditions(cell: Any) -> dict[str, str]:
    """Name → text of what a cell's scores depend on besides its models and its setting."""
    task_version = str(cell.version).partition("+")[0]  # the data set's hash follows
    conditions = {"task version": task_version}
    if "epochs" not in cell.args:
        conditions["number of epochs"] = str(cell.epochs)
    return conditions


def _usual_conditions(deciding_runs: Sequence[Any]) -> dict[str, str]:
    """Name → the condition that most runs have."""
    counts_by_name = dict[str, Counter[str]]()
    for run in deciding_runs:
        for name, condition in _conditions(run).items():
            counts_by_name.setdefault(name, Counter())[condition] += 1
    return {name: counts.most_common(1)[0][0] for name, counts in counts_by_name.items()}


def _other_items(items: set[str], usual_items: set[str]) -> list[str]:
    """Lines on how a cell's items differ from those that most runs of models on themselves asked
    about.
    """
    if items == usual_items or not items:
        return []
    line = f"it asks about {len(items & usual_items)} of {len(usual_items)} items"
    if items - usual_items:
        line += ", and others"
    return [line]


def _other_settings(pair: tuple[str, str], run_by_pair: Mapping[tuple[str, str], Any]) -> list[str]:
    """Lines on how the generation settings of a cell differ from those of its models' runs on
    themselves.
    """
    target, observer = pair
    if target == observer:
        return []
    cell_settings = run_by_pair[pair].settings
    lines = list[str]()
    for model, suffix, role in ((observer, "", "observer"), (target, " of target", "target")):
        if (model, model) not in run_by_pair:
            continue
        own_settings = _settings_without_role(run_by_pair[model, model].settings)
        if suffix:
            role_settings = {
                name.removesuffix(suffix): value
                for name, value in cell_settings.items()
                if name.endswith(suffix)
            }
        else:
            role_settings = _settings_without_role(cell_settings)
        for name in sorted(own_settings.keys() | role_settings.keys()):
            if own_settings.get(name) != role_settings.get(name):
                lines.append(
                    f"{name} of the {role} is {role_settings.get(name, 'not set')}; "
                    f"on itself it ran with {own_settings.get(name, 'none')}"
                )
    return lines


def _settings_without_role(settings: Mapping[str, str]) -> dict[str, str]:
    """The generation settings of the model of a run, without those of its roles."""
    return {name: value for name, value in settings.items() if " of " not in name}


# ---- the tables


SWEPT = {"ethical_dilemma": "effort"}
"""The argument that makes runs of a task the points of a curve."""

T = TypeVar("T")

SAMPLES_A_PROCESS = 10_000
"""Number of further samples that are worth a process of their own, which takes seconds to start."""


@dataclass(frozen=True)
class Results:
    """Tables of a set of logs. Each has the columns `task`, `target`, `observer`."""

    cells: pd.DataFrame
    """One row a task × target × observer: log, status ("complete", "failed", "missing"), reason,
    samples, errors, reasoned (share), epochs, version, dataset, dataset_sha256, created, args.
    """
    decisions: pd.DataFrame
    """One row a cell × item × epoch × key: value (NaN when unscored), unscored, truth, said,
    chance, ceiling, floor, reasoned. Rows of failed cells are there too; `cells.status` says so.
    """
    items: pd.DataFrame
    """One row a task × item: its input text, its kind or "" where the data set has none, and the
    cluster that it counts with (its own id without one).
    """
    ignored: dict[str, str]
    """Logs that were not used, and why: superseded, of another setting, unreadable, or of something
    else.
    """
    runs: list[Run]
    """Every run of the suite, in use or not."""
    informed: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The runs of observers that were told of their target, like `cells`, with a column `arm`
    ("named", "shown:5").
    """
    informed_decisions: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Decisions of these runs, with the column `arm`."""
    frames: Mapping[MatrixCell, Frames] = field(default_factory=dict)
    """Statements of models about themselves and about another assistant, for the runs that asked
    both.
    """
    settings: Mapping[str, str] = field(default_factory=dict)
    """See `ChosenRuns`."""
    difference_by_empty_cell: Mapping[MatrixCell, str] = field(default_factory=dict)
    """See `ChosenRuns`."""

    def decisions_of(self, task: str) -> pd.DataFrame:
        """The decisions of one task; no copy where there is no other: of 110 models they take 200
        MB.
        """
        of_task = self.decisions.task == task
        return self.decisions if of_task.all() else self.decisions[of_task]


@dataclass(frozen=True)
class TaskMatrix:
    """Scores of one task, for the statistics."""

    task: str
    models: list[str]
    """Targets and observers, in this order."""
    items: list[str]
    scores: npt.NDArray[np.float64]
    """[target, observer, item]; NaN where unscored or where the cell is a hole."""
    holes: dict[tuple[str, str], str]
    """(target, observer) → reason of the hole."""


def matrices_of(logged_runs: Runs, paths: Sequence[str] = ()) -> Results:
    """Tables of the runs of a matrix's tasks.

    The cells of a task are of one setting (`choose_setting`); the finished run of a cell with
    most items counts, then the newest (`logs.runs`); without a finished one it is "failed". Runs
    with an `effort` of their own give way to those without: they are points of the effort curve
    (`papers.effort_curve`). Cells that need no call are joined from their models' runs on themselves.

    Args:
        logged_runs: Runs of these tasks, and of others.
        paths: Paths that were searched, for messages.

    Raises:
        NoLogs: There is no selfprobe log.
    """
    ignored = dict(logged_runs.set_aside_reasons)
    suite_runs, choice, contents = _read_chosen_runs(logged_runs.counted, ignored)
    plain_runs = _cells_of_length(choice.runs, PLAIN_CELL_LENGTH)
    plain_contents = _cells_of_length(contents, PLAIN_CELL_LENGTH)
    informed_runs = _cells_of_length(choice.runs, INFORMED_CELL_LENGTH)
    informed_contents = _cells_of_length(contents, INFORMED_CELL_LENGTH)
    if not plain_runs:
        reason = (
            "its observer was told of the target, and no model's run on itself is here to compare "
            "it with"
        )
        ignored |= {run.log: reason for run in informed_runs.values()}
        raise NoLogs(none_found(paths, ignored), ignored)

    cells = [cell_of(cell, run, plain_contents[cell]) for cell, run in plain_runs.items()]
    tasks_without_call = [task for task, measure in measures().items() if measure.observer == 0]
    joined_pairs = [pair for task in tasks_without_call for pair in joinable(task, plain_runs)]
    name_of_cell = operator.itemgetter(*CELL_COLUMNS)
    cell_by_name = {name_of_cell(cell): cell for cell in cells}
    for pair in joined_pairs:
        target_cell = cell_by_name[own_cell(pair, 1)]
        observer_cell = cell_by_name[own_cell(pair, 2)]
        cells.append(joined_cell(pair, target_cell, observer_cell))
    cells.sort(key=name_of_cell)  # an order that no run's end moves

    rows = _decision_table(plain_contents)
    is_about_other = rows.key.str.startswith(OTHER_PREFIX)
    decisions = rows[~is_about_other].reset_index(drop=True)
    joined_decisions = add_joined_cells(decisions[DECISION_COLUMNS], joined_pairs)
    informed_cells = [
        cell_of(cell, run, informed_contents[cell]) for cell, run in sorted(informed_runs.items())
    ]
    finished_cells = [cell for cell, run in plain_runs.items() if run.finished]
    return Results(
        cells=pd.DataFrame(cells),
        decisions=add_floor_and_nearest_reply(joined_decisions, plain_runs),
        items=_items(rows),
        ignored=ignored,
        runs=suite_runs,
        informed=pd.DataFrame(informed_cells),
        informed_decisions=_informed_decisions(informed_contents),
        frames=_frames(rows, finished_cells),
        settings=choice.settings,
        difference_by_empty_cell=choice.difference_by_empty_cell,
    )


def _runs_by_cell(
    counted_runs: Sequence[Run], ignored: dict[str, str]
) -> tuple[list[Run], dict[MatrixCell, list[Run]]]:
    """The runs of the suite, and those of each cell; why a run is neither goes into `ignored`."""
    runs_by_cell: dict[MatrixCell, list[Run]] = {}
    suite_runs = list[Run]()
    for run in counted_runs:
        task = run.identity.task
        header = run.header
        if "dataset_sha256" not in (header.eval.metadata or {}):
            ignored[run.log] = f"not a selfprobe log (task {header.eval.task})"
            continue
        suite_runs.append(run)
        if task not in measures():
            ignored[run.log] = (
                f"not a matrix task ({task}); see `selfprobe awareness` or examples/dilemmas.py"
            )
            continue
        if about_of(header) == "other":
            ignored[run.log] = (
                "it asks about another assistant alone (about=other); "
                "about=self,other has a difference"
            )
            continue
        cell: MatrixCell = (task, target_of(header), header.eval.model)
        arm = informed_of(header)
        if arm:
            cell = (*cell, arm)
        runs_by_cell.setdefault(cell, []).append(run)
    return suite_runs, runs_by_cell


PLAIN_CELL_LENGTH = 3
"""Length of the name of a cell."""
INFORMED_CELL_LENGTH = 4
"""Length of the name of a cell whose observer was told of its target."""


def _cells_of_length(by_cell: Mapping[MatrixCell, T], length: int) -> dict[MatrixCell, T]:
    """The entries of informed observers' cells (INFORMED_CELL_LENGTH), or of the others (PLAIN_CELL_LENGTH)."""
    return {cell: entry for cell, entry in by_cell.items() if len(cell) == length}


def _frames(rows: pd.DataFrame, finished_cells: Collection[MatrixCell]) -> dict[MatrixCell, Frames]:
    """Both frames of each model that was asked about another assistant too.

    Args:
        rows: Decisions of all plain cells, with those about another assistant.
        finished_cells: Cells whose run ended well.
    """
    frames_by_cell: dict[MatrixCell, Frames] = {}
    own_rows = rows[rows.target == rows.observer]
    for (task, target, observer), cell_rows in own_rows.groupby(CELL_COLUMNS, sort=False):
        cell = (str(task), str(target), str(observer))
        is_about_other = cell_rows.key.str.startswith(OTHER_PREFIX)
        if cell not in finished_cells or not is_about_other.any():
            continue
        ordered_rows = pd.concat([cell_rows[~is_about_other], cell_rows[is_about_other]])
        decision_fields = ordered_rows[list(Decision.model_fields)].astype(object)
        decision_fields = decision_fields.where(decision_fields.notna(), None)
        decision_records = decision_fields.to_dict("records")
        judged = [
            (str(item), Decision(**record))
            for item, record in zip(ordered_rows["item"], decision_records, strict=True)
        ]
        compare_frames = measures()[cell[0]].frames or frames
        cell_frames = compare_frames(judged)
        if cell_frames is not None:
            frames_by_cell[cell] = cell_frames
    return frames_by_cell


def add_floor_and_nearest_reply(
    decisions: pd.DataFrame, chosen: Mapping[MatrixCell, Run]
) -> pd.DataFrame:
    """The decisions with each target's floor, and with what the likest other reply gets, where the
    task has them.
    """
    for (task, target, observer), run in chosen.items():
        compare_others = measures()[task].others
        if compare_others is None or target != observer or not run.finished:
            continue
        similarities_by_item = compare_others(run.read_samples())
        is_of_target = (decisions.task == task) & (decisions.target == target)
        is_compared = is_of_target & decisions.item.isin(list(similarities_by_item))
        mean_and_nearest = [similarities_by_item[item] for item in decisions.item[is_compared]]
        decisions.loc[is_compared, "floor"] = [mean for mean, _ in mean_and_nearest]
        plain = decisions.plain.to_numpy(dtype=object, copy=True)
        for row, (_, nearest_similarity) in zip(
            np.flatnonzero(is_compared), mean_and_nearest, strict=True
        ):
            plain[row] = {"nearest other reply": nearest_similarity}
        decisions["plain"] = plain
    return decisions


def _read_chosen_runs(
    counted_runs: Sequence[Run], ignored: dict[str, str]
) -> tuple[list[Run], ChosenRuns, dict[MatrixCell, RunContent]]:
    """The runs of the suite, those that count, and their content; why the others do not count goes
    into `ignored`.

    Where a log turns out to be useless, the next one of the same identity takes its place.
    """
    suite_runs, runs_by_cell = _runs_by_cell(counted_runs, ignored)
    content_by_log: dict[str, RunContent] = {}
    while True:
        choice = choose_setting(runs_by_cell, swept=SWEPT)
        unread_runs = {
            cell: run for cell, run in choice.runs.items() if run.log not in content_by_log
        }
        if not unread_runs:
            ignored |= choice.difference_by_unused_log
            contents = {cell: content_by_log[run.log] for cell, run in choice.runs.items()}
            return suite_runs, choice, contents

        contents_or_reasons = _read_contents(list(unread_runs.values()))
        for (cell, run), content in zip(unread_runs.items(), contents_or_reasons, strict=True):
            if isinstance(content, str):
                ignored[run.log] = content
            elif content.has_decisions or not _scored(run, content):
                content_by_log[run.log] = content
                continue
            else:
                ignored[run.log] = (
                    "no score in it carries decisions: it was not made by a selfprobe scorer"
                )
            next_run = run.next  # one object for both lists
            for run_list in (suite_runs, runs_by_cell[cell]):
                _replace_run(run_list, run, next_run)
            if next_run is not None:
                del ignored[next_run.log]
            elif not runs_by_cell[cell]:
                del runs_by_cell[cell]


def _read_contents(unread_runs: Sequence[Run]) -> list[RunContent | str]:
    """`run_content` of each run; of many samples in several processes."""
    sample_count = sum(run.planned_samples for run in unread_runs)
    useful_processes = max(1, sample_count // SAMPLES_A_PROCESS)
    process_count = min(cpu_count(), len(unread_runs), useful_processes)
    read_in_parallel = Parallel(n_jobs=process_count)
    contents: list[RunContent | str] = read_in_parallel(
        delayed(run_content)(run) for run in unread_runs
    )
    return contents


def _replace_run(run_list: list[Run], useless_run: Run, next_run: Run | None) -> None:
    """Takes a run out of a list, and appends the next one of its identity."""
    run_list[:] = [run for run in run_list if run is not useless_run]
    if next_run is not None:
        run_list.append(next_run)


def _scored(run: Run, content: RunContent) -> bool:
    """Whether decisions are to be expected; a run that failed before them is a hole that tells its
    reason.
    """
    return run.finished and content.error_count < content.sample_count


def matrix_of(results: Results, task: str, *, key: str | None = None) -> TaskMatrix:
    """The scores of one task as [target, observer, item], by `scores_by_item`; with a `key` of this
    decision alone.

    Models are those that are a target or an observer of the task. A cell without a finished run, or
    with another task version, other items or generation settings than most models' runs on
    themselves, is a hole with a reason: all its scores are NaN, never 0.
    """
    cells = results.cells[results.cells.task == task]
    models = sorted({*cells.target, *cells.observer})
    rows = results.decisions_of(task)
    if key is not None:
        rows = rows[rows.key == key]
    holes = _holes(results, task, models)

    counted = _without(rows, holes)
    items = sorted(counted.item.unique()) or sorted(rows.item.unique())
    scores = np.full((len(models), len(models), len(items)), math.nan)
    score_by_place = scores_by_item(counted)
    axis_names = (models, models, items)
    index = score_by_place.index
    places = list[npt.NDArray[np.intp]]()
    for labels, names, codes in zip(axis_names, index.levels, index.codes, strict=True):
        places.append(pd.Index(labels).get_indexer(names)[codes])
    scores[tuple(places)] = score_by_place
    return TaskMatrix(task=task, models=models, items=items, scores=scores, holes=holes)


def _holes(results: Results, task: str, models: Sequence[str]) -> dict[tuple[str, str], str]:
    """(target, observer) of a task → reason why the cell does not count."""
    cells = results.cells[results.cells.task == task]
    reason_without_log = no_log(results.ignored)
    holes = dict[tuple[str, str], str]()
    for target, observer in itertools.product(models, repeat=2):
        reason = results.difference_by_empty_cell.get((task, target, observer), reason_without_log)
        holes[target, observer] = reason

    reason_by_incomparable_pair = incomparable_cells(cells[cells.status == "complete"])
    for cell in cells.itertuples():
        pair = (str(cell.target), str(cell.observer))
        if cell.status != "complete":
            holes[pair] = str(cell.reason)
        elif pair in reason_by_incomparable_pair:
            holes[pair] = reason_by_incomparable_pair[pair]
        else:
            del holes[pair]
    return holes


def counted_rows(results: Results, matrix: TaskMatrix) -> pd.DataFrame:
    """The decisions of a matrix's cells that are no holes: what is left out moves no number of the
    others.
    """
    return _without(results.decisions_of(matrix.task), matrix.holes)


def _without(rows: pd.DataFrame, holes: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    if not holes:
        return rows
    return rows[~pd.MultiIndex.from_frame(rows[CELL_COLUMNS[1:]]).isin(list(holes))]


def scores_by_item(rows: pd.DataFrame) -> pd.Series:
    """The one score of each item of one task: target × observer × item → score; NaN where unscored.

    Args:
        rows: Decisions of a single task, or none.
    """
    (task,) = rows.task.unique() if len(rows) else [""]
    measure = measures().get(task)
    if measure and measure.item_scores:
        return measure.item_scores(rows)
    return rows.groupby([*CELL_COLUMNS[1:], "item"]).value.mean()


DECISION_COLUMNS = [*CELL_COLUMNS, "item", "epoch", *Decision.model_fields]
"""Columns of `Results.decisions`."""
NUMBER_TYPES = {"value": float, "chance": float, "ceiling": float, "floor": float, "reasoned": bool}


def _decision_table(contents: Mapping[MatrixCell, RunContent]) -> pd.DataFrame:
    """Decisions of cells, with the input, kind and cluster of the item; samples in error are left
    out.

    Args:
        contents: Cell → content of its run; the fourth part of a cell is its arm.
    """
    cell_names = [*CELL_COLUMNS, "arm"]
    row_names = ["item", "epoch", "input", "kind", "cluster", *Decision.model_fields]
    columns: dict[str, list[Any]] = {name: [] for name in [*cell_names, *row_names]}
    for cell, content in contents.items():
        row_count = len(content.columns["key"])
        cell_with_arm = (*cell, "")[: len(cell_names)]
        for name, value in zip(cell_names, cell_with_arm, strict=True):
            columns[name] += [value] * row_count
        for name in row_names:
            columns[name] += content.columns[name]

    table = pd.DataFrame(columns)
    is_decision = np.array(columns["key"], dtype=object) != ""
    judged = table[is_decision]
    return judged.astype(NUMBER_TYPES | {"key": object}).reset_index(drop=True)


def _informed_decisions(contents: Mapping[MatrixCell, RunContent]) -> pd.DataFrame:
    rows = _decision_table(contents)
    is_about_target = ~rows.key.str.startswith(OTHER_PREFIX)
    names = [*CELL_COLUMNS, "arm", *DECISION_COLUMNS[len(CELL_COLUMNS) :]]
    return rows.loc[is_about_target, names].reset_index(drop=True)


def _items(rows: pd.DataFrame) -> pd.DataFrame:
    """Inputs, kinds and clusters of the items, by id; of several cells the last one's."""
    names = ["task", "item", "input", "kind", "cluster"]
    return rows[names].drop_duplicates(["task", "item"], keep="last").reset_index(drop=True)
