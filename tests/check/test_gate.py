"""`selfprobe check --baseline` says by its exit status whether a model got worse."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ModelConfig
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, multiple_choice, solver

from selfprobe.cli import main

ITEMS = 60


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


@solver
def silent() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


@scorer(metrics=[mean()])
def theirs() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=int(state.sample_id) % 3 != 0)

    return score


@scorer(metrics=[mean()])
def theirs_by_name() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1)

    return score


Scored = Callable[[int, int], Any]
"""From item and epoch to a score's value."""
Write = Callable[..., str]


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> dict[int, EvalLog]:
    """A run of another suite's task without ids, by its epochs."""
    folder = tmp_path_factory.mktemp("foreign")

    def log(epochs: int) -> EvalLog:
        task = Task(
            name="quiz",
            dataset=[Sample(input=f"{i}?") for i in range(ITEMS)],
            solver=silent(),
            scorer=theirs(),
        )
        [done] = eval(task, model="planted/a", log_dir=str(folder), display="none", epochs=epochs)
        log = read_eval_log(done.location)
        for sample in log.samples or []:
            sample.events = []  # which take most of the time to write
        return log

    return {1: log(1), 4: log(4)}


@pytest.fixture
def write(foreign: dict[int, EvalLog], tmp_path: Path) -> Write:
    """Write a log whose items have other scores; its path."""

    def written(name: str, scored: Scored | None = None, epochs: int = 1, **given: Any) -> str:
        samples = (foreign[epochs].samples or [])[: given.pop("items", None)]
        if scored:
            new = [{"theirs": Score(value=scored(int(s.id), s.epoch))} for s in samples]
            samples = [
                s.model_copy(update={"scores": one}) for s, one in zip(samples, new, strict=True)
            ]
        path = tmp_path / f"{name}.eval"
        ours = {"eval": foreign[epochs].eval.model_copy(update=given), "samples": samples}
        write_eval_log(foreign[epochs].model_copy(update=ours), str(path))
        return str(path)

    return written


@pytest.fixture
def baseline(write: Write, tmp_path: Path) -> str:
    path = str(tmp_path / "baseline.json")
    assert check(write("before"), "--save", path).exit_code == 0
    return path


def fallen(item: int, epoch: int) -> float:
    return float(item % 3 != 0 and item % 4 != 0)


def test_the_same_run_is_unchanged_with_status_0(write: Write, baseline: str) -> None:
    done = check(write("same"), "--baseline", baseline)
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "quiz  theirs  .67 → .67  .00 [−.03, +.03]  n 60  unchanged",
        "1 unchanged",
    ]


def test_a_fall_is_1_with_its_interval(write: Write, baseline: str) -> None:
    done = check(write("now", fallen), "--baseline", baseline)
    assert done.exit_code == 1
    assert done.output.splitlines()[0] == "quiz  theirs  .67 → .50  −.17 [−.26, −.07]  n 60  worse"


def test_a_rise_is_better_and_of_a_metric_of_which_less_is_better_worse(
    write: Write, baseline: str
) -> None:
    risen = write("now", lambda item, epoch: 1)
    done = check(risen, "--baseline", baseline)
    assert done.exit_code == 0 and done.output.splitlines()[0].endswith("better")
    done = check(risen, "--baseline", baseline, "--lower", "theirs")
    assert done.exit_code == 1 and done.output.splitlines()[0].endswith("worse")


def test_what_cannot_be_told_is_0_and_with_strict_4_and_says_how_many_items_it_takes(
    write: Write, baseline: str
) -> None:
    now = write("now", lambda item, epoch: item % 3 != (1 if item % 10 == 0 else 0))
    done = check(now, "--baseline", baseline)
    assert done.exit_code == 0 and "cannot tell a change of .05 (needs " in done.output
    assert check(now, "--baseline", baseline, "--strict").exit_code == 4
    assert check(now, "--baseline", baseline, "--strict", "--smallest", ".3").exit_code == 0


def test_equal_logs_say_the_number_of_items_from_which_they_are_unchanged(write: Write) -> None:
    """Too few items to exclude a change need less than the number that would show one: 170."""
    for items in (20, 40):
        few = write(f"few-{items}", items=items)
        done = check(few, "--against", few)
        assert "cannot tell a change of .05 (needs 41 items that change as little)" in done.output
    enough = write("enough", items=41)
    assert "unchanged" in check(enough, "--against", enough).output


