"""Retake what the pages say that commands print: part of `make pictures`.

In README.md and docs/ a block that begins with ```text is printed by the nearest block of commands above it: all of
that, or lines of it that follow one another. "…" alone on a line stands for lines that are left out, and at the end of
a line for the rest of it. The commands are run as they stand, in a folder with the files that the page shows; a test
compares.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:selfprobe|inspect) .+$", re.MULTILINE)
CUT = "…"
PICTURES = {
    "introspection.svg": "matrix/figures/predicted.svg",
    "awareness.svg": "awareness/figures/noticed.svg",
    "realism.svg": "realism/figures/win_rates.svg",
    "probes.svg": "probes/figures/probes.svg",
    "mechanisms.svg": "mechanism/figures/lens.svg",
}
"""The pages' pictures, and the figure of a page's commands that each is."""


@dataclass(frozen=True)
class Output:
    """A block of text on a page, and what prints it."""

    page: Path
    commands: tuple[str, ...]
    """In order; empty where no block above has any."""
    text: str


def outputs(page: Path) -> Iterator[Output]:
    """The printed blocks of a page."""
    commands: tuple[str, ...] = ()
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "text":
            yield Output(page, commands, text)
        else:
            commands = tuple(COMMAND.findall(text)) or commands


FILE = re.compile(r"`(\w+\.\w+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def placed(page: Path, folder: Path) -> None:
    """Put the files that a page shows (their names, and a block) into a folder, for its commands."""
    for name, text in FILE.findall(page.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")


def printed(commands: tuple[str, ...], folder: Path) -> str:
    """What the commands print in `folder`, on a terminal of 120 columns without colours.

    Raises:
        subprocess.CalledProcessError: One of them ended with another status than 0; its output has
        the reason.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    place = os.environ | {"PATH": path, "PWD": str(folder), "COLUMNS": "120", "NO_COLOR": "1"}
    told = ""
    for command in commands:
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=place,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, told + done.stdout)
        told += (
            done.stdout if done.stdout.endswith("\n") else f"{done.stdout}\n"
        )  # Inspect's may end within a line
    return told


def holds(text: str, told: str) -> bool:
    """Whether a block is what was printed, but for its cuts.

    >>> holds("a  1\\n…\\nc is …\\n", "a  1\\nb  2\\nc is long\\nd\\n")
    True
    """
    lines = [_pattern(line.rstrip()) for line in text.splitlines()]
    return re.search("^" + "".join(lines), _stripped(told), re.MULTILINE) is not None


def _pattern(line: str) -> str:
    if line == CUT:
        return r"(?:.*\n)*?"
    return re.escape(line.removesuffix(CUT)) + (r".*\n" if line.endswith(CUT) else r"\n")


def _stripped(told: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in told.splitlines())


def retaken(text: str, told: str) -> str:
    """The block with each of its lines as it is printed now: the next one that begins with the same
    two words, or one.

    A line that was cut after so many sentences is cut after as many again. Where a word is not
    found, all that was printed is returned, for a person to cut.
    """
    left, lines = _stripped(told).splitlines(), list[str]()
    for line in text.splitlines():
        if line == CUT or not line.strip():
            lines.append(line)
            continue
        words = (line.split()[:count] for count in (2, 1))
        at = next(
            (
                i
                for begins in words
                for i, new in enumerate(left)
                if new.split()[: len(begins)] == begins
            ),
            None,
        )
        if at is None:
            return _stripped(told)
        sentences, kept = left[at].split(". "), line.count(". ")
        cut = line.endswith(CUT) and len(sentences) > kept
        lines.append(". ".join(sentences[:kept]) + f". {CUT}" if cut else left[at])
        left = left[at + 1 :]
    return "".join(f"{line}\n" for line in lines)


def main(folder: Path) -> None:
    """Run each block's commands once, in a folder of their own in `folder`, and mend the pages."""
    told: dict[tuple[str, ...], str] = {}
    for output in [output for page in PAGES for output in outputs(page)]:
        if output.commands not in told:
            place = folder / f"{output.page.stem}-{len(told)}"
            place.mkdir(parents=True)
            print(f"{output.page.name}: {'; '.join(output.commands)}", flush=True)
            placed(output.page, place)
            told[output.commands] = printed(output.commands, place)
            for name, figure in PICTURES.items():
                if (place / figure).is_file():
                    shutil.copy(place / figure, ROOT / "docs" / name)
        if not holds(output.text, told[output.commands]):
            new = retaken(output.text, told[output.commands])
            print(f"{output.page.name}: another output\n{new}", flush=True)
            whole = output.page.read_text(encoding="utf-8")
            output.page.write_text(
                whole.replace(f"```text\n{output.text}", f"```text\n{new}"), encoding="utf-8"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
