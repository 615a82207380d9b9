"""A command group with a default command: `mmeval clarity DATA PREDICTIONS` scores."""

from __future__ import annotations

from typing import Any

import click

DEFAULT = "score"


class ScoringByDefault(click.Group):
    """Runs the command `score` if no other is named; `usages` are the usage lines of its help."""

    def __init__(self, *args: Any, usages: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.usages = usages

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command's name if none is named."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all usage lines."""
        for usage in self.usages:
            formatter.write_usage(ctx.command_path, usage)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of `score`, then the commands."""
        scoring = self.commands[DEFAULT]
        scoring.format_options(click.Context(scoring, parent=ctx), formatter)
        self.format_commands(ctx, formatter)
