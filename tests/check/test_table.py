"""A sample without a score counts: one table of item, epoch and key, for the plain check, baselines
and comparisons.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import (
    EvalLog,
    ProvenanceData,
    invalidate_samples,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.scorer import (
    Score,
    Scorer,
    ScoreReducer,
    Target,
    accuracy,
    at_least,
    max_score,
    mean,
    mean_score,
    median_score,
    mode_score,
    pass_at,
    pass_k,
    score_reducer,
    scorer,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from selfprobe.cli import main
from selfprobe.logs.reducers import reduced
from selfprobe.studies.check_baseline_file import read_baseline
from selfprobe.studies.check_baseline_run import baseline_run
from selfprobe.studies.check_logs import read_logs

ITEMS = 20
Judge = Callable[[int, int], Score | None]


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


@solver
def silent(failing: Sequence[int] = ()) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id in failing:
            raise RuntimeError("the vendor is down")
        return state

    return solve


def judged_by(name: str, judge: Judge, metrics: Any = None) -> Scorer:
    """A scorer that gives what `judge` says of an item and an epoch."""

    @scorer(metrics=metrics or [accuracy()], name=name)
    def judging() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score | None:
            return judge(int(state.sample_id), state.epoch)

        return score  # type: ignore[return-value]

    return judging()


def foreign(folder: Path, *scorers: Scorer, failing: Sequence[int] = (), **options: Any) -> EvalLog:
    """A run of another suite's task."""
    samples = [Sample(id=number, input="?") for number in range(ITEMS)]
    epochs = options.pop("epochs", None)
    task = Task(
        name="theirs", dataset=samples, solver=silent(failing), scorer=list(scorers), epochs=epochs
    )
    quiet: dict[str, Any] = {"display": "none", "log_realtime": False, "score_display": False}
    [log] = eval(task, model="planted/a", log_dir=str(folder), **quiet, **options)
    return log


def right(item: int, epoch: int) -> Score:
    return Score(value="C")


def never(item: int, epoch: int) -> None:
    return None


def some(item: int, epoch: int) -> Score | None:
    return None if item % 5 < 2 else Score(value="C")


def at_one_epoch(item: int, epoch: int) -> Score | None:
    return Score(value="C") if epoch == 1 else None


def parts(item: int, epoch: int) -> Score:
    return Score(value={"tone": 1, "length": None if item % 2 else float("nan")})


def parts_or_nothing(item: int, epoch: int) -> Score:
    if item % 4 == 0:
        return Score.unscored(reason="refusal")
    return Score(value={"tone": 1, "length": 0.5})


def parts_or_none(item: int, epoch: int) -> Score | None:
    return None if item % 4 == 0 else Score(value={"tone": 1, "length": 0.5})


def places_or_none(item: int, epoch: int) -> Score | None:
    return None if item % 2 else Score(value=[1, float("nan")])


GIVEN = {
    "every sample": ([("a", never)], 1, 0, {"no score": 1.0}),
    "some samples": ([("a", some)], 1, 0.6, {"no score": 0.4}),
    "one of two scorers, some samples": ([("a", some), ("b", right)], 1, 0.8, {"no score": 0.2}),
    "one of two scorers, every sample": ([("a", never), ("b", right)], 1, 0.5, {"no score": 0.5}),
    "two scorers of one name": ([("a", never), ("a", right)], 1, 0.5, {"no score": 0.5}),
    "one epoch of two": ([("a", at_one_epoch)], 2, 0.5, {"no score": 0.5}),
    "a key that is None or NaN": ([("a", parts)], 1, 0.5, {"no_reason": 0.5}),
    "a whole dict": ([("a", parts_or_none)], 1, 0.75, {"no score": 0.25}),
    "a whole dict, with a reason": ([("a", parts_or_nothing)], 1, 0.75, {"refusal": 0.25}),
    "a list": ([("a", places_or_none)], 1, 0.25, {"no score": 0.5, "no_reason": 0.25}),
}
"""What a scorer leaves out → scorers, epochs, share of scored values, and why the others have none.
"""


