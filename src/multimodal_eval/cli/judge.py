"""`mmeval judge`: commands about judges and human labels."""

from __future__ import annotations

import click

from multimodal_eval.cli.judge_calibrate import calibrate
from multimodal_eval.cli.judge_pairs import pairs
from multimodal_eval.cli.judge_plan import plan
from multimodal_eval.cli.judge_rank import rank
from multimodal_eval.cli.judge_ratings import ratings


@click.group()
def judge() -> None:
    """Compare runs by a judge, rank them, and choose the samples that humans should label."""


judge.add_command(pairs)
judge.add_command(rank)
judge.add_command(ratings)
judge.add_command(calibrate)
judge.add_command(plan)
