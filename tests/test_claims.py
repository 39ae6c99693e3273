"""Every study answers by one rule, and each sentence says what its numbers license, for every
verdict and open check.
"""

import importlib
import json
import math
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pytest

import selfprobe.studies
from selfprobe.page.claims import (
    ClaimWords,
    answer_over,
    answer_over_groups,
    check_table,
    claim_sentence,
    claims_as_json,
)
from selfprobe.page.columns import Heading, RowTable
from selfprobe.stats.claim import (
    Check,
    Claim,
    Outcome,
    Verdict,
    ordered_claims,
    outcome_above_zero,
    strongest_claims,
)
from selfprobe.stats.estimate import Estimate, undefined

SLOTS = re.compile(r"\{(\w+)\}")
STANDARD_SLOTS = {"effect", "smallest", "competitor", "difference", "bare_difference"}


def words_of_studies() -> Iterator[tuple[str, ClaimWords]]:
    """Every table of words in the studies, with its name."""
    modules = pkgutil.walk_packages(selfprobe.studies.__path__, "selfprobe.studies.")
    for info in modules:
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, ClaimWords) and name.isupper():
                yield f"{info.name.removeprefix('selfprobe.studies.')}.{name}", value


WORDS = dict(sorted(words_of_studies()))


def estimate(value: float, half: float = 0.05) -> Estimate:
    return Estimate(value, value - half, value + half, 40, "item")


LARGE, SMALL, WIDE = estimate(0.4), estimate(0.0), estimate(0.1, 0.5)


def details_of(words: ClaimWords) -> dict[str, str]:
    """Placeholders for a study's own slots."""
    phrases = [words.yes, words.no, words.explained, *words.unmet.values()]
    own = {slot for phrase in phrases for slot in SLOTS.findall(phrase)} - STANDARD_SLOTS
    return {slot: f"({slot})" for slot in own}


def claim_of(words: ClaimWords, outcomes: dict[str, Outcome], effect: Estimate = LARGE) -> Claim:
    """A claim with an outcome for each check of the words; a failing one explains."""
    checks = []
    for name in words.checks:
        outcome = outcomes.get(name, Outcome.HOLDS)
        difference = SMALL if outcome is Outcome.FAILS else LARGE
        if outcome is Outcome.OPEN:
            difference = undefined("nothing was asked")
        checks.append(
            Check(
                name,
                difference,
                outcome,
                "a rival: 37 %",
                0.01,
                explains=True,
                remedy="add two models",
            )
        )
    return Claim("ada", effect, tuple(checks), 0.1, details_of(words))


def cases(words: ClaimWords) -> Iterator[tuple[Claim, Verdict]]:
    """A claim of every verdict, and one for each check that is the first to be open or to explain."""
    yield claim_of(words, {}), Verdict.YES
    yield claim_of(words, dict.fromkeys(words.checks, Outcome.OPEN), SMALL), Verdict.NO
    for name in words.checks:
        yield claim_of(words, {name: Outcome.OPEN}), Verdict.CANNOT_TELL
        yield claim_of(words, {name: Outcome.FAILS}), Verdict.NO


@pytest.mark.parametrize("name", WORDS)
def test_every_verdict_and_every_open_check_of_a_study_is_said(name: str) -> None:
    words = WORDS[name]
    for claim, verdict in cases(words):
        assert claim.verdict is verdict
        sentence = claim_sentence(claim, words)
        assert sentence.startswith(f"{verdict.value}: ada ") and sentence.endswith("."), sentence
        assert "{" not in sentence and "  " not in sentence, sentence
        assert not re.search(r"\bnan\b", sentence.lower()), sentence
        assert len(check_table(claim, words).rows) == len(words.checks)


