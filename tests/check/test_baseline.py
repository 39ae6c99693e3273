"""The file of a baseline is small, the same for the same runs, and refused where it is another."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.studies.check_baseline_file import read_baseline, save_baseline
from selfprobe.studies.check_pairs import BaselineRun


def run(**given: Any) -> BaselineRun:
    items: Any = {f"i{n}": {"k1": [1.0], "k2": ["refusal"]} for n in (2, 1)}
    kept = BaselineRun(
        "quiz", "m", "m", "1", "0.2.0", {}, {}, "", "", [], {}, "accuracy", {"a.b": 0.5}, items
    )
    return BaselineRun(**{**vars(kept), **given})


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    runs = [run(), run(model="n", clusters={"i1": "c"})]
    save_baseline(runs, f"{tmp_path}/b.json")
    assert read_baseline(f"{tmp_path}/b.json") == runs


def test_an_item_has_a_line_and_the_order_is_that_of_ids(tmp_path: Path) -> None:
    save_baseline([run()], f"{tmp_path}/b.json")
    text = (tmp_path / "b.json").read_text()
    assert (
        '  "i1": {"k1": [1.0], "k2": ["refusal"]},\n  "i2": {"k1": [1.0], "k2": ["refusal"]}\n'
        in text
    )


def test_a_run_of_the_suite_keeps_its_decisions_in_the_same_bytes(
    run_task: Any, tmp_path: Path
) -> None:
    run_task("selfprobe/kth_word", "planted/a?refused=.2", tmp_path / "logs", limit=5)
    for name in ("one", "two"):
        done = check(tmp_path / "logs", "--save", tmp_path / f"{name}.json", "--unscored", "1")
        assert done.exit_code == 0 and f"{name}.json (1 run, 3 kB)" in done.output
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    [kept] = read_baseline(f"{tmp_path}/one.json")
    assert (kept.task, kept.version, kept.metric, len(kept.items), len(kept.prompts)) == (
        "kth_word",
        "4",
        "accuracy",
        5,
        3,
    )
    assert (
        len(kept.data) == 64
        and kept.applied == {"takes no settings": 5}
        and not kept.args
        and not kept.inputs
    )
    done = check(tmp_path / "logs", "--baseline", tmp_path / "one.json")
    assert done.exit_code == 0 and "kth_word  accuracy " in done.output, done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no baseline, it is not JSON"),
        ("[1]", "is no baseline of selfprobe check"),
        ('{"baseline": 9, "runs": []}', "is a baseline of form 9, this selfprobe reads form 1"),
        ('{"baseline": 1, "runs": []}', "holds no run"),
        (
            '{"baseline": true, "runs": []}',
            "is a baseline of form True, this selfprobe reads form 1",
        ),
        ('{"baseline": 1.0, "runs": []}', "is a baseline of form 1.0, this selfprobe reads form 1"),
        ('{"baseline": 1, "runs": [{"task": 3}]}', "was changed by hand: run 0 task: "),
        ('{"baseline": 1, "runs": [NaN]}', "is no baseline, it is not JSON (NaN is no number)"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_in_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        read_baseline(f"{tmp_path}/b.json")
    done = check(tmp_path, "--baseline", tmp_path / "b.json")
    assert done.exit_code == 2 and done.output.count("\n") == 1


NO_BASELINES = ("", "[1]", '{"claims": []}', '{"baseline": 9, "runs": []}', '{"baseline": 1}')


@pytest.mark.parametrize("text", NO_BASELINES)
def test_what_a_refused_baseline_advises_replaces_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("baseline.json", "baseline-2.json"):
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as refusal:
        read_baseline("baseline.json")
    assert str(refusal.value).endswith(
        "; save a new one: selfprobe check LOGS --save baseline-3.json"
    )


def test_save_replaces_a_baseline_and_no_other_file(tmp_path: Path) -> None:
    other = tmp_path / "claims.json"
    other.write_text('{"claims": []}')
    done = check(tmp_path, "--save", other)
    assert done.exit_code == 2 and done.output.startswith(
        f"Error: --save {other} would replace a file that is no baseline; give another name: --save "
    )
    assert other.read_text() == '{"claims": []}'
    save_baseline([run()], f"{tmp_path}/b.json")
    done = check(tmp_path, "--save", tmp_path / "b.json")
    assert "would replace" not in done.output


def test_a_baseline_in_the_place_of_logs_is_answered_with_its_option(tmp_path: Path) -> None:
    save_baseline([run()], f"{tmp_path}/b.json")
    path = tmp_path / "b.json"
    done = check(tmp_path, "--against", path)
    assert done.exit_code == 2 and done.output == (
        f"Error: {path} is a baseline, and --against takes logs: --baseline {path}\n"
    )
    done = check(path)
    assert done.exit_code == 2 and done.output == (
        f"Error: {path} is a baseline, and LOGS are logs: selfprobe check LOGS --baseline {path}\n"
    )


def test_logs_in_the_place_of_a_baseline_are_answered_with_their_option(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(b"PK")
    for path, kind in ((tmp_path / "x.eval", "a log"), (tmp_path, "a folder")):
        done = check(tmp_path, "--baseline", path)
        assert done.exit_code == 2
        assert (
            f"{path} is {kind}, and --baseline takes a .json file of --save: --against {path}"
            in (done.output)
        ), done.output


def test_a_baseline_that_is_not_there_is_saved_in_a_json_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, remedy in (
        ("no.json", "--save no.json"),
        ("no*.eval", "--save baseline.json"),
        ("no", "--save baseline.json"),
    ):
        with pytest.raises(InputError) as refusal:
            read_baseline(path)
        assert str(refusal.value).endswith(f"save one: selfprobe check LOGS {remedy}")


def test_a_baseline_that_was_changed_by_hand_is_refused(tmp_path: Path) -> None:
    save_baseline([run()], f"{tmp_path}/b.json")
    path = tmp_path / "b.json"
    path.write_text(path.read_text().replace("[1.0]", "[0.0]", 1))
    with pytest.raises(
        InputError, match="was changed by hand, its sha256 is another; save a new one"
    ):
        read_baseline(str(path))


@pytest.mark.parametrize("number", ["1e999", f"1{'0' * 400}"])
def test_a_number_that_became_infinite_is_a_change_by_hand(tmp_path: Path, number: str) -> None:
    save_baseline([run()], f"{tmp_path}/b.json")
    path = tmp_path / "b.json"
    path.write_text(path.read_text().replace("[1.0]", f"[{number}]", 1))
    with pytest.raises(
        InputError, match="was changed by hand, it has a number that is infinite; save a new one"
    ):
        read_baseline(str(path))


def test_a_baseline_is_a_json_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a baseline is a \.json file, got b\.txt"):
        save_baseline([run()], "b.txt")


BASELINE_FILE = """{
"baseline": 1,
"sha256": "6242c7f16d5f6fe7393f4c31788f8e9d4bbb1bb65c844932b57b5b7419e7165d",
"runs": [
{
 "task": "quiz",
 "model": "m",
 "target": "m",
 "version": "1",
 "selfprobe": "0.2.0",
 "args": {},
 "model_args": {},
 "data": "",
 "plan": "",
 "prompts": [],
 "applied": {},
 "metric": "accuracy",
 "metrics": {
  "a.b": 0.5
 },
 "items": {
  "i1": {"k1": [1.0], "k2": ["refusal"]}
 },
 "blind": {},
 "reasoned": {},
 "inputs": {},
 "clusters": {},
 "answers": {},
 "left_out": {},
 "roles": {},
 "scorers": {},
 "said": {},
 "reducers": []
}
]}
"""


def test_a_baseline_is_read_and_saved_in_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(BASELINE_FILE)
    runs = read_baseline(f"{tmp_path}/b.json")
    assert runs == [run(items={"i1": {"k1": [1.0], "k2": ["refusal"]}})]
    save_baseline(runs, f"{tmp_path}/again.json")
    assert (tmp_path / "again.json").read_text() == BASELINE_FILE
