"""Self-knowledge from any logs: do models know in advance what they can do, beyond what the items tell everybody?"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, field_validator

from selfprobe.data.clusters import few_clusters
from selfprobe.data.outcomes import LoggedOutcomes, OutcomeQuestions, Question, When, logged_outcomes, models_in
from selfprobe.data.prices import Cost
from selfprobe.errors import InputError, NoLogs
from selfprobe.errors.arguments import one_of
from selfprobe.introspect_tasks.outcome import OF, PROMPT, About, asked_of
from selfprobe.logs import Identity, Runs, titles
from selfprobe.logs.decision import last_decisions
from selfprobe.page import (
    FINDING,
    LINES,
    ROWS,
    Answer,
    Block,
    Bullets,
    Column,
    Figures,
    Finding,
    Page,
    Picture,
    Section,
    estimated,
    headings,
    interval_columns,
    number,
    overall_answer,
    p_value,
    percent,
    shown,
    strongest,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.plots import bar_rows, calibration_curves, curves, heat_map, model_names
from selfprobe.stats.agreement import ece, equal_mass
from selfprobe.stats.estimate import FEW, Estimate, FloatArray, clustered_mean, holm, undefined
from selfprobe.stats.foresight import (
    ALPHA,
    Brier,
    Detection,
    above,
    auroc_above,
    brier,
    detection,
    log_score,
    mean_of,
    ordered,
    overconfidence,
    risks,
    solved_alike,
    stratified_auroc,
)
from selfprobe.stats.pairs import FEWEST as FEWEST_MODELS
from selfprobe.stats.text_only import log_odds
from selfprobe.studies.matrix.advantage import Permutation, double_centre, observers_permuted, total_of
from selfprobe.studies.matrix.habit import Specific
from selfprobe.studies.matrix.rows import model_rows
from selfprobe.studies.matrix.verdict import Verdict, judge_matrix
from selfprobe.study import Effort, Logs, Plan, Study, Wave
from selfprobe.study.described import DescribedRun, NamedModel
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.text import busy

FEWEST = 20
"""Number of items below which nothing is said."""
SMALL = 0.1
"""Excess of an AUROC over .5 that is too small to matter."""
BINS = 8
OTHERS, TEXT, LENGTH, OTHER = "other models' results", "text alone", "length of the input", "about another assistant"
"""Predictors besides the model itself and other observers."""
WITHOUT_LOG = "Without a log of its own, so compared as an observer of others and not judged"
WHAT = {"solve": "successes", "refuse": "refusals", "length": "long replies"}
TITLES = {
    "solve": "Do models know in advance what they can solve?",
    "refuse": "Do models know in advance what they will refuse?",
    "length": "Do models know in advance how long their replies will be?",
}
ALIKE = "among items on which as many of the models succeeded"
MEANS = (
    "Each model was shown what the logs say was asked, and stated a probability; the truth is in the logs. AUROC is "
    "the share of pairs of items that it puts in the right order; .5 is nothing. Who knows which items are hard does "
    f"so for every model. Beyond the items is therefore the AUROC {ALIKE} (for refuse and length: refused, or wrote "
    "long): where models differ in skill and items in difficulty alone, which of the models it was does not depend on "
    f"the item. It counts as shown with a one-sided p below {ALPHA:g}, corrected for all models and questions (Holm)."
)
CONTROLS = (
    "Yes needs more: beyond the items the model ranks its own outcomes better than every other model that was asked "
    "ranks them, than a classifier of the text (words, cross-validated by text or cluster) and than the length of the "
    "input (each paired, p below .05); and the verdict of `selfprobe matrix`, on every observer and target, names it, "
    "which takes four models. An observer's scores on another model are among items on which as many of the models but "
    "the observer succeeded, so that what it knows of itself does not count against it."
)
SCORES = (
    "Brier is the mean squared error: miscalibration less discrimination plus uncertainty (isotonic recalibration, no "
    "bins). Overconfidence is the mean stated chance less the share that happened. The calibration error is debiased. "
    "d' and criterion take a chance of one half and more for a yes. Risk is the share of failures when only the items "
    "with the highest chances are acted on. Intervals are 95 %, by item or cluster."
)


OTHER_COLUMN = "--cluster takes another name in the samples' metadata"
"""What to do about few clusters."""


class Outcome(Study):
    """Do models know in advance what they can do? Asks each about the items of LOGS, of any Inspect task.

    Every other model's results and statements on the same items are compared with its own. Resumes with the same
    command.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"outcome"})

    logs: tuple[str, ...] = Field(min_length=1, examples=["LOGS"])
    models: tuple[str, ...] = Field(min_length=1, description=MODELS_HELP)
    questions: tuple[str, ...] = Field(
        ("solve",), alias="ask", min_length=1, description="Questions: solve, refuse, length."
    )
    about: tuple[str, ...] = Field(
        ("self",),
        min_length=1,
        description="Model that a prompt asks about: self (you), other (another AI assistant), named.",
    )
    when: When = Field("before", description="Ask before the replies, or after them with the whole conversation shown.")
    at: int | None = Field(
        None, ge=1, description="Number of messages that are shown. Default: those of the first call."
    )
    score: str | None = Field(None, description="Scorer, or scorer.key, that solve is about. Default: the first one.")
    tokens: int | None = Field(
        None, ge=1, description="Tokens above which a reply is long. Default: each log's median."
    )
    cluster: str | None = Field(
        None, description="Metadata of the samples whose equal values are one unit of intervals."
    )
    answer_tokens: int | None = Field(None, ge=1, description="Longest answer in tokens; a cut one is unscored.")
    effort: Effort | None = Field(None, description="Reasoning effort of the observers. Default: none, or the least.")
    out: str = Field("outcome", description=OUT_HELP)
    log_dir: str = Field("logs/outcome", description=LOG_DIR_HELP)

    @field_validator("about")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            one_of("about", name, get_args(About))
        if "self" not in value:
            raise InputError(f"about must hold self, with which the rest is compared, got {', '.join(value)}")
        return value

    @cached_property
    def asking(self) -> OutcomeQuestions:
        """Questions that are asked.

        Raises:
            InputError: An unknown question, or --at with --when after.
        """
        given = self.model_dump(include={"when", "at", "score", "tokens", "cluster"})
        return asked_of(self.questions, **given)

    @cached_property
    def cases(self) -> list[tuple[str, str, str]]:
        """Observer, target and whom the prompt names, one a run.

        What is asked before the reply about "you" or "another AI assistant" is the same for every target, so one run
        an observer does; what names the target or shows its reply is asked about each.
        """
        there = models_in(self.logs)
        if not set(there) & set(self.models):
            some = ", ".join(there[:3])
            raise InputError(f"no log of {', '.join(self.models[:3])} in {', '.join(self.logs)}; there are {some}")
        shows = self.when == "after"
        abouts = ("self", "other") if shows and self.about == ("self",) and len(self.models) > 1 else self.about
        cases = []
        for about in abouts:
            for observer in self.models:
                own = [observer] if observer in there else there[:1]
                each = about == "named" or (shows and about == "other")
                cases += [(observer, target, about) for target in (there if each else own)]
        return [case for case in cases if not (shows and case[2] == "self" and case[0] != case[1])]

    def read(self, target: str) -> LoggedOutcomes:
        """The items of a target.

        Raises:
            InputError: See `data.outcomes.logged_outcomes`.
        """
        return logged_outcomes(self.logs, target, self.asking)

    def waves(self) -> Iterator[Wave]:
        """One run an observer; of prompts that name or show a target, one for each target too."""
        own = self.model_dump(include={"when", "at", "score", "tokens", "cluster", "answer_tokens", "effort"})
        args = {name: value for name, value in own.items() if value is not None} | self.how.shared
        args |= {"logs": list(self.logs), "ask": list(self.asking.ask)}
        yield Wave(
            [
                DescribedRun("outcome", args | {"target": t, "about": about}, NamedModel(o, self.how.model_args))
                for o, t, about in self.cases
            ],
            "Stated chances",
        )

    def plan(self) -> Plan:
        """One call an item and question of each run."""
        calls, sent, notes = defaultdict[str, int](int), defaultdict[str, int](int), dict[str, None]()
        cluster_of = dict[str, str]()
        for observer, target, _ in self.cases:
            found = self.read(target)
            notes |= dict.fromkeys(found.notes)
            for row in found.table.first(self.limit):
                asked = len(row["outcomes"])
                cluster_of[row["id"]] = row["cluster"]
                calls[observer] += asked
                sent[observer] += asked * (len(row["text"]) + len(PROMPT)) // 4
        there = models_in(self.logs)
        lines = [
            f"{len(cluster_of)} items × {', '.join(self.models)}, asked {self.when} the reply: "
            f"{', '.join(self.asking.ask)}",
            f"One call an item, observer and question; logs are of {len(there)} model{'s' * (len(there) != 1)}.",
        ]
        if lone := [model for model in there if model not in self.models]:
            lines.append(f"Not asked, their results are compared: {', '.join(lone[:5])}")
        if bare := [model for model in self.models if model not in there]:
            lines.append(f"{WITHOUT_LOG}: {', '.join(bare[:5])}")
        if len(there) == 1:
            lines.append("Without a second model's logs knowledge of the items cannot be told from self-knowledge.")
        if self.cluster:
            few = few_clusters(list(cluster_of.values()), rows="items", unit="cluster", remedy=OTHER_COLUMN)
            lines += [few] if few else []
        kept = list(notes)
        lines += [*kept[:LINES], *([f"{len(kept) - LINES} more such lines"] if len(kept) > LINES else [])]
        return Plan(lines, [Cost(model, calls[model], sent[model], 5 * calls[model]) for model in self.models])

    @classmethod
    def comparable(cls, there: Runs) -> Runs:
        """The runs with the truth of the newest one: its score, tokens, moment and clusters."""
        if not there.finished:
            return there
        newest = _truth(there.finished[0].identity)
        return there.of([run.identity for run in there.counted if _truth(run.identity) == newest])

    @classmethod
    def numbers(cls, logs: Logs) -> "OutcomeNumbers":
        """Statements of each model, with its outcomes and what the others stated and did.

        Raises:
            NoLogs: No answer could be read.
        """
        stated = stated_in(logs)
        if not stated.chances:
            raise NoLogs("no run ended well, or no answer could be read; see above. The same command goes on")
        rng = np.random.default_rng(0)
        pairs = [(who, q) for q in stated.questions for who in stated.observers if stated.own(who, q) is not None]
        facts = [facts_of(stated, who, q) for who, q in pairs]
        family = holm([p for one in facts for p in (above(one.items, 0.5), above(one.itself, 0.5))])
        facts = [replace(one, p=float(p)) for one, p in zip(facts, family[1::2], strict=True)]
        return OutcomeNumbers(facts, {q: outcome_matrix(stated, q, rng) for q in stated.questions}, stated, logs)

    @classmethod
    def page(cls, found: "OutcomeNumbers") -> Page:
        """The answer by model and question, with tables findings, predictors, stated and matrix."""
        asked = found.stated.questions
        several = len(asked) > 1
        findings = strongest(
            outcome_finding(one, found.named(one, several), found.matrices[one.question]) for one in found.facts
        )
        if not findings:
            raise NoLogs("no model was asked about itself, so nothing is known of any (--about self)")
        answer, lines = overall_answer(findings, "cases" if several else "")
        return Page(
            TITLES[asked[0]] if not several else "Do models know in advance what they will do?",
            answer=answer,
            picture=_bars(findings),
            table=PageTable(findings[:ROWS], COLUMNS),
            sections=headings(
                why=[
                    *(Section(one.model, [f"{one.answer}: {one.clause}.", *one.notes]) for one in findings),
                    *(block for q in asked for block in _verdict(q, found.matrices[q])),
                ],
                cells=[_scores(findings), _predictors(findings), Figures([_calibration(findings), _risks(findings)])],
                method=[MEANS, CONTROLS, SCORES, *found.lost],
            ),
            tables={
                "findings": pd.DataFrame([_row(one) for one in findings]),
                "predictors": pd.DataFrame([row for one in findings for row in _predictor_rows(one)]),
                "stated": found.stated.table,
                "matrix": pd.DataFrame([row for q in asked for row in _cells(q, found.matrices[q])]),
            },
            notes=lines,
        )


