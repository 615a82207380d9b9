"""Early stopping in Hugging Face's Trainer, under the name that the guide gives."""

from multimodal_eval.interop.early_stopping_trainer import trainer_compute_metrics, trainer_early_stopping

__all__ = ["trainer_compute_metrics", "trainer_early_stopping"]
