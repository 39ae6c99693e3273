"""Cells are held against each other only where they measured the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import GenerateConfig, ModelConfig

from selfprobe.studies.matrix.numbers import analyse
from selfprobe.studies.matrix.page import results_page
from selfprobe.studies.matrix.table import Results, matrix_of
from tests.matrix.read_logs import read_matrices

A, B = "m/a", "m/b"


def holes(
    results: Results, column: str, values: dict[tuple[str, str], Any]
) -> dict[tuple[str, str], str]:
    """The holes when a column has other values in these cells."""
    pairs = zip(results.cells.target, results.cells.observer, results.cells[column], strict=True)
    results.cells[column] = [
        values.get((target, observer), held) for target, observer, held in pairs
    ]
    return matrix_of(results, "kth_word").holes


def test_a_cell_of_five_of_forty_items_is_a_hole_that_says_so(
    matrix_results: Callable[..., Results],
) -> None:
    few = {(A, B): [f"q{i}" for i in range(5)]}
    told = holes(matrix_results({A: 1.0, B: 1.0}, items=40), "items", few)
    assert told == {(A, B): "cannot be compared: it asks about 5 of 40 items"}
    other = {(A, B): [f"q{i}" for i in range(4)] + ["z"]}
    told = holes(matrix_results({A: 1.0, B: 1.0}, items=40), "items", other)
    assert told == {(A, B): "cannot be compared: it asks about 4 of 40 items, and others"}


def test_generation_settings_are_those_of_the_models_run_on_itself(
    matrix_results: Callable[..., Results],
) -> None:
    system = {(A, B): {"system_message": "Be brief."}}
    told = holes(matrix_results({A: 1.0, B: 1.0}, items=10), "settings", system)
    assert told == {
        (
            A,
            B,
        ): "cannot be compared: system_message of the observer is Be brief.; on itself it ran with none"
    }
    effort = {(A, A): {"reasoning_effort": "low"}, (A, B): {"reasoning_effort of target": "high"}}
    told = holes(matrix_results({A: 1.0, B: 1.0}, items=10), "settings", effort)
    assert "reasoning_effort of the target is high; on itself it ran with low" in told[A, B]
    assert "reasoning_effort of the observer is not set; on itself it ran with low" in told[B, A]


def test_each_model_may_have_settings_of_its_own(matrix_results: Callable[..., Results]) -> None:
    own = {
        (A, A): {"reasoning_effort": "low"},
        (A, B): {"reasoning_effort of target": "low"},
        (B, A): {"reasoning_effort": "low"},
    }
    assert holes(matrix_results({A: 1.0, B: 1.0}, items=10), "settings", own) == {}


def test_other_epochs_are_a_hole(matrix_results: Callable[..., Results]) -> None:
    told = holes(matrix_results({A: 1.0, B: 1.0}, items=10), "epochs", {(A, B): 3})
    assert told == {
        (A, B): "cannot be compared: number of epochs is 3, in most runs of models on themselves 1"
    }


@pytest.fixture(scope="module")
def run(run_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of six questions."""
    folder = tmp_path_factory.mktemp("run")
    run_task("selfprobe/kth_word", "planted/a", folder, limit=6)
    return folder


def copied(
    run: Path,
    to: Path,
    year: int,
    *,
    items: int = 6,
    config: GenerateConfig | None = None,
    model: str = "planted/a",
    args: dict[str, Any] | None = None,
) -> None:
    log = read_eval_log(str(next(run.glob("*.eval"))))
    assert log.samples is not None
    log.samples = log.samples[:items]
    log.eval.dataset.sample_ids = [sample.id for sample in log.samples]
    log.eval.created = f"{year}-01-01T00:00:00+00:00"
    log.eval.model_generate_config = config or log.eval.model_generate_config
    log.eval.model, log.eval.task_args = model, {**log.eval.task_args, **(args or {})}
    write_eval_log(log, str(to))


def test_the_fuller_run_wins_over_a_later_one_of_fewer_items_and_says_so(
    run: Path, tmp_path: Path
) -> None:
    copied(run, tmp_path / "full.eval", 2021)
    copied(run, tmp_path / "few.eval", 2023, items=2)
    results = read_matrices([str(tmp_path)])
    assert results.cells.log[0].endswith("full.eval") and len(results.decisions) == 6 * 3
    ((log, why),) = results.ignored.items()
    assert log.endswith("few.eval") and why.endswith("full.eval (it holds more items)")


