"""`mmeval power`."""

from __future__ import annotations

from typing import Any

import click

from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import PositiveNumber, RunLocation, result_format_option


class Rates(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """Two rates: 0.70,0.74."""

    name = "A,B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Two numbers from 0 to 1."""
        if isinstance(value, tuple):
            return value
        try:
            first, second = (float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not two numbers with a comma: 0.70,0.74", param, ctx)
        return first, second


@click.command(cls=LayeredCommand)
@click.argument("pilot", nargs=-1, type=RunLocation(), metavar="[RUN_A RUN_B]")
@click.option("--metrics", "metric", help="The metric of the pilot runs. The default is their headline.")
@click.option("--effect", type=PositiveNumber(), help="Show how many samples are needed to detect this difference.")
@click.option(
    "--samples", type=click.IntRange(2), help="Show the smallest difference that this many samples can detect."
)
@click.option("--rates", type=Rates(), help="The accuracies of both systems, whose errors are taken as independent.")
@click.option("--lost", type=click.FloatRange(0, 0.5), help="The share of samples that only A gets right.")
@click.option("--sd", type=PositiveNumber(), help="The standard deviation of the paired differences.")
@click.option(
    "--group-size", type=click.IntRange(1), default=1, show_default=True, help="The number of samples per group."
)
@click.option(
    "--group-correlation", type=click.FloatRange(0, 1), default=0.0, help="The correlation of samples within a group."
)
@click.option("--power", "wanted", type=click.FloatRange(0.01, 0.999), default=0.8, show_default=True,
              help="The probability of detecting the difference.")  # fmt: skip
@result_format_option
def power(
    pilot: tuple[Any, ...], effect: float | None, samples: int | None, wanted: float, format_: str, **params: Any
) -> None:
    """Show how many samples a paired comparison needs, or the smallest difference it can detect."""
    from multimodal_eval.analysis import power as analysis
    from multimodal_eval.cli.finish import print_blocks
    from multimodal_eval.display.of_comparison import power_blocks

    if effect is None and samples is None:
        raise click.UsageError("name --effect, --samples, or both")
    if sum(params[name] is not None for name in ("rates", "lost", "sd")) + bool(pilot) != 1:
        raise click.UsageError("name two pilot runs, or one of --rates, --lost and --sd")
    table = analysis.power(*pilot, samples=samples, effect=effect, probability=wanted, **params)
    print_blocks(power_blocks(table), format_, table.to_dict)
