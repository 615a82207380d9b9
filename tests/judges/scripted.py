"""Judges whose every reply is given, and runs with them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.generate.protocol import Answer, Request
from multimodal_eval.judges.panel import use_generators

_FIRST = re.compile(r"<answer-1 \w+>\n(.*?)\n</answer-1 ", re.DOTALL)
_numbers = count()

# (sample, repetition, order) -> what the judge replies; an object becomes JSON.
Script = Callable[[str, int, int], object]


class Scripted:
    """A judge that replies what its script says."""

    is_cacheable = False

    def __init__(self, label: str, script: Script) -> None:
        self.label, self._script = label, script

    async def answer(self, request: Request) -> Answer:
        """The reply."""
        assert request.sample is not None
        shown = _FIRST.search(request.prompt)
        order = 0 if shown is None or shown[1] == request.sample.generated_answer else 1
        reply = self._script(request.sample.id, request.epoch, order)
        if isinstance(reply, Answer):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return Answer(text, model=f"{self.label}-1", input_tokens=10, output_tokens=2)


def judged(
    samples: Sequence[Sample],
    judges: Mapping[str, Script],
    *,
    output: Path | None = None,
    name: str = "quality",
    **settings: Any,
) -> Run:
    """A run in which these judges are asked about the samples; `settings` are those of the judge."""
    prefix = f"t{next(_numbers)}"
    use_generators({f"{prefix}:{label}": Scripted(label, script) for label, script in judges.items()})
    models = [{"model": f"{prefix}:{label}"} for label in judges]
    judge = {"name": name, "models": models, "use_cache": False, **settings}
    return evaluate(list(samples), config={"metrics": [name], "judges": {name: judge}}, output=output)


def pair(number: int | str, answer: str, baseline: str, **metadata: Any) -> Sample:
    """A comparison of two answers."""
    group = metadata.pop("group", None)
    return Sample(
        str(number), question="?", generated_answer=answer, group=group, metadata={"baseline": baseline, **metadata}
    )
