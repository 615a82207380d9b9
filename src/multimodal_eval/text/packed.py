"""Tables of this package that are packed with Brotli, by which a wheel stays small."""

from __future__ import annotations


def unpacked(name: str) -> bytes:
    """The content of a packed file beside this module."""
    from importlib.resources import files

    import pyarrow as pa

    packed = (files("multimodal_eval.text") / name).read_bytes()
    with pa.CompressedInputStream(pa.BufferReader(packed), "brotli") as stream:
        return bytes(stream.read())
