"""Runs side by side: what the tables hold is what the runs hold, means are means, holes are said,
strangers refused.
"""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from selfprobe import cli
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.probe_claims import CONTROLS
from selfprobe.studies.probe_compare import (
    compare_runs,
    comparison_page,
    family_of,
    mean_of_estimates,
    read_runs,
    size_of,
)
from selfprobe.studies.probe_figures import size_text

METHODS = ("supervised", "unsupervised", "prompting", "no model (length)")
QUALITY = ("newsroom", "summeval", "hanna")
MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "google/gemma-2-2b-it",
)


def numbers(value: float, **names: Any) -> dict[str, Any]:
    ends = {"low": value - 0.05, "high": value + 0.03, "n": 40, "unit": "question", "reason": None}
    return names | {"value": value} | ends


def with_both_centres(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table transfer, centred by the set tested; by the other means it has .1 less."""
    tested = {f"tested_{name}": row[name] for name in ("value", "low", "high")}
    source = {f"source_{name}": row[name] - 0.1 for name in ("value", "low", "high")}
    return row | {"centre": "tested"} | tested | source


def folder(
    place: Path, model: str, *, sets: tuple[str, ...] = QUALITY, blocks: int = 4, **state: Any
) -> Path:
    """A run's folder with made-up numbers, all different."""
    rng = np.random.default_rng(len(model))
    tables = {
        "methods": [
            numbers(rng.uniform(0.4, 0.9), dataset=d, method=m, metric=k)
            for d in sets for m in METHODS for k in ("f1", "auroc")
        ],
        "differences": [
            numbers(rng.uniform(-0.1, 0.2), dataset=d, probe=p, against=a, metric="f1")
            for d in sets for p, a in (("supervised", "prompting"), ("supervised", "unsupervised"), ("unsupervised", "prompting"))
        ] + [
            numbers(0.2, dataset=d, probe="supervised", against=control.method.format(kind="supervised"), metric="f1")
            for d in sets for control in CONTROLS if control.check != "above_asking" and not control.is_optional
        ],
        "floors": [
            {"dataset": d, "probe": "supervised", "metric": "f1", "over": f"{blocks} layers", "mean": 0.5, "high": 0.6,
             "n": 200, "reached": 0.8, "p_value": 0.005}
            for d in sets
        ],
        "layers": [
            numbers(rng.uniform(0.4, 0.9), dataset=d, probe=p, layer=layer, metric="f1")
            for d in sets for p in METHODS[:2] for layer in range(blocks)
        ],
        "data": [
            {"dataset": d, "pairs": 60, "scored": 60, "answer_mass": 0.9, "answer_mass_low": 0.85, "answer_mass_high": 0.95}
            for d in sets
        ],
        "transfer": [
            with_both_centres(numbers(rng.uniform(0.4, 0.9), trained_on=a, tested_on=b, probe=p, metric="f1"))
            for a in sets for b in sets for p in METHODS[:2]
        ],
        "cosine": [
            {"a": a, "b": b, "probe": p, "layer": blocks - 1, "cosine": -0.4, "absolute": 0.5}
            for a in sets for b in sets for p in METHODS[:2]
        ],
    }  # fmt: skip
    (place / "tables").mkdir(parents=True)
    for name, rows in tables.items():
        pd.DataFrame(rows).to_csv(place / "tables" / f"{name}.csv", index=False)
    given = {
        "selfprobe": "0.3", "model": model, "revision": model, "blocks": blocks, "settings": {"name": "strict", "seeds": 5},
        "datasets": {d: {"hash": f"h-{d}", "origin": f"{d}.jsonl", "pairs": 60} for d in sets},
        "loading": {"dtype": "float32", "layers": []}, "chat": {"system": ""},
    }  # fmt: skip
    (place / "run.json").write_text(json.dumps(given | state))
    return place


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    return [
        str(folder(tmp_path / f"run{k}", model, blocks=4 + 2 * k)) for k, model in enumerate(MODELS)
    ]


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["report", *map(str, arguments)])


def refused(message: str, *arguments: object) -> None:
    ran = call(*arguments)
    assert ran.exit_code == 2 and isinstance(ran.exception, SystemExit), ran.output
    assert message in " ".join(ran.output.split()), ran.output


