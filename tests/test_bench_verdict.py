"""What bench/verdict.py counts: matrices that are drawn once, tables that say what was drawn."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.studies.matrix.rows import INFORMED

FOLDER = Path(__file__).parents[1] / "bench"


def part(name: str) -> Any:
    for folder in (FOLDER, FOLDER.parent / "tests" / "matrix"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))  # its parts import one another
    return import_module(name)


def bench(*given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "verdict.py"), *given]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_draw_that_was_stopped_goes_on_and_counts_every_matrix_once(tmp_path: Path) -> None:
    module = part("verdict")
    job_list = [
        job for job in module.jobs([(4, 20)], []) if "graded" in job.name and job.group == "access"
    ]
    module.draw(job_list, 3, tmp_path / "stopped.json", 1)
    module.draw(job_list, 6, tmp_path / "stopped.json", 1)
    in_one_go = module.draw(job_list, 6, tmp_path / "whole.json", 1)
    assert json.loads((tmp_path / "stopped.json").read_text()) == in_one_go
    assert {counts["matrices"] for counts in in_one_go.values()} == {6}


@pytest.mark.slow(3)
def test_every_line_has_the_models_that_are_asked_for() -> None:
    for size in (3, 5):
        for line in part("truths").lines(size):
            x, specific, hits, stand_ins = line.draw(np.random.default_rng(0), 12)
            assert x.shape == specific.scores.shape == (size, size, 12), line.name
            assert all(hit.shape == (size, 12) for hit in hits.values()), line.name
            assert stand_ins is None or stand_ins.shape == (size, size, 12), line.name
            assert line.knows <= set(range(size)) and bool(line.knows) == (
                line.group in ("access", "sibling")
            ), line.name


def test_of_twins_nobody_is_alone_and_a_loner_is_its_own_twin_no_more_than_others() -> None:
    truths = part("truths")
    p = np.zeros((3, 3))
    for seed in range(40):
        p += (
            truths.blocks(truths._pairs_and_a_loner(3), np.random.default_rng(seed), 200)[0].mean(
                axis=2
            )
            / 40
        )
    assert min(p[0, 0], p[0, 1]) > 0.65 and abs(p[2, 2] - p[2, 0]) < 0.1


def test_who_learned_all_of_a_habit_gets_what_the_model_gets() -> None:
    x, _, hits, _ = part("truths").learner(3, 1.0, np.random.default_rng(0), 50)
    assert (hits[INFORMED][0] == x[0, 0]).all()


def test_the_table_says_what_was_drawn_and_what_was_not() -> None:
    counts = {
        "null | null, a | 3 | 50": {"matrices": 100, "draws": 100, "hits": 20, "wrong": 20},
        "null | null, b | 5 | 50": {"matrices": 200, "draws": 200},
        "access | c | 5 | 50": {"matrices": 100, "draws": 100, "hits": 90, "wrong": 2},
        "interval | score 0.5 | 5 | 10": {"matrices": 10, "draws": 150, "hits": 142},
    }
    text = part("verdict").table(counts)
    assert "|a|20.0 [12.7, 29.2]/100|–|" in text and "|b|–|0.0 [0.0, 1.8]/200|" in text
    assert "|c|90.0 [82.4, 95.1]/100, 2 wrong|" in text
    assert "by items|10|" in text and "|score 0.5|94.7 [89.8, 97.7]/150|" in text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--sizes", "2x50,5x100"), "of 3 models and 2 items or more, got '2x50,5x100'"),
        (("--sizes", "many"), "expected sizes like 5x100,8x100"),
        (("--only", "nothing like it"), "no line's name holds 'nothing like it'"),
        (("--matrices", "0"), "--matrices and --processes must be 1 or more"),
    ],
)
def test_a_wrong_option_is_told(
    given: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        part("verdict").main(given)
    assert stopped.value.code == 2 and told in capsys.readouterr().err


@pytest.mark.parametrize("held", ["{", "[1]", '{"null | a | 3 | 50": 4}'])
def test_a_file_that_holds_no_counts_is_told_and_left_alone(held: str, tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text(held)
    with pytest.raises(SystemExit, match="holds no counts of this script"):
        part("verdict").main(["--out", str(tmp_path)])
    assert (tmp_path / "counts.json").read_text() == held


@pytest.mark.slow(15)
def test_two_processes_count_what_one_counts(tmp_path: Path) -> None:
    for processes in ("1", "2"):
        size = ("--sizes", "4x20", "--matrices", "4", "--only", "null, product")
        done = bench(*size, "--out", str(tmp_path / processes), "--processes", processes)
        assert done.returncode == 0 and "|Nobody has access;" in done.stdout, done.stderr
    one, two = ((tmp_path / processes / "counts.json").read_text() for processes in ("1", "2"))
    assert json.loads(one) == json.loads(two)


def test_words_without_tables_are_scored_as_with_them() -> None:
    truths, rng = part("truths"), np.random.default_rng(3)
    said, truth = rng.integers(0, 6, (2, 4, 40, 2))
    said[0, 3, 1] = truth[2, 5, 0] = truths.NONE
    alike = {truths.ALL_ITEMS: pd.Series("", pd.Index([f"q{i:04}" for i in range(40)]))}
    missing = (truth[:, None] == truths.NONE) | (said[None] == truths.NONE)
    x = np.nanmean(np.where(missing, np.nan, truth[:, None] == said[None]), axis=3)
    assert truths.without_habit(said, truth).scores == pytest.approx(
        truths.specific(x, said, truth, alike).scores
    )


@pytest.mark.skipif(
    not part("truths").REAL.is_dir(), reason="no shared/data/real_replies beside the project"
)
def test_real_words_of_others_are_predicted_and_are_no_access() -> None:
    truths = part("truths")
    for line in [one for one in truths.lines(5) if one.group == "real"]:
        x, specific, hits, stand_ins = line.draw(np.random.default_rng(0), 208)
        assert x.shape == specific.scores.shape == stand_ins.shape == (5, 5, 208) and hits[
            "mode"
        ].shape == (5, 208)
        assert 0.02 < np.nanmean(x) < 0.6
