"""Similarity of meaning, by the vectors of a sentence encoder.

Semantic similarity: does the answer mean the same as a reference?

With u and v a sentence encoder's unit vectors of the answer and of a reference:

    semantic_similarity = max over references of (u . v + 1) / 2

Reference:
    Reimers and Gurevych (2019). Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP.

Contextual relevance: is the answer about what was asked?

With u the unit vector of the answer and v that of its context (prompt, question and expected answer, joined by spaces):

    contextual_relevance = (u . v + 1) / 2

The context contains the expected answer, which leaks: a right answer is close to its context for that reason alone.
With the option `context: question_only`, the context is the question alone.
"""

from __future__ import annotations

from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.encoder_metric import ANSWER, EncoderMetric

__all__ = ["compute_contextual_relevance", "compute_semantic_similarity"]


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


class ContextualRelevance(EncoderMetric):
    """Cosine of sentence embeddings between the answer and its prompt, question and expected answer, (cos + 1) / 2."""

    name = "contextual_relevance"
    version = "1"
    options = Options(
        EncoderMetric.options,
        context=Option(
            str,
            "full",
            choices=("full", "question_only"),
            help="prompt, question and expected answer, or the question alone",
        ),
    )
    missing_texts = "no prompt, question or expected answer"

    def texts(self, sample: Sample) -> list[str]:
        """The context, as one text."""
        full = (sample.prompt, sample.question, sample.expected_answer)
        context = full if self.options["context"] == "full" else (sample.question,)
        return [" ".join(text.strip() for text in context if text and text.strip())]


compute_contextual_relevance = ContextualRelevance()
register(compute_contextual_relevance)
