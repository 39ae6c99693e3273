"""A command that is killed and called again goes on: what was answered is not asked again, and the
numbers are whole.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample

DYING = """
import os, sys
from selfprobe.cli import main
from selfprobe.providers.planted import PlantedAPI

answer, left = PlantedAPI.generate, [int(sys.argv[1])]
async def generate(self, input, *given, **named):
    if not left[0]:
        os._exit(9)  # as SIGKILL does: nothing is flushed, closed or told
    left[0] -= 1
    with open(sys.argv[2], "a") as asked:
        asked.write(repr((self.model_name, [message.text for message in input])) + chr(10))
    return await answer(self, input, *given, **named)
PlantedAPI.generate = generate
main(sys.argv[3:])
"""

REWRITERS = ("--writer", "planted/w", "--grader", "planted/g", "--judges", "planted/bea")
COMMANDS = {
    "scan": ("awareness", "scan", "LOGS", "--grader", "planted/g"),
    "turns": ("awareness", "turns", "eval_awareness_2", "--models", "planted/ada", "--limit", "4"),
    "cues": (
        "awareness",
        "cues",
        "eval_awareness_2",
        "--models",
        "planted/ada",
        "--limit",
        "2",
        "--most",
        "3",
    ),
    "card": (
        "realism",
        "card",
        "eval_awareness_2",
        "--judges",
        "planted/bea",
        "--prompts",
        "4",
        "--opponents",
        "2",
    ),
    "rewrite": (
        "realism",
        "rewrite",
        "eval_awareness_2",
        "--remove",
        "test words",
        *REWRITERS,
        "--limit",
        "4",
    ),
}
HALVES = [
    ("scan", 0.5),
    ("turns", 0.5),
    ("cues", 0.5),
    ("card", 0.5),
    ("rewrite", 0.2),
    ("rewrite", 0.8),
]
"""Command, and the share of its calls after which it dies: a rewrite's versions come first, then
its pairs.
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two logs of a task, of eight conversations of different texts each."""
    folder = tmp_path_factory.mktemp("logs")
    for name in ("ada", "bea"):
        samples = [
            Sample(id=n, input=f"What is the {n}. thing on the list of {name}?") for n in range(8)
        ]
        eval(
            Task(dataset=samples, name="lists"),
            model=f"planted/{name}",
            log_dir=str(folder),
            display="none",
        )
    return str(folder)


def called(folder: Path, command: tuple[str, ...], *, after: int) -> tuple[int, str]:
    """Exit status and output of a call that dies after so many calls of a model."""
    where = (
        "--log-dir",
        str(folder / "logs"),
        "--out",
        str(folder / "page"),
        "--display",
        "none",
        "--yes",
    )
    given = [str(after), str(folder / "asked.txt"), *command, *where, "--max-connections", "1"]
    done = subprocess.run(
        [sys.executable, "-c", DYING, *given],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow(15)
@pytest.mark.parametrize(("name", "share"), HALVES)
def test_a_killed_command_called_again_asks_only_what_was_not_answered(
    name: str, share: float, tmp_path: Path, logs: str
) -> None:
    command = tuple(logs if word == "LOGS" else word for word in COMMANDS[name])
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    assert called(whole, command, after=10_000)[0] == 0
    once = Counter((whole / "asked.txt").read_text().splitlines())
    first = int(once.total() * share)
    assert called(broken, command, after=first)[0] == 9
    status, output = called(broken, command, after=10_000)
    assert status == 0, output
    asked = Counter((broken / "asked.txt").read_text().splitlines())
    assert set(asked) == set(once)
    again = (asked - once).total()
    assert again < 0.25 * once.total(), f"{again} of {once.total()} asked twice"
    told = re.findall(
        r"^([\d,]+) (?:reply|replies) of the earlier start (?:is|are) used; at most", output, re.M
    )
    assert sum(map(int, told)) == first - again, output
    assert (broken / "page" / "index.html").is_file()
    before = (broken / "asked.txt").read_text()
    assert called(broken, command, after=0)[0] == 0, "a third call asks nothing"
    assert (broken / "asked.txt").read_text() == before
