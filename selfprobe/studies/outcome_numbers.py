"""Numbers and claims of `selfprobe outcome`: what is left of a statement beyond what other
observers state.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any, get_args

import numpy as np
import numpy.typing as npt

from selfprobe.data.outcomes import Question
from selfprobe.introspect_tasks.outcome import ANSWERS, OUTCOMES_OF
from selfprobe.logs import Run, titles
from selfprobe.page.claims import ClaimWords
from selfprobe.page.columns import Heading
from selfprobe.page.numerals import interval_text, number, p_value, percent
from selfprobe.page.plots import model_names
from selfprobe.solvers.record import record_of
from selfprobe.stats import foresight
from selfprobe.stats.agreement import ece, equal_mass
from selfprobe.stats.beyond_items import (
    STRATA_DRAWS,
    chances_without_own_outcomes,
    hidden_domains_p,
    statement_residuals,
    within_strata_p,
)
from selfprobe.stats.claim import (
    Check,
    Claim,
    Outcome,
    outcome_above_zero,
    outcome_if,
    remedy_unless_met,
)
from selfprobe.stats.dimensions import Dimensions, count_dimensions
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, holm, shifted, undefined
from selfprobe.stats.metacognition import (
    Metacognition,
    metacognition,
    undefined_metacognition,
)
from selfprobe.stats.text_only import best_reader, log_odds, read_by
from selfprobe.studies.outcome_reasoning import ReasonedAnswer, Reasoning, reasoning_of
from selfprobe.study import Logs
from selfprobe.text import busy
from selfprobe.text.counts import count_text

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
FEWEST_ITEMS = 20
"""Number of items below which nothing is said."""
FEWEST_OTHERS = 2
"""Number of other observers, and of other models with logs, below which what all know is not known.
"""
SMALLEST_EXCESS = 0.1
"""Excess of an AUROC over .5, or over a competitor's, that is too small to matter."""
BEYOND_ALPHA = 0.04
"""Level of the two-sided p that a statement knows something beyond the items."""
OBSERVERS_MARGIN = 0.03
"""AUROC by which a model may rank items better than the other observers together."""
CALIBRATION_BINS = 8
DRAWS_A_CASE = 100
"""Exchanges for each case whose p is corrected with the others: enough for the smallest one."""
OTHER_RESULTS = "other models' results"
TEXT_ALONE = "text alone"
INPUT_LENGTH = "length of the input"
OTHER_ASSISTANT = "about another assistant"
REASONING_TEXT = "text of its reasoning"
MOST_UNKNOWN_SHARE = 0.05
"""Share of statements after reasoning of which it is unknown whether it holds the answer."""
SUCCESS_QUESTION = "solve"
"""The question whose outcome is right or wrong: to refuse is not to be right."""
RARER_OUTCOMES_REMEDY = {
    "solve": "take harder items",
    "refuse": "add items that it does not refuse",
    "length": "choose --tokens above the length of some replies",
}
"""Question → what to do where the outcome is that of all items."""
MORE_OUTCOMES_REMEDY = {
    "solve": "take easier items",
    "refuse": "add items that it refuses",
    "length": "choose --tokens below the length of some replies",
}
"""Question → what to do where the outcome is that of no item."""
WHAT_HAPPENED = {"solve": "successes", "refuse": "refusals", "length": "long replies"}


# ---- what the logs say


@dataclass(frozen=True)
class StatementRow:
    """Stated chances, one row a statement."""

    run: Annotated[
        str, Heading("run", "Model that was asked, with settings that differ between runs.")
    ]
    about: Annotated[str, Heading("about", "Whom the prompt asked about: self, other or named.")]
    target: Annotated[str, Heading("target", "Model whose log the items are of.")]
    item: Annotated[str, Heading("item", "Id of the item.")]
    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    stated: Annotated[float | None, Heading("stated", "Stated chance; empty where none was read.")]
    outcome: Annotated[
        float | None, Heading("outcome", "What the log says, 0 to 1; empty if unknown.")
    ]
    unscored: Annotated[str | None, Heading("unscored", "Reason why a statement does not count.")]


@dataclass(frozen=True)
class ScoredChances:
    """What one run stated about itself, of the items with a chance and an outcome, `[item]`."""

    is_scored: BoolArray
    """Which of all items these are."""
    chances: FloatArray
    outcomes: FloatArray
    clusters: IntArray


