"""Who imports whom (design: data flows one way), and that importing a task does nothing."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TASKS = ("introspect_tasks", "evalawareness_tasks", "preference_tasks")
MAPPED = (*TASKS, "building", "solvers", "scorers")
HEAVY = ("torch", "transformers", "sentence_transformers", "matplotlib", "datasets", "xllamacpp")
SOURCES = sorted(path for folder in ("selfprobe", *MAPPED) for path in (ROOT / folder).rglob("*.py"))
TASK_FILES = sorted(path for folder in TASKS for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py")

DEFINITIONS = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)

ALLOWED: dict[str, set[str]] = {
    "tasks": {"tasks", "solvers", "scorers", "data", "parse", "embed", "dilemmas", "conversations", "logs"}
    | {"preferences", "probes", "sources", "building", "arguments", "errors"},
    "solvers": {"solvers", "data", "logs", "parse", "embed", "probes", "arguments", "errors"},
    "scorers": {"scorers", "solvers.record", "solvers.compare", "solvers.draw", "solvers.apply_probe"}
    | {"parse", "stats", "embed"},
    "stats": set(),
    "parse": set(),
    "embed": {"data", "errors"},
    "arguments": {"errors"},
    "data": {"solvers", "arguments", "errors"},  # solvers: the package alone, to find the folder beside it
}
"""What each part of the suite may import of selfprobe."""

BY_NAME_ONLY = {"dilemma_generation.py", "dilemma_judging.py"}
"""Tasks that make data: `inspect eval introspect_tasks` runs the five that measure, and must not find these."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part(module: str) -> str:
    """`selfprobe.solvers.act` is `solvers`; the three task folders are `tasks`."""
    pieces = module.removeprefix("selfprobe.").split(".")
    if pieces[0] in TASKS:
        return "tasks"
    return ".".join(pieces[:2]) if pieces[0] == "solvers" else pieces[0]


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that a tree imports, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), node.lineno


def own_part(path: Path) -> str:
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    return part(".".join(["selfprobe", folder, *rest] if folder in MAPPED else ["selfprobe", *rest]))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_are_absolute_and_go_one_way(path: Path) -> None:
    mine = own_part(path).split(".")[0]
    for module, line in imported(ast.parse(path.read_text())):
        where = f"{name_of(path)}:{line} imports {module}"
        assert not module.startswith("."), f"{where}: Inspect runs a task file without a package; import absolutely"
        assert module.split(".")[0] not in MAPPED, f"{where}: say selfprobe.{module}"
        if module.startswith("selfprobe.") and mine in ALLOWED:
            theirs = part(module)
            fits = {theirs, theirs.split(".")[0]} & (ALLOWED[mine] | {mine})
            assert fits, f"{where}: {mine} may import {', '.join(sorted(ALLOWED[mine]))}"


@pytest.mark.parametrize("path", [p for p in SOURCES if "probes" not in p.parts and p.name != "plots.py"], ids=name_of)
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text())
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    found = {module.split(".")[0] for node in top for module, _ in imported(node)} & set(HEAVY)
    assert not found, f"{name_of(path)} imports {', '.join(found)} at its top"


def test_data_folders_are_no_packages() -> None:
    """An `__init__.py` in `datasets` would shadow Hugging Face's package."""
    assert not list((ROOT / "datasets").rglob("*.py"))


def test_numbers_and_parsing_know_nothing_of_inspect() -> None:
    for name in ("stats", "parse"):
        tree = ast.parse((ROOT / "selfprobe" / f"{name}.py").read_text())
        assert not [module for module, _ in imported(tree) if module.startswith("inspect_ai")]


@pytest.mark.parametrize("path", TASK_FILES, ids=name_of)
def test_a_task_file_has_a_bare_task_and_nothing_that_runs_at_import(path: Path) -> None:
    tree = ast.parse(path.read_text())
    decorators = [d for node in tree.body if isinstance(node, ast.FunctionDef) for d in node.decorator_list]
    called = [d.func if isinstance(d, ast.Call) else d for d in decorators]
    if path.name in BY_NAME_ONLY:
        assert "task" in [d.attr for d in called if isinstance(d, ast.Attribute)]
        assert "task" not in [d.id for d in called if isinstance(d, ast.Name)]
        return
    assert "task" in [d.id for d in called if isinstance(d, ast.Name)], "Inspect finds only a top-level bare @task"
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        assert docstring or isinstance(node, DEFINITIONS), f"{name_of(path)}:{node.lineno} runs at import"


WATCH = """
import sys
import inspect_ai, inspect_ai.dataset, inspect_ai.model, inspect_ai.scorer, inspect_ai.solver
import selfprobe.data, selfprobe.scorers.summary, selfprobe.solvers.replay
seen = []
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and not arguments[0].endswith((".py", ".pyc", ".so")):
        name = arguments[0]
        if not name.startswith(("/usr", "/proc", "/sys", "/dev", sys.prefix, sys.base_prefix)) and ".venv" not in name:
            seen.append((event, name))
    if event in ("socket.connect", "subprocess.Popen", "urllib.Request"):
        seen.append((event, str(arguments[1:2])))
sys.addaudithook(hook)
for path in sys.argv[1:]:
    exec(compile(open(path, encoding="utf-8").read(), path, "exec"), {"__name__": "task_file"})
    seen[:] = [one for one in seen if one[1] != path]
print(seen)
"""


def test_importing_a_task_file_opens_nothing_and_prints_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *map(str, TASK_FILES)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr[-2000:]
