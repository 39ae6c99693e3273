import json
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from selfprobe.probes.fit import Probe
from selfprobe.probes.probe_file import Card, ProbeFile, judge_pairs, load_probe, save_probe

from .conftest import some_pairs, tiny_judge

PROBE = Probe(
    "supervised",
    2,
    "both",
    np.array([1.0, -2.0]),
    0.25,
    np.array([0.5, 0.0]),
    np.array([0.0, 1.0]),
    "labels",
    10.0,
)
CARD = Card(
    "m", "r", "t", "float32", "llmbar", "h", "strict", 0, ("g1", "g2"), 2, {"f1": 0.5}, "0.1.0"
)


def test_a_probe_comes_back_as_it_was(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", PROBE, CARD)
    found = load_probe(tmp_path / "x.safetensors", revision="r", template="t")
    assert found.card == CARD
    assert (found.probe.kind, found.probe.layer, found.probe.orders, found.probe.c) == (
        "supervised",
        2,
        "both",
        10.0,
    )
    assert np.isnan(found.probe.train_score)
    states = np.random.default_rng(0).standard_normal((3, 2, 2, 2))
    np.testing.assert_allclose(found.probe.score(states), PROBE.score(states), rtol=1e-6)
    assert (tmp_path / "x.safetensors").stat().st_size < 2000


def test_a_card_tells_how_its_model_is_loaded_and_a_wide_stream_is_no_quantisation() -> None:
    told = {
        dtype: replace(CARD, dtype=dtype).precision
        for dtype in ("float32", "bfloat16+float32", "bfloat16+4bit")
    }
    assert told["float32"] == {"dtype": "float32", "quantize": None}
    assert told["bfloat16+float32"] == {"dtype": "bfloat16", "quantize": None}
    assert told["bfloat16+4bit"] == {"dtype": "bfloat16", "quantize": "4bit"}


def test_a_probe_of_another_model_or_template_is_refused(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", PROBE, CARD)
    with pytest.raises(
        ValueError, match=r"was fitted to m \(r\), not to this model \(other\).*Fit a probe"
    ):
        load_probe(tmp_path / "x.safetensors", revision="other")
    with pytest.raises(ValueError, match="another chat template of m: fit it again"):
        load_probe(tmp_path / "x.safetensors", template="other")


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(pickle.dumps(PROBE))
    with pytest.raises(ValueError, match="is no safetensors file .*never read from a pickle"):
        load_probe(tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match=r"written as .safetensors or .probe, got x.pkl"):
        save_probe(tmp_path / "x.pkl", PROBE, CARD)


def test_another_safetensors_file_is_no_probe(tmp_path: Path) -> None:
    save_file({"weight": np.ones(3)}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="is no probe file: expected format selfprobe-probe-1"):
        load_probe(tmp_path / "x.safetensors")


def test_an_unknown_kind_of_probe_is_named(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", replace(PROBE, kind="svm"), CARD)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="probe.kind: Input should be 'supervised', 'unsupervised' .*, got 'svm'"
    ):
        load_probe(tmp_path / "x.safetensors")


def test_a_calibrated_probe_keeps_its_scale(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", replace(PROBE, scale=2.5), CARD)
    assert load_probe(tmp_path / "x.safetensors").probe.scale == 2.5


GOOD = {
    "direction": np.array([1.0, -2.0], dtype=np.float32),
    "mean_plus": np.zeros(2, dtype=np.float32),
    "mean_minus": np.ones(2, dtype=np.float32),
}
PLAIN = {
    "kind": "supervised",
    "layer": 2,
    "orders": "both",
    "bias": 0.25,
    "orientation": "labels",
    "c": 10.0,
}
WHOLE = asdict(CARD)
Defect = tuple[dict[str, Any], dict[str, Any], dict[str, Any] | str | None, str]


def lacking(whole: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in whole.items() if key != name}


BAD: dict[str, Defect] = {
    "a direction with NaN": (GOOD | {"direction": np.array([np.nan, 1], np.float32)}, PLAIN, WHOLE, "direction is not finite"),
    "an infinite direction": (GOOD | {"direction": np.array([np.inf, 1], np.float32)}, PLAIN, WHOLE, "direction is not finite"),
    "a mean with NaN": (GOOD | {"mean_plus": np.array([np.nan, 1], np.float32)}, PLAIN, WHOLE, "mean_plus is not finite"),
    "an infinite mean": (GOOD | {"mean_minus": np.array([-np.inf, 1], np.float32)}, PLAIN, WHOLE, "mean_minus is not finite"),
    "a direction of 0": (GOOD | {"direction": np.zeros(2, np.float32)}, PLAIN, WHOLE, "direction is all 0"),
    "a matrix": (GOOD | {"direction": np.ones((2, 1), np.float32)}, PLAIN, WHOLE, r"three vectors .* direction float32 \[2, 1\]"),
    "a number": (GOOD | {"direction": np.array(3, np.float32)}, PLAIN, WHOLE, r"three vectors .* \[\]"),
    "vectors without entries": (dict.fromkeys(GOOD, np.zeros(0, np.float32)), PLAIN, WHOLE, r"three vectors .* \[0\]"),
    "a mean of another length": (GOOD | {"mean_plus": np.zeros(3, np.float32)}, PLAIN, WHOLE, r"one length.* mean_plus float32 \[3\]"),
    "whole numbers": (GOOD | {"direction": np.array([1, 2])}, PLAIN, WHOLE, "vectors of floats .* direction int64"),
    "an array that is missing": (lacking(GOOD, "mean_plus"), PLAIN, WHOLE, "got selfprobe-probe-1 with direction, mean_minus"),
    "an array too many": (GOOD | {"x": np.zeros(2, np.float32)}, PLAIN, WHOLE, "with direction, mean_minus, mean_plus, x"),
    "a negative layer": (GOOD, PLAIN | {"layer": -1}, WHOLE, "layer must be 0 or more and bias finite, got -1"),
    "a layer in words": (GOOD, PLAIN | {"layer": "2"}, WHOLE, "probe.layer: Input should be a valid integer, got '2'"),
    "half a layer": (GOOD, PLAIN | {"layer": 1.5}, WHOLE, "probe.layer: .* integer.*, got '1.5'"),
    "true for a layer": (GOOD, PLAIN | {"layer": True}, WHOLE, "probe.layer: .* integer, got 'True'"),
    "no layer": (GOOD, lacking(PLAIN, "layer"), WHOLE, "probe.layer: Field required"),
    "no kind": (GOOD, lacking(PLAIN, "kind"), WHOLE, "probe.kind: Field required"),
    "an order that is none": (GOOD, PLAIN | {"orders": "second"}, WHOLE, "probe.orders: .*, got 'second'"),
    "an orientation that is none": (GOOD, PLAIN | {"orientation": "best"}, WHOLE, "orientation must be few:K"),
    "a bias of NaN": (GOOD, PLAIN | {"bias": float("nan")}, WHOLE, "bias finite, got 2 and nan"),
    "a bias in words": (GOOD, PLAIN | {"bias": "0"}, WHOLE, "probe.bias: Input should be a valid number, got '0'"),
    "a negative c": (GOOD, PLAIN | {"c": -1.0}, WHOLE, "c and scale must be finite and above 0, got -1.0"),
    "a scale of 0": (GOOD, PLAIN | {"scale": 0.0}, WHOLE, "c and scale must be finite and above 0, got 10.0 and 0.0"),
    "a score above 1": (GOOD, PLAIN | {"train_score": 3.0}, WHOLE, "train_score must be in 0..1, got 3.0"),
    "a field that nobody knows": (GOOD, PLAIN | {"gain": 1.0}, WHOLE, "probe.gain: Unexpected"),
    "no card": (GOOD, PLAIN, None, "it has no card in its metadata"),
    "a card that is no JSON": (GOOD, PLAIN, "{", "card: Invalid JSON"),
    "a card that is a list": (GOOD, PLAIN, "[]", "card: Input should be an object|card: "),
    "a card without a model": (GOOD, PLAIN, lacking(WHOLE, "model"), "card.model: Field required"),
    "groups that are no list": (GOOD, PLAIN, WHOLE | {"train_groups": "g1"}, "card.train_groups: .*, got 'g1'"),
    "test scores in words": (GOOD, PLAIN, WHOLE | {"test_scores": {"f1": "good"}}, "card.test_scores.f1: .*, got 'good'"),
    "a precision that is none": (GOOD, PLAIN, WHOLE | {"dtype": "float99"}, "dtype must be float32, bfloat16 or float16, got 'float99'"),
}  # fmt: skip


def test_a_probe_of_arrays_has_no_model_to_be_loaded(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", PROBE, replace(CARD, model="", revision="", dtype=""))
    with pytest.raises(
        ValueError, match="the probe was fitted to arrays, not to a model's harvest"
    ):
        _ = load_probe(tmp_path / "x.safetensors").card.precision


def test_there_are_33_bad_files() -> None:
    assert len(BAD) == 33


def put(path: Path, arrays: dict[str, Any], plain: dict[str, Any], card: Any) -> Path:
    metadata = {"format": "selfprobe-probe-1", "probe": json.dumps(plain)}
    if card is not None:
        metadata["card"] = card if isinstance(card, str) else json.dumps(card)
    save_file(arrays, path, metadata=metadata)
    return path


def test_the_file_that_the_bad_ones_differ_from_is_good(tmp_path: Path) -> None:
    assert load_probe(put(tmp_path / "x.safetensors", GOOD, PLAIN, WHOLE)).card == CARD


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_by_what_is_wrong_in_it(case: str, tmp_path: Path) -> None:
    *given, message = BAD[case]
    with pytest.raises(ValueError, match=rf"x.safetensors is no (sound )?probe.*({message})"):
        load_probe(put(tmp_path / "x.safetensors", *given))


@pytest.mark.parametrize("content", [b"", b"{}", b"\x10\x00\x00\x00\x00\x00\x00\x00{"])
def test_an_empty_or_a_truncated_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="x.safetensors is no safetensors file"):
        load_probe(tmp_path / "x.safetensors")


def test_a_layer_or_width_that_the_model_has_not_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    judge = tiny_judge()
    card = replace(CARD, revision=judge.revision)
    for changed in (replace(PROBE, layer=40), PROBE):
        with pytest.raises(
            ValueError,
            match=r"reads block (40|2) of width 2, but tiny-llama has blocks 0..2 of width 32",
        ):
            judge_pairs(ProbeFile(changed, card), judge, some_pairs(2), cache=tmp_path)
