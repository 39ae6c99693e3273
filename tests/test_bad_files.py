"""Every bad file of every format is refused in one line, quickly and in little memory: files are
made, not listed.
"""

import csv
import gc
import gzip
import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selfprobe import cli
from selfprobe.data import load
from selfprobe.data.conversations import conversations
from selfprobe.data.files import read_text
from selfprobe.data.prices import read_prices
from selfprobe.data.public_pairs import load_pairs
from selfprobe.data.questions import wording
from selfprobe.studies.awareness.validate import validated

CPU_SECONDS = 3.0
"""CPU seconds that a refusal may take; the slowest takes half a second on an idle machine."""
LONGEST_MESSAGE = 600


def read_config(path: str) -> None:
    call = [
        "awareness",
        "run",
        "--models",
        "planted/a",
        "--methods",
        "binary",
        "--dry-run",
        "--config",
        path,
    ]
    done = CliRunner().invoke(cli.main, call)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code:
        raise ValueError(" ".join(done.output.split()))


@dataclass(frozen=True)
class Reader:
    read: Callable[[str], object]
    endings: tuple[str, ...]


READERS = {
    "items": Reader(lambda path: load(path, "question"), ("jsonl", "csv")),
    "conversations": Reader(conversations, ("jsonl", "csv", "json")),
    "reference": Reader(
        lambda path: conversations("eval_awareness_2", against=path), ("jsonl", "json")
    ),
    "pairs": Reader(load_pairs, ("jsonl", "csv", "tsv", "json", "parquet")),
    "labels": Reader(lambda path: validated([path]), ("jsonl", "csv")),
    "options": Reader(read_config, ("yaml",)),
    "questions": Reader(lambda path: wording(path, "binary"), ("yaml",)),
    "prices": Reader(read_prices, ("yaml",)),
    "text": Reader(read_text, ("txt",)),
}
EACH_READER = [(name, ending) for name, reader in READERS.items() for ending in reader.endings]
EACH_OF_ROWS = [
    (name, ending) for name, ending in EACH_READER if name in ("items", "conversations", "pairs")
]


def bind_socket(path: Path) -> None:
    held = Path.cwd()
    os.chdir(path.parent)  # a socket's path takes 108 characters at most
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(held)


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "is a pipe"),
    "socket": (bind_socket, "is a socket"),
    "null device": (lambda path: path.symlink_to("/dev/null"), "is a device"),
    "zero device": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "file of the system": (
        lambda path: path.symlink_to("/proc/self/status"),
        "is a file of the system",
    ),
    "folder": (Path.mkdir, "folder|is a directory|Is a directory"),
    "file of 1 TB": (make_sparse, "MB|million characters|binary file|bytes"),
}


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize(("name", "ending"), EACH_READER)
def test_what_is_no_plain_file_is_refused_before_it_is_read(
    name: str, ending: str, kind: str, tmp_path: Path
) -> None:
    make, reason = NO_FILES[kind]
    path = tmp_path / f"x.{ending}"
    make(path)
    assert re.search(reason, refusal(name, path))


def refusal(name: str, path: Path) -> str:
    """The message with which a reader refuses a file: one line, short, with the file's name, and
    soon.
    """
    begun = time.process_time()
    with pytest.raises((ValueError, OSError)) as refused:
        READERS[name].read(str(path))
    assert time.process_time() - begun < CPU_SECONDS
    message = str(refused.value).strip()
    assert "\n" not in message and len(message) < LONGEST_MESSAGE, message
    assert path.name in message
    return message


BYTES = {
    "compressed": (gzip.compress(b"a" * 10_000_000, mtime=0), "compressed"),
    "zip": (b"PK\x03\x04" + bytes(100), "compressed"),
    "zeros": (bytes(1000), "UTF-16 without its mark"),
    "UTF-16 without a mark": (
        '{"question": "One?"}\n'.encode("utf-16-le"),
        "UTF-16 without its mark",
    ),
    "half of UTF-16": (b"\xff\xfea", "begins as UTF-16 does"),
    "Latin-1": ('{"question": "Où?"}\n'.encode("latin-1"), "not UTF-8"),
    "endless line": (b'{"question": "' + b"a" * 33_000_000, "more than 32 million characters"),
    "nothing": (b"", "no rows|no pairs|is empty|not JSON|with labels|no conversation"),
    "mark alone": (
        b"\xef\xbb\xbf",
        "no rows|no pairs|is empty|not JSON|with labels|no conversation",
    ),
}


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize(
    ("name", "ending"),
    [(name, ending) for name, ending in EACH_READER if ending in ("jsonl", "csv", "tsv")],
)
def test_what_is_no_text_in_lines_is_refused(
    name: str, ending: str, kind: str, tmp_path: Path
) -> None:
    content, reason = BYTES[kind]
    path = tmp_path / f"x.{ending}"
    path.write_bytes(content)
    assert re.search(reason, refusal(name, path))


VALUES = {
    "10,000 digits": "7" * 10_000,
    "infinite": "1e400",
    "nested 10,000 deep": "[" * 10_000 + "]" * 10_000,
    "list": "[1]",
    "object": '{"a": 1}',
    "text that a terminal obeys": r'"a\u001b[2Jb"',
    "two lines": r'"a\nb"',
    "5,000 characters": f'"{"a" * 5000}"',
    "half a character": r'"\ud800"',
}
ROW = {"id": '"r"', "question": '"One?"', "text_1": '"a"', "text_2": '"b"'}


