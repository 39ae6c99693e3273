"""Configurations: a YAML file in the place of a command's options, which win over it.

Imports nothing of Inspect, so that every `-h` is quick.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from selfprobe.study.options import Assignment, Names

F = TypeVar("F", bound=Callable[..., Any])
NEVER = ("config", "yes", "dry-run")
"""Options that a file may not give: nothing is paid for because a file says so."""


def _read(path: str, known: Iterable[str]) -> dict[str, Any]:
    """The fields of a YAML file, without those that are empty.

    Raises:
        UsageError: It is no mapping, gives a key twice, or has an unknown field (with the one that was meant where it
            is close).
    """
    import yaml

    from selfprobe.text.user_input import loaded

    fields = sorted(known)
    try:
        content = loaded(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise click.UsageError(f"{path}: expected a mapping with {', '.join(fields)}")
    refuse_unknown(content, fields, path)
    return {str(key): value for key, value in content.items() if value is not None}


def refuse_unknown(given: Mapping[Any, Any], known: Iterable[str], where: str) -> None:
    """UsageError where a field of `given` is not known, with the one that was meant."""
    from selfprobe.text.user_input import meant

    fields = sorted(known)
    for name in given:
        if name not in fields:
            remedy = meant(name, fields) or f"; there are {', '.join(fields)}"
            raise click.UsageError(f"{where}: unknown field {name}{remedy}")


def config(command: F) -> F:
    """--config: a YAML file with the command's options by their long names, as log-dir: logs/mine."""
    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False),
        callback=_take,
        is_eager=True,
        expose_value=False,
        help="YAML file with options by their long names. An option that is typed wins over the file.",
    )(command)


def _take(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    if path is None:
        return
    options = [each for each in ctx.command.params if isinstance(each, click.Option)]
    by_field = {field: option for option in options if (field := _field(option)) not in NEVER}
    found = {
        by_field[field].name: _value(by_field[field], value, f"{path}: {field}")
        for field, value in _read(path, by_field).items()
    }
    ctx.default_map = {str(name): value for name, value in found.items()} | dict(ctx.default_map or {})


def _field(option: click.Option) -> str:
    """The longest of its long names, without the dashes."""
    named = [name.removeprefix("--") for name in option.opts if name.startswith("--")]
    return max(named, key=len) if named else str(option.name).replace("_", "-")


def _value(option: click.Option, value: Any, where: str) -> Any:
    """The value in the option's type; UsageError where the type would take something else for it."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise click.UsageError(f"{where} must be true or false, got {value!r}")
        return value
    if isinstance(option.type, Assignment):
        if not isinstance(value, dict):
            raise click.UsageError(f"{where} must be a mapping, got {value!r}")
        return list(value.items())
    listed = isinstance(option.type, Names) or option.multiple
    right = isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool))
    entry = str | dict if isinstance(option.type, Names) and option.type.mappings else str
    if isinstance(value, list) and listed and all(isinstance(one, entry) for one in value):
        return value
    if not right or (option.multiple and not isinstance(value, list)):
        raise click.UsageError(f"{where} must be {'a list of texts' if listed else 'one value'}, got {value!r}")
    try:
        option.type.convert(value, None, None)
    except click.BadParameter as error:
        raise click.UsageError(f"{where}: {error.message}") from None
    return value
