"""Numbers and claims of `selfprobe outcome`: what is left of a statement beyond what other
observers state.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, get_args

import numpy as np
import numpy.typing as npt

from selfprobe.data.outcomes import Question
from selfprobe.introspect_tasks.outcome import OUTCOMES_OF
from selfprobe.logs import Run, titles
from selfprobe.logs.decision import last_decisions
from selfprobe.page.claims import ClaimWords
from selfprobe.page.columns import Heading
from selfprobe.page.numerals import number, p_value, percent, shown
from selfprobe.page.plots import model_names
from selfprobe.stats import foresight
from selfprobe.stats.agreement import ece, equal_mass
from selfprobe.stats.beyond_items import (
    STRATA_DRAWS,
    hidden_domains_p,
    left_of_statement,
    within_strata_p,
    without_own_outcomes,
)
from selfprobe.stats.claim import Check, Claim, Outcome, outcome_above_zero
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, holm, undefined
from selfprobe.stats.text_only import log_odds
from selfprobe.study import Logs
from selfprobe.text import busy

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

    def about(self, run: str, about: str, target: str, question: str) -> FloatArray | None:
        """Chances that a run stated about a target, where the prompt names or shows it; else about
        all alike.
        """
        named = self.chances.get((run, about, target, question))
        return self.chances.get((run, about, "", question)) if named is None else named

    def about_itself(self, run: str, question: str) -> FloatArray | None:
        """Chances that a run stated about itself; None without an outcome of its model."""
        model = self.observers[run]
        if (model, question) not in self.outcomes:
            return None
        return self.about(run, "self", model, question)

    def about_target(self, run: str, target: str, question: str) -> FloatArray | None:
        """Chances that another observer stated, the best informed prompt first."""
        for about in ("named", "self", "other"):
            chances = self.about(run, about, target, question)
            if chances is not None:
                return chances
        return None

    def outcomes_of_others(self, model: str, question: str) -> dict[str, FloatArray]:
        """Other model → outcomes."""
        return {
            other: outcomes
            for (other, asked), outcomes in self.outcomes.items()
            if asked == question and other != model
        }

    def strata(
        self, model: str, question: str, is_there: BoolArray, *, without: str = ""
    ) -> IntArray:
        """Strata of the items `is_there` on which as many models succeeded: the one meaning of
        "beyond the items".

        Every model with outcomes counts, asked or not, except an observer of another model
        (`without`): what it knows of itself does not count against it.
        """
        place_of_model = self._places[question]
        results = self._results[question][:, is_there]
        is_known = np.any(~np.isnan(results), axis=1)
        places = [place_of_model[model]]
        for name, place in place_of_model.items():
            if name not in (model, without) and is_known[place]:
                places.append(place)
        return foresight.solved_alike(results[places])

    def domains_p(self, question: str) -> float:
        """p that models differ in skill and items in difficulty alone; NaN where outcomes are
        graded or models few.
        """
        results = self._results[question]
        is_complete = ~np.isnan(results).any(axis=0)
        table = results[:, is_complete]
        if not table.size or not np.isin(table, (0, 1)).all():
            return math.nan
        return hidden_domains_p(table, rng=np.random.default_rng(0))

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        """Question → model → its row in `_results`."""
        places: dict[str, dict[str, int]] = {}
        for model, question in self.outcomes:
            models = places.setdefault(question, {})
            models[model] = len(models)
        return places

    @cached_property
    def _results(self) -> dict[str, FloatArray]:
        """Question → outcomes [model, item]."""
        return {
            question: np.array([self.outcomes[model, question] for model in models])
            for question, models in self._places.items()
        }


def stated_chances(logs: Logs) -> StatedChances:
    """Statements and outcomes of the finished runs; the newest of those that several runs have."""
    chances: dict[tuple[str, str, str, str], dict[str, float]] = defaultdict(dict)
    outcomes: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    clusters: dict[str, str] = {}
    rows: list[StatementRow] = []
    oldest_first = list(reversed(logs.runs.finished))
    name_of_log = _run_names(oldest_first)
    for run in oldest_first:
        name = name_of_log[run.log]
        args = dict(run.identity.args)
        about = args.get("about", "self")
        target = str((run.header.eval.metadata or {}).get("outcome_of"))
        is_bound = about == "named" or args.get("when") == "after"
        for sample in run.summaries:
            item = str(sample.id)
            metadata = sample.metadata or {}
            texts[target][item] = str(sample.input)
            clusters[item] = str(metadata.get("cluster") or item)
            for key, happened in metadata.items():
                if key.startswith(OUTCOMES_OF) and isinstance(happened, dict):
                    for question, value in happened.items():
                        outcomes[key.removeprefix(OUTCOMES_OF), question][item] = float(value)
            for decision in last_decisions(sample.scores):
                probability = decision.probability
                chance_of_item = chances[name, about, target if is_bound else "", decision.key]
                if probability is not None:
                    chance_of_item[item] = probability
                truth = None if decision.truth is None else float(decision.truth)
                rows.append(
                    StatementRow(
                        name,
                        about,
                        target,
                        item,
                        decision.key,
                        probability,
                        truth,
                        decision.unscored,
                    )
                )
    items = tuple(sorted(clusters))
    order = list(logs.names)
    in_order = sorted(oldest_first, key=lambda run: order.index(run.identity))
    notes = [
        note for run in oldest_first for note in (run.header.eval.metadata or {}).get("notes", ())
    ]
    asked = {question for *_, question in chances}
    return StatedChances(
        items=items,
        texts={
            target: tuple(of_item.get(item, "") for item in items)
            for target, of_item in texts.items()
        },
        clusters=np.unique([clusters[item] for item in items], return_inverse=True)[1],
        questions=tuple(question for question in get_args(Question) if question in asked),
        observers={name_of_log[run.log]: run.identity.model for run in in_order},
        outcomes={key: _by_item(values, items) for key, values in outcomes.items()},
        chances={key: _by_item(values, items) for key, values in chances.items()},
        rows=sorted(rows, key=lambda row: (row.run, row.about, row.target)),
        notes=list(dict.fromkeys(notes)),
    )


def _run_names(runs: Sequence[Run]) -> dict[str, str]:
    """Log → name of its run, without what says about whom and how much was asked."""
    identity_of_log = {}
    for run in runs:
        kept = tuple(
            (name, value)
            for name, value in run.identity.args
            if name not in ("about", "target", "ask")
        )
        identity_of_log[run.log] = replace(run.identity, args=kept, data="")
    full_names = model_names(list(dict.fromkeys(run.identity.model for run in runs)))
    names = {}
    for identity, title in titles(identity_of_log.values()).items():
        names[identity] = title.replace(identity.model, full_names[identity.model], 1)
    return {log: names[identity] for log, identity in identity_of_log.items()}


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
    model = stated.observers[run]
    all_chances = stated.about_itself(run, question)
    assert all_chances is not None, run
    all_outcomes = stated.outcomes[model, question]
    is_there = ~np.isnan(all_chances) & ~np.isnan(all_outcomes)
    chances = all_chances[is_there]
    outcomes = all_outcomes[is_there]
    clusters = stated.clusters[is_there]
    others = {}
    for other, other_outcomes in stated.outcomes_of_others(model, question).items():
        if not np.isnan(other_outcomes[is_there]).all():
            others[other] = other_outcomes[is_there]
    own_strata = stated.strata(model, question, is_there)
    rivals = {}
    for name, observer in stated.observers.items():
        rival_chances = stated.about_target(name, model, question) if observer != model else None
        if rival_chances is not None and not np.isnan(rival_chances[is_there]).all():
            rivals[name] = rival_chances[is_there]

    of_items = {}
    other_strata = foresight.solved_alike(np.array(list(others.values()))) if others else own_strata
    for name, rival_chances in rivals.items():
        results = others.get(stated.observers[name], np.full(len(outcomes), math.nan))
        of_items[name] = without_own_outcomes(rival_chances, results, other_strata)

    own = _Statement(chances, _left(chances, list(of_items.values())), own_strata)
    predictors = [
        _predictor(
            name,
            _Statement(
                rival_chances,
                _left(rival_chances, _of_further_models(name, of_items, stated.observers)),
                stated.strata(model, question, is_there, without=stated.observers[name]),
            ),
            own,
            outcomes,
            clusters,
            is_observer=True,
        )
        for name, rival_chances in rivals.items()
    ]
    texts = [text for text, is_kept in zip(stated.texts[model], is_there, strict=True) if is_kept]
    plain_sources = {}
    about_other = stated.about(run, "other", model, question)
    if about_other is not None:
        plain_sources[OTHER_ASSISTANT] = about_other[is_there]
    plain_sources |= _scores_of_text(texts, outcomes, clusters)
    for name, scores in plain_sources.items():
        statement = _Statement(scores, scores, own.strata)
        predictors.append(_predictor(name, statement, own, outcomes, clusters, is_observer=False))

    no_other_log = undefined("no other model's log is there")
    other_share = foresight.mean_of(
        np.array(list(others.values())).reshape(len(others), len(outcomes))
    )
    has_others = ~np.isnan(other_share)
    knows_items = no_other_log
    if has_others.any():
        known_clusters = clusters[has_others]
        others_auroc = foresight.stratified_auroc(
            other_share[has_others], outcomes[has_others], known_clusters
        )
        nothing_beyond = undefined("the strata hold these results fixed")
        predictors.insert(
            0,
            Predictor(
                OTHER_RESULTS,
                others_auroc,
                nothing_beyond,
                nothing_beyond,
                nothing_beyond,
                is_observer=False,
            ),
        )
        knows_items = foresight.stratified_auroc(
            chances[has_others], other_share[has_others], known_clusters
        )
    run_of_model = {observer: name for name, observer in stated.observers.items()}
    other_targets = []
    for other, other_outcomes in others.items():
        other_name = run_of_model.get(other, other)
        other_targets.append(_other_target(other_name, other_outcomes, own, outcomes, clusters))
    beyond_observers = (
        _stratified(own.left, outcomes, clusters, own.strata) if others else no_other_log
    )
    return OutcomeFacts(
        run=run,
        model=model,
        question=question,
        n=len(np.unique(clusters)),
        items=len(clusters),
        share=float(outcomes.mean()) if len(outcomes) else math.nan,
        auroc=foresight.stratified_auroc(chances, outcomes, clusters),
        knows_items=knows_items,
        in_strata=_stratified(chances, outcomes, clusters, own.strata) if others else no_other_log,
        beyond_observers=beyond_observers,
        over_observers=_over_observers(chances, list(of_items.values()), other_share, clusters),
        predictors=tuple(predictors),
        other_targets=tuple(other_targets),
        others=len(others),
        observers=len({stated.observers[name] for name in rivals}),
        p_value=_beyond_p(own, outcomes, clusters, beyond_observers, draws) if others else math.nan,
        **_calibration(chances, outcomes, clusters),
    )


@dataclass(frozen=True)
class _Statement:
    """Scores of one source for a model's outcomes, [item]."""

    scores: FloatArray
    left: FloatArray
    """What is left of them beyond what other observers state; the scores themselves without any."""
    strata: IntArray