@pytest.mark.parametrize("name", WORDS)
def test_a_yes_says_the_effect_and_an_explained_one_its_competitor(name: str) -> None:
    words = WORDS[name]
    assert words.write(LARGE) in claim_sentence(claim_of(words, {}), words)
    first = next(iter(words.checks))
    assert "a rival: 37 %" in claim_sentence(claim_of(words, {first: Outcome.FAILS}), words)


@pytest.mark.parametrize("name", WORDS)
def test_no_answer_changes_when_all_words_are_replaced_by_placeholders(name: str) -> None:
    words = WORDS[name]
    placeholders = ClaimWords("x", "x", dict.fromkeys(words.checks, "x"), explained="x")
    claims = [claim for claim, _ in cases(words)]
    answer, _ = answer_over(claims, words)
    replaced, _ = answer_over(claims, placeholders)
    assert answer.partition(" ")[0] == replaced.partition(" ")[0]


def test_the_rule_by_hand() -> None:
    holds = Check("a", LARGE, Outcome.HOLDS)
    is_open = Check("b", WIDE, Outcome.OPEN)
    explains = Check("c", SMALL, Outcome.FAILS, "its length: 0.60", explains=True)
    fails = Check("d", SMALL, Outcome.FAILS)
    assert Claim("m", LARGE, (holds,), 0.1).verdict is Verdict.YES
    assert Claim("m", LARGE, (holds, is_open), 0.1).verdict is Verdict.CANNOT_TELL
    assert Claim("m", LARGE, (is_open, explains), 0.1).verdict is Verdict.NO
    assert Claim("m", LARGE, (fails,), 0.1).verdict is Verdict.CANNOT_TELL
    assert Claim("m", SMALL, (is_open,), 0.1).verdict is Verdict.NO
    assert Claim("m", LARGE, (), 0.1).verdict is Verdict.CANNOT_TELL
    assert Claim("m", undefined("no data"), (is_open,), 0.1).verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize("name", WORDS)
def test_no_sentence_says_the_p_of_its_check_twice(name: str) -> None:
    words = WORDS[name]
    for check_name in words.checks:
        details = details_of(words) | {"p": "p = 0.25"}
        check = Check(check_name, LARGE, Outcome.OPEN, "a rival: 37 %", 0.25)
        sentence = claim_sentence(Claim("ada", LARGE, (check,), 0.1, details), words)
        assert sentence.count("p = 0.25") <= 1, sentence


def test_an_open_check_whose_interval_is_above_0_says_the_p_that_keeps_it_open() -> None:
    words = ClaimWords(yes="knows", no="does not", checks={"own": "above its skill"})
    difference = Estimate(0.81, 0.61, 0.99, 14, "item")
    for p_value, said in ((0.097, "[0.61, 0.99], p = 0.097)"), (math.nan, "[0.61, 0.99])")):
        check = Check("own", difference, Outcome.OPEN, p_value=p_value)
        sentence = claim_sentence(Claim("ada", difference, (check,), 0.1), words)
        assert said in sentence, sentence


def test_a_wide_interval_of_a_control_explains_nothing() -> None:
    wide = Check("c", WIDE, Outcome.FAILS, "its length: 0.60", explains=True)
    assert Claim("m", LARGE, (wide,), 0.1).verdict is Verdict.CANNOT_TELL


def test_the_outcome_of_a_difference() -> None:
    assert outcome_above_zero(LARGE, smallest=0.1) is Outcome.HOLDS
    assert outcome_above_zero(LARGE, smallest=0.1, p_value=0.2) is Outcome.OPEN
    assert outcome_above_zero(SMALL, smallest=0.1) is Outcome.FAILS
    assert outcome_above_zero(WIDE, smallest=0.1) is Outcome.OPEN
    assert outcome_above_zero(undefined("no data"), smallest=0.1) is Outcome.OPEN
    assert outcome_above_zero(estimate(-0.4), smallest=0.1, p_value=0.001) is Outcome.FAILS


