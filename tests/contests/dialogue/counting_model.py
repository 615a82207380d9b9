"""Questions, and a model whose replies depend on the conversation."""

from __future__ import annotations

import json
from math import log

from multimodal_eval.generate.protocol import Answer


def said(*texts):
    """A turn of the user."""
    return [{"type": "text", "content": text} for text in texts]


QUESTIONS = {
    "столицы": [said("Столица Франции?"), said("А Италии?"), said("А Японии?")],
    "animals": [said("A pet that purrs?"), said("And one that barks?")],
    "one": [said("Yes or no?")],
}
GOLD = {
    "столицы": {"type": "Text2Text", "replies": [["Париж"], ["Рим"], ["Токио"]]},
    "animals": {"type": "Text2Text", "replies": [["cat"], ["dog"]]},
    "one": {"type": "Text2Text", "replies": [["yes"]]},
}


class Counting:
    """A model whose reply depends on the conversation: the number of its own replies so far, and the last question.

    The tokens of reply k have the probabilities 1/2 and 1/8, and k - 1 tokens more have the probability 1/4, so every
    perplexity is 4: the mean of ln 2 and ln 8 is ln 4.
    """

    label = "counting@1"

    def __init__(self, fail=None, logprobs=True):
        self.fail, self.logprobs, self.requests = fail or {}, logprobs, []

    async def answer(self, request):
        self.requests.append(request)
        replies = [turn for turn in request.turns if turn.role == "assistant"]
        failure = self.fail.get(request.id)
        if isinstance(failure, Exception):
            raise failure
        if failure is not None:
            return failure
        logprobs = [-log(2), -log(8), *[-log(4)] * len(replies)] if self.logprobs else None
        return Answer(f"{len(replies) + 1}. {request.prompt}", logprobs=logprobs)

    @property
    def ids(self):
        return [request.id for request in self.requests]


REFUSED = Answer("I cannot say that", finish="refusal")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))
