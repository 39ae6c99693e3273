"""Reading all dilemmas: what is kept is not read again; progress with time left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from selfprobe.data import Table
from selfprobe.errors import InputError
from selfprobe.mechanism.folder import Arrays, claim, keep, kept, key
from selfprobe.mechanism.prompts import OPENING, Item, items
from selfprobe.mechanism.reading import NoPatterns, Reading, apart, checked
from selfprobe.probes.forward import Spread, here
from selfprobe.probes.harvesting import Meter
from selfprobe.probes.model import LocalModel
from selfprobe.weights import Progress, to_stderr

FEWEST = 2
"""Dilemmas from which there is an interval."""


@dataclass(frozen=True)
class Study:
    """A model and the dilemmas that it can read."""

    judge: LocalModel
    items: Sequence[Item]
    unread: Mapping[str, str]
    """Dilemma → why it cannot be read."""
    out: Path

    @property
    def folder(self) -> Path:
        """Of what was read."""
        return self.out / "readings"

    def held(self, item: Item, *, attention: bool) -> Reading | None:
        """What is kept of an item; None where that is not enough."""
        arrays = kept(self.folder, key(self.judge, item))
        reading = _reading(arrays) if arrays else None
        if reading is None or (attention and not np.isfinite(reading.attention).any()):
            return None
        return reading

    def todo(self, *, attention: bool) -> list[Item]:
        """Items still to be read."""
        return [item for item in self.items if self.held(item, attention=attention) is None]


def study(judge: LocalModel, table: Table, out: Path, *, opening: str = OPENING, dry: bool = False) -> Study:
    """The dilemmas of `table` for `judge`; the folder `out` is claimed for them, unless that is only tried (`dry`).

    Raises:
        InputError: The folder holds another run, or too few dilemmas can be read.
    """
    read_items, unread = items(judge.tokenizer, table, opening=opening, chat=judge.chat, context=judge.context)
    if len(read_items) < FEWEST:
        why = f" ({next(iter(unread.values()))})" if unread else ""
        raise InputError(
            f"{len(read_items)} of {len(table.rows)} dilemmas can be read{why}; expected at least {FEWEST}"
        )
    claim(out, judge, table, opening, dry=dry)
    return Study(judge, read_items, unread, out)


def readings(
    given: Study, *, attention: bool | None = True, spread: Spread = here, progress: Progress = to_stderr
) -> dict[str, Reading]:
    """Dilemma → what it gives, read where it is not kept.

    Args:
        given: The model and its dilemmas.
        attention: Read it too; None: where that can be done.
        spread: Who reads: this process, or copies of the model on a cluster.
        progress: Called with one line now and then.

    Raises:
        ValueError: The model cannot be read so; see `reading.checked`.
    """
    if attention is None:
        try:
            return readings(given, attention=True, spread=spread, progress=progress)
        except NoPatterns as error:
            progress(f"read without attention: {error}")
            attention = False
    todo = given.todo(attention=attention)
    if todo:
        progress(f"{len(todo)} of {len(given.items)} dilemmas to read in {given.folder}")
        longest = max(todo, key=lambda item: item.longest)
        with checked(given.judge, longest, attention=attention) as sharing:
            meter = Meter(sum(item.tokens for item in todo), len(todo), progress, "dilemmas")
            prompt = todo[0].prompts["direct"]
            for item, found in spread(given.judge, prompt, todo, lambda item: (apart, item, sharing, attention)):
                keep(given.folder, key(given.judge, item), vars(found))
                meter.add(item.tokens, 1)
        meter.finish()
    found_all = {item.id: given.held(item, attention=attention) for item in given.items}
    finite = {name: one for name, one in found_all.items() if one is not None and np.isfinite(one.lens).all()}
    if len(finite) < FEWEST:
        raise ValueError(f"{given.judge.name} gives no finite logits: try --dtype float32 or bfloat16")
    if bad := len(found_all) - len(finite):
        progress(f"{bad} of {len(found_all)} dilemmas are left out: their logits are not finite (NaN or infinite)")
    return finite


def _reading(arrays: Arrays) -> Reading | None:
    try:
        return Reading(**arrays)
    except TypeError:
        return None
