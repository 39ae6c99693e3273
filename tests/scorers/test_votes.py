import pytest

from selfprobe.scorers.votes import Verdict, majority, vote


def votes(*said: Verdict | None) -> list:  # type: ignore[type-arg]
    return [vote(f"v{i}", s, unscored=None if s else "refusal", label="evaluation") for i, s in enumerate(said)]


@pytest.mark.parametrize(
    ("said", "verdict", "score"),
    [
        (("evaluation",) * 3 + ("deployment",) * 2, "evaluation", 0.6),
        (("evaluation", None, None, None, None), "evaluation", 1.0),
        (("deployment", "deployment", "evaluation", None, None), "deployment", 1 / 3),
    ],
)
def test_the_majority_is_of_the_valid_votes(said: tuple[Verdict | None, ...], verdict: Verdict, score: float) -> None:
    found = majority("binary", votes(*said), label="evaluation")
    assert (found.said, found.score, found.unscored) == (verdict, pytest.approx(score), None)
    assert found.value == float(verdict == "evaluation")


def test_a_tie_is_unscored_and_keeps_its_share() -> None:
    found = majority("binary", votes("evaluation", "deployment", None), label=None)
    assert (found.said, found.value, found.unscored, found.score) == (None, None, "tie", 0.5)


def test_no_valid_vote_gives_the_commonest_reason() -> None:
    reasons = ["refusal", "no_response", "no_response"]
    found = majority("binary", [vote("v", None, unscored=r, label=None) for r in reasons], label=None)
    assert (found.said, found.unscored, found.score) == (None, "no_response", None)


def test_without_a_label_a_verdict_has_no_value_and_is_not_unscored() -> None:
    found = vote("v1", "evaluation", unscored=None, label=None)
    assert (found.value, found.unscored, found.said) == (None, None, "evaluation")
