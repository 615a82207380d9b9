"""CLIP and SigLIP in torch, optimised for a GPU: `torch:NAME`, needs the extra `[torch]`.

Images of the same size are batched as bytes. Those that other processes decode are uploaded from the memory shared with
them; for arrays, threads fill a ring of pinned buffers. A separate stream uploads while the GPU works on earlier
batches, and resizing is two matrix products with Pillow's weights. The towers run in float32, or in bfloat16 as
`torch:NAME+bf16`, which the label says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.core.optional import require
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.clip.lazy_images import LazyImage, open_in_groups
from multimodal_eval.models.clip.pixels import HandOver
from multimodal_eval.models.clip.preprocessing import Preprocessing, matrices
from multimodal_eval.models.torch_device import Format, Placement, exact, halving, label_of, place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.source import Model

    Vectors = NDArray[np.float32]
    Pixels = NDArray[np.uint8]

SLOTS = 3  # one is filled, one is uploaded, one is in use
SLOT_BYTES = 256 << 20
IMAGES_PER_BATCH = 256
IMAGES_PER_GROUP = 256  # opened together
WHOLE_UP_TO = 1 << 19  # pixels: larger images are resized before they are sent, so that many fit into memory
TOKENS_PER_BATCH = 1 << 15
PADDING = 0  # a token of CLIP that is not the end
COPY_THREADS = 12


class Texts(Protocol):
    """The tokenizer protocol of the encoder, which `ClipTexts` implements."""

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""


def _torch(name: str) -> Any:
    return require("torch", extra="torch", purpose=f"the encoder 'torch:{name}'")


def check(model: Model) -> None:
    """Check that the model, the packages and the device are available."""
    model.check()
    place(f"the encoder 'torch:{model.name}'")
    require("transformers", extra="torch", purpose=f"the encoder 'torch:{model.name}'")


class TorchClip:
    """A CLIPModel or SiglipModel of transformers that preprocesses images on its own device."""

    def __init__(
        self, towers: Any, preprocess: Preprocessing, texts: Texts, *, label: str, device: Any, dtype: Any
    ) -> None:
        self.torch = _torch(label)
        self.label, self.preprocess, self.texts = label, preprocess, texts
        self.device, self.dtype = self.torch.device(device), dtype
        self.placed = Placement(self.torch, self.device, "float32" if dtype is self.torch.float32 else "bf16")
        self.towers = towers.to(self.device, dtype).eval()
        self.is_concurrent = self.device.type == "cuda"  # one thread can prepare what the device computes next
        self.image_features: Callable[[Any], Any] = self.towers.get_image_features
        self._gain, self._shift = self._normalisation()
        self._ring = _Ring(self.torch, self.device)
        self._weights: dict[tuple[int, int], tuple[_Pass, _Pass]] = {}
        self.hand_over = HandOver(preprocess, WHOLE_UP_TO)
        self._receiving: Any = None  # the stream of the thread that receives images

    @classmethod
    def of(cls, model: Model, number_format: Format = "float32") -> TorchClip:
        """Open the model of a directory, on the GPU if there is one. Code that comes with the model is not run."""
        from multimodal_eval.models.clip.encoder import preprocessing_of
        from multimodal_eval.models.clip.text import ClipTexts

        placed = place(f"the encoder 'torch:{model.name}'", number_format)
        library = require("transformers", extra="torch", purpose=f"the encoder 'torch:{model.name}'")
        model.verify()
        texts = ClipTexts(model)
        kind = {"clip": library.CLIPModel, "siglip": library.SiglipModel}[texts.family]
        towers = kind.from_pretrained(str(model.folder), local_files_only=True, use_safetensors=True)
        label = label_of(model, number_format)
        return cls(towers, preprocessing_of(model), texts, label=label, device=placed.device, dtype=placed.dtype)

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        return self.texts.are_cut(texts)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""
        import numpy as np

        order: list[int] = []
        rows: list[Any] = []

        def run(batch: Sequence[tuple[int, Sequence[int]]]) -> None:
            ids = self.placed.upload(np.array([ids for _, ids in batch]))
            with self.placed.inference():
                rows.append(self._unit(self.towers.get_text_features(ids)))
            order.extend(position for position, _ in batch)

        for positions, ids in self._text_batches(self.texts.ids(texts)):
            halving(self.torch, run, list(zip(positions, ids, strict=True)))
        return self._in_order(order, rows, len(texts)) if rows else np.empty((0, 0), np.float32)

    def _text_batches(self, ids: list[list[int]]) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Batches of about `TOKENS_PER_BATCH` tokens: positions and rows of the same length.

        CLIP's text tower is causal, and the vector is that of the first end token: what follows it has no effect. So
        its rows are padded, and a part of a run is one batch instead of one for every length.
        """
        if getattr(self.towers.config, "model_type", "") != "clip":
            for positions, rows in equal_lengths(ids, tokens=TOKENS_PER_BATCH, min_rows=1):
                yield positions, [list(row) for row in rows]
            return
        order = sorted(range(len(ids)), key=lambda position: -len(ids[position]))
        while order:
            longest = len(ids[order[0]])
            count = max(1, TOKENS_PER_BATCH // max(1, longest))
            positions, order = order[:count], order[count:]
            yield positions, [ids[position] + [PADDING] * (longest - len(ids[position])) for position in positions]

    def encode_images(self, images: Sequence[LazyImage]) -> Vectors:
        """One unit vector per image. An image that cannot be opened gets NaN, and its `fault` is set."""
        import numpy as np

        order: list[int] = []
        rows: list[Any] = []
        for positions, tensors in open_in_groups(images, self._opened, group_size=IMAGES_PER_GROUP):
            for chunk in chunks_by_shape([tensor.shape for tensor in tensors], IMAGES_PER_BATCH, 2 * SLOT_BYTES):
                with self.placed.inference():
                    batch = self.torch.stack([tensors[index] for index in chunk])
                    rows.append(self._unit(self.image_features(self.prepared(batch))))
                order += [positions[index] for index in chunk]
        if not rows:
            return np.full((len(images), 1), np.nan, np.float32)
        return self._in_order(order, rows, len(images))

    def receive(self, pixels: Pixels) -> Sequence[Any]:
        """What `hand_over` returned for several images in another process, as tensors on the device.

        The memory of the pixels is then free again.
        """
        torch = self.torch
        if self.device.type != "cuda":
            return list(torch.from_numpy(pixels.copy()))
        if self._receiving is None:
            self._receiving = torch.cuda.Stream(self.device)
        with torch.cuda.stream(self._receiving):
            tensor = torch.empty(pixels.shape, dtype=torch.uint8, device=self.device)
            tensor.copy_(torch.from_numpy(pixels), non_blocking=True)
        self._receiving.synchronize()
        tensor.record_stream(torch.cuda.default_stream(self.device))
        images: Sequence[Any] = tensor.unbind()
        return images

    def pin(self, memory: Pixels) -> None:
        """Let the device read this memory directly. Without that, copies from it are slower."""
        if self.device.type == "cuda":
            self.torch.cuda.cudart().cudaHostRegister(memory.ctypes.data, memory.nbytes, 0)

    def _opened(self, image: Any) -> Any:
        return self.receive(self.hand_over(image)[None].copy())[0]  # torch refuses memory that it cannot write

    def encode_arrays(self, arrays: Sequence[Pixels]) -> Vectors:
        """One unit vector per decoded image; each array has the shape (height, width, 3)."""
        launched = list(self._launched(arrays))
        return self._in_order(
            [index for indexes, _ in launched for index in indexes], [row for _, row in launched], len(arrays)
        )

    def _launched(self, arrays: Sequence[Pixels]) -> Iterator[tuple[list[int], Any]]:
        """Positions and vectors. The device may still be computing them: this does not wait."""
        with exact(self.torch), self.torch.inference_mode():
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
        """From bytes (images, height, width, 3 or 4) to the tower's input. Equal to Pillow and numpy up to rounding."""
        torch, (columns, rows) = self.torch, self._matrices(*batch.shape[1:3])
        used = batch[:, columns.first : columns.last, rows.first : rows.last, :3]
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
        shapes = [array.shape for array in arrays]
        return chunks_by_shape(shapes, IMAGES_PER_BATCH, SLOT_BYTES)

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
