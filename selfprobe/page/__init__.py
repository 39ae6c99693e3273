"""One page for every study: what is on it (`Page`), how it looks (page.html, page.css), and the files beside it.

A study says its question, its answer in one sentence, one picture and one small table; what stands behind them lies
under closed headings (`headings`). `write` renders the page, the tables as CSV and JSON and the pictures as SVG, and
puts all of them into a folder at once. Whatever a model, a provider or a user wrote is escaped; control characters are
replaced, and what looks like an API key is masked.
"""

import base64
import hashlib
import io
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from selfprobe.errors.output import destination, place, refusals, relative
from selfprobe.page.glossary import meaning_of
from selfprobe.page.numerals import number as number
from selfprobe.page.numerals import p_digits as p_digits
from selfprobe.page.numerals import p_value as p_value
from selfprobe.page.numerals import percent as percent
from selfprobe.page.numerals import percents as percents
from selfprobe.page.numerals import shown as shown
from selfprobe.page.numerals import signed as signed
from selfprobe.page.plots import Picture as Picture
from selfprobe.page.plots import model_names
from selfprobe.text.safe import clean, cleaned, csv, echo

WORDS, COLUMNS, LINES = 25, 5, 5
"""Largest number of words of an answer, columns of the first table, lines of the terminal after the answer."""
Answer = Literal["Yes", "No", "Cannot tell"]
"""Beginning of an answer."""
ROWS = 5
"""Largest number of findings in a first picture and table."""


def columns(estimate: Any) -> dict[str, float]:
    """Columns of an `Estimate` in a table: value, low, high, n."""
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "n")}


def named(name: str, estimate: Any) -> dict[str, float]:
    """Columns of one `Estimate` among several in a row: `name`, `name_low`, `name_high`."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


@dataclass(frozen=True)
class Paper:
    """A paper, by its title and with a link."""

    title: str
    address: str

    def __html__(self) -> str:
        return Markup('<a href="{}">“{}”</a>').format(self.address, self.title)


BLACK_BOX = Paper("a comparison of black-box methods", "https://github.com/baceolus/eval_awareness")
PI = Paper("Me, Myself, and π", "https://arxiv.org/abs/2603.20276")
PROBES = Paper("Improving Preference Extraction In LLMs", "https://arxiv.org/abs/2503.17755")
"""The papers whose tables and figures are made again. The first has no address of its own: its code."""
KNOW = Paper("Large Language Models Often Know When They Are Being Evaluated", "https://arxiv.org/abs/2505.23836")


@dataclass(frozen=True)
class Log:
    """The address of a log: on a page a link that starts from the page."""

    address: str


@dataclass(frozen=True)
class Item:
    """An item of a data set: on a page its id, with a link to its text in a `Texts` of that page."""

    id: str
    text: str

    @property
    def anchor(self) -> str:
        """Anchor of the item's text."""
        digest = hashlib.sha256(f"{self.id}\x1f{self.text}".encode(errors="replace")).hexdigest()
        return f"text-{digest[:12]}"

    def __html__(self) -> str:
        return Markup('<a href="#{}">{}</a>').format(self.anchor, clean(self.id))


@dataclass(frozen=True)
class Column:
    """A column of a page's table."""

    title: str
    of: str | Callable[[Any], Any]
    """Key or attribute of the row, or a function of the row."""
    show: Callable[[Any], object] | None = None
    """Function that writes the value; None writes it unchanged."""
    look: str = ""
    """Class of the stylesheet. Default: numbers, that is columns with a `show`, are aligned."""

    def cell(self, row: Any) -> object:
        """The content of this column in a row."""
        if callable(self.of):
            value = self.of(row)
        else:
            value = row[self.of] if isinstance(row, Mapping) else getattr(row, self.of)
        return self.show(value) if self.show else value

    @property
    def style(self) -> str:
        return self.look or ("n" if self.show else "")


