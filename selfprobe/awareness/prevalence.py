"""A rate that a judge counted, put right by rows that people labelled.

Read are, in any order, one file with labels (.csv or .jsonl with a column `aware`: yes, no, or empty) and what the
judge said: the logs that a sheet of `sample-labels` was drawn from; a folder of Scout scans; a table with a verdict
(`flagged`, `noticed` or `value`), such as tables/transcripts.csv of `awareness scan`. A table may hold both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from selfprobe.arguments import locate
from selfprobe.awareness.findings import findings
from selfprobe.awareness.label_sheet import COLUMN
from selfprobe.awareness.validate import YES_NO
from selfprobe.data import Row, load
from selfprobe.errors import InputError
from selfprobe.page import percent
from selfprobe.stats.estimate import Estimate
from selfprobe.stats.prevalence import Prevalence, Share, labelled_elsewhere, labelled_within
from selfprobe.stats.spread import effective

LABEL = "aware"
VERDICTS = ("flagged", "noticed", "value")
"""Columns with what the judge said, the first that is there counts."""
KEYS = (COLUMN, "transcript_id", "uuid", "sample", "item", "id")
"""Columns that tell rows apart, the first that all tables have counts."""
SCAN = "eval_awareness.parquet"
EXPECTED = (
    f"expected one file with a column `{LABEL}` (yes, no or empty), and what the judge said of its rows: awareness "
    f"logs for a sheet of sample-labels, a folder of Scout scans, or a column {', '.join(VERDICTS)}"
)


@dataclass(frozen=True)
class Judged:
    """Rows that the judge saw, by key."""

    said: Mapping[str, bool]
    clusters: Mapping[str, str]
    """What rows come from, where several come from one conversation."""
    unread: int = 0
    """Rows for which it has no verdict."""


@dataclass(frozen=True)
class Corrected:
    """A rate, and what it rests on."""

    result: Prevalence
    rows: int
    labelled: int
    elsewhere: bool
    """Whether the labelled rows are others than those that the rate is of."""
    unread: int

    def told(self) -> Iterator[str]:
        """Lines for a terminal."""
        rate, better = self.result.flagged, self.result.corrected
        sentence = f"flagged {_percent(rate)}, corrected for the judge's errors {_percent(better)}"
        yield f"{sentence}: {better.reason}" if np.isnan(better.value) else sentence
        if self.result.clipped:
            yield self.result.clipped
        yield (
            f"sensitivity {percent(self.result.sensitivity)}, specificity {percent(self.result.specificity)}, from "
            f"{self.labelled} labelled rows {'of another set' if self.elsewhere else f'of {self.rows}'}"
        )
        if self.unread:
            yield f"without a verdict of the judge, left out: {self.unread}"
        if not self.elsewhere:
            yield (
                "The labelled rows must be drawn by chance among the flagged, and among the others, as sample-labels "
                "does. The interval (95 %) holds the errors of the rate and of the judge."
            )
        else:
            yield "The judge must err here as it did on the labelled rows. The interval (95 %) holds both errors."


def corrected(paths: Sequence[str]) -> Corrected:
    """The corrected rate of what lies under these paths.

    Raises:
        InputError: There is no file with labels or several, no verdicts, no common key, a label that is neither yes nor
            no, or nothing is labelled.
    """
    tables = {path: load(path, ()).rows for path in paths if path.endswith((".csv", ".jsonl"))}
    columns = [path for path, rows in tables.items() if any(LABEL in row for row in rows)]
    labelled = [path for path in columns if any(str(row.get(LABEL) or "").strip() for row in tables[path])] or columns
    if len(labelled) != 1:
        raise InputError(f"{len(labelled)} files with labels in {', '.join(paths)}; {EXPECTED}")
    rows = tables.pop(labelled[0])
    others = [path for path in paths if path != labelled[0]]
    own = _verdict_column(rows)
    if not others:
        if own is None:
            needs = "give the logs that it was drawn from too" if COLUMN in rows[0] else EXPECTED
            raise InputError(f"{labelled[0]} does not say what the judge said; {needs}")
        return _within(_of_rows(rows, own, _keys(rows)), _labels(rows, labelled[0], _keys(rows)), len(rows))
    key, judged = _judged(others, tables, rows)
    names = [str(row.get(key)) for row in rows] if key else _keys(rows)
    labels = _labels(rows, labelled[0], names)
    if labels.keys() & judged.said.keys():
        return _within(judged, labels, len(judged.said))
    if own is None:
        raise InputError(
            f"none of the {len(labels)} labelled rows is among what the judge saw in {', '.join(others)} (by `{key}`), "
            f"and {labelled[0]} does not say what it said of them: {', '.join(VERDICTS)}"
        )
    return _elsewhere(judged, _of_rows(rows, own, names), labels)


def _judged(others: Sequence[str], tables: Mapping[str, list[Row]], labelled: Sequence[Row]) -> tuple[str, Judged]:
    """What the judge said, and the column that tells its rows apart."""
    logs = [path for path in others if path not in tables and not _scans(path)]
    if logs:
        if len(logs) < len(others) or COLUMN not in labelled[0]:
            raise InputError(f"logs go with a sheet of sample-labels (column {COLUMN}) alone; {EXPECTED}")
        seen = list(findings(logs))
        said = {found.text_id: found.aware for found in seen if found.aware is not None}
        clusters = {found.text_id: f"{found.log} {found.item} {found.epoch}" for found in seen}
        return COLUMN, Judged(said, clusters, sum(found.aware is None for found in seen))
    rows = [row for path in others for row in (tables[path] if path in tables else _rows_of_scans(path))]
    column = _verdict_column(rows)
    key = next((name for name in KEYS if _tells_apart(name, rows) and _tells_apart(name, labelled)), None)
    if column and key is None and _verdict_column(labelled):
        return "", _of_rows(rows, column, [f"judged {name}" for name in _keys(rows)])
    if column is None or key is None:
        lacks = (
            f"has none of {', '.join(VERDICTS)}"
            if column is None
            else f"and the labels share none of {', '.join(KEYS)}"
        )
        raise InputError(f"{', '.join(others)} {lacks}; {EXPECTED}")
    return key, _of_rows(rows, column, [str(row.get(key)) for row in rows])


def _scans(path: str) -> list[Path]:
    """Scout's results of our scanner below a folder, the oldest first."""
    place = Path(locate(path))
    return sorted(place.rglob(SCAN), key=lambda file: file.stat().st_mtime) if place.is_dir() else []


