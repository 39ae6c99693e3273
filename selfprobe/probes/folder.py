"""A run's folder, which the commands on a finished run read again.

run.json                                  model, settings, data sets with hashes; what is needed to go on
<data set>-supervised.safetensors         the probe of split 0 at the layer chosen on its training half
<data set>-unsupervised.safetensors
tables/*.csv                              methods, layers, floors, transfer, cosine, adversarial, ablation, data
figures/*.png, report.md                  what `preferences.page.publish` makes of the tables
activations/                              states; may be deleted, and is then harvested again
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from selfprobe.probes.model import LocalModel


def claim(out: Path, judge: LocalModel) -> None:
    """ValueError where `out` holds another model's run, whose probes would be overwritten."""
    file = out / "run.json"
    if file.is_file() and (held := json.loads(file.read_text("utf-8")))["revision"] != judge.revision:
        raise ValueError(f"{out} holds a run of {held['model']} ({held['revision']}): give {judge.name} another folder")


def write_run(out: Path, state: dict[str, Any]) -> None:
    """Write what a run says of itself; tables and figures of another run in the folder go."""
    file = out / "run.json"
    if file.is_file() and json.loads(file.read_text("utf-8")) != state:
        for stale in (*out.glob("tables/*.csv"), *out.glob("figures/*.png")):
            stale.unlink()  # the report would show them as this one's
    file.write_text(json.dumps(state, indent=1, ensure_ascii=False), encoding="utf-8")


def read_run(out: Path) -> dict[str, Any]:
    """What a run wrote of itself."""
    file = out / "run.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"{out} is no run's folder (no run.json): make one with `selfprobe probe run --out {out}`"
        )
    return dict(json.loads(file.read_text("utf-8")))


def write_tables(out: Path, made: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Each table as a CSV file of the run's folder."""
    (out / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in made.items():
        table.to_csv(out / "tables" / f"{name}.csv", index=False)
    return made
