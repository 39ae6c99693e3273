"""Does a model know the answers that nobody else gives as well as those that others give too?

One strong model among weak ones that share their wrong answers predicts itself best of all, though
it only predicts what it would answer itself. Its advantage ends where its answers do: some of the
others find them too, now and then. Access shows at any answer.

Of a model's own replies the *support* is the number of other models that gave the same reply or
predicted it. At replies of each support, r is the share that it predicted, b the share that it
predicted of other models' replies of that support, and (r - b) / (1 - b) is what it knows of the
rest. A model goes beyond strength where

- it knows of the replies without support clearly more than `MUCH` of what it knows of those with
  little, of one model more to half of the models more; or
- f(0), its hits without support, are more than the fall of the others makes expected,
  f(1)² / f(2): difficulty alone lets hits thin out as evenly.

Where only the others' predictions are known, they are the support, if the scores behave as equal
answers do: who predicts a's answer, and b who predicts the same answer of one's own, agree.
Two answers alone cannot be told apart in this way. Rates are in docs/statistics.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from selfprobe.stats.estimate import BoolArray, Estimate, FloatArray

MUCH = 0.8
"""Share of what it knows of replies with little support that it must know of those without."""
CLEAR_ERRORS = 1.3
"""Standard errors by which it must know more than that. Both were set by hand, for 5 % of the
matrices of a strong model among weak ones.
"""
LONE_SHARE = 0.1
"""Least share of the replies that are compared as lone: where fewer have no support, those with the
least are.
"""
EQUAL_ANSWERS = 0.95
"""Share of the inferred agreements from which scores behave as equal answers do."""
TWO_ANSWERS = 0.9
"""Share of pairs of replies, both unlike a third, that are alike, from which there are two answers.
"""


@dataclass(frozen=True)
class LoneAnswers:
    """What one model knows of its own answers that nobody else gives."""

    difference: Estimate
    """What it knows of replies without support less what it knows of those with little support."""
    clearness: float
    """What it knows without support above `MUCH` of what it knows with little, in standard errors."""
    thinning_p: float
    """One-sided p that its hits without support are more than the fall of the others makes
    expected.
    """

    def is_beyond_strength(self, alpha: float) -> bool:
        """Whether a model as strong would not have these hits."""
        return self.thinning_p < alpha or self.clearness > CLEAR_ERRORS


def lone_answers(scores: FloatArray, stand_ins: FloatArray | None) -> tuple[LoneAnswers, ...]:
    """What each model knows of lone answers; none where these scores cannot tell it.

    Args:
        scores: Shares of right predictions, [target, observer, item]; NaN where unscored. Four
            models or more.
        stand_ins: Scores of other models' replies as predictions, [target, other model, item], of
            which the models of the matrix come first; None where replies cannot stand in.
    """
    is_scored = ~np.isnan(scores)
    hits = np.where(is_scored, scores, 0.0)
    if stand_ins is None:
        if not are_equal_answers(hits):
            return ()
        same_replies = np.zeros_like(hits)
    else:
        same_replies = np.nan_to_num(stand_ins)
        if has_two_answers(same_replies[:, : len(hits)]):
            return ()
    return tuple(
        _lone_answers_of(model, hits, is_scored, same_replies) for model in range(len(hits))
    )


def are_equal_answers(hits: FloatArray) -> bool:
    """Whether own hits [target, observer, item] tell who agrees with whom.

    A model that predicts itself, and predicts a, and is predicted by b: then b predicts a.
    """
    diagonal = np.arange(len(hits))
    own_hits = hits[diagonal, diagonal]
    others = hits.copy()
    others[diagonal, diagonal] = 0
    inferred = agreed = 0.0
    for model in diagonal:
        pairs = np.einsum("k,ak,bk->ab", own_hits[model], others[:, model], others[model])
        agreeing = np.einsum(
            "k,ak,bk,abk->ab", own_hits[model], others[:, model], others[model], others
        )
        inferred += pairs.sum() - np.trace(pairs)
        agreed += agreeing.sum()
    return bool(inferred > 0 and agreed >= EQUAL_ANSWERS * inferred)


def has_two_answers(same_replies: FloatArray) -> bool:
    """Whether two replies that differ from a third are alike, [target, other model, item]."""
    is_other = ~np.eye(len(same_replies), dtype=bool)
    both_differ = equal_pairs = 0.0
    for model in range(len(same_replies)):
        differs = (1 - same_replies[model]) * is_other[model][:, None]
        pairs = np.einsum("ak,bk->ab", differs, differs)
        both_differ += pairs[is_other].sum()
        equal_pairs += np.einsum("ak,bk,abk->ab", differs, differs, same_replies)[is_other].sum()
    return bool(both_differ > 0 and equal_pairs >= TWO_ANSWERS * both_differ)


def _lone_answers_of(
    model: int, hits: FloatArray, is_scored: BoolArray, same_replies: FloatArray
) -> LoneAnswers:
    own_support = support_shares(model, model, hits, same_replies) * is_scored[model, model]
    own_hits = own_support * hits[model, model]
    other_support = np.zeros_like(own_support)
    other_hits = np.zeros_like(own_support)
    for target in range(len(hits)):
        if target != model:
            support = support_shares(target, model, hits, same_replies) * is_scored[target, model]
            other_support += support
            other_hits += support * hits[target, model]

    reply_counts = np.cumsum(own_support.sum(axis=1))
    unsupported_counts = slice(0, int(np.argmax(reply_counts >= LONE_SHARE * reply_counts[-1])) + 1)
    little_supported_counts = slice(
        unsupported_counts.stop, unsupported_counts.stop + len(hits) // 2
    )
    known_share_unsupported, unsupported_variance = _known_share(
        float(own_hits[unsupported_counts].sum()),
        float(own_support[unsupported_counts].sum()),
        float(other_hits[unsupported_counts].sum()),
        float(other_support[unsupported_counts].sum()),
    )
    known_share_supported, supported_variance = _known_share(
        float(own_hits[little_supported_counts].sum()),
        float(own_support[little_supported_counts].sum()),
        float(other_hits[little_supported_counts].sum()),
        float(other_support[little_supported_counts].sum()),
    )
    value = known_share_unsupported - known_share_supported
    half_width = float(special.ndtri(0.975)) * math.sqrt(unsupported_variance + supported_variance)
    lone_reply_count = round(own_support[unsupported_counts].sum())
    difference = Estimate(value, value - half_width, value + half_width, lone_reply_count, "reply")
    standard_error = math.sqrt(unsupported_variance + MUCH**2 * supported_variance)
    return LoneAnswers(
        difference=difference,
        clearness=(known_share_unsupported - MUCH * known_share_supported) / standard_error,
        thinning_p=_thinning_p(*own_hits[:3].sum(axis=1)),
    )


def support_shares(
    target: int, observer: int, hits: FloatArray, same_replies: FloatArray
) -> FloatArray:
    """Share [number of supporting models, item] of an item's questions of the target that have this
    support of models that are neither the target nor the observer.

    Args:
        target: Index of the model that replied.
        observer: Index of the model that is asked about.
        hits: Scores [target, observer, item]; 0 where unscored.
        same_replies: [target, other model, item]; 0 where unknown.
    """
    supports = same_replies[target].copy()
    model_count = hits.shape[1]
    supports[:model_count] = np.maximum(supports[:model_count], hits[target])
    others = [
        model_index for model_index in range(len(supports)) if model_index not in (target, observer)
    ]
    shares = np.zeros((len(supports), hits.shape[2]))
    shares[0] = 1
    for support in supports[others]:
        with_one_more = shares[:-1] * support
        shares *= 1 - support
        shares[1:] += with_one_more
    return shares


def _known_share(
    own_hits: float, own_count: float, other_hits: float, other_count: float
) -> tuple[float, float]:
    """(r - b) / (1 - b) and its variance; half a reply each way keeps shares off 0 and 1."""
    share = (own_hits + 0.5) / (own_count + 1)
    base = (other_hits + 0.5) / (other_count + 1)
    share_variance = share * (1 - share) / (own_count + 1)
    base_variance = base * (1 - base) / (other_count + 1)
    slope_of_base = (1 - share) / (1 - base)
    variance = (share_variance + slope_of_base**2 * base_variance) / (1 - base) ** 2
    return (share - base) / (1 - base), variance


def _thinning_p(alone: float, with_one: float, with_two: float) -> float:
    """One-sided p of hits without support, with that of one model and of two; counts are Poisson's.

    One is added to the counts of the ratio, which keeps it finite.
    """
    ratio = (with_one + 1) / (with_two + 1)
    expected = with_one * ratio
    variance = alone + 4 * ratio**2 * with_one + ratio**4 * with_two + 0.25
    return float(special.ndtr((expected - alone) / math.sqrt(variance)))
