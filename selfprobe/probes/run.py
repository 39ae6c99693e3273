"""The whole experiment: data sets → states → probes → tables.

run_probes("smollm2", ["llmbar", "mine.jsonl"], Path("probes"))

Tables are tidy, one row per number: the source of the figures and of the command line's output.

methods     probes against baselines and controls, at the chosen layer
differences each probe less asking and less each control, on the same pairs
layers      both probes at every layer (appendix A, figures 6 and 7)
subsets     both probes and prompting on every subset (LLMBar's adversarial ones, figure 4)
aspects     the same by aspect (SummEval, NEWSROOM, HANNA), and their mean
strict      of a preset whose halves share questions: the last block by halves of questions
floors      what choosing among layers and signs reaches by luck
rounding    by block, of states read in half precision
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
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
    fit_inputs,
    fitted_apart,
    own_answers,
    selection_floor,
    split_pairs,
)
from selfprobe.probes.fit import (
    FITTED_KINDS,
    PRESETS,
    RANDOM_DIRECTIONS,
    BoolArray,
    FitSettings,
    Kind,
    Scores,
    features,
    fit_layer,
    groups_and_questions,
    parse_orientation,
    principal,
)
from selfprobe.probes.folder import check_folder, probe_name, write_run, write_tables
from selfprobe.probes.forward import Reader, Way, read_in_process
from selfprobe.probes.harvesting import Harvest, harvest
from selfprobe.probes.model import LocalModel, decoder_blocks, load_model, wants_untrained_control
from selfprobe.probes.model import random_weights as untrained
from selfprobe.probes.probe_file import Card, pair_name, save_probe
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
        random_weights: Also read them under random weights; see `model.wants_untrained_control`.
            `scoring`: also score each text alone (default: for data with aspects); see `rate`.

    Raises ValueError where there is too little to learn from, or a folder of another run.
    """
    if isinstance(datasets, Mapping):
        sets = datasets
    else:
        sets = load_sets(datasets, limit, prompts=settings.prompts)
    check_sets(sets, settings)
    rate.check_scoring(sets, scoring)
    judge = model if isinstance(model, LocalModel) else load_model(model, **loading)
    check_folder(out, judge, sets)

    reading: dict[str, Any] = {"path": path, "batch_tokens": batch_tokens, "longest": longest}
    harvests = _harvest_sets(judge, sets, out, reading, reader, progress)
    description = _run_description(out, judge, loading, settings, sets, harvests)
    write_run(out, description | {"reading": {"limit": limit} | reading})

    fits_by_set: dict[str, Fits] = {}
    for name, harvested in harvests.items():
        fits_by_set[name] = _fit_set(name, harvested, settings, progress, processes)
    if wants_untrained_control(judge, random_weights):
        untrained_harvests = _harvest_sets(untrained(judge), sets, out, reading, reader, progress)
        for name, harvested in untrained_harvests.items():
            title = f"{name}, random weights"
            fits_by_set[name].untrained = _fit_set(title, harvested, settings, progress, processes)
    _save_probes(out, fits_by_set, judge)

    ratings = rate.rate_sets(judge, harvests, scoring, batch_tokens=batch_tokens, progress=progress)
    further_methods = {name: {**ratings[name], **(logged or {}).get(name, {})} for name in harvests}
    tables = _tables(fits_by_set, sets, further_methods, progress)
    tables |= _adversarial_tables(harvests, settings, progress)
    tables |= _transfer_tables(fits_by_set, progress)
    tables |= _strict_tables(harvests, settings, progress)
    return write_tables(out, tables)


def _harvest_sets(
    judge: LocalModel,
    sets: Mapping[str, PairSet],
    out: Path,
    reading: dict[str, Any],
    reader: Reader,
    progress: Progress,
) -> dict[str, Harvest]:
    harvests: dict[str, Harvest] = {}
    for name, pair_set in sets.items():
        progress(f"{name}: {len(pair_set.pairs)} pairs from {pair_set.origin} under {judge.name}")
        harvests[name] = harvest(
            judge, pair_set.pairs, out / "activations", **reading, reader=reader, progress=progress
        )
    return harvests


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
        readable_pairs = [
            pair for pair in pair_set.pairs if not pair.has_equal_texts and pair.id not in reasons
        ]
        with _errors_with_set_name(name, reasons, len(pair_set.pairs)):
            split_pairs(readable_pairs, settings)


