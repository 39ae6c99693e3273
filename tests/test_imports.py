"""Who imports whom (design: data flows one way), and that importing a task does nothing."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.trees import parsed

ROOT = Path(__file__).parent.parent
TASKS = ("introspect_tasks", "evalawareness_tasks", "preference_tasks")
MAPPED = (*TASKS, "building", "solvers", "scorers")
HEAVY = ("torch", "transformers", "sentence_transformers", "matplotlib", "datasets", "xllamacpp")
SOURCES = sorted(
    path for folder in ("selfprobe", *MAPPED) for path in (ROOT / folder).rglob("*.py")
)
TASK_FILES = sorted(
    path for folder in TASKS for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py"
)

DEFINITIONS = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)

KNOWS_EVERY_STUDY = {"studies", "studies.__main__", "studies.report"}
"""The register of the studies, and the report, which shows the pages of all."""

FLOORS: tuple[set[str], ...] = (
    {"text", "stats"},  # nothing else of ours
    {"errors"},
    {"page", "embed", "logs"},
    {"data"},
    {"probes"},  # the white box: torch, and nothing of Inspect
    {"solvers"},
    {"scorers"},
    {"task"},  # what a task file imports
    {"tasks", "building"},
    {"providers", "scout", "mechanism"},
    {"study"},
    {"studies"},
    {"papers"},
    {"cli"},
    {"__main__"},
)
"""What imports what: a module imports lower floors and its own room, so that there is no circle."""

PRIVATE = {"errors", "errors.inspect_private"}
"""Who may import `inspect_ai._…`."""

TORCH = ("torch", "safetensors", "accelerate", "gguf", "peft")
"""What reads weights and states."""

WHITE = {"probes", "mechanism"}
"""Who may import it."""

BY_NAME_ONLY = {
    "dilemma_generation.py",
    "dilemma_judging.py",
    "open_answers.py",
    "turn_scan.py",
    "cue_removal.py",
}
BY_NAME_ONLY |= {"arm_texts.py", "awareness_effect.py", "awareness_features.py", "outcome.py"}
BY_NAME_ONLY |= {"injected_thought.py"}
"""Tasks that make data, need logs or ask a hundred times: `inspect eval introspect_tasks` runs
those that measure, and must not find these.
"""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """Its name without the package's: solvers/act.py is `solvers.act`, as it is imported."""
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(
        piece for piece in ([folder, *rest] if folder in MAPPED else rest) if piece != "__init__"
    )


MODULES = {name: path for path in SOURCES if (name := module_of(path))}


def part(module: str) -> str:
    """What stands on a floor: `solvers.act` is of `solvers`; the three task folders are `tasks`."""
    first = module.partition(".")[0]
    return "tasks" if first in TASKS else first


def floor(module: str) -> int:
    return next((number for number, parts in enumerate(FLOORS) if part(module) in parts), -1)


@cache
def imported(path: Path) -> tuple[tuple[str, str], ...]:
    """Every module that a file imports, inside its functions too, and where it says so."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(parsed(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            inside = [f"{module}.{alias.name}" for alias in node.names]
            names = [name for name in inside if name.removeprefix("selfprobe.") in MODULES] or [
                module
            ]
        found += [(name, f"{name_of(path)}:{node.lineno} imports {name}") for name in names]
    return tuple(found)


def own_imports(path: Path) -> Iterator[tuple[str, str]]:
    """What a module imports of this package, without the package's name, and where."""
    for module, where in imported(path):
        if module.startswith("selfprobe."):
            yield module.removeprefix("selfprobe."), where


def against_the_rule(mine: str) -> Iterator[tuple[str, str]]:
    for module, where in own_imports(MODULES[mine]):
        if part(module) != part(mine) and floor(module) >= floor(mine):
            yield module, where


def all_imports() -> Iterator[tuple[str, str, str]]:
    """Who imports what, and where."""
    for mine, path in MODULES.items():
        yield from ((mine, module, where) for module, where in imported(path))


