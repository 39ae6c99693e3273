"""IntrospectBench ("Me, Myself, and π"): its tables and figures from the logs of a matrix, of open
answers and of an effort sweep.

    selfprobe paper introspectbench logs/paper003 logs/open logs/effort --out out/introspectbench

Only the paper's four tasks count (`PAPER_TASKS`), of k-th words k = 1 alone. A cell without a score
is a hole; a model with a hole is left out of its task for all observers, so that every mean of a
column is over the same models.

Other parts of the paper stand elsewhere: its printed numbers in `introspectbench_printed` (Tables 1
to 3), Figure 4 (§5.1) in `selfprobe/studies/induce.py`, Figure 5 (§5.2, logit lens) in
`studies/read_lens.py`, Figures 6 and 7 (§5.2: .059 and .008, .5326) in `studies/read_attention.py`,
the 23.9 % of §5.2 in `studies/read.py`, prompts (Appendices E and G) in the files of
`introspect_tasks/`, the dilemmas (Appendix F: 750, 196) in `building/` and `examples/dilemmas.py`.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Annotated, Any

import anyio
import numpy as np
import numpy.typing as npt

from selfprobe.data.files import read_text
from selfprobe.embed import DEFAULT_EMBEDDER, unfetched
from selfprobe.errors import InputError, NoLogs
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.logs import Run, Runs, runs
from selfprobe.page import (
    PI,
    Heading,
    Page,
    Picture,
    RowTable,
    interval_text,
    number,
    p_digits,
    p_value,
    plots,
    signed_number,
)
from selfprobe.papers.effort_curve import EffortPoint, effort_picture, effort_points, swept_runs
from selfprobe.papers.exhibit import Exhibit, PaperResults, paper_page
from selfprobe.papers.introspectbench_printed import (
    CHANCE,
    PAPER_TASKS,
    SELF,
    TABLE_2,
    WILCOXON_P,
    paper_name,
    printed_scores,
)
from selfprobe.papers.log_transform import (
    EPSILON,
    EpsilonRow,
    PaperTransform,
    epsilon_sensitivity,
    min_max,
    paper_transform,
)
from selfprobe.papers.similar_replies import (
    OPEN_TASK,
    DrawSimilarity,
    SimilarityRow,
    measure_similarity,
    replies_of,
    similarity_picture,
)
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, spearman, undefined
from selfprobe.studies.matrix.advantage import ModelsTest, wilcoxon_models
from selfprobe.studies.matrix.numbers import (
    cluster_means,
    complete_models,
    item_clusters,
    unit_name,
    unscored_cells,
)
from selfprobe.studies.matrix.table import Results, TaskMatrix, matrices_of, matrix_of
from selfprobe.studies.probe_compare import size_of
from selfprobe.studies.probe_figures import size_text
from selfprobe.study._registry import measures

RESAMPLES = 500
"""Number of resamples of the aggregate's intervals."""
AVERAGE = "average"
"""The mean of the tasks' scores as they are: the public notebook's Average, and Avg of Table 2."""
AGGREGATE = "aggregate"
"""The mean of the min-max normalised tasks: A of G.3."""


def introspectbench_page(
    paths: Sequence[str],
    *,
    embedder: str = DEFAULT_EMBEDDER,
    parameters_by_model: Mapping[str, float] | None = None,
) -> Page:
    """The page of what the logs under these paths hold of the paper.

    Args:
        paths: Logs, or folders of logs.
        embedder: Source of vectors of the replies, for Table 1.
        parameters_by_model: Model → number of parameters, where its name does not say it.

    Raises:
        InputError: A path does not exist.
        NoLogs: The logs hold nothing of the paper.
    """
    paper_runs = runs(paths, {*measures(), OPEN_TASK})
    return page_of_paper_runs(
        paper_runs, embedder=embedder, parameters_by_model=parameters_by_model
    )


def page_of_paper_runs(
    paper_runs: Runs,
    *,
    embedder: str = DEFAULT_EMBEDDER,
    parameters_by_model: Mapping[str, float] | None = None,
) -> Page:
    """The page of these runs; see `introspectbench_page`."""
    return paper_page(PI, introspectbench_results(paper_runs, embedder, parameters_by_model or {}))


def introspectbench_results(
    paper_runs: Runs, embedder: str, parameters_by_model: Mapping[str, float]
) -> PaperResults:
    """Every table and figure that these runs can make, and why the others are missing."""
    exhibits = list[Exhibit]()
    missing = dict[str, str]()

    def add(name: str, make: Callable[[], Exhibit]) -> None:
        try:
            exhibits.append(make())
        except (InputError, PrerequisiteError) as error:
            missing[name] = str(error)

    add("Table 1", lambda: table1(paper_runs, embedder=embedder))
    tasks = list[TaskScores]()
    ignored = dict(paper_runs.set_aside_reasons)
    try:
        results = matrices_of(paper_runs)
        tasks = task_scores(results)
        ignored |= results.ignored
    except NoLogs:
        pass
    if tasks:
        exhibits += matrix_exhibits(tasks)
        missing |= missing_of_matrix(tasks)
        add("Scaling", lambda: score_by_size(tasks, parameters_by_model))
    else:
        missing["Table 2, Figures 2 and 8 to 12"] = (
            "no task of the paper has two models: selfprobe matrix --models A,B,…"
        )
    add("Figure 3", lambda: figure3(paper_runs.counted))
    open_logs = {run.log for run in paper_runs.counted if run.identity.task == OPEN_TASK}
    ignored = {log: reason for log, reason in ignored.items() if log not in open_logs}
    models = sorted({run.identity.model for run in paper_runs.counted})
    return PaperResults(exhibits, missing, ignored, models)


def matrix_exhibits(tasks: Sequence["TaskScores"]) -> list[Exhibit]:
    """Table 2, Figures 2 and 8 to 12, and what the text says of them."""
    exhibits = [table2(tasks)]
    usable_tasks = [task for task in tasks if task.models]
    common_models = models_of_all(usable_tasks)
    if usable_tasks:
        exhibits.append(figure2(usable_tasks))
    if len(usable_tasks) > 1:
        exhibits.append(no_transfer(tasks))
    if len(usable_tasks) > 1 and len(common_models) > 1:
        exhibits.append(figure8(usable_tasks))
    exhibits += [figure9_to_12(task) for task in usable_tasks]
    if len(common_models) > 1:
        exhibits.append(epsilon_of_g3(usable_tasks))
    return exhibits


