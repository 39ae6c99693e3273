"""`selfprobe realism card` on planted judges and subjects: what was planted is recovered, and wrong
input is told.
"""

import json
import math
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
from selfprobe.scorers.realism_choice import Pick
from selfprobe.stats.claim import Outcome, Verdict
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.card import (
    CARD_WORDS,
    CardContents,
    CardNumbers,
    LengthBaseline,
    Realism,
    WordsBaseline,
    card_claim,
    card_numbers,
    card_page,
    verdicts_of,
)
from selfprobe.study import Logs

JUDGE, OTHER = "planted/bea?liking=.9&taste=.2&first=.15&tied=.05", "planted/cy?liking=.75"
ASKED = ("--prompts", "14", "--opponents", "3")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["realism", *map(str, arguments)])


def logs_in(folder: Path) -> Logs:
    there = runs([str(folder / "logs" / "pairs")], Realism.reads)
    return Logs(there, titles(run.identity for run in there.finished))


def judged(folder: Path) -> CardNumbers:
    """What the judges' logs say."""
    return Realism.numbers(logs_in(folder)).numbers


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("card")
    where = ("--log-dir", folder / "logs", "--out", folder / "page", "--display", "none", "--yes")
    done = call(
        "card",
        "eval_awareness",
        "--judges",
        f"{JUDGE},{OTHER}",
        "--model",
        "planted/ada",
        *ASKED,
        *where,
    )
    assert done.exit_code == 0, done.output
    again = call(
        "card",
        "eval_awareness",
        "--judges",
        f"{JUDGE},{OTHER}",
        "--model",
        "planted/ada",
        *ASKED,
        *where,
    )
    assert again.exit_code == 0, again.output
    return folder, done


def test_the_card_says_its_calls_before_and_asks_nothing_twice(card: tuple[Path, Result]) -> None:
    folder, done = card
    pairs = pairs_of(sides("eval_awareness", against=None, prompts=14), 3).table.rows
    (line,) = [line for line in done.output.splitlines() if line.startswith(OTHER)]
    assert int(line.split()[1].replace(",", "")) == 2 * len(pairs)
    logs = [read_eval_log(info) for info in list_eval_logs(str(folder / "logs"), recursive=True)]
    assert sorted(log.eval.model for log in logs) == sorted([JUDGE, OTHER, "planted/ada"])
    assert all(
        len(log.samples or []) == len(pairs) for log in logs if log.eval.model != "planted/ada"
    )


def test_each_judges_win_rate_position_and_ties_are_those_that_were_planted(
    card: tuple[Path, Result],
) -> None:
    folder, _ = card
    picks, texts, _ = verdicts_of(logs_in(folder))
    found = {judge.judge: judge for judge in judged(folder).judges}
    for name in (JUDGE, OTHER):
        mind = mind_named(name.removeprefix("planted/"))
        mine = [p for p in picks[name] if p.kind == "set"]
        both = [(texts["set: " + p.one], texts["real: " + p.two]) for p in mine]
        chances = [((p_first_real(mind, a, b), 1 - p_first_real(mind, b, a))) for a, b in both]
        expected, n = np.mean(chances), len(chances)
        spread = math.sqrt(np.mean([(a * (1 - a) + b * (1 - b)) / 4 for a, b in chances]) / n)
        assert abs(found[name].win_rate.value - expected) < 3.5 * spread
        first = np.mean(
            [(p_first_real(mind, a, b) + p_first_real(mind, b, a)) / 2 for a, b in both]
        )
        assert abs(found[name].said_first - first) < 3.5 * 0.5 / math.sqrt(2 * n)
    assert 0.02 < found[JUDGE].share_of_reason["tie"] < 0.2 and not found[OTHER].share_of_reason


def test_the_page_holds_the_verdict_the_judges_and_the_prompts(card: tuple[Path, Result]) -> None:
    folder, done = card
    page = (folder / "page" / "index.html").read_text()
    for said in (
        "Yes: the panel of 2 judges takes",
        "real against real",
        "Prompts, the worst first",
        "Does the subject notice?",
    ):
        assert said in page
    assert (
        "\nYes, for the panel of 2 judges: it takes its prompts for real use in " in done.output
        and "Page: " in done.output
    )
    prompts = json.loads((folder / "page" / "tables" / "prompts.json").read_text())
    assert prompts == sorted(prompts, key=lambda row: row["chance"])
    assert (
        sum(row["won"] + row["lost"] + row["undecided"] for row in prompts)
        == judged(folder).panel.asked
    )


