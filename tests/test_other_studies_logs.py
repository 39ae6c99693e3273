"""A log folder is one study's: with runs of another it is refused before the plan is shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selfprobe.cli import main


@pytest.mark.parametrize(
    "command",
    [
        ["awareness", "turns", "talks.jsonl", "--models", "planted/a"],
        ["awareness", "run", "--models", "planted/a", "--methods", "binary"],
        ["awareness", "cues", "talks.jsonl", "--models", "planted/a"],
    ],
)
def test_a_folder_with_runs_of_another_study_is_refused_before_the_plan(
    command: list[str], run_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_task("selfprobe/kth_word", "planted/a", tmp_path / "logs", limit=1)
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"t{n}", "prompt": f"Hello {n}, can you help me with case {n}?"} for n in range(3)
    ]
    turns = [row | {"prompt": [{"role": "user", "content": row["prompt"]}]} for row in rows]
    Path("talks.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in (turns if "turns" in command else rows))
    )
    done = CliRunner().invoke(main, [*command, "--log-dir", "logs", "--limit", "2", "--dry-run"])
    assert (
        done.output
        == "Error: logs holds a run of kth_word, which is of another study: give another --log-dir\n"
    )
    assert done.exit_code == 2
