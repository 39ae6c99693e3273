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
from functools import partial
from importlib import import_module
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
BANK = Path(__file__).parents[1] / "tests" / "bank"
sys.path.append(str(BANK.parent.parent))  # worlds that other tests use too
sys.path.insert(0, str(BANK))  # before this folder, which has files of the same names

from lines import Rate, count_verdicts  # noqa: E402

from selfprobe.stats.claim import Verdict  # noqa: E402

CHUNK_DRAWS = 50
"""Number of draws that one process makes in one go."""
Counts = dict[str, dict[str, int]]


def studies() -> list[str]:
    """Studies with a file in the bank."""
    file_names = [path.stem for path in BANK.glob("*.py")]
    return sorted(name for name in file_names if not name.startswith(("lines", "test_")))


def counted_chunk(study: str, name: str, first_seed: int, draws: int) -> dict[str, int]:
    """Answers of one line over some seeds, by their words."""
    line = import_module(study).LINES[name]
    counts = count_verdicts(line, draws, first_seed=first_seed)
    return {verdict.value: count for verdict, count in counts.items()}


def draw(
    study_names: list[str], draws: int, counts_file: Path, processes: int
) -> dict[str, Counts]:
    """Counts of all lines of these studies, from those that are in the file on."""
    counts_by_study: dict[str, Counts] = {}
    if counts_file.is_file():
        counts_by_study = json.loads(counts_file.read_text())
    with ProcessPoolExecutor(processes) as pool:
        for study in study_names:
            counts_by_line = counts_by_study.setdefault(study, {})
            for line_name in import_module(study).LINES:
                counts = counts_by_line.setdefault(line_name, {})
                first_seeds = range(sum(counts.values()), draws, CHUNK_DRAWS)
                chunk_sizes = [min(CHUNK_DRAWS, draws - seed) for seed in first_seeds]
                count_line = partial(counted_chunk, study, line_name)
                for chunk in pool.map(count_line, first_seeds, chunk_sizes):
                    for verdict_word, count in chunk.items():
                        counts[verdict_word] = counts.get(verdict_word, 0) + count
                counts_file.write_text(json.dumps(counts_by_study, indent=1))
                print(f"{study}: {line_name}: {rate_of(counts)}", flush=True)
    return counts_by_study


def rate_of(counts: dict[str, int]) -> Rate:
    """Rate of Yes."""
    return Rate(counts.get(Verdict.YES.value, 0), sum(counts.values()))


def table(counts_by_study: dict[str, Counts]) -> str:
    """The counts as Markdown."""
    rows = ["|study|world|should be|Yes, % [95 %]|draws|", "|---|---|---|---|---|"]
    for study, counts_by_line in counts_by_study.items():
        for line_name, counts in counts_by_line.items():
            line = import_module(study).LINES.get(line_name)
            if line is None:
                continue
            right_answer = "Yes" if line.is_true else "no Yes"
            rate = rate_of(counts)
            rows.append(f"|{study}|{line_name}|{right_answer}|{rate}|{rate.draws}|")
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
    arguments = parser.parse_args()
    if arguments.smoke:
        for study in studies():
            line_name = next(iter(import_module(study).LINES))
            print(study, line_name, counted_chunk(study, line_name, 0, 2))
        return

    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    counts_by_study = draw(
        arguments.study or studies(), arguments.draws, out / "claims.json", arguments.processes
    )
    rates_table = table(counts_by_study)
    (out / "claims_rates.md").write_text(rates_table, encoding="utf-8")
    print(rates_table)


if __name__ == "__main__":
    main()
