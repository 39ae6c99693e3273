"""Claims in words: one sentence, one answer over all subjects, one table of checks, one file for
programs.

A study brings a small table of words (`ClaimWords`); everything else is the same on every page.
Numbers have slots, so that no answer changes where a page is reworded.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import TypeAdapter

from selfprobe.page.columns import Heading, RowTable
from selfprobe.page.numerals import interval_text, p_digits, percent
from selfprobe.stats.claim import (
    ALPHA,
    Check,
    Claim,
    Outcome,
    Verdict,
    ordered_claims,
    strongest_claims,
)
from selfprobe.stats.estimate import Estimate

MOST_TERMINAL_LINES = 5
"""Largest number of lines of the terminal after the answer."""


@dataclass(frozen=True)
class ClaimWords:
    """Words of a study for its claims. A phrase follows the subject, as in "ada predicts itself in
    {effect}".
    """

    yes: str
    """Verb phrase where every check holds. Slots of all phrases: {effect}, {smallest}, {competitor}
    and {difference} of the check that the phrase is about (here the strongest competitor),
    {bare_difference} in phrases that say its p themselves, and the claim's details.
    """
    no: str
    """Verb phrase where the effect is too small to matter."""
    checks: Mapping[str, str]
    """Check → what it asks, as in "is not shown to be …": "above every other model"."""
    explained: str = "is no better than {competitor}"
    """Verb phrase where a control explains the effect."""
    write: Callable[[Estimate], str] = interval_text
    """Function that writes the effect and the differences of checks with it."""
    kind: str = "models"
    """Plural noun for the subjects."""
    unmet: Mapping[str, str] = field(default_factory=dict)
    """Check → verb phrase where it is the first that does not hold, if "is not shown to be …" does
    not read well.
    """
    units: Mapping[str, Callable[[Estimate], str]] = field(default_factory=dict)
    """Check → function that writes its difference, where it is on another scale than the effect."""
    stricter_tests: Mapping[str, str] = field(default_factory=dict)
    """Check whose p is that of a stricter test than its interval → what the p is of, with the slot
    {p}; it stands in place of an interval that would contradict it.
    """

    def write_difference(self, check: Check) -> str:
        """The difference of a check, or why there is none."""
        return self.units.get(check.name, self.write)(check.difference)


def answered_text(share: Estimate) -> str:
    """Share of answers that are a number, or why there is none."""
    return share.reason or f"{percent(share.value)} of {share.n} answers"


def claim_clause(claim: Claim, words: ClaimWords, *, with_remedy: bool = True) -> str:
    """Clause of a claim after its subject: what was found, the strongest competitor or the check
    that is open.
    """
    verdict = claim.verdict
    if verdict is Verdict.YES:
        return _fill_phrase(words.yes, claim, words, claim.strongest_competitor)
    if verdict is Verdict.NO and claim.is_too_small:
        return _fill_phrase(words.no, claim, words, claim.strongest_competitor)
    if verdict is Verdict.NO:
        return _fill_phrase(words.explained, claim, words, claim.explanation)
    return _unmet_clause(claim, words, with_remedy=with_remedy)


def _fill_phrase(phrase: str, claim: Claim, words: ClaimWords, check: Check | None) -> str:
    """A phrase with its slots filled: numbers of the claim, and of the check that it is about."""
    effect_text = words.write(claim.effect)
    if effect_text.endswith(")") and "{effect} (" in phrase:
        # The reason of no interval and the phrase's own bracket become one.
        effect_text = f"{effect_text[:-1]}; "
        phrase = phrase.replace("{effect} (", "{effect}")
    slots = {
        "effect": effect_text,
        "smallest": f"{claim.smallest:.2f}",
        "competitor": "nothing",
        "difference": "",
        "bare_difference": "",
    }
    if check:
        slots["competitor"] = check.compared_with
        slots["difference"] = _tested_difference(check, words)
        slots["bare_difference"] = _difference_text(check, words)
    return phrase.format(**slots, **claim.details)


def _difference_text(check: Check, words: ClaimWords) -> str:
    """The difference of a check in a sentence, or the reason why there is none."""
    if math.isnan(check.difference.value):
        return check.difference.reason
    return words.write_difference(check)


def _tested_difference(check: Check, words: ClaimWords) -> str:
    """The difference of a check, with its p-value where the interval alone would let it hold."""
    difference_text = _difference_text(check, words)
    is_interval_above_zero = check.difference.low > 0
    if not is_interval_above_zero or not check.p_value > ALPHA:
        return difference_text
    p_text = p_digits(check.p_value)
    if check.name in words.stricter_tests:
        return words.stricter_tests[check.name].format(p=p_text)
    return f"{difference_text}, p = {p_text}"


def _unmet_clause(claim: Claim, words: ClaimWords, *, with_remedy: bool) -> str:
    """Clause that names the first check that does not hold, with its number and its remedy."""
    check = claim.first_unmet_check
    if check is None:
        return "was not checked"
    remedy = f"; {check.remedy}" if check.remedy and with_remedy else ""
    if check.name in words.unmet:
        return _fill_phrase(words.unmet[check.name], claim, words, check) + remedy
    comparison_parts = [check.compared_with, _tested_difference(check, words)]
    comparison = "; ".join(filter(None, comparison_parts))
    clause = f"is not shown to be {words.checks[check.name]}"
    return f"{clause} ({comparison}){remedy}" if comparison else f"{clause}{remedy}"


def claim_sentence(claim: Claim, words: ClaimWords) -> str:
    """The claim as one sentence, which begins with the verdict."""
    return f"{claim.verdict.value}: {claim.subject} {claim_clause(claim, words)}."


def answer_over(
    claims: Sequence[Claim], words: ClaimWords, *, most_lines: int = MOST_TERMINAL_LINES
) -> tuple[str, list[str]]:
    """The answer over all subjects, the strongest first, and the lines of the terminal that follow
    it.

    Args:
        claims: At least one.
        words: Words of the study.
        most_lines: Largest number of lines.
    """
    sorted_claims = ordered_claims(claims)
    first_claim = sorted_claims[0]
    subject = first_claim.subject
    clause = claim_clause(first_claim, words)
    if len(sorted_claims) == 1:
        opening = {
            Verdict.YES: f"Yes, for {subject}: it",
            Verdict.NO: f"No, not for {subject}: it",
            Verdict.CANNOT_TELL: f"Cannot tell for {subject}: it",
        }[first_claim.verdict]
        return f"{opening} {clause}.", []

    claim_count = len(sorted_claims)
    same_verdict_count = sum(claim.verdict is first_claim.verdict for claim in sorted_claims)
    opening = {
        Verdict.YES: f"Yes, for {same_verdict_count} of {claim_count} {words.kind}.",
        Verdict.NO: f"No, not for any of {claim_count} {words.kind}:",
        Verdict.CANNOT_TELL: f"Cannot tell for {same_verdict_count} of {claim_count} {words.kind}:",
    }[first_claim.verdict]
    lines = [claim_sentence(claim, words) for claim in sorted_claims[1:]]
    shortened_lines = _shortened(lines, words.kind, most_lines)
    if len(lines) > most_lines:
        hidden_claims = sorted_claims[most_lines:]
        shortened_lines[-1] += _other_verdicts(hidden_claims, first_claim.verdict)
    return f"{opening} {subject} {clause}.", shortened_lines


def _other_verdicts(hidden_claims: Sequence[Claim], opening_verdict: Verdict) -> str:
    """Sentence that counts the answers of claims that the terminal leaves out, where these are not
    all that of the opening.
    """
    count_by_verdict = Counter(claim.verdict for claim in hidden_claims)
    if set(count_by_verdict) == {opening_verdict}:
        return ""
    counts = [f"{verdict.value} for {count}" for verdict, count in count_by_verdict.items()]
    return f" Of these: {', '.join(counts)}."


def _shortened(lines: list[str], kind: str, most_lines: int = MOST_TERMINAL_LINES) -> list[str]:
    """Lines of the terminal, the last of which counts those that are left out."""
    if len(lines) <= most_lines:
        return lines
    hidden_count = len(lines) - most_lines + 1
    return [*lines[: most_lines - 1], f"{hidden_count} more {kind} are on the page."]


def answer_over_groups(
    claims_by_group: Mapping[str, Sequence[Claim]], words: ClaimWords, *, kind: str = "tasks"
) -> tuple[str, list[str]]:
    """The answer over all subjects of several groups, such as tasks, and the lines of the terminal:
    one a group.

    The strongest group is quoted; what would decide it stands in the first line.

    Args:
        claims_by_group: Group → at least one claim; a subject may be in several groups.
        words: Words of the study.
        kind: Plural noun for the groups.
    """
    if len(claims_by_group) == 1:
        (claims,) = claims_by_group.values()
        return answer_over(claims, words)
    strongest_by_group = {
        group: strongest_claims(claims)[0] for group, claims in claims_by_group.items()
    }
    group_of_claim = {id(claim): group for group, claim in strongest_by_group.items()}
    sorted_claims = strongest_claims(list(strongest_by_group.values()))
    first_claim = sorted_claims[0]
    verdict = first_claim.verdict

    all_claims = [claim for claims in claims_by_group.values() for claim in claims]
    all_subjects = {claim.subject for claim in all_claims}
    verdict_subjects = {claim.subject for claim in all_claims if claim.verdict is verdict}
    verdict_group_count = sum(claim.verdict is verdict for claim in sorted_claims)
    group_count = len(claims_by_group)
    subjects_and_groups = (
        f"{len(verdict_subjects)} of {len(all_subjects)} {words.kind} "
        f"in {verdict_group_count} of {group_count} {kind}"
    )
    opening = {
        Verdict.YES: f"Yes, for {subjects_and_groups}. In",
        Verdict.NO: f"No, not for any of {len(all_subjects)} {words.kind} in {group_count} {kind}: in",
        Verdict.CANNOT_TELL: f"Cannot tell for {subjects_and_groups}: in",
    }[verdict]
    clause = claim_clause(first_claim, words, with_remedy=False)
    answer = f"{opening} {group_of_claim[id(first_claim)]} {first_claim.subject} {clause}."

    lines = []
    unmet_check = first_claim.first_unmet_check
    if verdict is Verdict.CANNOT_TELL and unmet_check and unmet_check.remedy:
        lines.append(f"What would decide it: {unmet_check.remedy}.")
    for claim in sorted_claims[1:]:
        lines.append(f"{group_of_claim[id(claim)]}: {claim_sentence(claim, words)}")
    return answer, _shortened(lines, kind)


@dataclass(frozen=True)
class CheckRow:
    """A check as the page shows it under Why."""

    check: Annotated[str, Heading("check", "What a sceptic would ask of the claim.")]
    measured: Annotated[str, Heading("measured", "What was measured, with its 95 % interval.")]
    compared_with: Annotated[str, Heading("compared with", "The competitor, and what it reaches.")]
    p_value: Annotated[float, Heading("p", "p of the check, corrected for its family.", p_digits)]
    outcome: Annotated[
        Outcome, Heading("outcome", "Holds, fails, or open: these data cannot decide it.")
    ]
    remedy: Annotated[
        str, Heading("what would decide it", "What to type or add where the check is open.")
    ]


def check_table(claim: Claim, words: ClaimWords) -> RowTable:
    """The checks of a claim, one row each: the same columns on every page."""
    rows = [
        CheckRow(
            check=words.checks[check.name],
            measured=words.write_difference(check),
            compared_with=check.compared_with or "–",
            p_value=check.p_value,
            outcome=check.outcome,
            remedy=check.remedy or "–",
        )
        for check in claim.checks
    ]
    return RowTable(CheckRow, rows)


def claims_as_json(claims: Sequence[Claim], words: ClaimWords) -> list[dict[str, Any]]:
    """Claims for programs: each with its verdict, its sentence and the labels of its checks."""
    adapter = TypeAdapter(Claim)
    entries = []
    for claim in claims:
        record = json.loads(adapter.dump_json(claim))
        for check in record["checks"]:
            check["label"] = words.checks[check["name"]]
        sentence = claim_sentence(claim, words)
        entries.append({"verdict": claim.verdict.value, "sentence": sentence, **record})
    return entries
