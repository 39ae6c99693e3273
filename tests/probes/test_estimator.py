"""`ContrastProbe`: a scikit-learn classifier on arrays and harvests, whose probes are those of the
command line.
"""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from selfprobe.probes import ContrastProbe
from selfprobe.probes.evaluate import fit_all
from selfprobe.probes.fit import FitSettings, Supervision
from selfprobe.probes.probe_file import load_probe

KINDS = ("supervised", "mean_difference", "unsupervised")
Plant = Callable[..., tuple[Any, Any]]


def differences(
    size: int = 120, *, d: int = 12, strength: float = 3.0, seed: int = 0
) -> tuple[Any, Any, Any]:
    """Differences [pair, d] with a direction, labels 1 and 2, and that direction."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    y = rng.integers(1, 3, size)
    x = rng.standard_normal((size, d)) + strength * np.outer(np.where(y == 1, 1, -1), direction)
    return x, y, direction


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_finds_the_planted_layer_and_direction(kind: Any, plant: Plant) -> None:
    harvested, direction = plant(size=120, strength=4.0, position=0.0)
    train, test = harvested[:80], harvested[80:]
    probe = ContrastProbe(kind).fit(train)
    assert probe.probe_.layer == 1 == int(np.argmax(probe.layer_scores_))
    found = probe.probe_.direction
    assert abs(found @ direction) / np.linalg.norm(found) > 0.8
    assert probe.score(test) > 0.9
    chance = probe.predict_proba(test)
    assert chance.shape == (40, 2) and np.allclose(chance.sum(axis=1), 1)
    assert (probe.predict(test) == probe.classes_[chance.argmax(axis=1)]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_swapped_texts_have_the_other_score(kind: Any, plant: Plant) -> None:
    harvested, _ = plant(size=120)
    probe = ContrastProbe(kind).fit(harvested[:80]).probe_
    states = harvested.layer(probe.layer)
    np.testing.assert_allclose(probe.score(states), -probe.score(states[:, ::-1]), atol=1e-9)


def test_probabilities_are_calibrated_out_of_fold(plant: Plant) -> None:
    harvested, _ = plant(size=600, strength=1.0)
    probe = ContrastProbe("supervised").fit(harvested[:300])
    first, right = probe.predict_proba(harvested[300:])[:, 0], harvested.labels[300:] == 1
    for low, high in ((0, 0.25), (0.25, 0.75), (0.75, 1)):
        inside = (first >= low) & (first <= high)
        assert abs(first[inside].mean() - right[inside].mean()) < 0.12


def test_labels_of_the_few_alone_reach_an_unsupervised_probe() -> None:
    x, y, _ = differences()
    probe = ContrastProbe("unsupervised", orientation="few:8").fit(x, y)
    few = Supervision(y == 1, np.arange(len(y)), orientation="few:8").few
    other = 3 - y
    other[few] = y[few]
    again = clone(probe).fit(x, other)
    np.testing.assert_array_equal(probe.probe_.direction, again.probe_.direction)
    assert probe.probe_.scale == again.probe_.scale


def test_differences_are_the_first_order_of_one_layer_and_no_other_array_is_read(
    plant: Plant,
) -> None:
    harvested, _ = plant(size=120)
    states = harvested.layer(1).astype(float)
    of_harvest = ContrastProbe(layer=1, orders="first").fit(harvested)
    x = states[:, 0, 0] - states[:, 0, 1]
    of_differences = ContrastProbe().fit(x, harvested.labels, groups=harvested.groups)
    np.testing.assert_allclose(
        of_differences.probe_.direction, of_harvest.probe_.direction, atol=1e-5
    )
    assert (of_harvest.probe_.layer, of_differences.probe_.layer) == (1, 0)
    with pytest.raises(ValueError, match="Found array with dim 4, while dim <= 2 is required"):
        ContrastProbe().fit(states, harvested.labels)
    with pytest.raises(ValueError, match="X has 23 features, but ContrastProbe is expecting 24"):
        of_differences.predict(x[:, 1:])
    with pytest.raises(ValueError, match="X has states of width 24, the probe is of width 12"):
        ContrastProbe().fit(*differences()[:2]).predict(harvested)
    with pytest.raises(ValueError, match=r"layer must be one of 0, 1, 2, got 7"):
        ContrastProbe(layer=7).fit(harvested)


def test_any_two_classes_do_and_the_first_stands_for_text_1() -> None:
    x, y, _ = differences()
    names = np.where(y == 1, "first", "second")
    probe = ContrastProbe().fit(x, names)
    assert probe.classes_.tolist() == ["first", "second"] and set(probe.predict(x)) == {
        "first",
        "second",
    }
    assert ((probe.preference(x) > 0) == (probe.predict(x) == "first")).all()
    np.testing.assert_array_equal(probe.decision_function(x), -probe.preference(x))


def test_clone_grid_search_and_pickle_work_on_arrays() -> None:
    x, y, _ = differences()
    grid = {"c": [0.1, 1.0], "kind": ["supervised", "unsupervised"]}
    search = GridSearchCV(ContrastProbe(), grid, scoring="roc_auc", cv=3).fit(x, y)
    assert search.best_score_ > 0.95
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(x), search.predict(x))
    with pytest.raises(NotFittedError):
        clone(search.best_estimator_).predict(x)


def test_grid_search_works_on_a_harvest_and_reads_its_labels(plant: Callable[..., Any]) -> None:
    harvested, _ = plant(size=120)
    search = GridSearchCV(ContrastProbe(c=1.0), {"layer": [0, 1]}, cv=2).fit(
        harvested, harvested.labels
    )
    assert search.best_params_ == {"layer": 1}
    half = harvested[np.arange(0, 120, 2)]
    assert len(half) == 60 and half.pairs[1] == harvested.pairs[2]
    np.testing.assert_array_equal(half.layer(1), harvested.layer(1)[::2])
    np.testing.assert_array_equal(half.log_probs, harvested.log_probs[::2])
    probe = ContrastProbe("unsupervised").fit(half)
    assert probe.score(harvested[1::2]) > 0.9


@pytest.mark.parametrize("kind", ["supervised", "unsupervised"])
def test_the_command_line_fits_the_same_probe(kind: Any, plant: Callable[..., Any]) -> None:
    harvested, _ = plant(size=120)
    fits = fit_all(harvested, FitSettings(seeds=1, resamples=100))
    train = fits.halves[0].train
    ours = ContrastProbe(kind).fit(harvested[train])
    theirs = fits.probes[kind][0][fits.layers_chosen_in_training(kind)[0]]
    assert (ours.probe_.layer, ours.probe_.c == theirs.c or kind != "supervised") == (
        theirs.layer,
        True,
    )
    np.testing.assert_allclose(ours.probe_.direction, theirs.direction, rtol=1e-6, atol=1e-9)


def test_a_saved_probe_comes_back_with_its_card(tmp_path: Path, plant: Callable[..., Any]) -> None:
    harvested, _ = plant(size=120)
    probe = ContrastProbe().fit(harvested[:80])
    probe.save(
        tmp_path / "p.safetensors",
        dataset="mine",
        test_scores={"accuracy": probe.score(harvested[80:])},
    )
    card = load_probe(tmp_path / "p.safetensors", revision="s0").card
    assert (card.model, card.dataset, card.train_pairs, len(card.train_groups)) == (
        "planted",
        "mine",
        80,
        160,
    )
    again = ContrastProbe.load(tmp_path / "p.safetensors")
    np.testing.assert_allclose(
        again.predict_proba(harvested), probe.predict_proba(harvested), rtol=1e-4
    )
    assert again.card() == card and again.probe_.kind == "supervised"
    x, y, _ = differences()
    with pytest.raises(
        ValueError, match=r"a probe's file says text 1 or 2, but the classes are \[False, True\]"
    ):
        ContrastProbe().fit(x, y == 1).save(tmp_path / "x.safetensors")
    ContrastProbe("mean_difference").fit(x, y).save(tmp_path / "x.safetensors")
    assert load_probe(tmp_path / "x.safetensors").card.model == ""


def test_states_of_another_model_are_refused(tmp_path: Path, plant: Callable[..., Any]) -> None:
    harvested, _ = plant(size=120)
    probe = ContrastProbe().fit(harvested)
    probe.save(tmp_path / "p.safetensors")
    other = replace(harvested, identity=replace(harvested.identity, model="another", revision="s9"))
    for one in (probe, ContrastProbe.load(tmp_path / "p.safetensors")):
        with pytest.raises(
            ValueError, match=r"fitted to planted \(s0\), and these are states of another \(s9\)"
        ):
            one.score(other)
    states = other.layer(probe.probe_.layer)
    x = states[:, 0, 0] - states[:, 0, 1]
    with pytest.raises(ValueError, match="fitted to both orders, and differences are of one"):
        probe.preference(x)
    of_one_order = ContrastProbe(orders="first").fit(harvested)
    assert of_one_order.preference(x).shape == (120,), "an array says nothing of its model"


def test_what_is_saved_can_be_loaded(tmp_path: Path) -> None:
    x, y, _ = differences()
    ContrastProbe(c=np.float32(0.1)).fit(x, y).save(tmp_path / "p.safetensors")  # type: ignore[arg-type]
    assert ContrastProbe.load(tmp_path / "p.safetensors").probe_.c > 0
    with pytest.raises(
        ValueError, match="the probe's direction is all 0: its states do not differ"
    ):
        ContrastProbe().fit(np.zeros_like(x), y).save(tmp_path / "zero.safetensors")
    assert not (tmp_path / "zero.safetensors").exists()


def test_without_labels_there_is_a_direction_and_no_probability(plant: Callable[..., Any]) -> None:
    harvested, _ = plant(size=120)
    probe = ContrastProbe("unsupervised", orientation="logit", layer=1).fit(harvested)
    assert probe.score(harvested) > 0.9
    with pytest.raises(
        ValueError, match="saw no labels of both kinds, so it has no probabilities: use preference"
    ):
        probe.predict_proba(harvested)
    x, y, _ = differences()
    ContrastProbe("unsupervised", orientation="none").fit(x)
    with pytest.raises(
        ValueError, match="kind 'supervised', .* requires y to be passed, but the target y is None"
    ):
        ContrastProbe().fit(x)
    with pytest.raises(ValueError, match="orientation logit needs the model's own answers"):
        ContrastProbe("unsupervised", orientation="logit").fit(x, y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "svm"}, "The 'kind' parameter of ContrastProbe must be a str among .*'svm'"),
        ({"layer": "best"}, "The 'layer' parameter .* Got 'best'"),
        ({"layer": -1}, r"an int in the range \[0, inf\). Got -1"),
        ({"orders": "second"}, "a str among .* Got 'second'"),
        ({"folds": 1}, r"an int in the range \[2, inf\). Got 1"),
        ({"folds": None}, "The 'folds' parameter .* Got None"),
        ({"random_state": None}, "The 'random_state' parameter .* Got None"),
        ({"c": 0}, r"a float in the range \(0.0, inf\) or None. Got 0"),
        ({"c": float("inf")}, "The 'c' parameter .* Got inf"),
        ({"orientation": "few:0"}, "orientation must be few:K .*, got 'few:0'"),
        ({"orientation": None}, "The 'orientation' parameter .* Got None"),
        (
            {"orientation": "oracle", "kind": "unsupervised"},
            "oracle takes the labels of a test half",
        ),
    ],
)
def test_a_wrong_parameter_is_named_when_it_is_used(given: dict[str, Any], message: str) -> None:
    x, y, _ = differences(24)
    with pytest.raises(ValueError, match=message):
        ContrastProbe(**given).fit(x, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1] * 24, "one class alone, 1: nothing to learn from|only label"),
        (
            [0, 1, 2] * 8,
            "Only binary classification is supported. The type of the target is multiclass",
        ),
        ([1, 2], "inconsistent numbers of samples: 24 pairs, 24 groups, 2 labels"),
    ],
)
def test_wrong_labels_are_named(y: list[int], message: str) -> None:
    x, _, _ = differences(24)
    with pytest.raises(ValueError, match=message):
        ContrastProbe().fit(x, y)


def test_states_that_are_not_finite_are_refused() -> None:
    x, y, _ = differences(24)
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        ContrastProbe().fit(x, y)


@pytest.mark.slow(20)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass() -> None:
    checks = check_estimator(ContrastProbe(c=1.0), on_fail=None, on_skip=None)
    assert [c["check_name"] for c in checks if c["status"] not in ("passed", "skipped")] == []
