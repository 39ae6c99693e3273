"""One page for every study: what is on it (`Page`), how it looks (page.html, page.css), and the
files beside it.

A study says its question, its answer in one sentence, one picture and one small table; what stands
behind them lies under closed headings (`headings`). `write` renders the page, the tables as CSV and
JSON and the pictures as SVG, and puts all of them into a folder at once. Whatever a model, a
provider or a user wrote is escaped; control characters are replaced, and secrets are masked.
"""

import base64
import hashlib
import io
import json
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from selfprobe.errors.output import destination, place, refusals, relative, remove_files
from selfprobe.page.claims import MOST_TERMINAL_LINES as MOST_TERMINAL_LINES
from selfprobe.page.claims import ClaimWords as ClaimWords
from selfprobe.page.claims import (
    answer_over,
    answer_over_groups,
    check_table,
    claim_sentence,
    claims_as_json,
)
from selfprobe.page.columns import Column as Column
from selfprobe.page.columns import Heading as Heading
from selfprobe.page.columns import RowTable as RowTable
from selfprobe.page.numerals import interval_text as interval_text
from selfprobe.page.numerals import number as number
from selfprobe.page.numerals import p_digits as p_digits
from selfprobe.page.numerals import p_value as p_value
from selfprobe.page.numerals import percent as percent
from selfprobe.page.numerals import percent_interval as percent_interval
from selfprobe.page.numerals import signed_interval as signed_interval
from selfprobe.page.numerals import signed_number as signed_number
from selfprobe.page.plots import Picture as Picture
from selfprobe.page.plots import model_names
from selfprobe.stats.claim import Claim, Verdict, ordered_claims
from selfprobe.text.families import is_simulated
from selfprobe.text.safe import (
    clean,
    cleaned,
    csv,
    echo,
    json_escaped,
    masked,
    masker,
    plain,
    without_secrets,
)

MOST_ANSWER_WORDS = 25
"""Largest number of words of an answer."""
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
"""An option of the command line in a sentence."""
MOST_FIRST_COLUMNS = 5
"""Largest number of columns of the first table."""
MOST_FINDINGS = 5
"""Largest number of findings in a first picture and table."""


def columns(estimate: Any) -> dict[str, float]:
    """Columns of an `Estimate` in a table: value, low, high, n."""
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "n")}


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
"""The papers whose tables and figures are made again. The first has no address of its own: its
code.
"""
KNOW = Paper(
    "Large Language Models Often Know When They Are Being Evaluated",
    "https://arxiv.org/abs/2505.23836",
)


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


def estimated(
    title: str, of: str | Callable[[Any], Any] = lambda row: row, digits: int = 2, help: str = ""
) -> Column:
    """A column of estimates: each with its interval or its reason."""
    return Column(
        title,
        of,
        lambda estimate: interval_text(estimate, digits).replace(", ", ",\N{NO-BREAK SPACE}"),
        look="e",
        help=help,
    )


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
    verdict_blocks: Sequence[Block] = (),
    paper: Sequence[Block] = (),
    table_blocks: Sequence[Block] = (),
    method: Sequence[Block] = (),
    runs: Sequence[Block] = (),
) -> list[Section]:
    """The closed headings of a page with an answer; those without a block are left out.

    Args:
        verdict_blocks: Tests, p-values, and the reason of the verdict.
        paper: Results of a paper about the same question.
        table_blocks: Every number.
        method: Method of the numbers, and the words of the page.
        runs: Logs, used and not.
    """
    titles = {
        "why": "Why",
        "paper": "As in the paper",
        "cells": "Tables",
        "method": "Method",
        "runs": "Runs",
    }
    blocks_by_name = {
        "why": verdict_blocks,
        "paper": paper,
        "cells": table_blocks,
        "method": method,
        "runs": runs,
    }
    return [
        Section(titles[name], blocks, name=name)
        for name, blocks in blocks_by_name.items()
        if blocks
    ]


def folded_list(title: str, lines: Sequence[str]) -> list[Block]:
    """Lines folded away under their number and a title; nothing where there are none."""
    return [Details(f"{len(lines)} {title}", [Bullets(lines)])] if lines else []


def set_aside(reason_by_log: Mapping[str, str]) -> list[Block]:
    """Logs that are not used, by address, and why: folded away, or nothing where all are used."""
    lines = [f"{log}: {reason}" for log, reason in reason_by_log.items()]
    return folded_list("logs not used here", lines)


ROWS_ON_PAGE = 300
"""Largest number of rows of a table that a page shows; its file has all."""


def more_in_tables(hidden_count: int) -> str:
    """Words behind a caption on rows that a picture leaves out; "" where it has all.

    >>> more_in_tables(2), more_in_tables(0)
    (' Tables show 2 more.', '')
    """
    return f" Tables show {hidden_count} more." if hidden_count > 0 else ""


