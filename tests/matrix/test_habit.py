"""What is knowledge of this item, and what a habit."""

import math
import operator

import numpy as np
import pandas as pd
import pytest

from selfprobe.scorers.decision import Measure
from selfprobe.scorers.dilemma import item_scores
from selfprobe.studies.matrix.habit import ALL_ITEMS, item_specific
from selfprobe.studies.matrix.table import TaskMatrix


def measure(**given: object) -> Measure:
    return Measure(acts=("answer",), **given)  # type: ignore[arg-type]


def one_model(said: list[str], truth: list[str]) -> tuple[pd.DataFrame, TaskMatrix]:
    items = [f"q{i}" for i in range(len(said))]
    value = [float(a == b) for a, b in zip(said, truth, strict=True)]
    rows = pd.DataFrame(
        {"target": "m", "observer": "m", "item": items, "key": "k1", "value": value}
    )
    rows = rows.assign(said=said, truth=truth, floor=math.nan)
    return rows, TaskMatrix("t", ["m"], items, np.array([[value]]), {})


def test_score_minus_habit_by_hand() -> None:
    # "the" is said always and done at two of three items. Answers elsewhere: item 0 meets (the, a)
    # .5, item 1 the same, item 2 (the, the) 1: habit 2/3, and so nothing is known of an item
    rows, matrix = one_model(["the", "the", "the"], ["the", "the", "a"])
    got = item_specific(rows, matrix, measure())
    assert got.habit[0, 0] == pytest.approx(2 / 3)
    assert got.scores.mean() == pytest.approx(0) and got.taken_off.endswith("at other items")


def test_words_that_nobody_says_twice_have_no_habit_to_take_off() -> None:
    rows, matrix = one_model(list("abcd"), list("abcx"))
    got = item_specific(rows, matrix, measure())
    assert got.habit[0, 0] == 0 and got.scores[0, 0].tolist() == [1, 1, 1, 0]


def test_where_every_cell_is_a_hole_nothing_is_specific() -> None:
    rows, matrix = one_model(list("ab"), list("ab"))
    holes = TaskMatrix(
        "t",
        ["m"],
        matrix.items,
        np.full((1, 1, 2), math.nan),
        {("m", "m"): "run ended as cancelled"},
    )
    got = item_specific(rows[:0], holes, measure(item_scores=item_scores, sides={"p": "target"}))
    assert np.isnan(got.habit).all() and np.isnan(got.scores).all()


def test_a_habit_of_the_questions_kind_is_taken_off_within_the_kind_alone() -> None:
    said = ["yes", "yes", "it", "it"] * 5
    rows, matrix = one_model(said, said)
    kinds = pd.Series(["can", "can", "what", "what"] * 5, matrix.items)
    within = item_specific(
        rows, matrix, measure(), {ALL_ITEMS: pd.Series("", matrix.items), "kind": kinds}
    )
    over_all = item_specific(rows, matrix, measure())
    assert (
        within.scores.mean() == pytest.approx(0)
        and "alike (in kind, where that takes off more)" in within.taken_off
    )
    assert over_all.scores.mean() > 0.4
    assert (
        within.habit_by_feature[0] == pytest.approx({ALL_ITEMS: over_all.habit[0, 0], "kind": 1.0})
        and within.habit[0, 0] == 1
    )


def test_the_grading_rule_of_the_task_grades_the_pairs_too() -> None:
    rows, matrix = one_model(["1", "2", "9"], ["1", "2", "9"])
    near = measure(right=lambda said, truth: abs(int(said) - int(truth)) <= 1)
    assert item_specific(rows, matrix, near).habit[0, 0] == pytest.approx(1 / 3)


@pytest.mark.slow(3)
def test_the_spread_of_items_is_that_of_the_difference_over_draws_of_all_of_them() -> None:
    draw, found, errors = np.random.default_rng(0), [], []
    for _ in range(300):
        truth = draw.choice(list("ab"), 60, p=[0.7, 0.3])
        said = np.where(draw.random(60) < 0.3, truth, draw.choice(list("ab"), 60, p=[0.7, 0.3]))
        rows, matrix = one_model(list(said), list(truth))
        own = item_specific(rows, matrix, measure()).scores[0, 0]
        found.append(own.mean())
        errors.append(own.std(ddof=1) / math.sqrt(60))
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.12)


def test_similarities_lose_what_an_unrelated_reply_reaches() -> None:
    rows, matrix = one_model(["a", "b"], ["a", "b"])
    rows = rows.assign(said=None, truth=None, value=[0.8, 0.6], floor=[0.1, 0.2])
    matrix = TaskMatrix("t", ["m"], matrix.items, np.array([[[0.8, 0.6]]]), {})
    got = item_specific(rows, matrix, measure())
    assert got.scores[0, 0].tolist() == pytest.approx([0.7, 0.4]) and got.habit[
        0, 0
    ] == pytest.approx(0.15)
    bare = item_specific(rows.assign(floor=math.nan), matrix, measure())
    assert (
        bare.taken_off == ""
        and math.isnan(bare.habit[0, 0])
        and bare.scores[0, 0].tolist() == [0.8, 0.6]
    )


def test_unscored_items_stay_unscored() -> None:
    rows, matrix = one_model(list("aab"), list("aab"))
    rows.loc[1, "value"] = math.nan
    matrix.scores[0, 0, 1] = math.nan
    assert np.isnan(item_specific(rows, matrix, measure()).scores[0, 0]).tolist() == [
        False,
        True,
        False,
    ]


def test_counting_equal_words_is_grading_all_pairs_by_equality() -> None:
    generator = np.random.default_rng(5)
    said, truth = generator.integers(0, 4, (2, 3 * 60)).astype(str)
    models, items = ["a", "b", "c"], [f"q{i:02}" for i in range(30)]
    rows = pd.DataFrame(
        {"target": "a", "observer": np.repeat(models, 60), "item": np.tile(np.repeat(items, 2), 3)}
    )
    rows = rows.assign(
        key="k1", truth=truth, said=said, value=(said == truth) * 1.0
    )  # two epochs an item
    rows = pd.concat([rows.assign(target=model) for model in models])
    x = rows.groupby(["target", "observer", "item"]).value.mean().to_numpy().reshape(3, 3, 30)
    kinds = {
        ALL_ITEMS: pd.Series("", items),
        "kind": pd.Series(np.repeat(["u", "v", "w"], 10), items),
    }
    counted, graded = (
        item_specific(rows, TaskMatrix("words", models, items, x, {}), measure(right=right), kinds)
        for right in (operator.eq, lambda one, other: one == other)
    )
    assert counted.scores == pytest.approx(graded.scores, abs=1e-12)
    assert (
        counted.habit == pytest.approx(graded.habit, abs=1e-12)
        and counted.taken_off == graded.taken_off
    )
    for one, other in zip(counted.habit_by_feature, graded.habit_by_feature, strict=True):
        assert one == pytest.approx(other, abs=1e-12)
