"""The preference tasks' logs: does each model prefer the better of two texts, by each way of
asking?
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from markupsafe import Markup

from selfprobe.logs import Runs
from selfprobe.page import (
    PROBES,
    Block,
    Bullets,
    Heading,
    Page,
    Picture,
    RowTable,
    Table,
    claim_page,
    more_in_tables,
    number,
    percent,
    percent_interval,
)
from selfprobe.page.claims import ClaimWords
from selfprobe.page.columns import columns_of
from selfprobe.page.numerals import points
from selfprobe.page.plots import cut_name, interval_rows, model_names
from selfprobe.stats.claim import (
    Check,
    Claim,
    Outcome,
    Verdict,
    above_zero_check,
    ordered_claims,
    outcome_above_zero,
    outcome_if,
    remedy_unless_met,
)
from selfprobe.stats.estimate import Estimate, shifted, undefined
from selfprobe.studies.preferences.judged import (
    GUESSING,
    JudgedRun,
    TextBaseline,
    TextReader,
    judged_run,
    judged_runs_of,
)
from selfprobe.study import Logs, Study
from selfprobe.study.preference_logs import PREFERENCE_TASKS, SINGLE_TEXT_TASKS
from selfprobe.text.counts import count_text

RUNS_SHOWN = 6
"""Largest number of runs in picture and table."""
SMALLEST_JUDGE_ADVANTAGE = 0.05
"""Smallest advantage over guessing, or over a reader of the texts, that matters."""
RUNS_ARE_NOT_CORRECTED = (
    "A tie counts half. Runs are not corrected for their number: of twenty that guess, one is above "
    "or below by chance."
)
PREFERENCE_METHOD = (
    "A tie counts half in accuracy, and as a miss in weighted F1. AUROC ranks by how much a model "
    "prefers the first text. Position bias is how far the share of choices of the first place is "
    "from one half, over both orders; consistent is the share of pairs whose two orders prefer the "
    "same text. A run chooses by place where the whole interval of its share of choices of one "
    "place is above 75 %: at least half of the pairs are then decided so. Three readers see the texts "
    "and no question: length alone takes the longer text, or the shorter where that is right more "
    "often; words alone is TF-IDF and logistic regression, with the one, two and four words that "
    "tell most beside it; style alone goes by length, layout, capitals, punctuation, repeated words "
    "and alphabetical order. Each learns from the pairs of other "
    "questions. What is beyond a reader is the judge's advantage over guessing among pairs on which "
    "the reader says the same, as far as a line tells; a Yes takes its whole interval above 0. "
    "Intervals resample questions, since pairs of one question are alike. Probes of a model's "
    "states are a page of their own: selfprobe probe run."
)


class Preferences(Study):
    """Does each model prefer the better of two texts? The runs are those of `inspect eval`."""

    reads: ClassVar[frozenset[str]] = frozenset(PREFERENCE_TASKS)

    @classmethod
    def comparable(cls, logged_runs: Runs) -> Runs:
        """The runs that the tasks' own scorer scored."""
        foreign_runs = [run for run in logged_runs.finished if not judged_run(run).metrics]
        own_runs = [run for run in logged_runs.counted if run not in foreign_runs]
        reason = "it holds none of the numbers of a preference task: another scorer scored it"
        reason_by_log = {run.log: reason for run in foreign_runs}
        return Runs(own_runs, logged_runs.set_aside_reasons | reason_by_log)

    @classmethod
    def numbers(cls, logs: Logs) -> list[JudgedRun]:
        """Numbers of each run, and of readers of the texts on the same pairs."""
        return judged_runs_of(logs)

    @classmethod
    def page(cls, judged_runs: Sequence[JudgedRun]) -> Page:
        """The answer, and each run's numbers, with tables scores and metrics."""
        return preference_page(judged_runs)


# ---- the claim


def _accuracy_text(advantage: Estimate) -> str:
    """The accuracy that an advantage over guessing stands for, with its interval."""
    return percent_interval(shifted(advantage, GUESSING))


def _share_text(share: Estimate) -> str:
    return share.reason if math.isnan(share.value) else percent_interval(share)


def _points_text(advantage: Estimate) -> str:
    return advantage.reason if math.isnan(advantage.value) else points(advantage)


