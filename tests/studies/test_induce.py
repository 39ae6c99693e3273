"""`selfprobe mechanism induce` on a tiny model: what is read and taught, the command, and what can
be wrong.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result

pytest.importorskip("peft", reason="the mechanisms extra is not installed")

from selfprobe import cli
from selfprobe.mechanism import induce_reading
from selfprobe.mechanism.induce import READ_COLUMNS, ReadColumn, labels_of, prompt_tokens
from selfprobe.mechanism.induce_reading import prompts_of, read_labels
from selfprobe.studies.induce import material

from ..mechanism.tiny_words import QUESTIONS, saved, tiny

SMALL = ("--questions", 8, "--held-out", 8, "--seeds", 1, "--epochs", 1, "--rank", 2, "--batch", 8)
HERE = ("--device", "cpu", "--dtype", "float32")


def call(*arguments: Any) -> Result:
    yes = [] if "--dry-run" in arguments else ["--yes"]
    return CliRunner().invoke(cli.main, ["mechanism", "induce", *map(str, arguments), *yes])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("induce")
    saved(folder / "model")
    rows = [json.dumps({"id": str(n), "question": text}) for n, text in enumerate(QUESTIONS)]
    (folder / "questions.jsonl").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def done(place: Path) -> Result:
    given = (
        "--model",
        place / "model",
        "--dataset",
        place / "questions.jsonl",
        "--out",
        place / "out",
    )
    return call(*given, *SMALL)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_what_is_read_on_a_cache_is_what_whole_prompts_say(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = tiny(family)
    labels, prompts = (
        labels_of(judge),
        [prompts_of(judge, text) for text in (*QUESTIONS[:3], "Why ?")],
    )
    on_cache = read_labels(judge, prompts, labels, batch_tokens=200)
    monkeypatch.setattr(induce_reading, "_cache_is_right", lambda *_: False)
    np.testing.assert_allclose(on_cache, read_labels(judge, prompts, labels), atol=2e-4)
    asked = ReadColumn("fact", 1, 2)
    ids = torch.tensor([prompt_tokens(judge, QUESTIONS[1], asked)])
    plain = judge.model(ids).logits[0, -1].log_softmax(-1)[list(labels.start)]
    np.testing.assert_allclose(on_cache[1, READ_COLUMNS.index(asked)], plain.numpy(), atol=2e-4)


def test_the_direct_second_word_is_read_after_the_models_own_first_one() -> None:
    judge = tiny()
    labels = labels_of(judge)
    found = read_labels(judge, [prompts_of(judge, QUESTIONS[0])], labels)[0]
    first = labels.start[int(found[0].argmax())]
    ids = torch.tensor([[*prompt_tokens(judge, QUESTIONS[0], ReadColumn("direct", 0)), first]])
    plain = judge.model(ids).logits[0, -1].log_softmax(-1)[list(labels.after)]
    np.testing.assert_allclose(found[1], plain.numpy(), atol=2e-4)


def test_what_is_taught_is_the_question_and_two_labels_and_nothing_about_the_reply() -> None:
    judge = tiny()
    study = material(judge, QUESTIONS, taught=8, held_out=8)
    example, answers = study.examples(judge, 0)[0], study.answers(0)[0]
    said = judge.tokenizer.decode([*example.prompt, *example.answer]).replace("?", " ?")
    assert said == f"<user> {study.questions[0]} <end> <assistant> " + " ".join(
        study.labels.words[a] for a in answers
    )
    assert len(study.examples(judge, 0)) == 8 and (study.answers(0)[8:] == -1).all()


def test_the_command_says_its_plan_the_verdict_its_limits_and_where(
    done: Result, place: Path
) -> None:
    assert done.exit_code == 0, done.output
    assert (
        "8 questions to learn, 8 held out, 50 labels" in done.output
        and "tokens before and after" in done.output
    )
    assert (
        "Cannot tell for " in done.output and f"Page: {place / 'out' / 'index.html'}" in done.output
    )
    assert "It does not show that the model looks at its own state" in done.output
    assert (place / "out" / "seed-0" / "adapter_model.safetensors").is_file()
    assert len(json.loads((place / "out" / "run.json").read_text())["taught"]) == 8


def test_the_same_command_again_reads_and_trains_nothing(
    done: Result, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {f.name: f.read_bytes() for f in (place / "out" / "tables").iterdir()}
    monkeypatch.setattr(induce_reading, "read_labels", None)
    monkeypatch.setattr("selfprobe.probes.training._backward_step", None)
    given = (
        "--model",
        place / "model",
        "--dataset",
        place / "questions.jsonl",
        "--out",
        place / "out",
    )
    again = call(*given, *SMALL)
    assert again.exit_code == 0, again.output
    assert {f.name: f.read_bytes() for f in (place / "out" / "tables").iterdir()} == tables
    other = call(*given, *SMALL[:-2], "--batch", 4)
    assert (
        other.exit_code == 2 and "holds a run of another recipe: give another --out" in other.output
    )


def test_a_dry_run_writes_nothing(place: Path) -> None:
    given = (
        "--model",
        place / "model",
        "--dataset",
        place / "questions.jsonl",
        "--out",
        place / "dry",
    )
    dry = call(*given, *SMALL, *HERE, "--dry-run")
    assert dry.exit_code == 0 and "All: about" in dry.output and not (place / "dry").exists()


def test_wrong_input_is_said_in_a_line(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (
        "--model",
        place / "model",
        "--dataset",
        place / "questions.jsonl",
        "--out",
        tmp_path / "out",
    )
    few = call(*given, "--questions", 39, "--held-out", 9)
    assert (
        few.exit_code == 2
        and "39 questions to learn and 9 held-out ones are asked for, and there are 40"
        in few.output
    )
    assert (
        "got 2 and 24: give larger --questions and --held-out"
        in call(*given, "--questions", 2).output
    )
    labels = tmp_path / "labels.txt"
    labels.write_text("apple\nrhododendron\n")
    assert "1 of 2 labels are several tokens of" in call(*given, *SMALL, "--labels", labels).output
    labels.write_text("apple\napple\n")
    assert "the label 'apple' is there twice" in call(*given, *SMALL, "--labels", labels).output
    labels.write_text("\n")
    assert "holds no labels" in call(*given, *SMALL, "--labels", labels).output
    labels.write_bytes(b"apple\nriver\xe4\n")
    assert "labels.txt, line 2: not UTF-8" in call(*given, *SMALL, "--labels", labels).output
    half = call(*given, *SMALL, "--dtype", "float16")
    assert (
        half.exit_code == 2
        and "float16 loses small gradients" in half.output
        and "reading" not in half.output
    )
    saved(tmp_path / "bare", template=None)
    bare = call(
        "--model",
        tmp_path / "bare",
        "--dataset",
        place / "questions.jsonl",
        "--out",
        tmp_path / "o",
    )
    assert bare.exit_code == 2 and "has no chat template" in bare.output
    monkeypatch.setattr("accelerate.utils.get_max_memory", lambda: {"cpu": 10})
    full = call(*given, *SMALL)
    assert full.exit_code == 2 and "of memory" in full.output and not (tmp_path / "out").exists()


def test_too_few_single_token_words_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selfprobe.mechanism.induce.LABEL_WORDS", ["apple", "rhododendron"])
    with pytest.raises(
        ValueError, match="only 1 of 2 words are one token of tiny-llama, 50 are needed"
    ):
        labels_of(tiny())


def test_a_question_with_a_special_token_or_too_long_is_left_out_and_counted() -> None:
    odd = ["Why <end> ?", "Why " * 300]
    study = material(tiny(), [*QUESTIONS[:16], *odd], taught=8, held_out=8)
    assert study.left_out <= 2 and not set(odd) & set(study.questions)
    with pytest.raises(
        ValueError,
        match=r"there are 16 \(2 more are longer than 256 tokens, or hold a special token\)",
    ):
        material(tiny(), [*QUESTIONS[:16], *odd], taught=9, held_out=8)
