"""Which way of reading is taken: right ones only, on models that cannot do all of them."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from selfprobe.probes import forward
from selfprobe.probes.forward import (
    WAYS,
    Reading,
    States,
    choose_reading,
    cut_batches,
    read_states,
    state_distance,
    switch_lengths_of,
)
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import Prompt, encode

from .conftest import alone, some_pairs, tiny_family, tiny_judge

SHAPE = {"vocab_size": 257, "hidden_size": 32, "num_hidden_layers": 3}


def prompts_of(*lengths: int) -> list[Prompt]:
    draw = torch.Generator().manual_seed(0)
    return [
        Prompt(tuple(torch.randint(3, 250, (n,), generator=draw).tolist()), (5, 6)) for n in lengths
    ]


def read(
    judge: LocalModel, prompts: Sequence[Prompt], reading: Reading, batch_tokens: int = 1024
) -> States:
    made = [
        read_states(judge, [prompts[i] for i in batch], reading.way)
        for batch in cut_batches(prompts, range(len(prompts)), batch_tokens, reading)
    ]
    return States(torch.cat([s.hidden for s in made]), torch.cat([s.log_probs for s in made]))


def test_auto_takes_the_shared_cache_where_it_is_right(
    llama: LocalModel, gemma: LocalModel
) -> None:
    for judge in (llama, gemma):
        assert (
            choose_reading(judge, encode(judge.tokenizer, some_pairs()), "auto").way
            == "shared_cache"
        )


def test_a_fall_back_is_logged_and_a_named_way_never_falls_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge, prompts = long_rope(), prompts_of(20, 120)
    with caplog.at_level(logging.WARNING):
        reading = choose_reading(judge, prompts, "auto")
    assert reading.way == "two_forwards"
    assert "positions are turned anew past 50 tokens" in caplog.text
    assert state_distance(read(judge, prompts, reading), alone(judge, prompts)).largest < 1e-5
    with pytest.raises(ValueError, match="shared_cache cannot be used with tiny-phi3.*past 50"):
        choose_reading(judge, prompts, "shared_cache")


def test_the_shared_cache_is_right_past_a_sliding_window() -> None:
    judge = tiny_judge("gemma2", window=64)
    prompts = encode(judge.tokenizer, some_pairs(2))
    reading = choose_reading(judge, prompts, "auto")
    assert reading.way == "shared_cache" and max(prompt.length for prompt in prompts) > 64
    assert state_distance(read(judge, prompts, reading), alone(judge, prompts)).largest < 1e-5


def test_wrong_states_lead_to_two_forwards(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    right = forward.two_forwards

    def wrong(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
        states = right(judge, prompts)
        return States(states.hidden * 1.01, states.log_probs)

    monkeypatch.setitem(WAYS, "shared_cache", wrong)
    assert (
        choose_reading(llama, encode(llama.tokenizer, some_pairs(2)), "auto").way == "two_forwards"
    )
    assert "differ from two plain forwards by 0.01" in caplog.text


def test_a_way_that_raises_is_a_fall_back_as_one_that_differs(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> States:
        raise TypeError("forward() got an unexpected keyword argument 'position_ids'\nand more")

    monkeypatch.setitem(WAYS, "shared_cache", fails)
    prompts = encode(llama.tokenizer, some_pairs(2))
    assert choose_reading(llama, prompts, "auto").way == "two_forwards"
    assert (
        "shared_cache is not used for tiny-llama: it fails (TypeError: forward() got an unexpected keyword argument "
        "'position_ids')" in caplog.text
    )
    with pytest.raises(
        ValueError, match=r"shared_cache cannot be used with tiny-llama: it fails \(TypeError"
    ):
        choose_reading(llama, prompts, "shared_cache")


def mamba() -> Any:
    from transformers import MambaConfig

    return MambaConfig(**SHAPE, state_size=8, initializer_range=0.3)


def bloom() -> Any:
    from transformers import BloomConfig

    return BloomConfig(vocab_size=257, hidden_size=32, n_layer=3, n_head=4, initializer_range=0.3)


def rwkv() -> Any:
    from transformers import RwkvConfig

    return RwkvConfig(**SHAPE)


@pytest.mark.parametrize(
    ("config", "expected"),
    [(mamba, "two_forwards"), (bloom, "shared_cache"), (rwkv, "two_forwards, one length a batch")],
)
def test_families_of_other_kinds_are_read_right(config: Any, expected: str) -> None:
    judge, prompts = tiny_family(config()), prompts_of(9, 9, 20, 31)
    reading = choose_reading(judge, prompts, "auto")
    assert str(reading) == expected
    assert state_distance(read(judge, prompts, reading), alone(judge, prompts)).largest < 1e-5


def test_a_state_space_model_is_tried_on_plain_forwards_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def scans(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
        pytest.fail("on a CPU its scan goes from token to token")

    monkeypatch.setitem(WAYS, "shared_cache", scans)
    assert choose_reading(tiny_family(mamba()), prompts_of(9, 20), "auto").way == "two_forwards"
    assert (
        "shared_cache is not used for tiny-mamba: it goes on from no key-value cache" in caplog.text
    )


def long_rope() -> LocalModel:
    from transformers import Phi3Config

    rope = {
        "rope_type": "longrope",
        "rope_theta": 1e4,
        "short_factor": [1.0] * 4,
        "long_factor": [4.0] * 4,
    }
    heads = {
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "pad_token_id": 0,
        "initializer_range": 0.3,
    }
    positions = {
        "max_position_embeddings": 512,
        "original_max_position_embeddings": 50,
        "rope_parameters": rope,
    }
    return tiny_family(Phi3Config(**SHAPE, **heads, **positions))


def test_states_under_a_long_rope_do_not_depend_on_the_longest_prompt_of_the_batch() -> None:
    judge, prompts = long_rope(), prompts_of(20, 48, 49, 50, 51, 120)  # a side is one token longer
    assert switch_lengths_of(judge.model.config) == (50,)
    for wanted in ("auto", "two_forwards"):
        reading = choose_reading(judge, prompts, wanted)  # type: ignore[arg-type]
        assert list(cut_batches(prompts, range(6), 1024, reading)) == [[0, 1, 2], [3, 4, 5]]
        assert state_distance(read(judge, prompts, reading), alone(judge, prompts)).largest < 1e-5
    with pytest.raises(
        ValueError, match="positions are turned anew past 50 tokens, and a cache would keep the old"
    ):
        choose_reading(judge, prompts, "shared_cache")
    assert choose_reading(judge, prompts[:2], "shared_cache").way == "shared_cache", (
        "all of them are short"
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cache_of_other_positions_is_found_in_each_precision(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = tiny_judge()
    judge.model.to(dtype)
    prompts = encode(judge.tokenizer, some_pairs(4))
    assert choose_reading(judge, prompts, "shared_cache").way == "shared_cache"
    right_inputs = forward.inputs_after

    def shifted(*arguments: Any, **settings: Any) -> dict[str, torch.Tensor]:
        inputs = right_inputs(*arguments, **settings)
        return inputs | {"position_ids": inputs["position_ids"] + 1}

    monkeypatch.setattr(forward, "inputs_after", shifted)
    with pytest.raises(ValueError, match="shared_cache cannot be used with tiny-llama: its states"):
        choose_reading(judge, prompts, "shared_cache")


def test_the_rounding_of_half_precision_is_reported_by_layer() -> None:
    judge = tiny_judge()
    prompts = encode(judge.tokenizer, some_pairs(4))
    full = choose_reading(judge, prompts, "shared_cache").rounding
    judge.model.to(torch.bfloat16)
    half = choose_reading(judge, prompts, "shared_cache").rounding
    assert len(full) == len(half) == 3
    assert max(full) < 1e-5 < 1e-3 < max(half)


def test_what_reads_in_both_directions_is_refused() -> None:
    judge = tiny_judge()
    for block in judge.blocks:
        block.self_attn.is_causal = False
    with pytest.raises(
        ValueError,
        match=r"tiny-llama \(LlamaForCausalLM\) cannot be read: its words depend on the tok",
    ):
        choose_reading(judge, prompts_of(9), "auto")


def test_blocks_that_run_twice_are_refused() -> None:
    judge = tiny_judge()
    judge.model.model.layers = torch.nn.ModuleList([judge.blocks[0]] * 3)
    with pytest.raises(ValueError, match="its 3 blocks run 9 times in one forward"):
        choose_reading(judge, prompts_of(9), "auto")


def test_a_model_that_fails_by_itself_is_refused_in_a_line() -> None:
    judge = tiny_judge()
    judge.model.model.embed_tokens = torch.nn.Embedding(4, 32)
    with pytest.raises(
        ValueError, match=r"cannot be read: a plain forward fails \(IndexError: index out of range"
    ):
        choose_reading(judge, prompts_of(9), "auto")


def test_a_way_that_there_is_not_is_named(llama: LocalModel) -> None:
    with pytest.raises(
        ValueError,
        match="path must be one of auto, shared_cache, two_forwards, got 'tree'",
    ):
        choose_reading(llama, prompts_of(9), "tree")  # type: ignore[arg-type]


def test_a_model_in_training_mode_is_refused_with_what_to_do() -> None:
    from transformers import LlamaConfig

    judge = tiny_family(
        LlamaConfig(**SHAPE, num_attention_heads=4, attention_dropout=0.3, initializer_range=0.3)
    )
    judge.model.train()
    with pytest.raises(
        ValueError, match="the same text read twice .*: it is in training mode, so call its eval"
    ):
        choose_reading(judge, prompts_of(9, 20), "auto")


def test_batches_hold_at_most_their_tokens_and_at_least_one_row() -> None:
    prompts = [Prompt(tuple(range(n)), (1, 2)) for n in (3, 3, 3, 8, 50)]
    assert list(cut_batches(prompts, range(5), 10)) == [[0, 1], [2], [3], [4]]


def test_prompts_of_different_lengths_share_no_batch_where_padding_is_wrong() -> None:
    prompts = [Prompt(tuple(range(n)), (1, 2)) for n in (3, 3, 8, 8, 9)]
    assert list(
        cut_batches(prompts, range(5), 1000, Reading("two_forwards", mixes_lengths=False))
    ) == [
        [0, 1],
        [2, 3],
        [4],
    ]
