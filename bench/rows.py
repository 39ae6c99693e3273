"""What does it take to read a data file of a million rows? CPU seconds and memory, beside Python's
own reading of it.

Each reading runs in a process of its own; the floor of a kind of file is a loop of `json.loads` (or
`csv.reader`) over its lines, which keeps nothing. The studies only plan (`--dry-run`), with a limit
of 20.

    python bench/rows.py              # a million rows: ten minutes, 1 GB of disk
    python bench/rows.py --rows 50000
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORDS = "garden river invoice kettle harbour memory bicycle violin ticket window forest lemon copper engine".split()

JSON_FLOOR = "import json, sys\nfor line in open(sys.argv[1]):\n    json.loads(line)"
CSV_FLOOR = "import csv, sys\nfor row in csv.reader(open(sys.argv[1])):\n    pass"
ITEMS = "import sys\nfrom selfprobe.data import load\nload(sys.argv[1], 'question').first(20)"
CONVERSATIONS = (
    "import sys\nfrom selfprobe.data.conversations import conversations\n"
    "conversations(sys.argv[1]).first(20)"
)
PAIRS = "import sys\nfrom selfprobe.data.public_pairs import load_pairs\nload_pairs(sys.argv[1], limit=20)"
STUDY = (
    "import sys\nfrom selfprobe.cli import main\n"
    "sys.argv = ['selfprobe', *sys.argv[2].split(), sys.argv[1], '--limit', '20', '--dry-run']\nmain()"
)
AWARENESS = "awareness run --models planted/a --methods binary --dataset"
CUES = "awareness cues --models planted/a"


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    cpu_seconds: float
    megabytes: int
    """Largest resident memory."""


def row_of(number: int, rng: random.Random) -> dict[str, Any]:
    """A row of about 200 bytes, which every kind of reading takes."""
    text = f"{number}: {' '.join(rng.choices(WORDS, k=12))}?"
    label = "evaluation" if number % 2 else "deployment"
    return {"id": f"r{number}", "question": text, "label": label, "source": f"s{number % 7}"}


def written(folder: Path, count: int) -> dict[str, Path]:
    """Kind of file → its place."""
    rng = random.Random(0)
    places = {
        kind: folder / f"{kind}.{kind.partition('.')[2] or 'jsonl'}"
        for kind in ("rows", "rows.csv", "pairs")
    }
    with places["rows"].open("w") as rows, places["rows.csv"].open("w", newline="") as table:
        sheet = csv.DictWriter(table, list(row_of(0, rng)))
        sheet.writeheader()
        for number in range(count):
            row = row_of(number, rng)
            rows.write(json.dumps(row) + "\n")
            sheet.writerow(row)
    with places["pairs"].open("w") as pairs:
        for number in range(count):
            row = row_of(number, rng)
            texts = {
                "text_1": row["question"][::-1],
                "text_2": row["source"],
                "label": 1 + number % 2,
            }
            pairs.write(json.dumps({"id": row["id"], "question": row["question"]} | texts) + "\n")
    return places


def measured(program: str, place: Path, *further: str) -> Cost:
    """The costs of a program that gets the place as its first argument.

    Raises:
        CalledProcessError: It failed.
    """
    around = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    command = [sys.executable, "-c", around, program, str(place), *further]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu_seconds, kilobytes = process.stdout.split()
    return Cost(float(cpu_seconds), int(kilobytes) // 1000)


def readings(places: dict[str, Path]) -> Iterator[tuple[str, str, Cost]]:
    """Name and kind of file of each reading, with its costs; a kind's floor first."""
    yield "floor: json.loads", "rows", measured(JSON_FLOOR, places["rows"])
    yield "items", "rows", measured(ITEMS, places["rows"])
    yield "conversations", "rows", measured(CONVERSATIONS, places["rows"])
    yield "plan of awareness run", "rows", measured(STUDY, places["rows"], AWARENESS)
    yield "plan of awareness cues", "rows", measured(STUDY, places["rows"], CUES)
    yield "floor: csv.reader", "rows.csv", measured(CSV_FLOOR, places["rows.csv"])
    yield "items", "rows.csv", measured(ITEMS, places["rows.csv"])
    yield "floor: json.loads", "pairs", measured(JSON_FLOOR, places["pairs"])
    yield "20 pairs", "pairs", measured(PAIRS, places["pairs"])


def main() -> None:
    """Print a line for each reading."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    count = parser.parse_args().rows
    floors = dict[str, Cost]()
    with tempfile.TemporaryDirectory() as folder:
        places = written(Path(folder), count)
        sizes = {kind: place.stat().st_size // 1_000_000 for kind, place in places.items()}
        print(f"{count:,} rows")
        print(
            f"{'file':10} {'reading':24} {'CPU s':>7} {'× floor':>8} {'MB':>6} {'MB of file':>11}"
        )
        for name, kind, cost in readings(places):
            floor = floors.setdefault(kind, cost)
            ratio = cost.cpu_seconds / floor.cpu_seconds
            print(
                f"{kind:10} {name:24} {cost.cpu_seconds:7.1f} {ratio:8.1f} {cost.megabytes:6} "
                f"{sizes[kind]:11}"
            )


if __name__ == "__main__":
    main()
