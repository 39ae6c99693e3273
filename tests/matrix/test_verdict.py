"""Power, baselines and the verdict: by hand, against statsmodels and scikit-learn, and on planted matrices."""

import math
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from selfprobe.matrix.advantage import capability_control, self_advantage
from selfprobe.matrix.verdict import (
    Verdict,
    item_sd,
    minimum_detectable,
    over_baseline,
    planned_sd,
    power,
    verdict,
)
from selfprobe.stats.estimate import Estimate


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def hits(p: np.ndarray, items: int, generator: np.random.Generator) -> np.ndarray:
    return (generator.random((*p.shape, items)) < p[:, :, None]).astype(float)


def judged(x: np.ndarray, names: list[str] | None = None, *, resamples: int = 2000, seed: int = 0) -> Verdict:
    advantage = self_advantage(x, names, rng=rng(seed))
    mde = minimum_detectable(items=x.shape[2], sd=item_sd(x))
    return verdict(advantage, capability=capability_control(x, rng=rng(seed), resamples=resamples), mde=mde)


# ---- power


def test_planned_sd_by_hand() -> None:
    assert planned_sd(2) == 0.5 and planned_sd(5) == 0.25
    assert planned_sd(5, p0=0.5, rho=0.75) == pytest.approx(0.125)
    with pytest.raises(ValueError, match="models >= 2"):
        planned_sd(1)


def test_pilot_sd_finds_the_planned_one_and_gives_the_standard_error_of_t() -> None:
    x = hits(np.full((4, 4), 0.5), 4000, rng())
    assert item_sd(x) == pytest.approx(planned_sd(4), rel=0.05)
    assert item_sd(x) / math.sqrt(4000) == pytest.approx(self_advantage(x, rng=rng()).se)


def test_what_cells_of_an_item_share_cancels_as_planned() -> None:
    generator = rng(1)
    common = generator.random((1, 1, 20000)) < 0.5  # every score copies its item's coin with chance sqrt(.5)
    x = np.where(generator.random((3, 3, 20000)) < math.sqrt(0.5), common, generator.random((3, 3, 20000)) < 0.5)
    assert item_sd(x.astype(float)) == pytest.approx(planned_sd(3, rho=0.5), rel=0.05)


def test_minimum_detectable_is_the_normal_formula_in_the_large_and_inverts_power() -> None:
    assert minimum_detectable(items=100_000, sd=0.25) == pytest.approx(
        (1.95996 + 0.84162) * 0.25 / 100_000**0.5, rel=1e-3
    )
    mde = minimum_detectable(items=50, sd=0.25)
    assert power(mde, items=50, sd=0.25) == pytest.approx(0.8, abs=1e-6)
    assert power(mde, items=50, sd=0.25) == pytest.approx(TTestPower().power(mde / 0.25, 50, 0.05), abs=1e-4)
    assert power(0, items=50, sd=0.25) == pytest.approx(0.025)
    assert math.isnan(minimum_detectable(items=1, sd=0.25)) and math.isnan(power(0.1, items=50, sd=math.nan))


@pytest.mark.parametrize("items", [2, 5, 60, 3000])
@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.95])
def test_power_and_what_it_detects_are_statsmodels(items: int, wanted: float) -> None:
    theirs = TTestPower()
    solved = theirs.solve_power(effect_size=None, nobs=items, alpha=0.025, power=wanted, alternative="larger")
    assert minimum_detectable(items=items, sd=0.3, power=wanted) == pytest.approx(float(solved) * 0.3, rel=1e-4)
    for effect in (-0.05, 0, 0.1, 2):
        expected = theirs.power(effect / 0.3, items, 0.025, alternative="larger")
        assert power(effect, items=items, sd=0.3) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_stated_power_is_the_simulated_one() -> None:
    generator, sd = rng(2), planned_sd(3)
    mde = minimum_detectable(items=100, sd=sd)
    found = 0
    for _ in range(1000):
        p = np.full((3, 3), 0.5) + mde * np.eye(3)
        found += self_advantage(hits(p, 100, generator), rng=generator).total.low > 0
    assert found / 1000 == pytest.approx(0.8, abs=0.04)


