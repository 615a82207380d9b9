"""Scored runs for the tests of the viewer, and a client for its application."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from PIL import Image
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.analysis.compare import RunComparison, compare_runs
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.viewer.app import create_app
from multimodal_eval.report.viewer.guard import host_check
from multimodal_eval.report.viewer.labelling.queue import LabelOptions

PORT = 8000
HOST = f"127.0.0.1:{PORT}"
COUNT = 120
COLOURS = ("red", "green", "blue")


def wav() -> bytes:
    """A tenth of a second of silence."""
    samples = bytes(1_600)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8_000, 16_000, 2, 16)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def samples(seed: int, media: Path) -> list[Sample]:
    """Captions, some right and some wrong; one is blank, one is missing, and for one the generator failed."""
    captions = []
    for number in range(COUNT):
        colour, shape = COLOURS[number % 3], ("cross", "star", "circle", "heart")[(number + seed) % 4]
        answer: str | None = f"a {colour} {shape} number {number}"
        if number == 7:
            answer = "  "
        if number == 8:
            answer = None
        captions.append(
            Sample(
                f"scene-{number:03d}",
                image=f"{colour}.png",
                audio="silence.wav" if number % 2 else None,
                question=f"What is in image {number}?",
                references=[f"a {colour} {('cross', 'star', 'circle', 'heart')[number % 4]}", f"the {colour} thing"],
                generated_answer=answer,
                error="the generator ran out of memory" if number == 9 else None,
                metadata={"language": "ru" if number % 5 else "en", "place": number % 4, "count": number, "a/b~c": "x"},
            )
        )
    for colour in COLOURS:
        Image.new("RGB", (40, 30), colour).save(media / f"{colour}.png")
    (media / "silence.wav").write_bytes(wav())
    return captions


def make_runs(folder: Path) -> None:
    """Three systems over the same samples; the third run is one folder deeper."""
    media = folder.parent / "media"
    media.mkdir(exist_ok=True)
    settings: dict[str, Any] = {"metrics": ["bleu", "rouge_l", "cider_d"], "image_root": str(media)}
    evaluate(samples(0, media), output=folder / "alba", by=["language"], **settings)
    evaluate(samples(1, media), output=folder / "boreas", **settings)
    evaluate(samples(2, media), output=folder / "deeper" / "cirrus", **settings)


def compared(runs: Sequence[Run]) -> RunComparison:
    """The comparison that `mmeval view` passes to the application, with fewer rounds."""
    return compare_runs(runs, allow_partial=True, skip_unknown=True, rounds=200)


def client(folder: Path, label: LabelOptions | None = None) -> TestClient:
    """A test client for the runs of the folder."""
    app = create_app(folder, compare=compared, accepts_host=host_check("127.0.0.1", PORT), label=label)
    return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)


def raw_get(browser: TestClient, target: str) -> tuple[int, str]:
    """The response to an unmodified URL: browsers and clients resolve `..` before they send it."""
    path, _, query = target.encode("utf-8").partition(b"?")
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "http_version": "1.1",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),  # like uvicorn
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", HOST.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", PORT),
    }
    answer: dict[str, Any] = {"status": 0, "body": b""}

    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in requests:
            return message
        await asyncio.Event().wait()  # the client stays until it has the whole answer
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer["status"] = message["status"]
        else:
            answer["body"] += message.get("body", b"")

    with ThreadPoolExecutor(1) as thread:  # the browser of other tests runs an event loop in this thread
        thread.submit(asyncio.run, browser.app(scope, receive, send)).result()  # type: ignore[arg-type]
    return answer["status"], answer["body"].decode("utf-8", "replace")