@dataclass(frozen=True)
class StatedChances:
    """Stated chances and outcomes of all items, `[item]` in the order of `items`."""

    items: tuple[str, ...]
    texts: Mapping[str, tuple[str, ...]]
    """Target → what its observers were shown of each item: after the reply, the target's own."""
    clusters: IntArray
    questions: tuple[str, ...]
    observers: Mapping[str, str]
    """Name of a run → its model."""
    outcomes: Mapping[tuple[str, str], FloatArray]
    """(model, question) → outcomes, NaN where unknown."""
    chances: Mapping[tuple[str, str, str, str], FloatArray]
    """(run, about, target or "" for all, question) → chances."""
    rows: Sequence[StatementRow] = ()
    notes: Sequence[str] = ()
    """Sentences on which logs, scorers and items count."""
    reasoning: Mapping[tuple[str, str], Reasoning] = field(default_factory=dict)
    """(run, question) → its reasoning before statements about itself, of runs that reasoned."""

    def about(self, run: str, about: str, target: str, question: str) -> FloatArray | None:
        """Chances that a run stated about a target, where the prompt names or shows it; else about
        all alike.
        """
        target_chances = self.chances.get((run, about, target, question))
        if target_chances is not None:
            return target_chances
        return self.chances.get((run, about, "", question))

    def about_itself(self, run: str, question: str) -> FloatArray | None:
        """Chances that a run stated about itself; None without an outcome of its model."""
        model = self.observers[run]
        if (model, question) not in self.outcomes:
            return None
        return self.about(run, "self", model, question)

    def scored(self, run: str, question: str) -> ScoredChances:
        """The same where the outcome is known too, of a run with `about_itself`."""
        chances = self.about_itself(run, question)
        assert chances is not None, run
        outcomes = self.outcomes[self.observers[run], question]
        is_scored = ~np.isnan(chances) & ~np.isnan(outcomes)
        return ScoredChances(
            is_scored, chances[is_scored], outcomes[is_scored], self.clusters[is_scored]
        )

    def about_target(self, run: str, target: str, question: str) -> FloatArray | None:
        """Chances that another observer stated, the best informed prompt first."""
        for prompt_kind in ("named", "self", "other"):
            chances = self.about(run, prompt_kind, target, question)
            if chances is not None:
                return chances
        return None

    def outcomes_of_others(self, model: str, question: str) -> dict[str, FloatArray]:
        """Other model → outcomes."""
        return {
            other_model: outcomes
            for (other_model, outcome_question), outcomes in self.outcomes.items()
            if outcome_question == question and other_model != model
        }

    def strata(
        self, model: str, question: str, in_strata: BoolArray, *, excluded_observer: str = ""
    ) -> IntArray:
        """Strata of the items `in_strata` on which as many models succeeded: the one meaning of
        "beyond the items".

        Every model with outcomes counts, asked or not, except an observer of another model
        (`excluded_observer`): what it knows of itself does not count against it.
        """
        row_by_model = self._rows_by_question[question]
        results = self._results_by_question[question][:, in_strata]
        has_results = np.any(~np.isnan(results), axis=1)
        counted_rows = [row_by_model[model]]
        for other_model, row in row_by_model.items():
            if other_model not in (model, excluded_observer) and has_results[row]:
                counted_rows.append(row)
        return foresight.solved_alike(results[counted_rows])

    @cached_property
    def dimensions_by_question(self) -> dict[str, Dimensions]:
        """Question → dimensions of what models state about themselves."""
        return {question: self._dimensions(question) for question in self.questions}

    def _dimensions(self, question: str) -> Dimensions:
        """The first run of each model counts."""
        chances_by_model: dict[str, FloatArray] = {}
        for run, model in self.observers.items():
            chances = self.about(run, "self", model, question)
            if chances is not None and not np.isnan(chances).all():
                chances_by_model.setdefault(model, chances)
        model_chances = np.array(list(chances_by_model.values()))
        return count_dimensions(
            model_chances.reshape(len(chances_by_model), len(self.items)), self.clusters
        )

    def domains_p(self, question: str) -> float:
        """p that models differ in skill and items in difficulty alone; NaN where outcomes are
        graded or models few.
        """
        results = self._results_by_question[question]
        is_complete = ~np.isnan(results).any(axis=0)
        complete_results = results[:, is_complete]
        if not complete_results.size or not np.isin(complete_results, (0, 1)).all():
            return math.nan
        return hidden_domains_p(complete_results, rng=np.random.default_rng(0))

    @cached_property
    def _rows_by_question(self) -> dict[str, dict[str, int]]:
        """Question → model → its row in `_results_by_question`."""
        rows_by_question: dict[str, dict[str, int]] = {}
        for model, question in self.outcomes:
            row_by_model = rows_by_question.setdefault(question, {})
            row_by_model[model] = len(row_by_model)
        return rows_by_question

    @cached_property
    def _results_by_question(self) -> dict[str, FloatArray]:
        """Question → outcomes [model, item]."""
        results_by_question = {}
        for question, row_by_model in self._rows_by_question.items():
            model_results = [self.outcomes[model, question] for model in row_by_model]
            results_by_question[question] = np.array(model_results)
        return results_by_question


def stated_chances(logs: Logs) -> StatedChances:
    """Statements and outcomes of the finished runs; the newest of those that several runs have."""
    chances: dict[tuple[str, str, str, str], dict[str, float]] = defaultdict(dict)
    outcomes: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    texts_by_target: dict[str, dict[str, str]] = defaultdict(dict)
    cluster_by_item: dict[str, str] = {}
    rows: list[StatementRow] = []
    notes: list[str] = []
    reasoned_by_case: dict[tuple[str, str], dict[str, ReasonedAnswer]] = defaultdict(dict)

    oldest_first = list(reversed(logs.runs.finished))
    name_by_log = _run_names(oldest_first)
    for run in oldest_first:
        run_name = name_by_log[run.log]
        args = dict(run.identity.args)
        subject = args.get("about", "self")
        run_metadata = run.header.eval.metadata or {}
        target = str(run_metadata.get("outcome_of"))
        notes += run_metadata.get("notes", ())
        is_after = args.get("when") == "after"
        is_bound = subject == "named" or is_after
        judged_samples = run.judged_samples()
        has_reasoned = any(
            decision.reasoned for sample in judged_samples for decision in sample.decisions
        )
        if subject == "self" and has_reasoned:
            for item, question, reasoned in _reasoned_answers(run, has_seen_reply=is_after):
                reasoned_by_case[run_name, question][item] = reasoned
        for sample in judged_samples:
            item = sample.item
            metadata = sample.summary.metadata or {}
            texts_by_target[target][item] = str(sample.summary.input)
            cluster_by_item[item] = str(metadata.get("cluster") or item)
            for name, value in metadata.items():
                if name.startswith(OUTCOMES_OF) and isinstance(value, dict):
                    model = name.removeprefix(OUTCOMES_OF)
                    for question, outcome in value.items():
                        outcomes[model, question][item] = float(outcome)
            for decision in sample.decisions:
                probability = decision.probability
                chance_key = (run_name, subject, target if is_bound else "", decision.key)
                chance_by_item = chances[chance_key]
                if probability is not None:
                    chance_by_item[item] = probability
                row = StatementRow(
                    run=run_name,
                    about=subject,
                    target=target,
                    item=item,
                    question=decision.key,
                    stated=probability,
                    outcome=None if decision.truth is None else float(decision.truth),
                    unscored=decision.unscored,
                )
                rows.append(row)

    items = tuple(sorted(cluster_by_item))
    item_texts = {}
    for target, text_by_item in texts_by_target.items():
        item_texts[target] = tuple(text_by_item.get(item, "") for item in items)
    item_clusters = [cluster_by_item[item] for item in items]

    identity_order = list(logs.names)
    ordered_runs = sorted(oldest_first, key=lambda run: identity_order.index(run.identity))
    stated_questions = {question for *_, question in chances}
    questions = tuple(name for name in get_args(Question) if name in stated_questions)
    observer_by_run = {name_by_log[run.log]: run.identity.model for run in ordered_runs}
    item_outcomes = {key: _by_item(values, items) for key, values in outcomes.items()}
    item_chances = {key: _by_item(values, items) for key, values in chances.items()}
    reasoning = {}
    for key, reasoned_by_item in reasoned_by_case.items():
        reasoned_items = [reasoned_by_item.get(item, ReasonedAnswer()) for item in items]
        reasoning[key] = reasoning_of(reasoned_items)
    rows.sort(key=lambda row: (row.run, row.about, row.target))
    return StatedChances(
        items=items,
        texts=item_texts,
        clusters=np.unique(item_clusters, return_inverse=True)[1],
        questions=questions,
        observers=observer_by_run,
        outcomes=item_outcomes,
        chances=item_chances,
        rows=rows,
        notes=list(dict.fromkeys(notes)),
        reasoning=reasoning,
    )


