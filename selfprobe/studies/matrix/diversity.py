"""Do models answer alike? The closest two models' replies to each item ("Me, Myself, and π", Table 1).

    selfprobe report logs/alpha logs/beta logs/gamma --embedder sentence-transformers/all-MiniLM-L6-v2

Where replies of different models are alike, another model can be predicted by what all of them say, and a high score
alone does not show introspection. Paper: mean and variance over items of the largest cosine similarity that two of 11
models' unconstrained, sampled replies have; what its variances are of is not said (`published.TABLE_1`). Here: the
same, over the items that all models answered, the others are counted; beside it how alike all pairs of models are, and
two draws of one model (`repeat`): two models are distinct where they differ more than one model does from itself. A row
"kth_word, sampled at 1" is of `open_answers`, as the paper's; a row "kth_word" of what a matrix recorded, at the
task's own temperature and limit.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import anyio
import numpy as np
import pandas as pd
from markupsafe import Markup

from selfprobe.embed import DEFAULT_EMBEDDER, Vectors, embed, require, unfetched
from selfprobe.errors import InputError, NoLogs
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.logs import Run, Runs, first_of, lost_replies, read_best, runs, target_of
from selfprobe.page import PI, Block, Column, Figures, Picture, Section, Table, estimated, number, set_aside
from selfprobe.page.plots import interval_rows
from selfprobe.solvers.record import record_of
from selfprobe.stats.estimate import Estimate, clustered_mean
from selfprobe.studies.matrix.published import TABLE_1
from selfprobe.studies.matrix.table import Cell, choose_setting
from selfprobe.study._registry import measures
from selfprobe.text import busy

OPEN = "open_answers"
"""The task of sampled, whole replies."""

Place = tuple[str, int, str]
"""Sample id, epoch and act."""
Replies = dict[str, dict[str, dict[Place, str]]]
"""Task → model → its good replies."""


@dataclass(frozen=True)
class SimilarityRow:
    """One row of Table 1."""

    task: str
    closest: float
    """Mean over draws of the largest cosine similarity of two models' replies."""
    low: float
    """Lower end of its 95 % interval, clustered by sample; NaN where undefined."""
    high: float
    """Upper end."""
    variance: float
    """Variance of it over draws (n - 1); NaN with one."""
    pairwise: float
    """Mean over draws of the mean similarity of all pairs."""
    repeat: float
    """Mean similarity of two successive draws of one model; NaN where each reply was drawn once."""
    items: int
    """Number of samples to which every model gave a reply without a problem: the paper's Size."""
    draws: int
    """Number of each model's replies that the means are over: one per item, prompt and epoch."""
    left_out: int
    """Number of draws that some model lacks."""
    models: tuple[str, ...]
    embedder: str
    paper: float | None
    """The paper's number, with its own models, data and embedder."""


@dataclass(frozen=True)
class Drawn:
    """Replies of models."""

    replies: Replies
    """Good replies, of the tasks that two models or more have."""
    ignored: Mapping[str, str]
    """Log → why it is not used."""
    settings: Sequence[str]
    """A line for each row with runs of several settings: which of them counts, and how to choose."""


def replies_in(paths: Sequence[str]) -> Drawn:
    """`replies_of` all logs under these files and folders.

    Raises:
        NoLogs: Fewer than two models in every task.
        InputError: A path that does not exist.
    """
    return replies_of(runs(paths, {*measures(), OPEN}), paths)


def replies_of(there: Runs, paths: Sequence[str] = ()) -> Drawn:
    """Good replies by task, model and place; a row is of one setting (`choose_setting`).

    Args:
        there: Runs of matrix tasks, and of open answers.
        paths: Paths that were searched, for messages.

    Raises:
        NoLogs: Fewer than two models in every task.
    """
    known = measures()
    choice = choose_setting(_cells(there.finished))
    ignored = {**there.aside, **choice.aside}
    found: dict[str, dict[str, dict[Place, str]]] = defaultdict(dict)
    for (row, model, _), run in sorted(choice.runs.items(), key=lambda pair: pair[0]):
        acts = None if run.identity.task == OPEN else known[row].acts
        replies = read_best(run, partial(_good_replies, acts=acts), ignored)
        if replies is not None:
            found[row][model] = replies
    if not any(len(models) > 1 for models in found.values()):
        seen = "; ".join(f"{task}: {', '.join(models)}" for task, models in found.items()) or "no finished logs"
        raise NoLogs(
            f"expected finished logs of two or more models on one of {', '.join([*known, OPEN])}"
            f"{' in ' if paths else ''}{', '.join(paths)}; got {seen}{first_of(ignored)}"
        )
    several = {task: models for task, models in found.items() if len(models) > 1}
    return Drawn(several, ignored, [f"{row}: {told}" for row, told in choice.settings.items() if row in several])


