"""Early stopping in the Hugging Face Trainer, at the import path named in the guide."""

from multimodal_eval.interop.early_stopping import trainer_compute_metrics, trainer_early_stopping

__all__ = ["trainer_compute_metrics", "trainer_early_stopping"]
