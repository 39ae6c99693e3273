"""How often the verdict names a model that has no access, and how often it names one that has.

    python bench/verdict.py                                 # 200 matrices a line, 400 items
    python bench/verdict.py --matrices 1000 --items 100     # other sizes
    python bench/verdict.py --models 11                     # of the lines that can have any number
    python bench/verdict.py --only "strong" --smoke         # some lines; that it runs

Scores are drawn, no model runs. Without access a cell is F(skill of the observer, predictability of the target): F is
their product, logistic, complementary log-log, or the product where all observers know the same easy items. Words are
drawn for constants and habits. A line prints the share of matrices that are "supported" (of a null: falsely), that
name a model without access, and the share of each other verdict.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from selfprobe.matrix.advantage import double_centre, observers_permuted, total_of
from selfprobe.matrix.habit import Specific, item_specific
from selfprobe.matrix.rows import rows_of
from selfprobe.matrix.table import Matrix
from selfprobe.matrix.verdict import Verdict, verdict
from selfprobe.measure import Measure
from selfprobe.stats.estimate import FloatArray, holm, mode_baseline

FORMS = ("product", "logistic", "cloglog", "easy share")
Draw = Callable[[np.random.Generator, int], tuple[FloatArray, Specific, dict[str, FloatArray]]]
"""From a generator and a number of items to the scores, what is item-specific of them, and the baselines' hits."""


@dataclass(frozen=True)
class Line:
    """One truth."""

    name: str
    draw: Draw
    knows: frozenset[int] = frozenset()
    """The models with access."""


def scores(form: str, skill: FloatArray, easy: FloatArray, access: FloatArray, items: int, rng: np.random.Generator):
    """Right or wrong [target, observer, item] by skill and predictability in (0, 1) and own access."""
    s, e = skill[None, :, None], easy[:, None, None]
    size = len(skill)
    luck = rng.random((size, size, items))
    if form == "easy share":
        right = (rng.random(items) < s) & (luck < e)
    elif form == "product":
        right = luck < s * e
    else:
        latent = special.logit(skill)[None, :, None] + special.logit(easy)[:, None, None]
        right = luck < (special.expit(latent) if form == "logistic" else 1 - np.exp(-np.exp(latent - 0.5)))
    own = np.arange(size)
    right[own, own] |= rng.random((size, items)) < access[:, None]
    return right.astype(float)


def drawn(form: str, skill: list[float], easy: list[float], access: dict[int, float] | None = None) -> Draw:
    """Scores without habits."""
    own = np.array([(access or {}).get(i, 0.0) for i in range(len(skill))])

    def draw(rng: np.random.Generator, items: int):
        x = scores(form, np.array(skill), np.array(easy), own, items, rng)
        return x, Specific(x, np.full(x.shape[:2], np.nan), ""), {}

    return draw


def twins(size: int) -> Draw:
    """Look-alike pairs of unequal skill: each predicts its twin as well as itself."""

    def draw(rng: np.random.Generator, items: int):
        pair = np.arange(size) // 2
        latent = rng.normal(0, 0.8, size)[None, :] + rng.normal(0, 0.8, size)[:, None]
        p = special.expit(latent + 1.5 * (pair[:, None] == pair))
        x = (rng.random((size, size, items)) < p[:, :, None]).astype(float)
        return x, Specific(x, np.full(x.shape[:2], np.nan), ""), {}

    return draw


def worded(habit: list[float], access: dict[int, float], constant: bool = False) -> Draw:
    """Words: a model says its commonest word with a chance of `habit`; it predicts that word, or with access the word.

    A `constant` model always predicts it; another one in as many cases as it says it.
    """

    def draw(rng: np.random.Generator, items: int):
        size = len(habit)
        common = rng.random((size, items)) < np.array(habit)[:, None]
        truth = np.where(common, np.arange(size)[:, None], 100 + rng.integers(0, 400, (size, items)))
        usual = np.ones((size, items), bool) if constant else rng.random((size, items)) < np.array(habit)[:, None]
        guess = np.where(usual, np.arange(size)[:, None], 100 + rng.integers(0, 400, (size, items)))
        knows = rng.random((size, items)) < np.array([access.get(i, 0.0) for i in range(size)])[:, None]
        said = np.where(knows, truth, guess)
        x = (said[None] == truth[:, None]).astype(float)
        return x, _specific(x, said, truth), {"mode": np.stack([mode_baseline(row) for row in truth])}

    return draw


