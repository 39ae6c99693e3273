"""Drawn matrices of which it is known who has access to itself: what bench/verdict.py counts
verdicts over.

Without access a cell is F(skill of the observer, predictability of the target). F is their product,
logistic, complementary log-log, the product where all observers know the same easy items, or a
noisy-or: right if the item is easy or the observer able. Particular models may know one another
beyond that. Words are drawn for habits: a model has a commonest word, of all items or of each kind
of item, says it in some share of them and predicts it. Real words are those of 62 models, where
their replies are at hand: a model's predictions are another model's words.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from scipy import special

from selfprobe.scorers.decision import Measure
from selfprobe.stats.estimate import FloatArray, mode_baseline
from selfprobe.studies.matrix.habit import ALL_ITEMS, ItemSpecificScores, groups, item_specific
from selfprobe.studies.matrix.rows import INFORMED
from selfprobe.studies.matrix.table import TaskMatrix
from selfprobe.text.parse import normalise, words

FORMS = ("product", "logistic", "cloglog", "easy share")
FIRST_WORDS = ("what", "how", "why", "who", "when")
WORDS = 400
"""From which a model says another word than its commonest."""
KNOWN = 0.77
"""Of a model that learners are shown examples of: what it gets on itself."""
REAL = Path(
    os.environ.get("REAL_REPLIES", Path(__file__).parents[3] / "shared" / "data" / "real_replies")
)
"""Where the real replies are, or are not."""
POSITIONS, NONE = 3, -(10**6)
"""Words of a real reply, and the code of one that it does not have."""
Drawn = tuple[FloatArray, ItemSpecificScores, dict[str, FloatArray], FloatArray | None]
Draw = Callable[[np.random.Generator, int], Drawn]
"""From a generator and a number of items to the scores, what is item-specific of them, the
baselines' hits, and what the replies of other models get [target, other model, item].
"""
Group = Literal["null", "access", "learner", "open", "real", "sibling"]


@dataclass(frozen=True)
class Line:
    """One truth."""

    name: str
    draw: Draw
    group: Group
    """A null that the verdict must pass; access; an informed observer's; a null that it does not
    claim to pass; or real words, of another family or of the model's own.
    """
    knows: frozenset[int] = frozenset()
    """The models with access."""


def lines(size: int) -> Iterator[Line]:
    """The truths of `size` models."""
    yield from _nulls(size)
    yield from _accesses(size)
    for share in (0, 50, 80, 90, 95, 100):
        yield Line(
            f"learner: {share} % of what the model knows",
            partial(learner, size, share / 100),
            "learner",
        )
    yield Line("open, twins and a loner", partial(blocks, _pairs_and_a_loner(size)), "open")
    yield Line(
        "open, a family and an outsider, 1 logit",
        alike(size, 1.0, lambda n: _family(n, n - 1)),
        "open",
    )
    yield Line("open, one cell in ten has 1.5 logits", alike(size, 1.5, None), "open")
    if REAL.is_dir():
        for name, keys in (("mean of three", POSITIONS), ("the first", 1)):
            yield Line(f"real words: {name}", partial(real, size, keys, False), "real")
            yield Line(
                f"real words: {name}",
                partial(real, size, keys, True),
                "sibling",
                frozenset(range(size)),
            )
    yield Line(
        "open, words: habits by a kind unseen", worded(_habits(size), {}, kinds="unseen"), "open"
    )


def _nulls(size: int) -> Iterator[Line]:
    graded = np.linspace(0.4, 0.8, size).tolist()
    steep = np.geomspace(0.9, 0.4, size).tolist()
    habits = _habits(size)
    strong = [0.9] + [0.3] * (size - 1), [0.8] + [0.3] * (size - 1)
    for form in FORMS:
        yield Line(f"null, {form}: graded", drawn(form, graded, graded), "null")
        yield Line(
            f"null, {form}: steep", drawn(form, steep, (np.array(steep) * 8 / 9).tolist()), "null"
        )
        yield Line(f"null, {form}: strong among weak", drawn(form, *strong), "null")
        yield Line(f"null, {form}: anti-correlated", drawn(form, graded, graded[::-1]), "null")
    yield Line(
        "null, items share a difficulty, strong among weak", partial(leading, *strong, 1.5), "null"
    )
    yield Line("null, weak models share wrong answers", partial(sharing_errors, size), "null")
    yield Line(
        "null, noisy-or: strong observer, hardest target",
        drawn("noisy-or", steep, steep[::-1]),
        "null",
    )
    yield Line(
        "null, ceiling: graded below 1", drawn("product", _ceiling(size), [1.0] * size), "null"
    )
    yield Line("null, ceiling: one cell is never right", partial(never, size), "null")
    yield Line("null, expert of its family, .88 among .50", partial(expert, size), "null")
    yield Line("null, pairs differ by .3 logits", alike(size, 0.3, None, normal=True), "null")
    yield Line("null, an outsider among look-alikes, .73 and .50", partial(outsider, size), "null")
    yield Line(
        "null, blocks of twins",
        partial(blocks, np.minimum(np.arange(size) // 2, size // 2 - 1)),
        "null",
    )
    yield Line("null, words: constants", worded(habits, {}, constant=True), "null")
    yield Line("null, words: habits", worded(habits, {}), "null")
    yield Line("null, words: habits by kind", worded(habits, {}, kinds="column"), "null")
    yield Line(
        "null, words: constants by kind", worded(habits, {}, constant=True, kinds="column"), "null"
    )
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
            ("access .2 of all, equals", equal, all_),
            ("access .2 of all, graded", graded, all_),
            ("access .5 of the weakest", graded, weakest),
            ("access .4 of a middle one", graded, middle),
        ):
            points = in_points(form, easy, easy, access)
            yield Line(
                f"{name} ({points}), {form}",
                drawn(form, easy, easy, access),
                "access",
                frozenset(access),
            )
    hard = np.linspace(0.3, 0.6, size).tolist()
    points, room = in_points("logistic", graded, hard, all_), drawn("logistic", graded, hard, all_)
    yield Line(
        f"access .2 of all, graded, below .9 ({points}), logistic", room, "access", frozenset(all_)
    )
    yield Line("words: access .4 of two, habits .3", worded([0.3] * size, pair), "access", two)
    knower = worded([0.3] * size, {2: 0.8}, constant=True)
    yield Line("words: one knower, constants", knower, "access", frozenset({2}))
    by_kind = worded([0.3] * size, pair, kinds="column")
    yield Line("words: access .4 of two, habits by kind", by_kind, "access", two)


def in_points(form: str, skill: list[float], easy: list[float], access: Mapping[int, float]) -> str:
    """The advantage of those with access over what skill gives, in points: their mean.

    >>> in_points("product", [0.6] * 3, [0.6] * 3, {1: 0.4})
    '+.256'
    """
    alone = np.diag(cells(form, np.array(skill), np.array(easy)))
    return f"{np.mean([share * (1 - alone[i]) for i, share in access.items()]):+.3f}".replace(
        "0.", "."
    )


def _ceiling(size: int) -> list[float]:
    return [1.0, 0.99, 0.95, 0.9, 0.85][:size] + [0.8] * (size - 5)


def _family(size: int, members: int) -> FloatArray:
    """Whether two models are of one family, [target, observer]: the first ones are."""
    inside = np.arange(size) < members
    return np.outer(inside, inside) | np.eye(size, dtype=bool)


def _habits(size: int) -> list[float]:
    return [0.7, 0.6, 0.5, 0.4, 0.3][:size] + [0.3] * (size - 5)


def _pairs_and_a_loner(size: int) -> FloatArray:
    """A block for each two models, and the last alone in its own (of an even number the last two)."""
    return np.append(np.arange(size - 1) // 2, size)


def scores(
    form: str,
    skill: FloatArray,
    easy: FloatArray,
    access: FloatArray,
    items: int,
    rng: np.random.Generator,
):
    """Right or wrong [target, observer, item] by skill and predictability in (0, 1) and own access."""
    luck = rng.random((len(skill), len(skill), items))
    if form == "easy share":
        right = (rng.random(items) < skill[None, :, None]) & (luck < easy[:, None, None])
    elif form == "noisy-or":
        right = (rng.random(items) < 1 - easy[:, None, None]) | (luck < skill[None, :, None] / 2)
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
    return np.asarray(
        special.expit(latent) if form == "logistic" else 1 - np.exp(-np.exp(latent - 0.5))
    )


def plain(x: FloatArray) -> Drawn:
    """Scores of which nothing is habit, and no baseline."""
    return x, ItemSpecificScores(x, np.full(x.shape[:2], np.nan), ""), {}, None


def drawn(
    form: str, skill: list[float], easy: list[float], access: dict[int, float] | None = None
) -> Draw:
    """Scores without habits."""
    own = np.array([(access or {}).get(i, 0.0) for i in range(len(skill))])
    return lambda rng, items: plain(scores(form, np.array(skill), np.array(easy), own, items, rng))


def leading(
    skill: list[float], easy: list[float], spread: float, rng: np.random.Generator, items: int
) -> Drawn:
    """Scores where at each item one answer leads by a margin, which moves all models alike; see the
    bank of matrices.
    """
    margins = spread * rng.normal(size=items)
    gives, predicts = (
        rng.random((len(chances), items)) < special.expit(special.logit(chances)[:, None] + margins)
        for chances in (np.array(easy), np.array(skill))
    )
    return plain((gives[:, None] & predicts[None]).astype(float))


def sharing_errors(size: int, rng: np.random.Generator, items: int) -> Drawn:
    """One strong model among weak ones that mostly give one and the same wrong answer; nobody has
    access.
    """
    margins = 1.5 * rng.normal(size=items)
    words_of = []
    for strong, weak in ((0.8, 0.3), (0.9, 0.3)):
        chances = np.array([strong] + [weak] * (size - 1))[:, None]
        is_right = rng.random((size, items)) < special.expit(special.logit(chances) + margins)
        is_usual_error = rng.random((size, items)) < 0.5
        other = np.where(is_usual_error, WORDS + 1, rng.integers(0, WORDS, (size, items)))
        words_of.append(np.where(is_right, WORDS, other))
    replies, predictions = words_of
    return plain((replies[:, None] == predictions[None]).astype(float))


def blocks(block: FloatArray, rng: np.random.Generator, items: int) -> Drawn:
    """Look-alike models of unequal skill: each predicts those of its block as well as itself; one
    alone is no twin.
    """
    size, alike = len(block), block[:, None] == block
    alike = alike & (alike.sum(axis=1) > 1)
    latent = rng.normal(0, 0.8, size)[None, :] + rng.normal(0, 0.8, size)[:, None]
    p = special.expit(latent + 1.5 * alike)
    return plain((rng.random((size, size, items)) < p[:, :, None]).astype(float))


def rights(p: FloatArray, rng: np.random.Generator, items: int) -> Drawn:
    """Scores of which these are the chances of being right, [target, observer]."""
    return plain((rng.random((*p.shape, items)) < p[:, :, None]).astype(float))


def expert(size: int, rng: np.random.Generator, items: int) -> Drawn:
    """The first model predicts itself and its sibling in .88, everybody else in .50; the sibling is
    no expert.
    """
    p = np.full((size, size), 0.5)
    p[[0, 1], 0] = 0.88
    return rights(p, rng, items)


def outsider(size: int, rng: np.random.Generator, items: int) -> Drawn:
    """All but the last are alike and know one another as well as themselves; so does the last
    itself, but nobody it.
    """
    return rights(np.where(_family(size, size - 1), 0.73, 0.5), rng, items)


def never(size: int, rng: np.random.Generator, items: int) -> Drawn:
    """One observer of one target is never right, and so below what its habit gets."""
    p = np.full((size, size), 0.3)
    p[1, 2] = 0
    x, specific, *rest = rights(p, rng, items)
    below = x.copy()
    below[1, 2] = -0.02
    return x, ItemSpecificScores(below, specific.habit, ""), *rest


def alike(
    size: int, logits: float, family: Callable[[int], FloatArray] | None, *, normal: bool = False
) -> Draw:
    """Graded skill and predictability on the logistic scale, and pairs that know one another beyond
    them.

    Args:
        size: Models.
        logits: What they know more, or with `normal` its standard deviation, both ways alike.
        family: From the models to who is alike; None: one cell in ten.
        normal: Whether all pairs differ.
    """

    def draw(rng: np.random.Generator, items: int) -> Drawn:
        latent = rng.normal(0, 0.5, size)[None, :] + rng.normal(0, 0.5, size)[:, None]
        if normal:
            pairs = rng.normal(0, logits, (size, size))
            more = np.tril(pairs) + np.tril(pairs, -1).T
        else:
            more = logits * (rng.random((size, size)) < 0.1 if family is None else family(size))
        return rights(special.expit(latent + more), rng, items)

    return draw


@lru_cache
def replied() -> tuple[list[str], FloatArray]:
    """The family of each real model, and its first words as codes [model, item, k]."""
    said: dict[str, dict[str, str]] = {}
    family: dict[str, str] = {}
    with gzip.open(REAL / "replies.jsonl.gz", "rt", encoding="utf-8") as lines_:
        for row in map(json.loads, lines_):
            family[row["model"]] = row["family"]
            said.setdefault(row["model"], {})[row["item"]] = row["start"]
    asked = sorted({item for replies in said.values() for item in replies})
    known: dict[str, int] = {}
    codes = np.full((len(said), len(asked), POSITIONS), NONE)
    for m, replies in enumerate(said.values()):
        for i, item in enumerate(asked):
            for k, word in enumerate(words(replies.get(item, ""), POSITIONS)):
                codes[m, i, k] = known.setdefault(normalise(word), len(known))
    return list(family.values()), codes


def real(size: int, keys: int, sibling: bool, rng: np.random.Generator, items: int) -> Drawn:
    """Each model predicts the words of a real model outside the matrix: of another family, or with
    `sibling` of its own.

    A score is the mean of the first `keys` words.
    """
    family, codes = replied()
    order, chosen, outside = rng.permutation(len(family)), list[int](), list[int]()
    for model in order:
        taken = {*chosen, *outside, model}
        other = [
            o
            for o in rng.permutation(len(family))
            if o not in taken and (family[o] == family[model]) == sibling
        ]
        if len(chosen) < size and model not in outside and other:
            if sibling and family[model] in {family[one] for one in chosen}:
                continue
            chosen.append(int(model))
            outside.append(int(other[0]))
    at = rng.choice(codes.shape[1], min(items, codes.shape[1]), replace=False)
    truth, said = codes[chosen][:, at, :keys], codes[outside][:, at, :keys]

    def graded(guess: FloatArray) -> FloatArray:
        hit = np.where(
            (truth[:, None] == NONE) | (guess[None] == NONE), np.nan, truth[:, None] == guess[None]
        )
        known = ~np.isnan(hit)
        return np.where(
            known.any(axis=3), np.nansum(hit, axis=3) / np.maximum(known.sum(axis=3), 1), np.nan
        )

    x, stood = graded(said), graded(truth)
    seen = {ALL_ITEMS: pd.Series("", pd.Index([f"q{i:04}" for i in range(len(at))]))}
    return x, without_habit(said, truth), modes(truth, seen), stood


def without_habit(said: FloatArray, truth: FloatArray) -> ItemSpecificScores:
    """`specific` of words [model, item, k] of which all items are alike, without tables: a hundred
    times as quick.
    """
    size, items, keys = truth.shape
    words_ = np.unique(np.stack([said, truth]), return_inverse=True)
    a, b = words_[1].reshape(2, size, items, keys)
    found, habit = np.full((size, size, items, keys), np.nan), np.full((size, size, keys), np.nan)
    for t, o, k in np.ndindex(size, size, keys):
        both = (said[o, :, k] != NONE) & (truth[t, :, k] != NONE)
        one, other, pairs = a[o, both, k], b[t, both, k], max(int(both.sum()) - 1, 1)
        right = one == other
        hits = (np.bincount(other, minlength=len(words_[0]))[one] - right) / pairs
        met = (np.bincount(one, minlength=len(words_[0]))[other] - right) / pairs
        found[t, o, both, k], habit[t, o, k] = right - hits - met + hits.mean(), hits.mean()
    known = ~np.isnan(found)
    scores_ = np.where(
        known.any(axis=3), np.nansum(found, axis=3) / np.maximum(known.sum(axis=3), 1), np.nan
    )
    return ItemSpecificScores(scores_, habit.mean(axis=2), "habit")


def worded(
    habit: list[float],
    access: dict[int, float],
    *,
    constant: bool = False,
    kinds: Literal["", "column", "first word", "unseen"] = "",
) -> Draw:
    """Words: a model says its commonest word with a chance of `habit`; it predicts that word, or
    with access the word.

    A `constant` model always predicts it; another one in as many cases as it says it. With `kinds`
    of items a model has a commonest word for each, and the verdict sees the data set's column of
    them, the first word that tells them, or nothing.
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
        stood = (truth[None] == truth[:, None]).astype(float)
        return (
            x,
            specific(x, said[..., None], truth[..., None], alike),
            modes(truth[..., None], alike),
            stood,
        )

    return draw


