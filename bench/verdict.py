"""How often the verdict names a model that has no access, how often one that has, and what its
intervals hold.

    python bench/verdict.py --out rates                  # 100 matrices of each line at each of five sizes
    python bench/verdict.py --out rates --matrices 1000  # goes on from there
    python bench/verdict.py --out rates --plot docs      # tables and pictures of what was drawn, no drawing
    python bench/verdict.py --sizes 5x100 --only strong  # some sizes and lines
    python bench/verdict.py --smoke                      # that it runs

REAL_REPLIES=FOLDER names the real replies, where they are not beside the project; without them
their lines are left out. Scores are drawn, no model runs; truths.py and intervals.py in
tests/matrix hold what is true of them. Matrix k of a line and size is the same in every run, so
counts add up; they are kept in OUT/counts.json, where they are safe every few seconds. The tables
are printed at the end and written to OUT (`verdict_rates.md`, a part of docs/statistics.md, and
pictures).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")  # small products: more threads only wait for one another
sys.path.append(str(Path(__file__).parents[1] / "tests" / "matrix"))

import numpy as np  # noqa: E402
from intervals import MODELS, intervals  # noqa: E402
from rates_page import KINDS_AT, PARTS, write  # noqa: E402
from truths import Drawn, Line, cells, drawn, lines  # noqa: E402

from selfprobe.stats.claim import Claim, Verdict, ordered_claims  # noqa: E402
from selfprobe.stats.estimate import holm  # noqa: E402
from selfprobe.studies.matrix.advantage import double_centre, total_of  # noqa: E402
from selfprobe.studies.matrix.rows import model_rows  # noqa: E402
from selfprobe.studies.matrix.verdict import MatrixFacts, matrix_claims, named_models  # noqa: E402

ALPHA = 0.05
TOLD = 20
"""Matrices of a line of which, at `KINDS_AT`, the whole verdict is told; else whether it is
"supported": quicker.
"""
CHUNK = 20
FEW = 10
"""Items at which intervals are looked at too."""
STATED_FROM = 20
"""Matrices without access whose stated advantages' median is the one tried."""
OFF = (-0.02, 0.0, 0.02)
SIZES = ((5, 100), (8, 100), (5, 200), (5, 400), (11, 50))
"""Models and items."""
REAL_SIZES = tuple((models, items) for models in (5, 8) for items in (208, 400, 800))
"""Those of real words."""


@dataclass(frozen=True)
class Job:
    """What is counted: a line of one size."""

    part: str
    """Its table: a line's group, "detects" or "interval"."""
    name: str
    models: int
    items: int

    @property
    def key(self) -> str:
        return " | ".join((self.part, self.name, str(self.models), str(self.items)))


def jobs(sizes: Iterable[tuple[int, int]], real: Iterable[tuple[int, int]] = ()) -> list[Job]:
    """All of them, table by table, size by size; `real` are those of real words."""
    found: list[Job] = []
    sizes = list(sizes)
    for size, n in sizes:
        found += [Job(line.group, line.name, size, n) for line in lines(size) if not _real(line)]
        found += [
            Job("detects", f"{name}: {off:+.2f}", size, n)
            for name in _detectable(size)
            for off in OFF
        ]
    for size, n in real:
        found += [Job(line.group, line.name, size, n) for line in lines(size) if _real(line)]
    for n in sorted({FEW, *(n for _, n in sizes)}):
        found += [Job("interval", one.name, MODELS, n) for one in intervals()]
    return sorted(found, key=lambda job: PARTS.index(job.part))


def _real(line: Line) -> bool:
    return line.name.startswith("real words")


def drawn_once(job: Job, number: int, smoke: bool = False) -> Counter[str]:
    """What matrix `number` of a line adds to its counts."""
    rng = np.random.default_rng([0, number])
    if job.part == "interval":
        return _held(job, rng)
    if job.part == "detects":
        return _detected(job, number, smoke)
    line = _lines(job.models)[job.part, job.name]
    whole = number < TOLD and (job.models, job.items) in KINDS_AT and job.part in ("null", "access")
    claims = judged(line.draw(rng, job.items), rng, whole=whole)
    named = named_models(claims)
    counts = Counter(matrices=1)
    if whole:
        counts += Counter(told=1) + Counter([_verdict_of_matrix(claims)])
    if named:
        counts["named"] += 1
        counts["wrong"] += bool({int(name) for name in named} - line.knows)
    return counts


