"""How torch runs a model: the device, the number format, and what a label says about them.

The device is a CUDA GPU if there is one, else the CPU. `MMEVAL_DEVICE` (`cpu`, `cuda` or `cuda:1`) overrides that. It
is not in the label: float32 is the default on every device, and vectors differ by less than 1e-5. `NAME+bf16` computes
in bfloat16, and the label says so (`+torch-bf16`).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from multimodal_eval.core.errors import ConfigError, InputError, Problem, UnavailableError
from multimodal_eval.core.optional import check_installed, expect, require

if TYPE_CHECKING:
    from multimodal_eval.models.source import Model

__all__ = [
    "DEVICE",
    "IN_TORCH",
    "Fetching",
    "Format",
    "Placement",
    "Recorded",
    "exact",
    "expected_device",
    "halving",
    "label_of",
    "place",
]

DEVICE = "MMEVAL_DEVICE"
MAX_AHEAD = 4  # batches that a GPU is given before the results of the first are needed
MIN_PINNED = 1 << 16  # bytes; less is copied faster than memory is pinned
IN_TORCH = "+torch"  # in the label of a model
Format = Literal["float32", "bf16"]
T = TypeVar("T")


def label_of(model: Model, number_format: Format, *, nvjpeg: bool = False) -> str:
    """Name and revision, that it is torch, and what decodes JPEG files: all of that changes the last digits."""
    parts = [IN_TORCH, *([] if number_format == "float32" else [number_format]), *(["nvjpeg"] if nvjpeg else [])]
    return model.label + "-".join(parts)


@dataclass(frozen=True)
class Placement:
    """The library, the device and the number format of one model."""

    torch: Any
    device: Any
    number_format: Format

    @property
    def dtype(self) -> Any:
        """The number format as torch names it."""
        return self.torch.float32 if self.number_format == "float32" else self.torch.bfloat16

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU, which works while Python continues."""
        return bool(self.device.type == "cuda")

    def upload(self, values: Any) -> Any:
        """A numpy array on the device. The copy to a GPU is not waited for."""
        tensor = self.torch.from_numpy(values)
        if not self.on_gpu:
            return tensor
        return (tensor if values.nbytes < MIN_PINNED else tensor.pin_memory()).to(self.device, non_blocking=True)

    def weights(self, *arrays: Any) -> Any:
        """Weights of a file on the device, one below the other.

        A GPU gets them as they are and converts them itself: torch would convert them with all cores of the host, which
        may be decoding images.
        """
        torch = self.torch
        as_they_are = torch.from_numpy if self.on_gpu else torch.tensor  # on the CPU, not a view of the file
        tensors = [as_they_are(array).to(self.device).to(self.dtype) for array in arrays]
        return torch.cat(tensors) if len(tensors) > 1 else tensors[0]

    @contextmanager
    def inference(self) -> Iterator[None]:
        """No gradients, and float32 products without shortened numbers (TF32)."""
        with exact(self.torch), self.torch.inference_mode():
            yield


class Fetching:
    """Copies results to the host while the device works on the next ones."""

    def __init__(self, placed: Placement) -> None:
        self.placed, self.torch = placed, placed.torch
        self._waiting: list[tuple[Any, Any, Callable[[Any], None]]] = []

    def add(self, tensor: Any, use: Callable[[Any], None]) -> None:
        """Start to copy a tensor. `use` gets it as a numpy array, which is valid during the call only."""
        if not self.placed.on_gpu:
            use(tensor.numpy())
            return
        with self.torch.inference_mode():
            copy = self.torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            copy.copy_(tensor, non_blocking=True)
        self._waiting.append((copy, self.torch.cuda.current_stream(self.placed.device).record_event(), use))
        if len(self._waiting) > MAX_AHEAD:
            self._use_first()

    def finish(self) -> None:
        """Wait for all results."""
        while self._waiting:
            self._use_first()

    def _use_first(self) -> None:
        copy, copied, use = self._waiting.pop(0)
        copied.synchronize()
        use(copy.numpy())


class Recorded:
    """A function of one tensor that is recorded as a CUDA graph per shape, and then replayed.

    A network is hundreds of operations of torch. Each gives Python's lock away and waits for it again, as long as other
    threads compute. A replay is one.
    """

    FROM, MOST = 2, 24  # a shape is recorded when it comes the second time; the most shapes
    _lock = Lock()  # nothing else is recorded or replayed meanwhile, in the same memory

    def __init__(self, placed: Placement, function: Callable[[Any], Any]) -> None:
        self.torch, self.function, self.most = placed.torch, function, self.MOST
        self._seen: Counter[tuple[int, ...]] = Counter()
        self._recordings: dict[tuple[int, ...], tuple[Any, Any, Any]] = {}
        self._memory: Any = None

    def __call__(self, x: Any) -> Any:
        """What the function returns."""
        shape = tuple(x.shape)
        with self._lock:
            self._seen[shape] += 1
            if shape in self._recordings:
                graph, given, result = self._recordings[shape]
                given.copy_(x)
                graph.replay()
                return result.clone()
        result = self.function(x)  # before a recording, it opens libraries in this thread
        with self._lock:
            is_usual = self._seen[shape] >= self.FROM and len(self._recordings) < self.most
            if is_usual and shape not in self._recordings:
                try:
                    self._recordings[shape] = self._recorded(x)
                except RuntimeError:  # no memory, or an operation that cannot be recorded
                    self.most = 0
        return result

    def _recorded(self, x: Any) -> tuple[Any, Any, Any]:
        cuda, given = self.torch.cuda, x.clone()
        graph = cuda.CUDAGraph()
        self._memory = self._memory or cuda.graph_pool_handle()
        with cuda.graph(graph, pool=self._memory, capture_error_mode="thread_local"):
            result = self.function(given)
        return graph, given, result


