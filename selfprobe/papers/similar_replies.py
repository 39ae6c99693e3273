"""Do models answer alike? The closest two models' replies to each item (IntrospectBench's Table 1).

Where replies of different models are alike, another model can be predicted by what all of them say,
and a high score alone does not show introspection. Paper: averages of the cosine similarity of the
closest two of 11 models' unconstrained replies, and of a variance; of what is not said
(`introspectbench_printed.TABLE_1`). Here: mean and variance over draws of the largest similarity
that two models' replies have, of the items that all models answered, the others are counted; beside
it how alike all pairs of models are, and two draws of one model (`repeat`): two models are distinct
where they differ more than one model does from itself. A row "kth_word, sampled at 1" is of
`open_answers`, as the paper's; a row "kth_word" of what a matrix recorded, at the task's own
temperature and limit.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from selfprobe.embed import DEFAULT_EMBEDDER, Vectors, embed, require
from selfprobe.errors import InputError, NoLogs
from selfprobe.logs import Run, Runs, first_of, read_best, target_of
from selfprobe.page import Heading, Picture
from selfprobe.page.plots import interval_rows
from selfprobe.papers.introspectbench_printed import TABLE_1, PrintedAgreement
from selfprobe.solvers.record import record_of
from selfprobe.stats.estimate import Estimate, clustered_mean
from selfprobe.studies.matrix.table import MatrixCell, choose_setting
from selfprobe.study._registry import measures
from selfprobe.text import busy

OPEN_TASK = "open_answers"
"""The task of sampled, whole replies."""

NOT_PRINTED = PrintedAgreement(math.nan, math.nan, 0)
"""Numbers of a task that is not in the paper's Table 1."""

Place = tuple[str, int, str]
"""Sample id, epoch and act."""
Replies = dict[str, dict[str, dict[Place, str]]]
"""Task → model → its good replies."""


@dataclass(frozen=True)
class SimilarityRow:
    """Similarity of the models' replies."""

    task: Annotated[str, Heading("task", "Task, and how its replies were sampled.")]
    closest: Annotated[
        float,
        Heading("closest two", "Mean cosine similarity of the two models that answer most alike."),
    ]
    low: Annotated[float, Heading("from", "Lower end of its 95 % interval, clustered by sample.")]
    high: Annotated[float, Heading("to", "Upper end of its 95 % interval, clustered by sample.")]
    variance: Annotated[
        float, Heading("variance", "Variance of the closest similarity over draws.")
    ]
    pairwise: Annotated[
        float, Heading("all pairs", "Mean cosine similarity over all pairs of models.")
    ]
    repeat: Annotated[
        float,
        Heading(
            "two draws of one model", "Mean cosine similarity of two successive draws of one model."
        ),
    ]
    paper: Annotated[
        float, Heading("paper", "The number that the paper prints, of its own models.")
    ]
    paper_variance: Annotated[
        float,
        Heading("paper's variance", "The variance that the paper prints; of what it does not say."),
    ]
    items: Annotated[
        int, Heading("items", "Samples to which every model gave a reply without a problem.")
    ]
    draws: Annotated[
        int,
        Heading(
            "draws", "Replies of each model that were compared: one per item, prompt and epoch."
        ),
    ]
    left_out: Annotated[
        int, Heading("draws left out", "Draws that some model lacks, such as refusals.")
    ]
    models: Annotated[str, Heading("models", "Models that were compared.", on_page=False)]
    embedder: Annotated[
        str, Heading("embedder", "Source of the vectors of the replies.", on_page=False)
    ]


@dataclass(frozen=True)
class DrawSimilarity:
    """Closest similarity of each draw."""

    task: Annotated[str, Heading("task", "Task, and how its replies were sampled.")]
    item: Annotated[str, Heading("item", "Id of the sample.")]
    epoch: Annotated[int, Heading("epoch", "Repetition of the sample.")]
    act: Annotated[str, Heading("act", "Prompt that the reply is to.")]
    closest: Annotated[
        float, Heading("closest two", "Largest cosine similarity of two models' replies.")
    ]


@dataclass(frozen=True)
class Drawn:
    """Replies of models."""

    replies: Replies
    """Good replies, of the tasks that two models or more have."""
    ignored: Mapping[str, str]
    """Log → why it is not used."""
    settings: Sequence[str]
    """A line for each row with runs of several settings: which of them counts, and how to choose.
    """


def replies_of(logged_runs: Runs, paths: Sequence[str] = ()) -> Drawn:
    """Good replies by task, model and place; a row is of one setting (`choose_setting`).

    Args:
        logged_runs: Runs of matrix tasks, and of open answers.
        paths: Paths that were searched, for messages.

    Raises:
        NoLogs: Fewer than two models in every task.
    """
    choice = choose_setting(_cells(logged_runs.finished))
    ignored = {**logged_runs.set_aside_reasons, **choice.difference_by_unused_log}
    replies_by_task: dict[str, dict[str, dict[Place, str]]] = defaultdict(dict)
    for (row, model, _), run in sorted(choice.runs.items(), key=lambda entry: entry[0]):
        acts = None if run.identity.task == OPEN_TASK else measures()[row].acts
        replies = read_best(run, partial(_good_replies, acts=acts), ignored)
        if replies is not None:
            replies_by_task[row][model] = replies

    compared = {row: by_model for row, by_model in replies_by_task.items() if len(by_model) > 1}
    if not compared:
        task_texts = [f"{row}: {', '.join(by_model)}" for row, by_model in replies_by_task.items()]
        found_text = "; ".join(task_texts) or "no finished logs"
        expected_tasks = ", ".join([*measures(), OPEN_TASK])
        place_text = f" in {', '.join(paths)}" if paths else ""
        raise NoLogs(
            f"expected finished logs of two or more models on one of {expected_tasks}{place_text}; "
            f"got {found_text}{first_of(ignored)}"
        )
    setting_lines = [
        f"{row}: {sentence}" for row, sentence in choice.settings.items() if row in compared
    ]
    return Drawn(compared, ignored, setting_lines)


