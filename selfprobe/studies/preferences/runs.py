"""Finished folders of `selfprobe probe run`, to be compared: what each is of, and whether they can be."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from selfprobe.page.plots import short_name
from selfprobe.probes.folder import read_run

_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([BbMm])(?![a-zA-Z0-9])")
_UNITS = {"b": 1e9, "m": 1e6}
NEEDED: Mapping[str, frozenset[str]] = {
    "methods": frozenset({"dataset", "method", "metric", "value", "low", "high", "n"}),
    "layers": frozenset({"dataset", "probe", "layer", "metric", "value", "low", "high", "n"}),
    "differences": frozenset({"dataset", "probe", "against", "metric", "value", "low", "high", "n"}),
    "data": frozenset({"dataset", "pairs", "scored"}),
}
"""Tables of every finished run, with the columns that are read here."""


@dataclass(frozen=True)
class ModelRun:
    """One model's run."""

    folder: Path
    model: str
    """Name in figures and tables."""
    family: str
    """Models of one family are one line of a figure."""
    parameters: float
    """Number of parameters; NaN where neither the run nor the model's name says it."""
    blocks: int
    state: Mapping[str, Any]
    """Settings that the run reports about itself, run.json."""
    tables: Mapping[str, pd.DataFrame]
    """Tables by file stem."""

    @property
    def names(self) -> dict[str, Any]:
        """The columns that tell this run in a table of several."""
        return {"model": self.model, "family": self.family, "parameters": self.parameters}

    def table(self, name: str) -> pd.DataFrame:
        """A table of the run with `names` before its columns; empty where the run has none."""
        found = self.tables.get(name, pd.DataFrame())
        return pd.DataFrame({key: [value] * len(found) for key, value in self.names.items()}).join(found)


def family_of(model: str) -> str:
    """Part of a model's name before the size: Llama-3.1 of Llama-3.1-8B-Instruct; else its first word."""
    name = model.rstrip("/").rpartition("/")[2]
    before = name[: found.start()] if (found := _SIZE.search(name)) else re.split(r"[-_ ]", name)[0]
    return before.rstrip("-_ ") or name


def size_of(model: str) -> float:
    """Parameters by a model's name: 8e9 of Llama-3.1-8B; NaN where it says none."""
    found = _SIZE.search(model.rpartition("/")[2])
    return float(found[1]) * _UNITS[found[2].lower()] if found else math.nan


def read_runs(given: Sequence[str]) -> list[ModelRun]:
    """The runs in these folders, by family and size; FAMILY=FOLDER names the family of one.

    Raises:
        ValueError: A folder holds no finished run, or its run cannot be compared with the others.
    """
    runs = [_read(*named(each)) for each in given]
    shortest = [short_name(run.state["model"]) for run in runs]
    labels = [
        name if shortest.count(name) == 1 else str(run.state["model"]) for name, run in zip(shortest, runs, strict=True)
    ]
    runs = [replace(run, model=name) for run, name in zip(runs, labels, strict=True)]
    _check(runs)
    return sorted(runs, key=lambda run: (run.family.lower(), math.isnan(run.parameters), run.parameters, run.model))


def named(given: str) -> tuple[Path, str]:
    """The folder, and the family of FAMILY=FOLDER or ""."""
    family, sign, folder = given.partition("=")
    return (Path(given), "") if not sign or Path(given).exists() else (Path(folder), family)


def _read(folder: Path, family: str) -> ModelRun:
    state = read_run(folder)
    tables = {file.stem: _table(file) for file in sorted((folder / "tables").glob("*.csv"))}
    for name, columns in NEEDED.items():
        if name not in tables:
            raise ValueError(
                f"the run in {folder} is not finished (no tables/{name}.csv): its `selfprobe probe run` goes on with it"
            )
        if missing := sorted(columns - set(tables[name].columns)):
            raise ValueError(
                f"{folder}/tables/{name}.csv has no column {', '.join(missing)}: it is not what a run writes"
            )
    if missing := sorted({"model", "revision", "settings", "datasets"} - set(state)):
        raise ValueError(f"{folder}/run.json says no {', '.join(missing)}: it is not what a run writes")
    for name in ("settings", "datasets"):
        if not isinstance(state[name], dict):
            told = type(state[name]).__name__
            raise ValueError(
                f"{folder}/run.json: expected a mapping under {name}, got a {told}: it is not what a run writes"
            )
    model = str(state["model"])
    parameters = float(state.get("parameters") or size_of(model))
    blocks = int(state.get("blocks") or tables["layers"].layer.max() + 1)
    return ModelRun(folder, model, family or family_of(model), parameters, blocks, state, tables)


def _table(file: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(file)
    except ValueError as error:  # pandas' own errors are of this kind
        raise ValueError(f"{file} is not a table that a run writes: {error}") from None


def _check(runs: Sequence[ModelRun]) -> None:
    """ValueError where two runs are of the same model, or of different data, layers or presets."""
    first = runs[0]
    for i, run in enumerate(runs):
        for before in runs[:i]:
            if before.state["revision"] == run.state["revision"]:
                raise ValueError(
                    f"{before.folder} and {run.folder} are runs of one model, {run.state['model']} "
                    f"({run.state['revision']}): give one of them"
                )
            _check_data(before, run)
        _check_settings(first, run)
        _check_layers(first, run)


def _check_data(one: ModelRun, other: ModelRun) -> None:
    for name in sorted(set(one.state["datasets"]) & set(other.state["datasets"])):
        a, b = one.state["datasets"][name], other.state["datasets"][name]
        if a["hash"] != b["hash"]:
            raise ValueError(
                f"{one.folder} and {other.folder} have other pairs of {name} ({a.get('pairs', 'some')} from "
                f"{a['origin']}, {b.get('pairs', 'some')} from {b['origin']}; rows, labels, --limit or the question "
                "differ), so their scores cannot be compared: run one again with the other's data"
            )


def _check_settings(one: ModelRun, other: ModelRun) -> None:
    # How many resamples an interval takes changes no score; old runs had one probe for all aspects.
    a, b = (
        {"aspects": "together"} | {k: v for k, v in run.state["settings"].items() if k != "resamples"}
        for run in (one, other)
    )
    if a != b:
        differing = [key for key in sorted(a | b) if a.get(key) != b.get(key)]
        told = "; ".join(f"{key} {a.get(key)} and {b.get(key)}" for key in differing)
        raise ValueError(
            f"{one.folder} and {other.folder} are of different presets ({told}): run one again as the other"
        )
    a, b = (run.state.get("chat", {}).get("system", "") for run in (one, other))
    if a != b:
        raise ValueError(f"{one.folder} and {other.folder} have other system turns ({a!r} and {b!r})")


def _check_layers(one: ModelRun, other: ModelRun) -> None:
    a, b = (tuple(run.state.get("loading", {}).get("layers", ())) for run in (one, other))
    if (a or b) and (a, one.blocks) != (b, other.blocks):
        told = [f"{run.folder} has {_told(kept)} of {run.blocks} blocks" for run, kept in ((one, a), (other, b))]
        raise ValueError(
            f"{' and '.join(told)}: of different layers, scores cannot be compared. Run them with all blocks, that is "
            "without --layers"
        )


def _told(kept: Sequence[int]) -> str:
    return f"{', '.join(map(str, kept))}" if kept else "all"
