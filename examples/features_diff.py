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
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.embed import embed
from selfprobe.stats.agreement import mcnemar
from selfprobe.stats.estimate import Estimate, clustered_mean, holm
from selfprobe.studies.features import QuoteCluster, Taxonomy, inertia_curve, prompt_features
from selfprobe.study.evidence import evidence_in

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
SMALL_CLUSTER_COUNTS = range(2, 21)
"""Numbers of clusters that are tried beside those of the paper's curve."""
FURTHER_STARTS = 3
"""Further starts of k-means that a clustering is compared with."""
MIN_STABILITY = 0.8
"""Adjusted Rand index from which a clustering is called stable."""
ANY_EVIDENCE = "any evidence"
GROUP_PREFIX = "group: "
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

    distinct_count = len(np.unique(vectors, axis=0))
    rows: list[dict[str, float]] = []
    for cluster_count in sorted({*SMALL_CLUSTER_COUNTS, *grid}):
        if not 2 <= cluster_count < distinct_count:
            continue
        labels = KMeans(cluster_count, n_init=4, random_state=0).fit_predict(vectors)
        rand_indices: list[float] = []
        for seed in range(1, FURTHER_STARTS + 1):
            other_labels = KMeans(cluster_count, n_init=4, random_state=seed).fit_predict(vectors)
            rand_indices.append(adjusted_rand_score(labels, other_labels))
        rows.append(
            {
                "clusters": cluster_count,
                "silhouette": float(silhouette_score(vectors, labels)),
                "stability": float(np.mean(rand_indices)),
            }
        )
    return pd.DataFrame(rows, columns=["clusters", "silhouette", "stability"])


def best_cluster_count(clusterings: pd.DataFrame) -> int:
    """The number with the largest silhouette among the stable ones; where none is stable, the most
    stable.
    """
    if clusterings.empty:
        return 1
    stable = clusterings[clusterings.stability >= MIN_STABILITY]
    best_row = clusterings.stability.idxmax()
    if len(stable):
        best_row = stable.silhouette.idxmax()
    return int(clusterings.clusters[best_row])


def assign_quotes(taxonomy: dict[str, Any], old: Vectors, new: Vectors) -> Taxonomy:
    """Each new quote in the old cluster whose centre is nearest; `taxonomy` is a taxonomy.json."""
    old_clusters = taxonomy["clusters"]
    centres = np.stack([old[list(cluster["quotes"])].mean(axis=0) for cluster in old_clusters])
    distances = np.linalg.norm(new[:, None] - centres[None], axis=2)  # [quote, cluster]
    nearest_cluster = distances.argmin(axis=1)

    clusters: list[QuoteCluster] = []
    for cluster_index, cluster in enumerate(old_clusters):
        quotes = np.flatnonzero(nearest_cluster == cluster_index)
        order = np.argsort(distances[quotes, cluster_index], kind="stable")
        sorted_quotes = tuple(int(quote) for quote in quotes[order])
        clusters.append(QuoteCluster(**{**cluster, "quotes": sorted_quotes}))
    return Taxonomy(tuple(clusters), tuple(taxonomy["groups"]), str(taxonomy.get("reply", "")))


def again(logs: Sequence[str], before: Path, out: Path) -> pd.DataFrame:
    """The prompts of new logs with the features of the folder `before`; also written to
    out/prompts.parquet.
    """
    taxonomy = json.loads((before / "taxonomy.json").read_text(encoding="utf-8"))
    evidence = evidence_in(logs)
    old_quotes = [str(row["quote"]) for row in taxonomy["evidence"]]
    old_vectors = _embedded(old_quotes, taxonomy["embedder"])
    new_vectors = _embedded(list(evidence.quotes.quote), taxonomy["embedder"])

    new_taxonomy = assign_quotes(taxonomy, old_vectors, new_vectors)
    table = prompt_features(evidence.prompts, evidence.quotes, new_taxonomy)
    out.mkdir(parents=True, exist_ok=True)
    table.to_parquet(out / "prompts.parquet", index=False)
    return table


def _embedded(quotes: list[str], embedder: str) -> Vectors:
    return anyio.run(partial(embed, quotes, model=embedder))


