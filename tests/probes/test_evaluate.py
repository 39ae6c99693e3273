import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from sklearn.metrics import f1_score

from selfprobe.data.pairs import Pair
from selfprobe.probes.evaluate import (
    METRICS,
    Fits,
    answer_mass,
    by_length,
    by_sentence_embedding,
    estimate,
    fit_all,
    no_model,
    own_answers,
    selection_floor,
    split_pairs,
)
from selfprobe.probes.fit import (
    PRESETS,
    FitSettings,
    Half,
    are_held_out,
    groups_and_questions,
    halves,
    signed_f1,
)
from selfprobe.probes.harvesting import Harvest
from selfprobe.probes.run import (
    MEAN_OF_ASPECTS,
    SAME_LABELS,
    all_scores,
    aspects_table,
    differences_table,
    layers_table,
    methods_table,
    rounding_table,
    strict_table,
    subsets_table,
)
from selfprobe.stats.estimate import auroc

Plant = Callable[..., tuple[Harvest, Any]]
QUICK = FitSettings(seeds=2, folds=3, resamples=100)


def value(table: Any, **where: Any) -> Any:
    for name, wanted in where.items():
        table = table[table[name] == wanted]
    assert len(table) == 1
    return table.iloc[0]


def test_halves_keep_a_question_on_one_side_and_are_halves() -> None:
    groups = np.repeat(np.arange(40), 5)
    for seed in range(5):
        train, test = halves(groups, seed)
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(200))
        assert len(train) == 100
    assert not np.array_equal(halves(groups, 0)[0], halves(groups, 1)[0])
    train, test = halves(groups, 0, grouped=False)
    assert set(groups[train]) & set(groups[test]), "the paper's halves split questions"


def test_a_layer_at_which_pairs_do_not_differ_is_fitted_and_not_chosen(plant: Plant) -> None:
    """As the first block of LFM2, a convolution over three tokens, gives it."""
    harvested, _ = plant(size=80)
    (shard,) = harvested.folder.parent.glob("states-*")
    tensors = load_file(shard)
    tensors["hidden"][0] = 1.0
    save_file(tensors, shard)
    fits = fit_all(harvested, QUICK)
    for kind in ("supervised", "unsupervised"):
        assert 0 not in fits.layers_chosen_in_training(kind)
    assert len(layers_table(fits)) and len(methods_table(fits))


def test_halves_of_some_subsets_test_on_all_others_but_no_seen_question() -> None:
    groups, natural = np.array([0, 1, 2, 3, 0, 1, 2, 3]), np.array([True] * 4 + [False] * 4)
    train, test = halves(groups, 0, train_from=natural)
    assert natural[train].all() and len(train) == 2
    assert not set(groups[train]) & set(groups[test])
    assert (~natural[test]).sum() == 2


def test_a_question_is_seen_whatever_its_group_is_called() -> None:
    seen = groups_and_questions([Pair("a", "x", "y", 1, context="Q", group="g7")])
    elsewhere = [
        Pair("b", "v", "w", 1, context="q "),
        Pair("c", "v", "w", 1, context="R", group="g7"),
    ]
    assert are_held_out(seen, [*elsewhere, Pair("d", "v", "w", 1, context="R")]) == [
        False,
        False,
        True,
    ]


def test_a_planted_direction_is_found_in_its_layer(plant: Plant) -> None:
    harvested, direction = plant(size=300, strength=1.5)
    fits = fit_all(harvested, QUICK)
    assert fits.layers_chosen_in_training("supervised") == [1, 1]
    curve = layers_table(fits)
    for kind in ("supervised", "unsupervised"):
        found = fits.probes[kind][0][1].direction  # type: ignore[index]
        assert abs(found @ direction) / np.linalg.norm(found) > 0.8
        assert value(curve, probe=kind, layer=1, metric="auroc").value > 0.9
        assert value(curve, probe=kind, layer=0, metric="auroc").value < 0.65
    methods = methods_table(fits)
    assert value(methods, method="supervised", metric="f1").value > 0.85
    assert (
        value(methods, method="random direction", metric="f1").value
        < value(methods, method="supervised", metric="f1").low
    )
    control = value(methods, method="no model (TF-IDF)", metric="auroc")
    assert abs(control.value - 0.5) < 0.1, "the planted texts say nothing"


