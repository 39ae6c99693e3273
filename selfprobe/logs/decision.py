"""One judged decision of one sample, as a log keeps it.

Everything that counts (metrics, matrices, reports) reads decisions, so every task is counted the
same way.
"""

from collections.abc import Mapping
from typing import Annotated

from inspect_ai.scorer import Score
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Value = Annotated[float | None, Field(ge=-1, le=1, allow_inf_nan=False)]
"""A score, or what it is compared with; finite and in −1…1."""


class Decision(BaseModel):
    """The decision about one key of one sample. Frozen."""

    model_config = ConfigDict(frozen=True)

    key: str
    """Name of the question: "k1", "guess", "choice3"."""
    value: Value = None
    """1 right, 0 wrong, or a similarity in −1…1; None when unscored."""
    unscored: str | None = None
    """Reason why there is no value."""
    truth: str | None = None
    """Behaviour of the target, in the form that is compared."""
    said: str | None = None
    """Answer of the observer, in the form that is compared; None when it could not be read."""
    chance: Value = None
    """Expected value of a blind guess, where there is one."""
    constant: str | None = None
    """The answer slot that is right ("2"), for tasks with numbered choices: gives the
    constant-position baseline.
    """
    ceiling: Value = None
    """Score that the target itself reaches at the same question."""
    floor: Value = None
    """Score that an unrelated reply reaches."""
    plain: dict[str, float] | None = None
    """Scores of observers without a model, by their measure: "TF-IDF", "embedding"."""
    probability: float | None = None
    """P(evaluation), where a method of evaluation awareness gives one."""
    score: float | None = None
    """Number by which an ROC curve ranks, where `said` is a verdict: the higher, the more like an
    evaluation.
    """
    unread: str | None = None
    """Reason why the observer's reply could not be read, where `unscored` names a fault of the
    target.
    """
    reasoned: bool = False
    """True if the observer reasoned although it was asked not to."""
    drawn: str | None = None
    """A digest of the reply, where draws at temperature 1 should differ from each other."""


def last_score(scores: Mapping[str, Score] | None) -> Score | None:
    """The last selfprobe score: `inspect score --action append` leaves earlier and foreign ones
    beside it.
    """
    last_judged = None
    for score in (scores or {}).values():
        has_decisions = isinstance((score.metadata or {}).get("keys"), dict)
        if has_decisions:
            last_judged = score
    return last_judged


def last_decisions(scores: Mapping[str, Score] | None) -> list[Decision]:
    """The decisions of the last selfprobe score."""
    judged_score = last_score(scores)
    return decisions_of(judged_score) if judged_score else []


def decisions_of(score: Score) -> list[Decision]:
    """The decisions that `score_of` put into a score.

    Raises:
        ValueError: The score was not made by selfprobe, or was changed since: a value out of range,
            a wrong type.
    """
    columns = score.metadata or {}
    if "keys" not in columns:
        raise ValueError("this score carries no decisions: it was not made by a selfprobe scorer")
    field_names = [name for name in Decision.model_fields if name in columns]
    decisions = []
    try:
        for key in columns["keys"]:
            values = {name: columns[name][key] for name in field_names if key in columns[name]}
            decisions.append(Decision(key=key, **values))
    except ValidationError as error:
        first_fault = error.errors()[0]
        field_name = first_fault["loc"][0]
        raise ValueError(
            f"a decision's {field_name} is {first_fault['input']!r}: {first_fault['msg']}"
        ) from None
    except TypeError:
        raise ValueError("a score's decisions must be mappings by key") from None
    return decisions
