"""Annotators who use the forms of the viewer, without a browser."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from multimodal_eval import Sample, evaluate
from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from tests.report.viewer.viewed import HOST, client

OWN = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}


def make_labelled_runs(folder: Path, count: int = 12, **more: Any) -> None:
    """Two systems with answers that tell them apart, and one answer that failed."""
    for name, word in (("parrot", "red"), ("owl", "blue")):
        samples = [
            Sample(
                f"s{number}",
                question=f"What is in image {number}?",
                references=[f"a red thing {number}"],
                generated_answer=f"a {word} thing {number}",
                error="timed out" if name == "owl" and number == 3 else None,
            )
            for number in range(count)
        ]
        evaluate(samples, metrics=["exact_match", "rouge_l"], output=folder / name, **more)


def records(file: Path) -> list[dict[str, Any]]:
    """The lines of a file of labels."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def server(folder: Path, file: Path, **options: Any) -> TestClient:
    """A viewer that collects labels; a new process would be the same, with other secrets."""
    return client(folder, LabelOptions(file=file, **options))


class Annotator:
    """A person with a browser of her own."""

    def __init__(self, site: TestClient, name: str | None = "ann") -> None:
        self.browser = TestClient(site.app, base_url=str(site.base_url), follow_redirects=False)
        self.name = name
        self.text = ""
        self.address = ""
        self.open("/label")
        if name is not None:
            answer = self.post("/label/annotator", annotator=name)
            assert answer.status_code == 303, answer.text

    def open(self, address: str) -> str:
        """Open a page, also behind redirects."""
        answer = self.browser.get(address)
        while answer.status_code == 303:
            address = answer.headers["location"]
            answer = self.browser.get(address)
        assert answer.status_code == 200, answer.text
        self.text, self.address = answer.text, address
        return self.text

    @property
    def token(self) -> str:
        match = re.search(r'name="token" value="([^"]+)"', self.text)
        assert match is not None, self.text
        return match[1]

    def post(self, address: str, headers: dict[str, str] | None = None, **fields: str) -> Any:
        """Send a form of the open page."""
        data = {"token": self.token, **fields}
        return self.browser.post(address, data=data, headers=OWN if headers is None else headers)

    def next(self) -> bool:
        """Open the next item; False at the end."""
        self.open("/label/next")
        return self.address != "/label"

    def send(self, **fields: Any) -> None:
        """Send the form of the open item."""
        name = re.search(r'name="annotator" value="([^"]*)"', self.text)
        assert name is not None
        answer = self.post(self.address, None, annotator=unescape(name[1]), **fields)
        assert answer.status_code == 303, answer.text

    def undo(self) -> None:
        """Take the last label back."""
        name = re.search(r'name="annotator" value="([^"]*)"', self.text)
        answer = self.post("/label/undo", annotator=unescape(name[1]) if name else "")
        assert answer.status_code == 303, answer.text
        self.open(answer.headers["location"])

    @property
    def answers(self) -> list[str]:
        """The answers on the page, from left to right."""
        return [unescape(text) for text in re.findall(r'<div class="label-text"><bdi>(.*?)</bdi>', self.text, re.S)]
