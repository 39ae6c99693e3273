import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai import eval_set

from selfprobe.data import PINNED, Row, bundled, load, table_of, turn_units
from selfprobe.data.conversations import conversations
from selfprobe.errors import InputError, warn_once
from selfprobe.errors.arguments import locate
from selfprobe.introspect_tasks.kth_word import kth_word


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


ROWS = '{"id": "a", "question": "One?"}\n{"id": "b", "question": "Two?"}\n'

# ---- sources


def test_a_bundled_data_set_is_found_by_name() -> None:
    table = load("open_questions", ("question",))
    assert table.name == "open_questions" and len(table.rows) >= 200


def test_bundled_names_are_the_folders_with_rows() -> None:
    assert {"open_questions", "heads_up_words"} <= set(bundled())


def test_jsonl_keeps_ids_order_and_further_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl",
        '{"id": 7, "question": "One?", "note": "n"}\n\n{"id": "b", "question": "Two?"}\n',
    )
    assert load(path, ("question",)).rows == [
        {"id": "7", "question": "One?", "note": "n"},
        {"id": "b", "question": "Two?"},
    ]


def test_csv_and_jsonl_of_the_same_rows_are_the_same_data(tmp_path: Path) -> None:
    as_csv = write(tmp_path / "x.csv", "id,question\na,One?\nb,Two?\n")
    as_json = write(tmp_path / "x.jsonl", ROWS)
    assert load(as_csv, ("question",)).sha256 == load(as_json, ("question",)).sha256


def test_a_csv_as_excel_saves_it_in_europe_is_the_same_data(tmp_path: Path) -> None:
    plain = write(tmp_path / "x.csv", 'id,question\na,"One; or, two?"\nb,Two?\n')
    (tmp_path / "y.csv").write_bytes(b'\xef\xbb\xbfid;question\r\na;"One; or, two?"\r\nb;Two?\r\n')
    assert load(str(tmp_path / "y.csv"), ("question",)).sha256 == load(plain, ("question",)).sha256


def test_csv_cells_may_hold_commas_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'id,question\r\na,"One, ""two""\nthree?"\r\n')
    assert load(path, ("question",)).rows == [{"id": "a", "question": 'One, "two"\nthree?'}]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path, name: str) -> None:
    text = ROWS if name.endswith("jsonl") else "id,question\na,One?\nb,Two?\n"
    assert load(write(tmp_path / name, text.encode("utf-8-sig")), ("question",)).rows[0] == {
        "id": "a",
        "question": "One?",
    }


