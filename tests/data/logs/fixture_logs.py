"""The logs in `fixtures`, made by tests/data/logs/makers with the harnesses themselves."""

from __future__ import annotations

from pathlib import Path

import msgspec

from multimodal_eval import evaluate, resume
from multimodal_eval.core.records import LOG, ImportInfo, ReportedScore
from multimodal_eval.data.logs.recognised import log_format
from multimodal_eval.data.readers.files import file_set
from multimodal_eval.data.runs.run import Run
from multimodal_eval.run.import_log import recorded_settings
from tests.edited_runs import rewrite_json

FIXTURES = Path(__file__).parent / "fixtures"
LM_EVAL = FIXTURES / "lm-eval"  # lm-eval 0.4.13
LMMS_EVAL = FIXTURES / "lmms-eval"  # lmms-eval 0.7.3
EVALSCOPE = FIXTURES / "evalscope"  # evalscope 1.14.1
HELM = FIXTURES / "helm"  # crfm-helm 0.5.16
LIGHTEVAL = FIXTURES / "lighteval"  # lighteval 0.13.0
OPENAI_BATCH = FIXTURES / "openai-batch"  # by hand
VLMEVALKIT = FIXTURES / "vlmevalkit"  # ms-vlmeval 0.0.20


def log_of(folder: Path, task: str) -> Path:
    """The samples of a task."""
    (path,) = (path for path in folder.glob("*.jsonl") if f"samples_{task}" in path.name)
    return path


def pooled_run(folder: Path, output: Path) -> Run:
    """All logs of a folder as one run, which imports were until 0.2: such runs can still be read."""
    files = file_set(folder).files
    logs = [(file.prefix.removesuffix("/"), log_format(str(file.log)).info(file.path)) for file in files]
    scores = {score.column: score for _, log in logs for score in reversed(log.scores)}
    reported = [
        ReportedScore(metric=score.column, value=score.own_mean, log=name)
        for name, log in logs
        for score in log.scores
        if score.own_mean is not None
    ]
    info = ImportInfo(
        harness=logs[0][1].harness,
        task=", ".join(str(log.task) for _, log in logs),
        files=[str(file.path) for file in files],
        reported=reported,
    )
    evaluate(folder, **recorded_settings([*scores.values()]), by=[LOG], output=output, progress=False)
    rewrite_json(output / "run.json", lambda content: content.update(imported=msgspec.to_builtins(info)))
    (output / "lint.json").unlink()
    return resume(output, progress=False)