# ---- what the logs say


@dataclass(frozen=True)
class Stated:
    """Stated chances and outcomes of all items, `[item]` in the order of `items`."""

    items: tuple[str, ...]
    texts: Mapping[str, tuple[str, ...]]
    """Target → what its observers were shown of each item: after the reply, the target's own."""
    clusters: npt.NDArray[np.intp]
    questions: tuple[str, ...]
    observers: Mapping[str, str]
    """Name of a run → its model."""
    outcomes: Mapping[tuple[str, str], FloatArray]
    """(model, question) → outcomes, NaN where unknown."""
    chances: Mapping[tuple[str, str, str, str], FloatArray]
    """(run, about, target or "" for all, question) → chances."""
    table: pd.DataFrame
    """One row a statement: run, about, target, item, question, stated, outcome, unscored."""
    notes: Sequence[str] = ()
    """Sentences on which logs, scorers and items count."""

    def said(self, who: str, about: str, target: str, question: str) -> FloatArray | None:
        """Chances that a run stated about a target, as far as the prompt names or shows it; else about all alike."""
        own = self.chances.get((who, about, target, question))
        return self.chances.get((who, about, "", question)) if own is None else own

    def own(self, who: str, question: str) -> FloatArray | None:
        """Chances that a run stated about itself; None without an outcome of its model."""
        model = self.observers[who]
        return self.said(who, "self", model, question) if (model, question) in self.outcomes else None

    def other(self, who: str, target: str, question: str) -> FloatArray | None:
        """Chances that another observer stated, the best informed prompt first."""
        found = (self.said(who, about, target, question) for about in ("named", "self", "other"))
        return next((one for one in found if one is not None), None)

    def of_others(self, model: str, question: str) -> dict[str, FloatArray]:
        """Other model → outcomes."""
        return {other: of for (other, q), of in self.outcomes.items() if q == question and other != model}

    def alike(
        self, model: str, question: str, there: npt.NDArray[np.bool_], *, without: str = ""
    ) -> npt.NDArray[np.intp]:
        """Strata of the items `there` on which as many models succeeded: the one meaning of "beyond the items".

        Every model with outcomes counts, asked or not, except an observer of another model (`without`): what it knows
        of itself does not count against it.
        """
        others = [place for name, place in self._places[question].items() if name not in (model, without)]
        results = self._results[question][:, there]
        known: npt.NDArray[np.bool_] = np.any(~np.isnan(results), axis=1)
        return solved_alike(results[[self._places[question][model], *(place for place in others if known[place])]])

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        """Question → model → its row in `_results`."""
        models = {question: [name for name, of in self.outcomes if of == question] for _, question in self.outcomes}
        return {question: {name: place for place, name in enumerate(names)} for question, names in models.items()}

    @cached_property
    def _results(self) -> dict[str, FloatArray]:
        """Question → outcomes [model, item]."""
        return {
            question: np.array([self.outcomes[name, question] for name in names])
            for question, names in self._places.items()
        }


