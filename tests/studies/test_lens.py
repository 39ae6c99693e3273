"""`selfprobe mechanism read` and its parts as a user calls them, and each thing that can be wrong."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from selfprobe import cli
from selfprobe.mechanism import reading
from selfprobe.probes.model import bytes_text

from ..mechanism.tiny import CARRIER, byte_tokenizer, dilemmas, planted


def call(parts: str, *arguments: object) -> Result:
    yes = [] if "--dry-run" in arguments else ["--yes"]
    return CliRunner().invoke(
        cli.main, ["mechanism", "read", "--parts", parts, *map(str, arguments), *yes]
    )


def saved(folder: Path, *, template: bool = True, carries: bool = True) -> Path:
    judge = planted(carries=carries)
    judge.model.save_pretrained(folder)
    (judge.tokenizer if template else byte_tokenizer(None)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def done(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Result]]:
    folder = tmp_path_factory.mktemp("done")
    given = ("--model", model, "--dataset", dilemmas(folder), "--out", folder / "out")
    return folder, {name: call(name, *given) for name in ("lens", "attention", "patch")}


def test_each_command_says_what_it_takes_what_it_found_and_what_it_does_not_show(
    done: tuple[Path, dict[str, Result]],
) -> None:
    folder, ran = done
    for name, result in ran.items():
        assert result.exit_code == 0, result.output
        for word in ("Memory: weights", "Disk:", "Time:", "Paper:", "It does not show"):
            assert word in result.output, (name, word)
    other = "separates the introspective prompt by 3.81 [3.81, 3.81], no more than another assistant's prompt: 3.81"
    assert "No, not for " in ran["lens"].output and other in ran["lens"].output
    assert (
        "No, not for " in ran["attention"].output
        and "Time: nothing is left to read" in ran["attention"].output
    )
    patterns = "no more of the shift with the other run's patterns than with another assistant: 103 % [103, 103]"
    assert "No, not for " in ran["patch"].output and patterns in ran["patch"].output
    names = {file.stem for file in (folder / "out" / "figures").glob("*.svg")}
    assert names == {
        *("lens", "lens_arms", "entropies", "entropies_nats", "heads", "places"),
        *("patch", "patch_all"),
    }
    page = (folder / "out" / "index.html").read_text()
    assert all(f'id="{name}"' in page for name in ("lens", "attention", "patch"))
    assert f"at block {CARRIER}" in page and "what is left" in page
    claims = json.loads((folder / "out" / "claims.json").read_text())
    lens = claims["Does the model separate an introspective prompt from the direct question?"][0]
    assert [check["outcome"] for check in lens["checks"]] == [
        "holds",
        "holds",
        "holds",
        "holds",
        "fails",
    ]


def test_json_holds_the_tables_of_the_command_and_a_config_its_options(
    done: tuple[Path, dict[str, Result]], model: Path, tmp_path: Path
) -> None:
    folder, _ = done
    config = tmp_path / "lens.yaml"
    config.write_text(
        f"model: {model}\ndataset: {folder / 'dilemmas.jsonl'}\nout: {tmp_path / 'out'}\nparts: [lens]\n"
    )
    told = CliRunner().invoke(
        cli.main, ["mechanism", "read", "--config", str(config), "--json", "--yes"]
    )
    assert set(json.loads(told.stdout)) == {"lens", "partings"}, told.output
    nobody = CliRunner().invoke(cli.main, ["mechanism", "read", "--config", str(config)])
    assert nobody.exit_code == 0, "what runs here costs nothing, and nobody is asked"


def test_a_providers_model_is_refused_before_torch_transformers_or_pandas_are_imported() -> None:
    for name in ("read", "induce"):
        code = (
            "import sys; from selfprobe.cli import main; from click.testing import CliRunner; "
            f"r = CliRunner().invoke(main, ['mechanism', '{name}', '--model', 'gpt-4o']); "
            "print(r.exit_code, 'smollm2, a folder' in r.output, "
            "sorted({'torch', 'transformers', 'inspect_ai', 'pandas'} & set(sys.modules)))"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert ran.stdout.strip() == "2 True []", ran.stderr


@pytest.mark.slow(4)
def test_a_study_is_imported_without_torch() -> None:
    code = "import sys; from selfprobe.studies import every; every(); print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "False", ran.stderr


def test_what_was_read_is_not_read_again(
    done: tuple[Path, dict[str, Result]], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = done
    before = pd.read_csv(folder / "out" / "tables" / "lens.csv")
    monkeypatch.setattr(reading, "read_in_context", None)
    again = call(
        "lens", "--model", model, "--dataset", folder / "dilemmas.jsonl", "--out", folder / "out"
    )
    assert again.exit_code == 0, again.output
    assert pd.read_csv(folder / "out" / "tables" / "lens.csv").equals(before)


def test_a_file_that_was_cut_off_is_read_again_alone(
    done: tuple[Path, dict[str, Result]], model: Path, tmp_path: Path
) -> None:
    folder, _ = done
    one = sorted((folder / "out" / "readings").glob("*.npz"))[0]
    one.write_bytes(one.read_bytes()[:100])
    again = call(
        "lens", "--model", model, "--dataset", folder / "dilemmas.jsonl", "--out", folder / "out"
    )
    assert again.exit_code == 0 and "1 of 6 dilemmas to read" in again.output


def test_a_dry_run_reads_and_writes_no_dilemma(model: Path, tmp_path: Path) -> None:
    given = (
        "--model",
        model,
        "--dataset",
        dilemmas(tmp_path),
        "--out",
        tmp_path / "out",
        "--dry-run",
    )
    given += ("--device-map", "cpu", "--dtype", "float32")
    for name, more in (("lens", ()), ("attention", ()), ("patch", ("--layers", 2))):
        ran = call(name, *given, *more)
        assert ran.exit_code == 0 and "Time: about" in ran.output, ran.output
    refused = call("attention", *given, "--template-arg", "enable_thinking=false")
    assert (
        refused.exit_code == 2
        and "has no argument enable_thinking: it would change nothing" in refused.output
    )
    assert not list(tmp_path.glob("out/readings/*")) and not (tmp_path / "out" / "tables").exists()


def test_the_plan_says_how_to_read_answers_without_a_thought(model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    template_file = folder / "chat_template.jinja"
    switch = "{% if enable_thinking is defined %}<think>\n\n</think>\n\n{% endif %}"
    template_file.write_text(template_file.read_text() + switch)
    given = ("--model", folder, "--dataset", dilemmas(tmp_path), "--out", tmp_path, "--dry-run")
    note = "Thinking: the chat template takes enable_thinking, and without it an answer is read"
    assert note in call("lens", *given).output
    switched_off = call("lens", *given, "--template-arg", "enable_thinking=false")
    assert switched_off.exit_code == 0 and "Thinking:" not in switched_off.output


def test_a_dry_run_claims_no_folder(model: Path, tmp_path: Path) -> None:
    given = ("--model", model, "--dataset", dilemmas(tmp_path), "--out", tmp_path / "out")
    assert call("lens", *given, "--opening", "Option", "--dry-run").exit_code == 0
    assert not (tmp_path / "out").exists()


def test_the_page_of_attention_at_some_blocks_outlives_a_lens_at_all(
    model: Path, tmp_path: Path
) -> None:
    given = ("--model", model, "--dataset", dilemmas(tmp_path), "--out", tmp_path / "out")
    some = call("attention", *given, "--layers", "0,1")
    assert some.exit_code == 0 and "Block 1 (the last that was read" in some.output, some.output
    every = call("lens", *given)
    assert every.exit_code == 0 and "no more than another assistant's prompt" in every.output, (
        every.output
    )
    assert "Block 1 (the last that was read" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.slow(3)
def test_a_trial_on_fewer_dilemmas_or_blocks_does_not_take_the_lens_of_all_away(
    model: Path, tmp_path: Path
) -> None:
    given = ("--model", model, "--dataset", dilemmas(tmp_path, 8), "--out", tmp_path / "out")
    assert call("attention", *given).exit_code == 0
    before = {
        name: (tmp_path / "out" / "tables" / f"{name}.csv").read_bytes()
        for name in ("lens", "partings")
    }
    few = call("patch", *given, "--limit", 5)
    assert few.exit_code == 0 and "cannot be told by 5 dilemmas; 6 are the least" in few.output, (
        few.output
    )
    patched = pd.read_csv(tmp_path / "out" / "tables" / "patch.csv")
    assert (patched.n == 5).all() and f"introspective pattern, blocks {CARRIER}" in set(
        patched.variant
    )
    some = call("attention", *given, "--layers", "0,1")
    assert (
        "Block 1 (the last that was read, as that where the runs part, 2, was not): in"
        in some.output
    ), some.output
    assert "paired over 8 dilemmas" in (tmp_path / "out" / "index.html").read_text()
    assert before == {
        name: (tmp_path / "out" / "tables" / f"{name}.csv").read_bytes() for name in before
    }
    assert call("lens", *given, "--limit", 6).exit_code == 0
    assert (pd.read_csv(tmp_path / "out" / "tables" / "lens.csv").n == 6).all(), (
        "asked for by its name it is made"
    )


def test_a_dilemma_without_finite_logits_is_left_out_of_patching_too(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("--model", model, "--dataset", dilemmas(tmp_path, 7), "--out", tmp_path / "out")
    whole = reading.read_in_context

    def overflowing(judge: Any, item: Any, *how: Any) -> Any:
        found = whole(judge, item, *how)
        return replace(found, lens=found.lens * np.nan) if item.id == "d0" else found

    monkeypatch.setattr(reading, "read_in_context", overflowing)
    ran = call("patch", *given)
    assert (
        ran.exit_code == 0 and "1 of 7 dilemmas left out: logits that are not finite" in ran.output
    ), ran.output
    assert (pd.read_csv(tmp_path / "out" / "tables" / "patch.csv").n == 6).all()


def test_a_lens_that_ends_before_the_last_block_does_not_speak_of_the_output(
    model: Path, tmp_path: Path
) -> None:
    given = ("--model", model, "--dataset", dilemmas(tmp_path), "--out", tmp_path / "out")
    early = call("lens", *given, "--layers", "0-2")
    assert "after block 2: the logit of A less that of B differs by" in early.output, early.output
    assert "at the output" not in early.output
    one = call("lens", *given, "--layers", "2")
    assert (
        one.exit_code == 0 and "leave out --layers" in (tmp_path / "out" / "index.html").read_text()
    ), one.output


def test_too_few_dilemmas_to_show_a_difference_are_said_and_not_called_alike(
    model: Path, tmp_path: Path
) -> None:
    few = call(
        "lens",
        "--model",
        model,
        "--dataset",
        dilemmas(tmp_path),
        "--limit",
        5,
        "--out",
        tmp_path / "out",
    )
    assert few.exit_code == 0
    assert (
        "5 independent dilemmas; 6 are the least" in (tmp_path / "out" / "index.html").read_text()
    )


def test_progress_counts_dilemmas(done: tuple[Path, dict[str, Result]]) -> None:
    assert (
        "6 of 6 dilemmas, " in done[1]["lens"].output and "prompts/s" not in done[1]["lens"].output
    )


def test_a_folder_of_another_run_is_refused(
    done: tuple[Path, dict[str, Result]], model: Path
) -> None:
    folder, _ = done
    refused = call("lens", "--model", model, "--limit", 3, "--out", folder / "out")
    assert (
        refused.exit_code == 2
        and "holds a run of dataset" in refused.output
        and "another --out" in refused.output
    )
    other = call(
        "lens",
        "--model",
        model,
        "--dataset",
        folder / "dilemmas.jsonl",
        "--out",
        folder / "out",
        "--opening",
        "Option",
    )
    assert other.exit_code == 2 and "opening" in other.output
    none = call(
        "lens",
        "--model",
        model,
        "--dataset",
        folder / "dilemmas.jsonl",
        "--out",
        folder / "out",
        "--opening",
        "",
    )
    assert none.exit_code == 2, "no opening is an opening of its own"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--layers", 9), "has blocks 0..3, got layers 9"),
        (("--dataset", "no_such"), "unknown data set 'no_such'"),
        (("--dataset", "open_questions"), "no column 'dilemma'"),
        (("--limit", 1), "1 of 1 dilemma readable; expected at least 2: give more"),
        (("--device", "cuda"), "no device 'cuda' here"),
    ],
)
def test_a_wrong_call_says_what_was_expected(
    model: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    given = ("--model", model, "--dataset", dilemmas(tmp_path), "--out", tmp_path / "out")
    wrong = call("lens", *given, *options)
    assert wrong.exit_code == 2 and said in wrong.output, wrong.output


def test_patching_a_block_that_is_not_there_is_refused_before_anything_is_read(
    done: tuple[Path, dict[str, Result]], model: Path, tmp_path: Path
) -> None:
    folder, _ = done
    given = ("--model", model, "--dataset", folder / "dilemmas.jsonl", "--out", folder / "out")
    wrong = call("patch", *given, "--layers", "2,7")
    assert wrong.exit_code == 2 and "has blocks 0..3, got --layers 7" in wrong.output
    given = ("--model", model, "--dataset", dilemmas(tmp_path), "--out", tmp_path / "out")
    assert (
        call("patch", *given, "--layers", "2,7").exit_code == 2
        and not (tmp_path / "out" / "readings").exists()
    )


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    wrong = call(
        "lens", "--model", saved(tmp_path / "model", template=False), "--out", tmp_path / "out"
    )
    assert wrong.exit_code == 2 and "has no chat template" in wrong.output


def test_too_little_memory_is_said_before_the_weights_are_loaded(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accelerate.utils.get_max_memory", lambda: {"cpu": 1000})
    monkeypatch.setattr("selfprobe.probes.model.load_model", None)
    wrong = call("lens", "--model", model, "--out", tmp_path / "out")
    assert wrong.exit_code == 2 and "of memory in float32, and 0 MB are free on cpu" in wrong.output


def test_a_dilemma_with_a_special_token_is_left_out_with_its_reason(
    model: Path, tmp_path: Path
) -> None:
    file = dilemmas(tmp_path)
    lines = file.read_text().splitlines()
    first = json.loads(lines[0])
    file.write_text(
        "\n".join([json.dumps(first | {"dilemma": "<s> " + first["dilemma"]}), *lines[1:]])
    )
    ran = call("lens", "--model", model, "--dataset", file, "--out", tmp_path / "out", "--dry-run")
    assert (
        "Dilemmas: 5, 1 cannot be read" in ran.output
        and "special token in the dilemma: <s>" in ran.output
    )


def test_sizes_are_read_as_people_write_them() -> None:
    assert (bytes_text(35_000_000), bytes_text(1_250_000_000)) == ("35 MB", "1.2 GB")
