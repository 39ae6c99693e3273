"""Contract tests of the embedded model, and of the private parts of Inspect that it stands on."""

import asyncio
import gc
import inspect
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import read_eval_log
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI
from inspect_ai.util import JSONSchema
from inspect_ai.util._concurrency import AdaptiveConcurrencyController, _active_controller

from selfprobe.embed import weights
from selfprobe.providers import embedded

# Inspect calls tenacity in a deprecated way before each generate.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The 'initial' parameter is deprecated:DeprecationWarning"
)

LONG = " ".join(f"Item {i}: the lamp was sold for {i * 3} dollars." for i in range(5))


@pytest.fixture(scope="module")
def smollm2() -> Model:
    try:
        weights.fetch()
    except PrerequisiteError as error:
        pytest.skip(f"the weights are not cached and cannot be fetched: {error.message}")
    return get_model("embedded/smollm2")


def ask(model: Model, prompt: str | list[ChatMessage], **config: Any) -> ModelOutput:
    async def call() -> ModelOutput:
        try:
            return await model.generate(prompt, config=GenerateConfig(**config))
        finally:
            await model.api.aclose()  # its connections belong to this event loop
            model.api.initialize()

    return asyncio.run(call())


def logprobs_of(output: ModelOutput) -> list[float]:
    assert output.choices[0].logprobs is not None
    return [token.logprob for token in output.choices[0].logprobs.content]


def test_it_chats(smollm2: Model) -> None:
    output = ask(smollm2, "Say hello.", temperature=0, max_tokens=12, reasoning_effort="none")
    assert output.completion.strip()
    assert output.error is None
    assert output.usage is not None and 0 < output.usage.output_tokens <= 12


@pytest.mark.slow(8)
def test_temperature_0_repeats_to_the_last_bit_whatever_was_asked_between(smollm2: Model) -> None:
    """With the prompt cache this sequence moves the first logprob by 0.08: the shared beginning
    comes from `LONG`.
    """
    question = "What is the capital of France?"
    settings: dict[str, Any] = {"temperature": 0, "seed": 1, "max_tokens": 3, "logprobs": True}
    first = ask(smollm2, question, **settings)
    ask(smollm2, [ChatMessageSystem(content="x"), ChatMessageUser(content="hi")], max_tokens=1)
    ask(smollm2, LONG, max_tokens=1)
    again = ask(smollm2, question, **settings)
    assert (again.completion, logprobs_of(again)) == (first.completion, logprobs_of(first))


@pytest.mark.slow(11)
def test_a_seed_repeats_at_temperature_1(smollm2: Model) -> None:
    one, same, other = (
        ask(smollm2, "Name an animal.", temperature=1, seed=seed, max_tokens=8).completion
        for seed in (5, 5, 6)
    )
    assert one == same != other


def test_20_top_logprobs_describe_the_distribution_before_sampling(smollm2: Model) -> None:
    output = ask(smollm2, "Say hello.", temperature=0, max_tokens=2, logprobs=True, top_logprobs=20)
    assert output.choices[0].logprobs is not None
    token = output.choices[0].logprobs.content[0]
    assert token.top_logprobs is not None and len(token.top_logprobs) == 20
    values = [top.logprob for top in token.top_logprobs]
    assert values == sorted(values, reverse=True)
    assert (
        token.logprob == values[0] < 0
    )  # greedy; with sampling applied first it would be 0 and the rest -inf


@pytest.mark.slow(20)
def test_a_schema_is_enforced_with_its_pattern_and_length(smollm2: Model) -> None:
    schema = JSONSchema(
        type="object",
        properties={
            "code": JSONSchema(type="string", pattern="^[A-C]{3}$"),
            "word": JSONSchema(type="string", maxLength=4),
        },
        required=["code", "word"],
        additionalProperties=False,
    )
    output = ask(
        smollm2,
        "Write a long story.",
        temperature=0,
        max_tokens=120,
        response_schema=ResponseSchema(name="s", json_schema=schema),
    )
    reply = json.loads(output.completion)
    assert len(reply["code"]) == 3 and set(reply["code"]) <= set("ABC")
    assert len(reply["word"]) <= 4


def test_a_prompt_over_the_context_is_a_model_length_stop(smollm2: Model) -> None:
    output = ask(smollm2, "hello " * 9000, max_tokens=1)
    assert output.stop_reason == "model_length"
    assert "exceeds the available context size (8192 tokens)" in output.completion


def test_handles_share_a_server_and_its_connections(smollm2: Model) -> None:
    by_role = get_model("embedded/smollm2", memoize=False, config=GenerateConfig(temperature=0.5))
    by_path = get_model(f"embedded/{weights.fetch()}", memoize=False)
    for handle in (by_role, by_path):
        assert handle.api.server is smollm2.api.server  # type: ignore[attr-defined]
        assert handle.api.connection_key() == smollm2.api.connection_key()
    assert smollm2.api.max_connections() == 1