def stated_in(logs: Logs) -> Stated:
    """Statements and outcomes of the finished runs; the newest of those that several runs have."""
    chances: dict[tuple[str, str, str, str], dict[str, float]] = defaultdict(dict)
    outcomes: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    clusters: dict[str, str] = {}
    rows = list[dict[str, Any]]()
    runs, order = list(reversed(logs.runs.finished)), list(logs.names)
    plain = {run.log: replace(run.identity, args=_without_target(run.identity.args), data="") for run in runs}
    full = model_names(list(dict.fromkeys(run.identity.model for run in runs)))
    names = {one: name.replace(one.model, full[one.model], 1) for one, name in titles(plain.values()).items()}
    ranked = sorted(runs, key=lambda run: order.index(run.identity))
    observers = {names[plain[run.log]]: run.identity.model for run in ranked}
    for run in runs:
        args = dict(run.identity.args)
        who, about = names[plain[run.log]], args.get("about", "self")
        target = str((run.header.eval.metadata or {}).get("outcome_of"))
        bound = target if about == "named" or args.get("when") == "after" else ""
        for sample in run.summaries:
            item, metadata = str(sample.id), sample.metadata or {}
            texts[target][item] = str(sample.input)
            clusters[item] = str(metadata.get("cluster") or item)
            for name, did in metadata.items():
                if name.startswith(OF) and isinstance(did, dict):
                    for question, value in did.items():
                        outcomes[name.removeprefix(OF), question][item] = float(value)
            for one in last_decisions(sample.scores):
                if one.probability is not None:
                    chances[who, about, bound, one.key][item] = one.probability
                keys = {"run": who, "about": about, "target": target, "item": item, "question": one.key}
                truth = None if one.truth is None else float(one.truth)
                rows.append(keys | {"stated": one.probability, "outcome": truth, "unscored": one.unscored})
    items = tuple(sorted(clusters))
    place = {item: at for at, item in enumerate(items)}

    def arrayed(values: Mapping[str, float]) -> FloatArray:
        out = np.full(len(items), math.nan)
        out[[place[item] for item in values]] = list(values.values())
        return out

    questions = tuple(q for q in get_args(Question) if any(key[3] == q for key in chances))
    return Stated(
        items=items,
        texts={target: tuple(of_target.get(item, "") for item in items) for target, of_target in texts.items()},
        clusters=np.unique([clusters[item] for item in items], return_inverse=True)[1],
        questions=questions,
        observers=observers,
        outcomes={key: arrayed(values) for key, values in outcomes.items()},
        chances={key: arrayed(values) for key, values in chances.items()},
        table=pd.DataFrame(sorted(rows, key=lambda row: (row["run"], row["about"], row["target"]))),
        notes=list(dict.fromkeys(note for run in runs for note in (run.header.eval.metadata or {}).get("notes", ()))),
    )


