"""Forms sent to a viewer that collects labels: random fields, headers, methods and addresses.

Whatever is sent, there is no server error, nothing is written but whole lines of the two files, and only a form with
the token of the browser, from a page of the server, writes at all.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from random import Random
from urllib.parse import quote, urlencode

from starlette.testclient import TestClient

from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from multimodal_eval.report.viewer.run_list import RunNote
from tests.hostile.campaign import FaultError, campaign, shared
from tests.hostile.mutations import TEXTS as ODD_TEXTS
from tests.report.hostile import TEXTS
from tests.report.test_hostile_texts import TAGS, Elements
from tests.report.viewer.labelling.annotators import OWN, make_labelled_runs
from tests.report.viewer.viewed import client

FIELDS = ("token", "annotator", "label", "action", "comment", "tags", "note", "version", "file", "path", "run", "")
KINDS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "application/json", "")
ADDRESSES = ("/label/annotator", "/label/undo", "ITEM", "ITEM", "ITEM", "/notes/parrot", "/notes/../x", "/label/item/x")


@cache
def site() -> tuple[TestClient, Path]:
    """A viewer that collects labels, and the folder of its runs; labels.jsonl is beside it."""
    runs = shared() / "labelled" / "runs"
    if not runs.exists():
        make_labelled_runs(runs, 4)
    return client(runs, LabelOptions(file=runs.parent / "labels.jsonl", scale="1-5")), runs


@campaign("forms", cases=200)
def attack(random: Random, folder: Path) -> str | None:
    viewer, runs = site()
    notes, labels = runs / ".mmeval-notes.jsonl", runs.parent / "labels.jsonl"
    for file in (notes, labels):
        file.unlink(missing_ok=True)
    before = {path: path.stat().st_mtime_ns for path in runs.parent.rglob("*") if path != runs}
    browser = TestClient(viewer.app, base_url=str(viewer.base_url), follow_redirects=False)
    is_own = random.random() < 0.7
    token, item = _signed_in(browser)
    address = random.choice(ADDRESSES).replace("ITEM", item)
    fields = _fields(random, address, token)
    kind = KINDS[0] if random.random() < 0.8 else random.choice(KINDS)
    headers = {**(OWN if is_own else _foreign(random)), "content-type": kind}
    body = _body(random, fields)
    (folder / "request.txt").write_bytes(repr((address, headers, body)).encode("utf-8", "backslashreplace"))
    answer = browser.request("POST" if random.random() < 0.9 else "PUT", address, content=body, headers=headers)
    if answer.status_code >= 500:
        raise FaultError(f"status {answer.status_code}: {answer.text[-1000:]}")
    if "<html" in answer.text:
        elements = Elements(answer.text)
        if elements.bad or elements.tags - TAGS - {"textarea", "section"}:
            raise FaultError(f"{address}: {elements.bad}, {elements.tags - TAGS}")
    present = {path: path.stat().st_mtime_ns for path in runs.parent.rglob("*") if path != runs}
    if changed := {path for path, time in present.items() if before.get(path) != time} - {notes, labels}:
        raise FaultError(f"{address}: wrote {changed}")
    written = [json.loads(line) for file in (labels, notes) if file.exists() for line in file.read_bytes().splitlines()]
    if written and (not is_own or answer.status_code != 303 or len(written) > 1):
        raise FaultError(f"{address}: status {answer.status_code} wrote {written}")
    return "written" if written else f"status {answer.status_code}"


def _signed_in(browser: TestClient) -> tuple[str, str]:
    """The token of the browser, and the address of an item."""
    token = re.findall(r'name="token" value="(\w+)"', browser.get("/label").text)[0]
    browser.post("/label/annotator", data={"token": token, "annotator": "ann"}, headers=OWN)
    return token, browser.get("/label/next").headers["location"]


def _fields(random: Random, address: str, token: str) -> list[tuple[str, str]]:
    """The fields that belong to an address, with any texts, or any fields."""
    if random.random() < 0.5:
        some = [(random.choice(FIELDS), _value(random)) for _ in range(random.randint(0, 6))]
        return [("token", token), ("annotator", "ann"), *some] if random.random() < 0.7 else some
    if address.startswith("/notes"):
        names = {"tags": _value(random), "note": _value(random), "version": RunNote().version}
    else:
        names = {"annotator": "ann", "label": random.choice(("3", "5", _value(random))), "comment": _value(random)}
    return [("token", token), *names.items()]


def _value(random: Random) -> str:
    text = random.choice((*TEXTS, *ODD_TEXTS, "3", "skip", "5", "../x", "/etc/passwd", "\0", ""))
    return text[: random.choice((3, 40, 400, 10_000))]


def _foreign(random: Random) -> dict[str, str]:
    origin = random.choice(("null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:8000", ""))
    site = random.choice(({}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-origin"}))
    return {**({"origin": origin} if origin else {}), **site}


def _body(random: Random, fields: list[tuple[str, str]]) -> bytes:
    body = urlencode(fields, errors="replace").encode()
    if random.random() < 0.2:
        place = random.randrange(len(body) + 1)
        body = body[:place] + random.choice((b"%", b"%ff", b"\xff", b"&", b"=", b";", b"%00")) + body[place:]
    if random.random() < 0.05:
        body += b"&comment=" + quote("é" * 50_000).encode()
    return body
