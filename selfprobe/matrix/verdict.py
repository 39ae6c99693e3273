"""From a matrix to a claim: what it could detect, and what may be said of which models.

Scores are `x  # [target, observer, item]` as in `selfprobe.matrix.advantage`. A model is named when it knows more of
itself than its rivals do on every scale (`selfprobe.matrix.scales`), without its habit (`selfprobe.matrix.habit`), and
more than each baseline on its own row (`selfprobe.matrix.rows`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from selfprobe.matrix.advantage import Permutation
from selfprobe.matrix.rows import INFORMED, Row
from selfprobe.matrix.scales import EFFECT, SCALES
from selfprobe.stats.estimate import Estimate, clustered_mean, holm
from selfprobe.stats.spread import FloatArray

SMALLEST = 0.05
"""The smallest T of interest."""


NOBODY = "none knows more of itself than skill and habit explain"
"""A verdict's reason where nothing is above 0."""


@dataclass(frozen=True)
class Verdict:
    """What the matrix says about privileged access."""

    kind: Literal["supported", "not told apart", "not supported", "underpowered"]
    """The finding."""
    sentence: str
    """Why, with the numbers."""
    reason: str
    """Why, in a clause of at most eighteen words; "" where models are named."""
    models: tuple[str, ...] = ()
    """The models that have access, when supported."""
    crossing: tuple[str, ...] = ()
    """Those of them of which no scale whatever could make skill an explanation."""
    caution: str = ""
    """What a reader should know beside it: which control could still overturn it, and logs of other data sets."""

    @property
    def answer(self) -> Literal["Yes", "No", "Cannot tell"]:
        """The finding as the page says it."""
        return "Yes" if self.kind == "supported" else "No" if self.kind == "not supported" else "Cannot tell"


def verdict(
    rows: Sequence[Row],
    *,
    p_holm: Sequence[float],
    total: Estimate,
    permutation: Permutation,
    means: FloatArray,
    frames: bool = False,
    informed: bool = False,
    smallest: float = SMALLEST,
    alpha: float = 0.05,
) -> Verdict:
    """Is privileged access supported, not told apart from skill, not supported, or could this matrix not tell?

    Supported: a model's p (`Row.p`) is below alpha after Holm's correction over all models of all tasks, and the
    permutation of observers agrees, where it could: where less than alpha of all orders leave the named in place.
    Not told apart: T, or a model on some scale, is above 0, but nobody is named. Not supported: what is above 0 is
    explained by a baseline, or nothing is, and an advantage of interest would have been seen: one of `EFFECT` in a
    single model, or T is below the `smallest`. Else underpowered.

    Args:
        rows: One a model.
        p_holm: Their p after the correction.
        total: T of the item-specific scores.
        permutation: Of the same.
        means: Cell means [target, observer] as scored.
        frames: Whether the task can be asked about another assistant too, and was not (`-T frame=both`).
        informed: Whether an observer can be told of its target, the strongest control (`--observers`).
        smallest: The smallest T of interest.
        alpha: Level of every test.
    """
    if len(means) < 3:
        return Verdict(
            "underpowered",
            "Too few models: three models are the least that can tell self-knowledge from skill.",
            "separating self-knowledge from skill takes at least three models",
        )
    if total.n > 1 and not total.se > 0 and abs(total.value) < 1e-9:
        return Verdict(
            "not supported",
            "Itself or another, every item has the same difference: exactly 0.",
            "each model scores the same on itself as the others do",
        )
    if not rows or math.isnan(total.low):
        text = f"Nothing can be said: T is undefined or has no interval ({total.reason})."
        return Verdict("underpowered", text, "too little could be scored to compare them")
    tells = f"An observer of like skill would tell{', or -T frame=both' if frames else ''}."
    named = [row for row, p in zip(rows, p_holm, strict=True) if p < alpha]
    reach = math.perm(len(rows), len(named))
    shuffled = f"the permutation of the observers, p = {permutation.p:.3f}"
    if named and (permutation.p < alpha or 1 / reach >= alpha):
        control = _control(named, informed)
        return _supported(named, shuffled, control, agrees=permutation.p < alpha, alpha=alpha / len(rows))
    if named:
        who = ", ".join(row.model for row in named)
        text = f"{who} would be named, but {shuffled}, disagrees. {tells}"
        return Verdict("not told apart", text, f"{named[0].model} stands out, but shuffled observers reach as much")
    return _nobody(rows, total, means, tells=tells, smallest=smallest, alpha=alpha)


