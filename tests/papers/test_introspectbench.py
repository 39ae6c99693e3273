"""IntrospectBench's Table 2 and Figure 2: recomputed from raw decisions by other code; holes stay holes."""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from selfprobe.errors import InputError, NoLogs
from selfprobe.page import PI, files_of
from selfprobe.papers.exhibit import Exhibit, PaperResults, paper_page
from selfprobe.papers.introspectbench import (
    AGGREGATE,
    AVERAGE,
    SelfAndOthers,
    Table2Row,
    figure2,
    introspectbench_page,
    matrix_exhibits,
    mean_of_cells,
    missing_of_matrix,
    models_of_all,
    no_transfer,
    read_sizes,
    resampled_means,
    score_by_size,
    self_and_others,
    table2,
    table2_rows,
    task_scores,
    transform_of,
)
from selfprobe.papers.introspectbench_printed import SELF
from selfprobe.stats.estimate import clustered_mean
from selfprobe.studies.matrix.table import Results

Make = Callable[..., Results]
MODELS = {"m/a": 0.9, "m/b": 0.7, "m/c": 0.5, "m/d": 0.3}


def rows_of(results: Results) -> list[Table2Row]:
    return table2_rows(task_scores(results))


def comparisons_of(results: Results) -> list[SelfAndOthers]:
    return self_and_others(task_scores(results), rng=np.random.default_rng(0))


def exhibits_of(results: Results) -> dict[str, Exhibit]:
    return {exhibit.name: exhibit for exhibit in matrix_exhibits(task_scores(results))}


def together(*parts: Results) -> Results:
    joined = {
        name: pd.concat([getattr(p, name) for p in parts])
        for name in ("cells", "decisions", "items")
    }
    return replace(parts[0], **joined)


@pytest.fixture
def two_tasks(matrix_results: Make) -> Results:
    words = matrix_results(MODELS, items=20)
    further = words.decisions.assign(
        key="k2", value=1.0
    )  # another k, which the paper's number does not count
    words = replace(words, decisions=pd.concat([words.decisions, further]))
    clues = matrix_results(MODELS, items=20, task="heads_up", seed=3)
    return together(words, replace(clues, decisions=clues.decisions.assign(key="guess")))


def by_hand(results: Results, task: str, key: str) -> dict[tuple[str, str], float]:
    """Cell means out of the raw decisions, with a loop."""
    cells: dict[tuple[str, str], list[float]] = {}
    for row in results.decisions.itertuples():
        if row.task == task and row.key == key and not math.isnan(row.value):
            cells.setdefault((row.target, row.observer), []).append(row.value)
    return {pair: mean(values) for pair, values in cells.items()}


def test_a_row_is_an_observers_mean_over_the_other_targets_and_the_self_row_the_diagonal(
    two_tasks: Results,
) -> None:
    lines = {line.observer: line for line in rows_of(two_tasks)}
    for task, key in (("kth_word", "k1"), ("heads_up", "guess")):
        cells = by_hand(two_tasks, task, key)
        for model in MODELS:
            expected = mean(cells[other, model] for other in MODELS if other != model)
            assert lines[model].score_of(task).value == pytest.approx(expected)
        assert lines[SELF].score_of(task).value == pytest.approx(mean(cells[m, m] for m in MODELS))
    for line in lines.values():
        assert line.avg.value == pytest.approx(mean([line.kth_word.value, line.heads_up.value]))
        assert line.avg.low < line.avg.value < line.avg.high
    assert lines[SELF].kth_word.value == pytest.approx(0.6, abs=0.15), "planted: .9, .7, .5, .3"


def test_the_average_over_one_task_is_that_task_with_its_interval(matrix_results: Make) -> None:
    for line in rows_of(matrix_results(MODELS, items=20)):
        assert line.avg == line.kth_word


def test_rows_are_in_the_order_of_their_average_and_only_observers_have_a_rank(
    two_tasks: Results,
) -> None:
    lines = rows_of(two_tasks)
    averages = [line.avg.value for line in lines]
    assert averages == sorted(averages, reverse=True)
    assert [line.rank for line in lines if line.observer != SELF] == [1, 2, 3, 4]
    assert next(line for line in lines if line.observer == SELF).rank is None


