"""The claims: by hand, against SciPy, and on drawn matrices."""

import math
import re
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from selfprobe.page.claims import claim_sentence
from selfprobe.stats.claim import Claim, Outcome, Verdict
from selfprobe.stats.estimate import Estimate, clustered_mean, holm, undefined
from selfprobe.studies.matrix.advantage import (
    double_centre,
    observers_permuted,
    permute_observers_of,
    total_of,
)
from selfprobe.studies.matrix.habit import ItemSpecificScores
from selfprobe.studies.matrix.rows import INFORMED, above_zero, model_rows
from selfprobe.studies.matrix.verdict import (
    MATRIX_WORDS,
    MatrixFacts,
    matrix_claims,
    relative_notes,
)
from tests.matrix.read_logs import named_models


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def hits(p: np.ndarray, items: int, generator: np.random.Generator) -> np.ndarray:
    return (generator.random((*p.shape, items)) < p[:, :, None]).astype(float)


def facts_of(
    x: np.ndarray,
    names: list[str] | None = None,
    *,
    hits_: dict[str, np.ndarray] | None = None,
    habit: float = math.nan,
    centred: np.ndarray | None = None,
    can_be_told: bool = False,
    graded: bool = True,
    stand_ins: np.ndarray | None = None,
    seed: int = 0,
) -> MatrixFacts:
    """The numbers of one matrix of item-specific scores."""
    models = names or [f"m{i}" for i in range(len(x))]
    specific = ItemSpecificScores(x, np.full(x.shape[:2], habit), "")
    rows = model_rows(
        models,
        x,
        specific,
        hits_ or {},
        tests=len(x),
        rng=rng(seed),
        graded=graded,
        stand_ins=stand_ins,
    )
    return MatrixFacts(
        models=models,
        rows=rows,
        holes={},
        means=np.nanmean(x, axis=2),
        centred=double_centre(np.nanmean(x, axis=2)) if centred is None else centred,
        total=total_of(x, models),
        can_be_told=can_be_told,
        is_graded=graded,
    )


def claims_of(x: np.ndarray, names: list[str] | None = None, **settings: Any) -> dict[str, Claim]:
    """Model → its claim."""
    return {claim.subject: claim for claim in matrix_claims(facts_of(x, names, **settings))}


def named(claims: dict[str, Claim]) -> tuple[str, ...]:
    return named_models(list(claims.values()))


def said(claim: Claim) -> str:
    return claim_sentence(claim, MATRIX_WORDS)


def first_unmet(claim: Claim) -> str:
    check = claim.first_unmet_check
    assert check is not None
    return check.name


# ---- the claims


def strong_among_weak(generator: np.random.Generator) -> np.ndarray:
    """Scores [target, observer, item]: the first model finds the right answer, the others mostly
    give one wrong answer.
    """
    right, shared_error = 0, 1
    words = []
    for strong in (0.8, 0.9):
        chances = np.array([strong, 0.3, 0.3, 0.3, 0.3])[:, None]
        is_right = generator.random((5, 400)) < chances
        is_shared = generator.random((5, 400)) < 0.5
        others = generator.integers(10, 10**6, (5, 400))
        words.append(np.where(is_right, right, np.where(is_shared, shared_error, others)))
    replies, predictions = words
    return (replies[:, None] == predictions[None]).astype(float)


def test_one_strong_model_among_weak_ones_that_share_wrong_answers_is_not_named() -> None:
    scores = strong_among_weak(rng())
    claim = claims_of(scores, list("abcde"))["a"]
    assert claim.verdict is Verdict.CANNOT_TELL and first_unmet(claim) == "beyond_strength"
    assert said(claim) == (
        "Cannot tell: a may stand out only as the strongest of these models; "
        "add items, or a model as strong."
    )
    claim = claims_of(scores, list("abcde"), can_be_told=True)["a"]
    assert said(claim).endswith("add items, a model as strong, or --observers shown:5.")