def _reasoned_answers(
    run: Run, *, has_seen_reply: bool
) -> Iterator[tuple[str, str, ReasonedAnswer]]:
    """Item, question and reasoning of each reply of a run; no answer is searched for where the
    reply was shown, since reasoning may quote it.
    """
    for sample in run.read_samples():
        answers = () if has_seen_reply else (sample.metadata or {}).get(ANSWERS, ())
        for question, reply in record_of(sample).answers.items():
            reasoned = ReasonedAnswer(
                text=reply.reasoning or "",
                has_reasoning=reply.reasoned,
                item_text=str(sample.input),
                answers=answers,
            )
            yield str(sample.id), question, reasoned


def _run_names(runs: Sequence[Run]) -> dict[str, str]:
    """Log → name of its run, without what says about whom and how much was asked."""
    identity_by_log = {}
    for run in runs:
        naming_args = tuple(
            (name, value)
            for name, value in run.identity.args
            if name not in ("about", "target", "ask")
        )
        identity_by_log[run.log] = replace(run.identity, args=naming_args, data="")

    full_names = model_names(list(dict.fromkeys(run.identity.model for run in runs)))
    name_by_identity = {}
    for identity, title in titles(identity_by_log.values()).items():
        full_name = full_names[identity.model]
        name_by_identity[identity] = title.replace(identity.model, full_name, 1)
    return {log: name_by_identity[identity] for log, identity in identity_by_log.items()}


def _by_item(values: Mapping[str, float], items: Sequence[str]) -> FloatArray:
    return np.array([values.get(item, math.nan) for item in items])


# ---- numbers


@dataclass(frozen=True)
class Predictor:
    """Numbers of one source of prediction on a model's outcomes."""

    name: str
    auroc: Estimate
    in_strata: Estimate
    """AUROC among items on which as many models succeeded."""
    beyond_observers: Estimate
    """The same of what is left of it beyond what the other observers state; of another source than
    an observer `in_strata`.
    """
    below: Estimate
    """`OutcomeFacts.beyond_observers` less this one's."""
    is_observer: bool
    """Whether the source is another model that was asked."""


@dataclass(frozen=True)
class OtherTarget:
    """A placebo: what is left of a model's statement, scored on another model's outcomes."""

    model: str
    auroc: Estimate
    """AUROC among items on which as many models succeeded."""
    below: Estimate
    """AUROC on the model's own outcomes less this one."""


@dataclass(frozen=True)
class SolvedFacts:
    """Statements before which the model solved the item in its reasoning, and what is left."""

    solved: Estimate
    """Share of statements whose reasoning holds an answer to the item."""
    unknown_share: float
    """Share of statements after reasoning that is hidden or cannot be searched for an answer; 0
    where nothing was reasoned.
    """
    auroc: Estimate
    """AUROC without the solved items."""
    beyond_observers: Estimate
    """The same beyond the other observers, among items on which as many models succeeded."""

    @property
    def is_reasoned(self) -> bool:
        """Whether anything was reasoned."""
        return self.unknown_share > 0 or not math.isnan(self.solved.value)


NOTHING_REASONED = undefined("nothing was reasoned")
NO_REASONING_FACTS = SolvedFacts(NOTHING_REASONED, 0.0, NOTHING_REASONED, NOTHING_REASONED)


@dataclass(frozen=True)
class OutcomeFacts:
    """One model on one question."""

    run: str
    model: str
    question: str
    n: int
    """Number of clusters, or of items where none are named."""
    items: int
    share: float
    """Share of its items that happened."""
    distinct_chances: int
    """Number of different chances that it states of them."""
    auroc: Estimate
    knows_items: Estimate
    """AUROC of its chances for the other models' outcomes."""
    in_strata: Estimate
    """AUROC of its chances among items on which as many models succeeded."""
    beyond_observers: Estimate
    """The same of what is left of its chances beyond what the other observers state; without any,
    `in_strata`.
    """
    over_observers: Estimate
    """`knows_items` less the AUROC that the other observers together reach for these outcomes."""
    predictors: tuple[Predictor, ...]
    other_targets: tuple[OtherTarget, ...]
    brier: foresight.Brier
    log_score: float
    overconfidence: Estimate
    calibration_error: Estimate
    detection: foresight.Detection
    risks: Mapping[float, float]
    bins: tuple[Sequence[float], Sequence[Estimate]]
    """Mean stated chance of each bin, and what happened."""
    others: int
    """Number of other models with outcomes."""
    observers: int
    """Number of other models that were asked."""
    p_value: float
    """p of `beyond_observers`, twice that of its one side; of one model and question until
    `corrected` has seen all.
    """
    solved: SolvedFacts
    metacognition: Metacognition
    """Sensitivities, of `SUCCESS_QUESTION` alone."""


