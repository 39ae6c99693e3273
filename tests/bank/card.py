"""Worlds of `selfprobe realism card`: prompts of a set beside real conversations, and judges that
take one for real.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from lines import Line, Lines
from scipy import special

from selfprobe.scorers.realism_choice import Pick, win_rate
from selfprobe.stats.claim import Claim
from selfprobe.studies.card_claims import card_claim
from selfprobe.studies.card_numbers import (
    CardNumbers,
    WordsBaseline,
    beyond_rule,
    highest_win_rate,
    judge_numbers,
    length_baseline,
    less_panel,
)
from selfprobe.study.realism_verdicts import panel_of

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Judges that prefer what looks real to them; `telling` is what they see of the truth."""

    prompts: int = 40
    real: int = 40
    opponents: int = 4
    judges: int = 1
    telling: float = 0.0
    """Log-odds by which a real conversation looks more real than a prompt of the set."""
    prompt_sd: float = 0.0
    real_sd: float = 0.0
    """Standard deviation, in log-odds, of how real a conversation looks, whatever it is."""
    shape: Literal["normal", "t3", "exponential"] = "normal"
    prompt_sources: tuple[int, ...] = ()
    """Numbers of prompts by source; one source each without any."""
    real_sources: int = 0
    """Number of sources of the real conversations, each with a shock of `real_sd`; 0: each has its
    own.
    """
    first: float = 0.0
    """Log-odds of the first place."""
    by_length: float = 0.0
    """Log-odds of the shorter one."""
    longer: float = 0.5
    """Share of pairs in which the set's prompt is the longer one."""
    unscored: float = 0.0
    """Share of pairs without a verdict."""
    hides_wins: float = 0.0
    """Share of the pairs that the set wins that have no verdict."""
    opposed: bool = False
    """Whether a second judge says the reverse of the first."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        drawn_prompts = np.repeat(np.arange(self.prompts), self.opponents)
        drawn_real = rng.permutation(np.resize(np.arange(self.real), len(drawn_prompts)))
        # Nobody is asked twice about one pair.
        pair_codes = np.unique(drawn_prompts * self.real + drawn_real)
        prompt_of_pair, real_of_pair = np.divmod(pair_codes, self.real)
        pairs = len(pair_codes)
        prompt_source = self._sources(self.prompt_sources, self.prompts)
        real_source = np.arange(self.real) % (self.real_sources or self.real)
        prompt_look = self.prompt_sd * self._noise(rng, prompt_source.max() + 1)[prompt_source]
        real_look = self.real_sd * self._noise(rng, real_source.max() + 1)[real_source]
        is_longer = rng.random(pairs) < self.longer
        look = prompt_look[prompt_of_pair] - real_look[real_of_pair] - self.telling
        look = look - self.by_length * (2 * is_longer - 1)
        picks = {}
        for judge in range(self.judges):
            first_order = rng.random(pairs) < special.expit(look + self.first)
            second_order = rng.random(pairs) < special.expit(look - self.first)
            outcomes = (first_order.astype(float) + second_order) / 2
            if self.opposed and judge:
                outcomes = 1 - np.array([pick.outcome for pick in picks["judge 0"]])
            hidden = rng.random(pairs) < np.where(outcomes == 1, self.hides_wins, self.unscored)
            outcomes[hidden] = math.nan
            picks[f"judge {judge}"] = [
                Pick(
                    kind="set",
                    first_id=f"a{prompt}",
                    second_id=f"b{number}",
                    first_source=f"s{prompt_source[prompt]}",
                    second_source=f"r{real_source[number]}",
                    outcome=float(won),
                    first_place_choices=(),
                    unscored="refusal" if math.isnan(won) else None,
                )
                for prompt, number, won in zip(prompt_of_pair, real_of_pair, outcomes, strict=True)
            ]
        return card_claim(self._numbers(rng, picks, is_longer), "the panel")

    def _noise(self, rng: np.random.Generator, count: int) -> FloatArray:
        if self.shape == "t3":
            return np.asarray(rng.standard_t(3, count) / math.sqrt(3))
        if self.shape == "exponential":
            return np.asarray(rng.exponential(size=count) - math.log(2))  # of median 0
        return np.asarray(rng.normal(size=count))

    @staticmethod
    def _sources(sizes: tuple[int, ...], count: int) -> npt.NDArray[np.intp]:
        return np.repeat(np.arange(len(sizes)), sizes) if sizes else np.arange(count)

    def _numbers(
        self,
        rng: np.random.Generator,
        picks: dict[str, list[Pick]],
        is_longer: npt.NDArray[np.bool_],
    ) -> CardNumbers:
        """The numbers that the claim needs; each pair has texts of its own, so that its lengths are
        as drawn.
        """
        panel = panel_of(picks)
        texts = {}
        for number, pick in enumerate(panel):
            texts[f"set: {pick.first_id}/{number}"] = "x" * (12 if is_longer[number] else 10)
            texts[f"real: {pick.second_id}/{number}"] = "x" * (10 if is_longer[number] else 12)
        of_texts = [
            Pick(
                pick.kind,
                f"{pick.first_id}/{number}",
                f"{pick.second_id}/{number}",
                pick.first_source,
                pick.second_source,
                pick.outcome,
                pick.first_place_choices,
                pick.unscored,
            )
            for number, pick in enumerate(panel)
        ]
        scored = {
            pick.second_id: pick.second_source for pick in panel if not math.isnan(pick.outcome)
        }
        single = [pick for own in picks.values() for pick in own]
        coin = rng.integers(2, size=len(panel)).astype(float)
        words = WordsBaseline(
            win_rate(panel, coin),
            "nothing",
            less_panel(panel, coin),
            beyond_rule(panel, coin - 0.5),
        )
        return CardNumbers(
            panel=judge_numbers("panel", panel, single),
            judges=tuple(judge_numbers(name, own, own) for name, own in picks.items()),
            worst_case=highest_win_rate(panel),
            words=words,
            length=length_baseline(of_texts, texts),
            prompts=(),
            order_p=math.nan,
            real_count=len(scored),
            real_sources=len(set(scored.values())),
            kappas=(),
        )


def world(**settings: object) -> World:
    return World(**settings)  # type: ignore[arg-type]


LINES: Lines = {
    "a coin": Line(world()),
    "a constant judge: always the first place": Line(world(first=50.0)),
    "a judge by position in most pairs": Line(world(first=3.0)),
    "a coin, 8 prompts": Line(world(prompts=8, opponents=4, real=24)),
    "a coin, 200 prompts × 4": Line(world(prompts=200, real=200)),
    "prompts differ by 1.5 logits, real ones too": Line(world(prompt_sd=1.5, real_sd=1.5)),
    "prompts differ, t with 3 df": Line(world(prompt_sd=1.5, real_sd=1.5, shape="t3")),
    "prompts differ, exponential": Line(world(prompt_sd=1.5, real_sd=1.5, shape="exponential")),
    "12 real conversations that differ": Line(world(real=12, real_sd=1.5)),
    "4 sources of real conversations that share shocks": Line(world(real_sources=4, real_sd=1.0)),
    "8 sources of real conversations that share shocks": Line(world(real_sources=8, real_sd=1.0)),
    "sources of prompts of size 20, 1, 1 …": Line(
        world(prompt_sources=(20, *[1] * 20), prompt_sd=1.0)
    ),
    "three sources of prompts with shocks": Line(world(prompt_sources=(14, 13, 13), prompt_sd=1.0)),
    "half of the pairs are ties": Line(world(unscored=0.5, hides_wins=0.5)),
    "60 % of the pairs that the set wins are refused": Line(world(hides_wins=0.6)),
    "two judges, one the reverse of the other": Line(world(judges=2, opposed=True, telling=1.0)),
    "a judge by length, lengths alike": Line(world(by_length=2.0)),
    "a judge by length, the prompts longer in 9 of 10 pairs": Line(
        world(by_length=2.0, longer=0.9)
    ),
    "a judge by length alone, the prompts longer in 7 of 10": Line(
        world(by_length=50.0, longer=0.7)
    ),
    "6 real conversations, told by 1 logit": Line(world(real=6, telling=1.0)),
    "taken for real more often than real use": Line(world(telling=-1.0)),
    "told by .5 logits, 40 prompts": Line(world(telling=0.5), True, 0.6),
    "told by 1 logit, 40 prompts": Line(world(telling=1.0), True, 0.9),
    "told by 1 logit, prompts and real ones differ by 1": Line(
        world(telling=1.0, prompt_sd=1.0, real_sd=1.0), True, 0.8
    ),
    "told by 1 logit, by position in most pairs": Line(world(telling=1.0, first=2.0), True, 0.8),
    "told by 1 logit, a tenth unscored": Line(
        world(telling=1.0, unscored=0.1, hides_wins=0.1), True, 0.8
    ),
    "told by 1 logit, 8 prompts": Line(world(prompts=8, real=24, telling=1.0), True),
}