def _left(chances: FloatArray, others: Sequence[FloatArray]) -> FloatArray:
    return left_of_statement(chances, np.array(others)) if others else chances


def _of_further_models(
    name: str, rivals: Mapping[str, FloatArray], observers: Mapping[str, str]
) -> list[FloatArray]:
    """Statements of the rivals that are of another model than this one."""
    return [chances for other, chances in rivals.items() if observers[other] != observers[name]]


def _stratified(
    scores: FloatArray, outcomes: FloatArray, clusters: IntArray, strata: IntArray
) -> Estimate:
    """AUROC among the items of a stratum with a score."""
    is_known = ~np.isnan(scores)
    return foresight.stratified_auroc(
        scores[is_known], outcomes[is_known], clusters[is_known], strata[is_known]
    )


def _predictor(
    name: str,
    statement: _Statement,
    own: _Statement,
    outcomes: FloatArray,
    clusters: IntArray,
    *,
    is_observer: bool,
) -> Predictor:
    """Numbers that a source reaches for outcomes of a model whose statement is `own`."""
    every_item = np.zeros(len(outcomes), dtype=np.intp)
    is_known = ~np.isnan(statement.left) & ~np.isnan(own.left)
    known_outcomes = outcomes[is_known]
    own_pairs = foresight.ordered(own.left[is_known], known_outcomes, own.strata[is_known])
    source_pairs = foresight.ordered(
        statement.left[is_known], known_outcomes, statement.strata[is_known]
    )
    return Predictor(
        name,
        _stratified(statement.scores, outcomes, clusters, every_item),
        _stratified(statement.scores, outcomes, clusters, statement.strata),
        _stratified(statement.left, outcomes, clusters, statement.strata),
        foresight.auroc_above(own_pairs, source_pairs, clusters[is_known], known_outcomes),
        is_observer,
    )