READER_CHECKS = {
    TextReader.LENGTH: "beyond_length",
    TextReader.WORDS: "beyond_words",
    TextReader.STYLE: "beyond_style",
}
READER_REMEDIES = {
    TextReader.LENGTH: "add pairs, or pairs of texts about as long",
    TextReader.WORDS: "add pairs, or pairs of texts in like words",
    TextReader.STYLE: "add pairs, or pairs of texts in like layout",
}
_NOT_BEYOND_READER = "prefers the better text in {effect} of pairs, which {competitor} may explain"
PREFERENCE_WORDS = ClaimWords(
    yes="prefers the better text in {effect} of pairs, asked by {task}; {readers}",
    no="prefers the better text in {effect} of pairs, at most {smallest} above guessing",
    explained="prefers the better text in {effect} of pairs, explained by {competitor}",
    checks={
        "verdicts": "given to verdicts",
        "by_preference": "choosing by more than place",
        "above_guessing": "above guessing",
        "unscored": "above guessing whatever the pairs without a verdict are",
        "beyond_length": "above guessing by more than length",
        "beyond_words": "above guessing by more than words",
        "beyond_style": "above guessing by more than style",
    },
    unmet={
        "verdicts": "has a verdict on no pair",
        "by_preference": "{by_place}",
        "above_guessing": "prefers the better text in {effect} of pairs, and guessing gets 50 %",
        "unscored": "prefers the better text in {effect} of pairs, and {unscored} have no verdict",
        "beyond_length": _NOT_BEYOND_READER,
        "beyond_words": _NOT_BEYOND_READER,
        "beyond_style": _NOT_BEYOND_READER,
    },
    units={
        "verdicts": _share_text,
        "by_preference": _share_text,
        "beyond_length": _points_text,
        "beyond_words": _points_text,
        "beyond_style": _points_text,
    },
    write=_accuracy_text,
    kind="runs",
)


def preference_claim(run: JudgedRun, subject: str) -> Claim:
    """The claim that a model prefers the better of two texts.

    Args:
        run: Numbers of its run.
        subject: Name of the run on the page.
    """
    advantage = run.advantage
    has_verdicts = not math.isnan(advantage.value)
    is_above = outcome_above_zero(advantage, smallest=SMALLEST_JUDGE_ADVANTAGE)
    is_above_at_worst = run.worst_advantage.low > 0 or run.is_scored_whole
    guessing = f"guessing: {percent(GUESSING)}"
    checks = [
        _check(
            "verdicts",
            run.scored_share,
            outcome_if(has_verdicts),
            remedy="the column unscored says why",
        ),
        _place_check(run, is_above_guessing=is_above is Outcome.HOLDS),
        _check("above_guessing", advantage, is_above, compared_with=guessing, remedy="add pairs"),
        _check(
            "unscored",
            run.worst_advantage,
            outcome_if(is_above_at_worst),
            compared_with=guessing,
            remedy="ask again for those",
        ),
    ]
    checks += [_reader_check(reader, run.baselines.get(reader)) for reader in TextReader]
    reader_texts = [
        f"{reader.value} gets {percent(_reader_accuracy(run, reader).value)}"
        for reader in TextReader
    ]
    details = {
        "task": run.task,
        "by_place": run.place_sentence or _unknown_place_text(run),
        "unscored": percent(run.metrics.get("unscored")),
        "readers": ", ".join(reader_texts),
    }
    return Claim(subject, advantage, tuple(checks), SMALLEST_JUDGE_ADVANTAGE, details)


def _check(
    name: str, difference: Estimate, outcome: Outcome, *, compared_with: str = "", remedy: str
) -> Check:
    """A requirement, with its remedy where it does not hold."""
    shown_remedy = remedy_unless_met(outcome, remedy)
    return Check(name, difference, outcome, compared_with, remedy=shown_remedy)


def _unknown_place_text(run: JudgedRun) -> str:
    if math.isnan(run.place_share.value):
        return "was asked in one order alone"
    return (
        f"was asked {count_text(run.place_share.n, 'question')}, too few to tell choices by place"
    )


def _place_check(run: JudgedRun, *, is_above_guessing: bool) -> Check:
    """The requirement that choices go by more than the place in which a text stands.

    A run that was asked in both orders and is above guessing all the same meets it: of pairs that
    the place alone decides, each order prefers another text.
    """
    share = run.place_share
    is_open = not run.has_no_place and math.isnan(share.low)
    remedy = "ask in both orders"
    if not math.isnan(share.value):
        remedy = "add pairs of other questions"
    elif run.probe_orders:
        remedy = "fit the probe to both orders"
    if run.place is not None and not is_above_guessing:
        is_open = True
        remedy = f"score each text alone ({', '.join(SINGLE_TEXT_TASKS)})"
    outcome = Outcome.OPEN if is_open else Outcome.HOLDS
    return _check("by_preference", share, outcome, remedy=remedy)


