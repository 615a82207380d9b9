"""Early stopping by CLARITY's score, under the name that its guide gives."""

from multimodal_eval.interop.early_stopping import MONITORED, EarlyStopping, monitored

__all__ = ["MONITORED", "EarlyStopping", "monitored"]
