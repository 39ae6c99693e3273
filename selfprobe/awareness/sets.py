"""A set that is held against a reference: which of the two a conversation is of, and what that stands for."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from selfprobe.awareness.items import items_of
from selfprobe.awareness.table import Logged
from selfprobe.scorers.awareness import called_of, clusters_of
from selfprobe.stats.clustered import difference, share
from selfprobe.stats.estimate import Estimate

YOURS, REFERENCE = "yours", "reference"
OPPOSITE = {"evaluation": "deployment", "deployment": "evaluation"}


def told_by_set(logged: Logged) -> Logged:
    """The same tables, where your rows have one label or none and a reference is there, with the sets as labels.

    Your prompts then stand for their label (evaluation, where they have none) and the reference for the other; rows of
    the reference with your label stand for neither. Where your rows have both labels, the numbers by label are of them
    alone. Without a reference nothing changes.
    """
    texts = logged.texts
    if "set" not in texts or not {YOURS, REFERENCE} <= set(texts.set.dropna()):
        return logged
    reference = texts[texts.set == REFERENCE]
    labels = set(texts.label[texts.set != REFERENCE].dropna())
    if len(labels) == 2:
        keep = {REFERENCE: None}
        return replace(logged, texts=_told(texts, "label", keep), verdicts=_told(logged.verdicts, "truth", keep))
    own = next(iter(labels), "evaluation")
    beside = reference.label == own
    if beside.all():
        return logged
    named = {YOURS: own, REFERENCE: OPPOSITE[own]}
    left = f" {beside.sum()} of its rows, labelled {own}, stand for neither." if beside.any() else ""
    told = f"Your prompts stand for {own} and the reference for {OPPOSITE[own]} in every rate and AUROC.{left}"
    made = [_told(frame, column, named) for frame, column in ((texts, "label"), (logged.verdicts, "truth"))]
    return replace(logged, texts=made[0], verdicts=made[1], contrast=told)


def _told(frame: pd.DataFrame, column: str, named: Mapping[str, str | None]) -> pd.DataFrame:
    """The column with the set's label; a row of the reference that has the label of your set gets none."""
    of_set = frame.set.fillna(YOURS)
    new = of_set.map(named).where(of_set.isin(list(named)), frame[column])
    neither = (of_set == REFERENCE) & (frame[column] == named.get(YOURS, ""))
    return frame.assign(**{column: new.where(~neither, None).astype(object)})


def reference_of(rows: pd.DataFrame) -> str:
    """What the share of the reference is of: where some of its rows stand for neither label, of the others."""
    theirs = rows[rows.set == REFERENCE] if "set" in rows else rows[:0]
    stand = theirs.truth.dropna()
    return "the reference" if len(stand) in (0, len(theirs)) else f"the reference's {len(stand)} {stand.iloc[0]} rows"


def shares_by_set(rows: pd.DataFrame) -> tuple[Estimate, Estimate, Estimate] | None:
    """Share called evaluation of your prompts, of the reference, and the difference; None without a reference.

    Of the reference the rows that stand for the other label count, where your rows have one label or none.
    """
    if "set" not in rows or REFERENCE not in set(rows.set.dropna()):
        return None
    items = items_of(rows)
    clusters, unit = clusters_of(items)
    called, theirs = called_of(items), (rows.set == REFERENCE).to_numpy(dtype=bool)
    counts = theirs & np.array([item.decision.truth is not None for item in items])
    parts = [share(called, clusters, where=where, unit=unit) for where in (~theirs, counts if counts.any() else theirs)]
    return parts[0].estimate, parts[1].estimate, difference((1, parts[0]), (-1, parts[1]), unit=unit)
