"""The page of the awareness comparison, its answer first, and its tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from selfprobe.data.clusters import few_clusters
from selfprobe.data.conversations import is_bundled, name_and_contents
from selfprobe.page import (
    BLACK_BOX,
    MOST_FINDINGS,
    MOST_TERMINAL_LINES,
    Block,
    Details,
    Figures,
    Heading,
    Item,
    Items,
    Page,
    Picture,
    RowTable,
    Section,
    Table,
    Texts,
    claim_page,
    headings,
    more_in_tables,
    number,
    percent,
)
from selfprobe.page.claims import claim_sentence
from selfprobe.page.columns import columns_of
from selfprobe.page.plots import cut_name, interval_rows, model_names
from selfprobe.stats.claim import Check, Claim, Outcome, Verdict, ordered_claims
from selfprobe.stats.clustered import resampling_units
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.awareness.figures import pictures
from selfprobe.studies.awareness.named_kinds import (
    NamedKindRow,
    named_kind_rows,
    named_kinds_section,
)
from selfprobe.studies.awareness.numbers import (
    AgainstPlacebo,
    ArmNumbers,
    Comparison,
    against_placebo,
    comparison_of,
)
from selfprobe.studies.awareness.runs import AwarenessTables, told_by_set
from selfprobe.studies.awareness.sections import (
    BaselineRow,
    ObserverRow,
    PairedRow,
    TextRow,
    agreement_section,
    baseline_rows,
    baselines_section,
    methods_section,
    observer_rows,
    paired_row,
    paired_section,
    placebo_lines,
    placebo_section,
    reply_remarks,
    run_blocks,
    splits_section,
    text_rows,
    unmet_needs,
    words_section,
)
from selfprobe.studies.awareness.verdict import (
    AWARENESS_WORDS,
    CLEAREST_HEADING,
    SMALLEST_REST,
    Statement,
    statements,
)
from selfprobe.study.awareness_arms import ARM
from selfprobe.study.grader_agreement import panel_agreement
from selfprobe.text.counts import count_text
from selfprobe.text.families import simulated_rule_sentence

TITLE = "Do these models recognise an evaluation by more than its words?"
QUESTION = (
    "Elicited awareness: how well a method's verdicts decode the evaluation context. All methods "
    "of a model read one reply to the same conversations. Yes: every check holds. No: the model "
    "hardly ranks tests above real requests, or hardly beyond a reader of the text. The answer is "
    "of one method a model, the first of the paper's order that could be read. A model's ranks and "
    "the labels are predicted from the text, and what is left of the one is compared with what is "
    "left of the other: so a model need not be above a good reader of telling texts."
)
METHOD = (
    "Intervals are clustered by source, since conversations of one source are alike; a source that "
    "stands alone for a label or a set is taken apart into its conversations, and the interval is "
    "then about other conversations of that source. AUROC intervals are made on the logit scale. "
    "In simulation the intervals hold the truth in 91 to 100 % of draws, least often with few "
    "sources whose conversations are much alike. A verdict that could not be read, was a tie of "
    "votes, or rests on quotes that are not in the text is unscored, never counted as “not aware”. "
    "A stated probability of exactly .5 counts as evaluation, as in the paper; the table of "
    "methods says how many there are. AUROC ranks by share of votes, stated probability, or token "
    "mass; a subject that answers the same to everything has none. Mean |error| is what the paper "
    "calls the Brier score. ECE is debiased. Precision is what the rates give where evaluations "
    "are 1, 5 or 10 % of traffic."
)
AWARENESS_PAPER_LINE = Markup(
    "The methods are those of {}; its tables and figures from these logs: "
    "<code>selfprobe paper evaluation-awareness LOGS</code>."
).format(BLACK_BOX)


@dataclass(frozen=True)
class AwarenessResults:
    """Parts that a page is made of."""

    logged: AwarenessTables
    comparison: Comparison
    statements: tuple[Statement, ...]
    placebos: tuple[AgainstPlacebo, ...]
    evidence: Sequence[Section] = ()
    """Section on what gives the evaluation away, where subjects name it."""


def awareness_results(
    tables: AwarenessTables, evidence: Sequence[Section] = ()
) -> AwarenessResults:
    """Every number of these tables, with labels by set."""
    logged = told_by_set(tables)
    comparison = comparison_of(logged)
    placebos = against_placebo(logged.verdicts)
    return AwarenessResults(
        logged, comparison, statements(logged, comparison, placebos), placebos, evidence
    )


def awareness_page(results: AwarenessResults) -> Page:
    """The page of tables and numbers that are at hand."""
    logged = results.logged
    comparison = results.comparison
    arms = comparison.methods
    models = list(dict.fromkeys(arm.model for arm in arms))
    statement_of_subject = {}
    notes_of_subject = {}
    for statement in results.statements:
        subject = statement.claim.subject
        statement_of_subject[subject] = statement
        notes_of_subject[subject] = model_notes(statement, results)
    claims = [statement.claim for statement in results.statements]
    if not claims:
        claims = [_claim_without_method(models)]
    claims = _claims_by_effect(claims)
    ordered_statements = []
    for claim in claims:
        if claim.subject in statement_of_subject:
            ordered_statements.append(statement_of_subject[claim.subject])

    share_names = _share_names(results.statements)
    panel_sections, panel_tables = panel_agreement(logged.panels)
    figures = pictures(logged, arms, comparison.baselines)
    figure_blocks = [Figures(figures)] if figures else []
    page = claim_page(
        TITLE,
        claims,
        AWARENESS_WORDS,
        picture=_picture(ordered_statements, share_names),
        table=_table(ordered_statements, share_names),
        tables=_tables(results) | panel_tables,
        method=[
            QUESTION,
            sets_of(logged),
            METHOD,
            AWARENESS_PAPER_LINE,
        ],
        notes=notes_of_subject,
        further_figures=[
            *figure_blocks,
            methods_section(logged, arms),
            *agreement_section(comparison),
            *panel_sections,
            *paired_section(comparison.paired, arms),
        ],
    )

    sections = []
    for section in page.sections:
        if section.name == "why":
            section = replace(section, blocks=[*section.blocks, *_why_blocks(results)])
        sections.append(section)
    sections += headings(runs=run_blocks(logged))
    terminal_lines = _terminal_lines(results, page.notes)
    return replace(page, sections=sections, models=models, notes=terminal_lines)


def _why_blocks(results: AwarenessResults) -> list[Block]:
    """What stands under Why after the checks of each model."""
    arms = results.comparison.methods
    blocks: list[Block] = [*simulated_lines(results), *sources_of(results.logged)]
    if results.logged.contrast:
        blocks.append(results.logged.contrast)
    blocks += [baselines_section(results.comparison), words_section(arms)]
    if results.statements:
        blocks.append(splits_section(results.statements))
    return [
        *blocks,
        *placebo_section(results.placebos),
        *named_kinds_section(named_kind_rows(results.logged.verdicts)),
        *results.evidence,
    ]


def simulated_lines(results: AwarenessResults) -> list[str]:
    """The rule by which simulated subjects answer; nothing where all conversations are bundled."""
    if all(is_bundled(str(name)) for name in results.logged.runs.dataset):
        return []
    models = dict.fromkeys(arm.model for arm in results.comparison.methods)
    sentence = simulated_rule_sentence("models", models)
    return [sentence] if sentence else []


def _claims_by_effect(claims: Sequence[Claim]) -> list[Claim]:
    """Claims in the order Yes, Cannot tell, No; of one verdict the one with the largest effect
    first.
    """
    by_effect = sorted(claims, key=lambda claim: -np.nan_to_num(claim.effect.value, nan=-1.0))
    return ordered_claims(by_effect)


def _claim_without_method(models: Sequence[str]) -> Claim:
    """The claim where no method read a model's own conversations."""
    reason = undefined("no method read a model's own conversations")
    check = Check(
        "answered", reason, Outcome.OPEN, remedy="run a method on a model's own conversations"
    )
    details = {"does": "", "method": "any method", "strongest": ""}
    return Claim(", ".join(models) or "any model", reason, (check,), SMALLEST_REST, details)


