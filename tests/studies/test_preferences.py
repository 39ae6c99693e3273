import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data.public_pairs import load_pairs
from selfprobe.logs import runs, titles
from selfprobe.page.claims import check_table, claim_sentence
from selfprobe.preference_tasks.pairwise_preference import pairwise_preference
from selfprobe.stats.claim import Outcome, Verdict
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.preferences.judged import (
    JudgedPair,
    JudgedRun,
    TextBaseline,
    TextReader,
    judged_runs_of,
    pair_text_baselines,
)
from selfprobe.studies.preferences.study import (
    PREFERENCE_WORDS,
    preference_claim,
    preference_page,
)
from selfprobe.study import Logs
from selfprobe.study.preference_logs import logged_margins


def written(path: Path, **more: Any) -> str:
    rows = [
        {"id": str(i), "question": f"Q{i}", "text_1": "a b", "text_2": "c", "label": 1} | more
        for i in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_methods_that_differ_in_provider_or_argument_stand_apart(
    run_task: Any, tmp_path: Path
) -> None:
    file, logs = written(tmp_path / "mine.jsonl"), tmp_path / "logs"
    for model, given in (
        ("planted/x/judge", {}),
        ("planted/y/judge", {}),
        ("planted/x/judge", {"prefill": True}),
    ):
        assert run_task(pairwise_preference(dataset=file, **given), model, logs).status == "success"
    run_task(pairwise_preference(dataset=file), "planted/x/judge", logs)  # again: the newest counts
    task = "pairwise_preference"
    assert set(logged_margins([str(logs)], {"mine": load_pairs(file)})["mine"]) == {
        *(
            f"{task}, planted/y/judge",
            f"{task}, planted/x/judge",
            f"{task}, planted/x/judge, prefill=true",
        ),
    }


def test_a_log_about_other_texts_is_refused(run_task: Any, tmp_path: Path) -> None:
    file, logs = written(tmp_path / "mine.jsonl"), tmp_path / "logs"
    run_task(pairwise_preference(dataset=file), "planted/judge", logs)
    assert list(logged_margins([str(logs)], {"mine": load_pairs(file)})["mine"]) == [
        "pairwise_preference, judge"
    ]
    written(tmp_path / "mine.jsonl", text_2="d")
    with pytest.raises(
        ValueError,
        match="of other pairs: pair 0 of mine has other texts there. Give logs of the same",
    ):
        logged_margins([str(logs)], {"mine": load_pairs(file)})


Ends = tuple[float, float, float]
NOTHING = (math.nan, math.nan, math.nan)
EVEN = (0.5, 0.4, 0.6)


def baseline(accuracy: float, beyond: Ends) -> TextBaseline:
    """What a reader of the texts gets, and what the judge knows beyond it."""
    return TextBaseline(
        Estimate(accuracy, accuracy - 0.1, accuracy + 0.1, 40, "question"),
        Estimate(*beyond, 40, "question"),
    )


BLIND = dict.fromkeys(TextReader, baseline(0.5, (0.2, 0.1, 0.3)))
"""Readers that see nothing in the texts."""


def judged(
    accuracy: Ends,
    first: Ends,
    model: str = "m",
    task: str = "pairwise_preference",
    **metrics: float,
) -> JudgedRun:
    numbers = {"pairs": 40.0, "questions": 40.0} | metrics
    for name, estimate in {"accuracy": accuracy, "said_1": first}.items():
        numbers |= dict(zip((name, f"{name}_low", f"{name}_high"), estimate, strict=True))
    return JudgedRun(task, model, "d", numbers, "log", baselines=BLIND)


def test_a_judge_that_always_takes_one_place_is_said_to_do_so_in_the_answer() -> None:
    page = preference_page([judged((0.62, 0.45, 0.76), (1.0, 0.91, 1.0))])
    assert page.answer == (
        "Cannot tell for m: it takes the first place in 100 % [91, 100] of showings, whichever text stands there; score "
        "each text alone (direct_scoring, g_eval)."
    )
    assert page.picture is not None and "m takes the first place in 100 %" in page.picture.caption
    assert not page.notes, "the answer says it"


def test_the_second_place_counts_as_the_first_and_a_mild_bias_does_not_explain_choices() -> None:
    assert judged(EVEN, (0.1, 0.05, 0.2)).place_sentence.startswith(
        "takes the second place in 90 % [80, 95]"
    )
    assert judged(EVEN, (0.8, 0.7, 0.9)).place is None
    assert judged(EVEN, NOTHING).place is None


def test_a_judge_by_place_that_is_right_nevertheless_keeps_its_yes_with_the_caveat_below_the_picture() -> (
    None
):
    page = preference_page([judged((0.7, 0.6, 0.8), (0.9, 0.8, 0.95)), judged(EVEN, EVEN, "n")])
    assert page.answer.startswith(
        "Yes, for 1 of 2 runs. m prefers the better text in 70 % [60, 80] of pairs"
    )
    assert (
        page.picture is not None
        and "m takes the first place in 90 % [80, 95]" in page.picture.caption
    )


@pytest.mark.parametrize(
    ("run", "verdict", "unmet"),
    [
        (judged((0.7, 0.6, 0.8), EVEN), Verdict.YES, None),
        (judged(NOTHING, NOTHING), Verdict.CANNOT_TELL, "verdicts"),
        (judged((0.7, 0.6, 0.8), NOTHING), Verdict.CANNOT_TELL, "by_preference"),
        (judged((0.7, 0.6, 0.8), (1.0, math.nan, math.nan)), Verdict.CANNOT_TELL, "by_preference"),
        (judged((0.7, 0.6, 0.8), NOTHING, task="direct_scoring"), Verdict.YES, None),
        (judged((0.7, 0.6, 0.8), NOTHING, task="g_eval, draws=4"), Verdict.YES, None),
        (
            judged((0.7, 0.6, 0.8), NOTHING, task="preference_probe"),
            Verdict.CANNOT_TELL,
            "by_preference",
        ),
        (judged((0.62, 0.45, 0.76), (1.0, 0.91, 1.0)), Verdict.CANNOT_TELL, "by_preference"),
        (judged((0.6, 0.4, 0.8), EVEN), Verdict.CANNOT_TELL, "above_guessing"),
        (judged((0.6, math.nan, math.nan), EVEN), Verdict.CANNOT_TELL, "above_guessing"),
        (
            judged((0.7, 0.6, 0.8), EVEN, worst_case=0.5, unscored=0.3),
            Verdict.CANNOT_TELL,
            "unscored",
        ),
        (judged((0.4, 0.3, 0.48), EVEN), Verdict.NO, "above_guessing"),
        (judged((0.5, 0.46, 0.54), EVEN), Verdict.NO, "above_guessing"),
    ],
)
def test_each_check_of_a_run_is_first_where_it_does_not_hold(
    run: JudgedRun, verdict: Verdict, unmet: str | None
) -> None:
    claim = preference_claim(run, "m")
    first = claim.first_unmet_check
    assert (claim.verdict, first.name if first else None) == (verdict, unmet)


def test_two_runs_of_one_name_stand_apart_and_all_metrics_are_in_a_file() -> None:
    page = preference_page([judged((0.7, 0.6, 0.8), EVEN, worst_case=0.69), judged(EVEN, EVEN)])
    assert [claim.subject for claim in page.claims] == ["m", "m (2)"]
    assert set(page.frames["metrics"].metric) >= {"accuracy", "said_1_low", "worst_case"}
    assert list(page.frames["scores"].columns[:7]) == [
        *("dataset", "method", "model", "accuracy", "accuracy_low", "accuracy_high", "accuracy_n")
    ]


def test_a_run_that_was_asked_in_one_order_alone_says_what_would_decide_it() -> None:
    one_order = judged((0.7, 0.6, 0.8), NOTHING)
    sentence = claim_sentence(preference_claim(one_order, "m"), PREFERENCE_WORDS)
    assert sentence == "Cannot tell: m was asked in one order alone; ask in both orders."
    first = replace(one_order, method="preference_probe", probe_orders="first")
    assert claim_sentence(preference_claim(first, "m"), PREFERENCE_WORDS).endswith(
        "; fit the probe to both orders."
    )
    both = replace(one_order, method="preference_probe", probe_orders="both")
    assert preference_claim(both, "m").verdict is Verdict.YES


def test_a_run_of_one_question_is_not_said_to_be_asked_in_one_order_or_to_lack_verdicts() -> None:
    nan = math.nan
    one_question = judged((1.0, nan, nan), (0.5, nan, nan), pairs=1.0, questions=1.0, unscored=0.0)
    claim = preference_claim(one_question, "ada")
    assert claim_sentence(claim, PREFERENCE_WORDS) == (
        "Cannot tell: ada was asked 1 question, too few to tell choices by place; add pairs of "
        "other questions."
    )
    outcome_of = {check.name: check.outcome for check in claim.checks}
    assert outcome_of["unscored"] is Outcome.HOLDS, "every pair has a verdict"


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        (TextReader.LENGTH, "beyond_length"),
        (TextReader.WORDS, "beyond_words"),
        (TextReader.STYLE, "beyond_style"),
    ],
)
def test_a_judge_that_knows_no_more_than_a_reader_of_the_texts_is_explained_by_it(
    reader: TextReader, name: str
) -> None:
    run = judged((0.7, 0.6, 0.8), EVEN)
    as_good = replace(run, baselines=BLIND | {reader: baseline(0.72, (-0.02, -0.06, 0.02))})
    claim = preference_claim(as_good, "m")
    assert claim.verdict is Verdict.NO and claim.explanation is not None
    assert claim.explanation.name == name
    assert claim_sentence(claim, PREFERENCE_WORDS) == (
        "No: m prefers the better text in 70 % [60, 80] of pairs, explained by "
        f"{reader.value}: 72 % [62, 82]."
    )
    unclear = replace(run, baselines=BLIND | {reader: baseline(0.6, (0.1, -0.02, 0.22))})
    claim = preference_claim(unclear, "m")
    assert claim.verdict is Verdict.CANNOT_TELL
    assert claim.first_unmet_check is not None and claim.first_unmet_check.name == name
    unlearnt = replace(run, baselines={})
    claim = preference_claim(unlearnt, "m")
    assert claim.verdict is Verdict.CANNOT_TELL
    assert {check.outcome for check in claim.checks[-3:]} == {Outcome.OPEN}


