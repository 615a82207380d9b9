"""Start or continue a run that asks a CountingServer: python -m tests.run.generation.asking DATA FOLDER PORT [WORD …]

With `judges`, a model answers all samples first, and then two models judge the answers, each two times. With `until`,
the model answers only until the score is precise enough.
"""

from __future__ import annotations

import sys
from pathlib import Path

from multimodal_eval import JudgeConfig, evaluate, resume
from multimodal_eval.generate.protocol import Answer, Request
from tests.parts import use_part_size
from tests.run.generation.counting_server import Client

AT_ONCE, PART = 8, 40
JUDGES, REPEATS = ("strict", "mild"), 2
UNTIL = {"until": {"metric": "rouge_l", "width": 0.04}}


class Judge(Client):
    """Judges by asking a CountingServer."""

    is_cacheable = False

    def __init__(self, port: int, label: str) -> None:
        super().__init__(port)
        self.label = label

    async def answer(self, request: Request) -> Answer:
        """A score that depends on the judge."""
        reply = await self.reply_to(f"{request.id} by {self.label}, {request.epoch}")
        score = 1 + (len(request.id) + len(self.label) + request.epoch) % 5
        return Answer(f'{{"score": {score}}}', input_tokens=3, output_tokens=2, model=self.label, reply=reply)


def main(data: Path, folder: Path, port: int, *, has_judges: bool, stops: bool) -> None:
    use_part_size(PART)
    model = Client(port)
    judges = [Judge(port, label) for label in JUDGES] if has_judges else None
    if (folder / "run.json").exists():
        resume(folder, model=model, judge=judges, progress=False)
        return
    metrics: list[str | JudgeConfig] = ["rouge_l", "cider"]
    if has_judges:
        metrics.append(JudgeConfig(name="good", repeats=REPEATS, concurrency=AT_ONCE))
    generation = {"model": "client", "concurrency": AT_ONCE, "use_cache": False, **(UNTIL if stops else {})}
    evaluate(data, model=model, judge=judges, metrics=metrics, output=folder, generation=generation, progress=False)


if __name__ == "__main__":
    words = sys.argv[4:]
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), has_judges="judges" in words, stops="until" in words)