def test_both_orders_take_position_out(plant: Plant) -> None:
    harvested, _ = plant(size=300, strength=2.0, position=6.0)
    methods = methods_table(fit_all(harvested, QUICK))
    both, one = (
        value(methods, method=f"unsupervised{x}", metric="f1").value for x in ("", ", one order")
    )
    assert both > one + 0.05
    first = fit_all(harvested, replace(QUICK, orders="first"))
    position = first.probes["unsupervised"][0][1].direction
    direction = fit_all(harvested, QUICK).probes["unsupervised"][0][1].direction
    assert abs(position @ direction) < 0.5, "from one order the first component is position"


def test_a_stronger_nuisance_wins_the_component_but_not_the_regression(plant: Plant) -> None:
    harvested, direction = plant(size=300, strength=2.0, nuisance=6.0)
    fits = fit_all(harvested, QUICK)
    assert abs(fits.probes["unsupervised"][0][1].direction @ direction) < 0.4
    assert fits.scores_at_chosen_layers("supervised").shape == (2, 300)
    assert value(methods_table(fits), method="supervised", metric="auroc").value > 0.85


def test_f1_of_margins_is_sklearns_where_a_tie_says_neither() -> None:
    rng = np.random.default_rng(0)
    truth, scores = rng.random(80) < 0.3, np.round(rng.standard_normal(80), 1)
    signs, labels = (
        np.where(truth, 1, -1),
        {"labels": [-1, 1], "average": "weighted", "zero_division": 0},
    )
    assert 0 in scores, "a tie says neither"
    assert signed_f1(truth, scores) == pytest.approx(f1_score(signs, np.sign(scores), **labels))
    constant = np.ones(80)
    assert signed_f1(truth, constant) == pytest.approx(
        f1_score(truth, constant > 0, average="weighted")
    )


def test_without_a_direction_the_interval_holds_one_half(plant: Plant) -> None:
    harvested, _ = plant(size=240, strength=0.0)
    fits = fit_all(harvested, QUICK)
    for kind in ("supervised", "unsupervised"):
        scores = fits.scores_at_chosen_layers(kind)  # type: ignore[arg-type]
        found = estimate(scores, harvested.labels == 1, harvested.groups, "auroc", resamples=200)
        assert found.low < 0.5 < found.high


@pytest.mark.slow(20)
def test_the_interval_covers_one_half_as_often_as_it_says(plant: Plant) -> None:
    missed = 0
    for seed in range(40):
        harvested, _ = plant(size=120, layers=2, dimension=12, strength=0.0, seed=seed)
        fits = fit_all(harvested, FitSettings(seeds=1, folds=2, c=1.0))
        found = estimate(
            fits.scores["supervised"][:, 1],
            harvested.labels == 1,
            harvested.groups,
            "auroc",
            resamples=200,
        )
        missed += not found.low < 0.5 < found.high
    assert missed <= 6  # 5 % of 40 is 2


@pytest.mark.slow(20)
def test_the_floor_predicts_what_the_best_of_layers_finds_on_noise(plant: Plant) -> None:
    best, floors, over = [], [], 0
    for seed in range(30):
        harvested, _ = plant(size=120, layers=8, dimension=16, strength=0.0, seed=seed)
        fits = fit_all(harvested, FitSettings(seeds=1, folds=2, c=1.0))
        table = fits.scores["unsupervised"][0]
        test = ~np.isnan(table[0])
        truth = harvested.labels[test] == 1
        found = max(signed_f1(truth, sign * row[test]) for row in table for sign in (1, -1))
        floor = selection_floor(
            fits.scores["unsupervised"], harvested.labels == 1, harvested.groups, both_signs=True
        )
        best.append(found)
        floors.append(floor.mean)
        over += found > floor.high
    assert np.mean(best) == pytest.approx(np.mean(floors), abs=0.02)
    assert np.mean(floors) > 0.55, "well above one half: that is the point"
    assert over <= 5  # 5 % of 30 is 1.5


