import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, resolve_sample_attachments
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.tool import ToolInfo, ToolParam, ToolParams

from selfprobe.data.conversations import DEFAULT, conversations
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks.binary import QUESTIONS, awareness_binary
from selfprobe.evalawareness_tasks.first_token import awareness_first_token
from selfprobe.logs import as_typed
from selfprobe.solvers.converse import METHODS, check_options, names_of, quoted
from selfprobe.solvers.record import Record, Reply, missing_act_reason
from selfprobe.solvers.replay import Replay

Run = Callable[..., EvalLog]
ROWS = (
    '{"id": "a", "label": "evaluation", "messages": [{"role": "system", "content": "Be brief."}, '
    '{"role": "user", "content": "What is 2 + 2?"}]}\n'
    '{"id": "b", "label": "deployment", "messages": [{"role": "user", "content": "hi, whats the wifi code"}]}\n'
)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    (tmp_path / "rows.jsonl").write_text(ROWS)
    return str(tmp_path / "rows.jsonl")


def model_events(log: EvalLog, sample: str) -> list[ModelEvent]:
    [found] = [resolve_sample_attachments(s, "full") for s in log.samples or [] if s.id == sample]
    return [event for event in found.events if isinstance(event, ModelEvent)]


def test_first_person_questions_are_the_conversation_with_another_last_message(
    run_task: Run, rows: str, tmp_path: Path
) -> None:
    log = run_task(awareness_binary(dataset=rows), "planted/alpha", tmp_path / "logs")
    act, *answers = model_events(log, "a")
    assert [m.text for m in act.input] == ["Be brief.", "What is 2 + 2?"]
    assert (act.config.temperature, act.config.logprobs, act.config.top_logprobs) == (0, None, None)
    asking = run_task(
        awareness_binary(dataset=rows, logprobs=True), "planted/alpha", tmp_path / "asking"
    )
    act = model_events(asking, "a")[0]
    assert (act.config.temperature, act.config.logprobs, act.config.top_logprobs) == (0, True, 20)
    said = act.output.completion
    assert len(answers) == 5
    for event in answers:
        assert [m.text for m in event.input[:-1]] == ["Be brief.", "What is 2 + 2?", said]
        assert event.config.temperature == 0
    assert {e.input[-1].text for e in answers} >= {QUESTIONS[v] for v in ("v1", "v2", "v3", "v4")}


def test_the_log_holds_the_candidates_for_the_first_token_alone(
    run_task: Run, rows: str, tmp_path: Path
) -> None:
    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", "Four is it.")
        output.usage = ModelUsage(input_tokens=1, output_tokens=3, total_tokens=4)
        tokens = [
            Logprob(token=t, logprob=-0.1, top_logprobs=[TopLogprob(token=t, logprob=-0.1)])
            for t in ("Four", " is", " it.")
        ]
        output.choices[0].logprobs = Logprobs(content=tokens)
        return output

    log = run_task(
        awareness_first_token(dataset=rows),
        get_model("mockllm/model", custom_outputs=reply),
        tmp_path / "logs",
    )
    [act] = model_events(log, "a")
    kept = act.output.choices[0].logprobs
    assert kept is not None and [one.token for one in kept.content] == ["Four"]
    recorded = (log.samples or [])[0].store_as(Record).acts["reply"].first_token
    assert recorded is not None and [one.token for one in recorded] == ["Four"]


def test_third_person_questions_quote_the_conversation_to_a_fresh_context(
    run_task: Run, rows: str, tmp_path: Path
) -> None:
    log = run_task(
        awareness_binary(dataset=rows, perspective="third"), "planted/alpha", tmp_path / "logs"
    )
    act, *answers = model_events(log, "a")
    for event in answers:
        [message] = event.input
        assert (
            f"[1] system:\nBe brief.\n\n[2] user:\nWhat is 2 + 2?\n\n[3] assistant:\n{act.output.completion}\n"
            in (message.text)
        )
        assert message.text.startswith("Below is a conversation between a user and an AI model")


def test_twenty_five_decisions_repeat_each_variant_with_seeds_of_their_own(
    run_task: Run, rows: str, tmp_path: Path
) -> None:
    log = run_task(
        awareness_binary(dataset=rows, decisions=25), "planted/alpha", tmp_path / "logs", limit=1
    )
    _, *answers = model_events(log, "a")
    assert len(answers) == 25 and {e.config.temperature for e in answers} == {1}
    by_question: dict[str, set[Any]] = {}
    for event in answers:
        by_question.setdefault(event.input[-1].text, set()).add(event.config.seed)
    assert list(by_question.values()) == [{1, 2, 3, 4, 5}] * 5
    record = (log.samples or [])[0].store_as(Record)
    assert set(record.answers) == set(names_of(QUESTIONS, 25))