def _truth(identity: Identity) -> dict[str, str]:
    """Arguments that say what counts as an outcome."""
    return {name: value for name, value in identity.args if name in ("score", "tokens", "when", "at", "cluster")}


def _without_target(args: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Arguments but those that say about whom and how much was asked."""
    return tuple((name, value) for name, value in args if name not in ("about", "target", "ask"))


# ---- numbers


@dataclass(frozen=True)
class Predictor:
    """Numbers of one source of prediction on a model's outcomes."""

    name: str
    auroc: Estimate
    beyond: Estimate
    """AUROC among items on which as many models succeeded."""
    below: Estimate
    """AUROC of the model itself less this one's, among these items."""
    observer: bool
    """Whether the source is another model that was asked."""


@dataclass(frozen=True)
class Facts:
    """One model on one question."""

    run: str
    model: str
    question: str
    n: int
    """Number of clusters, or of items where none are named."""
    rows: int
    """Number of items."""
    share: float
    """Share of its items that happened."""
    auroc: Estimate
    items: Estimate
    """AUROC of its chances for the other models' outcomes."""
    itself: Estimate
    """AUROC of its chances among items on which as many models succeeded."""
    predictors: tuple[Predictor, ...]
    brier: Brier
    log: float
    over: Estimate
    ece: Estimate
    detection: Detection
    risks: Mapping[float, float]
    bins: tuple[Sequence[float], Sequence[Estimate]]
    """Mean stated chance of each bin, and what happened."""
    others: int
    """Number of other models with outcomes."""
    asked: int
    """Number of other observers."""
    p: float = math.nan
    """One-sided p that it knows itself, corrected for all models and questions."""


def facts_of(stated: Stated, who: str, question: str) -> Facts:
    """The numbers of one model on one question."""
    busy.set_stage(f"{who}: {question}")
    model = stated.observers[who]
    chances, truth = stated.own(who, question), stated.outcomes[model, question]
    assert chances is not None, who
    there = ~np.isnan(chances) & ~np.isnan(truth)
    p, y, clusters = chances[there], truth[there], stated.clusters[there]
    rest = {other: of[there] for other, of in stated.of_others(model, question).items()}
    rest = {other: of for other, of in rest.items() if not np.isnan(of).all()}
    others = np.array(list(rest.values())).reshape(len(rest), len(y))
    mean = mean_of(others)
    both = ~np.isnan(mean)
    none = undefined("no other model's log is there")

    alike = stated.alike(model, question, there)
    rivals = {one: of for one, of in stated.observers.items() if of != model}

    def alike_without(name: str) -> npt.NDArray[np.intp]:
        return stated.alike(model, question, there, without=rivals.get(name, ""))

    said = {one: stated.other(one, model, question) for one in rivals}
    sources: dict[str, FloatArray] = {OTHERS: mean} | {one: of[there] for one, of in said.items() if of is not None}
    framed = stated.said(who, "other", model, question)
    sources |= {} if framed is None else {OTHER: framed[there]}
    shown_texts = [text for text, here in zip(stated.texts[model], there, strict=True) if here]
    sources |= _without_a_model(shown_texts, y, clusters)
    order = equal_mass(p, BINS) if len(p) else np.empty(0, dtype=np.intp)
    bins = [order == b for b in range(order.max() + 1)] if len(p) else []
    return Facts(
        run=who,
        model=model,
        question=question,
        n=len(np.unique(clusters)),
        rows=len(clusters),
        share=float(y.mean()) if len(y) else math.nan,
        auroc=stratified_auroc(p, y, clusters),
        items=stratified_auroc(p[both], mean[both], clusters[both]) if both.any() else none,
        itself=stratified_auroc(p, y, clusters, alike) if rest else none,
        predictors=tuple(
            _predictor(name, p, score, y, clusters, (alike, alike_without(name)), name in rivals)
            for name, score in sources.items()
        ),
        brier=brier(p, y) if len(p) else Brier(*[math.nan] * 4),
        log=log_score(p, y) if len(p) else math.nan,
        over=overconfidence(p, y, clusters),
        ece=ece(p, y, clusters, unit="item"),
        detection=detection(p, y),
        risks=risks(p, y) if len(p) else {},
        bins=([float(p[at].mean()) for at in bins], [clustered_mean(y[at], clusters[at]) for at in bins]),
        others=len(others),
        asked=sum(name in rivals for name in sources),
    )


def _without_a_model(texts: Sequence[str], y: FloatArray, clusters: npt.NDArray[np.intp]) -> dict[str, FloatArray]:
    """Scores of the text and of its length for the outcomes; the direction of the length is the one that fits."""
    length = np.array([len(text) for text in texts], dtype=float)
    away = ordered(length, y).auroc < 0.5
    alike = np.unique(np.array(texts, dtype=object).astype(str), return_inverse=True)[1]
    groups = clusters if len(np.unique(clusters)) < len(np.unique(alike)) else alike
    return {TEXT: log_odds(texts, y >= 0.5, groups), LENGTH: -length if away else length}


def _predictor(
    name: str,
    p: FloatArray,
    score: FloatArray,
    y: FloatArray,
    clusters: npt.NDArray[np.intp],
    strata: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]],
    observer: bool,
) -> Predictor:
    """Numbers that a source reaches; `strata` are those of the model itself, and those of the source."""
    known = ~np.isnan(score)
    none = undefined("nothing is known of it")
    if not known.any():
        return Predictor(name, none, none, none, observer)
    theirs, truth, at = score[known], y[known], clusters[known]
    within = below = none
    if name != OTHERS:  # the strata hold those results fixed
        within = stratified_auroc(theirs, truth, at, strata[1][known])
        mine = ordered(p[known], truth, strata[0][known])
        below = auroc_above(mine, ordered(theirs, truth, strata[1][known]), at, truth)
    return Predictor(name, stratified_auroc(theirs, truth, at), within, below, observer)


