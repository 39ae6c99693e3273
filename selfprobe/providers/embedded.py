"""`embedded/smollm2` and `embedded//path/to/any.gguf`: models that llama.cpp serves inside this
process.

    inspect eval introspect_tasks/kth_word.py --model embedded/smollm2 -M threads=4
    inspect eval introspect_tasks/kth_word.py --model embedded//models/other.gguf --model-role target=embedded/smollm2

Model arguments (`-M`):
    slots         requests answered at once. Default 1: with more, temperature 0 is not repeatable.
    threads       CPU threads. Default all cores, at most four.
    context       tokens of prompt and answer together, for each slot. Default 8192, what SmolLM2 was trained on.
    prompt_cache  reuse what a prompt shares with the one before: faster. Default false: the shared part was computed in
                  other batches, which round differently, and logprobs move (by 0.08 in the test) with what was
                  asked before.

With the defaults, the same prompt, settings and seed give the same answer and logprobs. Sampling is
not truncated unless the request says so (llama.cpp would apply top-k 40, top-p .95 and min-p .05):
a sampled token comes from the distribution that the reported logprobs describe. A request without a
temperature gets llama.cpp's default, 0.8.
"""

import atexit
import functools
import os
import secrets
import threading
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig, ModelCall, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo
from openai import APIStatusError, AsyncOpenAI
from typing_extensions import override

from selfprobe.embed import weights
from selfprobe.errors.inspect_private import (
    OpenAICompatibleAPI,
    PrerequisiteError,
    active_controller,
)

SMOLLM2 = "smollm2"
MAX_TOKENS = 2048
"""Tokens of a reply where nobody sets a limit: a small model that falls into a loop would fill the
context, which takes minutes.
"""


@dataclass(frozen=True)
class ServerSettings:
    """Settings with which one server is started; handles with equal settings share it."""

    path: Path
    slots: int
    threads: int
    context: int
    prompt_cache: bool


class LlamaServer:
    """A running llama.cpp server: the weights, a loopback address and the key that it asks for.

    It ends with its last handle, or before the interpreter does.
    """

    def __init__(self, settings: ServerSettings) -> None:
        # Threads that wait sleep: while they spin, two threads on a busy machine write 25 times
        # slower than one.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(settings.path)
        params.model_alias = {settings.path.name}  # in replies, else the path on this machine
        params.n_parallel = settings.slots
        params.n_ctx = settings.context * settings.slots
        params.cpuparams.n_threads = settings.threads
        params.cpuparams_batch.n_threads = settings.threads
        params.cache_prompt = settings.prompt_cache
        params.cache_ram_mib = 0  # or up to 8 GB of earlier prompts
        params.fit_params = False  # sizes to the GPU's free memory: 0.3 s for nothing on a CPU
        params.sampling.top_k = 0
        params.sampling.top_p = 1.0
        params.sampling.min_p = 0.0
        params.hostnames = ["127.0.0.1"]  # with port 0, any free one
        params.ui = False
        # Other users and web pages of this machine can reach loopback too.
        self.key = secrets.token_hex(16)
        params.api_keys = [self.key]
        params.verbosity = 3 if os.environ.get("SELFPROBE_DEBUG") else -1
        try:
            self.server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise PrerequisiteError(
                f"llama.cpp could not load {settings.path}: {error} SELFPROBE_DEBUG=1 shows its "
                f"log."
            ) from error
        self.url = f"{self.server.listening_address}/v1"

    def stop(self) -> None:
        """End the server and its threads; open requests break off."""
        self.server = None


_running_servers: weakref.WeakValueDictionary[ServerSettings, LlamaServer] = (
    weakref.WeakValueDictionary()
)
_servers_lock = threading.Lock()


def serve(settings: ServerSettings) -> LlamaServer:
    """Return the running server of these settings, or start it."""
    with _servers_lock:
        server = _running_servers.get(settings)
        if server is None:
            server = LlamaServer(settings)
            _running_servers[settings] = server
        return server


@atexit.register
def _stop_all() -> None:
    """Join llama.cpp's threads while the interpreter can still do it."""
    for server in list(_running_servers.values()):
        server.stop()


def weights_path(model_name: str) -> Path:
    """The GGUF file that a model name stands for; SmolLM2's is fetched if it is not cached.

    Raises:
        PrerequisiteError: an unknown name, a path that is not a GGUF file, or weights that cannot
            be had.
    """
    if model_name == SMOLLM2:
        return _smollm2_path()
    path = Path(model_name).expanduser()
    expectation = (
        f"Expected embedded/{SMOLLM2}, or embedded/ and the absolute path of a GGUF file "
        f"(embedded//dir/x.gguf)"
    )
    if not path.is_absolute():
        raise PrerequisiteError(f"{expectation}; got embedded/{model_name}.")
    if not path.is_file():
        raise PrerequisiteError(f"{expectation}; there is no file {path}.")
    with path.open("rb") as file:
        first_bytes = file.read(4)
    if first_bytes != b"GGUF":
        raise PrerequisiteError(
            f"{expectation}; {path} begins with {first_bytes!r}, which is not GGUF."
        )
    return path.resolve()