def place(purpose: str, number_format: Format = "float32") -> Placement:
    """The device that this process uses for models. Raises if torch or the device is missing."""
    torch = require("torch", extra="torch", purpose=purpose)
    device = _device(lambda: torch.cuda.device_count() if torch.cuda.is_available() else 0)
    return Placement(torch, torch.device(device), number_format)


def expected_device(purpose: str) -> str:
    """The device that `place` will use, by the driver of the GPU, because torch takes seconds to import.

    Raises as `place` does. A torch without CUDA is found by `place` only.
    """
    check_installed("torch", extra="torch", purpose=purpose)
    device = _device(_gpus_of_driver)
    expect("torch")
    return device


def _gpus_of_driver() -> int:
    from ctypes import CDLL, byref, c_int

    count = c_int()
    try:
        driver = CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(byref(count)) == 0 else 0
    except (OSError, AttributeError):
        return 0


def _device(count_gpus: Callable[[], int]) -> str:
    wanted = os.environ.get(DEVICE, "").strip().lower()
    if not wanted:
        return "cuda" if count_gpus() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", wanted):
        raise ConfigError(f"{DEVICE} must be cpu, cuda or cuda:NUMBER. Got {os.environ[DEVICE]!r} instead.")
    if wanted == "cpu":
        return wanted
    count = count_gpus()
    number = int(wanted.partition(":")[2] or 0)
    if number >= count:
        there = f"torch sees {count} GPU{'' if count == 1 else 's'}" if count else "torch sees no GPU"
        raise UnavailableError(f"{DEVICE} is {wanted}, but {there}. Unset it, or set it to cpu")
    return wanted


_lock, _users = Lock(), 0
_settings: tuple[str | None, bool | None, dict[str, str]] = (None, None, {})


@contextmanager
def exact(torch: Any) -> Iterator[None]:
    """Multiply float32 numbers in full. The settings of the process are put back when the last user leaves."""
    global _users, _settings  # as torch's settings are
    with _lock:
        if _users == 0:
            _settings = _read(torch)
            torch.set_float32_matmul_precision("highest")
            torch.backends.cudnn.allow_tf32 = False
            for part in _backends(torch).values():
                part.fp32_precision = "ieee"
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _restore(torch, *_settings)


def _backends(torch: Any) -> dict[str, Any]:
    """The parts of torch that have a precision of their own."""
    backends = torch.backends
    return {
        "cuda": backends.cuda.matmul,
        "conv": backends.cudnn.conv,
        "rnn": backends.cudnn.rnn,
        "cpu": backends.mkldnn.matmul,
    }


def _read(torch: Any) -> tuple[str | None, bool | None, dict[str, str]]:
    """The older settings, which cannot be read if a process has used both kinds, and the newer ones."""
    try:
        matmul: str | None = torch.get_float32_matmul_precision()
    except RuntimeError:
        matmul = None
    try:
        convolution: bool | None = torch.backends.cudnn.allow_tf32
    except RuntimeError:
        convolution = None
    return matmul, convolution, {name: part.fp32_precision for name, part in _backends(torch).items()}


def _restore(torch: Any, matmul: str | None, convolution: bool | None, precisions: dict[str, str]) -> None:
    if matmul is not None:
        torch.set_float32_matmul_precision(matmul)
    if convolution is not None:
        torch.backends.cudnn.allow_tf32 = convolution
    for name, part in _backends(torch).items():
        if part.fp32_precision != precisions[name]:
            part.fp32_precision = precisions[name]


def _refused(item: object, reason: str) -> None:
    """An input that does not fit alone is an `InputError`: it belongs to its sample."""
    raise InputError([Problem(code="TOO_LONG", message=reason)])


def halving(
    torch: Any,
    work: Callable[[Sequence[T]], None],
    batch: Sequence[T],
    refuse: Callable[[T, str], None] = _refused,
) -> None:
    """Do the work of a batch. If the memory of the GPU is not enough, do it for each half.

    `refuse` is called with an input that does not fit alone, and the reason.
    """
    reason = None
    try:
        work(batch)
    except torch.OutOfMemoryError as fault:
        reason = f"a single input does not fit into the memory of the GPU: {(str(fault).splitlines() or [''])[0]}"
    if reason is None:
        return
    torch.cuda.empty_cache()  # outside of `except`, which would keep the tensors of the failed attempt
    if len(batch) == 1:
        refuse(batch[0], reason)
        return
    middle = len(batch) // 2
    halving(torch, work, batch[:middle], refuse)
    halving(torch, work, batch[middle:], refuse)
