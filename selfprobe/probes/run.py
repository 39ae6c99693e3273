"""The whole experiment: data sets → states → probes → tables.

run_probes("smollm2", ["llmbar", "mine.jsonl"], Path("probes"))
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from types import MappingProxyType
from typing import Any, Literal

import pandas as pd

from selfprobe.data.own import Words
from selfprobe.data.pairs import data_hash
from selfprobe.data.public_pairs import LLMBAR_NATURAL, PairSet, load_pairs
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes import rate, tables
from selfprobe.probes.evaluate import METRICS, Fits, fit_all, fitted_apart, split_pairs
from selfprobe.probes.folder import claim, probe_name, write_run, write_tables
from selfprobe.probes.forward import Reader, Way, in_process
from selfprobe.probes.harvesting import Harvest, harvest
from selfprobe.probes.layer_fit import KINDS
from selfprobe.probes.model import LocalModel, decoder_blocks, load_model, wanted
from selfprobe.probes.model import random_weights as untrained
from selfprobe.probes.probe_file import Card, save_probe
from selfprobe.probes.splits import PRESETS, FitSettings, questions
from selfprobe.probes.transfer import cosine_table, transfer_table


def run_probes(
    model: str | LocalModel,
    datasets: Sequence[str] | Mapping[str, PairSet],
    out: Path,
    *,
    settings: FitSettings = PRESETS["strict"],
    loading: Mapping[str, Any] = MappingProxyType({}),
    limit: int | None = 2000,
    longest: int | None = None,
    path: Way | Literal["auto"] = "auto",
    batch_tokens: int | None = None,
    logged: Mapping[str, tables.Logged] | None = None,
    random_weights: bool | None = None,
    scoring: bool | None = None,
    processes: int = 1,
    reader: Reader = in_process,
    progress: Progress = to_stderr,
) -> dict[str, pd.DataFrame]:
    """Harvest, fit and test every data set; write the run's folder and return its tables by name.

    Args:
        model: Name or path for `load_model`, or a loaded one (`loading`: the arguments of its `load_model`).
        datasets: Specs for `sources.load` (a name, NAME=PATH, or a file), or what `load_sets` made of them.
        out: The run's folder. The same call continues a killed run. `settings`: one of `splits.PRESETS` or your own.
        limit: Number of pairs per data set, drawn with a fixed seed; None: all. `longest`: in tokens. `path`, `reader`:
            see `forward`. `processes`: number of fits at a time.
        logged: Data set → method → pair id → margin of other methods; see `studies.preferences.margins`.
        random_weights: Also read them under random weights; see `model.wanted`. `scoring`: also score each text
            alone (default: for data with aspects); see `rate`.

    Raises ValueError where there is too little to learn from, or a folder of another run.
    """
    sets = datasets if isinstance(datasets, Mapping) else load_sets(datasets, limit, prompts=settings.prompts)
    check_sets(sets, settings)
    rate.check_scoring(sets, scoring)
    judge = model if isinstance(model, LocalModel) else load_model(model, **loading)
    claim(out, judge, sets)
    reading: dict[str, Any] = {"path": path, "batch_tokens": batch_tokens, "longest": longest}
    harvests = _harvested(judge, sets, out, reading, reader, progress)
    state = _state(out, judge, loading, settings, sets, harvests)
    write_run(out, state | {"reading": {"limit": limit} | reading})
    fits = {name: _fitted(name, harvested, settings, progress, processes) for name, harvested in harvests.items()}
    if wanted(judge, random_weights):
        without = _harvested(untrained(judge), sets, out, reading, reader, progress)
        _fit_untrained(fits, without, settings, progress, processes)
    _save_probes(out, fits, judge)
    ratings = rate.rate_sets(judge, harvests, scoring, batch_tokens=batch_tokens, progress=progress)
    further = {name: {**ratings[name], **(logged or {}).get(name, {})} for name in harvests}
    made = _tables(fits, sets, further, progress) | _adversarial(harvests, settings, progress)
    return write_tables(out, made | _transfers(fits, progress))


def _fit_untrained(
    fits: Mapping[str, Fits], without: Mapping[str, Harvest], settings: FitSettings, progress: Progress, processes: int
) -> None:
    for name, read in without.items():
        fits[name].untrained = _fitted(f"{name}, random weights", read, settings, progress, processes)


def _harvested(
    judge: LocalModel,
    sets: Mapping[str, PairSet],
    out: Path,
    reading: dict[str, Any],
    reader: Reader,
    progress: Progress,
) -> dict[str, Harvest]:
    found = {}
    for name, given in sets.items():
        progress(f"{name}: {len(given.pairs)} pairs from {given.origin} under {judge.name}")
        found[name] = harvest(judge, given.pairs, out / "activations", **reading, reader=reader, progress=progress)
    return found


def check_sets(
    sets: Mapping[str, PairSet], settings: FitSettings, unscored: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """ValueError, before hours of forward passes, where a data set has too little to learn from.

    `unscored`: per set, pair id → reason why it cannot be read.
    """
    for name, pair_set in sets.items():
        reasons = (unscored or {}).get(name, {})
        with _named(name, reasons, len(pair_set.pairs)):
            split_pairs([p for p in pair_set.pairs if not p.equal_texts and p.id not in reasons], settings)


def _fitted(name: str, harvested: Harvest, settings: FitSettings, progress: Progress, processes: int = 1) -> Fits:
    of_each = " of each aspect" if fitted_apart(harvested.pairs, settings) else ""
    progress(f"{name}: fitting at {harvested.identity.layers} layers, {settings.seeds} halves{of_each}")
    with _named(name, harvested.unscored, len(harvested.pairs) + len(harvested.unscored)):
        return fit_all(harvested, settings, processes=processes, progress=seldom(progress))


def seldom(progress: Progress, *, seconds: float = 10) -> Progress:
    """`progress`, called at most once in this many seconds."""
    said = time.monotonic()

    def say(message: str) -> None:
        nonlocal said
        if time.monotonic() - said >= seconds:
            said = time.monotonic()
            progress(f"  {message}")

    return say


@contextmanager
def _named(name: str, unscored: Mapping[str, str], pairs: int) -> Iterator[None]:
    """Context in which a ValueError gets the data set's name in front, and the number of its unreadable pairs."""
    try:
        yield
    except ValueError as error:
        why = f"{pairs - len(unscored)} of {pairs} pairs can be read (the first other: {{}}); " if unscored else ""
        raise ValueError(f"{name}: {why.format(next(iter(unscored.values()), ''))}{error}") from None


