"""Logit lens: after which block does an introspective prompt change the answer? (Paper 003, §5.2, Figure 5)

The module also has what `attention` and `patch` share: dilemmas under four instructions, readings of each, and the page
of the folder. The folder holds:

    run.json                what it is of: model, revision, precision, data set, opening
    readings/KEY.npz        a dilemma's `DilemmaReading`
    tables/, figures/, index.html    what the studies made of it
"""

import io
import math
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from selfprobe.data import Table, load
from selfprobe.data.pairs import digest
from selfprobe.errors import InputError
from selfprobe.errors.output import place
from selfprobe.mechanism.prompts import ARMS, OPENING, TOLD, Item, dilemma_items
from selfprobe.page import (
    Answer,
    Column,
    Details,
    Figures,
    Finding,
    Page,
    Picture,
    estimated,
    headings,
    number,
    overall_answer,
    p_digits,
    p_value,
    percent,
    shown,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.plots import curves, cut_name
from selfprobe.stats.estimate import clustered_mean
from selfprobe.study.local import Blocks, Progress, SpreadStudy
from selfprobe.text.safe import echo

if TYPE_CHECKING:
    from selfprobe.mechanism.reading import DilemmaReading
    from selfprobe.probes.forward import Spread

FloatArray = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]
Tables = Mapping[str, pd.DataFrame]

PAIRS = (("introspective", "direct"), ("control", "direct"), ("introspective", "control"), ("introspective", "other"))
"""Pairs of arms that are compared, first less second: the paper's, what an irrelevant text does, and what is left
beside controls."""
PAPER_FIRST, CONTROL_FIRST, LEFT, OTHER = (f"{a} − {b}" for a, b in PAIRS)
COMPARED = {
    PAPER_FIRST: "introspective less direct (the paper's)",
    CONTROL_FIRST: "irrelevant text less direct",
    LEFT: "introspective less irrelevant text (what is left)",
    OTHER: "introspective less another assistant's",
}
RESAMPLES = 2000
FEWEST = 2
"""Smallest number of dilemmas with an interval."""
SHOWABLE = 6
"""Smallest number of dilemmas whose random signs can give a p below .05 (2 / 2⁶ is). A bootstrapped interval needs as
many."""
UNIT = "dilemma"
METHOD = (
    "A dilemma is read up to the word A or B under four instructions: the direct question, the introspective prompt "
    "(predict what you will conclude), an irrelevant text of exactly as many tokens, and the prediction about another "
    "assistant. Numbers are means over dilemmas with 95 % intervals."
)
STEP = (
    "The block where runs part is the one step that fits the size of the difference best, which is the middle of a "
    "slow rise and not the first block that differs. p draws random signs of whole dilemmas."
)
NOT = "It does not show introspection: any instruction that moves the answer parts from the direct question somewhere."
WHY_NOT = (
    "A block where they part says about where the instruction comes to matter for the next word, as the output layer "
    f"reads it. {NOT} States of middle blocks are read through a norm that was not made for them."
)
PAPER = "Paper: block 60 of the 64 of Qwen3-32B, by eye, in one dilemma."


