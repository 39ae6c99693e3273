"""Sentence embeddings of all-MiniLM-L6-v2 in NumPy: no torch, nothing to compile.

    vectors_of(["A reply."], weights.fetch(weights.MINILM).parent)  # [text, 384], as sentence-transformers returns them

Six layers of BERT, the mean over a text's tokens, unit length (Reimers & Gurevych 2019, arXiv:1908.10084). A text is
computed alone, so that its vector does not depend on which texts stand beside it.
"""

import functools
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import erf
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

LONGEST = 256
"""Tokens of a text that are read, as the model's authors set it; what follows is not."""
HEADS, LAYERS, EPSILON = 12, 6, np.float32(1e-12)

Array = npt.NDArray[np.float32]


def vectors_of(texts: Sequence[str], folder: Path) -> Array:
    """Unit vectors `[text, 384]` of the model in `folder` (its model.safetensors and tokenizer.json)."""
    tokenizer, weights = _loaded(folder)
    ids = (tokenizer.encode(text.encode(errors="replace").decode()).ids for text in texts)  # half a character is "?"
    # A text a core, and one BLAS thread a text: its matrices are too small to be shared out.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.stack(list(pool.map(lambda one: _embedded(one, weights), ids)))


@functools.cache
def _loaded(folder: Path) -> tuple[Tokenizer, dict[str, Array]]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    return tokenizer, read_safetensors(folder / "model.safetensors")


def read_safetensors(path: Path) -> dict[str, Array]:
    """The float32 tensors of a file (https://github.com/huggingface/safetensors#format), by name."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    tensors = {name: told for name, told in header.items() if told.get("dtype") == "F32"}
    places = {name: slice(*(start + end for end in told["data_offsets"])) for name, told in tensors.items()}
    return {name: np.frombuffer(content[places[name]], "<f4").reshape(told["shape"]) for name, told in tensors.items()}


def _embedded(ids: Sequence[int], weights: dict[str, Array]) -> Array:  # token ids → [d]

    def linear(x: Array, name: str) -> Array:
        mapped: Array = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return mapped

    def norm(x: Array, name: str) -> Array:
        x = x - x.mean(axis=-1, keepdims=True)
        scaled = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON)
        shifted: Array = scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return shifted

    def heads(x: Array) -> Array:  # [token, d] → [head, token, d / heads]
        return x.reshape(len(x), HEADS, -1).swapaxes(0, 1)

    x = weights["embeddings.word_embeddings.weight"][list(ids)]  # [token, d]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        q, k, v = (heads(linear(x, f"{layer}.attention.self.{part}")) for part in ("query", "key", "value"))
        said = q @ k.swapaxes(1, 2) / np.float32(np.sqrt(q.shape[-1]))  # [head, token, token]
        said = np.exp(said - said.max(axis=-1, keepdims=True))
        mixed = (said / said.sum(axis=-1, keepdims=True) @ v).swapaxes(0, 1).reshape(x.shape)
        x = norm(x + linear(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        wide = linear(x, f"{layer}.intermediate.dense")
        wide *= (erf(wide * np.float32(np.sqrt(0.5))) + 1) / 2  # GELU
        x = norm(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))
