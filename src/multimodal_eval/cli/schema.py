"""`mmeval schema`."""

from __future__ import annotations

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of the configuration file."""
    from multimodal_eval.core.records import to_json
    from multimodal_eval.run.config import json_schema

    click.echo(to_json(json_schema()).decode(), nl=False)