@pytest.mark.parametrize(
    ("model", "family", "size"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "Llama-3.1", 70e9),
        ("google/gemma-2-27b-it", "gemma-2", 27e9),
        ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen2.5", 0.5e9),
        ("mistralai/Mistral-Nemo-Instruct-2407", "Mistral", math.nan),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2", 135e6),
        ("smollm2", "smollm2", math.nan),
        ("models/mine/", "mine", math.nan),
    ],
)
def test_the_papers_four_families_and_sizes_follow_from_the_names(
    model: str, family: str, size: float
) -> None:
    assert family_of(model) == family
    assert size_of(model) == pytest.approx(size, nan_ok=True)


def test_sizes_are_written_as_the_names_of_models_have_them() -> None:
    assert [size_text(x) for x in (0.5e9, 8.03e9, 70.6e9, 123e9, 135e6, 19_000)] == [
        "0.5B", "8B", "71B", "123B", "135M", "19k",
    ]  # fmt: skip


def test_every_score_of_every_run_is_in_the_table_unchanged(three: list[str]) -> None:
    scores = compare_runs(read_runs(three)).tables["scores"]
    assert len(scores) == 3 * len(QUALITY) * len(METHODS) * 2
    for place, model in zip(three, MODELS, strict=True):
        own = pd.read_csv(Path(place) / "tables" / "methods.csv")
        mine = scores[scores.model == model.rpartition("/")[2]]
        assert mine.value.tolist() == own.value.tolist()
    assert list(dict.fromkeys(scores.family)) == ["gemma-2", "Llama-3.1"]
    assert list(dict.fromkeys(scores.parameters)) == [2e9, 8e9, 70e9], (
        "small before large within a family"
    )


def test_the_interval_of_a_mean_holds_the_truth_in_95_of_100_draws() -> None:
    rng, truths = np.random.default_rng(0), (0.6, 0.75, 0.9)
    held = 0
    for _ in range(400):
        drawn = [
            rng.normal(truth, se) for truth, se in zip(truths, (0.02, 0.03, 0.05), strict=True)
        ]
        parts = [
            Estimate(v, v - 1.96 * se, v + 1.96 * se, 100, "question")
            for v, se in zip(drawn, (0.02, 0.03, 0.05), strict=True)
        ]
        found = mean_of_estimates(parts)
        held += found.low <= sum(truths) / 3 <= found.high
    assert 0.92 < held / 400 < 0.98


def test_models_that_read_other_numbers_of_pairs_are_said(tmp_path: Path) -> None:
    one, two = folder(tmp_path / "a", MODELS[0]), folder(tmp_path / "b", MODELS[2])
    pd.DataFrame([{"dataset": d, "pairs": 60, "scored": 50} for d in QUALITY]).to_csv(
        two / "tables/data.csv", index=False
    )
    (hole, *_) = [
        h for h in compare_runs(read_runs([str(one), str(two)])).missing if h.startswith("newsroom")
    ]
    assert (
        "different numbers of its pairs" in hole
        and "gemma-2-2b-it 50, Llama-3.1-8B-Instruct 60" in hole
    )


def test_the_page_says_once_that_the_papers_halves_leak_and_shows_halves_of_questions(
    three: list[str],
) -> None:
    for place in three:
        rows = [
            numbers(0.61, dataset=dataset, method=method, metric=metric)
            for dataset in QUALITY
            for method in METHODS[:3]
            for metric in ("f1", "auroc")
        ]
        pd.DataFrame(rows).to_csv(Path(place) / "tables" / "strict.csv", index=False)
    compared = compare_runs(read_runs(three))
    assert len(compared.tables["strict"]) == 3 * 3 * 3 * 2
    page = str(comparison_page(compared))
    assert page.count("The paper's own halves leak") == 1
    assert "0.61 [0.56, 0.64]" in page
    (Path(three[0]) / "tables" / "strict.csv").unlink()
    without = str(comparison_page(compare_runs(read_runs(three[:1]))))
    assert "halves leak" not in without


def test_a_transfer_table_without_both_centres_is_refused(three: list[str]) -> None:
    file = Path(three[0]) / "tables" / "transfer.csv"
    pd.read_csv(file).drop(columns=["source_low", "centre"]).to_csv(file, index=False)
    with pytest.raises(ValueError, match=r"transfer.csv has no column centre, source_low, which"):
        read_runs([three[0]])


def test_the_command_writes_page_tables_and_pictures(three: list[str], tmp_path: Path) -> None:
    ran = call(*three, "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.startswith(
        "Yes, for 1 of 3 models. Llama-3.1-70B-Instruct has a probe above asking by +0.10"
    )
    assert "Report: " in ran.output and len(ran.output.splitlines()) < 8
    made = {
        file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*.*")
    }
    assert {"index.html", "tables/scores.csv", "tables/above.csv", "figures/above.svg"} <= made
    page = (tmp_path / "out/index.html").read_text()
    assert "selfprobe paper latent-preferences FOLDERS" in page and "As in the paper" not in page


