"""Tiny randomly initialised judges, and activations with a known truth."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")
pytest.importorskip("transformers", reason="the probes extra is not installed")

from selfprobe.data.pairs import Pair, data_hash  # noqa: E402
from selfprobe.probes.forward import States, read_states  # noqa: E402
from selfprobe.probes.harvesting import Harvest, StatesIdentity, Store, open_harvest  # noqa: E402  # noqa: E402
from selfprobe.probes.model import LocalModel, local_model  # noqa: E402
from selfprobe.probes.tokens import Prompt  # noqa: E402

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}<{{ m.role }}>{{ m.content | trim }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def byte_tokenizer(template: str | None = TEMPLATE) -> Any:
    """One token a byte, as the digits of Llama and Gemma are; the template has no system role, as
    Gemma's.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {c: i for i, c in enumerate(["<s>", *alphabet])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")
    tokenizer.chat_template = template
    return tokenizer


def tiny_judge(
    family: str = "llama", *, seed: int = 0, context: int = 4096, window: int = 4096
) -> LocalModel:
    """A judge of 3 blocks with random weights."""
    from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    shape: dict[str, Any] = {
        "vocab_size": 257,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": context,
        "initializer_range": 0.3,
    }
    if family == "gemma2":
        model = Gemma2ForCausalLM(
            Gemma2Config(**shape, sliding_window=window, query_pre_attn_scalar=8)
        )
    else:
        model = LlamaForCausalLM(LlamaConfig(**shape))
    return local_model(
        model.eval().requires_grad_(False),
        byte_tokenizer(),
        name=f"tiny-{family}",
        revision=f"r{seed}",
    )


@pytest.fixture(scope="session")
def llama() -> LocalModel:
    return tiny_judge()


@pytest.fixture(scope="session")
def gemma() -> LocalModel:
    return tiny_judge("gemma2")


def tiny_family(config: Any) -> LocalModel:
    """A judge of the family of `config`, a configuration of transformers, with random weights."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    return local_model(model, byte_tokenizer(), name=f"tiny-{config.model_type}", revision="r0")


def alone(judge: LocalModel, prompts: list[Prompt]) -> States:
    """Each prompt by itself, two plain forwards."""
    read = [read_states(judge, [p], "two_forwards") for p in prompts]
    return States(torch.cat([s.hidden for s in read]), torch.cat([s.log_probs for s in read]))


def some_pairs(count: int = 6) -> list[Pair]:
    """Pairs of different lengths, every two about one question."""
    return [
        Pair(
            id=f"p{i}",
            text_1="yes " * (i + 1),
            text_2="no",
            label=1 if i % 3 else 2,
            context=f"Question {i // 2}?",
        )
        for i in range(count)
    ]


def planted(
    folder: Path,
    *,
    size: int = 240,
    dimension: int = 24,
    layers: int = 3,
    strength: float = 2.0,
    position: float = 1.0,
    nuisance: float = 0.0,
    flip: float = 0.0,
    per_group: int = 1,
    seed: int = 0,
    answers: float = 1.0,
) -> tuple[Harvest, Any]:
    """A harvest with a known direction in layer 1 (of `layers`), and that direction.

    strength: how far a preferred text moves the contrast along it, in units of the noise. position:
    how far the mere order moves it along another, the same way in both orders. nuisance: spread
    along a third that says nothing of the label but is antisymmetric too. flip: share of labels
    that are wrong. answers: how well P("1") knows.
    """
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((dimension, 3)))[0].T
    truth = rng.random(size) < 0.5
    labels = truth ^ (rng.random(size) < flip)
    pairs = [
        Pair(
            f"p{i}", f"first {i}", f"second {i}", 1 if labels[i] else 2, group=f"g{i // per_group}"
        )
        for i in range(size)
    ]
    side_of = np.where(truth, 1.0, -1.0)
    odd = rng.standard_normal(size) * nuisance
    placed = position * np.outer(
        rng.standard_normal(size), directions[1]
    )  # the same in both orders
    hidden = rng.standard_normal((size, 2, 2, layers, dimension))  # [pair, order, side, layer, d]
    for order, sign in enumerate((1.0, -1.0)):
        for side, plus in enumerate((0.5, -0.5)):
            shift = strength * np.outer(sign * side_of, directions[0]) + np.outer(
                sign * odd, directions[2]
            )
            hidden[:, order, side, 1] += plus * (shift + placed)
            hidden[:, order, side] += 5.0 + 3.0 * side  # means that differ between the sides
    margin = answers * side_of + rng.standard_normal(size)
    log_probs = np.zeros((size, 2, 2))
    log_probs[:, 0, 0], log_probs[:, 1, 0] = margin + 0.5, -margin + 0.5
    identity = StatesIdentity(
        "planted", f"s{seed}", "t", data_hash(pairs), "float32", "sdpa", 2, layers, dimension
    )
    store = Store.create(folder / identity.folder_name, identity, pairs)
    flat = torch.tensor(hidden.reshape(size * 2, 2, layers, dimension), dtype=torch.float32)
    store.add(
        range(size * 2),
        States(flat, torch.tensor(log_probs.reshape(size * 2, 2), dtype=torch.float32)),
    )
    store.flush()
    return open_harvest(store.folder), directions[0]


@pytest.fixture
def plant(tmp_path: Path) -> Callable[..., tuple[Harvest, Any]]:
    return lambda **given: planted(tmp_path, **given)
