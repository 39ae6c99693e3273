"""The verdict: by hand, against SciPy, and on drawn matrices."""

import math
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from selfprobe.stats.estimate import Estimate, clustered_mean, holm
from selfprobe.studies.matrix.advantage import Permutation, double_centre, observers_permuted, total_of
from selfprobe.studies.matrix.habit import Specific
from selfprobe.studies.matrix.rows import INFORMED, above_zero, model_rows
from selfprobe.studies.matrix.verdict import PAIRS_ALONE, SMALLEST, Verdict, _like_skill, judge_matrix


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def hits(p: np.ndarray, items: int, generator: np.random.Generator) -> np.ndarray:
    return (generator.random((*p.shape, items)) < p[:, :, None]).astype(float)


def judged(
    x: np.ndarray,
    names: list[str] | None = None,
    *,
    hits_: dict[str, np.ndarray] | None = None,
    habit: float = math.nan,
    permutation: Permutation | None = None,
    frames: bool = False,
    informed: bool = False,
    graded: bool = True,
    stand_ins: np.ndarray | None = None,
    seed: int = 0,
) -> Verdict:
    """The verdict of one matrix of item-specific scores."""
    models = names or [f"m{i}" for i in range(len(x))]
    specific = Specific(x, np.full(x.shape[:2], habit), "")
    rows = model_rows(models, x, specific, hits_ or {}, tests=len(x), rng=rng(seed), graded=graded, stand_ins=stand_ins)
    return judge_matrix(
        rows,
        p_holm=holm([row.p for row in rows]).tolist(),
        total=total_of(x, models),
        permutation=permutation or observers_permuted(double_centre(np.nanmean(x, axis=2)), rng=rng(seed)),
        means=np.nanmean(x, axis=2),
        frames=frames,
        informed=informed,
    )


# ---- the verdict


def test_two_models_of_five_with_access_are_named_exactly() -> None:
    p = np.full((5, 5), 0.5)
    p[1, 1] = p[3, 3] = 0.9
    got = judged(hits(p, 100, rng()), list("abcde"))
    assert got.kind == "supported" and got.models == ("b", "d")
    head = "b, d predict themselves beyond what skill, habits and every other model here explain: the own cell stands"
    assert (
        got.sentence.startswith(f"{head} out above all 20 pairs. b 0.9")
        and "over the fit, pairs differ by 0.0" in got.sentence
    )
    assert "compared with m" not in got.sentence and "; compared with " in got.sentence
    assert "does not count: with 2 of 5 models named it cannot be below 0.05." in got.sentence


def test_what_is_supported_says_what_would_change_it() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.6 * np.diag([0, 1, 0, 0, 0]), 100, rng())
    untold = judged(x, informed=True)
    assert untold.models == ("m1",)
    assert untold.caution == (
        "Add a relative of m1: none is here, and one might predict it as well. selfprobe matrix --observers shown:5 would tell."
    )
    assert untold.sentence.endswith(untold.caution)
    told = judged(x, hits_={INFORMED: np.full((5, 100), 0.3)}, informed=True)
    assert told.models == ("m1",) and "the closest informed observer 0.30" in told.sentence
    assert told.caution == "Add a relative of m1: none is here, and one might predict it as well."


def test_a_relative_in_the_matrix_is_named_with_what_its_own_words_reach() -> None:
    names = ["google/gemma-2b", "google/gemma-7b", "openai/gpt-4o", "cohere/command-r", "xai/grok-2"]
    x = hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), 200, rng())
    words = np.full((5, 5, 200), 0.1)
    words[0, 1] = rng(1).random(200) < 0.4
    got = judged(x, names, stand_ins=words)
    assert got.models == ("google/gemma-2b",)
    assert "google/gemma-7b's own replies predict google/gemma-2b's in 0.4" in got.sentence
    assert got.caution == "Only these models were compared: another relative might reach as much."


