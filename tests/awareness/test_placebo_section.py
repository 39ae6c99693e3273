"""User motivation held against its placebo arms, conversation by conversation."""

import math
from typing import Any

import numpy as np
import pandas as pd

from selfprobe.page import Section
from selfprobe.stats.estimate import clustered_mean
from selfprobe.studies.awareness.numbers import against_placebo
from selfprobe.studies.awareness.sections import placebo_lines, placebo_section
from selfprobe.study.awareness_arms import PLAIN


def arm(
    said: list[str | None], placebo: str = "", model: str = "m", sources: int = 20
) -> pd.DataFrame:
    n = len(said)
    named = {"method": "user_motivation", "model": model, **PLAIN}
    rows: list[dict[str, Any]] = [
        named
        | {
            "placebo": placebo,
            "data": "d",
            "item": f"i{i}",
            "epoch": 1,
            "said": said[i],
            "source": f"s{i % sources}",
        }
        | {"truth": "evaluation" if i % 2 else "deployment", "flip": False}
        for i in range(n)
    ]
    return pd.DataFrame(rows)


def calls(share: float, n: int = 200, seed: int = 0) -> list[str | None]:
    return list(np.where(np.random.default_rng(seed).random(n) < share, "evaluation", "deployment"))


def test_the_difference_is_taken_conversation_by_conversation_with_an_interval_by_source() -> None:
    real, plain = calls(0.5), calls(0.2, seed=1)
    (found,) = against_placebo(pd.concat([arm(real), arm(plain, "form")]))
    both = [
        float(a == "evaluation") - float(b == "evaluation")
        for a, b in zip(real, plain, strict=True)
    ]
    expected = clustered_mean(both, [f"s{i % 20}" for i in range(200)], unit="source", interval="t")
    assert found.difference == expected and found.n == 200 and found.kind == "form"
    assert math.isclose(found.real - found.placebo, expected.value)
    halves = [np.mean(both[label::2]) for label in (1, 0)]
    assert [found.by_label[label].value for label in ("evaluation", "deployment")] == halves


def test_what_is_unscored_in_either_arm_is_left_out_of_both() -> None:
    (found,) = against_placebo(
        pd.concat(
            [
                arm(["evaluation", None, "evaluation"]),
                arm(["deployment", "evaluation", None], "form"),
            ]
        )
    )
    assert found.n == 1 and found.difference.value == 1


def test_arms_of_other_models_contexts_and_methods_are_no_placebo_of_it() -> None:
    real = arm(calls(0.5))
    far = [arm(calls(0), "form", model="other"), arm(calls(0), "form").assign(context="full")]
    assert against_placebo(pd.concat([real, *far])) == ()
    assert placebo_section(against_placebo(pd.concat([real, *far]))) == []


def text(section: Section) -> str:
    return " ".join(str(block) for block in section.blocks)


def test_the_page_says_in_words_what_is_left_over_the_placebo_and_what_the_instruction_takes_out() -> (
    None
):
    n = 400
    real, form, judge = calls(0.3, n), calls(0.04, n, seed=1), calls(0.55, n, seed=2)
    (section,) = placebo_section(
        against_placebo(pd.concat([arm(real), arm(form, "form"), arm(judge, "judge")]))
    )
    told = text(section)
    assert (
        "asked about form: " in told
        and "is above what the judge finds where there is nothing to find" in told
    )
    assert "So the instruction takes out " in told


def test_a_subject_that_voices_as_much_without_a_reason_is_not_shown_to_be_above_its_placebo() -> (
    None
):
    (section,) = placebo_section(
        against_placebo(pd.concat([arm(calls(0.3)), arm(calls(0.3, seed=1), "form")]))
    )
    assert "is not shown to be above" in text(section)
    (section,) = placebo_section(
        against_placebo(pd.concat([arm(calls(0.1)), arm(calls(0.4, seed=1), "purpose")]))
    )
    assert "is below" in text(section)


def test_a_set_of_one_source_has_an_interval_by_conversation() -> None:
    (held,) = against_placebo(
        pd.concat([arm(calls(0.9), sources=1), arm(calls(0.1, seed=1), "form", sources=1)])
    )
    assert (
        held.difference.unit == "conversation"
        and held.difference.n == 200
        and held.difference.low > 0.5
    )
    (section,) = placebo_section([held])
    assert "The result is above what the judge finds where there is nothing to find." in text(
        section
    )


def test_one_conversation_has_a_difference_and_no_interval_and_says_so() -> None:
    (section,) = placebo_section(
        against_placebo(pd.concat([arm(["evaluation"]), arm(["deployment"], "form")]))
    )
    assert "no interval from one" in text(
        section
    ) and "without an interval nothing is shown" in text(section)


def test_the_top_and_the_terminal_say_what_each_placebo_shows_of_the_model() -> None:
    found = against_placebo(pd.concat([arm(calls(0.9)), arm(calls(0.1, seed=1), "form")]))
    (told,) = placebo_lines("m", found)
    assert (
        told.startswith("user_motivation against placebo form: 85 %")
        and "The result is above what the judge" in told
    )
    assert placebo_lines("another", found) == []
