"""Worlds of `selfprobe check`: a baseline and a run, of a model that did not change, and of one
that fell.

The kinds of runs are those of `bench/gate.py`; the claim is that of the row that is worse, if any
is.
"""

import sys
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from lines import Line, Lines

from selfprobe.stats.claim import Claim, Verdict
from selfprobe.studies.check_numbers import changes_of, fall_claim

BENCH = Path(__file__).parents[2] / "bench"
if str(BENCH) not in sys.path:
    sys.path.append(str(BENCH))
gate: Any = import_module("gate")

SMALLEST = 0.05
LARGEST_RUN = 300
"""Number of items above which a line takes too long for the bank."""


@dataclass(frozen=True)
class World:
    """A pair of runs of one kind for each task."""

    kind: Any
    """Line of `bench/gate.py`."""
    fall: float = 0.0

    def __call__(self, rng: np.random.Generator) -> Claim:
        rows = changes_of(gate.drawn(self.kind, rng, self.fall), smallest=SMALLEST)
        claims = [
            fall_claim(row, row.change, row.p_holm, SMALLEST)
            for row in rows
            if row.change is not None
        ]
        return next((claim for claim in claims if claim.verdict is Verdict.YES), claims[0])


KINDS = {kind.name: kind for kind in gate.LINES if kind.items <= LARGEST_RUN and not kind.hard_fail}
THREE_KEYS = KINDS["208 items, three keys"]
LINES: Lines = {
    **{f"no change, {name}": Line(World(kind)) for name, kind in KINDS.items()},
    "no change, all are right": Line(World(replace(THREE_KEYS, mean=0.999, spread=0.1))),
    "no change, two clusters of 50 and ten of two": Line(
        World(replace(THREE_KEYS, items=120, cluster=2, large=50, shock=0.1))
    ),
    "fell by .05, 208 items that hardly differ from run to run": Line(
        World(KINDS["208 items, nearly the same in every run"], 0.05), True, 0.8
    ),
    "fell by .10, 208 items × 3 keys": Line(World(THREE_KEYS, 0.1), True, 0.9),
    "fell by .10, 100 items, five epochs": Line(World(KINDS["five epochs"], 0.1), True, 0.9),
    "fell by .10, ten tasks at once": Line(World(KINDS["ten tasks at once"], 0.1), True),
}
