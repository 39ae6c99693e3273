"""Put the repository's address and the version into the files that name them: `python
docs/address.py`.

`pyproject.toml` is the one place where both stand: a release sets `version` and the owner in
`[project.urls]`, and calls this.
"""

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]

ACTION_LINE = re.compile(r"uses: [\w.-]+/[\w.-]*selfprobe@v[\w.]+")
REPOSITORY_LINE = re.compile(r"^repository-code: .*$", re.MULTILINE)
VERSION_LINE = re.compile(r"^version: .*$", re.MULTILINE)


def addressed_texts(root: Path = ROOT) -> dict[Path, str]:
    """File that names the address or the version → its text with those of `pyproject.toml`.

    Raises:
        ValueError: A file has none of its lines any more.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project["urls"]["Repository"]
    version = project["version"]
    repository = urlsplit(address).path.strip("/")

    line_patterns_by_file = {
        root / "docs/ci.md": {ACTION_LINE: f"uses: {repository}@v{version}"},
        root / "CITATION.cff": {
            REPOSITORY_LINE: f"repository-code: {address}",
            VERSION_LINE: f"version: {version}",
        },
    }
    texts = {}
    for file, line_by_pattern in line_patterns_by_file.items():
        text = file.read_text(encoding="utf-8")
        for pattern, line in line_by_pattern.items():
            text, count = pattern.subn(line, text)
            if not count:
                raise ValueError(f"{file}: no line like {pattern.pattern}")
        texts[file] = text
    return texts


if __name__ == "__main__":
    for file, text in addressed_texts().items():
        file.write_text(text, encoding="utf-8")
        print(file.relative_to(ROOT))
