"""A study whose first wave broke off and that was started again has the numbers of an undisturbed one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from inspect_ai.log import list_eval_logs

from selfprobe.logs import samples
from selfprobe.logs.packed import REFERENCE
from selfprobe.studies.awareness.runs import load_awareness
from selfprobe.studies.awareness.study import Awareness
from selfprobe.studies.matrix.study import Matrix
from selfprobe.studies.matrix.table import read_matrices as load_matrix
from selfprobe.study.waves import RunSettings

QUIET = RunSettings(display="none", max_retries=0)
ADA, BO = "planted/ada?access=.9&common=.2&malformed=.1", "planted/bo?access=.2&common=.2"


DYING = """
import os, sys
from selfprobe.providers.planted import PlantedAPI
from selfprobe.studies.matrix.study import Matrix
from selfprobe.studies.awareness.study import Awareness
from selfprobe.study.waves import RunSettings

calls, answer = [0], PlantedAPI.generate
async def generate(self, **given):
    calls[0] += 1
    if calls[0] > {after}:
        os._exit(9)  # as SIGKILL does: nothing is flushed, closed or told
    return await answer(self, **given)
PlantedAPI.generate = generate
{study}
"""


def killed(study: str, *, after: int) -> None:
    """Run a study in a process of its own, which dies after so many calls."""
    done = subprocess.run([sys.executable, "-c", DYING.format(study=study, after=after)], timeout=300, check=False)
    assert done.returncode == 9, "it was to die on the way"


def no_reference_in(folder: Path) -> None:
    seen = 0
    for info in list_eval_logs(str(folder), recursive=True):
        for sample in samples(info.name):
            for name, replies in sample.store.items():
                for reply in replies.values() if name.endswith((":acts", ":answers")) else ():
                    seen += 1
                    assert not reply["text"].startswith(REFERENCE), info.name
    assert seen


@pytest.mark.slow(12)
def test_every_cell_of_a_matrix_is_that_of_an_undisturbed_one(tmp_path: Path) -> None:
    given = {"models": [ADA, BO], "tasks": ["heads_up"], "limit": 16}
    settings = RunSettings(display="none", max_connections=4)
    killed(f"Matrix(**{given!r}, log_dir={str(tmp_path / 'broken')!r}, settings={settings!r}).ask()", after=52)
    for folder in ("whole", "broken"):
        assert Matrix(**given, log_dir=str(tmp_path / folder), settings=QUIET).ask()
    no_reference_in(tmp_path / "broken")
    expected, found = (load_matrix([str(tmp_path / folder)]) for folder in ("whole", "broken"))
    keys = ["task", "target", "observer", "item", "epoch", "key"]
    pd.testing.assert_frame_equal(
        found.decisions.sort_values(keys, ignore_index=True), expected.decisions.sort_values(keys, ignore_index=True)
    )
    assert len(found.cells) == 4 and set(found.cells.status) == {"complete"}


@pytest.mark.slow(11)
def test_every_verdict_of_an_awareness_run_is_that_of_an_undisturbed_one(tmp_path: Path) -> None:
    def study(folder: str) -> dict[str, Any]:
        given = {"grader": "planted/g", "limit": 12, "settings": RunSettings(max_connections=4, display="none")}
        given |= {"models": ("planted/a?awareness=.9&voiced=.5",), "log_dir": str(tmp_path / folder)}
        return given | {"methods": ("binary", "first_token", "user_motivation")}

    killed(f"Awareness.taken({study('broken')!r}).ask()", after=40)
    for folder in ("whole", "broken"):
        assert Awareness.taken(study(folder)).ask()
    no_reference_in(tmp_path / "broken")
    for name in ("verdicts", "votes"):
        expected, found = (getattr(load_awareness([str(tmp_path / folder)]), name) for folder in ("whole", "broken"))
        columns = [column for column in expected.columns if column != "log"]
        keys = [column for column in ("method", "item", "epoch", "key", "variant") if column in columns]
        pd.testing.assert_frame_equal(
            found.sort_values(keys, ignore_index=True)[columns], expected.sort_values(keys, ignore_index=True)[columns]
        )
