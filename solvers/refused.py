"""A vendor that refuses a call for good is told of once; a model that refuses every call is asked no more in that run.

What an error would meet again, whatever is tried: a wrong key, model or account, a bad request. Not a vendor that is
busy or away, which Inspect tries again.
"""

import logging
import re
from dataclasses import dataclass, field
from types import TracebackType
from weakref import WeakKeyDictionary

from inspect_ai.model import GenerateConfig, Model, ModelAPI

from selfprobe.errors import one_line
from selfprobe.errors.inspect_private import sample_active
from selfprobe.solvers.objection import gist, objection, told
from selfprobe.solvers.received import came_of_a_response, words_of

ENOUGH = 3
"""Samples that a model refused in the same words before it is asked no more. Of a wrong key one."""

FOR_GOOD = (400, 401, 402, 403, 404, 405, 410, 413, 422)
ACCOUNT = (401, 402)
"""Status of errors that no prompt can be to blame for: they end a run that came through before, too."""

_PROMPT = re.compile(r"flag|moderat|policy|polici|safety|harm|violat|blocked|too (long|large)|context length", re.I)
"""Words of an error about one prompt, which says nothing about the next one."""

_HELP = {
    401: "Check the key",
    402: "The account needs credit",
    403: "The key's account or region may not use this model",
    404: "Check the model's name and the address that it is asked at (--model-base-url)",
    429: "The account's quota is used up",
}
"""Status → what would help."""

_NO_SETTING = "Leaving out what the task can leave out did not help"
_OURS = {"reasoning_effort": "-T effort", "max_tokens": "-T answer_tokens, or another limit that was set"}

_SHOWN = re.compile(r"^Sample error \(id: .*?, epoch: \d+\): (not asked: )?\S+ refused a call: ", re.DOTALL)
# The same words for each sample of a run: they are in the log, and were told once.
logging.getLogger("inspect_ai._eval.task.run").addFilter(lambda record: not _SHOWN.match(record.getMessage()))


class Refused(RuntimeError):
    """A call that a vendor refused for good, or that was not made after such refusals; in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        """What Inspect shows and logs of an error."""


@dataclass
class _Standing:
    """How a model took the calls of one run."""

    run: str | None
    answered: bool = False
    refused: dict[str, set[object]] = field(default_factory=dict)
    """The vendor's words → the samples whose calls it refused so, since it answered last."""
    closed: str = ""
    """What the model refuses every call with, once that is known."""


_standings: WeakKeyDictionary[ModelAPI, _Standing] = WeakKeyDictionary()
_ended: dict[str, str] = {}
"""Task that is running → why it asks nobody any more: its other models are not paid for samples that must fail."""


def _standing_of(model: Model) -> _Standing:
    active = sample_active()
    run = active.run_id if active else None
    standing = _standings.get(model.api)
    if standing is None or standing.run != run or run is None:
        standing = _standings[model.api] = _Standing(run)
    return standing


def refuse_if_closed(model: Model) -> None:
    """Raise at once what the model would answer, where it refuses every call of this run.

    Raises:
        Refused: It does, or another model of the same task.
    """
    active = sample_active()
    if active is None:
        return
    if closed := _standing_of(model).closed:
        _ended[active.eval_id] = closed
    if active.eval_id in _ended:
        raise Refused(f"not asked: {_ended[active.eval_id]}")


class Asking:
    """A block in which a model is asked: a refusal for good is told once a run and counted.

    Args:
        model: Who is asked.
        needs: Settings of the call that are sent as they are.

    Raises:
        Refused: In the place of the error of the vendor's client.
    """

    def __init__(self, model: Model, needs: GenerateConfig) -> None:
        self.model, self.needs = model, needs

    def __enter__(self) -> None:
        """Nothing is known before the call."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            standing = _standing_of(self.model)
            standing.answered = True
            standing.refused.clear()
        elif isinstance(error, Exception) and not isinstance(error, Refused):
            last = error.last_attempt.exception() if hasattr(error, "last_attempt") else None
            status, text = told(last or error)
            if re.fullmatch(r"Error code: \d+", text):  # the client's words, where the body is none of an API
                text = words_of(last or error, self.model)
            if _for_good(status, text):
                raise Refused(_note(self.model, status, text, _helps(self.model, status, error, self.needs))) from error
            if last is not None:  # the error of Inspect's retries names no reason
                words = words_of(last, self.model)
                raise Refused(f"{self.model} gave no answer, tried again and again: {words}") from error
            if came_of_a_response(error):
                raise Refused(f"{self.model} gave no reply that can be read: {words_of(error, self.model)}") from error


def _for_good(status: int | None, text: str) -> bool:
    return status in FOR_GOOD or (status == 429 and "quota" in text.lower())


def _note(model: Model, status: int | None, text: str, helps: str) -> str:
    """Count a refusal and tell of what is new; the refusal in a line."""
    standing, active = _standing_of(model), sample_active()
    refusal = f"{model} refused a call: {one_line(f'Error code: {status} - {text}')}"
    samples = standing.refused.setdefault(gist(text), set())
    lines = [] if samples else [f"{refusal.rstrip('.')}. {helps}."]
    samples.add((active.sample.id, active.epoch) if active else object())
    about_prompt = status not in ACCOUNT and (standing.answered or _PROMPT.search(text))
    enough = 1 if status == 401 and not standing.answered else ENOUGH
    if standing.run and not standing.closed and not about_prompt and len(samples) >= enough:
        standing.closed = refusal
        alike = f": it refused {len(samples)} samples alike" if len(samples) > 1 else ""
        lines.append(f"{model} is asked no more in this run{alike}.")
    if lines:
        logging.getLogger(__name__).warning(" ".join(lines))
    return refusal


def _helps(model: Model, status: int | None, error: Exception, needs: GenerateConfig) -> str:
    said = objection(error)
    chosen = [name for name in (said.fields if said else ()) if getattr(needs, name, None) is not None]
    if chosen:
        return f"It was given with {_OURS.get(chosen[0], chosen[0])}: choose another value, or leave it out"
    keys = [name for name in model.api.api_key_vars if status == 401]
    return _HELP.get(status or 0, _NO_SETTING) + (f" ({' or '.join(keys)})" if keys else "")