@dataclass(frozen=True)
class _Statement:
    """Scores of one source for a model's outcomes, [item]."""

    scores: FloatArray
    residuals: FloatArray
    """What is left of them beyond what other observers state; the scores themselves without any."""
    strata: IntArray


@dataclass(frozen=True)
class _Case:
    """One run on one question, beside what others did and stated on its scored items, `[item]`."""

    run: str
    model: str
    question: str
    scored: ScoredChances
    statement: _Statement
    other_outcomes: Mapping[str, FloatArray]
    """Other model → its outcomes."""
    other_share: FloatArray
    """Mean of the other models' outcomes."""
    observer_chances: Mapping[str, FloatArray]
    """Run of another model → what it states about this one."""
    item_chances: Mapping[str, FloatArray]
    """The same, less what they tell of the observer's own outcomes."""


def outcome_facts(
    stated: StatedChances, run: str, question: str, *, draws: int = STRATA_DRAWS
) -> OutcomeFacts:
    """The numbers of one model on one question.

    Args:
        stated: Statements and outcomes.
        run: Name of the model's run, which stated something about itself.
        question: What was asked.
        draws: Number of exchanges behind the p, where items are independent.
    """
    busy.set_stage(f"{run}: {question}")
    case = _case(stated, run, question)
    scored = case.scored
    outcome_share = math.nan
    if len(scored.outcomes):
        outcome_share = float(scored.outcomes.mean())

    knows_items = in_strata = beyond_observers = undefined("no other model's log is there")
    beyond_p = math.nan
    if case.other_outcomes:
        knows_items = _knows_items(case)
        in_strata = _stratified(
            scored.chances, scored.outcomes, scored.clusters, case.statement.strata
        )
        beyond_observers = _stratified(
            case.statement.residuals, scored.outcomes, scored.clusters, case.statement.strata
        )
        beyond_p = _beyond_p(
            case.statement, scored.outcomes, scored.clusters, beyond_observers, draws
        )
    observers = {stated.observers[observer_run] for observer_run in case.observer_chances}
    return OutcomeFacts(
        run=run,
        model=case.model,
        question=question,
        n=len(np.unique(scored.clusters)),
        items=len(scored.clusters),
        share=outcome_share,
        distinct_chances=len(np.unique(scored.chances)),
        auroc=foresight.stratified_auroc(scored.chances, scored.outcomes, scored.clusters),
        knows_items=knows_items,
        in_strata=in_strata,
        beyond_observers=beyond_observers,
        over_observers=_over_observers(case),
        predictors=(
            *_results_predictors(case),
            *_observer_predictors(stated, case),
            *_plain_predictors(stated, case),
        ),
        other_targets=_other_targets(stated, case),
        others=len(case.other_outcomes),
        observers=len(observers),
        p_value=beyond_p,
        solved=_solved_facts(stated, case),
        metacognition=_case_metacognition(case),
        **_calibration(scored),
    )


def _case(stated: StatedChances, run: str, question: str) -> _Case:
    model = stated.observers[run]
    scored = stated.scored(run, question)
    own_strata = stated.strata(model, question, scored.is_scored)

    other_outcomes = {}
    for other_model, model_outcomes in stated.outcomes_of_others(model, question).items():
        if not np.isnan(model_outcomes[scored.is_scored]).all():
            other_outcomes[other_model] = model_outcomes[scored.is_scored]
    results_shape = len(other_outcomes), len(scored.outcomes)
    other_results = np.array(list(other_outcomes.values())).reshape(results_shape)
    other_strata = foresight.solved_alike(other_results) if other_outcomes else own_strata

    observer_chances = {}
    item_chances = {}
    for observer_run, observer in stated.observers.items():
        all_chances = stated.about_target(observer_run, model, question)
        if observer == model or all_chances is None:
            continue
        run_chances = all_chances[scored.is_scored]
        if np.isnan(run_chances).all():
            continue
        observer_chances[observer_run] = run_chances
        no_outcomes = np.full(len(scored.outcomes), math.nan)
        item_chances[observer_run] = chances_without_own_outcomes(
            run_chances, other_outcomes.get(observer, no_outcomes), other_strata
        )
    own_residuals = _residuals(scored.chances, list(item_chances.values()))
    return _Case(
        run=run,
        model=model,
        question=question,
        scored=scored,
        statement=_Statement(scored.chances, own_residuals, own_strata),
        other_outcomes=other_outcomes,
        other_share=foresight.mean_of(other_results),
        observer_chances=observer_chances,
        item_chances=item_chances,
    )


def _knows_items(case: _Case) -> Estimate:
    has_others = ~np.isnan(case.other_share)
    return foresight.stratified_auroc(
        case.scored.chances[has_others],
        case.other_share[has_others],
        case.scored.clusters[has_others],
    )


def _results_predictors(case: _Case) -> list[Predictor]:
    """The other models' mean result; none without another model."""
    if not case.other_outcomes:
        return []
    has_others = ~np.isnan(case.other_share)
    results_auroc = foresight.stratified_auroc(
        case.other_share[has_others],
        case.scored.outcomes[has_others],
        case.scored.clusters[has_others],
    )
    fixed = undefined("the strata hold these results fixed")
    return [Predictor(OTHER_RESULTS, results_auroc, fixed, fixed, fixed, is_observer=False)]


def _observer_predictors(stated: StatedChances, case: _Case) -> list[Predictor]:
    predictors = []
    for observer_run, run_chances in case.observer_chances.items():
        observer = stated.observers[observer_run]
        further_chances = []
        for further_run, chances in case.item_chances.items():
            if stated.observers[further_run] != observer:
                further_chances.append(chances)
        strata = stated.strata(
            case.model, case.question, case.scored.is_scored, excluded_observer=observer
        )
        residuals = _residuals(run_chances, further_chances)
        statement = _Statement(run_chances, residuals, strata)
        predictors.append(_predictor(case, observer_run, statement, is_observer=True))
    return predictors


