"""Sentence embeddings behind one function.

    await embed(["A reply.", "Another."])                      # all-MiniLM-L6-v2, without torch
    await embed(texts, model="openai/text-embedding-3-small")  # the paper's; at OPENAI_BASE_URL
    await embed(texts, model="BAAI/bge-small-en-v1.5")         # any sentence-transformers model
    await embed(texts, model="models/my-embedder")             # … or its folder

IntrospectBench, Table 1 and E.3 Task 2.3: OpenAI's small embedding model. Here: all-MiniLM-L6-v2
unless asked otherwise, as it needs no key. It reads the first 256 word pieces of a text, about 200
words; OpenAI's reads 8,191 tokens. Similarities of different embedders are different quantities:
every log names its embedder, none stands in for another.
"""

import functools
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio.to_thread
import numpy as np
import numpy.typing as npt
from scipy.special import erf
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

from selfprobe.embed import weights
from selfprobe.embed.weights import cache_folder, to_stderr
from selfprobe.errors import InputError
from selfprobe.errors.arguments import locate
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.text.extras import install_command

DEFAULT_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
SHORT_NAMES = {DEFAULT_EMBEDDER.rpartition("/")[2]: DEFAULT_EMBEDDER}
"""Name for `selfprobe fetch-model`, too: the same weights, under one name in every log."""
OPENAI = "openai/"
OTHER_EMBEDDERS = (
    "or pass another embedder (-T embedder=… to inspect, --embedder … to selfprobe): "
    f"{OPENAI}text-embedding-3-small, or the folder of a sentence-transformers one"
)

MOST_UNASKED_TEXTS = 500
"""Number of texts that a page embeds unasked: about half a minute on one core, and kept for the
next time.
"""
TEXTS_A_REQUEST = 256
"""OpenAI takes at most 2,048 texts and 300,000 tokens."""
_lock = threading.Lock()

Vectors = npt.NDArray[np.float64]


async def embed(texts: Sequence[str], *, model: str = DEFAULT_EMBEDDER) -> Vectors:
    """Unit vectors `[text, dimension]`; the dot product of two is their cosine similarity.

    Equal texts get equal vectors. All is done in worker threads; a local model takes one call at a
    time.

    Args:
        texts: Texts, none of them blank.
        model: The default; `openai/<name>`; or a sentence-transformers model: a folder or a name on
            the hub.

    Raises:
        ValueError: A blank text, or the embedder returned NaN, a zero vector, another number of
            vectors, or another dimension.
        PrerequisiteError: The model cannot be loaded; with what to install or to pass.
    """
    model = SHORT_NAMES.get(model, model)
    blank_numbers = [number for number, text in enumerate(texts) if not text.strip()]
    if blank_numbers:
        raise ValueError(f"a blank text has no embedding: texts {blank_numbers} of {len(texts)}")
    return await anyio.to_thread.run_sync(_placed, texts, model)


def embed_unasked(texts: Sequence[str], *, most_texts: int | None = MOST_UNASKED_TEXTS) -> Vectors:
    """Unit vectors `[text, dimension]` of the default embedder, for pages that fetch nothing and
    take no minutes; 0 of a blank text.

    Raises:
        PrerequisiteError: Its weights are not on this machine, or there are more than `most_texts`
            different texts (None: any number).
    """
    fetch_note = unfetched(DEFAULT_EMBEDDER)
    if fetch_note:
        raise PrerequisiteError(fetch_note)
    text_count = len(set(texts))
    if most_texts is not None and text_count > most_texts:
        raise PrerequisiteError(
            f"{text_count:,} texts take minutes to embed; up to {most_texts} are"
        )
    is_blank = np.array([not text.strip() for text in texts], dtype=bool)
    filled_texts = list(texts)
    for place in np.flatnonzero(is_blank):
        filled_texts[place] = "blank"
    vectors = _placed(filled_texts, DEFAULT_EMBEDDER)
    return np.where(is_blank[:, None], 0.0, vectors)


def _placed(texts: Sequence[str], model: str) -> Vectors:
    """The vector of each text; equal texts are embedded once."""
    if not texts:
        return np.empty((0, 0))
    row_by_text = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = _vectors(list(row_by_text), model)
    return vectors[[row_by_text[text] for text in texts]]


