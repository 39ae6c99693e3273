"""Agreement of a grader with people, and the rate in the logs that follows from it.

It reads, in any order, one file with labels (.csv or .jsonl with a column `aware`: yes, no, or
empty) and what the grader said: logs, whose texts the labels name by `text_id` (a sheet of
--samples) or by item and key; a folder of Scout scans; a table with a verdict (`flagged`, `noticed`
or `value`), such as tables/transcripts.csv of `awareness scan`. One table may hold both.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from selfprobe.data import Row, load
from selfprobe.errors import InputError
from selfprobe.errors.arguments import locate
from selfprobe.page import percent, shown
from selfprobe.scorers.awareness_cues import cues_by_grader, joint_finding, texts_of
from selfprobe.solvers.converse import Perspective
from selfprobe.solvers.record import record_of
from selfprobe.stats.agreement import (
    DRIFT,
    Prevalence,
    Share,
    cohen_kappa,
    drifted,
    labelled_elsewhere,
    labelled_within,
)
from selfprobe.stats.estimate import Estimate, effective, undefined, wilson
from selfprobe.studies.awareness.runs import arm_runs


@dataclass(frozen=True)
class GradedText:
    """Verdict of the grader, or of most of a panel, on one text."""

    item: str
    key: str
    model: str
    perspective: str
    epoch: str
    text: str
    data: str
    """The data set's hash."""
    aware: bool | None
    """The verdict; None where the grader's reply could not be used."""
    log: str
    method: str

    @property
    def text_id(self) -> str:
        """Name that tells nothing of the text's model, item or label; equal in every log that holds
        the text.
        """
        digest = hashlib.sha256("\x1f".join(astuple(self)[:7]).encode()).hexdigest()
        return f"t{digest[:11]}"  # no spreadsheet takes it for a number


def graded_texts(logs: Sequence[str]) -> Iterator[GradedText]:
    """All texts that graders read in logs of user_motivation and reasoning_trace; placebo arms
    aside.

    Raises:
        NoLogs: There is no finished awareness log.
    """
    for arm, arm_run in arm_runs(logs)[0].items():
        method, model, perspective, _, placebo, *_, data = arm
        if placebo:
            continue
        for sample in arm_run.run.read_samples():
            record = record_of(sample)
            graders = cues_by_grader(record)
            for key, text in texts_of(record, graders).items():
                yield GradedText(
                    item=str(sample.id),
                    key=key,
                    model=str(model),
                    perspective=str(perspective),
                    epoch=str(sample.epoch),
                    text=text,
                    data=str(data),
                    aware=joint_finding(graders[key]).aware,
                    log=arm_run.run.log,
                    method=str(method),
                )


COLUMN = "text_id"
"""Column that distinguishes a sheet from labels by item and key."""
DRAWS = 4000
LEVEL = 0.95


