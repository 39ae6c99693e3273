"""A run's folder: what was computed for a dilemma is kept, under a name made of all that it depends on.

run.json                what the folder is of: model, revision, precision, data set, opening; another one is refused
readings/KEY.npz        one dilemma's `Reading`
patches/KEY.npz         one dilemma's logit differences under patched patterns
profiles/KEY.npz        one dilemma's attention by place, for mean patterns
tables/*.csv, figures/, index.html    what the commands made of them
"""

import json
import os
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from selfprobe.data import Table
from selfprobe.errors import InputError
from selfprobe.mechanism.prompts import ARMS, Item
from selfprobe.probes.model import LocalModel
from selfprobe.probes.shards import put_json
from selfprobe.sources.pairs import digest

Arrays = dict[str, npt.NDArray[Any]]
FIXED = ("model", "revision", "precision", "dataset", "dataset_sha256", "opening", "system", "arguments")


def claim(out: Path, judge: LocalModel, table: Table, opening: str, *, dry: bool = False) -> None:
    """Write what the folder is of, unless `dry`; InputError where it holds a run of something else."""
    state = {
        "selfprobe": version("selfprobe"),
        "model": judge.name,
        "revision": judge.revision,
        "precision": judge.precision,
        "dataset": table.name,
        "dataset_sha256": table.sha256,
        "opening": opening,
        "system": judge.chat.system,
        "arguments": dict(judge.chat.arguments),
    }
    if (out / "run.json").is_file():
        held = read_run(out)
        if other := [
            f"{name} {held.get(name)!r}, not {state[name]!r}" for name in FIXED if held.get(name) != state[name]
        ]:
            raise InputError(f"{out} holds a run of {'; '.join(other)}: give another --out")
    if dry:
        return
    out.mkdir(parents=True, exist_ok=True)
    put_json(state, out / "run.json")


def read_run(out: Path) -> dict[str, Any]:
    """What the folder says it is of."""
    try:
        return dict(json.loads((out / "run.json").read_text("utf-8")))
    except (ValueError, OSError) as error:
        raise InputError(f"{out / 'run.json'} is not what a run writes ({error}): give another --out") from None


def key(judge: LocalModel, item: Item, *more: str) -> str:
    """A name for what `judge` makes of `item`: of its weights, its precision, all tokens, and `more`."""
    tokens = [f"{arm}: {item.prompts[arm].prefix} {item.prompts[arm].contrast}" for arm in ARMS]
    rounded = () if judge.dtype == torch.float32 else ("logits in float32",)  # they were rounded before 0.3
    return digest(judge.revision, judge.precision, str(judge.numbers), *tokens, *rounded, *more)


def kept(folder: Path, name: str) -> Arrays | None:
    """What is kept under a name; None where nothing is, or it was cut off."""
    try:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            return {array: file[array] for array in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def keep(folder: Path, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Keep arrays under a name; the file appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{name}-{os.getpid()}.part"
    try:
        with part.open("wb") as file:
            np.savez(file, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
        part.replace(folder / f"{name}.npz")
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{folder} cannot be written ({error}); what was written before is kept") from error
