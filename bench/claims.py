"""How often each study answers Yes where nothing is there, and where something is: the bank of
nulls.

    python bench/claims.py --out rates                 # 400 draws of each line of every study
    python bench/claims.py --study turns --draws 1600  # one study
    python bench/claims.py --smoke                     # that it runs

    python docs/parts.py claims rates/claims_rates.md

The lines stand in tests/bank, a file a study; each makes the study's claim by the command's own
code. Counts are kept in OUT/claims.json, so a stopped run goes on; the table is
OUT/claims_rates.md, a part of docs/statistics.md.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
BANK = Path(__file__).parents[1] / "tests" / "bank"
sys.path.append(str(BANK.parent.parent))  # worlds that other tests use too
sys.path.insert(0, str(BANK))  # before this folder, which has files of the same names

from lines import Rate, count_verdicts  # noqa: E402

from selfprobe.stats.claim import Verdict  # noqa: E402

CHUNK = 50
"""Number of draws that one process makes in one go."""
Counts = dict[str, dict[str, int]]


def studies() -> list[str]:
    """Studies with a file in the bank."""
    return sorted(
        path.stem for path in BANK.glob("*.py") if not path.stem.startswith(("lines", "test_"))
    )


def counted_chunk(study: str, name: str, first_seed: int, draws: int) -> dict[str, int]:
    """Answers of one line over some seeds, by their words."""
    line = import_module(study).LINES[name]
    counts = count_verdicts(line, draws, first_seed=first_seed)
    return {verdict.value: count for verdict, count in counts.items()}


def draw(names: list[str], draws: int, place: Path, processes: int) -> dict[str, Counts]:
    """Counts of all lines of these studies, from those that are kept at `place` on."""
    kept: dict[str, Counts] = json.loads(place.read_text()) if place.is_file() else {}
    with ProcessPoolExecutor(processes) as pool:
        for study in names:
            lines = kept.setdefault(study, {})
            for name in import_module(study).LINES:
                counts = lines.setdefault(name, {})
                first = sum(counts.values())
                starts = range(first, draws, CHUNK)
                sizes = [min(CHUNK, draws - start) for start in starts]
                count = len(sizes)
                for chunk in pool.map(
                    counted_chunk, [study] * count, [name] * count, starts, sizes
                ):
                    for word, number in chunk.items():
                        counts[word] = counts.get(word, 0) + number
                place.write_text(json.dumps(kept, indent=1))
                print(f"{study}: {name}: {rate_of(counts)}", flush=True)
    return kept


def rate_of(counts: dict[str, int]) -> Rate:
    """Rate of Yes."""
    return Rate(counts.get(Verdict.YES.value, 0), sum(counts.values()))


def table(kept: dict[str, Counts]) -> str:
    """The counts as Markdown."""
    rows = ["|study|world|should be|Yes, % [95 %]|draws|", "|---|---|---|---|---|"]
    for study, lines in kept.items():
        for name, counts in lines.items():
            line = import_module(study).LINES.get(name)
            if line is None:
                continue
            wanted = "Yes" if line.is_true else "no Yes"
            rate = rate_of(counts)
            rows.append(f"|{study}|{name}|{wanted}|{rate}|{rate.draws}|")
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="rates")
    parser.add_argument("--study", action="append", choices=studies())
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    if given.smoke:
        for study in studies():
            name = next(iter(import_module(study).LINES))
            print(study, name, counted_chunk(study, name, 0, 2))
        return
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    kept = draw(given.study or studies(), given.draws, out / "claims.json", given.processes)
    (out / "claims_rates.md").write_text(table(kept), encoding="utf-8")
    print(table(kept))


if __name__ == "__main__":
    main()
