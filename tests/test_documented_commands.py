"""Each command line of README.md and docs is executed by a test, or needs what no test has: a key,
or a server's end.

Lines that name simulated models alone are executed here, as they stand, and what the pages say that
they print is held against what they print. The others are executed with a model of the tests in
place of theirs, in the files that `RUN_BY` names for their command: for each of a line's options, a
test there calls that command with that option.
"""

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.trees import parsed

ROOT = Path(__file__).parent.parent

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FILES = dict(
    re.findall(
        r"`(\w+\.\w+)`:\n\n```\w+\n(.*?)```", (ROOT / "docs/own.md").read_text("utf-8"), re.DOTALL
    )
)
LINE = re.compile(r"^(?:\$ )?((?:selfprobe|inspect) .+)$", re.MULTILINE)
READ_BY = {"reproduce.md": "tests/test_reproduce.py", "word_count": "tests/test_new_task.py"}
"""A page, or the task of own.md, whose commands a test of its own reads from the page."""
MECHANISM = ("studies/test_lens", "studies/test_lens_on_copies")
KTH_WORD = "introspect_tasks/test_kth_word"
PROBES, BASELINES = "probes/test_probe_command", "preference_tasks/test_preference_tasks"
RUN_BY: dict[str, tuple[str, ...]] = {
    "selfprobe awareness cues": ("studies/test_cues",),
    "selfprobe awareness effect": ("studies/test_effect",),
    "selfprobe awareness features": ("studies/test_features",),
    "selfprobe awareness inside": ("studies/test_inside", "studies/test_inside_turns"),
    "selfprobe awareness run": (
        "awareness/test_command",
        "awareness/test_observers",
        "sources/test_questions",
    ),
    "selfprobe awareness scan": ("studies/test_scan", "studies/test_inside_turns"),
    "selfprobe awareness turns": ("studies/test_turns",),
    "selfprobe awareness validate": ("awareness/test_label_sheet", "awareness/test_validate"),
    "selfprobe check": ("check/test_gate", "check/test_workflow", "test_keys"),
    "selfprobe matrix": ("matrix/test_command", "test_keys", "test_on_ray"),
    "selfprobe mechanism induce": ("studies/test_induce",),
    "selfprobe mechanism inject": ("mechanism/test_injection", "test_every_option"),
    "selfprobe mechanism read": MECHANISM,
    "selfprobe outcome": ("studies/test_outcome",),
    "selfprobe paper introspectbench": ("papers/test_similar_replies",),
    "selfprobe paper latent-preferences": ("papers/test_latent_preferences",),
    "selfprobe probe run": (
        PROBES,
        "probes/test_finetune",
        "probes/test_own_data_command",
        "probes/test_replicas",
        "test_configuration",
    ),
    "selfprobe probe score": (PROBES,),
    "selfprobe realism card": ("studies/test_card",),
    "selfprobe realism rewrite": ("studies/test_rewrite",),
    "selfprobe report": ("test_report", "studies/test_probe_compare", "awareness/test_command"),
    "inspect eval examples/memorisation.py": ("examples/test_memorisation",),
    "inspect eval evalawareness_tasks/binary.py": (
        "evalawareness_tasks/test_awareness_tasks",
        "test_inspect_data",
    ),
    "inspect eval introspect_tasks/kth_word.py": (KTH_WORD,),
    "inspect eval preference_tasks/pairwise_preference.py": (
        BASELINES,
        "probes/test_own_data_command",
    ),
    "inspect eval preference_tasks/preference_probe.py": (
        "preference_tasks/test_preference_probe",
    ),
    "inspect eval reader.py": ("test_docs",),
    "inspect eval selfprobe/awareness_binary": ("mechanism/test_steered",),
    "inspect eval selfprobe/injected_thought": (
        "introspect_tasks/test_injected_thought",
        "mechanism/test_steered",
    ),
    "inspect eval selfprobe/kth_word": (KTH_WORD, "matrix/test_frames", "matrix/test_informed"),
    "inspect eval selfprobe/outcome_prediction": ("introspect_tasks/test_outcome",),
    "inspect eval selfprobe/pairwise_preference": (BASELINES, "probes/test_own_data_command"),
    "inspect eval selfprobe/pairwise_realism": ("evalawareness_tasks/test_pairwise_realism",),
}
"""The test files of a command."""
NOT_RUN = {"inspect view": "serves pages until it is stopped"}
KEY = re.compile(r"(?<![\w/])(openai|anthropic|google|grok|openrouter)/")
"""Providers that need a key."""
EVERYWHERE = {"--model", "--models", "--log-dir"}
"""Options that a test gives to a task or a command in other ways too."""


