"""docs/reproduce.md: its commands run on planted models and make the files it names; its counts are
those of its rows.
"""

import csv
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from inspect_ai import eval

from selfprobe.cli import main
from selfprobe.papers.introspectbench_printed import MODELS
from selfprobe.study._registry import defaults_of

from .examples.loaded import example

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/reproduce.md").read_text(encoding="utf-8")
PAPERS = {"003": PAGE.partition("## Paper 003")[2].partition("\n## Paper 002")[0]}
PAPERS["002"] = PAGE.partition("## Paper 002")[2].partition("\n## Paper 004")[0]
PAPERS["004"] = PAGE.partition("## Paper 004")[2]
LEAST = {"003": 30, "002": 15, "004": 44}
"""Rows of a paper's table."""
STATUS = ("works", "deviates", "partial", "missing")
TRACED = "?reasons=1&wobble=.4&voiced=.9"
"""What planted subjects of the evaluation-awareness methods are: they think aloud, and say it where they notice a test; their
answers differ.
"""
SMALL = {"epochs": 2, "threshold": 0.0}
"""What keeps a run small, where a task has it."""


def commands(part: str) -> list[str]:
    """The lines of the code blocks, loops unrolled, comments dropped."""
    lines = [
        line
        for block in re.findall(r"```\n(.*?)```", part, re.DOTALL)
        for line in block.splitlines()
    ]
    return [one for line in lines for one in unrolled(re.sub(r"\s+# .*$", "", line))]


def unrolled(line: str) -> Iterator[str]:
    loop = re.fullmatch(r"for (\w+) in (.*?); do (.*?); done", line)
    for value in loop[2].split() if loop else [""]:
        last = value.rpartition("/")[2]
        yield (
            loop[3].replace(f"${{{loop[1]}#*/}}", last).replace(f"${loop[1]}", value)
            if loop
            else line
        )


def rows(part: str) -> list[list[str]]:
    """The cells of the table of items."""
    lines = [line for line in part.replace("\\|", "/").splitlines() if line.startswith("| ")]
    return [
        cells
        for line in lines
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 7
    ][1:]


def planted(model: str) -> str:
    return "planted/" + model.rpartition("/")[2]


def small_config(path: str, folder: Path, most: int | None, questions: Path) -> Path:
    """The same matrix of planted models, of a few items; a data set of the hub is a file here."""
    given = yaml.safe_load((ROOT / path).read_text())
    models = [planted(entry["model"]) for entry in given["models"]][:most]
    small: dict[str, Any] = {"epochs": 2, "embedder": "openai/words"}
    small |= (
        {"dataset": str(questions)}
        if str(given["args"].get("dataset", "")).startswith("hf:")
        else {}
    )
    known = {name for task in given["tasks"] for name in defaults_of(task)}
    args = given["args"] | {name: value for name, value in small.items() if name in known}
    given |= {"models": models, "limit": 3, "args": args}
    out = folder / "config.yaml"
    out.write_text(yaml.safe_dump(given))
    return out


def run_selfprobe(words: list[str], folder: Path, questions: Path) -> None:
    words = [
        str(small_config(word, folder, 3, questions)) if word.startswith("configs/") else word
        for word in words
    ]
    words = [
        "1" if option == "--limit" else word
        for option, word in zip(["", *words], words, strict=False)
    ]
    words = ["openai/words" if word.startswith("openai/text-embedding") else word for word in words]
    more = ["--embedder", "openai/words"] if words[:2] == ["paper", "introspectbench"] else []
    done = CliRunner().invoke(main, [*words, *more], catch_exceptions=False)
    assert done.exit_code == 0, (words, done.output)


def run_example(words: list[str], folder: Path, questions: Path) -> None:
    module = example(words[0].removeprefix("examples/").removesuffix(".py"))
    command = next(one for one in vars(module).values() if isinstance(one, click.Command))
    words = [
        str(small_config(word, folder, None, questions)) if "configs/" in word else word
        for word in words[1:]
    ]
    words = [
        "1" if option == "--limit" else word
        for option, word in zip(["", *words], words, strict=False)
    ]
    words = ["openai/words" if word.startswith("openai/text-embedding") else word for word in words]
    if "--judges" in words:
        words = planted_writer_and_judges(words)
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, (words, done.output)


