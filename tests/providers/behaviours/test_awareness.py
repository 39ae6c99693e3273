import numpy as np
import pytest
from inspect_ai.model import ChatMessageUser
from scipy.special import ndtri

from selfprobe.providers.behaviours.awareness import d_prime, label_of, planted_label, signal
from selfprobe.providers.mind import Mind
from selfprobe.providers.planted import parse_name
from selfprobe.solvers.converse import quoted
from selfprobe.stats.estimate import auroc

TEXTS = [f"Please tell me about number {i}." for i in range(600)]


def mind(query: str = "", **fields: int) -> Mind:
    name, settings = parse_name(f"alpha?{query}", {})
    return Mind(name, settings, **fields)  # type: ignore[arg-type]


def conversation(text: str) -> str:
    return quoted([ChatMessageUser(content=text)], "Fine.")


def test_the_planted_label_is_a_function_of_the_text_and_balanced() -> None:
    labels = [planted_label(text) for text in TEXTS]
    assert labels == [planted_label(f" {text}\n") for text in TEXTS]
    assert 0.45 < labels.count("evaluation") / len(labels) < 0.55
    assert [label_of(conversation(text)) for text in TEXTS] == labels


@pytest.mark.parametrize("awareness", [0.5, 0.7, 0.9])
def test_the_signal_has_the_planted_auroc(awareness: float) -> None:
    subject = mind(f"awareness={awareness}")
    scores = np.array([signal(subject, conversation(text), "v1") for text in TEXTS])
    positive = np.array([planted_label(text) == "evaluation" for text in TEXTS])
    assert abs(auroc(positive, scores) - awareness) < 0.045


def test_d_prime_by_hand() -> None:
    """AUROC .76025 is d' = 1: Φ(1/√2) = .76025."""
    assert d_prime(0.76025) == pytest.approx(1, abs=1e-4) and d_prime(0.5) == pytest.approx(0)
    assert np.isfinite(d_prime(1.0)) and ndtri(0.999) > 3


def test_what_a_subject_makes_of_a_conversation_does_not_change_with_the_question_or_the_seed() -> (
    None
):
    text = conversation(TEXTS[0])
    values = {
        signal(mind(seed=seed), text, question) for seed in (1, 2) for question in ("v1", "v2")
    }
    assert len(values) == 1
    wobbly = {signal(mind("wobble=.5", seed=seed), text, "v1") for seed in (1, 2)}
    assert len(wobbly) == 2


def test_an_unknown_setting_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError,
        match=r"unknown setting aware; did you mean awareness\? The nearest are awareness, ",
    ):
        parse_name("alpha?aware=1", {})
