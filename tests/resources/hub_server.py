"""A small local hub that answers like the Hugging Face hub."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1, sha256
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = (".safetensors", ".bin", ".onnx", ".onnx_data")


class Hub:
    """Repositories by name, each a dict of files.

    `served` replaces the content of files, `listed` changes their entries in the listing, the connection breaks while
    `broken` files are read, and `missing` is the status of what is not there.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.served: dict[str, bytes] = {}
        self.listed: dict[str, object] = {}
        self.broken: set[str] = set()
        self.missing = 404
        self.asked: list[str] = []
        self.commit = COMMIT

    def listing(self, name):
        siblings = []
        for file, content in self.repositories[name].items():
            entry = {"rfilename": file, "size": len(content)}
            entry["blobId"] = sha1(b"blob %d\0" % len(content) + content).hexdigest()
            if file.endswith(LARGE):
                entry["lfs"] = {"sha256": sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            changes = self.listed.get(file, {})
            siblings.append({**entry, **changes} if isinstance(changes, dict) else changes)
        return {"id": name, "sha": self.commit, "siblings": siblings}

    def answer(self, path: str) -> bytes | None:
        self.asked.append(path)
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        if parts[:2] == ["api", "models"] and parts[4] == "revision":
            name = "/".join(parts[2:4])
            return json.dumps(self.listing(name)).encode() if name in self.repositories else None
        name, file = "/".join(parts[:2]), "/".join(parts[4:])
        if parts[2:4] != ["resolve", self.commit] or file not in self.repositories.get(name, {}):
            return None
        return self.served.get(file, self.repositories[name][file])


@contextmanager
def hub_server() -> Iterator[tuple[Hub, str]]:
    """The hub and its address."""
    hub = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = hub.answer(self.path)
            self.send_response(200 if content is not None else hub.missing)
            if self.path.rpartition("/")[2] in hub.broken:
                self.send_header("Transfer-Encoding", "chunked")
                content = b"400\r\nthe beginning of 1024 bytes"
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
