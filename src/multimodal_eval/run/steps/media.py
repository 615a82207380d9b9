"""Note what the media files of the samples contain, and their subtitles, before anything is made of them.

Media are outside of the run folder, so that nothing else would tell whether an image is the one that other parts, the
answers or the verdicts were made of. Content in memory and data URIs are stored with the samples. What is at a URL is
not compared: that would mean to fetch it twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import MediaError, RunFolderError
from multimodal_eval.core.metric import MEDIA_FIELDS
from multimodal_eval.core.optional import import_expected
from multimodal_eval.data.runs.checksums import sha256
from multimodal_eval.data.runs.run_content import part_name
from multimodal_eval.generate.template import SUBTITLES
from multimodal_eval.media.content import is_local, media_bytes
from multimodal_eval.media.policy import MediaPolicy, policy_of
from multimodal_eval.media.subtitles import is_subtitle_file
from multimodal_eval.run.engine.base import Phase, refuse_crashed
from multimodal_eval.run.step import Step

__all__ = ["Media"]

MEDIA, ANSWERS = "media", "answers"
THREADS = 2  # per process: to find and open a file takes Python as long as to read it
_METADATA = msgspec.json.Decoder(dict[str, Any])


class Media(Step):
    """Stores the checksums of the media of every part. `kinds` are the parts that are made of them next.

    If some of those are made again, the media must be the same: a file that has changed since is refused, like a
    changed input. To ask or score everything again would pay for answers twice, and is a new run.
    """

    may_refuse = True

    kinds: tuple[str, ...] = ()

    def left(self) -> Sequence[int]:
        """The parts whose media are opened next, and those whose checksums are damaged."""
        run = self.run
        files = {part: [part_name(kind, part) for kind in self.kinds] for part in run.parts}
        return [
            part
            for part, names in files.items()
            if part_name(MEDIA, part) in run.damaged or not all(map(run.has, names))
        ]

    def make(self, left: Sequence[int]) -> None:
        """Store the checksums that are missing, and compare the others."""
        lost = [part for part in left if part_name(MEDIA, part) in self.run.damaged]
        self.run.remove_damaged(f"{MEDIA}/")
        for part in lost:  # here, where other checksums than the lost ones are refused
            self.part(part)
        import_expected()
        rest = [part for part in left if part not in lost]
        for result in self.run.engine.map(self, Phase("part", rest, threads=THREADS)):
            refuse_crashed(result, "reading the media")

    def part(self, part: int) -> None:
        """Read the media of a part."""
        folder = self.run.folder
        policy = policy_of(self.run.plan.config)
        contents = {
            source: _checksum(source, policy) for source in filter(is_local, dict.fromkeys(self._sources(part)))
        }
        if folder.has_part(MEDIA, part):
            self._refuse_changed(part, contents)
        elif contents:
            table = {"source": list(contents), "sha256": list(contents.values())}
            folder.write_part(MEDIA, part, pa.table(table, schema=_SCHEMA))

    def _sources(self, part: int) -> Iterator[Any]:
        """What the samples of a part have as media; for answers also the files with subtitles, which are metadata."""
        folder = self.run.folder
        if folder.has_values("samples", part, MEDIA_FIELDS):
            yield from media_of(folder.read_batch(part, MEDIA_FIELDS))
        if ANSWERS in self.kinds and folder.has_values("samples", part, ("metadata",)):
            texts = folder.read_part("samples", part, ["metadata"]).column("metadata").to_pylist()
            named = (_METADATA.decode(text).get(SUBTITLES) for text in texts if text and f'"{SUBTITLES}"' in text)
            yield from (source.strip() for source in named if is_subtitle_file(source))

    def _refuse_changed(self, part: int, contents: dict[str, str | None]) -> None:
        table = self.run.folder.read_part(MEDIA, part)
        noted = dict(zip(*(table.column(name).to_pylist() for name in _SCHEMA.names), strict=True))
        changed = [source for source, content in contents.items() if source in noted and noted[source] != content]
        if changed:
            names = f"{changed[0]} and {len(changed) - 1:,} more have" if len(changed) > 1 else f"{changed[0]} has"
            old, what = self.run.earlier, "rescored"
            if old is None or self.run.is_continued:
                old, what = self.run.folder, "continued"
            raise RunFolderError(
                f"{old.label} cannot be {what}: {names} changed since it was started, and its other scores or answers "
                "are about the earlier content. Restore it, or start a new run"
            )


_SCHEMA = pa.schema([("source", pa.string()), ("sha256", pa.string())])


def media_of(samples: Batch) -> Iterator[Any]:
    """All that samples have as media, field by field."""
    for field in ("image", "audio", "video", "images"):
        column = samples.column(field)
        for source in () if column is None else column.to_pylist():
            yield from source if isinstance(source, list) else (source,)
    for sample in () if samples.column("messages") is None else samples.samples:
        for message in sample.messages or ():
            yield from (part.content for part in message.parts if part.type != "text")


def _checksum(source: str, policy: MediaPolicy) -> str | None:
    """The checksum of a file; None if it cannot be read, or is not allowed to be."""
    try:
        return sha256(media_bytes(source, policy, MediaError, MEDIA))
    except MediaError:
        return None
