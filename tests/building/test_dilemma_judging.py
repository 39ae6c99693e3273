"""Judging on planted judges whose distributions, and so whose divergence, are known."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.event import ModelEvent

from selfprobe.building.dilemma_generation import dilemma_generation
from selfprobe.building.dilemma_judging import dilemma_judging, judge_panel
from selfprobe.errors import InputError
from selfprobe.solvers.record import Record
from selfprobe.stats.estimate import jsd

from ..solvers.test_solvers import model, solved

PANEL = ["planted/a?verdict=.9", "planted/b?verdict=.2", "planted/c?verdict=.4"]


def test_planted_judges_have_the_planted_divergence(run_task: Any, tmp_path: Path) -> None:
    log = run_task(
        dilemma_judging("ethical_dilemmas"), "none", tmp_path, limit=5, model_roles={"judge": PANEL}
    )
    found = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert found["jsd"] == pytest.approx(float(jsd([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])))
    assert (found["judge1_p"], found["judge2_p"], found["judge3_p"]) == pytest.approx(
        (0.9, 0.2, 0.4)
    )
    assert (found["kept"], found["n"], found["judge1_unread"]) == (0, 5, 0)  # .17 nats
    sent = [event for event in log.samples[0].events if isinstance(event, ModelEvent)]
    assert len(sent) == 15
    assert {(event.config.temperature, event.config.seed) for event in sent} == {
        (1, seed) for seed in range(1, 6)
    }
    assert log.samples[0].scores["dilemma_controversy"].explanation.splitlines()[0] == (
        "- planted/a?verdict=.9: 0.85 0.88 0.90 0.93 0.95 → P(A) = 0.900"
    )


def test_samples_that_cannot_be_read_are_counted_and_a_silent_judge_unscores(
    run_task: Any, tmp_path: Path
) -> None:
    panel = ["planted/a?verdict=.9&malformed=.4", "planted/b?verdict=.1", "planted/c?refused=1"]
    log = run_task(
        dilemma_judging("ethical_dilemmas"), "none", tmp_path, limit=8, model_roles={"judge": panel}
    )
    found = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert (found["n"], found["unscored"], found["unscored_judge_refusal"]) == (0, 1, 1)
    assert found["judge1_unread"] == pytest.approx(0.4, abs=0.2)
    assert "jsd" not in found and "judge3_p" not in found


def test_a_generation_log_is_judged_and_only_its_valid_dilemmas(
    run_task: Any, tmp_path: Path
) -> None:
    made = run_task(
        dilemma_generation(), "planted/gen?flawed=.3&malformed=.2", tmp_path / "gen", limit=20
    )
    valid = [s.id for s in made.samples if s.scores["dilemma_validity"].value["valid"] == 1]
    task = dilemma_judging(generation_log=str(tmp_path / "gen"), samples=1)
    assert [sample.id for sample in task.dataset] == [f"{name}.1" for name in valid]
    assert task.dataset[0].metadata["generation"]["model"] == "planted/gen?flawed=.3&malformed=.2"


@pytest.mark.parametrize(
    ("panel", "text"),
    [
        (None, r"the panel needs 3 judges, got 0 \(none\); pass --model-role judge="),
        ("planted/a", r"the panel needs 3 judges, got 1 \(planted/a\)"),
        (
            PANEL[:2],
            r"the panel needs 3 judges, got 2 \(planted/a\?verdict=.9, planted/b\?verdict=.2\)",
        ),
        ([*PANEL, "planted/d"], "the panel needs 3 judges, got 4"),
    ],
)
def test_another_panel_than_three_is_an_error_before_anything_runs(
    panel: Any, text: str, tmp_path: Path
) -> None:
    roles = {"judge": panel} if panel else None
    with pytest.raises(ValueError, match=text):
        eval(
            "selfprobe/dilemma_judging",
            model="none",
            model_roles=roles,
            task_args={"dataset": "ethical_dilemmas"},
            log_dir=str(tmp_path),
            display="none",
        )


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "pass one of -T dataset=… and -T generation_log=…"),
        ({"dataset": "x", "generation_log": "y"}, "pass one of"),
        (
            {"dataset": "ethical_dilemmas", "samples": 0},
            "samples must be a whole number from 1, got 0",
        ),
        ({"dataset": "ethical_dilemmas", "threshold": 0.7}, r"below 0.6365 nats.*got 0.7"),
    ],
)
def test_a_wrong_argument_is_told(args: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        dilemma_judging(**args)


def test_a_panel_of_three_is_asked_so_many_times_each() -> None:
    judges = [model(f"mockllm/{name}") for name in "abc"]
    acts = solved(judge_panel(2, 64), {}, {"judge": judges}).store_as(Record).acts
    assert sorted(acts) == [f"judge{judge}_{sample}" for judge in (1, 2, 3) for sample in (1, 2)]
    with pytest.raises(InputError, match="the panel needs 3 judges, got 2"):
        solved(judge_panel(2, 64), {}, {"judge": judges[:2]})
