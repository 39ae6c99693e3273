"""What a study must know of a task, said in the task's own file as `MEASURE`.

A task with a `MEASURE` is in `selfprobe matrix`, its report and the diversity table without another line elsewhere.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Right = Callable[[str, str], bool]
"""Whether what the observer said is right, given the truth; both in the form that is compared."""

Side = Literal["target", "observer"]


@dataclass(frozen=True)
class Measure:
    """A task as the matrix sees it. One sample is one item."""

    acts: tuple[str, ...]
    """The acts in which a target shows its own way: not its repeats, nor its replies to an observer's prompt."""
    observer: int = 0
    """Calls of the observer for an item of another target, at most. With 0 its prompt does not hold the target's text:
    its answers about itself are compared with the other's acts, without a run."""
    target: int = 0
    """Calls of the target for an item of such a cell."""
    rounds: int = 1
    """Calls of a run on itself that wait for one another: as many batches come one after the other."""
    text_tells: bool = True
    """Whether an item's text can tell its truth. False where the text is the truth, or the truth a shuffled slot."""
    right: Right = operator.eq
    """How a prediction is graded; the scorer and every baseline use it."""
    chance: Callable[[Mapping[str, Any]], float] = lambda given: 0.0
    """What a blind guess gets, from the task's arguments; where it is unknown before a run, 0."""
    replies: str = "replies"
    """What the truths are, as a reader calls them: words, choices."""
    act: tuple[str, str] | None = None
    """The decision in which a target acts, and the one that predicts it, where they are apart."""
    sides: Mapping[str, Side] = field(default_factory=dict, hash=False)
    """Decisions that one side alone makes, by key; any other takes a truth from the target and a prediction."""
    item_scores: "Callable[[pd.DataFrame], pd.Series] | None" = None
    """target × observer × item → score, from the task's decisions; by default the mean of an item's scored values."""
    blind: "Callable[[pd.DataFrame], Mapping[str, pd.Series]] | None" = None
    """From the decisions of models on themselves to what predictions that know nothing of the item get: name →
    target × item → score; for truths that are no word or slot."""
    frames: Callable[[Sequence[Any]], Any] | None = None
    """From an item's decisions to `scorers.frames.Frames`, of a task with `about` whose score is no mean of its values;
    None is `scorers.frames.frames`."""
    others: Callable[[str], Mapping[str, tuple[float, float]]] | None = None
    """From the log of a run on itself: item → mean and largest likeness of its reply and the other items' replies."""
    graded: bool = True
    """Whether a decision is right or wrong, not a likeness or a distance."""
    act_only: frozenset[str] = frozenset()
    """Task arguments that only a recorded act depends on."""
    by_name: bool = False
    """Whether a matrix runs it only where `--tasks` names it."""