@pytest.mark.parametrize(("judges", "epochs", "scored", "reasons"), GIVEN.values(), ids=list(GIVEN))
def test_what_a_scorer_leaves_out_counts_as_unscored_everywhere(
    judges: Sequence[tuple[str, Judge]],
    epochs: int,
    scored: float,
    reasons: dict[str, float],
    tmp_path: Path,
) -> None:
    scorers = [
        judged_by(name, judge, {"*": [mean()]} if "parts" in judge.__name__ else None)
        for name, judge in judges
    ]
    foreign(tmp_path / "logs", *scorers, epochs=epochs)
    done = check(tmp_path / "logs", "--json")
    [run] = json.loads(done.stdout)["runs"]
    assert done.exit_code == 3 and run["done"] == ITEMS * epochs, done.output
    assert (run["scored"] / run["asked"], run["reasons"]) == (
        pytest.approx(scored),
        pytest.approx(reasons),
    )
    if not scored:
        assert run["wrong"] == ["nothing scored (no score)"]
        return
    assert check(tmp_path / "logs", "--unscored", "1", "--save", tmp_path / "b.json").exit_code == 0
    [kept] = read_baseline(str(tmp_path / "b.json"))
    values = [value for cell in kept.items.values() for given in cell.values() for value in given]
    assert len(values) == run["asked"]
    counts = {reason: values.count(reason) / len(values) for reason in reasons}
    assert counts == pytest.approx(reasons)
    compared = check(tmp_path / "logs", "--baseline", tmp_path / "b.json", "--json")
    shares = [
        row["change"]["after"]
        for row in json.loads(compared.stdout)["rows"]
        if row["metric"] == "unscored"
    ]
    assert shares == [pytest.approx(1 - scored)], compared.output


def test_values_that_are_newly_missing_are_worse_with_their_reason(tmp_path: Path) -> None:
    foreign(tmp_path / "before", judged_by("a", right))
    foreign(tmp_path / "now", judged_by("a", some))
    done = check(tmp_path / "now", "--against", tmp_path / "before")
    assert done.exit_code == 1
    assert "unscored  .00 → .40  +.40 [+.13, +.62]   n 20  worse (no score)" in done.output


def test_a_suites_sample_without_a_score_counts_with_the_keys_of_the_others(
    run_task: Any, tmp_path: Path
) -> None:
    log = run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=4, epochs=2)
    log = read_eval_log(log.location)
    assert log.samples
    for sample in log.samples[:3]:
        sample.scores = {}
    write_eval_log(log, log.location)
    [read] = read_logs([str(tmp_path)]).runs
    assert (len(read.values), read.scored_count, read.reasons) == (24, 15, {"no score": 9 / 24})
    assert read.faults(0.1) == ["unscored 0.38 (no score 0.38), more than 0.10"]
    assert {
        len(given) for cell in baseline_run(read).items.values() for given in cell.values()
    } == {2}


def test_a_sample_that_failed_has_an_epoch_without_a_value_in_the_baseline(tmp_path: Path) -> None:
    foreign(tmp_path, judged_by("a", right), failing=(1,), fail_on_error=False, epochs=2)
    [read] = read_logs([str(tmp_path)]).runs
    assert read.faults(1.0)[0].startswith("2 of 40 samples failed or missing, the first: ")
    assert baseline_run(read).items["1"] == {"a": ["error", "error"]} and not read.reasons


