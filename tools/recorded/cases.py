"""The cases of `cases.yaml`, with the files that are made for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.recorded.record import Case

HERE = Path(__file__).parent
NOUNS = ("dog", "cat", "bird", "horse", "kite")
COLOURS = ("red", "blue", "green")


def _caption(number: int) -> dict[str, Any]:
    """A caption with references. One of 13 has no answer; the first 30 have a human label."""
    return {
        "id": f"s{number}",
        "references": [f"a {NOUNS[number % 5]} runs on street {number}", f"the {NOUNS[number % 3]} by a car"],
        "generated_answer": f"a {NOUNS[number % 3]} runs by street {number % 4}" if number % 13 else None,
        "group": f"g{number // 3}",
        "split": ("train", "test")[number // 3 % 2],
        "human": number % 4 / 4 if number < 30 else None,
    }


def _question(number: int) -> dict[str, Any]:
    """A question of a dialogue of four."""
    return {
        "id": f"q{number}",
        "question": f"Is thing {number} {COLOURS[number % 3]}?",
        "references": [("yes", "no")[number % 2]],
        "group": f"g{number // 4}",
    }


def text_of(content: str) -> str:
    """The text of a file: `captions N`, `questions N`, `plugin` (plugin.py), or what is written."""
    word, _, count = content.partition(" ")
    if word in ("captions", "questions") and count.isdecimal():
        made = _caption if word == "captions" else _question
        return "".join(json.dumps(made(number)) + "\n" for number in range(int(count)))
    return (HERE / "plugin.py").read_text(encoding="utf-8") if content == "plugin" else content


def _case(name: str, fields: Mapping[str, Any]) -> Case:
    files = {file: text_of(content) for file, content in fields.get("files", {}).items()}
    return Case(name, **{**fields, "files": files})


CASES = {
    name: _case(name, fields)
    for name, fields in yaml.safe_load((HERE / "cases.yaml").read_text(encoding="utf-8")).items()
}
