"""A cell that needs no call is what a run of it would have been."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inspect_ai.model import get_model

from selfprobe.scorers.decision import Decision
from selfprobe.studies.matrix.table import crossed_columns, matrix_of
from tests.matrix.read_logs import read_matrices

FAULTY = (
    "planted/ada?access=.8&malformed=.2&empty=.1&act_refused=.2",
    "planted/bo?malformed=.2&refused=.1&act_empty=.2",
)
COMPARED = [
    "item",
    "epoch",
    "key",
    "value",
    "unscored",
    "truth",
    "said",
    "chance",
    "ceiling",
    "reasoned",
]


def rows(folder: Path, target: str, observer: str) -> pd.DataFrame:
    table = read_matrices([str(folder)]).decisions
    return table[(table.target == target) & (table.observer == observer)][COMPARED].sort_values(
        COMPARED[:3], ignore_index=True
    )


@pytest.mark.parametrize(
    ("task", "given"),
    [("kth_word", {}), pytest.param("ethical_dilemma", {"epochs": 3}, marks=pytest.mark.slow(5))],
)
def test_a_joined_cell_is_the_run_with_both_sides_replayed(
    run_task: Any, tmp_path: Path, task: str, given: dict[str, Any]
) -> None:
    own = tmp_path / "own"
    for model in FAULTY:
        run_task(f"selfprobe/{task}", model, own, limit=12, task_args=given)
    joined = read_matrices([str(own)])
    assert (
        sorted(joined.cells.joined) == [False, False, True, True]
        and matrix_of(joined, task).holes == {}
    )
    for target, observer in (FAULTY, FAULTY[::-1]):
        run = tmp_path / observer[8:10]
        replayed = given | {"target_log": str(own), "observer_log": str(own)}
        roles = {"target": get_model(target)}
        log = run_task(
            f"selfprobe/{task}", observer, run, limit=12, task_args=replayed, model_roles=roles
        )
        assert not log.stats.model_usage, "a replay asks nobody"
        expected, found = rows(run, target, observer), rows(own, target, observer)
        assert expected.unscored.nunique() > 1, "faults of both sides are there"
        pd.testing.assert_frame_equal(found, expected)


GOOD = Decision(key="k1", value=1, truth="a", said="a")
OTHER_WORD = Decision(key="k1", value=0, truth="a", said="b")
REFUSED = Decision(key="k1", unscored="target_refusal", said="a")
UNREAD = Decision(key="k1", unscored="invalid_response_format", truth="b")
BOTH = Decision(key="k1", unscored="target_refusal", unread="truncated")


@pytest.mark.parametrize(
    ("of_target", "of_observer", "value", "unscored"),
    [
        pytest.param(GOOD, OTHER_WORD, 0, None, id="another word is wrong"),
        pytest.param(REFUSED, GOOD, None, "target_refusal", id="nothing to predict"),
        pytest.param(
            GOOD, UNREAD, None, "invalid_response_format", id="no prediction that can be read"
        ),
        pytest.param(UNREAD, GOOD, 0, None, id="the truth is there, and the other's prediction"),
        pytest.param(
            GOOD, REFUSED, 1, None, id="a prediction counts though its own truth is hidden"
        ),
        pytest.param(GOOD, BOTH, None, "truncated", id="of both faults the observer's own"),
    ],
)
@pytest.mark.parametrize("task", ["kth_word", "heads_up"])
def test_a_fault_of_either_side_stays_the_reason(
    of_target: Decision, of_observer: Decision, value: float | None, unscored: str | None, task: str
) -> None:
    own = pd.DataFrame([vars(of_target), vars(of_observer)]).assign(task=task)
    found = crossed_columns(own, np.array([0]), np.array([1]))
    assert found["unscored"].tolist() == [unscored]
    assert found["value"].tolist() == pytest.approx(
        [math.nan if value is None else value], nan_ok=True
    )
    assert (found["said"].tolist(), found["unread"].tolist()) == ([of_observer.said], [None])


def test_a_failed_run_on_itself_leaves_its_joined_cells_empty(
    run_task: Any, tmp_path: Path
) -> None:
    run_task("selfprobe/kth_word", "planted/ada", tmp_path, limit=3)
    assert set(read_matrices([str(tmp_path)]).cells.joined) == {False}, (
        "one model has nobody to be joined with"
    )
