"""The evaluation script of a challenge on EvalAI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from multimodal_eval.contests.shared_task.judging import Refused, judged_or_refused, lines_of
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.visible import visible

__all__ = ["SPLIT", "SubmissionRefusedError", "evaluate"]

SPLIT = "test_split"


class SubmissionRefusedError(MultimodalEvalError):
    """A submission that was not scored. The message is for the participant."""


def evaluate(
    test_annotation_file: str, user_submission_file: str, phase_codename: str, *, program: Path, **_: Any
) -> dict[str, Any]:
    """The scores in the form that EvalAI expects; a mistake in the submission raises SubmissionRefusedError.

    `test_annotation_file` is the reference file of the phase, so phases differ only in it. `program` is the folder of
    the script.
    """
    with judged_or_refused(Path(test_annotation_file), Path(user_submission_file), program) as outcome:
        text = visible("\n".join(lines_of(outcome)))
        sys.stdout.write(f"{text}\n")
        if isinstance(outcome, Refused):
            raise SubmissionRefusedError(text)
        scores = {column.title: outcome.scores.get(column.key) for column in outcome.rules.columns}
        result = {SPLIT: {title: value for title, value in scores.items() if value is not None}}
        return {"result": [result], "submission_result": {"phase": phase_codename, **result[SPLIT]}}
