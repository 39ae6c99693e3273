"""Worlds of `awareness features`: features that a subject names, by prompt, label and source."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from lines import Line, Lines

from selfprobe.stats.claim import Claim
from selfprobe.stats.clustered import resampling_units
from selfprobe.studies.features import feature_claim, feature_subject

FloatArray = npt.NDArray[np.float64]
LABELS = np.array(["deployment", "evaluation"])


def world(
    sources: list[tuple[int, int]],
    *,
    features: int = 8,
    chance: float = 0.2,
    source_spread: float = 0.0,
    label_spread: float = 0.0,
    more_on_tests: float = 0.0,
    is_any_alone: bool = False,
) -> Callable[[np.random.Generator], Claim]:
    """Prompts of sources, and whether the subject names a feature about them.

    Args:
        sources: Numbers of evaluations and of real use of each source.
        features: Number of features.
        chance: Share of prompts about which a feature is named.
        source_spread: Standard deviation of that share over sources, in log-odds.
        label_spread: Standard deviation of that share over a source's evaluations, and over its
            real use, in log-odds.
        more_on_tests: What is added to the share of the first feature on evaluations.
        is_any_alone: Whether a prompt has one feature at most.
    """
    labels = np.concatenate([np.repeat([1, 0], pair) for pair in sources])
    owners = np.repeat(np.arange(len(sources)), [sum(pair) for pair in sources])

    def claim(rng: np.random.Generator) -> Claim:
        odds = np.full((len(labels), features), np.log(chance / (1 - chance)))
        odds += source_spread * rng.normal(size=(len(sources), features))[owners]
        odds += label_spread * rng.normal(size=(len(sources), 2, features))[owners, labels]
        shares = 1 / (1 + np.exp(-odds))
        shares[:, 0] = np.minimum(shares[:, 0] + more_on_tests * labels, 1)
        has = rng.random(shares.shape) < shares
        if is_any_alone:
            has &= np.cumsum(has, axis=1) == 1
        kept = has.any(axis=0)
        words = [str(label) for label in LABELS[labels]]
        items = [f"i{k}" for k in range(len(labels))]
        clusters, unit = resampling_units([f"o{owner}" for owner in owners], items, words)
        names = [f"f{k}" for k in np.flatnonzero(kept)]
        subject = feature_subject("m", has[:, kept], names, words, clusters, unit, rng=rng)
        return feature_claim(subject, "m")

    return claim


BOTH = [(4, 4)] * 12
SINGLE = [(1, 0), (0, 1)] * 30
UNEQUAL = [(20, 20), (12, 12), (8, 8), (5, 5), (3, 3), (2, 2), (1, 1), (1, 1)]
LINES: Lines = {
    "no difference: 12 sources of both labels, 8 features": Line(world(BOTH)),
    "no difference: 60 prompts without sources, 8 features": Line(world(SINGLE)),
    "no difference: 60 prompts, 30 features": Line(world(SINGLE, features=30)),
    "no difference: 60 prompts, rare features": Line(world(SINGLE, chance=0.03)),
    "no difference: 60 prompts, nearly every feature everywhere": Line(world(SINGLE, chance=0.95)),
    "no difference: a prompt has one feature": Line(world(BOTH, is_any_alone=True)),
    "no difference: 3 sources × 8 with shocks": Line(
        world([(4, 4)] * 3, source_spread=2, label_spread=2)
    ),
    "no difference: 12 sources × 8 with shocks of both labels": Line(world(BOTH, source_spread=2)),
    "no difference: 12 sources × 8, labels differ by source": Line(world(BOTH, label_spread=1.5)),
    "no difference: 12 sources of one label each, shocks": Line(
        world([(8, 0), (0, 8)] * 6, source_spread=2)
    ),
    "no difference: 8 unequal sources (1 to 20), shocks": Line(
        world(UNEQUAL, source_spread=1, label_spread=1)
    ),
    "no difference: 12 sources of 1 evaluation and 6 real use": Line(world([(1, 6)] * 12)),
    "no difference: 12 sources of 6 evaluations and 1 real use": Line(world([(6, 1)] * 12)),
    "no difference: 12 sources of 6 and 1, labels differ by source": Line(
        world([(6, 1)] * 12, label_spread=1)
    ),
    "no difference: 6 sources of 20 evaluations, 6 of 1 real use": Line(
        world([(20, 0), (0, 1)] * 6)
    ),
    "one label alone": Line(world([(8, 0)] * 8, more_on_tests=0.5)),
    "named less on evaluations": Line(world(BOTH, features=1, chance=0.6, more_on_tests=-0.4)),
    "one of 8 features is named in 40 points more evaluations, 12 sources": Line(
        world(BOTH, more_on_tests=0.4), True, 0.8
    ),
    "one of 8 features in 40 points more, 60 prompts without sources": Line(
        world(SINGLE, more_on_tests=0.4), True, 0.6
    ),
    "one of 8 features in 10 points more, 12 sources": Line(world(BOTH, more_on_tests=0.1), True),
}
