"""Patching all dilemmas: what is kept is not computed again; the table of shares."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch

from selfprobe.mechanism.folder import keep, kept, key
from selfprobe.mechanism.numbers import SHOWABLE, UNIT, FloatArray, arm
from selfprobe.mechanism.patching import MEAN, ROWS, Patching, apart, patching
from selfprobe.mechanism.prompts import Item
from selfprobe.mechanism.reading import NoPatterns, Reading, checked
from selfprobe.mechanism.run import Study
from selfprobe.probes.decoder import decoder_blocks
from selfprobe.probes.forward import Spread, here
from selfprobe.probes.harvesting import Meter
from selfprobe.stats.estimate import Estimate, bootstrap, clustered_mean, undefined
from selfprobe.weights import Progress, to_stderr

FORWARD = 30
"""Tokens of a long prompt that take as long as one token of `ROWS` variants; rough, for the plan alone."""


def chosen(given: Study, blocks: tuple[int, ...], *, into: str, whole_tail: bool) -> Patching:
    """The patching of `blocks`; ValueError where the model has no such block."""
    layers = len(decoder_blocks(given.judge.model))
    if wrong := [block for block in blocks if block >= layers]:
        raise ValueError(f"{given.judge.name} has blocks 0..{layers - 1}, got --layers {', '.join(map(str, wrong))}")
    heads = int(given.judge.model.config.get_text_config().num_attention_heads)
    return patching(given.items, blocks, into=into, layers=layers, heads=heads, whole_tail=whole_tail)


def todo(given: Study, wanted: Patching) -> list[Item]:
    """Items that are still to be patched."""
    return [item for item in given.items if kept(given.out / "patches", _key(given, item, wanted)) is None]


def cost(given: Study, wanted: Patching) -> int:
    """Tokens still to be read, those of the variants as long prompts would have them."""
    again = len(wanted.variants) // ROWS * FORWARD * wanted.queries
    return sum(item.tokens + again + item.shared for item in todo(given, wanted))


def effects(
    given: Study, wanted: Patching, *, spread: Spread = here, progress: Progress = to_stderr
) -> dict[str, FloatArray]:
    """Variant → logit difference [dilemma], in the order of the study's items; the mean variant comes last.

    `spread`: who patches, this process or copies of the model on a cluster.

    Raises:
        NoPatterns: Patterns cannot be read, or the model cannot go on from a cache.
    """
    variants = [variant for variant in wanted.variants if variant.donor != MEAN]
    missing = todo(given, wanted)
    folder, judge = given.out / "patches", given.judge
    if missing:
        progress(f"{len(missing)} of {len(given.items)} dilemmas to patch, {len(variants)} patterns each")
        with checked(judge, max(missing, key=lambda item: item.longest)) as sharing:
            if not sharing:
                raise NoPatterns(f"{judge.name} cannot go on from a cache of its own, which patching needs")
            meter = Meter(sum(item.tokens for item in missing), len(missing), progress, "dilemmas")
            prompt = missing[0].prompts[wanted.into]
            for item, (patched, places) in spread(judge, prompt, missing, lambda one: (apart, one, wanted, variants)):
                keep(folder, _key(given, item, wanted), {"values": patched, "profile": places})
                meter.add(item.tokens, 1)
            meter.finish()
    found = [kept(folder, _key(given, item, wanted)) for item in given.items]
    values: FloatArray = np.stack([one["values"] for one in found if one is not None]).astype(np.float64)
    profiles = np.stack([one["profile"] for one in found if one is not None])
    by_name = {variant.name: np.asarray(values[:, at], dtype=np.float64) for at, variant in enumerate(variants)}
    return by_name | _mean_effects(given, wanted, profiles, spread, progress)


def _mean_effects(
    given: Study,
    wanted: Patching,
    profiles: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]",
    spread: Spread,
    progress: Progress,
) -> dict[str, FloatArray]:
    """Under the mean pattern of all other dilemmas, which is known only once all are read."""
    variants = [variant for variant in wanted.variants if variant.donor == MEAN]
    total, folder = profiles.sum(axis=0), given.out / "patches"
    everyone = "".join(sorted(key(given.judge, item) for item in given.items))
    names = {item.id: _key(given, item, wanted, everyone) for item in given.items}
    own = {item.id: profile for item, profile in zip(given.items, profiles, strict=True)}

    def work(item: Item) -> tuple[Any, ...]:
        return apart, item, wanted, variants, torch.from_numpy((total - own[item.id]) / (len(profiles) - 1))

    progress(f"{len(given.items)} dilemmas under the mean pattern of the others")
    if missing := [item for item in given.items if kept(folder, names[item.id]) is None]:
        meter = Meter(sum(item.tokens for item in missing), len(missing), progress, "dilemmas")
        for item, (found, _) in spread(given.judge, missing[0].prompts[wanted.into], missing, work):
            keep(folder, names[item.id], {"values": found})
            meter.add(item.tokens, 1)
    read = [held for item in given.items if (held := kept(folder, names[item.id])) is not None]
    values: FloatArray = np.stack([held["values"] for held in read]).astype(np.float64)
    return {variant.name: values[:, at] for at, variant in enumerate(variants)}


def _key(given: Study, item: Item, wanted: Patching, *more: str) -> str:
    told = [f"{v.name} {v.donor} {sorted(v.heads.items())}" for v in wanted.variants]
    return key(given.judge, item, wanted.into, f"{wanted.queries} {wanted.tail}", *told, *more)


def patch_table(
    wanted: Patching, found: Mapping[str, FloatArray], readings: Mapping[str, Reading], names: list[str]
) -> pd.DataFrame:
    """variant, group, value, low, high, n: change of the logit difference; share, share_low, share_high, reason.

    The row `shift` is the change from the recipient's run to the donor's. A share is a mean change over the mean shift,
    as the paper's 23.9 %; it is undefined where the shift is not shown to differ from 0.
    """
    before = found["unpatched"]
    shift = np.array([readings[name].spoken[arm(wanted.donor)] for name in names], dtype=float) - before
    whole = clustered_mean(shift, names, unit=UNIT, interval="t")
    rows = [{"variant": "shift", "group": "shift"} | _columns(whole, undefined(""))]
    for variant in wanted.variants[1:]:
        change = found[variant.name] - before
        share = _share(change, shift, whole, names)
        row = _columns(clustered_mean(change, names, unit=UNIT, interval="t"), share)
        rows.append({"variant": variant.name, "group": variant.group} | row)
    return pd.DataFrame(rows)


def _share(change: FloatArray, shift: FloatArray, whole: Estimate, names: list[str]) -> Estimate:
    if not whole.low * whole.high > 0:
        return undefined("the shift is not shown to differ from 0", n=whole.n, unit=UNIT)
    if whole.n < SHOWABLE:  # drawn again, so few have an interval that holds the truth in half of all cases
        why = f"no interval of a share from {whole.n} dilemmas, {SHOWABLE} or more are needed"
        return undefined(why, n=whole.n, unit=UNIT, value=float(change.mean() / shift.mean()))
    rng = np.random.default_rng(0)
    return bootstrap(lambda c, s: c / s, change, shift, clusters=names, rng=rng, unit=UNIT, of_means=True)


def _columns(change: Estimate, share: Estimate) -> dict[str, object]:
    ends = {name: value for name, value in asdict(change).items() if name in ("value", "low", "high", "n")}
    shares = {"share": share.value, "share_low": share.low, "share_high": share.high}
    return ends | shares | {"reason": share.reason or ("" if math.isnan(change.value) else change.reason)}
