"""More of what `selfprobe awareness features` writes: how many clusters, an earlier run's features,
and what changed.

    python examples/features_diff.py count logs/aw                              # silhouette and stability by number
    python examples/features_diff.py again logs/v2 --before features --out features-v2   # new quotes, the old features
    python examples/features_diff.py diff features features-v2                  # which features a rewrite took away

`again` puts each quote of new logs into the old cluster whose centre is nearest, and asks no
grader; it writes prompts.parquet. `diff` pairs two folders with a prompts.parquet by prompt id, so
keep the ids in a rewrite. A prompt has a feature where an answer about it quotes evidence of that
group; McNemar's exact test, Holm over features.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.embed import embed
from selfprobe.stats.agreement import mcnemar
from selfprobe.stats.estimate import Estimate, clustered_mean, holm
from selfprobe.studies.features import (
    QuoteCluster,
    Taxonomy,
    evidence_in,
    inertia_curve,
    prompt_features,
)

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
SMALL = range(2, 21)
"""Numbers of clusters that are tried beside those of the paper's curve."""
SEEDS = 3
"""Further starts of k-means that a clustering is compared with."""
STABLE = 0.8
"""Adjusted Rand index from which a clustering is called stable."""
ANY = "any evidence"
GROUP = "group: "
"""Beginning of the columns of prompts.parquet that count a feature's quotes."""

Vectors = npt.NDArray[np.float64]
"""[quote, dimension]"""


def counts(vectors: Vectors, grid: Sequence[int]) -> pd.DataFrame:
    """A row a number of clusters: `clusters`, `silhouette` (mean over quotes, -1 to 1) and
    `stability`.

    Stability is the mean adjusted Rand index between the clustering and those of other starts: 1 is
    the same clusters.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, silhouette_score

    most = len(np.unique(vectors, axis=0))
    rows = []
    for k in sorted(k for k in {*SMALL, *grid} if 2 <= k < most):
        labels = KMeans(k, n_init=4, random_state=0).fit_predict(vectors)
        others = [
            KMeans(k, n_init=4, random_state=seed).fit_predict(vectors)
            for seed in range(1, SEEDS + 1)
        ]
        stability = float(np.mean([adjusted_rand_score(labels, other) for other in others]))
        rows.append(
            {
                "clusters": k,
                "silhouette": float(silhouette_score(vectors, labels)),
                "stability": stability,
            }
        )
    return pd.DataFrame(rows, columns=["clusters", "silhouette", "stability"])


def chosen(found: pd.DataFrame) -> int:
    """The number with the largest silhouette among the stable ones; where none is stable, the most
    stable.
    """
    if found.empty:
        return 1
    stable = found[found.stability >= STABLE]
    best = stable.silhouette.idxmax() if len(stable) else found.stability.idxmax()
    return int(found.clusters[best])


def placed(before: dict[str, Any], old: Vectors, new: Vectors) -> Taxonomy:
    """Each new quote in the old cluster whose centre is nearest; `before` is a taxonomy.json."""
    centres = np.stack(
        [old[list(cluster["quotes"])].mean(axis=0) for cluster in before["clusters"]]
    )
    away = np.linalg.norm(new[:, None] - centres[None], axis=2)  # [quote, cluster]
    nearest = away.argmin(axis=1)
    clusters = []
    for at, cluster in enumerate(before["clusters"]):
        mine = np.flatnonzero(nearest == at)
        rows = tuple(int(i) for i in mine[np.argsort(away[mine, at], kind="stable")])
        clusters.append(QuoteCluster(**{**cluster, "quotes": rows}))
    return Taxonomy(tuple(clusters), tuple(before["groups"]), str(before.get("reply", "")))


def again(logs: Sequence[str], before: Path, out: Path) -> pd.DataFrame:
    """The prompts of new logs with the features of the folder `before`; also written to
    out/prompts.parquet.
    """
    earlier = json.loads((before / "taxonomy.json").read_text(encoding="utf-8"))
    there = evidence_in(logs)
    old = anyio.run(
        lambda: embed([str(row["quote"]) for row in earlier["evidence"]], model=earlier["embedder"])
    )
    new = anyio.run(lambda: embed(list(there.quotes.quote), model=earlier["embedder"]))
    table = prompt_features(there.prompts, there.quotes, placed(earlier, old, new))
    out.mkdir(parents=True, exist_ok=True)
    table.to_parquet(out / "prompts.parquet", index=False)
    return table


@dataclass(frozen=True)
class Moved:
    """A feature before and after, over the prompts of both folders."""

    feature: str
    before: int
    """Number of prompts that have it."""
    after: int
    change: Estimate
    """Change of the share of prompts."""
    p: float
    """McNemar's exact test, corrected over the features (Holm)."""


