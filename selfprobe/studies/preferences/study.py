"""The preference tasks' logs: does each model prefer the better of two texts, by each way of
asking?
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, ClassVar

from inspect_ai.log import EvalLog
from markupsafe import Markup

from selfprobe.data.public_pairs import PairSet, name_and_place
from selfprobe.logs import Run, Runs, runs
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
    percents,
)
from selfprobe.page.claims import ClaimWords
from selfprobe.page.columns import columns_of
from selfprobe.page.plots import cut_name, interval_rows, model_names
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.preference import VERDICT
from selfprobe.stats.claim import Check, Claim, Outcome, Verdict, ordered_claims, outcome_above_zero
from selfprobe.stats.estimate import FEW, Estimate, undefined
from selfprobe.study import Logs, Study

TASKS = ("pairwise_preference", "direct_scoring", "g_eval", "preference_probe")
RUNS_SHOWN = 6
"""Largest number of runs in picture and table."""
GUESSING = 0.5
"""Share of pairs that guessing gets."""
SMALLEST_ADVANTAGE = 0.05
"""Smallest advantage over guessing that matters."""
BY_PLACE = 0.75
"""Share of showings in which one place is chosen, from which on place alone decides at least half
of the pairs.
"""
RUNS_ARE_NOT_CORRECTED = "A tie counts half. Runs are not corrected for their number: of twenty that guess, one is above or below by chance."
PREFERENCE_METHOD = (
    "A tie counts half in accuracy, and as a miss in weighted F1. AUROC ranks by how much a model prefers the first "
    "text. Position bias is how far the share of choices of the first place is from one half, over both orders; "
    "consistent is the share of pairs whose two orders prefer the same text. A run chooses by place where the whole "
    "interval of its share of choices of one place is above 75 %: at least half of the pairs are then decided so. "
    "Intervals resample questions, since pairs of one question are alike. Probes of a model's states are a page of "
    "their own: selfprobe probe run."
)

Margins = dict[str, dict[str, dict[str, float]]]
"""Data set → method → pair id → margin, > 0 where text 1 is preferred; pairs without a verdict are
not there.
"""


class Preferences(Study):
    """Does each model prefer the better of two texts? The runs are those of `inspect eval`."""

    reads: ClassVar[frozenset[str]] = frozenset(TASKS)

    @classmethod
    def comparable(cls, there: Runs) -> Runs:
        """The runs that the tasks' own scorer scored."""
        other = [run for run in there.finished if not judged_run(run).metrics]
        why = "it holds none of the numbers of a preference task: another scorer scored it"
        return Runs(
            [run for run in there.counted if run not in other],
            there.aside | {run.log: why for run in other},
        )

    @classmethod
    def numbers(cls, logs: Logs) -> "list[JudgedRun]":
        """Numbers from each run's header."""
        return [judged_run(run) for run in logs.runs.finished]

    @classmethod
    def page(cls, judged_runs: "Sequence[JudgedRun]") -> Page:
        """The answer, and each run's numbers, with tables scores and metrics."""
        return preference_page(judged_runs)


# ---- numbers of the logs


class Place(Enum):
    """Place of a text in a showing."""

    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True)