def _cells(found: Sequence[Run]) -> dict[Cell, list[Run]]:
    """(row, target, target) → the target's runs on itself; where there is none, its runs with other observers."""
    cells: dict[Cell, list[Run]] = defaultdict(list)
    for run in sorted(found, key=lambda run: target_of(run.header) != run.identity.model):
        target = target_of(run.header)
        cell = (_row_of(run), target, target)
        if run.identity.model == target or all(one.identity.model != target for one in cells[cell]):
            cells[cell].append(run)
    return cells


def _row_of(run: Run) -> str:
    """The row that a log belongs to: its task, or whose prompts it asked and how."""
    about = run.header.eval.metadata or {}
    if run.identity.task != OPEN:
        return run.identity.task
    return f"{about['of']}, sampled at {about['temperature']:g}"


async def closest_replies(
    models: Mapping[str, Mapping[Place, str]], *, embedder: str
) -> tuple[list[Place], Vectors, Vectors]:
    """The draws that all models have, the similarity of each pair of models there `[draw, pair]`, and that of each
    model's successive draws of one reply `[model and draw]`."""
    places = sorted(set.intersection(*(set(replies) for replies in models.values())))
    if not places:
        return [], np.empty((0, 0)), np.empty(0)
    texts = [replies[place] for replies in models.values() for place in places]
    vectors = (await embed(texts, model=embedder)).reshape(len(models), len(places), -1)
    pairs = itertools.combinations(vectors, 2)
    at = {place: i for i, place in enumerate(places)}
    draws = [(at[place], i) for (item, epoch, act), i in at.items() if (place := (item, epoch - 1, act)) in at]
    repeats = np.array([one[i] @ one[j] for one in vectors for i, j in draws])
    return places, np.stack([np.einsum("id,id->i", one, other) for one, other in pairs], axis=1), repeats


async def measure(replies: Replies, *, embedder: str = DEFAULT_EMBEDDER) -> tuple[list[SimilarityRow], pd.DataFrame]:
    """Table 1 of `replies_in`, and the closest similarity of each draw (columns task, item, epoch, act, closest).

    Raises:
        InputError: No item of a task was answered by all its models.
        PrerequisiteError: The embedder cannot be had; with what to install or to pass.
    """
    embedder = require(embedder)
    rows, items = [], []
    for task, models in replies.items():
        busy.set_stage(f"{task}: similarity of replies")
        places, similar, repeats = await closest_replies(models, embedder=embedder)
        if not places:
            raise InputError(f"{task}: no item has a good reply of each of {', '.join(models)}; same limit and epochs?")
        closest = similar.max(axis=1)
        estimate = clustered_mean(closest, [sample for sample, _, _ in places], interval="t")
        seen = set[Place]().union(*models.values())
        rows.append(
            SimilarityRow(
                task=task,
                closest=estimate.value,
                low=estimate.low,
                high=estimate.high,
                variance=float(closest.var(ddof=1)) if len(closest) > 1 else float("nan"),
                pairwise=float(similar.mean()),
                repeat=float(repeats.mean()) if len(repeats) else float("nan"),
                items=len({sample for sample, _, _ in places}),
                draws=len(places),
                left_out=len(seen) - len(places),
                models=tuple(models),
                embedder=embedder,
                paper=_printed(task),
            )
        )
        items += [(task, *place, float(value)) for place, value in zip(places, closest, strict=True)]
    return rows, pd.DataFrame(items, columns=["task", "item", "epoch", "act", "closest"])


def _printed(row: str) -> float | None:
    task = row.partition(",")[0]
    return TABLE_1[task].closest if task in TABLE_1 else None


def _good_replies(run: Run, acts: Sequence[str] | None) -> dict[Place, str]:
    if why := lost_replies(run.header):
        raise InputError(why)
    return {
        (str(sample.id), sample.epoch, act): reply.text
        for sample in run.read_samples()
        if sample.error is None
        for act, reply in record_of(sample).acts.items()
        if (acts is None or act in acts) and not reply.problem
    }