def missing_of_matrix(tasks: Sequence["TaskScores"]) -> dict[str, str]:
    """Figures and sections that a matrix of these tasks cannot make → why."""
    usable_names = [task.task for task in tasks if task.models]
    present_names = {task.task for task in tasks}
    missing = dict[str, str]()
    if not usable_names:
        missing["Figure 2"] = "no task has two models without a hole; Table 2 says what is missing"
    if len(usable_names) < 2:
        reason = "it compares tasks, of which two are needed: selfprobe matrix --tasks kth_word,…"
        missing |= dict.fromkeys(["§4, transfer between tasks", "Figure 8"], reason)
    elif len(models_of_all([task for task in tasks if task.models])) < 2:
        reason = "no two models are without a hole in all tasks"
        missing |= dict.fromkeys(["Figure 8", "G.3"], reason)
    for name, paper_task in PAPER_TASKS.items():
        if name not in usable_names:
            reason = f"no two models ran it: selfprobe matrix --tasks {name}"
            if name in present_names:
                reason = "no two models are without a hole in it; Table 2 says what is missing"
            missing[f"Figure {paper_task.figure}, {name}"] = reason
    return missing


# ---- scores of the paper's tasks


@dataclass(frozen=True)
class TaskScores:
    """Scores of one of the paper's tasks, as its tables count them."""

    task: str
    matrix: TaskMatrix
    """All models, holes included."""
    models: tuple[str, ...]
    """Models without a hole among them; at least two, or none."""
    left_out: Mapping[str, str]
    """Models left out → why."""
    cluster_of_item: npt.NDArray[np.intp]
    """[item]: the number of the cluster that it counts with."""
    chance: float
    """Score of a blind guess; NaN where the task has none."""

    @property
    def scores(self) -> FloatArray:
        """Scores [target, observer, item] of `models`."""
        return self.among(self.models)

    def among(self, models: Sequence[str]) -> FloatArray:
        """Scores [target, observer, item] of these models."""
        places = [self.matrix.models.index(model) for model in models]
        return self.matrix.scores[np.ix_(places, places)]

    def cell_means(self, models: Sequence[str]) -> FloatArray:
        """Means [target, observer] of these models."""
        return np.asarray(np.nanmean(self.among(models), axis=2))


def task_scores(results: Results) -> list[TaskScores]:
    """The paper's tasks with two models or more, in the paper's order."""
    tasks = list[TaskScores]()
    for task in PAPER_TASKS:
        if not (results.cells.task == task).any():
            continue
        scores = _scores_of_task(results, task)
        if len(scores.matrix.models) > 1:
            tasks.append(scores)
    return tasks


def _scores_of_task(results: Results, task: str) -> TaskScores:
    key = PAPER_TASKS[task].key
    matrix = matrix_of(results, task, key=key)
    models = tuple(complete_models(matrix))
    if len(models) < 2:
        models = ()

    counted_decisions = results.decisions_of(task)
    unscored_reason = "nothing was scored"
    if key is not None:
        counted_decisions = counted_decisions[counted_decisions.key == key]
        if counted_decisions.empty:
            unscored_reason = f"{key} was not asked, which is what the paper's number counts"
    reason_by_cell = dict.fromkeys(sorted(unscored_cells(matrix)), unscored_reason)
    reason_by_cell |= matrix.holes
    left_out = dict[str, str]()
    for model in matrix.models:
        if model not in models:
            left_out[model] = _left_out_reason(model, models, reason_by_cell)
    return TaskScores(
        task=task,
        matrix=matrix,
        models=models,
        left_out=left_out,
        cluster_of_item=item_clusters(results, matrix),
        chance=float(counted_decisions.chance.mean()),
    )


def _left_out_reason(
    model: str, kept_models: Sequence[str], reason_by_cell: Mapping[tuple[str, str], str]
) -> str:
    """The first hole of a model, one with the models that are kept first."""
    allowed_models = {model, *kept_models}
    holes = [cell for cell in reason_by_cell if model in cell]
    holes.sort(key=lambda cell: not set(cell) <= allowed_models)
    if not holes:
        return "fewer than two models are complete"
    target, observer = holes[0]
    cell_text = "on itself" if target == observer else f"{observer} on {target}"
    return f"{cell_text}: {reason_by_cell[holes[0]]}"


def models_of_all(tasks: Sequence[TaskScores]) -> tuple[str, ...]:
    """Models that are complete in every task, in the order of the first one."""
    if not tasks:
        return ()
    complete_everywhere = set(tasks[0].models).intersection(*(task.models for task in tasks))
    return tuple(model for model in tasks[0].models if model in complete_everywhere)


def mean_of_cells(cells: FloatArray, cluster_of_item: npt.NDArray[np.intp]) -> Estimate:
    """The mean of the means of some cells `[cell, item]`, each counting alike, with an interval
    over their items.

    The interval is of the items' influence on it: an item that a cell lacks has none there.
    """
    is_scored_item = ~np.isnan(cells).all(axis=0)
    scores = cells[:, is_scored_item]
    is_scored = ~np.isnan(scores)
    means = np.nanmean(scores, axis=1, keepdims=True)
    deviations = np.where(is_scored, scores - means, 0.0)
    item_counts = is_scored.sum(axis=1, keepdims=True)
    residuals = deviations * scores.shape[1] / item_counts
    influence = means.mean() + residuals.mean(axis=0)
    is_whole_number = np.abs(influence - influence.round()) < 1e-12
    rounded = np.where(is_whole_number, influence.round(), influence)
    unit = unit_name(cluster_of_item)
    return clustered_mean(rounded, cluster_of_item[is_scored_item], unit=unit)


def mean_of_tasks(scores: Sequence[Estimate]) -> Estimate:
    """The mean of scores on different tasks, whose items are independent."""
    if len(scores) == 1:  # the mean of one number is that number, with its interval
        return scores[0]
    value = float(np.mean([score.value for score in scores]))
    se = math.sqrt(sum(score.se**2 for score in scores)) / len(scores)
    if math.isnan(se):
        return undefined("a task's scores are all equal", n=len(scores), value=value)
    return Estimate(value, value - 1.96 * se, value + 1.96 * se, len(scores), "task", se=se)


# ---- Table 1 (§3): how alike the models answer