def test_samples_that_are_scored_after_an_error_count_and_are_named(tmp_path: Path) -> None:
    def wrong_where_it_failed(item: int, epoch: int) -> Score:
        return Score(value="I" if item < 3 else "C")

    failed = {"failing": (0, 1, 2), "fail_on_error": False}
    log = foreign(
        tmp_path / "scored", judged_by("a", wrong_where_it_failed), score_on_error=True, **failed
    )
    assert log.results and log.results.scores[0].metrics["accuracy"].value == 17 / 20
    done = check(tmp_path / "scored", "--save", tmp_path / "b.json")
    told = "good: 20 samples, unscored 0.00; 3 samples ended in an error, and counted as scored (score_on_error)"
    assert done.exit_code == 0 and told in done.output
    [kept] = read_baseline(str(tmp_path / "b.json"))
    assert [cell["a"] for cell in kept.items.values()].count([0.0]) == 3
    foreign(tmp_path / "not", judged_by("a", wrong_where_it_failed), **failed)
    assert "bad: 3 of 20 samples failed or missing" in check(tmp_path / "not").output


def test_fewer_scored_samples_in_the_header_than_in_the_log_are_said(tmp_path: Path) -> None:
    log = read_eval_log(foreign(tmp_path, judged_by("a", some)).location)
    for sample in log.samples or []:
        sample.scores = {"a": Score(value="C")}
    write_eval_log(log, log.location)
    done = check(tmp_path)
    why = "the log's header counts 12 scored samples of a, and 20 have a score; score it again (inspect score)"
    assert done.exit_code == 3 and f"bad: {why}" in done.output


def test_a_baseline_of_valid_samples_has_the_items_that_are_left(tmp_path: Path) -> None:
    log = read_eval_log(
        foreign(tmp_path / "logs", judged_by("a", right), epochs=Epochs(2, "max")).location
    )
    uuids = [str(sample.uuid) for sample in log.samples or [] if sample.id == 3]
    edited = invalidate_samples(log, uuids, ProvenanceData(author="ada"))
    write_eval_log(edited, str(tmp_path / "edited" / "a.eval"))
    [read] = read_logs([str(tmp_path / "edited")]).runs
    kept = baseline_run(read)
    assert kept.items.keys() == {str(n) for n in range(ITEMS) if n != 3} and kept.reducers == [
        "max"
    ]


def by_level(level: int) -> Scorer:
    """Right in so many of ten cases."""

    def judge(item: int, epoch: int) -> Score:
        return Score(value="C" if (item * 7 + epoch * 3) % 10 < level else "I")

    return judged_by("rate", judge)


@score_reducer(name="lowest")
def lowest() -> ScoreReducer:
    def reduce(scores: list[Score]) -> Score:
        return Score(value=min(1.0 if score.value == "C" else 0.0 for score in scores))

    return reduce


REDUCERS: dict[str, Any] = {
    "max": max_score,
    "mode": mode_score,
    "median": median_score,
    "pass_at_2": lambda: pass_at(2),
    "pass_k_2": lambda: pass_k(2),
    "at_least_3": lambda: at_least(3),
}


@pytest.mark.parametrize("name", REDUCERS)
def test_what_is_compared_is_what_the_tasks_reducer_makes_of_epochs(
    name: str, tmp_path: Path
) -> None:
    logs = {
        folder: foreign(tmp_path / folder, by_level(level), epochs=Epochs(5, REDUCERS[name]()))
        for folder, level in {"before": 6, "now": 3}.items()
    }
    done = check(tmp_path / "now", "--against", tmp_path / "before", "--json")
    [row] = json.loads(done.stdout)["rows"]
    for side, folder in (("before", "before"), ("after", "now")):
        results = logs[folder].results
        assert results and results.scores[0].reducer == name
        assert row["change"][side] == pytest.approx(results.scores[0].metrics["accuracy"].value)
    note = f"theirs of planted/a: an item's value is the {name} of its epochs, as in the log"
    assert json.loads(done.stdout)["notes"] == [note]


