"""`mmeval dialogue`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from multimodal_eval.cli.default_command import ScoringByDefault
from multimodal_eval.cli.dialogue_ppl import ppl
from multimodal_eval.cli.options import KeyValue, RunLocation, Threshold, output_options

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(
    cls=ScoringByDefault, usages=("GOLD OUTPUT PPL [OPTIONS]", "ppl QUESTIONS OUTPUT -o ppl_output.json [OPTIONS]")
)
def dialogue() -> None:
    """Score a submission to the multimodal dialogue contest: METEOR and a hidden metric, weighted by type.

    \b
    GOLD:   {"d1": {"type": "Image2Text", "replies": [["a cat", "It is a cat."], …]}, …}
    OUTPUT: {"d1": ["a cat", …], …}      PPL: {"d1": [1.7, …], …}
    """


def contest_options(command: Command) -> Command:
    """How the contest's score is made; `mmeval leaderboard` takes them too."""
    for option in (
        click.option("--plugin", "plugins", type=click.Path(), multiple=True, help="Python file that adds a rule."),
        click.option(
            "--present-types-only", is_flag=True, help="Leave types without dialogues out; scale the other weights up."
        ),
        click.option(
            "--synonyms", type=KeyValue(), multiple=True, help="A language's source: ru=ruwordnet:words.db, en=none."
        ),
        click.option(
            "--language", type=click.Choice(["auto", "en", "ru"]), help="Default: auto, that of each reply's variants."
        ),
        click.option("--rule", help="Of the hidden metric: confidence (default), choice, or a plug-in's."),
        click.option(
            "--weight", "weights", type=Threshold(), multiple=True, help="Of a type, for all of them: Text2Text=0.25."
        ),
        click.option("--config", type=click.Path(path_type=Path), help="YAML file with these settings."),
        click.option("--questions", type=click.Path(path_type=Path), help="What was asked, to be shown with replies."),
    ):
        command = option(command)
    return command


def contest_of(gold: Path, given: dict[str, Any], **more: Any) -> Any:
    """The contest that a command's options describe."""
    from multimodal_eval.contests.dialogue.contest import open_contest

    names = [name for name, _ in given["weights"]]
    if len(set(names)) < len(names):
        raise click.UsageError(f"--weight names a type twice: {max(names, key=names.count)}")
    return open_contest(
        gold,
        questions=given["questions"],
        config=given["config"],
        weights=dict(given["weights"]) or None,
        rule=given["rule"],
        language=given["language"],
        synonyms=dict(given["synonyms"]) or None,
        present_types_only=given["present_types_only"],
        plugins=list(given["plugins"]) or None,
        **more,
    )


@dialogue.command(short_help="Score a submission; the word can be left out.")
@click.argument("gold", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.argument("ppl", type=click.Path(path_type=Path))
@click.option("-o", "--run", "folder", type=RunLocation(), help="Run folder or URL. Default: below runs/.")
@contest_options
@click.option("--worst", type=click.IntRange(0), default=5, show_default=True, help="So many of the worst replies.")
@output_options
def score(gold: Path, output: Path, ppl: Path, folder: Any, worst: int, **given: Any) -> None:
    """Score a submission; the word `score` can be left out."""
    from multimodal_eval.cli.finish import check_names, judge
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.cli.report import leave_report
    from multimodal_eval.contests.dialogue.contest import prepare
    from multimodal_eval.contests.dialogue.report import dialogue_report
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run import execute
    from multimodal_eval.run.evaluate import default_folder

    plan, source = prepare(contest_of(gold, given), output, ppl)
    check_names(given["fail_under"], plan.names)
    path = folder or default_folder(plan)
    with progress_bar() as progress:
        execute.start(plan, source, path, progress=progress)
    run = Run(path)
    if given["jsonl"]:
        run.write_jsonl()
    page = leave_report(run, wanted=given["wants_report"])
    report = dialogue_report(run, worst)
    if given["format_"] == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json({**run.results, "run": run.folder.label, "dialogue": report}).decode(), nl=False)
    else:
        from multimodal_eval.cli.show_dialogue import show_dialogue

        show_dialogue(report, run)
        if page is not None:
            click.echo(f"report: {page}")
    judge(run, given)


dialogue.add_command(ppl)
