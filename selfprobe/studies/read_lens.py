"""Logit lens: after which block does an introspective prompt change the answer? (IntrospectBench,
§5.2, Figure 5)

The module also has what `attention` and `patch` share: dilemmas under four instructions, readings
of each, and the page of the folder. The folder holds:

    run.json                what it is of: model, revision, precision, data set, opening
    readings/KEY.npz        a dilemma's `DilemmaReading`
    tables/, figures/, index.html    what the studies made of it
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from selfprobe.data import Table, load
from selfprobe.data.pairs import digest
from selfprobe.errors import InputError
from selfprobe.mechanism.prompts import ARM_NAMES, ARMS, OPENING, DilemmaItem, dilemma_items
from selfprobe.page import (
    Block,
    ClaimWords,
    Figures,
    Heading,
    Page,
    Picture,
    RowTable,
    claim_page,
    headings,
    interval_text,
    number,
    p_digits,
    signed_interval,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.columns import BLOCK_HEADING, columns_of, rows_of_frame
from selfprobe.page.plots import curves, cut_name
from selfprobe.stats.claim import (
    ALPHA,
    Check,
    Claim,
    Outcome,
    outcome_if,
    remedy_unless_met,
)
from selfprobe.stats.clustered import resampling_units
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined
from selfprobe.stats.timing import FEWEST_CLUSTERS, Rise, rise_in
from selfprobe.study.arrays import store_arrays, stored_arrays
from selfprobe.study.local import Blocks, Progress, SpreadStudy
from selfprobe.text.counts import count_text
from selfprobe.text.safe import echo

if TYPE_CHECKING:
    from selfprobe.mechanism.reading import DilemmaReading
    from selfprobe.probes.forward import JobRunner

FloatArray = npt.NDArray[np.float64]
Tables = Mapping[str, pd.DataFrame]

COMPARED_ARMS = (
    ("introspective", "direct"),
    ("control", "direct"),
    ("introspective", "control"),
    ("introspective", "other"),
)
"""Pairs of arms that are compared, first less second: the paper's, what an irrelevant text does,
and what is left beside controls.
"""


class Comparison(StrEnum):
    """Pairs of arms by name, first less second, as the tables name them."""

    INTROSPECTIVE_LESS_DIRECT = "introspective − direct"
    """The paper's."""
    CONTROL_LESS_DIRECT = "control − direct"
    """What an irrelevant text does."""
    INTROSPECTIVE_LESS_CONTROL = "introspective − control"
    INTROSPECTIVE_LESS_OTHER = "introspective − other"
    OTHER_LESS_DIRECT = "other − direct"
    """What the prompt about another assistant does."""


PARTED_PAIRS = (*COMPARED_ARMS, ("other", "direct"))
"""Pairs of arms that are tested for a block where they part."""
COMPARISON_TITLES: Mapping[str, str] = {
    Comparison.INTROSPECTIVE_LESS_DIRECT: "introspective less direct (the paper's)",
    Comparison.CONTROL_LESS_DIRECT: "irrelevant text less direct",
    Comparison.INTROSPECTIVE_LESS_CONTROL: "introspective less irrelevant text (what is left)",
    Comparison.INTROSPECTIVE_LESS_OTHER: "introspective less another assistant's",
}
SMALLEST_SHIFT = 0.1
"""Smallest difference of the logit of A less that of B that matters: at most 2.5 points of
probability.
"""
FEWEST_DILEMMAS = 2
"""Smallest number of dilemmas with an interval."""
FEWEST_WITH_INTERVAL = FEWEST_CLUSTERS
"""Smallest number of dilemmas whose random signs can give a p below .05. A bootstrapped interval
needs as many.
"""
UNIT = "dilemma"
LENS_METHOD = (
    "A dilemma is read up to the word A or B under four instructions: the direct question, the "
    "introspective prompt (predict what you will conclude), an irrelevant text of exactly as many "
    "tokens, and the prediction about another assistant. Numbers are means over dilemmas with 95 % "
    "intervals, by source where the data set names several."
)
STEP_METHOD = (
    "Two runs differ where the difference is larger, at the best of all blocks and shapes of a "
    "rise, than under random signs of whole dilemmas or sources. A block is named where every rise "
    "over more than two gaps between blocks is ruled out; else the page says between which blocks "
    "the difference arises. It must last: a difference that is gone after the last block that was "
    "read is no place where the runs part. A Yes takes a lasting difference from the irrelevant "
    "text and from the prompt about another assistant too."
)
LENS_LIMIT = (
    "It does not show introspection: any instruction that moves the answer parts from the direct "
    "question somewhere."
)
LENS_LIMITS_NOTE = (
    "A block where they part says about where the instruction comes to matter for the next word, "
    f"as the output layer reads it. {LENS_LIMIT} States of middle blocks are read through a norm "
    "that was not made for them."
)
LENS_PAPER = "Paper: block 60 of the 64 of Qwen3-32B, by eye, in one dilemma."