def tables_section(tables: "Mapping[str, pd.DataFrame | RowTable]") -> list[Block]:
    """Every table that is declared by its rows, folded: one form on all pages."""
    blocks: list[Block] = []
    for name, table in tables.items():
        if not isinstance(table, RowTable) or not table.on_page or not table.rows:
            continue
        table_blocks: list[Block] = [Table(table.rows[:ROWS_ON_PAGE], table.columns)]
        hidden_count = len(table.rows) - ROWS_ON_PAGE
        if hidden_count > 0:
            table_blocks.append(f"{hidden_count:,} more rows are in tables/{name}.csv.")
        blocks.append(Details(table.title, table_blocks))
    return blocks


def claims_section(
    claims: Sequence[Claim], words: ClaimWords, notes: Mapping[str, Sequence[Block]]
) -> list[Block]:
    """Each claim with its checks as a table, and further blocks by subject."""
    blocks: list[Block] = []
    for claim in ordered_claims(claims):
        checks = check_table(claim, words)
        sentence = claim_sentence(claim, words)
        checks_block = Table(checks.rows, checks.columns)
        subject_notes = notes.get(claim.subject, ())
        blocks.append(Section(claim.subject, [sentence, checks_block, *subject_notes]))
    return blocks


MOST_SIMULATED_NAMES = 2
"""Largest number of simulated models that a page names."""


def simulated_sentence(models: Sequence[str]) -> str:
    """Sentence on the models among these that answer by a rule; "" where all are real.

    >>> simulated_sentence(["openai/a"]), simulated_sentence(["planted/ada", "openai/a"])
    ('', 'Simulated: planted/ada is no real model.')
    """
    simulated_models = [model for model in models if is_simulated(model)]
    if not simulated_models:
        return ""
    if len(simulated_models) == len(models):
        return "Simulated: no real model answered."
    if len(simulated_models) == 1:
        return f"Simulated: {simulated_models[0]} is no real model."
    names = ", ".join(simulated_models[:MOST_SIMULATED_NAMES])
    hidden_count = len(simulated_models) - MOST_SIMULATED_NAMES
    if hidden_count > 0:
        names += f" and {hidden_count} more"
    return f"Simulated: {names} are no real models."


class TooFull(PendingDeprecationWarning):
    """A first screen that holds more than it may: an error in tests, and no reason to lose a
    finished page.
    """


@dataclass(frozen=True)
class Page:
    """The page of a study.

    A page with an answer shows the answer, the picture and the table first, and its sections are
    closed headings. A page of several studies has them as `parts`. A page without either shows all
    of its sections.
    """

    title: str
    """The question that the page answers."""
    lead: str = ""
    sections: Sequence[Section] = ()
    answer: str = ""
    """Answer of at most 25 words, which begins with Yes, No or Cannot tell and says for whom;
    numbers are no words.
    """
    picture: Picture | None = None
    """Picture that shows the answer."""
    table: Table | None = None
    """First table, with at most five columns."""
    parts: "Mapping[str, Page]" = field(default_factory=dict)
    """Study → its page, on a page of several."""
    models: Sequence[str] = ()
    """Models by their full names, which the page shows without settings."""
    tables: "Mapping[str, pd.DataFrame | RowTable]" = field(default_factory=dict)
    """File stem → table; they become tables/STEM.csv and .json, and `columns.json` says what their
    columns hold.
    """
    claims: Sequence[Claim] = ()
    """Claims that the page makes; they become claims.json."""
    words: ClaimWords | None = None
    """Words of the claims."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path → content of other files of the page."""
    notes: Sequence[str] = ()
    """Lines of a command in the terminal after the answer: at most five, and one more for each
    part.
    """
    holes: Sequence[str] = ()
    """Missing parts, for which a command ends with an error."""

    def __post_init__(self) -> None:
        if self.answer:
            verdicts = "|".join(verdict.value for verdict in Verdict)
            assert re.match(rf"({verdicts})\b", self.answer), self.answer
        word_count = len(answer_words(self.answer))
        line_count = len(self.notes)
        column_count = len(self.table.columns) if self.table else 0
        if (
            word_count > MOST_ANSWER_WORDS
            or line_count > MOST_TERMINAL_LINES + len(self.parts)
            or column_count > MOST_FIRST_COLUMNS
        ):
            counts = f"{word_count} words, {line_count} lines, {column_count} columns"
            warnings.warn(f"{counts}: {self.answer}", TooFull, stacklevel=2)

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """File stem → the table of the files."""
        frames = {}
        for name, table in self.tables.items():
            frames[name] = table.frame if isinstance(table, RowTable) else table
        return frames

    @property
    def verdict(self) -> tuple[str, str]:
        """The answer in two parts: up to its first stop, and the rest."""
        head = re.match(r".*?([.:;]|,(?! (in|for)\b))(?= )|.*", self.answer)
        assert head is not None
        return head[0], self.answer[head.end() :]

    def _repr_html_(self) -> str:
        """The page in a notebook, in a frame of its own."""
        frame = Markup('<iframe srcdoc="{}" style="width:100%;height:44rem;border:0"></iframe>')
        return frame.format(render(self, "."))

    @property
    def all_models(self) -> list[str]:
        """Full names of the models of the page and of its parts, each once."""
        pages = (self, *self.parts.values())
        return list(dict.fromkeys(model for page in pages for model in page.models))

    @property
    def simulated(self) -> str:
        """Sentence on the models that are no real ones; "" where all are real."""
        return simulated_sentence(self.all_models)

    @property
    def lines(self) -> list[str]:
        """Lines that a command prints: the answer, and what follows it."""
        return [self.answer, *self.notes] if self.answer else list(self.notes)

    @property
    def blocks(self) -> list[Block]:
        """The page as a part of another one: its answer, picture and table, and its headings
        folded.
        """
        blocks: list[Block] = []
        if self.answer:
            verdict_text, further_text = self.verdict
            answer = Markup("<strong>{}</strong>{}")
            blocks.append(answer.format(clean(verdict_text), clean(further_text)))
        if self.picture:
            blocks.append(Figures([self.picture]))
        if self.table:
            blocks.append(self.table)
        blocks += [Details(section.title, section.blocks) for section in self.sections]
        return blocks


