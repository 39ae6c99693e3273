"""How often `selfprobe check --baseline` says "worse" of a model that did not change, and how often
of one that did.

    python bench/gate.py                 # 1,000 pairs a line, some minutes
    python bench/gate.py --out docs/gate_rates.md; python docs/parts.py gate docs/gate_rates.md   # into the page
    python bench/gate.py --nights        # how often one baseline has an alarm in 30 or 200 nights, and what lowers that
    python bench/gate.py --nights --out nights.md; python docs/parts.py nights nights.md
    python bench/gate.py --smoke         # that it runs; the rates mean nothing

Scores are drawn, no model runs. Each item has a chance of its own to be right, in both runs the
same; with a change all chances fall so far that the mean falls by the declared size (.05). Every
line is drawn with and without.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import numpy as np  # noqa: E402
from scipy import special  # noqa: E402

from selfprobe.studies.check_numbers import BaselineRun, Pair, changes_of  # noqa: E402

SMALLEST = 0.05
PAIRS = 1000
Floats = np.ndarray


@dataclass(frozen=True)
class Line:
    """A kind of pair."""

    name: str
    items: int
    mean: float = 0.6
    spread: float = 2.0
    """a + b of the items' beta distribution; small is items that are nearly always right or wrong.
    """
    keys: int = 3
    epochs: int = 1
    cluster: int = 1
    """Items that share one chance."""
    large: int = 0
    """Items of each of the first two clusters, where these are larger."""
    shock: float = 0.0
    """How far (sd) a cluster's chance moves from run to run."""
    score: str = "right"
    """"right" (0 or 1), "alike" (in [0, 1]), "wide" (any number)."""
    guess: float = 0.0
    """Share of cells at which the most frequent truth is right: then the skill is compared, and
    falls by .05.
    """
    missing: float = 0.0
    """Share of values that are unscored by chance, before and after."""
    hard_fail: float = 0.0
    """After, share of the items that are unscored: the hardest."""
    tasks: int = 1


LINES = (
    Line("3 items", 3),
    Line("10 items", 10),
    Line("30 items", 30),
    Line("100 items", 100),
    Line("208 items, one key", 208, keys=1),
    Line("208 items, three keys", 208),
    Line("208 items that differ little", 208, spread=50),
    Line("208 items, nearly the same in every run", 208, spread=0.2),
    Line("near 1: mean .97", 208, mean=0.97),
    Line("near 0: mean .06", 208, mean=0.06),
    Line("five epochs", 100, epochs=5),
    Line("clusters of eight", 208, cluster=8),
    Line("six clusters of 20", 120, cluster=20),
    Line("40 clusters of 20", 800, cluster=20),
    Line(
        "two clusters of 60, 28 of three, each moving together",
        204,
        keys=1,
        cluster=3,
        large=60,
        shock=0.15,
    ),
    Line("likeness in [0, 1]", 208, score="alike", keys=1),
    Line("any number", 208, score="wide", keys=1),
    Line("skill over the most frequent truth", 208, guess=0.3),
    Line("a tenth unscored by chance", 208, missing=0.1),
    Line("ten tasks at once", 100, tasks=10, keys=1),
    Line("900 items, one key", 900, keys=1),
    Line("the hardest fifth unscored after", 208, hard_fail=0.2),
)


def drawn(line: Line, rng: np.random.Generator, fall: float) -> list[Pair]:
    """Runs before and after, one pair a task."""
    return [_pair(line, rng, fall, f"task{number}") for number in range(line.tasks)]


