"""Verdict of a matrix: what it could detect, and what may be said of which models.

A model is named when its own cell stands out above skill, noise and the way pairs of these models differ anyhow
(`selfprobe.stats.pairs`), without its habit (`selfprobe.studies.matrix.habit`), and above each baseline and stand-in
on its own row (`selfprobe.studies.matrix.rows`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, holm
from selfprobe.stats.pairs import FEWEST
from selfprobe.studies.matrix.advantage import Permutation
from selfprobe.studies.matrix.rows import EFFECT, INFORMED, ModelRow, above_zero
from selfprobe.text.families import related

SMALLEST = 0.05
"""The smallest T of interest."""


NOBODY = "none predicts itself beyond what skill, habits and the other models explain"
"""A verdict's reason where nothing is above 0."""
EXAMPLES = "selfprobe matrix --observers shown:5"
"""The informed observer, as a command."""
PAIRS_ALONE = "That is the power of the test against pairs of models alone: baselines and stand-ins can ask for more."
"""What every number of `power` leaves out."""


@dataclass(frozen=True)
class Verdict:
    """Verdict of the matrix on privileged access."""

    kind: Literal["supported", "not told apart", "not supported", "underpowered"]
    """The finding."""
    sentence: str
    """Why, with the numbers."""
    reason: str
    """Why, in a clause of at most eighteen words; "" where models are named."""
    models: tuple[str, ...] = ()
    """The models that have access, when supported."""
    caution: str = ""
    """Caution of the page: which control could still overturn the verdict, and logs of other data sets."""

    @property
    def answer(self) -> Literal["Yes", "No", "Cannot tell"]:
        """The finding as the page says it."""
        return "Yes" if self.kind == "supported" else "No" if self.kind == "not supported" else "Cannot tell"


def judge_matrix(
    rows: Sequence[ModelRow],
    *,
    p_holm: Sequence[float],
    total: Estimate,
    permutation: Permutation,
    means: FloatArray,
    frames: bool = False,
    informed: bool = False,
    replies: str = "replies",
    smallest: float = SMALLEST,
    alpha: float = 0.05,
) -> Verdict:
    """Is privileged access supported, not told apart, not supported, or could this matrix not tell?

    Supported: a model's p (`Row.p`) is below alpha after Holm's correction over all models of all tasks, it is no
    outsider, unless an informed observer was run, and the permutation of observers agrees, where it could: where less
    than alpha of all orders leave the named in place. Not told apart: T, or a model on some scale, is above 0, but
    nobody is named. Not supported: what is above 0 is explained by a baseline or a stand-in, or nothing is, and an
    advantage of interest would have been seen: one of `EFFECT` in a single model, or T is below the `smallest` and some
    advantage of a single model would have been seen. Underpowered: all else.

    Args:
        rows: One row per model.
        p_holm: p of the rows after the correction.
        total: T of the item-specific scores.
        permutation: Permutation test of the same scores.
        means: Cell means [target, observer] as scored.
        frames: Whether the task can be asked about another assistant too, and was not (`-T about=self,other`).
        informed: Whether an observer can be told of its target, the strongest control (`--observers`).
        replies: Noun for the models' replies.
        smallest: The smallest T of interest.
        alpha: Level of every test.
    """
    if len(means) < FEWEST:
        return _too_few(rows, total, len(means))
    if rows and not any(row.score.se > 0 for row in rows) and np.ptp(means) < 1e-9:
        return _all_alike(float(means[0, 0]))
    if total.n > 1 and not total.se > 0 and abs(total.value) < 1e-9:
        return Verdict(
            "not supported",
            "On every item each model scores on itself what the others score on it: the difference is exactly 0.",
            "each model scores the same on itself as the others do",
        )
    if not rows or math.isnan(total.low):
        text = f"Nothing can be said: T is undefined or has no interval ({total.reason})."
        return Verdict("underpowered", text, "too little could be scored to compare them")
    if any(math.isnan(row.test_p) for row in rows):
        text = "Nothing can be said: of some model no item is scored by all observers."
        return Verdict("underpowered", text, "of some model no item is scored by all observers")
    ways = ["observers of like skill", *["-T about=self,other"] * frames, *[EXAMPLES] * informed]
    tells = f"These controls would decide: {', '.join(ways)}."
    reached = [row for row, p in zip(rows, p_holm, strict=True) if p < alpha]
    named = [row for row in reached if not row.outsider or INFORMED in row.baselines]
    if reached and not named:
        row = reached[0]
        text = (
            f"{row.model} predicts itself better than it and the others predict each other, but the others may be "
            f"alike and it a stranger to them: it predicts itself no better than they one another. {tells}"
        )
        how = f"run --observers shown:5 for {row.model}" if informed else "add models like it"
        return Verdict("not told apart", text, f"{row.model} may only be a stranger to look-alikes; {how}")
    reach = math.perm(len(rows), len(named))
    shuffled = f"the permutation of the observers, p = {permutation.p:.3g}"
    if named and (permutation.p < alpha or 1 / reach >= alpha):
        p = {row.model: p for row, p in zip(rows, p_holm, strict=True)}
        control = _control(named, rows, informed=informed)
        order = f"{shuffled[0].upper()}{shuffled[1:]}, agrees."
        if not permutation.p < alpha:
            order = (
                f"{shuffled[0].upper()}{shuffled[1:]}, does not count: with {len(named)} of {len(rows)} models named "
                f"it cannot be below {1 / reach:.2g}."
            )
        return _supported(named, p, order, control, replies)
    if named:
        who = ", ".join(row.model for row in named)
        text = f"{who} would be named, but {shuffled}, disagrees. {tells}"
        return Verdict("not told apart", text, f"{named[0].model} stands out, but shuffled observers reach as much")
    return _nobody(rows, total, means, tells=tells, replies=replies, smallest=smallest, alpha=alpha)


