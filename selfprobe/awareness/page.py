"""The page of the awareness comparison, its answer first, and its tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup

from selfprobe.awareness.figures import pictures
from selfprobe.awareness.numbers import Comparison, as_in_paper, compare
from selfprobe.awareness.paired import AgainstPlacebo, against_placebo
from selfprobe.awareness.panel_section import agreement
from selfprobe.awareness.runs import ARM
from selfprobe.awareness.sections import (
    boxes,
    kappa_table,
    methods_section,
    observers_table,
    paired_section,
    paired_table,
    placebo_section,
    splits_section,
    unmet,
    words_section,
)
from selfprobe.awareness.table import Logged, told_by_set
from selfprobe.awareness.verdict import SAME, Statement, same_answer, statements
from selfprobe.options import names
from selfprobe.page import (
    BLACK_BOX,
    FINDING,
    KNOW,
    LINES,
    ROWS,
    Block,
    Bullets,
    Column,
    Figures,
    Finding,
    Log,
    Page,
    Picture,
    Section,
    Table,
    answered,
    estimated,
    headings,
    number,
    p_digits,
    percent,
    set_aside,
    strongest,
)
from selfprobe.plots import called, interval_rows, short
from selfprobe.sources.reference import described
from selfprobe.stats.estimate import Estimate

PUBLISHED = Markup(
    "Kappas of binary against probability in {}: GPT-5 Mini 0.59, Gemini 2.5 Pro 0.75, gpt-oss-120b 0.16, Qwen3 32B "
    "0.39, DeepSeek R1 0.36."
).format(BLACK_BOX)
NO_METHOD = "Cannot tell for any model: no method read a model's own conversations."
QUESTION = (
    "Elicited awareness: how well a method's verdicts decode the evaluation context. All methods of a model read one "
    "reply to the same conversations. Yes: a model is shown to see more than the words. No: it is shown not to. The "
    "sentence is of one method a model, the first of the paper's order that could be read."
)
METHOD = (
    "Intervals are clustered by source, since conversations of one source are alike; a source that stands alone for a "
    "label or a set is taken apart into its conversations, and the interval is then about other conversations of that "
    "source. AUROC intervals are made on the logit scale. In simulation the intervals hold the truth in 91 to 100 % of "
    "draws, least often with few sources whose conversations are much alike. A verdict that could not be read, was a "
    "tie of votes, or rests on quotes that are not in the text is unscored, never counted as “not aware”. A "
    "stated probability of exactly .5 counts as evaluation, as in the paper; the table of methods "
    "says how many there are. AUROC ranks by "
    "share of votes, stated probability, or token mass; a subject that answers the same to everything has none. Mean "
    "|error| is what the paper calls the Brier score. ECE is debiased. Precision is what the rates give where "
    "evaluations are 1, 5 or 10 % of traffic."
)


@dataclass(frozen=True)
class Written:
    """What a page is made of."""

    logged: Logged
    comparison: Comparison
    statements: tuple[Statement, ...]
    placebos: tuple[AgainstPlacebo, ...]
    evidence: Sequence[Section] = ()
    """What gives the evaluation away, where subjects name it."""


def compared(tables: Logged, evidence: Sequence[Section] = ()) -> Written:
    """Every number of these tables, with labels by set."""
    logged = told_by_set(tables)
    comparison = compare(logged)
    return Written(logged, comparison, statements(logged, comparison), against_placebo(logged.verdicts), evidence)


def page_of(written: Written) -> Page:
    """The page of tables and numbers that are at hand."""
    logged, comparison, statements = written.logged, written.comparison, written.statements
    methods = comparison.methods
    panel, agreed = agreement(logged.panels)
    names = called(models := list(dict.fromkeys(m.model for m in methods)))
    findings, labels = _findings(statements, names), _labels(statements)
    answer, by_model = answered(findings) if findings else (NO_METHOD, [])
    drawn = pictures(logged, methods, comparison.baselines, comparison.pairs)
    return Page(
        title="Do these models recognise an evaluation by more than its words?",
        answer=answer,
        picture=_picture(findings, labels),
        table=_table(findings, labels) if findings else None,
        models=models,
        sections=headings(
            why=[
                *boxes(statements, written.placebos, logged.texts, logged.contrast),
                _text_alone(comparison),
                words_section(methods),
                *([splits_section(statements)] if statements else []),
                *placebo_section(written.placebos),
                *written.evidence,
            ],
            paper=[*([Figures(drawn)] if drawn else []), *_agreement(comparison)],
            cells=[
                methods_section(logged, methods),
                *panel,
                *paired_section(comparison.paired, methods),
            ],
            method=[QUESTION, sets_of(logged), METHOD, Markup("The methods are those of {}.").format(BLACK_BOX)],
            runs=_runs(logged),
        ),
        tables=_tables(written) | agreed,
        told=_notes(written, by_model, names)[:LINES],
    )


def _findings(statements: Sequence[Statement], names: Mapping[str, str]) -> list[Finding]:
    """The answer for each model, of equal answers the one with the highest AUROC first."""
    ordered = sorted(statements, key=lambda one: -np.nan_to_num(one.arm.auroc.value, nan=-1.0))
    models = {model: name.replace(" ", "\N{NO-BREAK SPACE}") for model, name in names.items()}
    return strongest(Finding(models[one.model], one.answer, _clause(one), one) for one in ordered)


def _labels(statements: Sequence[Statement]) -> tuple[str, str] | None:
    """What the two shares are of; None where there is only one."""
    if any(one.sets for one in statements):
        return "yours", "the reference"
    if any(not math.isnan(one.arm.tpr.value) and not math.isnan(one.arm.tnr.value) for one in statements):
        return "tests", "real requests"
    return None


def _shares(one: Statement) -> tuple[Estimate, Estimate]:
    """Share called an evaluation, of tests and of real requests or of your prompts and the reference."""
    return one.sets[:2] if one.sets else (one.arm.tpr, one.arm.false_alarms)


def _clause(one: Statement) -> str:
    """What a model does, after its name: at most twenty words."""
    arm, beyond, reached = one.arm, one.arm.beyond, number(one.arm.auroc.value)
    calls = f"calls {percent(arm.called.value)} of conversations an evaluation"
    if labels := _labels([one]):
        mine, other = (percent(share.value) for share in _shares(one))
        calls = f"calls {mine} of {labels[0]} an evaluation, and {other} of {labels[1]}"
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


def _picture(findings: Sequence[Finding], labels: tuple[str, str] | None) -> Picture | None:
    shown: list[Statement] = [one.of for one in findings[:ROWS]]
    if not any(one.arm.n for one in shown):
        return None
    rows = {
        short(finding.model): dict(zip(labels, _shares(one), strict=True)) if labels else {"": one.arm.called}
        for finding, one in zip(findings, shown, strict=False)
    }
    arms = {one.arm.name for one in shown}
    asked = f"Asked by {arms.pop()}; " if len(arms) == 1 else ""
    more = f" {len(findings) - ROWS} more are under All cells." if len(findings) > ROWS else ""
    caption = f"{asked}95 % intervals.{more}"
    return interval_rows("noticed", rows, caption=caption, axis="called an evaluation", scale="percent")


def _table(findings: Sequence[Finding], labels: tuple[str, str] | None) -> Table:
    called_one = Column("called an evaluation", lambda one: one.of.arm.called.value, percent)
    shares = [
        Column(label, lambda one, at=at: _shares(one.of)[at].value, percent) for at, label in enumerate(labels or ())
    ]
    auroc = Column("AUROC", lambda one: one.of.arm.auroc.value, number)
    return Table(findings[:ROWS], [*FINDING, *([*shares, auroc] if labels else [called_one])])


def _notes(written: Written, by_model: Sequence[str], names: dict[str, str]) -> list[str]:
    """Lines of the terminal: a model each, needs that are not met, and what is not whole or not used."""
    lines = [*_substitutes(written.logged), *by_model[:3], *written.logged.contrast.split("\n")]
    for m in written.comparison.methods:
        lines += [f"{m.method}, {names[m.model]}: {why}." for why in unmet(m).values()]
    lines = [line for line in lines if line][: LINES - 2]
    lines += [f"Not whole: {line}" for line in written.logged.missing][:1]
    count = len(written.logged.ignored)
    return lines + ([f"Not used: {count} log{'s' * (count != 1)}; the page says why."] if count else [])


def sets_of(logged: Logged) -> str:
    """Which data sets the conversations are of, and that several are pooled."""
    told = f"Conversations: {'; '.join(described(str(name)) for name in dict.fromkeys(logged.runs.dataset))}."
    sets = logged.verdicts.groupby("context").data.nunique().max()  # first prompts and transcripts are of one set
    if sets == 1:
        return told
    return (
        f"{told} These are {sets} different sets, and every number below is of all of them together: give the logs of "
        "one to hear of it alone."
    )


def _text_alone(comparison: Comparison) -> Section:
    rows = [
        ("length of the conversation", comparison.baselines.length),
        ("TF-IDF + logistic regression, pooled", comparison.baselines.words),
        ("the same, a source left out", comparison.baselines.words_other_source),
    ]
    columns = (Column("baseline", lambda row: row[0]), estimated("AUROC [95 % interval]", lambda row: row[1]))
    blocks: list[Block] = [
        "A classifier that knows no model reaches this on the same conversations. A method that is not above it shows "
        "nothing about a model's inside.",
        Markup(
            "For orientation, AUROC published elsewhere, on other conversations: Gemini 2.5 Pro 0.83 (agentic 0.95), "
            "human readers 0.92 ({})."
        ).format(KNOW),
        Table(rows, columns),
    ]
    if comparison.baselines.context:
        blocks.append(
            "These numbers are of the first prompts. A method that read whole transcripts is compared with the words "
            "of transcripts."
        )
    return Section("What the text alone gives away", blocks, name="text")


def _agreement(comparison: Comparison) -> list[Section]:
    silent = {(m.model, m.method) for m in comparison.methods if not m.n}
    pairs = [p for p in comparison.pairs if not {(p.model, p.first), (p.model, p.second)} & silent]
    shared = [pair for pair in pairs if pair.agreement.n]
    apart = [pair for pair in pairs if not pair.agreement.n]
    blocks: list[Block] = [Table(shared, PAIRS), PUBLISHED] if shared else []
    if apart:
        named = ", ".join(f"{pair.first} and {pair.second} ({pair.model})" for pair in apart)
        blocks.append(f"Without a conversation on which both have a verdict: {named}.")
    return [Section("Agreement of the methods", blocks, name="agreement")] if blocks else []


PAIRS = (
    Column("model", "model"),
    Column("methods", lambda pair: f"{pair.first}, {pair.second}"),
    Column("n", lambda pair: pair.agreement.n, str),
    Column("equal", lambda pair: pair.agreement.observed, percent),
    estimated("kappa", lambda pair: pair.agreement.kappa),
    Column("PABAK", lambda pair: pair.agreement.pabak, number),
    Column("AC1", lambda pair: pair.agreement.ac1, number),
    Column("McNemar: p", lambda pair: pair.agreement.mcnemar_p, p_digits),
    Column("Pearson r", "pearson", number),
)


def _runs(logged: Logged) -> list[Block]:
    columns = (
        Column("method", "method"),
        Column("model", lambda run: run.model + (f" reading {run.target}" if run.target else "")),
        Column("run", "run", str),
        Column("grader", lambda r: (r.grader or "–") + " (the subject itself)" * (r.model in names(r.grader))),
        Column("samples", "samples", str),
        Column("applied", "applied"),
        Column("log", lambda run: Log(run.log)),
    )
    aside = [
        f"{told}."
        for name in ("set_aside", "unread")
        for told in dict.fromkeys(run for run in logged.runs.get(name, ()) if isinstance(run, str))
    ]
    missing = [Bullets([f"{told}." for told in logged.missing])] if logged.missing else []
    table = Table(list(logged.runs.itertuples()), columns)
    return [*_substitutes(logged), table, *missing, *aside, *set_aside(logged.ignored)]


def _substitutes(logged: Logged) -> list[str]:
    """Models in whose place another one answered, by method."""
    return [f"{run.method}, {run.substitutes}" for run in logged.runs.itertuples() if getattr(run, "substitutes", "")]


def _tables(made: Written) -> dict[str, pd.DataFrame]:
    logged, comparison, found = made.logged, made.comparison, made.statements
    arms = [{name: getattr(m, name) for name in ARM} for m in comparison.methods]
    claims = [
        {name: getattr(f.arm, name) for name in ARM} | {"claim": f.kind, "why": " ".join(f.sentences)} for f in found
    ]
    splits = [
        {"model": f.model, "method": f.arm.method, "kind": level.kind, "level": level.level} | asdict(level.numbers)
        for f in found
        for level in f.splits.levels
    ]
    baselines = [
        {"baseline": name} | asdict(getattr(comparison.baselines, name))
        for name in ("length", "words", "words_other_source")
    ]
    also = {
        "placebo": pd.json_normalize([asdict(held) for held in made.placebos]),
        "kappa": kappa_table(comparison.pairs),
        "paired": paired_table(comparison.paired),
        "observers": observers_table(comparison.methods),
        "as_in_paper": as_in_paper(logged),
    }
    return {
        "methods": pd.json_normalize([arm | asdict(m) for arm, m in zip(arms, comparison.methods, strict=True)]),
        "pairs": pd.json_normalize([asdict(pair) for pair in comparison.pairs]),
        "baselines": pd.DataFrame(baselines),
        "statements": pd.DataFrame(claims),
        "splits": pd.json_normalize(splits),
        "verdicts": logged.verdicts,
        "runs": logged.runs,
    } | {name: table for name, table in also.items() if not table.empty}
