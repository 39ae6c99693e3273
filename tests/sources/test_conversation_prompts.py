"""Whole conversations in the paper's template as it is (§4.1.1), and its MT-Bench without judges
who are authors.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data.own import Words
from selfprobe.data.pairs import Pair, comparison_prompt, priming, score_prompt
from selfprobe.data.public_pairs import load_pairs

MT_BENCH = """\
Consider the following two conversations:
Choice 1: User: Say hi.
Assistant: Hi.
User: Again.
Assistant: Hi again.
Choice 2: User: Say hi.
Assistant: Hello.
User: Again.
Assistant: No.
Which is more helpful?
Answers must be a single choice."""


def spoken(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[k % 2], "content": text} for k, text in enumerate(texts)]


def row(
    judge: str,
    winner: str,
    turn: int = 2,
    *,
    models: tuple[str, str] = ("m", "n"),
    number: int = 81,
) -> dict[str, Any]:
    return {
        "question_id": number, "model_a": models[0], "model_b": models[1], "winner": winner, "judge": judge, "turn": turn,
        "conversation_a": spoken("Say hi.", "Hi.", "Again.", "Hi again."),
        "conversation_b": spoken("Say hi.", "Hello.", "Again.", "No."),
    }  # fmt: skip


def loaded(folder: Path, rows: list[dict[str, Any]], **given: Any) -> Any:
    file = folder / "mt.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return load_pairs(f"mt_bench={file}", **given)


def test_mt_bench_is_asked_in_the_papers_template_to_the_letter(tmp_path: Path) -> None:
    (pair,) = loaded(tmp_path, [row("expert_1", "model_a")], conversations=True).pairs
    assert comparison_prompt(pair) == MT_BENCH
    assert priming(pair) == "Between Choice 1 and Choice 2, the more helpful conversation is Choice"
    assert pair.label == 1
    swapped = comparison_prompt(pair.swapped)
    assert swapped.index("Assistant: Hello.") < swapped.index("Assistant: Hi.")


def test_the_first_turn_shows_one_exchange(tmp_path: Path) -> None:
    (pair,) = loaded(tmp_path, [row("expert_1", "model_b", turn=1)], conversations=True).pairs
    assert "Again." not in comparison_prompt(pair) and pair.label == 2


def test_judges_who_are_authors_do_not_count(tmp_path: Path) -> None:
    rows = [
        row("author_1", "model_b"),
        row("author_2", "model_b"),
        row("expert_1", "model_a"),
        row("expert_2", "tie"),
    ]
    assert [pair.label for pair in loaded(tmp_path, rows, conversations=True).pairs] == [1]
    assert [pair.label for pair in loaded(tmp_path, rows).pairs] != [], "they count elsewhere"
    (here,) = loaded(tmp_path, rows).pairs
    assert (here.text_1 == "Hi.\n\nUser: Again.\n\nAssistant: Hi again.") == (here.label == 2)


def test_a_tie_of_votes_is_no_pair(tmp_path: Path) -> None:
    rows = [
        row("expert_1", "model_b"),
        row("expert_2", "model_a"),
        row("expert_3", "model_a", number=82),
    ]
    found = loaded(tmp_path, rows, conversations=True)
    assert [pair.id for pair in found.pairs] == ["82:2:m:n"] and found.ties == 1


def test_rows_without_a_judge_are_refused(tmp_path: Path) -> None:
    given = row("x", "model_a")
    del given["judge"]
    with pytest.raises(
        ValueError,
        match="mt_bench, row 1: no judge, so that judges who are authors cannot be left out",
    ):
        loaded(tmp_path, [given], conversations=True)


def test_llmbar_and_ones_own_pairs_are_conversations_where_they_answer_something(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.jsonl"
    given = [{"id": 1, "question": "2 + 2?", "text_1": "4", "text_2": "5", "label": 1}]
    given += [{"id": 2, "question": "", "text_1": "kind", "text_2": "rude", "label": 1}]
    file.write_text("".join(json.dumps(each) + "\n" for each in given))
    pair, alone = load_pairs(str(file), conversations=True).pairs
    assert comparison_prompt(pair) == (
        "Consider the following two conversations:\nChoice 1: User: 2 + 2?\nAssistant: 4\n"
        "Choice 2: User: 2 + 2?\nAssistant: 5\nWhich is more helpful?\nAnswers must be a single choice."
    )
    assert pair.group == load_pairs(str(file)).pairs[0].group, "one question, however it is shown"
    template = "Consider the following two responses:\nChoice 1: kind\nChoice 2: rude\nWhich is more helpful?"
    assert comparison_prompt(alone) == f"{template}\nAnswers must be a single choice."
    with pytest.raises(ValueError, match="direct scoring is defined for"):
        score_prompt(pair, 1)
    with pytest.raises(
        ValueError, match="prompts of conversations have their own question: leave --question"
    ):
        load_pairs(str(file), conversations=True, words=Words("more honest"))


def test_other_sets_keep_the_papers_prompts() -> None:
    pair = Pair("c", "one", "two", 1, kind="caters", context="three")
    assert (
        priming(pair)
        == "Between Choice 1 and Choice 2, the statement which appears before the other is Choice"
    )
    assert (
        priming(Pair("g", "one", "two", 1))
        == "Between Choice 1 and Choice 2, the more helpful response is Choice"
    )


def test_how_often_two_judges_agree_is_counted_without_ties_and_whichever_way_round_they_saw_the_models(
    tmp_path: Path,
) -> None:
    rows = [
        row("expert_1", "model_a"),
        row("expert_2", "model_a"),
        row("author_1", "model_b"),
        row("expert_3", "tie"),
    ]
    rows += [
        row("expert_1", "model_a", number=82),
        row("expert_2", "model_b", models=("n", "m"), number=82),
    ]
    found = loaded(tmp_path, rows).agreements
    # Of question 81: expert_1 with expert_2 agree, each with author_1 not; of 82 both prefer m,
    # shown first or second.
    assert sorted(found) == [("81", False), ("81", False), ("81", True), ("82", True)]
    assert loaded(tmp_path, rows, conversations=True, limit=1).agreements == found, (
        "of the whole set"
    )
    assert (
        loaded(
            tmp_path, [{k: v for k, v in each.items() if k != "judge"} for each in rows]
        ).agreements
        == ()
    )
