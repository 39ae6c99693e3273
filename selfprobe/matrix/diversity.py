"""Do models answer alike? The closest two models' replies to each item (paper 003, Table 1).

    selfprobe diversity logs/alpha logs/beta logs/gamma --out diversity

Where replies of different models are alike, another model can be predicted by what all of them say, and a high score
is no introspection. Paper: mean and variance over items of the largest cosine similarity that two of 11 models'
replies have. Here: the same, over the items that all models answered; the others are counted.
"""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
import click
import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog, EvalSample

from selfprobe import options
from selfprobe._registry import measures
from selfprobe.embed import DEFAULT_EMBEDDER, Vectors, embed, require
from selfprobe.errors import InputError
from selfprobe.logs import found, lost_replies, samples, target_of, task_of
from selfprobe.solvers.record import record_of
from selfprobe.stats.estimate import clustered_mean

Place = tuple[str, int, str]
"""Sample id, epoch and act."""


@dataclass(frozen=True)
class Diversity:
    """One row of Table 1."""

    task: str
    closest: float
    """Mean over items of the largest cosine similarity of two models' replies."""
    low: float
    """Lower end of its 95 % interval, clustered by sample; NaN where undefined."""
    high: float
    """Upper end."""
    variance: float
    """Variance of it over items (n - 1); NaN with one item."""
    pairwise: float
    """Mean over items of the mean similarity of all pairs."""
    items: int
    """Replies that every model gave without a problem."""
    left_out: int
    """Items that some model has no good reply to."""
    models: tuple[str, ...]
    embedder: str
    paper: float | None
    """The paper's number, with its own models, data and embedder."""


def replies_in(paths: Sequence[str]) -> dict[str, dict[str, dict[Place, str]]]:
    """Good replies by task, model and place, from logs or folders of logs.

    Of several finished logs with the same task and target the newest counts: replayed acts are the same anyway.

    Raises:
        InputError: Logs of a task with different data sets, fewer than two models in every task, or a path that does
            not exist.
    """
    chosen: dict[tuple[str, str], EvalLog] = {}
    known = measures()
    there = found(paths, known)
    for header in there.headers:
        name = (task_of(header), target_of(header))
        if header.status == "success" and name not in chosen and not lost_replies(header):
            chosen[name] = header
    tasks: dict[str, dict[str, dict[Place, str]]] = defaultdict(dict)
    hashes: dict[str, tuple[str, str]] = {}
    for (task, model), header in sorted(chosen.items()):
        sha256 = str((header.eval.metadata or {}).get("dataset_sha256"))
        first = hashes.setdefault(task, (sha256, header.location))
        if first[0] != sha256:
            raise InputError(
                f"{task}: {first[1]} and {header.location} are of different data sets (hash {first[0][:12]} and "
                f"{sha256[:12]}); compare models on the same questions"
            )
        tasks[task][model] = _good_replies(samples(header.location), known[task].acts)
    if not any(len(models) > 1 for models in tasks.values()):
        seen = "; ".join(f"{task}: {', '.join(models)}" for task, models in tasks.items()) or "no finished logs"
        raise InputError(
            f"expected finished logs of two or more models on one of {', '.join(known)} in {', '.join(paths)}; "
            f"got {seen}{there.without()}"
        )
    return {task: models for task, models in tasks.items() if len(models) > 1}


async def closest_replies(models: Mapping[str, Mapping[Place, str]], *, embedder: str) -> tuple[list[Place], Vectors]:
    """The items that all models answered, and the similarity of each pair of models there `[item, pair]`."""
    places = sorted(set.intersection(*(set(replies) for replies in models.values())))
    if not places:
        return [], np.empty((0, 0))
    texts = [replies[place] for replies in models.values() for place in places]
    vectors = (await embed(texts, model=embedder)).reshape(len(models), len(places), -1)
    pairs = itertools.combinations(vectors, 2)
    return places, np.stack([np.einsum("id,id->i", one, other) for one, other in pairs], axis=1)


