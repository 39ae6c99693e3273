"""Figure 3 of paper 003: how far prediction and gut answer are from the conclusion, by the effort of the reasoning."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import click
from inspect_ai.log import EvalLog

from selfprobe import options
from selfprobe.errors import InputError
from selfprobe.introspect_tasks.ethical_dilemma import Effort
from selfprobe.logs import effort_of, found, summaries, target_of, task_of
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.dilemma_prediction import dilemmas_of, estimates
from selfprobe.stats.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EFFORTS = ("default", *get_args(Effort))
"""In the figure's order; "default" is a run without the argument."""


@dataclass(frozen=True)
class EffortPoint:
    """One run of the dilemma task. Divergences are means over dilemmas, in nats."""

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
    log: str


def effort_points(logs: Sequence[EvalLog]) -> list[EffortPoint]:
    """A point for each models and effort of finished runs of ethical_dilemma; of several such runs the last counts.

    Args:
        logs: Headers, of other tasks too.

    Raises:
        InputError: There is no such run, a run has no scored dilemma, or the runs are of different data sets.
    """
    runs = _runs(logs)
    if not runs:
        raise InputError(f"no finished run of ethical_dilemma among {len(logs)} logs")
    points = [_point(runs[run]) for run in sorted(runs)]
    if len({point.dataset_sha256 for point in points}) > 1:
        told = "; ".join(f"{point.log}: {point.dataset_sha256[:12]}" for point in points)
        raise InputError(f"the runs are of different data sets, so their means cannot be compared: {told}")
    return points


def sweeps(logs: Sequence[EvalLog]) -> list[EvalLog]:
    """The runs of those models that ran ethical_dilemma at two efforts or more: what there is a curve of."""
    runs = _runs(logs)
    pairs = Counter((target, observer) for target, observer, _ in runs)
    return [log for (target, observer, _), log in runs.items() if pairs[target, observer] > 1]


def _runs(logs: Sequence[EvalLog]) -> dict[tuple[str, str, int], EvalLog]:
    """(target, observer, index into EFFORTS) → its last finished run."""
    finished = [log for log in logs if task_of(log) == "ethical_dilemma" and log.status == "success"]
    return {
        (target_of(log), log.eval.model, EFFORTS.index(effort_of(log) or "default")): log
        for log in sorted(finished, key=lambda one: one.eval.created)
    }


def _point(log: EvalLog) -> EffortPoint:
    decisions = [
        (str(sample.id), decision) for sample in summaries(log.location) for decision in last_decisions(sample.scores)
    ]
    means = estimates(list(dilemmas_of(decisions).values())) if decisions else {}
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
        for name, label, marker, shift in (
            ("kl_direct", "KL(p‖p*), gut answer", "s", 0.06),
            ("kl_predicted", "KL(p‖p′), prediction", "o", -0.06),
        ):
            estimated: list[Estimate] = [getattr(point, name) for point in own]
            panel.errorbar(
                [efforts.index(point.effort) + shift for point in own],
                [e.value for e in estimated],
                yerr=[[e.value - e.low for e in estimated], [e.high - e.value for e in estimated]],
                marker=marker,
                capsize=3,
                label=label,
            )
        panel.set_xticks(range(len(efforts)), efforts)
        panel.set_xlabel("effort of the reasoning")
        panel.set_title(target if target == observer else f"{observer} on {target}", fontsize="medium")
    panels[0].set_ylabel("mean KL over dilemmas (nats)")
    panels[0].set_ylim(bottom=0)
    panels[-1].legend(frameon=False, fontsize="small")
    return figure


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", required=True, help="The figure's file: .png, .svg or .pdf.")
@options.as_json
def effort(logs: tuple[str, ...], out: str, as_json: bool) -> None:
    """Draw KL(p‖p') and KL(p‖p*) by reasoning effort from LOGS of ethical_dilemma, one run an effort (-T effort=…)."""
    if not out.endswith((".png", ".svg", ".pdf")):
        raise click.BadParameter(f"expected a .png, .svg or .pdf file, got {out!r}", param_hint="--out")
    points = effort_points(found(logs).headers)
    draw(points).savefig(out, dpi=200)
    if as_json:
        options.echo_json(points)
        return
    for point in points:
        numbers = "  ".join(f"{n} {_shown(getattr(point, n))}" for n in ("kl_predicted", "kl_direct", "kl_gain"))
        click.echo(f"{point.observer} on {point.target}  {point.effort:8} {numbers}  n={point.kl_gain.n}")
    click.echo(f"figure in {out}")


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
