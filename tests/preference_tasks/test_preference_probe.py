"""A fitted probe as a task, on a tiny model with random weights."""

import importlib.util
import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog

pytest.importorskip("torch", reason="the probes extra is not installed")
pytest.importorskip("transformers", reason="the probes extra is not installed")

from selfprobe.errors import InputError
from selfprobe.preference_tasks.preference_probe import preference_probe
from selfprobe.probes.fit import PRESETS, FitSettings
from selfprobe.probes.probe_file import load_probe
from selfprobe.probes.run import run_probes
from selfprobe.scorers.decision import decisions_of

Run = Callable[..., EvalLog]


def tiny_judge(**given: Any) -> Any:
    """Of tests/probes/conftest.py (pytest's importlib mode adds no folder to the path)."""
    if "probes_conftest" not in sys.modules:
        file = Path(__file__).parent.parent / "probes" / "conftest.py"
        spec = importlib.util.spec_from_file_location("probes_conftest", file)
        assert spec is not None and spec.loader is not None
        sys.modules["probes_conftest"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["probes_conftest"].tiny_judge(**given)


def own_rows(count: int = 24) -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{i}",
            "question": f"one {i // 2}",
            "text_1": f"{'ab'[i % 2]}{i}",
            "text_2": f"{'ba'[i % 2]}!",
        }
        | {"label": 1 + i % 2}
        for i in range(count)
    ]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models, a data set, and the probes of the first model."""
    folder = tmp_path_factory.mktemp("fitted")
    for seed in (0, 1):
        judge = tiny_judge(seed=seed, context=2048)
        judge.model.save_pretrained(folder / f"model{seed}")
        judge.tokenizer.save_pretrained(folder / f"model{seed}")
    data = written(folder / "one.jsonl", own_rows())
    settings = FitSettings(seeds=2, folds=2, resamples=100)
    run_probes(
        str(folder / "model0"),
        [data],
        folder / "probes",
        settings=settings,
        progress=lambda _: None,
    )
    return folder


@pytest.fixture
def probe(fitted: Path) -> str:
    return str(fitted / "probes" / "one-supervised.safetensors")


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success" and log.results is not None, log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def test_held_out_pairs_get_the_score_on_the_probes_card(
    run_task: Run, fitted: Path, probe: str, tmp_path: Path
) -> None:
    log = run_task(
        preference_probe(probe, str(fitted / "one.jsonl")), "none/none", tmp_path / "logs"
    )
    found, card = metrics(log), load_probe(Path(probe)).card
    assert found["n"] == 12 and found["accuracy"] == pytest.approx(card.test_scores["accuracy"])
    assert found["auroc"] == pytest.approx(card.test_scores["auroc"]) and "own_accuracy" in found
    assert (log.eval.metadata or {})["seen_in_training_left_out"] == 12
    assert (log.eval.metadata or {})["centre"] == "none", "both orders are read"
    assert (log.eval.metadata or {})["probe_layer"] == load_probe(Path(probe)).probe.layer
    held = {str(s.id) for s in log.samples or []}
    assert len(held) == 12 and all(
        (s.metadata["group"] not in card.train_groups) for s in log.samples or []
    )


@pytest.mark.slow(6)
def test_a_probe_of_random_halves_is_tested_on_its_own_test_half_and_new_questions(
    run_task: Run, fitted: Path, tmp_path: Path
) -> None:
    rows = own_rows()
    for number, row in enumerate(rows):
        row["question"] = f"one {number % 4}"  # every question is on both sides of a random split
    data = written(tmp_path / "one.jsonl", rows)
    settings = replace(PRESETS["paper"], orientation="few:8", folds=2, seeds=1, resamples=100)
    model = str(fitted / "model0")
    run_probes(model, [data], tmp_path / "probes", settings=settings, progress=lambda _: None)
    probe_path = tmp_path / "probes" / "one-supervised.safetensors"
    card = load_probe(probe_path).card
    tested = metrics(run_task(preference_probe(str(probe_path), data), "none/none", tmp_path / "l"))
    assert tested["n"] == 12
    assert tested["accuracy"] == pytest.approx(card.test_scores["accuracy"])
    assert preference_probe(str(probe_path), data).metadata["centre"] == "source"

    elsewhere = [row | {"id": f"other {row['id']}"} for row in rows]
    other = written(tmp_path / "other.jsonl", elsewhere)
    with pytest.raises(InputError, match="trained on the questions of all 24 pairs"):
        preference_probe(str(probe_path), other)


def test_each_decision_is_in_the_log_and_no_state(
    run_task: Run, fitted: Path, probe: str, tmp_path: Path
) -> None:
    log = run_task("selfprobe/preference_probe", "none/none", tmp_path / "logs", limit=3, task_args={"probe": probe, "dataset": str(fitted / "one.jsonl")})  # fmt: skip
    assert metrics(log)["n"] == 3
    for sample in log.samples or []:
        score = next(iter((sample.scores or {}).values()))
        verdict, own = decisions_of(score)
        assert verdict.said in ("1", "2") and own.key == "own"
        assert f"the probe prefers text {verdict.said}" in str(score.explanation)
        assert len(sample.model_dump_json()) < 20_000
    assert not log.stats.model_usage


def test_the_model_can_lie_elsewhere_and_mockllm_will_do(
    run_task: Run, fitted: Path, probe: str, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    moved.symlink_to(fitted / "model0")
    task = preference_probe(probe, str(fitted / "one.jsonl"), model=str(moved), pairs=10)
    found = metrics(run_task(task, "mockllm/model", tmp_path / "logs"))
    assert 0 < found["n"] <= 10


def test_a_probe_of_another_model_is_refused_before_anything_runs(fitted: Path, probe: str) -> None:
    with pytest.raises(
        InputError,
        match=r"was fitted to .*model0 \(local-.*not to this model \(local-.*Fit a probe for",
    ):
        preference_probe(probe, str(fitted / "one.jsonl"), model=str(fitted / "model1"))


def test_a_missing_file_a_pickle_and_another_safetensors_file_are_refused(
    fitted: Path, tmp_path: Path
) -> None:
    data = str(fitted / "one.jsonl")
    with pytest.raises(InputError, match=r"no file or folder 'gone.safetensors'; looked at"):
        preference_probe("gone.safetensors", data)
    with pytest.raises(InputError, match="no probe file at .*probe run"):
        preference_probe(str(tmp_path), data)
    pickled = tmp_path / "probe.pt"
    pickled.write_bytes(pickle.dumps({"direction": [1.0] * 100}))
    with pytest.raises(InputError, match="is no safetensors file .*never read from a pickle"):
        preference_probe(str(pickled), data)
    with pytest.raises(InputError, match="is no probe file: expected format selfprobe-probe-1"):
        preference_probe(str(fitted / "model0" / "model.safetensors"), data)


def test_weights_that_are_only_pickle_are_refused(fitted: Path, probe: str, tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"weights only as pickle \(pytorch_model.bin\)"):
        preference_probe(probe, str(fitted / "one.jsonl"), model=str(tmp_path))


def test_a_data_set_of_which_all_was_learnt_from_is_an_error(
    fitted: Path, probe: str, tmp_path: Path
) -> None:
    groups = set(load_probe(Path(probe)).card.train_groups)
    from selfprobe.data.public_pairs import load_pairs

    seen = {p.id for p in load_pairs(str(fitted / "one.jsonl")).pairs if p.group in groups}
    data = written(tmp_path / "seen.jsonl", [row for row in own_rows() if row["id"] in seen])
    with pytest.raises(
        InputError, match="trained on the questions of all 12 pairs of .*nothing is held out"
    ):
        preference_probe(probe, data)


def test_what_cannot_be_read_is_unscored_with_its_reason(
    run_task: Run, probe: str, tmp_path: Path
) -> None:
    rows = own_rows(3)
    rows[0] |= {"text_2": "long " * 500, "question": "new 0"}
    rows[1] |= {"text_1": "same", "text_2": "Same ", "question": "new 1"}
    rows[2] |= {"question": "new 2"}
    found = metrics(
        run_task(
            preference_probe(probe, written(tmp_path / "d.jsonl", rows)),
            "none/none",
            tmp_path / "logs",
        )
    )
    assert found["unscored_too_long"] == pytest.approx(1 / 3) == found["unscored_equal_texts"]
    assert found["n"] == 1 and "auroc" not in found
