"""Sentence embeddings behind one function.

    vectors = await embed(["A reply.", "Another."])                        # all-MiniLM-L6-v2, here, without torch
    vectors = await embed(texts, model="openai/text-embedding-3-small")    # the paper's; respects OPENAI_BASE_URL
    vectors = await embed(texts, model="BAAI/bge-small-en-v1.5")           # any sentence-transformers model
    vectors = await embed(texts, model="models/my-embedder")               # … or its folder

Paper 003, Table 1 and E.3 Task 2.3: OpenAI's small embedding model. Here: all-MiniLM-L6-v2 unless
asked otherwise, as it needs no key. It reads the first 256 word pieces of a text, about 200 words;
OpenAI's reads 8,191 tokens. Similarities of different embedders are different quantities: every log
names its embedder, none stands in for another.
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

DEFAULT_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
SHORT_NAMES = {DEFAULT_EMBEDDER.rpartition("/")[2]: DEFAULT_EMBEDDER}
"""Name for `selfprobe fetch-model`, too: the same weights, under one name in every log."""
OPENAI = "openai/"
OTHERS = (
    f"or pass another embedder (-T embedder=… to inspect, --embedder … to selfprobe): {OPENAI}text-embedding-3-small, "
    "or the folder of a sentence-transformers one"
)

UNASKED = 500
"""Number of texts that a page embeds unasked: about half a minute on one core, and kept for the
next time.
"""
_AT_ONCE = 256  # texts a request; OpenAI takes at most 2,048 texts and 300,000 tokens
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
    if blank := [i for i, text in enumerate(texts) if not text.strip()]:
        raise ValueError(f"a blank text has no embedding: texts {blank} of {len(texts)}")
    return await anyio.to_thread.run_sync(_placed, texts, model)


def embed_unasked(texts: Sequence[str]) -> Vectors:
    """Unit vectors `[text, dimension]` of the default embedder, for pages that fetch nothing and
    take no minutes.

    Raises:
        PrerequisiteError: Its weights are not on this machine, or there are more than `UNASKED`
            different texts.
    """
    if why := unfetched(DEFAULT_EMBEDDER):
        raise PrerequisiteError(why)
    if (count := len(set(texts))) > UNASKED:
        raise PrerequisiteError(f"{count:,} texts take minutes to embed; up to {UNASKED} are")
    return _placed(texts, DEFAULT_EMBEDDER)


def _placed(texts: Sequence[str], model: str) -> Vectors:
    """The vector of each text; equal texts are embedded once."""
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return (
        _vectors(list(place), model)[[place[text] for text in texts]] if place else np.empty((0, 0))
    )


def _vectors(texts: list[str], model: str) -> Vectors:
    """Unit vectors; the default's come from the cache if they are in it. The weights of other
    embedders are unknown.
    """
    how = (
        _by_openai
        if model.startswith(OPENAI)
        else _by_minilm
        if model == DEFAULT_EMBEDDER
        else _by_transformer
    )

    def compute(some: list[str]) -> Vectors:
        return unit_vectors(how(some, model), count=len(some), model=model)

    if model != DEFAULT_EMBEDDER:
        return compute(texts)
    return remembered(texts, f"{' '.join(weights.MINILM.files.values())} {MINILM_TOKENS}", compute)


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
    return f"the default embedder is not on this machine: selfprobe fetch-model {name} gets it (91 MB, once)"


def unit_vectors(rows: Sequence[Sequence[float]], *, count: int, model: str) -> Vectors:
    """Unit vectors `[text, dimension]` from the output of an embedder.

    Raises:
        ValueError: Not `count` vectors of one dimension, or one that is not finite or has no
            direction.
    """
    sizes = sorted({len(row) for row in rows})
    if len(rows) != count or len(sizes) != 1 or sizes[0] == 0:
        raise ValueError(
            f"embedder {model}: expected {count} vectors of one dimension, got {len(rows)} of dimension "
            f"{' and '.join(map(str, sizes)) or 'none'}; {OTHERS}"
        )
    vectors = np.asarray(rows, dtype=float)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if bad := [
        i for i, length in enumerate(lengths[:, 0]) if not (np.isfinite(length) and length > 0)
    ]:
        raise ValueError(
            f"embedder {model}: vectors {bad} of {count} are NaN, infinite or zero; {OTHERS}"
        )
    return np.asarray(vectors / lengths)


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


# ---- The cache of vectors, in the user's cache folder: a page made again embeds only what is new.
# A database of SQLite, which several processes may use at once. A row whose digest is another is
# computed anew, and a database that cannot be used is left alone, with a line. Texts are not kept,
# only their digests.

CACHE_FILE = "vectors.sqlite"
MOST_BYTES = 100_000_000
"""Bytes of vectors that are kept, 30,000 of the default embedder's; beyond it the older half goes.
"""
PATIENCE = 5.0
"""Seconds for which another process is waited for."""
_KEYS_AT_ONCE = 500  # keys in a query

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
    keys = {
        text: hashlib.blake2b(
            f"{identity}\0{text}".encode(errors="surrogatepass"), digest_size=20
        ).digest()
        for text in texts
    }
    try:
        known = _cached(list(keys.values()))
    except (sqlite3.Error, OSError) as error:
        _unused_cache(str(error))
        return compute(list(texts))
    missing = [text for text in texts if keys[text] not in known]
    if missing:
        new = {keys[text]: vector for text, vector in zip(missing, compute(missing), strict=True)}
        known |= new
        try:
            _keep(new)
        except (sqlite3.Error, OSError) as error:
            _unused_cache(str(error))
    return np.stack([known[keys[text]] for text in texts])


def _cache_path() -> Path:
    return cache_folder() / CACHE_FILE


def _cache_database() -> "closing[sqlite3.Connection]":
    file = _cache_path()
    file.parent.mkdir(parents=True, exist_ok=True)
    return closing(sqlite3.connect(file, timeout=PATIENCE))


def _cached(keys: Sequence[bytes]) -> dict[bytes, Vectors]:
    """The vectors that are there and whole."""
    if not _cache_path().exists():
        return {}
    found = dict[bytes, Vectors]()
    with _cache_database() as database:
        database.execute(_CACHE_TABLE)
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            rows = f"SELECT key, digest, vector FROM vectors WHERE key IN ({','.join('?' * len(some))})"
            found |= {
                key: np.frombuffer(v)
                for key, digest, v in database.execute(rows, some)
                if _digest(key, v) == digest
            }
    return found


def _keep(new: dict[bytes, Vectors]) -> None:
    """Add rows, and take the older half away where they are too many."""
    rows = ((key, _digest(key, vector.tobytes()), vector.tobytes()) for key, vector in new.items())
    with _cache_database() as database, database:
        database.execute(_CACHE_TABLE)
        database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
        [(count, size)] = database.execute("SELECT count(*), total(length(vector)) FROM vectors")
        if size > MOST_BYTES:
            oldest = "SELECT rowid FROM vectors ORDER BY rowid LIMIT ?"
            database.execute(f"DELETE FROM vectors WHERE rowid IN ({oldest})", (count // 2,))


def _digest(key: bytes, vector: bytes) -> bytes:
    return hashlib.blake2b(key + vector, digest_size=16).digest()


@functools.cache  # once a process
def _unused_cache(why: str) -> None:
    to_stderr(
        f"The cache of vectors {_cache_path()} cannot be used ({why}); texts are embedded anew. It may be deleted."
    )


# ---- all-MiniLM-L6-v2 in NumPy: no torch, nothing to compile. Six layers of BERT, the mean over a
# text's tokens, unit length (Reimers & Gurevych 2019, arXiv:1908.10084). A text is computed alone,
# so that its vector does not depend on the other texts of a call.

MINILM_TOKENS = 256
"""Tokens of a text that are read, as the model's authors set it; what follows is not."""
HEADS, LAYERS, EPSILON = 12, 6, np.float32(1e-12)

