"""What others wrote is shown without harm: no control character, no key, no formula in a
spreadsheet.
"""

import ast
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from selfprobe.errors import one_line
from selfprobe.text.safe import (
    HIDDEN,
    clean,
    cleaned,
    concealed,
    csv,
    echo,
    harmless,
    json_escaped,
    masked,
    plain,
    without_secrets,
)
from tests.trees import parsed


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


LETTERS = "a1B2c3D4e5F6g7H8i9J0k1L2"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
KEY_FORMS = {
    **{
        f"{start}{LETTERS}": start
        for start in ("sk-", "AIza", "hf_", "gsk_", "fw_", "r8_", "npm_", "whsec_")
    },
    **{
        f"{start}{LETTERS}": start
        for start in ("xai-", "pplx-", "csk-", "nvapi-", "glpat-", "xoxb-", "ya29.")
    },
    **{
        f"{start}{LETTERS}": start
        for start in ("ghp_", "gho_", "github_pat_", "sk_live_", "lsv2_pt_", "tgp_v1_")
    },
    "AKIAIOSFODNN7EXAMPLE": "AKIA",
    "ASIAIOSFODNN7EXAMPLE": "ASIA",
    "sk-ant-api03-a1B2c3D4e5": "sk-",
    "sk-proj-a1B2***H8i9": "sk-",
    "dapi0123456789abcdef0123456789abcdef": "dapi",
    f"SG.{LETTERS}.{LETTERS}": "SG.",
    TOKEN: "eyJ",
}
"""Key → what is left of it."""


@pytest.mark.parametrize(("key", "left"), KEY_FORMS.items())
def test_each_known_form_of_a_key_is_cut_off_wherever_it_stands(key: str, left: str) -> None:
    for text in ("wrong key {}", "{}", '{{"error": "{}"}}', "({}), again", "x={}&y"):
        assert key[len(left) : len(left) + 8] not in masked(text.format(key)), text
    assert masked(f"wrong key {key} here") == f"wrong key {left}… here"


def test_a_private_key_is_cut_off_also_where_its_end_is() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n"
    assert (
        masked(f"a {key}-----END RSA PRIVATE KEY----- b") == "a -----BEGIN RSA PRIVATE KEY-----… b"
    )
    assert masked(f"a {key}") == "a -----BEGIN RSA PRIVATE KEY-----…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic …"),
        ('"authorization": "Token a1b2c3d4"', '"authorization": "Token …"'),
        ('{"clientSecret": "abc-def-123"}', '{"clientSecret": "…"}'),
        ("password=hunter2!", "password=…"),
        ("accessToken='a1b2c3d4'", "accessToken='…'"),
        ("private_key: 'a1b2c3d4'", "private_key: '…'"),
    ],
)
def test_values_of_secret_names_in_a_text_are_cut_off(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "cohere-command-r and sk-learn-contrib",
        "hf_hub_download, npm_config_registry, fw_version_number, pk_some_table",
        "The secret: do not tell. The password: swordfish. The next token: banana",
        "stop_token=</s>, tokenizer=abcdefgh",
        "ASIA Pacific, xoxo, a basic question of authorization",
    ],
)
def test_words_that_look_a_little_like_keys_stay(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "HF_TOKEN",
            "CLIENT_SECRET",
            "DB_PASSWORD",
            "GITHUB_PAT",
            "SESSION_JWT",
            "TOKEN",
        ),
        *(
            "AWS_BEARER_TOKEN_BEDROCK",
            "OPENAI_API_KEY_2",
            "GOOGLE_CREDENTIALS",
            "some_api_key",
            "AWS_ACCESS_KEY_ID",
        ),
    ],
)
def test_the_value_of_a_secret_variable_is_masked_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert masked("no plain/value+1 yet") == "no plain/value+1 yet"
    monkeypatch.setenv(name, " plain/value+1\n")
    assert masked("<plain/value+1> plain%2Fvalue%2B1 plain/value") == "<…> … plain/value"
    monkeypatch.setenv(f"OTHER_{name}", "plain/value+1-and-more")
    assert masked("plain/value+1-and-more") == "…", "the longest first"


@pytest.mark.parametrize(
    "name", ["PWD", "HOME", "MONKEY", "KEYBOARD", "TOKENIZERS_PARALLELISM", "MODEL"]
)
def test_the_value_of_another_variable_stays(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "plain/value+1")
    assert masked("plain/value+1") == "plain/value+1"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "none",
        "test",
        "EMPTY",
        "abc1234",
        "placeholder",
        "question_id",
        "123456789",
        "/me/key.json",
        "C:\\key.json",
    ],
)
def test_a_short_or_common_value_of_a_secret_variable_masks_nothing(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)
    text = f"x none test EMPTY of the placeholder {value} 123456789"
    assert masked(text) == text


