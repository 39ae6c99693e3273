"""Harvest: the states of a data set's pairs, streamed to shards on disk; a killed harvest continues
where it stopped.

    harvested = harvest(judge, pairs, Path("activations"))
    harvested.layer(12)          # [pair, order, side, d_model] float32
    harvested.log_probs          # [pair, order, token] float32

Every pair is shown in both orders unless `both_orders` is false. A pair that cannot be read (longer
than the context, equal texts, states that are not finite) is left unscored with its reason, never
cut or imputed.

On disk (`Store`) there is a folder per model, template and texts, with memory-mapped safetensors
shards in it:

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

A shard is flushed to the disk and appears by one rename, whole or not at all; what a killed harvest
had flushed is kept. One process at a time writes. A shard that was damaged since is set aside under
another name and harvested again.
"""

import json
import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from selfprobe.data.pairs import Pair, checked, data_hash, digest, read_pairs, write_pairs
from selfprobe.embed.weights import Progress, cache_folder, to_stderr
from selfprobe.probes import forward
from selfprobe.probes.folder import put_json
from selfprobe.probes.forward import States, attention_name, choose_reading, cut_batches
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import PLAIN, Chat, Prompt, encode, rendered, template_hash

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
        name = "".join(
            c if c.isalnum() or c in "-." else "-"
            for c in self.model.rstrip("/").rsplit("/", 1)[-1]
        )
        return f"{name}-{digest(json.dumps(keyed, sort_keys=True))}"


class Store:
    """One activation cache; `create` to write, `Store(folder)` to read. `folder` is the one of a
    set of labels.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Versions up to 0.2 kept states and pairs in one folder.
        self.states = folder if (folder / "identity.json").is_file() else folder.parent
        self._batches: list[tuple[Sequence[int], States]] = []
        self.pending_bytes = 0
        file = self.states / "identity.json"
        if not file.is_file() or not (folder / "pairs.jsonl").is_file():
            raise FileNotFoundError(
                f"{folder} is no activation cache: it has no identity.json and pairs.jsonl"
            )
        self.identity = _identity(file)

    @classmethod
    def create(cls, states: Path, identity: StatesIdentity, pairs: Sequence[Pair]) -> "Store":
        """The store of `pairs` in the folder `states`, made if missing; ValueError if other content
        is there.
        """
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
            raise ValueError(
                f"{states} is an activation cache of something else: {'; '.join(differing)}"
            )
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
                logger.warning(
                    "%s is damaged (%s): set aside, and its pairs are harvested again", shard, why
                )
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
                shape, rows = (
                    file.get_slice("hidden").get_shape(),
                    file.get_slice("index").get_shape()[0],
                )
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
        finite = hidden.isfinite().all(dim=3).all(dim=2).all(dim=0) & log_probs.isfinite().all(
            dim=1
        )
        index = torch.tensor([i for rows, _ in self._batches for i in rows], dtype=torch.int64)
        numbers = [int(shard.stem.rpartition("-")[2]) for shard in self._found()]
        target = self.states / f"states-{max(numbers, default=-1) + 1:05d}.safetensors"
        self._batches, self.pending_bytes = [], 0
        part = self.states / f"part-{os.getpid()}"
        try:
            save_file(
                {"index": index, "hidden": hidden, "log_probs": log_probs, "finite": finite}, part
            )
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
        """[layer]: rounding that the last harvest measured; see `forward.Reading`. Empty where it
        is unknown.
        """
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


def _to_disk(path: Path, flags: int = 0) -> None:
    """Let what was written to `path` survive a power cut."""
    handle = os.open(path, os.O_RDONLY | flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


BATCH_TOKENS = {"cpu": 1024, "cuda": 16384}
SHARD_BYTES = 64 << 20
FLUSH_SECONDS = 20
"""Largest number of seconds of work that a killed harvest loses."""


@dataclass(frozen=True)
class Harvest:
    """States of the scored pairs, read from disk a layer at a time."""

    folder: Path
    identity: StatesIdentity
    """Model, template and data of the states."""
    pairs: tuple[Pair, ...]
    """The scored pairs; row i of every array is pair i."""
    unscored: dict[str, str]
    """Pair id → reason."""
    rows: npt.NDArray[np.intp]
    """[pair, order] → row in the store; order 1 is the swapped pair."""
    chat: Chat = PLAIN
    """Content of the chat template besides the comparison."""

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """[pair, layer, order, side, d_model]: shape of the array that it stands for, for
        scikit-learn's splitters.
        """
        return (
            *self.rows.shape[:1],
            self.identity.layers,
            self.identity.orders,
            2,
            self.identity.d_model,
        )

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, rows: Any) -> "Harvest":
        """The harvest of some pairs: a slice, indices or a mask [pair]."""
        wanted = np.arange(len(self.pairs))[rows[0] if isinstance(rows, tuple) else rows].reshape(
            -1
        )
        return replace(self, pairs=tuple(self.pairs[i] for i in wanted), rows=self.rows[wanted])

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the blocks whose states are kept, from 0."""
        kept = self.identity.blocks
        return tuple(map(int, kept.split(","))) if kept else tuple(range(self.identity.layers))

    def layer(self, number: int) -> FloatArray:
        """States after block `number` (from 0): [pair, order, side, d_model]."""
        if number not in self.layers:
            kept = self.identity.blocks or f"0..{self.identity.layers - 1}"
            raise ValueError(f"layer must be in {kept}, got {number}")
        return Store(self.folder).layer(self.layers.index(number))[self.rows]

    @cached_property
    def log_probs(self) -> FloatArray:
        """Answers of the model itself: log P("1"), log P("2") as [pair, order, token]."""
        return Store(self.folder).log_probs()[self.rows]

    @cached_property
    def rounding(self) -> tuple[float, ...]:
        """[layer]: rounding of φ⁺ − φ⁻ as a share of its spread over pairs; empty where unknown."""
        return Store(self.folder).read_rounding()

    @property
    def data_hash(self) -> str:
        """Hash of the pairs with their labels, ids and groups."""
        return data_hash(read_pairs(self.folder / "pairs.jsonl"))

    @property
    def labels(self) -> npt.NDArray[np.intp]:
        """Labels in the first order: 1 or 2, and 0 where unknown."""
        return np.array([pair.label or 0 for pair in self.pairs], dtype=np.intp)

    @property
    def groups(self) -> npt.NDArray[np.str_]:
        """The source question of each pair."""
        return np.array([pair.group for pair in self.pairs])