def _other_target(
    other: str,
    other_outcomes: FloatArray,
    own: _Statement,
    outcomes: FloatArray,
    clusters: IntArray,
) -> OtherTarget:
    is_known = ~np.isnan(own.left) & ~np.isnan(other_outcomes)
    left = own.left[is_known]
    strata = own.strata[is_known]
    own_pairs = foresight.ordered(left, outcomes[is_known], strata)
    other_pairs = foresight.ordered(left, other_outcomes[is_known], strata)
    return OtherTarget(
        other,
        _stratified(left, other_outcomes[is_known], clusters[is_known], strata),
        foresight.auroc_above(own_pairs, other_pairs, clusters[is_known], outcomes[is_known]),
    )


def _over_observers(
    chances: FloatArray, rivals: Sequence[FloatArray], other_share: FloatArray, clusters: IntArray
) -> Estimate:
    """AUROC of a model's chances for the other models' outcomes, less that of the observers' mean
    chance.
    """
    if not rivals:
        return undefined("no other model was asked")
    together = foresight.mean_of(np.array(rivals))
    is_known = ~np.isnan(together) & ~np.isnan(other_share)
    truth = other_share[is_known]
    own_pairs = foresight.ordered(chances[is_known], truth)
    return foresight.auroc_above(
        own_pairs, foresight.ordered(together[is_known], truth), clusters[is_known]
    )


