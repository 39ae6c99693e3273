"""Sections under the closed headings of a matrix: tasks, models on themselves, informed observers, frames, axes."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from selfprobe.logs import Run, metrics_in
from selfprobe.page import (
    PI,
    Block,
    Column,
    Details,
    Figures,
    Picture,
    Section,
    Table,
    claims_section,
    columns,
    estimated,
    interval_columns,
    number,
    p_digits,
    p_value,
    percent,
    shown,
)
from selfprobe.page.plots import cut_names, heat_map, interval_rows
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.dilemma import dilemma_estimates, dilemmas_of, infinite_kl
from selfprobe.scorers.frames import split
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined
from selfprobe.stats.pairs import OVER_PAIRS, STEPS
from selfprobe.studies.matrix.advantage import SelfAdvantage
from selfprobe.studies.matrix.effort import TASK
from selfprobe.studies.matrix.numbers import Analysis, TaskAnalysis, item_clusters, unit_of
from selfprobe.studies.matrix.published import PLACES, SELF, TABLE_2
from selfprobe.studies.matrix.rows import EFFECT, InformedObserver, ModelRow, closest, informed_observers
from selfprobe.studies.matrix.table import Results, TaskMatrix, matrix_of
from selfprobe.studies.matrix.verdict import MATRIX_WORDS


def cells_picture(task: TaskAnalysis) -> Picture:
    """The matrix of a task, holes included."""
    models = list(task.matrix.models)
    names = cut_names(models)

    def grid(column: str) -> pd.DataFrame:
        return task.cells.pivot(index="target", columns="observer", values=column).loc[models, models]

    guesses = {row.model: row.without_a_model[1] for row in task.rows}
    chance = "" if np.isnan(task.chance) else f" A blind guess gets {task.chance:.2f}."
    holes = f" Hatched: {len(task.matrix.holes)} of {len(models) ** 2} cells have no finished run." * bool(
        task.matrix.holes
    )
    return heat_map(
        f"{task.task}-matrix",
        grid("value"),
        names,
        caption="Scores with 95 % intervals by item; framed: models on themselves. “No model”: the best baseline."
        f"{chance}{holes}",
        title=f"{task.task}: score of each observer on each target",
        low=grid("low"),
        high=grid("high"),
        under={name: guesses[model] for name, model in zip(names, models, strict=True) if model in guesses},
    )


def centred_picture(task: TaskAnalysis, advantage: SelfAdvantage) -> Picture:
    """Picture of what is left of the cells without skill and difficulty."""
    return heat_map(
        f"{task.task}-centred",
        advantage.centred,
        cut_names(task.models),
        caption="What is left of a cell without the observer's skill and the target's difficulty, if these add up. "
        "Skill times difficulty makes the diagonal violet too, so no verdict rests on this picture.",
        title=f"{task.task}: row and column means removed",
        centred=True,
    )


def advantage_picture(task: TaskAnalysis, advantage: SelfAdvantage) -> Picture:
    """Each model's own advantage."""
    names = cut_names([model.model for model in advantage.models])
    return interval_rows(
        f"{task.task}-advantage",
        {name: {"advantage": model.advantage} for name, model in zip(names, advantage.models, strict=True)},
        caption="Self advantage of each model over what skill and difficulty predict.",
        axis="self advantage, 95 % interval by item",
        title=f"{task.task}: self advantage by model",
        scale="signed",
        line=0,
    )


def others_picture(task: TaskAnalysis) -> Picture:
    """Each model on itself, and the mean of the others on it."""
    names, (itself, others) = cut_names(task.models), _self_and_others(task)
    return self_against_others(
        f"{task.task}-self-others",
        {name: (a, b) for name, a, b in zip(names, itself, others, strict=True)},
        caption="How well each model predicts itself, and how well the others predict it on average.",
        title=f"{task.task}: itself against the others",
    )


def self_against_others(
    name: str, models: dict[str, tuple[Estimate, Estimate]], *, caption: str, title: str
) -> Picture:
    """The paper's Figure 2: name → its score on itself and the mean of the others on it."""
    rows = {model: {"predicts itself": a, "mean of the others on it": b} for model, (a, b) in models.items()}
    return interval_rows(name, rows, caption=caption, axis="score, 95 % interval by item", title=title)