async def measure(paths: Sequence[str], *, embedder: str = DEFAULT_EMBEDDER) -> tuple[list[Diversity], pd.DataFrame]:
    """Table 1 of these logs, and the closest similarity of each item (columns task, item, epoch, act, closest).

    Raises:
        InputError: As `replies_in`, or no item of a task was answered by all its models.
    """
    rows, items = [], []
    for task, models in replies_in(paths).items():
        places, similar = await closest_replies(models, embedder=embedder)
        if not places:
            raise InputError(f"{task}: no item has a good reply of each of {', '.join(models)}; same limit and epochs?")
        closest = similar.max(axis=1)
        estimate = clustered_mean(closest, [sample for sample, _, _ in places], interval="t")
        seen = set[Place]().union(*models.values())
        rows.append(
            Diversity(
                task=task,
                closest=estimate.value,
                low=estimate.low,
                high=estimate.high,
                variance=float(closest.var(ddof=1)) if len(closest) > 1 else float("nan"),
                pairwise=float(similar.mean()),
                items=len(places),
                left_out=len(seen) - len(places),
                models=tuple(models),
                embedder=embedder,
                paper=measures()[task].alike,
            )
        )
        items += [(task, *place, float(value)) for place, value in zip(places, closest, strict=True)]
    return rows, pd.DataFrame(items, columns=["task", "item", "epoch", "act", "closest"])


def _good_replies(logged: Sequence[EvalSample], acts: Sequence[str]) -> dict[Place, str]:
    return {
        (str(sample.id), sample.epoch, act): reply.text
        for sample in logged
        if sample.error is None
        for act, reply in record_of(sample).acts.items()
        if act in acts and not reply.problem
    }


def draw(items: pd.DataFrame, rows: Sequence[Diversity], path: Path) -> None:
    """A box a task over its items' closest similarities, with the mean (dot) and the paper's number (diamond)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 0.8 + 0.6 * len(rows)), layout="constrained")
    axes = figure.subplots()
    heights = list(range(len(rows), 0, -1))
    boxes = [items.loc[items.task == row.task, "closest"].to_numpy() for row in rows]
    axes.boxplot(boxes, orientation="horizontal", positions=heights, widths=0.5, showfliers=False)
    axes.plot([row.closest for row in rows], heights, "o", color="C0", label="mean")
    published = [(row.paper, height) for row, height in zip(rows, heights, strict=True) if row.paper is not None]
    if published:
        axes.plot(*zip(*published, strict=True), "D", color="C1", fillstyle="none", label="paper 003, Table 1")
    axes.set_yticks(heights, [f"{row.task} (n={row.items})" for row in rows])
    axes.set_xlabel(f"cosine similarity of the closest two of {len(rows[0].models)} models\n({rows[0].embedder})")
    axes.legend(loc="best", frameon=False)
    figure.savefig(path, dpi=150)


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write into.")
@options.embedder
@options.as_json
def diversity(logs: tuple[str, ...], out: Path, embedder: str, as_json: bool) -> None:
    """How alike the closest two models' replies are, per task (paper 003, Table 1).

    LOGS are logs, or folders of logs, of two or more models. Writes diversity.csv, diversity.json, items.csv
    and diversity.png into the folder --out.
    """

    async def run() -> tuple[list[Diversity], pd.DataFrame]:
        return await measure(logs, embedder=require(embedder))

    rows, items = anyio.run(run)
    out.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame([{**asdict(row), "models": ", ".join(row.models)} for row in rows])
    table.to_csv(out / "diversity.csv", index=False)
    table.to_json(out / "diversity.json", orient="records", indent=2)
    items.to_csv(out / "items.csv", index=False)
    draw(items, rows, out / "diversity.png")
    if as_json:
        options.echo_json(rows)
        return
    click.echo(table.drop(columns=["models", "embedder"]).round(3).to_string(index=False))
    click.echo(f"models: {', '.join(rows[0].models)}; embedder: {embedder}; written to {out}")
