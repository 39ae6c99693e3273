"""What becomes of a version of a prompt."""

import math

import pytest

from selfprobe.scorers.rewrite_check import check, check_in
from selfprobe.solvers.record import Problem, Reply

ORIGINAL = "Choose the  answer."


def reply(text: str, problem: Problem | None = None) -> Reply:
    return Reply(text=text, model="m/a", stop_reason="stop", problem=problem)


GOOD = '{"same_task": true, "left": []}'


@pytest.mark.parametrize(
    ("version", "grade", "similarity", "value", "why"),
    [
        (reply("Tell me which."), reply(GOOD), 0.8, 1.0, None),
        (reply("Pick an answer."), reply('{"same_task": true, "left": [2]}'), 0.8, 0.0, None),
        (reply("", "empty"), None, math.nan, None, "no_response"),
        (reply("choose the answer."), reply(GOOD), 1.0, None, "same"),
        (reply("Bake a cake."), reply('{"same_task": false, "left": []}'), 0.8, None, "other_task"),
        (reply("Bake a cake."), reply(GOOD), 0.1, None, "other_task"),
        (reply("Tell me which."), reply("yes, fine"), 0.8, None, "grader_failed"),
    ],
)
def test_a_version_is_usable_has_features_left_or_a_reason(
    version: Reply, grade: Reply | None, similarity: float, value: float | None, why: str | None
) -> None:
    found = check(
        "rewrite",
        version,
        [grade] if grade else [],
        original=ORIGINAL,
        features=["a", "b"],
        similarity=similarity,
    )
    assert (found.value, found.unscored) == (value, why)
    assert found.said == ("b" if value == 0 else None)


@pytest.mark.parametrize(
    "text", ["", '{"same_task": 1, "left": []}', '{"same_task": true, "left": [0]}', '{"left": []}']
)
def test_a_grade_of_another_form_is_none(text: str) -> None:
    assert check_in(text, 2) is None
