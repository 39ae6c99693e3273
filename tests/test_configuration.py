"""A YAML file in the place of options: what it gives arrives, the command line wins, and what it
may not give is named.
"""

from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from selfprobe import cli
from selfprobe.study import options
from selfprobe.study.options import config

ROOT = Path(__file__).parent.parent


@click.command()
@config
@options.models(required=True)
@click.option("--limit", type=options.COUNT)
@click.option("--log-dir", default="here")
@click.option("--third", is_flag=True)
@click.option("--logs", multiple=True)
@click.option("-M", "model_args", type=options.Assignment(), multiple=True)
@click.option("--yes", is_flag=True)
def command(**given: Any) -> None:
    click.echo(repr(given))


def call(folder: Path, text: str, *arguments: object) -> Result:
    file = folder / "c.yaml"
    file.write_text(text)
    return CliRunner().invoke(command, ["--config", str(file), *map(str, arguments)])


def given(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return dict(eval(result.output))


def test_a_files_fields_are_the_options_by_their_long_names(tmp_path: Path) -> None:
    text = "models: [a, b]\nlimit: 3\nlog-dir: there\nthird: true\nlogs: [x, y]\nmodel-args: {provider: {order: [one]}, k: 1}\n"
    assert given(call(tmp_path, text)) == {
        "models": ["a", "b"], "limit": 3, "log_dir": "there", "third": True, "logs": ("x", "y"), "yes": False,
        "model_args": (("provider", {"order": ["one"]}), ("k", 1)),
    }  # fmt: skip


def test_the_command_line_wins(tmp_path: Path) -> None:
    found = given(call(tmp_path, "models: a,b\nlimit: 3\n", "--limit", 5, "--models", "c"))
    assert (found["models"], found["limit"], found["log_dir"]) == (["c"], 5, "here")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modles: [a]\n", "c.yaml: unknown field modles; did you mean models?"),
        ('models: [a]\n"yes": true\n', "c.yaml: unknown field yes"),
        ("models: [a]\nconfig: b\n", "c.yaml: unknown field config"),
        ("models: [a]\nlog_dir: x\n", "unknown field log_dir; did you mean log-dir?"),
        ("models: [a]\nthird: 1\n", "c.yaml: third must be true or false, got 1"),
        ("models: [a]\nlimit: true\n", "c.yaml: limit must be one value, got True"),
        ("models: [a]\nlimit: [1]\n", "c.yaml: limit must be one value, got [1]"),
        ("models: [a]\nlimit: many\n", "c.yaml: limit: expected a whole number from 1, got 'many'"),
        ("models: {a: b}\n", "c.yaml: models must be a list of texts, got {'a': 'b'}"),
        ("models: [a, a]\n", "model a is listed twice"),
        ("models: [a]\nmodel-args: [b]\n", "c.yaml: model-args must be a mapping, got ['b']"),
        ("- a\n", "c.yaml: expected a mapping with limit, log-dir"),
        ("a: [\n", "c.yaml is not YAML"),
        ("a: " + "[" * 20_000, "c.yaml is not YAML: it nests lists and objects too deep to be read"),
        ("models: [a]\nlimit: 5\nmodels: [b]\n", "models is there twice, in lines 1 and 3: give it once"),
        ("limit: 1\n", "Missing option '--models'"),
    ],
)  # fmt: skip
def test_what_a_file_may_not_give_is_named(text: str, message: str, tmp_path: Path) -> None:
    done = call(tmp_path, text)
    assert done.exit_code == 2 and message in " ".join(done.output.split()), done.output


def test_a_whole_number_of_a_file_may_have_a_fraction_of_zero_and_no_other(tmp_path: Path) -> None:
    assert given(call(tmp_path, "models: a\nlimit: 3.0\n"))["limit"] == 3
    for number in ("1.5", ".inf", ".nan"):
        refused = call(tmp_path, f"models: a\nlimit: {number}\n")
        assert refused.exit_code == 2
        assert "limit: expected a whole number from 1, got" in refused.output, number


def test_a_missing_file_is_named() -> None:
    done = CliRunner().invoke(cli.main, ["awareness", "run", "--config", "nothing.yaml"])
    assert done.exit_code == 2 and "nothing.yaml" in done.output


def test_the_configuration_of_paper_002_names_its_five_models_and_plans_them() -> None:
    text = yaml.safe_load((ROOT / "configs/paper002.yaml").read_text())
    names = [name.rpartition("/")[2] for name in text["models"]]
    assert names == [
        "gpt-5-mini",
        "gemini-2.5-pro",
        "deepseek-r1-0528",
        "gpt-oss-120b",
        "qwen3-32b",
    ]
    done = CliRunner().invoke(
        cli.main, ["awareness", "run", "--config", str(ROOT / "configs/paper002.yaml"), "--dry-run"]
    )
    assert done.exit_code == 0 and "gemini-2.5-pro" in done.output, done.output


def test_the_configuration_of_paper_004_names_its_four_families() -> None:
    pytest.importorskip("torch", reason="the probes extra is not installed")
    from selfprobe.studies.probe_compare import family_of

    text = yaml.safe_load((ROOT / "configs/paper004.yaml").read_text())
    families = [family_of(name) for name in text["models"]]
    assert {name: families.count(name) for name in families} == {
        "Llama-3.1": 2,
        "gemma-2": 3,
        "Qwen2.5": 7,
        "Mistral": 3,
    }
    assert {name.partition("=")[0] for name in text["datasets"]} == {
        "mt_bench", "newsroom", "summeval", "hanna", "mctaco", "llmbar", "rocstories", "caters",
    }  # fmt: skip
