"""A task of an installed harness, in a process of its own: what it asks, how it scores, what it aggregates.

The process gets neither keys nor addresses of models: its environment has only what is listed here. It runs in the
Python of this one, or in the one that `$MMEVAL_LM_EVAL_PYTHON` or `$MMEVAL_LMMS_EVAL_PYTHON` names, and works in a
folder that is removed with it. It downloads nothing, unless the user asks for it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from multimodal_eval.core.errors import ConfigError, MetricError, MissingPackageError, UnknownNameError
from multimodal_eval.evaluation.harness import HARNESSES

__all__ = ["HarnessProcess", "Reply", "close_all", "listed_tasks", "opened"]

Reply = str | list[tuple[float | None, bool]]  # an answer, or the likelihood of every choice and whether it leads

_SECONDS = 1800.0  # without a reply
_TAIL = 600  # characters of what a process wrote before it died
# All that the process sees of the environment. Keys and addresses of models have other names.
_PASSED = (
    *("PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LANG", "LC_ALL", "PYTHONPATH"),
    *("LD_LIBRARY_PATH", "VIRTUAL_ENV", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "XDG_CACHE_HOME", "NLTK_DATA"),
)
_OF_NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
)
_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_FIXED = {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONIOENCODING": "utf-8"}


class HarnessProcess:
    """The process of a package. Two threads may ask it; they wait for each other."""

    def __init__(self, package: str, *, may_download: bool = False) -> None:
        self.package = package
        self._python = os.environ.get(HARNESSES[package]) or sys.executable
        self._folder = tempfile.TemporaryDirectory(prefix="mmeval-harness-", ignore_cleanup_errors=True)
        self._lock = Lock()
        self._task: str | None = None
        try:
            with (Path(self._folder.name) / "stderr.txt").open("wb") as log:
                self._process = subprocess.Popen(
                    [self._python, str(Path(__file__).with_name("child.py"))],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self._folder.name,
                    env=_environment(may_download=may_download),
                    encoding="utf-8",
                )
        except OSError as error:
            self._folder.cleanup()
            reason = f"cannot be started: {error.strerror}"
            raise ConfigError(f"{self._python}, the Python for {package}, {reason}") from None

    def ask(self, do: str, **arguments: Any) -> Any:
        """The reply to a request. Raises ConfigError, MissingPackageError or UnknownNameError for a refused task."""
        self._task = arguments.get("task", self._task)
        with self._lock:
            line = self._line(json.dumps({"do": do, **arguments}))
        reply = json.loads(line) if line else None
        if reply is None:
            tail = self._tail()
            self.close()
            raise MetricError(f"the process of {self.package} ended without a reply. It wrote at last: {tail}")
        if "refused" in reply:
            raise _refusal(self.package, self._task, reply["refused"], reply["message"])
        return reply["reply"]

    def _line(self, request: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = Timer(_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except (OSError, ValueError):  # the process is gone
            return ""
        finally:
            timer.cancel()

    def _tail(self) -> str:
        """The last line that the process wrote."""
        with suppress(OSError):
            lines = (Path(self._folder.name) / "stderr.txt").read_text("utf-8", "replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")[-_TAIL:]
        return "nothing"

    @property
    def is_running(self) -> bool:
        """Whether the process can be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self._folder.cleanup()


def _environment(*, may_download: bool) -> dict[str, str]:
    names = (*_PASSED, *(_OF_NETWORK if may_download else ()))
    passed = {name: os.environ[name] for name in names if name in os.environ}
    return {**passed, **_FIXED, **({} if may_download else _OFFLINE)}


def _refusal(package: str, task: str | None, kind: str, message: str) -> Exception:
    what = f"{package}:{task}" if task else package
    if kind == "missing":
        return MissingPackageError(
            f"{what} needs the package {package}, which is not installed for {message}. Install it with: "
            f"pip install {package}. If another Python has it, name that: {HARNESSES[package]}=PATH"
        )
    if kind == "unknown":
        return UnknownNameError(f"task of {package}", str(task), json.loads(message))
    texts = {
        "version": f"{what}: the installed version of {package} is {message}",
        "broken": f"{what}: the installed version {message}",
        "group": f"{what} is a {message} of tasks. Name one of its tasks: mmeval ls tasks --from {package}",
        "unsupported": f"{what} is not supported: {message}",
        "judge": f"{what} needs a judge: its function {message} asks a model, and has no key here. Judge the answers "
        "by a judge of your own: --metrics judge:NAME --judge PROVIDER:MODEL",
        "likelihoods": f"{what} compares the likelihoods of whole texts such as {message!r}, which endpoints for chats "
        "do not give. Tasks whose choices are letters or single words are supported",
        "data": f"{what}: its data are not on this machine ({message}). Name a copy with --data DIR, or fetch them "
        "with --fetch",
        "media": f"{what}: {message}, which cannot be sent. Name a copy of the data with their media: --data DIR",
        "raised": f"{what}: a function of the task failed: {message}",
    }
    return ConfigError(texts[kind])


# The processes that score: one per task and data, until this process ends.


class _Opened:
    """A task in its process, with the values that were computed already."""

    def __init__(self, package: str, task: str, data: str | None, *, may_download: bool) -> None:
        self.process = HarnessProcess(package, may_download=may_download)
        try:
            self.about: Mapping[str, Any] = self.process.ask("open", package=package, task=task, data=data)
        except BaseException:
            self.process.close()
            raise
        self._known: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._lock = Lock()

    def scores(self, replies: Sequence[tuple[str, Reply, str | None]]) -> list[Mapping[str, Any]]:
        """For every document, the reply to it and its digest: what the functions of the task give."""
        keys = [(number, json.dumps(reply)) for number, reply, _ in replies]
        with self._lock:
            new = dict(pair for pair in zip(keys, replies, strict=True) if pair[0] not in self._known)
            if new:
                values = self.process.ask("score", docs=list(new.values()))
                self._known.update(zip(new, values, strict=True))
            return [self._known[key] for key in keys]


_tasks: dict[tuple[str, str, str | None], _Opened] = {}
_opening = Lock()


def opened(package: str, task: str, data: str | None, *, may_download: bool = False) -> _Opened:
    """The task in a process that this one has started, and that ends with it."""
    with _opening:
        key = (package, task, data)
        if key not in _tasks or not _tasks[key].process.is_running:
            _tasks[key] = _Opened(package, task, data, may_download=may_download)
        return _tasks[key]


@atexit.register
def close_all() -> None:
    """End all processes."""
    while _tasks:
        _tasks.popitem()[1].process.close()


def listed_tasks(package: str) -> list[Mapping[str, Any]]:
    """The tasks of an installed harness, and what is known about each."""
    process = HarnessProcess(package)
    try:
        tasks: list[Mapping[str, Any]] = process.ask("list", package=package)
        return tasks
    finally:
        process.close()
