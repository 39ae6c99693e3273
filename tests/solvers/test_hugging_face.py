"""Inspect's own hf provider on a tiny model with random weights: greedy at temperature 0, drawn
with the seed above.
"""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState

from selfprobe.solvers.act import answer
from selfprobe.solvers.ask import Prompts
from selfprobe.solvers.record import record_of

torch = pytest.importorskip("torch", reason="the probes extra is not installed")
pytest.importorskip("transformers", reason="the probes extra is not installed")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a Llama of one block, as `hf/…` loads it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(
        models.BPE(vocab={c: i for i, c in enumerate(["<s>", *alphabet])}, merges=[])
    )
    backend.pre_tokenizer, backend.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="<s>")
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    torch.manual_seed(0)
    sizes = {"vocab_size": 257, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    folder = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(LlamaConfig(**sizes, **heads, bos_token_id=0, eos_token_id=0)).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    return str(folder)


@scorer(metrics=[accuracy()])
def nothing() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=0)

    return score


def question(state: TaskState) -> Prompts:
    return {"said": state.input_text}


@task
def both_ways(epochs: int = 3) -> Task:
    """A question that is answered greedily and one that is drawn with the epoch as the seed, in one
    run.
    """

    def settings(state: TaskState) -> GenerateConfig:
        drawn = state.input_text.startswith("draw")
        return GenerateConfig(
            temperature=1 if drawn else 0, seed=state.epoch if drawn else None, max_tokens=12
        )

    samples = [Sample(id=how, input=how) for how in ("draw", "take")]
    return Task(
        dataset=samples, solver=answer(question, config=settings), scorer=nothing(), epochs=epochs
    )


