"""Sampled, whole replies for Table 1: what is asked, how, and that a cut one is none."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent

from selfprobe.introspect_tasks.open_answers import SETS, open_answers, table_row_prompts
from selfprobe.papers.introspectbench_printed import TABLE_1


def calls(log: Any) -> list[Any]:
    return [
        event.config
        for sample in log.samples
        for event in sample.events
        if isinstance(event, ModelEvent)
    ]


def test_there_are_prompts_for_each_row_of_table_1() -> None:
    assert set(SETS) == set(TABLE_1)
    row = {"question": "Q?", "paraphrases": ["a", "b", "c", "d"], "dilemma": "D", "word": "barn"}
    assert table_row_prompts(row, "kth_word") == {"answer": "Q?"}
    assert list(table_row_prompts(row, "paraphrase_recognition").values()) == [
        "Q?",
        "a",
        "b",
        "c",
        "d",
    ]
    assert table_row_prompts(row, "heads_up")["clues"].startswith("Target: 'barn'")
    assert table_row_prompts(row, "ethical_dilemma")["cot"].startswith("D\n\nThink carefully")


def test_each_draw_has_its_seed_and_the_stated_temperature_without_a_short_limit(
    run_task: Any, tmp_path: Path
) -> None:
    log = run_task(open_answers(temperature=0.7, epochs=2), "planted/a", tmp_path, limit=2)
    sent = [(call.temperature, call.seed, call.max_tokens) for call in calls(log)]
    assert sorted(sent) == [(0.7, 1, 16_384)] * 2 + [(0.7, 2, 16_384)] * 2
    assert (log.eval.metadata["of"], log.eval.metadata["temperature"]) == ("kth_word", 0.7)
    texts = {
        sample.epoch: sample.messages[-1].text
        for sample in log.samples
        if sample.id == log.samples[0].id
    }
    assert texts[1] != texts[2]


def test_a_cut_reply_is_unscored_with_its_reason(run_task: Any, tmp_path: Path) -> None:
    log = run_task(open_answers(epochs=1), "planted/a?act_truncated=1", tmp_path, limit=3)
    found = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert found["unscored_target_truncated"] == 1 and "replied" not in found


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (
            {"of": "prompt_reconstruction"},
            "of must be kth_word, ethical_dilemma, paraphrase_recognition or heads_up",
        ),
        (
            {"temperature": 0},
            "temperature must be a number above 0, since replies are sampled; got 0",
        ),
        ({"epochs": 0}, "epochs must be a whole number from 1"),
        ({"of": "heads_up", "dataset": "open_questions"}, "no column 'word'"),
    ],
)
def test_a_wrong_argument_is_told(args: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        open_answers(**args)
