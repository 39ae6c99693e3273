import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, resolve_sample_attachments
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore

from selfprobe.introspect_tasks import heads_up as task_file
from selfprobe.introspect_tasks.heads_up import heads_up, record_to_sample
from selfprobe.scorers.summary import FOREIGN, UNSURE, counted_apart, summary
from selfprobe.scorers.word_matches import SYNONYM, guessed_word

Run = Callable[..., EvalLog]
TEN = [f"hint {letter}" for letter in "abcdefghij"]
CLUES_FOR_LIGHTHOUSE = (
    "Target: 'lighthouse'\nTask: Provide a list of 10 clues describing 'lighthouse' without saying the word itself, "
    "a synonym or an antonym of it. "
    'Output the final clues in a JSON object: { "clues": "... " }'
)
GUESS = (
    "Clues: 1. hint a 2. hint b 3. hint c 4. hint d 5. hint e 6. hint f 7. hint g 8. hint h 9. hint i 10. hint j\n"
    'Task: Guess the single word described by these clues. Output the guess in a JSON object: { "guess": "word" }'
)


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success" and log.results is not None, log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def prompts_sent(log: EvalLog) -> list[str]:
    samples = [resolve_sample_attachments(sample, "full") for sample in log.samples or []]
    return [
        event.input[-1].text for s in samples for event in s.events if isinstance(event, ModelEvent)
    ]


def says(clues: Any, guess: str) -> Any:
    """A model that gives these clues and this guess."""

    def reply(messages: Any, *_: Any) -> ModelOutput:
        asked = messages[-1].text
        text = json.dumps({"clues": clues} if asked.startswith("Target") else {"guess": guess})
        made = ModelOutput.from_content("mockllm/model", text)
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    return get_model("mockllm/model", custom_outputs=reply)


def test_a_row_becomes_a_word_with_its_category() -> None:
    row = {
        "id": "w1",
        "word": "barn",
        "category": "building",
        "concreteness": "concrete",
        "note": "x",
    }
    sample = record_to_sample(row)
    assert (sample.id, sample.input) == ("w1", "barn")
    assert sample.metadata == {"word": "barn", "category": "building", "concreteness": "concrete"}


@pytest.mark.parametrize("word", ["ice cream", "!!"])
def test_a_phrase_is_no_word_to_guess(word: str) -> None:
    with pytest.raises(ValueError, match="w1: word must be a single word"):
        record_to_sample({"id": "w1", "word": word})


def test_prompts_are_the_paper_s_to_the_byte_and_a_right_guess_counts(
    run_task: Run, tmp_path: Path
) -> None:
    log = run_task(heads_up(), says(TEN, "Lighthouse."), tmp_path, limit=1)
    assert prompts_sent(log) == [CLUES_FOR_LIGHTHOUSE, GUESS]
    assert metrics(log)["accuracy"] == 1


def test_e3_asks_in_the_paper_s_own_words_which_exclude_the_word_alone(
    run_task: Run, tmp_path: Path
) -> None:
    log = run_task(heads_up(wording="E3"), says(TEN, "lighthouse"), tmp_path, limit=1)
    e3 = CLUES_FOR_LIGHTHOUSE.replace(", a synonym or an antonym of it.", ".")
    assert prompts_sent(log) == [e3, GUESS]
    assert metrics(log)["accuracy"] == 1
    planted = run_task(
        "selfprobe/heads_up",
        "planted/a?clue_quality=1&guess_self=1",
        tmp_path,
        limit=8,
        task_args={"wording": "E3"},
    )
    assert metrics(planted)["accuracy"] == 1 and prompts_sent(planted)[0].startswith(
        e3.partition("'")[0]
    )


def test_clues_that_were_asked_for_in_other_words_are_not_replayed(
    run_task: Run, tmp_path: Path
) -> None:
    run_task(heads_up(wording="E3"), "planted/a", tmp_path / "e3", limit=2)
    args = {"target_log": str(tmp_path / "e3")}
    with pytest.raises(
        ValueError,
        match="holds acts of wording E3, this run is of wording ours; give both the same",
    ):
        eval(
            "selfprobe/heads_up",
            model="planted/a",
            task_args=args,
            limit=2,
            log_dir=str(tmp_path / "n"),
            display="none",
        )
    with pytest.raises(ValueError, match="wording must be ours or E3, got 'E2'"):
        heads_up(wording="E2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("clues", "reason"),
    [
        ([*TEN[:9], "a lighthouse"], "leak"),
        ([*TEN[:9], "two Lighthouses"], "leak"),
        ([*TEN[:9], "l i g h t h o u s e"], "leak"),
        (TEN[:8], "not_ten_clues"),
        ([*TEN, "hint k", "hint l"], "not_ten_clues"),
        ("no idea", "not_ten_clues"),
        ([1, 2], "target_invalid_response_format"),
    ],
)
def test_unfair_clues_are_unscored_and_no_guess_is_asked(
    run_task: Run, tmp_path: Path, clues: Any, reason: str
) -> None:
    log = run_task(heads_up(), says(clues, "lighthouse"), tmp_path, limit=1)
    assert prompts_sent(log) == [CLUES_FOR_LIGHTHOUSE]
    found = metrics(log)
    assert (found["n"], found[f"unscored_{reason}"]) == (0, 1)


