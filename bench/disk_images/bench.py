"""What all sections share: the folder with images and models, the names of models, and runs of `mmeval score`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from image_inputs import made_images, made_input, made_model
from image_run import Run

FORMATS = ("+bf16", "")


@dataclass
class Bench:
    """Inputs of one call. `small` has a tiny model, which measures nothing; `cpu` uses onnxruntime instead of torch."""

    folder: Path
    images: int
    many: int
    large: int
    cpu: bool = False
    small: bool = False
    _models: dict[str, Future[Path]] = field(default_factory=dict)
    _background: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def make(self) -> None:
        from gpu_models.race import Setting

        Setting.device = self.device
        self._model("b32")  # in the background
        made_images(self.folder / "images", self.images)

    def _model(self, kind: str) -> Future[Path]:
        if kind not in self._models:
            shape = "tiny" if self.small else kind
            self._models[kind] = self._background.submit(made_model, self.folder / kind, shape)
        return self._models[kind]

    def model_folder(self, kind: str) -> Path:
        return self._model(kind).result()

    def shape(self, kind: str) -> str:
        """The configuration of a kind of model."""
        return "tiny" if self.small else kind

    @property
    def device(self) -> str:
        import torch

        return "cpu" if self.cpu or not torch.cuda.is_available() else "cuda"

    @property
    def formats(self) -> tuple[str, ...]:
        return ("",) if self.cpu else FORMATS

    def model(self, kind: str, number_format: str) -> str:
        """The name of a model for `--option clip_score.model=NAME`."""
        folder = self.model_folder(kind)
        return str(folder) if self.cpu else f"torch:{folder}{number_format}"

    def scored(self, kind: str, number_format: str, count: int, *extra: str, cache: bool = True) -> Run:
        """One run of `mmeval score` in a process of its own, with an empty cache."""
        source = made_input(self.folder, self.images, count)
        return Run(self.folder, source, self.model(kind, number_format), count, "--no-report", *extra, cache=cache)

    @contextmanager
    def closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._background.shutdown(cancel_futures=True)


def say(text: str) -> None:
    print(text, flush=True)


def shown_format(number_format: str) -> str:
    return number_format.removeprefix("+") or "float32"


def shown_difference(name: str, left: Any, right: Any) -> None:
    difference = np.abs(left - right)
    say(
        f"  |score - {name}| on {len(left):,} images: max {difference.max():.6f}, mean {difference.mean():.7f}; "
        f"standard deviation of the scores {left.std():.4f}"
    )
