"""The page of a matrix: its answer, the claims behind it, and its tables."""

import io
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from selfprobe.data.clusters import few_clusters
from selfprobe.logs import Runs, runs
from selfprobe.page import (
    MOST_FINDINGS,
    MOST_TERMINAL_LINES,
    PI,
    Block,
    Column,
    Details,
    Heading,
    Log,
    Page,
    Picture,
    RowTable,
    Section,
    Table,
    claim_page,
    more_in_tables,
    set_aside,
)
from selfprobe.page.columns import columns_of
from selfprobe.page.numerals import number, percent, signed_number
from selfprobe.page.plots import Scale, cut_name, interval_rows, model_names
from selfprobe.stats.claim import Claim, Verdict, strongest_claims
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.matrix.numbers import Analysis, TaskAnalysis, analyse
from selfprobe.studies.matrix.rows import ModelRow
from selfprobe.studies.matrix.sections import (
    AXES_TEXT,
    FRAMES_TEXT,
    AxisRow,
    BaselineRow,
    CellRow,
    FrameRow,
    InformedRow,
    ModelNumbers,
    OwnScore,
    TestRow,
    axis_rows,
    baseline_rows,
    cell_rows,
    frame_lines,
    frame_rows,
    informed_lines,
    informed_rows,
    model_numbers,
    own_scores,
    reasoned_lines,
    task_figures,
    test_rows,
)
from selfprobe.studies.matrix.table import Results, matrices_of
from selfprobe.studies.matrix.verdict import (
    MATRIX_WORDS,
    NEAR_COPY_CAUTION,
    SMALLEST_OWN_ADVANTAGE,
    MatrixFacts,
    baseline_label,
    matrix_claims,
)
from selfprobe.study._registry import measures
from selfprobe.text.counts import count_text
from selfprobe.text.safe import clean, cleaned

MATRIX_QUESTION = "Does a model predict itself better than others predict it?"
PAPER_LINE = Markup(
    "The tables and figures of {} from these logs: <code>selfprobe paper introspectbench LOGS</code>."
).format(PI)


def matrix_page(logs: Sequence[str]) -> Page:
    """`runs_page` of all logs under these files and folders.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no log of a matrix task among them.
    """
    return runs_page(runs(logs), logs)


def runs_page(matrix_runs: Runs, paths: Sequence[str] = ()) -> Page:
    """The page of the matrices of these runs.

    Args:
        matrix_runs: Runs of matrix tasks.
        paths: Paths that were searched, for messages.

    Raises:
        NoLogs: There is no log of a matrix task among them.
    """
    results = matrices_of(matrix_runs, paths)
    return results_page(results, analyse(results, rng=np.random.default_rng(0)))


def results_page(results: Results, analysis: Analysis) -> Page:
    """The page of tables and numbers that are at hand."""
    own_rows = own_scores(results, {task.task: task.matrix for task in analysis.tasks})
    informed = informed_rows(results, analysis)
    axes = axis_rows(results)
    models = _models_of(results)
    names = _unbroken_names(models)
    subjects = strongest_subjects(matrix_subjects(analysis, own_rows, names))
    lone_lines = [_renamed(line, names) for line in _lone_lines(analysis, own_rows)]

    page = _answer_page(
        subjects,
        tables=_shown_tables(results, analysis, own_rows, informed, axes),
        method=_method(results, analysis, axes),
        further_figures=[block for task in analysis.tasks for block in task_figures(task)],
    )
    why, *further_sections = page.sections
    lone_blocks = [escape(clean(line)) for line in lone_lines]  # a command keeps its models' names
    relative_blocks = [escape(clean(_renamed(line, names))) for line in _relative_lines(analysis)]
    why_blocks = [*results.settings.values(), *why.blocks, *relative_blocks, *lone_blocks]
    notes = [
        *_remarks(results),
        *results.settings.values(),
        *_unscored_lines(analysis, names),
        *page.notes,
        *_caution_lines(subjects),
        *lone_lines,
        *frame_lines(results, {task.task for task in analysis.tasks}),
        *informed_lines(informed, analysis),
    ]
    cell_records = _records(results.cells)
    setups = setup_rows([*cell_records, *_records(results.informed)])
    run_table = RowTable(RunRow, run_rows(cell_records, setups))
    setup_table = RowTable(SetupRow, setups)
    return replace(
        page,
        sections=[
            replace(why, blocks=why_blocks),
            *further_sections,
            _runs_section(results, setups),
        ],
        models=models,
        tables={**page.tables, "runs": run_table, "setups": setup_table},
        files={"tables/decisions.parquet": _decisions_file(results)},
        notes=[_renamed(note, names) for note in notes[:MOST_TERMINAL_LINES]],
        holes=_hole_lines(analysis, results, informed),
    )


