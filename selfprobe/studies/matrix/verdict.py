"""The claim of a matrix about each model: it predicts itself better than skill, habits and the
others explain.

A sceptic asks first whether the matrix can tell at all (enough models, all cells, scores that vary,
items that all observers score); then whether the own cell stands out above skill, noise and the way
pairs of these models differ anyhow (`selfprobe.stats.pairs`); then for the competitors on the
model's own row: the best other observer, each baseline, each observer that was told of its target,
each other model's own replies (a stand-in), and its habit; and last for a stranger to look-alikes,
for a strong model among weak ones (`selfprobe.stats.lone_answers`), and for observers in another
order.

A p is Holm's over all models of all tasks. A model is named where the largest p of its checks is
below alpha: each p is at least Holm's of that check alone, and the largest is Holm's of the models'
largest p.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from selfprobe.page.claims import ClaimWords
from selfprobe.page.numerals import interval_text, number, p_value, percent
from selfprobe.stats.claim import ALPHA, Check, Claim, Outcome, Verdict, outcome_above_zero
from selfprobe.stats.estimate import Estimate, FloatArray, holm, undefined
from selfprobe.stats.pairs import ABOVE_ALL_PAIRS, CONDITIONAL_STEPS, FEWEST_MODELS
from selfprobe.stats.shared_items import NOTHING_SHARED, SHARED_ITEMS
from selfprobe.studies.matrix.advantage import permute_observers_of
from selfprobe.studies.matrix.rows import EFFECT, INFORMED, NEAR_COPY, ModelRow, above_zero
from selfprobe.text.counts import count_text
from selfprobe.text.families import related

MODELS_BEFORE_ITEMS = 4
"""Number of models up to which more items hardly help: how much two models differ anyhow is known
too badly.
"""
ADVISED_MODELS = 8
"""Number of models that is advised."""
ASK_AGAIN = "the same command asks again what failed"
"""Remedy where a cell has no finished run."""
ASK_ANEW = "take other models or arguments, or ask anew in another --log-dir"
"""Remedy where every call was answered and nothing could be scored: a finished run is not asked
again.
"""
FLOOR = 0.05
"""Mean score of others below which they are at the floor: on scales of ratios next to nothing is
known of what skill gives there.
"""
TIE_TOLERANCE = 1e-9
"""Largest difference of two means that is rounding."""
SMALLEST_OWN_ADVANTAGE = EFFECT
"""Smallest advantage of a model on itself that matters."""
STEPS_OF_CHECK = {
    "beyond_skill": ("noise",),
    "beyond_shared_items": (SHARED_ITEMS,),
    "beyond_pairs": ("pairs", ABOVE_ALL_PAIRS, *CONDITIONAL_STEPS),
}
"""Check → steps of the pairs test that it is made of; a check has the largest p of its steps."""

MATRIX_WORDS = ClaimWords(
    yes="scores {score} on itself, {effect} above what skill gives ({p}); {competitor}",
    no="scores {score} on itself, less than {smallest} above what skill gives: {effect}",
    checks={
        "enough_models": "compared with enough models",
        "complete": "scored in all its cells",
        "variation": "scored on items on which scores differ",
        "scored_by_all": "scored by all observers on the same items",
        "beyond_skill": "above what skill gives",
        "beyond_shared_items": "above what easy and hard items give",
        "beyond_pairs": "above what pairs of models differ by",
        "above_observers": "above every other model on it",
        "above_baselines": "above every guess without a model",
        "above_informed": "above observers that were told of it",
        "above_stand_ins": "above the other models' own replies",
        "above_habit": "above its habit",
        "above_zero": "above 0",
        "no_outsider": "more than a stranger to models that are alike",
        "beyond_strength": "more than a stronger model's own answers",
        "above_shuffled": "above observers in another order",
    },
    unmet={
        "beyond_skill": "is not shown to be above what skill gives ({difference})",
        "enough_models": "has too few models beside it",
        "complete": "has cells without a score",
        "variation": "cannot show an advantage: {reason}",
        "scored_by_all": "cannot be compared: {reason}",
        "above_baselines": "is not shown to be above {competitor} ({difference})",
        "above_informed": "is not shown to be above {competitor} ({difference})",
        "above_stand_ins": "is not shown to be above {competitor} ({difference})",
        "above_habit": "is not shown to be above {competitor} ({difference})",
        "no_outsider": "may stand out only because the other models resemble each other",
        "beyond_strength": "may stand out only as the strongest of these models",
    },
    stricter_tests={
        "beyond_skill": "on the strictest scale p = {p}",
        "beyond_shared_items": "p = {p}, corrected",
        "beyond_pairs": "p = {p}, corrected",
    },
    explained="scores {score} on itself, less than {smallest} above {competitor}",
    write=partial(interval_text, sign=True),
)
NEAR_COPY_CAUTION = (
    "A near-copy of {model} that is not here would look the same, and where answers cannot be "
    "compared so would a model as strong; add its replies."
)
"""What a Yes cannot rule out: nothing in the present replies tells that a near-copy is missing."""


@dataclass(frozen=True)
class MatrixFacts:
    """Numbers of one task of which its claims are made."""

    models: Sequence[str]
    """All models, those without a complete row too."""
    rows: Sequence[ModelRow]
    """One row for each model that has all its cells; none with fewer than three."""
    holes: Mapping[str, str]
    """Model that has cells without a score → the reason."""
    means: FloatArray
    """Cell means [target, observer] of the complete models, as scored."""
    centred: FloatArray
    """Double-centred means of the item-specific scores [target, observer] of the complete models.
    """
    total: Estimate
    """T of the item-specific scores."""
    asked_in_full: Collection[str] = ()
    """Models with holes whose cells all have a finished run: the same command asks nothing of them
    again.
    """
    can_be_told: bool = False
    """Whether an observer of this task can be told of its target."""
    replies: str = "replies"
    """Noun for the models' replies."""
    is_graded: bool = True
    """Whether scores are shares of right answers, which are written in percent."""


