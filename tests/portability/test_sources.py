"""The sources use nothing that only one system has, outside of the module that is there for it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from multimodal_eval.core.system_files import DEVICE

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# The place for what differs, which the tests of `like_windows` run both ways.
SYSTEM_FILES = "core/system_files.py"
MODULES = {"fcntl", "grp", "msvcrt", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty", "winreg"}
FUNCTIONS = {
    *"chown chroot fchmod fchown fdatasync fork forkpty getgid getegid geteuid getloadavg getpgid getpgrp".split(),
    *"getuid killpg lchown mkfifo mknod nice posix_fadvise posix_fallocate pread preadv pwrite pwritev".split(),
    *"sched_getaffinity sched_setaffinity setsid setuid statvfs sysconf uname wait4 O_CLOEXEC".split(),
    *"O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC SIGKILL SIGHUP SIGALRM SIGUSR1 SIGCHLD alarm pthread_sigmask".split(),
}
GUARDED = re.compile(r"hasattr\((os|signal), ")  # in the same function


def functions(tree):
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def uses(tree):
    """The names of `os` and `signal` in FUNCTIONS that are used directly, without a look whether they are there."""
    guarded = {
        id(node) for function in functions(tree) if GUARDED.search(ast.unparse(function)) for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        is_system = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if is_system and node.value.id in ("os", "signal") and node.attr in FUNCTIONS and id(node) not in guarded:
            yield f"{node.value.id}.{node.attr}", node.lineno


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0], node.lineno


def test_the_check_sees_what_it_should():
    tree = ast.parse("import fcntl\nos.fork()\ndef f():\n    return os.getuid() if hasattr(os, 'getuid') else 0")
    assert list(uses(tree)) == [("os.fork", 2)]
    assert list(imports(tree)) == [("fcntl", 1)]


def faults_of(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    name = path.relative_to(ROOT / "src").as_posix()
    yield from (f"{name}:{line}: {used}" for used, line in uses(tree))
    yield from (f"{name}:{line}: import {module}" for module, line in imports(tree) if module in MODULES)
    # Every process is spawned: Windows has no other way, and a fork of a process with threads may hang.
    if re.search(r"get_context\(\s*(?!\"spawn\")|set_start_method|multiprocessing\.(Pool|Process)\b", text):
        yield f"{name}: processes that may be forked"
    if re.search(r"[\"'](/tmp|/dev/|/proc/|/etc/)", text) and path.name != "ray.py":
        yield f"{name}: a path of POSIX systems"


def test_nothing_of_one_system_only():
    assert len(SOURCES) > 500
    sources = [path for path in SOURCES if not path.as_posix().endswith(SYSTEM_FILES)]
    assert [fault for path in sources for fault in faults_of(path)] == []


def test_every_text_file_is_opened_with_an_encoding():
    # A rule that ruff still calls a preview; in the settings it would change other rules too.
    command = [sys.executable, "-m", "ruff", "check", "--preview", "--select", "PLW1514", "src", "tools"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_two_tracked_files_differ_only_in_capital_letters_and_all_can_be_checked_out_on_windows():
    names: dict[str, str] = {}
    folders = ("src", "tests", "docs", "native", "tools", "bench", "examples", ".github", ".ci")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        assert names.setdefault(name.casefold(), name) == name
        for part in path.relative_to(ROOT).parts:
            assert not DEVICE.fullmatch(part.partition(".")[0]), name
            assert not re.search(r'[<>:"|?*\\\x00-\x1f]|[ .]$', part), name
        assert len(name) < 180, name  # Windows allows 260 characters, with the folder of the clone
