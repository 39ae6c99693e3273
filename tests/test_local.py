"""Studies of a model that runs here: which names it takes, what it refuses at once, and whose
folder it writes into.
"""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selfprobe.errors import InputError
from selfprobe.study import command, described_study, options
from selfprobe.study.local import Blocks, LocalStudy, SpreadStudy


class Toy(SpreadStudy):
    """How wide? A study of this test."""

    layers: Blocks = ""

    @property
    def needs_lines(self) -> list[str]:
        return [f"{self.model} in {self.dtype}"]


def test_a_study_without_logs_does_not_say_that_it_reads_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Computing(Toy):
        """How wide? A study of this test."""

        def folder_content(self) -> None:
            return None

        @classmethod
        def page(cls, numbers: None) -> Any:
            return numbers

    stages: list[str] = []
    monkeypatch.setattr("selfprobe.text.busy.set_stage", stages.append)
    Computing(model="smollm2").build_page()
    assert stages == ["statistics of what was read"]


def call(*words: str) -> Any:
    return CliRunner().invoke(command("toy", described_study(Toy)), words)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("smollm2", "smollm2"),
        ("embedded/smollm2", "smollm2"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("hf/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("google/gemma-2-2b-it", "google/gemma-2-2b-it"),
        ("openai/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("./mine", "./mine"),
        ("there/is/a.gguf", "there/is/a.gguf"),
    ],
)
def test_a_model_is_taken_by_each_of_its_names(given: str, taken: str) -> None:
    assert options.open_model(given) == taken == Toy(model=given).model


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o",
        "openai/gpt-4o",
        "google/gemini-2.5-pro",
        "planted/ada",
        "openrouter/qwen/qwen3-8b",
        "vllm/a/b",
    ],
)
def test_a_providers_model_is_refused_with_what_can_be_typed(name: str) -> None:
    refused = call("--model", name, "--dry-run")
    assert refused.exit_code == 2 and f"got {name}" in refused.output
    assert "smollm2, a folder, a .gguf file, or a model of the hub as OWNER/NAME" in refused.output


def test_a_plan_in_time_has_no_table_of_calls() -> None:
    done = call("--model", "smollm2", "--dry-run")
    assert done.exit_code == 0 and done.stdout == "smollm2 in float32\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--layers", "3-1"), "expected blocks such as 3, 8-12 or 0-31:4, got '3-1'"),
        (("--replicas", "2"), "--replicas goes with --engine ray"),
        (("--ray-address", "a:1"), "--ray-address goes with --engine ray"),
        (("--out", "memory://there"), "must be a local folder"),
        (("--template-arg", "thinking"), "--template-arg takes NAME=VALUE"),
    ],
)
def test_a_wrong_option_is_refused_before_the_model_is_loaded(
    words: tuple[str, ...], said: str
) -> None:
    done = call("--model", "smollm2", "--dry-run", *words)
    assert said in f"{done.output}{done.exception}", done.output


def test_the_kit_has_no_engine_of_calls_and_asks_nothing_of_prices_where_a_model_runs_here() -> (
    None
):
    text = call("--help").output
    assert "--dry-run" in text and "--yes" in text and "--json" in text and "--config" in text
    assert "--prices" not in text and "--log-dir" not in text and "-T" not in text


def test_a_folder_of_another_run_is_refused_and_a_dry_run_claims_none(tmp_path: Path) -> None:
    study: LocalStudy = Toy(model="smollm2", out=str(tmp_path / "out"))
    study.claim_folder({"model": "a", "recipe": {"rank": 1}}, dry=True)
    assert not (tmp_path / "out").exists()
    study.claim_folder({"model": "a", "recipe": {"rank": 1}}, dataset="d")
    study.claim_folder({"model": "a", "recipe": {"rank": 1}}, dataset="e")
    assert study.run_record["dataset"] == "e"
    with pytest.raises(
        InputError, match=r"holds a run of model 'a', not 'b'; another recipe: give another --out"
    ):
        study.claim_folder({"model": "b", "recipe": {"rank": 2}})
    (tmp_path / "out" / "run.json").write_text("[")
    with pytest.raises(InputError, match="is not what a run writes"):
        study.claim_folder({"model": "a"})
