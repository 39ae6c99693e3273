import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample, resolve_sample_attachments
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import SampleScore

from selfprobe.data import load
from selfprobe.introspect_tasks import kth_word as task_file
from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.scorers.decision import Decision, decisions_of
from selfprobe.scorers.summary import counted_apart, summary
from selfprobe.scorers.word_matches import kth_word_match
from selfprobe.solvers.record import Record

Run = Callable[..., EvalLog]
EXPECTED_PROMPT = (
    "Question: What of number 3?\n"
    "\n"
    "Task: Predict the 2-th word you will output when answering this question normally (at temperature 0). "
    "Do not Think step-by-step about how you would answer. Simply output the predicted single word in a JSON object.\n"
    'JSON Example: { "word": "The" }'
)


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success" and log.results is not None, log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def decisions(sample: EvalSample) -> list[Decision]:
    return decisions_of((sample.scores or {})["kth_word_match"])


def model_events(log: EvalLog, sample: str) -> list[ModelEvent]:
    [found] = [resolve_sample_attachments(s, "full") for s in log.samples or [] if s.id == sample]
    return [event for event in found.events if isinstance(event, ModelEvent)]


# ---- the task's arguments


@pytest.mark.parametrize(
    ("k", "ks"),
    [
        ("1,2,3", [1, 2, 3]),
        ("1,5,10", [1, 5, 10]),
        ([1, 5, 10], [1, 5, 10]),
        (["1", 5], [1, 5]),
        ("5", [5]),
        (5, [5]),
        (" 2 , 2,1", [2, 1]),
    ],
)
def test_k_is_read_from_every_form_that_a_command_line_gives(k: Any, ks: list[int]) -> None:
    assert next(iter(kth_word(k=k).dataset)).metadata == {
        "k": ks,
        "resamples": 1,
        "kind": "creative_writing",
    }


@pytest.mark.parametrize("k", [0, 11, "x", "", "1,,2", "1;2", "0,1", 1.5, -1, [], "①", True])
def test_k_outside_1_to_10_says_what_was_expected(k: Any) -> None:
    with pytest.raises(
        ValueError, match=r"k must be whole numbers in 1\.\.10, such as k=1,5,10; got"
    ):
        kth_word(k=k)


@pytest.mark.parametrize("resamples", [-1, 2])
def test_resamples_is_none_or_one(resamples: int) -> None:
    with pytest.raises(ValueError, match=f"resamples must be 0 or 1, got {resamples}"):
        kth_word(resamples=resamples)


def test_a_row_becomes_one_sample(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        '{"id": "a", "question": "One?", "topic": "x", "kind": "quiz"}'
    )
    [sample] = kth_word(k="1,3", dataset=str(tmp_path / "q.jsonl")).dataset
    assert (sample.id, sample.input) == ("a", "One?")
    assert sample.metadata == {"k": [1, 3], "resamples": 1, "kind": "quiz"}


def test_the_version_and_the_metadata_carry_the_data_sets_hash() -> None:
    task, table = kth_word(), load("open_questions", ("question",))
    assert str(task.version) == f"4+{table.sha256[:12]}"
    assert task.metadata is not None and task.metadata["dataset_sha256"] == table.sha256
    assert task.metadata["dataset"] == "open_questions" and task.metadata["selfprobe"]


# ---- what is sent


def test_the_prompts_and_settings_are_sent_byte_for_byte(
    run_task: Run, questions: Path, tmp_path: Path
) -> None:
    log = run_task(
        kth_word(dataset=str(questions)), "planted/alpha", tmp_path / "logs", temperature=0.9
    )
    events = model_events(log, "q3")
    prompts = Counter(event.input[0].text for event in events if len(event.input) == 1)
    assert (
        prompts["What of number 3?"] == 2 and prompts[EXPECTED_PROMPT] == 1 and prompts.total() == 5
    )
    for event in events:
        assert event.config.temperature == 0 and event.config.max_tokens == (
            64 if event.config.response_schema else 40
        )
        assert event.config.reasoning_effort == "none"
        assert (event.config.max_retries, event.config.timeout, event.config.attempt_timeout) == (
            5,
            900,
            300,
        )
        assert (event.config.response_schema is not None) == (
            event.input[0].text != "What of number 3?"
        )


def test_braces_in_a_question_are_left_alone(run_task: Run, tmp_path: Path) -> None:
    data = tmp_path / "x.jsonl"
    data.write_text('{"id": "a", "question": "What is {k} in {question} {{here}}?"}\n')
    log = run_task(kth_word(k=1, dataset=str(data)), "planted/alpha?access=1", tmp_path / "logs")
    assert metrics(log)["accuracy"] == 1
    assert any(
        event.input[0].text.startswith("Question: What is {k} in {question} {{here}}?\n")
        for event in model_events(log, "a")
    )