def test_beside_an_informed_observer_strength_is_not_asked() -> None:
    scores = strong_among_weak(rng())
    informed = {INFORMED: np.zeros((5, 400))}
    claims = claims_of(scores, list("abcde"), hits_=informed)
    assert named(claims) == ("a",)
    assert "beyond_strength" not in [check.name for check in claims["a"].checks]


def test_two_models_of_five_with_access_are_named_exactly() -> None:
    p = np.full((5, 5), 0.5)
    p[1, 1] = p[3, 3] = 0.9
    claims = claims_of(hits(p, 100, rng()), list("abcde"))
    assert named(claims) == ("b", "d")
    assert re.fullmatch(
        r"Yes: b scores 9\d % on itself, \+0\.4\d \[.*\] above what skill gives \(p = 0\.\d+\); [ace] on it: 5\d %\.",
        said(claims["b"]),
    )


def test_a_model_beside_named_ones_is_answered_no_only_where_an_advantage_of_interest_is_ruled_out() -> (
    None
):
    p = np.full((5, 5), 0.5) + 0.4 * np.diag([0, 1, 0, 0, 0])
    few, many = claims_of(hits(p, 60, rng(1))), claims_of(hits(p, 2000, rng(1)))
    assert named(few) == named(many) == ("m1",)
    assert {claims.verdict for model, claims in many.items() if model != "m1"} == {Verdict.NO}
    assert Verdict.CANNOT_TELL in {claims.verdict for claims in few.values()}
    for claim in (*few.values(), *many.values()):
        assert (claim.verdict is Verdict.NO) == (claim.effect.high < claim.smallest)


def test_a_relative_in_the_matrix_is_the_competitor_with_what_its_own_words_reach() -> None:
    names = [
        "google/gemma-2b",
        "google/gemma-7b",
        "openai/gpt-4o",
        "cohere/command-r",
        "xai/grok-2",
    ]
    x = hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), 200, rng())
    words = np.full((5, 5, 200), 0.1)
    words[0, 1] = rng(1).random(200) < 0.4
    claims = claims_of(x, names, stand_ins=words)
    assert named(claims) == ("google/gemma-2b",)
    assert re.search(r"; google/gemma-7b's own replies: 4\d %\.", said(claims["google/gemma-2b"]))


def test_a_near_copy_and_a_relative_are_named_with_what_their_replies_reach() -> None:
    names = [
        "google/gemma-2b",
        "google/gemma-7b",
        "openai/gpt-4o",
        "cohere/command-r",
        "google/gemma-27b",
    ]
    x = hits(np.full((5, 5), 0.3), 200, rng())
    words = np.full((5, 5, 200), 0.1)
    words[0, 1], words[0, 4] = 0.6, 0.2
    notes = relative_notes(facts_of(x, names, stand_ins=words))
    assert notes["google/gemma-2b"] == [
        "google/gemma-7b is a near-copy: its own replies predict google/gemma-2b in 60 %, 0.10 or more above every "
        "other model's.",
        "Of its family are here: google/gemma-27b's own replies 20 %.",
    ]
    assert "openai/gpt-4o" not in notes and len(notes["google/gemma-27b"]) == 1
    words[0, 4] = 0.55
    assert len(relative_notes(facts_of(x, names, stand_ins=words))["google/gemma-2b"]) == 1


def test_whom_another_models_own_replies_predict_as_well_is_not_named() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.5 * np.diag([1, 0, 0, 1, 0]), 800, rng())
    words = np.full((5, 5, 800), 0.1)
    words[0, 1] = x[0, 0]
    claims = claims_of(x, list("abcde"), stand_ins=words)
    assert named(claims) == ("d",) and claims["a"].verdict is Verdict.NO
    assert re.search(r"less than 0\.10 above b's own replies: \d\d %\.", said(claims["a"]))


