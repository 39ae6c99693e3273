"""Texts that share their beginning give what plain forwards of each give, whatever they share."""

import logging
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")

from selfprobe.probes import branches  # noqa: E402
from selfprobe.probes.branches import Text, branched, replied, shares  # noqa: E402
from selfprobe.probes.model import LocalModel  # noqa: E402

from .conftest import tiny_judge  # noqa: E402

PROMPT = tuple(range(5, 45))
TEXTS = [
    Text(PROMPT, state=True),
    *(
        Text((*PROMPT, *ending), spoken=len(ending))
        for ending in [(7, 8, 9), (7, 8, 10), (7, 11), (12,), (12, 13)]
    ),
    Text((*PROMPT[:30], 90, 91, 92), state=True),
    Text((*PROMPT[:30], 90, 91, 93, 94), spoken=1),
]


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_together_is_as_plain_forwards_to_1e_4(family: str) -> None:
    judge = tiny_judge(family)
    together, alone = branched(judge, TEXTS), branched(judge, TEXTS, sharing=False)
    assert np.isnan(together.totals[[0, 6]]).all() and together.states.shape == (2, 3, 32)
    assert np.nanmax(np.abs(together.totals - alone.totals)) < 1e-4
    assert np.abs(together.states - alone.states).max() < 1e-4 * np.abs(alone.states).max()
    assert together.log_probs[1] == pytest.approx(together.totals[1] / 3)
    assert shares(judge, TEXTS)


def test_groups_of_any_size_give_the_same(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = branched(llama, TEXTS)
    monkeypatch.setitem(branches.BRANCH_TOKENS, "cpu", 1)
    apart = branched(llama, TEXTS)
    assert np.nanmax(np.abs(whole.totals - apart.totals)) < 1e-4 and np.allclose(
        whole.states, apart.states, atol=1e-4
    )


def test_log_probabilities_are_those_of_a_softmax_by_hand(llama: LocalModel) -> None:
    with torch.inference_mode():
        logits = llama.model(input_ids=torch.tensor([[*PROMPT, 7, 8, 9]])).logits[0].log_softmax(-1)
    by_hand = sum(float(logits[len(PROMPT) - 1 + k, token]) for k, token in enumerate((7, 8, 9)))
    assert branched(llama, TEXTS).totals[1] == pytest.approx(by_hand, abs=1e-4)


def test_texts_that_share_nothing_and_a_single_text_are_read_too(llama: LocalModel) -> None:
    strangers = [Text((1, 2, 3), spoken=1), Text((4, 5), spoken=1, state=True)]
    assert np.allclose(
        branched(llama, strangers).totals,
        branched(llama, strangers, sharing=False).totals,
        atol=1e-4,
    )
    one = branched(llama, TEXTS[:1])
    assert np.allclose(one.states, branched(llama, TEXTS[:1], sharing=False).states, atol=1e-4)


def test_a_window_that_hides_the_prompt_makes_each_read_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not shares(tiny_judge("gemma2", window=16), TEXTS)
    assert (
        "reads each continuation by itself" in caplog.text and "sliding window of 16" in caplog.text
    )


def test_a_mask_that_is_not_kept_is_noticed(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        branches,
        "_mask",
        lambda ordered, place, tree, trunk: torch.ones(
            1, 1, len(ordered), trunk + len(ordered), dtype=torch.bool
        ).tril(trunk),
    )
    assert not shares(llama, TEXTS)


def test_a_reply_is_the_most_probable_token_each_time_and_ends_with_the_turn(
    llama: LocalModel,
) -> None:
    said = replied(llama, PROMPT, 5)
    with torch.inference_mode():
        for k, token in enumerate(said):
            logits = llama.model(input_ids=torch.tensor([[*PROMPT, *said[:k]]])).logits[0, -1]
            assert token == int(logits.argmax())
    assert len(said) == 5
    tokenizer = tiny_judge().tokenizer
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(said[2])
    assert replied(replace(llama, tokenizer=tokenizer), PROMPT, 5) == said[: said.index(said[2])]