def _all_alike(score: float) -> Verdict:
    """Verdict on a task without any variation: nobody could have done better on itself than the others do."""
    text = (
        f"Every model scores {score:.2f} on every model at every item: without variation no advantage can show. "
        "Take items on which the models differ."
    )
    return Verdict("underpowered", text, f"every score is {score:.2f}, so no advantage can show; take other items")


def _too_few(rows: Sequence[ModelRow], total: Estimate, models: int) -> Verdict:
    """Verdict on two or three models."""
    count, more, better = {2: ("two", "three", "six"), 3: ("three", "two", "five")}.get(
        models, ("few", "four", "seven")
    )
    reason = f"{count} models cannot show how much two models differ without self-knowledge; add {more}"
    text = f"Too few models: with {count} nobody can say how much two models differ without self-knowledge."
    text += f" Add {more}, better {better}."
    if rows and not math.isnan(total.low):
        best = max(rows, key=lambda row: row.score.value - row.rival_score)
        text += (
            f" Item-specific T = {_shown(total)}; {best.model} gets {best.score.value:.2f} on itself, "
            f"{best.rival} {best.rival_score:.2f} on it."
        )
    return Verdict("underpowered", text, reason)


def _nobody(
    rows: Sequence[ModelRow],
    total: Estimate,
    means: FloatArray,
    *,
    tells: str,
    replies: str,
    smallest: float,
    alpha: float,
) -> Verdict:
    """The verdict where no model is named."""
    beyond = holm([row.test_p for row in rows])
    explained = [
        (row, *held) for row, p in zip(rows, beyond, strict=True) if p < alpha for held in _failed(row, replies, alpha)
    ]
    scales = {scale: holm([row.scales[scale] for row in rows]) < alpha for scale in rows[0].scales}
    some = [row for i, row in enumerate(rows) if any(scales[scale][i] for scale in scales)]
    some = [row for row in some if not any(row is other for other, _, _ in explained)]
    if explained and not some:
        row, name, reached = explained[0]
        reason = f"{row.model} scores {row.score.value:.2f} on itself, and {name} {reached:.2f}"
        sentences = (
            f"{row.model} ({row.score.value:.2f} on itself) is explained by {name} ({reached:.2f})."
            for row, name, reached in explained
        )
        return Verdict("not supported", " ".join(sentences), reason)
    habit = _habits(rows)
    if some:
        first = min(some, key=lambda row: row.steps["noise"])
        like = _like_skill(first, rows, means, tells)
        skill = (like, "skill alone could look like this")
        text, why = skill if like else _blocked(first, rows, tells, replies, alpha)
        return Verdict("not told apart", text + habit, f"{first.model} stands out, but {why}")
    best = max(rows, key=lambda row: row.above_fit)
    if total.low > 0 and (like := _like_skill(best, rows, means, tells)):
        return Verdict("not told apart", like + habit, f"{best.model} stands out, but skill alone could look like this")
    if total.low > 0:
        head = f"Item-specific T = {_shown(total)} is above 0, but no single model is named (best: {_best(rows)})."
        reason = "together they predict themselves better, but no single one is shown to"
        first = min(rows, key=lambda row: row.p)
        return Verdict("not told apart", f"{head} {_remedy(first, rows, replies, alpha)}{habit}", reason)
    text = "No model predicts itself beyond what skill, habits and the other models explain: item-specific T = "
    text += f"{_shown(total)}."
    text += habit
    detects = [row.power.detects for row in rows]
    seen, most = _typical(detects), max(_or_infinite(detects))  # in half of the models, and in whichever has it
    if seen <= EFFECT:
        each = most <= EFFECT
        saw = f"An advantage of {EFFECT:.2f} of one model would have been seen"
        saw += f". {PAIRS_ALONE}" if each else f" in most of them, and one of {most:.2f} in each. {PAIRS_ALONE}"
        would = f"an advantage of {EFFECT:.2f} would show" + ("" if each else " in most")
        return Verdict("not supported", f"{text} {saw}", f"{NOBODY}; {would}")
    if total.high <= smallest and math.isfinite(seen):
        small = f"one below {most:.2f}" if math.isfinite(most) else "any"
        ruled = f"An advantage of {smallest:g} on average is ruled out; of a single model {small} may be missed."
        ruled += f" {PAIRS_ALONE}"
        return Verdict(
            "not supported",
            f"{text} {ruled}",
            f"no average advantage above {smallest:g}; in a single model the pairs test may miss {small}",
        )
    least = f"An advantage of {seen:.2f} or more" if math.isfinite(seen) else "No advantage, however large,"
    missed = f"one below {seen:.2f} may be missed" if math.isfinite(seen) else "any may be missed"
    text = f"{text} {least} of one model would have been seen. {PAIRS_ALONE} {_needs(rows)}"
    return Verdict("underpowered", text, f"no advantage is shown; at this size {missed}")


