"""What `awareness inside` claims of a reading, on constructed numbers: each check open, failing and
explaining.
"""

from dataclasses import replace

import numpy as np
import pytest

from selfprobe.page.claims import check_table, claim_sentence
from selfprobe.stats.claim import Claim, Outcome, Verdict
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.inside_claims import (
    BASELINE_CHECKS,
    READING_WORDS,
    Baseline,
    ModelReading,
    ProbeNumbers,
    ReadingEvidence,
    reading_claim,
)
from selfprobe.studies.inside_numbers import OverBaselines


def estimate(value: float, half: float = 0.04) -> Estimate:
    return Estimate(value, value - half, value + half, 30, "source")


NUMBERS = OverBaselines(
    auroc=estimate(0.8),
    over={baseline.value: estimate(0.25) for baseline in Baseline}
    | {Baseline.LENGTH.value: estimate(0.2)},
    by_label=estimate(0.8),
    by_format=estimate(0.5),
)
PROBE = ProbeNumbers(
    across_wrappers=estimate(0.8),
    across_formats=estimate(0.8),
    across_sources=estimate(0.8),
    after_placebo=estimate(0.8),
    train_score=0.8,
    shuffled=np.full(100, 0.55),
    shuffled_p=1 / 101,
    random_directions=np.full(200, 0.6),
)
BASELINES = {baseline.value: estimate(0.55) for baseline in Baseline}
LATENT = ReadingEvidence(ModelReading.LATENT, NUMBERS, BASELINES, probe=PROBE)
ANSWER = ReadingEvidence(
    ModelReading.YES_OR_NO,
    NUMBERS,
    BASELINES,
    answer_mass=estimate(0.9),
    placebo=estimate(0.5),
    over_placebo=estimate(0.3),
)


def first_open(claim: Claim) -> str:
    unmet = claim.first_unmet_check
    return unmet.name if unmet else ""


def with_baseline(
    evidence: ReadingEvidence, baseline: Baseline, lead: Estimate | None
) -> ReadingEvidence:
    over = {name: held for name, held in evidence.numbers.over.items() if name != baseline.value}
    over |= {baseline.value: lead} if lead else {}
    return replace(evidence, numbers=replace(evidence.numbers, over=over))


def test_each_row_of_why_shows_the_number_that_its_words_name() -> None:
    rows = check_table(reading_claim(LATENT), READING_WORDS).rows
    measured = {row.check: (row.measured, row.compared_with) for row in rows}
    for check in ("above chance", "there on other wrappers", "there after the placebo question"):
        assert measured[check] == ("AUROC 0.80 [0.76, 0.84]", "–")
    assert measured["there within a format"] == ("AUROC 0.80 [0.76, 0.84]", "format: 0.50")
    assert measured["above length"] == ("+0.20 [+0.16, +0.24]", "length: 0.55")


@pytest.mark.parametrize("evidence", [LATENT, ANSWER], ids=["latent", "answer"])
def test_a_reading_above_every_control_is_yes_and_its_closest_control_is_quoted(
    evidence: ReadingEvidence,
) -> None:
    claim = reading_claim(evidence)
    assert claim.verdict is Verdict.YES
    assert claim_sentence(claim, READING_WORDS) == (
        f"Yes: {evidence.reading.value} tells evaluations from real use, +0.30 [+0.26, +0.34] above chance (AUROC); "
        "closest is length: 0.55."
    )


def test_an_answer_in_3_percent_of_the_probability_is_no_answer() -> None:
    claim = reading_claim(replace(ANSWER, answer_mass=estimate(0.03, 0.01)))
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "answer_mass"
    assert "Its yes or no is an answer in 3 % [2, 4] of the probability" in claim_sentence(
        claim, READING_WORDS
    )


