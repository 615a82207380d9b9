"""The one way in which a command prints a result: its blocks, in the format that `--format` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING

import click

from multimodal_eval.cli.options import VERBOSE

if TYPE_CHECKING:
    from multimodal_eval.display.blocks import Block

__all__ = ["print_blocks", "print_result"]


def print_result(
    result: object, format_: str, content: Callable[[], object] | None = None, more: Iterable[Block] = ()
) -> None:
    """Print a result, and `more` about it. `content` is the JSON form; without one, JSON has the blocks."""
    from multimodal_eval.display.results import blocks_of

    print_blocks(chain(blocks_of(result), more), format_, content)


def print_blocks(blocks: Iterable[Block], format_: str = "table", content: Callable[[], object] | None = None) -> None:
    """Print blocks: the terminal as they come, other formats as one text."""
    if format_ == "json" and content is not None:
        from multimodal_eval.core.records import to_json

        click.echo(to_json(content()).decode(), nl=False)
    elif format_ == "table":
        from multimodal_eval.display.terminal import TerminalRenderer

        context = click.get_current_context(silent=True)
        verbose = None if context is None else context.meta.get(VERBOSE)
        renderer = TerminalRenderer(unfolds=bool(verbose))
        for block in blocks:
            renderer.block(block)
        if renderer.hidden and verbose is not None:
            click.echo(f"-v also prints: {', '.join(dict.fromkeys(renderer.hidden))}")
    else:
        from multimodal_eval.display.renderer import rendered

        click.echo(rendered(list(blocks), format_), nl=False)
