"""`selfprobe realism card` on planted judges and subjects: what was planted is recovered, and wrong
input is told.
"""

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import list_eval_logs, read_eval_log

from selfprobe.cli import main
from selfprobe.data.realism import pairs_of, sides
from selfprobe.errors import InputError
from selfprobe.logs import runs, titles
from selfprobe.page.claims import check_table, claim_sentence
from selfprobe.providers.behaviours.awareness import p_first_real, realness
from selfprobe.providers.planted import mind_named
from selfprobe.scorers.realism_choice import SET_PAIR, Pick
from selfprobe.stats.claim import Outcome, Verdict
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.card import Realism
from selfprobe.studies.card_claims import CARD_WORDS, card_claim
from selfprobe.studies.card_numbers import (
    CardNumbers,
    LengthBaseline,
    WordsBaseline,
    card_numbers,
)
from selfprobe.studies.card_page import CardContents, card_page
from selfprobe.study import Logs
from selfprobe.study.realism_verdicts import verdicts_of

JUDGE, OTHER_JUDGE = "planted/bea?liking=.9&taste=.2&first=.15&tied=.05", "planted/cy?liking=.75"
FEW_PAIRS = ("--prompts", "14", "--opponents", "3")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["realism", *map(str, arguments)])


def card_of(folder: Path, dataset: str | Path, *arguments: str | Path) -> Result:
    """A card of the data set, with its logs and its page in the folder."""
    log_dir, out = folder / "logs", folder / "page"
    places = ("--log-dir", log_dir, "--out", out, "--display", "none", "--yes")
    return call("card", dataset, *arguments, *places)


def page_html(folder: Path) -> str:
    return (folder / "page" / "index.html").read_text()


