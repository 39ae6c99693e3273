"""Entries for Inspect's register of evaluations."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK
from selfprobe.study._registry import tasks

COMMIT = "0123456789" * 4
CALL = ("https://example.org/owner/selfprobe", COMMIT)


def written(root: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, str(root / "docs" / "register.py"), *words, "--out", str(folder)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def made(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("register")
    assert written(root, folder, *CALL).stdout == f"{len(tasks())} entries in {folder}\n"
    return {
        path.parent.name: yaml.safe_load(path.read_text()) for path in folder.glob("*/eval.yaml")
    }


def test_each_task_has_an_entry_that_names_its_file(
    made: dict[str, dict[str, Any]], root: Path
) -> None:
    assert set(made) == {INSPECT_NAME_BY_TASK.get(name, name) for name in tasks()}
    for name, entry in made.items():
        [task] = entry["tasks"]
        assert task["name"] == name
        assert (root / task["task_path"]).is_file()
        assert entry["source"] == dict(
            zip(("repository_url", "repository_commit"), CALL, strict=True)
        )
        assert "\n" not in entry["description"] and entry["description"].endswith((".", "?", ")"))


def test_a_commit_that_is_none_is_refused(root: Path, tmp_path: Path) -> None:
    refused = written(root, tmp_path, CALL[0], "main")
    assert (refused.returncode, "COMMIT must be 40 hexadecimal digits" in refused.stderr) == (
        2,
        True,
    )


@pytest.mark.skipif(
    importlib.util.find_spec("inspect_evals") is None, reason="inspect-evals is not installed"
)
def test_the_entries_fit_the_register(made: dict[str, dict[str, Any]]) -> None:
    metadata = pytest.importorskip("inspect_evals.metadata")
    for name, entry in made.items():
        held = metadata.ExternalEvalMetadata(**entry, id=name)
        assert (held.id, held.source.maintainers) == (name, ["owner"])


def test_the_entry_for_inspects_list_of_extensions_has_its_form(root: Path) -> None:
    [entry] = yaml.safe_load((root / "docs" / "extensions.yml").read_text())
    assert set(entry) == {"name", "description", "author", "categories"}
    assert all(
        re.fullmatch(r"\[[^]]+\]\(https://[^)]+\)", entry[name]) for name in ("name", "author")
    )
    assert set(entry["categories"]) <= {"Sandboxes", "Analysis", "Frameworks", "Tooling"}
    assert 0 < len(entry["description"].splitlines()) <= 2
