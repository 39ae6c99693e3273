import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from selfprobe.probes.fit import Probe
from selfprobe.probes.probe_file import Card, load_probe, save_probe

PROBE = Probe(
    "supervised", 2, "both", np.array([1.0, -2.0]), 0.25, np.array([0.5, 0.0]), np.array([0.0, 1.0]), "labels", 10.0
)
CARD = Card("m", "r", "t", "float32", "llmbar", "h", "strict", 0, ("g1", "g2"), 2, {"f1": 0.5}, "0.1.0")


def test_a_probe_comes_back_as_it_was(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", PROBE, CARD)
    found = load_probe(tmp_path / "x.safetensors", revision="r", template="t")
    assert found.card == CARD
    assert (found.probe.kind, found.probe.layer, found.probe.orders, found.probe.c) == ("supervised", 2, "both", 10.0)
    assert np.isnan(found.probe.train_score)
    states = np.random.default_rng(0).standard_normal((3, 2, 2, 2))
    np.testing.assert_allclose(found.probe.score(states), PROBE.score(states), rtol=1e-6)
    assert (tmp_path / "x.safetensors").stat().st_size < 2000


def test_a_probe_of_another_model_or_template_is_refused(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", PROBE, CARD)
    with pytest.raises(ValueError, match=r"was fitted to m \(r\), not to this model \(other\).*Fit a probe"):
        load_probe(tmp_path / "x.safetensors", revision="other")
    with pytest.raises(ValueError, match="another chat template of m: fit it again"):
        load_probe(tmp_path / "x.safetensors", template="other")


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(pickle.dumps(PROBE))
    with pytest.raises(ValueError, match="is no safetensors file .*never read from a pickle"):
        load_probe(tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match=r"written as .safetensors, got x.pkl"):
        save_probe(tmp_path / "x.pkl", PROBE, CARD)


def test_another_safetensors_file_is_no_probe(tmp_path: Path) -> None:
    save_file({"weight": np.ones(3)}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="is no probe file: expected format selfprobe-probe-1"):
        load_probe(tmp_path / "x.safetensors")


def test_an_unknown_kind_of_probe_is_named(tmp_path: Path) -> None:
    save_probe(tmp_path / "x.safetensors", replace(PROBE, kind="ccs"), CARD)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="probe kind must be one of supervised, unsupervised, got 'ccs'"):
        load_probe(tmp_path / "x.safetensors")
