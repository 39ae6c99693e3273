"""Inspect's `hf/…` models, asked as a method wants: greedy at temperature 0, above it drawn with the call's seed.

Inspect samples every call of such a model, or with `-M do_sample=false` none; transformers refuses to sample at
temperature 0; and the seed of a call is lost. Here each call says all three. Calls wait in one queue and are computed
together, those with equal settings and seed in one batch: with `--max-connections 1` a run repeats itself exactly.

Nor does Inspect say why a reply of such a model ended, or what transformers was told: both are added here.
"""

import functools
from contextvars import ContextVar
from typing import Any

from inspect_ai.model import GenerateConfig, Model, ModelCall, ModelOutput, StopReason

_seed: ContextVar[int | None] = ContextVar("_seed", default=None)
"""Seed of the call under way: the arguments that Inspect hands to transformers have no place for it."""


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
        api.model = _Told(api.model, api.tokenizer)


def reported(api: Any, output: ModelOutput, config: GenerateConfig) -> tuple[ModelOutput, ModelCall]:
    """The output of a Hugging Face model's provider, with the reason why the reply ended, and its request.

    The request is what transformers was told: no effort and no schema, for which it has no argument.

    Args:
        api: Provider of a model that `as_told` has met.
        output: What its `generate` gave; the reason is set in place.
        config: Settings of the call.
    """
    if output.choices and output.stop_reason == "unknown":
        output.choices[0].stop_reason = api.model.end_of(output, config.max_tokens)
    return output, ModelCall.create(_request(api, config), {})


def _request(api: Any, config: GenerateConfig) -> dict[str, Any]:
    """The settings of a call as `_generate` passes them on."""
    told: dict[str, Any] = {
        "do_sample": api.do_sample if config.temperature is None else config.temperature != 0,
        "temperature": config.temperature,
        "seed": None if config.temperature == 0 else _seed.get(),
        "max_new_tokens": config.max_tokens,
        "logprobs": config.logprobs,
        "enable_thinking": api.enable_thinking,
    }
    return {name: value for name, value in told.items() if value is not None}


class _Told:
    """A transformers model whose `generate` knows the seed of the call that asks for it."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._cut: dict[int, bool] = {}
        """Whether a reply was cut, by `_key`; of batches in which one reply used up the limit."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def generate(self) -> Any:
        """The `generate` that Inspect takes; calls with different arguments of a partial are never in one batch."""
        return functools.partial(_generate, self, seed=_seed.get())

    def end_of(self, output: ModelOutput, limit: int | None) -> StopReason:
        """Why a reply ended.

        Args:
            output: As Inspect returns it: its tokens are those of the longest reply in its batch.
            limit: Most tokens of a reply.

        Returns:
            "unknown" for a reply of which Inspect made something else (a call of a tool) in a batch that was cut.
        """
        if limit is None or output.usage is None:
            return "unknown"
        if output.usage.output_tokens < limit:
            return "stop"
        cut = self._cut.get(_key(output.completion, limit))
        return "unknown" if cut is None else "max_tokens" if cut else "stop"

    def note_ends(self, replies: Any, limit: int | None) -> None:
        """Remember which replies of a batch were cut.

        Args:
            replies: Tokens [reply, token]; a reply that ended earlier is filled up with padding.
            limit: Most tokens of a reply.
        """
        if limit is None or replies.shape[1] < limit:
            return
        settings = self._model.generation_config
        ends = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
        texts = self._tokenizer.batch_decode(replies, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        for text, last in zip(texts, replies[:, -1].tolist(), strict=True):
            self._cut[_key(text, limit)] = last not in (*ends, settings.pad_token_id)


def _key(text: str, limit: int) -> int:
    return hash((text, limit))


def _generate(told: _Told, *, seed: int | None, **given: Any) -> Any:
    made = _followed(told._model, seed=seed, **given)
    told.note_ends(made.sequences[:, given["input_ids"].shape[1] :], given.get("max_new_tokens"))
    return made


def _followed(model: Any, *, seed: int | None, do_sample: bool, temperature: float | None = None, **rest: Any) -> Any:
    if temperature == 0:
        unused = dict.fromkeys(("temperature", "top_p", "top_k"))  # a model's own defaults, which sampling would read
        return model.generate(do_sample=False, **{**rest, **unused})
    from transformers import set_seed

    if seed is not None:
        set_seed(seed)
    if temperature is None:
        return model.generate(do_sample=do_sample, **rest)
    return model.generate(do_sample=True, temperature=temperature, **rest)
