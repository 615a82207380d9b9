"""Damaged images and audio files: each is loaded within the limits, or refused with a reason."""

from __future__ import annotations

import struct
from functools import cache, partial
from pathlib import Path
from random import Random

import numpy as np

from multimodal_eval.media.audio import load_audio
from multimodal_eval.media.images import decoded_into, header, load_image_any
from multimodal_eval.media.outgoing import audio_file, image_file, video_file
from multimodal_eval.media.policy import MediaPolicy
from tests.hostile.campaign import FaultError, campaign, tried
from tests.hostile.mutations import damaged
from tests.media.image_files import encoded, gif_with_a_larger_frame, gradient, png_bomb, webp_bomb
from tests.media.wav_files import EXTENSIBLE, FLOAT, pcm16, wav

POLICY = MediaPolicy(max_pixels=1_000_000, max_bytes=1 << 22, max_audio_seconds=60)


@cache
def images() -> tuple[bytes, ...]:
    """Small images of every format, in several modes and with several options."""
    plain = [encoded(gradient(31, 17), kind) for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")]
    modes = [encoded(gradient(9, 9, mode), "PNG") for mode in ("1", "L", "LA", "P", "RGBA", "I;16")]
    jpegs = [encoded(gradient(40, 40), "JPEG", progressive=True), encoded(gradient(40, 40, "CMYK"), "JPEG")]
    tiffs = [
        encoded(gradient(20, 20, mode), "TIFF", compression=compression)
        for mode in ("RGB", "L")
        for compression in ("tiff_lzw", "tiff_deflate", "packbits", "jpeg")
    ]
    animated = encoded(gradient(8, 8), "GIF", save_all=True, append_images=[gradient(8, 8, "L").convert("RGB")])
    webp = [encoded(gradient(20, 20), "WEBP", lossless=True), encoded(gradient(20, 20, "RGBA"), "WEBP")]
    return (*plain, *modes, *jpegs, *tiffs, animated, *webp, png_bomb(), webp_bomb(), gif_with_a_larger_frame(9_000))


@cache
def audio_files() -> tuple[bytes, ...]:
    """Short WAV files of every kind."""
    samples = pcm16(*range(-800, 800))
    extensible = struct.pack("<HHI", 22, 16, 3) + b"\x01\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    return (
        wav(samples),
        wav(samples, channels=2),
        wav(samples[:-2], bits=24, channels=1),
        wav(samples, bits=8, channels=4),
        wav(struct.pack("<400f", *(number / 400 for number in range(400))), tag=FLOAT, bits=32),
        wav(samples, tag=EXTENSIBLE, extended=extensible),
        wav(samples, length=0xFFFFFFFF, riff=0xFFFFFFFF),
        b"fLaC" + bytes(200),
        b"OggS" + bytes(200),
        b"ID3" + bytes(200),
    )


@campaign("images", cases=4_000)
def attack_images(random: Random, folder: Path) -> str | None:
    file = folder / "image"
    file.write_bytes(damaged(random, random.choice(images())))
    loaded = []
    verdict = tried(lambda: loaded.append(load_image_any(file, policy=POLICY)))
    for image in loaded:
        if image.mode != "RGB" or image.width * image.height > POLICY.max_pixels:
            raise FaultError(f"an image of {image.size} in mode {image.mode}")
    return verdict


@cache
def jpegs() -> tuple[bytes, ...]:
    """Small JPEG files of every usual kind."""
    kinds = [{"subsampling": n, "progressive": progressive} for n in (0, 1, 2) for progressive in (False, True)]
    return tuple(encoded(gradient(40, 30), "JPEG", restart_marker_blocks=n % 3, **k) for n, k in enumerate(kinds))


@campaign("jpeg", cases=4_000)
def attack_jpeg(random: Random, folder: Path) -> str | None:
    """What simplejpeg decodes has Pillow's pixels, and nothing is written behind them."""
    content = damaged(random, random.choice(jpegs()))
    memory = np.full(POLICY.max_pixels // 10, 7, np.uint8)
    decoded: list[np.ndarray | None] = []
    verdict = tried(lambda: decoded.append(decoded_into(memory, content, POLICY, lambda width, height: True)))
    for pixels in decoded:
        if pixels is not None and not np.array_equal(pixels[..., :3], np.asarray(load_image_any(content))):
            raise FaultError(f"other pixels than Pillow's: {pixels.shape}")
        if pixels is not None and (memory[pixels.size :] != 7).any():
            raise FaultError(f"bytes were written behind {pixels.shape}")
    return verdict


@campaign("audio", cases=4_000)
def attack_audio(random: Random, folder: Path) -> str | None:
    file = folder / "audio"
    file.write_bytes(damaged(random, random.choice(audio_files())))
    loaded = []
    verdict = tried(lambda: loaded.append(load_audio(file, policy=POLICY)))
    for audio in loaded:
        seconds = len(audio.samples) / audio.rate
        if not 0 < seconds <= POLICY.max_audio_seconds or abs(audio.samples).max() > 1:
            raise FaultError(f"audio of {seconds} s at {audio.rate} Hz")
    return verdict


@campaign("outgoing", cases=2_000)
def attack_outgoing(random: Random, folder: Path) -> str | None:
    """What is sent to a model is within the limits, or refused."""
    content = damaged(random, random.choice((*images(), *audio_files())))
    (folder / "media").write_bytes(content)
    sent = []
    limit = random.choice((None, 1, 50, 10_000))
    verdict = tried(lambda: sent.append(image_file(content, POLICY, limit)))
    for mime, file in sent:
        width, height = header(file, POLICY).size
        if not mime.startswith("image/") or (limit is not None and width * height > limit):
            raise FaultError(f"{mime} of {width} x {height} pixels for a limit of {limit}")
    for read in (audio_file, video_file):
        tried(partial(read, content, POLICY))
    return verdict
