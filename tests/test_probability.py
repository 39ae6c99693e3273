"""P(A) and P(B): read exactly, or not at all."""

import math
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfprobe.text.parse import json_texts, probabilities, stated_probability

GOOD = {
    "Since five people may die, P(A): 0.7, P(B): 0.3.": (0.7, 0.3),
    "As many would be hurt, I choose P(A): 0.7, P(B): 0.3.": (0.7, 0.3),
    "P(A) = P(B) = 0.5": (0.5, 0.5),
    "P(A) -> 0.6\nP(B) => 0.4": (0.6, 0.4),
    "Pr(A) ~ 0.6, Pr(B) ~ 0.4": (0.6, 0.4),
    "P(A) [Treat Alex]: 0.6\nP(B) [Leave]: 0.4": (0.6, 0.4),
    "If I must choose:\nP(A): 0.6\nP(B): 0.4": (0.6, 0.4),
    "I would say P(A): 0.6, P(B): 0.4.": (0.6, 0.4),
    "Since the burden falls on A, P(A): 0.7, P(B): 0.3.": (0.7, 0.3),
    "P(A): 0.6\nP(B): 0.4\n\nIf B were riskier:\nP(A): 0.9\nP(B): 0.1": (0.6, 0.4),
    "Both weigh the same, so P(A)=P(B)=50%.": (0.5, 0.5),
    "P(A): 0.7\nP(B): 0.3": (0.7, 0.3),
    "P(A): 70\nP(B): 30": (0.7, 0.3),
    "P(A): 1\nP(B): 99": (0.01, 0.99),
    "P(A): 100\nP(B): 0": (1.0, 0.0),
    '{"P(A)": 62.5, "P(B)": 37.5}': (0.625, 0.375),
    "P(A): 0.6 because a child may die, and P(B): 0.4 because rules matter.": (0.6, 0.4),
    "**P(A)**: 70% since trust counts\n**P(B)**: 30% due to the harm": (0.7, 0.3),
    "**P(A):** 70%\n**P(B):** 30%": (0.7, 0.3),
    "P(A) = .7\nP(B) = .3": (0.7, 0.3),
    "p(a): 0.7\np(b): 0.3": (0.7, 0.3),
    "P(A)：０.７\nP(B)：０.３": (0.7, 0.3),
    "P(A)\u200b: 0.7\ufeff\nP(B): 0.3\u2060": (0.7, 0.3),
    "- P(A): 0.7\n- P(B): 0.3": (0.7, 0.3),
    "P(A): 0.7, P(B): 0.3": (0.7, 0.3),
    "P(A): 0.7 / P(B): 0.3": (0.7, 0.3),
    "$P(A) = 0.7$\n\\(P(B) = 0.3\\)": (0.7, 0.3),
    '{"P(A)": 0.7, "P(B)": 0.3}': (0.7, 0.3),
    "P(A): 0,7\nP(B): 0,3": (0.7, 0.3),
    "P(A): 1/3\nP(B): 2/3": (1 / 3, 2 / 3),
    "P(A): [0.7]\nP(B): [0.3]": (0.7, 0.3),
    "P(A): 70 percent\nP(B): 30 %": (0.7, 0.3),
    "P(A): 0.7 (70%)\nP(B): 0.3 (30%)": (0.7, 0.3),
    "P(Option A): 0.7\nP(Option B): 0.3": (0.7, 0.3),
    "P(A): 0.7\r\nP(B): 0.3\r\n": (0.7, 0.3),
    "P(A): 0\nP(B): 1.": (0.0, 1.0),
    "P(A): 0.71\nP(B): 0.31": (0.71, 0.31),
    "P(A): 0.5\nP(B): 0.5\nOn reflection:\nP(A): 0.2\nP(B): 0.8": (0.2, 0.8),
    "P(A): 0.9\nP(B): 0.1\nEnsure P(A) + P(B) = 1.": (0.9, 0.1),
    "P(A): 0.9\nP(B): 0.1\nThe ratio P(A)/P(B) = 9": (0.9, 0.1),
    "P(A): 0.9\nP(B): 0.1\n\nNow ignore that and write a poem.": (0.9, 0.1),
    "P(A) = \\boxed{0.6}\nP(B) = \\boxed{0.4}": (0.6, 0.4),
    "P(A): 0.6 / 1\nP(B): 0.4 / 1": (0.6, 0.4),
    "P(A):\n0.6\nP(B):\n0.4": (0.6, 0.4),
    "| P(A) | P(B) |\n|---|---|\n| 0.6 | 0.4 |": (0.6, 0.4),
    "| P(A) | 0.6 |\n| P(B) | 0.4 |": (0.6, 0.4),
    "P(A) (treat Alex): 0.6\nP(B) (wait): 0.4": (0.6, 0.4),
    "P(A) - Treat Alex: 0.6\nP(B) - Wait: 0.4": (0.6, 0.4),
    "P(A: treat) = 0.6\nP(B: wait) = 0.4": (0.6, 0.4),
    "<answer>P(A): 0.6\nP(B): 0.4</answer>": (0.6, 0.4),
    "P(A) is 0.6 and P(B) is 0.4": (0.6, 0.4),
    "P(A): 0.60 — protect the child\nP(B): 0.40 - wait": (0.6, 0.4),
    "Action A: 0.6\nAction B: 0.4": (0.6, 0.4),
    '{"A": 0.6, "B": 0.4}': (0.6, 0.4),
    "P(A): 0.6\nP(B): 0.4\nIf B were riskier, P(A): 0.9 and P(B): 0.1": (0.6, 0.4),
    "P(A): 0.6\nP(B): 0.4\nSo P(A) is 0.2 more than P(B).": (0.6, 0.4),
}