def claim_page(
    title: str,
    claims: Sequence[Claim],
    words: ClaimWords,
    *,
    picture: Picture | None,
    table: Table,
    tables: "Mapping[str, pd.DataFrame | RowTable]",
    method: Sequence[Block],
    notes: Mapping[str, Sequence[Block]] | None = None,
    paper: Sequence[Block] = (),
    further_figures: Sequence[Block] = (),
    terminal_lines: Sequence[str] = (),
    last_lines: Sequence[str] = (),
    groups: Mapping[str, Sequence[Claim]] | None = None,
) -> Page:
    """The page of a study that makes claims: question, answer, picture, table, Why, Tables, Method.

    Args:
        title: The question.
        claims: At least one.
        words: Words of the study.
        picture: Picture that shows the answer.
        table: First table, with at most five columns.
        tables: File stem → table.
        method: Method of the numbers, and the words of the page.
        notes: Subject → further blocks under its checks.
        paper: Results of a paper about the same question.
        further_figures: Further figures, before the tables.
        terminal_lines: Lines of the terminal before those of further subjects.
        last_lines: Lines of the terminal after those of further subjects, which make room for them.
        groups: Task → its claims, with subjects that several tasks share, where the answer counts
            both.
    """
    if groups:
        answer, subject_lines = answer_over_groups(groups, words)
    else:
        room = MOST_TERMINAL_LINES - len(last_lines)
        answer, subject_lines = answer_over(claims, words, most_lines=room)
    sections = headings(
        verdict_blocks=claims_section(claims, words, notes or {}),
        paper=paper,
        table_blocks=[*further_figures, *tables_section(tables)],
        method=method,
    )
    return Page(
        title,
        answer=answer,
        picture=picture,
        table=table,
        sections=sections,
        tables=tables,
        claims=claims,
        words=words,
        notes=[*terminal_lines, *subject_lines, *last_lines][:MOST_TERMINAL_LINES],
    )


def models_or_runs(names: Collection[str]) -> str:
    """Kind of the names of models: "models", or "runs" where one model has several, which settings
    distinguish.

    >>> models_or_runs(["m/a", "m/b"]), models_or_runs(["m/a, grader g", "m/a, grader h"])
    ('models', 'runs')
    """
    models = {name.partition(",")[0] for name in names}
    return "models" if len(models) == len(names) else "runs"


def answer_words(text: str) -> list[str]:
    """The words of a text; numbers and signs are none, and a name is one."""
    return [word for word in text.split(" ") if any(map(str.isalpha, word))]


def write(page: Page, out: str) -> str:
    """Put index.html, tables/ and figures/ into the folder `out` (local or any fsspec address);
    returns the address.

    A page of other logs is replaced, which a line says. Tables and figures of an earlier page that
    this one does not have are removed.

    Raises:
        InputError: The folder cannot be written. What was there is then unchanged.
    """
    earlier_logs = _logs_in(out)
    earlier_files = _files_in(out)
    page_logs = set[str]()
    for name, table in page.frames.items():
        if name.rpartition("/")[2] == "runs":
            page_logs |= {_file_name(log) for log in table["log"]}
    page_files = files_of(page, out)
    place(page_files, out)
    remove_files(earlier_files - set(page_files), out)
    if earlier_logs and page_logs and earlier_logs.isdisjoint(page_logs):
        echo(
            f"{out} held a page of other logs, such as {min(earlier_logs)}: it is replaced",
            err=True,
        )
    return f"{out.rstrip('/')}/index.html"


