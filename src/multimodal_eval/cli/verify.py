"""`mmeval verify`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import Any

import click

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import RunLocation, plugin_option, register_plugins, result_format_option


@click.command(cls=LayeredCommand)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=RunLocation())
@click.option(
    "--deep",
    is_flag=True,
    help="Also compare the rows of all parts, and recompute the results from the stored scores.",
)
@plugin_option
@result_format_option
def verify(runs: tuple[Any, ...], deep: bool, plugins: tuple[str, ...], format_: str) -> None:
    """Compare the files of every RUN with their checksums.

    Exit code 1 if a file is damaged or missing. `mmeval score --resume RUN` recomputes damaged files.
    """
    from multimodal_eval.display.of_reproduction import verification_blocks
    from multimodal_eval.run.verify import verify_run

    register_plugins(plugins)
    checked = []
    for run in runs:
        checked.append(verify_run(run, deep=deep))
        if format_ == "table":
            print_blocks(verification_blocks(checked[-1], deep=deep))
    if format_ != "table":
        every = chain.from_iterable(verification_blocks(each, deep=deep) for each in checked)
        print_blocks(every, format_, lambda: [asdict(each) for each in checked])
    if any(each.faults for each in checked):
        raise click.exceptions.Exit(1)
