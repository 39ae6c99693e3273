"""The first screen of the awareness comparison: its answer in one sentence, one picture and one small table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from selfprobe.awareness.methods_section import arm_name
from selfprobe.awareness.verdict import SAME, Statement, same_answer
from selfprobe.page import Column, Finding, Picture, Table, answered, number, percent
from selfprobe.plots import interval_rows, short
from selfprobe.stats.estimate import Estimate

ROWS = 6
"""Models in picture and table, at most."""
ORDER = ("Yes", "Cannot tell", "No")


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees before anything is opened."""

    answer: str
    picture: Picture | None
    table: Table | None
    notes: tuple[str, ...]
    """A line a model for the terminal, where there are several."""


def first_screen(statements: Sequence[Statement], names: Mapping[str, str]) -> FirstScreen:
    """The answer over all models.

    Args:
        statements: One a model.
        names: Model → the name that people call it.
    """
    names = {model: name.replace(" ", "\N{NO-BREAK SPACE}") for model, name in names.items()}
    ordered = sorted(statements, key=lambda one: (ORDER.index(one.answer), -_auroc(one)))
    shown, labels = ordered[:ROWS], _labels(ordered)
    found = [Finding(names[one.model], one.answer, _clause(one, _labels([one])), one) for one in ordered]
    none = "Cannot tell for any model: no method read a model's own conversations."
    answer, notes = answered(found) if found else (none, [])
    return FirstScreen(
        answer,
        _picture(shown, names, labels, len(ordered) - len(shown)),
        _table(shown, names, labels) if shown else None,
        tuple(notes),
    )


def _auroc(one: Statement) -> float:
    value = one.arm.auroc.value
    return -1.0 if math.isnan(value) else value


def _labels(statements: Sequence[Statement]) -> tuple[str, str] | None:
    """What the two shares are of; None where there is only one."""
    if any(one.sets for one in statements):
        return "yours", "the reference"
    if any(not math.isnan(one.arm.tpr.value) and not math.isnan(one.arm.tnr.value) for one in statements):
        return "tests", "real requests"
    return None


def _shares(one: Statement) -> tuple[Estimate, Estimate]:
    """Share called an evaluation, of tests and of real requests or of your prompts and the reference."""
    if one.sets:
        return one.sets[:2]
    real = one.arm.tnr
    return one.arm.tpr, replace(real, value=1 - real.value, low=1 - real.high, high=1 - real.low)


def _calls(one: Statement, labels: tuple[str, str] | None) -> str:
    if labels is None:
        return f"calls {percent(one.arm.called.value)} of conversations an evaluation"
    mine, other = _shares(one)
    return f"calls {percent(mine.value)} of {labels[0]} an evaluation, and {percent(other.value)} of {labels[1]}"


def _clause(one: Statement, labels: tuple[str, str] | None) -> str:
    """What a model does, after its name: at most twenty words."""
    arm, beyond = one.arm, one.arm.beyond
    calls, reached = _calls(one, labels), number(arm.auroc.value)
    if one.kind == "no verdicts":
        return f"has no verdict of {arm.method} that could be read"
    if one.kind == "answers the same to everything":
        return same_answer(arm)
    if one.kind == "nothing to tell apart":
        few = arm.auroc.reason.startswith(SAME)
        return f"{calls}; {'too few have a label' if few else 'there are no two labels to compare'}"
    if one.kind == "tells them backwards":
        return f"tells them apart the wrong way round (AUROC {reached})"
    if one.kind == "not shown to tell them apart":
        return f"{calls} (AUROC {reached}, and guessing gets 0.50)"
    if one.kind == "follows the format":
        return "follows the benchmark format, and nothing shows that it follows the label"
    if math.isnan(beyond.words.value):
        return f"{calls}; what words alone reach is unknown"
    against = f"(AUROC {number(beyond.words.value)} against {reached})"
    if one.kind == "sees more than the words":
        return f"{calls}; a text classifier does worse {against}"
    if one.kind == "not shown to see more than the length":
        return f"{calls}; length alone is not shown to do worse (AUROC {number(beyond.length.value)} against {reached})"
    if one.answer == "No":
        return f"{calls}; a text classifier does better {against}"
    if beyond.over_words.low > 0 and math.isnan(beyond.words_other_source.value):
        return f"{calls}; it may be the source that it recognises"
    if beyond.over_words.low > 0:
        return f"{calls}; a classifier of other sources' words may do as well"
    return f"{calls}; a text classifier is not shown to do worse {against}"


def _picture(
    shown: Sequence[Statement], names: Mapping[str, str], labels: tuple[str, str] | None, left: int
) -> Picture | None:
    if not any(one.arm.n for one in shown):
        return None
    rows = {
        short(names[one.model]): dict(zip(labels, _shares(one), strict=True)) if labels else {"": one.arm.called}
        for one in shown
    }
    arms = {arm_name(one.arm) for one in shown}
    asked = f"Asked by {arms.pop()}; " if len(arms) == 1 else ""
    more = f" {left} more are under All cells." if left else ""
    return interval_rows(
        "noticed", rows, caption=f"{asked}95 % intervals.{more}", axis="called an evaluation", scale="percent"
    )


def _table(shown: Sequence[Statement], names: Mapping[str, str], labels: tuple[str, str] | None) -> Table:
    first = (Column("model", lambda one: names[one.model]), Column("answer", "answer"))
    if labels is None:
        return Table(shown, (*first, Column("called an evaluation", lambda one: one.arm.called.value, percent)))
    return Table(
        shown,
        (
            *first,
            Column(labels[0], lambda one: _shares(one)[0].value, percent),
            Column(labels[1], lambda one: _shares(one)[1].value, percent),
            Column("AUROC", lambda one: one.arm.auroc.value, number),
        ),
    )
