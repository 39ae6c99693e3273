"""How similar are texts: the target's replies to one another, an answer to the sample's own text?"""

import numpy as np
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import StoreModel
from pydantic import Field

from selfprobe.embed import embed, require
from selfprobe.solvers.ask import PromptFunction, rehearsing
from selfprobe.solvers.record import Record


class Likeness(StoreModel):
    """How alike a sample's acts are. In the log, so that it can be scored again without the embedder."""

    closest: float | None = None
    """The largest cosine similarity of two replies; None with fewer than two good ones."""
    embedder: str | None = None
    """Whose embeddings they are."""
    nearest: dict[str, str] = Field(default_factory=dict)
    """For each good reply the prompt that is most like it: what an observer without a model would say."""


@solver
def compare(embedder: str, prompts: PromptFunction) -> Solver:
    """Mark how alike the acts without a problem are, and to which prompt each is most alike. Asks no model.

    Args:
        embedder: As for `selfprobe.embed.embed`.
        prompts: What the acts answered, by name.

    Raises:
        PrerequisiteError: The embedder cannot be had.
    """
    embedder = require(embedder)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        good = {name: reply.text for name, reply in state.store_as(Record).acts.items() if not reply.problem}
        likeness = state.store_as(Likeness)
        likeness.embedder = embedder
        if len(good) >= 2 and not rehearsing():
            asked = {name: str(prompt) for name, prompt in prompts(state).items()}
            vectors = await embed([*good.values(), *asked.values()], model=embedder)
            own, theirs = vectors[: len(good)], vectors[len(good) :]
            likeness.closest = float((own @ own.T)[np.triu_indices(len(own), 1)].max())
            names = list(asked)
            likeness.nearest = {
                name: names[int(best)] for name, best in zip(good, (own @ theirs.T).argmax(axis=1), strict=True)
            }
        return state

    return solve


class Alike(StoreModel):
    """Likeness in the log, so that it can be scored again without the embedder."""

    embedder: str | None = None
    similarity: dict[str, float] = Field(default_factory=dict)
    """Cosine similarity of each good answer and the sample's `last`, by name."""


@solver
def liken(embedder: str) -> Solver:
    """Record how alike each answer without a problem is to `metadata["last"]`. Asks no model.

    Args:
        embedder: As for `selfprobe.embed.embed`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        good = {name: reply.text for name, reply in state.store_as(Record).answers.items() if not reply.problem}
        alike = state.store_as(Alike)
        alike.embedder = embedder
        if good:
            own, *others = await embed([state.metadata["last"], *good.values()], model=embedder)
            alike.similarity = {name: float(own @ other) for name, other in zip(good, others, strict=True)}
        return state

    return solve