def planted_writer_and_judges(words: list[str]) -> list[str]:
    """The same command of planted models and few dilemmas, all of which are kept."""
    small_words = [*words, "--limit", "2", "--threshold", "0"]
    for option in ("--model", "--judges"):
        place = small_words.index(option) + 1
        models = small_words[place].split(",")
        small_words[place] = ",".join(planted(model) for model in models)
    return small_words


def assert_the_columns_are_there(part: str, *folders: Path) -> None:
    """Each column that a row of the page names is in its file."""
    for row in rows(part):
        for name, columns in re.findall(r"`([\w/.-]+\.csv)`: ((?:`[\w.]+`(?:, )?)+)", row[3]):
            (file,) = {place.resolve() for folder in folders if (place := folder / name).is_file()}
            there = set(pd.read_csv(file).columns)
            named = set(re.findall(r"`([\w.]+)`", columns))
            assert not [
                one for one in named if not any(f"{it}.".startswith(f"{one}.") for it in there)
            ], (
                row[0],
                there,
            )


def run_inspect(words: list[str], questions: Path) -> None:
    """`inspect eval` in this process, with planted models and few items."""
    task, options = words[0], list(zip(words[1::2], words[2::2], strict=True))
    given = {
        name: value
        for option, pair in options
        if option == "-T"
        for name, _, value in [pair.partition("=")]
    }
    given = {
        name: str(questions) if value.startswith("hf:") else value for name, value in given.items()
    }
    known = defaults_of(task.rpartition("/")[2])
    given |= {name: value for name, value in SMALL.items() if name in known}
    given |= {"embedder": "openai/words"} if "embedder" in known else {}
    named = dict(options)
    roles = {
        k: [planted(m) for m in v.split(",")]
        for o, p in options
        if o == "--model-role"
        for k, v in [p.split("=")]
    }
    model: Any = (
        None
        if named["--model"] == "none"
        else [planted(one) for one in named["--model"].split(",")[:2]]
    )
    logs = eval(
        task,
        model=model,
        model_roles=roles,
        task_args={
            name: int(value) if str(value).isdigit() and name != "k" else value
            for name, value in given.items()
        },
        limit=2,
        log_dir=named["--log-dir"],
        display="none",
        score_display=False,
        log_realtime=False,
    )
    assert all(log.status == "success" for log in logs), (words, [log.error for log in logs])


def test_the_counts_are_those_of_the_rows() -> None:
    stated = dict(re.findall(r"^\| (00\d) [^|]+\|(.*)\|$", PAGE, re.MULTILINE))
    for paper, part in PAPERS.items():
        found = Counter(row[5] for row in rows(part))
        assert set(found) <= set(STATUS) and len(rows(part)) > LEAST[paper]
        assert [int(cell) for cell in stated[paper].split("|")] == [
            found[status] for status in STATUS
        ]


FILE_NUMBER = re.compile(r"(?i)\bpapers? 00[234]\b|\b00[234](?='s |, §| §)|\| 00[234][ ,|]")
"""A paper by the number of its file, in prose or in a cell."""
PROSE = ("*.md", "*.py", "*.yaml", "*.yml", "*.toml", "*.ipynb", "*.json")
OWN_FOLDERS = (
    *("selfprobe", "introspect_tasks", "evalawareness_tasks", "preference_tasks", "building"),
    *("solvers", "scorers", "docs", "examples", "configs", "datasets", "bench", "tests"),
)


def test_papers_are_called_by_their_names_everywhere_but_on_this_page() -> None:
    files = list(ROOT.glob("*.md"))
    for folder in OWN_FOLDERS:
        for pattern in PROSE:
            files += (ROOT / folder).rglob(pattern)
    itself = {ROOT / "docs/reproduce.md", Path(__file__)}
    by_number = {}
    for file in sorted(set(files) - itself):
        text = " ".join(file.read_text(encoding="utf-8").split())
        if FILE_NUMBER.search(text):
            by_number[str(file.relative_to(ROOT))] = FILE_NUMBER.findall(text)
    assert len(files) > 500 and by_number == {}


def test_every_deviation_and_every_gap_has_its_reason() -> None:
    for part in PAPERS.values():
        assert [row[0] for row in rows(part) if row[5] in STATUS[1:] and not row[6]] == []


