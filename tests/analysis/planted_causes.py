"""Two runs that differ in planted causes, and the size of each: the numbers of all runs in between."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from multimodal_eval import Run, Why, evaluate

CHOICES = {"A": "red", "B": "green", "C": "blue", "D": "black"}
SUBJECTS = ("art", "law", "art", "art", "physics")


COPY = "copy"  # the id of a sample that is in B only, and that no other cause changes


@dataclass
class World:
    """What a run is made of. Every cause changes one ingredient."""

    metric: str
    rows: list[dict[str, Any]]
    answers: dict[str, str]
    options: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=lambda: {"temperature": 0})
    settings: dict[str, Any] = field(default_factory=dict)
    replies: dict[str, str] = field(default_factory=dict)  # to requests with a hint

    def run(self) -> Run:
        """The run, with a model that is a function of the request."""

        def model(request: Any) -> str:
            answer = self.answers[request.id]
            return self.replies.get(request.id, answer) if "Think!" in request.prompt else answer

        generation = {"parameters": self.parameters, "template": "{{ question }} {{ hint }}", "use_cache": False}
        settings = {"metrics": [self.metric], "options": {self.metric: self.options}, **self.settings}
        return evaluate(self.rows, model=model, generation=generation, progress=False, skip_lint=True, **settings)

    def some(self, start: float, end: float) -> list[dict[str, Any]]:
        """The rows of a share of the data."""
        rows = [row for row in self.rows if row["id"] != COPY]
        return rows[int(start * len(rows)) : int(end * len(rows))]


FORMS = {
    "multiple_choice": ("{0}", "The answer is ({0}).", "{1}", "{0}, not A", "none of them", "A or {0}", "Answer: {0}"),
    "contains": ("{1}", "It is {1}.", "The {1}bird", "{1}-ish", "nothing", "IT IS {2}", "a {1} thing"),
}
OPTIONS = {"multiple_choice": {"rule": "mmmu@2024", "random": "expected"}, "contains": {"rule": "lower@1"}}


def world(source: random.Random, metric: str, count: int) -> World:
    """Questions with answers of several forms."""
    rows, answers = [], {}
    for number in range(count):
        gold = source.choice("ABCD")
        reference = gold if metric == "multiple_choice" else CHOICES[gold]
        row = {"id": f"q{number}", "question": f"Which colour is number {number}?", "choices": CHOICES}
        rows.append({**row, "references": [reference], "subject": SUBJECTS[number % 5], "hint": "?"})
        letter = gold if source.random() < 0.55 else source.choice("ABCD")
        answers[f"q{number}"] = _written(source, metric, letter)
    return World(metric, rows, answers, OPTIONS[metric])


def _written(source: random.Random, metric: str, letter: str) -> str:
    colour = CHOICES[letter]
    return source.choice(FORMS[metric]).format(letter, colour, colour.upper())


# The causes, in the order of the chain.


def _samples(now: World, source: random.Random) -> None:
    gone = {row["id"] for row in source.sample(now.rows, 4)}
    kept = [row for row in now.rows if row["id"] not in gone]
    now.rows = [*kept, {**kept[0], "id": COPY}]
    now.answers[COPY] = now.answers[kept[0]["id"]]


def _gold(now: World, source: random.Random) -> None:
    changed = {row["id"] for row in source.sample(now.some(0, 1), 5)}
    first, second = ("A", "B") if now.metric == "multiple_choice" else ("red", "green")
    now.rows = [
        {**row, "references": [second if row["references"] == [first] else first]} if row["id"] in changed else row
        for row in now.rows
    ]


def _prompt(now: World, source: random.Random) -> None:
    """Another hint in the first fifth of the prompts, and other answers to them."""
    chosen = {row["id"] for row in now.some(0, 0.2)}
    now.rows = [{**row, "hint": "Think!"} if row["id"] in chosen else row for row in now.rows]
    now.replies = {name: _written(source, now.metric, source.choice("ABCD")) for name in sorted(chosen)}


def _decoding(now: World, source: random.Random) -> None:
    """Other parameters, and other answers in the second fifth."""
    now.parameters = {"temperature": 0.5, "max_tokens": 64}
    now.answers |= {row["id"]: _written(source, now.metric, source.choice("ABCD")) for row in now.some(0.2, 0.4)}


def _answer(now: World, source: random.Random) -> None:
    """Other answers in the third fifth."""
    now.answers |= {row["id"]: _written(source, now.metric, source.choice("ABCD")) for row in now.some(0.4, 0.6)}


def _failure(now: World, source: random.Random) -> None:
    """Some answers are empty in B only: left out, or counted as wrong.

    A metric that averages by groups has no worst value, so that failures would count otherwise with another average.
    """
    now.answers |= {row["id"]: "" for row in source.sample(now.some(0.6, 1), 4)}
    if now.metric == "contains" and source.random() < 0.5:
        now.settings["count_failures"] = "wrong"


def _reading(now: World, source: random.Random) -> None:
    rules = ("lmms-eval@0.7.3/mmmu", "mmeval@1") if now.metric == "multiple_choice" else ("none@1", "squad@1.1")
    now.options = {**now.options, "rule": source.choice(rules)}


def _scoring(now: World, source: random.Random) -> None:
    now.options = {**now.options, "whole_words": True}


def _aggregation(now: World, source: random.Random) -> None:
    if now.metric == "multiple_choice":
        now.options = {**now.options, "average": source.choice(("macro(subject)", "all-correct(subject)"))}
    else:
        now.settings["strata"] = {"by": "subject", "weights": {"art": 0.5, "law": 0.25, "physics": 0.25}}


CAUSES = {
    "samples": _samples,
    "gold": _gold,
    "prompt": _prompt,
    "decoding": _decoding,
    "answer": _answer,
    "failure": _failure,
    "reading": _reading,
    "scoring": _scoring,
    "aggregation": _aggregation,
}
OF_ANSWERS = {"prompt", "decoding", "answer"}


def planted(seed: int, causes: Sequence[str], count: int = 40) -> tuple[Run, Run, dict[str, float]]:
    """A, B and the size of each cause in points: by how much the number of a run changes when it is added."""
    source = random.Random(seed)
    metric = "contains" if "scoring" in causes else source.choice(("multiple_choice", "contains"))
    now = world(source, metric, count)
    runs, sizes = [now.run()], {}
    for name in CAUSES:
        if name in causes:
            CAUSES[name](now, source)
            runs.append(now.run())
            before, after = (run[metric]["value"] for run in runs[-2:])
            sizes[name] = 100 * (after - before)
    return runs[0], runs[-1], sizes


def faults(why: Why, sizes: Mapping[str, float]) -> list[str]:
    """What the parts say about planted causes that is not true."""
    untrue = [] if why.sum_error == 0 else [f"the parts leave {why.sum_error}"]
    joint = {name for part in why.parts if len(part.key) > 1 and part.moved for name in part.key}
    for name in CAUSES:
        got = sum(float(part.value) for part in why.parts if part.key == (name,))
        if name not in joint and abs(got - sizes.get(name, 0.0)) > 1e-9:
            untrue.append(f"{name}: {got:.4f} instead of {sizes.get(name, 0.0):.4f}")
    if joint:
        group = joint | {name for part in why.parts if {*part.key} & joint for name in part.key}
        got = sum(float(part.value) for part in why.parts if {*part.key} <= group)
        wanted = sum(size for name, size in sizes.items() if name in group)
        if not group <= OF_ANSWERS or abs(got - wanted) > 1e-9:
            untrue.append(f"{' + '.join(sorted(group))}: {got:.4f} instead of {wanted:.4f}")
    return untrue