def _cells(finished_runs: Sequence[Run]) -> dict[MatrixCell, list[Run]]:
    """(row, target, target) → the target's runs on itself; where there is none, its runs with other
    observers.
    """
    cells: dict[MatrixCell, list[Run]] = defaultdict(list)
    own_runs_first = sorted(
        finished_runs, key=lambda run: target_of(run.header) != run.identity.model
    )
    for run in own_runs_first:
        target = target_of(run.header)
        cell = (_row_of(run), target, target)
        has_own_run = any(earlier.identity.model == target for earlier in cells[cell])
        if run.identity.model == target or not has_own_run:
            cells[cell].append(run)
    return cells


def _row_of(run: Run) -> str:
    """The row that a log belongs to: its task, or whose prompts it asked and how."""
    if run.identity.task != OPEN_TASK:
        return run.identity.task
    metadata = run.header.eval.metadata or {}
    return f"{metadata['of']}, sampled at {metadata['temperature']:g}"


async def closest_replies(
    models: Mapping[str, Mapping[Place, str]], *, embedder: str
) -> tuple[list[Place], Vectors, Vectors]:
    """The draws that all models have, the similarity of each pair of models there `[draw, pair]`,
    and that of each model's successive draws of one reply `[model and draw]`.
    """
    places = sorted(set.intersection(*(set(replies) for replies in models.values())))
    if not places:
        return [], np.empty((0, 0)), np.empty(0)
    texts = [replies[place] for replies in models.values() for place in places]
    vectors = (await embed(texts, model=embedder)).reshape(len(models), len(places), -1)
    similarity_of_pairs = [
        np.einsum("id,id->i", vectors_a, vectors_b)
        for vectors_a, vectors_b in itertools.combinations(vectors, 2)
    ]
    index_of_place = {place: index for index, place in enumerate(places)}
    repeats = []
    for (item, epoch, act), index in index_of_place.items():
        earlier = index_of_place.get((item, epoch - 1, act))
        if earlier is not None:
            repeats += [model_vectors[earlier] @ model_vectors[index] for model_vectors in vectors]
    return places, np.stack(similarity_of_pairs, axis=1), np.array(repeats)


async def measure_similarity(
    replies: Replies, *, embedder: str = DEFAULT_EMBEDDER
) -> tuple[list[SimilarityRow], list[DrawSimilarity]]:
    """Table 1 of `replies_of`, and the closest similarity of each draw.

    Raises:
        InputError: No item of a task was answered by all its models.
        PrerequisiteError: The embedder cannot be had; with what to install or to pass.
    """
    embedder = require(embedder)
    rows = list[SimilarityRow]()
    draws = list[DrawSimilarity]()
    for task, replies_by_model in replies.items():
        busy.set_stage(f"{task}: similarity of replies")
        places, similarities, repeats = await closest_replies(replies_by_model, embedder=embedder)
        if not places:
            names = ", ".join(replies_by_model)
            raise InputError(
                f"{task}: no item has a good reply of each of {names}; same limit and epochs?"
            )
        closest = similarities.max(axis=1)
        samples = [sample for sample, _, _ in places]
        estimate = clustered_mean(closest, samples, interval="t")
        variance = float(closest.var(ddof=1)) if len(closest) > 1 else math.nan
        repeat_mean = float(repeats.mean()) if len(repeats) else math.nan
        all_places = set[Place]().union(*replies_by_model.values())
        printed = TABLE_1.get(task.partition(",")[0], NOT_PRINTED)
        rows.append(
            SimilarityRow(
                task=task,
                closest=estimate.value,
                low=estimate.low,
                high=estimate.high,
                variance=variance,
                pairwise=float(similarities.mean()),
                repeat=repeat_mean,
                paper=printed.closest,
                paper_variance=printed.variance,
                items=len(set(samples)),
                draws=len(places),
                left_out=len(all_places) - len(places),
                models=", ".join(replies_by_model),
                embedder=embedder,
            )
        )
        for place, similarity in zip(places, closest, strict=True):
            draws.append(DrawSimilarity(task, *place, float(similarity)))
    return rows, draws


def _good_replies(run: Run, acts: Sequence[str] | None) -> dict[Place, str]:
    """Replies without a problem, of these acts or of all."""
    replies: dict[Place, str] = {}
    for sample in run.read_samples():
        if sample.error is not None:
            continue
        for act, reply in record_of(sample).acts.items():
            if (acts is None or act in acts) and not reply.problem:
                replies[str(sample.id), sample.epoch, act] = reply.text
    return replies


def similarity_picture(rows: Sequence[SimilarityRow]) -> Picture:
    """A row a task: the closest two models with an interval, all pairs, two draws of one model, and
    the paper's.
    """
    return interval_rows(
        "table1",
        {row.task: _marks(row) for row in rows},
        caption="Mean similarity of two replies to an item (Table 1).",
        axis=f"cosine similarity by {rows[0].embedder}",
    )


def _marks(row: SimilarityRow) -> dict[str, Estimate]:
    marks = {"closest two": Estimate(row.closest, row.low, row.high, row.items, "item")}
    values = {
        "all pairs": row.pairwise,
        "two draws of one model": row.repeat,
        "the paper's closest two": row.paper,
    }
    for name, value in values.items():
        if not math.isnan(value):
            marks[name] = Estimate(value, math.nan, math.nan, row.items, "item")
    return marks
