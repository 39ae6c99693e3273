"""A task's own description (`MEASURE`), how its scorer decides, and the Score that carries a
sample's decisions.

A task with a `MEASURE` is in `selfprobe matrix`, its report and the diversity table without another
line elsewhere.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score

from selfprobe.errors.inspect_private import set_logged_target
from selfprobe.logs.decision import Decision as Decision
from selfprobe.logs.decision import Value as Value
from selfprobe.logs.decision import decisions_of as decisions_of
from selfprobe.logs.decision import last_decisions as last_decisions
from selfprobe.logs.decision import last_score as last_score
from selfprobe.solvers.record import REASONS, Reply

if TYPE_CHECKING:
    import pandas as pd

Right = Callable[[str, str], bool]
"""Function: whether the observer's answer is right, given the truth; both in the form that is
compared.
"""

Side = Literal["target", "observer"]


@dataclass(frozen=True)
class Measure:
    """Description of a task for the matrix. One sample is one item."""

    acts: tuple[str, ...]
    """Acts that show the target's own way: not its repeats, nor its replies to an observer's
    prompt.
    """
    observer: int = 0
    """Largest number of observer calls per item of another target. With 0 its prompt does not hold
    the target's text: its answers about itself are compared with the other's acts, without a run.
    """
    target: int = 0
    """Number of target calls per item of such a cell."""
    rounds: int = 1
    """Number of successive rounds of calls in a run on itself: each is a batch that waits for the
    one before.
    """
    text_tells: bool = True
    """Whether an item's text can show its truth. False where the text is the truth, or the truth a
    shuffled slot.
    """
    right: Right = operator.eq
    """Grading rule of a prediction; the scorer and every baseline use it."""
    chance: Callable[[Mapping[str, Any]], float] = lambda given: 0.0
    """Function from the task's arguments to the score of a blind guess; 0 where it is unknown
    before a run.
    """
    replies: str = "replies"
    """Readers' word for the truths: words, choices."""
    act: tuple[str, str] | None = None
    """The decision in which a target acts, and the one that predicts it, where they are separate.
    """
    sides: Mapping[str, Side] = field(default_factory=dict, hash=False)
    """Decisions that only one side makes, by key; any other takes a truth from the target and a
    prediction.
    """
    item_scores: "Callable[[pd.DataFrame], pd.Series] | None" = None
    """Function: task's decisions → score by target × observer × item. Default: the mean of an
    item's scored values.
    """
    blind: "Callable[[pd.DataFrame], Mapping[str, pd.Series]] | None" = None
    """Function: decisions of models on themselves → name → target × item → score of predictions
    that know nothing of the item; for truths that are no word or slot.
    """
    frames: Callable[[Sequence[Any]], Any] | None = None
    """Function: an item's decisions → `scorers.frames.Frames`, for a task with `about` whose score
    is no mean of its values. None: `scorers.frames.frames`.
    """
    others: Callable[[Sequence[EvalSample]], Mapping[str, tuple[float, float]]] | None = None
    """Function: samples of a run on itself → item → mean and largest similarity of its reply to the
    other items'.
    """
    graded: bool = True
    """Whether a decision is right or wrong, not a similarity or a distance."""
    act_only: frozenset[str] = frozenset()
    """Task arguments that only a recorded act depends on."""
    by_name: bool = False
    """Whether a matrix runs it only where `--tasks` names it."""


UNPARSED = "invalid_response_format"

Judged = tuple[str, Decision]
"""The item (sample id) and one decision about it."""


def target_fault(reply: Reply) -> str | None:
    """Reason why a target's reply is no truth to compare with, or None."""
    return f"target_{REASONS[reply.problem]}" if reply.problem else None


def observer_fault(reply: Reply) -> str | None:
    """Reason why an observer's reply cannot be used, or None."""
    return REASONS[reply.problem] if reply.problem else None


