"""Solvers of one task each, on a hand-made state: what they ask and record, and what they leave
alone.
"""

from typing import Any

import anyio
import pytest
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelName,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.model._model import init_active_model, init_model_roles
from inspect_ai.solver import Solver, TaskState

from selfprobe.logs.first_call import _name_roles
from selfprobe.solvers.arms import ABOUT, ORIGINAL, ask_arms, line_first, paraphrased
from selfprobe.solvers.grade import needs_grader
from selfprobe.solvers.record import Record


def says(*_: Any) -> ModelOutput:
    output = ModelOutput.from_content("m", "0.7")
    output.usage = ModelUsage(
        input_tokens=1, output_tokens=1, total_tokens=2
    )  # else Inspect counts by a download
    return output


def model(name: str = "mockllm/a") -> Model:
    return get_model(name, memoize=False, custom_outputs=says)


def solved(
    solver: Solver, metadata: dict[str, Any], roles: dict[str, Any] | None = None
) -> TaskState:
    """The state after a solver, with these roles bound."""
    state = TaskState(
        ModelName("planted/a"),
        "s",
        1,
        "Why?",
        messages=[ChatMessageUser(content="Why?")],
        metadata=metadata,
    )

    async def solve() -> TaskState:
        init_active_model(model(), GenerateConfig())
        init_model_roles(roles or {})
        return await solver(state, None)  # type: ignore[arg-type]  # none of these generates

    return anyio.run(solve)


def test_a_line_goes_first_in_its_arm_and_nowhere_else() -> None:
    lines = line_first({"told": "This is a test."})
    made = solved(lines, {ABOUT: {"arm": "told"}}).messages
    assert [type(message) for message in made] == [ChatMessageSystem, ChatMessageUser]
    assert made[0].text == "This is a test."
    assert [message.text for message in solved(lines, {ABOUT: {"arm": "as_is"}}).messages] == [
        "Why?"
    ]


ARMS = {
    "arms": {ORIGINAL: {"messages": [{"role": "user", "content": "Add 2 and 2."}], "tools": []}}
}


def test_a_prompt_is_paraphrased_by_a_grader_where_there_is_one() -> None:
    other = paraphrased(lambda text: f"Say it otherwise: {text}")
    assert solved(other, ARMS).store_as(Record).grades == {}
    grades = solved(other, ARMS, {"grader": model("mockllm/g")}).store_as(Record).grades
    assert list(grades) == ["m0"] and grades["m0"].model == "mockllm/g"


def test_each_arm_is_asked_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "mockllm/a")  # while it is built
    asked = ask_arms({"evaluation": "A test?", "deployment": "In use?"})
    answers = solved(asked, ARMS).store_as(Record).answers
    assert set(answers) == {f"{ORIGINAL}.evaluation", f"{ORIGINAL}.deployment"}


def test_without_a_grader_nothing_is_asked() -> None:
    with pytest.raises(Exception, match="add --model-role grader="):
        solved(needs_grader(), {})
    assert len(solved(needs_grader(), {}, {"grader": model()}).messages) == 1


def test_every_role_is_the_recording_model_under_the_roles_name() -> None:
    held = []

    def look(recorder: Solver) -> Solver:
        async def solve(state: TaskState, generate: Any) -> TaskState:
            await recorder(state, generate)
            held.append(get_model(role="auditor"))
            return state

        return solve

    solved(look(_name_roles(model("mockllm/recorder"))), {})
    assert str(held[0]) == "mockllm/recorder" and held[0].role == "auditor"
