"""`selfprobe check` says by its exit status whether logs are complete and scored."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from selfprobe.cli import main
from selfprobe.studies.check_read import share_text


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


@solver
def silent(failing: tuple[str, ...] = ()) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id in failing:
            raise RuntimeError("the vendor is down")
        return state

    return solve


@scorer(metrics={"*": [accuracy()]})
def by_parts() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"a": 1, "b": float("nan")}, reason="too_short")

    return score


@scorer(metrics=[accuracy()])
def letters() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"i1": "C", "i2": "I"}.get(str(state.sample_id), "B"))

    return score


@scorer(metrics=[accuracy()])
def listed() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=[1, float("nan")], reason="too_short")

    return score


def foreign(folder: Path, *scorers: Scorer, failing: tuple[str, ...] = (), **options: Any) -> None:
    """A run of another suite's task."""
    samples = [Sample(id=f"i{number}", input="?") for number in range(1, 5)]
    task = Task(
        name="theirs", dataset=samples, solver=silent(failing), scorer=list(scorers) or None
    )
    eval(task, model="planted/a", log_dir=str(folder), display="none", **options)


@pytest.mark.parametrize(
    ("x", "others", "shown"),
    [
        (0.0, (), "0.00"),
        (1 / 624, (), "0.002"),
        (623 / 624, (), "0.998"),
        (0.25, (0.1,), "0.25"),
        (0.1042, (0.1,), "0.104"),
        (1.0, (0.1,), "1.00"),
    ],
)
def test_a_share_has_the_decimals_that_tell_it_from_none_all_and_the_bound(
    x: float, others: tuple[float, ...], shown: str
) -> None:
    assert share_text(x, *others) == shown


def test_a_whole_run_is_good_with_status_0(run_task: Any, tmp_path: Path) -> None:
    run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=3)
    done = check(tmp_path)
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "kth_word  planted/a  good: 3 samples, unscored 0.00",
        "1 of 1 run good",
    ]


def test_more_unscored_than_the_limit_is_3_with_the_reasons(run_task: Any, tmp_path: Path) -> None:
    run_task("selfprobe/kth_word", "planted/a?refused=.5", tmp_path, limit=10)
    done = check(tmp_path)
    assert (
        done.exit_code == 3 and "bad: unscored 0." in done.output and "(refusal 0." in done.output
    )
    assert "more than 0.10" in done.output
    assert check(tmp_path, "--unscored", "1").exit_code == 0


def test_a_run_in_which_nothing_was_scored_is_3_whatever_the_limit(
    run_task: Any, tmp_path: Path
) -> None:
    run_task("selfprobe/kth_word", "planted/a?refused=1", tmp_path, limit=2)
    done = check(tmp_path, "--unscored", "1")
    assert done.exit_code == 3 and "bad: nothing scored (refusal)" in done.output


def test_failed_samples_are_3_with_the_first_error_though_inspect_calls_the_run_a_success(
    tmp_path: Path,
) -> None:
    foreign(tmp_path, letters(), failing=("i2",), fail_on_error=False)
    done = check(tmp_path)
    assert done.exit_code == 3
    assert "theirs  planted/a  bad: 1 of 4 samples failed or missing, the first: " in done.output
    assert "the vendor is down" in done.output


def test_foreign_logs_are_read_with_letters_dicts_and_reasons(tmp_path: Path) -> None:
    foreign(tmp_path, letters(), by_parts())
    [run] = json.loads(check(tmp_path, "--json").stdout)["runs"]
    assert (run["asked"], run["scored"], run["reasons"]) == (12, 8, {"too_short": 4 / 12})
    assert run["wrong"] == ["unscored 0.33 (too_short 0.33), more than 0.10"]


def test_of_a_list_what_is_no_number_is_unscored(tmp_path: Path) -> None:
    foreign(tmp_path, listed())
    [run] = json.loads(check(tmp_path, "--json").stdout)["runs"]
    assert (run["asked"], run["scored"], run["reasons"]) == (8, 4, {"too_short": 0.5})


def test_a_log_without_scores_is_3(tmp_path: Path) -> None:
    foreign(tmp_path)
    done = check(tmp_path)
    assert done.exit_code == 3 and "bad: nothing scored\n" in done.output


def test_of_two_runs_of_the_same_the_last_counts(tmp_path: Path) -> None:
    foreign(tmp_path, letters(), failing=("i1",))
    foreign(tmp_path, letters())
    done = check(tmp_path)
    assert done.exit_code == 0
    *_, which, last = done.output.splitlines()
    assert last == "1 of 1 run good; 1 other run of the same is not counted"
    assert which.startswith("theirs of planted/a: ") and which.endswith(
        ".eval counts; 1 other run of the same is left out"
    )


def test_a_later_run_of_fewer_samples_or_another_model_argument_hides_no_earlier_one(
    tmp_path: Path,
) -> None:
    foreign(tmp_path, letters(), failing=("i3",))
    foreign(tmp_path, letters(), limit=2)
    foreign(tmp_path, letters(), model_args={"access": 0.5})
    done = check(tmp_path)
    assert done.exit_code == 3 and "1 of 4 samples failed or missing" in done.output
    assert done.output.splitlines()[-1] == "2 of 3 runs good"
    foreign(tmp_path, letters(), epochs=2)
    done = check(tmp_path)
    assert done.exit_code == 0
    assert (
        done.output.splitlines()[-1] == "2 of 2 runs good; 2 other runs of the same are not counted"
    )


