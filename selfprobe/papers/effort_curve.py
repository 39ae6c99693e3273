"""IntrospectBench's Figure 3: how far prediction and gut answer are from the conclusion, by the
effort of the reasoning.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from selfprobe.errors import InputError
from selfprobe.logs import (
    Run,
    effort_of,
    first_of,
    informed_of,
    item_decisions,
    read_best,
    target_of,
)
from selfprobe.page import Heading, Picture, interval_text
from selfprobe.page.plots import curves, cut_name
from selfprobe.scorers.dilemma import dilemma_estimates, dilemmas_of, infinite_kl
from selfprobe.scorers.frames import split
from selfprobe.solvers.negotiate import EFFORTS as LADDER
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.matrix.sections import DIRECT_DIVERGENCE, PREDICTED_DIVERGENCE
from selfprobe.studies.matrix.table import (
    NOT_COMPARED,
    SWEPT,
    ChosenRuns,
    MatrixCell,
    choose_setting,
)

EFFORTS = ("default", *LADDER)
"""Efforts in the figure's order; "default" is a run without the argument."""

TASK = "ethical_dilemma"


@dataclass(frozen=True)
class EffortPoint:
    """Divergence by effort of the reasoning.

    A run of the dilemma task. Divergences are the paper's, in nats: of each dilemma's means, as
    they are. Means are over the dilemmas at which both are finite.
    """

    target: Annotated[str, Heading("target", "Model whose conclusions are predicted.")]
    observer: Annotated[str, Heading("observer", "Model that predicts.")]
    effort: Annotated[str, Heading("effort", "Effort of the reasoning that was asked for.")]
    dataset_sha256: Annotated[str, Heading("data set", "Hash of the data set.", on_page=False)]
    kl_predicted: Annotated[Estimate, PREDICTED_DIVERGENCE]
    kl_direct: Annotated[Estimate, DIRECT_DIVERGENCE]
    kl_gain: Annotated[
        Estimate,
        Heading(
            "gut answer minus prediction",
            "KL(p‖p*) less KL(p‖p′) of the same dilemma: above 0 it is nearer.",
        ),
    ]
    infinite: Annotated[
        int, Heading("infinite", "Dilemmas whose divergence is infinite; they are left out.")
    ]
    log: Annotated[str, Heading("log", "Address of the log.", on_page=False)]


def effort_points(runs: Sequence[Run]) -> tuple[list[EffortPoint], dict[str, str]]:
    """A point for each models and effort of ethical_dilemma's finished runs, of one setting
    (`matrix.table.choose_setting`).

    Args:
        runs: Runs of this task, and of others.

    Returns:
        The points, and why runs are set aside that are of another setting, cannot be read or have
        no scored dilemma, by log.

    Raises:
        InputError: There is no such run.
    """
    choice = _chosen(runs)
    points = list[EffortPoint]()
    ignored = dict(choice.difference_by_unused_log)
    ordered_runs = sorted(
        choice.runs.items(), key=lambda entry: (*entry[0][:3], EFFORTS.index(entry[0][3]))
    )
    for _, run in ordered_runs:
        point = read_best(run, _point, ignored)
        if point is not None:
            points.append(point)
    if not points:
        raise InputError(
            f"no finished run of ethical_dilemma among {len(runs)} logs{first_of(ignored)}"
        )
    return points, ignored


def swept_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs of those models that ran ethical_dilemma at two efforts or more: what there is a
    curve of.
    """
    effort_counts = Counter(cell[:3] for cell in _chosen(runs).runs)
    sweep_runs = list[Run]()
    for cell, cell_runs in _cells(runs).items():
        if effort_counts[cell[:3]] > 1:
            sweep_runs += cell_runs
    return sweep_runs


def _chosen(runs: Sequence[Run]) -> ChosenRuns:
    return choose_setting(_cells(runs), free_arguments={*NOT_COMPARED, SWEPT[TASK]})


def _cells(runs: Sequence[Run]) -> dict[MatrixCell, list[Run]]:
    """(TASK, target, observer, effort) → its finished runs."""
    cells: dict[MatrixCell, list[Run]] = {}
    for run in runs:
        if run.identity.task != TASK or not run.finished or informed_of(run.header):
            continue
        effort = effort_of(run.header) or EFFORTS[0]
        cell = (TASK, target_of(run.header), run.identity.model, effort)
        cells.setdefault(cell, []).append(run)
    return cells


def _point(run: Run) -> EffortPoint:
    decisions, _ = split(item_decisions(run))
    dilemma_by_item = dilemmas_of(decisions) if decisions else {}
    dilemmas = list(dilemma_by_item.values())
    means = dilemma_estimates(dilemmas, list(dilemma_by_item))
    if means and "kl_gain" not in means:
        raise InputError(f"{run.log}: KL is infinite at every dilemma, so there is nothing to draw")
    if not means:
        raise InputError(
            f"{run.log}: no dilemma is scored, so there is nothing to draw; see its unscored "
            "reasons"
        )
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


def effort_picture(
    pair_points: Sequence[EffortPoint], all_points: Sequence[EffortPoint], *, stem: str
) -> Picture:
    """Both divergences of one pair of models by effort, with 95 % intervals.

    Args:
        pair_points: Points of the pair.
        all_points: Points of all pairs, whose efforts the axis has.
        stem: Stem of the picture's file.
    """
    run_efforts = {point.effort for point in all_points}
    efforts = [effort for effort in EFFORTS if effort in run_efforts]
    places = [float(efforts.index(point.effort)) for point in pair_points]
    target, observer = pair_points[0].target, pair_points[0].observer
    pair_name = target if target == observer else f"{observer} on {target}"
    direct_divergences = [point.kl_direct for point in pair_points]
    predicted_divergences = [point.kl_predicted for point in pair_points]
    effort_by_place = {float(place): effort for place, effort in enumerate(efforts)}
    return curves(
        stem,
        {
            "KL(p‖p*), gut answer": (places, direct_divergences),
            "KL(p‖p′), prediction": (places, predicted_divergences),
        },
        caption=(
            f"{pair_name}: how far the predicted and the gut answer are from the conclusion, by "
            "effort (the paper's Figure 3)."
        ),
        x_title="effort of the reasoning",
        y_title="mean KL over dilemmas (nats)",
        title=cut_name(pair_name, longest=50),
        ticks=effort_by_place,
        alt=f"KL in nats. {'; '.join(map(_point_text, pair_points))}",
    )


def _point_text(point: EffortPoint) -> str:
    infinite = f" ({point.infinite} infinite left out)" if point.infinite else ""
    prediction = f"prediction {interval_text(point.kl_predicted)}, gut answer {interval_text(point.kl_direct)}"
    return f"{point.observer} on {point.target} at {point.effort}: {prediction}{infinite}"
