"""The preference tasks' logs: does each model prefer the better of two texts, by each way of asking?"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import pandas as pd
from inspect_ai.log import EvalLog
from markupsafe import Markup

from selfprobe.data.public_pairs import PairSet, name_and_place
from selfprobe.logs import Run, Runs, runs
from selfprobe.page import (
    LINES,
    PROBES,
    Answer,
    Bullets,
    Column,
    Page,
    Picture,
    Table,
    estimated,
    headings,
    more_in_tables,
    number,
    percent,
    percents,
)
from selfprobe.page.plots import cut_name, interval_rows, model_names
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.preference import VERDICT
from selfprobe.stats.estimate import FEW, Estimate
from selfprobe.study import Logs, Study

TASKS = ("pairwise_preference", "direct_scoring", "g_eval", "preference_probe")
ROWS = 6
"""Largest number of runs in picture and table."""
ORDER = ("Yes", "Cannot tell", "No")
BY_PLACE = 0.75
"""Share of showings in which one place is chosen, from which on place alone decides at least half of the pairs."""
WHY = (
    "Yes: the whole 95 % interval of the share of pairs is above one half, which guessing gets; No: below it. A tie "
    "counts half. Runs are not corrected for their number: of twenty that guess, one is above or below by chance."
)
METHOD = (
    "A tie counts half in accuracy, and as a miss in weighted F1. AUROC ranks by how much a model prefers the first "
    "text. Position bias is how far the share of choices of the first place is from one half, over both orders; "
    "consistent is the share of pairs whose two orders prefer the same text. A run chooses by place where the whole "
    "interval of its share of choices of one place is above 75 %: at least half of the pairs are then decided so. "
    "Intervals resample questions, since pairs of one question are alike. Probes of a model's states are a page of "
    "their own: selfprobe probe run."
)
ESTIMATES = {
    "accuracy": "accuracy",
    "weighted F1": "f1",
    "AUROC": "auroc",
    "ties": "tie_rate",
    "consistent": "consistency",
}

Margins = dict[str, dict[str, dict[str, float]]]
"""Data set → method → pair id → margin, > 0 where text 1 is preferred; pairs without a verdict are not there."""


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
        value, low, high = (self.metrics.get(key, math.nan) for key in (name, f"{name}_low", f"{name}_high"))
        return Estimate(value, low, high, int(self.metrics.get("questions", 0)), "question")

    @property
    def accuracy(self) -> Estimate:
        """The share of pairs whose better text it prefers."""
        return self.estimate("accuracy")

    @property
    def place(self) -> Literal["first", "second"] | None:
        """The place that it chooses, whichever text stands there, in most showings (with the whole interval)."""
        share = self.estimate("said_1")
        return "first" if share.low >= BY_PLACE else "second" if share.high <= 1 - BY_PLACE else None

    @property
    def by_place(self) -> str:
        """How often it chooses that place, with the interval; "" where the place does not explain its choices."""
        first = self.estimate("said_1")
        second = replace(first, value=1 - first.value, low=1 - first.high, high=1 - first.low)
        share = percents(first if self.place == "first" else second)
        return f"takes the {self.place} place in {share} of showings, whichever text stands there" if self.place else ""

    @property
    def few_questions(self) -> str:
        """End of a sentence where intervals count the pairs as few questions (a file's column `group`); "" else."""
        pairs, questions = self.metrics.get("pairs", math.nan), self.metrics.get("questions", math.nan)
        if not questions < min(FEW, pairs):
            return ""
        return f"; intervals count its {pairs:.0f} pairs as {questions:.0f} questions, and so few make them wide"

    @property
    def answer(self) -> Answer:
        """Whether its whole interval is above, or below, what guessing gets."""
        return "Yes" if self.accuracy.low > 0.5 else "No" if self.accuracy.high < 0.5 else "Cannot tell"


class Preferences(Study):
    """Does each model prefer the better of two texts? The runs are those of `inspect eval`."""

    reads: ClassVar[frozenset[str]] = frozenset(TASKS)

    @classmethod
    def comparable(cls, there: Runs) -> Runs:
        """The runs that the tasks' own scorer scored."""
        other = [run for run in there.finished if not _judged_run(run).metrics]
        why = "it holds none of the numbers of a preference task: another scorer scored it"
        return Runs([run for run in there.counted if run not in other], there.aside | {run.log: why for run in other})

    @classmethod
    def numbers(cls, logs: Logs) -> list[JudgedRun]:
        """Numbers from each run's header, the better ones first."""
        found = [_judged_run(run) for run in logs.runs.finished]
        return sorted(found, key=lambda one: (ORDER.index(one.answer), -one.accuracy.value, one.method, one.model))

    @classmethod
    def page(cls, found: Sequence[JudgedRun]) -> Page:
        """The answer, and each run's numbers; its table `runs` has them all."""
        names = model_names(sorted({one.model for one in found}))
        first = found[:ROWS]
        rows = sorted(found, key=lambda one: (one.method, one.model, one.dataset))
        lines = [
            f"{one.method}, {names[one.model]} on {one.dataset}: accuracy {percents(one.accuracy)}"
            + f"; it {one.by_place}" * bool(one.place)
            + one.few_questions
            for one in found
        ]
        few_questions = [
            f"{one.method}, {names[one.model]} on {one.dataset}{one.few_questions}."
            for one in found
            if one.few_questions
        ]
        return Page(
            "Do these models prefer the better of two texts?",
            answer=_sentence(found, names),
            picture=_picture(first, names, len(found) - len(first)),
            table=_table(first, names),
            sections=headings(
                why=[WHY, *([Bullets(few_questions)] if few_questions else [])],
                cells=[_cells(rows)],
                method=[METHOD, Markup("The data sets and ways of asking are those of {}.").format(PROBES)],
            ),
            tables={"runs": pd.DataFrame([_row(one) for one in rows])},
            notes=lines[:LINES] if len(lines) > 1 or found[0].place or found[0].few_questions else [],
        )


def _sentence(found: Sequence[JudgedRun], names: dict[str, str]) -> str:
    best, count = found[0], len(names)
    model = names[best.model].replace(" ", "\N{NO-BREAK SPACE}")
    reached = f"prefers the better text in {percent(best.accuracy.value)} of pairs"
    who = f"for {model}" if count == 1 else f"for {count} models"
    best_one = "it" if count == 1 else f"the best, {model},"
    if math.isnan(best.accuracy.value):
        return f"Cannot tell {who}: no pair has a verdict."
    if best.answer == "Yes":
        able = len({one.model for one in found if one.answer == "Yes"})
        head = f"Yes, {who}: it" if count == 1 else f"Yes, for {able} of {count} models. {model}"
        return f"{head} {reached}, asked by {best.method.partition(',')[0]}; guessing gets 50 %."
    if best.answer == "Cannot tell":
        whole = math.isnan(best.accuracy.low)
        ends = "without an interval" if whole else "and its interval holds 50 %, which guessing gets"
        return f"Cannot tell {who}: {best_one} {best.by_place or f'{reached}, {ends}'}."
    return f"No, not {who}: {best_one} {reached}, fewer than by guessing."


def _picture(found: Sequence[JudgedRun], names: dict[str, str], left: int) -> Picture | None:
    rows = {_row_name(one, found, names): {"accuracy": one.accuracy} for one in found}
    placed = "".join(f" {_row_name(one, found, names)} {one.by_place}." for one in found if one.place)
    caption = f"95 % intervals.{more_in_tables(left)}{placed}"
    return interval_rows("preferred", rows, caption=caption, axis="pairs judged right", scale="percent", line=0.5)


def _row_name(one: JudgedRun, found: Sequence[JudgedRun], names: dict[str, str]) -> str:
    """Shortest name of a run that distinguishes it from the others."""
    parts = [cut_name(names[one.model])]
    parts += [one.method] if len({other.method for other in found}) > 1 else []
    parts += [one.dataset] if len({other.dataset for other in found}) > 1 else []
    return ", ".join(parts)


def _table(found: Sequence[JudgedRun], names: dict[str, str]) -> Table:
    several = len({one.dataset for one in found}) > 1
    return Table(
        found,
        (
            Column("model", lambda one: names[one.model]),
            Column("method", lambda one: f"{one.method} on {one.dataset}" if several else one.method),
            Column("answer", "answer"),
            Column("accuracy", lambda one: one.accuracy.value, percent),
            Column("pairs", _pairs, str),
        ),
    )


def _cells(found: Sequence[JudgedRun]) -> Table:
    return Table(
        found,
        (
            Column("data", "dataset"),
            Column("method", "method"),
            Column("model", "model"),
            *(estimated(title, partial(JudgedRun.estimate, name=name)) for title, name in ESTIMATES.items()),
            Column("position bias", lambda one: one.metrics.get("position_bias"), number),
            Column("unscored", lambda one: one.metrics.get("unscored"), percent),
            Column("pairs", _pairs, str),
        ),
    )


def _pairs(one: JudgedRun) -> int:
    return int(one.metrics.get("pairs", 0))


def _row(one: JudgedRun) -> dict[str, object]:
    return {"dataset": one.dataset, "method": one.method, "model": one.model, **one.metrics, "log": one.log}


def _judged_run(run: Run) -> JudgedRun:
    """Numbers of a finished run."""
    scores = run.results.scores if run.results else []
    # `inspect score` appends its own beside the task's.
    metrics = next((s.metrics for s in scores if "questions" in s.metrics), {})
    return JudgedRun(
        method=", ".join([run.identity.task, *_settings(run)]),
        model=run.identity.model,
        dataset=_data_set(run.header),
        metrics={name: float(metric.value) for name, metric in metrics.items()},
        log=run.log,
    )


def _settings(run: Run) -> list[str]:
    """Texts on how it was asked, where that is not the usual way."""
    return [f"{name}={value}" for name, value in (*run.identity.args, *run.identity.config, *run.identity.roles)]


def logged_margins(paths: Iterable[str], sets: Mapping[str, PairSet]) -> Margins:
    """Verdicts in all finished logs under `paths`; of one task, model and arguments on a data set the newest counts.

    A method is named by its task and model, in full and with its arguments where that is needed to tell two apart.

    Raises:
        ValueError: No finished log is of these tasks and data sets, or a log is of other pairs than the run.
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
    return f"{task}, {cut_name(model)}", f"{task}, {model}", ", ".join([task, model, *_settings(run)])


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
