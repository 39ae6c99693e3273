"""Probes under another system turn: the same pairs, the same probe, other states."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from selfprobe.data.pairs import Pair
from selfprobe.data.public_pairs import PairSet
from selfprobe.probes.evaluate import METRICS, split_pairs
from selfprobe.probes.fit import FitSettings
from selfprobe.probes.folder import read_run
from selfprobe.probes.harvesting import open_harvest
from selfprobe.probes.probe_file import load_probe
from selfprobe.probes.run import run_probes
from selfprobe.probes.tokens import Chat
from selfprobe.probes.transfer import prompted_run
from selfprobe.studies.probe_page import probe_page

from .conftest import TEMPLATE, tiny_judge

FEW = FitSettings(seeds=1, folds=2, resamples=100)


def pair_set(count: int = 16) -> dict[str, PairSet]:
    pairs = [
        Pair(str(i), f"{'ab'[i % 2]}{i}", f"{'ba'[i % 2]}{i}", 1 + i % 2, context=f"q {i}")
        for i in range(count)
    ]
    return {"one": PairSet("one", tuple(pairs), "one", 0, 0)}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and one of the same model under a system turn."""
    folder, judge = tmp_path_factory.mktemp("prompted"), tiny_judge()
    judge.tokenizer.chat_template = TEMPLATE.replace("{{ raise_exception('no system role') }}", "")
    assert judge.tokenizer.chat_template != TEMPLATE
    for name, system in (("plain", ""), ("professor", "You are a smart professor.")):
        given = {"settings": FEW, "random_weights": False, "progress": lambda _: None}
        run_probes(replace(judge, chat=Chat(system)), pair_set(), folder / name, **given)
    return folder / "plain", folder / "professor"


def test_a_probe_is_held_under_both_prompts_on_the_same_held_out_pairs(
    both: tuple[Path, Path],
) -> None:
    plain, professor = both
    prompted_run(plain, professor)
    table = (
        pd.read_csv(professor / "tables/prompted.csv")
        .query("metric == 'auroc'")
        .set_index(["method", "what"])
    )
    one, two = (open_harvest(at / read_run(at)["datasets"]["one"]["activations"]) for at in both)
    [half] = split_pairs(one.pairs, FEW)
    truth = (one.labels == 1)[half.test]
    for kind in ("supervised", "unsupervised"):
        files = [load_probe(at / f"one-{kind}.safetensors") for at in both]
        cases = {"plain": (files[0], one), "moved": (files[0], two), "refitted": (files[1], two)}
        for what, (file, states) in cases.items():
            scores = file.probe.score(states.layer(file.probe.layer))[half.test]
            assert table.value[kind, what] == pytest.approx(METRICS["auroc"](truth, scores)), (
                kind,
                what,
            )
        less = table.value[kind, "moved"] - table.value[kind, "plain"]
        assert table.value[kind, "moved less plain"] == pytest.approx(less)
    assert ("prompting", "moved") in table.index and ("prompting", "refitted") not in table.index
    assert "Under another system turn" in probe_page(professor).files["report.md"].decode()


def test_runs_that_do_not_fit_together_are_refused(both: tuple[Path, Path], tmp_path: Path) -> None:
    plain, _ = both
    given = {"random_weights": False, "progress": lambda _: None}
    run_probes(tiny_judge(seed=1), pair_set(), tmp_path / "other", settings=FEW, **given)
    for folder, told in (
        (tmp_path / "other", "have another revision"),
        (tmp_path, "is no run's folder"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=told):
            prompted_run(plain, folder)
