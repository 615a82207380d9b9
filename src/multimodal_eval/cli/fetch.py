"""`mmeval fetch`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from multimodal_eval.cli.layers import LayeredCommand

if TYPE_CHECKING:
    from multimodal_eval.benchmarks.recipes import Recipe


@click.command(cls=LayeredCommand)
@click.argument("names", nargs=-1)
@click.option(
    "--verify",
    "verifying",
    is_flag=True,
    help="Fetch nothing: verify the checksums of NAMES, or of everything on this machine. Exit 1 if one differs.",
)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Compare the data of a benchmark with its recipe, and print what to report. Without --data, fetch them first.",
)
@click.option("--data", "copy", type=click.Path(path_type=Path), help="With --check, a folder with a copy of the data.")
def fetch(names: tuple[str, ...], verifying: bool, checking: bool, copy: Path | None) -> None:
    """Fetch resources by name (see `mmeval ls resources`), or Hugging Face models: hf:ORG/NAME[@REVISION].

    The name of a benchmark (`mmeval ls benchmarks`) fetches its data.

    `ru` is what Russian synonyms need. `ruwordnet` cannot be fetched: the command says how to get it.

    Scoring needs no network afterwards. $HF_ENDPOINT sets another address for the hub.
    """
    from multimodal_eval.resources.fetch import RUWORDNET, expanded, find_ruwordnet, ruwordnet_instructions

    if not names and not verifying:
        raise click.UsageError("name what to fetch; `mmeval ls resources` and `mmeval ls benchmarks` list it")
    if copy is not None and not checking:
        raise click.UsageError("--data needs --check: a copy of the data is not fetched")
    if checking and verifying:
        raise click.UsageError("--check compares data with a recipe, and --verify checksums: choose one")
    given, names = names, _without_benchmarks(names, checking, copy, verifying=verifying)
    if given and not names:
        return
    fetched = [name for name in expanded(names) if name != RUWORDNET]
    if verifying:
        if fetched or not names:
            _verify(fetched)
    else:
        for line in fetch_all(fetched):
            click.echo(line)
        _say_what_is_missing(fetched)
    if RUWORDNET in names:
        click.echo(ruwordnet_instructions(), nl=False)
        if find_ruwordnet() is None:
            raise click.exceptions.Exit(1)


def _without_benchmarks(
    names: tuple[str, ...], checking: bool, copy: Path | None, *, verifying: bool
) -> tuple[str, ...]:
    """Fetch the data of benchmarks, or check them; the other names."""
    from multimodal_eval.resources.catalogue import CATALOGUE, GROUPS

    benchmarks = [name for name in names if name not in CATALOGUE and name not in GROUPS and ":" not in name]
    if checking and len(benchmarks) != len(names):
        raise click.UsageError("--check is for benchmarks, which `mmeval ls benchmarks` lists")
    from multimodal_eval.benchmarks.recipes import named_recipe, recipe, recipe_of

    benchmarks = [name for name in benchmarks if checking or named_recipe(name) is not None]
    for name in benchmarks:
        file = named_recipe(name)
        benchmark = recipe(name) if file is None else recipe_of(file)  # a folder may be that of a recipe for --check
        if verifying:
            _verify_data(benchmark)
            continue
        if copy is None:
            fetch_benchmark(benchmark)
        if checking:
            from multimodal_eval.run.recipe_checks import first_contact

            report = first_contact(name, copy)
            click.echo(report.text)
            if report.faults:
                raise click.exceptions.Exit(1)
    return tuple(name for name in names if name not in benchmarks)


def fetch_benchmark(benchmark: Recipe) -> None:
    """Fetch the data of a benchmark. Its licence is shown before anything is downloaded."""
    from multimodal_eval.benchmarks.hub import fetch_data, listing
    from multimodal_eval.cli.options import progress_bar

    files = listing(benchmark)
    count = len(files.files)
    size = f"{count:,} {'file' if count == 1 else 'files'}, {files.size / 1e6:,.1f} MB"
    what = f"{benchmark.name}: {size}, {files.hub.repository}@{files.commit[:12]}"
    if files.is_here:
        click.echo(f"{what}: already here, {files.folder}")
        return
    click.echo(f"{what}. Licence: {benchmark.task.licence or 'not stated; see ' + str(benchmark.task.home)}", err=True)
    with progress_bar(unit="bytes") as progress:
        fetch_data(benchmark, files, progress)
    click.echo(f"{benchmark.name}: fetched, {files.folder}")


def _verify_data(benchmark: Recipe) -> None:
    """Compare fetched data with their checksums; exit 1 if a file differs."""
    from multimodal_eval.benchmarks.data_files import changed_files

    changed = changed_files(benchmark)
    if changed is None:
        click.echo(f"{benchmark.name}: not fetched")
        return
    click.echo(f"{benchmark.name}: {'intact' if not changed else 'damaged: ' + ', '.join(changed)}")
    if changed:
        click.echo(f"repair it with: mmeval fetch {benchmark.name}", err=True)
        raise click.exceptions.Exit(1)


def _say_what_is_missing(names: Iterable[str]) -> None:
    """Name the extra that runs the fetched models if it is not installed. Files alone may be what is wanted."""
    from multimodal_eval.models.runtime import missing_runtime
    from multimodal_eval.resources.catalogue import CATALOGUE

    models = [name for name in names if name not in CATALOGUE or CATALOGUE[name].is_model]
    if models and (reason := missing_runtime(f"running {', '.join(models)}")):
        click.echo(reason, err=True)


def _verify(names: list[str]) -> None:
    """Print one line per resource; exit 1 if one must be fetched again."""
    from multimodal_eval.resources.fetch import verified

    verdicts = []
    for verdict in verified(names):
        verdicts.append(verdict)
        click.echo(f"{verdict.name}: {verdict.state}{': ' if verdict.reason else ''}{verdict.reason}")
    if not verdicts:
        click.echo("nothing was fetched on this machine")
    failures = [verdict.name for verdict in verdicts if not verdict.is_fine]
    for name in failures:
        click.echo(f"repair it with: mmeval fetch {name}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def fetch_all(names: Iterable[str]) -> Iterable[str]:
    """Fetch one after the other with a progress bar; yield one line per resource."""
    from multimodal_eval.cli.options import progress_bar
    from multimodal_eval.resources.fetch import fetch_named

    for name in names:
        with progress_bar(unit="bytes") as progress:
            what, already, folder = fetch_named(name, progress)
        yield f"{what}: {'already here' if already else 'fetched'}, {folder}"