def test_a_missing_cell_takes_its_model_out_for_all_and_the_row_says_why(
    two_tasks: Results,
) -> None:
    cells = two_tasks.cells.copy()
    gone = (cells.task == "heads_up") & (cells.target == "m/a") & (cells.observer == "m/d")
    tasks = task_scores(replace(two_tasks, cells=cells[~gone]))
    clues = next(task for task in tasks if task.task == "heads_up")
    assert len(clues.models) == 3 and len(clues.left_out) == 1
    [(out, why)] = clues.left_out.items()
    assert out in ("m/a", "m/d") and "there is no log of this cell" in why
    lines = {line.observer: line for line in table2_rows(tasks)}
    assert math.isnan(lines[out].heads_up.value) and lines[out].heads_up.reason == why
    assert lines[out].rank is None and lines[out].avg.reason == "no score in heads_up"
    assert not math.isnan(lines[out].kth_word.value)
    hand = by_hand(two_tasks, "heads_up", "guess")
    other = next(model for model in clues.models)
    rest = [hand[target, other] for target in clues.models if target != other]
    assert lines[other].heads_up.value == pytest.approx(mean(rest))


def test_a_model_that_ran_one_task_alone_has_a_hole_in_the_other(two_tasks: Results) -> None:
    def without(table: pd.DataFrame) -> pd.DataFrame:
        return table[
            ~((table.task == "heads_up") & ((table.target == "m/b") | (table.observer == "m/b")))
        ]

    results = replace(
        two_tasks, cells=without(two_tasks.cells), decisions=without(two_tasks.decisions)
    )
    tasks = task_scores(results)
    line = next(line for line in table2_rows(tasks) if line.observer == "m/b")
    assert line.heads_up.reason == "it did not run heads_up"
    assert models_of_all(tasks) == ("m/a", "m/c", "m/d")


def test_without_k_1_there_is_no_kth_word_to_compare(matrix_results: Make) -> None:
    results = matrix_results(MODELS, items=10)
    without_k1 = replace(results, decisions=results.decisions.assign(key="k5"))
    assert {
        line.kth_word.reason.partition(": ")[2]
        for line in rows_of(without_k1)
        if line.observer != SELF
    } == {"k1 was not asked, which is what the paper's number counts"}
    assert list(exhibits_of(without_k1)) == ["Table 2"]


def test_no_task_of_the_paper_and_a_single_model_have_no_tables(matrix_results: Make) -> None:
    assert task_scores(matrix_results({"m/a": 0.5})) == []
    foreign = matrix_results(MODELS, items=10, task="prompt_reconstruction")
    assert task_scores(foreign) == []


def test_figure_2_holds_the_diagonal_against_the_mean_of_the_others_per_task(
    two_tasks: Results,
) -> None:
    [words, clues, average, whole] = comparisons_of(two_tasks)
    assert (words.name, clues.name, average.name, whole.name) == (
        "kth_word",
        "heads_up",
        AVERAGE,
        AGGREGATE,
    )
    cells = by_hand(two_tasks, "kth_word", "k1")
    for model, own, others in zip(words.models, words.own_scores, words.others_scores, strict=True):
        assert own.value == pytest.approx(cells[model, model])
        assert others.value == pytest.approx(mean(cells[model, o] for o in MODELS if o != model))
    gains = [
        own.value - others.value
        for own, others in zip(words.own_scores, words.others_scores, strict=True)
    ]
    assert words.test.wilcoxon_p == pytest.approx(
        float(stats.wilcoxon(gains, alternative="greater").pvalue)
    )


def test_the_aggregate_is_the_mean_of_the_min_max_normalised_tasks(two_tasks: Results) -> None:
    total = np.zeros((4, 4))
    for task, key in (("kth_word", "k1"), ("heads_up", "guess")):
        cells = by_hand(two_tasks, task, key)
        low, high = min(cells.values()), max(cells.values())
        total += [[(cells[t, o] - low) / (high - low) / 2 for o in MODELS] for t in MODELS]
    tasks = task_scores(two_tasks)
    assert transform_of(tasks, models_of_all(tasks)).aggregate == pytest.approx(total)
    whole = comparisons_of(two_tasks)[-1]
    assert [score.value for score in whole.own_scores] == pytest.approx(list(np.diag(total)))
    assert all(score.low <= score.value <= score.high for score in whole.own_scores)


