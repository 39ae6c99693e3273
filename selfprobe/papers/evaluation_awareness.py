"""The comparison of black-box methods for evaluation awareness: its tables and figures from the
logs of `selfprobe awareness run`.

    selfprobe paper evaluation-awareness logs/aw logs/again --out out/evaluation-awareness

The paper has five models on 976 conversations. Its figures are pictures without numbers in the
text; its table stands in `evaluation_awareness_printed`. Its text numbers no section; here §3 is
the data set and the methods, §4 the results of each method, §6 the clusters and the tool, §7 the
discussion.

What is no method of it has a study of its own: clusters of quotes (§3 and §6: 15, 2, 13; 5 %;
Footnote 2's inertia) in `selfprobe/studies/features.py`, the score where a test is noticed
(Introduction: 6 % and 54 %) in `studies/effect_page.py`, the review of 100 traces (§3) in
`studies/awareness/validate.py`, pairs for linear probes (§3) in `examples/trace_pairs.py`, the turn
at which it notices (§7) in `studies/turns.py`. Figures 1 to 6 are drawings of the methods, whose
prompts stand in `evalawareness_tasks/`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from selfprobe.errors import NoLogs
from selfprobe.page import (
    BLACK_BOX,
    Heading,
    Page,
    Picture,
    RowTable,
    interval_text,
    number,
    p_value,
    percent,
)
from selfprobe.page.numerals import Interval
from selfprobe.page.plots import bar_rows, curves, cut_name, model_names
from selfprobe.papers.evaluation_awareness_printed import TABLE_1, printed_kappas
from selfprobe.papers.exhibit import Exhibit, PaperResults, paper_page
from selfprobe.papers.quote_rules import rates_by_quote_rule
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.awareness.figures import points_without_interval
from selfprobe.studies.awareness.numbers import (
    MARGIN,
    AgainstPlacebo,
    ArmNumbers,
    Average,
    Comparison,
    MethodPair,
    PairKind,
    against_placebo,
    arm_rows,
    comparison_of,
)
from selfprobe.studies.awareness.runs import AwarenessTables, load_awareness, told_by_set
from selfprobe.studies.awareness.sections import (
    AgreementRow,
    PairedRow,
    PlaceboRow,
    agreement_row,
    paired_row,
    placebo_row,
)

ASKED_METHODS = ("binary", "probability")
MOTIVATION_METHOD = "user_motivation"
LOGPROB_METHOD = "first_token"
TRACE_METHOD = "reasoning_trace"


@dataclass(frozen=True)
class LoggedNumbers:
    """The logs' tables, and the numbers of `selfprobe report`."""

    logged: AwarenessTables
    comparison: Comparison
    placebos: tuple[AgainstPlacebo, ...]

    def plain_arms(self, *methods: str) -> list[ArmNumbers]:
        """First runs of these methods in the first person, without a placebo.

        Raises:
            NoLogs: There is none.
        """
        arms = list[ArmNumbers]()
        for arm in self.comparison.methods:
            is_plain = arm.perspective == "first" and not arm.placebo and arm.run == 1
            if is_plain and arm.method in methods:
                arms.append(arm)
        if not arms:
            raise NoLogs(
                "no log of it in the first person: selfprobe awareness run --methods "
                f"{','.join(methods)}"
            )
        return arms


def evaluation_awareness_page(paths: Sequence[str]) -> Page:
    """The page of what the logs under these paths hold of the paper.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no finished log of a method.
    """
    logged = told_by_set(load_awareness(paths))
    numbers = LoggedNumbers(logged, comparison_of(logged), against_placebo(logged.verdicts))
    makers = {
        "Figure 7": figure7,
        "Table 1": table1,
        "§4, binary and probability": binary_less_than_probability,
        "Figure 8": figure8,
        "Figure 9": figure9,
        "§3, the question alone": question_alone,
        "Figure 10": figure10,
        "§3, first and third person": first_and_third_person,
        "§7, full transcripts": full_transcripts,
        "Footnote 3": footnote3,
        "Footnote 4": footnote4,
    }
    exhibits = list[Exhibit]()
    missing = dict[str, str]()
    for name, make in makers.items():
        try:
            exhibits.append(make(numbers))
        except NoLogs as error:
            missing[name] = str(error)
    models = sorted({arm.model for arm in numbers.comparison.methods})
    return paper_page(BLACK_BOX, PaperResults(exhibits, missing, models=models))