def test_imports_are_absolute() -> None:
    """Inspect runs a task file without a package, and by its folder's name it would be another
    module.
    """
    wrong = [
        where
        for _, name, where in all_imports()
        if name.startswith(".") or name.split(".")[0] in MAPPED
    ]
    assert not wrong, "say selfprobe.…"


def test_every_module_is_on_a_floor() -> None:
    assert not [mine for mine in MODULES if floor(mine) < 0], "give it a place in FLOORS"


def test_a_module_imports_lower_floors_and_its_own_package() -> None:
    wrong = {where: mine for mine in MODULES for name, where in against_the_rule(mine)}
    assert not wrong, "what it imports is not on a lower floor"


def study_of(module: str) -> str:
    """The study that a module is of: its folder, or the first word of its file (`inject_numbers`
    is of inject); "" for what is of none.
    """
    room, _, place = module.partition(".")
    if room != "studies" or module in KNOWS_EVERY_STUDY:
        return ""
    return place.partition(".")[0].partition("_")[0]


@pytest.mark.parametrize(
    ("module", "study"),
    [
        ("studies.inject", "inject"),
        ("studies.inject_numbers", "inject"),
        ("studies.awareness.study", "awareness"),
        ("studies.awareness.numbers", "awareness"),
        ("studies.report", ""),
        ("studies", ""),
        ("study.evidence", ""),
    ],
)
def test_the_modules_of_a_study_share_their_folder_or_first_word(module: str, study: str) -> None:
    assert study_of(module) == study


def test_no_module_of_a_study_imports_one_of_another() -> None:
    wrong = [
        where
        for importer, path in MODULES.items()
        for imported_module, where in own_imports(path)
        if study_of(importer)
        and study_of(imported_module)
        and study_of(importer) != study_of(imported_module)
    ]
    assert not wrong, "what both use is of a room below the studies, such as selfprobe/study"


def test_no_module_imports_itself_by_a_circle() -> None:
    """Inside a package, where the floors say nothing, and through imports inside functions."""
    arrows = {
        mine: {name for name, _ in own_imports(path) if name != mine} & MODULES.keys()
        for mine, path in MODULES.items()
    }
    while apart := {
        m
        for m in arrows
        if not arrows[m] & arrows.keys() or not any(m in a for a in arrows.values())
    }:
        arrows = {mine: names for mine, names in arrows.items() if mine not in apart}
    assert not arrows, "each of these imports another of them"


def test_only_the_white_box_knows_torch() -> None:
    assert not [
        where
        for mine, name, where in all_imports()
        if name.split(".")[0] in TORCH and part(mine) not in WHITE
    ]


def test_the_white_box_numbers_and_parsing_know_nothing_of_inspect() -> None:
    apart = ("probes", "stats", "text")
    assert not [
        where
        for mine, name, where in all_imports()
        if name.startswith("inspect_ai") and part(mine) in apart
    ]


def test_inspects_private_modules_are_imported_in_one_place() -> None:
    private = re.compile(r"inspect_ai\..*\b_")
    wrong = [
        where
        for mine, name, where in all_imports()
        if private.match(name + ".") and mine not in PRIVATE
    ]
    assert not wrong, "take it from selfprobe.errors.inspect_private"


