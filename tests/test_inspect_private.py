"""What is private to Inspect is checked when it is used: a version that moved it is named in a
line.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import rich
from inspect_ai._display.rich import display
from inspect_ai.model import get_model
from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI
from rich.console import Console

from selfprobe.errors import inspect_private
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.study.described import available_model

ROOT = Path(__file__).parent.parent


def refusal() -> str:
    with pytest.raises(PrerequisiteError) as caught:
        get_model("embedded/smollm2", memoize=False)
    return str(caught.value.message)


def test_a_changed_private_class_is_a_line_that_names_inspects_version_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(OpenAICompatibleAPI, "_create_client")
    assert re.fullmatch(
        r"Inspect [\d.]+ is not one that this version of selfprobe knows: its OpenAICompatibleAPI._create_client is "
        r"gone or takes other arguments. embedded/… models need it; all else works. Install a newer selfprobe, or the "
        r"tested Inspect: pip install inspect-ai==[\d.]+",
        refusal(),
    )


def test_other_arguments_of_a_method_or_of_the_start_are_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def generate(self: Any, messages: Any) -> None: ...

    def start(self: Any, name: str) -> None: ...

    with monkeypatch.context() as patched:
        patched.setattr(OpenAICompatibleAPI, "generate", generate)
        assert "OpenAICompatibleAPI.generate is gone or takes other arguments" in refusal()
    with monkeypatch.context() as patched:
        patched.setattr(OpenAICompatibleAPI, "__init__", start)
        assert "OpenAICompatibleAPI starts with other arguments" in refusal()


def test_other_models_work_with_a_changed_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(OpenAICompatibleAPI, "_create_client")
    assert str(available_model("planted/a")) == "planted/a"


def test_a_private_name_that_is_gone_names_the_feature_that_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        inspect_private.LAZY_NAMES,
        "load_tasks",
        ("inspect_ai._eval.gone", "load_tasks", "Some features"),
    )
    with pytest.raises(
        PrerequisiteError, match=r"No module named 'inspect_ai._eval.gone'\. Some features need it"
    ):
        _ = inspect_private.load_tasks


def test_a_task_file_by_its_whole_path_needs_its_task_behind_an_at_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What docs/related.md says to type; where Inspect takes the path alone, that sentence can go."""
    monkeypatch.chdir(tmp_path)
    file = ROOT / "introspect_tasks" / "kth_word.py"
    [task] = inspect_private.load_tasks([f"{file}@kth_word"])
    assert len(task.dataset) > 100
    with pytest.raises(NotImplementedError, match="Non-relative patterns"):
        inspect_private.load_tasks([str(file)])


def test_the_version_that_is_advised_is_the_one_that_is_tested() -> None:
    assert (
        f"inspect_ai=={inspect_private.TESTED_INSPECT}\n" in (ROOT / "constraints.txt").read_text()
    )


@pytest.mark.parametrize("quiet", [True, False])
def test_tables_of_results_are_drawn_where_they_are_seen(
    monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    monkeypatch.setattr(rich, "get_console", lambda: Console(quiet=quiet))
    assert (display.tasks_results([]) == "") is quiet
