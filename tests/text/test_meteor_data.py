"""METEOR 1.5's data: built once, memory-mapped, and never read past the end."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from multimodal_eval._native import Meteor15, MeteorDataBuilder
from multimodal_eval.core.errors import FetchError, UnavailableError
from multimodal_eval.evaluation.metrics.meteor import TABLE, open_program, parameters, prepare
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.store import folder_of, verify

LISTS = {
    "toy.words": b"the\na\n",
    "toy.synsets": b"car\n00000001\nautomobile\n00000001 00000007\ngo\n00000002\nleave\n00000002\n",
    "toy.exceptions": b"go\nwent gone\n",
    "toy.prefixes": b"Mr\n",
}
PARAPHRASES = b"0.5\nin front of\nbefore\n0.1\nmany\na lot of\n"


@pytest.fixture
def folder(tmp_path):
    for name, content in LISTS.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "paraphrase-toy.gz").write_bytes(gzip.compress(PARAPHRASES))
    return tmp_path


def opened(folder):
    return Meteor15(np.memmap(folder / TABLE, dtype=np.uint8, mode="r"), "english", False, parameters("en"))


def matched(program, candidate, reference):
    """Words of the candidate matched by each module: exact, stem, synonym, paraphrase."""
    _, stats = program.score([candidate], [[reference]], "")
    return [int(stats[0, 4 + 4 * module] + stats[0, 6 + 4 * module]) for module in range(4)]


def test_every_list_is_in_the_table(folder):
    prepare(folder)
    program = opened(folder)
    assert matched(program, "the car", "the automobile") == [1, 0, 1, 0]
    assert matched(program, "went", "leave") == [0, 0, 1, 0]  # through the exception
    assert matched(program, "cars", "automobile") == [0, 0, 1, 0]  # through the ending
    assert matched(program, "before", "in front of") == [
        0,
        0,
        0,
        1,
    ]  # the table has one direction, both match
    assert matched(program, "in front of", "before") == [0, 0, 0, 3]
    assert matched(program, "a lot of dogs", "many dogs") == [1, 0, 0, 3]
    _, stats = program.score(["the a dog"], [["the a dog"]], "")
    assert stats[0, 2] == 2  # function words


def test_pieces_of_any_size_give_the_same_table():
    tables = []
    for size in (1, 3, 7, 1000):
        builder = MeteorDataBuilder()
        for start in range(0, len(PARAPHRASES), size):
            builder.add_paraphrases(PARAPHRASES[start : start + size])
        tables.append(builder.finish())
    assert len(set(tables)) == 1


def test_paraphrases_that_end_too_early_are_refused(folder):
    (folder / "paraphrase-toy.gz").write_bytes(gzip.compress(PARAPHRASES[:-10]))
    with pytest.raises(RuntimeError, match="end too early"):
        prepare(folder)
    assert not (folder / TABLE).exists()
    assert [file for file in folder.iterdir() if file.name.startswith(".")] == []


def test_a_damaged_table_is_refused_and_never_read_past_its_end(folder):
    prepare(folder)
    whole = (folder / TABLE).read_bytes()
    for length in [0, 10, 60, len(whole) // 2, len(whole) - 1]:
        with pytest.raises(RuntimeError, match="damaged"):
            Meteor15(np.frombuffer(whole[:length] or b"x", dtype=np.uint8), "english", False, parameters("en"))
    texts = ["the car went in front of many dogs", "a lot of automobiles leave before"]
    chooser = np.random.default_rng(1)
    for _ in range(300):  # random bytes inside: an error or a wrong score, but no crash
        damaged = np.frombuffer(whole, dtype=np.uint8).copy()
        damaged[chooser.integers(0, len(damaged), 4)] = chooser.integers(0, 256, 4)
        try:
            Meteor15(damaged, "english", False, parameters("en")).score(texts, [[text] for text in texts[::-1]], "")
        except RuntimeError as refusal:
            assert "damaged" in str(refusal)  # noqa: PT017 - not every damaged byte is noticed


@pytest.fixture
def russian(meteor_home, tmp_path, monkeypatch):
    """A folder with the fetched Russian data, without the table."""
    resource = get_resource("meteor-1.5-ru")
    monkeypatch.setenv("MMEVAL_HOME", str(meteor_home))
    source = folder_of(resource)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    folder = folder_of(resource)
    folder.mkdir(parents=True)
    for file in resource.files:
        (folder / file.name).write_bytes((source / file.name).read_bytes())
    return folder


@pytest.mark.parametrize("content", [None, b"", b"not a table"])
def test_a_missing_or_damaged_table_is_rebuilt(russian, content):
    if content is not None:
        (russian / TABLE).write_bytes(content)
    open_program("ru", "russian-2014")
    verify(get_resource("meteor-1.5-ru"))
    assert [file.name for file in russian.iterdir() if file.name.startswith(".")] == []


def test_several_threads_build_a_missing_table_once(russian):
    with ThreadPoolExecutor(8) as threads:
        programs = list(threads.map(lambda _: open_program("ru", "russian-2014"), range(8)))
    assert len({id(program) for program in programs}) == 1


def test_a_table_is_not_built_from_damaged_files(russian):
    (russian / "russian.words").write_bytes(b"x" * 387)
    with pytest.raises(UnavailableError, match=r"must have the checksum .* mmeval fetch meteor-1\.5-ru"):
        open_program("ru", "russian-2014")


def test_verify_detects_a_damaged_table(russian):
    open_program("ru", "russian-2014")
    table = bytearray((russian / TABLE).read_bytes())
    table[len(table) // 2] ^= 1
    (russian / TABLE).write_bytes(table)
    with pytest.raises(FetchError, match="checksum"):
        verify(get_resource("meteor-1.5-ru"))
