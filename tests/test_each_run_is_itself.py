"""A study that is started again with another setting in between shows the first run's numbers
again.
"""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.logs import runs, titles

[DESK] = re.findall(
    r"`desk\.py`:\n\n```python\n(.*?)```",
    (Path(__file__).parent.parent / "docs/outcome.md").read_text(),
    re.S,
)
TURNS = (
    "awareness",
    "turns",
    "eval_awareness_2",
    "--models",
    "planted/a?wobble=.2",
    "--most",
    "2",
    "--limit",
    "4",
)
CUES = (
    "awareness",
    "cues",
    "eval_awareness_2",
    "--models",
    "planted/a?wobble=.2",
    "--most",
    "3",
    "--limit",
    "2",
)
SCAN = ("awareness", "scan", "{logs}", "--grader", "planted/g")
CARD = ("realism", "card", "eval_awareness_2", "--judges", "planted/j?wobble=.3", "--prompts", "6")
OUTCOME = ("outcome", "{logs}", "--models", "planted/m", "--score", "k1")
RUN = ("awareness", "run", "--models", "planted/a?awareness=.7", "--limit", "8", "--methods")
REWRITE = (
    "realism",
    "rewrite",
    "{mine}",
    "--remove",
    "words of test items",
    "--judges",
    "planted/j?liking=.5&words=.8",
)
REWRITE = (*REWRITE, "--writer", "planted/w?strays=.2", "--grader", "planted/g")
EFFECT = (
    "awareness",
    "effect",
    "{task}",
    "--models",
    "planted/ada?declines=.6&obeys=.5",
    "--limit",
    "8",
    "--grader",
)
STUDIES = {
    "awareness run, another effort": ((*RUN, "binary"), ("--effort", "high")),
    "awareness run, longer answers": ((*RUN, "probability"), ("--answer-tokens", "30")),
    "awareness run, another grader": (
        (*RUN, "user_motivation", "--grader", "planted/g"),
        ("--grader", "planted/h?notices=.5"),
    ),
    "rewrite, another grader": (REWRITE, ("--grader", "planted/h")),
    "effect, another writer of the texts": ((*EFFECT, "planted/g"), ("--grader", "planted/h")),
    "outcome, another score": (OUTCOME, ("--score", "k2")),
    "outcome, about another assistant too": (OUTCOME, ("--about", "self,other")),
    "scan, another grader": (SCAN, ("--grader", "planted/h?notices=.5")),
    "scan, other pieces": (SCAN, ("--piece", "40")),
    "turns, another effort": (TURNS, ("--effort", "high")),
    "turns, longer answers": (TURNS, ("--answer-tokens", "30")),
    "turns, no placebo": (TURNS, ("--no-placebo",)),
    "turns, other data": (TURNS, ("{other}",)),
    "cues, another grader": ((*CUES, "--grader", "planted/g"), ("--grader", "planted/h")),
    "cues, an effort": (CUES, ("--effort", "low")),
    "card, an effort of the judges": (CARD, ("--effort", "low")),
}

FAST = ("scan, another grader", "turns, another effort")


def call(
    folder: Path, arguments: tuple[str, ...], changed: tuple[str, ...], page: str
) -> dict[str, bytes]:
    """The tables of a call, by name."""
    typed = list(arguments)
    for at, part in enumerate(changed):
        if part.startswith("--") and part in typed:
            typed[typed.index(part) + 1] = changed[at + 1]
        elif part == "{other}":
            typed[2] = str(folder / "other.jsonl")
        elif part.startswith("--"):
            typed += changed[at : at + (2 if len(changed) > 1 else 1)]
    files = {"{logs}": "logs", "{mine}": "mine.jsonl", "{task}": "desk.py"}
    typed = [str(folder / files[part]) if part in files else part for part in typed]
    places = ["--log-dir", str(folder / "runs"), "--out", str(folder / page)]
    done = CliRunner().invoke(main, [*typed, *places, "--yes"])
    assert done.exit_code == 0, done.output
    return {
        file.name: file.read_bytes() for file in sorted((folder / page / "tables").rglob("*.csv"))
    }


@pytest.fixture(scope="module")
def kth_words(tmp_path_factory: pytest.TempPathFactory, run_task) -> Path:  # type: ignore[no-untyped-def]
    """Logs that a scan reads."""
    folder = tmp_path_factory.mktemp("kth_words")
    run_task("selfprobe/kth_word", "planted/m", folder, limit=4)
    return folder


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow(4) if name not in FAST else ()) for name in STUDIES],
)
def test_the_third_page_is_the_first_and_both_runs_stay(
    name: str, tmp_path: Path, kth_words: Path
) -> None:
    (tmp_path / "logs").symlink_to(kth_words)
    rows = "".join(
        f'{{"prompt": "Is {n} a prime number?", "label": "evaluation"}}\n' for n in range(4)
    )
    (tmp_path / "other.jsonl").write_text(rows)
    mine = "".join(
        f'{{"prompt": "Here are questions about town {n}. Choose the correct answers."}}\n'
        for n in range(8)
    )
    (tmp_path / "mine.jsonl").write_text(mine)
    (tmp_path / "desk.py").write_text(DESK)
    arguments, changed = STUDIES[name]
    first, second, third = (
        call(tmp_path, arguments, with_, f"p{n}") for n, with_ in enumerate(((), changed, ()))
    )
    assert first == third
    assert second != first, "the setting changes nothing here, so the test shows nothing"
    if "card" not in name:
        there = runs([str(tmp_path / "runs")])
        assert (
            len(there.finished) > 1
            and len(set(titles(run.identity for run in there.finished).values())) > 1
        )
