"""The experiment end to end on a tiny judge: run, kill, go on, transfer, ablate, score."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from selfprobe.data.public_pairs import load_pairs
from selfprobe.errors import InputError
from selfprobe.probes.ablate import ablate_run, ablated, answers, rejected
from selfprobe.probes.evaluate import split_pairs
from selfprobe.probes.fit import PRESETS, FitSettings, groups_and_questions
from selfprobe.probes.folder import read_run, write_run
from selfprobe.probes.model import LocalModel, fingerprint, load_model
from selfprobe.probes.probe_file import judge_pairs, load_probe, save_probe
from selfprobe.probes.run import run_probes
from selfprobe.studies.probe_page import probe_page
from selfprobe.study.local import user_errors_as_input_errors

from .conftest import some_pairs, tiny_judge

QUICK = FitSettings(seeds=2, folds=2, resamples=100)


def silent(_: str) -> None:
    pass


def own_file(folder: Path, name: str, count: int = 24, *, pairs_per_question: int = 2) -> str:
    rows = [
        {
            "id": i,
            "question": f"{name} {i // pairs_per_question}",
            "text_1": f"{'ab'[i % 2]}{i}",
            "text_2": f"{'ba'[i % 2]}!",
            "label": 1 + i % 2,
        }
        for i in range(count)
    ]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def done(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, LocalModel, dict[str, pd.DataFrame]]:
    folder, judge = tmp_path_factory.mktemp("run"), tiny_judge()
    files = [own_file(folder, "one"), own_file(folder, "two")]
    return (
        folder,
        judge,
        run_probes(judge, files, folder / "probes", settings=QUICK, progress=silent),
    )


def test_a_run_writes_tables_and_probes(done: Any) -> None:
    folder, _, tables = done
    assert set(tables) == {
        *(
            "methods",
            "differences",
            "layers",
            "floors",
            "selected_on_test",
            "data",
            "transfer",
            "cosine",
            "components",
        )
    }
    for name, table in tables.items():
        assert len(pd.read_csv(folder / "probes" / "tables" / f"{name}.csv")) == len(table) > 0
    assert set(tables["methods"].dataset) == {"one", "two"}
    assert tables["methods"].query("method == 'supervised' and dataset == 'one'").n.max() <= 24
    assert "random weights, supervised" in set(tables["methods"].method), (
        "by default for a small model"
    )
    card = load_probe(folder / "probes" / "one-supervised.safetensors").card
    assert (card.dataset, card.model, card.train_pairs, len(card.train_groups)) == (
        "one",
        "tiny-llama",
        12,
        6,
    )
    assert set(card.test_scores) == {"f1", "accuracy", "auroc"}


@pytest.mark.slow(3)
def test_the_same_run_again_reads_nothing_new_and_says_the_same(
    done: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, judge, tables = done
    monkeypatch.setattr("selfprobe.probes.forward.read_states", None)
    files = [str(folder / "one.jsonl"), str(folder / "two.jsonl")]
    again = run_probes(judge, files, folder / "probes", settings=QUICK, progress=silent)
    for name in tables:
        pd.testing.assert_frame_equal(again[name], tables[name])


def test_tables_of_another_run_in_the_folder_do_not_stay(done: Any, tmp_path: Path) -> None:
    folder, judge, _ = done
    copy = tmp_path / "probes"
    shutil.copytree(folder / "probes", copy)
    assert (copy / "tables" / "transfer.csv").is_file()
    run_probes(judge, [str(folder / "one.jsonl")], copy, settings=QUICK, progress=silent)
    assert not (copy / "tables" / "transfer.csv").exists(), "the report would show it as this run's"


def test_cosines_with_itself_and_by_symmetry(done: Any) -> None:
    table = done[2]["cosine"].query("probe == 'supervised'").set_index(["a", "b"]).cosine
    assert table["one", "two"] == pytest.approx(table["two", "one"])
    assert table.min() >= -1 and table.max() <= 1


def test_another_model_may_not_write_into_a_run(done: Any) -> None:
    folder, _, _ = done
    with pytest.raises(
        ValueError, match=r"holds a run of tiny-llama \(r0\): give tiny-llama another folder"
    ):
        run_probes(
            tiny_judge(seed=1),
            [str(folder / "one.jsonl")],
            folder / "probes",
            settings=QUICK,
            progress=silent,
        )
    with pytest.raises(ValueError, match=r"is a run of tiny-llama \(r0\), got tiny-llama \(r1\)"):
        ablate_run(folder / "probes", tiny_judge(seed=1), progress=silent)


def test_errors_of_a_run_say_what_to_do(done: Any, tmp_path: Path) -> None:
    folder, judge, _ = done
    with pytest.raises(ValueError, match="no data sets given"):
        run_probes(judge, [], tmp_path, progress=silent)
    with pytest.raises(ValueError, match="two data sets are named 'one'"):
        run_probes(judge, [str(folder / "one.jsonl")] * 2, tmp_path, progress=silent)
    with pytest.raises(FileNotFoundError, match=r"no run's folder .*selfprobe probe run --out"):
        ablate_run(tmp_path, judge, progress=silent)
    run_probes(judge, [str(folder / "one.jsonl")], tmp_path, settings=QUICK, progress=silent)
    with pytest.raises(ValueError, match="has no data set 'three', only one"):
        ablate_run(tmp_path, judge, datasets=["three"], progress=silent)


def test_ablation_stands_beside_random_directions(done: Any) -> None:
    folder, judge, _ = done
    table = ablate_run(
        folder / "probes", judge, random_directions=2, datasets=["one"], progress=silent
    )
    assert table.direction.tolist() == [
        "none",
        "supervised",
        "unsupervised",
        "random 1",
        "random 2",
    ]
    assert table.value[0] == 0 and table.changed_answers[0] == 0


def test_a_model_that_differs_in_one_tensor_is_another(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    found = set()
    for value in (0.0, 1.0):
        weights = {
            "a": torch.zeros(600_000),
            "b": torch.full((600_000,), value),
            "c": torch.zeros(600_000),
        }
        save_file(weights, tmp_path / "model.safetensors")
        found.add(fingerprint(tmp_path))
    assert len(found) == 2


def test_ablation_asks_about_held_out_pairs_drawn_at_random(
    done: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, judge, _ = done
    asked: list[list[str]] = []

    def noted(judge: LocalModel, pairs: Any, *rest: Any, **more: Any) -> Any:
        asked.append([pair.id for pair in pairs])
        return answers(judge, pairs, *rest, **more)

    monkeypatch.setattr("selfprobe.probes.ablate.answers", noted)
    for limit in (None, 6):
        ablate_run(
            folder / "probes",
            judge,
            random_directions=1,
            datasets=["one"],
            limit=limit,
            progress=silent,
        )
    all_of_them, some = asked
    assert len(some) == 6 and set(some) < set(all_of_them)
    assert some != all_of_them[:6], "files come subset by subset"


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_ablates_on_the_test_half_of_its_own_split_however_few_questions_there_are(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = tiny_judge()
    data = own_file(tmp_path, "one", pairs_per_question=6)
    settings = replace(PRESETS[preset], seeds=1, folds=2, resamples=100)
    run_probes(judge, [data], tmp_path / "probes", settings=settings, progress=silent)
    asked: list[str] = []

    def note_pairs(judge: LocalModel, pairs: Any, *rest: Any, **more: Any) -> Any:
        asked.extend(pair.id for pair in pairs)
        return answers(judge, pairs, *rest, **more)

    monkeypatch.setattr("selfprobe.probes.ablate.answers", note_pairs)
    table = ablate_run(tmp_path / "probes", judge, random_directions=1, progress=silent)
    pairs = load_pairs(data).pairs
    half = split_pairs(pairs, settings)[0]
    assert asked == [pairs[number].id for number in half.test] and asked
    assert table.n.min() > 0


@pytest.mark.slow(12)
def test_the_page_of_the_papers_preset_says_once_that_its_halves_leak_with_the_strict_ones_beside_it(
    tmp_path: Path,
) -> None:
    data = own_file(tmp_path, "one", count=64, pairs_per_question=4)
    settings = replace(PRESETS["paper"], seeds=1, resamples=100)
    out = tmp_path / "probes"
    tables = run_probes(tiny_judge(), [data], out, settings=settings, progress=silent)
    assert set(tables["strict"].method) == {"supervised", "unsupervised", "prompting"}
    page = probe_page(out)
    text = str(page.sections)
    assert (
        text.count("The paper's own halves leak") == 1 and "one question is in both" in page.answer
    )
    report = (page.files["report.md"]).decode()
    assert report.count("The paper's own halves leak") == 1
    strict = run_probes(tiny_judge(), [data], tmp_path / "s", settings=QUICK, progress=silent)
    assert "strict" not in strict and "halves leak" not in str(probe_page(tmp_path / "s").sections)


def test_an_ablation_without_a_held_out_pair_is_refused(done: Any, tmp_path: Path) -> None:
    folder, judge, _ = done
    shutil.copytree(folder / "probes", tmp_path / "probes")
    file = tmp_path / "probes" / "one-supervised.safetensors"
    fitted = load_probe(file)
    questions = groups_and_questions(load_pairs(str(folder / "one.jsonl")).pairs)
    card = replace(fitted.card, train_groups=tuple(questions), test_pairs=())
    save_probe(file, fitted.probe, card)
    (tmp_path / "probes" / "tables" / "ablation.csv").unlink(missing_ok=True)
    with (
        pytest.raises(
            InputError,
            match=r"^one: its probe in .* learnt from the questions of all 24 pairs, .*--parts probes",
        ),
        user_errors_as_input_errors(""),
    ):
        ablate_run(tmp_path / "probes", judge, datasets=["one"], progress=silent)
    assert not (tmp_path / "probes" / "tables" / "ablation.csv").exists()


def test_what_is_left_has_nothing_of_the_direction() -> None:
    x, p = torch.tensor([[3.0, 4.0]]), torch.tensor([2.0, 0.0])
    assert rejected(x, p).tolist() == [[0.0, 4.0]]


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_ablating_the_last_token_alone_is_the_same_on_the_whole_prompt(family: str) -> None:
    judge = tiny_judge(family)
    direction = np.random.default_rng(0).standard_normal(judge.d_model)
    pairs = some_pairs(3)
    found = answers(judge, pairs, {"none": None, "it": direction}, batch_tokens=1500)
    from selfprobe.probes.tokens import encode

    for i, pair in enumerate(pairs):
        (prompt,) = encode(judge.tokenizer, [pair])
        ids = torch.tensor([prompt.prefix])
        plain = judge.model(ids).logits[0, -1].log_softmax(0)[list(prompt.contrast)]
        with ablated(judge, direction):
            without = judge.model(ids).logits[0, -1].log_softmax(0)[list(prompt.contrast)]
        np.testing.assert_allclose(found["none"][i, 0], plain, atol=1e-3)
        np.testing.assert_allclose(found["it"][i, 0], without, atol=1e-3)
    assert not np.allclose(found["none"], found["it"], atol=1e-2)


def test_a_direction_of_another_width_is_an_error(llama: LocalModel) -> None:
    with (
        pytest.raises(ValueError, match="expected a direction of 32 numbers, not all 0"),
        ablated(llama, np.ones(5)),
    ):
        pass


def test_a_probe_judges_pairs_without_labels(done: Any, tmp_path: Path) -> None:
    folder, judge, _ = done
    file = load_probe(folder / "probes" / "one-supervised.safetensors", revision=judge.revision)
    pairs = load_pairs(str(folder / "one.jsonl")).pairs
    found = judge_pairs(file, judge, pairs, cache=tmp_path, progress=silent)
    held = [d for d in found if not d.is_trained_on]
    assert len(held) == 12
    right = np.mean([d.preferred == d.pair.label for d in held])
    assert right == pytest.approx(file.card.test_scores["accuracy"])
    same = judge_pairs(
        file, judge, [*pairs[:1], type(pairs[0])("same", "x", "x")], cache=tmp_path, progress=silent
    )[1]
    assert (same.preferred, same.score, same.reason) == (None, None, "equal texts")


def test_a_score_of_zero_or_nan_prefers_neither_text(done: Any, tmp_path: Path) -> None:
    file = load_probe(done[0] / "probes" / "one-supervised.safetensors")
    pairs = load_pairs(str(done[0] / "one.jsonl")).pairs[:2]
    flat = replace(file, probe=replace(file.probe, direction=np.zeros(32), bias=0.0))
    for said in judge_pairs(flat, done[1], pairs, cache=tmp_path, progress=silent):
        assert (said.preferred, said.score) == (None, 0.0) and said.own_answer is not None
        assert said.reason == "no preference: the score is exactly 0"
    broken = replace(file, probe=replace(file.probe, bias=np.nan))
    for said in judge_pairs(broken, done[1], pairs, cache=tmp_path, progress=silent):
        assert (said.preferred, said.score, said.reason) == (None, None, "score is not finite: nan")


def test_a_probe_of_another_model_does_not_judge(done: Any, tmp_path: Path) -> None:
    file = load_probe(done[0] / "probes" / "one-supervised.safetensors")
    with pytest.raises(ValueError, match=r"fitted to tiny-llama \(r0\), not to tiny-llama \(r1\)"):
        judge_pairs(file, tiny_judge(seed=1), some_pairs(1), cache=tmp_path)


def test_a_saved_model_is_loaded_and_named_by_its_weights(tmp_path: Path) -> None:
    judge = tiny_judge("gemma2")
    judge.model.save_pretrained(tmp_path / "model")
    judge.tokenizer.save_pretrained(tmp_path / "model")
    loaded = load_model(str(tmp_path / "model"))
    assert loaded.revision.startswith("local-")
    assert loaded.revision == load_model(str(tmp_path / "model"), dtype="bfloat16").revision
    assert (len(loaded.blocks), loaded.d_model, loaded.context) == (3, 32, 4096)
    assert loaded.size_line.endswith(": 3 blocks of width 32")
    some_layers = load_model(str(tmp_path / "model"), layers=(0, 2))
    assert some_layers.size_line.endswith(": 2 of 3 blocks of width 32")
    assert loaded.model.config._attn_implementation == "eager", "sdpa knows no soft-capping"


def test_weights_that_are_only_pickle_are_refused_unless_allowed(tmp_path: Path) -> None:
    judge = tiny_judge()
    judge.model.save_pretrained(tmp_path)
    judge.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(judge.model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(
        ValueError,
        match=r"only as pickle \(pytorch_model.bin\).*any code.*allow pickle if you trust",
    ):
        load_model(str(tmp_path))
    assert load_model(str(tmp_path), allow_pickle=True).revision.startswith("local-")


def test_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no model folder"):
        load_model(str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="no GGUF file"):
        load_model(str(tmp_path / "x.gguf"))
    with pytest.raises(ValueError, match=f"no config.json in {tmp_path}: expected a folder of"):
        load_model(str(tmp_path))
    with pytest.raises(ValueError, match="transformers says: .*[^:]$"):
        (tmp_path / "config.json").write_text('{"model_type": "llama"}', "utf-8")
        load_model(str(tmp_path))
    gguf_folder = tmp_path / "quantised"
    gguf_folder.mkdir()
    (gguf_folder / "x.gguf").touch()
    with pytest.raises(ValueError, match=r"it holds a .gguf: give that file, .*quantised/x.gguf$"):
        load_model(str(gguf_folder))
    with pytest.raises(
        ValueError, match="dtype must be one of float32, bfloat16, float16, got 'int4'"
    ):
        load_model("x", dtype="int4")


def test_a_full_disk_is_said_with_how_to_go_on_and_leaves_the_runs_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: dict[str, Any] = {"model": "a", "loading": {}}
    write_run(tmp_path, held)
    real = Path.write_text

    def full(self: Path, text: str, **given: Any) -> int:
        real(self, text[:5], **given)
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    told = r"^the disk is full: .*No space left on device.*run.json.part'. Make room. The same command goes on.$"
    with (
        pytest.raises(InputError, match=told),
        user_errors_as_input_errors("The same command goes on."),
    ):
        write_run(tmp_path, held | {"model": "b"})
    assert read_run(tmp_path) == held
