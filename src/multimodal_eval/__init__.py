"""Exact, offline scores with intervals for the output of multimodal models."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison, compare_runs
    from multimodal_eval.analysis.composite import Sensitivity, sensitivity
    from multimodal_eval.analysis.judge_ratings import RatingTable, rate
    from multimodal_eval.analysis.power import PowerTable, power
    from multimodal_eval.analysis.suite import SuiteTable, suite
    from multimodal_eval.analysis.why import Why
    from multimodal_eval.core.batch import Batch
    from multimodal_eval.core.conversation import Message, MessagePart
    from multimodal_eval.core.errors import MultimodalEvalError, RetryableError
    from multimodal_eval.core.judge_config import Criterion, JudgeConfig, JudgeModel, JudgeUntil
    from multimodal_eval.core.metric import Metric, Scorer, Signature
    from multimodal_eval.core.options import Option, Options
    from multimodal_eval.core.registry import metric, register
    from multimodal_eval.core.rules import rule
    from multimodal_eval.core.sample import Box, Sample
    from multimodal_eval.core.score import Estimate, Rows, Score, Scores
    from multimodal_eval.data.runs.run import Run, load_run
    from multimodal_eval.data.runs.sample_rows import SampleRow, SampleRows
    from multimodal_eval.evaluation.metrics_registry import evaluate_sample
    from multimodal_eval.evaluation.rules._readings import Reading
    from multimodal_eval.generate.protocol import Answer, Generator, Media, Request, Text, Turn
    from multimodal_eval.generate.registry import batched
    from multimodal_eval.interop.accumulator import Accumulator, ScoreValue, compute
    from multimodal_eval.interop.callbacks.log_scores import log_scores
    from multimodal_eval.interop.coco import CaptionScores, caption_scores
    from multimodal_eval.interop.export.registry import export
    from multimodal_eval.interop.list_scores import AnswerScores, LabelScores, answer_scores, label_scores
    from multimodal_eval.run.calibrate import CalibratedRun, calibrate
    from multimodal_eval.run.crosswalk import crosswalk
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.evaluate import evaluate, resume
    from multimodal_eval.run.generated import GeneratedRun, generate
    from multimodal_eval.run.import_log import import_log, import_logs
    from multimodal_eval.run.judged_pairs import compare_by_judge, rank_by_judge
    from multimodal_eval.run.label_plan import LabelPlan, plan_labels
    from multimodal_eval.run.rescore import rescore
    from multimodal_eval.run.why import why

# The module of each public name; imported on first use, so that `import multimodal_eval` is fast.
_MODULES = {
    "Accumulator": "interop.accumulator",
    "Answer": "generate.protocol",
    "AnswerScores": "interop.list_scores",
    "Batch": "core.batch",
    "Box": "core.sample",
    "CalibratedRun": "run.calibrate",
    "CaptionScores": "interop.coco",
    "Criterion": "core.judge_config",
    "Engine": "run.engine.base",
    "Estimate": "core.score",
    "GeneratedRun": "run.generated",
    "Generator": "generate.protocol",
    "JudgeConfig": "core.judge_config",
    "JudgeModel": "core.judge_config",
    "JudgeUntil": "core.judge_config",
    "LabelPlan": "run.label_plan",
    "LabelScores": "interop.list_scores",
    "Media": "generate.protocol",
    "Message": "core.conversation",
    "MessagePart": "core.conversation",
    "Metric": "core.metric",
    "MultimodalEvalError": "core.errors",
    "Option": "core.options",
    "Options": "core.options",
    "PowerTable": "analysis.power",
    "RatingTable": "analysis.judge_ratings",
    "Reading": "evaluation.rules._readings",
    "Request": "generate.protocol",
    "RetryableError": "core.errors",
    "Rows": "core.score",
    "Run": "data.runs.run",
    "RunComparison": "analysis.compare",
    "Sample": "core.sample",
    "SampleRow": "data.runs.sample_rows",
    "SampleRows": "data.runs.sample_rows",
    "Score": "core.score",
    "ScoreValue": "interop.accumulator",
    "Scorer": "core.metric",
    "Scores": "core.score",
    "Sensitivity": "analysis.composite",
    "Signature": "core.metric",
    "SuiteTable": "analysis.suite",
    "Text": "generate.protocol",
    "Turn": "generate.protocol",
    "Why": "analysis.why",
    "answer_scores": "interop.list_scores",
    "calibrate": "run.calibrate",
    "caption_scores": "interop.coco",
    "compare_by_judge": "run.judged_pairs",
    "compare_runs": "analysis.compare",
    "compute": "interop.accumulator",
    "crosswalk": "run.crosswalk",
    "evaluate": "run.evaluate",
    "evaluate_sample": "evaluation.metrics_registry",
    "batched": "generate.registry",
    "export": "interop.export.registry",
    "generate": "run.generated",
    "import_log": "run.import_log",
    "import_logs": "run.import_log",
    "label_scores": "interop.list_scores",
    "load_run": "data.runs.run",
    "log_scores": "interop.callbacks.log_scores",
    "metric": "core.registry",
    "plan_labels": "run.label_plan",
    "power": "analysis.power",
    "rank_by_judge": "run.judged_pairs",
    "rate": "analysis.judge_ratings",
    "register": "core.registry",
    "rescore": "run.rescore",
    "resume": "run.evaluate",
    "rule": "core.rules",
    "sensitivity": "analysis.composite",
    "suite": "analysis.suite",
    "why": "run.why",
}

__version__ = "0.2.0"

__all__ = [
    "Accumulator",
    "Answer",
    "AnswerScores",
    "Batch",
    "Box",
    "CalibratedRun",
    "CaptionScores",
    "Criterion",
    "Engine",
    "Estimate",
    "GeneratedRun",
    "Generator",
    "JudgeConfig",
    "JudgeModel",
    "JudgeUntil",
    "LabelPlan",
    "LabelScores",
    "Media",
    "Message",
    "MessagePart",
    "Metric",
    "MultimodalEvalError",
    "Option",
    "Options",
    "PowerTable",
    "RatingTable",
    "Reading",
    "Request",
    "RetryableError",
    "Rows",
    "Run",
    "RunComparison",
    "Sample",
    "SampleRow",
    "SampleRows",
    "Score",
    "ScoreValue",
    "Scorer",
    "Scores",
    "Sensitivity",
    "Signature",
    "SuiteTable",
    "Text",
    "Turn",
    "Why",
    "__version__",
    "answer_scores",
    "batched",
    "calibrate",
    "caption_scores",
    "compare_by_judge",
    "compare_runs",
    "compute",
    "crosswalk",
    "evaluate",
    "evaluate_sample",
    "export",
    "generate",
    "import_log",
    "import_logs",
    "label_scores",
    "load_run",
    "log_scores",
    "metric",
    "plan_labels",
    "power",
    "rank_by_judge",
    "rate",
    "register",
    "rescore",
    "resume",
    "rule",
    "sensitivity",
    "suite",
    "why",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'multimodal_eval' has no attribute {name!r}")
    value = getattr(import_module(f"multimodal_eval.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """This package: `generate` is the function, although a package `multimodal_eval.generate` exists as well."""

    @property
    def generate(self) -> Any:
        """The function; `from multimodal_eval.generate.protocol import …` finds the package."""
        return globals().get("generate") or __getattr__("generate")

    @generate.setter
    def generate(self, value: object) -> None:
        if not isinstance(value, ModuleType):  # the import system sets the package as an attribute
            globals()["generate"] = value


sys.modules[__name__].__class__ = _Package
