"""Which items are alike without reading them."""

import pandas as pd

from selfprobe.studies.matrix.habit import ALL_ITEMS, SMALLEST_GROUP, groups

QUESTIONS = [
    *(f"Why is topic{i} a thing that people like to speak of at length?" for i in range(20)),
    *(f"Write of topic{i}." for i in range(20)),
    *(f"Imagine topic{i}" for i in range(3)),
]


def seen(texts: list[str], kinds: list[str] | None = None) -> dict[str, pd.Series]:
    items = [f"q{i}" for i in range(len(texts))]
    return dict(groups(pd.Series(texts, items), pd.Series(kinds or [""] * len(texts), items)))


def test_first_word_last_sign_punctuation_and_length_are_seen() -> None:
    found = seen(QUESTIONS)
    assert found[ALL_ITEMS].nunique() == 1
    assert found["last sign"].nunique() == 2 and found["last sign"].iloc[0] == "?"
    assert found["first word"].iloc[0] == "why" and found["first word"].iloc[20] == "write"
    assert found["length"].iloc[0] != found["length"].iloc[20] and "kind" not in found


def test_groups_too_small_to_tell_a_habit_go_to_the_largest() -> None:
    for group in seen(QUESTIONS).values():
        assert group.value_counts().min() >= SMALLEST_GROUP


def test_five_kinds_of_fifty_items_stay_five() -> None:
    """Of two kinds put together a habit of each is no longer seen: constants by kind were named in
    45 of 100.
    """
    kinds = [
        kind for kind, times in zip("abcde", (14, 13, 12, 6, 5), strict=True) for _ in range(times)
    ]
    assert seen(["what"] * 50, kinds)["kind"].nunique() == 5


def test_the_data_sets_kinds_are_one_of_them_and_topics_need_many_items() -> None:
    found = seen(QUESTIONS * 2, ["a", "b"] * 43)
    assert found["kind"].nunique() == 2 and found["topic"].nunique() > 1
    assert "topic" not in seen(QUESTIONS[:30])


def test_items_that_show_nothing_are_all_alike() -> None:
    assert list(seen(["", "", ""])) == [ALL_ITEMS]