def test_whom_another_models_own_replies_predict_as_well_is_not_named() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.5 * np.diag([1, 0, 0, 1, 0]), 200, rng())
    words = np.full((5, 5, 200), 0.1)
    words[0, 1] = x[0, 0]
    got = judged(x, list("abcde"), stand_ins=words)
    assert got.kind == "supported" and got.models == ("d",)
    words[3, 1] = x[3, 3]
    both = judged(x, list("abcde"), stand_ins=words)
    assert both.kind == "not supported" and "is explained by b's own replies (0." in both.sentence


def test_an_outsider_among_look_alikes_is_named_only_beside_an_informed_observer() -> None:
    p = np.full((5, 5), 0.73)
    p[4, :4] = p[:4, 4] = 0.5
    x = hits(p, 400, rng())
    got = judged(x, list("abcde"), informed=True)
    assert got.kind == "not told apart" and got.models == ()
    assert got.reason == "e may only be a stranger to look-alikes; run --observers shown:5 for e"
    told = judged(x, list("abcde"), hits_={INFORMED: np.full((5, 400), 0.5)}, informed=True)
    assert told.models == ("e",)


def test_a_strong_predictable_model_without_access_is_not_told_apart_from_skill() -> None:
    p = np.outer([0.8, 0.3, 0.3, 0.3, 0.3], [0.95, 0.3, 0.3, 0.3, 0.3])
    got = judged(hits(p, 400, rng()), ["big", *"bcde"])
    assert got.kind == "not told apart" and got.models == ()
    assert (
        got.sentence.startswith("big predicts itself 2.9 times as well as the others do")
        and "skill alone could look like this. These controls would decide: observers of like skill." in got.sentence
    )
    both = judged(hits(p, 400, rng()), ["big", *"bcde"], frames=True, informed=True)
    assert "observers of like skill, -T about=self,other, selfprobe matrix --observers shown:5." in both.sentence


def test_skill_is_said_to_look_like_access_only_where_it_accounts_for_half_of_it() -> None:
    """Three times as good on itself: twice as good elsewhere too is √3 or more, 1.5 times is less."""
    means = np.full((4, 4), 0.3)
    means[0, 0] = 0.9
    rows: Any = [SimpleNamespace(model=name) for name in "abcd"]
    for elsewhere, like in ((0.6, True), (0.45, False)):
        means[1:, 0] = elsewhere
        assert bool(_like_skill(rows[0], rows, means, "")) == like, elsewhere


def test_a_knower_beside_weak_observers_is_supported() -> None:
    p = np.full((5, 5), 0.1)
    p[2, 2] = 1.0
    got = judged(hits(p, 40, rng()), list("abcde"), hits_={"mode": np.full((5, 40), 0.0)})
    assert got.kind == "supported" and got.models == ("c",)
    assert "c 1.00 on itself" in got.sentence and "(mode) 0.00" in got.sentence


def test_an_informed_observer_is_no_baseline_without_a_model() -> None:
    p = np.full((3, 3), 0.1) + 0.8 * np.diag([1, 0, 0])
    given = {"mode": np.full((3, 60), 0.2), INFORMED: np.full((3, 60), 0.5)}
    x = hits(p, 60, rng())
    row, *_ = model_rows(list("abc"), x, Specific(x, np.full((3, 3), math.nan), ""), given, tests=3, rng=rng())
    assert row.without_a_model == ("mode", pytest.approx(0.2))


def test_above_a_baseline_that_is_the_same_everywhere_a_score_keeps_its_interval() -> None:
    x = hits(np.full((3, 3), 0.8), 40, rng())
    given = {"nothing": np.zeros((3, 40)), "half": np.full((3, 40), 0.5)}
    row, *_ = model_rows(list("abc"), x, Specific(x, np.full((3, 3), math.nan), ""), given, tests=3, rng=rng())
    assert (row.over["nothing"].low, row.over["nothing"].high) == (row.score.low, row.score.high)
    assert row.over["half"].low == pytest.approx(row.score.low - 0.5)


def test_no_access_is_not_supported_when_an_advantage_of_interest_would_have_been_seen() -> None:
    got = judged(hits(np.full((6, 6), 0.5), 400, rng(3)))
    assert got.kind == "not supported"
    assert "An advantage of 0.05 on average is ruled out; of a single model one below 0." in got.sentence
    seen = judged(hits(np.full((6, 6), 0.9), 1600, rng(3)))
    assert seen.kind == "not supported" and "of 0.10 of one model would have been seen" in seen.sentence


