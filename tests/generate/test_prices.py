"""Prices: the price of a model, what tokens cost, and what a price file must be."""

from __future__ import annotations

import pytest

from multimodal_eval.core.config import GenerationConfig, Parameters, Price
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.meter import cost_of, money, price_of, read_prices, with_price

PRICES = """
currency: EUR
mini: {input: 0.15, output: 0.60, cached_input: 0.075}
"openai:large*": {input: 2.5, output: 10}
"*": {input: 1, output: 2}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "prices.yaml"
    path.write_text(PRICES)
    return path


@pytest.mark.parametrize(
    ("model", "output"),
    [("openai:mini", 0.60), ("mini", 0.60), ("openai:large-2", 10), ("vllm:large-2", 2), ("x", 2)],
)
def test_a_name_comes_before_the_first_pattern_that_fits(file, model, output):
    assert price_of(model, read_prices(file), "prices.yaml").output == output


def test_the_currency_is_that_of_the_file(file):
    assert {price.currency for price in read_prices(file).values()} == {"EUR"}


def test_a_model_without_a_price_is_refused(tmp_path):
    path = tmp_path / "prices.yaml"
    path.write_text("gpt-4o-mini: {input: 0.15, output: 0.6}")
    with pytest.raises(ConfigError, match=r"has no price of 'openai:gpt-4o-mni'\. Did you mean 'gpt-4o-mini'\?"):
        price_of("openai:gpt-4o-mni", read_prices(path), str(path))


def test_cost_worked_out_by_hand():
    price = Price(input=2, output=10, cached_input=0.5)
    # 1,000 tokens of input, 400 of them cached: 600 * 2 + 400 * 0.5 = 1,400; 50 of output: 500. Per million.
    assert cost_of(price, 1000, 50, 400) == pytest.approx(1900 / 1e6, rel=1e-15)


def test_cached_tokens_without_a_price_cost_as_much_as_others():
    assert cost_of(Price(input=2, output=10), 1000, 0, 400) == cost_of(Price(input=2, output=10), 1000, 0)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0.00 USD"),
        (1234.5, "1,234.50 USD"),
        (0.5, "0.50 USD"),
        (0.05, "0.050 USD"),
        (0.0012345, "0.0012 USD"),
        (1e-9, "0.00000000 USD"),
    ],
)
def test_small_amounts_have_two_significant_digits(amount, text):
    assert money(amount, "USD") == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a", "a price file names models"),
        ("mini: 3", "`mini` must be prices of a million tokens, such as"),
        ("mini: {input: 1}", "missing required field `output`"),
        ("mini: {input: -1, output: 1}", ">= 0"),
        ("mini: {input: a, output: 1}", "Expected `float`"),
        ("mini: {inptu: 1, output: 1}", "`mini` has no price 'inptu'. Did you mean 'input'?"),
        ("currency: 3\nmini: {input: 1, output: 1}", "`currency` must be a text"),
        ("mini: {input: 1, output: 1}\nmini: {input: 2, output: 1}", "mini"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path, content, message):
    path = tmp_path / "prices.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as error:
        read_prices(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_settings_get_the_price_of_their_model(file):
    config = with_price(GenerationConfig(model="openai:mini", prices=str(file)))
    assert config.price == Price(input=0.15, output=0.60, cached_input=0.075, currency="EUR")


def test_a_budget_needs_prices():
    with pytest.raises(ConfigError, match="a budget needs prices: name a price file with --prices"):
        with_price(GenerationConfig(model="openai:mini", budget=1))


def test_a_budget_needs_a_limit_of_tokens(file):
    with pytest.raises(ConfigError, match="a budget needs a limit of tokens per answer"):
        with_price(GenerationConfig(model="openai:mini", budget=1, prices=str(file)))
    limited = GenerationConfig(model="openai:mini", budget=1, prices=str(file), parameters=Parameters(max_tokens=9))
    assert with_price(limited).budget == 1