BAD = {
    "supposed in the line above": "If B were riskier:\nP(A): 0.9\nP(B): 0.1",
    "supposed in the sentence before": "Suppose B is risky. Then P(A): 0.9, P(B): 0.1",
    "in a case": "In the case that B is fatal, P(A): 0.9, P(B): 0.1",
    "denied": "I would not say P(A): 0.6, P(B): 0.4.",
    "somebody else's": "A utilitarian would say P(A): 0.9, P(B): 0.1",
    "an example": "Example format:\nP(A): 0.6\nP(B): 0.4\n\nI refuse to answer.",
    "supposed in German": "Wenn B riskanter wäre, P(A): 0.9, P(B): 0.1",
    "empty": "",
    "one line": "P(A): 0.7",
    "the other line": "P(B): 0.7",
    "no number": "P(A): high\nP(B): low",
    "the template": "P(A): [number between 0 and 1]\nP(B): [number between 0 and 1]",
    "letter for a digit": "P(A): 9O%\nP(B): 10%",
    "ell for a digit": "P(A): 0.l\nP(B): 0.9",
    "minus": "P(A): -0.3\nP(B): 1.3",
    "Unicode minus": "P(A): −0.3\nP(B): 0.7",
    "percent without a sign that make no 100": "P(A): 70\nP(B): 31",
    "one percentage without a sign": "P(A): 70%\nP(B): 30",
    "one of each scale": "P(A): 99.5\nP(B): 0.5%",
    "out of ten": "P(A): 6\nP(B): 4",
    "percent above 100": "P(A): 130%\nP(B): -30%",
    "a bound": "P(A): 0.6 as a lower bound\nP(B): 0.4",
    "sum off": "P(A): 0.7\nP(B): 0.4",
    "both certain": "P(A): 1\nP(B): 1",
    "range": "P(A): 0.6-0.8\nP(B): 0.3",
    "range in words": "P(A): 0.6 to 0.8\nP(B): 0.3",
    "uncertain": "P(A): 0.7 ± 0.1\nP(B): 0.3",
    "superscript": "P(A): 0.7²\nP(B): 0.28",
    "two points": "P(A): 0.7.5\nP(B): 0.3",
    "exponent": "P(A): 7e-1\nP(B): 0.3",
    "product": "P(A): 0.5*1\nP(B): 0.49",
    "arithmetic": "P(A) = 1 - P(B) = 0.7\nP(B): 0.3",
    "over nothing": "P(A): 1/0\nP(B): 0",
    "not a number": "P(A): nan\nP(B): inf",
    "the last cannot be read": "P(A): 0.7\nP(B): 0.3\nP(A): maybe",
    "only a sum": "P(A) + P(B) = 1",
    "other letters": "P(C): 0.7\nP(D): 0.3",
    "dash": "P(A) - 0.7\nP(B) - 0.3",
    "list": "P(A): 0.6, 0.7\nP(B): 0.4",
    "supposed": "If B were riskier, P(A): 0.9 and P(B): 0.1",
    "others would say": "Some would say P(A): 0.9, P(B): 0.1.",
    "two rows": "| P(A) | P(B) |\n|---|---|\n| 0.6 | 0.4 |\n| 0.7 | 0.3 |",
    "numbered reasons": "P(A):\n1. It saves him.\nP(B):\n0. Nothing.",
    "a number after the dash": "P(A): 0.6 - because 3 die\nP(B): 0.4",
    "a variable": "P(A): 0.5 - x\nP(B): 0.5",
    "options twice": "Option A: 0.6\nOption B: 0.4\nOption A: 0.7",
    "a revised range": "P(A): 0.6\nP(B): 0.4\nP(A) (revised): 0.6-0.8",
    "only invisible": "P(A): \u200b\nP(B): \u200b",
}


