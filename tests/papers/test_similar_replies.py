from collections.abc import Callable
from pathlib import Path

import anyio
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog

from selfprobe.cli import main
from selfprobe.papers.similar_replies import closest_replies, measure_similarity
from tests.matrix.read_logs import replies_in

from ..examples.loaded import example

Run = Callable[..., EvalLog]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, run_task: Run) -> Path:
    """kth_word and heads_up of three models on four items; gamma refuses some."""
    folder = tmp_path_factory.mktemp("logs")
    for model in ("alpha?common=.9", "beta?common=.9", "gamma?common=.9&act_refused=.4"):
        for task in ("kth_word", "heads_up"):
            run_task(f"selfprobe/{task}", f"planted/{model}", folder, limit=8)
    return folder


def test_the_closest_pair_is_found_per_item_worked_by_hand(embedder: str) -> None:
    models = {
        "a": {("q", 1, "answer"): "red ball", ("r", 1, "answer"): "one"},
        "b": {("q", 1, "answer"): "red cube", ("r", 1, "answer"): "one"},
        "c": {("q", 1, "answer"): "green sea", ("r", 1, "answer"): "two"},
    }
    places, similar, repeats = anyio.run(lambda: closest_replies(models, embedder=embedder))
    assert len(repeats) == 0
    assert places == [("q", 1, "answer"), ("r", 1, "answer")]
    assert similar == pytest.approx(np.array([[0.5, 0, 0], [1, 0, 0]]))  # pairs ab, ac, bc


def test_items_that_a_model_did_not_answer_are_left_out(embedder: str) -> None:
    models = {"a": {("q", 1, "x"): "red", ("r", 1, "x"): "red"}, "b": {("q", 1, "x"): "red"}}
    places, similar, _ = anyio.run(lambda: closest_replies(models, embedder=embedder))
    assert (places, similar.tolist()) == ([("q", 1, "x")], [[pytest.approx(1)]])


def test_two_draws_of_one_model_are_held_against_two_models(embedder: str) -> None:
    models = {
        "a": {("q", 1, "x"): "red ball", ("q", 2, "x"): "red cube", ("q", 3, "x"): "red cube"},
        "b": {("q", 1, "x"): "red sea", ("q", 2, "x"): "red sea", ("q", 3, "x"): "green lake"},
    }
    _, similar, repeats = anyio.run(lambda: closest_replies(models, embedder=embedder))
    assert similar[:, 0] == pytest.approx([0.5, 0.5, 0]) and repeats == pytest.approx(
        [0.5, 1, 1, 0]
    )


@pytest.mark.slow(2)
def test_sampled_answers_have_rows_of_their_own_beside_the_paper(
    run_task: Run, embedder: str, tmp_path: Path
) -> None:
    for model in ("alpha?common=.9", "beta?common=.9"):
        run_task("selfprobe/kth_word", f"planted/{model}", tmp_path, limit=3)
        for of in ("kth_word", "paraphrase_recognition"):
            run_task(
                "selfprobe/open_answers",
                f"planted/{model}",
                tmp_path,
                limit=3,
                task_args={"of": of, "epochs": 2},
            )
    rows, draws = anyio.run(
        lambda: measure_similarity(replies_in([str(tmp_path)]).replies, embedder=embedder)
    )
    found = {row.task: row for row in rows}
    assert {name: row.paper for name, row in found.items()} == {
        "kth_word": 0.83,
        "kth_word, sampled at 1": 0.83,
        "paraphrase_recognition, sampled at 1": 0.88,
    }
    words, sampled = (
        found[f"{task}, sampled at 1"] for task in ("kth_word", "paraphrase_recognition")
    )
    assert (words.items, words.draws) == (3, 6) and 0 < words.repeat < 1
    assert (sampled.items, sampled.draws) == (3, 30) and np.isnan(found["kth_word"].repeat)
    assert {draw.act for draw in draws if draw.task == "paraphrase_recognition, sampled at 1"} >= {
        "original",
        "paraphrase4",
    }


def test_logs_give_the_targets_own_replies_by_task_and_model(logs: Path) -> None:
    found = replies_in([str(logs)]).replies
    assert set(found) == {"kth_word", "heads_up"}
    assert {act for replies in found["kth_word"].values() for _, _, act in replies} == {
        "answer"
    }  # not its repeat
    assert len(found["kth_word"]["planted/alpha?common=.9"]) == 8
    assert 0 < len(found["kth_word"]["planted/gamma?common=.9&act_refused=.4"]) < 8


def test_a_row_agrees_with_pandas_over_its_items(logs: Path, embedder: str) -> None:
    rows, draws = anyio.run(
        lambda: measure_similarity(replies_in([str(logs)]).replies, embedder=embedder)
    )
    for row in rows:
        own = pd.Series([draw.closest for draw in draws if draw.task == row.task])
        assert (row.closest, row.variance, row.draws) == pytest.approx(
            (own.mean(), own.var(), len(own))
        )
        assert row.low < row.closest < row.high and row.pairwise < row.closest
        assert row.draws + row.left_out == 8 and row.left_out > 0
        assert row.embedder == embedder


