"""Images in a run: which paths are allowed, and how images in memory are stored."""

from __future__ import annotations

import base64
import io
import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from multimodal_eval import Sample, evaluate, load_run, metric, rescore, resume
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import to_samples, to_table
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.policy import MediaPolicy, current_policy
from tests.media.image_files import encoded, gradient

PLUGIN = str(Path(__file__).with_name("brightness.py"))
RUN = {"metrics": ["brightness"], "plugins": [PLUGIN]}


def grey(level):
    return Image.new("RGB", (2, 2), (level, level, level))


@pytest.fixture
def folder(tmp_path):
    """data/data.jsonl names an image in its folder, one outside, a missing one, a URL and a data URI."""
    data = tmp_path / "data"
    (data / "img").mkdir(parents=True)
    grey(10).save(data / "img" / "in.png")
    grey(20).save(tmp_path / "out.png")
    images = [
        "img/in.png",
        "../out.png",
        "img/missing.png",
        "http://127.0.0.1:9/x.png",
        "data:;base64," + base64.b64encode(encoded(grey(30))).decode(),
    ]
    lines = [json.dumps({"id": str(number), "image": image}) for number, image in enumerate(images)]
    (data / "data.jsonl").write_text("\n".join(lines) + "\n")
    return data


def values(run):
    return run.scores().column("brightness").to_pylist()


def reasons(run):
    return run.scores().column("brightness:reason").to_pylist()


