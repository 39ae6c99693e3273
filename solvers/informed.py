"""The informed observer: asked about the target by name, or shown replies of the target to other items.

Without it ("replayed") what an observer says of itself is held against the target. What a stranger learns from a name
or a few examples is no privileged access. A model that is its own target is always asked about itself.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from inspect_ai.model import get_model
from inspect_ai.solver import TaskState

from selfprobe.data import Row, Table
from selfprobe.errors import InputError
from selfprobe.solvers.ask import PromptFunction, Prompts, sole
from selfprobe.solvers.record import Reply
from selfprobe.solvers.replay import Replay

REPLAYED = "replayed"
"""The arm without a call: the observer's answers about itself are held against the target."""


@dataclass(frozen=True)
class Told:
    """What an observer is told of its target."""

    target: str
    """Its name without the provider."""
    examples: str
    """Numbered replies to other items; empty where it is asked by name."""


Example = Callable[[Row, Sequence[Mapping[str, Reply]]], str | None]
"""An item as it is shown: its row, the target's acts by epoch → text, or None where there is no readable act."""


def examples_of(observer: str) -> int | None:
    """How many examples of the target an arm shows: None replayed, 0 asked by name.

    Raises:
        InputError: It is no arm.
    """
    if observer in (REPLAYED, "asked"):
        return None if observer == REPLAYED else 0
    if not isinstance(observer, str) or not re.fullmatch(r"shown:[1-9][0-9]{0,2}", observer):
        raise InputError(f"observer must be replayed, asked or shown:N with N from 1 to 999, got {observer!r}")
    return int(observer.partition(":")[2])


@dataclass(frozen=True)
class Examples:
    """Replies of the target to items other than the one that is asked."""

    acts: Replay | None
    """Where they are, if a log was given."""
    table: Table
    shows: Example
    seen: dict[tuple[str, str], str | None] = field(default_factory=dict, compare=False, repr=False)
    """Log and item → its text, once it is made."""

    def __call__(self, state: TaskState, count: int) -> dict[str, str]:
        """Item → its text, `count` of them, or as many as the target's log has; always the same for an item.

        Those of the item's own kind come first, where the data set has a column `kind` or `category`.

        Raises:
            LookupError: The log has no readable act at another item.
        """
        assert self.acts is not None
        asked, text = str(state.sample_id), state.input_text
        kinds = {str(row["id"]): row.get("kind") or row.get("category") for row in self.table.rows}
        others = [row for row in self.table.rows if str(row["id"]) != asked and text not in row.values()]
        others.sort(key=lambda row: (kinds[str(row["id"])] != kinds.get(asked), _drawn(asked, str(row["id"]))))
        found: dict[str, str] = {}
        for row in others:
            if len(found) < count and (shown := self._shown(row)) is not None:
                found[str(row["id"])] = shown
        if not found:
            raise LookupError(f"{self.acts.file}: no reply to another item than {asked!r} that could be shown")
        return found

    def _shown(self, row: Row) -> str | None:
        assert self.acts is not None
        place = (self.acts.file, str(row["id"]))
        if place not in self.seen:
            epochs = self.acts.of_item(place[1])
            self.seen[place] = self.shows(row, epochs) if epochs else None
        return self.seen[place]


def _drawn(asked: str, item: str) -> bytes:
    """A place in an order that is fixed for the item that is asked, and another for each."""
    return blake2b(f"{asked}\x1f{item}".encode(), digest_size=8).digest()


def informed(
    observer: str,
    own: PromptFunction,
    told: Callable[[TaskState, Told], Prompts],
    *,
    examples: Examples,
    observer_log: str | None,
) -> PromptFunction:
    """The prompts of an observer that is told of its target, and of one that is its own target.

    Args:
        observer: replayed, asked or shown:N.
        own: The prompts about the observer itself.
        told: The same about another target.
        examples: The target's replies.
        observer_log: As the task was given it; answers that are replayed were asked for before.

    Raises:
        InputError: It is no arm; it shows replies and has no log of them; answers are replayed.
    """
    count = examples_of(observer)
    if count is None:
        return own
    if observer_log is not None:
        raise InputError(f"observer={observer} asks the observer, observer_log replays its answers: leave one out")
    if count and examples.acts is None:
        raise InputError(
            f"observer={observer} shows the target's recorded replies: pass target_log, a log of the target on itself"
        )

    def prompts(state: TaskState) -> Prompts:
        target = str(sole("target"))
        if target == str(get_model()):
            return own(state)
        shown = examples(state, count) if count else {}
        state.metadata["shown"] = list(shown)  # which ones, for a reader of the log
        numbered = [f"{i}. {text}" for i, text in enumerate(shown.values(), start=1)]
        return told(state, Told(target.partition("/")[2], "\n\n".join(numbered)))

    return prompts