class Lens(SpreadStudy):
    """At which block do direct and introspective runs part? Logit of A less that of B after every block (Figure 5)."""

    patterns: ClassVar[bool] = False
    """Whether attention must be read; otherwise it is read where that can be done."""

    dataset: str = Field(
        "ethical_dilemmas",
        description="Dilemmas: bundled, a file or hf:…, with a column dilemma that names Option A and Option B.",
    )
    opening: str = Field(OPENING, description="Beginning of the answer, before A or B.")
    layers: Blocks = Field("", description="Blocks that are read, as 8,16,24 or 0-31:4, from 0. Default: all.")
    out: str = Field("mechanism", description="Folder of what is read, the tables and the page.")

    @cached_property
    def table(self) -> Table:
        """The dilemmas."""
        table = load(self.dataset, "dilemma", ("axes",))
        return replace(table, rows=table.first(self.limit)) if self.limit else table

    @cached_property
    def prepared(self) -> tuple[list[Item], dict[str, str]]:
        """The dilemmas as the model's tokens, and why others cannot be read.

        Raises:
            InputError: Too few can be read.
        """
        table, judge = self.table, self.judge
        read, unread = dilemma_items(
            judge.tokenizer, table, opening=self.opening, chat=judge.chat, context=judge.context
        )
        if len(read) < FEWEST:
            why = f" ({next(iter(unread.values()))})" if unread else ""
            raise InputError(
                f"{len(read)} of {len(table.rows)} dilemmas can be read{why}; expected at least {FEWEST}: give more or "
                "shorter ones, or a larger --limit"
            )
        return read, unread

    @property
    def dilemmas(self) -> list[Item]:
        """The dilemmas that can be read."""
        return self.prepared[0]

    @property
    def state(self) -> dict[str, Any]:
        """Settings that the folder belongs to."""
        judge, table = self.judge, self.table
        return {
            "model": judge.name,
            "revision": judge.revision,
            "precision": judge.precision,
            "dataset": table.name,
            "dataset_sha256": table.sha256,
            "opening": self.opening,
            "system": judge.chat.system,
            "arguments": dict(judge.chat.arguments),
        }

    @property
    def needs(self) -> list[str]:
        """Dilemmas, tokens, time, memory and disk of what is still to be read.

        Raises:
            InputError: The disk has no room for it, or the folder holds another run.
        """
        from selfprobe.mechanism.reading import memory
        from selfprobe.probes.model import size

        unread = self.prepared[1]
        self.claim(self.state, dry=True)
        judge, todo = self.judge, self.todo(patterns=True)
        tokens = sum(item.tokens for item in todo)
        heads = int(getattr(judge.model.config.get_text_config(), "num_attention_heads", 0))
        disk = len(todo) * (4 * len(ARMS) * len(judge.numbers) * (1 + 5 * heads) + 2000)
        free = shutil.disk_usage(next(p for p in (self.folder, *self.folder.absolute().parents) if p.exists())).free
        if disk > free:
            raise InputError(
                f"{size(disk)} are to be written to {self.out}, and {size(free)} are free: take another --out"
            )
        held, besides = memory(judge, max(item.longest for item in self.dilemmas))
        more = " …" * (len(unread) > 1)
        return [
            f"{judge.name}: {len(judge.blocks)} blocks of width {judge.d_model}",
            f"Dilemmas: {len(self.dilemmas)}, {len(unread)} cannot be read, {len(self.dilemmas) - len(todo)} on disk",
            *(f"Not read: {name}: {why}{more}" for name, why in list(unread.items())[:1]),
            f"To do: {tokens:,} tokens (what the arms of a dilemma share is read once)",
            f"Memory: weights {size(held)}, about {size(besides)} besides",
            f"Disk: {size(disk)} to write ({size(free)} free)",
            f"Time: {self.time(tokens)}",
        ]

    def time(self, tokens: int) -> str:
        """Line of the plan on how long reading a number of tokens takes."""
        from selfprobe.probes.plan import span

        return (
            f"about {span(tokens * 1.1 / self.rate)} (measured on one prompt)" if tokens else "nothing is left to read"
        )

    @cached_property
    def rate(self) -> float:
        """Tokens a second, by the longest prompt."""
        from selfprobe.mechanism.reading import tokens_a_second

        longest = max(self.dilemmas, key=lambda item: item.longest)
        return tokens_a_second(self.judge, longest.prompts["introspective"].prefix)

    def key(self, item: Item, *more: str) -> str:
        """A name for what the model makes of a dilemma: of its weights, its precision, all tokens, and `more`."""
        tokens = [f"{arm}: {item.prompts[arm].prefix} {item.prompts[arm].contrast}" for arm in ARMS]
        judge = self.judge
        rounded = () if str(judge.dtype) == "torch.float32" else ("logits in float32",)  # they were rounded before 0.3
        return digest(judge.revision, judge.precision, str(judge.numbers), *tokens, *rounded, *more)

    def held_reading(self, item: Item, *, patterns: bool) -> "DilemmaReading | None":
        """Stored reading of a dilemma; None where it is not enough."""
        from selfprobe.mechanism.reading import DilemmaReading

        try:
            reading = DilemmaReading(**(stored_arrays(self.folder / "readings", self.key(item)) or {}))
        except TypeError:
            return None
        return None if patterns and not np.isfinite(reading.attention).any() else reading

    def todo(self, *, patterns: bool) -> list[Item]:
        """Dilemmas that are still to be read."""
        return [item for item in self.dilemmas if self.held_reading(item, patterns=patterns) is None]

    def work(self, progress: Progress) -> None:
        """Read what is not in the folder yet.

        Raises:
            ValueError: The model cannot be read so; see `reading.checked_reading`.
        """
        self.claim(self.state)
        with self.spread() as spread:
            self.read(spread, progress)

    def read(self, spread: "Spread", progress: Progress) -> None:
        """Read the dilemmas that are not in the folder, and their attention where that must be or can be done."""
        from selfprobe.mechanism.reading import NoPatterns

        try:
            self._read(spread, progress, patterns=True)
        except NoPatterns as error:
            if self.patterns:
                raise
            echo(f"read without attention: {error}", err=True)
            self._read(spread, progress, patterns=False)

    def _read(self, spread: "Spread", progress: Progress, *, patterns: bool) -> None:
        from selfprobe.mechanism.reading import checked_reading, read_in_context
        from selfprobe.probes.harvesting import Meter

        if todo := self.todo(patterns=patterns):
            progress(f"{len(todo)} of {len(self.dilemmas)} dilemmas to read in {self.folder / 'readings'}")
            with checked_reading(self.judge, max(todo, key=lambda item: item.longest), attention=patterns) as sharing:
                meter = Meter(sum(item.tokens for item in todo), len(todo), progress, "dilemmas")
                prompt = todo[0].prompts["direct"]
                for item, reading in spread(
                    self.judge, prompt, todo, lambda item: (read_in_context, item, sharing, patterns)
                ):
                    store_arrays(self.folder / "readings", self.key(item), vars(reading))
                    meter.add(item.tokens, 1)
            meter.finish()

    @cached_property
    def readings(self) -> "dict[str, DilemmaReading]":
        """Dilemma → what was read of it, where its logits are finite.

        Raises:
            ValueError: Too few are.
        """
        read = {item.id: self.held_reading(item, patterns=self.patterns) for item in self.dilemmas}
        finite = {name: one for name, one in read.items() if one is not None and np.isfinite(one.lens).all()}
        if len(finite) < FEWEST:
            raise ValueError(f"{self.judge.name} gives no finite logits: try --dtype float32 or bfloat16")
        return finite

    @classmethod
    def tabulated(cls, readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int]) -> dict[str, pd.DataFrame]:
        """Tables of readings, by file stem."""
        return {"lens": _lens_table(readings, blocks), "partings": partings(readings, blocks)}

    def study_tables(self) -> dict[str, pd.DataFrame]:
        """The tables of this study."""
        return self.tabulated(self.readings, self.judge.numbers)

    def found(self) -> "Found":
        """Tables of this study and of those that the folder had."""
        before, made = tables_in(self.folder), self.study_tables()
        made = made if type(self) is Lens else with_fullest_lens(before, made)
        bad = len(self.dilemmas) - len(self.readings)
        notes = [f"{bad} of {len(self.dilemmas)} dilemmas are left out: their logits are not finite (NaN or infinite)."]
        return Found(self.held, {**before, **made}, notes[: bool(bad)])

    @classmethod
    def page(cls, found: "Found") -> Page:
        """The answer, with tables lens and partings."""
        lens, parts = found.tables["lens"], found.tables["partings"].set_index("what")
        end = int(lens.block.max())
        last = lens[lens.block == end].set_index("what")
        answer, clause = _answer(parts, lens)
        after = f"after block {end}: the logit of A less that of B differs by"
        by = [
            f"{COMPARED[what].capitalize()}, {after} {shown(last.loc[what], sign=True)}."
            for what in (PAPER_FIRST, LEFT)
        ]
        differences = lens[lens.what.isin(list(COMPARED))]
        wide = [dict(rows.set_index("what").iterrows()) | {"block": block} for block, rows in lens.groupby("block")]
        all_columns = [Column("block", "block", str, "n"), *(estimated(w, w) for w in dict.fromkeys(lens.what))]
        rows = [{"comparison": title, "after": last.loc[what], **parts.loc[what]} for what, title in COMPARED.items()]
        columns = [Column("comparison", "comparison"), Column("parts at block", pd.Series, _at, "e")]
        columns.append(Column("p", "p", p_digits))
        more = [estimated(f"difference after block {end}", "after"), Column("step explains", "fit", percent)]
        more.append(Column("dilemmas", "n", partial(number, digits=0)))
        arms = by_block("lens_arms", lens, TOLD, caption="Logit of A less that of B.", up="logit of A less that of B")
        step = parts.loc[PAPER_FIRST]
        parted = not math.isnan(step.block)
        picture = by_block(
            "lens",
            differences,
            COMPARED,
            caption=f"95 % intervals{'; shaded: where introspective and direct part' * parted}.",
            up="difference of the logit of A less that of B",
            shaded=(step.low - 0.5, step.high + 0.5) if parted else None,
        )
        return found.page(
            "Does the model separate an introspective prompt from the direct question?",
            Finding(found.model, answer, clause, parts, [*by, PAPER, NOT]),
            picture=picture,
            table=PageTable(rows, columns),
            why=[*by, PageTable(rows, [columns[0], *more]), WHY_NOT],
            paper=[PAPER],
            cells=[Figures([arms]), Details("By block", [PageTable(wide, all_columns)])],
            method=[STEP],
            tables=("lens", "partings"),
        )


