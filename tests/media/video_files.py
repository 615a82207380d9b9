"""Small videos, written by PyAV."""

from __future__ import annotations

import io

from PIL import Image


def video(frames: int, size=(64, 48), kind="mp4", codec="mpeg4") -> bytes:
    """A video whose frame number n has the grey value 10 n."""
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for number in range(frames):
            image = Image.new("RGB", size, (10 * number,) * 3)
            container.mux(stream.encode(av.VideoFrame.from_image(image)))
        container.mux(stream.encode())
    return buffer.getvalue()
