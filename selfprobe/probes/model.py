"""A judge model in plain transformers: loading, blocks and final norm, precision, untrained copy,
memory.

A probe reads how φ⁺ − φ⁻ differs from pair to pair. For SmolLM2 in bfloat16 a fifth to a quarter of
it is rounding from the middle blocks on, and half of that with the residual stream in float32,
which is therefore the default; see docs/statistics.md for what it costs a score.

judge = load_model("smollm2")                                    # the embedded model's file
judge = load_model("meta-llama/Llama-3.1-8B-Instruct", device_map="auto", dtype="bfloat16")

What a probe reaches on states of the untrained copy was in the words and their places already: a
random network passes them on.
"""

import hashlib
import json
import logging
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from selfprobe.probes.tokens import (
    PLAIN_CHAT,
    THINKING_ARGUMENTS,
    Chat,
    opened_chat_unchecked,
    template_arguments,
    thinking_switches,
)
from selfprobe.text.counts import count_text

logger = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HALVES = (torch.bfloat16, torch.float16)
"""Types of half precision."""
BLOCK_LIST_NAMES = ("layers", "h", "blocks")
"""Names under which decoders hold the list of their blocks."""
FINAL_NORMS = (
    "norm", "norm_f", "ln_f", "ln_out", "out_norm", "final_norm", "final_layer_norm",
    "final_layernorm", "layer_norm", "layernorm", "embedding_norm",
)  # fmt: skip
"""Names of the final norm in Llama, Mamba, GPT-2, RWKV, xLSTM, ModernBERT, GPT-NeoX, Phi, BioGPT,
CTRL and LFM2.
"""


def _block_list(module: Any) -> nn.ModuleList | None:
    """The list of decoder blocks that lies directly in `module`."""
    for name in BLOCK_LIST_NAMES:
        block_list = getattr(module, name, None)
        if isinstance(block_list, nn.ModuleList):
            return block_list
    return None


def _decoder_of(model: Any) -> Any:
    """The module that holds the decoder blocks: what `get_decoder` gives, or what lies in it, or
    the base model.
    """
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else model
    inner_model, base_model = getattr(decoder, "model", None), getattr(model, "base_model", None)
    for module in (decoder, inner_model, base_model):
        if _block_list(module) is not None:
            return module
    child_names = ", ".join(name for name, _ in decoder.named_children())
    raise ValueError(
        f"expected a decoder with its blocks in one of {', '.join(BLOCK_LIST_NAMES)}, got "
        f"{type(decoder).__name__} with {child_names}: not a decoder-only text model?"
    )


def missing_block_text(model_name: str, block_count: int, argument: str) -> str:
    """Error line on an `argument` that names a block which a model does not have."""
    return f"{model_name} has blocks 0..{block_count - 1}, got {argument}"


def decoder_blocks(model: Any) -> Any:
    """`model.model.layers` of Llama, Gemma, Qwen, Mistral …; `h` or `blocks` of the decoder
    elsewhere.
    """
    return _block_list(_decoder_of(model))


def final_norm(model: Any) -> Any:
    """The norm between the last block and the output; ValueError where a model has none under a
    known name.
    """
    decoder = _decoder_of(model)
    for name in FINAL_NORMS:
        norm = getattr(decoder, name, None)
        if norm is not None:
            return norm
    raise ValueError(
        f"{type(model).__name__} has no final norm beside its blocks (none of "
        f"{', '.join(FINAL_NORMS)}), so its states cannot be ablated or read through it"
    )


