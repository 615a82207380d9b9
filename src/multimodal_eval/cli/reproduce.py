"""`mmeval reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Also write this HTML page.")
@result_format_option
@plugin_option
def reproduce(ledger: Path | None, data: Path | None, only: tuple[str, ...], **params: Any) -> None:
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
    register_plugins(params["plugins"])
    outcome = reproduced(ledger or OUR_LEDGER, data, only=only)
    print_result(outcome, params["format_"], outcome.to_dict)
    if params["output"] is not None:
        from multimodal_eval.cli.report import write_html
        from multimodal_eval.report.build import result_html

        write_html(params["output"], result_html(outcome, "Published scores, computed again"))
    if outcome.broken:
        raise ThresholdError(
            "\n".join(
                f"{each.entry.title}: declared {each.entry.declared}, but {each.status}" for each in outcome.broken
            )
        )