def test_the_average_of_figure_2_is_the_mean_of_the_scores_as_they_are(two_tasks: Results) -> None:
    average = comparisons_of(two_tasks)[-2]
    by_task = [
        by_hand(two_tasks, task, key) for task, key in (("kth_word", "k1"), ("heads_up", "guess"))
    ]
    gains = []
    for model, own, others in zip(
        average.models, average.own_scores, average.others_scores, strict=True
    ):
        assert own.value == pytest.approx(mean(cells[model, model] for cells in by_task))
        rest = [cells[model, other] for cells in by_task for other in MODELS if other != model]
        assert others.value == pytest.approx(mean(rest)) and others.low < others.value < others.high
        gains.append(own.value - others.value)
    assert average.test.wilcoxon_p == pytest.approx(
        float(stats.wilcoxon(gains, alternative="greater").pvalue)
    )


def test_both_tests_of_figure_2_are_in_its_table_and_the_average_of_the_scores_stands_first(
    two_tasks: Results,
) -> None:
    exhibit = figure2(task_scores(two_tasks))
    assert list(exhibit.tables["figure2-test"].frame.on) == [
        "kth_word",
        "heads_up",
        AVERAGE,
        AGGREGATE,
    ]
    assert "does not say of which test its p is, nor of which mean" in exhibit.remarks[0]
    assert {picture.name: picture.caption.partition(":")[0] for picture in exhibit.pictures} == {
        "figure2": "The paper's Figure 2, mean of the tasks",
        "figure2-kth_word": "The paper's Figure 2, kth_word",
        "figure2-heads_up": "The paper's Figure 2, heads_up",
    }


def test_chance_stands_beside_the_papers_number_and_ours(matrix_results: Make) -> None:
    results = matrix_results(MODELS, items=20, task="paraphrase_recognition")
    exhibit = table2(task_scores(replace(results, decisions=results.decisions.assign(chance=0.2))))
    text = str(exhibit.remarks)
    assert (
        "a blind guess gets 0.20 here and 0.33 in the paper's code, whose models on themselves reach 0.39"
        in text
    )
    assert list(exhibit.tables["table2-tasks"].frame.chance.round(9)) == [0.2]


def test_the_papers_p_comes_out_of_a_matrix_whose_differences_have_rank_sum_10(
    matrix_results: Make,
) -> None:
    """Eleven models; on the diagonal 10 are ahead by 1 to 9 and 11 items of 100, and one is behind
    by 10.
    """
    names, items = [f"m/{i:02}" for i in range(11)], 100
    results = matrix_results(dict.fromkeys(names, 0.5), items=items)
    ahead = dict(zip(names, [1, 2, 3, 4, 5, 6, 7, 8, 9, -10, 11], strict=True))
    rows = results.decisions.copy()
    number = rows["item"].str[1:].astype(int)
    limit = [
        50 + (ahead[t] if t == o else 0) for t, o in zip(rows.target, rows.observer, strict=True)
    ]
    planted = replace(results, decisions=rows.assign(value=(number < limit).astype(float)))
    for one in comparisons_of(planted):
        assert (one.test.wins, one.test.n, one.test.rank_sum) == (10, 11, 10)
        assert one.test.wilcoxon_p == 0.02099609375 == 43 / 2048


def test_task_ranks_agree_with_scipy_and_the_papers_own_are_beside_them(two_tasks: Results) -> None:
    [ranks] = no_transfer(task_scores(two_tasks)).tables["task-ranks"].rows
    lines = [line for line in rows_of(two_tasks) if line.observer != SELF]
    both = [[line.score_of(task).value for line in lines] for task in ("kth_word", "heads_up")]
    assert ranks.observers.value == pytest.approx(stats.spearmanr(*both).statistic)
    paper = ranks.paper_observers
    assert paper.n == 10 and paper.low < paper.value < paper.high


def test_cells_count_alike_whatever_they_lack_and_without_gaps_the_interval_is_of_item_means() -> (
    None
):
    gaps = np.array([[1.0, 0.0, math.nan, math.nan], [1.0, 1.0, 1.0, 0.0]])
    assert mean_of_cells(gaps, np.arange(4)).value == pytest.approx((0.5 + 0.75) / 2)
    full = np.random.default_rng(0).integers(0, 2, (3, 50)).astype(float)
    got, plain = (
        mean_of_cells(full, np.arange(50)),
        clustered_mean(full.mean(axis=0), np.arange(50)),
    )
    assert (got.value, got.low, got.high) == pytest.approx((plain.value, plain.low, plain.high))


