"""Which models are related, by their names."""

import pytest

from selfprobe.text.families import families, related, same_model, simulated_reader_fault


@pytest.mark.parametrize(
    ("model", "of"),
    [
        ("openai/o3-mini", {"openai"}),
        ("openrouter/anthropic/claude-opus-4", {"anthropic"}),
        ("bedrock/us.anthropic.claude-3", {"anthropic"}),
        ("together/deepseek-ai/DeepSeek-R1-Distill-Llama-70B", {"deepseek", "meta"}),
        ("hf/someone/proto3", {"hf/someone/proto3"}),
        ("planted/gpt?first=.1", {"planted/gpt"}),
    ],
)
def test_a_model_is_of_its_makers_family_or_of_one_of_its_own(model: str, of: set[str]) -> None:
    assert families(model) == of


def test_the_same_maker_by_another_provider_is_related_and_another_maker_is_not() -> None:
    assert related("openai/gpt-5", "azureai/gpt-4o") and related(
        "a/llama-3", "b/deepseek-r1-distill-llama"
    )
    assert not related("openai/gpt-5", "anthropic/claude") and not related(
        "planted/ada", "planted/bea"
    )


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-4", "gpt-4-0613"),
        ("openai/gpt-4-0613", "gpt-4-2023-06-13"),
        ("openrouter/openai/gpt-4o", "openai/gpt-4o"),
        ("openrouter/openai/gpt-4o-mini:free", "openai/gpt-4o-mini"),
        ("openrouter/deepseek/deepseek-v3.2", "deepseek/deepseek-v3.2-20251201"),
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic/claude-4.5-sonnet-20250929"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("anthropic/vertex/claude-sonnet-4@20250514", "claude-sonnet-4-20250514"),
        ("bedrock/us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet-20241022"),
        ("google/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("google/gemini-2.0-flash", "gemini-2.0-flash-001"),
        ("google/gemini-2.5-flash-preview", "gemini-2.5-flash-preview-09-2025"),
        ("mistral/mistral-large-latest", "mistral-large-2411"),
        ("cohere/command-r", "command-r-08-2024"),
        ("grok/grok-4", "grok-4-0709"),
        ("together/meta-llama/Llama-3.3-70B-Instruct", "meta-llama/llama-3.3-70b-instruct"),
        ("ollama/llama3.2", "llama3.2:latest"),
        ("openai/ft:gpt-4o-mini-2024-07-18:org::abc", "ft:gpt-4o-mini-2024-07-18:org::abc"),
        ("fireworks/accounts/fireworks/models/qwen3-8b", "accounts/fireworks/models/qwen3-8b"),
    ],
)
def test_a_snapshot_a_prefix_and_a_route_of_a_name_are_the_same_model(
    asked: str, answered: str
) -> None:
    assert same_model(asked, answered)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("openai/gpt-4o", "gpt-4o-mini"),
        ("openai/gpt-4o-mini", "gpt-4o"),
        ("openai/gpt-4o", "gpt-4"),
        ("openai/gpt-4o-2024-05-13", "gpt-4o-2024-08-06"),
        ("openai/gpt-4-0613", "gpt-4-1106"),
        ("openai/gpt-4o", "llama-3-8b-instruct"),
        ("openai/gpt-5", "gpt-5.1"),
        ("openai/ft:gpt-4o-mini-2024-07-18:org::abc", "gpt-4o-mini-2024-07-18"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-20250514"),
        ("anthropic/claude-opus-4-1", "claude-sonnet-4-1"),
        ("google/gemini-1.5-pro-001", "gemini-1.5-pro-002"),
        ("google/gemini-2.5-flash", "gemini-2.5-flash-lite"),
        ("ollama/llama3:8b", "llama3:70b"),
        ("ollama/llama3:text", "llama3:instruct"),
        ("openrouter/qwen/qwen3-8b", "qwen/qwen3-32b"),
    ],
)
def test_another_size_version_date_or_maker_is_another_model(asked: str, answered: str) -> None:
    assert not same_model(asked, answered) and not same_model(answered, asked)


def test_every_name_is_itself() -> None:
    for name in (
        "a",
        "openai/gpt-4o",
        "x/0613",
        "2024-08-06",
        "openai-api/gate/m:free",
        "planted/ada?access=.8",
    ):
        assert same_model(name, name)


def test_a_simulated_grader_of_a_real_model_is_refused_and_of_a_simulated_one_is_not() -> None:
    for reader in ("planted/g", "planted/g?notices=.5", "mockllm/model"):
        fault = simulated_reader_fault(reader, ["planted/a", "openai/gpt-5"], "--grader ")
        assert fault == (
            f"{reader} is simulated: it answers by a fixed rule and cannot read the texts of openai/gpt-5; give a "
            "model that reads, such as --grader openai/gpt-5.6-luna"
        )
        assert simulated_reader_fault(reader, ["planted/a", "none/none"], "--grader ") == ""
    assert simulated_reader_fault("openai/gpt-5-mini", ["openai/gpt-5"], "--grader ") == ""
