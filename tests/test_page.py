"""The one page of every study: safe with what others wrote, links from where it stands, placed
whole.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

import selfprobe.page
from selfprobe.errors import InputError
from selfprobe.errors.output import destination, place, relative
from selfprobe.logs import Identity
from selfprobe.page import (
    PI,
    ClaimWords,
    Column,
    Details,
    Figures,
    Heading,
    Item,
    Items,
    Log,
    Page,
    RowTable,
    Section,
    Table,
    Texts,
    TooFull,
    answer_words,
    files_of,
    headings,
    render,
    write,
)
from selfprobe.page.claims import answer_over
from selfprobe.page.plots import bar_rows, heat_map, interval_rows
from selfprobe.stats.claim import Claim
from selfprobe.stats.estimate import Estimate, undefined

PICTURE = interval_rows(
    "x", {"a": {"": Estimate(0.6, 0.5, 0.7, 10, "item")}}, caption="Caption.", axis="score"
)


def page_of(*blocks: object, **more: object) -> Page:
    return Page("Title", "Lead.", [Section("Part", blocks, name="part")], **more)  # type: ignore[arg-type]


def test_the_sentence_of_the_first_model_is_printed_once() -> None:
    words = ClaimWords(yes="shows", no="shows nothing", checks={})
    claims = [Claim(name, Estimate(0.0, -0.1, 0.1, 9, "item"), (), 0.5) for name in "abcdefgh"]
    answer, lines = answer_over(claims, words)
    assert answer == "No, not for any of 8 models: a shows nothing."
    assert (
        lines[0] == "No: b shows nothing."
        and lines[-1] == "3 more models are on the page."
        and len(lines) == 5
    )


def test_a_page_is_dark_on_a_screen_alone_and_printed_on_white() -> None:
    style = (Path(selfprobe.page.__file__).with_name("page.css")).read_text("utf-8")
    [rule] = re.findall(r"@media ([^{]*prefers-color-scheme:dark[^{]*)", style)
    assert rule.startswith("screen and ") and "--ink:#000" in style.partition("@media print")[2]


def test_a_figure_too_wide_to_read_beside_another_has_a_row_of_its_own() -> None:
    many, few = (
        heat_map(f"m{size}", np.eye(size), [f"m{i}" for i in range(size)], caption="")
        for size in (11, 3)
    )
    html = render(page_of(Figures([many, few])), "out")
    assert html.count('<figure class="row">') == 1 and html.index('class="row"') < html.index(
        "m3.svg"
    )


def test_texts_of_others_are_escaped_cleaned_and_masked() -> None:
    table = Table([{"why": "<b>\x1b[2J sk-abc123def456"}], (Column("why", "why"),))
    html = render(page_of(table, "Paragraph <i>"), "out")
    assert "&lt;b&gt;\ufffd[2J sk-…" in html and "Paragraph &lt;i&gt;" in html and "<i>" not in html


def test_links_to_logs_start_from_the_page(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "a b.eval"
    table = Table([Log(str(log))], (Column("log", lambda row: row),))
    assert '<a href="../logs/a%20b.eval"><code>a b.eval</code></a>' in render(
        page_of(table), str(tmp_path / "report")
    )
    assert relative(f"file://{log}", str(tmp_path)) == "logs/a%20b.eval"
    assert relative("s3://bucket/a.eval", str(tmp_path)) == "s3://bucket/a.eval"
    assert relative(str(log), "s3://bucket/report") is None, (
        "who reads the page there has no such file"
    )


def test_a_menu_leads_to_named_sections_and_to_those_inside() -> None:
    inner = Section("Inside", ["text"], name="in")
    html = render(page_of(inner, Details("more", ["folded"])), "out")
    links, ids = re.findall(r'href="#([^"]+)"', html), re.findall(r' id="([^"]+)"', html)
    assert links == ["part", "part-in"] == ids and "<details><summary>more</summary>" in html


def test_two_figures_of_one_name_are_our_mistake() -> None:
    pictures = [PICTURE, PICTURE]
    with pytest.raises(AssertionError, match="two figures are called x"):
        files_of(page_of(Figures(pictures)), "out")


def test_nothing_is_written_where_anything_fails(tmp_path: Path) -> None:
    write(page_of("old", tables={"t": pd.DataFrame({"a": [1]})}), str(tmp_path))
    old = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    (tmp_path / "extra.csv").mkdir()
    with pytest.raises(InputError, match=r"cannot write to .*: extra\.csv is a folder there"):
        write(
            page_of("new", tables={"t": pd.DataFrame({"a": [2]})}, files={"extra.csv": b""}),
            str(tmp_path),
        )
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == old


def answered(answer: str = "Yes, for 2 of 5 models. ada is right.", **more: object) -> Page:
    table = Table([{"model": "ada"}], (Column("model", "model"),))
    parts = headings(verdict_blocks=["Because."], method=["How."], table_blocks=[], runs=["These."])
    return Page("A question?", sections=parts, answer=answer, picture=PICTURE, table=table, **more)  # type: ignore[arg-type]


def test_a_page_with_an_answer_shows_it_and_a_picture_and_a_table_before_closed_headings() -> None:
    html = render(answered(), "out")
    order = [
        html.index(one)
        for one in (
            "<h1>A question?",
            "<strong>Yes, for 2 of 5 models.</strong>",
            "<img",
            "<td>ada",
        )
    ]
    assert order == sorted(order) and order[-1] < html.index("<details")
    assert re.findall(r'<details class="part" id="(\w+)"><summary><h2>([^<]+)', html) == [
        ("why", "Why"),
        ("method", "Method"),
        ("runs", "Runs"),
    ]
    assert "<nav>" not in html and "<details open" not in html


@pytest.mark.parametrize(
    ("answer", "fine"),
    [
        ("Yes, for ada. " + "word " * 22, True),
        ("Yes, for ada. " + "word " * 23, False),
        ("Cannot tell for ada: 88 % [70, 90] of 12 " + "word " * 19, True),
        ("Maybe, for ada.", False),
        ("Nobody knows.", False),
    ],
)
def test_an_answer_has_at_most_25_words_and_begins_with_one_of_three(
    answer: str, fine: bool
) -> None:
    if fine:
        assert answered(answer.strip()).answer
        return
    with pytest.raises((AssertionError, TooFull)):
        answered(answer.strip())


def test_no_line_break_divides_an_option_in_an_answer() -> None:
    page = Page("Does it?", answer="Cannot tell: add --against <b>, or 3--4.")
    html = render(page, "out")
    assert 'add <span class="option">--against</span> &lt;b&gt;, or 3--4.' in html


def test_a_table_of_six_columns_and_six_further_lines_are_refused() -> None:
    with pytest.raises(TooFull):
        Page("q", table=Table([], tuple(Column(str(i), "x") for i in range(6))))
    with pytest.raises(TooFull):
        answered(notes=["line"] * 6)
    assert answered(notes=["line"] * 5).lines == [
        "Yes, for 2 of 5 models. ada is right.",
        *["line"] * 5,
    ]


def test_numbers_are_no_words_and_a_name_is_one() -> None:
    assert answer_words("planted/ada gets 88 % of 0.5 (AUROC .55)") == [
        "planted/ada",
        "gets",
        "of",
        "(AUROC",
    ]


def test_parts_are_pages_of_their_own_below_one_title() -> None:
    whole = Page(
        "All?",
        parts={
            "a": answered(),
            "b": Page("Other?", "Lead.", [Section("Old", ["text"], name="old")]),
        },
    )
    html = render(whole, "out")
    ids = re.findall(r' id="([^"]+)"', html)
    assert ids == ["a", "a-why", "a-method", "a-runs", "b", "b-old"] and len(set(ids)) == len(ids)
    assert [path for path in files_of(whole, "out") if path.startswith("figures/")] == [
        "figures/x.svg"
    ]


@pytest.mark.parametrize(
    ("answer", "head"),
    [
        ("Yes, for 1 judge: in 98 % of pairs the rewrites look real.", "Yes, for 1 judge:"),
        ("Yes, for 2 of 2 models. planted/a tells .5 of them.", "Yes, for 2 of 2 models."),
        ("No, not for a: it does not.", "No,"),
    ],
)
def test_what_stands_out_of_an_answer_ends_at_its_first_stop(answer: str, head: str) -> None:
    assert Page("?", answer=answer).verdict[0] == head


def test_models_are_shown_without_their_settings_but_for_commands() -> None:
    models = ["planted/ada?access=.8", "planted/ada?access=.85", "planted/bo?x=1"]
    command = Markup("<code>selfprobe matrix --models planted/bo?x=1</code>")
    html = render(
        replace(answered(models=models), sections=[Section("S", [", ".join(models), command])]),
        "out",
    )
    assert "<p>planted/ada?access=.8, planted/ada?access=.85, planted/bo</p>" in html
    assert "--models planted/bo?x=1" in html


def test_an_items_id_leads_to_its_text() -> None:
    items = [Item("i1", "<b>text</b>"), Item("i2", "other")]
    html = render(
        page_of(
            Items("Clearest", items), Texts(items), Table(items, (Column("id", lambda item: item),))
        ),
        "out",
    )
    assert (
        html.count(f'<a href="#{items[0].anchor}">i1</a>') == 2
        and f'<details id="{items[0].anchor}">' in html
    )
    assert "&lt;b&gt;text" in html and items[0].anchor != items[1].anchor


def test_a_paper_is_a_title_with_a_link() -> None:
    html = render(page_of(Markup("As in {}.").format(PI)), "out")
    assert '<a href="https://arxiv.org/abs/2603.20276">“Me, Myself, and π”</a>' in html


def test_a_page_of_other_logs_is_replaced_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of(*logs: str) -> Page:
        return Page("A question?", tables={"runs": pd.DataFrame({"log": logs})})

    write(of("a.eval", "b.eval"), str(tmp_path))
    write(of("b.eval", "c.eval"), str(tmp_path))
    assert capsys.readouterr().err == ""
    write(of("d.eval"), str(tmp_path))
    assert "held a page of other logs, such as b.eval: it is replaced" in capsys.readouterr().err


@dataclass(frozen=True)
class NumberRow:
    """A row of one number."""

    number: Annotated[float, Heading("number", "A number.")]


@pytest.mark.parametrize("memory", [False, True], ids=["this machine", "an address"])
def test_tables_figures_and_claims_of_an_earlier_page_go_and_other_files_stay(
    memory: bool, tmp_path: Path
) -> None:
    out = f"memory://{tmp_path.name}/page" if memory else str(tmp_path)
    file_system, inner_path = destination(out)

    def page_with(*names: str) -> Page:
        tables = {name: RowTable(NumberRow, [NumberRow(1.0)]) for name in names}
        number_by_source = {"a": {"b": undefined("", value=0.5)}}
        pictures = [bar_rows(name, number_by_source, caption="A.", axis="A") for name in names]
        return Page("A question?", tables=tables, sections=[Section("S", [Figures(pictures)])])

    def files_there() -> set[str]:
        found_files = file_system.find(inner_path)
        return {file.replace("\\", "/").partition(f"{inner_path}/")[2] for file in found_files}

    write(page_with("kept", "routing"), out)
    place({"tables/mine.csv": b"1", "figures/mine.svg": b"1", "notes.txt": b"1"}, out)
    assert "tables/routing.csv" in files_there() and "figures/routing.svg" in files_there()
    write(page_with("kept", "new"), out)
    files = files_there()
    assert not any("routing" in file for file in files), files
    assert {"tables/kept.csv", "tables/new.json", "figures/new.svg"} <= files
    assert {"tables/mine.csv", "figures/mine.svg", "notes.txt"} <= files


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        (["openai/gpt-5"], ""),
        (["planted/ada?access=.8"], "no real model answered"),
        (["mockllm/model", "openai/gpt-5"], "mockllm/model is no real model"),
        (["planted/ada", "planted/bo"], "no real model answered"),
        (
            ["planted/a", "planted/b", "planted/c", "hf/x"],
            "planted/a, planted/b and 1 more are no real models",
        ),
    ],
)
def test_a_page_says_on_its_first_screen_which_models_are_simulated(
    models: list[str], sentence: str
) -> None:
    page = page_of(models=models)
    html = render(page, "out")
    assert sentence in page.simulated and bool(page.simulated) == bool(sentence)
    assert ('class="simulated"' in html.partition("<nav>")[0]) == bool(sentence)


def test_a_page_of_several_studies_says_it_for_the_models_of_each() -> None:
    part = Page("Part?", answer="No, not for planted/ada: nothing.", models=["planted/ada"])
    assert "no real model answered" in Page("All", parts={"part": part}).simulated


def test_a_grader_that_is_simulated_is_among_the_models_of_a_run() -> None:
    identity = Identity(
        "awareness_effect", "openai/gpt-5", roles=(("grader", "planted/judge,openai/gpt-4o"),)
    )
    assert identity.models == ["openai/gpt-5", "planted/judge", "openai/gpt-4o"]


def test_a_notebook_shows_a_page_in_a_frame_of_its_own() -> None:
    frame = page_of("A paragraph.")._repr_html_()
    assert (
        frame.startswith("<iframe srcdoc=") and "A paragraph." in frame and "<script" not in frame
    )