def load_sets(
    datasets: Sequence[str], limit: int | None, words: Words | None = None, *, prompts: str = "paper"
) -> dict[str, PairSet]:
    """Pairs of each spec, by name; `words` are for those of the general kind, others keep the paper's question.

    `prompts`: a value of `FitSettings`; "conversations" shows pairs of the general kind so, see
    `public_pairs.load_pairs`.
    """
    sets: dict[str, PairSet] = {}
    for spec in datasets:
        loaded = load_pairs(spec, limit=limit, words=words, conversations=prompts == "conversations")
        if loaded.name in sets:
            raise ValueError(f"two data sets are named {loaded.name!r}: say NAME=PATH for one")
        sets[loaded.name] = loaded
    if not sets:
        raise ValueError("no data sets given: name at least one")
    if words and words != Words() and not any(pair.kind == "general" for s in sets.values() for pair in s.pairs):
        raise ValueError(
            f"{', '.join(sets)} keep the paper's question: another is for your own pairs, llmbar, mt_bench"
        )
    return sets


def _state(
    out: Path,
    judge: LocalModel,
    loading: Mapping[str, Any],
    settings: FitSettings,
    sets: Mapping[str, PairSet],
    harvests: Mapping[str, Harvest],
) -> dict[str, Any]:
    """Description of a run, for its run.json."""
    return {
        "selfprobe": version("selfprobe"),
        "model": judge.name,
        "revision": judge.revision,
        "parameters": int(judge.model.num_parameters()),
        "blocks": len(decoder_blocks(judge.model)),
        "versions": {name: version(name) for name in ("torch", "transformers", "numpy", "scikit-learn")}
        | {"python": python_version()},
        # A folder from somebody else must not grant what its command line granted.
        "loading": {name: value for name, value in loading.items() if name != "allow_pickle"},
        "chat": {"system": judge.chat.system, "arguments": dict(judge.chat.arguments)},
        "settings": asdict(settings),
        "datasets": {
            name: {
                "origin": sets[name].origin,
                "hash": data_hash(sets[name].pairs),
                "pairs": len(sets[name].pairs),
                "question": next((p.criterion for p in sets[name].pairs), ""),
                "item": next((p.item for p in sets[name].pairs), ""),
                "activations": str(h.folder.relative_to(out)),
            }
            for name, h in harvests.items()
        },
    }