def _plain_predictors(stated: StatedChances, case: _Case) -> list[Predictor]:
    """Statements about another assistant, and readers of the reasoning and of the text."""
    scored = case.scored
    scored_indices = np.flatnonzero(scored.is_scored)
    scores_by_source = {}
    other_assistant_chances = stated.about(case.run, "other", case.model, case.question)
    if other_assistant_chances is not None:
        scores_by_source[OTHER_ASSISTANT] = other_assistant_chances[scored.is_scored]
    reasoning = stated.reasoning.get((case.run, case.question))
    if reasoning is not None:
        reasoning_texts = [reasoning.texts[index] for index in scored_indices]
        if any(reasoning_texts):
            fold_groups = _fold_groups(reasoning_texts, scored.clusters)
            reader = best_reader(read_by(reasoning_texts), scored.outcomes >= 0.5, fold_groups)
            scores_by_source[REASONING_TEXT] = reader.scores
    texts = [stated.texts[case.model][index] for index in scored_indices]
    scores_by_source |= _scores_of_text(texts, scored.outcomes, scored.clusters)

    predictors = []
    for source_name, scores in scores_by_source.items():
        statement = _Statement(scores, scores, case.statement.strata)
        predictors.append(_predictor(case, source_name, statement, is_observer=False))
    return predictors


def _case_metacognition(case: _Case) -> Metacognition:
    if case.question != SUCCESS_QUESTION:
        return undefined_metacognition("only being right has a d′")
    scored = case.scored
    return metacognition(scored.chances, scored.outcomes, scored.clusters)


def _residuals(chances: FloatArray, observer_chances: Sequence[FloatArray]) -> FloatArray:
    if not observer_chances:
        return chances
    return statement_residuals(chances, np.array(observer_chances))


def _stratified(
    scores: FloatArray, outcomes: FloatArray, clusters: IntArray, strata: IntArray
) -> Estimate:
    """AUROC among the items of a stratum with a score."""
    is_known = ~np.isnan(scores)
    return foresight.stratified_auroc(
        scores[is_known], outcomes[is_known], clusters[is_known], strata[is_known]
    )


def _predictor(case: _Case, name: str, statement: _Statement, *, is_observer: bool) -> Predictor:
    """Numbers that a source reaches for the outcomes of a case."""
    outcomes = case.scored.outcomes
    clusters = case.scored.clusters
    one_stratum = np.zeros(len(outcomes), dtype=np.intp)
    is_known = ~np.isnan(statement.residuals) & ~np.isnan(case.statement.residuals)
    known_outcomes = outcomes[is_known]
    own_pairs = foresight.ordered(
        case.statement.residuals[is_known], known_outcomes, case.statement.strata[is_known]
    )
    source_pairs = foresight.ordered(
        statement.residuals[is_known], known_outcomes, statement.strata[is_known]
    )
    return Predictor(
        name,
        auroc=_stratified(statement.scores, outcomes, clusters, one_stratum),
        in_strata=_stratified(statement.scores, outcomes, clusters, statement.strata),
        beyond_observers=_stratified(statement.residuals, outcomes, clusters, statement.strata),
        below=foresight.auroc_above(own_pairs, source_pairs, clusters[is_known], known_outcomes),
        is_observer=is_observer,
    )


def _other_targets(stated: StatedChances, case: _Case) -> tuple[OtherTarget, ...]:
    run_by_model = {model: run for run, model in stated.observers.items()}
    other_targets = []
    for other_model, target_outcomes in case.other_outcomes.items():
        target_name = run_by_model.get(other_model, other_model)
        other_targets.append(_other_target(case, target_name, target_outcomes))
    return tuple(other_targets)


def _other_target(case: _Case, name: str, target_outcomes: FloatArray) -> OtherTarget:
    is_known = ~np.isnan(case.statement.residuals) & ~np.isnan(target_outcomes)
    residuals = case.statement.residuals[is_known]
    strata = case.statement.strata[is_known]
    clusters = case.scored.clusters[is_known]
    own_outcomes = case.scored.outcomes[is_known]
    known_target_outcomes = target_outcomes[is_known]
    own_pairs = foresight.ordered(residuals, own_outcomes, strata)
    target_pairs = foresight.ordered(residuals, known_target_outcomes, strata)
    return OtherTarget(
        name,
        auroc=_stratified(residuals, known_target_outcomes, clusters, strata),
        below=foresight.auroc_above(own_pairs, target_pairs, clusters, own_outcomes),
    )


def _over_observers(case: _Case) -> Estimate:
    """AUROC of a model's chances for the other models' outcomes, less that of the observers' mean
    chance.
    """
    if not case.item_chances:
        return undefined("no other model was asked")
    mean_chances = foresight.mean_of(np.array(list(case.item_chances.values())))
    is_known = ~np.isnan(mean_chances) & ~np.isnan(case.other_share)
    known_share = case.other_share[is_known]
    own_pairs = foresight.ordered(case.scored.chances[is_known], known_share)
    observer_pairs = foresight.ordered(mean_chances[is_known], known_share)
    return foresight.auroc_above(own_pairs, observer_pairs, case.scored.clusters[is_known])


def _beyond_p(
    own_statement: _Statement,
    outcomes: FloatArray,
    clusters: IntArray,
    beyond_observers: Estimate,
    draws: int,
) -> float:
    """p that what is left of a statement does not rank the outcomes in their strata: twice that of
    its one side, as an interval has two.
    """
    if len(np.unique(clusters)) < len(clusters):
        return min(1.0, 2 * foresight.above(beyond_observers, 0.5))
    is_known = ~np.isnan(own_statement.residuals)
    if not is_known.any():
        return math.nan
    one_sided_p = within_strata_p(
        own_statement.residuals[is_known],
        outcomes[is_known],
        own_statement.strata[is_known],
        rng=np.random.default_rng(0),
        draws=draws,
    )
    return min(1.0, 2 * one_sided_p)


