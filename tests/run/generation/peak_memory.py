"""Measure the peak memory of a run that asks a model for many samples.

    python -m tests.run.generation.peak_memory SAMPLES

Prints megabytes. Each sample has a kilobyte that no metric uses, and each reply two kilobytes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from multimodal_eval import evaluate
from multimodal_eval.generate.protocol import Answer, Request
from tests.run.peak_memory import peak


class Model:
    """Answers at once."""

    label = "model"

    async def answer(self, request: Request) -> Answer:
        """An answer with a long raw reply."""
        return Answer(request.prompt.replace("question", "answer"), output_tokens=3, reply='"' + "x" * 2000 + '"')


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.jsonl"
        with data.open("w") as file:
            for n in range(count):
                row = {
                    "id": f"s{n}",
                    "question": f"question {n}",
                    "references": [f"answer {n}"],
                    "note": f"{n:7} " * 128,
                }
                file.write(json.dumps(row) + "\n")
        generation = {"model": "model", "use_cache": False}
        evaluate(data, model=Model(), metrics=["exact_match"], output=Path(folder) / "run", generation=generation)
    print(peak())


if __name__ == "__main__":
    main(int(sys.argv[1]))