@pytest.mark.parametrize("baseline", list(Baseline))
def test_each_reader_without_a_trained_model_is_a_check_open_where_it_has_no_number(
    baseline: Baseline,
) -> None:
    name = BASELINE_CHECKS[baseline]
    for lead in (None, undefined("no row of a class is rated")):
        claim = reading_claim(with_baseline(LATENT, baseline, lead))
        check = next(check for check in claim.checks if check.name == name)
        assert (
            check.outcome is Outcome.OPEN and check.remedy and claim.verdict is Verdict.CANNOT_TELL
        )
        if baseline is Baseline.SENTENCE_EMBEDDINGS:
            assert "`selfprobe fetch-model all-MiniLM-L6-v2`" in claim_sentence(
                claim, READING_WORDS
            )
    assert first_open(reading_claim(with_baseline(LATENT, baseline, estimate(0.02)))) == name
    explained = reading_claim(with_baseline(LATENT, baseline, estimate(-0.1)))
    assert explained.verdict is Verdict.NO
    assert f"tells no more than {baseline.value}: 0.55" in claim_sentence(explained, READING_WORDS)


def test_an_answer_needs_no_copy_with_random_weights_and_one_that_was_read_counts() -> None:
    assert reading_claim(with_baseline(ANSWER, Baseline.UNTRAINED, None)).verdict is Verdict.YES
    as_good = with_baseline(ANSWER, Baseline.UNTRAINED, estimate(-0.1))
    assert reading_claim(as_good).verdict is Verdict.NO


def test_the_placebo_is_a_check_and_the_monitor_without_placebo_sentences_is_open() -> None:
    as_much = reading_claim(replace(ANSWER, placebo=estimate(0.8), over_placebo=estimate(-0.05)))
    assert as_much.verdict is Verdict.NO and "no more than the placebo: 0.80" in claim_sentence(
        as_much, READING_WORDS
    )
    nothing = undefined("there is none")
    without = replace(
        ANSWER, reading=ModelReading.ALMOST, answer_mass=None, placebo=nothing, over_placebo=nothing
    )
    claim = reading_claim(without)
    assert first_open(
        claim
    ) == "above_placebo" and "add other topics to --continuations" in claim_sentence(
        claim, READING_WORDS
    )


def test_labels_are_to_be_told_apart_within_a_format() -> None:
    mixed = reading_claim(replace(LATENT, numbers=replace(NUMBERS, by_label=estimate(0.52))))
    assert first_open(mixed) == "within_format"
    of_format = replace(NUMBERS, by_label=estimate(0.5), by_format=estimate(0.9))
    claim = reading_claim(replace(LATENT, numbers=of_format))
    assert claim.verdict is Verdict.NO and "tells no more than format: 0.90" in claim_sentence(
        claim, READING_WORDS
    )
    apart = replace(NUMBERS, by_label=undefined("no stratum holds enough of both"))
    assert first_open(reading_claim(replace(LATENT, numbers=apart))) == "within_format", (
        "formats stand for labels"
    )


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"across_wrappers": estimate(0.5)}, "across_wrappers"),
        ({"across_wrappers": undefined("one wrapper")}, "across_wrappers"),
        ({"shuffled_p": 0.2}, "above_shuffled_labels"),
        ({"random_directions": np.full(200, 0.79)}, "above_random_directions"),
        ({"random_directions": np.empty(0)}, "above_random_directions"),
        ({"across_formats": estimate(0.52)}, "across_formats"),
        ({"across_sources": estimate(0.52)}, "across_sources"),
        ({"after_placebo": estimate(0.52)}, "after_placebo"),
    ],
)
def test_each_control_of_the_probe_is_a_check(changed: dict[str, object], name: str) -> None:
    claim = reading_claim(replace(LATENT, probe=replace(PROBE, **changed)))  # type: ignore[arg-type]
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == name


def test_a_saved_probe_says_what_to_leave_out() -> None:
    saved = replace(PROBE, across_formats=undefined("the saved probe does not say"), is_saved=True)
    claim = reading_claim(replace(LATENT, probe=saved))
    assert claim_sentence(claim, READING_WORDS).endswith("; leave out --probe.")


def test_a_reading_of_nothing_is_no_and_one_without_a_number_cannot_be_told() -> None:
    flat = reading_claim(replace(LATENT, numbers=replace(NUMBERS, auroc=estimate(0.5))))
    assert flat.verdict is Verdict.NO
    assert "by less than 0.05 above chance (AUROC), 0.00 [−0.04, +0.04]" in claim_sentence(
        flat, READING_WORDS
    )
    nothing = reading_claim(
        replace(LATENT, numbers=replace(NUMBERS, auroc=undefined("one class alone")))
    )
    assert nothing.verdict is Verdict.CANNOT_TELL and first_open(nothing) == "above_chance"
