"""`mmeval meta`."""

from __future__ import annotations

from typing import Any

import click

from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import (
    RESULT_FORMATS,
    MetricOption,
    RunLocation,
    data_format_option,
    input_options,
    options_by_metric,
    plugin_option,
    progress_bar,
)

# The same as in stats.correlation, which imports NumPy; a test compares the two.
COEFFICIENTS = ("tau_b", "tau_c", "spearman", "pearson", "acc_eq")


@click.command(cls=LayeredCommand)
@click.argument("data", nargs=-1, required=True, type=RunLocation())
@click.option("--human", help="Name the columns of human scores, separated by commas: one per annotator.")
@click.option("--metrics", help="Score the samples with these metrics: bleu,bleu.bleu_1,cider_d.")
@click.option("--scores", help="Name the columns with metric values that are already computed.")
@click.option("--lower", help="Name the columns of --scores for which lower is better.")
@click.option(
    "--format-in",
    type=click.Choice(["flickr8k-expert", "flickr8k-cf"]),
    help="Read these judgments of a Flickr8k folder. The default is those in the folder.",
)
@click.option("--coefficient", type=click.Choice(COEFFICIENTS), help="Compare the metrics by this coefficient.")
@click.option(
    "--option",
    "options",
    type=MetricOption(),
    multiple=True,
    help="Set an option of a metric, such as meteor.variant=fmean.",
)
@plugin_option
@data_format_option(RESULT_FORMATS)
@input_options
def meta(data: Any, format_: str, **params: Any) -> None:
    """Measure how well metrics agree with the human judgments in DATA.

    DATA is a published set of judgments of captions (ratings, pairs, foils, labels of words, or battles of systems), a
    file with a column of human scores (--human), a run folder whose samples have one (for a judge, this also shows
    kappa and a calibration curve; --human may then be a file of labels), or a folder with the judgments of
    Flickr8k (ExpertAnnotations.txt or CrowdFlowerAnnotations.txt, and Flickr8k.token.txt; plain or .gz).

    Several DATA, or a folder with sets, give one table of metrics by sets.
    """
    from multimodal_eval.data.readers import limits
    from multimodal_eval.run.meta import Request, is_suite, meta_evaluate, meta_suite

    request = Request(
        **{key: _names(params[key]) for key in ("human", "metrics", "scores", "lower")},
        format_in=params["format_in"],
        coefficient=params["coefficient"],
        options=options_by_metric(params["options"]),
        plugins=params["plugins"],
        map=dict(params["mapping"]) or None,
        limit=params["limit"],
        allow_partial=params["allow_partial"],
        format=params["log_format"],
    )
    with limits.using(params["max_expansion"], params["max_record_mb"]), progress_bar() as progress:
        several = is_suite(data)
        results: Any = (meta_suite if several else meta_evaluate)(
            data if several else data[0], request, progress=progress
        )
    print_result(results, format_, results.to_dict)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
