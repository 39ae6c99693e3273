"""A provider that fails for some prompts and then recovers costs no study a number, and no call is paid twice."""

import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai import eval_set

from selfprobe.cli import main
from selfprobe.study import waves

[DESK] = re.findall(
    r"`desk\.py`:\n\n```python\n(.*?)```", (Path(__file__).parent.parent / "docs/outcome.md").read_text(), re.S
)
FAKE = "openai-api/fake/"
CONVERSATIONS = "eval_awareness_2"
RUN = ("awareness", "run", "--models", f"{FAKE}a", "--grader", f"{FAKE}g", "--limit", "8", "--methods")
REWRITE = (
    *("realism", "rewrite", "{mine}", "--remove", "words of test items", "--judges", f"{FAKE}j"),
    *("--writer", f"{FAKE}w", "--grader", f"{FAKE}g", "--model", f"{FAKE}s"),
)
CARD = ("realism", "card", CONVERSATIONS, "--judges", f"{FAKE}j", "--model", f"{FAKE}s", "--prompts", "6")
STUDIES: Mapping[str, Sequence[str]] = {
    "matrix": ("matrix", "--models", f"{FAKE}a,{FAKE}b", "--tasks", "kth_word,paraphrase_recognition", "--limit", "8"),
    "matrix with hints": ("matrix", "--models", f"{FAKE}a,{FAKE}b", "--tasks", "kth_word", "--limit", "8")
    + ("--observers", "named"),
    "awareness run": (*RUN, "all"),
    "scan": ("awareness", "scan", "{logs}", "--grader", f"{FAKE}g"),
    "turns": ("awareness", "turns", CONVERSATIONS, "--models", f"{FAKE}a", "--most", "2", "--limit", "8"),
    "cues": ("awareness", "cues", CONVERSATIONS, "--models", f"{FAKE}a", "--grader", f"{FAKE}g", "--limit", "3"),
    "effect": ("awareness", "effect", "{task}", "--models", f"{FAKE}a", "--grader", f"{FAKE}g", "--limit", "8"),
    "features": ("awareness", "features", "{noticed}", "--clusters", "6", "--grader", f"{FAKE}g"),
    "card": CARD,
    "rewrite": REWRITE,
    "outcome": ("outcome", "{logs}", "--models", f"{FAKE}a,{FAKE}b", "--score", "k1"),
    "check": ("check", "--run", "kth_word", "--models", f"{FAKE}a,{FAKE}b", "--limit", "8"),
}
FAST = ("turns",)
QUIET = ("--yes", "--display", "none", "--max-retries", "0")
SHARE = 0.06
FOR_GOOD = {"400": SHARE / 3, "500": SHARE / 3}
"""Faults of prompts that fail each time until the provider recovers."""
PASSING = {"429": SHARE / 3, "503": SHARE / 3}


@pytest.fixture(autouse=True)
def events_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's run keeps them."""
    monkeypatch.setattr(waves, "eval_set", eval_set)


@pytest.fixture
def files(tmp_path: Path, server: Any, run_task: Callable[..., Any]) -> Mapping[str, str]:
    """What the commands read, by the name in braces; logs are made where a command names them."""
    (tmp_path / "desk.py").write_text(DESK)
    prompts = (f'{{"prompt": "Here are questions about town {n}. Choose the correct answers."}}\n' for n in range(8))
    (tmp_path / "mine.jsonl").write_text("".join(prompts))
    return {
        "{task}": str(tmp_path / "desk.py"),
        "{mine}": str(tmp_path / "mine.jsonl"),
        "{logs}": str(tmp_path / "logs"),
    }


def logs_of_models(folder: str, run_task: Callable[..., Any]) -> None:
    for model in "ab":
        run_task("selfprobe/kth_word", f"{FAKE}{model}", Path(folder), limit=8, epochs=1)


def started(arguments: Sequence[str], files: Mapping[str, str], folder: Path, *more: str) -> Result:
    typed = [files.get(part, part) for part in arguments]
    places = ["--log-dir", str(folder / "runs")]
    places += [] if arguments[0] == "check" else ["--out", str(folder / "page")]
    return CliRunner().invoke(main, [*typed, *more, *places, *QUIET])


NOT_COMPARED = ["log", "created", "tokens"]
"""Columns of the tables that tell of a run's files, time and work."""


def tables(folder: Path) -> dict[str, list[str]]:
    """Rows of the tables of a page by the table's name; logs are in the order in which they ended."""
    found = dict[str, list[str]]()
    for file in sorted(folder.rglob("tables/**/*.csv")):
        text = file.read_text().replace(str(folder), "")
        text = re.sub(r"[\w:./+-]*\d{4}-\d\d-\d\dT[\w+-]+(\.eval)?", "LOG", text)
        table = pd.read_csv(io.StringIO(text)) if text.strip() else pd.DataFrame()
        rows = table.drop(columns=NOT_COMPARED, errors="ignore").to_csv(index=False).splitlines()
        found[str(file.relative_to(folder))] = sorted(rows) if file.name == "runs.csv" else rows
    return found



CANNOT_SKIP = {"matrix", "matrix with hints", "features"}
CASES = [(study, how) for study in STUDIES for how in ("whole", "skipping") if how == "whole" or study not in CANNOT_SKIP]


@pytest.mark.parametrize(("study", "how"), [pytest.param(*s, marks=[] if s[0] in FAST else pytest.mark.slow(20)) for s in CASES])
def test_after_an_outage_the_same_command_has_the_undisturbed_tables_and_pays_no_call_twice(
    study: str, how: str, server: Any, files: Mapping[str, str], tmp_path: Path, run_task: Callable[..., Any]
) -> None:
    arguments = STUDIES[study]
    if "{logs}" in arguments:
        logs_of_models(files["{logs}"], run_task)
    server.reset()
    assert (done := started(arguments, files, tmp_path / "whole")).exit_code == 0, done.output
    undisturbed = Counter(server.server.stats.answered)
    server.reset()
    share = max(SHARE, 6 / undisturbed.total())
    faults = {"400": share/4, "500": share/4, "429": share/4, "503": share/4}
    server.configure({"*": {"faults": faults, "sticky": ("400", "500")}})
    more = ("--skip-errors",) if how == "skipping" else ()
    first = started(arguments, files, tmp_path / "broken", *more)
    print(first.exit_code, first.output[-3000:])
    print(server.stats())
    assert server.stats()["faults"]
    n1 = Counter(server.server.stats.answered).total()
    server.configure({"*": {"faults": {}}})
    second = started(arguments, files, tmp_path / "broken", *more)
    print(second.output[-2000:])
    assert second.exit_code == 0, second.output
    answered = Counter(server.server.stats.answered)
    print("undisturbed", undisturbed.total(), "first", n1, "second", answered.total() - n1, "twice", (answered - undisturbed).total())
    a, b = tables(tmp_path / "broken"), tables(tmp_path / "whole")
    for k in a:
        for x, y in zip(a[k], b[k]):
            if x != y: print("DIFF", k, x, "|||", y)
    assert a == b
    assert answered == undisturbed
