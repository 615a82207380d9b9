"""What a request only wishes for: an answer by a JSON schema, and the probabilities of other tokens.

Not every endpoint knows them. One that refuses a request and names the wish is asked again without it, and if it then
answers, the wish is not sent any more. The digest of the request stays that of the wish: which endpoints grant it
depends on their versions, and an answer without it is as good for whoever reads it, or is refused there.
"""

from __future__ import annotations

import dataclasses
import re
import warnings

import msgspec

from multimodal_eval.generate.protocol import Answer, Request

__all__ = ["RefusedWishWarning", "Wishes", "without_alternatives"]

# wish -> what an endpoint says that does not know it
_NAMES = {
    "a JSON schema": re.compile(
        r"response_?format|text\.format|output_?(?:config|format)|schema|structured|guided|grammar|json", re.IGNORECASE
    ),
    "the probabilities of other tokens": re.compile(r"logprob|log prob", re.IGNORECASE),
}
_SCHEMA, _PROBABILITIES = _NAMES


class RefusedWishWarning(UserWarning):
    """An endpoint refuses what a request can do without."""


class Wishes:
    """The wishes that one endpoint does not grant."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.notes: list[str] = []  # what was refused, in words
        self._refused: set[str] = set()

    def left_in(self, request: Request) -> Request:
        """The request without wishes that were refused before."""
        for wish in self._refused:
            request = _without(request, wish)
        return request

    def named_in(self, request: Request, rejection: str) -> str | None:
        """The wish of a request that the endpoint's words name; None if they are about something else."""
        return next((wish for wish in _wishes_of(request) if _NAMES[wish].search(rejection)), None)

    def without(self, request: Request, wish: str) -> Request:
        """The request without a wish."""
        return _without(request, wish)

    def note(self, wish: str, rejection: str) -> None:
        """Remember that the endpoint does not grant a wish. Tells it once."""
        if wish in self._refused:
            return
        self._refused.add(wish)
        self.notes.append(f"{self.model} is asked without {wish}, which the endpoint refuses ({rejection})")
        warnings.warn(self.notes[-1], RefusedWishWarning, stacklevel=3)


def without_alternatives(request: Request, answer: Answer) -> Answer:
    """The answer without the probabilities of other tokens, if nobody asked for them: some servers always send them."""
    if answer.top_logprobs is None or request.parameters.top_logprobs is not None:
        return answer
    return msgspec.structs.replace(answer, tokens=None, top_logprobs=None)


def _wishes_of(request: Request) -> list[str]:
    probabilities = request.parameters.top_logprobs is not None
    # First the one whose name is the more particular: the message about it may also contain "JSON".
    return [_PROBABILITIES] * probabilities + [_SCHEMA] * (request.schema is not None)


def _without(request: Request, wish: str) -> Request:
    if wish == _SCHEMA:
        return dataclasses.replace(request, schema=None)
    return dataclasses.replace(request, parameters=msgspec.structs.replace(request.parameters, top_logprobs=None))
