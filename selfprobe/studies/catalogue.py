"""`selfprobe tasks`: every task with what it asks, its calls, what it needs and its paper."""

from dataclasses import dataclass

import click

from selfprobe.errors.arguments import FULL
from selfprobe.study import options
from selfprobe.text.safe import echo


@dataclass(frozen=True)
class Described:
    """A task as the list shows it."""

    name: str
    """Name that `inspect eval` takes."""
    asks: str
    """First line of its file."""
    calls: int | None
    """Number of calls for one item with the default arguments, of a model on itself, without a grader's; None where
    nobody has counted."""
    needs: tuple[str, ...]
    """Options without which it does not run, besides the model."""
    paper: str | None
    """Number of the paper that it is from."""


def described() -> list[Described]:
    """All tasks by name."""
    from selfprobe.study._registry import tasks

    return sorted(map(_described, tasks()), key=lambda task: task.name)


def _described(name: str) -> Described:
    from selfprobe.studies.awareness.study import CALLS
    from selfprobe.study._registry import declared_calls, measures, needs_of, paper_of, summary_of
    from selfprobe.study.described import rehearsed

    _, _, asks = summary_of(name).partition(": ")
    counted = rehearsed(name, {}).all.count if name in measures() else declared_calls(name)
    return Described(
        name=f"selfprobe/{FULL.get(name, name)}",
        asks=asks[:1].upper() + asks[1:],
        calls=1 + CALLS[name] if name in CALLS else counted,
        needs=needs_of(name),
        paper=paper_of(name),
    )


@click.command()
@options.as_json
def tasks(as_json: bool) -> None:
    """List the tasks: what each asks, its calls, what it needs, its paper.

    Calls are those of one item with the default arguments, where the model is asked about itself.
    """
    found = described()
    if as_json:
        options.echo_json(found)
        return
    width = max(len(task.name) for task in found)
    echo(f"{'task':{width}}  paper  calls  asks")
    for task in found:
        calls = "–" if task.calls is None else task.calls
        needs = f" Needs {' and '.join(task.needs)}." if task.needs else ""
        echo(f"{task.name:{width}}  {task.paper or '–':>5}  {calls:>5}  {task.asks}{needs}")
