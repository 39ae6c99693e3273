"""Blocks that are not run leave what later ones give as it was, in families of other making."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")
pytest.importorskip("transformers", reason="the probes extra is not installed")
from transformers import CONFIG_MAPPING, AutoModelForCausalLM  # noqa: E402

from selfprobe.mechanism.lower_blocks import recorded_passes, replayed_passes  # noqa: E402
from selfprobe.probes.model import decoder_blocks  # noqa: E402

TINY = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
WINDOW = {"sliding_window": 8}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": TINY,
    "qwen3": TINY,
    "gemma2": TINY | WINDOW,
    "mistral": TINY | WINDOW,
    "gpt2": {"vocab_size": 99, "n_embd": 32, "n_layer": 4, "n_head": 4},
}
TOKEN_COUNTS = (13, 5, 9)


@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_passes_over_a_cache_give_the_same_where_lower_blocks_are_not_run(
    family: str, block: int
) -> None:
    torch.manual_seed(0)
    config = CONFIG_MAPPING[family](**FAMILIES[family])
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    pieces = [torch.randint(3, 99, (1, count)) for count in TOKEN_COUNTS]

    def logits(rows: int) -> Any:
        cache = None
        outputs = []
        for piece in pieces:
            output = model(piece.expand(rows, -1), past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            outputs.append(output.logits)
        return torch.cat(outputs, dim=1)

    layers = decoder_blocks(model)
    with recorded_passes(layers, [block]) as passes:
        alone = logits(1)
    whole = logits(3)
    with replayed_passes(layers, block, passes[block]):
        shared = logits(3)
    assert torch.allclose(shared, whole, atol=1e-5)
    assert torch.allclose(shared[:1], alone, atol=1e-5)


@pytest.mark.parametrize(
    ("token_count", "message"), [(4, "expected 13 tokens, got 4"), (13, "a block gets no cache")]
)
def test_a_pass_that_is_none_of_those_recorded_is_refused(token_count: int, message: str) -> None:
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING["llama"](**TINY)).eval()
    layers = decoder_blocks(model)
    with recorded_passes(layers, [1]) as passes, torch.no_grad():
        model(torch.full((1, 13), 5), use_cache=True)
    with (
        replayed_passes(layers, 1, passes[1]),
        torch.no_grad(),
        pytest.raises(RuntimeError, match=message),
    ):
        model(torch.full((1, token_count), 5), use_cache=token_count != 13)