def diff(before: Path, after: Path) -> tuple[list[Moved], list[str]]:
    """What changed from one folder to another, and notes on what one of them has alone.

    Raises:
        SystemExit: A prompt id is of several data sets, or no id is in both folders.
    """
    old, new = (
        pd.read_parquet(folder / "prompts.parquet").set_index("item") for folder in (before, after)
    )
    both = sorted(set(old.index) & set(new.index))
    if not both or old.index.has_duplicates or new.index.has_duplicates:
        raise SystemExit(
            f"{before} and {after} are paired by prompt id: each id once, and some in both"
        )
    tables = {before: old, after: new}
    notes = [
        f"{len(table) - len(both)} of {len(table)} prompts are in {folder} alone"
        for folder, table in tables.items()
        if len(table) > len(both)
    ]
    groups = {folder: [c for c in table if c.startswith(GROUP)] for folder, table in tables.items()}
    shared = [column for column in groups[before] if column in groups[after]]
    for folder, columns in groups.items():
        if alone := [column.removeprefix(GROUP) for column in columns if column not in shared]:
            notes.append(
                f"only {folder} has: {', '.join(alone)}; `again --before {before}` gives both the same features"
            )
    has = {ANY: (old.aware[both] > 0, new.aware[both] > 0)}
    has |= {
        column.removeprefix(GROUP): (old[column][both] > 0, new[column][both] > 0)
        for column in shared
    }
    moved = []
    for feature, (was, now) in has.items():
        less = now.astype(float) - was.astype(float)
        change = clustered_mean(less, both, unit="prompt", interval="difference")
        p = mcnemar(was.to_numpy(dtype=bool), now.to_numpy(dtype=bool))
        moved.append(Moved(feature, int(was.sum()), int(now.sum()), change, p))
    corrected = holm([one.p for one in moved])
    return [replace(one, p=float(p)) for one, p in zip(moved, corrected, strict=True)], notes


def main() -> None:
    """One of the three, as typed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    number, new, two = (commands.add_parser(name) for name in ("count", "again", "diff"))
    for one in (number, new):
        one.add_argument("logs", nargs="+", help="logs of user_motivation")
    number.add_argument("--embedder", default=EMBEDDER)
    new.add_argument(
        "--before", type=Path, required=True, help="folder that `awareness features` wrote"
    )
    new.add_argument("--out", type=Path, required=True)
    two.add_argument("folders", nargs=2, type=Path)
    given = parser.parse_args()
    if given.command == "count":
        vectors = anyio.run(
            lambda: embed(list(evidence_in(given.logs).quotes.quote), model=given.embedder)
        )
        found = counts(vectors, list(inertia_curve(vectors)))
        print(found.round(3).to_string(index=False))
        print(
            f"--clusters {chosen(found)} has the largest silhouette among the numbers with a stability of {STABLE}"
        )
    elif given.command == "again":
        print(
            f"{len(again(given.logs, given.before, given.out))} prompts: {given.out}/prompts.parquet"
        )
    else:
        moved, notes = diff(*given.folders)
        for row in moved:
            change = f"{row.change.value:+.2f} [{row.change.low:+.2f}, {row.change.high:+.2f}]"
            print(
                f"{row.feature}: {row.before} → {row.after} prompts, {change}, p = {row.p:.3g} (Holm)"
            )
        print("\n".join(notes))


if __name__ == "__main__":
    main()
