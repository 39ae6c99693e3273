"""Numbers for emotions: planted codes come out, subsets that are none are unscored."""

from pathlib import Path
from typing import Any

import pytest

from selfprobe.introspect_tasks.subset_choice import rows
from selfprobe.scorers.word_matches import EMOTIONS, emotion, subset_in, told_apart
from selfprobe.solvers.record import Reply

NUMBERS = list(range(1, 11))


def reply(text: str, **fields: object) -> Reply:
    return Reply.model_validate({"text": text, "model": "m", "stop_reason": "stop"} | fields)


def metrics(log: Any) -> dict[str, float]:
    assert log.status == "success", log.error
    return {name: float(one.value) for name, one in log.results.scores[0].metrics.items()}


def test_there_are_eighty_items_with_one_id_each_and_the_papers_numbers_among_them() -> None:
    made = rows()
    assert len(made) == 80 == len({row["id"] for row in made})
    assert [row["numbers"] for row in made[: len(EMOTIONS)]] == [NUMBERS] * len(EMOTIONS)
    assert all(len(set(row["numbers"])) == 10 for row in made) and made == rows()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"subset": [7, 2, 7]}', ([2, 7], None)),
        ('{"subset": []}', ([], "no_subset")),
        ('{"subset": [11]}', ([], "no_subset")),
        (f'{{"subset": {NUMBERS}}}', ([], "no_subset")),
        ('{"subset": "2, 7"}', ([], "target_invalid_response_format")),
        ("two and seven", ([], "target_invalid_response_format")),
    ],
)
def test_what_is_a_subset_and_what_is_none(text: str, found: tuple[list[int], str | None]) -> None:
    assert subset_in(reply(text), NUMBERS) == found


def test_a_word_that_was_not_offered_is_no_guess() -> None:
    assert emotion('{"word": "Joy"}') == "joy" and emotion('{"word": "rage"}') is None


def test_planted_codes_are_read_by_their_own_mind_alone(run_task: Any, tmp_path: Path) -> None:
    own = metrics(run_task("selfprobe/subset_choice", "planted/a?access=.9", tmp_path / "a"))
    assert (
        abs(own["accuracy"] - 0.9) < 0.1 and own["baseline_chance"] == 1 / 8 and own["ceiling"] == 1
    )
    more = {
        "model_roles": {"target": "planted/a?access=.9"},
        "task_args": {"target_log": str(tmp_path / "a")},
    }
    other = metrics(
        run_task("selfprobe/subset_choice", "planted/b?access=1", tmp_path / "b", **more)
    )
    assert other["accuracy"] == 0 and other["n"] == 80, "their shifts differ"


def test_the_ceiling_counts_emotions_that_share_a_subset() -> None:
    from inspect_ai.scorer import SampleScore, Score

    played = ["1 of s", "1 of s", "2 of s", ""]
    scores = [SampleScore(score=Score(value=1, metadata={"subset": subset})) for subset in played]
    assert told_apart()(scores) == {"ceiling": pytest.approx((0.5 + 0.5 + 1) / 3)}