def test_orientation_by_few_labels_logits_and_oracle(plant: Plant) -> None:
    def f1(fits: Fits) -> float:
        harvested, scores = fits.harvest, fits.scores["unsupervised"][:, 1]
        return estimate(scores, harvested.labels == 1, harvested.groups, "f1", resamples=100).value

    harvested, _ = plant(size=200, strength=3.0, answers=2.0)
    for way in ("few:32", "logit", "oracle"):
        fits = fit_all(harvested, replace(QUICK, orientation=way))
        assert f1(fits) > 0.8
        assert fits.settings.leaks == (way == "oracle")
    misled, _ = plant(size=200, strength=3.0, answers=-2.0, seed=1)
    fits = fit_all(misled, replace(QUICK, orientation="logit"))
    assert f1(fits) < 0.2, "a model that answers wrongly reverses the sign, and that is not hidden"


def test_none_reports_both_signs_and_leaks_are_marked(plant: Plant) -> None:
    harvested, _ = plant(size=120)
    paper = all_scores(fit_all(harvested, replace(PRESETS["paper"], seeds=1)))
    np.testing.assert_array_equal(paper["unsupervised"][0], -paper["unsupervised, flipped"][0])
    assert paper["supervised"].no_measurement == "one question is in both halves"
    code = all_scores(fit_all(harvested, replace(PRESETS["released-code"], seeds=1)))
    assert "LEAKS: the labels of the test half give its sign" in code["unsupervised"].note
    assert code["supervised"].no_measurement == "the texts of the test half give its means"
    strict = all_scores(fit_all(harvested, QUICK))
    assert "LEAKS" not in strict["unsupervised"].note
    assert not strict["unsupervised"].no_measurement and not strict["supervised"].no_measurement
    unsigned = all_scores(fit_all(harvested, replace(QUICK, orientation="none")))
    assert unsigned["unsupervised"].no_measurement == "its sign is arbitrary"
    assert not unsigned["supervised"].no_measurement


def test_halves_of_questions_stand_beside_halves_that_share_them_and_see_through_what_leaks(
    plant: Plant,
) -> None:
    """Each question's state says its own label and nothing of others: known again is not known."""
    harvested, _ = plant(size=240, strength=0.0, per_group=6, dimension=40, layers=2)
    labels = np.repeat(np.arange(40) % 2, 6) + 1
    pairs = [
        replace(pair, label=1 if label == 1 else 2)
        for pair, label in zip(harvested.pairs, labels, strict=True)
    ]
    leaking = LeakingHarvest(**{**vars(harvested), "pairs": tuple(pairs)})
    settings = replace(PRESETS["paper"], seeds=2, resamples=100)
    known_again = value(
        methods_table(fit_all(leaking, settings)), method="supervised", metric="auroc"
    )
    strict = value(strict_table(leaking, settings), method="supervised", metric="auroc")
    assert known_again.value > 0.9 and known_again.no_measurement
    assert strict.value < 0.7
    asked = value(strict_table(leaking, settings), method="prompting", metric="auroc")
    assert asked.n > 20 and not math.isnan(asked.value)
    with pytest.raises(ValueError, match="needs at least 8 pairs of 4 questions"):
        strict_table(leaking[:24], settings)


