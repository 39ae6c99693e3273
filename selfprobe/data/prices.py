"""Costs of a study: calls, tokens and dollars for each model, before anything is asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml
from inspect_ai.model import ModelCost
from pydantic import TypeAdapter, ValidationError

from selfprobe.errors import InputError, one_line
from selfprobe.text.counts import count_text
from selfprobe.text.families import NO_MODEL, SIMULATED_PROVIDERS
from selfprobe.text.user_input import loaded_file

Prices = Mapping[str, ModelCost]


@dataclass(frozen=True)
class Cost:
    """The calls that one model will get."""

    model: str
    calls: int
    tokens_in: int
    tokens_out: int


def read_prices(path: str | None) -> dict[str, ModelCost]:
    """Inspect's model cost file: dollars for a million tokens, by model.

    Args:
        path: YAML or JSON; None is no prices.

    Raises:
        InputError: The file is empty or of another form.
    """
    if path is None:
        return {}
    fields = ", ".join(f"{name}: 1.0" for name in ModelCost.model_fields)
    expected = f"{path}: expected a line for each model, such as `openai/a: {{{fields}}}`"
    try:
        content = loaded_file(path)
        prices = TypeAdapter(dict[str, ModelCost]).validate_python(content)
    except yaml.YAMLError as error:
        raise InputError(f"{expected}; the file is not YAML: {one_line(error)}") from None
    except ValidationError as error:
        first_error = error.errors()[0]
        place = ", ".join(map(str, first_error["loc"])) or "the file"
        raise InputError(f"{expected}; {place}: {first_error['msg']}") from None
    if not prices:
        raise InputError(f"{expected}; the file names no model")
    return prices


BATCH_PROVIDERS = ("openai", "anthropic", "google", "grok", "together")
"""Providers whose batches Inspect sends."""

SHORTEST_NAME_COLUMN = 40
"""Characters of the column of models' names, at least."""


BATCH_DISCOUNT = 0.5
"""Share that OpenAI, Anthropic, Google, xAI and Together take off the price of a call in a batch.
"""


def cost_table(costs: Sequence[Cost], prices: Prices, *, rounds: int | None = None) -> list[str]:
    """A line for each model and one for all: calls, tokens in and out, dollars, why it is free, or
    "price unknown".

    Args:
        costs: One entry a model.
        prices: Model → dollars for a million tokens.
        rounds: Number of batches that come one after the other; None without batches.
    """
    name_width = max(SHORTEST_NAME_COLUMN, *(len(cost.model) for cost in costs))
    lines = [
        f"{'model':{name_width}} {'calls':>9} {'tokens in':>11} {'out':>11} {'cost':>16}"
        "   (tokens are a rough guess)"
    ]
    total_dollars = 0.0
    batched_calls = 0
    unbatched_models: dict[str, None] = {}
    has_known_price = False
    for cost in costs:
        cost_dollars = dollars(cost, prices)
        if rounds is not None and _provider(cost) in BATCH_PROVIDERS:
            cost_dollars *= 1 - BATCH_DISCOUNT
            batched_calls += cost.calls
        else:
            unbatched_models[cost.model] = None
        total_dollars += cost_dollars
        has_known_price |= not math.isnan(cost_dollars)
        price_text = _free(cost, prices) or _dollars_text(cost_dollars)
        counts = f"{cost.calls:>9,} {cost.tokens_in:>11,} {cost.tokens_out:>11,}"
        lines.append(f"{cost.model:{name_width}} {counts} {price_text:>16}")

    total_text = _dollars_text(total_dollars)
    if costs and all(_free(cost, prices) for cost in costs):
        total_text = "free"
    calls = sum(cost.calls for cost in costs)
    lines.append(f"{'all':{name_width}} {calls:>9,} {'':>11} {'':>11} {total_text:>16}")
    if rounds is None:
        return lines

    lines.append("")
    if batched_calls:
        reference = " (the cost above)" if has_known_price else ""
        lines += [
            f"In batches: {batched_calls:,} requests at half the price{reference}.",
            f"{count_text(rounds, 'round')} of batches, one after the other; "
            "each takes minutes to a day.",
        ]
    if unbatched_models:
        lines.append(
            f"No batches for {', '.join(unbatched_models)}: asked call by call, at the full price."
        )
    return lines


def _provider(cost: Cost) -> str:
    return cost.model.partition("/")[0]


LOCAL = ("embedded", "hf", "llama-cpp-python", "ollama", "transformer_lens")
"""Providers of models that run on this machine."""
LOCAL_LIMIT = 200
"""Tokens of a reply of a model on this machine where nobody sets a limit."""
FREE = {
    **dict.fromkeys((*SIMULATED_PROVIDERS, NO_MODEL), "free (simulated)"),
    **dict.fromkeys(LOCAL, "free (runs here)"),
}
"""Provider → why its calls cost nothing, where no price is given."""


def _free(cost: Cost, prices: Prices) -> str:
    """Why a model's calls cost nothing; "" where they may cost something."""
    return "" if cost.model in prices else FREE.get(_provider(cost), "")


def dollars(cost: Cost, prices: Prices) -> float:
    """Dollars for a model's calls; NaN where the price is unknown."""
    if _free(cost, prices):
        return 0.0
    price = prices.get(cost.model)
    if not price:
        return math.nan
    return (cost.tokens_in * price.input + cost.tokens_out * price.output) / 1e6


def _dollars_text(amount: float) -> str:
    return "price unknown" if math.isnan(amount) else f"${amount:.2f}"
