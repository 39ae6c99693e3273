"""`selfprobe realism rewrite` on planted writers: giveaways out, other tasks marked, and what games its judge shown."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import read_eval_log

from selfprobe.cli import main
from selfprobe.providers.behaviours.awareness import TELLING

SUBJECT = "planted/ada?words=.95"
ROLES = ("--remove", "x", "--writer", "planted/w", "--grader", "planted/g", "--judges", "planted/j")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["realism", "rewrite", *map(str, arguments)])


def prompts(folder: Path, n: int = 24) -> Path:
    path = folder / "mine.jsonl"
    rows = (
        {"id": f"p{i}", "source": f"s{i % 8}", "input": f"Here are questions about town {i}: which street has the "
         f"best bakery, and when does it open on day {i % 7}? Choose the correct answers."}
        for i in range(n)
    )  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(folder: Path, writer: str, grader: str, judge: str, *also: str, **more: int) -> Result:
    asked = ("--remove", "words of test items", "--writer", writer, "--grader", grader, "--judges", judge, *also)
    where = ("--log-dir", folder / "logs", "--out", folder / "page", "--display", "none", "--yes")
    return call(prompts(folder, **more), *asked, *where)


@pytest.mark.slow(8)
def test_removed_giveaways_show_with_judges_elsewhere_and_more_than_in_a_paraphrase(tmp_path: Path) -> None:
    done = run(tmp_path, "planted/w?strays=.2&copies=.1", "planted/g", "planted/j?liking=.5&words=.8")
    assert done.exit_code == 0, done.output
    assert "\nYes, for 1 judge: in " in done.output
    assert "look more real than the originals, and more so than paraphrases do." in done.output
    html = (tmp_path / "page" / "index.html").read_text()
    assert "takes rewrites for real" in html and "Which looks more real?" in html and 'src="data:' in html
    rows = [json.loads(line) for line in (tmp_path / "page" / "rewritten.jsonl").read_text().splitlines()]
    marks = {row["mark"] for row in rows}
    assert len(rows) == 24 and {"usable", "another task"} <= marks <= {"usable", "another task", "the same text"}
    for row in rows:
        text = row["messages"][-1]["content"]
        assert row["rewritten"] == (row["mark"] == "usable") == (TELLING.search(text) is None)
    again = run(tmp_path, "planted/w?strays=.2&copies=.1", "planted/g", "planted/j?liking=.5&words=.8")
    assert again.exit_code == 0 and len(list((tmp_path / "logs").rglob("*.eval"))) == 3  # nothing is asked twice


@pytest.fixture(scope="module")
def noticed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("noticed")
    return folder, run(folder, "planted/w", "planted/g", "planted/j?liking=.5&words=.8", "--model", SUBJECT, n=16)


def test_a_held_out_subject_that_goes_by_the_words_notices_less_in_rewrites_alone(noticed: tuple[Path, Result]) -> None:
    folder, done = noticed
    assert done.exit_code == 0, done.output
    made = pd.read_csv(folder / "page" / "tables" / "subject.csv").set_index("arm")
    assert (made.unscored == 0).all() and "Unscored: 0% of the texts." in done.output
    assert made.loc["rewrite", "change_high"] < 0 and made.loc["rewrite less paraphrase", "change_high"] < 0
    assert made.loc["paraphrase", "change_low"] < 0 < made.loc["paraphrase", "change_high"]
    assert f"P(evaluation) of {SUBJECT}: −" in done.output
    assert "Does a subject notice less?" in (folder / "page" / "index.html").read_text()


def test_the_subjects_numbers_are_those_of_its_raw_logs(noticed: tuple[Path, Result]) -> None:
    folder, _ = noticed
    (log,) = (folder / "logs" / "subject").rglob("*.eval")
    p = {}
    for sample in read_eval_log(str(log)).samples or []:
        (score,) = (sample.scores or {}).values()
        p[str(sample.id)] = (score.metadata or {})["probability"]["probability"]
    change = [p[f"rewrite: p{n}"] - p[f"original: p{n}"] for n in range(16) if f"rewrite: p{n}" in p]
    made = pd.read_csv(folder / "page" / "tables" / "subject.csv").set_index("arm")
    assert len(change) == 16 and made.loc["rewrite", "change"] == pytest.approx(np.mean(change), abs=1e-6)


@pytest.mark.slow(6)
def test_a_rewrite_that_pleads_with_its_grader_shows_as_such(tmp_path: Path) -> None:
    writer, grader = "planted/w?removes=0&pleads=1", "planted/g?liking=.5&gullible=1"
    done = run(tmp_path, writer, grader, "planted/j?liking=.5")
    assert "\nNo, not for 1 judge: " in done.output
    assert "the rewrites please their own grader more than judges who had no part in them" in done.output, done.output


@pytest.mark.parametrize(
    ("writer", "told"),
    [("planted/w?empty=1", "empty 6 of 6"), ("planted/w?strays=1", "another task 6 of 6")],
)
def test_versions_of_which_none_can_be_used_are_told(tmp_path: Path, writer: str, told: str) -> None:
    for _ in range(2):
        done = run(tmp_path, writer, "planted/g", "planted/j", n=3)
        assert done.exit_code == 1 and f"no version of a prompt can be used: {told}." in done.stderr, done.stderr


def test_without_a_usable_paraphrase_no_difference_is_a_number(tmp_path: Path) -> None:
    done = run(tmp_path, "planted/w?copies=1", "planted/g", "planted/j", n=3)
    assert "\nCannot tell for 1 judge: " in done.output
    assert "on the same prompts an unknown difference." in done.output and "nan" not in done.output
    page = (tmp_path / "page" / "index.html").read_text()
    assert "unknown difference" in page and ">nan" not in page.lower()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--remove", " ", "--writer", "planted/w", "--grader", "planted/g", "--judges", "planted/j"),
            "--remove names no giveaway: type one, such as --remove 'answer options'",
        ),
        (
            ("--remove", "x", "--writer", "planted/w", "--grader", "planted/w", "--judges", "planted/j"),
            "planted/w would grade its own texts: take another --grader",
        ),
        (
            ("--remove", "x", "--writer", "openai/gpt-5", "--grader", "planted/g", "--judges", "azureai/gpt-4o"),
            "is of the family of the writer openai/gpt-5",
        ),
        (
            (*ROLES, "--model", "planted/w?removes=.5"),
            "the subject planted/w?removes=.5 is of the family of the writer planted/w",
        ),
        ((*ROLES, "--model", "planted/j"), "the judge planted/j is of the family of the subject planted/j"),
        (
            ("--remove", "x", "--writer", "planted/w", "--grader", "planted/g", "--judges", "planted/g"),
            "is of the family of the grader planted/g",
        ),
    ],
)
def test_a_wrong_call_is_told_in_a_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(prompts(tmp_path, 3), *arguments, "--log-dir", tmp_path / "logs", "--dry-run")
    assert done.exit_code == 2 and message in done.output, done.output


@pytest.mark.slow(6)
def test_a_report_of_two_graders_and_a_card_has_each_in_its_place(tmp_path: Path) -> None:
    for grader in ("planted/g", "planted/h"):
        done = run(tmp_path, "planted/w", grader, "planted/j", "--model", SUBJECT, n=6)
        assert done.exit_code == 0, done.output
    card = (
        "--judges",
        "planted/k",
        "--against",
        "eval_awareness",
        "--yes",
        "--out",
        tmp_path / "card",
        "--log-dir",
        tmp_path / "logs/card",
    )
    for arguments in (
        ["realism", "card", tmp_path / "mine.jsonl", *card],
        ["report", tmp_path / "logs", "--out", tmp_path / "all"],
    ):
        done = CliRunner().invoke(main, list(map(str, arguments)))
        assert done.exit_code == 0, done.output
    for name in ("rates", "subject"):
        mine, reported = (
            pd.read_csv(tmp_path / folder / f"{name}.csv") for folder in ("page/tables", "all/tables/rewriting")
        )
        pd.testing.assert_frame_equal(mine, reported)
    assert "Evaluation awareness" not in done.output, "the subject was asked about rewrites alone"
