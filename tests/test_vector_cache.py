"""Vectors are kept between calls, and nothing that lies in the cache can change a number."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from selfprobe import embed
from selfprobe.embed import CACHE_FILE, Vectors, remembered


class Embedder:
    """Counts the texts it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> Vectors:
        self.asked += texts
        return np.array([[len(text) / 3, ord(text[0])] for text in texts])


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SELFPROBE_CACHE", str(tmp_path / "cache"))
    embed._warn_unused_cache.cache_clear()
    return tmp_path / "cache" / CACHE_FILE


def test_a_text_is_computed_once_and_its_vector_is_the_same_to_the_bit() -> None:
    compute = Embedder()
    first = remembered(["ab", "c"], "e", compute)
    again = remembered(["d", "c", "ab"], "e", compute)
    assert compute.asked == ["ab", "c", "d"]
    assert again[[2, 1]].tobytes() == first.tobytes()


def test_another_embedder_has_vectors_of_its_own() -> None:
    compute = Embedder()
    for identity in ("e", "f"):
        remembered(["ab"], identity, compute)
    assert compute.asked == ["ab", "ab"]


def test_half_characters_are_a_text_too() -> None:
    assert remembered(["a\ud800", "a\ud801"], "e", Embedder()).shape == (2, 2)


@pytest.mark.parametrize("column", ["vector", "digest"])
def test_a_row_that_was_changed_is_computed_anew(file: Path, column: str) -> None:
    compute = Embedder()
    first = remembered(["ab"], "e", compute)
    with sqlite3.connect(file) as database:
        database.execute(f"UPDATE vectors SET {column} = ?", (np.array([7.0, 7.0]).tobytes(),))
    assert (remembered(["ab"], "e", compute) == first).all()
    remembered(["ab"], "e", compute)
    assert compute.asked == ["ab", "ab"]


def test_a_broken_cache_is_left_alone_with_one_line(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1000)
    compute = Embedder()
    for _ in range(2):
        assert remembered(["ab"], "e", compute).shape == (1, 2)
    assert compute.asked == ["ab", "ab"] and file.read_bytes().startswith(b"no database")
    said = f"The cache of vectors {file} cannot be used (file is not a database); texts are embedded anew. It may be"
    assert capfd.readouterr().err == f"{said} deleted.\n"


def test_a_cache_folder_that_cannot_be_made_is_a_line(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.parent.write_text("a file")
    assert remembered(["ab"], "e", Embedder()).shape == (1, 2)
    assert "cannot be used (" in capfd.readouterr().err


def test_the_older_half_goes_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "MOST_CACHED_BYTES", 16 * 10)  # bytes: ten vectors
    compute = Embedder()
    for number in range(11):
        remembered([f"{number} text"], "e", compute)
    compute.asked.clear()
    remembered([f"{number} text" for number in range(11)], "e", compute)
    assert compute.asked == [f"{number} text" for number in range(5)]


@pytest.mark.slow(5)
def test_several_processes_write_at_once(file: Path) -> None:
    code = (
        "import sys, numpy as np; from selfprobe.embed import remembered\n"
        "for n in range(20): remembered([f'{sys.argv[1]} {n}'], 'e', lambda texts: np.ones((len(texts), 3)))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(n)], stderr=subprocess.PIPE, text=True)
        for n in range(3)
    ]
    assert [one.communicate()[1] for one in running] == [""] * 3
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT count(*) FROM vectors").fetchone() == (60,)
