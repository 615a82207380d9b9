"""What requests cost, by a price file of the user's.

The file is YAML: a model's name, or a pattern with * and ?, and the prices of a million tokens.

    currency: USD
    gpt-4o-mini: {input: 0.15, output: 0.60, cached_input: 0.075}
    "openai:gpt-4o*": {input: 2.50, output: 10.00}
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from multimodal_eval.core.config import GenerationConfig, Price
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.yaml_text import read_yaml

__all__ = ["cost_of", "money", "price_of", "read_prices", "with_price"]

_MILLION = 1_000_000
_CURRENCY = "currency"
_EXAMPLE = "{input: 0.15, output: 0.60}"


def read_prices(path: Path) -> dict[str, Price]:
    """The prices of a file, by model or pattern."""
    content = read_yaml(path, "the price file", unique_keys=True)
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a price file names models and their prices, such as `gpt-4o-mini: {_EXAMPLE}`")
    currency = content.pop(_CURRENCY, "USD")
    if not isinstance(currency, str) or not currency.strip():
        raise ConfigError(f"{path}: `currency` must be a text, such as USD. Got {currency!r} instead.")
    return {str(model): _price(path, str(model), entry, currency) for model, entry in content.items()}


def _price(path: Path, model: str, entry: object, currency: str) -> Price:
    """The price of one model; per million tokens."""
    if not isinstance(entry, dict) or _CURRENCY in entry:
        raise ConfigError(f"{path}: `{model}` must be prices of a million tokens, such as {_EXAMPLE}")
    for key in entry:
        if key not in Price.__struct_fields__:
            known = [name for name in Price.__struct_fields__ if name != _CURRENCY]
            raise ConfigError(f"{path}: `{model}` has no price {key!r}.{did_you_mean(str(key), known)}")
    try:
        return msgspec.convert({**entry, _CURRENCY: currency}, Price)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: `{model}`: {error}. Write, for example, {_EXAMPLE}") from None


def price_of(model: str, prices: dict[str, Price], file: str) -> Price:
    """The price of PROVIDER:NAME: of its name, of the name without the provider, or of the first pattern that fits."""
    names = (model, model.partition(":")[2])
    for name in names:
        if name in prices:
            return prices[name]
    for pattern, price in prices.items():
        if any(fnmatchcase(name, pattern) for name in names):
            return price
    raise ConfigError(f"{file} has no price of {model!r}.{did_you_mean(names[1] or model, list(prices))}")


def with_price(config: GenerationConfig) -> GenerationConfig:
    """The settings with the price of the model. A budget that could not be kept is refused."""
    if config.prices is not None:
        path = Path(config.prices)
        price = price_of(config.model, read_prices(path), str(path))
        config = msgspec.structs.replace(config, price=price, prices=str(path.resolve()))
    if config.budget is None:
        return config
    if config.price is None:
        raise ConfigError("a budget needs prices: name a price file with --prices FILE (`prices` in a configuration)")
    if config.parameters.max_tokens is None:
        raise ConfigError(
            "a budget needs a limit of tokens per answer, because an answer may be of any length without one: "
            "--max-tokens N (`max_tokens` in the parameters)"
        )
    return config


def cost_of(price: Price, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
    """What tokens cost; `cached_tokens` are those of the input that come from the endpoint's prompt cache."""
    cached = min(cached_tokens, input_tokens)
    reduced = price.input if price.cached_input is None else price.cached_input
    return ((input_tokens - cached) * price.input + cached * reduced + output_tokens * price.output) / _MILLION


def money(amount: float, currency: str) -> str:
    """An amount for people: `12.34 USD`, and small ones with two significant digits: `0.0012 USD`."""
    digits = 2
    while digits < 8 and 0 < amount < 10 ** (1 - digits):
        digits += 1
    return f"{amount:,.{digits}f} {currency}"
