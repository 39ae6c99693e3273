"""A blinded sheet of graded texts for people to label, and what is read from it."""

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from selfprobe.cli import main
from selfprobe.studies.awareness.command import GRADED_METHODS
from selfprobe.studies.awareness.validate import Counts, graded_texts, reweighted

SUBJECT = "planted/a?voiced=.5&voiced_wrongly=.1"


def call(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(main, ["awareness", *map(str, arguments)])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the user's own, without labels, against the bundled set; with a placebo arm, which
    is no part of it.
    """
    folder = tmp_path_factory.mktemp("study")
    (folder / "mine.jsonl").write_text(
        "".join(json.dumps({"prompt": f"What is {n}?"}) + "\n" for n in range(20))
    )
    given = ("--dataset", folder / "mine.jsonl", "--against", "bundled", "--limit", 20, "--placebo")
    models = (
        "--models",
        SUBJECT,
        "--grader",
        "planted/g?notices=.9&specificity=.8",
        "--methods",
        "features",
    )
    done = call(
        "run",
        *given,
        *models,
        "--log-dir",
        folder / "logs",
        "--out",
        folder / "page",
        "--display",
        "none",
        "--yes",
    )
    assert done.exit_code == 0, done.output
    return folder / "logs"


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def labelled(path: Path) -> None:
    from selfprobe.providers.behaviours.awareness import SUSPICION

    rows = [{**row, "aware": "yes" if SUSPICION in row["text"] else "no"} for row in sheet(path)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def as_excel_saves_it(path: Path) -> Path:
    """In much of Europe: semicolons, and a byte order mark."""
    rows, saved = sheet(path), path.with_name("excel.csv")
    with saved.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return saved


def test_a_sheet_holds_every_text_found_aware_and_others_by_chance_and_nothing_that_tells_which(
    logs: Path, tmp_path: Path
) -> None:
    done = call("validate", logs, "--samples", 50, "--out", tmp_path / "labels.csv")
    assert done.exit_code == 0, done.output
    rows = sheet(tmp_path / "labels.csv")
    assert list(rows[0]) == ["text_id", "text", "aware"] and len(rows) == 50
    assert {row["aware"] for row in rows} == {""} and len({row["text_id"] for row in rows}) == 50
    found = int(done.output.split(" found aware")[0].rsplit(" ", 1)[1])
    assert 10 < found <= 25 and f"all {found} found aware and {50 - found} of " in done.output
    labelled(tmp_path / "labels.csv")
    told = call("validate", tmp_path / "labels.csv", logs)
    assert call("validate", as_excel_saves_it(tmp_path / "labels.csv"), logs).output == told.output
    assert told.exit_code == 0 and "labels that belong to a graded text: 50 of 50" in told.output, (
        told.output
    )
    assert f"of {found} = " in next(
        line for line in told.output.splitlines() if line.startswith("precision")
    )
    assert (
        "flagged " in told.output and "The correction is from 50 labelled rows of " in told.output
    )
    one = json.loads(call("validate", logs, tmp_path / "labels.csv", "--json").output)
    assert one["rows"] > one["labelled"] == 50 and 0 < one["result"]["corrected"]["value"] < 1


def test_a_sheet_too_small_for_all_that_are_aware_takes_half_of_each_and_says_so(
    logs: Path, tmp_path: Path
) -> None:
    done = call("validate", logs, "--samples", 8, "--out", tmp_path / "labels.csv")
    assert (
        done.exit_code == 0 and "4 of " in done.output and " for all of them give " in done.output
    )
    assert len(sheet(tmp_path / "labels.csv")) == 8


def test_the_same_call_draws_the_same_sheet_and_another_seed_another(
    logs: Path, tmp_path: Path
) -> None:
    drawn = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert (
            call(
                "validate", logs, "--samples", 30, "--out", tmp_path / name, "--seed", seed
            ).exit_code
            == 0
        )
        drawn.append(sheet(tmp_path / name))
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_sheet_that_is_there_is_never_written_over(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("a day's work")
    done = call("validate", logs, "--samples", 5, "--out", tmp_path / "labels.csv")
    assert done.exit_code == 2 and "labels.csv is there already" in done.output
    assert (tmp_path / "labels.csv").read_text() == "a day's work"


def test_rows_that_nobody_labelled_yet_are_counted_and_left_out(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    assert call("validate", logs, "--samples", 40, "--out", path).exit_code == 0
    none = call("validate", path, logs)
    assert none.exit_code == 2 and "no row of 40 has a label yet" in none.output
    rows = sheet(path)
    path.write_text(
        "text_id,aware\n"
        + "".join(f"{row['text_id']},{'no' if n < 30 else ''}\n" for n, row in enumerate(rows))
    )
    told = call("validate", path, logs)
    assert told.exit_code == 0 and "without a label yet: 10 of 40" in told.output
    path.write_text("text_id,aware\nff00,yes\n")
    wrong = call("validate", path, logs)
    assert wrong.exit_code == 2 and "no label of 1 belongs to a graded text" in wrong.output


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers and traces, graded."""
    folder = tmp_path_factory.mktemp("both") / "logs"
    quiet = ("--out", folder.with_name("page"), "--display", "none")
    models = ("--models", "planted/a?voiced=.5&reasons=1", "--grader", "planted/g", "--limit", 12)
    done = call(
        "run", *models, "--methods", ",".join(GRADED_METHODS), "--log-dir", folder, *quiet, "--yes"
    )
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.slow(3)
@pytest.mark.parametrize("method", GRADED_METHODS)
def test_a_sheet_of_one_method_holds_its_texts_alone_and_is_counted_among_them(
    both: Path, tmp_path: Path, method: str
) -> None:
    path = tmp_path / "labels.csv"
    done = call("validate", both, "--samples", 100, "--out", path, "--methods", method)
    assert done.exit_code == 0, done.output
    of = {
        found.text_id: found.method
        for found in graded_texts([str(both)])
        if found.aware is not None
    }
    mine = {name for name, its in of.items() if its == method}
    assert {row["text_id"] for row in sheet(path)} == mine and 0 < len(mine) < len(of)
    labelled(path)
    told = call("validate", path, both).output
    assert f"Of all {len(mine)} graded texts" in told
    assert f"The correction is from {len(mine)} labelled rows of {len(mine)}." in told, (
        "other methods' texts do not count"
    )


@pytest.mark.slow(3)
def test_a_method_that_no_grader_reads_is_refused(both: Path, tmp_path: Path) -> None:
    done = call(
        "validate", both, "--samples", 5, "--out", tmp_path / "labels.csv", "--methods", "binary"
    )
    assert done.exit_code == 2
    assert "--methods must be user_motivation or reasoning_trace, got 'binary'" in " ".join(
        done.output.split()
    )


def test_logs_without_a_graded_text_have_nothing_to_label(tmp_path: Path) -> None:
    given = (
        "--methods",
        "binary",
        "--limit",
        2,
        "--log-dir",
        tmp_path / "logs",
        "--out",
        tmp_path / "page",
        "--display",
        "none",
        "--yes",
    )
    assert call("run", "--models", "planted/a", *given).exit_code == 0
    done = call("validate", tmp_path / "logs", "--samples", 5, "--out", tmp_path / "labels.csv")
    assert (
        done.exit_code == 2
        and "no text graded by user_motivation or reasoning_trace in" in done.output
    )


def test_shares_of_the_aware_are_of_all_texts_and_not_of_those_that_were_drawn() -> None:
    """All 50 found aware are labelled (45 are), and 50 of 950 others (1 is): 45 / (45 + 19) are
    found.
    """
    found = reweighted(
        Counts(found=50, labelled=50, aware=45), Counts(found=950, labelled=50, aware=1)
    )
    assert found.sensitivity.value == pytest.approx(45 / (45 + 19))
    assert found.specificity.value == pytest.approx((950 - 19) / (950 - 19 + 5))
    assert found.sensitivity.low < 45 / (45 + 19) < found.sensitivity.high
    none = reweighted(Counts(found=0, labelled=0, aware=0), Counts(found=9, labelled=9, aware=0))
    assert none.sensitivity.reason == "no text found aware is labelled"


@pytest.mark.slow(5)
def test_the_interval_of_the_sensitivity_covers_it() -> None:
    rng, covered = np.random.default_rng(0), Counter[bool]()
    for _ in range(400):
        ours, others = rng.binomial(60, 0.9), rng.binomial(100, 0.03)
        found = reweighted(Counts(60, 60, int(ours)), Counts(940, 100, int(others)))
        true = 60 * 0.9 / (60 * 0.9 + 940 * 0.03)
        covered[found.sensitivity.low <= true <= found.sensitivity.high] += 1
    assert 0.92 <= covered[True] / 400 <= 0.985
