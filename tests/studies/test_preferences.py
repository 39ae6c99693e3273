import json
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data.public_pairs import load
from selfprobe.preference_tasks.pairwise_preference import pairwise_preference
from selfprobe.studies.preferences.study import logged_margins


def written(path: Path, **more: Any) -> str:
    rows = [{"id": str(i), "question": f"Q{i}", "text_1": "a b", "text_2": "c", "label": 1} | more for i in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_methods_that_differ_in_provider_or_argument_stand_apart(run_task: Any, tmp_path: Path) -> None:
    file, logs = written(tmp_path / "mine.jsonl"), tmp_path / "logs"
    for model, given in (("planted/x/judge", {}), ("planted/y/judge", {}), ("planted/x/judge", {"prefill": True})):
        assert run_task(pairwise_preference(dataset=file, **given), model, logs).status == "success"
    run_task(pairwise_preference(dataset=file), "planted/x/judge", logs)  # again: the newest counts
    task = "pairwise_preference"
    assert set(logged_margins([str(logs)], {"mine": load(file)})["mine"]) == {
        *(f"{task}, planted/y/judge", f"{task}, planted/x/judge", f"{task}, planted/x/judge, prefill=true"),
    }


def test_a_log_about_other_texts_is_refused(run_task: Any, tmp_path: Path) -> None:
    file, logs = written(tmp_path / "mine.jsonl"), tmp_path / "logs"
    run_task(pairwise_preference(dataset=file), "planted/judge", logs)
    assert list(logged_margins([str(logs)], {"mine": load(file)})["mine"]) == ["pairwise_preference, judge"]
    written(tmp_path / "mine.jsonl", text_2="d")
    with pytest.raises(ValueError, match="of other pairs: pair 0 of mine has other texts there. Give logs of the same"):
        logged_margins([str(logs)], {"mine": load(file)})
