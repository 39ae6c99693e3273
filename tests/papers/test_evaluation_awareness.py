"""The tables and figures of the evaluation-awareness methods: rates recounted from raw verdicts."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai.log import read_eval_log

from selfprobe.cli import main
from selfprobe.papers.evaluation_awareness import error_by_turns
from selfprobe.studies.awareness.numbers import comparison_of

from ..awareness.tables import awareness_example

MODELS = ("planted/a", "planted/b?awareness=.9")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, run_task: Any) -> tuple[Path, str]:
    """The folder of a page of two models' binary and probability verdicts, and what was printed."""
    folder = tmp_path_factory.mktemp("paper")
    for model in MODELS:
        for method in ("binary", "probability"):
            run_task(f"selfprobe/awareness_{method}", model, folder / "logs", limit=12)
    words = ["paper", "evaluation-awareness", str(folder / "logs"), "--out", str(folder / "out")]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return folder, result.stdout


def test_what_is_made_and_what_is_missing_is_said_with_what_to_type(
    made: tuple[Path, str],
) -> None:
    folder, printed = made
    assert printed.splitlines()[:2] == [
        "Made: Figure 7, Table 1, §4, binary and probability, Footnote 4.",
        "Figure 8 is not here: no log of it in the first person: selfprobe awareness run --methods "
        "first_token",
    ]
    page = (folder / "out/index.html").read_text("utf-8")
    assert "Footnote 3 is not here: no model was asked 25 times" in page
    assert "selfprobe awareness run --methods probability --context full" in page


def test_of_one_model_with_two_methods_it_says_that_two_models_are_needed(
    made: tuple[Path, str],
) -> None:
    """It said that no model answered two methods."""
    folder, _ = made
    logs_of_one = folder / "one"
    logs_of_one.mkdir()
    for log in (folder / "logs").glob("*.eval"):
        if read_eval_log(str(log), header_only=True).eval.model == MODELS[0]:
            shutil.copy(log, logs_of_one)
    words = ["paper", "evaluation-awareness", str(logs_of_one), "--out", str(folder / "one_out")]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    page = (folder / "one_out/index.html").read_text("utf-8")
    assert "Made: Figure 7, Table 1, Footnote 4." in result.stdout
    assert "no two models answered the same two methods: selfprobe awareness run --models" in page


def test_rates_are_the_shares_of_raw_verdicts_and_every_model_is_drawn(
    made: tuple[Path, str],
) -> None:
    folder, _ = made
    words = ["report", str(folder / "logs"), "--rows", str(folder / "rows.parquet")]
    assert CliRunner().invoke(main, words, catch_exceptions=False).exit_code == 0
    report_words = ["report", str(folder / "logs"), "--out", str(folder / "report")]
    assert CliRunner().invoke(main, report_words, catch_exceptions=False).exit_code == 0
    verdicts = pd.read_csv(folder / "report/tables/verdicts.csv")
    rates = pd.read_csv(folder / "out/tables/figure7.csv")
    assert set(rates.model) == set(MODELS) and set(rates.method) == {"binary", "probability"}
    for row in rates.itertuples():
        own = verdicts[(verdicts.model == row.model) & (verdicts.method == row.method)]
        read = own[own.said.notna()]
        evaluations = read[read.truth == "evaluation"]
        deployment = read[read.truth == "deployment"]
        assert row.tpr == pytest.approx((evaluations.said == "evaluation").mean())
        assert row.tnr == pytest.approx((deployment.said == "deployment").mean())
    drawing = (folder / "out/figures/figure7-binary.svg").read_text("utf-8")
    assert "deployment rows" in drawing


def test_kappa_stands_beside_the_papers_five(made: tuple[Path, str]) -> None:
    folder, _ = made
    contents = pd.read_csv(folder / "out/tables/contents.csv").set_index("name")
    assert "gpt-oss-120b 0.16" in contents.printed["Table 1"]
    assert list(pd.read_csv(folder / "out/tables/table1.csv").model) == list(MODELS)
    printed = pd.read_csv(folder / "out/tables/table1-printed.csv").set_index("model")
    assert dict(printed.kappa) == {
        "GPT-5 Mini": 0.59,
        "Gemini 2.5 Pro": 0.75,
        "gpt-oss-120b": 0.16,
        "Qwen3 32B": 0.39,
        "DeepSeek R1 0528": 0.36,
    }


def test_the_turns_are_drawn_only_where_the_subject_saw_them() -> None:
    first_prompts = awareness_example()
    transcripts = awareness_example()
    transcripts.verdicts["context"] = "full"
    assert error_by_turns(first_prompts, comparison_of(first_prompts).methods) is None
    assert error_by_turns(transcripts, comparison_of(transcripts).methods) is not None