def _self_and_others(task: TaskAnalysis) -> tuple[list[Estimate], list[Estimate]]:
    at = [task.matrix.models.index(model) for model in task.models]
    scores = task.matrix.scores[np.ix_(at, at)]  # [target, observer, item]
    items = task.cluster
    own, others = [], []
    for i in range(len(at)):
        own.append(clustered_mean(scores[i, i], items))
        rest = np.delete(scores[i], i, axis=0)
        others.append(clustered_mean(rest.ravel(), np.tile(items, len(rest))))
    return own, others


def why_section(task: TaskAnalysis) -> Section:
    """The verdict of a task, each model's own row, the tests, and what skill and difficulty leave."""
    blocks: list[Block] = claims_section(task.claims, MATRIX_WORDS, {})
    if task.left_out:
        left_out = ", ".join(task.left_out)
        blocks.append(f"Left out of the statistics, because cells of theirs are holes: {left_out}.")
    blocks += _reasoned(task)
    blocks += [_model_rows(task)] if task.rows else []
    if task.advantage:
        pictures = [centred_picture(task, task.advantage)]
        pictures += [advantage_picture(task, task.advantage)] if task.advantage.models else []
        blocks += [_statistics(task), Figures(pictures)]
    blocks += [Details(f"All baselines and habits of {task.task}", [_baselines(task)])] if task.rows else []
    if task.informed:
        title = f"Observers of {task.task} that were told of their target ({len(task.informed)})"
        blocks += [Details(title, [informed_table(task.informed)])]
    return Section(task.task, blocks, name=task.task)


def cells_section(task: TaskAnalysis) -> Section:
    """Every cell of a task, as a picture and as a table."""
    if task.cells.n.sum() == 0:
        return Section(task.task, [f"Nothing was scored: {task.holes}."], name=task.task)
    picture = Figures([cells_picture(task)])
    if len(task.cells) > CELLS_SHOWN:
        return Section(task.task, [picture, f"tables/cells.csv has all {len(task.cells):,} cells."], name=task.task)
    cells = Table(
        list(task.cells.itertuples()),
        (Column("target", "target"), Column("observer", "observer"), *SCORED, Column("hole", "hole", look="hole")),
    )
    return Section(task.task, [picture, Details("The same as a table", [cells])], name=task.task)


CELLS_SHOWN = 1_000
"""Largest number of cells of which a page has a table."""


def _reasoned(task: TaskAnalysis) -> list[Block]:
    """Sentence on models that reasoned although they were asked not to: their rows are of another kind."""
    own = task.cells[(task.cells.target == task.cells.observer) & (task.cells.reasoned > REASONED)]
    if own.empty:
        return []
    named = ", ".join(f"{cell.observer} (of {percent(cell.reasoned)} of its predictions)" for cell in own.itertuples())
    rest = len(task.matrix.models) - len(own)
    return [
        f"Reasoned before predicting, although asked not to: {named}. What such a model says of itself was reasoned "
        "out, and is no immediate introspection"
        + (f": compare its row with the other {rest} with that in mind." if rest else ".")
    ]


REASONED = 0.05
"""Share of a model's predictions that came with reasoning, above which its row is named."""

SCORED = (
    estimated("score [95 % interval]"),
    Column("items or clusters", "n", str),
    Column("unscored", "unscored", percent),
    Column("reasoned", "reasoned", percent),
)
"""Columns of a cell's score."""


HEADS = dict(
    zip(
        STEPS[1:],
        ("beyond noise", "beyond pairs", "beyond all pairs", "beyond others", "beyond its likest"),
        strict=True,
    )
)
"""Step → its head in the table."""