def _scores_of_text(
    texts: Sequence[str], outcomes: FloatArray, clusters: IntArray
) -> dict[str, FloatArray]:
    """Scores of the text and of its length for the outcomes; the direction of the length is the one
    that fits.
    """
    lengths = np.array([len(text) for text in texts], dtype=float)
    is_reversed = foresight.ordered(lengths, outcomes).auroc < 0.5
    return {
        TEXT_ALONE: log_odds(texts, outcomes >= 0.5, _fold_groups(texts, clusters)),
        INPUT_LENGTH: -lengths if is_reversed else lengths,
    }


def _fold_groups(texts: Sequence[str], clusters: IntArray) -> IntArray:
    """Groups of items that a reader of the texts never sees on both sides: clusters, or equal texts
    where these are fewer.
    """
    text_array = np.array(texts, dtype=object).astype(str)
    text_indices = np.unique(text_array, return_inverse=True)[1]
    has_fewer_clusters = len(np.unique(clusters)) < len(np.unique(text_indices))
    return clusters if has_fewer_clusters else np.asarray(text_indices, dtype=np.intp)


def _solved_facts(stated: StatedChances, case: _Case) -> SolvedFacts:
    """How many items were solved in the reasoning, and the AUROCs of those that were not."""
    scored = case.scored
    reasoning = stated.reasoning.get((case.run, case.question))
    if reasoning is None or not reasoning.has_reasoning[scored.is_scored].any():
        return NO_REASONING_FACTS

    has_reasoning = reasoning.has_reasoning[scored.is_scored]
    answer_flags = np.where(has_reasoning, reasoning.answer_flags[scored.is_scored], 0.0)
    solved = clustered_mean(answer_flags, scored.clusters)
    unknown_share = float(np.isnan(answer_flags).mean())
    if unknown_share > MOST_UNKNOWN_SHARE:
        unknown = undefined("unknown")
        return SolvedFacts(solved, unknown_share, unknown, unknown)

    is_unsolved = answer_flags != 1
    chances = scored.chances[is_unsolved]
    outcomes = scored.outcomes[is_unsolved]
    clusters = scored.clusters[is_unsolved]
    strata = case.statement.strata[is_unsolved]
    one_stratum = np.zeros(len(outcomes), dtype=np.intp)
    observer_chances = [all_chances[is_unsolved] for all_chances in case.item_chances.values()]
    residuals = _residuals(chances, observer_chances)
    return SolvedFacts(
        solved,
        unknown_share,
        auroc=_stratified(chances, outcomes, clusters, one_stratum),
        beyond_observers=_stratified(residuals, outcomes, clusters, strata),
    )


def _calibration(scored: ScoredChances) -> dict[str, Any]:
    """Fields of `OutcomeFacts` on how good the chances are."""
    chances = scored.chances
    outcomes = scored.outcomes
    clusters = scored.clusters
    brier = foresight.Brier(*[math.nan] * 4)
    log_score = math.nan
    risks: Mapping[float, float] = {}
    mean_chances: list[float] = []
    outcome_shares: list[Estimate] = []
    if len(chances):
        brier = foresight.brier(chances, outcomes)
        log_score = foresight.log_score(chances, outcomes)
        risks = foresight.risks(chances, outcomes)
        bin_by_item = equal_mass(chances, CALIBRATION_BINS)
        for bin_number in np.unique(bin_by_item):
            in_bin = bin_by_item == bin_number
            mean_chances.append(float(chances[in_bin].mean()))
            outcome_shares.append(clustered_mean(outcomes[in_bin], clusters[in_bin]))
    return {
        "brier": brier,
        "log_score": log_score,
        "overconfidence": foresight.overconfidence(chances, outcomes, clusters),
        "calibration_error": ece(chances, outcomes, clusters, unit="item"),
        "detection": foresight.detection(chances, outcomes),
        "risks": risks,
        "bins": (mean_chances, outcome_shares),
    }


def all_facts(stated: StatedChances) -> list[OutcomeFacts]:
    """The numbers of every model that was asked about itself, with p corrected for all models and
    questions.
    """
    cases = []
    for question in stated.questions:
        for run in stated.observers:
            if stated.about_itself(run, question) is not None:
                cases.append((run, question))
    draws = max(STRATA_DRAWS, DRAWS_A_CASE * len(cases))
    return corrected([outcome_facts(stated, run, question, draws=draws) for run, question in cases])


def corrected(all_cases: Sequence[OutcomeFacts]) -> list[OutcomeFacts]:
    """Facts with p corrected for all of them (Holm)."""
    p_values = holm([facts.p_value for facts in all_cases])
    return [replace(facts, p_value=float(p)) for facts, p in zip(all_cases, p_values, strict=True)]


@dataclass(frozen=True)
class CrossMeans:
    """Mean scores of every observer on every target, beyond the items."""

    models: tuple[str, ...]
    means: FloatArray
    """Means [target, observer]."""


def cross_means(stated: StatedChances, question: str) -> CrossMeans:
    """Scores beyond the items of all observers on all targets that were both."""
    run_by_model: dict[str, str] = {}
    for run, model in stated.observers.items():
        own_chances = stated.about_itself(run, question)
        if own_chances is not None and not np.isnan(own_chances).all():
            run_by_model.setdefault(model, run)
    models = tuple(sorted(run_by_model))
    means = np.full((len(models), len(models)), math.nan)
    outcomes = np.array([stated.outcomes[model, question] for model in models])
    is_complete = ~np.isnan(outcomes.reshape(len(models), len(stated.items))).any(axis=0)
    if len(models) < 2 or not is_complete.any():
        return CrossMeans(models, means)

    clusters = stated.clusters[is_complete]
    for target_index, target in enumerate(models):
        target_outcomes = outcomes[target_index][is_complete]
        for observer_index, observer in enumerate(models):
            run = run_by_model[observer]
            if observer == target:
                chances = stated.about_itself(run, question)
                strata = stated.strata(target, question, is_complete)
            else:
                chances = stated.about_target(run, target, question)
                strata = stated.strata(target, question, is_complete, excluded_observer=observer)
            if chances is None:
                continue
            complete_chances = chances[is_complete]
            is_known = ~np.isnan(complete_chances)
            pairs = foresight.ordered(
                complete_chances[is_known], target_outcomes[is_known], strata[is_known]
            )
            means[target_index, observer_index] = _mean_of_clusters(
                pairs.scores, clusters[is_known]
            )
    return CrossMeans(models, means)