def table1(paper_runs: Runs, *, embedder: str) -> Exhibit:
    """Table 1 (§3): cosine similarity of the two models that answer an item most alike.

    Paper: "Closest Agreement (Avg.)" .83, .94, .77, .88 and "Variance (Avg.)" .16, .03, .21, .3069,
    of eleven models' unconstrained replies; what the variances are of is not said. Its row Prompt
    Reconstruction is paraphrase_recognition here, as in Table 2; prompt_reconstruction is E.3's
    task, which is in none of its tables. Here: mean and variance over draws, of the items that all
    models answered, with all pairs and two draws of one model beside it.

    Raises:
        InputError: No task has replies of two models.
        PrerequisiteError: The embedder cannot be had, or must be fetched first.
    """
    drawn = replies_of(paper_runs)
    unfetched_reason = unfetched(embedder)
    if unfetched_reason:
        raise PrerequisiteError(unfetched_reason)
    measure = partial(measure_similarity, drawn.replies, embedder=embedder)
    rows, draws = anyio.run(measure)
    row_texts = [f"{row.task} {number(row.closest)}" for row in rows]
    return Exhibit(
        "Table 1",
        "closest agreement of the models' replies",
        "Closest Agreement .83 (K-th Word), .94 (Ethical Dilemma), .77 (Heads Up), .88 (Prompt "
        "Reconstruction, here paraphrase_recognition); Variance .16, .03, .21, .3069",
        ", ".join(row_texts),
        tables={
            "table1": RowTable(SimilarityRow, rows),
            "table1-draws": RowTable(DrawSimilarity, draws, on_page=False),
        },
        hidden_tables=["table1-draws"],
        pictures=[similarity_picture(rows)],
        remarks=[
            "Where replies of different models are alike, another model can be predicted by what "
            "all of them say, and a high score alone does not show introspection.",
            "Compare rows “sampled at” (selfprobe/open_answers) with the paper's; other rows are of "
            "the replies that a matrix recorded, at the task's own temperature and limit.",
            "The paper's variances cannot be variances of these similarities: values in [−1, 1] "
            "with mean 0.88 have at most 0.23, and 0.31 is printed.",
            *drawn.settings,
        ],
    )


# ---- Table 2 (§4): observers on the other models


@dataclass(frozen=True)
class Table2Row:
    """Observers on the other models, as in Table 2."""

    rank: Annotated[int | None, Heading("rank", "1 is the best observer of the others.")]
    observer: Annotated[
        str,
        Heading("observer", "Model that predicts; “Self Introspection” is models on themselves."),
    ]
    kth_word: Annotated[Estimate, Heading("kth_word", "Mean score on the other models, k = 1.")]
    ethical_dilemma: Annotated[
        Estimate, Heading("ethical_dilemma", "Mean score on the other models.")
    ]
    paraphrase_recognition: Annotated[
        Estimate, Heading("paraphrase_recognition", "Mean score on the other models.")
    ]
    heads_up: Annotated[Estimate, Heading("heads_up", "Mean score on the other models.")]
    avg: Annotated[Estimate, Heading("Avg", "Mean over the tasks.")]
    tasks_averaged: Annotated[
        str, Heading("tasks averaged", "Number of the paper's tasks that Avg is over.")
    ]
    hole: Annotated[str, Heading("hole", "Reason of a score that is missing.")]
    paper_row: Annotated[
        str | None, Heading("paper's row", "The paper's name of the model.", on_page=False)
    ]
    paper_kth_word: Annotated[
        float, Heading("paper", "The paper's number in kth_word.", on_page=False)
    ]
    paper_ethical_dilemma: Annotated[
        float, Heading("paper", "The paper's number in ethical_dilemma.", on_page=False)
    ]
    paper_paraphrase_recognition: Annotated[
        float, Heading("paper", "The paper's number in paraphrase_recognition.", on_page=False)
    ]
    paper_heads_up: Annotated[
        float, Heading("paper", "The paper's number in heads_up.", on_page=False)
    ]

    def score_of(self, task: str) -> Estimate:
        """Its score in a task of the paper."""
        score = getattr(self, task)
        assert isinstance(score, Estimate)
        return score


@dataclass(frozen=True)
class TaskRow:
    """Tasks of Table 2."""

    task: Annotated[str, Heading("task", "Task of the suite.")]
    column: Annotated[str, Heading("the paper's column", "Name of the task in Table 2.")]
    models: Annotated[int, Heading("models", "Models whose cells are all scored.")]
    chance: Annotated[float, Heading("chance", "Score of a blind guess.", number)]
    paper_chance: Annotated[
        float, Heading("the paper's chance", "Score of a blind guess in the paper's code.", number)
    ]
    left_out: Annotated[str, Heading("left out", "Models that are left out, and why.")]


def table2(tasks: Sequence[TaskScores]) -> Exhibit:
    """Table 2 (§4): the mean of each observer's scores on the other models, and of all models on
    themselves ("Self Introspection").

    Paper: Avg from 66.94 to 55.77, ten observers; Self Introspection 54.55, 68.69, 39.07, 94.43;
    Headsup above 90 % for all. Its columns Kth Word, CoT Pred, Paraphrase and Headsup are kth_word,
    ethical_dilemma, paraphrase_recognition and heads_up (`PAPER_TASKS`). Here: the same with
    intervals, in the paper's order: by Avg, rows with a hole last.
    """
    rows = table2_rows(tasks)
    task_rows = [_task_row(task) for task in tasks]
    self_row = next(row for row in rows if row.observer == SELF)
    self_texts = [f"{task.task} {interval_text(self_row.score_of(task.task))}" for task in tasks]
    averages = [row.avg.value for row in rows if row.rank is not None]
    measured = f"{SELF}: {', '.join(self_texts)}"
    if averages and len(tasks) > 1:
        range_text = f"{number(max(averages))} to {number(min(averages))}"
        measured = f"Avg of {len(averages)} observers {range_text}; {measured}"
    return Exhibit(
        "Table 2",
        "observers on the other models",
        "Avg of ten observers .67 to .56; Self Introspection .55, .69, .39, .94 (in percent there)",
        measured,
        tables={
            "table2": RowTable(Table2Row, rows, hides_empty=True),
            "table2-tasks": RowTable(TaskRow, task_rows, hides_empty=True),
            "table2-printed": printed_scores(),
        },
        pictures=[_table2_picture(rows, tasks)],
        remarks=[
            "A row is an observer: the mean of its scores on the other models. Compare models' rows "
            f"with each other, and the “{SELF}” row only with the paper's.",
            *_table2_remarks(tasks),
        ],
    )