def _answer_page(
    subjects: Sequence["MatrixSubject"],
    *,
    tables: dict[str, RowTable],
    method: Sequence[Block],
    further_figures: Sequence[Block],
) -> Page:
    """The claims with their first screen; of several tasks the strongest subject of each."""
    claims_by_task: dict[str, list[Claim]] = {}
    for subject in subjects:
        claims_by_task.setdefault(subject.task, []).append(subject.claim)
    has_several_tasks = len(claims_by_task) > 1
    first_subjects = _first_of_tasks(subjects) if has_several_tasks else subjects

    page_claims = list[Claim]()
    relatives_by_subject: dict[str, Sequence[str]] = {}
    for subject in subjects:
        page_claim = subject.page_claim(has_several_tasks)
        page_claims.append(page_claim)
        relatives_by_subject[page_claim.subject] = subject.relatives

    are_all_graded = all(measures()[task].graded for task in claims_by_task)
    scale: Scale = "percent" if are_all_graded else "score"
    return claim_page(
        MATRIX_QUESTION,
        page_claims,
        MATRIX_WORDS,
        picture=first_picture(first_subjects, scale, has_several_tasks=has_several_tasks),
        table=first_table(
            first_subjects[:MOST_FINDINGS], scale, has_several_tasks=has_several_tasks
        ),
        tables=tables,
        method=method,
        notes=relatives_by_subject,
        further_figures=further_figures,
        groups=claims_by_task,
    )


def _unbroken_names(models: Sequence[str]) -> dict[str, str]:
    """Model → its name on the page, which no line breaks."""
    return {
        model: name.replace(" ", "\N{NO-BREAK SPACE}")
        for model, name in model_names(models).items()
    }


def _models_of(results: Results) -> list[str]:
    """All targets and observers, by their full names."""
    models = {*results.cells.target, *results.cells.observer}
    if len(results.informed):
        models |= {*results.informed.target, *results.informed.observer}
    return sorted(models)


def _decisions_file(results: Results) -> bytes:
    content = io.BytesIO()
    cleaned(results.decisions).to_parquet(content, index=False)
    return content.getvalue()


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """A line with its models by the names that people call them; a command keeps theirs."""
    line, command, command_rest = text.partition("selfprobe matrix ")
    for model in sorted(names, key=len, reverse=True):
        line = line.replace(model, names[model])
    return line + command + command_rest


# ---- models in tasks, and what comes closest to them


COMPETITOR_LABELS = {
    "above_observers": "best other model",
    "above_baselines": "without a model",
    "above_informed": "informed observer",
    "above_stand_ins": "another's own replies",
    "above_habit": "its habit",
}
"""Check with a competitor → its name in the picture."""


