"""Which runs count, which are unfinished or superseded, and what a folder still lacks."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import eval as run_eval
from inspect_ai.log import EvalLog, write_eval_log
from inspect_ai.model import GenerateConfig, ModelConfig

from selfprobe.cli import main
from selfprobe.evalawareness_tasks.binary import awareness_binary
from selfprobe.studies.awareness.runs import load_awareness
from selfprobe.study.awareness_arms import RESUME, arm_runs, missing


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    folder = str(tmp_path_factory.mktemp("runs"))
    (log,) = run_eval(
        awareness_binary(), model="planted/a", limit=3, log_dir=folder, display="none"
    )
    assert log.status == "success"
    return log


def written(
    log: EvalLog, folder: Path, name: str, *, samples: int | None = None, **changes: object
) -> str:
    """A copy of a log with other header fields, or fewer samples."""
    copy = log.model_copy(deep=True, update=changes)
    if samples is not None:
        copy.samples = (copy.samples or [])[:samples]
    path = folder / f"{name}.eval"
    write_eval_log(copy, str(path))
    return str(path)


def test_an_arm_of_which_no_run_is_finished_is_named_with_how_far_it_came(
    made: EvalLog, tmp_path: Path
) -> None:
    written(made, tmp_path, "whole")
    other = made.model_copy(deep=True)
    other.eval.model = "planted/b"
    written(other, tmp_path, "killed", status="started", results=None, samples=2)
    found = load_awareness([str(tmp_path)])
    assert found.missing == (
        f"binary of planted/b is running or was killed after 2 of 3 conversations; {RESUME}",
    )
    assert [why for log, why in found.ignored.items() if log.endswith("killed.eval")] == [
        "status started"
    ]


def test_where_nothing_is_finished_the_error_says_what_was_killed_and_how_to_go_on(
    made: EvalLog, tmp_path: Path
) -> None:
    written(made, tmp_path, "killed", status="started", results=None, samples=0)
    hint = f"binary of planted/a is running or was killed after 0 of 3 conversations; {RESUME}"
    done = CliRunner().invoke(main, ["report", str(tmp_path), "--out", str(tmp_path / "page")])
    assert done.exit_code == 2 and hint in " ".join(done.output.split()), done.output


def test_a_run_without_a_grader_has_none_in_the_table_of_runs(
    made: EvalLog, tmp_path: Path
) -> None:
    written(made, tmp_path, "whole")
    graded = made.model_copy(deep=True)
    graded.eval.model = "planted/b"
    graded.eval.model_roles = {"grader": ModelConfig(model="planted/g")}
    written(graded, tmp_path, "graded")
    assert sorted(load_awareness([str(tmp_path)]).runs.grader) == ["", "planted/g"]


def test_a_cancelled_run_that_was_made_up_for_is_not_missing(made: EvalLog, tmp_path: Path) -> None:
    written(made, tmp_path, "whole")
    written(made, tmp_path, "cancelled", status="cancelled", results=None, samples=1)
    found = load_awareness([str(tmp_path)])
    assert found.missing == () and len(found.ignored) == 1


def test_a_run_that_lacks_conversations_is_named(made: EvalLog, tmp_path: Path) -> None:
    short = made.model_copy(deep=True)
    written(short, tmp_path, "short", samples=2)
    found = load_awareness([str(tmp_path)])
    assert found.missing == (f"binary of planted/a has 2 of 3 conversations; {RESUME}",)


def test_the_run_that_replaces_another_is_named(made: EvalLog, tmp_path: Path) -> None:
    older = made.model_copy(deep=True)
    older.eval.created = "2026-01-01T00:00:00+00:00"
    written(older, tmp_path, "older")
    written(made, tmp_path, "newer")
    used, ignored = arm_runs([str(tmp_path)])
    assert [run.header.location.rpartition("/")[2] for run in used.values()] == ["newer.eval"]
    ((log, why),) = ignored.items()
    assert (
        log.endswith("older.eval")
        and why.startswith("superseded by ")
        and why.endswith("newer.eval")
    )


def once_more(
    log: EvalLog, folder: Path, name: str, created: str = "2026-01-01", **changed: Any
) -> str:
    """The same as if it had been asked anew, with another header."""
    copy = log.model_copy(deep=True)
    for number, sample in enumerate(copy.samples or []):
        sample.uuid = f"{name}{number}"
    copy.eval = copy.eval.model_copy(update={"created": f"{created}T00:00:00+00:00", **changed})
    return written(copy, folder, name)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"model_args": {"common": 0.9}}, "model argument common 0.9"),
        ({"model_generate_config": GenerateConfig(temperature=1)}, "temperature 1.0"),
        ({"model_base_url": "http://other/v1"}, "base_url http://other/v1"),
        ({"task_args": {"reply_tokens": 20}}, "reply_tokens 20"),
        ({"model_roles": {"grader": ModelConfig(model="g", args={"x": 1})}}, "grader g"),
    ],
)
def test_a_run_with_other_settings_is_no_second_run_but_an_arm_named_by_them(
    made: EvalLog, tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    once_more(made, tmp_path, "other", **changed)
    once_more(made, tmp_path, "first", created="2026-01-02")
    found = load_awareness([str(tmp_path)])
    assert set(found.verdicts.run) == {1} and not found.ignored
    logs = {
        str(model): log.rpartition("/")[2]
        for model, log in zip(found.runs.model, found.runs.log, strict=True)
    }
    (plain,) = [model for model in logs if told not in model]
    (otherwise,) = [model for model in logs if told in model]
    assert logs[plain] == "first.eval" and logs[otherwise] == "other.eval"
    assert otherwise.startswith(f"{plain}, ")


def test_of_two_graders_each_is_named(made: EvalLog, tmp_path: Path) -> None:
    for name in ("g", "h"):
        once_more(made, tmp_path, name, model_roles={"grader": ModelConfig(model=name)})
    assert {
        str(model).partition(", ")[2] for model in load_awareness([str(tmp_path)]).runs.model
    } == {
        "grader g",
        "grader h",
    }
    once_more(
        made,
        tmp_path,
        "again",
        created="2026-01-02",
        model_roles={"grader": ModelConfig(model="g")},
    )
    runs = load_awareness([str(tmp_path)]).runs
    asked = sorted(
        (str(model).partition(", ")[2], run)
        for model, run in zip(runs.model, runs.run, strict=True)
    )
    assert asked == [("grader g", 1), ("grader g", 2), ("grader h", 1)]


def test_a_run_that_is_sent_in_another_way_is_a_second_run(made: EvalLog, tmp_path: Path) -> None:
    once_more(made, tmp_path, "first")
    once_more(
        made,
        tmp_path,
        "second",
        created="2026-01-02",
        model_generate_config=GenerateConfig(max_connections=3),
    )
    found = load_awareness([str(tmp_path)])
    assert not found.ignored and {
        run: log.rpartition("/")[2] for run, log in zip(found.runs.run, found.runs.log, strict=True)
    } == {
        1: "first.eval",
        2: "second.eval",
    }


def test_compare_names_what_is_unfinished_and_what_is_superseded(
    made: EvalLog, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    written(made, logs, "a")
    written(made, logs, "b")
    other = made.model_copy(deep=True)
    other.eval.model = "planted/b"
    written(other, logs, "c", status="cancelled", results=None, samples=1)
    done = CliRunner().invoke(main, ["report", str(logs), "--out", str(tmp_path / "page")])
    assert done.exit_code == 0, done.output
    assert (
        f"Not whole: binary of planted/b ended with cancelled after 1 of 3 conversations; {RESUME}"
        in done.output
    )
    page = (tmp_path / "page" / "index.html").read_text()
    assert (
        "Not used: 2 logs" in done.output and "superseded by" in page and "status cancelled" in page
    )
    assert "binary of planted/b ended with cancelled after 1 of 3 conversations" in page
    assert "status cancelled" in page and "superseded by" in page, (
        "each log that is not used has its reason"
    )


def test_conversations_that_failed_are_counted(made: EvalLog) -> None:
    used, _ = arm_runs([made.location])
    (arm_run,) = used.values()
    arm_run.samples[0].summary.error = "no such model"
    assert list(missing([arm_run.run], used)) == [
        f"binary of planted/a: 1 of 3 conversations failed and have no verdict (error); {RESUME}"
    ]
