"""Makes a folder of finished pages: `make gallery`, some minutes on two cores, without a key.

A page a wing, from simulated models whose truth is known, and SmolLM2-135M where weights are
needed; index.html leads to all of them. Nothing of it is committed. `python examples/gallery.py OUT
NAME …` makes some of them.
"""

import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from markupsafe import Markup

from selfprobe.errors import InputError
from selfprobe.page import Column, Page, Section, Table, write

HERE = Path(__file__).parent
STUDY = (
    "selfprobe awareness run --grader 'planted/g?specificity=.9' --limit 40 --yes --display none"
    " --models 'planted/notices?awareness=.85&reasons=1&leaning=.4&voiced=.8,planted/tosses?coin=1'"
)
EFFORT = "inspect eval selfprobe/ethical_dilemma --model planted/ada --limit 20 --display none"

PAGES: dict[str, tuple[str, list[str]]] = {
    "matrix": (
        "Five simulated models predict each other: two know themselves",
        [f"selfprobe report {HERE / 'logs'} --out OUT"],
    ),
    "effort": (
        "A simulated model that knows more of its dilemmas at more effort",
        [
            f"{EFFORT} -T effort=low -M access=.3 --log-dir logs/low",
            f"{EFFORT} -T effort=medium -M access=.6 --log-dir logs/medium",
            f"{EFFORT} -T effort=high -M access=.9 --log-dir logs/high",
            "selfprobe report logs --out OUT",
        ],
    ),
    "awareness": (
        "Five methods ask whether a conversation is an evaluation: one subject notices, one tosses a coin",
        [f"{STUDY} --third --placebo --log-dir logs", "selfprobe report logs --out OUT"],
    ),
    "features": (
        "What in the prompts gives them away, in the subject's own words",
        [
            f"{STUDY} --methods features --log-dir logs",
            "selfprobe awareness features logs --clusters 1 --grader planted/g --out OUT --yes",
        ],
    ),
    "probes": (
        "What SmolLM2-135M knows of 112 pairs before it speaks",
        ["selfprobe probe run --model smollm2 --datasets ours --seeds 2 --out OUT"],
    ),
}


def main(out: Path, *names: str) -> None:
    """Make the pages, and the one that leads to them.

    Raises:
        InputError: No such page.
    """
    unknown_names = set(names) - set(PAGES)
    if unknown_names:
        raise InputError(
            f"there is no page {', '.join(sorted(unknown_names))}; there are {', '.join(PAGES)}"
        )

    rows: list[dict[str, str]] = []
    for name in names or PAGES:
        start_seconds = time.monotonic()
        summary, commands = PAGES[name]
        print(f"{name}: {summary}", flush=True)
        run_commands([command.replace("OUT", str(out / name)) for command in commands])

        page_file = next((out / name).rglob("index.html"))
        link = page_file.relative_to(out).as_posix()
        size_mb = page_file.stat().st_size / 1e6
        spent_seconds = time.monotonic() - start_seconds
        print(f"{name}: {page_file} ({size_mb:.1f} MB, {spent_seconds:.0f} s)", flush=True)
        rows.append({"page": Markup('<a href="{}">{}</a>').format(link, name), "summary": summary})

    columns = (Column("page", "page"), Column("what it shows", "summary"))
    gallery_page = Page(
        "gallery",
        "Finished pages, made by make gallery.",
        [Section("Pages", [Table(rows, columns)])],
    )
    print(write(gallery_page, str(out)))


def run_commands(commands: list[str]) -> None:
    """Run the commands of this environment in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            program, *arguments = shlex.split(command)
            program_path = str(Path(sys.executable).with_name(program))
            subprocess.run([program_path, *arguments], cwd=folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gallery").absolute(), *sys.argv[2:])