def test_a_later_run_that_failed_is_3_though_an_earlier_one_of_the_same_is_whole(
    tmp_path: Path,
) -> None:
    foreign(tmp_path, letters())
    foreign(tmp_path, letters(), failing=("i3",))
    done = check(tmp_path)
    assert done.exit_code == 3 and done.output.splitlines()[-1] == "1 of 2 runs good"


def test_runs_with_other_generation_settings_or_roles_are_no_later_runs_of_the_same(
    tmp_path: Path,
) -> None:
    foreign(tmp_path, letters())
    foreign(tmp_path, letters(), temperature=0.5)
    foreign(tmp_path, letters(), model_roles={"grader": "planted/g"})
    assert check(tmp_path).output.splitlines()[-1] == "3 of 3 runs good"


def test_a_later_run_of_fewer_epochs_hides_no_earlier_one(tmp_path: Path) -> None:
    foreign(tmp_path, letters(), failing=("i3",), epochs=2)
    foreign(tmp_path, letters())
    done = check(tmp_path)
    assert done.exit_code == 3 and done.output.splitlines()[-1] == "1 of 2 runs good"


@pytest.mark.parametrize(
    ("status", "said"),
    [("started", "still running, or killed"), ("cancelled", "interrupted"), ("error", "failed")],
)
def test_a_run_that_did_not_end_is_3(run_task: Any, tmp_path: Path, status: Any, said: str) -> None:
    log = run_task("selfprobe/kth_word", "planted/a", tmp_path / "whole", limit=3)
    log.status, log.samples = status, log.samples[:2]
    write_eval_log(log, str(tmp_path / "cut.eval"))
    done = check(tmp_path / "cut.eval")
    assert done.exit_code == 3 and f"bad: {said}; 1 of 3 samples failed or missing\n" in done.output


def test_a_log_that_cannot_be_read_is_3_since_nobody_knows_what_it_was(
    run_task: Any, tmp_path: Path
) -> None:
    run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=2)
    (tmp_path / "cut.eval").write_bytes(b"PK")
    done = check(tmp_path)
    assert done.exit_code == 3
    assert "cut.eval  bad: cannot be read: " in done.output
    assert done.output.splitlines()[-1] == "1 of 1 run good, 1 log cannot be read"


def test_junit_and_github_say_which_runs_are_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    foreign(tmp_path, letters(), failing=("i2",), fail_on_error=False)
    foreign(tmp_path, letters(), model_args={"access": 0.5})
    (tmp_path / "cut.eval").write_bytes(b"PK")
    done = check(tmp_path, "--junit", tmp_path / "check.xml", "--github")
    assert done.exit_code == 3
    errors = [line for line in done.output.splitlines() if line.startswith("::")]
    assert errors[0].startswith(
        "::error title=theirs of planted/a::bad: 1 of 4 samples failed or missing"
    )
    assert len(errors) == 2 and "cut.eval::bad: cannot be read" in errors[1]
    [suite] = ElementTree.parse(tmp_path / "check.xml").getroot()
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("3", "2", "0")
    assert {case.get("name") for case in suite if case.find("error") is None} == {
        "theirs of planted/a"
    }
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("### selfprobe check: 1 of 2 runs good, 1 log cannot be read\n")
    assert "| theirs of planted/a | good: 4 samples, unscored 0.00 |" in summary


def test_a_wrong_path_an_empty_folder_and_a_wrong_share_are_2(tmp_path: Path) -> None:
    for arguments, said in (
        ((tmp_path / "none",), "looked at"),
        ((tmp_path,), f"no log in {tmp_path}"),
        ((tmp_path, "--unscored", "7"), "0<=x<=1"),
        ((tmp_path, "--unscored", "nan"), "nan is not finite; expected 0<=x<=1"),
    ):
        done = check(*arguments)
        assert done.exit_code == 2 and said in done.output and done.output.count("\n") == 1, (
            done.output
        )


def test_a_truncated_decision_of_the_suite_makes_its_log_unreadable(
    run_task: Any, tmp_path: Path
) -> None:
    log = read_eval_log(
        run_task("selfprobe/kth_word", "planted/a", tmp_path / "whole", limit=1).location
    )
    assert log.samples and log.samples[0].scores
    [score] = log.samples[0].scores.values()
    assert score.metadata is not None
    score.metadata["value"] = {"k1": 7.0}
    write_eval_log(log, str(tmp_path / "odd.eval"))
    done = check(tmp_path / "odd.eval")
    assert done.exit_code == 3 and "a decision's value is 7.0" in done.output


@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_a_model_that_was_asked_in_two_ways_is_said_with_the_samples_of_each(
    strict_vendors: Any, run_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_vendors.running() as address:
        for name, value in strict_vendors.environment(address).items():
            monkeypatch.setenv(name, value)
        for limit, effort in ((2, None), (1, "high")):
            run_task(
                "selfprobe/kth_word",
                "openai-api/strict/m",
                tmp_path,
                limit=limit,
                task_args={"effort": effort},
            )
    [line] = [line for line in check(tmp_path).output.splitlines() if "asked alike" in line]
    assert line == (
        "kth_word  openai-api/strict/m was not always asked alike: "
        "2 samples with effort low (asked: none), temperature 0, JSON schema, limit 64; "
        "1 sample with effort high, temperature 0, JSON schema, limit 64"
    )