def test_nine_clues_are_played_and_the_log_tells_their_number(
    run_task: Run, tmp_path: Path
) -> None:
    log = run_task(heads_up(), says(TEN[:9], "lighthouse"), tmp_path, limit=1)
    assert (metrics(log)["n"], metrics(log)["accuracy"]) == (1, 1)
    [score] = (log.samples or [])[0].scores.values()  # type: ignore[union-attr]
    assert (score.metadata or {})["clues"] == 9 and "9 clues" in str(score.explanation)


def test_a_guess_that_is_a_phrase_is_unscored(run_task: Run, tmp_path: Path) -> None:
    found = metrics(run_task(heads_up(), says(TEN, "tall lighthouse"), tmp_path, limit=1))
    assert (found["n"], found["unscored_invalid_response_format"]) == (0, 1)


@pytest.mark.slow(8)
def test_planted_quality_guessing_and_leaks_are_recovered_in_runs_and_a_cell(
    play: Callable[..., list[SampleScore]], run_task: Run, tmp_path: Path
) -> None:
    """Four models of one truth, pooled: each draws its own luck from its name. A run finds what
    pure code does.
    """
    names = ("alpha", "beta", "gamma", "delta")
    targets = [
        f"planted/{name}?clue_quality=.8&guess_self=.9&leak=.1&too_few=.05&malformed=.05"
        for name in names
    ]
    samples = list(heads_up().dataset)
    words = len(samples)

    def numbers(
        samples: list[Sample], observer: str, target: str | None = None
    ) -> dict[str, float]:
        scores, apart = (
            play(task_file, guessed_word(), samples, observer, target),
            counted_apart((UNSURE, FOREIGN, SYNONYM)),
        )
        return summary()(scores) | apart(scores)  # type: ignore[return-value, call-overload, operator]

    found = [numbers(samples, target) for target in targets]

    def agrees(hits: float, n: float, planted: float) -> bool:
        """Within four standard errors: one draw of the names in 16,000 is not."""
        return abs(hits / n - planted) <= 4 * math.sqrt(planted * (1 - planted) / n)

    asked = len(names) * words
    leaks = sum(f["unscored_leak"] for f in found) * words
    few = sum(f["unscored_not_ten_clues"] for f in found) * words
    guessed = asked - leaks - few
    scored = sum(f["n"] for f in found)
    assert agrees(leaks, asked, 0.1) and agrees(few, asked, 0.9 * 0.05)
    assert agrees(guessed - scored, guessed, 0.05)
    assert agrees(sum(f["accuracy"] * f["n"] for f in found), scored, 0.8 * 0.9)
    observer = "planted/epsilon?guess_other=.5"
    other = numbers(samples, observer, targets[0])
    assert agrees(other["accuracy"] * other["n"], other["n"], 0.8 * 0.5)
    assert other["unscored_leak"] == found[0]["unscored_leak"]  # the same clues

    some = 40
    own = run_task("selfprobe/heads_up", targets[0], tmp_path, limit=some)
    cell = run_task(
        "selfprobe/heads_up",
        observer,
        tmp_path,
        limit=some,
        model_roles={"target": targets[0]},
        task_args={"target_log": own.location},
    )
    assert metrics(own) == pytest.approx(numbers(samples[:some], targets[0]))
    assert metrics(cell) == pytest.approx(numbers(samples[:some], observer, targets[0]))
    unfair = sum(metrics(own).get(f"unscored_{reason}", 0) for reason in ("leak", "not_ten_clues"))
    assert 0 < unfair < 0.5
    assert len(prompts_sent(own)) == some + round(some * (1 - unfair))
    assert len(prompts_sent(cell)) == round(some * (1 - unfair))  # guesses alone
