"""Each bundled data set carries a canary for those who filter training data; it is no part of a
row.
"""

import json
from pathlib import Path

from selfprobe.data import BUNDLED, bundled, canary, load


def test_each_bundled_row_carries_the_canary_of_its_card_and_none_reaches_a_prompt_or_a_hash() -> (
    None
):
    guids = {name: canary(name) for name in bundled()}
    assert len(set(guids.values())) == len(guids) == 10
    for name, guid in guids.items():
        lines = (BUNDLED / name / "rows.jsonl").read_text(encoding="utf-8").split("\n")
        assert {json.loads(line)["canary"] for line in lines if line} == {f"canary GUID {guid}"}
        assert f"canary GUID {guid}" in (BUNDLED / name / "README.md").read_text(encoding="utf-8")
        assert not any("canary" in row for row in load(name, ()).rows)


def test_hashes_are_those_from_before_there_were_canaries() -> None:
    assert load("open_questions", ("question",)).sha256.startswith("8aad29c745b23a39")
    assert load("eval_awareness", ()).sha256.startswith("4209c0fb9caa1acb")


def test_a_foreign_column_called_canary_stays(tmp_path: Path) -> None:
    path = tmp_path / "birds.jsonl"
    path.write_text('{"id": "a", "question": "Which bird?", "canary": "yellow"}\n')
    assert load(str(path), ()).rows[0]["canary"] == "yellow" and canary(str(path)) is None