def test_an_outsider_among_look_alikes_is_named_only_beside_an_informed_observer() -> None:
    p = np.full((5, 5), 0.73)
    p[4, :4] = p[:4, 4] = 0.5
    x = hits(p, 400, rng())
    e = claims_of(x, list("abcde"), can_be_told=True)["e"]
    assert e.verdict is Verdict.CANNOT_TELL and first_unmet(e) == "no_outsider"
    assert said(e).endswith(
        "may stand out only because the other models resemble each other; run --observers shown:5, or add models like it."
    )
    assert said(claims_of(x, list("abcde"))["e"]).endswith("each other; add models like it.")
    told = claims_of(x, list("abcde"), hits_={INFORMED: np.full((5, 400), 0.5)}, can_be_told=True)
    assert named(told) == ("e",)


def test_a_strong_predictable_model_without_access_is_not_told_apart_from_skill() -> None:
    p = np.outer([0.8, 0.3, 0.3, 0.3, 0.3], [0.95, 0.3, 0.3, 0.3, 0.3])
    claims = claims_of(hits(p, 400, rng()), ["big", *"bcde"])
    assert named(claims) == () and claims["big"].verdict is Verdict.CANNOT_TELL
    assert first_unmet(claims["big"]) == "beyond_skill"
    assert claims["big"].effect.low < 0.1, "on another scale skill explains it"


def at_the_floor(own: float, on_others: float, models: int, items: int) -> np.ndarray:
    """Scores [target, observer, item] of three words each: nobody but the first model is ever
    right.
    """
    p = np.zeros((models, models, 1, 1))
    p[1:, 0] = on_others
    p[0, 0] = own
    return np.asarray((rng().random((models, models, 3, items)) < p).mean(axis=2))


FLOORS = {
    "40 items": at_the_floor(0.85, 0.3, 5, 40),
    "four models": at_the_floor(0.85, 0.2, 4, 12),
}


@pytest.mark.parametrize("name", FLOORS)
def test_an_open_sentence_has_no_interval_beside_the_p_of_another_test(name: str) -> None:
    scores = FLOORS[name]
    claim = claims_of(scores)["m0"]
    assert claim.effect.low > 0 and claim.verdict is Verdict.CANNOT_TELL
    models = len(scores)
    assert re.fullmatch(
        r"Cannot tell: m0 is not shown to be above what skill gives \(on the strictest scale "
        r"p = 0\.\d+\); take easier items, add models\.",
        said(claim),
    )
    more_items = at_the_floor(0.85, 0.3, models, 1000)
    assert claims_of(more_items)["m0"].verdict is Verdict.CANNOT_TELL, "items do not help"
    p = np.full((models, models), 0.1)
    p[1:, 0] = 0.3
    p[0, 0] = 0.85
    assert claims_of(hits(p, 200, rng()))["m0"].verdict is Verdict.YES, "what is advised does"


def test_every_open_check_of_pairs_whose_interval_is_above_zero_says_what_its_p_is_of() -> None:
    facts = facts_of(hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), 200, rng()))
    for step in ("noise", "shared items", "pairs", "without its likest"):
        p_by_step = {**facts.rows[0].p_by_step, step: 0.3}
        row = replace(facts.rows[0], p_by_step=p_by_step)
        claim, *_ = matrix_claims(replace(facts, rows=[row, *facts.rows[1:]]))
        text = said(claim)
        assert claim.effect.low > 0 and claim.verdict is Verdict.CANNOT_TELL, step
        assert re.search(r"\((on the strictest scale )?p = 1\.0(, corrected)?\);", text), text


def test_items_that_share_no_difficulty_give_a_check_without_a_number() -> None:
    p = np.full((5, 5), 0.3)
    p[0, 0] = 0.9
    for claim in claims_of(hits(p, 200, rng()), list("abcde")).values():
        (check,) = [check for check in claim.checks if check.name == "beyond_shared_items"]
        assert check.outcome is Outcome.HOLDS and check.difference.reason
        assert math.isnan(check.p_value) and math.isnan(check.difference.value)


def test_a_knower_beside_weak_observers_is_named_with_the_strongest_competitor() -> None:
    p = np.full((5, 5), 0.1)
    p[2, 2] = 1.0
    claims = claims_of(hits(p, 40, rng()), list("abcde"), hits_={"mode": np.full((5, 40), 0.6)})
    assert named(claims) == ("c",)
    assert said(claims["c"]).endswith("; guessing its usual answer: 60 %.")