def test_images_must_be_in_the_folder_of_the_data(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # not the data's folder
    run = evaluate(folder / "data.jsonl", **RUN)
    assert values(run) == [10.0, None, None, None, 30.0]
    shown = reasons(run)
    assert "is outside the folder" in shown[1]
    assert shown[2] == f"there is no file 'img/missing.png' in the folder {str(folder)!r}"
    assert "--allow-image-urls" in shown[3]
    assert run["brightness"]["n_scored"] == 2
    assert run.info.config.image_root == str(folder)
    assert current_policy() == MediaPolicy()


def test_image_paths_are_relative_to_the_folder_of_a_linked_file(folder, tmp_path):
    (tmp_path / "store").mkdir()
    (folder / "data.jsonl").rename(tmp_path / "store" / "blob")
    (folder / "data.jsonl").symlink_to("../store/blob")
    run = evaluate(folder / "data.jsonl", **RUN)
    assert values(run) == [10.0, None, None, None, 30.0]
    assert run.info.config.image_root == str(folder)


def test_allowed_images_are_opened(folder):
    run = evaluate(folder / "data.jsonl", **RUN, allow_outside_images=True, allow_image_urls=True)
    assert values(run) == [10.0, 20.0, None, None, 30.0]
    assert "127.0.0.1, which is not public" in reasons(run)[3]


def test_another_folder(folder, tmp_path):
    shutil.move(folder / "img", tmp_path / "elsewhere")
    (tmp_path / "images").mkdir()
    shutil.move(tmp_path / "elsewhere", tmp_path / "images" / "img")
    run = evaluate(folder / "data.jsonl", **RUN, image_root=str(tmp_path / "images"))
    assert values(run)[0] == 10.0
    with pytest.raises(ConfigError, match="`image_root` must be a folder"):
        evaluate(folder / "data.jsonl", **RUN, image_root=str(tmp_path / "nowhere"))


def test_the_command_line(folder, tmp_path):
    common = ["score", str(folder / "data.jsonl"), "--metrics", "brightness", "--plugin", PLUGIN, "--no-lint"]
    more = ["--allow-outside-images", "--allow-image-urls", "--image-root", str(folder), "-o", str(tmp_path / "run")]
    done = CliRunner().invoke(cli, common + more)
    assert done.exit_code == 0, done.output
    run = load_run(tmp_path / "run")
    assert values(run) == [10.0, 20.0, None, None, 30.0]
    assert run.info.config.allow_image_urls is True


def test_a_resumed_run_finds_its_images_from_any_folder(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    whole = evaluate("data.jsonl", **RUN, output=tmp_path / "run")
    before = values(whole)
    shutil.rmtree(tmp_path / "run" / "scores")
    (tmp_path / "run" / "results.json").unlink()
    opened = RunFolder(tmp_path / "run")
    opened.write_info(msgspec.structs.replace(opened.read_info(), state="scoring", finished=None))
    monkeypatch.chdir("/")
    assert values(resume(tmp_path / "run")) == before == [10.0, None, None, None, 30.0]


def test_a_rescored_run_uses_the_new_image_policy(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    first = evaluate("data.jsonl", **RUN, output=tmp_path / "run")
    monkeypatch.chdir("/")
    again = rescore(first, {"seed": 1})
    assert values(again) == [10.0, None, None, None, 30.0]
    wider = rescore(first, {"allow_outside_images": True})
    assert values(wider) == [10.0, 20.0, None, None, 30.0]


def test_samples_in_memory_may_use_any_path(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    images = ["img/in.png", "../out.png", folder / "img" / "in.png"]
    run = evaluate([Sample(id=str(number), image=image) for number, image in enumerate(images)], **RUN)
    assert values(run) == [10.0, 20.0, 10.0]
    restricted = evaluate([Sample(id="1", image="../out.png")], **RUN, image_root=str(folder), allow_empty=True)
    assert values(restricted) == [None]


def test_images_in_memory_are_stored_and_scored(tmp_path):
    content = encoded(grey(40), "JPEG", quality=100)
    images = [grey(1), content, bytearray(content), {"bytes": encoded(grey(2)), "path": None}, grey(3).convert("CMYK")]
    run = evaluate(
        [{"id": str(number), "image": image} for number, image in enumerate(images)], **RUN, output=tmp_path / "run"
    )
    assert values(run) == [1.0, 40.0, 40.0, 2.0, 3.0]
    stored = [sample.image for sample in load_run(tmp_path / "run").samples()]
    assert stored[1] == stored[2] == content


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La", "P", "RGB", "RGBA", "RGBa", "CMYK", "YCbCr", "HSV", "I;16"])
@pytest.mark.parametrize("orientation", [None, 6])
def test_a_stored_image_has_the_same_pixels(mode, orientation):
    if mode == "I;16":
        image = Image.fromarray(np.arange(0, 48_000, 1000, dtype=np.uint16).reshape(6, 8))
    elif mode in ("LA", "La", "RGBA", "RGBa"):
        image = gradient(mode=mode.upper())
        image.putalpha(gradient(mode="L"))
        image = image.convert(mode)
    else:
        image = gradient(mode=mode)
    if orientation:
        image.getexif()[0x0112] = orientation
    (again,) = to_samples(to_table([Sample(id="1", image=image)], 0))
    assert np.array_equal(np.asarray(load_image_any(again.image)), np.asarray(load_image_any(image)))
    assert load_image_any(image).size == ((6, 8) if orientation else (8, 6))


@pytest.mark.parametrize("mode", ["F", "I"])
def test_images_in_memory_without_a_defined_range_are_unscored(mode):
    run = evaluate([Sample(id="1", image=Image.new(mode, (2, 2)))], **RUN, allow_empty=True)
    assert values(run) == [None]
    assert "no well-defined conversion" in reasons(run)[0]


def test_an_image_that_cannot_be_stored_is_reported(tmp_path):
    whole = encoded(gradient(64, 64))
    half = Image.open(io.BytesIO(whole[: len(whole) // 2]))
    with pytest.raises(InputError, match=r"FORMAT: `image` cannot be stored.*\(id 'broken'\) Pass its path"):
        evaluate([Sample(id="broken", image=half)], **RUN, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_path_is_not_normalised(tmp_path):
    name = "cafe\u0301.png"  # é as two characters, as on some systems
    grey(50).save(tmp_path / name)
    (tmp_path / "data.jsonl").write_text(json.dumps({"id": "1", "image": name}) + "\n")
    assert values(evaluate(tmp_path / "data.jsonl", **RUN)) == [50.0]


def test_a_data_uri_may_be_longer_than_other_text():
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (700, 700, 3), dtype=np.uint8))
    uri = "data:image/png;base64," + base64.b64encode(encoded(noise)).decode()
    assert len(uri) > 1_000_000
    run = evaluate([{"id": "1", "image": uri}], **RUN)
    assert values(run) == [float(noise.getpixel((0, 0))[0])]
    with pytest.raises(InputError, match="TOO_LONG"):
        evaluate([{"id": "1", "image": "x" * 1_000_001}], **RUN)


def test_a_metric_for_several_images_is_scored_again_with_another_policy(folder, tmp_path):
    @metric("brightest", needs=("image|images",), bounds=(0, 255), version="1")
    def brightest(sample):
        images = [load_image_any(image) for image in sample.images or [sample.image]]
        return max(float(image.getpixel((0, 0))[0]) for image in images)

    data = tmp_path / "several.jsonl"
    rows = [{"id": "1", "images": ["img/in.png", "../out.png"]}, {"id": "2", "image": "img/in.png"}, {"id": "3"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = evaluate(data, metrics=["brightest"], image_root=str(folder), output=tmp_path / "run")
    assert first.scores().column("brightest").to_pylist() == [None, 10.0, None]
    assert first.scores().column("brightest:status").to_pylist() == ["error", "ok", "missing_input"]
    wider = rescore(first, {"allow_outside_images": True})
    assert wider.scores().column("brightest").to_pylist() == [20.0, 10.0, None]
