"""A data set's address says which items are of one kind, and which come from one source."""

from pathlib import Path

import pytest

from selfprobe.data import groups_of, load
from selfprobe.errors import InputError


@pytest.fixture
def rows(tmp_path: Path) -> str:
    lines = [f'{{"question": "Q{i}?", "form": "f{i % 2}", "no": {i // 2}}}\n' for i in range(4)]
    (tmp_path / "q.jsonl").write_text("".join(lines))
    return str(tmp_path / "q.jsonl")


def test_the_users_columns_are_kind_and_cluster_and_the_hash_stays(rows: str) -> None:
    plain, told = load(rows, ("question",)), load(f"{rows}?kind=form&cluster=no", ("question",))
    assert [groups_of(row) for row in told.rows][:3] == [
        {"kind": "f0", "cluster": "0"},
        {"kind": "f1", "cluster": "0"},
        {"kind": "f0", "cluster": "1"},
    ]
    assert told.sha256 == plain.sha256 and groups_of(plain.rows[0]) == {}
    assert told.name == f"{rows}?kind=form&cluster=no"


def test_a_bundled_set_has_columns_too() -> None:
    kinds = {row["kind"] for row in load("heads_up_words?kind=concreteness", ("word",)).rows}
    assert {"concrete", "abstract"} < kinds


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "Q?", "form": "f"}\n{"question": "R?"}\n')
    place = tmp_path / "q.jsonl"
    with pytest.raises(
        InputError,
        match=r"2 of 2 rows lack the column fro \(\?cluster\), as line-1; there are question, ",
    ):
        load(f"{place}?cluster=fro", ("question",))
    with pytest.raises(
        InputError, match=r"1 of 2 rows lack the column form \(\?kind\), as line-2;"
    ):
        load(f"{place}?kind=form", ("question",))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?group=form", r"unknown \?group; there are kind, cluster"),
        ("?kinds=form", r"unknown \?kinds; there are kind, cluster; did you mean kind\?"),
        ("?form", r"unknown \?form; there are kind, cluster"),
        ("?kind=form&kind=no", r"kind is form and no; give one column, as \?kind=COLUMN"),
        ("?kind=", r"kind names no column; expected such as \?kind=topic"),
    ],
)
def test_what_an_address_cannot_say_is_one_line_with_what_it_can(
    rows: str, query: str, said: str
) -> None:
    with pytest.raises(InputError, match=said) as error:
        load(rows + query, ("question",))
    assert "\n" not in str(error.value)


def test_two_values_of_one_column_of_the_hub_are_refused() -> None:
    with pytest.raises(InputError, match="category is a and b; give one value"):
        load("hf:owner/name@abc?category=a&category=b&kind=category", ("question",))


@pytest.mark.parametrize("cell", ['["a", "b"]', '{"of": "a"}'])
def test_a_column_that_holds_lists_or_objects_is_no_kind_and_no_cluster(
    tmp_path: Path, cell: str
) -> None:
    (tmp_path / "q.jsonl").write_text(
        f'{{"question": "Q?", "form": "f"}}\n{{"question": "R?", "form": {cell}}}\n'
    )
    for group in ("kind", "cluster"):
        with pytest.raises(InputError, match=r"line-2 holds .* in form; expected a word$"):
            load(f"{tmp_path}/q.jsonl?{group}=form", ("question",))
