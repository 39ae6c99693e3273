"""The tables and figures of the latent-preference probes: what the runs hold, means, counts and holes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from selfprobe import cli
from selfprobe.papers.latent_preferences import (
    generality_of_5_3,
    latent_preferences_page,
    latent_preferences_results,
)
from selfprobe.papers.latent_preferences_printed import printed_changes, printed_transfers
from selfprobe.papers.probe_run_pictures import (
    SIZED_METHODS,
    change_pictures,
    depth_pictures,
    size_pictures,
)
from selfprobe.papers.probe_run_tables import (
    HIGH_F1,
    SETS_OF_GROUPS,
    case_counts,
    drops,
    high_transfer_table,
    paired_transfer_table,
    rise,
)
from selfprobe.studies.probe_compare import read_runs

from ..preferences.test_figures import number, texts
from ..studies.test_probe_compare import (
    METHODS,
    MODELS,
    QUALITY,
    folder,
    numbers,
    with_both_centres,
)


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    return [
        str(folder(tmp_path / f"run{k}", model, blocks=4 + 2 * k)) for k, model in enumerate(MODELS)
    ]


def tables_of(folders: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The tables of every exhibit by file stem."""
    tables = dict[str, pd.DataFrame]()
    for exhibit in latent_preferences_results(read_runs(folders)).exhibits:
        for stem, table in exhibit.tables.items():
            tables[stem] = table if isinstance(table, pd.DataFrame) else table.frame
    return tables


def page_text(folders: Sequence[str]) -> str:
    return str(latent_preferences_page(folders).sections)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["paper", "latent-preferences", *map(str, arguments)])


def test_a_mean_over_data_sets_is_the_mean_of_their_numbers(three: list[str]) -> None:
    groups = tables_of(three)["groups"].query("metric == 'f1' and method == 'supervised'")
    own = pd.read_csv(Path(three[0]) / "tables" / "methods.csv").query(
        "metric == 'f1' and method == 'supervised'"
    )
    (row,) = groups[groups.model == "Llama-3.1-8B-Instruct"].itertuples()
    assert (row.group, row.data_sets, row.n) == ("text quality", "newsroom, summeval, hanna", 120)
    assert row.value == pytest.approx(sum(own.value) / 3)
    assert row.low == pytest.approx(row.value - 0.05 * 3**0.5 / 3) and row.high == pytest.approx(
        row.value + 0.03 * 3**0.5 / 3
    )


def test_there_is_no_mean_over_other_sets_and_the_hole_is_said(tmp_path: Path) -> None:
    whole = folder(tmp_path / "a", MODELS[0])
    part = folder(tmp_path / "b", MODELS[1], sets=("newsroom", "hanna"))
    groups = tables_of([str(whole), str(part)])["groups"]
    means_of_part = groups.query("model == 'Llama-3.1-70B-Instruct'")
    assert means_of_part.value.isna().all() and set(means_of_part.reason) == {"no summeval"}
    assert (
        "Llama-3.1-70B-Instruct has no summeval: no mean over text quality, which takes newsroom, "
        "summeval, hanna." in page_text([str(whole), str(part)])
    )


def test_cases_count_models_and_data_sets(three: list[str]) -> None:
    cases = tables_of(three)["cases"].query("data_sets == 'all'").set_index(["probe", "against"])
    own = pd.concat([pd.read_csv(Path(place) / "tables/differences.csv") for place in three])
    mine = own[(own.probe == "unsupervised") & (own.against == "prompting")]
    row = cases.loc["unsupervised", "prompting"]
    assert (row.cases, row.above) == (9, (mine.value > 0).sum())
    assert (row.shown_above, row.shown_below) == ((mine.low > 0).sum(), (mine.high < 0).sum())
    assert ("supervised", "unsupervised") in cases.index


