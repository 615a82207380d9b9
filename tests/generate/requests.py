from __future__ import annotations

from multimodal_eval.generate.protocol import Request, Text, Turn


def asked(text: object = "question", **settings: object) -> Request:
    """A request with one turn."""
    return Request(str(text), (Turn("user", (Text(str(text)),)),), **settings)  # type: ignore[arg-type]