def test_the_papers_page_has_the_table_and_a_figure(
    logs: Path, embedder: str, tmp_path: Path
) -> None:
    words = ["paper", "introspectbench", str(logs), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*words, "--embedder", embedder], catch_exceptions=False)
    assert done.exit_code == 0 and "Made: Table 1, Table 2" in done.output, done.output
    table = pd.read_csv(tmp_path / "out/tables/table1.csv")
    assert list(table.task) == ["heads_up", "kth_word"] and list(table.paper) == [0.77, 0.83]
    assert list(table.paper_variance) == [0.21, 0.16]
    assert len(pd.read_csv(tmp_path / "out/tables/table1-draws.csv")) == table["draws"].sum()
    assert (tmp_path / "out/figures/table1.svg").read_bytes().startswith(b"<svg ")


def test_one_model_is_not_enough(logs: Path, run_task: Run, tmp_path: Path) -> None:
    run_task("selfprobe/kth_word", "planted/alpha", tmp_path, limit=2)
    with pytest.raises(
        ValueError, match="expected finished logs of two or more models on one of ethical_dilemma"
    ):
        replies_in([str(tmp_path)])


def test_a_row_is_of_one_setting_and_what_is_left_out_is_named(
    logs: Path, run_task: Run, questions: Path, embedder: str, tmp_path: Path
) -> None:
    """Another data set of one model, and a newer run of another model with another argument:
    neither is mixed in.
    """
    alpha = "planted/alpha?common=.9"
    run_task(
        "selfprobe/kth_word",
        "planted/delta",
        tmp_path,
        limit=2,
        task_args={"dataset": str(questions)},
    )
    other = run_task(
        "selfprobe/kth_word", alpha, tmp_path, limit=8, task_args={"k": "1", "act_tokens": 3}
    )
    drawn, alone = replies_in([str(logs), str(tmp_path)]), replies_in([str(logs)])
    assert drawn.replies == alone.replies and alone.settings == []
    why = {Path(log).name: why for log, why in drawn.ignored.items()}
    assert (
        why.pop(Path(other.location).name)
        == "another run: act_tokens is 3, there not set; k is 1, there not set"
    )
    assert [text.startswith("another run: data set is ") for text in why.values()] == [True]
    (line,) = drawn.settings
    assert line.startswith("kth_word: Runs of 3 settings: act_tokens not set, data set ")


def test_models_of_different_data_sets_alone_are_an_error_that_says_so(
    run_task: Run, questions: Path, tmp_path: Path
) -> None:
    run_task("selfprobe/kth_word", "planted/alpha", tmp_path, limit=2)
    run_task(
        "selfprobe/kth_word",
        "planted/beta",
        tmp_path,
        limit=2,
        task_args={"dataset": str(questions)},
    )
    with pytest.raises(
        ValueError,
        match=r"got kth_word: planted/beta; .*\.eval: another run: data set is \w+, there",
    ):
        replies_in([str(tmp_path)])


@pytest.mark.slow(3)
def test_the_example_asks_the_models_of_a_configuration_for_all_four_rows_of_the_papers_table(
    embedder: str, tmp_path: Path
) -> None:
    ask = example("open_answers").open_answers
    (tmp_path / "three.yaml").write_text(
        "models: [planted/a, planted/b, {model: planted/c, args: {common: .9}}]\n"
    )
    given = [
        "--log-dir",
        str(tmp_path / "logs"),
        "--embedder",
        embedder,
        "--out",
        str(tmp_path / "out"),
    ]
    asking = [*given, "--config", str(tmp_path / "three.yaml"), "--limit", "1"]
    dry = CliRunner().invoke(ask, [*asking, "--dry-run"])
    assert (
        dry.exit_code == 0
        and "3 models × kth_word (1 items), ethical_dilemma (1 items)" in dry.output
    )
    (line,) = [line for line in dry.output.splitlines() if line.startswith("planted/a")]
    assert line.split()[1] == "24", (
        "three draws of one question, dilemma and word, and of five wordings"
    )
    assert not (tmp_path / "logs").exists()
    done = CliRunner().invoke(ask, [*asking, "--yes"])
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "out/tables/table1.csv").set_index("task")
    assert set(table.models) == {"planted/a, planted/b, planted/c"} and list(table.paper) == [
        0.94,
        0.77,
        0.83,
        0.88,
    ]
    assert dict(table.draws) == {
        f"{task}, sampled at 1": 3 for task in ("ethical_dilemma", "heads_up", "kth_word")
    } | {"paraphrase_recognition, sampled at 1": 15}
    assert set(table["items"]) == {1}
    for limit in (2, 1):
        more = CliRunner().invoke(ask, [*asking, "--limit", str(limit), "--yes"])
        assert more.exit_code == 0, more.output
        assert set(pd.read_csv(tmp_path / "out/tables/table1.csv")["items"]) == {limit}
    one = CliRunner().invoke(ask, [*given, "--models", "planted/a", "--dry-run"])
    assert "Table 1 compares two models or more, got planted/a" in str(one.exception)
