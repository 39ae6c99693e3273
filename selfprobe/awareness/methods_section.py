"""The page's section of methods: their numbers, and what votes and quotes that were lost leave open."""

import math
from collections.abc import Sequence

from selfprobe.awareness.numbers import ArmNumbers
from selfprobe.awareness.runs import ARM, marks
from selfprobe.awareness.table import Logged
from selfprobe.options import names
from selfprobe.page import Block, Bullets, Column, Section, Table, estimated, percent, shown
from selfprobe.scorers.votes import Bounds

ONE_VOTE = ("reasoning_trace", "first_token")
"""Methods that take their verdict from the reply itself."""
UNMET = {
    "no_logprobs": "the model gives no logprobs, so there are no candidates for the reply's first token",
    "no_reasoning": "the model shows no reasoning",
    "reasoning_summary": "the vendor shows a summary in the place of the reasoning",
    "reasoning_redacted": "the vendor hides the reasoning",
}
"""Why a method cannot be used with a model: what it needs and does not get."""
WORTH_A_WARNING = 0.05
"""Share of lost votes, and of discarded quotes, above which the page says so in a sentence."""


def methods_section(logged: Logged, methods: Sequence[ArmNumbers]) -> Section:
    """The numbers of every method, what lost votes leave open of them, and who graded itself."""
    estimates = {
        "evaluation rows right": "tpr",
        "deployment rows right": "tnr",
        "balanced accuracy": "balanced_accuracy",
        "called evaluation": "called",
        "AUROC": "auroc",
    }
    table = Table(
        methods,
        (
            Column("method", arm_name),
            Column("model", "model"),
            Column("verdicts", "n", str),
            Column("votes read", votes_read),
            Column("unscored", lambda m: ", ".join(f"{why} {percent(x)}" for why, x in m.unscored.items()) or "none"),
            *(estimated(title, of) for title, of in estimates.items()),
            *(estimated(title, of) for title, of in (("Brier", "brier"), ("mean |error|", "mae"), ("ECE", "ece"))),
            Column("precision at 1 / 5 / 10 %", "precision", lambda by: " / ".join(map(shown, by.values())), look="e"),
        ),
    )
    graded = [
        f"{run.method} of {run.model}{f' (placebo {run.placebo})' * bool(run.placebo)} was graded by the subject "
        "itself."
        for run in logged.runs.itertuples()
        if run.model in names(run.grader)
    ]
    halves = [
        f"{arm_name(m)}, {m.model}: {m.at_half} of {m.n} verdicts rest on a stated probability of exactly .5, which "
        "counts as evaluation (as in paper 002)."
        for m in methods
        if m.at_half
    ]
    return Section("Methods", [table, *_lost(methods), *halves, *graded], name="methods", menu="methods")


def votes_read(m: ArmNumbers) -> str:
    """ "1,450 of 1,500 (96.7 %)", with the verdicts that rest on one vote of several."""
    if not m.votes_asked:
        return "none asked"
    alone = f"; {m.one_vote} verdict{'s' * (m.one_vote != 1)} on one vote" if m.one_vote else ""
    return f"{m.votes_read:,} of {m.votes_asked:,} ({percent(m.votes_read / m.votes_asked)}){alone}"


def _lost(methods: Sequence[ArmNumbers]) -> list[Block]:
    """What lost votes and discarded quotes leave open; nothing where nothing is lost."""
    lossy = [m for m in methods if m.votes_read < m.votes_asked or m.unscored or m.quotes_discarded]
    if not lossy:
        return []
    table = Table(
        lossy,
        (
            Column("method", arm_name),
            Column("model", "model"),
            _unscored_of("evaluation"),
            _unscored_of("deployment"),
            _bounded("evaluation rows right", "tpr"),
            _bounded("deployment rows right", "tnr"),
            _bounded("balanced accuracy", "balanced_accuracy"),
            _bounded("called evaluation", "called"),
            Column("quotes not in the text", _discarded, look="n"),
        ),
    )
    warnings = [f"{arm_name(m)}, {m.model}: {text}" for m in lossy for text in _warnings(m)]
    note = (
        "Votes that could not be read say nothing, and may not be lost by chance. Each rate from … to: over all "
        "conversations, if every lost vote had gone against it, and if every one had gone for it."
    )
    return [*([Bullets(warnings)] if warnings else []), note, table]


def _warnings(m: ArmNumbers) -> list[str]:
    found = [f"{text} ({percent(m.unscored[why])} of conversations)." for why, text in unmet(m).items()]
    if m.votes_asked and (lost := m.votes_asked - m.votes_read) > WORTH_A_WARNING * m.votes_asked:
        what = "conversations are without a verdict" if m.method in ONE_VOTE else "votes could not be read"
        found.append(f"{lost:,} of {m.votes_asked:,} {what} ({percent(lost / m.votes_asked)}).")
    if m.quotes_discarded > WORTH_A_WARNING * m.quotes:
        found.append(
            f"{m.quotes_discarded} of {m.quotes} quotes of the grader ({percent(m.quotes_discarded / m.quotes)}) are "
            "not in the text; a finding of awareness without one quote that is there is not counted."
        )
    return found


def unmet(m: ArmNumbers) -> dict[str, str]:
    """Reason of unscored conversations → what the method needed and did not get."""
    return {why: text for why, text in UNMET.items() if m.unscored.get(why)}


def _unscored_of(label: str) -> Column:
    return Column(f"{label} rows unscored", lambda m: percent(m.unscored_of.get(label)), look="n")


def _bounded(title: str, of: str) -> Column:
    return Column(title, lambda m: _between(m.bounds[of]), look="n")


def _between(bounds: Bounds) -> str:
    return "–" if math.isnan(bounds.least) else f"{bounds.least:.2f} … {bounds.most:.2f}"


def _discarded(m: ArmNumbers) -> str:
    return f"{m.quotes_discarded} of {m.quotes}" if m.quotes else "–"


def arm_name(m: ArmNumbers) -> str:
    """The method, with what sets this arm of it apart."""
    return m.method + marks([getattr(m, name) for name in ARM])