def estimated(title: str, of: str | Callable[[Any], Any] = lambda row: row, digits: int = 2) -> Column:
    """A column of estimates: each with its interval or its reason."""
    return Column(title, of, lambda e: shown(e, digits).replace(", ", ",\N{NO-BREAK SPACE}"), look="e")


@dataclass(frozen=True)
class Table:
    """Rows (mappings or objects) under columns."""

    kind: ClassVar = "table"
    rows: Sequence[Any]
    columns: Sequence[Column]


@dataclass(frozen=True)
class Figures:
    """Pictures side by side."""

    kind: ClassVar = "figures"
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Box:
    """A finding that stands out."""

    kind: ClassVar = "box"
    head: str
    text: str
    colour: str = ""
    """Class of the stylesheet."""


@dataclass(frozen=True)
class Bullets:
    """A list."""

    kind: ClassVar = "bullets"
    items: Sequence[str]


@dataclass(frozen=True)
class Quoted:
    """A text of a model or a data set, with its lines."""

    kind: ClassVar = "quoted"
    text: str


@dataclass(frozen=True)
class Items:
    """A paragraph that ends in items, each a link to its text."""

    kind: ClassVar = "items"
    head: str
    items: Sequence[Item]


@dataclass(frozen=True)
class Texts:
    """The texts of items, each folded away under its id."""

    kind: ClassVar = "texts"
    items: Sequence[Item]


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away under a summary."""

    kind: ClassVar = "details"
    summary: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it; sections may hold sections."""

    kind: ClassVar = "section"
    title: str
    blocks: "Sequence[Block]"
    name: str = ""
    """Anchor that links lead to; a section without one is in no menu."""
    menu: str = ""
    """Name in the menu. Default: the title."""

    @property
    def inner(self) -> "list[Section]":
        return [block for block in self.blocks if isinstance(block, Section) and block.name]


Block = str | Table | Figures | Box | Bullets | Quoted | Items | Texts | Details | Section
"""A string is a paragraph; `Markup` stays as it is, all else is escaped."""


def headings(
    *,
    why: Sequence[Block] = (),
    paper: Sequence[Block] = (),
    cells: Sequence[Block] = (),
    method: Sequence[Block] = (),
    runs: Sequence[Block] = (),
) -> list[Section]:
    """The closed headings of a page with an answer; those without a block are left out.

    Args:
        why: Tests, p-values, and the reason of the verdict.
        paper: Results of a paper about the same question.
        cells: Every number.
        method: Method of the numbers, and the words of the page.
        runs: Logs, used and not.
    """
    titles = {"why": "Why", "paper": "As in the paper", "cells": "All cells", "method": "Method", "runs": "Runs"}
    blocks = {"why": why, "paper": paper, "cells": cells, "method": method, "runs": runs}
    return [Section(titles[name], held, name=name) for name, held in blocks.items() if held]


def set_aside(ignored: Mapping[str, str]) -> list[Block]:
    """Logs that are not used, by address, and why: folded away, or nothing where all are used."""
    lines = [f"{log}: {why}" for log, why in ignored.items()]
    return [Details(f"{len(lines)} log{'s' * (len(lines) != 1)} not used here", [Bullets(lines)])] if lines else []


class TooFull(PendingDeprecationWarning):
    """A first screen that holds more than it may: an error in tests, and no reason to lose a finished page."""


