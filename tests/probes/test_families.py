"""Every decoder-only text family of transformers: the states that a harvest reads are those of
plain forwards.

Each family is a tiny model with random weights, of a fixed seed. Its prompts differ in length, some
pass its window, and they are read as a harvest reads them: checked first, then in batches. The
reference reads one text at a time with nothing but its tokens. A family is exact, 2e-5 of a state's
length, or refused in a line before the work.
"""

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor  # noqa: E402

from selfprobe.probes.forward import (  # noqa: E402  # noqa: E402
    States,
    choose_reading,
    cut_batches,
    read_states,
    state_distance,
)
from selfprobe.probes.model import LocalModel  # noqa: E402
from selfprobe.probes.tokens import Prompt  # noqa: E402

EXACT = 2e-5
"""The largest rounding that processors were seen to give is 1.2e-5 (Qwen 3.5 MoE); a wrong mask is
off by .01 and more.
"""
BATCH_TOKENS = 400
SHAPE = {
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
}  # fmt: skip
"""Given to each configuration that has a setting of this name."""
MLA = {"num_key_value_heads": 4, "head_dim": 8}
PLAIN = """
afmoe apertus arcee aria_text beam biogpt bitnet bloom cohere cohere2 cohere2_moe cwm deepseek_v4 diffllama doge
ernie4_5 ernie4_5_moe exaone4 exaone_moe falcon falcon_mamba flex_olmo gemma gemma2 gemma3_text glm glm4 glm4_moe
gpt2 gpt_bigcode gpt_neox gpt_neox_japanese gpt_oss granite granitemoe granitemoeshared helium hunyuan_v1_dense
hunyuan_v1_moe jais2 jetmoe llama llama4_text mamba minimax minimax_m2 ministral ministral3 mistral mixtral
modernbert-decoder mpt nanochat nemotron olmo olmo2 olmo3 olmo_hybrid olmoe openai-gpt persimmon phi phi3 phimoe
qwen2 qwen2_moe qwen3 qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next recurrent_gemma rwkv seed_oss smollm3
solar_open stablelm starcoder2 vaultgemma xglm xlstm
""".split()
"""Families that need no more than the shape."""
OVERRIDES: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1]},
    "codegen": {"rotary_dim": 4},
    "ctrl": {"dff": 48},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},
    "deepseek_v2": MLA,
    "deepseek_v3": MLA,
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
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "longcat_flash": MLA,
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1},
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
    "youtu": MLA,
    "zamba": {"layers_block_type": ["mamba", "hybrid", "hybrid"], "use_mamba_kernels": False},
    "zamba2": {"layers_block_type": ["mamba", "hybrid", "mamba"]},
}
FAMILIES = {family: OVERRIDES.get(family, {}) for family in (*PLAIN, *OVERRIDES)}
REFUSED = {"deepseek_v4": "gives four streams of states"}
"""Families that are refused, and why."""


def tiny(family: str) -> LocalModel:
    """A model of `family` (a model type of transformers, and a word for a variant) with random
    weights.
    """
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    torch.manual_seed(0)
    kind = CONFIG_MAPPING[family.partition(" ")[0]]
    default = kind()
    settings = default.to_dict().keys() | kind.attribute_map
    given = {k: v for k, v in SHAPE.items() if k in settings} | FAMILIES[family]
    layers = default.to_dict().get("layer_types")
    if layers and "layers_block_type" not in kind.__dict__:
        kinds = list(dict.fromkeys(layers))
        given = {"layer_types": (kinds * 3)[: max(3, len(kinds))]} | given
    model = AutoModelForCausalLM.from_config(kind(**given)).eval().requires_grad_(False)
    return LocalModel(model, None, f"tiny {family}", "seed 0")


def some_prompts() -> list[Prompt]:
    """Twelve of 9 to 130 tokens, two of a length; the last pass the windows and the switch of the
    long rope.
    """
    draw = random.Random(0)
    lengths = [9, 9, 14, 23, 30, 31, 40, 47, 55, 70, 130, 130]
    return [Prompt(tuple(draw.choices(range(3, 250), k=n)), (5, 6)) for n in lengths]


def checked(family: str) -> tuple[str, float, str]:
    """What came of `family`: "exact", "refused" or "wrong", the largest difference, and how it was
    read.
    """
    judge, prompts = tiny(family), some_prompts()
    try:
        reading = choose_reading(judge, prompts, "auto", batch_tokens=BATCH_TOKENS)
    except ValueError as error:
        return "refused", float("nan"), str(error)
    worst = 0.0
    for batch in cut_batches(prompts, range(len(prompts)), BATCH_TOKENS, reading):
        shown = [prompts[i] for i in batch]
        found = read_states(judge, shown, reading.way)
        right = [plain(judge, prompt) for prompt in shown]
        reference = States(
            torch.stack([r.hidden for r in right]), torch.stack([r.log_probs for r in right])
        )
        worst = max(worst, state_distance(found, reference).largest)
    return "exact" if worst <= EXACT else "wrong", worst, str(reading)


def plain(judge: LocalModel, prompt: Prompt) -> States:
    """The naive way, written once more without the package: hooks on the blocks, a text at a time."""
    sides = []
    for token in prompt.contrast:
        kept: list[Tensor] = []

        def hook(_module: Any, _given: Any, output: Any, kept: list[Tensor] = kept) -> None:
            hidden = output[0] if isinstance(output, (tuple, list)) else output
            kept.append(
                hidden.reshape(-1, *hidden.shape[-3:])[0, 0, -1]
            )  # Gemma 3n: the first of its streams

        handles = [block.register_forward_hook(hook) for block in judge.blocks]
        with torch.inference_mode():
            logits = judge.model(
                input_ids=torch.tensor([[*prompt.prefix, token]]), use_cache=False
            ).logits
        for handle in handles:
            handle.remove()
        sides.append(torch.stack(kept))
    said = logits[0, -2].log_softmax(0)[list(prompt.contrast)]
    return States(torch.stack(sides), said)


@pytest.mark.slow(3)  # 36 CPU seconds all
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_family_is_read_exactly_or_refused_before_the_work(family: str) -> None:
    verdict, worst, how = checked(family)
    assert verdict == ("refused" if family in REFUSED else "exact"), f"{worst:.1e}, {how}"