class Lens(SpreadStudy):
    """At which block do direct and introspective runs part? Logit of A less that of B after every
    block (Figure 5).
    """

    patterns: ClassVar[bool] = False
    """Whether attention must be read; otherwise it is read where that can be done."""

    dataset: str = Field(
        "ethical_dilemmas",
        description=(
            "Dilemmas: bundled, a file or hf:…, with a column dilemma that names Option A and "
            "Option B."
        ),
    )
    opening: str = Field(OPENING, description="Beginning of the answer, before A or B.")
    layers: Blocks = Field(
        "", description="Blocks that are read, as 8,16,24 or 0-31:4, from 0. Default: all."
    )
    out: str = Field("mechanism", description="Folder of what is read, the tables and the page.")

    @cached_property
    def table(self) -> Table:
        """The dilemmas."""
        table = load(self.dataset, "dilemma", ("axes", "source"))
        if self.limit:
            return replace(table, rows=table.first(self.limit))
        return table

    @cached_property
    def dilemmas_and_reasons(self) -> tuple[list[DilemmaItem], dict[str, str]]:
        """The dilemmas as the model's tokens, and why others cannot be read.

        Raises:
            InputError: Too few can be read.
        """
        judge = self.judge
        dilemmas, unreadable = dilemma_items(
            judge.tokenizer,
            self.table,
            opening=self.opening,
            chat=judge.chat,
            context=judge.context,
        )
        if len(dilemmas) < FEWEST_DILEMMAS:
            reason = f" ({next(iter(unreadable.values()))})" if unreadable else ""
            raise InputError(
                f"{len(dilemmas)} of {count_text(len(self.table.rows), UNIT)} readable{reason}; expected "
                f"at least {FEWEST_DILEMMAS}: give more or shorter ones, or a larger --limit"
            )
        return dilemmas, unreadable

    @property
    def dilemmas(self) -> list[DilemmaItem]:
        """The dilemmas that can be read."""
        return self.dilemmas_and_reasons[0]

    @property
    def state(self) -> dict[str, Any]:
        """Settings that the folder belongs to."""
        judge = self.judge
        return {
            "model": judge.name,
            "revision": judge.revision,
            "precision": judge.precision,
            "dataset": self.table.name,
            "dataset_sha256": self.table.sha256,
            "opening": self.opening,
            "system": judge.chat.system,
            "arguments": dict(judge.chat.arguments),
        }

    @property
    def needs_lines(self) -> list[str]:
        """Dilemmas, tokens, time, memory and disk of what is still to be read.

        Raises:
            InputError: The disk has no room for it, or the folder holds another run.
        """
        from selfprobe.mechanism.reading import weight_and_prompt_bytes
        from selfprobe.probes.model import bytes_text
        from selfprobe.probes.plan import free_disk_bytes, plan_lines, work_rows

        dilemmas, unreadable = self.dilemmas_and_reasons
        self.claim_folder(self.state, dry=True)
        judge = self.judge
        pending = self.pending_dilemmas(patterns=True)
        tokens = sum(item.tokens for item in pending)
        disk_bytes = len(pending) * self._bytes_of_reading
        free_bytes = free_disk_bytes(self.folder)
        if disk_bytes > free_bytes:
            raise InputError(
                f"{bytes_text(disk_bytes)} are to be written to {self.out}, and {bytes_text(free_bytes)} are "
                "free: take another --out"
            )

        longest_tokens = max(item.longest for item in dilemmas)
        weight_bytes, reading_bytes = weight_and_prompt_bytes(judge, longest_tokens)
        lines = [
            judge.size_line,
            f"Dilemmas: {len(dilemmas)}, {len(unreadable)} cannot be read, "
            f"{len(dilemmas) - len(pending)} on disk",
        ]
        if unreadable:
            name, reason = next(iter(unreadable.items()))
            ellipsis = " …" if len(unreadable) > 1 else ""
            lines.append(f"Not read: {name}: {reason}{ellipsis}")
        rows = work_rows(
            pending=f"{tokens:,} tokens (what the arms of a dilemma share is read once)",
            weight_bytes=weight_bytes,
            work_bytes=reading_bytes,
            disk=f"{bytes_text(disk_bytes)} to write ({bytes_text(free_bytes)} free)",
            duration=self.time_text(tokens),
        )
        return [*lines, *plan_lines(rows)]

    @property
    def _bytes_of_reading(self) -> int:
        """Bytes of a dilemma's file: lens and five numbers a head, of each arm and block."""
        config = self.judge.model.config.get_text_config()
        heads = int(getattr(config, "num_attention_heads", 0))
        return 4 * len(ARMS) * len(self.judge.block_numbers) * (1 + 5 * heads) + 2000

    def time_text(self, tokens: int) -> str:
        """Line of the plan on how long reading a number of tokens takes."""
        from selfprobe.probes.plan import duration_text

        if not tokens:
            return "nothing is left to read"
        seconds = tokens * 1.1 / self.tokens_per_second
        return f"about {duration_text(seconds)} (measured on one prompt)"

    @cached_property
    def tokens_per_second(self) -> float:
        """Tokens a second, by the longest prompt."""
        from selfprobe.mechanism.reading import tokens_a_second

        longest_dilemma = max(self.dilemmas, key=lambda item: item.longest)
        return tokens_a_second(self.judge, longest_dilemma.prompts["introspective"].prefix)

    def key(self, item: DilemmaItem, *settings: str) -> str:
        """A name for what the model makes of a dilemma: of its weights, its precision, all tokens,
        and further settings.
        """
        judge = self.judge
        prompts = [
            f"{arm}: {item.prompts[arm].prefix} {item.prompts[arm].contrast}" for arm in ARMS
        ]
        return digest(
            judge.revision, judge.precision, str(judge.block_numbers), *prompts, *settings
        )

    def stored_reading(self, item: DilemmaItem, *, patterns: bool) -> "DilemmaReading | None":
        """Stored reading of a dilemma; None where it is not enough."""
        from selfprobe.mechanism.reading import DilemmaReading

        arrays = stored_arrays(self.folder / "readings", self.key(item))
        if arrays is None:
            return None
        try:
            reading = DilemmaReading(**arrays)
        except TypeError:
            return None
        if patterns and not np.isfinite(reading.attention).any():
            return None
        return reading

    def pending_dilemmas(self, *, patterns: bool) -> list[DilemmaItem]:
        """Dilemmas that are still to be read."""
        return [
            item for item in self.dilemmas if self.stored_reading(item, patterns=patterns) is None
        ]

    def work(self, progress: Progress) -> None:
        """Read what is not in the folder yet.

        Raises:
            ValueError: The model cannot be read so; see `reading.checked_reading`.
        """
        self.claim_folder(self.state)
        with self.job_runner() as job_runner:
            self.read(job_runner, progress)

    def read(self, job_runner: "JobRunner", progress: Progress) -> None:
        """Read the dilemmas that are not in the folder, and their attention where that must be or
        can be done.
        """
        from selfprobe.mechanism.reading import NoPatterns

        try:
            self._read(job_runner, progress, patterns=True)
        except NoPatterns as error:
            if self.patterns:
                raise
            echo(f"read without attention: {error}", err=True)
            self._read(job_runner, progress, patterns=False)

    def _read(self, job_runner: "JobRunner", progress: Progress, *, patterns: bool) -> None:
        from selfprobe.mechanism.reading import checked_reading, read_in_context
        from selfprobe.probes.harvesting import Meter

        pending = self.pending_dilemmas(patterns=patterns)
        if not pending:
            return
        readings_folder = self.folder / "readings"
        dilemma_count = count_text(len(self.dilemmas), UNIT)
        progress(f"{len(pending)} of {dilemma_count} to read in {readings_folder}")
        longest_dilemma = max(pending, key=lambda item: item.longest)
        with checked_reading(self.judge, longest_dilemma, attention=patterns) as sharing:
            tokens = sum(item.tokens for item in pending)
            meter = Meter(tokens, len(pending), progress, "dilemmas")

            def reading_job(item: DilemmaItem) -> tuple[Any, ...]:
                return read_in_context, item, sharing, patterns

            first_prompt = pending[0].prompts["direct"]
            for item, reading in job_runner(self.judge, first_prompt, pending, reading_job):
                store_arrays(readings_folder, self.key(item), vars(reading))
                meter.add(item.tokens, 1)
        meter.finish()

    @cached_property
    def readings(self) -> "dict[str, DilemmaReading]":
        """Dilemma → what was read of it, where its logits are finite.

        Raises:
            ValueError: Too few are.
        """
        finite_readings = dict[str, "DilemmaReading"]()
        for item in self.dilemmas:
            reading = self.stored_reading(item, patterns=self.patterns)
            if reading is not None and np.isfinite(reading.lens).all():
                finite_readings[item.id] = reading
        if len(finite_readings) < FEWEST_DILEMMAS:
            raise ValueError(
                f"{self.judge.name} gives no finite logits: try --dtype float32 or bfloat16"
            )
        return finite_readings

    @property
    def clusters(self) -> dict[str, str]:
        """Dilemma → its independent unit: the column of ?cluster=, else its source, else itself."""
        ids = list[str]()
        sources = list[str]()
        for row in self.table.rows:
            ids.append(str(row["id"]))
            sources.append(str(row.get("cluster") or row.get("source") or row["id"]))
        labels, _ = resampling_units(sources, ids, [""] * len(ids))
        return dict(zip(ids, map(str, labels), strict=True))

    def tables_of(
        self, readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int]
    ) -> dict[str, pd.DataFrame]:
        """Tables of readings, by file stem."""
        clusters = [self.clusters[name] for name in readings]
        return {
            "lens": lens_table(readings, blocks, clusters),
            "partings": partings(readings, blocks, clusters),
        }

    def study_tables(self) -> dict[str, pd.DataFrame]:
        """The tables of this study."""
        return self.tables_of(self.readings, self.judge.block_numbers)

    def folder_content(self) -> "FolderContents":
        """Tables of this study and of those that the folder had."""
        folder_tables = tables_in(self.folder)
        study_tables = self.study_tables()
        if type(self) is not Lens:
            study_tables = with_fullest_lens(folder_tables, study_tables)
        notes = []
        unusable_count = len(self.dilemmas) - len(self.readings)
        if unusable_count:
            notes.append(
                f"{unusable_count} of {count_text(len(self.dilemmas), UNIT)} left out: logits that are "
                "not finite (NaN or infinite)."
            )
        return FolderContents(self.run_record, {**folder_tables, **study_tables}, notes)

    @classmethod
    def page(cls, contents: "FolderContents") -> Page:
        """The answer, with tables lens and partings."""
        frame = contents.tables["lens"]
        lens_rows: list[LensRow] = rows_of_frame(LensRow, frame, unit=UNIT)
        parting_rows: list[PartingRow] = rows_of_frame(
            PartingRow, contents.tables["partings"], unit=UNIT
        )
        parting_of = partings_by_comparison(parting_rows, lens_rows)
        claim = lens_claim(parting_of, lens_rows, contents.model)
        lines = _last_block_lines(lens_rows)
        arms_picture = by_block(
            "lens_arms",
            frame,
            ARM_NAMES,
            caption="Logit of A less that of B.",
            y_title="logit of A less that of B",
        )
        comparison_rows = []
        for comparison, title in COMPARISON_TITLES.items():
            parting = parting_of[comparison]
            row = parting.row
            place = parting.place_text or "–"
            comparison_rows.append(ComparisonRow(title, place, row.step, row.p))
        return contents.claim_page(
            "Does the model separate an introspective prompt from the direct question?",
            claim,
            LENS_WORDS,
            picture=_comparison_picture(frame, parting_of[Comparison.INTROSPECTIVE_LESS_DIRECT]),
            table=PageTable(comparison_rows, columns_of(ComparisonRow)),
            verdict_blocks=[*lines, LENS_LIMITS_NOTE],
            paper=[LENS_PAPER],
            further_figures=[Figures([arms_picture])],
            method=[STEP_METHOD],
            tables={
                "lens": RowTable(LensRow, lens_rows),
                "partings": RowTable(PartingRow, parting_rows),
            },
            terminal_lines=[*lines, LENS_PAPER, LENS_LIMIT],
        )


