"""Training data on the device, which grows while other processes draw it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch

from tools.shapes_clip.augmentation import augmented
from tools.shapes_clip.dataset import CLASSES, FALSE, TRUE, WORDS, Chunk


class Supply:
    """Images, captions and facts. A thread adds chunks from an iterator; batches use the data available so far."""

    def __init__(self, chunks: Iterator[Chunk], total: int, image_size: int, device: torch.device) -> None:
        self.images = torch.empty((total, image_size, image_size, 3), dtype=torch.uint8, device=device)
        self.captions = torch.empty((total, TRUE + FALSE, WORDS), dtype=torch.int16, device=device)
        self.facts = torch.empty((total, len(CLASSES)), dtype=torch.uint8, device=device)
        self.filled = 0
        self.failure: BaseException | None = None
        self.device = device
        threading.Thread(target=self._fill, args=(chunks,), daemon=True).start()

    def _fill(self, chunks: Iterator[Chunk]) -> None:
        try:
            for chunk in chunks:
                part = slice(self.filled, self.filled + len(chunk.facts))
                self.images[part] = torch.from_numpy(chunk.images).to(self.device)
                self.captions[part] = torch.from_numpy(chunk.captions).to(self.device)
                self.facts[part] = torch.from_numpy(chunk.facts).to(self.device)
                if self.device.type == "cuda":
                    torch.cuda.current_stream().synchronize()
                self.filled = part.stop
        except BaseException as failure:  # noqa: BLE001  reported by the training thread
            self.failure = failure

    def batch(self, size: int, wrong: int) -> dict[str, Any]:
        """`size` images in pairs, each with one true and `wrong` false captions."""
        pairs = torch.randint(self.filled // 2, (size // 2,), device=self.device)
        at = torch.stack((2 * pairs, 2 * pairs + 1), 1).flatten()
        choice = torch.rand((size, FALSE), device=self.device).argsort(1)[:, :wrong] + TRUE
        true = torch.randint(TRUE, (size, 1), device=self.device)
        captions = self.captions[at[:, None], torch.cat((true, choice), 1)].long()
        return {"images": augmented(self.images[at]), "captions": captions, "facts": self.facts[at].long()}
