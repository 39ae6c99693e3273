"""A provider that fails for some prompts and then recovers costs no study a number, and no reply is
paid twice.
"""

import io
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai import eval_set
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from selfprobe.cli import main
from selfprobe.study import waves

[DESK] = re.findall(
    r"`desk\.py`:\n\n```python\n(.*?)```",
    (Path(__file__).parent.parent / "docs/outcome.md").read_text(),
    re.S,
)
FAKE = "openai-api/fake/"
TWO = f"{FAKE}a,{FAKE}b"
CONVERSATIONS = "eval_awareness_2"
SMALL = ("--limit", "8")
READ = ("--grader", f"{FAKE}g")
FEW_EDITS = ("--most", "1", "--controls", "1")
SUBJECT = ("--model", f"{FAKE}s")
TAKEN_OUT = ("--remove", "words of test items", *READ)
AWARENESS = ("awareness", "run", "--models", f"{FAKE}a", *READ, *SMALL)
STUDIES: Mapping[str, Sequence[str]] = {
    "turns": ("awareness", "turns", CONVERSATIONS, "--models", f"{FAKE}a", "--most", "2", *SMALL),
    "matrix": ("matrix", "--models", TWO, "--tasks", "kth_word,paraphrase_recognition", *SMALL),
    "matrix with hints": (
        "matrix",
        "--models",
        TWO,
        "--tasks",
        "kth_word",
        "--observers",
        "named",
        *SMALL,
    ),
    "awareness run": (*AWARENESS, "--methods", "all"),
    "awareness run with a panel": (
        *AWARENESS,
        "--methods",
        "user_motivation",
        "--grader",
        f"{FAKE}g,{FAKE}h",
    ),
    "scan": ("awareness", "scan", "{logs}", *READ),
    "cues": (
        "awareness",
        "cues",
        CONVERSATIONS,
        "--models",
        f"{FAKE}a",
        *READ,
        *FEW_EDITS,
        "--limit",
        "8",
    ),
    "effect": ("awareness", "effect", "{task}", "--models", f"{FAKE}a", *READ, *SMALL),
    "features": (
        "awareness",
        "features",
        "{noticed}",
        "--embedder",
        "openai/words",
        "--clusters",
        "6",
        *READ,
    ),
    "card": ("realism", "card", CONVERSATIONS, "--judges", f"{FAKE}j", *SUBJECT, "--prompts", "6"),
    "rewrite": (
        "realism",
        "rewrite",
        "{mine}",
        *TAKEN_OUT,
        "--writer",
        f"{FAKE}w",
        "--judges",
        f"{FAKE}j",
        *SUBJECT,
    ),
    "outcome": ("outcome", "{logs}", "--models", TWO, "--score", "k1"),
    "check": ("check", "--run", "kth_word", "--models", TWO, *SMALL),
}
FAST = ("turns",)
CANNOT_SKIP = ("matrix", "matrix with hints", "features")
"""Studies without --skip-errors."""
QUIET = ("--yes", "--display", "none", "--max-retries", "0")
SHARE = 0.06
"""Share of the calls that fail; of few calls six fail."""


@pytest.fixture(autouse=True)
def events_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's run keeps them."""
    monkeypatch.setattr(waves, "eval_set", eval_set)


@pytest.fixture
def files(
    tmp_path: Path, server: Any, embedder: str, run_task: Callable[..., EvalLog]
) -> Callable[[Sequence[str]], dict[str, str]]:
    """What commands read, by the name in braces; logs are made where a command names them."""
    (tmp_path / "desk.py").write_text(DESK)
    prompts = (
        f'{{"prompt": "Here are questions about town {n}. Choose the correct answers."}}\n'
        for n in range(8)
    )
    (tmp_path / "mine.jsonl").write_text("".join(prompts))

    def made(arguments: Sequence[str]) -> dict[str, str]:
        if "{logs}" in arguments:
            for model in "ab":
                run_task(
                    "selfprobe/kth_word", f"{FAKE}{model}", tmp_path / "logs", limit=8, epochs=1
                )
        if "{noticed}" in arguments:
            grader = {
                "grader": replying(
                    lambda text: json.dumps({"aware": True, "quotes": [suspicion_in(text)]})
                )
            }
            number = count()
            subject = replying(lambda text: f"Hm. Test number {next(number)} of my kind, I guess.")
            run_task(
                "selfprobe/user_motivation",
                subject,
                tmp_path / "noticed",
                limit=8,
                model_roles=grader,
            )
        names = {"task": "desk.py", "mine": "mine.jsonl", "logs": "logs", "noticed": "noticed"}
        return {f"{{{name}}}": str(tmp_path / file) for name, file in names.items()}

    return made


def suspicion_in(text: str) -> str:
    return (re.findall(r"Test number \d+ of my kind", text) or [""])[0]


def replying(reply: Callable[[str], str]) -> Model:
    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", reply(messages[-1].text))
        output.usage = ModelUsage(
            input_tokens=1, output_tokens=1, total_tokens=2
        )  # else it counts with a network
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


NOT_COMPARED = ["log", "created", "tokens"]
"""Columns of the tables that tell of a run's files, time and work."""


def tables(folder: Path) -> dict[str, list[str]]:
    """Rows of the tables of a page by the table's name; logs are in the order in which they ended."""
    rows_by_name = dict[str, list[str]]()
    for file in sorted(folder.rglob("tables/**/*.csv")):
        text = file.read_text().replace(str(folder), "")
        text = re.sub(r"[\w:./+-]*\d{4}-\d\d-\d\dT[\w+-]+(\.eval)?", "LOG", text)
        table = pd.read_csv(io.StringIO(text)) if text.strip() else pd.DataFrame()
        rows = table.drop(columns=NOT_COMPARED, errors="ignore").to_csv(index=False).splitlines()
        rows_by_name[str(file.relative_to(folder))] = (
            sorted(rows) if file.name == "runs.csv" else rows
        )
    return rows_by_name


