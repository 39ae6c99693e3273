"""What stands under the closed headings of a matrix for one task: why, and all cells."""

import math

from markupsafe import Markup

from selfprobe.matrix.figures import advantage_picture, cells_picture, centred_picture
from selfprobe.matrix.informed import closest
from selfprobe.matrix.informed_section import informed_table
from selfprobe.matrix.numbers import TaskAnalysis, unit_of
from selfprobe.matrix.power import EFFECT
from selfprobe.matrix.rows import Row
from selfprobe.matrix.scales import SCALES
from selfprobe.numerals import with_short_p
from selfprobe.page import (
    PI,
    Block,
    Box,
    Column,
    Details,
    Figures,
    Section,
    Table,
    estimated,
    number,
    p_digits,
    p_value,
    percent,
    shown,
)
from selfprobe.stats.estimate import Estimate


def why_section(task: TaskAnalysis) -> Section:
    """The verdict of a task, each model's own row, the tests, and what skill and difficulty leave."""
    verdict = task.verdict
    whom = f", for {', '.join(verdict.models)}" if verdict.models else f": {verdict.reason}"
    colour = verdict.kind.partition(" ")[0]
    blocks: list[Block] = [Box(f"{verdict.answer}{whom}.", with_short_p(verdict.sentence), colour)]
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
    cells = Table(
        list(task.cells.itertuples()),
        (Column("target", "target"), Column("observer", "observer"), *SCORED, Column("hole", "hole", look="hole")),
    )
    return Section(task.task, [Figures([cells_picture(task)]), Details("The same as a table", [cells])], name=task.task)


def _reasoned(task: TaskAnalysis) -> list[Block]:
    """Which models reasoned although they were asked not to: their rows are of another kind."""
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


def _model_rows(task: TaskAnalysis) -> Table:
    """What each model's claim rests on, a row each."""
    corrected = dict(zip((row.model for row in task.rows), task.rows_p_holm, strict=True))
    own = task.cells[task.cells.target == task.cells.observer].set_index("target").unscored

    def best_baseline(row: Row) -> str:
        best, reached = row.without_a_model
        return f"{best} {number(reached)}" if best else "–"

    def informed(row: Row) -> str:
        best = closest(task.informed, row.model)
        return f"{best.observer} ({best.arm}) {number(best.score.value)}" if best else "–"

    def on(scale: str) -> Column:
        return Column(f"beyond skill, {scale}: p", lambda row: p_digits(row.beyond.scales[scale]))

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
            *map(on, SCALES),
            Column("crosses: p", lambda row: p_digits(row.beyond.crossing), look="n"),
            Column("all, Holm: p", lambda row: p_digits(corrected[row.model]), look="n"),
            Column("would be named from", lambda row: number(row.power.detects)),
            Column(f"items for {EFFECT:.2f}", lambda row: number(row.power.items, 0)),
        ),
    )


def _baselines(task: TaskAnalysis) -> Table:
    """What needs no model, of each model's row: a baseline a row, what it gets and how far the model is above it."""
    rows = [
        {"model": row.model, "baseline": name, "gets": number(row.baselines[name]), "above it": shown(over)}
        for row in task.rows
        for name, over in row.over.items()
    ]
    rows += [
        {"model": row.model, "baseline": f"its habit by {name}", "gets": number(habit), "above it": "taken off"}
        for row in task.rows
        for name, habit in row.habits.items()
    ]
    return Table(rows, tuple(Column(name, name) for name in ("model", "baseline", "gets", "above it")))


def _statistics(task: TaskAnalysis) -> Table:
    """The tests of one task, a row each: quantity, value, what it says."""
    assert task.advantage is not None and task.capability is not None and task.test is not None
    total, shuffled, test = task.advantage.total, task.permutation, task.test
    unit = unit_of(task.cluster)
    rows = [
        (
            "self advantage T",
            shown(total, 3),
            f"(trace − ΣA/M)/(M − 1), {unit}s resampled ({total.n}); {p_value(task.p)}, Holm over tasks "
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
                "the test of {} (p = 0.021 there): {} of {} models score higher on themselves; skill not removed"
            ).format(PI, test.wins, test.n),
        ),
    ]
    heads = ("quantity", "value [95 % interval]", "what it says")
    named = [dict(zip(heads, row, strict=True)) for row in rows]
    return Table(named, tuple(Column(head, head, look="e" * ("value" in head)) for head in heads))


def _left_out(estimate: Estimate) -> str:
    """What an interval that there is leaves out; `shown` gives the reason of one that there is not."""
    return f"; {estimate.reason}" if estimate.reason and not math.isnan(estimate.low) else ""
