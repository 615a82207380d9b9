"""The HTTP client of the providers: one pool of connections, and errors that say what to do.

What a status means to the engine:

    401                       EndpointError: the key
    403                       EndpointError: the key, before the first answer; after it, RejectedError: this request
    4xx of a content filter   FilteredError: this request
    402                       EndpointError: no credit; also 429 with `insufficient_quota`
    404, 405                  EndpointError: the address, or the model
    407                       EndpointError: the proxy
    400, 413, 422, other 4xx  RejectedError: this request
    408, 409, 425, 429        RateLimitError, with Retry-After
    204                       RetryableError
    5xx                       RetryableError; RateLimitError if the endpoint asks for a pause
    no connection, reset …    RetryableError
    200 without JSON          MalformedReplyError

A redirect is followed only to the same host: the key and the samples go nowhere else.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import msgspec

from multimodal_eval.core.errors import ConfigError, RetryableError, described
from multimodal_eval.core.visible import storable
from multimodal_eval.generate.protocol import (
    EndpointError,
    FilteredError,
    MalformedReplyError,
    RateLimitError,
    RejectedError,
    UnreachableError,
)
from multimodal_eval.generate.secrets import Key

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpClient", "checked_url", "decoded", "excerpt", "is_filtered"]


# Recognise an error of an endpoint that is about the content of one request: a content filter has stopped it.
#
# Azure and OpenAI send HTTP 400 with a `code` (`content_filter`, `content_policy_violation`); gateways such as
# OpenRouter send HTTP 403 with a sentence ("… was flagged by moderation"). Words count only if the caller asks for
# them, because a message about a parameter may contain them too.

_CODES = {
    "content_filter",
    "content_filtered",
    "content_policy_violation",
    "moderation_blocked",
    "responsibleaipolicyviolation",
}
_WORDS = re.compile(rb"(?i)moderation|flagged|content[ _-]?(policy|filter|management)")


def is_filtered(content: bytes, *, by_words: bool = False) -> bool:
    """Whether the body of an error says that a content filter stopped the request; `by_words` also in a sentence."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        body = None
    if any(code.lower() in _CODES for code in _codes(body)):
        return True
    return by_words and _WORDS.search(content) is not None


def _codes(body: Any) -> Iterator[str]:
    """The codes and types of an error: of the body, of its `error`, and of the `innererror` in that."""
    if not isinstance(body, dict):
        return
    yield from (body[name] for name in ("code", "type") if isinstance(body.get(name), str))
    for name in ("error", "innererror"):
        yield from _codes(body.get(name))


CONNECT_SECONDS = 30.0
KEPT_SECONDS = 4.0  # an idle connection; uvicorn, which serves vLLM and SGLang, closes it after 5
LARGEST_REPLY = 64 * 2**20  # bytes
LONGEST_EXCERPT = 300  # characters of a body in a message
LONGEST_PAUSE = 24 * 3600.0  # seconds; a longer Retry-After counts as a day
_HOPS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_SECRET_PARAMETERS = {"key", "api_key", "apikey", "api-key", "token", "access_token", "sig", "code", "subscription-key"}

_CHECK_PROXY = "Check $http_proxy and $https_proxy, or exclude the host with $no_proxy"

T = TypeVar("T")


