"""A run's folder, which commands on a finished run read again.

run.json                           model, settings, versions, data sets with hashes; what is needed
                                   to go on
<data set>-supervised.safetensors  the probe of split 0 at the layer chosen on its training half
<data set>-unsupervised.safetensors
                                   (<data set>-<aspect>-… where each aspect has its own)
tables/*.csv                       methods, layers, floors, transfer, cosine, adversarial, ablation,
                                   data
figures/*.png, report.md           what `studies.probe_page` makes of the tables
activations/                       states; may be deleted, and is then harvested again
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.data.pairs import data_hash
from selfprobe.data.public_pairs import PairSet
from selfprobe.probes.tokens import Chat

if TYPE_CHECKING:  # a folder is read without PyTorch
    from selfprobe.probes.fit import FloatArray
    from selfprobe.probes.model import LocalModel


def check_folder(out: Path, judge: "LocalModel", sets: Mapping[str, PairSet]) -> None:
    """ValueError where `out` holds another run, whose probes would be overwritten or mixed with
    this one's.

    Another run is one of another model, under another chat, with other pairs in a data set of the
    same name, or on data sets of which some are not in `sets` while some of `sets` are missing: a
    run may drop sets or add some, not both.
    """
    if not (out / "run.json").is_file():
        return
    state = read_run(out)
    if state["revision"] != judge.revision:
        raise ValueError(
            f"{out} holds a run of {state['model']} ({state['revision']}): give {judge.name} "
            "another folder"
        )
    if Chat(**state.get("chat", {})) != judge.chat:
        raise ValueError(
            f"{out} holds a run with another system turn or other template arguments: give another "
            "folder"
        )

    run_datasets = state["datasets"]
    for name, pair_set in sets.items():
        if name not in run_datasets:
            continue
        run_dataset = run_datasets[name]
        if run_dataset["hash"] != data_hash(pair_set.pairs):
            raise ValueError(
                f"{out} holds a run on other pairs of {name} (from {run_dataset['origin']}, "
                f"{run_dataset.get('pairs', 'some')} pairs; now from {pair_set.origin}, "
                f"{len(pair_set.pairs)}; rows, labels, --limit or the question differ): give "
                f"another --out. With a copy of {out / 'activations'} in it, texts that were read "
                "are not read again"
            )
    dropped_sets = set(run_datasets) - set(sets)
    added_sets = set(sets) - set(run_datasets)
    if dropped_sets and added_sets:
        raise ValueError(
            f"{out} holds a run on {', '.join(run_datasets)}, not on {', '.join(sets)}: give "
            "another --out, or all data sets together"
        )


def write_run(out: Path, state: dict[str, Any]) -> None:
    """Write a run's description of itself; tables and figures of another run in the folder go."""
    file = out / "run.json"
    if file.is_file() and json.loads(file.read_text("utf-8")) != state:
        stale_files = (*out.glob("tables/*.csv"), *out.glob("figures/*.png"))
        for stale_file in stale_files:
            stale_file.unlink()  # the report would show them as this one's
    put_json(state, file)


def put_whole(file: Path, write: Callable[[Path], Any]) -> None:
    """Write a file, whole or not at all: a full disk would leave one that no run can go on from."""
    part_file = file.with_name(f"{file.name}.part")
    write(part_file)
    part_file.replace(file)


def put_json(content: Mapping[str, Any], file: Path) -> None:
    """Write a JSON file, whole or not at all."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    put_whole(file, lambda part_file: part_file.write_text(text, encoding="utf-8"))


def put_array(array: npt.NDArray[Any], file: Path) -> None:
    """Write an array as .npy, whole or not at all."""

    def write(part_file: Path) -> None:
        with part_file.open("wb") as stream:  # by its name NumPy would add .npy
            np.save(stream, array)

    put_whole(file, write)


def read_run(out: Path) -> dict[str, Any]:
    """Description that a run wrote of itself."""
    file = out / "run.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"{out} is no run's folder (no run.json): make one with `selfprobe probe run --out "
            f"{out}`"
        )
    try:
        state: dict[str, Any] = dict(json.loads(file.read_text("utf-8")))
        # A folder from somebody else must not switch it on.
        state["loading"] = {
            name: value for name, value in state["loading"].items() if name != "allow_pickle"
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is not what a run writes ({type(error).__name__}: {error}): run again"
        ) from None
    return state


def probe_name(dataset: str, aspect: str) -> str:
    """Beginning of the names of a data set's probe files; `aspect` is "" where one probe learnt
    from all.
    """
    return f"{dataset}-{aspect}" if aspect else dataset


def cached_array(file: Path, compute: Callable[[], "FloatArray"]) -> "FloatArray":
    """An array from its file; where there is none it is computed, and written there."""
    if file.is_file():
        cached: FloatArray = np.load(file, allow_pickle=False)
        return cached
    array = compute()
    file.parent.mkdir(parents=True, exist_ok=True)
    put_array(array, file)
    return array


def write_tables(out: Path, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Write each table as a CSV file of the run's folder."""
    (out / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(out / "tables" / f"{name}.csv", index=False)
    return tables
