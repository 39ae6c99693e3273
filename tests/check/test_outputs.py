"""Outputs of `selfprobe check` are seen to be writable before any call, and a refusal stands in them."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.studies.check_cases import markdown_cell

ASKING = ["check", "--run", "kth_word", "--model", "planted/ada", "--limit", "2"]


def unwritable_places(tmp_path: Path, suffix: str) -> dict[Path, str]:
    """Path that cannot be written → what is said of it."""
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    file = tmp_path / "file"
    file.write_text("")
    places = {folder: "is a folder; give a file", file / f"x{suffix}": "is a file; give another"}
    if Path("/proc/self").is_dir():
        places[Path(f"/proc/x{suffix}")] = "cannot write to"
    return places


@pytest.mark.parametrize("asking", [["--yes"], ["--dry-run"]])
@pytest.mark.parametrize(("option", "suffix"), [("--junit", ".xml"), ("--save", ".json")])
def test_a_file_that_cannot_be_written_is_refused_before_any_call(
    tmp_path: Path, option: str, suffix: str, asking: list[str]
) -> None:
    logs = tmp_path / "logs"
    for place, fault in unwritable_places(tmp_path, suffix).items():
        command = [*ASKING, "--log-dir", str(logs), option, str(place), *asking]
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 2, done.output
        assert fault in done.output and option in done.output
        assert done.output.count("\n") == 1
        assert not logs.exists()


@pytest.mark.parametrize("asking", [["--yes"], ["--dry-run"]])
def test_a_step_summary_that_cannot_be_written_is_refused_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asking: list[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    logs = tmp_path / "logs"
    done = CliRunner().invoke(main, [*ASKING, "--log-dir", str(logs), "--github", *asking])
    assert done.exit_code == 2 and not logs.exists()
    assert f"Error: cannot write the step summary {tmp_path}: Is a directory" in done.output


def test_files_that_can_be_written_are_left_alone_by_a_dry_run(tmp_path: Path) -> None:
    new_files = ["--junit", str(tmp_path / "a" / "x.xml"), "--save", str(tmp_path / "b" / "x.json")]
    done = CliRunner().invoke(main, [*ASKING, *new_files, "--dry-run"])
    assert done.exit_code == 0, done.output
    assert not list(tmp_path.iterdir())
    device = ["--junit", "/dev/null", "--dry-run"]
    assert CliRunner().invoke(main, [*ASKING, *device]).exit_code == 0


def wrong_commands(tmp_path: Path) -> dict[str, list[str]]:
    """What is said → a command that ends with status 2 and that text."""
    (tmp_path / "cut.json").write_text('{"baseline": 1')
    logs = str(tmp_path / "nowhere")
    return {
        "cut.json is no baseline": [*ASKING, "--baseline", str(tmp_path / "cut.json"), "--dry-run"],
        "there is no task kth_wort": ["check", "--run", "kth_wort", "--model", "planted/ada"],
        "nowhere": ["check", logs],
        "acces": ["check", "--run", "kth_word", "--model", "planted/ada?acces=1", "--yes"],
        "--strict is about a change": [*ASKING, "--strict"],
    }


def test_a_refused_command_stands_in_junit_and_annotations_in_place_of_an_earlier_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    junit = tmp_path / "junit.xml"
    for number, (text, command) in enumerate(wrong_commands(tmp_path).items()):
        summary = tmp_path / f"{number}.md"
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
        junit.write_text("of an earlier night")
        done = CliRunner().invoke(main, [*command, "--junit", str(junit), "--github"])
        assert done.exit_code == 2, done.output
        [case] = ElementTree.fromstring(junit.read_bytes()).iter("testcase")
        assert case.get("name") == "selfprobe check" and case[0].tag == "error"
        assert "refused: " in str(case[0].get("message")) and text in str(case[0].get("message"))
        assert "::error title=selfprobe check::refused: " in done.stderr
        assert markdown_cell(text) in summary.read_text()
        assert done.stderr.splitlines()[-1].startswith("Error: ")
