"""Figure 3: one point an effort, in order, out of ordinary runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.errors import NoLogs
from selfprobe.introspect_tasks.ethical_dilemma import ethical_dilemma
from selfprobe.logs import runs
from selfprobe.papers.effort_curve import effort_points, swept_runs
from selfprobe.papers.introspectbench import figure3
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.dilemma import dilemma_estimates, dilemmas_of, infinite_kl
from tests.matrix.read_logs import read_matrices


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("data") / "d.jsonl"
    rows = [
        {"id": f"d{i}", "dilemma": f"Case {i}.\n\nOption A: Go.\nOption B: Stay."} for i in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, run_task: Any, data: str) -> Path:
    folder = tmp_path_factory.mktemp("effort")
    for level in ("high", None, "none"):
        run_task(ethical_dilemma(dataset=data, epochs=2, effort=level), "planted/a", folder)
    return folder


def test_points_come_in_the_order_of_effort_with_the_metrics_values(
    logs: Path, run_task: Any, data: str
) -> None:
    points, _ = effort_points(runs([str(logs)]).counted)
    assert [point.effort for point in points] == ["default", "none", "high"]
    for point in points:
        assert point.kl_gain.value == pytest.approx(
            point.kl_direct.value - point.kl_predicted.value
        )
        assert point.kl_gain.low <= point.kl_gain.value <= point.kl_gain.high
        assert point.kl_gain.n == 4


def test_the_papers_page_has_the_figure_and_the_numbers(logs: Path, tmp_path: Path) -> None:
    words = ["paper", "introspectbench", str(logs), "--out", str(tmp_path)]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "KL(p‖p′), prediction" in (tmp_path / "figures/figure3.svg").read_text("utf-8")
    table = pd.read_csv(tmp_path / "tables/figure3.csv")
    assert list(table.effort) == ["default", "none", "high"]
    points, _ = effort_points(runs([str(logs)]).counted)
    assert list(table.kl_gain) == pytest.approx([point.kl_gain.value for point in points])


def test_a_single_dilemma_has_no_interval_and_is_drawn_all_the_same(
    run_task: Any, data: str, tmp_path: Path
) -> None:
    for level in ("low", "high"):
        run_task(
            ethical_dilemma(dataset=data, epochs=1, effort=level), "planted/a", tmp_path, limit=1
        )
    [picture] = figure3(runs([str(tmp_path)]).counted).pictures
    assert b"nan" not in picture.drawing.svg and "at low" in picture.alt


def test_of_two_runs_of_one_effort_the_last_counts(
    logs: Path, run_task: Any, data: str, tmp_path: Path
) -> None:
    last = run_task(ethical_dilemma(dataset=data, epochs=2, effort="none"), "planted/a", tmp_path)
    points, ignored = effort_points(runs([str(logs), str(tmp_path)]).counted)
    assert [point.effort for point in points] == ["default", "none", "high"]
    assert points[1].log.endswith(Path(last.location).name) and ignored == {}


def test_a_run_of_another_setting_is_no_point_of_the_curve(
    logs: Path, run_task: Any, data: str, tmp_path: Path
) -> None:
    """Other epochs, or another data set: a curve is of one setting, whatever is newer."""
    run_task(ethical_dilemma(dataset=data, epochs=1, effort="none"), "planted/a", tmp_path)
    run_task(ethical_dilemma(epochs=2, effort="low"), "planted/a", tmp_path, limit=1)
    points, ignored = effort_points(runs([str(logs), str(tmp_path)]).counted)
    assert [point.effort for point in points] == ["default", "none", "high"]
    assert all(point.log.rpartition("/")[0].endswith(logs.name) for point in points)
    data_set, epochs = sorted(ignored.values())
    assert (
        data_set.startswith("another run: data set is ")
        and epochs == "another run: epochs is 1, there 2"
    )


def test_a_matrix_holds_the_runs_without_an_effort_alone(logs: Path) -> None:
    assert read_matrices([str(logs)]).cells.args.map(lambda args: args.get("effort")).tolist() == [
        None
    ]


def test_one_effort_is_no_curve_and_the_page_says_what_to_type(
    run_task: Any, data: str, tmp_path: Path
) -> None:
    run_task(ethical_dilemma(dataset=data, epochs=1, effort="low"), "planted/a", tmp_path)
    lone_runs = runs([str(tmp_path)]).counted
    assert swept_runs(lone_runs) == []
    with pytest.raises(NoLogs, match=r"no model ran ethical_dilemma at two efforts: inspect eval"):
        figure3(lone_runs)


def test_a_run_without_a_score_and_a_folder_without_a_run_are_told(
    run_task: Any, data: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="no finished run of ethical_dilemma among"):
        effort_points(runs([str(tmp_path)]).counted)
    run_task(ethical_dilemma(dataset=data, epochs=1), "planted/a?refused=1", tmp_path)
    with pytest.raises(ValueError, match="no dilemma is scored, so there is nothing to draw"):
        effort_points(runs([str(tmp_path)]).counted)


def test_infinite_divergences_are_counted_and_left_out_of_both_means(
    run_task: Any, data: str, tmp_path: Path
) -> None:
    log = run_task(ethical_dilemma(dataset=data, epochs=2), "planted/a", tmp_path)
    decisions = [
        (str(sample.id), d) for sample in log.samples for d in last_decisions(sample.scores)
    ]
    means = list(dilemmas_of(decisions).values())
    sure = [replace(one, p_predicted=1.0) for one in means[:1]]
    assert infinite_kl([*sure, *means[1:]]) == {"predicted": 1, "direct": 0, "either": 1}
    kept = dilemma_estimates([*sure, *means[1:]])
    assert kept["kl_gain"].n == len(means) - 1 and kept["kl_smoothed_gain"].n == len(means)
    assert "kl_gain" not in dilemma_estimates(sure)
