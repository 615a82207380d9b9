"""Zips of submissions that are damaged, packed in unusual ways, or bombs: a problem with a code, and no traceback.

MMEVAL_HOSTILE_COUNT sets the number of mutated archives per contest.
"""

from __future__ import annotations

import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from multimodal_eval.contests.clarity.predictions import MEMBER, read_predictions
from multimodal_eval.contests.dialogue.dialogues import OUTPUT, PERPLEXITIES, both_files
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers.problems import Problems

COUNT = int(os.environ.get("MMEVAL_HOSTILE_COUNT", "300"))
LABELS = b"Explicit\nImplicit\n" * 20
Read = Callable[[Path, Problems], object]


def _clarity(path: Path, problems: Problems) -> object:
    return read_predictions(path, problems)


READERS: dict[str, tuple[Read, tuple[str, ...]]] = {
    "clarity": (_clarity, (MEMBER,)),
    "dialogue": (both_files, (OUTPUT, PERPLEXITIES)),
}


def _zip(path: Path, names: tuple[str, ...], method: int = zipfile.ZIP_DEFLATED, content: bytes = LABELS) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in names:
            archive.writestr(name, content)
    return path


def _codes(read: Read, path: Path) -> set[str]:
    """The codes of the problems; anything but problems fails the test."""
    problems = Problems()
    try:
        read(path, problems)
        problems.raise_if_any()
    except InputError as refusal:
        return {problem.code for problem in refusal.problems}
    return set()


def _patched(path: Path, local: int, central: int, value: bytes) -> None:
    """Replace some bytes of every local header and of every entry of the directory."""
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\3\4", local), (b"PK\1\2", central)):
        start = content.find(signature)
        while start >= 0:
            content[start + offset : start + offset + len(value)] = value
            start = content.find(signature, start + 4)
    path.write_bytes(content)


@pytest.mark.parametrize("contest", READERS)
@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_damaged_content_of_every_method_is_a_problem(tmp_path: Path, contest: str, method: int) -> None:
    read, names = READERS[contest]
    path = _zip(tmp_path / "sent.zip", names, method)
    content = bytearray(path.read_bytes())
    start = 30 + len(names[0])
    content[start : start + 20] = b"\xff" * 20
    path.write_bytes(content)
    assert _codes(read, path) == {"TRUNCATED"}


@pytest.mark.parametrize("contest", READERS)
@pytest.mark.parametrize("method", [1, 6, 9, 10, 19, 93, 95, 97, 98, 99, 65535])
def test_unknown_methods_are_a_problem(tmp_path: Path, contest: str, method: int) -> None:
    read, names = READERS[contest]
    path = _zip(tmp_path / "sent.zip", names)
    _patched(path, 8, 10, method.to_bytes(2, "little"))
    assert _codes(read, path) == {"TRUNCATED"}


@pytest.mark.parametrize("contest", READERS)
def test_encrypted_files_and_later_versions_are_a_problem(tmp_path: Path, contest: str) -> None:
    read, names = READERS[contest]
    path = _zip(tmp_path / "sent.zip", names)
    _patched(path, 6, 8, b"\x01\x00")
    assert _codes(read, path) == {"FORMAT"}
    path = _zip(tmp_path / "sent.zip", names)
    _patched(path, 4, 6, b"\xff\x00")
    assert _codes(read, path) == {"FORMAT"}


@pytest.mark.parametrize("contest", READERS)
@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_bombs_are_refused(tmp_path: Path, contest: str, method: int) -> None:
    read, names = READERS[contest]
    path = _zip(tmp_path / "sent.zip", names, method, bytes(12 << 20))
    assert path.stat().st_size < 100_000
    assert _codes(read, path) == {"TOO_LONG"}
    _patched(path, 22, 24, (10).to_bytes(4, "little"))  # the archive declares ten bytes
    assert _codes(read, path)


@pytest.mark.parametrize("contest", READERS)
def test_mutated_archives_are_problems(tmp_path: Path, contest: str) -> None:
    read, names = READERS[contest]
    path = tmp_path / "sent.zip"
    whole = {
        method: _zip(path, names, method).read_bytes()
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
    }
    for seed in range(COUNT):
        chance = random.Random(seed)
        content = bytearray(whole[chance.choice(list(whole))])
        if chance.random() < 0.2:
            del content[chance.randrange(len(content)) :]
        for _ in range(chance.choice((1, 2, 8))):
            if content:
                content[chance.randrange(len(content))] = chance.choice((0, 1, 255, chance.randrange(256)))
        path.write_bytes(content)
        _codes(read, path)
