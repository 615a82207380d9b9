"""`mmeval dialogue ppl`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

# As in models.language.causal, which takes a while to import; a test keeps the two alike.
DEFAULT_CAUSAL_LM = "smollm2-135m"


@click.command()
@click.argument("questions", type=click.Path(path_type=Path))
@click.argument("answers", metavar="OUTPUT", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Where ppl_output.json goes.")
@click.option(
    "--model",
    default=DEFAULT_CAUSAL_LM,
    show_default=True,
    help="A language model, or a directory or hf:ORG/NAME of one that reads pictures or sounds too.",
)
@click.option("--any-language", is_flag=True, help="Go on where answers are in a language the model was not made for.")
@click.option("--fetch", "fetching", is_flag=True, help="First fetch the model if it is not here.")
@click.option(
    "--media-root",
    "--image-root",
    type=click.Path(path_type=Path),
    help="Where pictures and sounds lie; default: the folder of QUESTIONS.",
)
@click.option(
    "--allow-outside-media",
    "--allow-outside-images",
    "allow_outside",
    is_flag=True,
    help="Open pictures and sounds that lie outside that folder.",
)
@click.option("--allow-image-urls", "allow_urls", is_flag=True, help="Fetch pictures from http and https addresses.")
def ppl(questions: Path, answers: Path, output: Path, model: str, **given: Any) -> None:
    """Compute the perplexity of every answer in OUTPUT by a language model.

    QUESTIONS: {dialogue: [[{"type": "text" | "image" | "audio", "content": …}, …], …]}, the turns of the user.
    OUTPUT: {dialogue: [answer, …]}, one a turn. Each answer is read after all that was said before it.
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
        raise click.UsageError(f"--output {output}: a file in a folder that exists is needed")
    problems = Problems()
    asked, answered = read_questions(questions, problems), read_answers(answers, problems)
    problems.raise_if_any()
    if given["fetching"]:
        for line in fetch_all(fetchable(model)):
            click.echo(line, err=True)
    policy = MediaPolicy(
        root=given["media_root"] or questions.resolve().parent,
        allow_outside=given["allow_outside"],
        allow_urls=given["allow_urls"],
    )
    opened = open_conversation_lm(model)
    with progress_bar() as progress:
        found = perplexities(
            asked,
            answered,
            opened,
            policy=policy,
            any_language=given["any_language"],
            tell=lambda note: click.echo(f"! {note}", err=True),
            progress=progress,
        )
    write_atomically(output, lambda path: path.write_bytes(to_json(found)))
    click.echo(f"{sum(map(len, found.values()))} perplexities by {opened.label}: {output}", err=True)
