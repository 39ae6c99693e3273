"""Sections of the awareness page: methods, readers of the text, kinds of conversation, pairs,
placebos, runs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import pandas as pd
from markupsafe import Markup

from selfprobe.page import (
    KNOW,
    Block,
    Bullets,
    Column,
    Details,
    Heading,
    Log,
    Section,
    Table,
    set_aside,
)
from selfprobe.page.columns import columns_of
from selfprobe.page.numerals import (
    interval_text,
    number,
    p_digits,
    p_value,
    percent,
    percent_interval,
    points,
)
from selfprobe.scorers.votes import Bounds
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.awareness.numbers import (
    LOW_KAPPA,
    MARGIN,
    PLACEBO_DIFFERENCES,
    AgainstPlacebo,
    ArmNumbers,
    ArmPair,
    Comparison,
    MethodPair,
    PairKind,
)
from selfprobe.studies.awareness.runs import AwarenessTables
from selfprobe.studies.awareness.verdict import SMALLEST_REST, Statement
from selfprobe.study.awareness_arms import ARM, PLAIN, marks
from selfprobe.study.text_baselines import BEST_READER_COLUMNS
from selfprobe.text.counts import count_text
from selfprobe.text.user_input import names

signed_estimate = partial(interval_text, sign=True)

# ---- methods


@dataclass(frozen=True)
class MethodRow:
    """Numbers of each method that has a verdict."""

    method: Annotated[str, Heading("method", "Method, with what sets the arm apart.")]
    model: Annotated[str, Heading("model", "Model that was asked.")]
    verdicts: Annotated[int, Heading("verdicts", "Conversations with a verdict.")]
    votes: Annotated[str, Heading("votes read", "Votes that could be read, of those asked for.")]
    unscored: Annotated[
        str, Heading("unscored", "Share of conversations without a verdict, by reason.")
    ]
    tpr: Annotated[
        Estimate,
        Heading("evaluation rows right", "Share of evaluation rows that are called evaluation."),
    ]
    tnr: Annotated[
        Estimate,
        Heading("deployment rows right", "Share of deployment rows that are called deployment."),
    ]
    balanced_accuracy: Annotated[
        Estimate,
        Heading("balanced accuracy", "Mean of the shares right in the two labels; .5 is guessing."),
    ]
    called: Annotated[
        Estimate,
        Heading("called evaluation", "Share of conversations that are called an evaluation."),
    ]
    auroc: Annotated[
        Estimate,
        Heading(
            "AUROC", "Chance that an evaluation row is put above a deployment row; .5 is guessing."
        ),
    ]
    brier: Annotated[
        Estimate,
        Heading(
            "Brier",
            (
                "Mean squared distance of the stated probability from the label; .25 is always "
                "saying "
                ".5."
            ),
        ),
    ]
    mae: Annotated[
        Estimate, Heading("mean |error|", "Mean distance of the stated probability from the label.")
    ]
    ece: Annotated[
        Estimate,
        Heading(
            "ECE",
            "How far stated probabilities are from the shares that are evaluations, debiased.",
        ),
    ]
    precision: Annotated[
        str,
        Heading(
            "precision at 1 / 5 / 10 %",
            (
                "Share of alarms that are right where so many rows are evaluations. 95 % interval "
                "in "
                "brackets."
            ),
        ),
    ]


def method_row(arm: ArmNumbers) -> MethodRow:
    """Row of an arm with a verdict."""
    return MethodRow(
        method=arm.name,
        model=arm.model,
        verdicts=arm.n,
        votes=votes_read(arm),
        unscored=_unscored_reasons(arm),
        tpr=arm.tpr,
        tnr=arm.tnr,
        balanced_accuracy=arm.balanced_accuracy,
        called=arm.called,
        auroc=arm.auroc,
        brier=arm.brier,
        mae=arm.mae,
        ece=arm.ece,
        precision=" / ".join(map(interval_text, arm.precision.values())),
    )


def _unscored_reasons(arm: ArmNumbers) -> str:
    shares = [f"{reason} {percent(share)}" for reason, share in arm.unscored.items()]
    return ", ".join(shares) or "none"


def votes_read(arm: ArmNumbers) -> str:
    """ "1,450 of 1,500 (96.7 %)", with the verdicts that rest on one vote of several."""
    if not arm.votes_asked:
        return "none asked"
    share = percent(arm.votes_read / arm.votes_asked)
    sentence = f"{arm.votes_read:,} of {arm.votes_asked:,} ({share})"
    if not arm.one_vote:
        return sentence
    verdicts = "verdict" if arm.one_vote == 1 else "verdicts"
    return f"{sentence}; {arm.one_vote} {verdicts} on one vote"


def methods_section(logged: AwarenessTables, arms: Sequence[ArmNumbers]) -> Section:
    """Numbers of methods with a verdict, a line for each other one, what lost votes leave open, and
    self-graders.
    """
    rated_arms = [arm for arm in arms if arm.n]
    blocks: list[Block] = []
    if rated_arms:
        rows = [method_row(arm) for arm in rated_arms]
        blocks.append(Table(rows, columns_of(MethodRow)))
    without_verdict = [
        f"{arm.name}, {arm.model}: no verdict; {_missing_reasons(arm)}."
        for arm in arms
        if not arm.n
    ]
    if without_verdict:
        blocks.append(Bullets(without_verdict))
    blocks += _unscored_blocks(rated_arms)
    for arm in arms:
        if arm.at_half:
            blocks.append(
                f"{arm.name}, {arm.model}: {arm.at_half} of {count_text(arm.n, 'verdict')} with a "
                "stated probability of exactly .5, which counts as evaluation, as in the paper."
            )
    for run in logged.runs.itertuples():
        if run.model in names(run.grader):
            placebo = f" (placebo {run.placebo})" if run.placebo else ""
            blocks.append(f"{run.method} of {run.model}{placebo} was graded by the subject itself.")
    return Section("Methods", blocks, name="methods")


# ---- what lost votes leave open

ONE_VOTE = ("reasoning_trace", "first_token")
"""Methods that take their verdict from the reply itself."""
UNMET_NEEDS = {
    "no_logprobs": (
        "the model gives no logprobs, so there are no candidates for the reply's first token"
    ),
    "no_reasoning": "the model shows no reasoning",
    "reasoning_summary": "the vendor shows a summary in the place of the reasoning",
    "reasoning_redacted": "the vendor hides the reasoning",
}
"""Why a method cannot be used with a model: what it needs and does not get."""
WARNED_SHARE = 0.05
"""Share of lost votes, and of discarded quotes, above which the page says so in a sentence."""
UNSCORED_NOTE = (
    "Votes that could not be read say nothing, and may not be lost by chance. Each rate from … to: "
    "over all conversations, if every lost vote had gone against it, and if every one had gone for "
    "it."
)


def _bounds(bounds: Bounds) -> str:
    return "–" if math.isnan(bounds.least) else f"{bounds.least:.2f} … {bounds.most:.2f}"


@dataclass(frozen=True)
class UnscoredRow:
    """What lost votes leave open, by arm."""

    method: Annotated[str, Heading("method", "Method, with what sets the arm apart.")]
    model: Annotated[str, Heading("model", "Model that was asked.")]
    of_evaluation: Annotated[
        float,
        Heading(
            "evaluation rows unscored", "Share of the evaluation rows without a verdict.", percent
        ),
    ]
    of_deployment: Annotated[
        float,
        Heading(
            "deployment rows unscored", "Share of the deployment rows without a verdict.", percent
        ),
    ]
    tpr: Annotated[
        Bounds,
        Heading(
            "evaluation rows right", "Share of evaluation rows that are called evaluation.", _bounds
        ),
    ]
    tnr: Annotated[
        Bounds,
        Heading(
            "deployment rows right", "Share of deployment rows that are called deployment.", _bounds
        ),
    ]
    balanced_accuracy: Annotated[
        Bounds,
        Heading(
            "balanced accuracy",
            "Mean of the shares right in the two labels; .5 is guessing.",
            _bounds,
        ),
    ]
    called: Annotated[
        Bounds,
        Heading(
            "called evaluation", "Share of conversations that are called an evaluation.", _bounds
        ),
    ]
    quotes: Annotated[
        str,
        Heading(
            "quotes not in the text",
            "Quotes of the grader that the text does not hold; they count for nothing.",
        ),
    ]


def unscored_row(arm: ArmNumbers) -> UnscoredRow:
    """Row of an arm that lost votes or quotes."""
    quotes = f"{arm.quotes_discarded} of {arm.quotes}" if arm.quotes else "–"
    return UnscoredRow(
        method=arm.name,
        model=arm.model,
        of_evaluation=arm.unscored_of.get("evaluation", math.nan),
        of_deployment=arm.unscored_of.get("deployment", math.nan),
        quotes=quotes,
        **arm.bounds,
    )


def _unscored_blocks(arms: Sequence[ArmNumbers]) -> list[Block]:
    """Sentences on what lost votes and discarded quotes leave open; none where nothing is lost."""
    lossy_arms = [
        arm
        for arm in arms
        if arm.votes_read < arm.votes_asked or arm.unscored or arm.quotes_discarded
    ]
    if not lossy_arms:
        return []
    warnings = [
        f"{arm.name}, {arm.model}: {warning}" for arm in lossy_arms for warning in _warnings(arm)
    ]
    rows = [unscored_row(arm) for arm in lossy_arms]
    blocks: list[Block] = [Bullets(warnings)] if warnings else []
    return [*blocks, UNSCORED_NOTE, Table(rows, columns_of(UnscoredRow))]


def _warnings(arm: ArmNumbers) -> list[str]:
    warnings = []
    for reason, need in unmet_needs(arm).items():
        warnings.append(f"{need} ({percent(arm.unscored[reason])} of conversations).")
    lost_votes = arm.votes_asked - arm.votes_read
    if lost_votes > WARNED_SHARE * arm.votes_asked:
        lost_units = (
            "conversations are without a verdict"
            if arm.method in ONE_VOTE
            else "votes could not be read"
        )
        share = percent(lost_votes / arm.votes_asked)
        warnings.append(f"{lost_votes:,} of {arm.votes_asked:,} {lost_units} ({share}).")
    if arm.quotes_discarded > WARNED_SHARE * arm.quotes:
        share = percent(arm.quotes_discarded / arm.quotes)
        warnings.append(
            f"{arm.quotes_discarded} of {count_text(arm.quotes, 'quote')} of the grader ({share}) not in "
            "the text; a finding of awareness without one quote that is there is not counted."
        )
    return warnings


def unmet_needs(arm: ArmNumbers) -> dict[str, str]:
    """Reason of unscored conversations → what the method needed and did not get."""
    return {reason: need for reason, need in UNMET_NEEDS.items() if arm.unscored.get(reason)}


def _missing_reasons(arm: ArmNumbers) -> str:
    """Why a method has no verdict."""
    shares = [
        f"{UNMET_NEEDS.get(reason, reason)} ({percent(share)})"
        for reason, share in arm.unscored.items()
    ]
    return "; ".join(shares) or "none asked"


# ---- readers of the text

BASELINE_TITLES = {
    "length": "length of the conversation",
    "words": "TF-IDF + logistic regression, pooled",
    "words_other_source": "the same, a source left out",
    "text": "best reader",
    "text_other_source": "best reader, a source left out",
}
"""Field of `Baselines` → its words."""


@dataclass(frozen=True)
class BaselineRow:
    """Readers of the text, which know no model."""

    baseline: Annotated[
        str, Heading("baseline", "Reader that knows no model.", BASELINE_TITLES.__getitem__)
    ]
    estimate: Annotated[
        Estimate, Heading("AUROC", "Chance that it puts an evaluation row above a deployment row.")
    ]
    unit: Annotated[str, Heading("unit", "Name of an independent unit.", on_page=False)]
    reason: Annotated[
        str, Heading("no interval", "Reason of an interval that is missing.", on_page=False)
    ]
    se: Annotated[float, Heading("standard error", "Standard error of the number.", on_page=False)]
    df: Annotated[
        float, Heading("degrees of freedom", "Degrees of freedom of the interval.", on_page=False)
    ]


def baseline_rows(comparison: Comparison) -> list[BaselineRow]:
    """One row for each reader of the text."""
    rows = []
    for name in ("length", "words", "words_other_source", *BEST_READER_COLUMNS):
        estimate: Estimate = getattr(comparison.baselines, name)
        rows.append(
            BaselineRow(name, estimate, estimate.unit, estimate.reason, estimate.se, estimate.df)
        )
    return rows


def baselines_section(comparison: Comparison) -> Section:
    """What readers of the text alone reach."""
    missing = comparison.baselines.without_embeddings
    left_out = f" They were left out: {missing}." if missing else ""
    features = (
        "words, characters and style" if missing else "words, characters, style and embeddings"
    )
    blocks: list[Block] = [
        "A classifier that knows no model reaches this on the same conversations. A method that "
        "is not above it is not shown to see more than the text. The best reader is one of "
        f"{features}, chosen on conversations that it is not tested on; style is length, digits, "
        "line breaks, option marks, capitals and punctuation; embeddings are all-MiniLM-L6-v2's, "
        f"of about the first 200 words.{left_out}",
        Markup(
            "For orientation, AUROC published elsewhere, on other conversations: Gemini 2.5 Pro "
            "0.83 (agentic 0.95), human readers 0.92 ({})."
        ).format(KNOW),
        Table(baseline_rows(comparison), columns_of(BaselineRow)),
    ]
    if comparison.baselines.context:
        blocks.append(
            "These numbers are of the first prompts. A method that read whole transcripts is "
            "compared with the words of transcripts."
        )
    return Section("What the text alone gives away", blocks, name="text")


@dataclass(frozen=True)
class TextRow:
    """Every arm beside each reader of the text alone."""

    method: Annotated[str, Heading("method", "Method, with what sets the arm apart.")]
    model: Annotated[str, Heading("model", "Model that was asked.")]
    auroc: Annotated[
        Estimate, Heading("AUROC of the model", "Chance that it ranks a test above a real request.")
    ]
    reader: Annotated[str, Heading("against", "Reader that knows no model.")]
    estimate: Annotated[
        Estimate,
        Heading("AUROC of the text", "What this reader reaches on the same conversations."),
    ]
    over: Annotated[
        Estimate, Heading("model less it", "AUROC of the model less that of the reader.")
    ]
    rest: Annotated[
        Estimate,
        Heading(
            "left beyond it",
            (
                "AUROC above .5 of what is left of the model's scores, and of the labels, after "
                "what "
                "the reader tells."
            ),
        ),
    ]


def text_rows(arms: Sequence[ArmNumbers]) -> list[TextRow]:
    """One row for each arm and reader, and one for all readers together."""
    rows = []
    for arm in arms:
        if arm.placebo or not arm.n:
            continue
        for rival in arm.beyond.rivals:
            rival_row = TextRow(
                method=arm.name,
                model=arm.model,
                auroc=arm.auroc,
                reader=rival.title,
                estimate=rival.auroc,
                over=rival.over,
                rest=rival.rest,
            )
            rows.append(rival_row)
        no_score = undefined("no one score")
        all_readers_row = TextRow(
            method=arm.name,
            model=arm.model,
            auroc=arm.auroc,
            reader="all of them together",
            estimate=no_score,
            over=no_score,
            rest=arm.beyond.rest,
        )
        rows.append(all_readers_row)
    return rows


def words_section(arms: Sequence[ArmNumbers]) -> Section:
    """Every arm beside each reader of the text, a row each."""
    note = (
        "On the conversations that both rate. A model recognises evaluations by more than their "
        f"words where more than {SMALLEST_REST:.2f} is left beyond each reader and beyond all "
        "together, which also predict the model's own scores. It need not be above them. The "
        "readers' training is taken as given: what no reader can learn from so few texts counts as "
        "more than the words."
    )
    rows = text_rows(arms)
    blocks: list[Block] = ["No method has a verdict."]
    if rows:
        blocks = [note, Table(rows, columns_of(TextRow))]
    return Section("More than the words?", blocks, name="words", menu="more than the words")


# ---- kinds of conversation

KIND_TITLES = {"format": "Format", "domain": "Domain", "agentic": "Agentic", "language": "Language"}


@dataclass(frozen=True)
class SplitEffectRow:
    """Format and label of the conversation held apart, for each model's main arm."""

    model: Annotated[str, Heading("model", "Model that was asked.")]
    method: Annotated[str, Heading("method", "Method, with what sets the arm apart.")]
    of_format: Annotated[
        Estimate,
        Heading(
            "benchmark format, within a label",
            "What the benchmark format adds to the verdicts, within a label.",
        ),
    ]
    of_label: Annotated[
        Estimate,
        Heading(
            "label evaluation, within a format", "What the label evaluation adds, within a format."
        ),
    ]


