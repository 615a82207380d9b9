"""A command that remembers how it was called, so that others can repeat it."""

from __future__ import annotations

from pathlib import PurePath
from shlex import quote

import click

__all__ = ["Recorded", "repeatable"]

_KEY = "multimodal_eval.arguments"
# Where results go and how fast, not what they are.
_UNIMPORTANT = {"output", "workers", "site", "title", "site_samples", "format_", "runs"}


class Recorded(click.Command):
    """A command that keeps its arguments as they were written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them."""
        ctx.meta[_KEY] = list(args)
        return super().parse_args(ctx, args)


def repeatable(context: click.Context) -> str:
    """The command line without what does not change the results, and without folders of this machine."""
    command = context.command
    parser = command.make_parser(context)
    values, _, order = parser.parse_args(args=list(context.meta[_KEY]))
    words = ["mmeval", context.info_name or command.name or ""]
    for parameter in sorted(dict.fromkeys(order), key=lambda each: not isinstance(each, click.Argument)):
        name = parameter.name or ""
        given = values.get(name)
        if name in _UNIMPORTANT or not given:
            continue
        option = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
        for value in given if isinstance(given, list) else [given]:
            words += option if getattr(parameter, "is_flag", False) else [*option, quote(_without_folder(str(value)))]
    return " ".join(words)


def _without_folder(text: str) -> str:
    path = PurePath(text)
    return path.name if path.is_absolute() and path.name else text