def prediction(
    key: str,
    reply: Reply | None,
    *,
    truth: str | None,
    fault: str | None,
    parse_answer: Callable[[str], str | None],
    right: Right = operator.eq,
    chance: Value = None,
    constant: str | None = None,
    ceiling: float | None = None,
) -> Decision:
    """One prediction of the observer, compared with the target's act.

    Args:
        key: Key of the decision.
        reply: The observer's reply; None where it was not asked, since the target's act cannot be
            played.
        truth: The target's act; None with a fault that hides it.
        fault: Reason why there is nothing to compare with, or None.
        parse_answer: Function from the reply's text to the prediction in the form that is compared; None if
            unreadable.
        right: The grading rule.
        chance: See `Decision`, as for the others.
    """
    predicted_answer: str | None = None
    unread_reason: str | None = None
    if reply is not None:
        if not reply.problem:
            predicted_answer = parse_answer(reply.text)
        if predicted_answer is None:
            unread_reason = observer_fault(reply) or UNPARSED
    unscored_reason = fault or unread_reason

    value: float | None = None
    if not unscored_reason:
        assert predicted_answer is not None, f"{key}: a good act was not shown to the observer"
        assert truth is not None, f"{key}: a good act was not shown to the observer"
        value = float(right(predicted_answer, truth))

    return Decision(
        key=key,
        value=value,
        unscored=unscored_reason,
        unread=unread_reason if fault else None,
        truth=truth,
        said=predicted_answer,
        chance=chance,
        constant=constant,
        ceiling=ceiling,
        reasoned=reply is not None and reply.reasoned,
    )


def predictions(decisions: Sequence[Decision]) -> str:
    """Predictions with their truths, for the log browser's list of samples: "k1 the (truth: a)"."""
    prediction_texts = [
        f"{decision.key} {decision.said or '?'} (truth: {decision.truth or '?'})"
        for decision in decisions
    ]
    return ", ".join(prediction_texts)


def outcome(decision: Decision, reply: Reply | None) -> str:
    """Right, wrong or the reason for neither, with the raw reply where it could not be read; for
    the log browser.
    """
    verdict = decision.unscored
    if not verdict:
        verdict = "right" if decision.value else "wrong"

    if reply is None or decision.said is not None:
        return verdict
    return f"{verdict} (reply: {reply.text[:200]!r})"


def target_in_log(truth_by_key: Mapping[str, str | None]) -> str | list[str]:
    """Truths as a sample's target: the truth of one key; of several each with its key, "?" where it
    is unknown; "" without any.

    >>> target_in_log({"guess": "lamp"}), target_in_log({"k1": "the", "k2": None})
    ('lamp', ['k1: the', 'k2: ?'])
    """
    if not any(truth_by_key.values()):
        return ""
    if len(truth_by_key) == 1:
        [truth] = truth_by_key.values()
        return truth or ""
    return [f"{key}: {truth or '?'}" for key, truth in truth_by_key.items()]


def score_of(
    decisions: Sequence[Decision],
    *,
    answer: str | None,
    explanation: str,
    details: Mapping[str, Any] | None = None,
    truths: Mapping[str, str | None] | None = None,
) -> Score:
    """The Score of a sample: a value a key (NaN where unscored), and the decisions as metadata.

    In a run the truths become the target of the sample in Inspect's log, where its data have none.

    The metadata holds a small dict for each field rather than a list of decisions: a log's
    summaries, which tables are read from, keep only entries under 1 kB. `details` are added, for a
    metric or a reader of the log. `truths` are those of the target, where decisions name none.
    """
    truth_by_key = truths or {decision.key: decision.truth for decision in decisions}
    set_logged_target(target_in_log(truth_by_key))

    is_scored = {decision.key: decision.value is not None for decision in decisions}
    columns: dict[str, dict[str, object]] = {"keys": dict(is_scored)}
    values: dict[str, float] = {}
    reasons: list[str] = []

    for decision in decisions:
        values[decision.key] = math.nan if decision.value is None else decision.value
        if decision.unscored:
            reasons.append(decision.unscored)
        set_fields = decision.model_dump(exclude_defaults=True, exclude={"key"})
        for field_name, field_value in set_fields.items():
            columns.setdefault(field_name, {})[decision.key] = field_value

    all_unscored = bool(reasons) and len(reasons) == len(decisions)
    return Score(
        value=dict(values),
        answer=answer,
        explanation=explanation,
        reason=reasons[0] if all_unscored else None,
        metadata={**columns, **(details or {})},
    )
