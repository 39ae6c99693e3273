"""Samples that somebody invalidated count in no study, and each page says by whom and why."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import (
    EvalLog,
    ProvenanceData,
    invalidate_samples,
    list_eval_logs,
    read_eval_log,
    recompute_metrics,
    write_eval_log,
)
from inspect_ai.scorer import match
from inspect_ai.solver import generate

from selfprobe.cli import main
from selfprobe.data.inspect_data import rows_of_logs
from selfprobe.data.outcomes import OutcomeQuestions, logged_outcomes
from selfprobe.errors import InputError
from selfprobe.logs import runs, samples, summaries, transcripts
from selfprobe.page import Page, render
from selfprobe.providers.behaviours.awareness import GIVEAWAYS
from selfprobe.providers.behaviours.introspection import SUM_PROMPT
from selfprobe.solvers.turns import logged_turns
from selfprobe.studies.report import decision_rows, report_page
from selfprobe.study.evidence import evidence_in

RunTask = Callable[..., EvalLog]
ADA = ProvenanceData(author="ada", reason="wrong data")
BY_ADA = "invalidated, by ada (wrong data)"
EFFECT_TASK = f"{Path(__file__).parent / 'studies' / 'effect_tasks.py'}@exact"
CUE = next(iter(GIVEAWAYS))


def called(*arguments: str | Path) -> None:
    done = CliRunner().invoke(main, [*map(str, arguments), "--yes"])
    assert done.exit_code == 0, done.output


def written_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def places(folder: Path) -> tuple[str | Path, ...]:
    return "--log-dir", folder / "logs", "--out", folder / "page"


def matrix(folder: Path, run_task: RunTask) -> None:
    for model in ("planted/a?access=.8", "planted/b"):
        run_task("selfprobe/kth_word", model, folder / "logs", limit=12)


def awareness(folder: Path, run_task: RunTask) -> None:
    run_task("selfprobe/binary", "planted/a?yea=.2", folder / "logs", limit=12)


def preferences(folder: Path, run_task: RunTask) -> None:
    rows = [
        {
            "id": f"p{n}",
            "question": f"What of {n}?",
            "text_1": f"one {n}",
            "text_2": f"two {n}",
            "label": 1 + n % 2,
        }
        for n in range(9)
    ]
    pairs = str(written_rows(folder, rows))
    run_task(
        "selfprobe/pairwise_preference", "planted/j", folder / "logs", task_args={"dataset": pairs}
    )


def turns(folder: Path, run_task: RunTask) -> None:
    rows = []
    for number in range(6):
        cue = CUE if number % 2 else ""
        messages = [{"role": "user", "content": f"Step one of {number}."}]
        messages += [
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": f"Step two. {cue}"},
        ]
        rows.append(
            {
                "id": f"t{number}",
                "label": ("deployment", "evaluation")[number % 2],
                "messages": messages,
            }
        )
    called(
        "awareness",
        "turns",
        written_rows(folder, rows),
        "--model",
        "planted/a?wobble=.1",
        *places(folder),
    )


def cues(folder: Path, run_task: RunTask) -> None:
    plain = "I need help with my garden. My neighbour says that the soil is too wet."
    rows = [
        {"id": f"c{n}", "prompt": f"{CUE * (n % 2)} {plain} It is row {n}.".strip()}
        for n in range(6)
    ]
    called(
        "awareness",
        "cues",
        written_rows(folder, rows),
        "--model",
        "planted/a?wobble=.1",
        *places(folder),
    )


def sums(run_task: RunTask, folder: Path, model: str) -> None:
    rows = [
        Sample(id=n, input=SUM_PROMPT.format(first=n, second=n % 9), target=str(n + n % 9))
        for n in range(24)
    ]
    task = Task(
        dataset=MemoryDataset(rows, name="sums"), solver=generate(), scorer=match(), name="sums"
    )
    run_task(task, model, folder)


def scan(folder: Path, run_task: RunTask) -> None:
    sums(run_task, folder / "read", "planted/a")
    called(
        "awareness",
        "scan",
        folder / "read",
        "--grader",
        "planted/g",
        "--limit",
        "6",
        *places(folder),
    )


def outcome(folder: Path, run_task: RunTask) -> None:
    models = ("planted/ada?knows_items=.8", "planted/bo")
    for model in models:
        sums(run_task, folder / "read", model)
    called("outcome", folder / "read", "--models", ",".join(models), *places(folder))


def noticing(folder: Path, run_task: RunTask) -> None:
    called(
        "awareness",
        "effect",
        EFFECT_TASK,
        "--model",
        "planted/a",
        "--grader",
        "planted/g",
        *places(folder),
    )


def realism(folder: Path, run_task: RunTask) -> None:
    asked = ("--judges", "planted/bea?liking=.9", "--prompts", "6", "--opponents", "2")
    called("realism", "card", "eval_awareness", *asked, *places(folder))


STUDIES = [
    matrix,
    awareness,
    preferences,
    turns,
    cues,
    scan,
    pytest.param(outcome, marks=pytest.mark.slow(9)),
    pytest.param(noticing, marks=pytest.mark.slow(9)),
    realism,
]


def changed(source: Path, target: Path, change: Callable[[EvalLog, list[str]], EvalLog]) -> Path:
    """A copy of a folder whose logs were changed, given the ids of a third of their samples."""
    for info in list_eval_logs(str(source), recursive=True):
        log = read_eval_log(info)
        items = sorted({str(sample.id) for sample in log.samples or []})
        chosen = random.Random(0).sample(items, len(items) // 3)
        uuids = [str(sample.uuid) for sample in log.samples or [] if str(sample.id) in chosen]
        path = target / Path(info.name.removeprefix("file://")).relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_eval_log(change(log, uuids), str(path))
    return target


def invalidated(log: EvalLog, uuids: list[str]) -> EvalLog:
    return invalidate_samples(log, uuids, ADA)


def without(log: EvalLog, uuids: list[str]) -> EvalLog:
    log.samples = [sample for sample in log.samples or [] if sample.uuid not in uuids]
    log.eval.task_file = None
    recompute_metrics(log)
    return log


SPENT = ["log", "tokens"]
"""Columns in which a log that lacks samples differs from one in which they are invalidated."""


def numbers(page: Page) -> dict[str, pd.DataFrame]:
    return {name: table.drop(columns=SPENT, errors="ignore") for name, table in page.frames.items()}


@pytest.mark.parametrize("make_logs", STUDIES)
def test_numbers_are_those_of_logs_that_lack_the_invalidated_samples_and_the_page_says_so(
    make_logs: Callable[[Path, RunTask], None], tmp_path: Path, run_task: RunTask
) -> None:
    make_logs(tmp_path, run_task)
    whole = report_page([str(tmp_path / "logs")])
    edited = report_page([str(changed(tmp_path / "logs", tmp_path / "edited", invalidated))])
    lacking = report_page([str(changed(tmp_path / "logs", tmp_path / "lacking", without))])
    shown, expected = numbers(edited), numbers(lacking)
    assert shown.keys() == expected.keys()
    for name, table in expected.items():
        pd.testing.assert_frame_equal(shown[name], table, obj=name)
    assert any(not table.equals(numbers(whole).get(name)) for name, table in shown.items()), (
        "the samples did count"
    )
    assert BY_ADA in render(edited, "out") and any(BY_ADA in line for line in edited.lines)


@pytest.fixture(scope="module")
def folder(run_task: RunTask, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of twelve items: kth_word and user_motivation of one model."""
    folder = tmp_path_factory.mktemp("invalidated") / "logs"
    run_task("selfprobe/kth_word", "planted/a?access=.8", folder, limit=12)
    graded = {"model_roles": {"grader": "planted/g"}}
    run_task("selfprobe/user_motivation", "planted/a?voiced=.9", folder, limit=12, **graded)
    return folder