def test_the_interval_of_a_row_holds_the_planted_mean_in_nine_of_ten_draws(
    matrix_results: Make,
) -> None:
    rng, inside = np.random.default_rng(1), 0
    for _ in range(200):
        easy = rng.random(40) < 0.5  # items that all know, or none
        cells = np.where(rng.random((4, 40)) < 0.5, easy, rng.random((4, 40)) < 0.5).astype(float)
        cells[rng.random((4, 40)) < 0.1] = math.nan
        one = mean_of_cells(cells, np.arange(40))
        inside += one.low <= 0.5 <= one.high
    assert inside >= 180


def test_the_page_holds_the_tables_and_the_pictures(two_tasks: Results, tmp_path: Any) -> None:
    exhibits = matrix_exhibits(task_scores(two_tasks))
    files = files_of(paper_page(PI, PaperResults(exhibits)), str(tmp_path))
    stems = {name.partition(".")[0] for name in files}
    assert {
        "tables/table2",
        "tables/figure2",
        "tables/figure2-test",
        "tables/task-ranks",
        "figures/table2",
    } <= stems
    assert {
        f"{kind}/figure{n}-{x}" for kind in ("tables", "figures") for n in (8, 9, 12) for x in "AC"
    } <= stems
    table = pd.read_csv(io.BytesIO(files["tables/table2.csv"]))
    assert list(table.observer) == [line.observer for line in rows_of(two_tasks)]
    assert set(table.tasks_averaged) == {"2 of 4"}, (
        "a table that is passed on says what its Avg is of"
    )
    self_row = table[table.observer == SELF].iloc[0]
    assert (
        self_row.paper_kth_word == 0.5455
        and table[table.observer != SELF].paper_kth_word.isna().all()
    )
    page = files["index.html"].decode()
    assert (
        "Avg is over 2 of the paper&#39;s four tasks; not here: ethical_dilemma, paraphrase_recognition."
        in page
    )


def test_every_figure_of_the_matrix_is_made_or_said_to_be_missing(
    two_tasks: Results, matrix_results: Make
) -> None:
    """Figures of tasks that nobody ran, and what compares tasks, were left out in silence."""
    one_task = matrix_results(MODELS, items=20)
    without_k_1 = replace(one_task, decisions=one_task.decisions.assign(key="k2"))
    figures = {"Figure 2", *(f"Figure {number}" for number in range(8, 13))}
    for results in (two_tasks, one_task, without_k_1):
        tasks = task_scores(results)
        made = {exhibit.name for exhibit in matrix_exhibits(tasks)}
        missing = {name.partition(",")[0] for name in missing_of_matrix(tasks)}
        assert figures <= made | missing and not (figures & made & missing)
    ran_two = missing_of_matrix(task_scores(two_tasks))
    assert ran_two == {
        "Figure 10, ethical_dilemma": "no two models ran it: selfprobe matrix --tasks "
        "ethical_dilemma",
        "Figure 11, paraphrase_recognition": "no two models ran it: selfprobe matrix --tasks "
        "paraphrase_recognition",
    }
    ran_one = missing_of_matrix(task_scores(one_task))
    assert (
        ran_one["Figure 8"]
        == ran_one["§4, transfer between tasks"]
        == ("it compares tasks, of which two are needed: selfprobe matrix --tasks kth_word,…")
    )
    holes = missing_of_matrix(task_scores(without_k_1))
    assert holes["Figure 2"] == (
        "no task has two models without a hole; Table 2 says what is missing"
    )
    assert holes["Figure 9, kth_word"] == (
        "no two models are without a hole in it; Table 2 says what is missing"
    )
    first_half, second_half = list(MODELS)[:2], list(MODELS)[2:]
    words = matrix_results({model: MODELS[model] for model in first_half}, items=20)
    clues = matrix_results(
        {model: MODELS[model] for model in second_half}, items=20, task="heads_up", seed=3
    )
    clues = replace(clues, decisions=clues.decisions.assign(key="guess"))
    apart = missing_of_matrix(task_scores(together(words, clues)))
    assert apart["Figure 8"] == apart["G.3"] == "no two models are without a hole in all tasks"


