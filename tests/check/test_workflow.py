"""The commands of docs/ci.md's workflow run as they stand, on a simulated model and fewer items."""

import re
import shlex
import time
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from selfprobe.cli import main


def test_the_workflow_runs_makes_its_files_and_finds_a_planted_fall(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "docs" / "ci.md").read_text()
    cost, gate = re.findall(r"^(selfprobe check --run .*\$MODEL.*)$", text, re.MULTILINE)
    [accept] = re.findall(r"^(selfprobe check --run .* --save baseline\.json)$", text, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))

    def run(command: str, model: str) -> tuple[int, str]:
        words = shlex.split(
            command.replace("$MODEL", model)
            .replace("openai/gpt-5.6-terra", model)
            .replace("100", "12")
        )
        assert words[0] == "selfprobe"
        done = CliRunner().invoke(main, words[1:])
        return done.exit_code, done.output

    assert run(f"{accept} --yes", "planted/ada")[0] == 0
    status, said = run(cost, "planted/ada")
    assert (
        status == 0
        and "kth_word: 12 items, heads_up: 12 items" in said
        and "free (simulated)" in said
    )
    status, said = run(gate, "planted/ada?access=.1")
    assert status == 1 and "::error title=kth_word " in said
    assert (tmp_path / "check.xml").is_file() and "1 worse" in (tmp_path / "summary.md").read_text()


def test_the_workflow_of_the_page_gives_the_action_inputs_that_it_has(root: Path) -> None:
    [written] = re.findall(r"```yaml\n(.*?)```", (root / "docs/ci.md").read_text(), re.DOTALL)
    *_, step = yaml.safe_load(written)["jobs"]["gate"]["steps"]
    inputs = yaml.safe_load((root / "action.yml").read_text())["inputs"]
    assert step["uses"].partition("@")[0] == "OWNER/selfprobe"
    assert set(step["with"]) <= set(inputs)
    [further] = re.findall(
        r"^Further inputs of .*$", (root / "docs/ci.md").read_text(), re.MULTILINE
    )
    assert {*re.findall(r"`(\w[\w-]+)`", further)} - {"status"} == set(inputs) - set(step["with"])
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert step["uses"].endswith(f"@v{version}")


def test_calls_that_no_gate_would_use_are_refused_before_they_are_made(tmp_path: Path) -> None:
    base = str(tmp_path / "b.json")
    run = ["check", "--run", "kth_word", "--model", "planted/ada", "--yes"]
    done = CliRunner().invoke(
        main, [*run, "--limit", "3", "--save", base, "--log-dir", str(tmp_path / "logs")]
    )
    assert done.exit_code == 0, done.output
    for more, said in (
        (["--limit", "2"], "kth_word: the baseline has 3 items, 2 would be run; raise --limit"),
        (["-T", "dataset=ethical_dilemmas"], "ethical_dilemmas"),
        (["-T", "resample=1"], "no task here has an argument resample; did you mean resamples?"),
        (["-T", "target_log=logs"], "a gate asks a model about itself: leave target_log out"),
    ):
        done = CliRunner().invoke(main, [*run, *more, "--baseline", base])
        assert done.exit_code == 2 and said in done.output and done.output.count("\n") == 1, (
            done.output
        )
    for task, said in (
        ("kth_wort", "; there is no task kth_wort; did you mean kth_word?"),
        ("nosuch", "; there is no task nosuch"),
        ("forced_choice", "; there is no task forced_choice"),
        (
            "awareness_binary",
            "; run awareness_binary by itself: inspect eval selfprobe/awareness_binary",
        ),
        (
            "pairwise_preference",
            "; run pairwise_preference by itself: inspect eval selfprobe/pairwise_preference",
        ),
    ):
        done = CliRunner().invoke(main, ["check", "--run", task, "--model", "planted/ada"])
        assert done.exit_code == 2 and said in done.output and done.output.count("\n") == 1, (
            done.output
        )


def test_a_folder_that_was_finished_asks_nothing_and_says_so(tmp_path: Path) -> None:
    run = ["check", "--run", "kth_word", "--model", "planted/ada", "--yes", "--limit", "3"]
    first = CliRunner().invoke(main, [*run, "--log-dir", str(tmp_path / "logs")])
    time.sleep(1)  # times in logs are whole seconds
    again = CliRunner().invoke(main, [*run, "--log-dir", str(tmp_path / "logs")])
    assert first.exit_code == again.exit_code == 0
    assert "Nothing was asked" not in first.output
    assert f"Nothing was asked: the runs in {tmp_path / 'logs'} were finished at 2" in again.output
