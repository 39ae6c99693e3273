"""docs/address.py: the repository's address and the version stand in pyproject.toml alone, and
every other file says the same.
"""

import re
import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
FILES = ("pyproject.toml", "docs/ci.md", "CITATION.cff")


@pytest.fixture(scope="module")
def address() -> ModuleType:
    spec = spec_from_file_location("docs_address", ROOT / "docs/address.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A copy of the files, with another owner and version in pyproject.toml alone."""
    (tmp_path / "docs").mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    text = re.sub(r"github\.com/[\w.-]+/", "github.com/lab/", project.read_text("utf-8"))
    project.write_text(re.sub(r'(?m)^version = ".*"', 'version = "1.2.3"', text), "utf-8")
    return tmp_path


def test_every_file_says_the_address_and_the_version_of_pyproject(address: ModuleType) -> None:
    for file, text in address.addressed_texts().items():
        assert file.read_text("utf-8") == text, f"{file}: python docs/address.py"


def test_a_release_sets_the_owner_once(address: ModuleType, released: Path) -> None:
    texts = address.addressed_texts(released)
    assert "uses: lab/selfprobe@v1.2.3\n" in texts[released / "docs/ci.md"]
    citation = texts[released / "CITATION.cff"]
    assert "repository-code: https://github.com/lab/selfprobe\n" in citation
    assert "version: 1.2.3\n" in citation and "cff-version: 1.2.0\n" in citation


def test_a_file_that_lost_its_line_is_named(address: ModuleType, released: Path) -> None:
    (released / "docs/ci.md").write_text("no workflow", "utf-8")
    with pytest.raises(ValueError, match=r"docs/ci\.md: no line like uses: "):
        address.addressed_texts(released)


def test_no_page_names_the_address_by_itself(address: ModuleType) -> None:
    pages = {ROOT / "README.md", ROOT / "action.yml", *(ROOT / "docs").glob("*.md")}
    for page in pages - address.addressed_texts().keys():
        assert not address.ACTION_LINE.search(page.read_text("utf-8")), page