def draw_diversity(rows: Sequence[SimilarityRow]) -> Picture:
    """A row a task: the closest two models with an interval, all pairs, two draws of one model, and the paper's."""

    def marks(row: SimilarityRow) -> dict[str, Estimate]:
        alone = {"all pairs": row.pairwise, "two draws of one model": row.repeat}
        alone |= {} if row.paper is None else {"the paper's closest two": row.paper}
        points = {name: Estimate(x, math.nan, math.nan, row.items, "item") for name, x in alone.items()}
        closest = Estimate(row.closest, row.low, row.high, row.items, "item")
        return {"closest two": closest} | {name: e for name, e in points.items() if not math.isnan(e.value)}

    return interval_rows(
        "diversity",
        {row.task: marks(row) for row in rows},
        caption="Mean similarity of two replies to an item (Table 1).",
        axis=f"cosine similarity by {rows[0].embedder}",
    )


def diversity_section(found: Sequence[Run], *, embedder: str) -> tuple[list[Section], dict[str, pd.DataFrame]]:
    """Table 1 as a section and its tables, or why there is none; no section where no task has two models.

    Args:
        found: Runs of matrix tasks, and of open answers.
        embedder: What makes vectors of the replies; where it cannot be had, or must be fetched, the section says so.
    """
    tables = dict[str, pd.DataFrame]()
    try:
        drawn = replies_of(Runs(list(found)))
        if why := unfetched(embedder):
            raise PrerequisiteError(why)
        rows, items = anyio.run(lambda: measure(drawn.replies, embedder=embedder))
    except NoLogs:
        return [], {}
    except (ValueError, PrerequisiteError) as error:
        blocks: list[Block] = [f"Not measured: {error}"]
    else:
        tables = {"diversity": diversity_table(rows), "diversity-items": items}
        blocks = _blocks(rows, drawn, embedder)
    return [Section(TITLE, blocks, name="diversity")], tables


def _blocks(rows: Sequence[SimilarityRow], drawn: Drawn, embedder: str) -> list[Block]:
    intro = INTRO.format(embedder=embedder, paper=PI)
    return [intro, _shown(rows), *drawn.settings, Figures([draw_diversity(rows)]), *set_aside(drawn.ignored)]


TITLE = "Do the models answer alike?"


def not_measured(samples: int) -> Section:
    """The section of a report of more samples than are embedded unasked."""
    text = f"Not measured: {samples:,} samples of replies take minutes to embed. Give --embedder to measure it."
    return Section(TITLE, [text], name="diversity")


INTRO = Markup(
    "The closest two models' replies to each item, by {embedder} ({paper}, Table 1). Where replies of different models "
    "are similar, another model can be predicted by what all of them say, and a high score alone does not show "
    "introspection. The paper's numbers are of its own models, data and embedder, and of sampled replies: compare rows "
    "“sampled at” (selfprobe/open_answers) with them. Its variances cannot be variances of these similarities: "
    "values in [−1, 1] with mean 0.88 have at most 0.23, and 0.31 is printed."
)


def _shown(rows: Sequence[SimilarityRow]) -> Table:
    return Table(
        rows,
        (
            Column("task", "task"),
            estimated(
                "closest two [95 % interval]", lambda row: Estimate(row.closest, row.low, row.high, row.items, "item")
            ),
            Column("variance", "variance", number),
            Column("all pairs", "pairwise", number),
            Column("two draws of one model", "repeat", number),
            Column("paper", "paper", number),
            Column("items", "items", str),
            Column("draws", "draws", str),
            Column("draws left out", "left_out", str),
            Column("models", lambda row: len(row.models), str),
        ),
    )


def diversity_lines(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """A line a task, and the models that it is of; what the page shows where nothing was measured."""
    if "diversity" not in tables:
        return ["Not measured; the page says why."]
    table = tables["diversity"]
    rows = [
        f"{row.task}: closest two {row.closest:.2f} [{row.low:.2f}, {row.high:.2f}] ({row.items} items)"
        for row in table.itertuples()
    ]
    return [*rows, f"models: {table.models[0]}; embedder: {table.embedder[0]}"]


def diversity_table(rows: Sequence[SimilarityRow]) -> pd.DataFrame:
    """Table 1 as a table, a row a task."""
    return pd.DataFrame([{**asdict(row), "models": ", ".join(row.models)} for row in rows])