def _seen(kind: FloatArray, kinds: str) -> Mapping[str, pd.Series]:
    """What the verdict sees of the kinds, as `selfprobe.studies.matrix.habit.groups` finds it."""
    items = pd.Index([f"q{i:04}" for i in range(len(kind))])
    texts = pd.Series([FIRST_WORDS[k] if kinds == "first word" else "what" for k in kind], items)
    return groups(texts, pd.Series([str(k) if kinds == "column" else "" for k in kind], items))


def modes(truth: FloatArray, alike: Mapping[str, pd.Series]) -> dict[str, FloatArray]:
    """The commonest truth [model, item, k] of the other items, and of those that are alike in
    something.

    As `baseline_hits` has them; the mean over k.
    """
    hits = {}
    for name, group in alike.items():
        hit = np.full(truth.shape, np.nan)
        for one in pd.unique(group):
            at = (group == one).to_numpy()
            for k in range(truth.shape[2]):
                hit[:, at, k] = [mode_baseline(row) for row in truth[:, at, k]]
        hits["mode" if name == ALL_ITEMS else f"mode by {name}"] = hit.mean(axis=2)
    return hits


def specific(
    x: FloatArray, said: FloatArray, truth: FloatArray, alike: Mapping[str, pd.Series]
) -> ItemSpecificScores:
    """The item-specific scores of words [model, item, k] that were said of oneself and were true."""
    models, names = [f"m{i:02}" for i in range(len(x))], list(alike[ALL_ITEMS].index)
    t, o, i, k = (axis.ravel() for axis in np.indices((*x.shape, truth.shape[2])))
    rows = pd.DataFrame(
        {"target": np.array(models)[t], "observer": np.array(models)[o], "item": np.array(names)[i]}
    )
    right = np.where(
        (truth[t, i, k] == NONE) | (said[o, i, k] == NONE), np.nan, truth[t, i, k] == said[o, i, k]
    )
    rows = rows.assign(
        key=k, value=right, truth=truth[t, i, k].astype(str), said=said[o, i, k].astype(str)
    )
    measure = Measure(acts=("answer",))
    return item_specific(rows, TaskMatrix("words", models, names, x, {}), measure, alike)


def learner(size: int, share: float, rng: np.random.Generator, items: int) -> Drawn:
    """The first model has an unseen habit that gets `KNOWN` on itself; shown examples, others learn
    a `share` of it.

    Without examples every cell is .3. A learner is right where the habit is and where it learned
    it; the informed observer is the best of as many learners as there are others, as in
    `selfprobe.studies.matrix.rows.closest_informed`.
    """
    p = np.full((size, size), 0.3)
    p[0, 0] = KNOWN
    x, none, *_ = plain((rng.random((size, size, items)) < p[:, :, None]).astype(float))
    own = np.arange(size)
    learned = x[own, own][:, None] * (rng.random((size, size - 1, items)) < share)
    best = learned.mean(axis=2).argmax(axis=1)
    return x, none, {INFORMED: learned[own, best]}, None
