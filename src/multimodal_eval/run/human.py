"""Human labels in a run: refused before anything is asked, and never shown to a model."""

from __future__ import annotations

import re

from multimodal_eval.analysis.human_labels import human_columns, labels_of
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.plan import Plan

__all__ = ["refuse_bad_labels"]

# `metadata`, but not `metadata.key` or `metadata["key"]`. Templates call no functions.
_ALL_METADATA = re.compile(r"""\bmetadata\b(?!\s*\.\s*\w|\s*\[\s*['"])""")
_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)  # what a template computes


def refuse_bad_labels(plan: Plan, folder: RunFolder, info: RunInfo) -> None:
    """Refuse labels that are not on the scale of their metric, columns without labels, and prompts that show labels."""
    if not plan.config.human:
        return
    _refuse_shown_labels(plan.config)
    for metric in plan.metrics:
        labels_of(folder, info, metric.name)


def _refuse_shown_labels(config: RunConfig) -> None:
    """Refuse a template that writes a column of human labels, or all metadata, into a prompt.

    Judges see no metadata but the answers that are compared.
    """
    columns = human_columns(config)
    template = None if config.generation is None else config.generation.template
    code = " ".join(_CODE.findall(template or ""))
    for column in sorted(columns):
        if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", code):
            raise ConfigError(f"the prompt names {column!r}, a column of human labels. No model may see it")
    if _ALL_METADATA.search(code):
        labels = ", ".join(sorted(columns))
        raise ConfigError(f"the prompt writes all metadata, also the human labels ({labels}). Name what it needs")
    for name, judge in config.judges.items():
        if judge.baseline in columns:
            raise ConfigError(f"the judge {name!r} shows {judge.baseline!r}, which is a column of human labels")
