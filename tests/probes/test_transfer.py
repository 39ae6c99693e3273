"""Probes of one data set on another whose states lie elsewhere, by both centres."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the probes extra is not installed")

from selfprobe.probes.evaluate import Fits, fit_all
from selfprobe.probes.fit import PRESETS, FloatArray, Orders, means
from selfprobe.probes.harvesting import Harvest
from selfprobe.probes.transfer import transfer_table

from .conftest import planted

SHIFT = 6.0
"""How far the first side of the other set lies along the planted direction, in units of noise."""


@dataclass(frozen=True)
class ShiftedHarvest(Harvest):
    """States whose first side lies elsewhere in all pairs alike."""

    shift: tuple[float, ...] = ()

    def layer(self, number: int) -> FloatArray:
        states = super().layer(number).copy()
        states[:, :, 0] += np.array(self.shift, dtype=states.dtype)
        return states


@pytest.fixture(scope="module")
def fits_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Fits]]:
    """Fits of a set and of one that lies elsewhere, under a preset."""
    folder: Path = tmp_path_factory.mktemp("transfer")
    harvest, direction = planted(folder / "one", layers=2)
    other, _ = planted(folder / "two", layers=2, size=160)
    other_pairs = tuple(
        replace(pair, group=f"other {pair.group}", text_1=f"other {pair.text_1}")
        for pair in other.pairs
    )
    shifted = ShiftedHarvest(
        **{**vars(other), "pairs": other_pairs}, shift=tuple(SHIFT * direction)
    )

    def fits(preset: str) -> dict[str, Fits]:
        settings = replace(PRESETS[preset], orientation="few:32", seeds=2, resamples=100)
        return {"one": fit_all(harvest, settings), "two": fit_all(shifted, settings)}

    return fits


def cell(table: Any, *, tested_on: str = "two", probe: str = "supervised") -> Any:
    cells = table.set_index(["trained_on", "tested_on", "probe", "metric"])
    return cells.loc[("one", tested_on, probe, "f1")]


@pytest.mark.parametrize("probe", ["supervised", "unsupervised"])
def test_a_set_that_lies_elsewhere_is_centred_by_its_own_mean_under_the_papers_preset(
    fits_of: Callable[[str], dict[str, Fits]], probe: str
) -> None:
    fits = fits_of("paper")
    number = cell(transfer_table(fits), probe=probe)
    assert number.centre == "tested" and number.value == number.tested_value > 0.7
    assert number.source_value < 0.55, "nearly all are said to have the better text first"

    own = cell(transfer_table(fits), tested_on="one", probe=probe)
    assert own.source_value == pytest.approx(own.tested_value, abs=0.1)

    for set_fits in fits.values():
        set_fits.settings = replace(set_fits.settings, centre="source")
    by_source = cell(transfer_table(fits), probe=probe)
    assert by_source.centre == "source" and by_source.value == number.source_value
    assert by_source.tested_value == number.tested_value


def test_with_both_orders_the_centre_moves_no_number(
    fits_of: Callable[[str], dict[str, Fits]],
) -> None:
    table = transfer_table(fits_of("strict"))
    assert (table.source_value == table.tested_value).all() and (
        table.value == table.source_value
    ).all()


@pytest.mark.parametrize("orders", ["first", "both"])
def test_a_probe_centred_on_states_has_their_means_and_scores_of_mean_0(orders: Orders) -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(3.0, 1.0, (20, 2, 2, 5))
    mean_plus, mean_minus = means(states[:7], orders)
    from selfprobe.probes.fit import Probe

    probe = Probe("supervised", 0, orders, rng.normal(size=5), 0.0, mean_plus, mean_minus, "labels")
    scores = probe.score(states)
    centred_scores = probe.centred_on(states).score(states)
    if orders == "first":
        assert centred_scores == pytest.approx(scores - scores.mean())
    else:
        assert centred_scores == pytest.approx(scores)
