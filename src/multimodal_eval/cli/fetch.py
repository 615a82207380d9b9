"""`mmeval fetch`."""

from __future__ import annotations

from collections.abc import Iterable

import click


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--verify",
    "verifying",
    is_flag=True,
    help="Fetch nothing: verify the checksums of NAMES, or of everything on this machine. Exit 1 if one differs.",
)
def fetch(names: tuple[str, ...], verifying: bool) -> None:
    """Fetch resources by name (see `mmeval ls resources`), or Hugging Face models: hf:ORG/NAME[@REVISION].

    `ru` is what Russian synonyms need. `ruwordnet` cannot be fetched: the command says how to get it.

    Scoring needs no network afterwards. $HF_ENDPOINT sets another address for the hub.
    """
    from multimodal_eval.resources.fetch import RUWORDNET, expanded, find_ruwordnet, ruwordnet_instructions

    if not names and not verifying:
        raise click.UsageError("name what to fetch; `mmeval ls resources` lists it")
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
