"""Drawn matrices of which it is known who has access to itself: what bench/verdict.py counts verdicts over.

Without access a cell is F(skill of the observer, predictability of the target). F is their product, logistic,
complementary log-log, or the product where all observers know the same easy items. Words are drawn for habits: a model
has a commonest word, of all items or of each kind of item, says it in some share of them and predicts it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from scipy import special

from selfprobe.matrix.habit import ALL, Specific, groups, item_specific
from selfprobe.matrix.rows import INFORMED
from selfprobe.matrix.table import Matrix
from selfprobe.measure import Measure
from selfprobe.stats.estimate import mode_baseline
from selfprobe.stats.spread import FloatArray

FORMS = ("product", "logistic", "cloglog", "easy share")
FIRST_WORDS = ("what", "how", "why", "who", "when")
WORDS = 400
"""From which a model says another word than its commonest."""
KNOWN = 0.77
"""Of a model that learners are shown examples of: what it gets on itself."""
Drawn = tuple[FloatArray, Specific, dict[str, FloatArray]]
Draw = Callable[[np.random.Generator, int], Drawn]
"""From a generator and a number of items to the scores, what is item-specific of them, and the baselines' hits."""
Group = Literal["null", "access", "learner", "open"]


@dataclass(frozen=True)
class Line:
    """One truth."""

    name: str
    draw: Draw
    group: Group
    """A null that the verdict must pass; access; an informed observer's; or a null that it does not claim to pass."""
    knows: frozenset[int] = frozenset()
    """The models with access."""


def lines(size: int) -> Iterator[Line]:
    """The truths of `size` models."""
    yield from _nulls(size)
    yield from _accesses(size)
    for share in (0, 50, 80, 90, 95, 100):
        yield Line(f"learner: {share} % of what the model knows", partial(learner, size, share / 100), "learner")
    yield Line("open, twins and a loner", partial(blocks, _pairs_and_a_loner(size)), "open")
    yield Line("open, words: habits by a kind unseen", worded(_habits(size), {}, kinds="unseen"), "open")


