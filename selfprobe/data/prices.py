"""Costs of a study: calls, tokens and dollars for each model, before anything is asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml
from inspect_ai.model import ModelCost
from pydantic import TypeAdapter, ValidationError

from selfprobe.errors import InputError, one_line
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
    expected = (
        f"{path}: expected a line for each model, such as `openai/a: {{{', '.join(_fields())}}}`"
    )
    try:
        content = loaded_file(path)
        prices = TypeAdapter(dict[str, ModelCost]).validate_python(content)
    except yaml.YAMLError as error:
        raise InputError(f"{expected}; the file is not YAML: {one_line(error)}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ", ".join(map(str, first["loc"])) or "the file"
        raise InputError(f"{expected}; {place}: {first['msg']}") from None
    if not prices:
        raise InputError(f"{expected}; the file names no model")
    return prices


BATCHED = ("openai", "anthropic", "google", "grok", "together")
"""Providers whose batches Inspect sends."""

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
    wide = max(40, *(len(cost.model) for cost in costs))
    lines = [
        f"{'model':{wide}} {'calls':>9} {'tokens in':>11} {'out':>11} {'cost':>16}   (tokens are a rough guess)"
    ]
    whole = [
        cost for cost in costs if rounds is None or cost.model.partition("/")[0] not in BATCHED
    ]
    sums = [(1 if cost in whole else 1 - BATCH_DISCOUNT) * dollars(cost, prices) for cost in costs]
    for cost, paid in zip(costs, sums, strict=True):
        counts = f"{cost.calls:>9,} {cost.tokens_in:>11,} {cost.tokens_out:>11,}"
        lines.append(f"{cost.model:{wide}} {counts} {_free(cost, prices) or _shown(paid):>16}")
    calls = sum(cost.calls for cost in costs)
    total = "free" if costs and all(_free(cost, prices) for cost in costs) else _shown(sum(sums))
    lines.append(f"{'all':{wide}} {calls:>9,} {'':>11} {'':>11} {total:>16}")
    if rounds is None:
        return lines
    turns = f"{rounds} round{'s' * (rounds != 1)} of batches, one after the other; each takes minutes to a day."
    said = []
    if batched := calls - sum(cost.calls for cost in whole):
        above = "" if all(map(math.isnan, sums)) else " (the cost above)"
        said += [f"In batches: {batched:,} requests at half the price{above}.", turns]
    if whole:
        names = ", ".join(dict.fromkeys(cost.model for cost in whole))
        said.append(f"No batches for {names}: asked call by call, at the full price.")
    return [*lines, "", *said]


def _fields() -> list[str]:
    return [f"{name}: 1.0" for name in ModelCost.model_fields]


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
    return "" if cost.model in prices else FREE.get(cost.model.partition("/")[0], "")


def dollars(cost: Cost, prices: Prices) -> float:
    """Dollars for a model's calls; NaN where the price is unknown."""
    if _free(cost, prices):
        return 0.0
    price = prices.get(cost.model)
    return (
        (cost.tokens_in * price.input + cost.tokens_out * price.output) / 1e6 if price else math.nan
    )


def _shown(dollars: float) -> str:
    return "price unknown" if math.isnan(dollars) else f"${dollars:.2f}"
