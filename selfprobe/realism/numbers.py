"""Numbers of pairwise realism: win rates of a panel, its judges and the words alone, and the order of prompts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from selfprobe.realism.table import Logged
from selfprobe.scorers.realism_choice import Pick, win_rate
from selfprobe.stats.agreement import cohen_kappa
from selfprobe.stats.bradley_terry import QUANTILE, order
from selfprobe.stats.clustered import crossed, resampled
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.stats.spread import FloatArray
from selfprobe.stats.text_only import log_odds

Kind = Literal[
    "told from real use, by more than its words",
    "told from real use, not shown to be by more than its words",
    "not shown to be told from real use by the judges, though its words tell it",
    "not shown to be told from real use",
    "taken for real use more often than real use itself",
    "no verdicts",
]
ALPHA = 0.05
"""From which p on an order of prompts is claimed."""


@dataclass(frozen=True)
class Judged:
    """One judge, or the panel."""

    judge: str
    win_rate: Estimate
    """Of the set against real conversations."""
    real: Estimate
    """Of real conversations against one another, which side is which by chance."""
    scored: int
    asked: int
    """Pairs of the set, with a verdict and in all."""
    by_position: float
    """Share of all pairs with a verdict in which the same position was taken in both orders; of a panel, of its judges'
    verdicts."""
    said_first: float
    """Share of single answers that take the first."""
    unscored: Mapping[str, float]
    """Share of all pairs by reason."""

    @property
    def picked_real(self) -> float:
        """How often it agrees with the labels: takes the real one, half where position decides."""
        return 1 - self.win_rate.value


@dataclass(frozen=True)
class Words:
    """What a classifier that sees no model makes of the same pairs."""

    win_rate: Estimate
    """Of the set; trained on other sources, or where that cannot be, on other conversations."""
    trained: str
    """On what."""
    less: Estimate
    """The words' win rate less the panel's, on the same pairs: above 0 the panel tells them better."""
    longer: float
    """Share of the set's pairs in which its prompt is the longer one."""


@dataclass(frozen=True)
class Prompt:
    """One prompt of the set."""

    item: str
    source: str
    text: str
    won: int
    lost: int
    undecided: int
    """Pairs that the panel decided for it, against it, and not: by position, judge against judge, or unscored."""
    chance: Estimate
    """Chance, of pairs that are decided, to be taken for real beside the average real conversation."""
    below: bool
    """Whether it is worse than the average prompt with its whole interval."""


@dataclass(frozen=True)
class Numbers:
    """Everything about the pairs."""

    panel: Judged
    judges: tuple[Judged, ...]
    words: Words
    prompts: tuple[Prompt, ...]
    """The worst first; where there is no order, in that of the scores all the same."""
    spread: float
    """Standard deviation of prompts in log-odds."""
    p: float
    """Of all prompts being alike."""
    met: int
    """Real conversations that the set's prompts met in pairs with a verdict."""
    met_sources: int
    """Sources of these."""
    kappas: tuple[tuple[str, str, int, float], ...]
    """Of two judges each: the pairs that both decided, and kappa."""

    @property
    def ordered(self) -> bool:
        """Whether an order may be claimed."""
        return self.p < ALPHA

    @property
    def kind(self) -> Kind:
        """What may be said of the set."""
        rate = self.panel.win_rate
        if math.isnan(rate.value):
            return "no verdicts"
        if rate.high < 0.5:
            more = self.words.less.low > 0
            return "told from real use, by more than its words" if more else _UNCLEAR
        if rate.low > 0.5:
            return "taken for real use more often than real use itself"
        return _BY_WORDS if self.words.win_rate.high < 0.5 else "not shown to be told from real use"


_BY_WORDS: Kind = "not shown to be told from real use by the judges, though its words tell it"
_UNCLEAR: Kind = "told from real use, not shown to be by more than its words"


def numbers_of(logged: Logged) -> Numbers:
    """All numbers of the judges' logs."""
    by_judge = logged.picks
    judges = tuple(_judged(name, found) for name, found in by_judge.items())
    together = panel_of(by_judge)
    every = [p for found in by_judge.values() for p in found]
    panel = replace(_judged("panel", together), by_position=_by_position(every), unscored=_reasons(every))
    mine = [p for p in together if p.kind == "set"]
    prompts, spread, p = _prompts(mine, logged.texts)
    met = {p.two: p.source_two for p in mine if not math.isnan(p.won)}
    real = len(met), len(set(met.values()))
    return Numbers(panel, judges, _words(mine, logged.texts), prompts, spread, p, *real, _kappas(by_judge))


def panel_of(by_judge: Mapping[str, Sequence[Pick]]) -> list[Pick]:
    """One verdict a pair: the mean of the judges that gave one; unscored where none did."""
    pairs: dict[tuple[str, str, str], list[Pick]] = {}
    for found in by_judge.values():
        for pick in found:
            pairs.setdefault((pick.kind, pick.one, pick.two), []).append(pick)
    made = []
    for same in pairs.values():
        won = [pick.won for pick in same if not math.isnan(pick.won)]
        reason = None if won else same[0].unscored
        first = tuple(took for pick in same for took in pick.first)
        made.append(replace(same[0], won=float(np.mean(won)) if won else math.nan, first=first, unscored=reason))
    return made


