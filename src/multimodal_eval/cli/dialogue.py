"""`mmeval dialogue`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.default_command import ScoringByDefault
from multimodal_eval.cli.dialogue_generation import generate, run
from multimodal_eval.cli.dialogue_options import contest_of, contest_options, worst_option
from multimodal_eval.cli.dialogue_ppl import ppl
from multimodal_eval.cli.options import RunLocation, output_options
from multimodal_eval.cli.show_dialogue import scored


@click.group(
    cls=ScoringByDefault,
    usages=(
        "GOLD OUTPUT PPL [OPTIONS]",
        "GOLD SUBMISSION [OPTIONS]",
        "ppl QUESTIONS OUTPUT -o ppl_output.json [OPTIONS]",
        "generate QUESTIONS --model MODEL -o DIR [OPTIONS]",
        "run GOLD QUESTIONS --model MODEL -o DIR [OPTIONS]",
    ),
)
def dialogue() -> None:
    """Score a submission to the multimodal dialogue contest by METEOR and a hidden metric, weighted by type.

    \b
    GOLD:   {"d1": {"type": "Image2Text", "replies": [["a cat", "It is a cat."], …]}, …}
    OUTPUT: {"d1": ["a cat", …], …}      PPL: {"d1": [1.7, …], …}
    SUBMISSION: a folder or a zip with output.json and ppl_output.json

    Each file may also be a list: [{"id": "d1", "answers": ["a cat", …]}, …]
    """


@dialogue.command(short_help="Score a submission (default command).")
@click.argument("gold", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.argument("ppl", type=click.Path(path_type=Path), required=False)
@click.option("-o", "--run", "folder", type=RunLocation(), help="Run folder or URL. Default: below runs/.")
@contest_options
@worst_option
@output_options
def score(gold: Path, output: Path, ppl: Path | None, folder: Any, worst: int, **params: Any) -> None:
    """Score a submission; the command name `score` is optional."""
    from multimodal_eval.contests.dialogue.contest import prepare
    from multimodal_eval.contests.dialogue.sources import holds_both
    from multimodal_eval.run.opening import default_folder

    if ppl is None and not holds_both(output):
        raise click.UsageError(f"PPL is missing: name ppl_output.json too, or a folder or zip with both. Got {output}")
    prepared = prepare(contest_of(gold, params), output, ppl)
    scored(prepared, folder or default_folder(prepared.plan), worst, params)


for command in (ppl, generate, run):
    dialogue.add_command(command)
