"""The fine-tuned judge beside the probe: same pairs, same half, and a killed or finished one."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from sklearn.metrics import f1_score

pytest.importorskip("peft", reason="the mechanisms extra is not installed")

from selfprobe import cli
from selfprobe.data.pairs import Pair
from selfprobe.data.public_pairs import PairSet
from selfprobe.page.claims import claim_sentence
from selfprobe.probes import finetune, training
from selfprobe.probes.finetune import JUDGE, courses, finetune_run, lessons
from selfprobe.probes.fit import FitSettings, groups_and_questions
from selfprobe.probes.model import load_model
from selfprobe.probes.probe_file import load_probe
from selfprobe.probes.run import run_probes
from selfprobe.probes.training import Recipe
from selfprobe.stats.claim import Verdict
from selfprobe.studies.probe_claims import JUDGE_WORDS, judge_claim, judge_evidence
from selfprobe.studies.probe_page import cost_sentences, probe_page
from selfprobe.studies.probe_run import ProbeRun

from .conftest import tiny_judge

QUICK = ("--limit", 24, "--rank", 4, "--rate", 0.01, "--epochs", 2)


def call(*arguments: Any, parts: str = "finetune") -> Result:
    return CliRunner().invoke(
        cli.main, ["probe", "run", "--parts", parts, *map(str, arguments), "--yes"]
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finetune")
    judge = tiny_judge()
    judge.model.save_pretrained(folder / "model")
    judge.tokenizer.save_pretrained(folder / "model")
    rows = [
        {
            "id": str(i),
            "question": f"q {i}",
            "text_1": f"{'ab'[i % 2]}{i}",
            "text_2": f"{'ba'[i % 2]}{i}",
            "label": 1 + i % 2,
        }
        for i in range(24)
    ]
    (folder / "one.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def done(place: Path) -> Result:
    judge, few = load_model(str(place / "model")), FitSettings(seeds=1, folds=2, resamples=100)
    run_probes(
        judge,
        [str(place / "one.jsonl")],
        place / "out",
        settings=few,
        random_weights=False,
        progress=lambda _: None,
    )
    return call(
        "--model",
        place / "model",
        "--datasets",
        place / "one.jsonl",
        "--out",
        place / "out",
        *QUICK,
    )


def table(place: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(place / "out" / "tables" / f"{name}.csv")


@pytest.mark.slow(3)
def test_one_command_makes_the_probes_and_then_the_judge(place: Path, tmp_path: Path) -> None:
    given = (
        "--model",
        place / "model",
        "--datasets",
        place / "one.jsonl",
        "--out",
        tmp_path / "new",
        *QUICK,
    )
    alone = call(*given)
    assert alone.exit_code == 2 and "is no run's folder" in alone.output
    few, both = ("--seeds", 1, "--resamples", 100, "--no-random-weights"), "probes,finetune"
    dry = call(*given, *few, "--dry-run", parts=both)
    assert (
        dry.exit_code == 0
        and "Then: finetune; what each takes is said when it begins" in dry.output
    )
    assert not (tmp_path / "new").exists()
    ran = call(*given, *few, parts=both)
    assert ran.exit_code == 0 and "12 pairs to learn from, 12 to test on" in ran.output, ran.output
    assert (tmp_path / "new" / "tables" / "finetuned.csv").is_file()


def test_the_judge_stands_beside_the_probes_of_the_run(done: Result, place: Path) -> None:
    assert done.exit_code == 0, done.output
    assert re.search(r"^(Yes|No|Cannot tell).* judge ", done.output, re.MULTILINE)
    assert "one: fine-tuned judge. Training took" in done.output
    rows = table(place, "finetuned")
    assert set(rows.method) == {
        JUDGE, "supervised", "unsupervised", "prompting", "no model (TF-IDF)", "no model (length)",
    }  # fmt: skip
    card = load_probe(place / "out" / "one-supervised.safetensors").card
    assert rows.query("method == 'supervised' and metric == 'auroc'").value.item() == pytest.approx(
        card.test_scores["auroc"]
    ), "the test half is the saved probe's"
    assert set(table(place, "finetuned_less").against) == set(rows.method) - {JUDGE}
    assert len(table(place, "finetuning")) == 2 * -(-2 * card.train_pairs // 8)
    cost = table(place, "finetuning_cost")
    assert len(cost) == 3 and (cost.seconds > 0).all() and cost.flops[0] > cost.flops[1]
    report = (place / "out" / "report.md").read_text()
    assert (
        "## Fine-tuned judge, on the test half" in report
        and "](figures/finetuning-one.svg)" in report
    )


def test_it_learns_from_the_training_half_alone_in_both_orders(done: Result, place: Path) -> None:
    judge = load_model(str(place / "model"))
    [lesson] = lessons(place / "out", judge, ["one"])
    card = load_probe(place / "out" / "one-supervised.safetensors").card
    assert groups_and_questions(lesson.harvest.pairs[i] for i in lesson.half.train) == set(
        card.train_groups
    )
    assert not set(lesson.half.train) & set(lesson.half.test)
    [course] = courses([lesson])
    shown = course.examples()
    assert len(shown) == 2 * len(lesson.half.train)
    digits = [judge.tokenizer.decode(list(e.answer)).strip() for e in shown]
    labels = [lesson.harvest.pairs[i].label for i in lesson.half.train]
    assert digits == [str(said) for label in labels for said in (label, 3 - (label or 0))]
    assert len(course.examples(5)) == 5 and course.examples(5) == course.examples(5)


def test_saturation_holds_judge_and_probe_of_the_same_pairs_by_number_of_texts(
    done: Result, place: Path
) -> None:
    judge, out = load_model(str(place / "model")), shutil.copytree(place / "out", place / "curve")
    [lesson] = lessons(out, judge, ["one"])
    recipe = Recipe(rank=4, alpha=4, rate=0.01, epochs=2, batch=8)
    for samples in (18, 10):
        finetune_run(out, judge, [lesson], recipe=recipe, samples=samples, progress=lambda _: None)
    rows = (
        pd.read_csv(out / "tables/saturation.csv")
        .query("metric == 'auroc'")
        .set_index(["method", "samples"])
        .value
    )
    assert set(rows.index) == {
        (method, n) for method in (JUDGE, "supervised") for n in (24, 18, 10)
    }
    saved = (
        table(place, "finetuned").query("method == 'supervised' and metric == 'auroc'").value.item()
    )
    assert rows["supervised", 24] == pytest.approx(saved), "all texts are those of the saved probe"
    assert {one.name for one in (out / "finetuned").iterdir()} == {"one", "one-18", "one-10"}
    [course] = courses([lesson])
    [numbers] = course.drawn_prompts(10)
    assert len(numbers) == 10 and course.examples(10) == [course.examples(None)[i] for i in numbers]
    assert (
        "By number of training texts" in probe_page(out, about="judges").files["report.md"].decode()
    )


def test_the_same_command_again_trains_and_asks_nothing(
    done: Result, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table(place, "finetuned")
    monkeypatch.setattr(training, "_backward_step", None)
    monkeypatch.setattr(finetune, "answers", None)
    given = ("--model", place / "model", "--datasets", place / "one.jsonl", "--out", place / "out")
    again = call(*given, *QUICK)
    assert again.exit_code == 0, again.output
    pd.testing.assert_frame_equal(table(place, "finetuned"), before)
    other = call(*given, *QUICK[:-1], 3)
    assert (
        other.exit_code == 2
        and "holds a training on other examples, weights or settings" in other.output
    )
    dry = call(*given, *QUICK, "--dry-run")
    assert (
        dry.exit_code == 0
        and "12 pairs to learn from, 12 to test on" in dry.output
        and "FLOPs" in dry.output
    )


@pytest.mark.slow(2)
def test_a_judge_of_all_weights_stands_beside_that_of_adapters(done: Result, place: Path) -> None:
    folder = shutil.copytree(place / "out", place / "both")
    ran = call(
        *("--model", place / "model", "--datasets", place / "one.jsonl", "--out", folder),
        *("--limit", 24, "--full", "--rate", 0.01),
    )
    assert ran.exit_code == 0, ran.output
    assert "weights: all of them" in ran.output
    assert (
        "one: fine-tuned judge." in ran.output
        and "one: fine-tuned judge, all weights." in ran.output
    )
    rows, before = (
        pd.read_csv(out / "tables" / "finetuned.csv") for out in (folder, place / "out")
    )
    assert set(rows.method) == {*before.method, "fine-tuned judge, all weights"}
    assert not rows.duplicated(["dataset", "method", "metric"]).any()
    pd.testing.assert_frame_equal(
        rows[rows.method == JUDGE].reset_index(drop=True),
        before[before.method == JUDGE].reset_index(drop=True),
    )
    assert set(pd.read_csv(folder / "tables" / "finetuning.csv").training) == {
        JUDGE,
        "fine-tuned judge, all weights",
    }
    assert len(pd.read_csv(folder / "tables" / "finetuning_cost.csv")) == 4
    assert (folder / "finetuned" / "one-full" / "model.safetensors").is_file()


def test_all_weights_have_no_rank_and_their_memory_is_said_before_loading(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (
        "--model",
        place / "model",
        "--datasets",
        place / "one.jsonl",
        "--out",
        tmp_path,
        "--full",
    )
    wrong = call(*given, "--rank", 4)
    assert (
        wrong.exit_code == 2
        and "--rank is the rank of adapters, and --full trains without" in wrong.output
    )
    monkeypatch.setattr("selfprobe.probes.model.load_model", None)
    for other in (("--dtype", "bfloat16"), ("--quantize", "4bit")):
        rounded = call(*given, *other)
        assert (
            rounded.exit_code == 2 and f"trained in float32 alone, got {other[1]}" in rounded.output
        )
    monkeypatch.setattr("accelerate.utils.get_max_memory", lambda: {"cpu": 1000})
    little = call(*given)
    assert (
        little.exit_code == 2
        and "float32, all of its weights trained, and 0 MB are free on cpu" in little.output
    )
    assert "adapters (without --full)" in little.output


def test_a_data_set_or_a_model_that_is_not_the_runs_is_refused(done: Result, place: Path) -> None:
    judge = load_model(str(place / "model"))
    with pytest.raises(ValueError, match="has no data set 'two', only one"):
        lessons(place / "out", judge, ["two"])
    with pytest.raises(ValueError, match="is a run of .*, got tiny-llama"):
        lessons(place / "out", tiny_judge(seed=1), ["one"])
    with pytest.raises(FileNotFoundError, match="is no run's folder"):
        finetune_run(place, judge, lessons(place, judge, ["one"]), recipe=Recipe())


def test_the_claim_says_whether_the_judge_is_above_the_probe_and_the_texts(
    done: Result, place: Path
) -> None:
    made = {name: table(place, name) for name in ("finetuned", "finetuned_less", "finetuning_cost")}
    less = made["finetuned_less"]
    probe = (less.against == "supervised") & (less.metric == "auroc")
    less.loc[(less.metric == "auroc") & ~probe, ["value", "low", "high"]] = [0.2, 0.1, 0.3]
    for low, high, verdict in (
        (0.1, 0.3, Verdict.YES),
        (-0.3, -0.1, Verdict.NO),
        (-0.1, 0.1, Verdict.CANNOT_TELL),
    ):
        less.loc[probe, ["value", "low", "high"]] = [np.mean([low, high]), low, high]
        (evidence,) = judge_evidence(made)
        assert judge_claim(evidence).verdict is verdict
    less.loc[probe, ["value", "low", "high"]] = [0.2, 0.1, 0.3]
    less.loc[(less.metric == "auroc") & (less.against == "no model (length)"), "low"] = -0.1
    (evidence,) = judge_evidence(made)
    assert "not shown to be above length" in claim_sentence(judge_claim(evidence), JUDGE_WORDS)


@pytest.mark.slow(4)
def test_where_each_aspect_has_its_probe_each_has_its_judge_and_a_number_is_the_mean_over_aspects(
    tmp_path: Path,
) -> None:
    def pairs(aspect: str) -> list[Pair]:
        texts = [("ab"[i % 2] + str(i), "ba"[i % 2] + str(i)) for i in range(16)]
        return [
            Pair(f"{aspect}{i}", *two, 1 + i % 2, kind="newsroom", aspect=aspect, context=f"c{i}")
            for i, two in enumerate(texts)
        ]

    judge, few = tiny_judge(), FitSettings(seeds=2, folds=2, resamples=100, aspects="apart")
    both = {aspect: pairs(aspect) for aspect in ("coherence", "fluency")}
    every = [pair for part in both.values() for pair in part]
    given = {"newsroom": PairSet("newsroom", tuple(every), "newsroom", 0, 0)}
    run_probes(judge, given, tmp_path, settings=few, random_weights=False, progress=lambda _: None)
    learnt = lessons(tmp_path, judge, ["newsroom"])
    assert [lesson.aspect for lesson in learnt] == ["coherence", "fluency"]
    for lesson in learnt:
        assert {
            lesson.harvest.pairs[i].aspect for i in [*lesson.half.train, *lesson.half.test]
        } == {lesson.aspect}
        card = lesson.probes["supervised"].card
        assert groups_and_questions(lesson.harvest.pairs[i] for i in lesson.half.train) == set(
            card.train_groups
        )
    recipe = Recipe(rank=4, alpha=4, rate=0.01, epochs=1, batch=8)
    made = finetune_run(tmp_path, judge, learnt, recipe=recipe, progress=lambda _: None)[
        "finetuned"
    ]
    f1 = made.query("metric == 'f1'").set_index("method")
    assert set(f1.dataset) == {"newsroom"} and f1.index.is_unique
    cards = [lesson.probes["supervised"].card.test_scores["f1"] for lesson in learnt]
    assert f1.value["supervised"] == pytest.approx(np.mean(cards))
    own = []
    for lesson in learnt:
        test = [lesson.harvest.pairs[i] for i in lesson.half.test]
        said = np.load(tmp_path / "finetuned" / f"newsroom-{lesson.aspect}" / "answers.npy")
        first = 1 / (1 + np.exp(said[:, 0, 1] - said[:, 0, 0]))
        second = 1 / (1 + np.exp(said[:, 1, 0] - said[:, 1, 1]))
        own.append(
            f1_score([p.label == 1 for p in test], (first + second) / 2 > 0.5, average="weighted")
        )
    assert f1.value[JUDGE] == pytest.approx(np.mean(own))


@pytest.mark.slow(8)
def test_a_judge_of_a_group_learns_all_its_data_sets_and_is_tested_on_each(tmp_path: Path) -> None:
    def pairs(name: str, aspect: str) -> list[Pair]:
        texts = [("ab"[i % 2] + str(i), "ba"[i % 2] + str(i)) for i in range(8)]
        return [
            Pair(
                f"{name}{aspect}{i}",
                *two,
                1 + i % 2,
                kind=name,
                aspect=aspect,
                context=f"{name} {i}",
            )
            for i, two in enumerate(texts)
        ]

    judge, few = (
        tiny_judge(),
        FitSettings(seeds=1, folds=2, resamples=100, aspects="apart", orders="first"),
    )
    parts = {"newsroom": ("coherence", "fluency"), "mctaco": ("",), "hanna": ("surprise",)}
    sets = {
        name: [p for aspect in aspects for p in pairs(name, aspect)]
        for name, aspects in parts.items()
    }
    given = {name: PairSet(name, tuple(every), name, 0, 0) for name, every in sets.items()}
    run_probes(judge, given, tmp_path, settings=few, random_weights=False, progress=lambda _: None)
    learnt = lessons(tmp_path, judge, list(sets))
    quality, sense = courses(learnt, grouped=True)
    assert (quality.name, sense.name) == ("text-quality", "common-sense")
    assert [lesson.name for lesson in quality.lessons] == ["newsroom", "newsroom", "hanna"]
    assert quality.sizes == (12, 12) and len(quality.examples(None)) == 12, (
        "one order, as the run reads"
    )
    assert len(quality.examples(5)) == 5
    recipe = Recipe(rank=4, alpha=4, rate=0.01, epochs=1, batch=32)
    made = finetune_run(
        tmp_path, judge, learnt, recipe=recipe, grouped=True, progress=lambda _: None
    )
    assert {one.name for one in (tmp_path / "finetuned").iterdir()} == {
        "text-quality",
        "common-sense",
    }
    judged = made["finetuned"].query("method == @JUDGE and metric == 'f1'").set_index("dataset")
    assert set(judged.index) == set(sets) and "of newsroom, hanna together" in judged.note["hanna"]
    assert "together" not in judged.note["mctaco"]
    assert list(made["finetuning"].dataset) == ["text-quality", "common-sense"], (
        "a step each: a batch holds all"
    )
    cost = made["finetuning_cost"]
    trained = cost[cost.what.str.startswith(f"{JUDGE}:")]
    assert (
        sorted(trained.dataset) == ["hanna", "mctaco", "newsroom"]
        and trained.seconds.nunique() == 2
    )
    assert all("Training took" in line for line in cost_sentences({**made}))


def test_the_preset_released_code_has_the_rates_batch_and_grouping_of_the_public_scripts() -> None:
    def study(**given: Any) -> Any:
        return ProbeRun(datasets=("one",), models=("smollm2",), parts=("finetune",), **given)

    code, full = study(preset="released-code"), study(preset="released-code", full=True)
    assert (code.recipe.rate, code.recipe.batch, code.recipe.rank, code.samples) == (
        5e-5,
        32,
        64,
        5000,
    )
    assert (full.recipe.rate, full.recipe.batch, full.recipe.rank) == (5e-7, 32, None)
    assert code.grouped and not study().grouped
    assert (study().recipe.rate, study(full=True).recipe.rate, study().recipe.batch) == (
        1e-4,
        2e-5,
        8,
    )
    assert (study(preset="released-code", rate=0.01, batch=2).recipe.rate) == 0.01, (
        "what is given wins"
    )
