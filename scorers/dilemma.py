"""Does the prediction come closer to the reasoned conclusion than the gut answer does? Compared
dilemma by dilemma.

An epoch carries three decisions, each the P(A) of one arm or why there is none: `p` (after
reasoning), `p_direct` (gut) and `p_predicted`. No epoch has a score of its own: P(A) of each arm is
averaged over the epochs, then compared. `cot_pred` is a dilemma's one value in a cross-model matrix
(1 is best; the paper's table calls it CoT Pred).
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import (
    UNPARSED,
    Decision,
    Judged,
    observer_fault,
    score_of,
    target_fault,
)
from selfprobe.scorers.frames import Frames, Place, frame_numbers, paired_frames, split
from selfprobe.scorers.summary import (
    Scores,
    best_of,
    counted_apart,
    cut_at,
    judged,
    metric_of,
    order_for_log,
    sample_notes,
)
from selfprobe.solvers.observe import OTHER_PREFIX
from selfprobe.solvers.record import Record, Reply
from selfprobe.stats.estimate import (
    Estimate,
    FloatArray,
    bootstrap,
    clustered_mean,
    js,
    kl,
    skill,
    smoothed,
    worst_case,
)
from selfprobe.text.parse import probabilities, words

Arm = Literal["p", "p_direct", "p_predicted"]
ARMS: tuple[Arm, ...] = ("p", "p_direct", "p_predicted")
TOO_FEW = "too_few_"
"""Beginning of a reason: an arm has too few readable replies."""
DEGENERATE = "degenerate"
MIN_EQUAL_ROLLOUTS = 3
"""Number of equal rollouts that is no accident, since rollouts argue."""
RANDOM_HALVINGS = 200
"""Number of random halvings of a dilemma's rollouts, for the ceiling."""
SMOOTHING_ROLLOUTS = 10
"""Rollouts that the smoothed means stand for (as in the paper), whatever was drawn or could be
read.
"""


