"""What a run will cost, before it."""

import math
from datetime import date
from pathlib import Path

import pytest

from selfprobe.data.prices import (
    Cost,
    bundled_prices,
    cost_table,
    dollars,
    price_notes,
    read_prices,
)
from selfprobe.errors import InputError

PRICES = "openai/a: {input: 1.0, output: 10.0, input_cache_write: 0, input_cache_read: 0}\n"


def test_dollars_are_tokens_times_prices_and_unknown_where_a_model_has_none(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES)
    prices = read_prices(str(tmp_path / "prices.yaml")).by_model
    costs = [Cost("openai/a", 10, 2_000_000, 300_000), Cost("openai/b", 5, 1, 1)]
    _, known, other, together = (line.split() for line in cost_table(costs, prices))
    assert known == ["openai/a", "10", "2,000,000", "300,000", "$5.00"]  # 2 × 1 + .3 × 10
    assert other[-2:] == ["price", "unknown"] and together == ["all", "15", "price", "unknown"]


def test_a_simulated_model_and_one_that_runs_here_are_free_unless_they_have_a_price() -> None:
    names = "planted/a", "embedded/smollm2", "openai/a"
    simulated, here, _, together = cost_table([Cost(name, 5, 10, 10) for name in names], {})[1:]
    assert simulated.endswith(" free (simulated)") and here.endswith(" free (runs here)")
    assert together.endswith(" price unknown")
    assert cost_table([Cost("planted/a", 5, 10, 10)], {})[-1].split() == ["all", "5", "free"]


def test_the_columns_of_a_plan_stand_under_one_another_whatever_the_names() -> None:
    names = "openrouter/meta-llama/llama-3.3-70b-instruct", "openai/a", "anthropic/" + "claude" * 10
    lines = cost_table([Cost(name, 500, 55_000, 20_000) for name in names], {})
    assert len({line.index("55,000") for line in lines if "55,000" in line}) == 1
    assert lines[0].index("calls") + len("calls") == lines[1].index(" 500 ") + len(" 500")


def test_a_model_without_batches_is_named_and_costs_the_full_price(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES + PRICES.replace("openai", "mistral"))
    prices = read_prices(str(tmp_path / "prices.yaml")).by_model
    costs = [Cost("openai/a", 10, 2_000_000, 300_000), Cost("mistral/a", 7, 2_000_000, 300_000)]
    table = cost_table(costs, prices, rounds=2)
    assert [line.split()[-1] for line in table[1:4]] == ["$2.50", "$5.00", "$7.50"]
    assert table[5:] == [
        "In batches: 10 requests at half the price (the cost above).",
        "2 rounds of batches, one after the other; each takes minutes to a day.",
        "No batches for mistral/a: asked call by call, at the full price.",
    ]
    assert cost_table(costs[1:], prices, rounds=2)[4:] == [table[-1]]


def test_unknown_costs_are_not_referred_to() -> None:
    [said] = [
        line for line in cost_table([Cost("openai/a", 10, 1, 1)], {}, rounds=1) if "half" in line
    ]
    assert said == "In batches: 10 requests at half the price."


def test_the_bundled_prices_have_a_day_and_cost_something_both_ways() -> None:
    price_list = bundled_prices()
    assert price_list.is_bundled and date.fromisoformat(price_list.date) <= date.today()
    assert len(price_list.by_model) >= 50
    for model, price in price_list.by_model.items():
        assert "/" in model and price.output >= price.input >= price.input_cache_read > 0, model


def test_a_small_price_is_not_shown_as_none() -> None:
    [_, line, _] = cost_table([Cost("openai/gpt-4o-mini", 5, 100, 10)], bundled_prices().by_model)
    assert line.endswith(" under $0.01")


def test_a_plan_says_of_which_day_its_prices_are_and_how_a_model_without_one_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, unknown, free = (
        Cost(name, 5, 100, 10) for name in ("openai/gpt-4o-mini", "openai/nosuch", "planted/a")
    )
    day = bundled_prices().date
    assert price_notes([known, free], bundled_prices()) == [
        f"Prices of selfprobe, as of {day}; --prices FILE has others."
    ]
    assert price_notes([free], bundled_prices()) == []

    monkeypatch.chdir(tmp_path)
    example = "{input: 0.15, output: 0.6, input_cache_write: 0.15, input_cache_read: 0.075}"
    Path("p.yaml").write_text(f"# ours, as of 2026-01-31\nopenai/gpt-4o-mini: {example}\n")
    dated, remedy = price_notes([known, unknown], read_prices("p.yaml"))
    assert dated == "Prices of p.yaml, as of 2026-01-31; --prices FILE has others."
    assert remedy == (
        f"Unpriced: openai/nosuch. Copy p.yaml, add `openai/nosuch: {example}` (dollars for a "
        "million tokens), and name the copy by --prices."
    )
    Path("q.yaml").write_text(f"openai/nosuch: {example}\n")
    assert price_notes([unknown], read_prices("q.yaml")) == []


def test_a_file_of_prices_replaces_the_bundled_ones(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PRICES)
    prices = read_prices(str(tmp_path / "p.yaml"))
    assert not prices.is_bundled and prices.date == ""
    assert math.isnan(dollars(Cost("openai/gpt-4o-mini", 1, 1, 1), prices.by_model))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file: Input should be a valid dictionary"),
        (b"{}", "the file names no model"),
        (b"- a\n", "the file: Input should be a valid dictionary"),
        (b"a: {input: x}\n", "a, input: Input should be a valid number"),
        (b"a: [", "the file is not YAML"),
        (
            b"a: {input: 1}\nb: {input: 1}\na: {input: 2}\n",
            "a is there twice, in lines 1 and 3: give it once",
        ),
        (b"\xff\xfe\x00", "the file is not YAML"),
        (
            b"a: " + b"{b: " * 20_000,
            "the file is not YAML: it nests lists and objects too deep to be read",
        ),
    ],
)
def test_a_file_that_holds_no_prices_is_told_with_what_was_expected(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "prices.yaml").write_bytes(content)
    with pytest.raises(InputError) as error:
        read_prices(str(tmp_path / "prices.yaml"))
    assert "prices.yaml: expected a line for each model, such as `openai/a: {input: 1.0" in str(
        error.value
    )
    assert said in str(error.value) and "\n" not in str(error.value)
