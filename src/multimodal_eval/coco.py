"""Drop-in for pycocoevalcap, under the name that README gives."""

from multimodal_eval.interop.coco import CaptionScores, COCOEvalCap, caption_scores

__all__ = ["COCOEvalCap", "CaptionScores", "caption_scores"]
