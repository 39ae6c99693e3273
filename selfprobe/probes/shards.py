"""The activation cache on disk: one folder a model, template and data set; memory-mapped safetensors shards in it.

identity.json    what the states are of; a folder of something else is refused
pairs.jsonl      the pairs, so that the folder can be read alone
unscored.json    pair id → reason
states-*.safetensors
    index      [row] int64      prompt number: pair · orders + order
    hidden     [layer, row, side, d_model] in the model's dtype, so that a layer is one read
    log_probs  [row, token] float32
    finite     [row] bool

A shard appears by one rename, whole or not at all; what a killed harvest had flushed is kept.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from selfprobe.probes.forward import States
from selfprobe.sources.pairs import Pair, digest, write_pairs

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Identity:
    """Everything that a state depends on."""

    model: str
    revision: str
    template: str
    data: str
    dtype: str
    attention: str
    orders: int
    layers: int
    """How many are kept."""
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
    """One activation cache; `create` to write, `Store(folder)` to read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._batches: list[tuple[Sequence[int], States]] = []
        self.pending_bytes = 0
        file = folder / "identity.json"
        if not file.is_file():
            raise FileNotFoundError(f"{folder} is no activation cache: it has no identity.json")
        self.identity = Identity(**json.loads(file.read_text("utf-8")))

    @classmethod
    def create(cls, folder: Path, identity: Identity, pairs: Sequence[Pair]) -> "Store":
        """The store in `folder`, made if it is not there; an error if it is of something else."""
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "identity.json").is_file():
            write_pairs(pairs, folder / "pairs.jsonl")
            part = folder / "identity.part"
            part.write_text(json.dumps(asdict(identity), indent=1), encoding="utf-8")
            part.replace(folder / "identity.json")
        store = cls(folder)
        differing = [
            f"{f.name} {getattr(store.identity, f.name)!r} instead of {getattr(identity, f.name)!r}"
            for f in fields(Identity)
            if f.name != "model" and getattr(store.identity, f.name) != getattr(identity, f.name)
        ]
        if differing:
            raise ValueError(f"{folder} is an activation cache of something else: {'; '.join(differing)}")
        return store

    @property
    def shards(self) -> list[Path]:
        """In the order in which they were written."""
        return sorted(self.folder.glob("states-*.safetensors"))

    def add(self, rows: Sequence[int], states: States) -> None:
        """Keep one batch until the next flush."""
        self._batches.append((rows, states))
        self.pending_bytes += states.hidden.nbytes

    def flush(self) -> None:
        """Write what is pending as one shard."""
        if not self._batches:
            return
        hidden = torch.cat([s.hidden for _, s in self._batches]).permute(2, 0, 1, 3).contiguous()
        log_probs = torch.cat([s.log_probs for _, s in self._batches])
        finite = hidden.isfinite().all(dim=3).all(dim=2).all(dim=0) & log_probs.isfinite().all(dim=1)
        index = torch.tensor([i for rows, _ in self._batches for i in rows], dtype=torch.int64)
        part = self.folder / f"part-{os.getpid()}"
        save_file({"index": index, "hidden": hidden, "log_probs": log_probs, "finite": finite}, part)
        part.replace(self.folder / f"states-{len(self.shards):05d}.safetensors")
        self._batches, self.pending_bytes = [], 0

    def positions(self) -> dict[int, int]:
        """Prompt number → row over all shards."""
        return {int(i): row for row, i in enumerate(self._all("index").tolist())}

    def done(self) -> set[int]:
        """Prompt numbers that are on disk."""
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
        """Pair id → reason, as written by the last harvest."""
        file = self.folder / "unscored.json"
        return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}

    def write_reasons(self, reasons: dict[str, str]) -> None:
        """Keep the reasons beside the states."""
        if reasons != self.read_reasons():
            (self.folder / "unscored.json").write_text(json.dumps(reasons, indent=1, ensure_ascii=False), "utf-8")

    def _all(self, name: str) -> torch.Tensor:
        parts = []
        for shard in self.shards:
            with safe_open(shard, framework="pt") as file:
                parts.append(file.get_tensor(name))
        empty = {"index": (0,), "finite": (0,), "log_probs": (0, 2)}[name]
        return torch.cat(parts) if parts else torch.empty(empty, dtype=torch.int64)
