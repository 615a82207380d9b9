"""Start the server of a model, wait until it answers, and stop it at the end.

The command may be that of any server with OpenAI's chat completions: `vllm serve {model} --port {port}`,
`llama-server -m {model} --port {port}`, `transformers serve --port {port}`. It is split as by a shell, and not run by
one. On Linux the server also ends if this process is killed.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.visible import visible
from multimodal_eval.generate.protocol import EndpointError

__all__ = ["served", "server_version"]

LONGEST_START = 1800.0  # seconds: large weights are loaded from a slow disk
GRACE = 15.0  # seconds to stop, before it is killed
_PAUSE = 0.2  # seconds between two looks
_SHOWN = 20  # lines of the log after a failure
_PR_SET_PDEATHSIG = 1
_HEALTHY = ("/health", "/v1/models")


@contextmanager
def served(command: str, model: str) -> Iterator[str]:
    """The address of a server that is started by a command, with {model} and {port} in it."""
    if "{port}" not in command:
        raise ConfigError(
            f"`serve` must have {{port}} in its command: vllm serve {{model}} --port {{port}}. Got {command!r}"
        )
    port = _free_port()
    arguments = [word.replace("{model}", model).replace("{port}", str(port)) for word in shlex.split(command)]
    with tempfile.TemporaryFile() as log:
        process = _started(arguments, log)
        try:
            _wait(process, port, log)
            yield f"http://127.0.0.1:{port}/v1"
            if process.poll() is not None:
                raise EndpointError(f"the server has ended with status {process.returncode}:\n{_end_of(log)}")
        except EndpointError as error:
            has_log = process.poll() is None or "\n" in str(error)
            raise (error if has_log else EndpointError(f"{error}\nThe server has ended:\n{_end_of(log)}")) from None
        finally:
            _stop(process)


def server_version(command: str) -> str | None:
    """What the program of the server says of its version; None if it says nothing."""
    words = shlex.split(command)
    end = 3 if words[1:2] == ["-m"] else 1  # python -m MODULE
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run([*words[:end], "--version"], capture_output=True, text=True, timeout=120, check=False)
        lines = (done.stdout + done.stderr).strip().splitlines()
        if done.returncode == 0 and lines:
            return visible(lines[-1])[:200]
    return None


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _started(arguments: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for this process, which stops the server after its last requests
            preexec_fn=_ending_with_us(),
        )
    except OSError as fault:
        raise ConfigError(f"`serve`: {arguments[0]} cannot be started: {fault.strerror}") from None


def _ending_with_us() -> Callable[[], None] | None:
    """What the new process does first: it asks to be ended if this one dies."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait(process: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> None:
    """Return as soon as the server is healthy."""
    end = time.monotonic() + LONGEST_START
    while not _is_healthy(port):
        if process.poll() is not None:
            raise EndpointError(f"the server has ended with status {process.returncode}:\n{_end_of(log)}")
        if time.monotonic() > end:
            raise EndpointError(f"the server is not healthy after {LONGEST_START:,.0f} seconds:\n{_end_of(log)}")
        time.sleep(_PAUSE)


def _is_healthy(port: int) -> bool:
    for path in _HEALTHY:
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"http://127.0.0.1:{port}{path}", timeout=10
            ):
                return True
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it loads the weights
                return False
        except OSError:
            return False
    return False


def _end_of(log: IO[bytes]) -> str:
    """The last lines of the log."""
    log.seek(0)
    lines = log.read()[-20_000:].decode("utf-8", "replace").splitlines()[-_SHOWN:]
    return "\n".join(f"  {visible(line)}" for line in lines) or "  it has written nothing"


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and what it has started."""
    for is_last in (False, True):
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL if is_last else signal.SIGTERM)
            else:
                process.kill() if is_last else process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            continue
        return