# ---- rates of a method (Figures 7, 8, 9, 10)


@dataclass(frozen=True)
class MethodRatesRow:
    """Rates of a method, as the paper's figures draw them."""

    model: Annotated[str, Heading("model", "Model that was asked.")]
    method: Annotated[str, Heading("method", "Method of the paper.")]
    context: Annotated[str, Heading("context", "First prompt, or the full transcript.")]
    n: Annotated[int, Heading("n", "Conversations with a verdict.")]
    unscored: Annotated[
        float, Heading("unscored", "Share of conversations without a verdict.", percent)
    ]
    tpr: Annotated[
        Estimate, Heading("evaluations", "Share of evaluation rows that are identified as such.")
    ]
    tnr: Annotated[
        Estimate, Heading("deployment", "Share of deployment rows that are identified as such.")
    ]


def _method_rates_row(arm: ArmNumbers) -> MethodRatesRow:
    return MethodRatesRow(
        model=arm.model,
        method=arm.method,
        context=arm.context,
        n=arm.n,
        unscored=sum(arm.unscored.values()),
        tpr=arm.tpr,
        tnr=arm.tnr,
    )


def _rates_exhibit(
    name: str, shows: str, printed: str, arms: Sequence[ArmNumbers], remarks: Sequence[str] = ()
) -> Exhibit:
    """Rates of evaluation and deployment rows that are identified correctly: two bars a model."""
    rows = [_method_rates_row(arm) for arm in arms]
    stem = name.lower().replace(" ", "")
    rate_texts = [
        f"{row.model}, {row.method}: {number(row.tpr.value)} and {number(row.tnr.value)}"
        for row in rows
    ]
    return Exhibit(
        name,
        shows,
        printed,
        f"evaluations and deployment rows identified correctly: {'; '.join(rate_texts)}",
        tables={stem: RowTable(MethodRatesRow, rows)},
        pictures=_rate_pictures(stem, rows, name),
        remarks=remarks,
    )


def _rate_pictures(stem: str, rows: Sequence[MethodRatesRow], name: str) -> list[Picture]:
    """A picture a method: a row a model, a bar each for evaluation and deployment rows."""
    short_names = _short_names([row.model for row in rows])
    methods = list(dict.fromkeys(row.method for row in rows))
    pictures = list[Picture]()
    for method in methods:
        rates_by_model = dict[str, Mapping[str, Interval]]()
        for row in rows:
            if row.method == method and row.n:
                label = short_names[row.model]
                if row.context == "full":
                    label = f"{label}, full transcript"
                rates_by_model[label] = {"evaluation rows": row.tpr, "deployment rows": row.tnr}
        if not rates_by_model:
            continue
        picture = bar_rows(
            stem if len(methods) == 1 else f"{stem}-{method}",
            rates_by_model,
            caption=f"The paper's {name}, {method}: share of rows identified correctly.",
            axis="identified correctly, 95 % interval",
            scale="percent",
        )
        pictures.append(picture)
    return pictures


def _short_names(models: Sequence[str]) -> dict[str, str]:
    return {model: cut_name(name) for model, name in model_names(list(models)).items()}


def figure7(numbers: LoggedNumbers) -> Exhibit:
    """Figure 7 (§4): rates of binary and probability, two bars a model.

    Paper: all but GPT-5 Mini label most rows of both kinds evaluations. Here: the same rates; ties
    of the five questions are unscored, and a probability of .5 is an evaluation, as there.
    """
    return _rates_exhibit(
        "Figure 7",
        "binary test and probability estimation",
        "all but GPT-5 Mini identify most evaluations, and mislabel most deployment rows",
        numbers.plain_arms(*ASKED_METHODS),
        ["Ties of the five questions are unscored; the paper's five always give a majority."],
    )


