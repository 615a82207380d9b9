"""Generators for dry runs: `echo` repeats the prompt, `script:FILE` answers from a file by sample id."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.protocol import Answer, Generator, RejectedError, Request

__all__ = ["Echo", "Script", "open_generator"]


class Echo:
    """Answers with the prompt."""

    label = "echo"

    async def answer(self, request: Request) -> Answer:
        """The text of the user's last turn."""
        return Answer(request.prompt)


class Script:
    """Answers that are written in a JSON file: {sample id: answer}. They depend on the id and are not cached."""

    def __init__(self, path: Path) -> None:
        try:
            content = path.read_bytes()
            self.answers = msgspec.json.decode(content, type=dict[str, str])
        except OSError as fault:
            raise ConfigError(f"the script {str(path)!r} cannot be read: {fault.strerror}") from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
            raise ConfigError(f"the script {str(path)!r} must be a JSON object, sample id -> answer: {fault}") from None
        self.label = f"script@{sha256(content).hexdigest()[:12]}"

    async def answer(self, request: Request) -> Answer:
        """The answer of the sample's id."""
        if request.id not in self.answers:
            raise RejectedError(f"the script has no answer for {request.id!r}")
        return Answer(self.answers[request.id])


def open_generator(provider: str, model: str, config: GenerationConfig) -> Generator:
    """`echo`, or `script:FILE`."""
    return Echo() if provider == "echo" else Script(Path(model))
