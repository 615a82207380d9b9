"""Memory that a process shares with its children. It has no name, so a killed process leaves nothing behind."""

from __future__ import annotations

import mmap
import os
from multiprocessing.sharedctypes import RawArray
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SharedBytes:
    """Bytes that a child process gets as an argument when it is started. Pages that are not used take no memory.

    On Linux they do not need space in /dev/shm, which is small in containers.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._memory: Any
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("mmeval")
            os.ftruncate(self._descriptor, size)
            self._memory = mmap.mmap(self._descriptor, size)
        else:
            self._memory = RawArray("B", size)

    @property
    def array(self) -> NDArray[np.uint8]:
        """The bytes."""
        import numpy as np

        return np.frombuffer(self._memory, np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._memory, mmap.mmap):
            from multiprocessing.reduction import DupFd  # not on Windows

            return _of_descriptor, (DupFd(self._descriptor), self.size)
        return _of_memory, (self._memory, self.size)


def _of_descriptor(descriptor: Any, size: int) -> SharedBytes:
    shared = SharedBytes.__new__(SharedBytes)
    shared.size, shared._descriptor = size, descriptor.detach()
    shared._memory = mmap.mmap(shared._descriptor, size)
    return shared


def _of_memory(memory: Any, size: int) -> SharedBytes:
    shared = SharedBytes.__new__(SharedBytes)
    shared.size, shared._memory = size, memory
    return shared
