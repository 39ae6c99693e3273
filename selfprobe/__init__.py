"""selfprobe: measures what a language model knows about itself.

Each command's study is a class; its fields are the options, `run()` asks what is not in the logs
yet and returns the page, with its answer in `page.lines` and its tables in `page.frames`:

>>> from selfprobe import Matrix
>>> study = Matrix(models="planted/ada,planted/bo,planted/cy", tasks="kth_word", limit=5)
>>> [cost.calls for cost in study.plan().costs]
[25, 25, 25]

`decisions` is every decision of some logs as a table. The probes are in `selfprobe.probes`, what
task files import in `selfprobe.task`.
"""

from collections.abc import Iterable
from importlib import import_module
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from selfprobe.studies.awareness.study import Awareness as Awareness
    from selfprobe.studies.card import Realism as Realism
    from selfprobe.studies.check import Check as Check
    from selfprobe.studies.cues import Cues as Cues
    from selfprobe.studies.effect import Noticing as Noticing
    from selfprobe.studies.features import Features as Features
    from selfprobe.studies.induce import Induce as Induce
    from selfprobe.studies.inject import Inject as Inject
    from selfprobe.studies.inside import Inside as Inside
    from selfprobe.studies.matrix.study import Matrix as Matrix
    from selfprobe.studies.outcome import Outcome as Outcome
    from selfprobe.studies.preferences.study import Preferences as Preferences
    from selfprobe.studies.probe_run import ProbeRun as ProbeRun
    from selfprobe.studies.read import Read as Read
    from selfprobe.studies.rewrite import Rewriting as Rewriting
    from selfprobe.studies.scan import Scan as Scan
    from selfprobe.studies.turns import Turns as Turns

STUDY_MODULES = {
    "Awareness": "awareness.study",
    "Check": "check",
    "Cues": "cues",
    "Features": "features",
    "Induce": "induce",
    "Inject": "inject",
    "Inside": "inside",
    "Matrix": "matrix.study",
    "Noticing": "effect",
    "Outcome": "outcome",
    "Preferences": "preferences.study",
    "ProbeRun": "probe_run",
    "Read": "read",
    "Realism": "card",
    "Rewriting": "rewrite",
    "Scan": "scan",
    "Turns": "turns",
}
"""Study → its module in `selfprobe.studies`."""

__all__ = ["decisions", *STUDY_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """A study, imported when it is asked for: Inspect alone takes seconds."""
    if name not in STUDY_MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; it has {', '.join(sorted(__all__))}"
        )
    return getattr(import_module(f"{__name__}.studies.{STUDY_MODULES[name]}"), name)


def decisions(logs: "str | PathLike[str] | Iterable[str | PathLike[str]]") -> "pd.DataFrame":
    """Every decision in logs of selfprobe, one a row, as `selfprobe report LOGS --rows FILE` has
    them: what was asked of whom, what was predicted, what is true, the score, or why there is none.

    Columns: log, task, target, observer, status, item, epoch, input, then the fields of a decision
    (key, value, unscored, truth, …), settings, run.
    `attrs["aside"]` has the logs that do not count, each with its reason.

    Args:
        logs: A log, a folder of logs, or several of them.

    Raises:
        NoLogs: No log holds a decision.
        InputError: A path does not exist.
    """
    from selfprobe.studies.report import decision_rows

    paths = [logs] if isinstance(logs, str | PathLike) else logs
    rows, ignored_logs = decision_rows([fspath(path) for path in paths])
    rows.attrs["aside"] = ignored_logs
    return rows
