"""Files that `selfprobe check` writes for JUnit and GitHub: seen to be writable before any call, and
written for a refusal too.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from selfprobe.errors import IncomparableError, InputError, one_line
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.errors.output import is_local, place_file, refuse_unwritable
from selfprobe.studies.check_cases import CheckResult, ExitStatus, add_to_summary, bad_case
from selfprobe.text.safe import echo

REFUSAL_HEADINGS = ("command", "found")
"""Column headings of the step summary of a command that is wrong."""


def refuse_unwritable_outputs(paths: Mapping[str, str | None], *, adds_to_summary: bool) -> None:
    """See before any call that the files can be written.

    Args:
        paths: Option → its file, where it was given.
        adds_to_summary: Whether the step summary of a workflow is added to.

    Raises:
        InputError: One cannot be written.
    """
    for option, path in paths.items():
        if path:
            _refuse_unwritable_file(path, option)
    if adds_to_summary:
        add_to_summary("")


def _refuse_unwritable_file(path: str, option: str) -> None:
    if not is_local(path):
        refuse_unwritable(path.rpartition("/")[0], option)
        return
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{option} {path} is a folder; give a file: {option} {file / file.name}")
    is_device = file.exists() and not file.is_file()
    if is_device:
        return
    nearest_place = next(parent for parent in file.absolute().parents if parent.exists())
    if not nearest_place.is_dir():
        raise InputError(
            f"cannot write to {path}: {nearest_place} is a file; give another {option}"
        )
    refuse_unwritable(str(file.parent), option)


def write_result(
    result: CheckResult, junit: str | None, *, github: bool, annotations_to_stderr: bool
) -> None:
    """Write a result for JUnit and GitHub where it was asked for.

    Raises:
        InputError: A file cannot be written.
    """
    if junit:
        place_file(result.junit(), junit)
    if github:
        for line in result.annotations():
            echo(line, err=annotations_to_stderr)
        add_to_summary(result.markdown())


def write_refusal(values: Mapping[str, Any], error: Exception) -> None:
    """Write for JUnit and GitHub that a command was refused: no file of an earlier run may stand
    for it.

    Args:
        values: Option → its value.
        error: What was wrong; outputs have an `IncomparableError` already.
    """
    is_wrong_command = isinstance(error, PrerequisiteError | click.ClickException)
    if isinstance(error, IncomparableError) or not is_wrong_command:
        return
    text = f"refused: {one_line(error)}"
    case = bad_case("selfprobe check", text, len(REFUSAL_HEADINGS))
    summary = "1 refused"
    result = CheckResult(ExitStatus.WRONG_COMMAND, [case], REFUSAL_HEADINGS, [], summary, {})
    with suppress(InputError):  # what is wrong may be the file itself
        write_result(
            result,
            values.get("junit"),
            github=bool(values.get("github")),
            annotations_to_stderr=True,
        )
