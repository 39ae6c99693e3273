"""The whole experiment: data sets → states → probes → tables.

run_probes("smollm2", ["llmbar", "mine.jsonl"], Path("probes"))

Tables are tidy, one row per number: the source of the figures and of the command line's output.

methods     probes against baselines and controls, at the chosen layer
differences each probe less asking and less each control, on the same pairs
layers      both probes at every layer (appendix A, figures 6 and 7)
subsets     both probes and prompting on every subset (LLMBar's adversarial ones, figure 4)
aspects     the same by aspect (SummEval, NEWSROOM, HANNA), and their mean
floors      what choosing among layers and signs reaches by luck
rounding    by block, of states read in half precision
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from selfprobe.data.own import Words
from selfprobe.data.pairs import Pair, data_hash
from selfprobe.data.public_pairs import LLMBAR_NATURAL, PairSet, load_pairs
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes import rate
from selfprobe.probes.evaluate import (
    METRICS,
    Fits,
    answer_mass,
    at_layers,
    by_length,
    estimate,
    fit_all,
    fitted_apart,
    own_answers,
    selection_floor,
    split_pairs,
)
from selfprobe.probes.fit import (
    KINDS,
    PRESETS,
    RANDOM_DIRECTIONS,
    BoolArray,
    FitSettings,
    Scores,
    features,
    parse_orientation,
    principal,
    questions,
)
from selfprobe.probes.folder import claim, probe_name, write_run, write_tables
from selfprobe.probes.forward import Reader, Way, read_in_process
from selfprobe.probes.harvesting import Harvest, harvest
from selfprobe.probes.model import LocalModel, decoder_blocks, load_model, wanted
from selfprobe.probes.model import random_weights as untrained
from selfprobe.probes.probe_file import Card, save_probe
from selfprobe.probes.rate import DIRECT, G_EVAL
from selfprobe.probes.transfer import cosine_table, transfer_table
from selfprobe.stats.estimate import Estimate, clustered_mean

Logged = Mapping[str, Mapping[str, float]]
"""Method → pair id → margin, > 0: text 1; 0 is a tie."""


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
    logged: Mapping[str, Logged] | None = None,
    random_weights: bool | None = None,
    scoring: bool | None = None,
    processes: int = 1,
    reader: Reader = read_in_process,
    progress: Progress = to_stderr,
) -> dict[str, pd.DataFrame]:
    """Harvest, fit and test every data set; write the run's folder and return its tables by name.

    Args:
        model: Name or path for `load_model`, or a loaded one (`loading`: the arguments of its
            `load_model`).
        datasets: Specs for `public_pairs.load_pairs` (a name, NAME=PATH, or a file), or what
            `load_sets` made of them.
        out: The run's folder. The same call continues a killed run. `settings`: one of
            `fit.PRESETS` or your own.
        limit: Number of pairs per data set, drawn with a fixed seed; None: all. `longest`: in
            tokens. `path`, `reader`:
            see `forward`. `processes`: number of fits at a time.
        logged: Data set → method → pair id → margin of other methods; see `Logged`.
        random_weights: Also read them under random weights; see `model.wanted`. `scoring`: also
            score each text alone (default: for data with aspects); see `rate`.

    Raises ValueError where there is too little to learn from, or a folder of another run.
    """
    sets = (
        datasets
        if isinstance(datasets, Mapping)
        else load_sets(datasets, limit, prompts=settings.prompts)
    )
    check_sets(sets, settings)
    rate.check_scoring(sets, scoring)
    judge = model if isinstance(model, LocalModel) else load_model(model, **loading)
    claim(out, judge, sets)
    reading: dict[str, Any] = {"path": path, "batch_tokens": batch_tokens, "longest": longest}
    harvests = _harvested(judge, sets, out, reading, reader, progress)
    state = _state(out, judge, loading, settings, sets, harvests)
    write_run(out, state | {"reading": {"limit": limit} | reading})
    fits = {
        name: _fitted(name, harvested, settings, progress, processes)
        for name, harvested in harvests.items()
    }
    if wanted(judge, random_weights):
        without = _harvested(untrained(judge), sets, out, reading, reader, progress)
        _fit_untrained(fits, without, settings, progress, processes)
    _save_probes(out, fits, judge)
    ratings = rate.rate_sets(judge, harvests, scoring, batch_tokens=batch_tokens, progress=progress)
    further = {name: {**ratings[name], **(logged or {}).get(name, {})} for name in harvests}
    made = _tables(fits, sets, further, progress) | _adversarial(harvests, settings, progress)
    return write_tables(out, made | _transfers(fits, progress))


def _fit_untrained(
    fits: Mapping[str, Fits],
    without: Mapping[str, Harvest],
    settings: FitSettings,
    progress: Progress,
    processes: int,
) -> None:
    for name, read in without.items():
        fits[name].untrained = _fitted(
            f"{name}, random weights", read, settings, progress, processes
        )


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
        found[name] = harvest(
            judge, given.pairs, out / "activations", **reading, reader=reader, progress=progress
        )
    return found


def check_sets(
    sets: Mapping[str, PairSet],
    settings: FitSettings,
    unscored: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """ValueError, before hours of forward passes, where a data set has too little to learn from.

    `unscored`: per set, pair id → reason why it cannot be read.
    """
    for name, pair_set in sets.items():
        reasons = (unscored or {}).get(name, {})
        with _named(name, reasons, len(pair_set.pairs)):
            split_pairs(
                [p for p in pair_set.pairs if not p.equal_texts and p.id not in reasons], settings
            )


def _fitted(
    name: str, harvested: Harvest, settings: FitSettings, progress: Progress, processes: int = 1
) -> Fits:
    of_each = " of each aspect" if fitted_apart(harvested.pairs, settings) else ""
    progress(
        f"{name}: fitting at {harvested.identity.layers} layers, {settings.seeds} halves{of_each}"
    )
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
    """Context in which a ValueError gets the data set's name in front, and the number of its
    unreadable pairs.
    """
    try:
        yield
    except ValueError as error:
        why = (
            f"{pairs - len(unscored)} of {pairs} pairs can be read (the first other: {{}}); "
            if unscored
            else ""
        )
        raise ValueError(
            f"{name}: {why.format(next(iter(unscored.values()), ''))}{error}"
        ) from None


def load_sets(
    datasets: Sequence[str],
    limit: int | None,
    words: Words | None = None,
    *,
    prompts: str = "paper",
) -> dict[str, PairSet]:
    """Pairs of each spec, by name; `words` are for those of the general kind, others keep the
    paper's question.

    `prompts`: a value of `FitSettings`; "conversations" shows pairs of the general kind so:
    `public_pairs.load_pairs`.
    """
    sets: dict[str, PairSet] = {}
    for spec in datasets:
        loaded = load_pairs(
            spec, limit=limit, words=words, conversations=prompts == "conversations"
        )
        if loaded.name in sets:
            raise ValueError(f"two data sets are named {loaded.name!r}: say NAME=PATH for one")
        sets[loaded.name] = loaded
    if not sets:
        raise ValueError("no data sets given: name at least one")
    if (
        words
        and words != Words()
        and not any(pair.kind == "general" for s in sets.values() for pair in s.pairs)
    ):
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
        "versions": {
            name: version(name) for name in ("torch", "transformers", "numpy", "scikit-learn")
        }
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
        for number in range(
            0, len(fits.halves), fits.settings.seeds
        ):  # the first half of each aspect
            _save_both(out, probe_name(name, fits.halves[number].aspect), fits, number, judge)


def _save_both(out: Path, name: str, fits: Fits, number: int, judge: LocalModel) -> None:
    """Save the probes of the split of this number, so that its test half is held out."""
    harvested, split, truth = fits.harvest, fits.halves[number], fits.harvest.labels == 1
    for kind in KINDS:
        layer = fits.chosen(kind)[number]
        probe, scores = (
            fits.probes[kind][number][layer],
            fits.scores[kind][number, layer, split.test],
        )
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
    fits: Mapping[str, Fits],
    sets: Mapping[str, PairSet],
    logged: Mapping[str, Logged],
    progress: Progress,
) -> dict[str, pd.DataFrame]:
    makers: dict[str, Callable[[Fits, str], pd.DataFrame]] = {
        "methods": lambda f, name: methods_table(f, logged=logged.get(name)),
        "differences": lambda f, name: differences_table(f, logged=logged.get(name)),
        "aspects": lambda f, _: aspects_table(f),
        "layers": lambda f, _: layers_table(f),
        "floors": lambda f, _: _floors_table(f),
        "selected_on_test": lambda f, _: selected_on_test(f),
        "rounding": lambda f, _: rounding_table(f),
        "components": lambda f, _: components_table(f),
    }
    made: dict[str, pd.DataFrame] = {}
    for count, (table, make) in enumerate(makers.items(), start=1):
        progress(f"table {count} of {len(makers)}: {table.replace('_', ' ')}")
        parts = [
            part.assign(dataset=name) for name, f in fits.items() if len(part := make(f, name))
        ]
        if parts:
            made[table] = pd.concat(parts, ignore_index=True)
    return made | {"data": _data_table(fits, sets)}


def _transfers(fits: Mapping[str, Fits], progress: Progress) -> dict[str, pd.DataFrame]:
    if len(fits) < 2:
        return {}
    progress("transfer between the data sets")
    return {"transfer": transfer_table(fits), "cosine": cosine_table(fits)}


def _adversarial(
    harvests: Mapping[str, Harvest], settings: FitSettings, progress: Progress
) -> dict[str, pd.DataFrame]:
    """LLMBar: learn from half of the natural pairs, test on the rest and on every adversarial
    subset (§5.4).
    """
    harvested = harvests.get("llmbar")
    if harvested is None or {p.subset for p in harvested.pairs} <= set(LLMBAR_NATURAL):
        return {}
    progress("llmbar: fitting on the natural subsets alone")
    try:
        fits = fit_all(harvested, settings, train_subsets=LLMBAR_NATURAL, progress=seldom(progress))
    except ValueError as error:
        progress(f"llmbar: no adversarial table, as {error}")
        return {}
    return {"adversarial": subsets_table(fits)}


MEAN_OF_ASPECTS = "mean of aspects"


class MethodScores(NamedTuple):
    """One method's scores on the test halves."""

    scores: Scores
    """[column, pair], > 0: text 1; NaN outside the test half. A column is a half, or a random
    direction of one.
    """
    note: str
    learnt: BoolArray | None = None
    """[column, pair]: whether a column's fit saw the pair's label; None: no fit saw any."""


