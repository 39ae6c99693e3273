"""What others wrote is shown without harm: no control character, no key, no formula in a spreadsheet."""

import ast
import json
from pathlib import Path

import pandas as pd
import pytest

from selfprobe.text.safe import clean, cleaned, concealed, csv, echo, harmless, json_escaped, masked, plain


def test_characters_that_a_terminal_obeys_are_replaced_and_lines_stay() -> None:
    assert plain("a\x1b[2J\nb\tc\r\nd\u202e") == "a\ufffd[2J\nb\tc\nd\ufffd"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect API key provided: sk-abc123def456", "Incorrect API key provided: sk-…"),
        ("token hf_abcdefghij is wrong", "token hf_… is wrong"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer …"),
        ("GET /v1?key=abcdef123456&x=1", "GET /v1?key=…&x=1"),
        ("https://me:pa@ss:word@host.example/v1", "https://me:…@host.example/v1"),
        ("https://tok3n-abcdef@host.example", "https://…@host.example"),
        (
            "https://host.example/v1?api-version=2&access_token=abc&sig=x%2F",
            "https://host.example/v1?api-version=2&access_token=…&sig=…",
        ),
        (
            "git+ssh://git@github.com/x and https://a.example/@me",
            "git+ssh://git@github.com/x and https://a.example/@me",
        ),
        ("a task-list and a bearer of news", "a task-list and a bearer of news"),
    ],
)
def test_what_looks_like_a_key_is_cut_off_and_other_words_stay(text: str, shown: str) -> None:
    assert masked(text) == shown and clean(text) == shown


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x"])
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(cell: str) -> None:
    assert harmless(cell) == "'" + cell and harmless("x" + cell) == "x" + cell


def test_numbers_of_a_table_stay_numbers_and_its_texts_are_clean() -> None:
    table = pd.DataFrame({"model": ["=cmd()", "a\x1b"], "value": [-1.5, 2.0], "why": [None, "sk-abc123def456"]})
    assert csv(table).decode().splitlines() == ["model,value,why", "'=cmd(),-1.5,", "a\ufffd,2.0,sk-…"]
    assert list(cleaned(table).model) == ["=cmd()", "a\ufffd"] and list(table.model) == ["=cmd()", "a\x1b"]


def test_a_cell_of_several_values_is_json_in_a_csv() -> None:
    table = pd.DataFrame({"applied": [{"target": "limit 64", "observer": "not known"}, {}], "items": [["é"], None]})
    assert csv(table).decode().splitlines() == [
        "applied,items",
        '"{""target"": ""limit 64"", ""observer"": ""not known""}","[""é""]"',
        "{},",
    ]
    assert table.applied[1] == {}


def test_what_is_secret_of_a_models_arguments_is_concealed_and_the_rest_is_unchanged() -> None:
    marker = object()
    given = {
        "default_headers": {"Authorization": "Basic abc", "X-Team": "blue", "Content-Type": "text/plain"},
        "default_query": {"token": "abc", "api-version": "2"},
        "credentials": {"user": "me", "parts": ["x", 1]},
        "headers": [["Cookie", "x"]],
        "api_key": "abc",
        "hf_token": "abc",
        "base_url": "https://me:pass@host",
        "stop_token": "</s>",
        "tokenizer": "x",
        "max_tokens": 5,
        "monkey": "y",
        "client": marker,
        "timeout": None,
    }
    assert concealed(given) == given | {
        "default_headers": {"Authorization": "…", "X-Team": "…", "Content-Type": "text/plain"},
        "default_query": {"token": "…", "api-version": "2"},
        "credentials": {"user": "…", "parts": ["…", 1]},
        "headers": [["…", "…"]],
        "api_key": "…",
        "hf_token": "…",
        "base_url": "https://me:…@host",
    }
    assert concealed(concealed(given)) == concealed(given)


def test_a_line_is_printed_without_what_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\x1b]0;title\x07b\u202ec sk-abc123def456")
    echo("x\x9by", err=True)
    assert tuple(capsys.readouterr()) == ("a\ufffd]0;title\ufffdb\ufffdc sk-…\n", "x\ufffdy\n")


def test_json_for_a_terminal_is_escaped_and_says_the_same() -> None:
    value = {"a\x1b": "\u202e\x9bé\n"}
    shown = json_escaped(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value and plain(shown) == shown and "é" in shown


def test_no_other_module_prints(root: Path) -> None:
    # JSON is escaped and a table is clean before; both are too large for what `echo` remembers
    allowed = {"safe.py", "options.py"}
    printing = {
        path.name
        for folder in ("selfprobe", "building", "solvers", "scorers")
        for path in (root / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho", "print")
    }
    assert printing == allowed