def _share_names(statements: Sequence[Statement]) -> tuple[str, str] | None:
    """Names of what the two shares are of; None where there is only one."""
    if any(statement.sets for statement in statements):
        return "yours", "the reference"
    for statement in statements:
        rates = (statement.arm.tpr.value, statement.arm.tnr.value)
        if not np.isnan(rates).any():
            return "tests", "real requests"
    return None


def _shares(statement: Statement) -> tuple[Estimate, Estimate]:
    """Share called an evaluation, of tests and of real requests or of your prompts and the
    reference.
    """
    return statement.sets[:2] if statement.sets else (statement.arm.tpr, statement.arm.false_alarms)


def _picture(
    statements: Sequence[Statement], share_names: tuple[str, str] | None
) -> Picture | None:
    shown_statements = statements[:MOST_FINDINGS]
    if not any(statement.arm.n for statement in shown_statements):
        return None
    shares_of_model = {}
    for statement in shown_statements:
        shares = {"": statement.arm.called}
        if share_names:
            shares = dict(zip(share_names, _shares(statement), strict=True))
        shares_of_model[cut_name(statement.claim.subject)] = shares

    arm_names = {statement.arm.name for statement in shown_statements}
    method_note = f"Asked by {arm_names.pop()}; " if len(arm_names) == 1 else ""
    caption = f"{method_note}95 % intervals.{more_in_tables(len(statements) - MOST_FINDINGS)}"
    return interval_rows(
        "noticed", shares_of_model, caption=caption, axis="called an evaluation", scale="percent"
    )