def test_cases_of_the_paper_are_its_six_data_sets_against_every_way_of_asking(
    tmp_path: Path,
) -> None:
    place = folder(tmp_path / "run", MODELS[0], sets=("newsroom", "mctaco", "mt_bench"))
    made: dict[tuple[str, str], float] = {
        ("newsroom", "prompting"): 0.2, ("newsroom", "direct scoring"): 0.1, ("newsroom", "G-Eval"): -0.01,
        ("mctaco", "prompting"): 0.04, ("mt_bench", "prompting"): -0.2,
    }  # fmt: skip
    rows = [
        numbers(value, dataset=name, probe="unsupervised", against=against, metric="f1")
        for (name, against), value in made.items()
    ]
    pd.DataFrame(rows).to_csv(place / "tables/differences.csv", index=False)
    cases = tables_of([str(place)])["cases"].set_index(["data_sets", "against"])
    six = "the paper's six"
    assert cases.loc[(six, "prompting")].cases == 2 and cases.loc[("all", "prompting")].cases == 3
    assert cases.loc[(six, "G-Eval")].cases == 1, "common sense has no scores of single texts"
    told = ["cases", "above", "shown_above", "shown_below"]
    assert cases.loc[(six, "each way of asking"), told].tolist() == [2, 1, 0, 0]
    assert cases.loc[("all", "each way of asking"), told].tolist() == [3, 1, 0, 1]


def test_cells_of_table_1_at_or_above_95_are_counted_without_the_diagonal(tmp_path: Path) -> None:
    place = folder(tmp_path / "run", MODELS[0], sets=("newsroom", "mctaco"))
    values = {
        ("newsroom", "mctaco"): 0.96,
        ("mctaco", "newsroom"): 0.95,
        ("newsroom", "newsroom"): 1.0,
    }
    rows = [
        numbers(value, trained_on=a, tested_on=b, probe=kind, metric="f1")
        for (a, b), value in values.items()
        for kind in METHODS[:2]
    ]
    rows[0] |= {"value": 0.9, "low": 0.85}
    rows[1] |= {"low": 0.955}
    rows = [with_both_centres(row) for row in rows]
    pd.DataFrame(rows).to_csv(place / "tables/transfer.csv", index=False)
    general = high_transfer_table(paired_transfer_table(read_runs([str(place)]))).set_index("probe")
    assert general.loc["unsupervised", ["cells", "high", "shown_high"]].tolist() == [2, 2, 1]
    assert general.loc["supervised", ["cells", "high", "shown_high"]].tolist() == [2, 1, 0]


def test_layers_are_shares_of_each_models_own_blocks(three: list[str]) -> None:
    depth = tables_of(three)["depth"]
    assert depth.groupby("model").depth.max().tolist() == [1.0, 1.0, 1.0]
    shallow = depth.groupby("model").depth.min()
    assert shallow["Llama-3.1-8B-Instruct"] == 1 / 4 and shallow["gemma-2-2b-it"] == 1 / 8


def test_table_1_has_both_probes_in_a_row(three: list[str]) -> None:
    table = tables_of(three)["table1"]
    own = (
        pd.read_csv(Path(three[0]) / "tables" / "transfer.csv")
        .set_index(["probe", "tested_on", "trained_on"])
        .value
    )
    (row,) = table.query(
        "model == 'Llama-3.1-8B-Instruct' and tested_on == 'hanna' and trained_on == 'newsroom'"
    ).itertuples()
    assert row.supervised_value == own["supervised", "hanna", "newsroom"]
    assert row.unsupervised_value == own["unsupervised", "hanna", "newsroom"]
    assert row.centre == "tested" and row.supervised_tested_value == row.supervised_value
    assert row.supervised_source_value == pytest.approx(row.supervised_value - 0.1)
    assert "differences less the means of the set tested" in page_text(three)


def test_a_small_models_probe_is_held_against_larger_models_of_its_family(three: list[str]) -> None:
    found = tables_of(three)
    table, scores = found["small_above_large"], found["scores"].query("metric == 'f1'")
    assert set(zip(table.small, table.large, strict=True)) == {
        ("Llama-3.1-8B-Instruct", "Llama-3.1-70B-Instruct")
    }
    assert len(table) == 2 * len(QUALITY) and set(table.times) == {70 / 8}
    row = table[(table.dataset == "hanna") & (table.probe == "unsupervised")].iloc[0]
    value = {(r.model, r.method): r.value for r in scores[scores.dataset == "hanna"].itertuples()}
    less = value[row.small, "unsupervised"] - value[row.large, "prompting"]
    assert row.value == pytest.approx(less)
    # 0.05 below and 0.03 above each score: √(.05² + .03²) to both sides of their difference
    assert (row.value - row.low, row.high - row.value) == pytest.approx((0.0034**0.5, 0.0034**0.5))