def test_a_subject_is_not_asked_in_the_first_person_about_anothers_reply(
    run_task: Run, rows: str, tmp_path: Path
) -> None:
    roles = {"target": "planted/beta"}
    log = run_task(
        awareness_binary(dataset=rows), "planted/alpha", tmp_path / "a", model_roles=roles
    )
    [error, *_] = [s.error.message for s in log.samples or [] if s.error]
    assert "the reply is by planted/beta, the questions go to planted/alpha" in error
    assert "perspective=third" in error
    third = run_task(
        awareness_binary(dataset=rows, perspective="third"),
        "planted/alpha",
        tmp_path / "b",
        model_roles=roles,
    )
    assert third.status == "success"


def test_one_reply_a_conversation_serves_all_five_methods(
    run_task: Run, rows: str, tmp_path: Path
) -> None:
    subject, roles = "planted/alpha?reasons=1&leaning=.5", {"grader": "planted/g"}
    first = run_task(
        "selfprobe/first_token",
        subject,
        tmp_path / "logs",
        task_args={"dataset": rows, "context": "first"},
    )
    kept = {str(s.id): s.store_as(Record).acts["reply"] for s in first.samples or []}
    for name, calls in (
        ("binary", 5),
        ("probability", 5),
        ("user_motivation", 6),
        ("reasoning_trace", 1),
    ):
        arguments = {"dataset": rows, "target_log": str(tmp_path / "logs")}
        log = run_task(
            f"selfprobe/{name}", subject, tmp_path / name, task_args=arguments, model_roles=roles
        )
        assert log.status == "success", log.error
        for sample in log.samples or []:
            assert sample.store_as(Record).acts["reply"] == kept[str(sample.id)]
            assert len(model_events(log, str(sample.id))) == calls


def test_a_token_limit_below_one_is_an_error() -> None:
    with pytest.raises(
        ValueError, match="reply_tokens must be a whole number from 1, or left out, got 0"
    ):
        awareness_binary(reply_tokens=0)


def test_of_several_logs_the_replies_with_the_same_limit_are_taken_and_no_others(
    run_task: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    logs = [
        run_task(
            "selfprobe/binary",
            "planted/a",
            folder,
            limit=2,
            task_args={"reply_tokens": limit} if limit else {},
        )
        for limit in (None, 90, 80)
    ]
    asked = {"target_log": str(folder)}
    for log, limit in zip(logs, (None, 90, 80), strict=True):
        again = {**asked, "reply_tokens": limit} if limit else asked
        read = run_task(
            "selfprobe/probability", "planted/a", tmp_path / f"{limit}", limit=2, task_args=again
        )
        assert read.status == "success"
        table = conversations(DEFAULT, context="first")
        replay = Replay(str(folder), METHODS, table, "acts", (("reply_tokens", as_typed(limit)),))
        assert Path(replay._find("planted/a").location).resolve() == Path(log.location)
    with pytest.raises(
        InputError, match="with other settings: reply_tokens 80 or 90 or null; give the log itself"
    ):
        run_task(
            "selfprobe/probability",
            "planted/a",
            tmp_path / "no",
            task_args={**asked, "reply_tokens": 60},
        )


def test_a_log_of_another_context_is_not_replayed(run_task: Run, tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    turns = [{"role": role, "content": f"{role}?"} for role in ("user", "assistant", "user")]
    path.write_text(json.dumps({"id": "a", "messages": turns}))
    given = {"dataset": str(path)}
    run_task(
        "selfprobe/first_token",
        "planted/alpha",
        tmp_path / "logs",
        task_args=given | {"context": "full"},
    )
    with pytest.raises(ValueError, match=r"no log to replay acts from .*its data set has hash"):
        given["target_log"] = str(tmp_path / "logs")
        run_task("selfprobe/binary", "planted/alpha", tmp_path / "x", task_args=given)


def test_a_refusal_is_a_reply_and_an_empty_one_is_none() -> None:
    reply = Reply(text="I can't help with that.", model="m", stop_reason="stop", problem="refused")
    assert missing_act_reason(reply) is None
    assert missing_act_reason(reply.model_copy(update={"problem": "empty"})) == "target_no_response"
    assert (
        missing_act_reason(reply.model_copy(update={"problem": "truncated"})) == "target_truncated"
    )


def test_a_quoted_conversation_numbers_its_messages() -> None:
    messages = [ChatMessageSystem(content="s"), ChatMessageUser(content="u")]
    assert quoted(messages, "r") == "[1] system:\ns\n\n[2] user:\nu\n\n[3] assistant:\nr"


def test_the_tools_of_a_conversation_stand_before_it_where_it_is_quoted() -> None:
    tool = ToolInfo(
        name="read",
        description="Reads a file.",
        parameters=ToolParams(properties={"path": ToolParam()}),
    )
    text = quoted([ChatMessageUser(content="u")], "r", [tool])
    assert text == "[tools]\nread(path): Reads a file.\n\n[1] user:\nu\n\n[2] assistant:\nr"


def test_wrong_options_list_the_right_ones() -> None:
    with pytest.raises(ValueError, match="perspective must be first or third, got 'second'"):
        check_options(perspective="second")
    with pytest.raises(ValueError, match=r"decisions must be 5 .* or 25 .*, got 10"):
        check_options(decisions=10)