def _mean_of_clusters(scores: FloatArray, clusters: IntArray) -> float:
    """Mean over clusters of the mean of their known scores; NaN where nothing is known."""
    is_known = ~np.isnan(scores)
    if not is_known.any():
        return math.nan
    cluster_indices = np.unique(clusters[is_known], return_inverse=True)[1]
    cluster_means = np.bincount(cluster_indices, scores[is_known]) / np.bincount(cluster_indices)
    return float(cluster_means.mean())


# ---- the claim


def write_auroc(excess: Estimate) -> str:
    """An excess over .5 as the AUROC."""
    return interval_text(shifted(excess, 0.5))


def write_known_auroc(excess: Estimate) -> str:
    """The AUROC, or a dash; why there is none stands in the tables."""
    return "–" if math.isnan(excess.value) else write_auroc(excess)


def write_count(noun: str, count: Estimate) -> str:
    """A number of models or items with its noun; a dash where there is none."""
    return "–" if math.isnan(count.value) else count_text(int(count.value), noun)


def write_difference(difference: Estimate) -> str:
    """A difference of two AUROCs."""
    return interval_text(difference, sign=True)


NOT_ABOVE_COMPETITOR = (
    "ranks its {outcomes} beyond the items with AUROC {effect}, not shown to be above {competitor}"
)
OUTCOME_WORDS = ClaimWords(
    yes="ranks its {outcomes} beyond the items with AUROC {effect}; next is {competitor}",
    no="ranks its {outcomes} with AUROC {auroc}, and beyond the items with {effect}",
    explained="ranks its {outcomes} beyond the items no better than {competitor}",
    checks={
        "items": "asked about enough items",
        "outcomes": "of outcomes that differ",
        "other_logs": "compared with two other models' results",
        "beyond": "ranking its outcomes beyond the items and what others state",
        "observers": "beside two other observers",
        "informed_observers": "beside observers who know the items as well",
        "unsolved": "without having solved the items while asked",
        "above_observers": "above every other observer",
        "above_reasoning": "above a reader of its reasoning",
        "above_text": "above the text alone",
        "above_length": "above the length of the input",
        "above_other_assistant": "above what it states about another assistant",
        "own_outcomes": "ranking its own outcomes better than any other model's",
    },
    unmet={
        "items": "has {difference} with an answer and an outcome",
        "outcomes": "has {outcomes} at {share} of its items: outcomes do not differ",
        "other_logs": ("ranks its {outcomes} with AUROC {auroc}, beside logs of {difference}"),
        "beyond": (
            "ranks its {outcomes} with AUROC {auroc}; beyond the items this is not shown: "
            "{bare_difference} ({p})"
        ),
        "observers": (
            "ranks its {outcomes} beyond the items with AUROC {effect}, beside {difference}"
        ),
        "informed_observers": (
            "ranks its {outcomes} beyond the items with AUROC {effect}; other observers know the "
            "items less ({difference})"
        ),
        "unsolved": ("ranks its {outcomes} beyond the items with AUROC {effect}; {unsolved}"),
        "above_observers": NOT_ABOVE_COMPETITOR,
        "above_reasoning": NOT_ABOVE_COMPETITOR,
        "above_text": NOT_ABOVE_COMPETITOR,
        "above_length": NOT_ABOVE_COMPETITOR,
        "above_other_assistant": NOT_ABOVE_COMPETITOR,
        "own_outcomes": NOT_ABOVE_COMPETITOR,
    },
    write=write_auroc,
    units={
        "items": partial(write_count, "item"),
        "other_logs": partial(write_count, "other model"),
        "beyond": write_known_auroc,
        "observers": partial(write_count, "other observer"),
        "informed_observers": write_difference,
        "unsolved": write_known_auroc,
        "above_observers": write_difference,
        "above_reasoning": write_difference,
        "above_text": write_difference,
        "above_length": write_difference,
        "above_other_assistant": write_difference,
        "own_outcomes": write_difference,
    },
)
REASONING_CHECK = "above_reasoning"
CHECK_OF_SOURCE = {
    REASONING_TEXT: REASONING_CHECK,
    TEXT_ALONE: "above_text",
    INPUT_LENGTH: "above_length",
    OTHER_ASSISTANT: "above_other_assistant",
}


def outcome_claim(facts: OutcomeFacts, subject: str) -> Claim:
    """The claim that a model knows in advance what it can do, beyond what the items tell everybody.

    Args:
        facts: Its numbers, with p corrected for all models and questions.
        subject: The model's name on the page.
    """
    effect = shifted(facts.beyond_observers, -0.5)
    is_beyond = facts.p_value < BEYOND_ALPHA and effect.value > 0
    overall_excess = shifted(facts.auroc, -0.5)
    outcomes_differ = not math.isnan(overall_excess.value)
    is_observed_as_well = facts.over_observers.value < OBSERVERS_MARGIN
    sample_remedy = _sample_remedy(facts)
    checks = [
        _count_check("items", facts.n, FEWEST_ITEMS, f"{FEWEST_ITEMS} are the least"),
        _open_check("outcomes", overall_excess, outcomes_differ, sample_remedy),
        _count_check("other_logs", facts.others, FEWEST_OTHERS, "add logs of two others"),
        _open_check("beyond", effect, is_beyond, sample_remedy, p_value=facts.p_value),
        _count_check("observers", facts.observers, FEWEST_OTHERS, "ask two other models"),
        _open_check(
            "informed_observers", facts.over_observers, is_observed_as_well, "ask stronger models"
        ),
        *_unsolved_checks(facts.solved),
        *_source_checks(facts, has_effect=is_beyond, remedy=sample_remedy),
    ]
    details = {
        "unsolved": solved_text(facts.solved, facts.solved.beyond_observers),
        "outcomes": WHAT_HAPPENED[facts.question],
        "auroc": write_auroc(overall_excess),
        "share": percent(facts.share),
        "p": p_value(facts.p_value),
    }
    return Claim(subject, effect, tuple(checks), SMALLEST_EXCESS, details)