def _fit_set(
    name: str, harvested: Harvest, settings: FitSettings, progress: Progress, processes: int
) -> Fits:
    aspect_note = " of each aspect" if fitted_apart(harvested.pairs, settings) else ""
    progress(
        f"{name}: fitting at {harvested.identity.layers} layers, "
        f"{settings.seeds} halves{aspect_note}"
    )
    pair_count = len(harvested.pairs) + len(harvested.unscored)
    with _errors_with_set_name(name, harvested.unscored, pair_count):
        return fit_all(harvested, settings, processes=processes, progress=seldom(progress))


def seldom(progress: Progress, *, seconds: float = 10) -> Progress:
    """`progress`, called at most once in this many seconds."""
    last_call = time.monotonic()

    def report_seldom(message: str) -> None:
        nonlocal last_call
        if time.monotonic() - last_call >= seconds:
            last_call = time.monotonic()
            progress(f"  {message}")

    return report_seldom


@contextmanager
def _errors_with_set_name(
    name: str, unscored: Mapping[str, str], pair_count: int
) -> Iterator[None]:
    """Context in which a ValueError gets the data set's name in front, and the number of its
    unreadable pairs.
    """
    try:
        yield
    except ValueError as error:
        readable_note = ""
        if unscored:
            first_reason = next(iter(unscored.values()))
            readable_note = (
                f"{pair_count - len(unscored)} of {pair_count} pairs can be read "
                f"(the first other: {first_reason}); "
            )
        raise ValueError(f"{name}: {readable_note}{error}") from None


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
    as_conversations = prompts == "conversations"
    for spec in datasets:
        pair_set = load_pairs(spec, limit=limit, words=words, conversations=as_conversations)
        if pair_set.name in sets:
            raise ValueError(f"two data sets are named {pair_set.name!r}: say NAME=PATH for one")
        sets[pair_set.name] = pair_set
    if not sets:
        raise ValueError("no data sets given: name at least one")

    kinds = {pair.kind for pair_set in sets.values() for pair in pair_set.pairs}
    if words and words != Words() and "general" not in kinds:
        raise ValueError(
            f"{', '.join(sets)} keep the paper's question: another is for your own pairs, llmbar, "
            "mt_bench"
        )
    return sets


def _run_description(
    out: Path,
    judge: LocalModel,
    loading: Mapping[str, Any],
    settings: FitSettings,
    sets: Mapping[str, PairSet],
    harvests: Mapping[str, Harvest],
) -> dict[str, Any]:
    """Description of a run, for its run.json."""
    versions = {name: version(name) for name in ("torch", "transformers", "numpy", "scikit-learn")}
    versions["python"] = python_version()
    # A folder from somebody else must not grant what its command line granted.
    kept_loading = {name: value for name, value in loading.items() if name != "allow_pickle"}
    set_descriptions: dict[str, dict[str, Any]] = {}
    for name, harvested in harvests.items():
        pairs = sets[name].pairs
        set_descriptions[name] = {
            "origin": sets[name].origin,
            "hash": data_hash(pairs),
            "pairs": len(pairs),
            "question": pairs[0].criterion if pairs else "",
            "item": pairs[0].item if pairs else "",
            "activations": str(harvested.folder.relative_to(out)),
        }
    return {
        "selfprobe": version("selfprobe"),
        "model": judge.name,
        "revision": judge.revision,
        "parameters": int(judge.model.num_parameters()),
        "blocks": len(decoder_blocks(judge.model)),
        "versions": versions,
        "loading": kept_loading,
        "chat": {"system": judge.chat.system, "arguments": dict(judge.chat.arguments)},
        "settings": asdict(settings),
        "datasets": set_descriptions,
    }