def test_studies_read_samples_of_a_run_and_never_of_a_logs_address() -> None:
    """A run knows how many of its items count (`Run.limit`); who reads its file sees them all."""
    by_address = {"samples", "summaries", "transcripts"}
    wrong = []
    for path in sorted((ROOT / "selfprobe" / "studies").rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module in (
                "selfprobe.logs",
                "selfprobe.logs.reading",
                "inspect_ai.log",
            ):
                names = [alias.name for alias in node.names]
                wrong += [
                    f"{name_of(path)}: {name}"
                    for name in names
                    if name in by_address or "read_eval" in name
                ]
    assert not wrong, "say run.samples, run.summaries or run.results"


DECISION_HOMES = ("selfprobe/logs", "scorers")
"""Where decisions are read out of scores, and put into them."""
SCORE_READERS = {
    "evalawareness_tasks/awareness_features.py": "the metric of its own scorer",
    "selfprobe/study/__init__.py": "`Logs.scored` hands whole samples with their score to studies",
    "selfprobe/studies/effect.py": "reads the usable arms of one writer's texts, with its replies",
    "selfprobe/studies/rewrite.py": "reads the writer's and the judge's replies with the scores",
    "selfprobe/studies/preferences/judged.py": "reads whole conversations with their score",
    "selfprobe/studies/scan.py": "reads the turns of whole transcripts with their score, and its quotes",
}
"""Modules outside of `DECISION_HOMES` that read decisions out of the scores of a sample, and why:
each reads whole samples, or metadata, together with the score.
"""


def test_only_logs_and_listed_modules_make_decisions_of_scores() -> None:
    """Rows are made in one place: `Run.judged_samples`, or `logs.decisions` for a table."""
    readers = set()
    for path in SOURCES:
        if any(path.is_relative_to(ROOT / home) for home in DECISION_HOMES):
            continue
        names = {node.id for node in ast.walk(parsed(path)) if isinstance(node, ast.Name)}
        if names & {"decisions_of", "last_decisions", "last_score"}:
            readers.add(name_of(path))
    assert readers == set(SCORE_READERS), "take the decisions of run.judged_samples()"


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    top = [
        (f"{name_of(path)} imports {name} at its top", name.split(".")[0])
        for mine, path in MODULES.items()
        if (part(mine) not in ("probes", "mechanism") and mine != "page.plots")
        or mine.endswith("command")
        for node in parsed(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    ]
    assert not [said for said, library in top if library in HEAVY]


def test_data_folders_are_no_packages() -> None:
    """An `__init__.py` in `datasets` would shadow Hugging Face's package."""
    assert not list((ROOT / "datasets").rglob("*.py"))


@pytest.mark.parametrize("path", TASK_FILES, ids=name_of)
def test_a_task_file_has_a_bare_task_and_nothing_that_runs_at_import(path: Path) -> None:
    tree = parsed(path)
    decorators = [
        d for node in tree.body if isinstance(node, ast.FunctionDef) for d in node.decorator_list
    ]
    called = [d.func if isinstance(d, ast.Call) else d for d in decorators]
    if path.name in BY_NAME_ONLY:
        assert "task" in [d.attr for d in called if isinstance(d, ast.Attribute)]
        assert "task" not in [d.id for d in called if isinstance(d, ast.Name)]
        return
    assert "task" in [d.id for d in called if isinstance(d, ast.Name)], (
        "Inspect finds only a top-level bare @task"
    )
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        assert docstring or isinstance(node, DEFINITIONS), (
            f"{name_of(path)}:{node.lineno} runs at import"
        )


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
        [sys.executable, "-c", WATCH, *map(str, TASK_FILES)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr[-2000:]


TWICE = {
    "record_to_sample": "the function by which a task and each form of its data make a sample, under one name as in Inspect",
    "act_prompts": "the prompts of the call that is predicted, in every task file",
    "judge": "the pure function of a scorer, which its tests call",
    "Item": "one measured thing: a row of data, two prompts of a patch, a line of a page, a judged conversation",
    "Table": "rows with their origin (`from selfprobe.data`), and the table of a page (`from selfprobe.page`)",
    "awareness": "the scorer of that name in logs, and the command",
    "Check": "one requirement of a claim, and the command `selfprobe check`",
    "Outcome": "what a check comes to, and the command `selfprobe outcome`",
}
"""Public names that two rooms define, and why both keep theirs."""


def test_no_public_name_is_defined_in_two_rooms_but_listed_ones() -> None:
    """One word, one meaning, wherever a reader meets it."""
    homes: dict[str, set[str]] = {}
    for module in MODULES:
        for name in definitions(module):
            homes.setdefault(name, set()).add(part(module))
    assert {name for name, rooms in homes.items() if len(rooms) > 1} == set(TWICE), (
        "rename one, or say why not"
    )


@cache
def definitions(module: str) -> set[str]:
    """Public classes and functions that a module defines."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    body = parsed(MODULES[module]).body
    return {node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_")}