def test_the_block_where_a_curve_jumps_and_where_it_is_near_its_best_are_found() -> None:
    def curve(values: list[float], **names: Any) -> list[dict[str, Any]]:
        given = {
            "model": "m",
            "family": "f",
            "parameters": 1e9,
            "dataset": "d",
            "metric": "f1",
        } | names
        ends = [
            {"depth": (k + 1) / len(values), "value": v, "low": v - 0.1}
            for k, v in enumerate(values)
        ]
        return [given | end for end in ends]

    steep = curve([0.5, 0.5, 0.52, 0.78, 0.8], probe="unsupervised")
    flat = curve([0.5, 0.52, 0.51, 0.5, 0.53], probe="supervised")
    found = rise(pd.DataFrame(steep + flat)).set_index("probe")
    one = found.loc["unsupervised"]
    assert (one.jump_depth, one.near_depth, one.best_depth) == (
        0.8,
        0.8,
        1.0,
    )  # .5 + .9 · .3 = .77 is reached at 4 of 5
    assert (one.jump, one.best) == pytest.approx((0.26, 0.8))
    assert found.loc["supervised"][["jump", "jump_depth", "near_depth"]].isna().all(), (
        "not shown to be above chance"
    )


@pytest.mark.slow(2)
def test_what_adversarial_subsets_take_from_a_probe_is_held_against_what_they_take_from_asking(
    tmp_path: Path,
) -> None:
    place, f1 = (
        folder(tmp_path / "a", MODELS[0]),
        {"Natural": (0.9, 0.8, 0.85), "GPTOut": (0.7, 0.9, 0.4)},
    )
    rows = [
        numbers(value, subset=subset, method=method, metric="f1")
        for subset, values in f1.items()
        for method, value in zip(METHODS, values, strict=False)
    ]
    pd.DataFrame(rows).to_csv(place / "tables/adversarial.csv", index=False)
    table = tables_of([str(place)])["drops"].set_index("probe")
    assert set(table.subset) == {"GPTOut"} and set(table.natural) == {"Natural"} and len(table) == 2
    assert table.probe_drop.tolist() == pytest.approx([0.2, -0.1])
    assert table.prompting_drop.tolist() == pytest.approx([0.45, 0.45])
    assert table.value.tolist() == pytest.approx([0.25, 0.55])
    half = (2 * 0.05**2 + 2 * 0.03**2) ** 0.5  # two scores are taken off, two are added
    assert (
        (table.value - table.low).tolist()
        == pytest.approx([half, half])
        == (table.high - table.value).tolist()
    )
    assert case_counts(table.reset_index()).shown_above.tolist() == [1, 1]
    assert call(place, "--out", tmp_path / "out").exit_code == 0
    assert "A drop is F1 on a natural subset" in (tmp_path / "out/index.html").read_text()
    assert (
        drops(pd.DataFrame()).empty
        and drops(pd.DataFrame(rows[:3]).assign(model="m", family="f")).empty
    )


def test_models_of_several_sizes_are_a_line_a_method_and_a_picture_a_family() -> None:
    rows = [
        number(0.5 + size / 2e10, family=family, parameters=size, method=method, metric="f1")
        for family in ("Llama", "Qwen") for size in (1e9, 8e9) for method in ("supervised", "prompting")
    ]  # fmt: skip
    pictures = size_pictures(pd.DataFrame(rows), title="LLMBar", stem="size-llmbar")
    assert [picture.name for picture in pictures] == ["size-llmbar-Llama", "size-llmbar-Qwen"]
    assert {"1B", "8B", "supervised", "prompting"} <= set(texts(pictures[0]))


