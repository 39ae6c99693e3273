"""Transfer of probes: do they carry over, and do they point the same way? (latent-preference
probes, §5.3: table 1, figure 5)

Probes are tried on other data sets, and under another prompt: the paper's limitations say that a
system turn such as "You are a smart professor" can change what a probe reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from selfprobe.probes.evaluate import Fits, estimate, fitted_apart, own_answers, split_pairs
from selfprobe.probes.fit import (
    FITTED_KINDS,
    BoolArray,
    Centre,
    FitSettings,
    FloatArray,
    Kind,
    Scores,
    are_held_out,
    groups_and_questions,
)
from selfprobe.probes.folder import probe_name, read_run, write_tables
from selfprobe.probes.harvesting import Harvest, open_harvest
from selfprobe.probes.probe_file import load_probe
from selfprobe.stats.estimate import Estimate

BOTH = "supervised and unsupervised"
"""Probe name of the rows of `cosine_table` that compare the two kinds."""


CENTRES: tuple[Centre, Centre] = ("source", "tested")


def transfer_table(fits: Mapping[str, Fits]) -> pd.DataFrame:
    """trained_on, tested_on, probe, metric, centre, value, low, high, n, unit, reason; the value and
    its ends under either centre: source_value …, tested_value ….

    The probes are those of one data set's training halves, at the layer chosen there, on every
    other whole set (on the test half of their own). Pairs whose question is in the training half
    are always left out. Where aspects are fitted apart, a number is the mean over the aspects that
    are learnt from, and over those that are tested. `centre` is the one of the settings, whose
    numbers are `value`, `low` and `high`.
    """
    _check_comparable(fits)
    rows: list[dict[str, Any]] = []
    for source, source_fits in fits.items():
        for target, target_fits in fits.items():
            for kind in FITTED_KINDS:
                scores_by_centre = _scores_by_centre(source_fits, target_fits, kind)
                for metric in ("f1", "auroc"):
                    row: dict[str, Any] = {
                        "trained_on": source,
                        "tested_on": target,
                        "probe": kind,
                        "metric": metric,
                    }
                    values = _values_by_centre(
                        source_fits, target_fits, kind, scores_by_centre, metric
                    )
                    rows.append(row | values)
    return pd.DataFrame(rows)


def _values_by_centre(
    source_fits: Fits,
    target_fits: Fits,
    kind: Kind,
    scores_by_centre: Mapping[Centre, Scores],
    metric: str,
) -> dict[str, Any]:
    """The columns of the settings' centre, and of either centre under its name."""
    target = target_fits.harvest
    labels_seen = source_fits.labels_seen(kind) if source_fits is target_fits else None
    estimates: dict[Centre, Estimate] = {}
    for centre, scores in scores_by_centre.items():
        estimates[centre] = estimate(
            scores,
            target.labels == 1,
            target.groups,
            metric,
            resamples=source_fits.settings.resamples,
            learnt=labels_seen,
        )
    source_estimate = estimates["source"]

    settings_centre = source_fits.settings.centre
    settings_estimate = estimates.get(settings_centre, source_estimate)
    columns: dict[str, Any] = {"centre": settings_centre} | asdict(settings_estimate)
    for centre in CENTRES:
        centre_estimate = estimates.get(centre, source_estimate)
        for name in ("value", "low", "high"):
            columns[f"{centre}_{name}"] = getattr(centre_estimate, name)
    return columns


def _scores_by_centre(source_fits: Fits, target_fits: Fits, kind: Kind) -> dict[Centre, Scores]:
    """Scores of one set's probes on a set; of the centre "source" alone where both orders are read,
    as the means then drop out.
    """
    if source_fits is target_fits:
        scores = source_fits.scores_at_chosen_layers(kind)
    else:
        scores = _scores_on_set(source_fits, target_fits, kind, "source")
    scores_by_centre: dict[Centre, Scores] = {"source": scores}
    if source_fits.settings.orders == "first":
        scores_by_centre["tested"] = _scores_on_set(source_fits, target_fits, kind, "tested")
    return scores_by_centre


def shared_sets(
    out: Path, run: Mapping[str, Any], other: Path, other_run: Mapping[str, Any]
) -> list[str]:
    """Data sets of two runs that differ in their system turn alone.

    Args:
        out: Folder of a run.
        run: Its description, as in its run.json; of it are read `revision`, `settings` and
            `datasets`.
        other: Folder of the other run, which may be still to be made.
        other_run: Its description.

    Raises:
        ValueError: They are of other models, settings or pairs, or share no data set.
    """
    for field_name in ("revision", "settings"):
        if run[field_name] != other_run[field_name]:
            raise ValueError(
                f"{out} and {other} have another {field_name}: "
                "run one again as the other, but for --system"
            )
    sets, other_sets = run["datasets"], other_run["datasets"]
    shared_names = [name for name in sets if name in other_sets]
    if not shared_names:
        raise ValueError(f"{out} and {other} share no data set")
    for name in shared_names:
        if sets[name]["hash"] != other_sets[name]["hash"]:
            raise ValueError(
                f"{out} and {other} hold other pairs of {name}: run one again as the other"
            )
    return shared_names


