"""The committed example is what its script makes, and this version reads it; a real model's replies
are not asked again.
"""

import importlib.util
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log

from selfprobe.studies.report import report_page

EXAMPLES = Path(__file__).parent.parent / "examples"
LOGS = sorted((EXAMPLES / "logs").glob("*.eval"))


def script() -> Any:
    spec = importlib.util.spec_from_file_location("examples_make", EXAMPLES / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scores(log: EvalLog) -> dict[str, Any]:
    return {
        str(sample.id): {k: s.value for k, s in (sample.scores or {}).items()}
        for sample in log.samples or []
    }


def test_there_is_a_log_of_each_model_of_the_script() -> None:
    asked = {read_eval_log(str(log), header_only=True).eval.model for log in LOGS}
    assert asked == {*script().MODELS, "embedded/smollm2"}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_log_is_small_and_names_no_place_on_a_machine(log: Path) -> None:
    assert log.stat().st_size < 500_000
    told = read_eval_log(str(log)).model_dump_json()
    assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users)/", told)


SIMULATED = [log for log in LOGS if "smollm2" not in log.stem]


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(log, id=log.stem, marks=() if log == SIMULATED[0] else pytest.mark.slow(1))
        for log in SIMULATED
    ],
)
def test_the_simulated_models_still_score_what_the_log_says(
    log: Path, run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    kept = read_eval_log(str(log))
    again = run_task("selfprobe/kth_word", kept.eval.model, tmp_path, limit=12)
    assert again.eval.task_version == kept.eval.task_version, "run examples/make.py again"
    assert scores(again) == {id: scores(kept)[id] for id in scores(again)}


def test_the_page_has_no_hole_and_its_verdicts_are_the_committed_ones() -> None:
    made = report_page([str(EXAMPLES / "logs")])
    page_text = re.sub(r"<[^>]+>", "", (EXAMPLES / "report" / "index.html").read_text("utf-8"))
    html = unescape(re.sub(r"\s+", " ", page_text))
    assert made.holes == []
    assert made.parts["matrix"].answer.startswith("Yes, for 2 of 5 models. planted/")
    assert "Yes: planted/ada scores " in html and "Yes: planted/cy scores " in html
    assert all(part.answer in html for part in made.parts.values()), "run examples/make.py again"