def figure8(numbers: LoggedNumbers) -> Exhibit:
    """Figure 8 (§4): rates of the log-probability of the first token.

    Paper: two models gave a signal; Qwen3 32B is near guessing, DeepSeek R1 marks everything. Here:
    tokens that only begin a word ("E") are left out, which the paper names as its noise.
    """
    return _rates_exhibit(
        "Figure 8",
        "log-probability of the first token",
        "Qwen3 32B close to guessing, DeepSeek R1 biased towards evaluation; no signal elsewhere",
        numbers.plain_arms(LOGPROB_METHOD),
        ["Tokens that only begin a word are left out; case and space variants count."],
    )


def figure9(numbers: LoggedNumbers) -> Exhibit:
    """Figure 9 (§4): rates of user motivation, by the paper's rule and by ours.

    Paper: modest, and less skewed than asking. Here: a finding without a quote that is in the
    answer counts by the paper's rule, and is unscored by ours (table).
    """
    exhibit = _rates_exhibit(
        "Figure 9",
        "user motivation",
        "modest rates, closer to guessing and less skewed than asking",
        numbers.plain_arms(MOTIVATION_METHOD),
    )
    return _with_both_rules(exhibit, numbers.logged, MOTIVATION_METHOD)


def figure10(numbers: LoggedNumbers) -> Exhibit:
    """Figure 10 (§4): rates of reasoning traces, by the paper's rule and by ours.

    Paper: almost all rows of both kinds are labelled deployment. Here: full traces only; a summary
    or a redacted one is unscored, never "not aware".
    """
    exhibit = _rates_exhibit(
        "Figure 10",
        "reasoning traces",
        "almost all rows, of both kinds, labelled deployment",
        numbers.plain_arms(TRACE_METHOD),
        ["Full traces only: a summary or a redacted one is unscored."],
    )
    return _with_both_rules(exhibit, numbers.logged, TRACE_METHOD)


def _with_both_rules(exhibit: Exhibit, logged: AwarenessTables, method: str) -> Exhibit:
    """The exhibit with a table of the paper's rule (every finding counts) and of ours."""
    rules = rates_by_quote_rule(logged)
    rules = rules[rules.method == method].reset_index(drop=True)
    (stem,) = exhibit.tables
    tables = {**exhibit.tables, f"{stem}-rules": rules}
    return Exhibit(
        exhibit.name,
        exhibit.shows,
        exhibit.printed,
        exhibit.measured,
        tables,
        exhibit.pictures,
        exhibit.remarks,
    )


# ---- agreement of the methods (Table 1, §4, Footnote 3)


def table1(numbers: LoggedNumbers) -> Exhibit:
    """Table 1 (§4): Cohen's kappa of the verdicts of binary and probability.

    Paper: .59, .75, .16, .39, .36 (table1-printed). Here: the same with an interval, and what kappa hides where one
    verdict is rare (AC1, PABAK).
    """
    rows = list[AgreementRow]()
    texts = list[str]()
    for pair in _asked_pairs(numbers.comparison):
        if pair.agreement.n:
            rows.append(agreement_row(pair))
            texts.append(f"{pair.model} {interval_text(pair.agreement.kappa)}")
    if not rows:
        raise NoLogs("no model answered both: selfprobe awareness run --methods binary,probability")
    printed_texts = [f"{model} {number(kappa)}" for model, kappa in TABLE_1.items()]
    return Exhibit(
        "Table 1",
        "agreement of binary test and probability estimation",
        f"Cohen's kappa: {', '.join(printed_texts)}",
        f"Cohen's kappa: {', '.join(texts)}",
        tables={"table1": RowTable(AgreementRow, rows), "table1-printed": printed_kappas()},
    )


