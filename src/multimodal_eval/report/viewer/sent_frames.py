"""The frames of a video as a run sent them to its model: taken from the file again, by the settings of the run."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

from multimodal_eval.core.errors import MediaError, MultimodalEvalError
from multimodal_eval.media.outgoing import frame_count, video_file, video_frames
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.report.viewer.runs import ViewedRun

__all__ = ["SentFrames", "ShownVideo"]

KEPT_VIDEOS = 2  # whose frames are kept, since a page asks for one after the other


@dataclass(frozen=True, slots=True)
class ShownVideo:
    """A video that is played, and how many frames of it were sent."""

    frames: int


class SentFrames:
    """Frames of videos, decoded when the first one is asked for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, tuple[bytes, ...]] = OrderedDict()
        self._lock = Lock()  # the images of a page come at the same time: one of them decodes

    def count(self, run: ViewedRun, source: Any, policy: MediaPolicy) -> int:
        """How many frames were sent; 0 if none were, or if the file cannot be read now."""
        settings = run.info.config.generation
        if settings is None or settings.frames is None or settings.media_as == "none" or settings.probe is not None:
            return 0
        try:
            content = video_file(source, policy)[1]
            return frame_count(content, settings.frames, settings.frames_per_second)
        except MultimodalEvalError:  # also without PyAV; the player names what is wrong with the file
            return 0

    def frame(self, run: ViewedRun, row: int, number: int, source: Any, policy: MediaPolicy) -> bytes:
        """One frame, as a JPEG file."""
        settings = run.info.config.generation
        if settings is None or settings.frames is None:
            raise MediaError("the run sent no frames")
        with self._lock:
            frames = self._kept.get((run.identity, row))
            if frames is None:
                content = video_file(source, policy)[1]
                frames = video_frames(content, settings.frames, policy, settings.max_pixels, settings.frames_per_second)
                self._kept[run.identity, row] = frames
                while len(self._kept) > KEPT_VIDEOS:
                    self._kept.popitem(last=False)
        if number >= len(frames):
            raise MediaError(f"the video has {len(frames)} frames that were sent")
        return frames[number]