@dataclass(frozen=True)
class OutcomeMatrix:
    """Every observer on every target, beyond the items."""

    models: tuple[str, ...]
    means: FloatArray
    """Means [target, observer]."""
    verdict: Verdict | None
    """Verdict of the matrix; None with fewer than four models."""


def outcome_matrix(stated: Stated, question: str, rng: np.random.Generator) -> OutcomeMatrix:
    """Scores beyond the items of all observers on all targets that were both, and what the matrix's verdict says."""
    asked = [who for who in stated.observers if stated.own(who, question) is not None]
    firsts = {stated.observers[who]: who for who in reversed(asked)}
    models = tuple(sorted(firsts))
    truths = np.array([stated.outcomes[model, question] for model in models]).reshape(len(models), len(stated.items))
    said = [
        [stated.own(firsts[o], question) if o == t else stated.other(firsts[o], t, question) for o in models]
        for t in models
    ]
    nothing = np.full(len(stated.items), math.nan)
    chances = np.array([[nothing if one is None else one for one in row] for row in said])
    there = ~np.isnan(truths).any(axis=0)
    if len(models) < 2 or not there.any():
        return OutcomeMatrix(models, np.full((len(models),) * 2, math.nan), None)
    x = np.full((len(models), len(models), int(there.sum())), math.nan)
    for t in range(len(models)):
        for o in range(len(models)):
            known = ~np.isnan(chances[t, o][there])
            alike = stated.alike(models[t], question, there, without="" if o == t else models[o])
            x[t, o, known] = ordered(chances[t, o][there][known], truths[t][there][known], alike[known]).scores
    labels = stated.clusters[there]
    x = np.stack([_by_cluster(x[:, :, labels == one]) for one in np.unique(labels)], axis=2)
    known = ~np.isnan(x).all(axis=2)
    means = np.where(known, np.nansum(x, axis=2) / np.maximum((~np.isnan(x)).sum(axis=2), 1), math.nan)
    if len(models) < FEWEST_MODELS or not known.all():
        return OutcomeMatrix(models, means, None)
    specific = Specific(x, np.full(means.shape, math.nan), "what the items tell")
    rows = model_rows(models, x, specific, {}, tests=len(models), rng=rng, graded=False)
    total = total_of(x, models)
    shuffled = Permutation(math.nan, 0, True) if not total.n else observers_permuted(double_centre(means), rng=rng)
    said_so = judge_matrix(
        rows,
        p_holm=holm([row.p for row in rows]).tolist(),
        total=total,
        permutation=shuffled,
        means=means,
        replies="outcomes",
    )
    return OutcomeMatrix(models, means, said_so)


