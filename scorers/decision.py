"""How a scorer decides, and the Score that carries a sample's decisions (`selfprobe.logs.decision`)."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inspect_ai.scorer import Score

from selfprobe.logs.decision import Decision as Decision
from selfprobe.logs.decision import Value as Value
from selfprobe.logs.decision import decisions_of as decisions_of
from selfprobe.logs.decision import last_decisions as last_decisions
from selfprobe.logs.decision import last_score as last_score
from selfprobe.scorers.measure import Right
from selfprobe.solvers.record import REASONS, Reply

UNPARSED = "invalid_response_format"
NO_PREDICTION = "no_prediction"
"""Of logs of version 0.1.0, which keep one reason where both sides failed."""


Judged = tuple[str, Decision]
"""The item (sample id) and one decision about it."""


def target_fault(reply: Reply) -> str | None:
    """Why a target's reply is no truth to compare with, or None."""
    return f"target_{REASONS[reply.problem]}" if reply.problem else None


def observer_fault(reply: Reply) -> str | None:
    """Why an observer's reply says nothing, or None."""
    return REASONS[reply.problem] if reply.problem else None


def prediction(
    key: str,
    reply: Reply | None,
    *,
    truth: str | None,
    fault: str | None,
    read: Callable[[str], str | None],
    right: Right = operator.eq,
    chance: Value = None,
    constant: str | None = None,
    ceiling: float | None = None,
) -> Decision:
    """One prediction of the observer, held against what the target did.

    Args:
        key: What was asked.
        reply: The observer's; None where it was not asked, since the target's act cannot be played.
        truth: What the target did; None with a fault that hides it.
        fault: Why there is nothing to compare with, or None.
        read: From the reply's text to the prediction in the form that is compared; None for what cannot be read.
        right: The grading rule.
        chance: See `Decision`, as for the rest.
    """
    said = None if reply is None or reply.problem else read(reply.text)
    unread = None if said is not None or reply is None else observer_fault(reply) or UNPARSED
    unscored = fault or unread
    assert unscored or (said is not None and truth is not None), f"{key}: a good act was not shown to the observer"
    return Decision(
        key=key,
        value=None if unscored else float(right(str(said), str(truth))),
        unscored=unscored,
        unread=unread if fault else None,
        truth=truth,
        said=said,
        chance=chance,
        constant=constant,
        ceiling=ceiling,
        reasoned=reply is not None and reply.reasoned,
    )


def crossed_pairs(of_target: Decision, of_observer: Decision, right: Right) -> Decision:
    """The observer's prediction of itself, held against the same item's truth of another target.

    Both are decisions of models on themselves, with one key. Faults of either side stay reasons.
    """
    hidden = of_target.truth is None or of_target.unread or of_target.said is not None
    fault = of_target.unscored if hidden else None
    own = of_observer.unscored if of_observer.truth is not None else None
    missing = of_observer.unread or own or NO_PREDICTION
    unscored = fault or (missing if of_observer.said is None else None)
    value = None if unscored else float(right(str(of_observer.said), str(of_target.truth)))
    told = {"said": of_observer.said, "unread": None, "reasoned": of_observer.reasoned}
    return of_target.model_copy(update={"value": value, "unscored": unscored, **told})


def predictions(decisions: Sequence[Decision]) -> str:
    """What was predicted, each with its truth, for the log browser's list of samples: "k1 the (truth: a)"."""
    return ", ".join(f"{d.key} {d.said or '?'} (truth: {d.truth or '?'})" for d in decisions)


def outcome(decision: Decision, reply: Reply | None) -> str:
    """Right, wrong or why neither, with the raw reply where it could not be read; for the log browser."""
    verdict = decision.unscored or ("right" if decision.value else "wrong")
    return verdict + (f" (reply: {reply.text[:200]!r})" if reply is not None and decision.said is None else "")


def score_of(
    decisions: Sequence[Decision], *, answer: str | None, explanation: str, details: Mapping[str, Any] | None = None
) -> Score:
    """The Score of a sample: a value a key (NaN where unscored), and the decisions as metadata.

    The metadata holds a small dict for each field rather than a list of decisions: a log's summaries, which tables
    are read from, keep only entries under 1 kB. `details` stand beside them, for a metric or a reader of the log.
    """
    reasons = [d.unscored for d in decisions if d.unscored]
    columns: dict[str, dict[str, object]] = {"keys": {d.key: d.value is not None for d in decisions}}
    for decision in decisions:
        for field, value in decision.model_dump(exclude_defaults=True, exclude={"key"}).items():
            columns.setdefault(field, {})[decision.key] = value
    return Score(
        value={d.key: math.nan if d.value is None else d.value for d in decisions},
        answer=answer,
        explanation=explanation,
        reason=reasons[0] if len(reasons) == len(decisions) and reasons else None,
        metadata={**columns, **(details or {})},
    )
