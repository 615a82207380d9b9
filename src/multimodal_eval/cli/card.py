"""`mmeval card`."""

from __future__ import annotations

import click

from multimodal_eval.cli.options import plugin_option, register_plugins


@click.command()
@click.argument("name")
@plugin_option
def card(name: str, plugins: tuple[str, ...]) -> None:
    """Show the card of the metric NAME: what it measures, its formula, its limits, its options."""
    from rich.markdown import Markdown

    from multimodal_eval.cli.show import console
    from multimodal_eval.evaluation.cards import card_text, options_text
    from multimodal_eval.evaluation.formula_text import with_plain_formulas

    register_plugins(plugins)
    console().print(Markdown(f"{with_plain_formulas(card_text(name))}\n\n{options_text(name)}"))
