"""The file of a baseline of `selfprobe check`: JSON for git."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from selfprobe.data.files import decoded, read_bytes
from selfprobe.errors import InputError, one_line
from selfprobe.errors.output import place_file
from selfprobe.studies.check_pairs import BaselineRun

FIELDS_WITH_LINES = (
    "metrics",
    "items",
    "blind",
    "reasoned",
    "inputs",
    "clusters",
    "answers",
    "said",
)
"""Fields with one line per entry in the file of a baseline."""


def save_baseline(runs: Sequence[BaselineRun], path: str) -> int:
    """Write a baseline: JSON for git, an item a line, the same bytes for the same runs; its size in
    bytes.

    Raises:
        InputError: It cannot be written there, or the path is no .json file.
    """
    refuse_other_than_json(path)
    ordered_runs = sorted(runs, key=lambda run: (run.name, _json([run.args, run.model_args])))
    body = ",\n".join(map(_run_text, ordered_runs))
    content = (
        f'{{\n"baseline": 1,\n"sha256": "{_checksum(body)}",\n"runs": [\n{body}\n]}}\n'.encode()
    )
    place_file(content, path)
    return len(content)


def refuse_other_than_json(path: str, option: str = "") -> None:
    if not path.endswith(".json"):
        raise InputError(f"a baseline is a .json file, got {option}{path}")


def is_baseline(path: str) -> bool:
    """Whether a path is a file that --save wrote, of whatever form."""
    if not path.endswith(".json") or not Path(path).is_file():
        return False
    try:
        content = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError, OSError):
        return False
    return isinstance(content, dict) and "baseline" in content


def is_log_place(path: str) -> bool:
    """Whether a path is a log of Inspect or a folder, not the file of a baseline."""
    is_log = path.endswith(".eval") and Path(path).is_file()
    return is_log or Path(path).is_dir()


def unused_baseline_name() -> str:
    """Name of a file to save a baseline in that is not there: a remedy replaces no file."""
    number = 1
    name = "baseline.json"
    while Path(name).exists():
        number += 1
        name = f"baseline-{number}.json"
    return name


def read_baseline(path: str) -> list[BaselineRun]:
    """The runs of a baseline.

    Raises:
        InputError: It cannot be read, is no baseline, is of another form, or was changed by hand.
    """
    remedy = f"; save a new one: selfprobe check LOGS --save {unused_baseline_name()}"
    try:
        text = decoded(read_bytes(path), path)
        content = json.loads(text, parse_constant=_refuse_constant)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            new_path = path if path.endswith(".json") else unused_baseline_name()
            raise InputError(
                f"there is no baseline {path}; save one: selfprobe check LOGS --save {new_path}"
            ) from None
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no baseline, it is not JSON ({one_line(error)}){remedy}"
        ) from None
    if (
        not isinstance(content, dict)
        or "baseline" not in content
        or not isinstance(content.get("runs"), list)
    ):
        raise InputError(f"{path} is no baseline of selfprobe check{remedy}")
    form = content["baseline"]
    if type(form) is not int or form != 1:  # JSON's true equals 1 in Python
        raise InputError(
            f"{path} is a baseline of form {form}, this selfprobe reads form 1{remedy}"
        )
    try:
        runs = TypeAdapter(list[BaselineRun]).validate_json(
            json.dumps(content["runs"]), strict=True
        )
        checksum = _checksum(",\n".join(map(_run_text, runs)))
    except ValidationError as error:
        first_fault = error.errors()[0]
        place = " ".join(map(str, first_fault["loc"]))
        raise InputError(
            f"{path} was changed by hand: run {place}: {first_fault['msg']}{remedy}"
        ) from None
    except ValueError:  # 1e999 is JSON, and infinite
        raise InputError(
            f"{path} was changed by hand, it has a number that is infinite{remedy}"
        ) from None
    if not runs:
        raise InputError(f"{path} holds no run{remedy}")
    if checksum != content.get("sha256"):
        raise InputError(f"{path} was changed by hand, its sha256 is another{remedy}")
    return runs


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _checksum(body: str) -> str:
    return hashlib.sha256(f"{body}\n".encode()).hexdigest()


def _run_text(run: BaselineRun) -> str:
    fields = list[str]()
    for name, value in asdict(run).items():
        text = _json(value)
        if value and name in FIELDS_WITH_LINES:
            entries = [f"  {_json(key)}: {_json(value[key])}" for key in sorted(value)]
            text = "{\n" + ",\n".join(entries) + "\n }"
        fields.append(f' "{name}": {text}')
    return "{\n" + ",\n".join(fields) + "\n}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
