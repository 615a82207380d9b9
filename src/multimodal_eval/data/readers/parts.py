"""Split samples into parts: by their number and by the size of their media."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.core.sample import Sample

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from multimodal_eval.core.records import InputFile, Source
    from multimodal_eval.data.readers.problems import Problems
    from multimodal_eval.data.readers.summary import Summary

MEDIA_BYTES = 64 << 20


class Input:
    """Samples that are read in parts: of files, in memory, or of another input that is arranged."""

    __slots__ = ()

    @property
    def paths(self) -> Sequence[Path]:
        """The files that are read."""
        return ()

    def describe(self) -> list[InputFile]:
        """The input files for run.json."""
        raise NotImplementedError

    def recipe(self) -> Source | None:
        """How to open the input again; None if that is impossible."""
        raise NotImplementedError

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[Part]:
        """The checked samples in parts of at most `most`; problems are added to `problems`."""
        raise NotImplementedError

    def places(self) -> Iterator[tuple[str | None, int, str | None]]:
        """(file, line, id) of every record, for messages about samples that were read before."""
        raise NotImplementedError


class Part(Protocol):
    """Consecutive samples of an input."""

    def __len__(self) -> int: ...

    def samples(self, fields: Collection[str]) -> Sequence[Sample]:
        """The samples, with at least the given fields."""

    def table(self, first_row: int) -> pa.Table:
        """The table to store; `first_row` is the number of the first sample in the input."""


class SamplePart:
    """A part that consists of samples in memory."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return len(self._samples)

    def samples(self, fields: Collection[str]) -> Sequence[Sample]:
        """The samples."""
        return self._samples

    def table(self, first_row: int) -> pa.Table:
        """The table to store; `first_row` is the number of the first sample in the input."""
        from multimodal_eval.data.runs.sample_table import to_table

        return to_table(self._samples, first_row)


def parts_of(samples: Iterable[Sample], most: int) -> Iterator[list[Sample]]:
    """Lists of at most `most` samples; a list ends early once it has 64 MB of media."""
    part: list[Sample] = []
    size = 0
    for sample in samples:
        part.append(sample)
        size += media_size(sample)
        if len(part) == most or size >= MEDIA_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def media_size(sample: Sample) -> int:
    """The size of all media in the sample: the length of bytes, data URIs and paths, and the pixels of images."""
    parts = [part.content for message in sample.messages or () for part in message.parts if part.type != "text"]
    media = [sample.image, sample.audio, sample.video, *(sample.images or ()), *parts]
    return sum(_media_bytes(each) for each in media if each is not None)


def _media_bytes(media: Any) -> int:
    """The length of bytes, data URIs and paths; the size of the pixels of an image in memory."""
    if isinstance(media, str | bytes):
        return len(media)
    width, height = getattr(media, "size", (0, 0))
    return int(width * height * len(media.getbands())) if width else 0
