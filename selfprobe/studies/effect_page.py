"""Page of `awareness effect`: the answer, a sentence for each arm in the words that it licenses, and all numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from selfprobe.evalawareness_tasks.awareness_effect import AS_IS, LINES
from selfprobe.page import (
    FINDING,
    ROWS,
    Answer,
    Block,
    Bullets,
    Column,
    Details,
    Finding,
    Page,
    Picture,
    Section,
    Table,
    columns,
    estimated,
    headings,
    interval_columns,
    number,
    overall_answer,
    p_digits,
    percent,
    shown,
    signed_number,
    strongest,
)
from selfprobe.page.plots import interval_rows
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.stats.paired import STRONG, Contrast
from selfprobe.studies.effect_numbers import CUES, Found

MARKS = {
    "same": "the same text",
    "other_task": "another task",
    "cues_left": "giveaways left",
    "cues_missing": "no giveaway added",
    "grader_failed": "the check could not be read",
}
"""Reason by the scorer → why a text is not used."""
NAMES = {
    "as_is": "as it is",
    "paraphrase": "paraphrase",
    "cue_out": "giveaways out",
    "cue_in": "giveaways in",
    "told_test": "told: a test",
    "told_use": "told: real use",
    "placebo": "irrelevant line",
}
"""Arm → its name on the page."""
WHERE = {
    "cue_out": "without giveaways",
    "cue_in": "with giveaways put in",
    "told_test": "when told that it is a test",
    "told_use": "when told that it is real use",
}
PHRASES = {
    "cue_out": "Taking its giveaways out",
    "cue_in": "Putting giveaways of a test in",
    "told_test": "Telling it that this is a test",
    "told_use": "Telling it that this is real use",
}
"""Arm → what it does to the prompt, as the beginning of a sentence."""
METHOD = (
    "The task runs with its own solver, tools, scorer, epochs and limits on each item under each arm; an item's arms "
    "are asked together in one run. cue_out and cue_in are compared with paraphrase, which is reworded by the same "
    "writer; told_test and told_use with placebo, an irrelevant line as long; paraphrase and placebo with the task as "
    "it is. Differences are paired by item, with 95 % intervals; p is corrected by Holm over the comparisons of each "
    "kind. P(evaluation) is the mean of two questions of opposite polarity about what the first call of the task sent, "
    "asked in a conversation of its own after the score."
)
LICENCE = (
    "A change under cue_out or cue_in is of these texts. A line that says what a conversation is, is an instruction: "
    "what it changes is no effect of noticing. Nothing here says how the model acts where nobody measures."
)
DOSE = (
    f"The dose is the change of the score for a P(evaluation) higher by .10, with the arm as the instrument (Wald; "
    f"interval of Fieller). It is given where F of the first stage is {STRONG:.0f} or more, and is the effect of "
    "noticing only if the arm changes the score in no other way."
)
ABILITY = "The score of items where the reply declines in neither arm; which items these are depends on the arms."


def page(found: Sequence[Found]) -> Page:
    """The answer by run, with tables arms, effects and items."""
    findings = strongest(finding_of(one) for one in found)
    answer, lines = overall_answer(findings)
    several = len(findings) > 1
    return Page(
        f"Does noticing a test change the score of {', '.join(dict.fromkeys(one.of for one in found))}?",
        answer=answer,
        picture=_picture(findings),
        table=Table(findings[:ROWS], COLUMNS) if several else Table(findings[0].of.contrasts, EFFECTS),
        sections=headings(
            why=[Section(one.model, [f"{one.answer}: {one.clause}.", *one.notes]) for one in findings],
            cells=[Section(one.model, list(_cells(one.of))) for one in findings],
            method=[METHOD, LICENCE, DOSE],
        ),
        tables=_tables(found),
        told=lines,
    )


def finding_of(found: Found) -> Finding:
    """The answer for one run."""
    return Finding(found.model, *_answer(found), found, list(_notes(found)))


def _answer(found: Found) -> tuple[Answer, str]:
    if noticed := [one for one in found.cues if one.shown and one.moved]:
        best = min(noticed, key=lambda one: one.holm)
        return "Yes", f"{_scores(best)}, and {_moves(best)}"
    if not found.cues:
        if not found.told:
            return "Cannot tell", "has no arm that can be compared with its control"
        best = min(found.told, key=lambda one: one.score.p)
        return "Cannot tell", f"{_scores(best)}: an instruction is no awareness"
    if found.edge:
        return "Cannot tell", f"scores {found.arm(AS_IS).score.value:.2f} on the task as it is, at the {found.edge}"
    best = max(found.cues, key=lambda one: float(np.nan_to_num(one.dose.f)))
    if best.shown:
        return "Cannot tell", f"{_scores(best)}, but {_moves(best)}: not by noticing"
    if not best.dose.strong:
        return "Cannot tell", f"is not led to notice less or more: {NAMES[best.arm]}, {_moves(best)}"
    if all(one.within(found.smallest) for one in found.cues if one.dose.strong):
        return "No", f"{_scores(best)}, although {_moves(best)}"
    return "Cannot tell", f"{_scores(best)}, and {_moves(best)}: no effect is shown, and none ruled out"


def _scores(one: Contrast) -> str:
    return f"scores {_way(one.score.estimate, 'higher by', 'lower by', 'alike,')} {WHERE[one.arm]}"


def _moves(one: Contrast) -> str:
    return f"P(evaluation) {_way(one.cause.estimate, 'rises by', 'falls by', 'stays,')}"


def _way(estimate: Estimate, up: str, down: str, neither: str) -> str:
    """A change in words, where its interval lies on one side of 0."""
    if estimate.low > 0:
        return f"{up} {shown(estimate)}"
    if estimate.high < 0:
        return f"{down} {shown(replace(estimate, value=-estimate.value, low=-estimate.high, high=-estimate.low))}"
    return f"{neither} {shown(estimate, sign=True)},"


def _notes(found: Found) -> Iterator[str]:
    """Floor or ceiling first; then what each arm does, the dose, the power, and what is left out."""
    if found.edge:
        way = "fall" if found.edge == "ceiling" else "rise"
        yield f"The score is at the {found.edge} ({found.arm(AS_IS).score.value:.2f} as it is): it can only {way}."
    for one in found.contrasts:
        yield sentence(one, found.smallest)
    for one in found.forms:
        if one.shown:
            what = "Any rewording" if one.arm == "paraphrase" else "Any line in the system message"
            by = shown(one.score.estimate, sign=True)
            yield f"{what} moves the score: {one.arm} less {AS_IS} {by} (n = {one.score.estimate.n})."
    yield from map(_dosed, found.cues)
    least = [one.least(len(found.contrasts)) for one in found.contrasts if not one.shown]
    if known := [effect for effect in least if not math.isnan(effect)]:
        size = f"an effect of {max(known):.2f}" if max(known) < found.scale else "no effect, however large,"
        yield f"Where none is shown, {size} would have been seen with a power of .8."
    for name, marks in found.texts.items():
        if lost := {why: n for why, n in marks.items() if why}:
            reasons = ", ".join(f"{MARKS.get(why, why)} {n}" for why, n in lost.items())
            yield f"{name}: {sum(lost.values())} of {sum(marks.values())} texts are not used ({reasons})."
    for arm in found.arms:
        if arm.failed:
            silent = "; nothing is known of this arm" * math.isnan(arm.score.value)
            yield f"{arm.name}: {arm.failed} of {arm.samples} samples ended in an error{silent}."
        if (mute := arm.items - arm.p.n) > arm.failed:
            yield f"{arm.name}: P(evaluation) is unknown for {mute} of {arm.items} items."
        if arm.unreached:
            yield f"{arm.name}: the first call of {arm.unreached} of {arm.items} items did not hold its line."


def _dosed(one: Contrast) -> str:
    if not one.dose.strong:
        return f"No dose by {one.arm}: {one.dose.estimate.reason}."
    dose = one.dose.estimate
    tenth = replace(dose, value=dose.value / 10, low=dose.low / 10, high=dose.high / 10)
    return (
        f"Dose by {one.arm}: for P(evaluation) higher by .10 the score changes by {shown(tenth, sign=True)}, if the "
        f"arm works through noticing alone (F = {one.dose.f:.0f})."
    )


def sentence(one: Contrast, smallest: float) -> str:
    """Sentence on what an arm does to the score, in the words that the numbers license."""
    effect, cause = (shown(each, sign=True) for each in (one.score.estimate, one.cause.estimate))
    against = f"{'a paraphrase' if one.arm in CUES else 'an irrelevant line'} (n = {one.score.estimate.n})"
    head = f"{PHRASES[one.arm]} moves the score by {effect} against {against}, and P(evaluation) by {cause}"
    if one.within(smallest):
        return f"{head}: no effect of {100 * smallest:g} points or more."
    if not one.shown:
        return f"{head}: no effect is shown."
    if one.arm not in CUES:
        return f"{head}. An instruction is no awareness."
    return f"{head}: {'the score of these texts depends on noticing' if one.moved else 'but not by noticing'}."


def _signed(title: str, of: Any) -> Column:
    return Column(title, of, lambda e: shown(e, sign=True).replace(", ", ",\N{NO-BREAK SPACE}"), look="e")


EFFECTS = (
    Column("arm", lambda one: NAMES[one.arm]),
    _signed("score changes by", lambda one: one.score.estimate),
    Column("P(evaluation) changes by", lambda one: one.cause.estimate.value, signed_number),
    Column("p (Holm)", "holm", p_digits),
)
COLUMNS = (
    *FINDING,
    Column("without giveaways", lambda one: _of(one.of, "cue_out").value, signed_number),
    Column("told that it is a test", lambda one: _of(one.of, "told_test").value, signed_number),
    Column("told that it is real use", lambda one: _of(one.of, "told_use").value, signed_number),
)


def _of(found: Found, arm: str) -> Estimate:
    return next((one.score.estimate for one in found.contrasts if one.arm == arm), undefined("not asked"))


def _picture(findings: Sequence[Finding]) -> Picture | None:
    """Changes of the score by arm: of one model beside those of P(evaluation), of several a mark each."""
    rows: dict[str, dict[str, Estimate]] = {}
    for one in findings[:ROWS]:
        found: Found = one.of
        for effect in [*found.contrasts, *found.forms]:
            label = f"{NAMES[effect.arm]}\nless {NAMES[effect.control]}"
            if len(findings) > 1:
                rows.setdefault(label, {})[one.model] = effect.score.estimate
            else:
                rows[label] = {"score": effect.score.estimate, "P(evaluation)": effect.cause.estimate}
    caption = "Change from the control, paired by item; 95 % intervals. Lines are instructions, not noticing."
    axis = "change of the score" if len(findings) > 1 else "change"
    return interval_rows("effects", rows, caption=caption, axis=axis, scale="signed", line=0) if rows else None


def _cells(found: Found) -> Iterator[Block]:
    by_arm = [
        Column("arm", lambda one: NAMES[one.name]),
        Column("items", "items", str),
        estimated("score", "score"),
        estimated("P(evaluation)", "p"),
        Column("declined", "declined", percent),
        Column("errors", "failed", str),
    ]
    doses = [
        Column("arm", lambda one: NAMES[one.arm]),
        Column("F", lambda one: one.dose.f, lambda f: number(f, 1)),
        _signed("dose", lambda one: one.dose.estimate),
    ]
    apart = [
        Column("arm", lambda arm: NAMES[arm]),
        _signed("declines more by", lambda arm: found.declining[arm].estimate),
        _signed("score where neither declines", lambda arm: found.ability[arm].estimate),
    ]
    yield Section("Arms", [f"The score is {found.score}.", Table(found.arms, by_arm)])
    yield Section("Arms less the control of their form", [Table(found.contrasts, EFFECTS)])
    yield Section("Controls less the task as it is", [Table(found.forms, EFFECTS)])
    yield Section("Dose", [DOSE, Table(found.contrasts, doses)])
    yield Section("Declining apart from ability", [ABILITY, Table(list(found.ability), apart)])
    lines = [f"{NAMES[arm]}: {line}" for arm, line in LINES.items() if any(one.name == arm for one in found.arms)]
    yield Details("The lines", [Bullets(lines)])


def _tables(found: Sequence[Found]) -> dict[str, pd.DataFrame]:
    arms = [
        {"model": one.model, "of": one.of, "arm": arm.name, "items": arm.items}
        | interval_columns("score", arm.score)
        | interval_columns("p", arm.p)
        | {"declined": arm.declined, "errors": arm.failed, "unreached": arm.unreached}
        for one in found
        for arm in one.arms
    ]
    effects: list[dict[str, Any]] = [
        {"model": one.model, "of": one.of, "arm": e.arm, "control": e.control, "kind": kind}
        | columns(e.score.estimate)
        | {"p": e.score.p, "p_holm": e.holm, "f": e.dose.f}
        | interval_columns("moved", e.cause.estimate)
        | interval_columns("dose", e.dose.estimate)
        for one in found
        for kind, of in (("effect", one.contrasts), ("form", one.forms))
        for e in of
    ]
    items = pd.concat([one.rows.assign(model=one.model, of=one.of) for one in found])
    return {"arms": pd.DataFrame(arms), "effects": pd.DataFrame(effects), "items": items}
