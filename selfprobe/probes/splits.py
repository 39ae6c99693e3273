"""FitSettings of an evaluation, its presets, and the random halves (paper 004, §4.4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfprobe.data.pairs import Pair
from selfprobe.probes.fit import IntArray, Orders, parse_orientation


@dataclass(frozen=True)
class FitSettings:
    """How probes are fitted and tested; the defaults are the preset "strict"."""

    name: str = "strict"
    grouped: bool = True
    """Keep all pairs of a question on one side of the split."""
    orders: Orders = "both"
    """Whether pairs are fitted and scored from both orders, which removes position, or from the first alone."""
    centre: Literal["train", "all"] = "train"
    """Pairs over which the means are taken; "all" leaks the test half."""
    layer: Literal["train", "last"] = "train"
    """Whether the layer is chosen on the training half, or is the last block."""
    orientation: str = "few:32"
    """Sign of the principal component: few:K labelled training pairs, logit (the model's own answers on the training
    half), none (both signs reported), oracle (the better one on the test half: leaks)."""
    c: float | None = None
    """Inverse regularisation; None: chosen inside the training half."""
    balanced: bool = False
    """Whether both labels weigh the same in the supervised fit, however often each occurs."""
    train: float = 0.5
    """Size of the training half: below 1 a share of the pairs, else their number (§5.2: 5,000); all others test.
    Aspects that are fitted apart divide it between them."""
    aspects: Literal["together", "apart"] = "together"
    """Whether data with several aspects (SummEval, NEWSROOM, HANNA) get one probe for all, or one for each; a number is
    then the mean over aspects, for every method. The paper is silent; its public code fits and averages them apart."""
    prompts: Literal["paper", "conversations"] = "paper"
    """Form of LLMBar and MT-Bench: the paper's with the question in a line of its own, or whole conversations,
    unchanged (MT-Bench then without judges who are authors, as in the public code)."""
    seeds: int = 5
    """Number of random halves; numbers are means over them."""
    folds: int = 4
    """Number of folds inside the training half."""
    resamples: int = 500
    """Number of bootstrap resamples per interval. A curve over layers takes a fifth of them (but 100), shuffled labels
    two fifths, an ablation four times as many."""

    def __post_init__(self) -> None:
        parse_orientation(self.orientation)
        if self.seeds < 1 or self.folds < 2:
            raise ValueError(f"expected seeds >= 1 and folds >= 2, got {self.seeds} and {self.folds}")
        if not 0 < self.train < 1 and (self.train < 1 or self.train != int(self.train)):
            raise ValueError(f"train must be a share in (0, 1) or a whole number of pairs, got {self.train}")
        if self.resamples < 100:
            raise ValueError(f"expected resamples >= 100, got {self.resamples}")

    @property
    def leaks(self) -> bool:
        """Whether test labels or states of the test half reach the fit."""
        return self.orientation == "oracle" or self.centre == "all" or not self.grouped


PRESETS: Mapping[str, FitSettings] = {
    "strict": FitSettings(),
    "paper": FitSettings(
        "paper", grouped=False, orders="first", layer="last", orientation="none", c=1.0, aspects="apart"
    ),
    "released-code": FitSettings(
        "released-code",
        grouped=False,
        orders="first",
        centre="all",
        layer="last",
        orientation="oracle",
        c=1.0,
        balanced=True,
        train=0.7,
        aspects="apart",
        prompts="conversations",
    ),
}
"""strict: everything above. paper: §4.4 to the letter (random halves, one order, last layer, an unsigned component,
σ(wᵀx) without a constant; the paper does not state the regularisation: scikit-learn's, nor how it treats aspects: each
has its probe, as in the code). released-code: what maiush/LP-as-a-Judge does besides: 70 % train, balanced weights,
means over both parts, the sign that is better on the test labels, and MT-Bench's whole conversations without judges who
are authors; its wording is not taken over, as it has no licence. Only strict is an honest measurement."""


def halves(
    groups: npt.NDArray[Any],
    seed: int,
    *,
    grouped: bool = True,
    train_from: npt.NDArray[np.bool_] | None = None,
    train: float = 0.5,
) -> tuple[IntArray, IntArray]:
    """Rows of the training and the test half.

    Groups are drawn at random until the training half has `train` of the pairs, a share or a number. `train_from`
    restricts it to half of those rows (LLMBar: natural pairs); all others are test pairs, except those whose question
    is in the training half.
    """
    size = len(groups)
    eligible = np.ones(size, dtype=bool) if train_from is None else train_from
    rng = np.random.default_rng([seed, 4])
    names = np.unique(groups) if grouped else np.arange(size)
    of = np.searchsorted(names, groups) if grouped else np.arange(size)
    counts = np.bincount(of[eligible], minlength=len(names))
    order = rng.permutation(len(names))
    before = np.cumsum(counts[order]) - counts[order]
    chosen = np.zeros(len(names), dtype=bool)
    share = 0.5 if train_from is not None else train
    chosen[order[before < (eligible.sum() * share if share < 1 else share)]] = True
    chosen &= counts > 0
    learnt = chosen[of] & eligible
    test = ~chosen[of] if grouped else ~learnt
    return np.flatnonzero(learnt), np.flatnonzero(test)


def questions(pairs: Iterable[Pair]) -> set[str]:
    """Groups of `pairs`, and their questions, which have other names elsewhere: all that a probe of them has seen."""
    return {name for pair in pairs for name in (pair.group, pair.asked)}


def held_out(seen: Iterable[str], pairs: Iterable[Pair]) -> list[bool]:
    """Whether per pair neither its group nor its question is in `seen`, which `questions` made."""
    names = set(seen)
    return [names.isdisjoint((pair.group, pair.asked)) for pair in pairs]
