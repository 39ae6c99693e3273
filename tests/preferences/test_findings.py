"""The sentences of a probe run, from made-up tables."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.studies.preferences.page import finding_sentences, judge_findings, probed


def row(value: float, **names: Any) -> dict[str, Any]:
    return {"value": value, "low": value - 0.04, "high": value + 0.04, "reason": "", "metric": "auroc"} | names


def tables(
    probe: float = 0.74, note: str = "layers [3]", margins: dict[str, float] | None = None
) -> dict[str, pd.DataFrame]:
    values = {"prompting": 0.66, "no model (length)": 0.58, "no model (TF-IDF)": 0.61}
    values |= {f"random weights, {k}": 0.55 for k in ("supervised", "unsupervised")}
    kinds = ("supervised", "unsupervised")
    methods = [row(v, dataset="one", method=m, note="") for m, v in values.items()]
    methods += [row(probe, dataset="one", method=k, note=note) for k in kinds]
    less = [
        row((margins or {}).get(m, probe - v), dataset="one", probe=k, against=m)
        for m, v in values.items() for k in kinds
    ]  # fmt: skip
    floors = [
        {"dataset": "one", "probe": k, "metric": "auroc", "over": over, "mean": 0.56, "high": high, "n": 200}
        for k in kinds for over, high in (("30 layers", 0.61), ("30 layers, both signs", 0.9))
    ]  # fmt: skip
    return {"methods": pd.DataFrame(methods), "differences": pd.DataFrame(less), "floors": pd.DataFrame(floors)}


def test_the_sentence_holds_probe_asking_their_difference_and_every_control() -> None:
    said, other = finding_sentences(tables())
    assert said == (
        "one, supervised probe: 0.74 [0.70, 0.78], asking 0.66 [0.62, 0.70], paired difference +0.08 [+0.04, +0.12]; "
        "controls: length 0.58, words 0.61, the same architecture with random weights 0.55, "
        "the best layer on shuffled labels 0.56 (95 % stay below 0.61). Above asking and every control."
    )
    assert other.startswith("one, unsupervised probe: ")


def test_what_the_probe_is_not_shown_to_be_above_is_named_with_its_difference() -> None:
    said = finding_sentences(tables(margins={"no model (length)": 0.01, "prompting": -0.02}))[0]
    assert said.endswith("Not shown to be above asking (−0.02 [−0.06, +0.02]); length (+0.01 [−0.03, +0.05]).")
    lucky = finding_sentences(
        tables(0.6, margins={"prompting": 0.1, "no model (TF-IDF)": 0.1, "no model (length)": 0.1})
    )[0]
    assert lucky.endswith("Not shown to be above the best layer on shuffled labels.")


def test_a_difference_without_an_interval_is_no_proof() -> None:
    given = tables()
    given["differences"].loc[given["differences"].against == "prompting", ["low", "high"]] = np.nan
    given["differences"].loc[given["differences"].against == "prompting", "reason"] = "no interval from one question"
    assert "Not shown to be above asking (+0.08 (no interval from one question))." in finding_sentences(given)[0]


@pytest.mark.parametrize(
    ("note", "ending"),
    [
        ("layers [3] LEAKS test labels", "Test labels or test texts reached this probe: it is no measurement."),
        ("sign none, sign arbitrary", "The sign is arbitrary: a number under .5 says as much as one above it."),
    ],
)
def test_a_leak_or_an_arbitrary_sign_has_no_verdict(note: str, ending: str) -> None:
    said = finding_sentences(tables(note=note))[0]
    assert said.endswith(ending) and "Above" not in said


def test_a_run_without_random_weights_does_not_name_them() -> None:
    given = tables()
    for name, column in (("methods", "method"), ("differences", "against")):
        given[name] = given[name][~given[name][column].str.startswith("random weights")]
    assert "random weights" not in finding_sentences(given)[0]


@pytest.mark.parametrize(
    ("margins", "note", "answer", "clause"),
    [
        ({}, "", "Yes", "has a probe above asking, by AUROC +0.08 [+0.04, +0.12]"),
        ({"no model (length)": 0.01}, "", "Cannot tell", "has a probe above asking, by AUROC +0.08 [+0.04, +0.12], and not above length"),
        ({"prompting": 0.01}, "", "Cannot tell", "has a probe that is not shown to be above asking, by AUROC +0.01 [−0.03, +0.05]"),
        ({"prompting": -0.1}, "", "No", "has a probe below asking, by AUROC −0.10 [−0.14, −0.06]"),
        ({}, "LEAKS test labels", "Cannot tell", "has a probe that test labels or test texts reached"),
    ],
)  # fmt: skip
def test_yes_is_above_asking_and_above_every_control(
    margins: dict[str, float], note: str, answer: str, clause: str
) -> None:
    (one,) = probed(tables(note=note, margins=margins))
    assert (one.model, one.answer, one.clause) == ("one", answer, clause)


@pytest.mark.parametrize(("less", "answer"), [(0.1, "Yes"), (0.01, "Cannot tell"), (-0.1, "No")])
def test_a_judge_is_answered_for_by_its_difference_to_the_probe(less: float, answer: str) -> None:
    methods = [row(0.7, dataset="one", method=name) for name in ("fine-tuned judge", "supervised")]
    margin = row(less, dataset="one", probe="fine-tuned judge", against="supervised")
    (one,) = judge_findings({"finetuned": pd.DataFrame(methods), "finetuned_less": pd.DataFrame([margin])})
    assert one.answer == answer and "its probe, by AUROC" in one.clause
