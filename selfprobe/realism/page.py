"""The page of a card: does the set tell that it is a test, more than its words do, and which prompts tell most?"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import pandas as pd

from selfprobe.logs import identity_of
from selfprobe.page import (
    Block,
    Box,
    Bullets,
    Column,
    Details,
    Figures,
    Log,
    Page,
    Picture,
    Quoted,
    Section,
    Table,
    columns,
    estimated,
    number,
    p_value,
    percent,
    set_aside,
)
from selfprobe.plots import MUTED, OTHERS, SELF, dots, name_rows, new_axes, short
from selfprobe.realism.numbers import Judged, Numbers, Prompt
from selfprobe.realism.table import Logged
from selfprobe.sources.reference import described

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN, QUOTED = 100, 10
"""Prompts in the page's table, and those whose text is on it; all are in tables/prompts.csv."""
FEW = 10
"""Real conversations below which one is told that there are few."""
VAGUE = 0.5
"""An interval of "real against real" that is wider checks nothing."""
CUT = 120
"""Characters of a prompt in a table."""
METHOD = (
    "Each prompt of the set stands beside real conversations of like length (at most twice as long), in both orders. "
    "The set wins a pair where both orders take its prompt for real, loses it where both take the real one, and has "
    "half of it where the same position is taken twice. A pair with an answer that is a tie, a refusal or cannot be "
    "read is unscored. The panel's verdict on a pair is the mean of its judges. Intervals are clustered by source on "
    "both sides, or by conversation where a side has one source. Words: TF-IDF and logistic regression, which saw "
    "neither conversation's source. Scores of prompts are Bradley–Terry's, from the pairs that the panel decided; how "
    "far prompts differ is estimated, so that a prompt with few pairs is drawn to the average. An order is claimed "
    "where “all prompts are alike” has p below .05."
)


def page_of(logged: Logged, found: Numbers, *, name: str, left_out: Sequence[str], subject: Page | None = None) -> Page:
    """The card.

    Args:
        logged: The judges' logs.
        found: Their numbers.
        name: Of the set and of what it is held against.
        left_out: What was not compared, as sentences.
        subject: The page of the subject's logs, where it was asked.
    """
    sections = [_rates(found), _judges(logged, found), _prompts(found)]
    if subject is not None:
        parts = [s for s in subject.sections if s.name in ("words", "text")]
        sections.append(
            Section("Does the subject notice?", [subject.lead, *subject.top, *parts], name="subject", menu="subject")
        )
    sections += [Section("Method", [METHOD], name="method", menu="method"), _runs(logged, left_out)]
    lines = [f"{found.kind}.", *sentences(found), *_doubts(found)]
    return Page(
        title="Can this evaluation be told from real use?",
        lead=f"{described(name)}.",
        top=[_verdict(found), Bullets(_doubts(found))],
        sections=sections,
        tables=tables_of(logged, found) | ({f"subject/{k}": v for k, v in subject.tables.items()} if subject else {}),
        told=[*lines, *logged.substitutes, *(subject.told if subject else ())],
    )


def sentences(found: Numbers) -> list[str]:
    """What may be said of the set, for the page and the terminal."""
    panel, words = found.panel, found.words
    if math.isnan(panel.win_rate.value):
        why = ", ".join(f"{reason} {percent(share)}" for reason, share in panel.unscored.items())
        return [f"No pair has a verdict: {why or 'nothing was asked'}."]
    return [
        f"Beside a real conversation the judges take a prompt of the set for real use in {rate(panel.win_rate)} of "
        f"{panel.scored} pairs; 50 % would be: they cannot tell them apart.",
        f"A classifier that sees the words alone and no model gets the set {rate(words.win_rate)} of these pairs "
        f"(trained on {words.trained}). Judges less words, in pairs whose real one is picked: {points(words.less)}."
        if not math.isnan(words.less.value)
        else f"What the words alone tell could not be measured: {words.win_rate.reason}.",
        _order(found),
    ]


def _order(found: Numbers) -> str:
    worst = sum(prompt.below for prompt in found.prompts)
    if math.isnan(found.p):
        return "No pair was decided in both orders: there is no order of prompts."
    if not found.ordered:
        return f"No order of prompts is claimed: that all are alike has {p_value(found.p)}."
    none = f"no single one of {len(found.prompts)} is shown to tell more than the average one."
    some = f"{worst} of {len(found.prompts)} tell more than the average one."
    return f"Prompts differ ({p_value(found.p)}); {some if worst else none}"