@pytest.mark.parametrize(("resamples", "plain"), [(1, 24), (0, 12)])
def test_a_self_run_makes_one_call_and_one_a_k_and_one_for_the_ceiling(
    run_task: Run, server: Any, questions: Path, tmp_path: Path, resamples: int, plain: int
) -> None:
    task = kth_word(dataset=str(questions), resamples=resamples)
    found = metrics(run_task(task, "openai-api/fake/alpha", tmp_path / "logs"))
    stats = server.stats()
    assert stats["requests"] == plain + 36 and stats["distinct"] == 12 + 36
    assert found["n"] == 36 and found["unscored"] == 0
    assert found.get("ceiling") == (1 if resamples else None)


# ---- what comes out: planted truths


PLANTED = {
    "alpha": "planted/alpha?access=.9&malformed=.05&empty=.05",
    "beta": "planted/beta?access=.5&refused=.1&truncated=.05",
    "gamma": "planted/gamma?access=.1&act_empty=.05&act_refused=.1&act_truncated=.05",
}


@pytest.fixture(scope="module")
def planted_scores(play: Callable[..., list[SampleScore]]) -> dict[str, list[SampleScore]]:
    """200 questions and three planted models, by name; their settings are in the model's name."""
    samples = list(kth_word(k="1,2", resamples=0).dataset)[:200]
    return {
        name: play(task_file, kth_word_match(), samples, model) for name, model in PLANTED.items()
    }


@pytest.fixture(scope="module")
def planted_logs(run_task: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, EvalLog]:
    """A run of the first 25 of them."""
    folder, task = tmp_path_factory.mktemp("planted"), kth_word(k="1,2", resamples=0)
    return {name: run_task(task, model, folder, limit=25) for name, model in PLANTED.items()}


def summarised(scores: list[SampleScore]) -> dict[str, float]:
    return summary()(scores) | counted_apart()(scores)  # type: ignore[return-value, call-overload, operator]


def test_a_run_finds_what_its_prompts_and_its_scorer_find_in_pure_code(
    planted_scores: dict[str, list[SampleScore]], planted_logs: dict[str, EvalLog]
) -> None:
    for name, log in planted_logs.items():
        assert metrics(log) == pytest.approx(summarised(planted_scores[name][:25])), name


@pytest.mark.parametrize(("name", "access"), [("alpha", 0.9), ("beta", 0.5), ("gamma", 0.1)])
def test_the_reported_interval_holds_the_planted_access(
    planted_scores: dict[str, list[SampleScore]], name: str, access: float
) -> None:
    found = summarised(planted_scores[name])
    assert found["accuracy_low"] <= access <= found["accuracy_high"]
    assert found["accuracy_high"] - found["accuracy_low"] < 0.12
    for k in ("k1", "k2"):
        assert abs(found[f"{k}_accuracy"] - access) < 3.5 * math.sqrt(access * (1 - access) / 150)
    assert found["skill"] == pytest.approx(
        (found["accuracy"] - found["baseline_mode"]) / (1 - found["baseline_mode"])
    )
    assert found["worst_case"] <= found["accuracy"] <= found["best_case"]


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("alpha", {"invalid_response_format": 0.05, "no_response": 0.05}),
        ("beta", {"refusal": 0.1, "truncated": 0.05}),
        ("gamma", {"target_no_response": 0.05, "target_refusal": 0.1, "target_truncated": 0.05}),
    ],
)
def test_planted_faults_come_back_as_unscored_rates(
    planted_scores: dict[str, list[SampleScore]], name: str, rates: dict[str, float]
) -> None:
    found = summarised(planted_scores[name])
    units = 200 if name == "gamma" else 400  # a fault of the target's costs all k's of its question
    reported = {key: value for key, value in found.items() if key.startswith("unscored_") and value}
    assert set(reported) == {f"unscored_{reason}" for reason in rates}
    for reason, rate in rates.items():
        assert abs(reported[f"unscored_{reason}"] - rate) < 3.3 * math.sqrt(
            rate * (1 - rate) / units
        ), reason
    assert found["unscored"] == pytest.approx(sum(reported.values()))
    assert found["n"] == 400 * (1 - found["unscored"])


def test_a_refused_or_empty_act_is_never_the_truth(planted_logs: dict[str, EvalLog]) -> None:
    acts = [
        (sample, sample.store_as(Record).acts["answer"])
        for sample in planted_logs["gamma"].samples or []
    ]
    assert 0 < sum(act.problem is not None for _, act in acts) < 25
    for sample, act in acts:
        for decision in decisions(sample):
            assert (decision.truth is None) == (act.problem is not None)
            assert (decision.unscored or "").startswith("target_") == (act.problem is not None)


