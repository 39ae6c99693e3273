"""Inspect's log of a task says the truth of each sample as its target, which `inspect view` lists
and `samples_df` reads.
"""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.analysis import samples_df
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries

from selfprobe.scorers.decision import Decision, score_of, target_in_log

TASKS_WITH_TRUTHS = (
    "heads_up",
    "kth_word",
    "paraphrase_recognition",
    "self_recognition",
    "subset_choice",
)
"""Tasks whose decisions have a truth that no row of their data set says."""


def truths_of(log: EvalLog) -> dict[int | str, dict[str, str]]:
    """Truths of each sample's decisions, by key."""
    assert log.samples
    truths = {}
    for sample in log.samples:
        [score] = (sample.scores or {}).values()
        truths[sample.id] = (score.metadata or {})["truth"]
    return truths


@pytest.mark.parametrize("task", TASKS_WITH_TRUTHS)
def test_the_target_in_the_log_is_the_truth_of_each_decision(
    task: str, run_task: Any, tmp_path: Path
) -> None:
    log = run_task(f"selfprobe/{task}", "planted/ada", tmp_path, limit=2)
    summaries = read_eval_log_sample_summaries(log.location)
    truths = truths_of(log)
    assert {summary.id for summary in summaries} == truths.keys()
    for summary in summaries:
        truth_by_key = truths[summary.id]
        if len(truth_by_key) == 1:
            [expected] = truth_by_key.values()
            assert summary.target == expected
        else:
            assert summary.target == [f"{key}: {truth}" for key, truth in truth_by_key.items()]


def test_a_dilemmas_target_is_where_the_reasoning_ended(run_task: Any, tmp_path: Path) -> None:
    log = run_task("selfprobe/ethical_dilemma", "planted/ada", tmp_path, limit=2, epochs=1)
    [score] = (log.samples[0].scores or {}).values()
    assert log.samples[0].target == score.metadata["said"]["p"]


def test_a_reconstructions_target_is_the_prompt(run_task: Any, tmp_path: Path) -> None:
    log = run_task("selfprobe/prompt_reconstruction", "planted/ada", tmp_path, limit=2)
    assert [sample.target for sample in log.samples] == [sample.input for sample in log.samples]


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Inspect's call of pandas
def test_the_table_of_samples_and_the_list_of_the_viewer_have_the_target(
    run_task: Any, tmp_path: Path
) -> None:
    log = run_task("selfprobe/heads_up", "planted/ada", tmp_path, limit=2)
    assert sorted(samples_df(log.location).target) == sorted(
        sample.target for sample in log.samples
    )
    columns = log.eval.viewer.task_samples_view.columns
    assert "target" in [column.id for column in columns]


def test_a_label_of_the_data_stays_the_target(run_task: Any, tmp_path: Path) -> None:
    log = run_task("selfprobe/awareness_binary", "planted/ada", tmp_path, limit=2)
    assert {sample.target for sample in log.samples} <= {"evaluation", "deployment"}


@pytest.mark.parametrize(
    ("truth_by_key", "target"),
    [
        ({"guess": "lamp"}, "lamp"),
        ({"k1": "a", "k2": None}, ["k1: a", "k2: ?"]),
        ({"k1": None, "k2": None}, ""),
        ({"guess": None}, ""),
        ({}, ""),
    ],
)
def test_an_unknown_truth_is_a_question_mark_and_none_at_all_no_target(
    truth_by_key: dict[str, str | None], target: str | list[str]
) -> None:
    assert target_in_log(truth_by_key) == target


def test_a_score_outside_of_a_run_has_no_sample_to_write_to() -> None:
    decision = Decision(key="guess", value=1.0, truth="lamp")
    assert score_of([decision], answer=None, explanation="").value == {"guess": 1.0}
