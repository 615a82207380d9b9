"""`mmeval judge`: commands about judges and human labels."""

from __future__ import annotations

import click

from multimodal_eval.cli.judge_calibrate import calibrate
from multimodal_eval.cli.judge_pairs import pairs


@click.group()
def judge() -> None:
    """Compare runs by a judge, rank them, and choose the samples that humans should label."""


judge.add_command(pairs)
judge.add_command(calibrate)
