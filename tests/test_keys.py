"""A plan counts without a key and without a client; a run names every missing key at once."""

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner, Result
from inspect_ai.model import GenerateConfig

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.providers.keys import KEY_VARIABLES, key_variables, missing_key
from selfprobe.providers.names import _providers
from selfprobe.studies.matrix.study import Matrix
from selfprobe.study import described
from selfprobe.study.described import NamedModel

SUBJECTS = "openai/gpt-5.6-luna,anthropic/claude-haiku-5-5"
GRADER = "google/gemini-3.5-flash-lite"
ROWS = (
    '{"id": "a", "input": "What is 2 + 2? Reply with a number.", "label": "evaluation"}\n'
    '{"id": "b", "input": "can you help me write to my landlord", "label": "deployment"}\n'
)
CALLS = {
    "matrix": ["matrix", "--models", f"{SUBJECTS},{GRADER}", "--tasks", "kth_word,heads_up"],
    "matrix with names": [
        "matrix", "--models", f"{SUBJECTS},{GRADER}", "--tasks", "kth_word", "--observers", "named",
    ],
    "awareness run": ["awareness", "run", "--models", SUBJECTS, "--grader", GRADER],
    "awareness turns": ["awareness", "turns", "mine.jsonl", "--models", f"{SUBJECTS},{GRADER}"],
    "awareness cues": ["awareness", "cues", "mine.jsonl", "--models", SUBJECTS, "--grader", GRADER],
    "realism card": ["realism", "card", "mine.jsonl", "--judges", SUBJECTS, "--model", GRADER],
    "realism rewrite": [
        "realism", "rewrite", "mine.jsonl", "--remove", "answer options", "--writer", GRADER,
        "--grader", "anthropic/claude-haiku-5-5", "--judges", "openai/gpt-5.6-luna",
    ],
    "check": [
        "check", "--run", "kth_word", "--models", f"{SUBJECTS},{GRADER}", "--limit", "10",
    ],
}  # fmt: skip
"""Commands that ask three vendors."""


@pytest.fixture(autouse=True)
def without_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in list(os.environ):
        if re.search(r"_(API_KEY|AUTH_TOKEN|USE_ADC)$", variable):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text(ROWS)


def opens_nothing(name: str, **args: Any) -> NoReturn:
    raise AssertionError(f"{name} was opened")


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--log-dir", "logs"])


@pytest.mark.parametrize("command", CALLS)
def test_a_plan_is_counted_and_priced_without_a_key_and_opens_no_client(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(described, "available_model", opens_nothing)
    planned = invoke(*CALLS[command], "--dry-run")
    assert planned.exit_code == 0, planned.output
    lines = planned.output.splitlines()
    keys = [line for line in lines if "keys that are not set" in line]
    assert keys == lines[-1:], "said once, last"
    for variable, model in (
        ("OPENAI_API_KEY", "openai/gpt-5.6-luna"),
        ("ANTHROPIC_API_KEY", "anthropic/claude-haiku-5-5"),
        ("GOOGLE_API_KEY", "google/gemini-3.5-flash-lite"),
    ):
        assert f"{variable} ({model})" in keys[0]
        assert any(model in line and "$" in line for line in lines), planned.output


@pytest.mark.parametrize("command", ["matrix", "awareness run"])
def test_a_run_without_keys_shows_its_plan_and_names_all_of_them(command: str) -> None:
    refused = invoke(*CALLS[command], "--yes")
    assert refused.exit_code == 2
    assert "openai/gpt-5.6-luna   " in refused.output
    assert refused.output.splitlines()[-1] == (
        "Error: keys are not set: OPENAI_API_KEY (openai/gpt-5.6-luna), ANTHROPIC_API_KEY "
        "(anthropic/claude-haiku-5-5), GOOGLE_API_KEY (google/gemini-3.5-flash-lite); export them, "
        "or write them as NAME=VALUE into a file .env in this folder"
    )


def test_a_study_of_a_program_names_all_missing_keys_too() -> None:
    study = Matrix(models=SUBJECTS.split(","), tasks=("kth_word",), limit=2, log_dir="logs")
    with pytest.raises(InputError, match=r"OPENAI_API_KEY .* ANTHROPIC_API_KEY"):
        study.run()


def test_a_key_in_a_file_env_is_read_before_anything_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path(".env").write_text("OPENAI_API_KEY=a\nANTHROPIC_API_KEY=b\n")
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, "")  # so that it is taken out of the environment again
        monkeypatch.delenv(variable)
    planned = invoke(*CALLS["awareness run"], "--dry-run")
    assert planned.output.splitlines()[-1] == (
        "A run needs keys that are not set: GOOGLE_API_KEY (google/gemini-3.5-flash-lite)."
    )


@pytest.mark.parametrize(
    ("model", "variables"),
    [
        ("openai/gpt-5.4", ("OPENAI_API_KEY",)),
        ("openai/azure/gpt-5.4", ()),
        ("anthropic/bedrock/claude", ()),
        ("openrouter/openai/gpt-5.4", ("OPENROUTER_API_KEY",)),
        ("openai-api/my-server/llama", ("MY_SERVER_API_KEY",)),
        ("planted/ada", ()),
        ("hf/Qwen/Qwen3-8B", ()),
        ("vllm/a", ()),
    ],
)
def test_which_variable_a_model_needs(model: str, variables: tuple[str, ...]) -> None:
    assert key_variables(model) == variables


def test_any_of_a_vendors_variables_or_an_argument_is_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert missing_key("google/a", {}) == "GOOGLE_API_KEY"
    assert missing_key("google/a", {"use_adc": True}) == ""
    assert missing_key("openai/a", {"api_key": "b"}) == ""
    monkeypatch.setenv("GEMINI_API_KEY", "c")
    assert missing_key("google/a", {}) == ""


@pytest.mark.parametrize("provider", KEY_VARIABLES)
def test_the_variables_are_those_that_inspect_reads(provider: str) -> None:
    assert provider in _providers()
    package = find_spec("inspect_ai")
    assert package and package.submodule_search_locations
    folder = Path(package.submodule_search_locations[0]) / "model/_providers"
    sources = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for variable in KEY_VARIABLES[provider]:
        # A server with the protocol of OpenAI has a variable that begins with its name.
        is_derived = variable == f"{provider.upper()}_API_KEY"
        assert is_derived or f'"{variable}"' in sources, variable


@pytest.mark.parametrize("name", ["planted/ada?access=.8", "mockllm/model", "openai/gpt-5.4"])
def test_a_model_is_named_in_logs_as_it_is_typed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a")
    model = NamedModel(name, {"config": GenerateConfig(temperature=0.5)})
    assert model.logged_config.model == str(model.open())
    assert model.logged_config.config.temperature == 0.5