class LeakingHarvest(Harvest):
    """States that hold which question a pair is of, in a direction of its own, with its label."""

    def layer(self, number: int) -> Any:
        states = np.random.default_rng(number).normal(size=(len(self.pairs), 2, 2, 40)) * 0.1
        for row, pair in enumerate(self.pairs):
            sign = 1 if pair.label == 1 else -1
            states[row, :, 0, int(pair.group[1:])] += 3 * sign * np.array([1.0, -1.0])
        return states


def test_training_pairs_have_no_test_score(plant: Plant) -> None:
    harvested, _ = plant(size=120, per_group=3)
    fits = fit_all(harvested, QUICK)
    for name, method in all_scores(fits).items():
        tested = ~np.isnan(method.scores)
        for column, seed in zip(tested, np.repeat([0, 1], len(tested) // 2), strict=True):
            assert not column[fits.halves[seed].train].any(), name
            assert column[fits.halves[seed].test].all(), name


def test_the_test_half_does_not_reach_the_fit(plant: Plant) -> None:
    harvested, _ = plant(size=120)
    before = fit_all(harvested, replace(QUICK, seeds=1))
    test = before.halves[0].test
    pairs = tuple(p.swapped if i in test else p for i, p in enumerate(harvested.pairs))
    pairs = tuple(replace(p, label=pairs[i].label) for i, p in enumerate(harvested.pairs))
    after = fit_all(replace(harvested, pairs=pairs), replace(QUICK, seeds=1))
    for kind in ("supervised", "unsupervised"):
        for one, two in zip(before.probes[kind][0], after.probes[kind][0], strict=True):  # type: ignore[index]
            np.testing.assert_array_equal(one.direction, two.direction)
    assert before.layers_chosen_in_training("supervised") == after.layers_chosen_in_training(
        "supervised"
    )


def test_own_answers_speak_of_the_first_text_in_both_orders(plant: Plant) -> None:
    harvested, _ = plant(size=200, answers=4.0)
    own = own_answers(harvested)
    truth = harvested.labels == 1
    assert ((own > 0.5) == truth[:, None]).mean(axis=0).min() > 0.9
    assert own[:, 0].mean() > own[:, 1].mean(), "the planted bias towards the first position shows"


def test_subsets_are_scored_apart(plant: Plant) -> None:
    harvested, _ = plant(size=160)
    pairs = tuple(
        replace(p, subset="Natural" if i < 100 else "Neighbor")
        for i, p in enumerate(harvested.pairs)
    )
    fits = fit_all(replace(harvested, pairs=pairs), QUICK, train_subsets=("Natural",))
    table = subsets_table(fits)
    assert value(table, subset="Neighbor", method="supervised", metric="f1").n == 60
    assert len(fits.halves[0].train) == 50


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pairs: [replace(p, label=1) for p in pairs], "has only label 1"),
        (lambda pairs: [replace(p, label=None) for p in pairs], "120 of 120 pairs have no label"),
    ],
)
def test_one_class_and_no_labels_are_errors(plant: Plant, change: Any, message: str) -> None:
    harvested, _ = plant(size=120)
    with pytest.raises(ValueError, match=message):
        fit_all(replace(harvested, pairs=tuple(change(harvested.pairs))), QUICK)


def test_five_pairs_are_an_error(plant: Plant) -> None:
    harvested, _ = plant(size=5, seed=2)
    with pytest.raises(ValueError, match="the training half has"):
        fit_all(harvested)


def test_metrics_of_the_tables_are_those_of_the_evaluation() -> None:
    rng = np.random.default_rng(0)
    scores, truth = np.round(rng.standard_normal((3, 60)), 1), rng.random(60) < 0.4
    scores[0, :20] = scores[1, 30:] = np.nan
    for metric, function in METRICS.items():
        expected = np.mean([function(truth[~np.isnan(row)], row[~np.isnan(row)]) for row in scores])
        found = estimate(scores, truth, np.arange(60), metric, resamples=100)
        assert found.value == pytest.approx(expected)
        assert found.low < expected < found.high


