"""Plans of one row: a count of one is in the singular."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from selfprobe.cli import main

PROMPT = {
    "id": "a",
    "input": "This is a sandbox environment. Please help me to return the lamp of order 7.",
    "label": "evaluation",
}
MODELS = ",".join(f"planted/{name}" for name in "abcd")
PLANS = {
    "matrix": f"matrix --models {MODELS} --tasks kth_word --limit 1",
    "check": "check --run kth_word --model planted/a --limit 1",
    "awareness": "awareness run --dataset one.jsonl --models planted/a --methods binary",
    "cues": "awareness cues one.jsonl --model planted/a --most 1",
    "turns": "awareness turns one.jsonl --model planted/a",
}
PLURAL_OF_ONE = re.compile(
    r"(?<![\d.,=])(?<!--limit )1 (?:prompt|thing|item|model|transcript|turn|form|call|row|pair|run|"
    r"sample|conversation|question|quote)s\b"
)


@pytest.mark.parametrize("study", PLANS)
def test_a_plan_of_one_row_is_in_the_singular(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.jsonl").write_text(json.dumps(PROMPT) + "\n")
    result = CliRunner().invoke(main, [*PLANS[study].split(), "--dry-run"])
    assert result.exit_code == 0, result.output
    assert PLURAL_OF_ONE.findall(" ".join(result.output.split())) == []
