"""The file of a baseline: JSON for git, an item a line, the same bytes for the same runs."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields

from pydantic import TypeAdapter, ValidationError

from selfprobe.check.kept import Kept
from selfprobe.errors import InputError, one_line
from selfprobe.files import decoded, read_bytes
from selfprobe.output import place_file

FORM = 1
"""Of the file; another one is refused."""

LONG = ("metrics", "items", "blind", "reasoned", "inputs", "clusters", "answers")
"""What has a line an entry."""
YOUNGER = ("answers", "left_out", "roles", "scorers")
"""Fields that older files lack; left out where they are empty, so that the same runs have the same bytes."""


def text_of(runs: Sequence[Kept]) -> str:
    """The file's text, runs in the order of their names."""
    body = "".join(_lines(sorted(runs, key=_order)))
    return f'{{\n"baseline": {FORM},\n"sha256": "{_digest(body)}",\n"runs": [\n{body}]}}\n'


def save(runs: Sequence[Kept], path: str) -> int:
    """Write a baseline; its size in bytes.

    Raises:
        InputError: It cannot be written there, or the path is no .json file.
    """
    if not path.endswith(".json"):
        raise InputError(f"a baseline is a .json file, got {path}")
    content = text_of(runs).encode()
    place_file(content, path)
    return len(content)


def read(path: str) -> list[Kept]:
    """The runs of a baseline.

    Raises:
        InputError: It cannot be read, is no baseline, is of another form, or was changed by hand.
    """
    again = f"; save a new one: selfprobe check LOGS --save {path}"
    try:
        text = decoded(read_bytes(path), path)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise InputError(f"there is no baseline {path}{again.replace('a new one', 'one')}") from None
        raise
    try:
        found = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no baseline, it is not JSON ({one_line(error)}){again}") from None
    if not isinstance(found, dict) or "baseline" not in found or not isinstance(found.get("runs"), list):
        raise InputError(f"{path} is no baseline of selfprobe check{again}")
    if found["baseline"] != FORM:
        raise InputError(f"{path} is a baseline of form {found['baseline']}, this selfprobe reads form {FORM}{again}")
    try:
        runs = TypeAdapter(list[Kept]).validate_json(json.dumps(found["runs"]), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        at = " ".join(map(str, first["loc"]))
        raise InputError(f"{path} was changed by hand: run {at}: {first['msg']}{again}") from None
    if not runs:
        raise InputError(f"{path} holds no run{again}")
    try:
        same = _digest("".join(_lines(runs))) == found.get("sha256")
    except ValueError:  # 1e999 is JSON, and infinite
        raise InputError(f"{path} was changed by hand, it has a number that is infinite{again}") from None
    if not same:
        raise InputError(f"{path} was changed by hand, its sha256 is another{again}")
    return runs


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _order(run: Kept) -> tuple[str, ...]:
    return run.task, run.model, run.target, json.dumps([run.args, run.model_args], sort_keys=True)


def _lines(runs: Sequence[Kept]) -> Iterator[str]:
    for number, run in enumerate(runs):
        given = asdict(run)
        parts = []
        for one in fields(run):
            value = given[one.name]
            if one.name in YOUNGER and not value:
                continue
            if one.name in LONG and value:
                inside = ",\n".join(f"  {_json(name)}: {_json(value[name])}" for name in sorted(value))
                parts.append(f" {_json(one.name)}: {{\n{inside}\n }}")
            else:
                parts.append(f" {_json(one.name)}: {_json(value)}")
        yield "{\n" + ",\n".join(parts) + ("\n},\n" if number + 1 < len(runs) else "\n}\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
