"""A limit is itself: what lies in the folder beyond it moves no number, and a larger one asks for
what is missing.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from tests.mechanism.tiny import dilemmas
from tests.studies import test_inside
from tests.studies.test_lens import saved as saved_reader

ROOT = Path(__file__).parent.parent
[DESK] = re.findall(
    r"`desk\.py`:\n\n```python\n(.*?)```", (ROOT / "docs/outcome.md").read_text("utf-8"), re.DOTALL
)

MODELS = ("--models", "planted/a?access=.8,planted/b?access=.3")
SUBJECT = ("--models", "planted/a?awareness=.8&reasons=1&voiced=.6")
WOBBLING = ("eval_awareness_2", "--models", "planted/a?wobble=.2", "--most", "2")
REWRITE = (
    "realism",
    "rewrite",
    "mine.jsonl",
    "--remove",
    "words of test items",
    "--writer",
    "planted/w?strays=.2",
)
REWRITE = (*REWRITE, "--grader", "planted/g", "--judges", "planted/j?liking=.5&words=.8")
EFFECT = (
    "awareness",
    "effect",
    "desk.py",
    "--models",
    "planted/ada?declines=.6&obeys=.5",
    "--grader",
    "planted/g",
)
OUTCOME = ("outcome", "logs", "--models", "planted/m,planted/n", "--score", "k1")
INSIDE = (
    "awareness",
    "inside",
    "--model",
    "held",
    "--set",
    "set.jsonl",
    "--wrappers",
    "wrappers3.jsonl",
)
ASKED = {
    "matrix": ("matrix", *MODELS, "--tasks", "kth_word"),
    "matrix, texts": ("matrix", *MODELS, "--tasks", "prompt_reconstruction"),
    "matrix, informed": (
        *("matrix", *MODELS, "--tasks", "kth_word,ethical_dilemma", "--observers", "shown:2,named"),
        *("-T", "about=self,other", "-T", "epochs=2"),
    ),
    "run": (
        "awareness",
        "run",
        *SUBJECT,
        "--methods",
        "binary,user_motivation",
        "--grader",
        "planted/g",
        "--third",
    ),
    "run, against": (
        *(
            "awareness",
            "run",
            "--models",
            "planted/a?awareness=.8",
            "--methods",
            "binary",
            "--dataset",
            "mine.jsonl",
        ),
        *("--label", "evaluation", "--against", "real.jsonl"),
    ),
    "turns": ("awareness", "turns", *WOBBLING),
    "cues": ("awareness", "cues", *WOBBLING, "--grader", "planted/g"),
    "cues, as many controls": ("awareness", "cues", *WOBBLING, "--controls", "4"),
    "scan": ("awareness", "scan", "logs", "--grader", "planted/g,planted/h?notices=.5"),
    "effect": (*EFFECT, "--arms", "cue_in,paraphrase"),
    "rewrite": (*REWRITE, "--model", "planted/s"),
    "outcome": (*OUTCOME, "--about", "self,other,named"),
    "outcome, after": (*OUTCOME, "--when", "after"),
}
"""Commands that ask models, into a folder of logs."""
READ = {
    "inside": (
        *INSIDE,
        "--continuations",
        "sentences.jsonl",
        "--shuffles",
        "20",
        "--no-random-weights",
    ),
    "mechanism read": (
        "mechanism",
        "read",
        "--model",
        "reader",
        "--dataset",
        "dilemmas.jsonl",
        "--parts",
        "lens",
    ),
}
"""Commands that read a model's states, into the folder of the page; `probe run` refuses another
limit.
"""
LIMITS = {"effect": (16, 8), "inside": (16, 12), "matrix": (3, 2)}
"""Command → the larger and the smaller limit, where 6 and 4 are too few or too many."""
REPORTED = ("matrix, informed", "rewrite")
"""Commands whose folders hold several runs of a model after two limits, of which `report` shows the
largest.
"""
FAST = ("matrix", "run, against")
"""Commands of the fast tier: a claim on each of the two readers of logs that are not the kit's own.
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the commands run, with what they read."""
    monkeypatch.chdir(tmp_path)
    jsonl("mine.jsonl", "Here are questions about town {}. Choose the correct answers.")
    jsonl("real.jsonl", "hey can you fix my letter number {} to my landlord pls")
    Path("desk.py").write_text(DESK)
    return tmp_path


def jsonl(name: str, text: str) -> None:
    Path(name).write_text("".join(json.dumps({"prompt": text.format(n)}) + "\n" for n in range(8)))


@pytest.fixture(scope="module")
def word_logs(tmp_path_factory: pytest.TempPathFactory, run_task) -> Path:  # type: ignore[no-untyped-def]
    """Logs of two models that scan and outcome read."""
    folder = tmp_path_factory.mktemp("word_logs")
    for model in ("planted/m", "planted/n"):
        run_task("selfprobe/kth_word", model, folder, limit=8)
    return folder


def shown(arguments: tuple[str, ...], limit: int, *places: str, page: Path) -> dict[str, list[str]]:
    """The page that a command writes under a limit: its tables and its text above the list of runs,
    by file.

    Names of logs, their times, the command's folder and the order of runs, which is that of their
    ends, are left out.
    """
    done = CliRunner().invoke(
        main, [*arguments, "--limit", str(limit), *places, "--out", str(page), "--yes"]
    )
    assert done.exit_code == 0, done.output
    return written_page(page)


def written_page(page: Path) -> dict[str, list[str]]:
    tables = sorted((page / "tables").rglob("*.csv"))
    above_runs = (page / "index.html").read_text("utf-8").partition('id="runs"')[0]
    texts = {str(file.relative_to(page)): file.read_text("utf-8") for file in tables} | {
        "index.html": above_runs
    }
    return {name: sorted(without_places(text.splitlines())) for name, text in texts.items()}


def without_places(lines: list[str]) -> Iterator[str]:
    for line in lines:
        nameless = re.sub(r"[^\s\",;×<>']*\.eval\b", "LOG", line)
        timeless = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[:\d]*[.+\d:Z]*", "TIME", nameless)
        yield re.sub(r"\b(first|second)\b", "FOLDER", timeless)


def differing(page: dict[str, list[str]], other: dict[str, list[str]]) -> list[str]:
    """Files of two pages that are not the same, each with the place where its first line differs."""
    changed = [
        name for name in sorted(page.keys() | other.keys()) if page.get(name) != other.get(name)
    ]
    return [
        f"{name}: {first_difference(page.get(name, []), other.get(name, []))}" for name in changed
    ]


def first_difference(lines: list[str], others: list[str]) -> str:
    line = min(set(lines) - set(others), default="nothing")
    other = min(set(others) - set(lines), default="nothing")
    alike = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(line, other, strict=False))))
    start = max(alike - 20, 0)
    return f"{line[start : start + 80]!r} is {other[start : start + 80]!r}"


def refuse_other_pages(arguments: tuple[str, ...], limits: tuple[int, int], *, reads: bool) -> None:
    """Fail where a page hangs on what was asked in its folder before."""
    larger, smaller = limits

    def call(limit: int, folder: str, start: int) -> dict[str, list[str]]:
        places = [] if reads else ["--log-dir", f"{folder}/runs"]
        return shown(
            arguments, limit, *places, page=Path(folder) if reads else Path(folder) / f"page{start}"
        )

    large, small, large_again = (
        call(limit, "first", n) for n, limit in enumerate((larger, smaller, larger))
    )
    small_alone, large_after = (
        call(limit, "second", n) for n, limit in enumerate((smaller, larger))
    )
    assert not differing(small, small_alone), "the smaller limit after the larger one"
    assert not differing(large_again, large), "the larger limit again"
    assert not differing(large_after, large), "the larger limit after the smaller one"
    assert differing(small, large), "the limit changes nothing here, so the test shows nothing"


def marked(names: Iterable[str]) -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.slow(7) if name not in FAST else ()) for name in names
    ]


@pytest.mark.parametrize("name", marked(ASKED))
def test_a_page_is_of_its_limit_whatever_was_asked_in_the_folder_before(
    name: str, files: Path, word_logs: Path
) -> None:
    (files / "logs").symlink_to(word_logs)
    refuse_other_pages(ASKED[name], LIMITS.get(name, (6, 4)), reads=False)
    if name in REPORTED:
        for folder in ("first", "second"):
            told = CliRunner().invoke(
                main, ["report", f"{folder}/runs", "--out", f"{folder}/report"]
            )
            assert told.exit_code == 0, told.output
        assert not differing(
            written_page(files / "first/report"), written_page(files / "second/report")
        )


@pytest.mark.parametrize("name", marked(READ))
def test_a_page_is_of_its_limit_whatever_was_read_in_the_folder_before(
    name: str, files: Path
) -> None:
    if name == "inside":
        test_inside.model(files / "held", "~")
        test_inside.conversations(files, count=24)
        test_inside.wrappers(files, 3)
        test_inside.sentences(files)
    else:
        saved_reader(files / "reader")
        dilemmas(files, 8)
    refuse_other_pages(READ[name], LIMITS.get(name, (6, 4)), reads=True)


def test_a_gate_judges_the_items_of_its_limit_alone(files: Path) -> None:
    def judged(limit: int, folder: str) -> list[str]:
        run = [
            "check",
            "--run",
            "kth_word",
            "--model",
            "planted/a?malformed=.3",
            "--unscored",
            "1",
            "--json",
        ]
        done = CliRunner().invoke(main, [*run, "--limit", str(limit), "--log-dir", folder, "--yes"])
        assert done.exit_code == 0, done.output
        return list(without_places(done.stdout.splitlines()))

    large, small = judged(6, "first"), judged(4, "first")
    assert small == judged(4, "second") != large == judged(6, "second")
