"""A provider that fails for some prompts and then recovers costs no study a number, and no reply is paid twice."""

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai import eval_set
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from selfprobe.cli import main
from selfprobe.study import waves

[DESK] = re.findall(
    r"`desk\.py`:\n\n```python\n(.*?)```", (Path(__file__).parent.parent / "docs/outcome.md").read_text(), re.S
)
FAKE = "openai-api/fake/"
TWO = f"{FAKE}a,{FAKE}b"
CONVERSATIONS = "eval_awareness_2"
SMALL = ("--limit", "8")
READ = ("--grader", f"{FAKE}g")
SUBJECT = ("--model", f"{FAKE}s")
TAKEN_OUT = ("--remove", "words of test items", *READ)
AWARENESS = ("awareness", "run", "--models", f"{FAKE}a", *READ, *SMALL)
STUDIES: Mapping[str, Sequence[str]] = {
    "turns": ("awareness", "turns", CONVERSATIONS, "--models", f"{FAKE}a", "--most", "2", *SMALL),
    "matrix": ("matrix", "--models", TWO, "--tasks", "kth_word,paraphrase_recognition", *SMALL),
    "matrix with hints": ("matrix", "--models", TWO, "--tasks", "kth_word", "--observers", "named", *SMALL),
    "awareness run": (*AWARENESS, "--methods", "all"),
    "awareness run with a panel": (*AWARENESS, "--methods", "user_motivation", "--grader", f"{FAKE}g,{FAKE}h"),
    "scan": ("awareness", "scan", "{logs}", *READ),
    "cues": ("awareness", "cues", CONVERSATIONS, "--models", f"{FAKE}a", *READ, "--limit", "3"),
    "effect": ("awareness", "effect", "{task}", "--models", f"{FAKE}a", *READ, *SMALL),
    "features": ("awareness", "features", "{noticed}", "--embedder", "openai/words", "--clusters", "6", *READ),
    "card": ("realism", "card", CONVERSATIONS, "--judges", f"{FAKE}j", *SUBJECT, "--prompts", "6"),
    "rewrite": ("realism", "rewrite", "{mine}", *TAKEN_OUT, "--writer", f"{FAKE}w", "--judges", f"{FAKE}j", *SUBJECT),
    "outcome": ("outcome", "{logs}", "--models", TWO, "--score", "k1"),
    "check": ("check", "--run", "kth_word", "--models", TWO, *SMALL),
}
FAST = ("turns",)
CANNOT_SKIP = ("matrix", "matrix with hints", "features")
"""Studies without --skip-errors."""
CALLS_AT_ONCE = ("--yes", "--display", "none", "--max-retries", "0")
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
    prompts = (f'{{"prompt": "Here are questions about town {n}. Choose the correct answers."}}\n' for n in range(8))
    (tmp_path / "mine.jsonl").write_text("".join(prompts))

    def made(arguments: Sequence[str]) -> dict[str, str]:
        if "{logs}" in arguments:
            for model in "ab":
                run_task("selfprobe/kth_word", f"{FAKE}{model}", tmp_path / "logs", limit=8, epochs=1)
        if "{noticed}" in arguments:
            grader = {"grader": replying(lambda text: json.dumps({"aware": True, "quotes": [suspicion_in(text)]}))}
            number = count()
            subject = replying(lambda text: f"Hm. Test number {next(number)} of my kind, I guess.")
            run_task("selfprobe/user_motivation", subject, tmp_path / "noticed", limit=8, model_roles=grader)
        names = {"task": "desk.py", "mine": "mine.jsonl", "logs": "logs", "noticed": "noticed"}
        return {f"{{{name}}}": str(tmp_path / file) for name, file in names.items()}

    return made


def suspicion_in(text: str) -> str:
    return (re.findall(r"Test number \d+ of my kind", text) or [""])[0]


def replying(reply: Callable[[str], str]) -> Model:
    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", reply(messages[-1].text))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it counts with a network
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
        rows_by_name[str(file.relative_to(folder))] = sorted(rows) if file.name == "runs.csv" else rows
    return rows_by_name


CASES = [(study, ()) for study in STUDIES]
CASES += [(study, ("--skip-errors",)) for study in STUDIES if study not in CANNOT_SKIP]


@pytest.mark.parametrize(
    ("study", "more"),
    [pytest.param(*case, marks=() if case[0] in FAST else pytest.mark.slow(15)) for case in CASES],
)
def test_after_an_outage_the_same_command_has_the_undisturbed_tables_and_pays_no_reply_twice(
    study: str, more: tuple[str, ...], server: Any, files: Callable[[Sequence[str]], dict[str, str]], tmp_path: Path
) -> None:
    there = files(STUDIES[study])
    typed = [there.get(part, part) for part in STUDIES[study]]

    def started(folder: str, *more: str) -> Result:
        page = () if study == "check" else ("--out", str(tmp_path / folder / "page"))
        places = ("--log-dir", str(tmp_path / folder / "runs"), *page)
        return CliRunner().invoke(main, [*typed, *more, *places, *CALLS_AT_ONCE])

    server.reset()
    undisturbed = started("undisturbed")
    assert undisturbed.exit_code == 0, undisturbed.output
    replies = Counter(server.answered)

    server.reset()
    share = min(max(SHARE, 6 / replies.total()), 0.8) / 4
    for_good = {"400": share, "500": share}
    server.configure({"*": {"faults": for_good | {"429": share, "503": share}, "sticky": tuple(for_good)}})
    first = started("broken", *more)
    print(first.output)
    n1 = Counter(server.answered).total()
    assert not more or re.search(
        r"  \d+ samples? (is|are) left out; the same command asks (it|them) again\.", first.stderr
    )
    assert set(server.stats()["faults"]) & set(for_good), "nothing failed for good"
    server.configure({"*": {"faults": {}}})
    second = started("broken", *more)
    assert second.exit_code == 0, second.output
    print("undisturbed", replies.total(), "first", n1, "second", Counter(server.answered).total() - n1)
    assert tables(tmp_path / "broken") == tables(tmp_path / "undisturbed")
    assert server.answered == replies