def _row(found: Estimate, **names: Any) -> dict[str, Any]:
    return names | asdict(found)


def all_scores(fits: Fits, logged: Logged | None = None) -> dict[str, MethodScores]:
    """Every method by its name, at the chosen layer.

    `logged`: margins of further methods on these pairs, see `Logged`.
    """
    return _probes(fits) | _controls(fits) | _asked(fits, logged or {})


def _probes(fits: Fits) -> dict[str, MethodScores]:
    settings = fits.settings
    note = {kind: f"layers {fits.numbered(fits.chosen(kind))}" for kind in KINDS}
    leak = " LEAKS test labels or test texts into the fit" if settings.leaks else ""
    way, _ = parse_orientation(settings.orientation)
    labelled = max(
        len(half.few) for half in fits.halves
    )  # a small training half has fewer than asked for
    alone = (
        f"; sign and layer come from these {labelled} labels"
        if way == "few" and settings.layer == "train"
        else ""
    )
    sign = f"{note['unsupervised']}, sign {settings.orientation}{alone}"
    unsigned = ", sign arbitrary" if way == "none" else ""
    seen = {kind: fits.labels_seen(kind) for kind in KINDS}
    if apart := fitted_apart(fits.harvest.pairs, settings):
        leak = f"; mean of {len(apart)} aspects, a probe each{leak}"
    table = {
        "supervised": MethodScores(
            fits.at_chosen("supervised"), note["supervised"] + leak, seen["supervised"]
        ),
        "unsupervised": MethodScores(
            fits.at_chosen("unsupervised"), sign + unsigned + leak, seen["unsupervised"]
        ),
    }
    if way == "none":
        table["unsupervised, flipped"] = table["unsupervised"]._replace(
            scores=-table["unsupervised"].scores
        )
    if way == "few":
        layers = fits.best(fits.few_score)
        few = MethodScores(
            at_layers(fits.few, layers),
            f"layers {fits.numbered(layers)}, chosen by these labels",
            seen["unsupervised"],
        )
        table[f"supervised, the same {labelled} labels"] = few
    if settings.orders == "both":
        for kind in KINDS:
            one = fits.at_chosen(kind, fits.one_order[kind])
            table[f"{kind}, one order"] = MethodScores(
                one, "the same probes, first order only", seen[kind]
            )
    return table


