"""A folder of files is placed whole or not at all, here and at any fsspec address."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest

from selfprobe.errors import InputError
from selfprobe.errors.output import (
    destination,
    from_here,
    is_local,
    place,
    place_file,
    refuse_unwritable,
    with_typed_paths,
)

FILES = {"index.html": b"new page", "tables/a.csv": b"new table"}


def test_files_are_placed_and_others_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    place(FILES, str(tmp_path))
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()} == {
        *FILES,
        "mine.txt",
    }


def test_a_full_disk_leaves_the_old_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(dict.fromkeys(FILES, b"old"), str(tmp_path))
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.suffix == ".csv":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"^cannot write to .*: No space left on device$"):
        place(FILES, str(tmp_path))
    assert {file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == {b"old"}
    assert {file.name for file in tmp_path.iterdir()} == {"index.html", "tables"}


def test_a_folder_in_the_way_of_a_file_stops_all(tmp_path: Path) -> None:
    (tmp_path / "tables" / "a.csv").mkdir(parents=True)
    with pytest.raises(InputError, match=r"tables/a\.csv is a folder there"):
        place(FILES, str(tmp_path))
    assert not (tmp_path / "index.html").exists()


def test_an_unwritable_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*args: Any, **options: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", denied)  # root may write anywhere
    with pytest.raises(InputError, match=r"^cannot write to .*: Permission denied$"):
        place(FILES, str(tmp_path / "out"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match="it is a file; give a folder"):
        destination(str(tmp_path / "x"))


def test_any_file_system_takes_the_files() -> None:
    place(FILES, "memory://reports/one")
    with fsspec.open("memory://reports/one/tables/a.csv") as file:
        assert file.read() == b"new table"
    assert not is_local("memory://reports/one") and is_local("file:///x") and is_local("x")


def test_a_file_system_whose_package_is_missing_is_refused_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(InputError, match=r"^cannot write to s3://bucket/x: .*s3fs"):
        place(FILES, "s3://bucket/x")
    with pytest.raises(InputError, match=r"cannot write to nope://x: Protocol not known: nope"):
        place(FILES, "nope://x")
    assert not list(tmp_path.iterdir())


def test_missing_credentials_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = pytest.importorskip("botocore.exceptions")

    def without(*args: Any, **options: Any) -> None:
        raise exceptions.NoCredentialsError

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "pipe_file", without)
    with pytest.raises(
        InputError, match=r"^cannot write to memory://x: Unable to locate credentials$"
    ):
        place(FILES, "memory://x")


def test_a_place_that_can_only_be_read_is_refused() -> None:
    with pytest.raises(InputError, match=r"^cannot write to http"):
        place(FILES, "http://127.0.0.1:9/x")


def test_a_device_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        place_file(b"rows", str(pipe))
        assert os.read(reader, 10) == b"rows" and stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="only Linux has a folder where nobody can write"
)
def test_a_folder_that_cannot_be_made_is_refused_before_the_work_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match=r"^cannot write to /proc/x: .*; give another --out$"):
        refuse_unwritable("/proc/x")
    refuse_unwritable(str(tmp_path / "a" / "b"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("file://{here}/logs/a.eval", "logs/a.eval"),
        ("{here}/logs/a.eval", "logs/a.eval"),
        ("logs/a.eval", "logs/a.eval"),
        ("{above}/other/a b.eval", "../other/a b.eval"),
        ("s3://bucket/a.eval", "s3://bucket/a.eval"),
    ],
)
def test_a_local_address_is_seen_from_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, shown: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PWD", str(here))
    assert from_here(address.format(here=here, above=tmp_path)) == shown


def test_an_address_is_whole_while_the_command_works_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", str(Path.cwd()))
    monkeypatch.chdir(tmp_path)
    assert from_here("a.eval") == str(tmp_path / "a.eval")


def test_what_a_killed_process_left_in_a_folder_is_removed_by_the_next_one(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom selfprobe.errors.output import place\n"
        "Path.write_bytes = lambda path, content: os._exit(9)\nplace({'index.html': b'x'}, sys.argv[1])\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert killed.returncode == 9 and len(list(tmp_path.glob(".new-*"))) == 1
    running = f".new-{os.getppid()}-a1b2c3d4"
    foreign = ".new-my-own"
    for name in (running, foreign):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("half a pag")
    (tmp_path / ".new-link").symlink_to(tmp_path / foreign)
    (tmp_path / ".new-file").write_text("mine")
    place(FILES, str(tmp_path))
    assert {path.name for path in tmp_path.glob(".new-*")} == {
        running,
        foreign,
        ".new-link",
        ".new-file",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{here}/p.jsonl is a pipe", "p.jsonl is a pipe"),
        ("'x' may be {here}/a/x, not /elsewhere{here}/x", "'x' may be a/x, not /elsewhere{here}/x"),
        ("file://{here}/x", "file://{here}/x"),
        ("{here}2/x", "{here}2/x"),
    ],
)
def test_paths_below_the_current_folder_are_shown_as_they_were_typed_and_no_other_is_cut(
    text: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert with_typed_paths(text.format(here=tmp_path)) == shown.format(here=tmp_path)