@dataclass(frozen=True)
class Found:
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

    def page(
        self, title: str, finding: Finding, *, picture: Picture, table: PageTable, tables: Sequence[str], **more: Any
    ) -> Page:
        """The page of a study of the folder; `more` is what stands under its headings."""
        answer, lines = overall_answer([replace(finding, notes=[*self.notes, *finding.notes])])
        state = self.state
        of = (
            f"{state['model']}, revision {state['revision']}, {state['precision']}; data set {state['dataset']}; the "
            f"answer is opened with “{state['opening']}”; selfprobe {state['selfprobe']}."
        )
        method = [METHOD, *more.pop("method", ()), *self.notes]
        return Page(
            title,
            answer=answer,
            picture=picture,
            table=table,
            sections=headings(**more, method=method, runs=[of]),
            tables={name: self.tables[name] for name in tables},
            notes=lines,
        )


def _answer(parts: pd.DataFrame, lens: pd.DataFrame) -> tuple[Answer, str]:
    paper, left = parts.loc[PAPER_FIRST], parts.loc[LEFT]
    if paper.n < SHOWABLE:
        return "Cannot tell", f"cannot be shown to part by {int(paper.n)} dilemmas ({SHOWABLE} or more can)"
    if lens.block.min() == lens.block.max():
        return "Cannot tell", f"was read after block {int(lens.block.min())} alone"
    if math.isnan(paper.block):
        return "Cannot tell", f"is not shown to separate them at any block ({p_value(paper.p)})"
    direct = f"separates the introspective prompt from the direct one at block {_at(paper)}"
    if math.isnan(left.block):
        return "Cannot tell", f"{direct}, and is not shown to separate it from irrelevant text"
    return "Yes", f"{direct}, from equally long irrelevant text at {_at(left)}"


