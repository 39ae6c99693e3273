"""The commands of docs/ci.md's workflow run as they stand, on a simulated model and fewer items."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner

from selfprobe.cli import main


def test_the_workflow_runs_makes_its_files_and_finds_a_planted_fall(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "docs" / "ci.md").read_text()
    cost, gate = re.findall(r"^(selfprobe check --run .*\$MODEL.*)$", text, re.MULTILINE)
    [accept] = re.findall(
        r"^(selfprobe check --run \w+,\w+ .* --save baseline\.json --yes)$", text, re.MULTILINE
    )
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

    assert run(accept, "planted/ada")[0] == 0
    status, said = run(cost, "planted/ada")
    assert (
        status == 0
        and "kth_word: 12 items, heads_up: 12 items" in said
        and "free (simulated)" in said
    )
    status, said = run(gate, "planted/ada?access=.1")
    assert status == 1 and "::error title=kth_word " in said
    assert (tmp_path / "check.xml").is_file() and "1 worse" in (tmp_path / "summary.md").read_text()
    assert "--log-dir" not in gate  # a kept workspace would ask nothing from the second run on


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
    for status, more, said in (
        (3, ["--limit", "2"], "kth_word: the baseline has 3 items, 2 would be run; raise --limit"),
        (2, ["-T", "dataset=ethical_dilemmas"], "ethical_dilemmas"),
        (2, ["-T", "resample=1"], "no task here has an argument resample; did you mean resamples?"),
        (2, ["-T", "target_log=logs"], "a gate asks a model about itself: leave target_log out"),
    ):
        done = CliRunner().invoke(main, [*run, *more, "--baseline", base])
        assert done.exit_code == status and said in done.output, done.output
        assert done.output.count("\n") == 1, done.output
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


GATE_OF_ONE_TASK = ["check", "--run", "kth_word", "--model", "planted/ada", "--limit", "3", "--yes"]


def outcomes_of(junit: Path) -> list[str]:
    """Tag of what each case of a JUnit file holds."""
    cases = ElementTree.fromstring(junit.read_bytes()).iter("testcase")
    return [child.tag for case in cases for child in case]


def test_a_folder_that_was_finished_asks_nothing_and_is_a_warning(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    outputs = ["--log-dir", str(logs), "--github", "--junit", str(tmp_path / "junit.xml")]
    first = CliRunner().invoke(main, [*GATE_OF_ONE_TASK, *outputs])
    assert "othing was asked" not in first.output
    assert outcomes_of(tmp_path / "junit.xml") == ["system-out"]
    again = CliRunner().invoke(main, [*GATE_OF_ONE_TASK, *outputs])
    assert first.exit_code == again.exit_code == 0
    assert f"{logs}  nothing was asked: its runs were finished at 2" in again.output
    assert f"::warning title={logs}::nothing was asked" in again.output
    assert outcomes_of(tmp_path / "junit.xml") == ["system-out", "skipped"]


def test_a_gate_that_asked_nothing_is_incomplete_everywhere(tmp_path: Path) -> None:
    base = str(tmp_path / "baseline.json")
    saved = [*GATE_OF_ONE_TASK, "--log-dir", str(tmp_path / "before"), "--save", base]
    assert CliRunner().invoke(main, saved).exit_code == 0
    logs = tmp_path / "logs"
    gate = [*GATE_OF_ONE_TASK, "--baseline", base, "--log-dir", str(logs)]
    gate += ["--github", "--junit", str(tmp_path / "junit.xml")]
    assert CliRunner().invoke(main, gate).exit_code == 0
    again = CliRunner().invoke(main, gate)
    assert again.exit_code == 3, again.output
    assert f"{logs}  incomplete: nothing was asked: its runs were finished at 2" in again.output
    assert f"read them: selfprobe check {logs} --baseline {base}" in again.output
    assert f"::error title={logs}::incomplete" in again.output
    assert "error" in outcomes_of(tmp_path / "junit.xml")
    read = CliRunner().invoke(main, ["check", str(logs), "--baseline", base])
    assert read.exit_code == 0


def test_a_gate_that_goes_on_says_which_runs_it_did_not_ask(tmp_path: Path) -> None:
    base = str(tmp_path / "baseline.json")
    both = [word.replace("kth_word", "kth_word,heads_up") for word in GATE_OF_ONE_TASK]
    saved = [*both, "--log-dir", str(tmp_path / "before"), "--save", base]
    assert CliRunner().invoke(main, saved).exit_code == 0
    logs = ["--log-dir", str(tmp_path / "logs")]
    assert CliRunner().invoke(main, [*GATE_OF_ONE_TASK, *logs]).exit_code == 0
    done = CliRunner().invoke(main, [*both, *logs, "--baseline", base])
    assert done.exit_code == 0, done.output
    assert "kth_word of planted/ada: not asked now, it was finished at 2" in done.output
    assert "heads_up of planted/ada: not asked now" not in done.output


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_a_gate_whose_tasks_are_others_than_the_baselines_is_refused_before_it_asks(
    tmp_path: Path, dry_run: list[str]
) -> None:
    both = [word.replace("kth_word", "kth_word,heads_up") for word in GATE_OF_ONE_TASK]
    cases = (
        (GATE_OF_ONE_TASK, both, "heads_up: the baseline lacks it and has kth_word"),
        (both, GATE_OF_ONE_TASK, "heads_up: the baseline has it and --run lacks it"),
    )
    for before, now, fault in cases:
        base = str(tmp_path / "baseline.json")
        junit = tmp_path / "junit.xml"
        saved = [*before, "--log-dir", str(tmp_path / str(len(before[2]))), "--save", base]
        assert CliRunner().invoke(main, saved).exit_code == 0
        logs = tmp_path / "logs"
        gate = [*now, "--baseline", base, "--log-dir", str(logs), "--github", "--junit", str(junit)]
        done = CliRunner().invoke(main, [*gate, *dry_run])
        assert done.exit_code == 3, done.output
        assert f"Error: {fault}; " in done.output
        assert "::error title=heads_up::refused: the baseline" in done.output
        assert outcomes_of(junit) == ["error"]
        assert not logs.exists()


def test_runs_that_the_baseline_would_not_be_compared_with_are_refused_before_they_are_asked(
    tmp_path: Path,
) -> None:
    ada = ["--model", "planted/ada"]
    bob = ["--model", "planted/bob"]
    both = ["--model", "planted/ada,planted/bob"]
    others = ["--model", "planted/cyn,planted/dan"]
    command = ["check", "--run", "kth_word", "--limit", "3", "--yes"]
    cases = (
        (ada, both, "kth_word of planted/bob: the baseline lacks it and has planted/ada; "),
        (both, ada, "kth_word of planted/bob: the baseline has it and --run lacks it; "),
        (both, others, "kth_word of planted/cyn: the baseline lacks it and has planted/ada, "),
        (
            both,
            ["--model", "planted/zed,planted/bob"],
            "kth_word of planted/zed: the baseline lacks it",
        ),
        (ada, [*ada, "-T", "k=2"], "asked with other task arguments: k was left out and is 2"),
        ([*ada, "-T", "k=2"], ada, "asked with other task arguments: k was 2 and is left out"),
        (ada, [*bob, "-T", "k=2"], "asked with other task arguments: k was left out and is 2"),
        (ada, [*ada, "--same-model"], "other task arguments: same_model was left out and is True"),
    )
    for number, (before, now, fault) in enumerate(cases):
        base = str(tmp_path / f"{number}.json")
        junit = tmp_path / "junit.xml"
        saved = [*command, *before, "--log-dir", str(tmp_path / str(number)), "--save", base]
        assert CliRunner().invoke(main, saved).exit_code == 0
        logs = tmp_path / "logs"
        gate = [*command, *now, "--baseline", base, "--log-dir", str(logs), "--junit", str(junit)]
        done = CliRunner().invoke(main, gate)
        assert done.exit_code == 3, done.output
        assert fault in done.output
        assert set(outcomes_of(junit)) == {"error"}
        assert not logs.exists()


def test_a_baseline_of_other_items_of_the_same_number_is_refused_before_it_is_asked(
    run_task: Any, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    run_task("selfprobe/kth_word", "planted/ada", before, limit=(2, 5))
    base = str(tmp_path / "baseline.json")
    assert CliRunner().invoke(main, ["check", str(before), "--save", base]).exit_code == 0
    logs = tmp_path / "logs"
    gate = [*GATE_OF_ONE_TASK, "--baseline", base, "--log-dir", str(logs), "--dry-run"]
    done = CliRunner().invoke(main, gate)
    assert done.exit_code == 3, done.output
    assert re.search(
        r"kth_word: 2 of the baseline's 3 items would not be run, as \S+; raise --limit",
        done.output,
    )
    assert not logs.exists()
    gate[gate.index("--limit") + 1] = "5"
    assert CliRunner().invoke(main, gate).exit_code == 0


def test_a_single_other_model_is_asked_and_compared(tmp_path: Path) -> None:
    base = str(tmp_path / "baseline.json")
    saved = [*GATE_OF_ONE_TASK, "--log-dir", str(tmp_path / "before"), "--save", base]
    assert CliRunner().invoke(main, saved).exit_code == 0
    gate = [word.replace("planted/ada", "planted/bob") for word in GATE_OF_ONE_TASK]
    gate += ["--log-dir", str(tmp_path / "logs"), "--baseline", base]
    done = CliRunner().invoke(main, gate)
    assert done.exit_code in (0, 1), done.output
    assert "kth_word of planted/bob: the baseline's model is planted/ada" in done.output