def test_a_yes_says_what_the_texts_alone_get() -> None:
    run = replace(
        judged((0.8, 0.7, 0.9), EVEN),
        baselines=BLIND | {TextReader.WORDS: baseline(0.65, (0.15, 0.05, 0.25))},
    )
    assert claim_sentence(preference_claim(run, "m"), PREFERENCE_WORDS) == (
        "Yes: m prefers the better text in 80 % [70, 90] of pairs, asked by pairwise_preference; "
        "length alone gets 50 %, words alone gets 65 %, style alone gets 50 %."
    )


def test_each_row_of_why_shows_the_number_that_its_words_name() -> None:
    claim = preference_claim(judged((0.8, 0.7, 0.9), EVEN, n=30.0), "m")
    rows = {
        row.check: (row.measured, row.compared_with)
        for row in check_table(claim, PREFERENCE_WORDS).rows
    }
    assert rows["given to verdicts"] == ("75 %", "–"), "the share with a verdict, not the accuracy"
    assert rows["above guessing"] == ("80 % [70, 90]", "guessing: 50 %")
    assert rows["above guessing by more than length"] == (
        "+20 points [+10, +30]",
        "length alone: 50 % [40, 60]",
    )


def judged_pairs(telling: float, count: int = 80, *, by_length: bool = True) -> list[JudgedPair]:
    """Pairs whose better text is the longer one in a share of `telling`.

    Their judge goes by length, or knows the better text in two of three pairs whatever the length.
    """
    pairs = []
    for number in range(count):
        better_is_longer = number < telling * count
        better = "a plain text" + " that goes on" * better_is_longer
        worse = "a plain text" + " that goes on" * (not better_is_longer)
        is_first = number % 2 == 0
        texts = (better, worse) if is_first else (worse, better)
        value = float(better_is_longer if by_length else number % 3 > 0)
        pairs.append(JudgedPair(*texts, is_first, f"q{number}", value))
    return pairs