@dataclass(frozen=True)
class Page:
    """The page of a study.

    A page with an answer shows the answer, the picture and the table first, and its sections are closed headings. A
    page of several studies has them as `parts`. A page without either shows all of its sections.
    """

    title: str
    """The question that the page answers."""
    lead: str = ""
    sections: Sequence[Section] = ()
    answer: str = ""
    """Answer of at most 25 words, which begins with Yes, No or Cannot tell and says for whom; numbers are no words."""
    picture: Picture | None = None
    """Picture that shows the answer."""
    table: Table | None = None
    """First table, with at most five columns."""
    parts: "Mapping[str, Page]" = field(default_factory=dict)
    """Study → its page, on a page of several."""
    models: Sequence[str] = ()
    """Models by their full names, which the page shows without settings."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """File stem → table; they become tables/STEM.csv and .json."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path → content of other files of the page."""
    told: Sequence[str] = ()
    """Lines of a command in the terminal after the answer: at most five, and one more for each part."""
    holes: Sequence[str] = ()
    """Missing parts, for which a command ends with an error."""

    def __post_init__(self) -> None:
        if self.answer:
            assert re.match(rf"({'|'.join(get_args(Answer))})\b", self.answer), self.answer
        words, columns = answer_words(self.answer), self.table.columns if self.table else ()
        if len(words) > WORDS or len(self.told) > LINES + len(self.parts) or len(columns) > COLUMNS:
            text = f"{len(words)} words, {len(self.told)} lines, {len(columns)} columns: {self.answer}"
            warnings.warn(text, TooFull, stacklevel=2)

    @property
    def verdict(self) -> tuple[str, str]:
        """The answer in two parts: up to its first stop, and the rest."""
        head = re.match(r".*?([.:;]|,(?! (in|for)\b))(?= )|.*", self.answer)
        assert head is not None
        return head[0], self.answer[head.end() :]

    @property
    def lines(self) -> list[str]:
        """Lines that a command prints: the answer, and what follows it."""
        return [*filter(None, [self.answer]), *self.told]

    @property
    def blocks(self) -> list[Block]:
        """The page as a part of another one: its answer, picture and table, and its headings folded."""
        head, rest = self.verdict
        first: list[Block] = [Markup("<strong>{}</strong>{}").format(head, rest)] if self.answer else []
        first += [Figures([self.picture])] if self.picture else []
        first += [self.table] if self.table else []
        return [*first, *(Details(section.title, section.blocks) for section in self.sections)]


@dataclass(frozen=True)
class Finding:
    """The answer for one model."""

    model: str
    answer: Answer
    clause: str
    """Clause after the model's name: at most eighteen words, with the verb first."""
    of: Any
    """The numbers behind it."""
    notes: Sequence[str] = ()
    """Further sentences."""


FINDING = (Column("model", "model"), Column("answer", "answer"))
"""The first columns of a table of findings."""


