"""Media are noted before anything is made of them: a run never has scores of two contents of a file."""

from __future__ import annotations

import os

import pytest
from PIL import Image

from multimodal_eval import evaluate, metric, rescore, resume
from multimodal_eval.core.errors import ImageError, RunFolderError
from multimodal_eval.media.images import load_image_any
from tests.parts import set_part_size

ROWS = [{"id": str(n), "image": f"{n % 2}.png", "generated_answer": "a"} for n in range(4)]
CHANGED = r"run cannot be continued: 0\.png has changed since it was started"


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Two images, each of which samples of both parts name, and metrics that open them."""
    set_part_size(monkeypatch, 2)
    monkeypatch.chdir(tmp_path)
    draw("white")

    @metric("red", needs=("image",), bounds=(0, 255), version="1")
    def red(sample):
        return float(load_image_any(sample.image).getpixel((0, 0))[0])

    @metric("blue", needs=("image",), bounds=(0, 255), version="1")
    def blue(sample):
        return float(load_image_any(sample.image).getpixel((0, 0))[2])

    return tmp_path


def draw(colour):
    for name in ("0.png", "1.png"):
        Image.new("RGB", (2, 2), colour).save(name)


def scored(**settings):
    run = evaluate(ROWS, metrics=["red"], output="run", workers=1, progress=False, **settings)
    (run.path / "scores" / "part-00001.parquet").unlink()
    return run


def test_a_changed_image_is_refused_and_a_restored_one_is_not(images):
    results = (scored().path / "results.json").read_bytes()
    draw("black")
    with pytest.raises(RunFolderError, match=CHANGED.replace("has", "and 1 more have")):
        resume("run", progress=False)
    draw("white")
    resume("run", progress=False)
    assert (images / "run" / "results.json").read_bytes() == results


def test_each_of_several_images_counts(images):
    @metric("reds", needs=("images",), bounds=(0, 255), version="1")
    def reds(sample):
        return float(load_image_any(sample.images[1]).getpixel((0, 0))[0])

    rows = [{"id": str(n), "images": ["1.png", "0.png"], "generated_answer": "a"} for n in range(4)]
    run = evaluate(rows, metrics=["reds"], output="run", workers=1, progress=False)
    (run.path / "scores" / "part-00001.parquet").unlink()
    Image.new("RGB", (2, 2), "black").save("0.png")
    with pytest.raises(RunFolderError, match=CHANGED):
        resume("run", progress=False)


def test_an_image_that_has_gone_is_refused_too(images):
    scored()
    (images / "0.png").unlink()
    with pytest.raises(RunFolderError, match=CHANGED):
        resume("run", progress=False)


def test_an_image_that_was_missing_stays_missing(images):
    """Otherwise some samples would have an error, and others of the same image a score."""
    (images / "0.png").unlink()
    run = scored()
    assert run["red"]["n_scored"] == 2
    Image.new("RGB", (2, 2), "white").save("0.png")
    with pytest.raises(RunFolderError, match=CHANGED):
        resume("run", progress=False)


def test_only_the_content_counts(images):
    scored()
    os.utime("0.png", ns=(1, 1))
    assert resume("run", progress=False)["red"]["value"] == 255


def test_what_is_not_made_of_images_is_repaired_without_them(images):
    run = evaluate(ROWS, metrics=["red"], output="run", workers=1, progress=False)
    draw("black")
    (run.path / "lint.json").write_text("{}")
    assert resume("run", progress=False)["red"]["value"] == 255


def test_checksums_that_are_lost_are_noted_again_or_refused(images):
    scored()
    noted = images / "run" / "media" / "part-00000.parquet"
    content = noted.read_bytes()
    noted.unlink()
    resume("run", progress=False)
    assert noted.read_bytes() == content
    noted.unlink()
    draw("black")
    with pytest.raises(RunFolderError, match=r"media/part-00000\.parquet is damaged, and the media have changed since"):
        resume("run", progress=False)


def test_another_metric_is_about_the_same_images(images):
    run = evaluate(ROWS, metrics=["red"], output="run", workers=1, progress=False)
    assert rescore(run, {"metrics": ["red", "blue"]}, progress=False)["blue"]["value"] == 255
    draw("black")
    with pytest.raises(
        RunFolderError, match=r"run cannot be rescored: 0\.png and 1 more have changed since it was started"
    ):
        rescore(run, {"metrics": ["red", "blue"]}, output="again", progress=False)
    assert not (images / "again").exists()
    assert rescore(run, {"metrics": ["red"]}, progress=False)["red"]["value"] == 255  # opens no image


def test_images_in_memory_and_at_urls_are_not_noted(images):
    @metric("named", needs=("image",), version="1")
    def named(sample):
        try:
            load_image_any(sample.image)
        except ImageError as error:
            assert "is on the network" in str(error)  # noqa: PT017
        return 1.0

    sources = ["https://images.example.org/0.png", "data:image/png;base64,", (images / "0.png").read_bytes()]
    rows = [{"id": str(n), "image": source} for n, source in enumerate(sources)]
    run = evaluate(rows, metrics=["named"], output="run", progress=False)
    assert not (run.path / "media").exists()


def test_a_run_without_metrics_of_images_reads_none(images):
    rows = [{**row, "references": ["a"]} for row in ROWS]
    run = evaluate(rows, metrics=["exact_match"], output="run", progress=False)
    assert not (run.path / "media").exists()
