"""`mmeval dialogue ppl`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

# The same as in models.language.causal, which is slow to import; a test compares the two.
DEFAULT_CAUSAL_LM = "smollm2-135m"


@click.command()
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
    help="Open images and audio outside that folder.",
)
@click.option("--allow-image-urls", "allow_urls", is_flag=True, help="Fetch images from http and https addresses.")
def ppl(questions: Path, answers: Path, output: Path, model: str, **params: Any) -> None:
    """Compute the perplexity of every answer in OUTPUT with a language model.

    QUESTIONS: {dialogue: [[{"type": "text" | "image" | "audio", "content": …}, …], …]}, the user's turns.
    OUTPUT: {dialogue: [answer, …]}, one per turn. Each answer is conditioned on the whole conversation before it.
    """
    from multimodal_eval.cli.fetch import fetch_all
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.contests.dialogue.files import read_answers, read_questions
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
