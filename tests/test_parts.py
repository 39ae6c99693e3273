"""docs/parts.py: what a program made takes its part's place in the one page that has it."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def parts() -> ModuleType:
    spec = spec_from_file_location("docs_parts", DOCS / "parts.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_part_is_replaced_and_nothing_else(parts: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n<!-- rates: made by x -->\nold\n<!-- end of rates -->\nrest\n")
    for _ in range(2):
        assert parts.put("rates", "|a|\\1|\n", tmp_path) == page
        assert (
            page.read_text()
            == "# A\n<!-- rates: made by x -->\n\n|a|\\1|\n\n<!-- end of rates -->\nrest\n"
        )
    with pytest.raises(ValueError, match="expected one page with <!-- other: … -->, found none"):
        parts.put("other", "", tmp_path)


def test_every_part_of_the_pages_is_made_by_a_program_that_is_there(parts: ModuleType) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    found = re.findall(r"<!-- (\w+): made by (\S+) -->", text)
    assert sorted(name for name, _ in found) == [
        "claims",
        "families",
        "faults",
        "gate",
        "nights",
        "vendors",
        "verdict",
    ]
    for name, program in found:
        assert (
            f"docs/parts.py {name} " in (DOCS.parent / program).read_text(encoding="utf-8") + text
        )
        assert f"<!-- end of {name} -->" in text
