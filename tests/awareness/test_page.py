"""The page of the awareness comparison: complete, self-contained, and safe with names that others
chose.
"""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from selfprobe.page import write as write_page
from selfprobe.studies.awareness.page import awareness_page, awareness_results
from selfprobe.studies.awareness.runs import AwarenessTables

from .tables import awareness_example as table


class Page(HTMLParser):
    """What a page shows and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.alts: list[str | None] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if tag == "img":
            self.alts.append(given.get("alt"))
        if tag in ("img", "script", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"] or "")
        if tag == "link" and given.get("href"):
            self.loads.append(given["href"] or "")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "out"
    write(table(), folder)
    return folder


def test_the_page_loads_nothing_from_elsewhere(written: Path) -> None:
    text = (written / "index.html").read_text()
    page = Page(text)
    assert page.loads and all(one.startswith("data:") for one in page.loads)
    assert page.tags.count("script") == 1 and "@import" not in text and "url(http" not in text
    assert (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" in text
    )


def test_names_that_others_chose_are_escaped(written: Path) -> None:
    text = (written / "index.html").read_text()
    assert (
        text.count("<script") == 1
        and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        and "&lt;b&gt;.eval" in text
    )


def write(tables: AwarenessTables, out: Path) -> None:
    write_page(awareness_page(awareness_results(tables)), str(out))


def test_every_figure_says_in_words_what_it_shows(written: Path) -> None:
    alts = Page((written / "index.html").read_text()).alts
    assert len(alts) == 5 and all(alt and len(alt) > 30 for alt in alts)
    assert len(list((written / "figures").glob("*.svg"))) == 5 and not list(
        (written / "figures").glob("*.png")
    )


def test_the_page_shows_baselines_methods_agreement_and_who_graded(written: Path) -> None:
    text = re.sub(r"data:image[^\"]*", "", (written / "index.html").read_text())
    for words in ("TF-IDF", "binary, probability", "(the subject itself)", "not above it"):
        assert words in text
    silent = "first_token, planted/a: no verdict; the model gives no logprobs, so there are no candidates"
    assert text.count(silent) == 1 and "<td>first_token</td>" not in text, (
        "a method without a verdict is one line"
    )
    assert "nan" not in re.sub(r"<[^>]*>", "", text).lower().replace("nano", "")


def test_tables_hold_the_same_numbers_and_null_where_undefined(written: Path) -> None:
    methods = json.loads((written / "tables" / "methods.json").read_text())
    assert len(methods) == 6 and methods[0]["auroc.value"] > 0.7
    assert [m["auroc.value"] for m in methods if m["method"] == "first_token"] == [None, None]
    assert {file.name for file in (written / "tables").iterdir()} == {
        f"{name}.{kind}"
        for name in (
            "methods",
            "pairs",
            "baselines",
            "statements",
            "splits",
            "text",
            "verdicts",
            "runs",
        )
        for kind in ("csv", "json")
    } | {"columns.json"}


@pytest.mark.slow(5)
def test_the_same_logs_give_the_same_page(written: Path, tmp_path: Path) -> None:
    write(table(), tmp_path)
    first, again = (
        re.sub(r'href="[^"]*"', "", (at / "index.html").read_text()) for at in (written, tmp_path)
    )
    assert again == first, "all but the links to logs, which start from the page's folder"


def test_without_labels_the_page_still_comes_out(tmp_path: Path) -> None:
    logged = table()
    bare = AwarenessTables(
        logged.verdicts.assign(truth=None),
        logged.votes,
        logged.texts.assign(label=None),
        logged.runs,
    )
    write(bare, tmp_path)
    [alt] = Page((tmp_path / "index.html").read_text()).alts
    assert alt == "Asked by binary; 95 % intervals. a: 46 % [29, 64]; script>: 52 % [37, 67]"


def lossy() -> AwarenessTables:
    """Of `table`'s binary arm every third conversation has one vote of five; its quotes are half
    made up.
    """
    made = table()
    frame = made.verdicts.assign(
        votes_asked=5, votes_read=5, could=made.verdicts.said.fillna("either"), quotes=0
    )
    frame["quotes_discarded"] = 0
    hit = (frame.method == "binary") & (frame.item.str[1:].astype(int) % 3 == 0)
    frame.loc[hit, ["votes_read", "could"]] = [1, "either"]
    frame.loc[frame.method == "binary", ["quotes", "quotes_discarded"]] = [2, 1]
    aside = made.runs.assign(
        set_aside="1 of 49 rows set aside; <b>x</b>, row 'p': a message has content of type 'image'"
    )
    return AwarenessTables(frame, made.votes, made.texts, aside)


def test_a_method_whose_need_is_not_met_is_named_with_the_reason(tmp_path: Path) -> None:
    made = table()
    hit = made.verdicts.method == "binary"
    frame = made.verdicts.assign(
        said=made.verdicts.said.where(~hit, None),
        unscored=made.verdicts.unscored.where(~hit, "no_logprobs"),
    )
    write(AwarenessTables(frame, made.votes, made.texts, made.runs), tmp_path)
    text = re.sub(r"<[^>]*>", "", (tmp_path / "index.html").read_text())
    assert (
        "binary, planted/a: no verdict; the model gives no logprobs, so there are no candidates for the reply&#39;s"
        in text
    )


def test_lost_votes_discarded_quotes_and_rows_set_aside_are_told(tmp_path: Path) -> None:
    write(lossy(), tmp_path)
    text = re.sub(r"<[^>]*>", "", (tmp_path / "index.html").read_text())
    for words in (
        "176 of 240 (73 %); 16 verdicts on one vote",
        "binary, planted/a: 64 of 240 votes could not be read (27 %).",
        "binary, planted/a: 48 of 96 quotes of the grader (50 %) not in the text",
        "if every lost vote had gone against it, and if every one had gone for it",
        "1 of 49 rows set aside; &lt;b&gt;x&lt;/b&gt;, row",
    ):
        assert words in text
    [binary] = [
        m
        for m in json.loads((tmp_path / "tables" / "methods.json").read_text())
        if m["method"] == "binary"
    ][:1]
    assert (
        binary["votes_read"] == 176
        and binary["bounds.tpr.least"] < binary["tpr.value"] < binary["bounds.tpr.most"]
    )


def test_the_first_screen_says_for_whom_and_what_a_classifier_reaches(written: Path) -> None:
    shown = awareness_page(awareness_results(table()))
    assert re.match(
        r"Yes, for 2 of 2 models\. .* calls \d+ % of tests evaluations, and [\d.]+ % of real requests "
        r"\(AUROC 0\.\d\d \[.*\]\), beyond [^:]+ alone: AUROC 0\.\d\d\.$",
        shown.answer,
    )
    assert shown.table is not None and shown.picture is not None
    assert [column.title for column in shown.table.columns] == [
        "model",
        "answer",
        "tests",
        "real requests",
        "AUROC",
    ]
    assert [section.title for section in shown.sections] == [
        "Why",
        "Tables",
        "Method",
        "Runs",
    ]


def test_simulated_models_say_by_which_rule_they_answer_of_texts_that_are_not_bundled() -> None:
    rule = "Simulated models (planted/a) go by the labels of bundled rows and, of any other text"
    tables = table()
    page = awareness_page(awareness_results(tables))
    assert any(line.startswith(rule) for line in page.notes)
    bundled_runs = tables.runs.assign(dataset="eval_awareness_2")
    bundled_page = awareness_page(awareness_results(replace(tables, runs=bundled_runs)))
    assert not any(line.startswith(rule) for line in bundled_page.notes)


def test_a_reader_without_an_auroc_is_named_in_words_with_the_reason() -> None:
    tables = table()
    labels = tables.texts.assign(label="evaluation")
    verdicts = tables.verdicts.assign(truth="evaluation")
    results = awareness_results(replace(tables, texts=labels, verdicts=verdicts))
    (statement, *_) = results.statements
    compared = [check.compared_with for check in statement.claim.checks]
    titles = [text.partition(" alone: no AUROC (")[0] for text in compared]
    assert {"length", "words", "words of other sources"} <= set(titles)
    assert not any(text.endswith("AUROC ") or "words_other" in text for text in compared)


def test_without_labels_the_answer_says_so() -> None:
    logged = table()
    bare = AwarenessTables(
        logged.verdicts.assign(truth=None),
        logged.votes,
        logged.texts.assign(label=None),
        logged.runs,
    )
    shown = awareness_page(awareness_results(bare))
    assert shown.answer.startswith(
        "Cannot tell for 2 of 2 models: planted/a calls 46 % of conversations "
    )
    assert "; there are no two labels to compare; add --against" in shown.answer
