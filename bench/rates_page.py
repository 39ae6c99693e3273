"""Tables and pictures of the counts of bench/verdict.py."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import special

from selfprobe.page.plots import GRID, INK, MUTED, OTHERS, SELF

Counts = Mapping[str, Mapping[str, int]]
BEFORE: Mapping[str, Sequence[int]] = json.loads(
    (Path(__file__).parent / "before.json").read_text()
)
"""Line and size → supported matrices and all, under the rule before version 0.3."""
LIMIT = 0.05
COVER = 0.93, 0.97
KINDS = ("Yes", "Cannot tell", "No")
KINDS_AT = ((5, 100),)
"""Sizes of which every verdict is shown."""
PARTS = ("null", "real", "sibling", "access", "open", "learner", "detects", "interval")
"""The tables, in the order in which they are drawn."""
COLOURS = (MUTED, OTHERS, SELF, INK)
MARKERS = "osD^v"
INTRO = """## How often the verdict is right

Matrices were drawn of which it is known who has access to itself; no model ran. `truths.py` in `tests/matrix` holds the
truths, `intervals.py` those of the intervals.

    python bench/verdict.py --out rates --matrices 1000   # draws; stopped and started again, it goes on
    python bench/verdict.py --out rates --plot docs       # its pictures, and docs/verdict_rates.md
    python docs/parts.py verdict docs/verdict_rates.md    # puts that file into docs/statistics.md, and removes it

A column is models × items. A cell is the share in percent, its 95 % interval (Clopper–Pearson), and after the slash the
number of matrices; 0/200 is [0–1.83], 0/100 [0–3.62], 0/40 [0–8.81]; "–" was not drawn. After "before": the same of the
rule before version 0.3 (`bench/before.json`), over the first matrices of the same draws. Each matrix is alone in its
report, so Holm's correction is over its models.
"""
NULLS = """### Nulls: "supported" though nobody has access

At most 5 % is what the verdict promises, where pairs of models differ on one of its scales by roughly normal amounts, a
model's own among them. Bold: the whole interval is above 5 %.
"""
REALS = """### Nulls of real words

A model's predictions of itself are the first word, or the first three, of another real model of another family, outside
the matrix: nobody has access, and models are as similar as real ones. 62 models, 805 instructions.
"""
SIBLINGS = """### Words of a sibling

The same with the words of a model of the same family, which no other model of the matrix belongs to. They stand for
access.
"""
ACCESS = """### Access: "supported" where somebody has it

"Access .4": a model knows .4 of its answers beside what skill gives; in brackets the same in points, the mean over
those who have it. "Wrong" counts matrices that also name a model without access. A weak model that knows itself can
look like a stranger to similar models, and is then "cannot tell" without an informed observer. Shuffled observers cost
most where weak models know themselves: of 100 matrices of "access .4 of two, graded (+.189), logistic" at 8 × 100 the
test of pairs alone names somebody in 90, and the shuffling withdraws 24 of them.
"""
KINDS_TEXT = """### Every verdict, at {models} models and {items} items

Percent of the first {told} matrices of a line at most.
"""
DETECTS = """### The stated detectable advantage