def _verdict_of_matrix(claims: Sequence[Claim]) -> str:
    """The answer at the head of the page: the first in the order Yes, Cannot tell, No."""
    return ordered_claims(claims)[0].verdict.value if claims else Verdict.CANNOT_TELL.value


def judged(given: Drawn, rng: np.random.Generator, *, whole: bool = True) -> tuple[Claim, ...]:
    """The claims of one matrix, alone in its report; none where nobody is named and not the `whole`
    is asked for.
    """
    x, specific, hits, stand_ins = given
    names = [str(i) for i in range(len(x))]
    rows = model_rows(
        names, x, specific, hits, tests=len(names), rng=rng, power=whole, stand_ins=stand_ins
    )
    p_holm = holm([row.p for row in rows]).tolist()
    if not whole and not min(p_holm, default=1) < ALPHA:
        return ()
    centred = double_centre(np.nanmean(specific.scores, axis=2))
    return matrix_claims(
        MatrixFacts(
            models=names,
            rows=rows,
            holes={},
            means=np.nanmean(x, axis=2),
            centred=centred,
            total=total_of(specific.scores),
        )
    )


@lru_cache
def _lines(size: int) -> dict[tuple[str, str], Line]:
    return {(line.group, line.name): line for line in lines(size)}


def _detectable(size: int) -> dict[str, tuple[str, list[float]]]:
    """Name → form, skill and predictability of the models; the middle one gets the advantage that
    is stated.
    """
    graded, equal = np.linspace(0.4, 0.8, size).tolist(), [0.6] * size
    shapes = {"equals": equal, "graded": graded}
    return {
        f"{form}, {name}": (form, shape)
        for form in ("product", "logistic")
        for name, shape in shapes.items()
    }