def _save_probes(out: Path, fits_by_set: Mapping[str, Fits], judge: LocalModel) -> None:
    """Save the probes of the first half of each set, or of each of its aspects."""
    for name, fits in fits_by_set.items():
        for half_number in range(0, len(fits.halves), fits.settings.seeds):
            file_name = probe_name(name, fits.halves[half_number].aspect)
            _save_probes_of_half(out, file_name, fits, half_number, judge)


def _save_probes_of_half(
    out: Path, name: str, fits: Fits, half_number: int, judge: LocalModel
) -> None:
    """Save the probes of the half of this number, so that its test pairs are held out."""
    harvested, half = fits.harvest, fits.halves[half_number]
    train_pairs = [harvested.pairs[number] for number in half.train]
    test_pairs = [harvested.pairs[number] for number in half.test]
    test_truth = harvested.labels[half.test] == 1
    for kind in FITTED_KINDS:
        layer = fits.layers_chosen_in_training(kind)[half_number]
        probe = fits.probes[kind][half_number][layer]
        scores = fits.scores[kind][half_number, layer, half.test]
        test_scores: dict[str, float] = {}
        for metric, measure in METRICS.items():
            test_scores[metric] = measure(test_truth, scores)
        card = Card(
            model=harvested.identity.model,
            revision=harvested.identity.revision,
            template=harvested.identity.template,
            dtype=harvested.identity.dtype,
            dataset=name,
            data_hash=harvested.data_hash,
            settings=fits.settings.name,
            split_seed=0,
            train_groups=tuple(sorted(groups_and_questions(train_pairs))),
            train_pairs=len(train_pairs),
            test_scores=test_scores,
            selfprobe=version("selfprobe"),
            question=harvested.pairs[0].criterion,
            item=harvested.pairs[0].item,
            system=judge.chat.system,
            template_arguments=dict(judge.chat.arguments),
            prompts=fits.settings.prompts,
            test_pairs=tuple(pair_name(pair) for pair in test_pairs),
        )
        save_probe(out / f"{name}-{kind}.safetensors", probe, card)


LOGGED_TABLES = ("methods", "differences")
"""Tables in which logged margins of further methods stand too."""


def _tables(
    fits_by_set: Mapping[str, Fits],
    sets: Mapping[str, PairSet],
    logged_by_set: Mapping[str, Logged],
    progress: Progress,
) -> dict[str, pd.DataFrame]:
    makers: dict[str, Callable[..., pd.DataFrame]] = {
        "methods": methods_table,
        "differences": differences_table,
        "aspects": aspects_table,
        "layers": layers_table,
        "floors": _floors_table,
        "selected_on_test": selected_on_test,
        "rounding": rounding_table,
        "components": components_table,
    }
    for set_name, fits in fits_by_set.items():
        progress(f"{set_name}: a control without the model, sentence embeddings of its texts")
        _ = fits.sentence_embedding_scores

    tables: dict[str, pd.DataFrame] = {}
    for table_number, (table_name, make_table) in enumerate(makers.items(), start=1):
        title = table_name.replace("_", " ")
        progress(f"table {table_number} of {len(makers)}: {title}")
        set_tables: list[pd.DataFrame] = []
        for set_name, fits in fits_by_set.items():
            if table_name in LOGGED_TABLES:
                set_table = make_table(fits, logged=logged_by_set.get(set_name, {}))
            else:
                set_table = make_table(fits)
            if len(set_table):
                set_tables.append(set_table.assign(dataset=set_name))
        if set_tables:
            tables[table_name] = pd.concat(set_tables, ignore_index=True)
    return tables | {"data": _data_table(fits_by_set, sets)}


def _transfer_tables(
    fits_by_set: Mapping[str, Fits], progress: Progress
) -> dict[str, pd.DataFrame]:
    if len(fits_by_set) < 2:
        return {}
    progress("transfer between the data sets")
    return {"transfer": transfer_table(fits_by_set), "cosine": cosine_table(fits_by_set)}


