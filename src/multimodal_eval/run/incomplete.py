"""Refuse to finish a run in which samples have no result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from multimodal_eval.core.errors import OpenSamplesError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.runner import RunContext

UNSCORED = "UNSCORED"  # the code of a sample without a required score


@dataclass(frozen=True)
class OpenPart:
    """A part that was not committed, because some of its samples have no result yet."""

    samples: int
    reason: str


def refuse_open(run: RunContext, left: Sequence[OpenPart]) -> None:
    """Refuse to finish a run with open samples, whose failures say nothing about the samples themselves."""
    if left:
        count = sum(part.samples for part in left)
        plugins = "".join(f" --plugin {quote(plugin)}" for plugin in run.plan.config.plugins)
        raise OpenSamplesError(
            f"samples without a result so far: {count:,} ({left[0].reason}). All other scores are kept. "
            f"Score only these samples again with: mmeval score --resume {run.folder.label}{plugins}; "
            "with --accept-open, those that fail again are stored as errors"
        )


def refuse_incomplete(plan: Plan, folder: RunFolder, info: RunInfo) -> None:
    """Refuse a run in which a sample has no score for a metric that must score all samples."""
    problems = Problems()
    for name in plan.config.complete:
        for part in range(len(info.parts)):
            rows = folder.read_part("scores", part, ["id", name, f"{name}:reason"])
            for row in rows.filter(rows.column(name).is_null()).to_pylist():
                reason = row[f"{name}:reason"]
                problems.add(UNSCORED, f"{name} must score every sample: {reason}", id=row["id"], value=reason)
    problems.raise_if_any()