@dataclass(frozen=True)
class LevelRow:
    """An arm's numbers by kind of conversation."""

    kind: Annotated[
        str, Heading("kind", "What sets the conversations apart.", KIND_TITLES.__getitem__)
    ]
    level: Annotated[str, Heading("conversations", "Which of its values they have.")]
    verdicts: Annotated[int, Heading("verdicts", "Conversations with a verdict.")]
    called: Annotated[
        Estimate,
        Heading(
            "called evaluation",
            "Share of conversations that are called an evaluation.",
            percent_interval,
        ),
    ]
    tpr: Annotated[
        Estimate,
        Heading(
            "evaluation rows right",
            "Share of evaluation rows that are called evaluation.",
            percent_interval,
        ),
    ]
    tnr: Annotated[
        Estimate,
        Heading(
            "deployment rows right",
            "Share of deployment rows that are called deployment.",
            percent_interval,
        ),
    ]
    auroc: Annotated[
        Estimate,
        Heading(
            "AUROC", "Chance that an evaluation row is put above a deployment row; .5 is guessing."
        ),
    ]


def splits_section(statements: Sequence[Statement]) -> Section:
    """Each model's main arm by kind of conversation, and format and label held apart."""
    effect_rows = []
    levels: list[Block] = []
    inferred_kinds: set[str] = set()
    for statement in statements:
        effects = statement.splits.effects
        effect_rows.append(
            SplitEffectRow(statement.model, statement.arm.name, effects.format, effects.label)
        )
        inferred_kinds |= {KIND_TITLES[kind].lower() for kind in statement.splits.by_rule}
        if statement.splits.levels:
            table = Table(level_rows(statement), columns_of(LevelRow))
            levels.append(Details(f"{statement.model} by kind of conversation", [table]))
    blocks: list[Block] = [
        "Differences in the share called evaluation. A subject that goes by looks alone has a "
        "large first number and a second one about 0.",
        Table(effect_rows, columns_of(SplitEffectRow)),
    ]
    if inferred_kinds:
        kinds = " and ".join(sorted(inferred_kinds))
        blocks.append(f"The rows do not all name {kinds}: read from every text by a simple rule.")
    return Section("What it follows", [*blocks, *levels], name="splits", menu="what it follows")


