"""A judge with known leanings: behind OpenAI's API, or as a Python function.

    with judge_server(Leanings(flips=0.2, length=1.5)) as server:
        ...  # server.url, and server.requests is how many verdicts were asked for
    evaluate(data, metrics=["judge:preference"], judge=scripted_judge(Leanings(sensitivity=0.9, specificity=0.7)))

The judge reads the fenced texts of the prompt. What an answer is worth is in its text, `[quality 0.8]`, or else drawn
by a digest of it, in [0, 1]. All draws are digests of the fenced texts, so that they do not depend on the order of the
requests, and those about a pair do not depend on the order of its answers. What to reply is taken from the JSON Schema
of the request, or from the example of a reply at the end of the prompt.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import NormalDist
from typing import Any

from tests.generate.server import Behaviour, Reply, Server, user_text

_FENCED = re.compile(r"<([\w-]+) (\S+?)>\n(.*?)\n</\1 \2>", re.DOTALL)
_QUALITY = re.compile(r"\[quality (-?[\d.]+)\]")
_ANSWER = re.compile(r"(?:answer|candidate|caption|response)(?:-\w+)?")
_SCALE = re.compile(r"from (-?\d+) to (-?\d+)")
_KEY = re.compile(r'"([\w-]+)"\s*:')
UNREADABLE = ("I would rather not decide.", '{"verdict": ', "Both have their merits; it depends.")


@dataclass(frozen=True)
class Leanings:
    """How the judge deviates from the quality of the answers."""

    flips: float = 0.0  # share of pairs for which it takes the place of an answer, and not the answer
    prefers_first: float = 1.0  # share of these pairs in which it takes the answer that is shown first
    ties: float = 0.0  # share of pairs that it calls equal
    length: float = 0.0  # added to the log-odds of a pair, times tanh of the difference of lengths / 100 characters
    strength: float | None = None  # log-odds per difference of quality; None: the better answer always wins
    leniency: float = 0.0  # added to the quality of every single answer
    noise: float = 0.0  # standard deviation of what is added to the quality, drawn anew in each repetition
    sensitivity: float = 1.0  # P(yes | quality >= 0.5)
    specificity: float = 1.0  # P(no | quality < 0.5)
    unreadable: float = 0.0  # share of replies without a verdict
    refusals: float = 0.0
    seed: int = 0

    def reply(self, prompt: str, schema: Mapping[str, Any] | None = None, repetition: str = "") -> Reply:
        """What the judge replies to a prompt."""
        texts = [(name, text) for name, _, text in _FENCED.findall(prompt)]
        answers = [text for name, text in texts if _ANSWER.fullmatch(name)]
        everything = sha256(json.dumps(texts).encode()).hexdigest() + repetition
        if self._draw("refusal", everything) < self.refusals:
            return Reply(refusal="I cannot judge this.", finish="stop")
        if self._draw("unreadable", everything) < self.unreadable:
            return Reply(UNREADABLE[int(self._draw("which", everything) * len(UNREADABLE))])
        verdict = _Verdict(self, answers, everything)
        return Reply(json.dumps(verdict.filled(schema if schema is not None else _example(prompt))))

    def quality(self, answer: str) -> float:
        """What an answer is worth, without any leaning."""
        named = _QUALITY.search(answer)
        return float(named[1]) if named else self._draw("quality", answer)

    def says_yes(self, answer: str) -> bool:
        """The verdict on whether an answer is right."""
        if self.quality(answer) >= 0.5:
            return self._draw("yes", answer) < self.sensitivity
        return self._draw("yes", answer) >= self.specificity

    def winner(self, first: str, second: str) -> int:
        """Which of two answers wins, as shown: 1 or 2; 0 is a tie."""
        first_text, second_text = sorted((first, second))
        pair = f"{first_text}\0{second_text}"
        place = self._draw("place", pair)
        if place < self.flips:
            return 1 if place < self.flips * self.prefers_first else 2
        if first == second or self._draw("tie", pair) < self.ties:
            return 0
        wins = first_text if self._draw("win", pair) < self.share(first_text, second_text) else second_text
        return 1 if wins == first else 2

    def share(self, first_text: str, second_text: str) -> float:
        """The probability that the first answer wins, if the judge looks at the answers."""
        better = self.quality(first_text) - self.quality(second_text)
        if self.strength is None and not self.length:
            return float(better > 0 or (better == 0 and first_text < second_text))
        longer = math.tanh((len(first_text) - len(second_text)) / 100)
        return 1 / (1 + math.exp(-((self.strength or 0.0) * better + self.length * longer)))

    def _draw(self, what: str, about: str) -> float:
        """A number in [0, 1) that depends on nothing else."""
        digest = sha256(f"{self.seed}\0{what}\0{about}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") / 2**64


@dataclass(frozen=True)
class _Verdict:
    """The verdict on the answers of a prompt, in the form that is asked for."""

    leanings: Leanings
    answers: Sequence[str]
    everything: str  # the digest of the prompt's texts, and the repetition

    def filled(self, schema: Mapping[str, Any], name: str = "") -> Any:
        """A value by a schema."""
        if "enum" in schema or "const" in schema:
            return self._chosen(schema.get("enum") or [schema["const"]])
        kind = schema.get("type")
        kind = next(each for each in kind if each != "null") if isinstance(kind, list) else kind
        if kind == "object" or "properties" in schema:
            return {key: self.filled(each, key) for key, each in schema["properties"].items()}
        if kind == "array":
            return self._ranking()
        if kind == "boolean":
            return self.leanings.says_yes(self.answers[0])
        if kind in ("integer", "number"):
            return self._number(schema.get("minimum", 0), schema.get("maximum", 100), name, kind)
        return "so it seems"

    def _chosen(self, values: Sequence[Any]) -> Any:
        words = {str(value).lower(): value for value in values}
        if "yes" in words or "true" in words:
            words = {"yes": words.get("true"), "no": words.get("false"), **words}
            return words["yes" if self.leanings.says_yes(self.answers[0]) else "no"]
        if "tie" in words and len(self.answers) == 2:
            winner = self.leanings.winner(*self.answers)
            names = (("tie",), ("1", "a", "first"), ("2", "b", "second"))[winner]
            return next(words[each] for each in names if each in words)
        return values[int(self.leanings._draw("choice", self.everything) * len(values))]

    def _number(self, low: float, high: float, name: str, kind: str) -> float:
        leanings = self.leanings
        quality = leanings.quality(self.answers[0] if self.answers else "") + leanings.leniency
        if leanings.noise:
            drawn = min(max(leanings._draw(f"noise {name}", self.everything), 1e-9), 1 - 1e-9)
            quality += leanings.noise * NormalDist().inv_cdf(drawn)
        number = low + min(max(quality, 0.0), 1.0) * (high - low)
        return round(number) if kind == "integer" else round(number, 3)

    def _ranking(self) -> list[int]:
        """The numbers of the answers, from the best to the worst, by their quality and their places."""
        shown = list(enumerate(self.answers, 1))
        if self.leanings._draw("place", "\0".join(sorted(self.answers))) < self.leanings.flips:
            return [number for number, _ in shown]
        return [number for number, text in sorted(shown, key=lambda each: -self.leanings.quality(each[1]))]


def _example(prompt: str) -> Mapping[str, Any]:
    """The schema of a reply by the example at the end of a prompt: its keys and words say what they are."""
    ending = _FENCED.sub("", prompt)
    example = ending[max(ending.rfind("Reply"), 0) :]
    scale = _SCALE.findall(ending)
    low, high = map(int, scale[-1]) if scale else (0, 100)
    number = {"type": "integer", "minimum": low, "maximum": high}
    kinds: dict[str, Mapping[str, Any]] = {}
    for key in _KEY.findall(example):
        if key in ("reason", "reasons", "explanation"):
            kinds[key] = {"type": "string"}
        elif key == "ranking":
            kinds[key] = {"type": "array"}
        elif re.search(r"\btie\b", ending):
            kinds[key] = {"enum": ["1", "2", "tie"]}
        elif re.search(r"\byes\b", ending):
            kinds[key] = {"enum": ["yes", "no"]}
        else:
            kinds[key] = number
    return {"type": "object", "properties": kinds}


def schema_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The JSON Schema that a request asks for."""
    wanted = body.get("response_format") or {}
    return (wanted.get("json_schema") or {}).get("schema") or wanted.get("schema")


def judge_script(leanings: Leanings) -> Callable[[dict[str, Any], int], Reply]:
    """The script of a server. Repetitions differ in the seed of their body, or come after another."""

    def reply(body: dict[str, Any], attempt: int) -> Reply:
        if "test of the connection" in user_text(body):
            return Reply("ok")
        return leanings.reply(user_text(body), schema_of(body), f"{body.get('seed', '')} {attempt}")

    return reply


def judge_server(leanings: Leanings | None = None, **behaviour: Any) -> Server:
    """The judge behind OpenAI's API; `behaviour` are fields of `Behaviour`: latency, faults, …"""
    return Server(Behaviour(script=judge_script(leanings or Leanings()), **behaviour))


def scripted_judge(leanings: Leanings | None = None) -> Callable[[Any], str]:
    """The judge as a function of a `Request`. A reply without a verdict is a text, also a refusal."""
    chosen = leanings or Leanings()

    def judge(request: Any) -> str:
        schema = getattr(request, "schema", None)
        return chosen.reply(request.prompt, schema, str(request.epoch)).text or "I cannot judge this."

    return judge
