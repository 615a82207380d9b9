"""CLIP and SigLIP through torch, made for a GPU: the extra `[torch]`, asked for as `torch:NAME`.

Pictures of one size go together as bytes: threads copy them into a ring of pinned buffers, a stream of its own carries
them over while the GPU works on those before, and resizing is two matrix products with Pillow's own weights. On CUDA
the towers run in bfloat16, and the label says so; on the CPU everything is float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.core.optional import require
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.clip.pictures import Picture, opened
from multimodal_eval.models.clip.preprocessing import Preprocessing, matrices

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.source import Model

    Vectors = NDArray[np.float32]
    Pixels = NDArray[np.uint8]

SLOTS = 3  # one is filled, one travels, one is worked on
SLOT_BYTES = 256 << 20
IMAGES_AT_ONCE = 256  # in the tower
OPENED_AT_ONCE = 48
TOKENS_AT_ONCE = 1 << 15
COPIERS = 12


class Texts(Protocol):
    """What the encoder wants of a tokenizer; `ClipTexts` is one."""

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts are longer than what the model reads."""


def _torch(name: str) -> Any:
    return require("torch", extra="torch", purpose=f"the encoder 'torch:{name}'")


def label_of(model: Model) -> str:
    """Name and revision; the number format where it is not float32."""
    torch = _torch(model.name)
    return f"{model.label}+torch{'-bf16' if torch.cuda.is_available() else ''}"


class TorchClip:
    """A CLIPModel or SiglipModel of transformers, with its pictures prepared where it runs."""

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
        """The model in a directory, on the GPU where there is one. None of the model's own code is run."""
        from multimodal_eval.models.clip.encoder import preprocessing_of
        from multimodal_eval.models.clip.text import ClipTexts

        torch = _torch(model.name)
        library = require("transformers", extra="torch", purpose=f"the encoder 'torch:{model.name}'")
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
        """Which texts are longer than what the model reads."""
        return self.texts.are_cut(texts)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text."""
        import numpy as np

        torch = self.torch
        places: list[int] = []
        rows: list[Any] = []
        with torch.inference_mode():
            for positions, ids in equal_lengths(self.texts.ids(texts), tokens=TOKENS_AT_ONCE, fewest=1):
                out = self.towers.get_text_features(torch.tensor(ids, device=self.device))
                places += positions
                rows.append(self._unit(out))
            if not rows:
                return np.empty((0, 0), np.float32)
            return self._in_order(places, rows, len(texts))

    def encode_images(self, pictures: Sequence[Picture]) -> Vectors:
        """One unit vector a picture; NaN, and the picture's `fault`, where it could not be opened."""
        import numpy as np

        places: list[int] = []
        rows: list[Any] = []
        for positions, arrays in opened(pictures, self._as_array, at_once=OPENED_AT_ONCE):
            for own, vectors in self._launched(arrays):
                places += [positions[place] for place in own]
                rows.append(vectors)
        if not rows:
            return np.full((len(pictures), 1), np.nan, np.float32)
        return self._in_order(places, rows, len(pictures))

    def encode_arrays(self, arrays: Sequence[Pixels]) -> Vectors:
        """Decoded pictures, (height, width, 3) each, to unit vectors."""
        launched = list(self._launched(arrays))
        return self._in_order(
            [place for own, _ in launched for place in own], [row for _, row in launched], len(arrays)
        )

    def _as_array(self, image: Any) -> Pixels:
        import numpy as np

        self.preprocess.passes(image.height, image.width)  # refuses what the other encoder refuses
        return np.asarray(image.convert("RGB"))

    def _launched(self, arrays: Sequence[Pixels]) -> Iterator[tuple[list[int], Any]]:
        """Positions and vectors that the device still works on: nothing here waits for it."""
        with self.torch.inference_mode():
            launched = []
            for positions, batch in self._ring.carried(arrays):
                launched.append((positions, self._unit(self.image_features(self.prepared(batch)))))
        yield from launched

    def _in_order(self, places: list[int], rows: list[Any], count: int) -> Vectors:
        import numpy as np

        vectors = self.torch.cat(rows).cpu().numpy()
        found: Vectors = np.full((count, vectors.shape[1]), np.nan, np.float32)
        found[places] = vectors
        return found

    def prepared(self, batch: Any) -> Any:
        """Bytes (images, height, width, 3) to the tower's input: as Pillow and numpy do it, up to rounding."""
        torch, (columns, rows) = self.torch, self._matrices(*batch.shape[1:3])
        seen = batch[:, columns.first : columns.last, rows.first : rows.last]
        x = seen.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        x = self._rounded(x @ rows.weights.T).flatten(0, 1)
        x = self._rounded(torch.bmm(columns.weights.expand(len(x), -1, -1), x)).unflatten(0, (-1, 3))
        return x.mul_(self._gain).add_(self._shift).to(self.dtype)

    def _rounded(self, x: Any) -> Any:
        return x.add_(0.5).floor_().clamp_(0, 255)

    def _normalisation(self) -> tuple[Any, Any]:
        """What (value * scale - mean) / std multiplies by and adds, a channel."""
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
    """The weights of one direction, and the pixels that they are for: those that the crop shows."""

    weights: Any
    first: int
    last: int


