"""`mmeval verify`."""

from __future__ import annotations

from typing import Any

import click

from multimodal_eval.cli.options import RunLocation, plugin_option, register_plugins


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=RunLocation())
@click.option(
    "--deep",
    is_flag=True,
    help="Also compare the rows of all parts, and recompute the results from the stored scores.",
)
@plugin_option
def verify(runs: tuple[Any, ...], deep: bool, plugins: tuple[str, ...]) -> None:
    """Compare the files of every RUN with their checksums.

    Exit code 1 if a file is damaged or missing. `mmeval score --resume RUN` recomputes damaged files.
    """
    from multimodal_eval.run.verify import verify_run

    register_plugins(plugins)
    damaged = [run for run in runs if not _is_intact(verify_run(run, deep=deep), deep=deep)]
    if damaged:
        raise click.exceptions.Exit(1)


def _is_intact(outcome: Any, *, deep: bool) -> bool:
    """Print what was found in a run, and whether it is intact."""
    for fault in outcome.faults:
        click.echo(f"{outcome.run}/{fault.name} {fault.problem}")
    for note in outcome.notes:
        click.echo(f"{outcome.run}: {note}")
    if outcome.faults:
        click.echo(f"{outcome.run}: {_counted(len(outcome.faults), 'fault')}. {_advice(outcome)}")
        return False
    if outcome.files:
        results = ", and the results are those of its scores" if deep and outcome.state == "done" else ""
        click.echo(f"{outcome.run}: {_counted(outcome.files, 'data file')} intact{results}")
    return True


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _advice(outcome: Any) -> str:
    from shlex import quote

    if any(fault.name == "run.json" for fault in outcome.faults):
        return "Restore run.json from a copy, or score the samples again"
    return f"Recompute with: mmeval score --resume {quote(outcome.run)}"