@dataclass(eq=False)
class HttpClient:
    """Requests to one endpoint. `connections` is the most that are open at the same time."""

    key: Key
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # with the key
    connections: int = 100
    timeout: float = 600.0  # seconds per request, from the first byte sent to the last byte received
    subject: str = ""  # the model, for messages
    has_answered: bool = field(default=False, init=False)  # a request with this key
    _sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[_Keeper, aiohttp.ClientSession]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    async def post(self, url: str, body: bytes, content_type: str | None = None) -> bytes:
        """The body of the reply to a body, by default in JSON, without the key."""
        content = await self._asked("POST", url, body, content_type)
        self.has_answered = True
        return content

    async def get(self, url: str) -> bytes:
        """The body of the reply, without the key."""
        return await self._asked("GET", url, None)

    async def _asked(self, method: str, url: str, body: bytes | None, content_type: str | None = None) -> bytes:
        import aiohttp

        headers = None if content_type is None else {"Content-Type": content_type}
        session = await self._session()
        address = url
        for _ in range(_HOPS):
            proxy = _proxy(address)
            try:
                async with session.request(
                    method, address, data=body, headers=headers, allow_redirects=False, proxy=proxy
                ) as response:
                    content = self.key.removed(await _content(response))
                    if response.status in _REDIRECTS:
                        address = self._redirected(response, address, method)
                        continue
                    if response.status != 200:
                        raise self._failure(response.status, response.headers, content, url)
                    return content
            except aiohttp.ClientConnectorDNSError:
                raise UnreachableError(f"no server answers at {url} (the host is not known)") from None
            except aiohttp.ClientConnectorCertificateError as error:
                raise EndpointError(f"the certificate of {url} is not valid: {self._words(error)}") from None
            except aiohttp.ClientProxyConnectionError as error:
                reason = os.strerror(error.errno).lower() if error.errno else self._words(error)
                words = f"the proxy {_without_secrets(proxy or '')} of the environment does not answer"
                raise UnreachableError(f"{words} ({reason})") from None
            except aiohttp.ClientHttpProxyError as error:
                raise self._refused_by_proxy(error, url) from None
            except aiohttp.ClientConnectorError as error:
                reason = os.strerror(error.errno).lower() if error.errno else self._words(error)
                raise UnreachableError(f"no server answers at {url} ({reason})") from None
            except aiohttp.InvalidURL:
                raise EndpointError(f"{url} is not a valid URL") from None
            except TimeoutError:
                raise RetryableError(f"no complete reply from {url} within {self.timeout:g} seconds") from None
            except (aiohttp.ClientError, ConnectionError) as error:
                raise RetryableError(f"the connection to {url} was lost: {self._words(error)}") from None
        raise EndpointError(f"{url} redirects more than {_HOPS} times. Check the base URL")

    async def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            keeper = _kept(self._new_session())
            self._sessions[loop] = keeper, await anext(keeper)
        return self._sessions[loop][1]

    def _new_session(self) -> aiohttp.ClientSession:
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.connections, ttl_dns_cache=300, keepalive_timeout=KEPT_SECONDS),
            timeout=aiohttp.ClientTimeout(total=self.timeout, sock_connect=min(CONNECT_SECONDS, self.timeout)),
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": "multimodal-eval",
                **self.headers,
            },
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _redirected(self, response: aiohttp.ClientResponse, address: str, method: str) -> str:
        """Where a redirect goes, if it may be followed."""
        location = self.key.removed_text(response.headers.get("Location", ""))
        try:
            target = urljoin(address, location)
            old, new = urlsplit(address), urlsplit(target)
        except ValueError:
            raise EndpointError(f"{address} redirects to {_line(location)!r}, which is not a valid URL") from None
        if (new.scheme, new.netloc) != (old.scheme, old.netloc):
            raise EndpointError(
                f"{address} redirects to {_without_secrets(target)}, which is another server. Redirects to another "
                "server are not followed, because the key and the samples would go there. If it is the right one, "
                "pass it as the base URL"
            )
        if method == "POST" and response.status not in (307, 308):
            raise EndpointError(f"{address} redirects to {_without_secrets(target)}. Pass that address as the base URL")
        return target

    def _failure(self, status: int, headers: Mapping[str, str], content: bytes, url: str) -> Exception:
        """The error that a status means."""
        words = f"HTTP {status}: {excerpt(content)}"
        if 400 <= status < 500 and is_filtered(content, by_words=status == 403 and self.has_answered):
            return FilteredError(words)
        if status == 403 and self.has_answered:  # the key is accepted
            return RejectedError(words)
        if status in (401, 403):
            variable = f"${self.key.name}" if self.key.name else "the key"
            advice = f"Set {variable}" if self.key.value is None else f"Check the value of {variable}"
            return EndpointError(f"the endpoint does not accept the key ({words}). {advice}")
        if status == 407:
            return EndpointError(f"the proxy does not accept its user and password ({words}). {_CHECK_PROXY}")
        if status == 402 or (status == 429 and b"insufficient_quota" in content):
            return EndpointError(f"the account of the key has no credit left ({words})")
        if status == 404 and self.subject and _names(self.subject, content):
            return EndpointError(f"the endpoint has no model {self.subject!r} ({words})")
        if status in (404, 405):
            return EndpointError(f"{url} does not exist ({words}). Check the base URL; most end in /v1")
        if status in (408, 409, 425, 429):
            return RateLimitError(words, retry_after(headers))
        if status == 204:
            return RetryableError(words)
        if status >= 500:
            pause = retry_after(headers)
            return RetryableError(words) if pause is None else RateLimitError(words, pause)
        return RejectedError(words)

    def _refused_by_proxy(self, error: aiohttp.ClientHttpProxyError, url: str) -> Exception:
        """The error of a proxy that makes no connection. The exception itself contains the proxy's password."""
        words = _line(self.key.removed_text(error.message))
        text = f"the proxy of the environment does not connect to {url} (HTTP {error.status}: {words})"
        return RetryableError(text) if error.status >= 500 else EndpointError(f"{text}. {_CHECK_PROXY}")

    def _words(self, error: BaseException) -> str:
        return _line(self.key.removed_text(described(error)))