def rate(estimate: object) -> str:
    """An estimated share in percent, with its interval."""
    value, low, high = (getattr(estimate, name) for name in ("value", "low", "high"))
    if math.isnan(value):
        return "an unknown share"
    return percent(value) + ("" if math.isnan(low) else f" [{100 * low:.1f}, {100 * high:.1f}]")


def points(estimate: object) -> str:
    """An estimated difference in points, with its interval."""
    value, low, high = (100 * getattr(estimate, name) for name in ("value", "low", "high"))
    if math.isnan(value):
        return "an unknown difference"
    return f"{value:+.1f} points" + ("" if math.isnan(low) else f" [{low:+.1f}, {high:+.1f}]")


def _verdict(found: Numbers) -> Block:
    colour = "not" if found.kind.startswith("told") else ""  # what is not shown is not shown to be away
    return Box(found.kind[0].upper() + found.kind[1:], " ".join(sentences(found)), colour)


def _checked(found: Numbers) -> list[str]:
    real = found.panel.real
    if math.isnan(real.low):
        return [f"Real against real could not be checked: {real.reason}."]
    if not real.low <= 0.5 <= real.high:
        return [f"Real against real: {rate(real)}, which should hold 50 %: the check fails."]
    if real.high - real.low > VAGUE:
        return [f"Real against real: {rate(real)}; too few pairs to check that it is 50 %."]
    return [f"Real against real: {rate(real)}, as it must be."]


def _few(found: Numbers) -> list[str]:
    if found.met >= FEW and found.met_sources > 2:
        return []
    return [
        f"The real side of all these pairs are {found.met} conversations of {found.met_sources} "
        f"source{'s' * (found.met_sources != 1)}, and the interval says no more about real use than they do: bring "
        "more, of more sources, as long as the prompts."
    ]


def _doubts(found: Numbers) -> list[str]:
    """The check, and what makes the win rate doubtful, for the page and the terminal."""
    told, panel = [*_checked(found), *_few(found)], found.panel
    if panel.by_position > 0.5:
        told.append(
            f"In {percent(panel.by_position)} of verdicts a judge took the same position in both orders: a win rate "
            "near 50 % then says little about the prompts."
        )
    if (lost := sum(panel.unscored.values())) > 0.1:
        told.append(f"{percent(lost)} of the judges' pairs are unscored; what they would have said is not known.")
    if not 0.3 < found.words.longer < 0.7:
        told.append(f"In {percent(found.words.longer)} of pairs the set's prompt is the longer one.")
    return told


def _rates(found: Numbers) -> Section:
    rows = [("panel", found.panel.win_rate)] if len(found.judges) > 1 else []
    rows += [(judge.judge, judge.win_rate) for judge in found.judges]
    rows += [("words alone, no model", found.words.win_rate), ("real against real", found.panel.real)]
    table = Table(rows, (Column("who", lambda row: row[0]), estimated("win rate [95 % interval]", lambda row: row[1])))
    alt = "Win rate of the panel, of each judge and of the words alone, with intervals; one half is marked."
    picture = Picture(
        "win_rates", alt, "Share of pairs in which the set's prompt is taken for real use.", _figure(rows)
    )
    return Section("Win rate against real conversations", [Figures([picture]), table], name="rates", menu="win rate")


def _figure(rows: Sequence[tuple[str, object]]) -> "Figure":
    figure, ax = new_axes(width=7.2, height=1.3 + 0.4 * len(rows))
    ax.axvline(0.5, color=MUTED, linewidth=1, linestyle="--")
    for at, (name, rate) in enumerate(rows):
        colour = (
            MUTED if name in ("words alone, no model", "real against real") else SELF if name == "panel" else OTHERS
        )
        dots(ax, [at], [rate], colour=colour)  # type: ignore[list-item]
    name_rows(ax, [short(name, 40) for name, _ in rows])
    ax.set_xlim(0, 1)
    ax.set_xlabel("win rate, 95 % interval (dashed: cannot be told apart)")
    return figure