def _judged(name: str, found: Sequence[Pick]) -> Judged:
    mine, real = ([p for p in found if p.kind == kind] for kind in ("set", "real"))
    first = [took for p in found for took in p.first]
    return Judged(
        judge=name,
        win_rate=win_rate(mine),
        real=win_rate(real) if real else undefined("no two real conversations of like length", unit="conversation"),
        scored=sum(not math.isnan(p.won) for p in mine),
        asked=len(mine),
        by_position=_by_position(found),
        said_first=sum(first) / len(first) if first else math.nan,
        unscored=_reasons(found),
    )


def _by_position(found: Sequence[Pick]) -> float:
    """Of verdicts of single judges; a panel's one half may be two judges against each other."""
    scored = [p.won for p in found if not math.isnan(p.won)]
    return scored.count(0.5) / len(scored) if scored else math.nan


def _reasons(found: Sequence[Pick]) -> dict[str, float]:
    return {why: n / len(found) for why, n in Counter(p.unscored for p in found if p.unscored).most_common()}


def _words(mine: Sequence[Pick], texts: Mapping[str, str]) -> Words:
    sources = {
        key: source for p in mine for key, source in (("set: " + p.one, p.source_one), ("real: " + p.two, p.source_two))
    }
    keys = list(sources)
    positive = np.array([key.startswith("set: ") for key in keys])
    given, trained = [texts[key] for key in keys], "other sources"
    odds = log_odds(given, positive, np.array(list(sources.values())), each_apart=True)
    if np.isnan(odds).any():
        odds, trained = (
            log_odds(given, positive, np.array(keys)),
            "other conversations (too few sources to leave one out)",
        )
    of = dict(zip(keys, odds, strict=True))
    won = _by_words(mine, of)
    a, b, unit = _clusters(mine)
    less = crossed(won - np.array([p.won for p in mine]), a, b, unit=unit, signed=True)
    longer = np.mean([len(texts["set: " + p.one]) > len(texts["real: " + p.two]) for p in mine])
    rate = crossed(won, a, b, unit=unit)
    if math.isnan(rate.value):
        rate = undefined("too few conversations to train on", unit=unit)
    return Words(rate, trained, less, float(longer))


def _by_words(mine: Sequence[Pick], odds: Mapping[str, float]) -> FloatArray:
    """Who would win by the words: 1 where the set's prompt looks less like the set, .5 where alike, [pair]."""
    above = np.array([odds["real: " + p.two] - odds["set: " + p.one] for p in mine])
    return np.where(np.isnan(above), math.nan, 0.5 + np.sign(above) / 2)


def _clusters(mine: Sequence[Pick]) -> tuple[np.ndarray, np.ndarray, str]:
    none = [""] * len(mine)
    a, unit = resampled([p.source_one for p in mine], [p.one for p in mine], none)
    b, _ = resampled([p.source_two for p in mine], [p.two for p in mine], none)
    return a, b, unit


def _prompts(mine: Sequence[Pick], texts: Mapping[str, str]) -> tuple[tuple[Prompt, ...], float, float]:
    names, others = (sorted({getattr(p, side) for p in mine}) for side in ("one", "two"))
    at, their = ({name: n for n, name in enumerate(each)} for each in (names, others))
    clear = [p for p in mine if not math.isnan(p.won) and p.won != 0.5]
    found = order(
        np.array([at[p.one] for p in clear], dtype=np.intp),
        np.array([their[p.two] for p in clear], dtype=np.intp),
        np.array([p.won > 0.5 for p in clear], dtype=bool),
        prompts=len(names),
        real=len(others),
    )
    counts = {name: Counter[str]() for name in names}
    for p in mine:
        counts[p.one]["undecided" if math.isnan(p.won) or p.won == 0.5 else "won" if p.won > 0.5 else "lost"] += 1
    source = {p.one: p.source_one for p in mine}
    made = []
    for name, score, error, apart in zip(names, found.scores, found.errors, found.apart, strict=True):
        n, (value, low, high) = counts[name].total(), (_logistic(score + k * QUANTILE * error) for k in (0, -1, 1))
        chance = undefined("nothing was decided", n=n, unit="pair")
        chance = chance if math.isnan(score) else Estimate(value, low, high, n, "pair")
        below = bool(score - found.mean + QUANTILE * apart < 0)
        own = counts[name]
        made.append(
            Prompt(name, source[name], texts["set: " + name], own["won"], own["lost"], own["undecided"], chance, below)
        )
    return tuple(sorted(made, key=lambda p: (math.isnan(p.chance.value), p.chance.value))), found.spread, found.p


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _kappas(by_judge: Mapping[str, Sequence[Pick]]) -> tuple[tuple[str, str, int, float], ...]:
    said = {
        judge: {(p.one, p.two): p.won > 0.5 for p in found if p.kind == "set" and p.won in (0, 1)}
        for judge, found in by_judge.items()
    }
    made = []
    for a, b in combinations(said, 2):
        both = sorted(said[a].keys() & said[b].keys())
        ours, theirs = (np.array([said[judge][pair] for pair in both], dtype=bool) for judge in (a, b))
        made.append((a, b, len(both), cohen_kappa(ours, theirs) if both else math.nan))
    return tuple(made)
