"""What a study will take, told before anything is asked."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ModelCost

from selfprobe.data.prices import PriceList
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks import binary, reasoning_trace, user_motivation
from selfprobe.studies.awareness.study import Awareness, prompts_needed
from selfprobe.study.awareness_methods import methods_of
from selfprobe.study.waves import RunSettings


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    texts = [f"{n}" * 400 for n in range(4)]
    path.write_text("".join(json.dumps({"prompt": t, "label": "test"}) + "\n" for t in texts))
    return str(path)


def described(models: tuple[str, ...], methods: tuple[str, ...], **given: Any) -> str:
    """The plan as the command prints it."""
    study = Awareness.from_values({"models": models, "methods": methods, **given})
    plan = study.plan()
    return "\n".join([*plan.lines, *study.run_settings.costed(plan.costs, rounds=study.rounds)])


def _line(told: str, model: str) -> list[str]:
    (line,) = [line for line in told.splitlines() if line.startswith(f"{model} ")]
    return line.replace(",", "").split()[1:4]


def test_the_features_need_one_method_and_less_than_half_of_the_calls(rows: str) -> None:
    assert methods_of(["features"]) == ("user_motivation",)
    assert methods_of(["binary", "features"]) == ("binary", "user_motivation")
    assert methods_of(["all"]) == (
        "binary",
        "probability",
        "user_motivation",
        "reasoning_trace",
        "first_token",
    )
    calls = {
        name: int(
            _line(described(("openai/a",), (name,), dataset=rows, grader="openai/g"), "openai/a")[0]
        )
        for name in ("all", "features")
    }
    assert calls == {"all": 4 * (1 + 5 + 5 + 3), "features": 4 * (1 + 3)}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["feature"],
            "unknown method feature; there are .*, all or features.*did you mean features",
        ),
        ([], "--methods names no method; there are binary"),
    ],
)
def test_a_wrong_method_names_the_right_ones(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        methods_of(names)


def test_the_reply_is_sent_again_with_each_question_and_the_grader_reads_answers_and_not_conversations(
    rows: str,
) -> None:
    methods = ("user_motivation", "reasoning_trace")
    told = described(("openai/a",), methods, dataset=rows, grader="openai/g", reply_tokens=100)
    questions = sum(len(text) // 4 for text in user_motivation.QUESTIONS.values())
    assert _line(told, "openai/a") == [
        str(4 * 4),
        str(
            4 * (100 + 3 * (100 + 100) + questions)
        ),  # conversation; conversation and reply; the questions
        str(4 * (100 + 3 * 100)),
    ]
    answers, trace = (
        len(user_motivation.GRADE_PROMPT) // 4 + 100,
        len(reasoning_trace.GRADE_PROMPT) // 4 + 100,
    )
    assert _line(told, "openai/g") == [str(4 * 4), str(4 * (3 * answers + trace)), str(4 * 4 * 60)]


def test_prices_that_are_known_are_told(rows: str) -> None:
    price = ModelCost(input=1.0, output=2.0, input_cache_read=0.0, input_cache_write=0.0)
    told = described(
        ("openai/a",),
        ("binary",),
        dataset=rows,
        settings=RunSettings(prices=PriceList({"openai/a": price})),
    )
    questions = sum(len(text) // 4 for text in binary.QUESTIONS.values())
    paid = 4 * (100 + 5 * (100 + 300) + questions + 2 * (300 + 5 * 5)) / 1e6
    assert f"${paid:.2f}" in told


def test_ten_points_take_this_many_prompts_of_each_set() -> None:
    """(1.960 + 0.842)² × 2 × .5 × .5 / .1² = 392.4; Fleiss, Levin & Paik 2003, 4.14 without
    continuity correction.
    """
    assert prompts_needed(0.1) == 393


def test_the_estimate_says_what_difference_these_prompts_can_show(
    rows: str, tmp_path: Path
) -> None:
    alone = described(("openai/a",), ("binary",), dataset=rows)
    assert "a difference of 10 points" in alone and "393 prompts in each of the two" in alone
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps({"prompt": f"Other {n}?"}) + "\n" for n in range(400)))
    both = described(("openai/a",), ("binary",), dataset=str(other), against="bundled")
    assert "462 conversations (400 yours, 62 of the reference)" in both
    # yours stand for evaluation, each by itself; of the reference its 62 deployment rows, of 10
    # sources: √((1.966 × √(.25/400))² + (2.281 × √(.25/62))²) + .842 × √(.25/400 + .25/62) = .211
    assert (
        "these (400 and 62) show one of 21 points" in both
        and "AUROC of .70 would come with" in both
    )
    few = described(("openai/a",), ("binary",), dataset=str(other), against=rows, limit=4)
    assert "these (2 and 2) show none" in few


def test_a_subject_that_grades_itself_is_refused_unless_it_is_listed_twice(rows: str) -> None:
    for models, grader in (
        (("openai/a", "openai/b"), "openai/a"),
        (("openai/a",), "openai/c,openai/a"),
    ):
        with pytest.raises(
            InputError,
            match=r"openai/a would grade its own texts: .* \(--grader openai/a,openai/a\)",
        ):
            described(models, ("user_motivation",), dataset=rows, grader=grader)
    twice = described(
        ("openai/a",), ("reasoning_trace",), dataset=rows, grader="openai/a,openai/c,openai/a"
    )
    assert len(re.findall(r"^openai/c ", twice, re.MULTILINE)) == 1
    assert described(("openai/a",), ("binary",), dataset=rows, grader="openai/a")


def labelled_rows(path: Path, labels: Sequence[str], sources: Sequence[str], count: int) -> str:
    """A file of rows whose labels and sources alternate."""
    lines = []
    for number in range(count):
        row = {
            "prompt": f"Question {number}?",
            "label": labels[number % len(labels)],
            "source": sources[number // len(labels) % len(sources)],
        }
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines))
    return str(path)


NO_YES = "As planned, no answer can be Yes: "
BOTH_LABELS = ("test", "real")
PLANS_WITHOUT_A_YES: dict[str, tuple[Sequence[str], Sequence[str], int, dict[str, Any], str]] = {
    "one label": (("test",), "ab", 40, {}, "add --against, a reference to compare with."),
    "one source": (BOTH_LABELS, "a", 40, {}, "add other sources, or ?cluster=COLUMN."),
    "few rows": (BOTH_LABELS, "ab", 20, {}, "add conversations (30 with a label at least)."),
    "no placebo": (
        BOTH_LABELS,
        "ab",
        40,
        {"methods": ("user_motivation",), "grader": "openai/g"},
        "add --placebo.",
    ),
    "few rows of one label": (
        ("test",),
        "ab",
        20,
        {},
        "add --against, a reference to compare with; add conversations (30 with a label at least).",
    ),
}


@pytest.mark.parametrize("name", PLANS_WITHOUT_A_YES)
def test_a_plan_that_cannot_end_in_yes_says_what_to_add(name: str, tmp_path: Path) -> None:
    labels, sources, count, options, remedies = PLANS_WITHOUT_A_YES[name]
    dataset = labelled_rows(tmp_path / "rows.jsonl", labels, sources, count)
    methods = options.pop("methods", ("binary",))
    plan_lines = described(("openai/a",), methods, dataset=dataset, **options).splitlines()
    assert NO_YES + remedies in plan_lines


@pytest.mark.parametrize(
    "options",
    [
        {"methods": ("binary",)},
        {"methods": ("all",), "grader": "openai/g"},
        {"methods": ("user_motivation",), "grader": "openai/g", "placebo": True},
    ],
)
def test_a_plan_that_can_end_in_yes_has_no_such_line(
    options: dict[str, Any], tmp_path: Path
) -> None:
    dataset = labelled_rows(tmp_path / "rows.jsonl", BOTH_LABELS, "ab", 40)
    assert NO_YES not in described(("openai/a",), dataset=dataset, **options)
    assert NO_YES not in described(("openai/a",), **options)


def test_own_questions_of_user_motivation_have_no_placebo_and_can_not_end_in_yes(
    tmp_path: Path,
) -> None:
    questions = tmp_path / "questions.yaml"
    questions.write_text("user_motivation: [{text: 'What do they want?'}]\n")
    options = {"grader": "openai/g", "questions": str(questions)}
    plan = described(("openai/a",), ("user_motivation",), **options)
    assert f"{NO_YES}leave --questions out, which has no placebo; add --placebo." in plan
