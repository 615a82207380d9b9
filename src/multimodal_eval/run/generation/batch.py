"""Answers by OpenAI's batch API: write the requests of a run to files, and read the results that come back.

>>> from multimodal_eval import evaluate
>>> from multimodal_eval.run.generation.batch import BatchOut
>>> data = [{"id": "1", "question": "Is it a dog?", "references": ["yes"]}]
>>> evaluate(data, task="textvqa", model=BatchOut("requests.jsonl", "openai:NAME"), output="run")
Traceback (most recent call last):
    ...
multimodal_eval.run.generation.batch.BatchWrittenError: requests: 1, in requests.jsonl...

Later, `resume("run", model=BatchIn(["results.jsonl"]))` reads the results. The run folder waits in between with the
samples. A request is the same, byte for byte, as if the endpoint were asked directly, and so is what becomes of a
reply. Answers in the cache are not asked for. Of a dialogue, only the turns that can be asked now are written; the next
ones after their results.
"""

from __future__ import annotations

import asyncio
import glob
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, Price
from multimodal_eval.core.errors import ConfigError, OpenSamplesError, RetryableError
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.batch_files import BatchResult, BatchResults, BatchWriter, custom_id, refuse_existing
from multimodal_eval.generate.engine import Asker, Effort, OpenRequestError, run_async
from multimodal_eval.generate.http import excerpt, is_filtered
from multimodal_eval.generate.protocol import (
    EndpointError,
    Exchange,
    Generator,
    MalformedReplyError,
    Outcome,
    RejectedError,
    Request,
    failed,
    outcome_of,
    refused_request,
)
from multimodal_eval.generate.providers.endpoint_model import without_alternatives
from multimodal_eval.generate.providers.openai_chat import ChatGenerator, answer_from
from multimodal_eval.generate.registry import find_generator
from multimodal_eval.run.ask.replies import OpenSample, resuming

__all__ = ["Batch", "BatchIn", "BatchOut", "BatchWrittenError", "OpenSample", "refuse_batch"]

URL = "/v1/chat/completions"
_NOT_REJECTED = (401, 402, 403, 404, 405, 408, 409, 429)  # not the fault of the request
_SHOWN = 5  # samples in a message
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between two looks at a batch; they double


class BatchWrittenError(OpenSamplesError):
    """The requests are written to files, and the run waits for their results. The command line exits with 0."""

    exit_code = 0
    files: Sequence[Path] = ()
    run: RunFolder | None = None


class Batch(ABC):
    """A way to ask a model by files. `model` is PROVIDER:NAME; None: that of the run."""

    model: str | None

    @abstractmethod
    def check(self) -> None:
        """Refuse files that cannot be used, before anything is read."""

    @abstractmethod
    def asker(self, folder: RunFolder, info: RunInfo, generator: Generator, *, accept_truncated: bool) -> Asker:
        """What takes the place of the endpoint."""

    @abstractmethod
    def ended(self, is_open: Mapping[int, OpenSample]) -> OpenSamplesError:
        """Why the run stops: the samples without an outcome, by their rows."""

    @abstractmethod
    def close(self) -> None:
        """Close the files. Those that are not complete are removed."""


@dataclass
class BatchOut(Batch):
    """Writes the requests to a file, or to several if one cannot hold them all."""

    path: str | Path
    model: str | None = None
    requests: int = field(default=0, init=False)
    files: list[Path] = field(default_factory=list, init=False)
    _writer: BatchWriter | None = field(default=None, init=False, repr=False)
    _run: RunFolder | None = field(default=None, init=False, repr=False)
    _resuming: str = field(default="", init=False, repr=False)  # the command that continues the run

    def check(self) -> None:
        """Refuse to overwrite requests."""
        refuse_existing(Path(self.path))

    def asker(self, folder: RunFolder, info: RunInfo, generator: Generator, *, accept_truncated: bool) -> Asker:
        """Writes every request."""
        self._writer, self._resuming, self._run = BatchWriter(Path(self.path), URL), resuming(folder, info), folder
        return _Writing(_chat(generator), _rows(folder, info), self._writer)

    def close(self) -> None:
        """Remove files that are not complete."""
        if self._writer is not None:
            self._writer.close(is_failed=True)
            self._writer = None

    def ended(self, is_open: Mapping[int, OpenSample]) -> OpenSamplesError:
        """The files, now with their names, and the command that reads the results."""
        assert self._writer is not None
        self._writer.close()
        self.requests, self.files, self._writer = self._writer.requests, self._writer.files, None
        names = ", ".join(map(str, self.files[:_SHOWN])) + (" …" if len(self.files) > _SHOWN else "")
        written = BatchWrittenError(
            f"requests: {self.requests:,}, in {names}\nHave them answered by the batch API for {URL}, then continue "
            f"with:\n  {self._resuming} --batch-in RESULTS.jsonl"
        )
        written.files, written.run = self.files, self._run
        return written


