"""Samples as the compiled core takes them, and the corpus that CIDEr and CIDEr-D share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from multimodal_eval._native import Captions
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.document_frequencies import DocumentFrequencies, coco_val2014, from_file
from multimodal_eval.text.tokenizers import check_tokenizer

# The type of a metric's option `df`.
FrequenciesName = Annotated[
    str, "the images whose n-grams weigh words: corpus (the run's own), coco-val2014, or a file of frequencies"
]


def captions_of(samples: Sequence[Sample], tokenizer: str, *, with_ngrams: bool = True) -> Captions:
    """Answers and references, tokenized; ready for any caption metric (without n-grams: for ROUGE-L alone)."""
    answers = [sample.generated_answer or "" for sample in samples]
    references = [sample.reference_texts for sample in samples]
    return Captions(answers, references, check_tokenizer(tokenizer), with_ngrams=with_ngrams)


def refuse_no_list(metric: str, references: Sequence[str]) -> None:
    """A text alone would be taken for a list of its letters."""
    if isinstance(references, str) or not references:
        got = repr(references) if isinstance(references, str) else "an empty list"
        raise ConfigError(f"{metric} needs a list of at least one reference. Got {got} instead.")


def one_caption(
    metric: str, candidate: str, references: Sequence[str], tokenizer: str, *, with_ngrams: bool = True
) -> Captions:
    """A single caption with its references, for a metric's function of plain texts."""
    refuse_no_list(metric, references)
    return Captions([candidate], [list(references)], check_tokenizer(tokenizer), with_ngrams=with_ngrams)


def document_frequencies(
    samples: Iterable[Sample], *, tokenizer: str = "ptb", df: str = "corpus"
) -> DocumentFrequencies | None:
    """The run's own table, one image a sample that has references; None where another table is asked for."""
    if df != "corpus":
        named_frequencies(df, tokenizer)  # a table that cannot be used is said before anything is scored
        return None
    sets = (texts for sample in samples if (texts := sample.reference_texts))
    return DocumentFrequencies.of(sets, tokenizer)


def named_frequencies(df: str = "coco-val2014", tokenizer: str = "ptb") -> DocumentFrequencies:
    """The table that the option `df` names: the shipped one, or a file."""
    if not isinstance(df, str):
        raise ConfigError(f"the option `df` must be 'corpus', 'coco-val2014' or a file. Got {df!r} instead.")
    table = coco_val2014() if df in ("corpus", "coco-val2014") else from_file(df)
    return table.fit_for(tokenizer)