def _vectors(texts: list[str], model: str) -> Vectors:
    """Unit vectors; the default's come from the cache if they are in it. The weights of other
    embedders are unknown.
    """
    embed_texts: Callable[[list[str], str], Sequence[Sequence[float]]]
    if model.startswith(OPENAI):
        embed_texts = _by_openai
    elif model == DEFAULT_EMBEDDER:
        embed_texts = _by_minilm
    else:
        embed_texts = _by_transformer

    def compute(missing_texts: list[str]) -> Vectors:
        rows = embed_texts(missing_texts, model)
        return unit_vectors(rows, count=len(missing_texts), model=model)

    if model != DEFAULT_EMBEDDER:
        return compute(texts)
    identity = f"{' '.join(weights.MINILM.files.values())} {MINILM_TOKENS}"
    return remembered(texts, identity, compute)


def require(model: str) -> str:
    """The embedder's name, once it is sure that it can be used: before a run has spent its calls.

    Raises:
        PrerequisiteError: The model cannot be loaded, or there is no key; with what to install or
            to pass.
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
    """Reason why `model` would be fetched before it could embed, for pages that fetch nothing
    unasked; "" if none.

    Only the default is known: what sentence-transformers would fetch is its own affair.
    """
    if SHORT_NAMES.get(model, model) != DEFAULT_EMBEDDER or weights.at_hand(weights.MINILM):
        return ""
    name = weights.MINILM.name
    return (
        f"the default embedder is not on this machine: selfprobe fetch-model {name} gets it "
        "(91 MB, once)"
    )


def unit_vectors(rows: Sequence[Sequence[float]], *, count: int, model: str) -> Vectors:
    """Unit vectors `[text, dimension]` from the output of an embedder.

    Raises:
        ValueError: Not `count` vectors of one dimension, or one that is not finite or has no
            direction.
    """
    dimensions = sorted({len(row) for row in rows})
    if len(rows) != count or len(dimensions) != 1 or dimensions[0] == 0:
        dimension_list = " and ".join(str(dimension) for dimension in dimensions) or "none"
        raise ValueError(
            f"embedder {model}: expected {count} vectors of one dimension, got {len(rows)} of "
            f"dimension {dimension_list}; {OTHER_EMBEDDERS}"
        )
    vectors = np.asarray(rows, dtype=float)
    lengths = np.linalg.norm(vectors, axis=1)
    is_usable = np.isfinite(lengths) & (lengths > 0)
    if not is_usable.all():
        bad_numbers = np.flatnonzero(~is_usable).tolist()
        raise ValueError(
            f"embedder {model}: vectors {bad_numbers} of {count} are NaN, infinite or zero; "
            f"{OTHER_EMBEDDERS}"
        )
    return np.asarray(vectors / lengths[:, None])


def _by_minilm(texts: list[str], _: str) -> Sequence[Sequence[float]]:
    folder = _minilm()
    with _lock:
        return list(minilm_vectors(texts, folder))


def _minilm() -> Path:
    with _lock:
        return _fetched()


@functools.cache  # under the lock, as `_load`: fetched and verified once a process
def _fetched() -> Path:
    try:
        return weights.fetch(weights.MINILM).parent
    except PrerequisiteError as error:
        raise PrerequisiteError(f"{error.message}\n{OTHER_EMBEDDERS}") from error


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
            f"embedder {model} needs sentence-transformers ({error}): "
            f"{install_command('embeddings')}, {OTHER_EMBEDDERS}"
        ) from error
    source = _weights_source(model)
    shows_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return SentenceTransformer(source)
    except (OSError, ValueError) as error:
        raise PrerequisiteError(
            f"embedder {model} could not be loaded from {source}: {str(error).splitlines()[0]}; "
            "expected a sentence-transformers model: a folder or a name on the hub, cached or "
            f"within reach, {OTHER_EMBEDDERS}"
        ) from error
    finally:
        if shows_bars:
            logging.enable_progress_bar()


def _weights_source(model: str) -> str:
    """Place of the weights: a folder, or a name on the hub."""
    try:
        return locate(model)
    except InputError:  # no folder
        return model


def _client(model: str) -> Any:
    return _connected(model, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY"))


# Cached by what the client reads. The asynchronous one is not taken: it belongs to an event loop.
@functools.cache
def _connected(model: str, base_url: str | None, api_key: str | None) -> Any:
    from openai import OpenAI, OpenAIError

    try:
        return OpenAI(base_url=base_url, api_key=api_key, max_retries=5)
    except OpenAIError as error:
        raise PrerequisiteError(
            f"embedder {model} needs OPENAI_API_KEY (and OPENAI_BASE_URL for another server): "
            f"{error}"
        ) from error


def _by_openai(texts: list[str], model: str) -> Sequence[Sequence[float]]:
    rows: list[list[float]] = []
    for start in range(0, len(texts), TEXTS_A_REQUEST):
        batch = texts[start : start + TEXTS_A_REQUEST]
        response = _client(model).embeddings.create(input=batch, model=model.removeprefix(OPENAI))
        ordered_items = sorted(response.data, key=lambda item: item.index)
        rows += [item.embedding for item in ordered_items]
    return rows


# ---- The cache of vectors, in the user's cache folder: a page made again embeds only what is new.
# A database of SQLite, which several processes may use at once. A row whose digest is another is
# computed anew, and a database that cannot be used is left alone, with a line. Texts are not kept,
# only their digests.

CACHE_FILE = "vectors.sqlite"
MOST_CACHED_BYTES = 100_000_000
"""Bytes of vectors that are kept, 30,000 of the default embedder's; beyond it the older half goes.
"""
CACHE_LOCK_SECONDS = 5.0
"""Seconds for which another process is waited for."""
KEYS_A_QUERY = 500

_CACHE_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, digest BLOB, vector BLOB)"


def remembered(
    texts: Sequence[str], identity: str, compute: Callable[[list[str]], Vectors]
) -> Vectors:
    """The vectors `[text, dimension]`, from the cache or computed, bit for bit the same.

    Args:
        texts: Different texts.
        identity: Everything that decides which vector a text gets: the embedder's weights and how
            they are used.
        compute: Function that makes the vectors of texts.
    """
    key_by_text = {text: _cache_key(identity, text) for text in texts}
    try:
        vector_by_key = _cached(list(key_by_text.values()))
    except (sqlite3.Error, OSError) as error:
        _warn_unused_cache(str(error))
        return compute(list(texts))

    missing_texts = [text for text in texts if key_by_text[text] not in vector_by_key]
    if missing_texts:
        missing_keys = [key_by_text[text] for text in missing_texts]
        new_vectors = dict(zip(missing_keys, compute(missing_texts), strict=True))
        vector_by_key |= new_vectors
        try:
            _keep(new_vectors)
        except (sqlite3.Error, OSError) as error:
            _warn_unused_cache(str(error))
    return np.stack([vector_by_key[key_by_text[text]] for text in texts])


def _cache_key(identity: str, text: str) -> bytes:
    content = f"{identity}\0{text}".encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=20).digest()


def _cache_path() -> Path:
    return cache_folder() / CACHE_FILE


def _cache_database() -> "closing[sqlite3.Connection]":
    file = _cache_path()
    file.parent.mkdir(parents=True, exist_ok=True)
    return closing(sqlite3.connect(file, timeout=CACHE_LOCK_SECONDS))


def _cached(keys: Sequence[bytes]) -> dict[bytes, Vectors]:
    """The vectors that are there and whole."""
    if not _cache_path().exists():
        return {}
    vector_by_key: dict[bytes, Vectors] = {}
    with _cache_database() as database:
        database.execute(_CACHE_TABLE)
        for start in range(0, len(keys), KEYS_A_QUERY):
            query_keys = keys[start : start + KEYS_A_QUERY]
            marks = ",".join("?" * len(query_keys))
            query = f"SELECT key, digest, vector FROM vectors WHERE key IN ({marks})"
            for key, digest, vector in database.execute(query, query_keys):
                if _digest(key, vector) == digest:
                    vector_by_key[key] = np.frombuffer(vector)
    return vector_by_key


def _keep(vector_by_key: dict[bytes, Vectors]) -> None:
    """Add rows, and take the older half away where they are too many."""
    rows: list[tuple[bytes, bytes, bytes]] = []
    for key, vector in vector_by_key.items():
        content = vector.tobytes()
        rows.append((key, _digest(key, content), content))
    with _cache_database() as database, database:
        database.execute(_CACHE_TABLE)
        database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
        totals = database.execute("SELECT count(*), total(length(vector)) FROM vectors")
        [(row_count, byte_count)] = totals
        if byte_count > MOST_CACHED_BYTES:
            oldest = "SELECT rowid FROM vectors ORDER BY rowid LIMIT ?"
            database.execute(f"DELETE FROM vectors WHERE rowid IN ({oldest})", (row_count // 2,))


def _digest(key: bytes, vector: bytes) -> bytes:
    return hashlib.blake2b(key + vector, digest_size=16).digest()


@functools.cache  # once a process
def _warn_unused_cache(reason: str) -> None:
    to_stderr(
        f"The cache of vectors {_cache_path()} cannot be used ({reason}); texts are embedded anew. "
        "It may be deleted."
    )


# ---- all-MiniLM-L6-v2 in NumPy: no torch, nothing to compile. Six layers of BERT, the mean over a
# text's tokens, unit length (Reimers & Gurevych 2019, arXiv:1908.10084). A text is computed alone,
# so that its vector does not depend on the other texts of a call.

MINILM_TOKENS = 256
"""Tokens of a text that are read, as the model's authors set it; what follows is not."""
MINILM_HEADS = 12
MINILM_LAYERS = 6
MINILM_EPSILON = np.float32(1e-12)
"""Added to variances by the layer norms."""