@dataclass
class BatchIn(Batch):
    """Reads results, in any order, from any number of files; files of errors too."""

    paths: Sequence[str | Path]
    model: str | None = None
    _results: BatchResults | None = field(default=None, init=False, repr=False)
    _resuming: str = field(default="", init=False, repr=False)  # the command that continues the run

    def check(self) -> None:
        """Refuse files that are not results."""
        self._results = BatchResults(map(Path, self.paths))

    def asker(self, folder: RunFolder, info: RunInfo, generator: Generator, *, accept_truncated: bool) -> Asker:
        """Takes every answer from the files."""
        results = self._results or BatchResults(map(Path, self.paths))
        results.refuse_unknown(sum(info.parts))
        self._results, self._resuming = results, resuming(folder, info)
        asker = _Reading(_chat(generator), _rows(folder, info), results)
        asker.accept_truncated = accept_truncated
        return asker

    def close(self) -> None:
        """Close the files."""
        if self._results is not None:
            self._results.close()

    def ended(self, is_open: Mapping[int, OpenSample]) -> OpenSamplesError:
        """The samples without a result, and what can be done."""
        first, *others = (is_open[row] for row in sorted(is_open))
        also = ", ".join(repr(sample.id) for sample in others[: _SHOWN - 1]) + (" …" if len(others) >= _SHOWN else "")
        return OpenSamplesError(
            f"samples without a usable result: {len(is_open):,}. {first.id!r}: {first.reason}"
            + (f". Also {also}" if also else "")
            + "\nAll other answers are kept. Write requests for just these with:\n"
            f"  {self._resuming} --batch-out FILE\n"
            "Without --batch-out the endpoint is asked for them now. With --batch-in and --accept-open they are stored "
            "as errors"
        )


def refuse_batch(config: GenerationConfig, generator: Generator, batch: Batch) -> None:
    """Refuse settings that do not go with batch files, and unusable files, before anything is read."""
    _chat(generator)
    for name, reason in (
        ("until", "all requests are written before the first answer is known"),
        ("budget", "the cost of a batch is known only when it is done"),
    ):
        if getattr(config, name) is not None:
            raise ConfigError(f"`{name}` does not go with batch files: {reason}")
    batch.check()


class _Asking(Asker):
    """Finds the row of a request by the id of its sample."""

    def __init__(self, generator: ChatGenerator, rows: Mapping[str, int]) -> None:
        super().__init__(generator, Effort(concurrency=1, retries=0))
        self.chat, self._rows = generator, rows

    def row(self, request: Request) -> int:
        """The row of the request's sample."""
        return self._rows[request.id]


class _Writing(_Asking):
    def __init__(self, generator: ChatGenerator, rows: Mapping[str, int], writer: BatchWriter) -> None:
        super().__init__(generator, rows)
        self._writer = writer

    async def ask(self, request: Request) -> Exchange:
        """Write the request. It stays open; one that cannot be written is rejected, as by the endpoint."""
        try:
            self._writer.write(custom_id(self.row(request), request), self.chat.body_of(request))
        except RejectedError as rejection:
            return Exchange(refused_request(rejection), request.digest)
        raise OpenRequestError("its request is written")


class _Reading(_Asking):
    def __init__(self, generator: ChatGenerator, rows: Mapping[str, int], results: BatchResults) -> None:
        super().__init__(generator, rows)
        self._results = results

    async def ask(self, request: Request) -> Exchange:
        """The outcome in the files. Raises OpenRequestError if there is none."""
        result = self._results.get(self.row(request), request)
        if result is None:
            raise OpenRequestError("there is no result")
        return Exchange(self._outcome(result, request), request.digest)

    def _outcome(self, result: BatchResult, request: Request) -> Outcome:
        body = self.chat.key.removed(result.body)
        if result.status is None:
            raise OpenRequestError(f"{result.place}: {result.error}")
        if result.status == 200:
            try:
                answer = without_alternatives(request, answer_from(body))
                return outcome_of(answer, accept_truncated=self.accept_truncated)
            except MalformedReplyError as fault:
                return failed("malformed", str(fault))
            except RejectedError as rejection:
                return refused_request(rejection)
            except RetryableError as failure:
                raise OpenRequestError(f"{result.place}: {failure}") from None
        words = f"HTTP {result.status}: {excerpt(body)}"
        if 400 <= result.status < 500 and is_filtered(body, by_words=result.status == 403):
            return failed("filtered", words)
        if 400 <= result.status < 500 and result.status not in _NOT_REJECTED:
            return failed("rejected", words)
        raise OpenRequestError(f"{result.place}: {words}")


def _chat(generator: Generator) -> ChatGenerator:
    if not isinstance(generator, ChatGenerator) or generator.path != ChatGenerator.path:
        raise ConfigError(f"batch files are those of OpenAI's API: --model openai:NAME. Got {generator.label} instead.")
    return generator


def _rows(folder: RunFolder, info: RunInfo) -> dict[str, int]:
    rows: dict[str, int] = {}
    for part in range(len(info.parts)):
        for identifier in folder.read_part("samples", part, ["id"]).column("id").to_pylist():
            rows[identifier] = len(rows)
    return rows


# The API itself: files are uploaded, batches are created, and their results are fetched when they are done. What was
# submitted is noted beside the run folder, so that another process can wait for it.


