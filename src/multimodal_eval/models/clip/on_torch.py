"""CLIP and SigLIP in torch, optimised for a GPU: `torch:NAME`, needs the extra `[torch]`.

Images of the same size are batched as bytes. Threads copy them into a ring of pinned buffers, a separate stream uploads
them while the GPU works on earlier batches, and resizing is two matrix products with Pillow's weights. On CUDA the
towers run in bfloat16, and the label says so. On the CPU everything is float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.core.optional import require
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.clip.lazy_images import LazyImage, open_in_groups
from multimodal_eval.models.clip.preprocessing import Preprocessing, matrices

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.source import Model

    Vectors = NDArray[np.float32]
    Pixels = NDArray[np.uint8]

SLOTS = 3  # one is filled, one is uploaded, one is in use
SLOT_BYTES = 256 << 20
IMAGES_PER_BATCH = 256
IMAGES_PER_GROUP = 48  # opened together
TOKENS_PER_BATCH = 1 << 15
COPY_THREADS = 12


class Texts(Protocol):
    """The tokenizer protocol of the encoder, which `ClipTexts` implements."""

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""


def _torch(name: str) -> Any:
    return require("torch", extra="torch", purpose=f"the encoder 'torch:{name}'")


def label_of(model: Model) -> str:
    """Name and revision, and the number format if it is not float32."""
    torch = _torch(model.name)
    return f"{model.label}+torch{'-bf16' if torch.cuda.is_available() else ''}"


class TorchClip:
    """A CLIPModel or SiglipModel of transformers that preprocesses images on its own device."""

    def __init__(
        self, towers: Any, preprocess: Preprocessing, texts: Texts, *, label: str, device: Any, dtype: Any
    ) -> None:
        self.torch = _torch(label)
        self.label, self.preprocess, self.texts = label, preprocess, texts
        self.device, self.dtype = self.torch.device(device), dtype
        self.towers = towers.to(self.device, dtype).eval()
        self.image_features: Callable[[Any], Any] = self.towers.get_image_features
        self._gain, self._shift = self._normalisation()
        self._ring = _Ring(self.torch, self.device)
        self._weights: dict[tuple[int, int], tuple[_Pass, _Pass]] = {}

    @classmethod
    def of(cls, model: Model) -> TorchClip:
        """Open the model of a directory, on the GPU if there is one. Code that comes with the model is not run."""
        from multimodal_eval.models.clip.encoder import preprocessing_of
        from multimodal_eval.models.clip.text import ClipTexts

        torch = _torch(model.name)
        library = require("transformers", extra="torch", purpose=f"the encoder 'torch:{model.name}'")
        model.verify()
        texts = ClipTexts(model)
        kind = {"clip": library.CLIPModel, "siglip": library.SiglipModel}[texts.family]
        towers = kind.from_pretrained(str(model.folder), local_files_only=True, use_safetensors=True)
        on_gpu = torch.cuda.is_available()
        return cls(
            towers,
            preprocessing_of(model),
            texts,
            label=label_of(model),
            device="cuda" if on_gpu else "cpu",
            dtype=torch.bfloat16 if on_gpu else torch.float32,
        )

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        return self.texts.are_cut(texts)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""
        import numpy as np

        torch = self.torch
        order: list[int] = []
        rows: list[Any] = []
        with torch.inference_mode():
            for positions, ids in equal_lengths(self.texts.ids(texts), tokens=TOKENS_PER_BATCH, min_rows=1):
                out = self.towers.get_text_features(torch.tensor(ids, device=self.device))
                order += positions
                rows.append(self._unit(out))
            if not rows:
                return np.empty((0, 0), np.float32)
            return self._in_order(order, rows, len(texts))

    def encode_images(self, images: Sequence[LazyImage]) -> Vectors:
        """One unit vector per image. An image that cannot be opened gets NaN, and its `fault` is set."""
        import numpy as np

        order: list[int] = []
        rows: list[Any] = []
        for positions, arrays in open_in_groups(images, self._as_array, group_size=IMAGES_PER_GROUP):
            for indexes, vectors in self._launched(arrays):
                order += [positions[index] for index in indexes]
                rows.append(vectors)
        if not rows:
            return np.full((len(images), 1), np.nan, np.float32)
        return self._in_order(order, rows, len(images))

    def encode_arrays(self, arrays: Sequence[Pixels]) -> Vectors:
        """One unit vector per decoded image; each array has the shape (height, width, 3)."""
        launched = list(self._launched(arrays))
        return self._in_order(
            [index for indexes, _ in launched for index in indexes], [row for _, row in launched], len(arrays)
        )

    def _as_array(self, image: Any) -> Pixels:
        import numpy as np

        self.preprocess.passes(image.height, image.width)  # refuses the same images as the onnxruntime encoder
        return np.asarray(image.convert("RGB"))

    def _launched(self, arrays: Sequence[Pixels]) -> Iterator[tuple[list[int], Any]]:
        """Positions and vectors. The device may still be computing them: this does not wait."""
        with self.torch.inference_mode():
            launched = []
            for positions, batch in self._ring.uploaded(arrays):
                launched.append((positions, self._unit(self.image_features(self.prepared(batch)))))
        yield from launched

    def _in_order(self, order: list[int], rows: list[Any], count: int) -> Vectors:
        import numpy as np

        computed = self.torch.cat(rows).cpu().numpy()
        vectors: Vectors = np.full((count, computed.shape[1]), np.nan, np.float32)
        vectors[order] = computed
        return vectors

    def prepared(self, batch: Any) -> Any:
        """From bytes (images, height, width, 3) to the tower's input. Equal to Pillow and numpy up to rounding."""
        torch, (columns, rows) = self.torch, self._matrices(*batch.shape[1:3])
        used = batch[:, columns.first : columns.last, rows.first : rows.last]
        x = used.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        x = self._rounded(x @ rows.weights.T).flatten(0, 1)
        x = self._rounded(torch.bmm(columns.weights.expand(len(x), -1, -1), x)).unflatten(0, (-1, 3))
        return x.mul_(self._gain).add_(self._shift).to(self.dtype)

    def _rounded(self, x: Any) -> Any:
        return x.add_(0.5).floor_().clamp_(0, 255)

    def _normalisation(self) -> tuple[Any, Any]:
        """(value * scale - mean) / std as a factor and an offset per channel."""
        scale = 1.0 if self.preprocess.scale is None else self.preprocess.scale
        means, deviations = self.preprocess.mean or (0.0,) * 3, self.preprocess.std or (1.0,) * 3
        pairs = ([scale / std for std in deviations], [-m / std for m, std in zip(means, deviations, strict=True)])
        gain, shift = (self.torch.tensor(values, device=self.device).view(1, 3, 1, 1) for values in pairs)
        return gain, shift

    def _matrices(self, height: int, width: int) -> tuple[_Pass, _Pass]:
        if (height, width) not in self._weights:
            columns, rows = (self._pass(matrix) for matrix in matrices(self.preprocess, height, width))
            self._weights[height, width] = (columns, rows)
        return self._weights[height, width]

    def _pass(self, matrix: NDArray[np.float32]) -> _Pass:
        import numpy as np

        used = np.flatnonzero(matrix.any(axis=0))
        first, last = int(used[0]), int(used[-1]) + 1
        return _Pass(self.torch.from_numpy(matrix[:, first:last].copy()).to(self.device), first, last)

    def _unit(self, out: Any) -> Any:
        rows = getattr(out, "pooler_output", out).float()  # transformers 5 wraps the features
        return rows / rows.norm(dim=-1, keepdim=True)