def _reader_check(reader: TextReader, baseline: TextBaseline | None) -> Check:
    """The requirement that a judge is above guessing by more than a reader of the texts alone
    tells, which explains it if nothing is left.
    """
    name = READER_CHECKS[reader]
    if baseline is None:
        no_number = undefined("no pair has a verdict", unit="question")
        return Check(name, no_number, Outcome.OPEN, reader.value, remedy="add pairs")
    has_accuracy = not math.isnan(baseline.accuracy.value)
    accuracy_text = f"{reader.value}: {percent_interval(baseline.accuracy)}"
    return above_zero_check(
        name,
        baseline.beyond,
        smallest=SMALLEST_JUDGE_ADVANTAGE,
        compared_with=accuracy_text if has_accuracy else reader.value,
        explains=True,
        remedy=READER_REMEDIES[reader],
    )


# ---- what the page shows


def _breakable_name(name: str) -> Markup:
    """A task's name that may break after an underscore, where a screen is narrow."""
    return Markup("_<wbr>").join(name.split("_"))


@dataclass(frozen=True)
class PreferenceAnswer:
    """Answer for one run."""

    model: Annotated[str, Heading("model", "Model that judged.")]
    method: Annotated[
        str,
        Heading(
            "method", "Task, its settings, and the data where runs differ in them.", _breakable_name
        ),
    ]
    answer: Annotated[Verdict, Heading("answer", "Whether it prefers the better of two texts.")]
    accuracy: Annotated[
        float, Heading("accuracy", "Share of pairs whose better text it prefers.", percent)
    ]


@dataclass(frozen=True)
class ScoreRow:
    """Scores of each run"""

    dataset: Annotated[str, Heading("data", "Data set of the pairs.")]
    method: Annotated[
        str, Heading("method", "Task, and its settings where they are not the usual ones.")
    ]
    model: Annotated[str, Heading("model", "Model that judged.")]
    accuracy: Annotated[
        Estimate, Heading("accuracy", "Share of pairs whose better text it prefers; a tie is half.")
    ]
    f1: Annotated[Estimate, Heading("weighted F1", "F1 weighted by label; a tie is a miss.")]
    auroc: Annotated[Estimate, Heading("AUROC", "Ranking by how much the first text is preferred.")]
    tie_rate: Annotated[Estimate, Heading("ties", "Share of pairs without a preference.")]
    consistency: Annotated[
        Estimate, Heading("consistent", "Share of pairs whose two orders prefer the same text.")
    ]
    position_bias: Annotated[
        float,
        Heading(
            "position bias",
            "Distance of the share of choices of the first place from one half.",
            number,
        ),
    ]
    length_alone: Annotated[
        Estimate, Heading("length alone", "Share of the same pairs that a reader of length gets.")
    ]
    words_alone: Annotated[
        Estimate, Heading("words alone", "Share of the same pairs that a reader of words gets.")
    ]
    style_alone: Annotated[
        Estimate, Heading("style alone", "Share of the same pairs that a reader of style gets.")
    ]
    unscored: Annotated[float, Heading("unscored", "Share of pairs without a verdict.", percent)]
    pairs: Annotated[int, Heading("pairs", "Number of pairs.")]
    log: Annotated[str, Heading("log", "Log of the run.", on_page=False)]


@dataclass(frozen=True)
class MetricRow:
    """Every metric of the logs."""

    dataset: Annotated[str, Heading("data", "Data set of the pairs.")]
    method: Annotated[
        str, Heading("method", "Task, and its settings where they are not the usual ones.")
    ]
    model: Annotated[str, Heading("model", "Model that judged.")]
    metric: Annotated[str, Heading("metric", "Name of the metric in the log.")]
    value: Annotated[float, Heading("value", "The metric as the log has it.")]


def score_row(run: JudgedRun) -> ScoreRow:
    """The main numbers of a run."""
    return ScoreRow(
        dataset=run.dataset,
        method=run.method,
        model=run.model,
        accuracy=run.accuracy,
        f1=run.estimate("f1"),
        auroc=run.estimate("auroc"),
        tie_rate=run.estimate("tie_rate"),
        consistency=run.estimate("consistency"),
        position_bias=run.metrics.get("position_bias", math.nan),
        length_alone=_reader_accuracy(run, TextReader.LENGTH),
        words_alone=_reader_accuracy(run, TextReader.WORDS),
        style_alone=_reader_accuracy(run, TextReader.STYLE),
        unscored=run.metrics.get("unscored", math.nan),
        pairs=run.pair_count,
        log=run.log,
    )


def _reader_accuracy(run: JudgedRun, reader: TextReader) -> Estimate:
    baseline = run.baselines.get(reader)
    return baseline.accuracy if baseline else undefined("no pair has a verdict", unit="question")


def metric_rows(run: JudgedRun) -> list[MetricRow]:
    """One row for each metric of a run."""
    return [
        MetricRow(run.dataset, run.method, run.model, name, value)
        for name, value in run.metrics.items()
    ]


