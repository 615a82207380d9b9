"""`mmeval reproduce`."""

from __future__ import annotations

from pathlib import Path

import click

from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import plugin_option, register_plugins, result_format_option


@click.command(cls=LayeredCommand)
@click.argument("ledger", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Look for the answers in this folder first, then in the ledger's own.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Reproduce only this recipe or model; * and ? match.")
@result_format_option
@plugin_option
def reproduce(
    ledger: Path | None, data: Path | None, only: tuple[str, ...], format_: str, plugins: tuple[str, ...]
) -> None:
    """Compute published scores again, from the published answers.

    LEDGER is a YAML file that names published figures and the answers behind them; the default is the ledger of this
    project. Exit code 3 if a figure is not what the ledger declares.
    """
    from multimodal_eval.core.errors import ThresholdError
    from multimodal_eval.run.reproduction import reproduce as reproduced
    from multimodal_eval.run.reproduction.ledger import OUR_LEDGER

    if ledger is None and data is None and not only:
        raise click.UsageError(
            "most answers are not part of the package: name the folder that has them with --data DIR"
        )
    register_plugins(plugins)
    outcome = reproduced(ledger or OUR_LEDGER, data, only=only)
    print_result(outcome, format_, outcome.to_dict)
    if outcome.broken:
        raise ThresholdError(
            "\n".join(
                f"{each.entry.title}: declared {each.entry.declared}, but {each.status}" for each in outcome.broken
            )
        )
