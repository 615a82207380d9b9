"""CLIP and SigLIP in torch, optimised for a GPU: `torch:NAME`, needs the extra `[torch]`.

Images of the same size are batched as bytes. Those that other processes decode are uploaded from the memory shared with
them, by a separate stream, while the GPU works on earlier batches. Resizing is two matrix products with Pillow's
weights. The towers run in float32, or in bfloat16 as `torch:NAME+bf16`, which the label says, and on a GPU as CUDA
graphs. With `+nvjpeg` the GPU decodes usual JPEG files, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.core.errors import ImageError
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.clip import towers_torch
from multimodal_eval.models.clip.lazy_images import LazyImage, open_in_groups
from multimodal_eval.models.clip.nvjpeg import FILES_PER_CALL, LANES, Decoder, nvjpeg_library
from multimodal_eval.models.clip.preprocessing import HandOver, Preprocessing, matrices
from multimodal_eval.models.clip.towers_torch import TorchTowers, Towers
from multimodal_eval.models.torch_device import (
    Fetching,
    Format,
    Placement,
    Recorded,
    expected_device,
    halving,
    label_of,
    place,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.source import Model

    Pixels = NDArray[np.uint8]
    Vectors = NDArray[np.float32]


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


IMAGES_PER_BATCH = 256
BYTES_PER_BATCH = 512 << 20
IMAGES_PER_GROUP = 256  # opened together
WHOLE_UP_TO = 1 << 19  # pixels: larger images are resized before they are sent, so that many fit into memory
FILE_UP_TO = 1 << 22  # pixels: larger images are decoded on the CPU, too
TOKENS_PER_BATCH = 1 << 15
FIRST_TEXTS, FIRST_SIZE, FIRST_TEXT = 64, (480, 640), "a photo of a dog that runs on the beach"
PADDING = 0  # a token of CLIP that is not the end
LENGTHS = 8  # padded texts have a multiple of so many tokens, so that few shapes occur


class Texts(Protocol):
    """The tokenizer protocol of the encoder, which `ClipTexts` implements."""

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""


def check(model: Model, *, nvjpeg: bool = False) -> None:
    """Check that the model, the packages and the device are available."""
    model.check()
    device = expected_device(f"the encoder 'torch:{model.name}'")
    towers_torch.check(model)
    if nvjpeg:
        nvjpeg_library(device)


class TorchClip:
    """A CLIP or SigLIP that preprocesses images on its own device. With a decoder, it opens usual JPEG files itself."""

    def __init__(
        self,
        towers: Towers,
        preprocess: Preprocessing,
        texts: Texts,
        placed: Placement,
        label: str,
        decoder: Decoder | None = None,
    ) -> None:
        self.label, self.preprocess, self.texts, self.decoder = label, preprocess, texts, decoder
        self.placed, self.torch, self.device, self.dtype = placed, placed.torch, placed.device, placed.dtype
        self.towers = towers
        self.is_concurrent = placed.on_gpu  # one thread can prepare what the device computes next
        self.image_features: Callable[[Any], Any] = towers.image_features
        self.text_features: Callable[[Any], Any] = towers.text_features
        self._gain, self._shift = self._normalisation()
        self._weights: dict[tuple[int, int], tuple[_Pass, _Pass]] = {}
        self.hand_over = HandOver(preprocess, WHOLE_UP_TO, 0 if decoder is None else FILE_UP_TO)
        self._receiving: Any = None  # the stream of the thread that receives images
        self._warming: list[Future[None]] = []  # images, texts

    @classmethod
    def of(cls, model: Model, number_format: Format = "float32", *, nvjpeg: bool = False) -> TorchClip:
        """Open the model of a directory, on the GPU if there is one. Code that comes with the model is not run."""
        from multimodal_eval.models.clip.encoder import ClipTexts, preprocessing_of

        placed = place(f"the encoder 'torch:{model.name}'", number_format)
        model.verify()
        towers = towers_torch.open_towers(model, placed)
        decoder = Decoder(placed) if nvjpeg else None
        label = label_of(model, number_format, nvjpeg=nvjpeg)
        opened = cls(towers, preprocessing_of(model), ClipTexts(model), placed, label, decoder)
        if placed.on_gpu:
            if isinstance(towers, TorchTowers):
                opened.image_features = Recorded(placed, towers.image_features)
                opened.text_features = Recorded(placed, towers.text_features)
            opened.warm_up()
        return opened

    def warm_up(self) -> None:
        """Start to compute something small: the libraries load their kernels, which takes a second or two.

        In the meantime the processes that decode images start.
        """

        def tried(work: Callable[[], None]) -> None:
            with suppress(Exception):  # if there is not enough memory, the real images and texts say so
                work()

        threads = ThreadPoolExecutor(3)
        tasks = (self._encode_black, self._encode_word, self._decode_black)
        self._warming = [threads.submit(tried, work) for work in tasks]
        threads.shutdown(wait=False)

    def _encode_black(self) -> None:
        with self.placed.inference():
            black = self.torch.zeros((IMAGES_PER_BATCH, *FIRST_SIZE, 3), dtype=self.torch.uint8, device=self.device)
            for _ in range(Recorded.FROM):
                self._unit(self.image_features(self.prepared(black))).cpu()

    def _decode_black(self) -> None:
        if self.decoder is not None:
            for _ in range(LANES):
                self.decoder([_black_file()] * FILES_PER_CALL, *FIRST_SIZE)

    def _encode_word(self) -> None:
        import numpy as np

        with self.placed.inference():
            ids = self.placed.upload(np.array(self.texts.ids([FIRST_TEXT] * FIRST_TEXTS)))
            self._unit(self.text_features(ids)).cpu()

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        return self.texts.are_cut(texts)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""
        import numpy as np

        wait(self._warming[1:2])
        vectors = _Vectors(self.placed, len(texts))

        def run(batch: Sequence[tuple[int, Sequence[int]]]) -> None:
            ids = self.placed.upload(np.array([ids for _, ids in batch]))
            with self.placed.inference():
                computed = self._unit(self.text_features(ids))
            vectors.add([position for position, _ in batch], computed)

        for positions, ids in self._text_batches(self.texts.ids(texts)):
            halving(self.torch, run, list(zip(positions, ids, strict=True)))
        return vectors.finished() if texts else np.empty((0, 0), np.float32)

    def _text_batches(self, ids: list[list[int]]) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Batches of about `TOKENS_PER_BATCH` tokens: positions and rows of the same length.

        CLIP's text tower is causal, and the vector is that of the first end token: what follows it has no effect. So
        its rows are padded, and a part of a run is one batch instead of one for every length.
        """
        if not self.towers.ignores_padding:
            for positions, rows in equal_lengths(ids, tokens=TOKENS_PER_BATCH):
                yield positions, [list(row) for row in rows]
            return
        order = sorted(range(len(ids)), key=lambda position: -len(ids[position]))
        while order:
            longest = min(-(-len(ids[order[0]]) // LENGTHS) * LENGTHS, self.towers.longest)
            count = max(1, TOKENS_PER_BATCH // max(1, longest))
            positions, order = order[:count], order[count:]
            yield positions, [ids[position] + [PADDING] * (longest - len(ids[position])) for position in positions]

    def encode_images(self, images: Sequence[LazyImage]) -> Vectors:
        """One unit vector per image. An image that cannot be opened gets NaN, and its `fault` is set.

        So does an image that does not fit into the memory of the GPU, not even alone.
        """
        wait(self._warming[:1])
        vectors = _Vectors(self.placed, len(images))

        def run(batch: Sequence[tuple[int, Any]]) -> None:
            with self.placed.inference():
                stacked = self.torch.stack([tensor.to(self.device) for _, tensor in batch])
                computed = self._unit(self.image_features(self.prepared(stacked)))
            vectors.add([position for position, _ in batch], computed)

        def refuse(image: tuple[int, Any], reason: str) -> None:
            images[image[0]].fault = reason

        for places, opened in open_in_groups(images, self._opened, group_size=IMAGES_PER_GROUP):
            tensors = dict(zip(places, opened, strict=True))
            tensors |= self._encode_files(images, tensors, vectors)
            positions = [place for place, tensor in tensors.items() if tensor is not None]
            shapes = [tensors[place].shape for place in positions]
            for chunk in chunks_by_shape(shapes, IMAGES_PER_BATCH, BYTES_PER_BATCH):
                halving(self.torch, run, [(positions[index], tensors[positions[index]]) for index in chunk], refuse)
        return vectors.finished()

    def receive(self, pixels: Pixels) -> Sequence[Any]:
        """What `hand_over` returned for several images in another process, as tensors on the device.

        The memory of the pixels is then free again. If the memory of the device is not enough, they are kept on the
        host, and uploaded with their batch. The bytes of files are decoded with their batch.
        """
        if pixels.ndim == 2:
            return [file.copy() for file in pixels]
        if self.placed.on_gpu:
            try:
                return self._uploaded(pixels)
            except self.torch.OutOfMemoryError:
                pass
        return list(self.torch.from_numpy(pixels.copy()))

    def _uploaded(self, pixels: Pixels) -> Sequence[Any]:
        torch = self.torch
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

    def _opened(self, image: LazyImage) -> Any:
        import numpy as np

        content = None if self.decoder is None else image.file(self.hand_over.keeps_file)
        return self._opened_by_pillow(image) if content is None else np.frombuffer(content, np.uint8)

    def _opened_by_pillow(self, image: LazyImage) -> Any:
        return self.receive(self.hand_over(image.open())[None].copy())[0]  # torch refuses memory that it cannot write

    def _encode_files(self, images: Sequence[LazyImage], opened: dict[int, Any], vectors: _Vectors) -> dict[int, Any]:
        """Encode the files among opened images, by position. Returns None for each of them.

        For a file that the decoder refuses, it returns what any other image gives.
        """
        import numpy as np

        files = {position: file for position, file in opened.items() if isinstance(file, np.ndarray)}
        by_size: dict[tuple[int, int], list[int]] = {}
        for position, file in files.items():
            by_size.setdefault(self._size(file), []).append(position)
        rest: dict[int, Any] = dict.fromkeys(files)
        for size, positions in by_size.items():
            for kept, batch in self._decoded(positions, files, *size):
                if batch is None:
                    rest[kept[0]] = self._unless_refused(images[kept[0]])
                    continue

                def refuse(index: int, reason: str, kept: list[int] = kept) -> None:
                    images[kept[index]].fault = reason

                self._encode_batch(kept, batch, vectors, refuse)
        return rest

    def _unless_refused(self, image: LazyImage) -> Any:
        try:
            return self._opened_by_pillow(image)
        except ImageError as fault:
            image.fault = str(fault)
            return None

    def _size(self, file: Pixels) -> tuple[int, int]:
        assert self.decoder is not None
        try:
            return self.decoder.size(file)
        except RuntimeError:
            return 0, 0

    def _decoded(
        self, positions: list[int], files: dict[int, Pixels], height: int, width: int
    ) -> Iterator[tuple[list[int], Any]]:
        """Batches of pixels (images, height, width, channels); None for a single file that the decoder refuses."""
        assert self.decoder is not None
        try:
            if height == 0:
                raise RuntimeError
            yield positions, self.decoder([files[position] for position in positions], height, width)
        except RuntimeError:  # one is enough, or there is not enough memory for all
            half = len(positions) // 2
            if half == 0:
                yield positions, None
                return
            yield from self._decoded(positions[:half], files, height, width)
            yield from self._decoded(positions[half:], files, height, width)

    def _encode_batch(
        self, positions: list[int], batch: Any, vectors: _Vectors, refuse: Callable[[int, str], None]
    ) -> None:
        """Encode images of one batch on the device."""

        def run(places: Sequence[int]) -> None:
            part = slice(places[0], places[-1] + 1)
            with self.placed.inference():
                computed = self._unit(self.image_features(self.prepared(batch[part])))
            vectors.add(positions[part], computed)

        halving(self.torch, run, range(len(positions)), refuse)

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

    def _unit(self, features: Any) -> Any:
        rows = features.float()
        return rows / rows.norm(dim=-1, keepdim=True)


def _black_file() -> Pixels:
    from io import BytesIO

    import numpy as np
    from PIL import Image

    file = BytesIO()
    Image.new("RGB", FIRST_SIZE[::-1]).save(file, "JPEG")
    return np.frombuffer(file.getvalue(), np.uint8)


class _Vectors:
    """Takes vectors off the device in any order, while it computes the next ones."""

    def __init__(self, placed: Placement, count: int) -> None:
        self._fetching, self._count = Fetching(placed), count
        self._rows: Vectors | None = None  # their width is known with the first batch

    def add(self, positions: Sequence[int], computed: Any) -> None:
        self._fetching.add(computed, partial(self._put, positions))

    def _put(self, positions: Sequence[int], computed: Vectors) -> None:
        if self._rows is None:
            self._rows = _missing(self._count, computed.shape[1])
        self._rows[positions] = computed

    def finished(self) -> Vectors:
        """One row per position; NaN if there is no vector for it."""
        self._fetching.finish()
        return _missing(self._count, 1) if self._rows is None else self._rows


def _missing(count: int, width: int) -> Vectors:
    import numpy as np

    return np.full((count, width), np.nan, np.float32)


@dataclass(frozen=True)
class _Pass:
    """The weights of one direction, and the range of pixels that the crop uses."""

    weights: Any
    first: int
    last: int
