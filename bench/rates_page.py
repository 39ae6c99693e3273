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
COLOURS, MARKERS = (MUTED, OTHERS, SELF, INK), "osD^v"
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
        return (
            float(special.betaincinv(self.hits, self.n - self.hits + 1, 0.025))
            if self.hits
            else 0.0
        )

    @property
    def high(self) -> float:
        """Upper end."""
        return (
            float(special.betaincinv(self.hits + 1, self.n - self.hits, 0.975))
            if self.hits < self.n
            else 1.0
        )

    @property
    def plain(self) -> str:
        """In percent, with the number."""
        return f"{100 * self.value:.3g}/{self.n:,}"

    def shown(self, *, bold: bool = False) -> str:
        """In percent, with interval and number.

        >>> Share(20, 100).shown()
        '20 [13–29.2]/100'
        """
        if not self.hits:
            return f"**{self.plain}**" if bold else self.plain
        text = f"{100 * self.value:.3g} [{100 * self.low:.2g}–{100 * self.high:.3g}]/{self.n:,}"
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
        total = (
            self.counts.get("intervals", 0)
            if self.part == "interval"
            else self.counts.get("matrices", 0)
        )
        return Share(self.counts.get("named", 0), total)

    @property
    def before(self) -> Sequence[int]:
        """Supported matrices and all under the rule before; empty where it was not tried."""
        return BEFORE.get(f"{self.part} | {self.name} | {self.models} | {self.items}", ())


def write(counts: Counts, folder: Path) -> str:
    """The page, which is also written to the folder with its pictures.

    Args:
        counts: "part | name | models | items" → what was counted.
        folder: Made if it is not there.
    """
    found = []
    for key, value in counts.items():
        part, name, models, items = key.split(" | ")
        found.append(Cell(part, name, int(models), int(items), value))
    folder.mkdir(parents=True, exist_ok=True)
    text = [INTRO]
    sections: tuple[tuple[str, str, str, float | None], ...] = (
        ("null", NULLS, "supported without access", LIMIT),
        ("real", REALS, "supported without access, real words", LIMIT),
        ("sibling", SIBLINGS, "supported, a sibling's words", None),
        ("access", ACCESS, "supported with access", None),
        ("learner", LEARNERS, "supported without access, beside a learner", LIMIT),
        ("open", OPEN, "supported without access", LIMIT),
    )
    for part, head, label, limit in sections:
        cells = [cell for cell in found if cell.part == part]
        if cells:
            _picture(
                cells,
                folder / f"verdict_{part}.png",
                f"share of matrices {label}",
                _size,
                lines=[limit or 0.8],
            )
            text += [
                head,
                _told(cells, limit) if part in ("null", "real") else "",
                _by_size(cells, _size, _bad(limit)),
            ]
            text += [f"![{label}, by line and size](verdict_{part}.png)\n"]
        if part == "access":
            text += _kinds([cell for cell in found if cell.part in ("null", "access")])
    if cells := [cell for cell in found if cell.part == "detects"]:
        _picture(
            cells,
            folder / "verdict_detects.png",
            "share of matrices that name the model",
            _size,
            lines=[0.8],
        )
        text += [
            DETECTS,
            _detects(cells),
            "![named at the stated advantage, and beside it](verdict_detects.png)\n",
        ]
    if cells := [cell for cell in found if cell.part == "interval"]:
        label = "share of 95 % intervals that hold the truth"
        _picture(cells, folder / "verdict_interval.png", label, _items, lines=COVER)
        text += [
            INTERVALS,
            _by_size(cells, _items, lambda share: share.high < COVER[0] or share.low > COVER[1]),
        ]
        text += [f"![{label}, by quantity and items](verdict_interval.png)\n"]
    page = "\n".join(part for part in text if part).rstrip() + "\n"
    (folder / "verdict_rates.md").write_text(page)
    return page


def _size(cell: Cell) -> str:
    return f"{cell.models} × {cell.items}"


def _items(cell: Cell) -> str:
    return str(cell.items)


def _bad(limit: float | None) -> Callable[[Share], bool]:
    return lambda share: limit is not None and share.low > limit


def _columns(cells: Iterable[Cell], column: Callable[[Cell], str]) -> list[str]:
    return list(
        dict.fromkeys(
            column(cell) for cell in sorted(cells, key=lambda cell: (cell.models, cell.items))
        )
    )


