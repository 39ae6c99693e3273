"""Logs are found, read whole, refused and named in one place."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from inspect_ai.log import EvalSample, read_eval_log, read_eval_log_sample_summaries, write_eval_log
from inspect_ai.scorer import Score

from selfprobe.errors import InputError
from selfprobe.logs import (
    metrics_in,
    readable_logs,
    runs,
    samples,
    summaries,
    task_of,
    values_of,
    without_request,
)
from selfprobe.logs.packed import resolved
from selfprobe.solvers.record import Reply, record_of

LONG = "a long reply of a model, " * 8


@pytest.fixture(scope="module")
def folder(run_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, and a truncated copy of it."""
    path = tmp_path_factory.mktemp("logs")
    run_task("selfprobe/kth_word", "planted/a", path, limit=3)
    (log,) = path.glob("*.eval")
    (path / "cut.eval").write_bytes(log.read_bytes()[:2000])
    return path


def test_a_truncated_log_is_set_aside_with_its_name_and_the_reason(folder: Path) -> None:
    there = readable_logs([str(folder)])
    assert [task_of(header) for header in there.headers] == ["kth_word"]
    ((log, why),) = there.ignored.items()
    assert log.endswith("cut.eval") and why.startswith("cannot be read: ")
    assert "cut.eval" in there.unused_logs_text()


def test_json_under_a_logs_name_is_a_log_or_named_as_unreadable_and_other_json_is_left_alone(
    tmp_path: Path,
) -> None:
    """A folder of logs holds tables, configurations and claims as well."""
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "2024-01-01T00-00-00-00-00_kth-word_abc.json").write_text("{}")
    there = readable_logs([str(tmp_path)])
    assert not there.headers and [Path(log).name for log in there.ignored] == [
        "2024-01-01T00-00-00-00-00_kth-word_abc.json"
    ]
    ((log, why),) = readable_logs([str(tmp_path / "notes.json")]).ignored.items()
    assert log.endswith("notes.json") and why.startswith("cannot be read: "), "who names it is told"


def test_of_two_logs_of_one_second_the_one_that_ended_later_comes_first_and_then_the_one_named_later(
    folder: Path, tmp_path: Path
) -> None:
    log = read_eval_log(str(next(folder.glob("2*.eval"))))
    for name, ended in {"a": "00:03", "b": "00:01", "c": "00:01"}.items():
        log.eval.created, log.stats.completed_at = (
            "2024-01-01T00:00:00+00:00",
            f"2024-01-01T00:{ended}+00:00",
        )
        write_eval_log(log, str(tmp_path / f"{name}.eval"))
    named = [str(tmp_path / f"{name}.eval") for name in "bca"]
    assert [Path(one.location).stem for one in readable_logs(named).headers] == ["a", "c", "b"]


def test_only_the_wanted_tasks_are_found_and_the_newest_comes_first(
    folder: Path, tmp_path: Path
) -> None:
    log = read_eval_log(str(next(folder.glob("2*.eval"))))
    for year in (2021, 2023, 2022):
        log.eval.created = f"{year}-01-01T00:00:00+00:00"
        write_eval_log(log, str(tmp_path / f"{year}.eval"))
    assert [
        str(header.eval.created)[:4]
        for header in readable_logs([str(tmp_path)], ["kth_word"]).headers
    ] == [
        "2023",
        "2022",
        "2021",
    ]
    others = readable_logs([str(tmp_path)], ["heads_up", "binary"])
    assert others.headers == [] and len(others.ignored) == 3
    assert set(others.ignored.values()) == {"a log of kth_word, not of heads_up or binary"}


def test_a_log_that_is_asked_for_by_name_and_cannot_be_read_is_named(folder: Path) -> None:
    for read in (samples, summaries):
        with pytest.raises(
            InputError, match=r"cut\.eval cannot be read: .*; run it again, or leave it out"
        ):
            read(str(folder / "cut.eval"))
    with pytest.raises(InputError, match="no file or folder '.*nowhere'"):
        readable_logs([str(folder / "nowhere")])


def test_why_a_file_is_no_log_is_said_without_its_name(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "2026-01-01T00-00-00-00-00_a_b.eval", "w") as archive:
        archive.writestr("a.txt", "b")
    (tmp_path / "2026-01-01T00-00-00-00-00_a_c.json").write_text('{"a": 1')
    (tmp_path / "2026-01-01T00-00-00-00-00_a_d.json").write_text('{"version": 2, "eval": {}}')
    why = {
        Path(file).stem[-1]: reason
        for file, reason in readable_logs([str(tmp_path)]).ignored.items()
    }
    assert why["b"] == "cannot be read: a part is missing, '_journal/start.json'"
    assert why["c"].startswith("cannot be read: parse error: premature EOF")
    assert why["d"].startswith(
        "cannot be read: 5 validation errors for EvalSpec created Field required"
    )