def test_nothing_is_ruled_out_while_the_interval_of_t_still_holds_what_is_of_interest() -> None:
    x = hits(np.full((6, 6), 0.5), 100, rng(2))
    got, total = judged(x), total_of(x, [f"m{i}" for i in range(6)])
    assert total.low < SMALLEST < total.high and "or more of one model would have been seen" in got.sentence
    assert got.kind == "underpowered"


def test_no_access_in_a_small_matrix_is_underpowered_and_says_what_may_be_missed() -> None:
    got = judged(hits(np.full((5, 5), 0.5), 30, rng()))
    assert got.kind == "underpowered" and "of one model would have been seen." in got.sentence
    assert got.reason.startswith("no advantage is shown; at this size ")


@pytest.mark.parametrize(
    ("models", "count", "more"), [(2, "two", "three, better six"), (3, "three", "two, better five")]
)
def test_three_models_name_nobody_however_clear(models: int, count: str, more: str) -> None:
    got = judged(hits(np.full((models, models), 0.3) + 0.6 * np.eye(models), 100, rng()))
    assert got.kind == "underpowered" and got.models == ()
    assert got.sentence.startswith(
        f"Too few models: with {count} nobody can say how much two models differ without self-knowledge. Add {more}."
    )
    assert ("on itself" in got.sentence) == (models == 3), "what can be said all the same"


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_a_hole_is_underpowered_with_the_cell_named() -> None:
    x = hits(np.full((5, 5), 0.5), 30, rng())
    x[0, 2] = math.nan
    shuffled = Permutation(math.nan, 0, True)
    assert "no score in cell (target m0, observer m2)" in judged(x, permutation=shuffled).sentence


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_a_model_of_which_no_item_is_scored_by_all_is_underpowered() -> None:
    x = hits(np.full((5, 5), 0.5), 30, rng())
    x[0, 1, :15] = x[0, 2, 15:] = math.nan
    got = judged(x)
    assert got.kind == "underpowered" and got.reason == "of some model no item is scored by all observers"


def test_a_difference_of_exactly_nothing_is_a_result_only_where_scores_vary() -> None:
    got = judged(np.broadcast_to(rng().random(50) < 0.5, (4, 4, 50)).astype(float))
    assert got.kind == "not supported" and "exactly 0" in got.sentence


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_task_without_variation_cannot_tell(score: float) -> None:
    got = judged(np.full((5, 5, 50), score))
    assert got.answer == "Cannot tell" and got.reason.startswith(f"every score is {score:.2f}, so no advantage")
    assert "without variation no advantage can show" in got.sentence


def test_where_another_models_replies_get_as_much_more_items_are_not_asked_for() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.25 * np.diag([1, 0, 0, 0, 0]), 60, rng())
    words = np.full((5, 5, 60), 0.1)
    words[0, 1] = x[0, 0]
    got = judged(x, list("abcde"), stand_ins=words)
    assert got.answer == "Cannot tell" and got.reason == "a stands out, but not beyond b's own replies"
    assert "More items would not help: a gets 0.52 on itself, no more than b's own replies (0.52)." in got.sentence
    assert "takes about" not in got.sentence


def test_the_power_says_that_it_is_of_the_pairs_alone() -> None:
    for got in (judged(hits(np.full((5, 5), 0.5), 30, rng())), judged(hits(np.full((6, 6), 0.5), 400, rng(3)))):
        assert PAIRS_ALONE in got.sentence


def test_an_advantage_that_a_baseline_of_the_own_row_explains_is_not_supported() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.5 * np.diag([1, 0, 0, 1, 0]), 200, rng())
    text = x[np.arange(5), np.arange(5)] * 0
    text[0] = x[0, 0]  # the text tells as much of the first model as it says itself, and nothing of the fourth
    got = judged(x, list("abcde"), hits_={"text only": text})
    assert got.kind == "supported" and got.models == ("d",)
    text[3] = x[3, 3]
    both = judged(x, list("abcde"), hits_={"text only": text})
    assert both.kind == "not supported" and "a (0." in both.sentence
    assert "is explained by the baseline 'text only' (0." in both.sentence


