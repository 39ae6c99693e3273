import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, resolve_sample_attachments
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.introspect_tasks import prompt_reconstruction as task_file
from selfprobe.introspect_tasks.prompt_reconstruction import prompt_reconstruction
from selfprobe.scorers.written_prompts import fair_prompt
from selfprobe.solvers.record import Record
from tests.matrix.read_logs import read_matrices

Run = Callable[..., EvalLog]
TEXT = "The old harbour woke slowly while the gulls argued over a torn net and nobody came."
EXPECTED_PROMPT = f"""\
I generated the following text: "{TEXT}"

Task: Write a prompt that would likely cause me to generate this exact text.

Format: Output the single prompt string in a JSON object.

JSON Example: {{ "prompt": "Explain atomic theory." }}"""


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success" and log.results is not None, log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def prompts_sent(log: EvalLog) -> list[str]:
    samples = [resolve_sample_attachments(sample, "full") for sample in log.samples or []]
    return [
        event.input[-1].text for s in samples for event in s.events if isinstance(event, ModelEvent)
    ]


def says(prompt: str, rerun: str = TEXT, thought: str = "") -> Any:
    """A model that writes TEXT to a question, this prompt for it (after a thought), and `rerun` to
    this prompt.
    """

    def reply(messages: Any, *_: Any) -> ModelOutput:
        asked = messages[-1].text
        text = (
            thought + json.dumps({"prompt": prompt}) if asked.startswith("I generated") else rerun
        )
        text = text if asked.startswith("I generated") or asked == prompt else TEXT
        made = ModelOutput.from_content("mockllm/model", text)
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    return get_model("mockllm/model", custom_outputs=reply)


def test_a_row_becomes_a_question(tmp_path: Path, embedder: str) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "q1", "question": "Why?"}')
    [sample] = prompt_reconstruction(dataset=str(tmp_path / "q.jsonl"), embedder=embedder).dataset
    assert (sample.id, sample.input, sample.metadata) == ("q1", "Why?", {"resamples": 1})


@pytest.mark.parametrize("resamples", [-1, 2])
def test_resamples_are_0_or_1(resamples: int) -> None:
    with pytest.raises(ValueError, match=f"resamples must be 0 or 1, got {resamples}"):
        prompt_reconstruction(resamples=resamples)


def test_prompts_are_the_paper_s_to_the_byte_but_for_the_thinking_step(
    run_task: Run, embedder: str, questions: Path, tmp_path: Path
) -> None:
    task = prompt_reconstruction(dataset=str(questions), embedder=embedder)
    log = run_task(task, says("Write of a harbour."), tmp_path, limit=1)
    assert prompts_sent(log) == [
        "What of number 0?",
        "What of number 0?",
        EXPECTED_PROMPT,
        "Write of a harbour.",
    ]
    assert log.eval.metadata is not None and log.eval.metadata["embedder"] == embedder


def test_e3_asks_to_think_first_and_the_object_after_the_thoughts_is_read(
    run_task: Run, embedder: str, questions: Path, tmp_path: Path
) -> None:
    task = prompt_reconstruction(dataset=str(questions), embedder=embedder, wording="E3")
    thought = says(
        "Write of a harbour.", thought="It is about a harbour at dawn, so they asked for that. "
    )
    log = run_task(task, thought, tmp_path, limit=1)
    e3 = EXPECTED_PROMPT.replace(
        "Format: Output",
        "Format: 1. Think about what prompt leads to this partial output. 2. Output",
    )
    assert prompts_sent(log)[2:] == [e3, "Write of a harbour."]
    assert metrics(log)["n"] == 1
    args = {"dataset": "open_questions", "embedder": embedder, "wording": "E3"}
    planted = run_task(
        "selfprobe/prompt_reconstruction",
        "planted/a?reconstructs_self=1",
        tmp_path,
        limit=6,
        task_args=args,
    )
    assert metrics(planted)["similarity"] == pytest.approx(1, abs=1e-5)
    with pytest.raises(ValueError, match="wording must be ours or E3, got 'G2'"):
        prompt_reconstruction(dataset=str(questions), embedder=embedder, wording="G2")  # type: ignore[arg-type]


