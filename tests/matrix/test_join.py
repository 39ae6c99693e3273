"""A cell that needs no call is what a run of it would have been."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from inspect_ai.model import get_model

from selfprobe.scorers.decision import NO_PREDICTION, Decision, crossed_pairs
from selfprobe.studies.matrix.table import matrix_of, read_matrices

FAULTY = (
    "planted/ada?access=.8&malformed=.2&empty=.1&act_refused=.2",
    "planted/bo?malformed=.2&refused=.1&act_empty=.2",
)
COMPARED = ["item", "epoch", "key", "value", "unscored", "truth", "said", "chance", "ceiling", "reasoned"]


def rows(folder: Path, target: str, observer: str) -> pd.DataFrame:
    table = read_matrices([str(folder)]).decisions
    return table[(table.target == target) & (table.observer == observer)][COMPARED].sort_values(
        COMPARED[:3], ignore_index=True
    )


@pytest.mark.parametrize(
    ("task", "given"), [("kth_word", {}), pytest.param("ethical_dilemma", {"epochs": 3}, marks=pytest.mark.slow(5))]
)
def test_a_joined_cell_is_the_run_with_both_sides_replayed(
    run_task: Any, tmp_path: Path, task: str, given: dict[str, Any]
) -> None:
    own = tmp_path / "own"
    for model in FAULTY:
        run_task(f"selfprobe/{task}", model, own, limit=12, task_args=given)
    joined = read_matrices([str(own)])
    assert sorted(joined.cells.joined) == [False, False, True, True] and matrix_of(joined, task).holes == {}
    for target, observer in (FAULTY, FAULTY[::-1]):
        run = tmp_path / observer[8:10]
        replayed = given | {"target_log": str(own), "observer_log": str(own)}
        roles = {"target": get_model(target)}
        log = run_task(f"selfprobe/{task}", observer, run, limit=12, task_args=replayed, model_roles=roles)
        assert not log.stats.model_usage, "a replay asks nobody"
        expected, found = rows(run, target, observer), rows(own, target, observer)
        assert expected.unscored.nunique() > 1, "faults of both sides are there"
        pd.testing.assert_frame_equal(found, expected)


def test_a_fault_of_either_side_stays_the_reason() -> None:
    equal = str.__eq__
    good = Decision(key="k1", value=1, truth="a", said="a")
    refused = Decision(key="k1", unscored="target_refusal", said="a")
    unread = Decision(key="k1", unscored="invalid_response_format", truth="b")
    both = Decision(key="k1", unscored="target_refusal", unread="truncated")
    assert crossed_pairs(good, good.model_copy(update={"said": "b"}), equal).value == 0
    assert crossed_pairs(refused, good, equal).unscored == "target_refusal"
    assert crossed_pairs(good, unread, equal).unscored == "invalid_response_format"
    assert crossed_pairs(unread, good, equal).value == 0, "the truth is there, and the other's prediction"
    assert crossed_pairs(good, refused, equal).value == 1, "a prediction counts though its own truth is hidden"
    assert crossed_pairs(good, both, equal).unscored == "truncated"
    old = Decision(key="k1", unscored="target_refusal")
    assert crossed_pairs(good, old, equal).unscored == NO_PREDICTION


def test_a_failed_run_on_itself_leaves_its_joined_cells_empty(run_task: Any, tmp_path: Path) -> None:
    run_task("selfprobe/kth_word", "planted/ada", tmp_path, limit=3)
    assert set(read_matrices([str(tmp_path)]).cells.joined) == {False}, "one model has nobody to be joined with"