def _specific(x: FloatArray, said: FloatArray, truth: FloatArray) -> Specific:
    size, _, items = x.shape
    models, names = [f"m{i:02}" for i in range(size)], [f"q{i:04}" for i in range(items)]
    t, o, i = (axis.ravel() for axis in np.indices(x.shape))
    rows = pd.DataFrame({"target": np.array(models)[t], "observer": np.array(models)[o], "item": np.array(names)[i]})
    rows = rows.assign(key="k1", value=x.ravel(), truth=truth[t, i].astype(str), said=said[o, i].astype(str))
    measure = Measure(alone=lambda given: 1, tokens=(1, 1), acts=("answer",))
    return item_specific(rows, Matrix("words", models, names, x, {}), measure)


def judged(
    x: FloatArray, specific: Specific, hits: dict[str, FloatArray], rng: np.random.Generator, names: list[str]
) -> Verdict:
    """The verdict of one matrix, alone in its report."""
    rows = rows_of(names, x, specific, hits, tests=len(names), rng=rng)
    return verdict(
        rows,
        p_holm=holm([row.p for row in rows]).tolist(),
        total=total_of(specific.scores),
        permutation=observers_permuted(double_centre(specific.scores.mean(axis=2)), rng=rng),
        means=x.mean(axis=2),
    )


def lines(size: int) -> Iterator[Line]:
    """The truths: nulls first. Those that name no number of models have `size`."""
    graded = np.linspace(0.4, 0.8, size).tolist()
    for form in FORMS:
        yield Line(f"null, {form}: one strong", drawn(form, [0.9] + [0.3] * (size - 1), [0.8] + [0.3] * (size - 1)))
        yield Line(f"null, {form}: three models", drawn(form, [0.9, 0.6, 0.4], [0.8, 0.6, 0.4]))
        yield Line(f"null, {form}: graded", drawn(form, graded, graded))
        yield Line(f"null, {form}: anti-correlated", drawn(form, graded, graded[::-1]))
    yield Line("null, twins", twins(size + size % 2))
    yield Line("null, words: constants", worded([0.6, 0.5, 0.4, 0.3, 0.3][:size] + [0.3] * (size - 5), {}, True))
    yield Line("null, words: habits", worded([0.7, 0.6, 0.5, 0.4, 0.3][:size] + [0.3] * (size - 5), {}))
    for form in FORMS[:2]:
        pair = {1: 0.4, 3: 0.4}
        all_ = dict.fromkeys(range(size), 0.2)
        weakest, middle = {0: 0.5}, {size // 2: 0.4}
        yield Line(f"access .4 of two, equals, {form}", drawn(form, [0.6] * size, [0.6] * size, pair), frozenset(pair))
        yield Line(f"access .4 of two, graded, {form}", drawn(form, graded, graded, pair), frozenset(pair))
        yield Line(f"access .2 of all, graded, {form}", drawn(form, graded, graded, all_), frozenset(all_))
        yield Line(f"access .5 of the weakest, {form}", drawn(form, graded, graded, weakest), frozenset(weakest))
        yield Line(f"access .4 of a middle one, {form}", drawn(form, graded, graded, middle), frozenset(middle))
    yield Line("words: access .4 of two, habits .3", worded([0.3] * size, {1: 0.4, 3: 0.4}), frozenset({1, 3}))
    yield Line("words: one knower, constants", worded([0.3] * size, {2: 0.8}, True), frozenset({2}))


def rates(line: Line, matrices: int, items: int, seed: int = 0) -> tuple[Counter[str], int]:
    """How often each verdict comes, and how many matrices name a model without access."""
    kinds: Counter[str] = Counter()
    wrong = 0
    for number in range(matrices):
        rng = np.random.default_rng([seed, number])
        x, specific, hits = line.draw(rng, items)
        names = [str(i) for i in range(len(x))]
        said = judged(x, specific, hits, rng, names)
        kinds[said.kind] += 1
        wrong += bool({int(name) for name in said.models} - line.knows)
        if sys.stderr.isatty():
            print(f"\r{line.name}: {number + 1} of {matrices}", end="\r", file=sys.stderr, flush=True)
    return kinds, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrices", type=int, default=200, help="a line")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--models", type=int, default=5, help="five or more; lines of three models keep three")
    parser.add_argument("--only", default="", help="the lines whose name holds this")
    parser.add_argument("--smoke", action="store_true", help="two matrices of 50 items a line")
    given = parser.parse_args()
    if given.models < 5:
        parser.error("--models must be 5 or more")
    count, items = (2, 50) if given.smoke else (given.matrices, given.items)
    kinds = ("supported", "not told apart", "not supported", "underpowered")
    print(f"{count} matrices a line, {given.models} models, {items} items; shares of matrices")
    print(f"{'':44}" + "".join(f"{kind:>16}" for kind in (*kinds, "names wrongly")))
    for line in lines(given.models):
        if given.only in line.name:
            found, wrong = rates(line, count, items)
            shares = [found[kind] / count for kind in kinds] + [wrong / count]
            print(f"{line.name:44}" + "".join(f"{share:16.3f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