def _strict_tables(
    harvests: Mapping[str, Harvest], settings: FitSettings, progress: Progress
) -> dict[str, pd.DataFrame]:
    """Table "strict" of a run whose halves share questions: the last block under the preset
    strict.
    """
    if settings.grouped:
        return {}
    set_tables: list[pd.DataFrame] = []
    for name, harvested in harvests.items():
        progress(f"{name}: the last block by halves of questions (preset strict)")
        try:
            set_tables.append(strict_table(harvested, settings).assign(dataset=name))
        except ValueError as error:
            progress(f"{name}: no numbers of the preset strict, as {error}")
    return {"strict": pd.concat(set_tables, ignore_index=True)} if set_tables else {}


def strict_table(harvest: Harvest, settings: FitSettings) -> pd.DataFrame:
    """method, metric, value, low, high …: both probes of the last block, and asking, as the preset
    strict has them, with the seeds, resamples and prompts of these settings.

    Raises:
        ValueError: Halves of questions hold too little to learn from.
    """
    strict = replace(
        PRESETS["strict"],
        layer="last",
        seeds=settings.seeds,
        resamples=settings.resamples,
        prompts=settings.prompts,
    )
    last_block = harvest.layers[-1]
    inputs = fit_inputs(harvest, strict)
    half_numbers = range(len(inputs.halves))
    layer_fits = fit_layer(harvest.layer(last_block), inputs, last_block, half_numbers)

    shape = (len(inputs.halves), len(harvest.pairs))
    methods = (*FITTED_KINDS, "prompting")
    scores: dict[str, Scores] = {method: np.full(shape, np.nan) for method in methods}
    labels_seen: dict[str, BoolArray] = {kind: np.zeros(shape, dtype=bool) for kind in FITTED_KINDS}
    for number, (half, layer_fit) in enumerate(zip(inputs.halves, layer_fits, strict=True)):
        scores["prompting"][number, half.test] = inputs.model_answers[half.test]
        labels_seen["supervised"][number, half.train] = True
        labels_seen["unsupervised"][number, half.few] = True
        for kind in FITTED_KINDS:
            scores[kind][number, half.test] = layer_fit.scores[kind]

    rows: list[dict[str, Any]] = []
    for method, method_scores in scores.items():
        for metric in METRICS:
            value = estimate(
                method_scores,
                inputs.first_better,
                inputs.groups,
                metric,
                resamples=strict.resamples,
                learnt=labels_seen.get(method),
            )
            rows.append(_row(value, method=method, metric=metric))
    return pd.DataFrame(rows)


def _adversarial_tables(
    harvests: Mapping[str, Harvest], settings: FitSettings, progress: Progress
) -> dict[str, pd.DataFrame]:
    """LLMBar: learn from half of the natural pairs, test on the rest and on every adversarial
    subset (§5.4).
    """
    harvested = harvests.get("llmbar")
    if harvested is None:
        return {}
    if {pair.subset for pair in harvested.pairs} <= set(LLMBAR_NATURAL):
        return {}
    progress("llmbar: fitting on the natural subsets alone")
    try:
        fits = fit_all(harvested, settings, train_subsets=LLMBAR_NATURAL, progress=seldom(progress))
    except ValueError as error:
        progress(f"llmbar: no adversarial table, as {error}")
        return {}
    return {"adversarial": subsets_table(fits)}


MEAN_OF_ASPECTS = "mean of aspects"
SAME_LABELS = "supervised, the same labels"
"""Method that learns from the labels which fix the sign of the unsupervised probe."""
SENTENCE_EMBEDDINGS = "no model (MiniLM)"


class MethodScores(NamedTuple):
    """One method's scores on the test halves."""

    scores: Scores
    """[column, pair], > 0: text 1; NaN outside the test half. A column is a half, or a random
    direction of one.
    """
    note: str
    learnt: BoolArray | None = None
    """[column, pair]: whether a column's fit saw the pair's label; None: no fit saw any."""
    no_measurement: str = ""
    """Why its number is no measurement: what reached its fit, or an arbitrary sign."""