@pytest.mark.parametrize(
    ("paper", "part", "of_the_paper"),
    [
        ("003", "F.2, F.3", "Gemini 2.5 Flash"),
        ("003", "F.4", "Gemini 2.5 Flash"),
        ("002", "Footnote 3", "GPT-5 Mini"),
        ("004", "Figure 4", "Normal and Natural"),
        *(("004", f"Figure {number}", "as Figure 4") for number in (8, 9, 10, 11)),
        ("004", "§5.4", "as Figure 4"),
    ],
)
def test_a_row_of_another_model_or_of_half_the_training_pairs_deviates_and_says_what_the_paper_has(
    paper: str, part: str, of_the_paper: str
) -> None:
    (row,) = [row for row in rows(PAPERS[paper]) if re.match(rf"{re.escape(part)}\b", row[0])]
    assert row[5] == "deviates" and of_the_paper in row[6]


def test_the_configuration_names_the_eleven_models_of_table_3_each_with_one_backend() -> None:
    given = yaml.safe_load((ROOT / "configs/paper003.yaml").read_text())
    assert [entry["model"] for entry in given["models"]] == [
        f"openrouter/{name}" for name in MODELS.values()
    ]
    for entry in given["models"]:
        pin = entry["args"]["provider"]
        assert len(pin["order"]) == 1 and pin["allow_fallbacks"] is False
    assert (given["args"], given["limit"]) == ({"k": 1, "epochs": 10, "candidates": 3}, 50)


@pytest.mark.parametrize(
    ("paper", "kind", "last"), [("004", "Figure", 23), ("004", "Table", 3), ("003", "Table", 3)]
)
def test_every_numbered_figure_and_table_has_a_row(paper: str, kind: str, last: int) -> None:
    named = {
        int(found[1])
        for row in rows(PAPERS[paper])
        if (found := re.match(rf"{kind} (\d+)\b", row[0]))
    }
    assert named == set(range(1, last + 1))