def test_summaries_are_in_the_order_of_samples_whichever_finished_first(
    folder: Path, tmp_path: Path
) -> None:
    log, late = read_eval_log(str(next(folder.glob("2*.eval")))), str(tmp_path / "late.eval")
    assert log.samples and len(log.samples) == 3
    order = [(sample.id, sample.epoch) for sample in log.samples]
    log.samples = [*log.samples[1:], log.samples[0]]
    write_eval_log(log, late)
    assert [(one.id, one.epoch) for one in read_eval_log_sample_summaries(late)] != order
    assert (
        [(one.id, one.epoch) for one in summaries(late)]
        == order
        == [(s.id, s.epoch) for s in samples(late)]
    )


def test_samples_are_those_that_inspect_reads_without_their_transcripts(folder: Path) -> None:
    file = str(next(folder.glob("2*.eval")))
    for mine, whole in zip(samples(file), read_eval_log(file).samples or [], strict=True):
        assert whole.events and whole.messages and not mine.events and not mine.messages
        left_out = {"messages", "output", "events", "events_data", "timelines"}
        assert (
            mine.model_dump(exclude=left_out) == whole.model_dump(exclude=left_out) and mine.store
        )


def test_a_sample_whose_store_is_in_its_events_alone_keeps_them(
    folder: Path, tmp_path: Path
) -> None:
    log, killed = read_eval_log(str(next(folder.glob("2*.eval")))), str(tmp_path / "killed.eval")
    for sample in log.samples or []:
        sample.store = {}
    write_eval_log(log, killed)
    assert all(record_of(sample).acts["answer"].text for sample in samples(killed))


def test_a_run_with_a_limit_is_its_first_items_to_whoever_reads_it(
    folder: Path, run_task: Any, tmp_path: Path
) -> None:
    whole_runs = runs([str(folder)])
    (whole_run,) = whole_runs.counted
    (run,) = whole_runs.limited({whole_run.identity: 2}).counted
    first_items = [str(item) for item in whole_run.header.eval.dataset.sample_ids or []][:2]
    assert run.items() == set(first_items) and (run.item_count, run.planned_samples) == (2, 2)
    for read_samples in (run.summaries, run.samples):
        assert [str(sample.id) for sample in read_samples] == sorted(first_items)
    alone = run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=2)
    assert (
        dict(metrics_in(run.results))
        == dict(metrics_in(alone.results))
        != dict(metrics_in(whole_run.results))
    )
    (unlimited,) = whole_runs.limited({whole_run.identity: 9}).counted
    assert unlimited.item_count == 3 and unlimited.results is whole_run.header.results


def test_a_path_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no log")
    with pytest.raises(
        InputError, match=r"notes\.txt is no log: expected an Inspect log \(\.eval or \.json\)"
    ):
        readable_logs([str(tmp_path / "notes.txt")])


def test_references_in_store_and_scores_are_resolved() -> None:
    sample = EvalSample(
        id="q",
        epoch=1,
        input="What?",
        target="",
        store={
            "Record:acts": {"answer": {"text": "attachment://1", "reasoning": None}},
            "list": ["attachment://1"],
        },
        scores={
            "s": Score(value=1, explanation="attachment://1", metadata={"vector": "attachment://1"})
        },
        attachments={"1": LONG},
    )
    read = resolved(sample)
    assert read.store["Record:acts"]["answer"]["text"] == LONG and read.store["list"] == [LONG]
    assert read.scores and read.scores["s"].explanation == LONG
    assert read.scores["s"].metadata == {"vector": LONG}


def test_a_reply_that_is_a_reference_is_lost_and_no_reply() -> None:
    reply = Reply(text="attachment://4f1c", model="m/a", stop_reason="stop")
    assert reply.problem == "lost"
    assert Reply(text="See attachment://4f1c", model="m/a", stop_reason="stop").problem is None


def test_a_vendors_error_is_told_without_the_request_before_it() -> None:
    request = r"""ModelGenerateError('\nRequest:\n{\n  "content": "call 401"\n}\n\nBadRequestError(\'Error code: 400\')')"""
    assert without_request(request) == "BadRequestError('Error code: 400')"
    assert without_request(" openai.NotFoundError: 404\n") == "openai.NotFoundError: 404"


def test_what_is_nan_is_unscored_and_letters_and_lists_are_values() -> None:
    nan = float("nan")
    assert values_of(Score(value={"k1": 1, "k2": nan})) == {"k1": 1}
    assert values_of(Score(value="C")) == {"": "C"}
    assert values_of(Score(value=[nan, 0.5])) == {"1": 0.5}
    assert values_of(Score.unscored(reason="refusal")) == {}


def test_a_folder_without_credentials_or_of_an_unknown_kind_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for place in ("s3://bucket/x", "foo://x"):
        with pytest.raises(InputError, match=f"^cannot read {place}: "):
            readable_logs([place])
