"""The blocks of a Markdown page: what is a file, a command, Python code or an output.

CONTRIBUTING.md ("Documentation pages") has the rules. A block that follows none of them is `unknown`: an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

Kind = Literal["file", "command", "console", "script", "python", "pycon", "output", "shown", "unknown"]
RUN: tuple[Kind, ...] = ("command", "console", "script", "python", "pycon")

COMMENT = re.compile(
    r"<!--\s*(?P<name>not run|output|all exit|exit|file|setup|needs)(?::\s*(?P<value>.*?))?\s*-->", re.DOTALL
)
NAMED_FILE = re.compile(r"`([^`\s()\[\]]+)`:$")
COMMAND = re.compile(r"(?:\$ )?(?:mmeval|python3?|pip|pipx|uvx?|bash|git|unzip|export) ")
LANGUAGES: dict[str, Kind] = {
    "python": "python",
    "pycon": "pycon",
    "console": "console",
    "bash": "script",
    "sh": "script",
    "shell": "script",
}
DATA = ("bibtex", "csv", "dockerfile", "html", "jinja", "json", "jsonl", "latex", "text", "toml", "tsv", "xml", "yaml")


@dataclass(frozen=True, slots=True)
class Marks:
    """What the comments before a block say."""

    not_run: str | None = None
    varies: bool = False
    exit: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A code block, with the lines [start, end) of the page that hold its text, behind `prefix`."""

    kind: Kind
    language: str
    text: str
    start: int
    end: int
    prefix: str = ""
    marks: Marks = field(default_factory=Marks)
    file: str = ""
    output: Block | None = None

    @property
    def line(self) -> int:
        """The line on which the text begins, counted from 1."""
        return self.start + 1


@dataclass(frozen=True, slots=True)
class Page:
    """The blocks of a page, and what its head asks for."""

    text: str
    blocks: list[Block]
    setups: list[str]
    needs: list[str]


def parse(text: str) -> Page:
    """Find the blocks of a page."""
    tokens = MarkdownIt("commonmark").parse(text)
    head: dict[str, list[str]] = {"setup": [], "needs": [], "all exit": []}
    comments = "".join(token.content for token in tokens if token.type == "html_block")
    for match in COMMENT.finditer(comments):
        if match["name"] in head:
            head[match["name"]] += [name.strip() for name in match["value"].split(",")]
    exit_status = int(head["all exit"][-1]) if head["all exit"] else 0
    blocks = _joined([_defaults(block, exit_status) for block in _blocks(tokens, text.split("\n"))])
    return Page(text, blocks, head["setup"], head["needs"])


def _defaults(block: Block, exit_status: int) -> Block:
    if exit_status and not block.marks.exit:
        return replace(block, marks=replace(block.marks, exit=exit_status))
    return block


def _blocks(tokens: list[Token], lines: list[str]) -> Iterator[Block]:
    marks, sentence, previous = Marks(), "", ""
    for token in tokens:
        if token.type == "html_block":
            marks = _marked(marks, token.content)
        elif token.type in ("fence", "code_block"):
            block = _block(token, lines, marks, sentence, previous)
            yield block
            marks, sentence, previous = Marks(), "", block.kind
        elif token.type == "inline":
            marks, sentence, previous = Marks(), token.content, ""


def _marked(marks: Marks, comment: str) -> Marks:
    for match in COMMENT.finditer(comment):
        name, value = match["name"], match["value"] or ""
        if name == "not run":
            marks = replace(marks, not_run=" ".join(value.split()))
        elif name == "output":
            marks = replace(marks, varies=value == "varies")
        elif name == "exit":
            marks = replace(marks, exit=int(value))
        elif name == "file":
            marks = replace(marks, file=value)
    return marks


def _block(token: Token, lines: list[str], marks: Marks, sentence: str, previous: str) -> Block:
    assert token.map is not None
    first, last = token.map
    named = NAMED_FILE.search(sentence)
    file = marks.file or (named[1] if named else "")
    if token.type == "code_block":
        while last > first and not lines[last - 1].strip():
            last -= 1
        indent = len(lines[first]) - len(lines[first].lstrip())
        kind: Kind = "file" if file else "command" if COMMAND.match(token.content) else "unknown"
        return Block(kind, "", token.content, first, last, lines[first][:indent], marks, file)
    prefix = lines[first][: len(lines[first]) - len(lines[first].lstrip(" "))]
    language = token.info.split()[0] if token.info.strip() else ""
    kind = _kind(language, file, previous)
    return Block(kind, language, token.content, first + 1, last - 1, prefix, marks, file)


def _kind(language: str, file: str, previous: str) -> Kind:
    if file and language not in ("console", "pycon"):
        return "file"
    if (language == "text" and previous == "python") or (not language and previous == "command"):
        return "output"
    if language.startswith("{"):
        return "shown"
    if language in DATA:
        return "shown"
    return LANGUAGES.get(language, "unknown")


def _joined(blocks: list[Block]) -> list[Block]:
    """Give outputs to the block before them."""
    joined: list[Block] = []
    for block in blocks:
        if block.kind == "output":
            joined[-1] = replace(joined[-1], output=block)
        else:
            joined.append(block)
    return joined
