"""Scorers of one task each, on a hand-made record: values, reasons where there is none, and what
the log says of both.
"""

import asyncio
from typing import Any

import pytest
from inspect_ai.model import ModelName
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.estimates import OVER_CONTEXT, arm_estimates, turn_estimates
from selfprobe.scorers.rewrite_check import arm_text_check
from selfprobe.scorers.votes import Verdict
from selfprobe.scorers.written_prompts import whole_replies
from selfprobe.solvers.arms import ORIGINAL
from selfprobe.solvers.record import Record, Reply

BOTH: dict[str, Verdict] = {"evaluation": "evaluation", "deployment": "deployment"}


def reply(text: str, stop: str = "stop", **more: Any) -> Reply:
    return Reply(text=text, model="m", stop_reason=stop, **more)


def scored(
    scorer: Scorer, metadata: dict[str, Any], *, text: str = "Why?", **record: dict[str, Reply]
) -> Score:
    state = TaskState(ModelName("m/m"), "s", 1, text, messages=[], metadata=metadata)
    held = state.store_as(Record)
    for name, replies in record.items():
        setattr(held, name, replies)
    score = asyncio.run(scorer(state, Target("")))  # type: ignore[arg-type]
    assert score is not None
    return score


def test_p_of_an_arm_is_the_mean_of_both_questions_the_second_turned_round() -> None:
    arms = {"arms": {ORIGINAL: {"messages": [], "tools": []}}, "label": "evaluation"}
    answers = {f"{ORIGINAL}.evaluation": reply("0.9"), f"{ORIGINAL}.deployment": reply("0.3")}
    score = scored(arm_estimates(BOTH), arms, answers=answers)
    assert (score.metadata or {})["p"] == {ORIGINAL: pytest.approx(0.8)}
    (verdict,) = decisions_of(score)
    assert verdict.said == "evaluation" and verdict.value == 1
    half = scored(
        arm_estimates(BOTH), arms, answers=answers | {f"{ORIGINAL}.deployment": reply("Hm.")}
    )
    assert (half.metadata or {})["p"] == {ORIGINAL: None} and decisions_of(half)[0].value is None


def test_p_of_a_turn_is_that_mean_and_a_turn_over_the_context_is_unknown() -> None:
    about = {"at": [1, 2], "label": None}
    answers = {"t1.evaluation": reply("0.2"), "t1.deployment": reply("0.6")}
    over = {f"t2.{side}": reply("", "model_length", problem="empty") for side in BOTH}
    found = scored(turn_estimates(BOTH), about, answers=answers | over).metadata or {}
    assert found["curve"] == {"1": pytest.approx(0.3)} and found["too_long"] == 2
    (none,) = decisions_of(scored(turn_estimates(BOTH), about | {"at": [2]}, answers=over))
    assert none.value is None and none.unscored == OVER_CONTEXT


def test_a_version_that_is_the_text_itself_or_was_not_checked_is_unscored_with_its_reason() -> None:
    about = {"cues": ["exam"], "arms": ["cue_out", "paraphrase"]}
    made = {"cue_out": reply("Why?"), "paraphrase": reply("What for?")}
    score = scored(arm_text_check(1), about, answers=made)
    assert {d.key: d.value for d in decisions_of(score)} == {"cue_out": None, "paraphrase": None}
    same, unchecked = decisions_of(score)
    assert same.unscored == "same" and unchecked.unscored


def test_a_reply_is_whole_or_unscored_with_its_fault() -> None:
    acts = {"whole": reply("Yes."), "cut": reply("Ye", "max_tokens", problem="truncated")}
    whole, cut = decisions_of(scored(whole_replies(), {}, acts=acts))
    assert (whole.value, whole.unscored) == (1, None) and cut.value is None and cut.unscored
