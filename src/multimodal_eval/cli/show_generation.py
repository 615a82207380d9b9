"""What a model was asked and answered, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multimodal_eval.analysis.generation import GenerationSummary
    from multimodal_eval.core.records import RunInfo
    from multimodal_eval.data.runs.run_folder import RunFolder


def generation_lines(folder: RunFolder, info: RunInfo) -> Iterator[str]:
    """The counts of statuses with the first reasons of failures, then tokens, time, cost and cache hits."""
    from multimodal_eval.analysis.generation import generation_summary

    summary = generation_summary(folder, info)
    if summary is None:
        return
    yield from summary.outcome_lines
    if details := list(_details(summary, folder, info)):
        yield "; ".join(details)


def _details(summary: GenerationSummary, folder: RunFolder, info: RunInfo) -> Iterator[str]:
    from multimodal_eval.analysis.generation import busy_seconds
    from multimodal_eval.core.progress_line import duration
    from multimodal_eval.generate.prices import money
    from multimodal_eval.run.generation.metered import paid

    generation = summary.info
    if generation.input_tokens or generation.output_tokens:
        yield f"tokens: {generation.input_tokens:,} in, {generation.output_tokens:,} out"
    seconds = busy_seconds(folder, len(info.parts))
    asked = summary.samples - summary.cached
    if seconds >= 1 and asked:
        yield f"{duration(seconds)}, {asked / seconds:,.1f} requests per second"
    if summary.cached:
        yield f"{summary.cached:,} from the cache"
    config = info.config.generation
    if config is not None and config.price is not None:
        yield f"cost: {money(paid(folder, info, config.price), config.price.currency)}"
