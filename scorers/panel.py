"""Several graders of one text: what each of them said, and how far every two agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from inspect_ai.scorer import SampleScore

from selfprobe.stats.agreement import Agreement, agreement

Panel = Mapping[str, Mapping[str, bool | str]]
"""Grader → text → its verdict, or the reason why there is none."""

PANEL = "panel"
"""Entry of a score's metadata with a `Panel`; only scores of several graders have one."""


@dataclass(frozen=True)
class GraderPair:
    """Two graders of the same texts."""

    first: str
    second: str
    agreement: Agreement
    """Over the texts that both have a verdict on, clustered by item."""


def panel_entry(verdicts: Mapping[str, Mapping[str, bool | str]]) -> dict[str, object]:
    """What a score's metadata says of its graders: nothing of a single one.

    Args:
        verdicts: Text → grader → its verdict, or the reason why there is none.
    """
    graders = dict.fromkeys(grader for of in verdicts.values() for grader in of)
    panel = {grader: {text: of[grader] for text, of in verdicts.items() if grader in of} for grader in graders}
    return {PANEL: panel} if len(graders) > 1 else {}


def grader_pairs(panels: Sequence[tuple[str, Panel]]) -> list[GraderPair]:
    """The agreement of every two graders; empty without a panel.

    Args:
        panels: Item and its panel, one an item and epoch.
    """
    graders = list(dict.fromkeys(grader for _, panel in panels for grader in panel))
    pairs = []
    for first, second in combinations(graders, 2):
        both = [
            (item, one, other)
            for item, panel in panels
            for text, one in panel.get(first, {}).items()
            if isinstance(one, bool) and isinstance(other := panel.get(second, {}).get(text), bool)
        ]
        items, a, b = zip(*both, strict=True) if both else ((), (), ())
        rng = np.random.default_rng(0)
        pairs.append(GraderPair(first, second, agreement(a, b, clusters=items, rng=rng, unit="item")))
    return pairs


def kappas(scores: Sequence[SampleScore]) -> dict[str, float]:
    """Metrics of a panel: `kappa_1_2` of the first and the second grader, with `_low` and `_high` (95 %, by item).

    The graders are numbered as the run names them. What is undefined is left out; a single grader has none.
    """
    panels = [(str(one.sample_id), panel) for one in scores if (panel := (one.score.metadata or {}).get(PANEL))]
    numbers = {grader: n for n, grader in enumerate(dict.fromkeys(g for _, panel in panels for g in panel), start=1)}
    out: dict[str, float] = {}
    for pair in grader_pairs(panels):
        name, kappa = f"kappa_{numbers[pair.first]}_{numbers[pair.second]}", pair.agreement.kappa
        out |= {name: kappa.value, f"{name}_low": kappa.low, f"{name}_high": kappa.high}
    return {name: value for name, value in out.items() if value == value}