def matrix_claims(
    facts: MatrixFacts, *, family: Sequence[ModelRow] | None = None, alpha: float = ALPHA
) -> tuple[Claim, ...]:
    """The claim of each model of one task, in their order.

    Args:
        facts: Numbers of the task.
        family: Rows of all tasks of the report, over which p is corrected. Default: those of this
            task.
        alpha: Level of every test.
    """
    corrected = _corrected_rows(facts.rows, facts.rows if family is None else family)
    claims = {}
    for row, p_of_check in zip(facts.rows, corrected, strict=True):
        claims[row.model] = _row_claim(row, p_of_check, facts, alpha)
    for model in facts.models:
        if model not in claims:
            claims[model] = _claim_without_row(model, facts)
    named_indices = [
        row_index
        for row_index, row in enumerate(facts.rows)
        if claims[row.model].verdict is Verdict.YES
    ]
    # Fewer than 1 / alpha orders of so few models among so many could never disagree.
    if named_indices and 1 / math.perm(len(facts.rows), len(named_indices)) < alpha:
        shuffled_check = _shuffled_check(named_indices, facts, alpha)
        for row_index in named_indices:
            claim = claims[facts.rows[row_index].model]
            claims[claim.subject] = replace(claim, checks=(*claim.checks, shuffled_check))
    return tuple(claims[model] for model in facts.models)


def relative_notes(facts: MatrixFacts) -> dict[str, list[str]]:
    """Model → sentences on its near-copy and its relatives in the matrix, and on what their replies
    would explain.
    """
    notes: dict[str, list[str]] = {}
    for row in facts.rows:
        lines = []
        reply_scores = row.stand_in_scores
        near_copy = row.near_copy
        if near_copy:
            score_words = _score_text(reply_scores[near_copy], facts)
            lines.append(
                f"{near_copy} is a near-copy: its own {facts.replies} predict {row.model} in "
                f"{score_words}, {NEAR_COPY:.2f} or more above every other model's."
            )
        relatives = [
            name for name in reply_scores if related(name, row.model) and name != near_copy
        ]
        if relatives:
            score_texts = [
                f"{name}'s own {facts.replies} {_score_text(reply_scores[name], facts)}"
                for name in relatives
            ]
            lines.append(f"Of its family are here: {', '.join(score_texts)}.")
        if lines:
            notes[row.model] = lines
    return notes


# ---- p by check


PByCheck = Mapping[str, float]
"""Check → p."""


