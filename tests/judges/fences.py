"""Read a prompt of a judge as its rule says: the texts in fences, and what is outside of them."""

from __future__ import annotations

import re

OPENING = re.compile(r"<([a-z]+(?:-\d+)?) ([0-9a-f]{12})>\n")


def split(prompt: str) -> tuple[str, list[tuple[str, str]]]:
    """What is outside of all fences, and the fenced texts by name. A fence ends at the closing tag with its marker."""
    outside, texts, place = [], [], 0
    while (opening := OPENING.search(prompt, place)) is not None:
        closing = f"\n</{opening[1]} {opening[2]}>"
        end = prompt.find(closing, opening.end() - 1)  # an empty text has one line break before, one after
        assert end >= 0, f"the fence {opening[0]!r} has no end"
        assert opening[2] not in prompt[opening.end() : end], "a text contains the marker of its fence"
        outside.append(prompt[place : opening.start()])
        texts.append((opening[1], prompt[opening.end() : end]))
        place = end + len(closing)
    return "".join([*outside, prompt[place:]]), texts
