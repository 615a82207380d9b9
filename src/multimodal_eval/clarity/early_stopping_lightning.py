"""Early stopping in Lightning, at the import path named in the guide."""

from multimodal_eval.interop.early_stopping import lightning_early_stopping

__all__ = ["lightning_early_stopping"]