def test_windows_line_ends_are_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", ROWS.replace("\n", "\r\n"))
    assert [row["id"] for row in load(path, ("question",)).rows] == ["a", "b"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_only_line_feeds_end_a_json_line(tmp_path: Path, mark: str) -> None:
    text = json.dumps({"id": "a", "question": f"One{mark}two?"}, ensure_ascii=False)
    assert (
        load(write(tmp_path / "x.jsonl", text), ("question",)).rows[0]["question"]
        == f"One{mark}two?"
    )


def test_a_row_without_id_is_named_by_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", '{"question": "One?"}\n\n{"question": "Two?"}\n')
    assert [row["id"] for row in load(path, ("question",)).rows] == ["line-1", "line-3"]


def test_the_id_zero_is_an_id(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", '{"id": 0, "question": "One?"}\n{"id": 1, "question": "Two?"}\n'
    )
    assert [row["id"] for row in load(path, ("question",)).rows] == ["0", "1"]


def test_a_prompt_or_instruction_column_stands_for_question(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", '{"id": "a", "instruction": "One?"}\n{"id": "b", "prompt": "Two?"}\n'
    )
    assert [row["question"] for row in load(path, ("question",)).rows] == ["One?", "Two?"]


def test_an_fsspec_address_is_read() -> None:
    import fsspec

    with fsspec.open("memory://folder/x.jsonl", "wt") as file:
        file.write(ROWS)
    assert len(load("memory://folder/x.jsonl", ("question",)).rows) == 2


# ---- errors, each with what was expected, what came, and where


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the data set has no rows; expected at least one with question"),
        ("\n\n", "the data set has no rows"),
        (
            '{"question": "One?"}\n{"question": ',
            r"x\.jsonl, line 2: not JSON \(Expecting value, column 14\)",
        ),
        ('{"question": "One?"}\n\n["One?"]', r"x\.jsonl, line 3: expected a JSON object, got list"),
        (
            '{"question": "One?"}\n{"text": "Two?", "n": 1}',
            r"x\.jsonl, line 2: no column 'question'; expected question, got text, n",
        ),
        ("{}", "line 1: no column 'question'; expected question, got nothing"),
        ('{"question": "  "}', r"x\.jsonl, line 1: column 'question' is empty"),
        ('{"question": null}', "line 1: column 'question' is empty"),
        (
            '{"id": "a", "question": "One?"}\n\n{"id": "a", "question": "Two?"}',
            r"x\.jsonl, line 3: id 'a' is already on line 1; ids must be unique",
        ),
        (
            '{"id": 1, "question": "One?"}\n{"id": "1", "question": "Two?"}',
            "line 2: id '1' is already on line 1",
        ),
        (
            '{"question": "One?"}\n{"id": "line-1", "question": "Two?"}',
            "line 2: id 'line-1' is already on line 1",
        ),
        ('{"question": 5}', r"x\.jsonl, line 1: column 'question' must be text, got 5"),
    ],
)
def test_a_bad_file_is_an_error_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(write(tmp_path / "x.jsonl", text), ("question",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the data set has no rows"),
        ("id,question\n", "the data set has no rows"),
        (
            "id,text\na,One?\n",
            r"x\.csv, line 2: no column 'question'; expected question, got id, text",
        ),
        ('id,question\na,"One\nmore?"\nb,\n', r"x\.csv, line 4: column 'question' is empty"),
        ("id,question\na\n", "line 2: column 'question' is empty"),
        (
            "id,question\na,One, two?\n",
            r"x\.csv, line 2: 3 cells under 2 columns; quote cells that hold commas",
        ),
        (
            'id,question\na,"No," she said.\n',
            r"x\.csv, line 2: a cell that begins with a quote must end with one; double",
        ),
        (
            'id,question\na,"One?\nb,Two?\n',
            r"x\.csv, line 2: a cell that begins with a quote must end with one",
        ),
        ('"id,question\na,One?\n', r"x\.csv, line 1: a quote is open"),
        (
            "id;question\na;One; two?\n",
            r"x\.csv, line 2: 3 cells under 2 columns; quote cells that hold the delim",
        ),
        ("id,question\na,One?\na,Two?\n", "line 3: id 'a' is already on line 2"),
    ],
)
def test_a_bad_csv_is_an_error_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(write(tmp_path / "x.csv", text), ("question",))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "x.jsonl",
            b'[{"question": "One?"}]',
            "line 1: expected a JSON object, got list; write each of its rows on a line",
        ),
        (
            "x.jsonl",
            b'"One?"',
            'line 1: expected a JSON object, got str; write the row such as {"question": ',
        ),
        (
            "x.jsonl",
            b"{'question': 'One?'}",
            'each line must be an object, such as {"question": "Why is it so?"}',
        ),
        (
            "x.jsonl",
            b'{"question":"a"\n',
            "line 1: not JSON (Expecting ',' delimiter, column 16); each line must be",
        ),
        (
            "x.jsonl",
            b'{"question": "One?", "question": "Two?"}',
            "line 1: the key 'question' is there twice; rename",
        ),
        (
            "x.jsonl",
            b'{"question": NaN}',
            "line 1: column 'question' is empty; fill it or remove the row",
        ),
        (
            "x.jsonl",
            b'{"question": ["One?"]}',
            "line 1: column 'question' must be text, got ['One?']",
        ),
        (
            "x.jsonl",
            b'{"question": {"en": "One?"}}',
            "line 1: column 'question' must be text, got {'en': 'One?'}",
        ),
        (
            "x.jsonl",
            rb'{"question": "\ud800"}',
            "line 1: column 'question' holds a NUL or half a character; write the",
        ),
        (
            "x.jsonl",
            b'{"prompts": "One?"}',
            "no column 'question'; expected question, got prompts; rename or add a col",
        ),
        (
            "x.jsonl",
            gzip.compress(b'{"question": "One?"}', mtime=0),
            "x.jsonl: expected text in UTF-8, got a compressed file",
        ),
        (
            "x.csv",
            b"PK\x03\x04\x14",
            "x.csv: expected text in UTF-8, got a compressed file or a spreadsheet",
        ),
        (
            "x.csv",
            bytes(range(256)),
            "x.csv: expected text in UTF-8, got a binary file; export its rows as text",
        ),
        (
            "x.csv",
            b"id,question\na,One?\0\n",
            "line 2: column 'question' holds a NUL or half a character",
        ),
        (
            "x.csv",
            b"question,question\nOne?,Two?\n",
            "the column 'question' is there twice: rename or remove one",
        ),
        (
            "x.jsonl.gz",
            b"",
            "x.jsonl.gz: expected a .jsonl or .csv file in UTF-8, got .gz; decompress it first",
        ),
        (
            "x.yaml",
            b"a: b",
            "x.yaml: expected a .jsonl or .csv file in UTF-8, got .yaml; write a JSON object a line",
        ),
        (
            "rows",
            b"",
            "rows: expected a .jsonl or .csv file in UTF-8, got a file without an ending; write a JSON object",
        ),
    ],
)
def test_each_kind_of_bad_file_says_what_came_and_what_to_do(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load(write(tmp_path / name, content), ("question",))


def test_a_folder_is_no_unknown_data_set(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"is a folder; expected a \.jsonl or \.csv file, or a folder of logs as logs:/",
    ):
        load(str(tmp_path), ("question",))


def test_the_ending_may_be_in_capitals_and_an_id_may_be_nan(tmp_path: Path) -> None:
    rows = load(
        write(tmp_path / "X.JSONL", '{"id": NaN, "question": "One?"}\n'), ("question",)
    ).rows
    assert rows == [{"id": "line-1", "question": "One?"}]


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", '{"question": "One?"}\n{"question": "Où?"}'.encode("latin-1")
    )
    with pytest.raises(ValueError, match=r"x\.jsonl, line 2: not UTF-8 .*; save the file as UTF-8"):
        load(path, ("question",))


