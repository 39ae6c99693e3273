"""bench/models.py: a report of many models takes the CPU and the memory that it says."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "bench" / "models.py"


@pytest.mark.slow(40)
@pytest.mark.parametrize("study", ["matrix", "awareness", "outcome"])
def test_a_report_of_forty_models_is_within_what_a_hundred_and_ten_may_take(study: str) -> None:
    command = [
        sys.executable,
        str(SCRIPT),
        "--study",
        study,
        "--models",
        "40",
        "--items",
        "10",
        "--hold",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"report of 40 models × 10 items, {study}: ")