def test_logs_of_before_stand_for_a_baseline(write: Write) -> None:
    done = check(write("now", fallen), "--against", write("before"))
    assert done.exit_code == 1 and "−.17 [−.26, −.07]" in done.output


def test_another_grader_is_refused_and_is_no_fall_of_the_model(
    write: Write, baseline: str, tmp_path: Path
) -> None:
    graded = {"model_roles": {"grader": ModelConfig(model="planted/g")}}
    done = check(write("now", fallen, **graded), "--baseline", baseline)
    assert done.exit_code == 3 and done.output.splitlines()[0] == (
        "quiz of planted/a  refused: another model has the role grader, it was the evaluated model and is planted/g: "
        "the same reply is scored otherwise; save a new baseline"
    )
    again = check(write("before", **graded), "--save", tmp_path / "graded.json")
    assert again.exit_code == 0
    assert check(write("now", **graded), "--baseline", tmp_path / "graded.json").exit_code == 0


def test_another_argument_of_a_scorer_is_refused(write: Write, tmp_path: Path) -> None:
    written = read_eval_log(write("now"))
    assert written.results is not None
    written.results.scores[0].params = {
        "model": {"model": "planted/g", "model_args": {"custom_outputs": [1]}}
    }
    write_eval_log(written, str(tmp_path / "g.eval"))
    done = check(tmp_path / "g.eval", "--against", write("before"))
    assert done.exit_code == 3
    assert (
        "the arguments of its scorer theirs changed (its grader or a template among them)"
        in done.output
    )
    written.results.scores[0].params["model"]["model_args"] = {"custom_outputs": [2]}
    write_eval_log(written, str(tmp_path / "h.eval"))
    assert check(tmp_path / "g.eval", "--against", tmp_path / "h.eval").exit_code == 0


def test_options_in_another_order_are_the_same_prompt(tmp_path: Path) -> None:
    logs = {}
    for name, template in (
        ("a", None),
        ("b", None),
        ("c", "Other: {question} {choices} {letters}"),
    ):
        options = ["one", "two", "three", "four"]
        order = options if name == "a" else options[::-1]
        samples = [
            Sample(id=f"q{i}", input=f"{i}?", choices=order, target="ABCD"[order.index("two")])
            for i in range(3)
        ]
        task = Task(
            name="quiz",
            dataset=samples,
            solver=[multiple_choice(template=template)],
            scorer=theirs_by_name(),
        )
        [logs[name]] = eval(task, model="planted/a", log_dir=str(tmp_path / name), display="none")
    done = check(tmp_path / "b", "--against", tmp_path / "a")
    assert done.exit_code == 0, done.output
    done = check(tmp_path / "c", "--against", tmp_path / "a")
    assert done.exit_code == 3 and "refused" in done.output


def test_hard_items_that_lack_a_score_are_no_rise(write: Write, baseline: str) -> None:
    """Of the items that have one all are right now."""
    now = write("now", lambda item, epoch: 1.0 if item % 3 else float("nan"))
    done = check(now, "--baseline", baseline)
    assert done.exit_code == 1
    score, unscored, *_ = done.output.splitlines()
    assert "better" not in score
    assert (
        unscored.split()
        == "quiz unscored .00 → .33 +.33 [+.21, +.46] n 60 worse (no_reason)".split()
    )


def test_scores_that_are_newly_missing_could_hide_a_fall(write: Write, baseline: str) -> None:
    now = write("now", lambda item, epoch: float("nan") if item % 15 == 1 else item % 3 != 0)
    done = check(now, "--baseline", baseline)
    assert "cannot tell a change of .05 (newly unscored values could hide a fall)" in done.output


def test_epochs_of_an_item_are_one_item(write: Write, tmp_path: Path) -> None:
    before = write("before", lambda item, epoch: (item + epoch) % 2, epochs=4)
    done = check(
        write("now", lambda item, epoch: (item + epoch + 1) % 2, epochs=4), "--against", before
    )
    assert (
        done.exit_code == 0
        and "theirs  .50 → .50  .00 [−.03, +.03]  n 60  unchanged" in done.output
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"task_version": 2},
            "the baseline is of task version 0, the logs are of 2; save a new baseline",
        ),
        ({"task_args": {"k": 3}}, "asked with other task arguments: k was left out and is 3"),
        ({"items": 50}, "the logs have 50 of the baseline's 60 items (without "),
        ({"task": "other"}, "the baseline has it and the logs lack it; of quiz they have none"),
    ],
)
def test_another_task_is_refused_with_status_3(
    write: Write, baseline: str, change: dict[str, Any], said: str
) -> None:
    done = check(write("now", **change), "--baseline", baseline)
    assert done.exit_code == 3 and said in done.output