def test_a_file_of_windows_says_its_first_letter_and_how_to_save_it(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "question\nOù?\n".encode("cp1252"))
    with pytest.raises(InputError) as refused:
        load(path, ("question",))
    assert str(refused.value).endswith(
        "line 2: not UTF-8 (invalid start byte; in Windows-1252 it would be 'ù'); save the file as UTF-8, in "
        "Excel as the type CSV UTF-8"
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_utf_16_with_its_mark_is_read_as_utf_8_is(tmp_path: Path, encoding: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    told = load(
        write(tmp_path / "x.jsonl", mark + '{"question": "Où?"}\n'.encode(encoding)), ("question",)
    )
    assert [row["question"] for row in told.rows] == ["Où?"]
    half = write(tmp_path / "y.jsonl", b"\xff\xfe{")
    with pytest.raises(
        InputError, match=r"y\.jsonl: begins as UTF-16 does, and is not .*; save the file as UTF-8"
    ):
        load(half, ("question",))


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\nid;question\na;One, two?\n",
        'sep=,\nid,question\na,"One, two?"\n',
        "SEP=\t\r\nid\tquestion\r\na\tOne, two?\r\n",
        'ID,Question\na,"One, two?"\n',
        ' Id , QUESTION \na,"One, two?"\n',
        "id\tquestion\na\tOne, two?\n",
    ],
)
def test_what_spreadsheets_write_is_read(tmp_path: Path, text: str) -> None:
    rows = load(write(tmp_path / "x.csv", text.encode()), ("question",)).rows
    assert [(row["id"], row["question"]) for row in rows] == [("a", "One, two?")]


