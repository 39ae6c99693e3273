"""What counts as one in intervals is what the user names, or a column `source`; few clusters are
named before and after.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from selfprobe import cli
from selfprobe.data import groups_of, load
from selfprobe.data.clusters import few_clusters
from selfprobe.data.conversations import conversations
from selfprobe.errors import InputError, warn_once
from selfprobe.studies.awareness.study import Awareness, power
from selfprobe.studies.matrix.study import Matrix
from selfprobe.studies.preferences.judged import JudgedRun
from selfprobe.studies.preferences.study import Preferences
from selfprobe.studies.rewrite import Rewriting

COUNT = 40
OTHER_COLUMNS = (
    "category",
    "cluster",
    "group",
    "kind",
    "topic",
    "template",
    "domain",
    "format",
    "Category",
)
"""Columns that people have, none of which says what counts as one."""


def written(folder: Path, name: str = "mine.jsonl", **columns: Any) -> str:
    """Forty prompts of both labels; a column is a function of a row's number."""
    rows = [
        {
            "id": f"q{n}",
            "input": f"Item {n}: how far is it?",
            "label": ("deployment", "evaluation")[n % 2],
        }
        | {column: of(n) for column, of in columns.items()}
        for n in range(COUNT)
    ]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / name)


def half(number: int) -> str:
    return ("coding", "writing")[number // 20]


@pytest.mark.parametrize("column", OTHER_COLUMNS)
def test_no_other_column_than_source_makes_clusters_of_conversations(
    column: str, tmp_path: Path
) -> None:
    plain = conversations(written(tmp_path))
    beside = conversations(written(tmp_path, **{column: half}))
    assert (
        {row["source"] for row in beside.rows}
        == {row["source"] for row in plain.rows}
        == {plain.name}
    )
    assert power(beside.rows) == power(plain.rows)


@pytest.mark.parametrize("column", ["cluster", "source", "group", "template", "topic"])
def test_no_column_makes_clusters_of_items_by_itself(column: str, tmp_path: Path) -> None:
    rows = [{"question": f"Why {n}?", column: half(n)} for n in range(COUNT)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    place = str(tmp_path / "q.jsonl")
    table = load(place, "question")
    assert all("cluster" not in groups_of(row) for row in table.rows)
    assert f"column `{column}` is not used" in table.unread_columns_note
    named = load(f"{place}?cluster={column}", "question")
    assert {groups_of(row)["cluster"] for row in named.rows} == {"coding", "writing"}
    assert named.sha256 == table.sha256 and named.unread_columns_note == ""


@pytest.mark.parametrize("ending", ["jsonl", "csv", "json"])
def test_the_address_or_a_column_source_makes_clusters_of_conversations(
    ending: str, tmp_path: Path
) -> None:
    place = written(tmp_path, source=half, topic=lambda n: f"t{n % 5}")
    rows = [json.loads(line) for line in Path(place).read_text().splitlines()]
    path = tmp_path / f"other.{ending}"
    if ending == "json":
        path.write_text(json.dumps(rows))
    elif ending == "csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        path = Path(place)
    assert {row["source"] for row in conversations(str(path)).rows} == {"coding", "writing"}
    assert {row["source"] for row in conversations(f"{path}?cluster=topic").rows} == {
        f"t{n}" for n in range(5)
    }
    assert len({row["source"] for row in conversations(f"{path}?cluster=id").rows}) == COUNT
    assert conversations(f"{path}?cluster=topic").unread_columns_note == ""


def test_the_gated_sets_category_is_the_data_set_that_a_row_comes_from(tmp_path: Path) -> None:
    rows = [
        {"input": f"Q{n}?", "metadata": {"category": half(10 * n), "eval_category": n % 2}}
        for n in range(4)
    ]
    (tmp_path / "gated.json").write_text(json.dumps(rows))
    assert {row["source"] for row in conversations(str(tmp_path / "gated.json")).rows} == {
        "coding",
        "writing",
    }
    by_label = conversations(f"{tmp_path}/gated.json?cluster=eval_category").rows
    assert {row["source"] for row in by_label} == {"0", "1"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "?cluster=topics",
            r"40 of 40 rows lack the column topics \(\?cluster\), as q0; .*; did you mean topic\?",
        ),
        (
            "?kind=topic",
            r"\?kind is for items that models predict; conversations take \?cluster=COLUMN alone",
        ),
        ("?cluster=", r"cluster names no column; expected such as \?cluster=topic"),
        ("?clusters=topic", r"unknown \?clusters; there are kind, cluster; did you mean cluster\?"),
    ],
)
def test_a_column_of_conversations_that_cannot_be_is_refused(
    query: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        conversations(written(tmp_path, topic=half) + query)


def test_few_clusters_are_named_and_many_or_single_rows_are_not() -> None:
    told = few_clusters(["a"] * 3 + ["b"], rows="items", unit="cluster", remedy="take another")
    assert (
        told
        == "Intervals count the 4 items as 2 clusters: a (3), b (1). So few make them wide; take another."
    )
    one = few_clusters(["a", "a"], rows="items", unit="cluster", remedy="take another")
    assert one.startswith("Intervals count the 2 items as one cluster: a (2).")
    assert few_clusters(["a", "b", "c"], rows="items", unit="cluster", remedy="") == ""
    assert (
        few_clusters([str(n % 6) for n in range(12)], rows="items", unit="cluster", remedy="") == ""
    )
    assert few_clusters([], rows="items", unit="cluster", remedy="") == ""


def plan_of(study: Any) -> str:
    warn_once.cache_clear()
    return "\n".join(study.plan().lines)


def test_the_plan_of_awareness_promises_what_so_few_sources_can_show(tmp_path: Path) -> None:
    def planned(place: str) -> str:
        return plan_of(
            Awareness.from_values(
                {"models": ("planted/a",), "methods": ("binary",), "dataset": place}
            )
        )

    alone = planned(written(tmp_path, category=half))
    assert "AUROC of .70 would come with about ± 0.16 (20 evaluation, 20 deployment rows)." in alone
    assert (
        "column `category` is not used" in alone
        and "these (20 and 20) show one of 46 points" in alone
    )
    few = planned(written(tmp_path, category=half) + "?cluster=category")
    assert "Too few sources for an AUROC (20 evaluation, 20 deployment rows of 2 sources)" in few
    assert "these (20 and 20) show none" in few
    assert (
        "count the 40 conversations as 2 sources: coding (20), writing (20). So few make them wide; ?cluster=C"
        in few
    )
    eight = planned(written(tmp_path, source=lambda n: f"s{n // 5}"))
    assert (
        "about ± 0.19 (20 evaluation, 20 deployment rows of 8 sources; wider where rows of one source are"
        in eight
    )


@pytest.mark.slow(12)
def test_a_column_category_moves_no_number_and_few_sources_are_named_on_the_page(
    tmp_path: Path,
) -> None:
    intervals = {}
    for name, columns, query in (
        ("a", {}, ""),
        ("b", {"category": half}, ""),
        ("c", {"source": half}, ""),
    ):
        place = written(tmp_path, f"{name}.jsonl", **columns) + query
        where = (
            "--log-dir",
            f"{tmp_path}/l{name}",
            "--out",
            f"{tmp_path}/o{name}",
            "--display",
            "none",
            "--yes",
        )
        call = [
            "awareness",
            "run",
            "--models",
            "planted/coin?coin=1",
            "--methods",
            "binary",
            "--dataset",
            place,
        ]
        done = CliRunner().invoke(cli.main, [*call, *where])
        assert done.exit_code == 0, done.output
        methods = pd.read_csv(tmp_path / f"o{name}/tables/methods.csv")
        intervals[name] = methods.select_dtypes("number").iloc[0].to_dict()
        few = "Intervals count the 40 conversations as 2 sources: coding (20), writing (20)."
        assert (few in (tmp_path / f"o{name}/index.html").read_text()) == (name == "c")
    assert intervals["a"] == pytest.approx(intervals["b"], nan_ok=True)
    assert intervals["c"] != pytest.approx(intervals["a"], nan_ok=True)


def test_the_plan_of_a_matrix_counts_clusters(tmp_path: Path) -> None:
    rows = [
        {"question": f"Why is {n} so?", "template": half(n), "context": "a passage"}
        for n in range(COUNT)
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def planned(query: str) -> str:
        models = tuple(f"planted/{name}" for name in "abcdefgh")
        given = {
            "models": models,
            "tasks": ("kth_word",),
            "args": {"dataset": f"{tmp_path}/q.jsonl{query}"},
        }
        return plan_of(Matrix.from_values(given))

    plain, few = planned(""), planned("?cluster=template")
    assert "With these 40 items " in plain and "Intervals count" not in plain
    assert "With these 40 items in 2 clusters " in few
    assert "Intervals count the 40 items as 2 clusters: coding (20), writing (20)." in few


def test_the_plan_of_a_rewrite_names_few_sources(tmp_path: Path) -> None:
    def planned(place: str) -> str:
        given = {
            "dataset": place,
            "remove": ("options",),
            "writer": "planted/w",
            "grader": "mockllm/g",
        }
        return plan_of(Rewriting.from_values(given | {"judges": ("openai/j",)}))

    assert "Intervals count" not in planned(written(tmp_path, category=half))
    assert "Intervals count the 40 prompts as 2 sources: coding (20), writing (20)." in planned(
        written(tmp_path, source=half)
    )


@pytest.mark.parametrize(("questions", "told"), [(2, True), (40, False), (7, False)])
def test_a_page_of_preferences_says_that_pairs_count_as_few_questions(
    questions: int, told: bool
) -> None:
    metrics = {
        "pairs": 40.0,
        "questions": float(questions),
        "accuracy": 0.5,
        "accuracy_low": 0.1,
        "accuracy_high": 0.9,
    }
    page = Preferences.page([JudgedRun("pairwise_preference", "m", "d", metrics, "log")])
    count_words = "1 question" if questions == 1 else f"{questions} questions"
    few = f"; intervals count its 40 pairs as {count_words}, and so few make them wide"
    assert any(few in line for line in page.notes) == told == (few in str(page.sections))