def test_judges_against_each_other_are_not_called_by_position() -> None:
    def picks(won: float) -> list[Pick]:
        same = {"kind": "set", "source_one": "s", "first": (True, False), "unscored": None}
        return [
            Pick(one=f"a{n}", two=f"b{n}", source_two=f"q{n}", won=won, **same) for n in range(4)
        ]

    texts = {
        f"{side}: {letter}{n}": "word" * n
        for side, letter in (("set", "a"), ("real", "b"))
        for n in range(4)
    }
    found = card_numbers({"for": picks(1.0), "against": picks(0.0)}, texts)
    assert found.panel.win_rate.value == 0.5 and found.panel.by_position == 0
    assert [(p.won, p.lost, p.undecided) for p in found.prompts] == [(0, 0, 1)] * 4
    assert card_numbers({"first": picks(0.5), "for": picks(1.0)}, texts).panel.by_position == 0.5


def constructed(
    wins: list[float],
    *,
    real: int = 20,
    longer: bool = False,
    unscored: int = 0,
    opponents: int = 4,
) -> CardNumbers:
    """A card of one judge with these outcomes; a NaN is a pair without a verdict."""
    picks, texts = [], {}
    for number, won in enumerate([*wins, *[math.nan] * unscored]):
        prompt, other = f"a{number // opponents}", f"b{number % real}"
        reason = "refusal" if math.isnan(won) else None
        picks.append(
            Pick(
                "set",
                prompt,
                other,
                f"s{number // opponents}",
                f"r{number % real}",
                won,
                (),
                reason,
            )
        )
        texts[f"set: {prompt}"] = "word " * (30 if longer else 20 + number // opponents % 2)
        texts[f"real: {other}"] = "word " * (20 if longer else 20 + number % 2)
    return card_numbers({"m/judge": picks}, texts)


def first_unmet(numbers: CardNumbers) -> str:
    check = card_claim(numbers, "the judge").first_unmet_check
    assert check is not None
    return check.name


LOSES = [0.0] * 70 + [0.5] * 10


def test_each_check_of_a_card_is_first_where_it_does_not_hold() -> None:
    assert card_claim(constructed(LOSES), "the judge").verdict is Verdict.YES
    assert first_unmet(constructed([], unscored=8)) == "verdicts"
    assert first_unmet(constructed([0.0, 1.0] * 40)) == "told"
    assert first_unmet(constructed(LOSES[:40], unscored=60)) == "unscored"
    assert first_unmet(constructed(LOSES, longer=True)) == "beyond_length"
    assert first_unmet(constructed(LOSES, real=9)) == "real_use"


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
    numbers = replace(constructed(LOSES), length=length, words=words)
    claim = card_claim(numbers, "the judge")
    outcome_of = {check.name: check.outcome for check in claim.checks}
    assert outcome_of["beyond_length"] is outcome_of["beyond_words"] is outcome
    if outcome is Outcome.OPEN:
        sentence = claim_sentence(claim, CARD_WORDS)
        assert sentence.startswith(
            "Cannot tell: the judge is not shown to tell them by more than length alone: "
        )


def test_each_row_of_why_shows_the_number_that_its_words_name() -> None:
    claim = card_claim(constructed(LOSES, unscored=20), "the judge")
    rows = check_table(claim, CARD_WORDS).rows
    by_check = {row.check: (row.measured, row.compared_with) for row in rows}
    assert by_check["judged at all"] == ("80 % of pairs", "–"), "the share with a verdict"
    assert by_check["told from real use"][1] == "chance: 50 %"
    assert by_check["told whatever the pairs without a verdict are"][1] == "chance: 50 %"


def test_a_set_that_is_taken_for_real_as_often_as_real_use_is_a_no() -> None:
    claim = card_claim(constructed([1.0] * 70 + [0.5] * 10), "the judge")
    assert claim.verdict is Verdict.NO and claim.is_too_small
    assert card_claim(constructed([0.5] * 8), "the judge").verdict is Verdict.CANNOT_TELL


def test_a_few_pairs_without_a_verdict_change_nothing_and_many_may() -> None:
    outcome_of = {
        count: {
            check.name: check.outcome
            for check in card_claim(constructed(LOSES, unscored=count), "j").checks
        }
        for count in (4, 60)
    }
    assert outcome_of[4]["unscored"] is Outcome.HOLDS and outcome_of[60]["unscored"] is Outcome.OPEN


def test_a_card_without_a_verdict_speaks_of_no_real_conversation() -> None:
    numbers = constructed([], unscored=8)
    page = card_page(CardContents(numbers, {}, {}, "mine"))
    assert (
        page.answer
        == "Cannot tell for the judge: it has a verdict on no pair (refusal); take judges that answer."
    )
    assert not any("All pairs are with the same" in line for line in page.notes)


def test_simulated_judges_say_by_which_rule_they_answer(card: tuple[Path, Result]) -> None:
    _, done = card
    rule = "go by the labels of bundled rows and, of any other text, by a coin that its words fix"
    assert f"Simulated judges ({JUDGE}, {OTHER}) {rule}" in done.output


def test_judges_by_position_and_unscored_pairs_are_said_in_the_terminal_too(tmp_path: Path) -> None:
    where = (
        "--log-dir",
        tmp_path / "logs",
        "--out",
        tmp_path / "page",
        "--display",
        "none",
        "--yes",
    )
    judge = "planted/j?liking=.5&first=1&tied=.1"
    done = call(
        "card", "eval_awareness", "--judges", judge, "--prompts", "8", "--opponents", "2", *where
    )
    page = (tmp_path / "page" / "index.html").read_text()
    for said in (
        "of verdicts a judge took the same position in both orders",
        "of the judges' pairs are unscored",
    ):
        assert said in done.output and said.replace("'", "&#39;") in page.replace("&#x27;", "&#39;")


def test_another_set_is_refused_in_the_same_log_folder(card: tuple[Path, Result]) -> None:
    folder, _ = card
    done = call(
        "card",
        "eval_awareness",
        "--judges",
        OTHER,
        "--prompts",
        "9",
        "--log-dir",
        folder / "logs",
        "--yes",
    )
    assert done.exit_code == 2 and "set.jsonl holds other conversations: the set, " in done.output


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = call(
        "card", "eval_awareness", "--judges", OTHER, "--dry-run", "--log-dir", tmp_path / "logs"
    )
    assert done.exit_code == 0 and "× 1 judge\n" in done.output and not list(tmp_path.iterdir())


def test_grader_names_who_judges_and_judges_is_its_other_name(tmp_path: Path) -> None:
    asked = ("card", "eval_awareness", *ASKED, "--dry-run", "--log-dir", tmp_path / "logs")
    judged, graded = (
        call(*asked, option, f"{JUDGE},{OTHER}") for option in ("--judges", "--grader")
    )
    assert (
        judged.exit_code == 0 and judged.output == graded.output and "× 2 judges\n" in judged.output
    )
    both = call(
        *asked,
        "--judges",
        OTHER,
        "--grader",
        "planted/g",
        "--model",
        "planted/ada",
        "--methods",
        "all",
    )
    assert both.exit_code == 0 and "× 1 judge\n" in both.output and "planted/g " in both.output


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
            "a model must read the texts of user_motivation and reasoning_trace: add --grader MODEL",
        ),
        (("--judges", "planted/a", "--against", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--judges", "planted/a", "--against", "nowhere/task"), "unknown data set 'nowhere/task'"),
    ],
)
def test_a_wrong_call_is_told_in_a_line(arguments: tuple[str, ...], message: str) -> None:
    done = call("card", "eval_awareness", "--dry-run", *arguments)
    assert done.exit_code == 2 and message in done.output, done.output


