"""`mmeval dialogue generate` and `mmeval dialogue run`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.dialogue_options import contest_of, contest_options, worst_option
from multimodal_eval.cli.generation_options import generation_settings, model_options
from multimodal_eval.cli.options import Command, Params, output_options
from multimodal_eval.cli.show_dialogue import scored

if TYPE_CHECKING:
    from multimodal_eval.contests.dialogue.replies import GeneratedDialogues

# Options of other commands that ask a model: a dialogue is its own prompt, and every reply is asked once.
_UNUSED = ("prompt", "shots", "shot_count", "epochs", "frames", "media_as", "logprobs", "dry_run", "show_request")
_AGAIN = "the same command"


def _submission_options(command: Command) -> Command:
    for option in (
        click.option(
            "--allow-image-urls", "allow_urls", is_flag=True, help="Fetch images from http and https addresses."
        ),
        click.option(
            "--allow-outside-media",
            "--allow-outside-images",
            "allow_outside",
            is_flag=True,
            help="Open images and audio outside that folder.",
        ),
        click.option(
            "--media-root",
            "--image-root",
            type=click.Path(path_type=Path),
            help="The folder of images and audio; default: the folder of QUESTIONS.",
        ),
        click.option("--accept-open", is_flag=True, help="Give up replies whose requests fail again and again."),
        click.option("--overwrite", is_flag=True, help="Ask again, and replace the files in the folder of -o."),
        click.option(
            "--no-logprobs", is_flag=True, help="Do not ask for log-probabilities, and write no ppl_output.json."
        ),
        click.option(
            "-o",
            "--output",
            required=True,
            type=click.Path(path_type=Path, file_okay=False),
            help="The folder for output.json, ppl_output.json and the model's answers.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("questions", type=click.Path(path_type=Path))
@_submission_options
@model_options
def generate(questions: Path, output: Path, **params: Any) -> None:
    """Ask a model for every reply in QUESTIONS, and write output.json and ppl_output.json into a folder.

    QUESTIONS: {dialogue: [[{"type": "text" | "image" | "audio", "content": …}, …], …]}, the user's turns.

    Every reply is asked with the whole conversation before it. ppl_output.json has the perplexities of the replies,
    from the model's own log-probabilities, if the endpoint gives them. The same command continues what was interrupted.
    If a reply fails, the later ones of its dialogue are not asked, the files name the reason, and the exit code is 1.
    """
    generated = _generated(questions, output, params)
    _show(generated)
    generated.refuse_failures()
    click.echo(f"Score them: mmeval dialogue GOLD {quote(str(output))}", err=True)


@click.command()
@click.argument("gold", type=click.Path(path_type=Path))
@click.argument("questions", type=click.Path(path_type=Path))
@_submission_options
@model_options
@contest_options
@worst_option
@output_options
def run(gold: Path, questions: Path, output: Path, worst: int, **params: Any) -> None:
    """Ask a model for every reply in QUESTIONS as `mmeval dialogue generate` does, and score them against GOLD.

    The scored run is in the folder `run` inside the folder of -o.
    """
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.contests.dialogue.contest import prepare
    from multimodal_eval.core.errors import ConfigError
    from multimodal_eval.run.plan import make_plan

    contest = contest_of(gold, {**params, "questions": questions})
    check_gates(params, make_plan(contest.config))
    target = output / "run"
    if target.exists() and not params["overwrite"]:
        raise ConfigError(f"{target} already exists. Name another folder with -o, or start again with --overwrite")
    generated = _generated(questions, output, params, list(contest.gold))
    _show(generated)
    generated.refuse_failures()
    if generated.perplexities is None:
        raise ConfigError(f"{generated.note}, then score with: mmeval dialogue {quote(str(gold))} {quote(str(output))}")
    scored(prepare(contest, output), target, worst, params, overwrite=params["overwrite"] or None)


def _without(command: click.Command, names: Collection[str], required: str) -> None:
    """Remove options that a command shares with others, and require one."""
    command.params = [param for param in command.params if isinstance(param, click.Argument) or param.name not in names]
    for param in command.params:
        param.required = param.required or param.name == required


_without(generate, _UNUSED, "model")
_without(run, (*_UNUSED, "questions"), "model")


def _generated(questions: Path, output: Path, params: Params, order: Sequence[str] | None = None) -> GeneratedDialogues:
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.contests.dialogue.generation import ANSWERS, MediaRules, generate_dialogues

    settings = generation_settings({**dict.fromkeys(_UNUSED), **params}) or {}
    if params["no_logprobs"]:
        settings["parameters"] = {**settings.get("parameters", {}), "logprobs": False}
    media = MediaRules(params["media_root"], params["allow_outside"], params["allow_urls"])
    with progress_bar("replies") as progress, _continuable(output / ANSWERS):
        return generate_dialogues(
            questions,
            output,
            model=params["model"],
            generation=settings,
            media=media,
            overwrite=params["overwrite"],
            accept_open=params["accept_open"],
            progress=progress,
            order=order,
        )


@contextmanager
def _continuable(folder: Path) -> Iterator[None]:
    """Say that the same command continues, where others would name a command for the folder with the answers."""
    from multimodal_eval.cli.running import continuable
    from multimodal_eval.core.errors import MultimodalEvalError

    name = str(folder)
    command = rf"mmeval \w+ --resume (?:{re.escape(quote(name))}|{re.escape(name)})"
    try:
        with continuable(folder, _AGAIN):
            yield
    except MultimodalEvalError as error:
        if re.search(command, str(error)) is None:
            raise
        raise type(error)(re.sub(command, _AGAIN, str(error))) from error


def _show(generated: GeneratedDialogues) -> None:
    """Print what was asked and written, on standard error: `run` prints results on standard output."""
    from multimodal_eval.cli.show_generation import generation_lines

    for line in generation_lines(generated.folder, generated.folder.read_info()):
        click.echo(line, err=True)
    files = [generated.output, *([] if generated.perplexities is None else [generated.perplexities])]
    counts = f"{len(generated.replies):,} replies of {len(generated.dialogues):,} dialogues"
    click.echo(f"{counts}: {', '.join(map(str, files))}", err=True)
    if generated.note is not None:
        click.echo(f"! {generated.note}", err=True)
