"""Semantic similarity: does the answer mean the same as a reference?

With u and v a sentence encoder's unit vectors of the answer and of a reference:

    semantic_similarity = max over references of (u . v + 1) / 2

Reference:
    Reimers and Gurevych (2019). Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP.
"""

from __future__ import annotations

from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.encoder_metric import ANSWER, EncoderMetric

__all__ = ["compute_semantic_similarity"]


class SemanticSimilarity(EncoderMetric):
    """Cosine of sentence embeddings between the answer and the most similar reference, (cos + 1) / 2."""

    name = "semantic_similarity"
    version = "1"
    needs = (ANSWER, "references")
    missing_texts = "every reference is blank"

    def texts(self, sample: Sample) -> list[str]:
        """The references, including `expected_answer` and `caption`."""
        return sample.reference_texts


compute_semantic_similarity = SemanticSimilarity()
register(compute_semantic_similarity)
