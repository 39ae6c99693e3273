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
HASH/            one folder a set of labels, ids and groups of these texts
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
import re
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
from selfprobe.probes.tokens import PLAIN_CHAT, Chat, Prompt, encode, pair_prompt, template_hash

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
        keyed = asdict(self)
        del keyed["model"]
        keyed = {name: value for name, value in keyed.items() if value or name != "blocks"}
        last_name = self.model.rstrip("/").rsplit("/", 1)[-1]
        safe_name = re.sub(r"[^\w.-]|_", "-", last_name)
        return f"{safe_name}-{digest(json.dumps(keyed, sort_keys=True))}"


class Store:
    """One activation cache; `create` to write, `Store(folder)` to read. `folder` is the one of a
    set of labels.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states = folder.parent
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
        differences: list[str] = []
        for field in fields(StatesIdentity):
            kept_value, value = getattr(store.identity, field.name), getattr(identity, field.name)
            if field.name != "model" and kept_value != value:
                differences.append(f"{field.name} {kept_value!r} instead of {value!r}")
        if differences:
            raise ValueError(
                f"{states} is an activation cache of something else: {'; '.join(differences)}"
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
                f"another process is harvesting into {self.states}: "
                "wait until it is done, or take another --out"
            ) from None
        try:
            for shard, fault in self.damaged.items():
                shard.replace(shard.with_name(f"damaged-{shard.name}"))
                logger.warning(
                    "%s is damaged (%s): set aside, and its pairs are harvested again", shard, fault
                )
            yield
        finally:
            lock.release()

    @property
    def shards(self) -> list[Path]:
        """Sound shards, in the order in which they were written."""
        damaged = self.damaged
        return [shard for shard in self._all_shards() if shard not in damaged]

    @property
    def damaged(self) -> dict[Path, str]:
        """Shards that cannot be read, with the reason."""
        fault_by_shard = {shard: self._shard_fault(shard) for shard in self._all_shards()}
        return {shard: fault for shard, fault in fault_by_shard.items() if fault}

    def _all_shards(self) -> list[Path]:
        return sorted(self.states.glob("states-*.safetensors"))

    def _shard_fault(self, shard: Path) -> str:
        """Reason why a shard cannot be read; "" if it can."""
        try:
            with safe_open(shard, framework="pt") as file:
                hidden_shape = file.get_slice("hidden").get_shape()
                row_count = file.get_slice("index").get_shape()[0]
                log_probs_shape = file.get_slice("log_probs").get_shape()
                finite_shape = file.get_slice("finite").get_shape()
        except (SafetensorError, OSError) as error:
            return str(error)
        other_shapes = [log_probs_shape, finite_shape]
        expected_shapes = [[row_count, 2], [row_count]]
        if other_shapes != expected_shapes:
            return f"log_probs and finite of shapes {other_shapes}, expected {expected_shapes}"
        expected_hidden = [self.identity.layers, row_count, 2, self.identity.d_model]
        if hidden_shape != expected_hidden:
            return f"states of shape {hidden_shape}, expected {expected_hidden}"
        return ""

    def add(self, rows: Sequence[int], states: States) -> None:
        """Keep one batch until the next flush."""
        self._batches.append((rows, states))
        self.pending_bytes += states.hidden.nbytes

    def flush(self) -> None:
        """Write the pending batches as one shard."""
        if not self._batches:
            return
        batch_hidden = [states.hidden for _, states in self._batches]
        hidden = torch.cat(batch_hidden).permute(2, 0, 1, 3).contiguous()
        log_probs = torch.cat([states.log_probs for _, states in self._batches])
        hidden_is_finite = hidden.isfinite().all(dim=3).all(dim=2).all(dim=0)
        prompt_numbers = [number for rows, _ in self._batches for number in rows]
        tensors = {
            "index": torch.tensor(prompt_numbers, dtype=torch.int64),
            "hidden": hidden,
            "log_probs": log_probs,
            "finite": hidden_is_finite & log_probs.isfinite().all(dim=1),
        }
        shard_numbers = [int(shard.stem.rpartition("-")[2]) for shard in self._all_shards()]
        next_number = max(shard_numbers, default=-1) + 1
        self._batches, self.pending_bytes = [], 0
        part_file = self.states / f"part-{os.getpid()}"
        try:
            save_file(tensors, part_file)
            _to_disk(part_file)
        except (SafetensorError, OSError) as error:
            part_file.unlink(missing_ok=True)
            free_bytes = shutil.disk_usage(self.states).free
            raise OSError(
                f"{len(prompt_numbers)} prompts' states ({hidden.nbytes / 1e6:.0f} MB) cannot be "
                f"written to {self.states}, where {free_bytes / 1e6:.0f} MB are free: {error}. "
                "What was written before is kept: make room, and run again"
            ) from error
        part_file.replace(self.states / f"states-{next_number:05d}.safetensors")
        if hasattr(os, "O_DIRECTORY"):
            _to_disk(self.states, os.O_DIRECTORY)  # the new name, too

    def positions(self) -> dict[int, int]:
        """Prompt number → row over all shards."""
        prompt_numbers = self._rows_of_all_shards("index").tolist()
        return {int(number): row for row, number in enumerate(prompt_numbers)}

    def done(self) -> set[int]:
        """Numbers of the prompts that are on disk."""
        return set(self.positions())

    def layer(self, number: int) -> FloatArray:
        """[row, side, d_model] float32 of one layer, over all shards."""
        parts: list[FloatArray] = []
        for shard in self.shards:
            with safe_open(shard, framework="pt") as file:
                layer_states = file.get_slice("hidden")[number : number + 1][0]
                parts.append(layer_states.float().numpy())
        if not parts:
            return np.empty((0, 2, self.identity.d_model), dtype=np.float32)
        return np.concatenate(parts)

    def log_probs(self) -> FloatArray:
        """[row, token] over all shards."""
        return np.asarray(self._rows_of_all_shards("log_probs").numpy(), dtype=np.float32)

    def not_finite(self, pairs: Sequence[Pair]) -> dict[str, str]:
        """Pairs with a state that is NaN or infinite in some layer."""
        is_finite = self._rows_of_all_shards("finite").bool()
        bad_prompts = self._rows_of_all_shards("index")[~is_finite]
        reason = "states are not finite (NaN or infinite): try dtype float32 or bfloat16"
        return {pairs[int(number) // self.identity.orders].id: reason for number in bad_prompts}

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

    def _rows_of_all_shards(self, name: str) -> torch.Tensor:
        parts: list[torch.Tensor] = []
        for shard in self.shards:
            with safe_open(shard, framework="pt") as file:
                parts.append(file.get_tensor(name))
        if parts:
            return torch.cat(parts)
        empty_shape = {"index": (0,), "finite": (0,), "log_probs": (0, 2)}[name]
        return torch.empty(empty_shape, dtype=torch.int64)


def _identity(file: Path) -> StatesIdentity:
    """Identity of a cache, from its file; ValueError where that cannot be read."""
    try:
        return StatesIdentity(**json.loads(file.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{file} is not what this version writes ({error}): delete {file.parent}, "
            "and its pairs are read again"
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
REPORT_SECONDS = 10
"""Shortest time between two lines of progress."""


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
    chat: Chat = PLAIN_CHAT
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
        selection = rows[0] if isinstance(rows, tuple) else rows
        pair_numbers = np.arange(len(self.pairs))[selection].reshape(-1)
        pairs = tuple(self.pairs[number] for number in pair_numbers)
        return replace(self, pairs=pairs, rows=self.rows[pair_numbers])

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the blocks whose states are kept, from 0."""
        block_list = self.identity.blocks
        if not block_list:
            return tuple(range(self.identity.layers))
        return tuple(int(block) for block in block_list.split(","))

    def layer(self, number: int) -> FloatArray:
        """States after block `number` (from 0): [pair, order, side, d_model]."""
        if number not in self.layers:
            known_layers = self.identity.blocks or f"0..{self.identity.layers - 1}"
            raise ValueError(f"layer must be in {known_layers}, got {number}")
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
    checked_pairs = checked(pairs)
    ordered_pairs = _in_orders(checked_pairs, both_orders=both_orders)
    orders = 2 if both_orders else 1
    prompts = encode(judge.tokenizer, ordered_pairs, judge.chat)
    identity = states_identity(judge, ordered_pairs, orders)
    activations = cache or cache_folder() / "activations"
    store = Store.create(activations / identity.folder_name, identity, checked_pairs)
    reasons = unreadable_pairs(checked_pairs, prompts, judge.context, longest)
    readable_prompts = {
        number
        for number in range(len(prompts))
        if checked_pairs[number // orders].id not in reasons
    }
    if readable_prompts - store.done():
        with store.writing():
            pending = readable_prompts - store.done()
            by_length = sorted(pending, key=lambda number: (prompts[number].length, number))
            _read_into_store(
                judge,
                prompts,
                by_length,
                store,
                path=path,
                batch_tokens=batch_tokens,
                reader=reader,
                progress=progress,
            )
    return replace(open_harvest(store.folder, reasons=reasons), chat=judge.chat)


def _in_orders(pairs: Sequence[Pair], *, both_orders: bool) -> list[Pair]:
    """Each pair, followed by its swapped version where both orders are shown."""
    ordered_pairs: list[Pair] = []
    for pair in pairs:
        ordered_pairs.append(pair)
        if both_orders:
            ordered_pairs.append(pair.swapped)
    return ordered_pairs


def open_harvest(
    folder: Path, *, judge: LocalModel | None = None, reasons: dict[str, str] | None = None
) -> Harvest:
    """The harvest in `folder`; with `judge`, ValueError unless it is that model's."""
    store = Store(folder)
    identity = store.identity
    if judge is not None and identity.revision != judge.revision:
        raise ValueError(
            f"{folder} holds activations of {identity.model} ({identity.revision}), "
            f"not of {judge.name} ({judge.revision}). Harvest again for this model"
        )
    pairs = read_pairs(folder / "pairs.jsonl")
    row_by_prompt = store.positions()
    unscored = dict(reasons) if reasons is not None else store.read_reasons()
    unscored |= store.not_finite(pairs)

    scored_pairs: list[Pair] = []
    scored_rows: list[list[int]] = []
    missing_count = 0
    for number, pair in enumerate(pairs):
        prompt_numbers = range(number * identity.orders, (number + 1) * identity.orders)
        if pair.id in unscored:
            continue
        if not all(prompt_number in row_by_prompt for prompt_number in prompt_numbers):
            missing_count += 1
            continue
        scored_pairs.append(pair)
        scored_rows.append([row_by_prompt[prompt_number] for prompt_number in prompt_numbers])
    if missing_count:
        damage_notes = [f"; {shard.name} is damaged" for shard in store.damaged]
        raise ValueError(
            f"the harvest in {folder} is not finished: {missing_count} pairs are missing"
            f"{''.join(damage_notes)}. Run it again"
        )
    store.write_reasons(unscored)
    rows = np.array(scored_rows, dtype=np.intp).reshape(-1, identity.orders)
    return Harvest(folder, identity, tuple(scored_pairs), unscored, rows)


def states_identity(judge: LocalModel, shown: Sequence[Pair], orders: int) -> StatesIdentity:
    """Identity of the states of `shown` (all orders of all pairs) under `judge`: what the model
    reads, not labels.
    """
    return StatesIdentity(
        model=judge.name,
        revision=judge.revision,
        template=template_hash(judge.tokenizer, judge.chat),
        data=digest(*(pair_prompt(judge.tokenizer, pair, judge.chat) for pair in shown)),
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
    reasons: dict[str, str] = {}
    orders = len(prompts) // max(len(pairs), 1)
    for pair_number, pair in enumerate(pairs):
        pair_prompts = prompts[pair_number * orders : (pair_number + 1) * orders]
        length = max(prompt.length for prompt in pair_prompts)
        special_tokens = [prompt.special for prompt in pair_prompts if prompt.special]
        if pair.has_equal_texts:
            reasons[pair.id] = "equal texts"
        elif special_tokens:
            reasons[pair.id] = (
                f"special token in its texts: {special_tokens[0]}, "
                "which this model would not read as text"
            )
        elif any(prompt.is_changed for prompt in pair_prompts):
            reasons[pair.id] = "the model's chat template cuts or changes its texts"
        elif length > context:
            reasons[pair.id] = f"too long: {length} tokens, the context is {context}"
        elif longest is not None and length > longest:
            reasons[pair.id] = f"longer than asked for: {length} tokens, the limit is {longest}"
    return reasons


def batch_budget(judge: LocalModel) -> int:
    """Default number of tokens of a batch, padding included."""
    return BATCH_TOKENS.get(judge.device.type, BATCH_TOKENS["cuda"])


def _read_into_store(
    judge: LocalModel,
    prompts: Sequence[Prompt],
    prompt_numbers: list[int],
    store: Store,
    *,
    path: forward.Way | Literal["auto"],
    batch_tokens: int | None,
    reader: forward.Reader,
    progress: Progress,
) -> None:
    """Read the prompts of these numbers, by rising length, into the store."""
    budget = batch_tokens or batch_budget(judge)
    pending_prompts = [prompts[number] for number in prompt_numbers]
    reading = choose_reading(judge, pending_prompts, path, batch_tokens=budget)
    token_count = sum(prompt.length for prompt in pending_prompts)
    meter = Meter(token_count, len(prompt_numbers), progress)
    store.write_reading(str(reading), reading.rounding)
    progress(f"{len(prompt_numbers)} prompts to read in {store.folder} ({reading})")
    if reading.rounding and max(reading.rounding) > 0.05:
        progress(
            f"rounding of {store.identity.dtype}: "
            f"up to {max(reading.rounding):.0%} of what a probe reads"
        )

    def batches() -> Iterator[forward.Batch]:
        for rows in cut_batches(prompts, prompt_numbers, budget, reading):
            yield forward.Batch(rows, [prompts[number] for number in rows], reading.way)

    try:
        for batch, states in reader(judge, batches()):
            store.add(batch.rows, states)
            if store.pending_bytes >= SHARD_BYTES or meter.seconds_since_flush > FLUSH_SECONDS:
                store.flush()
                meter.flushed()
            meter.add(sum(prompt.length for prompt in batch.prompts), len(batch.rows))
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
        self.started = self.last_report = self.last_flush = time.monotonic()
        self.tokens_done = self.prompts_done = 0
        self.prompts_reported = -1

    @property
    def seconds_since_flush(self) -> float:
        return time.monotonic() - self.last_flush

    def flushed(self) -> None:
        self.last_flush = time.monotonic()

    def add(self, tokens: int, prompts: int) -> None:
        self.tokens_done += tokens
        self.prompts_done += prompts
        if time.monotonic() - self.last_report >= REPORT_SECONDS:
            self.last_report = time.monotonic()
            self._report()

    def finish(self) -> None:
        """Report the end, unless the last report was of it."""
        if self.prompts_reported != self.prompts_done:
            self._report()

    def _report(self) -> None:
        self.prompts_reported = self.prompts_done
        self.progress(self._line())

    def _line(self) -> str:
        seconds = max(time.monotonic() - self.started, 1e-9)
        tokens_a_second = self.tokens_done / seconds
        seconds_left = (self.tokens - self.tokens_done) / max(tokens_a_second, 1e-9)
        return (
            f"{self.prompts_done} of {self.prompts} {self.unit}, "
            f"{self.prompts_done / seconds:.1f} {self.unit}/s, "
            f"{tokens_a_second:.0f} tokens/s, {seconds_left:.0f} s left"
        )
