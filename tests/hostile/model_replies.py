"""Damaged results of a batch API, and damaged replies of Anthropic and Google: an answer, or one of our errors."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.generate.batch_files import BatchResults, custom_id
from multimodal_eval.generate.protocol import Request, Text, Turn, outcome_of
from multimodal_eval.generate.providers import anthropic, gemini
from multimodal_eval.generate.providers.openai_chat import answer_from
from tests.generate.providers.test_anthropic import REPLY as ANTHROPIC
from tests.generate.providers.test_gemini import REPLY as GEMINI
from tests.generate.server import Reply, completion
from tests.hostile.campaign import FaultError, campaign, check_printed
from tests.hostile.mutations import damaged, damaged_json

REQUESTS = [Request(f"s{row}", (Turn("user", (Text(f"question {row}"),)),)) for row in range(4)]


@campaign("batch_results", cases=300)
def attack_results(random: Random, folder: Path) -> str | None:
    path = folder / "results.jsonl"
    path.write_bytes(hostile_results(random))
    try:
        results = BatchResults([path])
        results.refuse_unknown(len(REQUESTS))
        for row, request in enumerate(REQUESTS):
            result = results.get(row, request)
            if result is not None and result.status == 200:
                outcome_of(answer_from(result.body))
        results.close()
    except MultimodalEvalError as error:
        return refused(error)
    return "read"


def hostile_results(random: Random) -> bytes:
    """Lines of which some are damaged."""
    lines = []
    for row, request in enumerate(REQUESTS):
        response = {"status_code": 200, "request_id": "r", "body": json.loads(completion(Reply("fine"), "tiny"))}
        result = {"id": "b", "custom_id": custom_id(row, request), "response": response, "error": None}
        line = json.dumps(result).encode()
        lines.append(damaged_json(random, line) if random.random() < 0.4 else line)
    content = b"\n".join(lines)
    return damaged(random, content) if random.random() < 0.3 else content


@campaign("vendor_replies", cases=400)
def attack_replies(random: Random, folder: Path) -> str | None:
    provider, module, reply = random.choice([("anthropic", anthropic, ANTHROPIC), ("gemini", gemini, GEMINI)])
    content = damaged_json(random, json.dumps(reply).encode())
    (folder / "reply.json").write_bytes(content)
    model = module.open_generator(provider, "tiny", GenerationConfig(model=f"{provider}:tiny", use_probe=False))
    try:
        outcome = outcome_of(model.answer_from(content))
    except MultimodalEvalError as error:
        return refused(error)
    return outcome.status


def refused(error: MultimodalEvalError) -> str:
    """The kind of an error, whose message must be printable and short."""
    check_printed(str(error))
    if len(str(error)) > 4_000:
        raise FaultError(f"a message of {len(str(error)):,} characters") from error
    return type(error).__name__