def level_rows(statement: Statement) -> list[LevelRow]:
    """One row for each group of conversations that is large enough."""
    rows = []
    for level in statement.splits.levels:
        arm = level.numbers
        rows.append(
            LevelRow(level.kind, level.level, arm.n, arm.called, arm.tpr, arm.tnr, arm.auroc)
        )
    return rows


# ---- agreement of the methods


@dataclass(frozen=True)
class AgreementRow:
    """Agreement of two methods of one model."""

    model: Annotated[str, Heading("model", "Model that was asked.")]
    methods: Annotated[tuple[str, str], Heading("methods", "The two methods.")]
    n: Annotated[int, Heading("n", "Conversations on which both have a verdict.")]
    equal: Annotated[
        float, Heading("equal", "Share of these on which both have the same verdict.", percent)
    ]
    kappa: Annotated[
        Estimate, Heading("kappa", "Cohen's agreement beyond chance: 0 is chance, 1 full.")
    ]
    pabak: Annotated[
        float, Heading("PABAK", "Agreement, adjusted for prevalence and bias.", number)
    ]
    ac1: Annotated[
        float,
        Heading(
            "AC1",
            "Gwet's agreement beyond chance, steadier than kappa where one verdict is rare.",
            number,
        ),
    ]
    mcnemar_p: Annotated[
        float,
        Heading(
            "McNemar: p", "p that both methods call as many conversations evaluation.", p_digits
        ),
    ]
    pearson: Annotated[float, Heading("Pearson r", "Correlation of the two scores.", number)]


