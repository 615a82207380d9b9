"""`mmeval card`."""

from __future__ import annotations

import click

from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import plugin_option, register_plugins
from multimodal_eval.core.judge_config import PREFIX


@click.command(cls=LayeredCommand)
@click.argument("name")
@plugin_option
def card(name: str, plugins: tuple[str, ...]) -> None:
    """Show the card of the metric NAME: what it measures, its formula, its limits, its options.

    NAME may also be a rule such as `mmmu-pro@2025`: what it reads or compares, and its origin; or a prompt of
    `mmeval ls prompts` or a profile of `mmeval ls models`: its text; or a benchmark of `mmeval ls benchmarks`, or the
    folder of a recipe: its data, prompts and rule; or a judge, such as `judge:clair` or `judge:FILE.yaml`: its
    settings, and what it is asked (`judge`: the card of all judges).
    """
    from rich.markdown import Markdown

    from multimodal_eval.benchmarks.recipes import find_recipe
    from multimodal_eval.display.console import console
    from multimodal_eval.evaluation.cards import JUDGE, card_text, options_text, rule_card, with_plain_formulas
    from multimodal_eval.evaluation.metrics_registry import is_available
    from multimodal_eval.generate.model_profile import profile_text, profiles
    from multimodal_eval.generate.prompts import prompt_text, prompts

    register_plugins(plugins)
    if name.startswith(PREFIX):
        from multimodal_eval.run.judging import judge_card

        click.echo(judge_card(name.removeprefix(PREFIX)), nl=False)
        return
    if name == JUDGE and not is_available(name):
        console().print(Markdown(with_plain_formulas(card_text(name))))
        return
    if name in profiles():
        click.echo(profile_text(name), nl=False)
        return
    if not is_available(name) and name not in prompts() and find_recipe(name) is not None:
        from multimodal_eval.run.recipe_card import recipe_card

        console().print(Markdown(recipe_card(name)))
        return
    if name in prompts() and not is_available(name):
        click.echo(prompt_text(name), nl=False)
        return
    if "@" in name:
        console().print(Markdown(rule_card(name)))
        return
    console().print(Markdown(f"{with_plain_formulas(card_text(name))}\n\n{options_text(name)}"))