def table2_rows(tasks: Sequence[TaskScores]) -> list[Table2Row]:
    """One row an observer, and one for models on themselves."""
    models = dict.fromkeys(model for task in tasks for model in task.matrix.models)
    rows = [_table2_row(tasks, model) for model in [*models, SELF]]
    rows.sort(key=lambda row: (math.isnan(row.avg.value), -row.avg.value, row.observer))

    ranked_rows = list[Table2Row]()
    rank = 0
    for row in rows:
        if row.observer == SELF or math.isnan(row.avg.value):
            ranked_rows.append(row)
            continue
        rank += 1
        ranked_rows.append(replace(row, rank=rank))
    return ranked_rows


def _table2_row(tasks: Sequence[TaskScores], model: str) -> Table2Row:
    printed_name = SELF if model == SELF else paper_name(model)
    printed_row = TABLE_2.get(printed_name or "", {})
    score_by_task = {task.task: _observer_score(task, model) for task in tasks}
    holes = list[str]()
    for task, score in score_by_task.items():
        if math.isnan(score.value):
            holes.append(f"{task}: {score.reason}")

    average = _average_of_tasks(score_by_task)
    is_averaged = not math.isnan(average.value)
    task_fields = dict[str, Any]()  # four tasks × two columns
    for task in PAPER_TASKS:
        task_fields[task] = score_by_task.get(task, undefined(f"no model ran {task}"))
        task_fields[f"paper_{task}"] = printed_row.get(task, math.nan) / 100
    return Table2Row(
        rank=None,
        observer=model,
        avg=average,
        tasks_averaged=f"{len(tasks)} of {len(PAPER_TASKS)}" if is_averaged else "",
        hole="; ".join(holes),
        paper_row=printed_name if printed_row else None,
        **task_fields,
    )


def _average_of_tasks(score_by_task: Mapping[str, Estimate]) -> Estimate:
    """Mean over tasks; undefined where one has no score."""
    missing_tasks = [task for task, score in score_by_task.items() if math.isnan(score.value)]
    if missing_tasks:
        return undefined(f"no score in {', '.join(missing_tasks)}")
    return mean_of_tasks(list(score_by_task.values()))


def _observer_score(task: TaskScores, model: str) -> Estimate:
    """Mean of a model on the others, or of all on themselves."""
    if model == SELF:
        if not task.models:
            return undefined("fewer than two models are complete")
        models = range(len(task.models))
        return mean_of_cells(task.scores[models, models], task.cluster_of_item)
    if model not in task.models:
        return undefined(task.left_out.get(model, f"it did not run {task.task}"))
    observer = task.models.index(model)
    scores_on_others = np.delete(task.scores[:, observer], observer, axis=0)
    return mean_of_cells(scores_on_others, task.cluster_of_item)


def _task_row(task: TaskScores) -> TaskRow:
    left_out_texts = [f"{model}: {reason}" for model, reason in task.left_out.items()]
    return TaskRow(
        task=task.task,
        column=PAPER_TASKS[task.task].column,
        models=len(task.models),
        chance=task.chance,
        paper_chance=CHANCE.get(task.task, math.nan),
        left_out="; ".join(left_out_texts),
    )


def _table2_remarks(tasks: Sequence[TaskScores]) -> list[str]:
    """Chance, what is missing, and that columns are over different models where they are."""
    remarks = list[str]()
    for task in tasks:
        if not math.isnan(task.chance) and task.task in CHANCE:
            remarks.append(
                f"{task.task}: a blind guess gets {number(task.chance)} here and "
                f"{number(CHANCE[task.task])} in the paper's code, whose models on themselves "
                f"reach {number(TABLE_2[SELF][task.task] / 100)}."
            )
    present_tasks = [task.task for task in tasks]
    missing_tasks = [task for task in PAPER_TASKS if task not in present_tasks]
    if missing_tasks and len(tasks) > 1:
        remarks.append(
            f"Avg is over {len(tasks)} of the paper's four tasks; not here: "
            f"{', '.join(missing_tasks)}."
        )
    models_by_task = {task.task: task.models for task in tasks if task.models}
    if len(set(models_by_task.values())) > 1:
        remarks.append(
            "The columns are over different models, as table2-tasks says, so compare within a "
            "column only."
        )
    return remarks


def _table2_picture(rows: Sequence[Table2Row], tasks: Sequence[TaskScores]) -> Picture:
    columns = [PAPER_TASKS[task.task].column for task in tasks]
    has_average = len(tasks) > 1
    if has_average:
        columns.append("Avg")
    observers = [row.observer for row in rows]
    short_names = dict(zip(observers, plots.cut_names(observers), strict=True))

    row_names = list[str]()
    scores_of_rows = list[list[Estimate]]()
    for row in rows:
        is_self = row.observer == SELF
        row_names.append(SELF if is_self else f"{row.rank or '–'}. {short_names[row.observer]}")
        scores = [row.score_of(task.task) for task in tasks]
        if has_average:
            scores.append(row.avg)
        scores_of_rows.append(scores)
    return plots.heat_map(
        "table2",
        _parts(scores_of_rows, "value"),
        row_names,
        columns,
        caption=(
            "Mean score of each observer on the other models, coloured within a column; framed: "
            "the models on themselves."
        ),
        title="Observers on the other models",
        low=_parts(scores_of_rows, "low"),
        high=_parts(scores_of_rows, "high"),
        by_column=True,
        framed=row_names.index(SELF),
        x_title="",
        y_title="",
    )


def _parts(estimates_of_rows: Sequence[Sequence[Estimate]], part: str) -> list[list[float]]:
    """Value, low or high of each estimate, row by row."""
    parts_of_rows = list[list[float]]()
    for estimates in estimates_of_rows:
        parts_of_rows.append([getattr(estimate, part) for estimate in estimates])
    return parts_of_rows


# ---- Figure 2 and §4.1: each model on itself against the others


@dataclass(frozen=True)
class SelfAndOthers:
    """Figure 2 on one task, or on a mean of all: each model's score on itself and the others' mean
    on it.
    """

    name: str
    """A task, `AVERAGE` or `AGGREGATE`."""
    models: tuple[str, ...]
    own_scores: tuple[Estimate, ...]
    others_scores: tuple[Estimate, ...]
    test: ModelsTest


