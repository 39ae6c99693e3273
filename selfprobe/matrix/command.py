"""`selfprobe matrix`, `diversity` and `effort`: thin command lines."""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from selfprobe import options
from selfprobe.configuration import read, refuse_unknown
from selfprobe.safe import echo

if TYPE_CHECKING:
    from selfprobe.matrix.run import Member, Plan
    from selfprobe.run_settings import RunSettings


@click.command()
@click.argument("file", required=False, metavar="[CONFIG]", type=click.Path(exists=True, dir_okay=False))
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="The same as CONFIG.")
@options.models(required=False)
@click.option(
    "--tasks", type=options.Names("task"), help="Tasks, comma-separated; by default the five of the paper's text."
)
@click.option(
    "--observers",
    type=options.Names("arm"),
    help="Also tell observers of their target: asked (by name), shown:N (N of its replies to other items). Each runs a "
    "cell for every two models in kth_word and ethical_dilemma.",
)
@options.task_args
@options.limit
@options.log_dir("logs/matrix")
@options.engine
@options.asking
def matrix(
    file: str | None,
    config: str | None,
    models: list[str] | None,
    tasks: list[str] | None,
    observers: list[str] | None,
    limit: int | None,
    log_dir: str,
    task_args: dict[str, Any],
    dry_run: bool,
    yes: bool,
    **how: Any,
) -> None:
    """Run every observer on every target. The same command goes on where a killed one stopped.

    CONFIG is a YAML file with `models` (names, or mappings of model, base_url, config, args), and optionally `tasks`,
    `limit`, `args` and `observers`; options win over it.
    """
    from selfprobe._registry import measures
    from selfprobe.errors import RunError
    from selfprobe.matrix.run import plan, run
    from selfprobe.run_settings import RunSettings

    if file and config and file != config:
        raise click.UsageError(f"two configurations, {file} and {config}; give one")
    given, settings = _read(config or file), RunSettings.taken(how)
    by_default = [task for task, measure in measures().items() if not measure.by_name]
    planned = plan(
        [_member(entry, settings.model_args) for entry in (given.get("models", []) if models is None else models)],
        given.get("tasks", by_default) if tasks is None else tasks,
        limit=limit or given.get("limit"),
        args=given.get("args", {}) | task_args | settings.shared,
        observers=given.get("observers", []) if observers is None else observers,
    )
    for member in planned.members:
        # A dry run needs no API key and loads no weights; on a cluster both are on its nodes.
        if member.model.startswith("planted/") or not (dry_run or settings.cluster):
            member.named.open()
    echo(describe(planned, settings))
    if dry_run:
        return
    options.confirmed(yes)
    complete = run(planned, log_dir, settings=settings)
    echo(f"\nLogs: {log_dir}   Report: selfprobe report {log_dir}   Browse: inspect view --log-dir {log_dir}")
    if not complete:
        raise RunError("runs failed, or nothing could be scored; see above")


def describe(planned: "Plan", settings: "RunSettings") -> str:
    """The plan as text: calls, tokens and cost by model, what it can detect."""
    import numpy as np

    from selfprobe.matrix.power import planned as detects

    size, smallest = len(planned.members), min(planned.items.values())
    least = detects(size, smallest, tests=size * len(planned.tasks), rng=np.random.default_rng(0))
    if size < 3:
        power = "Two models name nobody: three are the least that can tell self-knowledge from skill."
    elif least < 1:  # an advantage of 1: only the model itself is ever right
        power = (
            f"In 80 % of such matrices a model is named if its own advantage is about {least:.2f} or more (right/wrong "
            f"scores around .5, {smallest} items; where scores are averaged over keys or epochs, less is enough)."
        )
    else:
        power = (
            f"Of {smallest} items and scores around .5, a model is named in fewer than 80 % of such matrices, however "
            "much it knows of itself; where the others score less, one can be named all the same."
        )
    table = settings.costed(planned.costs, rounds=planned.rounds)
    items = ", ".join(f"{task} ({n} items)" for task, n in planned.items.items())
    told = ", ".join(planned.arms)
    further = [f"Informed observers ({told}) are included: {size * (size - 1)} further cells a task and arm."]
    return "\n".join([f"{size} models × {size} × {items}", "", *table, *(further if told else []), "", power])


