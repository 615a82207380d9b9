"""Nothing that an annotator's browser receives tells of which run an answer is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from multimodal_eval import Sample, evaluate
from tests.report.viewer.labelling.annotators import OWN, Annotator, records, server
from tests.report.viewer.viewed import wav

NAMES = ("zebrafinch", "kookaburra")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs whose names are in everything around the answers: paths of media, metadata, models."""
    parent = tmp_path_factory.mktemp("blind")
    for name in NAMES:
        media = parent / f"media-of-{name}"
        media.mkdir()
        Image.new("RGB", (40, 30), "red").save(media / "same.png")
        (media / "same.wav").write_bytes(wav())
        samples = [
            Sample(
                f"s{number}",
                image="same.png" if number != 2 else "missing.png",
                audio="same.wav",
                question="What is it?",
                references=["a bird"],
                generated_answer=f"answer {number} {'x' if name == NAMES[0] else 'y'}",
                group=f"{name}-group",
                metadata={"model": name, name: name},
            )
            for number in range(6)
        ]
        evaluate(samples, metrics=["rouge_l"], output=parent / "runs" / name, image_root=str(media))
    return parent / "runs"


def received(answer: Any) -> str:
    """Everything in a response that a browser sees."""
    headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    return f"{answer.status_code}\n{headers}\n{answer.content.decode('latin-1')}\n{answer.url}".lower()


@pytest.mark.parametrize("options", [{"pairwise": True}, {"scale": "1-5"}, {"metric": "rouge_l"}])
def test_no_response_names_a_run(folder: Path, tmp_path: Path, options: dict[str, Any]):
    ann = Annotator(server(folder, tmp_path / "labels.jsonl", **options), "ann")
    responses: list[Any] = []

    def look(address: str) -> Any:
        responses.append(ann.browser.get(address))
        return responses[-1]

    look("/label")
    while True:
        answer = look("/label/next")
        address = answer.headers["location"]
        page = look(address)
        if address == "/label":
            break
        sources = re.findall(r'(?:src|href)="(/label/[^"]+)"', page.text)
        media = [source for source in sources if "/media/" in source]
        assert len(media) >= 2
        statuses = {look(source.replace("&amp;", "&")).status_code for source in sources}
        assert statuses <= {200, 303, 404}
        for address_of_another in (f"{media[0]}&row=1", media[0].replace("kind=image", "kind=video")):
            look(address_of_another)
        token = re.search(r'name="token" value="([^"]+)"', page.text)
        assert token is not None
        fields = {"token": token[1], "annotator": "ann", "comment": "hm"}
        label = {"pairwise": "left", "scale": "3", "metric": "yes"}[next(iter(options))]
        responses.append(ann.browser.post(address, data=fields | {"label": "nothing"}, headers=OWN))  # an error page
        responses.append(ann.browser.post(address, data=fields | {"label": label}, headers=OWN))
    look("/label/mine")
    look("/label/item/1-000000000000000000000000")
    assert len(records(tmp_path / "labels.jsonl")) == (6 if "pairwise" in options else 12)
    for answer in responses:
        text = received(answer)
        for name in NAMES:
            assert name not in text, answer.url
        assert "s1" not in re.findall(r"\bs\d\b", text)  # ids may name a system


def test_the_page_does_not_tell_the_order_of_the_runs(folder: Path, tmp_path: Path):
    """Exchanging the runs of the command changes no page, except for what is random anyway."""
    left_first = []
    for number, runs in enumerate((NAMES, NAMES[::-1])):
        ann = Annotator(server(folder, tmp_path / f"{number}.jsonl", pairwise=True, runs=runs), "ann")
        pages = set()
        while ann.next():
            text = re.sub(r"[0-9a-f]{24,}", "SECRET", ann.text)
            text = re.sub(r"answer \d [xy]", "ANSWER", text)
            pages.add(re.sub(r"\d+", "N", text))
            left_first.append(ann.answers[0].endswith("x"))
            ann.send(label="tie")
        assert len(pages) <= 2  # with and without the line about the last label
    assert 0 < sum(left_first) < len(left_first)


def test_an_address_holds_for_one_annotator_and_one_process(folder: Path, tmp_path: Path):
    site = server(folder, tmp_path / "labels.jsonl", pairwise=True)
    ann, bob = Annotator(site, "ann"), Annotator(site, "bob")
    ann.next()
    assert bob.browser.get(ann.address).status_code == 404
    assert bob.browser.get(ann.address.replace("item", "media")).status_code == 404
    other = Annotator(server(folder, tmp_path / "labels.jsonl", pairwise=True), "ann")
    assert other.browser.get(ann.address).status_code == 404
    for forged in ("1", "1-", "0-x", "-1-" + "0" * 24, "1-" + "0" * 24, "99999999999-" + "0" * 24, "²-" + "0" * 24):
        assert ann.browser.get(f"/label/item/{forged}").status_code == 404, forged


def test_what_cannot_be_shown_is_told_on_the_terminal_alone(folder: Path, tmp_path: Path, caplog):
    ann = Annotator(server(folder, tmp_path / "labels.jsonl", scale="1-5"), "ann")
    statuses = []
    while ann.next():
        (image,) = re.findall(r'<img src="(/label/media/[^"]+)"', ann.text)
        answer = ann.browser.get(image)
        statuses.append(answer.status_code)
        if answer.status_code == 404:
            assert "missing.png" not in answer.text
        ann.send(label="1")
    assert sorted(statuses) == [200] * 10 + [404] * 2
    assert "missing.png" in caplog.text
    assert all(name in caplog.text for name in NAMES)
