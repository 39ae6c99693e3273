"""`selfprobe probe` as a user calls it, on a tiny model in a folder: each command, and each thing
that can be wrong.
"""

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from selfprobe import cli
from selfprobe.probes import forward, plan
from selfprobe.probes.folder import read_run
from selfprobe.probes.probe_file import load_probe
from selfprobe.text.extras import install_command

from .conftest import byte_tokenizer, tiny_judge

Row = dict[str, Any]
TOY = ("--seeds", 1, "--resamples", 100, "--no-random-weights")


def call(*arguments: str | Path) -> Result:
    """A study asks before it reads; here nobody answers."""
    words = [*map(str, arguments)]
    return CliRunner().invoke(
        cli.main, ["probe", *words, *(["--yes"] if words[0] == "run" else [])]
    )


def saved(folder: Path, *, seed: int = 0, template: str | None = "", context: int = 4096) -> Path:
    judge = tiny_judge(seed=seed, context=context)
    judge.model.save_pretrained(folder)
    (judge.tokenizer if template == "" else byte_tokenizer(template)).save_pretrained(folder)
    return folder


def rows(name: str, count: int = 24) -> list[Row]:
    return [
        {
            "id": f"{name}{i}",
            "question": f"{name} {i // 2}",
            "text_1": f"{'ab'[i % 2]}{i}",
            "text_2": "c",
            "label": 1 + i % 2,
        }
        for i in range(count)
    ]


