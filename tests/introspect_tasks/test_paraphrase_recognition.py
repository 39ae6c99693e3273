import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, resolve_sample_attachments
from inspect_ai.model import get_model
from inspect_ai.scorer import SampleScore

from selfprobe.introspect_tasks import paraphrase_recognition as task_file
from selfprobe.introspect_tasks.paraphrase_recognition import (
    VARIANTS,
    paraphrase_recognition,
    record_to_sample,
)
from selfprobe.providers.mind import Mind
from selfprobe.providers.planted import parse_name
from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.slot_choices import judge_wording, paraphrase_choice, position
from selfprobe.scorers.summary import counted_apart, summary
from selfprobe.solvers.compare import Likeness
from selfprobe.solvers.record import Reply

Run = Callable[..., EvalLog]
ROW = {
    "id": "q1",
    "question": "Why is it so?",
    "paraphrases": ["Say why.", "What for?", "How come?", "The cause?"],
}
EXPECTED_PROMPT = """\
I generated the following text: "{text}"

Which of the following prompts caused me to generate that text?

1. {0}
2. {1}
3. {2}
4. {3}
5. {4}

Return the number of the correct prompt (1, 2, 3, 4, or 5) in a JSON object.

JSON Example: { "choice": 1 }"""


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success" and log.results is not None, log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def prompts_sent(log: EvalLog) -> list[str]:
    samples = [resolve_sample_attachments(sample, "full") for sample in log.samples or []]
    return [
        event.input[-1].text for s in samples for event in s.events if isinstance(event, ModelEvent)
    ]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(
            json.dumps(
                {
                    "id": f"q{i}",
                    "question": f"What of {i}?",
                    "paraphrases": [f"{w} {i}" for w in "abcd"],
                }
            )
            + "\n"
            for i in range(200)
        )
    )
    return path


# ---- from a row to a sample


def test_a_row_becomes_five_prompts_in_an_order_fixed_by_its_id() -> None:
    sample = record_to_sample(ROW, 0.95)
    assert sample.input == ROW["question"] and sample.metadata is not None
    assert sample.metadata["prompts"] == dict(
        zip(VARIANTS, [ROW["question"], *ROW["paraphrases"]], strict=True)
    )
    assert sorted(sample.metadata["order"]) == sorted(VARIANTS)
    assert record_to_sample(ROW, 0.95) == sample


def test_orders_differ_between_items_and_no_slot_is_favoured() -> None:
    orders = [record_to_sample({**ROW, "id": str(i)}, 0.95).metadata["order"] for i in range(500)]
    shares = [sum(order[slot] == "original" for order in orders) / 500 for slot in range(5)]
    assert shares == pytest.approx([0.2] * 5, abs=0.06)


@pytest.mark.parametrize(
    "paraphrases",
    [
        "a,b,c,d",
        ["a", "b", "c"],
        ["a", "b", "c", "c"],
        ["a", "b", "c", " "],
        ["a", "b", "c", ROW["question"]],
    ],
)
def test_paraphrases_that_are_not_four_different_texts_are_an_error(paraphrases: Any) -> None:
    with pytest.raises(ValueError, match="q1: paraphrases must be a list of four texts, different"):
        record_to_sample({**ROW, "paraphrases": paraphrases}, 0.95)


def test_a_data_set_without_paraphrases_says_which_column_is_missing(questions: Path) -> None:
    with pytest.raises(ValueError, match="no column 'paraphrases'"):
        paraphrase_recognition(dataset=str(questions))


@pytest.mark.parametrize("limit", [0, -1, 1.1])
def test_max_similarity_outside_its_range_is_an_error(limit: float) -> None:
    with pytest.raises(ValueError, match="max_similarity must be above 0 and at most 1"):
        paraphrase_recognition(max_similarity=limit)


# ---- whole runs


