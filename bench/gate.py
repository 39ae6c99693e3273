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

from selfprobe.studies.check_numbers import changes_of  # noqa: E402
from selfprobe.studies.check_pairs import BaselineRun, Pair  # noqa: E402

SMALLEST_CHANGE = 0.05
PAIR_COUNT = 1000
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
    cluster_of_item = _cluster_of_item(line)
    cluster_count = int(cluster_of_item.max()) + 1
    a = line.mean * line.spread
    b = (1 - line.mean) * line.spread
    chances = rng.beta(a, b, (cluster_count, line.keys))[cluster_of_item]  # [item, key]
    hardest_count = round(line.hard_fail * line.items)
    hardest_items = np.argsort(chances.mean(axis=1))[:hardest_count]
    is_mode_right = (rng.random((line.items, line.keys)) < line.guess).astype(float)

    names = [f"i{number}" for number in range(line.items)]
    baseline_scores: dict[str, dict[str, float]] = {}
    if line.guess:
        for item, name in enumerate(names):
            baseline_scores[name] = {
                f"k{key}": float(is_mode_right[item, key]) for key in range(line.keys)
            }
    clusters: dict[str, str] = {}
    if line.cluster > 1:
        clusters = {name: f"c{cluster_of_item[item]}" for item, name in enumerate(names)}

    runs: list[BaselineRun] = []
    for is_after, run_chances in ((False, chances), (True, _lowered(chances, fall))):
        if line.shock:
            shocks = rng.standard_normal((cluster_count, 1))[cluster_of_item]
            run_chances = np.clip(run_chances + line.shock * shocks, 0, 1)
        values = _scores(line, run_chances, rng)  # [item, key, epoch]
        is_unscored = rng.random(values.shape) < line.missing
        if is_after:
            is_unscored[hardest_items] = True
        items = {
            name: _values_by_key(values[item], is_unscored[item]) for item, name in enumerate(names)
        }
        description = (task, "m", "m", "1", "0", {}, {}, "", "", [], {}, "score", {}, items)
        runs.append(BaselineRun(*description, blind=baseline_scores, clusters=clusters))
    before, after = runs
    return before, after


def _cluster_of_item(line: Line) -> np.ndarray:
    clusters = np.arange(line.items) // line.cluster
    if not line.large:
        return clusters
    large_clusters = np.repeat([0, 1], line.large)
    further_clusters = 2 + clusters[: line.items - 2 * line.large]
    return np.r_[large_clusters, further_clusters]


def _values_by_key(values: Floats, is_unscored: np.ndarray) -> dict[str, list[float | str]]:
    """Each key's value in each epoch, or why it has none; both `[key, epoch]`."""
    values_by_key: dict[str, list[float | str]] = {}
    for key in range(len(values)):
        values_by_key[f"k{key}"] = [
            "refusal" if unscored else float(value)
            for value, unscored in zip(values[key], is_unscored[key], strict=True)
        ]
    return values_by_key


def _lowered(chance: Floats, fall: float) -> Floats:
    """All chances in one proportion, so that their mean falls by `fall`."""
    return chance * max(0.0, 1 - fall / chance.mean())


def _scores(line: Line, chances: Floats, rng: np.random.Generator) -> Floats:
    shape = (*chances.shape, line.epochs)
    epoch_chances = np.repeat(chances[:, :, None], line.epochs, axis=2)
    if line.score == "right":
        return np.asarray(rng.random(shape) < epoch_chances, dtype=float)
    if line.score == "alike":
        inner_chances = np.clip(epoch_chances, 1e-3, 1 - 1e-3)
        return rng.beta(8 * inner_chances, 8 * (1 - inner_chances))
    return epoch_chances + 0.3 * rng.standard_t(4, shape)


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


def rates(line: Line, fall: float, pair_count: int) -> Rates:
    """What the gate says of so many pairs."""
    verdicts: Counter[str] = Counter()
    worse_count = 0
    good_count = 0
    powers: list[float] = []
    needed_items: list[float] = []
    for seed in range(pair_count):
        rng = np.random.default_rng([seed, round(1000 * fall)])
        rows = changes_of(drawn(line, rng, fall), smallest=SMALLEST_CHANGE)
        verdicts[rows[0].verdict] += 1
        worse_count += any(row.verdict == "worse" for row in rows)
        good_count += all(row.verdict in ("better", "unchanged", "no worse") for row in rows)
        powers.append(rows[0].power)
        needed_items.append(rows[0].needed or np.nan)
    return Rates(
        verdicts,
        worse_count,
        good_count,
        power=float(np.nanmean(powers)),
        needed=float(np.nanmedian(needed_items)),
    )


HEADINGS = (
    "pairs", "no change: worse", "better", "good", "fell by .05: worse", "stated", "good", "items needed",
)  # fmt: skip


def table(pair_count: int, say: Callable[[str], None]) -> list[str]:
    """A row a line."""
    rows = ["|" + "|".join(HEADINGS) + "|", "|---" * len(HEADINGS) + "|"]
    for row in rows:
        say(row)
    for line in LINES:
        unchanged = rates(line, 0.0, pair_count)
        fallen = rates(line, SMALLEST_CHANGE * (1 - line.guess), pair_count)
        cells = (
            line.name,
            f"{unchanged.any_worse / pair_count:.3f}",
            f"{unchanged.verdicts['better'] / pair_count:.3f}",
            f"{unchanged.good / pair_count:.3f}",
            f"{fallen.verdicts['worse'] / pair_count:.3f}",
            f"{fallen.power:.2f}",
            f"{fallen.good / pair_count:.3f}",
            f"{fallen.needed:,.0f}",
        )
        rows.append("|" + "|".join(cells) + "|")
        say(rows[-1])
    return rows


