"""How often the verdict names a model without access, how often one with it, and what its intervals
hold.

    python bench/verdict.py --out rates                  # 100 matrices of each line and size
    python bench/verdict.py --out rates --matrices 1000  # goes on from there
    python bench/verdict.py --sizes 5x100 --only strong  # some sizes and lines
    python bench/verdict.py --smoke                      # that it runs

    python docs/parts.py verdict rates/verdict_rates.md

REAL_REPLIES=FOLDER names the real replies, where they are not beside the project; without them
their lines are left out. Scores are drawn, no model runs; truths.py and intervals.py in
tests/matrix hold what is true of them. Matrix k of a line and size is the same in every run, so
counts add up; they are kept in OUT/counts.json. The table is OUT/verdict_rates.md, a part of
docs/statistics.md. Each matrix is alone in its report, so Holm's correction is over its models.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")  # small products: more threads only wait for one another
TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(TESTS / "matrix"), str(TESTS / "bank")]

import numpy as np  # noqa: E402
from intervals import MODELS, intervals  # noqa: E402
from lines import Rate  # noqa: E402
from truths import Drawn, Line, lines  # noqa: E402

from selfprobe.stats.claim import Claim, Verdict  # noqa: E402
from selfprobe.studies.matrix.advantage import double_centre, total_of  # noqa: E402
from selfprobe.studies.matrix.rows import model_rows  # noqa: E402
from selfprobe.studies.matrix.verdict import MatrixFacts, matrix_claims  # noqa: E402

CHUNK = 20
"""Number of matrices that one process draws in one go."""
SIZES = ((5, 100), (5, 400), (8, 100))
"""Models and items."""
REAL_SIZES = ((5, 208), (5, 800), (8, 800))
"""Those of real words."""
INTERVAL_ITEMS = (10, 100, 400)
"""Numbers of items at which intervals are drawn."""
TITLES = {
    "null": "Nobody has access; to be named in at most 5 %",
    "real": "Real words of another family; to be named in at most 5 %",
    "open": "Nobody has access, and the verdict does not claim to see it",
    "learner": "Nobody has access, beside an informed observer that learns a share of the habit",
    "access": "Somebody has access",
    "sibling": "Real words of the same family, which stand for access",
    "interval": "95 % intervals that hold the truth, by items",
}
"""Group of lines → title of its rows."""


@dataclass(frozen=True)
class Job:
    """A line of one size."""

    group: str
    name: str
    models: int
    items: int

    @property
    def key(self) -> str:
        """Its name among the counts."""
        return " | ".join((self.group, self.name, str(self.models), str(self.items)))

    @property
    def size(self) -> str:
        """Models and items, as a column is named."""
        return str(self.items) if self.group == "interval" else f"{self.models} × {self.items}"


def jobs(sizes: Iterable[tuple[int, int]], real_sizes: Iterable[tuple[int, int]]) -> list[Job]:
    """All lines, group by group and size by size."""
    job_list: list[Job] = []
    for models, items in sizes:
        for line in lines(models):
            if not _has_real_words(line):
                job_list.append(Job(line.group, line.name, models, items))
    for models, items in real_sizes:
        for line in lines(models):
            if _has_real_words(line):
                job_list.append(Job(line.group, line.name, models, items))
    for items in INTERVAL_ITEMS:
        for case in intervals():
            job_list.append(Job("interval", case.name, MODELS, items))
    groups = list(TITLES)
    return sorted(job_list, key=lambda job: groups.index(job.group))


def _has_real_words(line: Line) -> bool:
    return line.group in ("real", "sibling")


@lru_cache
def _line_of(group: str, name: str, models: int) -> Line:
    return next(line for line in lines(models) if (line.group, line.name) == (group, name))


def count_matrix(job: Job, number: int) -> Counter[str]:
    """What matrix `number` of a line adds to its counts."""
    rng = np.random.default_rng([0, number])
    if job.group == "interval":
        return _count_intervals(job, rng)
    line = _line_of(job.group, job.name, job.models)
    claims = claims_of(line.draw(rng, job.items), rng)
    named_indices = {int(claim.subject) for claim in claims if claim.verdict is Verdict.YES}
    wrong_indices = named_indices - line.knows
    return Counter(draws=1, hits=int(bool(named_indices)), wrong=int(bool(wrong_indices)))


def claims_of(drawn: Drawn, rng: np.random.Generator) -> tuple[Claim, ...]:
    """The claims of one matrix, alone in its report."""
    scores, specific, hits, stand_ins = drawn
    names = [str(model) for model in range(len(scores))]
    rows = model_rows(
        names, scores, specific, hits, tests=len(names), rng=rng, power=False, stand_ins=stand_ins
    )
    facts = MatrixFacts(
        models=names,
        rows=rows,
        holes={},
        means=np.nanmean(scores, axis=2),
        centred=double_centre(np.nanmean(specific.scores, axis=2)),
        total=total_of(specific.scores),
    )
    return matrix_claims(facts)


def _count_intervals(job: Job, rng: np.random.Generator) -> Counter[str]:
    """How many intervals are there, and how many hold the truth."""
    case = next(case for case in intervals() if case.name == job.name)
    counts: Counter[str] = Counter()
    for _ in range(case.at_once):
        estimate, truth = case.draw(rng, job.items)
        is_defined = bool(np.isfinite(estimate.low))
        holds = estimate.low - 1e-12 <= truth <= estimate.high + 1e-12
        counts.update(draws=int(is_defined), hits=int(holds))
    return counts


def count_chunk(job: Job, numbers: Sequence[int]) -> Counter[str]:
    """Counts of some matrices of a line."""
    counts: Counter[str] = Counter()
    for number in numbers:
        counts.update(count_matrix(job, number))
    return counts


Counts = dict[str, dict[str, int]]


def draw(job_list: Sequence[Job], matrices: int, file: Path, processes: int) -> Counts:
    """Counts of all jobs up to `matrices`, from those that the file holds on."""
    counts_by_key = read_counts(file)
    with ProcessPoolExecutor(processes) as pool:
        for job in job_list:
            counts = Counter(counts_by_key.get(job.key, {}))
            chunks = list[range]()
            for chunk_start in range(counts["matrices"], matrices, CHUNK):
                chunks.append(range(chunk_start, min(chunk_start + CHUNK, matrices)))
            counts_of_chunks = pool.map(count_chunk, [job] * len(chunks), chunks)
            for chunk, chunk_counts in zip(chunks, counts_of_chunks, strict=True):
                counts.update(chunk_counts)
                counts["matrices"] += len(chunk)
                counts_by_key[job.key] = dict(counts)
                file.write_text(json.dumps(counts_by_key, indent=0))
            print(f"{job.key}: {rate_text(counts)}", file=sys.stderr, flush=True)
    return counts_by_key


def read_counts(file: Path) -> Counts:
    """The counts of a file; none where it is not there."""
    if not file.exists():
        return {}
    try:
        return {str(key): dict(value) for key, value in json.loads(file.read_text()).items()}
    except (ValueError, AttributeError, TypeError) as error:
        sys.exit(
            f"{file} holds no counts of this script ({error}): move it away, or name another --out"
        )


def rate_text(counts: Counter[str]) -> str:
    """Share in percent with its interval and number; how many name a model without access too."""
    if not counts["draws"]:
        return "–"
    text = f"{Rate(counts['hits'], counts['draws'])}/{counts['draws']:,}"
    if 0 < counts["wrong"] < counts["hits"]:
        text += f", {counts['wrong']} wrong"
    return text


def table(counts_by_key: Counts) -> str:
    """The counts as Markdown, a table a group."""
    rates_by_group: dict[str, dict[str, dict[str, str]]] = {}
    totals: dict[str, Counter[str]] = {}
    for key, counts in counts_by_key.items():
        group, name, models, items = key.split(" | ")
        totals.setdefault(group, Counter()).update(counts)
        size = Job(group, name, int(models), int(items)).size
        label = name.removeprefix(f"{group}, ")
        rate_by_size = rates_by_group.setdefault(group, {}).setdefault(label, {})
        rate_by_size[size] = rate_text(Counter(counts))

    table_lines = list[str]()
    for group, title in TITLES.items():
        if group not in rates_by_group:
            continue
        rows = rates_by_group[group]
        sizes = list(dict.fromkeys(size for rate_by_size in rows.values() for size in rate_by_size))
        if group in ("null", "real"):
            total = totals[group]
            share = Rate(total["hits"], total["draws"])
            table_lines += [
                f"Named in {total['hits']:,} of {total['draws']:,} matrices: {share} %.",
                "",
            ]
        table_lines += [f"|{title}|{'|'.join(sizes)}|", "|---" * (len(sizes) + 1) + "|"]
        for label, rate_by_size in rows.items():
            rates = [rate_by_size.get(size, "–") for size in sizes]
            table_lines.append(f"|{label}|{'|'.join(rates)}|")
        table_lines.append("")
    return "\n".join(table_lines)


def _sizes(text: str) -> list[tuple[int, int]]:
    """From "5x100,8x100"."""
    error = argparse.ArgumentTypeError(
        f"expected sizes like 5x100,8x100, of 3 models and 2 items or more, got {text!r}"
    )
    sizes = list[tuple[int, int]]()
    for size_text in text.split(","):
        try:
            models, items = map(int, size_text.split("x"))
        except ValueError:
            raise error from None
        if models < 3 or items < 2:
            raise error
        sizes.append((models, items))
    return sizes


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--matrices", type=int, default=100, help="of each line and size")
    parser.add_argument("--sizes", type=_sizes, help="models x items; of real words too")
    parser.add_argument("--only", default="", help="the lines whose name holds this")
    parser.add_argument("--out", type=Path, default=Path("rates"), help="folder of the counts")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="two matrices of 4 models a line")
    options = parser.parse_args(words)
    if options.matrices < 1 or options.processes < 1:
        parser.error("--matrices and --processes must be 1 or more")

    sizes = [(4, 50)] if options.smoke else options.sizes
    all_jobs = jobs(sizes or SIZES, sizes or REAL_SIZES)
    job_list = [job for job in all_jobs if options.only in job.name]
    if not job_list:
        parser.error(f"no line's name holds {options.only!r}")
    if options.smoke:
        for job in job_list:
            print(job.key, rate_text(count_chunk(job, range(2))))
        return

    options.out.mkdir(parents=True, exist_ok=True)
    counts_file = options.out / "counts.json"
    counts_by_key = draw(job_list, options.matrices, counts_file, options.processes)
    text = table(counts_by_key)
    (options.out / "verdict_rates.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