@dataclass
class _Slot:
    """Room for one batch here and on the device, and when each may be used again."""

    here: Any
    there: Any
    carried: Any = None
    used: Any = None
    fills: list[Future[None]] = field(default_factory=list)


class _Ring:
    """Carries batches of equally large pictures to the device while it works on earlier ones."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.torch, self.device = torch, device
        self.on_gpu = device.type == "cuda"
        self.slots: list[_Slot] = []
        self.pool = ThreadPoolExecutor(COPIERS if self.on_gpu else 1)
        self.stream: Any = torch.cuda.Stream(device) if self.on_gpu else None

    def carried(self, arrays: Sequence[Pixels]) -> Iterator[tuple[list[int], Any]]:
        """(positions, batch on the device), in an order of the ring's own."""
        chunks = self._chunks(arrays)
        largest = max((len(chunk) * arrays[chunk[0]].nbytes for chunk in chunks), default=0)
        self._make_room(largest)
        waiting: list[tuple[list[int], _Slot]] = []
        for number, chunk in enumerate(chunks):
            slot = self.slots[number % SLOTS]
            self._fill(slot, [arrays[position] for position in chunk])
            waiting.append((chunk, slot))
            if len(waiting) == 2:  # the next one is being filled while this one is sent
                yield from self._sent(arrays, *waiting.pop(0))
        for chunk, slot in waiting:
            yield from self._sent(arrays, chunk, slot)

    def _chunks(self, arrays: Sequence[Pixels]) -> list[list[int]]:
        """Positions of pictures of one size, as many as a slot and the tower take."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for position, array in enumerate(arrays):
            by_shape.setdefault(array.shape, []).append(position)
        chunks = []
        for positions in by_shape.values():
            most = max(1, min(IMAGES_AT_ONCE, SLOT_BYTES // arrays[positions[0]].nbytes))
            chunks += [positions[start : start + most] for start in range(0, len(positions), most)]
        return chunks

    def _make_room(self, size: int) -> None:
        if self.slots and self.slots[0].here.numel() >= size:
            return
        if self.on_gpu:
            self.torch.cuda.synchronize(self.device)  # nothing may still be on its way out of the old slots
        bytes_ = self.torch.uint8
        room = SLOT_BYTES if self.on_gpu and size > SLOT_BYTES // 8 else size
        self.slots = []
        for _ in range(SLOTS):
            here = self.torch.empty(max(room, size), dtype=bytes_, pin_memory=self.on_gpu)
            there = self.torch.empty(max(room, size), dtype=bytes_, device=self.device) if self.on_gpu else here
            self.slots.append(_Slot(here, there))

    def _fill(self, slot: _Slot, arrays: Sequence[Pixels]) -> None:
        """Start to copy pictures into a slot, once what it held has left."""
        import numpy as np

        if slot.carried is not None:
            slot.carried.synchronize()
        room = slot.here[: len(arrays) * arrays[0].nbytes].numpy().reshape(len(arrays), *arrays[0].shape)

        def copy(start: int, end: int) -> None:
            for place in range(start, end):
                np.copyto(room[place], arrays[place])

        step = -(-len(arrays) // COPIERS)
        slot.fills = [
            self.pool.submit(copy, start, min(start + step, len(arrays))) for start in range(0, len(arrays), step)
        ]

    def _sent(self, arrays: Sequence[Pixels], chunk: list[int], slot: _Slot) -> Iterator[tuple[list[int], Any]]:
        for fill in slot.fills:
            fill.result()
        size = len(chunk) * arrays[chunk[0]].nbytes
        batch = slot.there[:size].view(len(chunk), *arrays[chunk[0]].shape)
        if not self.on_gpu:
            yield chunk, batch
            return
        cuda = self.torch.cuda
        if slot.used is not None:
            self.stream.wait_event(slot.used)
        with cuda.stream(self.stream):
            slot.there[:size].copy_(slot.here[:size], non_blocking=True)
            slot.carried = self.stream.record_event()
        current = cuda.current_stream(self.device)
        current.wait_event(slot.carried)
        yield chunk, batch
        slot.used = current.record_event()
