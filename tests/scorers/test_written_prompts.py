import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai.scorer import SampleScore

from selfprobe.scorers.decision import Decision, score_of
from selfprobe.scorers.written_prompts import (
    REPLY_VECTOR,
    fair_prompt,
    holds_text,
    prompt_in,
    similarity,
    why_unscored,
    with_floor,
)
from selfprobe.solvers.record import Reply

TEXT = "The old harbour woke slowly while the gulls argued over a torn net and nobody came."
ROOT = np.sqrt(0.5)


def reply(text: str, problem: str | None = None) -> Reply:
    return Reply(text=text, model="m", stop_reason="stop", problem=problem)


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ('{ "prompt": " Explain atoms. " }', "Explain atoms."),
        ('{"prompt": ""}', None),
        ('{"prompt": "..."}', None),
        ('{"prompt": ["a"]}', None),
        ('{"prompt": "a", "why": "b"}', "a"),
        ("Explain atoms.", "Explain atoms."),
        ('"Atoms, please."', "Atoms, please."),
        ("Prompt: Atoms, please.", "Atoms, please."),
        ("The text is about atoms.", None),
        ("Write of atoms.\nOr of cells.", None),
    ],
)
def test_a_prompt_is_a_string_in_json_or_all_that_is_said(text: str, prompt: str | None) -> None:
    assert prompt_in(text) == prompt


@given(st.text())
def test_any_text_is_a_prompt_or_none(text: str) -> None:
    assert prompt_in(text) is None or prompt_in(text)


def test_a_prompt_that_quotes_half_of_the_text_is_a_copy() -> None:
    assert holds_text(f"Repeat this: {TEXT}", TEXT)
    assert holds_text(f"Say “{' '.join(TEXT.upper().split()[:8])}” and go on", TEXT)
    assert not holds_text("Write about an old harbour that wakes slowly", TEXT)
    assert not holds_text("a b c", "a b c")  # too short to be a quotation


@pytest.mark.parametrize(
    ("act", "prompt", "rerun", "reason"),
    [
        (reply("", "empty"), None, None, "target_no_response"),
        (reply(TEXT), reply("No.", "refused"), None, "refusal"),
        (reply(TEXT), reply("harbour"), None, "invalid_response_format"),
        (reply(TEXT), reply(f'{{"prompt": "Say: {TEXT}"}}'), None, "copied"),
        (reply(TEXT), reply('{"prompt": "x"}'), reply("No.", "refused"), "rerun_refusal"),
        (reply(TEXT), reply('{"prompt": "x"}'), reply(TEXT), None),
    ],
)
def test_what_has_no_similarity_is_unscored_with_its_reason(
    act: Reply, prompt: Reply | None, rerun: Reply | None, reason: str | None
) -> None:
    assert why_unscored(act, prompt, rerun) == reason


def test_a_prompt_that_can_be_read_is_asked() -> None:
    assert fair_prompt(reply(TEXT), reply('{"prompt": "Write of a harbour."}')) == (
        "Write of a harbour.",
        None,
    )


def decision(value: float = 0.9) -> Decision:
    return Decision(key="similarity", value=value)


def test_the_floor_is_the_mean_cosine_with_other_items_worked_by_hand() -> None:
    x, y, both = np.array([1.0, 0]), np.array([0, 1.0]), np.array([ROOT, ROOT])
    # a: (0 + √½)/2; b: the same; c: (√½ + √½)/2
    floors = [d.floor for _, d in with_floor([(item, decision()) for item in "abc"], [x, y, both])]
    assert floors == pytest.approx([ROOT / 2, ROOT / 2, ROOT])


def test_epochs_of_an_item_are_not_its_floor() -> None:
    x, y = np.array([1.0, 0]), np.array([0, 1.0])
    floors = [
        d.floor
        for _, d in with_floor([("a", decision()), ("a", decision()), ("b", decision())], [x, x, y])
    ]
    assert floors == pytest.approx([0, 0, 0])


def test_the_floor_agrees_with_a_loop_over_pairs() -> None:
    vectors = np.random.default_rng(3).normal(size=(12, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = with_floor([(str(i), decision()) for i in range(12)], list(vectors))
    expected = [np.mean([vectors[i] @ vectors[j] for j in range(12) if j != i]) for i in range(12)]
    assert [d.floor for _, d in found] == pytest.approx(expected)


def test_without_a_reply_or_another_item_there_is_no_floor() -> None:
    assert with_floor([("a", decision())], [np.array([1.0])])[0][1].floor is None
    assert [
        d.floor
        for _, d in with_floor([("a", decision()), ("b", decision())], [np.array([1.0]), None])
    ] == [None] * 2


def test_vectors_of_two_dimensions_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"expected vectors of one dimension, got \[1, 2\]"):
        with_floor([("a", decision()), ("b", decision())], [np.ones(1), np.ones(2)])


def sample(item: str, value: float, vector: np.ndarray) -> SampleScore:
    score = score_of([decision(value)], answer=None, explanation="")
    packed = base64.b64encode(vector.astype("<f2").tobytes()).decode()
    score.metadata = {**(score.metadata or {}), REPLY_VECTOR: packed}
    return SampleScore(score=score, sample_id=item)


def test_skill_is_the_way_from_the_floor_to_one() -> None:
    # Each reply has cosine .6 with the other: floor .6; similarity .8; skill (.8 - .6)/(1 - .6)
    one, other = np.array([1.0, 0]), np.array([0.6, 0.8])
    found = similarity()([sample("a", 0.7, one), sample("b", 0.9, other)])
    assert found["floor"] == pytest.approx(0.6, abs=1e-3)
    assert found["baseline_floor"] == found["floor"]
    assert found["similarity"] == pytest.approx(0.8)
    assert found["skill"] == pytest.approx(0.5, abs=1e-2)


def test_no_scores_are_no_numbers() -> None:
    assert similarity()([]) == {}
