"""The options of the dialogue contest, and the contest that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Command, KeyValue, Threshold

if TYPE_CHECKING:
    from multimodal_eval.contests.dialogue.contest import DialogueContest

worst_option = click.option(
    "--worst", type=click.IntRange(0), default=5, show_default=True, help="How many of the worst replies to show."
)

config_option = click.option("--config", type=click.Path(path_type=Path), help="YAML file with further settings.")


def contest_options(command: Command) -> Command:
    """Options of the contest's score; `mmeval leaderboard` has them too."""
    for option in (
        click.option("--plugin", "plugins", type=click.Path(), multiple=True, help="Python file that adds a rule."),
        click.option(
            "--present-types-only", is_flag=True, help="Omit types without dialogues; scale the other weights up."
        ),
        click.option(
            "--synonyms", type=KeyValue(), multiple=True, help="Source for a language: ru=ruwordnet:words.db, en=none."
        ),
        click.option(
            "--language",
            type=click.Choice(["auto", "en", "ru"]),
            help="Default: auto, by each reply's variants.",
        ),
        click.option("--rule", help="Rule of the hidden metric: confidence (default), choice, or one from a plug-in."),
        click.option(
            "--weight",
            "weights",
            type=Threshold(),
            multiple=True,
            help="Weight of a type; set all: Text2Text=0.25.",
        ),
        config_option,
        click.option("--questions", type=click.Path(path_type=Path), help="The questions, shown with the replies."),
    ):
        command = option(command)
    return command


def contest_of(gold: Path, params: dict[str, Any], **more: Any) -> DialogueContest:
    """The contest described by a command's options."""
    from multimodal_eval.contests.dialogue.contest import open_contest

    names = [name for name, _ in params["weights"]]
    if len(set(names)) < len(names):
        raise click.UsageError(f"--weight names a type twice: {max(names, key=names.count)}")
    return open_contest(
        gold,
        questions=params["questions"],
        config=params["config"],
        weights=dict(params["weights"]) or None,
        rule=params["rule"],
        language=params["language"],
        synonyms=dict(params["synonyms"]) or None,
        present_types_only=params["present_types_only"],
        plugins=list(params["plugins"]) or None,
        **more,
    )
