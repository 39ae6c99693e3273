"""Which kind of evaluation a model names, by model and label, on the page of `awareness run`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.evalawareness_tasks.user_motivation import EVALUATION_KINDS
from selfprobe.studies.awareness.named_kinds import named_kind_rows, named_kinds_section
from selfprobe.studies.awareness.study import Awareness
from selfprobe.studies.awareness.validate import graded_texts
from selfprobe.study.awareness_arms import PLAIN
from selfprobe.study.evidence import evidence_in


def verdicts(named_kinds: Sequence[str | None], **values: Any) -> pd.DataFrame:
    """Conversations that are called an evaluation, a kind each; every second is labelled so."""
    rows = []
    for number, named_kind in enumerate(named_kinds):
        row = {"method": "user_motivation", "model": "m", **PLAIN, "data": "d"}
        row |= {"item": f"i{number}", "epoch": 1, "source": f"s{number}", "flip": False}
        row |= {"said": "evaluation", "truth": ("evaluation", "deployment")[number % 2]}
        rows.append(row | {"named_kind": named_kind} | values)
    return pd.DataFrame(rows)


def test_each_kind_has_its_share_of_what_is_called_an_evaluation_by_model_and_label() -> None:
    ada = verdicts(["trap", "puzzle"] * 10 + ["trap", ""] * 10)
    bo = verdicts(["safety"] * 6, model="bo")
    unaware = verdicts([""] * 30, said="deployment")
    rows = named_kind_rows(pd.concat([ada, bo, unaware]))
    assert [(row.model, row.kind) for row in rows] == [
        (model, kind) for model in ("m", "bo") for kind in EVALUATION_KINDS
    ]
    row_of = {(row.model, row.kind): row for row in rows}
    trap = row_of["m", "trap"]
    assert (trap.share.value, trap.share.n) == (0.5, 40) and 0.3 < trap.share.low < 0.4
    assert (trap.of_evaluation.value, trap.of_deployment.value) == (1, 0)
    assert row_of["m", "puzzle"].of_deployment.value == pytest.approx(0.5)
    assert row_of["bo", "safety"].share.value == 1


def test_what_was_not_asked_for_kinds_and_placebos_have_no_row_and_no_section() -> None:
    placebo = verdicts(["trap"] * 4, placebo="form")
    for rows in (verdicts([None] * 4), placebo, verdicts([""]).drop(columns="named_kind")):
        assert named_kind_rows(rows) == []
    assert named_kinds_section([]) == []


def test_a_model_that_calls_nothing_an_evaluation_has_the_reason() -> None:
    row, *_ = named_kind_rows(verdicts([""] * 4, said="deployment"))
    assert np.isnan(row.share.value) and row.share.reason == "none is called an evaluation"


def test_kinds_are_asked_in_every_arm_of_user_motivation_but_the_judge_that_is_told_nothing() -> (
    None
):
    study = Awareness(
        models=("planted/a",),
        methods=("binary", "user_motivation"),
        grader="planted/g",
        third=True,
        placebo=True,
        kinds=True,
    )
    motivation_args = [args for method, args in study.arms if method == "user_motivation"]
    assert all(args["kinds"] for args in motivation_args)
    assert [args.get("placebo") for args in motivation_args] == [None, None, "form", "purpose"]
    assert not any("kinds" in args for method, args in study.arms if method == "binary")


@pytest.mark.slow(8)
def test_a_run_with_kinds_shows_that_a_planted_model_names_traps(tmp_path: Path) -> None:
    command = "awareness run --models planted/a?lured=1,planted/b --methods user_motivation"
    options = "--grader planted/g --kinds --limit 30 --display none --yes"
    folders = ["--log-dir", str(tmp_path / "logs"), "--out", str(tmp_path / "page")]
    result = CliRunner().invoke(main, [*command.split(), *options.split(), *folders])
    assert result.exit_code == 0, result.output
    named = pd.read_csv(tmp_path / "page" / "tables" / "named_kinds.csv")
    share = named.set_index(["model", "kind"]).share
    assert share["planted/a?lured=1", "trap"] == 1 and share["planted/b", "trap"] == 0
    evidence = evidence_in([str(tmp_path / "logs")], models=["planted/a?lured=1"])
    assert evidence.prompts.aware.sum() > 0
    found_aware = [text.aware for text in graded_texts([str(tmp_path / "logs")])]
    assert len(found_aware) == 180 and None not in found_aware

    page = (tmp_path / "page" / "index.html").read_text()
    assert "Which kind of evaluation does it name?" in page
    assert EVALUATION_KINDS["trap"] in page
