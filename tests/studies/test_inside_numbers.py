"""The choice of a probe, its null and what it is named, on plain arrays with a known truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from selfprobe.stats.claim import Claim, Outcome, Verdict
from selfprobe.stats.estimate import Estimate, FloatArray
from selfprobe.stats.text_only import log_odds_elsewhere
from selfprobe.studies.inside_claims import (
    Baseline,
    ModelReading,
    ReadingEvidence,
    probe_numbers,
    reading_claim,
)
from selfprobe.studies.inside_numbers import (
    ALARM_PREVALENCES,
    BoolArray,
    Clusters,
    Grid,
    LatentNumbers,
    Names,
    alarm_rates,
    answer_masses,
    answer_share,
    auroc_within,
    choose_probe,
    disagreeing_rows,
    flipped_labels,
    held_out_scores,
    latent_numbers,
    monitor_scores,
    null_p_value,
    paired_lead,
    variance_shares,
    with_better_sign,
)

WIDTH, LAYERS = 6, 3


def grid(
    rng: np.random.Generator, *, wrappers: int = 9, strength: float = 0.0, own: float = 1.0
) -> Grid:
    """Four texts in each wrapper under both labels. `strength`: how far the label moves layer 1
    along axis 0; `own`: how far the two announcements of a wrapper lie apart along a direction of
    that wrapper.
    """
    rows = [(w, t, side) for w in range(wrappers) for t in range(4) for side in (True, False)]
    wrapper, text = (np.array([row[k] for row in rows]) for k in (0, 1))
    evaluation = np.array([row[2] for row in rows])
    sign = np.where(evaluation, 1.0, -1.0)[:, None]
    states = (
        rng.standard_normal((LAYERS, len(rows), WIDTH))
        + own * rng.standard_normal((wrappers, WIDTH))[wrapper] * sign
    )
    states[1, :, :1] += strength * sign
    looks = np.where(text % 2, "benchmark", "natural")
    return Grid(
        states,
        evaluation,
        wrapper.astype(str),
        text.astype(str),
        (text % 4).astype(str),
        looks,
        (4, 5, 6),
    )


def drawn_set(
    rng: np.random.Generator, *, strength: float = 0.0, by_format: float = 0.0
) -> tuple[FloatArray, BoolArray, Names, Clusters]:
    """120 rows of 30 sources that hold both labels and both formats."""
    truth, looks = rng.random(120) < 0.5, rng.random(120) < 0.5
    states = rng.standard_normal((LAYERS, 120, WIDTH))
    states[1, :, 0] += strength * np.where(truth, 1, -1) + by_format * np.where(looks, 1, -1)
    of = Clusters(np.array([f"s{i // 4}" for i in range(120)]), "source")
    return states, truth, np.where(looks, "benchmark", "natural"), of


def found(
    rng: np.random.Generator, train_grid: Grid, *, shuffles: int = 20, **planted: float
) -> LatentNumbers:
    states, truth, formats, of = drawn_set(rng, **planted)
    words = {"words": rng.standard_normal(len(truth))}
    return latent_numbers(train_grid, states, truth, words, formats, of, shuffles=shuffles, rng=rng)


def claim_of(latent: LatentNumbers, *, p: float | None = None) -> Claim:
    """The claim of what the model holds; the untrained copy and words are far below."""
    below = Estimate(0.3, 0.2, 0.4, 30, "source")
    others = {
        baseline.value: below for baseline in Baseline if baseline.value not in latent.on_set.over
    }
    numbers = replace(latent.on_set, over={**others, **latent.on_set.over})
    probe = probe_numbers(
        latent if p is None else replace(latent, shuffled_p=p), latent.on_set.auroc, is_saved=False
    )
    chance = dict.fromkeys((*others, *latent.on_set.over), Estimate(0.5, 0.4, 0.6, 30, "source"))
    return reading_claim(ReadingEvidence(ModelReading.LATENT, numbers, chance, probe=probe))


def open_checks(claim: Claim) -> list[str]:
    return [check.name for check in claim.checks if check.outcome is not Outcome.HOLDS]


def test_a_planted_direction_is_found_at_its_layer_and_claimed() -> None:
    rng = np.random.default_rng(0)
    result = found(rng, grid(rng, strength=3.0, own=0.3), strength=4.0)
    assert result.chosen.probe.layer == 5
    assert set(open_checks(claim_of(result))) <= {"above_random_directions"}, (
        "of six dimensions any tells something"
    )
    assert (
        result.on_set.auroc.value > 0.99
        and result.across_wrappers.low > 0.8
        and result.shuffled_p < 0.05
    )
    assert result.variance["label"] > 0.8 and np.mean(result.random_directions) < 0.9


def test_a_direction_of_each_wrapper_alone_is_not_there_on_others_and_that_of_one_wrapper_cannot_be() -> (
    None
):
    rng = np.random.default_rng(1)
    result = found(rng, grid(rng, own=3.0), shuffles=3)
    assert "across_wrappers" in open_checks(claim_of(result))
    assert result.across_texts.low > 0.7 and not result.across_wrappers.low > 0.5
    assert result.variance["wrapper"] > result.variance["label"]
    one = found(rng, grid(rng, wrappers=1, strength=3.0, own=0.3), strength=4.0, shuffles=1)
    assert "across_wrappers" in open_checks(claim_of(one))
    assert math.isnan(one.across_wrappers.value) and math.isnan(one.variance["label"])
    assert one.on_set.auroc.value > 0.9, (
        "it finds the label here too, and cannot tell it from the wrapper"
    )


def test_a_direction_that_follows_the_format_of_the_set_is_not_there_within_one() -> None:
    rng = np.random.default_rng(2)
    states, truth, formats, of = drawn_set(rng, by_format=4.0)
    truth = truth & (rng.random(120) < 0.4) | (formats == "benchmark") & (rng.random(120) < 0.7)
    train_grid = grid(rng, strength=3.0, own=0.3)
    noise = {"words": rng.standard_normal(len(truth))}
    result = latent_numbers(train_grid, states, truth, noise, formats, of, shuffles=1, rng=rng)
    assert result.on_set.auroc.low > 0.5 and "within_format" in open_checks(
        claim_of(result, p=0.01)
    )
    assert result.on_set.by_format.value > 0.95 and not result.on_set.by_label.low > 0.5


def test_nothing_is_found_where_nothing_is_and_of_one_class_nothing_is_claimed() -> None:
    rng = np.random.default_rng(3)
    assert "above_chance" in open_checks(claim_of(found(rng, grid(rng, own=0.0), shuffles=1)))
    strong = grid(rng, strength=3.0, own=0.3)
    states, truth, formats, of = drawn_set(rng, strength=4.0)
    one = latent_numbers(strong, states, np.ones_like(truth), {}, formats, of, shuffles=1, rng=rng)
    assert claim_of(one).verdict is Verdict.CANNOT_TELL and np.isnan(one.random_directions).all()
    assert open_checks(claim_of(one))[0] == "above_chance"


def test_words_that_reach_as_much_leave_it_at_words() -> None:
    rng = np.random.default_rng(4)
    states, truth, formats, of = drawn_set(rng, strength=4.0)
    words = {Baseline.WORDS_ELSEWHERE.value: truth.astype(float)}
    result = latent_numbers(
        grid(rng, strength=3.0, own=0.3), states, truth, words, formats, of, shuffles=1, rng=rng
    )
    assert open_checks(claim_of(result, p=0.01))[0] == "above_words_elsewhere"
    assert "above_shuffled_labels" in open_checks(claim_of(result, p=0.06))


def test_the_choice_sees_no_label_of_what_is_left_out() -> None:
    rng = np.random.default_rng(5)
    train_grid = grid(rng, strength=1.0)
    scores = held_out_scores(train_grid, train_grid.wrapper)
    changed = replace(
        train_grid,
        evaluation=np.where(
            train_grid.wrapper == "3", ~train_grid.evaluation, train_grid.evaluation
        ),
    )
    again = held_out_scores(changed, changed.wrapper)
    assert np.array_equal(scores[train_grid.wrapper == "3"], again[train_grid.wrapper == "3"])
    assert not np.array_equal(scores[train_grid.wrapper != "3"], again[train_grid.wrapper != "3"])


def test_the_sign_comes_from_training_so_turned_labels_turn_the_scores() -> None:
    train_grid = grid(np.random.default_rng(6), strength=2.0)
    one, turned = (
        choose_probe(train_grid.states, truth, train_grid.wrapper, train_grid.layers)
        for truth in (train_grid.evaluation, ~train_grid.evaluation)
    )
    assert (
        one.layer_index == turned.layer_index and one.probe.direction @ turned.probe.direction < 0
    )


def test_shuffled_labels_turn_whole_wrappers() -> None:
    train_grid = grid(np.random.default_rng(7))
    for labels in flipped_labels(train_grid, 5, np.random.default_rng(0)):
        turned = labels != train_grid.evaluation
        assert all(
            len(set(turned[train_grid.wrapper == name])) == 1 for name in set(train_grid.wrapper)
        )
    assert null_p_value(0.9, np.array([0.5, 0.95, 0.6])) == 0.5 and math.isnan(
        null_p_value(math.nan, np.array([0.5]))
    )


def test_variance_by_a_hand_worked_table() -> None:
    """Two wrappers × two labels × two sources. Scores 4, 2 | 0, -2 and 2, 0 | -2, -4: the mean is
    0, the whole 12 + 4·... = 16+4+0+4+4+0+4+16 = 48. Labels: means 2 and -2, 8·4 = 32. Cells: 3,
    -1, 1, -3, 2·(9+1+1+9) = 40, so wrappers 8. What is left is ±1 by source: 8.
    """
    scores = np.array([4.0, 2, 0, -2, 2, 0, -2, -4])
    label = np.array([True, True, False, False] * 2)
    found = variance_shares(
        scores, label, np.array(["a"] * 4 + ["b"] * 4), np.array(["s", "t"] * 4)
    )
    assert found == pytest.approx(
        {"label": 32 / 48, "wrapper": 8 / 48, "source": 8 / 48, "rest": 0.0}
    )


def test_precision_by_a_hand_worked_table() -> None:
    """With 9 of 10 right on either side: .01·.9 / (.01·.9 + .99·.1) = .009 / .108 = 1/12, and so
    on.
    """
    truth = np.array([True] * 10 + [False] * 10)
    called = np.array([True] * 9 + [False] + [True] + [False] * 9)
    rates = alarm_rates(called, truth, Clusters(np.arange(20).astype(str), "row"))
    assert (rates.true_positive.value, rates.true_negative.value) == (0.9, 0.9)
    by_hand = dict(zip(ALARM_PREVALENCES, (1 / 12, 9 / 28, 0.5, 9 / 13, 0.9), strict=True))
    precision = {prevalence: estimate.value for prevalence, estimate in rates.precision.items()}
    assert precision == pytest.approx(by_hand)


def test_auroc_within_strata_does_not_see_what_lies_between_them() -> None:
    strata = np.array(["a"] * 40 + ["b"] * 40)
    truth = np.array([True] * 30 + [False] * 10 + [True] * 10 + [False] * 30)
    of = Clusters(np.arange(80).astype(str), "row")
    between = np.where(strata == "a", 1.0, 0.0)
    assert auroc_within(truth, between, strata, of).value == 0.5
    assert auroc_within(truth, truth + 0.0, strata, of).value == 1.0
    assert (
        "no stratum holds enough of both"
        in auroc_within(truth, between, truth.astype(str), of).reason
    )


def test_a_placebo_counts_by_the_sign_under_which_it_tells_more() -> None:
    truth = np.array([True, True, False, False])
    scores = np.array([0.0, 1.0, 2.0, 3.0])
    assert np.array_equal(with_better_sign(truth, scores), -scores) and np.array_equal(
        with_better_sign(~truth, scores), scores
    )
    assert np.array_equal(with_better_sign(np.ones(4, dtype=bool), scores), scores)


def test_a_lead_is_on_the_rows_that_both_rate() -> None:
    truth = np.array([True, False] * 20)
    first, second = truth + 0.0, np.where(np.arange(40) < 2, np.nan, 0.0)
    auroc, lead = paired_lead(truth, first, second, Clusters(np.arange(40).astype(str), "row"))
    assert auroc.value == 0.5 and lead.value == 0.5 and auroc.n == 38


def test_the_mass_of_answers_is_their_probability_together() -> None:
    assert answer_masses(np.log([[0.02, 0.01], [0.6, 0.5]])) == pytest.approx([0.03, 1.0])


def test_the_monitor_takes_plain_sentences_off_and_then_the_placebos() -> None:
    topics = ["evaluation", "evaluation", "rain", "rain"]
    about = [True, False, True, False]
    monitor = monitor_scores(np.array([[-1.0, -3.0, -2.0, -2.5]]), topics, about)
    assert monitor.by_topic["evaluation"][0] == 2.0
    assert monitor.by_topic["rain"][0] == 0.5
    assert monitor.net[0] == 1.5
    without_placebo = monitor_scores(np.array([[-1.0, -3.0]]), topics[:2], about[:2])
    assert without_placebo.net[0] == 2.0


def test_a_share_is_among_the_answers_alone() -> None:
    assert answer_share(np.log([[0.02, 0.01, 0.01]]), 1) == pytest.approx([0.5])
    assert answer_share(np.array([[-2000.0, -2000.0]]), 1) == pytest.approx([0.5])


def test_rows_disagree_whose_ranks_lie_half_of_all_apart() -> None:
    one, two = np.array([1.0, 2, 3, 4, 5]), np.array([5.0, 2, 3, 4, 1])
    assert (
        disagreeing_rows({"a": one, "b": two}, 3) == [0, 4]
        and disagreeing_rows({"a": one, "b": one}, 3) == []
    )


def test_words_of_other_texts_rate_new_ones_and_of_one_class_nothing() -> None:
    truth = np.array([True, False] * 4)
    texts = ["a graded exam paper", "a loaf of bread"] * 4
    rated = log_odds_elsewhere(texts, truth, ["graded exam", "loaf bread", "zzz"])
    assert rated[0] > rated[2] > rated[1]
    assert np.isnan(log_odds_elsewhere(texts, np.ones(8, dtype=bool), ["graded"])).all()