Array = npt.NDArray[np.float32]


def minilm_vectors(texts: Sequence[str], folder: Path) -> Array:
    """Unit vectors `[text, 384]` of the model in `folder` (its model.safetensors and
    tokenizer.json).
    """
    tokenizer, tensors = _minilm_weights(folder)
    text_ids: list[list[int]] = []
    for text in texts:
        whole_characters = text.encode(errors="replace").decode()  # half a character is "?"
        text_ids.append(tokenizer.encode(whole_characters).ids)
    # A text a core, and one BLAS thread a text: its matrices are too small to be shared out.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        vectors = pool.map(lambda ids: _minilm_vector(ids, tensors), text_ids)
        return np.stack(list(vectors))


@functools.cache
def _minilm_weights(folder: Path) -> tuple[Tokenizer, dict[str, Array]]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MINILM_TOKENS)
    return tokenizer, _read_safetensors(folder / "model.safetensors")


def _read_safetensors(path: Path) -> dict[str, Array]:
    """The float32 tensors of a safetensors file by name; its format is on
    https://github.com/huggingface/safetensors#format.
    """
    content = path.read_bytes()
    data_start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:data_start])
    tensors: dict[str, Array] = {}
    for name, entry in header.items():
        if entry.get("dtype") != "F32":
            continue
        first_byte, end_byte = entry["data_offsets"]
        data = content[data_start + first_byte : data_start + end_byte]
        tensors[name] = np.frombuffer(data, "<f4").reshape(entry["shape"])
    return tensors


