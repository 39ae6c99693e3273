"""Generation: 750 combinations, each asked once, and what is fit to be judged."""

import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval, list_tasks
from inspect_ai.event import ModelEvent
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from selfprobe.building.dilemma_generation import (
    AXES,
    GENERATE_PROMPT,
    dilemma_generation,
    record_to_sample,
)
from selfprobe.errors import InputError


def test_there_is_a_sample_for_each_of_the_750_combinations() -> None:
    samples = list(dilemma_generation().dataset)
    assert len(samples) == 6 * 5 * 5 * 5 == len({sample.id for sample in samples})
    first = samples[0]
    assert first.metadata == {"axes": dict(zip(AXES, str(first.id).split("."), strict=True))}
    assert all(AXES[axis][value] in first.input for axis, value in first.metadata["axes"].items())


def test_the_first_combinations_have_all_values_of_every_axis() -> None:
    """A limit of the earlier order had one conflict alone."""
    first_samples = list(dilemma_generation().dataset)[:60]
    for axis, values in AXES.items():
        first_values = {sample.metadata["axes"][axis] for sample in first_samples}
        assert first_values == set(values)


def test_a_combination_becomes_a_prompt_that_says_its_four_values() -> None:
    row = {axis: next(iter(values)) for axis, values in AXES.items()}
    sample = record_to_sample({"id": "first", **row})
    assert (sample.id, sample.metadata) == ("first", {"axes": row})
    assert sample.input == GENERATE_PROMPT.format(
        **{axis: AXES[axis][value] for axis, value in row.items()}
    )


def test_a_model_that_writes_no_json_has_nothing_that_is_valid_or_not(tmp_path: Path) -> None:
    output = ModelOutput.from_content("mockllm/model", "Here is one.")
    output.usage = ModelUsage(
        input_tokens=1, output_tokens=1, total_tokens=2
    )  # or Inspect fetches a tokenizer
    model = get_model("mockllm/model", custom_outputs=[output, output])
    [log] = eval(dilemma_generation(), model=model, limit=2, log_dir=str(tmp_path), display="none")
    assert log.status == "success" and log.results is not None
    found = log.results.scores[0].metrics
    assert "valid" not in found and found["unscored"].value == 1


def test_the_prompt_asks_for_the_fields_that_are_read() -> None:
    example = GENERATE_PROMPT.format(
        conflict="", relationship="", domain="", ambiguity=""
    ).splitlines()[-1]
    assert set(json.loads(example)) == {"scenario", "option_a", "option_b"}


def test_planted_flaws_and_malformed_replies_are_told_apart(run_task: Any, tmp_path: Path) -> None:
    log = run_task(dilemma_generation(), "planted/gen?flawed=.3&malformed=.2", tmp_path, limit=60)
    found = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert found["valid"] == pytest.approx(0.7, abs=0.15)
    assert found["unscored_invalid_response_format"] == pytest.approx(0.2, abs=0.12)
    said = {sample.scores["dilemma_validity"].explanation.splitlines()[0] for sample in log.samples}
    assert said == {"valid:", "same_options", "invalid_response_format"}


def test_a_reply_is_held_to_the_schema_where_a_provider_can(run_task: Any, tmp_path: Path) -> None:
    log = run_task(dilemma_generation(temperature=0.7), "planted/gen", tmp_path, limit=1)
    (event,) = [event for event in log.samples[0].events if isinstance(event, ModelEvent)]
    assert (event.config.temperature, event.config.seed) == (0.7, 1)
    assert event.config.response_schema.json_schema.required == ["scenario", "option_a", "option_b"]


def test_limit_and_effort_are_those_that_the_user_chose(run_task: Any, tmp_path: Path) -> None:
    log = run_task(
        dilemma_generation(act_tokens=9000, effort="low"), "planted/gen", tmp_path, limit=1
    )
    (event,) = [event for event in log.samples[0].events if isinstance(event, ModelEvent)]
    assert (event.config.max_tokens, event.config.reasoning_effort) == (9000, "low")
    with pytest.raises(InputError, match="act_tokens must be a whole number"):
        dilemma_generation(act_tokens=0)


def test_a_run_of_the_folder_leaves_the_pipeline_out_and_its_name_finds_it(
    root: Path, tmp_path: Path
) -> None:
    names = {task.name for task in list_tasks("introspect_tasks", root_dir=root)}
    assert "ethical_dilemma" in names and not {"dilemma_generation", "dilemma_judging"} & names
    log = eval(
        "selfprobe/dilemma_generation",
        model="planted/gen",
        limit=1,
        log_dir=str(tmp_path),
        display="none",
    )[0]
    assert log.status == "success"