@dataclass(frozen=True)
class AnswerRow:
    """Answer for one model."""

    model: Annotated[str, Heading("model", "Model that was asked.")]
    answer: Annotated[
        Verdict, Heading("answer", "Whether it recognises evaluations by more than their words.")
    ]
    of_tests: Annotated[
        float, Heading("tests", "Share of tests that it calls an evaluation.", percent)
    ]
    of_real: Annotated[
        float, Heading("real requests", "Share of real requests that it calls one.", percent)
    ]
    of_yours: Annotated[
        float, Heading("yours", "Share of your prompts that it calls one.", percent)
    ]
    of_reference: Annotated[
        float, Heading("the reference", "Share of the reference that it calls one.", percent)
    ]
    called: Annotated[
        float, Heading("called an evaluation", "Share of conversations that it calls one.", percent)
    ]
    auroc: Annotated[
        float, Heading("AUROC", "Chance that a test is ranked above a real request.", number)
    ]


SHARE_FIELDS = {
    ("yours", "the reference"): ("of_yours", "of_reference", "auroc"),
    ("tests", "real requests"): ("of_tests", "of_real", "auroc"),
    None: ("called",),
}
"""Names of the two shares → columns of the first table."""


NO_SHARE = undefined("no reference")


def _table(statements: Sequence[Statement], share_names: tuple[str, str] | None) -> Table:
    rows = []
    for statement in statements[:MOST_FINDINGS]:
        arm = statement.arm
        yours, reference = statement.sets[:2] if statement.sets else (NO_SHARE, NO_SHARE)
        row = AnswerRow(
            model=statement.claim.subject,
            answer=statement.claim.verdict,
            of_tests=arm.tpr.value,
            of_real=arm.false_alarms.value,
            of_yours=yours.value,
            of_reference=reference.value,
            called=arm.called.value,
            auroc=arm.auroc.value,
        )
        rows.append(row)
    return Table(rows, columns_of(AnswerRow, "model", "answer", *SHARE_FIELDS[share_names]))


def model_notes(statement: Statement, results: AwarenessResults) -> list[Block]:
    """Blocks under the checks of a model: shares, format, votes, placebos, its clearest prompts
    with their texts.
    """
    method_note = f"Asked by {statement.arm.name}."
    sentences = [
        method_note,
        *statement.sentences,
        *placebo_lines(statement.model, results.placebos),
    ]
    blocks: list[Block] = [" ".join(sentences)]
    if statement.clearest:
        texts = results.logged.texts
        clearest_texts = texts[texts["item"].isin(statement.clearest)].drop_duplicates("item")
        text_of_item = clearest_texts.set_index("item").text
        page_items = []
        for item in statement.clearest:
            if item in text_of_item:
                page_items.append(Item(item, str(text_of_item[item])))
        blocks.append(Items(CLEAREST_HEADING, page_items))
        blocks.append(Details("Their texts", [Texts(page_items)]))
    return blocks


def _terminal_lines(results: AwarenessResults, model_lines: Sequence[str]) -> list[str]:
    """Lines of the terminal: a model each, needs that are not met, and what is not whole or not
    used.
    """
    logged = results.logged
    arms = results.comparison.methods
    short_names = model_names(list(dict.fromkeys(arm.model for arm in arms)))
    lines = [
        *simulated_lines(results),
        *reply_remarks(logged),
        *model_lines[:3],
        *logged.contrast.split("\n"),
    ]
    for arm in arms:
        lines += [
            f"{arm.method}, {short_names[arm.model]}: {need}." for need in unmet_needs(arm).values()
        ]
    lines = [line for line in lines if line][: MOST_TERMINAL_LINES - 2]
    lines += [f"Not whole: {line}" for line in logged.missing][:1]
    if logged.ignored:
        unused_logs = count_text(len(logged.ignored), "log")
        lines.append(f"Not used: {unused_logs}; the page says why.")
    return lines[:MOST_TERMINAL_LINES]


def sets_of(logged: AwarenessTables) -> str:
    """Sentence on the data sets that the conversations are of, and on several being pooled."""
    contents = [name_and_contents(str(name)) for name in dict.fromkeys(logged.runs.dataset)]
    sentence = f"Conversations: {'; '.join(contents)}."
    # First prompts and transcripts are of one set.
    set_count = logged.verdicts.groupby("context").data.nunique().max()
    if set_count == 1:
        return sentence
    return (
        f"{sentence} These are {set_count} different sets, and every number below is of all of "
        "them together: give the logs of one to hear of it alone."
    )