def test_a_data_set_that_one_run_lacks_is_said(tmp_path: Path) -> None:
    whole = folder(tmp_path / "a", MODELS[0])
    part = folder(tmp_path / "b", MODELS[1], sets=("newsroom", "hanna"))
    ran = call(whole, part, "--out", tmp_path / "out")
    assert ran.exit_code == 0 and "Missing: summeval was not run with" in ran.output
    assert (
        "summeval was not run with Llama-3.1-70B-Instruct."
        in (tmp_path / "out/index.html").read_text()
    )


def test_a_family_is_named_with_its_folder(three: list[str], tmp_path: Path) -> None:
    runs = read_runs([f"Mine={three[0]}", three[1]])
    assert [run.family for run in runs] == ["Llama-3.1", "Mine"]


@pytest.mark.slow(4)
def test_json_has_the_tables_and_what_is_missing(three: list[str], tmp_path: Path) -> None:
    ran = call(*three, "--out", tmp_path / "out", "--json")
    told = json.loads(ran.stdout)
    assert told["missing"] == [] and len(told["models"]) == 3 and "scores" in told


@pytest.mark.slow(3)
def test_runs_that_cannot_be_compared_are_refused(three: list[str], tmp_path: Path) -> None:
    def other(**state: Any) -> Path:
        place = tmp_path / f"other{len(list(tmp_path.iterdir()))}"
        return folder(place, "Qwen/Qwen2.5-7B-Instruct", **state)

    data = {d: {"hash": "another", "origin": "mine.jsonl", "pairs": 9} for d in QUALITY}
    refused(
        "have different pairs of hanna (60 from hanna.jsonl, 9 from mine.jsonl",
        three[0],
        other(datasets=data),
    )
    refused(
        "are of different presets (name strict and paper; seeds 5 and 1): run one again",
        three[0], other(settings={"name": "paper", "seeds": 1}),
    )  # fmt: skip
    refused("has all of 4 blocks and ", three[0], other(loading={"layers": [1, 3]}))
    refused(
        "of different layers, scores cannot be compared",
        three[0],
        other(loading={"layers": [1, 3]}),
    )
    refused(
        "have different system turns ('' and 'Be brief.'): run one again with the other's --system",
        three[0],
        other(chat={"system": "Be brief."}),
    )
    shutil.copytree(three[0], tmp_path / "copy")
    refused("are runs of one model, meta-llama/Llama-3.1-8B-Instruct", three[0], tmp_path / "copy")
    refused("no run's folder (no run.json)", three[0], tmp_path)
    assert (
        call(
            three[0],
            other(settings={"name": "strict", "seeds": 5, "resamples": 2000}),
            "--out",
            tmp_path / "x",
        ).exit_code
        == 0
    )


def test_foreign_files_in_a_folder_are_named(three: list[str], tmp_path: Path) -> None:
    one = Path(three[0])
    (one / "tables/layers.csv").unlink()
    refused("is not finished (no tables/layers.csv)", one)
    two = Path(three[1])
    (two / "tables/methods.csv").write_text("a,b\n1,2\n")
    refused("tables/methods.csv has no column dataset, high, low", two)
    (two / "tables/methods.csv").write_text("")
    refused("tables/methods.csv is not a table that a run writes", two)
    (two / "run.json").write_text("{}")
    refused("run.json is not what a run writes", two)
    (Path(three[2]) / "run.json").write_text('{"loading": {}}')
    refused(
        "run.json lacks datasets, model, revision, settings, which a run writes: run it again",
        three[2],
    )
    assert call().exit_code == 2


def test_a_runs_list_of_data_sets_that_is_none_is_named(three: list[str]) -> None:
    state = json.loads((Path(three[0]) / "run.json").read_text())
    (Path(three[0]) / "run.json").write_text(json.dumps(state | {"datasets": [*state["datasets"]]}))
    refused("run.json: expected a mapping under datasets, got a list", *three)


