"""`selfprobe tasks`: every task with what it asks, its calls, what it needs and its paper."""

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

import click

from selfprobe import options


@dataclass(frozen=True)
class Described:
    """A task as the list shows it."""

    name: str
    """As `inspect eval` takes it."""
    asks: str
    """First line of its file."""
    calls: int | None
    """Of one item with the default arguments, a model on itself; None where nobody has counted."""
    required: tuple[str, ...]
    """Arguments without a default."""
    paper: str | None


def described() -> list[Described]:
    """All registered tasks by name."""
    from inspect_ai.util import registry_info

    from selfprobe import _registry

    found = [
        _described(name, getattr(_registry, name))
        for name in _registry.__all__
        if registry_info(getattr(_registry, name)).type == "task"
    ]
    return sorted(found, key=lambda task: task.name)


def calls_of(name: str, defaults: Mapping[str, Any]) -> int | None:
    """Calls for one item of a task by what its study knows of it; None where no study counts them."""
    from selfprobe.awareness.run import CALLS
    from selfprobe.matrix.run import TASKS

    if name in TASKS:
        return TASKS[name].diagonal(defaults)
    return 1 + CALLS[name] if name in CALLS else None


def _described(name: str, function: Any) -> Described:
    module = inspect.getmodule(inspect.unwrap(function))
    assert isinstance(module, ModuleType), name
    told = inspect.cleandoc(module.__doc__ or "")
    asks = told.splitlines()[0].partition(": ")[2] or told.splitlines()[0]
    parameters = inspect.signature(function).parameters
    defaults = {key: parameter.default for key, parameter in parameters.items()}
    papers = re.search(r"[Pp]aper (\d{3})", told)
    return Described(
        name=f"selfprobe/{name}",
        asks=asks[:1].upper() + asks[1:],
        calls=calls_of(name, defaults),
        required=tuple(key for key, default in defaults.items() if default is inspect.Parameter.empty),
        paper=papers[1] if papers else None,
    )


@click.command()
@options.as_json
def tasks(as_json: bool) -> None:
    """List the tasks: what each asks, its calls, what it needs, its paper.

    Calls are those of one item with the default arguments, where the model is asked about itself.
    """
    found = described()
    if as_json:
        click.echo(json.dumps([asdict(task) for task in found], indent=2, ensure_ascii=False))
        return
    width = max(len(task.name) for task in found)
    click.echo(f"{'task':{width}}  paper  calls  asks")
    for task in found:
        calls = "–" if task.calls is None else task.calls
        needs = f"; needs -T {'=… -T '.join(task.required)}=…" if task.required else ""
        click.echo(f"{task.name:{width}}  {task.paper or '–':>5}  {calls:>5}  {task.asks}{needs}")