def test_the_strongest_competitor_is_the_one_with_the_smallest_difference() -> None:
    near = Check("near", estimate(0.1), Outcome.HOLDS, "bo on it: 52 %")
    far = Check("far", estimate(0.3), Outcome.HOLDS, "guessing: 32 %")
    unknown = Check("unknown", undefined("not asked"), Outcome.HOLDS, "nobody")
    claim = Claim("ada", LARGE, (far, near, unknown), 0.05)
    words = ClaimWords(
        "wins by {effect}; closest is {competitor}", "no", {"near": "x", "far": "y", "unknown": "z"}
    )
    assert claim.strongest_competitor is near
    assert (
        claim_sentence(claim, words)
        == "Yes: ada wins by 0.40 [0.35, 0.45]; closest is bo on it: 52 %."
    )


def test_of_competitors_that_leave_as_much_the_one_that_reaches_most_is_quoted() -> None:
    words = ClaimWords("wins; next is {competitor}", "no", {"length": "x", "observers": "y"})
    length = Check("length", LARGE, Outcome.HOLDS, "length: 0.52", competitor_score=0.52)
    observers = Check("observers", LARGE, Outcome.HOLDS, "bo: 0.98", competitor_score=0.98)
    claim = Claim("ada", LARGE, (length, observers), 0.05)
    assert claim_sentence(claim, words) == "Yes: ada wins; next is bo: 0.98."


def test_an_open_check_is_said_with_its_reason_and_its_remedy() -> None:
    reason = undefined("3 sources; 6 are the least")
    check = Check("change", reason, Outcome.OPEN, remedy="add sources")
    words = ClaimWords("notices", "does not", {"change": "changing"})
    said = claim_sentence(Claim("ada", LARGE, (check,), 0.1), words)
    assert (
        said
        == "Cannot tell: ada is not shown to be changing (3 sources; 6 are the least); add sources."
    )


def test_claims_are_listed_yes_first_and_no_last() -> None:
    words = ClaimWords("is", "is not", {"a": "x"})
    claims = [claim for claim, _ in cases(words)]
    verdicts = [claim.verdict for claim in ordered_claims(claims)]
    assert verdicts == [Verdict.YES, Verdict.CANNOT_TELL, Verdict.NO, Verdict.NO]
    answer, lines = answer_over(claims, words)
    assert answer == "Yes, for 1 of 4 models. ada is." and len(lines) == 3


def test_claims_for_programs_have_verdicts_and_no_number_where_there_is_none() -> None:
    words = ClaimWords("is", "is not", {"a": "x", "b": "y"})
    claims = [claim for claim, _ in cases(words)]
    entries = json.loads(json.dumps(claims_as_json(claims, words), allow_nan=False))
    assert [entry["verdict"] for entry in entries] == [claim.verdict.value for claim in claims]
    assert entries[2]["checks"][0]["difference"]["value"] is None


TASK_WORDS = ClaimWords(
    "scores {effect}; {competitor}", "scores {effect}", {"above_rival": "above its rival"}
)


def task_claim(
    subject: str, difference: float, outcome: Outcome, effect: Estimate = LARGE
) -> Claim:
    check = Check(
        "above_rival", estimate(difference), outcome, "bo on it: 37 %", remedy="take more items"
    )
    return Claim(subject, effect, (check,), 0.1)


def test_of_several_groups_subjects_and_groups_are_counted_and_the_strongest_claim_is_quoted() -> (
    None
):
    groups = {
        "near": [task_claim("ada", 0.1, Outcome.HOLDS), task_claim("bo", 0.0, Outcome.OPEN)],
        "far": [task_claim("bo", 0.0, Outcome.OPEN), task_claim("ada", 0.3, Outcome.HOLDS)],
        "open": [task_claim("cy", 0.0, Outcome.OPEN)],
    }
    answer, lines = answer_over_groups(groups, TASK_WORDS)
    head = "Yes, for 1 of 3 models in 2 of 3 tasks. In far ada scores "
    assert answer.startswith(head) and answer.endswith("; bo on it: 37 %.")
    assert [line.partition(" scores")[0].partition(" is")[0] for line in lines] == [
        "near: Yes: ada",
        "open: Cannot tell: cy",
    ]
    assert answer_over_groups({"near": groups["near"]}, TASK_WORDS) == answer_over(
        groups["near"], TASK_WORDS
    )


