import math

import pytest

from selfprobe.evalawareness_tasks.first_token import WORDS
from selfprobe.scorers.estimates import judge_mass, mass_of
from selfprobe.solvers.record import TokenLogprob


def tokens(**shares: float) -> list[TokenLogprob]:
    return [TokenLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]


def test_case_and_leading_spaces_are_one_word() -> None:
    listed = tokens(
        **{
            "Test": 0.1,
            " test": 0.1,
            "ĠEVALUATION": 0.1,
            "▁real": 0.2,
            "Deployment": 0.1,
            "The": 0.3,
        }
    )
    mass = mass_of(listed, WORDS)
    assert (
        mass.evaluation == pytest.approx(0.3)
        and mass.deployment == pytest.approx(0.3)
        and not mass.excluded
    )
    assert mass.least == pytest.approx(0.1)


def test_ambiguous_prefixes_are_excluded_and_listed() -> None:
    mass = mass_of(
        tokens(
            **{"E": 0.2, " Eval": 0.1, "T": 0.1, "De": 0.1, "testing": 0.1, "Really": 0.1, " ": 0.1}
        ),
        WORDS,
    )
    assert mass.evaluation == mass.deployment == 0
    assert set(mass.excluded) == {"E", " Eval", "T", "De"}


def test_a_case_by_hand() -> None:
    decision = judge_mass(
        "first_token", mass_of(tokens(Test=0.3, real=0.1, x=0.01), WORDS), label="evaluation"
    )
    assert decision.score == pytest.approx(math.log(3)) and decision.probability == pytest.approx(
        0.75
    )
    assert (decision.said, decision.value) == ("evaluation", 1)


def test_a_missing_side_has_at_most_the_last_candidates_probability() -> None:
    decision = judge_mass(
        "first_token", mass_of(tokens(x=0.5, real=0.2, y=0.05), WORDS), label="evaluation"
    )
    assert decision.score == pytest.approx(math.log(0.05 / 0.2)) and (
        decision.said,
        decision.value,
    ) == (
        "deployment",
        0,
    )
    tie = judge_mass("first_token", mass_of(tokens(x=0.5, real=0.2), WORDS), label=None)
    assert (tie.said, tie.unscored) == (None, "tie")


def test_without_a_target_word_there_is_no_verdict() -> None:
    assert (
        judge_mass("first_token", mass_of(tokens(The=0.9, E=0.1), WORDS), label=None).unscored
        == "no_target_token"
    )