def _beyond_p(
    own: _Statement, outcomes: FloatArray, clusters: IntArray, beyond: Estimate, draws: int
) -> float:
    """p that what is left of a statement does not rank the outcomes in their strata: twice that of
    its one side, as an interval has two.
    """
    if len(np.unique(clusters)) < len(clusters):
        return min(1.0, 2 * foresight.above(beyond, 0.5))
    is_known = ~np.isnan(own.left)
    if not is_known.any():
        return math.nan
    rng = np.random.default_rng(0)
    one_sided_p = within_strata_p(
        own.left[is_known], outcomes[is_known], own.strata[is_known], rng=rng, draws=draws
    )
    return min(1.0, 2 * one_sided_p)


def _scores_of_text(
    texts: Sequence[str], outcomes: FloatArray, clusters: IntArray
) -> dict[str, FloatArray]:
    """Scores of the text and of its length for the outcomes; the direction of the length is the one
    that fits.
    """
    lengths = np.array([len(text) for text in texts], dtype=float)
    is_turned = foresight.ordered(lengths, outcomes).auroc < 0.5
    same_texts = np.unique(np.array(texts, dtype=object).astype(str), return_inverse=True)[1]
    has_fewer_clusters = len(np.unique(clusters)) < len(np.unique(same_texts))
    groups = clusters if has_fewer_clusters else same_texts
    return {
        TEXT_ALONE: log_odds(texts, outcomes >= 0.5, groups),
        INPUT_LENGTH: -lengths if is_turned else lengths,
    }


def _calibration(chances: FloatArray, outcomes: FloatArray, clusters: IntArray) -> dict[str, Any]:
    """Fields of `OutcomeFacts` on how good the chances are."""
    has_items = len(chances) > 0
    bin_of_item = equal_mass(chances, CALIBRATION_BINS) if has_items else np.empty(0, dtype=np.intp)
    bins = [bin_of_item == number for number in np.unique(bin_of_item)]
    mean_chances = [float(chances[in_bin].mean()) for in_bin in bins]
    shares = [clustered_mean(outcomes[in_bin], clusters[in_bin]) for in_bin in bins]
    return {
        "brier": foresight.brier(chances, outcomes)
        if has_items
        else foresight.Brier(*[math.nan] * 4),
        "log_score": foresight.log_score(chances, outcomes) if has_items else math.nan,
        "overconfidence": foresight.overconfidence(chances, outcomes, clusters),
        "calibration_error": ece(chances, outcomes, clusters, unit="item"),
        "detection": foresight.detection(chances, outcomes),
        "risks": foresight.risks(chances, outcomes) if has_items else {},
        "bins": (mean_chances, shares),
    }


def all_facts(stated: StatedChances) -> list[OutcomeFacts]:
    """The numbers of every model that was asked about itself, with p corrected for all models and
    questions.
    """
    cases = []
    for question in stated.questions:
        cases += [
            (run, question)
            for run in stated.observers
            if stated.about_itself(run, question) is not None
        ]
    draws = max(STRATA_DRAWS, DRAWS_A_CASE * len(cases))
    return corrected([outcome_facts(stated, run, question, draws=draws) for run, question in cases])


