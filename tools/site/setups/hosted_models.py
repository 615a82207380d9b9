"""The model server at the addresses that providers have by default, so that `openai:NAME` is asked there.

Commands without `--base-url` run as they are written. The judge prefers the first place in some pairs. With
`<!-- setup: hosted-models questions -->` the model knows the answers of a system to the demo's questions, and with
`hosted-models dialogues` those to its dialogues.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from unittest.mock import patch

from tests.judges.server import Leanings
from tools.site.samples import samples
from tools.site.setups import model_server
from tools.site.setups.demo_files import DEMO
from tools.site.workspace import Workspace

PROVIDERS = ("openai", "ollama", "vllm")


def prepare(work: Workspace, known: str = "") -> None:
    """Start the server, and send requests of the providers to it."""
    from multimodal_eval.generate.providers.openai_chat import DIALECTS

    model_server.prepare(work, Leanings(flips=0.3, seed=9))
    dialects = {name: replace(DIALECTS[name], base_url=os.environ["MODEL_URL"]) for name in PROVIDERS}
    work.stack.enter_context(patch.dict(DIALECTS, dialects))
    if known:
        replies = {"questions": _questions, "dialogues": _dialogues}[known]()
        (work.folder / "replies.json").write_text(json.dumps(replies), encoding="utf-8")


def _questions() -> dict[str, str]:
    return {sample["question"]: sample["generated_answer"] for sample in samples("questions", "alba")}


def _dialogues() -> dict[str, str]:
    """The text of a turn, and the reply to it."""
    folder = DEMO / "dialogue"
    turns, replies = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in (folder / "questions.json", folder / "submissions" / "alba" / "output.json")
    )
    return {
        part["content"]: reply
        for name in turns
        for turn, reply in zip(turns[name], replies[name], strict=True)
        for part in turn
        if part["type"] == "text"
    }
