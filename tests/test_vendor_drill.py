"""tests/vendor_drill.py: every task on every vendor of the stand-in; here two tasks on four of
them.
"""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow(60)
def test_a_model_is_refused_a_setting_once_a_run_and_is_measured_all_the_same(
    tmp_path: Path,
) -> None:
    table = tmp_path / "table.md"
    script = str(Path(__file__).with_name("vendor_drill.py"))
    command = [sys.executable, script, "--smoke", "--table", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [
        line.split(" | ")
        for line in table.read_text(encoding="utf-8").splitlines()
        if "/" in line and "| " in line
    ]
    assert len(rows) == 8 and all(
        outcome.startswith("scored 12 of 12") for _, outcome, *_ in rows[:4]
    )