NIGHTS = 200
BASELINE_COUNT = 1000
SHORT_NIGHTS = 30
"""Number of nights of the first columns."""
NIGHT = Line("a night", 100)
BASELINE_KINDS = ((1, 0.0), (2, 0.0), (5, 0.0), (10, 0.0), (1, 0.01), (1, 0.03), (10, 0.03))
"""Epochs of the baseline, and how far (sd) all chances move together from night to night: the
server's change of a day, not the model's.
"""
RULES = (
    "each run that is worse",
    "a run that is worse, and so is a second one of that night",
    "two nights in a row",
    "worse than each of two baselines",
)
"""Rules by which a night has an alarm."""


def item_means(chances: Floats, epochs: int, nights: int, rng: np.random.Generator) -> Floats:
    """Mean score of each item in each night's run, `[night, item]`, from `[night, item, key]`."""
    counts = rng.binomial(epochs, chances)
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
    is_within = (means - half_widths > -SMALLEST_CHANGE) & (means + half_widths < SMALLEST_CHANGE)
    return np.asarray((means + half_widths < 0) & ~is_within)


def alarms(
    epochs: int, seed: int, *, fall: float = 0.0, nights: int = NIGHTS, shift: float = 0.0
) -> Floats:
    """Whether each rule has an alarm in each night of one baseline, `[rule, night]`.

    Args:
        epochs: Epochs of the baseline.
        seed: Number of the baseline.
        fall: How far the mean chance fell since the baselines.
        nights: Number of nights.
        shift: How far (sd) all chances move together from night to night; each of the two baselines
            is of a night of its own, two runs of one night are not.
    """
    rng = np.random.default_rng([epochs, seed])
    a = NIGHT.mean * NIGHT.spread
    b = (1 - NIGHT.mean) * NIGHT.spread
    chances = rng.beta(a, b, (NIGHT.items, NIGHT.keys))
    shift_rng = np.random.default_rng([epochs, seed, 1])
    baseline_chances = _shifted(chances, shift * shift_rng.standard_normal(2))
    baseline, other_baseline = item_means(baseline_chances, epochs, 2, rng)
    night_chances = _shifted(_lowered(chances, fall), shift * shift_rng.standard_normal(nights))
    first_runs = item_means(night_chances, 1, nights, rng)
    second_runs = item_means(night_chances, 1, nights, rng)
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


def _shifted(chances: Floats, shifts: Floats) -> Floats:
    """The chances of each night, `[night, item, key]`."""
    return np.clip(chances + shifts[:, None, None], 0, 1)


NIGHT_HEADINGS = (
    "epochs of the baseline", "nights differ by (sd)", "alarm", "a night", "within 30 nights", "within 200",
    "nights of the worst baseline in 20", "fell by .05: a night", "by .10",
)  # fmt: skip


def nights_table(baseline_count: int) -> list[str]:
    """A row for each kind of baseline and each rule."""
    rows = ["|" + "|".join(NIGHT_HEADINGS) + "|", "|---" * len(NIGHT_HEADINGS) + "|"]
    for epochs, shift in BASELINE_KINDS:
        # each [baseline, rule, night]
        unchanged_alarms = np.array(
            [alarms(epochs, seed, shift=shift) for seed in range(baseline_count)]
        )
        small_fall_alarms = _alarms_after_fall(epochs, SMALLEST_CHANGE, shift, baseline_count)
        large_fall_alarms = _alarms_after_fall(epochs, 2 * SMALLEST_CHANGE, shift, baseline_count)
        for rule_index, rule in enumerate(RULES):
            rule_alarms = unchanged_alarms[:, rule_index]
            shares = [
                rule_alarms.mean(),
                rule_alarms[:, :SHORT_NIGHTS].any(axis=1).mean(),
                rule_alarms.any(axis=1).mean(),
                np.quantile(rule_alarms.mean(axis=1), 0.95),
                small_fall_alarms[:, rule_index, 1:].mean(),
                large_fall_alarms[:, rule_index, 1:].mean(),
            ]
            percentages = [f"{100 * share:.1f} %" for share in shares]
            rows.append("|" + "|".join([str(epochs), f"{shift:g}", rule, *percentages]) + "|")
    return rows


def _alarms_after_fall(epochs: int, fall: float, shift: float, baseline_count: int) -> Floats:
    baseline_alarms = [
        alarms(epochs, seed, fall=fall, nights=SHORT_NIGHTS, shift=shift)
        for seed in range(baseline_count)
    ]
    return np.array(baseline_alarms)


def main(argument_texts: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=PAIR_COUNT)
    parser.add_argument("--out", type=Path, help="Markdown to write.")
    parser.add_argument("--smoke", action="store_true", help="Four pairs a line.")
    parser.add_argument(
        "--nights", action="store_true", help="Alarms of one baseline over many nights."
    )
    arguments = parser.parse_args(argument_texts)
    if arguments.nights:
        rows = nights_table(4 if arguments.smoke else BASELINE_COUNT)
        print("\n".join(rows))
    else:
        pair_count = 4 if arguments.smoke else arguments.pairs
        rows = table(pair_count, lambda row: print(row, flush=True))
    if arguments.out:
        arguments.out.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
