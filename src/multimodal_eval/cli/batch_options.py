"""The options of commands that ask a model by OpenAI's batch API: files instead of an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from multimodal_eval.cli.options import Command, Params

if TYPE_CHECKING:
    from multimodal_eval.run.generation.batch import Batch


def batch_options(command: Command) -> Command:
    """Requests that are written to files, and results that are read from files."""
    out = click.option(
        "--batch-out",
        type=click.Path(dir_okay=False),
        help="Write the requests to this file, for OpenAI's batch API, instead of asking. Several files if there are "
        "too many for one.",
    )
    into = click.option(
        "--batch-in",
        type=click.Path(exists=True, dir_okay=False),
        multiple=True,
        help="Read the answers from this file of the batch API; several are possible, also files of errors.",
    )
    return out(into(command))


def batch_of(params: Params) -> Batch | None:
    """The files that take the place of the endpoint, if any were named."""
    from multimodal_eval.run.generation.batch import BatchIn, BatchOut

    if params["batch_out"] and params["batch_in"]:
        raise click.UsageError("--batch-out writes requests and --batch-in reads results: give one of them")
    if params["batch_out"]:
        if params["accept_open"]:
            raise click.UsageError("--batch-out leaves every sample open until its result is read: no --accept-open")
        return BatchOut(params["batch_out"])
    return BatchIn(params["batch_in"]) if params["batch_in"] else None


@contextmanager
def shown_if_written() -> Iterator[None]:
    """Print where the requests of a batch are. That is not a failure."""
    from multimodal_eval.run.generation.batch import BatchWrittenError

    try:
        yield
    except BatchWrittenError as written:
        click.echo(str(written))
        raise click.exceptions.Exit(0) from None
