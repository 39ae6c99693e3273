"""`--layers` and `--quantize`: some blocks alone are kept and read, under their own numbers; what
cannot be is said.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from selfprobe.probes import ContrastProbe
from selfprobe.probes.harvesting import harvest, open_harvest
from selfprobe.probes.model import load_model
from selfprobe.probes.probe_file import load_probe
from selfprobe.study.local import blocks

from .conftest import some_pairs
from .test_probe_command import TOY, call, rows, saved, written


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", ()), ("3", (3,)), ("8-11", (8, 9, 10, 11)), ("0-9:4", (0, 4, 8)), ("7,1-2,2", (1, 2, 7))],
)
def test_layers_are_written_as_numbers_spans_and_steps(text: str, numbers: tuple[int, ...]) -> None:
    assert blocks(text) == numbers


def test_kept_layers_are_those_of_a_whole_harvest_under_their_own_numbers(
    model: Path, tmp_path: Path
) -> None:
    whole = harvest(load_model(str(model)), some_pairs(), tmp_path, progress=print)
    some = harvest(load_model(str(model), layers=(2, 0)), some_pairs(), tmp_path, progress=print)
    assert some.folder != whole.folder and some.layers == (0, 2) == open_harvest(some.folder).layers
    for number in (0, 2):
        np.testing.assert_allclose(some.layer(number), whole.layer(number), atol=1e-5)
    with pytest.raises(ValueError, match="layer must be in 0,2, got 1"):
        some.layer(1)
    with pytest.raises(ValueError, match="layer must be in 0..2, got 3"):
        whole.layer(3)
    assert ContrastProbe("unsupervised", orientation="none").fit(some).probe_.layer == 2
    with pytest.raises(ValueError, match="layer must be one of 0, 2, got 1"):
        ContrastProbe("unsupervised", orientation="none", layer=1).fit(some)


@pytest.mark.slow(3)
def test_a_run_on_some_layers_names_them_in_tables_probes_and_the_run(
    model: Path, tmp_path: Path
) -> None:
    file = written(tmp_path / "one.jsonl", rows("one"))
    given = (
        "--model",
        model,
        "--datasets",
        file,
        "--out",
        tmp_path / "out",
        *TOY,
        "--no-random-weights",
    )
    ran = call("run", *given, "--layers", "1-2")
    assert ran.exit_code == 0, ran.output
    assert set(pd.read_csv(tmp_path / "out" / "tables" / "layers.csv").layer) == {1, 2}
    assert load_probe(tmp_path / "out" / "one-unsupervised.safetensors").probe.layer in (1, 2)
    assert json.loads((tmp_path / "out" / "run.json").read_text())["loading"]["layers"] == [1, 2]
    judged = call("score", "--probe", tmp_path / "out" / "one-supervised.safetensors", file)
    assert judged.exit_code == 0, judged.output
    asked = call("run", *given, "--layers", "1-2", "--parts", "ablate")
    assert asked.exit_code == 0, asked.output


def test_layers_that_are_not_there_or_no_numbers_are_refused(model: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "one.jsonl", rows("one"))
    for layers, message in (
        ("7", "has blocks 0..2, got layers 7"),
        ("last", "expected blocks such as 3, 8-12 or 0-31:4, got 'last'"),
        ("5-2", "got '5-2'"),
    ):
        ran = call(
            "run",
            "--model",
            model,
            "--datasets",
            file,
            "--out",
            tmp_path / "out",
            "--layers",
            layers,
        )
        assert ran.exit_code == 2 and message in " ".join(ran.output.split()), ran.output
        assert ran.output.count("got ") == 1, ran.output


def test_quantised_loading_without_its_package_says_what_to_install(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    file = written(tmp_path / "one.jsonl", rows("one"))
    ran = call(
        "run", "--model", model, "--datasets", file, "--out", tmp_path / "out", "--quantize", "4bit"
    )
    assert (
        ran.exit_code == 2
        and "quantised loading needs bitsandbytes: pip install bitsandbytes" in ran.output
    )