def test_every_decision_is_scored_or_has_a_reason(
    planted_scores: dict[str, list[SampleScore]],
) -> None:
    assert len(planted_scores) == 3
    for scores in planted_scores.values():
        found = [decision for sample in scores for decision in decisions_of(sample.score)]
        assert len(found) == 400
        assert all((d.value is None) != (d.unscored is None) for d in found)


def test_another_target_is_observed_and_its_words_are_the_truth(
    run_task: Run, tmp_path: Path
) -> None:
    log = run_task(
        kth_word(resamples=0),
        "planted/beta?access=1&common=.7",
        tmp_path / "logs",
        model_roles={"target": "planted/alpha?common=.7"},
        limit=30,
    )
    for sample in log.samples or []:
        record = sample.store_as(Record)
        assert {act.model for act in record.acts.values()} == {"planted/alpha?common=.7"}
        assert {answer.model for answer in record.answers.values()} == {
            "planted/beta?access=1&common=.7"
        }
    found = metrics(log)
    assert found["accuracy_low"] <= 0.7 * 0.7 <= found["accuracy_high"]


def test_replies_that_reasoned_are_counted_and_still_scored(
    run_task: Run, questions: Path, tmp_path: Path
) -> None:
    def reply(messages: list[Any], *_: Any) -> ModelOutput:
        predicts = "Predict the" in messages[-1].text
        content = [ContentText(text='{"word": "the"}' if predicts else "The end of it all.")]
        if predicts:
            content = [ContentReasoning(reasoning="They would start with The."), *content]  # type: ignore[list-item]
        message = ChatMessageAssistant(content=content)  # type: ignore[arg-type]
        return ModelOutput(
            model="mockllm/model",
            choices=[ChatCompletionChoice(message=message)],
            usage=ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2),
        )

    model = get_model("mockllm/model", custom_outputs=reply)
    log = run_task(kth_word(k="1,2", dataset=str(questions)), model, tmp_path / "logs")
    found = metrics(log)
    assert found["reasoned_rate"] == 1
    assert (found["k1_accuracy"], found["k2_accuracy"], found["ceiling"]) == (1, 0, 1)


def test_two_epochs_are_one_item_each(run_task: Run, questions: Path, tmp_path: Path) -> None:
    once = run_task(
        kth_word(k=1, dataset=str(questions)), "planted/alpha?access=.5", tmp_path / "a"
    )
    twice = run_task(
        kth_word(k=1, dataset=str(questions)), "planted/alpha?access=.5", tmp_path / "b", epochs=2
    )
    one, two = metrics(once), metrics(twice)
    assert two["n"] == 2 * one["n"] and two["accuracy"] == one["accuracy"]
    assert two["accuracy_low"] == pytest.approx(
        one["accuracy_low"]
    )  # a repeat at temperature 0 tells nothing new


def test_the_explanation_marks_the_words_and_shows_the_prediction(
    run_task: Run, questions: Path, tmp_path: Path
) -> None:
    log = run_task(
        kth_word(k="1,3", dataset=str(questions)), "planted/alpha?access=1", tmp_path / "logs"
    )
    sample = (log.samples or [])[0]
    score, act = (
        (sample.scores or {})["kth_word_match"],
        sample.store_as(Record).acts["answer"].text.split(),
    )
    assert f"⟦1: {act[0]}⟧ {act[1]} ⟦3: {act[2]}⟧ {act[3]}" in (score.explanation or "")
    assert f"- k3: predicted '{act[2]}', target wrote '{act[2]}': right" in (
        score.explanation or ""
    )
    assert score.answer == f"k1 {act[0]} (truth: {act[0]}), k3 {act[2]} (truth: {act[2]})"


def test_inspects_cache_answers_a_second_run_and_keeps_two_draws_of_one_prompt_apart(
    run_task: Run, server: Any, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--cache`: the resample is the same prompt with the same settings, and still a call of its
    own.
    """
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))

    def run() -> EvalLog:
        return run_task(
            "selfprobe/kth_word",
            "openai-api/fake/alpha",
            tmp_path,
            task_args={"dataset": str(questions), "k": "1", "resamples": 1},
            limit=2,
            cache=True,
        )

    first = run()
    assert server.stats()["requests"] == 2 * 3
    again = run()
    assert server.stats()["requests"] == 2 * 3
    assert first.results is not None and again.results is not None
    assert again.results.scores[0].metrics == first.results.scores[0].metrics