def test_means_of_resamples_are_those_of_the_items_drawn_also_where_every_item_is_scored() -> None:
    x = (np.random.default_rng(0).random((3, 3, 40)) < 0.5).astype(float)
    times = np.random.default_rng(1).multinomial(40, np.full(40, 1 / 40), size=50)
    for _ in range(2):
        expected = np.stack([np.nanmean(np.repeat(x, drawn, axis=2), axis=2) for drawn in times])
        assert resampled_means(x, np.random.default_rng(1), 50) == pytest.approx(
            expected, abs=1e-12
        )
        x[0, 1, :3] = np.nan  # the same by the way that counts scores


def test_a_single_task_has_no_average_and_no_aggregate(matrix_results: Make) -> None:
    results = matrix_results(MODELS, items=20)
    exhibits = exhibits_of(results)
    assert list(exhibits) == ["Table 2", "Figure 2", "Figure 9", "G.3"]
    assert [comparison.name for comparison in comparisons_of(results)] == ["kth_word"]
    assert "Avg is over" not in str(exhibits["Table 2"].remarks)


def test_equal_scores_have_no_min_max_and_no_picture(matrix_results: Make) -> None:
    results = matrix_results(dict.fromkeys(MODELS, 1.0), general=1.0, items=20)
    (task,) = task_scores(results)
    transform = transform_of([task], task.models)
    assert transform.reasons == {"kth_word": "all scores are equal: min-max is undefined"}
    assert exhibits_of(results)["Figure 9"].pictures == []


def test_logs_of_no_task_of_the_paper_are_refused_with_what_to_type(
    run_task: Any, tmp_path: Path
) -> None:
    run_task("selfprobe/kth_word", "planted/a", tmp_path / "logs", limit=2)
    with pytest.raises(NoLogs) as error:
        introspectbench_page([str(tmp_path / "logs")])
    assert str(error.value).startswith(
        "no table or figure of Me, Myself, and π can be made: Table 1: expected finished logs of "
        "two or more models"
    )
    assert "selfprobe matrix --models A,B" in str(error.value)
    assert "inspect eval selfprobe/ethical_dilemma -T effort=low" in str(error.value)


def test_scores_stand_by_the_size_that_names_say_or_that_a_file_says(
    matrix_results: Make, tmp_path: Path
) -> None:
    models = {"m/small-1B": 0.3, "m/large-70B": 0.9, "m/closed": 0.6}
    tasks = task_scores(matrix_results(models, items=20))
    by_name = score_by_size(tasks, {})
    assert {row.model: row.parameters for row in by_name.tables["scaling"].rows} == {
        "m/small-1B": 1e9,
        "m/large-70B": 70e9,
    }
    (tmp_path / "sizes.csv").write_text("model,size\nm/closed,8B\nm/small-1B,2000000000\n")
    rows = score_by_size(tasks, read_sizes(str(tmp_path / "sizes.csv"))).tables["scaling"].rows
    assert {row.parameters for row in rows} == {2e9, 8e9, 70e9}
    observers = {row.observer: row for row in table2_rows(tasks)}
    cells = by_hand(matrix_results(models, items=20), "kth_word", "k1")
    for row in rows:
        assert row.own.value == pytest.approx(cells[row.model, row.model])
        assert row.observer == observers[row.model].kth_word


def test_sizes_of_fewer_than_two_models_draw_nothing_and_say_what_to_pass(
    matrix_results: Make,
) -> None:
    with pytest.raises(NoLogs, match=r"fewer than two models is known: --sizes FILE\.csv with"):
        score_by_size(task_scores(matrix_results(MODELS, items=20)), {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("model,parameters\nm/a,8B\n", "expected columns model and size in each row, got model, "),
        ("model,size\nm/a,large\n", "size of m/a must be such as 8B, got 'large'"),
        ("model,size\nm/a,0\n", "size of m/a must be such as 8B, got '0'"),
    ],
)
def test_a_file_of_sizes_that_cannot_be_read_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "sizes.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_sizes(str(tmp_path / "sizes.csv"))
