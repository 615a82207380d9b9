"""Samples, judges and verdicts for the tests of the judging step."""

from __future__ import annotations

from typing import Any

from multimodal_eval import JudgeConfig, JudgeModel, Run
from tests.generate.server import Reply, Server
from tests.judges.server import Leanings, judge_script

SAMPLES = 60


def rows(count: int = SAMPLES) -> list[dict[str, Any]]:
    return [
        {"id": f"s{n}", "question": f"question {n}", "generated_answer": f"answer {n}", "references": [f"answer {n}"]}
        for n in range(count)
    ]


def judge(server: Server | None = None, **settings: Any) -> JudgeConfig:
    models = [] if server is None else [JudgeModel(model="openai:tiny", base_url=server.url)]
    return JudgeConfig(**{"name": "good", "models": models, "use_probe": False, **settings})


def verdicts(run: Run) -> list[dict[str, Any]]:
    parts = range(len(run.info.parts))
    return [row for part in parts for row in run.folder.read_part("verdicts/good", part).to_pylist()]


def values(run: Run) -> list[float | None]:
    """The scores of the samples."""
    scores: list[float | None] = run.scores(["good"]).column("good").to_pylist()
    return scores


def failing(number: int, times: int = 10**9) -> Any:
    """A script that fails for one question, at first."""
    usual = judge_script(Leanings())

    def script(body: dict[str, Any], attempt: int) -> Reply:
        fails = f"answer {number}\n" in str(body["messages"][-1]["content"]) and attempt < times
        return Reply(fault="error") if fails else usual(body, attempt)

    return script