def _row(value: Estimate, **names: Any) -> dict[str, Any]:
    return names | asdict(value)


def all_scores(fits: Fits, logged: Logged | None = None) -> dict[str, MethodScores]:
    """Every method by its name, at the chosen layer.

    `logged`: margins of further methods on these pairs, see `Logged`.
    """
    return _probe_methods(fits) | _control_methods(fits) | _asking_methods(fits, logged or {})


def _probe_methods(fits: Fits) -> dict[str, MethodScores]:
    settings = fits.settings
    sign_source, _ = parse_orientation(settings.orientation)
    # A small training half has fewer labels than asked for.
    few_label_count = max(len(half.few) for half in fits.halves)
    labels_seen = {kind: fits.labels_seen(kind) for kind in FITTED_KINDS}

    layer_notes: dict[Kind, str] = {}
    for kind in FITTED_KINDS:
        layer_notes[kind] = f"layers {fits.block_numbers(fits.layers_chosen_in_training(kind))}"
    sign_note = f"{layer_notes['unsupervised']}, sign {settings.orientation}"
    if sign_source == "few" and settings.layer == "train":
        sign_note += f"; sign and layer come from these {few_label_count} labels"
    if sign_source == "none":
        sign_note += ", sign arbitrary"
    unknown_sign = "its sign is arbitrary" if sign_source == "none" else ""
    supervised_leak = replace(settings, orientation="none").leak  # it has a sign by its labels
    setting_note = f"; LEAKS: {settings.leak}" if settings.leaks else ""
    aspects = fitted_apart(fits.harvest.pairs, settings)
    if aspects:
        setting_note = f"; mean of {len(aspects)} aspects, a probe each{setting_note}"

    methods = {
        "supervised": MethodScores(
            fits.scores_at_chosen_layers("supervised"),
            layer_notes["supervised"] + setting_note,
            labels_seen["supervised"],
            supervised_leak,
        ),
        "unsupervised": MethodScores(
            fits.scores_at_chosen_layers("unsupervised"),
            sign_note + setting_note,
            labels_seen["unsupervised"],
            settings.leak or unknown_sign,
        ),
    }
    if sign_source == "none":
        unsupervised = methods["unsupervised"]
        methods["unsupervised, flipped"] = unsupervised._replace(scores=-unsupervised.scores)
    if sign_source == "few":
        layers = fits.layers_by_train_scores(fits.few_label_train_scores)
        methods[SAME_LABELS] = MethodScores(
            at_layers(fits.few_label_scores, layers),
            f"the unsupervised probe's {few_label_count} labels, layers "
            f"{fits.block_numbers(layers)} chosen by them",
            labels_seen["unsupervised"],
        )
    if settings.orders == "both":
        for kind in FITTED_KINDS:
            layers = fits.layers_chosen_in_training(kind)
            methods[f"{kind}, one order"] = MethodScores(
                at_layers(fits.one_order_scores[kind], layers),
                "the same probes, first order only",
                labels_seen[kind],
            )
    return methods


def _control_methods(fits: Fits) -> dict[str, MethodScores]:
    pairs = fits.harvest.pairs
    train_labels_seen = fits.labels_seen("supervised")
    supervised_layers = fits.layers_chosen_in_training("supervised")
    random_scores = np.concatenate(list(at_layers(fits.random_scores, supervised_layers)))
    methods = {
        "random direction": MethodScores(
            random_scores,
            "same layers, sign by the training labels",
            np.repeat(train_labels_seen, RANDOM_DIRECTIONS, axis=0),
        )
    }
    untrained_fits = fits.untrained
    if untrained_fits is not None:
        for kind in FITTED_KINDS:
            untrained_scores = untrained_fits.scores_at_chosen_layers(kind)
            layers = untrained_fits.block_numbers(untrained_fits.layers_chosen_in_training(kind))
            methods[f"random weights, {kind}"] = MethodScores(
                _aligned_scores(untrained_scores, untrained_fits.harvest.pairs, pairs),
                f"the same fit to the same architecture, layers {layers}",
                fits.labels_seen(kind),
            )
    methods["no model (TF-IDF)"] = MethodScores(
        fits.text_only_scores, "same halves", train_labels_seen
    )
    embedding_scores = fits.sentence_embedding_scores
    if embedding_scores is not None:
        methods[SENTENCE_EMBEDDINGS] = MethodScores(
            embedding_scores,
            "same halves, differences of embeddings of each text's first 256 tokens",
            train_labels_seen,
        )
    methods["no model (length)"] = MethodScores(
        by_length(pairs, fits.halves), "longer or shorter, by the training half", train_labels_seen
    )
    return methods