@pytest.mark.slow(3)
def test_fine_tuned_judges_stand_beside_the_probes(tmp_path: Path) -> None:
    place = folder(tmp_path / "a", MODELS[2])
    rows = [
        numbers(0.66, dataset="hanna", method=m, metric="f1", note="")
        for m in ("fine-tuned judge", "supervised")
    ]
    pd.DataFrame(rows).to_csv(place / "tables/finetuned.csv", index=False)
    found = compare_runs(read_runs([str(place)]))
    judged = found.tables["scores"].query("method == 'fine-tuned judge'")
    assert judged[["dataset", "value"]].to_numpy().tolist() == [["hanna", 0.66]]
    assert (
        len(
            found.tables["scores"].query(
                "method == 'supervised' and dataset == 'hanna' and metric == 'f1'"
            )
        )
        == 1
    )
    assert call(place, "--out", tmp_path / "out").exit_code == 0
    assert "fine-tuned judge" in (tmp_path / "out/index.html").read_text()


@pytest.mark.slow(4)
def test_the_page_says_how_aspects_were_fitted(tmp_path: Path) -> None:
    for aspects, told in (
        ("apart", "each aspect has a probe of its own"),
        ("together", "one probe learns from all"),
    ):
        place = folder(
            tmp_path / aspects,
            MODELS[2],
            settings={"name": "paper", "seeds": 5, "aspects": aspects},
        )
        assert call(place, "--out", tmp_path / f"out-{aspects}").exit_code == 0
        assert told in (tmp_path / f"out-{aspects}/index.html").read_text()


@pytest.mark.parametrize(
    ("against", "value", "said"),
    [
        (
            "",
            0.0,
            "Yes, for gemma-2-2b-it: it has a probe above asking by +0.20 [+0.15, +0.23] (F1); closest is",
        ),
        (
            "no model (TF-IDF)",
            0.04,
            "Cannot tell for gemma-2-2b-it: it has a probe that may be better than words",
        ),
        (
            "random direction",
            0.04,
            "Cannot tell for gemma-2-2b-it: it has a probe that may be better than a random dir",
        ),
        (
            "no model (length)",
            -0.1,
            "No, not for gemma-2-2b-it: it has a probe that is no better than length",
        ),
        (
            "prompting",
            0.02,
            "Cannot tell for gemma-2-2b-it: it has a probe that may be better than asking",
        ),
        (
            "prompting",
            -0.2,
            "No, not for gemma-2-2b-it: it has a probe less than 0.03 above asking, −0.20 [−0.25",
        ),
    ],
)
def test_yes_is_above_asking_and_above_every_control(
    tmp_path: Path, against: str, value: float, said: str
) -> None:
    place = folder(tmp_path / "a", MODELS[2], sets=("hanna",))
    leads = {
        control.method.format(kind="supervised"): 0.2
        for control in CONTROLS
        if not control.is_optional
    }
    leads |= {against: value} if against else {}
    rows = [
        numbers(v, dataset="hanna", probe="supervised", against=a, metric="f1")
        for a, v in leads.items()
    ]
    pd.DataFrame(rows).to_csv(place / "tables/differences.csv", index=False)
    assert comparison_page(compare_runs(read_runs([str(place)]))).answer.startswith(said)


def test_a_control_that_one_run_left_out_leaves_its_model_open(tmp_path: Path) -> None:
    place = folder(tmp_path / "a", MODELS[2], sets=("hanna", "summeval"))
    file = place / "tables/differences.csv"
    rows = pd.read_csv(file)
    rows.loc[rows.against == "prompting", ["value", "low", "high"]] = [0.2, 0.15, 0.25]
    rows[~((rows.against == "random weights, supervised") & (rows.dataset == "hanna"))].to_csv(
        file, index=False
    )
    page = comparison_page(compare_runs(read_runs([str(place)])))
    assert page.answer.startswith(
        "Cannot tell for gemma-2-2b-it: it has a probe that may be better than random weights"
    )
    assert page.answer.endswith(
        "not run on hanna; add --random-weights (one device, full precision)."
    )


def test_a_model_that_does_not_answer_when_asked_is_not_compared_with_asking(
    tmp_path: Path,
) -> None:
    place = folder(tmp_path / "a", MODELS[2], sets=("hanna",))
    mass = {"answer_mass": 0.03, "answer_mass_low": 0.02, "answer_mass_high": 0.04}
    pd.DataFrame([{"dataset": "hanna", "pairs": 60, "scored": 60, **mass}]).to_csv(
        place / "tables/data.csv", index=False
    )
    answer = comparison_page(compare_runs(read_runs([str(place)]))).answer
    assert "answers with 1 or 2 in 3 % [2, 4] of the probability" in answer
