"""The examples of the published guides, run as written."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Dict, List  # noqa: UP035 - as in the guide

import pytest

import multimodal_eval
from multimodal_eval import Sample
from multimodal_eval.evaluation import metrics_registry
from multimodal_eval.evaluation.composite_score import compute_composite, normalize_cider

REGISTRY = """
# Registered metrics
_METRICS: Dict[str, Callable] = {
    "clip_score": compute_clip_score,
    "hallucination_metric": compute_hallucination_metric,
    "contextual_relevance": compute_contextual_relevance,
    "semantic_similarity": compute_semantic_similarity,
    "cider": compute_cider,
}

# Metrics per task
TASK_METRICS: Dict[str, List[str]] = {
    "captioning": ["cider", "clip_score", "semantic_similarity"],
    "hallucination": ["hallucination_metric", "semantic_similarity"],
    "vqa": ["clip_score", "semantic_similarity", "contextual_relevance"],
    "contextual_relevance": ["clip_score", "cider", "semantic_similarity"],
}
"""

STEP_1 = '''
def compute_my_metric(sample: Sample) -> float:
    """
    Example custom metric:
    Compare the length of generated vs expected answer.
    """
    if not sample.generated_answer or not sample.expected_answer:
        return 0.0
    return min(len(sample.generated_answer), len(sample.expected_answer)) / max(
        len(sample.generated_answer), len(sample.expected_answer)
    )
'''

STEP_2 = """
from multimodal_eval.evaluation.my_metric import compute_my_metric

_METRICS = {
    **_METRICS,
    "my_metric": compute_my_metric,
}

TASK_METRICS["captioning"].append("my_metric")
"""

STEP_3 = """
from multimodal_eval.evaluation.metrics_registry import evaluate_sample

result = evaluate_sample(sample, task_type="captioning")
print(result["my_metric"])
"""

NORMALISATION = """
def normalize_cider(cider: float, max_cider: float = 1.0) -> float:
    if not isinstance(cider, (float, int)) or cider < 0:
        return 0.0
    return min(cider / max_cider, 1.0)
"""

SAMPLE = 'Sample(id="1", generated_answer="a red dog", expected_answer="a red dog runs")'


def test_the_registry_matches_the_guide():
    def compute(name):
        return getattr(importlib.import_module(f"multimodal_eval.evaluation.{name}"), f"compute_{name}")

    names = ["clip_score", "hallucination_metric", "contextual_relevance", "semantic_similarity", "cider"]
    space: dict[str, Any] = {f"compute_{name}": compute(name) for name in names}
    space |= {"Dict": Dict, "List": List, "Callable": Callable}  # noqa: UP006
    exec(REGISTRY, space)
    for task, metrics in space["TASK_METRICS"].items():  # ours has more tasks
        assert metrics_registry.TASK_METRICS[task] == metrics
    for name, function in space["_METRICS"].items():
        assert metrics_registry.get_metric(name) is function


def test_a_metric_added_inside_a_copy_of_the_package(tmp_path):
    package = Path(multimodal_eval.__file__).parent
    copy = tmp_path / "multimodal_eval"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    native = importlib.util.find_spec("multimodal_eval._native")
    assert native is not None
    assert native.origin is not None
    shutil.copy(native.origin, copy)
    (copy / "evaluation" / "my_metric.py").write_text("from multimodal_eval import Sample\n" + STEP_1)
    registry = copy / "evaluation" / "metrics_registry.py"
    registry.write_text(registry.read_text() + STEP_2)
    # An editable install hooks the import system; the copy must take precedence.
    program = f"""
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path.insert(0, {str(tmp_path)!r})
import multimodal_eval
assert multimodal_eval.__file__.startswith({str(tmp_path)!r}), multimodal_eval.__file__
from multimodal_eval import Sample
sample = {SAMPLE}
{STEP_3}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 9 / 14


def test_the_same_without_a_copy(capsys):
    space: dict[str, Any] = {"Sample": Sample}
    exec(STEP_1, space)
    registry = vars(metrics_registry)
    registry["_METRICS"] = {**registry["_METRICS"], "my_metric": space["compute_my_metric"]}
    registry["TASK_METRICS"]["captioning"].append("my_metric")
    exec(STEP_3, {"sample": eval(SAMPLE, {"Sample": Sample})})
    assert float(capsys.readouterr().out) == 9 / 14


@pytest.mark.parametrize("cider", [0.0, 0.3, 1, 7.5, -2, "x", None])
@pytest.mark.parametrize("maximum", [1.0, 10.0])
def test_normalisation_matches_the_guide(cider, maximum):
    space: dict[str, Any] = {}
    exec(NORMALISATION, space)
    assert normalize_cider(cider, maximum) == space["normalize_cider"](cider, maximum)


def test_the_worked_composite():
    metrics = {"clip_score": 0.72, "semantic_similarity": 0.81, "cider": 0.67}
    assert compute_composite(metrics) == 0.7525
    assert f"{compute_composite(metrics):.2f}" == "0.75"