def _last_block_lines(lens_rows: "Sequence[LensRow]") -> list[str]:
    """Sentences on the paper's comparison and on what is left beside controls, after all blocks."""
    last_block = max(row.block for row in lens_rows)
    difference_of = {row.what: row.estimate for row in lens_rows if row.block == last_block}
    lines = []
    for comparison in (Comparison.INTROSPECTIVE_LESS_DIRECT, Comparison.INTROSPECTIVE_LESS_CONTROL):
        title = COMPARISON_TITLES[comparison].capitalize()
        difference = signed_interval(difference_of[comparison])
        lines.append(
            f"{title}, after block {last_block}: the logit of A less that of B differs by "
            f"{difference}."
        )
    return lines


def _comparison_picture(frame: pd.DataFrame, parting: "Parting") -> Picture:
    """Curves of the differences, with the blocks where introspective and direct part shaded."""
    caption = "95 % intervals."
    shaded_blocks = None
    if parting.lasts:
        caption = "95 % intervals; shaded: where introspective and direct part."
        shaded_blocks = (parting.row.earliest - 0.5, parting.row.latest + 0.5)
    return by_block(
        "lens",
        frame[frame.what.isin(list(COMPARISON_TITLES))],
        COMPARISON_TITLES,
        caption=caption,
        y_title="difference of the logit of A less that of B",
        shaded=shaded_blocks,
    )


