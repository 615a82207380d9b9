"""Samples as input of the compiled core, and the corpus that CIDEr and CIDEr-D share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from multimodal_eval._native import Captions
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.document_frequencies import DocumentFrequencies, coco_val2014, from_file
from multimodal_eval.text.tokenizers import check_tokenizer

# The type of a metric's option `df`.
FrequenciesName = Annotated[
    str, "the images whose frequencies weight n-grams: corpus (those of the run), coco-val2014, or a file"
]


def captions_of(samples: Sequence[Sample], tokenizer: str) -> Captions:
    """Tokenized answers and references for any caption metric.

    The metrics of a run share them: they are computed once per batch and tokenizer.
    """
    batch = Batch.of(samples)
    return batch.shared(
        ("captions", tokenizer), lambda: Captions(*texts_of(batch), check_tokenizer(tokenizer), with_ngrams=False)
    )


def texts_of(samples: Sequence[Sample]) -> tuple[Any, Any]:
    """The answers, and the lists of references, as the compiled core takes them: Arrow columns, or Python lists."""
    batch = Batch.of(samples)
    answers, references = batch.column("generated_answer"), batch.column("references")
    if answers is not None and references is not None and not has_other_references(batch):
        return answers, references
    return [sample.generated_answer or "" for sample in batch], [sample.reference_texts for sample in batch]


def has_other_references(batch: Batch) -> bool:
    """Whether some rows have a reference in another column than `references`."""
    return batch.column("expected_answer") is not None or batch.column("caption") is not None


def require_references(metric: str, references: Sequence[str]) -> None:
    """Raise `ConfigError` for an empty list, and for a string, which would count as a list of its letters."""
    if isinstance(references, str) or not references:
        got = repr(references) if isinstance(references, str) else "an empty list"
        raise ConfigError(f"{metric} needs a list of at least one reference. Got {got} instead.")


def one_caption(metric: str, candidate: str, references: Sequence[str], tokenizer: str) -> Captions:
    """One caption with its references, for metric functions that take strings."""
    require_references(metric, references)
    return Captions([candidate], [list(references)], check_tokenizer(tokenizer), with_ngrams=False)


def document_frequencies(
    samples: Iterable[Sample], *, tokenizer: str = "ptb", df: str = "corpus"
) -> DocumentFrequencies | None:
    """The run's table, with one image per sample that has references. None if `df` names another table."""
    if df != "corpus":
        named_frequencies(df, tokenizer)  # a table that cannot be used fails before anything is scored
        return None
    references = samples.column("references") if isinstance(samples, Batch) else None
    if isinstance(samples, Batch) and references is not None and not has_other_references(samples):
        return DocumentFrequencies.of_column(references, tokenizer)
    sets = (texts for sample in samples if (texts := sample.reference_texts))
    return DocumentFrequencies.of(sets, tokenizer)


def named_frequencies(df: str = "coco-val2014", tokenizer: str = "ptb") -> DocumentFrequencies:
    """The table that the option `df` names: the shipped table or a file."""
    if not isinstance(df, str):
        raise ConfigError(f"the option `df` must be 'corpus', 'coco-val2014' or a file. Got {df!r} instead.")
    table = coco_val2014() if df in ("corpus", "coco-val2014") else from_file(df)
    return table.fit_for(tokenizer)