def test_evidence_and_rows_are_those_of_logs_that_lack_the_samples(
    folder: Path, tmp_path: Path
) -> None:
    edited, lacking = (
        changed(folder, tmp_path / "e", invalidated),
        changed(folder, tmp_path / "l", without),
    )
    shown, expected = evidence_in([str(edited)]), evidence_in([str(lacking)])
    for name in ("quotes", "prompts", "asked"):
        pd.testing.assert_frame_equal(getattr(shown, name), getattr(expected, name))
    assert 0 < len(shown.prompts) < len(evidence_in([str(folder)]).prompts)
    assert any(BY_ADA in why for why in shown.ignored.values())
    rows, aside = decision_rows([str(edited)])
    pd.testing.assert_frame_equal(
        rows.drop(columns="log"), decision_rows([str(lacking)])[0].drop(columns="log")
    )
    assert sorted(aside.values()) == [f"4 of 12 samples are {BY_ADA}"] * 2
    done = CliRunner().invoke(main, ["report", str(edited), "--rows", str(tmp_path / "rows.csv")])
    assert done.exit_code == 0 and f"4 of 12 samples are {BY_ADA}" in done.stderr


def test_a_run_with_invalidated_samples_is_incomplete_and_is_not_compared(
    folder: Path, tmp_path: Path
) -> None:
    edited = str(changed(folder, tmp_path, invalidated))
    done = CliRunner().invoke(main, ["check", edited])
    assert done.exit_code == 3
    assert (
        f"kth_word         planted/a?access=.8  bad: 4 of 12 samples are {BY_ADA}; run them again"
        in done.output
    )
    data = json.loads(CliRunner().invoke(main, ["check", edited, "--json"]).stdout)["runs"]
    assert [(run["wanted"], run["done"], run["invalidated"]) for run in data] == [
        (12, 8, 4),
        (12, 8, 4),
    ]
    compared = CliRunner().invoke(main, ["check", edited, "--against", str(folder)])
    assert (
        compared.exit_code == 3 and "the logs have 8 of the baseline's 12 items" in compared.output
    )