def test_a_secret_argument_that_was_seen_is_masked_in_every_message() -> None:
    assert masked("wrong: seen-once-1") == "wrong: seen-once-1"
    given = {"clientSecret": "seen-once-1", "nested": {"privateKey": ["seen-once-2"]}, "timeout": 3}
    assert concealed(given) == {"clientSecret": "…", "nested": {"privateKey": ["…"]}, "timeout": 3}
    assert masked("wrong: seen-once-1, seen-once-2") == "wrong: …, …"


def test_texts_in_lists_and_mappings_of_a_table_and_of_json_are_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X_TOKEN", "plain/value+1")
    table = pd.DataFrame({"why": [["plain/value+1"], {"a": ("plain/value+1", 2)}, None]})
    assert cleaned(table).why.tolist()[:2] == [["…"], {"a": ["…", 2]}]
    assert "plain/value" not in csv(table).decode()
    assert without_secrets({"a": ["plain/value+1", 1.5, None]}) == {"a": ["…", 1.5, None]}


def test_an_error_is_masked_before_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_TOKEN", "plain/value+1")
    for start in range(280, 301):
        assert "plain" not in one_line("x" * start + " plain/value+1 " + "y" * 300)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x"])
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(cell: str) -> None:
    assert harmless(cell) == "'" + cell and harmless("x" + cell) == "x" + cell


def test_numbers_of_a_table_stay_numbers_and_its_texts_are_clean() -> None:
    table = pd.DataFrame(
        {"model": ["=cmd()", "a\x1b"], "value": [-1.5, 2.0], "why": [None, "sk-abc123def456"]}
    )
    assert csv(table).decode().splitlines() == [
        "model,value,why",
        "'=cmd(),-1.5,",
        "a\ufffd,2.0,sk-…",
    ]
    assert list(cleaned(table).model) == ["=cmd()", "a\ufffd"] and list(table.model) == [
        "=cmd()",
        "a\x1b",
    ]


def test_a_cell_of_several_values_is_json_in_a_csv() -> None:
    table = pd.DataFrame(
        {"applied": [{"target": "limit 64", "observer": "not known"}, {}], "items": [["é"], None]}
    )
    assert csv(table).decode().splitlines() == [
        "applied,items",
        '"{""target"": ""limit 64"", ""observer"": ""not known""}","[""é""]"',
        "{},",
    ]
    assert table.applied[1] == {}


def test_what_is_secret_of_a_models_arguments_is_concealed_and_the_rest_is_unchanged() -> None:
    marker = object()
    given = {
        "default_headers": {
            "Authorization": "Basic abc",
            "X-Team": "blue",
            "Content-Type": "text/plain",
        },
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
        "clientSecret": "abc",
        "accessToken": "abc",
        "pwd": "abc",
        "githubPat": "abc",
        "jwt": "abc",
        "connectionString": "abc",
        "pattern": "abc",
        "client": marker,
        "timeout": None,
    }
    assert concealed(given) == given | {
        "default_headers": {"Authorization": "…", "X-Team": "…", "Content-Type": "text/plain"},
        "default_query": {"token": "…", "api-version": "2"},
        "credentials": {"user": "…", "parts": ["…", "…"]},
        "headers": [["…", "…"]],
        "api_key": "…",
        "hf_token": "…",
        **dict.fromkeys(
            ("clientSecret", "accessToken", "pwd", "githubPat", "jwt", "connectionString"), "…"
        ),
        "base_url": "https://me:…@host",
    }
    assert concealed(concealed(given)) == concealed(given)


def test_a_line_is_printed_without_what_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str],
) -> None:
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
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("click.echo", "click.secho", "print")
    }
    assert printing == allowed


@pytest.mark.parametrize(
    "arguments",
    [
        {"api_key": 12345678901234},
        {"password": 12345678.5},
        {"auth": ("user", "pass-word-1")},
        {"cookies": {"session": "abc12345"}},
        {"api_keys": ["abc12345x"]},
        {"token": b"abc12345x"},
    ],
)
def test_a_secret_is_hidden_whatever_its_type(arguments: dict[str, object]) -> None:
    shown = json.dumps(concealed(arguments), ensure_ascii=False)
    assert HIDDEN in shown and not re.search(r"\d{4}|user|pass-word", shown)


def test_a_number_that_is_a_key_is_masked_where_a_vendor_repeats_it() -> None:
    concealed({"api_key": 98765432101234})
    assert masked("Incorrect key: 98765432101234") == f"Incorrect key: {HIDDEN}"


def test_keys_of_mappings_are_masked_as_their_values_are() -> None:
    assert without_secrets({"sk-abc123def456": 1}) == {f"sk-{HIDDEN}": 1}


def test_names_of_columns_hold_no_secret() -> None:
    assert list(cleaned(pd.DataFrame({"sk-abc123def456": [1], "plain": [2]}))) == [
        f"sk-{HIDDEN}",
        "plain",
    ]