def _asking_methods(fits: Fits, logged: Logged) -> dict[str, MethodScores]:
    model_answers = own_answers(fits.harvest)  # [pair, order]
    order_count = model_answers.shape[1]
    mean_margins = _test_scores(model_answers.mean(axis=1) - 0.5, fits)
    methods = {
        "prompting": MethodScores(mean_margins, f"P(1), P(2) averaged over {order_count} orders")
    }
    if order_count > 1:
        methods["prompting, one order"] = MethodScores(
            _test_scores(model_answers[:, 0] - 0.5, fits), "first order, position bias and all"
        )

    first_order = fits.harvest.log_probs[:, 0]
    log_odds = first_order[:, 0].astype(float) - first_order[:, 1]
    centred_log_odds = np.stack(
        [log_odds - np.median(log_odds[half.train]) for half in fits.halves]
    )
    methods["prompting, one order, calibrated"] = MethodScores(
        np.where(np.isnan(mean_margins), np.nan, centred_log_odds),
        "less the median log-odds of the training half; no labels",
    )

    for method, margins in logged.items():
        pair_margins = np.array([margins.get(pair.id, np.nan) for pair in fits.harvest.pairs])
        missing_count = int(np.isnan(pair_margins).sum())
        note = "from logs"
        if method in (DIRECT, G_EVAL):
            tie_count = int((pair_margins == 0).sum())
            note = f"1 to 5, each text alone; {tie_count} ties"
        methods[method] = MethodScores(
            _test_scores(pair_margins, fits), f"{note}; {missing_count} pairs without a verdict"
        )
    return methods


def _test_scores(scores: Scores, fits: Fits) -> Scores:
    """[pair] → [half, pair], NaN outside the test half."""
    test_scores = np.full((len(fits.halves), len(scores)), np.nan)
    for half_scores, half in zip(test_scores, fits.halves, strict=True):
        half_scores[half.test] = scores[half.test]
    return test_scores


def _aligned_scores(scores: Scores, pairs: Sequence[Pair], wanted_pairs: Sequence[Pair]) -> Scores:
    """[column, pair] of `pairs` → of `wanted_pairs`, NaN where one is not among `pairs`."""
    place_by_id = {pair.id: place for place, pair in enumerate(pairs)}
    missing_column = np.full(len(scores), np.nan)
    with_missing = np.column_stack([scores, missing_column])
    return with_missing[:, [place_by_id.get(pair.id, -1) for pair in wanted_pairs]]


def _estimate(
    fits: Fits,
    method: MethodScores,
    metric: str,
    *,
    subtracted: MethodScores | None = None,
    inside: BoolArray | None = None,
) -> Estimate:
    """A metric of a method, or of its paired difference from another, on all pairs or those
    `inside`.
    """
    scores = method.scores if inside is None else np.where(inside, method.scores, np.nan)
    return estimate(
        scores,
        fits.harvest.labels == 1,
        fits.harvest.groups,
        metric,
        resamples=fits.settings.resamples,
        learnt=method.learnt,
        subtracted_scores=None if subtracted is None else subtracted.scores,
    )


