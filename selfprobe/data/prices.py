"""Costs of a study: calls, tokens and dollars for each model, before anything is asked."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml
from inspect_ai.model import ModelCost
from pydantic import TypeAdapter, ValidationError

from selfprobe.data import bundled_folder
from selfprobe.errors import InputError, one_line
from selfprobe.text.counts import count_text
from selfprobe.text.families import NO_MODEL, SIMULATED_PROVIDERS
from selfprobe.text.user_input import loaded_file

Prices = Mapping[str, ModelCost]


STATED_NUMBER_TOKENS = 5
"""A rough guess of the tokens of an answer that states a number."""


@dataclass(frozen=True)
class Cost:
    """The calls that one model will get."""

    model: str
    calls: int
    tokens_in: int
    tokens_out: int


CONFIGS = bundled_folder("configs")
"""Folder of the bundled configurations."""
BUNDLED_PRICES = CONFIGS / "prices.yaml"
PRICE_DATE = re.compile(r"^# .*\bas of (\d{4}-\d{2}-\d{2})\b", re.MULTILINE)


@dataclass(frozen=True)
class PriceList:
    """What models cost, and since when that is known."""

    by_model: Prices = field(default_factory=dict)
    """Model → dollars for a million tokens."""
    path: str = ""
    date: str = ""
    """Day whose prices they are, such as 2026-11-28; "" where the file has no comment `as of …`."""

    @property
    def is_bundled(self) -> bool:
        """True if the user named no file."""
        return self.path == str(BUNDLED_PRICES)


@cache
def bundled_prices() -> PriceList:
    """The prices of `configs/prices.yaml`."""
    return read_prices(str(BUNDLED_PRICES))


def read_prices(path: str) -> PriceList:
    """Inspect's model cost file: dollars for a million tokens, by model.

    Args:
        path: YAML or JSON.

    Raises:
        InputError: The file is empty or of another form.
    """
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
    date_comment = PRICE_DATE.search(Path(path).read_text(encoding="utf-8", errors="replace"))
    return PriceList(prices, path, date_comment[1] if date_comment else "")


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


PRICE_EXAMPLE = "{input: 0.15, output: 0.6, input_cache_write: 0.15, input_cache_read: 0.075}"


def price_notes(costs: Sequence[Cost], price_list: PriceList) -> list[str]:
    """The lines under a cost table: the day of its prices, and how a model without one gets it."""
    lines = []
    prices = price_list.by_model
    if price_list.date and any(cost.model in prices for cost in costs):
        origin = "of selfprobe" if price_list.is_bundled else f"of {price_list.path}"
        lines.append(f"Prices {origin}, as of {price_list.date}; --prices FILE has others.")
    unpriced_models = [cost.model for cost in costs if math.isnan(dollars(cost, prices))]
    if unpriced_models:
        lines.append(
            f"Unpriced: {', '.join(unpriced_models)}. Copy {_shown_path(price_list.path)}, add "
            f"`{unpriced_models[0]}: {PRICE_EXAMPLE}` (dollars for a million tokens), and name "
            "the copy by --prices."
        )
    return lines


def _shown_path(path: str) -> str:
    """A path from the working folder, where it lies below that."""
    absolute_path = Path(path).absolute()
    if absolute_path.is_relative_to(Path.cwd()):
        return str(absolute_path.relative_to(Path.cwd()))
    return path


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
    if math.isnan(amount):
        return "price unknown"
    return "under $0.01" if 0 < amount < 0.005 else f"${amount:.2f}"
