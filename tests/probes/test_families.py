"""Every decoder-only text family of transformers: the states that a harvest reads are those of
plain forwards.

The names come from transformers' own tables. Each family is a tiny model with random weights, of a
fixed seed. Its prompts differ in length, some pass its window, and they are read as a harvest reads
them: checked first, then in batches. The reference reads one text at a time with nothing but its
tokens. A family is exact, 2e-5 of a state's length, or refused in a line before the work.

    python tests/probes/test_families.py > docs/families.txt      # what docs/statistics.md says
    python docs/parts.py families docs/families.txt
"""

import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from torch import Tensor  # noqa: E402
from transformers import (  # noqa: E402
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
)
from transformers import __version__ as transformers_version  # noqa: E402
from transformers.models.auto.modeling_auto import (  # noqa: E402
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)

from selfprobe.probes.forward import (  # noqa: E402
    States,
    choose_reading,
    cut_batches,
    read_states,
    state_distance,
)
from selfprobe.probes.model import LocalModel  # noqa: E402
from selfprobe.probes.tokens import Prompt  # noqa: E402

EXACT_TOLERANCE = 2e-5
"""The largest rounding that processors were seen to give is 1.6e-5 (Gemma 4); a wrong mask is off
by .01 and more.
"""
BATCH_TOKENS = 400
TEXT_SHAPE = {
    "vocab_size": 257, "hidden_size": 32, "n_embd": 32, "d_model": 32, "intermediate_size": 48, "ffn_dim": 48,
    "num_hidden_layers": 3, "n_layer": 3, "n_layers": 3, "num_layers": 3, "num_attention_heads": 4, "n_head": 4,
    "n_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512, "n_positions": 512,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "sliding_window": 48, "initializer_range": 0.2,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "kv_lora_rank": 16,
    "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 1,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
    "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_expand": 2, "mamba_n_groups": 1,
    "mamba_chunk_size": 16, "chunk_size": 16, "state_size": 8, "attention_chunk_size": 48,
    "linear_num_heads": 2, "linear_head_dim": 8, "index_head_dim": 8, "index_n_heads": 2, "index_topk": 64,
}  # fmt: skip
"""Given to each configuration that has a setting of this name."""
VISION_SHAPE = {
    "hidden_size": 32, "embed_dim": 32, "d_model": 32, "out_hidden_size": 32, "intermediate_size": 48, "depth": 2,
    "num_hidden_layers": 2, "num_layers": 2, "num_attention_heads": 4, "num_heads": 4, "head_dim": 8,
    "image_size": 28, "patch_size": 14, "deepstack_visual_indexes": [0, 1], "fullatt_block_indexes": [1],
}  # fmt: skip
"""Given to the parts of a model that see or hear."""