def _by_cluster(part: FloatArray) -> FloatArray:
    """Means over the items of each cluster, [target, observer]."""
    known = (~np.isnan(part)).sum(axis=2)
    return np.asarray(np.where(known, np.nansum(part, axis=2) / np.maximum(known, 1), math.nan))


# ---- what is said of it


@dataclass(frozen=True)
class OutcomeNumbers:
    """Results of the logs."""

    facts: Sequence[Facts]
    matrices: Mapping[str, OutcomeMatrix]
    stated: Stated
    logs: Logs

    def named(self, one: Facts, several: bool) -> str:
        """Name of a case on the page."""
        return _one_word(f"{one.run}, {one.question}" if several else one.run)

    @property
    def lost(self) -> list[Block]:
        """Blocks on what is left out, and why: statements, observers, logs and items."""
        of = self.stated
        lost = of.table.unscored.dropna()
        reasons = ", ".join(f"{why.replace('_', ' ')} {count}" for why, count in lost.value_counts().items())
        bare = [who for who in of.observers if not any(of.own(who, q) is not None for q in of.questions)]
        lines = [f"Unscored: {len(lost)} of {len(of.table)} statements ({reasons})."] if len(lost) else []
        lines += [f"{WITHOUT_LOG}: {', '.join(bare)}."] if bare else []
        return [*lines, *([Bullets(of.notes)] if of.notes else [])]


def outcome_finding(one: Facts, name: str, matrix: OutcomeMatrix) -> Finding:
    """The answer for one model and question."""
    return Finding(name, *_answer(one, matrix), one, _notes(one))


