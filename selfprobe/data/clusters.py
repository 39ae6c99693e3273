"""Which rows count as one in intervals, told where they are few."""

from collections import Counter
from collections.abc import Sequence

from selfprobe.stats.estimate import FEW

NAMED_CLUSTERS = 5


def few_clusters(clusters: Sequence[str], *, rows: str, unit: str, remedy: str) -> str:
    """Sentence that names the clusters of rows; "" where they are not few, or each holds one row.

    Args:
        clusters: Cluster of each row.
        rows: What the rows are: "conversations".
        unit: What a cluster is: "source".
        remedy: What to do about it, without a capital and a full stop.
    """
    counts = Counter(clusters)
    if not counts or len(counts) >= FEW or len(counts) == len(clusters):
        return ""
    named = [f"{name[:40]} ({count})" for name, count in counts.most_common(NAMED_CLUSTERS)]
    units = f"{len(counts)} {unit}s" if len(counts) > 1 else f"one {unit}"
    return (
        f"Intervals count the {len(clusters)} {rows} as {units}: {', '.join(named)}. So few "
        f"make them wide; {remedy}."
    )
