"""One page of all that a folder holds."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.page import render
from selfprobe.studies.report import report_page

Run = Callable[..., EvalLog]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, run_task: Run) -> Path:
    """Two models of a matrix, one awareness run, one preference run, a log of no study and a
    truncated one.
    """
    folder = tmp_path_factory.mktemp("study") / "logs"
    for model in ("planted/a$x_1$", "planted/b"):
        run_task("selfprobe/kth_word", model, folder, limit=6)
    run_task(
        "selfprobe/user_motivation",
        "planted/a?voiced=.9",
        folder,
        limit=12,
        model_roles={"grader": "planted/g"},
    )
    pairs = folder.parent / "mine.jsonl"
    row = '{{"id": "p{0}", "question": "What of {0}?", "text_1": "one {0}", "text_2": "two {0}", "label": {1}}}\n'
    pairs.write_text("".join(row.format(i, 1 + i % 2) for i in range(4)))
    run_task(
        "selfprobe/pairwise_preference", "planted/j", folder, task_args={"dataset": str(pairs)}
    )
    run_task(Task(dataset=[Sample(input="x")], name="foreign"), "mockllm/model", folder)
    (folder / "cut.eval").write_bytes(next(folder.glob("*kth*.eval")).read_bytes()[:500])
    return folder


def only(logs: Path, folder: Path, *names: str) -> str:
    """A folder with those logs alone."""
    folder.mkdir()
    for name in names:
        for file in logs.glob(f"*{name}*"):
            shutil.copy(file, folder)
    return str(folder)


def test_the_page_has_a_part_for_each_study_and_names_what_is_of_none(logs: Path) -> None:
    made = report_page([str(logs)])
    assert [*made.parts, *(section.name for section in made.sections)] == [
        "matrix",
        "awareness",
        "preferences",
        "other",
    ]
    inner = {
        part.name
        for page in made.parts.values()
        for section in page.sections
        for part in section.inner
    }
    assert {"features", "methods"} <= inner
    html = render(made, "out")
    assert all(part.answer for part in made.parts.values()) and "planted/a$x_1$" in html
    assert (
        re.search(r"cut\.eval: cannot be read: ", html)
        and "a log of foreign, which belongs to no study here; try selfprobe report --rows FILE"
        in html
    )
    assert {"matrix/cells", "awareness/methods", "preferences/runs"} <= set(made.tables)


def test_a_folder_with_one_study_has_the_page_of_that_study(logs: Path, tmp_path: Path) -> None:
    made = report_page([only(logs, tmp_path / "one", "pairwise-preference")])
    assert made.title == "Do these models prefer the better of two texts?" and set(made.tables) == {
        "runs",
        "scores",
        "metrics",
    }
    assert [section.name for section in made.sections] == ["why", "cells", "method", "runs"]


def test_no_log_of_a_study_is_one_line_that_names_what_is_there(logs: Path, tmp_path: Path) -> None:
    folder = only(logs, tmp_path / "none", "cut", "foreign")
    with pytest.raises(
        InputError,
        match=r"^no selfprobe log in .*; found 2 other logs; .*cut\.eval: cannot be read",
    ):
        report_page([folder])
    done = CliRunner().invoke(main, ["report", folder, "--out", str(tmp_path / "out")])
    assert (
        done.exit_code == 2
        and len(done.output.splitlines()) == 1
        and not (tmp_path / "out").exists()
    )


def test_a_damaged_log_stops_no_study(logs: Path, tmp_path: Path) -> None:
    """Its header can be read, its samples cannot."""
    folder = only(logs, tmp_path / "damaged", "kth-word", "user-motivation")
    for name in ("kth-word", "user-motivation"):
        file = sorted(Path(folder).glob(f"*{name}*"))[0]
        content = bytearray(file.read_bytes())
        start = content.find(b"summaries.json") + 14
        content[start : start + 60] = bytes(60)
        (Path(folder) / f"damaged-{name}.eval").write_bytes(bytes(content))
    html = render(report_page([folder]), "out")
    assert "damaged-kth-word.eval" in html and "damaged-user-motivation.eval" in html


def test_a_run_about_another_assistant_alone_is_told_in_one_reason(
    run_task: Run, tmp_path: Path
) -> None:
    run_task(
        "selfprobe/kth_word",
        "planted/a",
        tmp_path,
        limit=2,
        task_args={"about": "other", "resamples": 0},
    )
    with pytest.raises(InputError) as error:
        report_page([str(tmp_path)])
    said = str(error.value)
    assert said.count("no selfprobe log") == 1 and said.endswith(
        "(about=other); about=self,other has a difference"
    )


def test_judges_logs_have_the_page_of_a_card(run_task: Run, tmp_path: Path) -> None:
    run_task("selfprobe/pairwise_realism", "planted/bea?liking=.9", tmp_path, limit=12)
    made = report_page([str(tmp_path)])
    assert made.title == "Can this evaluation be told from real use?" and made.answer.startswith(
        "Cannot tell for the judge: "
    )
    assert "eval_awareness_2" in render(made, "out")
    assert {"prompts", "judges"} <= set(made.tables)


def test_report_shows_logs_of_turns(run_task: Run, tmp_path: Path) -> None:
    run_task("selfprobe/turn_curve", "planted/ada", tmp_path, limit=4)
    made = report_page([str(tmp_path)])
    assert (
        set(made.frames["curves"].model) == {"planted/ada"} and "does a model notice" in made.title
    )


def test_one_log_of_no_study_is_one_log(logs: Path, tmp_path: Path) -> None:
    made = report_page([only(logs, tmp_path / "two", "pairwise-preference", "foreign")])
    assert made.notes[-1] == "1 log belongs to no study; the page says why"


def test_a_log_that_cannot_be_read_is_named_in_the_terminal(logs: Path, tmp_path: Path) -> None:
    made = report_page([only(logs, tmp_path / "cut", "pairwise-preference", "cut", "foreign")])
    assert (
        made.notes[-1]
        == "1 log cannot be read (cut.eval), 1 log belongs to no study; the page says why"
    )


def test_the_command_writes_anywhere_and_tells_the_findings(logs: Path, tmp_path: Path) -> None:
    given = [str(logs), "--out"]
    done = CliRunner().invoke(main, ["report", *given, str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()  # a slow machine says on stderr where it is
    assert lines[0].startswith(
        "Self-knowledge: Cannot tell for 2 of 2 models: planted/a$x_1$ has too few models beside it"
    )
    assert (
        lines[1].startswith("Evaluation awareness: ")
        and lines[2].startswith("Preferences: ")
        and len(lines) <= 9
    )
    html = (tmp_path / "out" / "index.html").read_text()
    links = re.findall(r'href="([^"#]+)"', html)
    files = [link for link in links if not link.startswith("https://")]  # papers
    assert len(files) > 10 and all(
        (tmp_path / "out" / link.replace("%20", " ")).exists() for link in files
    )
    assert (tmp_path / "out" / "tables" / "matrix" / "cells.csv").is_file()
    assert CliRunner().invoke(main, ["report", *given, "memory://there"]).exit_code == 0


def test_an_address_that_nothing_can_write_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    done = CliRunner().invoke(main, ["report", "logs", "--out", "nope://x"])
    assert (
        done.exit_code == 2 and "cannot write to nope://x: Protocol not known: nope" in done.output
    )
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_the_tables_of_the_page_come_as_json_too(logs: Path, tmp_path: Path, embedder: str) -> None:
    one = only(logs, tmp_path / "one", "pairwise-preference")
    done = CliRunner().invoke(main, ["report", one, "--json", "--out", str(tmp_path / "out")])
    tables = json.loads(done.stdout)
    assert (
        tables["scores"][0]["method"].startswith("pairwise_preference")
        and (tmp_path / "out" / "index.html").exists()
    )
