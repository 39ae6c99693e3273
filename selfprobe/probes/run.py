"""The whole experiment: data sets → states → probes → tables; and what is done with a finished run.

    run("smollm2", ["llmbar", "mine.jsonl"], Path("probes"))
    transfer(Path("probes"))
    ablate(Path("probes"))

A run's folder:
    run.json                                  model, settings, data sets with hashes; what is needed to go on
    <data set>-supervised.safetensors         the probe of split 0 at the layer chosen on its training half
    <data set>-unsupervised.safetensors
    tables/*.csv                              methods, layers, floors, transfer, cosine, adversarial, ablation, data
    activations/                              states; may be deleted, and is then harvested again
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from selfprobe.probes import tables
from selfprobe.probes.ablate import answers
from selfprobe.probes.evaluate import KINDS, METRICS, Fits, fit_all, weighted_f1
from selfprobe.probes.forward import Path as Way
from selfprobe.probes.harvest import Harvest, harvest, open_harvest, to_stderr
from selfprobe.probes.model import Judge, load_model
from selfprobe.probes.probe_file import Card, load_probe, save_probe
from selfprobe.probes.sources import LLMBAR_NATURAL, PairSet, load
from selfprobe.probes.splits import PRESETS, Settings, held_out
from selfprobe.probes.transfer import cosine_table, transfer_table
from selfprobe.stats import bootstrap

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Loading:
    """How a model is loaded; see `model.load_model`."""

    revision: str | None = None
    device: str = "cpu"
    dtype: str = "float32"
    device_map: str | None = None
    attention: str | None = None
    allow_pickle: bool = False


def run(
    model: str | Judge,
    datasets: Sequence[str],
    out: Path,
    *,
    settings: Settings | None = None,
    loading: Loading | None = None,
    limit: int | None = 2000,
    path: Way | None = None,
    batch_tokens: int | None = None,
    progress: Progress = to_stderr,
) -> dict[str, pd.DataFrame]:
    """Harvest, fit and test every data set; write the run's folder and return its tables by name.

    Args:
        model: Name or path for `load_model`, or a loaded one.
        datasets: Specs for `sources.load`: a name, NAME=PATH, or a .jsonl file.
        out: The run's folder. The same call goes on with a run that was killed.
        settings: A preset of `splits.PRESETS` or your own; strict by default.
        limit: Pairs of a data set at most, drawn with a fixed seed; None: all.
        path: Way of the forward passes; by default the fastest that verifies.
    """
    settings, loading = settings or PRESETS["strict"], loading or Loading()
    sets = _loaded(datasets, limit)
    judge = model if isinstance(model, Judge) else load_model(model, **asdict(loading))
    _claim(out, judge)
    fits: dict[str, Fits] = {}
    harvests: dict[str, Harvest] = {}
    for name, pair_set in sets.items():
        progress(f"{name}: {len(pair_set.pairs)} pairs from {pair_set.origin}")
        harvests[name] = harvest(
            judge,
            pair_set.pairs,
            out / "activations",
            path=path or "auto",
            batch_tokens=batch_tokens,
            progress=progress,
        )
    _write_run(out, judge, loading, settings, sets, harvests)
    for name, harvested in harvests.items():
        progress(f"{name}: fitting at {harvested.identity.layers} layers, {settings.seeds} halves")
        fits[name] = fit_all(harvested, settings)
        _save_probes(out, name, fits[name])
    made = _tables(fits, sets) | _adversarial(harvests, settings)
    if len(fits) > 1:
        made |= {"transfer": transfer_table(fits), "cosine": cosine_table(fits)}
    return _written(out, made)


def transfer(out: Path, *, progress: Progress = to_stderr) -> dict[str, pd.DataFrame]:
    """Tables "transfer" and "cosine" of a finished run, from its activations (§5.3)."""
    state = _read_run(out)
    if len(state["datasets"]) < 2:
        raise ValueError(f"{out} has one data set, {next(iter(state['datasets']))}: transfer needs at least two")
    fits = {}
    for name, entry in state["datasets"].items():
        progress(f"{name}: fitting")
        fits[name] = fit_all(open_harvest(out / entry["activations"]), Settings(**state["settings"]))
    return _written(out, {"transfer": transfer_table(fits), "cosine": cosine_table(fits)})


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
    directions of the same model, as any direction taken out of a state may do something.
    """
    state = _read_run(out)
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
    return _written(out, {"ablation": pd.DataFrame(rows)})["ablation"]


def _ablated(
    out: Path, name: str, state: dict[str, Any], judge: Judge, count: int, limit: int | None, progress: Progress
) -> list[dict[str, Any]]:
    harvested = open_harvest(out / state["datasets"][name]["activations"], judge=judge)
    files = {kind: load_probe(out / f"{name}-{kind}.safetensors", revision=judge.revision) for kind in KINDS}
    unseen = held_out(files["supervised"].card.train_groups, harvested.groups.tolist())
    pairs = [p for p, new in zip(harvested.pairs, unseen, strict=True) if new][:limit]
    rng = np.random.default_rng(0)
    directions: dict[str, Any] = {"none": None} | {kind: f.probe.direction for kind, f in files.items()}
    directions |= {f"random {k + 1}": rng.standard_normal(judge.d_model) for k in range(count)}
    progress(f"{name}: {len(pairs)} held-out pairs under {len(directions)} ablations")
    truth, groups = np.array([p.label == 1 for p in pairs]), np.array([p.group for p in pairs])
    margins = {k: _margin(v) for k, v in answers(judge, pairs, directions, progress=progress).items()}
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