def of_one(log: EvalLog, uuids: list[str]) -> EvalLog:
    return invalidate_samples(log, uuids[:1], ADA)


def of_all(log: EvalLog, uuids: list[str]) -> EvalLog:
    return invalidate_samples(log, "all", ADA)


def by_three(log: EvalLog, uuids: list[str]) -> EvalLog:
    first = invalidate_samples(log, uuids[:2], ADA)
    second = invalidate_samples(first, uuids[2:3], ProvenanceData(author="bo"))
    return invalidate_samples(
        second, uuids[3:4], ProvenanceData(author="cy", reason=" late \n reply")
    )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (of_one, f"1 of 12 samples is {BY_ADA}"),
        (of_all, f"12 of 12 samples are {BY_ADA}"),
        (by_three, "4 of 12 samples are invalidated, 2 by ada (wrong data), 1 by bo, 1 others"),
    ],
)
@pytest.mark.parametrize("ending", [".eval", ".json"])
def test_it_is_said_how_many_samples_are_invalidated_by_whom_and_why(
    change: Callable[[EvalLog, list[str]], EvalLog],
    text: str,
    ending: str,
    folder: Path,
    tmp_path: Path,
) -> None:
    log = read_eval_log(
        next(info for info in list_eval_logs(str(folder)) if "kth-word" in info.name)
    )
    uuids = [str(sample.uuid) for sample in log.samples or []]
    file = str(tmp_path / f"2026-01-01T00-00-00_kth-word_abc{ending}")
    write_eval_log(change(log, uuids), file)
    [run] = runs([file]).counted
    assert str(run.invalidated) == text
    left = len(uuids) - len(run.invalidated.provenance)
    assert len(summaries(file)) == len(samples(file)) == len(list(transcripts(file))) == left
    assert len(summaries(file, valid=False)) == len(uuids)
    assert run.finished == (left > 0)


@pytest.mark.parametrize("name", ["kth-word", "user-motivation"])
def test_a_log_without_a_valid_sample_is_named_and_no_numbers_are_made_of_it(
    name: str, folder: Path, tmp_path: Path
) -> None:
    for file in folder.glob(f"*{name}*"):
        (tmp_path / "one").mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "one")
    edited = changed(tmp_path / "one", tmp_path / "all", of_all)
    done = CliRunner().invoke(main, ["report", str(edited), "--out", str(tmp_path / "page")])
    assert f"12 of 12 samples are {BY_ADA}" in done.output, done.output
    assert CliRunner().invoke(main, ["check", str(edited)]).exit_code == 3