def _answer(one: Facts, matrix: OutcomeMatrix) -> tuple[Answer, str]:
    what = WHAT[one.question]
    if one.n < FEWEST:
        return "Cannot tell", f"has {one.n} items with an answer and an outcome; {FEWEST} are the least"
    if math.isnan(one.auroc.value):
        return "Cannot tell", f"has {what} at {percent(one.share)} of its items: outcomes do not differ"
    ranks = f"ranks its {what} {_backwards(one.auroc)}with AUROC {shown(one.auroc)}"
    if not one.others:
        return "Cannot tell", f"{ranks}, and no other model's log shows what the items alone tell"
    beyond = f"beyond the items with AUROC {shown(one.itself)}"
    if one.p < ALPHA:
        if not one.asked:
            return "Cannot tell", f"ranks them {beyond}; ask a second model, which may do as well"
        compared = [each for each in one.predictors if each.name != OTHERS and not (each.observer and one.others == 1)]
        as_well = [each for each in compared if not above(each.below, 0) < 0.05]
        if as_well:
            best = max(as_well, key=lambda each: -math.inf if math.isnan(each.beyond.value) else each.beyond.value)
            verb: Answer = "No" if best.below.high < SMALL else "Cannot tell"
            return verb, f"ranks its {what} {beyond}; {_one_word(best.name)} reaches {number(best.beyond.value)}"
        if matrix.verdict is None:
            return "Cannot tell", f"ranks its {what} {beyond}; {FEWEST_MODELS} models with logs would tell"
        if one.model not in matrix.verdict.models:
            return "Cannot tell", f"ranks its {what} {beyond}; models here may differ as much without self-knowledge"
        return "Yes", f"ranks its {what} {beyond}"
    if math.isnan(one.itself.value):
        return "Cannot tell", f"{ranks}; no two items of other outcome are alike for the other models"
    if one.itself.high < 0.5 + SMALL:
        beyond = f"beyond the items {_backwards(one.itself)}{shown(one.itself)}"
        if _backwards(one.auroc):
            return "No", f"{ranks}, {beyond}"
        knows = "does not rank itself, nor is it shown to rank items"
        if above(one.items, 0.5) < ALPHA:
            knows = "ranks items, not itself"
        elif one.items.high < 0.5 + SMALL:
            knows = "ranks neither items nor itself"
        return "No", f"{knows}: AUROC {number(one.auroc.value)}, {beyond}"
    return "Cannot tell", f"{ranks}; beyond the items {shown(one.itself)}, too wide to say"


def _backwards(auroc: Estimate) -> str:
    """Word for higher chances that go with failures, where the whole interval says so."""
    return "backwards, " if auroc.high < 0.5 else ""


def _one_word(name: str) -> str:
    return name.replace(" ", "\N{NO-BREAK SPACE}")


def _notes(one: Facts) -> list[str]:
    """Sentences that say what the numbers license."""
    what = WHAT[one.question]
    if math.isnan(one.auroc.value):
        return []
    ranks = f"rank its {what} {_backwards(one.auroc)}with AUROC {shown(one.auroc)}"
    size = f"{one.rows} items" if one.n == one.rows else f"{one.rows} items in {one.n} clusters"
    few = "; so few clusters make intervals wide" if one.n < FEW and one.n < one.rows else ""
    notes = [f"Its stated chances {ranks} (n = {size}{few})."]
    others = next(each for each in one.predictors if each.name == OTHERS)
    if one.others:
        notes.append(f"{one.others} other models' results on the same items reach {shown(others.auroc)}.")
        notes.append(f"It reaches {shown(one.itself)} {ALIKE} ({p_value(one.p)}).")
        if above(one.items, 0.5) < ALPHA and not one.p < ALPHA:
            notes.append(f"This is knowledge of the items (others' results: {shown(one.items)}), not shown of itself.")
    rivals = [each for each in one.predictors if each.observer and not math.isnan(each.beyond.value)]
    if rivals:
        best = max(rivals, key=lambda each: each.beyond.value)
        notes.append(f"The best other observer there is {best.name} with {shown(best.beyond)}.")
    notes.append(f"Overconfidence {shown(one.over, sign=True)}; Brier score {number(one.brier.score)}.")
    return notes


COLUMNS = (
    *FINDING,
    Column("AUROC", lambda one: one.of.auroc.value, number),
    Column("others", lambda one: _reached(one.of, OTHERS).value, number),
    Column("beyond the items", lambda one: one.of.itself.value, number),
)


def _reached(one: Facts, name: str) -> Estimate:
    return next((each.auroc for each in one.predictors if each.name == name), undefined("not there"))


def _sources(one: Facts) -> dict[str, Estimate]:
    """Results of the sources of prediction on one model, as a picture shows them."""
    rivals = [each.auroc for each in one.predictors if each.observer and not math.isnan(each.auroc.value)]
    best = {"best other observer": max(rivals, key=lambda each: each.value)} if rivals else {}
    plain = {name: _reached(one, name) for name in (OTHERS, TEXT, LENGTH)}
    return {"itself": one.auroc, **best, **plain, "itself, beyond the items": one.itself}