def test_a_model_that_another_one_predicts_better_is_not_named() -> None:
    """Skill that is taken off may leave an advantage; the question is about who predicts it best."""
    facts = facts_of(
        hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), 200, rng()), list("abcde")
    )
    (a, *others) = facts.rows
    behind = replace(a, over_rival=Estimate(-0.1, -0.2, 0.0, 200, "item"))
    claim, *_ = matrix_claims(replace(facts, rows=[behind, *others]))
    assert claim.verdict is Verdict.CANNOT_TELL and first_unmet(claim) == "above_observers"


def test_an_informed_observer_is_no_baseline_without_a_model() -> None:
    p = np.full((5, 5), 0.1) + 0.8 * np.diag([1, 0, 0, 0, 0])
    given = {"mode": np.full((5, 60), 0.2), INFORMED: np.full((5, 60), 0.5)}
    facts = facts_of(hits(p, 60, rng()), hits_=given)
    assert facts.rows[0].without_a_model == ("mode", pytest.approx(0.2))
    compared = {check.name: check.compared_with for check in matrix_claims(facts)[0].checks}
    assert compared["above_baselines"] == "guessing its usual answer: 20 %"
    assert compared["above_informed"] == "the closest informed observer: 50 %"


def test_above_a_baseline_that_is_the_same_everywhere_a_score_keeps_its_interval() -> None:
    x = hits(np.full((3, 3), 0.8), 40, rng())
    given = {"nothing": np.zeros((3, 40)), "half": np.full((3, 40), 0.5)}
    row, *_ = model_rows(
        list("abc"),
        x,
        ItemSpecificScores(x, np.full((3, 3), math.nan), ""),
        given,
        tests=3,
        rng=rng(),
    )
    assert (row.above_baselines["nothing"].low, row.above_baselines["nothing"].high) == (
        row.score.low,
        row.score.high,
    )
    assert row.above_baselines["half"].low == pytest.approx(row.score.low - 0.5)


def test_the_hardest_and_the_closest_baseline_are_both_compared() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.5 * np.diag([1, 0, 0, 0, 0]), 300, rng())
    row, *_ = facts_of(
        x, hits_={"mode": np.full((5, 300), 0.5), "text only": np.full((5, 300), 0.4)}
    ).rows
    hard = replace(row.above_baselines["text only"], value=0.4, low=-0.1, high=0.9, se=0.3)
    facts = facts_of(x)
    changed = replace(
        facts,
        rows=[
            replace(row, above_baselines={**row.above_baselines, "text only": hard}),
            *facts.rows[1:],
        ],
    )
    claim, *_ = matrix_claims(changed)
    compared = [check.compared_with for check in claim.checks if check.name == "above_baselines"]
    assert [text.partition(":")[0] for text in compared] == [
        "guessing without a model (text only)",
        "guessing its usual answer",
    ]
    assert (
        claim.verdict is Verdict.CANNOT_TELL and "usual" in claim.strongest_competitor.compared_with
    )  # type: ignore[union-attr]


def test_no_access_is_answered_no_where_an_advantage_of_interest_is_ruled_out() -> None:
    claims = claims_of(hits(np.full((6, 6), 0.5), 1600, rng(3)))
    assert {claim.verdict for claim in claims.values()} == {Verdict.NO}
    assert re.fullmatch(
        r"No: m0 scores \d\d % on itself, less than 0\.10 above what skill gives: .?\d\.\d\d \[.*\]\.",
        said(claims["m0"]),
    )


def test_no_access_in_a_small_matrix_cannot_tell_and_says_how_many_items_would() -> None:
    claims = claims_of(hits(np.full((5, 5), 0.5), 60, rng(1)))
    opened = [claim for claim in claims.values() if claim.verdict is Verdict.CANNOT_TELL]
    assert len(opened) > 2 and not named(claims)
    assert all(first_unmet(claim) == "beyond_skill" for claim in opened)
    assert any(re.search(r"; about \d+ items would show 0\.10\.$", said(claim)) for claim in opened)