def keep_residual(model: Any) -> bool:
    """Keep the residual stream of `model` (half precision) in float32 from now on; False where its
    blocks take none.

    Weights and computations within a block keep their type: norms read float32 and give half
    precision, and what a block adds to the stream is added in float32.
    """
    decoder = _decoder_of(model)
    blocks = decoder_blocks(model)
    embedding = model.get_input_embeddings()
    handles = [embedding.register_forward_hook(_as_float32)]
    modules_after_blocks = [
        module
        for module in decoder.children()
        if module is not blocks and not isinstance(module, nn.Embedding)
    ]
    for owner in (*blocks, *modules_after_blocks):
        for module in owner.modules():
            class_name = type(module).__name__.lower()
            if "norm" in class_name:
                handles += _narrowing_hooks(module, next(owner.parameters(), None))
            elif "rotary" in class_name:
                handles += _narrowing_hooks(module, next(blocks.parameters()))
    try:
        some_ids = torch.tensor([[1, 2, 3]], device=embedding.weight.device)
        with torch.inference_mode(), _recorded_dtypes(blocks) as block_dtypes:
            model(input_ids=some_ids)
        if all(dtype == torch.float32 for dtype in block_dtypes):
            return True
    except (AttributeError, RuntimeError, TypeError, ValueError):
        pass  # the blocks of this family take no float32 stream: it was tried, and is undone
    for handle in handles:
        handle.remove()
    return False


