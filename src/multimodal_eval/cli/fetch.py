"""`mmeval fetch`."""

from __future__ import annotations

import click


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--verify", "verifying", is_flag=True, help="Take the checksums of what is here again.")
def fetch(names: tuple[str, ...], verifying: bool) -> None:
    """Fetch resources by name (see `mmeval ls resources`); offline afterwards."""
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.resources import fetch as fetching
    from multimodal_eval.resources.catalogue import get_resource
    from multimodal_eval.resources.store import is_here, verify

    for resource in [get_resource(name) for name in names]:
        already = is_here(resource)
        with progress_bar() as progress:
            folder = fetching.fetch(resource, progress)
        if verifying:
            verify(resource)
        click.echo(f"{resource.name} ({resource.licence}): {'was here' if already else 'fetched'}, {folder}")
