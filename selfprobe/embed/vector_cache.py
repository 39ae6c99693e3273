"""Vectors of texts, kept in the user's cache folder: a page made again embeds only what is new.

A database of SQLite, which several processes may use at once. What it says is checked: a row whose digest is another is
computed anew, and a database that cannot be used is left alone, with a line. Texts are not kept, only their digests.
"""

import functools
import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from selfprobe.embed.weights import cache_folder, to_stderr

Vectors = npt.NDArray[np.float64]

FILE = "vectors.sqlite"
MOST = 100_000_000
"""Bytes of vectors that are kept, 30,000 of the default embedder's; beyond it the older half goes."""
PATIENCE = 5.0
"""Seconds for which another process is waited for."""
_AT_ONCE = 500  # keys in a query

_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, digest BLOB, vector BLOB)"


def remembered(texts: Sequence[str], identity: str, compute: Callable[[list[str]], Vectors]) -> Vectors:
    """The vectors `[text, dimension]`, from the cache or computed, bit for bit the same.

    Args:
        texts: Different texts.
        identity: Everything that decides which vector a text gets: the embedder's weights and how they are used.
        compute: Function that makes the vectors of texts.
    """
    keys = {
        text: hashlib.blake2b(f"{identity}\0{text}".encode(errors="surrogatepass"), digest_size=20).digest()
        for text in texts
    }
    try:
        known = _read(list(keys.values()))
    except (sqlite3.Error, OSError) as error:
        _left(str(error))
        return compute(list(texts))
    missing = [text for text in texts if keys[text] not in known]
    if missing:
        new = {keys[text]: vector for text, vector in zip(missing, compute(missing), strict=True)}
        known |= new
        try:
            _write(new)
        except (sqlite3.Error, OSError) as error:
            _left(str(error))
    return np.stack([known[keys[text]] for text in texts])


def _path() -> Path:
    return cache_folder() / FILE


def _opened() -> "closing[sqlite3.Connection]":
    file = _path()
    file.parent.mkdir(parents=True, exist_ok=True)
    return closing(sqlite3.connect(file, timeout=PATIENCE))


def _read(keys: Sequence[bytes]) -> dict[bytes, Vectors]:
    """The vectors that are there and whole."""
    if not _path().exists():
        return {}
    found = dict[bytes, Vectors]()
    with _opened() as database:
        database.execute(_TABLE)
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            rows = f"SELECT key, digest, vector FROM vectors WHERE key IN ({','.join('?' * len(some))})"
            found |= {
                key: np.frombuffer(v) for key, digest, v in database.execute(rows, some) if _digest(key, v) == digest
            }
    return found


def _write(new: dict[bytes, Vectors]) -> None:
    """Add rows, and take the older half away where they are too many."""
    rows = ((key, _digest(key, vector.tobytes()), vector.tobytes()) for key, vector in new.items())
    with _opened() as database, database:
        database.execute(_TABLE)
        database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
        [(count, size)] = database.execute("SELECT count(*), total(length(vector)) FROM vectors")
        if size > MOST:
            oldest = "SELECT rowid FROM vectors ORDER BY rowid LIMIT ?"
            database.execute(f"DELETE FROM vectors WHERE rowid IN ({oldest})", (count // 2,))


def _digest(key: bytes, vector: bytes) -> bytes:
    return hashlib.blake2b(key + vector, digest_size=16).digest()


@functools.cache  # once a process
def _left(why: str) -> None:
    to_stderr(f"The cache of vectors {_path()} cannot be used ({why}); texts are embedded anew. It may be deleted.")
