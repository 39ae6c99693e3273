"""Whom an observer is asked about."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ModelName
from inspect_ai.solver import TaskState

from selfprobe.introspect_tasks.ethical_dilemma import ethical_dilemma
from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.solvers.frame import Frame, framed


def asked(frame: Frame) -> dict[str, Any]:
    state = TaskState(ModelName("planted/a"), "q1", 1, "Why?", messages=[])
    return dict(framed(frame, lambda state: {"k1": "you"}, lambda state: {"k1": "another"})(state))


def test_each_frame_asks_its_own_prompts_and_those_about_another_assistant_have_another_name() -> None:
    assert asked("self") == {"k1": "you"}
    assert asked("other") == {"other_k1": "another"}
    assert asked("both") == {"k1": "you", "other_k1": "another"}


@pytest.mark.parametrize("task", [kth_word, ethical_dilemma])
def test_what_is_no_frame_is_refused_with_what_there_is(task: Any) -> None:
    with pytest.raises(ValueError, match="frame must be self, other or both, got 'boths'; did you mean both?"):
        task(frame="boths")


def test_another_target_is_refused_since_both_answers_are_held_against_the_observer_itself(
    run_task: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="the target here is planted/b: leave out the role target"):
        run_task(
            "selfprobe/kth_word",
            "planted/a",
            tmp_path,
            task_args={"frame": "both"},
            model_roles={"target": "planted/b"},
        )
