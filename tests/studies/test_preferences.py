import json
import math
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data.public_pairs import load_pairs
from selfprobe.preference_tasks.pairwise_preference import pairwise_preference
from selfprobe.stats.claim import Verdict
from selfprobe.studies.preferences.study import (
    JudgedRun,
    logged_margins,
    preference_claim,
    preference_page,
)


def written(path: Path, **more: Any) -> str:
    rows = [
        {"id": str(i), "question": f"Q{i}", "text_1": "a b", "text_2": "c", "label": 1} | more
        for i in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_methods_that_differ_in_provider_or_argument_stand_apart(
    run_task: Any, tmp_path: Path
) -> None:
    file, logs = written(tmp_path / "mine.jsonl"), tmp_path / "logs"
    for model, given in (
        ("planted/x/judge", {}),
        ("planted/y/judge", {}),
        ("planted/x/judge", {"prefill": True}),
    ):
        assert run_task(pairwise_preference(dataset=file, **given), model, logs).status == "success"
    run_task(pairwise_preference(dataset=file), "planted/x/judge", logs)  # again: the newest counts
    task = "pairwise_preference"
    assert set(logged_margins([str(logs)], {"mine": load_pairs(file)})["mine"]) == {
        *(
            f"{task}, planted/y/judge",
            f"{task}, planted/x/judge",
            f"{task}, planted/x/judge, prefill=true",
        ),
    }


def test_a_log_about_other_texts_is_refused(run_task: Any, tmp_path: Path) -> None:
    file, logs = written(tmp_path / "mine.jsonl"), tmp_path / "logs"
    run_task(pairwise_preference(dataset=file), "planted/judge", logs)
    assert list(logged_margins([str(logs)], {"mine": load_pairs(file)})["mine"]) == [
        "pairwise_preference, judge"
    ]
    written(tmp_path / "mine.jsonl", text_2="d")
    with pytest.raises(
        ValueError,
        match="of other pairs: pair 0 of mine has other texts there. Give logs of the same",
    ):
        logged_margins([str(logs)], {"mine": load_pairs(file)})


Ends = tuple[float, float, float]
NOTHING = (math.nan, math.nan, math.nan)
EVEN = (0.5, 0.4, 0.6)


def judged(accuracy: Ends, first: Ends, model: str = "m", **metrics: float) -> JudgedRun:
    numbers = {"pairs": 40.0, "questions": 40.0} | metrics
    for name, estimate in {"accuracy": accuracy, "said_1": first}.items():
        numbers |= dict(zip((name, f"{name}_low", f"{name}_high"), estimate, strict=True))
    return JudgedRun("pairwise_preference", model, "d", numbers, "log")


def test_a_judge_that_always_takes_one_place_is_said_to_do_so_in_the_answer() -> None:
    page = preference_page([judged((0.62, 0.45, 0.76), (1.0, 0.91, 1.0))])
    assert page.answer == (
        "Cannot tell for m: it takes the first place in 100 % [91, 100] of showings, whichever text stands there; score "
        "each text alone (direct_scoring, g_eval)."
    )
    assert page.picture is not None and "m takes the first place in 100 %" in page.picture.caption
    assert not page.notes, "the answer says it"


def test_the_second_place_counts_as_the_first_and_a_mild_bias_does_not_explain_choices() -> None:
    assert judged(EVEN, (0.1, 0.05, 0.2)).place_sentence.startswith(
        "takes the second place in 90 % [80, 95]"
    )
    assert judged(EVEN, (0.8, 0.7, 0.9)).place is None
    assert judged(EVEN, NOTHING).place is None


def test_a_judge_by_place_that_is_right_nevertheless_keeps_its_yes_with_the_caveat_below_the_picture() -> (
    None
):
    page = preference_page([judged((0.7, 0.6, 0.8), (0.9, 0.8, 0.95)), judged(EVEN, EVEN, "n")])
    assert page.answer.startswith(
        "Yes, for 1 of 2 runs. m prefers the better text in 70 % [60, 80] of pairs"
    )
    assert (
        page.picture is not None
        and "m takes the first place in 90 % [80, 95]" in page.picture.caption
    )


@pytest.mark.parametrize(
    ("run", "verdict", "unmet"),
    [
        (judged((0.7, 0.6, 0.8), EVEN), Verdict.YES, None),
        (judged(NOTHING, NOTHING), Verdict.CANNOT_TELL, "verdicts"),
        (judged((0.62, 0.45, 0.76), (1.0, 0.91, 1.0)), Verdict.CANNOT_TELL, "by_preference"),
        (judged((0.6, 0.4, 0.8), EVEN), Verdict.CANNOT_TELL, "above_guessing"),
        (judged((0.6, math.nan, math.nan), EVEN), Verdict.CANNOT_TELL, "above_guessing"),
        (
            judged((0.7, 0.6, 0.8), EVEN, worst_case=0.5, unscored=0.3),
            Verdict.CANNOT_TELL,
            "unscored",
        ),
        (judged((0.4, 0.3, 0.48), EVEN), Verdict.NO, "above_guessing"),
        (judged((0.5, 0.46, 0.54), EVEN), Verdict.NO, "above_guessing"),
    ],
)
def test_each_check_of_a_run_is_first_where_it_does_not_hold(
    run: JudgedRun, verdict: Verdict, unmet: str | None
) -> None:
    claim = preference_claim(run, "m")
    first = claim.first_unmet_check
    assert (claim.verdict, first.name if first else None) == (verdict, unmet)


def test_two_runs_of_one_name_stand_apart_and_all_metrics_are_in_a_file() -> None:
    page = preference_page([judged((0.7, 0.6, 0.8), EVEN, worst_case=0.69), judged(EVEN, EVEN)])
    assert [claim.subject for claim in page.claims] == ["m", "m (2)"]
    assert set(page.frames["metrics"].metric) >= {"accuracy", "said_1_low", "worst_case"}
    assert list(page.frames["scores"].columns[:7]) == [
        *("dataset", "method", "model", "accuracy", "accuracy_low", "accuracy_high", "accuracy_n")
    ]
