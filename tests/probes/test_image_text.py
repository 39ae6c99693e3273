"""Models that transformers registers as image and text: their text is read as any other model's."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForImageTextToText,
    Gemma3Config,
    InternVLConfig,
    Mistral3Config,
    Qwen3VLConfig,
    SmolVLMConfig,
    T5Config,
    T5ForConditionalGeneration,
)

from selfprobe.probes.branches import Text, branched
from selfprobe.probes.harvesting import harvest
from selfprobe.probes.model import (
    check_memory,
    final_norm,
    load_model,
    random_weights,
)
from selfprobe.probes.plan import adapter_parameters
from selfprobe.probes.training import Example, Recipe, finetuned_model

from .conftest import byte_tokenizer, some_pairs

TEXT_SHAPE = {
    "vocab_size": 257,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 4096,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
VISION_SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 14,
}
QWEN_VISION = {"hidden_size": 32, "intermediate_size": 48, "depth": 2, "num_heads": 4}
ROTARY = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
MODELS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "gemma3": (Gemma3Config, {"model_type": "gemma3_text"}, VISION_SHAPE),
    "internvl": (InternVLConfig, {"model_type": "qwen2"}, VISION_SHAPE),
    "mistral3": (Mistral3Config, {"model_type": "mistral"}, VISION_SHAPE),
    "qwen3_vl": (
        Qwen3VLConfig,
        {"rope_parameters": ROTARY},
        QWEN_VISION | {"out_hidden_size": 32, "deepstack_visual_indexes": [0, 1]},
    ),
    "smolvlm": (SmolVLMConfig, {"model_type": "llama"}, VISION_SHAPE),
}
"""Name → configuration, and what its text and its vision need beyond the shapes."""
CLOSED_TURN = "<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
PARTS_TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}" + CLOSED_TURN
)
"""A template as models of images have: it takes a turn as parts."""


@pytest.fixture(scope="module", params=sorted(MODELS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of images and text with random weights, as `save_pretrained` writes it."""
    config_class, text_settings, vision_settings = MODELS[request.param]
    torch.manual_seed(0)
    text_config = TEXT_SHAPE | text_settings
    config = config_class(text_config=text_config, vision_config=vision_settings)
    model = AutoModelForImageTextToText.from_config(config)
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    byte_tokenizer(PARTS_TEMPLATE).save_pretrained(folder)
    return folder


def test_its_text_is_harvested_and_both_ways_agree(folder: Path, tmp_path: Path) -> None:
    check_memory(
        str(folder),
        {
            "revision": None,
            "dtype": "float32",
            "quantize": None,
            "device": "cpu",
            "device_map": None,
        },
    )
    judge = load_model(str(folder))
    assert len(judge.blocks) == 3
    assert judge.d_model == 32
    assert judge.context == 4096
    assert final_norm(judge.model).weight.shape == (32,)

    pairs = some_pairs()
    lines: list[str] = []
    shared = harvest(judge, pairs, tmp_path / "auto", progress=lines.append)
    plain = harvest(judge, pairs, tmp_path / "plain", path="two_forwards", progress=lines.append)
    assert not shared.unscored
    for layer in range(3):
        assert shared.layer(layer) == pytest.approx(plain.layer(layer), abs=1e-4)
    assert shared.log_probs == pytest.approx(plain.log_probs, abs=1e-4)

    untrained = random_weights(judge, seed=1)
    random_states = harvest(untrained, pairs, tmp_path / "random", progress=lines.append)
    assert random_states.layer(2) != pytest.approx(plain.layer(2), abs=1e-2)
    texts = [Text((5, 6, 7, 8, ending), spoken=1) for ending in (9, 10)]
    apart = branched(judge, texts, sharing=False).totals
    assert branched(judge, texts).totals == pytest.approx(apart, abs=1e-4)


def test_its_text_model_alone_learns(folder: Path, tmp_path: Path) -> None:
    judge = load_model(str(folder))
    examples = [Example((5, 6, 7), (8,)), Example((5, 6, 9), (10,))]
    recipe = Recipe(rank=2, alpha=2, epochs=1, batch=2)
    expected_count = adapter_parameters(judge, recipe.rank or 0)
    with finetuned_model(judge, examples, recipe, tmp_path, progress=lambda _: None) as (
        _,
        training,
    ):
        assert training.parameters == expected_count


def test_half_precision_keeps_its_residual_stream(folder: Path) -> None:
    judge = load_model(str(folder), dtype="bfloat16")
    assert judge.precision == "bfloat16+float32"


def test_a_model_that_is_neither_is_refused_in_a_line(tmp_path: Path) -> None:
    config = T5Config(vocab_size=257, d_model=8, d_ff=8, num_layers=1, num_heads=1, d_kv=8)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError) as error:
        load_model(str(tmp_path))
    assert str(error.value) == (
        f"{tmp_path} is a model of type t5, which reads no text from left to right: take a causal "
        "language model, or one of images and text, that transformers itself has"
    )


def test_a_template_that_lies_beside_the_processor_is_used(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="has no chat template"):
        load_model(str(tmp_path))
    (tmp_path / "chat_template.json").write_text(
        '{"chat_template": "<x>{{ messages[0].content }}"}'
    )
    assert load_model(str(tmp_path)).tokenizer.chat_template.startswith("<x>")