def agreement_row(pair: MethodPair) -> AgreementRow:
    """Row of two methods."""
    return AgreementRow(
        model=pair.model,
        methods=(pair.first, pair.second),
        n=pair.agreement.n,
        equal=pair.agreement.observed,
        kappa=pair.agreement.kappa,
        pabak=pair.agreement.pabak,
        ac1=pair.agreement.ac1,
        mcnemar_p=pair.agreement.mcnemar_p,
        pearson=pair.pearson,
    )


def agreement_section(comparison: Comparison) -> list[Section]:
    """Section on how methods agree, or none where there are no two."""
    silent_arms = {(arm.model, arm.method) for arm in comparison.methods if not arm.n}
    rows: list[AgreementRow] = []
    disjoint_pairs: list[str] = []
    for pair in comparison.pairs:
        if (pair.model, pair.first) in silent_arms or (pair.model, pair.second) in silent_arms:
            continue
        if pair.agreement.n:
            rows.append(agreement_row(pair))
        else:
            disjoint_pairs.append(f"{pair.first} and {pair.second} ({pair.model})")
    blocks: list[Block] = []
    if rows:
        blocks.append(Table(rows, columns_of(AgreementRow)))
    if disjoint_pairs:
        blocks.append(
            f"Without a conversation on which both have a verdict: {', '.join(disjoint_pairs)}."
        )
    return [Section("Agreement of the methods", blocks, name="agreement")] if blocks else []


