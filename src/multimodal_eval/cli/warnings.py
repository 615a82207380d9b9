"""Warnings on the command line: one line on standard error, without the source code that raised it."""

from __future__ import annotations

import warnings
from typing import Any

import click

_ABOUT_RUNS = ".* is from a version without checksums"


def show_warnings_plainly() -> None:
    """Print the package's warnings about runs and endpoints as one line each; those about runs once per command."""
    shown: set[type[Warning]] = set()
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any, **options: Any) -> None:
        if category.__name__ == "RefusedWishWarning":
            click.echo(f"warning: {message}", err=True)
        elif category.__name__ != "UncheckedRunWarning":
            usual(message, category, *place, **options)
        elif category not in shown:
            shown.add(category)
            click.echo(f"warning: {message}", err=True)

    warnings.filterwarnings("always", message=_ABOUT_RUNS)
    warnings.showwarning = show