@dataclass(frozen=True)
class FolderContents:
    """Contents of the folder."""

    state: Mapping[str, Any]
    """Settings of the run, from run.json."""
    tables: Tables
    notes: Sequence[str] = ()
    """Sentences on what was left out."""

    @property
    def model(self) -> str:
        """The model's name."""
        return cut_name(self.state["model"])

    @property
    def run_line(self) -> str:
        """Sentence on the run that the folder holds."""
        state = self.state
        return (
            f"{state['model']}, revision {state['revision']}, {state['precision']}; data set "
            f"{state['dataset']}; the answer is opened with “{state['opening']}”; selfprobe "
            f"{state['selfprobe']}."
        )

    def claim_page(
        self,
        title: str,
        claim: Claim,
        words: ClaimWords,
        *,
        picture: Picture,
        table: PageTable,
        tables: Mapping[str, RowTable],
        verdict_blocks: Sequence[Block],
        method: Sequence[Block],
        terminal_lines: Sequence[str],
        paper: Sequence[Block] = (),
        further_figures: Sequence[Block] = (),
    ) -> Page:
        """The page of a study of the folder, with its one claim; `verdict_blocks` stand under the claim's
        checks.

        The tables of the folder that are of other studies stay in its files.
        """
        other_tables = {name: table for name, table in self.tables.items() if name not in tables}
        page = claim_page(
            title,
            [claim],
            words,
            picture=picture,
            table=table,
            tables={**other_tables, **tables},
            method=[LENS_METHOD, *method, *self.notes],
            notes={claim.subject: verdict_blocks},
            paper=paper,
            further_figures=further_figures,
            terminal_lines=[*self.notes, *terminal_lines],
        )
        return replace(page, sections=[*page.sections, *headings(runs=[self.run_line])])