@dataclass(frozen=True)
class MatrixSubject:
    """A model in a task: its claim, its score on itself, and what its competitors reach."""

    task: str
    claim: Claim
    """The claim, by the model's name on the page."""
    score: Estimate
    """Score on itself."""
    competitors: Mapping[str, Estimate]
    """Name of the competitor in the picture → its score on the model."""
    closest: str
    """The strongest competitor with its score, as in the sentence; "" where nothing was compared.
    """
    above_closest: float
    """Score on itself less the strongest competitor's."""
    relatives: Sequence[str] = ()
    """Sentences on its near-copy and its relatives in the matrix."""

    def page_claim(self, has_several_tasks: bool) -> Claim:
        """The claim with the task in its subject, where there are several."""
        if not has_several_tasks:
            return self.claim
        return replace(self.claim, subject=f"{self.claim.subject} in {self.task}")


def matrix_subjects(
    analysis: Analysis, own_rows: Sequence[OwnScore], names: Mapping[str, str]
) -> list[MatrixSubject]:
    """Every model of every task, those that no other one was compared with too.

    Args:
        analysis: The tasks of several models.
        own_rows: Models on themselves.
        names: Model → its name on the page.
    """
    subjects = []
    analysed_tasks = {task.task for task in analysis.tasks}
    for task in analysis.tasks:
        row_by_model = {row.model: row for row in task.rows}
        for claim in task.claims:
            row = row_by_model.get(claim.subject)
            subject = _subject(task, claim.subject, row, _renamed_claim(claim, names), names)
            relatives = [_renamed(line, names) for line in task.relatives.get(claim.subject, ())]
            subjects.append(replace(subject, relatives=relatives))
    for own_row in own_rows:
        if own_row.task not in analysed_tasks:
            subjects.append(_lone_subject(own_row, names))
    return subjects


def _renamed_claim(claim: Claim, names: Mapping[str, str]) -> Claim:
    """A claim with its models by their names on the page."""
    checks = [
        replace(
            check,
            compared_with=_renamed(check.compared_with, names),
            remedy=_renamed(check.remedy, names),
            difference=replace(check.difference, reason=_renamed(check.difference.reason, names)),
        )
        for check in claim.checks
    ]
    return replace(claim, subject=names[claim.subject], checks=tuple(checks))


def _subject(
    task: TaskAnalysis, model: str, row: ModelRow | None, claim: Claim, names: Mapping[str, str]
) -> MatrixSubject:
    estimate_by_observer = dict[str, Estimate]()
    for cell in task.cells[task.cells.target == model].itertuples():
        estimate_by_observer[cell.observer] = Estimate(
            cell.value, cell.low, cell.high, cell.n, "item", reason=cell.reason
        )
    score = row.score if row else estimate_by_observer[model]
    rival = ""
    for other_model in task.matrix.models:
        value = estimate_by_observer[other_model].value
        if other_model == model or math.isnan(value):
            continue
        if not rival or value > estimate_by_observer[rival].value:
            rival = other_model

    competitors = dict[str, Estimate]()
    if rival:
        competitors[COMPETITOR_LABELS["above_observers"]] = estimate_by_observer[rival]
    if row and not math.isnan(row.guess.value):
        competitors[COMPETITOR_LABELS["above_baselines"]] = row.guess

    closest = ""
    above_closest = math.nan
    strongest = claim.strongest_competitor
    if strongest is not None:
        closest = strongest.compared_with
        above_closest = strongest.difference.value
        label = COMPETITOR_LABELS.get(strongest.name, "strongest competitor")
        strongest_score = score.value - above_closest
        pictured = competitors.get(label)
        if pictured is None or abs(pictured.value - strongest_score) > 0.005:
            competitors[label] = undefined("no interval", n=score.n, value=strongest_score)
    elif rival:
        rival_score = estimate_by_observer[rival].value
        closest = f"{names[rival]} on it: {_score_text(task.task, rival_score)}"
        above_closest = score.value - rival_score
    return MatrixSubject(
        task=task.task,
        claim=claim,
        score=score,
        competitors=competitors,
        closest=closest,
        above_closest=above_closest,
    )


def _score_text(task: str, score: float) -> str:
    """A score in percent where it is a share."""
    return percent(score) if measures()[task].graded else number(score)


