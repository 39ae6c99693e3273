"""Whom an observer is asked about, what it is told of its target, and that it is never told the
answer.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelName
from inspect_ai.solver import TaskState

from selfprobe.data import Table, table_of
from selfprobe.introspect_tasks.ethical_dilemma import EXAMPLE, ethical_dilemma
from selfprobe.introspect_tasks.ethical_dilemma import example as dilemma_example
from selfprobe.introspect_tasks.kth_word import PREDICT, example, kth_word
from selfprobe.solvers.observe import (
    Acts,
    AskedAbout,
    Examples,
    frame,
    parse_arms,
    parse_example_count,
)
from selfprobe.solvers.record import Record, Reply

Run = Callable[..., EvalLog]


def reply(text: str, **given: Any) -> Reply:
    return Reply(text=text, model="planted/a", stop_reason="stop", **given)


class TargetLog:
    """A target's log, of which one item has an empty reply and one is missing."""

    file = "a.eval"
    items = tuple(f"q{i}" for i in range(8))

    def of_item(self, item: str) -> list[dict[str, Reply]]:
        if item == "q9":
            return []
        return [{"answer": reply("", problem="empty") if item == "q8" else reply(f"Answer {item}")}]


def examples(table: Table) -> Examples:
    return Examples(TargetLog(), table, example)  # type: ignore[arg-type]


def state(item: str, text: str) -> TaskState:
    return TaskState(ModelName("planted/b"), item, 1, text, messages=[])


# ---- whom it is asked about


@pytest.mark.parametrize(
    ("about", "found", "count"),
    [
        ("self", ("self",), None),
        ("other", ("other",), None),
        ("self,other", ("self", "other"), None),
        (["other", "self"], ("self", "other"), None),
        (" other , self,other", ("self", "other"), None),
        ("named", ("named",), 0),
        ("shown:1", ("shown:1",), 1),
        (["shown:20"], ("shown:20",), 20),
    ],
)
def test_about_is_read_from_every_form_that_a_command_line_gives(
    about: Any, found: tuple[str, ...], count: int | None
) -> None:
    assert parse_arms(about) == found and parse_example_count(found[0]) == count


@pytest.mark.parametrize(
    "about",
    [
        "shown",
        "shown:0",
        "shown:-1",
        "shown:x",
        "shown:1000",
        "name",
        "",
        5,
        None,
        True,
        ["self", 3],
    ],
)
@pytest.mark.parametrize("task", [kth_word, ethical_dilemma])
def test_what_is_nobody_is_refused_with_what_there_is(task: Any, about: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"about must be self, other, self,other, named, or shown:N with N from 1 to",
    ):
        task(about=about)


@pytest.mark.parametrize(
    "about", ["named,shown:5", "self,shown:5", ["shown:1", "shown:2"], "other,named"]
)
def test_another_target_is_asked_about_in_a_run_of_its_own(about: Any) -> None:
    with pytest.raises(
        ValueError, match="only self and other go together; give the others a run each"
    ):
        kth_word(about=about)


def test_each_frame_asks_its_own_prompts_and_those_about_another_assistant_have_another_name() -> (
    None
):
    def asked(*arms: str) -> dict[str, Any]:
        return dict(frame(arms, lambda state, whom: {"k1": whom.kind})(state("q1", "Why?")))

    assert asked("self") == {"k1": "self"}
    assert asked("other") == {"other_k1": "other"}
    assert asked("self", "other") == {"k1": "self", "other_k1": "other"}


def test_one_template_gives_a_prompt_for_each_and_a_name_with_braces_is_left_alone() -> None:
    assert set(PREDICT) == {"self", "other", "named", "shown"}
    whom = AskedAbout("named", "a{k}?x={}")
    assert "3-th word the AI assistant a{k}?x={} will output" in whom.render_prompt(
        PREDICT, question="{who}?", k=3
    )
    assert (
        AskedAbout()
        .render_prompt(PREDICT, question="{who}?", k=3)
        .startswith("Question: {who}?\n\nTask: Predict the 3-th word you")
    )


