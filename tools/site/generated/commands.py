"""A page per command of the command line, and their index. Their examples can be executed like those of other pages."""

from __future__ import annotations

import inspect
import re

import click

from multimodal_eval.cli.layers import LayeredCommand
from tools.reference import commands
from tools.site.generated.command_examples import examples_section
from tools.site.generated.toctree import toctree


def command_pages() -> dict[str, str]:
    """The pages by path."""
    known = [(_path(name), command, context) for name, command, context in commands() if name != "mmeval"]
    rows = "".join(
        f"| [`mmeval {path}`]({page_of(path)}) | {command.get_short_help_str(200)} |\n" for path, command, _ in known
    )
    root = next(command for name, command, _ in commands() if name == "mmeval")
    index = f"# Commands\n\n{_prose(root)}\n| command | what it does |\n|---|---|\n{rows}\n{examples_section('')}"
    index += toctree(page_of(path).removesuffix(".md") for path, _, _ in known)
    return {"commands.md": index, **{page_of(path): _page(path, command, context) for path, command, context in known}}


def options_of(command: click.Command) -> list[click.Option]:
    """The options that the help shows."""
    return command.shown() if isinstance(command, LayeredCommand) else []


def page_of(path: str) -> str:
    """Where the page of a command is: of `judge pairs`, commands/judge-pairs.md."""
    return f"commands/{path.replace(' ', '-')}.md" if path else "commands.md"


def _path(name: str) -> str:
    return name.removeprefix("mmeval ")


def _page(path: str, command: click.Command, context: click.Context) -> str:
    name = f"mmeval {path}"
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"# {name}\n", f"```text\n{usage}\n```\n", _prose(command)]
    options = [
        record for parameter in options_of(command) if (record := parameter.get_help_record(context)) and record[1]
    ]
    if options:
        rows = "".join(f"| {_flags(flags)} | {_cell(text)} |\n" for flags, text in options)
        parts.append(f"## Options\n\n| option | meaning |\n|---|---|\n{rows}")
    if isinstance(command, click.Group):
        below = "".join(
            f"| [`{name} {inner}`]({path}-{inner}.md) | {each.get_short_help_str(200)} |\n"
            for inner, each in command.commands.items()
        )
        parts.append(f"## Commands\n\n| command | what it does |\n|---|---|\n{below}")
    if examples := examples_section(path):
        parts.append(examples)
    return "\n".join(parts)


def _prose(command: click.Command) -> str:
    """The help text; a paragraph after \\b keeps its lines."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    paragraphs = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            paragraphs.append("```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```")
        else:
            paragraphs.append(_escaped(paragraph))
    return "\n\n".join(paragraphs) + "\n"


def _flags(flags: str) -> str:
    return "`" + flags.replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text that is not Markdown: capitals in angle brackets, stars, brackets; code in backticks stays."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*_<>\[\]$])", r"\\\1", piece) for piece in pieces)