NOT_DECODERS = {
    "reads in both directions, or was trained to": (
        "bert bert-generation big_bird camembert data2vec-text electra ernie megatron-bert rembert "
        "roberta roberta-prelayernorm roc_bert roformer xlm xlm-roberta xlm-roberta-xl xlnet xmod"
    ),
    "the decoder of an encoder-decoder": (
        "bart bigbird_pegasus blenderbot blenderbot-small marian mbart musicgen musicgen_melody "
        "mvp pegasus plbart prophetnet trocr whisper"
    ),
    "drafts for another model, whose states it takes": "gemma4_assistant gemma4_unified_assistant",
    "reads bytes and gives patches of them to its blocks": "blt",
    "reads a prompt that its own code puts together": "cpmant",
    "hashes what it attends to by chance": "reformer",
}
"""Names of transformers' causal table that are no decoder-only text families, by the reason; those
that its table of images and text has too are there.
"""
MLA = {"num_key_value_heads": 4, "head_dim": 8}
OVERRIDES: dict[str, dict[str, Any]] = {
    "axk1": MLA,
    "axk2": MLA,
    "bailing_hybrid": MLA,
    "bamba": {"attn_layer_indices": [1]},
    "codegen": {"rotary_dim": 4},
    "cohere_compass_text": {
        "layer_types": ["full_attention"] * 3,
        "rope_parameters": {
            "full_attention": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [2, 1, 1],
            }
        },
    },
    "ctrl": {"dff": 48},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},
    "deepseek_v2": MLA,
    "deepseek_v3": MLA,
    "deepseek_v32": MLA,
    "dots3_note_text": MLA,
    "dots1": {"n_shared_experts": 1},
    "falcon_h1": {"mamba_d_ssm": 64},
    "gemma3n_text": {
        "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 257,
        "laurel_rank": 8,
        "activation_sparsity_pattern": [0.0] * 3,
    },
    "gemma4_text": {
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 257,
        "num_kv_shared_layers": 0,
    },
    "glm4_moe_lite": MLA,
    "glm_moe_dsa": MLA,
    "gpt_neo": {
        "num_layers": 2,
        "num_hidden_layers": 2,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 48,
    },
    "gptj": {"rotary_dim": 4},
    "granitemoehybrid": {"layer_types": ["mamba", "attention", "mamba"]},
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "use_mamba_kernels": False,
    },
    "kimi_linear": MLA,
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "longcat_flash": MLA,
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1},
    "minicpm3": MLA,
    "nemotron_h": {
        "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
        "num_hidden_layers": 4,
        "mamba_num_heads": 8,
        "mamba_head_dim": 8,
        "n_groups": 1,
        "ssm_state_size": 8,
        "moe_shared_expert_intermediate_size": 16,
    },
    "opt": {"word_embed_proj_dim": 32},
    "phi3 long rope": {
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0] * 4,
            "long_factor": [4.0] * 4,
            "original_max_position_embeddings": 50,
        },
        "original_max_position_embeddings": 50,
        "sliding_window": None,
    },
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 64,
        "indexer_compress_ratio": 8,
        "hc_lowrank": 8,
        "ngram_vocab_size_base": 100,
        "ple_embed_dim": 8,
        "split_ngram_parts": 1,
    },
    "youtu": MLA,
    "zamba": {"layers_block_type": ["mamba", "hybrid", "hybrid"], "use_mamba_kernels": False},
    "zamba2": {"layers_block_type": ["mamba", "hybrid", "mamba"]},
    "zaya": {"num_experts_per_tok": 1},
}
"""Settings beyond the shape; a name with a variant in words is a family of its own."""
REFUSED = {
    "deepseek_v4": "gives four streams of states",
    "hrm_text": "has its blocks in two modules that take turns",
    "hy_v4": "gives four streams of states",
    "paligemma": "reads a prompt in both directions",
    "qwen4_exp_text": "gives four streams of states side by side",
}
"""Families that are refused, and why."""
TWO_FORWARDS = {
    *("axk2", "deepseek_v32", "dots3_note_text", "falcon_mamba", "glm_moe_dsa", "mamba", "mamba2"),
    *("mistral_large4", "moshi", "openai-gpt", "phi3 long rope", "qwen3_vl_moe", "recurrent_gemma"),
    *("rwkv", "xlstm", "zamba2"),
}
"""Families whose two sides go on from no shared cache, or not past the tokens that they select."""
MROPE = {
    "text_config": {
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [2, 1, 1],
        }
    }
}
PLAIN_IMAGE_TEXT = """
aria aya_vision cohere2_vision deepseek_vl exaone4_5 fuyu gemma3 gemma4_unified
got_ocr2 idefics2 idefics3 internvl lfm2_vl lighton_ocr llama4 llava llava_next
llava_onevision minicpmv4_6 mistral3 mllama ovis2 paligemma qwen3_5 qwen3_5_moe qwen3_vl
qwen3_vl_moe smolvlm video_llama_3
""".split()
"""Families of images and text that need no more than the shapes."""
IMAGE_TEXT_OVERRIDES: dict[str, dict[str, Any]] = {
    "glm46v": MROPE,
    "glm4v": MROPE,
    "glm4v_moe": {
        "text_config": {
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.5,
                "mrope_section": [1, 1, 0],
            }
        }
    },
    "kimi_k25": {"text_config": MLA},
    "mistral_large4": {"text_config": MLA},
    "paddleocr_vl": MROPE,
    "qwen2_5_vl": MROPE,
    "qwen2_vl": MROPE,
}
"""Settings of theirs beyond the shapes."""