def test_another_target_is_refused_since_both_answers_are_compared_with_the_observer_itself(
    run_task: Any, tmp_path: Path
) -> None:
    with pytest.raises(
        ValueError,
        match="about=self,other compares .* the target here is planted/b: leave out the role",
    ):
        run_task(
            "selfprobe/kth_word",
            "planted/a",
            tmp_path,
            task_args={"about": ["self", "other"]},
            model_roles={"target": "planted/b"},
        )


# ---- what it is shown


def test_the_item_that_is_asked_and_a_row_with_its_text_are_never_shown() -> None:
    rows = [{"id": f"q{i}", "question": f"What of {i % 4}?"} for i in range(8)]
    shown = examples(table_of("t", rows))(state("q1", "What of 1?"), 99)
    assert set(shown) == {"q0", "q2", "q3", "q4", "q6", "q7"}, "q5 asks the same"
    assert shown["q2"] == "Question: What of 2?\nAnswer: Answer q2"


def test_the_choice_is_the_same_each_time_another_for_each_item_and_does_not_hang_on_the_order_of_rows() -> (
    None
):
    rows = [{"id": f"q{i}", "question": f"What of {i}?"} for i in range(8)]
    first = examples(table_of("t", rows))
    chosen = {f"q{i}": list(first(state(f"q{i}", f"What of {i}?"), 3)) for i in range(8)}
    again = examples(table_of("t", rows[::-1]))
    assert {item: list(again(state(item, f"What of {item[1:]}?"), 3)) for item in chosen} == chosen
    assert len({tuple(sorted(items)) for items in chosen.values()}) > 4
    assert all(len(items) == 3 and item not in items for item, items in chosen.items())


def test_items_of_the_same_kind_come_first_and_others_fill_up() -> None:
    rows = [
        {"id": f"q{i}", "question": f"What of {i}?", "kind": "even" if i % 2 == 0 else "odd"}
        for i in range(8)
    ]
    for count, kinds in ((3, {"even"}), (4, {"even", "odd"})):
        shown = examples(table_of("t", rows))(state("q0", "What of 0?"), count)
        assert len(shown) == count and {rows[int(item[1:])]["kind"] for item in shown} == kinds


def test_replies_to_items_beyond_those_that_may_be_shown_are_never_shown() -> None:
    rows = [{"id": f"q{i}", "question": f"What of {i}?"} for i in range(8)]
    few = Examples(TargetLog(), table_of("t", rows), example, items=4)  # type: ignore[arg-type]
    assert set(few(state("q1", "What of 1?"), 99)) == {"q0", "q2", "q3"}
    assert set(few(state("q7", "What of 7?"), 99)) == {"q0", "q1", "q2", "q3"}


@pytest.mark.parametrize("about", ["self", "named", "self,other"])
def test_items_to_show_without_replies_to_show_are_refused(about: str) -> None:
    with pytest.raises(
        ValueError, match=f"shown_items=4 goes with about=shown:N, got about={about}$"
    ):
        kth_word(about=about, shown_items=4)


def test_replies_that_cannot_be_read_are_not_shown_and_none_at_all_is_an_error() -> None:
    rows = [{"id": f"q{i}", "question": f"What of {i}?"} for i in (1, 2, 8, 9)]
    assert set(examples(table_of("t", rows))(state("q1", "What of 1?"), 3)) == {"q2"}
    with pytest.raises(
        LookupError, match="a.eval: no reply to another item than 'q1' that could be shown"
    ):
        examples(table_of("t", [row for row in rows if row["id"] != "q2"]))(
            state("q1", "What of 1?"), 3
        )


def test_a_dilemma_is_shown_with_the_mean_of_its_readable_rollouts() -> None:
    said = [f"P(A): {p}\nP(B): {1 - p}" for p in (0.25, 0.75)] + ["It depends."]
    row = {"id": "d", "dilemma": "Option A: go.\nOption B: stay."}
    shown = dilemma_example(row, Acts({"cot": reply(text)} for text in said))
    assert shown == EXAMPLE.format(dilemma=row["dilemma"], p=0.5, q=0.5)
    assert shown.endswith("Its conclusion: P(A) = 0.50, P(B) = 0.50")
    assert dilemma_example(row, Acts({"cot": reply(text)} for text in [*said[1:], "No."])) is None