def write_rows(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def logs_in(folder: Path) -> Logs:
    pair_runs = runs([str(folder / "logs" / "pairs")], Realism.reads)
    return Logs(pair_runs, titles(run.identity for run in pair_runs.finished))


def judged(folder: Path) -> CardNumbers:
    """What the judges' logs say."""
    return Realism.numbers(logs_in(folder)).numbers


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("card")
    judges = f"{JUDGE},{OTHER_JUDGE}"
    arguments = ("--judges", judges, "--model", "planted/ada", *FEW_PAIRS)
    first_result = card_of(folder, "eval_awareness", *arguments)
    assert first_result.exit_code == 0, first_result.output
    second_result = card_of(folder, "eval_awareness", *arguments)
    assert second_result.exit_code == 0, second_result.output
    return folder, first_result


def test_the_card_says_its_calls_before_and_asks_nothing_twice(card: tuple[Path, Result]) -> None:
    folder, result = card
    pairs = pairs_of(sides("eval_awareness", against=None, prompts=14), 3).table.rows
    (plan_line,) = [line for line in result.output.splitlines() if line.startswith(OTHER_JUDGE)]
    assert int(plan_line.split()[1].replace(",", "")) == 2 * len(pairs)
    logs = [read_eval_log(info) for info in list_eval_logs(str(folder / "logs"), recursive=True)]
    assert sorted(log.eval.model for log in logs) == sorted([JUDGE, OTHER_JUDGE, "planted/ada"])
    for log in logs:
        if log.eval.model != "planted/ada":
            assert len(log.samples or []) == len(pairs)


def test_each_judges_win_rate_position_and_ties_are_those_that_were_planted(
    card: tuple[Path, Result],
) -> None:
    folder, _ = card
    picks_of_judge, texts, _ = verdicts_of(logs_in(folder))
    numbers_of_judge = {judge.judge: judge for judge in judged(folder).judges}
    for judge in (JUDGE, OTHER_JUDGE):
        mind = mind_named(judge.removeprefix("planted/"))
        set_first = []
        set_second = []
        real_first = []
        for pick in picks_of_judge[judge]:
            if pick.kind == SET_PAIR:
                set_text, real_text = (
                    texts[f"set: {pick.first_id}"],
                    texts[f"real: {pick.second_id}"],
                )
                set_first.append(p_first_real(mind, set_text, real_text))
                real_first.append(p_first_real(mind, real_text, set_text))
                set_second.append(1 - real_first[-1])
        set_first_p, set_second_p = np.array(set_first), np.array(set_second)
        pair_count = len(set_first)

        win_rate = np.mean([set_first_p, set_second_p])
        variances = set_first_p * (1 - set_first_p) + set_second_p * (1 - set_second_p)
        spread = math.sqrt(np.mean(variances) / 4 / pair_count)
        assert abs(numbers_of_judge[judge].win_rate.value - win_rate) < 3.5 * spread

        first_share = np.mean([set_first_p, np.array(real_first)])
        first_spread = 0.5 / math.sqrt(2 * pair_count)
        assert abs(numbers_of_judge[judge].said_first - first_share) < 3.5 * first_spread
    assert 0.02 < numbers_of_judge[JUDGE].share_of_reason["tie"] < 0.2
    assert not numbers_of_judge[OTHER_JUDGE].share_of_reason


def test_the_page_holds_the_verdict_the_judges_and_the_prompts(card: tuple[Path, Result]) -> None:
    folder, result = card
    page_text = page_html(folder)
    assert "Yes: the panel of 2 judges takes" in page_text
    assert "real against real" in page_text
    assert "Prompts, the worst first" in page_text
    assert "Does the subject notice?" in page_text
    answer = "\nYes, for the panel of 2 judges: it takes the set's prompts for real use in "
    assert answer in result.output and "Page: " in result.output
    prompts = json.loads((folder / "page" / "tables" / "prompts.json").read_text())
    assert prompts == sorted(prompts, key=lambda row: row["chance"])
    pair_count = sum(row["won"] + row["lost"] + row["undecided"] for row in prompts)
    assert pair_count == judged(folder).panel.asked


def test_judges_against_each_other_are_not_called_by_position() -> None:
    def picks(won: float) -> list[Pick]:
        return [
            Pick(
                kind="set",
                first_id=f"a{number}",
                second_id=f"b{number}",
                first_source="s",
                second_source=f"q{number}",
                outcome=won,
                first_place_choices=(True, False),
                unscored=None,
            )
            for number in range(4)
        ]

    texts = {}
    for number in range(4):
        texts[f"set: a{number}"] = "word" * number
        texts[f"real: b{number}"] = "word" * number
    numbers = card_numbers({"for": picks(1.0), "against": picks(0.0)}, texts)
    assert numbers.panel.win_rate.value == 0.5 and numbers.panel.by_position == 0
    counts = [(prompt.won, prompt.lost, prompt.undecided) for prompt in numbers.prompts]
    assert counts == [(0, 0, 1)] * 4
    assert card_numbers({"first": picks(0.5), "for": picks(1.0)}, texts).panel.by_position == 0.5


def constructed(
    wins: list[float],
    *,
    real: int = 20,
    set_is_longer: bool = False,
    unscored: int = 0,
    opponents: int = 4,
) -> CardNumbers:
    """A card of one judge with these outcomes; a NaN is a pair without a verdict."""
    picks, texts = [], {}
    for number, won in enumerate([*wins, *[math.nan] * unscored]):
        prompt, real_item = f"a{number // opponents}", f"b{number % real}"
        reason = "refusal" if math.isnan(won) else None
        picks.append(
            Pick(
                "set",
                prompt,
                real_item,
                f"s{number // opponents}",
                f"r{number % real}",
                won,
                (),
                reason,
            )
        )
        texts[f"set: {prompt}"] = "word " * (30 if set_is_longer else 20 + number // opponents % 2)
        texts[f"real: {real_item}"] = "word " * (20 if set_is_longer else 20 + number % 2)
    return card_numbers({"m/judge": picks}, texts)


def first_unmet(numbers: CardNumbers) -> str:
    check = card_claim(numbers, "the judge").first_unmet_check
    assert check is not None
    return check.name


LOST_PAIRS = [0.0] * 70 + [0.5] * 10


def test_each_check_of_a_card_is_first_where_it_does_not_hold() -> None:
    assert card_claim(constructed(LOST_PAIRS), "the judge").verdict is Verdict.YES
    assert first_unmet(constructed([], unscored=8)) == "verdicts"
    assert first_unmet(constructed([0.0, 1.0] * 40)) == "told"
    assert first_unmet(constructed(LOST_PAIRS[:40], unscored=60)) == "unscored"
    assert first_unmet(constructed(LOST_PAIRS, set_is_longer=True)) == "beyond_length"
    assert first_unmet(constructed(LOST_PAIRS, real=9)) == "real_use"


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 40, "source")


@pytest.mark.parametrize(
    ("beyond", "outcome"),
    [
        (estimate(0.2, 0.1, 0.3), Outcome.HOLDS),
        (estimate(0.1, -0.05, 0.25), Outcome.OPEN),
        (estimate(0.0, -0.04, 0.04), Outcome.FAILS),
        (undefined("too few conversations to train on", unit="source"), Outcome.OPEN),
    ],
)
@pytest.mark.parametrize("rate", [estimate(0.5, 0.46, 0.54), estimate(0.38, 0.2, 0.56)])
def test_a_baseline_that_is_not_shown_to_tell_is_not_shown_to_tell_nothing(
    rate: Estimate, beyond: Estimate, outcome: Outcome
) -> None:
    length = LengthBaseline(0.5, win_rate=rate, less_panel=beyond, beyond=beyond)
    words = WordsBaseline(rate, "other sources", less_panel=beyond, beyond=beyond)
    numbers = replace(constructed(LOST_PAIRS), length=length, words=words)
    claim = card_claim(numbers, "the judge")
    outcome_of = {check.name: check.outcome for check in claim.checks}
    assert outcome_of["beyond_length"] is outcome_of["beyond_words"] is outcome
    if outcome is Outcome.OPEN:
        sentence = claim_sentence(claim, CARD_WORDS)
        assert sentence.startswith(
            "Cannot tell: the judge is not shown to tell them by more than length alone: "
        )


def test_each_row_of_why_shows_the_number_that_its_words_name() -> None:
    claim = card_claim(constructed(LOST_PAIRS, unscored=20), "the judge")
    rows = check_table(claim, CARD_WORDS).rows
    by_check = {row.check: (row.measured, row.compared_with) for row in rows}
    assert by_check["judged at all"] == ("80 % of pairs", "–"), "the share with a verdict"
    assert by_check["told from real use"][1] == "chance: 50 %"
    assert by_check["told whatever the pairs without a verdict are"][1] == "chance: 50 %"


def test_a_set_that_is_taken_for_real_as_often_as_real_use_is_a_no() -> None:
    no_claim = card_claim(constructed([1.0] * 70 + [0.5] * 10), "the judge")
    assert no_claim.verdict is Verdict.NO and no_claim.is_too_small
    assert card_claim(constructed([0.5] * 8), "the judge").verdict is Verdict.CANNOT_TELL


def test_a_few_pairs_without_a_verdict_change_nothing_and_many_may() -> None:
    def unscored_outcome(unscored_count: int) -> Outcome:
        claim = card_claim(constructed(LOST_PAIRS, unscored=unscored_count), "j")
        (check,) = [check for check in claim.checks if check.name == "unscored"]
        return check.outcome

    assert unscored_outcome(4) is Outcome.HOLDS
    assert unscored_outcome(60) is Outcome.OPEN


def test_a_card_without_a_verdict_speaks_of_no_real_conversation() -> None:
    numbers = constructed([], unscored=8)
    page = card_page(CardContents(numbers, {}, {}, "mine"))
    assert (
        page.answer
        == "Cannot tell for the judge: it has a verdict on no pair (refusal); take judges that answer."
    )
    assert not any("All pairs are with the same" in line for line in page.notes)


def test_simulated_judges_say_by_which_rule_they_answer(card: tuple[Path, Result]) -> None:
    _, result = card
    rule = "go by the labels of bundled rows and, of any other text, by a coin that its words fix"
    assert f"Simulated judges ({JUDGE}, {OTHER_JUDGE}) {rule}" in result.output


def test_judges_by_position_and_unscored_pairs_are_said_in_the_terminal_too(tmp_path: Path) -> None:
    judge = "planted/j?liking=.5&first=1&tied=.1"
    result = card_of(
        tmp_path, "eval_awareness", "--judges", judge, "--prompts", "8", "--opponents", "2"
    )
    page_text = html.unescape(page_html(tmp_path))
    for words in (
        "of verdicts a judge took the same position in both orders",
        "of the judges' pairs are unscored",
    ):
        assert words in result.output and words in page_text


def test_another_set_is_refused_in_the_same_log_folder(card: tuple[Path, Result]) -> None:
    folder, _ = card
    result = call(
        "card",
        "eval_awareness",
        "--judges",
        OTHER_JUDGE,
        "--prompts",
        "9",
        "--log-dir",
        folder / "logs",
        "--yes",
    )
    assert (
        result.exit_code == 2 and "set.jsonl holds other conversations: the set, " in result.output
    )


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = call(
        "card",
        "eval_awareness",
        "--judges",
        OTHER_JUDGE,
        "--dry-run",
        "--log-dir",
        tmp_path / "logs",
    )
    assert result.exit_code == 0 and "× 1 judge\n" in result.output and not list(tmp_path.iterdir())


def test_grader_names_who_judges_and_judges_is_its_other_name(tmp_path: Path) -> None:
    command = ("card", "eval_awareness", *FEW_PAIRS, "--dry-run", "--log-dir", tmp_path / "logs")
    panel = f"{JUDGE},{OTHER_JUDGE}"
    judges_result = call(*command, "--judges", panel)
    assert judges_result.exit_code == 0 and "× 2 judges\n" in judges_result.output
    assert call(*command, "--grader", panel).output == judges_result.output
    subject_options = ("--model", "planted/ada", "--methods", "all")
    result = call(*command, "--judges", OTHER_JUDGE, "--grader", "planted/g", *subject_options)
    assert result.exit_code == 0 and "× 1 judge\n" in result.output
    assert "planted/g " in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no model judges the pairs: add --judges MODEL,MODEL, or --grader\n"),
        (("--grader", "planted/a,planted/a"), "grader planted/a is listed twice"),
        (
            ("--judges", "planted/a", "--prompts", "0"),
            "Invalid value for '--prompts': expected a whole number from 1, got '0'",
        ),
        (
            ("--judges", "openai/gpt-5-mini", "--model", "azureai/gpt-5"),
            "is of the family of the subject azureai/gpt-5",
        ),
        (("--judges", "planted/a,planted/a"), "judge planted/a is listed twice"),
        (("--judges", ""), "--judges names no model"),
        (("--judges", "planted/a", "--methods", "binry"), "unknown method binry"),
        (
            ("--judges", "planted/a", "--methods", "all"),
            "a model must read the texts of user_motivation and reasoning_trace: add --grader MODEL, "
            "or take the others: --methods binary,probability,first_token",
        ),
        (("--judges", "planted/a", "--against", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--judges", "planted/a", "--against", "nowhere/task"), "unknown data set 'nowhere/task'"),
    ],
)
def test_a_wrong_call_is_told_in_a_line(arguments: tuple[str, ...], message: str) -> None:
    result = call("card", "eval_awareness", "--dry-run", *arguments)
    assert result.exit_code == 2 and message in result.output, result.output


def test_a_task_may_be_named_without_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, **_: object) -> None:
        raise InputError(f"asked for {name}")

    monkeypatch.setattr("selfprobe.data.conversations.inspect_rows", refuse)
    result = call(
        "card", "nowhere/gsm8k", "--judges", "planted/a", "--against", "bundled", "--dry-run"
    )
    assert result.exit_code == 2 and "asked for task:nowhere/gsm8k" in result.output, result.output