def test_settings_of_a_log_are_read_without_how_it_was_sent(run: Path, tmp_path: Path) -> None:
    config = GenerateConfig(
        system_message="Be brief.", max_connections=3, max_retries=2, max_tokens=9
    )
    copied(run, tmp_path / "log.eval", 2021, config=config)
    assert read_matrices([str(tmp_path)]).cells.settings[0] == {
        "system_message": "Be brief.",
        "max_tokens": "9",
    }


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("value", 1e9, "value"),
        ("value", float("inf"), "value"),
        ("value", "half", "value"),
        ("truth", 3, "truth"),
        ("ceiling", -7, "ceiling"),
        ("unscored", {"why": 1}, "unscored"),
    ],
)
def test_a_malformed_score_sets_its_log_aside_and_the_others_are_read(
    run: Path, tmp_path: Path, field: str, value: Any, told: str
) -> None:
    copied(run, tmp_path / "good.eval", 2021)
    log = read_eval_log(str(next(run.glob("*.eval"))))
    log.eval.model, log.eval.created = "planted/odd", "2024-01-01T00:00:00+00:00"
    assert log.samples and log.samples[0].scores
    (score,) = log.samples[0].scores.values()
    assert score.metadata is not None
    score.metadata.setdefault(field, {})["k1"] = value
    write_eval_log(log, str(tmp_path / "odd.json"))
    results = read_matrices([str(tmp_path / "odd.json"), str(tmp_path / "good.eval")])
    assert list(results.cells.target) == ["planted/a"]
    ((name, why),) = results.ignored.items()
    assert name.endswith("odd.json") and told in why


def test_a_score_that_is_nested_without_end_sets_its_log_aside(run: Path, tmp_path: Path) -> None:
    copied(run, tmp_path / "good.json", 2021)
    text = (tmp_path / "good.json").read_text()
    deep = "[" * 5000 + "]" * 5000
    (tmp_path / "deep.json").write_text(text.replace('"keys":', f'"deep": {deep}, "keys":', 1))
    results = read_matrices([str(tmp_path / "good.json"), str(tmp_path / "deep.json")])
    assert len(results.cells) == 1
    assert [Path(log).name for log in results.ignored] == ["deep.json"]


OLD, NEW = "2021-03-04T05:06:00+00:00", "2023-03-04T05:06:00+00:00"


def of_data_set(
    run: Path, to: Path, name: str, created: str, *, model: str = "planted/a", items: int = 6
) -> None:
    """The run as one of another data set: other texts and kinds under the same ids."""
    log = read_eval_log(str(next(run.glob("*.eval"))))
    assert log.samples is not None and log.eval.metadata is not None
    log.samples = log.samples[:items]
    for sample in log.samples:
        sample.input, sample.metadata = f"{name}?", {"kind": name}
    log.eval.metadata |= {"dataset": name, "dataset_sha256": f"{name}-0123456789abcdef"}
    log.eval.dataset.sample_ids = [sample.id for sample in log.samples]
    log.eval.created, log.eval.model = created, model
    write_eval_log(log, str(to))


def three_and_one(run: Path, folder: Path) -> Path:
    """Three models on one data set; one of them later on another one with as many items, another on
    fewer items.
    """
    folder.mkdir()
    for k, model in enumerate("abc"):
        of_data_set(run, folder / f"{k}.eval", "mine", OLD, model=f"planted/{model}")
    of_data_set(run, folder / "other.eval", "theirs", NEW, items=5)
    return folder


def test_the_data_set_that_most_models_ran_on_themselves_counts_not_the_newer_one(
    run: Path, tmp_path: Path
) -> None:
    results = read_matrices([str(three_and_one(run, tmp_path / "logs"))])
    assert set(results.cells.dataset) == {"mine"} and matrix_of(results, "kth_word").holes == {}
    ((log, why),) = results.ignored.items()
    assert (
        log.endswith("other.eval")
        and why == "another run: data set is theirs-01234, there mine-0123456"
    )


def test_of_two_data_sets_of_the_same_models_the_newer_counts_and_both_are_named(
    run: Path, tmp_path: Path
) -> None:
    for model in "abc":
        of_data_set(run, tmp_path / f"old-{model}.eval", "mine", OLD, model=f"planted/{model}")
        of_data_set(run, tmp_path / f"new-{model}.eval", "theirs", NEW, model=f"planted/{model}")
    results = read_matrices([str(tmp_path)])
    page = results_page(results, analyse(results, rng=np.random.default_rng(0)))
    said = (
        "Runs of 2 settings: data set theirs-01234 (theirs; 6 samples, 3 runs, 2023-03-04 05:06) counts; left out: data "
        "set mine-0123456 (mine; 6 samples, 3 runs, 2021-03-04 05:06). To use another, give its logs alone."
    )
    (why,) = (section for section in page.sections if section.name == "why")
    assert said in why.blocks
    assert any(line.endswith(said) for line in page.notes)


def test_runs_of_one_setting_need_no_word_about_it(run: Path) -> None:
    assert read_matrices([str(run)]).settings == {}


def test_a_later_run_with_another_argument_does_not_stand_in_for_the_one_that_the_others_have(
    run: Path, tmp_path: Path
) -> None:
    """It was "superseded" that hid k=1,2,3 behind a later k=1 of as many items."""
    for model in "abc":
        copied(run, tmp_path / f"{model}.eval", 2021, model=f"planted/{model}")
    copied(run, tmp_path / "one.eval", 2023, args={"k": "1"})
    copied(run, tmp_path / "thinking.eval", 2023, items=5, args={"effort": "high"})
    results = read_matrices([str(tmp_path)])
    assert sorted(Path(log).stem for log in results.cells.log[~results.cells.joined]) == [
        "a",
        "b",
        "c",
    ]
    assert matrix_of(results, "kth_word").holes == {}
    assert {Path(log).stem: why for log, why in results.ignored.items()} == {
        "one": "another run: k is 1, there not set",
        "thinking": "another run: effort is high, there not set",
    }
    assert results.settings["kth_word"] == (
        "Runs of 3 settings: effort not set, k not set (6 samples, 3 runs, 2021-01-01 00:00) counts; left out: effort "
        "not set, k 1 (6 samples, 1 run, 2023-01-01 00:00), effort high, k not set (5 samples, 1 run, 2023-01-01 "
        "00:00). To use another, give its logs alone."
    )


