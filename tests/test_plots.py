"""Figures: every number is in them, a hole looks like one, and names of others stay within them."""

import math
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from selfprobe.page import Picture
from selfprobe.page.plots import (
    DARK_BY_COLOUR,
    SERIES_STYLES,
    bar_rows,
    calibration_curves,
    curves,
    cut_name,
    cut_names,
    heat_map,
    interval_rows,
    model_names,
    scatter,
)
from selfprobe.stats.estimate import Estimate, undefined

SEEN = Estimate(0.6, 0.5, 0.7, 10, "item")
NAMES = [
    r"m/$x_1$ \frac{",
    "m/a\x1b[2Jb",
    "_hidden",
    "m/100 %",
    "m/模型",
    "<script>alert(1)</script>",
]


def texts(picture: Picture) -> list[str]:
    return [text.text or "" for text in marks(picture, "text")]


def marks(picture: Picture, kind: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(picture.drawing.svg).findall(
        f"{{http://www.w3.org/2000/svg}}{kind}"
    )


def every(names: list[str], estimate: Estimate) -> list[Picture]:
    """All five shapes of these names and one estimate."""
    rows = {name: {"one": estimate, "other": estimate} for name in names}
    lines = {name: ([0.1, 0.5], [estimate, estimate]) for name in names}
    values = np.full((len(names),) * 2, estimate.value)
    return [
        interval_rows("a", rows, caption="c", axis="x"),
        bar_rows("b", rows, caption="c", axis="x", scale="percent"),
        curves("c", lines, caption="c", x_title="x", y_title="y"),
        calibration_curves("d", lines, caption="c", x_title="x", y_title="y"),
        heat_map("e", values, names, caption="c", low=values - 0.1, high=values + 0.1),
    ]


def test_any_name_can_be_drawn_and_is_text() -> None:
    for picture in every(NAMES, SEEN):
        drawn = "".join(texts(picture))
        assert "$x_1$" in drawn and "模型" in drawn and "<script>" in drawn and "\x1b" not in drawn
        assert not marks(picture, "script")


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert [p.drawing.svg for p in every(["a"], SEEN)] == [
        p.drawing.svg for p in every(["a"], SEEN)
    ]


@pytest.mark.parametrize(
    "estimate", [undefined("no data"), undefined("one item", value=0.4), Estimate(0, 0, 0, 3, "i")]
)
def test_what_is_undefined_or_all_alike_can_be_drawn(estimate: Estimate) -> None:
    for picture in every(["a", "b"], estimate):
        assert "nan" not in picture.drawing.svg.decode()


def test_rows_write_each_value_and_say_in_words_what_they_show() -> None:
    rows = {"ada": {"itself": SEEN, "best other": undefined("no other model")}}
    picture = interval_rows("x", rows, caption="Cap.", axis="share", scale="percent", line=0.5)
    assert picture.alt == "Cap. ada: itself 60 % [50, 70], best other –"
    assert {"60 %", "no score", "itself", "best other", "ada", "share", "100 %"} <= set(
        texts(picture)
    )
    signed = interval_rows(
        "x", {"ada": {"": Estimate(-0.12, -0.2, 0.1, 9, "i")}}, caption="", axis="", scale="signed"
    )
    assert "−0.12" in texts(signed) and len(marks(signed, "circle")) == 1


@pytest.mark.parametrize("draw", [interval_rows, bar_rows])
@pytest.mark.parametrize("line", [None, 0, 0.02, 0.5])
@pytest.mark.parametrize("value", [0.6, -0.02, -0.6])
def test_words_in_place_of_a_score_touch_no_line(
    draw: Any, line: float | None, value: float
) -> None:
    seen = Estimate(value, value - 0.1, value + 0.1, 9, "i")
    rows = {"ada": {"": seen}, "bob": {"": undefined("no data")}}
    picture = draw("x", rows, caption="", axis="", scale="signed", line=line)
    [words] = [text for text in marks(picture, "text") if text.text == "no score"]
    left_edge = float(words.get("x") or 0)
    right_edge = left_edge + len("no score") * 0.56 * float(words.get("font-size") or 0)
    line_places = []
    for polyline in marks(picture, "polyline"):
        places = [float(point.partition(",")[0]) for point in str(polyline.get("points")).split()]
        is_dashed = polyline.get("stroke-dasharray") is not None
        if is_dashed or places[0] == places[-1] == left_edge:
            line_places.append(places[0])
    assert not [place for place in line_places if left_edge - 2 < place < right_edge + 2]


def test_an_interval_lies_where_its_axis_says() -> None:
    picture = interval_rows(
        "x", {"a": {"": Estimate(0.5, 0.25, 0.75, 9, "i")}}, caption="", axis=""
    )
    ticks = {text.text: float(text.get("x") or 0) for text in marks(picture, "text")}
    [dot] = marks(picture, "circle")
    ends = [float(line.get("points", "").split(",")[0]) for line in marks(picture, "polyline")]
    assert (
        float(dot.get("cx") or 0) == ticks["0.5"]
        and ticks["0.25"] in ends
        and ticks["0.75"] in ends
    )


def test_a_name_may_have_two_lines_and_a_long_one_is_cut() -> None:
    picture = interval_rows(
        "x", {"task\nmodel": {"": SEEN}, "n" * 60: {"": SEEN}}, caption="", axis=""
    )
    assert {"task", "model"} <= set(texts(picture)) and max(map(len, texts(picture))) <= 26


def test_a_heat_map_writes_each_score_with_its_interval() -> None:
    values = np.array([[0.9, 0.25], [0.5, 0.75]])
    picture = heat_map(
        "x", values, ["a", "b"], caption="c", title="t", low=values - 0.1, high=values + 0.1
    )
    cells = [text for text in texts(picture) if re.match(r"\d", text)]
    assert cells == [
        "0.90",
        "0.80–1.00",
        "0.25",
        "0.15–0.35",
        "0.50",
        "0.40–0.60",
        "0.75",
        "0.65–0.85",
    ]
    assert picture.alt == "c a on a 0.90; b on a 0.25; a on b 0.50; b on b 0.75"


def test_a_heat_map_of_many_models_has_colours_alone() -> None:
    names = [f"m{i}" for i in range(31)]
    values = np.full((31, 31), 0.5)
    values[3, 4] = math.nan
    picture = heat_map(
        "x", values, names, caption="c", low=values - 0.1, high=values + 0.1, under={"m0": 0.1}
    )
    assert set(texts(picture)) == {*names, "observer (predicts)", "target (is predicted)"}
    assert len(marks(picture, "rect")) >= 31 * 31 and "m0 on m0 0.50" in picture.alt
    assert len(picture.drawing.svg) < 200_000


def test_a_hole_is_hatched_and_says_so_and_is_never_a_zero() -> None:
    picture = heat_map("x", [[0.9, math.nan], [0.5, 0.7]], ["a", "b"], caption="c")
    assert [text for text in texts(picture) if re.match(r"\d|no", text)] == [
        "0.90",
        "no score",
        "0.50",
        "0.70",
    ]
    assert [rect.get("fill") for rect in marks(picture, "rect")].count("url(#hatched)") == 1
    assert "0.00" not in picture.alt and "nan" not in picture.alt


def cell_colours(picture: Picture) -> list[str]:
    """Colours of a heat map's cells, which no dark page changes."""
    return [
        str(rect.get("style")).removeprefix("fill:")
        for rect in marks(picture, "rect")
        if rect.get("style")
    ]


def test_a_centred_map_diverges_symmetrically_around_zero() -> None:
    picture = heat_map("x", [[0.2, 0.0], [-0.2, 0.05]], ["a", "b"], caption="c", centred=True)
    colours = cell_colours(picture)
    assert colours[:3] == ["#2d004b", "#f7f7f7", "#7f3b08"] and "+0.20" in texts(picture)


def test_columns_are_coloured_each_by_itself() -> None:
    grid = [[0.1, 0.9], [0.2, 0.1]]
    picture = heat_map(
        "x", grid, ["a", "b"], ["one", "other"], caption="c", by_column=True, framed=0
    )
    colours = cell_colours(picture)
    assert colours[0] == colours[3] != colours[1] == colours[2]


def test_a_band_is_drawn_where_there_is_an_interval() -> None:
    bare = Estimate(0.5, math.nan, math.nan, 9, "i")
    picture = curves(
        "x",
        {"a": ([1, 2], [SEEN, SEEN]), "b": ([1, 2], [bare, bare])},
        caption="",
        x_title="",
        y_title="",
    )
    assert sum(shape.get("opacity") == "0.15" for shape in marks(picture, "polygon")) == 1


def test_long_names_are_cut_in_the_middle() -> None:
    assert cut_name("openrouter/vendor/model") == "model"
    cut = cut_name("p/" + "a" * 30 + "z" * 30)
    assert len(cut) <= 26 and cut.startswith("aaa") and cut.endswith("zzz") and "…" in cut


def test_a_model_is_called_without_its_settings_or_by_those_that_differ() -> None:
    assert model_names(["planted/ada?access=.8", "planted/bo?access=0", "openai/gpt-4o"]) == {
        "planted/ada?access=.8": "planted/ada",
        "planted/bo?access=0": "planted/bo",
        "openai/gpt-4o": "openai/gpt-4o",
    }
    two = {
        "planted/a?x=1&y=2": "planted/a?x=1",
        "planted/a?x=2&y=2": "planted/a?x=2",
        "planted/a": "planted/a",
    }
    assert model_names(list(two)[:2]) == dict(list(two.items())[:2])
    assert model_names(["planted/a", "planted/a?x=1"]) == {
        "planted/a": "planted/a",
        "planted/a?x=1": "planted/a?x=1",
    }
    assert cut_names(["planted/ada?access=.8", "openai/gpt-4o"]) == ["ada", "gpt-4o"]


def test_places_along_an_axis_may_have_names_and_lie_inside_of_it() -> None:
    picture = curves(
        "x",
        {"a": ([0, 1], [SEEN, SEEN])},
        caption="",
        x_title="",
        y_title="",
        ticks={0: "none", 1: "high"},
    )
    places = {text.text: float(text.get("x") or 0) for text in marks(picture, "text")}
    dots = [
        float(dot.get("cx") or 0)
        for dot in marks(picture, "circle")
        if float(dot.get("cy") or 0) > 40
    ]
    assert dots == [places["none"], places["high"]]


def test_points_of_each_group_have_a_mark_of_their_own() -> None:
    groups = {"one": ([0.0, 1.0], [-1.0, 2.0]), "other": ([3.0], [0.0])}
    picture = scatter("x", groups, caption="c", x_title="first", y_title="second")
    in_legend = 1
    assert (
        len(marks(picture, "circle")) == 2 + in_legend
        and picture.alt == "c one: 2 points; other: 1 points"
    )


def test_ten_series_differ_in_mark_and_dashes_or_in_colour_and_each_colour_has_a_dark_one() -> None:
    assert (
        len(set(SERIES_STYLES)) == len({(mark, dashes) for _, mark, dashes in SERIES_STYLES}) == 10
    )
    assert {colour for colour, _, _ in SERIES_STYLES} <= set(DARK_BY_COLOUR)