def run_awareness(words: list[str], folder: Path) -> None:
    """A command of evaluation awareness with planted subjects, of few conversations and clusters."""
    if "--config" in words:
        place = words.index("--config") + 1
        settings = yaml.safe_load((ROOT / words[place]).read_text())
        subjects = [f"{planted(model)}{TRACED}" for model in settings["models"]]
        asked_again_and_namer = subjects[-3:]
        settings |= {"models": asked_again_and_namer, "grader": planted(settings["grader"])}
        words[place] = str(folder / "config.yaml")
        Path(words[place]).write_text(yaml.safe_dump(settings))
    for option, values in zip(list(words), words[1:], strict=False):
        if option == "--models":
            subjects = [f"{planted(model)}{TRACED}" for model in values.split(",")]
            words[words.index("--models") + 1] = ",".join(subjects)
        if option == "--grader":
            words[words.index("--grader") + 1] = planted(values)
    if "run" in words[:2]:
        words += ["--limit", "8"]
    if "features" in words[:2]:
        words[words.index("--clusters") + 1] = "1"
        words += ["--embedder", "openai/words"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, (words, result.output)


@pytest.mark.slow(60)
def test_the_commands_of_paper_002_run_on_planted_models_and_make_the_files_that_the_page_names(
    tmp_path: Path, embedder: str, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    for line in commands(PAPERS["002"]):
        program, *words = shlex.split(line)
        if program == "python":
            run_example(words, tmp_path, questions)
        elif words[0] == "probe":
            run_probe_of_pairs(words, tmp_path)
        else:
            assert program == "selfprobe" and words[0] in ("awareness", "paper", "report")
            run_awareness(words, tmp_path)
    for row in rows(PAPERS["002"]):
        for name in re.findall(r"`([\w/.-]+\.(?:csv|png|svg|json|jsonl|html))`", row[3]):
            places = (tmp_path / name, tmp_path / "out/paper002" / name)
            # The bundled transcripts have one turn.
            assert name == "figures/turns.svg" or any(place.is_file() for place in places), name
    assert_the_columns_are_there(PAPERS["002"], tmp_path, tmp_path / "out/paper002")
    with (tmp_path / "labels.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) > 4


def run_probe_of_pairs(words: list[str], folder: Path) -> None:
    """`probe run` on a tiny model in place of the one that is named."""
    from .probes.conftest import tiny_judge

    judge = tiny_judge("llama")
    model = folder / "models" / "tiny"
    judge.model.save_pretrained(model)
    judge.tokenizer.save_pretrained(model)
    small = {words[words.index("--model") + 1]: str(model), "cuda": "cpu", "bfloat16": "float32"}
    words = [small.get(word, word) for word in words]
    few = ["--seeds", "1", "--resamples", "100", "--no-random-weights", "--yes"]
    result = CliRunner().invoke(main, [*words, *few], catch_exceptions=False)
    assert result.exit_code == 0, (words, result.output)


@pytest.mark.slow(20)
def test_the_commands_of_paper_003_run_on_planted_models_and_make_the_files_that_the_page_names(
    tmp_path: Path, embedder: str, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    for line in commands(PAPERS["003"]):
        program, *words = shlex.split(line)
        if program == "selfprobe":
            run_selfprobe(words, tmp_path, questions)
        elif program == "python":
            run_example(words, tmp_path, questions)
        else:
            assert (program, words[0]) == ("inspect", "eval")
            run_inspect(words[1:], questions)
    for row in rows(PAPERS["003"]):
        for name in re.findall(r"`([\w/.-]+\.(?:csv|png|svg|jsonl|yaml))`", row[3]):
            places = (
                tmp_path / name,
                tmp_path / "out/paper003" / name,
                tmp_path / "out/paper003/tables" / name,
            )
            assert any(place.is_file() for place in (*places, ROOT / name)), name
    assert_the_columns_are_there(PAPERS["003"], tmp_path, tmp_path / "out/paper003")
    closest = pd.read_csv(tmp_path / "out/table1/tables/table1.csv")
    assert len(closest) == 4 and {len(names.split(", ")) for names in closest.models} == {11}, (
        "Table 1 is of eleven"
    )


TUNED = "google/gemma-2-2b-it"
"""Of those that the paper of latent-preference probes fine-tunes, the one that is tiny here; its runs are those of PROBED[1].
"""
PROBED = ("Llama-3.1-70B-Instruct", "Llama-3.1-8B-Instruct")
"""Of its models, those that are tiny here: two of one family, of different sizes."""


def tiny_pairs(spec: str, **_: Any) -> Any:
    """Sixteen pairs, of each of two aspects, named as one of its data sets; in LLMBar some
    are adversarial.
    """
    from selfprobe.data.pairs import ASPECTS, Pair
    from selfprobe.data.public_pairs import PairSet

    name = spec.partition("=")[0]
    kind: Any = {"mt_bench": "conversation", "llmbar": "conversation"}.get(name, name)
    aspects = list(ASPECTS.get(kind, {"": ""}))[:2]
    pairs = [
        Pair(
            f"{name}{i}{a}",
            f"{'ab'[i % 2]}{i}",
            "c",
            1 + i % 2,
            kind=kind,
            context=f"{name} {i}",
            aspect=a,
        )
        for a in aspects
        for i in range(16)
    ]
    if name == "llmbar":
        subsets = ["Natural"] * 16 + ["Neighbor"] * 6
        pairs = [
            replace(pairs[i % 16], id=f"l{i}", context=f"l{i}", subset=s, group="")
            for i, s in enumerate(subsets)
        ]
    return PairSet(name, tuple(pairs), spec, 0, 0)


def small_probe_words(words: list[str], folder: Path) -> list[str]:
    """The same command of tiny models, of few pairs, on this machine; nobody is asked."""
    words += ["--yes"] * (words[0] == "run" and "--yes" not in words)
    part = words[words.index("--parts") + 1] if "--parts" in words else ""
    small = {"cuda": "cpu", "bfloat16": "float32", "5000": "16"}
    small |= {
        name: str(folder / "models" / PROBED[1])
        for name in ("meta-llama/Llama-3.1-8B-Instruct", TUNED)
    }
    words = [
        word.replace(f"/{TUNED.rpartition('/')[2]}", f"/{PROBED[1]}") if "probes/" in word else word
        for word in words
    ]
    if part == "finetune":
        words[words.index("--datasets") + 1] = "newsroom,mctaco"
        at = words.index("--device-map")
        words = [*words[:at], *words[at + 2 :], "--samples", "8"]
    if part == "ablate":  # a tiny model in place of that of the folder's name
        words[words.index("--model") + 1] = str(folder / "models" / words[-2].rpartition("/")[2])
    if "--config" in words:
        if "--models" in words:
            words[words.index("--models") : words.index("--models") + 2] = []
        place = words.index("--config") + 1
        given = yaml.safe_load((ROOT / words[place]).read_text())
        given = {
            name: small.get(str(value), value)
            for name, value in given.items()
            if name != "device-map"
        }
        given |= {
            "models": [str(folder / "models" / name) for name in PROBED],
            "resamples": 100,
            "seeds": 1,
        }
        words[place] = str(folder / "config.yaml")
        Path(words[place]).write_text(yaml.safe_dump(given))
    elif words[0] == "run":
        words = [*words, "--seeds", "1", "--resamples", "100", "--no-random-weights"]
    runs = [
        [str(each) for each in sorted(folder.glob(word))]
        if "*" in word
        else [small.get(word, word)]
        for word in words
    ]
    return [word for run in runs for word in run]


def assert_aspects_are_apart(run: Path) -> None:
    """Each aspect has its probe, and a data set's number is the mean over its aspects."""
    tables = {
        name: pd.read_csv(run / f"tables/{name}.csv").query("metric == 'f1'")
        for name in ("methods", "aspects")
    }
    for name in ("newsroom", "summeval", "hanna"):
        assert len(list(run.glob(f"{name}-*-supervised.safetensors"))) == 2
        assert not (run / f"{name}-supervised.safetensors").exists()
        for kind in ("supervised", "unsupervised"):
            whole, each = (t[(t.dataset == name) & (t.method == kind)] for t in tables.values())
            assert len(each) == 3
            assert whole.value.item() == pytest.approx(
                each[each.aspect != "mean of aspects"].value.mean()
            )


@pytest.mark.slow(60)
def test_the_commands_of_paper_004_run_on_tiny_models_and_make_the_files_that_the_page_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft", reason="the mechanisms extra is not installed")
    from selfprobe.probes.finetune import JUDGES

    from .probes.conftest import TEMPLATE, tiny_judge

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("selfprobe.probes.run.load_pairs", tiny_pairs)
    for seed, (name, shape) in enumerate(zip(PROBED, ("llama", "gemma2"), strict=True)):
        judge = tiny_judge(shape, seed=seed)
        judge.tokenizer.chat_template = TEMPLATE.replace(
            "{{ raise_exception('no system role') }}", ""
        )
        judge.model.save_pretrained(tmp_path / "models" / name)
        judge.tokenizer.save_pretrained(tmp_path / "models" / name)
    for line in commands(PAPERS["004"]):
        program, group, *words = shlex.split(line)
        assert program == "selfprobe" and group in ("probe", "paper")
        if ("ablate" in words and not words[-1].endswith(PROBED)) or re.search(
            r"\$|gemma-2-(9|27)b-it$", line
        ):
            continue
        done = CliRunner().invoke(
            main, [group, *small_probe_words(words, tmp_path)], catch_exceptions=False
        )
        assert done.exit_code == 0, (words, done.output)
    for row in rows(PAPERS["004"]):
        for name in re.findall(r"`([\w/.*-]+\.(?:csv|svg|yaml))`", row[3]):
            if re.search("-it|Instruct", name) and not any(model in name for model in PROBED):
                continue
            folders = (tmp_path, tmp_path / "out/paper004", ROOT)
            assert (
                any(list(folder.glob(name)) for folder in folders) or name == "tables/aspects.csv"
            ), name
    assert_aspects_are_apart(tmp_path / "probes/paper004" / PROBED[1])
    for folder, judge in (("paper004", JUDGES["lora"]), ("full", JUDGES["full"])):
        tuned = pd.read_csv(tmp_path / "probes" / folder / PROBED[1] / "tables/finetuned.csv")
        assert set(tuned[tuned.method == judge].dataset) == {"newsroom", "mctaco"}
    for name in PROBED:
        for stem in (
            f"adversarial-{name}",
            f"cosine-{name}-supervised",
            f"table1-{name}-unsupervised",
        ):
            assert (tmp_path / f"out/paper004/figures/{stem}.svg").is_file()
