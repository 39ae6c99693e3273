"""The planted truths themselves, without Inspect: many texts, and closed forms."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from selfprobe.data.pairs import Pair, comparison_prompt, priming, score_prompt
from selfprobe.preference_tasks.pairwise_preference import COMPLETE_PROMPT
from selfprobe.providers.behaviours.preference import p_choice_1, planted_quality, score_levels
from selfprobe.providers.mind import BEHAVIOURS, Mind, ShortReply
from selfprobe.providers.planted import parse_name

PAIRS = [(f"answer {i} of one kind", f"answer {i} of the other") for i in range(3000)]


def mind(query: str, seed: int | None = None) -> Mind:
    return Mind(*parse_name(f"alpha?{query}", {}), seed=seed)


def told(who: Mind, prompt: str) -> ShortReply:
    for known in BEHAVIOURS:
        if found := known.pattern.fullmatch(prompt):
            reply = known.reply(who, found.groupdict())
            assert isinstance(reply, ShortReply)
            return reply
    raise AssertionError(prompt)


def planted_better_text(text_1: str, text_2: str) -> int:
    """Number of the better text, 1 or 2."""
    return 1 if planted_quality(text_1) > planted_quality(text_2) else 2


@pytest.mark.parametrize("judgement", [0.5, 0.8, 0.95, 1.0])
def test_both_orders_together_have_the_planted_accuracy_whatever_the_position_bias(
    judgement: float,
) -> None:
    judge = mind(f"prefers={judgement}&first=.25")
    margins = np.array([p_choice_1(judge, a, b) - p_choice_1(judge, b, a) for a, b in PAIRS])
    truth = np.array([planted_better_text(a, b) for a, b in PAIRS])
    assert abs(np.mean((margins > 0) == (truth == 1)) - judgement) < 0.03
    assert abs(np.mean(truth == 1) - 0.5) < 0.04


def test_the_planted_position_bias_is_that_of_single_orders() -> None:
    """D ~ N(0, 1): P(3D + 4·.25 > 0) = Φ(1/3)."""
    judge = mind("first=.25")
    said = [p_choice_1(judge, *order) > 0.5 for a, b in PAIRS for order in ((a, b), (b, a))]
    assert abs(np.mean(said) - float(ndtr(1 / 3))) < 0.02


def test_the_planted_ties_are_exact_in_both_orders_together() -> None:
    judge = mind("tied=.2&first=.1")
    ties = [abs(p_choice_1(judge, a, b) - p_choice_1(judge, b, a)) < 1e-9 for a, b in PAIRS]
    assert abs(np.mean(ties) - 0.2) < 0.025


def test_scores_have_the_planted_accuracy_and_direct_ones_tie_in_seven_of_32() -> None:
    judge, right, ties = mind("prefers=.8"), [], []
    for a, b in PAIRS:
        one, two = score_levels(judge, a), score_levels(judge, b)
        means = [sum(int(s) * p for s, p in x.items()) for x in (one, two)]
        right.append((means[0] > means[1]) == (planted_better_text(a, b) == 1))
        ties.append(max(one, key=lambda s: one[s]) == max(two, key=lambda s: two[s]))
    assert abs(np.mean(right) - 0.8) < 0.025 and abs(np.mean(ties) - 7 / 32) < 0.025
    assert all(math.isclose(sum(score_levels(judge, a).values()), 1) for a, _ in PAIRS[:50])


@pytest.mark.parametrize(
    "kind", ["general", "summeval", "newsroom", "hanna", "rocstories", "mctaco", "caters"]
)
def test_every_prompt_of_the_paper_is_understood(kind: str) -> None:
    aspect = "relevance" if kind in ("summeval", "newsroom", "hanna") else ""
    pair = Pair(
        "p", "First text.\nTwo lines.", "Second", 1, kind=kind, aspect=aspect, context="Asked."
    )  # type: ignore[arg-type]
    judge = mind("prefers=.9")
    p = 0.9 * p_choice_1(judge, pair.text_1, pair.text_2)
    asked = COMPLETE_PROMPT.format(comparison=comparison_prompt(pair), priming=priming(pair))
    for prompt in (asked, comparison_prompt(pair)):
        assert told(judge, prompt).candidates["1"] == pytest.approx(p)
    if kind in ("general", "summeval", "newsroom", "hanna"):
        assert sum(told(judge, score_prompt(pair, 2)).candidates.values()) == pytest.approx(0.9)


def test_samples_are_drawn_from_the_stated_probabilities_and_a_mute_judge_states_none() -> None:
    pair = Pair("p", "answer 3", "answer 4", 1)
    prompt = comparison_prompt(pair)
    said = [told(mind("mute=1", seed=s), prompt).text for s in range(1, 400)]
    assert abs(said.count("1") / 399 - p_choice_1(mind(""), pair.text_1, pair.text_2)) < 0.08
    assert told(mind("mute=1"), prompt).candidates == {}
