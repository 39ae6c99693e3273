"""Outcomes in logs of five kinds of Inspect tasks, made by simulated models; and logs that are of
no use.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval
from inspect_ai.agent import react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, write_eval_log
from inspect_ai.model import (
    ChatMessageUser,
    ContentImage,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import (
    Score,
    Scorer,
    Target,
    choice,
    includes,
    match,
    mean,
    model_graded_qa,
    scorer,
)
from inspect_ai.solver import TaskState, generate, multiple_choice, system_message
from inspect_ai.tool import Tool, tool

from selfprobe.data.outcomes import OutcomeQuestions, logged_outcomes, models_in
from selfprobe.errors import InputError
from selfprobe.errors.output import from_here

USAGE = ModelUsage(input_tokens=1, output_tokens=7, total_tokens=8)
Replies = Callable[[str], str | ModelOutput]


def simulated(name: str, reply: Replies) -> Any:
    def outputs(messages: Any, *_: Any) -> ModelOutput:
        made = reply("\n".join(message.text for message in messages))
        output = made if isinstance(made, ModelOutput) else ModelOutput.from_content(name, made)
        output.usage = USAGE.model_copy(
            update={"output_tokens": max(1, len(output.completion) // 4)}
        )
        return output

    return get_model(f"mockllm/{name}", custom_outputs=outputs, memoize=False)


def run(task: Task, reply: Replies, folder: Path, name: str = "a", **more: Any) -> EvalLog:
    (log,) = eval(task, model=simulated(name, reply), log_dir=str(folder), display="none", **more)
    return log


def questions(count: int = 6, **more: Any) -> MemoryDataset:
    made = [
        Sample(
            id=n,
            input=f"What is {n} + 1?",
            target=str(n + 1),
            metadata={"kind": "even odd".split()[n % 2]},
            **more,
        )
        for n in range(count)
    ]
    return MemoryDataset(made, name="numbers")


def half(text: str) -> str:
    """Right where the number is even."""
    n = int(text.rpartition("What is ")[2].partition(" ")[0])
    return str(n + 1 + n % 2)


def plain(folder: Path, reply: Replies = half, name: str = "a", **more: Any) -> EvalLog:
    return run(
        Task(dataset=questions(), solver=generate(), scorer=match(), name="plain"),
        reply,
        folder,
        name,
        **more,
    )


def outcomes(
    folder: Path, asking: OutcomeQuestions | None = None, target: str = "mockllm/a"
) -> dict[str, dict[str, float]]:
    rows = logged_outcomes(str(folder), target, asking or OutcomeQuestions()).table.rows
    return {row["id"].partition(":")[2]: row["outcomes"] for row in rows}


EVEN = {str(n): {"solve": float(n % 2 == 0)} for n in range(6)}

# ---- five kinds


def test_exact_match_is_right_or_wrong_and_the_reply_is_not_shown(tmp_path: Path) -> None:
    plain(tmp_path)
    assert outcomes(tmp_path) == EVEN
    row = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).table.rows[2]
    assert row["text"] == "[1] user:\nWhat is 2 + 1?" and row["task"] == "plain"


def test_a_multiple_choice_shows_the_options_that_the_model_saw(tmp_path: Path) -> None:
    data = [
        Sample(id=n, input=f"Pick {n}.", choices=["this", "that"], target="A") for n in range(4)
    ]
    task = Task(
        dataset=MemoryDataset(data),
        solver=[system_message("Be brief."), multiple_choice()],
        scorer=choice(),
    )
    run(task, lambda text: f"ANSWER: {'AB'[('Pick 1' in text) + ('Pick 3' in text)]}", tmp_path)
    assert outcomes(tmp_path) == {str(n): {"solve": float(n % 2 == 0)} for n in range(4)}
    text = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).table.rows[0]["text"]
    assert (
        text.startswith("[1] system:\nBe brief.")
        and "A) this\nB) that" in text
        and "[3]" not in text
    )


def test_a_model_graded_answer_is_the_graders_grade_and_its_calls_are_no_replies(
    tmp_path: Path,
) -> None:
    grader = simulated(
        "grader",
        lambda text: f"GRADE: {'C' if '2 + 1' in text else 'P' if '4 + 1' in text else 'I'}",
    )
    task = Task(
        dataset=questions(),
        solver=generate(),
        scorer=model_graded_qa(partial_credit=True, model=grader),
    )
    run(task, half, tmp_path)
    found = outcomes(tmp_path, OutcomeQuestions(("solve", "length"), tokens=1))
    assert [found[str(n)]["solve"] for n in range(6)] == [0, 0, 1, 0, 0.5, 0]
    assert {one["length"] for one in found.values()} == {0.0}, (
        "the grader's tokens are not the model's"
    )


@tool
def look() -> Tool:
    async def execute(place: str) -> str:
        """Look somewhere.

        Args:
            place: Where.
        """
        return f"seen at {place}"

    return execute


def agent(text: str) -> ModelOutput:
    n = int(text.rpartition("What is ")[2].partition(" ")[0])
    if "seen at" not in text:
        return ModelOutput.for_tool_call("mockllm/a", "look", {"place": f"p{n}"})
    return ModelOutput.for_tool_call("mockllm/a", "submit", {"answer": str(n + 1 + n % 2)})


def test_an_agent_is_shown_with_its_tools_and_at_k_with_what_it_had_done(tmp_path: Path) -> None:
    run(
        Task(dataset=questions(4), solver=react(tools=[look()]), scorer=includes()), agent, tmp_path
    )
    assert outcomes(tmp_path) == {str(n): EVEN[str(n)] for n in range(4)}
    first = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).table.rows[0]["text"]
    assert (
        "[tools]\nlook(place): Look somewhere." in first
        and "seen at" not in first
        and "[tool call]" not in first
    )
    later = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions(at=4)).table.rows[0][
        "text"
    ]
    assert '[tool call] look({"place": "p0"})' in later and later.endswith("[4] tool:\nseen at p0")
    after = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions(when="after")).table.rows[
        0
    ]["text"]
    assert '[tool call] submit({"answer": "1"})' in after
    with pytest.raises(
        InputError, match=r"it has 5 messages, and the state after 40 is asked for \(4 items\)"
    ):
        logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions(at=40))


@scorer(metrics={"exact": [mean()], "near": [mean()]})
def parts(near: float = 0.25) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        exact = state.output.completion == target.text
        return Score(value={"exact": exact, "near": near})

    return score


def test_of_several_scorers_the_first_counts_or_the_one_that_is_named(tmp_path: Path) -> None:
    task = Task(dataset=questions(), solver=generate(), scorer=[match(), includes(), parts()])
    run(task, half, tmp_path)
    assert outcomes(tmp_path) == EVEN
    assert logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).notes == (
        ["task: scored by match; others are includes, parts.exact, parts.near"]
    )
    for score in ("includes", "parts.exact", "exact"):
        assert outcomes(tmp_path, OutcomeQuestions(score=score)) == EVEN
    assert outcomes(tmp_path, OutcomeQuestions(score="near"))["1"] == {"solve": 0.25}


# ---- refusals, lengths, epochs, other models


def test_a_refusal_after_a_thought_in_the_text_is_one(tmp_path: Path) -> None:
    def reply(text: str) -> str:
        refused = "I'm sorry, but I can't help with that." if " 3 +" in text else "Four."
        return f"Okay, the user wants a sum.\n</think>\n\n{refused}"

    plain(tmp_path, reply)
    found = outcomes(tmp_path, OutcomeQuestions(("refuse",)))
    assert [one["refuse"] for one in found.values()] == [0, 0, 0, 1, 0, 0]


def test_refusals_and_lengths_are_read_from_the_last_reply(tmp_path: Path) -> None:
    def reply(text: str) -> str:
        return (
            "I'm sorry, but I can't help with that."
            if " 3 +" in text
            else "word " * (1 + 20 * (" 2 +" in text))
        )

    plain(tmp_path, reply)
    found = outcomes(tmp_path, OutcomeQuestions(("refuse", "length")))
    assert [one["refuse"] for one in found.values()] == [0, 0, 0, 1, 0, 0]
    assert [one["length"] for one in found.values()] == [0, 0, 1, 1, 0, 0], "above the log's median"
    assert outcomes(tmp_path, OutcomeQuestions(("length",), tokens=20))["3"] == {"length": 0}


def test_epochs_are_averaged_and_what_shows_the_reply_is_about_the_first(tmp_path: Path) -> None:
    calls: dict[str, int] = {}

    def reply(text: str) -> str:
        calls[text] = calls.get(text, 0) + 1
        return half(text) if calls[text] % 2 else "no"

    plain(tmp_path, reply, epochs=4, max_connections=1)
    assert outcomes(tmp_path)["0"] == {"solve": 0.5} and outcomes(tmp_path)["1"] == {"solve": 0}
    assert set(outcomes(tmp_path, OutcomeQuestions(when="after"))["0"].values()) <= {0.0, 1.0}


def test_other_models_are_compared_where_they_were_asked_the_same(tmp_path: Path) -> None:
    plain(tmp_path)
    plain(tmp_path, lambda text: "1", "b")
    other = Task(
        dataset=[Sample(id=n, input=f"Say {n}.", target="1") for n in range(6)],
        solver=generate(),
        scorer=match(),
        name="plain",
    )
    run(other, lambda text: "1", tmp_path, "c")
    found = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions())
    assert found.others["plain:0"] == {"mockllm/b": {"solve": 1.0}}
    assert found.notes == ["plain: 6 items of mockllm/c have another text, and are not compared"]
    assert models_in([str(tmp_path)]) == ["mockllm/a", "mockllm/b", "mockllm/c"]


def test_of_several_settings_of_a_model_one_counts_and_a_line_says_which(tmp_path: Path) -> None:
    plain(tmp_path, temperature=0.5)
    plain(tmp_path, lambda text: "none", temperature=1.0)
    found = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions())
    assert not any(row["outcomes"]["solve"] for row in found.table.rows)
    assert (
        "plain: 2 logs of mockllm/a with other settings; 'mockllm/a, temperature 1.0' of 20"
        in found.notes[0]
    )


def test_logs_that_do_not_count_are_named_and_stop_nobody(tmp_path: Path) -> None:
    good = Path(str(plain(tmp_path).location).removeprefix("file://"))
    (tmp_path / "cut.eval").write_bytes(good.read_bytes()[:-200])
    plain(tmp_path, lambda text: "1", "b", score=False)
    stopped = plain(tmp_path, name="c")
    stopped.status = "cancelled"
    write_eval_log(stopped)
    found = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions())
    assert len(found.table.rows) == 6 and not any(found.others.values())
    cancelled, cut, unscored = sorted(
        found.notes, key=lambda note: ("cancelled" not in note, "cut.eval" not in note)
    )
    assert cancelled == f"{from_here(str(stopped.location))} does not count: status cancelled"
    assert "cut.eval does not count: cannot be read: it is truncated, or no Inspect log" in cut
    assert unscored.startswith("plain: mockllm/b is not compared: ") and "has no scores" in unscored
    with pytest.raises(
        InputError, match=r"no log of mockllm/z in .* does not count: (status|cannot be read)"
    ):
        logged_outcomes(str(tmp_path), "mockllm/z", OutcomeQuestions())


def test_the_same_run_twice_says_which_counts(tmp_path: Path) -> None:
    plain(tmp_path)
    plain(tmp_path, lambda text: "none")
    assert (
        "plain: 2 logs of mockllm/a; 'mockllm/a' of 20"
        in logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).notes[0]
    )


def test_what_is_asked_has_a_hash_that_other_models_logs_do_not_change(tmp_path: Path) -> None:
    plain(tmp_path)
    before = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).table.sha256
    plain(tmp_path, lambda text: "1", "b")
    assert logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).table.sha256 == before


# ---- what has no outcome


def test_errors_limits_and_unscored_samples_have_no_outcome_and_a_reason(tmp_path: Path) -> None:
    def reply(text: str) -> str:
        if " 1 +" in text:
            raise ValueError("down")
        return half(text)

    plain(tmp_path, reply, fail_on_error=False)
    found = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions())
    assert (
        found.table.set_aside_reasons == {"plain:1": "ended in an error"}
        and len(found.table.rows) == 5
    )
    limited = tmp_path / "limited"
    run(
        Task(
            dataset=questions(4), solver=react(tools=[look()]), scorer=includes(), message_limit=3
        ),
        agent,
        limited,
    )
    with pytest.raises(
        InputError,
        match=r"no item of mockllm/a has an outcome: ended at its message limit \(4 items\)",
    ):
        logged_outcomes(str(limited), "mockllm/a", OutcomeQuestions())


def test_items_with_images_are_named_and_left_out(tmp_path: Path) -> None:
    shown = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
    data = [Sample(id=n, input=f"What is {n} + 1?", target=str(n + 1)) for n in range(3)]
    data[1].input = [ChatMessageUser(content=[ContentText(text="What is 1 + 1?"), shown])]
    run(Task(dataset=data, solver=generate(), scorer=match(), name="seen"), half, tmp_path)
    found = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions())
    assert (
        "only text can be asked about" in found.table.set_aside_reasons["seen:1"]
        and len(found.table.rows) == 2
    )
    assert found.notes[-1].startswith(
        "1 of 3 items left out, what was asked: a message has content of type 'image'"
    )
    assert found.notes[-1].endswith(": seen:1")


def test_two_epochs_of_different_count_are_said(tmp_path: Path) -> None:
    count = 0

    def reply(text: str) -> str:
        nonlocal count
        count += 1
        if count == 3:
            raise ValueError("down")
        return half(text)

    plain(tmp_path, reply, epochs=2, max_connections=1, fail_on_error=False)
    assert logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions()).notes == [
        "plain: 1 outcomes are means of fewer than 2 epochs"
    ]


@pytest.mark.parametrize(
    ("asking", "says"),
    [
        (
            OutcomeQuestions(score="parts"),
            "scorer parts has 2 values; choose one: --score (-T score=…) with parts.exact, parts.near",
        ),
        (OutcomeQuestions(score="exakt"), "no score 'exakt'; the nearest are parts.exact"),
        (
            OutcomeQuestions(score="size"),
            "scorer size.high gives 7; expected what Inspect turns into 0 to 1; others are match, parts.exact",
        ),
        (OutcomeQuestions(cluster="topic"), "cluster=topic: no metadata of that name in"),
    ],
)
def test_a_score_that_is_none_is_refused_in_a_line(
    asking: OutcomeQuestions, says: str, tmp_path: Path
) -> None:
    @scorer(metrics={"high": [mean()]}, name="size")
    def size() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value={"high": 7})

        return score

    run(
        Task(dataset=questions(), solver=generate(), scorer=[match(), parts(), size()]),
        half,
        tmp_path,
    )
    with pytest.raises(InputError) as caught:
        logged_outcomes(str(tmp_path), "mockllm/a", asking)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_logs_without_scores_and_logs_of_others_are_refused_in_a_line(tmp_path: Path) -> None:
    plain(tmp_path / "unscored", score=False)
    with pytest.raises(
        InputError,
        match=r"has no scores; score it first \(inspect score\), or ask for refuse or length",
    ):
        logged_outcomes(str(tmp_path / "unscored"), "mockllm/a", OutcomeQuestions())
    assert outcomes(tmp_path / "unscored", OutcomeQuestions(("refuse",)))["0"] == {"refuse": 0}
    with pytest.raises(InputError, match=r"no log of mockllm/aa in .*; did you mean mockllm/a\?"):
        logged_outcomes(str(tmp_path / "unscored"), "mockllm/aa", OutcomeQuestions())
    plain(tmp_path / "bare", log_samples=False)
    with pytest.raises(
        InputError, match="logs of mockllm/a in .* hold no samples; run the task again"
    ):
        logged_outcomes(str(tmp_path / "bare"), "mockllm/a", OutcomeQuestions(("refuse",)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no finished Inspect log in"):
        logged_outcomes(str(tmp_path / "empty"), "mockllm/a", OutcomeQuestions())


def test_a_cluster_is_the_samples_metadata(tmp_path: Path) -> None:
    plain(tmp_path)
    rows = logged_outcomes(str(tmp_path), "mockllm/a", OutcomeQuestions(cluster="kind")).table.rows
    assert {row["cluster"] for row in rows} == {"even", "odd"}
    assert json.dumps(rows), "rows are hashed as JSON"
