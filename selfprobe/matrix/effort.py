"""Figure 3 of paper 003: how far prediction and gut answer are from the conclusion, by the effort of the reasoning."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from inspect_ai.log import EvalLog

from selfprobe.errors import InputError
from selfprobe.header import effort_of, informed_of, target_of, task_of
from selfprobe.logs import summaries
from selfprobe.page import Figures, Picture, Section, set_aside, shown
from selfprobe.plots import dots, label
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.dilemma import dilemmas_of
from selfprobe.scorers.dilemma_prediction import estimates, infinite
from selfprobe.scorers.frames import split
from selfprobe.solvers.objection import EFFORTS as LADDER
from selfprobe.stats.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EFFORTS = ("default", *LADDER)
"""In the figure's order; "default" is a run without the argument."""

_Run = tuple[str, str, int]
"""Target, observer and index into EFFORTS."""


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
    """Dilemmas that are left out, since one of both is infinite there."""
    log: str


def effort_points(logs: Sequence[EvalLog]) -> tuple[list[EffortPoint], dict[str, str]]:
    """A point for each models and effort of finished runs of ethical_dilemma; of several such runs the last counts.

    Args:
        logs: Headers, of other tasks too.

    Returns:
        The points, and why runs are set aside that cannot be read or have no scored dilemma, by log.

    Raises:
        InputError: There is no such run, or the runs are of different data sets.
    """
    points: dict[_Run, EffortPoint] = {}
    ignored: dict[str, str] = {}
    for log in _finished(logs):
        if _run(log) not in points:
            try:
                points[_run(log)] = _point(log)
            except InputError as error:
                ignored[log.location] = str(error)
    if not points:
        told = "".join(f"; {why}" for why in list(ignored.values())[:3])
        raise InputError(f"no finished run of ethical_dilemma among {len(logs)} logs{told}")
    ordered = [points[run] for run in sorted(points)]
    if len({point.dataset_sha256 for point in ordered}) > 1:
        told = "; ".join(f"{point.log}: {point.dataset_sha256[:12]}" for point in ordered)
        raise InputError(f"the runs are of different data sets, so their means cannot be compared: {told}")
    return ordered, ignored


def sweeps(logs: Sequence[EvalLog]) -> list[EvalLog]:
    """The runs of those models that ran ethical_dilemma at two efforts or more: what there is a curve of."""
    finished = _finished(logs)
    efforts = Counter((target, observer) for target, observer, _ in {_run(log) for log in finished})
    return [log for log in finished if efforts[_run(log)[:2]] > 1]


def _finished(logs: Sequence[EvalLog]) -> list[EvalLog]:
    """The finished runs of ethical_dilemma, newest first."""
    ours = [
        log for log in logs if task_of(log) == "ethical_dilemma" and log.status == "success" and not informed_of(log)
    ]
    return sorted(ours, key=lambda log: str(log.eval.created), reverse=True)


def _run(log: EvalLog) -> _Run:
    return target_of(log), log.eval.model, EFFORTS.index(effort_of(log) or "default")


def _point(log: EvalLog) -> EffortPoint:
    decisions, _ = split(
        [(str(sample.id), d) for sample in summaries(log.location) for d in last_decisions(sample.scores)]
    )
    by_item = dilemmas_of(decisions) if decisions else {}
    dilemmas = list(by_item.values())
    means = estimates(dilemmas, list(by_item))
    if means and "kl_gain" not in means:
        raise InputError(f"{log.location}: KL is infinite at every dilemma, so there is nothing to draw")
    if not means:
        raise InputError(f"{log.location}: no dilemma is scored, so there is nothing to draw; see its unscored reasons")
    return EffortPoint(
        target=target_of(log),
        observer=log.eval.model,
        effort=effort_of(log) or "default",
        dataset_sha256=(log.eval.metadata or {})["dataset_sha256"],
        kl_predicted=means["kl_predicted"],
        kl_direct=means["kl_direct"],
        kl_gain=means["kl_gain"],
        infinite=infinite(dilemmas)["either"],
        log=log.location,
    )


def draw(points: Sequence[EffortPoint]) -> "Figure":
    """Both divergences by effort with 95 % intervals, a panel for each pair of models."""
    from matplotlib.figure import Figure

    pairs = list(dict.fromkeys((point.target, point.observer) for point in points))
    efforts = [effort for effort in EFFORTS if any(point.effort == effort for point in points)]
    figure = Figure(figsize=(1.5 + 4 * len(pairs), 3.6), layout="constrained")
    panels = figure.subplots(1, len(pairs), sharey=True, squeeze=False)[0]
    for panel, (target, observer) in zip(panels, pairs, strict=True):
        own = [point for point in points if (point.target, point.observer) == (target, observer)]
        at = np.array([efforts.index(point.effort) for point in own])
        direct, predicted = [point.kl_direct for point in own], [point.kl_predicted for point in own]
        dots(panel, at + 0.06, direct, name="KL(p‖p*), gut answer", colour="C0", marker="s", upright=True, joined=True)
        dots(panel, at - 0.06, predicted, name="KL(p‖p′), prediction", colour="C1", upright=True, joined=True)
        panel.set_xticks(range(len(efforts)), efforts)
        panel.set_xlabel("effort of the reasoning")
        panel.set_title(label(target if target == observer else f"{observer} on {target}"), fontsize="medium")
    panels[0].set_ylabel("mean KL over dilemmas (nats)")
    panels[0].set_ylim(bottom=0)
    panels[-1].legend(frameon=False, fontsize="small")
    return figure


def effort_sections(logs: Sequence[EvalLog]) -> list[Section]:
    """Figure 3, where a model has runs of ethical_dilemma at several efforts; or why it cannot be drawn."""
    runs = sweeps(logs)
    if not runs:
        return []
    title = "ethical_dilemma by effort of the reasoning"
    try:
        points, ignored = effort_points(runs)
    except InputError as error:
        return [Section(title, [f"Not drawn: {error}."], name="effort", menu="effort")]
    told = "; ".join(
        f"{p.observer} on {p.target} at {p.effort}: prediction {shown(p.kl_predicted)}, gut answer {shown(p.kl_direct)}"
        f"{f' ({p.infinite} infinite left out)' if p.infinite else ''}"
        for p in points
    )
    caption = "How far the predicted and the gut answer are from the conclusion, by effort (the paper's Figure 3)."
    picture = Picture("effort", f"KL in nats. {told}", caption, draw(points))
    return [Section(title, [Figures([picture]), *set_aside(ignored)], name="effort", menu="effort")]
