"""Numbers of pairwise realism: win rates of a panel, its judges and the words alone, and the order of prompts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.special import expit

from selfprobe.scorers.realism_choice import Pick, win_rate
from selfprobe.stats.agreement import cohen_kappa
from selfprobe.stats.bradley_terry import QUANTILE, order
from selfprobe.stats.estimate import Estimate, undefined
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
"""Significance level: an order of prompts is claimed if p is below it."""


@dataclass(frozen=True)
class Judged:
    """Numbers of one judge, or of the panel."""

    judge: str
    win_rate: Estimate
    """Share of pairs in which the set is taken for real rather than a real conversation."""
    real: Estimate
    """Share for pairs of two real conversations, where chance decides which side counts as the set."""
    scored: int
    asked: int
    """Number of pairs of the set, with a verdict and in all."""
    by_position: float
    """Share of single judges' verdicts, on all pairs, that took the same position in both orders."""
    said_first: float
    """Share of single answers that take the first."""
    unscored: Mapping[str, float]
    """Reason → share of single judges' pairs."""

    @property
    def picked_real(self) -> float:
        """Share of pairs in which it agrees with the labels: takes the real one, half where position decides."""
        return 1 - self.win_rate.value


@dataclass(frozen=True)
class WordsBaseline:
    """Verdicts on the same pairs of a classifier that sees no model."""

    win_rate: Estimate
    """Share of pairs in which the set's prompt looks less like the set than the real conversation does."""
    trained: str
    """Data that it was trained on: other sources or, where that cannot be, other conversations."""
    less: Estimate
    """The words' win rate less the panel's, on the same pairs: above 0 the panel tells them better."""
    longer: float
    """Share of the set's pairs in which its prompt is the longer one."""


@dataclass(frozen=True)
class RatedPrompt:
    """One prompt of the set."""

    item: str
    source: str
    text: str
    won: int
    lost: int
    undecided: int
    """Number of pairs that the panel decided for it, against it, and not: by position, judge against judge, or
    unscored."""
    chance: Estimate
    """Chance, in pairs that are decided, to be taken for real rather than the average real conversation."""
    below: bool
    """Whether it is worse than the average prompt with its whole interval."""


@dataclass(frozen=True)
class Numbers:
    """Everything about the pairs."""

    panel: Judged
    judges: tuple[Judged, ...]
    words: WordsBaseline
    prompts: tuple[RatedPrompt, ...]
    """Prompts in the order of the scores, the worst first, also where no order may be claimed."""
    p: float
    """Probability of such an order if all prompts were equally realistic."""
    met: int
    met_sources: int
    """Number of real conversations that the set's prompts met in pairs with a verdict, and of their sources."""
    kappas: tuple[tuple[str, str, int, float], ...]
    """Two judges, the number of pairs that both decided, and kappa."""

    @property
    def ordered(self) -> bool:
        """Whether an order may be claimed."""
        return self.p < ALPHA

    @property
    def kind(self) -> Kind:
        """Kind of claim that may be made about the set."""
        rate, words = self.panel.win_rate, self.words
        if math.isnan(rate.value):
            return "no verdicts"
        if rate.low > 0.5:
            return "taken for real use more often than real use itself"
        if rate.high < 0.5 and words.less.low > 0:
            return "told from real use, by more than its words"
        if rate.high < 0.5:
            return "told from real use, not shown to be by more than its words"
        if words.win_rate.high < 0.5:
            return "not shown to be told from real use by the judges, though its words tell it"
        return "not shown to be told from real use"


def numbers_of(by_judge: Mapping[str, Sequence[Pick]], texts: Mapping[str, str]) -> Numbers:
    """All numbers of the judges' verdicts.

    Args:
        by_judge: Judge → its verdicts.
        texts: Text of each conversation of the set's pairs: "set: ID" and "real: ID".
    """
    together, single = panel_of(by_judge), [p for found in by_judge.values() for p in found]
    panel = judge_numbers("panel", together, single)
    mine = [p for p in together if p.kind == "set"]
    prompts, p = _prompts(mine, texts)
    met = {p.two: p.source_two for p in mine if not math.isnan(p.won)}
    judges = tuple(judge_numbers(name, found, found) for name, found in by_judge.items())
    return Numbers(panel, judges, _words(mine, texts), prompts, p, len(met), len(set(met.values())), _kappas(by_judge))


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


