"""Figures: every number is in them, a hole looks like one."""

import math

import numpy as np
import pytest

from selfprobe.plots import advantages, called, heat_map, legend_below, new_axes, self_against_others, short
from selfprobe.stats.estimate import Estimate, undefined

SEEN = Estimate(0.6, 0.5, 0.7, 10, "item")


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]  # type: ignore[attr-defined]


def test_a_heat_map_writes_each_score_with_its_interval() -> None:
    values = np.array([[0.9, 0.25], [0.5, 0.75]])
    assert texts(heat_map(values, ["m/a", "m/b"], title="t", low=values - 0.1, high=values + 0.1)) == [
        "0.90\n0.80–1.00",
        "0.25\n0.15–0.35",
        "0.50\n0.40–0.60",
        "0.75\n0.65–0.85",
    ]


def test_a_hole_is_hatched_and_says_so_and_is_never_a_zero() -> None:
    figure = heat_map([[0.9, math.nan], [0.5, 0.7]], ["a", "b"], title="t", holes={("a", "b"): "no log"})
    assert texts(figure) == ["0.90", "no\nscore", "0.50", "0.70"]
    assert [patch.get_hatch() for patch in figure.axes[0].patches].count("///") == 1
    assert "1 of 4 cells" in figure.get_supxlabel()


def test_a_centred_map_diverges_symmetrically_around_zero() -> None:
    figure = heat_map([[0.2, -0.1], [-0.1, 0.05]], ["a", "b"], title="t", centred=True)
    image = figure.axes[0].images[0]
    assert image.get_clim() == (-0.2, 0.2) and image.cmap.name == "PuOr"
    assert texts(figure)[:2] == ["+0.20", "-0.10"]


@pytest.mark.parametrize("value", [0.0, 0.5, math.nan])
def test_equal_scores_or_none_at_all_can_be_drawn(value: float) -> None:
    for centred in (False, True):
        heat_map(np.full((2, 2), value), ["a", "b"], title="t", centred=centred).canvas.draw()  # type: ignore[attr-defined]


def test_an_undefined_interval_can_be_drawn() -> None:
    estimates = [SEEN, undefined("one item", value=0.4)]
    self_against_others(["a", "b"], estimates, estimates, title="t").canvas.draw()  # type: ignore[attr-defined]
    advantages(["a", "b"], estimates, title="t").canvas.draw()  # type: ignore[attr-defined]


def test_long_names_are_cut_in_the_middle() -> None:
    assert short("openrouter/vendor/model") == "model"
    cut = short("p/" + "a" * 30 + "z" * 30)
    assert len(cut) <= 26 and cut.startswith("aaa") and cut.endswith("zzz") and "…" in cut


def test_a_planted_model_is_called_without_its_settings_unless_two_would_be_called_the_same():
    assert called(["planted/ada?access=.8", "planted/bo?access=0", "openai/gpt-4o"]) == {
        "planted/ada?access=.8": "planted/ada",
        "planted/bo?access=0": "planted/bo",
        "openai/gpt-4o": "openai/gpt-4o",
    }
    two = ["planted/a?x=1", "planted/a?x=2"]
    assert called(two) == dict(zip(two, two, strict=True))


def test_a_legend_below_stays_within_a_narrow_figure_and_names_nothing_twice() -> None:
    figure, ax = new_axes(width=4.2, height=3)
    for name in ("best layer on shuffled labels (mean to 95 %)", "supervised", "prompting", "no model (length)") * 2:
        ax.plot([0, 1], [0, 1], label=name)
    legend_below(figure, ax)
    figure.draw_without_rendering()
    [legend] = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and len(legend.get_texts()) == 4
    assert ax.get_window_extent().height > 0.5 * figure.bbox.height