def methods_table(fits: Fits, *, logged: Logged | None = None) -> pd.DataFrame:
    """method, metric, value, low, high, n, unit, reason, note, no_measurement: probes, baselines,
    controls.
    """
    rows: list[dict[str, Any]] = []
    for name, method in all_scores(fits, logged).items():
        notes = {"note": method.note, "no_measurement": method.no_measurement}
        for metric in METRICS:
            rows.append(_row(_estimate(fits, method, metric), method=name, metric=metric, **notes))
    return pd.DataFrame(rows)


def differences_table(fits: Fits, *, logged: Logged | None = None) -> pd.DataFrame:
    """probe, against, metric, value, low, high …: a probe less asking, a control or a logged
    method, on the same pairs.

    Random weights are compared kind with kind, random directions each with the probe of its half,
    the supervised probe with the unsupervised one too, and that with a regression on its labels.
    """
    methods = all_scores(fits, logged)
    rows: list[dict[str, Any]] = []
    for kind in FITTED_KINDS:
        further_controls = (SAME_LABELS,) if kind == "unsupervised" else ("unsupervised",)
        control_names = (
            *COMPARED_METHODS,
            *further_controls,
            f"random weights, {kind}",
            *(logged or {}),
        )
        for control_name in control_names:
            if control_name not in methods:
                continue
            control = methods[control_name]
            probe = _repeated_columns(methods[kind], len(control.scores))
            for metric in METRICS:
                difference = _estimate(fits, probe, metric, subtracted=control)
                rows.append(_row(difference, probe=kind, against=control_name, metric=metric))
    return pd.DataFrame(rows)


