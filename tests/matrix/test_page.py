"""The report: self-contained, escaped, readable aloud; the same numbers in page and tables."""

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.page import PI, Details, render
from selfprobe.page import Page as MadePage
from selfprobe.page import write as write_page
from selfprobe.stats.claim import Check, Outcome
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.matrix import page as report
from selfprobe.studies.matrix.numbers import Analysis, analyse
from selfprobe.studies.matrix.sections import baseline_rows, best_logged_baseline, own_scores
from selfprobe.studies.matrix.table import Results, matrix_of

OWN = files("selfprobe.page").joinpath("page.js").read_text("utf-8")
"""The one script that a page runs: it sorts tables."""
EVIL = "m/<script>alert(1)</script>"
HOLE = "HTTP 500 <img src=x onerror=alert(2)>"
ACCESS = {"m/a": 0.9, EVIL: 0.4, "m/c": 0.9, "m/d": 0.4}


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def write(results: Results, out: Path) -> tuple[Analysis, str]:
    """A report of tables in memory."""
    analysis = analyse(results, rng=np.random.default_rng(0))
    write_page(report.results_page(results, analysis), str(out))
    return analysis, (out / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(
    matrix_results: Callable[..., Results], tmp_path_factory: pytest.TempPathFactory
) -> Any:
    results = matrix_results(ACCESS, items=60)
    cells = results.cells
    cells.loc[(cells.target == "m/a") & (cells.observer == "m/d"), ["status", "reason"]] = [
        "failed",
        HOLE,
    ]
    results = replace(results, ignored={"logs/x<b>.eval": "not a selfprobe log"})
    out = tmp_path_factory.mktemp("report")
    return (*write(results, out), out, results)


def test_the_page_loads_nothing_from_anywhere(written: Any) -> None:
    page = Page(written[1])
    loaded = [
        value
        for _, a in page.tags
        for name, value in a.items()
        if name in ("src", "srcset", "data", "action")
    ]
    assert loaded and all(
        value.startswith("data:image/svg+xml;base64,") for value in loaded if value
    )
    assert not {"link", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert [a for tag, a in page.tags if tag == "script"] == [
        {}
    ] and f"<script>{OWN}</script>" in written[1]
    links = {a["href"] for tag, a in page.tags if tag == "a"}
    assert {link for link in links if link and link.startswith(("http", "//"))} == {PI.address}, (
        "papers are cited"
    )
    assert "url(" not in written[1] and "@import" not in written[1]


def test_every_picture_has_alternative_text_with_its_numbers(written: Any) -> None:
    pictures = [a for tag, a in Page(written[1]).tags if tag == "img"]
    assert len(pictures) == 4 and all(a.get("alt") for a in pictures)
    assert sum("a on a 0.9" in (a["alt"] or "") for a in pictures) == 1
    assert not [a["alt"] for a in pictures if "Estimate(" in (a["alt"] or "")]


def test_what_a_model_or_a_provider_wrote_is_escaped(written: Any) -> None:
    page = Page(written[1])
    assert EVIL in page.text and HOLE in page.text and "logs/x<b>.eval" in page.text
    assert [tag for tag, a in page.tags if tag in ("script", "b") or "onerror" in a] == [
        "script"
    ]  # the page's own


def test_a_hole_is_in_the_table_with_its_reason_and_without_a_number(written: Any) -> None:
    analysis, page, out, _ = written
    assert analysis.tasks[0].left_out
    cells = pd.read_csv(out / "tables" / "cells.csv").set_index(["target", "observer"])
    assert (
        np.isnan(cells.loc[("m/a", "m/d"), "value"]) and cells.loc[("m/a", "m/d"), "hole"] == HOLE
    )
    assert "left out of the statistics" in page


def test_a_small_p_is_told_as_a_bound_and_never_as_zero(written: Any) -> None:
    text = Page(written[1]).text
    assert "&lt; 0.0001" in written[1] and "0.0000" not in text and "nan" not in text


def test_links_of_the_page_lead_to_files_that_are_there(written: Any) -> None:
    _, page, out, _ = written
    links = [a["href"] or "" for tag, a in Page(page).tags if tag == "a"]
    local = [link for link in links if link.startswith(("figures/", "tables/"))]
    assert len(local) == 4 and all((out / link).exists() for link in local)
    anchors = {a["id"] for _, a in Page(page).tags if "id" in a}
    assert {link[1:] for link in links if link.startswith("#")} <= anchors


def test_the_tables_are_there_in_both_forms_and_agree_with_the_matrix(written: Any) -> None:
    _, _, out, results = written
    for name in ("cells", "runs", "advantage", "self"):
        assert len(pd.read_csv(out / "tables" / f"{name}.csv")) == len(
            pd.read_json(out / "tables" / f"{name}.json")
        )
    own = pd.read_csv(out / "tables" / "self.csv").set_index("model").value
    matrix = matrix_of(results, "kth_word")
    for place, model in enumerate(matrix.models):
        assert own[model] == pytest.approx(np.nanmean(matrix.scores[place, place]))
    assert len(pd.read_parquet(out / "tables" / "decisions.parquet")) == len(results.decisions)


def test_table_two_of_dilemmas_holds_item_scores_and_no_probabilities() -> None:
    rows = [
        {
            "task": "ethical_dilemma",
            "target": "m",
            "observer": "m",
            "item": "d",
            "epoch": epoch,
            "key": key,
        }
        | {"value": value, "reasoned": False, "unscored": None}
        for epoch, values in enumerate([(0.9, 0.5, 0.6), (0.7, 0.5, 0.8)], 1)
        for key, value in zip(("p", "p_direct", "p_predicted"), values, strict=True)
    ]
    cell = {
        "task": "ethical_dilemma",
        "target": "m",
        "observer": "m",
        "status": "complete",
        "reason": "",
    }
    cell |= {
        "dataset_sha256": "aa",
        "version": "1",
        "args": {},
        "epochs": 2,
        "settings": {},
        "items": ["d"],
        "joined": False,
        "log": "m.eval",
    }
    results = Results(pd.DataFrame([cell]), pd.DataFrame(rows), pd.DataFrame(), {}, [])
    (row,) = own_scores(results, {})
    assert row.estimate.value == pytest.approx(1 - abs(0.8 - 0.7)) and row.estimate.n == 1


def test_a_failed_run_of_a_model_on_itself_has_its_reason_and_no_number(
    matrix_results: Callable[..., Results],
) -> None:
    results = matrix_results({"m/a": 0.9, "m/b": 0.4}, items=20)
    results.cells.loc[0, ["status", "reason"]] = ["failed", "12 of 20 samples in error"]
    failed, good = own_scores(results, {})
    assert (failed.model, failed.hole, failed.estimate.n) == ("m/a", "12 of 20 samples in error", 0)
    assert np.isnan(failed.estimate.value) and good.hole == "" and good.estimate.n == 20


def test_the_page_says_which_baselines_a_task_does_without(
    matrix_results: Callable[..., Results], tmp_path: Path
) -> None:
    _, page = write(
        matrix_results({"m/a": 0.9, "m/b": 0.4, "m/c": 0.4}, items=20, task="heads_up"), tmp_path
    )
    assert "not applied, so no claim asks for it: the item&#39;s text is the truth" in page


def test_models_that_reasoned_although_asked_not_to_are_named_above_their_tasks_table(
    matrix_results: Callable[..., Results], tmp_path: Path
) -> None:
    results = matrix_results(ACCESS, items=20)
    decisions = results.decisions
    decisions.loc[decisions.observer == "m/a", "reasoned"] = True
    results.cells["applied"] = [
        {"observer": "effort minimal (asked: none)"} for _ in range(len(results.cells))
    ]
    _, page = write(results, tmp_path)
    assert (
        "kth_word: reasoned before predicting, although asked not to: m/a (of 100 % of its predictions)."
        in page
    )
    assert "observer: effort minimal (asked: none)" in page, "the runs table's column"


def test_a_single_model_gets_its_own_scores_and_a_word_about_why_no_more(
    matrix_results: Callable[..., Results], tmp_path: Path
) -> None:
    analysis, page = write(matrix_results({"m/a": 0.9}, items=20), tmp_path)
    assert analysis.tasks == () and re.search(r"<td[^>]*>m/a</td>", page)
    told = "One model alone has no answer, which compares it with at least three others: selfprobe matrix --models"
    assert f"{told} m/a,B,C,D,E --tasks kth_word." in page


def test_a_single_model_without_a_score_says_why(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({"planted/b?access=.5": 0.4}, items=20)
    results.cells.loc[0, ["status", "reason"]] = ["failed", "12 of 20 samples in error"]
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    hole, needs = made.notes
    assert made.answer == (
        "Cannot tell for planted/b: it has cells without a score; the same command asks again what failed."
    )
    assert hole == "kth_word, planted/b: no score, since 12 of 20 samples in error."
    assert needs.endswith(
        "selfprobe matrix --models 'planted/b?access=.5,B,C,D,E' --tasks kth_word."
    )
    html = unescape(render(made, "out"))
    assert hole in html and needs in html, "a command that is copied keeps the settings"


def counted(page: MadePage) -> str:
    """What the page says of its cells and runs."""
    [method] = [section for section in page.sections if section.name == "method"]
    return str(method.blocks[0])


def test_joined_cells_are_no_runs_and_informed_ones_are(
    matrix_results: Callable[..., Results],
) -> None:
    results = matrix_results({"m/a": 0.9, "m/b": 0.4}, items=20)
    results.cells["joined"] = results.cells.target != results.cells.observer
    told = results.cells.iloc[1:2].assign(arm="shown:5", joined=False, log="told.eval")
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    assert counted(made).startswith("4 cells from 2 runs, 1 task.")
    informed = replace(
        results, informed=told, informed_decisions=results.decisions.head(0).assign(arm="shown:5")
    )
    made = report.results_page(informed, analyse(results, rng=np.random.default_rng(0)))
    assert counted(made).startswith(
        "4 cells from 3 runs (1 of observers that were told of their target), 1 task."
    )
    (details,) = (block for block in made.sections[-1].blocks if isinstance(block, Details))
    assert details.summary == "All 3 runs"
    assert details.blocks[2:] == [
        "2 cells are no runs: joined from both models' own, as tables/runs.csv lists.",
        "Versions: selfprobe 0, inspect 0.",
    ]
    alone = report.results_page(matrix_results({"m/a": 0.9}, items=20), Analysis(()))
    assert counted(alone).startswith("1 cell from 1 run, 1 task.")


def test_the_table_of_runs_names_what_they_have_in_common_by_a_number(
    matrix_results: Callable[..., Results], tmp_path: Path
) -> None:
    results = matrix_results({"m/a": 0.9, "m/b": 0.4}, items=20)
    results.cells["joined"] = results.cells.target != results.cells.observer
    write(results, tmp_path)
    runs, setups = (
        pd.read_csv(tmp_path / "tables" / f"{name}.csv", keep_default_na=False)
        for name in ("runs", "setups")
    )
    assert set(runs.setup) == set(setups.setup) == {1}
    assert not {"args", "dataset", "version", "selfprobe", "inspect"} & set(runs.columns)
    assert list(setups.columns) == [field.name for field in fields(report.SetupRow)]
    assert set(runs["items"]) == {20}
    assert set(runs[runs.joined].log) == {""} and "" not in set(runs[~runs.joined].log)


def test_the_page_of_many_models_leaves_its_largest_tables_to_the_files(
    matrix_results: Callable[..., Results], tmp_path: Path
) -> None:
    models = {f"m/{place}": 0.5 for place in range(32)}
    results = matrix_results(models, items=5)
    analysis, text = write(results, tmp_path)
    assert "724 more rows are in tables/cells.csv." in text
    assert len(pd.read_csv(tmp_path / "tables" / "cells.csv")) == 32**2
    (row, *_) = analysis.tasks[0].rows
    shown = [line.baseline for line in baseline_rows(analysis) if line.model == row.model]
    likest = sorted(row.stand_ins, key=lambda other: row.stand_ins[other].value)[:15]
    assert len(row.stand_ins) == 31
    assert {name.removesuffix("'s own replies") for name in shown if "replies" in name} == set(
        likest
    )


def test_the_best_baseline_of_a_run_is_no_divergence() -> None:
    metrics = {"baseline_half": 0.7, "baseline_mean": 0.8, "baseline_kl_half": 2.0}
    assert best_logged_baseline(metrics) == ("mean", 0.8)


def test_the_first_screen_says_for_whom_and_what_comes_closest(
    matrix_results: Callable[..., Results],
) -> None:
    results = matrix_results(
        {"m/a?x=1": 0.95, "m/b": 0.0, "m/c": 0.0, "m/d": 0.0, "m/e": 0.0}, items=80
    )
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    assert re.fullmatch(
        r"Yes, for 1 of 5 models\. m/a scores \d\d % on itself, \+0\.\d\d \[.*\] above what skill gives \(p [=<] 0\.\d+\); "
        r"m/[b-e] on it: [\d.]+ %\.",
        made.answer,
    )
    assert made.table is not None and made.picture is not None
    cells = [[column.cell(row) for column in made.table.columns] for row in made.table.rows]
    assert cells[0][:2] == ["m/a", "Yes"] and {row[1] for row in cells[1:]} <= {"No", "Cannot tell"}
    assert cells[0][2] in made.answer and "a: itself" in made.picture.alt
    assert [section.title for section in made.sections] == [
        "Why",
        "Tables",
        "Method",
        "Runs",
    ]


def test_a_model_without_a_score_is_not_counted_among_those_with_an_answer(
    matrix_results: Callable[..., Results],
) -> None:
    results = matrix_results(
        {"m/a": 0.95, "m/b": 0.0, "m/c": 0.0, "m/d": 0.0, "m/e": 0.0, "m/f": 0.0}, items=80
    )
    rows = results.decisions
    rows.loc[(rows.target == "m/f") | (rows.observer == "m/f"), "value"] = np.nan
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    assert made.answer.startswith("Yes, for 1 of 6 models. m/a scores ")
    assert made.lines[1] == "No score, so no answer, for m/f."


def test_two_models_get_no_answer_and_the_reason(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({"m/a": 0.9, "m/b": 0.1}, items=40)
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    assert made.answer == (
        "Cannot tell for 2 of 2 models: m/a has too few models beside it; add 2 models or more."
    )


def test_tasks_of_different_models_are_not_counted_for_the_models_of_one(
    matrix_results: Callable[..., Results],
) -> None:
    two = matrix_results({"m/b": 0.4, "m/c": 0.4}, items=40)
    three = matrix_results(
        {"m/a": 0.4, "m/b": 0.4, "m/c": 0.4}, items=40, task="paraphrase_recognition"
    )
    tables = {
        name: pd.concat([getattr(one, name) for one in (two, three)])
        for name in ("cells", "decisions", "items")
    }
    results = replace(two, **tables)
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    assert made.answer.startswith(
        "Cannot tell for 3 of 3 models in 2 of 2 tasks: in kth_word m/b has too few models"
    )


def test_of_many_models_the_first_screen_shows_five(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({f"m/{letter}": 0.3 for letter in "abcdefgh"}, items=20)
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    assert made.table is not None and len(made.table.rows) == 5
    assert made.picture is not None and "Tables show 3 more." in made.picture.caption


def test_the_strongest_competitor_is_in_the_sentence_the_picture_and_the_table(
    matrix_results: Callable[..., Results],
) -> None:
    """Another model's own replies, which get .9 where the best other observer gets .4."""
    results = matrix_results(
        {"m/a": 0.95, "m/b": 0.0, "m/c": 0.0, "m/d": 0.0, "m/e": 0.0}, items=80
    )
    (task,) = analyse(results, rng=np.random.default_rng(0)).tasks
    reply = Check(
        name="above_stand_ins",
        difference=Estimate(0.05, 0.02, 0.08, 80, "item"),
        outcome=Outcome.HOLDS,
        compared_with="m/e's own words: 90 %",
        p_value=0.001,
        explains=True,
    )
    claims = tuple(
        replace(claim, checks=(*claim.checks, reply)) if claim.subject == "m/a" else claim
        for claim in task.claims
    )
    made = report.results_page(results, Analysis((replace(task, claims=claims),)))
    assert made.answer.endswith("; m/e's own words: 90 %.")
    assert made.table is not None and made.picture is not None
    first = {column.title: column.cell(made.table.rows[0]) for column in made.table.columns}
    assert (
        first["strongest competitor"] == "m/e's own words: 90\N{NO-BREAK SPACE}%"
        and first["above it"] == "+0.05"
    )
    assert "another's own replies" in made.picture.alt


def test_of_several_tasks_models_and_tasks_are_counted_and_the_strongest_is_quoted(
    matrix_results: Callable[..., Results], tmp_path: Path
) -> None:
    knows = {"m/a": 0.95, "m/b": 0.0, "m/c": 0.0, "m/d": 0.0, "m/e": 0.0}
    nobody = dict.fromkeys(knows, 0.4)
    tasks = [
        matrix_results(nobody, items=40),
        matrix_results(knows, items=80, task="paraphrase_recognition"),
        matrix_results(nobody, items=40, task="heads_up", seed=1),
    ]
    tables = {
        name: pd.concat([getattr(task, name) for task in tasks])
        for name in ("cells", "decisions", "items")
    }
    results = replace(tasks[0], **tables)
    made = report.results_page(results, analyse(results, rng=np.random.default_rng(0)))
    assert made.answer.startswith(
        "Yes, for 1 of 5 models in 1 of 3 tasks. In paraphrase_recognition m/a scores 9"
    )
    assert made.table is not None and made.table.rows[0].task == "paraphrase_recognition"
    assert [column.title for column in made.table.columns] == [
        "task",
        "answer",
        "model",
        "on itself",
        "strongest competitor",
    ]
    write_page(made, str(tmp_path))
    claims = json.loads((tmp_path / "claims.json").read_text())[report.MATRIX_QUESTION]
    assert len(claims) == 15 and claims[0]["subject"] == "m/a in paraphrase_recognition"
    assert claims[0]["checks"][0]["name"] == "enough_models"


def test_every_table_of_a_matrix_says_what_its_columns_hold(written: Any) -> None:
    _, _, out, _ = written
    dictionary = json.loads((out / "tables" / "columns.json").read_text())
    stems = {path.stem for path in (out / "tables").glob("*.csv")}
    assert dictionary.keys() == stems
    for stem in stems:
        assert list(pd.read_csv(out / "tables" / f"{stem}.csv").columns) == list(dictionary[stem])


def test_the_page_holds_nothing_of_the_paper_but_the_command_for_it(written: Any) -> None:
    assert "selfprobe paper introspectbench LOGS" in Page(written[1]).text
    stems = {path.stem for path in written[2].rglob("*.*")}
    assert not {"table2", "figure2", "figure8-A", "diversity", "effort"} & stems
