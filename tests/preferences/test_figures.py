"""Figures of made-up tables: what is drawn, with which labels; how they look is for the eye."""

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

from selfprobe.page import shown
from selfprobe.studies.preferences import figures
from selfprobe.studies.preferences.page import best, markdown, methods_text

METHODS = ("supervised", "unsupervised", "random direction", "no model (TF-IDF)", "prompting")


def number(value: float = 0.6, **names: Any) -> dict[str, Any]:
    return names | {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 40, "unit": "question", "reason": ""}


def tables(sets: tuple[str, ...] = ("llmbar", "mt_bench")) -> dict[str, pd.DataFrame]:
    kinds = ("supervised", "unsupervised")
    metrics = ("f1", "accuracy", "auroc")
    return {
        "methods": pd.DataFrame(
            [number(dataset=d, method=m, metric=k, note="") for d in sets for m in METHODS for k in metrics]
        ),
        "layers": pd.DataFrame(
            [
                number(0.5 + layer / 50, dataset=d, probe=p, layer=layer, metric="f1", chosen_by=0.0)
                for d in sets for p in kinds for layer in range(6)
            ]
        ),
        "floors": pd.DataFrame(
            [
                {"dataset": d, "probe": p, "metric": "f1", "over": over, "mean": 0.55, "high": 0.62, "n": 200}
                for d in sets for p in kinds for over in ("6 layers", "6 layers, both signs")
            ]
        ),
        "selected_on_test": pd.DataFrame([{"dataset": d, "probe": p, "metric": "f1", "value": 0.7} for d in sets for p in kinds]),
        "transfer": pd.DataFrame(
            [number(trained_on=a, tested_on=b, probe=p, metric="f1") for a in sets for b in sets for p in kinds]
        ),
        "cosine": pd.DataFrame(
            [{"a": a, "b": b, "probe": p, "layer": 5, "cosine": -0.2, "absolute": 0.2} for a in sets for b in sets for p in kinds]
        ),
        "components": pd.DataFrame(
            [
                {"dataset": d, "pair": f"p{i}", "preferred": 1 + i % 2, "layer": 3, "first": i - 5.0, "second": -i / 2}
                | {"share_first": 0.4, "share_second": 0.1}
                for d in sets for i in range(10)
            ]
        ),
        "adversarial": pd.DataFrame(
            [number(subset=s, method=m, metric="f1") for s in ("Neighbor", "Natural", "Manual") for m in METHODS]
        ),
        "ablation": pd.DataFrame(
            [number(0.0, dataset=d, direction=k, f1=0.6, changed_answers=0.1) for d in sets for k in ("none", *kinds, "random 1")]
        ),
    }  # fmt: skip


def test_every_table_has_its_figure_and_an_absent_one_none() -> None:
    made = figures.drawn_figures(tables())
    assert set(made) == {"methods", "layers", "transfer", "cosine", "adversarial", "ablation", "components"}
    assert all(isinstance(f, matplotlib.figure.Figure) for f in made.values())
    assert set(figures.drawn_figures({})) == set()


def test_many_data_sets_take_several_lines_of_panels() -> None:
    sets = tuple(f"set{i}" for i in range(7))
    figure = figures.methods_figure(tables(sets)["methods"])
    assert len(figure.axes) == 7
    assert [ax.get_title(loc="left") for ax in figure.axes] == [f"{s} (40 questions)" for s in sets]


def test_a_curve_stands_above_what_luck_finds_without_its_sign() -> None:
    given = tables(("llmbar",))
    given["floors"].loc[given["floors"].over.str.contains("signs"), "high"] = 0.99
    (ax,) = figures.layers(given["layers"], given["floors"], given["methods"]).axes
    band = next(p for p in ax.patches)
    assert band.get_extents().transformed(ax.transData.inverted()).intervaly == pytest.approx([0.55, 0.62])
    labels = ax.get_legend_handles_labels()[1]
    assert "best layer on shuffled labels (mean to 95 %)" in labels and "prompting" in labels


def test_natural_subsets_come_first_and_bold() -> None:
    (ax,) = figures.adversarial(tables()["adversarial"]).axes
    shown_as = [(t.get_text().partition("\n")[0], t.get_fontweight()) for t in ax.get_xticklabels()]
    assert shown_as == [("Natural", "bold"), ("Manual", "normal"), ("Neighbor", "normal")]


def test_a_method_without_a_score_is_said_and_not_drawn_as_zero(tmp_path: Any) -> None:
    table = tables(("llmbar",))["methods"]
    table.loc[table.method == "prompting", ["value", "low", "high"]] = np.nan
    (ax,) = figures.methods_figure(table).axes
    assert "no score" in [t.get_text() for t in ax.texts]


def test_numbers_in_the_report_carry_their_interval_or_the_reason() -> None:
    row = pd.Series(number())
    assert shown(row) == "0.60 [0.50, 0.70]"
    assert shown(pd.Series(number(-0.01)), sign=True) == "−0.01 [−0.11, +0.09]"
    assert shown(pd.Series(number(np.nan, reason="") | {"reason": "one class"})) == "– (one class)"
    found = methods_text(tables()["methods"])
    assert len(found) == 2 * len(METHODS) and found.f1[0] == "0.60 [0.50, 0.70]"
    assert best(tables()).luck[0] == "0.55, 95 % below 0.62"
    assert markdown(pd.DataFrame({"a": ["x|y"], "b": [1]})) == ["| a | b |", "| --- | --- |", "| x\\|y | 1 |"]


def test_cosines_are_drawn_as_magnitudes() -> None:
    given = tables()["cosine"].assign(cosine=-0.2, absolute=0.86)
    written = {text.get_text() for ax in figures.cosine_figure(given).axes for text in ax.texts}
    assert written == {"0.86"}


def test_components_are_coloured_by_the_better_text() -> None:
    one, two = figures.components(tables()["components"], by="dataset").axes
    assert one.get_title(loc="left") == "llmbar, block 4" and two.get_title(loc="left") == "mt_bench, block 4"
    better_1, better_2 = one.collections
    assert len(better_1.get_offsets()) == len(better_2.get_offsets()) == 5
    assert one.get_xlabel() == "first component (40 % of the variance)"