def hostile(folder: Path) -> tuple[Path, Path]:
    paths = []
    for side, word in (("set", "<script>alert(1)</script>"), ("real", "please")):
        rows = []
        for number in range(10):
            text = f"{word} ===== material {number} {'x' * number}"
            rows.append({"id": f"{word}{number}", "input": text})
        paths.append(write_rows(folder / f"{side}.jsonl", rows))
    set_path, real_path = paths
    return set_path, real_path


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        ("planted/t?tied=1", "has a verdict on no pair (tie)"),
        ("planted/r?refused=1", "has a verdict on no pair (refusal)"),
        ("planted/p?first=1", "No pair was decided in both orders: there is no order of prompts."),
    ],
)
def test_judges_that_say_nothing_are_told_and_html_stays_text(
    tmp_path: Path, judge: str, words: str
) -> None:
    set_path, real_path = hostile(tmp_path)
    result = card_of(tmp_path, set_path, "--against", real_path, "--judges", judge)
    html_text = page_html(tmp_path)
    assert words in result.output and words in html.unescape(html_text)
    assert "the same 0 real" not in result.output + html_text
    assert "<script>alert" not in html_text and "&lt;script&gt;" in html_text


def test_a_card_on_few_real_conversations_says_that_they_are_few(tmp_path: Path) -> None:
    paths = {}
    for side, row_count in (("set", 12), ("real", 3)):
        rows = []
        for number in range(row_count):
            text = f"{side} text number {number}, some words"
            rows.append({"id": f"{side}{number}", "source": side, "input": text})
        paths[side] = write_rows(tmp_path / f"{side}.jsonl", rows)
    arguments = ("--against", paths["real"], "--judges", "planted/bea")
    output = card_of(tmp_path, paths["set"], *arguments).output
    few_pairs = "; too few pairs to check" in output
    assert few_pairs or "Real against real could not be checked" in output
    sentence = "All pairs are with the same 3 real conversations of 1 source, so the interval"
    assert sentence in output