def test_a_run_of_another_task_beside_the_baselines_is_refused_everywhere(
    write: Write, baseline: str, tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    logs = [write("now"), write("further", task="other")]
    done = check(*logs, "--baseline", baseline, "--junit", junit, "--github")
    assert done.exit_code == 3
    assert "other of planted/a  refused: it is not in the baseline; save a new" in done.output
    assert "::error title=other of planted/a::refused: it is not" in done.output
    [error] = ElementTree.fromstring(junit.read_bytes()).iter("error")
    assert error.get("message", "").startswith("refused: it is not in the baseline")


def test_ids_that_ask_something_else_are_refused(
    write: Write, baseline: str, tmp_path: Path
) -> None:
    log = read_eval_log(write("now"))
    assert log.samples
    for sample in log.samples[:3]:
        sample.input = "other?"
    write_eval_log(log, str(tmp_path / "now.eval"))
    done = check(tmp_path / "now.eval", "--baseline", baseline)
    assert (
        done.exit_code == 3
        and "3 of 60 samples ask something else under the same id, as 1" in done.output
    )


def keyed(at: str, path: Path, options: list[str], target: Callable[[int], str]) -> Path:
    """The log at a path with options and targets, written to another."""
    log = read_eval_log(at)
    for number, sample in enumerate(log.samples or []):
        sample.choices, sample.target = options, target(number)
    write_eval_log(log, str(path))
    return path


def test_other_targets_are_refused_and_shuffled_options_are_none(
    write: Write, tmp_path: Path
) -> None:
    old = keyed(write("a"), tmp_path / "old.eval", ["yes", "no"], lambda number: "A")
    check(old, "--save", tmp_path / "b.json")
    for name, options, letter in (("same", ["yes", "no"], "A"), ("shuffled", ["no", "yes"], "B")):
        done = check(
            keyed(write("c"), tmp_path / f"{name}.eval", options, lambda _, it=letter: it),
            "--against",
            old,
        )
        assert done.exit_code == 0 and "unchanged" in done.output, done.output
    other = keyed(
        write("d"), tmp_path / "other.eval", ["yes", "no"], lambda number: "AB"[number < 4]
    )
    done = check(other, "--baseline", tmp_path / "b.json")
    assert done.exit_code == 3
    assert (
        "4 of 60 samples have another target or other options, as 1: the same reply is scored"
        in done.output
    )
    further = keyed(
        write("e"), tmp_path / "further.eval", ["yes", "no", "both"], lambda number: "A"
    )
    assert (
        "60 of 60 samples have another target or other options"
        in check(further, "--against", old).output
    )


def test_logs_whose_targets_the_baseline_lacks_are_compared_all_the_same(
    write: Write, baseline: str, tmp_path: Path
) -> None:
    assert '"answers": {},' in Path(baseline).read_text()
    now = keyed(write("now"), tmp_path / "now.eval", ["yes", "no"], lambda number: "A")
    assert check(now, "--baseline", baseline).exit_code == 0


def test_a_new_model_is_the_normal_case_and_two_of_them_are_refused(
    write: Write, baseline: str
) -> None:
    one, two = write("now", model="planted/b"), write("more", model="planted/c")
    done = check(one, "--baseline", baseline)
    assert (
        done.exit_code == 0
        and "quiz of planted/b: the baseline's model is planted/a" in done.output
    )
    done = check(one, two, "--baseline", baseline)
    assert done.exit_code == 3
    assert "the logs lack it; of quiz they have quiz of planted/b, quiz of planted/c" in done.output


def test_text_scores_are_refused_in_one_line(write: Write, baseline: str, tmp_path: Path) -> None:
    now = write("now", lambda item, epoch: "rather good")
    for done in (check(now, "--save", tmp_path / "b.json"), check(now, "--baseline", baseline)):
        assert (
            done.exit_code in (2, 3)
            and "theirs of quiz is no number at sample '1', and no C, I, P or N" in done.output
        )


def test_three_items_tell_nothing_and_break_nothing(write: Write, tmp_path: Path) -> None:
    done = check(write("now", fallen, items=3), "--against", write("before", items=3))
    assert (
        done.exit_code == 3
        and "57 of 60 samples failed or missing" not in done.output.splitlines()[0]
    )
    assert "n 3  cannot tell a change of .05 (needs " in done.output


def test_how_often_the_verdict_flips(write: Write, baseline: str) -> None:
    done = check(write("now", fallen), "--baseline", baseline, "--aa", "20")
    assert "20 resamples of the items: worse " in done.output
    done = check(write("four", lambda item, epoch: (item * epoch) % 3 > 0, epochs=4), "--aa", "10")
    assert done.exit_code == 0 and done.output.startswith(
        "10 deals of the epochs into before and after"
    )
    done = check(write("one"), "--aa", "10")
    assert (
        done.exit_code == 2
        and "quiz of planted/a has one; run it with --epochs 2 or more" in done.output
    )


def test_json_junit_and_annotations_say_the_same(
    write: Write, baseline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    now, xml = write("now", fallen), tmp_path / "check.xml"
    done = check(now, "--baseline", baseline, "--junit", xml, "--github")
    [error] = [line for line in done.output.splitlines() if line.startswith("::error ")]
    assert error.startswith("::error title=quiz of "), "with the model"
    assert error.endswith(" theirs::.67 → .50  −.17 [−.26, −.07] n 60 worse")
    [suite] = ElementTree.fromstring(xml.read_bytes())
    assert suite.get("failures") == "1" and suite[0][0].tag == "failure"
    summary = (tmp_path / "summary.md").read_text()
    assert (
        summary.startswith("### selfprobe check: 1 worse\n")
        and "| quiz | theirs | .67 → .50 −.17 | " in summary
    )
    told = json.loads(check(now, "--baseline", baseline, "--json").stdout)
    assert told["status"] == 1 and told["rows"][0]["verdict"] == "worse"
    assert told["rows"][0]["change"]["estimate"]["n"] == 60


def test_the_newest_of_several_equal_runs_counts_and_the_line_names_its_log(
    write: Write, baseline: str
) -> None:
    late = "2099-01-01T00:00:00+00:00"
    done = check(
        write("old", fallen),
        write("older", fallen),
        write("now", created=late),
        "--baseline",
        baseline,
    )
    said = "quiz of planted/a: now.eval counts; 2 other runs of the same are left out"
    assert done.exit_code == 0 and said in done.output.splitlines()
    done = check(write("now", created=late), "--against", write("old").rpartition("/")[0])
    assert f"before: {said}" in done.output.replace("3 other", "2 other")


def test_text_keys_are_named_and_the_numbers_beside_them_compared(
    write: Write, tmp_path: Path
) -> None:
    def both(item: int, epoch: int) -> dict[str, Any]:
        return {"right": fallen(item, epoch), "comment": "fine"}

    why = "theirs.comment of quiz is no number at sample '1', and no C, I, P or N"
    done = check(write("before", both), "--save", tmp_path / "b.json")
    assert done.exit_code == 0 and f"quiz of planted/a: not in the baseline: {why}" in done.output
    done = check(write("now", both), "--baseline", tmp_path / "b.json")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "quiz  theirs.right  .50 → .50  .00 [−.03, +.03]  n 60  unchanged",
        f"quiz of planted/a: not compared: {why}",
        "1 unchanged",
    ]
    done = check(
        write("numbers", lambda i, e: {"right": 1, "comment": 1}), "--baseline", tmp_path / "b.json"
    )
    assert done.exit_code == 3 and f"refused: {why}; that is the baseline's" in done.output


def test_a_score_too_large_to_compute_with_is_named_and_no_traceback(write: Write) -> None:
    for value, shown in ((1e300, "1e+300"), (float("inf"), "inf"), ("1e999", "inf")):
        now = write("now", lambda item, epoch, value=value: value if item == 3 else 1.0)
        done = check(now, "--against", write("before"))
        assert done.exit_code == 3, done.output
        assert f"theirs of quiz is {shown} at sample '3', too large to compute with" in done.output
        assert "lack" not in done.output and done.output.splitlines()[-1] == "1 incomplete"
    large = write("large", lambda item, epoch: 1e90 * ((item + 1) % 5))
    done = check(large, "--against", write("before", lambda item, epoch: 1e90 * (item % 5)))
    assert "(needs more than a billion items)" in done.output and "nan" not in done.output


def test_scores_near_0_keep_their_digits(write: Write) -> None:
    before, now = (
        write(name, lambda i, e, f=f: f * 1e-7 * (1 + i % 7))
        for name, f in (("before", 1), ("now", 2))
    )
    [row] = json.loads(check(now, "--against", before, "--smallest", "1e-7", "--json").stdout)[
        "rows"
    ]
    assert row["verdict"] == "better" and row["change"]["after"] == pytest.approx(
        2 * row["change"]["before"]
    )


def test_another_number_of_epochs_is_said(write: Write) -> None:
    done = check(write("now"), "--against", write("before", epochs=4))
    said = "quiz of planted/a: the baseline has 4 epochs of an item, the logs 1; what is compared is each item's mean"
    assert said in done.output.splitlines()


def test_a_baseline_that_is_not_there_says_how_to_save_one(write: Write, tmp_path: Path) -> None:
    done = check(write("now"), "--baseline", tmp_path / "none.json")
    assert done.exit_code == 2 and done.output == (
        f"Error: there is no baseline {tmp_path}/none.json; save one: selfprobe check LOGS --save {tmp_path}/none.json\n"
    )


def test_two_runs_of_the_same_that_are_both_asked_for_say_which_to_give(
    write: Write, baseline: str
) -> None:
    done = check(
        write("now"),
        write("args", task_args={"k": 1}),
        write("more", task_args={"k": 2}),
        "--baseline",
        baseline,
    )
    assert done.exit_code == 3
    for argument in ("k=1", "k=2"):
        refused = f"quiz of planted/a ({argument})  refused: it is not in the baseline"
        assert refused in done.output
    done = check(
        write("args", task_args={"k": 1}), write("more", task_args={"k": 2}), "--baseline", baseline
    )
    assert done.exit_code == 3
    assert (
        "the logs have 2 runs of it with other arguments or samples, and one is compared"
        in done.output
    )


def test_a_score_that_is_gone_or_has_another_name_is_refused_and_a_new_one_is_no_change(
    write: Write, tmp_path: Path
) -> None:
    def dead(item: int, epoch: int) -> Any:
        return {"m": float("nan"), "k": 1.0}

    path = str(tmp_path / "m.json")
    assert check(write("m", lambda item, epoch: {"m": 1.0}), "--save", path).exit_code == 0
    done = check(write("mm", lambda item, epoch: {"mm": 0.0}), "--baseline", path)
    assert done.exit_code == 3, done.output
    assert (
        "the logs lack the score theirs.m, which the baseline has; they have theirs.mm"
        in done.output
    )
    done = check(write("dead", dead), "--baseline", path)
    assert done.exit_code in (1, 3) and "unscored  .00 → 1.00" in " ".join(
        done.output.split(" ")
    ), done.output
    done = check(write("two", lambda item, epoch: {"m": 1.0, "k": 0.0}), "--baseline", path)
    assert (
        done.exit_code == 0
        and "theirs.k is not in the baseline" in done.output
        and "better" not in done.output
    )


def test_runs_that_differ_in_arguments_alone_are_told_apart(write: Write, tmp_path: Path) -> None:
    logs = [write("k1", task_args={"k": 1}), write("k2", fallen, task_args={"k": 2})]
    path = str(tmp_path / "both.json")
    assert check(*logs, "--save", path).exit_code == 0
    done = check(*logs, "--baseline", path)
    assert done.exit_code == 0
    assert [line.partition(")")[0] for line in done.output.splitlines()[:2]] == [
        "quiz (k=1",
        "quiz (k=2",
    ], done.output


def test_options_without_effect_are_2_and_name_what_they_need(
    write: Write, baseline: str, tmp_path: Path
) -> None:
    now = write("now")
    for arguments, said in (
        (
            ("--strict",),
            "--strict is about a change; say from what: --baseline FILE.json or --against LOGS2",
        ),
        (("--lower", "theirs"), "--lower is about a change"),
        (("--smallest", ".1"), "--smallest is about a change"),
        (("--aa", "5", "--strict"), "--strict is about a change"),
        (("--aa", "5", "--junit", tmp_path / "x.xml"), "--junit has nothing to say of --aa alone"),
        (("--limit", "3"), "--limit is for --run TASKS; with LOGS it has no effect"),
        (
            ("-T", "k=3", "--baseline", baseline),
            "-T is for --run TASKS; with LOGS it has no effect",
        ),
    ):
        done = check(now, *arguments)
        assert done.exit_code == 2 and said in done.output and done.output.count("\n") == 1, (
            done.output
        )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nan", "nan is not finite; expected x>0"),
        ("inf", "inf is not finite; expected x>0"),
        ("-1", "-1.0 is not in the range x>0"),
        (
            "2",
            "--smallest 2 is more than any change can be: what was before lies in 0 to 1; give a share such as .05",
        ),
    ],
)
def test_a_smallest_change_that_cannot_be_is_2(
    write: Write, baseline: str, value: str, said: str
) -> None:
    done = check(write("now"), "--baseline", baseline, "--smallest", value)
    assert done.exit_code == 2 and said in done.output and done.output.count("\n") == 1, done.output


