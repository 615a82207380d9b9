"""The decoding pool: the pixels and reasons of this process, whatever happens to its processes."""

from __future__ import annotations

import base64
import io
import os
import signal
import threading
import time
from multiprocessing import active_children, heap

import numpy as np
import pytest
from PIL import Image, ImageCms

from multimodal_eval.core.errors import ImageError
from multimodal_eval.evaluation.decoding import pool as pool_module
from multimodal_eval.evaluation.decoding.pool import CRASHED, DecodingPool, Line
from multimodal_eval.evaluation.decoding.worker import Job
from multimodal_eval.media.images import load_image_any, usual_jpeg
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.models.cache import VectorCache
from multimodal_eval.models.clip.lazy_images import cached_content, image_key
from tests.evaluation.decoding.hand_overs import CROPPED, FATAL, FILES, WHOLE, Failing, Fatal, exits
from tests.media.image_files import FORMATS, encoded, gif_with_a_larger_frame, gradient, png, png_bomb, webp_bomb


@pytest.fixture(scope="module")
def pool():
    pool = DecodingPool(2)
    yield pool
    pool.close()


def line(hand_over=WHOLE, *, policy=None, cache=None, receive=lambda pixels: list(np.copy(pixels))):
    return Line(Job(policy or MediaPolicy(), hand_over, cache), receive)


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(gradient(31, 17), "JPEG", exif=exif)


def contents():
    """Every format, and every kind of JPEG; some cannot be decoded."""
    photo = gradient(61, 47)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    jpegs = [
        *(encoded(photo, "JPEG", subsampling=subsampling, quality=90) for subsampling in (0, 1, 2)),
        *(encoded(gradient(w, h), "JPEG") for w, h in ((1, 1), (7, 9), (8, 8), (17, 16), (640, 480))),
        encoded(photo, "JPEG", progressive=True, quality=95),
        encoded(photo, "JPEG", optimize=True, quality=20),
        encoded(photo, "JPEG", icc_profile=profile),
        encoded(photo, "JPEG", restart_marker_rows=1),
        encoded(photo.convert("L"), "JPEG"),
        encoded(photo.convert("CMYK"), "JPEG"),
        encoded(photo, "JPEG")[:-200],
        *map(turned, range(1, 9)),
    ]
    others = [encoded(photo, kind) for kind in FORMATS]
    others += [encoded(photo.convert(mode)) for mode in ("1", "L", "P", "LA", "RGBA")]
    others += [png(3, 2, depth=16, rows=bytes(14)), encoded(gradient(1500, 900), "JPEG", quality=60)]
    refused = [b"", b"text", png_bomb(), webp_bomb(), gif_with_a_larger_frame(9000), encoded(photo)[:60]]
    refused.append(encoded(Image.new("L", (1, 15_000))))
    return jpegs + others + refused


def expected(content, hand_over):
    try:
        return hand_over(load_image_any(content)), None
    except ImageError as fault:
        return None, str(fault)


@pytest.mark.parametrize("hand_over", [WHOLE, CROPPED], ids=["whole", "cropped"])
@pytest.mark.parametrize("source", ["path", "bytes", "data URI"])
def test_pixels_and_reasons_are_those_of_this_process(pool, tmp_path, hand_over, source):
    images = contents()
    sources = []
    for number, content in enumerate(images):
        path = tmp_path / str(number)
        path.write_bytes(content)
        uri = "data:;base64," + base64.b64encode(content).decode()
        sources.append({"path": str(path), "bytes": content, "data URI": uri}[source])
    tickets = pool.submit(line(hand_over), sources).wait()
    assert [ticket.source for ticket in tickets] == sources
    for ticket, content in zip(tickets, images, strict=True):
        pixels, fault = expected(content, hand_over)
        assert ticket.fault == fault
        assert ticket.key == image_key(content)
        if pixels is not None:
            np.testing.assert_array_equal(ticket.received[..., :3], pixels[..., :3])
    assert sum(ticket.fault is not None for ticket in tickets) == 8


def test_files_that_a_gpu_decodes_are_handed_over_as_they_are(pool, tmp_path):
    images = contents()
    for number, content in enumerate(images):
        (tmp_path / str(number)).write_bytes(content)
    tickets = pool.submit(line(FILES), [str(tmp_path / str(number)) for number in range(len(images))]).wait()
    files = 0
    for ticket, content in zip(tickets, images, strict=True):
        pixels, fault = expected(content, WHOLE)
        assert ticket.fault == fault
        if pixels is not None and usual_jpeg(content, MediaPolicy(), FILES.keeps_file) is not None:
            assert ticket.received.tobytes() == content
            files += 1
        elif pixels is not None:
            np.testing.assert_array_equal(ticket.received[..., :3], pixels[..., :3])
    assert files > 3


