"""`mmeval judge`: commands about judges and human labels."""

from __future__ import annotations

import click


@click.group()
def judge() -> None:
    """Compare runs by a judge, rank them, and choose the samples that humans should label."""