def prompted_run(out: Path, other: Path) -> pd.DataFrame:
    """Table "prompted" of the run in `other`: the probes of `out` on its states, read under another
    system turn.

    dataset, method, what, metric, value, low, high …; `what` is one of

    plain             under the prompt of `out`, on the test half of its first split
    moved             the same probe (or asking) under the prompt of `other`
    refitted          the probe that the run in `other` fitted, on the same pairs
    moved less plain, refitted less plain      paired differences

    Raises:
        ValueError: The two are not of one model, preset and data, or scored different pairs.
    """
    run, other_run = read_run(out), read_run(other)
    settings = FitSettings(**run["settings"])
    rows: list[dict[str, Any]] = []
    for name in shared_sets(out, run, other, other_run):
        harvest = open_harvest(out / run["datasets"][name]["activations"])
        other_harvest = open_harvest(other / other_run["datasets"][name]["activations"])
        if [pair.id for pair in harvest.pairs] != [pair.id for pair in other_harvest.pairs]:
            raise ValueError(
                f"{name}: {out} scored {len(harvest.pairs)} pairs and {other} "
                f"{len(other_harvest.pairs)}, not the same ones: run both with one --longest"
            )
        scores_by_method = _scores_under_both_prompts(
            out, other, name, (harvest, other_harvest), settings
        )
        for method, scores_by_prompt in scores_by_method.items():
            for metric in ("f1", "auroc"):
                values = _prompt_estimates(scores_by_prompt, harvest, metric, settings.resamples)
                for value_name, value in values.items():
                    row = {"dataset": name, "method": method, "metric": metric}
                    rows.append(row | {"what": value_name} | asdict(value))
    return write_tables(other, {"prompted": pd.DataFrame(rows)})["prompted"]


def _prompt_estimates(
    scores_by_prompt: Mapping[str, Scores], harvest: Harvest, metric: str, resamples: int
) -> dict[str, Estimate]:
    """Number of each score, and the paired differences of the others from the plain one."""
    truth, groups = harvest.labels == 1, harvest.groups
    plain_scores = scores_by_prompt["plain"]
    values: dict[str, Estimate] = {}
    for prompt_name, scores in scores_by_prompt.items():
        values[prompt_name] = estimate(scores, truth, groups, metric, resamples=resamples)
    for prompt_name, scores in scores_by_prompt.items():
        if prompt_name != "plain":
            values[f"{prompt_name} less plain"] = estimate(
                scores,
                truth,
                groups,
                metric,
                subtracted_scores=plain_scores,
                resamples=resamples,
            )
    return values


def _scores_under_both_prompts(
    out: Path,
    other: Path,
    name: str,
    harvests: tuple[Harvest, Harvest],
    settings: FitSettings,
) -> dict[str, dict[str, Scores]]:
    """Method → its scores [aspect, pair] plain, moved and refitted; NaN outside the test half of
    the first split.
    """
    harvest, other_harvest = harvests
    halves = split_pairs(harvest.pairs, settings)[:: settings.seeds]

    def test_scores(aspect_scores: Sequence[Scores]) -> Scores:
        scores = np.full((len(halves), len(harvest.pairs)), np.nan)
        for row, half, all_scores in zip(scores, halves, aspect_scores, strict=True):
            row[half.test] = all_scores[half.test]
        return scores

    scores_by_method: dict[str, dict[str, Scores]] = {}
    for kind in FITTED_KINDS:
        plain, moved, refitted = [], [], []
        for half in halves:
            file_name = f"{probe_name(name, half.aspect)}-{kind}.safetensors"
            probe = load_probe(out / file_name).probe
            other_probe = load_probe(other / file_name).probe
            plain.append(probe.score(harvest.layer(probe.layer)))
            moved.append(probe.score(other_harvest.layer(probe.layer)))
            refitted.append(other_probe.score(other_harvest.layer(other_probe.layer)))
        scores_by_method[kind] = {
            "plain": test_scores(plain),
            "moved": test_scores(moved),
            "refitted": test_scores(refitted),
        }
    margins = own_answers(harvest).mean(axis=1) - 0.5
    other_margins = own_answers(other_harvest).mean(axis=1) - 0.5
    scores_by_method["prompting"] = {
        "plain": test_scores([margins] * len(halves)),
        "moved": test_scores([other_margins] * len(halves)),
    }
    return scores_by_method