def _model_rows(task: TaskAnalysis) -> Table:
    """Table of what each model's claim rests on, a row each."""
    corrected = dict(zip((row.model for row in task.rows), task.rows_p_holm, strict=True))
    own = task.cells[task.cells.target == task.cells.observer].set_index("target").unscored

    def best_baseline(row: ModelRow) -> str:
        best, reached = row.without_a_model
        return f"{best} {number(reached)}" if best else "–"

    def informed(row: ModelRow) -> str:
        best = closest(task.informed, row.model)
        return f"{best.observer} ({best.arm}) {number(best.score.value)}" if best else "–"

    def likest(row: ModelRow) -> str:
        other, reached = row.stand_in
        return f"{other} {number(reached)}" if other else "–"

    def step(name: str) -> Column:
        if name == OVER_PAIRS:
            return Column(HEADS[name], lambda row: "no" if row.steps[name] else "yes")
        return Column(f"{HEADS[name]}: p", lambda row: p_digits(row.p_of(name)), look="n")

    return Table(
        list(task.rows),
        (
            Column("model", "model"),
            Column("on itself", lambda row: shown(row.score), look="e"),
            Column("unscored", lambda row: percent(own[row.model])),
            Column("its habit", lambda row: number(row.habit)),
            Column("item-specific", lambda row: shown(row.specific), look="e"),
            Column("best other observer", lambda row: f"{row.rival} {number(row.rival_score)}"),
            Column("best without a model", best_baseline),
            *([Column("closest informed observer", informed)] if task.informed else []),
            *([Column("likest other's replies", likest)] if any(row.stand_ins for row in task.rows) else []),
            Column("over the fit", lambda row: number(row.above_fit)),
            *map(step, HEADS),
            Column("all, Holm: p", lambda row: p_digits(corrected[row.model]), look="n"),
            Column("stands out from", lambda row: number(row.power.detects)),
            Column(f"items for {EFFECT:.2f}", lambda row: number(row.power.items, 0)),
        ),
    )


def _baselines(task: TaskAnalysis) -> Table:
    """Table of baselines that need no model, for each model: what one gets, and how far the model is above it."""
    rows = [
        {"model": row.model, "baseline": name, "gets": number(row.baselines[name]), "above it": shown(over)}
        for row in task.rows
        for name, over in row.over.items()
    ]
    rows += [
        {
            "model": row.model,
            "baseline": f"{other}'s own replies",
            "gets": number(row.score.value - over.value),
            "above it": shown(over),
        }
        for row in task.rows
        for other, over in _closest_stand_ins(row)
    ]
    rows += [
        {"model": row.model, "baseline": f"its habit by {name}", "gets": number(habit), "above it": "taken off"}
        for row in task.rows
        for name, habit in row.habits.items()
    ]
    return Table(rows, tuple(Column(name, name) for name in ("model", "baseline", "gets", "above it")))


def _closest_stand_ins(row: ModelRow) -> list[tuple[str, Estimate]]:
    """The other models whose own replies come closest to a model, and how far it is above them, in their order."""
    closest_names = sorted(row.stand_ins, key=lambda other: row.stand_ins[other].value)[:STAND_INS_SHOWN]
    return [(other, over) for other, over in row.stand_ins.items() if other in closest_names]


STAND_INS_SHOWN = 15
"""Largest number of other models whose replies a page compares with a model, one a row."""


def _statistics(task: TaskAnalysis) -> Table:
    """The tests of one task, a row each: quantity, value, what it says."""
    assert task.advantage is not None and task.capability is not None and task.test is not None
    total, shuffled, test = task.advantage.total, task.permutation, task.test
    unit = unit_of(task.cluster)
    rows = [
        (
            "self advantage T",
            shown(total, 3),
            f"(trace − ΣA/M)/(M − 1), t interval over {total.n} {unit}s; one-sided {p_value(task.p)}, Holm over tasks "
            f"{p_value(task.p_holm)}",
        ),
        (
            "the same, item-specific",
            shown(task.total, 3),
            f"each score minus what {task.taken_off} reach" if task.taken_off else "nothing could be taken off",
        ),
        (
            "T where every cell is scored",
            shown(task.complete, 3),
            f"{task.complete.n} {unit}s; if all that is unscored in these models' runs spoke against it T would "
            f"be {number(task.worst[0], 3)}, if for it {number(task.worst[1], 3)}",
        ),
        ("over like observers", shown(task.capability, 3), "capability control" + _left_out(task.capability)),
        *(
            (f"over “{name}”", "–", f"not applied, so the verdict does not ask for it: {why}")
            for name, why in task.without.items()
        ),
        (
            "permutation of observers",
            p_value(shuffled.p),
            f"of the item-specific scores; {shuffled.count} orders{', all of them' if shuffled.exact else ''}; needs "
            "four models to reach .05, and more where few of them have access",
        ),
        (
            "Wilcoxon over models",
            p_value(test.wilcoxon_p),
            Markup(
                "the test of {} (p = 0.021 there): {} of {} models score higher on themselves{}; skill not removed"
            ).format(PI, test.wins, test.n, _over_all(task.task)),
        ),
    ]
    heads = ("quantity", "value [95 % interval]", "what it says")
    lines = [dict(zip(heads, row, strict=True)) for row in rows]
    return Table(lines, tuple(Column(head, head, look="e" * ("value" in head)) for head in heads))