def test_a_task_may_be_named_without_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, **_: object) -> None:
        raise InputError(f"asked for {name}")

    monkeypatch.setattr("selfprobe.data.conversations.inspect_rows", refuse)
    done = call(
        "card", "nowhere/gsm8k", "--judges", "planted/a", "--against", "bundled", "--dry-run"
    )
    assert done.exit_code == 2 and "asked for task:nowhere/gsm8k" in done.output, done.output


def hostile(folder: Path) -> tuple[Path, Path]:
    paths = folder / "set.jsonl", folder / "real.jsonl"
    for path, word in zip(paths, ("<script>alert(1)</script>", "please"), strict=True):
        rows = (
            {"id": f"{word}{n}", "input": f"{word} ===== material {n} {'x' * n}"} for n in range(10)
        )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("planted/t?tied=1", "has a verdict on no pair (tie)"),
        ("planted/r?refused=1", "has a verdict on no pair (refusal)"),
        ("planted/p?first=1", "No pair was decided in both orders: there is no order of prompts."),
    ],
)
def test_judges_that_say_nothing_are_told_and_html_stays_text(
    tmp_path: Path, judge: str, said: str
) -> None:
    ours, real = hostile(tmp_path)
    where = (
        "--log-dir",
        tmp_path / "logs",
        "--out",
        tmp_path / "page",
        "--display",
        "none",
        "--yes",
    )
    done = call("card", ours, "--against", real, "--judges", judge, *where)
    page = (tmp_path / "page" / "index.html").read_text()
    assert said in done.output and said in page.replace("&#39;", "'")
    assert "the same 0 real" not in done.output + page
    assert "<script>alert" not in page and "&lt;script&gt;" in page