def test_a_judge_that_goes_by_length_knows_nothing_beyond_it() -> None:
    for baseline_of_reader in pair_text_baselines(judged_pairs(0.8)).values():
        assert baseline_of_reader.accuracy.value == pytest.approx(0.8)
        assert baseline_of_reader.beyond.value == pytest.approx(0.0, abs=1e-9)
        assert baseline_of_reader.beyond.low < 0 < baseline_of_reader.beyond.high


def test_a_judge_that_knows_of_its_own_keeps_that_beyond_a_better_reader() -> None:
    baselines = pair_text_baselines(judged_pairs(0.8, by_length=False))
    length = baselines[TextReader.LENGTH]
    assert length.accuracy.value == pytest.approx(0.8)
    assert 0.1 < length.beyond.value < 0.25


def test_where_length_tells_all_nothing_beyond_it_can_be_seen() -> None:
    length = pair_text_baselines(judged_pairs(1.0))[TextReader.LENGTH]
    assert length.accuracy.value == 1.0 and math.isnan(length.beyond.value)
    assert length.beyond.reason == "it leaves too few pairs to see more"


def test_no_pair_and_pairs_of_one_question_teach_a_reader_nothing() -> None:
    for pairs in ([], [replace(pair, group="q") for pair in judged_pairs(1.0, 8)]):
        for baseline_of_reader in pair_text_baselines(pairs).values():
            assert math.isnan(baseline_of_reader.beyond.value)
            assert baseline_of_reader.beyond.reason == "too few pairs to learn from"


def test_readers_see_the_texts_of_the_log_where_the_better_text_is_always_the_shorter(
    run_task: Any, tmp_path: Path
) -> None:
    rows = [
        {
            "id": f"p{number}",
            "question": f"What of {number}?",
            "text_1": "short" if number % 2 else "a much longer text",
            "text_2": "a much longer text" if number % 2 else "short",
            "label": 1 if number % 2 else 2,  # the planted model prefers the shorter text
        }
        for number in range(24)
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_task(pairwise_preference(dataset=str(file)), "planted/ada?prefers=1", tmp_path / "logs")
    there = runs([str(tmp_path / "logs")])
    logs = Logs(there, titles(run.identity for run in there.finished))
    (run,) = judged_runs_of(logs)
    assert run.accuracy.value == 1.0
    assert {run.baselines[reader].accuracy.value for reader in TextReader} == {1.0}
    claim = preference_claim(run, "ada")
    assert claim.verdict is not Verdict.YES
    assert claim.first_unmet_check is not None and claim.first_unmet_check.name == "beyond_length"