def _p_by_check(row: ModelRow) -> dict[str, float]:
    """Uncorrected p of the checks that have one; a check of several competitors has the largest."""
    p_by_step_check = {}
    for check, steps in STEPS_OF_CHECK.items():
        p_by_step_check[check] = max(row.p_by_step.get(step, 0.0) for step in steps)
    p_by_baseline = row.over_p
    informed_p = p_by_baseline.get(INFORMED, 0.0)
    baseline_ps = [p for name, p in p_by_baseline.items() if name != INFORMED]
    stand_in_ps = [above_zero(difference) for difference in row.stand_ins.values()]
    return {
        **p_by_step_check,
        "above_habit": row.p_by_step["above 0"],
        "above_baselines": max(baseline_ps, default=0.0),
        "above_informed": informed_p,
        "above_stand_ins": max(stand_in_ps, default=0.0),
    }


def _corrected_rows(rows: Sequence[ModelRow], family: Sequence[ModelRow]) -> list[PByCheck]:
    """Corrected p of the checks of each row, of which the largest is Holm's of the rows' largest p.

    Holm's of each check alone would name somebody falsely in twice alpha, where one model lacks one
    thing and another model another.
    """
    tested_rows = [row for row in family if not math.isnan(row.p)]
    if not tested_rows:
        return [{} for _ in rows]
    index_of_row = {id(row): row_index for row_index, row in enumerate(tested_rows)}
    ps_by_row = [_p_by_check(row) for row in tested_rows]
    largest_ps = [row.p for row in tested_rows]
    holm_of_largest = holm(largest_ps)
    holm_by_check = {}
    for name in ps_by_row[0]:
        holm_by_check[name] = holm([ps[name] for ps in ps_by_row])

    corrected: list[PByCheck] = []
    for row in rows:
        row_index = index_of_row.get(id(row))
        if row_index is None:
            corrected.append({})
            continue
        factor = float(len(tested_rows))
        if largest_ps[row_index] > 0:
            factor = holm_of_largest[row_index] / largest_ps[row_index]
        corrected_ps = {}
        for name, p in ps_by_row[row_index].items():
            corrected_p = max(holm_by_check[name][row_index], p * factor)
            corrected_ps[name] = float(min(1.0, corrected_p))
        corrected.append(corrected_ps)
    return corrected


# ---- claims


def _claim_without_row(model: str, facts: MatrixFacts) -> Claim:
    """The claim of a model that cannot be compared, with the first reason."""
    gates = _gates(model, facts)
    effect = undefined(_first_open_reason(gates))
    return Claim(
        model, effect, tuple(gates), SMALLEST_OWN_ADVANTAGE, _details(None, gates, math.nan, facts)
    )


def _first_open_reason(gates: Sequence[Check]) -> str:
    for gate in gates:
        if gate.outcome is not Outcome.HOLDS:
            return gate.difference.reason
    return ""


def _gates(model: str, facts: MatrixFacts) -> list[Check]:
    """What a matrix needs before anything can be compared, up to the first that is open."""
    complete_count = len(facts.models) - len(facts.holes)
    has_enough_models = complete_count >= FEWEST_MODELS
    models_text = "one model" if complete_count == 1 else count_text(complete_count, "model")
    models_text += f"; {FEWEST_MODELS} are the least, {ADVISED_MODELS} are advised"
    gate = Check("enough_models", undefined(models_text, n=complete_count), Outcome.HOLDS)
    if not has_enough_models:
        missing_text = count_text(FEWEST_MODELS - complete_count, "model")
        remedy = f"add {missing_text} or more"
        gate = replace(gate, outcome=Outcome.OPEN, remedy=remedy)
    gates = [gate]
    if model in facts.holes:
        # Its own hole comes first: the models without one may still be enough.
        hole = undefined(facts.holes[model])
        remedy = ASK_ANEW if model in facts.asked_in_full else ASK_AGAIN
        return [Check("complete", hole, Outcome.OPEN, remedy=remedy), *gates]
    if not has_enough_models:
        return gates
    gates.append(Check("complete", undefined("no cell is missing"), Outcome.HOLDS))
    if not _does_vary(facts):
        same_score = undefined(f"every score is {float(facts.means[0, 0]):.2f}")
        remedy = "take items on which the models differ"
        gates.append(Check("variation", same_score, Outcome.OPEN, remedy=remedy))
        return gates
    gates.append(Check("variation", undefined("scores differ"), Outcome.HOLDS))
    row = _row_of(model, facts)
    is_scored = row is not None and not math.isnan(row.test_p)
    reason = "all observers score the same items"
    remedy = ""
    if not is_scored:
        reason = "of some model no item is scored by all observers"
        remedy = f"take more items, or {ASK_ANEW}"
    if facts.total.n < 2:
        is_scored = False
        reason = f"items or clusters that all observers score: {facts.total.n}"
        remedy = "take more items"
    gates.append(
        Check(
            name="scored_by_all",
            difference=undefined(reason),
            outcome=Outcome.HOLDS if is_scored else Outcome.OPEN,
            remedy=remedy,
        )
    )
    return gates


