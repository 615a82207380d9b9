"""Small videos, written by PyAV."""

from __future__ import annotations

import io
from fractions import Fraction

from PIL import Image


def video(frames: int, size=(64, 48), kind="mp4", codec="mpeg4", begins=None) -> bytes:
    """A video whose frame number n has the grey value 10 n; ten frames per second, or `begins`: tenths of a second."""
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for number in range(frames):
            image = Image.new("RGB", size, (10 * number,) * 3)
            frame = av.VideoFrame.from_image(image)
            if begins is not None:
                frame.pts, frame.time_base = begins[number], Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return buffer.getvalue()
