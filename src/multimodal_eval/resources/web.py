"""Reading from the web: where the Hugging Face hub is, and one error for whatever goes wrong."""

from __future__ import annotations

import http.client
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from multimodal_eval.core.errors import FetchError

TIMEOUT = 60


def hub_address() -> str:
    """$HF_ENDPOINT, as the hub's own library takes it, or the hub itself."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


@contextmanager
def reading(url: str, who: str) -> Iterator[IO[bytes]]:
    """The stream behind an address. A connection that breaks while it is read is a FetchError too."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as stream:
            yield stream
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise FetchError(f"{who}: {url} could not be read: {fault or type(fault).__name__}") from fault
