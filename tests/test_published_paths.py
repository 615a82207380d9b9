"""Import paths in guides and specifications, which stay valid when modules move."""

from __future__ import annotations

from importlib import import_module

import pytest

from multimodal_eval.evaluation.metrics_registry import list_available

PATHS = {
    "multimodal_eval": "Sample evaluate evaluate_sample load_run metric register resume rescore Engine RetryableError",
    "multimodal_eval.evaluation.metrics_registry": "get_metric list_available evaluate_sample _METRICS TASK_METRICS",
    "multimodal_eval.evaluation.composite_score": "compute_composite normalize_cider",
    "multimodal_eval.evaluation.tasks_config": "TASKS",
    "multimodal_eval.media.images": "load_image_any",
    "multimodal_eval.text.answers": "clean_and_truncate_caption",
    "multimodal_eval.clarity.eval": "compute_clarity_f1 compute_evasion_f1_strict compute_evasion_f1_multiannotator "
    "majority_vote_gold evaluate_all",
    "multimodal_eval.clarity.labels": "normalize_label EVASION_LABELS CLARITY_LABELS",
    "multimodal_eval.clarity.early_stopping": "EarlyStopping monitored",
    "multimodal_eval.clarity.early_stopping_trainer": "trainer_compute_metrics trainer_early_stopping",
    "multimodal_eval.clarity.early_stopping_lightning": "lightning_early_stopping",
    "multimodal_eval.dialogue": "integral_score hidden_rule Dialogue Reply WEIGHTS generate_dialogues",
    "multimodal_eval.coco": "COCOEvalCap caption_scores",
}


def test_a_published_path_has_its_names():
    paths = [(module, name) for module, names in PATHS.items() for name in names.split()]
    assert [f"{module}.{name}" for module, name in paths if not hasattr(import_module(module), name)] == []


def test_every_metric_has_its_published_path():
    """`multimodal_eval.evaluation.cider` is the module in `evaluation/metrics`, loaded once."""
    for name in list_available():
        published = import_module(f"multimodal_eval.evaluation.{name}")
        assert published is import_module(f"multimodal_eval.evaluation.metrics.{name}"), name
        assert callable(getattr(published, f"compute_{name}", None)), name


def test_other_names_are_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"evaluation\.nosuch"):
        import_module("multimodal_eval.evaluation.nosuch")
