"""From generation and judging to a data set file that the task loads."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import score
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.scorer import includes

from selfprobe.building.dilemma_generation import AXES, dilemma_generation
from selfprobe.building.dilemma_judging import dilemma_judging, generated_dilemmas
from selfprobe.errors import InputError, RunError
from selfprobe.introspect_tasks.ethical_dilemma import ethical_dilemma
from selfprobe.stats.estimate import jsd

from ..examples.loaded import example

EXAMPLE = example("dilemmas")
judged_rows = EXAMPLE.judged_rows
PANEL = ["planted/a", "planted/b?verdict=.95", "planted/c?verdict=.05"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, run_task: Any) -> Path:
    """Six planted dilemmas, generated and judged; one judge never wavers towards the others."""
    folder = tmp_path_factory.mktemp("pipeline")
    run_task(dilemma_generation(), "planted/gen", folder / "gen", limit=6)
    task = dilemma_judging(generation_log=str(folder / "gen"), threshold=0.34)
    run_task(task, "none", folder / "judged", model_roles={"judge": PANEL})
    return folder


def collect(*args: object) -> tuple[int, str]:
    result = CliRunner().invoke(EXAMPLE.dilemmas, [*map(str, args)])
    status = {InputError: 2, RunError: 1}.get(
        type(result.exception)
    )  # what the `selfprobe` command makes of them
    return (status or result.exit_code), f"{result.output}{result.exception if status else ''}"


def test_the_collected_file_is_schema_f5_and_loads_into_the_task(
    logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "mine.jsonl"
    code, told = collect(logs / "judged", "--out", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert code == 0 and 0 < len(rows) < 6
    assert f"{len(rows)} dilemmas in {out}" in told
    for row in rows:
        assert set(row) == {"id", "dilemma", "axes", "judges", "jsd", "generation"}
        assert set(row["axes"]) == set(AXES)
        assert [judge["model"] for judge in row["judges"]] == PANEL
        assert all(len(judge["samples"]) == 5 and judge["faults"] == [] for judge in row["judges"])
        assert (
            row["jsd"] == pytest.approx(float(jsd([judge["mean"] for judge in row["judges"]])))
            and row["jsd"] > 0.34
        )
        assert row["generation"] == {
            "source": "generated",
            "model": "planted/gen",
            "prompt": "dilemma_generation 1",
            "temperature": 1.0,
            "seed": 1,
        }
    assert [sample.id for sample in ethical_dilemma(dataset=str(out)).dataset] == [
        row["id"] for row in rows
    ]


def test_it_prints_how_many_were_kept_for_each_axis_value(logs: Path, tmp_path: Path) -> None:
    told = collect(logs / "judged", "--out", tmp_path / "mine.jsonl")[1].splitlines()
    rows, lost = judged_rows([str(logs / "judged")])
    kept = sum(row["kept"] for row in rows)
    assert told[-2].split() == ["all", str(kept), "of", "6"] and not lost
    conflict = rows[0]["axes"]["conflict"]
    rows_of_conflict = [row for row in rows if row["axes"]["conflict"] == conflict]
    kept_of_conflict = sum(row["kept"] for row in rows_of_conflict)
    line = next(line for line in told if conflict in line)
    assert line.split() == [
        *("conflict", conflict, str(kept_of_conflict), "of", str(len(rows_of_conflict)))
    ]


def test_unscored_dilemmas_are_counted_by_reason(run_task: Any, tmp_path: Path) -> None:
    panel = [*PANEL[:2], "planted/c?empty=1"]
    run_task(
        dilemma_judging("ethical_dilemmas"), "none", tmp_path, limit=2, model_roles={"judge": panel}
    )
    code, told = collect(tmp_path, "--out", tmp_path / "mine.jsonl")
    assert code == 1
    assert "unscored: 2 (judge_no_response)" in told
    assert (
        "no dilemma was kept, so no file is written" in told
        and not (tmp_path / "mine.jsonl").exists()
    )


def test_a_dilemma_in_two_logs_is_an_error_that_names_both(logs: Path, tmp_path: Path) -> None:
    (log,) = (logs / "judged").glob("*.eval")
    again = read_eval_log(str(log))
    for number, sample in enumerate(again.samples or []):
        sample.uuid = f"again {number}"
    write_eval_log(again, str(tmp_path / "again.eval"))
    code, told = collect(log, tmp_path / "again.eval", "--out", tmp_path / "mine.jsonl")
    assert code == 2 and "is in " in told and "again.eval" in told and log.name in told


def test_a_copy_of_a_log_holds_no_dilemma_of_its_own(logs: Path, tmp_path: Path) -> None:
    (log,) = (logs / "judged").glob("*.eval")
    (tmp_path / "copy.eval").write_bytes(log.read_bytes())
    assert judged_rows([str(log), str(tmp_path / "copy.eval")]) == judged_rows([str(log)])


def test_generated_dilemmas_of_two_settings_are_refused_and_the_setting_is_named(
    logs: Path, tmp_path: Path
) -> None:
    """Which of them is to be judged cannot be known; it was the newer one without a word."""
    (log,) = (logs / "gen").glob("*.eval")
    warm = read_eval_log(str(log))
    warm.eval.model_generate_config.top_p = 0.5
    write_eval_log(warm, str(tmp_path / "warm.eval"))
    (tmp_path / "gen.eval").write_bytes(log.read_bytes())
    with pytest.raises(
        ValueError,
        match=r"2 settings; give one log\. .*another run: top_p is (0\.5|not set), there ",
    ):
        generated_dilemmas(str(tmp_path))


def test_a_log_of_another_task_or_unfinished_is_told(logs: Path, tmp_path: Path) -> None:
    (log,) = (logs / "gen").glob("*.eval")
    assert (
        "expected a finished log of dilemma_judging, got a log of dilemma_generation"
        in collect(log, "--out", "x.jsonl")[1]
    )
    (judged,) = (logs / "judged").glob("*.eval")
    killed = read_eval_log(str(judged))
    killed.status = "started"
    write_eval_log(killed, str(tmp_path / "killed.eval"))
    told = collect(tmp_path, "--out", tmp_path / "mine.jsonl")[1]
    assert "no finished log of dilemma_judging" in told and "killed.eval: status started" in told


def test_a_score_appended_to_a_judging_log_leaves_the_dilemmas_what_they_are(
    logs: Path, tmp_path: Path
) -> None:
    (judged,) = (logs / "judged").glob("*.eval")
    log = score(read_eval_log(str(judged)), includes(), action="append", display="none")
    write_eval_log(log, str(tmp_path / "appended.eval"))
    assert judged_rows([str(tmp_path)]) == judged_rows([str(judged)])


def test_a_judging_log_without_its_own_score_is_told_by_name(logs: Path, tmp_path: Path) -> None:
    (judged,) = (logs / "judged").glob("*.eval")
    log = score(read_eval_log(str(judged)), includes(), action="overwrite", display="none")
    write_eval_log(log, str(tmp_path / "overwritten.eval"))
    code, told = collect(tmp_path, "--out", tmp_path / "mine.jsonl")
    assert (
        code == 2
        and "overwritten.eval: expected a score of dilemma_controversy for dilemma" in told
    )
    assert "got includes" in told


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one command asked a writer and three judges about twelve combinations."""
    folder = tmp_path_factory.mktemp("one_command")
    code, told = collect(*one_command(folder), "--count", "3", "--yes")
    assert code == 0, told
    return folder