@dataclass(frozen=True)
class FeatureChange:
    """A feature before and after, over the prompts of both folders."""

    feature: str
    before: int
    """Number of prompts that have it."""
    after: int
    change: Estimate
    """Change of the share of prompts."""
    p_value: float
    """McNemar's exact test, corrected over the features (Holm)."""


def diff(before: Path, after: Path) -> tuple[list[FeatureChange], list[str]]:
    """What changed from one folder to another, and notes on what one of them has alone.

    Raises:
        SystemExit: A prompt id is of several data sets, or no id is in both folders.
    """
    old = pd.read_parquet(before / "prompts.parquet").set_index("item")
    new = pd.read_parquet(after / "prompts.parquet").set_index("item")
    items = sorted(set(old.index) & set(new.index))
    if not items or old.index.has_duplicates or new.index.has_duplicates:
        raise SystemExit(
            f"{before} and {after} are paired by prompt id: each id once, and some in both"
        )

    notes: list[str] = []
    for folder, table in ((before, old), (after, new)):
        unpaired_count = len(table) - len(items)
        if unpaired_count:
            notes.append(f"{unpaired_count} of {len(table)} prompts are in {folder} alone")

    old_groups = _group_columns(old)
    new_groups = _group_columns(new)
    for folder, columns, other_columns in (
        (before, old_groups, new_groups),
        (after, new_groups, old_groups),
    ):
        unshared = [
            column.removeprefix(GROUP_PREFIX) for column in columns if column not in other_columns
        ]
        if unshared:
            notes.append(
                f"only {folder} has: {', '.join(unshared)}; "
                f"`again --before {before}` gives both the same features"
            )

    changes = [_change(ANY_EVIDENCE, old.aware[items] > 0, new.aware[items] > 0)]
    for column in old_groups:
        if column in new_groups:
            feature = column.removeprefix(GROUP_PREFIX)
            changes.append(_change(feature, old[column][items] > 0, new[column][items] > 0))

    corrected = holm([change.p_value for change in changes])
    corrected_changes = [
        replace(change, p_value=float(p_value))
        for change, p_value in zip(changes, corrected, strict=True)
    ]
    return corrected_changes, notes


def _group_columns(table: pd.DataFrame) -> list[str]:
    return [column for column in table if column.startswith(GROUP_PREFIX)]


def _change(feature: str, had: pd.Series, has: pd.Series) -> FeatureChange:
    """Change of one feature, with its uncorrected p."""
    differences = has.astype(float) - had.astype(float)
    return FeatureChange(
        feature,
        before=int(had.sum()),
        after=int(has.sum()),
        change=clustered_mean(differences, list(had.index), unit="prompt", interval="difference"),
        p_value=mcnemar(had.to_numpy(dtype=bool), has.to_numpy(dtype=bool)),
    )


def main() -> None:
    """One of the three, as typed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    count_command = commands.add_parser("count")
    again_command = commands.add_parser("again")
    diff_command = commands.add_parser("diff")
    for command in (count_command, again_command):
        command.add_argument("logs", nargs="+", help="logs of user_motivation")
    count_command.add_argument("--embedder", default=EMBEDDER)
    again_command.add_argument(
        "--before", type=Path, required=True, help="folder that `awareness features` wrote"
    )
    again_command.add_argument("--out", type=Path, required=True)
    diff_command.add_argument("folders", nargs=2, type=Path)

    arguments = parser.parse_args()
    if arguments.command == "count":
        quotes = list(evidence_in(arguments.logs).quotes.quote)
        vectors = _embedded(quotes, arguments.embedder)
        clusterings = counts(vectors, list(inertia_curve(vectors)))
        print(clusterings.round(3).to_string(index=False))
        print(
            f"--clusters {best_cluster_count(clusterings)} has the largest silhouette among the "
            f"numbers with a stability of {MIN_STABILITY}"
        )
    elif arguments.command == "again":
        table = again(arguments.logs, arguments.before, arguments.out)
        print(f"{len(table)} prompts: {arguments.out}/prompts.parquet")
    else:
        changes, notes = diff(*arguments.folders)
        for row in changes:
            change = f"{row.change.value:+.2f} [{row.change.low:+.2f}, {row.change.high:+.2f}]"
            print(
                f"{row.feature}: {row.before} → {row.after} prompts, {change}, "
                f"p = {row.p_value:.3g} (Holm)"
            )
        print("\n".join(notes))


if __name__ == "__main__":
    main()
