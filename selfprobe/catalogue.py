"""`selfprobe tasks`: every task with what it asks, its calls, what it needs and its paper."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
    """All tasks by name."""
    from selfprobe._registry import tasks

    return [_described(name) for name in sorted(tasks())]


def _described(name: str) -> Described:
    from selfprobe._registry import defaults_of, paper_of, summary_of

    defaults = defaults_of(name)
    _, _, asks = summary_of(name).partition(": ")
    return Described(
        name=f"selfprobe/{name}",
        asks=asks[:1].upper() + asks[1:],
        calls=_calls(name, defaults),
        required=tuple(key for key, default in defaults.items() if default is inspect.Parameter.empty),
        paper=paper_of(name),
    )


def _calls(name: str, defaults: Mapping[str, Any]) -> int | None:
    """Calls for one item by what its study knows of it; None where no study counts them."""
    from selfprobe._registry import measures
    from selfprobe.awareness.run import CALLS

    if name in measures():
        return measures()[name].alone(defaults)
    return 1 + CALLS[name] if name in CALLS else None


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
