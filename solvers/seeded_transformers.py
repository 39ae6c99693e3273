"""Sampling of Inspect's `hf/…` models: temperature, seed and the reason why a reply ended.

Inspect samples every call of an `hf/…` model, or with `-M do_sample=false` none; transformers
refuses to sample at temperature 0; and the seed of a call is lost. Here each call says all three.
Calls wait in one queue and are computed together, those with equal settings and seed in one batch:
with `--max-connections 1` a run repeats itself exactly.

Nor does Inspect say why a reply of an `hf/…` model ended, or what transformers was asked: both are
added here.
"""

import functools
from contextvars import ContextVar
from typing import Any

from inspect_ai.model import GenerateConfig, Model, ModelCall, ModelOutput, StopReason

_call_seed: ContextVar[int | None] = ContextVar("_call_seed", default=None)
"""Seed of the call under way: the arguments that Inspect hands to transformers have no place for
it.
"""


def is_hugging_face(model: Model) -> bool:
    """Whether transformers computes this model inside the process."""
    return any(base.__name__ == "HuggingFaceAPI" for base in type(model.api).__mro__)


def set_sampling(model: Model, config: GenerateConfig) -> None:
    """Let the next call of this task to a Hugging Face model follow its temperature and seed.

    Args:
        model: Any model; others are left alone.
        config: Settings of the call.
    """
    if not is_hugging_face(model):
        return
    _call_seed.set(config.seed)
    api: Any = model.api
    if not isinstance(api.model, _SeededModel):
        api.model = _SeededModel(api.model, api.tokenizer)


def with_ending_and_request(
    api: Any, output: ModelOutput, config: GenerateConfig
) -> tuple[ModelOutput, ModelCall]:
    """Output of a Hugging Face model's provider, with the reason why the reply ended, and its
    request.

    The request holds transformers' arguments: no effort and no schema, for which it has none.

    Args:
        api: Provider of a model that `set_sampling` has met.
        output: Output of its `generate`; the reason is set in place.
        config: Settings of the call.
    """
    if output.choices and output.stop_reason == "unknown":
        output.choices[0].stop_reason = api.model.end_of(output, config.max_tokens)
    return output, ModelCall.create(_sent_settings(api, config), {})


def _sent_settings(api: Any, config: GenerateConfig) -> dict[str, Any]:
    """Settings of a call as `_generate_seeded` passes them on."""
    samples = api.do_sample
    if config.temperature is not None:
        samples = config.temperature != 0
    seed = None if config.temperature == 0 else _call_seed.get()
    sent: dict[str, Any] = {
        "do_sample": samples,
        "temperature": config.temperature,
        "seed": seed,
        "max_new_tokens": config.max_tokens,
        "logprobs": config.logprobs,
        "enable_thinking": api.enable_thinking,
    }
    return {name: value for name, value in sent.items() if value is not None}


class _SeededModel:
    """A transformers model whose `generate` knows the seed of its caller."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._is_cut: dict[int, bool] = {}
        """Whether a reply was cut, by `_reply_key`; for batches in which one reply used up the
        limit.
        """

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def generate(self) -> Any:
        """The `generate` that Inspect takes; calls with different arguments of a partial are never
        in one batch.
        """
        return functools.partial(_generate_seeded, self, seed=_call_seed.get())

    def end_of(self, output: ModelOutput, limit: int | None) -> StopReason:
        """Reason why a reply ended.

        Args:
            output: Output from Inspect: its tokens are those of the longest reply in its batch.
            limit: Largest number of tokens of a reply.

        Returns:
            "unknown" for a reply of which Inspect made something else (a call of a tool) in a batch
            that was cut.
        """
        if limit is None or output.usage is None:
            return "unknown"
        if output.usage.output_tokens < limit:
            return "stop"
        is_cut = self._is_cut.get(_reply_key(output.completion, limit))
        if is_cut is None:
            return "unknown"
        return "max_tokens" if is_cut else "stop"

    def note_ends(self, replies: Any, limit: int | None) -> None:
        """Keep which replies of a batch were cut.

        Args:
            replies: Tokens [reply, token]; a reply that ended earlier is filled up with padding.
            limit: Largest number of tokens of a reply.
        """
        if limit is None or replies.shape[1] < limit:
            return
        settings = self._model.generation_config
        end_tokens = (
            settings.eos_token_id
            if isinstance(settings.eos_token_id, list)
            else [settings.eos_token_id]
        )
        texts = self._tokenizer.batch_decode(
            replies, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        for text, last_token in zip(texts, replies[:, -1].tolist(), strict=True):
            self._is_cut[_reply_key(text, limit)] = last_token not in (
                *end_tokens,
                settings.pad_token_id,
            )


def _reply_key(text: str, limit: int) -> int:
    return hash((text, limit))


def _generate_seeded(model: _SeededModel, *, seed: int | None, **arguments: Any) -> Any:
    output = _generate_as_asked(model._model, seed=seed, **arguments)
    prompt_length = arguments["input_ids"].shape[1]
    model.note_ends(output.sequences[:, prompt_length:], arguments.get("max_new_tokens"))
    return output


def _generate_as_asked(
    model: Any,
    *,
    seed: int | None,
    do_sample: bool,
    temperature: float | None = None,
    **generate_arguments: Any,
) -> Any:
    if temperature == 0:
        unused = dict.fromkeys(
            ("temperature", "top_p", "top_k")
        )  # a model's own defaults, which sampling would read
        return model.generate(do_sample=False, **{**generate_arguments, **unused})
    from transformers import set_seed

    if seed is not None:
        set_seed(seed)
    if temperature is None:
        return model.generate(do_sample=do_sample, **generate_arguments)
    return model.generate(do_sample=True, temperature=temperature, **generate_arguments)