# ---- the claim


def shift_text(shift: Estimate, digits: int = 2, *, sign: bool = False) -> str:
    """A difference with its interval, or the reason of none."""
    return shift.reason if math.isnan(shift.value) else interval_text(shift, digits, sign=sign)


def amount_text(amount: Estimate) -> str:
    """A number of units, as "12 dilemmas", or the reason of none."""
    if math.isnan(amount.value):
        return amount.reason
    return count_text(int(amount.value), amount.unit)


LENS_WORDS = ClaimWords(
    yes=(
        "separates the introspective prompt from the direct one {place}, by {effect}; closest: "
        "{competitor}"
    ),
    no="moves the answer by less than {smallest} after every block: {effect}",
    explained="separates the introspective prompt by {effect}, no more than {competitor}",
    checks={
        "several_blocks": "read after several blocks",
        "change": "separating it from the direct question",
        "at_end": "separating it after the last block too",
        "beyond_text": "separating it from irrelevant text of equal length, to the last block",
        "beyond_other": "separating it from the same about another assistant, to the last block",
    },
    unmet={
        "several_blocks": "was read after one block alone",
        "change": (
            "is not shown to separate the introspective prompt from the direct one ({difference})"
        ),
        "at_end": (
            "separates the introspective prompt from the direct one {place}, not shown after the "
            "last ({difference})"
        ),
        "beyond_text": (
            "separates the introspective prompt from the direct one {place}, not shown from "
            "{competitor}"
        ),
        "beyond_other": (
            "separates the introspective prompt from the direct one {place}, not shown from "
            "{competitor}"
        ),
    },
    units={"several_blocks": amount_text},
    write=shift_text,
)


