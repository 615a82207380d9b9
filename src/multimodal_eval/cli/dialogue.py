"""`mmeval dialogue`: score a submission, ask a model for one, and compute perplexities."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.model_options import generation_settings, model_options
from multimodal_eval.cli.options import (
    Command,
    KeyValue,
    Params,
    RunLocation,
    ScoringByDefault,
    Threshold,
    output_options,
    overwrite_option,
    progress_bar,
    refuse_overwrite_alone,
)
from multimodal_eval.display.of_generation import generation_lines
from multimodal_eval.display.of_run import settings_blocks
from multimodal_eval.display.run_findings import warnings_of

if TYPE_CHECKING:
    from multimodal_eval.contests.dialogue.contest import DialogueContest, PreparedReplies
    from multimodal_eval.contests.dialogue.generation import GeneratedDialogues
    from multimodal_eval.core.config import RunConfig


# The options of the dialogue contest, and the contest that they describe.

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


def scored(
    prepared: PreparedReplies, folder: Any, worst: int, params: Params, *, overwrite: bool | None = None
) -> None:
    """Score a submission, and show the results."""
    from multimodal_eval.cli.finish import check_gates, check_thresholds
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.contests.dialogue.report import dialogue_report

    check_gates(params, prepared.plan)
    with progress_bar() as progress:
        run = prepared.score(folder, progress, overwrite=overwrite)
    if params["jsonl"]:
        run.write_jsonl()
    page = write_report(run, enabled=params["wants_report"])
    report = dialogue_report(run, worst)
    more = chain(warnings_of(run), settings_blocks(run))
    print_result(report, params["format_"], lambda: {**run.results, "run": run.folder.label, "dialogue": report}, more)
    if page is not None and params["format_"] == "table":
        click.echo(f"report: {page}")
    check_thresholds(run, params)


# `mmeval dialogue generate` and `mmeval dialogue run`.


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
            help="Open images and audio outside the folder of the data.",
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


@click.command(cls=LayeredCommand)
@click.argument("questions", type=click.Path(path_type=Path))
@_submission_options
@config_option
@model_options
def generate(questions: Path, output: Path, **params: Any) -> None:
    """Ask a model for every reply in QUESTIONS, and write output.json and ppl_output.json into a folder.

    QUESTIONS: {dialogue: [[{"type": "text" | "image" | "audio", "content": …}, …], …]}, the user's turns.

    Every reply is asked with the whole conversation before it. ppl_output.json has the perplexities of the replies,
    from the model's own log-probabilities, if the endpoint gives them. The same command continues what was interrupted.
    If a reply fails, the later ones of its dialogue are not asked, the files name the reason, and the exit code is 1.
    """
    generated = _generated(questions, output, params)
    _show_generated(generated)
    generated.refuse_failures()
    click.echo(f"Score them: mmeval dialogue GOLD {quote(str(output))}", err=True)


@click.command(cls=LayeredCommand)
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

    contest = contest_of(gold, {**params, "config": _of_contest(params), "questions": questions})
    check_gates(params, make_plan(contest.config))
    target = output / "run"
    if target.exists() and not params["overwrite"]:
        raise ConfigError(f"{target} already exists. Name another folder with -o, or start again with --overwrite")
    generated = _generated(questions, output, params, list(contest.gold))
    _show_generated(generated)
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
    import msgspec

    from multimodal_eval.contests.dialogue.generation import ANSWERS, MediaRules, generate_dialogues
    from multimodal_eval.run.config import load_config, merged_generation

    settings = generation_settings({**dict.fromkeys(_UNUSED), **params}) or {}
    of_file = load_config(params["config"], params["model"]).generation
    if of_file is not None:
        settings = merged_generation(msgspec.to_builtins(of_file), settings)
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


def _of_contest(params: Params) -> RunConfig:
    """The configuration without the settings of the model, which answers before the contest scores."""
    import msgspec

    from multimodal_eval.run.config import load_config

    return msgspec.structs.replace(load_config(params["config"], params["model"]), generation=None)


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


def _show_generated(generated: GeneratedDialogues) -> None:
    """Print what was asked and written, on standard error: `run` prints results on standard output."""

    for line in generation_lines(generated.folder, generated.folder.read_info()):
        click.echo(line, err=True)
    files = [generated.output, *([] if generated.perplexities is None else [generated.perplexities])]
    counts = f"{len(generated.replies):,} replies of {len(generated.dialogues):,} dialogues"
    click.echo(f"{counts}: {', '.join(map(str, files))}", err=True)
    if generated.note is not None:
        click.echo(f"! {generated.note}", err=True)


# `mmeval dialogue ppl`.


# The same as in models.language.causal, which is slow to import; a test compares the two.
DEFAULT_CAUSAL_LM = "smollm2-135m"


@click.command(cls=LayeredCommand)
@click.argument("questions", type=click.Path(path_type=Path))
@click.argument("answers", metavar="OUTPUT", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="The file to write: ppl_output.json."
)
@click.option(
    "--model",
    default=DEFAULT_CAUSAL_LM,
    show_default=True,
    help="A language model by name, directory or hf:ORG/NAME; it may also read images or audio.",
)
@click.option(
    "--any-language", is_flag=True, help="Continue even if answers are in a language that the model does not support."
)
@click.option("--fetch", "fetching", is_flag=True, help="First fetch the model if it is missing.")
@click.option(
    "--media-root",
    "--image-root",
    type=click.Path(path_type=Path),
    help="The folder of images and audio; default: the folder of QUESTIONS.",
)
@click.option(
    "--allow-outside-media",
    "--allow-outside-images",
    "allow_outside",
    is_flag=True,
    help="Open images and audio outside the folder of the data.",
)
@click.option("--allow-image-urls", "allow_urls", is_flag=True, help="Fetch images from http and https addresses.")
def ppl(questions: Path, answers: Path, output: Path, model: str, **params: Any) -> None:
    """Compute the perplexity of every answer in OUTPUT with a language model.

    QUESTIONS: {dialogue: [[{"type": "text" | "image" | "audio", "content": …}, …], …]}, the user's turns.
    OUTPUT: {dialogue: [answer, …]}, one per turn. Each answer is conditioned on the whole conversation before it.
    """
    from multimodal_eval.cli.fetch import fetch_all
    from multimodal_eval.contests.dialogue.dialogues import read_answers, read_questions
    from multimodal_eval.contests.dialogue.perplexities import perplexities
    from multimodal_eval.core.records import to_json
    from multimodal_eval.data.readers.problems import Problems
    from multimodal_eval.data.runs.storage import write_atomically
    from multimodal_eval.media.policy import MediaPolicy
    from multimodal_eval.models.language.conversations import open_conversation_lm
    from multimodal_eval.models.source import fetchable

    if not output.resolve().parent.is_dir() or output.is_dir():
        raise click.UsageError(f"--output {output} must be a file in an existing folder")
    problems = Problems()
    user_turns, model_answers = read_questions(questions, problems), read_answers(answers, problems)
    problems.raise_if_any()
    if params["fetching"]:
        for line in fetch_all(fetchable(model)):
            click.echo(line, err=True)
    policy = MediaPolicy(
        root=params["media_root"] or questions.resolve().parent,
        allow_outside=params["allow_outside"],
        allow_urls=params["allow_urls"],
    )
    language_model = open_conversation_lm(model)
    with progress_bar() as progress:
        values = perplexities(
            user_turns,
            model_answers,
            language_model,
            policy=policy,
            any_language=params["any_language"],
            tell=lambda note: click.echo(f"! {note}", err=True),
            progress=progress,
        )
    write_atomically(output, lambda path: path.write_bytes(to_json(values)))
    click.echo(f"{sum(map(len, values.values()))} perplexities by {language_model.label}: {output}", err=True)


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
@click.argument("submission", metavar="OUTPUT", type=click.Path(path_type=Path))
@click.argument("ppl", type=click.Path(path_type=Path), required=False)
@click.option("-o", "--output", type=RunLocation(), help="Run folder or URL. Default: below runs/.")
@overwrite_option
@contest_options
@worst_option
@output_options
def score(gold: Path, submission: Path, ppl: Path | None, output: Any, worst: int, **params: Any) -> None:
    """Score a submission; the command name `score` is optional."""
    from multimodal_eval.contests.dialogue.contest import prepare
    from multimodal_eval.contests.dialogue.dialogues import holds_both
    from multimodal_eval.run.start import file_name, new_folder

    if ppl is None and not holds_both(submission):
        raise click.UsageError(
            f"PPL is missing. Name ppl_output.json too, or a folder or zip with both, not {submission}"
        )
    refuse_overwrite_alone({**params, "output": output})
    prepared = prepare(contest_of(gold, params), submission, ppl)
    overwrite: bool = params["overwrite"]
    scored(prepared, output or new_folder(file_name(submission)), worst, params, overwrite=overwrite)


for command in (ppl, generate, run):
    dialogue.add_command(command)