def judge_numbers(name: str, found: Sequence[Pick], single: Sequence[Pick]) -> Judged:
    """The numbers of a judge, or of the panel.

    Args:
        name: Name of the judge or panel.
        found: Its verdicts.
        single: Verdicts of single judges: a panel's one half may be two judges against each other.
    """
    mine, real = ([p for p in found if p.kind == kind] for kind in ("set", "real"))
    first, scored = [took for p in found for took in p.first], [p.won for p in single if not math.isnan(p.won)]
    return Judged(
        judge=name,
        win_rate=win_rate(mine),
        real=win_rate(real) if real else undefined("no two real conversations of like length", unit="conversation"),
        scored=sum(not math.isnan(p.won) for p in mine),
        asked=len(mine),
        by_position=scored.count(0.5) / len(scored) if scored else math.nan,
        said_first=sum(first) / len(first) if first else math.nan,
        unscored={why: n / len(single) for why, n in Counter(p.unscored for p in single if p.unscored).most_common()},
    )


def _words(mine: Sequence[Pick], texts: Mapping[str, str]) -> WordsBaseline:
    pairs = [("set: " + p.one, "real: " + p.two) for p in mine]
    sources = {
        key: source
        for p, both in zip(mine, pairs, strict=True)
        for key, source in zip(both, (p.source_one, p.source_two), strict=True)
    }
    keys, trained = list(sources), "other sources"
    read, positive = [texts[key] for key in keys], np.array([key.startswith("set: ") for key in keys])
    odds = log_odds(read, positive, np.array(list(sources.values())), each_apart=True)
    if np.isnan(odds).any():
        odds = log_odds(read, positive, np.array(keys))
        trained = "other conversations (too few sources to leave one out)"
    of = dict(zip(keys, odds, strict=True))
    above = np.array([of[other] - of[own] for own, other in pairs])  # [pair], above 0: less like the set than the other
    won = np.where(np.isnan(above), math.nan, 0.5 + np.sign(above) / 2)
    less = win_rate(mine, won - np.array([p.won for p in mine]), signed=True)
    rate = win_rate(mine, won)
    if math.isnan(rate.value):
        rate = undefined("too few conversations to train on", unit=rate.unit)
    return WordsBaseline(
        rate, trained, less, float(np.mean([len(texts[own]) > len(texts[other]) for own, other in pairs]))
    )


def _prompts(mine: Sequence[Pick], texts: Mapping[str, str]) -> tuple[tuple[RatedPrompt, ...], float]:
    items, others = (sorted({getattr(p, side) for p in mine}) for side in ("one", "two"))
    clear = [p for p in mine if p.won < 0.5 or p.won > 0.5]
    found = order(
        np.array([items.index(p.one) for p in clear], dtype=np.intp),
        np.array([others.index(p.two) for p in clear], dtype=np.intp),
        np.array([p.won > 0.5 for p in clear], dtype=bool),
        prompts=len(items),
        real=len(others),
    )
    made = []
    for item, score, error, apart in zip(items, found.scores, found.errors, found.apart, strict=True):
        met = [p for p in mine if p.one == item]
        won, lost = sum(p.won > 0.5 for p in met), sum(p.won < 0.5 for p in met)
        value, low, high = (float(expit(score + k * QUANTILE * error)) for k in (0, -1, 1))
        chance = Estimate(value, low, high, len(met), "pair")
        if math.isnan(score):
            chance = undefined("nothing was decided", n=len(met), unit="pair")
        below = bool(score - found.mean + QUANTILE * apart < 0)
        about = met[0].source_one, texts["set: " + item]
        made.append(RatedPrompt(item, *about, won, lost, len(met) - won - lost, chance, below))
    return tuple(sorted(made, key=lambda p: (math.isnan(p.chance.value), p.chance.value))), found.p


def _kappas(by_judge: Mapping[str, Sequence[Pick]]) -> tuple[tuple[str, str, int, float], ...]:
    decided = {
        judge: {(p.one, p.two): p.won > 0.5 for p in found if p.kind == "set" and p.won in (0, 1)}
        for judge, found in by_judge.items()
    }
    made = []
    for a, b in combinations(decided, 2):
        both = sorted(decided[a].keys() & decided[b].keys())
        verdicts = (np.array([decided[judge][pair] for pair in both], dtype=bool) for judge in (a, b))
        made.append((a, b, len(both), cohen_kappa(*verdicts) if both else math.nan))
    return tuple(made)
