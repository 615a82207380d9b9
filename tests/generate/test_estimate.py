"""Estimates of tokens and bytes by the stated rules."""

from __future__ import annotations

from io import BytesIO

import pytest
from PIL import Image

from multimodal_eval.core.config import Parameters
from multimodal_eval.generate.meter import Estimate, input_tokens, request_bytes
from multimodal_eval.generate.protocol import Media, Request, Text, Turn


def png(width, height):
    stream = BytesIO()
    Image.new("RGB", (width, height)).save(stream, "PNG")
    return stream.getvalue()


def request(*parts, most=None):
    return Request("a", (Turn("user", parts),), Parameters(max_tokens=most))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("abcd", 1), ("abcde", 2), ("красный", 4)],  # 14 bytes: 3.5 tokens
)
def test_four_bytes_of_text_are_a_token(text, tokens):
    assert input_tokens(request(Text(text))) == tokens + 4  # 4 per turn


@pytest.mark.parametrize(
    ("media", "tokens"),
    [
        (Media("image", "image/png", png(28, 28)), 1),
        (Media("image", "image/png", png(29, 56)), 4),  # 2 x 2 patches
        (Media("image", "image/png", png(280, 280), detail="low"), 85),
        (Media("image", "image/png", url="https://example.org/a.png"), 1024),
        (Media("image", "image/png", b"not an image"), 1024),
        (Media("audio", "audio/wav", bytes(16_000)), 32),  # one second
        (Media("video", "video/mp4", bytes(125_000)), 300),  # one second
        (Media("video", "video/mp4", frames=(png(28, 28), png(56, 28))), 3),
    ],
)
def test_media_by_their_size(media, tokens):
    assert input_tokens(request(media)) == tokens + 4


def test_bytes_are_those_of_text_and_media():
    assert request_bytes(request(Text("é"), Media("audio", "audio/wav", bytes(10)))) == 12


def test_the_sum_of_requests():
    estimate = Estimate()
    estimate.add(request(Text("abcd"), most=10))
    estimate.add(request(Text("abcd"), most=10), cached=1)
    estimate.add(request(Text("abcdefgh"), most=10))
    assert estimate == Estimate(requests=3, cached=1, bytes=12, input_tokens=5 + 6, most_output_tokens=20)


def test_without_a_limit_the_output_is_unknown():
    estimate = Estimate()
    estimate.add(request(Text("a"), most=10))
    estimate.add(request(Text("a")))
    estimate.add(request(Text("a"), most=10))
    assert estimate.most_output_tokens is None