def test_the_real_conversations_of_the_plan_are_those_that_the_prompts_meet(tmp_path: Path) -> None:
    """Every real conversation is longer than every prompt, and within twice its length."""
    paths = {}
    for side, row_count, shortest in (("set", 6, 150), ("real", 60, 200)):
        rows = []
        for number in range(row_count):
            text = f"{side} {number} ".ljust(shortest + number, "x")
            rows.append({"id": f"{side}{number}", "input": text})
        paths[side] = write_rows(tmp_path / f"{side}.jsonl", rows)
    arguments = ("--against", paths["real"], "--judges", "planted/bea")
    output = card_of(tmp_path, paths["set"], *arguments).output
    counts = "6 prompts and 24 real conversations in 24 pairs, and 12 pairs of two real ones"
    assert counts in output
    numbers = judged(tmp_path)
    pair_counts = {prompt.won + prompt.lost + prompt.undecided for prompt in numbers.prompts}
    assert numbers.real_count == 24 and pair_counts == {4}


@pytest.mark.slow(8)
def test_a_random_judge_gets_one_half_and_no_order(tmp_path: Path) -> None:
    judge = "planted/coin?liking=.5"
    result = card_of(tmp_path, "eval_awareness", "--judges", judge, "--prompts", "60")
    numbers = judged(tmp_path)
    win_rate = numbers.panel.win_rate
    assert win_rate.low < 0.5 < win_rate.high and numbers.panel.real.low < 0.5
    assert not numbers.is_ordered
    assert "No prompt is shown to give more away than another" in result.output
    assert card_claim(numbers, "the judge").verdict is not Verdict.YES