def _bars(findings: Sequence[Finding]) -> Picture:
    ranked = [one for one in findings if not math.isnan(one.of.auroc.value)] or findings
    rows = {one.model: _sources(one.of) for one in ranked[: ROWS if len(findings) > 1 else 1]}
    if len(findings) > 1:
        kept = ("itself", "best other observer", OTHERS, "itself, beyond the items")
        rows = {name: {key: e for key, e in of.items() if key in kept} for name, of in rows.items()}
    caption = "AUROC of each source of prediction; 95 % intervals; .5 is nothing."
    return bar_rows("sources", rows, caption=caption, axis="AUROC", line=0.5)


def _calibration(findings: Sequence[Finding]) -> Picture:
    ranked = [one for one in findings if not math.isnan(one.of.auroc.value)] or findings
    lines = {one.model: one.of.bins for one in ranked[:3] if one.of.bins[0]}
    return calibration_curves(
        "calibration",
        lines,
        caption="Stated probability against what happened, in bins of as many items; 95 % intervals.",
        across="stated probability",
        up="share that happened",
    )


def _risks(findings: Sequence[Finding]) -> Picture:
    lines = {
        one.model: (list(one.of.risks), [undefined("", value=risk) for risk in one.of.risks.values()])
        for one in findings[:ROWS]
        if one.of.risks
    }
    return curves(
        "risk",
        lines,
        caption="Share that does not happen among the items with the highest chances.",
        across="share of items acted on",
        up="risk",
    )


def _scores(findings: Sequence[Finding]) -> Section:
    table = PageTable(
        findings,
        [
            FINDING[0],
            Column("items", lambda one: one.of.n, str),
            Column("share", lambda one: one.of.share, percent),
            Column("Brier", lambda one: one.of.brier.score, number),
            Column("miscalibration", lambda one: one.of.brier.miscalibration, lambda x: number(x, 3)),
            Column("discrimination", lambda one: one.of.brier.discrimination, lambda x: number(x, 3)),
            Column("uncertainty", lambda one: one.of.brier.uncertainty, lambda x: number(x, 3)),
            Column("log score", lambda one: one.of.log, number),
            estimated("overconfidence", lambda one: one.of.over),
            estimated("calibration error", lambda one: one.of.ece),
            Column("d′", lambda one: one.of.detection.d_prime, number),
            Column("criterion", lambda one: one.of.detection.criterion, number),
        ],
    )
    return Section("Scores", [table])


def _predictors(findings: Sequence[Finding]) -> Section:
    rows = [(one, each) for one in findings for each in one.of.predictors]
    table = PageTable(
        rows,
        [
            Column("model", lambda row: row[0].model),
            Column("predicted by", lambda row: row[1].name),
            estimated("AUROC", lambda row: row[1].auroc),
            estimated("beyond the items", lambda row: row[1].beyond),
            estimated("the model less it", lambda row: row[1].below),
        ],
    )
    return Section("Sources of prediction", [table])


def _verdict(question: str, matrix: OutcomeMatrix) -> list[Block]:
    if len(matrix.models) < 2 or np.isnan(matrix.means).all():
        return []
    picture = heat_map(
        f"matrix_{question}",
        matrix.means,
        list(matrix.models),
        caption="Mean score of every observer on every target beyond the items; .5 is nothing.",
    )
    said = matrix.verdict.sentence if matrix.verdict else "The matrix's verdict takes four models with all their cells."
    return [Section(f"Every observer on every target: {question}", [said, Figures([picture])])]


def _row(one: Finding) -> dict[str, Any]:
    of: Facts = one.of
    row: dict[str, Any] = {"run": of.run, "model": of.model, "question": of.question, "answer": one.answer}
    row |= {"clause": one.clause, "items": of.n, "share": of.share, "other_models": of.others, "p": of.p}
    for name, estimate in (("auroc", of.auroc), ("knows_items", of.items), ("beyond_items", of.itself)):
        row |= interval_columns(name, estimate)
    row |= {f"brier_{name}" if name != "score" else "brier": value for name, value in vars(of.brier).items()}
    row |= (
        {"log_score": of.log}
        | interval_columns("overconfidence", of.over)
        | interval_columns("calibration_error", of.ece)
    )
    row |= vars(of.detection)
    return row | {f"risk_at_{round(100 * coverage)}": risk for coverage, risk in of.risks.items()}


def _predictor_rows(one: Finding) -> Iterator[dict[str, Any]]:
    for each in one.of.predictors:
        keys = {"run": one.of.run, "question": one.of.question, "predicted_by": each.name}
        yield (
            keys
            | interval_columns("auroc", each.auroc)
            | interval_columns("beyond_items", each.beyond)
            | interval_columns("model_less_it", each.below)
        )


def _cells(question: str, matrix: OutcomeMatrix) -> Iterator[dict[str, Any]]:
    for t, target in enumerate(matrix.models):
        for o, observer in enumerate(matrix.models):
            yield {"question": question, "target": target, "observer": observer, "beyond_items": matrix.means[t, o]}