def _does_vary(facts: MatrixFacts) -> bool:
    """Whether anything differs between cells or items."""
    is_spread = any(row.score.se > 0 for row in facts.rows)
    return is_spread or not facts.rows or bool(np.ptp(facts.means) > 1e-9)


def _row_of(model: str, facts: MatrixFacts) -> ModelRow | None:
    for row in facts.rows:
        if row.model == model:
            return row
    return None


def _row_claim(row: ModelRow, p_of_check: PByCheck, facts: MatrixFacts, alpha: float) -> Claim:
    """The claim of a model that has all its cells."""
    checks = _gates(row.model, facts)
    details = _details(row, checks, max(p_of_check.values(), default=math.nan), facts)
    if checks[-1].outcome is not Outcome.HOLDS:
        reason = _first_open_reason(checks)
        return Claim(row.model, undefined(reason), tuple(checks), SMALLEST_OWN_ADVANTAGE, details)
    own_check = _own_check(row, p_of_check["above_habit"], facts, alpha)
    if own_check.name == "above_zero":
        checks.append(own_check)
    for name, steps in STEPS_OF_CHECK.items():
        if any(step in row.p_by_step for step in steps):
            checks.append(_step_check(name, row, p_of_check[name], facts, alpha))
    checks.append(_observers_check(row, facts))
    checks += _baseline_checks(row, p_of_check["above_baselines"], facts, alpha)
    checks += _informed_checks(row, p_of_check["above_informed"], facts, alpha)
    checks += _stand_in_checks(row, p_of_check["above_stand_ins"], facts, alpha)
    if own_check.name == "above_habit":
        checks.append(own_check)
    checks.append(_outsider_check(row, facts))
    checks += _strength_checks(row, facts, alpha)
    return Claim(row.model, row.advantage, tuple(checks), SMALLEST_OWN_ADVANTAGE, details)


def _details(
    row: ModelRow | None, gates: Sequence[Check], p: float, facts: MatrixFacts
) -> dict[str, str]:
    """Slots of the words: the score on itself, the p of the claim, and why nothing can be
    compared.
    """
    score = row.score.value if row else math.nan
    return {
        "score": _score_text(score, facts),
        "p": p_value(p),
        "reason": _first_open_reason(gates),
    }


def _score_text(score: float, facts: MatrixFacts) -> str:
    return percent(score) if facts.is_graded else number(score)


def _step_check(name: str, row: ModelRow, p: float, facts: MatrixFacts, alpha: float) -> Check:
    """A part of the pairs test; all parts are about the advantage over what skill gives."""
    if name == "beyond_shared_items" and row.p_by_step[SHARED_ITEMS] == NOTHING_SHARED:
        return Check(name, undefined("items share no difficulty"), Outcome.HOLDS)
    outcome = outcome_above_zero(
        row.advantage, smallest=SMALLEST_OWN_ADVANTAGE, p_value=p, alpha=alpha
    )
    return Check(
        name=name,
        difference=row.advantage,
        outcome=outcome,
        p_value=p,
        remedy=_step_remedy(name, row, facts, alpha) if outcome is Outcome.OPEN else "",
    )


