"""The three prompting tasks end to end on planted judges, whose truth is known."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, resolve_sample_attachments
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from selfprobe.data.preferences import preferences, record_to_sample
from selfprobe.errors import InputError
from selfprobe.preference_tasks.direct_scoring import direct_scoring
from selfprobe.preference_tasks.g_eval import g_eval
from selfprobe.preference_tasks.pairwise_preference import pairwise_preference
from selfprobe.providers.behaviours.preference import planted_quality
from selfprobe.scorers.decision import decisions_of
from selfprobe.solvers.record import Record

Run = Callable[..., EvalLog]
TASKS = (pairwise_preference, direct_scoring, g_eval)


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success" and log.results is not None, log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


@pytest.mark.parametrize(("says", "accuracy"), [(("5", "1"), 1.0), (("1", "5"), 0.0)])
def test_the_text_with_the_higher_score_is_the_better_one(
    says: tuple[str, str], accuracy: float, tmp_path: Path
) -> None:
    pair = {"id": "p", "question": "Why?", "text_1": "One.", "text_2": "Two.", "label": 1}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in says]
    for output in outputs:
        output.usage = ModelUsage(
            input_tokens=1, output_tokens=1, total_tokens=2
        )  # or Inspect fetches a tokenizer
    model = get_model("mockllm/model", custom_outputs=outputs)
    task = direct_scoring(str(tmp_path / "pairs.jsonl"))
    [log] = eval(task, model=model, log_dir=str(tmp_path), display="none", max_connections=1)
    assert metrics(log)["accuracy"] == accuracy


def test_a_pair_shows_its_question_and_both_texts_and_aims_at_the_better_one() -> None:
    sample = record_to_sample(
        {"id": "p", "question": "Why?", "text_1": "One.", "text_2": "Two.", "label": 2}
    )
    assert (sample.id, sample.target) == ("p", "2")
    assert sample.input == "Why?\n\n[1]\nOne.\n\n[2]\nTwo."


def rows(count: int) -> list[dict[str, Any]]:
    texts = [(f"answer {i} of one kind", f"answer {i} of the other") for i in range(count)]
    return [
        {
            "id": f"p{i}",
            "question": f"What of number {i}?",
            "text_1": a,
            "text_2": b,
            "label": 1 if planted_quality(a) > planted_quality(b) else 2,
        }
        for i, (a, b) in enumerate(texts)
    ]


@pytest.fixture
def mine(tmp_path: Path) -> Callable[..., str]:
    def write(count: int = 12, **changed: Any) -> str:
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(json.dumps(row | changed) + "\n" for row in rows(count)))
        return str(path)

    return write


def near(found: float, planted: float, n: int) -> bool:
    return abs(found - planted) < 3.5 * math.sqrt(max(planted * (1 - planted), 0.01) / n)


# ---- planted truths, from end to end


@pytest.mark.slow(8)
def test_planted_accuracy_bias_ties_and_faults_are_recovered(
    run_task: Run, tmp_path: Path, mine: Any
) -> None:
    judge = "planted/a?prefers=.85&first=.25&tied=.15&malformed=.05"
    found = metrics(run_task(pairwise_preference(mine(90)), judge, tmp_path / "logs"))
    n = int(found["n"])
    assert near(found["decided_accuracy"], 0.85, n) and near(found["tie_rate"], 0.15, n)
    # A tied pair takes choice 1 in both orders: the planted shift alone decides.
    assert near(found["said_1"], 0.85 * 0.6306 + 0.15, n)
    assert near(found["unscored_invalid_response_format"], 1 - 0.95**2, 90)
    assert found["from_logprobs"] == 1 and found["mass"] == pytest.approx(0.9)
    assert found["auroc_low"] < 0.9 and found["consistency"] < 0.9


@pytest.mark.slow(8)
def test_scores_alone_recover_the_planted_accuracy(
    run_task: Run, tmp_path: Path, mine: Any
) -> None:
    path = mine(90)
    direct = metrics(run_task(direct_scoring(path), "planted/a?prefers=.85", tmp_path / "logs"))
    weighted = metrics(run_task(g_eval(path), "planted/a?prefers=.85", tmp_path / "logs"))
    assert near(direct["tie_rate"], 7 / 32, 90) and near(weighted["accuracy"], 0.85, 90)
    assert weighted["tie_rate"] == 0 and weighted["auroc"] > 0.85


def test_without_logprobs_answers_are_drawn_and_the_log_says_so(
    run_task: Run, tmp_path: Path, mine: Any
) -> None:
    log = run_task(pairwise_preference(mine(3), draws=4), "planted/a?mute=1", tmp_path / "logs")
    assert metrics(log)["from_logprobs"] == 0 and "mass" not in metrics(log)
    sample = (log.samples or [])[0]
    assert set(sample.store_as(Record).answers) == {
        name
        for order in ("shown", "swapped")
        for name in (order, *(f"{order}#{r}" for r in range(1, 5)))
    }
    score = next(iter((sample.scores or {}).values()))
    assert (score.metadata or {})["read"] == {"shown": "draws", "swapped": "draws"}
    assert "from 4 sampled answers" in str(score.explanation)
    g = run_task(g_eval(mine(2), draws=3), "planted/a?mute=1", tmp_path / "logs")
    assert metrics(g)["from_logprobs"] == 0 and metrics(g)["n"] == 2
    written = run_task(direct_scoring(mine(2)), "planted/a?mute=1", tmp_path / "logs")
    assert metrics(written)["from_logprobs"] == 0 and metrics(written)["n"] == 2


# ---- what is sent


def sent(log: EvalLog) -> list[list[tuple[str, str]]]:
    events = [
        e
        for e in resolve_sample_attachments((log.samples or [])[0], "full").events
        if isinstance(e, ModelEvent)
    ]
    return sorted([(m.role, m.text) for m in e.input] for e in events)


def test_the_prompts_of_both_orders(run_task: Run, tmp_path: Path, mine: Any) -> None:
    comparison = (
        "Consider the following instruction:\nWhat of number 0?\nConsider the following two responses:\n"
        "Choice 1: {}\nChoice 2: {}\nWhich is more helpful?\nAnswers must be a single choice."
    )
    one, two = "answer 0 of one kind", "answer 0 of the other"
    sentence = "Between Choice 1 and Choice 2, the more helpful response is Choice"
    asked = "\n\nReply with one digit alone, 1 or 2, that completes this sentence:\n" + sentence
    plain = sent(run_task(pairwise_preference(mine(1)), "planted/a", tmp_path / "logs"))
    assert plain == [
        [("user", comparison.format(*texts) + asked)] for texts in ((one, two), (two, one))
    ]
    filled = sent(
        run_task(pairwise_preference(mine(1), prefill=True), "planted/a", tmp_path / "logs")
    )
    assert filled == [
        [("user", comparison.format(*texts)), ("assistant", sentence + " ")]
        for texts in ((one, two), (two, one))
    ]


def test_the_question_and_the_items_name_of_the_command_are_in_the_prompt(
    run_task: Run, tmp_path: Path, mine: Any
) -> None:
    asked = pairwise_preference(mine(1), question="more honest", item="answer")
    for prompt in sent(run_task(asked, "planted/a", tmp_path / "logs")):
        text = prompt[0][1]
        assert (
            "Which is more honest?" in text
            and "the following two answers:" in text
            and "helpful" not in text
        )


def test_the_score_prompts_and_the_settings(run_task: Run, tmp_path: Path, mine: Any) -> None:
    log = run_task(direct_scoring(mine(1)), "planted/a", tmp_path / "logs")
    assert [prompt[0][1].split("\n")[3] for prompt in sent(log)] == [
        "answer 0 of one kind",
        "answer 0 of the other",
    ]
    event = next(
        e
        for e in resolve_sample_attachments((log.samples or [])[0], "full").events
        if isinstance(e, ModelEvent)
    )
    assert (event.config.temperature, event.config.logprobs, event.config.top_logprobs) == (
        0,
        True,
        20,
    )


def test_a_record_becomes_one_sample(mine: Any) -> None:
    sample = next(iter(pairwise_preference(mine(1)).dataset))
    assert (
        sample.input
        == "What of number 0?\n\n[1]\nanswer 0 of one kind\n\n[2]\nanswer 0 of the other"
    )
    assert sample.target == str(rows(1)[0]["label"]) and (sample.metadata or {})["group"]


# ---- replay, names, data


def test_g_eval_replays_the_answers_of_direct_scoring(
    run_task: Run, tmp_path: Path, mine: Any
) -> None:
    path, logs = mine(4), tmp_path / "logs"
    run_task("selfprobe/direct_scoring", "planted/a", logs, task_args={"dataset": path})
    again = run_task(
        "selfprobe/g_eval",
        "planted/a",
        logs,
        task_args={"dataset": path, "observer_log": str(logs)},
    )
    fresh = run_task(g_eval(path), "planted/a", tmp_path / "fresh")
    assert metrics(again) == metrics(fresh) and not again.stats.model_usage


def test_a_csv_and_a_local_copy_of_a_public_set_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "question", "text_1", "text_2", "label"])
        writer.writeheader()
        writer.writerows([*rows(3), rows(4)[3] | {"label": "tie"}])
    loaded = preferences(str(path))
    assert [row["label"] for row in loaded.table.rows] == [row["label"] for row in rows(3)]
    assert loaded.metadata["ties_left_out"] == 1
    copy = tmp_path / "copy.jsonl"
    copy.write_text(
        json.dumps(
            {"input": "Q", "output_1": "a", "output_2": "b", "label": 2, "subset": "Natural"}
        )
        + "\n"
    )
    assert [(row["context"], row["label"]) for row in preferences(f"llmbar={copy}").table.rows] == [
        ("Q", 2)
    ]


def test_llmbar_itself_where_it_is(root: Path) -> None:
    file = root.parent / "shared" / "data" / "llmbar" / "llmbar.jsonl"
    if not file.is_file():
        pytest.skip(f"no {file}")
    loaded = preferences(f"llmbar={file}", pairs=50)
    assert len(loaded.table.rows) == 50 and loaded.metadata["not_drawn"] == 419 - 50
    assert loaded.table.sha256 == preferences(f"llmbar={file}", pairs=50).table.sha256


# ---- errors and edges


@pytest.mark.parametrize("task", TASKS)
def test_an_unknown_data_set_lists_the_known_ones(task: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"unknown data set 'nothing': expected one of ours, llmbar, .*NAME=PATH, or a .jsonl",
    ):
        task("nothing")
    with pytest.raises(InputError, match=r"no file or folder 'gone.jsonl'; looked at"):
        task("gone.jsonl")
    with pytest.raises(InputError, match=r"dataset must be one data set .*got "):
        task(["llmbar", "hanna"])
    with pytest.raises(InputError, match="pairs must be a whole number from 1, or left out, got 0"):
        task("llmbar", pairs=0)


def test_a_row_without_a_column_or_with_a_wrong_label_is_named(mine: Any) -> None:
    with pytest.raises(
        InputError, match=r"row 1: no text_2; expected id, question, text_1, text_2"
    ):
        pairwise_preference(mine(1, text_2=""))
    with pytest.raises(InputError, match=r"label must be 1, 2, 'tie' or left out, got 3"):
        pairwise_preference(mine(1, label=3))


def test_draws_must_be_positive(mine: Any) -> None:
    with pytest.raises(InputError, match="draws must be a whole number from 1, got 0"):
        pairwise_preference(mine(1), draws=0)


@pytest.mark.parametrize("task", [direct_scoring, g_eval])
def test_a_set_that_only_has_comparisons_cannot_be_scored(task: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    lines = [
        "He ate.\tHow long?\t5 minutes\tyes\tDuration",
        "He ate.\tHow long?\t5 years\tno\tDuration",
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(
        InputError, match="direct scoring is defined for .*'mctaco' only has comparisons"
    ):
        task(f"mctaco={path}")


def test_equal_texts_are_not_asked_about(run_task: Run, tmp_path: Path, mine: Any) -> None:
    for task in TASKS:
        log = run_task(task(mine(2, text_1="same", text_2=" Same")), "planted/a", tmp_path / "logs")
        assert metrics(log)["unscored_equal_texts"] == 1 and not log.stats.model_usage


def test_one_class_and_no_labels(run_task: Run, tmp_path: Path, mine: Any) -> None:
    found = metrics(run_task(pairwise_preference(mine(4, label=1)), "planted/a", tmp_path / "logs"))
    assert "auroc" not in found and found["n"] == 4 and found["baseline_constant"] == 1
    found = metrics(
        run_task(pairwise_preference(mine(4, label=None)), "planted/a", tmp_path / "logs")
    )
    assert (
        found["n"] == 0 and found["unscored"] == 0 and "accuracy" not in found and "said_1" in found
    )


def answering(output: Callable[[], ModelOutput]) -> Any:
    def reply(*_: Any) -> ModelOutput:
        made = output()
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    return get_model("mockllm/model", custom_outputs=reply)


@pytest.mark.parametrize("task", TASKS)
def test_a_pair_longer_than_the_context_is_unscored(
    run_task: Run, tmp_path: Path, mine: Any, task: Any
) -> None:
    long = answering(
        lambda: ModelOutput.from_content(
            "mockllm/model", "1 too many tokens", stop_reason="model_length"
        )
    )
    assert metrics(run_task(task(mine(1)), long, tmp_path / "logs"))["unscored_too_long"] == 1


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("text", "reason"), [("I'm sorry, but I can't help with that.", "refusal"), ("", "no_response")]
)
def test_faults_are_counted_by_reason(
    run_task: Run, tmp_path: Path, mine: Any, task: Any, text: str, reason: str
) -> None:
    judge = answering(lambda: ModelOutput.from_content("mockllm/model", text))
    log = run_task(task(mine(1)), judge, tmp_path / "logs")
    assert metrics(log)[f"unscored_{reason}"] == 1
    decisions = decisions_of(next(iter(((log.samples or [])[0].scores or {}).values())))
    assert all(d.value is None for d in decisions)


def test_planted_judges_are_deterministic(run_task: Run, tmp_path: Path, mine: Any) -> None:
    first, again = (
        metrics(run_task(pairwise_preference(mine(6)), "planted/b", tmp_path / str(i)))
        for i in (1, 2)
    )
    assert first == again
