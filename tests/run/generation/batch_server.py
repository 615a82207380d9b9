"""OpenAI's batch API in a server for tests: files, batches, results in files of their own."""

from __future__ import annotations

import json
from typing import Any

from tests.generate.server import Behaviour, Reply, Server, completion


class BatchServer(Server):
    """A batch is in progress for `polls` looks, and then completed. `script` says what becomes of its requests."""

    def __init__(self, behaviour: Behaviour, polls: int = 2) -> None:
        super().__init__(behaviour)
        self.polls = polls
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.looks = 0

    def other(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply | None:
        """A reply to a request of the batch API; None for other addresses."""
        parts = path.partition("?")[0].removeprefix("/v1/").split("/")
        if method == "POST" and parts == ["files"]:
            boundary = headers["content-type"].partition("boundary=")[2].encode()
            purpose, file = body.split(b"--" + boundary)[1:3]
            assert purpose.endswith(b"\r\n\r\nbatch\r\n")
            return self._reply({"id": self._stored(file.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n"))})
        if method == "POST" and parts == ["batches"]:
            wanted = json.loads(body)
            assert (wanted["endpoint"], wanted["completion_window"]) == ("/v1/chat/completions", "24h")
            name = f"b{len(self.batches)}"
            self.batches[name] = {"id": name, "status": "in_progress", "looks": 0, "input": wanted["input_file_id"]}
            return self._reply(self.batches[name])
        if method == "GET" and parts[0] == "batches":
            batch = self.batches[parts[1]]
            self.looks += 1
            batch["looks"] += 1
            if batch["looks"] > self.polls and batch["status"] == "in_progress":
                self._complete(batch)
            return self._reply(batch)
        if method == "GET" and parts[0] == "files":
            return Reply(raw=self.files[parts[1]])
        return None

    def _reply(self, content: dict[str, Any]) -> Reply:
        return Reply(raw=json.dumps(content).encode())

    def _stored(self, content: bytes) -> str:
        name = f"file{len(self.files)}"
        self.files[name] = content
        return name

    def _complete(self, batch: dict[str, Any]) -> None:
        output, errors = list[str](), list[str]()
        assert self.behaviour.script is not None
        for line in map(json.loads, self.files[batch["input"]].splitlines()):
            reply = self.behaviour.script(line["body"], 0)
            content = json.loads(reply.raw if reply.raw is not None else completion(reply, line["body"]["model"]))
            response = {"status_code": reply.status, "request_id": "r", "body": content}
            result = {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}
            (output if reply.status == 200 else errors).append(json.dumps(result))
        counts = {"total": len(output) + len(errors), "completed": len(output), "failed": len(errors)}
        batch |= {"status": "completed", "request_counts": counts}
        batch["output_file_id"] = self._stored("\n".join(output).encode()) if output else None
        batch["error_file_id"] = self._stored("\n".join(errors).encode()) if errors else None
