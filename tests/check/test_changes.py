"""What changed between two runs, metric by metric, from runs that are made up."""

from dataclasses import asdict, replace
from typing import Any
from xml.etree import ElementTree

import pytest

from selfprobe.studies.check_cases import CaseKind
from selfprobe.studies.check_cells import turned_cells
from selfprobe.studies.check_gate import (
    VERDICT_WORDS,
    Gate,
    _short,
    _signed,
    change_text,
    verdict_text,
)
from selfprobe.studies.check_numbers import ChangeVerdict, changes_of
from selfprobe.studies.check_pairs import BaselineRun, pair_runs, refusal


def run(values: list[Any], **given: Any) -> BaselineRun:
    """A run with one key, an item a value; a list is its epochs."""
    items: Any = {f"i{n}": {"k": v if isinstance(v, list) else [v]} for n, v in enumerate(values)}
    return replace(
        BaselineRun("quiz", "m", "m", "1", "0", {}, {}, "d", "", [], {}, "accuracy", {}, items),
        **given,
    )


HALF = [float(n % 2) for n in range(100)]


def test_of_another_way_of_asking_the_same_model_is_worse_and_another_one_is_said() -> None:
    before, now = run(HALF, applied={"effort none": 100}), run(HALF, applied={"effort low": 100})
    gate = Gate([before], [now], smallest=0.05)
    [_, asked] = gate.rows
    assert (asked.metric, asked.verdict, gate.status) == ("asked", "worse", 1)
    assert verdict_text(asked, gate.smallest) == "worse (effort none → effort low)"
    gate = Gate([before], [replace(now, model="n", target="n")], smallest=0.05)
    assert (
        gate.status == 0
        and verdict_text(gate.rows[1], gate.smallest) == "not the same (effort none → effort low)"
    )
    assert Gate([before], [replace(now, model="n", target="n")], strict=True).status == 4


def test_a_few_samples_that_were_asked_otherwise_are_the_same_way() -> None:
    before, now = (
        run(HALF, applied={"limit 64": 100}),
        run(HALF, applied={"limit 64": 96, "limit 8256": 4}),
    )
    assert [row.metric for row in changes_of([(before, now)], smallest=0.05)] == ["accuracy"]


def test_a_skill_takes_off_what_can_be_guessed() -> None:
    """.75 right where half can be guessed is half the way to 1; .5 is none of it."""
    guessed = {f"i{n}": {"k": 1.0} for n in range(0, 100, 2)}
    before = run([float(n % 4 > 0) for n in range(100)], blind=guessed)
    now = run([float(n % 4 > 1) for n in range(100)], blind=guessed)
    [row] = changes_of([(before, now)], smallest=0.05)
    assert row.change is not None and row.metric == "skill" and row.verdict == "worse"
    assert (row.change.before, row.change.after) == (pytest.approx(0.5), pytest.approx(0))


def test_p_is_corrected_over_all_lines() -> None:
    fallen = [v * (n % 14 > 2) for n, v in enumerate(HALF)]
    alone = changes_of([(run(HALF), run(fallen))], smallest=0.05)
    many = changes_of([(run(HALF), run(fallen))] * 40, smallest=0.05)
    assert alone[0].verdict == "worse" and many[0].verdict == "cannot tell"
    assert many[0].p_holm == pytest.approx(min(1, 40 * alone[0].p_holm))
    assert (many[0].needed or 0) > (alone[0].needed or 0)


def test_items_of_one_cluster_count_as_one() -> None:
    clusters = {f"i{n}": f"c{n // 20}" for n in range(100)}
    [row] = changes_of([(run(HALF), run([0.0] * 100, clusters=clusters))], smallest=0.05)
    assert row.change is not None and (row.change.estimate.n, row.change.estimate.unit) == (
        5,
        "cluster",
    )


def test_a_sample_that_failed_is_unscored_and_no_smaller_set() -> None:
    before, now = run(HALF), run(HALF)
    now.items["i0"] = {}
    assert refusal(before, now) == ""
    unscored = changes_of([(before, now)], smallest=0.05)[1]
    assert unscored.change is not None and unscored.change.after == 0.01 and unscored.why == "error"


