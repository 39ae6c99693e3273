from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from selfprobe.probes import forward
from selfprobe.probes.forward import WAYS, read_states, state_distance
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import encode

from .conftest import alone, some_pairs, tiny_judge
from .test_choose import prompts_of


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_the_shared_cache_agrees_with_two_plain_forwards(family: str) -> None:
    judge = tiny_judge(family)
    prompts = encode(judge.tokenizer, some_pairs(5))
    assert (
        state_distance(read_states(judge, prompts, "shared_cache"), alone(judge, prompts)).largest
        < 1e-5
    )


def test_states_are_those_of_transformers_before_the_final_norm(llama: LocalModel) -> None:
    prompts = encode(llama.tokenizer, some_pairs(1))
    states = read_states(llama, prompts, "shared_cache")
    for side in (0, 1):
        ids = torch.tensor([[*prompts[0].prefix, prompts[0].contrast[side]]])
        out = llama.model(ids, output_hidden_states=True)
        for layer in (0, 1):  # hidden_states[k + 1] is after block k …
            torch.testing.assert_close(
                states.hidden[0, side, layer], out.hidden_states[layer + 1][0, -1]
            )
        # … but the last one is after the final norm, and ours is before it.
        torch.testing.assert_close(
            llama.model.model.norm(states.hidden[0, side, 2]), out.hidden_states[3][0, -1]
        )


def test_log_probs_are_those_after_the_prefix(llama: LocalModel) -> None:
    prompts = encode(llama.tokenizer, some_pairs(3))
    expected = []
    for prompt in prompts:
        logits = llama.model(torch.tensor([prompt.prefix])).logits[0, -1]
        expected.append(logits.log_softmax(0)[list(prompt.contrast)])
    for way in WAYS:
        torch.testing.assert_close(
            read_states(llama, prompts, way).log_probs, torch.stack(expected), atol=1e-4, rtol=1e-4
        )


def test_blocks_that_return_tuples_are_read_too(llama: LocalModel) -> None:
    block = torch.nn.Identity()
    block.register_forward_hook(lambda *_: (torch.ones(1, 2), "cache"))
    with forward.recorded_states([block], lambda out: out) as kept:
        block(torch.zeros(1, 2))
    assert kept[0].tolist() == [[1.0, 1.0]]


def test_a_block_that_gives_several_streams_is_read_at_the_active_one() -> None:
    block = torch.nn.Identity()
    streams = torch.stack(
        [torch.zeros(1, 2, 3), torch.ones(1, 2, 3)]
    )  # [stream, row, token, d_model], as Gemma 3n
    with forward.recorded_states([block], lambda out: out, 1) as kept:
        block(streams)
    torch.testing.assert_close(kept[0], torch.ones(1, 2, 3))
    with (
        forward.recorded_states([block], lambda out: out),
        pytest.raises(ValueError, match=r"shape \(2, 1, 2, 3\), expected"),
    ):
        block(streams)


def test_two_threads_that_read_one_model_wait_for_each_other(llama: LocalModel) -> None:
    prompts = prompts_of(20, 20, 20)
    reference = alone(llama, prompts)

    def largest_difference(_: int) -> float:
        return max(
            state_distance(read_states(llama, prompts, way), reference).largest for way in WAYS
        )

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(largest_difference, range(40))) < 1e-5
