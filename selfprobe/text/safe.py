"""Texts of others (names of models, replies, errors of providers), made safe to show."""

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

if TYPE_CHECKING:
    import pandas as pd

REPLACED = "\N{REPLACEMENT CHARACTER}"

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but for tab and line feed, what turns the direction of text around, and halves
of characters.
"""

KNOWN_FORMS = (
    r"sk-(?=[\w*-]*[\d*])(?=[\w*-]{8})",  # OpenAI, Anthropic, OpenRouter, DeepSeek and others
    r"(?:sk|rk|pk)_(?:live|test)_(?=\w{8})",
    r"AIza(?=[\w*-]{8})",
    r"ya29\.(?=[\w-]{8})",
    r"(?:AKIA|ASIA)(?=[A-Z0-9*]{8})",
    r"(?:hf|gsk)_(?=[A-Za-z0-9*]{10})",
    r"(?:lsv2_pt|lsv2_sk|tgp_v1|dop_v1|whsec)_(?=\w{8})",
    r"(?:fw|r8|npm)_(?=[A-Za-z0-9*]{16})",  # Fireworks, Replicate
    r"(?:xai|pplx|csk|nvapi|glpat)-(?=[\w*-]{8})",
    r"dapi(?=[0-9a-f]{16})",
    r"(?:ghp|gho|ghu|ghs|ghr|github_pat)_(?=\w{8})",
    r"xox[abeprs]-(?=[\w-]{8})",
    r"SG\.(?=[\w-]{16,}\.)",
    r"eyJ(?=[\w-]{8,}\.[\w-]{8,})",  # a JSON Web Token
)
"""Beginnings of keys that show by their form."""

_KEYS = re.compile(
    rf"""(?x)
    ( \b(?:{"|".join(KNOWN_FORMS)})
    | (?i: \bBearer\s+(?=\S{{6}})
         | \bAuthorization["']?\s*[:=]\s*["']?(?:Basic|Token|Key|ApiKey)\s+(?=\S{{6}})
         | \b(?:\w*[-_])?key["']?\s*=\s*["']?(?=[^\s&"',;]{{6}})      # …key=VALUE
         | \b(?:x-)?api[-_]?key["']?\s*:\s*["']?(?=[^\s&"',;]{{6}})   # a header, or JSON
         | \b[\w-]*(?:secret|password|passwd|pwd|access_?token|auth_?token|private_?key)["']?\s*
           (?:=\s*["']?|:\s*["'])(?=[^\s&"',;]{{6}})
      )
    ) [^\s&"',;)\]}}]+
    """
)

_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----END).)*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    re.DOTALL,
)


_ADDRESS_USER = re.compile(r"(?<=://)(?:([^/\s:@]{0,200}:)[^/\s]{1,500}|[^/\s:@]{8,500})@")

_ADDRESS_QUERY = re.compile(
    r"(?i)([?&](?:[\w-]{0,40}(?:token|secret|password|passwd|signature|key)|sig|auth|code)=)"
    r"[^\s&\"'#]+"
)
"""Secrets in an address: user:password@ or token@, and ?token=…; the name stays."""


_SECRET_NAME = re.compile(
    r"(?i)(?:.*[-_ ])?(?:auth|authorization|cookies?|passw(?:or)?ds?|pwd|passphrase|secrets?"
    r"|credentials?|bearer|signature|sig|pat|jwt|dsn|connection_string|(?:api)?key(?:_id)?"
    r"|api[-_ ]?keys|(?<!stop_)(?<!pad_)(?<!eos_)(?<!bos_)(?<!end_)token)"
)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_VARIABLE = re.compile(
    r"(?:.*_)?(?:KEY|KEY_ID|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT|JWT|DSN)"
    r"(?:_(?:\d+|BEDROCK))?"
)
"""Names of environment variables whose values are secret."""

_PATH_BEGINNING = re.compile(r"\.{0,2}[/\\]|~|[A-Za-z]:[/\\]")

SHORTEST_SECRET = 8
"""Number of characters from which the value of a secret setting is masked wherever it stands."""

SHORTEST_WORD_SECRET = 16
"""The same of a value of words alone, such as `placeholder` or `question_id`."""

SHORTEST_NUMBER_SECRET = 12
"""The same of a value of digits alone: dates and counts are shorter."""

_HEADERS_NAME = re.compile(r"(?i).*headers?")

_PUBLIC_HEADERS = {
    "accept",
    "content-type",
    "user-agent",
    "anthropic-version",
    "anthropic-beta",
    "http-referer",
    "x-title",
}
"""Headers that hold no secret; any other one may."""


HIDDEN = "…"
"""What stands in the place of a secret."""

_FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")


@lru_cache(maxsize=4096)  # columns of tables repeat their texts
def plain(text: str) -> str:
    """The text without characters that a terminal obeys or that break a page: `"a\\x1b[2J"` is
    `"a�[2J"`.
    """
    return _CONTROL.sub(REPLACED, text.replace("\r\n", "\n"))


def masked(text: str) -> str:
    """The text with what is, or looks like, an API key, or a password in an address, cut off.

    Secrets are the values of secret settings, of the environment (`OPENAI_API_KEY`) and of model
    arguments (`-M api_key=…`), from `SHORTEST_SECRET` characters on, and what shows by its form:
    `"wrong key sk-abc123def456"` is `"wrong key sk-…"`, `"https://me:pass@host"` is
    `"https://me:…@host"`.
    """
    return masker()(text)


def masker() -> Callable[[str], str]:
    """The function `masked` of now, for many texts: the environment is looked up once."""
    return _masker_of(known_secrets())


@lru_cache(maxsize=8)
def _masker_of(secrets: tuple[str, ...]) -> Callable[[str], str]:
    known_values = re.compile("|".join(map(re.escape, secrets))) if secrets else None

    def masked_user(address_user: re.Match[str]) -> str:
        return f"{address_user[1] or ''}{HIDDEN}@"

    @lru_cache(maxsize=4096)  # columns of tables repeat their texts
    def mask(text: str) -> str:
        if known_values:
            text = known_values.sub(HIDDEN, text)
        text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text)
        text = _KEYS.sub(rf"\1{HIDDEN}", text)
        text = _ADDRESS_USER.sub(masked_user, text)
        return _ADDRESS_QUERY.sub(rf"\1{HIDDEN}", text)

    return mask


_seen_secrets = set[str]()
"""Values of secret model arguments that were seen in this process."""


def known_secrets() -> tuple[str, ...]:
    """Values of secret settings, the longest first: of the environment, and of model arguments that
    were seen.
    """
    values = set(_seen_secrets)
    for name, value in os.environ.items():
        if _SECRET_VARIABLE.fullmatch(name.upper()):
            values.add(value)
    secrets = set[str]()
    for value in values:
        stripped_value = value.strip()
        if _is_maskable(stripped_value):
            secrets.update((stripped_value, quote(stripped_value, safe="")))
    return tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))


def _is_maskable(value: str) -> bool:
    """True if no common word, number or path would be masked with it."""
    characters = re.sub("[_ -]", "", value)
    shortest = SHORTEST_SECRET
    if characters.isalpha():
        shortest = SHORTEST_WORD_SECRET
    elif characters.isdigit():
        shortest = SHORTEST_NUMBER_SECRET
    return len(value) >= shortest and HIDDEN not in value and not _PATH_BEGINNING.match(value)


def concealed(value: Any, name: str = "") -> Any:
    """Arguments of a model in a form that may be written down: secrets are `"…"`, all else is
    unchanged.

    >>> concealed({"default_headers": {"Authorization": "Bearer abc"}, "token": "abc"})
    {'default_headers': {'Authorization': '…'}, 'token': '…'}

    Args:
        value: A mapping of arguments, or what is in one; truth values and objects are left alone.
        name: Name of the value. What lies below a secret name is secret, and every header but a few
            is.
    """
    is_headers = _HEADERS_NAME.fullmatch(name) is not None
    is_secret = _is_secret(name)
    if isinstance(value, dict):
        concealed_entries = {}
        for key, entry in value.items():
            is_secret_header = is_headers and str(key).lower() not in _PUBLIC_HEADERS
            entry_name = "secret" if is_secret or is_secret_header else str(key)
            concealed_entries[key] = concealed(entry, entry_name)
        return concealed_entries
    if isinstance(value, list | tuple):
        entry_name = "secret" if is_headers else name
        return [concealed(entry, entry_name) for entry in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float | bytes):
        return value
    if is_secret and value != "":
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        _seen_secrets.add(text)  # a vendor's message may repeat it
        return HIDDEN
    return masked(value) if isinstance(value, str) else value


def _is_secret(name: str) -> bool:
    """True if a setting of this name is secret: `clientSecret` is as `client_secret`."""
    return _SECRET_NAME.fullmatch(_CAMEL_CASE.sub("_", name)) is not None


def harmless(cell: str) -> str:
    """A cell of text that no spreadsheet takes for a formula: `"=1+1"` is `"'=1+1"`."""
    return f"'{cell}" if cell.startswith(_FORMULA_BEGINNINGS) else cell


def clean(text: str) -> str:
    """The text without control characters and secrets."""
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
    safe_text = clean(str(text))
    if err:
        with suppress(OSError):
            click.echo(safe_text, err=True, nl=nl)
    else:
        click.echo(safe_text, nl=nl)


def without_secrets(value: Any) -> Any:
    """Mappings, lists and texts with secrets masked in every text."""
    return _with_changed_texts(value, masker())


def json_escaped(text: str) -> str:
    """JSON in which characters that a terminal obeys are escapes, so that nothing is lost."""
    return _CONTROL.sub(lambda control: f"\\u{ord(control[0]):04x}", text)


def cleaned(table: "pd.DataFrame") -> "pd.DataFrame":
    """The table without control characters and secrets in its names and texts, also those in lists
    and mappings.
    """
    mask = masker()

    def clean_text(text: str) -> str:
        return plain(mask(text))

    new_names = {name: clean_text(name) for name in table.columns if isinstance(name, str)}
    return _mapped(table, clean_text).rename(columns=new_names)


def csv(table: "pd.DataFrame") -> bytes:
    """A table as CSV: cells of text that a spreadsheet would take for a formula begin with an
    apostrophe.

    Cells that hold several values are JSON.
    """
    flat_table = table.copy()
    for column in flat_table.columns:
        if flat_table[column].dtype.kind == "O":
            flat_table[column] = [_flat_cell(cell) for cell in flat_table[column]]
    safe_table = _mapped(cleaned(flat_table), harmless)
    safe_table = safe_table.rename(columns=lambda name: harmless(str(name)))
    return bytes(safe_table.to_csv(index=False).encode())


def _flat_cell(cell: Any) -> Any:
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return cell


def _mapped(table: "pd.DataFrame", change: Callable[[str], str]) -> "pd.DataFrame":
    """The table with `change` done to every text in it; numbers stay."""
    changed_table = table.copy()
    for column in changed_table.columns:
        values = changed_table[column]
        if values.dtype.kind in "biufc" or not values.notna().any():
            continue
        if values.dtype == object:
            changed_table[column] = [_with_changed_texts(value, change) for value in values]
            continue
        # Texts alone, of which many are equal.
        new_texts = {text: change(text) for text in values.unique() if isinstance(text, str)}
        if any(text != new_text for text, new_text in new_texts.items()):
            changed_table[column] = values.map(new_texts)
    return changed_table


def _with_changed_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_with_changed_texts(entry, change) for entry in value]
    if not isinstance(value, dict):
        return value
    changed_entries = {}
    for key, entry in value.items():
        new_key = change(key) if isinstance(key, str) else key
        changed_entries[new_key] = _with_changed_texts(entry, change)
    return changed_entries