class JudgedRun:
    """A finished run of a preference task: what its log's header says."""

    method: str
    """Task, and its arguments where they are not the usual ones."""
    model: str
    dataset: str
    metrics: Mapping[str, float]
    """Metrics by the names that the metric `preference` gives them."""
    log: str

    def estimate(self, name: str) -> Estimate:
        """One of the metrics with its interval."""
        value, low, high = (
            self.metrics.get(key, math.nan) for key in (name, f"{name}_low", f"{name}_high")
        )
        question_count = int(self.metrics.get("questions", 0))
        if math.isnan(value):
            return undefined("no pair has a verdict", n=question_count, unit="question")
        reason = "no interval" if math.isnan(low) else ""
        return Estimate(value, low, high, question_count, "question", reason)

    @property
    def accuracy(self) -> Estimate:
        """The share of pairs whose better text it prefers."""
        return self.estimate("accuracy")

    @property
    def advantage(self) -> Estimate:
        """Its accuracy less what guessing gets."""
        return _shifted(self.accuracy, -GUESSING)

    @property
    def worst_advantage(self) -> Estimate:
        """The same if every pair without a verdict were wrong; the width of the interval stays."""
        worst = self.metrics.get("worst_case", math.nan)
        if math.isnan(worst):
            return self.advantage
        return _shifted(self.advantage, worst - self.accuracy.value)

    @property
    def place(self) -> Place | None:
        """The place that it chooses, whichever text stands there, in most showings (with the whole
        interval).
        """
        share = self.estimate("said_1")
        if share.low >= BY_PLACE:
            return Place.FIRST
        return Place.SECOND if share.high <= 1 - BY_PLACE else None

    @property
    def place_share(self) -> Estimate:
        """Share of showings in which it chooses the place that it chooses more often."""
        first = self.estimate("said_1")
        if math.isnan(first.value):
            return undefined("no order to choose by, or one order alone", unit="question")
        second = replace(first, value=1 - first.value, low=1 - first.high, high=1 - first.low)
        return max(first, second, key=lambda share: share.value)

    @property
    def place_sentence(self) -> str:
        """How often it chooses that place, with the interval; "" where the place does not explain
        its choices.
        """
        if self.place is None:
            return ""
        share = percents(self.place_share)
        return f"takes the {self.place.value} place in {share} of showings, whichever text stands there"

    @property
    def few_questions(self) -> str:
        """End of a sentence where intervals count the pairs as few questions (a file's column
        `group`); "" else.
        """
        pairs = self.metrics.get("pairs", math.nan)
        questions = self.metrics.get("questions", math.nan)
        if not questions < min(FEW, pairs):
            return ""
        return f"; intervals count its {pairs:.0f} pairs as {questions:.0f} questions, and so few make them wide"


