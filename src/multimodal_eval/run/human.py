"""Human labels in a run: refused before anything is asked, and never shown to a model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from multimodal_eval.analysis.human_labels import column_of, human_columns, labels_of
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.plan import Plan

__all__ = ["notes_on_labels", "refuse_bad_labels"]

# `metadata`, but not `metadata.key`, `metadata["key"]` or `metadata.get("key")`
_ALL_METADATA = re.compile(r"""\bmetadata\b(?!\s*\.\s*(?!items\b|values\b|keys\b|get\s*\(\s*[^'"\s])\w|\s*\[\s*['"])""")
_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)  # what a template computes


def refuse_bad_labels(plan: Plan, folder: RunFolder, info: RunInfo) -> None:
    """Refuse labels that are not on the scale of their metric, columns without labels, and prompts that show labels."""
    if not plan.config.human:
        return
    _refuse_shown_labels(plan.config)
    for metric in plan.metrics:
        labels_of(folder, info, metric.name)


def _refuse_shown_labels(config: RunConfig) -> None:
    """Refuse templates that write a column of human labels, or all metadata, into a prompt."""
    columns = human_columns(config)
    for what, text in _templates(config):
        code = " ".join(_CODE.findall(text))
        for column in sorted(columns):
            if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", code):
                raise ConfigError(
                    f"the template of {what} names {column!r}, a column of human labels. No model may see it"
                )
        if _ALL_METADATA.search(code):
            raise ConfigError(
                f"the template of {what} writes all metadata, among them the human labels in "
                f"{', '.join(sorted(columns))}. Name the columns that it needs"
            )
    for name, judge in config.judges.items():
        if judge.baseline in columns:
            raise ConfigError(f"the judge {name!r} shows {judge.baseline!r}, which is a column of human labels")


def _templates(config: RunConfig) -> Iterator[tuple[str, str]]:
    if config.generation is not None and config.generation.template is not None:
        yield "the prompt", config.generation.template
    for name, judge in config.judges.items():
        if judge.template is not None:
            yield f"the judge {name!r}", judge.template


def notes_on_labels(info: RunInfo) -> list[str]:
    """What the results say about labels that were there before the answers."""
    if info.generation is None or info.rescored_from is not None:
        return []
    columns = dict.fromkeys(column_of(info.config, name) for name in info.metrics)
    return [
        f"the human labels in {column!r} were in the input, before the answers were generated: "
        "they must be labels of these answers"
        for column in columns
        if column is not None
    ]