def test_each_of_several_reducers_has_a_line(tmp_path: Path) -> None:
    reducers = [mean_score(), max_score()]
    for folder, level in {"before": 6, "now": 3}.items():
        foreign(tmp_path / folder, by_level(level), epochs=Epochs(4, reducers))
    rows = json.loads(check(tmp_path / "now", "--against", tmp_path / "before", "--json").stdout)[
        "rows"
    ]
    assert [row["metric"] for row in rows] == ["rate (mean)", "rate (max)"]


@pytest.mark.parametrize(
    ("reducer", "name"),
    [(lowest(), "lowest"), (at_least(2, value=0.0), "at_least_2 with arguments of its own")],
)
def test_a_reducer_that_is_not_known_here_is_said_and_the_mean_is_compared(
    reducer: ScoreReducer, name: str, tmp_path: Path
) -> None:
    for folder, level in {"before": 3, "now": 2}.items():
        foreign(tmp_path / folder, by_level(level), epochs=Epochs(5, reducer))
    done = json.loads(check(tmp_path / "now", "--against", tmp_path / "before", "--json").stdout)
    assert (
        done["rows"][0]["change"]["before"],
        done["rows"][0]["change"]["after"],
    ) == pytest.approx((0.3, 0.2))
    why = f"the log reduces an item's epochs by {name}, which is not known here: their mean is compared"
    assert done["notes"] == [f"theirs of planted/a: {why}"]


def test_runs_that_reduce_epochs_otherwise_are_refused(tmp_path: Path) -> None:
    runs: dict[str, Any] = {
        "mean": 4,
        "max": Epochs(4, "max"),
        "more": Epochs(6, "max"),
        "pass": Epochs(4, "pass_at_4"),
    }
    for folder, epochs in runs.items():
        foreign(tmp_path / folder, by_level(5), epochs=epochs)
    other = check(tmp_path / "max", "--against", tmp_path / "mean")
    assert other.exit_code == 3
    assert (
        "an item's epochs were reduced by mean and are by max: the same reply is scored otherwise"
        in other.output
    )
    more = check(tmp_path / "more", "--against", tmp_path / "max")
    why = "the baseline has 4 epochs of an item, the logs 6, and their max grows with them; run as many, or save a new"
    assert more.exit_code == 3 and why in more.output
    dealt = check(tmp_path / "pass", "--aa", "2")
    why = "--aa deals the 4 epochs of theirs of planted/a to two sides, and pass_at_4 needs more of them"
    assert dealt.exit_code == 2 and why in dealt.output


def test_a_reducer_sees_what_is_unscored_and_is_undefined_without_enough_epochs() -> None:
    nan = float("nan")
    assert (
        reduced([1.0, nan, 0.0], "mean") == reduced([1.0, nan, 0.0], "a reducer of theirs") == 0.5
    )
    assert (
        str(reduced([1.0, nan], "pass_at_2"))
        == str(reduced([nan], "max"))
        == str(reduced([], "mean"))
        == "nan"
    )
    assert reduced([1.0, 0.0, 0.0], "pass_at_2") == pytest.approx(2 / 3)
    assert str(reduced([1.0, nan, nan], "majority")) == "nan"


def test_fewer_scored_samples_in_the_header_of_a_run_of_the_suite_are_said(
    run_task: Any, tmp_path: Path
) -> None:
    log = read_eval_log(run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=4).location)
    assert log.results and log.results.scores[0].scored_samples == 4
    assert check(tmp_path).exit_code == 0
    log.results.scores[0].scored_samples = 3
    write_eval_log(log, log.location)
    assert (
        "the log's header counts 3 scored samples of kth_word_match, and 4 have a score"
        in check(tmp_path).output
    )


def test_a_scorer_without_any_score_is_bad_among_many_that_score(tmp_path: Path) -> None:
    scoring = [judged_by(f"judge_{number}", right) for number in range(11)]
    foreign(tmp_path, *scoring, judged_by("safety", never))
    done = check(tmp_path)
    assert done.exit_code == 3 and "no sample has a score of safety" in done.output
    assert check(tmp_path, "--unscored", "1").exit_code == 0