def _over_all(task: str) -> str:
    """What a test counts of a task of which the paper's Figure 2 counts one decision alone; else ""."""
    key = PLACES[task].key if task in PLACES else None
    return f" over all decisions of an item, where Figure 2 counts {key} alone" if key else ""


def _left_out(estimate: Estimate) -> str:
    """What an interval that there is leaves out; `shown` gives the reason of one that there is not."""
    return f"; {estimate.reason}" if estimate.reason and not math.isnan(estimate.low) else ""


BESIDE = {
    "baseline": "best baseline of the log",
    "skill": "skill over it",
    "ceiling": "ceiling",
    "worst_case": "unscored as wrong",
    "best_case": "unscored as right",
    "unsure_refusal": "may be refusals",
    "foreign_reply": "may be a proxy's",
    "kl_predicted": "KL(p‖p′)",
    "kl_direct": "KL(p‖p*)",
}
"""Metrics of a run's log beside the score → their columns' heads."""

ENDS = ("_low", "_high")
"""Endings of the names of a metric's interval in a log."""


def models_on_themselves(own: pd.DataFrame) -> Section:
    beside = [name for name in BESIDE if not own[name].isna().all()] if len(own) else []
    columns_ = (
        *(Column("task", "task"), Column("model", "model"), *SCORED),
        *(Column(BESIDE[name], partial(_with_ends, name), look="e") for name in beside),
        Column("why unscored", "why_unscored"),
        Column("hole", "hole", look="hole"),
    )
    return Section("Models on themselves", [Table(list(own.itertuples()), columns_)], name="self")


def published_section() -> Section:
    """Section on what the paper prints of models on themselves."""
    mean = {"model": "mean of 11 models on themselves", **TABLE_2[SELF]}
    known = tuple(Column(task, task, number) for task in TABLE_2[SELF])
    hint = Markup(
        "The last row of Table 2 of {}, in percent: another data set, other models, no intervals and no unscored "
        "rates, for orientation only. Its k-th words are first words (k1 in a run's log)."
    ).format(PI)
    return Section(
        "The published mean of models on themselves", [hint, Table([mean], (Column("model", "model"), *known))]
    )


def self_table(results: Results, matrices: Mapping[str, TaskMatrix]) -> pd.DataFrame:
    """Table 2 with intervals: each model on itself, task by task, from the item scores that the matrices hold.

    `matrices`: those at hand, by task; a task of a single model has none in an analysis.
    """
    cells = results.cells[results.cells.target == results.cells.observer]
    own = results.decisions[results.decisions.target == results.decisions.observer]
    runs = {run.log: run for run in results.runs}
    metrics = {
        (c.task, c.target): dict(metrics_in(runs[c.log].results)) if c.log in runs else {} for c in cells.itertuples()
    }
    rows = []
    for task, models in cells.groupby("task").target:
        matrix = matrices.get(str(task)) or matrix_of(results, str(task))
        clusters = item_clusters(results, matrix)
        for model in sorted(models):
            place = matrix.models.index(model)
            group = own[(own.task == task) & (own.target == model)]
            estimate = clustered_mean(matrix.scores[place, place], clusters, unit=unit_of(clusters))
            rows.append(
                {
                    "task": task,
                    "model": model,
                    **columns(estimate),
                    "reason": estimate.reason,
                    **_of_its_log(metrics.get((str(task), str(model)), {})),
                    "unscored": float(group.value.isna().mean()),
                    "why_unscored": _reasons(group.unscored),
                    "reasoned": float(group.reasoned.mean()),
                    "hole": matrix.holes.get((model, model), "" if estimate.n else "nothing was scored"),
                }
            )
    return pd.DataFrame(rows)


def _of_its_log(found: Mapping[str, float]) -> dict[str, float | str]:
    """What else the table of models on themselves shows; NaN where the run's log has no such number."""
    head, divergence = "baseline_", "baseline_kl_"
    baselines = {
        name.removeprefix(head): value
        for name, value in found.items()
        if name.startswith(head) and not name.startswith(divergence)
    }
    best = max(baselines, key=lambda name: baselines[name], default="")
    wanted = [f"{name}{end}" for name in BESIDE if name != "baseline" for end in ("", *ENDS)]
    numbers = {name: found.get(name, math.nan) for name in wanted}
    return {**numbers, "baseline": baselines.get(best, math.nan), "baseline_name": best}