def test_prompts_are_the_paper_s_to_the_byte(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    task = paraphrase_recognition(dataset=str(rows), embedder=embedder)
    log = run_task(task, "planted/alpha", tmp_path, limit=1)
    order = record_to_sample(json.loads(rows.read_text().splitlines()[0]), 1).metadata["order"]
    asked = dict(zip(VARIANTS, ["What of 0?", "a 0", "b 0", "c 0", "d 0"], strict=True))
    mind = Mind(*parse_name("alpha", {}))
    expected = [
        EXPECTED_PROMPT.replace("{text}", mind.paragraph(prompt)).replace(f"{{{0}}}", "{0}")
        for prompt in asked.values()
    ]
    for slot, variant in enumerate(order):
        expected = [text.replace(f"{{{slot}}}", asked[variant]) for text in expected]
    assert sorted(prompts_sent(log)) == sorted([*asked.values(), *expected])


def test_the_log_names_the_embedder_and_how_alike_replies_were(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    log = run_task(
        paraphrase_recognition(dataset=str(rows), embedder=embedder),
        "planted/alpha",
        tmp_path,
        limit=2,
    )
    assert log.eval.metadata is not None and log.eval.metadata["embedder"] == embedder
    for sample in log.samples or []:
        likeness = sample.store_as(Likeness)
        assert (
            likeness.embedder == embedder
            and likeness.closest is not None
            and 0 < likeness.closest < 0.95
        )


@pytest.mark.slow(8)
def test_planted_recognition_is_recovered_in_a_run_and_its_cells(
    play: Callable[..., list[SampleScore]], run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    """1,000 decisions in pure code; a run and a cell of it find the same for the first items."""
    args = {"dataset": str(rows), "embedder": embedder}
    samples = list(paraphrase_recognition(**args).dataset)
    target, observer = (
        "planted/alpha?recognises_self=.7",
        "planted/beta?recognises_other=.4&favourite=.25",
    )

    def numbers(samples: list[Sample], observer: str) -> dict[str, float]:
        scores = play(task_file, paraphrase_choice(), samples, observer, target)
        return summary()(scores) | position()(scores) | counted_apart()(scores)  # type: ignore[return-value, call-overload, operator]

    found, other = numbers(samples, target), numbers(samples, observer)
    assert found["n"] == 1000 and found["unscored"] == 0
    assert found["accuracy_low"] < 0.7 < found["accuracy_high"]
    assert found["skill_low"] < (0.7 - 0.2) / 0.8 < found["skill_high"]
    assert other["accuracy_low"] < 0.75 * 0.4 + 0.25 * 0.2 < other["accuracy_high"]

    name, some = "selfprobe/paraphrase_recognition", 12
    own = run_task(name, target, tmp_path, limit=some, task_args=args)
    cell = run_task(
        name,
        observer,
        tmp_path,
        limit=some,
        model_roles={"target": target},
        task_args={**args, "target_log": own.location},
    )
    assert metrics(own) == pytest.approx(numbers(samples[:some], target))
    assert metrics(cell) == pytest.approx(numbers(samples[:some], observer))
    assert len(prompts_sent(cell)) == 5 * some  # answers alone
    for sample in own.samples or []:
        for decision in decisions_of(sample.scores["paraphrase_choice"]):
            assert decision.plain is not None and set(decision.plain) == {"TF-IDF", "embedding"}


@pytest.mark.slow(3)
def test_a_constant_answer_scores_exactly_chance(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    task = paraphrase_recognition(dataset=str(rows), embedder=embedder)
    found = metrics(run_task(task, "planted/alpha?favourite=1", tmp_path, limit=40))
    assert found["accuracy"] == pytest.approx(0.2, abs=1e-12)
    assert found["baseline_chance"] == found["baseline_constant"] == pytest.approx(0.2, abs=1e-12)
    assert found["skill"] == pytest.approx(0, abs=1e-12)
    assert (found["said_1"], found["position_bias"]) == pytest.approx((1, 0.8))


def test_replies_that_are_alike_are_indistinct_and_nobody_is_asked(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    target = get_model("mockllm/model", custom_outputs=lambda *_: output("Always the same."))
    log = run_task(
        paraphrase_recognition(dataset=str(rows), embedder=embedder), target, tmp_path, limit=2
    )
    assert len(prompts_sent(log)) == 2 * 5
    found = metrics(log)
    assert (found["n"], found["unscored_indistinct"]) == (0, 1)
    assert "accuracy" not in found


def test_max_similarity_is_where_replies_become_indistinct(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    run = {"dataset": str(rows), "embedder": embedder}
    log = run_task(paraphrase_recognition(**run), "planted/alpha", tmp_path, limit=1)
    closest = (log.samples or [])[0].store_as(Likeness).closest
    assert closest is not None
    below = run_task(
        paraphrase_recognition(max_similarity=closest - 1e-6, **run),
        "planted/alpha",
        tmp_path,
        limit=1,
    )
    assert metrics(below)["unscored_indistinct"] == 1
    at = run_task(
        paraphrase_recognition(max_similarity=closest, **run), "planted/alpha", tmp_path, limit=1
    )
    assert metrics(at)["unscored"] == 0


def test_a_refused_or_empty_act_leaves_its_decision_unscored_and_unasked(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    task = paraphrase_recognition(dataset=str(rows), embedder=embedder)
    log = run_task(task, "planted/alpha?act_refused=.3&act_empty=.3", tmp_path, limit=20)
    decisions = [
        d for s in log.samples or [] for d in decisions_of((s.scores or {})["paraphrase_choice"])
    ]
    bad = [d for d in decisions if d.unscored in ("target_refusal", "target_no_response")]
    assert len(decisions) == 100 and 30 < len(bad) < 90
    assert all(d.value is not None for d in decisions if d not in bad)
    assert len(prompts_sent(log)) == 100 + 100 - len(bad)


def test_malformed_choices_are_unscored_not_wrong(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    task = paraphrase_recognition(dataset=str(rows), embedder=embedder)
    found = metrics(
        run_task(task, "planted/alpha?recognises_self=1&malformed=.3", tmp_path, limit=20)
    )
    assert found["accuracy"] == 1
    assert found["unscored_invalid_response_format"] == pytest.approx(0.3, abs=0.12)
    assert found["worst_case"] == pytest.approx(1 - found["unscored"]) and found["best_case"] == 1


def output(text: str) -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage

    made = ModelOutput.from_content("mockllm/model", text)
    made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return made


@pytest.mark.slow(3)
def test_three_candidates_are_the_papers_other_form_with_chance_a_third(
    run_task: Run, embedder: str, rows: Path, tmp_path: Path
) -> None:
    args = {"dataset": str(rows), "embedder": embedder, "candidates": 3, "max_similarity": 1}
    log = run_task(
        "selfprobe/paraphrase_recognition",
        "planted/a?recognises_self=.9",
        tmp_path,
        limit=60,
        task_args=args,
    )
    found = metrics(log)
    assert abs(found["accuracy"] - 0.9) < 0.09 and found["n"] == 180
    assert found["baseline_chance"] == pytest.approx(1 / 3) and found[
        "baseline_constant"
    ] == pytest.approx(1 / 3)
    assert {name for name in found if name.startswith("said_")} == {"said_1", "said_2", "said_3"}
    asked = [prompt for prompt in prompts_sent(log) if prompt.startswith("I generated")]
    assert (
        all("(1, 2, or 3)" in prompt and "4. " not in prompt for prompt in asked)
        and len(asked) == 180
    )


def test_another_number_of_candidates_is_told_and_a_fourth_of_three_is_no_choice() -> None:
    with pytest.raises(ValueError, match="candidates must be 3 or 5, got 4"):
        paraphrase_recognition(candidates=4)  # type: ignore[arg-type]
    act, said = (
        Reply(text=text, model="m", stop_reason="stop") for text in ("text", '{"choice": 4}')
    )
    assert (
        judge_wording("original", 1, act, said, has_indistinct_replies=False, slot_count=3).unscored
        == "invalid_response_format"
    )
    assert judge_wording("original", 1, act, said, has_indistinct_replies=False).value == 0
