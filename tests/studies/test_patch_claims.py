"""What `mechanism read` claims of patched patterns, on constructed numbers: each check open,
failing and explaining.
"""

import math
from dataclasses import replace

import pytest

from selfprobe.page.claims import check_table, claim_sentence
from selfprobe.stats.claim import Claim, Verdict
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.read import PATCH_WORDS, PATTERN_CONTROLS, PatchRow, patch_claim

REASON = "the shift is not shown to differ from 0"


def estimate(value: float, half: float = 0.1, n: int = 30) -> Estimate:
    return Estimate(value, value - half, value + half, n, "dilemma")


NOTHING = Estimate(math.nan, math.nan, math.nan, 30, "dilemma", REASON)
SHIFT = PatchRow("shift", "shift", estimate(1.0), NOTHING, NOTHING, "")
OWN = PatchRow(
    "introspective pattern, blocks 3",
    "introspective pattern, given blocks",
    estimate(0.5),
    estimate(0.5),
    NOTHING,
    "",
)
CONTROLS = [
    PatchRow(
        f"{control.label} {place}",
        control.group,
        estimate(0.1),
        estimate(0.1),
        estimate(0.4 - place / 100),
        "",
    )
    for control in PATTERN_CONTROLS
    for place in range(3)
]


def first_open(claim: Claim) -> str:
    unmet = claim.first_unmet_check
    return unmet.name if unmet else ""


def controls_with(group: str, over: Estimate) -> list[PatchRow]:
    """The control patterns, with one of a group that leaves so much."""
    rows = list(CONTROLS)
    place = next(place for place, row in enumerate(rows) if row.group == group)
    rows[place] = replace(rows[place], over=over, share=estimate(0.5 - over.value))
    return rows


def test_each_row_of_why_shows_the_number_that_its_words_name() -> None:
    rows = check_table(patch_claim([SHIFT, OWN, *CONTROLS], "m"), PATCH_WORDS).rows
    measured = {row.check: row.measured for row in rows}
    assert measured["asked about enough dilemmas"] == "30 dilemmas", "not the shift"
    assert measured["answering otherwise under the other prompt"] == "+1.00 [+0.90, +1.10]"
    label = PATTERN_CONTROLS[0].label
    lead = measured[f"taking over more than with {label}"]
    assert lead == "+38 points [+28, +48]", "a difference of shares is in points"


def test_patterns_that_bring_more_than_every_control_are_yes() -> None:
    claim = patch_claim([SHIFT, OWN, *CONTROLS], "m")
    assert claim.verdict is Verdict.YES
    assert claim_sentence(claim, PATCH_WORDS) == (
        "Yes: m takes over 50 % [40, 60] of the shift with the other run's patterns; closest is irrelevant text: "
        "10 % [0, 20]."
    )


@pytest.mark.parametrize("control", PATTERN_CONTROLS, ids=lambda control: control.check)
def test_each_control_is_a_check_and_the_one_of_its_group_that_brings_most_counts(
    control: object,
) -> None:
    group, check = control.group, control.check  # type: ignore[attr-defined]
    as_much = patch_claim([SHIFT, OWN, *controls_with(group, estimate(0.02))], "m")
    assert as_much.verdict is Verdict.CANNOT_TELL and first_open(as_much) == check
    explained = patch_claim([SHIFT, OWN, *controls_with(group, estimate(-0.1))], "m")
    assert explained.verdict is Verdict.NO
    assert f"than with {control.label}: 60 %" in claim_sentence(explained, PATCH_WORDS)  # type: ignore[attr-defined]
    without = [row for row in CONTROLS if row.group != group]
    missing = patch_claim([SHIFT, OWN, *without], "m")
    assert missing.verdict is Verdict.CANNOT_TELL and first_open(missing) == check
    assert missing.first_unmet_check is not None and missing.first_unmet_check.remedy


def test_without_a_shift_with_few_dilemmas_or_with_a_small_share_it_is_no_yes() -> None:
    flat = replace(SHIFT, estimate=estimate(0.05))
    none = replace(OWN, share=NOTHING)
    claim = patch_claim([flat, none, *CONTROLS], "m")
    assert first_open(claim) == "shift" and claim.verdict is Verdict.CANNOT_TELL
    assert "under the other prompt: +0.05 [−0.05, +0.15]; add dilemmas" in claim_sentence(
        claim, PATCH_WORDS
    )
    few = patch_claim([replace(SHIFT, estimate=estimate(1.0, n=3)), none, *CONTROLS], "m")
    assert first_open(few) == "several_dilemmas"
    assert (
        claim_sentence(few, PATCH_WORDS)
        == "Cannot tell: m cannot be told by 3 dilemmas; 6 are the least."
    )
    small = patch_claim([SHIFT, replace(OWN, share=estimate(0.0, 0.05)), *CONTROLS], "m")
    assert small.verdict is Verdict.NO and "0 % [−5, 5]" in claim_sentence(small, PATCH_WORDS)
    wide = patch_claim([SHIFT, replace(OWN, share=estimate(0.1, 0.3)), *CONTROLS], "m")
    assert wide.verdict is Verdict.CANNOT_TELL and first_open(wide) == "brings"
