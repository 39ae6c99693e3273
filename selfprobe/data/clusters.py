"""Which rows count as one in intervals, told where they are few."""

from collections import Counter
from collections.abc import Sequence

from selfprobe.stats.estimate import FEW_CLUSTERS

NAMED_CLUSTERS = 5
"""Number of clusters that the sentence names."""


def few_clusters(clusters: Sequence[str], *, rows: str, unit: str, remedy: str) -> str:
    """Sentence that names the clusters of rows; "" where they are not few, or each holds one row.

    Args:
        clusters: Cluster of each row.
        rows: What the rows are: "conversations".
        unit: What a cluster is: "source".
        remedy: What to do about it, without a capital and a full stop.
    """
    row_counts = Counter(clusters)
    has_one_row_each = len(row_counts) == len(clusters)
    if not row_counts or len(row_counts) >= FEW_CLUSTERS or has_one_row_each:
        return ""
    largest_clusters = [
        f"{name[:40]} ({row_count})" for name, row_count in row_counts.most_common(NAMED_CLUSTERS)
    ]
    cluster_count = f"{len(row_counts)} {unit}s" if len(row_counts) > 1 else f"one {unit}"
    return (
        f"Intervals count the {len(clusters)} {rows} as {cluster_count}: "
        f"{', '.join(largest_clusters)}. So few make them wide; {remedy}."
    )