def corrected(facts: Sequence[OutcomeFacts]) -> list[OutcomeFacts]:
    """Facts with p corrected for all of them (Holm)."""
    p_values = holm([case.p_value for case in facts])
    return [replace(case, p_value=float(p)) for case, p in zip(facts, p_values, strict=True)]


@dataclass(frozen=True)
class CrossMeans:
    """Mean scores of every observer on every target, beyond the items."""

    models: tuple[str, ...]
    means: FloatArray
    """Means [target, observer]."""


def cross_means(stated: StatedChances, question: str) -> CrossMeans:
    """Scores beyond the items of all observers on all targets that were both."""
    asked = []
    for run in stated.observers:
        own_chances = stated.about_itself(run, question)
        if own_chances is not None and not np.isnan(own_chances).all():
            asked.append(run)
    run_of_model = {stated.observers[run]: run for run in reversed(asked)}
    models = tuple(sorted(run_of_model))
    means = np.full((len(models), len(models)), math.nan)
    truths = np.array([stated.outcomes[model, question] for model in models])
    is_there = ~np.isnan(truths.reshape(len(models), len(stated.items))).any(axis=0)
    if len(models) < 2 or not is_there.any():
        return CrossMeans(models, means)
    labels = stated.clusters[is_there]
    for t, target in enumerate(models):
        for o, observer in enumerate(models):
            run = run_of_model[observer]
            is_own = observer == target
            chances = (
                stated.about_itself(run, question)
                if is_own
                else stated.about_target(run, target, question)
            )
            if chances is None:
                continue
            is_known = ~np.isnan(chances[is_there])
            strata = stated.strata(target, question, is_there, without="" if is_own else observer)
            truth = truths[t][is_there][is_known]
            pairs = foresight.ordered(chances[is_there][is_known], truth, strata[is_known])
            means[t, o] = _mean_of_clusters(pairs.scores, labels[is_known])
    return CrossMeans(models, means)


def _mean_of_clusters(scores: FloatArray, labels: IntArray) -> float:
    """Mean over clusters of the mean of their known scores; NaN where nothing is known."""
    is_known = ~np.isnan(scores)
    if not is_known.any():
        return math.nan
    inverse = np.unique(labels[is_known], return_inverse=True)[1]
    return float((np.bincount(inverse, scores[is_known]) / np.bincount(inverse)).mean())


# ---- the claim


def write_auroc(excess: Estimate) -> str:
    """An excess over .5 as the AUROC."""
    return shown(
        replace(excess, value=excess.value + 0.5, low=excess.low + 0.5, high=excess.high + 0.5)
    )


def write_known_auroc(excess: Estimate) -> str:
    """The AUROC, or a dash; why there is none stands in the tables."""
    return "–" if math.isnan(excess.value) else write_auroc(excess)


def write_count(count: Estimate) -> str:
    """A number of models or items."""
    return number(count.value, 0)