def _file_name(log: str) -> str:
    """Name of a log's file, which is unique: a page may have been written from another folder."""
    return log.rpartition("/")[2]


def _logs_in(out: str) -> set[str]:
    """Names of the logs of the page in a folder."""
    file_system, inner_path = destination(out)
    try:
        table_files = [
            *file_system.glob(f"{inner_path}/tables/runs.csv"),
            *file_system.glob(f"{inner_path}/tables/*/runs.csv"),
        ]
        tables = [pd.read_csv(io.BytesIO(file_system.cat_file(file))) for file in table_files]
    except (*refusals(), pd.errors.ParserError):  # what cannot be read is nobody's page
        return set()
    log_names = set[str]()
    for table in tables:
        if "log" in table:
            log_names |= {_file_name(str(log)) for log in table["log"]}
    return log_names


_FIGURE_LINK = re.compile(r"figures/[\w.-]+\.svg")


def _files_in(folder: str) -> set[str]:
    """Tables, figures and claims of the page in a folder, by its own lists of them: what else lies
    there is not the page's.
    """
    file_system, inner_path = destination(folder)
    faults: tuple[type[BaseException], ...] = (*refusals(), ValueError)
    try:
        columns_file = file_system.cat_file(f"{inner_path}/tables/columns.json")
        page_html = file_system.cat_file(f"{inner_path}/index.html").decode()
        columns_of_table = json.loads(columns_file)
    except faults:  # what cannot be read is nobody's page
        return set()
    files = {"claims.json", *_FIGURE_LINK.findall(page_html)}
    for name in columns_of_table:
        if ".." not in name:
            files |= {f"tables/{name}.csv", f"tables/{name}.json"}
    return files


def files_of(page: Page, out: str) -> dict[str, bytes]:
    """All files of a page by their path in `out`, the page itself last."""
    files = dict(page.files)
    dictionary = {}
    for name, frame in page.frames.items():
        table = page.tables[name]
        if isinstance(table, RowTable):
            dictionary[name] = table.dictionary
        files[f"tables/{name}.csv"] = csv(frame)
        files[f"tables/{name}.json"] = cleaned(frame).to_json(orient="records", indent=1).encode()
    if dictionary:
        files["tables/columns.json"] = _json_file(dictionary)
    claims = claims_by_part(page)
    if claims:
        files["claims.json"] = _json_file(claims)
    for name in files:
        if name.endswith(".md"):
            files[name] = masked(files[name].decode()).encode()
    for picture in _pictures(page):
        assert f"figures/{picture.name}.svg" not in files, f"two figures are called {picture.name}"
        files[f"figures/{picture.name}.svg"] = picture.drawing.svg
    return files | {"index.html": render(page, out).encode()}


def claims_by_part(page: Page) -> dict[str, list[dict[str, Any]]]:
    """Claims of a page and of its parts, by the question that each answers."""
    claims = {}
    for part in (page, *page.parts.values()):
        if part.claims and part.words:
            claims[part.title] = claims_as_json(part.claims, part.words)
    return claims


def _json_file(content: Any) -> bytes:
    text = json.dumps(without_secrets(content), ensure_ascii=False, indent=1)
    return json_escaped(text).encode()


def render(page: Page, out: str) -> str:
    """The page as HTML; links to logs lead from the folder `out`."""
    short_names = {
        model: name for model, name in model_names(page.all_models).items() if name != model
    }
    longest_first = sorted(short_names, key=len, reverse=True)
    full_name = re.compile("|".join(map(re.escape, longest_first)))
    mask = masker()

    def finalized(value: Any) -> Any:
        if isinstance(value, Log):
            return _link(value, out)
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        if short_names:
            value = full_name.sub(lambda match: short_names[match[0]], value)
        return plain(mask(value))

    environment = Environment(
        loader=PackageLoader("selfprobe.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalized,
    )
    environment.filters["whole_options"] = lambda text: _with_whole_options(finalized(text))
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    script = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    script_digest = hashlib.sha256(script.encode()).digest()
    return environment.get_template("page.html").render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        script_sha256=base64.b64encode(script_digest).decode(),
    )


def _with_whole_options(text: str) -> Markup:
    """The text escaped, with options such as --methods that no line break divides."""
    html = str(escape(text))
    return Markup(OPTION.sub(r'<span class="option">\g<0></span>', html))


def _link(log: Log, out: str) -> Markup:
    """The name of a log, with a link to it from the page in the folder `out`."""
    code = Markup("<code>{}</code>").format(clean(log.address.rpartition("/")[2]))
    href = relative(log.address, out)
    return code if href is None else Markup('<a href="{}">{}</a>').format(clean(href), code)


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
