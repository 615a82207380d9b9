"""Early stopping in Lightning, under the name that the guide gives."""

from multimodal_eval.interop.early_stopping_lightning import lightning_early_stopping

__all__ = ["lightning_early_stopping"]
