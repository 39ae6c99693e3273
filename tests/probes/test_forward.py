import logging

import pytest
import torch

from selfprobe.probes import forward
from selfprobe.probes.forward import WAYS, choose, difference, states_of, verify
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import encode

from .conftest import some_pairs, tiny_judge


@pytest.mark.parametrize("family", ["llama", "gemma2"])
@pytest.mark.parametrize("way", ["shared_cache", "tree_mask"])
def test_fast_ways_agree_with_two_plain_forwards(family: str, way: forward.Way) -> None:
    judge = tiny_judge(family)
    prompts = encode(judge.tokenizer, some_pairs(5))
    assert verify(judge, prompts, way) < 1e-4


def test_states_are_those_of_transformers_before_the_final_norm(llama: LocalModel) -> None:
    prompts = encode(llama.tokenizer, some_pairs(1))
    states = states_of(llama, prompts, "tree_mask")
    for side in (0, 1):
        ids = torch.tensor([[*prompts[0].prefix, prompts[0].contrast[side]]])
        out = llama.model(ids, output_hidden_states=True)
        for layer in (0, 1):  # hidden_states[k + 1] is after block k …
            torch.testing.assert_close(states.hidden[0, side, layer], out.hidden_states[layer + 1][0, -1])
        # … but the last one is after the final norm, and ours is before it.
        torch.testing.assert_close(llama.model.model.norm(states.hidden[0, side, 2]), out.hidden_states[3][0, -1])


def test_log_probs_are_those_after_the_prefix(llama: LocalModel) -> None:
    prompts = encode(llama.tokenizer, some_pairs(3))
    expected = []
    for prompt in prompts:
        logits = llama.model(torch.tensor([prompt.prefix])).logits[0, -1]
        expected.append(logits.log_softmax(0)[list(prompt.contrast)])
    for way in WAYS:
        torch.testing.assert_close(
            states_of(llama, prompts, way).log_probs, torch.stack(expected), atol=1e-4, rtol=1e-4
        )


def test_the_check_notices_a_side_that_sees_the_other(llama: LocalModel) -> None:
    prompts = encode(llama.tokenizer, some_pairs(2))
    right = states_of(llama, prompts, "two_forwards")
    both_in_a_row = [torch.tensor([[*p.prefix, *p.contrast]]) for p in prompts]
    wrong = right.hidden.clone()
    for row, ids in enumerate(both_in_a_row):
        with forward.recorded(llama.blocks, lambda out: out[:, -1:].clone()) as kept:
            llama.model(ids)
        wrong[row, 1] = torch.stack([k[0, 0] for k in kept])
    assert difference(forward.States(wrong, right.log_probs), right) > 1e-2


def test_auto_takes_the_tree_mask_where_it_verifies(llama: LocalModel, gemma: LocalModel) -> None:
    for judge in (llama, gemma):
        assert choose(judge, encode(judge.tokenizer, some_pairs()), "auto") == "tree_mask"


def test_a_fall_back_is_logged_and_a_named_way_never_falls_back(caplog: pytest.LogCaptureFixture) -> None:
    judge = tiny_judge("gemma2", window=64)
    prompts = encode(judge.tokenizer, some_pairs(2))
    with caplog.at_level(logging.WARNING):
        assert choose(judge, prompts, "auto") == "shared_cache"
    assert "sliding window of 64" in caplog.text
    assert verify(judge, prompts, "shared_cache") < 1e-4, "also past the window"
    with pytest.raises(ValueError, match="tree_mask cannot be used with tiny-gemma2.*sliding window"):
        choose(judge, prompts, "tree_mask")


def test_wrong_states_lead_to_two_forwards(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = encode(llama.tokenizer, some_pairs(2))
    right = forward.two_forwards

    def wrong(judge: LocalModel, prompts: object) -> forward.States:
        states = right(judge, prompts)  # type: ignore[arg-type]
        return forward.States(states.hidden * 1.01, states.log_probs)

    monkeypatch.setitem(WAYS, "tree_mask", wrong)
    monkeypatch.setitem(WAYS, "shared_cache", wrong)
    assert choose(llama, prompts, "auto") == "two_forwards"
    assert "differ from two plain forwards by 0.01" in caplog.text


def test_blocks_that_return_tuples_are_read_too(llama: LocalModel) -> None:
    block = torch.nn.Identity()
    block.register_forward_hook(lambda *_: (torch.ones(1, 2), "cache"))
    with forward.recorded([block], lambda out: out) as kept:
        block(torch.zeros(1, 2))
    assert kept[0].tolist() == [[1.0, 1.0]]
