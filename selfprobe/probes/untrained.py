"""The control that has learnt nothing: the same architecture, tokenizer and prompts, with random weights.

What a probe reaches on its states was in the words and their places already: a random network passes them on.
"""

from copy import deepcopy
from dataclasses import replace

import torch

from selfprobe.probes.model import LocalModel
from selfprobe.probes.precision import keep_residual

SMALL = 1_000_000_000
"""Parameters up to which the control is made unless it is refused."""


def wanted(judge: LocalModel, asked: bool | None) -> bool:
    """Whether to make the control: as asked, by default for a model with at most `SMALL` parameters.

    Raises:
        ValueError: It is asked for, and the model is spread over devices or quantised.
    """
    places = {str(place) for place in getattr(judge.model, "hf_device_map", {}).values()}
    quantised = getattr(judge.model.config, "quantization_config", None) is not None
    if asked and (len(places) > 1 or quantised):
        raise ValueError(
            f"random weights are made on one device and in full precision, but {judge.name} is "
            f"{'quantised' if quantised else 'spread over ' + ', '.join(sorted(places))}: leave the control out"
        )
    if asked is not None:
        return asked
    return len(places) < 2 and not quantised and sum(p.numel() for p in judge.model.parameters()) <= SMALL


def random_weights(judge: LocalModel, *, seed: int = 0) -> LocalModel:
    """The judge with weights drawn as before its training, by its own config; as large as the judge."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = type(judge.model)(deepcopy(judge.model.config))
    model = model.to(device=judge.device, dtype=judge.model.dtype).eval().requires_grad_(False)
    if judge.wide:
        keep_residual(model)
    return replace(named_untrained(judge, seed=seed), model=model)


def named_untrained(judge: LocalModel, *, seed: int = 0) -> LocalModel:
    """The judge under the name and revision of its control, to plan its harvest; the weights are still its own."""
    revision = f"{judge.revision}-random-{seed}"
    return replace(judge, name=f"{judge.name} with random weights", revision=revision)