class _Uploaded(msgspec.Struct):
    id: str


class _Counts(msgspec.Struct):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Batch(msgspec.Struct, omit_defaults=True):
    id: str
    status: str = "validating"
    output_file_id: str | None = None
    error_file_id: str | None = None
    request_counts: _Counts | None = None
    errors: Any = None


_ENDED = ("completed", "expired", "cancelled", "failed")
_NOTES = msgspec.json.Decoder(list[_Batch])
_BOUNDARY = "mmeval-batch-file"


def beside(run: str | Path, what: str) -> Path:
    """A file of a batch, beside the folder of its run."""
    return Path(f"{str(run).rstrip('/')}.{what}")


def to_submit(run: str | Path) -> BatchOut:
    """Requests that will be submitted. Refused while a batch of the run is not read."""
    notes, file = beside(run, "batches.json"), beside(run, "requests.jsonl")
    if notes.exists():
        raise ConfigError(f"{notes} names batches that are not read yet: mmeval run --resume {run} --batch-in api")
    file.unlink(missing_ok=True)  # of a process that has ended before it submitted them
    return BatchOut(file)


def half_price(price: Price) -> Price:
    """What tokens cost in a batch."""
    cached = None if price.cached_input is None else price.cached_input / 2
    return msgspec.structs.replace(price, input=price.input / 2, output=price.output / 2, cached_input=cached)


def submitted(written: BatchWrittenError) -> str:
    """Upload the files of requests, which are then removed, and create a batch of each. Returns what to do next."""
    assert written.run is not None
    run, info = written.run, written.run.read_info()
    assert info.config.generation is not None
    notes, chat = beside(run.path, "batches.json"), _chat(find_generator(info.config.generation))
    batches: list[_Batch] = []
    for file in written.files:
        batches.append(run_async(_submit(chat, file)))
        notes.write_bytes(msgspec.json.encode(batches))  # at once: a batch is paid for
        file.unlink()
    names = ", ".join(batch.id for batch in batches)
    return f"submitted: {names}\nWait for the answers, now or later, with:\n  {resuming(run, info)} --batch-in api"


async def _submit(chat: ChatGenerator, file: Path) -> _Batch:
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{_BOUNDARY}\r\n'
        f'Content-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    body = head.encode() + file.read_bytes() + f"\r\n--{_BOUNDARY}--\r\n".encode()
    kind = f"multipart/form-data; boundary={_BOUNDARY}"
    content = await chat.client.post(f"{chat.base_url}/files{chat.query}", body, kind)
    wanted = {
        "input_file_id": msgspec.json.decode(content, type=_Uploaded).id,
        "endpoint": URL,
        "completion_window": "24h",
    }
    created = await chat.client.post(f"{chat.base_url}/batches{chat.query}", msgspec.json.encode(wanted))
    return msgspec.json.decode(created, type=_Batch)


def collected(run: str | Path, progress: Progress = silent) -> list[Path]:
    """Wait until the batches of a run have ended, and fetch their results. Returns the files of all that ever came."""
    notes, folder = beside(run, "batches.json"), RunFolder(run)
    info = folder.read_info()
    earlier = sorted(Path(run).parent.glob(f"{glob.escape(Path(run).name)}.batch_*.jsonl"))
    if not notes.exists():
        if earlier:
            return earlier
        raise ConfigError(f"{folder.label} has no batch. Submit it with: {resuming(folder, info)} --batch-out api")
    assert info.config.generation is not None
    Consent(folder, info).refuse(asks_model=True)
    chat = _chat(find_generator(info.config.generation))
    run_async(_collect(chat, _NOTES.decode(notes.read_bytes()), run, progress))
    notes.unlink()
    return sorted(Path(run).parent.glob(f"{glob.escape(Path(run).name)}.batch_*.jsonl"))


async def _collect(chat: ChatGenerator, batches: Sequence[_Batch], run: str | Path, progress: Progress) -> None:
    wait = FIRST_PAUSE
    while True:
        now = []
        for batch in batches:
            try:
                content = await chat.client.get(f"{chat.base_url}/batches/{batch.id}{chat.query}")
                now.append(msgspec.json.decode(content, type=_Batch))
            except RetryableError:  # it is asked again
                now.append(batch)
        counts = [batch.request_counts or _Counts() for batch in now]
        progress("waiting for the batch", sum(each.completed for each in counts), sum(each.total for each in counts))
        if all(batch.status in _ENDED for batch in now):
            break
        await asyncio.sleep(wait)
        wait = min(wait * 2, LONGEST_PAUSE)
    for batch in now:
        if batch.status == "failed":
            raise EndpointError(f"the batch {batch.id} has failed: {msgspec.json.encode(batch.errors).decode()}")
        for kind, name in (("output", batch.output_file_id), ("errors", batch.error_file_id)):
            if name is not None:
                content = await chat.client.get(f"{chat.base_url}/files/{name}/content{chat.query}")
                beside(run, f"batch_{batch.id}.{kind}.jsonl").write_bytes(content)
