"""Numbers that do not move: logs of version 1aecf4f give the tables that it made of them.

The logs and tables lie beside the project (`shared/golden`), and nothing of them is part of it.
Each number is found again by its row's keys, to `EXACT`; words, paths and times are no numbers.
"""

import json
import math
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.embed import DEFAULT_EMBEDDER, unfetched

GOLDEN = Path(__file__).parents[2] / "shared" / "golden"

pytestmark = [
    pytest.mark.slow(60),
    pytest.mark.skipif(not GOLDEN.is_dir(), reason="no shared/golden beside the project"),
]

EXACT = 1e-9

STUDIES = {
    "matrix": ("report", "logs/matrix", "--out", "out/matrix"),
    "diversity": ("paper", "introspectbench", "logs/matrix", "--out", "out/paper"),
    "awareness": ("report", "logs/awareness", "--out", "out/awareness"),
    "card": ("report", "logs/card", "--out", "out/card"),
    "preference": ("report", "logs/preference", "--out", "out/preference"),
    "turns": ("report", "logs/turns", "--out", "out/turns"),
    "cues": ("report", "logs/cues", "--out", "out/cues"),
    "scan": ("report", "logs/scan", "--out", "out/scan"),
}
"""Folder of tables → what makes them of the logs, without asking a model."""

NOT_SHOWN: tuple[str, ...] = ()
"""Studies whose logs `selfprobe report` cannot show."""

FOLDERS = ("after", "awareness", "before", "card", "cues", "matrix", "preference", "scan", "turns")
"""Folders of logs of which each has a file of decisions."""

TABLES: Mapping[str, str] = {
    "diversity/diversity": "paper/tables/table1",
    "diversity/items": "paper/tables/table1-draws",
    **{
        f"card/tables/{name}": f"card/tables/realism/{name}"
        for name in ("judges", "prompts", "verdicts")
    },
    **{
        f"card/tables/subject/{name}": f"card/tables/awareness/{name}"
        for name in ("baselines", "methods", "pairs", "runs", "splits", "statements", "verdicts")
    },
}
"""Where a table lies now, by its place in the archive: `report` shows judges and subject as two
studies.
"""

COLUMNS: Mapping[str, str] = {}
"""A column's name now, by its name then."""

SUBJECTS = ("awareness/tables", "card/tables/subject")
FEW = "intervals of fewer than six clusters are wider"
ENDS = ("balanced_accuracy", "auroc", "called", "tpr", "tnr")
TEST = "a model is named above the spread of pairs, by one test on four scales without a bootstrap"
OF_THE_TEST = (
    "p",
    "p_holm",
    "p_as_scored",
    "p_log",
    "p_logit",
    "p_crossing",
    "detects",
    "items_needed",
)
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    **{
        (f"{study}/methods", "ece.high"): "an error of 0 in a bin has an upper end"
        for study in SUBJECTS
    },
    **{
        (f"{study}/splits", f"{name}.{end}"): FEW
        for study in SUBJECTS
        for name in ENDS
        for end in ("low", "high")
    },
    **{(f"{study}/splits", f"{name}.se"): FEW for study in SUBJECTS for name in ("brier", "mae")},
    **{("matrix/tables/advantage", column): TEST for column in OF_THE_TEST},
}
"""(table, column) → why its numbers are others now."""

NO_KEYS: Mapping[str, str] = {"scan": "model"}
"""Study → a key that its old logs do not hold: a scan's subject stood in a log that lay in another
folder.
"""

ELSEWHERE = {
    "matrix/tables/diversity": "diversity embeds replies",
    "matrix/tables/diversity-items": "diversity embeds replies",
}
"""Tables that another command makes now, which the study `diversity` here compares: why."""

KEYS = {
    *(
        "task",
        "other_task",
        "target",
        "observer",
        "model",
        "method",
        "perspective",
        "context",
        "placebo",
        "wording",
    ),
    *(
        "second_perspective",
        "second_context",
        "second_placebo",
        "second_target",
        "second_wording",
        "second_run",
    ),
    *(
        "rule",
        "baseline",
        "kind",
        "level",
        "first",
        "second",
        "on",
        "axis",
        "value",
        "item",
        "key",
        "act",
        "data",
    ),
    *(
        "run",
        "dataset",
        "judge",
        "one",
        "two",
        "arm",
        "text",
        "taken_out",
        "what",
        "turn",
        "sample",
        "epoch",
        "part",
    ),
    "quote",
}
"""Columns that say which row it is, where they hold words."""
COUNTED = {"epoch", "run", "second_run", "turn"}
"""Those that do where they hold numbers too."""


@pytest.fixture(scope="module")
def then(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables that version 1aecf4f made."""
    folder = tmp_path_factory.mktemp("then")
    with tarfile.open(GOLDEN / "tables.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "out"


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the logs, for the tables of today."""
    folder = tmp_path_factory.mktemp("now")
    shutil.copytree(GOLDEN / "logs", folder / "logs", copy_function=shutil.copyfile)
    for place in folder.rglob("*"):
        place.chmod(0o755 if place.is_dir() else 0o644)
    return folder


def run(folder: Path, *arguments: str) -> str:
    """Run a command in a folder; what it prints."""
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code in (0, 1), done.output
    return done.stdout


def read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path) if path.read_text("utf-8").strip() else pd.DataFrame()