def test_a_server_ends_with_its_last_handle(smollm2: Model) -> None:
    handle = get_model("embedded/smollm2", memoize=False, context=256)
    settings = handle.api.settings  # type: ignore[attr-defined]
    assert settings in embedded._running_servers
    del handle
    gc.collect()  # Inspect's handles hold themselves in a cycle
    assert settings not in embedded._running_servers


TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import solver

@solver
def both():
    async def solve(state, generate):
        await get_model(role="target").generate("Hi", config=GenerateConfig(max_tokens=2, attempt_timeout=60))
        return await generate(state, max_tokens=2)
    return solve

@task
def tiny():
    return Task(dataset=[Sample(input=f"Hello {i}") for i in range(2)], solver=both())
"""


def inspect_eval(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "tiny.py").write_text(TASK)
    command = [
        sys.executable,
        "-m",
        "inspect_ai",
        "eval",
        "tiny.py",
        "--display",
        "plain",
        "--log-dir",
        "logs",
    ]
    return subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow(9)
def test_inspect_eval_with_a_role_ends_cleanly_and_soon(smollm2: Model, tmp_path: Path) -> None:
    began = time.monotonic()
    done = inspect_eval(
        tmp_path, "--model", "embedded/smollm2", "--model-role", "target=embedded/smollm2"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 90  # seconds; about 10 on an idle machine
    assert (
        "llama" not in done.stderr and "srv " not in done.stderr
    )  # its log stays out of the display
    (log,) = (tmp_path / "logs").glob("*.eval")
    header = read_eval_log(str(log))
    assert header.status == "success"
    assert header.samples is not None and len(header.samples) == 2
    assert (
        "embedded:  0/ 1" in done.stdout
    )  # one connection for one slot, though adaptive connections start at 20


@pytest.mark.slow(4)
def test_inspect_eval_shows_a_wrong_name_without_a_traceback(tmp_path: Path) -> None:
    done = inspect_eval(tmp_path, "--model", "embedded/smollm3")
    assert done.returncode != 0
    shown = " ".join((done.stdout + done.stderr).split())
    assert "Expected embedded/smollm2, or embedded/ and the absolute path of a GGUF file" in shown
    assert "got embedded/smollm3." in shown
    assert "Traceback" not in shown


def test_a_relative_path_a_missing_file_and_another_format_are_told_apart(tmp_path: Path) -> None:
    text = tmp_path / "notes.gguf"
    text.write_text("hello")
    for name, complaint in {
        "models/x.gguf": "got embedded/models/x.gguf.",
        str(tmp_path / "x.gguf"): f"there is no file {tmp_path / 'x.gguf'}.",
        str(text): "begins with b'hell', which is not GGUF.",
    }.items():
        with pytest.raises(PrerequisiteError) as caught:
            get_model(f"embedded/{name}")
        assert "Expected embedded/smollm2, or " in caught.value.message
        assert caught.value.message.endswith(complaint)


def test_a_broken_gguf_is_an_error_that_says_how_to_see_more(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(500))
    with pytest.raises(PrerequisiteError) as caught:
        get_model(f"embedded/{broken}")
    assert f"llama.cpp could not load {broken}" in caught.value.message
    assert "SELFPROBE_DEBUG=1" in caught.value.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slots": 0}, "slots of embedded/smollm2 must be a whole number from 1, got 0."),
        (
            {"threads": "many"},
            "threads of embedded/smollm2 must be a whole number from 1, got 'many'.",
        ),
        (
            {"slosts": 2},
            "takes the model arguments slots, threads, context, prompt_cache; got slosts.",
        ),
        (
            {"base_url": "http://x"},
            "is served in this process and takes no base URL, got http://x.",
        ),
    ],
)
def test_a_wrong_model_argument_is_an_error_that_says_what_is_right(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        get_model("embedded/smollm2", **arguments)
    assert message in caught.value.message


def test_the_private_base_class_is_still_what_we_build_on() -> None:
    def parameters(function: Any) -> list[str]:
        return list(inspect.signature(function).parameters)

    wanted = ["self", "model_name", "base_url", "api_key", "config", "service"]
    assert parameters(OpenAICompatibleAPI.__init__)[:6] == wanted
    assert parameters(OpenAICompatibleAPI.generate) == [
        "self",
        "input",
        "tools",
        "tool_choice",
        "config",
    ]
    assert parameters(OpenAICompatibleAPI.handle_bad_request) == ["self", "ex"]
    for method in ("connection_key", "max_connections", "max_tokens"):
        assert parameters(getattr(OpenAICompatibleAPI, method)) == ["self"]
    assert isinstance(
        inspect.getattr_static(OpenAICompatibleAPI, "schema_exclude_fields"), property
    )
    assert parameters(AdaptiveConcurrencyController.set_max) == ["self", "new_max"]
    assert _active_controller.get() is None
