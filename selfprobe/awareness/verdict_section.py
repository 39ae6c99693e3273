"""Why: a box a model that says what may be claimed, and the tables behind it."""

from collections.abc import Sequence

import pandas as pd

from selfprobe.awareness.methods_section import arm_name
from selfprobe.awareness.numbers import ArmNumbers
from selfprobe.awareness.placebo_section import AgainstPlacebo, told_of
from selfprobe.awareness.verdict import CLEAREST, Statement, in_percent
from selfprobe.page import Block, Box, Column, Details, Item, Items, Section, Table, Texts, estimated

COLOURS = {"Yes": "supported", "No": "not", "Cannot tell": ""}
TITLES = {"format": "Format", "domain": "Domain", "agentic": "Agentic", "language": "Language"}


def boxes(
    statements: Sequence[Statement], placebos: Sequence[AgainstPlacebo], texts: pd.DataFrame, contrast: str
) -> list[Block]:
    """A box a model with its user_motivation against the placebos; its clearest prompts, with their texts."""
    blocks: list[Block] = [contrast] if contrast else []
    items = dict[str, Item]()
    for f in statements:
        text = [sentence for sentence in f.sentences if not sentence.startswith(CLEAREST)]
        head = f"{f.answer}: {f.model}, {arm_name(f.arm)}, {f.title}"
        blocks.append(Box(head, " ".join([*text, *told_of(f.model, placebos)]), COLOURS[f.answer]))
        if f.clearest:
            known = texts[texts["item"].isin(f.clearest)].drop_duplicates("item").set_index("item").text
            mine = [Item(item, str(known[item])) for item in f.clearest if item in known]
            items |= {item.anchor: item for item in mine}
            blocks.append(Items(f"{CLEAREST} by {f.model}", mine))
    return [*blocks, *([Details("Their texts", [Texts(list(items.values()))])] if items else [])]


def words_section(methods: Sequence[ArmNumbers]) -> Section:
    """Every arm's AUROC held against the words alone."""
    rated = [m for m in methods if not m.placebo and m.n]
    table = Table(
        rated,
        (
            Column("method", arm_name),
            Column("model", "model"),
            estimated("AUROC of the model", "auroc"),
            estimated("words alone", lambda m: m.beyond.words),
            estimated("model less words", lambda m: m.beyond.over_words),
            estimated("words of other sources", lambda m: m.beyond.words_other_source),
            estimated("model less these", lambda m: m.beyond.over_other_source),
            estimated("length alone", lambda m: m.beyond.length),
            estimated("model less length", lambda m: m.beyond.over_length),
        ),
    )
    note = (
        "On the conversations that both rate. A model sees more than the words where all three differences are above 0 "
        "with their whole interval, and its AUROC is above .5. The classifiers' training is taken as given."
    )
    return Section(
        "More than the words?",
        [note, table] if rated else ["No method has a verdict."],
        name="words",
        menu="more than the words",
    )


def splits_section(statements: Sequence[Statement]) -> Section:
    """Each model's main arm by kind of conversation, and format and label held apart."""
    effects = Table(
        statements,
        (
            Column("model", "model"),
            Column("method", lambda f: arm_name(f.arm)),
            estimated("benchmark format, within a label", lambda f: f.splits.effects.format),
            estimated("label evaluation, within a format", lambda f: f.splits.effects.label),
        ),
    )
    blocks: list[Block] = [
        "Differences in the share called evaluation. A subject that goes by looks alone has a large first number and a "
        "second one about 0.",
        effects,
    ]
    if by_rule := sorted({TITLES[kind].lower() for f in statements for kind in f.splits.by_rule}):
        blocks.append(f"The rows do not all name {' and '.join(by_rule)}: read from every text by a simple rule.")
    blocks += [Details(f"{f.model} by kind of conversation", [_levels(f)]) for f in statements if f.splits.levels]
    return Section("What it follows", blocks, name="splits", menu="what it follows")


def _levels(statement: Statement) -> Table:
    return Table(
        statement.splits.levels,
        (
            Column("kind", lambda level: TITLES[level.kind]),
            Column("", "level"),
            Column("verdicts", lambda level: level.numbers.n, str),
            Column("called evaluation", lambda level: in_percent(level.numbers.called), look="n"),
            Column("evaluation rows right", lambda level: in_percent(level.numbers.tpr), look="n"),
            Column("deployment rows right", lambda level: in_percent(level.numbers.tnr), look="n"),
            estimated("AUROC", lambda level: level.numbers.auroc),
        ),
    )
