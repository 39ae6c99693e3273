"""A log that would fill the memory is refused before it is unpacked."""

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from selfprobe import packed
from selfprobe.errors import InputError
from selfprobe.logs import found
from selfprobe.packed import refuse_bomb


def zipped(path: Path, size: int) -> str:
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        file.writestr("header.json", b" " * size)
    return str(path)


def test_a_log_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path: Path) -> None:
    log = zipped(tmp_path / "bomb.eval", 257_000_000)
    with pytest.raises(
        InputError, match=r"it unpacks from 0 MB to 257 MB, 1,0\d\d times its size; no log does more than 100"
    ):
        refuse_bomb(log)
    assert "it unpacks from 0 MB to 257 MB" in found([log]).ignored[log]


def test_a_log_with_replies_of_megabytes_that_repeat_themselves_is_read(tmp_path: Path) -> None:
    refuse_bomb(zipped(tmp_path / "loops.eval", 75_000_000))


def test_a_small_log_and_json_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = zipped(tmp_path / "small.eval", 1_000_000)
    refuse_bomb(log)
    refuse_bomb(str(tmp_path / "none.json"))
    monkeypatch.setattr(packed, "LARGE", 500_000)
    with pytest.raises(InputError):
        refuse_bomb(log)