def _controls(fits: Fits) -> dict[str, MethodScores]:
    pairs, splits, seen = fits.harvest.pairs, fits.halves, fits.labels_seen("supervised")
    random = np.concatenate(list(at_layers(fits.random, fits.chosen("supervised"))))
    signed = np.repeat(seen, RANDOM_DIRECTIONS, axis=0)
    table = {
        "random direction": MethodScores(random, "same layers, sign by the training labels", signed)
    }
    if fits.untrained is not None:
        for kind in KINDS:
            scores = _aligned(fits.untrained.at_chosen(kind), fits.untrained.harvest.pairs, pairs)
            layers = f"the same fit to the same architecture, layers {fits.numbered(fits.untrained.chosen(kind))}"
            table[f"random weights, {kind}"] = MethodScores(scores, layers, fits.labels_seen(kind))
    table["no model (TF-IDF)"] = MethodScores(fits.words, "same halves", seen)
    table["no model (length)"] = MethodScores(
        by_length(pairs, splits), "longer or shorter, by the training half", seen
    )
    return table


def _asked(fits: Fits, logged: Logged) -> dict[str, MethodScores]:
    own = own_answers(fits.harvest)
    log_odds = fits.harvest.log_probs[:, 0, 0].astype(float) - fits.harvest.log_probs[:, 0, 1]
    mean = _tested(own.mean(axis=1) - 0.5, fits)
    table = {"prompting": MethodScores(mean, f"P(1), P(2) averaged over {own.shape[1]} orders")}
    if own.shape[1] > 1:
        table["prompting, one order"] = MethodScores(
            _tested(own[:, 0] - 0.5, fits), "first order, position bias and all"
        )
    centred = np.stack([log_odds - np.median(log_odds[split.train]) for split in fits.halves])
    table["prompting, one order, calibrated"] = MethodScores(
        np.where(np.isnan(mean), np.nan, centred),
        "less the median log-odds of the training half; no labels",
    )
    for method, margins in logged.items():
        verdicts = np.array([margins.get(pair.id, np.nan) for pair in fits.harvest.pairs])
        missing, ties = int(np.isnan(verdicts).sum()), int((verdicts == 0).sum())
        note = (
            f"1 to 5, each text alone; {ties} ties" if method in (DIRECT, G_EVAL) else "from logs"
        )
        table[method] = MethodScores(
            _tested(verdicts, fits), f"{note}; {missing} pairs without a verdict"
        )
    return table