def _nobody(
    rows: Sequence[Row], total: Estimate, means: FloatArray, *, tells: str, smallest: float, alpha: float
) -> Verdict:
    """The verdict where no model is named."""
    beyond = holm([row.skill_p for row in rows])
    explained = [(row, name) for row, p in zip(rows, beyond, strict=True) if p < alpha for name in _failed(row, alpha)]
    scales = {scale: holm([row.beyond.scales[scale] for row in rows]) < alpha for scale in SCALES}
    some = [row for i, row in enumerate(rows) if any(scales[scale][i] for scale in SCALES)]
    some = [row for row in some if not any(row is other for other, _ in explained)]
    if explained and not some:
        row, name = explained[0]
        reason = f"{row.model} scores {row.score.value:.2f} on itself, and {_called(name)} {row.baselines[name]:.2f}"
        return Verdict("not supported", " ".join(_explained(row, name) for row, name in explained), reason)
    habit = _habits(rows)
    if some:
        first = min(some, key=lambda row: min(row.beyond.scales.values()))
        text, why = _like_skill(first, rows, means, tells, alpha)
        return Verdict("not told apart", text + habit, f"{first.model} stands out, but {why}")
    if total.low > 0:
        head = f"Item-specific T = {_shown(total)} is above 0, but no single model is named (best: {_best(rows)})."
        reason = "together they predict themselves better, but no single one is shown to"
        return Verdict("not told apart", f"{head} {_needs(rows)}{habit}", reason)
    text = f"No model is shown to know more of itself than skill and habit explain: item-specific T = {_shown(total)}."
    text += habit
    seen = _typical([row.power.detects for row in rows])
    if seen <= EFFECT:
        saw = f"An advantage of {EFFECT:.2f} of one model would have been seen."
        return Verdict("not supported", f"{text} {saw}", f"{NOBODY}; an advantage of {EFFECT:.2f} would have been seen")
    if total.high <= smallest:
        alone = f"one of {seen:.2f}" if math.isfinite(seen) else "none, however large,"
        ruled = f"An advantage of {smallest:g} for all is ruled out; of a single model {alone} would have been seen."
        return Verdict("not supported", f"{text} {ruled}", f"{NOBODY}; {smallest:g} for all is ruled out")
    least = f"An advantage of {seen:.2f} or more" if math.isfinite(seen) else "No advantage, however large,"
    missed = f"one below {seen:.2f} may be missed" if math.isfinite(seen) else "any may be missed"
    text = f"{text} {least} of one model would have been seen. {_needs(rows)}"
    return Verdict("underpowered", text, f"no advantage is shown, and {missed} with so few items")


def _control(named: Sequence[Row], informed: bool) -> str:
    """Which control could still overturn the result."""
    if informed and any(INFORMED not in row.baselines for row in named):
        return "An observer told of its target may reach as much: selfprobe matrix --observers shown:5 would tell."
    return "A baseline that reaches as much, or a habit that none of these sees, would change this."


def _supported(named: Sequence[Row], shuffled: str, control: str, *, agrees: bool, alpha: float) -> Verdict:
    crossing = tuple(row.model for row in named if row.beyond.crossing < alpha)
    names = tuple(row.model for row in named)
    scale = f"on all three scales{f' ({_and(crossing)} on any scale at all)' if crossing else ''}"
    verb, self_ = ("knows", "itself") if len(named) == 1 else ("know", "themselves")
    head = f"{_and(names)} {verb} more of {self_} than any other model does, {scale}."
    held = "; ".join(_held(row) for row in named)
    order = f"{shuffled[0].upper()}{shuffled[1:]}, {'agrees' if agrees else 'has too few orders here to tell'}."
    return Verdict("supported", f"{head} {held}. {order} {control}", "", names, crossing, control)


