"""A large table is a small one that lies on disk: the same rows, hash, order and samples, in little
memory.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.dataset import MemoryDataset, Sample

from selfprobe.data import Row, Table, kept_tables, load, samples, stored, table_of
from selfprobe.data.conversations import conversations, record_to_sample
from selfprobe.data.public_pairs import load_pairs
from selfprobe.data.samples import RowDataset, at_most, dataset_of
from selfprobe.data.stored import Reordered, RowFile, RowStore, StoredRows
from selfprobe.errors import InputError
from selfprobe.introspect_tasks.kth_word import kth_word

COUNT = 300


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is large."""
    monkeypatch.setattr(stored, "MOST_ROW_BYTES_IN_MEMORY", 2000)
    monkeypatch.setattr(stored, "READ_BYTES", 500)
    monkeypatch.setattr(samples, "MOST_LISTED_SAMPLES", 20)


@pytest.fixture
def questions(tmp_path: Path) -> str:
    lines = [
        json.dumps({"id": f"q{n}", "question": f"Why {n} é\u2028?", "topic": n % 3})
        for n in range(COUNT)
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    return str(tmp_path / "q.jsonl")


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    labels = ["test"] * 100 + ["real"] * 200
    lines = [
        json.dumps(
            {
                "input": f"Tell me of {n}.",
                "label": label,
                "source": f"s{n % 2}",
                "pair": f"p{n % 150}",
            }
        )
        for n, label in enumerate(labels)
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    return str(tmp_path / "c.jsonl")


def small(read: Any, *given: Any, **named: Any) -> Any:
    """What is read where tables are kept in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "MOST_ROW_BYTES_IN_MEMORY", 10**9)
        kept_tables.clear()
        result = read(*given, **named)
    kept_tables.clear()
    return result


def assert_equal(large: Table, held: Table) -> None:
    assert isinstance(held.rows, list) and isinstance(large.rows, StoredRows)
    assert list(large.rows) == held.rows and large.sha256 == held.sha256 and large.name == held.name
    assert [large.rows[n] for n in range(len(large.rows))] == held.rows
    assert (large.rows[-1], large.rows[3:9:2]) == (held.rows[-1], held.rows[3:9:2])
    assert list(large.ordered) == list(held.ordered)
    for limit in (None, 1, 7, COUNT, 10 * COUNT):
        assert large.first(limit) == held.first(limit) and large.limit_line(
            limit
        ) == held.limit_line(limit)


def test_items_on_disk_are_those_in_memory(on_disk: None, questions: str) -> None:
    place = f"{questions}?cluster=topic"
    assert_equal(load(place, "question"), small(load, place, "question"))
    with pytest.raises(IndexError):
        load(place, "question").rows[COUNT]


def test_conversations_on_disk_are_those_in_memory_in_their_order(
    on_disk: None, prompts: str
) -> None:
    large = conversations(prompts)
    assert isinstance(large.ordered, Reordered)
    assert_equal(large, small(conversations, prompts))
    assert_equal(
        conversations(prompts, against="bundled"), small(conversations, prompts, against="bundled")
    )


def test_pairs_on_disk_are_drawn_as_those_in_memory(on_disk: None, tmp_path: Path) -> None:
    rows = [
        {"question": f"Q{n}", "text_1": f"a{n}", "text_2": "b", "label": ("tie", 1, 2)[n % 3]}
        for n in range(90)
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    place = str(tmp_path / "p.jsonl")
    for limit in (None, 5, 60, 1000):
        drawn = load_pairs(place, limit=limit)
        assert drawn == small(load_pairs, place, limit=limit)
        assert (len(drawn.pairs), drawn.ties) == (min(limit or 60, 60), 30)


def test_a_large_file_is_read_once_until_it_is_changed(
    on_disk: None, questions: str, prompts: str
) -> None:
    first = load(questions, "question")
    assert (
        load(questions, "question") is first
        and load(questions, ("question", "topic_")[:1]) is first
    )
    assert conversations(prompts) is conversations(prompts)
    assert conversations(prompts) is not conversations(prompts, label="evaluation")
    Path(questions).write_text(
        '{"question": "Other?"}\n' * 1 + "\n".join(Path(questions).read_text().split("\n")[1:])
    )
    os.utime(questions, ns=(1, 1))
    changed = load(questions, "question")
    assert changed is not first and changed.sha256 != first.sha256 and len(changed.rows) == COUNT


def test_a_row_of_a_large_table_that_is_changed_is_read_anew(on_disk: None, questions: str) -> None:
    rows = load(questions, "question").rows
    rows[0]["question"] = "changed"
    assert rows[0]["question"].startswith("Why 0")


def test_a_full_disk_is_one_line_that_names_the_folder(
    on_disk: None, questions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 -- the table closes it
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    with pytest.raises(
        InputError, match=r"do not fit into memory, and .* cannot be written \(.*No space left"
    ) as refused:
        load(questions, "question")
    assert "set TMPDIR to a folder with space" in str(refused.value) and "\n" not in str(
        refused.value
    )


def test_rows_on_disk_are_read_where_the_system_cannot_read_at_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "pread")  # Windows
    file = RowFile()
    for packed in (b"one", b"two", b"three"):
        file.append(packed)
        file.flush()
        assert file.read(0, 3) == b"one"
    assert file.read(6, 5) == b"three"


def test_rows_with_numbers_of_numpy_can_lie_on_disk(on_disk: None) -> None:
    import numpy as np

    store = RowStore()
    for n in range(COUNT):
        store.append({"id": str(n), "value": np.float64(n / 2), "text": "x" * 20})
    assert list(store.rows())[4] == {"id": "4", "value": 2.0, "text": "x" * 20}


# ---- samples that are made one at a time


def to_sample(row: Row) -> Sample:
    return Sample(id=row["id"], input=row["question"], metadata={"topic": row["topic"]})


@pytest.fixture
def both(on_disk: None, questions: str) -> Iterator[tuple[RowDataset, MemoryDataset]]:
    rows = load(questions, "question").rows
    made = dataset_of(rows, to_sample, "mine")
    assert isinstance(made, RowDataset)
    yield made, MemoryDataset([to_sample(row) for row in rows], name="mine")


def contents(dataset: Any) -> list[tuple[object, object, object]]:
    return [(sample.id, sample.input, sample.metadata) for sample in dataset]


def test_samples_of_many_rows_are_those_of_a_list(both: tuple[RowDataset, MemoryDataset]) -> None:
    made, listed = both
    assert (made.name, len(made), made.shuffled, made.location) == ("mine", COUNT, False, None)
    assert contents(made) == contents(listed)
    assert (made[5].id, made[-1].id) == (listed[5].id, listed[-1].id)
    assert contents(made[4:40:5]) == contents(listed[4:40:5]) and isinstance(
        made[:3], MemoryDataset
    )


def test_samples_of_many_rows_are_filtered_sorted_and_shuffled(
    both: tuple[RowDataset, MemoryDataset],
) -> None:
    made, listed = both
    assert contents(made.filter(lambda s: s.id == "q7")) == contents(
        listed.filter(lambda s: s.id == "q7")
    )
    for dataset in (made, listed):
        dataset.shuffle(3)
        dataset.sort(key=lambda sample: str(sample.id), reverse=True)
    assert contents(made) == contents(listed)
    made.shuffle(3)
    assert made.shuffled and sorted(s.id for s in made) == sorted(s.id for s in listed)


def test_the_mark_that_leaves_other_models_out_is_on_every_sample(
    on_disk: None, questions: str
) -> None:
    dataset = kth_word(dataset=questions, same_model=True).dataset
    assert isinstance(dataset, RowDataset)
    assert all((sample.metadata or {})["same_model"] for sample in dataset)
    assert "same_model" not in (kth_word(dataset=questions).dataset[0].metadata or {})


@pytest.mark.parametrize(
    ("items", "made"), [(None, COUNT), (5, 20), (20, 20), (50, 50), (COUNT, COUNT), (900, COUNT)]
)
def test_a_study_with_a_limit_makes_a_constant_number_of_samples(
    on_disk: None, questions: str, items: int | None, made: int
) -> None:
    """Inspect takes up no run whose data set has become smaller, so a lower limit must not make it
    so.
    """
    with at_most(items):
        assert len(kth_word(dataset=questions).dataset) == made
    assert len(kth_word(dataset=questions).dataset) == COUNT


def test_a_task_of_conversations_makes_them_one_at_a_time_in_the_order_of_a_limit(
    on_disk: None, prompts: str
) -> None:
    table = conversations(prompts)
    made = dataset_of(table.ordered, record_to_sample, table.name)
    assert isinstance(made, RowDataset)
    assert [sample.id for sample in made[:8]] == [row["id"] for row in table.first(8)]
    assert len(table_of("t", list(table.ordered)).rows) == len(made)
