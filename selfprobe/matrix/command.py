"""`selfprobe matrix`: a thin command line over matrix/run.py."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from selfprobe._registry import measures
from selfprobe.inspect_private import PrerequisiteError
from selfprobe.matrix.run import Member, Plan, plan, run


@click.command()
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--models", help="Models, comma-separated: openrouter/a,embedded/smollm2.")
@click.option("--tasks", help=f"Tasks, comma-separated; by default all: {','.join(measures())}.")
@click.option("--limit", type=click.IntRange(min=1), help="Items of each data set; by default all.")
@click.option("-T", "args", multiple=True, metavar="NAME=VALUE", help="Task argument, for the tasks that have it.")
@click.option("--log-dir", default="logs/matrix", show_default=True, help="Folder of this matrix, for nothing else.")
@click.option(
    "--prices", type=click.Path(exists=True, dir_okay=False), help="Inspect model cost file, for an estimate."
)
@click.option("--max-connections", type=click.IntRange(min=1), help="Calls at once to one model.")
@click.option("--display", type=click.Choice(["full", "rich", "plain", "none"]), help="Inspect's display.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done; opens no model.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def matrix(
    config: str | None,
    models: str | None,
    tasks: str | None,
    limit: int | None,
    args: Sequence[str],
    log_dir: str,
    prices: str | None,
    max_connections: int | None,
    display: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Run every observer on every target. The same command goes on where a killed one stopped.

    CONFIG is a YAML file with `models` (names, or mappings of model, base_url, config, args), and optionally `tasks`,
    `limit` and `args`; options win over it.
    """
    given = _read(config)
    named = [{"model": name} for name in _split(models)] if models else given.get("models", [])
    chosen = _split(tasks) if tasks else given.get("tasks", list(measures()))
    try:
        planned = plan(
            [_member(entry) for entry in named],
            chosen,
            limit=limit or given.get("limit"),
            args=given.get("args", {}) | dict(_assignment(arg) for arg in args),
        )
    except (ValueError, PrerequisiteError) as error:
        raise click.UsageError(_plain(error)) from None
    if not dry_run:  # which needs no API key and loads no weights
        for member in planned.members:
            _open(member)
    click.echo(describe(planned, _prices(prices)))
    if dry_run:
        return
    if not yes:
        click.confirm("Run it?", abort=True)
    settings: dict[str, Any] = {"display": display, "max_connections": max_connections, "model_cost_config": prices}
    try:
        complete = run(planned, log_dir, settings={key: value for key, value in settings.items() if value is not None})
    except PrerequisiteError as error:
        raise click.ClickException(_refused(error, log_dir)) from None
    click.echo(f"\nLogs: {log_dir}   Report: selfprobe report {log_dir}   Browse: inspect view --log-dir {log_dir}")
    if not complete:
        raise click.ClickException("not every cell is complete: the same command tries the rest again")


def _open(member: Member) -> None:
    """Whether a model can be had shows before the user confirms; Inspect keeps what was opened for the run."""
    try:
        member.open()
    except (PrerequisiteError, ValueError, TypeError, OSError) as error:  # no key, no provider, no argument, no weights
        raise click.ClickException(f"{member.model}: {_plain(error)}") from None


def _plain(error: Exception) -> str:
    """The message without Inspect's styles, on one line."""
    said = re.sub(r"\[/?(bold|blue)\]", "", str(error)).removeprefix("ERROR: ")
    return " ".join(said.split())


def _refused(error: PrerequisiteError, log_dir: str) -> str:
    said = _plain(error)
    if "not associated with a task" not in said:
        return said
    log = said.partition("'")[2].partition("'")[0]
    return (
        f"{log_dir} holds a log of other runs ({log}): another matrix, other task arguments or generation settings, a "
        "model less, or a data set that changed since. Go on with the same command, or give a new --log-dir"
    )


def describe(planned: Plan, prices: dict[str, Any]) -> str:
    """The plan as text: calls, tokens and cost by model, what it can detect."""
    from selfprobe.matrix.verdict import minimum_detectable, planned_sd

    size = len(planned.members)
    lines = [f"{size} models × {size} × {', '.join(f'{task} ({n} items)' for task, n in planned.items.items())}", ""]
    lines.append(f"{'model':40} {'calls':>9} {'tokens in':>11} {'out':>11} {'cost':>9}   (tokens are a rough guess)")
    total = 0.0
    for cost in planned.costs:
        price = prices.get(cost.model)
        dollars = (cost.tokens_in * price["input"] + cost.tokens_out * price["output"]) / 1e6 if price else math.nan
        total += dollars
        shown = "unknown" if math.isnan(dollars) else f"${dollars:.2f}"
        lines.append(f"{cost.model:40} {cost.calls:>9,} {cost.tokens_in:>11,} {cost.tokens_out:>11,} {shown:>9}")
    whole = "unknown" if math.isnan(total) else f"${total:.2f}"
    lines += [f"{'all':40} {planned.calls:>9,} {'':>11} {'':>11} {whole:>9}", ""]
    smallest = min(planned.items.values())
    least = minimum_detectable(items=smallest, sd=planned_sd(size, p0=0.5, rho=0.0))
    seen = f"about {least:.3f}" if least < 1 else "none, it is too small"  # an advantage of 1: only the model itself
    lines.append(
        f"Smallest self advantage this detects with 80 % power: {seen} "
        f"(right/wrong scores around .5, {smallest} items; scores averaged over keys or epochs detect smaller ones)."
    )
    return "\n".join(lines)


def _read(config: str | None) -> dict[str, Any]:
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
    given |= {key: _split(given[key]) for key in ("models", "tasks") if isinstance(given.get(key), str)}
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


def _member(entry: object) -> Member:
    fields = {"model": entry} if isinstance(entry, str) else entry
    known = {"model", "base_url", "config", "args"}
    if not isinstance(fields, dict) or not isinstance(fields.get("model"), str) or set(fields) - known:
        raise ValueError(f"a model is a name or a mapping of {', '.join(sorted(known))}; got {entry!r}")
    return Member(**{key: value for key, value in fields.items() if value is not None})


def _prices(path: str | None) -> dict[str, Any]:
    return yaml.safe_load(Path(path).read_text(encoding="utf-8")) if path else {}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _assignment(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.UsageError(f"-T takes NAME=VALUE, got {text!r}")
    return name, yaml.safe_load(value)