def _as_float32(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
    """Forward hook: the output in float32."""
    return output.float()


def _narrowing_hooks(module: Any, weight: Tensor | None) -> list[Any]:
    """Hooks that give `module`'s output in the dtype that `weight` has then, and a LayerNorm its
    input too.
    """
    if weight is None:
        return []

    def narrowed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(narrowed(part) for part in value)
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.to(weight.dtype)
        return value

    handles = [module.register_forward_hook(lambda _module, _inputs, output: narrowed(output))]
    # torch's own takes no input of another dtype than its weights
    if isinstance(module, nn.LayerNorm):
        handles.append(module.register_forward_pre_hook(lambda _module, inputs: narrowed(inputs)))
    return handles


@contextmanager
def _recorded_dtypes(blocks: Any) -> Iterator[list[torch.dtype]]:
    """The dtype of each block's state."""
    block_dtypes: list[torch.dtype] = []

    def record_dtype(_module: Any, _inputs: Any, output: Any) -> None:
        hidden = output[0] if isinstance(output, (tuple, list)) else output
        block_dtypes.append(hidden.dtype)

    handles = [block.register_forward_hook(record_dtype) for block in blocks]
    try:
        yield block_dtypes
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def in_float32(model: Any) -> Iterator[None]:
    """Context in which a model of half precision computes in float32 on the same weights, widened a
    block at a time.

    It takes one more block's memory in float32, so that a large model has a reference too.
    """
    decoder, half_dtype = _decoder_of(model), model.dtype
    widened_tensors: dict[int, list[Tensor]] = {}
    """id of a module → its tensors that are float32 at the moment."""

    def widen(module: Any, *_: Any) -> None:
        all_tensors = (*module.parameters(), *module.buffers())
        half_tensors = [tensor for tensor in all_tensors if tensor.dtype == half_dtype]
        widened_tensors[id(module)] = half_tensors
        for tensor in half_tensors:
            tensor.data = tensor.data.float()

    def narrow(module: Any, *_: Any) -> None:
        # lossless: the values were of half precision
        for tensor in widened_tensors.pop(id(module), ()):
            tensor.data = tensor.data.to(half_dtype)

    owners = list(decoder_blocks(model))
    for module in decoder.children():
        if not isinstance(module, (nn.ModuleList, nn.Embedding)):
            owners.append(module)
    output_layer = model.get_output_embeddings()
    if output_layer is not None:
        owners.append(output_layer)

    handles = [model.get_input_embeddings().register_forward_hook(_as_float32)]
    for owner in owners:
        handles.append(owner.register_forward_pre_hook(widen, prepend=True))
        handles.append(owner.register_forward_hook(narrow))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for owner in owners:
            narrow(owner)


@dataclass(frozen=True)
class LocalModel:
    """A model whose states are read, with its identity."""

    model: Any
    """A causal language model of transformers, in eval mode."""
    tokenizer: Any
    """Tokenizer of the model; has a chat template."""
    name: str
    """Name that was asked for: hub name, path, or "smollm2"."""
    revision: str
    """Commit on the hub, or a fingerprint of local weights. States and probes are tied to it."""
    chat: Chat = PLAIN_CHAT
    """Content of its chat template besides the comparison."""
    layers: tuple[int, ...] = ()
    """Numbers (from 0) of the blocks whose states are kept; none: all."""
    has_float32_residual: bool = False
    """Whether its residual stream, and so its states, are float32 though its weights are not; see
    `precision`.
    """

    @property
    def blocks(self) -> Any:
        """The decoder blocks whose states are kept, first to last."""
        all_blocks = decoder_blocks(self.model)
        if not self.layers:
            return all_blocks
        return [all_blocks[number] for number in self.layers]

    @property
    def block_numbers(self) -> tuple[int, ...]:
        """Numbers of `blocks`, from 0."""
        return self.layers or tuple(range(len(self.blocks)))

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights, as they are loaded."""
        return sum(weight.numel() * weight.element_size() for weight in self.model.parameters())

    @property
    def size_line(self) -> str:
        """Its name, the number of blocks whose states are kept, and the width of a state."""
        kept_count = len(self.blocks)
        block_count = len(decoder_blocks(self.model))
        blocks_text = count_text(block_count, "block")
        if kept_count < block_count:
            blocks_text = f"{kept_count} of {blocks_text}"
        return f"{self.name}: {blocks_text} of width {self.d_model}"

    @property
    def precision(self) -> str:
        """Type of its states, and the quantisation of its weights, if any."""
        precision = str(self.model.dtype).removeprefix("torch.")
        quantisation = getattr(self.model.config, "quantization_config", None)
        if quantisation is not None:
            is_4bit = getattr(quantisation, "load_in_4bit", False)
            precision += "+4bit" if is_4bit else "+8bit"
        if self.has_float32_residual:
            precision += "+float32"
        return precision

    @property
    def stream(self) -> int | None:
        """Which of several streams [stream, row, token, d_model] is the state; None: the blocks
        give one (most do).
        """
        return getattr(self.model.config.get_text_config(), "altup_active_idx", None)  # Gemma 3n

    @property
    def d_model(self) -> int:
        """Width of a state."""
        config = self.model.config.get_text_config()
        hidden_size = getattr(config, "hidden_size", None)
        return int(hidden_size or self.model.get_input_embeddings().weight.shape[1])

    @property
    def dtype(self) -> torch.dtype:
        """Type of its weights."""
        weight_dtype: torch.dtype = self.model.dtype
        return weight_dtype

    @property
    def device(self) -> torch.device:
        """Device for its inputs."""
        input_device: torch.device = self.model.get_input_embeddings().weight.device
        return input_device

    @property
    def context(self) -> int:
        """Longest input in tokens; the largest int64 where the config names none."""
        config = self.model.config.get_text_config()
        longest = getattr(config, "max_position_embeddings", None)
        return int(longest or torch.iinfo(torch.int64).max)


def _converted(gguf: Path) -> Path:
    """The folder with `gguf`'s weights as float32 safetensors; made at the first call (about half a
    minute).

    `save_pretrained` refuses a model that was loaded from GGUF (its config says it is quantised),
    so a fresh model is built from the config without that note and takes over the weights.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from selfprobe.embed.weights import cache_folder

    sha256 = _sha256(gguf)
    folder = cache_folder() / "converted" / f"{gguf.stem}-{sha256[:16]}"
    if (folder / "config.json").is_file():
        return folder
    logger.warning("converting %s to safetensors in %s (once)", gguf.name, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    except (IndexError, KeyError, OSError, ValueError, struct.error) as error:
        first_line = str(error).partition("\n")[0]
        raise ValueError(
            f"{gguf} cannot be converted, as it is damaged or of a kind unknown here "
            f"({type(error).__name__}: {first_line})"
        ) from error

    settings = model.config.to_dict()
    settings.pop("quantization_config", None)
    fresh_config = type(model.config).from_dict(settings)
    fresh_model = AutoModelForCausalLM.from_config(fresh_config, dtype=torch.float32)
    fresh_model.load_state_dict(model.state_dict())
    fresh_model.tie_weights()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        new_folder = Path(scratch) / "model"
        fresh_model.save_pretrained(new_folder)
        tokenizer.save_pretrained(new_folder)
        source = json.dumps({"gguf": gguf.name, "sha256": sha256})
        (new_folder / "source.json").write_text(source)
        try:
            new_folder.rename(folder)
        except OSError:  # another process was faster: its folder is the same
            if not (folder / "config.json").is_file():
                raise
            shutil.rmtree(new_folder)
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_model(
    name: str,
    *,
    revision: str | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    device_map: str | None = None,
    attention: str | None = None,
    allow_pickle: bool = False,
    quantize: Literal["4bit", "8bit"] | None = None,
    chat: Chat = PLAIN_CHAT,
    layers: tuple[int, ...] = (),
) -> LocalModel:
    """Load `name` for reading its states; no remote code is run.

    `device_map` (accelerate's, e.g. "auto") spreads a model over devices and overrides `device`.
    `attention` is transformers' `attn_implementation`; the default is sdpa, and eager where a model
    has no sdpa (Gemma 2's soft-capping). In half precision the residual stream is float32 where the
    model takes it. Weights that exist only as pickle are refused unless `allow_pickle`: loading one
    can run code. `quantize` loads with bitsandbytes, whose kernels compute in `dtype` (take
    bfloat16), those of 8bit in float16. `chat` goes into the chat template; `layers` are the blocks
    whose states are kept (none: all).
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    _check_device(device)
    source = weights_source(name)
    if revision and Path(source).is_dir():
        raise ValueError(
            f"{name} is no hub model, so it has no revision {revision}: leave --revision out"
        )
    if not allow_pickle:
        _refuse_pickle(source)
    tokenizer = _tokenizer(source, revision or "main", name)
    _check_template(tokenizer, name, chat)
    auto_class = _auto_class(_configuration(source, revision or "main", name), name)

    settings: dict[str, Any] = {
        "revision": revision or "main",
        "dtype": DTYPES[dtype],
        "attn_implementation": attention,
    }
    if quantize:
        settings["device_map"] = device_map or {"": device}
        settings["quantization_config"] = _quantisation(quantize, DTYPES[dtype])
    elif device_map:
        settings["device_map"] = device_map
    model = _loaded_weights(auto_class, source, name, allow_pickle, settings)
    if not device_map and not quantize:
        model = model.to(device)
    model.requires_grad_(False)
    model.eval()

    commit = getattr(model.config, "_commit_hash", None)
    weights_revision = str(commit or fingerprint(Path(source)))
    judge = local_model(model, tokenizer, name=name, revision=weights_revision, chat=chat)
    if not set(layers) <= set(judge.block_numbers):
        asked_layers = ", ".join(str(layer) for layer in layers)
        block_count = len(judge.block_numbers)
        raise ValueError(missing_block_text(name, block_count, f"layers {asked_layers}"))
    return replace(
        judge,
        layers=tuple(sorted(set(layers))),
        has_float32_residual=_keep_residual_or_warn(model, name),
    )


def _configuration(source: str, revision: str, name: str) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(source, revision=revision)
    except (OSError, ValueError, KeyError) as error:
        raise model_not_loaded(name, error) from error


def _auto_class(config: Any, name: str) -> Any:
    """transformers' class that loads a model: of causal language models, else of images and text,
    whose text alone is read.

    Raises:
        ValueError: It is neither.
    """
    from transformers import (
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
    )

    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        return AutoModelForCausalLM
    if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return AutoModelForImageTextToText
    raise ValueError(
        f"{name} is a model of type {config.model_type}, which reads no text from left to right: "
        "take a causal language model, or one of images and text, that transformers itself has"
    )


def _loaded_weights(
    auto_class: Any, source: str, name: str, allow_pickle: bool, settings: dict[str, Any]
) -> Any:
    """The model of transformers; ValueError where there is none, or only a pickle that is not
    allowed.
    """
    use_safetensors = None if allow_pickle else True
    try:
        return auto_class.from_pretrained(source, use_safetensors=use_safetensors, **settings)
    except SafetensorError as error:
        raise ValueError(
            f"weights of {name} are damaged ({_first_line(error)}): fetch or copy them again"
        ) from error
    except OSError as error:
        if allow_pickle or "safetensors" not in str(error):
            raise model_not_loaded(name, error) from error
        raise ValueError(
            f"{name} has no safetensors weights, and pickle is refused unless allowed: "
            f"{_first_line(error)}"
        ) from error
    except ImportError as error:  # transformers says by it that a kernel is not installed
        attention = settings["attn_implementation"]
        if attention is None:
            raise
        raise ValueError(
            f"attention {attention} cannot be used here: {_first_line(error)} "
            "Leave --attention out, or take sdpa or eager"
        ) from error


def _keep_residual_or_warn(model: Any, name: str) -> bool:
    """Whether the residual stream is float32 though the weights are of half precision; a warning
    where it cannot be.
    """
    is_quantised = getattr(model.config, "quantization_config", None) is not None
    if model.dtype not in HALVES or is_quantised:
        return False
    is_kept = keep_residual(model)
    if not is_kept:
        logger.warning(
            "%s rounds its states at every block: its residual stream cannot be kept in float32",
            name,
        )
    return is_kept


def _quantisation(bits: Literal["4bit", "8bit"], dtype: torch.dtype) -> Any:
    """transformers' settings of bitsandbytes; ValueError where it is not installed."""
    from importlib.util import find_spec

    from transformers import BitsAndBytesConfig

    if find_spec("bitsandbytes") is None:
        raise ValueError(
            "quantised loading needs bitsandbytes: pip install bitsandbytes (Linux and Windows "
            "with an NVIDIA, AMD or Intel GPU; slower on a CPU; no wheel for some machines). "
            "Or load a smaller model, or bfloat16"
        )
    if bits == "8bit":  # it computes in float16, and says so in every layer of every batch
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
    )