def _shifted(estimate: Estimate, by: float) -> Estimate:
    """An estimate moved on its scale."""
    value, low, high = (end + by for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def judged_run(run: Run) -> JudgedRun:
    """Numbers of a finished run."""
    scores = run.results.scores if run.results else []
    # `inspect score` appends its own beside the task's.
    metrics = next((score.metrics for score in scores if "questions" in score.metrics), {})
    return JudgedRun(
        method=", ".join([run.identity.task, *_settings(run)]),
        model=run.identity.model,
        dataset=_data_set(run.header),
        metrics={name: float(metric.value) for name, metric in metrics.items()},
        log=run.log,
    )


# ---- the claim


def _accuracy_text(advantage: Estimate) -> str:
    """The accuracy that an advantage over guessing stands for, with its interval."""
    return percents(_shifted(advantage, GUESSING))


def _share_text(share: Estimate) -> str:
    return share.reason if math.isnan(share.value) else percents(share)


PREFERENCE_WORDS = ClaimWords(
    yes="prefers the better text in {effect} of pairs, asked by {task}; guessing gets 50 %",
    no="prefers the better text in {effect} of pairs, at most {smallest} above guessing",
    checks={
        "verdicts": "given to verdicts",
        "by_preference": "choosing by more than place",
        "above_guessing": "above guessing",
        "unscored": "above guessing whatever the pairs without a verdict are",
    },
    unmet={
        "verdicts": "has a verdict on no pair",
        "by_preference": "takes the {place} place in {difference} of showings, whichever text stands there",
        "above_guessing": "prefers the better text in {effect} of pairs, and guessing gets 50 %",
        "unscored": "prefers the better text in {effect} of pairs, and {unscored} have no verdict",
    },
    units={"by_preference": _share_text},
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
    is_above = outcome_above_zero(advantage, smallest=SMALLEST_ADVANTAGE)
    goes_by_place = run.place is not None and is_above is not Outcome.HOLDS
    is_above_at_worst = run.worst_advantage.low > 0
    checks = (
        Check(
            name="verdicts",
            difference=advantage,
            outcome=Outcome.HOLDS if has_verdicts else Outcome.OPEN,
            remedy="" if has_verdicts else "the column unscored says why",
        ),
        Check(
            name="by_preference",
            difference=run.place_share,
            outcome=Outcome.OPEN if goes_by_place else Outcome.HOLDS,
            remedy="score each text alone (direct_scoring, g_eval)" if goes_by_place else "",
        ),
        Check(
            name="above_guessing",
            difference=advantage,
            outcome=is_above,
            remedy="" if is_above is Outcome.HOLDS else "add pairs",
        ),
        Check(
            name="unscored",
            difference=run.worst_advantage,
            outcome=Outcome.HOLDS if is_above_at_worst else Outcome.OPEN,
            remedy="" if is_above_at_worst else "ask again for those",
        ),
    )
    details = {
        "task": run.method.partition(",")[0],
        "place": run.place.value if run.place else "same",
        "unscored": percent(run.metrics.get("unscored")),
    }
    return Claim(subject, advantage, checks, SMALLEST_ADVANTAGE, details)


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
        unscored=run.metrics.get("unscored", math.nan),
        pairs=_pair_count(run),
        log=run.log,
    )


def metric_rows(run: JudgedRun) -> list[MetricRow]:
    """One row for each metric of a run."""
    return [
        MetricRow(run.dataset, run.method, run.model, name, value)
        for name, value in run.metrics.items()
    ]


def _pair_count(run: JudgedRun) -> int:
    return int(run.metrics.get("pairs", 0))


def run_names(judged_runs: Sequence[JudgedRun]) -> dict[str, JudgedRun]:
    """Shortest name of each run that distinguishes it from the others → the run."""
    names = model_names(sorted({run.model for run in judged_runs}))
    run_of_name: dict[str, JudgedRun] = {}
    for run in judged_runs:
        parts = [cut_name(names[run.model])]
        parts += [run.method] if len({other.method for other in judged_runs}) > 1 else []
        parts += [run.dataset] if len({other.dataset for other in judged_runs}) > 1 else []
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
    table_order = sorted(judged_runs, key=lambda run: (run.method, run.model, run.dataset))
    shown_claims = claims[:RUNS_SHOWN]
    return claim_page(
        "Do these models prefer the better of two texts?",
        claims,
        PREFERENCE_WORDS,
        picture=preference_picture(shown_claims, run_of_name, len(claims) - len(shown_claims)),
        table=Table(
            [answer_row(claim, run_of_name) for claim in shown_claims], columns_of(PreferenceAnswer)
        ),
        tables={
            "scores": RowTable(ScoreRow, [score_row(run) for run in table_order]),
            "metrics": RowTable(
                MetricRow, [row for run in table_order for row in metric_rows(run)], on_page=False
            ),
        },
        method=[
            RUNS_ARE_NOT_CORRECTED,
            PREFERENCE_METHOD,
            Markup("The data sets and ways of asking are those of {}.").format(PROBES),
        ],
        notes={name: run_notes(run) for name, run in run_of_name.items()},
        lines=[
            line for claim in claims for line in terminal_lines(claim, run_of_name[claim.subject])
        ],
    )


def _by_accuracy(run: JudgedRun) -> tuple[bool, float, str, str]:
    value = run.accuracy.value
    return math.isnan(value), -value, run.method, run.model


def run_lines(name: str, run: JudgedRun) -> list[str]:
    """Lines of the terminal on what makes a run's numbers doubtful."""
    doubts = []
    if run.place_sentence:
        doubts.append(f"{name} {run.place_sentence}.")
    if run.few_questions:
        doubts.append(f"{name}: accuracy {percents(run.accuracy)}{run.few_questions}.")
    return doubts


def terminal_lines(claim: Claim, run: JudgedRun) -> list[str]:
    """What makes a run's numbers doubtful, without what its sentence says already."""
    unmet = claim.first_unmet_check
    doubts = run_lines(claim.subject, run)
    is_said = unmet is not None and unmet.name == "by_preference"
    return doubts[1:] if is_said else doubts


def run_notes(run: JudgedRun) -> list[Block]:
    """What stands under the checks of a run."""
    lines = run_lines(f"{run.method}, {run.model} on {run.dataset}", run)
    return [Bullets(lines)] if lines else []


def answer_row(claim: Claim, run_of_name: Mapping[str, JudgedRun]) -> PreferenceAnswer:
    """Row of the first table."""
    run = run_of_name[claim.subject]
    datasets = {other.dataset for other in run_of_name.values()}
    method = f"{run.method} on {run.dataset}" if len(datasets) > 1 else run.method
    names = model_names(sorted({other.model for other in run_of_name.values()}))
    return PreferenceAnswer(names[run.model], method, claim.verdict, run.accuracy.value)


def preference_picture(
    claims: Sequence[Claim], run_of_name: Mapping[str, JudgedRun], hidden: int
) -> Picture:
    """Accuracy of each run with its interval."""
    rows = {claim.subject: {"accuracy": run_of_name[claim.subject].accuracy} for claim in claims}
    placed = [
        f" {name} {run.place_sentence}."
        for name, run in run_of_name.items()
        if run.place_sentence and name in rows
    ]
    caption = f"95 % intervals.{more_in_tables(hidden)}{''.join(placed)}"
    return interval_rows(
        "preferred",
        rows,
        caption=caption,
        axis="pairs judged right",
        scale="percent",
        line=GUESSING,
    )


# ---- the verdicts of logs, for other studies


def _settings(run: Run) -> list[str]:
    """Texts on how it was asked, where that is not the usual way."""
    return [
        f"{name}={value}"
        for name, value in (*run.identity.args, *run.identity.config, *run.identity.roles)
    ]


def logged_margins(paths: Iterable[str], sets: Mapping[str, PairSet]) -> Margins:
    """Verdicts in all finished logs under `paths`; of one task, model and arguments on a data set
    the newest counts.

    A method is named by its task and model, in full and with its arguments where that is needed to
    tell two apart.

    Raises:
        ValueError: No finished log is of these tasks and data sets, or a log is of other pairs than
            the run.
    """
    typed = list(paths)
    finished = runs(typed, TASKS).finished
    by_set: dict[str, list[Run]] = {}
    for run in reversed(finished):  # the newest last
        if (name := _data_set(run.header)) in sets:
            by_set.setdefault(name, []).append(run)
    if not by_set:
        held = ", ".join(sorted({_data_set(run.header) for run in finished})) or "none"
        raise ValueError(
            f"no finished log of {', '.join(TASKS)} on {', '.join(sets)} in {', '.join(typed)}; "
            f"found {len(finished)} logs, of these tasks on: {held}"
        )
    result: Margins = {}
    for name, logs in by_set.items():
        times = Counter(each for run in logs for each in set(_names(run)))
        for run in logs:
            shortest = next((each for each in _names(run) if times[each] == 1), _names(run)[-1])
            result.setdefault(name, {})[shortest] = _read(run, name, sets[name])
    return result


def _names(run: Run) -> tuple[str, str, str]:
    """Names of what was run, the shortest first; the last one distinguishes all methods."""
    task, model = run.identity.task, run.identity.model
    return (
        f"{task}, {cut_name(model)}",
        f"{task}, {model}",
        ", ".join([task, model, *_settings(run)]),
    )


def _data_set(log: EvalLog) -> str:
    """The name that `public_pairs.load_pairs` gives to what a log's task was given."""
    return name_and_place(str((log.eval.metadata or {}).get("dataset", "")))[0]


def _read(run: Run, name: str, pair_set: PairSet) -> dict[str, float]:
    pairs = {pair.id: pair for pair in pair_set.pairs}
    read: dict[str, list[float]] = {}
    # A log holds its samples as they ended: by id, one log gives one message.
    for sample in sorted(run.read_summaries(), key=lambda one: str(one.id)):
        if str(sample.id) not in pairs or not sample.scores:
            continue
        pair = pairs[str(sample.id)]
        verdict = next((d for d in last_decisions(sample.scores) if d.key == VERDICT), None)
        if verdict is None:
            continue
        if (sample.metadata or {}).get("shown") != pair.shown:
            raise ValueError(
                f"{run.log} is of other pairs: pair {sample.id} of {name} has other texts there. Give logs of the "
                "same data, asked in the same words (question, item)"
            )
        if verdict.truth != (pair.label and str(pair.label)):
            raise ValueError(
                f"{run.log} is of other pairs: in {name}, pair {sample.id} has label {pair.label}, in the log "
                f"{verdict.truth}. Give logs of the same data"
            )
        if verdict.score is not None:
            read.setdefault(str(sample.id), []).append(verdict.score)
    return {key: sum(values) / len(values) for key, values in read.items()}