# ---- two arms of a method

PAIRED_NOTE = (
    "The same method on the same conversations, twice. Two runs of one arm are the yardstick, as "
    "in the paper: what differs no more than they do is noise. A difference in errors is the "
    "second's share of wrong verdicts less the first's, paired and clustered by source. "
    f"“Equivalent” is said where it is within ± {MARGIN} (TOST at 5 %) and kappa is {LOW_KAPPA} or "
    "more: arms that contradict each other can be wrong equally often."
)
OBSERVERS_NOTE = (
    "A model in the third person on another model's conversations (rows read, columns wrote them). "
    "A row that is higher throughout is a better reader; only what a model has on its own "
    "conversations beyond other readers could be self-knowledge."
)
NO_SECOND_RUN = undefined("no second run")


@dataclass(frozen=True, kw_only=True)
class PairedRow:
    """Two arms of a method on the same conversations."""

    kind: Annotated[str, Heading("held together", "What sets the two arms apart.")]
    method: Annotated[str, Heading("method", "Method of both arms.")]
    model: Annotated[str, Heading("model", "Model that was asked.")]
    perspective: Annotated[
        str, Heading("perspective", "Perspective of the first arm.", on_page=False)
    ]
    context: Annotated[str, Heading("context", "Context of the first arm.", on_page=False)]
    placebo: Annotated[
        str, Heading("placebo", "Placebo of the first arm; empty for none.", on_page=False)
    ]
    target: Annotated[
        str,
        Heading(
            "target", "Model whose replies the first arm read; empty for its own.", on_page=False
        ),
    ]
    wording: Annotated[
        str, Heading("wording", "Hash of your own questions; empty for ours.", on_page=False)
    ]
    run: Annotated[int, Heading("run", "Number of the first arm's run.", on_page=False)]
    second_perspective: Annotated[
        str, Heading("perspective", "Perspective of the second arm.", on_page=False)
    ]
    second_context: Annotated[str, Heading("context", "Context of the second arm.", on_page=False)]
    second_placebo: Annotated[
        str, Heading("placebo", "Placebo of the second arm; empty for none.", on_page=False)
    ]
    second_target: Annotated[
        str,
        Heading(
            "target", "Model whose replies the second arm read; empty for its own.", on_page=False
        ),
    ]
    second_wording: Annotated[
        str, Heading("wording", "Hash of your own questions; empty for ours.", on_page=False)
    ]
    second_run: Annotated[int, Heading("run", "Number of the second arm's run.", on_page=False)]
    n: Annotated[int, Heading("n", "Conversations with a verdict in both arms.")]
    labelled: Annotated[int, Heading("labelled", "Number of these with a label.")]
    right_first: Annotated[
        int, Heading("first right", "Labelled conversations that the first identifies correctly.")
    ]
    right_second: Annotated[
        int, Heading("second right", "Labelled conversations that the second identifies correctly.")
    ]
    r: Annotated[Estimate, Heading("Pearson r", "Correlation of the two scores.")]
    kappa: Annotated[
        Estimate, Heading("kappa", "Cohen's agreement beyond chance: 0 is chance, 1 full.")
    ]
    wrong: Annotated[
        Estimate,
        Heading(
            "difference in errors", "Share wrong of the second less the first.", signed_estimate
        ),
    ]
    p: Annotated[float, Heading("p", "p that both are wrong equally often.", p_digits)]
    tost_p: Annotated[
        float,
        Heading(
            "p of equivalence", f"p that they differ by {MARGIN} or more.", p_digits, on_page=False
        ),
    ]
    equivalent: Annotated[
        bool,
        Heading(
            "equivalent",
            f"Whether they are by TOST, with a kappa of {LOW_KAPPA} or more.",
            on_page=False,
        ),
    ]
    error: Annotated[
        Estimate,
        Heading(
            "difference in mean |error|",
            "Mean absolute error of the second less that of the first.",
            signed_estimate,
        ),
    ]
    auroc: Annotated[
        Estimate,
        Heading(
            "difference in AUROC", "AUROC of the second less that of the first.", signed_estimate
        ),
    ]
    runs_less_this_r: Annotated[
        Estimate,
        Heading(
            "r of two runs less this",
            "Pearson's r of two runs less that of these arms.",
            on_page=False,
        ),
    ]
    runs_less_this_kappa: Annotated[
        Estimate,
        Heading(
            "kappa of two runs less this",
            "Kappa of two runs less that of these arms.",
            on_page=False,
        ),
    ]


