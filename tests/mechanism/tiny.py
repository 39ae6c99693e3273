"""Tiny transformers in which a known block and head carry the shift, and dilemmas that they read."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")
pytest.importorskip("transformers", reason="the probes extra is not installed")

from selfprobe.data import Table, load  # noqa: E402
from selfprobe.mechanism.prompts import DilemmaItem, dilemma_items  # noqa: E402
from selfprobe.probes.model import LocalModel, local_model  # noqa: E402

from ..probes.conftest import byte_tokenizer  # noqa: E402

LAYERS, HEADS, WIDTH = 4, 4, 8
WRITER, CARRIER, HEAD = 1, 2, 3
"""The block whose head 0 sees the instruction's hyphens; the block and head that then look at the
dilemma's "!".
"""
ONE, FLAG, MARK, TRIGGER, ANSWER = range(5)
"""Directions of the residual stream: in every token; "asked to predict"; "!"; "-"; A less B."""
STILL = 3
"""Of a head's dimensions the one that rotary positions hardly turn."""


def dilemmas(folder: Path, count: int = 6) -> Path:
    """Scenes of different lengths with one "!" and no hyphen."""
    rows = [
        {
            "id": f"d{i}",
            "dilemma": f"{'So it went. ' * (1 + i % 5)}Now! {'And on. ' * (1 + i % 3)}Option A: go.\nOption B: stay.",
        }
        for i in range(count)
    ]
    file = folder / "dilemmas.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def read_items(judge: LocalModel, folder: Path, count: int = 6) -> tuple[Table, list[DilemmaItem]]:
    table = load(str(dilemmas(folder, count)), ("dilemma",))
    return table, dilemma_items(judge.tokenizer, table, context=judge.context)[0]


def llama(**more: Any) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=257,
        hidden_size=16,
        intermediate_size=8,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=WIDTH,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": 1e12},
        **more,
    )


def planted(*, carries: bool = True) -> LocalModel:
    """A judge in which the introspective prompt moves the answer by one head's pattern, or in which
    nothing does.

    Hyphens stand in the introspective prompt alone. Head 0 of `WRITER` brings FLAG to what follows
    them; with FLAG, `HEAD` of `CARRIER` looks at the dilemma's "!" instead of everywhere, and
    brings ANSWER. All other heads look at all tokens evenly and bring nothing.
    """
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM(llama()).eval().requires_grad_(False)
    tokenizer = byte_tokenizer()
    for name, weights in model.named_parameters():
        weights.fill_(1.0 if "norm" in name else 0.0)
    embedded = model.model.embed_tokens.weight
    embedded[:, ONE] = 1.0
    embedded[token(tokenizer, "!"), MARK] = 1.0
    embedded[token(tokenizer, "-"), TRIGGER] = 1.0
    if carries:
        wire(model, WRITER, 0, query=(ONE, 6.0), key=TRIGGER, value=(TRIGGER, FLAG, 0.1))
        wire(model, CARRIER, HEAD, query=(FLAG, 20.0), key=MARK, value=(MARK, ANSWER, 0.2))
    model.lm_head.weight[token(tokenizer, "A"), ANSWER] = 1.0
    model.lm_head.weight[token(tokenizer, "B"), ANSWER] = -1.0
    return local_model(model, tokenizer, name="planted", revision=f"carries-{carries}")


def wire(
    model: Any,
    block: int,
    head: int,
    *,
    query: tuple[int, float],
    key: int,
    value: tuple[int, int, float],
) -> None:
    """One head: what asks (and how strongly), what is asked for, what is read there and where it is
    written.
    """
    attention, at = model.model.layers[block].self_attn, head * WIDTH + STILL
    attention.q_proj.weight[at, query[0]] = query[1]
    attention.k_proj.weight[at, key] = 1.0
    attention.v_proj.weight[at, value[0]] = 1.0
    attention.o_proj.weight[value[1], at] = value[2]


def token(tokenizer: Any, text: str) -> int:
    return int(tokenizer(text, add_special_tokens=False)["input_ids"][0])


def random_judge(config: Any) -> LocalModel:
    """A judge of the family of `config` with random weights."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    for weights in model.parameters():
        if weights.ndim > 1:
            weights.normal_(0, 0.3)
    return local_model(model, byte_tokenizer(), name=f"tiny-{config.model_type}", revision="r0")
