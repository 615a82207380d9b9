"""A drop-in for pycocoevalcap, at the import path named in docs/coco.md."""

from multimodal_eval.interop.coco import CaptionScores, COCOEvalCap, caption_scores

__all__ = ["COCOEvalCap", "CaptionScores", "caption_scores"]
