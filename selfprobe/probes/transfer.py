"""Transfer of probes: do they carry over, and do they point the same way? (paper 004, §5.3: table
1, figure 5)

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
from selfprobe.probes.fit import KINDS, FitSettings, FloatArray, Kind, Scores, held_out, questions
from selfprobe.probes.folder import probe_name, read_run, write_tables
from selfprobe.probes.harvesting import Harvest, open_harvest
from selfprobe.probes.probe_file import load_probe

BOTH = "supervised and unsupervised"
"""Probe name of the rows of `cosine_table` that compare the two kinds."""


def transfer_table(fits: Mapping[str, Fits]) -> pd.DataFrame:
    """trained_on, tested_on, probe, metric, value, low, high …

    The probes are those of one data set's training halves, at the layer chosen there, on every
    other whole set (on the test half of their own). Pairs whose question is in the training half
    are always left out. Where aspects are fitted apart, a number is the mean over the aspects that
    are learnt from, and over those that are tested.
    """
    _one_model(fits)
    rows = []
    for source, learnt in fits.items():
        for target, tested in fits.items():
            for kind in KINDS:
                own = source == target
                scores = (
                    learnt.scores_at_chosen_layers(kind) if own else _applied(learnt, tested, kind)
                )
                seen = learnt.labels_seen(kind) if own else None
                truth, groups = tested.harvest.labels == 1, tested.harvest.groups
                for metric in ("f1", "auroc"):
                    found = estimate(
                        scores,
                        truth,
                        groups,
                        metric,
                        resamples=learnt.settings.resamples,
                        learnt=seen,
                    )
                    names: dict[str, Any] = {
                        "trained_on": source,
                        "tested_on": target,
                        "probe": kind,
                        "metric": metric,
                    }
                    rows.append(names | asdict(found))
    return pd.DataFrame(rows)


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
    for what in ("revision", "settings"):
        if run[what] != other_run[what]:
            raise ValueError(
                f"{out} and {other} have another {what}: run one again as the other, but for --system"
            )
    shared = [name for name in run["datasets"] if name in other_run["datasets"]]
    if not shared:
        raise ValueError(f"{out} and {other} share no data set")
    for name in shared:
        if run["datasets"][name]["hash"] != other_run["datasets"][name]["hash"]:
            raise ValueError(
                f"{out} and {other} hold other pairs of {name}: run one again as the other"
            )
    return shared


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
    one, two = read_run(out), read_run(other)
    shared = shared_sets(out, one, other, two)
    settings = FitSettings(**one["settings"])
    rows: list[dict[str, Any]] = []
    for name in shared:
        first, second = (
            open_harvest(at / run["datasets"][name]["activations"])
            for at, run in ((out, one), (other, two))
        )
        if [pair.id for pair in first.pairs] != [pair.id for pair in second.pairs]:
            raise ValueError(
                f"{name}: {out} scored {len(first.pairs)} pairs and {other} {len(second.pairs)}, not the same ones: "
                "run both with one --longest"
            )
        truth, groups = first.labels == 1, first.groups
        for method, (plain, moved, refitted) in _under_both(
            out, other, name, (first, second), settings
        ).items():
            less = {"moved": moved} | ({"refitted": refitted} if refitted is not None else {})
            for metric in ("f1", "auroc"):
                how: dict[str, Any] = {"resamples": settings.resamples}
                found = {
                    what: estimate(each, truth, groups, metric, **how)
                    for what, each in {"plain": plain, **less}.items()
                }
                found |= {
                    f"{what} less plain": estimate(each, truth, groups, metric, less=plain, **how)
                    for what, each in less.items()
                }
                named = {"dataset": name, "method": method, "metric": metric}
                rows += [named | {"what": what} | asdict(value) for what, value in found.items()]
    return write_tables(other, {"prompted": pd.DataFrame(rows)})["prompted"]


def _under_both(
    out: Path, other: Path, name: str, read: tuple[Harvest, Harvest], settings: FitSettings
) -> dict[str, tuple[Scores, Scores, Scores | None]]:
    """Method → its scores [aspect, pair] plain, moved and refitted; NaN outside the test half of
    the first split.
    """
    halves = split_pairs(read[0].pairs, settings)[:: settings.seeds]
    found: dict[str, tuple[Scores, Scores, Scores | None]] = {}

    def tested(values: Sequence[Scores]) -> Scores:
        every = np.full((len(halves), len(read[0].pairs)), np.nan)
        for row, (half, scores) in enumerate(zip(halves, values, strict=True)):
            every[row, half.test] = scores[half.test]
        return every

    for kind in KINDS:
        of = [f"{probe_name(name, half.aspect)}-{kind}.safetensors" for half in halves]
        own, theirs = ([load_probe(at / file).probe for file in of] for at in (out, other))
        found[kind] = (
            tested([probe.score(read[0].layer(probe.layer)) for probe in own]),
            tested([probe.score(read[1].layer(probe.layer)) for probe in own]),
            tested([probe.score(read[1].layer(probe.layer)) for probe in theirs]),
        )
    asked = [own_answers(each).mean(axis=1) - 0.5 for each in read]
    found["prompting"] = (tested([asked[0]] * len(halves)), tested([asked[1]] * len(halves)), None)
    return found


def _applied(learnt: Fits, tested: Fits, kind: Kind) -> Scores:
    """Scores [seed, pair] of one set's probes on another set; [aspect and seed, pair] where its
    aspects are apart.
    """
    states: dict[int, FloatArray] = {}
    scores = np.full((len(learnt.halves), len(tested.harvest.pairs)), np.nan)
    for seed, layer in enumerate(learnt.layers_chosen_in_training(kind)):
        if layer not in states:
            states[layer] = tested.harvest.layer(tested.harvest.layers[layer])
        seen = questions(learnt.harvest.pairs[i] for i in learnt.halves[seed].train)
        unseen = np.array(held_out(seen, tested.harvest.pairs))
        scores[seed, unseen] = learnt.probes[kind][seed][layer].score(states[layer])[unseen]
    aspects = np.array([pair.aspect for pair in tested.harvest.pairs])
    apart = fitted_apart(tested.harvest.pairs, tested.settings)
    return (
        np.concatenate([np.where(aspects == one, scores, np.nan) for one in apart])
        if apart
        else scores
    )


def cosine_table(fits: Mapping[str, Fits], *, layer: int | None = None) -> pd.DataFrame:
    """a, b, probe, layer, cosine, absolute: numbers of the directions at one layer (the last one,
    as in the paper).

    Numbers are means over seeds; `absolute` is the mean of |cos|, as a component's sign is
    arbitrary. On the diagonal the directions of different halves of one set are compared: the
    agreement of two fits of the same thing (or of different aspects, where each has its own; they
    count elsewhere too). The rows of the probe `BOTH` compare the supervised direction of a with
    the unsupervised one of b; on the diagonal, both of one half.
    """
    _one_model(fits)
    some = next(iter(fits.values()))
    at = some.harvest.identity.layers - 1 if layer is None else layer
    rows = []
    units = {
        kind: {
            name: np.stack([_unit(p[at].direction) for p in f.probes[kind]])
            for name, f in fits.items()
        }
        for kind in KINDS
    }
    compared: dict[str, tuple[Kind, Kind]] = {**{kind: (kind, kind) for kind in KINDS}, BOTH: KINDS}
    for kind, (one, other) in compared.items():
        for a, first in units[one].items():
            for b, second in units[other].items():
                values = first @ second.T
                if a == b:
                    same = np.eye(len(values), dtype=bool)
                    values = values[same if one != other else ~same]
                found = values if values.size else np.array([np.nan])
                rows.append(
                    {"a": a, "b": b, "probe": kind, "layer": some.harvest.layers[at]}
                    | {"cosine": float(found.mean()), "absolute": float(np.abs(found).mean())}
                )
    return pd.DataFrame(rows)


def _unit(direction: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(direction))
    return direction / length if length else direction


def _one_model(fits: Mapping[str, Fits]) -> None:
    """ValueError unless all runs are of one model: directions of two models cannot be compared."""
    models = {f.harvest.identity.revision: f.harvest.identity.model for f in fits.values()}
    if len(models) > 1:
        raise ValueError(
            f"expected states of one model, got those of {', '.join(sorted(models.values()))}"
        )
    orders = {name: f.settings for name, f in fits.items()}
    if len(set(orders.values())) > 1:
        raise ValueError(f"expected one preset, got {', '.join(s.name for s in orders.values())}")
