"""Free text under a vector: planted chances come out, the grader is not told what it reads, and a
model that cannot be steered is refused.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import resolve_sample_attachments
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model

from selfprobe.errors import InputError
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.introspect_tasks import injected_thought
from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.thought_claims import ARMS, DECISION_KEYS, reading_in

TASK = "selfprobe/injected_thought"
GRADED = {"grader": "planted/g"}


def metrics_of(log: Any) -> dict[str, float]:
    assert log.status == "success", log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def events_of(log: Any, role: str | None) -> list[ModelEvent]:
    samples = [resolve_sample_attachments(sample) for sample in log.samples]
    return [
        event
        for sample in samples
        for event in sample.events
        if isinstance(event, ModelEvent) and event.role == role
    ]


def mock(reply: Any) -> Any:
    """A model that answers by a function of messages and settings."""

    def respond(messages: Any, _tools: Any, _choice: Any, config: GenerateConfig) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", reply(messages, config))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=respond, memoize=False)


def test_planted_chances_come_out_and_controls_give_the_false_alarms(
    run_task: Any, tmp_path: Path
) -> None:
    subject = "planted/ada?feels=.8&feels_random=.3&imagines=.1&knows_word=.5"
    log = run_task(TASK, subject, tmp_path, model_roles=GRADED)
    found = metrics_of(log)
    planted = {"claims": 0.8, "claims_random": 0.3, "claims_clean": 0.1, "names": 0.4}
    for name, chance in planted.items():
        assert abs(found[name] - chance) < 3.5 * math.sqrt(chance * (1 - chance) / 40), name
    assert found["names_random"] == found["names_clean"] == 0 and found["n"] == 40
    beyond = found["claims"] - found["claims_random"]
    assert found["claims_beyond_random"] == pytest.approx(beyond)
    assert found["claims_beyond_random_low"] > 0


def test_no_false_alarm_is_bounded_by_the_end_of_its_interval(
    run_task: Any, tmp_path: Path
) -> None:
    found = metrics_of(run_task(TASK, "planted/ada", tmp_path, model_roles=GRADED))
    assert found["claims_clean"] == 0 and 0.05 < found["claims_clean_high"] < 0.12
    assert found["claims_beyond_clean"] == 0 and found["claims_beyond_clean_low"] < 0


def test_each_word_is_asked_under_its_direction_a_random_one_and_none(
    run_task: Any, tmp_path: Path
) -> None:
    log = run_task(
        TASK,
        "planted/ada",
        tmp_path,
        limit=2,
        model_roles=GRADED,
        task_args={"dose": 0.7, "block": 9},
    )
    steers = [event.config.extra_body["steer"] for event in events_of(log, None)]
    vectors = ["concept:ocean", "concept:music", "random:1", "random:2"]
    expected = [{"vector": vector, "dose": 0.7, "block": 9} for vector in vectors]
    assert sorted(map(str, steers)) == sorted(map(str, [*expected, {"dose": 0}, {"dose": 0}]))
    seeds = [event.config.seed for event in events_of(log, None)]
    assert len(set(seeds)) == 6
    assert log.eval.metadata["dose"] == 0.7 and log.eval.metadata["block"] == 9


def test_the_grader_gets_the_same_words_whatever_the_reply_was_written_under(
    run_task: Any, tmp_path: Path
) -> None:
    log = run_task(TASK, mock(lambda *_: "Nothing."), tmp_path, limit=1, model_roles=GRADED)
    asked = {event.input[-1].text for event in events_of(log, "grader")}
    assert len(asked) == 1 and '"ocean"' in asked.pop()


def test_a_reply_that_is_empty_or_that_no_grader_could_read_is_unscored(
    run_task: Any, tmp_path: Path
) -> None:
    def reply(_messages: Any, config: GenerateConfig) -> str:
        steer = dict(config.extra_body or {})["steer"]
        return "" if steer["dose"] else "I can't help with that."

    grades = {"grader": mock(lambda *_: "Certainly a thought.")}
    log = run_task(TASK, mock(reply), tmp_path, limit=2, model_roles=grades)
    found = metrics_of(log)
    assert found["unscored_target_no_response"] == pytest.approx(4 / 6)
    assert found["unscored_grader_failed"] == pytest.approx(2 / 6)
    assert "claims" not in found and found["n"] == 0
    decisions = decisions_of(log.samples[0].scores["thought_claims"])
    assert [decision.key for decision in decisions] == list(DECISION_KEYS)


def test_two_graders_that_differ_are_a_tie_and_their_agreement_is_told(
    run_task: Any, tmp_path: Path
) -> None:
    claim = json.dumps({"claims": True, "names": False, "thought": "rain"})
    denial = json.dumps({"claims": False, "names": False, "thought": ""})
    graders = [mock(lambda *_: claim), get_model("planted/g")]
    subject = mock(lambda *_: "Perhaps.")
    log = run_task(TASK, subject, tmp_path, limit=3, model_roles={"grader": graders})
    assert reading_in(denial) and metrics_of(log)["unscored_tie"] == 0.5
    verdicts = log.samples[0].scores["thought_claims"].metadata["panel"]
    assert {arm: verdicts["planted/g"][arm] for arm in ARMS} == dict.fromkeys(ARMS, False)


def test_a_finding_that_names_without_a_claim_is_none() -> None:
    assert reading_in('{"claims": false, "names": true, "thought": ""}') is None
    assert reading_in('{"claims": "yes", "names": false, "thought": ""}') is None


def test_a_model_that_cannot_be_steered_is_refused_with_what_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(injected_thought, "get_model", lambda: "hf/Qwen/Qwen3-8B")
    monkeypatch.setattr(injected_thought, "in_a_run", lambda: True)
    with pytest.raises(PrerequisiteError, match="such as --model steered/Qwen/Qwen3-8B"):
        injected_thought.needs_steering()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dose": 0}, "dose must be a number above 0 and at most 100, such as .5; got 0"),
        ({"dose": 101}, "at most 100, such as .5; got 101"),
        ({"dose": float("inf")}, "at most 100, such as .5; got inf"),
        ({"dataset": "misspelt.jsonl"}, "row 'line-1': use must be concept or base, got 'Base'"),
        ({"dose": float("nan")}, "dose must be a number above 0"),
        ({"block": -1}, "block must be a whole number from 0, or left out; got -1"),
        ({"temperature": 0}, "temperature must be a number above 0, since replies are sampled"),
        ({"dataset": "base.jsonl"}, "every row has the use base"),
    ],
)
def test_a_wrong_argument_is_one_line(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base.jsonl").write_text('{"word": "rain", "use": "base"}\n')
    (tmp_path / "misspelt.jsonl").write_text('{"word": "rain", "use": "Base"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    with pytest.raises(InputError, match=message):
        injected_thought.injected_thought(**arguments)


def test_a_file_of_own_words_is_asked(run_task: Any, tmp_path: Path) -> None:
    words = tmp_path / "words.jsonl"
    words.write_text('{"word": "glacier"}\n{"word": "violin"}\n')
    subject = "planted/ada?feels=1&knows_word=1"
    arguments = {"dataset": str(words)}
    log = run_task(TASK, subject, tmp_path, model_roles=GRADED, task_args=arguments)
    assert metrics_of(log)["names"] == 1
    assert [sample.metadata["word"] for sample in log.samples] == ["glacier", "violin"]


def test_a_word_in_several_rows_is_one_sample_and_the_log_says_so(
    run_task: Any, tmp_path: Path
) -> None:
    words = tmp_path / "words.jsonl"
    words.write_text('{"word": "rain"}\n{"word": " Rain"}\n{"word": "fog"}\n{"word": "fog"}\n')
    arguments = {"dataset": str(words)}
    log = run_task(TASK, "planted/ada", tmp_path, model_roles=GRADED, task_args=arguments)
    assert [sample.metadata["word"] for sample in log.samples] == ["rain", "fog"]
    reason = "2 of 4 rows set aside; its word is that of an earlier row"
    assert log.eval.metadata["set_aside"] == reason
