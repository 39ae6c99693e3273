"""The page of a card: does the set tell that it is a test, more than its words do, and which prompts tell most?"""

import math
from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from selfprobe.logs import identity_of
from selfprobe.numerals import Interval, percents
from selfprobe.numerals import points as points
from selfprobe.page import (
    LINES,
    Block,
    Box,
    Bullets,
    Column,
    Details,
    Item,
    Log,
    Page,
    Section,
    Table,
    Texts,
    columns,
    estimated,
    headings,
    number,
    p_value,
    percent,
    set_aside,
)
from selfprobe.plots import interval_rows, short
from selfprobe.realism.numbers import Judged, Numbers, Prompt
from selfprobe.realism.table import Logged
from selfprobe.sources.reference import described
from selfprobe.stats.estimate import Estimate

SHOWN = 100
"""Prompts in the page's table, each with its text; all are in tables/prompts.csv."""
ROWS = 6
"""Rows of picture and first table, at most."""
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
    noticed = [Section("Does the subject notice?", subject.blocks, name="subject")] if subject is not None else []
    rates = _rates(found)
    return Page(
        title="Can this evaluation be told from real use?",
        answer=_answer(found),
        picture=interval_rows(
            "win_rates",
            {short(name, 40): {"": rate} for name, rate in rates[:ROWS]},
            caption="95 % intervals; the line: no difference.",
            axis="pairs in which it is taken for real use",
            scale="percent",
            line=0.5,
        ),
        table=Table(
            rates[:ROWS],
            (Column("who", lambda row: row[0]), Column("takes it for real use", lambda row: row[1].value, percent)),
        ),
        models=[judge.judge for judge in found.judges] + (list(subject.models) if subject is not None else []),
        sections=[
            *headings(
                why=[_verdict(found), Bullets(_doubts(found))],
                cells=[*_judges(logged, found), _prompts(found)],
                method=[f"{described(name)}.", METHOD],
                runs=_runs(logged, left_out),
            ),
            *noticed,
        ],
        tables=tables_of(logged, found) | ({f"subject/{k}": v for k, v in subject.tables.items()} if subject else {}),
        told=[
            *[*logged.substitutes, _order(found), *_doubts(found)][: LINES - (subject is not None)],
            *([f"The subject: {subject.answer}"] if subject is not None else []),
        ],
    )


def _answer(found: Numbers) -> str:
    """The answer of the first screen."""
    panel, words, one = found.panel.win_rate, found.words.win_rate, len(found.judges) == 1
    judges, they = ("1 judge", "it takes") if one else (f"{len(found.judges)} judges", "they take")
    if found.kind == "no verdicts":
        why = max(found.panel.unscored, key=lambda reason: found.panel.unscored[reason], default="nothing was asked")
        return f"Cannot tell for {judges}: no pair has a verdict ({why.replace(' ', '_')})."
    taken = f"{they} its prompts for real use in {percent(panel.value)} of pairs with a real one"
    alone = "" if math.isnan(words.value) else f" (a classifier of words: {percent(words.value)})"
    if found.kind.startswith("told"):
        return f"Yes, for {judges}: {taken}{alone}."
    if found.kind.startswith("taken"):
        return f"No, not for {judges}: {taken}, more often than by chance."
    if found.kind.endswith("words tell it"):
        return f"Cannot tell for {judges}: {taken}; its words tell it{alone}."
    return f"Cannot tell for {judges}: {taken}{alone}; chance is 50 %."


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


def rate(estimate: Interval) -> str:
    """An estimated share in percent, with its interval."""
    return "an unknown share" if math.isnan(estimate.value) else percents(estimate)


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
    return [f"Control: real against real gives {rate(real)}, as expected."]


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


def _rates(found: Numbers) -> list[tuple[str, Estimate]]:
    """Who takes the set for real use in how many pairs: the panel, the words, real conversations, each judge."""
    judges = [(judge.judge, judge.win_rate) for judge in found.judges]
    panel = [("all judges", found.panel.win_rate)] if len(judges) > 1 else []
    return [*panel, ("words alone", found.words.win_rate), ("real against real", found.panel.real), *judges]


def _judges(logged: Logged, found: Numbers) -> list[Block]:
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
                    Column("kappa", lambda k: number(k[3]), look="n"),
                ),
            )
        )
    failed = [f"{judge}: {n} pairs ended in an error." for judge, n in logged.errors.items() if n]
    rates = Table(_rates(found), (Column("who", lambda row: row[0]), estimated("win rate", lambda row: row[1])))
    return [Section("Judges", [rates, *blocks, *([Bullets(failed)] if failed else [])], name="judges")]


def _unscored(judge: Judged) -> str:
    return ", ".join(f"{why} {percent(share)}" for why, share in judge.unscored.items()) or "none"


def _prompts(found: Numbers) -> Section:
    rows = found.prompts[:SHOWN]
    items = {p.item: Item(p.item, p.text) for p in rows}
    table = Table(
        rows,
        (
            Column("prompt", lambda p: _start(p.text)),
            Column("id", lambda p: items[p.item]),
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
    texts = Details("Their texts", [Texts(list(items.values()))])
    note = "The chance is of pairs that are decided, beside the average real conversation, with a 95 % interval."
    return Section("Prompts, the worst first", [_order(found), note, *more, table, texts], name="prompts")


def _start(text: str) -> str:
    said = " ".join(text.partition(" user:\n")[2].split() or text.split())
    return said if len(said) <= CUT else f"{said[:CUT]}…"


def _runs(logged: Logged, left_out: Sequence[str]) -> list[Block]:
    table = Table(
        list(logged.logs.items()),
        (Column("judge", lambda row: row[0]), Column("log", lambda row: Log(row[1].location))),
    )
    aside = [Bullets(list(left_out))] if left_out else []
    return [*logged.substitutes, table, *aside, *set_aside(logged.ignored)]


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
