"""Figure 3 of paper 003: how far prediction and gut answer are from the conclusion, by the effort
of the reasoning.
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
from selfprobe.page import Figures, Heading, Picture, RowTable, Section, interval_text, set_aside
from selfprobe.page.plots import curves, cut_name
from selfprobe.scorers.dilemma import dilemma_estimates, dilemmas_of, infinite_kl
from selfprobe.scorers.frames import split
from selfprobe.solvers.negotiate import EFFORTS as LADDER
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.matrix.table import NOT_COMPARED, SWEPT, Cell, ChosenRuns, choose_setting

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
    kl_predicted: Annotated[
        Estimate,
        Heading(
            "KL(p‖p′)", "How far the prediction is from the conclusions, in nats; 0 is the same."
        ),
    ]
    kl_direct: Annotated[
        Estimate,
        Heading(
            "KL(p‖p*)", "How far the answer without reasoning is from the conclusions, in nats."
        ),
    ]
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
    (`cells.choose_setting`).

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
    ignored = dict(choice.aside)
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


def sweeps(runs: Sequence[Run]) -> list[Run]:
    """The runs of those models that ran ethical_dilemma at two efforts or more: what there is a
    curve of.
    """
    effort_counts = Counter(cell[:3] for cell in _chosen(runs).runs)
    swept_runs = list[Run]()
    for cell, cell_runs in _cells(runs).items():
        if effort_counts[cell[:3]] > 1:
            swept_runs += cell_runs
    return swept_runs


def _chosen(runs: Sequence[Run]) -> ChosenRuns:
    return choose_setting(_cells(runs), free={*NOT_COMPARED, SWEPT[TASK]})


def _cells(runs: Sequence[Run]) -> dict[Cell, list[Run]]:
    """(TASK, target, observer, effort) → its finished runs."""
    cells: dict[Cell, list[Run]] = {}
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


def effort_pictures(points: Sequence[EffortPoint]) -> list[Picture]:
    """Both divergences by effort with 95 % intervals, a picture for each pair of models."""
    points_by_pair: dict[tuple[str, str], list[EffortPoint]] = {}
    for point in points:
        points_by_pair.setdefault((point.target, point.observer), []).append(point)
    run_efforts = {point.effort for point in points}
    efforts = [effort for effort in EFFORTS if effort in run_efforts]
    ticks = {float(place): effort for place, effort in enumerate(efforts)}

    pictures = list[Picture]()
    for number, ((target, observer), pair_points) in enumerate(points_by_pair.items(), start=1):
        places = [float(efforts.index(point.effort)) for point in pair_points]
        direct_estimates = [point.kl_direct for point in pair_points]
        predicted_estimates = [point.kl_predicted for point in pair_points]
        pair_name = target if target == observer else f"{observer} on {target}"
        point_texts = "; ".join(map(_point_text, pair_points))
        picture = curves(
            "effort" if len(points_by_pair) == 1 else f"effort-{number}",
            {
                "KL(p‖p*), gut answer": (places, direct_estimates),
                "KL(p‖p′), prediction": (places, predicted_estimates),
            },
            caption=(
                f"{pair_name}: how far the predicted and the gut answer are from the conclusion, "
                "by effort (the paper's Figure 3)."
            ),
            x_title="effort of the reasoning",
            y_title="mean KL over dilemmas (nats)",
            title=cut_name(pair_name, longest=50),
            ticks=ticks,
            alt=f"KL in nats. {point_texts}",
        )
        pictures.append(picture)
    return pictures


def _point_text(point: EffortPoint) -> str:
    infinite = f" ({point.infinite} infinite left out)" if point.infinite else ""
    prediction = f"prediction {interval_text(point.kl_predicted)}, gut answer {interval_text(point.kl_direct)}"
    return f"{point.observer} on {point.target} at {point.effort}: {prediction}{infinite}"


def effort_sections(runs: Sequence[Run]) -> tuple[list[Section], dict[str, RowTable]]:
    """Figure 3 and its table, where a model ran ethical_dilemma at several efforts; or why it
    cannot be drawn.
    """
    swept_runs = sweeps(runs)
    if not swept_runs:
        return [], {}
    title = "ethical_dilemma by effort of the reasoning"
    try:
        points, ignored = effort_points(swept_runs)
    except InputError as error:
        return [Section(title, [f"Not drawn: {error}."], name="effort", menu="effort")], {}
    blocks = [Figures(effort_pictures(points)), *set_aside(ignored)]
    return [Section(title, blocks, name="effort", menu="effort")], {
        "effort": RowTable(EffortPoint, points)
    }