def _tested(scores: Scores, fits: Fits) -> Scores:
    """[pair] → [seed, pair], NaN outside the test half."""
    out = np.full((len(fits.halves), len(scores)), np.nan)
    for seed, split in enumerate(fits.halves):
        out[seed, split.test] = scores[split.test]
    return out


def _aligned(scores: Scores, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> Scores:
    """[column, pair] of `pairs` → of `wanted`, NaN where one is not among `pairs`."""
    place = {pair.id: i for i, pair in enumerate(pairs)}
    at_end = np.column_stack([scores, np.full(len(scores), np.nan)])
    return at_end[:, [place.get(pair.id, -1) for pair in wanted]]


def _estimate(
    fits: Fits,
    method: MethodScores,
    metric: str,
    *,
    less: MethodScores | None = None,
    inside: BoolArray | None = None,
) -> Estimate:
    """A metric of a method, or of its paired difference from another, on all pairs or those
    `inside`.
    """
    scores = method.scores if inside is None else np.where(inside, method.scores, np.nan)
    truth, groups, learnt = fits.harvest.labels == 1, fits.harvest.groups, method.learnt
    resamples, other = fits.settings.resamples, None if less is None else less.scores
    return estimate(scores, truth, groups, metric, resamples=resamples, learnt=learnt, less=other)


def methods_table(fits: Fits, *, logged: Logged | None = None) -> pd.DataFrame:
    """method, metric, value, low, high, n, unit, reason, note: probes, baselines, controls."""
    rows = [
        _row(_estimate(fits, method, metric), method=name, metric=metric, note=method.note)
        for name, method in all_scores(fits, logged).items()
        for metric in METRICS
    ]
    return pd.DataFrame(rows)


def differences_table(fits: Fits, *, logged: Logged | None = None) -> pd.DataFrame:
    """probe, against, metric, value, low, high …: a probe less asking, a control or a logged
    method, on the same pairs.

    Random weights are compared kind with kind, random directions each with the probe of its half,
    and the supervised probe with the unsupervised one too.
    """
    methods = all_scores(fits, logged)
    rows = []
    for kind in KINDS:
        for other in (
            *COMPARED_METHODS,
            "unsupervised",
            f"random weights, {kind}",
            *(logged or {}),
        ):
            if other not in methods or other == kind:
                continue
            control = methods[other]
            probe = _repeated_columns(methods[kind], len(control.scores))
            for metric in METRICS:
                less = _estimate(fits, probe, metric, less=control)
                rows.append(_row(less, probe=kind, against=other, metric=metric))
    return pd.DataFrame(rows)


COMPARED_METHODS = (
    "prompting",
    "prompting, one order, calibrated",
    "no model (length)",
    "no model (TF-IDF)",
    "random direction",
)
"""Methods that every run compares its probes with."""


def _repeated_columns(method: MethodScores, columns: int) -> MethodScores:
    """The columns of a method, each repeated in place so that there are as many as those of its
    control.
    """
    times = columns // len(method.scores)
    if times <= 1:
        return method
    learnt = method.learnt
    if learnt is not None:
        learnt = np.repeat(learnt, times, axis=0)
    return MethodScores(np.repeat(method.scores, times, axis=0), method.note, learnt)


def layers_table(fits: Fits) -> pd.DataFrame:
    """layer, probe, metric, value, low, high …, chosen_by: share of seeds whose training half chose
    the layer.
    """
    truth, groups, rows = fits.harvest.labels == 1, fits.harvest.groups, []
    resamples = max(100, fits.settings.resamples // 5)
    for kind in KINDS:
        chosen, learnt = fits.chosen(kind), fits.labels_seen(kind)
        for layer in range(fits.harvest.identity.layers):
            for metric in ("f1", "auroc"):
                scores = fits.scores[kind][:, layer]
                found = estimate(scores, truth, groups, metric, resamples=resamples, learnt=learnt)
                share = chosen.count(layer) / len(chosen)
                rows.append(
                    _row(
                        found,
                        layer=fits.harvest.layers[layer],
                        probe=kind,
                        metric=metric,
                        chosen_by=share,
                    )
                )
    return pd.DataFrame(rows)


def subsets_table(fits: Fits) -> pd.DataFrame:
    """subset, method, metric, value, low, high …: numbers of each subset's test pairs."""
    return _by_part(fits, "subset", [pair.subset for pair in fits.harvest.pairs])


def aspects_table(fits: Fits) -> pd.DataFrame:
    """aspect, method, metric, value, low, high …: numbers of each aspect's test pairs, and
    `MEAN_OF_ASPECTS`.

    Probes learnt from all aspects or from each one, by the settings. The table is empty where the
    data have no aspects.
    """
    aspects = [pair.aspect for pair in fits.harvest.pairs]
    return (
        _by_part(fits, "aspect", aspects, mean=MEAN_OF_ASPECTS) if any(aspects) else pd.DataFrame()
    )


def _by_part(fits: Fits, column: str, names: Sequence[str], *, mean: str = "") -> pd.DataFrame:
    """Numbers of each part's test pairs; `mean`: name of a last row with their unweighted mean."""
    wanted = ("supervised", "unsupervised", "prompting", "no model (TF-IDF)", "no model (length)")
    table, parts, rows = all_scores(fits), np.array(names), []
    table = {
        method: table[method]
        for method in (*wanted, *(f"random weights, {k}" for k in KINDS))
        if method in table
    }
    each = [parts == name for name in sorted(set(names))]
    for inside in (*each, None) if mean else each:
        for name, method in table.items():
            given = method if inside is not None else _repeated(method, each)
            for metric in ("f1", "accuracy", "auroc"):
                found = _estimate(fits, given, metric, inside=inside)
                part = mean if inside is None else str(parts[inside][0])
                rows.append(_row(found, **{column: part}, method=name, metric=metric))
    return pd.DataFrame(rows)


def _repeated(method: MethodScores, each: Sequence[BoolArray]) -> MethodScores:
    """The columns of a method once per part, on its pairs alone: their mean is the mean over parts."""
    scores = np.concatenate([np.where(inside, method.scores, np.nan) for inside in each])
    return MethodScores(
        scores,
        method.note,
        None if method.learnt is None else np.tile(method.learnt, (len(each), 1)),
    )


def _floors_table(fits: Fits) -> pd.DataFrame:
    """probe, metric, over, mean, high, n: the best of all layers (and both signs) with shuffled
    labels.

    reached, p_value: number of the probe at its chosen layers, and the share of shuffles that reach
    it.
    """
    rows = []
    for kind in KINDS:
        chosen = MethodScores(fits.at_chosen(kind), "")
        for metric in ("f1", "auroc"):
            reached = _estimate(fits, chosen, metric).value
            for both in (False, True):
                floor = selection_floor(
                    fits.scores[kind],
                    fits.harvest.labels == 1,
                    fits.harvest.groups,
                    both_signs=both,
                    metric=metric,
                    shuffles=2 * fits.settings.resamples // 5,
                    reached=reached,
                )
                rows.append({"probe": kind} | asdict(floor))
    return pd.DataFrame(rows)


def _data_table(fits: Mapping[str, Fits], sets: Mapping[str, PairSet]) -> pd.DataFrame:
    """dataset, origin, pairs, ties, left_out, scored, unscored, reasons, humans_agree, …,
    answer_mass, ….

    answer_mass is the share of its probability that the model puts on the two answers when it is
    asked, with its interval by question. The columns of humans are filled where a data set has
    single votes (MT-Bench): how often two judges agree, with an interval by question, over the
    whole set.
    """
    rows = []
    for name, given in sets.items():
        read, agreed = fits[name].harvest, given.agreements
        by_question = clustered_mean(
            [a for _, a in agreed], [question for question, _ in agreed], unit="question"
        )
        mass = answer_mass(read)
        rows.append(
            {"dataset": name, "origin": given.origin, "pairs": len(given.pairs), "ties": given.ties}
            | {
                "left_out": given.left_out,
                "scored": len(read.pairs),
                "unscored": len(read.unscored),
            }
            | {
                "reasons": "; ".join(
                    sorted({reason.split(":")[0] for reason in read.unscored.values()})
                )
            }
            | {
                "humans_agree": by_question.value,
                "humans_low": by_question.low,
                "humans_high": by_question.high,
            }
            | {
                "answer_mass": mass.value,
                "answer_mass_low": mass.low,
                "answer_mass_high": mass.high,
            }
        )
    return pd.DataFrame(rows)


def rounding_table(fits: Fits) -> pd.DataFrame:
    """layer, rounding: φ⁺ − φ⁻'s rounding as a share of its spread; see `Harvest.rounding`. Empty
    for float32.
    """
    harvest = fits.harvest
    rounding = () if harvest.identity.dtype == "float32" else harvest.rounding
    return pd.DataFrame({"layer": harvest.layers[: len(rounding)], "rounding": rounding})


def selected_on_test(fits: Fits) -> pd.DataFrame:
    """probe, metric, value: best layer and sign by the test score, to be compared with
    `_floors_table`. LEAKS.
    """
    truth, rows = fits.harvest.labels == 1, []
    for kind in KINDS:
        for metric in ("f1", "auroc"):
            best = []
            for table in fits.scores[kind]:
                test = ~np.isnan(table).all(axis=0)
                best.append(
                    max(
                        METRICS[metric](truth[test], s * row[test])
                        for row in table
                        for s in (1, -1)
                    )
                )
            rows.append({"probe": kind, "metric": metric, "value": float(np.mean(best))})
    return pd.DataFrame(rows)


def components_table(fits: Fits) -> pd.DataFrame:
    """pair, aspect, group, preferred (1, 2), half (train, test), layer, first, second, share_first,
    share_second.

    Paper: one picture, of Llama 3.1 70B on MT-Bench, with all pairs fitted. Here: split 0's
    training half gives the means and both components, at the layer of its unsupervised probe, whose
    direction is the first one with its sign; all pairs are shown, so that those of the test half
    are new to it (of the first aspect, where each has its own probe). Shares are of the variance of
    all pairs shown.
    """
    layer = fits.chosen("unsupervised")[0]
    probe, half, harvest = fits.probes["unsupervised"][0][layer], fits.halves[0], fits.harvest
    rows = [i for i, pair in enumerate(harvest.pairs) if half.aspect in ("", pair.aspect)]
    pairs, learnt = [harvest.pairs[i] for i in rows], np.isin(rows, half.train)
    x = features(
        harvest.layer(probe.layer)[rows], probe.mean_plus, probe.mean_minus, orders=probe.orders
    )
    along = x @ probe.direction
    rest = x - along[:, None] * probe.direction
    second = principal(rest[learnt], symmetric=probe.orders == "both")
    total = float(x.var(axis=0).sum()) or 1.0
    return pd.DataFrame(
        {
            "pair": [pair.id for pair in pairs],
            "aspect": [pair.aspect for pair in pairs],
            "group": [pair.group for pair in pairs],
            "preferred": harvest.labels[rows],
            "half": np.where(learnt, "train", "test"),
            "layer": probe.layer,
            "first": along,
            "second": x @ second,
            "share_first": float(along.var()) / total,
            "share_second": float((x @ second).var()) / total,
        }
    )
