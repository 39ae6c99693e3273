"""Figure 3 of paper 003: how far prediction and gut answer are from the conclusion, by the effort of the reasoning."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from selfprobe.errors import InputError
from selfprobe.logs import Run, effort_of, first_of, informed_of, read_best, target_of
from selfprobe.page import Figures, Picture, Section, interval_columns, set_aside, shown
from selfprobe.page.plots import curves, cut_name
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.dilemma import dilemma_estimates, dilemmas_of, infinite_kl
from selfprobe.scorers.frames import split
from selfprobe.solvers.negotiate import EFFORTS as LADDER
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.matrix.table import NOT_COMPARED, SWEPT, Cell, ChosenRuns, choose_setting

EFFORTS = ("default", *LADDER)
"""Efforts in the figure's order; "default" is a run without the argument."""

TASK = "ethical_dilemma"
KINDS = ("kl_predicted", "kl_direct", "kl_gain")


@dataclass(frozen=True)
class EffortPoint:
    """One run of the dilemma task. Divergences are the paper's, in nats: of each dilemma's means, as they are.

    Means are over the dilemmas at which both are finite.
    """

    target: str
    observer: str
    effort: str
    dataset_sha256: str
    kl_predicted: Estimate
    """KL(p‖p')."""
    kl_direct: Estimate
    """KL(p‖p*)."""
    kl_gain: Estimate
    """KL(p‖p*) - KL(p‖p'), paired by dilemma."""
    infinite: int
    """Number of dilemmas that are left out, since one of both is infinite there."""
    log: str


def effort_points(runs: Sequence[Run]) -> tuple[list[EffortPoint], dict[str, str]]:
    """A point for each models and effort of ethical_dilemma's finished runs, of one setting (`cells.choose_setting`).

    Args:
        runs: Runs of this task, and of others.

    Returns:
        The points, and why runs are set aside that are of another setting, cannot be read or have no scored dilemma, by
        log.

    Raises:
        InputError: There is no such run.
    """
    choice = _chosen(runs)
    points, ignored = list[EffortPoint](), dict(choice.aside)
    for _, run in sorted(choice.runs.items(), key=lambda pair: (*pair[0][:3], EFFORTS.index(pair[0][3]))):
        point = read_best(run, _point, ignored)
        points += [point] if point else []
    if not points:
        raise InputError(f"no finished run of ethical_dilemma among {len(runs)} logs{first_of(ignored)}")
    return points, ignored


def sweeps(runs: Sequence[Run]) -> list[Run]:
    """The runs of those models that ran ethical_dilemma at two efforts or more: what there is a curve of."""
    efforts = Counter(cell[:3] for cell in _chosen(runs).runs)
    return [run for cell, same in _cells(runs).items() if efforts[cell[:3]] > 1 for run in same]


def _chosen(runs: Sequence[Run]) -> ChosenRuns:
    return choose_setting(_cells(runs), free={*NOT_COMPARED, SWEPT[TASK]})


def _cells(runs: Sequence[Run]) -> dict[Cell, list[Run]]:
    """(TASK, target, observer, effort) → its finished runs."""
    cells: dict[Cell, list[Run]] = {}
    for run in runs:
        if run.identity.task == TASK and run.finished and not informed_of(run.header):
            cell = (TASK, target_of(run.header), run.identity.model, effort_of(run.header) or EFFORTS[0])
            cells.setdefault(cell, []).append(run)
    return cells


def _point(run: Run) -> EffortPoint:
    decisions, _ = split([(str(sample.id), d) for sample in run.summaries for d in last_decisions(sample.scores)])
    by_item = dilemmas_of(decisions) if decisions else {}
    dilemmas = list(by_item.values())
    means = dilemma_estimates(dilemmas, list(by_item))
    if means and "kl_gain" not in means:
        raise InputError(f"{run.log}: KL is infinite at every dilemma, so there is nothing to draw")
    if not means:
        raise InputError(f"{run.log}: no dilemma is scored, so there is nothing to draw; see its unscored reasons")
    return EffortPoint(
        target=target_of(run.header),
        observer=run.identity.model,
        effort=effort_of(run.header) or EFFORTS[0],
        dataset_sha256=(run.header.eval.metadata or {})["dataset_sha256"],
        kl_predicted=means["kl_predicted"],
        kl_direct=means["kl_direct"],
        kl_gain=means["kl_gain"],
        infinite=infinite_kl(dilemmas)["either"],
        log=run.log,
    )


def effort_pictures(points: Sequence[EffortPoint]) -> list[Picture]:
    """Both divergences by effort with 95 % intervals, a picture for each pair of models."""
    run_efforts = {point.effort for point in points}
    efforts = [effort for effort in EFFORTS if effort in run_efforts]
    pairs = list(dict.fromkeys((point.target, point.observer) for point in points))
    pictures = []
    for number, (target, observer) in enumerate(pairs, start=1):
        pair_points = [point for point in points if (point.target, point.observer) == (target, observer)]
        places = [float(efforts.index(point.effort)) for point in pair_points]
        pair_name = target if target == observer else f"{observer} on {target}"
        picture = curves(
            "effort" if len(pairs) == 1 else f"effort-{number}",
            {
                "KL(p‖p*), gut answer": (places, [point.kl_direct for point in pair_points]),
                "KL(p‖p′), prediction": (places, [point.kl_predicted for point in pair_points]),
            },
            caption=f"{pair_name}: how far the predicted and the gut answer are from the conclusion, by effort (the "
            "paper's Figure 3).",
            across="effort of the reasoning",
            up="mean KL over dilemmas (nats)",
            title=cut_name(pair_name, longest=50),
            ticks={float(place): effort for place, effort in enumerate(efforts)},
            alt=f"KL in nats. {'; '.join(map(_point_text, pair_points))}",
        )
        pictures.append(picture)
    return pictures


def _point_text(point: EffortPoint) -> str:
    infinite = f" ({point.infinite} infinite left out)" if point.infinite else ""
    prediction = f"prediction {shown(point.kl_predicted)}, gut answer {shown(point.kl_direct)}"
    return f"{point.observer} on {point.target} at {point.effort}: {prediction}{infinite}"


def effort_sections(found: Sequence[Run]) -> tuple[list[Section], dict[str, pd.DataFrame]]:
    """Figure 3 and its table, where a model ran ethical_dilemma at several efforts; or why it cannot be drawn."""
    runs = sweeps(found)
    if not runs:
        return [], {}
    title = "ethical_dilemma by effort of the reasoning"
    try:
        points, ignored = effort_points(runs)
    except InputError as error:
        return [Section(title, [f"Not drawn: {error}."], name="effort", menu="effort")], {}
    numbers = [
        {key: x for name in KINDS for key, x in interval_columns(name, getattr(p, name)).items()} for p in points
    ]
    table = pd.DataFrame([vars(point) | columns for point, columns in zip(points, numbers, strict=True)])
    blocks = [Figures(effort_pictures(points)), *set_aside(ignored)]
    return [Section(title, blocks, name="effort", menu="effort")], {"effort": table}
