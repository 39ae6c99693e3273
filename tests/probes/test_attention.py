"""Attention of ours for a while: rows without pads by the causal kernel, others under a mask of the
right type.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch

from selfprobe.probes import forward
from selfprobe.probes.forward import choose, kernel, off, states_of
from selfprobe.probes.model import LocalModel, keep_residual
from selfprobe.probes.tokens import Prompt

from .conftest import alone, tiny_family
from .test_choose import SHAPE, prompts_of, read


def masks_given(
    judge: LocalModel, prompts: Sequence[Prompt], monkeypatch: pytest.MonkeyPatch
) -> list[bool]:
    """Whether the forwards of the tree mask get a mask."""
    given: list[bool] = []
    plain = forward.output_of

    def watched(judge: LocalModel, **inputs: Any) -> Any:
        given.append("attention_mask" in inputs)
        return plain(judge, **inputs)

    with monkeypatch.context() as patch:
        patch.setattr(forward, "output_of", watched)
        states_of(judge, prompts, "tree_mask")
    return given


def test_rows_without_pads_are_read_by_the_causal_kernel(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And give what the mask gives; after it the model has its own attention again."""
    same, mixed = prompts_of(20, 20, 20), prompts_of(9, 20)
    assert masks_given(llama, same, monkeypatch) == [False] and masks_given(
        llama, mixed, monkeypatch
    ) == [True]
    assert llama.model.config._attn_implementation == "sdpa"
    fork = states_of(llama, same, "tree_mask")
    with monkeypatch.context() as patch:
        patch.setattr(forward, "forks", lambda model: False)
        assert masks_given(llama, same, monkeypatch) == [True]
        assert off(fork, states_of(llama, same, "tree_mask")).largest < 1e-5
    llama.model.set_attn_implementation("eager")
    try:
        assert masks_given(llama, same, monkeypatch) == [True], "sums of its own are not replaced"
    finally:
        llama.model.set_attn_implementation("sdpa")


def test_a_last_token_that_sees_the_one_before_is_found_without_pads_too(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a model's own code would pass the replaced attention by."""
    monkeypatch.setattr(forward, "forked", lambda model: nullcontext())
    assert str(choose(llama, prompts_of(9, 20, 25), "auto")) == "shared_cache"
    assert "tree_mask is not used for tiny-llama" in caplog.text


def test_a_wrong_mask_is_found_where_most_prompts_are_read_without_one(
    llama: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of the sample are longer than a state is wide, so that each is a batch; the short ones
    share one.
    """
    right = forward._tree
    monkeypatch.setattr(
        forward, "_tree", lambda judge, pads, width: right(judge, pads * 0, width)
    )  # pads are seen
    prompts = prompts_of(10, 20, 25, *[llama.d_model + 40] * 9, llama.d_model + 120)
    reading = choose(llama, prompts, "auto")
    assert off(read(llama, prompts, reading), alone(llama, prompts)).largest < 1e-5


def test_the_mask_is_of_the_type_of_the_residual_stream() -> None:
    """gpt-oss sums its scores and its sinks in it: another type is another rounding than that of
    plain forwards.
    """
    from transformers import GptOssConfig

    sizes = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 48,
    }
    experts = {
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "pad_token_id": 0,
        "initializer_range": 0.3,
    }
    judge, prompts = tiny_family(GptOssConfig(**SHAPE, **sizes, **experts)), prompts_of(20, 20, 20)
    judge.model.to(torch.bfloat16)
    judge = replace(judge, wide=keep_residual(judge.model))
    assert judge.wide
    assert off(states_of(judge, prompts, "tree_mask"), alone(judge, prompts)).largest < 1e-3


def test_a_family_that_names_its_mask_to_the_attention_is_read_by_the_causal_kernel_too() -> None:
    """AFMoE does; its default window is wider than these prompts."""
    from transformers import AfmoeConfig

    judge, prompts = (
        tiny_family(AfmoeConfig(**SHAPE, num_attention_heads=4, head_dim=8)),
        prompts_of(9, 20, 20, 25),
    )
    reading = choose(judge, prompts, "auto")
    assert str(reading) == "tree_mask"
    assert off(read(judge, prompts, reading), alone(judge, prompts)).largest < 1e-5


def test_a_mask_of_the_models_own_is_no_row_for_the_causal_kernel(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from transformers import DogeConfig

    judge, prompts = (
        tiny_family(DogeConfig(**SHAPE, num_attention_heads=4)),
        prompts_of(9, 20, 20, 25),
    )
    reading = choose(judge, prompts, "auto")
    assert "its attention is given a mask of the model's own" in caplog.text
    assert judge.model.config._attn_implementation == "sdpa", "put back after an error"
    assert off(read(judge, prompts, reading), alone(judge, prompts)).largest < 1e-5


def test_the_attention_of_each_part_of_a_model_is_put_back() -> None:
    """Of a model of texts and pictures: its outer configuration says sdpa, and its text model takes
    another.
    """
    from transformers import AutoModelForCausalLM, Gemma3Config

    text = SHAPE | {
        "num_attention_heads": 4,
        "head_dim": 8,
        "intermediate_size": 48,
        "pad_token_id": 0,
    }
    vision = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = Gemma3Config(
        text_config=text, vision_config=vision | {"image_size": 28, "patch_size": 14}
    )
    for of_text, of_vision in (("eager", "sdpa"), ("sdpa", "eager")):
        own = {"": "sdpa", "text_config": of_text, "vision_config": of_vision}
        model = AutoModelForCausalLM.from_config(config, attn_implementation=own).eval()
        judge, prompts = LocalModel(model, None, "tiny", "r0"), prompts_of(9, 20, 20, 25)
        reading = choose(judge, prompts, "auto")
        assert off(read(judge, prompts, reading), alone(judge, prompts)).largest < 1e-5
        parts = model.config, model.config.text_config, model.config.vision_config
        assert [part._attn_implementation for part in parts] == list(own.values())
        assert reading.way == "tree_mask" and kernel(model) == of_text


def test_two_threads_that_read_one_model_wait_for_each_other(llama: LocalModel) -> None:
    prompts = prompts_of(20, 20, 20)
    right = alone(llama, prompts)

    def reads(_: int) -> float:
        return max(
            off(states_of(llama, prompts, way), right).largest
            for way in ("tree_mask", "two_forwards")
        )

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(reads, range(40))) < 1e-5
    assert kernel(llama.model) == "sdpa"


def test_a_part_without_attention_of_its_own_is_put_back_too() -> None:
    """DBRX keeps its settings in configurations within its own, of which none has an attention."""
    from transformers import DbrxConfig

    sizes = {"vocab_size": 257, "d_model": 32, "n_layers": 3, "n_heads": 4, "pad_token_id": 0}
    judge = tiny_family(
        DbrxConfig(**sizes, attn_config={"rope_theta": 1e4, "kv_n_heads": 2, "clip_qkv": 8.0})
    )
    before = judge.model.config.attn_config._attn_implementation
    prompts = prompts_of(20, 20, 20)
    assert off(states_of(judge, prompts, "tree_mask"), alone(judge, prompts)).largest < 1e-5
    assert (kernel(judge.model), judge.model.config.attn_config._attn_implementation) == (
        "sdpa",
        before,
    )
