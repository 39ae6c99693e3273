"""The paper's printed tables: what they must be, recomputed from their own figures."""

import pytest

from selfprobe.papers.introspectbench_printed import (
    MODELS,
    PAPER_TASKS,
    SELF,
    TABLE_1,
    TABLE_2,
    paper_name,
)

OBSERVERS = [model for model in TABLE_2 if model != SELF]
AVG = [66.94, 66.69, 66.27, 65.11, 64.95, 64.19, 62.63, 62.44, 61.51, 61.49, 55.77]


def test_each_row_has_the_mean_that_the_paper_prints_and_stands_in_its_order() -> None:
    means = [sum(row.values()) / 4 for row in TABLE_2.values()]
    assert means == pytest.approx(AVG, abs=0.0051) and means == sorted(means, reverse=True)


def test_rows_are_observers_over_ten_targets_of_fifty_words_and_the_self_row_is_eleven_models() -> (
    None
):
    for model in OBSERVERS:
        assert TABLE_2[model]["kth_word"] * 5 == pytest.approx(
            round(TABLE_2[model]["kth_word"] * 5), abs=1e-9
        )
        right = TABLE_2[model]["heads_up"] * 4.9
        assert right == pytest.approx(round(right), abs=0.025)
    assert round(100 * 300 / 550, 2) == TABLE_2[SELF]["kth_word"]


def test_read_as_models_on_themselves_the_rows_leave_an_impossible_eleventh_model() -> None:
    left = {
        task: 11 * TABLE_2[SELF][task] - sum(TABLE_2[model][task] for model in OBSERVERS)
        for task in PAPER_TASKS
    }
    assert left["ethical_dilemma"] == pytest.approx(131.09) and left[
        "paraphrase_recognition"
    ] == pytest.approx(-4.44)


def test_the_printed_variances_cannot_be_of_values_with_these_means() -> None:
    variance = {task: row.variance for task, row in TABLE_1.items()}
    most = {task: 1 - row.closest**2 for task, row in TABLE_1.items()}  # of values in [-1, 1]
    assert variance["paraphrase_recognition"] == 0.3069 > most["paraphrase_recognition"]
    in_unit = {
        task: row.closest * (1 - row.closest) for task, row in TABLE_1.items()
    }  # of values in [0, 1]
    assert {task for task in TABLE_1 if variance[task] > in_unit[task]} == set(TABLE_1) - {
        "ethical_dilemma"
    }


def test_the_eleven_models_of_table_3_are_named_and_all_observers_are_among_them() -> None:
    assert len(MODELS) == 11 and set(MODELS) - set(OBSERVERS) == {"Z-AI GLM-4 32B"}
    assert set(OBSERVERS) < set(MODELS)
    assert (
        paper_name("openrouter/x-ai/grok-4.1-fast") == "xAI Grok 4.1 Fast"
        and paper_name("openai/gpt-5") is None
    )
