from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, write_eval_log
from inspect_ai.scorer import match

from selfprobe.data import load
from selfprobe.errors import InputError
from selfprobe.logs import target_of, task_of
from selfprobe.providers.planted import PlantedAPI
from selfprobe.solvers.record import Record

Run = Callable[..., EvalLog]
ALPHA = "planted/alpha?access=.5&malformed=.2"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "questions.jsonl"
    path.write_text(
        "".join(f'{{"id": "q{i}", "question": "What of number {i}?"}}\n' for i in range(12))
    )
    return path


@pytest.fixture(scope="module")
def first(run_task: Run, data: Path, tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """The log that is replayed."""
    folder = tmp_path_factory.mktemp("first")
    return run_task(
        "selfprobe/kth_word", ALPHA, folder, task_args={"k": "1,2", "dataset": str(data)}
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the planted models that are called."""
    made: list[str] = []
    generate = PlantedAPI.generate

    async def counted(self: PlantedAPI, *args: Any, **options: Any) -> Any:
        made.append(self.name)
        return await generate(self, *args, **options)

    monkeypatch.setattr(PlantedAPI, "generate", counted)
    # Inspect keeps models from run to run, and one that was asked before would be asked past this.
    monkeypatch.setattr("inspect_ai.model._model._models", {})
    yield made


@pytest.fixture
def replayed(run_task: Run, data: Path, tmp_path: Path) -> Callable[..., EvalLog]:
    """kth_word on the same data with these task arguments."""

    def run(model: str = ALPHA, options: dict[str, Any] | None = None, **arguments: Any) -> EvalLog:
        given = {"k": "1,2", "dataset": str(data), **arguments}
        return run_task(
            "selfprobe/kth_word", model, tmp_path / "replayed", task_args=given, **(options or {})
        )

    return run


def scores(log: EvalLog) -> dict[str, Any]:
    return {
        str(s.id): [
            (score.model_dump(include={"answer", "explanation", "metadata"}), repr(score.value))
        ]
        for s in log.samples or []
        for score in (s.scores or {}).values()
    }


def values(log: EvalLog) -> dict[str, str]:
    assert log.results is not None
    return {name: repr(metric.value) for name, metric in log.results.scores[0].metrics.items()}


def changed(log: EvalLog, path: Path, **fields: Any) -> str:
    """A copy of a log with other header fields."""
    copy = log.model_copy(update={"eval": log.eval.model_copy(), **fields}, deep=True)
    write_eval_log(copy, str(path))
    return str(path)


# ---- what a replay gives


@pytest.mark.parametrize("folder", [False, True])
def test_a_replayed_log_gives_the_same_scores_without_a_call(
    first: EvalLog, replayed: Callable[..., EvalLog], calls: list[str], folder: bool
) -> None:
    source = str(Path(first.location).parent) if folder else first.location
    again = replayed(target_log=source, observer_log=source)
    assert again.status == "success" and calls == []
    assert scores(again) == scores(first) and values(again) == values(first)


def test_replayed_replies_are_the_recorded_ones_byte_for_byte(
    first: EvalLog, replayed: Callable[..., EvalLog]
) -> None:
    again = replayed(target_log=first.location, observer_log=first.location)
    records = [
        {s.id: s.store_as(Record).model_dump() for s in log.samples or []} for log in (first, again)
    ]
    assert records[0] == records[1]


def test_the_log_says_what_was_replayed(first: EvalLog, replayed: Callable[..., EvalLog]) -> None:
    again = replayed(target_log=first.location)
    assert again.eval.task_args["target_log"] == first.location


def test_another_observer_is_asked_against_the_replayed_acts(
    first: EvalLog, replayed: Callable[..., EvalLog], calls: list[str]
) -> None:
    log = replayed("planted/beta", {"model_roles": {"target": ALPHA}}, target_log=first.location)
    assert log.status == "success", log.error
    assert set(calls) == {"beta"} and len(calls) == 2 * 12
    assert target_of(log) == ALPHA and task_of(log) == "kth_word"
    acts = {s.id: s.store_as(Record).acts for s in first.samples or []}
    assert all(s.store_as(Record).acts == acts[s.id] for s in log.samples or [])


def test_only_the_asked_ks_are_taken(
    first: EvalLog, replayed: Callable[..., EvalLog], calls: list[str]
) -> None:
    log = replayed(k="2", target_log=first.location, observer_log=first.location)
    assert log.status == "success" and calls == []
    assert all(set(s.store_as(Record).answers) == {"k2"} for s in log.samples or [])


def test_a_folder_gives_the_last_successful_log(
    first: EvalLog, replayed: Callable[..., EvalLog], tmp_path: Path, calls: list[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    old, new = (
        folder / "2026-01-01T00-00-00_kth-word_a.eval",
        folder / "2026-01-02T00-00-00_kth-word_b.eval",
    )
    for place, text in ((old, "Old words stay here."), (new, "New words came here.")):
        copy = first.model_copy(deep=True)
        for sample in copy.samples or []:
            record = sample.store_as(Record)
            reply = record.acts["answer"].model_copy(update={"text": text})
            sample.store["Record:acts"] = {
                "answer": reply.model_dump(),
                "again": reply.model_dump(),
            }
        write_eval_log(copy, str(place))
    changed(first, folder / "2026-01-03T00-00-00_kth-word_c.eval", status="error")
    log = replayed(target_log=str(folder), observer_log=first.location)
    assert log.status == "success" and calls == []
    acts = [s.store_as(Record).acts["answer"].text for s in log.samples or []]
    assert set(acts) == {"New words came here."}


# ---- what cannot be replayed: errors that name both sides


def test_a_log_of_another_task_is_refused(
    run_task: Run, data: Path, tmp_path: Path, replayed: Callable[..., EvalLog]
) -> None:
    table = load(str(data), ("question",))

    @task
    def other() -> Task:
        return Task(
            dataset=MemoryDataset([Sample(id="a", input="One?")]),
            scorer=match(),
            metadata=table.metadata,
        )

    log = run_task(other(), ALPHA, tmp_path / "other")
    with pytest.raises(
        ValueError,
        match=r"no log to replay acts from .*: it is a log of other, this run is kth_word",
    ):
        replayed(target_log=log.location)


def test_a_log_of_another_data_set_is_refused(
    first: EvalLog, run_task: Run, tmp_path: Path, data: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(data.read_text().replace("number 3", "number three"))
    with pytest.raises(
        ValueError, match=r"its data set has hash \w{12}, this run's \(.*other\.jsonl\) \w{12}"
    ):
        run_task(
            "selfprobe/kth_word",
            ALPHA,
            tmp_path / "logs",
            task_args={"k": "1,2", "dataset": str(other), "target_log": first.location},
        )


@pytest.mark.parametrize(("argument", "arm"), [("target_log", "acts"), ("observer_log", "answers")])
def test_a_log_of_another_model_is_refused(
    first: EvalLog, replayed: Callable[..., EvalLog], argument: str, arm: str
) -> None:
    with pytest.raises(
        ValueError,
        match=rf"it holds {arm} of planted/alpha\?.*, this run needs those of planted/beta",
    ):
        replayed("planted/beta", **{argument: first.location})


@pytest.mark.parametrize("status", ["error", "cancelled", "started"])
def test_an_unfinished_log_is_refused(
    first: EvalLog, replayed: Callable[..., EvalLog], tmp_path: Path, status: str
) -> None:
    path = changed(first, tmp_path / "unfinished.eval", status=status)
    with pytest.raises(
        ValueError,
        match=rf"it is not finished \(status {status}\); finish it with `inspect eval-retry`",
    ):
        replayed(target_log=path)


def test_a_folder_without_a_fitting_log_lists_what_it_holds(
    first: EvalLog, replayed: Callable[..., EvalLog], tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with pytest.raises(
        ValueError, match=r"expected a finished kth_word log of planted/alpha.*; found no logs"
    ):
        replayed(target_log=str(folder))
    changed(first, folder / "2026-01-03T00-00-00_kth-word_c.eval", status="error")
    with pytest.raises(
        ValueError, match=r"found .*kth-word_c\.eval: it is not finished \(status error\)"
    ):
        replayed(target_log=str(folder))


def test_a_missing_file_is_named(replayed: Callable[..., EvalLog], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.eval"):
        replayed(target_log=str(tmp_path / "nowhere.eval"))
    with pytest.raises(InputError, match=r"no file or folder 'nowhere\.eval'; looked at"):
        replayed(target_log="nowhere.eval")


def sample_errors(log: EvalLog) -> list[str]:
    return [s.error.message for s in log.samples or [] if s.error is not None]


def test_a_missing_sample_is_an_error_of_that_sample(
    run_task: Run, replayed: Callable[..., EvalLog], data: Path, tmp_path: Path, calls: list[str]
) -> None:
    given = {"k": "1,2", "dataset": str(data)}
    short = run_task("selfprobe/kth_word", ALPHA, tmp_path / "short", task_args=given, limit=10)
    calls.clear()
    log = replayed(target_log=short.location, observer_log=short.location)
    errors = sample_errors(log)
    assert log.status == "error" and calls == []
    assert len(errors) == 2 and all(
        "run both with the same limit and epochs" in error for error in errors
    )
    assert any(
        f"{Path(short.location).name}, sample 'q11', epoch 1: not in the log" in error
        for error in errors
    )


def test_a_missing_epoch_is_an_error_of_that_epoch(
    first: EvalLog, replayed: Callable[..., EvalLog], calls: list[str]
) -> None:
    log = replayed(
        options={"epochs": 2, "limit": 3}, target_log=first.location, observer_log=first.location
    )
    errors = sample_errors(log)
    assert (
        calls == []
        and len(errors) == 3
        and all("epoch 2: not in the log" in error for error in errors)
    )


def test_a_missing_repeat_is_an_error_that_says_what_there_is(
    run_task: Run, replayed: Callable[..., EvalLog], data: Path, tmp_path: Path, calls: list[str]
) -> None:
    given = {"k": "1,2", "dataset": str(data), "resamples": 0}
    once = run_task("selfprobe/kth_word", ALPHA, tmp_path / "once", task_args=given, limit=2)
    calls.clear()
    log = replayed(options={"limit": 2}, target_log=once.location, observer_log=once.location)
    errors = sample_errors(log)
    assert calls == [] and len(errors) == 2
    assert all(
        "no acts again (there are answer); run both with the same task arguments" in e
        for e in errors
    )
