"""The control with random weights: another model of the same shape, that knows nothing."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from selfprobe.probes.model import (
    UNTRAINED_CONTROL_PARAMETERS,
    LocalModel,
    named_untrained,
    random_weights,
    wants_untrained_control,
)

from .conftest import tiny_judge


def weights(judge: LocalModel) -> torch.Tensor:
    found: torch.Tensor = judge.model.model.layers[0].mlp.up_proj.weight
    return found


def test_random_weights_have_the_same_shape_are_others_and_always_the_same() -> None:
    judge = tiny_judge(seed=3)  # the control draws with seed 0
    before, state = weights(judge).clone(), torch.random.get_rng_state()
    control, again, other = (
        random_weights(judge),
        random_weights(judge),
        random_weights(judge, seed=1),
    )
    assert weights(control).shape == before.shape and not torch.allclose(weights(control), before)
    assert torch.equal(weights(control), weights(again)) and not torch.equal(
        weights(control), weights(other)
    )
    assert torch.equal(weights(judge), before) and torch.equal(torch.random.get_rng_state(), state)
    assert (control.tokenizer, control.d_model, len(control.blocks)) == (judge.tokenizer, 32, 3)
    assert not control.model.training and not weights(control).requires_grad


def test_its_states_lie_in_a_folder_of_their_own() -> None:
    judge = tiny_judge()
    control = random_weights(judge)
    assert (control.name, control.revision) == ("tiny-llama with random weights", "r0-random-0")
    assert (named_untrained(judge).name, named_untrained(judge).revision) == (
        control.name,
        control.revision,
    )


def test_the_control_keeps_the_precision_of_the_model() -> None:
    judge = tiny_judge()
    judge.model.to(torch.bfloat16)
    assert random_weights(judge).model.dtype == torch.bfloat16


def test_it_is_made_for_small_models_or_as_asked() -> None:
    judge = tiny_judge()
    assert (
        wants_untrained_control(judge, None)
        and wants_untrained_control(judge, True)
        and not wants_untrained_control(judge, False)
    )
    large = LocalModel(model([UNTRAINED_CONTROL_PARAMETERS + 1]), judge.tokenizer, "large", "r")
    assert not wants_untrained_control(large, None) and wants_untrained_control(large, True)


def test_a_model_over_several_devices_or_quantised_has_no_such_control() -> None:
    spread = LocalModel(
        model([10], hf_device_map={"a": "cuda:0", "b": "cuda:1"}), None, "spread", "r"
    )
    assert not wants_untrained_control(spread, None)
    with pytest.raises(
        ValueError, match="but spread is spread over cuda:0, cuda:1: leave the control out"
    ):
        wants_untrained_control(spread, True)
    packed = LocalModel(model([10], quantization_config={"bits": 4}), None, "packed", "r")
    assert not wants_untrained_control(packed, None)
    with pytest.raises(ValueError, match="but packed is quantised"):
        wants_untrained_control(packed, True)


def model(sizes: list[int], *, quantization_config: Any = None, **given: Any) -> Any:
    parameters = [SimpleNamespace(numel=lambda size=size: size) for size in sizes]
    config = SimpleNamespace(quantization_config=quantization_config)
    return SimpleNamespace(parameters=lambda: parameters, config=config, **given)