def rows(
    table: pd.DataFrame, keys: list[str]
) -> Iterator[tuple[tuple[object, ...], dict[str, Any]]]:
    """Each row with its keys, equal ones numbered in their order."""
    seen: dict[tuple[object, ...], int] = {}
    for row in table.to_dict("records"):
        place = tuple(
            "" if row[key] is None or row[key] != row[key] else str(row[key]) for key in keys
        )
        seen[place] = seen.get(place, 0) + 1
        yield (*place, seen[place]), {str(name): value for name, value in row.items()}


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return bool(one == other)
    return (math.isnan(one) and math.isnan(other)) or math.isclose(
        one, other, rel_tol=EXACT, abs_tol=EXACT
    )


def moved(name: str, before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """The numbers of a table that are not found again, a line each, without those of EXCEPTIONS."""
    before = before.rename(columns=COLUMNS)
    numbers = [column for column in before if pd.api.types.is_numeric_dtype(before[column])]
    lost = NO_KEYS.get(name.partition("/")[0])
    keys = [
        c
        for c in before
        if c in KEYS - {lost} and (c not in numbers or c in COUNTED) and before[c].notna().any()
    ]
    known = dict(rows(after, keys)) if set(keys) <= set(after) else {}
    out = []
    for place, row in rows(before, keys):
        for column in numbers:
            if column in keys or (name, column) in EXCEPTIONS:
                continue
            if place not in known:
                out.append(f"{name}: no row {place}")
                break
            if column not in known[place]:
                out.append(f"{name}: no column {column}")
            elif not same(row[column], known[place][column]):
                out.append(f"{name} {place}: {column} was {row[column]}, is {known[place][column]}")
    return out


@pytest.mark.parametrize("study", [study for study in STUDIES if study not in NOT_SHOWN])
def test_every_number_of_a_studys_tables_is_found_again(study: str, then: Path, now: Path) -> None:
    tables = sorted(
        path for kind in ("csv", "parquet") for path in (then / study).rglob(f"*.{kind}")
    )
    if unfetched(DEFAULT_EMBEDDER):
        tables = [
            path
            for path in tables
            if study != "diversity" and not path.stem.startswith("diversity")
        ]
    if not tables:
        pytest.skip(unfetched(DEFAULT_EMBEDDER))
    run(now, *STUDIES[study])
    out: list[str] = []
    for path in tables:
        name = path.relative_to(then).with_suffix("").as_posix()
        place = (now / "out" / TABLES.get(name, name)).with_name(
            Path(TABLES.get(name, name)).name + path.suffix
        )
        if name not in ELSEWHERE and not read(path).empty:
            out += (
                moved(name, read(path), read(place))
                if place.exists()
                else [f"{name}: no table {place.name}"]
            )
    assert out == []


THREE = "with three nobody can say how much two models differ without self-knowledge"
VERDICTS: Mapping[str, tuple[str, str, str]] = {
    "ethical_dilemma": ("not told apart", "underpowered", THREE),
    "heads_up": ("underpowered", "underpowered", ""),
    "kth_word": ("supported", "underpowered", THREE),
    "paraphrase_recognition": ("supported", "underpowered", THREE),
    "prompt_reconstruction": ("not told apart", "underpowered", THREE),
}
"""Task of the golden matrix → its verdict then and now, and why it is another."""


def test_every_verdict_of_the_matrices_is_the_one_of_then_or_another_for_a_reason_that_the_page_says(
    then: Path, now: Path
) -> None:
    run(now, *STUDIES["matrix"])
    before, after = (read(out / "matrix/tables/advantage.csv") for out in (then, now / "out"))
    whole = [rows[rows.model == "all"].set_index("task") for rows in (before, after)]
    assert {task: (whole[0].verdict[task], whole[1].verdict[task]) for task in whole[0].index} == {
        task: (old, new) for task, (old, new, _) in VERDICTS.items()
    }
    assert all(why in whole[1].why[task] for task, (_, _, why) in VERDICTS.items())


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_decision_of_a_folder_of_logs_is_found_again(
    folder: str, then: Path, now: Path
) -> None:
    run(now, "report", f"logs/{folder}", "--rows", f"out-{folder}.csv")
    before, after = read(then / f"table-{folder}.csv"), read(now / f"out-{folder}.csv")
    for table in (before, after):  # many runs of one task and model: their logs keep their names
        table["data"] = table.log.str.rpartition("/")[2]
    assert moved(f"table-{folder}", before, after) == []
    assert len(before) == len(after)


def test_every_number_of_the_gate_is_found_again(then: Path, now: Path) -> None:
    text = (then / "gate.json").read_text()
    if not text.strip():
        pytest.skip(
            "the archive's gate.json is empty: the command that was to make it was not found (gate.exit)"
        )
    after = json.loads(run(now, "check", "logs/after", "--against", "logs/before", "--json"))
    known = dict(numbers(after))
    assert [
        path for path, value in numbers(json.loads(text)) if not same(value, known.get(path))
    ] == []


def numbers(given: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Each number of a JSON document with its place."""
    if isinstance(given, int | float):
        yield path, float(given)
    entries = (
        given.items()
        if isinstance(given, dict)
        else enumerate(given)
        if isinstance(given, list)
        else ()
    )
    for name, value in entries:
        yield from numbers(value, (*path, str(name)))