def harvest(
    judge: LocalModel,
    pairs: Iterable[Pair],
    cache: Path | None = None,
    *,
    both_orders: bool = True,
    path: forward.Way | Literal["auto"] = "auto",
    batch_tokens: int | None = None,
    longest: int | None = None,
    reader: forward.Reader = forward.read_in_process,
    progress: Progress = to_stderr,
) -> Harvest:
    """States of `pairs` under `judge`, from `cache` where it has them, else computed and kept
    there.

    Args:
        cache: Folder of activation caches; each lies in a folder named by model, revision,
            template, data and settings. The same call continues a killed harvest. Default:
            selfprobe's own cache.
        both_orders: Also harvest every pair with its texts swapped.
        path: Way of the forward passes; see `forward`. All agree within rounding.
        batch_tokens: Tokens of a batch, padding included. Default: 1,024 on a CPU and 16,384
            elsewhere.
        longest: Tokens above which pairs are left unscored, to save time. Default: the model's
            context.
        reader: Reader of batches: `judge` in this process, or copies of it elsewhere; see
            `on_ray.replicas`.
        progress: Called with one line from time to time: done, rate, time left.

    Raises:
        ContrastTokenError: The tokenizer does not give contrast pairs.
        ValueError: Ids repeat, or the folder holds states of something else.
    """
    known = checked(pairs)
    orders = 2 if both_orders else 1
    shown = [version for pair in known for version in (pair, pair.swapped)[:orders]]
    prompts = encode(judge.tokenizer, shown, judge.chat)
    identity = states_identity(judge, shown, orders)
    store = Store.create(
        (cache or cache_folder() / "activations") / identity.folder_name, identity, known
    )
    reasons = unreadable_pairs(known, prompts, judge.context, longest)
    wanted = [i for i in range(len(prompts)) if known[i // orders].id not in reasons]
    if set(wanted) - store.done():
        with store.writing():
            todo = sorted(set(wanted) - store.done(), key=lambda i: (prompts[i].length, i))
            _run(
                judge,
                prompts,
                todo,
                store,
                path=path,
                batch_tokens=batch_tokens,
                reader=reader,
                progress=progress,
            )
    return replace(open_harvest(store.folder, reasons=reasons), chat=judge.chat)


def open_harvest(
    folder: Path, *, judge: LocalModel | None = None, reasons: dict[str, str] | None = None
) -> Harvest:
    """The harvest in `folder`; with `judge`, ValueError unless it is that model's."""
    store = Store(folder)
    identity = store.identity
    if judge is not None and identity.revision != judge.revision:
        raise ValueError(
            f"{folder} holds activations of {identity.model} ({identity.revision}), not of {judge.name} "
            f"({judge.revision}). Harvest again for this model"
        )
    known = read_pairs(folder / "pairs.jsonl")
    place = store.positions()
    unscored = dict(reasons) if reasons is not None else store.read_reasons()
    unscored |= store.not_finite(known)
    orders = identity.orders
    complete = [i for i in range(len(known)) if all(i * orders + o in place for o in range(orders))]
    scored = [i for i in complete if known[i].id not in unscored]
    missing = [p.id for i, p in enumerate(known) if i not in set(complete) and p.id not in unscored]
    if missing:
        bad = "".join(f"; {shard.name} is damaged" for shard in store.damaged)
        raise ValueError(
            f"the harvest in {folder} is not finished: {len(missing)} pairs are missing{bad}. Run it again"
        )
    store.write_reasons(unscored)
    rows = np.array([[place[i * orders + o] for o in range(orders)] for i in scored], dtype=np.intp)
    return Harvest(
        folder, identity, tuple(known[i] for i in scored), unscored, rows.reshape(-1, orders)
    )


def states_identity(judge: LocalModel, shown: Sequence[Pair], orders: int) -> StatesIdentity:
    """Identity of the states of `shown` (all orders of all pairs) under `judge`: what the model
    reads, not labels.
    """
    return StatesIdentity(
        model=judge.name,
        revision=judge.revision,
        template=template_hash(judge.tokenizer, judge.chat),
        data=digest(*(rendered(judge.tokenizer, pair, judge.chat) for pair in shown)),
        dtype=judge.precision,
        attention=attention_name(judge.model),
        orders=orders,
        layers=len(judge.blocks),
        d_model=judge.d_model,
        blocks=",".join(map(str, judge.layers)),
    )


def unreadable_pairs(
    pairs: Sequence[Pair], prompts: Sequence[Prompt], context: int, longest: int | None = None
) -> dict[str, str]:
    """Pair id → reason why it is not harvested; `prompts` are those of all orders of all pairs,
    pair by pair.
    """
    reasons, orders = {}, len(prompts) // max(len(pairs), 1)
    for i, pair in enumerate(pairs):
        length = max(p.length for p in prompts[i * orders : (i + 1) * orders])
        special = next((p.special for p in prompts[i * orders : (i + 1) * orders] if p.special), "")
        if pair.equal_texts:
            reasons[pair.id] = "equal texts"
        elif special:
            reasons[pair.id] = (
                f"special token in its texts: {special}, which this model would not read as text"
            )
        elif length > context:
            reasons[pair.id] = f"too long: {length} tokens, the context is {context}"
        elif longest is not None and length > longest:
            reasons[pair.id] = f"longer than asked for: {length} tokens, the limit is {longest}"
    return reasons


def batch_budget(judge: LocalModel) -> int:
    """Default number of tokens of a batch, padding included."""
    return BATCH_TOKENS.get(judge.device.type, BATCH_TOKENS["cuda"])


def _run(
    judge: LocalModel,
    prompts: Sequence[Prompt],
    todo: list[int],
    store: Store,
    *,
    path: forward.Way | Literal["auto"],
    batch_tokens: int | None,
    reader: forward.Reader,
    progress: Progress,
) -> None:
    budget = batch_tokens or batch_budget(judge)
    reading = choose_reading(judge, [prompts[i] for i in todo], path, batch_tokens=budget)
    meter = Meter(sum(prompts[i].length for i in todo), len(todo), progress)
    store.write_reading(str(reading), reading.rounding)
    progress(f"{len(todo)} prompts to read in {store.folder} ({reading})")
    if reading.rounding and max(reading.rounding) > 0.05:
        progress(
            f"rounding of {store.identity.dtype}: up to {max(reading.rounding):.0%} of what a probe reads"
        )
    parts = (
        (rows, [prompts[i] for i in rows]) for rows in cut_batches(prompts, todo, budget, reading)
    )
    work = (forward.Batch(rows, shown, reading.way) for rows, shown in parts)
    try:
        for batch, states in reader(judge, work):
            store.add(batch.rows, states)
            if store.pending_bytes >= SHARD_BYTES or meter.seconds_since_flush > FLUSH_SECONDS:
                store.flush()
                meter.flushed()
            meter.add(sum(p.length for p in batch.prompts), len(batch.rows))
    finally:  # what was read before an interrupt is kept
        store.flush()
    meter.finish()


class Meter:
    """Progress of a harvest, at most every ten seconds; time left is estimated by tokens, as
    prompts differ in length.

    `unit`: name of what is counted, if not prompts.
    """

    def __init__(
        self, tokens: int, prompts: int, progress: Progress, unit: str = "prompts"
    ) -> None:
        self.tokens, self.prompts, self.progress, self.unit = tokens, prompts, progress, unit
        self.started = self.said = self.last_flush = time.monotonic()
        self.tokens_done = self.prompts_done = 0

    @property
    def seconds_since_flush(self) -> float:
        return time.monotonic() - self.last_flush

    def flushed(self) -> None:
        self.last_flush = time.monotonic()

    def add(self, tokens: int, prompts: int) -> None:
        self.tokens_done += tokens
        self.prompts_done += prompts
        if time.monotonic() - self.said >= 10:
            self.said = time.monotonic()
            self.progress(self._line())

    def finish(self) -> None:
        self.progress(self._line())

    def _line(self) -> str:
        passed = max(time.monotonic() - self.started, 1e-9)
        rate = self.tokens_done / passed
        left = (self.tokens - self.tokens_done) / max(rate, 1e-9)
        return (
            f"{self.prompts_done} of {self.prompts} {self.unit}, {self.prompts_done / passed:.1f} {self.unit}/s, "
            f"{rate:.0f} tokens/s, {left:.0f} s left"
        )