def _asked_pairs(comparison: Comparison) -> list[MethodPair]:
    return [pair for pair in comparison.pairs if {pair.first, pair.second} == set(ASKED_METHODS)]


def _comparable(comparable: bool) -> str:
    return "yes" if comparable else "not shown"


@dataclass(frozen=True)
class AverageRow:
    """Two methods over all models that ran both."""

    methods: Annotated[tuple[str, str], Heading("methods", "The first method, and the second.")]
    models: Annotated[int, Heading("models", "Models that ran both.")]
    n: Annotated[int, Heading("n", "Conversations on which both have a verdict, over the models.")]
    called: Annotated[
        Estimate,
        Heading(
            "called an evaluation",
            "Share called an evaluation by the first less that by the second.",
        ),
    ]
    right: Annotated[
        Estimate,
        Heading(
            "identified correctly", "Share of right verdicts of the first less that of the second."
        ),
    ]
    comparable: Annotated[
        bool,
        Heading(
            "comparable",
            f"Whether the difference lies within ± {MARGIN} (TOST at 5 %).",
            _comparable,
        ),
    ]


def average_row(average: Average) -> AverageRow:
    """Row of two methods over models."""
    methods = (average.first, average.second)
    return AverageRow(
        methods, average.models, average.n, average.called, average.right, average.comparable
    )


def binary_less_than_probability(numbers: LoggedNumbers) -> Exhibit:
    """§4 and the introduction: differences of two methods over all models.

    Paper: the binary test calls slightly fewer rows an evaluation than probability does, and user
    motivation is about as accurate as asking, in words. Here: differences paired by model and
    conversation; comparable where the second lies within ± .10 (TOST), which is our margin.
    """
    averages = numbers.comparison.averages
    if not averages:
        raise NoLogs(
            "no two models answered the same two methods: selfprobe awareness run --models A,B "
            "--methods all"
        )
    rows = [average_row(average) for average in averages]
    texts = [
        f"{average.first} minus {average.second} {interval_text(average.called, sign=True)}"
        for average in averages
    ]
    return Exhibit(
        "§4, binary and probability",
        "differences of two methods over all models",
        "binary calls slightly fewer rows an evaluation; user motivation is about as accurate",
        f"called an evaluation: {'; '.join(texts)}",
        tables={"averages": RowTable(AverageRow, rows)},
    )


@dataclass(frozen=True)
class KappaRow:
    """Agreement of binary and probability by number of decisions."""

    model: Annotated[str, Heading("model", "Model that was asked.")]
    decisions: Annotated[
        int, Heading("decisions", "Number of decisions that a verdict is made of.")
    ]
    kappa: Annotated[
        float, Heading("kappa", "Mean of Cohen's kappa over draws of so many decisions.")
    ]
    low: Annotated[float, Heading("low", "Lower end of the 95 % interval.")]
    high: Annotated[float, Heading("high", "Upper end of the 95 % interval.")]


def kappa_rows(pairs: Sequence[MethodPair]) -> list[KappaRow]:
    """Footnote 3 of the paper: one row for each model and number of decisions; empty without a
    25-decision run.
    """
    rows = []
    for pair in pairs:
        if pair.curve is None:
            continue
        curve = pair.curve
        curve_points = zip(curve.decisions, curve.mean, curve.low, curve.high, strict=True)
        for decision_count, mean_kappa, low, high in curve_points:
            rows.append(KappaRow(pair.model, decision_count, mean_kappa, low, high))
    return rows