def _with_ends(name: str, row: Any) -> str:
    """A number of the table with its interval, where the log has one."""
    low, high = (getattr(row, f"{name}{end}", math.nan) for end in ENDS)
    ends = "" if math.isnan(low) else f" [{number(low)}, {number(high)}]"
    of = f" ({row.baseline_name})" if name == "baseline" and row.baseline_name else ""
    return number(getattr(row, name)) + ends + of


def _reasons(unscored: pd.Series) -> str:
    """The reasons with their shares, the commonest first."""
    counts = unscored.dropna().value_counts().sort_index().sort_values(ascending=False, kind="stable")
    return ", ".join(f"{reason} {percent(count / len(unscored))}" for reason, count in counts.items())


Told = tuple[str, InformedObserver]
"""A task and one observer."""


def informed_rows(results: Results, analysis: Analysis) -> list[Told]:
    """Informed observers of all tasks, including those with a single model on itself, which are in no analysis."""
    out = [(task.task, one) for task in analysis.tasks for one in task.informed]
    known = {task.task for task in analysis.tasks}
    others = sorted(set(results.informed.task) - known) if not results.informed.empty else []
    for task in others:
        if (results.cells.task == task).any():
            out += [(task, one) for one in informed_observers(results, matrix_of(results, task))]
    return out


def informed_table(observers: Sequence[InformedObserver]) -> Table:
    """A row an observer and target."""
    return Table(
        observers,
        (
            *(Column(name, name) for name in ("target", "observer")),
            Column("told", "arm"),
            estimated("score [95 % interval]", "score"),
            Column("target on itself minus this", lambda one: shown(one.over, sign=True), look="e"),
            Column("unscored", "unscored", percent),
            Column("hole", "hole", look="hole"),
        ),
    )


def informed_alone(rows: Sequence[Told], analysis: Analysis) -> list[Section]:
    """A section for each task whose observers are in no section of a matrix."""
    tasks = dict.fromkeys(task for task, _ in rows if task not in {one.task for one in analysis.tasks})
    return [
        Section(
            f"{task}: observers that were told of their target",
            [informed_table([one for name, one in rows if name == task])],
            name=f"informed-{task}",
            menu=f"{task}, informed",
        )
        for task in tasks
    ]


def informed_told(rows: Sequence[Told], analysis: Analysis) -> list[str]:
    """A line each for the terminal, of the tasks without a matrix; a matrix says it in its verdict."""
    known = {task.task for task in analysis.tasks}
    return [
        f"{task}, {one.observer} ({one.arm}) on {one.target}: {shown(one.score)}; "
        f"{one.target} on itself minus this {shown(one.over, sign=True)}"
        for task, one in rows
        if task not in known and not one.hole
    ]


def informed_frame(rows: Sequence[Told]) -> pd.DataFrame:
    """Informed observers for other programs."""
    return pd.DataFrame(
        [
            {"task": task, "target": one.target, "observer": one.observer, "arm": one.arm, **columns(one.score)}
            | {f"target_over_{name}": value for name, value in columns(one.over).items()}
            | {"unscored": one.unscored, "hole": one.hole}
            for task, one in rows
        ]
    )


INTRO = (
    "The same model and item, asked about itself and about “another AI assistant”; both answers are compared with "
    "what the model does itself (-T about=self,other). Itself minus another is what its picture of itself adds to its "
    "picture of an assistant; it needs no other model. The interval is paired, over items."
)


def frames_section(results: Results) -> list[Section]:
    """A row a model and task, where a run asked both."""
    if not results.frames:
        return []
    table = Table(
        sorted(results.frames.items()),
        (
            Column("task", lambda row: row[0][0]),
            Column("model", lambda row: row[0][1]),
            estimated("about itself", lambda row: row[1].own),
            estimated("about another assistant", lambda row: row[1].other),
            Column("itself minus another", lambda row: shown(row[1].gain, sign=True), look="e"),
            Column("items with both", lambda row: str(row[1].gain.n)),
            Column("unscored, another", lambda row: percent(row[1].unscored)),
        ),
    )
    return [Section("About itself, and about another assistant", [INTRO, table], name="frames", menu="own frame")]