def _read(config: str | None) -> dict[str, Any]:
    if config is None:
        return {}
    given = read(config, {"models", "tasks", "limit", "args", "observers"})
    lists = ("models", "tasks", "observers")
    given |= {key: options.names(given[key]) for key in lists if isinstance(given.get(key), str)}
    tasks, limit, observers = given.get("tasks", []), given.get("limit", 1), given.get("observers", [])
    for key, right, expected in (
        ("models", isinstance(given.get("models", []), list), "a list of models"),
        ("tasks", _are_texts(tasks), "a list of task names"),
        ("limit", type(limit) is int and limit >= 1, "a whole number from 1"),  # YAML's true is an int too
        ("args", isinstance(given.get("args", {}), dict), "a mapping of task arguments"),
        ("observers", _are_texts(observers), "a list of arms, such as shown:5"),
    ):
        if not right:
            raise click.UsageError(f"{config}: {key} must be {expected}, got {given[key]!r}")
    return given


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _member(entry: object, model_args: Mapping[str, Any]) -> "Member":
    from selfprobe.matrix.run import Member

    fields = {"model": entry} if isinstance(entry, str) else entry
    known = {"model", "base_url", "config", "args"}
    if not isinstance(fields, dict) or not isinstance(fields.get("model"), str):
        raise click.UsageError(f"a model is a name or a mapping of {', '.join(sorted(known))}; got {entry!r}")
    refuse_unknown(fields, known, f"model {fields['model']}")
    given = {key: value for key, value in fields.items() if value is not None}
    return Member(**given | {"args": {**model_args, **given.get("args", {})}})


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="A matrix's configuration: first ask its models for open answers, into the one folder LOGS.",
)
@options.limit
@options.out("diversity")
@options.embedder
@options.as_json
@options.asking
def diversity(
    logs: tuple[str, ...],
    config: str | None,
    limit: int | None,
    out: str,
    embedder: str,
    as_json: bool,
    dry_run: bool,
    yes: bool,
    **how: Any,
) -> None:
    """How alike the closest two models' replies are, per task (paper 003, Table 1).

    LOGS are logs, or folders of logs, of two or more models. Writes diversity.csv, diversity.json, items.csv and
    diversity.svg into the folder --out. With --config its models are asked first; options of calls are of that alone.
    """
    import anyio

    from selfprobe.embed import require
    from selfprobe.matrix.diversity import draw, measure, replies_in, table_of
    from selfprobe.output import destination, place
    from selfprobe.safe import cleaned, csv, plain

    destination(out)
    if config is not None:
        if not dry_run:
            require(embedder)  # before anything is paid
        _ask_openly(config, logs, limit, dry_run=dry_run, yes=yes, err=as_json, how=how)
        if dry_run:
            return
    elif limit is not None or dry_run or yes or any(how.values()):
        raise click.UsageError("options of a run (--limit, --yes, -M …) need --config, which says whom to ask")
    drawn = replies_in(logs)
    rows, items = anyio.run(lambda: measure(drawn.replies, embedder=embedder))
    table = table_of(rows)
    files = {
        "diversity.csv": csv(table),
        "diversity.json": cleaned(table).to_json(orient="records", indent=2).encode(),
        "items.csv": csv(items),
        "diversity.svg": draw(rows).rendered("svg"),
    }
    place(files, out)
    if as_json:
        options.echo_json(rows)
        return
    echo(table.drop(columns=["models", "embedder"]).round(3).to_string(index=False))
    for line in (*drawn.settings, *(f"not used: {log}: {why}" for log, why in drawn.ignored.items())):
        echo(plain(line), err=True)
    echo(f"models: {plain(', '.join(rows[0].models))}; embedder: {embedder}; written to {out}")


def _ask_openly(
    config: str, logs: tuple[str, ...], limit: int | None, *, dry_run: bool, yes: bool, err: bool, how: dict[str, Any]
) -> None:
    """The runs of `open_answers` that `diversity` compares."""
    if len(logs) > 1:
        raise click.UsageError(f"--config asks into one folder, got {', '.join(logs)}")
    from selfprobe.errors import RunError
    from selfprobe.matrix.open_run import ask, describe
    from selfprobe.run_settings import RunSettings

    settings = RunSettings.taken(how)
    members = [_member(entry, settings.model_args) for entry in _read(config).get("models", [])]
    echo(describe(members, limit, settings), err=err)
    if dry_run:
        return
    options.confirmed(yes)
    if not ask(members, logs[0], limit, settings):
        raise RunError("runs failed, or nothing could be compared; see above")


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", required=True, help="The figure's file: .png, .svg or .pdf.")
@options.as_json
def effort(logs: tuple[str, ...], out: str, as_json: bool) -> None:
    """Draw KL(p‖p') and KL(p‖p*) by reasoning effort from LOGS of ethical_dilemma, one run an effort (-T effort=…)."""
    if not out.endswith((".png", ".svg", ".pdf")):
        raise click.BadParameter(f"expected a .png, .svg or .pdf file, got {out!r}", param_hint="--out")
    from selfprobe.logs import runs
    from selfprobe.matrix.effort import draw, effort_points
    from selfprobe.output import place_file
    from selfprobe.page import shown
    from selfprobe.safe import plain

    there = runs(logs)
    points, ignored = effort_points(there.counted)
    image = io.BytesIO()
    draw(points).savefig(image, dpi=200, format=out.rpartition(".")[2])
    place_file(image.getvalue(), out)
    for log, why in (there.aside | ignored).items():
        echo(plain(f"not used: {log}: {why}"), err=True)
    if as_json:
        options.echo_json(points)
        return
    for point in points:
        numbers = "  ".join(f"{n} {shown(getattr(point, n), 4)}" for n in ("kl_predicted", "kl_direct", "kl_gain"))
        who = plain(f"{point.observer} on {point.target}")
        left = f" ({point.infinite} infinite left out)" if point.infinite else ""
        echo(f"{who}  {point.effort:8} {numbers}  n={point.kl_gain.n}{left}")
    echo(f"figure in {out}")