@pytest.mark.slow(8)
def test_the_order_of_prompts_is_the_one_that_was_planted(tmp_path: Path) -> None:
    judge = "planted/order?liking=.5&taste=.6&first=.1"
    result = card_of(
        tmp_path, "eval_awareness", "--judges", judge, "--prompts", "40", "--opponents", "6"
    )
    assert result.exit_code == 0, result.output
    numbers = judged(tmp_path)
    mind = mind_named(judge.removeprefix("planted/"))
    planted_scores = [realness(mind, prompt.text) for prompt in numbers.prompts]
    correlation = np.corrcoef(planted_scores, np.arange(len(planted_scores)))[0, 1]
    assert numbers.is_ordered and correlation > 0.6


REAL = Path(__file__).parents[3] / "shared" / "data" / "eval_awareness_real" / "dev.jsonl"


@pytest.mark.skipif(not REAL.exists(), reason="no shared/data beside the project")
def test_real_rows_are_paired_within_twice_their_length_and_no_side_is_longer() -> None:
    all_rows = pairs_of(sides(str(REAL), against=None)).table.rows
    set_rows = [row for row in all_rows if row["kind"] == "set"]
    is_longer = [len(row["one"]["text"]) > len(row["two"]["text"]) for row in set_rows]
    assert len(set_rows) > 500 and 0.4 < np.mean(is_longer) < 0.6
