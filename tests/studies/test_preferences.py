import json
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data.public_pairs import load_pairs
from selfprobe.preference_tasks.pairwise_preference import pairwise_preference
from selfprobe.studies.preferences.study import JudgedRun, Preferences, logged_margins


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
    assert set(logged_margins([str(logs)], {"mine": load_pairs(file)})["mine"]) == {
        *(f"{task}, planted/y/judge", f"{task}, planted/x/judge", f"{task}, planted/x/judge, prefill=true"),
    }


def test_a_log_about_other_texts_is_refused(run_task: Any, tmp_path: Path) -> None:
    file, logs = written(tmp_path / "mine.jsonl"), tmp_path / "logs"
    run_task(pairwise_preference(dataset=file), "planted/judge", logs)
    assert list(logged_margins([str(logs)], {"mine": load_pairs(file)})["mine"]) == ["pairwise_preference, judge"]
    written(tmp_path / "mine.jsonl", text_2="d")
    with pytest.raises(ValueError, match="of other pairs: pair 0 of mine has other texts there. Give logs of the same"):
        logged_margins([str(logs)], {"mine": load_pairs(file)})


def judged(accuracy: tuple[float, float, float], first: tuple[float, float, float], model: str = "m") -> JudgedRun:
    metrics = {"pairs": 40.0, "questions": 40.0}
    for name, estimate in {"accuracy": accuracy, "said_1": first}.items():
        metrics |= dict(zip((name, f"{name}_low", f"{name}_high"), estimate, strict=True))
    return JudgedRun("pairwise_preference", model, "d", metrics, "log")


def test_a_judge_that_always_takes_one_place_is_said_to_do_so_in_the_answer() -> None:
    page = Preferences.page([judged((0.62, 0.45, 0.76), (1.0, 0.91, 1.0))])
    assert page.answer == (
        "Cannot tell for m: it takes the first place in 100 % [91, 100] of showings, whichever text stands there."
    )
    assert page.picture is not None and "m takes the first place in 100 %" in page.picture.caption
    assert "accuracy 62 % [45, 76]; it takes the first place" in page.notes[0]


def test_the_second_place_counts_as_the_first_and_a_mild_bias_does_not_explain_choices() -> None:
    assert judged((0.5, 0.4, 0.6), (0.1, 0.05, 0.2)).by_place.startswith("takes the second place in 90 % [80, 95]")
    assert judged((0.5, 0.4, 0.6), (0.8, 0.7, 0.9)).place is None
    assert judged((0.5, 0.4, 0.6), (float("nan"),) * 3).place is None


def test_a_judge_by_place_that_is_right_nevertheless_keeps_its_yes_with_the_caveat_below_the_picture() -> None:
    page = Preferences.page([judged((0.7, 0.6, 0.8), (0.9, 0.8, 0.95)), judged((0.5, 0.4, 0.6), (0.5, 0.4, 0.6), "n")])
    assert page.answer.startswith("Yes, for 1 of 2 models. m prefers the better text in 70 % of pairs")
    assert page.picture is not None and "m takes the first place in 90 % [80, 95]" in page.picture.caption
