"""Pictures of made-up tables: what is drawn, with which labels; how they look is for the eye."""

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from selfprobe.page import Picture, interval_text
from selfprobe.studies import probe_figures
from selfprobe.studies.probe_page import best_layers, markdown, methods_text

METHODS = ("supervised", "unsupervised", "random direction", "no model (TF-IDF)", "prompting")


def number(value: float = 0.6, **names: Any) -> dict[str, Any]:
    return names | {
        "value": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "n": 40,
        "unit": "question",
        "reason": "",
    }


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


def texts(picture: Picture) -> list[str]:
    root = ElementTree.fromstring(picture.drawing.svg)
    return [text.text or "" for text in root.findall("{http://www.w3.org/2000/svg}text")]


def test_every_table_has_its_pictures_and_an_absent_one_none() -> None:
    made = probe_figures.drawn_pictures(tables())
    assert set(made) == {
        "methods",
        "layers",
        "transfer",
        "cosine",
        "adversarial",
        "ablation",
        "components",
    }
    names = [picture.name for pictures in made.values() for picture in pictures]
    assert len(names) == len(set(names)) and "methods-llmbar" in names
    assert not any(
        b"nan" in picture.drawing.svg for pictures in made.values() for picture in pictures
    )
    assert probe_figures.drawn_pictures({}) == {}


def test_each_data_set_has_a_picture() -> None:
    sets = tuple(f"set{i}" for i in range(7))
    pictures = probe_figures.method_pictures(tables(sets)["methods"])
    assert [texts(picture)[0] for picture in pictures] == [
        f"{name} (40 questions)" for name in sets
    ]


def test_a_curve_stands_above_what_luck_finds_without_its_sign() -> None:
    given = tables(("llmbar",))
    given["floors"].loc[given["floors"].over.str.contains("signs"), "high"] = 0.99
    [picture] = probe_figures.layer_pictures(given["layers"], given["floors"], given["methods"])
    assert {"best layer on shuffled labels (mean to 95 %)", "prompting", "supervised"} <= set(
        texts(picture)
    )
    heights = {text.text: float(text.get("y") or 0) for text in ElementTree.fromstring(picture.drawing.svg)
               if text.tag.endswith("text") and text.get("text-anchor") == "end"}  # fmt: skip
    pixels = heights["0"] - heights["1"]
    areas = [
        shape.get("points", "")
        for shape in ElementTree.fromstring(picture.drawing.svg)
        if shape.get("opacity")
    ]
    ends = sorted({float(point.split(",")[1]) for point in areas[-1].split()})
    assert (ends[1] - ends[0]) / pixels == pytest.approx(0.62 - 0.55, abs=0.002)


def test_natural_subsets_come_first_and_are_named_so() -> None:
    [picture] = probe_figures.adversarial_pictures(tables()["adversarial"])
    names = [
        text
        for text in texts(picture)
        if text.partition(",")[0] in ("Natural", "Manual", "Neighbor")
    ]
    assert names == ["Natural, natural", "Manual", "Neighbor"]


def test_a_method_without_a_score_is_said_and_not_drawn_as_zero() -> None:
    table = tables(("llmbar",))["methods"]
    table.loc[table.method == "prompting", ["value", "low", "high"]] = np.nan
    [picture] = probe_figures.method_pictures(table)
    assert "no score" in texts(picture)


def test_the_loss_of_a_judge_stands_beside_that_of_a_coin() -> None:
    rows = pd.DataFrame(
        [
            {"dataset": "d", "training": "adapter", "step": s, "loss": 0.7 - s / 100}
            for s in range(9)
        ]
    )
    [picture] = probe_figures.loss_pictures(rows)
    assert {"adapter", "1 or 2 at random", "d"} <= set(texts(picture))


def test_numbers_in_the_report_carry_their_interval_or_the_reason() -> None:
    row = pd.Series(number())
    assert interval_text(row) == "0.60 [0.50, 0.70]"
    assert interval_text(pd.Series(number(-0.01)), sign=True) == "−0.01 [−0.11, +0.09]"
    assert (
        interval_text(pd.Series(number(np.nan, reason="") | {"reason": "one class"}))
        == "– (one class)"
    )
    found = methods_text(tables()["methods"])
    assert len(found) == 2 * len(METHODS) and found.f1[0] == "0.60 [0.50, 0.70]"
    assert best_layers(tables()).luck[0] == "0.55, 95 % below 0.62"
    assert markdown(pd.DataFrame({"a": ["x|y"], "b": [1]})) == [
        "| a | b |",
        "| --- | --- |",
        "| x\\|y | 1 |",
    ]


def test_cosines_are_drawn_as_magnitudes() -> None:
    given = tables()["cosine"].assign(cosine=-0.2, absolute=0.86)
    pictures = probe_figures.cosine_pictures(given)
    assert {text for picture in pictures for text in texts(picture) if text[:1].isdigit()} == {
        "0.86"
    }


def test_components_are_coloured_by_the_better_text() -> None:
    first, second = probe_figures.component_pictures(tables()["components"], by="dataset")
    assert texts(first)[0] == "llmbar, block 4" and texts(second)[0] == "mt_bench, block 4"
    assert "text 1 is better: 5 points; text 2 is better: 5 points" in first.alt
    assert "first component (40 % of the variance)" in texts(first)