def lens_claim(
    parting_of: "Mapping[str, Parting]", lens_rows: "Sequence[LensRow]", subject: str
) -> Claim:
    """The claim that a model separates the introspective prompt from the direct question.

    Args:
        parting_of: Comparison → where its arms part.
        lens_rows: Differences after each block.
        subject: The model's name on the page.
    """
    parting = parting_of[Comparison.INTROSPECTIVE_LESS_DIRECT]
    if parting.row.is_shown:
        effect = magnitude(parting.row.step)
    else:
        effect = _largest_difference(lens_rows, Comparison.INTROSPECTIVE_LESS_DIRECT)

    block_count = len({row.block for row in lens_rows})
    checks = [
        _several_blocks_check(block_count),
        _parting_check("change", parting.row, lens_rows),
        _lasting_check("at_end", parting),
    ]
    controls = (
        ("beyond_text", Comparison.INTROSPECTIVE_LESS_CONTROL, Comparison.CONTROL_LESS_DIRECT),
        ("beyond_other", Comparison.INTROSPECTIVE_LESS_OTHER, Comparison.OTHER_LESS_DIRECT),
    )
    for check_name, comparison, control in controls:
        control_step = magnitude(parting_of[control].row.step)
        competitor = f"{CONTROL_NAMES[control]}: {number(control_step.value)}"
        compared = parting_of[comparison]
        check = _parting_check(check_name, compared.row, lens_rows, competitor=competitor)
        is_gone_at_end = parting.lasts and not compared.lasts
        if check.outcome is Outcome.HOLDS and is_gone_at_end:
            check = _lasting_check(check_name, compared, competitor=competitor)
        checks.append(check)
    place = parting.place_text if parting.lasts else "at some block"
    details = {"place": place}
    return Claim(subject, effect, tuple(checks), SMALLEST_SHIFT, details)


CONTROL_NAMES = {
    Comparison.CONTROL_LESS_DIRECT: "irrelevant text",
    Comparison.OTHER_LESS_DIRECT: "another assistant's prompt",
}


def _several_blocks_check(block_count: int) -> Check:
    block_estimate = Estimate(block_count, math.nan, math.nan, block_count, "block")
    if block_count > 1:
        return Check("several_blocks", block_estimate, Outcome.HOLDS)
    return Check("several_blocks", block_estimate, Outcome.OPEN, remedy="leave out --layers")


def _parting_check(
    name: str, parting: "PartingRow", lens_rows: "Sequence[LensRow]", *, competitor: str = ""
) -> Check:
    """Whether the arms of a pair part; the check of a control, which has a competitor, explains."""
    explains = bool(competitor)
    step = magnitude(parting.step)
    if parting.is_shown:
        return Check(name, step, Outcome.HOLDS, competitor, parting.p, explains=explains)

    largest = _largest_difference(lens_rows, parting.what)
    if largest.high < SMALLEST_SHIFT:
        return Check(name, largest, Outcome.FAILS, competitor, parting.p, explains=explains)

    if math.isnan(parting.p):
        reason = "nothing changes"
        if step.n < FEWEST_WITH_INTERVAL:
            reason = f"{step.n} independent {UNIT}s; {FEWEST_WITH_INTERVAL} are the least"
        step = undefined(reason, n=step.n, unit=UNIT)
    return Check(
        name,
        step,
        Outcome.OPEN,
        competitor,
        parting.p,
        explains=explains,
        remedy="add dilemmas",
    )


def _lasting_check(name: str, parting: "Parting", *, competitor: str = "") -> Check:
    """Whether the arms of a pair still differ after the last block, in the direction of the step."""
    outcome = parting.outcome_at_end
    remedy = remedy_unless_met(outcome, "add dilemmas")
    explains = bool(competitor)
    return Check(name, parting.at_end, outcome, competitor, explains=explains, remedy=remedy)


def magnitude(estimate: Estimate) -> Estimate:
    """A difference whose sign is of no interest, so that it is above 0."""
    return _turned(estimate) if estimate.value < 0 else estimate


def _turned(estimate: Estimate) -> Estimate:
    """A difference with its sign turned."""
    return replace(estimate, value=-estimate.value, low=-estimate.high, high=-estimate.low)


def _largest_difference(lens_rows: "Sequence[LensRow]", comparison: str) -> Estimate:
    """The difference that may be largest: if it is too small to matter, all of them are."""
    sizes = []
    for row in lens_rows:
        difference = row.estimate
        if row.what == comparison and not math.isnan(difference.low):
            largest_size = max(-difference.low, difference.high)
            sizes.append(
                replace(difference, value=abs(difference.value), low=0.0, high=largest_size)
            )
    if not sizes:
        return undefined("no difference has an interval", unit=UNIT)
    return max(sizes, key=lambda size: size.high)


# ---- tables of the folder


COMPARISON_HEADING = Heading("comparison", "Arm, or the first arm less the second.")


@dataclass(frozen=True)
class LensRow:
    """Logit of A less that of B after each block."""

    block: Annotated[int, BLOCK_HEADING]
    what: Annotated[str, COMPARISON_HEADING]
    estimate: Annotated[
        Estimate,
        Heading("logit of A less that of B", "Mean over dilemmas.", signed_interval),
    ]


