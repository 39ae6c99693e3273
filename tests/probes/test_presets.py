"""The presets are what they are called: against the recipes of the paper (latent-preference probes)
and of its public code, from scikit-learn.

The oracles are written from the recipes (lpaaj/layer_probes.py, notebooks/mtbench.ipynb): per side
less its mean, difference, LogisticRegression or PCA(1), weighted F1. They share no code with ours
but the rows of a split.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from selfprobe.probes.evaluate import Fits, fit_all
from selfprobe.probes.fit import PRESETS, FitSettings
from selfprobe.probes.run import MEAN_OF_ASPECTS, aspects_table, methods_table

Plant = Callable[..., tuple[Any, Any]]
TIGHT = {"solver": "newton-cholesky", "tol": 1e-12}
"""Of the same loss; not the solver that ours has."""


def fitted(plant: Plant, preset: str, **given: Any) -> Fits:
    harvest, _ = plant(size=160, nuisance=2.0, strength=1.5, **given)
    return fit_all(harvest, replace(PRESETS[preset], seeds=2, resamples=100))


def sides(fits: Fits, rows: np.ndarray | slice) -> np.ndarray:
    """x of the last layer and the first order; each side less its mean over `rows`."""
    states = fits.harvest.layer(fits.harvest.layers[-1]).astype(np.float64)
    plus, minus = states[:, 0, 0], states[:, 0, 1]
    return (plus - plus[rows].mean(axis=0)) - (minus - minus[rows].mean(axis=0))


def logit(x: np.ndarray, y: np.ndarray, **given: Any) -> np.ndarray:
    """w of P(label 1)."""
    return np.asarray(
        LogisticRegression(fit_intercept=False, **TIGHT, **given).fit(x, y == 1).coef_[0]
    )


@pytest.mark.parametrize("flip", [0.0, 0.2])
def test_the_preset_paper_is_a_regression_without_a_constant_on_halves(
    plant: Plant, flip: float
) -> None:
    fits = fitted(plant, "paper", flip=flip)
    labels = fits.harvest.labels
    for seed, half in enumerate(fits.halves):
        assert len(half.train) == len(half.test) == 80
        x, probe = sides(fits, half.train), fits.probes["supervised"][seed][-1]
        w = logit(x[half.train], labels[half.train])
        assert probe.bias == 0
        assert fits.scores["supervised"][seed, -1, half.test] == pytest.approx(
            x[half.test] @ w, abs=1e-6
        )
        component = PCA(1).fit(x[half.train]).components_[0]
        ours = fits.scores["unsupervised"][seed, -1, half.test]
        assert np.abs(ours) == pytest.approx(np.abs(x[half.test] @ component), abs=1e-6)


@pytest.mark.parametrize("per_group", [1, 4])
def test_the_preset_released_code_agrees_with_its_recipe_to_a_millionth(
    plant: Plant, per_group: int
) -> None:
    fits = fitted(plant, "released-code", per_group=per_group)
    labels, x = fits.harvest.labels, sides(fits, slice(None))  # centred over all pairs
    for seed, half in enumerate(fits.halves):
        assert len(half.train) == 112 and len(half.test) == 48, "70 %"
        train, test, truth = x[half.train], x[half.test], labels[half.test]
        w = logit(train, labels[half.train], class_weight="balanced")
        assert fits.scores["supervised"][seed, -1, half.test] == pytest.approx(test @ w, abs=1e-6)
        scores = PCA(1).fit(train).transform(test)[:, 0]
        better = max(
            (
                f1_score(truth, (sign * scores > 0) + 1, average="weighted", labels=[1, 2]),
                tuple(-sign * scores),
            )
            for sign in (1, -1)
        )
        ours = fits.scores["unsupervised"][seed, -1, half.test]
        assert ours == pytest.approx(np.array(better[1]), abs=1e-6)
        said = np.where(ours > 0, 1, 2)
        assert f1_score(truth, said, average="weighted", labels=[1, 2]) == pytest.approx(
            better[0], abs=1e-12
        )


def test_balanced_weights_change_the_fit_only_where_labels_are_unequal(plant: Plant) -> None:
    harvest, _ = plant(size=160, strength=1.5)
    lopsided = harvest[np.flatnonzero((harvest.labels == 1) | (np.arange(160) % 4 == 0))]
    plain = replace(PRESETS["released-code"], seeds=1, resamples=100, balanced=False)
    scores = [
        fit_all(lopsided, s).scores["supervised"] for s in (plain, replace(plain, balanced=True))
    ]
    assert np.nanmax(np.abs(scores[0] - scores[1])) > 1e-3


def test_the_presets_say_what_they_are() -> None:
    paper, code, strict = (PRESETS[name] for name in ("paper", "released-code", "strict"))
    assert (paper.train, paper.balanced, paper.prompts, paper.fit_centre, paper.orientation) == (
        0.5,
        False,
        "paper",
        "train",
        "none",
    )
    assert (code.train, code.balanced, code.prompts, code.fit_centre, code.orientation) == (
        0.7,
        True,
        "conversations",
        "all",
        "oracle",
    )
    assert code.leaks and not strict.leaks
    assert (paper.centre, code.centre, strict.centre) == ("tested", "tested", "source")


def test_a_number_of_training_pairs_trains_and_all_others_test(plant: Plant) -> None:
    harvest, _ = plant(size=160)
    for train, (learnt, tested) in {20: (20, 140), 0.25: (40, 120), 140: (140, 20)}.items():
        fits = fit_all(harvest, FitSettings(train=train, seeds=1, resamples=100))
        assert (len(fits.halves[0].train), len(fits.halves[0].test)) == (learnt, tested)
    with pytest.raises(
        ValueError, match="200 pairs are to train, of 160 of 160 questions: none is left to test"
    ):
        fit_all(harvest, FitSettings(train=200, seeds=1, resamples=100))
    for wrong in (0.0, -1.0, 1.5):
        with pytest.raises(ValueError, match="train must be a share in"):
            FitSettings(train=wrong)


def with_aspects(harvest: Any, *, swapped: str = "fluency") -> Any:
    """Every other pair is of another aspect, and what one aspect prefers the other (`swapped`) does
    not.
    """
    names = ("coherence", swapped)
    pairs = [
        replace(
            p, kind="summeval", aspect=names[i % 2], label=3 - (p.label or 0) if i % 2 else p.label
        )
        for i, p in enumerate(harvest.pairs)
    ]
    return replace(harvest, pairs=tuple(pairs))


@pytest.mark.slow(2)
@pytest.mark.parametrize("preset", ["paper", "released-code"])
def test_these_presets_fit_each_aspect_and_average_as_the_public_code_does(
    plant: Plant, preset: str
) -> None:
    harvest = with_aspects(plant(size=160, strength=1.5)[0])
    fits = fit_all(harvest, replace(PRESETS[preset], seeds=2, resamples=100))
    apart = []
    for k, aspect in enumerate(("coherence", "fluency")):
        mine = np.flatnonzero([pair.aspect == aspect for pair in harvest.pairs])
        alone = fit_all(harvest[mine], replace(PRESETS[preset], seeds=2, resamples=100))
        for seed, half in enumerate(alone.halves):
            both = fits.halves[2 * k + seed]
            assert both.aspect == aspect and both.train.tolist() == mine[half.train].tolist()
            ours = fits.scores["supervised"][2 * k + seed, -1, both.test]
            assert ours == pytest.approx(alone.scores["supervised"][seed, -1, half.test], abs=1e-9)
        table = methods_table(alone).query("metric == 'f1'").set_index("method").value
        apart.append(table)
    found = methods_table(fits).query("metric == 'f1'").set_index("method")
    for method in ("supervised", "unsupervised", "prompting", "no model (length)"):
        assert found.value[method] == pytest.approx((apart[0][method] + apart[1][method]) / 2), (
            method
        )
    assert found.low["supervised"] < found.value["supervised"] < found.high["supervised"]
    assert "mean of 2 aspects, a probe each" in found.note["supervised"]
    by_aspect = (
        aspects_table(fits)
        .query("metric == 'f1' and method == 'supervised'")
        .set_index("aspect")
        .value
    )
    assert by_aspect.to_dict() == pytest.approx(
        {
            "coherence": apart[0].supervised,
            "fluency": apart[1].supervised,
            MEAN_OF_ASPECTS: found.value["supervised"],
        }
    )


@pytest.mark.slow(2)
def test_one_probe_for_all_aspects_cannot_say_what_two_can(plant: Plant) -> None:
    harvest = with_aspects(plant(size=240, strength=2.0)[0])
    f1 = {}
    for aspects in ("together", "apart"):
        fits = fit_all(harvest, FitSettings(seeds=2, folds=3, resamples=100, aspects=aspects))
        f1[aspects] = (
            methods_table(fits).query("metric == 'f1' and method == 'supervised'").value.item()
        )
    assert f1["together"] < 0.65 < 0.85 < f1["apart"], "the aspects are opposed"


def test_a_number_of_training_pairs_is_shared_among_aspects(plant: Plant) -> None:
    harvest = with_aspects(plant(size=160)[0])
    fits = fit_all(harvest, FitSettings(train=40, seeds=1, aspects="apart", resamples=100))
    assert [len(half.train) for half in fits.halves] == [20, 20]
    uneven = harvest[np.flatnonzero((np.arange(160) % 2 == 0) | (np.arange(160) < 10))]
    with pytest.raises(ValueError, match="^fluency: the training half has 3 pairs of 3 questions"):
        fit_all(uneven, FitSettings(seeds=1, aspects="apart", resamples=100))
