"""The two tiers of tests, on a suite of six tests."""

import subprocess
import sys
from pathlib import Path

import pytest

TIERS = Path(__file__).with_name("tiers.py").read_text()
SUITE = """
import time
import pytest

def work():
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass

@pytest.fixture(scope="module")
def shared():
    work()

def test_fast(shared):
    pass

def test_that_waits():
    time.sleep(0.1)

def test_long():
    work()

@pytest.mark.slow(7)
def test_marked():
    work()

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow(9))])
def test_some_of(n):
    pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers = slow(seconds)\naddopts = --strict-markers\n"
    )
    (folder / "conftest.py").write_text(f"{TIERS}\nLIMIT = 0.1\n")
    (folder / "test_suite.py").write_text(SUITE)
    return folder


def printed(folder: Path, *options: str) -> str:
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_plain_run_skips_what_is_slow_and_says_how_to_run_it(folder: Path) -> None:
    shown = printed(folder, "-rs")
    assert "4 passed, 2 skipped" in shown and "slow: --runslow runs it" in shown


@pytest.mark.parametrize(
    "workers",
    [(), pytest.param(("-n", "2"), marks=pytest.mark.slow(5))],
    ids=["alone", "two workers"],
)
def test_with_runslow_all_run_and_what_took_long_unmarked_is_listed(
    folder: Path, workers: tuple[str, ...]
) -> None:
    shown = printed(folder, "--runslow", *workers)
    assert "6 passed" in shown
    listed = shown.partition("slow and unmarked")[2]
    assert "0 s test_suite.py::test_long" in listed, shown
    assert not any(
        name in listed for name in ("test_fast", "test_that_waits", "test_marked", "test_some_of")
    )