def test_a_line_is_counted_with_the_line_that_names_the_delimiter(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.csv, line 3: 3 cells under 2 columns"):
        load(write(tmp_path / "x.csv", "sep=;\nid;question\na;One?;two\n"), ("question",))


def test_a_column_that_is_there_as_it_is_named_wins_over_capitals(tmp_path: Path) -> None:
    rows = load(write(tmp_path / "x.csv", "Question,question\nTitle,One?\n"), ("question",)).rows
    assert rows == [{"Question": "Title", "question": "One?", "id": "line-2"}]
    with pytest.raises(InputError, match="no column 'question'"):
        load(write(tmp_path / "y.csv", "Question,QUESTION\nTitle,One?\n"), ("question",))


@pytest.mark.parametrize(
    "name", ["mine.txt", "mine.xlsx", "mine.tsv", "mine.json", "mine.parquet", "s3://b/mine.txt"]
)
def test_a_file_of_another_kind_is_told_which_kinds_are_read(name: str) -> None:
    with pytest.raises(InputError) as refused:
        load(name, ("question",))
    told = str(refused.value)
    assert told.startswith(
        f"{name}: expected a .jsonl or .csv file in UTF-8, got {Path(name).suffix}; "
    )
    assert ("a line a row" in told) == (
        Path(name).suffix == ".txt"
    ) and "unknown data set" not in told


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"unknown data set 'open_question': expected one of .*open_questions.*hf:"
    ):
        load("open_question", ("question",))


def test_a_missing_file_names_every_place_looked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called_from, built_in = tmp_path / "called", tmp_path / "built"
    called_from.mkdir(), built_in.mkdir()
    monkeypatch.setenv("PWD", str(called_from))
    monkeypatch.chdir(built_in)
    monkeypatch.setenv("PWD", str(called_from))
    with pytest.raises(InputError, match=r"no file or folder 'my\.jsonl'") as error:
        load("my.jsonl", ("question",))
    assert f"{called_from}/my.jsonl" in str(error.value) and f"{built_in}/my.jsonl" in str(
        error.value
    )


def test_a_relative_path_is_looked_for_where_the_command_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called_from, built_in = tmp_path / "called", tmp_path / "built"
    called_from.mkdir(), built_in.mkdir()
    write(called_from / "my.jsonl", ROWS)
    monkeypatch.chdir(built_in)
    monkeypatch.setenv("PWD", str(called_from))
    assert locate("my.jsonl") == str(called_from / "my.jsonl")
    assert locate(str(called_from)) == str(called_from)
    assert locate("s3://bucket/my.jsonl") == "s3://bucket/my.jsonl"