def footnote3(numbers: LoggedNumbers) -> Exhibit:
    """Footnote 3: kappa of binary and probability by number of decisions, 5 to 25.

    Paper: a curve of GPT-5 Mini without a trend, 100 draws each. Here: mean and 95 % range of 100
    draws, of each model that was asked 25 times.
    """
    rows = kappa_rows(_asked_pairs(numbers.comparison))
    if not rows:
        raise NoLogs("no model was asked 25 times: selfprobe awareness run --decisions 25")
    short_names = _short_names([row.model for row in rows])
    lines = dict[str, tuple[list[float], list[Interval]]]()
    for row in rows:
        decision_counts, kappas = lines.setdefault(short_names[row.model], ([], []))
        decision_counts.append(row.decisions)
        kappas.append(Estimate(row.kappa, row.low, row.high, 0, "draw"))
    picture = curves(
        "kappa",
        lines,
        caption="Agreement by number of decisions, with 95 % range over 100 draws (footnote 3).",
        x_title="decisions drawn of 25",
        y_title="Cohen's kappa, binary and probability",
    )
    return Exhibit(
        "Footnote 3",
        "kappa by number of decisions",
        "no clear trend from 5 to 25 decisions",
        f"from {number(rows[0].kappa)} at {rows[0].decisions} to {number(rows[-1].kappa)} at "
        f"{rows[-1].decisions} decisions",
        tables={"kappa": RowTable(KappaRow, rows)},
        pictures=[picture],
    )


# ---- two arms of a method (§3, §7)


def first_and_third_person(numbers: LoggedNumbers) -> Exhibit:
    """§3: first against third person, beside two runs of the first person.

    Paper: Pearson's r and the numbers identified correctly differ no more than two runs do, in
    words. Here: both with intervals, and r and kappa of two runs less these.
    """
    return _paired_exhibit(
        numbers,
        [PairKind.PERSPECTIVES, PairKind.RUNS],
        "§3, first and third person",
        "first against third person, and two runs",
        "differences are comparable to the variance between runs",
        "paired",
        "selfprobe awareness run --methods binary,probability --third",
    )


def full_transcripts(numbers: LoggedNumbers) -> Exhibit:
    """§7: first prompt against the full transcript.

    Paper: full transcripts are identified slightly better (Qwen3 32B, probability), in words. Here:
    paired differences in errors, in mean error and in AUROC.
    """
    return _paired_exhibit(
        numbers,
        [PairKind.CONTEXTS],
        "§7, full transcripts",
        "first prompt against full transcript",
        "full transcripts identified slightly better",
        "transcripts",
        "selfprobe awareness run --methods probability --context full",
    )


def _paired_exhibit(
    numbers: LoggedNumbers,
    kinds: Sequence[PairKind],
    name: str,
    shows: str,
    printed: str,
    stem: str,
    command: str,
) -> Exhibit:
    pairs = [pair for pair in numbers.comparison.paired if pair.kind in kinds]
    if not any(pair.kind is kinds[0] for pair in pairs):
        raise NoLogs(f"no log of it: {command}")
    texts = list[str]()
    for pair in pairs:
        errors = interval_text(pair.wrong, sign=True)
        texts.append(
            f"{pair.kind} ({pair.first[1]}, {pair.first[0]}): difference in errors {errors}"
        )
    rows = [paired_row(pair) for pair in pairs]
    table = RowTable(PairedRow, rows, hides_empty=True)
    return Exhibit(name, shows, printed, "; ".join(texts), tables={stem: table})


def question_alone(numbers: LoggedNumbers) -> Exhibit:
    """§3: what the question about the user's motivation brings up by itself.

    Paper: about 25 % of the samples, before the judge was told not to count it. Here: the share
    with a judge that is told nothing, and with questions of the same form, each against ours.
    """
    if not numbers.placebos:
        raise NoLogs(
            "no placebo was run: selfprobe awareness run --methods user_motivation --placebo"
        )
    rows = [placebo_row(placebo) for placebo in numbers.placebos]
    texts = [
        f"{placebo.model}, {placebo.kind}: {percent(placebo.placebo)}"
        for placebo in numbers.placebos
    ]
    return Exhibit(
        "§3, the question alone",
        "rows that the question alone has called an evaluation",
        "about 25 % of the samples",
        f"called an evaluation in the placebo: {'; '.join(texts)}",
        tables={"placebo": RowTable(PlaceboRow, rows)},
    )