def frames_table(results: Results) -> pd.DataFrame:
    """Frames for other programs: one row a task, model and quantity (own, other, gain)."""
    return pd.DataFrame(
        [
            {"task": cell[0], "model": cell[1], "quantity": name, **columns(getattr(found, name))}
            for cell, found in sorted(results.frames.items())
            for name in ("own", "other", "gain")
        ]
    )


def frames_told(results: Results, tasks: Collection[str]) -> list[str]:
    """A line a model of these tasks, for the terminal."""
    return [
        f"{cell[0]}, {cell[1]}: {shown(found.own)} about itself, {shown(found.other)} about another assistant, "
        f"itself minus another {shown(found.gain, sign=True)}"
        for cell, found in sorted(results.frames.items())
        if cell[0] in tasks
    ]


SHOWN = ("kl_predicted", "kl_direct", "kl_gain", "cot_pred")


@dataclass(frozen=True)
class AxisRow:
    """The dilemmas of one value of an axis, of a model on itself."""

    model: str
    axis: str
    """Name of the axis in the data set: "conflict", "relationship", "domain", "ambiguity"."""
    value: str
    dilemmas: int
    """Number of scored dilemmas."""
    infinite: int
    """Number of scored dilemmas that are left out of the means of KL since one of both is infinite."""
    numbers: dict[str, Estimate]
    """Estimates of SHOWN; see `dilemma_estimates`."""


def axis_rows(results: Results) -> list[AxisRow]:
    """A row a model, axis and value, of the finished runs of models on themselves; none where no dilemma has axes."""
    cells, runs = results.cells, {run.log: run for run in results.runs}
    own = cells[(cells.task == TASK) & (cells.target == cells.observer) & (cells.status == "complete")]
    return [row for cell in own.itertuples() if cell.log in runs for row in _rows(str(cell.target), runs[cell.log])]


def _rows(model: str, run: Run) -> list[AxisRow]:
    seen = run.summaries
    axes = {str(s.id): given for s in seen if isinstance(given := s.metadata.get("axes"), dict)}
    if not axes:
        return []
    decisions, _ = split([(str(s.id), d) for s in seen for d in last_decisions(s.scores)])
    dilemmas = {item: one for item, one in dilemmas_of(decisions).items() if not one.unscored and item in axes}
    clusters = {str(s.id): str(s.metadata.get("cluster") or s.id) for s in seen}
    rows = []
    for axis in dict.fromkeys(name for given in axes.values() for name in given):
        for value in sorted({str(axes[item][axis]) for item in dilemmas if axis in axes[item]}):
            here = [item for item in dilemmas if str(axes[item].get(axis)) == value]
            found = dilemma_estimates([dilemmas[item] for item in here], [clusters[item] for item in here])
            numbers = {name: found.get(name, undefined("KL is infinite everywhere")) for name in SHOWN}
            rows.append(
                AxisRow(model, axis, value, len(here), infinite_kl([dilemmas[i] for i in here])["either"], numbers)
            )
    return rows


def axes_section(rows: Sequence[AxisRow]) -> list[Section]:
    """Section with the rows of axes, folded by model."""
    if not rows:
        return []
    columns = (
        Column("axis", "axis"),
        Column("value", "value"),
        Column("dilemmas", "dilemmas", str),
        *(estimated(title, partial(_number, name)) for name, title in _TITLES.items()),
        Column("infinite", "infinite", str),
    )
    told = (
        "Divergences in nats with 95 % intervals over dilemmas, over those at which both are finite. Many values are "
        "compared here: of twenty, one differs by chance."
    )
    models = list(dict.fromkeys(row.model for row in rows))
    tables = [Details(model, [Table([row for row in rows if row.model == model], columns)]) for model in models]
    return [Section("ethical_dilemma by what the dilemmas are about", [told, *tables], name="axes", menu="axes")]


def _number(name: str, row: AxisRow) -> Estimate:
    return row.numbers[name]


_TITLES = {
    "kl_predicted": "KL(p‖p′)",
    "kl_direct": "KL(p‖p*)",
    "kl_gain": "gut answer minus prediction",
    "cot_pred": "cot_pred",
}


def axes_table(rows: Sequence[AxisRow]) -> pd.DataFrame:
    """Table of axes, a row a model, axis and value."""
    return pd.DataFrame(
        [
            {"model": row.model, "axis": row.axis, "value": row.value, "dilemmas": row.dilemmas}
            | {"infinite": row.infinite}
            | {key: x for name, one in row.numbers.items() for key, x in interval_columns(name, one).items()}
            for row in rows
        ]
    )