def _control(named: Sequence[ModelRow], rows: Sequence[ModelRow], *, informed: bool) -> str:
    """Sentence on the control that could still overturn the result."""
    hint = f" {EXAMPLES} would tell." if informed and any(INFORMED not in row.baselines for row in named) else ""
    for row in named:
        kin = [other.model for other in rows if other is not row and related(other.model, row.model)]
        if not kin:
            return f"Add a relative of {row.model}: none is here, and one might predict it as well.{hint}"
    return f"Only these models were compared: another relative might reach as much.{hint}"


def _supported(named: Sequence[ModelRow], p: Mapping[str, float], order: str, control: str, replies: str) -> Verdict:
    names = tuple(row.model for row in named)
    verb, self_ = ("predicts", "itself") if len(named) == 1 else ("predict", "themselves")
    count = len(p) * (len(p) - 1)
    head = (
        f"{', '.join(names)} {verb} {self_} beyond what skill, habits and every other model here explain: the own cell "
        f"stands out above all {count} pairs."
    )
    held = "; ".join(_held(row, p[row.model], replies) for row in named)
    return Verdict("supported", f"{head} {held}. {order} {control}", "", names, control)


def _held(row: ModelRow, p: float, replies: str) -> str:
    """Sentence with a model's score, by how much it stands out, and what it was compared with."""
    against = {f"{row.rival} on it": row.rival_score, "its habit": row.habit}
    best, reached = row.without_a_model
    if best:
        against[f"the best without a model ({best})"] = reached
    if INFORMED in row.baselines:
        against[f"the closest {INFORMED}"] = row.baselines[INFORMED]
    compared = ", ".join(f"{name} {value:.2f}" for name, value in against.items() if not math.isnan(value))
    out = f"{row.above_fit:+.2f} over the fit, pairs differ by {row.pairs:.2f}, p = {p:.3g}"
    other, alike = row.stand_in
    kin = f"; {other}'s own {replies} predict {row.model}'s in {alike:.2f}" if other else ""
    return f"{row.model} {row.score.value:.2f} on itself ({out}); compared with {compared}{kin}"


def _failed(row: ModelRow, replies: str, alpha: float) -> list[tuple[str, float]]:
    """The baselines and stand-ins that a model is not above, and what they get."""
    out = [(_called(name), row.baselines[name]) for name, p in row.over_p.items() if not p < alpha]
    return out + [
        (f"{other}'s own {replies}", row.score.value - over.value)
        for other, over in row.stand_ins.items()
        if not above_zero(over) < alpha
    ]


def _called(baseline: str) -> str:
    return f"the closest {INFORMED}" if baseline == INFORMED else f"the baseline {baseline!r}"


def _like_skill(row: ModelRow, rows: Sequence[ModelRow], means: FloatArray, tells: str) -> str:
    """Sentence that a model is both the best observer and the most predictable target, with numbers; else ""."""
    i = [one.model for one in rows].index(row.model)
    off = ~np.eye(len(means), dtype=bool)
    others = np.delete(np.arange(len(means)), i)
    rest = off[np.ix_(others, others)]
    on_it, on_others = means[i, others].mean(), means[np.ix_(others, others)][rest].mean()
    if not min(on_it, on_others) > 0:
        return ""
    own, elsewhere = means[i, i] / on_it, means[others, i].mean() / on_others
    if not (own > 1.1 and elsewhere > 1.1 and elsewhere**2 >= own):  # skill accounts for half of it, in logarithms
        return ""
    return (
        f"{row.model} predicts itself {own:.1f} times as well as the others do, and the others {elsewhere:.1f} "
        f"times as well as they do one another: skill alone could look like this. {tells}"
    )