def sample_labels(
    n: int, logs: Sequence[str], *, rng: np.random.Generator, methods: Collection[str]
) -> tuple[pd.DataFrame, str]:
    """Texts for people to label: all that the grader found aware, at most half of the sheet, and
    others by chance.

    A table with text_id, text and an empty `aware`, in random order; and a sentence that says what
    was drawn.

    Args:
        n: Texts on the sheet, fewer where there are fewer.
        logs: Logs of user_motivation or reasoning_trace, whatever conversations they are on.
        rng: Draws the others, and the order.
        methods: Methods whose texts are drawn: answers of user_motivation, traces of
            reasoning_trace.

    Raises:
        NoLogs: There is no finished awareness log.
        InputError: No text was graded.
    """
    texts = {
        one.text_id: one
        for one in graded_texts(logs)
        if one.aware is not None and one.method in methods
    }
    if not texts:
        raise InputError(f"no text graded by {' or '.join(methods)} in {', '.join(logs)}")
    ours, others = (
        [name for name, found in texts.items() if found.aware is said] for said in (True, False)
    )
    few = min(len(ours), max(n // 2, n - len(others)))
    drawn = [*_drawn(ours, few, rng), *_drawn(others, min(n - few, len(others)), rng)]
    rows = [
        {COLUMN: name, "text": texts[name].text, "aware": ""}
        for name in _drawn(drawn, len(drawn), rng)
    ]
    every = few == len(ours)
    aware = f"all {few} found aware" if every else f"{few} of {len(ours)} found aware"
    more = "" if every else f"; for all of them give {2 * len(ours)}"
    told = f"{len(drawn)} texts: {aware} and {len(drawn) - few} of {len(others)} others by chance{more}"
    return pd.DataFrame(rows, columns=[COLUMN, "text", LABEL]), told


def _drawn(names: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    return [names[at] for at in rng.permutation(len(names))[:n]]


@dataclass(frozen=True)
class Counts:
    """Counts of the texts with one verdict of the grader."""

    found: int
    """Number of these texts in the logs."""
    labelled: int
    aware: int
    """Number of labelled ones that people call aware."""


@dataclass(frozen=True)
class Checked:
    """Comparison of a grader with people over all texts."""

    sensitivity: Estimate
    """Share of the aware texts that it found."""
    specificity: Estimate
    """Share of the other texts that it left alone."""


def reweighted(ours: Counts, others: Counts) -> Checked:
    """Shares over all texts, where those found aware were drawn more often than the others.

    The aware among all are estimated in each kind apart. Intervals are quantiles of the shares with
    the two proportions drawn from their posteriors under Jeffreys' prior (Brown, Cai & DasGupta
    2001), 95 %.

    Args:
        ours: Texts that the grader found aware.
        others: Texts that it did not find aware.
    """
    for counts, said in ((ours, "found aware"), (others, "not found aware")):
        if (counts.found and not counts.labelled) or (not counts.found and counts is ours):
            lacking = undefined(f"no text {said} is labelled", unit="text")
            return Checked(lacking, lacking)
    rng = np.random.default_rng(0)
    p, q = (rng.beta(c.aware + 0.5, c.labelled - c.aware + 0.5, DRAWS) for c in (ours, others))
    n = ours.labelled + others.labelled

    def share(
        hits: Counts, misses: Counts, drawn: tuple[np.ndarray, np.ndarray], *, aware: bool
    ) -> Estimate:
        def rate(c: Counts) -> float:
            of = c.aware / c.labelled if c.labelled else 0.0
            return c.found * (of if aware else 1 - of)

        a, b = drawn if aware else (1 - drawn[0], 1 - drawn[1])
        found, missed = hits.found * a, misses.found * b
        low, high = np.quantile(found / (found + missed), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        of_all = rate(hits) + rate(misses)
        if not of_all:
            return undefined("no text is labelled so", n=n, unit="text")
        return Estimate(rate(hits) / of_all, float(low), float(high), n, "text")

    return Checked(
        share(ours, others, (p, q), aware=True), share(others, ours, (q, p), aware=False)
    )


YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
LABEL = "aware"
VERDICTS = ("flagged", "noticed", "value")
"""Columns with what the grader said, the first that is there counts."""
KEYS = (COLUMN, "transcript_id", "uuid", "sample", "item", "id")
"""Columns that tell rows apart, the first that all tables have counts."""
SCAN = "eval_awareness.parquet"
EXPECTED = (
    f"expected one file with a column `{LABEL}` (yes, no or empty), and what the judge said of its rows: awareness "
    f"logs for a sheet of --samples or labels by item and key, a folder of Scout scans, or a column "
    f"{', '.join(VERDICTS)}"
)


@dataclass(frozen=True)
class GradedRows:
    """Rows that the grader read, by key."""

    verdicts: Mapping[str, bool]
    clusters: Mapping[str, str]
    """Row → conversation, where several rows come from one."""
    unread: int = 0
    """Number of rows for which it has no verdict."""
    texts: bool = False
    """Whether the rows are texts of logs."""


@dataclass(frozen=True)
class HumanLabels:
    """Labels by people."""

    aware: Mapping[str, bool]
    """Key → whether people call the row aware."""
    rows: int
    """Number of rows in their file; those without a label count."""
    unread: int = 0
    """Number of further labels, of texts for which the grader has no verdict."""
    drawn: bool = True
    """Whether rows were drawn by what the grader said, and not by chance."""
    waiting: int = 0
    """Number of rows without a label yet."""


@dataclass(frozen=True)
class Validated:
    """The grader against people, and the rate that follows."""

    result: Prevalence
    rows: int
    """Number of rows that the rate is of."""
    labelled: int
    """Number of labelled rows with a verdict of the grader."""
    elsewhere: bool
    """Whether the labelled rows are others than those that the rate is of."""
    unread: int
    """Number of rows without a verdict of the grader; no rate counts them."""
    labels: HumanLabels
    agreement: Mapping[str, Share]
    """Shares of labelled rows, each by its name."""
    kappa: float | None = None
    """Cohen's kappa; None where rows were drawn by what the grader said."""
    checked: Checked | None = None
    """Comparison over all rows, where those found aware were labelled more often."""
    texts: bool = field(default=False)
    drifted: tuple[float, float] | None = None
    """Lowest and highest corrected rate if the judge's sensitivity or specificity had changed by
    `DRIFT`.
    """

    def lines(self) -> Iterator[str]:
        """Lines for a terminal: the agreement, then the rate."""
        what = "graded text" if self.texts else "judged row"
        there = self.labelled + self.labels.unread
        yield f"labels that belong to a {what}: {there} of {len(self.labels.aware) + self.labels.unread}"
        if self.labels.waiting:
            yield f"without a label yet: {self.labels.waiting} of {self.labels.rows}"
        for name, share in self.agreement.items():
            yield _share(name, share)
        if self.checked:
            yield f"Of all {self.rows} {what}s, each label standing for those of which the grader said the same:"
            yield f"sensitivity (aware, found aware): {shown(self.checked.sensitivity, 3)}"
            yield f"specificity (not aware, found so): {shown(self.checked.specificity, 3)}"
        elif self.kappa is not None:
            yield (
                "kappa: no cases"
                if np.isnan(self.kappa) and not self.labelled
                else f"kappa: {self.kappa:.3f}"
            )
        rate, better = self.result.flagged, self.result.corrected
        sentence = f"flagged {_percent(rate)}, corrected for the judge's errors {_percent(better)}"
        yield f"{sentence}: {better.reason}" if np.isnan(better.value) else sentence
        if self.result.clipped:
            yield self.result.clipped
        if self.unread:
            yield f"without a verdict of the judge, left out: {self.unread}"
        checked_on = "another set" if self.elsewhere else self.rows
        yield f"The correction is from {self.labelled} labelled rows of {checked_on}."
        if not self.elsewhere:
            yield (
                "The labelled rows must be drawn by chance among the flagged, and among the others, as --samples "
                "does. The interval (95 %) holds the errors of the rate and of the judge."
            )
        else:
            yield (
                "The judge must err here as it did on the labelled rows, which nothing here checks. The interval "
                "(95 %) holds the errors of the rate and of the labels alone."
            )
            if self.drifted:
                low, high = (f"{100 * end:.1f}" for end in self.drifted)
                yield (
                    f"If its sensitivity or its specificity had changed by {DRIFT:g} since, the corrected rate would "
                    f"be {low} to {high} %."
                )


def validated(paths: Sequence[str]) -> Validated:
    """Agreement of a grader with people, and the corrected rate of what lies under these paths.

    Raises:
        InputError: There is no file with labels or several, no verdicts, no common key, a label
            that is neither yes nor no, of an unknown perspective or given twice, one that fits
            several texts, or nothing is labelled.
    """
    tables = {path: load(path, ()).rows for path in paths if path.endswith((".csv", ".jsonl"))}
    columns = [path for path, rows in tables.items() if any(LABEL in row for row in rows)]
    labelled = [
        path for path in columns if any(str(row.get(LABEL) or "").strip() for row in tables[path])
    ] or columns
    if len(labelled) != 1:
        raise InputError(f"{len(labelled)} files with labels in {', '.join(paths)}; {EXPECTED}")
    rows, path = tables.pop(labelled[0]), labelled[0]
    others = [other for other in paths if other != path]
    column = _verdict_column(rows)
    if not others:
        if column is None:
            needs = "give the logs that it was drawn from too" if COLUMN in rows[0] else EXPECTED
            raise InputError(f"{path} does not say what the judge said; {needs}")
        numbers = list(map(str, range(len(rows))))
        return _within(_of_rows(rows, column, numbers), _labels(rows, path, numbers))
    if logs := [other for other in others if other not in tables and not _scans(other)]:
        if len(logs) < len(others) or not (COLUMN in rows[0] or {"item", "key"} <= rows[0].keys()):
            needs = f"sheet of --samples (column {COLUMN}) or with labels by item and key"
            raise InputError(f"logs go with a {needs} alone; {EXPECTED}")
        return _within(*(_of_sheet if COLUMN in rows[0] else _of_items)(rows, path, logs))
    key, judged = _judged(others, tables, rows)
    names = [str(row.get(key) if key else number) for number, row in enumerate(rows)]
    labels = _labels(rows, path, names)
    if labels.aware.keys() & judged.verdicts.keys():
        return _within(judged, labels)
    if column is None:
        raise InputError(
            f"none of the {len(labels.aware)} labelled rows is among what the judge saw in {', '.join(others)} (by "
            f"`{key}`), and {path} does not say what it said of them: {', '.join(VERDICTS)}"
        )
    return _elsewhere(judged, _of_rows(rows, column, names), labels)


# ---- labels of texts in logs


def _of_sheet(
    rows: Sequence[Row], path: str, logs: Sequence[str]
) -> tuple[GradedRows, HumanLabels]:
    """A sheet can be drawn from one method alone; texts of the methods that it labels count."""
    labels = _labels(rows, path, [str(row[COLUMN]) for row in rows])
    every = list(graded_texts(logs))
    methods = {one.method for one in every if one.text_id in labels.aware and one.aware is not None}
    if not methods:
        raise InputError(
            f"none of the {len(labels.aware)} labels belongs to a graded text in {', '.join(logs)}"
        )
    return _of_texts([one for one in every if one.method in methods]), labels


def _of_items(
    rows: Sequence[Row], path: str, logs: Sequence[str]
) -> tuple[GradedRows, HumanLabels]:
    """Labels by item and key; texts of the methods, perspectives and models that they are of count."""
    wanted = _by_item(rows, path)
    every = list(graded_texts(logs))
    fitting: dict[_Item, GradedText] = {}
    for one in every:
        for model, epoch in product((one.model, ""), (one.epoch, "")):
            label = (one.item, one.key, one.perspective, model, epoch)
            if label in wanted and label in fitting:
                raise InputError(_twice(fitting[label], one))
            if label in wanted:
                fitting[label] = one
    if not fitting:
        raise InputError(
            f"none of the {len(wanted)} labels belongs to a graded text in {', '.join(logs)} (placebo arms do not "
            "count, and the third person only for labels with perspective third)"
        )
    aware = {one.text_id: wanted[label] for label, one in fitting.items() if one.aware is not None}
    absent = {f"no text {label}": value for label, value in wanted.items() if label not in fitting}
    kinds = {(one.method, one.perspective, one.model) for one in fitting.values()}
    labels = HumanLabels(aware | absent, len(rows), unread=len(fitting) - len(aware), drawn=False)
    return _of_texts(
        [one for one in every if (one.method, one.perspective, one.model) in kinds]
    ), labels


_Item = tuple[str, str, str, str, str]
"""Item, key, perspective, and model and epoch ("" where the labels do not say)."""


def _by_item(rows: Sequence[Row], path: str) -> dict[_Item, bool]:
    wanted: dict[_Item, bool] = {}
    for number, row in enumerate(rows, start=1):
        model, epoch = (str(row.get(column) or "") for column in ("model", "epoch"))
        perspective = str(row.get("perspective") or "first")
        if perspective not in get_args(Perspective):
            raise InputError(
                f"{path}, row {number}: perspective must be {' or '.join(get_args(Perspective))}, got {perspective!r}"
            )
        label = (str(row["item"]), str(row["key"]), perspective, model, epoch)
        aware = _bool(row.get(LABEL))
        if aware is None:
            raise InputError(
                f"{path}, row {number}: {LABEL} must be yes or no, got {row.get(LABEL)!r}"
            )
        if label in wanted:
            raise InputError(
                f"{path}, row {number}: a second label for item {label[0]!r}, key {label[1]!r}"
            )
        wanted[label] = aware
    return wanted


def _of_texts(every: Collection[GradedText]) -> GradedRows:
    verdicts = {one.text_id: one.aware for one in every if one.aware is not None}
    clusters = {one.text_id: f"{one.log} {one.item} {one.epoch}" for one in every}
    return GradedRows(verdicts, clusters, sum(one.aware is None for one in every), texts=True)


def _twice(one: GradedText, other: GradedText) -> str:
    """Advice on a label that fits both: it names only what really distinguishes them."""
    differ = [name for name in ("model", "epoch") if getattr(one, name) != getattr(other, name)]
    remedies = ["name one log"] if one.log != other.log else []
    remedies += [f"add the column {' and '.join(differ)} to the labels"] if differ else []
    places = " and in ".join(f"{found.log} (epoch {found.epoch})" for found in (one, other))
    return f"item {one.item!r}, key {one.key!r} is in {places}: {', or '.join(remedies)}"


# ---- tables and scans


def _judged(
    others: Sequence[str], tables: Mapping[str, Sequence[Row]], labelled: Sequence[Row]
) -> tuple[str, GradedRows]:
    """Verdicts of the grader, and the column that distinguishes its rows."""
    rows = [
        row for path in others for row in (tables[path] if path in tables else _rows_of_scans(path))
    ]
    column = _verdict_column(rows)
    key = next(
        (name for name in KEYS if _tells_apart(name, rows) and _tells_apart(name, labelled)), None
    )
    if column and key is None and _verdict_column(labelled):
        return "", _of_rows(rows, column, [f"judged {number}" for number in range(len(rows))])
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
    return (
        sorted(place.rglob(SCAN), key=lambda file: file.stat().st_mtime) if place.is_dir() else []
    )


def _rows_of_scans(path: str) -> Sequence[Row]:
    """Rows of scans: for a transcript in several, that of the newest."""
    found = pd.concat(
        pd.read_parquet(file, columns=["transcript_id", "value"]).drop_duplicates("transcript_id")
        for file in _scans(path)
    ).drop_duplicates("transcript_id", keep="last")
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


def _verdict_column(rows: Sequence[Row]) -> str | None:
    return next((name for name in VERDICTS if rows and name in rows[0]), None)


def _tells_apart(name: str, rows: Sequence[Row]) -> bool:
    """Whether a table has this column; an `id` that `load` gave, since there is none, only numbers
    the rows.
    """
    values = [str(row.get(name)) for row in rows if row.get(name) is not None]
    numbered = name == "id" and all(value.startswith("line-") for value in values)
    return len(values) == len(rows) and not numbered


def _of_rows(rows: Sequence[Row], column: str, keys: Sequence[str]) -> GradedRows:
    verdicts = {key: _bool(row.get(column)) for key, row in zip(keys, rows, strict=True)}
    if len(verdicts) < len(rows):
        raise InputError(
            f"{len(rows) - len(verdicts)} rows have the key of another; each row must have one of its own"
        )
    known = {key: value for key, value in verdicts.items() if value is not None}
    return GradedRows(known, {key: key for key in known}, len(verdicts) - len(known))


def _bool(value: object) -> bool | None:
    """Yes or no in any spelling; what is neither is no verdict."""
    if isinstance(value, float) and value in (0.0, 1.0):
        return bool(value)
    return YES_NO.get(str(value).strip().lower())


def _labels(rows: Sequence[Row], path: str, keys: Sequence[str]) -> HumanLabels:
    aware: dict[str, bool] = {}
    waiting = 0
    for number, (key, row) in enumerate(zip(keys, rows, strict=True), start=1):
        given = row.get(LABEL)
        if given is None or str(given).strip() in ("", "nan"):
            waiting += 1
            continue
        label = _bool(given)
        if label is None:
            raise InputError(
                f"{path}, row {number}: {LABEL} must be yes, no or empty, got {given!r}"
            )
        if key in aware:
            raise InputError(f"{path}, row {number}: a second label for {key!r}")
        aware[key] = label
    if not aware:
        raise InputError(
            f"{path}: none of its {len(rows)} rows has a label yet; write yes or no under `{LABEL}`"
        )
    return HumanLabels(aware, len(rows), waiting=waiting)


# ---- numbers


def _within(judged: GradedRows, labels: HumanLabels) -> Validated:
    verdicts, aware = judged.verdicts, labels.aware
    flagged, others = (
        Counts(
            sum(value is side for value in verdicts.values()),
            sum(verdicts.get(key) is side for key in aware),
            sum(label and verdicts.get(key) is side for key, label in aware.items()),
        )
        for side in (True, False)
    )
    both = {key: (label, verdicts[key]) for key, label in aware.items() if key in verdicts}
    if not both and not labels.unread:
        raise InputError("none of the labelled rows has a verdict of the judge")
    inverse = np.unique([judged.clusters[key] for key in verdicts], return_inverse=True)[1]
    scores, n = np.array(list(verdicts.values()), dtype=float), int(inverse.max(initial=-1)) + 1
    independent = effective(scores, inverse) if 1 < n < len(verdicts) else None
    checks = (Share(counts.aware, counts.labelled) for counts in (flagged, others))
    rate = labelled_within(
        Share(flagged.found, len(verdicts)), *checks, independent=independent, unit="row"
    )
    given = (rate, len(verdicts), len(both), False, judged.unread, labels)
    if not labels.drawn:
        return Validated(*given, *_plain(both, labels.unread), texts=judged.texts)
    shares = {
        "precision (found aware, aware)": Share(flagged.aware, flagged.labelled),
        "not found aware, and not aware": Share(others.labelled - others.aware, others.labelled),
    }
    return Validated(*given, shares, checked=reweighted(flagged, others), texts=judged.texts)


def _plain(
    both: Mapping[str, tuple[bool, bool]], unread: int = 0
) -> tuple[dict[str, Share], float]:
    """Agreement over the labelled rows alone, and kappa; `both` is what people and the grader say."""
    people, grader = (np.array([pair[at] for pair in both.values()], dtype=bool) for at in (0, 1))
    shares = {
        "grades that could be used": Share(len(both), len(both) + unread),
        "agreement": Share(int((people == grader).sum()), len(both)),
        "sensitivity (aware, found aware)": Share(int((people & grader).sum()), int(people.sum())),
        "specificity (not aware, found so)": Share(
            int((~people & ~grader).sum()), int((~people).sum())
        ),
    }
    return shares, cohen_kappa(people, grader) if both else float("nan")


def _elsewhere(judged: GradedRows, there: GradedRows, labels: HumanLabels) -> Validated:
    both = {
        key: (label, there.verdicts[key])
        for key, label in labels.aware.items()
        if key in there.verdicts
    }
    agreement, kappa = _plain(both)
    found, left = (agreement[name] for name in list(agreement)[2:])
    verdicts = judged.verdicts
    flagged = Share(sum(verdicts.values()), len(verdicts))
    rate = labelled_elsewhere(flagged, found, left, unit="row")
    drift = None if np.isnan(rate.corrected.value) else drifted(flagged, found.value, left.value)
    return Validated(
        rate, len(verdicts), len(both), True, judged.unread, labels, agreement, kappa, drifted=drift
    )


def _share(name: str, share: Share) -> str:
    if not share.of:
        return f"{name}: no cases"
    low, high = wilson(share.value, share.of)
    return f"{name}: {share.hits} of {share.of} = {share.value:.3f} [{low:.3f}, {high:.3f}]"


def _percent(estimate: Estimate) -> str:
    if np.isnan(estimate.low):
        return percent(estimate.value)
    return f"{percent(estimate.value)} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
