"""A run whose model was asked and gave no answer at all: what happened, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.analysis.generation import generation_summary
from multimodal_eval.run.generation.answer_parts import resuming

if TYPE_CHECKING:
    from multimodal_eval.core.records import RunInfo
    from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["failed_answers"]

# status of most samples -> what to do about it
_ADVICE = {
    "refused": "Change the prompt (--prompt, --system), or choose another model.",
    "filtered": "Change the settings of the endpoint's content filter, or choose another endpoint.",
    "truncated": "Raise --max-tokens, or score what is there: --accept-truncated.",
    "empty": "If the model reasons first, raise --max-tokens. A Python function must return text.",
    "tool_call": "Choose a model without tools of its own, or switch them off with --extra.",
    "malformed": "Is it the right provider for this address? Check --model and --base-url.",
    "rejected": "Look at a request: --show-request ID.",
    "unreadable": "Check the paths of the media; relative ones start at --image-root.",
    "raised": "The exception is the model's own: call it for one sample. A function of a list of requests needs "
    "@batched(SIZE).",
    "unanswered": "Try again when the endpoint works: start a new run.",
}


def failed_answers(folder: RunFolder, info: RunInfo) -> list[str] | None:
    """What the model did instead of answering, and what to do; None if it has answered, or there is no model."""
    generation = info.generation
    if generation is None or not generation.statuses or generation.statuses.get("ok"):
        return None
    return list(_lines(folder, info))


def _lines(folder: RunFolder, info: RunInfo) -> Iterator[str]:
    summary = generation_summary(folder, info)
    assert summary is not None
    yield f"none of the {summary.samples:,} samples has an answer."
    yield from summary.outcome_lines
    if advice := _ADVICE.get(summary.statuses[0].status):
        yield advice
    if folder.is_kept:
        yield f"The status and the reason of every sample are in {folder.label}/answers. Correct it in a new run."
        yield f"To finish this run without scores: {resuming(folder, info)} --allow-empty"
