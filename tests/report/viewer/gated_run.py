"""Start a run that cannot finish before a file exists: python -m tests.report.viewer.gated_run KIND FOLDER GATE [URL]

`local` and `ray` wait in a metric; `generating` and `judging` ask the server at URL, which decides when it answers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from multimodal_eval import JudgeConfig, JudgeModel, evaluate
from tests.parts import set_part_size

PART, SAMPLES = 6, 24


def rows(*, with_answers: bool = True) -> list[dict[str, Any]]:
    answers = [{"generated_answer": f"answer {number}"} if with_answers else {} for number in range(SAMPLES)]
    return [
        {"id": f"s{number}", "question": f"question {number}.", "references": [f"answer {number}"], **answers[number]}
        for number in range(SAMPLES)
    ]


def main(kind: str, folder: Path, gate: str, url: str | None = None) -> None:
    set_part_size(pytest.MonkeyPatch(), PART)
    asking: dict[str, Any] = {"concurrency": 4, "use_cache": False, "use_probe": False}
    if kind in ("local", "ray"):
        plugin = str(Path(__file__).with_name("gated_words.py"))
        settings: dict[str, Any] = {"metrics": ["gated_words"], "options": {"gated_words": {"gate": gate}}}
        evaluate(rows(), output=folder, engine=kind, workers=2, plugins=[plugin], **settings)  # type: ignore[arg-type]
    elif kind == "generating":
        generation = {"model": "openai:tiny", "base_url": url, **asking}
        evaluate(rows(with_answers=False), output=folder, generation=generation, metrics=["rouge_l"])
    else:
        model = JudgeModel(model="openai:tiny", base_url=url)
        evaluate(rows(), output=folder, metrics=[JudgeConfig(name="good", models=[model], **asking)])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
