"""The activation cache on disk: a folder per model, template and texts, with memory-mapped safetensors shards in it.

identity.json    what the states are of; a folder of something else is refused
states-*.safetensors
    index      [row] int64      prompt number: pair · orders + order
    hidden     [layer, row, side, d_model] in the dtype of the model's residual stream
    log_probs  [row, token] float32
    finite     [row] bool
HASH/            one folder a set of labels, ids and groups of these texts: other labels cost no harvest
    pairs.jsonl      the pairs, so that the folder can be read alone
    unscored.json    pair id → reason
    reading.json     how the last harvest read them, and its rounding by layer

A shard is flushed to the disk and appears by one rename, whole or not at all; what a killed harvest had flushed is
kept. One process at a time writes. A shard that was damaged since is set aside under another name and harvested again.
"""

import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from selfprobe.data.pairs import Pair, data_hash, digest, read_pairs, write_pairs
from selfprobe.probes.forward import States

FloatArray = npt.NDArray[np.float32]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StatesIdentity:
    """All that a state depends on."""

    model: str
    revision: str
    template: str
    data: str
    dtype: str
    attention: str
    orders: int
    layers: int
    """Number of kept layers."""
    d_model: int
    blocks: str = ""
    """Numbers of the kept layers, as "8,16,24"; "" where all are."""

    @property
    def folder_name(self) -> str:
        """The model's last name and a digest of the rest; where a model lies plays no part."""
        keyed = {k: v for k, v in asdict(self).items() if k != "model" and (v or k != "blocks")}
        name = "".join(c if c.isalnum() or c in "-." else "-" for c in self.model.rstrip("/").rsplit("/", 1)[-1])
        return f"{name}-{digest(json.dumps(keyed, sort_keys=True))}"