def test_epochs_that_are_newly_unscored_are_no_rise_either() -> None:
    """Those that are left are all right; with the others wrong nothing changed."""
    before, now = run([[1.0, 0.0]] * 100), run([[1.0, "refusal"]] * 100)
    [score, unscored] = changes_of([(before, now)], smallest=0.05)
    assert score.change is not None and score.change.after == 1 and score.verdict == "no worse"
    assert unscored.verdict == "worse" and unscored.why == "refusal"


def test_a_model_that_reasons_where_it_was_not_to_is_worse() -> None:
    now = run(HALF, reasoned={f"i{n}": ["k"] for n in range(30)})
    rows = changes_of([(run(HALF), now)], smallest=0.05)
    assert [(row.metric, row.verdict) for row in rows] == [
        ("accuracy", "unchanged"),
        ("reasoned", "worse"),
    ]


def test_other_prompts_are_refused_and_prompts_of_which_some_are_left_are_not() -> None:
    before = run(HALF, prompts=["a", "b"])
    assert refusal(before, run(HALF, prompts=["c"])).startswith("the prompts changed")
    assert refusal(before, run(HALF, prompts=["b"])) == refusal(before, run(HALF)) == ""


def test_other_model_arguments_are_said() -> None:
    before = run(HALF, model_args={"access": 0.8, "provider": {"order": ["a"]}})
    now = run(HALF, model_args={"access": 0.2, "provider": {"order": ["a"]}, "api_version": "2"})
    run_pairs = pair_runs([before], [now])
    assert run_pairs.notes == [
        "quiz of m: asked with other model arguments: access was 0.8 and is 0.2, api_version was "
        "left out and is '2'"
    ]
    pinned = run(HALF, model_args={"provider": {"order": ["b"]}})
    [note] = pair_runs([run(HALF)], [pinned]).notes
    assert note.endswith("provider was left out and is {'order': ['b']}")
    assert not pair_runs([before], [before]).notes
    with_key = run(HALF, model_args={"api_key": "sk-1234567890abcdef"})
    assert "sk-1234567890abcdef" not in str(pair_runs([run(HALF)], [with_key]).notes)


def test_equal_data_are_the_same_wherever_they_lie() -> None:
    def on(dataset: str, data: str = "d") -> BaselineRun:
        return run(HALF, args={"dataset": dataset}, data=data)

    before = on("my.jsonl")
    for now in (on("./my.jsonl"), on("/somewhere/my.jsonl"), run(HALF)):
        run_pairs = pair_runs([before], [now])
        assert len(run_pairs.pairs) == 1 and not run_pairs.refused and not run_pairs.notes
    assert refusal(before, on("my.jsonl", "e")) == "another data set: its hash was d and is e"
    assert refusal(before, on("other.jsonl", "e")) == "another data set: its hash was d and is e"
    other_columns = refusal(before, on("./my.jsonl?question=title"))
    assert "dataset was 'my.jsonl' and is './my.jsonl?question=title'" in other_columns
    assert "dataset was 'my.jsonl'" in refusal(on("my.jsonl", ""), on("./my.jsonl", ""))


def test_of_several_data_sets_each_is_compared_with_itself() -> None:
    before = [run(HALF, data="d"), run(HALF, data="e", args={"dataset": "my.jsonl"})]
    now = [run(HALF, data="d"), run(HALF, data="e", args={"dataset": "./my.jsonl"})]
    for model in ("m", "z"):
        moved = [replace(moved_run, model=model, target=model) for moved_run in reversed(now)]
        run_pairs = pair_runs(before, moved)
        assert {(old.data, new.data) for old, new in run_pairs.pairs} == {("d", "d"), ("e", "e")}
        assert not run_pairs.refused


