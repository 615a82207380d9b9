"""JPEG files decoded on an NVIDIA GPU by nvJPEG, in batches of equally large images.

torchvision has the library, and decodes with it one tensor per file. Every operation of torch hands over Python's lock,
which costs more than the decoding if other threads wait for it: here a batch is one call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t, c_void_p
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import MissingPackageError, UnavailableError
from multimodal_eval.models.source import NVJPEG

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.torch_device import Placement

    File = NDArray[np.uint8]

FILES_PER_CALL = 128
LANES = 2
_GPU_HYBRID, _HARDWARE = 2, 3  # backends: any GPU, and the decoders of some GPUs
_RGB = 3  # planes
_NAMES = ("libnvjpeg.so.13", "libnvjpeg.so.12")


class _Planes(ctypes.Structure):
    """nvjpegImage_t: where the planes of an image go, and the bytes of their rows."""

    _fields_ = (("channel", c_void_p * 4), ("pitch", c_size_t * 4))


def nvjpeg_library(device: str) -> str:
    """The file of the library; an error that says what is missing if there is none for this device."""
    if device == "cpu":
        raise UnavailableError(f"{NVJPEG} decodes images on an NVIDIA GPU, and torch uses the CPU here. Leave it out")
    package = find_spec("torchvision")
    if package is None or package.origin is None:
        raise MissingPackageError(
            f"{NVJPEG} needs the package torchvision, in the build that belongs to the installed torch. "
            "Install it with: pip install torchvision"
        )
    folder = Path(package.origin).parent
    files = [*folder.with_name("torchvision.libs").glob("libnvjpeg*"), *folder.glob("nvjpeg*.dll")]
    return str(files[0]) if files else _NAMES[0]


class Decoder:
    """Decodes in any number of threads. A file that it refuses is a RuntimeError."""

    def __init__(self, placed: Placement) -> None:
        self.torch, self.device = placed.torch, placed.device
        name = nvjpeg_library(placed.device.type)
        try:
            self._library = ctypes.CDLL(name)
        except OSError as fault:
            raise UnavailableError(f"{NVJPEG} needs nvJPEG, which torchvision does not have here: {fault}") from None
        self._briefly = ctypes.PyDLL(name)  # for short calls, which keep Python's lock
        self._handle = c_void_p()
        self.torch.zeros(1, device=self.device)  # torch initialises the device
        for backend in (_HARDWARE, _GPU_HYBRID):
            status = self._library.nvjpegCreateEx(backend, None, None, 0, byref(self._handle))
            if status == 0:
                break
        _check(status, "open")
        self._free: SimpleQueue[_Lane] = SimpleQueue()
        for _ in range(LANES):
            self._free.put(_Lane(self._library, self._handle, self.torch.cuda.Stream(self.device, priority=-1)))

    def size(self, file: File) -> tuple[int, int]:
        """Height and width by the header of a file."""
        channels, sampling, widths, heights = c_int(), c_int(), (c_int * 4)(), (c_int * 4)()
        status = self._briefly.nvjpegGetImageInfo(
            self._handle, c_void_p(_address(file)), c_size_t(file.nbytes), byref(channels), byref(sampling), widths,
            heights,
        )  # fmt: skip
        _check(status, "read")
        return heights[0], widths[0]

    def __call__(self, files: Sequence[File], height: int, width: int) -> Any:
        """The pixels of files of one size on the device, (files, height, width, 3)."""
        torch, lane = self.torch, self._free.get()
        try:
            with torch.cuda.stream(lane.stream):
                batch = torch.empty((len(files), 3, height, width), dtype=torch.uint8, device=self.device)
            for start in range(0, len(files), FILES_PER_CALL):
                lane.decode(files[start : start + FILES_PER_CALL], batch.data_ptr(), start, height * width, width)
        finally:
            self._free.put(lane)
        batch.record_stream(torch.cuda.current_stream(self.device))
        return batch.permute(0, 2, 3, 1)


class _Lane:
    """What one thread at a time decodes with: a stream, and the state of nvJPEG, which takes a third of a second."""

    def __init__(self, library: Any, handle: c_void_p, stream: Any) -> None:
        self.library, self.handle, self.stream = library, handle, stream
        self.state: c_void_p | None = None
        self.count = 0

    def decode(self, files: Sequence[File], memory: int, start: int, plane: int, pitch: int) -> None:
        """Decode files into planes of one size, from number `start` on, and wait for them."""
        library, count = self.library, len(files)
        if self.state is None:
            self.state, self.count = c_void_p(), 0
            _check(library.nvjpegJpegStateCreate(self.handle, byref(self.state)), "prepare")
        if self.count != count:
            _check(library.nvjpegDecodeBatchedInitialize(self.handle, self.state, count, 1, _RGB), "prepare")
            self.count = count
        contents = (c_void_p * count)(*map(_address, files))
        sizes = (c_size_t * count)(*(file.nbytes for file in files))
        targets = (_Planes * count)()
        for number, target in enumerate(targets, start):
            for channel in range(3):
                target.channel[channel] = memory + (3 * number + channel) * plane
                target.pitch[channel] = pitch
        stream = c_void_p(self.stream.cuda_stream)
        try:
            _check(library.nvjpegDecodeBatched(self.handle, self.state, contents, sizes, targets, stream), "decode")
            self.stream.synchronize()
        except RuntimeError:
            self.state = None  # it may be unusable
            raise


def _address(file: File) -> int:
    address: int = file.__array_interface__["data"][0]
    return address


def _check(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"nvJPEG cannot {what}: status {status}")
