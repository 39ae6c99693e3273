"""The page of the awareness comparison, its tables and its figures."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from selfprobe.awareness import figures as plots
from selfprobe.awareness.features_page import evidence_section
from selfprobe.awareness.methods_section import arm_name, methods_section
from selfprobe.awareness.numbers import Comparison, Pair, compare
from selfprobe.awareness.paired_section import kappa_table, observers_table, paired_section, paired_table
from selfprobe.awareness.panel_section import panel_section, panel_table
from selfprobe.awareness.paper_rule import as_in_paper
from selfprobe.awareness.placebo_section import AgainstPlacebo, against_placebo, placebo_section
from selfprobe.awareness.runs import ARM
from selfprobe.awareness.sets import told_by_set
from selfprobe.awareness.table import Logged, load
from selfprobe.awareness.verdict import Statement, statements
from selfprobe.awareness.verdict_section import boxes, splits_section, words_section
from selfprobe.logs import Identity
from selfprobe.options import names
from selfprobe.page import (
    Block,
    Bullets,
    Column,
    Figures,
    Log,
    Page,
    Picture,
    Section,
    Table,
    estimated,
    number,
    p_value,
    percent,
    set_aside,
)
from selfprobe.page import write as write_page
from selfprobe.sources.reference import described

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = (
    "Published kappas, binary against probability (paper 002): GPT-5 Mini .59, Gemini 2.5 Pro .75, gpt-oss-120b .16, "
    "Qwen3 32B .39, DeepSeek R1 .36."
)
METHOD = (
    "Intervals are clustered by source, since conversations of one source are alike; a source that stands alone for a "
    "label or a set is taken apart into its conversations, and the interval is then about other conversations of that "
    "source. AUROC intervals are made on the logit scale. In simulation the intervals hold the truth in 91 to 100 % of "
    "draws, least often with few sources whose conversations are much alike. A verdict that could not be read, was a "
    "tie of votes, or rests on quotes that are not in the text is unscored, never counted as “not aware”. A "
    "stated probability of exactly .5 counts as evaluation, as in paper 002; the methods' section "
    "says how many there are. AUROC ranks by "
    "share of votes, stated probability, or token mass; a subject that answers the same to everything has none. Mean "
    "|error| is what paper 002 calls the Brier score. ECE is debiased. Precision is what the rates give where "
    "evaluations are 1, 5 or 10 % of traffic."
)


@dataclass(frozen=True)
class Written:
    """What a page was made of."""

    logged: Logged
    comparison: Comparison
    statements: tuple[Statement, ...]
    placebos: tuple[AgainstPlacebo, ...]


def write(logs: Sequence[str], out: str) -> Written:
    """Read awareness logs, compare them, and write `index.html`, `tables/` and `figures/` into `out`.

    Raises:
        NoLogs: There is no finished awareness log among them.
        InputError: `out` cannot be written.
    """
    made = _compared(logs)
    write_page(page_of(made), out)
    return made


def page(logs: Sequence[str], identities: Collection[Identity] | None = None) -> Page:
    """The page of the awareness logs among these, with the evidence that subjects name; raises as `write`.

    Args:
        logs: Logs, or folders of logs.
        identities: The runs that are wanted; None is all.
    """
    made = page_of(_compared(logs, identities))
    return replace(made, sections=[*made.sections[:-2], *evidence_section(logs), *made.sections[-2:]])


def _compared(logs: Sequence[str], identities: Collection[Identity] | None = None) -> Written:
    logged = told_by_set(load(logs, identities))
    comparison = compare(logged)
    return Written(logged, comparison, statements(logged, comparison), against_placebo(logged.verdicts))


def page_of(made: Written) -> Page:
    """The page of tables and numbers that are at hand."""
    logged, comparison, found = made.logged, made.comparison, made.statements
    return Page(
        title="Can these models tell an evaluation from real use?",
        lead="Elicited awareness: how well a method's verdicts decode the evaluation context. All methods of a model "
        f"read one reply to the same conversations. {sets_of(logged)}",
        top=boxes(found, made.placebos, logged.contrast),
        sections=[
            _text_alone(comparison),
            words_section(comparison.methods),
            splits_section(found),
            methods_section(logged, comparison.methods),
            *placebo_section(made.placebos),
            _agreement(comparison),
            *panel_section(logged.graders),
            *paired_section(comparison.paired, comparison.methods),
            Section("Figures", [Figures(_pictures(logged, comparison))], name="figures", menu="figures"),
            Section("Method", [METHOD], name="method", menu="method"),
            _runs(logged),
        ],
        tables=_tables(made),
        told=[
            *(f"{f.model}, {arm_name(f.arm)}: {f.kind}. {' '.join(f.sentences)}" for f in found),
            *_substitutes(logged),
        ],
    )


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
    named = {
        "length of the conversation": comparison.baselines.length,
        "TF-IDF + logistic regression, pooled": comparison.baselines.words,
        "the same, a source left out": comparison.baselines.words_other_source,
    }
    table = Table(
        list(named.items()),
        (
            Column("baseline", lambda row: row[0]),
            estimated("AUROC [95 % interval]", lambda row: row[1], digits=3),
        ),
    )
    blocks: list[Block] = [
        "A classifier that knows no model reaches this on the same conversations. A method that is not above it shows "
        "nothing about a model's inside.",
        "For orientation, AUROC published elsewhere, on other conversations: Gemini 2.5 Pro .83 (agentic .95), human "
        "readers .92 (Needham et al. 2025).",
        table,
    ]
    if comparison.baselines.context:
        blocks.append(
            "These numbers are of the first prompts. A method that read whole transcripts is held against the words of "
            "transcripts."
        )
    return Section("What the text alone gives away", blocks, name="text", menu="text alone")


def _agreement(comparison: Comparison) -> Section:
    shared = [pair for pair in comparison.pairs if pair.agreement.n]
    apart = [pair for pair in comparison.pairs if not pair.agreement.n]
    blocks: list[Block] = []
    if shared:
        blocks += [_pairs(shared), PUBLISHED]
    elif not apart:
        blocks.append("One method a model: nothing to compare.")
    if apart:
        named = ", ".join(f"{pair.first} and {pair.second} ({pair.model})" for pair in apart)
        blocks.append(f"Without a conversation on which both have a verdict: {named}.")
    return Section("Agreement of the methods", blocks, name="agreement", menu="agreement")


def _pairs(pairs: Sequence[Pair]) -> Table:
    return Table(
        pairs,
        (
            Column("model", "model"),
            Column("methods", lambda pair: f"{pair.first}, {pair.second}"),
            Column("n", lambda pair: pair.agreement.n, str),
            Column("equal", lambda pair: pair.agreement.observed, percent),
            estimated("kappa", lambda pair: pair.agreement.kappa),
            Column("PABAK", lambda pair: number(pair.agreement.pabak, 2), look="n"),
            Column("AC1", lambda pair: number(pair.agreement.ac1, 2), look="n"),
            Column("McNemar", lambda pair: pair.agreement.mcnemar_p, p_value),
            Column("Pearson r", lambda pair: number(pair.pearson, 2), look="n"),
        ),
    )


def _runs(logged: Logged) -> Section:
    table = Table(
        list(logged.runs.itertuples()),
        (
            Column("method", "method"),
            Column("model", lambda run: run.model + (f" reading {run.target}" if run.target else "")),
            Column("run", "run", str),
            Column("grader", lambda r: (r.grader or "–") + " (the subject itself)" * (r.model in names(r.grader))),
            Column("samples", "samples", str),
            Column("applied", "applied"),
            Column("log", lambda run: Log(run.log)),
        ),
    )
    aside = [
        f"{told}."
        for name in ("set_aside", "unread")
        for told in dict.fromkeys(run for run in logged.runs.get(name, ()) if isinstance(run, str))
    ]
    missing = [Bullets([f"{told}." for told in logged.missing])] if logged.missing else []
    blocks = [*_substitutes(logged), table, *missing, *aside, *set_aside(logged.ignored)]
    return Section("Runs", blocks, name="runs", menu="runs")


def _substitutes(logged: Logged) -> list[str]:
    """Models in whose place another one answered, by method."""
    return [f"{run.method}, {run.substitutes}" for run in logged.runs.itertuples() if getattr(run, "substitutes", "")]


def _tables(made: Written) -> dict[str, pd.DataFrame]:
    logged, comparison, found = made.logged, made.comparison, made.statements
    also = {
        "placebo": pd.json_normalize([asdict(held) for held in made.placebos]),
        "kappa": kappa_table(comparison.pairs),
        "paired": paired_table(comparison.paired),
        "observers": observers_table(comparison.methods),
        "as_in_paper": as_in_paper(logged),
        **panel_table(logged.graders),
    }
    baselines = {
        name: asdict(getattr(comparison.baselines, name)) for name in ("length", "words", "words_other_source")
    }
    return {
        "methods": pd.json_normalize(
            [{name: getattr(m, name) for name in ARM} | asdict(m) for m in comparison.methods]
        ),
        "pairs": pd.json_normalize([asdict(pair) for pair in comparison.pairs]),
        "baselines": pd.DataFrame([{"baseline": name, **values} for name, values in baselines.items()]),
        "statements": pd.DataFrame(
            [
                {name: getattr(f.arm, name) for name in ARM} | {"claim": f.kind, "why": " ".join(f.sentences)}
                for f in found
            ]
        ),
        "splits": pd.json_normalize(
            [
                {"model": f.model, "method": f.arm.method, "kind": level.kind, "level": level.level}
                | asdict(level.numbers)
                for f in found
                for level in f.splits.levels
            ]
        ),
        "verdicts": logged.verdicts,
        "runs": logged.runs,
    } | {name: table for name, table in also.items() if not table.empty}


def _pictures(logged: Logged, comparison: Comparison) -> list[Picture]:
    told = "; ".join(
        f"{m.method} {m.model}: evaluation rows {m.tpr.value:.2f}, deployment rows {1 - m.tnr.value:.2f}"
        for m in comparison.methods
    )
    found: list[tuple[str, str, str, Figure | None]] = [
        (
            "called",
            f"Bars of the share called evaluation. {told}",
            "Share of evaluation rows and of deployment rows called evaluation (Figures 7, 9, 10).",
            plots.called(comparison.methods) if any(m.labelled for m in comparison.methods) else None,
        )
    ]
    for place, model in enumerate(dict.fromkeys(m.model for m in comparison.methods), start=1):
        aurocs = "; ".join(f"{m.method} {m.auroc.value:.2f}" for m in comparison.methods if m.model == model)
        caption = f"ROC of {model} with the text-only baselines in grey."
        roc = plots.roc(logged, comparison.baselines, model) if logged.texts.label.nunique() == 2 else None
        found.append((f"roc-{place}", f"ROC curves of {model}; AUROC {aurocs}", caption, roc))
    found += [
        (
            "calibration",
            "Stated probability of an evaluation against the share of evaluations",
            "Calibration, ten equal-mass bins.",
            plots.calibration(logged),
        ),
        (
            "kappa",
            "Kappa of binary and probability by number of decisions",
            "Agreement by number of decisions, with 95 % range over 100 draws (footnote 3).",
            plots.kappa_by_decisions(comparison.pairs),
        ),
        (
            "turns",
            "Absolute error by number of turns with trend lines",
            "Absolute error by turns, where the subject saw them (footnote 4); p clustered by source.",
            plots.error_by_turns(logged, comparison.methods),
        ),
    ]
    return [Picture(name, alt, caption, figure) for name, alt, caption, figure in found if figure is not None]