def run_names(judged_runs: Sequence[JudgedRun]) -> dict[str, JudgedRun]:
    """Shortest name of each run that distinguishes it from the others → the run."""
    short_models = model_names(sorted({run.model for run in judged_runs}))
    methods_differ = len({run.method for run in judged_runs}) > 1
    datasets_differ = len({run.dataset for run in judged_runs}) > 1
    run_of_name: dict[str, JudgedRun] = {}
    for run in judged_runs:
        parts = [cut_name(short_models[run.model])]
        if methods_differ:
            parts.append(run.method)
        if datasets_differ:
            parts.append(run.dataset)
        name = ", ".join(parts).replace(" ", "\N{NO-BREAK SPACE}")
        if name in run_of_name:
            name = f"{name} ({len(run_of_name) + 1})"
        run_of_name[name] = run
    return run_of_name


def preference_page(judged_runs: Sequence[JudgedRun]) -> Page:
    """The page of preference runs."""
    best_first = sorted(judged_runs, key=_by_accuracy)
    run_of_name = run_names(best_first)
    claims = ordered_claims([preference_claim(run, name) for name, run in run_of_name.items()])
    shown_claims = claims[:RUNS_SHOWN]
    hidden_count = len(claims) - len(shown_claims)
    answer_rows = [answer_row(claim, run_of_name) for claim in shown_claims]

    table_order = sorted(judged_runs, key=lambda run: (run.method, run.model, run.dataset))
    all_metrics: list[MetricRow] = []
    for run in table_order:
        all_metrics += metric_rows(run)

    lines: list[str] = []
    for claim in claims:
        lines += terminal_lines(claim, run_of_name[claim.subject])
    return claim_page(
        "Do these models prefer the better of two texts?",
        claims,
        PREFERENCE_WORDS,
        picture=preference_picture(shown_claims, run_of_name, hidden_count),
        table=Table(answer_rows, columns_of(PreferenceAnswer)),
        tables={
            "scores": RowTable(ScoreRow, [score_row(run) for run in table_order]),
            "metrics": RowTable(MetricRow, all_metrics, on_page=False),
        },
        method=[
            RUNS_ARE_NOT_CORRECTED,
            PREFERENCE_METHOD,
            Markup("The data sets and ways of asking are those of {}.").format(PROBES),
        ],
        notes={name: run_notes(run) for name, run in run_of_name.items()},
        terminal_lines=lines,
    )


def _by_accuracy(run: JudgedRun) -> tuple[bool, float, str, str]:
    accuracy = run.accuracy.value
    return math.isnan(accuracy), -accuracy, run.method, run.model


def run_lines(name: str, run: JudgedRun) -> list[str]:
    """Lines of the terminal on what makes a run's numbers doubtful."""
    doubts = []
    if run.place_sentence:
        doubts.append(f"{name} {run.place_sentence}.")
    if run.few_questions:
        doubts.append(f"{name}: accuracy {percent_interval(run.accuracy)}{run.few_questions}.")
    return doubts


def terminal_lines(claim: Claim, run: JudgedRun) -> list[str]:
    """What makes a run's numbers doubtful, without what its sentence says already."""
    doubts = run_lines(claim.subject, run)
    unmet_check = claim.first_unmet_check
    is_in_sentence = unmet_check is not None and unmet_check.name == "by_preference"
    return doubts[1:] if is_in_sentence and run.place_sentence else doubts


def run_notes(run: JudgedRun) -> list[Block]:
    """What stands under the checks of a run."""
    lines = run_lines(f"{run.method}, {run.model} on {run.dataset}", run)
    return [Bullets(lines)] if lines else []


def answer_row(claim: Claim, run_of_name: Mapping[str, JudgedRun]) -> PreferenceAnswer:
    """Row of the first table."""
    run = run_of_name[claim.subject]
    datasets = {run.dataset for run in run_of_name.values()}
    models = {run.model for run in run_of_name.values()}
    method = f"{run.method} on {run.dataset}" if len(datasets) > 1 else run.method
    short_model = model_names(sorted(models))[run.model]
    return PreferenceAnswer(short_model, method, claim.verdict, run.accuracy.value)


def preference_picture(
    claims: Sequence[Claim], run_of_name: Mapping[str, JudgedRun], hidden_count: int
) -> Picture:
    """Accuracy of each run with its interval."""
    rows = {claim.subject: {"accuracy": run_of_name[claim.subject].accuracy} for claim in claims}
    place_sentences = [
        f" {name} {run.place_sentence}."
        for name, run in run_of_name.items()
        if run.place_sentence and name in rows
    ]
    caption = f"95 % intervals.{more_in_tables(hidden_count)}{''.join(place_sentences)}"
    return interval_rows(
        "preferred",
        rows,
        caption=caption,
        axis="pairs judged right",
        scale="percent",
        line=GUESSING,
    )
