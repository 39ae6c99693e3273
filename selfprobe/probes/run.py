"""The whole experiment: data sets → states → probes → tables.

    run("smollm2", ["llmbar", "mine.jsonl"], Path("probes"))

A run's folder:
    run.json                                  model, settings, data sets with hashes; what is needed to go on
    <data set>-supervised.safetensors         the probe of split 0 at the layer chosen on its training half
    <data set>-unsupervised.safetensors
    tables/*.csv                              methods, layers, floors, transfer, cosine, adversarial, ablation, data
    figures/*.png, report.md                  what `report.publish` makes of the tables
    activations/                              states; may be deleted, and is then harvested again
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from selfprobe.probes import tables
from selfprobe.probes.evaluate import KINDS, METRICS, Fits, fit_all, split_pairs
from selfprobe.probes.finished import write_tables
from selfprobe.probes.forward import Path as Way
from selfprobe.probes.harvest import Harvest, harvest, to_stderr
from selfprobe.probes.model import Judge, load_model
from selfprobe.probes.probe_file import Card, save_probe
from selfprobe.probes.splits import PRESETS, Settings, questions
from selfprobe.probes.transfer import cosine_table, transfer_table
from selfprobe.sources.public_pairs import LLMBAR_NATURAL, PairSet, load

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
    datasets: Sequence[str] | Mapping[str, PairSet],
    out: Path,
    *,
    settings: Settings | None = None,
    loading: Loading | None = None,
    limit: int | None = 2000,
    longest: int | None = None,
    path: Way | None = None,
    batch_tokens: int | None = None,
    logged: Mapping[str, tables.Logged] | None = None,
    progress: Progress = to_stderr,
) -> dict[str, pd.DataFrame]:
    """Harvest, fit and test every data set; write the run's folder and return its tables by name.

    Args:
        model: Name or path for `load_model`, or a loaded one (`loading`: how it was).
        datasets: Specs for `sources.load` (a name, NAME=PATH, or a file), or what `load_sets` made of them.
        out: The run's folder. The same call goes on with a run that was killed.
        settings: A preset of `splits.PRESETS` or your own; strict by default.
        limit: Pairs of a data set at most, drawn with a fixed seed; None: all.
        longest: Tokens of a pair at most; longer ones are unscored.
        path: Way of the forward passes; by default the fastest that verifies.
        logged: Data set → method → pair id → margin of other methods; see `preferences.table.margins`.

    Raises:
        ValueError: Too little to learn from, or a folder of another model; before any forward pass.
    """
    settings, loading = settings or PRESETS["strict"], loading or Loading()
    sets = datasets if isinstance(datasets, Mapping) else load_sets(datasets, limit)
    check_sets(sets, settings)
    judge = model if isinstance(model, Judge) else load_model(model, **asdict(loading))
    claim(out, judge)
    out.mkdir(parents=True, exist_ok=True)
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
            longest=longest,
            progress=progress,
        )
    _write_run(out, judge, loading, settings, sets, harvests)
    for name, harvested in harvests.items():
        progress(f"{name}: fitting at {harvested.identity.layers} layers, {settings.seeds} halves")
        fits[name] = _named(name, lambda h=harvested: fit_all(h, settings, progress=seldom(progress)))  # type: ignore[misc]
        _save_probes(out, name, fits[name])
    made = _tables(fits, sets, logged or {}) | _adversarial(harvests, settings, progress)
    if len(fits) > 1:
        progress("transfer between the data sets")
        made |= {"transfer": transfer_table(fits), "cosine": cosine_table(fits)}
    return write_tables(out, made)


def check_sets(sets: Mapping[str, PairSet], settings: Settings) -> None:
    """ValueError where a data set has too little to learn from, said before hours of forward passes."""
    for name, pair_set in sets.items():
        readable = [pair for pair in pair_set.pairs if not pair.equal_texts]
        _named(name, lambda pairs=readable: split_pairs(pairs, settings))  # type: ignore[misc]


def seldom(progress: Progress, *, seconds: float = 10) -> Progress:
    """`progress`, at most once in so many seconds."""
    said = time.monotonic()

    def say(message: str) -> None:
        nonlocal said
        if time.monotonic() - said >= seconds:
            said = time.monotonic()
            progress(f"  {message}")

    return say


def _named(name: str, work: Callable[[], Any]) -> Any:
    """The result of `work`; its ValueError gets the data set's name in front."""
    try:
        return work()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def load_sets(datasets: Sequence[str], limit: int | None) -> dict[str, PairSet]:
    """Pairs of each spec, by name."""
    sets: dict[str, PairSet] = {}
    for spec in datasets:
        loaded = load(spec, limit=limit)
        if loaded.name in sets:
            raise ValueError(f"two data sets are named {loaded.name!r}: rename one file")
        sets[loaded.name] = loaded
    if not sets:
        raise ValueError("no data sets given: name at least one")
    return sets


def claim(out: Path, judge: Judge) -> None:
    """ValueError where `out` holds another model's run, whose probes would be overwritten."""
    file = out / "run.json"
    if file.is_file() and (held := json.loads(file.read_text("utf-8")))["revision"] != judge.revision:
        raise ValueError(f"{out} holds a run of {held['model']} ({held['revision']}): give {judge.name} another folder")


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
    file = out / "run.json"
    if file.is_file() and json.loads(file.read_text("utf-8")) != state:
        for stale in (*out.glob("tables/*.csv"), *out.glob("figures/*.png")):
            stale.unlink()  # of another run: the report would show them as this one's
    file.write_text(json.dumps(state, indent=1, ensure_ascii=False), encoding="utf-8")


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
            train_groups=tuple(sorted(questions(harvested.pairs[i] for i in split.train))),
            train_pairs=len(split.train),
            test_scores={metric: f(truth[split.test], scores) for metric, f in METRICS.items()},
            selfprobe=version("selfprobe"),
        )
        save_probe(out / f"{name}-{kind}.safetensors", probe, card)


def _tables(
    fits: Mapping[str, Fits], sets: Mapping[str, PairSet], logged: Mapping[str, tables.Logged]
) -> dict[str, pd.DataFrame]:
    made: dict[str, pd.DataFrame] = {}
    methods = [tables.methods_table(f, logged=logged.get(name)).assign(dataset=name) for name, f in fits.items()]
    made["methods"] = pd.concat(methods, ignore_index=True)
    for table, make in {
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


def _adversarial(harvests: Mapping[str, Harvest], settings: Settings, progress: Progress) -> dict[str, pd.DataFrame]:
    """LLMBar: learn from half of the natural pairs, test on the rest and on every adversarial subset (§5.4)."""
    harvested = harvests.get("llmbar")
    if harvested is None or {p.subset for p in harvested.pairs} <= set(LLMBAR_NATURAL):
        return {}
    progress("llmbar: fitting on the natural subsets alone")
    try:
        fits = fit_all(harvested, settings, train_subsets=LLMBAR_NATURAL, progress=seldom(progress))
    except ValueError as error:
        progress(f"llmbar: no adversarial table, as {error}")
        return {}
    return {"adversarial": tables.subsets_table(fits)}
