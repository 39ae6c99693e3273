"""The registered attention function: what it gives is what the model's own gives, and what it shows
is the pattern.
"""

from pathlib import Path
from typing import Any

import pytest

from selfprobe.mechanism import reading
from selfprobe.mechanism.reading import (
    NoPatterns,
    checked_reading,
    entropy,
    read_item,
    registered,
    tapped,
    without_first,
)
from selfprobe.probes.model import LocalModel, local_model

from .tiny import ANSWER, ONE, planted, random_judge, read_items, torch

SHAPE: dict[str, Any] = {
    "vocab_size": 257,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
}


FAMILIES = {
    "llama": "LlamaConfig",
    "mistral": "MistralConfig",
    "qwen2": "Qwen2Config",
    "qwen3": "Qwen3Config",
    "gemma2": "Gemma2Config",
    "gemma3": "Gemma3TextConfig",
    "phi3": "Phi3Config",
    "olmo2": "Olmo2Config",
    "gpt2": "GPT2Config",
}
"""Those that the error names."""


def judge_of(family: str, **more: Any) -> LocalModel:
    import transformers

    given = SHAPE | ({"pad_token_id": 0} if family == "phi3" else {"head_dim": 8}) | more
    if family == "gpt2":
        given = {"vocab_size": 257, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 4096}
    return random_judge(getattr(transformers, FAMILIES[family])(**given))


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_models_own_attention_and_patterns_mix_the_values(
    family: str,
) -> None:
    judge = judge_of(family)
    ids = torch.randint(1, 250, (1, 40), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        own = judge.model(input_ids=ids).logits
        with registered(judge.model):
            assert (judge.model(input_ids=ids).logits - own).abs().max() < 1e-5 * own.abs().max()
            for queries in (1, 7, 40):
                seen: dict[int, Any] = {}

                def same(layer: int, p: Any, seen: dict[int, Any] = seen) -> Any:
                    seen[layer] = p
                    return p

                with tapped(same, queries=queries):
                    put_back = judge.model(input_ids=ids).logits
                assert (put_back - own).abs().max() < 1e-5 * own.abs().max()
                assert sorted(seen) == [0, 1, 2] and seen[0].shape == (1, 4, queries, 40)
                assert torch.allclose(seen[1].sum(dim=-1), torch.ones(1, 4, queries))
        assert judge.model.config._attn_implementation != "selfprobe_patterns"
        assert (judge.model(input_ids=ids).logits - own).abs().max() == 0


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_patterns_are_those_of_eager_attention(family: str) -> None:
    judge = judge_of(family)
    ids = torch.randint(1, 250, (1, 30), generator=torch.Generator().manual_seed(0))
    seen: dict[int, Any] = {}
    with torch.inference_mode():
        with registered(judge.model), tapped(lambda layer, p: seen.update({layer: p})):
            judge.model(input_ids=ids)
        judge.model.set_attn_implementation("eager")
        right = judge.model(input_ids=ids, output_attentions=True).attentions
    for layer in range(3):
        assert (seen[layer][0, :, -1] - right[layer][0, :, -1]).abs().max() < 1e-5


def test_entropy_of_even_weights_is_the_logarithm_of_their_number() -> None:
    even = torch.full((2, 8), 1 / 8)
    assert torch.allclose(entropy(even), torch.tensor(8.0).log())
    assert torch.allclose(entropy(without_first(even)), torch.tensor(7.0).log())
    assert entropy(torch.tensor([0.0, 1.0, 0.0])) == 0
    assert torch.allclose(without_first(torch.tensor([0.9, 0.05, 0.05])), torch.tensor([0.5, 0.5]))


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_the_lens_ends_at_the_models_logits_and_a_shared_prefix_changes_nothing(
    family: str, tmp_path: Path
) -> None:
    judge = judge_of(family)
    _, (item, *_) = read_items(judge, tmp_path, 2)
    with checked_reading(judge, item) as sharing:
        assert sharing
        shared, whole = read_item(judge, item), read_item(judge, item, sharing=False)
    for one in (shared, whole):
        assert one.lens[:, -1] == pytest.approx(one.spoken, abs=1e-4)
    assert shared.lens == pytest.approx(whole.lens, abs=1e-4)
    assert shared.attention == pytest.approx(whole.attention, abs=1e-4)


def with_large_logits(dtype: Any) -> LocalModel:
    """Planted, its logits of A and B near 400, where bfloat16 has steps of 2; they differ by less."""
    judge = planted()
    judge.model.lm_head.weight[:, ONE] = 100.0
    judge.model.lm_head.weight[:, ANSWER] *= 0.25
    judge.model.to(dtype)
    return local_model(judge.model, judge.tokenizer, name="planted", revision="large")


def test_a_small_difference_of_large_logits_survives_half_precision(tmp_path: Path) -> None:
    whole, half = with_large_logits(torch.float32), with_large_logits(torch.bfloat16)
    _, given = read_items(whole, tmp_path, 2)
    for item in given:
        found = []
        for judge in (whole, half):
            with checked_reading(judge, item) as sharing:
                assert sharing
                found.append(read_item(judge, item))
        assert 0.1 < found[0].spoken[1] < 2, "of the introspective prompt"
        assert found[1].spoken == pytest.approx(found[0].spoken, abs=0.05)
        assert found[1].lens == pytest.approx(found[0].lens, abs=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cache_is_shared_in_half_precision_too_but_not_where_it_gives_other_states(
    dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = random_judge(judge_of("llama").model.config)
    judge.model.to(dtype)
    judge = local_model(judge.model, judge.tokenizer, name="half", revision="r")
    _, given = read_items(judge, tmp_path, 6)
    for item in given:
        with checked_reading(judge, item) as sharing:
            assert sharing
    right = reading.arm_inputs

    def turned(*arguments: Any, **options: Any) -> Any:
        for arm, inputs in right(*arguments, **options):
            count = inputs["input_ids"].shape[1]
            yield (
                arm,
                inputs
                | ({"position_ids": torch.arange(count)[None]} if inputs["use_cache"] else {}),
            )

    monkeypatch.setattr(reading, "arm_inputs", turned)
    with checked_reading(judge, given[0]) as sharing:
        assert not sharing


def test_a_model_without_an_attention_function_to_register_names_those_that_work(
    tmp_path: Path,
) -> None:
    from transformers import MambaConfig

    judge = random_judge(
        MambaConfig(vocab_size=257, hidden_size=32, num_hidden_layers=2, state_size=4)
    )
    _, (item, *_) = read_items(judge, tmp_path, 2)
    with (
        pytest.raises(
            NoPatterns,
            match=r"cannot be read by a registered function: .*works with Llama, Mistral",
        ),
        checked_reading(judge, item),
    ):
        pass
    with checked_reading(judge, item, attention=False) as sharing:
        found = read_item(judge, item, sharing=sharing, attention=False)
    assert found.lens.shape == (4, 2) and found.attention.size == 0


def test_a_sliding_window_shorter_than_the_prompts_is_refused(tmp_path: Path) -> None:
    judge = judge_of("gemma2", sliding_window=64)
    _, (item, *_) = read_items(judge, tmp_path, 2)
    with (
        pytest.raises(NoPatterns, match=r"sliding window of 64 tokens, and prompts up to \d+"),
        checked_reading(judge, item),
    ):
        pass


def test_the_attention_of_each_part_of_a_model_is_put_back() -> None:
    """A model of texts and pictures: its outer configuration says sdpa, its text model another."""
    from transformers import AutoModelForCausalLM, Gemma3Config

    text_settings = SHAPE | {"head_dim": 8, "pad_token_id": 0}
    vision_settings = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }
    config = Gemma3Config(text_config=text_settings, vision_config=vision_settings)
    for text_attention, vision_attention in (("eager", "sdpa"), ("sdpa", "eager")):
        attentions = {"": "sdpa", "text_config": text_attention, "vision_config": vision_attention}
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attentions)
        parts = (model.config, model.config.text_config, model.config.vision_config)
        with pytest.raises(RuntimeError, match="within"), registered(model):
            assert model.config.text_config._attn_implementation == reading.PATTERNS_ATTENTION
            raise RuntimeError("an error within the context")
        assert [part._attn_implementation for part in parts] == list(attentions.values())


def test_a_part_without_attention_of_its_own_is_put_back_too() -> None:
    """DBRX keeps settings in configurations within its own, of which none has an attention."""
    from transformers import AutoModelForCausalLM, DbrxConfig

    sizes = {"vocab_size": 257, "d_model": 32, "n_layers": 3, "n_heads": 4, "pad_token_id": 0}
    attention = {"rope_theta": 1e4, "kv_n_heads": 2, "clip_qkv": 8.0}
    model = AutoModelForCausalLM.from_config(DbrxConfig(**sizes, attn_config=attention))
    part_before = model.config.attn_config._attn_implementation
    with registered(model):
        pass
    assert model.config._attn_implementation == "sdpa"
    assert model.config.attn_config._attn_implementation == part_before