@dataclass(frozen=True)
class SelfAndOthersRow:
    """Figure 2: each model on itself and the others on it."""

    on: Annotated[str, Heading("on", "Task, or the mean of several.")]
    model: Annotated[str, Heading("model", "Model that is predicted.")]
    own: Annotated[Estimate, Heading("on itself", "Its score on itself.")]
    others: Annotated[Estimate, Heading("the others on it", "Mean score of the others on it.")]
    difference: Annotated[
        float, Heading("difference", "On itself less the others on it.", signed_number)
    ]


@dataclass(frozen=True)
class ModelsTestRow:
    """Tests of Figure 2."""

    on: Annotated[str, Heading("on", "Task, or the mean of several.")]
    decision: Annotated[
        str, Heading("counted", "The one decision that counts, as in the paper; empty for all.")
    ]
    models: Annotated[int, Heading("models", "Models that were compared.")]
    n: Annotated[int, Heading("differ", "Models with a difference other than 0.")]
    wins: Annotated[
        int,
        Heading(
            "better on themselves", "Models that score higher on themselves than the others do."
        ),
    ]
    rank_sum: Annotated[
        float,
        Heading(
            "rank sum against it",
            "Wilcoxon's statistic: the ranks of the models that do worse on themselves.",
            partial(number, digits=1),
        ),
    ]
    wilcoxon_p: Annotated[
        float, Heading("Wilcoxon p", "One-sided, exact signed-rank test over models.", p_digits)
    ]
    sign_p: Annotated[float, Heading("sign test p", "One-sided sign test over models.", p_digits)]


def figure2(tasks: Sequence[TaskScores]) -> Exhibit:
    """Figure 2, and the test of §4.1: each model's score on itself against the mean of the others
    on it.

    Paper: eleven pairs of points, and p = .0210; it names no test, and no mean of its tasks. That it
    is a signed-rank test over models is our inference: such a p is one of its values (43/2048).
    Here: that test of each task, of the mean of the scores as they are (drawn), and of the mean of
    the min-max normalised tasks. No skill is removed.
    """
    comparisons = self_and_others(tasks, rng=np.random.default_rng(0))
    rows = list[SelfAndOthersRow]()
    for comparison in comparisons:
        rows += _self_and_others_rows(comparison)
    test_rows = [_models_test_row(comparison) for comparison in comparisons]
    test_texts = [
        f"{p_value(comparison.test.wilcoxon_p)} on {comparison.name}" for comparison in comparisons
    ]
    return Exhibit(
        "Figure 2",
        "each model on itself against the others",
        f"eleven pairs of points; p = {p_digits(WILCOXON_P)} (§4.1)",
        "; ".join(test_texts),
        tables={
            "figure2-test": RowTable(ModelsTestRow, test_rows, hides_empty=True),
            "figure2": RowTable(SelfAndOthersRow, rows),
        },
        pictures=_figure2_pictures(comparisons),
        remarks=[
            "One-sided, exact signed-rank test over models. The paper does not say of which test its p "
            "is, nor of which mean of its tasks; 0.0210 is a value of this test. "
            f"{AVERAGE.capitalize()}: the mean of the scores as they are, the Average of its public "
            f"notebook. {AGGREGATE.capitalize()}: the mean of the min-max normalised "
            "tasks (G.3). The two can fall on different sides of .05.",
            "Neither removes skill or predictability; the answer of selfprobe matrix does.",
        ],
    )


def self_and_others(
    tasks: Sequence[TaskScores], *, rng: np.random.Generator
) -> list[SelfAndOthers]:
    """Figure 2 of each task; of several tasks their average, and the aggregate of G.3."""
    comparisons = [_compared_on_task(task) for task in tasks]
    common_models = models_of_all(tasks)
    if len(tasks) < 2 or len(common_models) < 2:
        return comparisons
    comparisons.append(_compared_on_average(tasks, common_models))
    transform = transform_of(tasks, common_models)
    if not np.isnan(transform.aggregate).any():
        comparisons.append(_compared_on_aggregate(tasks, common_models, transform, rng))
    return comparisons


def _compared_on_task(task: TaskScores) -> SelfAndOthers:
    own_scores, others_scores = _both_sides(task, task.models)
    return _compared(task.task, task.models, own_scores, others_scores)


def _compared_on_average(tasks: Sequence[TaskScores], models: Sequence[str]) -> SelfAndOthers:
    """Figure 2 on the mean of the tasks' scores as they are."""
    own_scores_by_task = list[tuple[Estimate, ...]]()
    others_scores_by_task = list[tuple[Estimate, ...]]()
    for task in tasks:
        own_scores, others_scores = _both_sides(task, models)
        own_scores_by_task.append(own_scores)
        others_scores_by_task.append(others_scores)
    own_means = [mean_of_tasks(scores) for scores in zip(*own_scores_by_task, strict=True)]
    others_means = [mean_of_tasks(scores) for scores in zip(*others_scores_by_task, strict=True)]
    return _compared(AVERAGE, models, own_means, others_means)


def _both_sides(
    task: TaskScores, models: Sequence[str]
) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """[model]: each of these on itself, and the mean of the others on it."""
    own_scores = list[Estimate]()
    others_scores = list[Estimate]()
    for target, scores_on_target in enumerate(task.among(models)):
        own_scores.append(mean_of_cells(scores_on_target[[target]], task.cluster_of_item))
        scores_of_others = np.delete(scores_on_target, target, axis=0)
        others_scores.append(mean_of_cells(scores_of_others, task.cluster_of_item))
    return tuple(own_scores), tuple(others_scores)


def _compared(
    name: str,
    models: Sequence[str],
    own_scores: Sequence[Estimate],
    others_scores: Sequence[Estimate],
) -> SelfAndOthers:
    own_values = [score.value for score in own_scores]
    other_values = [score.value for score in others_scores]
    test = wilcoxon_models(own_values, other_values)
    return SelfAndOthers(name, tuple(models), tuple(own_scores), tuple(others_scores), test)


