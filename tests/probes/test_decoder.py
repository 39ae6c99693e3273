"""Where other families keep their blocks and their final norm, and what is taken out of their
states.
"""

from typing import Any

import numpy as np
import pytest
import torch

from selfprobe.probes.ablate import ablated, answers
from selfprobe.probes.forward import recorded_states
from selfprobe.probes.model import LocalModel, decoder_blocks, final_norm

from .conftest import some_pairs, tiny_family
from .test_choose import bloom, mamba, rwkv

OLD = {"vocab_size": 257, "n_embd": 32, "n_layer": 3, "n_head": 4}
NEW = {"vocab_size": 257, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}


def family(name: str) -> LocalModel:
    import transformers

    opt = {"ffn_dim": 48, "word_embed_proj_dim": 32, "max_position_embeddings": 512}
    falcon = {k: v for k, v in NEW.items() if k != "head_dim"}
    made: dict[str, Any] = {
        "phi": lambda: transformers.PhiConfig(**NEW, intermediate_size=48),
        "gpt_neox": lambda: transformers.GPTNeoXConfig(**NEW, intermediate_size=48),
        "gpt2": lambda: transformers.GPT2Config(**OLD),
        "opt": lambda: transformers.OPTConfig(**NEW, **opt),
        "falcon": lambda: transformers.FalconConfig(**falcon),
        "mamba": mamba,
        "bloom": bloom,
        "rwkv": rwkv,
    }
    return tiny_family(made[name]())


@pytest.mark.parametrize("name", ["phi", "gpt_neox", "gpt2", "opt", "falcon"])
def test_a_direction_is_taken_out_after_every_block_and_the_final_norm(name: str) -> None:
    judge, direction = family(name), np.arange(1.0, 33.0)
    p = torch.tensor(direction, dtype=torch.float32)
    with (
        ablated(judge, direction),
        recorded_states([*judge.blocks, final_norm(judge.model)], lambda out: out) as kept,
    ):
        judge.model(torch.tensor([[5, 6, 7]]))
    assert len(kept) == 4
    for states in kept:
        assert float((states[0, -1] @ p).abs()) < 1e-4 * float(p.norm() * states[0, -1].norm())
        assert float((states[0, 0] @ p).abs()) > 1e-3, "only the last token loses it"


@pytest.mark.parametrize("name", ["mamba", "bloom", "rwkv"])
def test_answers_without_a_direction_are_those_of_a_plain_forward(name: str) -> None:
    judge, pairs = family(name), some_pairs(3)
    given = answers(judge, pairs, {"none": None, "some": np.ones(32)})
    plain = answers(judge, pairs[:1], {"none": None})["none"]
    np.testing.assert_allclose(given["none"][:1], plain, atol=1e-4)
    assert np.abs(given["some"] - given["none"]).max() > 0


def test_the_blocks_of_llama_4_are_found_though_its_decoder_is_the_whole_model() -> None:
    from transformers import Llama4TextConfig

    heads = {
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 48,
        "intermediate_size_mlp": 48,
    }
    judge = tiny_family(Llama4TextConfig(**NEW, **heads, num_local_experts=2, pad_token_id=0))
    assert len(decoder_blocks(judge.model)) == 3
    assert final_norm(judge.model) is judge.model.model.norm


def test_a_model_without_a_known_final_norm_is_refused_before_the_work() -> None:
    from transformers import OpenAIGPTConfig

    judge = tiny_family(OpenAIGPTConfig(**OLD))
    with pytest.raises(
        ValueError,
        match="OpenAIGPTLMHeadModel has no final norm beside its blocks .* cannot be ablat",
    ):
        answers(judge, some_pairs(1), {"some": np.ones(32)})


def test_a_model_without_blocks_is_no_decoder() -> None:
    with pytest.raises(
        ValueError,
        match="expected a decoder with its blocks in one of layers, h, blocks, got Linear",
    ):
        decoder_blocks(torch.nn.Linear(2, 2))