class Store:
    """One activation cache; `create` to write, `Store(folder)` to read. `folder` is the one of a set of labels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Versions up to 0.2 kept states and pairs in one folder.
        self.states = folder if (folder / "identity.json").is_file() else folder.parent
        self._batches: list[tuple[Sequence[int], States]] = []
        self.pending_bytes = 0
        file = self.states / "identity.json"
        if not file.is_file() or not (folder / "pairs.jsonl").is_file():
            raise FileNotFoundError(f"{folder} is no activation cache: it has no identity.json and pairs.jsonl")
        self.identity = _identity(file)

    @classmethod
    def create(cls, states: Path, identity: StatesIdentity, pairs: Sequence[Pair]) -> "Store":
        """The store of `pairs` in the folder `states`, made if missing; ValueError if other content is there."""
        folder = states / data_hash(pairs)
        folder.mkdir(parents=True, exist_ok=True)
        if not _holds(folder / "pairs.jsonl", pairs):
            write_pairs(pairs, folder / "pairs.part")
            (folder / "pairs.part").replace(folder / "pairs.jsonl")
        if not (states / "identity.json").is_file():
            put_json(asdict(identity), states / "identity.json")
        store = cls(folder)
        differing = [
            f"{f.name} {getattr(store.identity, f.name)!r} instead of {getattr(identity, f.name)!r}"
            for f in fields(StatesIdentity)
            if f.name != "model" and getattr(store.identity, f.name) != getattr(identity, f.name)
        ]
        if differing:
            raise ValueError(f"{states} is an activation cache of something else: {'; '.join(differing)}")
        return store

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Context in which this process alone may write; damaged shards are set aside first.

        It raises ValueError where another process is writing.
        """
        lock = FileLock(self.states / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ValueError(
                f"another process is harvesting into {self.states}: wait until it is done, or take another --out"
            ) from None
        try:
            for shard, why in self.damaged.items():
                shard.replace(shard.with_name(f"damaged-{shard.name}"))
                logger.warning("%s is damaged (%s): set aside, and its pairs are harvested again", shard, why)
            yield
        finally:
            lock.release()

    @property
    def shards(self) -> list[Path]:
        """Sound shards, in the order in which they were written."""
        damaged = self.damaged
        return [shard for shard in self._found() if shard not in damaged]

    @property
    def damaged(self) -> dict[Path, str]:
        """Shards that cannot be read, with the reason."""
        return {shard: why for shard in self._found() if (why := self._fault(shard))}

    def _found(self) -> list[Path]:
        return sorted(self.states.glob("states-*.safetensors"))

    def _fault(self, shard: Path) -> str:
        try:
            with safe_open(shard, framework="pt") as file:
                shape, rows = file.get_slice("hidden").get_shape(), file.get_slice("index").get_shape()[0]
                others = [file.get_slice(name).get_shape() for name in ("log_probs", "finite")]
        except (SafetensorError, OSError) as error:
            return str(error)
        expected = [self.identity.layers, rows, 2, self.identity.d_model]
        if others != [[rows, 2], [rows]]:
            return f"log_probs and finite of shapes {others}, expected {[[rows, 2], [rows]]}"
        return "" if shape == expected else f"states of shape {shape}, expected {expected}"

    def add(self, rows: Sequence[int], states: States) -> None:
        """Keep one batch until the next flush."""
        self._batches.append((rows, states))
        self.pending_bytes += states.hidden.nbytes

    def flush(self) -> None:
        """Write the pending batches as one shard."""
        if not self._batches:
            return
        hidden = torch.cat([s.hidden for _, s in self._batches]).permute(2, 0, 1, 3).contiguous()
        log_probs = torch.cat([s.log_probs for _, s in self._batches])
        finite = hidden.isfinite().all(dim=3).all(dim=2).all(dim=0) & log_probs.isfinite().all(dim=1)
        index = torch.tensor([i for rows, _ in self._batches for i in rows], dtype=torch.int64)
        numbers = [int(shard.stem.rpartition("-")[2]) for shard in self._found()]
        target = self.states / f"states-{max(numbers, default=-1) + 1:05d}.safetensors"
        self._batches, self.pending_bytes = [], 0
        part = self.states / f"part-{os.getpid()}"
        try:
            save_file({"index": index, "hidden": hidden, "log_probs": log_probs, "finite": finite}, part)
            _to_disk(part)
        except (SafetensorError, OSError) as error:
            part.unlink(missing_ok=True)
            free = shutil.disk_usage(self.states).free
            raise OSError(
                f"{len(index)} prompts' states ({hidden.nbytes / 1e6:.0f} MB) cannot be written to {self.states}, "
                f"where {free / 1e6:.0f} MB are free: {error}. "
                "What was written before is kept: make room, and run again"
            ) from error
        part.replace(target)
        if hasattr(os, "O_DIRECTORY"):
            _to_disk(self.states, os.O_DIRECTORY)  # the new name, too

    def positions(self) -> dict[int, int]:
        """Prompt number → row over all shards."""
        return {int(i): row for row, i in enumerate(self._all("index").tolist())}

    def done(self) -> set[int]:
        """Numbers of the prompts that are on disk."""
        return set(self.positions())

    def layer(self, number: int) -> FloatArray:
        """[row, side, d_model] float32 of one layer, over all shards."""
        parts = []
        for shard in self.shards:
            with safe_open(shard, framework="pt") as file:
                parts.append(file.get_slice("hidden")[number : number + 1][0].float().numpy())
        if not parts:
            return np.empty((0, 2, self.identity.d_model), dtype=np.float32)
        return np.concatenate(parts)

    def log_probs(self) -> FloatArray:
        """[row, token] over all shards."""
        return np.asarray(self._all("log_probs").numpy(), dtype=np.float32)

    def not_finite(self, pairs: Sequence[Pair]) -> dict[str, str]:
        """Pairs with a state that is NaN or infinite in some layer."""
        bad = self._all("index")[~self._all("finite").bool()]
        reason = "states are not finite (NaN or infinite): try dtype float32 or bfloat16"
        return {pairs[int(i) // self.identity.orders].id: reason for i in bad}

    def read_reasons(self) -> dict[str, str]:
        """Pair id → reason, from the last harvest."""
        file = self.folder / "unscored.json"
        return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}

    def write_reasons(self, reasons: dict[str, str]) -> None:
        """Keep the reasons next to the states."""
        if reasons != self.read_reasons():
            put_json(reasons, self.folder / "unscored.json")

    def read_rounding(self) -> tuple[float, ...]:
        """[layer]: rounding that the last harvest measured; see `choose.Reading`. Empty where it is unknown."""
        file = self.folder / "reading.json"
        return tuple(json.loads(file.read_text("utf-8"))["rounding"]) if file.is_file() else ()

    def write_reading(self, how: str, rounding: Sequence[float]) -> None:
        """Keep how the states were read."""
        put_json({"read": how, "rounding": list(rounding)}, self.folder / "reading.json")

    def _all(self, name: str) -> torch.Tensor:
        parts = []
        for shard in self.shards:
            with safe_open(shard, framework="pt") as file:
                parts.append(file.get_tensor(name))
        empty = {"index": (0,), "finite": (0,), "log_probs": (0, 2)}[name]
        return torch.cat(parts) if parts else torch.empty(empty, dtype=torch.int64)


def _identity(file: Path) -> StatesIdentity:
    """Identity of a cache, from its file; ValueError where that cannot be read."""
    try:
        return StatesIdentity(**json.loads(file.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{file} is not what this version writes ({error}): delete {file.parent}, and its pairs are read again"
        ) from None


def _holds(file: Path, pairs: Sequence[Pair]) -> bool:
    """Whether `file` holds these pairs: it may be missing, or cut by a crash of the machine."""
    try:
        return read_pairs(file) == tuple(pairs)
    except (OSError, ValueError, TypeError):
        return False


def put_json(content: Mapping[str, Any], file: Path) -> None:
    """Write a JSON file, whole or not at all: a full disk would leave one that no run can go on from."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    part.replace(file)


def _to_disk(path: Path, flags: int = 0) -> None:
    """Let what was written to `path` survive a power cut."""
    handle = os.open(path, os.O_RDONLY | flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
