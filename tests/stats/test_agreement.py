"""Agreement, calibration and rates: identities, other people's implementations, and numbers worked
by hand.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.weightstats import ttost_paired

from selfprobe.stats.agreement import (
    agreement,
    agreement_p,
    cohen_kappa,
    debiased_ece,
    ece,
    equal_mass,
    equivalence,
    kappa_curve,
    precision_at,
    precision_estimate,
    turns_trend,
)
from selfprobe.stats.estimate import Estimate, undefined


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_a_method_agrees_with_itself(rng: np.random.Generator) -> None:
    a = rng.random(60) < 0.4
    found = agreement(a, a, clusters=np.arange(60) % 10, rng=rng)
    assert (found.n, found.observed, found.kappa.value, found.pabak, found.ac1) == (60, 1, 1, 1, 1)
    assert found.mcnemar_p == 1


def test_agreement_worked_by_hand(rng: np.random.Generator) -> None:
    # 40 both yes, 10 yes/no, 5 no/yes, 45 both no: observed .85, chance .5·.45 + .5·.55 = .5, kappa
    # .7
    a = np.repeat([True, True, False, False], [40, 10, 5, 45])
    b = np.repeat([True, False, True, False], [40, 10, 5, 45])
    found = agreement(a, b, clusters=np.arange(100), rng=rng)
    assert found.observed == pytest.approx(0.85)
    assert found.kappa.value == pytest.approx(0.7)
    assert found.kappa.low < 0.7 < found.kappa.high
    assert found.pabak == pytest.approx(0.7)
    q = 0.475  # mean of both shares of yes; chance of AC1 is 2q(1 - q) = .49875
    assert found.ac1 == pytest.approx((0.85 - 2 * q * (1 - q)) / (1 - 2 * q * (1 - q)))
    assert found.mcnemar_p == pytest.approx(2 * sum(math.comb(15, k) for k in range(6)) / 2**15)


def test_kappa_is_low_and_ac1_high_where_nearly_all_is_one_class(rng: np.random.Generator) -> None:
    a = np.repeat([True, True, False, False], [94, 3, 3, 0])
    b = np.repeat([True, False, True, False], [94, 3, 3, 0])
    found = agreement(a, b, clusters=np.arange(100), rng=rng)
    assert found.kappa.value < 0 < 0.9 < found.ac1


@pytest.mark.parametrize("seed", range(8))
def test_kappa_and_mcnemar_are_scikit_learns_and_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.random(50) < 0.3
    b = np.where(rng.random(50) < 0.7, a, rng.random(50) < 0.6)
    found = agreement(a, b, clusters=np.arange(50) % 9, rng=rng)
    assert found.kappa.value == pytest.approx(cohen_kappa_score(a, b))
    table = [[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]]
    assert found.mcnemar_p == pytest.approx(float(mcnemar(table, exact=True).pvalue))


def test_kappa_of_two_methods_that_always_say_the_same_is_undefined(
    rng: np.random.Generator,
) -> None:
    assert math.isnan(cohen_kappa(np.ones(9, dtype=bool), np.ones(9, dtype=bool)))
    found = agreement([True] * 9, [True] * 9, clusters=range(9), rng=rng)
    assert math.isnan(found.kappa.value) and found.kappa.reason and found.ac1 == 1


def test_agreement_on_no_rows_is_undefined(rng: np.random.Generator) -> None:
    found = agreement([], [], clusters=np.array([], dtype=str), rng=rng)
    assert found.n == 0 and all(
        math.isnan(x) for x in (found.observed, found.kappa.value, found.ac1, found.mcnemar_p)
    )


def test_kappa_rises_with_the_number_of_decisions_to_that_of_the_noiseless_verdicts(
    rng: np.random.Generator,
) -> None:
    truth = np.repeat([0.75, 0.25], 60)
    votes = (rng.random((120, 25)) < truth[:, None]).astype(float)
    estimates = np.clip(truth[:, None] + 0.5 * rng.standard_normal((120, 25)), 0, 1)
    curve = kappa_curve(votes, estimates, rng=rng, resamples=30)
    assert curve.decisions == tuple(range(5, 26, 2))
    assert curve.mean[0] < curve.mean[5] < curve.mean[-1] and curve.mean[-1] > 0.9
    assert all(
        low - 1e-9 <= mean <= high + 1e-9
        for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True)
    )
    # all 25 drawn: nothing left to chance, and the kappa of majority and mean
    assert curve.low[-1] == pytest.approx(curve.high[-1])
    assert curve.mean[-1] == pytest.approx(
        cohen_kappa_score(votes.mean(axis=1) > 0.5, estimates.mean(axis=1) >= 0.5)
    )


def test_ties_and_rows_without_a_valid_decision_are_left_out_of_the_curve(
    rng: np.random.Generator,
) -> None:
    votes = np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [1, 1, 0, 0, np.nan], [np.nan] * 5])
    for tied in (0.1, 0.9):  # whichever side a tie were counted to, one of them would contradict it
        estimates = np.array([[0.9] * 5, [0.1] * 5, [tied] * 5, [0.9] * 5])
        assert kappa_curve(votes, estimates, rng=rng, resamples=3).mean == (1.0,)


def test_the_curve_asks_for_the_same_rows(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"same rows, got \(3, 5\) and \(2, 5\)"):
        kappa_curve(np.ones((3, 5)), np.ones((2, 5)), rng=rng)


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.2, -0.09])
def test_equivalence_is_statsmodels_ttost_where_every_row_is_its_own_source(
    shift: float, rng: np.random.Generator
) -> None:
    a = rng.normal(0.5, 0.2, 80)
    b = a + shift + rng.normal(0, 0.15, 80)
    found = equivalence(a, b, clusters=np.arange(80))
    p, *_ = ttost_paired(a, b, -0.1, 0.1)
    assert found.p == pytest.approx(float(p), rel=1e-6)
    inside = found.difference.low > -0.1 and found.difference.high < 0.1
    assert found.equivalent == (p < 0.05) == inside


@pytest.mark.parametrize(
    ("sources", "equivalent"), [(1, False), (2, False), (28, False), (29, True), (90, True)]
)
def test_equal_arms_have_an_exact_p_and_are_equivalent_from_29_sources(
    sources: int, equivalent: bool
) -> None:
    """Of sources of which a tenth differ, none of n does with .9 ** n."""
    rows = np.tile([1.0, 0.0], sources)
    same = equivalence(rows, rows, clusters=np.repeat(np.arange(sources), 2))
    assert (
        same.difference.value == 0
        and same.p == pytest.approx(0.9**sources)
        and same.equivalent == equivalent
    )


def test_arms_that_all_differ_alike_have_an_exact_p_and_none_without_rows() -> None:
    near = equivalence(np.full(60, 0.55), np.full(60, 0.5), clusters=np.arange(60))
    assert near.p == pytest.approx((0.9 / 0.95) ** 60) and near.equivalent
    far = equivalence(np.ones(60), np.zeros(60), clusters=np.arange(60))
    assert far.p == 1 and not far.equivalent
    none = equivalence([], [], clusters=[])
    assert np.isnan(none.p) and not none.equivalent


def test_clustered_rows_make_equivalence_harder_to_show(rng: np.random.Generator) -> None:
    source = np.repeat(np.arange(6), 30)
    difference = rng.normal(0, 0.1, 6)[source]
    alone = equivalence(difference, np.zeros(180), clusters=np.arange(180))
    together = equivalence(difference, np.zeros(180), clusters=source)
    assert together.p > alone.p


def test_the_trend_is_scipys_line_and_undefined_without_variation() -> None:
    trend = turns_trend([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4], list("abcd"))
    assert (trend.r, trend.slope, trend.intercept, trend.n) == pytest.approx((1, 0.1, 0, 4))
    assert math.isnan(turns_trend([1, 1, 1], [0.1, 0.2, 0.3], list("abc")).r)
    assert math.isnan(turns_trend([], [], []).r)


def test_the_p_of_the_trend_is_that_of_sources_left_out_in_turn(rng: np.random.Generator) -> None:
    x, y, source = rng.integers(1, 9, 60), rng.random(60), np.arange(60) % 6
    trend = turns_trend(list(x), y, source)
    slopes = np.array([stats.linregress(x[source != s], y[source != s]).slope for s in range(6)])
    se = math.sqrt(5 / 6 * ((slopes - slopes.mean()) ** 2).sum())
    assert trend.p == pytest.approx(2 * stats.t.sf(abs(trend.slope) / se, 5))
    assert trend.p_rows == pytest.approx(stats.pearsonr(x, y).pvalue), "the paper's"
    assert math.isnan(turns_trend(list(x), y, ["one"] * 60).p)


def test_turns_that_go_with_the_source_are_seldom_taken_for_a_trend(
    rng: np.random.Generator,
) -> None:
    """Of independent rows the same is "significant" in a quarter of the draws."""
    false, naive, source = 0, 0, np.repeat(np.arange(12), 10)
    for _ in range(100):
        turns = rng.poisson(3, 12)[source] + rng.integers(1, 3, 120)
        errors = np.clip(0.4 + rng.normal(0, 0.12, 12)[source] + rng.normal(0, 0.2, 120), 0, 1)
        false += turns_trend(list(turns), errors, source).p < 0.05
        naive += turns_trend(list(turns), errors, source).p_rows < 0.05
    assert false <= 15 < naive


def _stated(rng: np.random.Generator, n: int, sharpen: float) -> tuple[Any, Any]:
    odds = rng.normal(0, 1.2, n)
    positive = rng.random(n) < 1 / (1 + np.exp(-odds))
    return 1 / (1 + np.exp(-sharpen * odds)), positive


def test_the_calibration_error_of_calibrated_statements_is_near_zero(
    rng: np.random.Generator,
) -> None:
    squares, plain = [], []
    for _ in range(200):
        p, positive = _stated(rng, 200, 1)
        squares.append(debiased_ece(p, positive) ** 2)
        order = np.array_split(np.argsort(p), 10)
        plain.append(np.sqrt(np.mean([(p[at].mean() - positive[at].mean()) ** 2 for at in order])))
    assert np.sqrt(np.mean(squares)) < 0.06 < 0.09 < np.mean(plain)


def test_the_calibration_error_of_an_overconfident_subject_is_right(
    rng: np.random.Generator,
) -> None:
    odds = rng.normal(0, 1.2, 200_000)
    true = np.sqrt(np.mean((1 / (1 + np.exp(-3 * odds)) - 1 / (1 + np.exp(-odds))) ** 2))
    found = np.mean([debiased_ece(*_stated(rng, 400, 3)) for _ in range(100)])
    assert found == pytest.approx(true, abs=0.02)


def test_the_calibration_error_by_hand() -> None:
    # bins (.2, .2: none), (.8, .8, …): one bin of four at .5 with shares 3/4: .0625 - .1875/3 = 0
    assert debiased_ece([0.5] * 4, [1, 1, 1, 0], bins=1) == 0
    # at 0 with all positive: 1 - 0
    assert debiased_ece([0.0] * 4, [1, 1, 1, 1], bins=2) == 1
    assert math.isnan(debiased_ece([0.3], [1]))


def test_the_calibration_error_is_the_same_in_whatever_order_the_rows_came(
    rng: np.random.Generator,
) -> None:
    """Stated probabilities are round, so that most are ties: cut by row, 24 rows had .17 to .51 by
    their order.
    """
    stated, truth = np.repeat([0.2, 0.6, 0.9], 8), np.tile([1, 0, 1, 0, 0, 1, 1, 1], 3)
    sources, found = np.arange(24) % 8, set()
    for _ in range(200):
        at = rng.permutation(24)
        e = ece(stated[at], truth[at], sources[at])
        found.add(
            tuple(np.round([debiased_ece(stated[at], truth[at]), e.value, e.low, e.high], 12))
        )
    assert len(found) == 1


@pytest.mark.parametrize(
    ("stated", "bins"),
    [
        ([0.5] * 6, [0] * 6),  # all tied: one bin
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0, 0, 1, 1, 2, 2]),  # no tie: equal mass
        ([0.1, 0.2, 0.2, 0.2, 0.2, 0.6], [0, 0, 0, 0, 0, 0]),  # a row on either side would be alone
        ([0.1, 0.1, 0.3, 0.3, 0.3, 0.6, 0.7], [0, 0, 1, 1, 1, 2, 2]),
        ([0.1 + 0.2, 0.3, 0.3, 0.9, 0.9, 0.8], [0, 0, 0, 1, 1, 1]),  # equal but for rounding
    ],
)
def test_ties_stay_in_one_bin_and_a_bin_has_two_rows(stated: list[float], bins: list[int]) -> None:
    assert list(equal_mass(stated, 3)) == bins


def test_the_interval_of_the_calibration_error_holds_the_truth(rng: np.random.Generator) -> None:
    source, held = np.repeat(np.arange(12), 20), 0
    z = rng.normal(0, math.sqrt(0.49 + 1.44), 200_000)
    p, q = special.expit(2 * z), special.expit(z)
    true = math.sqrt(
        np.mean([(p[i].mean() - q[i].mean()) ** 2 for i in np.array_split(np.argsort(p), 10)])
    )
    for _ in range(40):
        odds = rng.normal(0, 0.7, 12)[source] + rng.normal(0, 1.2, 240)
        e = ece(special.expit(2 * odds), rng.random(240) < special.expit(odds), source)
        held += e.low <= true <= e.high
    assert held >= 34 and e.n == 12


def test_the_calibration_error_has_no_interval_from_one_source_and_no_value_without_statements() -> (
    None
):
    stated, truth = [0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]
    assert math.isnan(ece(stated, truth, ["s"] * 4).low)
    assert ece([], [], []).reason == "no probability is stated"


def test_precision_has_the_ends_that_both_rates_give_together() -> None:
    tpr, tnr = Estimate(0.8, 0.7, 0.9, 10, "source"), Estimate(0.9, 0.8, 0.95, 9, "source")
    e = precision_estimate(tpr, tnr, 0.1)
    assert (e.value, e.low, e.high) == pytest.approx(
        (0.08 / 0.17, 0.07 / 0.25, 0.09 / 0.135)
    ) and e.n == 9
    assert precision_estimate(undefined("none"), tnr, 0.1).reason == "none"


def test_precision_at_a_prevalence_by_hand() -> None:
    # of 1000 conversations 10 evaluations, 9 of them called; of 990 others 99 called
    assert precision_at(0.9, 0.9, 0.01) == pytest.approx(9 / (9 + 99))
    assert precision_at(1, 1, 0.01) == 1
    assert precision_at(0.5, 0.5, 0.1) == pytest.approx(0.1)
    assert math.isnan(precision_at(0, 1, 0.1)) and math.isnan(precision_at(math.nan, 1, 0.1))


def test_agreement_beyond_chance_is_an_exchange_of_shares_by_cluster() -> None:
    """Three of ten alike: one of the 120 ways to choose three of ten agrees as much."""
    some = np.arange(10) < 3
    p = agreement_p(some, some, np.arange(10), rng=np.random.default_rng(0), draws=20_000)
    assert p == pytest.approx(1 / 120, abs=0.002)
    assert np.isnan(agreement_p(some, np.ones(10), np.arange(10), rng=np.random.default_rng(0)))
    assert np.isnan(agreement_p(some, some, np.arange(10) % 5, rng=np.random.default_rng(0))), (
        "five clusters"
    )


def test_agreement_within_clusters_counts_where_all_clusters_are_alike() -> None:
    half = np.arange(24) % 2 == 0
    clusters = np.arange(24) // 4
    assert agreement_p(half, half, clusters, rng=np.random.default_rng(0)) < 0.01
    assert agreement_p(half, clusters < 3, clusters, rng=np.random.default_rng(0)) > 0.5