def _lone_subject(own_row: OwnScore, names: Mapping[str, str]) -> MatrixSubject:
    """A model that no other one was compared with."""
    is_all_unscored = own_row.unscored == 1
    facts = MatrixFacts(
        models=[own_row.model],
        rows=(),
        holes={own_row.model: own_row.hole} if own_row.hole else {},
        asked_in_full=[own_row.model] if is_all_unscored else [],
        means=np.full((1, 1), math.nan),
        centred=np.full((1, 1), math.nan),
        total=undefined("one model"),
    )
    (claim,) = matrix_claims(facts)
    competitors = dict[str, Estimate]()
    closest = ""
    if not math.isnan(own_row.baseline):
        baseline = undefined("no interval", value=own_row.baseline)
        competitors[COMPETITOR_LABELS["above_baselines"]] = baseline
        baseline_score = _score_text(own_row.task, own_row.baseline)
        closest = f"{baseline_label(own_row.baseline_name)}: {baseline_score}"
    return MatrixSubject(
        task=own_row.task,
        claim=_renamed_claim(claim, names),
        score=own_row.estimate,
        competitors=competitors,
        closest=closest,
        above_closest=own_row.estimate.value - own_row.baseline,
    )


def strongest_subjects(subjects: Sequence[MatrixSubject]) -> list[MatrixSubject]:
    """Subjects in the order of `strongest_claims`."""
    subject_by_claim = {id(subject.claim): subject for subject in subjects}
    ordered_claims = strongest_claims([subject.claim for subject in subjects])
    return [subject_by_claim[id(claim)] for claim in ordered_claims]


def _first_of_tasks(subjects: Sequence[MatrixSubject]) -> list[MatrixSubject]:
    """The strongest subject of each task, in their order."""
    first_by_task: dict[str, MatrixSubject] = {}
    for subject in subjects:
        first_by_task.setdefault(subject.task, subject)
    return list(first_by_task.values())


# ---- the first screen