COMPARED_METHODS = (
    "prompting",
    "prompting, one order, calibrated",
    "no model (length)",
    "no model (TF-IDF)",
    SENTENCE_EMBEDDINGS,
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
    truth, groups = fits.harvest.labels == 1, fits.harvest.groups
    resamples = max(100, fits.settings.resamples // 5)
    rows: list[dict[str, Any]] = []
    for kind in FITTED_KINDS:
        chosen_layers = fits.layers_chosen_in_training(kind)
        labels_seen = fits.labels_seen(kind)
        for layer, block in enumerate(fits.harvest.layers):
            layer_scores = fits.scores[kind][:, layer]
            chosen_share = chosen_layers.count(layer) / len(chosen_layers)
            for metric in ("f1", "auroc"):
                value = estimate(
                    layer_scores, truth, groups, metric, resamples=resamples, learnt=labels_seen
                )
                rows.append(
                    _row(value, layer=block, probe=kind, metric=metric, chosen_by=chosen_share)
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
    if not any(aspects):
        return pd.DataFrame()
    return _by_part(fits, "aspect", aspects, mean_name=MEAN_OF_ASPECTS)


def _by_part(
    fits: Fits, column: str, part_of_pair: Sequence[str], *, mean_name: str = ""
) -> pd.DataFrame:
    """Numbers of each part's test pairs; `mean_name`: name of a last row with their unweighted
    mean.
    """
    wanted_methods = (
        "supervised",
        "unsupervised",
        "prompting",
        "no model (TF-IDF)",
        SENTENCE_EMBEDDINGS,
        "no model (length)",
        *(f"random weights, {kind}" for kind in FITTED_KINDS),
    )
    methods = all_scores(fits)
    parts = np.array(part_of_pair)
    pairs_by_part = {part: parts == part for part in sorted(set(part_of_pair))}
    rows: list[dict[str, Any]] = []

    def add_rows(part: str, inside: BoolArray | None) -> None:
        for name in wanted_methods:
            if name not in methods:
                continue
            method = methods[name]
            if inside is None:
                method = _repeat_columns_per_part(method, list(pairs_by_part.values()))
            for metric in ("f1", "accuracy", "auroc"):
                value = _estimate(fits, method, metric, inside=inside)
                rows.append(_row(value, **{column: part}, method=name, metric=metric))

    for part, inside in pairs_by_part.items():
        add_rows(part, inside)
    if mean_name:
        add_rows(mean_name, None)
    return pd.DataFrame(rows)


def _repeat_columns_per_part(method: MethodScores, pair_masks: Sequence[BoolArray]) -> MethodScores:
    """The columns of a method once per part, on its pairs alone: their mean is that over parts."""
    scores = np.concatenate(
        [np.where(is_in_part, method.scores, np.nan) for is_in_part in pair_masks]
    )
    learnt = method.learnt
    if learnt is not None:
        learnt = np.tile(learnt, (len(pair_masks), 1))
    return MethodScores(scores, method.note, learnt)


def _floors_table(fits: Fits) -> pd.DataFrame:
    """probe, metric, over, mean, high, n: the best of all layers (and both signs) with shuffled
    labels.

    reached, p_value: number of the probe at its chosen layers, and the share of shuffles that reach
    it.
    """
    rows: list[dict[str, Any]] = []
    for kind in FITTED_KINDS:
        at_chosen_layers = MethodScores(fits.scores_at_chosen_layers(kind), "")
        for metric in ("f1", "auroc"):
            reached = _estimate(fits, at_chosen_layers, metric).value
            for both_signs in (False, True):
                floor = selection_floor(
                    fits.scores[kind],
                    fits.harvest.labels == 1,
                    fits.harvest.groups,
                    both_signs=both_signs,
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
    rows: list[dict[str, Any]] = []
    for name, pair_set in sets.items():
        harvested = fits[name].harvest
        agreed_questions = [question for question, _ in pair_set.agreements]
        agreements = [is_agreed for _, is_agreed in pair_set.agreements]
        agreement = clustered_mean(agreements, agreed_questions, unit="question")
        mass = answer_mass(harvested)
        reasons = sorted({reason.split(":")[0] for reason in harvested.unscored.values()})
        rows.append(
            {
                "dataset": name,
                "origin": pair_set.origin,
                "pairs": len(pair_set.pairs),
                "ties": pair_set.ties,
                "left_out": pair_set.left_out,
                "scored": len(harvested.pairs),
                "unscored": len(harvested.unscored),
                "reasons": "; ".join(reasons),
                "humans_agree": agreement.value,
                "humans_low": agreement.low,
                "humans_high": agreement.high,
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
    truth = fits.harvest.labels == 1
    rows: list[dict[str, Any]] = []
    for kind in FITTED_KINDS:
        for metric in ("f1", "auroc"):
            best_values: list[float] = []
            for layer_scores in fits.scores[kind]:
                is_test = ~np.isnan(layer_scores).all(axis=0)
                measure, test_truth = METRICS[metric], truth[is_test]
                candidates: list[float] = []
                for scores in layer_scores[:, is_test]:
                    candidates += [measure(test_truth, scores), measure(test_truth, -scores)]
                best_values.append(max(candidates))
            rows.append({"probe": kind, "metric": metric, "value": float(np.mean(best_values))})
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
    harvested, half = fits.harvest, fits.halves[0]
    layer = fits.layers_chosen_in_training("unsupervised")[0]
    probe = fits.probes["unsupervised"][0][layer]
    pair_numbers = [
        number for number, pair in enumerate(harvested.pairs) if half.aspect in ("", pair.aspect)
    ]
    pairs = [harvested.pairs[number] for number in pair_numbers]
    is_train = np.isin(pair_numbers, half.train)

    states = harvested.layer(probe.layer)[pair_numbers]
    x = features(states, probe.mean_plus, probe.mean_minus, orders=probe.orders)
    first_component = x @ probe.direction
    remainder = x - first_component[:, None] * probe.direction
    second_direction = principal(remainder[is_train], symmetric=probe.orders == "both")
    second_component = x @ second_direction
    total_variance = float(x.var(axis=0).sum()) or 1.0
    pair_fields = [(pair.id, pair.aspect, pair.group) for pair in pairs]
    component_table = pd.DataFrame(pair_fields, columns=["pair", "aspect", "group"])
    return component_table.assign(
        preferred=harvested.labels[pair_numbers],
        half=np.where(is_train, "train", "test"),
        layer=probe.layer,
        first=first_component,
        second=second_component,
        share_first=float(first_component.var()) / total_variance,
        share_second=float(second_component.var()) / total_variance,
    )