def test_of_random_directions_the_one_that_takes_most_is_drawn() -> None:
    rows = [
        number(change, dataset="llmbar", model="m", direction=direction)
        for direction, change in (
            ("none", 0.0),
            ("supervised", -0.3),
            ("random 1", -0.1),
            ("random 2", -0.2),
        )
    ]
    [picture] = change_pictures(pd.DataFrame(rows), stem="table2")
    assert "supervised −0.30" in picture.alt and "random −0.20" in picture.alt


def test_models_are_lines_by_depth() -> None:
    rows = [
        number(0.6, probe="supervised", model=m, depth=d, metric="f1")
        for m in "ab"
        for d in (0.2, 0.8)
    ]
    [picture] = depth_pictures(pd.DataFrame(rows), title="llmbar", stem="depth-llmbar")
    assert {"a", "b", "llmbar: supervised"} <= set(texts(picture))


def test_the_command_writes_page_tables_and_pictures(three: list[str], tmp_path: Path) -> None:
    result = call(*three, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:2] == [
        "Made: Figures 2 and 3, §5.1 and §5.2 (cases), Figure 2 (small models), "
        "Table 1, §5.3 (generality), Figure 5, Figures 6 and 7, Appendix A, Figures 12 to 23.",
        "§4.4 (halves) is not here: no run has it; it takes selfprobe probe run with --preset paper",
    ]
    files = {
        file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*.*")
    }
    assert {
        "index.html",
        "tables/scores.csv",
        "tables/groups.csv",
        "tables/table1.csv",
        "figures/means-text-quality-gemma-2.svg",
        "figures/size-newsroom-gemma-2.svg",
        "figures/depth-hanna-supervised.svg",
        "figures/table1-gemma-2-2b-it-supervised.svg",
        "figures/cosine-gemma-2-2b-it-supervised.svg",
    } <= files
    page = (tmp_path / "out/index.html").read_text("utf-8")
    assert "newsroom (figures 12 and 18)" in page and "summeval (figures 13 and 19)" in page


def test_the_papers_tables_are_written_as_printed() -> None:
    printed = printed_transfers().frame.set_index(["tested_on", "trained_on"])
    assert len(printed) == 30 and set(printed.index.get_level_values(0)) == set(SETS_OF_GROUPS)
    assert printed.loc["newsroom", "summeval"].tolist() == [0.63, 0.77]
    assert printed.loc["mctaco", "rocstories"].tolist() == [0.96, 0.95]
    assert (printed.unsupervised >= HIGH_F1).sum() == 10, "what §5.3's sentence counts"
    docstring = generality_of_5_3.__doc__ or ""
    assert "10 of the 30 cells" in docstring
    changes = printed_changes().frame.set_index("model")
    assert changes.loc["Llama 3.1 70B"].tolist() == [0.03, 0.03] and len(changes) == 5
    assert (changes.min().min(), changes.max().max()) == (-0.01, 0.03)


def test_the_papers_numbers_stand_beside_ours(three: list[str]) -> None:
    for run_folder in three:
        changes = [
            numbers(change, dataset="mt_bench", direction=direction, f1=0.7, changed_answers=0.1)
            for direction, change in (("none", 0.0), ("supervised", -0.2), ("random 1", 0.0))
        ]
        pd.DataFrame(changes).to_csv(Path(run_folder) / "tables/ablation.csv", index=False)
    exhibits = latent_preferences_results(read_runs(three)).exhibits
    exhibit_by_name = {exhibit.name: exhibit for exhibit in exhibits}
    table2 = exhibit_by_name["Table 2"]
    assert table2.printed == "−.01 to .03, of five models"
    assert table2.measured.startswith(
        "gemma-2-2b-it, mt_bench, supervised −0.20 [−0.25, −0.17]; Llama-3.1-8B-Instruct"
    )
    cases = tables_of(three)["cases"].query("data_sets == \"the paper's six\" and metric == 'f1'")
    of_probes = cases[(cases.probe == "supervised") & (cases.against == "unsupervised")]
    words = f"supervised above unsupervised in {of_probes.above.item()} of 9 cases"
    assert words in exhibit_by_name["§5.1 and §5.2 (cases)"].measured


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        (
            "§5.1 and §5.2 (cases)",
            "above asking in all cases but one; supervised above unsupervised “often” (§5.2), “in "
            "all cases” (caption of Figure 3)",
        ),
        ("Figure 2 (small models)", "“almost always” above (caption)"),
        (
            "Figure 5",
            "most unsupervised probes above .7, supervised ones about 0 (Llama 3.1 70B)",
        ),
        (
            "Appendix A",
            "unsupervised probes jump at some layer; supervised ones rise smoothly until 40 to 50 "
            "% of the blocks",
        ),
    ],
)
def test_what_the_paper_says_in_words_is_of_the_probe_and_the_place_that_it_says_it_of(
    three: list[str], name: str, printed: str
) -> None:
    exhibits = latent_preferences_results(read_runs(three)).exhibits
    assert {exhibit.name: exhibit.printed for exhibit in exhibits}[name] == printed