def _blocked(row: ModelRow, rows: Sequence[ModelRow], tells: str, replies: str, alpha: float) -> tuple[str, str]:
    """Why a model that stands out is not named: in full, and in a clause."""
    lost = [scale for scale, p in row.scales.items() if p >= alpha]
    failed = _failed(row, replies, alpha)
    if lost:
        text = f"{row.model} stands out on some scales, not on: {', '.join(lost)}. {tells}"
        reason = f"not beyond {failed[0][0]}" if failed else "only on some scales; take more items"
        return f"{text} {_remedy(row, rows, replies, alpha)}", reason
    head = f"{row.model} is {row.above_fit:+.2f} above what skill and predictability give"
    step = max(row.steps, key=lambda name: row.steps[name])
    if row.steps[step] < alpha:
        weak = [name for name, _ in failed] or ["the correction for all models and tasks"]
        text = f"{head}, but does not survive {', '.join(weak)}."
        return f"{text} {_remedy(row, rows, replies, alpha)}", f"not beyond {weak[0]}"
    why = {
        "pairs": (
            f"pairs of these models differ by {row.pairs:.2f} anyhow",
            "pairs of models differ as much; add models",
        ),
        "above all pairs": ("another pair of these models stands out as much", "so does another pair; add models"),
        "itself above others": (
            "it predicts another model as far beyond its skill",
            "on another model too; add models",
        ),
        "without its likest": (
            "it and a model like it predict each other beyond skill, and without what they share too little is left",
            "a model like it explains that",
        ),
        "above 0": ("its score is not above 0", "its score is not above 0")
        if math.isnan(row.habit)
        else ("without its habit nothing is left", "not beyond its habit"),
        "noise": ("on some scale the noise of the items could do that", "not on every scale; take more items"),
    }
    full, brief = why[step]
    return f"{head}, but {full}. Add models (eight are advised). {tells}", brief


def _habits(rows: Sequence[ModelRow]) -> str:
    """Sentence saying that habit explains every model's self-predictions; empty if it does not."""
    habit = [row.habit for row in rows if not math.isnan(row.habit)]
    if not habit or max(habit) < 0.05:
        return ""
    own = clustered_mean([row.specific.value for row in rows], np.arange(len(rows)), unit="model", interval="t")
    return f" Of what models say of themselves {np.mean(habit):.2f} is habit, {own.value:+.2f} is about the item."


def _best(rows: Sequence[ModelRow]) -> str:
    row = min(rows, key=lambda one: one.p)
    return f"{row.model}, p = {row.p:.3g}"


def _remedy(row: ModelRow, rows: Sequence[ModelRow], replies: str, alpha: float) -> str:
    """Sentence on what would name a model; more items do not help where a baseline or stand-in gets as much."""
    failed = _failed(row, replies, alpha)
    if as_much := [(name, reached) for name, reached in failed if reached >= row.score.value]:
        name, reached = as_much[0]
        return (
            f"More items would not help: {row.model} gets {row.score.value:.2f} on itself, no more than {name} "
            f"({reached:.2f})."
        )
    if failed:
        name, reached = failed[0]
        return (
            f"More items may help: {row.model} gets {row.score.value:.2f} on itself, {name} {reached:.2f}, and the "
            "noise of the items could do that."
        )
    return _needs(rows)


def _needs(rows: Sequence[ModelRow]) -> str:
    """Sentence on the items that it takes to name a typical model."""
    needed = _typical([row.power.items for row in rows])
    if math.isinf(needed):
        return (
            f"No number of items would name a model with an advantage of {EFFECT:.2f} among {len(rows)}, since "
            "two models also differ without self-knowledge; more models would."
        )
    return f"To name a model with an advantage of {EFFECT:.2f} takes about {_rounded(needed)} items."


def _typical(values: Sequence[float]) -> float:
    """The median, infinite for a model of which no number would do (NaN)."""
    return float(np.median(_or_infinite(values)))


def _or_infinite(values: Sequence[float]) -> list[float]:
    """The values, infinite where no number would do (NaN)."""
    return [math.inf if math.isnan(value) else value for value in values]


def _rounded(items: float) -> int:
    """A number rounded to two digits: a power is no more exact."""
    unit = int(10 ** max(len(str(math.ceil(items))) - 2, 0))
    return math.ceil(items / unit) * unit


def _shown(e: Estimate) -> str:
    return f"{e.value:+.3f} [{e.low:+.3f}, {e.high:+.3f}]"
