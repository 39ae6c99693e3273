"""Texts that share their beginning give what plain forwards of each give, whatever they share."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")

from selfprobe.probes import branches  # noqa: E402
from selfprobe.probes.branches import Text, branched, greedy_reply, shares, tokens_of  # noqa: E402
from selfprobe.probes.model import LocalModel  # noqa: E402

from .conftest import tiny_family, tiny_judge  # noqa: E402
from .test_choose import mamba  # noqa: E402

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
    monkeypatch.setattr(branches, "ENDINGS_AT_ONCE", 1)
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
    strangers = [Text((1, 2, 3), spoken=1), Text((4, 5), spoken=1), Text((6, 7), state=True)]
    assert np.allclose(
        branched(llama, strangers).totals,
        branched(llama, strangers, sharing=False).totals,
        atol=1e-4,
        equal_nan=True,
    )
    one = branched(llama, TEXTS[:1])
    assert np.allclose(one.states, branched(llama, TEXTS[:1], sharing=False).states, atol=1e-4)


def test_texts_past_a_sliding_window_are_read_together_too() -> None:
    judge = tiny_judge("gemma2", window=16)
    together, plain = branched(judge, TEXTS), branched(judge, TEXTS, sharing=False)
    assert np.nanmax(np.abs(together.totals - plain.totals)) < 1e-4
    assert np.allclose(together.states, plain.states, atol=1e-4)
    assert shares(judge, TEXTS)


def test_a_model_without_a_cache_reads_each_text_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not shares(tiny_family(mamba()), TEXTS)
    assert (
        "tiny-mamba reads each continuation by itself: it goes on from no key-value cache"
        in caplog.text
    )


def test_a_cache_of_another_row_is_noticed(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def shifted(judge: LocalModel, endings: Any, stem_cache: Any) -> list[list[float]]:
        stem_cache.crop(-1)
        return right_reading(judge, endings, stem_cache)

    right_reading = branches._read_endings
    monkeypatch.setattr(branches, "_read_endings", shifted)
    with caplog.at_level(logging.WARNING):
        assert not shares(llama, TEXTS)
    assert "tiny-llama reads each continuation by itself: together they are off by" in caplog.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spoken": 1, "state": True}, "a text has spoken tokens or a state, not both"),
        ({"spoken": 3}, "spoken must be below the 3 tokens of the text, got 3"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Text((1, 2, 3), **settings)


def test_tokens_are_counted_once_where_texts_share_them() -> None:
    """A trunk of 30 tokens; stems of 40, 33 and 33; endings without their last tokens."""
    stem_tokens = (40 - 30) + (33 - 30) + (33 - 30)
    ending_tokens = 2 + 2 + 1 + 0 + 1 + 0
    assert tokens_of(TEXTS) == 30 + stem_tokens + ending_tokens


def test_a_reply_is_the_most_probable_token_each_time_and_ends_with_the_turn(
    llama: LocalModel,
) -> None:
    said = greedy_reply(llama, PROMPT, 5)
    with torch.inference_mode():
        for k, token in enumerate(said):
            logits = llama.model(input_ids=torch.tensor([[*PROMPT, *said[:k]]])).logits[0, -1]
            assert token == int(logits.argmax())
    assert len(said) == 5
    tokenizer = tiny_judge().tokenizer
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(said[2])
    assert (
        greedy_reply(replace(llama, tokenizer=tokenizer), PROMPT, 5) == said[: said.index(said[2])]
    )