# ---- baselines


def test_over_baseline_by_hand() -> None:
    x = np.zeros((2, 2, 3))
    x[0, 0], x[1, 1], x[0, 1] = [1, 1, 0], [1, 0, math.nan], [9, 9, 9]
    got = over_baseline(x, [[0, 1, 0], [0, 0, 1]])  # differences 1, 0, 0 and 1, 0, unscored
    assert got.value == pytest.approx(2 / 5) and got.n == 3 and got.low < 0
    with pytest.raises(ValueError, match=r"expected hits \[target, item\]"):
        over_baseline(x, [0, 1, 0])


# ---- the verdict


def test_two_models_of_five_with_access_are_named_exactly() -> None:
    p = np.full((5, 5), 0.5)
    p[1, 1] = p[3, 3] = 0.9
    got = judged(hits(p, 50, rng()), list("abcde"))
    assert got.kind == "supported" and got.models == ("b", "d")
    assert "own access of b, d" in got.sentence and "like capability: +0." in got.sentence


def test_no_access_is_not_supported_when_an_advantage_of_interest_would_have_been_seen() -> None:
    got = judged(hits(np.full((6, 6), 0.5), 400, rng(3)))
    assert got.kind == "not supported" and "within 0.05" in got.sentence


def test_no_access_in_a_small_matrix_is_underpowered() -> None:
    got = judged(hits(np.full((3, 3), 0.5), 30, rng()))
    assert got.kind == "underpowered" and "the smallest advantage this size detects is 0." in got.sentence


def test_two_models_are_underpowered_however_clear() -> None:
    got = judged(hits(np.array([[0.9, 0.3], [0.3, 0.9]]), 100, rng()))
    assert got.kind == "underpowered" and "needs three models" in got.sentence


def test_a_hole_is_underpowered_with_the_cell_named() -> None:
    x = hits(np.full((3, 3), 0.5), 30, rng())
    x[0, 2] = math.nan
    assert "no score in cell (target model 1, observer model 3)" in judged(x).sentence


def test_an_advantage_that_a_baseline_explains_is_not_supported() -> None:
    x = hits(np.full((4, 4), 0.4) + 0.4 * np.eye(4), 100, rng())
    advantage, control = self_advantage(x, rng=rng()), capability_control(x, rng=rng())
    beaten = {"mode": Estimate(0.3, 0.2, 0.4, 100, "item"), "text-only": Estimate(0.01, -0.05, 0.07, 100, "item")}
    got = verdict(advantage, capability=control, mde=0.03, baselines=beaten)
    assert got.kind == "not supported"
    assert "does not survive over the baseline 'text-only': +0.010 [-0.050, +0.070]" in got.sentence
    assert "'mode'" not in got.sentence
    small = verdict(advantage, capability=control, mde=0.3, baselines=beaten)
    assert small.kind == "underpowered"  # .07 over the baseline would be of interest, and this size cannot tell
    assert "not certainly over the baseline 'text-only'" in small.sentence and "detects is 0.300" in small.sentence
    tight = beaten | {"text-only": Estimate(0.01, -0.02, 0.04, 100, "item")}
    assert verdict(advantage, capability=control, mde=0.3, baselines=tight).kind == "not supported"
    kept = verdict(advantage, capability=control, mde=0.03, baselines={"mode": beaten["mode"]})
    assert kept.kind == "supported" and "over the baseline 'mode': +0.300" in kept.sentence


def test_a_failed_permutation_is_named_when_no_model_stands_out() -> None:
    x = hits(np.full((4, 4), 0.4) + 0.4 * np.eye(4), 100, rng())
    advantage = self_advantage(x, rng=rng())
    vague = replace(
        advantage,
        models=tuple(replace(model, p_holm=0.5) for model in advantage.models),
        permutation=replace(advantage.permutation, p=0.2),
    )
    got = verdict(vague, capability=capability_control(x, rng=rng()), mde=0.03)
    assert got.kind == "not supported" and "permutation of the observers: p = 0.200" in got.sentence


