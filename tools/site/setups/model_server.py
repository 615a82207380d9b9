"""A model server with OpenAI's API on this machine. Pages name it $MODEL_URL or http://localhost:8000/v1.

It has models of every name. `replies.json` in the folder of the page says what it answers, as an object: a part of the
prompt, and the answer. Other prompts get a short answer that a digest of the prompt chooses. Prompts of judges get a
verdict by a digest of the answer.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from hashlib import sha256
from math import log
from pathlib import Path
from typing import Any

from tests.generate.server import Behaviour, Reply, Server, user_text
from tests.judges.server import Leanings, judge_script
from tools.site.workspace import Workspace

URLS = ("http://localhost:30000/v1", "http://localhost:8080/v1", "http://localhost:8000/v1")  # outputs show the last
JUDGED = re.compile(r"</(?:answer|candidate|caption|response)\b")  # the fenced answer in the prompt of a judge
ANSWERS = ("yes", "no", "a dog", "red", "two", "a man rides a horse")


class EveryName(Sequence[str]):
    """The names of the models: every name is one."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        return ("tiny",)[index]

    def __len__(self) -> int:
        return 1


def prepare(work: Workspace, leanings: Leanings | None = None) -> None:
    """Start the server."""
    judge = judge_script(leanings or Leanings())

    def script(body: dict[str, Any], attempt: int) -> Reply:
        prompt = user_text(body)
        for part, answer in _replies(work.folder):
            if part in prompt:
                tokens = [(word, -len(word) / 10) for word in answer.split()] if body.get("logprobs") else None
                return Reply(answer, logprobs=tokens)
        if JUDGED.search(prompt) or "test of the connection" in prompt:
            return judge(body, attempt)
        answer = ANSWERS[sha256(prompt.encode()).digest()[0] % len(ANSWERS)]
        tokens = [(word, -log(2)) for word in answer.split()] if body.get("logprobs") else None
        return Reply(answer, logprobs=tokens)

    behaviour = Behaviour(script=script, models=EveryName())  # type: ignore[arg-type]
    server = work.stack.enter_context(Server(behaviour))
    os.environ.update(MODEL_URL=server.url, OPENAI_API_KEY="a-key")
    for url in URLS:
        work.aliases[url] = server.url


def _replies(folder: Path) -> list[tuple[str, str]]:
    path = folder / "replies.json"
    return list(json.loads(path.read_text(encoding="utf-8")).items()) if path.exists() else []
