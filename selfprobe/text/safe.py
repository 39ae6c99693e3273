"""Texts of others (names of models, replies, errors of providers), made safe to show."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

REPLACED = "\N{REPLACEMENT CHARACTER}"

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tab and line feed, what turns the direction of text around, and halves of characters."""

_KEYS = re.compile(
    r"""(?ix)
    ( \b(?:sk-|AIza|hf_|gsk_|xai-|pplx-|AKIA)(?=[\w*-]{8})   # keys that show by their beginning
    | \bBearer\s+(?=\S{6})
    | \b(?:\w*[-_])?key["']?\s*=\s*["']?(?=[^\s&"',;]{6})      # …key=VALUE
    | \b(?:x-)?api[-_]?key["']?\s*:\s*["']?(?=[^\s&"',;]{6})   # a header, or JSON
    ) [^\s&"',;)\]}]+
    """
)

_USER = re.compile(r"(?<=://)(?:([^/\s:@]{0,200}:)[^/\s]{1,500}|[^/\s:@]{8,500})@")
_QUERY = re.compile(
    r"(?i)([?&](?:[\w-]{0,40}(?:token|secret|password|passwd|signature|key)|sig|auth|code)=)[^\s&\"'#]+"
)
"""Secrets in an address: user:password@ or token@, and ?token=…; the name stays."""

_SECRET = re.compile(
    r"(?i)(?:.*[-_ ])?(?:auth|authorization|cookie|passw(?:or)?d|passphrase|secret|credentials?|bearer|signature|sig"
    r"|(?:api)?key|(?<!stop_)(?<!pad_)(?<!eos_)(?<!bos_)(?<!end_)token)"
)
_HEADERS = re.compile(r"(?i).*headers?")
_PUBLIC = {"accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta", "http-referer", "x-title"}
"""Headers that hold no secret; any other one may."""

HIDDEN = "…"

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@lru_cache(maxsize=4096)  # columns of tables repeat their texts
def plain(text: str) -> str:
    """The text without characters that a terminal obeys or that break a page: `"a\\x1b[2J"` is `"a�[2J"`."""
    return _CONTROL.sub(REPLACED, text.replace("\r\n", "\n"))


@lru_cache(maxsize=4096)
def masked(text: str) -> str:
    """The text with what looks like an API key, or a password in an address, cut off.

    `"wrong key sk-abc123def456"` is `"wrong key sk-…"`, `"https://me:pass@host"` is `"https://me:…@host"`.
    """
    return _QUERY.sub(r"\1…", _USER.sub(lambda user: f"{user[1] or ''}{HIDDEN}@", _KEYS.sub(r"\1…", text)))


def concealed(value: Any, name: str = "") -> Any:
    """Arguments of a model in a form that may be written down: secrets are `"…"`, all else is unchanged.

    >>> concealed({"default_headers": {"Authorization": "Bearer abc"}, "token": "abc", "timeout": 3})
    {'default_headers': {'Authorization': '…'}, 'token': '…', 'timeout': 3}

    Args:
        value: A mapping of arguments, or what is in one; objects other than mappings, lists and texts are left alone.
        name: Name of the value. What lies below a secret name is secret, and every header but a few is.
    """
    if isinstance(value, dict):
        headers, secret = _HEADERS.fullmatch(name), _SECRET.fullmatch(name)
        hidden = {key for key in value if secret or (headers and str(key).lower() not in _PUBLIC)}
        return {key: concealed(each, "secret" if key in hidden else str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return [concealed(each, "secret" if _HEADERS.fullmatch(name) else name) for each in value]
    if not isinstance(value, str):
        return value
    return HIDDEN if value and _SECRET.fullmatch(name) else masked(value)


def harmless(cell: str) -> str:
    """A cell of text that no spreadsheet takes for a formula: `"=1+1"` is `"'=1+1"`."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def clean(text: str) -> str:
    """The text without control characters and API keys."""
    return plain(masked(text))


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text without what a terminal obeys; the one place where lines are printed.

    Args:
        text: A line, or several.
        err: To standard error, where nothing is lost but the text if that cannot be written.
        nl: Whether a line feed follows.

    Raises:
        OSError: Standard output cannot be written.
    """
    with suppress(*[OSError] * err):
        click.echo(clean(str(text)), err=err, nl=nl)


def json_escaped(text: str) -> str:
    """JSON in which characters that a terminal obeys are escapes, so that nothing is lost."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cleaned(table: "pd.DataFrame") -> "pd.DataFrame":
    """The table without control characters and API keys in its texts."""
    return _mapped(table, clean)


def csv(table: "pd.DataFrame") -> bytes:
    """A table as CSV: cells of text that a spreadsheet would take for a formula begin with an apostrophe.

    Cells that hold several values are JSON.
    """
    flat = table.copy()
    for column in flat.columns:
        if flat[column].dtype.kind == "O":
            flat[column] = [
                json.dumps(v, ensure_ascii=False, default=str) if isinstance(v, dict | list) else v
                for v in flat[column]
            ]
    safe = _mapped(cleaned(flat), harmless)
    return bytes(safe.rename(columns=lambda name: harmless(str(name))).to_csv(index=False).encode())


def _mapped(table: "pd.DataFrame", change: Callable[[str], str]) -> "pd.DataFrame":
    """The table with `change` done to every cell of text; numbers stay."""
    changed = table.copy()
    for column in changed.columns:
        if changed[column].dtype.kind not in "biufc":
            changed[column] = [change(v) if isinstance(v, str) else v for v in changed[column]]
    return changed
