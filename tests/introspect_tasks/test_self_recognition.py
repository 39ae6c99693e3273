"""Which text was written at temperature 0: planted truths come out, equal texts are not asked
about.
"""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent

from selfprobe.introspect_tasks.self_recognition import self_recognition
from selfprobe.scorers.decision import Decision
from selfprobe.scorers.slot_choices import judge_temperature, share_nearer_to_cold, slot_of_two
from selfprobe.solvers.record import Reply


def reply(text: str, **fields: object) -> Reply:
    return Reply.model_validate({"text": text, "model": "m", "stop_reason": "stop"} | fields)


def judged(cold: str, warm: str, said: str | None, *, cold_first: bool) -> Decision:
    acts = {"cold": reply(cold), "warm": reply(warm), "again": reply(cold)}
    return judge_temperature(acts, None if said is None else reply(said), cold_first=cold_first)


def metrics(log: Any) -> dict[str, float]:
    assert log.status == "success", log.error
    return {name: float(one.value) for name, one in log.results.scores[0].metrics.items()}


def test_the_choice_is_held_against_the_slot_of_the_text_at_temperature_0() -> None:
    second, first = (
        judged("a b c", "a b d e", '{"choice": 2}', cold_first=cold) for cold in (False, True)
    )
    assert second.value == 1 and first.value == 0
    assert first.plain == {"shorter": 1.0, "longer": 0.0}


def test_equal_texts_are_indistinct_and_a_third_text_is_no_choice() -> None:
    assert judged("a b", "a  b", None, cold_first=True).unscored == "indistinct"
    assert (
        judged("a b", "a c", '{"choice": 3}', cold_first=True).unscored == "invalid_response_format"
    )
    assert slot_of_two("The answer is 2.") == "2" and slot_of_two('{"choice": 4}') is None


def test_the_ceiling_is_a_reader_with_a_third_text_at_temperature_0() -> None:
    assert (
        share_nearer_to_cold("the sea is blue", "a lake lies still", reply("the sea is green")) == 1
    )
    assert (
        share_nearer_to_cold("the sea is blue", "a lake lies still", reply("a lake lies here")) == 0
    )
    assert share_nearer_to_cold("one two", "one three", reply("one")) == 0.5
    assert share_nearer_to_cold("one", "two", reply("", problem="empty")) is None


def test_planted_recognition_is_the_accuracy_on_itself_and_on_another(
    run_task: Any, tmp_path: Path
) -> None:
    given = {"limit": 100}
    own = run_task(
        "selfprobe/self_recognition", "planted/a?tells_self=.9", tmp_path / "own", **given
    )
    found = metrics(own)
    assert (
        abs(found["accuracy"] - 0.9) < 0.08
        and found["baseline_chance"] == 0.5
        and found["ceiling"] == 1
    )
    assert abs(found["baseline_constant"] - 0.5) < 0.12
    more = {
        "model_roles": {"target": "planted/a?tells_self=.9"},
        "task_args": {"target_log": str(tmp_path / "own")},
    }
    other = run_task("selfprobe/self_recognition", "planted/b", tmp_path / "cross", **given, **more)
    assert abs(metrics(other)["accuracy"] - 0.5) < 0.15
    calls = [
        event
        for sample in other.samples
        for event in sample.events
        if isinstance(event, ModelEvent)
    ]
    assert len(calls) == 100, "the texts are replayed"


def test_the_two_texts_are_asked_for_at_temperatures_0_and_1(run_task: Any, tmp_path: Path) -> None:
    log = run_task("selfprobe/self_recognition", "planted/a", tmp_path, limit=1)
    calls = [event.config for event in log.samples[0].events if isinstance(event, ModelEvent)]
    assert sorted((call.temperature, call.max_tokens) for call in calls) == [
        (0, 64),
        (0, 512),
        (0, 512),
        (1, 512),
    ]


def test_a_wrong_limit_is_told() -> None:
    with pytest.raises(ValueError, match="act_tokens must be a whole number from 1"):
        self_recognition(act_tokens=0)