@dataclass(frozen=True)
class AnswerRow:
    """Answer for one model, or for the model that is furthest ahead in a task."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    answer: Annotated[
        Verdict,
        Heading("answer", "Whether the model predicts itself better than the others explain."),
    ]
    model: Annotated[
        str, Heading("model", "Model that predicts itself; of several tasks the one ahead.")
    ]
    score: Annotated[float, Heading("on itself", "Mean score of the model about itself.")]
    closest: Annotated[
        str,
        Heading("strongest competitor", "What comes closest to the model, with its score on it."),
    ]
    above_it: Annotated[
        float, Heading("above it", "On itself less the strongest competitor.", signed_number)
    ]


def first_table(
    subjects: Sequence[MatrixSubject], scale: Scale, *, has_several_tasks: bool
) -> Table:
    """The answer by model; of several tasks by task."""
    rows = [
        AnswerRow(
            task=subject.task,
            answer=subject.claim.verdict,
            model=subject.claim.subject,
            score=subject.score.value,
            closest=subject.closest.replace(" %", "\N{NO-BREAK SPACE}%") or "–",
            above_it=subject.above_closest,
        )
        for subject in subjects
    ]
    names = ["model", "answer", "score", "closest", "above_it"]
    if has_several_tasks:
        names = ["task", "answer", "model", "score", "closest"]
    columns = [_scaled(column, scale) for column in columns_of(AnswerRow, *names)]
    return Table(rows, columns)


def _scaled(column: Column, scale: Scale) -> Column:
    """A column of the first table with scores in percent where they are shares, and tasks that may
    break.
    """
    if column.of == "score" and scale == "percent":
        return replace(column, show=percent)
    if column.of == "task":
        return replace(column, show=lambda task: Markup("_<wbr>").join(task.split("_")))
    return column


def first_picture(
    subjects: Sequence[MatrixSubject], scale: Scale, *, has_several_tasks: bool
) -> Picture | None:
    """Each model on itself beside its competitors; of several tasks the model ahead in each."""
    scored_subjects = [subject for subject in subjects if not math.isnan(subject.score.value)]
    if not scored_subjects:
        return None
    drawn_subjects = scored_subjects[:MOST_FINDINGS]
    estimates_by_label = {}
    for subject in drawn_subjects:
        label = cut_name(subject.claim.subject)
        if has_several_tasks:
            label = f"{subject.task}\n{label}"
        estimates_by_label[label] = {"itself": subject.score, **subject.competitors}
    caption = f"95 % intervals.{more_in_tables(len(subjects) - len(drawn_subjects))}"
    axis = "cases in which the model is predicted" if scale == "percent" else "score on the model"
    return interval_rows("predicted", estimates_by_label, caption=caption, axis=axis, scale=scale)


def _unscored_lines(analysis: Analysis, names: Mapping[str, str]) -> list[str]:
    """A line on models that no answer is about."""
    unscored_models = sorted({model for task in analysis.tasks for model in task.left_out})
    if not unscored_models:
        return []
    model_list = ", ".join(names[model] for model in unscored_models)
    return [f"No score, so no answer, for {model_list}."]


def _caution_lines(subjects: Sequence[MatrixSubject]) -> list[str]:
    """A line for each model with a Yes on what could still overturn it."""
    models = [subject.claim.subject for subject in subjects if subject.claim.verdict is Verdict.YES]
    return [NEAR_COPY_CAUTION.format(model=model) for model in dict.fromkeys(models)]


def _relative_lines(analysis: Analysis) -> list[str]:
    """Sentences on near-copies and relatives in the matrix, and on what their replies reach."""
    lines = []
    for task in analysis.tasks:
        for model, sentences in task.relatives.items():
            lines += [f"{task.task}, {model}: {sentence}" for sentence in sentences]
    return lines


def _lone_lines(analysis: Analysis, own_rows: Sequence[OwnScore]) -> list[str]:
    """Why tasks that a single model ran on itself have no answer, and what to type."""
    analysed_tasks = {task.task for task in analysis.tasks}
    lone_rows = [row for row in own_rows if row.task not in analysed_tasks]
    if not lone_rows:
        return []
    lines = [
        f"{row.task}, {row.model}: no score, since {row.hole}." for row in lone_rows if row.hole
    ]
    models = list(dict.fromkeys(row.model for row in lone_rows))
    placeholders = ["B", "C", "D", "E"][: max(5 - len(models), 0)]
    model_option = shlex.quote(",".join([*models, *placeholders]))
    task_option = ",".join(dict.fromkeys(row.task for row in lone_rows))
    lines.append(
        "One model alone has no answer, which compares it with at least three others: "
        f"selfprobe matrix --models {model_option} --tasks {task_option}."
    )
    return lines


def _hole_lines(analysis: Analysis, results: Results, informed: Sequence[InformedRow]) -> list[str]:
    """The cells without a score, and why; none that is joined from runs, which are named where they
    are holes.
    """
    joined_rows = results.cells[results.cells.joined.astype(bool)]
    joined_cells = {(cell.task, cell.target, cell.observer) for cell in joined_rows.itertuples()}
    lines = list[str]()
    for task in analysis.tasks:
        for (target, observer), reason in task.matrix.holes.items():
            if (task.task, target, observer) not in joined_cells:
                lines.append(f"{task.task}, {observer} on {target}: {reason}")
    for row in informed:
        if row.hole:
            lines.append(f"{row.task}, {row.observer} ({row.arm}) on {row.target}: {row.hole}")
    return lines


# ---- tables, method, runs


def _shown_tables(
    results: Results,
    analysis: Analysis,
    own_rows: Sequence[OwnScore],
    informed: Sequence[InformedRow],
    axes: Sequence[AxisRow],
) -> dict[str, RowTable]:
    """Tables of the page under Tables, by file stem."""
    tables = {
        "cells": RowTable(CellRow, cell_rows(analysis), hides_empty=True),
        "advantage": RowTable(ModelNumbers, model_numbers(analysis), hides_empty=True),
        "tests": RowTable(TestRow, test_rows(analysis)),
        "baselines": RowTable(BaselineRow, baseline_rows(analysis)),
        "self": RowTable(OwnScore, own_rows, hides_empty=True),
        "axes": RowTable(AxisRow, axes),
        "frames": RowTable(FrameRow, frame_rows(results)),
        "informed": RowTable(InformedRow, informed, hides_empty=True),
    }
    optional = ("axes", "frames", "informed")
    return {name: table for name, table in tables.items() if table.rows or name not in optional}


COUNTING_TEXT = (
    "Scores count what could be read; what could not is shown as unscored, never guessed."
)


@dataclass(frozen=True)
class Term:
    """Words of the page, for people who have not read the paper."""

    word: Annotated[str, Heading("word", "Word of this page.")]
    meaning: Annotated[str, Heading("what it says", "Meaning of the word.")]


METHOD_TERMS = (
    Term(
        "cell",
        "The observer's answers, compared with what the target did when it ran on itself: all "
        "observers face one truth. In a join the other observer's answer is what it said of "
        "itself: it was not asked about the target.",
    ),
    Term(
        "T",
        "The mean of the diagonal above what row and column means predict. It is an estimate and "
        "no test: skill times predictability looks the same.",
    ),
    Term(
        "skill",
        "How well a model predicts the other models. In the table of models on themselves: the "
        "share of the way from the best baseline to 1 that the model goes.",
    ),
    Term("habit", "What a model's answers get against its acts at other items."),
    Term("item-specific", "The score that is left without the habit."),
    Term(
        "ceiling",
        "What the target reaches when it is asked twice: perfect knowledge reaches no more.",
    ),
    Term(
        "without a model",
        "The best of the predictions that need no model: the commonest answer, a classifier of "
        "the item's text, and what a task adds.",
    ),
    Term(
        "informed observer",
        "An observer that was told the target's name, or shown replies of the target to other "
        "items. Where there is one, a named model must know more of itself than the one that "
        "comes closest to it.",
    ),
    Term(
        "over the fit",
        "A model's own cell less what its skill and predictability give, as fitted to the other "
        "cells.",
    ),
    Term(
        "pairs",
        "How much particular models know of one another anyhow (shared data, distillation). More "
        "items do not make it less.",
    ),
    Term(
        "likest other's replies",
        "What another model's own replies get as predictions of this model, from the logs.",
    ),
    Term(
        "answer",
        "Yes where every check under Why holds: the own cell stands out above skill, noise and "
        "the spread of all other pairs, item-specific, and the score is above each competitor's. "
        "Unscored replies of its own count as wrong, and each p is corrected by Holm over all "
        f"models and tasks. No where the advantage is shown to be below {SMALLEST_OWN_ADVANTAGE:.2f}, "
        "or a competitor to reach as much. Else these data cannot decide it: the check that is "
        "open says what would.",
    ),
    Term(
        "what can still pass",
        "Habits that hang on something in the question which the baselines do not see; a "
        "likeness of few models that none of the others has; one strong model among weak ones "
        "that mostly give the same wrong answers.",
    ),
)


def _method(results: Results, analysis: Analysis, axes: Sequence[AxisRow]) -> list[Block]:
    terms = RowTable(Term, METHOD_TERMS)
    tests = Markup(
        "The question is that of {}. Tests: <code>selfprobe/stats/pairs.py</code>, "
        "<code>selfprobe/studies/matrix/habit.py</code>, <code>verdict.py</code>; "
        "how often they are right: <code>docs/statistics.md</code>."
    ).format(PI)
    lines = list(_few_clusters(results))
    for task in analysis.tasks:
        if task.left_out:
            lines.append(
                f"{task.task}: left out of the statistics, because cells of theirs are holes: "
                f"{', '.join(task.left_out)}."
            )
        lines += reasoned_lines(task)
    if results.frames:
        lines.append(FRAMES_TEXT)
    if axes:
        lines.append(AXES_TEXT)
    return [
        f"{_counted(results)}. {COUNTING_TEXT}",
        *lines,
        Table(terms.rows, terms.columns),
        tests,
        PAPER_LINE,
    ]


def _counted(results: Results) -> str:
    """Cells, the runs that they come from, and tasks."""
    joined_count = int(results.cells.joined.sum())
    informed_count = len(results.informed)
    cell_count = len(results.cells)
    run_text = count_text(cell_count - joined_count + informed_count, "run")
    if informed_count:
        run_text += f" ({informed_count} of observers that were told of their target)"
    task_text = count_text(results.cells.task.nunique(), "task")
    return f"{count_text(cell_count, 'cell')} from {run_text}, {task_text}"


def _few_clusters(results: Results) -> Iterator[str]:
    """A sentence for each task whose items count as few clusters."""
    remedy = "?cluster=COLUMN behind the data file's name takes another column"
    for task, items in results.items.groupby("task"):
        clusters = list(items.cluster.astype(str))
        sentence = few_clusters(clusters, rows=f"items of {task}", unit="cluster", remedy=remedy)
        if sentence:
            yield sentence


def _write_applied(applied: Mapping[str, str]) -> str:
    return "; ".join(f"{role}: {settings}" for role, settings in applied.items())


@dataclass(frozen=True)
class RunRow:
    """Runs and joined cells."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    target: Annotated[str, Heading("target", "Model that is predicted.")]
    observer: Annotated[str, Heading("observer", "Model that predicts.")]
    arm: Annotated[str, Heading("told", "Hint about the target that the observer got.")]
    setup: Annotated[int, Heading("setup", "Number of its row in the table of setups.")]
    status: Annotated[str, Heading("status", "Whether the run is complete.")]
    reason: Annotated[str, Heading("why", "Reason of a run that is not complete.")]
    log: Annotated[
        str,
        Heading("log", "Address of the log. A joined cell has both models' own.", on_page=False),
    ]
    items: Annotated[int, Heading("items", "Number of items.", on_page=False)]
    samples: Annotated[int, Heading("samples", "Samples in the log.")]
    errors: Annotated[int, Heading("errors", "Samples that ended in an error.")]
    epochs: Annotated[int, Heading("epochs", "Repetitions of each item.", on_page=False)]
    tokens: Annotated[int, Heading("tokens", "Tokens that the run used.")]
    applied: Annotated[
        dict[str, str],
        Heading(
            "applied", "What the vendor was sent of what the method asked for.", _write_applied
        ),
    ]
    created: Annotated[str, Heading("created", "Time at which the run began.", on_page=False)]
    settings: Annotated[
        dict[str, str], Heading("settings", "Generation settings of the models.", on_page=False)
    ]
    joined: Annotated[
        bool, Heading("joined", "Whether the cell is joined from two runs.", on_page=False)
    ]
    remarks: Annotated[
        list[str], Heading("remarks", "Remarks on how the models answered.", on_page=False)
    ]


