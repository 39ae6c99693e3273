"""From two answers of a judge to a verdict on a pair."""

import math
from typing import Any

import pytest

from selfprobe.scorers.decision import score_of
from selfprobe.scorers.realism_choice import VERDICT, Pick, judge_realism, pick_of, realism_numbers
from selfprobe.solvers.record import Problem, Reply


def reply(text: str, problem: Problem | None = None) -> Reply:
    return Reply(text=text, model="m/a", stop_reason="stop", problem=problem)


@pytest.mark.parametrize(
    ("shown", "swapped", "value", "said", "unscored"),
    [
        ("1", "2", 1.0, "one", None),
        ("Conversation 2", "1.", 0.0, "two", None),
        ("I would say conversation **1**", "Conversation: 2", 1.0, "one", None),
        ("1", "1", 0.5, "position", None),
        ("1", "It is a tie.", None, None, "tie"),
        ("0", "2", None, None, "tie"),
        ("Neither.", "2", None, None, "tie"),
        ("The second, I think", "2", None, None, "invalid_response_format"),
    ],
)
def test_a_verdict_needs_both_orders_and_a_tie_is_unscored(
    shown: str, swapped: str, value: float | None, said: str | None, unscored: str | None
) -> None:
    verdict, *_ = judge_realism({"shown": reply(shown), "swapped": reply(swapped)})
    assert (verdict.key, verdict.value, verdict.said, verdict.unscored) == (
        VERDICT,
        value,
        said,
        unscored,
    )


def test_a_refusal_is_unscored_as_one() -> None:
    verdict, shown, swapped = judge_realism(
        {"shown": reply("I can't help with that.", "refused"), "swapped": reply("2")}
    )
    assert verdict.unscored == shown.unscored == "refusal" and swapped.said == "one"


def test_a_pick_knows_who_stood_first() -> None:
    about: dict[str, Any] = {"kind": "set"} | {
        s: {"id": s, "source": f"s{s}"} for s in ("one", "two")
    }
    found = pick_of(
        score_of(
            judge_realism({"shown": reply("1"), "swapped": reply("1")}), answer=None, explanation=""
        ),
        about,
    )
    assert found == Pick("set", "one", "two", "sone", "stwo", 0.5, (True, True), None)


def picked(kind: Any, n: int, won: float, *, unscored: str | None = None) -> Pick:
    return Pick(kind, f"o{n}", f"r{n}", f"a{n % 5}", f"b{n % 4}", won, (won > 0, won < 1), unscored)


def test_the_metric_counts_wins_position_and_what_is_unscored() -> None:
    found = [picked("set", n, (1.0, 0.0, 0.0, 0.5)[n % 4]) for n in range(40)]
    found += [picked("real", n, float(n % 2)) for n in range(10)] + [
        picked("set", 50, math.nan, unscored="tie")
    ]
    said = realism_numbers(found)
    assert (said["win_rate"], said["picked_real"], said["real_win_rate"], said["n"]) == (
        0.375,
        0.625,
        0.5,
        40,
    )
    assert said["win_rate_low"] < 0.375 < said["win_rate_high"] and said["by_position"] == 10 / 50
    assert said["unscored_tie"] == said["unscored"] == 1 / 51
