"""What a run claims of its probes, on constructed numbers: each check open, failing and explaining."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from selfprobe.page.claims import check_table, claim_sentence
from selfprobe.stats.claim import Claim, Outcome, Verdict
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.probe_claims import (
    ABOVE_SHUFFLED,
    CONTROLS,
    JUDGE_WORDS,
    PROBE_WORDS,
    JudgeEvidence,
    Lead,
    ProbeEvidence,
    ShuffledLabels,
    judge_claim,
    mean_evidence,
    probe_claim,
)


def estimate(value: float, half: float = 0.04) -> Estimate:
    return Estimate(value, value - half, value + half, 60, "question")


SHUFFLES = ShuffledLabels(0.56, 0.61, 0.18, 0.005, 200)
EVIDENCE = ProbeEvidence(
    subject="llmbar",
    kind="supervised",
    metric="AUROC",
    score=estimate(0.74),
    leads={control.check: Lead(0.6, estimate(0.14)) for control in CONTROLS}
    | {"above_words": Lead(0.64, estimate(0.1))},
    answer_mass=estimate(0.9),
    shuffled=SHUFFLES,
)


def first_open(claim: Claim) -> str:
    unmet = claim.first_unmet_check
    return unmet.name if unmet else ""


def with_lead(name: str, lead: Estimate | None) -> ProbeEvidence:
    leads = {check: held for check, held in EVIDENCE.leads.items() if check != name}
    return replace(EVIDENCE, leads=leads | ({name: Lead(0.7, lead)} if lead else {}))


def test_the_score_of_a_probe_is_no_difference_and_has_no_sign() -> None:
    rows = check_table(probe_claim(EVIDENCE), PROBE_WORDS).rows
    measured = {row.check: row.measured for row in rows}
    assert measured["tested on labels and texts that it never saw"] == "0.74 [0.70, 0.78]"
    assert measured["above asking"] == "+0.14 [+0.10, +0.18]"


def test_a_probe_above_asking_and_every_control_is_yes_and_its_closest_control_is_quoted() -> None:
    claim = probe_claim(EVIDENCE)
    assert claim.verdict is Verdict.YES
    assert claim_sentence(claim, PROBE_WORDS) == (
        "Yes: llmbar has a probe above asking by +0.14 [+0.10, +0.18] (AUROC); closest is words: 0.64."
    )


def test_a_model_that_hardly_answers_with_the_asked_answers_is_not_asked() -> None:
    claim = probe_claim(replace(EVIDENCE, answer_mass=estimate(0.03, 0.01)))
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "answer_mass"
    assert "is answered with 1 or 2 in 3 % [2, 4] of the probability" in claim_sentence(
        claim, PROBE_WORDS
    )
    around_a_half = probe_claim(replace(EVIDENCE, answer_mass=estimate(0.52)))
    assert first_open(around_a_half) == "answer_mass", "the whole interval is to be above one half"


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.check)
def test_each_control_that_was_not_run_is_open_with_its_remedy_unless_the_question_can_do_without_it(
    control: Any,
) -> None:
    claim = probe_claim(with_lead(control.check, None))
    if control.is_optional:
        assert claim.verdict is Verdict.YES
        return
    assert claim.verdict is Verdict.CANNOT_TELL
    check = next(check for check in claim.checks if check.name == control.check)
    assert check.outcome is Outcome.OPEN and check.remedy
    if control.check == "above_random_weights":
        assert "random weights, it was not run; add --random-weights (one device" in claim_sentence(
            claim, PROBE_WORDS
        )
    if control.check == "above_sentence_embeddings":
        assert (
            "sentence embeddings, it was not run; `selfprobe fetch-model all-MiniLM-L6-v2`, then "
            "the same command." in claim_sentence(claim, PROBE_WORDS)
        )


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.check)
def test_each_control_that_reaches_about_as_much_leaves_it_open_and_one_that_is_shown_to_explains(
    control: Any,
) -> None:
    is_open = probe_claim(with_lead(control.check, estimate(0.02)))
    assert is_open.verdict is Verdict.CANNOT_TELL and first_open(is_open) == control.check
    explained = probe_claim(with_lead(control.check, estimate(-0.1)))
    assert explained.verdict is Verdict.NO
    told = claim_sentence(explained, PROBE_WORDS)
    assert (
        "above asking" in told
        if control.check == "above_asking"
        else f"no better than {control.label}: 0.70" in told
    )


def test_labels_that_are_shuffled_are_a_check_of_their_own() -> None:
    lucky = probe_claim(replace(EVIDENCE, shuffled=replace(SHUFFLES, p_value=0.2)))
    assert lucky.verdict is Verdict.CANNOT_TELL and first_open(lucky) == ABOVE_SHUFFLED
    assert "95 % of shuffles stay below 0.61" in claim_sentence(lucky, PROBE_WORDS)
    assert first_open(probe_claim(replace(EVIDENCE, shuffled=None))) == ABOVE_SHUFFLED


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (
            replace(EVIDENCE, no_measurement="one question is in both halves"),
            "no measurement: one question is in both halves",
        ),
        (replace(EVIDENCE, no_measurement="its sign is arbitrary"), "its sign is arbitrary"),
    ],
)
def test_a_leak_or_an_arbitrary_sign_is_no_measurement(
    evidence: ProbeEvidence, reason: str
) -> None:
    claim = probe_claim(evidence)
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "is_measured"
    assert reason in claim_sentence(claim, PROBE_WORDS)


def test_a_probe_without_a_score_and_a_lead_without_an_interval_are_no_proof() -> None:
    assert (
        first_open(probe_claim(replace(EVIDENCE, score=undefined("no pair was tested"))))
        == "is_measured"
    )
    bare = Estimate(0.2, math.nan, math.nan, 1, "question", "no interval from one question")
    claim = probe_claim(with_lead("above_asking", bare))
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "above_asking"
    assert "+0.20 (no interval from one question)" in claim_sentence(claim, PROBE_WORDS)


def test_a_mean_over_data_sets_needs_each_control_on_each_of_them() -> None:
    def mean(parts: list[Estimate]) -> Estimate:
        return estimate(float(np.mean([part.value for part in parts])))

    other = replace(
        with_lead("above_random_weights", None),
        subject="hanna",
        shuffled=replace(SHUFFLES, p_value=0.04),
    )
    both = mean_evidence("ada", [EVIDENCE, other], mean)
    assert both.shuffled is not None and both.shuffled.p_value == 0.04
    assert both.missing == {"above_random_weights": "not run on hanna"}
    claim = probe_claim(both)
    assert claim.verdict is Verdict.CANNOT_TELL and "not run on hanna" in claim_sentence(
        claim, PROBE_WORDS
    )
    assert probe_claim(mean_evidence("ada", [EVIDENCE], mean)).verdict is Verdict.YES


def test_a_judge_is_to_be_above_its_probe_and_what_the_texts_tell() -> None:
    leads = {
        name: Lead(0.6, estimate(0.1))
        for name in ("above_probe", "above_asking", "above_words", "above_length")
    }
    judge = JudgeEvidence("one", "one", 0.7, leads)
    assert judge_claim(judge).verdict is Verdict.YES
    lost = replace(judge, leads=leads | {"above_words": Lead(0.7, estimate(0.0))})
    assert first_open(judge_claim(lost)) == "above_words"
    below = judge_claim(replace(judge, leads=leads | {"above_probe": Lead(0.8, estimate(-0.1))}))
    assert below.verdict is Verdict.NO and "above its probe" in claim_sentence(below, JUDGE_WORDS)
    assert first_open(judge_claim(replace(judge, leads={}))) == "above_probe"