def local_model(
    model: Any, tokenizer: Any, *, name: str, revision: str, chat: Chat = PLAIN_CHAT
) -> LocalModel:
    """A `LocalModel` from a loaded model and tokenizer, if the tokenizer has a chat template."""
    _check_template(tokenizer, name, chat)
    return LocalModel(model, tokenizer, name, revision, chat)


def without_bars() -> None:
    """Keep transformers from showing progress bars, as a command has lines of its own."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def _check_template(tokenizer: Any, name: str, chat: Chat) -> None:
    if not getattr(tokenizer, "chat_template", None):
        raise ValueError(
            f"{name} has no chat template, so there is no assistant's turn to put a text in: "
            "use the instruction-tuned version of the model"
        )
    known_arguments = template_arguments(tokenizer)
    unknown_arguments = [name for name in chat.arguments if name not in known_arguments]
    if unknown_arguments:
        advice = "leave it out"
        switches = thinking_switches(tokenizer)
        if switches:
            advice = f"leave it out. It takes {switches[0]}: --template-arg {switches[0]}=false"
        raise ValueError(
            f"the chat template of {name} has no argument {', '.join(unknown_arguments)}: "
            f"it would change nothing; {advice}"
        )
    for argument in THINKING_ARGUMENTS:
        value = chat.arguments.get(argument, False)
        if not isinstance(value, bool):
            raise ValueError(
                f"--template-arg {argument} must be true or false, got {value}: false reads an "
                "answer after an empty thought"
            )
    user_texts = ("one", "two")
    if len({opened_chat_unchecked(tokenizer, user_text, chat) for user_text in user_texts}) == 1:
        raise ValueError(
            f"the chat template of {name} leaves the user's turn out, so that no pair would be seen"
        )


def _check_device(device: str) -> None:
    is_available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    kind = device.partition(":")[0]
    if not is_available.get(kind, False):
        available_kinds = ", ".join(kind for kind, available in is_available.items() if available)
        raise ValueError(
            f"no device {device!r} here: this machine's torch has {available_kinds}; "
            "take one of these (--device)"
        )


def fingerprint(folder: Path) -> str:
    """Short hash of a local model's config and all its weights: a merge may differ in one layer."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    if not files:
        raise ValueError(
            f"{folder} has no weights (*.safetensors); expected a folder made by save_pretrained"
        )
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for file in files:
        with file.open("rb") as stream:
            digest.update(file.name.encode() + hashlib.file_digest(stream, "sha256").digest())
    return f"local-{digest.hexdigest()[:16]}"


