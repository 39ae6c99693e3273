"""Worlds of `realism rewrite`: judges who compare rewrites and paraphrases of prompts with their
originals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, skewed
from scipy import special

from selfprobe.stats.claim import Claim
from selfprobe.studies.rewrite import RewriteRates, rewrite_claim, rewrite_rates

FloatArray = npt.NDArray[np.float64]


def rounded(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Noise of which three quarters are exactly 0."""
    return np.where(rng.random(shape) < 0.75, 0.0, 2 * rng.normal(size=shape))


@dataclass(frozen=True)
class World:
    """Prompts by source; how much more real than its original a judge finds a version, in logits."""

    sources: Sequence[int] = (3,) * 12
    """Number of prompts of each source."""
    rewrite: float = 0.0
    """How much more real rewrites look."""
    paraphrase: float = 0.0
    """How much more real paraphrases look."""
    to_grader: float = 0.0
    """How much more real rewrites look to their grader than to judges."""
    by_source: float = 0.0
    """Standard deviation, from source to source, of what a kind of version does there."""
    shared: float = 0.0
    """Standard deviation of what any new wording does in a source, for rewrite and paraphrase
    alike.
    """
    noise: Noise = normal
    """Noise of a version, of variance 1."""
    sensitivities: float = 1.0
    """Ratio of the largest noise of a prompt to the smallest."""
    judges: int = 2
    prefers_position: float = 0.0
    """Share of pairs that a judge decides by position: one half."""
    compared: float = 1.0
    """Share of versions that can be compared."""

    def rates(self, rng: np.random.Generator) -> RewriteRates:
        labels = np.repeat(np.arange(len(self.sources)), self.sources)
        count = len(labels)
        items = [f"p{number}" for number in range(count)]
        spread = self.sensitivities ** rng.random(count)
        any_wording = self.shared * self.noise(rng, (len(self.sources),))[labels]
        judged = {}
        graded = {}
        for arm, added in (("rewrite", self.rewrite), ("paraphrase", self.paraphrase)):
            in_source = self.by_source * self.noise(rng, (len(self.sources),))[labels]
            logits = added + any_wording + in_source + spread * self.noise(rng, (count,))
            is_compared = rng.random(count) < self.compared
            judged[arm] = self._outcomes(rng, items, logits, is_compared, self.judges)
            grader_logits = logits + (self.to_grader if arm == "rewrite" else 0.0)
            graded[arm] = self._outcomes(rng, items, grader_logits, is_compared, 1)
        source_of_item = {item: f"s{label}" for item, label in zip(items, labels, strict=True)}
        compared = len(judged["rewrite"])
        return rewrite_rates(judged, graded, source_of_item, compared=compared, rewrites=count)

    def _outcomes(
        self,
        rng: np.random.Generator,
        items: list[str],
        logits: FloatArray,
        is_compared: npt.NDArray[np.bool_],
        judges: int,
    ) -> dict[str, float]:
        chances = special.expit(logits)
        verdicts = (rng.random((judges, len(items))) < chances).astype(float)
        verdicts[rng.random(verdicts.shape) < self.prefers_position] = 0.5
        means = verdicts.mean(axis=0)
        return {
            item: float(mean)
            for item, mean, is_kept in zip(items, means, is_compared, strict=True)
            if is_kept
        }

    def __call__(self, rng: np.random.Generator) -> Claim:
        return rewrite_claim(self.rates(rng), "w", judges=self.judges)


LINES: Lines = {
    "rewrites look as real as originals and paraphrases": Line(World()),
    "any new wording looks more real": Line(World(rewrite=1.0, paraphrase=1.0)),
    "any new wording looks more real, t with 3 degrees": Line(
        World(rewrite=1.0, paraphrase=1.0, noise=heavy_tailed)
    ),
    "any new wording looks more real, exponential": Line(
        World(rewrite=1.0, paraphrase=1.0, noise=skewed)
    ),
    "any new wording looks more real, three quarters exactly 0": Line(
        World(rewrite=1.0, paraphrase=1.0, noise=rounded)
    ),
    "any new wording looks more real, prompts differ 1 : 6": Line(
        World(rewrite=1.0, paraphrase=1.0, sensitivities=6)
    ),
    "3 sources × 4 with shared shocks": Line(
        World((4,) * 3, rewrite=1.0, paraphrase=1.0, by_source=1.0)
    ),
    "6 sources × 10 with shocks": Line(
        World((10,) * 6, rewrite=1.0, paraphrase=1.0, by_source=1.0)
    ),
    "12 sources × 3 with shocks": Line(World(rewrite=1.0, paraphrase=1.0, by_source=1.0)),
    "8 unequal sources (1 to 20) with shocks": Line(
        World((20, 12, 8, 5, 3, 2, 1, 1), rewrite=1.0, paraphrase=1.0, by_source=1.0)
    ),
    "any new wording moves a source's prompts alike": Line(
        World(rewrite=1.0, paraphrase=1.0, shared=1.0)
    ),
    "prompts of one source": Line(World((40,), rewrite=1.0, paraphrase=1.0)),
    "paraphrases look fake, rewrites as real as originals": Line(World(paraphrase=-1.5)),
    "rewrites look less fake than paraphrases, and fake": Line(
        World(rewrite=-0.5, paraphrase=-2.0)
    ),
    "the grader alone is pleased": Line(World(to_grader=2.0)),
    "judges go by position in 80 % of pairs (ties)": Line(
        World(rewrite=1.0, paraphrase=1.0, prefers_position=0.8)
    ),
    "a ceiling: all new wording passes": Line(World(rewrite=5.0, paraphrase=5.0)),
    "a third of the rewrites keeps the task": Line(World(rewrite=2.0, compared=0.33)),
    "rewrites look more real by 2 logits, 12 sources × 3": Line(World(rewrite=2.0), True, 0.7),
    "rewrites look more real by 2 logits, 8 sources × 3": Line(
        World((3,) * 8, rewrite=2.0), True, 0.5
    ),
    "rewrites look more real by 1 logit, 40 sources": Line(
        World((1,) * 40, rewrite=1.0), True, 0.3
    ),
    "rewrites look more real by 2 logits, paraphrases by 1, 40 sources": Line(
        World((1,) * 40, rewrite=2.0, paraphrase=1.0), True, 0.2
    ),
}