def paired_row(pair: ArmPair) -> PairedRow:
    """Row of a pair of arms."""
    first_arm = dict(zip(ARM, pair.first, strict=True))
    second_arm = {
        f"second_{name}": value for name, value in zip(ARM[2:], pair.second[2:], strict=True)
    }
    return PairedRow(
        kind=pair.kind,
        **first_arm,
        **second_arm,
        n=pair.n,
        labelled=pair.labelled,
        right_first=pair.right[0],
        right_second=pair.right[1],
        r=pair.r,
        kappa=pair.kappa,
        wrong=pair.wrong,
        p=pair.p,
        tost_p=pair.tost_p,
        equivalent=pair.equivalent,
        error=pair.error,
        auroc=pair.auroc,
        runs_less_this_r=pair.below_runs.get("r", NO_SECOND_RUN),
        runs_less_this_kappa=pair.below_runs.get("kappa", NO_SECOND_RUN),
    )


def _subject_of_pair(row: PairedRow) -> str:
    return f"{row.method} of {row.model}: {row.kind}"


def _arms_of_pair(row: PairedRow) -> str:
    first_arm = [getattr(row, name) for name in ARM]
    second_values = [getattr(row, f"second_{name}") for name in PLAIN]
    second_arm = [row.method, row.model, *second_values]
    first_marks = marks(first_arm).strip() or "(plain)"
    second_marks = marks(second_arm).strip() or "(plain)"
    return f"{first_marks} | {second_marks}"


def _right_in_pair(row: PairedRow) -> str:
    return f"{row.right_first} and {row.right_second} of {row.labelled}" if row.labelled else "–"


PAIRED_COLUMNS = (
    Column(
        "held together", _subject_of_pair, help="Method, model and what sets the two arms apart."
    ),
    Column("arms", _arms_of_pair, help="What sets the first arm apart, and the second."),
    *columns_of(PairedRow, "n", "r", "kappa"),
    Column(
        "identified correctly",
        _right_in_pair,
        look="n",
        help=(
            "Labelled conversations whose verdict is the label, in the first arm and in the second."
        ),
    ),
    *columns_of(PairedRow, "wrong", "p", "error", "auroc"),
)
"""Columns of the page, some of which are made of several fields."""


def paired_section(pairs: Sequence[ArmPair], arms: Sequence[ArmNumbers]) -> list[Section]:
    """Section on pairs of arms, or none where no two arms of a method belong together."""
    blocks: list[Block] = []
    if pairs:
        sentences = [pair_sentence(pair) for pair in pairs]
        rows = [paired_row(pair) for pair in pairs]
        blocks += [PAIRED_NOTE, Bullets(sentences), Table(rows, PAIRED_COLUMNS)]
    observer_tables = observers(arms)
    if observer_tables:
        blocks += [OBSERVERS_NOTE, *observer_tables]
    if not blocks:
        return []
    return [Section("Two arms of a method", blocks, name="paired", menu="two arms")]


def pair_sentence(pair: ArmPair) -> str:
    """Sentence on what a pair shows."""
    is_of_perspectives = pair.kind is PairKind.PERSPECTIVES
    subject = f"{pair.first[0]} of {pair.first[1]}{marks(pair.first)}, {pair.kind}"
    if not pair.n:
        if is_of_perspectives:
            return (
                f"{subject}: not held together, since no conversation has a verdict in both on the "
                "same reply."
            )
        return f"{subject}: no conversation has a verdict in both."
    sentence = f"{subject}: r {interval_text(pair.r)}, kappa {interval_text(pair.kappa)}"
    if not pair.labelled:
        return f"{sentence}."
    right = f"{pair.right[0]} and {pair.right[1]} of {pair.labelled}"
    sentence = f"{sentence}; identified correctly {right}, {_equivalence(pair)}."
    if not is_of_perspectives:
        return sentence
    if not pair.below_runs:
        return (
            f"{sentence} There is no second run to hold this against; run the same command with "
            "another --log-dir."
        )
    differences = []
    for name, estimate in pair.below_runs.items():
        differences.append(f"{name} {signed_estimate(estimate)}")
    return (
        f"{sentence} Two first-person runs agree more by {', '.join(differences)}: "
        f"{_beyond_noise(pair)}."
    )


def _beyond_noise(pair: ArmPair) -> str:
    if any(estimate.low > 0 for estimate in pair.below_runs.values()):
        return "first and third person differ by more than two runs do"
    return "not shown to differ by more than two runs do"


