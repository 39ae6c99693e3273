"""A log that would fill the memory is refused before it is read."""

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log

from selfprobe.errors import InputError
from selfprobe.logs import packed, readable_logs, samples, transcripts
from selfprobe.logs.packed import refuse_bomb

ZSTANDARD = 93
DEEP = "its lists and objects are more than 1,000 levels deep; no log's are"


def zipped(path: Path, size: int) -> str:
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        file.writestr("header.json", b" " * size)
    return str(path)


def lying(path: Path, content: dict[str, bytes], liar: str, size: int, how: int = ZSTANDARD) -> str:
    """A zip file whose directory says that one of its members has so many bytes."""
    with ZipFile(path, "w", how) as file:
        for name, text in content.items():
            file.writestr(name, text)
        entry = file.getinfo(liar)
    raw = bytearray(path.read_bytes())
    told, place = (
        struct.pack("<I", size),
        raw.rindex(liar.encode()) - 46,
    )  # the name is the end of its entry
    raw[entry.header_offset + 22 : entry.header_offset + 26] = raw[place + 24 : place + 28] = told
    path.write_bytes(raw)
    return str(path)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, run_task: Callable[..., EvalLog]) -> str:
    return run_task(
        "selfprobe/kth_word", "planted/a", tmp_path_factory.mktemp("log"), limit=2
    ).location


@pytest.fixture(scope="module")
def parts(log: str) -> dict[str, bytes]:
    with ZipFile(log) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_a_log_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path: Path) -> None:
    log = zipped(tmp_path / "bomb.eval", 257_000_000)
    with pytest.raises(
        InputError,
        match=r"it unpacks from 0 MB to 257 MB, 1,0\d\d times its size; no log does more than 100",
    ):
        refuse_bomb(log)
    (reason,) = readable_logs([log]).ignored.values()
    assert "it unpacks from 0 MB to 257 MB" in reason


def test_a_log_with_replies_of_megabytes_that_repeat_themselves_is_read(tmp_path: Path) -> None:
    refuse_bomb(zipped(tmp_path / "loops.eval", 75_000_000))


def test_a_small_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = zipped(tmp_path / "small.eval", 1_000_000)
    refuse_bomb(log)
    monkeypatch.setattr(packed, "ALWAYS_READ_BYTES", 500_000)
    with pytest.raises(InputError):
        refuse_bomb(log)


def test_a_log_and_its_form_in_json_are_read(log: str, tmp_path: Path) -> None:
    refuse_bomb(log, samples=True)
    write_eval_log(read_eval_log(log), str(tmp_path / "log.json"))
    refuse_bomb(str(tmp_path / "log.json"))


@pytest.mark.parametrize("how", [ZIP_STORED, ZIP_DEFLATED, ZSTANDARD])
def test_a_directory_that_tells_less_than_it_unpacks_to_is_refused(
    how: int, parts: dict[str, bytes], tmp_path: Path
) -> None:
    content = parts | {"header.json": parts["header.json"] + b" " * 3_000_000}
    place = lying(tmp_path / "liar.eval", content, "header.json", 1000, how)
    (reason,) = readable_logs([place]).ignored.values()
    assert "its directory says that header.json unpacks to 1,000 bytes; it has more" in reason


def test_samples_are_looked_at_before_they_are_read_and_not_with_the_header(
    parts: dict[str, bytes], tmp_path: Path
) -> None:
    name = next(name for name in parts if name.startswith("samples/"))
    place = lying(
        tmp_path / "liar.eval", parts | {name: parts[name] + b" " * 3_000_000}, name, 1000
    )
    assert readable_logs([place]).headers
    for read in (samples, lambda one: list(transcripts(one))):
        with pytest.raises(
            InputError, match=r"liar\.eval cannot be read: its directory says that samples/"
        ):
            read(place)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1001,
        '{"a":' * 1001,
        '[{"a": "]]]]}}", "b": ' * 501,
        '["\\\\", "\\"]]", ' * 1001,
        '["' + "x" * 2_500_000 + '", ' + "[" * 1000,
        '["' + "\\\\" * 1_250_000 + '", ' + "[" * 1000,
        "[" * 1009 + "]" * 1009 + " " * 2_000_000,
    ],
    ids=[
        "lists",
        "objects",
        "closed in strings",
        "escapes",
        "after a long string",
        "after long escapes",
        "closed",
    ],
)
def test_what_nests_a_thousand_levels_is_refused_wherever_its_brackets_stand(
    text: str, tmp_path: Path
) -> None:
    place = tmp_path / "deep.json"
    place.write_text(text)
    with pytest.raises(InputError, match=DEEP):
        refuse_bomb(str(place))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 999 + "]" * 999,
        "[[]," * 400 + "1" + "]" * 400,
        '["' + "[" * 5000 + '"]',
        '["\\"' + "[" * 5000 + '"]',
    ],
    ids=["just", "wide", "in a string", "after an escaped quote"],
)
def test_brackets_in_texts_and_those_that_are_closed_are_no_depth(
    text: str, tmp_path: Path
) -> None:
    place = tmp_path / "flat.json"
    place.write_text(text)
    refuse_bomb(str(place))


MEMORY = """
import re, sys
from pathlib import Path
import selfprobe.logs
from selfprobe.data.inspect_data import rows_of_logs
try:
    rows_of_logs(sys.argv[1])
except ValueError as error:
    print(error)
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1000)
"""


@pytest.mark.slow(2)
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux says what a process alone has used"
)
@pytest.mark.parametrize("form", ["json", "eval"])
def test_nested_brackets_in_a_log_take_less_than_500_mb(
    form: str, log: str, parts: dict[str, bytes], tmp_path: Path
) -> None:
    place, deep = tmp_path / f"deep.{form}", "[" * 50_000 + "]" * 50_000
    if form == "json":
        write_eval_log(read_eval_log(log), str(place))
        place.write_text(
            json.dumps(json.loads(place.read_text()) | {"samples": "DEEP"}).replace('"DEEP"', deep)
        )
    else:
        name = next(name for name in parts if name.startswith("samples/"))
        text = json.dumps(json.loads(parts[name]) | {"metadata": "DEEP"}).replace(
            '"DEEP"', f'{{"x": {deep}}}'
        )
        with ZipFile(place, "w", ZSTANDARD) as file:
            for member in parts:
                file.writestr(member, text.encode() if member == name else parts[member])
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(place)], capture_output=True, text=True, check=True
    )
    told, megabytes = done.stdout.splitlines()
    assert f"deep.{form}: 1 of 1 samples cannot be used: cannot be read: {DEEP}" in told
    assert int(megabytes) < 500