_Keeper = AsyncGenerator["aiohttp.ClientSession", None]


async def _kept(session: aiohttp.ClientSession) -> _Keeper:
    """Yield the session and close it with the event loop: `asyncio.run` closes generators that are still open."""
    try:
        yield session
    finally:
        await session.close()


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """The body of a reply, up to the largest size."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > LARGEST_REPLY:
            response.close()
            raise MalformedReplyError(f"the reply is larger than {LARGEST_REPLY // 2**20} MiB", "")
        chunks.append(chunk)
    return b"".join(chunks)


def _names(model: str, content: bytes) -> bool:
    """Whether the body of an error is about the model."""
    return model.encode() in content or msgspec.json.encode(model)[1:-1] in content or b"model" in content.lower()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The pause in seconds that an endpoint asks for: `Retry-After` (seconds or a date) or `retry-after-ms`."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("Retry-After")
    seconds: float | None = None
    try:
        if milliseconds is not None:
            seconds = float(milliseconds) / 1000
        elif value is not None:
            seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return None if seconds is None or isnan(seconds) else min(max(seconds, 0.0), LONGEST_PAUSE)


class _Error(msgspec.Struct):
    message: str | None = None


class _ErrorBody(msgspec.Struct):
    error: _Error | str | None = None
    message: str | None = None  # vLLM before 0.10, SGLang
    detail: str | None = None  # FastAPI


def excerpt(content: bytes) -> str:
    """What a body says in a message: the text of a JSON error, or the beginning of the body."""
    try:
        body = msgspec.json.decode(content, type=_ErrorBody)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        text = content[: LONGEST_EXCERPT * 8].decode("utf-8", "replace")
    else:
        error = body.error.message if isinstance(body.error, _Error) else body.error
        text = error or body.message or body.detail or content[: LONGEST_EXCERPT * 8].decode("utf-8", "replace")
    return _line(text) or "an empty body"


def _line(text: str) -> str:
    """A text of the endpoint for a message: one line, short, without control characters."""
    text = " ".join("".join(mark if mark.isprintable() else " " for mark in text[: LONGEST_EXCERPT * 8]).split())
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 1] + "…"


def decoded(content: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """A reply as a record; MalformedReplyError if it is another thing.

    NaN and Infinity, which are not JSON, are read as null, and half of a surrogate pair as U+FFFD.
    """
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        with suppress(ValueError, RecursionError):
            value = json.loads(content, parse_constant=lambda _: None)
            content = storable(json.dumps(value, ensure_ascii=False)).encode()
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise MalformedReplyError(f"the reply is not what the API promises: {fault}", excerpt(content)) from None


def checked_url(url: str) -> str:
    """A base URL without a slash at its end. An address with a key in it is refused: it would be stored."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port  # both may raise
    except ValueError:
        raise ConfigError("`base_url` is not a valid URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"`base_url` must start with http:// or https://. Got {_without_secrets(text)!r} instead.")
    secret = [name for name in _parameters(parts.query) if name.lower() in _SECRET_PARAMETERS]
    if parts.username is not None or parts.password is not None or secret:
        raise ConfigError(
            f"`base_url` must not contain a key ({secret[0] if secret else 'user:password@'}), because the address is "
            "stored with the run. Put the key into an environment variable and name it in `key_env`"
        )
    del port
    return text.partition("#")[0].rstrip("/")


def _parameters(query: str) -> list[str]:
    return [part.partition("=")[0] for part in query.split("&") if part]


def _without_secrets(url: str) -> str:
    """An address for a message: without user, password and query."""
    address = _line(url).partition("?")[0]
    return address.rpartition("@")[2] if "@" in address else address


@lru_cache(64)
def _proxy(url: str) -> str | None:
    """The proxy of the environment for an address; none for this machine. It may contain a password."""
    parts = urlsplit(url)
    if parts.hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
