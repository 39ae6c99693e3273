"""`selfprobe matrix` and `selfprobe report`: thin command lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from selfprobe import options

if TYPE_CHECKING:
    from selfprobe.matrix.run import Member, Plan
    from selfprobe.prices import Prices


@click.command()
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False))
@options.models(required=False)
@click.option(
    "--tasks", type=options.Names("task"), help="Tasks, comma-separated; by default all that a matrix can hold."
)
@options.task_args
@options.limit
@options.log_dir("logs/matrix")
@options.asking
def matrix(
    config: str | None,
    models: list[str] | None,
    tasks: list[str] | None,
    limit: int | None,
    log_dir: str,
    prices: str | None,
    task_args: dict[str, Any],
    model_args: dict[str, Any],
    dry_run: bool,
    yes: bool,
    **settings: Any,
) -> None:
    """Run every observer on every target. The same command goes on where a killed one stopped.

    CONFIG is a YAML file with `models` (names, or mappings of model, base_url, config, args), and optionally `tasks`,
    `limit` and `args`; options win over it.
    """
    from selfprobe._registry import measures
    from selfprobe.errors import RunError
    from selfprobe.matrix.run import plan, run
    from selfprobe.prices import read_prices

    given = _read(config)
    planned = plan(
        [_member(entry, model_args) for entry in (given.get("models", []) if models is None else models)],
        given.get("tasks", list(measures())) if tasks is None else tasks,
        limit=limit or given.get("limit"),
        args=given.get("args", {}) | task_args,
    )
    costs = read_prices(prices)
    if not dry_run:  # which needs no API key and loads no weights
        for member in planned.members:
            member.open()
    click.echo(describe(planned, costs))
    if dry_run:
        return
    options.confirmed(yes)
    complete = run(planned, log_dir, settings={**settings, "model_cost_config": costs or None})
    click.echo(f"\nLogs: {log_dir}   Report: selfprobe report {log_dir}   Browse: inspect view --log-dir {log_dir}")
    if not complete:
        raise RunError("not every cell is complete")


@click.command()
@click.argument("logs", nargs=-1, required=True)
@options.out("report")
def report(logs: Sequence[str], out: str) -> None:
    """Write the report of a matrix: index.html, tables/ and figures/."""
    from selfprobe.errors import RunError
    from selfprobe.matrix.page import write

    analysis = write(logs, Path(out))
    for task in analysis.tasks:
        click.echo(f"{task.task}: {task.verdict.kind}. {task.verdict.sentence}")
        for (target, observer), why in task.matrix.holes.items():
            click.echo(f"  hole: {observer} on {target}: {why}", err=True)
    click.echo(f"Report: {Path(out) / 'index.html'}")
    if any(task.matrix.holes for task in analysis.tasks):
        raise RunError("some cells are holes; the report names them")


def describe(planned: "Plan", prices: "Prices") -> str:
    """The plan as text: calls, tokens and cost by model, what it can detect."""
    from selfprobe.matrix.verdict import minimum_detectable, planned_sd
    from selfprobe.prices import cost_table

    size, smallest = len(planned.members), min(planned.items.values())
    least = minimum_detectable(items=smallest, sd=planned_sd(size, p0=0.5, rho=0.0))
    power = (
        f"Smallest self advantage this detects with 80 % power: about {least:.3f} (right/wrong scores around .5, "
        f"{smallest} items; scores averaged over keys or epochs detect smaller ones)."
        if least < 1  # an advantage of 1: only the model itself is ever right
        else "This matrix is too small to detect any self advantage with 80 % power."
    )
    items = ", ".join(f"{task} ({n} items)" for task, n in planned.items.items())
    return "\n".join([f"{size} models × {size} × {items}", "", *cost_table(planned.costs, prices), "", power])


def _read(config: str | None) -> dict[str, Any]:
    import yaml

    if config is None:
        return {}
    try:
        content = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{config} is not YAML: {error}") from None
    known = {"models", "tasks", "limit", "args"}
    if not isinstance(content, dict) or set(content) - known:
        raise click.UsageError(f"{config}: expected a mapping with {', '.join(sorted(known))}")
    given = {key: value for key, value in content.items() if value is not None}
    given |= {key: options.names(given[key]) for key in ("models", "tasks") if isinstance(given.get(key), str)}
    tasks, limit = given.get("tasks", []), given.get("limit", 1)
    for key, right, expected in (
        ("models", isinstance(given.get("models", []), list), "a list of models"),
        ("tasks", isinstance(tasks, list) and all(isinstance(task, str) for task in tasks), "a list of task names"),
        ("limit", type(limit) is int and limit >= 1, "a whole number from 1"),  # YAML's true is an int too
        ("args", isinstance(given.get("args", {}), dict), "a mapping of task arguments"),
    ):
        if not right:
            raise click.UsageError(f"{config}: {key} must be {expected}, got {given[key]!r}")
    return given


def _member(entry: object, model_args: dict[str, Any]) -> "Member":
    from selfprobe.matrix.run import Member

    fields = {"model": entry} if isinstance(entry, str) else entry
    known = {"model", "base_url", "config", "args"}
    if not isinstance(fields, dict) or not isinstance(fields.get("model"), str) or set(fields) - known:
        raise click.UsageError(f"a model is a name or a mapping of {', '.join(sorted(known))}; got {entry!r}")
    given = {key: value for key, value in fields.items() if value is not None}
    return Member(**given | {"args": {**model_args, **given.get("args", {})}})
