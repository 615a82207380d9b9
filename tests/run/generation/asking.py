"""Start or continue a run that asks a CountingServer: python -m tests.run.generation.asking DATA FOLDER PORT"""

from __future__ import annotations

import sys
from pathlib import Path

from multimodal_eval import evaluate, resume
from multimodal_eval.run import plan
from tests.run.generation.counting_server import Client

AT_ONCE, PART = 8, 40


def main(data: Path, folder: Path, port: int) -> None:
    plan.PART_SIZE = PART
    model = Client(port)
    if (folder / "run.json").exists():
        resume(folder, model=model, progress=False)
        return
    generation = {"model": "client", "concurrency": AT_ONCE, "use_cache": False}
    evaluate(data, model=model, metrics=["rouge_l", "cider"], output=folder, generation=generation, progress=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
