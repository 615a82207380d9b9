"""`mmeval fetch`."""

from __future__ import annotations

from collections.abc import Iterable

import click


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--verify", "verifying", is_flag=True, help="Take the checksums of what is here again.")
def fetch(names: tuple[str, ...], verifying: bool) -> None:
    """Fetch resources by name (see `mmeval ls resources`), or models of the Hugging Face hub: hf:ORG/NAME[@REVISION].

    Offline afterwards. The hub is asked at $HF_ENDPOINT, or at its own address.
    """
    from multimodal_eval.resources.fetch import verify_named

    for line in fetch_all(names):
        click.echo(line)
    if verifying:
        for name in names:
            verify_named(name)


def fetch_all(names: Iterable[str]) -> Iterable[str]:
    """Fetch one after the other, with a bar; a line about each."""
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.resources.fetch import fetch_named

    for name in names:
        with progress_bar() as progress:
            what, already, folder = fetch_named(name, progress)
        yield f"{what}: {'was here' if already else 'fetched'}, {folder}"
