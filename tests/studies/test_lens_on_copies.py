"""Reading and patching by copies of the model on a cluster: what this process finds, bit by bit,
whoever dies.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from selfprobe.probes.forward import do_jobs_here
from selfprobe.probes.model import load_model
from selfprobe.studies.read import Patch
from selfprobe.study.on_ray import replicas

from ..mechanism.tiny import CARRIER, dilemmas
from ..probes.test_replicas import FakeRay
from .test_lens import call, saved


def quiet(_: str) -> None: ...


@pytest.mark.slow(4)
def test_copies_read_and_patch_what_this_process_does_and_one_that_dies_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, ray = str(saved(tmp_path / "model")), FakeRay(4)
    monkeypatch.setitem(sys.modules, "ray", ray)
    given = {"model": model, "dataset": str(dilemmas(tmp_path)), "layers": str(CARRIER)}
    studies = {name: Patch(**given, out=str(tmp_path / name)) for name in ("here", "there")}
    copies = replicas(ray, studies["there"].judge, partial(load_model, model), progress=quiet)
    for name, spread in {"here": do_jobs_here, "there": copies.spread}.items():
        studies[name].read(spread, quiet)
        studies[name].read(partial(_nobody), quiet)  # what was read is not read again
    assert len(ray.started) == 3, "two copies, and one in the place of the one that died"
    for item, reading in studies["here"].readings.items():
        for array, value in vars(reading).items():
            np.testing.assert_array_equal(
                vars(studies["there"].readings[item])[array], value, err_msg=f"{item}: {array}"
            )
    for variant, values in studies["here"].effects.items():
        np.testing.assert_array_equal(studies["there"].effects[variant], values, err_msg=variant)


def _nobody(*given: object) -> Iterator[object]:
    raise AssertionError("nothing is left to do")


def test_options_of_a_cluster_go_with_its_engine(tmp_path: Path) -> None:
    for name, value in {"--replicas": "2", "--ray-address": "a:1"}.items():
        done = call("patch", "--model", "smollm2", "--out", tmp_path, name, value)
        assert done.exit_code == 2 and f"{name} goes with --engine ray" in done.output


@pytest.mark.slow(40)
@pytest.mark.filterwarnings("default")
def test_lens_attention_and_patch_on_a_real_cluster_find_what_they_find_in_one_process(
    tmp_path: Path,
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'selfprobe[ray]'")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    given = ("--model", saved(tmp_path / "model"), "--dataset", dilemmas(tmp_path))
    engines = {
        "here": (),
        "there": ("--engine", "ray", "--ray-address", made.address, "--replicas", "2"),
    }
    try:
        for folder, more in engines.items():
            for command in ("lens", "attention", "patch"):
                done = call(command, *given, "--out", tmp_path / folder, *more)
                assert done.exit_code == 0, done.output
                reads = (
                    command != "attention" and folder == "there"
                )  # lens has read all that attention needs
                assert ("2 copies read on the cluster" in done.output) == reads, done.output
    finally:
        made.shutdown()
    tables = {path.name for path in (tmp_path / "here" / "tables").glob("*.csv")}
    assert {"lens.csv", "attention.csv", "heads.csv", "patch.csv"} <= tables
    for name in tables:
        one, other = (pd.read_csv(tmp_path / folder / "tables" / name) for folder in engines)
        pd.testing.assert_frame_equal(one, other, rtol=1e-5, atol=1e-6)