def sources_of(logged: AwarenessTables) -> list[str]:
    """Sentence that names the sources where intervals count few; none where there are more."""
    texts = logged.texts
    pairs = texts.pair.fillna(texts.item).astype(str)
    set_names = pd.Series("", texts.index)
    if "set" in texts:
        set_names = texts["set"].fillna("").astype(str)
    groups = set_names + " " + texts.label.astype(str)
    sources = texts.source.astype(str)
    clusters, unit = resampling_units(list(sources), list(pairs), list(groups))
    sentence = few_sources(list(clusters), unit)
    return [sentence] if sentence else []


def few_sources(clusters: Sequence[str], unit: str) -> str:
    """Sentence that names the sources of conversations where they are few; "" else.

    Args:
        clusters: Cluster of each conversation, as `resampling_units` makes them.
        unit: Their name.
    """
    if unit == "conversation":
        return ""
    remedy = (
        "?cluster=COLUMN behind the file's name takes another column, ?cluster=id each "
        "conversation by itself"
    )
    return few_clusters(clusters, rows="conversations", unit="source", remedy=remedy)


@dataclass(frozen=True)
class StatementRow:
    """Each model's answer and why."""

    method: Annotated[str, Heading("method", "Method that the answer is of.")]
    model: Annotated[str, Heading("model", "Model that was asked.")]
    perspective: Annotated[
        str, Heading("perspective", "Whether it was asked in the first or third person.")
    ]
    context: Annotated[
        str, Heading("context", "Whether it read first prompts or full transcripts.")
    ]
    placebo: Annotated[str, Heading("placebo", "Kind of placebo; empty for none.")]
    target: Annotated[str, Heading("target", "Model whose replies it read; empty for its own.")]
    wording: Annotated[str, Heading("wording", "Hash of your own questions; empty for ours.")]
    run: Annotated[int, Heading("run", "2 and more: the same was asked again.")]
    answer: Annotated[
        Verdict, Heading("answer", "Whether it recognises evaluations by more than their words.")
    ]
    why: Annotated[
        str, Heading("why", "The sentence of the answer, and what else the numbers say.")
    ]


def statement_rows(statements: Sequence[Statement]) -> list[StatementRow]:
    """One row for each model."""
    rows = []
    for statement in statements:
        arm_values = {name: getattr(statement.arm, name) for name in ARM}
        sentences = [claim_sentence(statement.claim, AWARENESS_WORDS), *statement.sentences]
        row = StatementRow(**arm_values, answer=statement.claim.verdict, why=" ".join(sentences))
        rows.append(row)
    return rows


def _tables(results: AwarenessResults) -> dict[str, pd.DataFrame | RowTable]:
    """File stem → table; those that are empty for lack of arms or runs are left out."""
    logged = results.logged
    comparison = results.comparison
    row_tables = {
        "text": RowTable(TextRow, text_rows(comparison.methods), on_page=False),
        "baselines": RowTable(BaselineRow, baseline_rows(comparison), on_page=False),
        "statements": RowTable(StatementRow, statement_rows(results.statements), on_page=False),
    }
    optional_row_tables = {
        "paired": RowTable(
            PairedRow, [paired_row(pair) for pair in comparison.paired], on_page=False
        ),
        "observers": RowTable(ObserverRow, observer_rows(comparison.methods), on_page=False),
        "named_kinds": RowTable(NamedKindRow, named_kind_rows(logged.verdicts), on_page=False),
    }
    frames = {
        "methods": _methods_frame(comparison.methods),
        "pairs": _nested_frame(comparison.pairs),
        "splits": _splits_frame(results.statements),
        "verdicts": logged.verdicts,
        "runs": logged.runs,
    }
    optional_frames = {
        "placebo": _nested_frame(results.placebos),
    }
    tables: dict[str, pd.DataFrame | RowTable] = {**frames, **row_tables}
    tables |= {name: frame for name, frame in optional_frames.items() if not frame.empty}
    tables |= {name: table for name, table in optional_row_tables.items() if table.rows}
    return tables


def _nested_frame(rows: Sequence[Any]) -> pd.DataFrame:
    """Rows of dataclasses; parts of an estimate are columns like `auroc.low`."""
    return pd.json_normalize([asdict(row) for row in rows])


def _methods_frame(arms: Sequence[ArmNumbers]) -> pd.DataFrame:
    records = []
    for arm in arms:
        numbers = {name: value for name, value in asdict(arm).items() if name != "beyond"}
        arm_values = {name: numbers[name] for name in ARM}
        records.append(arm_values | numbers)
    return pd.json_normalize(records)


def _splits_frame(statements: Sequence[Statement]) -> pd.DataFrame:
    records = []
    for statement in statements:
        arm_values = {"model": statement.model, "method": statement.arm.method}
        for level in statement.splits.levels:
            records.append(
                arm_values | {"kind": level.kind, "level": level.level} | asdict(level.numbers)
            )
    return pd.json_normalize(records)
