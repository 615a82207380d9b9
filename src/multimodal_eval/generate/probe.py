"""Try an endpoint with one small request before the first real one, and say what to do if it fails.

The list of models is read if the endpoint has one. Then a request of a few words is sent, with the parameters of the
run and a small image or audio if the first request has media of that kind. An endpoint that is only busy passes.
"""

from __future__ import annotations

import asyncio
import io
import wave
from base64 import b64decode
from collections.abc import Sequence

import msgspec

from multimodal_eval.core.config import Parameters
from multimodal_eval.core.errors import MultimodalEvalError, RetryableError
from multimodal_eval.core.retries import RETRYABLE
from multimodal_eval.generate.protocol import (
    Answer,
    EndpointError,
    MalformedReplyError,
    Media,
    RejectedError,
    Request,
    Text,
    Turn,
    UnreachableError,
)

__all__ = ["Endpoint", "Probe", "probe"]

PROMPT = "This is a test of the connection. Answer with: ok"
TOKENS = 16  # some models refuse a lower limit
SECONDS = 60.0  # a model that is being loaded may need longer, which is not an error
MALFORMED = 3  # replies in a row that are not those of the API
MOST_NAMES = 12  # of models in a message
# A gray image of 28 x 28 pixels: two patches of the usual encoders in each direction, because some refuse less.
_PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABwAAAAcCAIAAAD9b0jDAAAAKElEQVR42mOsr69noDZgYqABGDV01NBRQ0cNHTV01NBRQ0cNHXyGAgDhkAG1"
    "2W1F+QAAAABJRU5ErkJggg=="
)
_SKIP = "To run without this test, pass --no-probe"


class Endpoint:
    """A model behind an address: what a probe needs of it."""

    model: str
    base_url: str

    async def ask(self, request: Request) -> Answer:
        """The answer to a request, without a probe."""
        raise NotImplementedError

    async def models(self) -> list[str]:
        """The names of the endpoint's models. Any error means that it has no list."""
        raise RetryableError("no list of models")

    async def is_alive(self) -> bool:
        """Whether the endpoint deals with a small request now, while others fail."""
        try:
            async with asyncio.timeout(SECONDS):
                await self.ask(Request("probe", (Turn("user", (Text(PROMPT),)),), Parameters(max_tokens=TOKENS)))
        except RejectedError:
            return True
        except (MultimodalEvalError, TimeoutError, ConnectionError):
            return False
        return True


class Probe:
    """The probe of one endpoint: the first request waits for it, and no other is affected."""

    def __init__(self, endpoint: Endpoint, *, on: bool = True) -> None:
        self._endpoint, self._is_done = endpoint, not on
        self._tried: asyncio.Event | None = None  # set when the attempt in progress ends; each has its own event loop

    async def before(self, request: Request) -> None:
        """Return when the endpoint was tried; raises EndpointError if it does not work."""
        while not self._is_done:
            if self._tried is not None:
                await self._tried.wait()
                continue
            self._tried = tried = asyncio.Event()
            try:
                await probe(self._endpoint, request)
                self._is_done = True
            finally:
                self._tried = None
                tried.set()


async def probe(endpoint: Endpoint, first: Request) -> None:
    """Try an endpoint with a request like `first`. Raises EndpointError with what to do if no request can succeed."""
    known = await _models(endpoint)
    media = _samples(first)
    try:
        failure = await _tried(endpoint, _request(first, media))
        if failure is None:
            return
        if media and await _tried(endpoint, _request(first, [])) is None:
            kinds = " or ".join(sorted({f"{part.kind}s" if part.kind == "image" else part.kind for part in media}))
            raise EndpointError(
                f"{endpoint.model!r} does not accept {kinds} ({failure}). Choose a model that does, or data without. "
                f"{_SKIP}"
            )
    except EndpointError as error:
        advice = _advice(endpoint.model, known)
        raise EndpointError(f"{error}.{advice}" if advice else str(error)) from None
    except UnreachableError as error:
        raise EndpointError(f"{error}. Is it running? Check --base-url") from None
    raise EndpointError(
        f"{endpoint.base_url} refuses a test request: {failure}.{_advice(endpoint.model, known)} {_SKIP}"
    )


async def _models(endpoint: Endpoint) -> list[str]:
    """The names of the models; empty if there is no list. A wrong key or a missing server shows in the request."""
    try:
        async with asyncio.timeout(SECONDS):
            return await endpoint.models()
    except (MultimodalEvalError, TimeoutError, ConnectionError):
        return []


async def _tried(endpoint: Endpoint, request: Request, attempts: int = MALFORMED) -> str | None:
    """Why the endpoint refuses a request; None if it may answer it, now or later."""
    try:
        async with asyncio.timeout(SECONDS):
            await endpoint.ask(request)
    except RejectedError as rejection:
        is_only_short = "output limit" in str(rejection)  # of a model that reasons first
        return None if is_only_short else str(rejection)
    except UnreachableError:
        raise
    except MalformedReplyError as error:
        if attempts > 1:  # it may be an accident
            return await _tried(endpoint, request, attempts - 1)
        raise EndpointError(f"{endpoint.base_url} is not an endpoint of this kind: {error}. Check --base-url") from None
    except RETRYABLE:
        return None
    return None


def _request(first: Request, media: Sequence[Media]) -> Request:
    parameters = msgspec.structs.replace(first.parameters, max_tokens=TOKENS, stop=[])
    return Request("probe", (Turn("user", (*media, Text(PROMPT))),), parameters, schema=first.schema)


def _samples(first: Request) -> list[Media]:
    """A small image and audio, for each kind that the first request has."""
    kinds = {part.kind for part in first.media}
    samples = {"image": Media("image", "image/png", _PNG), "audio": Media("audio", "audio/wav", _silence())}
    return [sample for kind, sample in samples.items() if kind in kinds]


def _silence() -> bytes:
    """Half a second of silence."""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(16_000))
    return content.getvalue()


def _advice(model: str, known: Sequence[str]) -> str:
    """The endpoint's models, if the one of the run is not among them."""
    if not known or model in known:
        return ""
    more = f" and {len(known) - MOST_NAMES:,} more" if len(known) > MOST_NAMES else ""
    return f" The server has: {', '.join(known[:MOST_NAMES])}{more}"