def _save_probes(out: Path, fitted: Mapping[str, Fits], judge: LocalModel) -> None:
    for name, fits in fitted.items():
        for number in range(0, len(fits.halves), fits.settings.seeds):  # the first half of each aspect
            _save_both(out, probe_name(name, fits.halves[number].aspect), fits, number, judge)


def _save_both(out: Path, name: str, fits: Fits, number: int, judge: LocalModel) -> None:
    """Save the probes of the split of this number, so that its test half is held out."""
    harvested, split, truth = fits.harvest, fits.halves[number], fits.harvest.labels == 1
    for kind in KINDS:
        layer = fits.chosen(kind)[number]
        probe, scores = fits.probes[kind][number][layer], fits.scores[kind][number, layer, split.test]
        card = Card(
            model=harvested.identity.model,
            revision=harvested.identity.revision,
            template=harvested.identity.template,
            dtype=harvested.identity.dtype,
            dataset=name,
            data_hash=harvested.data_hash,
            settings=fits.settings.name,
            split_seed=0,
            train_groups=tuple(sorted(questions(harvested.pairs[i] for i in split.train))),
            train_pairs=len(split.train),
            test_scores={metric: f(truth[split.test], scores) for metric, f in METRICS.items()},
            selfprobe=version("selfprobe"),
            question=harvested.pairs[0].criterion,
            item=harvested.pairs[0].item,
            system=judge.chat.system,
            template_arguments=dict(judge.chat.arguments),
            prompts=fits.settings.prompts,
        )
        save_probe(out / f"{name}-{kind}.safetensors", probe, card)


def _tables(
    fits: Mapping[str, Fits], sets: Mapping[str, PairSet], logged: Mapping[str, tables.Logged], progress: Progress
) -> dict[str, pd.DataFrame]:
    makers: dict[str, Callable[[Fits, str], pd.DataFrame]] = {
        "methods": lambda f, name: tables.methods_table(f, logged=logged.get(name)),
        "differences": lambda f, name: tables.differences_table(f, logged=logged.get(name)),
        "aspects": lambda f, _: tables.aspects_table(f),
        "layers": lambda f, _: tables.layers_table(f),
        "floors": lambda f, _: tables.floors_table(f),
        "selected_on_test": lambda f, _: tables.selected_on_test(f),
        "rounding": lambda f, _: tables.rounding_table(f),
        "components": lambda f, _: tables.components_table(f),
    }
    made: dict[str, pd.DataFrame] = {}
    for count, (table, make) in enumerate(makers.items(), start=1):
        progress(f"table {count} of {len(makers)}: {table.replace('_', ' ')}")
        parts = [part.assign(dataset=name) for name, f in fits.items() if len(part := make(f, name))]
        if parts:
            made[table] = pd.concat(parts, ignore_index=True)
    return made | {"data": tables.data_table(fits, sets)}


def _transfers(fits: Mapping[str, Fits], progress: Progress) -> dict[str, pd.DataFrame]:
    if len(fits) < 2:
        return {}
    progress("transfer between the data sets")
    return {"transfer": transfer_table(fits), "cosine": cosine_table(fits)}


def _adversarial(harvests: Mapping[str, Harvest], settings: FitSettings, progress: Progress) -> dict[str, pd.DataFrame]:
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