@pytest.mark.parametrize(("models", "more"), [(2, "2 models"), (3, "1 model")])
def test_three_models_name_nobody_however_clear(models: int, more: str) -> None:
    claims = claims_of(hits(np.full((models, models), 0.3) + 0.6 * np.eye(models), 100, rng()))
    for model, claim in claims.items():
        assert (
            said(claim) == f"Cannot tell: {model} has too few models beside it; add {more} or more."
        )
        assert claim.effect.reason == f"{models} models; 4 are the least, 8 are advised"


def test_one_model_alone_cannot_tell() -> None:
    nothing = np.full((1, 1), math.nan)
    (claim,) = matrix_claims(
        MatrixFacts(["m"], (), {}, nothing, nothing, undefined("no other model"))
    )
    assert said(claim) == "Cannot tell: m has too few models beside it; add 3 models or more."


def test_a_model_with_a_hole_cannot_tell_and_the_hole_is_named() -> None:
    facts = facts_of(
        hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), 100, rng()), list("abcde")
    )
    holed = replace(facts, models=[*"abcde", "f"], holes={"f": "a seen by f: the key ran out"})
    *compared, f = matrix_claims(holed)
    assert f.checks[0].difference.reason == "a seen by f: the key ran out"
    assert named_models(compared) == ("a",)
    assert said(f) == (
        "Cannot tell: f has cells without a score; the same command asks again what failed."
    )
    *_, f = matrix_claims(replace(holed, asked_in_full=["f"]))
    assert said(f) == (
        "Cannot tell: f has cells without a score; take other models or arguments, or ask anew in "
        "another --log-dir."
    )


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_a_model_of_which_no_item_is_scored_by_all_cannot_tell() -> None:
    x = hits(np.full((5, 5), 0.5), 30, rng())
    x[0, 1, :15] = x[0, 2, 15:] = math.nan
    for claim in claims_of(x).values():
        assert claim.verdict is Verdict.CANNOT_TELL and first_unmet(claim) == "scored_by_all"


@pytest.mark.parametrize("items", [1, 2, 3])
def test_of_very_few_items_nothing_can_be_told(items: int) -> None:
    claims = claims_of(hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), items, rng(1)))
    assert {claim.verdict for claim in claims.values()} == {Verdict.CANNOT_TELL}
    assert first_unmet(claims["m0"]) == ("scored_by_all" if items == 1 else "above_zero")


def test_a_difference_of_exactly_nothing_is_a_result_only_where_scores_vary() -> None:
    claims = claims_of(np.broadcast_to(rng().random(50) < 0.5, (4, 4, 50)).astype(float))
    assert {claim.verdict for claim in claims.values()} == {Verdict.NO}


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_task_without_variation_cannot_tell(score: float) -> None:
    for model, claim in claims_of(np.full((5, 5, 50), score)).items():
        assert claim.verdict is Verdict.CANNOT_TELL and first_unmet(claim) == "variation"
        assert said(claim) == (
            f"Cannot tell: {model} cannot show an advantage: every score is {score:.2f}; "
            "take items on which the models differ."
        )


def test_own_scores_wholly_below_the_others_are_a_no() -> None:
    for level in (0.7, 0.99):
        claims = claims_of(hits(np.full((5, 5), level) - 0.5 * np.eye(5), 100, rng(3)))
        assert {claim.verdict for claim in claims.values()} == {Verdict.NO}, level


def test_an_advantage_that_a_baseline_of_the_own_row_explains_is_a_no() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.5 * np.diag([1, 0, 0, 1, 0]), 200, rng())
    text = x[np.arange(5), np.arange(5)] * 0
    text[0] = x[
        0, 0
    ]  # the text tells as much of the first model as it says itself, and nothing of the fourth
    claims = claims_of(x, list("abcde"), hits_={"text only": text})
    assert named(claims) == ("d",) and claims["a"].verdict is Verdict.NO
    assert re.search(
        r"less than 0\.10 above guessing without a model \(text only\): \d\d %\.$",
        said(claims["a"]),
    )


