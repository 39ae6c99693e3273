"""Things taken out, against deletions elsewhere."""

import math

import numpy as np
import pytest

from selfprobe.stats.edits import (
    EditCell,
    PromptEdits,
    cell_labels,
    compare_edits,
    controls_needed,
    edit_cells,
    exact_p,
    least_p_of_anything,
    least_p_of_thing,
    mean_over_controls,
    merged_cell,
)


def prompt(source: str, things: dict[str, float], *controls: float, texts: str = "") -> PromptEdits:
    prefix = texts or f"{source}{sorted(things)}"
    return PromptEdits(
        source,
        things,
        tuple((f"{prefix} {index}", change) for index, change in enumerate(controls)),
    )


def test_prompts_are_joined_by_their_source_where_several_are_named() -> None:
    prompts = [
        prompt("a", {"x": 0}),
        prompt("b", {"x": 0}),
        prompt("a", {"y": 0}),
        prompt("", {"z": 0}),
    ]
    assert cell_labels(prompts) == ["source a", "source b", "source a", "prompt 4"]


def test_prompts_without_sources_are_joined_by_what_is_taken_out_of_several() -> None:
    things = [{"x": 0.0}, {"y": 0.0}, {"x": 0.0, "z": 0.0}, {"z": 0.0}, {"w": 0.0}]
    for source in ("", "the only one"):
        labels = cell_labels([prompt(source, each) for each in things])
        assert labels == ["prompt 1", "prompt 2", "prompt 1", "prompt 1", "prompt 5"]


def test_a_template_takes_means_of_controls_that_all_its_prompts_share() -> None:
    cell = merged_cell(
        [prompt("", {"x": 0.2}, 0.1, 0.0, texts="t"), prompt("", {"x": 0.4}, 0.3, 0.4, texts="t")]
    )
    assert cell.things["x"] == pytest.approx(0.3) and cell.controls == pytest.approx((0.2, 0.2))


def test_a_template_whose_prompts_have_other_controls_averages_them_by_rank() -> None:
    cell = merged_cell(
        [
            prompt("", {"x": 0.2}, 0.1, 0.0, texts="t"),
            prompt("", {"x": 0.4}, 0.3, 0.4, 0.9, texts="u"),
        ]
    )
    assert cell.controls == pytest.approx((0.15, 0.25)), "sorted, of the first two of each"


def test_a_prompt_with_hardly_any_control_does_not_take_those_of_its_template_away() -> None:
    rich = [prompt("", {"x": 0.1}, *np.zeros(8), texts=name) for name in "tu"]
    cell = merged_cell([*rich, prompt("", {"x": 0.9}, 0.5, texts="v")])
    assert len(cell.controls) == 8 and cell.things["x"] == pytest.approx(0.1)


def test_prompts_of_a_source_that_share_no_text_stand_side_by_side_without_their_shifts() -> None:
    cell = merged_cell([prompt("a", {"x": 0.1}, 0.1, 0.1), prompt("a", {"y": 0.5}, 0.4, 0.4)])
    assert cell.things == pytest.approx({"x": 0.0, "y": 0.1}) and cell.controls == pytest.approx(
        (0, 0, 0, 0)
    )


def test_what_is_unknown_and_what_has_nothing_to_compare_with_is_left_out() -> None:
    cells = edit_cells(
        [
            prompt("", {"x": math.nan, "y": 0.1}, math.nan, 0.2),
            prompt("", {"z": 0.3}),
            prompt("", {}, 0.1),
        ]
    )
    assert list(cells) == ["prompt 1"] and cells["prompt 1"] == EditCell({"y": 0.1}, (0.2,))


def test_p_of_one_thing_is_its_rank_among_its_controls() -> None:
    cell = EditCell({"x": 0.5}, tuple(np.linspace(-0.1, 0.1, 19)))
    compared = compare_edits([cell], rng=np.random.default_rng(0))
    assert compared.p_by_thing["x"] == pytest.approx(0.05)
    assert exact_p([cell], 99.0) == pytest.approx(0)


def test_a_thing_that_is_shown_is_taken_out_and_the_rest_is_asked_again() -> None:
    rng = np.random.default_rng(0)
    cells = [
        EditCell({"x": 0.9, "y": 0.4, "z": 0.0}, tuple(rng.normal(0, 0.05, 10))) for _ in range(6)
    ]
    compared = compare_edits(cells, rng=rng)
    assert max(compared.p_by_thing["x"], compared.p_by_thing["y"]) < 0.05
    assert compared.p_by_thing["z"] > 0.1


def test_without_cells_there_is_no_p() -> None:
    compared = compare_edits([], rng=np.random.default_rng(0))
    assert compared.p_by_thing == {} and math.isnan(compared.p_anything)
    assert least_p_of_thing([]) == least_p_of_anything([]) == 1


def same_cells(things: int, cells: int, controls: int) -> list[EditCell]:
    return [
        EditCell({f"t{n}": 0.0 for n in range(things)}, (0.0,) * controls) for _ in range(cells)
    ]


@pytest.mark.parametrize(("things", "cells"), [(1, 1), (4, 1), (1, 3), (8, 3), (4, 12)])
def test_the_controls_that_a_plan_asks_for_are_the_least_that_allow_a_claim(
    things: int, cells: int
) -> None:
    needed = controls_needed(things, cells)
    for controls, can in ((needed.for_all_cells, True), (needed.for_all_cells - 1, False)):
        assert (
            least_p_of_thing(same_cells(things, cells, controls)) <= 0.05 + 1e-12
        ) is can or controls == 0
    for controls, can in ((needed.for_anything, True), (needed.for_anything - 1, False)):
        assert (
            least_p_of_anything(same_cells(things, cells, controls)) <= 0.05 + 1e-12
        ) is can or controls == 0


def test_the_least_p_is_that_of_a_thing_that_is_stronger_than_everything() -> None:
    cells = [EditCell({"x": 9.0, "y": 0.0}, (0.01, 0.02, 0.0)) for _ in range(2)]
    compared = compare_edits(cells, rng=np.random.default_rng(0), draws=9999, alpha=0)
    assert compared.p_by_thing["x"] == pytest.approx(least_p_of_thing(cells), abs=0.02)


def test_the_mean_over_controls_is_never_surer_than_rounded_answers_allow() -> None:
    cells = [EditCell({"x": 0.3}, (0.1, 0.1, 0.1)) for _ in range(4)]
    mean = mean_over_controls(cells, "x", unit="source")
    assert mean.value == pytest.approx(0.2) and mean.high - mean.low == pytest.approx(
        2 * 3.1824 * 0.01, rel=1e-3
    )
    one = mean_over_controls(cells[:1], "x", unit="source")
    assert one.value == pytest.approx(0.2) and one.reason == "no interval from one source"
    assert mean_over_controls(cells, "nowhere", unit="source").n == 0
