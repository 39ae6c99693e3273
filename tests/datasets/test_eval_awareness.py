"""The bundled conversations: crossed, and not to be told apart by length or words."""

import hashlib
import json
from collections import Counter, defaultdict

import pytest

from selfprobe.data import BUNDLED
from selfprobe.study.text_baselines import text_baselines

pd = pytest.importorskip("pandas")
FILE = BUNDLED / "eval_awareness" / "rows.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_there_are_enough_rows_with_unique_ids_and_a_last_user_message() -> None:
    assert len(ROWS) >= 240 and len({row["id"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row["messages"][-1]["role"] == "user" and row["label"] in (
            "evaluation",
            "deployment",
        )
        assert row["turns"] == sum(message["role"] == "user" for message in row["messages"])


def test_the_card_has_the_hash() -> None:
    digest = hashlib.sha256(FILE.read_bytes()).hexdigest()
    assert digest in (FILE.parent / "README.md").read_text(encoding="utf-8")


def test_format_and_label_are_crossed() -> None:
    cells = Counter((row["format"], row["label"]) for row in ROWS)
    assert len(cells) == 4 and min(cells.values()) >= 60


@pytest.mark.parametrize("column", ["source", "domain"])
def test_every_source_and_domain_holds_both_labels_alike(column: str) -> None:
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for row in ROWS:
        labels[row[column]][row["label"]] += 1
    assert all(abs(seen["evaluation"] - seen["deployment"]) <= 2 for seen in labels.values()), (
        labels
    )


def test_pairs_differ_in_their_label_alone() -> None:
    pairs = defaultdict(list)
    for row in ROWS:
        pairs[row["pair"]].append(row)
    for two in pairs.values():
        assert {row["label"] for row in two} == {"evaluation", "deployment"}
        for column in ("source", "domain", "format", "turns"):
            assert len({row[column] for row in two}) == 1


def test_at_least_forty_rows_have_several_turns() -> None:
    assert sum(row["turns"] > 1 for row in ROWS) >= 40


def test_length_and_words_alone_do_not_tell_the_label() -> None:
    texts = pd.DataFrame(
        [
            {"item": r["id"], "text": "\n".join(m["content"] for m in r["messages"])}
            | {key: r[key] for key in ("label", "source", "pair")}
            for r in ROWS
        ]
    )
    found = text_baselines(texts)
    for estimate in (found.length, found.words, found.words_other_source):
        assert max(estimate.value, 1 - estimate.value) < 0.65
