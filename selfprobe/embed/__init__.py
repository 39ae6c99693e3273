"""Sentence embeddings behind one function.

    vectors = await embed(["A reply.", "Another."])                        # all-MiniLM-L6-v2, here, without torch
    vectors = await embed(texts, model="openai/text-embedding-3-small")    # the paper's; respects OPENAI_BASE_URL
    vectors = await embed(texts, model="BAAI/bge-small-en-v1.5")           # any sentence-transformers model
    vectors = await embed(texts, model="models/my-embedder")               # … or its folder

Paper 003, Table 1 and E.3 Task 2.3: OpenAI's small embedding model. Here: all-MiniLM-L6-v2 unless asked otherwise, as
it needs no key. It reads the first 256 word pieces of a text, about 200 words; OpenAI's reads 8,191 tokens.
Similarities of different embedders are different quantities: every log names its embedder, none stands in for another.
"""

import functools
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
import numpy as np
import numpy.typing as npt

from selfprobe.errors import InputError
from selfprobe.errors.arguments import locate
from selfprobe.errors.inspect_private import PrerequisiteError

DEFAULT_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
SHORT_NAMES = {DEFAULT_EMBEDDER.rpartition("/")[2]: DEFAULT_EMBEDDER}
"""Name for `selfprobe fetch-model`, too: the same weights, under one name in every log."""
OPENAI = "openai/"
OTHERS = (
    f"or pass another embedder (-T embedder=… to inspect, --embedder … to selfprobe): {OPENAI}text-embedding-3-small, "
    "or the folder of a sentence-transformers one"
)

UNASKED = 500
"""Number of texts that a page embeds unasked: about half a minute on one core, and kept for the next time."""
_AT_ONCE = 256  # texts a request; OpenAI takes at most 2,048 texts and 300,000 tokens
_lock = threading.Lock()

Vectors = npt.NDArray[np.float64]


async def embed(texts: Sequence[str], *, model: str = DEFAULT_EMBEDDER) -> Vectors:
    """Unit vectors `[text, dimension]`; the dot product of two is their cosine similarity.

    Equal texts get equal vectors. All is done in worker threads; a local model takes one call at a time.

    Args:
        texts: Texts, none of them blank.
        model: The default; `openai/<name>`; or a sentence-transformers model: a folder or a name on the hub.

    Raises:
        ValueError: A blank text, or the embedder returned NaN, a zero vector, another number of vectors, or another
            dimension.
        PrerequisiteError: The model cannot be loaded; with what to install or to pass.
    """
    model = SHORT_NAMES.get(model, model)
    if blank := [i for i, text in enumerate(texts) if not text.strip()]:
        raise ValueError(f"a blank text has no embedding: texts {blank} of {len(texts)}")
    return await anyio.to_thread.run_sync(_placed, texts, model)


def embed_unasked(texts: Sequence[str]) -> Vectors:
    """Unit vectors `[text, dimension]` of the default embedder, for pages that fetch nothing and take no minutes.

    Raises:
        PrerequisiteError: Its weights are not on this machine, or there are more than `UNASKED` different texts.
    """
    if why := unfetched(DEFAULT_EMBEDDER):
        raise PrerequisiteError(why)
    if (count := len(set(texts))) > UNASKED:
        raise PrerequisiteError(f"{count:,} texts take minutes to embed; up to {UNASKED} are")
    return _placed(texts, DEFAULT_EMBEDDER)


def _placed(texts: Sequence[str], model: str) -> Vectors:
    """The vector of each text; equal texts are embedded once."""
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return _vectors(list(place), model)[[place[text] for text in texts]] if place else np.empty((0, 0))


def _vectors(texts: list[str], model: str) -> Vectors:
    """Unit vectors; the default's come from the cache if they are in it. The weights of other embedders are unknown."""
    how = _by_openai if model.startswith(OPENAI) else _by_minilm if model == DEFAULT_EMBEDDER else _by_transformer

    def compute(some: list[str]) -> Vectors:
        return unit_vectors(how(some, model), count=len(some), model=model)

    if model != DEFAULT_EMBEDDER:
        return compute(texts)
    from selfprobe.embed.minilm import LONGEST
    from selfprobe.embed.vector_cache import remembered
    from selfprobe.embed.weights import MINILM

    return remembered(texts, f"{' '.join(MINILM.files.values())} {LONGEST}", compute)


