"""Thoughts that a server leaves in its replies, through whole runs: they are no words of the model,
and a line says it.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gateways
import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model

from selfprobe.cli import main
from selfprobe.errors import warn_once
from selfprobe.evalawareness_tasks.reasoning_trace import awareness_reasoning_trace
from selfprobe.scorers.decision import last_decisions
from selfprobe.solvers.ask import ask
from selfprobe.solvers.negotiate import terms_of
from selfprobe.solvers.record import Reply, record_of
from selfprobe.solvers.reply_notes import inline_thoughts_in, remarks_in
from selfprobe.studies.report import report_page

Run = Callable[..., EvalLog]
MODEL = "openai-api/gate/m"
ADVICE = "start its server with --reasoning-parser NAME (vLLM, SGLang) or --reasoning-format auto (llama.cpp)"


@pytest.fixture
def gateway(asked_gateway: Any) -> Any:
    warn_once.cache_clear()
    return asked_gateway


@pytest.fixture
def kth_words(gateway: Any, run_task: Run, tmp_path: Path) -> Run:
    """Two questions of kth_word to a model whose server writes each reply in a form; five replies a
    question.
    """

    def run(form: str) -> EvalLog:
        gateway.fault = f"thought_{form}"
        return run_task(
            "selfprobe/kth_word", get_model(MODEL, memoize=False), tmp_path / form, limit=2
        )

    return run


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.results is not None
    return {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }


def replies(log: EvalLog) -> list[Reply]:
    records = [record_of(sample) for sample in log.samples or []]
    return [
        reply
        for record in records
        for part in (record.acts, record.answers)
        for reply in part.values()
    ]


def truths(log: EvalLog) -> set[str | None]:
    decisions = [
        decision for sample in log.samples or [] for decision in last_decisions(sample.scores)
    ]
    return {decision.truth for decision in decisions}


FORMS = sorted({**gateways.INLINE_THOUGHTS, **gateways.EMPTY_THOUGHTS})
FAST = ("unopened", "channels_bare")


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=() if form in FAST else pytest.mark.slow(1)) for form in FORMS],
)
def test_in_a_whole_run_the_words_are_those_of_the_answer_and_the_rate_of_reasoning_is_right(
    form: str, kth_words: Run
) -> None:
    log = kth_words(form)
    assert truths(log) == {"the", "rain", "falls"}
    assert {reply.text for reply in replies(log)} == {gateways.TEXT, gateways.WORD}
    assert metrics(log)["unscored"] == 0
    thinks = form in gateways.INLINE_THOUGHTS
    assert metrics(log)["reasoned_rate"] == thinks
    assert {gateways.THOUGHT in (reply.reasoning or "") for reply in replies(log)} == {thinks}
    lines = inline_thoughts_in(read_eval_log_sample_summaries(log.location))
    split_by_inspect = not any(reply.inline_thought for reply in replies(log))
    assert lines == (
        []
        if split_by_inspect
        else [f"{MODEL}: 10 replies held thoughts, which are split off here; {ADVICE}."]
    )


@pytest.mark.parametrize("form", ["cut", "unopened_cut"])
def test_a_thought_that_is_cut_at_the_limit_is_no_word(form: str, kth_words: Run) -> None:
    log = kth_words(form)
    assert {(reply.text, reply.problem, reply.reasoned) for reply in replies(log)} == {
        ("", "truncated", True)
    }
    assert truths(log) == {None} and metrics(log)["unscored_target_truncated"] == 1


def test_where_a_marker_is_left_over_the_reply_is_garbled_and_the_page_says_how_to_start_the_server(
    kth_words: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        log = kth_words("unknown_token")
    assert truths(log) == {None} and metrics(log)["unscored_target_garbled"] == 1
    line = (
        f"{MODEL}: 10 replies held thoughts, which are split off here, and 10 of them markers that are left over "
        f"(garbled); {ADVICE}."
    )
    summaries = read_eval_log_sample_summaries(log.location)
    assert inline_thoughts_in(summaries) == remarks_in(summaries) == [line]
    page = report_page([log.location])
    assert f"kth_word, {line}" in page.notes
    warnings = [record.getMessage().rpartition("\n")[2] for record in caplog.records]
    assert (
        warnings.count(
            f"{MODEL} sends its thoughts inside its replies, where they are split off; {ADVICE}"
        )
        == 1
    )


def test_after_a_study_a_line_says_how_to_start_the_server(gateway: Any, tmp_path: Path) -> None:
    gateway.fault = "thought_kimi_vl"
    model = "openai-api/gate/thinker"  # a name of its own: the handle of another test's model keeps its address
    args = [
        "matrix",
        "--tasks",
        "kth_word",
        "--models",
        f"{model},planted/a",
        "--limit",
        "1",
        "--yes",
    ]
    done = CliRunner().invoke(
        main,
        [
            *args,
            "--display",
            "none",
            "--log-dir",
            str(tmp_path / "logs"),
            "--out",
            str(tmp_path / "page"),
        ],
    )
    assert (
        f"  {model}: 5 replies held thoughts, which are split off here; {ADVICE}."
        in done.stderr.splitlines()
    )
    assert "planted/a: " not in done.stderr


def test_the_trace_of_a_split_thought_is_read_for_awareness(
    gateway: Any, run_task: Run, tmp_path: Path
) -> None:
    gateway.fault = "thought_seed"
    log = run_task(
        awareness_reasoning_trace(),
        get_model(MODEL, memoize=False),
        tmp_path / "logs",
        limit=1,
        model_roles={"grader": "planted/g"},
    )
    [sample] = log.samples or []
    record = record_of(sample)
    assert record.acts["reply"].reasoning == gateways.THOUGHT and "trace" in record.grades
    [decision] = last_decisions(sample.scores)
    assert decision.unscored is None


def test_a_model_that_once_ended_a_thought_it_never_began_is_given_room_where_a_reply_is_cut() -> (
    None
):
    cut = "We might begin with a word for weather, or perhaps"
    texts = [
        f"{gateways.THOUGHT}\n</think>\n\n{gateways.TEXT}",
        cut,
        f"{cut} not.\n</think>\n\n{gateways.TEXT}",
    ]
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in texts]
    for output in outputs:
        output.usage = ModelUsage(
            input_tokens=1, output_tokens=1, total_tokens=2
        )  # else Inspect counts by itself
    outputs[1].choices[0].stop_reason = "max_tokens"
    model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)

    async def both() -> list[Reply]:
        config = GenerateConfig(max_tokens=40)
        asked = [
            await ask({"a": "Write."}, role=model, config=config, may_be_cut=True) for _ in range(2)
        ]
        return [each["a"] for each in asked]

    first, second = asyncio.run(both())
    assert first.text == second.text == gateways.TEXT and terms_of(model).opens_thought
    assert second.reasoning == f"{cut} not." and second.problem is None