def _at(found: Any) -> str:
    return "–" if pd.isna(found.block) else f"{found.block:.0f} [{found.low:.0f}, {found.high:.0f}]"


def by_block(stem: str, rows: pd.DataFrame, names: Mapping[str, str], *, caption: str, **more: Any) -> Picture:
    """Curves over blocks, a line for each `what` of a table."""
    lines = {
        title: (list(mine.block), list(mine.itertuples()))
        for what, title in names.items()
        if len(mine := rows[rows.what == what])
    }
    return curves(
        stem, lines, caption=caption, across="block", marks=rows.block.nunique() < 20, alt=f"{stem}: {caption}", **more
    )


def block_of(tables: Tables, name: str = "lens") -> tuple[int, str]:
    """The block of the table `name` to show, and why: where introspective and direct run part, or the last."""
    found, there = tables["partings"].set_index("what").loc[PAPER_FIRST].block, tables[name].block
    if (there == found).any():
        return int(found), "where direct and introspective runs part"
    why = "the runs are not shown to part" if pd.isna(found) else f"that where the runs part, {found:.0f}, was not"
    return int(there.max()), f"the last that was read, as {why}"


def tables_in(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of a folder."""
    return {file.stem: pd.read_csv(file) for file in sorted((folder / "tables").glob("*.csv"))}


def with_fullest_lens(before: Tables, made: Tables) -> dict[str, pd.DataFrame]:
    """`made`, its lens in place of the folder's only where that has not all of its blocks, or fewer dilemmas.

    A trial of `patch` on 20 dilemmas is not to take the figure of 150 away, nor where their runs part.
    """
    if not {"lens", "partings"} <= before.keys():
        return dict(made)
    old, new = before["lens"], made["lens"]
    if not set(old.block) >= set(new.block) or old.n.max() < new.n.max():
        return dict(made)
    return {**made, **{name: before[name] for name in ("lens", "partings")}}


def stored_arrays(folder: Path, name: str) -> Arrays | None:
    """Arrays that are kept under a name; None where nothing is, or it was cut off."""
    try:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            return {array: file[array] for array in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def store_arrays(folder: Path, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Keep arrays under a name; the file appears whole or not at all."""
    content = io.BytesIO()
    np.savez(content, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    place({f"{name}.npz": content.getvalue()}, str(folder))


@dataclass(frozen=True)
class Parting:
    """Block where two arms part: the single step that fits the size of the mean difference over layers best."""

    block: float
    """The first block after the step, from 0; NaN where they are not shown to differ at any, or one alone was read."""
    low: float
    high: float
    """Ends of the 95 % bootstrap interval over dilemmas."""
    p: float
    """p under no difference at any block: random signs of whole dilemmas, the largest of all blocks."""
    n: int
    fit: float = math.nan
    """Share of the squares between blocks that the step explains: 1 is a clean step."""


def arm(name: str) -> int:
    """The place of an arm in a reading's arrays."""
    return list(ARMS).index(name)


def _means_of(columns: Mapping[str, FloatArray], names: Sequence[str], blocks: Sequence[int]) -> pd.DataFrame:
    """block, what, value, low, high, n: means of `columns  # [dilemma, layer]`, clustered by dilemma."""
    return pd.DataFrame(
        {"block": block, "what": what} | asdict(clustered_mean(by[:, at], names, unit=UNIT, interval="t"))
        for what, by in columns.items()
        for at, block in enumerate(blocks)
    )


def _lens_table(readings: "Mapping[str, DilemmaReading]", numbers: Sequence[int]) -> pd.DataFrame:
    """`_means_of` the logit of A less that of B: of each arm, and of each `a − b`."""
    values = np.stack([reading.lens for reading in readings.values()]).astype(float)  # [dilemma, arm, layer]
    columns = {name: values[:, arm(name)] for name in ARMS}
    columns |= {f"{a} − {b}": values[:, arm(a)] - values[:, arm(b)] for a, b in PAIRS}
    return _means_of(columns, list(readings), numbers)


def partings(readings: "Mapping[str, DilemmaReading]", numbers: Sequence[int]) -> pd.DataFrame:
    """what, block, low, high, p, n, fit: the block where the arms of each pair part."""
    values = np.stack([readings[name].lens for name in sorted(readings)]).astype(float)
    rows = []
    for a, b in PAIRS:
        found = parting(values[:, arm(a)] - values[:, arm(b)], numbers, rng=np.random.default_rng(0))
        rows.append({"what": f"{a} − {b}"} | asdict(found))
    return pd.DataFrame(rows)


def parting(differences: FloatArray, numbers: Sequence[int], *, rng: np.random.Generator) -> Parting:
    """The step in the size of the mean of `differences  # [dilemma, layer]`: least squares of two constants (Bai 1997).

    The size is taken since the sign may change from block to block. A size that rises slowly has its step in the middle
    of the rise. p draws the signs of whole dilemmas, which keeps how blocks go together; the interval draws dilemmas.
    """
    n, layers = differences.shape
    if n < 2:
        return Parting(math.nan, math.nan, math.nan, math.nan, n)
    length = np.sqrt((differences**2).mean(axis=0))
    scaled_down = differences / np.where(length > 0, length, 1.0)
    signs = rng.choice([-1.0, 1.0], size=(RESAMPLES, n))
    largest = np.abs(scaled_down.mean(axis=0)).max()
    chance = np.abs(signs @ scaled_down / n).max(axis=1)
    p = float((1 + np.count_nonzero(chance >= largest * (1 - 1e-9))) / (1 + RESAMPLES))
    if p > 0.05 or layers < 2:
        return Parting(math.nan, math.nan, math.nan, p, n)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) @ differences / n
    curve = np.abs(differences.mean(axis=0))
    at = int(_step(curve[None])[0])
    left = at * curve[:at].var() + (layers - at) * curve[at:].var()
    fit = float(1 - left / (layers * curve.var())) if curve.var() > 0 else math.nan
    low, high = np.quantile(_step(np.abs(drawn)), [0.025, 0.975], method="nearest")
    return Parting(numbers[at], numbers[int(low)], numbers[int(high)], p, n, fit)


def _step(curves: FloatArray) -> npt.NDArray[np.intp]:
    """First layer after the step that explains most squares, of each of `curves  # [curve, layer]`."""
    layers = curves.shape[1]
    before = np.cumsum(curves, axis=1)[:, :-1]
    total = curves.sum(axis=1, keepdims=True)
    size = np.arange(1, layers)
    return 1 + np.asarray((before**2 / size + (total - before) ** 2 / (layers - size)).argmax(axis=1))