def _block_text(block: float) -> str:
    return number(block, 0)


@dataclass(frozen=True)
class PartingRow:
    """Where the arms of each pair part."""

    what: Annotated[str, COMPARISON_HEADING]
    block: Annotated[
        float,
        Heading(
            "best step at block",
            "First block after the step that fits best; a dash where none is shown.",
            _block_text,
        ),
    ]
    earliest: Annotated[
        float,
        Heading(
            "after block", "Last block before the first rise that is not ruled out.", _block_text
        ),
    ]
    latest: Annotated[
        float,
        Heading("by block", "First block after the last rise that is not ruled out.", _block_text),
    ]
    step: Annotated[
        Estimate,
        Heading("step", "Size of the step that fits best.", signed_interval),
    ]
    p: Annotated[
        float,
        Heading("p", "p of no difference at any block: signs of dilemmas or sources.", p_digits),
    ]
    sharp_p: Annotated[
        float,
        Heading(
            "p of a wide rise",
            "Largest p of a rise over more than two gaps between blocks.",
            p_digits,
        ),
    ]

    @property
    def is_shown(self) -> bool:
        """Whether the arms are shown to differ."""
        return self.p < ALPHA

    @property
    def is_sharp(self) -> bool:
        """Whether they are shown to part at one block, give or take one."""
        return self.is_shown and self.sharp_p < ALPHA


@dataclass(frozen=True)
class Parting:
    """Where the arms of a pair part, and what is left of it after the last block."""

    row: PartingRow
    at_end: Estimate
    """Difference after the last block that was read, in the direction of the step."""

    @property
    def outcome_at_end(self) -> Outcome:
        """Outcome of the requirement that they differ there by an amount that matters."""
        largest_size = max(-self.at_end.low, self.at_end.high)
        if largest_size < SMALLEST_SHIFT:
            return Outcome.FAILS
        return outcome_if(self.at_end.low > 0)

    @property
    def lasts(self) -> bool:
        """Whether the arms are shown to differ, and to do so up to the last block."""
        return self.row.is_shown and self.outcome_at_end is Outcome.HOLDS

    @property
    def place_text(self) -> str:
        """Words for where they part; "" where they are not shown to."""
        if not self.row.is_shown:
            return ""
        if not self.lasts:
            return "not lastingly"
        if self.row.is_sharp:
            return f"at block {self.row.block:.0f}"
        if math.isnan(self.row.earliest):
            return "at some block"
        return f"between blocks {self.row.earliest:.0f} and {self.row.latest:.0f}"


def partings_by_comparison(
    parting_rows: Sequence[PartingRow], lens_rows: Sequence[LensRow]
) -> dict[str, Parting]:
    """Comparison → where its arms part."""
    last_block = max(row.block for row in lens_rows)
    last_difference_of = {row.what: row.estimate for row in lens_rows if row.block == last_block}
    no_difference = undefined("it is not in the table lens", unit=UNIT)
    parting_of = {}
    for row in parting_rows:
        at_end = last_difference_of.get(row.what, no_difference)
        if row.step.value < 0:
            at_end = _turned(at_end)
        parting_of[row.what] = Parting(row, at_end)
    return parting_of


@dataclass(frozen=True)
class ComparisonRow:
    """Where each pair of arms parts, in words."""

    comparison: Annotated[str, Heading("comparison", "The first instruction less the second.")]
    place: Annotated[
        str,
        Heading("parts", "Block, or blocks between which they part; a dash where none is shown."),
    ]
    step: Annotated[
        Estimate,
        Heading("by", "Size of the step that fits best.", signed_interval),
    ]
    p: Annotated[float, Heading("p", "p of no difference at any block.", p_digits)]


def arm(name: str) -> int:
    """The place of an arm in a reading's arrays."""
    return list(ARMS).index(name)


def mean_rows(
    make_row: Callable[..., Any],
    columns: Mapping[str, FloatArray],
    blocks: Sequence[int],
    clusters: Sequence[str],
) -> list[Any]:
    """One row for each of `columns  # [dilemma, layer]` and block, with its mean over dilemmas by
    cluster.
    """
    rows = []
    for comparison, values in columns.items():
        for block_index, block in enumerate(blocks):
            estimate = clustered_mean(values[:, block_index], clusters, unit=UNIT, interval="t")
            rows.append(make_row(block=block, what=comparison, estimate=estimate))
    return rows


