"""Downloads: the address of the Hugging Face hub, one error type, checked sizes."""

from __future__ import annotations

import http.client
import os
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from multimodal_eval.core.errors import FetchError
from multimodal_eval.resources.catalogue import File

TIMEOUT = 60
_CHUNK = 1 << 20

# (file, bytes done, total bytes)
Progress = Callable[[str, int, int], None]


def hub_address() -> str:
    """$HF_ENDPOINT, as in the hub's own library, or the public hub."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


@contextmanager
def reading(url: str, who: str) -> Iterator[IO[bytes]]:
    """The stream of a URL. A connection that breaks while it is read is a FetchError too."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as stream:
            yield stream
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise FetchError(f"{who}: {url} could not be read: {fault or type(fault).__name__}") from fault


def copy_checked(stream: IO[bytes], target: Path, file: File, progress: Progress) -> None:
    """Copy with progress. More bytes than expected are refused immediately, fewer at the end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    with target.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            done += len(chunk)
            if done > file.size:
                raise FetchError(f"{file.name} is larger than the expected {file.size:,} bytes")
            out.write(chunk)
            progress(file.name, done, file.size)
    if done != file.size:
        raise FetchError(f"{file.name} ended after {done:,} of {file.size:,} bytes")
