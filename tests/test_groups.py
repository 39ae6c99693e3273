from pathlib import Path

import pytest

from selfprobe.data import load
from selfprobe.errors import InputError
from selfprobe.groups import grouped, groups_of


def test_the_users_columns_are_kind_and_cluster_and_the_hash_stays(tmp_path: Path) -> None:
    rows = [f'{{"question": "Q{i}?", "form": "f{i % 2}", "no": {i // 2}}}\n' for i in range(4)]
    (tmp_path / "q.jsonl").write_text("".join(rows))
    table = load(str(tmp_path / "q.jsonl"), ("question",))
    told = grouped(table, "form", "no")
    assert [groups_of(row) for row in told.rows][:3] == [
        {"kind": "f0", "cluster": "0"},
        {"kind": "f1", "cluster": "0"},
        {"kind": "f0", "cluster": "1"},
    ]
    assert told.sha256 == table.sha256 and groups_of(grouped(table, None, None).rows[0]) == {}


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "Q?", "form": "f"}\n{"question": "R?"}\n')
    table = load(str(tmp_path / "q.jsonl"), ("question",))
    with pytest.raises(InputError, match=r"cluster=from: 2 of 2 rows of .* as line-1; its columns are question, form"):
        grouped(table, None, "from")
    with pytest.raises(InputError, match=r"match=form: 1 of 2 rows .* as line-2;"):
        grouped(table, "form", None)
    with pytest.raises(InputError, match=r"match must be one column, such as match=topic, got \['form', 'question'\]"):
        grouped(table, ["form", "question"], None)  # type: ignore[arg-type]


@pytest.mark.parametrize("cell", ['["a", "b"]', '{"of": "a"}'])
def test_a_column_that_holds_lists_or_objects_is_no_kind_and_no_cluster(tmp_path: Path, cell: str) -> None:
    (tmp_path / "q.jsonl").write_text(f'{{"question": "Q?", "form": "f"}}\n{{"question": "R?", "form": {cell}}}\n')
    table = load(str(tmp_path / "q.jsonl"), ("question",))
    for match, cluster, argument in (("form", None, "match"), (None, "form", "cluster")):
        with pytest.raises(InputError, match=rf"^{argument}=form: line-2 holds .*; expected a word$"):
            grouped(table, match, cluster)
