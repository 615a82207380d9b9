"""Turns written plainly, for a model that has no template of its own.

One line a turn, begun with who speaks, and at the end the beginning of the line that the answer stands on:

    User: What is it?
    Assistant: A dog.
    User: Which colour?
    Assistant:
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from multimodal_eval.core.conversation import Part, PartType, Turn

SPEAKERS = {"user": "User", "assistant": "Assistant"}
RENDERING = "turns"  # in a label: another one when a conversation is written in another way


def written_plainly(turns: Sequence[Turn], marks: Mapping[PartType, str] | None = None) -> str:
    """The turns as text. A picture or a sound is its mark, or nothing where there is none for it."""
    known = marks or {}

    def said(part: Part) -> str | None:
        return str(part.content).strip() if part.type == "text" else known.get(part.type)

    lines = []
    for turn in turns:
        pieces = [piece for part in turn.parts if (piece := said(part))]
        lines.append(" ".join([f"{SPEAKERS[turn.role]}:", "\n".join(pieces)]).rstrip())
    return "\n".join([*lines, f"{SPEAKERS['assistant']}:"])
