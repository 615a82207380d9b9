"""What an annotator sees of an item. Nothing tells of which run an answer is: no name, no id, no path, no metadata."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.exceptions import HTTPException

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.report.inputs import Inputs
from multimodal_eval.report.media import audio_file, image_file, media_policy
from multimodal_eval.report.viewer.labelling.queue import Item
from multimodal_eval.report.viewer.labelling.task import LabelTask
from multimodal_eval.report.viewer.runs import RunsFolder
from multimodal_eval.report.viewer.sample_page import REFERENCES, Medium, decoded, inputs_of, listed, media_of
from multimodal_eval.report.viewer.store import Row, Store

__all__ = ["Contents", "ShownItem"]

_LOGGER = logging.getLogger(__name__)
IMAGE_SIZE = 1_600  # pixels of the longer side
_SHARED = ("question", "choices", *REFERENCES, "image", "images", "audio", "video")


@dataclass(frozen=True, slots=True)
class ShownItem:
    """The content of an item: one answer, or two of which the first is on the left; or why there is none."""

    answers: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()  # question and prompt
    references: tuple[str, ...] = ()
    media: tuple[Medium, ...] = ()
    more_images: int = 0
    inputs: Inputs | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Contents:
    """Reads items and their media from the runs."""

    folder: RunsFolder
    store: Store
    task: LabelTask
    media_roots: tuple[Path, ...] = ()

    def shown(self, item: Item, *, first_left: bool) -> ShownItem:
        """The content. A run that cannot be read is a problem of the item: the terminal says which and why."""
        try:
            return self._shown(item, first_left)
        except MultimodalEvalError as fault:
            _tell(item, fault)
            return ShownItem(problem="this sample cannot be read. Skip it; the terminal of the server says why")

    def _shown(self, item: Item, first_left: bool) -> ShownItem:
        sample, _ = self.store.sample(self.folder.open(item.run), item.row)
        answers = [sample["generated_answer"]]
        if item.other is not None and item.other_row is not None:
            other, _ = self.store.sample(self.folder.open(item.other), item.other_row)
            if any(_differ(sample.get(name), other.get(name)) for name in _SHARED):
                return ShownItem(problem="the two runs have different questions, references or media here. Skip it")
            answers.append(other["generated_answer"])
        elif self.task.baseline is not None:
            answers.append(_second_answer(sample, self.task.baseline))
        if not all(isinstance(answer, str) for answer in answers):
            return ShownItem(problem="an answer is missing. Skip it")
        media, more_images = media_of(sample)
        inputs = inputs_of(sample)
        return ShownItem(
            tuple(answers if first_left else answers[::-1]),
            tuple((name, sample[name]) for name in ("question", "prompt") if sample[name] is not None),
            tuple(dict.fromkeys(text for name in REFERENCES for text in listed(sample[name])))
            if self.task.shows_references
            else (),
            tuple(media),
            more_images,
            replace(inputs, video=None) if len(answers) == 1 else replace(inputs, video=None, boxes=None),
        )

    def medium(self, item: Item, kind: str, index: int) -> tuple[str, bytes]:
        """The type and the bytes of an image or audio. The reason of a failure may name a run: it is not sent."""
        try:
            run = self.folder.open(item.run)
            source = self.store.media(run, item.row, kind, index)
            if source is None:
                raise HTTPException(404)
            policy = media_policy(run.folder, run.info, self.media_roots)
            return audio_file(source, policy) if kind == "audio" else image_file(source, policy, IMAGE_SIZE)
        except MultimodalEvalError as fault:
            _tell(item, fault)
            raise HTTPException(404, "the file cannot be shown; the terminal of the server says why") from None


def _second_answer(sample: Row, column: str) -> object:
    metadata = decoded(sample["metadata"])
    return metadata.get(column) if isinstance(metadata, Mapping) else None


def _differ(first: object, second: object) -> bool:
    """Whether both runs have a value, and not the same."""
    return first is not None and second is not None and first != second


def _tell(item: Item, fault: Exception) -> None:
    """Say on the terminal what an annotator must not see."""
    _LOGGER.warning("warning: %s, row %d: %s", item.run, item.row, fault)