class Started:
    """Starts of one study's command, each in a folder of the test."""

    def __init__(self, study: str, server: Any, there: Mapping[str, str], folder: Path) -> None:
        self.study, self.server, self.folder = study, server, folder
        self.typed = [there.get(part, part) for part in STUDIES[study]]

    def command(self, name: str, *more: str) -> list[str]:
        page = () if self.study == "check" else ("--out", str(self.folder / name / "page"))
        return [*self.typed, *more, "--log-dir", str(self.folder / name / "runs"), *page, *QUIET]

    def start(self, name: str, *more: str) -> Result:
        return CliRunner().invoke(main, self.command(name, *more))

    def undisturbed(self) -> Counter[tuple[str, str]]:
        """Replies of an undisturbed start, by model and request."""
        self.server.reset()
        done = self.start("undisturbed")
        assert done.exit_code == 0, done.output
        replies = Counter(self.server.answered)
        self.server.reset()
        return replies

    def ends_as_undisturbed(self, name: str, *more: str) -> None:
        """The command's next start completes, with the tables of the undisturbed one."""
        done = self.start(name, *more)
        assert done.exit_code == 0, done.output
        ours, undisturbed = tables(self.folder / name), tables(self.folder / "undisturbed")
        assert ours.keys() == undisturbed.keys()
        differing = [
            pair for table in ours for pair in zip_longest(ours[table], undisturbed[table])
        ]
        assert [pair for pair in differing if pair[0] != pair[1]] == []


Start = Callable[[str], Started]


@pytest.fixture
def study_of(
    server: Any, files: Callable[[Sequence[str]], dict[str, str]], tmp_path: Path
) -> Start:
    return lambda study: Started(study, server, files(STUDIES[study]), tmp_path)


def asking_commands(
    command: click.Command | None, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Words of every command that asks models of providers."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from asking_commands(command.get_command(context, name), (*words, name))
    elif command is not None and "max_retries" in {param.name for param in command.params}:
        yield words


def test_every_command_that_asks_models_is_among_the_studies_below() -> None:
    commands = list(asking_commands(main))
    assert ("matrix",) in commands
    typed = [tuple(arguments) for arguments in STUDIES.values()]
    assert [
        words for words in commands if not any(part[: len(words)] == words for part in typed)
    ] == []


CASES = [(study, ()) for study in STUDIES]
CASES += [(study, ("--skip-errors",)) for study in STUDIES if study not in CANNOT_SKIP]


@pytest.mark.parametrize(
    ("study", "more"),
    [pytest.param(*case, marks=() if case[0] in FAST else pytest.mark.slow(15)) for case in CASES],
)
def test_after_an_outage_the_same_command_has_the_undisturbed_tables_and_pays_no_reply_twice(
    study: str, more: tuple[str, ...], server: Any, study_of: Start
) -> None:
    starts = study_of(study)
    replies = starts.undisturbed()

    share = min(max(SHARE, 6 / replies.total()), 0.8) / 4
    for_good = {"400": share, "500": share}
    server.configure(
        {"*": {"faults": for_good | {"429": share, "503": share}, "sticky": tuple(for_good)}}
    )
    first = starts.start("broken", *more)
    assert set(server.stats()["faults"]) & set(for_good), "nothing failed for good"
    if more:
        assert re.search(
            r"^  \d+ samples? (is|are) left out; the same command asks \w+ again\.$",
            first.stderr,
            re.M,
        )

    server.configure({"*": {"faults": {}}})
    starts.ends_as_undisturbed("broken", *more)
    assert server.answered == replies


STOPPED = """
import os, signal
from pathlib import Path
from selfprobe.cli import main
from selfprobe.solvers import sent

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
received, keep = [0], sent.keep_reply

def keep_reply(asked, reply):
    if received[0] == {after}:
        os.kill(os.getpid(), signal.{signal})
    received[0] += 1
    Path({count!r}).write_text(str(received[0]))
    keep(asked, reply)

sent.keep_reply = keep_reply
main({command!r})
"""
SEVERAL_WAVES = ("matrix", "awareness run", "effect", "rewrite")
STOPS = [("matrix", "SIGINT", 0.35), ("effect", "SIGTERM", 0.6)]
STOPS += [
    (study, "SIGKILL", share)
    for study, share in zip(SEVERAL_WAVES, (0.3, 0.7, 0.5, 0.2), strict=True)
]


@pytest.mark.slow(25)
@pytest.mark.parametrize(("study", "signal", "share"), STOPS)
def test_after_a_stop_the_same_command_has_the_undisturbed_tables_and_asks_what_has_no_reply_yet(
    study: str, signal: str, share: float, server: Any, study_of: Start, tmp_path: Path
) -> None:
    starts = study_of(study)
    replies = starts.undisturbed()

    count, command = tmp_path / "count", starts.command("broken", "--max-connections", "4")
    given = {
        "after": int(share * replies.total()),
        "signal": signal,
        "count": str(count),
        "command": command,
    }
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPED.format(**given)], capture_output=True, check=False
    )
    assert stopped.returncode == {"SIGKILL": -9, "SIGINT": 130, "SIGTERM": 143}[signal], (
        stopped.stderr
    )

    received = int(count.read_text())
    server.reset()
    starts.ends_as_undisturbed("broken")
    assert server.answered.total() == replies.total() - received
    assert not server.answered - replies
