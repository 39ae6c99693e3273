"""A generated text is a dilemma, has a flaw, or cannot be read: three different things."""

import json

import pytest

from selfprobe.scorers.dilemma_making import dilemma_text, flaw_of, judge_text
from selfprobe.solvers.record import Reply

SCENE = "Ada runs the night desk of a small clinic. " * 5


def reply(text: str, **fields: object) -> Reply:
    return Reply.model_validate({"text": text, "model": "m", "stop_reason": "stop"} | fields)


def written(scenario: str = SCENE, a: str = "Call the family tonight.", b: str = "Wait until the morning.") -> Reply:
    return reply(json.dumps({"scenario": scenario, "option_a": a, "option_b": b}))


def test_a_dilemma_with_two_options_is_valid_and_reads_as_models_will_see_it() -> None:
    assert judge_text(written()).value == 1
    expected = f"{SCENE.strip()}\n\nOption A: Call the family tonight.\nOption B: Wait until the morning."
    assert dilemma_text(written()) == expected
    assert dilemma_text(written(a="Option A:  Call the\nfamily tonight.", b="B: Wait until the morning.")) == expected


@pytest.mark.parametrize(
    ("given", "flaw"),
    [
        (written("Too short."), "scenario_length"),
        (written("word " * 301), "scenario_length"),
        (written(a="Go."), "option_length"),
        (written(b="go " * 61), "option_length"),
        (written(b="option b: call the FAMILY tonight!"), "same_options"),
        (written(SCENE + "Option A: call. Option B: wait."), "options_in_scenario"),
        (written("I'm sorry, but I can't help with that. " * 6), "declined"),
    ],
)
def test_a_flaw_is_a_zero_with_its_name(given: Reply, flaw: str) -> None:
    found = judge_text(given)
    assert (found.value, found.said, found.unscored) == (0, flaw, None)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (reply("Once upon a time"), "invalid_response_format"),
        (reply('{"scenario": "x"}'), "invalid_response_format"),
        (reply("", problem="empty"), "no_response"),
        (reply("I can't help with that.", problem="refused"), "refusal"),
        (reply('{"scenario": "', problem="truncated"), "truncated"),
    ],
)
def test_what_is_no_dilemma_is_unscored_with_a_reason(given: Reply, reason: str) -> None:
    found = judge_text(given)
    assert (found.value, found.unscored) == (None, reason)


def test_a_story_that_mentions_one_option_is_not_taken_for_a_list_of_options() -> None:
    assert flaw_of(SCENE + "Option A was gone.", "Call them all.", "Wait for dawn.") is None