def _judges(logged: Logged, found: Numbers) -> Section:
    table = Table(
        found.judges,
        (
            Column("judge", "judge"),
            Column("pairs of the set", lambda j: f"{j.scored} of {j.asked}", look="n"),
            Column("agrees with the labels", "picked_real", percent),
            estimated("win rate of the set", "win_rate"),
            estimated("real against real", "real"),
            Column("by position", "by_position", percent),
            Column("takes the first", "said_first", percent),
            Column("unscored", _unscored),
        ),
    )
    note = (
        "A judge agrees with the label of a pair where it takes the real conversation. By position: the same position "
        "in both orders, half a win. Takes the first: of single answers, 50 % without a liking for a position."
    )
    blocks: list[Block] = [note, table]
    if found.kappas:
        blocks.append(
            Table(
                found.kappas,
                (
                    Column("judge", lambda k: k[0]),
                    Column("and", lambda k: k[1]),
                    Column("pairs both decided", lambda k: k[2], str),
                    Column("kappa", lambda k: number(k[3], 2), look="n"),
                ),
            )
        )
    failed = [f"{judge}: {n} pairs ended in an error." for judge, n in logged.errors.items() if n]
    return Section("Judges", [*blocks, *([Bullets(failed)] if failed else [])], name="judges", menu="judges")


def _unscored(judge: Judged) -> str:
    return ", ".join(f"{why} {percent(share)}" for why, share in judge.unscored.items()) or "none"


def _prompts(found: Numbers) -> Section:
    rows = found.prompts[:SHOWN]
    table = Table(
        rows,
        (
            Column("prompt", lambda p: _start(p.text)),
            Column("id", "item"),
            Column("source", "source"),
            estimated("chance to be taken for real", "chance"),
            Column("won, lost, undecided", lambda p: f"{p.won}, {p.lost}, {p.undecided}", look="n"),
            Column("tells more than the average", lambda p: "yes" if p.below and found.ordered else ""),
        ),
    )
    more = (
        [f"The first {SHOWN} of {len(found.prompts)}; all are in tables/prompts.csv."]
        if len(found.prompts) > SHOWN
        else []
    )
    texts = [Details(f"{p.item} ({p.source})", [Quoted(p.text)]) for p in rows[:QUOTED]]
    note = "The chance is of pairs that are decided, beside the average real conversation, with a 95 % interval."
    return Section(
        "Prompts, the worst first", [_order(found), note, *more, table, *texts], name="prompts", menu="prompts"
    )


def _start(text: str) -> str:
    said = " ".join(text.partition(" user:\n")[2].split() or text.split())
    return said if len(said) <= CUT else f"{said[:CUT]}…"


def _runs(logged: Logged, left_out: Sequence[str]) -> Section:
    table = Table(
        list(logged.logs.items()),
        (Column("judge", lambda row: row[0]), Column("log", lambda row: Log(row[1].location))),
    )
    aside = [Bullets(list(left_out))] if left_out else []
    blocks = [*logged.substitutes, table, *aside, *set_aside(logged.ignored)]
    return Section("Runs", blocks, name="runs", menu="runs")


def tables_of(logged: Logged, found: Numbers) -> dict[str, pd.DataFrame]:
    """Every verdict, and the numbers of judges and prompts."""
    verdicts = [{"judge": judge} | asdict(pick) for judge, picks in logged.picks.items() for pick in picks]
    return {
        "verdicts": pd.DataFrame(verdicts).drop(columns="first"),
        "judges": pd.DataFrame([_judge_row(judge) for judge in (found.panel, *found.judges)]),
        "prompts": pd.DataFrame([_prompt_row(prompt) for prompt in found.prompts]),
        "runs": pd.DataFrame(
            [
                {"judge": judge, "log": log.location, "settings": str(identity_of(log).settings)}
                for judge, log in logged.logs.items()
            ]
        ),
    }


def _judge_row(judge: Judged) -> dict[str, object]:
    plain = {
        name: getattr(judge, name) for name in ("judge", "scored", "asked", "picked_real", "by_position", "said_first")
    }
    rates = {f"{name}_{key}": x for name in ("win_rate", "real") for key, x in columns(getattr(judge, name)).items()}
    return plain | rates | {"unscored": sum(judge.unscored.values())}


def _prompt_row(prompt: Prompt) -> dict[str, object]:
    plain = {name: getattr(prompt, name) for name in ("item", "source", "won", "lost", "undecided", "below")}
    return plain | {f"chance_{key}": x for key, x in columns(prompt.chance).items()} | {"text": prompt.text}