@lru_cache
def stated(name: str, size: int, items: int, matrices: int = STATED_FROM) -> float:
    """The advantage of the middle model that such a matrix says it would see in 80 %; NaN where it
    says none.
    """
    form, shape = _detectable(size)[name]
    found = []
    for number in range(matrices):
        rng = np.random.default_rng([1, number])
        x, specific, hits, _ = drawn(form, shape, shape)(rng, items)
        rows = model_rows([str(i) for i in range(size)], x, specific, hits, tests=size, rng=rng)
        found.append(rows[size // 2].power.detects)
    return float(np.median(np.nan_to_num(found, nan=np.inf)))


def _detected(job: Job, number: int, smoke: bool) -> Counter[str]:
    name, _, off = job.name.rpartition(": ")
    form, shape = _detectable(job.models)[name]
    at, i = stated(name, job.models, job.items, 2 if smoke else STATED_FROM), job.models // 2
    alone = float(cells(form, np.array(shape), np.array(shape))[i, i])
    access = (at + float(off)) / (1 - alone)
    if not access <= 1:
        return Counter(matrices=1, impossible=1)
    rng = np.random.default_rng([2, number])
    claims = judged(drawn(form, shape, shape, {i: access})(rng, job.items), rng, whole=False)
    thousandths = {"stated": round(1000 * at)} if number == 0 else {}
    return Counter(matrices=1, named=str(i) in named_models(claims), **thousandths)


def _held(job: Job, rng: np.random.Generator) -> Counter[str]:
    one = next(one for one in intervals() if one.name == job.name)
    found = Counter(matrices=1)
    for _ in range(one.at_once):
        estimate, truth = one.draw(rng, job.items)
        known = bool(np.isfinite(estimate.low))
        held = estimate.low - 1e-12 <= truth <= estimate.high + 1e-12
        found.update(intervals=int(known), named=int(held), undefined=int(not known))
    return found


def run(
    todo: list[Job], matrices: int, folder: Path, pool: Executor | None, smoke: bool
) -> dict[str, dict[str, int]]:
    """Counts of all jobs up to `matrices`, from those that the folder holds on; a hundred of each
    come first.
    """
    file = folder / "counts.json"
    counts = _kept(file)
    left = sum(max(matrices - counts.get(job.key, {}).get("matrices", 0), 0) for job in todo)
    start, done = time.monotonic(), 0
    for upto in dict.fromkeys((min(TOLD, matrices), matrices)):
        for job in todo:
            while (first := counts.get(job.key, {}).get("matrices", 0)) < upto:
                numbers = range(first, min(first + CHUNK, upto))
                each: Callable[..., Iterable[Counter[str]]] = pool.map if pool else map
                found = each(drawn_once, [job] * len(numbers), numbers, [smoke] * len(numbers))
                counts[job.key] = dict(sum(found, Counter(counts.get(job.key, {}))))
                _save(counts, file)
                done += len(numbers)
                _progress(job, done, left, time.monotonic() - start)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return counts


def _kept(file: Path) -> dict[str, dict[str, int]]:
    if not file.exists():
        return {}
    try:
        return {str(key): dict(value) for key, value in json.loads(file.read_text()).items()}
    except (ValueError, AttributeError, TypeError) as error:
        sys.exit(
            f"{file} holds no counts of this script ({error}): move it away, or name another --out"
        )


def _save(counts: dict[str, dict[str, int]], file: Path) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps(counts, indent=0))
    part.replace(file)


def _progress(job: Job, done: int, left: int, seconds: float) -> None:
    rest = seconds / done * (left - done) / 60
    text = f"{done:,} of {left:,} matrices, {rest:,.0f} minutes to go: {job.models} models, {job.items} items, {job.name}"
    if sys.stderr.isatty():
        print(f"\r{text[:118]:118}", end="", file=sys.stderr, flush=True)
    elif done == left or not done % 1000:
        print(text, file=sys.stderr, flush=True)


def _sizes(text: str) -> list[tuple[int, int]]:
    """From "5x100,8x100"."""
    try:
        found = [
            (int(models), int(items))
            for models, items in (part.split("x") for part in text.split(","))
        ]
    except ValueError:
        found = []
    if not found or min(models for models, _ in found) < 3 or min(items for _, items in found) < 2:
        raise argparse.ArgumentTypeError(
            f"expected sizes like 5x100,8x100, of 3 models and 2 items or more, got {text!r}"
        )
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--matrices", type=int, default=100, help="of each line and size (default 100)"
    )
    parser.add_argument(
        "--sizes",
        type=_sizes,
        help="models x items; of real words too (default: those of the page)",
    )
    parser.add_argument("--only", default="", help="the lines whose name holds this")
    parser.add_argument(
        "--out", type=Path, help="folder of the counts, to go on later (default: they are not kept)"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--plot",
        type=Path,
        help="draw nothing: tables and pictures of what OUT holds, to this folder",
    )
    parser.add_argument(
        "--smoke", action="store_true", help="two matrices of 4 models and 50 items a line"
    )
    given = parser.parse_args(words)
    if given.matrices < 1 or given.processes < 1:
        parser.error("--matrices and --processes must be 1 or more")
    if given.plot:
        if not given.out or not (given.out / "counts.json").exists():
            parser.error(
                "--plot needs --out with a folder that holds counts.json, from an earlier run"
            )
        print(write(_kept(given.out / "counts.json"), given.plot), end="")
        return
    matrices, sizes = (2, [(4, 50)]) if given.smoke else (given.matrices, given.sizes)
    todo = [job for job in jobs(sizes or SIZES, sizes or REAL_SIZES) if given.only in job.name]
    if not todo:
        parser.error(f"no line's name holds {given.only!r}")
    pool = ProcessPoolExecutor(given.processes) if given.processes > 1 else None
    with tempfile.TemporaryDirectory() as passing, pool or nullcontext():
        folder = given.out or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        print(write(run(todo, matrices, folder, pool, given.smoke), folder), end="")


if __name__ == "__main__":
    main()