def _tokenizer(source: str, revision: str, name: str) -> Any:
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(source, revision=revision)
    except (OSError, ValueError) as error:
        raise model_not_loaded(name, error) from error
    if not tokenizer.chat_template:
        tokenizer.chat_template = _processor_template(source, revision)
    return tokenizer


def _processor_template(source: str, revision: str) -> str | None:
    """The chat template that lies beside a model of images, for its processor alone."""
    from transformers.utils import cached_file

    path = cached_file(
        source,
        "chat_template.json",
        revision=revision,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    if path is None:
        return None
    template: str | None = json.loads(Path(path).read_text("utf-8")).get("chat_template")
    return template


def model_not_loaded(name: str, error: Exception) -> ValueError:
    """The error of a name that transformers finds no model at, with its own message in one line."""
    return ValueError(
        f"no model {name!r}: expected smollm2, a folder of save_pretrained, a .gguf file, or the "
        "name of a model on the hub that can be reached (gated ones after `hf auth login`). "
        f"transformers says: {_first_sentence(error)}"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _first_sentence(error: Exception) -> str:
    """The first line of a message; all of it in one line where the first ends in a colon."""
    first_line = _first_line(error)
    if first_line.endswith(":"):
        return " ".join(str(error).split())
    return first_line


def weights_source(name: str) -> str:
    """A hub name, or the folder to load from; GGUF files are converted once."""
    if name in ("smollm2", "embedded/smollm2"):
        from selfprobe.embed.weights import fetch

        return str(_converted(fetch()))
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise FileNotFoundError(f"no GGUF file at {path}: check the path (--model)")
        return str(_converted(path))
    if path.is_dir():
        _refuse_folder_without_model(path)
        return str(path)
    if path.is_absolute() or name.startswith((".", "~")):
        raise FileNotFoundError(
            f"no model folder at {path}: give one of save_pretrained, a .gguf file or a hub name"
        )
    return name


MODEL_FOLDER_FILES = ("config.json", "adapter_config.json")
"""Files of which a folder that transformers loads a model from has one."""


def _refuse_folder_without_model(folder: Path) -> None:
    if any((folder / name).is_file() for name in MODEL_FOLDER_FILES):
        return
    gguf_files = sorted(folder.glob("*.gguf"))
    if gguf_files:
        remedy = f"it holds a .gguf: give that file, {gguf_files[0]}"
    else:
        remedy = "expected a folder of save_pretrained, a .gguf file or a hub name"
    raise ValueError(f"no config.json in {folder}: {remedy}")


def _refuse_pickle(source: str) -> None:
    folder = Path(source)
    if not folder.is_dir() or any(folder.glob("*.safetensors")):
        return
    pickle_names = sorted(
        file.name for file in folder.iterdir() if file.suffix in (".bin", ".pt", ".pth", ".ckpt")
    )
    if pickle_names:
        raise ValueError(
            f"{folder} has its weights only as pickle ({', '.join(pickle_names)}), and loading one "
            "can run any code. Convert it to safetensors, or allow pickle if you trust its author"
        )


UNTRAINED_CONTROL_PARAMETERS = 1_000_000_000
"""Number of parameters up to which the control is made unless it is refused."""


def wants_untrained_control(judge: LocalModel, asked: bool | None) -> bool:
    """Whether to make the control: as asked; default: for a model with at most
    `UNTRAINED_CONTROL_PARAMETERS` parameters.

    Raises:
        ValueError: It is asked for, and the model is spread over devices or quantised.
    """
    device_map = getattr(judge.model, "hf_device_map", {})
    devices = sorted({str(device) for device in device_map.values()})
    is_quantised = getattr(judge.model.config, "quantization_config", None) is not None
    cannot_be_made = len(devices) > 1 or is_quantised
    if asked and cannot_be_made:
        obstacle = "quantised" if is_quantised else f"spread over {', '.join(devices)}"
        raise ValueError(
            "random weights are made on one device and in full precision, but "
            f"{judge.name} is {obstacle}: leave the control out"
        )
    if asked is not None:
        return asked
    if cannot_be_made:
        return False
    parameter_count = int(sum(weights.numel() for weights in judge.model.parameters()))
    return parameter_count <= UNTRAINED_CONTROL_PARAMETERS


def random_weights(judge: LocalModel, *, seed: int = 0) -> LocalModel:
    """The judge with random weights, drawn as before its training by its own config; as large as
    the judge.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = type(judge.model)(deepcopy(judge.model.config))
    model = model.to(device=judge.device, dtype=judge.model.dtype).eval().requires_grad_(False)
    if judge.has_float32_residual:
        keep_residual(model)
    return replace(named_untrained(judge, seed=seed), model=model)


def named_untrained(judge: LocalModel, *, seed: int = 0) -> LocalModel:
    """The judge under the name and revision of its control, to plan its harvest; the weights are
    still the judge's.
    """
    revision = f"{judge.revision}-random-{seed}"
    return replace(judge, name=f"{judge.name} with random weights", revision=revision)


QUANTISED_WEIGHT_BYTES = {"4bit": 0.6, "8bit": 1.1}
"""Bytes of a quantised weight, with its scales and what is left in half precision."""
READING_MEMORY_FACTOR = 1.15
"""Largest factor of memory for reading, over the weights alone."""
TRAINED_NUMBER_BYTES = 16
"""Bytes per trained number: an adapter's with its gradient and two means, all in float32; or a
weight's gradient, its two means, and the copy from which it is restored.
"""


def check_memory(
    name: str, loading: dict[str, Any], *, learns: Literal["full", "lora"] | None = None
) -> None:
    """ValueError where the weights of `name` do not fit into free memory; nothing is loaded.

    `learns`: what is to be trained: all weights, which only float32 can, or adapters, which float16
    cannot. What the configuration does not show is left to loading, which reports what is wrong.
    """
    precision = loading["quantize"] or loading["dtype"]
    if learns == "lora" and loading["dtype"] == "float16":
        raise ValueError("float16 loses small gradients: train in bfloat16 or float32 (--dtype)")
    if learns == "full" and precision != "float32":
        raise ValueError(
            f"all weights are trained in float32 alone, got {precision}: a step is smaller than "
            "what that rounds. Take --dtype float32 without --quantize, or adapters "
            "(without --full)"
        )
    weight_count = _weight_count(name, loading)
    if weight_count is None:
        return

    if loading["quantize"]:
        weight_bytes = QUANTISED_WEIGHT_BYTES[loading["quantize"]]
    else:
        weight_bytes = float(DTYPES[loading["dtype"]].itemsize)
    needed_bytes = weight_count * weight_bytes * READING_MEMORY_FACTOR
    if learns == "full":
        needed_bytes += weight_count * TRAINED_NUMBER_BYTES
    free_bytes = _free_bytes(loading)
    if not free_bytes or needed_bytes <= free_bytes:
        return

    where = "over all devices" if loading["device_map"] else f"on {loading['device']}"
    training_note = ", all of its weights trained" if learns == "full" else ""
    if learns == "full":
        advice = "adapters (without --full)"
    else:
        advice = "--dtype bfloat16, --quantize 4bit, --device-map auto"
    raise ValueError(
        f"{name} needs about {bytes_text(int(needed_bytes))} of memory in {precision}{training_note}, "
        f"and {bytes_text(free_bytes)} are free {where}: try {advice}, or a smaller model"
    )


def _free_bytes(loading: dict[str, Any]) -> int:
    """Free memory where the model would be loaded; 0 where it is unknown."""
    from accelerate.utils import get_max_memory

    free_by_place = {str(place): int(free) for place, free in get_max_memory().items()}
    if loading["device_map"]:
        return sum(free_by_place.values())
    device = loading["device"]
    if not device.startswith("cuda"):
        return free_by_place.get("cpu", 0)
    return free_by_place.get(device.partition(":")[2] or "0", 0)


def _weight_count(name: str, loading: dict[str, Any]) -> int | None:
    """Number of weights, from the configuration alone; None where there is none to read."""
    try:
        config = _configuration(weights_source(name), loading["revision"] or "main", name)
        auto_class = _auto_class(config, name)
        with torch.device("meta"):
            model = auto_class.from_config(config)
    except (OSError, ValueError, KeyError):
        return None
    return int(sum(weights.numel() for weights in model.parameters()))


def bytes_text(byte_count: int) -> str:
    """`1.2 GB`, `35 MB`."""
    if byte_count >= 1e9:
        return f"{byte_count / 1e9:.1f} GB"
    return f"{byte_count / 1e6:.0f} MB"