def _minilm_vector(ids: Sequence[int], tensors: dict[str, Array]) -> Array:
    """Unit vector [d] of one text's token ids."""

    def linear(x: Array, name: str) -> Array:
        mapped: Array = x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]
        return mapped

    def layer_norm(x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + MINILM_EPSILON)
        shifted: Array = scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]
        return shifted

    def by_head(x: Array) -> Array:  # [token, d] → [head, token, d / heads]
        return x.reshape(len(x), MINILM_HEADS, -1).swapaxes(0, 1)

    x = tensors["embeddings.word_embeddings.weight"][list(ids)]  # [token, d]
    x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = x + tensors["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, "embeddings.LayerNorm")
    for number in range(MINILM_LAYERS):
        layer = f"encoder.layer.{number}"
        queries = by_head(linear(x, f"{layer}.attention.self.query"))
        keys = by_head(linear(x, f"{layer}.attention.self.key"))
        values = by_head(linear(x, f"{layer}.attention.self.value"))
        scores = queries @ keys.swapaxes(1, 2)  # [head, token, token]
        scores = scores / np.float32(np.sqrt(queries.shape[-1]))
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attention = exponentials / exponentials.sum(axis=-1, keepdims=True)
        mixed = (attention @ values).swapaxes(0, 1).reshape(x.shape)
        attention_output = linear(mixed, f"{layer}.attention.output.dense")
        x = layer_norm(x + attention_output, f"{layer}.attention.output.LayerNorm")

        intermediate = linear(x, f"{layer}.intermediate.dense")
        intermediate *= (erf(intermediate * np.float32(np.sqrt(0.5))) + 1) / 2  # GELU
        x = layer_norm(
            x + linear(intermediate, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
        )
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))
