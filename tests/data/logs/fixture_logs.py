"""The logs in `fixtures`, made by tools/make_logs with the harnesses themselves."""

from __future__ import annotations

from pathlib import Path

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