def _by_size(
    cells: Sequence[Cell], column: Callable[[Cell], str], bad: Callable[[Share], bool]
) -> str:
    """A row a line, a column a size."""
    names, columns = list(dict.fromkeys(cell.name for cell in cells)), _columns(cells, column)
    at = {(cell.name, column(cell)): cell for cell in cells}
    rows = []
    for name in names:
        row = []
        for one in columns:
            cell = at.get((name, one))
            wrong = cell.counts.get("wrong", 0) if cell and cell.part == "access" else 0
            shown = cell.share.shown(bold=bad(cell.share)) if cell and cell.share.n else "–"
            undefined = cell.counts.get("undefined", 0) if cell else 0
            before = f"; before {Share(*cell.before).plain}" if cell and cell.before else ""
            row.append(
                shown
                + (f", {wrong} wrong" if wrong else "")
                + (f", {undefined:,} undefined" if undefined else "")
                + before
            )
        rows.append([name.removeprefix("null, ").removeprefix("open, "), *row])
    return _table(["", *columns], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"|{'|'.join(cell or ' ' for cell in line)}|" for line in lines) + "\n"


def _told(cells: Sequence[Cell], limit: float | None) -> str:
    """All nulls in a sentence."""
    worst, above = (
        max(cells, key=lambda cell: cell.share.value),
        [cell for cell in cells if _bad(limit)(cell.share)],
    )
    every = Share(sum(cell.share.hits for cell in cells), sum(cell.share.n for cell in cells))
    fewest, most = min(cell.share.n for cell in cells), max(cell.share.n for cell in cells)
    return (
        f"{len(cells)} lines and sizes of {fewest:,} to {most:,} matrices are drawn: {every.hits:,} of {every.n:,} "
        f"matrices are supported. Whole intervals above 5 %: {len(above)}. The largest share is that of "
        f"{worst.name.removeprefix('null, ')!r} at {_size(worst)}: {worst.share.shown()}.\n"
    )


def _kinds(cells: Sequence[Cell]) -> list[str]:
    text = []
    for models, items in KINDS_AT:
        here = [
            cell
            for cell in cells
            if (cell.models, cell.items) == (models, items) and cell.counts.get("told")
        ]
        if not here:
            continue
        rows = []
        for cell in here:
            told = cell.counts["told"]
            rows.append(
                [
                    cell.name,
                    *(f"{100 * cell.counts.get(kind, 0) / told:.0f}" for kind in KINDS),
                    str(told),
                ]
            )
        told = max(cell.counts["told"] for cell in here)
        text += [
            KINDS_TEXT.format(models=models, items=items, told=told),
            _table(["", *KINDS, "matrices"], rows),
        ]
    return text


def _detects(cells: Sequence[Cell]) -> str:
    """A row a line and size, a column an advantage."""
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in cells:
        name, _, off = cell.name.rpartition(": ")
        rows.setdefault((name, _size(cell)), {})[off] = cell
    offs = list(dict.fromkeys(off for row in rows.values() for off in row))
    out = []
    for (name, size), row in rows.items():
        stated = max((cell.counts.get("stated", 0) for cell in row.values()), default=0) / 1000
        tried = [off in row and not row[off].counts.get("impossible") for off in offs]
        shown = [
            row[off].share.shown() if good else "–" for off, good in zip(offs, tried, strict=True)
        ]
        out.append([name, size, f"{stated:.3f}" if stated else "none", *shown])
    return _table(["truth", "size", "stated", *(f"named at {off}" for off in offs)], out)


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
    names, columns = list(dict.fromkeys(cell.name for cell in cells)), _columns(cells, column)
    figure = Figure(figsize=(8, 1.2 + 0.3 * len(names)), layout="constrained", dpi=110)
    ax = figure.add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    for line in lines:
        ax.axvline(line, color=INK, linewidth=1, linestyle=":")
    models, items = sorted({cell.models for cell in cells}), sorted({cell.items for cell in cells})
    for k, one in enumerate(columns):
        here = [cell for cell in cells if column(cell) == one]
        shift = 0.7 * ((k + 0.5) / len(columns) - 0.5)
        at = np.array([names.index(cell.name) for cell in here]) + shift
        colour = COLOURS[items.index(here[0].items) % len(COLOURS)]
        marker = MARKERS[models.index(here[0].models) % len(MARKERS)]
        shares = np.array([(cell.share.value, cell.share.low, cell.share.high) for cell in here])
        middle, low, high = shares.T
        ends = np.array([middle - low, high - middle]).clip(min=0)
        ax.errorbar(
            middle, at, xerr=ends, color=colour, label=one, fmt=marker, capsize=3, markersize=3
        )
    ax.set_yticks(
        range(len(names)), [name.removeprefix("null, ").removeprefix("open, ") for name in names]
    )
    ax.invert_yaxis()
    ax.grid(axis="x", color=GRID)
    ax.set_axisbelow(True)
    ax.set_xlabel(f"{label}, with 95 % interval")
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=len(columns))
    figure.savefig(file, dpi=80)


if __name__ == "__main__":
    sys.exit("a part of bench/verdict.py, which is what to run")
