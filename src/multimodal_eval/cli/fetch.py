"""`mmeval fetch`."""

from __future__ import annotations

from collections.abc import Iterable

import click


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--verify", "verifying", is_flag=True, help="Verify the checksums of files already on this machine.")
def fetch(names: tuple[str, ...], verifying: bool) -> None:
    """Fetch resources by name (see `mmeval ls resources`), or Hugging Face models: hf:ORG/NAME[@REVISION].

    \b
    mmeval fetch ru          what Russian synonyms need
    mmeval fetch ruwordnet   says how to get RuWordNet

    Scoring needs no network afterwards. $HF_ENDPOINT sets another address for the hub.
    """
    from multimodal_eval.resources.fetch import expanded, verify_named
    from multimodal_eval.resources.ruwordnet import NAME, find_ruwordnet, instructions

    fetched = [name for name in expanded(names) if name != NAME]
    for line in fetch_all(fetched):
        click.echo(line)
    if verifying:
        for name in fetched:
            verify_named(name)
    if NAME in names:
        click.echo(instructions(), nl=False)
        if find_ruwordnet() is None:
            raise click.exceptions.Exit(1)


def fetch_all(names: Iterable[str]) -> Iterable[str]:
    """Fetch one after the other with a progress bar; yield one line per resource."""
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.resources.fetch import fetch_named

    for name in names:
        with progress_bar(unit="bytes") as progress:
            what, already, folder = fetch_named(name, progress)
        yield f"{what}: {'already here' if already else 'fetched'}, {folder}"
