"""A fitted probe's judgement of a pair. Reads a transformers model's states in this process; asks
no model.

States stay in memory and in a temporary folder: none goes into a log.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import StoreModel

from selfprobe.errors import InputError, as_input_errors
from selfprobe.errors.arguments import locate
from selfprobe.text.extras import install_command

if TYPE_CHECKING:
    from selfprobe.data.pairs import Pair
    from selfprobe.probes.model import LocalModel
    from selfprobe.probes.probe_file import Judgement, ProbeFile

LOCAL_NAMES = ("smollm2", "embedded/smollm2")
"""Models that are neither a path nor a name on the hub."""


class ProbeReading(StoreModel):
    """A probe's decision on one sample, kept in the log so that it can be scored again without the
    model.
    """

    score: float | None = None
    """Score, above 0: text 1. None: unscored, see `reason`."""
    own_answer: float | None = None
    """P(text 1) in the model's own answer, from the same passes, averaged over the orders shown."""
    reason: str = ""
    """Reason why the pair could not be read."""


if TYPE_CHECKING:
    Harvest = asyncio.Task[dict[str, Judgement]]
    """Judgements under way, by pair id."""


@dataclass
class Application:
    """A probe and its model. Samples that wait at the same time are read in one harvest."""

    file: "ProbeFile"
    judge: "LocalModel"
    waiting: dict[str, "Pair"] = field(default_factory=dict)
    harvest_by_pair: "dict[str, Harvest]" = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, pair: "Pair") -> "Judgement":
        self.waiting[pair.id] = pair
        async with self.lock:
            if pair.id in self.waiting:
                batch = list(self.waiting.values())
                self.waiting = {}
                harvest = asyncio.create_task(asyncio.to_thread(self.judgements, batch))
                self.harvest_by_pair |= dict.fromkeys(
                    (waiting_pair.id for waiting_pair in batch), harvest
                )
                await asyncio.wait([harvest])
        judgement_by_pair = await self.harvest_by_pair[pair.id]
        return judgement_by_pair[pair.id]

    def judgements(self, pairs: "list[Pair]") -> "dict[str, Judgement]":
        """Judgements of the probe, by pair id."""
        from selfprobe.probes.probe_file import judge_pairs

        with tempfile.TemporaryDirectory(prefix="selfprobe-states-") as scratch:
            judgements = judge_pairs(
                self.file, self.judge, pairs, cache=Path(scratch), progress=_quiet
            )
        return {judgement.pair.id: judgement for judgement in judgements}


def _quiet(_line: str) -> None:
    """Inspect shows the progress."""


@solver
def apply_probe(probe: str, loading: dict[str, Any]) -> Solver:
    """Record a probe's decision on the pair of each sample.

    Args:
        probe: A probe file (.safetensors).
        loading: `model`, the path or hub name of the probe's model, and arguments of
            `selfprobe.probes.model.load_model`. Default (also for None) of model and dtype: those
            of the probe's card.

    Raises:
        InputError: There is no such file or model; the file is no probe, a pickle, or a probe of
            another model or chat template.
    """
    with as_input_errors():
        application = open_probe(probe, loading)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        from selfprobe.data.pairs import Pair

        judgement = await application(Pair(**state.metadata["pair"]))
        reading = state.store_as(ProbeReading)
        reading.score = judgement.score
        reading.own_answer = judgement.own_answer
        reading.reason = judgement.reason
        state.completed = True
        return state

    return solve


def read_card(probe: str) -> "tuple[Path, ProbeFile, str]":
    """Path of the file, its content, and its SHA-256; needs no model."""
    try:
        from selfprobe.probes.probe_file import load_probe
    except ImportError as error:
        raise InputError(f"a probe needs {error.name}: {install_command('probes')}") from error
    path = Path(locate(probe))
    if not path.is_file():
        raise InputError(f"no probe file at {path}; `selfprobe probe run` makes them")
    with as_input_errors():
        return path, load_probe(path), hashlib.sha256(path.read_bytes()).hexdigest()


def open_probe(probe: str, loading: Mapping[str, Any]) -> Application:
    """The probe and the model that its card names, or that `loading` names, checked against each
    other.
    """
    from selfprobe.probes.model import load_model
    from selfprobe.probes.probe_file import load_probe
    from selfprobe.probes.tokens import template_hash

    path, file, _ = read_card(probe)
    card = file.card
    settings = dict(card.precision)
    for argument, value in loading.items():
        if value is not None or argument not in card.precision:
            settings[argument] = value
    name = _located(settings.pop("model", None) or card.model)
    # A commit on the hub is asked for by name: the branch may have moved since.
    commit = None if card.revision.startswith("local-") or Path(name).is_dir() else card.revision
    judge = load_model(name, revision=commit, chat=card.chat, **settings)
    template = template_hash(judge.tokenizer, judge.chat)
    return Application(load_probe(path, revision=judge.revision, template=template), judge)


def _located(name: str) -> str:
    """Path of a folder or file that the user named, made absolute; a name on the hub stays
    unchanged.
    """
    if name in LOCAL_NAMES:
        return name
    try:
        return locate(name)
    except InputError:
        return name