def _margin(log_probs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """[pair, order, token] → swap-averaged preference for text 1, > 0 where preferred."""
    odds = log_probs[..., 0].astype(float) - log_probs[..., 1]
    return np.asarray((1 / (1 + np.exp(-odds[:, 0])) + 1 / (1 + np.exp(odds[:, 1]))) / 2 - 0.5)


def _loaded(datasets: Sequence[str], limit: int | None) -> dict[str, PairSet]:
    sets: dict[str, PairSet] = {}
    for spec in datasets:
        loaded = load(spec, limit=limit)
        if loaded.name in sets:
            raise ValueError(f"two data sets are named {loaded.name!r}: rename one file")
        sets[loaded.name] = loaded
    if not sets:
        raise ValueError("no data sets given: name at least one")
    return sets


def _claim(out: Path, judge: Judge) -> None:
    """One model a run folder: its probes would be overwritten by another's."""
    file = out / "run.json"
    if file.is_file() and (held := json.loads(file.read_text("utf-8")))["revision"] != judge.revision:
        raise ValueError(f"{out} holds a run of {held['model']} ({held['revision']}): give {judge.name} another folder")
    out.mkdir(parents=True, exist_ok=True)


def _write_run(
    out: Path,
    judge: Judge,
    loading: Loading,
    settings: Settings,
    sets: Mapping[str, PairSet],
    harvests: Mapping[str, Harvest],
) -> None:
    state = {
        "selfprobe": version("selfprobe"),
        "model": judge.name,
        "revision": judge.revision,
        "loading": asdict(loading),
        "settings": asdict(settings),
        "datasets": {
            name: {
                "origin": sets[name].origin,
                "hash": h.identity.data,
                "activations": str(h.folder.relative_to(out)),
            }
            for name, h in harvests.items()
        },
    }
    (out / "run.json").write_text(json.dumps(state, indent=1, ensure_ascii=False), encoding="utf-8")


def _read_run(out: Path) -> dict[str, Any]:
    file = out / "run.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"{out} is no run's folder (no run.json): make one with `selfprobe probe run --out {out}`"
        )
    return dict(json.loads(file.read_text("utf-8")))


def _save_probes(out: Path, name: str, fits: Fits) -> None:
    """The probes of split 0, so that its test half is held out."""
    harvested, split, truth = fits.harvest, fits.halves[0], fits.harvest.labels == 1
    for kind in KINDS:
        probe = fits.probes[kind][0][fits.chosen(kind)[0]]
        scores = fits.scores[kind][0, probe.layer, split.test]
        card = Card(
            model=harvested.identity.model,
            revision=harvested.identity.revision,
            template=harvested.identity.template,
            dtype=harvested.identity.dtype,
            dataset=name,
            data_hash=harvested.identity.data,
            settings=fits.settings.name,
            split_seed=0,
            train_groups=tuple(sorted(set(harvested.groups[split.train].tolist()))),
            train_pairs=len(split.train),
            test_scores={metric: f(truth[split.test], scores) for metric, f in METRICS.items()},
            selfprobe=version("selfprobe"),
        )
        save_probe(out / f"{name}-{kind}.safetensors", probe, card)


def _tables(fits: Mapping[str, Fits], sets: Mapping[str, PairSet]) -> dict[str, pd.DataFrame]:
    made: dict[str, pd.DataFrame] = {}
    for table, make in {
        "methods": tables.methods_table,
        "layers": tables.layers_table,
        "floors": tables.floors_table,
        "selected_on_test": tables.selected_on_test,
    }.items():
        parts = [make(f).assign(dataset=name) for name, f in fits.items()]
        made[table] = pd.concat(parts, ignore_index=True)
    rows = [
        {"dataset": name, "origin": s.origin, "pairs": len(s.pairs), "ties": s.ties, "left_out": s.left_out}
        | {"scored": len(fits[name].harvest.pairs), "unscored": len(fits[name].harvest.unscored)}
        | {"reasons": "; ".join(sorted({r.split(":")[0] for r in fits[name].harvest.unscored.values()}))}
        for name, s in sets.items()
    ]
    return made | {"data": pd.DataFrame(rows)}


def _adversarial(harvests: Mapping[str, Harvest], settings: Settings) -> dict[str, pd.DataFrame]:
    """LLMBar: learn from half of the natural pairs, test on the rest and on every adversarial subset (§5.4)."""
    harvested = harvests.get("llmbar")
    if harvested is None or {p.subset for p in harvested.pairs} <= set(LLMBAR_NATURAL):
        return {}
    fits = fit_all(harvested, settings, train_subsets=LLMBAR_NATURAL)
    return {"adversarial": tables.subsets_table(fits)}


def _written(out: Path, made: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    (out / "tables").mkdir(exist_ok=True)
    for name, table in made.items():
        table.to_csv(out / "tables" / f"{name}.csv", index=False)
    return made
