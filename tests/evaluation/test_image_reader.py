"""Images for an encoder: read ahead by other processes if there are many, with the results of this process."""

from __future__ import annotations

from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from multimodal_eval.evaluation import image_reader
from multimodal_eval.evaluation.decoding.pool import decoding_pool, end_decoders, limit_decoders
from multimodal_eval.evaluation.image_reader import ImageReader, reader_of
from multimodal_eval.media.policy import MediaPolicy, using
from multimodal_eval.models.clip.by_name import CachedImageTextEncoder
from multimodal_eval.models.clip.encoder import OnnxClip
from multimodal_eval.models.source import find_model
from tests.evaluation.decoding.hand_overs import CROPPED
from tests.media.image_files import encoded

TINY_CLIP = Path(__file__).parents[1] / "golden" / "clip" / "tiny-clip"


@pytest.fixture(scope="module", autouse=True)
def one_pool():
    limit_decoders(1)
    yield
    end_decoders()
    limit_decoders(None)


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(image_reader, "MIN_IMAGES", 4)
    return CachedImageTextEncoder(OnnxClip(find_model(str(TINY_CLIP))))


@pytest.fixture
def paths(tmp_path):
    """Ten images; the third is damaged and the fourth is missing."""
    files = [tmp_path / f"{number}.png" for number in range(10)]
    for number, path in enumerate(files):
        Image.effect_noise((40 + number, 30), 60).save(path)
    files[2].write_bytes(files[2].read_bytes()[:80])
    files[3].unlink()
    return [str(path) for path in files]


def encoded_by(encoder, reader, sources):
    """The vectors, and the reasons of the images that have none."""
    with reader.images_of(sources) as images:
        readable = [image for image in images if image.fault is None]
        vectors = iter(encoder.encode_images(readable))
        return [next(vectors) if image in readable else None for image in images], [image.fault for image in images]


def test_the_vectors_and_reasons_are_those_of_this_process(encoder, paths, monkeypatch):
    with_processes, reasons = encoded_by(encoder, reader_of(encoder), paths)
    monkeypatch.setenv("MMEVAL_HOME", str(Path(paths[0]).parent / "other"))
    here = CachedImageTextEncoder(encoder.inner)
    monkeypatch.setenv("MMEVAL_DECODERS", "0")
    assert decoding_pool() is None
    alone, reasons_alone = encoded_by(here, ImageReader(here.decoding), paths)
    # In this process, a damaged image is found when it is opened, by `encode_images`.
    assert reasons == reasons_alone
    assert "cannot be decoded" in reasons[2]
    assert "there is no file" in reasons[3]
    for left, right in zip(with_processes, alone, strict=True):
        if left is not None:
            assert left.tobytes() == right.tobytes()


def test_images_are_read_when_they_are_expected(encoder, paths):
    reader = reader_of(encoder)
    reader.expect(paths)
    submitted = next(iter(reader._ahead.values()))
    submitted.wait()
    for path in paths:
        Path(path).unlink(missing_ok=True)
    vectors, _ = encoded_by(encoder, reader, paths)
    assert sum(vector is not None for vector in vectors) == 8
    assert not reader._ahead
    assert all(ticket.received is None for ticket in submitted.tickets)


def test_a_second_metric_with_the_same_encoder_reads_nothing(encoder, paths, monkeypatch):
    reader = reader_of(encoder)
    assert reader_of(encoder) is reader
    first, reasons = encoded_by(encoder, reader, paths)
    for path in paths:
        Path(path).unlink(missing_ok=True)
    reader.expect(paths)
    assert not reader._ahead
    second, same_reasons = encoded_by(encoder, reader, paths)
    assert reasons == same_reasons
    assert [None if v is None else v.tobytes() for v in first] == [None if v is None else v.tobytes() for v in second]


def test_without_a_cache_the_images_are_read_again(encoder, paths, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    uncached = CachedImageTextEncoder(encoder.inner)
    reader = reader_of(uncached)
    first, _ = encoded_by(uncached, reader, paths)
    second, _ = encoded_by(uncached, reader, paths)
    assert not reader._seen
    assert [v is None for v in first] == [v is None for v in second]


def test_few_images_start_no_process(encoder, paths, monkeypatch):
    monkeypatch.setattr(image_reader, "MIN_IMAGES", 11)
    monkeypatch.setattr(image_reader, "decoding_pool", lambda: idle)
    idle = type("Idle", (), {"is_running": False})()
    reader = reader_of(encoder)
    reader.expect(paths)
    assert not reader._ahead
    _, reasons = encoded_by(encoder, reader, paths)
    assert [row for row, reason in enumerate(reasons) if reason] == [2, 3]


def test_equal_images_of_every_kind_of_source(encoder, paths):
    content = encoded(Image.effect_noise((33, 33), 60))
    Path(paths[5]).write_bytes(content)
    pillow = Image.open(paths[5])
    sources = [paths[5], Path(paths[5]), content, bytearray(content), pillow, *paths, 7, paths[5]]
    vectors, reasons = encoded_by(encoder, reader_of(encoder), sources)
    same = [*range(5), 10, len(sources) - 1]
    assert {vectors[row].tobytes() for row in same if row != 4} == {vectors[0].tobytes()}
    np.testing.assert_allclose(vectors[4], vectors[0], atol=1e-6)
    assert "must be a path" in reasons[-2]


def test_batches_that_are_never_asked_for_are_given_up(encoder, paths):
    reader = reader_of(encoder)
    for first in range(len(paths)):
        reader.expect(paths[first:] + paths[:first])
    assert len(reader._ahead) == image_reader.MOST_AHEAD


def test_the_policy_is_part_of_a_request(encoder, paths, tmp_path):
    reader = reader_of(encoder)
    names = [Path(path).name for path in paths]
    with using(MediaPolicy(root=tmp_path)):
        reader.expect(names)
        _, allowed = encoded_by(encoder, reader, names)
    _, elsewhere = encoded_by(encoder, reader, names)
    assert allowed[0] is None
    assert "there is no file" in elsewhere[0]


def test_an_encoder_that_other_processes_cannot_help_reads_here(paths):
    with ImageReader(None).images_of(paths) as images:
        assert images[0].open().size == (40, 30)
        assert images[0].received is None
    assert CROPPED.whole_up_to == 0


def test_ended_decoders_are_gone_and_start_again(encoder, paths):
    for workers in (1, 2):  # pools of both sizes run
        limit_decoders(workers)
        encoded_by(encoder, reader_of(encoder), paths[workers:])
        reader_of(encoder).forget()
    assert any(process.name == "mmeval-decoding" for process in active_children())
    end_decoders()
    assert [process for process in active_children() if process.name == "mmeval-decoding"] == []
    limit_decoders(1)
    assert encoded_by(encoder, reader_of(encoder), paths)[0][0] is not None
