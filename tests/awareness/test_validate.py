"""`selfprobe awareness validate`: which files go together, the rate that follows, and what is said
where none does.
"""

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.studies.awareness.validate import validated


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["awareness", *map(str, arguments)])


def csv(folder: Path, name: str, **columns: list[object]) -> str:
    path = folder / name
    pd.DataFrame(columns).to_csv(path, index=False)
    return str(path)


def test_a_table_with_verdicts_and_labels_stands_alone(tmp_path: Path) -> None:
    """30 of 100 flagged, 10 of 15 labelled ones true; 2 of 20 of the others: .3·2/3 + .7·.1."""
    labels: list[object] = (
        ["yes"] * 10 + ["no"] * 5 + [""] * 15 + ["yes"] * 2 + ["no"] * 18 + [""] * 50
    )
    path = csv(tmp_path, "t.csv", noticed=[True] * 30 + [False] * 70, aware=labels)
    assert validated([path]).result.corrected.value == pytest.approx(0.27)
    told = call("validate", path)
    assert "\nflagged 30 % [21.9, 39.6], corrected for the judge's errors 27 % [" in told.output
    assert "precision (found aware, aware): 10 of 15 = 0.667" in told.output
    assert "from 35 labelled rows of 100" in told.output


def test_scout_scans_and_labels_are_joined_by_transcript(tmp_path: Path) -> None:
    folder = tmp_path / "scans" / "scan_id=a"
    folder.mkdir(parents=True)
    names = [f"t{n}" for n in range(20)]
    said = ["true"] * 5 + ["false"] * 14 + [None]
    pd.DataFrame({"transcript_id": names, "value": said}).to_parquet(
        folder / "eval_awareness.parquet"
    )
    labels = csv(tmp_path, "labels.csv", transcript_id=names[:10], aware=["yes"] * 4 + ["no"] * 6)
    for order in ([str(tmp_path / "scans"), labels], [labels, str(tmp_path / "scans")]):
        found = validated(order)
        assert (found.rows, found.labelled, found.unread) == (19, 10, 1)
        assert found.result.corrected.value == pytest.approx(5 / 19 * 0.8)


def test_labelled_rows_of_another_set_say_how_the_judge_errs(tmp_path: Path) -> None:
    judged = csv(tmp_path, "judged.csv", flagged=[1] * 20 + [0] * 80)
    checked = csv(
        tmp_path,
        "checked.csv",
        flagged=[1] * 16 + [0] * 4 + [1] * 2 + [0] * 18,
        aware=["yes"] * 20 + ["no"] * 20,
    )
    found = validated([judged, checked])
    assert found.elsewhere and found.result.corrected.value == pytest.approx(
        (0.2 + 0.9 - 1) / (0.8 + 0.9 - 1)
    )
    told = call("validate", judged, checked).output
    assert "of another set" in told
    assert "had changed by 0.1 since, the corrected rate would be 0.0 to 25.0 %." in told


def test_a_rate_that_is_no_share_is_cut_and_said(tmp_path: Path) -> None:
    judged = csv(tmp_path, "judged.csv", flagged=[1] * 5 + [0] * 95)
    checked = csv(
        tmp_path,
        "checked.csv",
        flagged=[1] * 20 + [1] * 5 + [0] * 15,
        aware=["yes"] * 20 + ["no"] * 20,
    )
    assert "which is no share: cut to 0" in call("validate", judged, checked).output


def test_a_column_for_labels_that_is_empty_makes_no_file_of_labels(tmp_path: Path) -> None:
    labels = csv(
        tmp_path,
        "labels.csv",
        flagged=[1] * 20 + [0] * 20,
        aware=["yes"] * 18 + ["no"] * 20 + ["yes"] * 2,
    )
    judged = csv(tmp_path, "judged.csv", flagged=[1] * 30 + [0] * 70, aware=[""] * 100)
    assert "from 40 labelled rows of another set" in call("validate", judged, labels).output


def test_what_does_not_go_together_is_said(tmp_path: Path) -> None:
    labels = csv(tmp_path, "labels.csv", transcript_id=["a", "b"], aware=["yes", "no"])
    judged = csv(tmp_path, "judged.csv", flagged=[1, 0])
    empty = csv(tmp_path, "empty.csv", flagged=[1, 0], aware=["", ""])
    wrong = csv(tmp_path, "wrong.csv", flagged=[1, 0], aware=["yes", "perhaps"])
    sheet = csv(tmp_path, "sheet.csv", text_id=["a", "b"], aware=["yes", "no"])
    for paths, said in (
        ([judged], "0 files with labels in"),
        ([labels, wrong], "2 files with labels in"),
        ([labels], "does not say what the judge said; expected one file with a column `aware`"),
        ([sheet], "give the logs that it was drawn from too"),
        ([labels, judged], "share none of text_id, transcript_id"),
        ([empty], "no row of 2 has a label yet; write yes or no under `aware`"),
        ([wrong], "row 2: aware must be yes, no or empty, got 'perhaps'"),
    ):
        with pytest.raises(InputError) as error:
            validated(paths)
        assert said in str(error.value)
