"""The sample page plays the video and shows the frames that the model was sent."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.generate.media_parts import MediaParts
from multimodal_eval.generate.turns import Reference
from multimodal_eval.media.policy import MediaPolicy
from tests.report.viewer.viewed import client
from tests.report.visits import PHONE, served, violations

NOT_VIDEOS = ("page.mp4", "../outside.mp4", "http://127.0.0.1:9/x.mp4", "none.mp4")
SENT: dict[str, Any] = {"frames": 8, "frames_per_second": 2, "max_pixels": 1_000}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    pytest.importorskip("av")
    from tests.media.video_files import video

    folder: Path = tmp_path_factory.mktemp("videos")
    media = folder / "media"
    media.mkdir()
    (media / "clip.mp4").write_bytes(video(20, codec="libx264"))  # which browsers decode
    (folder / "outside.mp4").write_bytes(video(3))
    (media / "page.mp4").write_text("<html><script>alert(1)</script></html>")
    samples = [Sample("clip", question="What?", video="clip.mp4", references=["a"])]
    samples += [Sample("inside", question="What?", video=video(3, kind="matroska"), references=["a"])]
    samples += [Sample(name, question="What?", video=name, references=["a"]) for name in NOT_VIDEOS]
    kinds: dict[str, dict[str, Any]] = {"frames": SENT, "whole": {}, "blind": {**SENT, "media_as": "none"}}
    for name, settings in kinds.items():
        generation = {"model": "echo", **settings}
        evaluate(
            samples,
            metrics=["rouge_l"],
            output=folder / "runs" / name,
            image_root=str(media),
            generation=generation,
        )
    return folder


def test_the_video_is_played(runs):
    browser, content = client(runs / "runs"), (runs / "media" / "clip.mp4").read_bytes()
    for run in ("frames", "whole"):
        address = f"/media/{run}?row=0&kind=video"
        assert (
            f'<video controls preload="metadata" src="{address.replace("&", "&amp;")}"'
            in browser.get(f"/sample/{run}?row=0").text
        )
        whole = browser.get(address)
        assert (whole.headers["content-type"], whole.content) == ("video/mp4", content)
        piece = browser.get(address, headers={"range": "bytes=10-19"})
        assert (piece.status_code, piece.content) == (206, content[10:20])
    assert browser.get("/media/whole?row=1&kind=video").headers["content-type"] == "video/x-matroska"


def test_the_frames_are_those_that_were_sent(runs):
    browser, clip = client(runs / "runs"), runs / "media" / "clip.mp4"
    parts = MediaParts(GenerationConfig(model="echo:", **SENT), MediaPolicy())
    sent = asyncio.run(parts.part(Reference("video", str(clip)))).frames
    assert len(sent) == 4  # two per second, of two seconds
    page = browser.get("/sample/frames?row=0").text
    assert "4 frames as sent" in page
    shown = [each.replace("&amp;", "&") for each in re.findall(r'<img class="frame"[^>]*src="([^"]*)"', page)]
    assert [browser.get(address).content for address in shown] == list(sent)
    assert browser.get("/media/frames?row=0&kind=frames&item=4").status_code == 404
    assert "1 frame as sent" in browser.get("/sample/frames?row=1").text  # 0.3 s, in the run folder
    for run in ("whole", "blind"):
        assert "as sent" not in browser.get(f"/sample/{run}?row=0").text
    assert browser.get("/media/whole?row=0&kind=frames").status_code == 404


def test_files_that_are_not_videos_are_refused(runs):
    browser = client(runs / "runs")
    for row, name in enumerate(NOT_VIDEOS, 2):
        page = browser.get(f"/sample/frames?row={row}")
        assert (page.status_code, "as sent" in page.text, "alert(1)" in page.text) == (200, False, False), name
        for kind in ("video", "frames"):
            refused = browser.get(f"/media/frames?row={row}&kind={kind}")
            assert (refused.status_code, "<script>alert" in refused.text) == (404, False), name
    assert "<video" not in browser.get(f"/sample/frames?row={2 + NOT_VIDEOS.index('http://127.0.0.1:9/x.mp4')}").text


def test_the_video_plays_and_the_frames_open_in_a_browser(visit, runs):
    with served(runs / "runs") as address:
        seen = visit(address + "/sample/frames?row=0")
        page = seen.page
        end = (
            "new Promise(done => { const v = document.querySelector('video'); v.onended = () => done(v.videoWidth);"
            "v.onerror = () => done(v.error.message); v.muted = true; v.play(); })"
        )
        assert page.evaluate(end) == 64
        assert not [url for url in seen.requests if "kind=frames" in url]  # until they are asked for
        page.locator("summary").click()
        assert page.locator(".frame").count() == 4
        for frame in page.locator(".frame").all():  # decoded: loaded, and an image
            assert frame.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        assert seen.console == []
        violated, _ = violations(page, "light")
        assert violated == []
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