@pytest.mark.parametrize(("low", "name"), [(0.55, "likeness"), (-0.4, "less a divergence")])
def test_scores_that_are_no_shares_are_said_as_they_are(low: float, name: str) -> None:
    """Likenesses have a floor above 0; a divergence with its sign turned is never above 0."""
    x = rng(3).normal(low, 0.05, (5, 5, 120))
    assert named(claims_of(x, list("abcde"), graded=False)) == (), name
    x[2, 2] += 0.25
    claims = claims_of(x, list("abcde"), graded=False)
    if low < 0:
        assert (
            claims["c"].verdict is Verdict.CANNOT_TELL and first_unmet(claims["c"]) == "above_zero"
        )
    else:
        assert named(claims) == ("c",) and f"c scores {low + 0.25:.2f} on itself, +0.25 [" in said(
            claims["c"]
        )


def test_a_knower_among_thirty_models_is_named() -> None:
    p = np.full((30, 30), 0.3)
    p[4, 4] = 0.9
    assert named(claims_of(hits(p, 60, rng(2)))) == ("m4",)


def test_a_model_whose_hard_items_have_no_answer_is_not_named_by_the_rest() -> None:
    x = hits(np.full((5, 5), 0.5), 200, rng(4))
    x[0, 0, np.flatnonzero(x[0, 0] == 0)[:80]] = (
        math.nan
    )  # of its own wrong replies, 80 were refused
    assert np.nanmean(x[0, 0]) > 0.65
    assert named(claims_of(x, list("abcde"))) == ()


def test_a_knower_with_a_few_refusals_is_still_named() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), 200, rng(5))
    x[0, 0, :10] = math.nan
    assert named(claims_of(x, list("abcde"))) == ("a",)


def test_what_blocks_a_name_is_said_so_that_one_can_act_on_it() -> None:
    p = np.full((5, 5), 0.3)
    p[0, 0] = p[1, 2] = p[2, 1] = p[3, 4] = p[4, 3] = 0.75
    claim = claims_of(hits(p, 400, rng(6)), list("abcde"))["a"]
    assert claim.verdict is Verdict.CANNOT_TELL and first_unmet(claim) == "beyond_pairs"
    outcomes = {check.name: check.outcome for check in claim.checks}
    assert outcomes["beyond_skill"] is Outcome.HOLDS
    assert outcomes["beyond_shared_items"] is Outcome.HOLDS
    assert re.search(r"; add models( \(8 are advised\)|: another pair stands out)\.$", said(claim))


def test_a_permutation_test_that_disagrees_is_not_overruled_by_names() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.5 * np.eye(5), 200, rng())
    assert len(named(claims_of(x))) == 5
    claims = claims_of(x, centred=np.roll(np.eye(5), 1, axis=1))
    assert named(claims) == () and {first_unmet(claim) for claim in claims.values()} == {
        "above_shuffled"
    }


def test_the_order_of_observers_is_held_against_the_named_models_alone() -> None:
    """Two of eight with access are lost in the sum over all eight, whose others are below the fit."""
    centred = np.diag([0.5, 0.5, *[-0.3] * 6]) + 0.01
    assert observers_permuted(centred, rng=rng()).p > 0.05
    assert permute_observers_of(centred, [0, 1]).p == pytest.approx(1 / math.perm(8, 2))
    drawn = permute_observers_of(np.diag(np.arange(10.0)), list(range(10)))
    assert not drawn.exact and drawn.p == pytest.approx(1 / 10_000)


def test_where_orders_could_never_be_rare_there_is_no_check_of_them() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.6 * np.diag([0, 1, 0, 0, 0]), 100, rng())
    claims = claims_of(x, centred=np.zeros((5, 5)))
    assert named(claims) == ("m1",)
    assert "above_shuffled" not in [check.name for check in claims["m1"].checks]