def require(model: str) -> str:
    """The embedder's name, once it is sure that it can be used: before a run has spent its calls.

    Raises:
        PrerequisiteError: The model cannot be loaded, or there is no key; with what to install or to pass.
    """
    if not isinstance(model, str) or not model.strip():
        raise InputError(f"embedder must be a name such as {DEFAULT_EMBEDDER}, got {model!r}")
    model = SHORT_NAMES.get(model, model)
    if model.startswith(OPENAI):
        _client(model)
    elif model == DEFAULT_EMBEDDER:
        _minilm()
    else:
        _loaded(model)
    return model


def unfetched(model: str) -> str:
    """Reason why `model` would be fetched before it could embed, for pages that fetch nothing unasked; "" if none.

    Only the default is known: what sentence-transformers would fetch is its own affair.
    """
    from selfprobe.embed.weights import MINILM, at_hand

    if SHORT_NAMES.get(model, model) != DEFAULT_EMBEDDER or at_hand(MINILM):
        return ""
    return f"the default embedder is not on this machine: selfprobe fetch-model {MINILM.name} gets it (91 MB, once)"


def unit_vectors(rows: Sequence[Sequence[float]], *, count: int, model: str) -> Vectors:
    """Unit vectors `[text, dimension]` from the output of an embedder.

    Raises:
        ValueError: Not `count` vectors of one dimension, or one that is not finite or has no direction.
    """
    sizes = sorted({len(row) for row in rows})
    if len(rows) != count or len(sizes) != 1 or sizes[0] == 0:
        raise ValueError(
            f"embedder {model}: expected {count} vectors of one dimension, got {len(rows)} of dimension "
            f"{' and '.join(map(str, sizes)) or 'none'}; {OTHERS}"
        )
    vectors = np.asarray(rows, dtype=float)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if bad := [i for i, length in enumerate(lengths[:, 0]) if not (np.isfinite(length) and length > 0)]:
        raise ValueError(f"embedder {model}: vectors {bad} of {count} are NaN, infinite or zero; {OTHERS}")
    return np.asarray(vectors / lengths)


def _by_minilm(texts: list[str], _: str) -> Sequence[Sequence[float]]:
    from selfprobe.embed.minilm import vectors_of

    folder = _minilm()
    with _lock:
        return list(vectors_of(texts, folder))


def _minilm() -> Path:
    with _lock:
        return _fetched()


@functools.cache  # under the lock, as `_load`: fetched and verified once a process
def _fetched() -> Path:
    from selfprobe.embed.weights import MINILM, fetch

    try:
        return fetch(MINILM).parent
    except PrerequisiteError as error:
        raise PrerequisiteError(f"{error.message}\n{OTHERS}") from error


def _by_transformer(texts: list[str], model: str) -> Sequence[Sequence[float]]:
    loaded = _loaded(model)
    with _lock:
        rows: Sequence[Sequence[float]] = loaded.encode(texts, show_progress_bar=False)
    return rows


def _loaded(model: str) -> Any:
    with _lock:
        return _load(model)


@functools.cache  # under the lock: a model is loaded once a process
def _load(model: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise PrerequisiteError(
            f"embedder {model} needs sentence-transformers ({error}): pip install 'selfprobe[embeddings]', {OTHERS}"
        ) from error
    place = _place(model)
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return SentenceTransformer(place)
    except (OSError, ValueError) as error:
        raise PrerequisiteError(
            f"embedder {model} could not be loaded from {place}: {str(error).splitlines()[0]}; expected "
            f"a sentence-transformers model: a folder or a name on the hub, cached or within reach, {OTHERS}"
        ) from error
    finally:
        if bars:
            logging.enable_progress_bar()


def _place(model: str) -> str:
    """Place of the weights: a folder, or a name on the hub."""
    try:
        return locate(model)
    except InputError:  # no folder
        return model


def _client(model: str) -> Any:
    return _connected(model, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY"))


@functools.cache  # by what the client reads, and not the asynchronous one, which belongs to an event loop
def _connected(model: str, base_url: str | None, api_key: str | None) -> Any:
    from openai import OpenAI, OpenAIError

    try:
        return OpenAI(base_url=base_url, api_key=api_key, max_retries=5)
    except OpenAIError as error:
        raise PrerequisiteError(
            f"embedder {model} needs OPENAI_API_KEY (and OPENAI_BASE_URL for another server): {error}"
        ) from error


def _by_openai(texts: list[str], model: str) -> Sequence[Sequence[float]]:
    rows: list[list[float]] = []
    for start in range(0, len(texts), _AT_ONCE):
        batch = texts[start : start + _AT_ONCE]
        found = _client(model).embeddings.create(input=batch, model=model.removeprefix(OPENAI))
        rows += [item.embedding for item in sorted(found.data, key=lambda item: item.index)]
    return rows
