"""Half precision: what is rounded, and by how much."""

from pathlib import Path

import pytest
import torch

from selfprobe.probes.forward import state_distance
from selfprobe.probes.model import in_float32, keep_residual, load_model

from .conftest import alone, tiny_family, tiny_judge
from .test_choose import bloom, prompts_of


def test_a_float32_residual_stream_halves_the_rounding_of_a_deep_model() -> None:
    from transformers import LlamaConfig

    shape = {
        "vocab_size": 257,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
    }
    judge, prompts = (
        tiny_family(LlamaConfig(**shape, num_hidden_layers=24)),
        prompts_of(20, 25, 30, 35),
    )
    judge.model.to(torch.bfloat16)
    with in_float32(judge.model):
        exact = alone(judge, prompts)
    native = state_distance(alone(judge, prompts), exact).contrasts[-1]
    assert keep_residual(judge.model)
    wide = alone(judge, prompts)
    assert wide.hidden.dtype == torch.float32
    assert 0 < state_distance(wide, exact).contrasts[-1] < 0.75 * native


def test_the_float32_reference_is_that_of_the_same_weights_and_leaves_them_as_they_were() -> None:
    judge, prompts = tiny_judge(), prompts_of(9, 20)
    judge.model.to(torch.bfloat16)
    before = {name: t.clone() for name, t in judge.model.state_dict().items()}
    with in_float32(judge.model):
        found = alone(judge, prompts)
    assert all(
        t.dtype == before[n].dtype and torch.equal(t, before[n])
        for n, t in judge.model.state_dict().items()
    )
    judge.model.float()
    assert state_distance(found, alone(judge, prompts)).largest < 1e-5


def test_a_model_whose_blocks_take_no_float32_stream_stays_as_it_was() -> None:
    judge, prompts = tiny_family(bloom()), prompts_of(9)
    judge.model.to(torch.bfloat16)
    before = alone(judge, prompts)
    assert not keep_residual(judge.model)
    assert torch.equal(alone(judge, prompts).hidden, before.hidden)


def test_a_model_loaded_in_half_precision_has_wide_states(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge = tiny_judge()
    judge.model.save_pretrained(tmp_path)
    judge.tokenizer.save_pretrained(tmp_path)
    half = load_model(str(tmp_path), dtype="bfloat16")
    assert half.has_float32_residual and half.dtype == torch.bfloat16
    assert alone(half, prompts_of(9)).hidden.dtype == torch.float32
    assert not load_model(str(tmp_path)).has_float32_residual
