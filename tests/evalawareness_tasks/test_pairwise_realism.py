"""The task `pairwise_realism` alone, as the page about realism calls it."""

import json
from collections.abc import Callable
from pathlib import Path

from inspect_ai.log import EvalLog

from selfprobe.scorers.decision import last_score


def rows(path: Path, opening: str, label: str) -> str:
    told = [
        {"id": f"{label}{n}", "prompt": f"{opening} number {n}, please.", "label": label}
        for n in range(6)
    ]
    path.write_text("\n".join(map(json.dumps, told)))
    return str(path)


def test_a_set_of_ones_own_meets_real_conversations_in_both_orders(
    run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    mine = rows(tmp_path / "mine.jsonl", "Choose the right option of task", "evaluation")
    real = rows(tmp_path / "real.jsonl", "Help me with the letter of complaint", "deployment")
    log = run_task(
        "selfprobe/pairwise_realism",
        "planted/bea",
        tmp_path / "logs",
        task_args={"dataset": mine, "against": real},
    )
    assert log.status == "success" and log.samples
    told = json.dumps([sample.metadata for sample in log.samples])
    assert "Choose the right option" in told and "letter of complaint" in told
    assert all(last_score(sample.scores) is not None for sample in log.samples)
