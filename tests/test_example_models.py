"""Examples name models that their vendors do not end, and as many as an answer takes."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import yaml

from selfprobe.data.prices import CONFIGS, bundled_prices
from selfprobe.providers.keys import KEY_VARIABLES
from selfprobe.study.options import EXAMPLES

ROOT = Path(__file__).parent.parent
RETIREMENTS: dict[str, date] = yaml.safe_load((CONFIGS / "retirements.yaml").read_text("utf-8"))
SOURCES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted(ROOT.glob("*_tasks/*.py")),
    *sorted(ROOT.glob("building/*.py")),
    ROOT / "selfprobe/scout.py",
]
COMMAND = re.compile(r"\b(?:inspect (?:eval|score)|selfprobe|scout scan)\b.*--.*")
MODEL = re.compile(rf"\b(?:{'|'.join(KEY_VARIABLES)})/[A-Za-z0-9][\w./:-]*")
REPEATS_A_PAPER = {"openai/gpt-4o"}
"""Models of papers, by which docs/reproduce.md repeats their numbers."""


def vendor_name(model: str) -> str:
    """A model without a router: `openrouter/openai/gpt-4o` is `openai/gpt-4o`."""
    return model.removeprefix("openrouter/")


def retired(model: str) -> bool:
    return vendor_name(model) in RETIREMENTS


def example_lines() -> Iterator[tuple[str, str]]:
    """Each place with a command that may name models."""
    for source in SOURCES:
        for line in source.read_text("utf-8").splitlines():
            if COMMAND.search(line):
                yield source.relative_to(ROOT).as_posix(), line
    for command, examples in EXAMPLES.items():
        for arguments in examples:
            yield f"{command} -h", f"selfprobe {command} {arguments}"


def test_no_example_names_a_model_that_its_vendor_ends() -> None:
    named = {(place, model) for place, line in example_lines() for model in MODEL.findall(line)}
    assert len(named) > 40, "what finds them still does"
    ended = {
        (place, model)
        for place, model in named
        if retired(model)
        and not (place == "docs/reproduce.md" and vendor_name(model) in REPEATS_A_PAPER)
    }
    assert not ended


def test_a_matrix_of_an_example_can_name_somebody() -> None:
    counts = {}
    for place, line in example_lines():
        match = re.search(r"selfprobe (?:matrix|outcome) .*--models ('[^']+'|\S+)", line)
        if match and "word_count" not in line:
            counts[place, line] = len(match[1].split(","))
    assert len(counts) > 10
    assert not {key: count for key, count in counts.items() if count < 5 and "sums" not in key[1]}


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("paper*.yaml")), ids=lambda path: path.stem)
def test_a_configuration_says_which_of_its_models_end_and_when(path: Path) -> None:
    text = path.read_text("utf-8")
    if path.stem == "paper003_dolly":  # which refers to the other
        assert "The models are those of configs/paper003.yaml" in text
        return
    entries = yaml.safe_load(text)["models"]
    names = [entry if isinstance(entry, str) else entry["model"] for entry in entries]
    comments = "".join(line for line in text.splitlines() if line.startswith("#"))
    for name in filter(retired, names):
        day = RETIREMENTS[vendor_name(name)]
        short_name = name.rpartition("/")[2]
        assert short_name in comments and day.isoformat() in comments, name


def test_every_model_of_an_example_of_five_has_a_price() -> None:
    prices = bundled_prices().by_model
    readme = (ROOT / "README.md").read_text("utf-8")
    [routed] = re.findall(r"with one key, `--models (\S+)`", readme)
    _, keyed = EXAMPLES["matrix"]
    for model in [*routed.split(","), *keyed.split()[1].split(",")]:
        assert model in prices, model