def test_a_file_that_may_not_be_read_has_the_reason_of_the_policy(pool, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    policy = MediaPolicy(root=inside)
    (tmp_path / "out.png").write_bytes(encoded(gradient()))
    sources = ["missing.png", "../out.png", ".", "a\0b"]
    tickets = pool.submit(line(policy=policy), sources).wait()
    for ticket in tickets:
        with pytest.raises(ImageError) as refusal:
            load_image_any(ticket.source, policy=policy)
        assert ticket.fault == str(refusal.value)


def test_images_that_fill_the_memory_are_handed_over_in_turn(pool):
    # Four bytes for each of 1000 x 1000 pixels: two images fit into half of the memory, and a task has eight.
    colours = [(number, 2 * number, 3 * number) for number in range(20)]
    images = [encoded(Image.new("RGB", (1000, 1000), colour)) for colour in colours]
    tickets = pool.submit(line(), images).wait()
    assert [tuple(ticket.received[0, 0, :3]) for ticket in tickets] == colours
    assert {ticket.received.shape for ticket in tickets} == {(1000, 1000, 4)}


def test_an_image_that_kills_its_process_is_the_only_one_without_pixels(tmp_path):
    log = tmp_path / "log"
    images = [encoded(Image.new("L", (number + 1, 2))) for number in range(40)]
    images[17] = images[30] = encoded(Image.new("L", FATAL))
    pool = DecodingPool(2)
    try:
        tickets = pool.submit(line(Fatal(log)), images).wait()
        faults = [ticket.fault for ticket in tickets]
        assert [number for number, fault in enumerate(faults) if fault] == [17, 30]
        assert faults[17] == faults[30] == CRASHED
        assert all(ticket.received is not None for number, ticket in enumerate(tickets) if number not in (17, 30))
        again = pool.submit(line(), images[:3]).wait()
        assert [ticket.fault for ticket in again] == [None] * 3
    finally:
        pool.close()
    assert len(set(log.read_text().split())) > 2  # processes that died were replaced


def test_killed_processes_lose_no_image(pool):
    images = [encoded(Image.effect_noise((300 + number, 300), 50), "JPEG") for number in range(60)]
    submitted = pool.submit(line(CROPPED), images)
    while not submitted.tickets[8].is_finished:
        time.sleep(0.01)
    for process in active_children():
        os.kill(process.pid, signal.SIGKILL)
    for ticket, content in zip(submitted.wait(), images, strict=True):
        np.testing.assert_array_equal(ticket.received, expected(content, CROPPED)[0])


def test_a_failure_that_is_not_about_the_image_is_left_to_this_process(pool):
    (ticket,) = pool.submit(line(Failing()), [encoded(gradient())]).wait()
    assert (ticket.fault, ticket.received) == (None, None)


def test_a_failure_to_receive_is_raised_where_the_image_is_awaited(pool):
    def receive(pixels):
        raise RuntimeError("out of memory on the device")

    submitted = pool.submit(line(receive=receive), [encoded(gradient())])
    with pytest.raises(RuntimeError, match="out of memory on the device"):
        submitted.wait()


def test_an_image_whose_vector_is_cached_is_not_decoded(pool, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    cache = VectorCache("model")
    known, unknown = encoded(gradient()), encoded(gradient(9, 9))
    before, after = (line(cache=cache.readable_path) for _ in range(2))
    assert [t.received is not None for t in pool.submit(before, [known, unknown]).wait()] == [True, True]
    cache.vectors([cached_content(image_key(known))], lambda missing: np.ones((1, 3), np.float32))
    tickets = pool.submit(after, [known, unknown]).wait()
    assert [ticket.received is not None for ticket in tickets] == [False, True]
    assert [ticket.key for ticket in tickets] == [image_key(known), image_key(unknown)]


def test_dropped_images_are_not_kept(pool):
    submitted = pool.submit(line(), [encoded(gradient(30, 30)) for _ in range(50)])
    submitted.drop()
    last = pool.submit(line(), [encoded(gradient())])
    last.wait()
    assert all(ticket.received is None for ticket in submitted.tickets)


def test_images_that_are_dropped_while_they_are_received_are_not_kept(pool):
    is_receiving, is_dropped = threading.Event(), threading.Event()

    def receive(pixels):
        is_receiving.set()
        is_dropped.wait(600)
        return list(np.copy(pixels))

    submitted = pool.submit(line(receive=receive), [encoded(gradient())])
    is_receiving.wait(600)
    submitted.drop()
    is_dropped.set()
    assert [ticket.received for ticket in submitted.wait()] == [None]


def test_processes_end_when_there_is_nothing_to_do():
    pool = DecodingPool(1, idle=0.05)
    pool.submit(line(), [encoded(gradient())]).wait()
    while pool.is_running:
        time.sleep(0.01)
    assert pool.submit(line(), [encoded(gradient())]).wait()[0].received is not None
    pool.close()
    assert not pool.is_running
    (late,) = pool.submit(line(), [encoded(gradient())]).wait()
    assert (late.key, late.fault, late.received) == (b"", None, None)


def test_processes_may_start_before_the_first_image():
    pool = DecodingPool(2)
    pool.warm_up()
    while len(pool._processes) < 2:
        time.sleep(0.01)
    started = [process.process.pid for process in pool._processes]
    pool.submit(line(), [encoded(gradient())]).wait()
    assert [process.process.pid for process in pool._processes] == started
    pool.close()
    pool.warm_up()
    assert not pool.is_running


def test_without_processes_the_images_are_left_to_this_process(monkeypatch):
    monkeypatch.setattr(pool_module, "serve", exits)
    pool = DecodingPool(1)
    reasons = []
    monkeypatch.setattr(pool_module.warnings, "warn", lambda message, **_: reasons.append(message))
    tickets = pool.submit(line(), [encoded(gradient())] * 3).wait()
    assert [(ticket.key, ticket.fault, ticket.received) for ticket in tickets] == [(b"", None, None)] * 3
    assert len(reasons) == 1
    assert "the exit code 3" in reasons[0]
    pool.close()


def test_memory_without_names_is_used_where_there_is_no_memfd(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(heap.Arena, "_dir_candidates", [])  # a /dev/shm that is too small is not used either
    pool = DecodingPool(1)
    image = encoded(gradient(70, 50))
    (ticket,) = pool.submit(line(), [image]).wait()
    np.testing.assert_array_equal(ticket.received[..., :3], np.asarray(Image.open(io.BytesIO(image))))
    pool.close()
