"""bench/gate.py's pairs: without a change nothing is worse, and one of the declared size is what was drawn."""

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
    [(before, after)] = gate.drawn(replace(line, items=20_000), np.random.default_rng(0), gate.SMALLEST)
    means = [np.mean([v for cell in run.items.values() for [v] in cell.values()]) for run in (before, after)]
    assert means[1] - means[0] == pytest.approx(-gate.SMALLEST, abs=0.01)


def test_a_line_is_told_with_and_without_a_change(gate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for line in gate.LINES if line.items == 10 or line.hard_fail]
    monkeypatch.setattr(gate, "LINES", tuple(lines))
    said: list[str] = []
    table = gate.table(2, said.append)
    assert table == said and len(table) == 4
    assert table[-1].startswith("|the hardest fifth unscored after|1.000|0.000|0.000|")