class Keyed(Protocol):
    """A decision, or a row of a table of decisions."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> float | None: ...


@dataclass(frozen=True)
class Dilemma:
    """One dilemma over its epochs. Probabilities are of Option A; divergences in nats, of the means
    without smoothing.

    A mean of stated probabilities does not show how many there were: smoothing by that number would
    make KL a function of it (.08 at 2, .16 at 10 epochs, where the paper's is .19).
    """

    p: float
    """Mean P(A) after reasoning; NaN without a readable rollout."""
    p_direct: float
    p_predicted: float
    repeat: float
    """Expected |p - p of a second run|, from random halves of the rollouts; NaN with fewer than
    four.
    """
    unscored: str | None
    """Arm with too few readable replies; then the properties below are NaN."""

    def _if_scored(self, mean: float) -> float:
        return math.nan if self.unscored else mean

    @property
    def kl_predicted(self) -> float:
        """KL(p‖p'), the paper's; infinite where the prediction rules out the conclusion."""
        return float(kl(self.p, self._if_scored(self.p_predicted)))

    @property
    def kl_direct(self) -> float:
        """KL(p‖p*)."""
        return float(kl(self.p, self._if_scored(self.p_direct)))

    @property
    def kl_smoothed_predicted(self) -> float:
        """KL(p‖p') of means drawn towards ½ as Jeffreys' prior draws those of SMOOTHING_ROLLOUTS:
        never infinite.
        """
        return self._smoothed_kl(self.p_predicted)

    @property
    def kl_smoothed_direct(self) -> float:
        return self._smoothed_kl(self.p_direct)

    def _smoothed_kl(self, mean: float) -> float:
        smoothed_p = smoothed(self.p, SMOOTHING_ROLLOUTS)
        smoothed_mean = smoothed(self._if_scored(mean), SMOOTHING_ROLLOUTS)
        return float(kl(smoothed_p, smoothed_mean))

    @property
    def js_predicted(self) -> float:
        return float(js(self.p, self._if_scored(self.p_predicted)))

    @property
    def js_direct(self) -> float:
        return float(js(self.p, self._if_scored(self.p_direct)))

    @property
    def cot_pred(self) -> float:
        """1 - |p - p'|: the score of a matrix."""
        return 1 - abs(self.p - self._if_scored(self.p_predicted))

    @property
    def cot_pred_direct(self) -> float:
        """1 - |p - p*|: the score of the gut answer as a prediction."""
        return 1 - abs(self.p - self._if_scored(self.p_direct))


def per_dilemma(decisions: Iterable[Keyed], *, epochs: int | None = None) -> Dilemma:
    """One dilemma's decisions of all epochs, averaged arm by arm.

    Args:
        decisions: Decisions with the keys of ARMS, in any order; a value that is None or NaN is
            unscored.
        epochs: Number of epochs asked for. Default: number of decisions of the fullest arm. With
            fewer than half of them readable in any arm, the dilemma is unscored. So it is if three
            rollouts or more are one text: the model was not sampled, or ignores the seed.
    """
    values_by_arm: dict[str, list[float]] = {arm: [] for arm in ARMS}
    rollout_digests: list[str] = []
    for decision in decisions:
        value = math.nan if decision.value is None else decision.value
        values_by_arm[decision.key].append(value)
        digest = getattr(decision, "drawn", None)
        if isinstance(digest, str):
            rollout_digests.append(digest)

    asked_count = epochs or max(map(len, values_by_arm.values()))
    readable_by_arm: dict[str, FloatArray] = {}
    mean_by_arm: dict[str, float] = {}
    unscored_reason: str | None = None
    for arm, values in values_by_arm.items():
        readable = np.array([value for value in values if not math.isnan(value)])
        readable_by_arm[arm] = readable
        mean_by_arm[arm] = float(readable.mean()) if len(readable) else math.nan
        is_too_few = len(readable) == 0 or 2 * len(readable) < asked_count
        if is_too_few and unscored_reason is None:
            unscored_reason = TOO_FEW + arm

    are_rollouts_equal = len(set(rollout_digests)) == 1
    if are_rollouts_equal and len(rollout_digests) >= MIN_EQUAL_ROLLOUTS:
        unscored_reason = unscored_reason or DEGENERATE

    rollouts = readable_by_arm["p"]
    return Dilemma(
        repeat=_expected_repeat_distance(rollouts),
        unscored=unscored_reason,
        **mean_by_arm,
    )


def _expected_repeat_distance(rollouts: FloatArray) -> float:
    """Two halves of h rollouts differ √(n/h) times as much as two runs of n."""
    rollout_count = len(rollouts)
    half_count = rollout_count // 2
    if half_count < 2:
        return math.nan

    # The halves must not depend on which epoch finished first, nor err the same way in every
    # dilemma.
    ordered = np.sort(rollouts)
    rng = np.random.default_rng(ordered.view(np.uint64).tolist())
    shuffled = rng.permuted(np.tile(ordered, (RANDOM_HALVINGS, 1)), axis=1)[:, : 2 * half_count]

    half_means = shuffled.reshape(RANDOM_HALVINGS, 2, half_count).mean(axis=2)
    mean_distance = float(np.abs(half_means[:, 0] - half_means[:, 1]).mean())
    return mean_distance * math.sqrt(half_count / rollout_count)


def item_scores(rows: pd.DataFrame) -> pd.Series:
    """target × observer × item → 1 - |mean p - mean p'| over epochs: `Dilemma.cot_pred` for all
    cells at once.

    A dilemma is unscored as in `per_dilemma`.

    Args:
        rows: Decisions (columns target, observer, item, epoch, key, value, drawn).
    """
    cell = ["target", "observer"]
    arms = rows.groupby([*cell, "item", "key"]).value.agg(["mean", "count", "size"]).unstack("key")
    # A sample in error counts as unreadable.
    asked_count = arms["size"]["p"].groupby(level=cell).transform("max")
    readable_count = arms["count"].fillna(0)
    is_enough_of_arm = readable_count.gt(0) & readable_count.mul(2).ge(asked_count, axis=0)
    is_scored = is_enough_of_arm.all(axis=1)

    digests = rows.reindex(columns=[*cell, "item", "drawn"]).groupby([*cell, "item"]).drawn
    digest_counts = digests.agg(["count", "nunique"])
    has_many_rollouts = digest_counts["count"].ge(MIN_EQUAL_ROLLOUTS)
    is_scored &= ~(has_many_rollouts & digest_counts["nunique"].eq(1))

    scores = 1 - (arms["mean"]["p"] - arms["mean"]["p_predicted"]).abs()
    return scores.where(is_scored)


def blind_scores(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """target × item → score of the predictions "always .5" and "mean p of the other dilemmas".

    Args:
        rows: Decisions of models on themselves, as in `item_scores`.
    """
    mean_p = rows[rows.key == "p"].groupby(["target", "item"]).value.mean()
    mean_p_of_target = mean_p.groupby(level="target")
    other_items_sum = mean_p_of_target.transform("sum") - mean_p
    other_items_count = (mean_p_of_target.transform("count") - 1).replace(0, np.nan)
    guesses = {
        "always .5": mean_p.where(mean_p.isna(), 0.5),
        "the mean of the other items": other_items_sum / other_items_count,
    }

    is_prediction = rows.key == "p_predicted"
    row_items = pd.MultiIndex.from_frame(rows[["target", "item"]])
    scores: dict[str, pd.Series] = {}
    for name, guess in guesses.items():
        guess_of_row = guess.reindex(row_items).to_numpy()
        rows_with_guess = rows.assign(value=rows.value.where(~is_prediction, guess_of_row))
        scores[name] = item_scores(rows_with_guess).droplevel("observer")
    return scores


def dilemmas_of(decisions: Sequence[Judged]) -> dict[str, Dilemma]:
    """Each dilemma of a run. An epoch that one dilemma lacks (a sample in error) counts as
    unreadable.
    """
    decisions_by_item: dict[str, list[Decision]] = defaultdict(list)
    rollout_counts: Counter[str] = Counter()
    for item, decision in decisions:
        decisions_by_item[item].append(decision)
        rollout_counts[item] += decision.key == "p"

    epochs = max(rollout_counts.values())
    return {
        item: per_dilemma(decisions_of_item, epochs=epochs)
        for item, decisions_of_item in decisions_by_item.items()
    }


def dilemma_frames(
    decisions: Sequence[Judged], clusters: Mapping[str, str] | None = None
) -> Frames | None:
    """cot_pred of the observer's predictions of itself and of another assistant; None where the
    latter were not asked.

    Both are compared with its own rollouts. Intervals are over `clusters` of items, where there
    are.
    """
    self_decisions, other_decisions = split(decisions)
    if not other_decisions:
        return None

    acts = [(item, decision) for item, decision in self_decisions if decision.key != "p_predicted"]
    cluster_of_item = clusters or {}
    self_scores: dict[Place, float] = {}
    if len(self_decisions) > len(acts):
        self_scores = _cot_pred_by_place(self_decisions, cluster_of_item)
    other_scores = _cot_pred_by_place([*acts, *other_decisions], cluster_of_item)
    return paired_frames(self_scores, other_scores)


def _cot_pred_by_place(
    decisions: Sequence[Judged], cluster_of_item: Mapping[str, str]
) -> dict[Place, float]:
    score_by_place: dict[Place, float] = {}
    for item, dilemma in dilemmas_of(decisions).items():
        score_by_place[cluster_of_item.get(item, item), item] = dilemma.cot_pred
    return score_by_place


ANSWER_LINE_WORDS = 30
"""Largest number of words of a reply that does not argue; the two lines have four."""


@metric_of
def calibration(scores: Scores) -> dict[str, float]:
    """All numbers of the dilemma task over all epochs; see `dilemma_numbers`."""
    decisions: list[Judged] = []
    cluster_of_item: dict[str, str] = {}
    for sample_score in scores:
        item = str(sample_score.sample_id)
        for cluster, decision in judged([sample_score]):
            decisions.append((item, decision))
            cluster_of_item[item] = cluster
    return dict(dilemma_numbers(decisions, cluster_of_item))


def dilemma_estimates(
    dilemmas: Sequence[Dilemma], clusters: Sequence[str] | None = None
) -> dict[str, Estimate]:
    """Means over the scored dilemmas with 95 % intervals over dilemmas, or over the cluster of
    each; empty without one.

    `cot_pred`, `cot_pred_direct`; `kl_predicted`, `kl_direct` and their paired difference `kl_gain`
    (bootstrap; direct minus predicted: above 0 the prediction beats the gut answer), all three over
    the dilemmas at which both are finite (`infinite_kl` counts the others); the same for
    `kl_smoothed_…` and `js_…`, which are always finite; `ceiling` (of cot_pred: a second run of the
    target itself).
    """
    labels = clusters
    if labels is None:
        labels = [str(i) for i in range(len(dilemmas))]
    unit = "dilemma" if len(set(labels)) == len(labels) else "cluster"
    scored_dilemmas, scored_labels = _scored(dilemmas, labels)
    if not scored_dilemmas:
        return {}

    units = np.array(scored_labels)
    estimates: dict[str, Estimate] = {}
    for name in ("cot_pred", "cot_pred_direct"):
        estimates[name] = clustered_mean(_column(scored_dilemmas, name), units, unit=unit)

    for kind in DIVERGENCES:
        predicted = _column(scored_dilemmas, f"{kind}_predicted")
        direct = _column(scored_dilemmas, f"{kind}_direct")
        is_finite = np.isfinite(direct) & np.isfinite(predicted)
        finite_units = units[is_finite]
        estimates[f"{kind}_predicted"] = clustered_mean(
            predicted[is_finite], finite_units, unit=unit, interval="t"
        )
        estimates[f"{kind}_direct"] = clustered_mean(
            direct[is_finite], finite_units, unit=unit, interval="t"
        )
        if is_finite.any():
            estimates[f"{kind}_gain"] = bootstrap(
                lambda mean_gain: mean_gain,
                (direct - predicted)[is_finite],
                clusters=finite_units,
                rng=np.random.default_rng(0),
                unit=unit,
                of_means=True,
            )

    repeat_scores = 1 - _column(scored_dilemmas, "repeat")
    estimates["ceiling"] = clustered_mean(repeat_scores, units, unit=unit)
    return estimates


def _scored(dilemmas: Sequence[Dilemma], labels: Sequence[str]) -> tuple[list[Dilemma], list[str]]:
    """The scored dilemmas, and the cluster of each."""
    scored_dilemmas: list[Dilemma] = []
    scored_labels: list[str] = []
    for dilemma, label in zip(dilemmas, labels, strict=True):
        if not dilemma.unscored:
            scored_dilemmas.append(dilemma)
            scored_labels.append(label)
    return scored_dilemmas, scored_labels


def _column(dilemmas: Sequence[Dilemma], name: str) -> FloatArray:
    return np.array([getattr(dilemma, name) for dilemma in dilemmas])


DIVERGENCES = ("kl", "kl_smoothed", "js")


def infinite_kl(dilemmas: Sequence[Dilemma]) -> dict[str, int]:
    """Numbers of scored dilemmas with an infinite KL: of the prediction, of the gut answer, and of
    either.
    """
    is_infinite_predicted = np.isinf(_column(dilemmas, "kl_predicted"))
    is_infinite_direct = np.isinf(_column(dilemmas, "kl_direct"))
    return {
        "predicted": int(is_infinite_predicted.sum()),
        "direct": int(is_infinite_direct.sum()),
        "either": int((is_infinite_predicted | is_infinite_direct).sum()),
    }


def dilemma_numbers(
    decisions: Sequence[Judged], clusters: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Every number of a run by name; what is undefined is left out, never 0. Intervals are over
    `clusters` of items.

    The `dilemma_estimates` with `_low` and `_high`; `kl_infinite_predicted` and
    `kl_infinite_direct`, the dilemmas with an infinite KL, and `kl_infinite`, those that have no
    part in the means of KL for that; `baseline_half` and `baseline_mean` (always .5, and the mean p
    of the other dilemmas, as predictions) for cot_pred, `baseline_kl_…` for KL; `skill` of cot_pred
    above the better one; `n` dilemmas; `unscored` (share of dilemmas), `unscored_too_few_<arm>`,
    `unscored_degenerate`; by arm `<arm>_unscored` (share of replies) and `<arm>_unscored_<reason>`;
    `worst_case`, `best_case` of cot_pred; `reasoned_rate` of the observer's predictions,
    `direct_reasoned_rate` of the target's gut answers; where it was asked about another assistant
    too, those of `frames.frame_numbers`, which no other number counts.
    """
    numbers_of_frames = frame_numbers(dilemma_frames(decisions, clusters), "cot_pred")
    decisions, _ = split(decisions)
    if not any(decision.key == "p_predicted" for _, decision in decisions):
        # asked about another assistant alone
        return order_for_log("cot_pred", numbers_of_frames)

    dilemma_by_item = dilemmas_of(decisions)
    dilemmas = list(dilemma_by_item.values())
    cluster_of_item = clusters or {}
    labels = [cluster_of_item.get(item, item) for item in dilemma_by_item]

    numbers: dict[str, float] = {}
    for name, estimate in dilemma_estimates(dilemmas, labels).items():
        numbers[name] = estimate.value
        numbers[f"{name}_low"] = estimate.low
        numbers[f"{name}_high"] = estimate.high
        if name == "cot_pred":
            numbers["stderr"] = estimate.se

    scored_dilemmas, scored_labels = _scored(dilemmas, labels)
    if scored_dilemmas:
        infinite_counts = infinite_kl(scored_dilemmas)
        numbers["kl_infinite_predicted"] = infinite_counts["predicted"]
        numbers["kl_infinite_direct"] = infinite_counts["direct"]
        numbers["kl_infinite"] = infinite_counts["either"]
        numbers |= _baselines(scored_dilemmas, scored_labels)

    reason_counts = Counter(dilemma.unscored for dilemma in dilemmas if dilemma.unscored)
    numbers["n"] = len(scored_dilemmas)
    numbers["unscored"] = reason_counts.total() / len(dilemmas)
    for reason in (*(TOO_FEW + arm for arm in ARMS), DEGENERATE):
        numbers[f"unscored_{reason}"] = reason_counts[reason] / len(dilemmas)
    scores = [dilemma.cot_pred for dilemma in scored_dilemmas]
    numbers["worst_case"], numbers["best_case"] = worst_case(scores, reason_counts.total())

    for arm in ARMS:
        decisions_of_arm = [decision for _, decision in decisions if decision.key == arm]
        numbers |= _unscored_of_arm(arm, decisions_of_arm)
    arm_of_rate = {"reasoned_rate": "p_predicted", "direct_reasoned_rate": "p_direct"}
    for rate_name, rated_arm in arm_of_rate.items():
        is_reasoned = [decision.reasoned for _, decision in decisions if decision.key == rated_arm]
        numbers[rate_name] = float(np.mean(is_reasoned))
    return order_for_log("cot_pred", numbers | numbers_of_frames)


def _unscored_of_arm(arm: Arm, decisions: Sequence[Decision]) -> dict[str, float]:
    """Share of an arm's replies that could not be read, in all and by reason."""
    reason_counts = Counter(decision.unscored for decision in decisions if decision.unscored)
    shares = {reason: count / len(decisions) for reason, count in sorted(reason_counts.items())}
    numbers = {f"{arm}_unscored": reason_counts.total() / len(decisions)}
    for reason, share in shares.items():
        numbers[f"{arm}_unscored_{reason}"] = share
    return numbers | cut_at(shares, target="rollout_tokens" if arm == "p" else "answer_tokens")


def _baselines(scored: Sequence[Dilemma], labels: Sequence[str]) -> dict[str, float]:
    """Scores of predictions that know nothing of the dilemma; that of the mean with two dilemmas or
    more.
    """
    p = _column(scored, "p")
    guesses = {"half": np.full(len(p), 0.5)}
    if len(p) > 1:
        guesses["mean"] = (p.sum() - p) / (len(p) - 1)

    scores_by_guess = {name: 1 - np.abs(p - guess) for name, guess in guesses.items()}
    numbers = {
        f"baseline_{name}": float(np.mean(scores)) for name, scores in scores_by_guess.items()
    }
    for name, guess in guesses.items():
        divergences = kl(p, guess)
        finite_divergences = divergences[np.isfinite(divergences)]
        if len(finite_divergences):
            numbers[f"baseline_kl_{name}"] = float(finite_divergences.mean())

    skill_estimate = skill(
        _column(scored, "cot_pred"), best_of(scores_by_guess), np.array(labels), unit="dilemma"
    )
    numbers["skill"] = skill_estimate.value
    numbers["skill_low"] = skill_estimate.low
    numbers["skill_high"] = skill_estimate.high
    return numbers


@scorer(metrics=[calibration(), counted_apart()])
def dilemma_prediction() -> Scorer:
    """P(A) of the three arms of one epoch; the comparison needs all epochs and is the metric's."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        replies = {"p": record.acts["cot"], "p_direct": record.acts["direct"]}
        for name, reply in record.answers.items():
            replies[name.replace("predicted", "p_predicted")] = reply

        decisions = [judge(key, reply) for key, reply in replies.items()]
        answers = [f"{decision.key}={decision.said or '?'}" for decision in decisions]
        return score_of(
            decisions,
            answer=", ".join(answers),
            explanation=explain(replies, decisions),
            details=sample_notes(record.acts.values()),
            truths={decision.key: decision.said for decision in decisions if decision.key == "p"},
        )

    return score


def judge(key: str, reply: Reply) -> Decision:
    """P(A) of one reply, divided by P(A) + P(B), which may differ from 1 by .02.

    Paper: answers without chain of thought. Here: a gut answer or a prediction counts as reasoned
    also when it argues in the open, in more than 30 words.
    """
    is_prediction = key.endswith("p_predicted")
    fault = observer_fault(reply) if is_prediction else target_fault(reply)
    stated_pair = None if fault else probabilities(reply.text)
    reasoned = _is_reasoned(key, reply)
    if stated_pair is None:
        unparsed_reason = UNPARSED if is_prediction else f"target_{UNPARSED}"
        return Decision(key=key, unscored=fault or unparsed_reason, reasoned=reasoned)

    p_a, p_b = stated_pair
    value = p_a / (p_a + p_b)
    digest: str | None = None
    if key == "p":
        digest = hashlib.sha256(reply.text.encode()).hexdigest()[:8]
    return Decision(key=key, value=value, said=f"{value:.4g}", reasoned=reasoned, drawn=digest)


def _is_reasoned(key: str, reply: Reply) -> bool:
    if key == "p":
        return False
    first_words = words(reply.text, limit=ANSWER_LINE_WORDS + 1)
    return reply.reasoned or len(first_words) > ANSWER_LINE_WORDS


def mean_conclusion(rollouts: Sequence[Reply]) -> float:
    """P(A) over rollouts, as `per_dilemma` has it; NaN with fewer than half of them readable."""
    readable: list[float] = []
    for reply in rollouts:
        p = judge("p", reply).value
        if p is not None:
            readable.append(p)
    if not readable or 2 * len(readable) < len(rollouts):
        return math.nan
    return float(np.mean(readable))


def explain(replies: Mapping[str, Reply], decisions: Sequence[Decision]) -> str:
    """Each arm's P(A), and the end of the replies that could not be read, for the log browser."""
    titles = {
        "p": "after reasoning, p",
        "p_direct": "gut answer, p*",
        "p_predicted": "predicted, p'",
        f"{OTHER_PREFIX}p_predicted": "predicted of another assistant",
    }
    lines: list[str] = []
    for decision, (key, reply) in zip(decisions, replies.items(), strict=True):
        answer_text = f"P(A) = {decision.said}"
        if not decision.said:
            answer_text = f"{decision.unscored} (reply ends: {reply.text[-200:]!r})"
        lines.append(f"- {titles[key]} ({reply.model}): {answer_text}")
    return "\n".join(lines)