def _pair(line: Line, rng: np.random.Generator, fall: float, task: str) -> Pair:
    of = np.arange(line.items) // line.cluster
    if line.large:
        of = np.r_[np.repeat([0, 1], line.large), 2 + of[: line.items - 2 * line.large]]
    groups = int(of.max()) + 1
    chance = rng.beta(line.mean * line.spread, (1 - line.mean) * line.spread, (groups, line.keys))[
        of
    ]
    after = _lowered(chance, fall)
    names = [f"i{number}" for number in range(line.items)]
    hardest = set(np.argsort(chance.mean(axis=1))[: round(line.hard_fail * line.items)].tolist())
    guessed = (rng.random((line.items, line.keys)) < line.guess).astype(float)
    runs = []
    for number, chances in enumerate((chance, after)):
        if line.shock:
            chances = np.clip(chances + line.shock * rng.standard_normal((groups, 1))[of], 0, 1)
        values = _scores(line, chances, rng)  # [item, key, epoch]
        lost = rng.random(values.shape) < line.missing
        if number:
            lost[sorted(hardest)] = True
        items = {
            name: {
                f"k{k}": [
                    "refusal" if lost[i, k, e] else float(values[i, k, e])
                    for e in range(line.epochs)
                ]
                for k in range(line.keys)
            }
            for i, name in enumerate(names)
        }
        blind = {
            name: {f"k{k}": float(guessed[i, k]) for k in range(line.keys)}
            for i, name in enumerate(names)
        }
        clusters = {name: f"c{of[i]}" for i, name in enumerate(names)} if line.cluster > 1 else {}
        known = (task, "m", "m", "1", "0", {}, {}, "", "", [], {}, "score", {}, items)
        runs.append(BaselineRun(*known, blind=blind if line.guess else {}, clusters=clusters))
    return runs[0], runs[1]


def _lowered(chance: Floats, fall: float) -> Floats:
    """All chances in one proportion, so that their mean falls by `fall`."""
    return chance * max(0.0, 1 - fall / chance.mean())


def _scores(line: Line, chance: Floats, rng: np.random.Generator) -> Floats:
    shape = (*chance.shape, line.epochs)
    wide = np.repeat(chance[:, :, None], line.epochs, axis=2)
    if line.score == "right":
        return np.asarray(rng.random(shape) < wide, dtype=float)
    if line.score == "alike":
        inside = np.clip(wide, 1e-3, 1 - 1e-3)
        return rng.beta(8 * inside, 8 * (1 - inside))
    return wide + 0.3 * rng.standard_t(4, shape)


@dataclass(frozen=True)
class Rates:
    """Of one line."""

    verdicts: Counter[str]
    """The score's, of the first task."""
    any_worse: int
    """Pairs of which any row of any task is worse."""
    good: int
    """Pairs with status 0 although --strict."""
    power: float
    """Stated chance of being found, mean over pairs."""
    needed: float
    """Items stated as needed, median."""


def rates(line: Line, fall: float, pairs: int) -> Rates:
    """What the gate says of so many pairs."""
    verdicts, any_worse, good, power, needed = Counter[str](), 0, 0, [], []
    for number in range(pairs):
        rows = changes_of(
            drawn(line, np.random.default_rng([number, round(1000 * fall)]), fall),
            smallest=SMALLEST,
        )
        verdicts[rows[0].verdict] += 1
        any_worse += any(row.verdict == "worse" for row in rows)
        good += all(row.verdict in ("better", "unchanged", "no worse") for row in rows)
        power.append(rows[0].power)
        needed.append(rows[0].needed or np.nan)
    return Rates(verdicts, any_worse, good, float(np.nanmean(power)), float(np.nanmedian(needed)))


HEADINGS = (
    "pairs", "no change: worse", "better", "good", "fell by .05: worse", "stated", "good", "items needed",
)  # fmt: skip


def table(pairs: int, say: Callable[[str], None]) -> list[str]:
    """A row a line."""
    found = ["|" + "|".join(HEADINGS) + "|", "|---" * len(HEADINGS) + "|"]
    for line in found:
        say(line)
    for line in LINES:
        same, fell = rates(line, 0.0, pairs), rates(line, SMALLEST * (1 - line.guess), pairs)
        cells = (
            line.name, f"{same.any_worse / pairs:.3f}", f"{same.verdicts['better'] / pairs:.3f}",
            f"{same.good / pairs:.3f}",
            f"{fell.verdicts['worse'] / pairs:.3f}", f"{fell.power:.2f}", f"{fell.good / pairs:.3f}",
            f"{fell.needed:,.0f}",
        )  # fmt: skip
        found.append("|" + "|".join(cells) + "|")
        say(found[-1])
    return found


