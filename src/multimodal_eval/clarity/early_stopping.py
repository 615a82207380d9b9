"""Early stopping by the CLARITY score, at the import path named in the guide."""

from multimodal_eval.interop.early_stopping import MONITORED, EarlyStopping, monitored

__all__ = ["MONITORED", "EarlyStopping", "monitored"]