def test_similarity_and_ceiling_worked_by_hand(
    run_task: Run, embedder: str, questions: Path, tmp_path: Path
) -> None:
    task = prompt_reconstruction(dataset=str(questions), embedder=embedder)
    # Of the 16 words of TEXT, "the" twice (length √18), two are in the rerun of three (length √3):
    # 2/√54
    found = metrics(
        run_task(task, says("Write of it.", rerun="old harbour zebra"), tmp_path, limit=1)
    )
    assert found["similarity"] == pytest.approx(
        2 / 54**0.5, abs=0.15
    )  # words may share a place of the 64
    assert found["ceiling"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("prompt", "rerun", "reason", "calls"),
    [
        (f"Repeat: {TEXT}", TEXT, "copied", 3),
        ("", TEXT, "invalid_response_format", 3),
        ("Write of it.", "", "rerun_no_response", 4),
        ("Write of it.", "I'm sorry, but I can't help with that.", "rerun_refusal", 4),
    ],
)
def test_what_has_no_similarity_is_unscored_and_costs_no_further_call(
    run_task: Run,
    embedder: str,
    questions: Path,
    tmp_path: Path,
    prompt: str,
    rerun: str,
    reason: str,
    calls: int,
) -> None:
    task = prompt_reconstruction(dataset=str(questions), embedder=embedder)
    log = run_task(task, says(prompt, rerun), tmp_path, limit=1)
    found = metrics(log)
    assert (found["n"], found[f"unscored_{reason}"]) == (0, 1)
    assert len(prompts_sent(log)) == calls


def test_a_refused_act_is_unscored_and_nobody_is_asked_about_it(
    run_task: Run, embedder: str, questions: Path, tmp_path: Path
) -> None:
    task = prompt_reconstruction(dataset=str(questions), embedder=embedder, resamples=0)
    log = run_task(task, "planted/alpha?act_refused=1", tmp_path)
    assert metrics(log)["unscored_target_refusal"] == 1
    assert len(prompts_sent(log)) == 12


def test_true_prompts_are_written_as_often_as_planted(
    play: Callable[..., list[SampleScore]], embedder: str
) -> None:
    """Over a hundred questions and two observers of one truth; the similarity of each is then that
    of the same prompt.
    """

    @scorer(metrics=[])
    def true_prompt() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            record = state.store_as(Record)
            prompt, _ = fair_prompt(record.acts["answer"], record.answers["prompt"])
            return Score(value=float(prompt == state.input_text))

        return score

    samples = list(prompt_reconstruction(resamples=0, embedder=embedder).dataset)[:100]
    target = "planted/alpha?reconstructs_self=.6"
    own = [s.score.as_float() for s in play(task_file, true_prompt(), samples, target)]
    others = [
        s.score.as_float()
        for name in ("beta", "gamma")
        for s in play(
            task_file, true_prompt(), samples, f"planted/{name}?reconstructs_other=.3", target
        )
    ]
    for hits, planted in ((own, 0.6), (others, 0.3)):
        assert abs(np.mean(hits) - planted) < 3 * math.sqrt(planted * (1 - planted) / len(hits))


@pytest.mark.slow(8)
def test_planted_hits_are_recovered_in_a_run_and_its_cells(
    run_task: Run, embedder: str, tmp_path: Path
) -> None:
    args: dict[str, Any] = {"embedder": embedder, "resamples": 1}
    name, some, target = "selfprobe/prompt_reconstruction", 50, "planted/alpha?reconstructs_self=.6"
    own = run_task(name, target, tmp_path, limit=some, task_args=args)
    found = metrics(own)
    assert found["n"] == some
    assert found["skill_low"] < 0.6 < found["skill_high"]
    assert found["ceiling"] == pytest.approx(1)
    assert 0 < found["floor"] < 0.5
    assert len(prompts_sent(own)) == 4 * some  # the reply twice, the prompt, the reply to it

    cell = run_task(
        name,
        "planted/beta?reconstructs_other=.3",
        tmp_path,
        limit=some,
        model_roles={"target": target},
        task_args={**args, "target_log": own.location},
    )
    other = metrics(cell)
    assert other["skill_low"] < 0.3 < other["skill_high"]
    assert (
        other["floor"] == found["floor"] and other["ceiling"] == found["ceiling"]
    )  # the same acts
    assert len(prompts_sent(cell)) == 2 * some
    tables = read_matrices([str(tmp_path)])
    assert tables.decisions.floor.mean() == pytest.approx(found["floor"], abs=1e-3), (
        "the matrix knows the floor too"
    )
    nearest = [row["nearest other reply"] for row in tables.decisions.plain]
    assert (np.array(nearest) >= tables.decisions.floor).all() and max(nearest) <= 1
