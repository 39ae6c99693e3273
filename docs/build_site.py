"""Build the site: `make docs`.

The pages keep links that work in a checkout (`../scorers/decision.py`). In the site a file that
they link to is a page of its own, `source/scorers/decision.py`: Markdown as it is, other files as
code, a folder as a list of its modules. Whatever the generator warns of is an error; so are dead
links and requests to another host in what it built.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath, relpath
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent
PAGES, SITE = ROOT / "build" / "docs", ROOT / "site"
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)")
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
MADE = f"The site: {SITE / 'index.html'} (for its search: {sys.executable} -m http.server -d site)"
ADDRESSES = ("canonical", "next", "prev")
"""The kinds of <link> that load nothing."""


def main() -> int:
    """Write the pages, run the generator, and look at what it made. The exit status: 0 where
    nothing is wrong.
    """
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    for name in linked():
        place = PAGES / placed(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(shown(name), encoding="utf-8")
    for path in (ROOT / "docs").iterdir():
        if path.suffix in (".png", ".svg", ".css", ".txt"):
            shutil.copy(path, PAGES / path.name)
    command = [Path(sys.executable).parent / "zensical", "build", "--strict", "--clean"]
    built = subprocess.run(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if built.returncode:
        print(built.stdout.partition("Traceback")[0])
        return built.returncode
    for page in PAGES.rglob("*.md"):  # llms.txt names the Markdown of each page
        (SITE / page.relative_to(PAGES)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, SITE / page.relative_to(PAGES))
    docstrings = [line for line in built.stdout.splitlines() if line.startswith("griffe:")]
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    lost = [
        f"mkdocs.yml: nav lacks {p.name}"
        for p in (ROOT / "docs").glob("*.md")
        if f": {p.name}\n" not in navigation
    ]
    wrong = [*docstrings, *lost, *faults(SITE)]
    print(*wrong or [MADE], sep="\n")
    return bool(wrong)


def placed(name: str) -> str:
    """Where a file of the checkout is among the pages: docs/cost.md is cost.md, Makefile is
    source/Makefile.md.
    """
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"source/{name}" if name.endswith(".md") else f"source/{name}.md"


def linked() -> list[str]:
    """The pages of docs/, and all files and folders of the checkout that they link to, and those
    that these do.
    """
    names = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]
    for name in names:  # it grows
        for link, target in targets(name).items():
            if not (ROOT / target).exists():
                sys.exit(f"{name}: there is no {link}")
            if target not in names:
                names.append(target)
    return [name for name in names if not name.endswith((".png", ".svg", ".txt"))]


def targets(name: str) -> dict[str, str]:
    """The links of a page that lead to files of the checkout: as written, and from the checkout's
    root.
    """
    if not (ROOT / name).is_dir() and not name.endswith(".md"):
        return {}
    folder = name if (ROOT / name).is_dir() else name.rpartition("/")[0]
    return {link: normpath(f"{folder or '.'}/{link}") for _, link in LINK.findall(text_of(name))}


def text_of(name: str) -> str:
    """A file of the checkout as Markdown."""
    path = ROOT / name
    if path.is_dir():
        modules = sorted(file.name for file in path.glob("*.py") if not file.name.startswith("_"))
        return "\n".join([f"# {name}/", "", *(f"- [{module}]({module})" for module in modules), ""])
    text = path.read_text(encoding="utf-8")
    return (
        text
        if name.endswith(".md")
        else f"# {name}\n\n````{path.suffix.removeprefix('.')}\n{text}````\n"
    )


def shown(name: str) -> str:
    """The page of a file: its links lead to pages, and search passes over what is no page of docs/."""
    here, found = placed(name), targets(name)

    def moved(match: re.Match[str]) -> str:
        return match[1] + relpath(placed(found[match[2]]), here.rpartition("/")[0] or ".")

    text = LINK.sub(moved, text_of(name)) if found else text_of(name)
    return text if name.startswith("docs/") else f"---\nsearch:\n  exclude: true\n---\n\n{text}"


class Page(HTMLParser):
    """What a built page loads, links to, and names."""

    def __init__(self, text: str) -> None:
        """Read it."""
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of what an element loads or links to, and of its id."""
        given = {key: value or "" for key, value in attrs}
        self.names.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in LOADS and given.get("rel") not in ADDRESSES:
            self.loads.append(given.get(LOADS[tag], ""))


def faults(site: Path) -> Iterator[str]:
    """Dead links of the pages and of llms.txt, and what the browser would ask of another host: a
    line each.
    """
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        yield from (
            f"{where}: loads {load}" for load in page.loads if re.match(r"(https?:)?//", load)
        )
        for link in page.links:
            address, _, name = link.partition("#")
            if path.name == "404.html" or re.match(r"[a-z]+:|/", address):
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            if not target.exists():
                yield f"{where}: there is no {address}"
            elif name and target in pages and unquote(name) not in pages[target].names:
                yield f"{where}: there is no #{name} in {address or where}"
    for path in site.rglob("*.css"):
        for asked in re.findall(
            r"url\(\"?((?:https?:)?//[^)\"]+)", path.read_text(encoding="utf-8")
        ):
            yield f"{path.relative_to(site)}: loads {asked}"
    for _, link in LINK.findall((site / "llms.txt").read_text(encoding="utf-8")):
        if not (site / link).is_file():
            yield f"llms.txt: there is no {link}"


if __name__ == "__main__":
    sys.exit(main())
