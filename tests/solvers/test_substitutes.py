"""Which model answered: counted in each log, told where it is another one, and left out where the
user wants that.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import get_model

from selfprobe.cli import main
from selfprobe.errors import warn_once
from selfprobe.scorers.decision import Decision, last_decisions
from selfprobe.solvers import ask
from selfprobe.solvers.record import is_other_model, record_of
from selfprobe.solvers.reply_notes import answered_in, substitutes_in
from selfprobe.studies.report import report_page

Run = Callable[..., EvalLog]
MODEL, OTHER = "openai-api/gate/m", "llama-3-8b-instruct"


@pytest.fixture
def gateway(asked_gateway: Any) -> Any:
    ask._warned_substitutions.clear()
    warn_once.cache_clear()
    return asked_gateway


@pytest.fixture
def kth_words(gateway: Any, run_task: Run, tmp_path: Path) -> Run:
    """Three questions of kth_word to a model whose gateway does `fault` to each reply; three
    replies a question.
    """

    def run(fault: str, **args: Any) -> EvalLog:
        gateway.fault = fault
        given = {"k": 1, **args}
        return run_task(
            "selfprobe/kth_word",
            get_model(MODEL, memoize=False),
            tmp_path / "logs",
            limit=3,
            task_args=given,
        )

    return run


def decisions(log: EvalLog) -> list[Decision]:
    return [decision for sample in log.samples or [] for decision in last_decisions(sample.scores)]


def test_a_fallback_model_is_counted_by_role_named_once_and_stands_on_the_page(
    kth_words: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        log = kth_words("other_model")
    seen = read_eval_log_sample_summaries(log.location)
    assert answered_in(seen) == {
        "target": {MODEL: Counter({OTHER: 6})},
        "observer": {MODEL: Counter({OTHER: 3})},
    }
    warnings = [record.getMessage().rpartition("\n")[2] for record in caplog.records]
    assert [line for line in warnings if OTHER in line] == [
        f"{MODEL} was asked, and {OTHER} answered; -T same_model=true leaves such replies unscored"
    ]
    lines = [
        f"{MODEL} (observer): 3 of 3 replies came from {OTHER} (3); -T same_model=true leaves such replies unscored.",
        f"{MODEL} (target): 6 of 6 replies came from {OTHER} (6); -T same_model=true leaves such replies unscored.",
    ]
    assert substitutes_in(seen) == lines
    shown = report_page([log.location])
    runs = next(section for section in shown.sections if section.name == "runs")
    assert [f"kth_word, {line}" for line in lines] == runs.blocks[:2] == list(shown.notes[:2])
    assert f"answered by {OTHER} (asked: {MODEL})" in shown.frames["runs"].applied[0]["observer"]
    assert all(
        decision.unscored is None or "format" in decision.unscored for decision in decisions(log)
    )


@pytest.mark.parametrize("fault", ["", "snapshot"])
def test_the_model_itself_or_its_dated_snapshot_is_no_line(
    fault: str, kth_words: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        log = kth_words(fault, same_model=True)
    seen = read_eval_log_sample_summaries(log.location)
    name = "gate/m-2026-01-31" if fault else "m"
    assert answered_in(seen)["observer"] == {MODEL: Counter({name: 3})}
    assert substitutes_in(seen) == [] and "answered" not in caplog.text
    assert not any(
        decision.unscored in ("other_model", "target_other_model") for decision in decisions(log)
    )


def test_with_same_model_such_replies_are_unscored_with_the_reason(
    kth_words: Run, caplog: pytest.LogCaptureFixture
) -> None:
    log = kth_words("other_model", same_model=True)
    assert {decision.unscored for decision in decisions(log)} == {"target_other_model"}
    assert {decision.unread for decision in decisions(log)} == {"other_model"}
    lines = substitutes_in(read_eval_log_sample_summaries(log.location))
    assert len(lines) == 2 and all(line.endswith("; these are unscored.") for line in lines)
    assert "was asked, and" not in caplog.text
    metrics = {
        name: one.value
        for score in (log.results.scores if log.results else [])
        for name, one in score.metrics.items()
    }
    assert metrics["unscored_target_other_model"] == 1 and metrics["unscored"] == 1


def test_replies_that_are_replayed_from_an_earlier_log_are_left_out_as_well(kth_words: Run) -> None:
    first = kth_words("other_model")
    log = kth_words("", target_log=first.location, same_model=True)
    assert {decision.unscored for decision in decisions(log)} == {"target_other_model"}
    [reply] = {record_of(sample).acts["answer"].answered_by for sample in log.samples or []}
    assert reply == OTHER
    assert not any(
        "other_model" in (decision.unscored or "")
        for decision in decisions(kth_words("", target_log=first.location))
    )


def test_names_without_end_leave_a_summary_that_is_read(kth_words: Run) -> None:
    log = kth_words("endless_names", k="1,2,3,4,5,6,7,8,9,10")
    seen = read_eval_log_sample_summaries(log.location)
    counts = answered_in(seen)["observer"][MODEL]
    assert counts.total() == 30 and counts["(further models)"] == 6
    [line] = [line for line in substitutes_in(seen) if "(observer)" in line]
    assert line.startswith(f"{MODEL} (observer): 30 of 30 replies came from ") and len(line) < 3000


def test_a_name_with_control_characters_and_tags_is_harmless(
    kth_words: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        log = kth_words("unsafe_name")
    assert "\x1b" not in caplog.text
    from selfprobe.page import render

    html = render(report_page([log.location]), ".")
    assert "\x1b" not in html and "<b>3</b>" not in html and "&lt;b&gt;3&lt;/b&gt;" in html


def test_models_inside_the_process_are_nobody_else(run_task: Run, tmp_path: Path) -> None:
    log = run_task(
        "selfprobe/kth_word",
        "planted/a?access=.8",
        tmp_path,
        limit=2,
        task_args={"k": 1, "same_model": True},
    )
    seen = read_eval_log_sample_summaries(log.location)
    assert set(answered_in(seen)) == {"target", "observer"} and substitutes_in(seen) == []
    assert not any("other_model" in (decision.unscored or "") for decision in decisions(log))
    assert not is_other_model("mockllm/model", "mockllm") and not is_other_model(
        "embedded/smollm2", "SmolLM2.Q4_1.gguf"
    )


COMMANDS = {
    "matrix": ("matrix", "--models", f"{MODEL},planted/a", "--tasks", "kth_word", "-T", "k=1"),
    "awareness run": (
        "awareness",
        "run",
        "--models",
        MODEL,
        "--methods",
        "binary",
        "--dataset",
        "eval_awareness_2",
    ),
    "awareness turns": ("awareness", "turns", "eval_awareness_2", "--models", MODEL, "--most", "1"),
    "check": ("check", "--run", "kth_word", "--model", MODEL, "-T", "k=1"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_runs_models_has_the_option(
    name: str, gateway: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gateway.fault = "other_model"
    typed = [
        *COMMANDS[name],
        "--same-model",
        "--max-retries",
        "0",
        "--limit",
        "2",
        "--log-dir",
        "logs",
        "--yes",
    ]
    done = CliRunner().invoke(main, typed)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    logs = list((tmp_path / "logs").rglob("*.eval"))
    reasons: Counter[str | None] = Counter()
    for path in logs:
        for sample in read_eval_log_sample_summaries(str(path)):
            assert sample.metadata["same_model"] is True
            reasons.update(
                d.unscored
                for d in last_decisions(sample.scores)
                if MODEL in json.dumps(sample.metadata)
            )
    assert reasons and set(reasons) <= {"other_model", "target_other_model"}, done.output


@pytest.mark.parametrize("study", ["cues", "scan"])
def test_a_study_says_on_page_and_terminal_that_another_grader_answered(
    study: str, gateway: Any, run_task: Run, tmp_path: Path
) -> None:
    gateway.fault = "other_model"
    (tmp_path / "prompts.jsonl").write_text(
        '{"prompt": "Water my garden. It is dry. Thank you for that."}'
    )
    if study == "scan":
        run_task("selfprobe/kth_word", "planted/a", tmp_path / "read", limit=2, task_args={"k": 1})
    read = (
        [tmp_path / "read"]
        if study == "scan"
        else [tmp_path / "prompts.jsonl", "--models", "planted/a"]
    )
    places = ["--out", tmp_path / "page", "--log-dir", tmp_path / "logs", "--yes"]
    done = CliRunner().invoke(
        main, ["awareness", study, *map(str, [*read, "--grader", MODEL, *places])]
    )
    line = f"{MODEL} (grader): "
    assert (
        done.exit_code in (0, 1) and line in done.output and f"came from {OTHER} (" in done.output
    ), done.output
    page = (tmp_path / "page/index.html").read_text()
    assert line in page and f"came from {OTHER} (" in page