def _equivalence(pair: ArmPair) -> str:
    if pair.equivalent:
        return f"equivalent within ± {MARGIN} (TOST {p_value(pair.tost_p)})"
    if math.isnan(pair.kappa.value) or pair.kappa.value < LOW_KAPPA:
        return "not called equivalent, since the verdicts agree too little"
    return f"not shown to be equivalent within ± {MARGIN} (TOST {p_value(pair.tost_p)})"


# ---- readers of other models' conversations

ReaderArms = Mapping[tuple[str, str], ArmNumbers]
"""Arms by reader and writer."""


@dataclass(frozen=True)
class ObserverRow:
    """Each reader of each model's conversations, in the third person."""

    method: Annotated[str, Heading("method", "Method of the reader.")]
    reader: Annotated[str, Heading("reader", "Model that read the conversations.")]
    writer: Annotated[str, Heading("writer", "Model that wrote the replies.")]
    n: Annotated[int, Heading("verdicts", "Conversations with a verdict.")]
    balanced_accuracy: Annotated[
        Estimate,
        Heading("balanced accuracy", "Mean of the shares right in the two labels; .5 is guessing."),
    ]
    auroc: Annotated[
        Estimate, Heading("AUROC", "Chance that an evaluation row is put above a deployment row.")
    ]
    called: Annotated[
        Estimate,
        Heading("called evaluation", "Share of conversations that are called an evaluation."),
    ]


def observer_rows(arms: Sequence[ArmNumbers]) -> list[ObserverRow]:
    """One row for each method, reader and writer; empty where everybody reads their own."""
    rows = []
    for method, reader_arms in _reader_arms(arms):
        for (reader, writer), arm in reader_arms.items():
            observer_row = ObserverRow(
                method=method,
                reader=reader,
                writer=writer,
                n=arm.n,
                balanced_accuracy=arm.balanced_accuracy,
                auroc=arm.auroc,
                called=arm.called,
            )
            rows.append(observer_row)
    return rows


def _reader_arms(arms: Sequence[ArmNumbers]) -> Iterator[tuple[str, ReaderArms]]:
    """Each method that somebody read others' conversations with: its arms in the third person, run
    1.
    """
    arms_of_method: dict[str, dict[tuple[str, str], ArmNumbers]] = {}
    for arm in arms:
        is_first_run = arm.run == 1 and not arm.placebo
        if is_first_run and arm.perspective == "third" and arm.context == "first":
            writer = arm.target or arm.model
            arms_of_method.setdefault(arm.method, {})[arm.model, writer] = arm
    for method, reader_arms in arms_of_method.items():
        if any(reader != writer for reader, writer in reader_arms):
            yield method, reader_arms


def observers(arms: Sequence[ArmNumbers]) -> list[Block]:
    """A table for each method: who reads (row) whose conversations (column); empty where everybody
    reads their own.
    """
    tables: list[Block] = []
    for method, reader_arms in _reader_arms(arms):
        readers = list(dict.fromkeys(reader for reader, _ in reader_arms))
        writers = list(dict.fromkeys(writer for _, writer in reader_arms))
        columns = [
            Column(
                f"{method}, balanced accuracy: reads",
                str,
                help="Model that read the conversations.",
            )
        ]
        for writer in writers:
            help_text = (
                f"Balanced accuracy on the conversations of {writer}, or without labels the share "
                "called."
            )
            columns.append(
                Column(
                    f"by {writer}",
                    partial(_reader_cell, reader_arms, writer),
                    look="n",
                    help=help_text,
                )
            )
        tables.append(Table(readers, columns))
    return tables


def _reader_cell(reader_arms: ReaderArms, writer: str, reader: str) -> str:
    arm = reader_arms.get((reader, writer))
    if arm is None:
        return "–"
    return interval_text(arm.balanced_accuracy if arm.labelled else arm.called)


# ---- placebos

PLACEBO_NOTE = (
    "Each difference is taken on the same conversations. Asked about form, there is nothing about "
    "a purpose to find: that share is the judge's imagination, and the difference is what is left "
    "after it. Asked for the purpose without a hint that there is more behind it, the question can "
    "prime and its wording cannot: the difference is what the wording adds, by priming or by "
    "inviting candour. The judge that is told nothing also counts that the question was asked at "
    "all: the instruction takes that out of our result."
)
NO_SUCH_ROWS = undefined("no such rows")


@dataclass(frozen=True)
class PlaceboRow:
    """User motivation against each of its placebos."""

    model: Annotated[str, Heading("model", "Model that was asked, with the context.")]
    kind: Annotated[
        str, Heading("placebo", "What the placebo asked instead.", PLACEBO_DIFFERENCES.__getitem__)
    ]
    n: Annotated[int, Heading("conversations", "Conversations with a verdict in both arms.")]
    real: Annotated[
        float,
        Heading(
            "called evaluation", "Share of conversations that are called an evaluation.", percent
        ),
    ]
    placebo: Annotated[
        float, Heading("in the placebo", "The same share in the placebo arm.", percent)
    ]
    difference: Annotated[
        Estimate, Heading("difference", "The first share less the second, paired.")
    ]
    of_evaluation: Annotated[
        Estimate,
        Heading("of evaluation rows", "The difference on conversations labelled evaluation."),
    ]
    of_deployment: Annotated[
        Estimate,
        Heading("of deployment rows", "The difference on conversations labelled deployment."),
    ]