def test_a_table_that_some_runs_lack_is_said_with_what_it_takes(three: list[str]) -> None:
    (Path(three[0]) / "tables/transfer.csv").unlink()
    assert "Not of Llama-3.1-8B-Instruct; it takes two data sets." in page_text(three)
    results = latent_preferences_results(read_runs(three))
    assert results.missing["Table 2"] == (
        "no run has it; it takes selfprobe probe run with --parts ablate"
    )


def test_votes_of_people_are_quoted_where_a_data_set_has_them(three: list[str]) -> None:
    assert "human-agreement" not in tables_of(three)
    for run_folder in three:
        file = Path(run_folder) / "tables/data.csv"
        votes = {"humans_agree": 0.81, "humans_low": 0.78, "humans_high": 0.84}
        pd.read_csv(file).assign(**votes).to_csv(file, index=False)
    agreement = tables_of(three)["human-agreement"]
    assert list(agreement.dataset) == list(QUALITY) and set(agreement.humans_agree) == {0.81}


def test_a_model_of_unknown_size_is_in_the_tables_and_said(tmp_path: Path) -> None:
    run_folder = folder(tmp_path / "a", "mistralai/Mistral-Nemo-Instruct-2407")
    result = call(run_folder, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out/index.html").read_text("utf-8")
    assert "neither the run nor the name says how large it is" in page
    assert not list((tmp_path / "out/figures").glob("size-*"))
    assert len(pd.read_csv(tmp_path / "out/tables/scores.csv")) > 0


def test_json_has_the_tables(three: list[str], tmp_path: Path) -> None:
    result = call(*three, "--out", tmp_path / "out", "--json")
    tables = json.loads(result.stdout)
    assert {"contents", "groups", "table1"} <= set(tables)


def test_the_page_says_once_that_the_papers_halves_leak(three: list[str]) -> None:
    for run_folder in three:
        scores = [
            numbers(0.61, dataset=dataset, method=method, metric="f1")
            for dataset in QUALITY
            for method in METHODS[:3]
        ]
        pd.DataFrame(scores).to_csv(Path(run_folder) / "tables/strict.csv", index=False)
    assert page_text(three).count("The paper's own halves leak") == 1
    assert len(tables_of(three)["strict"]) == 3 * 3 * 3


def test_a_folder_without_a_run_is_refused_and_families_are_named(
    three: list[str], tmp_path: Path
) -> None:
    result = call(tmp_path, "--out", tmp_path / "out")
    assert result.exit_code == 2 and "no run's folder (no run.json)" in result.output
    assert not (tmp_path / "out").exists()
    result = call(f"Mine={three[0]}", "--out", tmp_path / "named")
    assert result.exit_code == 0, result.output
    assert set(pd.read_csv(tmp_path / "named/tables/scores.csv").family) == {"Mine"}


def test_fine_tuned_judges_stand_beside_the_probes_and_leave_no_hole(tmp_path: Path) -> None:
    run_folder = folder(tmp_path / "a", MODELS[2])
    scores = [
        numbers(0.66, dataset="hanna", method=method, metric="f1", note="")
        for method in ("fine-tuned judge", "supervised")
    ]
    pd.DataFrame(scores).to_csv(run_folder / "tables/finetuned.csv", index=False)
    assert "no mean" not in page_text([str(run_folder)]), "the probes have all three sets"
    assert "fine-tuned judge" in SIZED_METHODS