The middle model of a matrix gets the advantage that such a matrix says it would see in 80 % ("An advantage of … of one
model would have been seen": the median of 20 matrices without access), and .02 less and more. "Stated" is that
advantage; "none" where a matrix says that none would be seen, or one that the score has no room for.
"""
LEARNERS = """### An informed observer that learns imperfectly

The first model has a habit that nothing but examples can show, and is right on itself in .77 of the items; without
examples every cell is .30. Nobody has access. The informed observer learns a share of the habit. The verdict asks
whether the model beats it, not by how much: a learner of less than all leaves the model "supported" as soon as there
are enough items.
"""
OPEN = """### What the verdict does not claim to pass

A family and a single outsider, whose cells are those of a weak model that knows itself; a likeness of few pairs; a
model without a twin beside pairs of twins; habits that depend on something in the question that no baseline sees. The
informed observer and a relative in the matrix are the controls.
"""
INTERVALS = """### 95 % intervals that hold the truth

A column is items. Percent of intervals, with the interval of that share and the number. .93 to .97 is asked for; bold:
the whole interval is outside.
"""


@dataclass(frozen=True)
class Share:
    """How many of how many."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        """The share; NaN of none."""
        return self.hits / self.n if self.n else np.nan

    @property
    def low(self) -> float:
        """Lower end of Clopper and Pearson's 95 % interval."""
        if not self.hits:
            return 0.0
        return float(special.betaincinv(self.hits, self.n - self.hits + 1, 0.025))

    @property
    def high(self) -> float:
        """Upper end."""
        if self.hits >= self.n:
            return 1.0
        return float(special.betaincinv(self.hits + 1, self.n - self.hits, 0.975))

    @property
    def plain(self) -> str:
        """In percent, with the number."""
        return f"{100 * self.value:.3g}/{self.n:,}"

    def shown(self, *, bold: bool = False) -> str:
        """In percent, with interval and number.

        >>> Share(20, 100).shown()
        '20 [13–29.2]/100'
        """
        text = self.plain
        if self.hits:
            interval = f"[{100 * self.low:.2g}–{100 * self.high:.3g}]"
            text = f"{100 * self.value:.3g} {interval}/{self.n:,}"
        return f"**{text}**" if bold else text


@dataclass(frozen=True)
class Cell:
    """A line at a size, and what was counted."""

    part: str
    name: str
    models: int
    items: int
    counts: Mapping[str, int]

    @property
    def share(self) -> Share:
        """Of intervals those that hold the truth, of matrices those that are supported or name the
        model.
        """
        counted = "intervals" if self.part == "interval" else "matrices"
        return Share(self.counts.get("named", 0), self.counts.get(counted, 0))

    @property
    def short_name(self) -> str:
        """Name without its part."""
        return self.name.removeprefix("null, ").removeprefix("open, ")

    @property
    def size(self) -> str:
        """Models × items."""
        return f"{self.models} × {self.items}"

    @property
    def before(self) -> Sequence[int]:
        """Supported matrices and all under the rule before; empty where it was not tried."""
        return BEFORE.get(f"{self.part} | {self.name} | {self.models} | {self.items}", ())


@dataclass(frozen=True)
class PageSection:
    """One table of the page with its picture."""

    part: str
    head: str
    label: str
    """What a share of matrices is."""
    limit: float | None
    """Largest share that the verdict promises; None where there is none."""


SECTIONS = (
    PageSection("null", NULLS, "supported without access", LIMIT),
    PageSection("real", REALS, "supported without access, real words", LIMIT),
    PageSection("sibling", SIBLINGS, "supported, a sibling's words", None),
    PageSection("access", ACCESS, "supported with access", None),
    PageSection("learner", LEARNERS, "supported without access, beside a learner", LIMIT),
    PageSection("open", OPEN, "supported without access", LIMIT),
)


def write(counts: Counts, folder: Path) -> str:
    """The page, which is also written to the folder with its pictures.

    Args:
        counts: "part | name | models | items" → what was counted.
        folder: Made if it is not there.
    """
    cells: list[Cell] = []
    for key, counts_of_cell in counts.items():
        part, name, models, items = key.split(" | ")
        cells.append(Cell(part, name, int(models), int(items), counts_of_cell))
    folder.mkdir(parents=True, exist_ok=True)

    texts = [INTRO]
    for section in SECTIONS:
        section_cells = [cell for cell in cells if cell.part == section.part]
        if section_cells:
            texts += _section_texts(section, section_cells, folder)
        if section.part == "access":
            texts += _verdict_tables([cell for cell in cells if cell.part in ("null", "access")])

    detects_cells = [cell for cell in cells if cell.part == "detects"]
    if detects_cells:
        _picture(
            detects_cells,
            folder / "verdict_detects.png",
            "share of matrices that name the model",
            _size,
            lines=[0.8],
        )
        texts += [
            DETECTS,
            _detects_table(detects_cells),
            "![named at the stated advantage, and beside it](verdict_detects.png)\n",
        ]

    interval_cells = [cell for cell in cells if cell.part == "interval"]
    if interval_cells:
        label = "share of 95 % intervals that hold the truth"
        _picture(interval_cells, folder / "verdict_interval.png", label, _items, lines=COVER)
        texts += [
            INTERVALS,
            _table_by_size(interval_cells, _items, _misses_coverage),
            f"![{label}, by quantity and items](verdict_interval.png)\n",
        ]

    page = "\n".join(text for text in texts if text).rstrip() + "\n"
    (folder / "verdict_rates.md").write_text(page)
    return page


def _section_texts(section: PageSection, cells: Sequence[Cell], folder: Path) -> list[str]:
    """Heading, summary, table and link of one section, whose picture is drawn."""
    picture_name = f"verdict_{section.part}.png"
    _picture(
        cells,
        folder / picture_name,
        f"share of matrices {section.label}",
        _size,
        lines=[section.limit or 0.8],
    )
    is_above_limit = _above(section.limit)
    summary = ""
    if section.part in ("null", "real"):
        summary = _summary(cells, is_above_limit)
    return [
        section.head,
        summary,
        _table_by_size(cells, _size, is_above_limit),
        f"![{section.label}, by line and size]({picture_name})\n",
    ]


def _size(cell: Cell) -> str:
    return cell.size


def _items(cell: Cell) -> str:
    return str(cell.items)


def _above(limit: float | None) -> Callable[[Share], bool]:
    return lambda share: limit is not None and share.low > limit


def _misses_coverage(share: Share) -> bool:
    least, most = COVER
    return share.high < least or share.low > most


def _columns(cells: Iterable[Cell], column: Callable[[Cell], str]) -> list[str]:
    sorted_cells = sorted(cells, key=lambda cell: (cell.models, cell.items))
    return list(dict.fromkeys(column(cell) for cell in sorted_cells))


def _table_by_size(
    cells: Sequence[Cell], column: Callable[[Cell], str], is_bad: Callable[[Share], bool]
) -> str:
    """A row a line, a column a size."""
    columns = _columns(cells, column)
    cells_by_name: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        cells_by_name.setdefault(cell.short_name, {})[column(cell)] = cell

    rows: list[list[str]] = []
    for name, cell_by_column in cells_by_name.items():
        row = [name]
        for column_name in columns:
            shown_cell = cell_by_column.get(column_name)
            row.append(_cell_text(shown_cell, is_bad) if shown_cell else "–")
        rows.append(row)
    return _table(["", *columns], rows)


def _cell_text(cell: Cell, is_bad: Callable[[Share], bool]) -> str:
    text = cell.share.shown(bold=is_bad(cell.share)) if cell.share.n else "–"
    wrong_count = cell.counts.get("wrong", 0)
    if cell.part == "access" and wrong_count:
        text += f", {wrong_count} wrong"
    undefined_count = cell.counts.get("undefined", 0)
    if undefined_count:
        text += f", {undefined_count:,} undefined"
    if cell.before:
        text += f"; before {Share(*cell.before).plain}"
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines: list[str] = []
    for row in (head, ["---"] * len(head), *rows):
        cells = [cell or " " for cell in row]
        lines.append(f"|{'|'.join(cells)}|")
    return "\n".join(lines) + "\n"


def _summary(cells: Sequence[Cell], is_above_limit: Callable[[Share], bool]) -> str:
    """All nulls in a sentence."""
    shares = [cell.share for cell in cells]
    worst_cell = max(cells, key=lambda cell: cell.share.value)
    above_count = sum(map(is_above_limit, shares))
    matrix_counts = [share.n for share in shares]
    supported_count = sum(share.hits for share in shares)
    return (
        f"{len(cells)} lines and sizes of {min(matrix_counts):,} to {max(matrix_counts):,} "
        f"matrices are drawn: {supported_count:,} of {sum(matrix_counts):,} "
        f"matrices are supported. Whole intervals above 5 %: {above_count}. "
        f"The largest share is that of {worst_cell.name.removeprefix('null, ')!r} "
        f"at {worst_cell.size}: {worst_cell.share.shown()}.\n"
    )


def _verdict_tables(cells: Sequence[Cell]) -> list[str]:
    texts: list[str] = []
    for models, items in KINDS_AT:
        rows: list[list[str]] = []
        matrix_counts: list[int] = []
        for cell in cells:
            matrix_count = cell.counts.get("told", 0)
            if (cell.models, cell.items) != (models, items) or not matrix_count:
                continue
            percentages = [f"{100 * cell.counts.get(kind, 0) / matrix_count:.0f}" for kind in KINDS]
            rows.append([cell.name, *percentages, str(matrix_count)])
            matrix_counts.append(matrix_count)
        if rows:
            texts += [
                KINDS_TEXT.format(models=models, items=items, told=max(matrix_counts)),
                _table(["", *KINDS, "matrices"], rows),
            ]
    return texts


def _detects_table(cells: Sequence[Cell]) -> str:
    """A row a line and size, a column an advantage."""
    cells_by_line: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in cells:
        name, _, advantage = cell.name.rpartition(": ")
        cells_by_line.setdefault((name, cell.size), {})[advantage] = cell
    advantages = dict.fromkeys(
        advantage for cell_by_advantage in cells_by_line.values() for advantage in cell_by_advantage
    )

    rows: list[list[str]] = []
    for (name, size), cell_by_advantage in cells_by_line.items():
        stated_thousandths = [cell.counts.get("stated", 0) for cell in cell_by_advantage.values()]
        stated = max(stated_thousandths) / 1000
        row = [name, size, f"{stated:.3f}" if stated else "none"]
        for advantage in advantages:
            shown_cell = cell_by_advantage.get(advantage)
            if shown_cell is None or shown_cell.counts.get("impossible"):
                row.append("–")
            else:
                row.append(shown_cell.share.shown())
        rows.append(row)
    named_columns = [f"named at {advantage}" for advantage in advantages]
    return _table(["truth", "size", "stated", *named_columns], rows)


def _picture(
    cells: Sequence[Cell],
    file: Path,
    label: str,
    column: Callable[[Cell], str],
    *,
    lines: Sequence[float],
) -> None:
    """A row a line, a dot a size."""
    cells = [cell for cell in cells if cell.share.n and not cell.counts.get("impossible")]
    if not cells:
        return
    names = list(dict.fromkeys(cell.short_name for cell in cells))
    columns = _columns(cells, column)
    model_counts = sorted({cell.models for cell in cells})
    item_counts = sorted({cell.items for cell in cells})

    figure = Figure(figsize=(8, 1.2 + 0.3 * len(names)), layout="constrained", dpi=110)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    for line in lines:
        axes.axvline(line, color=INK, linewidth=1, linestyle=":")

    for column_index, column_name in enumerate(columns):
        column_cells = [cell for cell in cells if column(cell) == column_name]
        shift = 0.7 * ((column_index + 0.5) / len(columns) - 0.5)
        heights = np.array([names.index(cell.short_name) for cell in column_cells]) + shift
        shares = np.array(
            [(cell.share.value, cell.share.low, cell.share.high) for cell in column_cells]
        )
        middles, lows, highs = shares.T
        colour_index = item_counts.index(column_cells[0].items)
        marker_index = model_counts.index(column_cells[0].models)
        axes.errorbar(
            middles,
            heights,
            xerr=np.array([middles - lows, highs - middles]).clip(min=0),
            color=COLOURS[colour_index % len(COLOURS)],
            label=column_name,
            fmt=MARKERS[marker_index % len(MARKERS)],
            capsize=3,
            markersize=3,
        )

    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"{label}, with 95 % interval")
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=len(columns))
    figure.savefig(file, dpi=80)


if __name__ == "__main__":
    sys.exit("a part of bench/verdict.py, which is what to run")
