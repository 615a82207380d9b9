"""`mmeval card`."""

from __future__ import annotations

import click


@click.command()
@click.argument("name")
@click.option("--plugin", "plugins", multiple=True, help="A Python file that registers the metric.")
def card(name: str, plugins: tuple[str, ...]) -> None:
    """Show the card of the metric NAME: what it measures, its formula, its limits."""
    from rich.markdown import Markdown

    from multimodal_eval.cli.show import console
    from multimodal_eval.core.registry import load_plugin
    from multimodal_eval.evaluation.cards import card_text

    for plugin in plugins:
        load_plugin(plugin)
    console().print(Markdown(card_text(name)))