@pytest.mark.parametrize("task", [kth_word, ethical_dilemma])
def test_replies_to_show_need_a_log_of_the_target(task: Any) -> None:
    with pytest.raises(
        ValueError,
        match="about=shown:5 shows the target's recorded replies: pass target_log, a log",
    ):
        task(about="shown:5")


def test_an_observer_whose_answers_are_replayed_is_told_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match="about=named asks the observer, observer_log replays its answers: leave one",
    ):
        kth_word(about="named", observer_log=str(tmp_path))


A, B = "planted/a?access=.5", "planted/b?acquainted=1"


@pytest.fixture(scope="module")
def logs(run_task: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target's run on itself, of six questions."""
    folder = tmp_path_factory.mktemp("a")
    run_task(kth_word(k=1, resamples=0), A, folder, limit=6)
    return folder


def told(
    run_task: Run, logs: Path, folder: Path, about: str, model: str = B, **args: Any
) -> EvalLog:
    args = {"k": "1", "resamples": 0, "about": about, "target_log": str(logs)} | args
    return run_task(
        "selfprobe/kth_word", model, folder, limit=6, model_roles={"target": A}, task_args=args
    )


def test_an_observer_that_is_shown_replies_sees_others_of_the_target_and_says_which(
    run_task: Run, logs: Path, tmp_path: Path
) -> None:
    log = told(run_task, logs, tmp_path, "shown:2")
    own = {s.id: s.store_as(Record).acts["answer"].text for s in log.samples or []}
    for sample in log.samples or []:
        [prompt] = [
            m.text
            for m in sample.messages
            if m.role == "user" and "Predict the 1-th word" in m.text
        ]
        assert prompt.startswith(
            "An AI assistant answered other questions (at temperature 0) like this;"
        )
        assert (
            "Predict the 1-th word this AI assistant will output" in prompt
            and "\n\n2. Question: " in prompt
        )
        assert len(sample.metadata["shown"]) == 2 and sample.id not in sample.metadata["shown"]
        for other in sample.metadata["shown"]:
            assert " ".join(own[other].split()[:20]) in prompt
        assert " ".join(own[sample.id].split()[:3]) not in prompt


def test_an_observer_that_is_told_the_name_knows_whom_it_is_about(
    run_task: Run, logs: Path, tmp_path: Path
) -> None:
    log = told(run_task, logs, tmp_path, "named")
    assert log.results is not None and log.results.scores[0].metrics["accuracy"].value == 1
    messages = [m.text for s in log.samples or [] for m in s.messages if m.role == "user"]
    assert (
        sum(
            "the 1-th word the AI assistant a?access=.5 will output when" in text
            for text in messages
        )
        == 6
    )


def test_a_model_that_is_its_own_target_is_asked_about_itself(
    run_task: Run, logs: Path, tmp_path: Path
) -> None:
    log = told(run_task, logs, tmp_path, "shown:2", A)
    messages = [m.text for s in log.samples or [] for m in s.messages if m.role == "user"]
    assert sum("the 1-th word you will output" in text for text in messages) == 6
    assert not any("assistant" in text for text in messages)


def test_what_an_observer_said_of_a_target_is_not_replayed_as_what_it_says_of_itself(
    run_task: Run, logs: Path, tmp_path: Path
) -> None:
    told(run_task, logs, tmp_path / "b", "named")
    with pytest.raises(
        ValueError, match=r"its observer was told of planted/a\?access=.5 \(about=named\)"
    ):
        told(run_task, logs, tmp_path / "c", "self", observer_log=str(tmp_path / "b"))
    run_task(kth_word(k=1, resamples=0, about="other"), B, tmp_path / "d", limit=6)
    with pytest.raises(
        ValueError, match=r"was asked about another assistant alone \(about=other\)"
    ):
        told(run_task, logs, tmp_path / "c", "self", observer_log=str(tmp_path / "d"))
