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
from selfprobe.page import interval_text, percent
from selfprobe.scorers.awareness_cues import cues_by_grader, joint_finding, texts_of
from selfprobe.solvers.converse import Perspective
from selfprobe.solvers.record import record_of
from selfprobe.stats.agreement import (
    JUDGE_DRIFT,
    Prevalence,
    Share,
    cohen_kappa,
    drifted,
    labelled_elsewhere,
    labelled_within,
)
from selfprobe.stats.estimate import Estimate, FloatArray, effective, undefined, wilson
from selfprobe.study.awareness_arms import arm_runs
from selfprobe.study.evidence import kinds_asked
from selfprobe.text.counts import count_text


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
        kinds = kinds_asked(arm_run.header)
        for sample in arm_run.run.read_samples():
            record = record_of(sample)
            graders = cues_by_grader(record, kinds)
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


SHEET_COLUMN = "text_id"
"""Column that distinguishes a sheet from labels by item and key."""
POSTERIOR_DRAWS = 4000
INTERVAL_LEVEL = 0.95


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
    text_by_id = {
        text.text_id: text
        for text in graded_texts(logs)
        if text.aware is not None and text.method in methods
    }
    if not text_by_id:
        raise InputError(f"no text graded by {' or '.join(methods)} in {', '.join(logs)}")
    aware_ids = [text_id for text_id, text in text_by_id.items() if text.aware]
    other_ids = [text_id for text_id, text in text_by_id.items() if not text.aware]
    aware_count = min(len(aware_ids), max(n // 2, n - len(other_ids)))
    other_count = min(n - aware_count, len(other_ids))
    drawn_ids = [
        *_drawn(aware_ids, aware_count, rng),
        *_drawn(other_ids, other_count, rng),
    ]
    rows = [
        {SHEET_COLUMN: text_id, "text": text_by_id[text_id].text, "aware": ""}
        for text_id in _drawn(drawn_ids, len(drawn_ids), rng)
    ]
    if aware_count == len(aware_ids):
        aware_text = f"all {aware_count} found aware"
        hint = ""
    else:
        aware_text = f"{aware_count} of {len(aware_ids)} found aware"
        hint = f"; for all of them give {2 * len(aware_ids)}"
    sentence = (
        f"{count_text(len(drawn_ids), 'text')}: {aware_text} and {other_count} of {len(other_ids)} others by "
        f"chance{hint}"
    )
    return pd.DataFrame(rows, columns=[SHEET_COLUMN, "text", LABEL_COLUMN]), sentence


def _drawn(names: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    return [names[index] for index in rng.permutation(len(names))[:count]]


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


def reweighted(flagged: Counts, unflagged: Counts) -> Checked:
    """Shares over all texts, where those found aware were drawn more often than the others.

    The aware among all are estimated in each kind apart. Intervals are quantiles of the shares with
    the two proportions drawn from their posteriors under Jeffreys' prior (Brown, Cai & DasGupta
    2001), 95 %.

    Args:
        flagged: Texts that the grader found aware.
        unflagged: Texts that it did not find aware.
    """
    if not flagged.found or not flagged.labelled:
        lacking = undefined("no text found aware is labelled", unit="text")
        return Checked(lacking, lacking)
    if unflagged.found and not unflagged.labelled:
        lacking = undefined("no text not found aware is labelled", unit="text")
        return Checked(lacking, lacking)
    rng = np.random.default_rng(0)
    drawn_flagged_share = rng.beta(
        flagged.aware + 0.5, flagged.labelled - flagged.aware + 0.5, POSTERIOR_DRAWS
    )
    drawn_unflagged_share = rng.beta(
        unflagged.aware + 0.5, unflagged.labelled - unflagged.aware + 0.5, POSTERIOR_DRAWS
    )
    labelled_count = flagged.labelled + unflagged.labelled
    sensitivity = _share_of_hits(
        hits=flagged.found * _aware_share(flagged),
        misses=unflagged.found * _aware_share(unflagged),
        drawn_hits=flagged.found * drawn_flagged_share,
        drawn_misses=unflagged.found * drawn_unflagged_share,
        labelled_count=labelled_count,
    )
    specificity = _share_of_hits(
        hits=unflagged.found * (1 - _aware_share(unflagged)),
        misses=flagged.found * (1 - _aware_share(flagged)),
        drawn_hits=unflagged.found * (1 - drawn_unflagged_share),
        drawn_misses=flagged.found * (1 - drawn_flagged_share),
        labelled_count=labelled_count,
    )
    return Checked(sensitivity, specificity)


def _aware_share(counts: Counts) -> float:
    return counts.aware / counts.labelled if counts.labelled else 0.0


def _share_of_hits(
    *,
    hits: float,
    misses: float,
    drawn_hits: FloatArray,
    drawn_misses: FloatArray,
    labelled_count: int,
) -> Estimate:
    """Share of hits among hits and misses; its interval is of the drawn ones."""
    if not hits + misses:
        return undefined("no text is labelled so", n=labelled_count, unit="text")
    drawn_shares = drawn_hits / (drawn_hits + drawn_misses)
    tails = [(1 - INTERVAL_LEVEL) / 2, (1 + INTERVAL_LEVEL) / 2]
    low, high = np.quantile(drawn_shares, tails)
    return Estimate(hits / (hits + misses), float(low), float(high), labelled_count, "text")


TRUTH_BY_WORD = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
LABEL_COLUMN = "aware"
VERDICT_COLUMNS = ("flagged", "noticed", "value")
"""Columns with what the grader said, the first that is there counts."""
KEY_COLUMNS = (SHEET_COLUMN, "transcript_id", "uuid", "sample", "item", "id")
"""Columns that tell rows apart, the first that all tables have counts."""
SCAN_FILE = "eval_awareness.parquet"
EXPECTED_FILES = (
    f"expected one file with a column `{LABEL_COLUMN}` (yes, no or empty), and what the judge said of its "
    "rows: awareness "
    f"logs for a sheet of --samples or labels by item and key, a folder of Scout scans, or a column "
    f"{', '.join(VERDICT_COLUMNS)}"
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
    `JUDGE_DRIFT`.
    """

    def lines(self) -> Iterator[str]:
        """Lines for a terminal: the agreement, then the rate."""
        row_name = "graded text" if self.texts else "judged row"
        fitting_labels = self.labelled + self.labels.unread
        label_count = len(self.labels.aware) + self.labels.unread
        yield f"labels that belong to a {row_name}: {fitting_labels} of {label_count}"
        if self.labels.waiting:
            yield f"without a label yet: {self.labels.waiting} of {self.labels.rows}"
        for name, share in self.agreement.items():
            yield _share(name, share)
        if self.checked:
            yield (
                f"Of all {self.rows} {row_name}s, each label standing for those of which the "
                "grader said the same:"
            )
            yield f"sensitivity (aware, found aware): {interval_text(self.checked.sensitivity, 3)}"
            yield f"specificity (not aware, found so): {interval_text(self.checked.specificity, 3)}"
        elif self.kappa is not None:
            has_kappa = self.labelled or not np.isnan(self.kappa)
            yield f"kappa: {self.kappa:.3f}" if has_kappa else "kappa: no cases"
        yield from self._rate_lines()
        checked_rows = "another set" if self.elsewhere else self.rows
        yield f"The correction is from {count_text(self.labelled, 'labelled row')} of {checked_rows}."
        yield from self._assumption_lines()

    def _rate_lines(self) -> Iterator[str]:
        flagged = self.result.flagged
        corrected = self.result.corrected
        sentence = (
            f"flagged {_percent(flagged)}, corrected for the judge's errors {_percent(corrected)}"
        )
        yield f"{sentence}: {corrected.reason}" if np.isnan(corrected.value) else sentence
        if self.result.clipped:
            yield self.result.clipped
        if self.unread:
            yield f"without a verdict of the judge, left out: {self.unread}"

    def _assumption_lines(self) -> Iterator[str]:
        if not self.elsewhere:
            yield (
                "The labelled rows must be drawn by chance among the flagged, and among the "
                "others, as --samples does. The interval (95 %) holds the errors of the rate and "
                "of the judge."
            )
            return
        yield (
            "The judge must err here as it did on the labelled rows, which nothing here checks. "
            "The interval (95 %) holds the errors of the rate and of the labels alone."
        )
        if self.drifted:
            low, high = (f"{100 * end:.1f}" for end in self.drifted)
            yield (
                f"If its sensitivity or its specificity had changed by {JUDGE_DRIFT:g} since, the "
                f"corrected rate would be {low} to {high} %."
            )


def validated(paths: Sequence[str]) -> Validated:
    """Agreement of a grader with people, and the corrected rate of what lies under these paths.

    Raises:
        InputError: There is no file with labels or several, no verdicts, no common key, a label
            that is neither yes nor no, of an unknown perspective or given twice, one that fits
            several texts, or nothing is labelled.
    """
    table_paths = [path for path in paths if path.endswith((".csv", ".jsonl"))]
    tables = {path: load(path, ()).rows for path in table_paths}
    label_path = _label_path(paths, tables)
    rows = tables.pop(label_path)
    grader_paths = [path for path in paths if path != label_path]
    verdict_column = _verdict_column(rows)
    if not grader_paths:
        if verdict_column is None:
            needs = EXPECTED_FILES
            if SHEET_COLUMN in rows[0]:
                needs = "give the logs that it was drawn from too"
            raise InputError(f"{label_path} does not say what the judge said; {needs}")
        numbers = [str(number) for number in range(len(rows))]
        judged = _of_rows(rows, verdict_column, numbers)
        return _within(judged, _labels(rows, label_path, numbers))

    logs = [path for path in grader_paths if path not in tables and not _scans(path)]
    if logs:
        is_sheet = SHEET_COLUMN in rows[0]
        is_by_item = {"item", "key"} <= rows[0].keys()
        if len(logs) < len(grader_paths) or not (is_sheet or is_by_item):
            needs = f"sheet of --samples (column {SHEET_COLUMN}) or with labels by item and key"
            raise InputError(f"logs go with a {needs} alone; {EXPECTED_FILES}")
        read_labels = _of_sheet if is_sheet else _of_items
        return _within(*read_labels(rows, label_path, logs))

    key_column, judged = _judged(grader_paths, tables, rows)
    keys = [str(number) for number in range(len(rows))]
    if key_column:
        keys = [str(row.get(key_column)) for row in rows]
    labels = _labels(rows, label_path, keys)
    if labels.aware.keys() & judged.verdicts.keys():
        return _within(judged, labels)
    if verdict_column is None:
        raise InputError(
            f"no labelled row of {len(labels.aware)} is among what the judge saw in "
            f"{', '.join(grader_paths)} (by `{key_column}`), and {label_path} does not say what it "
            f"said of them: {', '.join(VERDICT_COLUMNS)}"
        )
    return _elsewhere(judged, _of_rows(rows, verdict_column, keys), labels)


def _label_path(paths: Sequence[str], tables: Mapping[str, Sequence[Row]]) -> str:
    """The one table that has labels; of several with the column the one where some are filled in.

    Raises:
        InputError: There is none, or several.
    """
    paths_with_column = list[str]()
    paths_with_labels = list[str]()
    for path, rows in tables.items():
        if any(LABEL_COLUMN in row for row in rows):
            paths_with_column.append(path)
        if any(str(row.get(LABEL_COLUMN) or "").strip() for row in rows):
            paths_with_labels.append(path)
    label_paths = paths_with_labels or paths_with_column
    if len(label_paths) != 1:
        raise InputError(
            f"{len(label_paths)} files with labels in {', '.join(paths)}; {EXPECTED_FILES}"
        )
    return label_paths[0]


# ---- labels of texts in logs


def _of_sheet(
    rows: Sequence[Row], path: str, logs: Sequence[str]
) -> tuple[GradedRows, HumanLabels]:
    """A sheet can be drawn from one method alone; texts of the methods that it labels count."""
    labels = _labels(rows, path, [str(row[SHEET_COLUMN]) for row in rows])
    texts = list(graded_texts(logs))
    methods = {
        text.method for text in texts if text.text_id in labels.aware and text.aware is not None
    }
    if not methods:
        raise InputError(
            f"no label of {len(labels.aware)} belongs to a graded text in {', '.join(logs)}"
        )
    return _of_texts([text for text in texts if text.method in methods]), labels


def _of_items(
    rows: Sequence[Row], path: str, logs: Sequence[str]
) -> tuple[GradedRows, HumanLabels]:
    """Labels by item and key; texts of the methods, perspectives and models that they are of count."""
    aware_by_label = _by_item(rows, path)
    texts = list(graded_texts(logs))
    text_of_label: dict[ItemLabel, GradedText] = {}
    for text in texts:
        for model, epoch in product((text.model, ""), (text.epoch, "")):
            label = (text.item, text.key, text.perspective, model, epoch)
            if label not in aware_by_label:
                continue
            if label in text_of_label:
                raise InputError(_twice(text_of_label[label], text))
            text_of_label[label] = text
    if not text_of_label:
        raise InputError(
            f"no label of {len(aware_by_label)} belongs to a graded text in "
            f"{', '.join(logs)} (placebo arms do not count, and the third person only for labels "
            "with perspective third)"
        )
    aware = dict[str, bool]()
    for label, text in text_of_label.items():
        if text.aware is not None:
            aware[text.text_id] = aware_by_label[label]
    unread_count = len(text_of_label) - len(aware)
    for label, is_aware in aware_by_label.items():
        if label not in text_of_label:
            aware[f"no text {label}"] = is_aware
    labels = HumanLabels(aware, len(rows), unread=unread_count, drawn=False)
    labelled_arms = {(text.method, text.perspective, text.model) for text in text_of_label.values()}
    compared_texts = [
        text for text in texts if (text.method, text.perspective, text.model) in labelled_arms
    ]
    return _of_texts(compared_texts), labels


ItemLabel = tuple[str, str, str, str, str]
"""Item, key, perspective, and model and epoch ("" where the labels do not say)."""


def _by_item(rows: Sequence[Row], path: str) -> dict[ItemLabel, bool]:
    aware_by_label: dict[ItemLabel, bool] = {}
    perspectives = get_args(Perspective)
    for number, row in enumerate(rows, start=1):
        place = f"{path}, row {number}"
        perspective = str(row.get("perspective") or "first")
        if perspective not in perspectives:
            raise InputError(
                f"{place}: perspective must be {' or '.join(perspectives)}, got {perspective!r}"
            )
        item, key = str(row["item"]), str(row["key"])
        model, epoch = str(row.get("model") or ""), str(row.get("epoch") or "")
        label = (item, key, perspective, model, epoch)
        aware = _bool(row.get(LABEL_COLUMN))
        if aware is None:
            raise InputError(
                f"{place}: {LABEL_COLUMN} must be yes or no, got {row.get(LABEL_COLUMN)!r}"
            )
        if label in aware_by_label:
            raise InputError(f"{place}: a second label for item {item!r}, key {key!r}")
        aware_by_label[label] = aware
    return aware_by_label


def _of_texts(texts: Collection[GradedText]) -> GradedRows:
    verdicts = {text.text_id: text.aware for text in texts if text.aware is not None}
    clusters = {text.text_id: f"{text.log} {text.item} {text.epoch}" for text in texts}
    unread_count = sum(text.aware is None for text in texts)
    return GradedRows(verdicts, clusters, unread_count, texts=True)


def _twice(first_text: GradedText, second_text: GradedText) -> str:
    """Advice on a label that fits both: it names only what really distinguishes them."""
    columns = list[str]()
    if first_text.model != second_text.model:
        columns.append("model")
    if first_text.epoch != second_text.epoch:
        columns.append("epoch")
    remedies = list[str]()
    if first_text.log != second_text.log:
        remedies.append("name one log")
    if columns:
        remedies.append(f"add the column {' and '.join(columns)} to the labels")
    places = [f"{text.log} (epoch {text.epoch})" for text in (first_text, second_text)]
    return (
        f"item {first_text.item!r}, key {first_text.key!r} is in {' and in '.join(places)}: "
        f"{', or '.join(remedies)}"
    )


# ---- tables and scans


def _judged(
    grader_paths: Sequence[str], tables: Mapping[str, Sequence[Row]], label_rows: Sequence[Row]
) -> tuple[str, GradedRows]:
    """The column that distinguishes the grader's rows, "" where none does, and its verdicts."""
    rows = list[Row]()
    for path in grader_paths:
        rows += tables[path] if path in tables else _rows_of_scans(path)
    verdict_column = _verdict_column(rows)
    shared_keys = [
        name for name in KEY_COLUMNS if _tells_apart(name, rows) and _tells_apart(name, label_rows)
    ]
    if verdict_column and not shared_keys and _verdict_column(label_rows):
        numbered_keys = [f"judged {number}" for number in range(len(rows))]
        return "", _of_rows(rows, verdict_column, numbered_keys)
    names = ", ".join(grader_paths)
    if verdict_column is None:
        raise InputError(f"{names} has none of {', '.join(VERDICT_COLUMNS)}; {EXPECTED_FILES}")
    if not shared_keys:
        raise InputError(
            f"{names} and the labels share none of {', '.join(KEY_COLUMNS)}; {EXPECTED_FILES}"
        )
    key_column = shared_keys[0]
    keys = [str(row.get(key_column)) for row in rows]
    return key_column, _of_rows(rows, verdict_column, keys)


def _scans(path: str) -> list[Path]:
    """Scout's results of our scanner below a folder, the oldest first."""
    folder = Path(locate(path))
    if not folder.is_dir():
        return []
    return sorted(folder.rglob(SCAN_FILE), key=lambda file: file.stat().st_mtime)


def _rows_of_scans(path: str) -> Sequence[Row]:
    """Rows of scans: for a transcript in several, that of the newest."""
    scans = [
        pd.read_parquet(file, columns=["transcript_id", "value"]).drop_duplicates("transcript_id")
        for file in _scans(path)
    ]
    newest = pd.concat(scans).drop_duplicates("transcript_id", keep="last")
    rows = []
    for record in newest.to_dict("records"):
        rows.append({str(name): value for name, value in record.items()})
    return rows


def _verdict_column(rows: Sequence[Row]) -> str | None:
    return next((name for name in VERDICT_COLUMNS if rows and name in rows[0]), None)


def _tells_apart(name: str, rows: Sequence[Row]) -> bool:
    """Whether a table has this column; an `id` that `load` gave, since there is none, only numbers
    the rows.
    """
    values = [str(row.get(name)) for row in rows if row.get(name) is not None]
    numbered = name == "id" and all(value.startswith("line-") for value in values)
    return len(values) == len(rows) and not numbered


def _of_rows(rows: Sequence[Row], verdict_column: str, keys: Sequence[str]) -> GradedRows:
    verdicts = {}
    for key, row in zip(keys, rows, strict=True):
        verdicts[key] = _bool(row.get(verdict_column))
    repeated_count = len(rows) - len(verdicts)
    if repeated_count:
        raise InputError(
            f"{count_text(repeated_count, 'row')} with the key of another; each row must have one of "
            "its own"
        )
    read_verdicts = {key: verdict for key, verdict in verdicts.items() if verdict is not None}
    unread_count = len(verdicts) - len(read_verdicts)
    return GradedRows(read_verdicts, {key: key for key in read_verdicts}, unread_count)


def _bool(value: object) -> bool | None:
    """Yes or no in any spelling; what is neither is no verdict."""
    if isinstance(value, float) and value in (0.0, 1.0):
        return bool(value)
    return TRUTH_BY_WORD.get(str(value).strip().lower())


def _labels(rows: Sequence[Row], path: str, keys: Sequence[str]) -> HumanLabels:
    aware: dict[str, bool] = {}
    waiting_count = 0
    for number, (key, row) in enumerate(zip(keys, rows, strict=True), start=1):
        label_text = row.get(LABEL_COLUMN)
        if label_text is None or str(label_text).strip() in ("", "nan"):
            waiting_count += 1
            continue
        label = _bool(label_text)
        if label is None:
            raise InputError(
                f"{path}, row {number}: {LABEL_COLUMN} must be yes, no or empty, got {label_text!r}"
            )
        if key in aware:
            raise InputError(f"{path}, row {number}: a second label for {key!r}")
        aware[key] = label
    if not aware:
        raise InputError(
            f"{path}: no row of {len(rows)} has a label yet; write yes or no under `{LABEL_COLUMN}`"
        )
    return HumanLabels(aware, len(rows), waiting=waiting_count)


# ---- numbers


def _within(judged: GradedRows, labels: HumanLabels) -> Validated:
    """The grader against people on the rows that the rate is of."""
    verdicts = judged.verdicts
    flagged = _counts_of_verdict(True, verdicts, labels.aware)
    unflagged = _counts_of_verdict(False, verdicts, labels.aware)
    label_and_verdict = {
        key: (label, verdicts[key]) for key, label in labels.aware.items() if key in verdicts
    }
    if not label_and_verdict and not labels.unread:
        raise InputError("none of the labelled rows has a verdict of the judge")

    scores = np.array(list(verdicts.values()), dtype=float)
    cluster_names = [judged.clusters[key] for key in verdicts]
    unique_clusters, cluster_numbers = np.unique(cluster_names, return_inverse=True)
    independent_rows = None
    if 1 < len(unique_clusters) < len(verdicts):
        independent_rows = effective(scores, cluster_numbers)
    rate = labelled_within(
        Share(flagged.found, len(verdicts)),
        Share(flagged.aware, flagged.labelled),
        Share(unflagged.aware, unflagged.labelled),
        independent=independent_rows,
        unit="row",
    )

    kappa = None
    checked = None
    if labels.drawn:
        unaware_others = Share(unflagged.labelled - unflagged.aware, unflagged.labelled)
        shares = {
            "precision (found aware, aware)": Share(flagged.aware, flagged.labelled),
            "not found aware, and not aware": unaware_others,
        }
        checked = reweighted(flagged, unflagged)
    else:
        shares, kappa = _plain_agreement(label_and_verdict, labels.unread)
    return Validated(
        result=rate,
        rows=len(verdicts),
        labelled=len(label_and_verdict),
        elsewhere=False,
        unread=judged.unread,
        labels=labels,
        agreement=shares,
        kappa=kappa,
        checked=checked,
        texts=judged.texts,
    )


def _counts_of_verdict(
    verdict: bool, verdicts: Mapping[str, bool], aware: Mapping[str, bool]
) -> Counts:
    labels_of_rows = [is_aware for key, is_aware in aware.items() if verdicts.get(key) is verdict]
    row_count = sum(row_verdict is verdict for row_verdict in verdicts.values())
    return Counts(row_count, len(labels_of_rows), sum(labels_of_rows))


SENSITIVITY_NAME = "sensitivity (aware, found aware)"
SPECIFICITY_NAME = "specificity (not aware, found so)"


def _plain_agreement(
    label_and_verdict: Mapping[str, tuple[bool, bool]], unread: int = 0
) -> tuple[dict[str, Share], float]:
    """Agreement of people and the grader over the labelled rows alone, and kappa."""
    people = np.array([label for label, _ in label_and_verdict.values()], dtype=bool)
    grader = np.array([verdict for _, verdict in label_and_verdict.values()], dtype=bool)
    row_count = len(label_and_verdict)
    agreeing_count = int((people == grader).sum())
    aware_count = int(people.sum())
    found_count = int((people & grader).sum())
    passed_count = int((~people & ~grader).sum())
    shares = {
        "grades that could be used": Share(row_count, row_count + unread),
        "agreement": Share(agreeing_count, row_count),
        SENSITIVITY_NAME: Share(found_count, aware_count),
        SPECIFICITY_NAME: Share(passed_count, row_count - aware_count),
    }
    kappa = cohen_kappa(people, grader) if row_count else float("nan")
    return shares, kappa


def _elsewhere(judged: GradedRows, labelled: GradedRows, labels: HumanLabels) -> Validated:
    """The grader against people on other rows than those that the rate is of."""
    label_and_verdict = {
        key: (label, labelled.verdicts[key])
        for key, label in labels.aware.items()
        if key in labelled.verdicts
    }
    agreement, kappa = _plain_agreement(label_and_verdict)
    sensitivity = agreement[SENSITIVITY_NAME]
    specificity = agreement[SPECIFICITY_NAME]
    flagged = Share(sum(judged.verdicts.values()), len(judged.verdicts))
    rate = labelled_elsewhere(flagged, sensitivity, specificity, unit="row")
    drift = None
    if not np.isnan(rate.corrected.value):
        drift = drifted(flagged, sensitivity.value, specificity.value)
    return Validated(
        result=rate,
        rows=len(judged.verdicts),
        labelled=len(label_and_verdict),
        elsewhere=True,
        unread=judged.unread,
        labels=labels,
        agreement=agreement,
        kappa=kappa,
        drifted=drift,
    )


def _share(name: str, share: Share) -> str:
    if not share.total:
        return f"{name}: no cases"
    low, high = wilson(share.value, share.total)
    return f"{name}: {share.hits} of {share.total} = {share.value:.3f} [{low:.3f}, {high:.3f}]"


def _percent(estimate: Estimate) -> str:
    if np.isnan(estimate.low):
        return percent(estimate.value)
    return f"{percent(estimate.value)} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
