"""How alike is each answer to the sample's own text, and is another sample's text nearer?"""

from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import StoreModel
from pydantic import Field

from selfprobe.embed import embed
from selfprobe.solvers.record import Record


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
