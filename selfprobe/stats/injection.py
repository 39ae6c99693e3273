"""Activation introspection: does a model notice a vector in its residual stream, and name it?

The numbers of `mechanism inject`, from log-odds of Yes and log-probabilities of words. A question
and its negation give a *signal*, half the difference of their log-odds of Yes, which a bias towards
Yes leaves alone. A vector may also flatten all log-odds: the slope of the signals of plain facts
says by how much, and what remains of the question's signal is compared with that. What remains for
the question about another assistant is taken off: it is what the words of the question do.
"""

from collections.abc import Sequence

import numpy as np

from selfprobe.stats.draws import p_among_draws
from selfprobe.stats.estimate import BoolArray, Estimate, FloatArray, t_quantile, undefined

LEAST_FACT_SIGNAL = 1.0
"""Smallest signal of a fact without a vector that can say how far a vector flattens signals."""
INJECTION_DRAWS = 1000
"""Number of random signs of concepts, and of random orders of names."""


def paired_signals(yes_when_true: FloatArray, yes_when_false: FloatArray) -> FloatArray:
    """Half the difference of log-odds of Yes to a question and to its negation."""
    return (yes_when_true - yes_when_false) / 2


def fact_slopes(signals: FloatArray, clean_signals: FloatArray) -> FloatArray:
    """How much of the facts' signals is left under each vector: 1 is untouched, 0 is flat.

    Args:
        signals: [note, cell, vector, fact].
        clean_signals: Without a vector, [note, fact].

    Returns:
        Slopes through 0 [note, cell, vector]; NaN where no fact has a clean signal of
        `LEAST_FACT_SIGNAL` or more; a fact that is answered wrongly says nothing.
    """
    usable = np.where(clean_signals >= LEAST_FACT_SIGNAL, clean_signals, 0.0)
    products = np.einsum("ncvf,nf->ncv", signals, usable)
    squares = (usable**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes: FloatArray = products / np.where(squares > 0, squares, np.nan)[:, None, None]
    return slopes


def noticing_scores(
    own: FloatArray,
    other: FloatArray,
    slopes: FloatArray,
    clean_own: FloatArray,
    clean_other: FloatArray,
) -> FloatArray:
    """What a vector adds to the signal of "is there a thought in *your* mind?", beyond what it does
    to plain facts and to the same question about another assistant.

    Args:
        own: Signals of the question about itself, [note, cell, vector, wording].
        other: The same about another assistant.
        slopes: From `fact_slopes`, [note, cell, vector].
        clean_own: Without a vector, [note, wording].
        clean_other: The same about another assistant.

    Returns:
        [cell, vector, note, wording].
    """
    expected_own = slopes[..., None] * clean_own[:, None, None, :]
    expected_other = slopes[..., None] * clean_other[:, None, None, :]
    scores = (own - expected_own) - (other - expected_other)
    return np.moveaxis(scores, 0, 2)


def crossed_mean(values: FloatArray, *, unit: str) -> Estimate:
    """Mean of `values  # [concept, note, wording]` with a 95 % interval for new concepts
    and wordings.

    The variances of the means by concept and by wording are added, with Satterthwaite's degrees of
    freedom: a wording that moves all concepts alike is no finding about concepts. Notes are too few
    for a variance of their own.
    """
    mean = float(values.mean())
    if min(values.shape[0], values.shape[2]) < 2:
        reason = "an interval needs two concepts and two wordings"
        return undefined(reason, n=len(values), unit=unit, value=mean)
    parts = [
        _variance_of_mean(values.mean(axis=(1, 2))),
        _variance_of_mean(values.mean(axis=(0, 1))),
    ]
    return _with_interval(mean, parts, len(values), unit)


def crossed_difference(values: FloatArray, controls: FloatArray, *, unit: str) -> Estimate:
    """Mean of `values  # [concept, note, wording]` less that of `controls  # [control, note,
    wording]`, with a 95 % interval for new concepts, controls and wordings. What a note or a wording
    does to both falls out.
    """
    difference = float(values.mean() - controls.mean())
    if min(len(values), len(controls), values.shape[2]) < 2:
        reason = "an interval needs two concepts, two controls and two wordings"
        return undefined(reason, n=len(values), unit=unit, value=difference)
    differences = values.mean(axis=0) - controls.mean(axis=0)
    parts = [
        _variance_of_mean(values.mean(axis=(1, 2))),
        _variance_of_mean(controls.mean(axis=(1, 2))),
        _variance_of_mean(differences.mean(axis=0)),
    ]
    return _with_interval(difference, parts, len(values), unit)


def _variance_of_mean(values: FloatArray) -> tuple[float, float]:
    """Variance of the mean of independent values, and its degrees of freedom."""
    return float(values.var(ddof=1)) / len(values), len(values) - 1.0


def _with_interval(
    value: float, parts: Sequence[tuple[float, float]], count: int, unit: str
) -> Estimate:
    """A value with the 95 % interval of a sum of variances, each with its degrees of freedom
    (Satterthwaite).
    """
    variance = float(sum(part for part, _ in parts))
    df = float(min(part_df for _, part_df in parts))
    if variance > 0:
        df = variance**2 / sum(part**2 / part_df for part, part_df in parts)
    standard_error = float(np.sqrt(variance))
    half_width = t_quantile(df) * standard_error
    low, high = value - half_width, value + half_width
    return Estimate(value, low, high, count, unit, se=standard_error, df=df)


def sign_test(scores: FloatArray, passing: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Two-sided p of each cell: how often the largest t of all cells reaches as much under random
    signs of whole concepts.

    Choosing the cell on one half of the concepts and testing it on the other is anti-conservative.

    Args:
        scores: One score a concept, [cell, concept].
        passing: Cells that may decide, [cell].
        rng: Source of the signs.

    Returns:
        [cell]; NaN for cells that may not decide, or that lack a score.
    """
    usable = passing & np.isfinite(scores).all(axis=1)
    p_values = np.full(len(scores), np.nan)
    concepts = scores.shape[1]
    if usable.any() and concepts > 1:
        signs = rng.choice([-1.0, 1.0], size=(INJECTION_DRAWS, 1, concepts))
        drawn = _t_values(scores[usable] * signs).max(axis=-1)
        p_values[usable] = _two_sided_p_of_largest(_t_values(scores[usable]), drawn)
    return p_values


def _two_sided_p_of_largest(observed: FloatArray, drawn: FloatArray) -> FloatArray:
    """p of each observed value against the largest of each draw."""
    reaching_counts = (drawn[None, :] >= observed[:, None]).sum(axis=1)
    return np.asarray(np.minimum(1.0, 2 * p_among_draws(reaching_counts, len(drawn))))


def _t_values(scores: FloatArray) -> FloatArray:
    """Means over concepts in standard errors; scores of no spread count as a minute one."""
    count = scores.shape[-1]
    spread = scores.std(axis=-1, ddof=1)
    standard_errors = np.maximum(spread / np.sqrt(count), 1e-9)
    values: FloatArray = scores.mean(axis=-1) / standard_errors
    return values


def centred(log_probs: FloatArray) -> FloatArray:
    """Log-probabilities [cell, injected concept, named concept] less the means of rows and columns:
    what is left has no frequent words and no talkative vectors.
    """
    row_means = log_probs.mean(axis=2, keepdims=True)
    column_means = log_probs.mean(axis=1, keepdims=True)
    grand_means = log_probs.mean(axis=(1, 2), keepdims=True)
    residuals: FloatArray = log_probs - row_means - column_means + grand_means
    return residuals


def own_names(log_probs: FloatArray) -> FloatArray:
    """How much more probable each injected concept's own name is, [cell, concept]."""
    return np.diagonal(centred(log_probs), axis1=1, axis2=2)


def name_test(log_probs: FloatArray, passing: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Two-sided p of each cell: how often the most telling diagonal of all cells is as large under
    random orders of the names.

    Args:
        log_probs: [cell, injected concept, named concept].
        passing: Cells that may decide, [cell].
        rng: Source of the orders.

    Returns:
        [cell]; NaN for cells that may not decide, or that lack a value.
    """
    usable = passing & np.isfinite(log_probs).all(axis=(1, 2))
    p_values = np.full(len(log_probs), np.nan)
    concepts = log_probs.shape[1]
    if usable.any() and concepts > 2:
        matrices = centred(log_probs[usable])
        spread = np.sqrt((matrices**2).sum(axis=(1, 2)) / (concepts - 1)) / concepts
        scale = np.maximum(spread, 1e-9)
        observed = np.diagonal(matrices, axis1=1, axis2=2).mean(axis=1) / scale
        orders = rng.permuted(np.tile(np.arange(concepts), (INJECTION_DRAWS, 1)), axis=1)
        picked = matrices[:, np.arange(concepts), orders]  # [cell, draw, concept]
        drawn = (picked.mean(axis=-1) / scale[:, None]).max(axis=0)
        p_values[usable] = _two_sided_p_of_largest(observed, drawn)
    return p_values
