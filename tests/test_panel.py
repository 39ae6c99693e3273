"""Several graders of one text: each is asked, most of them decide, and the page says how far they
agree.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import eval
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog

from selfprobe.cli import main
from selfprobe.data import load
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks.reasoning_trace import awareness_reasoning_trace
from selfprobe.evalawareness_tasks.rewriting import prompt_rewriting
from selfprobe.evalawareness_tasks.turn_scan import awareness_turn_scan
from selfprobe.evalawareness_tasks.user_motivation import awareness_user_motivation
from selfprobe.logs.decision import last_decisions, last_score
from selfprobe.solvers.record import Record

Run = Callable[..., EvalLog]

SUBJECT = "planted/ada?voiced=1&voiced_wrongly=0&reasons=1"
"""Brings up an evaluation in each evaluation, and nowhere else."""
HONEST, SECOND = "planted/g", "planted/h"
"""Two graders that find what is there."""
YES, BLIND = "planted/y?specificity=0", "planted/n?notices=0"
"""One that finds it everywhere, and one that finds nothing."""
ROWS = load("eval_awareness_2", ("messages", "label")).rows
IDS = [
    str(row["id"])
    for label in ("evaluation", "deployment")
    for row in ROWS
    if row["label"] == label
][:3]
IDS += [str(row["id"]) for row in ROWS if row["label"] == "deployment"][:3]


def graded(run_task: Run, task: Any, folder: Path, *graders: str, model: str = SUBJECT) -> EvalLog:
    roles = {"grader": list(graders) if len(graders) > 1 else graders[0]}
    return run_task(task, model, folder, limit=None, sample_id=IDS, model_roles=roles)


def verdicts(log: EvalLog) -> dict[str, tuple[str | None, str | None]]:
    """Id → label → what was said, and why nothing."""
    first = {str(sample.id): last_decisions(sample.scores)[0] for sample in log.samples or []}
    return {item: (decision.said, decision.unscored) for item, decision in first.items()}


def asked(log: EvalLog) -> dict[str, int]:
    events = [
        event
        for sample in log.samples or []
        for event in sample.events
        if isinstance(event, ModelEvent)
    ]
    return {
        model: sum(event.model == model for event in events)
        for model in {event.model for event in events}
    }


def panel_of(log: EvalLog, item: str) -> Any:
    [sample] = [sample for sample in log.samples or [] if str(sample.id) == item]
    score = last_score(sample.scores)
    assert score is not None
    return (score.metadata or {}).get("panel")


@pytest.mark.parametrize(
    ("task", "texts"),
    [(awareness_user_motivation, ("m1", "m2", "m3")), (awareness_reasoning_trace, ("trace",))],
)
def test_both_of_two_graders_are_asked_and_where_they_differ_it_is_a_tie(
    run_task: Run, tmp_path: Path, task: Any, texts: tuple[str, ...]
) -> None:
    log = graded(run_task, task(), tmp_path, HONEST, YES)
    calls = asked(log)
    assert calls[HONEST] == calls[YES] == 6 * len(texts)
    found = verdicts(log)
    assert [found[item] for item in IDS[:3]] == [("evaluation", None)] * 3
    assert [found[item] for item in IDS[3:]] == [(None, "tie")] * 3
    assert panel_of(log, IDS[0]) == {
        HONEST: dict.fromkeys(texts, True),
        YES: dict.fromkeys(texts, True),
    }
    assert panel_of(log, IDS[3]) == {
        HONEST: dict.fromkeys(texts, False),
        YES: dict.fromkeys(texts, True),
    }
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}  # type: ignore[union-attr]
    assert metrics["unscored_tie"] == 0.5 and metrics["n"] == 3


@pytest.mark.slow(2)
@pytest.mark.parametrize("task", [awareness_user_motivation, awareness_reasoning_trace])
def test_one_of_three_who_always_says_yes_changes_nothing(
    run_task: Run, tmp_path: Path, task: Any
) -> None:
    alone = graded(run_task, task(), tmp_path / "one", HONEST)
    three = graded(run_task, task(), tmp_path / "three", HONEST, YES, SECOND)
    assert set(asked(three)) == {SUBJECT, HONEST, SECOND, YES}
    assert verdicts(three) == verdicts(alone)
    numbers = [log.results.scores[0].metrics for log in (alone, three)]  # type: ignore[union-attr]
    assert all(
        numbers[1][name].value == metric.value
        for name, metric in numbers[0].items()
        if name != "quotes"
    )
    assert {name for name in numbers[1].keys() - numbers[0].keys() if name.count("_") == 2} == {
        "kappa_1_2",
        "kappa_1_3",
        "kappa_2_3",
    }
    assert numbers[1]["kappa_1_3"].value == 1 and numbers[1]["kappa_1_2"].value == 0


def test_a_log_of_one_grader_is_as_it_was(run_task: Run, tmp_path: Path) -> None:
    log = graded(run_task, awareness_user_motivation(), tmp_path, HONEST)
    for sample in log.samples or []:
        assert set(sample.store_as(Record).grades) == {"m1", "m2", "m3"}
        assert panel_of(log, str(sample.id)) is None
    assert not isinstance((log.eval.model_roles or {})["grader"], list)


def test_the_replies_of_a_panel_are_in_the_record_with_the_name_of_who_wrote_them(
    run_task: Run, tmp_path: Path
) -> None:
    log = graded(run_task, awareness_user_motivation(), tmp_path, HONEST, YES)
    grades = (log.samples or [])[0].store_as(Record).grades
    assert list(grades) == [f"{grader} m{n}" for grader in (HONEST, YES) for n in (1, 2, 3)]
    assert {name.partition(" ")[0]: reply.model for name, reply in grades.items()} == {
        HONEST: HONEST,
        YES: YES,
    }


@pytest.mark.slow(2)
def test_a_panel_reads_the_turns_of_a_log(run_task: Run, tmp_path: Path) -> None:
    source = graded(run_task, awareness_user_motivation(), tmp_path / "source", HONEST)
    read = {}
    for graders in ((HONEST,), (HONEST, BLIND), (HONEST, BLIND, SECOND)):
        roles = {"grader": list(graders) if len(graders) > 1 else graders[0]}
        folder = tmp_path / str(len(graders))
        read[len(graders)] = run_task(
            awareness_turn_scan(source.location), "none", folder, limit=None, model_roles=roles
        )
        assert set(asked(read[len(graders)])) == set(graders)
    alone, two, three = (verdicts(read[n]) for n in (1, 2, 3))
    assert alone == three and {said for said, _ in alone.values()} == {"evaluation", "deployment"}
    for item, (said, why) in alone.items():
        assert two[item] == ((None, "tie") if said == "evaluation" else (said, why))
        assert panel_of(read[2], item) == {
            HONEST: {"turn_scan": said == "evaluation"},
            BLIND: {"turn_scan": False},
        }


def test_a_panel_checks_rewrites(run_task: Run, tmp_path: Path) -> None:
    task = prompt_rewriting(remove="answer options")
    log = run_task(task, "planted/w", tmp_path, limit=3, model_roles={"grader": [HONEST, SECOND]})
    assert set(asked(log)) == {"planted/w", HONEST, SECOND}
    for sample in log.samples or []:
        panel = panel_of(log, str(sample.id))
        assert set(panel) == {HONEST, SECOND} and panel[HONEST] == panel[SECOND]
        assert set(panel[HONEST]) == {"rewrite", "paraphrase"}


# ---- what cannot be a panel


@pytest.mark.parametrize(
    ("task", "roles", "text"),
    [
        (
            "kth_word",
            {"target": [HONEST, SECOND]},
            "the role target takes one model, got planted/g, planted/h",
        ),
        (
            "binary",
            {"target": [HONEST, SECOND]},
            "the role target takes one model, got planted/g, planted/h",
        ),
        (
            "cue_removal",
            {"grader": [HONEST, SECOND]},
            "the role grader takes one model, got planted/g, planted/h",
        ),
        ("user_motivation", {"grader": [HONEST, HONEST]}, "the role grader has planted/g twice"),
    ],
)
def test_a_role_that_is_no_panel_is_refused_by_its_name_before_anything_is_asked(
    tmp_path: Path, task: str, roles: dict[str, list[str]], text: str
) -> None:
    with pytest.raises(InputError) as error:
        eval(
            f"selfprobe/{task}",
            model="planted/a",
            model_roles=roles,
            limit=1,
            log_dir=str(tmp_path),
            display="none",
        )
    assert str(error.value).startswith(text) and "\n" not in str(error.value)
    assert not list(tmp_path.glob("*.eval"))


def test_a_target_of_several_models_asks_nobody_where_the_task_was_made_before(
    run_task: Run, tmp_path: Path
) -> None:
    log = run_task(
        awareness_user_motivation(),
        "planted/a",
        tmp_path,
        model_roles={"target": [HONEST, YES], "grader": SECOND},
    )
    assert log.status == "error" and not asked(log)
    assert "the role target takes one model" in (log.samples or [])[0].error.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "call",
    [
        (
            "awareness",
            "features",
            "examples/logs",
            "--clusters",
            "2",
            "--grader",
            f"{HONEST},{SECOND}",
        ),
        (
            "awareness",
            "cues",
            "eval_awareness_2",
            "--model",
            SUBJECT,
            "--grader",
            f"{HONEST},{SECOND}",
            "--dry-run",
        ),
        (
            "realism",
            "rewrite",
            "ours",
            "--remove",
            "x",
            "--judges",
            "a/j",
            "--grader",
            "b/g",
            "--writer",
            "c/v,c/w",
        ),
    ],
    ids=lambda call: call[1],
)
def test_a_command_whose_model_writes_refuses_two(
    call: tuple[str, ...], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 2, done.output
    said = done.output.strip().rpartition("\n")[2]
    assert (
        "one model is expected" in said
        and "got " in said
        and ("--grader" in said or "--writer" in said)
    ), said


# ---- commands


@pytest.mark.slow(4)
def test_awareness_run_asks_the_panel_and_its_page_shows_how_far_it_agrees(tmp_path: Path) -> None:
    base = (
        "awareness",
        "run",
        "--models",
        SUBJECT,
        "--methods",
        "user_motivation,reasoning_trace",
        "--limit",
        "8",
    )
    base += ("--out", str(tmp_path / "run"))
    done = CliRunner().invoke(
        main, (*base, "--grader", f"{HONEST},{YES}", "--log-dir", str(tmp_path / "l"), "--yes")
    )
    assert done.exit_code == 0, done.output
    assert done.output.count(HONEST) == done.output.count(YES) == 1, (
        "a line of the plan's costs each"
    )
    page = CliRunner().invoke(main, ("report", str(tmp_path / "l"), "--out", str(tmp_path / "o")))
    assert page.exit_code == 0, page.output
    text = (tmp_path / "o/index.html").read_text()
    assert "Agreement of the graders" in text and HONEST in text and YES in text
    assert (tmp_path / "o/tables/graders.csv").exists()


def test_a_page_of_one_grader_has_no_section_of_a_panel(tmp_path: Path) -> None:
    base = ("awareness", "run", "--models", SUBJECT, "--methods", "user_motivation", "--limit", "4")
    base += ("--out", str(tmp_path / "run"))
    done = CliRunner().invoke(
        main, (*base, "--grader", HONEST, "--log-dir", str(tmp_path / "l"), "--yes")
    )
    assert done.exit_code == 0, done.output
    CliRunner().invoke(main, ("report", str(tmp_path / "l"), "--out", str(tmp_path / "o")))
    assert "Agreement of the graders" not in (tmp_path / "o/index.html").read_text()
    assert not (tmp_path / "o/tables/graders.csv").exists()


@pytest.mark.slow(2)
def test_realism_rewrite_lets_a_panel_check_and_compare(tmp_path: Path) -> None:
    rows = (
        {"id": f"p{n}", "input": f"Choose the correct answer about town {n}: A or B?"}
        for n in range(4)
    )
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = (
        "--writer",
        "planted/w",
        "--grader",
        f"{HONEST},{SECOND}",
        "--judges",
        "planted/j?liking=.5",
    )
    where = (
        "--log-dir",
        str(tmp_path / "l"),
        "--out",
        str(tmp_path / "o"),
        "--yes",
        "--display",
        "none",
    )
    call = (
        "realism",
        "rewrite",
        str(tmp_path / "mine.jsonl"),
        "--remove",
        "words of test items",
        *models,
        *where,
    )
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output
    assert "Agreement of the graders" in (tmp_path / "o/index.html").read_text()
    again = CliRunner().invoke(main, ("report", str(tmp_path / "l"), "--out", str(tmp_path / "r")))
    assert again.exit_code == 0, again.output
    assert "Agreement of the graders" in (tmp_path / "r/index.html").read_text()
