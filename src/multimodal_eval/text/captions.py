"""Samples as input of the compiled core, the corpus that CIDEr and CIDEr-D share, and which samples share an image."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Hashable, Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from multimodal_eval._native import Captions, text_hash, text_hashes
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import default_state
from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.metric import Metric, configured, require_references
from multimodal_eval.core.options import QUIET, OptionValues
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.core.score import Score
from multimodal_eval.text.document_frequencies import DocumentFrequencies, coco_val2014, from_file
from multimodal_eval.text.tokenizers import check_tokenizer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

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


# Which samples have the same image: CIDEr counts images, and several samples may share one.

# The type of a metric's option `image_key`.
ImageKey = Annotated[
    str | None, "the column that names the image of a sample; samples of one image count once (default: image)", QUIET
]
IMAGE = "image"
_TEXT_FIELDS = ("id", "task", IMAGE, "question", "prompt", "group")  # fields that can name an image
_DATA_URI = "data:"


class ImageKeys(msgspec.Struct, frozen=True):
    """The key of each row: equal keys mean the same image. A row without a key, or with "", is an image of its own."""

    has_key: NDArray[np.bool_]
    hashes: NDArray[np.int64]  # of the keys, the same in every process
    keys_of: Callable[[NDArray[np.int64]], Sequence[str]]  # the keys of some rows

    def first_rows(self) -> NDArray[np.int64] | None:
        """For each row, the first row of its image; None if no image has two rows."""
        import numpy as np

        rows = np.flatnonzero(self.has_key)
        hashes, counts = np.unique(self.hashes[rows], return_counts=True)
        repeated = hashes[counts > 1]
        if not len(repeated):
            return None
        rows = rows[np.isin(self.hashes[rows], repeated)]
        first: dict[str, int] = {}
        firsts = np.arange(len(self.has_key))
        for row, key in zip(rows.tolist(), self.keys_of(rows), strict=True):  # by the keys: hashes may collide
            firsts[row] = first.setdefault(key, row)
        return firsts


def image_keys(samples: Sequence[Sample], column: str | None = None) -> ImageKeys | None:
    """The keys of the samples' images: the field `image`, or another column. None if no sample has one.

    An image in memory, or in a data URI, has the digest of its bytes as its key.
    """
    if isinstance(samples, Batch) and samples.has_columns:
        return samples.shared(("image keys", column), lambda: _keys_of_columns(samples, column or IMAGE))
    return _keys_of_values([_value(sample, column or IMAGE) for sample in samples])


def check_image_key(column: str | None) -> None:
    """Raise `ConfigError` for a field that cannot name an image."""
    if column is not None and column in FIELDS and column not in _TEXT_FIELDS:
        names = ", ".join(_TEXT_FIELDS)
        raise ConfigError(
            f"the option `image_key` must be one of the fields {names}, or another column. Got {column!r} instead."
        )


def _keys_of_columns(batch: Batch, column: str) -> ImageKeys | None:
    if column not in FIELDS:
        texts = batch.column("metadata")
        rows = [] if texts is None else texts.to_pylist()
        return _keys_of_values([None if text is None else msgspec.json.decode(text).get(column) for text in rows])
    texts, contents = batch.column(column), batch.column("image_bytes") if column == IMAGE else None
    if texts is None and contents is None:
        return None
    if texts is None or contents is not None or _has_data_uris(texts):
        values = [None] * len(batch) if texts is None else texts.to_pylist()
        if contents is not None:
            values = [
                _digest(data.as_buffer()) if name is None and data.is_valid else name
                for name, data in zip(values, contents, strict=True)
            ]
        return _keys_of_values(values)
    return _keys_of_texts(texts)


def _keys_of_texts(texts: pa.Array) -> ImageKeys:
    import numpy as np

    from multimodal_eval.core.arrow import null_rows, offsets_of, taken

    has_key = ~null_rows(texts) & (np.diff(offsets_of(texts)) > 0)
    return ImageKeys(has_key, text_hashes(texts), lambda rows: taken(texts, rows).to_pylist())


def _keys_of_values(values: Sequence[Any]) -> ImageKeys | None:
    import numpy as np

    keys = [_key(value) for value in values]
    if all(key is None for key in keys):
        return None
    hashes = np.fromiter((0 if key is None else text_hash(key) for key in keys), np.int64, len(keys))
    has_key = np.fromiter((key is not None for key in keys), np.bool_, len(keys))
    return ImageKeys(has_key, hashes, lambda rows: [keys[row] or "" for row in rows.tolist()])


def _has_data_uris(texts: pa.Array) -> bool:
    from multimodal_eval.core.arrow import bytes_of, offsets_of

    offsets, data = offsets_of(texts), bytes_of(texts)
    starts = offsets[:-1][offsets[1:] > offsets[:-1]]
    return bool(len(starts)) and bool(((data[starts] | 0x20) == ord(_DATA_URI[0])).any())


def _value(sample: Sample, column: str) -> Any:
    return getattr(sample, column) if column in FIELDS else sample.metadata.get(column)


def _key(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return _digest(_content(value)) if value[:5].lower() == _DATA_URI else value
    if isinstance(value, bytes):
        return _digest(value)
    if hasattr(value, "tobytes"):  # a Pillow image that is not stored yet
        return _digest(repr((value.mode, value.size)).encode() + value.tobytes())
    return msgspec.json.encode(value, order="deterministic", enc_hook=str).decode()


def _content(uri: str) -> bytes:
    """The content of a data URI; the URI itself if it cannot be read."""
    head, _, payload = uri.partition(",")
    content = unquote_to_bytes(payload)
    if not head.rstrip().lower().endswith(";base64"):
        return content
    try:
        return base64.b64decode(content + b"=" * (-len(content) % 4), validate=False)
    except binascii.Error:
        return uri.encode(errors="replace")


def _digest(content: Any) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


class ImageGroups:
    """Brings the samples of one image together that are in different parts of a run. See `core.metric.CorpusGroups`."""

    def __init__(self, column: str | None) -> None:
        check_image_key(column)
        self.column: str | None = column
        self.is_required = column is not None
        name = column or IMAGE
        self.fields: tuple[str, ...] = (name if name in _TEXT_FIELDS else "metadata",)

    def keys(self, samples: Sequence[Sample]) -> ImageKeys | None:
        """The keys of the samples' images."""
        return image_keys(samples, self.column)

    def pack(self, samples: Sequence[Sample], rows: NDArray[np.int64]) -> bytes:
        """The references of some rows by image, and their number."""
        keys = self.keys(samples)
        assert keys is not None
        united: dict[Hashable, dict[str, None]] = {}
        count = 0
        for key, texts in zip(keys.keys_of(rows), _references(samples, rows), strict=True):
            if texts:
                united.setdefault(key, {}).update(dict.fromkeys(texts))
                count += 1
        return msgspec.msgpack.encode((count, {key: list(texts) for key, texts in united.items()}))

    def unpack(self, pieces: Iterable[bytes]) -> tuple[Sequence[Sample], int]:
        """One sample for each image of many pieces, and the number of rows behind them."""
        import pyarrow as pa

        united: dict[str, dict[str, None]] = {}
        rows = 0
        for piece in pieces:
            count, images = msgspec.msgpack.decode(piece, type=tuple[int, dict[str, list[str]]])
            rows += count
            for key, texts in images.items():
                united.setdefault(key, {}).update(dict.fromkeys(texts))
        lists = [list(texts) for texts in united.values()]
        columns = {"references": pa.array(lists, pa.list_(pa.string()))} if lists else {}
        samples = [Sample(id=str(number), references=texts) for number, texts in enumerate(lists)]
        return Batch(len(lists), columns, samples), rows


def _references(samples: Sequence[Sample], rows: NDArray[np.int64]) -> list[list[str] | None]:
    from multimodal_eval.core.arrow import taken

    if isinstance(samples, Batch) and not has_other_references(samples):
        lists = samples.column("references")
        if lists is not None:
            texts: list[list[str] | None] = taken(lists, rows).to_pylist()
            return texts
    return [samples[row].reference_texts for row in rows.tolist()]


def has_other_references(batch: Batch) -> bool:
    """Whether some rows have a reference in another column than `references`."""
    return batch.column("expected_answer") is not None or batch.column("caption") is not None