Array = npt.NDArray[np.float32]


def minilm_vectors(texts: Sequence[str], folder: Path) -> Array:
    """Unit vectors `[text, 384]` of the model in `folder` (its model.safetensors and
    tokenizer.json).
    """
    tokenizer, tensors = _minilm_weights(folder)
    ids = (
        tokenizer.encode(text.encode(errors="replace").decode()).ids for text in texts
    )  # half a character is "?"
    # A text a core, and one BLAS thread a text: its matrices are too small to be shared out.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.stack(list(pool.map(lambda one: _minilm_vector(one, tensors), ids)))


@functools.cache
def _minilm_weights(folder: Path) -> tuple[Tokenizer, dict[str, Array]]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MINILM_TOKENS)
    return tokenizer, _read_safetensors(folder / "model.safetensors")


def _read_safetensors(path: Path) -> dict[str, Array]:
    """The float32 tensors of a file (https://github.com/huggingface/safetensors#format), by name."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    tensors = {name: told for name, told in header.items() if told.get("dtype") == "F32"}
    places = {
        name: slice(*(start + end for end in told["data_offsets"]))
        for name, told in tensors.items()
    }
    return {
        name: np.frombuffer(content[places[name]], "<f4").reshape(told["shape"])
        for name, told in tensors.items()
    }


def _minilm_vector(ids: Sequence[int], tensors: dict[str, Array]) -> Array:  # token ids → [d]

    def linear(x: Array, name: str) -> Array:
        mapped: Array = x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]
        return mapped

    def norm(x: Array, name: str) -> Array:
        x = x - x.mean(axis=-1, keepdims=True)
        scaled = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON)
        shifted: Array = scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]
        return shifted

    def heads(x: Array) -> Array:  # [token, d] → [head, token, d / heads]
        return x.reshape(len(x), HEADS, -1).swapaxes(0, 1)

    x = tensors["embeddings.word_embeddings.weight"][list(ids)]  # [token, d]
    x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + tensors["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        q, k, v = (
            heads(linear(x, f"{layer}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        said = q @ k.swapaxes(1, 2) / np.float32(np.sqrt(q.shape[-1]))  # [head, token, token]
        said = np.exp(said - said.max(axis=-1, keepdims=True))
        mixed = (said / said.sum(axis=-1, keepdims=True) @ v).swapaxes(0, 1).reshape(x.shape)
        x = norm(
            x + linear(mixed, f"{layer}.attention.output.dense"),
            f"{layer}.attention.output.LayerNorm",
        )
        wide = linear(x, f"{layer}.intermediate.dense")
        wide *= (erf(wide * np.float32(np.sqrt(0.5))) + 1) / 2  # GELU
        x = norm(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))
