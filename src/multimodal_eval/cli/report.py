"""`mmeval report`, and the report that every scoring command writes into its run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import RunLocation, media_root_option, plugin_option, register_plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multimodal_eval.analysis.composite import Sensitivity
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.data.runs.storage import Location
    from multimodal_eval.report.build import Theme


@click.command(cls=LayeredCommand)
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN [RUN_B …]")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write this file. The default is report.html in RUN; for several runs, in the current folder.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 50),
    help="Show this many of the best, the worst, the most disputed …; at most 200 in total. The default is 12, and 3 "
    "for paper.",
)
@click.option(
    "--theme",
    type=click.Choice(["screen", "paper"]),
    default="screen",
    show_default=True,
    help="Write a page for the browser, or for print: black on white, without controls, with numbered tables and "
    "figures. The default file is then report-paper.html.",
)
@click.option("--fetch-images", is_flag=True, help="Also fetch images from web addresses, if the run was allowed to.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Set the random seed of the comparison."
)
@media_root_option
@plugin_option
def report(runs: tuple[Any, ...], output: Path | None, **params: Any) -> None:
    """Write RUN, several runs over the same samples, or a suite, as one self-contained HTML file.

    It starts with a verdict: one sentence per question that the runs answer. Then follow scores with their
    intervals, the comparison, selected samples with their images, warnings, slices, provenance, and the metric
    cards. For a suite, or any folder of runs, the file shows the table of `mmeval table`.
    """
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.report.build import file_name, write_into

    register_plugins(params["plugins"])
    if _is_suite(runs):
        from multimodal_eval.analysis.suite import suite
        from multimodal_eval.report.build import suite_html

        write_html(output or Path(file_name("screen")), suite_html(suite(runs)))
        return
    theme: Theme = params["theme"]
    opened = [Run(run) for run in runs]
    page = page_of(
        opened,
        samples=params["samples"],
        fetch=params["fetch_images"],
        seed=params["seed"],
        media_roots=params["media_roots"],
        theme=theme,
    )
    if output is None and len(opened) == 1:
        click.echo(f"report: {write_into(opened[0], page, theme)}")
        return
    write_html(output or Path(file_name(theme)), page)


def _is_suite(locations: Sequence[Location]) -> bool:
    """Whether these are suites or folders of runs, not runs."""
    from multimodal_eval.data.runs.storage import storage_at

    storages = [storage_at(location) for location in locations]
    return not any(storage.exists("run.json") for storage in storages) and all(storage.names() for storage in storages)


def write_html(path: Path, page: str) -> None:
    """Write a page, and say where."""
    from multimodal_eval.report.build import write_page

    try:
        write_page(path, page)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"report: {path}")


def page_of(
    runs: Sequence[Run],
    *,
    samples: int | None = None,
    fetch: bool = False,
    seed: int = 0,
    media_roots: Sequence[Path] = (),
    theme: Theme = "screen",
) -> str:
    """The page, with a comparison if there are several runs and a sensitivity analysis if there are weights."""
    from multimodal_eval import __version__
    from multimodal_eval.report.build import report_html
    from multimodal_eval.report.samples import PER_GROUP, PER_GROUP_ON_PAPER

    comparison = None
    if len(runs) > 1:
        from multimodal_eval.analysis.compare import compare_runs
        from multimodal_eval.core.machine import cores

        # The page says how many samples are paired, and which metrics are not compared.
        comparison = compare_runs(runs, allow_partial=True, skip_unknown=True, seed=seed, threads=cores())
    return report_html(
        runs,
        [runs[0].folder.name] if comparison is None else comparison.runs,
        version=__version__,
        comparison=comparison,
        sensitivity=_sensitivity(runs, seed=seed),
        per_group=samples or (PER_GROUP_ON_PAPER if theme == "paper" else PER_GROUP),
        fetch=fetch,
        media_roots=media_roots,
        theme=theme,
    )


def _sensitivity(runs: Sequence[Run], *, seed: int) -> Sensitivity | None:
    """None if a run has no composite of weighted parts, or no sample with one."""
    from multimodal_eval.core.records import COMPOSITE

    for run in runs:
        signature = run.info.signatures.get(COMPOSITE)
        if signature is None or not signature.weights or not run.entries[COMPOSITE].n_scored:
            return None
    from multimodal_eval.analysis.composite import sensitivity

    return sensitivity(runs, allow_partial=True, seed=seed)


def write_report(run: Run, *, enabled: bool = True, media_roots: Sequence[Path] = ()) -> Location | None:
    """Write report.html into the run folder, unless the run is temporary; None if no report was written.

    The scores are already stored, so an error here is printed and does not fail the command.
    """
    if not enabled or not run.is_kept:
        return None
    from multimodal_eval.core.errors import MultimodalEvalError
    from multimodal_eval.report.build import write_into

    try:
        return write_into(run, page_of([run], media_roots=media_roots))
    except (MultimodalEvalError, OSError) as error:
        click.echo(f"no report was written: {error}", err=True)
        return None
