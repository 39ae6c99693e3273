"""What is done with a finished run: transfer between its data sets, and ablation of its directions."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from selfprobe.probes.ablate import answers
from selfprobe.probes.evaluate import KINDS, first_text_answers, fit_all, weighted_f1
from selfprobe.probes.harvest import open_harvest, to_stderr
from selfprobe.probes.model import Judge, load_model
from selfprobe.probes.probe_file import load_probe
from selfprobe.probes.splits import Settings, held_out
from selfprobe.probes.transfer import cosine_table, transfer_table
from selfprobe.stats.estimate import bootstrap

Progress = Callable[[str], None]


def transfer(out: Path, *, progress: Progress = to_stderr) -> dict[str, pd.DataFrame]:
    """Tables "transfer" and "cosine" of a finished run, from its activations (§5.3)."""
    state = read_run(out)
    if len(state["datasets"]) < 2:
        raise ValueError(f"{out} has one data set, {next(iter(state['datasets']))}: transfer needs at least two")
    fits = {}
    for name, entry in state["datasets"].items():
        progress(f"{name}: fitting")
        fits[name] = fit_all(open_harvest(out / entry["activations"]), Settings(**state["settings"]))
    return write_tables(out, {"transfer": transfer_table(fits), "cosine": cosine_table(fits)})


def ablate(
    out: Path,
    *,
    model: Judge | None = None,
    datasets: Sequence[str] = (),
    random_directions: int = 5,
    limit: int | None = 200,
    progress: Progress = to_stderr,
) -> pd.DataFrame:
    """Table "ablation": prompting on held-out pairs with each probe's direction taken out, beside random ones.

    Appendix B, table 2. Paper: the change of F1 alone. Here: with an interval (paired, over questions), and random
    directions of the same model, as any direction taken out of a state may do something. `limit` of the held-out
    pairs are drawn with a fixed seed; None: all.
    """
    state = read_run(out)
    judge = model or load_model(state["model"], **state["loading"])
    if judge.revision != state["revision"]:
        raise ValueError(
            f"{out} is a run of {state['model']} ({state['revision']}), got {judge.name} ({judge.revision})"
        )
    rows: list[dict[str, Any]] = []
    for name in datasets or tuple(state["datasets"]):
        if name not in state["datasets"]:
            raise ValueError(f"{out} has no data set {name!r}, only {', '.join(state['datasets'])}")
        rows += _ablated(out, name, state, judge, random_directions, limit, progress)
    return write_tables(out, {"ablation": pd.DataFrame(rows)})["ablation"]


def _ablated(
    out: Path, name: str, state: dict[str, Any], judge: Judge, count: int, limit: int | None, progress: Progress
) -> list[dict[str, Any]]:
    harvested = open_harvest(out / state["datasets"][name]["activations"], judge=judge)
    files = {kind: load_probe(out / f"{name}-{kind}.safetensors", revision=judge.revision) for kind in KINDS}
    unseen = held_out(files["supervised"].card.train_groups, harvested.pairs)
    pairs = [p for p, new in zip(harvested.pairs, unseen, strict=True) if new]
    rng = np.random.default_rng(0)
    if limit is not None and limit < len(pairs):  # files come aspect by aspect and subset by subset
        pairs = [pairs[i] for i in sorted(rng.choice(len(pairs), limit, replace=False))]
    directions: dict[str, Any] = {"none": None} | {kind: f.probe.direction for kind, f in files.items()}
    directions |= {f"random {k + 1}": rng.standard_normal(judge.d_model) for k in range(count)}
    progress(f"{name}: {len(pairs)} held-out pairs under {len(directions)} ablations")
    truth, groups = np.array([p.label == 1 for p in pairs]), np.array([p.group for p in pairs])
    given = answers(judge, pairs, directions, progress=progress)
    margins = {k: first_text_answers(log_probs).mean(axis=1) - 0.5 for k, log_probs in given.items()}
    rows = []
    for direction, margin in margins.items():
        found = bootstrap(
            lambda t, a, b: weighted_f1(t, a) - weighted_f1(t, b),
            truth, margin, margins["none"],
            clusters=groups, rng=np.random.default_rng(0), unit="question",
        )  # fmt: skip
        flips = float(np.mean(np.sign(margin) != np.sign(margins["none"])))
        rows.append(
            {"dataset": name, "direction": direction, "metric": "f1", "f1": weighted_f1(truth, margin)}
            | {"changed_answers": flips}
            | asdict(found)
        )
    return rows


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