def one_command(folder: Path) -> list[str]:
    return [
        *("--model", "planted/gen?flawed=.3", "--judges", ",".join(PANEL), "--threshold", "0.34"),
        *("--limit", "12", "--log-dir", str(folder / "logs"), "--out", str(folder / "mine.jsonl")),
    ]


def rows_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_one_command_writes_as_many_filtered_dilemmas_as_are_to_be_drawn(asked: Path) -> None:
    rows = rows_in(asked / "mine.jsonl")
    assert len(rows) == 3 and all(row["jsd"] > 0.34 for row in rows)
    written_ids = {row["id"].rpartition(".")[0] for row in rows}
    combinations = [str(sample.id) for sample in dilemma_generation().dataset][:12]
    assert written_ids < set(combinations)
    sample_ids = [
        sample.id for sample in ethical_dilemma(dataset=str(asked / "mine.jsonl")).dataset
    ]
    assert sample_ids == [row["id"] for row in rows]


def test_the_same_command_asks_nobody_again_and_draws_what_a_larger_count_takes(
    asked: Path, tmp_path: Path
) -> None:
    logs_before = sorted((asked / "logs").rglob("*.eval"))
    out = tmp_path / "new" / "all.jsonl"
    code, told = collect(*one_command(asked), "--out", out, "--yes")
    assert code == 0 and sorted((asked / "logs").rglob("*.eval")) == logs_before
    kept, judged = re.search(r"^all +(\d+) of +(\d+)$", told, re.MULTILINE).groups()
    assert 3 < int(kept) < int(judged) < 12, "flawed dilemmas are not judged"
    assert len(rows_in(out)) == int(kept)
    assert f"only {kept} of 196 dilemmas were kept: a larger --epochs" in told
    drawn_ids = {row["id"] for row in rows_in(asked / "mine.jsonl")}
    assert drawn_ids < {row["id"] for row in rows_in(out)}