@dataclass(frozen=True)
class SetupRow:
    """Setups: the task, data and versions that several runs have in common."""

    setup: Annotated[int, Heading("setup", "Number by which the table of runs names it.")]
    task: Annotated[str, Heading("task", "Task of the matrix.")]
    version: Annotated[str, Heading("task version", "Version of the task, and a hash of its data.")]
    dataset: Annotated[str | None, Heading("data set", "Name of the data set.")]
    dataset_sha256: Annotated[
        str | None, Heading("data set", "Hash of the data set.", on_page=False)
    ]
    args: Annotated[dict[str, Any], Heading("arguments", "Arguments of the task.", on_page=False)]
    selfprobe: Annotated[str | None, Heading("selfprobe", "Version of selfprobe.", on_page=False)]
    inspect: Annotated[str | None, Heading("inspect", "Version of Inspect.", on_page=False)]


SETUP_FIELDS = tuple(field.name for field in fields(SetupRow) if field.name != "setup")

Records = Sequence[Mapping[str, Any]]
"""Rows of `Results.cells` or of `Results.informed`, by column."""


def setup_rows(records: Records) -> list[SetupRow]:
    """Each setup of these runs once, in their order."""
    setup_by_key: dict[str, SetupRow] = {}
    for record in records:
        values: dict[str, Any] = {name: record.get(name) for name in SETUP_FIELDS}
        number = len(setup_by_key) + 1
        setup_by_key.setdefault(_setup_key(record), SetupRow(setup=number, **values))
    return list(setup_by_key.values())