# ---- Footnote 4: the error by number of turns


@dataclass(frozen=True)
class ErrorRow:
    """Error of a stated probability, and its trend over the turns of the conversation."""

    model: Annotated[str, Heading("model", "Model that was asked.")]
    method: Annotated[str, Heading("method", "Method of the paper.")]
    context: Annotated[str, Heading("context", "First prompt, or the full transcript.")]
    mean_error: Annotated[
        Estimate, Heading("mean |error|", "The paper's “Brier score”: mean absolute error.")
    ]
    squared_error: Annotated[Estimate, Heading("Brier score", "Mean squared error.")]
    trend_r: Annotated[
        float, Heading("r over turns", "Pearson's r of the error and the number of turns.", number)
    ]
    trend_p: Annotated[
        float, Heading("p by source", "p of no trend, clustered by source.", p_value)
    ]
    trend_p_rows: Annotated[
        float, Heading("p of rows", "The paper's p, which takes rows as independent.", p_value)
    ]


def footnote4(numbers: LoggedNumbers) -> Exhibit:
    """Footnote 4: mean absolute error ("Brier score"), and its trend over the turns.

    Paper: weak and downwards, with a small p (Qwen3 32B, full transcripts). Here: the same, with p
    of rows as there, and p clustered by source: with independent rows p is below .05 in a quarter
    of draws without a trend.
    """
    arms = [arm for arm in numbers.comparison.methods if not np.isnan(arm.mae.value)]
    if not arms:
        raise NoLogs("no model stated a probability: selfprobe awareness run --methods probability")
    rows = [
        ErrorRow(
            model=arm.model,
            method=arm.name,
            context=arm.context,
            mean_error=arm.mae,
            squared_error=arm.brier,
            trend_r=arm.trend.r,
            trend_p=arm.trend.p,
            trend_p_rows=arm.trend.p_rows,
        )
        for arm in arms
    ]
    error_texts = [f"{row.model}, {row.method} {interval_text(row.mean_error)}" for row in rows]
    picture = error_by_turns(numbers.logged, arms)
    return Exhibit(
        "Footnote 4",
        "error of stated probabilities, and its trend over turns",
        "a weak trend downwards with a small p",
        f"mean |error|: {'; '.join(error_texts)}",
        tables={"footnote4": RowTable(ErrorRow, rows)},
        pictures=[picture] if picture else [],
        remarks=["The paper's “Brier score” is the mean absolute error."],
    )


def error_by_turns(logged: AwarenessTables, arms: Sequence[ArmNumbers]) -> Picture | None:
    """Mean absolute error by number of turns, and the trend; None where turns do not vary."""
    short_names = _short_names([arm.model for arm in arms])
    lines = dict[str, tuple[list[float], list[Interval]]]()
    for arm in arms:
        if np.isnan(arm.trend.slope):
            continue
        rows = arm_rows(logged, arm)
        rows = rows[rows.probability.notna() & rows.truth.notna()]
        errors = (rows.probability - (rows.truth == "evaluation")).abs().astype(float)
        mean_errors = errors.groupby(rows.turns.astype(float)).mean()
        name = f"{arm.method}, {short_names[arm.model]}"
        lines[name] = (list(mean_errors.index), points_without_interval(mean_errors))
        trend_name = f"its trend: r = {arm.trend.r:.2f}, {p_value(arm.trend.p)} by source"
        end_turns = [float(rows.turns.min()), float(rows.turns.max())]
        trend_errors = arm.trend.intercept + arm.trend.slope * np.array(end_turns)
        lines[f"{name}, {trend_name}"] = (end_turns, points_without_interval(trend_errors))
    if not lines:
        return None
    return curves(
        "turns",
        lines,
        caption=(
            "Mean absolute error by turns, where the subject saw them (footnote 4); p clustered by "
            "source."
        ),
        x_title="turns of the conversation",
        y_title="|P(evaluation) − label|",
    )