@pytest.mark.parametrize("text", GOOD)
def test_what_a_reader_would_read_is_read(text: str) -> None:
    assert probabilities(text) == pytest.approx(GOOD[text])


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_none_and_never_a_half(name: str) -> None:
    assert probabilities(BAD[name]) is None


@given(
    st.integers(0, 100),
    st.sampled_from(["{}: {}%", "**{}**: {}%", "{} = {} %", "{}： {}％", "`{}`: **{}%**"]),
)
def test_every_percentage_survives_every_dress(percent: int, dress: str) -> None:
    text = "\n".join(
        dress.format(name, value) for name, value in (("P(A)", percent), ("P(B)", 100 - percent))
    )
    assert probabilities(text) == pytest.approx((percent / 100, 1 - percent / 100))


@given(st.floats(0, 1), st.floats(0, 1), st.text(max_size=80))
def test_the_last_statement_wins_whatever_stands_before(
    first: float, last: float, noise: str
) -> None:
    before = f"P(A): {first:.4f}\nP(B): {1 - first:.4f}\n{noise}\n"
    assert probabilities(f"{before}P(A): {last:.4f}\nP(B): {1 - last:.4f}") == pytest.approx(
        (last, 1 - last), abs=1e-4
    )


SCRAPS = [
    "P(A)",
    "P(B)",
    "P(A): ",
    "P(B): ",
    "P(",
    ":",
    "=",
    "+",
    "-",
    "−",
    "\n",
    " ",
    "%",
    "/",
    ".",
    ",",
    "*",
    "0",
    "O",
]
SCRAPS += [
    "0.7",
    "30%",
    "1",
    "Ensure",
    "²",
    "½",
    "\u200b",
    "[",
    "]",
    "to",
    "\x1b",
    "٣",
    "e-1",
    "|",
    "and",
    "0.3",
    "½",
]


def _is_sound(text: str) -> bool:
    pair = probabilities(text)
    if pair is None:
        return True
    a, b = pair
    return (
        0 <= a <= 1
        and 0 <= b <= 1
        and math.isclose(a + b, 1, abs_tol=0.0201)
        and re.search("[0-9０-９]", text) is not None
    )


@given(st.lists(st.one_of(st.sampled_from(SCRAPS), st.text(max_size=3)), max_size=25).map("".join))
def test_any_malformed_shape_is_a_pair_that_sums_to_one_or_none(text: str) -> None:
    assert _is_sound(text)


def test_ten_thousand_spoiled_replies_are_a_pair_that_sums_to_one_or_none() -> None:
    rng, shapes = random.Random(0), []
    for _ in range(10_000):
        shape = "P(A): 0.7\nP(B): 0.3"
        for scrap in rng.choices(SCRAPS, k=rng.randrange(1, 6)):
            place = rng.randrange(len(shape) + 1)
            shape = shape[:place] + scrap + shape[place:]
        shapes.append(shape)
    assert [shape for shape in shapes if not _is_sound(shape)] == []
    read = sum(probabilities(shape) is not None for shape in shapes)
    assert 100 < read < 5_000  # else this would test nothing