@pytest.mark.parametrize(
    ("high", "mde", "kind"),
    [
        (0.2, 0.10, "underpowered"),  # an advantage of interest may be there, and this size would not see it
        (0.2, math.nan, "underpowered"),
        (0.2, 0.05, "not supported"),  # it would have been seen
        (0.05, 0.10, "not supported"),  # the interval rules it out, whatever the size
    ],
)
def test_no_advantage_is_underpowered_where_one_of_interest_is_neither_seen_nor_ruled_out(
    high: float, mde: float, kind: str
) -> None:
    x = hits(np.full((4, 4), 0.4) + 0.4 * np.eye(4), 100, rng())
    advantage, control = self_advantage(x, rng=rng()), capability_control(x, rng=rng(), resamples=100)
    none = replace(advantage, total=Estimate(0.01, -0.1, high, 100, "item"))
    got = verdict(none, capability=control, mde=mde)
    assert got.kind == kind and "is not significantly above 0" in got.sentence


@pytest.mark.parametrize(
    ("highs", "p", "mde", "kind"),
    [
        ((0.2, 0.3), 0.001, 0.1, "underpowered"),
        ((0.2, 0.04), 0.001, 0.1, "not supported"),  # one control rules the advantage of interest out
        ((0.2, 0.3), 0.2, 0.1, "not supported"),  # the permutation test fails too
        ((0.2, 0.3), 0.001, 0.05, "not supported"),  # this size would see it
    ],
)
def test_failed_controls_are_underpowered_where_none_rules_an_advantage_of_interest_out(
    highs: tuple[float, float], p: float, mde: float, kind: str
) -> None:
    x = hits(np.full((4, 4), 0.4) + 0.4 * np.eye(4), 100, rng())
    advantage = self_advantage(x, rng=rng())
    vague = replace(
        advantage,
        closest=Estimate(0.2, 0.1, 0.3, 100, "item"),
        models=tuple(replace(model, p_holm=0.5) for model in advantage.models),
        permutation=replace(advantage.permutation, p=p),
    )
    control, words = (Estimate(0.01, -0.05, high, 100, "item") for high in highs)
    assert verdict(vague, capability=control, mde=mde, baselines={"words": words}).kind == kind


def null_scores(kind: str, generator: np.random.Generator) -> np.ndarray:
    """4 to 6 models without self access, 100 items: logistic in skill, predictability, item and similarity."""
    size = {"alone": 5, "families": 6, "aligned": 4}[kind]
    skill, easy = generator.normal(0, 0.8, (2, size))
    if kind == "aligned":  # the more capable is also the more predictable
        easy = 0.8 * skill + generator.normal(0, 0.2, size)
    logit = skill[None, :, None] + easy[:, None, None] + generator.normal(0, 0.7, 100)
    family = np.arange(size) // 2
    if kind in ("families", "aligned"):  # members predict each other as well as themselves
        logit = logit + generator.choice([0.5, 1, 2]) * (family[:, None] == family[None, :])[:, :, None]
    return (generator.random((size, size, 100)) < 1 / (1 + np.exp(-logit))).astype(float)


@pytest.mark.slow
def test_a_matrix_without_self_access_is_called_supported_in_at_most_five_percent() -> None:
    generator, wrong = rng(11), {"alone": 0, "families": 0, "aligned": 0}
    for n in range(1000):
        kind = list(wrong)[n % 3]
        x = null_scores(kind, generator)
        advantage = self_advantage(x, rng=generator)
        # with T in its place the capability control always passes: only what is then supported needs the bootstrap
        if verdict(advantage, capability=advantage.total, mde=0.05).kind == "supported":
            control = capability_control(x, rng=generator, resamples=100)
            wrong[kind] += verdict(advantage, capability=control, mde=0.05).kind == "supported"
    assert all(count / 333 <= 0.05 for count in wrong.values()), wrong


@pytest.mark.slow
def test_self_access_among_unequal_relatives_is_found() -> None:
    generator, found = rng(12), 0
    for _ in range(50):
        x = null_scores("families", generator)
        own = np.arange(6)
        x[own, own] = np.maximum(x[own, own], generator.random((6, 100)) < 0.8)  # 80 % of the misses mended
        found += judged(x, resamples=100).kind == "supported"
    assert found >= 45
