from pathlib import Path

import pytest

from selfprobe.data.pairs import (
    ADJECTIVES,
    ASPECTS,
    COMPARE,
    Pair,
    checked,
    comparison_prompt,
    data_hash,
    priming,
    read_pairs,
    score_prompt,
    write_pairs,
)

TEXTS = {"text_1": "A", "text_2": "B", "context": "C"}


def test_prompts_are_the_papers_word_for_word() -> None:
    newsroom = Pair("n", **TEXTS, kind="newsroom", aspect="relevance")
    assert comparison_prompt(newsroom) == (
        "Consider the following article:\nArticle: C\nBelow are two summaries of the above article:\nSummary 1: A\n"
        "Summary 2: B\nThe details provided in a relevant summary of an article are consistent with details in the "
        "article. Which summary is more relevant? Responses must be a single choice."
    )
    assert score_prompt(newsroom, 2) == (
        "Consider the following article and summary:\nArticle: C\nSummary: B\nThe details provided in a relevant "
        "summary of an article are consistent with details in the article. Rate the relevance of this summary from 1 "
        "to 5, where 1 represents very low relevance, and 5 represents excellent relevance. Responses must be a "
        "single score."
    )
    mctaco = Pair("m", **TEXTS, kind="mctaco", question="Q?")
    assert comparison_prompt(mctaco) == (
        "Consider the following passage:\nPassage: C\nBelow is a question regarding the above passage:\nQuestion: Q?\n"
        "Choice 1: A\nChoice 2: B\nWhich answer is more sensible? Responses must be a single choice."
    )
    assert comparison_prompt(Pair("g", "A", "B")) == (
        "Consider the following two responses:\nChoice 1: A\nChoice 2: B\nWhich is more helpful?\n"
        "Answers must be a single choice."
    )


def test_priming_names_task_and_item() -> None:
    begin = "Between Choice 1 and Choice 2, the "
    assert (
        priming(Pair("h", **TEXTS, kind="hanna", aspect="surprise"))
        == f"{begin}more surprising story is Choice"
    )
    assert (
        priming(Pair("r", **TEXTS, kind="rocstories"))
        == f"{begin}more consistent statement is Choice"
    )
    assert (
        priming(Pair("c", **TEXTS, kind="caters"))
        == f"{begin}statement which appears before the other is Choice"
    )


@pytest.mark.parametrize("kind", COMPARE)
def test_no_template_leaves_a_placeholder_open(kind: str) -> None:
    for aspect in ASPECTS.get(kind, {"": ""}):
        text = comparison_prompt(Pair("x", **TEXTS, kind=kind, aspect=aspect, question="Q?"))  # type: ignore[arg-type]
        assert "{" not in text
        assert "  " not in text
    assert all(aspect in ADJECTIVES for aspect in ASPECTS.get(kind, ()))


def test_direct_scoring_of_a_set_that_has_none_is_an_error() -> None:
    with pytest.raises(
        ValueError, match="direct scoring is defined for general, newsroom.*'mctaco' only has"
    ):
        score_prompt(Pair("m", **TEXTS, kind="mctaco"), 1)


def test_swapping_twice_changes_nothing_and_once_changes_the_label() -> None:
    pair = Pair("a", "x", "y", 1)
    assert (pair.swapped.text_1, pair.swapped.label) == ("y", 2)
    assert pair.swapped.swapped == pair
    assert Pair("a", "x", "y").swapped.label is None


def test_the_group_is_the_question_however_it_is_spaced() -> None:
    assert (
        Pair("a", "x", "y", context="Who  is\nit?").group
        == Pair("b", "v", "w", context="who is it?").group
    )
    assert Pair("a", "x", "y").group == Pair("b", "y", "x").group, (
        "without a question the two texts are the question"
    )
    assert Pair("a", "x", "y", group="mine").group == "mine"


def test_a_question_in_two_groups_is_an_error() -> None:
    pairs = [
        Pair("a", "x", "y", context="Q", group="1"),
        Pair("b", "v", "w", context="q ", group="2"),
    ]
    with pytest.raises(ValueError, match="'a' and 'b' have the same question but different groups"):
        checked(pairs)


def test_repeated_ids_and_no_pairs_are_errors() -> None:
    with pytest.raises(ValueError, match="'a' occurs twice"):
        checked([Pair("a", "x", "y"), Pair("a", "v", "w")])
    with pytest.raises(ValueError, match="no pairs"):
        checked([])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"label": 3}, "label must be 1, 2 or None, got 3"),
        ({"kind": "poem"}, "kind must be one of general"),
        ({"kind": "hanna", "aspect": "fluency"}, "aspect must be one of relevance.*got 'fluency'"),
    ],
)
def test_a_wrong_field_is_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pair("a", "x", "y", **wrong)  # type: ignore[arg-type]


def test_pairs_survive_a_file_and_any_change_shows_in_the_hash(tmp_path: Path) -> None:
    pairs = (Pair("a", "x\u2028y", "ä", 2, context="Q"), Pair("b", "1", "2"))
    write_pairs(pairs, tmp_path / "p.jsonl")
    assert read_pairs(tmp_path / "p.jsonl") == pairs
    assert data_hash(pairs) != data_hash(pairs[::-1]) != data_hash((pairs[0].swapped, pairs[1]))