def _setup_key(record: Mapping[str, Any]) -> str:
    return json.dumps([record.get(name) for name in SETUP_FIELDS], sort_keys=True, default=str)


OF_RUNS_ALONE: Mapping[str, Any] = {"log": "", "applied": {}, "settings": {}, "remarks": []}
"""Entries of a joined cell, which stand at the two runs that it is joined from."""


def run_rows(records: Records, setups: Sequence[SetupRow]) -> list[RunRow]:
    """Rows of runs and of joined cells, each with the number of its setup."""
    setup_by_key = {_setup_key(vars(setup)): setup.setup for setup in setups}
    names = [field.name for field in fields(RunRow)]
    rows: list[RunRow] = []
    for record in records:
        values: dict[str, Any] = {name: record.get(name) for name in names}
        values["arm"] = record.get("arm", "")
        values["items"] = len(record["items"])
        values["setup"] = setup_by_key[_setup_key(record)]
        if record["joined"]:
            values |= OF_RUNS_ALONE
        rows.append(RunRow(**values))
    return rows


def _records(frame: pd.DataFrame) -> Records:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _runs_section(results: Results, setups: Sequence[SetupRow]) -> Section:
    joined_count = int(results.cells.joined.sum())
    unjoined_cells = results.cells[~results.cells.joined.astype(bool)]
    run_records = [*_records(unjoined_cells), *_records(results.informed)]
    rows = run_rows(run_records, setups)
    table = RowTable(RunRow, rows, hides_empty=True)
    log_column = Column("log", lambda run: Log(run.log))
    blocks: list[Block] = [
        Table(rows, [*table.columns, log_column]),
        Table(setups, RowTable(SetupRow, setups).columns),
    ]
    if joined_count:
        verb_phrase = "is no run" if joined_count == 1 else "are no runs"
        count_words = count_text(joined_count, "cell")
        blocks.append(
            f"{count_words} {verb_phrase}: joined from both models' own, as tables/runs.csv lists."
        )
    version_texts = [f"selfprobe {row.selfprobe}, inspect {row.inspect}" for row in setups]
    versions = dict.fromkeys(version_texts)
    blocks.append(f"Versions: {'; '.join(versions)}.")
    details = Details(f"All {count_text(len(rows), 'run')}", blocks)
    return Section("Runs", [*_remarks(results), details, *set_aside(results.ignored)], name="runs")


def _remarks(results: Results) -> list[str]:
    """Remarks on how models answered, by task (see `reply_notes.remarks_in`), and on samples that are
    invalidated.
    """
    remarks = list[str]()
    cell_logs = set[str]()
    for table in (results.cells, results.informed):
        for cell in table.itertuples():
            cell_logs.add(cell.log)
            remarks += [f"{cell.task}, {remark}" for remark in getattr(cell, "remarks", ())]
    cell_runs = Runs([run for run in results.runs if run.log in cell_logs])
    return [*remarks, *cell_runs.invalidated_lines]
