"""What a user gets: the wheel, the sdist, the names, and documents that say what is there."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from inspect_ai._util.registry import registry_info
from inspect_ai.log import list_eval_logs, read_eval_log

import selfprobe.study._registry
from selfprobe.cli import COMMANDS
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]
MAPPED: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
FOLDERS = ("selfprobe", *MAPPED.values())
DATA = sorted(path for path in (ROOT / "datasets").iterdir() if path.is_dir())
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
TASKS = list(selfprobe.study._registry.tasks())


def named(path: Path) -> str:
    return path.name


def in_package(path: Path) -> str:
    """Where a source file lies in a wheel: `solvers/act.py` is `selfprobe/solvers/act.py`."""
    place = path.relative_to(ROOT).as_posix()
    return place if place.startswith("selfprobe/") else f"selfprobe/{place}"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is made from it, built from a copy of the
    checkout.
    """
    place = tmp_path_factory.mktemp("built")
    skip = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "build", "dist"
    )
    shutil.copytree(ROOT, place / "checkout", ignore=skip)
    command = [
        sys.executable,
        "-m",
        "build",
        "--quiet",
        "--no-isolation",
        "--outdir",
        str(place),
        str(place / "checkout"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.fixture(scope="session")
def wheel(built: Path) -> set[str]:
    """The names in the wheel."""
    with zipfile.ZipFile(built / f"selfprobe-{VERSION}-py3-none-any.whl") as archive:
        return set(archive.namelist())


@pytest.mark.slow(20)
def test_the_wheel_holds_every_module_and_every_bundled_row(wheel: set[str]) -> None:
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    data = [path for folder in DATA for path in (folder / "rows.jsonl", folder / "README.md")]
    missing = {
        in_package(path)
        for path in (
            *sources,
            *data,
            ROOT / "selfprobe" / "py.typed",
            *(ROOT / "configs").glob("*.yaml"),
        )
    } - wheel
    assert not missing, "a package that pyproject.toml does not name?"


@pytest.mark.slow(20)
def test_the_wheel_puts_nothing_beside_the_package(wheel: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel} == {"selfprobe", f"selfprobe-{VERSION}.dist-info"}


@pytest.mark.slow(20)
def test_the_wheel_carries_its_licence_and_no_tests(wheel: set[str]) -> None:
    assert f"selfprobe-{VERSION}.dist-info/licenses/LICENSE" in wheel
    assert not [
        name
        for name in wheel
        if "test" in name.split("/")[-1] or "/tests/" in name or "egg-info" in name
    ]


@pytest.mark.slow(20)
def test_the_sdist_is_enough_to_test_and_to_build(built: Path) -> None:
    with tarfile.open(built / f"selfprobe-{VERSION}.tar.gz") as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    folders = (*FOLDERS, "tests", "bench", "docs")
    sources = {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    documents = {path.relative_to(ROOT).as_posix() for path in (*DOCUMENTS, ROOT / "CHANGELOG.md")}
    files = {"LICENSE", "Makefile", "constraints.txt", "pyproject.toml", ".ci/run", *documents}
    assert not (sources | files) - inside
    assert not [
        name
        for name in inside
        if ".venv" in name or "__pycache__" in name or name.startswith("logs")
    ]


@pytest.mark.slow(30)
def test_the_installed_wheel_runs_by_name_from_another_folder(built: Path, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"  # Inspect tells an installed package by this name
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "-qq",
        "--no-deps",
        "--target",
        str(site),
    ]
    subprocess.run([*pip, str(next(built.glob("*.whl")))], timeout=120, check=True)
    environment = {**os.environ, "PYTHONPATH": str(site), "PWD": str(tmp_path)}
    where = subprocess.run(
        [sys.executable, "-c", "import selfprobe.data as d; print(d.__file__, d.BUNDLED, *d.bundled(), sep='\\n')"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True,
    ).stdout.splitlines()  # fmt: skip
    package = site / "selfprobe"
    assert where == [
        str(package / "data" / "__init__.py"),
        str(package / "datasets"),
        *(folder.name for folder in DATA),
    ]
    command = [
        Path(sys.executable).parent / "inspect",
        "eval",
        "selfprobe/kth_word",
        "--model",
        "planted/alpha",
    ]
    options = ["--limit", "2", "--log-dir", "logs", "--display", "plain"]
    done = subprocess.run(
        [*command, *options],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [info] = list_eval_logs(str(tmp_path / "logs"))
    log = read_eval_log(info)
    assert (log.status, log.eval.task) == ("success", "selfprobe/kth_word")


def test_uv_installs_the_tested_versions_too() -> None:
    pins = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and line[0] != "#"
    ]
    assert PROJECT["tool"]["uv"]["constraint-dependencies"] == pins


def test_every_package_folder_is_named_in_pyproject() -> None:
    inits = [path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py")]
    packages = {
        in_package(folder).replace("/", ".").removesuffix(".selfprobe")
        for folder in inits
        if folder.name != "selfprobe"
    }
    assert {"selfprobe", "selfprobe.datasets", "selfprobe.configs", *packages} == set(
        PROJECT["tool"]["setuptools"]["packages"]
    )


def test_inspect_finds_the_suite_through_its_entry_point() -> None:
    [found] = {
        point.value for point in entry_points(group="inspect_ai") if point.name == "selfprobe"
    }
    assert found == "selfprobe.study._registry"


REGISTERED: dict[str, Any] = {
    **selfprobe.study._registry.tasks(),
    "embedded": selfprobe.study._registry.embedded,
    "planted": selfprobe.study._registry.planted,
}


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_names_have_the_prefix_of_the_suite(name: str) -> None:
    """The distribution and the import package have one name, or Inspect would drop it."""
    info = registry_info(REGISTERED[name])
    assert (info.name, info.type) == (
        f"selfprobe/{INSPECT_NAME_BY_TASK.get(name, name)}",
        "task" if name in TASKS else "modelapi",
    )


@pytest.mark.parametrize("folder", DATA, ids=named)
def test_a_bundled_data_set_has_a_card_with_its_hash(folder: Path) -> None:
    assert (folder / "rows.jsonl").is_file() and (folder / "README.md").is_file()
    sha256 = hashlib.sha256((folder / "rows.jsonl").read_bytes()).hexdigest()
    assert sha256 in (folder / "README.md").read_text(), (
        f"{folder.name}/README.md: the hash of rows.jsonl is {sha256}"
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_commands_in_the_documents_exist(document: Path) -> None:
    text = document.read_text()
    code = "\n".join(
        re.findall(r"```\n(.*?)```", text, flags=re.DOTALL)
        + re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    )
    rules = re.findall(r"^([a-z][a-z -]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()}
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)", code)) <= targets
    assert set(re.findall(r"^selfprobe ([a-z-]+)", code, flags=re.MULTILINE)) <= set(COMMANDS)
    assert set(re.findall(r"inspect eval(?:-set)? selfprobe/(\w+)", code)) <= {
        name for task in TASKS for name in (task, INSPECT_NAME_BY_TASK.get(task, task))
    }
    for path in re.findall(r"inspect eval (\w+/\w+\.py)", text):
        shown = f"`{path}`:" in text  # a file that the document has the reader make
        assert (ROOT / path).is_file() or shown, f"{document.name}: there is no {path}"
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (document.parent / link).exists(), f"{document.name}: there is no {link}"


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_in_the_readme(task: str) -> None:
    assert f"`{INSPECT_NAME_BY_TASK.get(task, task)}`" in (ROOT / "README.md").read_text()


def test_one_version_everywhere() -> None:
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{VERSION}]" in (ROOT / "CHANGELOG.md").read_text()
    assert (ROOT / "CHANGELOG.md").read_text().count("\n## [Unreleased]") == 1