def _scores_on_set(source_fits: Fits, target_fits: Fits, kind: Kind, centre: Centre) -> Scores:
    """Scores [half, pair] of one set's probes on a set; [aspect and half, pair] where the aspects
    of another set are apart.
    """
    target = target_fits.harvest
    is_own_set = source_fits is target_fits
    pair_masks = [np.ones(len(target.pairs), dtype=bool)]
    if not is_own_set:
        pair_masks = _masks_of_aspects(target_fits) or pair_masks
    states_by_layer: dict[int, FloatArray] = {}
    rows: list[Scores] = []
    for pair_mask in pair_masks:
        for half_number, layer in enumerate(source_fits.layers_chosen_in_training(kind)):
            if layer not in states_by_layer:
                states_by_layer[layer] = target.layer(target.layers[layer])
            half = source_fits.halves[half_number]
            if is_own_set:
                is_tested = np.isin(np.arange(len(target.pairs)), half.test)
            else:
                train_pairs = [source_fits.harvest.pairs[number] for number in half.train]
                train_questions = groups_and_questions(train_pairs)
                is_tested = pair_mask & np.array(are_held_out(train_questions, target.pairs))
            scores = np.full(len(target.pairs), np.nan)
            if is_tested.any():
                tested_states = states_by_layer[layer][is_tested]
                probe = source_fits.probes[kind][half_number][layer]
                if centre == "tested":
                    probe = probe.centred_on(tested_states)
                scores[is_tested] = probe.score(tested_states)
            rows.append(scores)
    return np.stack(rows)


def _masks_of_aspects(fits: Fits) -> list[BoolArray]:
    """Which pairs [pair] are of each aspect; none where one probe learns from all."""
    aspect_of_pair = np.array([pair.aspect for pair in fits.harvest.pairs])
    aspects = fitted_apart(fits.harvest.pairs, fits.settings)
    return [aspect_of_pair == aspect for aspect in aspects]


def cosine_table(fits: Mapping[str, Fits], *, layer: int | None = None) -> pd.DataFrame:
    """a, b, probe, layer, cosine, absolute: numbers of the directions at one layer (the last one,
    as in the paper).

    Numbers are means over seeds; `absolute` is the mean of |cos|, as a component's sign is
    arbitrary. On the diagonal the directions of different halves of one set are compared: the
    agreement of two fits of the same thing (or of different aspects, where each has its own; they
    count elsewhere too). The rows of the probe `BOTH` compare the supervised direction of a with
    the unsupervised one of b; on the diagonal, both of one half.
    """
    _check_comparable(fits)
    harvest = next(iter(fits.values())).harvest
    layer_place = harvest.identity.layers - 1 if layer is None else layer
    directions: dict[Kind, dict[str, FloatArray]] = {}  # [half, d_model] of each kind and set
    for kind in FITTED_KINDS:
        directions[kind] = {}
        for name, set_fits in fits.items():
            probes = [half_probes[layer_place] for half_probes in set_fits.probes[kind]]
            directions[kind][name] = np.stack([_unit(probe.direction) for probe in probes])

    compared_kinds: dict[str, tuple[Kind, Kind]] = {kind: (kind, kind) for kind in FITTED_KINDS}
    compared_kinds[BOTH] = FITTED_KINDS
    rows: list[dict[str, Any]] = []
    for probe_title, (kind_a, kind_b) in compared_kinds.items():
        for name_a, directions_a in directions[kind_a].items():
            for name_b, directions_b in directions[kind_b].items():
                cosines = directions_a @ directions_b.T
                if name_a == name_b:
                    is_one_half = np.eye(len(cosines), dtype=bool)
                    cosines = cosines[is_one_half if kind_a != kind_b else ~is_one_half]
                if not cosines.size:
                    cosines = np.array([np.nan])
                rows.append(
                    {
                        "a": name_a,
                        "b": name_b,
                        "probe": probe_title,
                        "layer": harvest.layers[layer_place],
                        "cosine": float(cosines.mean()),
                        "absolute": float(np.abs(cosines).mean()),
                    }
                )
    return pd.DataFrame(rows)


def _unit(direction: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(direction))
    return direction / length if length else direction


def _check_comparable(fits: Mapping[str, Fits]) -> None:
    """ValueError unless all runs are of one model: directions of two models cannot be compared."""
    identities = [set_fits.harvest.identity for set_fits in fits.values()]
    model_by_revision = {identity.revision: identity.model for identity in identities}
    if len(model_by_revision) > 1:
        models = ", ".join(sorted(model_by_revision.values()))
        raise ValueError(f"expected states of one model, got those of {models}")
    all_settings = [set_fits.settings for set_fits in fits.values()]
    if len(set(all_settings)) > 1:
        presets = ", ".join(settings.name for settings in all_settings)
        raise ValueError(f"expected one preset, got {presets}")