def text_families() -> list[str]:
    """Names of the causal table that are in none of the lists, and the variants."""
    left_out = set(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
    for names in NOT_DECODERS.values():
        left_out |= set(names.split())
    variants = {family for family in OVERRIDES if " " in family}
    return sorted(set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - left_out | variants)


TEXT_FAMILIES = text_families()
PINNED = (Path(__file__).parents[2] / "constraints.txt").read_text("utf-8").splitlines()
of_the_pinned_version = pytest.mark.skipif(
    f"transformers=={transformers_version}" not in PINNED,
    reason="the lists are of another version of transformers",
)
IMAGE_TEXT_FAMILIES = sorted({*PLAIN_IMAGE_TEXT, *IMAGE_TEXT_OVERRIDES})


def tiny_settings(
    config_class: Any, shape: dict[str, Any], overrides: dict[str, Any]
) -> dict[str, Any]:
    """The settings of `shape` that a configuration has, those of its parts, and `overrides`."""
    default_config = config_class()
    default_settings = default_config.to_dict()
    known_names = default_settings.keys() | config_class.attribute_map
    settings = {name: value for name, value in shape.items() if name in known_names}

    layer_types = list(dict.fromkeys(default_settings.get("layer_types") or ()))
    if layer_types and "layers_block_type" not in config_class.__dict__:
        settings["layer_types"] = (layer_types * 3)[: max(3, len(layer_types))]
        settings["num_hidden_layers"] = len(settings["layer_types"])

    for part_name in config_class.sub_configs:
        part = getattr(default_config, part_name, None)
        if part is None:
            continue
        part_shape = TEXT_SHAPE if part is default_config.get_text_config() else VISION_SHAPE
        part_settings = tiny_settings(type(part), part_shape, overrides.get(part_name, {}))
        settings[part_name] = part_settings | {"model_type": part.model_type}

    part_names = config_class.sub_configs.keys()
    return settings | {name: value for name, value in overrides.items() if name not in part_names}


def tiny_model(family: str, auto_class: Any, overrides: dict[str, Any]) -> LocalModel:
    """A model of `family` (a model type of transformers, and words for a variant) with random
    weights.
    """
    torch.manual_seed(0)
    config_class = CONFIG_MAPPING[family.partition(" ")[0]]
    config = config_class(**tiny_settings(config_class, TEXT_SHAPE, overrides))
    model = auto_class.from_config(config).eval().requires_grad_(False)
    return LocalModel(model, None, f"tiny {family}", "seed 0")


def some_prompts() -> list[Prompt]:
    """Twelve of 9 to 130 tokens, two of a length; the last pass the windows and the switch of the
    long rope.
    """
    rng = random.Random(0)
    prompts = []
    for length in (9, 9, 14, 23, 30, 31, 40, 47, 55, 70, 130, 130):
        prompts.append(Prompt(tuple(rng.choices(range(3, 250), k=length)), (5, 6)))
    return prompts


def family_outcome(judge: LocalModel) -> tuple[str, str]:
    """How a harvest reads the family, or "refused" or "wrong"; and what is to be known of it."""
    prompts = some_prompts()
    try:
        reading = choose_reading(judge, prompts, "auto", batch_tokens=BATCH_TOKENS)
    except ValueError as error:
        return "refused", str(error)

    largest_distance = 0.0
    for batch in cut_batches(prompts, range(len(prompts)), BATCH_TOKENS, reading):
        batch_prompts = [prompts[number] for number in batch]
        states = read_states(judge, batch_prompts, reading.way)
        plain_states = [plain_reading(judge, prompt) for prompt in batch_prompts]
        reference = States(
            torch.stack([prompt_states.hidden for prompt_states in plain_states]),
            torch.stack([prompt_states.log_probs for prompt_states in plain_states]),
        )
        largest_distance = max(largest_distance, state_distance(states, reference).largest)
    way = reading.way if largest_distance <= EXACT_TOLERANCE else "wrong"
    return way, f"{largest_distance:.1e}, {reading}"


def plain_reading(judge: LocalModel, prompt: Prompt) -> States:
    """The naive way, written once more without the package: hooks on the blocks, a text at a time."""
    side_states = []
    for token in prompt.contrast:
        block_states: list[Tensor] = []

        def hook(
            _module: Any, _inputs: Any, output: Any, block_states: list[Tensor] = block_states
        ) -> None:
            hidden = output[0] if isinstance(output, (tuple, list)) else output
            # Gemma 3n: the first of its streams
            block_states.append(hidden.reshape(-1, *hidden.shape[-3:])[0, 0, -1])

        handles = [block.register_forward_hook(hook) for block in judge.blocks]
        ids = torch.tensor([[*prompt.prefix, token]])
        with torch.inference_mode():
            logits = judge.model(input_ids=ids, use_cache=False).logits
        for handle in handles:
            handle.remove()
        side_states.append(torch.stack(block_states))
    log_probs = logits[0, -2].log_softmax(0)[list(prompt.contrast)]
    return States(torch.stack(side_states), log_probs)


def expected_outcome(family: str) -> str:
    """What the tables above say of a family."""
    if family in REFUSED:
        return "refused"
    return "two_forwards" if family in TWO_FORWARDS else "shared_cache"


@pytest.mark.slow(3)  # a CPU minute all
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", TEXT_FAMILIES)
def test_a_family_is_read_exactly_or_refused_before_the_work(family: str) -> None:
    judge = tiny_model(family, AutoModelForCausalLM, OVERRIDES.get(family, {}))
    outcome, details = family_outcome(judge)
    assert outcome == expected_outcome(family), details


@pytest.mark.slow(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", IMAGE_TEXT_FAMILIES)
def test_text_in_a_model_of_images_and_text_is_read_exactly(family: str) -> None:
    overrides = IMAGE_TEXT_OVERRIDES.get(family, {})
    judge = tiny_model(family, AutoModelForImageTextToText, overrides)
    outcome, details = family_outcome(judge)
    assert outcome == expected_outcome(family), details


@of_the_pinned_version
def test_the_lists_hold_names_of_transformers_alone_and_each_once() -> None:
    listed = [name for names in NOT_DECODERS.values() for name in names.split()]
    listed += [family.partition(" ")[0] for family in OVERRIDES if " " not in family]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert set(IMAGE_TEXT_FAMILIES) <= set(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
    assert REFUSED.keys() | TWO_FORWARDS <= {*TEXT_FAMILIES, *IMAGE_TEXT_FAMILIES}


def families_sentence() -> str:
    """What docs/statistics.md says of the families."""
    refused = [family for family in TEXT_FAMILIES if family in REFUSED]
    exact_count = len(TEXT_FAMILIES) - len(refused)
    refused_image_text = [family for family in IMAGE_TEXT_FAMILIES if family in REFUSED]
    image_text_exact_count = len(IMAGE_TEXT_FAMILIES) - len(refused_image_text)
    two_forwards_count = len(TWO_FORWARDS.intersection(TEXT_FAMILIES))
    version = transformers_version.rpartition(".")[0]
    return (
        "**Families.** `tests/probes/test_families.py` builds tiny models with random weights of "
        f"each decoder-only text family that transformers {version} names: {exact_count} of "
        f"{len(TEXT_FAMILIES)} are read exactly (to 2e-5 of plain forwards), "
        f"{len(refused)} are refused ({', '.join(refused)}), none is wrong. "
        f"{exact_count - two_forwards_count} are read on a shared cache, {two_forwards_count} by "
        "two forwards (Mamba and the like, GPT-1, Phi-3 past its switch, models that select tokens). "
        f"Of {len(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)} types that are registered as image "
        f"and text, {len(IMAGE_TEXT_FAMILIES)} are built: {image_text_exact_count} are read "
        f"exactly, {', '.join(refused_image_text)} is refused."
    )


@of_the_pinned_version
def test_the_docs_say_what_the_lists_of_families_say(root: Path) -> None:
    page = (root / "docs" / "statistics.md").read_text("utf-8")
    assert families_sentence() in page


if __name__ == "__main__":
    print(families_sentence())
