"""Count what a generator uses, what it costs, and keep it within a budget.

A request is asked only if the budget suffices for it and for all requests in flight at their highest possible cost:
the estimated tokens of the input and `max_tokens` of output. When an answer arrives, its real cost takes their place.
A request that the budget does not allow waits for those in flight, which usually cost less; if there are none, the run
stops. An answer without token counts, and a request that timed out, count at the highest cost; an error is free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import ceil
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, Price
from multimodal_eval.core.errors import ConfigError, ImageError, MultimodalEvalError, did_you_mean
from multimodal_eval.core.yaml_text import read_yaml
from multimodal_eval.generate.protocol import Answer, EndpointError, Generator, Media, Request, Text
from multimodal_eval.generate.registry import answer_from
from multimodal_eval.media.images import header
from multimodal_eval.media.policy import MediaPolicy

__all__ = [
    "RULE",
    "BudgetError",
    "Estimate",
    "Meter",
    "Metered",
    "Purse",
    "cost_of",
    "input_tokens",
    "money",
    "price_of",
    "read_prices",
    "request_bytes",
    "with_price",
]


# Input tokens may be this many times the estimate: before an answer has told, and beyond the largest ratio so far.
_FIRST_RATIO, _MARGIN = 2.0, 1.25


class BudgetError(EndpointError):
    """The next request might exceed the budget. The answers so far are kept."""


@dataclass
class Purse:
    """The money of a run: its budget, and what is spent or reserved. Meters with different prices can share it."""

    budget: float | None = None
    spent: float = 0.0  # also by earlier processes
    reserved: dict[int, float] = field(default_factory=dict)  # number of a request in flight -> its highest cost
    numbers: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def wake(self) -> None:
        """Let the requests that wait look again."""
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)


class Meter:
    """Tokens and money of the requests of this process to one model, and what was spent before."""

    def __init__(
        self,
        price: Price | None = None,
        budget: float | None = None,
        spent: float = 0.0,
        *,
        most_output: int = 0,
        purse: Purse | None = None,
    ) -> None:
        self.price = price
        self.input_tokens = 0
        self.output_tokens = 0
        self.most_output = most_output  # tokens of one answer
        self._ratio = 0.0  # the largest so far: tokens of an input / its estimate
        self.purse = Purse(budget, spent) if purse is None else purse

    @classmethod
    def of(cls, config: GenerationConfig, spent: float = 0.0, purse: Purse | None = None) -> Meter:
        """The meter of a run; `spent` is what its answers so far have cost."""
        tokens = config.parameters.max_tokens or 0
        return cls(config.price, config.budget, spent, most_output=tokens, purse=purse)

    @property
    def spent(self) -> float:
        """What is spent, also by earlier processes, and by others that share the budget."""
        return self.purse.spent

    async def reserve(self, estimated: int) -> int:
        """Wait until the budget allows a request with this many estimated tokens. Returns its number."""
        purse, most = self.purse, self._highest_cost(estimated)
        while purse.budget is not None and purse.spent + sum(purse.reserved.values()) + most > purse.budget:
            if not purse.reserved:
                raise BudgetError(self._refusal(most))
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            purse.waiting.append(turn)
            await turn
            most = self._highest_cost(estimated)
        purse.numbers += 1
        if purse.budget is not None:
            purse.reserved[purse.numbers] = most
        return purse.numbers

    def settle(self, number: int, estimated: int, answer: Answer) -> None:
        """Replace the highest cost of a request by that of its answer."""
        self.input_tokens += answer.input_tokens or 0
        self.output_tokens += answer.output_tokens or 0
        highest = self.purse.reserved.pop(number, 0.0)
        if self.price is not None:
            if answer.input_tokens is None or answer.output_tokens is None:
                self.purse.spent += highest
            else:
                self.purse.spent += cost_of(
                    self.price, answer.input_tokens, answer.output_tokens, answer.cached_tokens or 0
                )
        if answer.input_tokens is not None:
            self._ratio = max(self._ratio, answer.input_tokens / max(1, estimated))
        self.purse.wake()

    def release(self, number: int, *, is_paid: bool = False) -> None:
        """End a request without an answer; `is_paid` counts its highest cost as spent."""
        highest = self.purse.reserved.pop(number, 0.0)
        self.purse.spent += highest if is_paid else 0.0
        self.purse.wake()

    def _highest_cost(self, estimated: int) -> float:
        if self.price is None:
            return 0.0
        tokens = estimated * (self._ratio * _MARGIN if self._ratio else _FIRST_RATIO)
        return cost_of(self.price, round(tokens), self.most_output)

    def _refusal(self, most: float) -> str:
        assert self.price is not None
        assert self.purse.budget is not None
        currency = self.price.currency
        return (
            f"the budget of {money(self.purse.budget, currency)} does not allow another request: "
            f"{money(self.spent, currency)} are spent, and a request may cost up to {money(most, currency)}"
        )


@dataclass(frozen=True)
class _Reserved:
    number: int
    estimated: int  # tokens of the input


class Metered:
    """A generator that counts what it uses. Everything else is that of the generator inside."""

    def __init__(self, generator: Generator, meter: Meter) -> None:
        self._generator, self._meter = generator, meter
        self._admitted: dict[int, _Reserved] = {}  # by the identity of the request
        self.label = generator.label

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    @asynccontextmanager
    async def admitted(self, request: Request) -> AsyncIterator[None]:
        """Wait until the budget allows the request, before it has a slot and its time-out starts."""
        self._admitted[id(request)] = await self._reserved(request)
        try:
            yield
        finally:
            unused = self._admitted.pop(id(request), None)
            if unused is not None:
                self._meter.release(unused.number)

    async def _reserved(self, request: Request) -> _Reserved:
        estimated = 0 if self._meter.purse.budget is None else input_tokens(request)
        return _Reserved(await self._meter.reserve(estimated), estimated)

    async def answer(self, request: Request) -> Answer:
        """The answer of the generator, if the budget allows the request."""
        meter = self._meter
        reserved = self._admitted.pop(id(request), None) or await self._reserved(request)
        try:
            answer = await answer_from(self._generator, request)
        except asyncio.CancelledError:  # a time-out: the endpoint may have worked on it
            meter.release(reserved.number, is_paid=True)
            raise
        except BaseException as failure:
            meter.release(reserved.number, is_paid=not isinstance(failure, MultimodalEvalError | ConnectionError))
            raise
        meter.settle(reserved.number, reserved.estimated, answer)
        return answer


# What requests cost, by a price file of the user's.
#
# The file is YAML: a model's name, or a pattern with * and ?, and the prices of a million tokens.
#
#     currency: USD
#     gpt-4o-mini: {input: 0.15, output: 0.60, cached_input: 0.075}
#     "openai:gpt-4o*": {input: 2.50, output: 10.00}

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
        raise ConfigError("a budget needs prices: name a price file with --prices FILE")
    if config.parameters.max_tokens is None:
        raise ConfigError(
            "a budget needs a limit of tokens per answer, because an answer may be of any length without one: "
            "--max-tokens N"
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


# How many tokens a request has, before it is asked: an estimate by stated rules.
#
# text one token per 4 bytes of UTF-8, and 4 tokens per turn image one token per 28 x 28 pixels; 85 for `detail: low`;
# 1,024 if only its URL is known audio 32 tokens per second, at 16 kB per second video its frames as images, else 300
# tokens per second, at 125 kB per second

RULE = "4 bytes of text per token, one token per 28 x 28 pixels of an image"
_BYTES = 4  # of text, per token
_TURN = 4  # tokens around each turn
_PATCH = 28  # pixels: width and height of the patch that one token describes
_LOW_DETAIL, _UNSEEN_IMAGE = 85, 1024  # tokens
_AUDIO = 32 / 16_000  # tokens per byte
_VIDEO = 300 / 125_000  # tokens per byte
_UNSEEN = 3_000  # tokens of audio or video of which only the URL is known


@dataclass
class Estimate:
    """What a run would send."""

    requests: int = 0
    cached: int = 0  # of the requests: answered from the cache
    unreadable: int = 0  # samples whose media cannot be opened: nothing is sent
    bytes: int = 0  # of text and media, of requests that are sent
    input_tokens: int = 0
    most_output_tokens: int | None = 0  # None: no limit is set

    def add(self, request: Request, *, times: int = 1, cached: int = 0) -> None:
        """Count a request for so many answers; `cached` of them come from the cache."""
        self.requests += ceil(times / request.count)
        self.cached += cached // request.count
        answers = times - cached
        if not answers:
            return
        sent = ceil(answers / request.count)
        self.bytes += sent * request_bytes(request)
        self.input_tokens += sent * input_tokens(request)
        most = request.parameters.max_tokens
        self.most_output_tokens = (
            None if most is None or self.most_output_tokens is None else self.most_output_tokens + answers * most
        )


def input_tokens(request: Request) -> int:
    """The estimated tokens of a request's turns."""
    text = sum(len(part.text.encode()) for part in _parts(request) if isinstance(part, Text))
    media = sum(_media_tokens(part) for part in _parts(request) if isinstance(part, Media))
    return ceil(text / _BYTES) + _TURN * len(request.turns) + media


def request_bytes(request: Request) -> int:
    """The bytes of a request's text and media. Media in JSON are a third larger."""
    return sum(len(part.text.encode()) if isinstance(part, Text) else _media_bytes(part) for part in _parts(request))


def _parts(request: Request) -> Iterable[Text | Media]:
    return (part for turn in request.turns for part in turn.parts)


def _media_bytes(media: Media) -> int:
    if media.frames:
        return sum(map(len, media.frames))
    return len(media.content if media.content is not None else (media.url or "").encode())


def _media_tokens(media: Media) -> int:
    if media.frames:
        return sum(_image_tokens(frame) for frame in media.frames)
    if media.kind == "image":
        if media.detail == "low":
            return _LOW_DETAIL
        return _UNSEEN_IMAGE if media.content is None else _image_tokens(media.content)
    if media.content is None:
        return _UNSEEN
    return ceil(len(media.content) * (_AUDIO if media.kind == "audio" else _VIDEO))


def _image_tokens(content: bytes) -> int:
    try:
        width, height = header(content, MediaPolicy()).size
    except ImageError:
        return _UNSEEN_IMAGE
    return ceil(width / _PATCH) * ceil(height / _PATCH)
