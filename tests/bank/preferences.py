"""Worlds of preference runs: pairs of texts in both orders, and judges that see something of which
is better, or not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from lines import Line, Lines
from scipy import special

from selfprobe.scorers.preference import (
    ORDERS,
    VERDICT,
    Item,
    position_numbers,
    preference_decision,
)
from selfprobe.scorers.summary import summarise
from selfprobe.stats.claim import Claim
from selfprobe.studies.preferences.judged import JudgedPair, JudgedRun, pair_text_baselines
from selfprobe.studies.preferences.study import preference_claim

VOCABULARY = [f"{start}{end}" for start in "bdfglmnprst" for end in ("ama", "elo", "iri", "otu")]
"""Words of about one length, which tell nothing."""

LAYOUTS: dict[str, Callable[[list[str]], str]] = {
    "line breaks": "\n".join,
    "capitals": lambda words: " ".join(word.capitalize() for word in words),
    "commas": ",".join,
    "one word repeated": lambda words: " ".join([words[0]] * len(words)),
    "sorted words": lambda words: " ".join(sorted(words)),
}


@dataclass(frozen=True)
class World:
    """A judge's log-odds of the first place, by what it sees of the better text and by the place."""

    pairs: int = 100
    group_sizes: tuple[int, ...] = ()
    """Numbers of pairs by question; one each without any."""
    knows: float = 0.0
    """Log-odds of the better text."""
    pair_sd: float = 1.5
    """Standard deviation of what else it likes in a pair, which has nothing to do with which is
    better.
    """
    group_sd: float = 0.0
    """The same for a whole question."""
    heavy_tails: bool = False
    first: float = 0.0
    """Log-odds of the first place."""
    step: float = 0.0
    """Step to which stated probabilities are rounded; 0: not at all."""
    ties: float = 0.0
    """Share of pairs to which it is indifferent."""
    unscored: float = 0.0
    hides_misses: float = 0.0
    """Share of the pairs that it would get wrong that have no verdict."""
    scores_alone: bool = False
    """Whether texts are scored alone, on five levels: there is no place."""
    longer_is_better: float = 0.5
    """Share of the pairs whose better text is the longer one."""
    telling_words: float = 0.0
    """Share of the pairs whose better text says a word that no other one says."""
    goes_by_length: float = 0.0
    """Log-odds of the longer text."""
    goes_by_word: float = 0.0
    """Log-odds of the text with the telling word."""
    layout: str = ""
    """Layout of one of the two texts: a key of LAYOUTS."""
    telling_layout: float = 0.5
    """Share of the pairs in which the better text has the layout, and not the other one."""
    goes_by_layout: float = 0.0
    """Log-odds of the text with the layout."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        sizes = self.group_sizes or (1,) * self.pairs
        group_of_pair = np.repeat(np.arange(len(sizes)), sizes)
        count = len(group_of_pair)
        noise = (
            rng.standard_t(3, count) / math.sqrt(3) if self.heavy_tails else rng.normal(size=count)
        )
        liking = self.pair_sd * noise + self.group_sd * rng.normal(size=len(sizes))[group_of_pair]
        is_longer = rng.random(count) < self.longer_is_better
        has_word = rng.random(count) < self.telling_words
        odds_of_better = self.knows + liking + self.goes_by_word * has_word
        odds_of_better = odds_of_better + self.goes_by_length * np.where(is_longer, 1, -1)
        if self.layout:
            better_has_layout = rng.random(count) < self.telling_layout
            odds_of_better += self.goes_by_layout * np.where(better_has_layout, 1, -1)
        odds_of_better[rng.random(count) < self.ties] = 0.0
        labels = rng.integers(1, 3, count)
        decisions = []
        items = []
        judged_pairs: list[JudgedPair] = []
        for number in range(count):
            odds = odds_of_better[number] if labels[number] == 1 else -odds_of_better[number]
            p_first = {
                order: self._rounded(special.expit(way * odds + self.first))
                for order, way in zip(ORDERS, (1, -1), strict=True)
            }
            margin = p_first["shown"] - p_first["swapped"]
            if self.scores_alone:
                margin = float(np.round(2 * odds))
            is_miss = margin * (3 - 2 * labels[number]) < 0
            is_hidden = rng.random() < (self.hides_misses if is_miss else self.unscored)
            label = int(labels[number])
            if not is_hidden:
                better, worse = self._texts(rng, bool(is_longer[number]), bool(has_word[number]))
                if self.layout and better_has_layout[number]:
                    better = LAYOUTS[self.layout](better.split())
                elif self.layout:
                    worse = LAYOUTS[self.layout](worse.split())
                texts = (better, worse) if label == 1 else (worse, better)
                value = 0.5 + float(np.sign(margin)) * (3 - 2 * label) / 2
                judged_pairs.append(
                    JudgedPair(*texts, label == 1, f"q{group_of_pair[number]}", value)
                )
            if is_hidden:
                decision = preference_decision(VERDICT, None, label=label, reason="refusal")
            else:
                decision = preference_decision(VERDICT, margin, label=label)
            group = f"q{group_of_pair[number]}"
            details = {} if self.scores_alone else {"p_first": p_first}
            decisions.append((group, decision))
            items.append(Item({VERDICT: decision}, group, details))
        numbers = summarise(decisions, "accuracy") | position_numbers(items)
        numbers |= {"pairs": float(count), "questions": float(len(sizes))}
        task = "direct_scoring" if self.scores_alone else "pairwise_preference"
        baselines = pair_text_baselines(judged_pairs)
        run = JudgedRun(task, "m", "d", numbers, "log", baselines=baselines)
        return preference_claim(run, "m")

    def _texts(self, rng: np.random.Generator, is_longer: bool, has_word: bool) -> tuple[str, str]:
        """The better text and the other one: words by chance, of the same number or one more."""
        better_words = [VOCABULARY[number] for number in rng.integers(len(VOCABULARY), size=6)]
        worse_words = [VOCABULARY[number] for number in rng.integers(len(VOCABULARY), size=6)]
        (better_words if is_longer else worse_words).append(VOCABULARY[0])
        better_words.append("certainly" if has_word else "sometimes")
        worse_words.append("sometimes")
        return " ".join(better_words), " ".join(worse_words)

    def _rounded(self, p: float) -> float:
        return float(np.round(p / self.step) * self.step) if self.step else float(p)


def world(**settings: object) -> World:
    return World(**settings)  # type: ignore[arg-type]


LINES: Lines = {
    "no preference": Line(world()),
    "no preference, 30 pairs": Line(world(pairs=30)),
    "no preference, 6 pairs": Line(world(pairs=6)),
    "no preference, 300 pairs": Line(world(pairs=300)),
    "no preference, t with 3 df": Line(world(heavy_tails=True)),
    "always the first place": Line(world(first=50.0)),
    "mostly the first place": Line(world(first=3.0)),
    "mostly the first place, stated in steps of .05": Line(world(first=3.0, step=0.05)),
    "indifferent in three of four pairs": Line(world(ties=0.75)),
    "indifferent in all": Line(world(ties=1.0)),
    "stated in steps of .25 (ties)": Line(world(step=0.25)),
    "scores of single texts, five levels (ties)": Line(world(scores_alone=True)),
    "questions of 20, 1, 1 … pairs, alike inside": Line(
        world(group_sizes=(20, *[1] * 40), group_sd=2.0)
    ),
    "12 questions of 8 pairs, alike inside": Line(world(group_sizes=(8,) * 12, group_sd=2.0)),
    "4 questions of 25 pairs, alike inside": Line(world(group_sizes=(25,) * 4, group_sd=2.0)),
    "half of what it gets wrong is refused": Line(world(hides_misses=0.5)),
    "a tenth of what it gets wrong is refused": Line(world(hides_misses=0.1)),
    "a fifth is unscored by chance": Line(world(unscored=0.2, hides_misses=0.2)),
    "takes the longer text, which is the better one in 9 of 10 pairs": Line(
        world(goes_by_length=4.0, longer_is_better=0.9)
    ),
    "takes the longer text, which is the better one in 7 of 10 pairs": Line(
        world(goes_by_length=4.0, longer_is_better=0.7)
    ),
    "goes by a word of the better text": Line(world(goes_by_word=4.0, telling_words=0.9)),
    "goes by a word that half of the better texts say, 300 pairs": Line(
        world(goes_by_word=4.0, telling_words=0.5, pairs=300)
    ),
    "goes by line breaks, in .9 of the better texts": Line(
        world(layout="line breaks", telling_layout=0.9, goes_by_layout=4.0)
    ),
    "goes by line breaks, in .75 of the better texts": Line(
        world(layout="line breaks", telling_layout=0.75, goes_by_layout=4.0)
    ),
    "goes by capitals, in .9 of the better texts": Line(
        world(layout="capitals", telling_layout=0.9, goes_by_layout=4.0)
    ),
    "goes by capitals, in .75 of the better texts": Line(
        world(layout="capitals", telling_layout=0.75, goes_by_layout=4.0)
    ),
    "goes by commas, in .9 of the better texts": Line(
        world(layout="commas", telling_layout=0.9, goes_by_layout=4.0)
    ),
    "goes by commas, in .75 of the better texts": Line(
        world(layout="commas", telling_layout=0.75, goes_by_layout=4.0)
    ),
    "goes by one word repeated, in .9 of the better texts": Line(
        world(layout="one word repeated", telling_layout=0.9, goes_by_layout=4.0)
    ),
    "goes by one word repeated, in .75 of the better texts": Line(
        world(layout="one word repeated", telling_layout=0.75, goes_by_layout=4.0)
    ),
    "goes by sorted words, in .9 of the better texts": Line(
        world(layout="sorted words", telling_layout=0.9, goes_by_layout=4.0)
    ),
    "goes by sorted words, in .75 of the better texts": Line(
        world(layout="sorted words", telling_layout=0.75, goes_by_layout=4.0)
    ),
    "prefers the worse": Line(world(knows=-0.8)),
    "prefers the better, 70 %": Line(world(knows=0.8), True, 0.8),
    "prefers the better, 62 %, 300 pairs": Line(world(knows=0.45, pairs=300), True, 0.8),
    "prefers the better, 79 %, 30 pairs": Line(world(knows=1.2, pairs=30), True, 0.6),
    "prefers the better, 70 %, mostly the first place": Line(
        world(knows=0.8, first=3.0), True, 0.8
    ),
    "prefers the better, 79 %, a tenth unscored": Line(
        world(knows=1.2, unscored=0.1, hides_misses=0.1), True, 0.8
    ),
    "prefers the better, 70 %, length alone gets 80 %": Line(
        world(knows=0.8, longer_is_better=0.8), True, 0.6
    ),
    "prefers the better, 12 questions of 8": Line(
        world(knows=1.2, group_sizes=(8,) * 12, group_sd=0.5), True, 0.6
    ),
}