def lens_table(
    readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int], clusters: Sequence[str]
) -> pd.DataFrame:
    """Rows of `LensRow`: the logit of A less that of B of each arm, and of each first arm less the
    second.
    """
    lens_by_dilemma = [reading.lens for reading in readings.values()]
    logit_differences = np.stack(lens_by_dilemma).astype(float)  # [dilemma, arm, layer]
    columns = {name: logit_differences[:, arm(name)] for name in ARMS}
    for first, second in COMPARED_ARMS:
        first_column, second_column = columns[first], columns[second]
        columns[f"{first} − {second}"] = first_column - second_column
    return RowTable(LensRow, mean_rows(LensRow, columns, blocks, clusters)).frame


def partings(
    readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int], clusters: Sequence[str]
) -> pd.DataFrame:
    """Rows of `PartingRow`: where the arms of each pair part."""
    cluster_of = dict(zip(readings, clusters, strict=True))
    names = sorted(readings)
    sorted_clusters = [cluster_of[name] for name in names]
    logit_differences = np.stack([readings[name].lens for name in names]).astype(float)
    rows = []
    for first, second in PARTED_PAIRS:
        differences = logit_differences[:, arm(first)] - logit_differences[:, arm(second)]
        rows.append(parting_row(f"{first} − {second}", differences, blocks, sorted_clusters))
    return RowTable(PartingRow, rows).frame


def parting_row(
    comparison: str, differences: FloatArray, blocks: Sequence[int], clusters: Sequence[str]
) -> PartingRow:
    """Where a difference arises, from `differences  # [dilemma, layer]`."""
    rng = np.random.default_rng(0)
    rise: Rise = rise_in(differences, blocks, clusters, rng=rng, from_zero=True, unit=UNIT)
    return PartingRow(
        what=comparison,
        block=rise.place if rise.is_change else math.nan,
        earliest=rise.earliest,
        latest=rise.latest,
        step=rise.step,
        p=rise.change_p,
        sharp_p=rise.sharp_p,
    )


def by_block(
    stem: str, rows: pd.DataFrame, titles: Mapping[str, str], *, caption: str, **settings: Any
) -> Picture:
    """Curves over blocks, a line for each `what` of a table that has a title; `settings` are those
    of `curves`.
    """
    lines = {}
    for comparison, title in titles.items():
        rows_of_line = rows[rows.what == comparison]
        if len(rows_of_line):
            lines[title] = (list(rows_of_line.block), list(rows_of_line.itertuples()))
    return curves(
        stem,
        lines,
        caption=caption,
        x_title="block",
        marks=rows.block.nunique() < 20,
        alt=f"{stem}: {caption}",
        **settings,
    )


def block_of(tables: Tables, name: str = "lens") -> tuple[int, str]:
    """The block of the table `name` to show, and why: where introspective and direct run part, or
    the last.
    """
    lens_rows: list[LensRow] = rows_of_frame(LensRow, tables["lens"], unit=UNIT)
    parting_rows: list[PartingRow] = rows_of_frame(PartingRow, tables["partings"], unit=UNIT)
    parting_of = partings_by_comparison(parting_rows, lens_rows)
    parting = parting_of[Comparison.INTROSPECTIVE_LESS_DIRECT]
    read_blocks = tables[name].block
    if not parting.row.is_shown:
        reason = "the runs are not shown to part"
    elif not parting.lasts:
        reason = "the runs differ at some block and are not shown to up to the last"
    elif (read_blocks == parting.row.block).any():
        return int(parting.row.block), "where direct and introspective runs part"
    else:
        reason = f"that where the runs part, {parting.row.block:.0f}, was not"
    return int(read_blocks.max()), f"the last that was read, as {reason}"


def tables_in(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of a folder."""
    return {file.stem: pd.read_csv(file) for file in sorted((folder / "tables").glob("*.csv"))}


def with_fullest_lens(folder_tables: Tables, study_tables: Tables) -> dict[str, pd.DataFrame]:
    """`study_tables`, its lens in place of the folder's only where that has not all of its blocks,
    or fewer dilemmas.

    A trial of `patch` on 20 dilemmas is not to take the figure of 150 away, nor where their runs
    part.
    """
    if not {"lens", "partings"} <= folder_tables.keys():
        return dict(study_tables)
    folder_lens = folder_tables["lens"]
    study_lens = study_tables["lens"]
    has_all_blocks = set(folder_lens.block) >= set(study_lens.block)
    has_fewer_dilemmas = folder_lens.n.max() < study_lens.n.max()
    if not has_all_blocks or has_fewer_dilemmas:
        return dict(study_tables)
    kept_tables = {name: folder_tables[name] for name in ("lens", "partings")}
    return {**study_tables, **kept_tables}