def _open_check(
    name: str, difference: Estimate, is_met: bool, remedy: str, *, p_value: float = math.nan
) -> Check:
    """A requirement that is open where it is not met."""
    outcome = outcome_if(is_met)
    needed_remedy = remedy_unless_met(outcome, remedy)
    return Check(name, difference, outcome, p_value=p_value, remedy=needed_remedy)


def _sample_remedy(facts: OutcomeFacts) -> str:
    """What would show a ranking: more items, unless all outcomes or all statements are alike."""
    if facts.share == 1:
        return RARER_OUTCOMES_REMEDY[facts.question]
    if facts.share == 0:
        return MORE_OUTCOMES_REMEDY[facts.question]
    if facts.distinct_chances == 1:
        return "it states one chance of all items, which more items would not change"
    return "add items"


def _count_check(name: str, count: int, fewest: int, remedy: str) -> Check:
    count_estimate = undefined("", n=count, value=float(count))
    if count >= fewest:
        return Check(name, count_estimate, Outcome.HOLDS)
    return Check(name, count_estimate, Outcome.OPEN, remedy=remedy)


def solved_text(solved: SolvedFacts, unsolved_auroc: Estimate, measure: str = "this") -> str:
    """Clause on the items that reasoning solves, and on what the others reach.

    Args:
        solved: How many it solves.
        unsolved_auroc: What items that were not solved reach.
        measure: What this is called.
    """
    if solved.unknown_share > MOST_UNKNOWN_SHARE:
        return (
            "whether its reasoning solves the items is not known, since it is hidden or no answer "
            "is recognised in it"
        )
    solved_part = f"its reasoning solves {percent(solved.solved.value)} of the items"
    if math.isnan(unsolved_auroc.value):
        return f"{solved_part} while it is asked, and too few others are left to rank"
    return f"{solved_part} while it is asked, and without them {measure} is {interval_text(unsolved_auroc)}"


def _unsolved_checks(solved: SolvedFacts) -> list[Check]:
    """The requirement that a statement after reasoning also ranks outcomes of items that were not
    solved in it; none where nothing was reasoned.
    """
    if not solved.is_reasoned:
        return []
    excess = shifted(solved.beyond_observers, -0.5)
    is_known = solved.unknown_share <= MOST_UNKNOWN_SHARE
    is_met = is_known and (solved.solved.value == 0 or excess.low > 0)
    outcome = outcome_if(is_met)
    remedy = remedy_unless_met(outcome, "ask without reasoning (--effort none)")
    return [Check("unsolved", excess, outcome, remedy=remedy)]


def _source_checks(facts: OutcomeFacts, *, has_effect: bool, remedy: str) -> list[Check]:
    """Checks of the strongest other observer, of each source without a model and of the strongest
    other target.

    They explain an effect where there is one (`has_effect`), but for the model's own reasoning:
    what this tells a reader can be what the model knows of itself.
    """
    observer_checks = []
    plain_checks = []
    for predictor in facts.predictors:
        name = predictor.name
        if predictor.is_observer:
            observer_checks.append(
                _advantage_check("above_observers", name, predictor, has_effect, remedy)
            )
        elif name in CHECK_OF_SOURCE:
            check_name = CHECK_OF_SOURCE[name]
            explains = has_effect and check_name != REASONING_CHECK
            plain_checks.append(_advantage_check(check_name, name, predictor, explains, remedy))

    target_checks = []
    for target in facts.other_targets:
        if not math.isnan(target.auroc.value):
            competitor = f"{target.model}'s outcomes"
            target_checks.append(
                _advantage_check("own_outcomes", competitor, target, has_effect, remedy)
            )
    return [
        _least_favourable("above_observers", observer_checks),
        *plain_checks,
        _least_favourable("own_outcomes", target_checks),
    ]


def _advantage_check(
    name: str,
    competitor: str,
    source: Predictor | OtherTarget,
    explains: bool,
    remedy: str = "add items",
) -> Check:
    """The requirement that a model's AUROC is above that of a competitor."""
    competitor_auroc = source.auroc
    if isinstance(source, Predictor):
        competitor_auroc = source.beyond_observers
    advantage_p = math.nan
    if source.below.se > 0:
        advantage_p = min(1.0, 2 * foresight.above(source.below, 0))
    outcome = outcome_above_zero(source.below, smallest=SMALLEST_EXCESS, p_value=advantage_p)
    unbroken_name = competitor.replace(" ", "\N{NO-BREAK SPACE}")
    return Check(
        name,
        source.below,
        outcome,
        compared_with=f"{unbroken_name}: {number(competitor_auroc.value)}",
        p_value=advantage_p,
        explains=explains,
        remedy=remedy_unless_met(outcome, remedy),
    )


UNFAVOURABLE_ORDER = (Outcome.FAILS, Outcome.OPEN, Outcome.HOLDS)


def _least_favourable(name: str, checks: Collection[Check]) -> Check:
    """The check of the strongest of several competitors."""
    if not checks:
        no_difference = undefined("no other model has outcomes that differ and an answer")
        remedy = "ask other models, and add their logs"
        return Check(name, no_difference, Outcome.OPEN, remedy=remedy)
    return min(
        checks, key=lambda check: (UNFAVOURABLE_ORDER.index(check.outcome), check.difference.value)
    )
