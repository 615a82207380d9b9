"""The options of `mmeval view` for labelling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Params

if TYPE_CHECKING:
    from multimodal_eval.report.viewer.labelling.options import LabelOptions

_OPTIONS = (
    click.option(
        "--label",
        "label_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Collect human labels, and tags and notes of runs: append the labels to this JSONL file.",
    ),
    click.option(
        "--label-run",
        "label_runs",
        multiple=True,
        metavar="NAME",
        help="Label the answers of this run; can be repeated. Default: all finished runs in DIR, mixed.",
    ),
    click.option("--pairwise", is_flag=True, help="Label which of two runs has the better answer."),
    click.option("--metric", metavar="NAME", help="Label for this metric. Default: the judge, or else the headline."),
    click.option(
        "--scale",
        metavar="LABELS",
        help="Set the labels: 1-5, 0-100, yes,no or poor,fair,good. Default: the scale of the metric.",
    ),
    click.option("--question", metavar="TEXT", help="Set the instruction for annotators."),
    click.option(
        "--labels", type=click.IntRange(1), metavar="N", help="Draw N samples at random. Default: all, in random order."
    ),
    click.option(
        "--plan",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Label the samples of this plan of `mmeval judge plan`, and keep their human_weight.",
    ),
    click.option(
        "--seed", type=click.IntRange(0), help="Set the seed of the order and of left and right.  [default: 0]"
    ),
    click.option("--annotator", metavar="NAME", help="Label under this name. Default: everybody gives a name."),
    click.option("--hide-references", is_flag=True, help="Do not show references to annotators."),
    click.option("--only-labels", is_flag=True, help="Serve the pages for labelling alone: no runs, no scores."),
)
# The parameters of the options that need --label.
_NAMES = {
    "label_runs": "--label-run",
    "pairwise": "--pairwise",
    "metric": "--metric",
    "scale": "--scale",
    "question": "--question",
    "labels": "--labels",
    "plan": "--plan",
    "seed": "--seed",
    "annotator": "--annotator",
    "hide_references": "--hide-references",
    "only_labels": "--only-labels",
}


def label_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def labelling(params: Params) -> LabelOptions | None:
    """What is labelled; None without --label, which the other options need."""
    from multimodal_eval.report.viewer.labelling.options import LabelOptions

    if params["label_file"] is None:
        for name, option in _NAMES.items():
            if params[name] is not None and params[name] is not False and params[name] != ():
                raise click.UsageError(f"{option} needs --label FILE")
        return None
    return LabelOptions(
        file=params["label_file"],
        runs=params["label_runs"],
        pairwise=params["pairwise"],
        metric=params["metric"],
        scale=params["scale"],
        question=params["question"],
        labels=params["labels"],
        plan=params["plan"],
        seed=params["seed"] or 0,
        annotator=_annotator(params["annotator"]),
        references=not params["hide_references"],
        only=params["only_labels"],
    )


def _annotator(name: str | None) -> str | None:
    """The name, as the form of the viewer would accept it."""
    if name is None:
        return None
    stripped = name.strip()
    if not stripped or len(stripped) > 80 or not stripped.isprintable():
        raise click.UsageError("--annotator must be a name of at most 80 printable characters")
    return stripped
