"""A ring of pinned buffers: threads fill one while the device receives another and works on a third."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

SLOTS = 3  # one is filled, one is uploaded, one is in use
SLOT_BYTES = 256 << 20
COPY_THREADS = 12


def chunks_by_shape(shapes: Sequence[tuple[int, ...]], count: int, size: int) -> list[list[int]]:
    """Positions of equal shapes: at most `count` together, and at most `size` bytes if they are more than one."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for position, shape in enumerate(shapes):
        by_shape.setdefault(tuple(shape), []).append(position)
    chunks = []
    for shape, positions in by_shape.items():
        most = max(1, min(count, size // prod(shape)))
        chunks += [positions[start : start + most] for start in range(0, len(positions), most)]
    return chunks


@dataclass
class _Slot:
    """Buffers for one batch on the host and on the device, and the events after which each is free again."""

    host: Any
    device: Any
    uploaded: Any = None
    used: Any = None
    fills: list[Future[None]] = field(default_factory=list)


class UploadRing:
    """Uploads batches of equally large images to the device while it works on earlier ones."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.torch, self.device = torch, device
        self.on_gpu = device.type == "cuda"
        self.slots: list[_Slot] = []
        self.pool = ThreadPoolExecutor(COPY_THREADS if self.on_gpu else 1)
        self.stream: Any = torch.cuda.Stream(device) if self.on_gpu else None

    def uploaded(self, arrays: Sequence[Pixels], most: int) -> Iterator[tuple[list[int], Any]]:
        """Yield (positions, batch of at most `most` on the device), grouped by size, not in the order of `arrays`.

        A batch is valid until the next one is asked for.
        """
        chunks = chunks_by_shape([array.shape for array in arrays], most, SLOT_BYTES)
        largest = max((len(chunk) * arrays[chunk[0]].nbytes for chunk in chunks), default=0)
        self._allocate(largest)
        waiting: list[tuple[list[int], _Slot]] = []
        for number, chunk in enumerate(chunks):
            slot = self.slots[number % SLOTS]
            self._fill(slot, [arrays[position] for position in chunk])
            waiting.append((chunk, slot))
            if len(waiting) == 2:  # the next slot is filled while this one is sent
                yield from self._sent(arrays, *waiting.pop(0))
        for chunk, slot in waiting:
            yield from self._sent(arrays, chunk, slot)

    def _allocate(self, size: int) -> None:
        if self.slots and self.slots[0].host.numel() >= size:
            return
        if self.on_gpu:
            self.torch.cuda.synchronize(self.device)  # wait until no upload uses the old slots
        bytes_ = self.torch.uint8
        capacity = SLOT_BYTES if self.on_gpu and size > SLOT_BYTES // 8 else size
        self.slots = []
        for _ in range(SLOTS):
            host = self.torch.empty(max(capacity, size), dtype=bytes_, pin_memory=self.on_gpu)
            device = self.torch.empty(max(capacity, size), dtype=bytes_, device=self.device) if self.on_gpu else host
            self.slots.append(_Slot(host, device))

    def _fill(self, slot: _Slot, arrays: Sequence[Pixels]) -> None:
        """Start to copy images into a slot, once its previous content has been uploaded."""
        import numpy as np

        if slot.uploaded is not None:
            slot.uploaded.synchronize()
        buffer = slot.host[: len(arrays) * arrays[0].nbytes].numpy().reshape(len(arrays), *arrays[0].shape)

        def copy(start: int, end: int) -> None:
            for index in range(start, end):
                np.copyto(buffer[index], arrays[index])

        step = -(-len(arrays) // COPY_THREADS)
        slot.fills = [
            self.pool.submit(copy, start, min(start + step, len(arrays))) for start in range(0, len(arrays), step)
        ]

    def _sent(self, arrays: Sequence[Pixels], chunk: list[int], slot: _Slot) -> Iterator[tuple[list[int], Any]]:
        for fill in slot.fills:
            fill.result()
        size = len(chunk) * arrays[chunk[0]].nbytes
        batch = slot.device[:size].view(len(chunk), *arrays[chunk[0]].shape)
        if not self.on_gpu:
            yield chunk, batch
            return
        cuda = self.torch.cuda
        if slot.used is not None:
            self.stream.wait_event(slot.used)
        with cuda.stream(self.stream):
            slot.device[:size].copy_(slot.host[:size], non_blocking=True)
            slot.uploaded = self.stream.record_event()
        current = cuda.current_stream(self.device)
        current.wait_event(slot.uploaded)
        yield chunk, batch
        slot.used = current.record_event()