def _step_remedy(check: str, row: ModelRow, facts: MatrixFacts, alpha: float) -> str:
    """What would help a part of the pairs test."""
    more_models = _more_models_remedy(len(facts.rows))
    if row.advantage.value < EFFECT:
        if len(facts.rows) > MODELS_BEFORE_ITEMS and math.isfinite(row.power.items):
            return f"about {_rounded_to_two_digits(row.power.items)} items would show {EFFECT:.2f}"
        return more_models
    if check == "beyond_skill" and _does_scale_decide(row, alpha):
        if _are_others_at_floor(facts):
            return "take easier items, add models"
        return more_models
    if len(facts.rows) <= MODELS_BEFORE_ITEMS:
        return more_models
    if check != "beyond_pairs":
        return "take more items"
    if row.p_by_step[ABOVE_ALL_PAIRS] > 0:
        return "add models: another pair stands out"
    return more_models


def _more_models_remedy(model_count: int) -> str:
    if model_count < ADVISED_MODELS:
        return f"add models ({ADVISED_MODELS} are advised)"
    return "add models"


def _does_scale_decide(row: ModelRow, alpha: float) -> bool:
    """Whether the model is above skill on some scale of scores that fits the others, and not on
    all: more items do not help then.
    """
    p_by_scale = [p for p in row.scales.values() if not math.isnan(p)]
    is_clear_on_some_scale = min(p_by_scale, default=1.0) < alpha
    return is_clear_on_some_scale and row.p_by_step["noise"] >= alpha


def _are_others_at_floor(facts: MatrixFacts) -> bool:
    """Whether most scores of models on other models are next to 0."""
    if not facts.is_graded:
        return False
    is_other = ~np.eye(len(facts.means), dtype=bool)
    return bool(np.median(facts.means[is_other]) < FLOOR)


def _rounded_to_two_digits(items: float) -> int:
    """A number rounded up to two digits: a power is no more exact."""
    unit = int(10 ** max(len(str(math.ceil(items))) - 2, 0))
    return math.ceil(items / unit) * unit


def _observers_check(row: ModelRow, facts: MatrixFacts) -> Check:
    """The best other observer; skill is allowed for by the check before, so its value decides."""
    is_above = row.over_rival.value > TIE_TOLERANCE
    return Check(
        name="above_observers",
        difference=row.over_rival,
        outcome=Outcome.HOLDS if is_above else Outcome.FAILS,
        compared_with=f"{row.rival} on it: {_score_text(row.rival_score, facts)}",
    )


@dataclass(frozen=True)
class _Competitor:
    """Something on the model's own row that might reach as much."""

    label: str
    difference: Estimate
    p_value: float
    where_missed: Estimate
    """Item-specific score of the model at the items that this one misses: above 0 it knows what
    this one does not.
    """


def _competitor_checks(
    name: str,
    row: ModelRow,
    competitors: Sequence[_Competitor],
    p: float,
    facts: MatrixFacts,
    alpha: float,
) -> list[Check]:
    """A check for the competitor whose p is largest, which decides, and one for the closest if that
    is another.
    """
    if not competitors:
        return []
    hardest = max(
        competitors, key=lambda competitor: (competitor.p_value, -competitor.difference.value)
    )
    closest = min(competitors, key=lambda competitor: competitor.difference.value)
    compared = [hardest] if closest is hardest else [hardest, closest]
    checks = []
    for competitor in compared:
        # A competitor with a smaller p keeps the corrected p of the hardest: it is above that one
        # too.
        outcome = outcome_above_zero(
            competitor.difference, smallest=SMALLEST_OWN_ADVANTAGE, p_value=p, alpha=alpha
        )
        # Where the model is right at items that this one misses, this one does not explain it.
        explains = not above_zero(competitor.where_missed) < alpha
        reached = row.score.value - competitor.difference.value
        checks.append(
            Check(
                name=name,
                difference=competitor.difference,
                outcome=outcome,
                compared_with=f"{competitor.label}: {_score_text(reached, facts)}",
                p_value=p,
                explains=explains,
                remedy="" if outcome is Outcome.HOLDS else _competitor_remedy(competitor),
            )
        )
    return checks


def _competitor_remedy(competitor: _Competitor) -> str:
    if competitor.difference.value > 0:
        return "take more items"
    return "take other items"


def baseline_label(name: str) -> str:
    """What a baseline does, as a page says it.

    >>> baseline_label("mode by punctuation"), baseline_label("TF-IDF")
    ('guessing its usual answer by punctuation', 'guessing without a model (TF-IDF)')
    """
    if name == "mode":
        return "guessing its usual answer"
    feature = name.removeprefix("mode by ")
    if feature != name:
        return f"guessing its usual answer by {feature}"
    return f"guessing without a model ({name})"