def replies(log: EvalLog, how: str) -> dict[tuple[str, int], str]:
    assert log.status == "success", log.error
    return {
        (str(s.id), s.epoch): record_of(s).answers["said"].text
        for s in log.samples or []
        if str(s.id).startswith(how)
    }


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect waits two seconds for further calls before it computes those that wait."""
    hf = importlib.import_module("inspect_ai.model._providers.hf")
    drain = hf._drain_batches
    monkeypatch.setattr(hf, "_drain_batches", lambda queue, timeout: drain(queue, 0.1))


def test_temperature_0_is_greedy_and_temperature_1_is_drawn_with_the_seed_in_one_run(
    quick: None, tiny: str, run_task: Any, tmp_path: Path
) -> None:
    first, again = (
        run_task(both_ways(), f"hf/{tiny}", tmp_path / name, max_connections=1) for name in "ab"
    )
    assert len(set(replies(first, "take").values())) == 1  # one text, whatever the epoch
    assert len(set(replies(first, "draw").values())) == 3  # one a seed
    assert replies(first, "take") == replies(again, "take") and replies(first, "draw") == replies(
        again, "draw"
    )


def test_do_sample_false_does_not_make_ten_rollouts_one(
    quick: None, tiny: str, run_task: Any, tmp_path: Path
) -> None:
    log = run_task(both_ways(), f"hf/{tiny}", tmp_path, model_args={"do_sample": False})
    assert len(set(replies(log, "take").values())) == 1
    assert len(set(replies(log, "draw").values())) == 3


def test_a_task_of_the_suite_runs_on_it(
    quick: None, tiny: str, run_task: Any, tmp_path: Path
) -> None:
    log = run_task(
        "selfprobe/kth_word", f"hf/{tiny}", tmp_path, limit=1, task_args={"k": 1, "act_tokens": 8}
    )
    assert log.status == "success" and not any(sample.error for sample in log.samples)


def test_a_reply_that_used_up_the_limit_is_cut_and_a_shorter_one_of_its_batch_is_not(
    quick: None, tiny: str, run_task: Any, tmp_path: Path
) -> None:
    """Inspect counts the tokens of the longest reply of a batch for each of them, and says no
    reason.
    """
    limit = 200
    settings = GenerateConfig(temperature=1, seed=1, max_tokens=limit)
    samples = [Sample(id=str(n), input=f"{n}?") for n in range(8)]
    log = run_task(
        Task(dataset=samples, solver=answer(question, config=settings), scorer=nothing()),
        f"hf/{tiny}",
        tmp_path,
    )
    said = {str(s.id): record_of(s).answers["said"] for s in log.samples}
    # A token is a byte here, and a wrong byte a character, but for a few that make one of two.
    cut = {name for name, reply in said.items() if len(reply.text) > 0.9 * limit}
    assert 0 < len(cut) < len(said)
    assert {name for name, reply in said.items() if reply.stop_reason == "max_tokens"} == cut
    assert {name for name, reply in said.items() if reply.problem == "truncated"} == cut
    assert {reply.stop_reason for name, reply in said.items() if name not in cut} == {"stop"}
    assert {s.output.stop_reason for s in log.samples} == {"max_tokens", "stop"}
    assert any(
        s.output.stop_reason == "stop" and s.model_usage[f"hf/{tiny}"].output_tokens == limit
        for s in log.samples
    )


def test_what_transformers_was_told_is_what_was_applied(
    quick: None, tiny: str, run_task: Any, tmp_path: Path
) -> None:
    """It has no argument for an effort or a schema; whether a model thinks is told to its chat
    template.
    """
    args = {"k": 1, "act_tokens": 8}
    log = run_task("selfprobe/kth_word", f"hf/{tiny}", tmp_path / "a", limit=1, task_args=args)
    told = log.samples[0].metadata["applied"]
    assert (
        told["observer"] == "effort not sent (asked: none), temperature 0, no JSON schema, limit 64"
    )
    log = run_task(
        "selfprobe/kth_word",
        f"hf/{tiny}",
        tmp_path / "b",
        limit=1,
        task_args=args,
        model_args={"enable_thinking": False},
    )
    assert log.samples[0].metadata["applied"]["observer"].startswith("effort none, ")


def test_a_drawn_reply_was_sent_with_its_seed(
    quick: None, tiny: str, run_task: Any, tmp_path: Path
) -> None:
    log = run_task(both_ways(epochs=2), f"hf/{tiny}", tmp_path)
    [applied] = {
        record_of(s).answers["said"].applied for s in log.samples if (s.id, s.epoch) == ("draw", 2)
    }
    assert applied is not None and (applied.temperature, applied.seed, applied.limit) == (1, 2, 12)


@pytest.mark.parametrize("more", [{}, {"model_args": {"do_sample": False}}])
def test_predictions_that_used_up_their_limit_name_the_argument_that_raises_it(
    quick: None, tiny: str, run_task: Any, tmp_path: Path, more: dict[str, Any]
) -> None:
    args, target = {"k": 1, "answer_tokens": 2}, {"target": "planted/a"}
    log = run_task(
        "selfprobe/kth_word",
        f"hf/{tiny}",
        tmp_path,
        limit=3,
        task_args=args,
        model_roles=target,
        **more,
    )
    found = {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }
    assert found["cut_at_answer_tokens"] == found["unscored_truncated"] == 1 and found["n"] == 0


@pytest.mark.slow(14)
def test_from_the_command_line_do_sample_false_changes_no_temperature(
    tiny: str, tmp_path: Path
) -> None:
    """Ten rollouts at temperature 1 are not one, and the log says so."""
    given = (
        "-M",
        "do_sample=false",
        "-T",
        "rollout_tokens=8",
        "--epochs",
        "3",
        "--limit",
        "1",
        "--display",
        "none",
    )
    command = [
        "eval",
        "selfprobe/ethical_dilemma",
        "--model",
        f"hf/{tiny}",
        *given,
        "--log-dir",
        str(tmp_path),
    ]
    done = subprocess.run(
        [Path(sys.executable).parent / "inspect", *command], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    log = read_eval_log(next(tmp_path.glob("*.eval")))
    rollouts = {record_of(sample).acts["cot"].text for sample in log.samples or []}
    assert len(rollouts) == 3
    assert all(
        "temperature 1, seed" in sample.metadata["applied"]["target"]
        for sample in log.samples or []
    )