def test_of_two_generation_settings_of_a_model_one_counts_and_both_are_named(
    run: Path, tmp_path: Path
) -> None:
    """They are two identities: neither is superseded by the other, and no cell mixes them."""
    warm = GenerateConfig(temperature=1)
    copied(run, tmp_path / "b.eval", 2021, model="planted/b")
    copied(run, tmp_path / "cold.eval", 2021)
    copied(run, tmp_path / "warm.eval", 2022, config=warm)
    results = read_matrices([str(tmp_path)])
    own = results.cells[results.cells.target == results.cells.observer]
    assert sorted(Path(log).stem for log in own.log) == ["b", "warm"]
    assert list(results.ignored.values()) == ["another run: temperature is not set, there 1.0"]
    told = results.settings["kth_word"]
    assert "temperature 1.0 (" in told and "left out: temperature not set (" in told


def test_a_cells_run_has_the_generation_settings_of_its_models_runs_on_themselves(
    run: Path, tmp_path: Path
) -> None:
    """Of two runs of a cell, though the other one is newer."""
    for model in "ab":
        copied(run, tmp_path / f"{model}.eval", 2021, model=f"planted/{model}")
    for year, config in ((2022, GenerateConfig()), (2023, GenerateConfig(temperature=1))):
        path = str(tmp_path / f"{year}.eval")
        copied(run, Path(path), year, model="planted/b", config=config)
        log = read_eval_log(path)
        log.eval.model_roles = {"target": ModelConfig(model="planted/a")}
        write_eval_log(log, path)
    results = read_matrices([str(tmp_path)])
    assert matrix_of(results, "kth_word").holes == {}
    (cell,) = results.cells[
        (results.cells.target == "planted/a") & (results.cells.observer == "planted/b")
    ].log
    assert cell.endswith("2022.eval")
    assert list(results.ignored.values()) == ["another run: temperature is 1.0, there not set"]


def test_where_the_log_that_counts_is_damaged_the_next_one_of_the_same_identity_counts(
    run: Path, tmp_path: Path
) -> None:
    copied(run, tmp_path / "old.eval", 2021)
    copied(run, tmp_path / "new.json", 2023)
    log = read_eval_log(str(tmp_path / "new.json"))
    assert log.samples and log.samples[0].scores
    (score,) = log.samples[0].scores.values()
    score.metadata = {**(score.metadata or {}), "value": {"k1": 7}}
    write_eval_log(log, str(tmp_path / "new.json"))
    results = read_matrices([str(tmp_path / "old.eval"), str(tmp_path / "new.json")])
    assert [Path(log).name for log in results.cells.log] == ["old.eval"]
    ((name, why),) = results.ignored.items()
    assert name.endswith("new.json") and "a decision's value is 7" in why


@pytest.mark.slow(4)
def test_a_log_that_is_left_out_moves_no_number_of_the_others(
    run_task: Any, tmp_path: Path
) -> None:
    """Another model's run of other items, a run of another data set with the same ids, and a
    truncated one.
    """
    models = [
        f"planted/{name}?access={access}" for name, access in (("a", 0.9), ("b", 0.2), ("c", 0.4))
    ]
    for model in models:
        run_task(
            "selfprobe/kth_word", model, tmp_path / "logs", limit=20, task_args={"resamples": 0}
        )
    alone = read_matrices([str(tmp_path / "logs")])
    run = tmp_path / "logs"
    of_data_set(run, tmp_path / "aside" / "x.eval", "theirs", NEW, model="planted/x", items=15)
    run_task(
        "selfprobe/kth_word",
        "planted/y",
        tmp_path / "aside",
        limit=30,
        task_args={"resamples": 0, "k": "4"},
    )
    (tmp_path / "aside" / "cut.eval").write_bytes(next(run.glob("*.eval")).read_bytes()[:2000])
    mixed = read_matrices([str(run), str(tmp_path / "aside")])
    assert set(mixed.cells.target) == {*models} and len(mixed.ignored) == 3
    (one,), (other,) = (
        analyse(results, rng=np.random.default_rng(0)).tasks for results in (alone, mixed)
    )
    assert other.models == one.models == tuple(models) and other.left_out == ()
    for name in (
        "rows",
        "rows_p_holm",
        "total_advantage",
        "complete",
        "worst",
        "capability",
        "permutation",
        "taken_off",
        "p",
    ):
        assert repr(getattr(one, name)) == repr(getattr(other, name)), name
    own = other.cells[
        other.cells.target.isin(models) & other.cells.observer.isin(models)
    ].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, one.cells)