def test_of_a_large_fall_that_is_not_shown_the_number_is_that_of_a_change_as_large() -> None:
    [row] = changes_of([(run([1.0] * 5 + [0.0]), run([0.0] * 6))], smallest=0.05)
    assert row.change is not None and row.needed_as_large == row.change.needed(5 / 6) == 14
    assert verdict_text(row, 0.05) == (
        "cannot tell a change of .05 (needs 14 items to show a change as large)"
    )
    as_small_as_noise = run([1.0, 0.0, 1.0, *HALF[3:12]])
    [row] = changes_of([(run(HALF[:12]), as_small_as_noise)], smallest=0.05)
    assert verdict_text(row, 0.05) == f"cannot tell a change of .05 (needs {row.needed:,} items)"


def runs_of(*models: str, **fields: Any) -> list[BaselineRun]:
    return [run(HALF, model=model, target=model, **fields) for model in models]


def test_of_several_models_each_needs_a_run_in_the_baseline() -> None:
    cases: tuple[tuple[list[str], list[str], list[str]], ...] = (
        (["a", "b"], ["z", "b"], ["b"]),
        (["a", "b"], ["a", "z"], ["a"]),
        (["a", "b"], ["z"], []),
        (["a"], ["y", "z"], []),
        (["a"], ["a", "z"], ["a"]),
        (["a", "b"], ["y", "z"], []),
        (["a"], ["z"], ["z"]),
    )
    for before, now, compared_models in cases:
        run_pairs = pair_runs(runs_of(*before), runs_of(*now))
        assert [new.model for _, new in run_pairs.pairs] == compared_models, (before, now)
        is_complete = compared_models == now and len(before) == len(now)
        assert bool(run_pairs.refused) == (not is_complete), (before, now)
    refused = pair_runs(runs_of("a"), runs_of("a", "z")).refused
    assert refused["quiz of z"].startswith("it is not in the baseline; save a new baseline")
    refused = pair_runs(runs_of("a", "b"), runs_of("b", "z")).refused
    assert refused == {
        "quiz of a": "the baseline has it and the logs lack it; of quiz they have quiz of z"
    }


def test_models_are_several_over_all_tasks() -> None:
    before = [*runs_of("a"), *runs_of("b", task="riddle")]
    now = [*runs_of("z"), *runs_of("b", task="riddle")]
    run_pairs = pair_runs(before, now)
    assert [new.model for _, new in run_pairs.pairs] == ["b"] and "quiz of a" in run_pairs.refused
    before = [*runs_of("a"), *runs_of("a", task="riddle")]
    now = [*runs_of("z"), *runs_of("z", task="riddle")]
    assert len(pair_runs(before, now).pairs) == 2


def test_of_several_targets_each_needs_a_run_in_the_baseline() -> None:
    def matrix(*targets: str) -> list[BaselineRun]:
        return [run(HALF, model="a", target=target) for target in targets]

    run_pairs = pair_runs(matrix("a", "b", "c"), matrix("a", "b", "z"))
    assert [new.target for _, new in run_pairs.pairs] == ["a", "b"]
    assert list(run_pairs.refused) == ["quiz of a about c"]


def test_a_run_about_another_model_is_not_compared_with_one_about_itself_and_another_target_is_said() -> (
    None
):
    about_itself = run(HALF, model="a", target="a")
    about_b = run(HALF, model="a", target="b")
    about_c = run(HALF, model="a", target="c")
    for before, now, text in (
        (about_b, about_itself, "the baseline is of a about b, the logs are of a about itself"),
        (about_itself, about_b, "the baseline is of a about itself, the logs are of a about b"),
    ):
        assert pair_runs([before], [now]).refused == {
            now.name: f"{text}; run the same, or save a new baseline"
        }
    found = pair_runs([about_b], [about_c])
    assert len(found.pairs) == 1
    assert found.notes == ["quiz of a about c: the baseline's target is b"]


