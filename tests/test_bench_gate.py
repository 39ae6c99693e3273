"""bench/gate.py's pairs: without a change nothing is worse, and one of the declared size is what
was drawn.
"""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module")
def gate() -> Any:
    sys.path.append(str(FOLDER))
    return import_module("gate")


def test_a_drawn_fall_is_of_the_declared_size(gate: Any) -> None:
    [line] = [line for line in gate.LINES if line.name == "208 items, three keys"]
    [(before, after)] = gate.drawn(
        replace(line, items=20_000), np.random.default_rng(0), gate.SMALLEST_CHANGE
    )
    means = [
        np.mean([v for cell in run.items.values() for [v] in cell.values()])
        for run in (before, after)
    ]
    assert means[1] - means[0] == pytest.approx(-gate.SMALLEST_CHANGE, abs=0.01)


def test_a_line_is_told_with_and_without_a_change(
    gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for line in gate.LINES if line.items == 10 or line.hard_fail]
    monkeypatch.setattr(gate, "LINES", tuple(lines))
    said: list[str] = []
    table = gate.table(2, said.append)
    assert table == said and len(table) == 4
    assert table[-1].startswith("|the hardest fifth unscored after|1.000|0.000|0.000|")


def test_the_nights_go_by_the_verdict_of_the_command(gate: Any) -> None:
    """The fast rule of `is_worse` is that of `changes_of`, of runs that changed and of those that
    did not.
    """
    for seed in range(24):
        fall = 0.08 * (seed % 2)
        [(before, after)] = gate.drawn(gate.NIGHT, np.random.default_rng(seed), fall)
        means = [
            [np.mean(list(cell.values())) for cell in run.items.values()] for run in (before, after)
        ]
        [row] = gate.changes_of([(before, after)], smallest=gate.SMALLEST_CHANGE)
        assert gate.is_worse(np.array(means[0]), np.array([means[1]]))[0] == (
            row.verdict == "worse"
        )


def test_a_second_run_lowers_false_alarms_and_more_epochs_of_the_baseline_do_not(gate: Any) -> None:
    once = np.array([gate.alarms(1, seed) for seed in range(60)])  # [baseline, rule, night]
    five_epochs = np.array([gate.alarms(5, seed) for seed in range(60)])
    ever, ever_with_five = (nights.any(axis=2).mean(axis=0) for nights in (once, five_epochs))
    assert ever[1] < ever[0] / 2 and ever_with_five[1] < ever_with_five[0] / 2
    assert ever_with_five[0] > ever[0]


def test_nights_that_differ_bring_alarms_that_a_second_run_of_the_night_shares(gate: Any) -> None:
    alike = np.array([gate.alarms(1, seed) for seed in range(60)])  # [baseline, rule, night]
    differing = np.array([gate.alarms(1, seed, shift=0.03) for seed in range(60)])
    single, same_night, two_nights, _ = differing.mean(axis=(0, 2))
    assert single > 2 * alike[:, 0].mean()
    assert same_night > single / 3 > alike[:, 1].mean()
    assert two_nights < same_night