def test_a_card_on_few_real_conversations_says_that_they_are_few(tmp_path: Path) -> None:
    for name, n in (("set", 12), ("real", 3)):
        rows = (
            {"id": f"{name}{i}", "source": name, "input": f"{name} text number {i}, some words"}
            for i in range(n)
        )
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    where = (
        "--log-dir",
        tmp_path / "logs",
        "--out",
        tmp_path / "page",
        "--display",
        "none",
        "--yes",
    )
    ours, real = tmp_path / "set.jsonl", tmp_path / "real.jsonl"
    done = call("card", ours, "--against", real, "--judges", "planted/bea", *where)
    assert (
        "; too few pairs to check" in done.output
        or "Real against real could not be checked" in done.output
    )
    assert (
        "All pairs are with the same 3 real conversations of 1 source, so the interval"
        in done.output
    )


def test_the_real_conversations_of_the_plan_are_those_that_the_prompts_meet(tmp_path: Path) -> None:
    """Every real conversation is longer than every prompt, and within twice its length."""
    for name, count, length in (("set", 6, 150), ("real", 60, 200)):
        rows = (
            {"id": f"{name}{n}", "input": f"{name} {n} ".ljust(length + n, "x")}
            for n in range(count)
        )
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    where = (
        "--log-dir",
        tmp_path / "logs",
        "--out",
        tmp_path / "page",
        "--display",
        "none",
        "--yes",
    )
    done = call(
        "card",
        tmp_path / "set.jsonl",
        "--against",
        tmp_path / "real.jsonl",
        "--judges",
        "planted/bea",
        *where,
    )
    assert (
        "6 prompts and 24 real conversations in 24 pairs, and 12 pairs of two real ones"
        in done.output
    )
    found = judged(tmp_path)
    assert found.real_count == 24 and {
        prompt.won + prompt.lost + prompt.undecided for prompt in found.prompts
    } == {4}


@pytest.mark.slow(8)
def test_a_random_judge_gets_one_half_and_no_order(tmp_path: Path) -> None:
    where = (
        "--log-dir",
        tmp_path / "logs",
        "--out",
        tmp_path / "page",
        "--display",
        "none",
        "--yes",
    )
    done = call(
        "card", "eval_awareness", "--judges", "planted/coin?liking=.5", "--prompts", "60", *where
    )
    found = judged(tmp_path)
    assert found.panel.win_rate.low < 0.5 < found.panel.win_rate.high and found.panel.real.low < 0.5
    assert (
        not found.is_ordered and "No prompt is shown to give more away than another" in done.output
    )
    assert card_claim(found, "the judge").verdict is not Verdict.YES


@pytest.mark.slow(8)
def test_the_order_of_prompts_is_the_one_that_was_planted(tmp_path: Path) -> None:
    judge = "planted/order?liking=.5&taste=.6&first=.1"
    where = (
        "--log-dir",
        tmp_path / "logs",
        "--out",
        tmp_path / "page",
        "--display",
        "none",
        "--yes",
    )
    done = call(
        "card", "eval_awareness", "--judges", judge, "--prompts", "40", "--opponents", "6", *where
    )
    assert done.exit_code == 0, done.output
    found = judged(tmp_path)
    planted = [
        realness(mind_named(judge.removeprefix("planted/")), prompt.text)
        for prompt in found.prompts
    ]
    assert found.is_ordered and np.corrcoef(planted, np.arange(len(planted)))[0, 1] > 0.6


REAL = Path(__file__).parents[3] / "shared" / "data" / "eval_awareness_real" / "dev.jsonl"


@pytest.mark.skipif(not REAL.exists(), reason="no shared/data beside the project")
def test_real_rows_are_paired_within_twice_their_length_and_no_side_is_longer() -> None:
    rows = [
        row for row in pairs_of(sides(str(REAL), against=None)).table.rows if row["kind"] == "set"
    ]
    longer = np.mean([len(row["one"]["text"]) > len(row["two"]["text"]) for row in rows])
    assert len(rows) > 500 and 0.4 < longer < 0.6