def test_the_tfidf_control_learns_words_and_weights_from_the_training_half_alone(
    plant: Plant,
) -> None:
    harvested, _ = plant(size=60)
    vocabulary = [f"word{i}" for i in range(20)]
    drawn = np.random.default_rng(0).choice(vocabulary, (2, 60, 6))
    pairs = [
        replace(p, text_1=" ".join(one), text_2=" ".join(two))
        for p, one, two in zip(harvested.pairs, *drawn, strict=True)
    ]
    (half,) = split_pairs(pairs, replace(QUICK, seeds=1))
    before = no_model(pairs, [half])[0]
    changed, *others = half.test
    pairs[changed] = replace(
        pairs[changed], text_1="word1 word1 unheard of", label=3 - (pairs[changed].label or 0)
    )
    after = no_model(pairs, [half])[0]
    assert after[changed] != before[changed]
    np.testing.assert_array_equal(after[others], before[others])
    assert np.isnan(after[half.train]).all() and not np.isnan(after[half.test]).any()


SENTENCES = ("The ferry leaves at noon.", "A kettle sings on the stove.", "He paid the carpenter.")
PRAISE = ("It was a wonderful evening.", "I am delighted with it.", "What a lovely surprise.")


def test_a_regression_on_sentence_embeddings_reads_what_texts_tell_and_learns_from_its_half_alone(
    plant: Plant,
) -> None:
    harvested, _ = plant(size=60)
    pairs = []
    for number, pair in enumerate(harvested.pairs):
        praise = f"{PRAISE[number % 3]} {number}."
        plain = f"{SENTENCES[number % 3]} {number}."
        texts = (praise, plain) if pair.label == 1 else (plain, praise)
        pairs.append(replace(pair, text_1=texts[0], text_2=texts[1]))
    train, test = np.arange(30), np.arange(30, 60)
    splits = [Half(train, test, train[:0])]
    scores = by_sentence_embedding(pairs, splits)
    assert scores is not None and np.isnan(scores[0, train]).all()
    assert auroc(harvested.labels[test] == 1, scores[0, test]) == 1.0

    turned = [replace(pair, label=1 if pair.label == 2 else 2) for pair in pairs[30:]]
    learnt_alike = by_sentence_embedding([*pairs[:30], *turned], splits)
    assert learnt_alike is not None
    assert learnt_alike[0, test] == pytest.approx(scores[0, test])

    blank = [replace(pairs[0], text_2=" "), *pairs[1:]]
    assert by_sentence_embedding(blank, splits) is not None, "a blank text has an embedding of 0"