def _baseline_checks(row: ModelRow, p: float, facts: MatrixFacts, alpha: float) -> list[Check]:
    competitors = [
        _Competitor(
            baseline_label(name),
            difference,
            row.over_p[name],
            row.where_missed[name],
        )
        for name, difference in row.above_baselines.items()
        if name != INFORMED
    ]
    return _competitor_checks("above_baselines", row, competitors, p, facts, alpha)


def _informed_checks(row: ModelRow, p: float, facts: MatrixFacts, alpha: float) -> list[Check]:
    if INFORMED not in row.above_baselines:
        return []
    competitor = _Competitor(
        f"the closest {INFORMED}",
        row.above_baselines[INFORMED],
        row.over_p[INFORMED],
        row.where_missed[INFORMED],
    )
    return _competitor_checks("above_informed", row, [competitor], p, facts, alpha)


def _stand_in_checks(row: ModelRow, p: float, facts: MatrixFacts, alpha: float) -> list[Check]:
    competitors = [
        _Competitor(
            f"{other}'s own {facts.replies}",
            difference,
            above_zero(difference),
            row.where_missed[other],
        )
        for other, difference in row.stand_ins.items()
    ]
    return _competitor_checks("above_stand_ins", row, competitors, p, facts, alpha)


def _own_check(row: ModelRow, p: float, facts: MatrixFacts, alpha: float) -> Check:
    """The score above its habit, or above 0 where no habit is known."""
    outcome = outcome_above_zero(
        row.specific, smallest=SMALLEST_OWN_ADVANTAGE, p_value=p, alpha=alpha
    )
    if math.isnan(row.habit):
        return Check("above_zero", row.specific, outcome, p_value=p)
    return Check(
        name="above_habit",
        difference=row.specific,
        outcome=outcome,
        compared_with=f"its habit: {_score_text(row.habit, facts)}",
        p_value=p,
        explains=True,
        remedy="take more items" if outcome is Outcome.OPEN else "",
    )


def _outsider_check(row: ModelRow, facts: MatrixFacts) -> Check:
    """A stranger to look-alikes has the cells of a model that knows itself, unless an informed
    observer was run.
    """
    if not row.outsider or INFORMED in row.above_baselines:
        reason = "the others are not alike beside it"
        if row.outsider:
            reason = "an informed observer was run"
        return Check("no_outsider", undefined(reason), Outcome.HOLDS)
    reason = "it predicts itself no better than the others one another"
    remedy = "add models like it"
    if facts.can_be_told:
        remedy = "run --observers shown:5, or add models like it"
    return Check("no_outsider", undefined(reason), Outcome.OPEN, remedy=remedy)


def _strength_checks(row: ModelRow, facts: MatrixFacts, alpha: float) -> list[Check]:
    """A strong model among weak ones that share wrong answers predicts itself best, unless an
    informed observer was run; nothing where the models' answers cannot be compared.
    """
    lone_answers = row.lone_answers
    if lone_answers is None or INFORMED in row.above_baselines:
        return []
    check = Check(
        "beyond_strength",
        lone_answers.difference,
        Outcome.HOLDS,
        p_value=lone_answers.thinning_p,
    )
    if lone_answers.is_beyond_strength(alpha):
        return [check]
    remedy = "add items, or a model as strong"
    if facts.can_be_told:
        remedy = "add items, a model as strong, or --observers shown:5"
    return [replace(check, outcome=Outcome.OPEN, remedy=remedy)]


def _shuffled_check(named_indices: Sequence[int], facts: MatrixFacts, alpha: float) -> Check:
    """The named models' own cells against those of observers in another order."""
    p = permute_observers_of(facts.centred, named_indices).p
    mean_advantage = float(
        np.mean([facts.centred[model_index, model_index] for model_index in named_indices])
    )
    difference = undefined("no interval", n=len(named_indices), unit="model", value=mean_advantage)
    check = Check("above_shuffled", difference, Outcome.HOLDS, p_value=p)
    if p < alpha:
        return check
    return replace(check, outcome=Outcome.OPEN, remedy="add models")