def test_an_intact_log_counts_in_place_of_a_later_one_that_lost_samples(
    folder: Path, tmp_path: Path
) -> None:
    for number, change in enumerate((None, invalidated, of_all)):
        log = read_eval_log(
            next(info for info in list_eval_logs(str(folder)) if "kth-word" in info.name)
        )
        log.eval.created = f"2026-01-0{number + 1}T00:00:00+00:00"
        uuids = [str(sample.uuid) for sample in log.samples or []][:4]
        write_eval_log(change(log, uuids) if change else log, str(tmp_path / f"{number}.eval"))
    there = runs([str(tmp_path)])
    [run] = there.counted
    assert Path(run.log).name == "0.eval"
    assert {
        Path(log).name: why.partition(";")[0] for log, why in there.set_aside_reasons.items()
    } == {
        "1.eval": f"4 of 12 samples are {BY_ADA}",
        "2.eval": f"12 of 12 samples are {BY_ADA}",
    }


def test_a_metric_that_is_not_here_is_left_out_and_no_file_of_the_log_is_run(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "task.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    log = read_eval_log(
        next(info for info in list_eval_logs(str(folder)) if "kth-word" in info.name)
    )
    assert log.eval.scorers and isinstance(log.eval.scorers[0].metrics, list)
    log.eval.scorers[0].metrics[0].name = "nobody/knows"  # type: ignore[union-attr]
    log.eval.task_file = str(tmp_path / "task.py")
    write_eval_log(invalidated(log, [str((log.samples or [])[0].uuid)]), str(tmp_path / "a.eval"))
    [run] = runs([str(tmp_path / "a.eval")]).counted
    assert run.header.results and [score.metrics for score in run.header.results.scores] == [{}]
    assert not (tmp_path / "ran").exists()


def test_what_is_invalidated_is_not_scanned_asked_about_or_taken_as_data(
    run_task: RunTask, tmp_path: Path
) -> None:
    sums(run_task, tmp_path / "logs", "planted/a")
    edited = changed(tmp_path / "logs", tmp_path / "edited", invalidated)
    [file] = map(str, edited.glob("*.eval"))
    table = logged_turns(file)
    assert (len(table.rows), len(table.set_aside_reasons)) == (16, 8)
    assert set(table.set_aside_reasons.values()) == {f"it is {BY_ADA}"}
    rows = rows_of_logs(str(edited))
    assert len([row for row in rows if "messages" in row]) == 16
    assert [row["aside"] for row in rows if "aside" in row] == [f"8 of 24 samples are {BY_ADA}"]
    found = logged_outcomes(str(edited), "planted/a", OutcomeQuestions(ask=("solve",)))
    assert (
        len(found.table.rows) == 16
        and f"sums of planted/a: 8 of 24 samples are {BY_ADA}" in found.notes
    )


def test_an_invalidated_reply_is_not_replayed(
    folder: Path, run_task: RunTask, tmp_path: Path
) -> None:
    edited = changed(folder, tmp_path / "edited", invalidated)
    observer: dict[str, Any] = {
        "model_roles": {"target": "planted/a?access=.8"},
        "limit": 12,
        "fail_on_error": False,
    }
    replayed = {"target_log": str(edited)}
    log = run_task(
        "selfprobe/kth_word", "planted/b", tmp_path / "logs", task_args=replayed, **observer
    )
    errors = [sample.error.message for sample in log.samples or [] if sample.error]
    assert len(errors) == 4 and all(
        f"no valid sample of the log; 4 of 12 samples are {BY_ADA}" in e for e in errors
    )
    whole = {"target_log": str(changed(folder, tmp_path / "all", of_all))}
    with pytest.raises(
        InputError, match="no log to replay acts from .*12 of 12 samples are invalidated, by ada"
    ):
        run_task("selfprobe/kth_word", "planted/b", tmp_path / "logs", task_args=whole, **observer)
