"""A drop-in for pycocoevalcap, at the import path named in the README."""

from multimodal_eval.interop.coco import CaptionScores, COCOEvalCap, caption_scores

__all__ = ["COCOEvalCap", "CaptionScores", "caption_scores"]
