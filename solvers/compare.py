"""Similarity of texts: of the target's replies to one another, or of an answer to the sample's own
text.
"""

import numpy as np
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import StoreModel
from pydantic import Field

from selfprobe.embed import embed, require
from selfprobe.solvers.ask import PromptFunction, rehearsing
from selfprobe.solvers.record import Record


class Likeness(StoreModel):
    """Similarity of a sample's acts, kept in the log so that it can be scored again without the
    embedder.
    """

    closest: float | None = None
    """The largest cosine similarity of two replies; None with fewer than two good ones."""
    embedder: str | None = None
    """Name of the embedder."""
    nearest: dict[str, str] = Field(default_factory=dict)
    """For each good reply the prompt that is most similar to it: the answer of an observer without
    a model.
    """


@solver
def compare(embedder: str, prompts: PromptFunction) -> Solver:
    """Record how similar the acts without a problem are, and each act's most similar prompt. Asks
    no model.

    Args:
        embedder: Name of an embedder for `selfprobe.embed.embed`.
        prompts: Prompts of the acts, by name.

    Raises:
        PrerequisiteError: The embedder cannot be had.
    """
    embedder = require(embedder)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        text_by_name = {
            name: reply.text
            for name, reply in state.store_as(Record).acts.items()
            if not reply.problem
        }
        likeness = state.store_as(Likeness)
        likeness.embedder = embedder
        if len(text_by_name) < 2 or rehearsing():
            return state

        prompt_by_name = {name: str(prompt) for name, prompt in prompts(state).items()}
        texts = [*text_by_name.values(), *prompt_by_name.values()]
        vectors = await embed(texts, model=embedder)
        reply_vectors = vectors[: len(text_by_name)]
        prompt_vectors = vectors[len(text_by_name) :]
        reply_similarities = reply_vectors @ reply_vectors.T
        pairs = np.triu_indices(len(reply_vectors), 1)
        likeness.closest = float(reply_similarities[pairs].max())

        prompt_names = list(prompt_by_name)
        nearest_indices = (reply_vectors @ prompt_vectors.T).argmax(axis=1)
        likeness.nearest = {
            name: prompt_names[int(index)]
            for name, index in zip(text_by_name, nearest_indices, strict=True)
        }
        return state

    return solve


class Alike(StoreModel):
    """Similarities in the log, so that it can be scored again without the embedder."""

    embedder: str | None = None
    similarity: dict[str, float] = Field(default_factory=dict)
    """Cosine similarity of each good answer and the sample's `last`, by name."""


@solver
def record_similarity(embedder: str) -> Solver:
    """Record the similarity of each answer without a problem to `metadata["last"]`. Asks no model.

    Args:
        embedder: Name of an embedder for `selfprobe.embed.embed`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        text_by_name = {
            name: reply.text
            for name, reply in state.store_as(Record).answers.items()
            if not reply.problem
        }
        stored = state.store_as(Alike)
        stored.embedder = embedder
        if not text_by_name:
            return state

        texts = [state.metadata["last"], *text_by_name.values()]
        sample_vector, *answer_vectors = await embed(texts, model=embedder)
        stored.similarity = {
            name: float(sample_vector @ answer_vector)
            for name, answer_vector in zip(text_by_name, answer_vectors, strict=True)
        }
        return state

    return solve
