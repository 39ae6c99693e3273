"""Inspect's `hf/…` models, asked as a method wants: greedy at temperature 0, above it drawn with the call's seed.

Inspect samples every call of such a model, or with `-M do_sample=false` none; transformers refuses to sample at
temperature 0; and the seed of a call is lost. Here each call says all three. Calls wait in one queue and are computed
together, those with equal settings and seed in one batch: with `--max-connections 1` a run repeats itself exactly.
"""

import functools
from contextvars import ContextVar
from typing import Any

from inspect_ai.model import GenerateConfig, Model

_seed: ContextVar[int | None] = ContextVar("_seed", default=None)
"""Of the call under way: the arguments that Inspect hands to transformers have no place for it."""


def is_hugging_face(model: Model) -> bool:
    """Whether transformers computes this model inside the process."""
    return any(one.__name__ == "HuggingFaceAPI" for one in type(model.api).__mro__)


def as_told(model: Model, config: GenerateConfig) -> None:
    """Let the next call of this task to a Hugging Face model follow its temperature and seed.

    Args:
        model: Any model; others are left alone.
        config: Of the call.
    """
    if not is_hugging_face(model):
        return
    _seed.set(config.seed)
    api: Any = model.api
    if not isinstance(api.model, _Told):
        api.model = _Told(api.model)


class _Told:
    """A transformers model whose `generate` knows the seed of the call that asks for it."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def generate(self) -> Any:
        """As Inspect takes it; calls with different arguments of a partial are never in one batch."""
        return functools.partial(_generate, self._model, seed=_seed.get())


def _generate(model: Any, *, seed: int | None, do_sample: bool, temperature: float | None = None, **rest: Any) -> Any:
    if temperature == 0:
        unused = dict.fromkeys(("temperature", "top_p", "top_k"))  # a model's own defaults, which sampling would read
        return model.generate(do_sample=False, **{**rest, **unused})
    from transformers import set_seed

    if seed is not None:
        set_seed(seed)
    if temperature is None:
        return model.generate(do_sample=do_sample, **rest)
    return model.generate(do_sample=True, temperature=temperature, **rest)