@functools.cache
def _smollm2_path() -> Path:
    """Path of the weights, fetched and verified once a process, not for each handle."""
    return weights.fetch().resolve()


def default_threads() -> int:
    """The cores that this process may use, at most four: more wait for each other on a model this
    small.
    """
    if hasattr(os, "sched_getaffinity"):
        core_count = len(os.sched_getaffinity(0))
    else:
        core_count = os.cpu_count() or 1
    return min(core_count, 4)


class EmbeddedAPI(OpenAICompatibleAPI):
    """Inspect's OpenAI-compatible provider, pointed at a server in this process."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (Inspect's own signature)
        slots: int = 1,
        threads: int | None = None,
        context: int = 8192,
        prompt_cache: bool = False,
        **unknown: object,
    ) -> None:
        name = f"embedded/{model_name}"
        if base_url is not None:
            raise PrerequisiteError(
                f"{name} is served in this process and takes no base URL, got {base_url}."
            )
        if unknown:
            raise PrerequisiteError(
                f"{name} takes the model arguments slots, threads, context, prompt_cache; "
                f"got {', '.join(unknown)}."
            )
        if threads is None:
            threads = default_threads()
        for argument, value in (("slots", slots), ("threads", threads), ("context", context)):
            if not isinstance(value, int) or value < 1:
                raise PrerequisiteError(
                    f"{argument} of {name} must be a whole number from 1, got {value!r}."
                )
        self.settings = ServerSettings(
            weights_path(model_name), slots, threads, context, prompt_cache
        )
        self.slots = slots  # selfprobe's solvers open so many connections
        self.server = serve(self.settings)
        # Inspect's cache keys answers by base URL, and the server's port is new in every process.
        identity = f"http://embedded{self.settings.path}"
        super().__init__(model_name, identity, self.server.key, config, service="embedded")

    @override
    def _create_client(self) -> AsyncOpenAI:
        return super()._create_client().with_options(base_url=self.server.url)

    @property
    @override
    def schema_exclude_fields(self) -> set[str] | None:
        """Nothing is left out of a schema: llama.cpp enforces patterns and limits as it decodes."""
        return None

    @override
    def connection_key(self) -> str:
        """Key of the server: handles that share a server share its connections."""
        return self.server.url

    @override
    def max_connections(self) -> int:
        """Number of slots: so Inspect queues and no request spends its timeout waiting in the
        server.
        """
        return self.settings.slots

    @override
    def max_tokens(self) -> int | None:
        return MAX_TOKENS

    @override
    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        # Adaptive connections, Inspect's default, start at 20 and never ask the provider.
        # --max-connections wins.
        controller = active_controller.get()
        if controller is not None and controller.concurrency > self.settings.slots:
            controller.set_max(self.settings.slots)
        return await super().generate(input, tools, tool_choice, config)

    async def tokens_per_second(self) -> tuple[float, float]:
        """Tokens a second that the model reads and that it writes here, as busy as the machine is
        (two timed calls).
        """
        prompt: list[ChatMessage] = [ChatMessageUser(content="A word and another word. " * 20)]
        short_seconds, input_tokens = await self._seconds_and_input_tokens(prompt, 1)
        long_seconds, _ = await self._seconds_and_input_tokens(prompt, 25)
        writing_seconds = max(long_seconds - short_seconds, 1e-3)
        return input_tokens / short_seconds, 24 / writing_seconds

    async def _seconds_and_input_tokens(
        self, prompt: list[ChatMessage], max_tokens: int
    ) -> tuple[float, int]:
        start_time = time.monotonic()
        config = GenerateConfig(max_tokens=max_tokens, temperature=0)
        result = await self.generate(prompt, [], "none", config)
        output = result[0] if isinstance(result, tuple) else result
        usage = output.usage if isinstance(output, ModelOutput) else None
        seconds = time.monotonic() - start_time
        return seconds, usage.input_tokens if usage else 0

    @override
    def handle_bad_request(self, ex: APIStatusError) -> ModelOutput | Exception:
        if ex.type == "exceed_context_size_error":
            return ModelOutput.from_content(
                self.model_name, content=ex.message, stop_reason="model_length"
            )
        return super().handle_bad_request(ex)