def _rows_of_scans(path: str) -> list[Row]:
    """Of a transcript in several scans the newest."""
    found = pd.concat(
        pd.read_parquet(file, columns=["transcript_id", "value"]).drop_duplicates("transcript_id")
        for file in _scans(path)
    ).drop_duplicates("transcript_id", keep="last")
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


def _verdict_column(rows: Sequence[Row]) -> str | None:
    return next((name for name in VERDICTS if rows and name in rows[0]), None)


def _tells_apart(name: str, rows: Sequence[Row]) -> bool:
    """Whether a table has this column; an `id` that `load` gave, since there is none, only numbers the rows."""
    values = [str(row.get(name)) for row in rows if row.get(name) is not None]
    numbered = name == "id" and all(value.startswith("line-") for value in values)
    return len(values) == len(rows) and not numbered


def _keys(rows: Sequence[Row]) -> list[str]:
    """A name for each row of a table that stands alone."""
    return [str(number) for number in range(len(rows))]


def _of_rows(rows: Sequence[Row], column: str, keys: Sequence[str]) -> Judged:
    said = {key: _bool(row.get(column)) for key, row in zip(keys, rows, strict=True)}
    if len(said) < len(rows):
        raise InputError(f"{len(rows) - len(said)} rows have the key of another; each row must have one of its own")
    known = {key: value for key, value in said.items() if value is not None}
    return Judged(known, {key: key for key in known}, len(said) - len(known))


def _bool(value: object) -> bool | None:
    """Yes or no in any spelling; what is neither is no verdict."""
    if isinstance(value, float) and value in (0.0, 1.0):
        return bool(value)
    return YES_NO.get(str(value).strip().lower())


def _labels(rows: Sequence[Row], path: str, keys: Sequence[str]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for number, (key, row) in enumerate(zip(keys, rows, strict=True), start=1):
        given = row.get(LABEL)
        if given is None or str(given).strip() in ("", "nan"):
            continue
        said = _bool(given)
        if said is None:
            raise InputError(f"{path}, row {number}: {LABEL} must be yes, no or empty, got {given!r}")
        if key in found:
            raise InputError(f"{path}, row {number}: a second label for {key!r}")
        found[key] = said
    if not found:
        raise InputError(f"{path}: none of its {len(rows)} rows has a label yet; write yes or no under `{LABEL}`")
    return found


def _within(judged: Judged, labels: Mapping[str, bool], rows: int) -> Corrected:
    said = judged.said
    of = {
        side: [labels[key] for key, value in said.items() if value is side and key in labels] for side in (True, False)
    }
    if not of[True] and not of[False]:
        raise InputError("none of the labelled rows has a verdict of the judge")
    flagged, others = (Share(sum(of[side]), len(of[side])) for side in (True, False))
    names = [judged.clusters[key] for key in said]
    scores, inverse = np.array(list(said.values()), dtype=float), np.unique(names, return_inverse=True)[1]
    n = int(inverse.max()) + 1
    independent = effective(scores, inverse) if 1 < n < len(said) else None
    share = Share(int(scores.sum()), len(scores))
    result = labelled_within(share, flagged, others, independent=independent, unit="row")
    return Corrected(result, rows, flagged.of + others.of, False, judged.unread)


def _elsewhere(judged: Judged, checked: Judged, labels: Mapping[str, bool]) -> Corrected:
    both = {key: (labels[key], checked.said[key]) for key in labels if key in checked.said}
    found = [said for aware, said in both.values() if aware]
    left = [not said for aware, said in both.values() if not aware]
    shares = (
        Share(sum(judged.said.values()), len(judged.said)),
        Share(sum(found), len(found)),
        Share(sum(left), len(left)),
    )
    return Corrected(labelled_elsewhere(*shares, unit="row"), len(judged.said), len(both), True, judged.unread)


def _percent(estimate: Estimate) -> str:
    if np.isnan(estimate.low):
        return percent(estimate.value)
    return f"{percent(estimate.value)} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
