"""The prices of a judge's models, and a budget that can be kept."""

from __future__ import annotations

from pathlib import Path

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.generate.prices import price_of, read_prices

__all__ = ["with_prices"]


def with_prices(judge: JudgeConfig) -> JudgeConfig:
    """The judge with the prices of its models; those that are known are not read again."""
    if judge.prices is not None and any(model.price is None for model in judge.models):
        path = Path(judge.prices)
        prices = read_prices(path)
        models = [
            msgspec.structs.replace(model, price=model.price or price_of(model.model, prices, str(path)))
            for model in judge.models
        ]
        judge = msgspec.structs.replace(judge, models=models, prices=str(path.resolve()))
    currencies = {model.price.currency for model in judge.models if model.price is not None}
    if len(currencies) > 1:
        raise ConfigError(
            f"the judge {judge.name!r}: the prices of its models must be in one currency. "
            f"Got {' and '.join(sorted(currencies))} instead."
        )
    if judge.budget is None:
        return judge
    if not judge.models or any(model.price is None for model in judge.models):
        raise ConfigError(
            f"the judge {judge.name!r}: a budget needs prices: name a price file with --judge-prices FILE (`prices` "
            "in the judge's file)"
        )
    if judge.parameters.max_tokens is None:
        raise ConfigError(
            f"the judge {judge.name!r}: a budget needs a limit of tokens per verdict, because a reply may be of any "
            "length without one: set `parameters: {max_tokens: 500}` in the judge's file"
        )
    return judge