def _compared_on_aggregate(
    tasks: Sequence[TaskScores],
    models: Sequence[str],
    transform: PaperTransform,
    rng: np.random.Generator,
) -> SelfAndOthers:
    """Figure 2 on A, with intervals from resampled items of each task."""
    counted_tasks = [task for task in tasks if task.task not in transform.reasons]
    sums: FloatArray | float = 0.0  # [resample, target, observer]
    for task in counted_tasks:  # one after the other: those of 110 models take 50 MB
        scores = cluster_means(task.among(models), task.cluster_of_item)
        sums = sums + min_max(resampled_means(scores, rng, RESAMPLES))
    aggregates = np.asarray(sums / len(counted_tasks))
    item_count = min(len(set(task.cluster_of_item)) for task in tasks)
    own_values, others_values = _sides_of_aggregate(transform.aggregate)
    drawn_own_values, drawn_others_values = _sides_of_aggregate(aggregates)
    return SelfAndOthers(
        name=AGGREGATE,
        models=tuple(models),
        own_scores=_percentile_estimates(own_values, drawn_own_values, item_count),
        others_scores=_percentile_estimates(others_values, drawn_others_values, item_count),
        test=wilcoxon_models(own_values, others_values),
    )


def resampled_means(scores: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Cell means [resample, target, observer]; a cell that a resample leaves without a score has
    the observed mean.
    """
    size = len(scores)
    item_count = scores.shape[2]
    is_scored = ~np.isnan(scores)
    is_scored_by_cell = is_scored.reshape(-1, item_count)  # [cell, item]
    scores_by_item = np.where(is_scored, scores, 0.0).reshape(-1, item_count).T  # [item, cell]
    draws = rng.multinomial(item_count, np.full(item_count, 1 / item_count), size=resamples)
    item_weights = draws.astype(float)
    if is_scored.all():
        counts = np.full(1, float(item_count))
    else:
        counts = item_weights @ is_scored_by_cell.T
    observed_means = scores_by_item.sum(axis=0) / is_scored_by_cell.sum(axis=1)
    drawn_means = (item_weights @ scores_by_item) / np.maximum(counts, 1)
    means = np.where(counts > 0, drawn_means, observed_means)
    return np.asarray(means.reshape(resamples, size, size))


def _sides_of_aggregate(aggregate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The diagonal of [..., target, observer], and the mean of the rest of each row."""
    size = aggregate.shape[-1]
    own_values = np.diagonal(aggregate, axis1=-2, axis2=-1)
    others_values = (aggregate.sum(axis=-1) - own_values) / (size - 1)
    return own_values, others_values


def _percentile_estimates(
    values: FloatArray, drawn_values: FloatArray, item_count: int
) -> tuple[Estimate, ...]:
    """Each value [model] with a percentile interval of the drawn ones [resample, model]."""
    if item_count < 2:
        reason = "no interval from one item"
        return tuple(undefined(reason, n=item_count, value=float(value)) for value in values)
    lows, highs = np.nanpercentile(drawn_values, [2.5, 97.5], axis=0)
    estimates = list[Estimate]()
    for value, low, high in zip(values, lows, highs, strict=True):
        estimates.append(Estimate(float(value), float(low), float(high), item_count, "item"))
    return tuple(estimates)


def _self_and_others_rows(comparison: SelfAndOthers) -> list[SelfAndOthersRow]:
    rows = list[SelfAndOthersRow]()
    scores_of_models = zip(
        comparison.models, comparison.own_scores, comparison.others_scores, strict=True
    )
    for model, own_score, others_score in scores_of_models:
        difference = own_score.value - others_score.value
        rows.append(SelfAndOthersRow(comparison.name, model, own_score, others_score, difference))
    return rows


def _models_test_row(comparison: SelfAndOthers) -> ModelsTestRow:
    paper_task = PAPER_TASKS.get(comparison.name)
    counted_key = paper_task.key if paper_task else None
    return ModelsTestRow(
        on=comparison.name,
        decision=counted_key or "",
        models=len(comparison.models),
        n=comparison.test.n,
        wins=comparison.test.wins,
        rank_sum=comparison.test.rank_sum,
        wilcoxon_p=comparison.test.wilcoxon_p,
        sign_p=comparison.test.sign_p,
    )


def _figure2_pictures(comparisons: Sequence[SelfAndOthers]) -> list[Picture]:
    """The mean of the tasks first, then each task."""
    drawn = [comparison for comparison in comparisons if comparison.name != AGGREGATE]
    drawn.sort(key=lambda comparison: comparison.name != AVERAGE)
    pictures = list[Picture]()
    for place, comparison in enumerate(drawn):
        stem = "figure2" if place == 0 else f"figure2-{comparison.name}"
        pictures.append(_figure2_picture(comparison, stem))
    return pictures


def _figure2_picture(comparison: SelfAndOthers, stem: str) -> Picture:
    title = "mean of the tasks" if comparison.name == AVERAGE else comparison.name
    scores_by_model = dict[str, Mapping[str, Estimate]]()
    names = plots.cut_names(comparison.models)
    for place, name in enumerate(names):
        scores_by_model[name] = {
            "predicts itself": comparison.own_scores[place],
            "mean of the others on it": comparison.others_scores[place],
        }
    return plots.interval_rows(
        stem,
        scores_by_model,
        caption=(
            f"The paper's Figure 2, {title}: each model on itself, and the mean of the others on "
            "it."
        ),
        axis="score, 95 % interval by item",
        title=f"{title}: itself against the others",
    )


# ---- §4: strong performance on one task does not transfer


@dataclass(frozen=True)
class TaskRanksRow:
    """Likeness of two tasks' rankings of the models."""

    task: Annotated[str, Heading("task", "One task.")]
    other_task: Annotated[str, Heading("other task", "The other task.")]
    observers: Annotated[
        Estimate,
        Heading("observers", "Spearman correlation of the observers' ranks in the two tasks."),
    ]
    own: Annotated[
        Estimate,
        Heading(
            "models on themselves",
            "Spearman correlation of the models' own scores in the two tasks.",
        ),
    ]
    paper_observers: Annotated[
        Estimate, Heading("the paper's ten observers", "The same of the paper's Table 2.")
    ]


def no_transfer(tasks: Sequence[TaskScores]) -> Exhibit:
    """§4: how alike two tasks rank the models (Spearman), beside the paper's own ten rows.

    Paper: "strong performance on one does not transfer", in words. Here: a correlation with an
    interval for each two tasks.
    """
    rows = table2_rows(tasks)
    usable_tasks = [task for task in tasks if task.models]
    rank_rows = [
        _task_ranks_row(rows, first_task, second_task)
        for first_task, second_task in combinations(usable_tasks, 2)
    ]
    correlations = [row.observers.value for row in rank_rows]
    lowest, highest = min(correlations), max(correlations)
    return Exhibit(
        "§4, transfer between tasks",
        "how alike two tasks rank the models",
        "“strong performance on one does not transfer”, without a number",
        f"Spearman's correlations from {signed_number(lowest)} to {signed_number(highest)}",
        tables={"task-ranks": RowTable(TaskRanksRow, rank_rows)},
    )


def _task_ranks_row(
    rows: Sequence[Table2Row], first_task: TaskScores, second_task: TaskScores
) -> TaskRanksRow:
    observer_scores = list[list[float]]()
    own_score_by_model = list[dict[str, float]]()
    printed_scores_of_task = list[list[float]]()
    for task in (first_task, second_task):
        own_scores, _ = _both_sides(task, task.models)
        own_values = [score.value for score in own_scores]
        own_score_by_model.append(dict(zip(task.models, own_values, strict=True)))
        observer_scores.append(
            [row.score_of(task.task).value for row in rows if row.observer != SELF]
        )
        printed_scores_of_task.append(
            [scores[task.task] for model, scores in TABLE_2.items() if model != SELF]
        )
    first_scores, second_scores = own_score_by_model
    common_models = [model for model in first_scores if model in second_scores]
    return TaskRanksRow(
        task=first_task.task,
        other_task=second_task.task,
        observers=spearman(*observer_scores),
        own=spearman(
            [first_scores[model] for model in common_models],
            [second_scores[model] for model in common_models],
        ),
        paper_observers=spearman(*printed_scores_of_task),
    )


# ---- scaling: score by the size of the model


@dataclass(frozen=True)
class ScaleRow:
    """Scores by the size of the model."""

    on: Annotated[str, Heading("on", "Task, or the mean of several.")]
    model: Annotated[str, Heading("model", "Model of a known size.")]
    parameters: Annotated[float, Heading("parameters", "Number of parameters.", size_text)]
    own: Annotated[Estimate, Heading("on itself", "Its score on itself.")]
    observer: Annotated[Estimate, Heading("on the others", "Mean of its scores on the others.")]


def score_by_size(tasks: Sequence[TaskScores], parameters_by_model: Mapping[str, float]) -> Exhibit:
    """§1, scaling: each model's score on itself and on the others by its number of parameters.

    Paper: names scaling behaviour among its contributions, without a figure. Here: of the models
    whose names say a size, and of those in `parameters_by_model`, which wins.

    Raises:
        NoLogs: The size of fewer than two models is known.
    """
    usable_tasks = [task for task in tasks if task.models]
    rows_of_observers = {row.observer: row for row in table2_rows(tasks)}
    rows = list[ScaleRow]()
    for comparison in self_and_others(usable_tasks, rng=np.random.default_rng(0)):
        if comparison.name == AGGREGATE:
            continue
        for model, own_score in zip(comparison.models, comparison.own_scores, strict=True):
            parameters = parameters_by_model.get(model, size_of(model.partition("?")[0]))
            if math.isnan(parameters):
                continue
            observer_row = rows_of_observers[model]
            is_average = comparison.name == AVERAGE
            score = observer_row.avg if is_average else observer_row.score_of(comparison.name)
            rows.append(ScaleRow(comparison.name, model, parameters, own_score, score))
    if len({row.model for row in rows}) < 2:
        raise NoLogs(
            "the size of fewer than two models is known: --sizes FILE.csv with columns model, size"
        )
    drawn_rows = [row for row in rows if row.on == AVERAGE] or rows
    drawn_rows = [row for row in drawn_rows if row.on == drawn_rows[0].on]
    drawn_rows.sort(key=lambda row: row.parameters)
    smallest, largest = drawn_rows[0], drawn_rows[-1]
    return Exhibit(
        "Scaling",
        "score by the size of the model",
        "“study scaling behavior”, without a figure",
        f"{drawn_rows[0].on} on itself {number(smallest.own.value)} at "
        f"{size_text(smallest.parameters)}, {number(largest.own.value)} at "
        f"{size_text(largest.parameters)}",
        tables={"scaling": RowTable(ScaleRow, rows)},
        pictures=[_scaling_picture(drawn_rows)],
        remarks=["Models differ in more than their size: compare sizes of one family."],
    )


def _scaling_picture(rows: Sequence[ScaleRow]) -> Picture:
    places = [math.log10(row.parameters) for row in rows]
    size_texts = [size_text(row.parameters) for row in rows]
    own_scores = [row.own for row in rows]
    observer_scores = [row.observer for row in rows]
    return plots.curves(
        "scaling",
        {"on itself": (places, own_scores), "on the others": (places, observer_scores)},
        caption=f"Score by the model's number of parameters, {rows[0].on}, 95 % intervals.",
        x_title="parameters",
        y_title="score",
        title=f"{rows[0].on}: score by size",
        ticks=dict(zip(places, size_texts, strict=True)),
    )


def read_sizes(path: str) -> dict[str, float]:
    """Model → number of parameters, of a CSV file with columns model and size ("8B", or a number).

    Raises:
        InputError: The file cannot be read, lacks a column, or has a size that is none.
    """
    rows = list(csv.DictReader(io.StringIO(read_text(path))))
    parameters_by_model = dict[str, float]()
    for row in rows:
        if not row.get("model") or not row.get("size"):
            columns = ", ".join(str(name) for name in row)
            raise InputError(f"{path}: expected columns model and size in each row, got {columns}")
        size = row["size"].strip()
        parameters = float(size) if size.replace(".", "", 1).isdigit() else size_of(size)
        if math.isnan(parameters) or parameters <= 0:
            raise InputError(f"{path}: size of {row['model']} must be such as 8B, got {size!r}")
        parameters_by_model[row["model"].strip()] = parameters
    return parameters_by_model


# ---- Figure 3: divergence by effort of the reasoning


def figure3(paper_runs: Sequence[Run]) -> Exhibit:
    """Figure 3 (§4.2): how far the prediction and the gut answer are from the conclusion, by effort
    of the reasoning.

    Paper: two curves of GPT 5.2, KL(p‖p*) above KL(p‖p′). Here: the same of each model that ran
    ethical_dilemma at two efforts or more.

    Raises:
        NoLogs: No model ran ethical_dilemma at two efforts or more.
        InputError: No dilemma can be drawn.
    """
    sweep_runs = swept_runs(paper_runs)
    if not sweep_runs:
        raise NoLogs(
            "no model ran ethical_dilemma at two efforts: "
            "inspect eval selfprobe/ethical_dilemma -T effort=low, then -T effort=high"
        )
    points, ignored = effort_points(sweep_runs)
    points_by_pair: dict[tuple[str, str], list[EffortPoint]] = {}
    for point in points:
        points_by_pair.setdefault((point.target, point.observer), []).append(point)
    pictures = list[Picture]()
    for pair_number, pair_points in enumerate(points_by_pair.values(), start=1):
        stem = "figure3" if len(points_by_pair) == 1 else f"figure3-{pair_number}"
        pictures.append(effort_picture(pair_points, points, stem=stem))
    gain_texts = [
        f"{interval_text(point.kl_gain, sign=True)} ({point.target}, {point.effort})"
        for point in points
    ]
    return Exhibit(
        "Figure 3",
        "divergence from the conclusion by effort of the reasoning",
        "two curves of GPT 5.2: the gut answer is further from the conclusion than the prediction",
        f"gut answer minus prediction, in nats: {', '.join(gain_texts)}",
        tables={"figure3": RowTable(EffortPoint, points)},
        pictures=pictures,
        remarks=[f"Not drawn: {log}: {reason}" for log, reason in ignored.items()],
    )


# ---- Figures 8 to 12: the transform of G.3


@dataclass(frozen=True)
class GridRow:
    """Cells of the transform of G.3."""

    target: Annotated[str, Heading("target", "Model that is predicted.")]
    observer: Annotated[str, Heading("observer", "Model that predicts.")]
    value: Annotated[
        float, Heading("value", "Normalised score (A), or what is left without row and column (C).")
    ]


def transform_of(tasks: Sequence[TaskScores], models: Sequence[str]) -> PaperTransform:
    """A and C (G.3) of these tasks, over these models."""
    return paper_transform({task.task: task.cell_means(models) for task in tasks}, EPSILON)


def figure8(tasks: Sequence[TaskScores]) -> Exhibit:
    """Figure 8 (G.3): the models' matrix over all tasks.

    Paper: a picture of 11 × 11 cells; the text does not say whether of A, the mean of the min-max
    normalised tasks, or of C, double-centred ln(A + ε). Here: both.
    """
    models = models_of_all(tasks)
    transform = transform_of(tasks, models)
    exhibit = _grid_exhibit(8, "all tasks", transform, models)
    left_out_lines = [
        f"{task} is left out of A: {reason}." for task, reason in transform.reasons.items()
    ]
    return replace(exhibit, remarks=[*exhibit.remarks, *left_out_lines])


def figure9_to_12(task: TaskScores) -> Exhibit:
    """Figures 9 to 12 (G.3): the matrix of one task, as Figure 8.

    Paper: Figure 9 is k-th words, 10 CoT Pred, 11 Paraphrase, 12 Headsup; 11 × 11 cells each. Here:
    A and C of that task.
    """
    transform = transform_of([task], task.models)
    return _grid_exhibit(PAPER_TASKS[task.task].figure, task.task, transform, task.models)


def _grid_exhibit(
    figure_number: int, scope: str, transform: PaperTransform, models: Sequence[str]
) -> Exhibit:
    stem = f"figure{figure_number}"
    own_cells = np.diag(transform.centred)
    positive_count = int((own_cells > 0).sum())
    table_stems = [f"{stem}-A", f"{stem}-C"]
    grids = (transform.aggregate, transform.centred)
    return Exhibit(
        f"Figure {figure_number}",
        f"the models' matrix, {scope}",
        "a picture of 11 × 11 cells",
        f"{positive_count} of {len(models)} models have a positive own cell in C",
        tables={
            table_stem: _grid_table(models, grid)
            for table_stem, grid in zip(table_stems, grids, strict=True)
        },
        hidden_tables=table_stems,
        pictures=_grid_pictures(stem, scope, transform, models),
        remarks=["A: min-max per task, mean. C: ln(A + ε), double-centred (G.3)."],
    )


def _grid_table(models: Sequence[str], grid: FloatArray) -> RowTable:
    """One row a target and observer; pages show them as pictures."""
    rows = list[GridRow]()
    for target, values in zip(models, grid, strict=True):
        for observer, value in zip(models, values, strict=True):
            rows.append(GridRow(target, observer, float(value)))
    return RowTable(GridRow, rows, on_page=False)


def _grid_pictures(
    stem: str, scope: str, transform: PaperTransform, models: Sequence[str]
) -> list[Picture]:
    """A and C as heat maps; a task whose scores are all equal has neither."""
    if np.isnan(transform.aggregate).all():
        return []
    names = plots.cut_names(models)
    return [
        plots.heat_map(
            f"{stem}-A",
            transform.aggregate,
            names,
            caption=f"Min-max normalised scores, A (G.3): {scope}.",
            title=f"A: normalised scores, {scope}",
        ),
        plots.heat_map(
            f"{stem}-C",
            transform.centred,
            names,
            caption=f"C, double-centred ln(A + ε), ε = {transform.eps:g}: {scope}.",
            title=f"C: double-centred ln(A + ε), {scope}",
            centred=True,
        ),
    ]


def epsilon_of_g3(tasks: Sequence[TaskScores]) -> Exhibit:
    """G.3: what ε does to the transform.

    Paper: the formula without a number; its public notebook adds 1e-5, and centres raw scores too.
    Here: ε = .01 in the figures, and the statistic for seven values of it.
    """
    models = models_of_all(tasks)
    rows = epsilon_sensitivity({task.task: task.cell_means(models) for task in tasks})
    used_row = next(row for row in rows if row.epsilon == EPSILON and not row.raw)
    return Exhibit(
        "G.3",
        "the transform by ε",
        "a formula without a number for ε",
        f"T on the log scale {number(used_row.advantage, 3)} at the ε of the figures, {EPSILON:g}",
        tables={"epsilons": RowTable(EpsilonRow, rows)},
        remarks=[
            "ε moves the result. The paper's text has no number; its public notebook adds 1e-05, "
            f"and centres raw scores too, without min-max. Here it is {EPSILON}: min-max makes the "
            "least cell of a task 0, and ln(1e-05) of that one cell would be most of C."
        ],
    )