def _nulls(size: int) -> Iterator[Line]:
    graded = np.linspace(0.4, 0.8, size).tolist()
    steep = np.geomspace(0.9, 0.4, size).tolist()
    habits = _habits(size)
    strong = [0.9] + [0.3] * (size - 1), [0.8] + [0.3] * (size - 1)
    for form in FORMS:
        yield Line(f"null, {form}: graded", drawn(form, graded, graded), "null")
        yield Line(f"null, {form}: steep", drawn(form, steep, (np.array(steep) * 8 / 9).tolist()), "null")
        yield Line(f"null, {form}: strong among weak", drawn(form, *strong), "null")
        yield Line(f"null, {form}: anti-correlated", drawn(form, graded, graded[::-1]), "null")
    yield Line("null, blocks of twins", partial(blocks, np.minimum(np.arange(size) // 2, size // 2 - 1)), "null")
    yield Line("null, words: constants", worded(habits, {}, constant=True), "null")
    yield Line("null, words: habits", worded(habits, {}), "null")
    yield Line("null, words: habits by kind", worded(habits, {}, kinds="column"), "null")
    yield Line("null, words: constants by kind", worded(habits, {}, constant=True, kinds="column"), "null")
    yield Line("null, words: habits by first word", worded(habits, {}, kinds="first word"), "null")


def _accesses(size: int) -> Iterator[Line]:
    graded, equal = np.linspace(0.4, 0.8, size).tolist(), [0.6] * size
    two = frozenset({1, min(3, size - 1)})
    pair, all_ = dict.fromkeys(two, 0.4), dict.fromkeys(range(size), 0.2)
    weakest, middle = {0: 0.5}, {size // 2: 0.4}
    for form in FORMS[:2]:
        for name, easy, access in (
            ("access .4 of two, equals", equal, pair),
            ("access .4 of two, graded", graded, pair),
            ("access .2 of all, graded", graded, all_),
            ("access .5 of the weakest", graded, weakest),
            ("access .4 of a middle one", graded, middle),
        ):
            yield Line(f"{name}, {form}", drawn(form, easy, easy, access), "access", frozenset(access))
    room = drawn("logistic", graded, np.linspace(0.3, 0.6, size).tolist(), all_)
    yield Line("access .2 of all, graded, below .9, logistic", room, "access", frozenset(all_))
    yield Line("words: access .4 of two, habits .3", worded([0.3] * size, pair), "access", two)
    knower = worded([0.3] * size, {2: 0.8}, constant=True)
    yield Line("words: one knower, constants", knower, "access", frozenset({2}))
    by_kind = worded([0.3] * size, pair, kinds="column")
    yield Line("words: access .4 of two, habits by kind", by_kind, "access", two)


def _habits(size: int) -> list[float]:
    return [0.7, 0.6, 0.5, 0.4, 0.3][:size] + [0.3] * (size - 5)


def _pairs_and_a_loner(size: int) -> FloatArray:
    """A block for each two models, and the last alone in its own (of an even number the last two)."""
    return np.append(np.arange(size - 1) // 2, size)


def scores(form: str, skill: FloatArray, easy: FloatArray, access: FloatArray, items: int, rng: np.random.Generator):
    """Right or wrong [target, observer, item] by skill and predictability in (0, 1) and own access."""
    luck = rng.random((len(skill), len(skill), items))
    if form == "easy share":
        right = (rng.random(items) < skill[None, :, None]) & (luck < easy[:, None, None])
    else:
        right = luck < cells(form, skill, easy)[:, :, None]
    own = np.arange(len(skill))
    right[own, own] |= rng.random((len(skill), items)) < access[:, None]
    return right.astype(float)


def cells(form: str, skill: FloatArray, easy: FloatArray) -> FloatArray:
    """The chance of being right [target, observer] without access."""
    if form in ("product", "easy share"):
        return np.asarray(np.outer(easy, skill))
    latent = special.logit(skill)[None, :] + special.logit(easy)[:, None]
    return np.asarray(special.expit(latent) if form == "logistic" else 1 - np.exp(-np.exp(latent - 0.5)))


def plain(x: FloatArray) -> Drawn:
    """Scores of which nothing is habit, and no baseline."""
    return x, Specific(x, np.full(x.shape[:2], np.nan), ""), {}


def drawn(form: str, skill: list[float], easy: list[float], access: dict[int, float] | None = None) -> Draw:
    """Scores without habits."""
    own = np.array([(access or {}).get(i, 0.0) for i in range(len(skill))])
    return lambda rng, items: plain(scores(form, np.array(skill), np.array(easy), own, items, rng))


def blocks(block: FloatArray, rng: np.random.Generator, items: int) -> Drawn:
    """Look-alike models of unequal skill: each predicts those of its block as well as itself; one alone is no twin."""
    size, alike = len(block), block[:, None] == block
    alike = alike & (alike.sum(axis=1) > 1)
    latent = rng.normal(0, 0.8, size)[None, :] + rng.normal(0, 0.8, size)[:, None]
    p = special.expit(latent + 1.5 * alike)
    return plain((rng.random((size, size, items)) < p[:, :, None]).astype(float))


def worded(
    habit: list[float],
    access: dict[int, float],
    *,
    constant: bool = False,
    kinds: Literal["", "column", "first word", "unseen"] = "",
) -> Draw:
    """Words: a model says its commonest word with a chance of `habit`; it predicts that word, or with access the word.

    A `constant` model always predicts it; another one in as many cases as it says it. With `kinds` of items a model has
    a commonest word for each, and the verdict sees the data set's column of them, the first word that tells them, or
    nothing.
    """
    size, chance = len(habit), np.array(habit)[:, None]
    knowing = np.array([access.get(i, 0.0) for i in range(size)])[:, None]

    def draw(rng: np.random.Generator, items: int) -> Drawn:
        kind = rng.integers(0, len(FIRST_WORDS) if kinds else 1, items)
        usual = -1 - (np.arange(size)[:, None] * len(FIRST_WORDS) + kind)
        common = rng.random((size, items)) < chance
        truth = np.where(common, usual, rng.integers(0, WORDS, (size, items)))
        usually = np.ones((size, items), bool) if constant else rng.random((size, items)) < chance
        guess = np.where(usually, usual, rng.integers(0, WORDS, (size, items)))
        said = np.where(rng.random((size, items)) < knowing, truth, guess)
        x = (said[None] == truth[:, None]).astype(float)
        alike = _seen(kind, kinds)
        return x, specific(x, said, truth, alike), modes(truth, alike)

    return draw


def _seen(kind: FloatArray, kinds: str) -> Mapping[str, pd.Series]:
    """What the verdict sees of the kinds, as `selfprobe.matrix.habit.groups` finds it."""
    items = pd.Index([f"q{i:04}" for i in range(len(kind))])
    texts = pd.Series([FIRST_WORDS[k] if kinds == "first word" else "what" for k in kind], items)
    return groups(texts, pd.Series([str(k) if kinds == "column" else "" for k in kind], items))


def modes(truth: FloatArray, alike: Mapping[str, pd.Series]) -> dict[str, FloatArray]:
    """The commonest truth of the other items, and of those that are alike in something, as `baseline_hits` has them."""
    hits = {}
    for name, group in alike.items():
        hit = np.full(truth.shape, np.nan)
        for one in pd.unique(group):
            at = (group == one).to_numpy()
            hit[:, at] = [mode_baseline(row) for row in truth[:, at]]
        hits["mode" if name == ALL else f"mode by {name}"] = hit
    return hits


def specific(x: FloatArray, said: FloatArray, truth: FloatArray, alike: Mapping[str, pd.Series]) -> Specific:
    """The item-specific scores of words [model, item] that were said of oneself and were true."""
    models, names = [f"m{i:02}" for i in range(len(x))], list(alike[ALL].index)
    t, o, i = (axis.ravel() for axis in np.indices(x.shape))
    rows = pd.DataFrame({"target": np.array(models)[t], "observer": np.array(models)[o], "item": np.array(names)[i]})
    rows = rows.assign(key="k1", value=x.ravel(), truth=truth[t, i].astype(str), said=said[o, i].astype(str))
    measure = Measure(alone=lambda given: 1, tokens=(1, 1), acts=("answer",))
    return item_specific(rows, Matrix("words", models, names, x, {}), measure, alike)


def learner(size: int, share: float, rng: np.random.Generator, items: int) -> Drawn:
    """The first model has an unseen habit that gets `KNOWN` on itself; shown examples, others learn a `share` of it.

    Without examples every cell is .3. A learner is right where the habit is and where it learned it; the informed
    observer is the best of as many learners as there are others, as in `selfprobe.matrix.rows.closest`.
    """
    p = np.full((size, size), 0.3)
    p[0, 0] = KNOWN
    x, none, _ = plain((rng.random((size, size, items)) < p[:, :, None]).astype(float))
    own = np.arange(size)
    learned = x[own, own][:, None] * (rng.random((size, size - 1, items)) < share)
    best = learned.mean(axis=2).argmax(axis=1)
    return x, none, {INFORMED: learned[own, best]}