@pytest.mark.parametrize(("low", "name"), [(0.55, "likeness"), (-0.4, "less a divergence")])
def test_scores_that_are_no_shares_are_said_as_they_are(low: float, name: str) -> None:
    """Likenesses have a floor above 0; a divergence with its sign turned is never above 0."""
    x = rng(3).normal(low, 0.05, (5, 5, 120))
    assert judged(x, list("abcde"), graded=False).kind != "supported", name
    x[2, 2] += 0.25
    got = judged(x, list("abcde"), graded=False)
    if low < 0:
        assert got.kind == "not told apart" and got.reason == "c stands out, but its score is not above 0"
        assert "habit" not in got.sentence
    else:
        assert got.models == ("c",) and f"c {low + 0.25:.2f} on itself (+0.25 over the fit" in got.sentence


def test_a_knower_among_thirty_models_is_named_above_870_pairs() -> None:
    p = np.full((30, 30), 0.3)
    p[4, 4] = 0.9
    got = judged(hits(p, 60, rng(2)))
    assert got.models == ("m4",) and "stands out above all 870 pairs" in got.sentence


def test_a_model_whose_hard_items_have_no_answer_is_not_named_by_the_rest() -> None:
    x = hits(np.full((5, 5), 0.5), 200, rng(4))
    x[0, 0, np.flatnonzero(x[0, 0] == 0)[:80]] = math.nan  # of its own wrong replies, 80 were refused
    assert np.nanmean(x[0, 0]) > 0.65
    assert judged(x, list("abcde")).models == ()


def test_a_knower_with_a_few_refusals_is_still_named() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.6 * np.diag([1, 0, 0, 0, 0]), 200, rng(5))
    x[0, 0, :10] = math.nan
    assert judged(x, list("abcde")).models == ("a",)


def test_what_blocks_a_name_is_said_so_that_one_can_act_on_it() -> None:
    p = np.full((5, 5), 0.3)
    p[0, 0] = p[1, 2] = p[2, 1] = p[3, 4] = p[4, 3] = 0.75
    got = judged(hits(p, 400, rng(6)), list("abcde"), informed=True)
    assert (
        got.kind == "not told apart"
        and got.reason.startswith("a stands out, but ")
        and got.reason.endswith("add models")
    )
    assert "Add models (eight are advised). These controls would decide: " in got.sentence


def test_a_permutation_test_that_disagrees_is_not_overruled_by_names() -> None:
    x = hits(np.full((5, 5), 0.3) + 0.5 * np.eye(5), 200, rng())
    assert judged(x).kind == "supported"
    got = judged(x, permutation=Permutation(0.2, 120, True))
    assert got.kind == "not told apart" and "p = 0.2, disagrees" in got.sentence


def test_p_of_a_difference_is_the_t_test_and_the_sign_test_where_all_items_agree() -> None:
    values = rng().normal(0.2, 1, 30)
    expected = scipy_stats.ttest_1samp(values, 0, alternative="greater").pvalue
    assert above_zero(clustered_mean(values, np.arange(30), interval="t")) == pytest.approx(expected)
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
    return sum((module.drawn_once(job, number) for number in range(matrices)), Counter())


@pytest.mark.slow(10)
@pytest.mark.parametrize("line", [line.name for line in bench().lines(5) if line.group == "null"])
def test_a_matrix_without_access_is_hardly_ever_supported(line: str) -> None:
    assert counted(line, "null", 5, 200, 60)["named"] <= 7  # of 60: 7 or fewer come with .99 at a rate of .05


@pytest.mark.slow(10)
@pytest.mark.parametrize("form", ["product", "logistic"])
def test_access_of_two_among_equals_is_found_and_nobody_else_named(form: str) -> None:
    [line] = [
        one.name for one in bench().lines(5) if one.name.startswith("access .4 of two, equals") and form in one.name
    ]
    found = counted(line, "access", 5, 400, 40)
    assert found["named"] >= 36 and found["wrong"] <= 3
