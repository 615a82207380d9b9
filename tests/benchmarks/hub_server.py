"""A hub on this machine: it answers huggingface_hub about datasets, which are the samples of recipes.

It knows revisions, sizes and checksums, answers ranges, refuses gated datasets without a token, and can end a transfer
in the middle of a file or send other bytes than it lists.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from multimodal_eval.benchmarks.recipes import Recipe
from multimodal_eval.benchmarks.sample import write_sample

COMMIT = "5" * 40
TOKEN = "hf_of-the-test"


@dataclass
class Dataset:
    """The files of a repository."""

    files: dict[str, bytes]
    commit: str = COMMIT
    is_gated: bool = False
    cuts: list[str] = field(default_factory=list)  # files whose next transfer ends in the middle
    other: dict[str, bytes] = field(default_factory=dict)  # files that are sent with another content than listed

    @classmethod
    def of(cls, recipe: Recipe, folder: Path) -> Dataset:
        """The sample of a recipe as it would be published."""
        names = write_sample(recipe, folder)
        return cls({name: (folder / name).read_bytes() for name in names} | {"README.md": b"# A dataset\n"})


@dataclass
class Hub:
    """The datasets of a hub, its address, and what was asked: method, path, range."""

    datasets: dict[str, Dataset]
    address: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)


@contextmanager
def serving(datasets: dict[str, Dataset]) -> Iterator[Hub]:
    """A hub with these datasets, while the block runs."""
    hub = Hub(datasets)

    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_INFO = re.compile(r"/api/datasets/([^/]+/[^/]+)(?:/revision/([^/]+))?")
_FILE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._answer()

    def do_GET(self) -> None:
        """Answer."""
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path, self.headers.get("Range", "")))
        for pattern, answer in ((_INFO, self._info), (_FILE, self._file)):
            if match := pattern.fullmatch(path):
                dataset = self.hub.datasets.get(match[1])
                if dataset is None:
                    self._refuse(401, "RepoNotFound")
                elif dataset.is_gated and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    self._refuse(401, "GatedRepo")
                elif match[2] not in (None, "main", dataset.commit):
                    self._refuse(404, "RevisionNotFound")
                else:
                    answer(match, dataset)
                return
        self._refuse(404, "EntryNotFound")

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _info(self, match: re.Match[str], dataset: Dataset) -> None:
        siblings = [
            {"rfilename": name, "size": len(content), "blobId": _blob_id(content)}
            | (
                {"lfs": {"size": len(content), "sha256": _sha256(content), "pointerSize": 130}}
                if _is_large(name)
                else {}
            )
            for name, content in dataset.files.items()
        ]
        answer = {"_id": "1", "id": match[1], "sha": dataset.commit, "private": False, "siblings": siblings, "tags": []}
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _file(self, match: re.Match[str], dataset: Dataset) -> None:
        name = match[3]
        if name not in dataset.files:
            self._refuse(404, "EntryNotFound")
            return
        listed = dataset.files[name]
        content = dataset.other.get(name, listed)
        etag = _sha256(listed) if _is_large(name) else _blob_id(listed)
        headers = {
            "ETag": f'"{etag}"',
            "X-Repo-Commit": dataset.commit,
            "Accept-Ranges": "bytes",
            "X-Linked-Size": str(len(listed)),
            "X-Linked-Etag": f'"{etag}"',
        }
        start = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        first = int(start[1]) if start else 0
        status = 206 if start else 200
        if start:
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        body = content[first:]
        if self.command == "GET" and name in dataset.cuts:
            dataset.cuts.remove(name)
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self._send(status, body, headers)


def _is_large(name: str) -> bool:
    return name.endswith(".parquet")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