def bare(line: str) -> str:
    """The line without its comment and without what is done where it fails."""
    return re.split(r"\s+(?:#|\|\|)\s", line)[0]


def lines() -> dict[str, str]:
    """Documented lines without their comments, and the name of the first page that has each."""
    found: dict[str, str] = {}
    for document in DOCUMENTS:
        for block in re.findall(
            r"^```\w*\n(.*?)^```$", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            for line in LINE.findall(block):
                for part in re.split(r";\s+", bare(line)):
                    found.setdefault(part.strip(), document.name)
    return found


def reader(line: str, page: str) -> str:
    """The test of its own that a line's page or task has; empty if there is none."""
    return READ_BY.get(page) or next((test for task, test in READ_BY.items() if task in line), "")


def offline() -> list[str]:
    """The lines that run as they stand: all models are simulated, or none is asked."""
    return [
        line
        for line, page in lines().items()
        if not reader(line, page)
        and (line == "selfprobe tasks" or ("planted/" in line and not KEY.search(line)))
    ]


def command_of(line: str) -> str:
    """The longest name of RUN_BY with which the line begins; empty if there is none."""
    return max((name for name in RUN_BY if f"{line} ".startswith(f"{name} ")), key=len, default="")


def options_of(line: str) -> set[str]:
    """The options of a command of ours; of Inspect's the arguments of the task, which follow -T."""
    if line.startswith("inspect"):
        return set(re.findall(r" -T '?(\w+)=", line))
    return set(re.findall(r"(?<= )-(?:T|-[a-z][\w-]*)", line)) - EVERYWHERE


@cache
def parts_of(file: str) -> dict[str, ast.stmt]:
    """The functions and constants of a test file, and of the conftest.py files of its folders, by
    name.
    """
    path, found = ROOT / "tests" / f"{file}.py", dict[str, ast.stmt]()
    folders = [folder for folder in path.parents if (folder / "conftest.py").is_file()]
    for source in (*(folder / "conftest.py" for folder in reversed(folders)), path):
        for node in parsed(source).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                found |= {name.id: node for name in ast.walk(node) if isinstance(name, ast.Name)}
    return found


@cache
def words_of(file: str, test: str) -> frozenset[str]:
    """Words, names, keywords and `.attributes` in a test, its fixtures, and what it calls of its
    file.
    """
    there, left, words = parts_of(file), [test], set[str]()
    seen = set[str]()
    while left:
        if (name := left.pop()) not in there or name in seen:
            continue
        seen.add(name)
        for node in ast.walk(there[name]):
            match node:
                case ast.Constant(value=str(text)):
                    words.update(re.split(r"[\s=,/]+", text), re.split(r"\W+", text))
                case ast.Name(id=other):
                    left.append(other)
                    words.add(other)
                case ast.Attribute(attr=other):
                    words.add(f".{other}")
                case ast.arg(arg=other):
                    left.append(other)
                case ast.keyword(arg=str(other)):
                    words |= {other, f"--{other.replace('_', '-')}"}
                case ast.Dict(keys=keys):  # options by their names, of which a helper makes --names
                    words |= {f"--{key.value}" for key in keys if isinstance(key, ast.Constant)}
    return frozenset(words)


def not_called(line: str) -> str:
    """What no test of the line's command calls: the command itself or some options; empty where all
    are.
    """
    name = command_of(line)
    tests = [
        (file, test) for file in RUN_BY[name] for test in parts_of(file) if test.startswith("test_")
    ]
    word = Path(name.split()[-1]).stem
    asks = {word, f".{word}"} if name.startswith("inspect") else {word}
    calling = [words for words in (words_of(*test) for test in tests) if asks & words]
    return ", ".join(sorted(options_of(line).difference(*calling))) if calling else name


@pytest.mark.parametrize("line", lines())
def test_a_documented_command_is_executed_with_its_options_by_a_test_or_needs_a_key(
    line: str,
) -> None:
    page = lines()[line]
    if test := reader(line, page):
        assert page in (ROOT / test).read_text(encoding="utf-8")
    elif line not in {*offline(), *printed()} and not line.startswith(tuple(NOT_RUN)):
        named = command_of(line)
        assert named, (
            f"{page}: nothing executes {line!r}: add the file of its tests to RUN_BY, or the reason to NOT_RUN"
        )
        assert not (lost := not_called(line)), (
            f"{page}: no test in {', '.join(RUN_BY[named])} calls {lost} of {line!r}"
        )


def test_the_tables_name_no_command_that_the_pages_lost() -> None:
    told = list(lines())
    assert set(RUN_BY) == {command_of(line) for line in told} - {""}
    assert all(any(line.startswith(name) for line in told) for name in NOT_RUN)


def test_a_word_in_another_test_is_not_taken_for_a_call() -> None:
    assert not_called("selfprobe report logs --out there") == ""
    assert not_called("selfprobe report logs --no-such-option") == "--no-such-option"
    assert not_called("inspect eval selfprobe/kth_word -T wordings=2") == "wordings"


# ---- what the pages say that commands print


def retake() -> ModuleType:
    """docs/retake.py."""
    spec = importlib.util.spec_from_file_location("docs_retake", ROOT / "docs/retake.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


RETAKE = retake()


def printed() -> set[str]:
    """The lines that are executed because a block says what they print."""
    return {
        bare(command)
        for page in DOCUMENTS
        for output in RETAKE.outputs(page)
        for command in output.commands
    }


def printing() -> list[Any]:
    """The commands of each printed block, with all blocks that say what they print."""
    blocks: dict[tuple[str, ...], list[Any]] = {}
    for output in (output for page in DOCUMENTS for output in RETAKE.outputs(page)):
        blocks.setdefault(output.commands, []).append(output)
    return [
        pytest.param(commands, shown, id="; ".join(commands)[:60])
        for commands, shown in blocks.items()
    ]


@pytest.mark.slow(10)
@pytest.mark.parametrize(("commands", "shown"), printing())
def test_what_a_page_says_that_its_commands_print_is_what_they_print(
    commands: tuple[str, ...], shown: list[Any], tmp_path: Path
) -> None:
    assert commands and not any(KEY.search(command) for command in commands), (
        f"{shown[0].page}: {shown[0].text}"
    )
    RETAKE.placed(shown[0].page, tmp_path)
    told = RETAKE.printed(commands, tmp_path)
    for output in shown:
        assert RETAKE.holds(output.text, told), (
            f"{output.page.name}: run make pictures\n{output.text}\n{told}"
        )
    drawn = [name for name, figure in RETAKE.PICTURES.items() if (tmp_path / figure).is_file()]
    for name in (
        drawn if any("planted/" in command for command in commands) else []
    ):  # others depend on the processor
        figure = (tmp_path / RETAKE.PICTURES[name]).read_text(encoding="utf-8")
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == figure, (
            f"docs/{name}: run make pictures"
        )


def test_a_block_is_held_against_what_is_printed_but_for_its_cuts() -> None:
    told = "plan\na  1 2\nb  3\nend of it. And more. Much.  \n"
    for same in (
        "a  1 2\nb  3\n",
        "plan\n…\nend of it. …\n",
        "b  3\nend …\n",
        "plan\n…\nb  3\n",
        told,
    ):
        assert RETAKE.holds(same, told), same
    for other in ("a  1 3\n", "plan\nb  3\n", "b  3\nplan\n", "a  1\n", "1 2\n", "b  3\n…\nb  3\n"):
        assert not RETAKE.holds(other, told), other


def test_a_block_is_retaken_with_its_cuts_or_whole_where_a_line_is_gone() -> None:
    told = "plan\na  1 9\nb  3\nend of that. And more. Much.\n"
    assert RETAKE.retaken("a  1 2\n…\nend of it. …\n", told) == "a  1 9\n…\nend of that. …\n"
    assert RETAKE.retaken("a  1 2\nc  3\n", told) == told
    assert RETAKE.retaken("b  own 1\n", f"b  other\n{told}b  own 2\n") == "b  own 2\n"


def test_a_page_is_mended_where_it_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```\nselfprobe tasks  # all\n```\n\n```text\nold\n```\n\n```text\nkth_word\n```\n"
    )
    monkeypatch.setattr(RETAKE, "PAGES", [page])
    monkeypatch.setattr(RETAKE, "printed", lambda commands, folder: "kth_word\n")
    RETAKE.main(tmp_path / "runs")
    assert page.read_text().count("```text\nkth_word\n```") == 2 and "old" not in page.read_text()
    assert "page.md: another output" in capsys.readouterr().out


@pytest.mark.slow(10)
@pytest.mark.parametrize("line", sorted({*offline()} - printed()))
def test_a_documented_command_without_a_key_ends_well_as_it_stands(
    line: str, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    program, *words = shlex.split(line)
    if "logs/sums" in words and program == "selfprobe":  # the line before it made them
        models = words[words.index("--models") + 1]
        made = [
            Path(sys.executable).with_name("inspect"),
            "eval",
            "examples/sums.py",
            "--log-dir",
            "logs/sums",
        ]
        subprocess.run(
            [*made, "--model", models],
            cwd=tmp_path,
            env=os.environ | {"PWD": str(tmp_path)},
            check=True,
        )
    command = [str(Path(sys.executable).with_name(program)), *words]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PWD": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
