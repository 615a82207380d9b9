"""Samples as input of the compiled core, and the corpus that CIDEr and CIDEr-D share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from multimodal_eval._native import Captions
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import default_state
from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.metric import Metric, configured, require_references
from multimodal_eval.core.options import QUIET, OptionValues
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.text.document_frequencies import DocumentFrequencies, coco_val2014, from_file
from multimodal_eval.text.image_keys import ImageGroups, check_image_key, has_other_references, image_keys
from multimodal_eval.text.tokenizers import check_tokenizer

# The type of a metric's option `df`.
FrequenciesName = Annotated[
    str, "the images whose frequencies weight n-grams: corpus (those of the run), coco-val2014, or a file"
]

# The type of CIDEr's option `n`.
LongestNgram = Annotated[Literal[1, 2, 3, 4], "the longest n-grams: the mean is over the orders 1 to n", QUIET]


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


def score_of_texts(
    metric: Metric,
    candidate: str,
    references: Sequence[str],
    options: OptionValues,
    corpus: DocumentFrequencies | None = None,
) -> Score:
    """The score of one text against its references, by a metric with these options."""
    require_references(metric.name, references)
    if not isinstance(candidate, str):
        raise ConfigError(f"{metric.name} needs a text. Got {shorten(candidate)} instead.")
    chosen = configured(metric, options)
    state = default_state(chosen) if corpus is None else corpus
    return chosen.open(state).score([Sample("", generated_answer=candidate, references=list(references))])[0]


def document_frequencies(
    samples: Iterable[Sample], *, tokenizer: str = "ptb", df: str = "corpus", image_key: str | None = None
) -> DocumentFrequencies | None:
    """The run's table. None if `df` names another table.

    Samples with the same `image`, or the same value in the column `image_key`, are one image, which has the references
    of all of them. A sample without a value is one image.
    """
    check_image_key(image_key)
    if df != "corpus":
        named_frequencies(df, tokenizer)  # a table that cannot be used fails before anything is scored
        return None
    rows = samples if isinstance(samples, Sequence) else list(samples)
    keys = image_keys(rows, image_key)
    first_rows = None if keys is None else keys.first_rows()
    references = rows.column("references") if isinstance(rows, Batch) else None
    if isinstance(rows, Batch) and references is not None and not has_other_references(rows):
        return DocumentFrequencies.of_column(references, tokenizer, first_rows)
    images = None if first_rows is None else first_rows.tolist()
    return DocumentFrequencies.of((sample.reference_texts for sample in rows), tokenizer, images)


def image_groups(df: str = "corpus", image_key: str | None = None) -> ImageGroups | None:
    """How the samples of one image are brought together; None if the table is not counted from the run."""
    return ImageGroups(image_key) if df == "corpus" else None


def named_frequencies(df: str = "coco-val2014", tokenizer: str = "ptb") -> DocumentFrequencies:
    """The table that the option `df` names: the shipped table or a file."""
    if not isinstance(df, str):
        raise ConfigError(f"the option `df` must be 'corpus', 'coco-val2014' or a file. Got {df!r} instead.")
    table = coco_val2014() if df in ("corpus", "coco-val2014") else from_file(df)
    return table.fit_for(tokenizer)