def written(folder: Path, ending: str, *lines: str) -> Path:
    """A file of these rows, each as JSON; skips what a format has no form for."""
    path = folder / f"x.{ending}"
    if ending == "jsonl":
        path.write_text("\n".join(lines))
    elif ending == "json":
        path.write_text(f"[{', '.join(lines)}]")
    else:
        try:
            rows = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            pytest.skip("JSON alone can say it")
        write_table(path, rows)
    return path


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        try:
            parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        except (pyarrow.ArrowException, UnicodeError):
            pytest.skip("Parquet holds no such value")
        return
    if any(not isinstance(value, str) for row in rows for value in row.values()):
        pytest.skip("every cell is a text")
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        table = csv.DictWriter(
            file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ","
        )
        table.writeheader()
        table.writerows(rows)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(("name", "ending"), EACH_OF_ROWS)
def test_an_id_that_is_no_name_is_refused_in_every_format(
    name: str, ending: str, kind: str, tmp_path: Path
) -> None:
    row = ROW | {"id": VALUES[kind]}
    path = written(tmp_path, ending, object_of(row))
    refusal(name, path)


def object_of(row: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{column}": {value}' for column, value in row.items()) + "}"


@pytest.mark.parametrize(
    "ids", [('"a"', '"a"'), ("7", '"7"'), ("7", "7")], ids=["texts", "7 and text 7", "numbers"]
)
@pytest.mark.parametrize(("name", "ending"), EACH_OF_ROWS)
def test_ids_that_are_one_text_are_refused(
    name: str, ending: str, ids: tuple[str, str], tmp_path: Path
) -> None:
    lines = [
        object_of(ROW | {"id": key, "question": f'"Q{number}?"'}) for number, key in enumerate(ids)
    ]
    message = refusal(name, written(tmp_path, ending, *lines))
    assert "unique" in message


@pytest.mark.parametrize("empty", ["null", '""', "NaN"])
@pytest.mark.parametrize(("name", "ending"), EACH_OF_ROWS)
def test_an_empty_id_is_the_number_of_its_row(
    name: str, ending: str, empty: str, tmp_path: Path
) -> None:
    path = written(tmp_path, ending, object_of(ROW | {"id": empty}))
    read: Any = READERS[name].read(str(path))
    rows = read.rows if name != "pairs" else [vars(pair) for pair in read.pairs]
    assert re.fullmatch(r"(line|row)-\d+", rows[0]["id"])


YAML = {
    "infinite": "limit: .inf",
    "below all": "limit: -.inf",
    "no number": "limit: .nan",
    "10,000 digits": f"limit: {'7' * 10_000}",
    "too large a number": "limit: 1e400",
    "no date": "limit: 2001-13-45",
    "no whole number": "limit: !!int ''",
    "no time": "limit: !!timestamp x",
    "no truth": "limit: !!bool x",
    "one text of 5 MB": f"dataset: {'a' * 5_000_000}",
    "a text of lines, 5 MB": f'dataset: "{"a b" * 1_700_000}"',
    "a path of 200,000 characters": f"dataset: {'a ' * 100_000}",
    "nested lists": f"limit: {'[' * 10_000}",
    "nested mappings": "\n".join(f"{' ' * depth}a:" for depth in range(700)),
    "aliases of aliases": "a0: &a0 [x]\n"
    + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
    "itself": "limit: &a [*a]",
    "Python": "limit: !!python/object/apply:os.system ['true']",
    "a merge of nothing": "<<: 5",
    "a list as key": "? [a]\n: b",
    "a tab": "a:\n\tb: c",
    "a control character": "a: \x1b",
    "8,000 keys": "\n".join(f"k{n}: 1" for n in range(8_000)),
}


@pytest.fixture
def without_collection() -> Iterator[None]:
    """No garbage is collected while the stack is full, where pytest's hook for what is collected
    has no room.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collection")
@pytest.mark.parametrize("kind", YAML)
@pytest.mark.parametrize("name", ["options", "questions", "prices"])
def test_yaml_that_is_none_or_too_large_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(YAML[kind])
    begun = time.process_time()
    with pytest.raises(ValueError) as refused:
        READERS[name].read(str(path))
    assert time.process_time() - begun < CPU_SECONDS
    message = str(refused.value).strip()
    assert (
        "Traceback" not in message and "\n" not in message and len(message) < 2 * LONGEST_MESSAGE
    ), message


def test_a_number_that_options_cannot_take_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("limit: .inf")
    assert "limit: expected a whole number from 1, got inf" in refusal("options", path)
    path.write_text("dataset: " + "a" * 400_000)
    assert "it has more than 300,000 bytes, which is no file of options or questions" in refusal(
        "options", path
    )


MEMORY = """
import resource, sys
from selfprobe.data import load
from selfprobe.data.conversations import conversations
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    (load if sys.argv[2] == "items" else conversations)(sys.argv[1], *(["question"] if sys.argv[2] == "items" else []))
except ValueError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000)
"""


@pytest.fixture(params=["zero device", "file of 1 TB", "endless line"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "x.jsonl"
    if request.param in NO_FILES:
        NO_FILES[request.param][0](path)
    else:
        path.write_bytes(BYTES[request.param][0] * 4)
    yield path


@pytest.mark.slow(10)
@pytest.mark.parametrize("name", ["items", "conversations"])
def test_what_never_ends_takes_less_than_300_mb(name: str, endless: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(endless), name],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        check=True,
    )
    message, megabytes = done.stdout.splitlines()
    assert "x.jsonl" in message and int(megabytes) < 300
