"""What `selfprobe probe run` says in the terminal: the plan before, the findings after."""

from pathlib import Path
from typing import Any

from selfprobe.preferences.findings import LEAD
from selfprobe.preferences.findings import findings as sentences
from selfprobe.preferences.page import best, methods, text
from selfprobe.probes import plan
from selfprobe.probes.run import check_sets
from selfprobe.probes.splits import FitSettings
from selfprobe.probes.untrained import named
from selfprobe.safe import echo


def say_plan(
    judge: Any,
    sets: Any,
    settings: FitSettings,
    activations: Path,
    sizes: dict[str, Any],
    *,
    untrained: bool,
    scoring: bool | None,
    copies: int = 1,
) -> None:
    """Print what will be done and how long it takes; ValueError where too little can be read, or the disk is full.

    `copies`: of the model, which share the reading.
    """
    planned = plan.plan_harvest(judge, sets, activations, **sizes, scoring=scoring)
    control = plan.plan_harvest(named(judge), sets, activations, **sizes) if untrained else None
    echo(plan.plan_text(planned, control))
    check_sets(sets, settings, {name: planned_set.reasons for name, planned_set in planned.sets.items()})
    plan.check_disk(planned, control)
    echo(plan.time_text(judge, planned, control, copies))


def findings(tables: Any, settings: FitSettings) -> str:
    """What a run found: a sentence a probe, the methods, and what luck alone finds."""
    parts = [
        "\n".join([LEAD, *sentences(tables)]),
        text(methods(tables["methods"]).drop(columns="note")),
        f"Best layer and sign picked on the test half (leaks), and what luck alone finds so:\n{text(best(tables))}",
    ]
    if settings.leaks:
        parts.append(f"The preset {settings.name} lets test labels or test texts into the fit: not a measurement.")
    return "\n" + "\n\n".join(parts)
