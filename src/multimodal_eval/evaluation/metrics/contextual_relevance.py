"""Contextual relevance: does the answer speak of what was asked?

With u the unit vector of the answer and v that of its context (prompt, question and expected answer, joined by spaces):

    contextual_relevance = (u . v + 1) / 2

The expected answer inside the context leaks: a right answer is near to its context for that reason alone. The option
`context: question_only` leaves it, and the prompt, out.
"""

from __future__ import annotations

from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.encoder_metric import EncoderMetric


class ContextualRelevance(EncoderMetric):
    """Cosine of sentence embeddings between the answer and its prompt, question and expected answer, (cos + 1) / 2."""

    name = "contextual_relevance"
    version = "1"
    summary = __doc__ or ""
    options = Options(
        EncoderMetric.options,
        context=Option(
            str,
            "full",
            choices=("full", "question_only"),
            help="prompt, question and expected answer, or the question alone",
        ),
    )
    lacking = "no prompt, question or expected answer"

    def texts(self, sample: Sample) -> list[str]:
        """One text: the context."""
        full = (sample.prompt, sample.question, sample.expected_answer)
        chosen = full if self.options["context"] == "full" else (sample.question,)
        return [" ".join(text.strip() for text in chosen if text and text.strip())]


compute_contextual_relevance = ContextualRelevance()
register(compute_contextual_relevance)