def test_a_smallest_change_above_1_is_one_of_scores_above_1(write: Write) -> None:
    points = write("points", lambda item, epoch: item % 11)
    done = check(points, "--against", points, "--smallest", "2")
    assert done.exit_code == 0 and done.output.splitlines()[-1] == "1 unchanged"


def test_options_that_do_not_go_together_are_2(
    baseline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir(exist_ok=True)
    for arguments, said in (
        ((), "give LOGS, or --run TASKS --model MODEL"),
        (("logs", "--run", "kth_word"), "not both"),
        (("--run", "kth_word"), "--run needs a model: --model MODEL"),
        (("logs", "--baseline", baseline, "--against", "logs"), "give one of them"),
        (("logs", "--baseline", baseline, "--smallest", "0"), "x>0"),
    ):
        done = check(*arguments)
        assert done.exit_code == 2 and said in done.output, done.output


def answered(at: str, path: Path, answer: str) -> str:
    """The log at a path with an answer to every item, written to another."""
    log = read_eval_log(at)
    for sample in log.samples or []:
        assert sample.scores is not None
        sample.scores["theirs"].answer = f"{answer} {sample.id}"
    write_eval_log(log, str(path))
    return str(path)


def test_items_that_turned_are_listed_with_both_answers_ten_in_text_and_all_in_json(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    old = answered(write("old"), tmp_path / "a.eval", "yes")
    now = answered(
        write("now", lambda i, e: float(i == 3 or fallen(i, e))), tmp_path / "b.eval", "no"
    )
    assert check(old, "--save", tmp_path / "b.json").exit_code == 0
    for before in (("--baseline", tmp_path / "b.json"), ("--against", old)):
        lines = check(now, *before, "--github").output.splitlines()
        found = [line for line in lines if line.startswith("quiz ") and "right → wrong: " in line]
        assert len(found) == 10 and found[0] == 'quiz 16 theirs  right → wrong: "yes 16" → "no 16"'
        assert "and 1 more: 10 right → wrong, 1 wrong → right in all" in lines
        told = json.loads(check(now, *before, "--json").stdout)["turned"]
        assert len(told) == 11 and (told[-1]["item"], told[-1]["right"], told[-1]["was"]) == (
            "3",
            True,
            "yes 3",
        )
    assert 'right → wrong: "yes 16" → "no 16"' in (tmp_path / "summary.md").read_text()


def test_an_alarm_says_that_a_baselines_luck_stays_and_a_good_gate_does_not(
    write: Write, baseline: str
) -> None:
    said = "has an alarm within 30 nights with one baseline in four. Run it again"
    assert said in check(write("now", fallen), "--baseline", baseline).output
    assert said not in check(write("same"), "--baseline", baseline).output


@pytest.mark.parametrize("task", ["kth_word", "ethical_dilemma", "prompt_reconstruction"])
def test_a_run_in_which_nothing_was_scored_keeps_the_name_of_the_score(
    run_task: Any, tmp_path: Path, task: str
) -> None:
    """Its log has other numbers alone; the first of them was taken for the score: "ceiling"."""
    run_task(f"selfprobe/{task}", "planted/a", tmp_path / "before", limit=2)
    run_task(f"selfprobe/{task}", "planted/a?refused=1", tmp_path / "now", limit=2)
    rows = json.loads(
        check(tmp_path / "before", "--against", tmp_path / "before", "--json").stdout
    )["rows"]
    name_before = rows[0]["metric"]
    done = check(tmp_path / "now", "--against", tmp_path / "before", "--json")
    assert done.exit_code == 3
    names = [row["metric"] for row in json.loads(done.stdout)["rows"]]
    assert names[0] in (name_before, "accuracy", "similarity", "score") and "ceiling" not in names
    alone = check(tmp_path / "now", "--against", tmp_path / "now", "--json")
    assert json.loads(alone.stdout)["rows"][0]["metric"] == "score"