def test_a_baseline_that_is_right_at_other_items_explains_nothing() -> None:
    x = hits(np.full((5, 5), 0.2) + 0.3 * np.diag([1, 0, 0, 0, 0]), 400, rng(3))
    guess = np.zeros((5, 400))
    guess[0] = x[0, 0]
    alike = claims_of(x, list("abcde"), hits_={"text only": guess})["a"]
    assert alike.verdict is Verdict.NO and alike.explanation is not None
    guess[0] = 1 - x[0, 0]
    elsewhere = claims_of(x, list("abcde"), hits_={"text only": guess})["a"]
    assert elsewhere.verdict is Verdict.CANNOT_TELL and first_unmet(elsewhere) == "above_baselines"


def test_the_largest_p_of_a_models_checks_is_holms_of_its_largest_p() -> None:
    """Holm's of each check alone would name one model for lack of one thing, and another for lack
    of another.
    """
    x = hits(np.full((6, 6), 0.4) + 0.2 * np.diag([1, 1, 0, 0, 0, 0]), 150, rng(8))
    facts = facts_of(x, hits_={"mode": np.full((6, 150), 0.42)}, habit=0.1)
    p_holm = holm([row.p for row in facts.rows])
    for claim, p in zip(matrix_claims(facts), p_holm, strict=True):
        tests = [check for check in claim.checks if check.name != "above_shuffled"]
        ps = [check.p_value for check in tests if not math.isnan(check.p_value)]
        assert max(ps) == pytest.approx(p) and min(ps) >= 0


def test_p_is_corrected_over_the_rows_of_all_tasks() -> None:
    facts = facts_of(hits(np.full((5, 5), 0.5) + 0.4 * np.diag([1, 0, 0, 0, 0]), 100, rng(1)))
    alone, *_ = matrix_claims(facts)
    other = facts_of(hits(np.full((5, 5), 0.5), 100, rng(2)))
    together, *_ = matrix_claims(facts, family=[*facts.rows, *other.rows])
    assert (
        together.checks[-4].p_value > alone.checks[-4].p_value
        or together.details["p"] != alone.details["p"]
    )


def test_p_of_a_difference_is_the_t_test_and_the_sign_test_where_all_items_agree() -> None:
    values = rng().normal(0.2, 1, 30)
    expected = scipy_stats.ttest_1samp(values, 0, alternative="greater").pvalue
    assert above_zero(clustered_mean(values, np.arange(30), interval="t")) == pytest.approx(
        expected
    )
    assert above_zero(Estimate(1.0, math.nan, math.nan, 8, "item")) == 0.5**8
    assert above_zero(Estimate(0.0, math.nan, math.nan, 8, "item")) == 1


# ---- error rates and power, by the truths that bench/verdict.py counts


def bench() -> Any:
    folder = Path(__file__).parents[2] / "bench"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # its parts import one another
    return import_module("verdict")


def counted(name: str, part: str, models: int, items: int, matrices: int) -> Any:
    module = bench()
    job = module.Job(part, name, models, items)
    return sum((module.count_matrix(job, number) for number in range(matrices)), Counter())


@pytest.mark.slow(10)
@pytest.mark.parametrize("line", [line.name for line in bench().lines(5) if line.group == "null"])
def test_a_matrix_without_access_is_hardly_ever_supported(line: str) -> None:
    assert (
        counted(line, "null", 5, 200, 60)["hits"] <= 7
    )  # of 60: 7 or fewer come with .99 at a rate of .05


@pytest.mark.slow(10)
@pytest.mark.parametrize("form", ["product", "logistic"])
def test_access_of_two_among_equals_is_found_and_nobody_else_named(form: str) -> None:
    [line] = [
        one.name
        for one in bench().lines(5)
        if one.name.startswith("access .4 of two, equals") and form in one.name
    ]
    found = counted(line, "access", 5, 400, 40)
    assert found["hits"] >= 36 and found["wrong"] <= 3
