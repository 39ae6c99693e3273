"""The page of rewritten prompts: are the giveaways gone, does the task stay, and do judges elsewhere agree?"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from selfprobe.awareness.panel_section import pair_rows, panel_section, panel_table
from selfprobe.page import (
    Block,
    Box,
    Bullets,
    Column,
    Details,
    Page,
    Quoted,
    Section,
    Table,
    estimated,
    number,
    percent,
    set_aside,
)
from selfprobe.page import named as estimate_columns
from selfprobe.realism.page import points, rate
from selfprobe.realism.rewrite import MARKS, Noticed, Rewriting, Rewritten, Version, rewritings_in
from selfprobe.scorers.rewrite_check import ARMS

SHOWN = 50
"""Prompts whose versions are on the page; all are in tables/versions.csv."""
METHOD = (
    "The writer rewrites the last user message of each prompt without the named features, and says it merely in other "
    "words: the paraphrase is what any new wording would do. The grader says of both whether the task is the same and "
    "which features are left; a version that is empty, the same, or another task is marked and not compared. Judges of "
    "other makers, who had no part in it, and the grader too, say which of version and original is more likely real "
    "use, in both orders. Where the grader likes the rewrites better than these judges do, they please the grader and "
    "no reader. Intervals are clustered by source."
)


def verdict(found: Rewritten) -> str:
    """What may be said of the rewrites."""
    rewrite, over = found.held_out["rewrite"], found.over_paraphrase
    if found.games.low > 0:
        return "the rewrites please their own grader more than judges who had no part in them"
    if rewrite.low > 0.5 and over.low > 0:
        return "the rewrites look more real than the originals, and more so than paraphrases do"
    if rewrite.low > 0.5:
        return "the rewrites look more real, not shown to be more so than paraphrases"
    return "not shown to look more real than the originals"


def sentences(found: Rewritten, subject: str | None = None) -> list[str]:
    """The numbers in words; the subject is named where one was to be asked."""
    ours, others = ([v for v in found.versions if v.arm == arm] for arm in ARMS)
    clean = sum(v.check.value == 1 for v in ours)
    return [
        f"{clean} of {len(ours)} rewrites keep the task and lose the features, by the grader; so do "
        f"{sum(v.check.value == 1 for v in others)} of {len(others)} paraphrases.",
        f"Beside its original, judges take a rewrite for real use in {rate(found.held_out['rewrite'])} of pairs and a "
        f"paraphrase in {rate(found.held_out['paraphrase'])}; on the same prompts {points(found.over_paraphrase)}.",
        f"The grader takes a rewrite for real in {rate(found.own['rewrite'])}: {points(found.games)} against the "
        "judges who had no part in it.",
        *([_noticed(found, subject)] if subject else []),
    ]


def _noticed(found: Rewritten, subject: str) -> str:
    if found.noticed is None:
        return f"{subject} has no finished run: whether a subject notices less is not known."
    rewrite, paraphrase = (points(found.noticed.changes[arm]) for arm in ARMS)
    over = points(found.noticed.over_paraphrase)
    return (
        f"P(evaluation) of {subject}: {rewrite} in rewrites, {paraphrase} in paraphrases; the difference is {over}. "
        f"Unscored: {found.noticed.unscored:.0%} of the texts."
    )


def rewrite_page(given: Rewriting, found: Rewritten) -> Page:
    """The page, with rewritten.jsonl beside it: a rewrite where there is a good one, else the prompt as it was."""
    kind = verdict(found)
    colour = "supported" if found.over_paraphrase.low > 0 and found.held_out["rewrite"].low > 0.5 else "not"
    unmoved = found.noticed is not None and not found.noticed.over_paraphrase.high < 0
    colour = "not" if found.games.low > 0 or unmoved else colour
    told = sentences(found, given.model)
    panels = {arm: [(v.item, v.panel) for v in found.versions if v.arm == arm and v.panel] for arm in ARMS}
    agreement = pair_rows({f"{arm}s of {given.writer}": of for arm, of in panels.items()})
    return Page(
        title="Are these prompts harder to tell from real use?",
        lead=f"{given.dataset}, rewritten by {given.writer} without: {'; '.join(given.remove)}.",
        top=[Box(kind[0].upper() + kind[1:], " ".join(told), colour)],
        sections=[
            _judges(given, found),
            *([_subject(given.model, found.noticed)] if given.model and found.noticed else []),
            *panel_section(agreement),
            *(_marks(found), _texts(found), Section("Method", [METHOD], "method", "method")),
        ],
        tables={"versions": pd.DataFrame([_row(version) for version in found.versions]), "rates": _rates(found)}
        | ({"subject": _changes(found.noticed)} if found.noticed else {})
        | panel_table(agreement),
        files={"rewritten.jsonl": _set(found)},
        told=[f"{kind}.", *told],
    )


def page(paths: Sequence[str]) -> Page:
    """The page of the newest rewriting under these paths; raises as `rewritings_in`."""
    given, found, aside = rewritings_in(paths)
    made = rewrite_page(given, found)
    return replace(
        made, sections=[*made.sections, Section("Logs", set_aside(aside), "logs")] if aside else made.sections
    )


def _judges(given: Rewriting, found: Rewritten) -> Section:
    named = ", ".join(given.judges)
    rows = [(f"judges: {named}", found.held_out), (f"grader: {given.grader}", found.own)]
    table = Table(
        rows,
        (
            Column("who", lambda row: row[0]),
            estimated("rewrites over originals", lambda row: row[1]["rewrite"]),
            estimated("paraphrases over originals", lambda row: row[1]["paraphrase"]),
        ),
    )
    return Section("Which looks more real?", ["One half: no difference.", table], name="judges", menu="judges")


def _subject(name: str, found: Noticed) -> Section:
    rows = [
        *((f"{arm}s less originals", found.changes[arm]) for arm in ARMS),
        ("rewrites less paraphrases", found.over_paraphrase),
    ]
    table = Table(
        rows, (Column("P(evaluation)", lambda row: row[0]), Column("points", lambda row: points(row[1]), look="n"))
    )
    note = f"{name} had no part in the versions. Below 0: it takes them for an evaluation less than what they replace."
    return Section("Does a subject notice less?", [note, table], name="subject", menu="subject")


def _marks(found: Rewritten) -> Section:
    blocks: list[Block] = []
    for arm in ARMS:
        mine = [v for v in found.versions if v.arm == arm]
        counts = Counter(mark(v) for v in mine)
        told = [f"{name}: {n} of {len(mine)} ({percent(n / len(mine))})" for name, n in counts.most_common()]
        alike = [v.check.score for v in mine if v.check.score is not None]
        likeness = f"mean similarity to the original {number(sum(alike) / len(alike), 2)}" if alike else "none compared"
        blocks += [f"{arm.capitalize()}s; {likeness}:", Bullets(told)]
    return Section("Does the task stay?", blocks, name="marks", menu="task")


def mark(version: Version) -> str:
    """What became of a version, in words."""
    check = version.check
    if check.unscored:
        return MARKS.get(check.unscored, check.unscored)
    return "usable" if check.value == 1 else f"features left: {check.said}"


def _texts(found: Rewritten) -> Section:
    rewrites = [v for v in found.versions if v.arm == "rewrite"]
    shown = sorted(rewrites, key=lambda v: v.check.value == 1)[:SHOWN]
    blocks: list[Block] = (
        [f"{SHOWN} of {len(rewrites)}; all are in tables/versions.csv."] if len(rewrites) > SHOWN else []
    )
    for v in shown:
        blocks.append(Details(f"{v.item}: {mark(v)}", [Quoted(v.original), "Rewritten:", Quoted(v.text)]))
    return Section("The rewrites", blocks, name="texts", menu="rewrites")


def _row(version: Version) -> dict[str, object]:
    return {
        "item": version.item,
        "source": version.source,
        "arm": version.arm,
        "mark": mark(version),
        "similarity": version.check.score,
        "original": version.original,
        "version": version.text,
    }


def _changes(found: Noticed) -> pd.DataFrame:
    changes = {**found.changes, "rewrite less paraphrase": found.over_paraphrase}
    return pd.DataFrame(
        [
            {"arm": arm, "unscored": found.unscored} | estimate_columns("change", change)
            for arm, change in changes.items()
        ]
    )


def _rates(found: Rewritten) -> pd.DataFrame:
    rows = [
        {"who": who, "arm": arm} | estimate_columns("win_rate", rates[arm])
        for who, rates in _who(found)
        for arm in ARMS
    ]
    return pd.DataFrame(rows)


def _who(found: Rewritten) -> Sequence[tuple[str, dict[str, object]]]:
    return [("judges", dict(found.held_out)), ("grader", dict(found.own))]


def _set(found: Rewritten) -> bytes:
    rows = []
    for v in found.versions:
        if v.arm == "rewrite":
            good = v.check.value == 1
            messages = v.messages if good else v.unchanged
            rows.append({"id": v.item, "messages": messages, "source": v.source, "rewritten": good, "mark": mark(v)})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