def write_difference(difference: Estimate) -> str:
    """A difference of two AUROCs."""
    return shown(difference, sign=True)


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
        "above_observers": "above every other observer",
        "above_text": "above the text alone",
        "above_length": "above the length of the input",
        "above_other_assistant": "above what it states about another assistant",
        "own_outcomes": "ranking its own outcomes better than any other model's",
    },
    unmet={
        "items": "has {difference} items with an answer and an outcome",
        "outcomes": "has {outcomes} at {share} of its items: outcomes do not differ",
        "other_logs": (
            "ranks its {outcomes} with AUROC {auroc}, beside logs of {difference} other models"
        ),
        "beyond": (
            "ranks its {outcomes} with AUROC {auroc}; beyond the items this is not shown: "
            "{difference} ({p})"
        ),
        "observers": (
            "ranks its {outcomes} beyond the items with AUROC {effect}, beside {difference} other "
            "observers"
        ),
        "informed_observers": (
            "ranks its {outcomes} beyond the items with AUROC {effect}; other observers know the "
            "items less ({difference})"
        ),
        "above_observers": (
            "ranks its {outcomes} beyond the items with AUROC {effect}; {competitor}"
        ),
        "above_text": "ranks its {outcomes} beyond the items with AUROC {effect}; {competitor}",
        "above_length": "ranks its {outcomes} beyond the items with AUROC {effect}; {competitor}",
        "above_other_assistant": (
            "ranks its {outcomes} beyond the items with AUROC {effect}; {competitor}"
        ),
        "own_outcomes": "ranks its {outcomes} beyond the items with AUROC {effect}; {competitor}",
    },
    write=write_auroc,
    units={
        "items": write_count,
        "other_logs": write_count,
        "beyond": write_known_auroc,
        "observers": write_count,
        "informed_observers": write_difference,
        "above_observers": write_difference,
        "above_text": write_difference,
        "above_length": write_difference,
        "above_other_assistant": write_difference,
        "own_outcomes": write_difference,
    },
)
CHECK_OF_SOURCE = {
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
    effect = _excess(facts.beyond_observers)
    is_beyond = facts.p_value < BEYOND_ALPHA and effect.value > 0
    overall = _excess(facts.auroc)
    checks = [
        _count_check("items", facts.n, FEWEST_ITEMS, f"{FEWEST_ITEMS} are the least"),
        Check("outcomes", overall, _holds(not math.isnan(overall.value)), remedy="add items"),
        _count_check("other_logs", facts.others, FEWEST_OTHERS, "add logs of two others"),
        Check("beyond", effect, _holds(is_beyond), p_value=facts.p_value, remedy="add items"),
        _count_check("observers", facts.observers, FEWEST_OTHERS, "ask two other models"),
        Check(
            "informed_observers",
            facts.over_observers,
            _holds(facts.over_observers.value < OBSERVERS_MARGIN),
            remedy="ask stronger models",
        ),
        *_source_checks(facts, has_effect=is_beyond),
    ]
    details = {
        "outcomes": WHAT_HAPPENED[facts.question],
        "auroc": write_auroc(overall),
        "share": percent(facts.share),
        "p": p_value(facts.p_value),
    }
    return Claim(subject, effect, tuple(checks), SMALLEST_EXCESS, details)


def _excess(auroc: Estimate) -> Estimate:
    return replace(auroc, value=auroc.value - 0.5, low=auroc.low - 0.5, high=auroc.high - 0.5)


def _holds(is_met: bool) -> Outcome:
    return Outcome.HOLDS if is_met else Outcome.OPEN


def _count_check(name: str, count: int, least: int, remedy: str) -> Check:
    difference = undefined("", n=count, value=float(count))
    return Check(name, difference, _holds(count >= least), remedy=remedy if count < least else "")


def _source_checks(facts: OutcomeFacts, *, has_effect: bool) -> list[Check]:
    """Checks of the strongest other observer, of each source without a model and of the strongest
    other target.

    They explain an effect where there is one (`has_effect`).
    """
    observer_checks = []
    plain_checks = []
    for predictor in facts.predictors:
        if predictor.is_observer:
            observer_checks.append(
                _advantage_check("above_observers", predictor.name, predictor, has_effect)
            )
        elif predictor.name in CHECK_OF_SOURCE:
            plain_checks.append(
                _advantage_check(
                    CHECK_OF_SOURCE[predictor.name], predictor.name, predictor, has_effect
                )
            )
    target_checks = []
    for target in facts.other_targets:
        if not math.isnan(target.auroc.value):
            target_checks.append(
                _advantage_check("own_outcomes", f"{target.model}'s outcomes", target, has_effect)
            )
    return [
        _least_favourable("above_observers", observer_checks),
        *plain_checks,
        _least_favourable("own_outcomes", target_checks),
    ]


def _advantage_check(
    name: str, competitor: str, source: Predictor | OtherTarget, has_effect: bool
) -> Check:
    """The requirement that a model's AUROC is above that of a competitor."""
    reached = source.beyond_observers if isinstance(source, Predictor) else source.auroc
    p = math.nan
    if source.below.se > 0:
        p = min(1.0, 2 * foresight.above(source.below, 0))
    outcome = outcome_above_zero(source.below, smallest=SMALLEST_EXCESS, p_value=p)
    words = competitor.replace(" ", "\N{NO-BREAK SPACE}")
    return Check(
        name,
        source.below,
        outcome,
        compared_with=f"{words}: {number(reached.value)}",
        p_value=p,
        explains=has_effect,
        remedy="" if outcome is Outcome.HOLDS else "add items",
    )


UNFAVOURABLE_ORDER = (Outcome.FAILS, Outcome.OPEN, Outcome.HOLDS)


def _least_favourable(name: str, checks: Collection[Check]) -> Check:
    """The check of the strongest of several competitors."""
    if not checks:
        missing = undefined("no other model has outcomes that differ and an answer")
        return Check(name, missing, Outcome.OPEN, remedy="ask other models, and add their logs")
    return min(
        checks, key=lambda check: (UNFAVOURABLE_ORDER.index(check.outcome), check.difference.value)
    )
