"""The options of commands that start or continue a run: `score`, `run` and `generate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.options import (
    Command,
    MetricOption,
    RunLocation,
    annotators_option,
    empty_option,
    human_option,
    media_root_option,
    overwrite_option,
    plugin_option,
    questions_option,
)

Decorator = Callable[[Any], Any]

# Parameter -> its option.
_OPTIONS: dict[str, Decorator] = {
    "task": click.option(
        "--task",
        help="The task: captioning, vqa, hallucination, contextual_relevance, classification, or one from --config.",
    ),
    "metrics": click.option("--metrics", help="The metrics, separated by commas. The default is those of the task."),
    "headline": click.option(
        "--headline", help="The metric that leads. The default is the composite, cider_d for coco, or the first metric."
    ),
    "output": click.option(
        "-o",
        "--output",
        type=RunLocation(),
        help="Store the run in this folder or at this URL. The default is runs/<time>-<task>.",
    ),
    "config": click.option(
        "--config", type=click.Path(path_type=Path), help="Read tasks, weights and settings from this YAML file."
    ),
    "resumed": click.option("--resume", "resumed", type=RunLocation(), help="Continue the run in this folder."),
    "options": click.option(
        "--option",
        "options",
        type=MetricOption(),
        multiple=True,
        help="Set an option of a metric, such as meteor.variant=fmean.",
    ),
    "labels": click.option(
        "--labels", type=click.Path(path_type=Path), help="Read the labels of a classification from this YAML file."
    ),
    "unknown_labels": click.option(
        "--unknown-labels",
        type=click.Choice(["error", "wrong"]),
        help="Refuse predicted labels that are not in --labels, or count them as wrong.  [default: error]",
    ),
    "questions": questions_option,
    "by": click.option("--by", multiple=True, help="Also score each value of this column separately."),
    "human": human_option,
    "seed": click.option("--seed", type=int, help="Set the seed of metrics that draw random numbers."),
    "image_root": click.option(
        "--image-root",
        type=click.Path(path_type=Path),
        help="Look for images in this folder. The default is the folder of DATA.",
    ),
    "allow_outside_images": click.option(
        "--allow-outside-images", is_flag=True, help="Open images outside that folder."
    ),
    "allow_image_urls": click.option(
        "--allow-image-urls", is_flag=True, help="Fetch images from http and https addresses."
    ),
    "skip_lint": click.option(
        "--no-lint", "skip_lint", is_flag=True, help="Do not check the answers now. `mmeval lint` does it later."
    ),
    "fetching": click.option("--fetch", "fetching", is_flag=True, help="First fetch missing resources and models."),
    "skip_unavailable": click.option(
        "--skip-unavailable", is_flag=True, help="Leave metrics that cannot run on this machine unscored."
    ),
    "accept_open": click.option(
        "--accept-open", is_flag=True, help="With --resume, store samples that fail again as errors."
    ),
    "overwrite": overwrite_option,
    "allow_empty": empty_option,
    "plugins": plugin_option,
    "media_roots": media_root_option,
    "annotators": annotators_option,
}
_OF_METRICS = (
    *("metrics", "headline", "options", "labels", "unknown_labels", "by", "human", "skip_lint", "fetching"),
    *("skip_unavailable", "allow_empty"),
)


def run_options(command: Command) -> Command:
    """The options of a run: what it reads and scores, and its folder."""
    return _with_options(command, tuple(_OPTIONS))


def answer_options(command: Command) -> Command:
    """The options of a run that stops after the answers."""
    return _with_options(command, tuple(name for name in _OPTIONS if name not in _OF_METRICS))


def _with_options(command: Command, names: tuple[str, ...]) -> Command:
    for name in reversed(names):
        command = _OPTIONS[name](command)
    return command
