"""Choices, images, video, messages, boxes and epoch in the report, in the viewer and in its tables."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image
from starlette.testclient import TestClient

from multimodal_eval import Box, Message, MessagePart, Sample, evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.sample_table import SCHEMA
from multimodal_eval.report.media import MAX_BOXES, MAX_MESSAGES, shown_inputs
from multimodal_eval.report.samples import MAX_IMAGES
from tests.edited_runs import accept_changes
from tests.report.viewer.viewed import client

NEW = ("choices", "images", "images_bytes", "video", "video_bytes", "messages", "boxes", "epoch")
HOSTILE = "<script>alert(1)</script>"


def png(colour: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (20, 10), colour).save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("inputs")
    media = parent / "media"
    media.mkdir()
    (media / "red.png").write_bytes(png("red"))
    samples = [
        Sample(
            "full",
            question="Which colour?",
            choices={"A": "red", "B": f"blue {HOSTILE}"},
            images=["red.png", png("blue"), "missing.png", "http://127.0.0.1:9/x.png", "../outside.png"],
            video="clip.mp4",
            messages=[
                Message("system", f"Be brief. {HOSTILE}"),
                Message("user", [MessagePart("text", "Look:"), MessagePart("image", "data:image/png;base64,AAAA")]),
                Message("assistant", None, {"tool_calls": [{"name": "zoom"}]}),
                Message("user", [MessagePart("reasoning", None, {"reasoning": "because"})]),
            ],
            boxes=[Box((0, 1.5, 10, 20), f"dog {HOSTILE}", 0.75), Box((1, 2, 3, 4))],
            epoch=3,
            references=["red"],
            generated_answer="A",
        ),
        Sample("list", choices=["yes", "no"], boxes=[], references=["yes"], generated_answer="yes"),
        Sample("bare", video=b"film", references=["a"], generated_answer="a"),
    ]
    (parent / "outside.png").write_bytes(png("green"))
    evaluate(samples, metrics=["rouge_l"], output=parent / "runs" / "a", image_root=str(media), allow_image_urls=True)
    return parent / "runs"


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def visible(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


SHOWN = (
    "system",
    "Be brief.",
    "Look:",
    "(data URI)",
    "tool_calls",
    "zoom",
    "because",
    "dog &lt;script&gt;alert(1)&lt;/script&gt;: 0, 1.5, 10, 20 (score 0.75)",
    "1, 2, 3, 4",
    "clip.mp4",
    "missing.png",
    "(in the run folder)",
)


def test_the_report_shows_all_inputs(folder: Path):
    page = page_of([Run(folder / "a")])
    text = visible(page)
    for expected in SHOWN:
        assert expected in text, expected
    assert HOSTILE not in page
    assert re.search(r"epoch\s+3", text)
    assert (
        len(re.findall(r'<img src="data:image/[^>]* alt="Image', page)) == 2
    )  # the others state why they are not shown
    for reason in ("is not fetched for a report", "is outside the folder", "there is no file"):
        assert reason in text, reason


def test_the_sample_page_shows_all_inputs(browser: TestClient):
    page = browser.get("/sample/a?row=0").text
    text = visible(page)
    for expected in SHOWN:
        assert expected in text, expected
    assert HOSTILE not in page
    for item in range(5):
        assert f'src="/media/a?row=0&amp;kind=images&amp;item={item}"' in page
    assert re.search(r"epoch\s+3", text)
    assert re.search(r"A\s+red", text)
    other = visible(browser.get("/sample/a?row=1").text)
    assert re.search(r"A\s+yes\s+B\s+no", other)
    assert re.search(r"boxes\s+\(none\)", other)
    assert re.search(r"video\s+\(in the run folder\)", visible(browser.get("/sample/a?row=2").text))


def test_every_image_has_a_url(browser: TestClient):
    def colour(item: int) -> tuple[int, ...]:
        answer = browser.get(f"/media/a?row=0&kind=images&item={item}")
        assert answer.status_code == 200
        return Image.open(io.BytesIO(answer.content)).convert("RGB").getpixel((3, 3))  # type: ignore[return-value]

    assert colour(0)[0] > 200
    assert colour(1)[2] > 200
    for item in (2, 3, 4, 5, 99):  # missing, on the network, outside the folder, and out of range
        assert browser.get(f"/media/a?row=0&kind=images&item={item}").status_code == 404
    assert browser.get("/media/a?row=1&kind=images").status_code == 404
    assert browser.get("/media/a?row=0&kind=images&item=-1").status_code == 400
    assert browser.get("/media/a?row=0&kind=images&item=1]").status_code == 400
    assert browser.get("/media/a?row=0&kind=video").status_code == 404  # there is no such file
    assert browser.get("/media/a?row=2&kind=video").status_code == 404  # "film" is not a video


def test_the_table_of_samples_shows_inputs(browser: TestClient):
    page = browser.get("/samples/a").text
    assert 'src="/media/a?row=0&amp;kind=images&amp;small=1"' in page
    assert "epoch <bdi>3</bdi>" in page
    assert "A) red  B) blue &lt;script&gt;" in page
    assert HOSTILE not in page


def test_exports_include_choices_and_epoch_if_there_are_any(browser: TestClient, tmp_path: Path):
    rows = json.loads(browser.get("/export/samples.json/a").text)
    assert [row["epoch"] for row in rows] == [3, None, None]
    assert json.loads(rows[1]["choices"]) == ["yes", "no"]
    table = list(csv.DictReader(io.StringIO(browser.get("/export/samples.csv/a").text)))
    assert json.loads(table[0]["choices"])["A"] == "red"
    evaluate([Sample("x", references=["a"], generated_answer="a")], metrics=["rouge_l"], output=tmp_path / "plain")
    plain = json.loads(client(tmp_path).get("/export/samples.json/plain").text)
    assert list(plain[0]) == ["row", "id", "question", "generated_answer", "rouge_l", "rouge_l:status"]


def test_a_run_folder_without_these_columns_can_be_viewed(tmp_path: Path):
    samples = [Sample(str(n), image="x.png", references=["a"], generated_answer="a") for n in range(2)]
    run = evaluate(samples, metrics=["rouge_l"], output=tmp_path / "old")
    part = run.folder.part("samples", 0)
    pq.write_table(pq.read_table(part, columns=[name for name in SCHEMA.names if name not in NEW]), part)
    accept_changes(run.path)
    browser = client(tmp_path)
    for address in ("/samples/old", "/sample/old?row=0", "/export/samples.csv/old", "/run/old"):
        assert browser.get(address).status_code == 200, address
    assert browser.get("/media/old?row=0&kind=images").status_code == 404
    assert "x.png" in page_of([Run(tmp_path / "old")])


def test_invalid_columns_are_shown_unchanged(tmp_path: Path):
    run = evaluate([Sample("x", references=["a"], generated_answer="a")], metrics=["rouge_l"], output=tmp_path / "odd")
    part = run.folder.part("samples", 0)
    table = pq.read_table(part)
    for name, value in (("choices", HOSTILE), ("messages", '{"role": 1}'), ("boxes", "[[1, 2]]")):
        index = table.column_names.index(name)
        table = table.set_column(index, table.schema.field(name), [[value]])
    pq.write_table(table, part)
    accept_changes(run.path)
    browser = client(tmp_path)
    page = browser.get("/sample/odd?row=0").text
    for expected in ("&lt;script&gt;alert(1)&lt;/script&gt;", "[[1, 2]]", "{&#34;role&#34;: 1}"):
        assert expected in page, expected
    assert browser.get("/samples/odd").status_code == 200


def test_long_lists_of_messages_boxes_and_images_are_cut(tmp_path: Path):
    shown = shown_inputs(None, [Message("user", "x")] * (MAX_MESSAGES + 2), [Box((0, 0, 1, 1))] * (MAX_BOXES + 3), None)
    assert (len(shown.messages), shown.more_messages) == (MAX_MESSAGES, 2)
    assert (len(shown.boxes or ()), shown.more_boxes) == (MAX_BOXES, 3)
    frames = [png("red")] * (MAX_IMAGES + 5)
    samples = [Sample(str(n), images=frames, references=["a"], generated_answer="a") for n in range(2)]
    page = page_of([evaluate(samples, metrics=["rouge_l"], output=tmp_path / "frames")])
    assert "5 more images" in page