def test_the_rows_are_printed_as_json(asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl"
    result = CliRunner().invoke(
        EXAMPLE.dilemmas, [str(asked / "logs/judged"), "--out", str(out), "--json"]
    )
    assert result.exit_code == 0, result.output
    printed_ids = [row["id"] for row in json.loads(result.stdout)["dilemmas"]]
    assert printed_ids == [row["id"] for row in rows_in(out)]


def test_the_plan_counts_a_judge_who_also_writes_once_and_asks_nobody(tmp_path: Path) -> None:
    judges = "planted/w,planted/b,planted/c"
    words = ["--model", "planted/w", "--judges", judges, "--log-dir", tmp_path / "logs"]
    code, told = collect(*words, "--dry-run")
    assert code == 0 and not (tmp_path / "logs").exists()
    assert "750 dilemmas × 3 judges × 5 samples; of those above 0.2 nats, 196 are drawn" in told
    calls = {line.split()[0]: line.split()[1] for line in told.splitlines() if "planted/" in line}
    assert calls == {"planted/w": "4,500", "planted/b": "3,750", "planted/c": "3,750"}
    assert "12,000" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "got 0 models and 0 judges"),
        (["--model", "planted/w", "--judges", "planted/a,planted/b"], "got 1 model and 2 judges"),
        (
            ["--model", "planted/w,planted/v", "--judges", ",".join(PANEL)],
            "expected --model with the one who writes and --judges with 3, or LOGS of "
            "dilemma_judging; got 2 models and 3 judges",
        ),
        (
            ["--model", "openai/gpt-5.6-luna", "--judges", ",".join(PANEL)],
            "planted/a is simulated: it answers by a fixed rule and cannot read the texts of "
            "openai/gpt-5.6-luna; give a model that reads, such as --judges openai/gpt-5.6-luna",
        ),
        (["--judges", "planted/a,planted/a,planted/b"], "judge planted/a is listed twice"),
        (["--threshold", "0.7"], "0.7 is not in the range 0<=x<0.6365"),
    ],
)
def test_who_writes_and_who_judges_is_told_before_anything_is_asked(
    words: list[str], message: str
) -> None:
    code, told = collect(*words, "--dry-run")
    assert code == 2 and message in told


def test_logs_and_models_do_not_go_together(logs: Path) -> None:
    code, told = collect(logs / "judged", "--model", "planted/w", "--judges", ",".join(PANEL))
    assert code == 2 and "LOGS are judged already: leave --model and --judges out" in told


def test_a_writer_whose_dilemmas_are_all_flawed_leaves_no_file(tmp_path: Path) -> None:
    words = ["--model", "planted/w?flawed=1", "--judges", ",".join(PANEL), "--limit", "2"]
    folders = ["--log-dir", tmp_path / "logs", "--out", tmp_path / "mine.jsonl"]
    code, told = collect(*words, *folders, "--yes")
    assert code == 2 and "none of its 2 dilemmas is valid" in told
    assert not (tmp_path / "mine.jsonl").exists()


def test_the_file_must_be_jsonl(logs: Path) -> None:
    code, told = collect(logs / "judged", "--out", "mine.csv")
    assert code == 2 and "the data set is a .jsonl file, got 'mine.csv'" in told


def test_a_generation_without_a_valid_dilemma_leaves_nothing_to_judge(
    run_task: Any, tmp_path: Path
) -> None:
    run_task(dilemma_generation(), "planted/gen?flawed=1", tmp_path, limit=2)
    with pytest.raises(
        ValueError, match="none of its 2 dilemmas is valid; generate others with dilemma_generation"
    ):
        generated_dilemmas(str(tmp_path))


def test_a_missing_folder_is_told_with_the_places_looked_at(tmp_path: Path) -> None:
    code, told = collect("nowhere", "--out", tmp_path / "mine.jsonl")
    assert code == 2 and "no file or folder 'nowhere'" in told