NIGHTS = 200
BASELINES = 1000
SHORT = 30
"""Number of nights of the first columns."""
NIGHT = Line("a night", 100)
BASELINE_EPOCHS = (1, 2, 5, 10)
RULES = (
    "each run that is worse",
    "a run that is worse, and so is a second one of that night",
    "two nights in a row",
    "worse than each of two baselines",
)
"""Rules by which a night has an alarm."""


def item_means(chances: Floats, epochs: int, nights: int, rng: np.random.Generator) -> Floats:
    """Mean score of each item in each night's run, `[night, item]`, for `chances  # [item, key]`."""
    counts = rng.binomial(epochs, np.broadcast_to(chances, (nights, *chances.shape)))
    return np.asarray(counts.mean(axis=2) / epochs)


def is_worse(before: Floats, after: Floats) -> Floats:
    """Whether each night's run is "worse" than a baseline; what `changes_of` says where ten items
    moved or more.

    Args:
        before: Mean score of each item of the baseline, `[item]`.
        after: The same of each night, `[night, item]`.
    """
    differences = after - before
    count = differences.shape[1]
    means = differences.mean(axis=1)
    half_widths = (
        -special.stdtrit(count - 1, 0.025) * differences.std(axis=1, ddof=1) / np.sqrt(count)
    )
    is_within = (means - half_widths > -SMALLEST) & (means + half_widths < SMALLEST)
    return np.asarray((means + half_widths < 0) & ~is_within)


def alarms(epochs: int, seed: int, *, fall: float = 0.0, nights: int = NIGHTS) -> Floats:
    """Whether each rule has an alarm in each night of one baseline, `[rule, night]`."""
    rng = np.random.default_rng([epochs, seed])
    a = NIGHT.mean * NIGHT.spread
    b = (1 - NIGHT.mean) * NIGHT.spread
    chances = rng.beta(a, b, (NIGHT.items, NIGHT.keys))
    baseline, other_baseline = item_means(chances, epochs, 2, rng)
    now = _lowered(chances, fall)
    first_runs = item_means(now, 1, nights, rng)
    second_runs = item_means(now, 1, nights, rng)
    is_first_worse = is_worse(baseline, first_runs)
    in_a_row = is_first_worse & np.append(False, is_first_worse[:-1])
    return np.array(
        [
            is_first_worse,
            is_first_worse & is_worse(baseline, second_runs),
            in_a_row,
            is_first_worse & is_worse(other_baseline, first_runs),
        ]
    )


NIGHT_HEADINGS = (
    "epochs of the baseline", "alarm", "a night", "within 30 nights", "within 200",
    "nights of the worst baseline in 20", "fell by .05: a night", "by .10",
)  # fmt: skip


def nights_table(baselines: int) -> list[str]:
    """A row for each number of epochs of the baseline and each rule."""
    rows = ["|" + "|".join(NIGHT_HEADINGS) + "|", "|---" * len(NIGHT_HEADINGS) + "|"]
    for epochs in BASELINE_EPOCHS:
        unchanged = np.array(
            [alarms(epochs, seed) for seed in range(baselines)]
        )  # [baseline, rule, night]
        found = [
            np.array([alarms(epochs, seed, fall=fall, nights=SHORT) for seed in range(baselines)])
            for fall in (SMALLEST, 2 * SMALLEST)
        ]
        for number, rule in enumerate(RULES):
            nights = unchanged[:, number]
            shares = [
                nights.mean(),
                nights[:, :SHORT].any(axis=1).mean(),
                nights.any(axis=1).mean(),
                np.quantile(nights.mean(axis=1), 0.95),
                *(fallen[:, number, 1:].mean() for fallen in found),
            ]
            cells = [str(epochs), rule, *(f"{100 * share:.1f} %" for share in shares)]
            rows.append("|" + "|".join(cells) + "|")
    return rows


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--out", type=Path, help="Markdown to write.")
    parser.add_argument("--smoke", action="store_true", help="Four pairs a line.")
    parser.add_argument(
        "--nights", action="store_true", help="Alarms of one baseline over many nights."
    )
    given = parser.parse_args(arguments)
    if given.nights:
        found = nights_table(4 if given.smoke else BASELINES)
        print("\n".join(found))
    else:
        found = table(4 if given.smoke else given.pairs, lambda line: print(line, flush=True))
    if given.out:
        given.out.write_text("\n".join(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
