"""The pages of the site: all are in its navigation, their commands parse, their blocks run, their
numbers are the code's.
"""

import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml
from inspect_ai._cli.main import inspect as inspect_command
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from selfprobe.cli import main
from selfprobe.data import load
from selfprobe.data.conversations import conversations
from selfprobe.data.public_pairs import load_pairs
from selfprobe.errors.arguments import TASK_BY_INSPECT_NAME
from selfprobe.study import _registry
from selfprobe.study.awareness_methods import CALLS, GRADES
from selfprobe.study.described import rehearsed_calls

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
DOCUMENTS = [ROOT / "README.md", *PAGES]
SOURCES = [
    path for folder in ("selfprobe", "solvers", "scorers") for path in (ROOT / folder).rglob("*.py")
]
COMMAND = re.compile(r"^(?:    |> )?((?:selfprobe|inspect eval(?:-set)?) .+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")


def named(path: Path) -> str:
    return path.name


def leaves(part: Any) -> Iterator[str]:
    """The pages of a navigation."""
    for one in part if isinstance(part, list) else part.values():
        if isinstance(one, str):
            yield one
        else:
            yield from leaves(one)


def test_every_page_is_in_the_navigation_once_and_in_llms_txt() -> None:
    there = list(leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(there) == [page.name for page in PAGES]
    listed = LINK.findall((DOCS / "llms.txt").read_text())
    assert sorted([*listed, "index.md"]) == [page.name for page in PAGES]


# ---- commands


def commands() -> list[Any]:
    found = []
    for document in DOCUMENTS:
        blocks = re.findall(
            r"^```\w*\n(.*?)^```$", document.read_text(), flags=re.DOTALL | re.MULTILINE
        )
        if document.name == "README.md":  # its findings stand in a table
            blocks += re.findall(r"`(selfprobe [^`]+)`", document.read_text())
        for block in blocks:
            for line in COMMAND.findall(block):
                for part in re.split(r";\s+", re.split(r"\s+(?:#|\|\|)\s", line)[0]):
                    if not {"…", "<"} & set(part.replace("'…'", "")):
                        found.append(
                            pytest.param(document, part, id=f"{document.name}: {part[:60]}")
                        )
    return found


@pytest.mark.parametrize(("document", "line"), commands())
def test_a_documented_command_has_the_options_and_arguments_that_there_are(
    document: Path, line: str
) -> None:
    program, *words = shlex.split(line, comments=True)
    group: click.Command = main if program == "selfprobe" else inspect_command
    words = [word for word in words if word != "…"]
    context = click.Context(
        group, **group.context_settings
    )  # as run: click keeps the first -h it built
    while isinstance(group, click.Group):
        name, *words = words
        found = group.get_command(context, name)
        assert found, f"{document.name}: {program} has no command {name}"
        group = found
        context = click.Context(group, parent=context, info_name=name)
    given, _, _ = group.make_parser(context).parse_args(list(words))
    if program == "inspect":
        told(document, given)


def told(document: Path, given: dict[str, Any]) -> None:
    """The task of a documented `inspect eval` is there, and has the arguments that are given."""
    for where in given["tasks"]:
        name = Path(where).stem
        task = (
            getattr(imported(ROOT / where), name)
            if where.startswith("examples/")
            else _registry.tasks().get(TASK_BY_INSPECT_NAME.get(name, name))
        )
        if task is None:
            assert (
                f"`{where}`:" in document.read_text() or f"`{name}.py`:" in document.read_text()
            ), where
            continue
        has = set(inspect.signature(task).parameters)
        assert {pair.partition("=")[0] for pair in given.get("t") or ()} <= has, name


# ---- blocks and numbers

FILES = dict(
    re.findall(r"`(\w+\.\w+)`:\n\n```\w+\n(.*?)```", (DOCS / "own.md").read_text(), re.DOTALL)
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of own.md, from which the calls are made."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    return tmp_path


def imported(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_data_sets_of_the_page_are_read_as_it_says(here: Path) -> None:
    assert sorted(FILES) == ["pairs.jsonl", "prompts.jsonl", "questions.jsonl", "reader.py"]
    assert [row["kind"] for row in load("questions.jsonl", ("question",)).rows] == [
        "science",
        "kitchen",
    ]
    table = conversations("prompts.jsonl")
    assert [(row["label"], row["messages"][0]["role"]) for row in table.rows] == [
        ("deployment", "user"),
        ("evaluation", "system"),
    ]
    first, second = load_pairs("pairs.jsonl").pairs
    assert (first.label, {second.text_1, second.text_2}) == (
        1,
        {"Air scatters blue light more.", "It mirrors the sea."},
    )


@pytest.mark.parametrize("word", ["A", "no"])
def test_the_method_of_the_page_runs_and_no_constant_answer_is_a_verdict_for_all(
    here: Path, run_task: Any, word: str
) -> None:
    output = ModelOutput.from_content("mockllm/model", word)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    subject = get_model("mockllm/model", custom_outputs=lambda *_: output, memoize=False)
    log = run_task(
        imported(here / "reader.py").reader(dataset="prompts.jsonl"), subject, here / "logs"
    )
    assert log.status == "success", log.error
    verdicts = [sample.scores["binary_vote"].answer for sample in log.samples]
    put_round = [sample.metadata["flip"] for sample in log.samples]
    assert sorted(put_round) == [False, True]
    by_turn = ["deployment" if flip else "evaluation" for flip in put_round]
    assert verdicts == ([None, None] if word == "A" else by_turn)


def test_the_costs_are_those_of_the_tasks() -> None:
    text = (DOCS / "running.md").read_text()
    for name, measure in _registry.measures().items():
        task = _registry.tasks()[name]
        items, counted = len(task().dataset), rehearsed_calls(name, {}).every_call
        calls, (read, wrote) = counted.count, counted.tokens
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` | {items} |"))
        assert f"{calls} | {items * calls:,} | {read}, {wrote} |" in row
        [shares] = [
            line for line in text.splitlines() if f"`{name}`" in line and line.count("|") == 4
        ]
        observer, target = (cell.strip().partition(":")[0] for cell in shares.split("|")[2:4])
        assert (int(observer), int(target)) == (measure.observer, measure.target), name
    asked = 1 + sum(CALLS.values())
    assert f"asked {asked} times" in text and f"{124 * asked:,} calls a subject" in text
    assert f"{124 * sum(GRADES.values())} calls of the grader" in text


def test_the_rates_of_the_verdict_are_those_of_its_page() -> None:
    text, _, rates = (DOCS / "statistics.md").read_text().partition("<!-- verdict: ")
    drawn, real = re.findall(r"Named in ([\d,]+) of ([\d,]+) matrices", rates)[:2]
    assert f"{drawn[0]} of {drawn[1]} drawn ones have a named model" in text
    assert f"{real[0]} of {real[1]} of real words" in text
    finding = (DOCS.parent / "README.md").read_text()
    assert f"{drawn[0]} of {drawn[1]} simulated studies without self-knowledge" in finding
    assert f"{real[0]} of {real[1]} made of real models' words" in finding


OF_OTHERS = {
    "inspect: command not found",
    "NotImplementedError: Non-relative patterns are unsupported",
}
"""Messages of the shell and of Inspect; tests/test_inspect_private.py holds the second."""


def quoted() -> list[str]:
    rows = (
        (DOCS / "related.md")
        .read_text()
        .partition("| message | reason and remedy |")[2]
        .partition("\n\n")[0]
    )
    messages = re.findall(r"^\| `([^`]+)` \|", rows, re.MULTILINE)
    return [message for message in messages if message not in OF_OTHERS]


@pytest.mark.parametrize("message", quoted())
def test_a_message_of_the_questions_is_in_the_code(message: str) -> None:
    joined = re.sub(r'"\s+f?"', "", "\n".join(path.read_text() for path in SOURCES))
    shown = re.sub(r"\{[^{}]*\}", "…", joined)
    for part in message.split("…"):
        assert part.strip() in shown, part


# ---- the builder


def test_the_builder_finds_dead_links_and_requests_to_other_hosts(tmp_path: Path) -> None:
    builder = imported(DOCS / "build_site.py")
    (tmp_path / "a.html").write_text(
        '<link rel="canonical" href="https://x.org/a"><a href="b.html#top">b</a><a href="b.html#no">b</a>'
        '<a href="c.html">c</a><a href="https://x.org">x</a><script src="https://cdn.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<h1 id="top">b</h1>')
    (tmp_path / "s.css").write_text('a { background: url("https://cdn.org/x.png") }')
    (tmp_path / "llms.txt").write_text("[a](a.html) [d](d.md)")
    assert sorted(builder.faults(tmp_path)) == [
        "a.html: loads https://cdn.org/x.js",
        "a.html: there is no #no in b.html",
        "a.html: there is no c.html",
        "llms.txt: there is no d.md",
        "s.css: loads https://cdn.org/x.png",
    ]


def test_what_pages_link_to_outside_docs_is_a_page_with_links_that_lead_back() -> None:
    builder = imported(DOCS / "build_site.py")
    names = builder.linked()
    assert {"README.md", "scorers/decision.py", "evalawareness_tasks"} <= set(names)
    assert "](source/scorers/decision.py.md)" in builder.shown("docs/own.md")
    assert "](../statistics.md" in builder.shown("README.md")
    assert (
        "](kth_word.py.md)" not in builder.shown("README.md")
        and sys.modules.get("site") is not builder
    )