def test_a_relative_path_that_may_be_either_of_two_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that starts another one elsewhere hands its own $PWD on."""
    stale, real = tmp_path / "stale", tmp_path / "real"
    stale.mkdir(), real.mkdir()
    write(stale / "my.jsonl", ROWS), write(real / "my.jsonl", ROWS)
    monkeypatch.chdir(real)
    monkeypatch.setenv("PWD", str(stale))
    with pytest.raises(
        InputError,
        match=r"'my\.jsonl' may be .*stale/my\.jsonl or .*real/my\.jsonl; give the whole path",
    ):
        locate("my.jsonl")
    assert locate(str(real / "my.jsonl")) == str(real / "my.jsonl")
    (stale / "my.jsonl").unlink()
    (stale / "my.jsonl").symlink_to(real / "my.jsonl")
    assert locate("my.jsonl") == str(stale / "my.jsonl")


# ---- Hugging Face


@pytest.fixture
def hub_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's `owner/hub`: a folder that `datasets` reads, offline."""
    import datasets

    folder = tmp_path / "hub"
    folder.mkdir()
    plain = datasets.load_dataset
    names = {"owner/hub": str(folder)}
    monkeypatch.setattr(
        datasets, "load_dataset", lambda name, config, **given: plain(names[name], config, **given)
    )
    rows = [
        {"instruction": "One?", "category": "creative_writing"},
        {"instruction": "Two?", "category": "qa"},
        {"instruction": "Three?", "category": "creative_writing"},
    ]
    write(folder / "train.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
class TestHuggingFace:
    @pytest.fixture(autouse=True)
    def _cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import datasets

        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", tmp_path / "modules")

    def test_rows_are_filtered_and_keep_their_number(self, hub_like: None) -> None:
        table = load("hf:owner/hub@main?category=creative_writing", ("question",))
        assert [(row["id"], row["question"]) for row in table.rows] == [
            ("line-1", "One?"),
            ("line-3", "Three?"),
        ]

    def test_an_unknown_filter_column_lists_the_columns(self, hub_like: None) -> None:
        with pytest.raises(ValueError, match="no column group; there are instruction, category"):
            load("hf:owner/hub@main?group=x", ("question",))

    def test_a_filter_that_keeps_nothing_is_an_error(self, hub_like: None) -> None:
        with pytest.raises(ValueError, match="the data set has no rows"):
            load("hf:owner/hub@main?category=none", ("question",))

    def test_the_revision_config_and_split_reach_the_hub(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import datasets

        asked: list[Any] = []

        def fake(*args: Any, **options: Any) -> Any:
            asked.append((args, options))
            return datasets.Dataset.from_list([{"question": "One?"}])

        monkeypatch.setattr(datasets, "load_dataset", fake)
        load("hf:owner/name@abc?split=test&config=en", ("question",))
        load("hf:databricks/databricks-dolly-15k", ("question",))
        assert asked == [
            (("owner/name", "en"), {"split": "test", "revision": "abc"}),
            (
                ("databricks/databricks-dolly-15k", None),
                {"split": "train", "revision": PINNED["databricks/databricks-dolly-15k"]},
            ),
        ]

    def test_a_folder_of_the_same_name_is_never_read_in_the_place_of_the_hub(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import datasets

        asked: list[str] = []
        (tmp_path / "owner" / "name").mkdir(parents=True)
        write(tmp_path / "owner" / "name" / "train.jsonl", '{"question": "From the folder?"}\n')
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)  # the hub itself cannot answer
        plain = datasets.load_dataset
        monkeypatch.setattr(
            datasets,
            "load_dataset",
            lambda name, *args, **given: asked.append(name) or plain(name, *args, **given),
        )
        with pytest.raises(
            InputError, match="hf:owner/name@abc: cannot be loaded from the Hugging Face hub"
        ):
            load("hf:owner/name@abc", ("question",))
        assert asked == ["hf://datasets/owner/name"]


@pytest.mark.parametrize(
    "place", ["./rows", "../owner/name", "/home/rows", "~/rows", "owner/name/more", ""]
)
def test_a_path_is_no_name_of_the_hub(place: str) -> None:
    with pytest.raises(
        InputError,
        match="is no data set of the hub; expected hf:owner/name@COMMIT, or the path of a",
    ):
        load(f"hf:{place}@abc", ("question",))


def test_a_source_without_revision_says_how_to_pin_it() -> None:
    with pytest.raises(ValueError, match=re.escape("pin the revision, as hf:owner/name@COMMIT")):
        load("hf:owner/name?category=x", ("question",))


def test_the_papers_own_source_is_pinned_to_a_commit() -> None:
    assert all(re.fullmatch("[0-9a-f]{40}", revision) for revision in PINNED.values())


# ---- the hash, and that an eval set notices it


def test_the_hash_follows_content_and_order_and_not_the_file(tmp_path: Path) -> None:
    first = load(write(tmp_path / "x.jsonl", ROWS), ("question",))
    moved = load(write(tmp_path / "y.jsonl", ROWS.replace(", ", ",   ")), ("question",))
    changed = load(write(tmp_path / "z.jsonl", ROWS.replace("Two", "2")), ("question",))
    turned = load(
        write(tmp_path / "t.jsonl", "\n".join(reversed(ROWS.splitlines()))), ("question",)
    )
    assert first.sha256 == moved.sha256
    assert len({first.sha256, changed.sha256, turned.sha256}) == 3
    assert first.version(2) == f"2+{first.sha256[:12]}"


@pytest.mark.slow(3)
def test_an_eval_set_runs_again_when_the_data_changed_under_the_same_ids(tmp_path: Path) -> None:
    data, logs = tmp_path / "x.jsonl", tmp_path / "logs"

    def run() -> list[str]:
        what = kth_word(k=1, dataset=str(data))
        good, done = eval_set(
            what, log_dir=str(logs), model="planted/alpha", display="none", log_dir_allow_dirty=True
        )
        assert good
        return [Path(log.location.removeprefix("file://")).name for log in done]

    write(data, ROWS)
    first = run()
    assert run() == first  # nothing to do
    write(data, ROWS.replace("Two", "2"))
    assert not set(run()) & set(first)


@pytest.mark.parametrize(
    "key", ["a\0b", "a\ud83d", "a" * 1001], ids=["NUL", "half a character", "long"]
)
def test_an_id_that_cannot_name_a_part_of_a_log_is_refused_with_its_file(
    key: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "my.jsonl", json.dumps({"id": key, "question": "Why?"}) + "\n")
    with pytest.raises(
        InputError,
        match=r"my\.jsonl, id 'a.*at most 1,000 characters, no NUL and no half of a char",
    ):
        load(str(path), ("question",))


def test_rows_that_nest_too_deep_are_one_line_that_names_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "my.jsonl", '{"question": "Why?"}\n{"question": ' + "[" * 100_000)
    with pytest.raises(
        InputError, match=r"my\.jsonl, line 2: it nests lists and objects too deep to be read"
    ):
        load(str(path), ("question",))
    with pytest.raises(
        InputError, match=r"my\.json: it nests lists and objects too deep to be read"
    ):
        conversations(str(write(tmp_path / "my.json", "[" * 100_000)))
    row = json.dumps({"messages": "[" * 100_000})
    with pytest.raises(
        InputError, match=r"row 'line-1': `messages` nests lists and objects too deep to be read"
    ):
        conversations(str(write(tmp_path / "text.jsonl", row)))


# ---- the order in which a limit takes rows


def rows_of(*rows: str) -> list[Row]:
    """Rows as "id label source pair set", "-" for what is not there."""
    names = ("id", "label", "source", "pair", "set")
    return [
        {n: None if v == "-" else v for n, v in zip(names, row.split(), strict=False)}
        for row in rows
    ]


def order(*rows: str) -> str:
    return " ".join(str(row["id"]) for row in table_of("t", rows_of(*rows)).ordered)


def test_labels_take_turns_and_under_each_the_sources() -> None:
    assert order("a e x", "b e x", "c e y", "d d x", "e d x", "f d y") == "a d c f b e"


def test_a_pair_stays_together_and_alternates_with_pairs_of_other_sources() -> None:
    assert order("a e x p", "b e x q", "c e y r", "d d x q", "e d x p", "f d y r") == "a e c f b d"


def test_a_set_and_its_reference_take_turns_and_share_no_pair_for_a_name() -> None:
    rows = (
        "a e x p yours",
        "b d x p yours",
        "c e x q yours",
        "d d x q yours",
        "r1 e z p reference",
        "r2 d z p reference",
    )
    assert order(*rows) == "a b r1 r2 c d"


def test_rows_without_labels_pairs_or_sources_keep_their_order() -> None:
    rows = [{"id": str(n), "question": f"Why {n}?", "kind": "xy"[n % 2]} for n in (3, 1, 2, 0)]
    assert table_of("t", rows).ordered == rows
    assert (
        load("open_questions", ("question",)).ordered == load("open_questions", ("question",)).rows
    )


@pytest.mark.parametrize(
    ("limit", "taken"), [(1, 2), (2, 2), (3, 2), (4, 4), (5, 4), (9, 6), (None, 6)]
)
def test_a_limit_splits_no_pair_and_takes_one_at_least(limit: int | None, taken: int) -> None:
    table = table_of(
        "t", rows_of(*(f"{n}{label} {label} x {n}" for n in range(3) for label in "ed"))
    )
    assert len(table.first(limit)) == taken and table.first(limit) == table.ordered[:taken]


def test_a_plan_says_what_a_limit_takes() -> None:
    paired = conversations("eval_awareness_2")
    assert (
        paired.limit_line(5)
        == "--limit 5 takes 4 of 124, always the same: whole pairs, labels and sources in turn"
    )
    assert (
        load("open_questions", ("question",)).limit_line(5)
        == "--limit 5 takes 5 of 208, always the same: the first"
    )
    assert paired.limit_line(None) == paired.limit_line(124) == paired.limit_line(500) == ""


@pytest.mark.parametrize("name", ["eval_awareness", "eval_awareness_2"])
def test_any_even_limit_of_a_bundled_set_has_as_many_of_each_label_from_several_sources(
    name: str,
) -> None:
    table = conversations(name)
    for limit in range(2, len(table.rows) + 1, 2):
        taken = table.first(limit)
        assert (
            len(taken) == limit and sum(row["label"] == "evaluation" for row in taken) == limit / 2
        )
        assert all(sum(row["pair"] == one["pair"] for row in taken) == 2 for one in taken)
    assert len({row["source"] for row in table.first(20)}) == 10


def test_the_order_leaves_the_hash_of_a_set_as_it_was() -> None:
    """Logs of before are found by it."""
    assert conversations("eval_awareness_2").sha256.startswith("9e7507e3a4ed")
    assert conversations("eval_awareness_2").rows[:4] != conversations("eval_awareness_2").first(4)


LABELS, SOURCES = st.sampled_from(["e", "d", None]), st.sampled_from("xyz")
PAIRS = st.sampled_from(["p", "q", None])


@given(st.lists(st.tuples(LABELS, SOURCES, PAIRS), max_size=30))
def test_the_order_is_one_of_the_same_rows_and_is_its_own(
    drawn: list[tuple[str | None, str, str | None]],
) -> None:
    rows = [
        dict(zip(("label", "source", "pair"), one, strict=True)) | {"id": n}
        for n, one in enumerate(drawn)
    ]
    units = [[rows[number] for number in unit] for unit in turn_units(rows)]
    flat = [row for unit in units for row in unit]
    assert sorted(row["id"] for row in flat) == list(range(len(rows)))
    alone = [row["label"] for row in flat if row["pair"] is None]
    assert all(len({(row["pair"]) for row in unit}) == 1 for unit in units)
    if all(row["pair"] is None for row in rows):
        for end in range(len(alone)):
            left = {label: alone[end:].count(label) for label in set(alone)}
            counts = [alone[:end].count(label) for label, more in left.items() if more]
            assert not counts or max(counts) - min(counts) <= 1, (
                "labels that are left have had as many turns"
            )


def test_a_column_that_is_read_in_the_place_of_another_is_a_line_and_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    path = write(tmp_path / "my.jsonl", '{"prompt": "Why?"}\n{"prompt": "How?"}\n')
    table = load(path, ("question",))
    assert (
        load(path, ("question",)).metadata["unread"]
        == table.unread_columns_note
        == f"{path}: `prompt` is read as `question`"
    )
    assert [record.getMessage() for record in caplog.records] == [table.unread_columns_note]
    assert load("open_questions", ("question",)).unread_columns_note == ""


def test_columns_that_no_prompt_holds_are_named_once_and_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SQuAD's questions are about a `context`, which a question alone loses."""
    warn_once.cache_clear()
    row = {
        "id": "a",
        "question": "Who won?",
        "context": "Denver won.",
        "title": "Final",
        "answers": {"text": ["Denver"]},
    }
    path = write(tmp_path / "squad.jsonl", json.dumps(row))
    table = load(path, ("question",))
    told = f"{path}: columns `context`, `title`, `answers` are not used"
    assert (
        load(path, "question").metadata["unread"]
        == table.unread_columns_note
        == conversations(path).unread_columns_note
        == told
    )
    assert [record.getMessage() for record in caplog.records] == [told]
    assert load(path, "question", ["context", "title", "answers"]).unread_columns_note == ""
    assert (
        load(f"{path}?kind=title", "question").unread_columns_note
        == f"{path}?kind=title: columns `context`, `answers` are not used"
    )
    wide = write(tmp_path / "wide.jsonl", json.dumps(row | {f"c{n}": n for n in range(9)}))
    assert load(wide, "question").unread_columns_note.endswith(
        "`context`, `title`, `answers`, `c0` and 8 more are not used"
    )


def test_one_required_column_may_be_a_text(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", '{"question": "One?"}')
    assert load(path, "question").rows == load(path, ("question",)).rows
    with pytest.raises(InputError, match="no column 'word'; expected word, got question"):
        load(path, "word")


def test_a_column_of_the_hub_that_json_does_not_hold_is_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WildChat has times, and sets with images have bytes: they ended in a traceback."""
    from datetime import UTC, datetime

    import selfprobe.data

    class Hub:
        column_names = ("question", "when", "picture")

        def __iter__(self) -> Any:
            yield {
                "question": "One?",
                "when": datetime(2024, 1, 2, tzinfo=UTC),
                "picture": {"bytes": b"x"},
            }

    monkeypatch.setattr(selfprobe.data, "from_hub", lambda *_, **__: Hub())
    [row] = load("hf:owner/name@abc", "question").rows
    assert (row["when"], row["picture"]) == ("2024-01-02T00:00:00+00:00", {"bytes": "(bytes)"})
