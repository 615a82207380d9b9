"""`mmeval leaderboard --site`: the leaderboard as pages, from submissions or from runs that are scored already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from multimodal_eval.cli.options import Command, RunLocation

if TYPE_CHECKING:
    from multimodal_eval.analysis.leaderboard import Leaderboard
    from multimodal_eval.report.site.folder import SiteFolder

_WITH_STORED_RUNS = {"runs", "site", "title", "site_samples", "format_"}  # parameters that --from goes with
LONGEST_TITLE = 200  # characters


def site_options(command: Command) -> Command:
    """Options of the site."""
    for option in (
        click.option(
            "--site-samples", is_flag=True, help="Publish samples too, with answers, REFERENCES and the full reasons."
        ),
        click.option("--title", help="The title of the site. Default: Leaderboard."),
        click.option(
            "--site",
            type=click.Path(path_type=Path),
            help="Write the leaderboard as pages into this folder: a new or empty one, or a site to replace.",
        ),
        click.option(
            "--from",
            "runs",
            type=RunLocation(),
            help="Show the leaderboard in this folder of runs again, without scoring: instead of GOLD SUBMISSIONS.",
        ),
    ):
        command = option(command)
    return command


def require_one_source(context: click.Context) -> None:
    """Either GOLD and SUBMISSIONS, or --from with nothing that would change the scores."""
    params = context.params
    if params["runs"] is None:
        missing = next((name for name in ("gold", "submissions") if params[name] is None), None)
        if missing is not None:
            raise click.UsageError(f"Missing argument '{missing.upper()}'. Or name a folder of scored runs with --from")
        return
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _WITH_STORED_RUNS or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        shown = name.upper() if isinstance(parameter, click.Argument) else parameter.opts[-1]
        raise click.UsageError(f"{shown} has no effect with --from, which scores nothing")


def site_folder(params: dict[str, Any]) -> SiteFolder | None:
    """The folder of the site, if it can be written to."""
    if params["site"] is None:
        for name in ("title", "site_samples"):
            if params[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --site, the folder of the pages")
        return None
    if params["title"] is not None and not 0 < len(params["title"].strip()) <= LONGEST_TITLE:
        raise click.UsageError(f"--title must have 1 to {LONGEST_TITLE} characters")
    site, output = params["site"], params["output"]
    if isinstance(output, Path) and site.resolve() == output.resolve():
        raise click.UsageError(f"-o and --site name the same folder, {site}. Runs hold the references: keep them apart")
    from multimodal_eval.report.site.folder import SiteFolder

    return SiteFolder(site)


def stored_board(runs: Any) -> Leaderboard:
    """The leaderboard in a folder of runs."""
    from multimodal_eval.analysis.leaderboard import read_leaderboard

    return read_leaderboard(runs)


def publish(folder: SiteFolder, runs: Any, board: Leaderboard, params: dict[str, Any]) -> None:
    """Write the site, and say which page to open first."""
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.report.site.build import TITLE, write_site

    with progress_bar("files") as progress:
        write_site(
            folder,
            runs,
            board,
            title=(params["title"] or TITLE).strip(),
            with_samples=params["site_samples"],
            progress=progress,
        )
    click.echo(f"site: {folder.path / 'index.html'}", err=params["format_"] == "json")
    if params["site_samples"]:
        click.echo("the site shows samples with their references: do not publish it while the task is open", err=True)