def strongest(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in the order Yes, Cannot tell, No; those of one answer stay in order."""
    return sorted(findings, key=lambda one: ("Yes", "Cannot tell", "No").index(one.answer))


def kind_of(names: Collection[str]) -> str:
    """Kind of the names of models: "models", or "runs" where one model has several, which settings distinguish.

    >>> kind_of(["m/a", "m/b"]), kind_of(["m/a, grader g", "m/a, grader h"])
    ('models', 'runs')
    """
    return "models" if len({name.partition(",")[0] for name in names}) == len(names) else "runs"


def overall_answer(findings: Sequence[Finding], kind: str = "") -> tuple[str, list[str]]:
    """The answer over all findings, the strongest first, and the lines of the terminal that follow it.

    Args:
        findings: At least one.
        kind: Kind that they are about; "" is models, or runs of them.
    """
    first, count, kind = findings[0], len(findings), kind or kind_of([one.model for one in findings])
    alike = sum(one.answer == first.answer for one in findings)
    if count == 1:
        head = {"Yes": "Yes, for", "No": "No, not for", "Cannot tell": "Cannot tell for"}[first.answer]
        return f"{head} {first.model}: it {first.clause}.", list(first.notes)[:LINES]
    lines = [f"{one.answer}: {one.model} {one.clause}." for one in findings[1:]]  # the answer has the first one's
    if len(lines) > LINES:
        lines[LINES - 1 :] = [f"{len(lines) - LINES + 1} more {kind} are on the page."]
    if first.answer == "Yes":
        return f"Yes, for {alike} of {count} {kind}. {first.model} {first.clause}.", lines
    if first.answer == "No":
        return f"No, not for any of {count} {kind}: {first.model} {first.clause}.", lines
    share = f"{count}" if alike == count else f"{alike} of {count}"
    return f"Cannot tell for {share} {kind}: {first.model} {first.clause}.", lines


def answer_words(text: str) -> list[str]:
    """The words of a text; numbers and signs are none, and a name is one."""
    return [word for word in text.split(" ") if any(sign.isalpha() for sign in word)]


def write(page: Page, out: str) -> str:
    """Put index.html, tables/ and figures/ into the folder `out` (local or any fsspec address); returns the address.

    A page of other logs is replaced, which a line says.

    Raises:
        InputError: The folder cannot be written. What was there is then unchanged.
    """
    before, mine = _logs_in(out), {log for name, table in page.tables.items() if _runs(name) for log in table["log"]}
    place(files_of(page, out), out)
    if before and mine and before.isdisjoint(mine):
        echo(f"{out} held a page of other logs, such as {min(before)}: it is replaced", err=True)
    return f"{out.rstrip('/')}/index.html"


def _runs(name: str) -> bool:
    return name.rpartition("/")[2] == "runs"


def _logs_in(out: str) -> set[str]:
    system, inside = destination(out)
    try:
        found = [*system.glob(f"{inside}/tables/runs.csv"), *system.glob(f"{inside}/tables/*/runs.csv")]
        tables = [pd.read_csv(io.BytesIO(system.cat_file(file))) for file in found]
    except (*refusals(), pd.errors.ParserError):  # what cannot be read is nobody's page
        return set()
    return {str(log) for table in tables if "log" in table for log in table["log"]}


def files_of(page: Page, out: str) -> dict[str, bytes]:
    """All files of a page by their path in `out`, the page itself last."""
    files = dict(page.files)
    for name, table in page.tables.items():
        files[f"tables/{name}.csv"] = csv(table)
        files[f"tables/{name}.json"] = cleaned(table).to_json(orient="records", indent=1).encode()
    for picture in _pictures(page):
        assert f"figures/{picture.name}.svg" not in files, f"two figures are called {picture.name}"
        files |= {f"figures/{picture.name}.{kind}": picture.rendered(kind) for kind in picture.kinds}
    return files | {"index.html": render(page, out).encode()}


def render(page: Page, out: str) -> str:
    """The page as HTML; links to logs lead from the folder `out`."""
    full = list(dict.fromkeys(model for one in (page, *page.parts.values()) for model in one.models))
    names = {model: name for model, name in model_names(full).items() if name != model}
    longest = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True)))) if names else None

    def finalized(value: Any) -> Any:
        if longest and isinstance(value, str) and not isinstance(value, Markup):
            value = longest.sub(lambda name: names[name[0]], value)
        return _finalized(value, out)

    environment = Environment(
        loader=PackageLoader("selfprobe.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalized,
    )
    environment.filters["explained"] = meaning_of
    style, script = (Path(__file__).with_name(f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    inline = {"style": Markup(style), "script": Markup(script), "script_sha256": allowed}
    return environment.get_template("page.html").render(page=page, **inline)


def _finalized(value: Any, out: str) -> Any:
    """Output of a template: a link for a log, clean text for text that is not ours."""
    if isinstance(value, Log):
        name = clean(value.address.rpartition("/")[2])
        href = relative(value.address, out)
        code = Markup("<code>{}</code>").format(name)
        return code if href is None else Markup('<a href="{}">{}</a>').format(href, code)
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _pictures(page: Page) -> Iterator[Picture]:
    """All pictures of a page and its parts, in the order in which it shows them."""
    if page.picture:
        yield page.picture
    yield from _in_blocks(page.sections)
    for part in page.parts.values():
        yield from _pictures(part)


def _in_blocks(blocks: Iterable[Block]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Figures):
            yield from block.pictures
        elif isinstance(block, Section | Details):
            yield from _in_blocks(block.blocks)