def _held(row: Row) -> str:
    """A model's score and what it was held against."""
    against = {f"{row.rival} on it": row.rival_score, "its habit": row.habit}
    best, reached = row.without_a_model
    if best:
        against[f"the best without a model ({best})"] = reached
    if INFORMED in row.baselines:
        against[f"the closest {INFORMED}"] = row.baselines[INFORMED]
    told = ", ".join(f"{name} {value:.2f}" for name, value in against.items() if not math.isnan(value))
    return f"{row.model} {row.score.value:.2f} on itself; held against {told}"


def _failed(row: Row, alpha: float) -> list[str]:
    return [name for name, p in row.over_p.items() if not p < alpha]


def _explained(row: Row, name: str) -> str:
    reached = row.baselines[name]
    got = f"{row.score.value:.2f} on itself"
    return f"{row.model} ({got}) is explained by {_called(name)}, which gets {reached:.2f}."


def _called(baseline: str) -> str:
    return f"the closest {INFORMED}" if baseline == INFORMED else f"the baseline {baseline!r}"


def _like_skill(row: Row, rows: Sequence[Row], means: FloatArray, tells: str, alpha: float) -> tuple[str, str]:
    """Why a model whose advantage hangs on the scale is not named: in full, and in a clause."""
    i = [one.model for one in rows].index(row.model)
    off = ~np.eye(len(means), dtype=bool)
    others = np.delete(np.arange(len(means)), i)
    rest = off[np.ix_(others, others)]
    on_it, on_others = means[i, others].mean(), means[np.ix_(others, others)][rest].mean()
    lost = [scale for scale, p in row.beyond.scales.items() if not p < alpha]
    if lost and min(on_it, on_others) > 0:
        own, elsewhere = means[i, i] / on_it, means[others, i].mean() / on_others
        if own > 1.1 and elsewhere > 1.1 and elsewhere**2 >= own:  # skill accounts for half of it, in logarithms
            return (
                f"{row.model} predicts itself {own:.1f} times as well as the others do, and the others {elsewhere:.1f} "
                f"times as well as they do one another: skill alone could look like this. {tells}",
                "skill alone could look like this",
            )
    if lost:
        text = f"{row.model} stands out on some scales, not on: {', '.join(lost)}. {tells} {_needs(rows)}"
        return text, "only on some scales"
    missing = [] if row.missing_p < alpha else ["its unscored replies counted as wrong"]
    weak = [*_failed(row, alpha), *missing] or ["the correction for all models and tasks"]
    held = f"{row.model} ({row.score.value:.2f} on itself, {row.rival} {row.rival_score:.2f} on it)"
    text = f"{held} stands out on all three scales alone, but does not survive {_and(weak)}. {_needs(rows)}"
    return text, f"not beyond {_called(weak[0]) if weak[0] in row.over else weak[0]}"


def _habits(rows: Sequence[Row]) -> str:
    """That what models say of themselves is their habit, where that is so for all of them."""
    habit = [row.habit for row in rows if not math.isnan(row.habit)]
    if not habit or max(habit) < 0.05:
        return ""
    own = clustered_mean([row.specific.value for row in rows], np.arange(len(rows)), unit="model", interval="t")
    return f" Of what models say of themselves {np.mean(habit):.2f} is habit, {own.value:+.2f} is about the item."


def _best(rows: Sequence[Row]) -> str:
    row = min(rows, key=lambda one: one.p)
    return f"{row.model}, p = {row.p:.3g}"


def _needs(rows: Sequence[Row]) -> str:
    """The items that it takes to name a model, of a typical one."""
    needed = _typical([row.power.items for row in rows])
    if math.isinf(needed):
        return (
            f"No number of items would name a model with an advantage of {EFFECT:.2f}, which hangs on the scale here; "
            "more items would tell of a larger one."
        )
    return f"More items would tell: to name a model with an advantage of {EFFECT:.2f} takes about {_rounded(needed)}."


def _typical(values: Sequence[float]) -> float:
    """The median, infinite for a model of which no number would do (NaN)."""
    return float(np.median([math.inf if math.isnan(value) else value for value in values]))


def _rounded(items: float) -> int:
    """To two digits: a power is no more exact."""
    unit = int(10 ** max(len(str(math.ceil(items))) - 2, 0))
    return math.ceil(items / unit) * unit


def _and(names: Sequence[str]) -> str:
    return ", ".join(names)


def _shown(e: Estimate) -> str:
    return f"{e.value:+.3f} [{e.low:+.3f}, {e.high:+.3f}]"
