"""Hostile texts in names of annotators, comments, labels, tags and notes, on every page; and in the labelled runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from tests.report.hostile import ALL, PAYLOADS, TEXTS, hostile_run
from tests.report.test_hostile_texts import EVIL, TAGS, Elements
from tests.report.viewer.labelling.annotators import Annotator, make_labelled_runs, records, server
from tests.report.viewer.viewed import client
from tests.report.visits import DESKTOP, PHONE, served

KNOWN = TAGS | {"textarea", "section"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs full of hostile texts, with notes and labels of somebody else that are full of them, too."""
    folder = tmp_path_factory.mktemp("hostile") / "runs"
    (folder / EVIL).parent.mkdir(parents=True)
    for place in (folder / "hostile", folder / EVIL):
        hostile_run(place)
        note = {"run": place.name, "tags": [text[:40] for text in TEXTS[:20]], "note": ALL, "by": ALL, "time": ALL}
        (place.parent / ".mmeval-notes.jsonl").write_text(json.dumps(note) + "\n")
    labels = [
        {"id": f"{row} {text}", "label": text, "annotator": text, "comment": text, "run": "hostile", "metric": text}
        for row, text in enumerate(PAYLOADS)
        if text.strip()
    ]
    (folder.parent / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    return folder


def check(address: str, text: str) -> None:
    """No text became an element or an attribute that runs."""
    elements = Elements(text)
    assert elements.tags <= KNOWN, (address, elements.tags - KNOWN)
    assert (elements.bad, elements.strange_scripts) == ([], []), address


def test_texts_of_a_labelled_run_become_no_elements(hostile: Path, tmp_path: Path):
    for options in ({"scale": "1-5"}, {"scale": ",".join(text[:20] for text in TEXTS[:4] if text.isprintable())}):
        site = server(hostile, tmp_path / "new.jsonl", runs=("hostile",), question=ALL, **options)
        ann = Annotator(site, "ann")
        check("/label", ann.text)
        for _ in range(12):
            if not ann.next():
                break
            check("/label/item", ann.text)
            ann.send(action="skip")
        check("/label/mine", ann.open("/label/mine"))
        assert any("&lt;script&gt;" in each for each in (ann.open("/label/next"), ann.text))


def test_texts_in_the_files_of_others_become_no_elements(hostile: Path):
    site = server(hostile, hostile.parent / "labels.jsonl", runs=("hostile",), scale="1-5")
    for address in ("/label", "/", "/run/hostile", "/notes/hostile", f"/notes/{quote(EVIL, safe='/')}"):
        check(address, site.get(address).text)
    assert "run-tag" in site.get("/").text
    reader = client(hostile)
    for text in TEXTS[:20:4]:
        check("/", reader.get("/", params={"tag": text[:400]}).text)
        check("/", site.get("/", params={"tag": text[:40]}).text)


def allowed(text: str, longest: int) -> str:
    """What the forms accept of a text: one line of visible characters."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:longest].strip()


def test_texts_that_people_type_become_no_elements(tmp_path: Path):
    """Typed into every field, stored as they are, and shown on every page."""
    folder = tmp_path / "runs"
    make_labelled_runs(folder, 3)
    file = tmp_path / "labels.jsonl"
    site = server(folder, file, scale="1-5")
    for text in TEXTS:
        name = allowed(text, 80)
        if not name or re.search("[\ue000-\uf8ff\u0378\uffff]", name):
            continue
        ann = Annotator(site, name)
        ann.next()
        check("/label/item", ann.text)
        ann.send(label="3", comment=allowed(text, 500))
        assert records(file)[-1]["annotator"] == name
        for address in ("/label", "/label/mine", "/label/next"):
            check("/label", ann.open(address))
        ann.open("/notes/parrot")
        version = re.findall(r'name="version" value="(\w+)"', ann.text)[0]
        tags = ", ".join(part[:40] for part in name.split(",")[:20])
        answer = ann.post("/notes/parrot", tags=tags, note=allowed(text, 900), version=version)
        assert answer.status_code == 303, (text, answer.text)
        for address in ("/", "/run/parrot", "/notes/parrot"):
            check(address, ann.open(address))
        stale = ann.post("/notes/parrot", tags=tags, note="x", version="0")
        assert stale.status_code in (403, 409)  # the page with the form is another one by now
        check("/notes", stale.text)
    assert len(records(file)) > 20


@pytest.mark.slow
def test_no_text_is_executed(visit, hostile: Path, tmp_path: Path):
    labels = hostile.parent / "labels.jsonl"
    options = LabelOptions(file=labels, runs=("hostile",), scale="1-5", question=ALL)
    with served(hostile, options) as address:
        seen = visit(address + "/label", viewport=DESKTOP)
        page = seen.page
        page.get_by_label("Your name").fill(allowed(TEXTS[0], 80))
        page.get_by_role("button", name="Start").or_(page.get_by_role("button", name="Continue")).click()
        page.locator(".label-form").wait_for()
        for _ in range(5):
            page.locator("summary").click()
            page.locator("#comment").fill(allowed(ALL, 1_500))
            with page.expect_navigation(wait_until="networkidle"):
                page.locator(".label-choices button").first.click()
            assert page.evaluate("window.__pwned") is None
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
            page.set_viewport_size(DESKTOP)
        for path in ("/label", "/label/mine", "/", "/run/hostile", "/notes/hostile"):
            seen.go(address + path, until="networkidle")
            assert page.evaluate("window.__pwned") is None, path
        assert {line for line in seen.console if "Failed to load resource" not in line} == set()