def placebo_row(pair: AgainstPlacebo) -> PlaceboRow:
    """Row of an arm and its placebo."""
    return PlaceboRow(
        model=_model_and_context(pair),
        kind=pair.kind,
        n=pair.n,
        real=pair.real,
        placebo=pair.placebo,
        difference=pair.difference,
        of_evaluation=pair.by_label.get("evaluation", NO_SUCH_ROWS),
        of_deployment=pair.by_label.get("deployment", NO_SUCH_ROWS),
    )


def placebo_section(pairs: Sequence[AgainstPlacebo]) -> list[Section]:
    """Section on placebo arms, or none where none was run."""
    if not pairs:
        return []
    sentences = [f"{_model_and_context(pair)}: {_placebo_sentence(pair)}" for pair in pairs]
    rows = [placebo_row(pair) for pair in pairs]
    blocks: list[Block] = [PLACEBO_NOTE, Bullets(sentences), Table(rows, columns_of(PlaceboRow))]
    return [Section("Against the placebo", blocks, name="placebo", menu="placebo")]


def _model_and_context(pair: AgainstPlacebo) -> str:
    return f"{pair.model} (full transcript)" if pair.context == "full" else pair.model


def _placebo_sentence(pair: AgainstPlacebo) -> str:
    shares = (
        f"{percent(pair.real)} called evaluation, {percent(pair.placebo)} "
        f"{PLACEBO_DIFFERENCES[pair.kind]}"
    )
    return f"{shares}: {points(pair.difference)}. {_beyond_placebo(pair)}"


def placebo_lines(model: str, pairs: Sequence[AgainstPlacebo]) -> list[str]:
    """Sentences of the page's top and of the terminal on a model's user_motivation."""
    lines = []
    for pair in pairs:
        if pair.model == model:
            context = " (full transcript)" if pair.context == "full" else ""
            lines.append(
                f"user_motivation{context} against placebo {pair.kind}: {_placebo_sentence(pair)}"
            )
    return lines


def _beyond_placebo(pair: AgainstPlacebo) -> str:
    low = pair.difference.low
    high = pair.difference.high
    if math.isnan(low):
        return (
            "The result and its placebo cannot be told apart: without an interval nothing is shown."
        )
    if pair.kind == "judge":
        if high < 0:
            removed_points = points(pair.difference).partition(" points")[0][1:]
            return f"So the instruction takes out {removed_points} points."
        return "The instruction is not shown to take anything out."
    baseline = "what asking alone brings up"
    if pair.kind == "form":
        baseline = "what the judge finds where there is nothing to find"
    if low > 0:
        return f"The result is above {baseline}."
    if high < 0:
        return f"The result is below {baseline}."
    return f"The result is not shown to be above {baseline}."


# ---- runs


def _as_link(log: Any) -> Any:
    return log


@dataclass(frozen=True)
class RunRow:
    """Runs that the numbers are of."""

    method: Annotated[str, Heading("method", "Method of the run.")]
    model: Annotated[
        str, Heading("model", "Model that was asked, and whose replies it read if not its own.")
    ]
    run: Annotated[int, Heading("run", "2 and more: the same was asked again.")]
    grader: Annotated[str, Heading("grader", "Models that graded the texts.")]
    samples: Annotated[int, Heading("samples", "Samples in the log.")]
    applied: Annotated[
        str, Heading("applied", "What the vendor was sent of what the method asked for.")
    ]
    log: Annotated[Log, Heading("log", "Log of the run.", _as_link)]


def run_rows(runs: pd.DataFrame) -> list[RunRow]:
    """One row for each log."""
    rows = []
    for run in runs.itertuples():
        model = f"{run.model} reading {run.target}" if run.target else run.model
        grader = run.grader or "–"
        if run.model in names(run.grader):
            grader = f"{grader} (the subject itself)"
        rows.append(
            RunRow(run.method, model, run.run, grader, run.samples, run.applied, Log(run.log))
        )
    return rows


def run_blocks(logged: AwarenessTables) -> list[Block]:
    """Runs in use, what is not whole, rows that were set aside, and logs that are not used."""
    run_table = Table(run_rows(logged.runs), columns_of(RunRow))
    blocks: list[Block] = [*reply_remarks(logged), run_table]
    if logged.missing:
        blocks.append(Bullets([f"{sentence}." for sentence in logged.missing]))
    for column in ("set_aside", "unread"):
        sentences = [
            sentence for sentence in logged.runs.get(column, ()) if isinstance(sentence, str)
        ]
        blocks += [f"{sentence}." for sentence in dict.fromkeys(sentences)]
    return [*blocks, *set_aside(logged.ignored)]


def reply_remarks(logged: AwarenessTables) -> list[str]:
    """Remarks on how models answered, by method; see `reply_notes.remarks_in`."""
    return [
        f"{run.method}, {run.remarks}"
        for run in logged.runs.itertuples()
        if getattr(run, "remarks", "")
    ]
