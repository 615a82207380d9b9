"""`mmeval compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import (
    PositiveNumber,
    RunLocation,
    plugin_option,
    register_plugins,
    result_format_option,
)

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison


# Options that belong to one of the two questions.
_OF_COMPARISONS = ("metrics", "baseline", "fail_if_worse", "by", "margin", "effect", "rounds", "plugins")
_OF_WEIGHTS = ("concentration", "draws")
_OF_ASKING = ("ask", "model", "base_url")
_OF_WHY = ("runs", "why", "metrics", "format_", "plugins", "verbose", *_OF_ASKING)


@click.command(cls=LayeredCommand)
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN_A [RUN_B …]")
@click.option(
    "--why",
    is_flag=True,
    help="Instead, split the difference of two headline numbers into parts that add up to it: samples, gold, prompt, "
    "decoding, answer, failure, reading, scoring and aggregation. A side may be a log or a benchmark, too.",
)
@click.option(
    "--ask",
    type=click.IntRange(1),
    metavar="N",
    help="With --why, ask a model again for N samples, with the prompts and parameters of both. This measures what "
    "these contribute.",
)
@click.option("--model", help="With --ask, the model: PROVIDER:NAME. The default is that of the runs.")
@click.option("--base-url", help="With --ask, the address of the endpoint.")
@click.option(
    "--metrics",
    help="Compare these metrics, separated by commas; bleu.bleu_1 is a part. The default is all shared. With --why, "
    "one metric or that of each side.",
)
@click.option(
    "--vary-weights",
    is_flag=True,
    help="Instead, vary the weights of the composite and show how it and the ranking change. Accepts a single run.",
)
@click.option(
    "--concentration",
    type=PositiveNumber(),
    default=50.0,
    show_default=True,
    help="With --vary-weights: the higher, the less the weights vary. At 50, a weight of 0.25 varies by about 0.06.",
)
@click.option(
    "--draws",
    type=click.IntRange(100),
    default=10_000,
    show_default=True,
    help="With --vary-weights, draw this many random sets of weights.",
)
@click.option("--baseline", help="Compare each run with this one only.")
@click.option(
    "--fail-if-worse", is_flag=True, help="Exit 3 if a run is worse than the baseline (by default, the first run)."
)
@click.option("--allow-partial", is_flag=True, help="Compare even if over 1% of the pairs are unscored.")
@click.option("--by", metavar="COLUMN", help="Also compare the headline (or --metrics) within the values of a column.")
@click.option("--margin", type=PositiveNumber(), help="Test whether differences are smaller than this (equivalence).")
@click.option("--effect", type=PositiveNumber(), help="Show how many samples are needed to detect this difference.")
@click.option(
    "--rounds",
    type=click.IntRange(100),
    default=10_000,
    show_default=True,
    help="Set the number of randomization rounds.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Set the random seed.")
@result_format_option
@plugin_option
def compare(runs: tuple[Any, ...], fail_if_worse: bool, format_: str, plugins: tuple[str, ...], **params: Any) -> None:
    """Compare runs over the same samples: differences with intervals, p-values, a ranking with ties.

    With --why, say where the difference of two numbers comes from.
    """
    from multimodal_eval.analysis.compare import compare_runs
    from multimodal_eval.analysis.composite import sensitivity
    from multimodal_eval.core.machine import cores

    context = click.get_current_context()
    asking = {name: params.pop(name) for name in _OF_ASKING}
    if params.pop("why"):
        seed = {"seed": params["seed"]} if asking["ask"] is not None else {}
        _explain(context, runs, params["metrics"], format_, plugins, {**asking, **seed})
        return
    for name, value in asking.items():
        if value is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --why")
    unused = _OF_COMPARISONS if params.pop("vary_weights") else _OF_WEIGHTS
    for option in context.command.params:
        if option.name in unused and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            needs = "has no effect with" if unused is _OF_COMPARISONS else "needs"
            raise click.UsageError(f"{option.opts[0]} {needs} --vary-weights")
    weights = {name: params.pop(name) for name in _OF_WEIGHTS}
    if unused is _OF_COMPARISONS:
        result = sensitivity(runs, allow_partial=params["allow_partial"], seed=params["seed"], **weights)
        print_result(result, format_, result.to_dict)
        return
    if len(runs) < 2:
        raise click.UsageError("name at least two runs")
    if params["metrics"] is not None:
        params["metrics"] = [name.strip() for name in params["metrics"].split(",") if name.strip()]
        if not params["metrics"]:
            raise click.UsageError("--metrics names no metric")
    register_plugins(plugins)
    if fail_if_worse and params["baseline"] is None:
        params["baseline"] = str(runs[0])
    comparison = compare_runs(runs, threads=cores(), **params)
    print_result(comparison, format_, comparison.to_dict)
    if fail_if_worse:
        _check(comparison)


def _explain(
    context: click.Context,
    runs: tuple[Any, ...],
    metrics: str | None,
    format_: str,
    plugins: tuple[str, ...],
    asking: dict[str, Any],
) -> None:
    """Print why two numbers differ."""
    from multimodal_eval.run.why import why

    for option in context.command.params:
        is_used = option.name in _OF_WHY or option.name in asking
        if not is_used and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} has no effect with --why")
    for name in ("model", "base_url"):
        if asking["ask"] is None and asking[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --ask")
    if len(runs) != 2:
        raise click.UsageError(f"--why explains the difference of two numbers. Got {len(runs)}")
    register_plugins(plugins)
    names = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    result = why(*runs, metrics=names, **{**asking, "ask": asking["ask"] or 0})
    print_result(result, format_, result.to_dict)


def _check(comparison: RunComparison) -> None:
    """Fail if a run is worse than the baseline; name the metrics for which that could not be found out."""
    from multimodal_eval.core.errors import ThresholdError

    if small := comparison.too_small():
        few = "too few samples or groups for a significant difference"
        click.echo(f"! --fail-if-worse cannot fail for {', '.join(small)}: {few}", err=True)
    if worse := comparison.worse_than_baseline():
        raise ThresholdError("\n".join(worse))