@dataclass(frozen=True)
class _Pass:
    """The weights of one direction, and the range of pixels that the crop uses."""

    weights: Any
    first: int
    last: int


@dataclass
class _Slot:
    """Buffers for one batch on the host and on the device, and the events after which each is free again."""

    host: Any
    device: Any
    uploaded: Any = None
    used: Any = None
    fills: list[Future[None]] = field(default_factory=list)


class _Ring:
    """Uploads batches of equally large images to the device while it works on earlier ones."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.torch, self.device = torch, device
        self.on_gpu = device.type == "cuda"
        self.slots: list[_Slot] = []
        self.pool = ThreadPoolExecutor(COPY_THREADS if self.on_gpu else 1)
        self.stream: Any = torch.cuda.Stream(device) if self.on_gpu else None

    def uploaded(self, arrays: Sequence[Pixels]) -> Iterator[tuple[list[int], Any]]:
        """Yield (positions, batch on the device), grouped by size and not in the order of `arrays`."""
        chunks = self._chunks(arrays)
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

    def _chunks(self, arrays: Sequence[Pixels]) -> list[list[int]]:
        """Positions of images of the same size, at most as many as fit into a slot and a batch."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for position, array in enumerate(arrays):
            by_shape.setdefault(array.shape, []).append(position)
        chunks = []
        for positions in by_shape.values():
            count = max(1, min(IMAGES_PER_BATCH, SLOT_BYTES // arrays[positions[0]].nbytes))
            chunks += [positions[start : start + count] for start in range(0, len(positions), count)]
        return chunks

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
