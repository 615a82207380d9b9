"""Whether the files of a run are intact."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING

from multimodal_eval.display.blocks import Block, Text
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.run.verify import Verification

__all__ = ["verification_blocks"]


def verification_blocks(outcome: Verification, *, deep: bool = False) -> Iterator[Block]:
    """The faults of a run and what to do, or how many files are intact; `deep`: the results were recomputed."""
    for fault in outcome.faults:
        yield Text(f"{outcome.run}/{fault.name} {fault.problem}")
    for note in outcome.notes:
        yield Text(f"{outcome.run}: {note}")
    if outcome.faults:
        yield Text(f"{outcome.run}: {counted(len(outcome.faults), 'fault')}. {_advice(outcome)}")
    elif outcome.files:
        results = ", and the results are those of its scores" if deep and outcome.state == "done" else ""
        yield Text(f"{outcome.run}: {counted(outcome.files, 'data file')} intact{results}")


def _advice(outcome: Verification) -> str:
    if any(fault.name == "run.json" for fault in outcome.faults):
        return "Restore run.json from a copy, or score the samples again"
    return f"Recompute with: mmeval score --resume {quote(outcome.run)}"