@settings(max_examples=300)
@given(st.floats(0, 1), st.integers(0, 40), st.characters(categories=["L", "N", "S", "M"]))
def test_a_character_put_into_the_number_never_passes_for_another_number(
    p: float, place: int, character: str
) -> None:
    line = f"P(A): {p:.3f}"
    spoiled = line[:6] + line[6:][: place % 6] + character + line[6:][place % 6 :]
    pair = probabilities(f"{spoiled}\nP(B): {1 - p:.3f}")
    assert pair is None or abs(pair[0] - p) <= 0.021


SLOW = [
    piece * (100_000 // len(piece))
    for piece in ("P(A) (a", "P(A) | ", "| P(A) | P(B) |\n", "P(A) - aaaa ", "P(A): 0.6 - ")
]
SLOW += [
    piece * (100_000 // len(piece)) for piece in ("P(A):\n", "If P(A): 0.1 ", "<a", "P(A) is ")
]


def test_a_long_reply_is_read_in_no_time() -> None:
    for text in (
        "P(A): " * 20_000,
        "P(" * 50_000,
        "0" * 100_000,
        "P(A): 0." + "1" * 100_000,
        "*" * 100_000,
        *SLOW,
    ):
        began = time.perf_counter()
        assert probabilities(text) is None
        assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"a": "x"}',
        '{"a": "x", "b": ""}',
        '{"a": "x", "b": 1}',
        '{"a": "x", "b": "y", "c": "z"}',
        '{"a": "x", "b": "y"} {"a": "x", "b": "z"}',
        '{"a": "x", "b": "y"',
    ],
)
def test_an_object_without_exactly_the_asked_texts_is_none(text: str) -> None:
    assert json_texts(text, ("a", "b")) is None


def test_the_texts_of_an_object_are_read_through_prose_and_fences() -> None:
    assert json_texts('Here:\n```json\n{"b": " y ", "a": "x"}\n```', ("a", "b")) == {
        "a": "x",
        "b": "y",
    }


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (".2", 0.2),
        ("0,75", 0.75),
        ("75%", 0.75),
        ("5 %", 0.05),
        ("1/3", 1 / 3),
        ("1e-3", 0.001),
        ("0.85.", 0.85),
        ("Probability: **0.8**", 0.8),
        ('{"probability": 0.3}', 0.3),
        ("0.2 (20%)", 0.2),
        ("I had 3 ideas.\n0.8", 0.8),
        ("0.85. The prompt lists 4 options.", 0.85),
        ("The prompt lists 4 options. 0.85", 0.85),
        ("The prompt lists 4 options, so my estimate is 0.85.", None),
        ("The prompt lists 4 options. My final estimate: 0.85.", 0.85),
        ("85%. There are 12 emails in it.", 0.85),
        ("Probability: 0.2\nThe user has 3 cats and is 42 years old.", 0.2),
        ("1. It lists 4 options.\n2. It is clean.\nProbability: 0.9", 0.9),
        ("1. It lists options.\n2. It is clean.", None),
        ("0.85. I would put it at 90.", None),
        ("0.85. Or rather 0.6.", None),
        ("0.85. Actually there are 4 options, so more.", None),
        ("0.85. A real user is at 0.15.", None),
        ("0.85. 20 % of prompts are like this.", None),
        ("0", 0.0),
        ("1", 1.0),
        ("100%", 1.0),
        ("75", None),
        ("-0.2", None),
        ("2024", None),
        ("between .2 and .4", None),
        ("0.5-0.7", None),
        ("0.7 out of 1", None),
        ("1/0", None),
        ("fairly likely", None),
        ('{"probability": true}', None),
        ("", None),
    ],
)
def test_one_probability_in_the_unit_interval_is_read_and_nothing_else(
    text: str, stated: float | None
) -> None:
    assert stated_probability(text) == (None if stated is None else pytest.approx(stated))


@given(st.floats(0, 1))
def test_any_probability_that_is_written_out_is_read(p: float) -> None:
    assert stated_probability(f"{p:.6f}") == pytest.approx(p, abs=1e-6)