def test_an_effect_without_an_interval_and_its_p_stand_in_one_bracket() -> None:
    words = ClaimWords(
        yes="notices, by {effect} ({p})", no="does not", checks={"change": "changing"}
    )
    effect = undefined("every resample gives the same value", value=0.4)
    check = Check("change", effect, Outcome.HOLDS, p_value=0.002)
    claim = Claim("ada", effect, (check,), 0.1, {"p": "p = 0.002"})
    assert claim_sentence(claim, words) == (
        "Yes: ada notices, by 0.40 (every resample gives the same value; p = 0.002)."
    )


def test_the_p_of_a_stricter_test_stands_in_place_of_the_interval_that_it_contradicts() -> None:
    words = ClaimWords(
        yes="is",
        no="is not",
        checks={"skill": "above skill"},
        stricter_tests={"skill": "p = {p} there"},
    )
    difference = Estimate(0.5, 0.4, 0.6, 40, "item")
    check = Check("skill", difference, Outcome.OPEN, p_value=0.5)
    claim = Claim("ada", difference, (check,), 0.1)
    assert claim_sentence(claim, words) == (
        "Cannot tell: ada is not shown to be above skill (p = 0.50 there)."
    )


def test_groups_in_which_nothing_is_decided_say_what_would_decide_the_first() -> None:
    groups = {name: [task_claim("ada", 0.0, Outcome.OPEN)] for name in ("one", "two")}
    answer, lines = answer_over_groups(groups, TASK_WORDS)
    assert answer.startswith(
        "Cannot tell for 1 of 1 models in 2 of 2 tasks: in one ada is not shown to be above its"
    )
    assert "take more items" not in answer and lines[0] == "What would decide it: take more items."


def test_groups_without_an_effect_are_a_no_for_all() -> None:
    groups = {name: [task_claim("ada", 0.0, Outcome.FAILS, SMALL)] for name in ("one", "two")}
    answer, _ = answer_over_groups(groups, TASK_WORDS)
    assert answer.startswith("No, not for any of 1 models in 2 tasks: in one ada scores ")


def test_claims_of_one_verdict_are_ordered_by_their_margin_and_those_without_one_stand_last() -> (
    None
):
    margins = (0.1, 0.3, math.nan)
    claims = [
        task_claim(str(margin), margin, Outcome.HOLDS, estimate(margin)) for margin in margins
    ]
    assert [claim.subject for claim in strongest_claims(claims)] == ["0.3", "0.1", "nan"]


@dataclass(frozen=True)
class PartlyEmpty:
    """Rows of which some columns are empty."""

    name: Annotated[str, Heading("name", "Its name.")]
    place: Annotated[int | None, Heading("place", "Its place.")]
    reason: Annotated[str, Heading("reason", "Why it has none.")]
    value: Annotated[float, Heading("value", "Its value.")]


def test_a_table_can_leave_out_columns_that_no_row_fills_and_its_file_has_all() -> None:
    rows = [PartlyEmpty("a", 1, "", math.nan), PartlyEmpty("b", None, "", math.nan)]
    table = RowTable(PartlyEmpty, rows, hides_empty=True)
    assert [column.title for column in table.columns] == ["name", "place"]
    assert [column.title for column in RowTable(PartlyEmpty, rows).columns] == [
        "name",
        "place",
        "reason",
        "value",
    ]
    assert list(table.frame) == ["name", "place", "reason", "value"]
    assert table.frame.to_csv(index=False).splitlines()[1:] == ["a,1,,", "b,,,"], (
        "a place is a whole number"
    )
