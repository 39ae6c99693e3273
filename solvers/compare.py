"""How alike are the target's replies? Between `act` and `answer`, where only distinct replies are asked about."""

import numpy as np
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import StoreModel

from selfprobe.embed import embed
from selfprobe.solvers.record import Record


class Likeness(StoreModel):
    """How alike a sample's acts are. In the log, so that it can be scored again without the embedder."""

    closest: float | None = None
    """The largest cosine similarity of two replies; None with fewer than two good ones."""
    embedder: str | None = None
    """Whose embeddings they are."""


@solver
def compare(embedder: str) -> Solver:
    """Mark how alike the acts without a problem are. Asks no model.

    Args:
        embedder: As for `selfprobe.embed.embed`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        texts = [reply.text for reply in state.store_as(Record).acts.values() if not reply.problem]
        likeness = state.store_as(Likeness)
        likeness.embedder = embedder
        if len(texts) >= 2:
            vectors = await embed(texts, model=embedder)
            likeness.closest = float((vectors @ vectors.T)[np.triu_indices(len(texts), 1)].max())
        return state

    return solve