def written(path: Path, given: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def done(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("done")
    files = [written(folder / f"{name}.jsonl", rows(name)) for name in ("one", "two")]
    out = folder / "probes"
    ran = call("run", "--model", model, "--datasets", f"{files[0]},{files[1]}", "--out", out, *TOY)
    assert ran.exit_code == 0, ran.output
    return folder, ran


def test_the_command_is_found_by_the_main_one() -> None:
    shown = CliRunner().invoke(cli.main, ["probe", "--help"])
    assert shown.exit_code == 0
    for name in ("run", "score"):
        assert f"  {name} " in shown.output


def test_run_says_its_plan_then_what_was_found_and_where(done: tuple[Path, Result]) -> None:
    folder, ran = done
    plan, _, found = ran.output.partition("To do: 96 forward passes (each pair once an order), ")
    assert "one                   24         0       48" in plan
    labels = ["Memory: weights", "\nDisk: ", "\nTime: about ", "\nControl of sentence embeddings: "]
    assert [found.count(label) for label in labels] == [1, 1, 1, 1]
    assert sorted(labels, key=found.index) == labels, "each row once, in this order"
    assert "Control of sentence embeddings: 25 texts, up to 2 s" in found
    assert re.search(r"^(Yes|No|Cannot tell).*\.$", found, re.MULTILINE)
    assert "is answered with 1 or 2 in " in found, "a random model does not answer what it is asked"
    out = folder / "probes"
    assert {f.name for f in out.iterdir()} == {
        "activations", "figures", "tables", "run.json", "report.md", "index.html", "claims.json",
        *(f"{d}-{k}.safetensors" for d in ("one", "two") for k in ("supervised", "unsupervised")),
    }  # fmt: skip
    pictures = {picture.stem for picture in (out / "figures").iterdir()}
    assert pictures == {
        "probes",
        *(
            f"{table}-{dataset}"
            for table in ("methods", "layers", "components")
            for dataset in ("one", "two")
        ),
        *(
            f"{table}-{kind}"
            for table in ("transfer", "cosine")
            for kind in ("supervised", "unsupervised")
        ),
        "cosine-supervised-and-unsupervised",
    }
    report = (out / "report.md").read_text()
    assert "| one | supervised |" in report and "](figures/layers-one.svg)" in report
    page = (out / "index.html").read_text()
    names = {
        "dataset",
        "probe",
        "method",
        "metric",
        "less",
        "note",
        "origin",
        "reasons",
        "trained on",
        "tested on",
    }
    names |= {"answer", "data set"}
    untold = set(re.findall(r"<th(?![^>]*title)[^>]*>([^<]+)", page)) - names - {"one", "two"}
    assert untold <= {"a", "b"} and "layer 3 is the state after block 4" in page


def test_the_plan_says_what_the_control_with_random_weights_costs(
    model: Path, tmp_path: Path
) -> None:
    file = written(tmp_path / "one.jsonl", rows("one"))
    given = ("run", "--model", model, "--datasets", file, "--out", tmp_path / "out", "--dry-run")
    planned = call(*given)
    assert planned.exit_code == 0, planned.output
    assert planned.stderr.startswith(f"loading {model} and measuring its speed, for the plan\n")
    assert "Control, the same architecture with random weights: 48 passes, " in planned.output
    assert "--no-random-weights leaves it out" in planned.output
    assert "random weights" not in call(*given, "--no-random-weights").output


def test_the_plan_counts_the_texts_that_are_scored_alone_and_still_to_be(
    model: Path, tmp_path: Path
) -> None:
    file = written(tmp_path / "one.jsonl", rows("one"))
    given = ("run", "--model", model, "--datasets", file, "--out", tmp_path / "out", *TOY)
    planned = call(*given, "--dry-run", "--scoring").output
    assert "Direct scoring and G-Eval: 48 forward passes (each text once), " in planned
    assert "--no-scoring leaves them out" in planned
    assert "Direct scoring" not in call(*given, "--dry-run").output, (
        "own pairs are scored where that is asked for"
    )
    assert call(*given, "--scoring").exit_code == 0
    assert "Direct scoring and G-Eval:" not in call(*given, "--scoring", "--dry-run").output


def test_the_answer_comes_first_in_the_terminal_and_on_the_page(done: tuple[Path, Result]) -> None:
    folder, ran = done
    report, page = ((folder / "probes" / name).read_text() for name in ("report.md", "index.html"))
    answer = next(line for line in ran.output.splitlines() if re.match("Yes|No,|Cannot tell", line))
    assert (
        answer in report and "judge better than asking it?" in page and '<p class="answer">' in page
    )
    assert "- Cannot tell: one is answered with 1 or 2 in " in report
    assert "## Probes less asking and less each control, by metric" in report
    checks = pd.read_csv(folder / "probes/tables/checks.csv")
    assert set(checks.probe) == {"supervised", "unsupervised"}
    weights = checks[checks.check == "above random weights"]
    assert set(weights.outcome) == {"open"}, "it was left out, and is not passed over"
    assert len(checks[checks.check == "above a random direction"].value.dropna()) == 4
    claims = json.loads((folder / "probes/claims.json").read_text())
    assert [claim["subject"] for (entry,) in [claims.values()] for claim in entry] == ["one", "two"]


def test_a_second_run_and_a_dry_run_have_nothing_to_read(
    done: tuple[Path, Result], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = done
    before = (folder / "probes" / "tables" / "methods.csv").read_bytes()
    monkeypatch.setattr(forward, "read_states", None)
    given = ("--model", model, "--datasets", f"{folder / 'one.jsonl'},{folder / 'two.jsonl'}")
    dry = call("run", *given, "--out", folder / "probes", "--no-random-weights", "--dry-run")
    assert (
        dry.exit_code == 0
        and "To do: 0 forward passes" in dry.output
        and "supervised" not in dry.output
    )
    again = call("run", *given, "--out", folder / "probes", *TOY)
    assert again.exit_code == 0, again.output
    assert (folder / "probes" / "tables" / "methods.csv").read_bytes() == before


@pytest.mark.slow(3)
def test_an_interrupted_run_keeps_what_it_read_and_goes_on(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, asked, real = written(tmp_path / "one.jsonl", rows("one")), [], forward.read_states
    monkeypatch.setattr(plan, "time_text", lambda *given: "")  # it reads a batch to take the time

    def counted(*given: Any, most: int = 20) -> forward.States:
        if (
            sys._getframe(1).f_code is forward.read_in_process.__code__
        ):  # the choice of a way reads some prompts too
            asked.append(len(given[1]))
        if sum(asked) > most:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(forward, "read_states", counted)
    given = ("run", "--model", model, "--datasets", file, "--out", tmp_path / "out", *TOY)
    stopped = call(*given, "--path", "two_forwards", "--batch-tokens", 1100)
    assert (
        stopped.exit_code == 130
        and "Interrupted. What was read is kept; the same command goes on" in stopped.output
    )
    kept = sum(asked[:-1])
    assert 0 < kept < 48
    asked.clear()
    monkeypatch.setattr(forward, "read_states", partial(counted, most=48))
    resumed = call(*given, "--path", "two_forwards", "--batch-tokens", 1100)
    assert resumed.exit_code == 0, resumed.output
    assert f"To do: {48 - kept} forward passes" in resumed.output
    assert sum(asked) == 48 - kept


@pytest.mark.slow(5)
def test_ablate_uses_the_probes_of_the_folder_and_against_a_run_under_another_system_turn(
    done: tuple[Path, Result], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = done[0] / "probes"
    given = (
        "run",
        "--model",
        model,
        "--datasets",
        f"{done[0] / 'one.jsonl'},{done[0] / 'two.jsonl'}",
        "--out",
        out,
    )
    monkeypatch.setattr("selfprobe.probes.run.run_probes", None)
    other = call(*given, "--parts", "ablate", "--dtype", "bfloat16")
    assert (
        other.exit_code == 2
        and "is a run in float32" in other.output
        and "give the run's --dtype" in other.output
    )
    assert not (out / "tables/ablation.csv").exists()
    asked = call(*given, "--parts", "ablate", "--against", out)
    assert asked.exit_code == 0, asked.output
    assert (out / "tables" / "prompted.csv").is_file() and set(
        pd.read_csv(out / "tables/ablation.csv").dataset
    ) == {
        "one",
        "two",
    }
    assert {picture.name for picture in (out / "figures").glob("ablation-*")} == {
        "ablation-one.svg",
        "ablation-two.svg",
    }
    assert "Asking with a direction taken out" in (out / "report.md").read_text()


def test_score_judges_a_users_own_pairs(done: tuple[Path, Result], tmp_path: Path) -> None:
    file = done[0] / "probes" / "one-supervised.safetensors"
    mine = [
        *rows("new", 3),
        {"id": "same", "question": "Q", "text_1": "x", "text_2": "x"},
        rows("one", 24)[0],
    ]
    seen = set(load_probe(file).card.train_groups)
    judged = call(
        "score",
        "--probe",
        file,
        written(tmp_path / "mine.jsonl", mine),
        "--cache",
        tmp_path / "states",
    )
    assert judged.exit_code == 0, judged.output
    decisions = {d["id"]: d for d in map(json.loads, judged.stdout.splitlines())}
    assert len(decisions) == 5 and len(seen) == 6
    assert decisions["same"]["preferred"] is None and decisions["same"]["unscored"] == "equal texts"
    assert decisions["new0"]["preferred"] == (1 if decisions["new0"]["score"] > 0 else 2)
    assert "4 of 5 pairs judged" in judged.stderr and "unscored, equal texts: 1" in judged.stderr
    to_file = call(
        "score",
        "--probe",
        file,
        tmp_path / "mine.jsonl",
        "--cache",
        tmp_path / "states",
        "--out",
        tmp_path / "d.jsonl",
    )
    assert (tmp_path / "d.jsonl").read_text() == judged.stdout and to_file.stdout == ""


def test_a_csv_of_ones_own_is_read_too(done: tuple[Path, Result], tmp_path: Path) -> None:
    frame = pd.DataFrame(rows("new", 2)).assign(label=["1", ""])
    frame.to_csv(tmp_path / "mine.csv", index=False)
    file = done[0] / "probes" / "one-unsupervised.safetensors"
    judged = call("score", "--probe", file, tmp_path / "mine.csv", "--cache", tmp_path / "states")
    assert judged.exit_code == 0, judged.output
    assert [json.loads(line)["label"] for line in judged.stdout.splitlines()] == [1, None]


def test_a_pair_longer_than_the_context_or_than_asked_for_is_unscored(
    model: Path, tmp_path: Path
) -> None:
    given = [
        *rows("one"),
        {"id": "long", "question": "Q", "text_1": "x" * 5000, "text_2": "y", "label": 1},
    ]
    given.append({"id": "longer", "question": "R", "text_1": "x" * 300, "text_2": "y", "label": 1})
    file = written(tmp_path / "one.jsonl", given)
    ran = call(
        "run",
        "--model",
        model,
        "--datasets",
        file,
        "--out",
        tmp_path / "out",
        *TOY,
        "--longest",
        500,
    )
    assert ran.exit_code == 0, ran.output
    data = pd.read_csv(tmp_path / "out" / "tables" / "data.csv").iloc[0]
    assert (data.pairs, data.scored, data.unscored) == (26, 24, 2)
    assert data.reasons == "longer than asked for; too long"


BAD_ROWS: dict[str, tuple[list[Row], str]] = {
    "one class": (
        [row | {"label": 1} for row in rows("a")],
        "one: the training half has only label 1 (12 pairs)",
    ),
    "five pairs": (
        rows("a", 5),
        "one: the training half has 3 pairs of 2 questions; choosing the regularisation",
    ),
    "ten pairs": (
        rows("a", 10),
        "one: the training half has 6 pairs of 3 questions; choosing the regularisation",
    ),
    "one group": (
        [row | {"group": "g"} for row in rows("a")],
        "one: the training half has 24 pairs of 1 questions; choosing the regularisation",
    ),
    "labels 0 and 1": (
        [row | {"label": row["label"] - 1} for row in rows("a")],
        "the labels are 0 and 1, which leaves",
    ),
    "labels true and false": (
        [row | {"label": row["label"] == 1} for row in rows("a")],
        "row 'a0': label must be 1, 2",
    ),
    "no labels": (
        [row | {"label": None} for row in rows("a")],
        "one: 24 of 24 pairs have no label",
    ),
    "a question in two groups": (
        [row | {"question": "Q", "group": f"g{i}"} for i, row in enumerate(rows("a"))],
        "have the same question but different groups",
    ),
    "all texts equal": (
        [row | {"text_1": "c"} for row in rows("a")],
        "one: the training half has 0 pairs",
    ),
    "the same id twice": (rows("a") * 2, "pair ids must be unique, 'a0' occurs twice"),
    "nothing": ([], "no pairs: the data set is empty"),
    "a list": ([[1, 2]], "line 1: expected a JSON object, got list"),  # type: ignore[list-item]
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_named_before_any_forward_pass(
    case: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, message = BAD_ROWS[case]
    monkeypatch.setattr(forward, "read_states", None)
    monkeypatch.setattr("selfprobe.probes.model.load_model", None)  # not even the model is loaded
    ran = call(
        "run",
        "--model",
        model,
        "--datasets",
        written(tmp_path / "one.jsonl", given),
        "--out",
        tmp_path / "out",
    )
    assert ran.exit_code == 2, ran.output
    assert (
        ran.output.startswith("Error: ") and message in ran.output and "Traceback" not in ran.output
    )
    assert not (tmp_path / "out").exists()


def test_bad_models_are_named(model: Path, tmp_path: Path, done: tuple[Path, Result]) -> None:
    file = done[0] / "one.jsonl"

    def refused(message: str, *given: str | Path) -> None:
        ran = call("run", "--datasets", file, "--out", tmp_path / "out", *given)
        assert ran.exit_code == 2 and message in ran.output, ran.output
        assert isinstance(ran.exception, SystemExit), "no traceback"

    refused("has no chat template", "--model", saved(tmp_path / "base", template=None))
    refused("no model folder at", "--model", tmp_path / "nothing")
    cut = saved(tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:1000])
    refused("weights of ", "--model", cut)
    refused("are damaged (Error while deserializing header", "--model", cut)
    (saved(tmp_path / "bare") / "tokenizer.json").unlink()
    refused("no model ", "--model", tmp_path / "bare")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    refused(
        "bad.gguf cannot be converted, as it is damaged or of a kind unknown here",
        "--model",
        tmp_path / "bad.gguf",
    )
    refused(
        "this machine's torch has cpu; take one of these (--device)",
        "--model",
        model,
        "--device",
        "tpu",
    )
    refused(
        "so it has no revision abc: leave --revision out", "--model", model, "--revision", "abc"
    )
    refused(
        "Leave --attention out, or take sdpa or eager",
        "--model",
        model,
        "--attention",
        "flash_attention_2",
    )
    refused("orientation must be few:K", "--model", model, "--orientation", "best")
    other = saved(tmp_path / "other", seed=1)
    ran = call("run", "--model", other, "--datasets", file, "--out", done[0] / "probes")
    assert ran.exit_code == 2 and "holds a run of" in ran.output and "another folder" in ran.output
    ran = call(
        "score",
        "--probe",
        done[0] / "probes" / "one-supervised.safetensors",
        file,
        "--model",
        other,
    )
    assert ran.exit_code == 2 and "the probe was fitted to" in ran.output


def test_bad_data_sets_and_files_are_named(
    done: tuple[Path, Result], model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def refused(message: str, *given: str | Path) -> None:
        ran = call(*given)
        assert ran.exit_code == 2 and message in " ".join(ran.output.split()), ran.output
        assert isinstance(ran.exception, SystemExit), "no traceback"

    refused(
        "unknown data set 'llmbarr': expected one of ours, llmbar",
        "run",
        "--model",
        model,
        "--datasets",
        "llmbarr",
    )
    refused("no data sets given", "run", "--model", model, "--datasets", ",", "--out", out)
    refused(
        "missing.jsonl",
        "run",
        "--model",
        model,
        "--datasets",
        tmp_path / "missing.jsonl",
        "--out",
        out,
    )
    mine = ("run", "--model", model, "--datasets", done[0] / "one.jsonl")
    refused("no run's folder", *mine, "--parts", "ablate", "--out", tmp_path)
    refused("no run's folder", *mine, "--against", tmp_path, "--out", out)
    assert not out.exists(), "it was refused before the states were read"
    refused("--parts must be probes, ablate or finetune, got 'all'", *mine, "--parts", "all")
    refused("--rank goes with --parts finetune", *mine, "--rank", "4")
    refused("no probe file", "score", "--probe", tmp_path / "x.safetensors", done[0] / "one.jsonl")
    (tmp_path / "x.safetensors").write_bytes(b"\x80\x04pickle")
    refused(
        "never read from a pickle",
        "score",
        "--probe",
        tmp_path / "x.safetensors",
        done[0] / "one.jsonl",
    )
    (tmp_path / "latin.jsonl").write_bytes(b'{"id": "\xe4"}\n')
    refused(
        "not UTF-8", "run", "--model", model, "--datasets", tmp_path / "latin.jsonl", "--out", out
    )
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n{oops\n')
    refused(
        "bad.jsonl, line 2: not JSON",
        "run",
        "--model",
        model,
        "--datasets",
        tmp_path / "bad.jsonl",
        "--out",
        out,
    )


def test_a_model_without_weights_is_refused_before_torch_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = call("run", "--model", "gpt-4o", "--datasets", "ours")
    assert (
        ran.exit_code == 2
        and "no model whose weights can be read: give smollm2" in ran.output
        and "gpt-4o" in ran.output
    )


@pytest.mark.slow(4)
def test_several_models_get_a_folder_and_a_page_each(model: Path, tmp_path: Path) -> None:
    file, other = written(tmp_path / "one.jsonl", rows("one")), saved(tmp_path / "other", seed=1)
    given = ("run", "--models", f"{model},{other}", "--datasets", file, "--out", tmp_path / "out")
    planned = call(*given, "--dry-run", *TOY)
    assert planned.exit_code == 0 and planned.output.count("To do: 48 forward passes") == 2, (
        planned.output
    )
    ran = call(*given, *TOY)
    assert ran.exit_code == 0 and "Side by side: selfprobe report " in ran.output, ran.output
    for name in (model.name, other.name):
        assert f"{name}: " in ran.output and (tmp_path / "out" / name / "index.html").is_file()
    runs = [read_run(tmp_path / "out" / folder.name) for folder in (model, other)]
    assert [run["model"] for run in runs] == [str(model), str(other)]
    assert runs[0]["revision"] != runs[1]["revision"], "each folder is of its own weights"
    same = call(
        "run", "--models", f"{model},{model}/", "--datasets", file, "--out", tmp_path / "out"
    )
    assert same.exit_code == 2 and "each model needs a folder of its own in" in same.output


def test_too_little_memory_is_said_before_the_weights_are_loaded(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accelerate.utils.get_max_memory", lambda: {"cpu": 1000})
    monkeypatch.setattr("selfprobe.probes.model.load_model", None)
    ran = call("run", "--model", model, "--datasets", "ours", "--out", tmp_path)
    assert (
        ran.exit_code == 2
        and "of memory in float32, and 0 MB are free on cpu: try --dtype bfloat16" in ran.output
    )


def test_a_disk_without_room_is_said_before_the_run(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("selfprobe.probes.plan.shutil.disk_usage", lambda _: usage)
    file = written(tmp_path / "one.jsonl", rows("one"))
    ran = call("run", "--model", model, "--datasets", file, "--out", tmp_path / "out")
    assert (
        ran.exit_code == 2
        and "the states need" in ran.output
        and "are free: take fewer pairs" in ran.output
    )


def test_a_missing_extra_names_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("selfprobe.probes.probe_file.load_probe", missing)
    file = tmp_path / "x.safetensors"
    file.write_bytes(b"")
    ran = call("score", "--probe", file, "x.jsonl")
    assert ran.exit_code == 2 and f"probes need torch: {install_command('probes')}" in ran.output


@pytest.mark.slow(8)
def test_logs_of_a_baseline_stand_beside_the_probes(
    done: tuple[Path, Result], model: Path, tmp_path: Path
) -> None:
    from inspect_ai import eval as inspect_eval

    from selfprobe.preference_tasks.pairwise_preference import pairwise_preference

    file = done[0] / "one.jsonl"
    task = pairwise_preference(dataset=str(file))
    inspect_eval(
        task, model="planted/judge?prefers=.9", log_dir=str(tmp_path / "logs"), display="none"
    )
    given = (
        "run",
        "--model",
        model,
        *TOY,
        "--out",
        done[0] / "probes",
        "--logs",
        tmp_path / "logs",
    )
    ran = call(*given, "--datasets", f"{file},{done[0] / 'two.jsonl'}")
    assert ran.exit_code == 0, ran.output
    table = pd.read_csv(done[0] / "probes" / "tables" / "methods.csv").query("metric == 'f1'")
    (row,) = table[table.method.str.startswith("pairwise_preference, ")].itertuples()
    assert (row.dataset, row.note) == ("one", "from logs; 0 pairs without a verdict")
    refused = call(*given, "--datasets", done[0] / "two.jsonl")
    assert refused.exit_code == 2 and "no finished log of pairwise_preference" in refused.output
    flipped = written(
        tmp_path / "one.jsonl", [row | {"label": 3 - row["label"]} for row in rows("one")]
    )
    refused = call(*given, "--datasets", flipped)
    assert (
        refused.exit_code == 2
        and "is of other pairs: in one, pair one0 has label 2, in the log 1" in refused.output
    )
