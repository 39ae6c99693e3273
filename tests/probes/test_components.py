"""Figure 1's first two components, and how supervised and unsupervised directions lie to each
other.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA

from selfprobe.probes.evaluate import fit_all
from selfprobe.probes.fit import PRESETS, FitSettings
from selfprobe.probes.run import components_table
from selfprobe.probes.transfer import BOTH, cosine_table
from selfprobe.stats.estimate import auroc

Plant = Callable[..., tuple[Any, Any]]


def test_the_first_component_sorts_the_pairs_where_a_preference_is_planted(plant: Plant) -> None:
    harvest, _ = plant(strength=6.0)
    table = components_table(fit_all(harvest, FitSettings(seeds=1, resamples=100)))
    assert set(table.half) == {"train", "test"} and set(table.layer) == {1}
    new = table[table.half == "test"]
    assert auroc((new.preferred == 1).to_numpy(), new["first"].to_numpy()) > 0.95
    assert auroc((new.preferred == 1).to_numpy(), new["second"].to_numpy()) < 0.7
    assert 1 > table.share_first[0] > table.share_second[0] > 0


def test_both_components_are_scikit_learns_on_the_training_half(plant: Plant) -> None:
    harvest, _ = plant(strength=6.0, nuisance=4.0)
    fits = fit_all(harvest, replace(PRESETS["paper"], seeds=1, resamples=100))
    table, states, train = (
        components_table(fits),
        harvest.layer(2).astype(float),
        fits.halves[0].train,
    )
    x = (states[:, 0, 0] - states[train, 0, 0].mean(axis=0)) - (
        states[:, 0, 1] - states[train, 0, 1].mean(axis=0)
    )
    oracle = PCA(2).fit(x[train])
    for k, name in enumerate(("first", "second")):
        assert np.abs(x @ oracle.components_[k]) == pytest.approx(
            np.abs(table[name].to_numpy()), abs=1e-6
        )


def test_supervised_and_unsupervised_directions_of_one_half_are_compared_in_magnitude(
    plant: Plant,
) -> None:
    harvest, _ = plant(strength=6.0)
    fits = fit_all(harvest, FitSettings(seeds=3, resamples=100))
    (row,) = cosine_table({"one": fits}, layer=1).query("probe == @BOTH").itertuples()
    by_hand = []
    for seed in range(3):
        a, b = (fits.probes[kind][seed][1].direction for kind in ("supervised", "unsupervised"))
        by_hand.append(abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b))
    assert row.absolute == pytest.approx(np.mean(by_hand)) and row.absolute > 0.8
    flipped = fit_all(harvest, FitSettings(seeds=3, resamples=100, orientation="none"))
    (other,) = cosine_table({"one": flipped}, layer=1).query("probe == @BOTH").itertuples()
    assert other.absolute == pytest.approx(row.absolute), (
        "the sign of a component moves no magnitude"
    )
    assert BOTH in set(cosine_table({"one": fits}).probe)
