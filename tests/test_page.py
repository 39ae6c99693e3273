"""The one page of every study: safe with what others wrote, links from where it stands, placed whole."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import selfprobe.page
from selfprobe.errors import InputError
from selfprobe.output import relative
from selfprobe.page import (
    Column,
    Details,
    Figures,
    Log,
    Page,
    Picture,
    Section,
    Table,
    files_of,
    render,
    write,
)
from selfprobe.plots import advantages, heat_map, self_against_others
from selfprobe.stats.estimate import Estimate

NAMES = [r"m/$x_1$ \frac{", "m/a\x1b[2Jb", "_hidden", "m/100 %", "m/模型"]
SEEN = Estimate(0.6, 0.5, 0.7, 10, "item")


def page_of(*blocks: object, **more: object) -> Page:
    return Page("Title", "Lead.", [Section("Part", blocks, name="part")], **more)  # type: ignore[arg-type]


def test_a_page_is_dark_on_a_screen_alone_and_printed_on_white() -> None:
    style = (Path(selfprobe.page.__file__).with_name("page.css")).read_text("utf-8")
    [rule] = re.findall(r"@media ([^{]*prefers-color-scheme:dark[^{]*)", style)
    assert rule.startswith("screen and ") and "--ink:#000" in style.partition("@media print")[2]


def test_any_name_can_be_drawn() -> None:
    drawn = Picture("x", "alt", "caption", self_against_others(NAMES, [SEEN] * 5, [SEEN] * 5, title="t"))
    assert drawn.rendered("svg").startswith(b"<?xml") and drawn.rendered("png").startswith(b"\x89PNG")
    assert b"\x1b" not in drawn.rendered("svg") and b"$x_1$" in drawn.rendered("svg")


def test_the_same_numbers_give_the_same_bytes() -> None:
    one, two = (Picture("x", "", "", advantages(["a", "b"], [SEEN] * 2, title="t")) for _ in range(2))
    assert one.rendered("svg") == two.rendered("svg")


def test_a_figure_too_wide_to_read_beside_another_has_a_row_of_its_own() -> None:
    many, few = (heat_map(np.eye(size), [f"m{i}" for i in range(size)], title="t") for size in (11, 3))
    html = render(page_of(Figures([Picture("many", "", "", many), Picture("few", "", "", few)])), "out")
    assert html.count('<figure class="row">') == 1 and html.index('class="row"') < html.index("few.svg")


def test_texts_of_others_are_escaped_cleaned_and_masked() -> None:
    table = Table([{"why": "<b>\x1b[2J sk-abc123def456"}], (Column("why", "why"),))
    html = render(page_of(table, "Paragraph <i>"), "out")
    assert "&lt;b&gt;\ufffd[2J sk-…" in html and "Paragraph &lt;i&gt;" in html and "<i>" not in html


def test_links_to_logs_start_from_the_page(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "a b.eval"
    table = Table([Log(str(log))], (Column("log", lambda row: row),))
    assert '<a href="../logs/a%20b.eval"><code>a b.eval</code></a>' in render(page_of(table), str(tmp_path / "report"))
    assert relative(f"file://{log}", str(tmp_path)) == "logs/a%20b.eval"
    assert relative("s3://bucket/a.eval", str(tmp_path)) == "s3://bucket/a.eval"
    assert relative(str(log), "s3://bucket/report") is None, "who reads the page there has no such file"


def test_a_menu_leads_to_named_sections_and_to_those_inside() -> None:
    inner = Section("Inside", ["text"], name="in")
    html = render(page_of(inner, Details("more", ["folded"])), "out")
    links, ids = re.findall(r'href="#([^"]+)"', html), re.findall(r' id="([^"]+)"', html)
    assert links == ["part", "part-in"] == ids and "<details><summary>more</summary>" in html


def test_two_figures_of_one_name_are_our_mistake() -> None:
    pictures = [Picture("x", "", "", advantages(["a"], [SEEN], title="t")) for _ in range(2)]
    with pytest.raises(AssertionError, match="two figures are called x"):
        files_of(page_of(Figures(pictures)), "out")


def test_nothing_is_written_where_anything_fails(tmp_path: Path) -> None:
    write(page_of("old", tables={"t": pd.DataFrame({"a": [1]})}), str(tmp_path))
    old = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    (tmp_path / "extra.csv").mkdir()
    with pytest.raises(InputError, match=r"cannot write to .*: extra\.csv is a folder there"):
        write(page_of("new", tables={"t": pd.DataFrame({"a": [2]})}, files={"extra.csv": b""}), str(tmp_path))
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == old