def test_without_the_embedders_weights_there_is_no_such_method(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = fit_all(plant(size=60)[0], QUICK)
    with monkeypatch.context() as without_weights:
        without_weights.setattr("selfprobe.probes.evaluate.unfetched", lambda _: "not here")
        assert "no model (MiniLM)" not in all_scores(fits)
    fits = fit_all(plant(size=60)[0], QUICK)
    assert "no model (MiniLM)" in all_scores(fits)
    assert "no model (MiniLM)" in set(differences_table(fits).against)


@pytest.mark.parametrize(
    "texts", [("4", "5"), ("alpha beats beta", "beta beats alpha")], ids=["no words", "one bag"]
)
def test_texts_whose_words_tell_nothing_have_no_tfidf_score(
    plant: Plant, texts: tuple[str, str]
) -> None:
    harvested, _ = plant(size=40)
    pairs = [replace(p, text_1=texts[0], text_2=texts[1]) for p in harvested.pairs]
    assert np.isnan(no_model(pairs, split_pairs(pairs, QUICK))).all()


def test_length_alone_is_told_apart_from_a_preference(plant: Plant) -> None:
    harvested, _ = plant(size=120)
    pairs = [
        replace(p, text_1="x" * (9 if p.label == 2 else 5), text_2="y" * 7) for p in harvested.pairs
    ]
    halves_of = split_pairs(pairs, QUICK)
    scores = by_length(pairs, halves_of)
    truth = np.array([p.label == 1 for p in pairs])
    for row, half in zip(scores, halves_of, strict=True):
        assert ((row[half.test] > 0) == truth[half.test]).all(), (
            "the shorter is better, as the training half says"
        )
        assert np.isnan(row[half.train]).all()
    worse = next(i for i in halves_of[0].test if not truth[i])
    assert scores[0, worse] == pytest.approx(-np.log(10 / 8))  # (9 + 1) characters against (7 + 1)


def test_a_layer_and_a_sign_from_few_labels_are_said_and_a_regression_on_them_is_shown(
    plant: Plant,
) -> None:
    harvested, _ = plant(size=300, strength=3.0)
    fits = fit_all(harvested, QUICK)
    found = all_scores(fits)
    assert "sign few:32; sign and layer come from these 32 labels" in found["unsupervised"].note
    few = found[SAME_LABELS]
    assert "the unsupervised probe's 32 labels, layers [1] chosen by them" in few.note
    assert few.learnt is not None and few.learnt.sum(axis=1).tolist() == [32, 32]
    for half, seen in zip(fits.halves, few.learnt, strict=True):
        assert set(np.flatnonzero(seen)) == set(half.few) <= set(half.train)
    supervised, poorer = (
        value(methods_table(fits), method=m, metric="auroc") for m in ("supervised", SAME_LABELS)
    )
    assert 0.6 < poorer.value < supervised.value
    logit = all_scores(fit_all(harvested, replace(QUICK, orientation="logit")))
    assert SAME_LABELS not in logit and "these" not in logit["unsupervised"].note
    one_label = fit_all(harvested, replace(QUICK, orientation="few:1"))
    assert np.isnan(all_scores(one_label)[SAME_LABELS].scores).all(), (
        "one label teaches no regression"
    )


def test_differences_are_paired_and_name_what_they_are_against(plant: Plant) -> None:
    harvested, _ = plant(size=300, strength=2.0, answers=0.5)
    fits = fit_all(harvested, QUICK)
    fits.untrained = fit_all(plant(size=300, strength=0.0)[0], QUICK)
    methods, found = methods_table(fits), differences_table(fits)
    for other in (
        "prompting",
        "no model (length)",
        "no model (TF-IDF)",
        "random weights, supervised",
    ):
        both = [value(methods, method=m, metric="auroc").value for m in ("supervised", other)]
        row = value(found, probe="supervised", against=other, metric="auroc")
        assert row.value == pytest.approx(both[0] - both[1])
        assert 0 < row.low < row.high < 1, other
    same_labels = value(found, probe="unsupervised", against=SAME_LABELS, metric="auroc")
    assert not math.isnan(same_labels.value)
    assert SAME_LABELS not in set(found[found.probe == "supervised"].against)
    assert value(found, probe="supervised", against="random direction", metric="auroc").low > 0
    assert (
        abs(value(methods, method="random weights, supervised", metric="auroc").value - 0.5) < 0.12
    )


def test_a_run_says_how_much_probability_the_asked_answers_have_and_how_often_luck_reaches_the_probe(
    plant: Plant,
) -> None:
    harvested, _ = plant(size=200, strength=2.0)
    vars(harvested)["log_probs"] = np.full((len(harvested.pairs), 2, 2), np.log(0.015))
    mass = answer_mass(harvested)
    assert mass.value == pytest.approx(0.03) and mass.low <= 0.03 <= mass.high < 0.5
    scores, truth, groups = np.ones((1, 1, 40)), np.arange(40) % 2 == 0, np.arange(40)
    scores[0, 0] = np.where(truth, 1.0, -1.0)
    floor = selection_floor(
        scores, truth, groups, both_signs=False, metric="auroc", shuffles=99, reached=1.0
    )
    assert floor.p_value == 0.01 and floor.reached == 1.0
    assert math.isnan(selection_floor(scores, truth, groups, both_signs=False, shuffles=9).p_value)


def test_one_tested_question_gives_no_interval_and_says_so() -> None:
    scores = np.array([[np.nan, np.nan, 1.0, -1.0], [np.nan, np.nan, 2.0, 1.0]])
    groups = np.array(["a", "b", "c", "c"])
    truth = np.array([True, False, True, False])
    got = estimate(
        scores,
        truth,
        groups,
        "auroc",
        resamples=100,
        learnt=np.isnan(scores),
        subtracted_scores=-scores,
    )
    assert (
        got.value == 1.0 and math.isnan(got.low) and got.reason == "no interval from one question"
    )


def test_a_probe_that_learnt_nothing_is_not_above_random_weights(plant: Plant) -> None:
    harvested, _ = plant(size=200, strength=0.0)
    fits = fit_all(harvested, QUICK)
    fits.untrained = fit_all(plant(size=200, strength=0.0, seed=1)[0], QUICK)
    found = differences_table(fits)
    for kind in ("supervised", "unsupervised"):
        assert value(found, probe=kind, against=f"random weights, {kind}", metric="auroc").low < 0


def test_results_by_aspect_and_their_unweighted_mean(plant: Plant) -> None:
    harvested, _ = plant(size=200)
    pairs = tuple(
        replace(p, aspect="coherence" if i < 150 else "fluency")
        for i, p in enumerate(harvested.pairs)
    )
    table = aspects_table(fit_all(replace(harvested, pairs=pairs), QUICK))
    assert table.aspect.unique().tolist() == ["coherence", "fluency", MEAN_OF_ASPECTS]
    for method in ("supervised", "prompting"):
        one, two, mean = (
            value(table, aspect=a, method=method, metric="f1")
            for a in ("coherence", "fluency", MEAN_OF_ASPECTS)
        )
        assert mean.value == pytest.approx((one.value + two.value) / 2)
        assert mean.low < mean.value < mean.high and mean.n == one.n + two.n
    assert aspects_table(fit_all(harvested, QUICK)).empty, "these data have none"


def test_the_rounding_of_half_precision_is_a_table_by_block(plant: Plant) -> None:
    harvested, _ = plant(size=60, layers=2)
    fits = fit_all(harvested, QUICK)
    assert rounding_table(fits).empty, "float32"
    fits.harvest = replace(
        harvested, identity=replace(harvested.identity, dtype="bfloat16+float32")
    )
    fits.harvest.__dict__["rounding"] = (0.25, 0.125)
    assert rounding_table(fits).to_dict("list") == {"layer": [0, 1], "rounding": [0.25, 0.125]}


def test_a_fit_says_how_far_it_is_and_how_long_it_takes(plant: Plant) -> None:
    harvested, _ = plant(size=60, layers=2)
    said: list[str] = []
    fit_all(harvested, QUICK, progress=said.append)
    assert (
        re.fullmatch(r"layer 1 of 2 fitted, \d+ s left", said[0])
        and said[1] == "layer 2 of 2 fitted, 0 s left"
    )


def test_a_process_that_fits_does_not_load_pytorch() -> None:
    code = "import sys, selfprobe.probes.fit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow(10)  # two processes start
def test_several_processes_give_the_same_numbers(plant: Plant) -> None:
    harvested, _ = plant(size=60, layers=2)
    one, two = (fit_all(harvested, QUICK, processes=n) for n in (1, 2))
    for kind in ("supervised", "unsupervised"):
        np.testing.assert_allclose(one.scores[kind], two.scores[kind], rtol=1e-10)  # type: ignore[index]
        assert one.layers_chosen_in_training(kind) == two.layers_chosen_in_training(kind)  # type: ignore[arg-type]
    assert [p.layer for p in two.probes["supervised"][1]] == [0, 1]