def test_runs_of_one_task_are_told_apart_by_model_and_target_in_every_output() -> None:
    pairs_of_models = [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    before = [run(HALF, model=model, target=target) for model, target in pairs_of_models]
    fallen = [0.0, 0.0, *HALF[2:]]
    now = [run(fallen, model=model, target=target) for model, target in pairs_of_models]
    result = Gate(before, now, smallest=0.05).result()
    names = ["a", "a about b", "b about a", "b"]

    assert [
        line.split("accuracy")[0].split(maxsplit=1)[1].strip() for line in result.lines()[:4]
    ] == names
    turned_lines = [line for line in result.lines() if "right → wrong" in line]
    assert [line.partition(" i1 ")[0] for line in turned_lines] == [
        f"quiz of {name}" for name in names
    ]
    cases = ElementTree.fromstring(result.junit()).iter("testcase")
    identities = [f"{case.get('classname')} {case.get('name')}" for case in cases]
    assert identities == [f"quiz of {name} accuracy" for name in names]
    for name in names:
        assert f"| quiz of {name} | accuracy |" in result.markdown()
    annotations = replace(result, cases=[replace(c, kind=CaseKind.ERROR) for c in result.cases])
    titles = [command.partition("::.")[0] for command in annotations.annotations()]
    assert titles == [f"::error title=quiz of {name} accuracy" for name in names]
    for entries in (result.fields["rows"], [asdict(cell) for cell in result.fields["turned"]]):
        assert [(entry["model"], entry["target"]) for entry in entries] == pairs_of_models


def test_a_single_run_about_another_model_names_it() -> None:
    before = run(HALF, model="a", target="b")
    assert Gate([before], [before]).result().lines()[0].startswith("quiz  a about b  accuracy")
    assert Gate([run(HALF)], [run(HALF)]).result().lines()[0].startswith("quiz  accuracy")


def test_what_is_shown_adds_up_and_where_two_decimals_do_not_has_more() -> None:
    """.47 → .34 is −.13, and −.138 is rounded to −.14."""
    before, now = run([1.0] * 474 + [0.0] * 526), run([1.0] * 336 + [0.0] * 664)
    [row] = changes_of([(before, now)], smallest=0.05)
    assert change_text(row).startswith(".474 → .336  −.138 [−.")
    before, now = run([1.0] * 41 + [0.0] * 46), run([1.0] * 44 + [0.0] * 43)
    [row] = changes_of([(before, now)], smallest=0.05)
    assert change_text(row).startswith(".47 → .51  +.03 [−."), (
        "six decimals would add up, and claim too much"
    )
    [row] = changes_of([(run(HALF), run(HALF))], smallest=0.05)
    assert change_text(row) == ".50 → .50  .00 [−.02, +.02]"


def test_each_verdict_has_words_of_its_own() -> None:
    words = [VERDICT_WORDS[verdict].of_number for verdict in ChangeVerdict]
    assert len({*words}) == len(VERDICT_WORDS) == len(ChangeVerdict) and all(words)
    [row] = changes_of([(run(HALF), run(HALF))], smallest=0.05)
    told = [verdict_text(replace(row, verdict=verdict), 0.1) for verdict in ChangeVerdict]
    assert told == ["worse", "cannot tell a change of .10", "no worse", "unchanged", "better"]


def test_numbers_are_short() -> None:
    assert [_short(v) for v in (0.614, 1.0, -0.5, 12.34, float("nan"))] == [
        ".61",
        "1.00",
        "-.50",
        "12.34",
        "?",
    ]
    assert [_signed(v) for v in (0.03, -0.131, -0.001)] == ["+.03", "−.13", ".00"]


def test_what_turned_is_of_right_and_wrong_by_the_mean_of_epochs_and_of_no_likeness() -> None:
    before = run([[1.0, 1.0, 0.0], 1.0, 0.5, 0.0], said={"i0": {"k": ["a", "a", "b"]}})
    now = run([[0.0, 1.0, 0.0], "refusal", 0.0, 1.0], said={"i0": {"k": ["c", "a", "c"]}})
    first, second = turned_cells([(before, now)])
    assert (
        first.line(names_models=False) == 'quiz i0 k  right → wrong: "a" → "c"'
        and second.item == "i3"
        and second.right
    )
    assert [one.right for one in turned_cells([(before, now)], lower=["accuracy"])] == [False, True]
    assert turned_cells([(before, now)], lower=["accuracy"])[0].item == "i3"
    assert not turned_cells([(run([0.2, 0.9]), run([0.9, 0.2]))])
