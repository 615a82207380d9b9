"""METEOR 1.5's data: made once, mapped, and never read past the end."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from multimodal_eval._native import Meteor15, MeteorDataBuilder
from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.store import folder_of
from multimodal_eval.text import meteor_data
from multimodal_eval.text.meteor_data import TABLE, open_program, parameters, prepare

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


def test_every_list_is_found_again(folder):
    prepare(folder)
    program = opened(folder)
    assert matched(program, "the car", "the automobile") == [1, 0, 1, 0]
    assert matched(program, "went", "leave") == [0, 0, 1, 0]  # through the exception
    assert matched(program, "cars", "automobile") == [0, 0, 1, 0]  # through the ending
    assert matched(program, "before", "in front of") == [0, 0, 0, 1]  # the table holds it one way, both ways count
    assert matched(program, "in front of", "before") == [0, 0, 0, 3]
    assert matched(program, "a lot of dogs", "many dogs") == [1, 0, 0, 3]
    _, stats = program.score(["the a dog"], [["the a dog"]], "")
    assert stats[0, 2] == 2  # function words


def test_pieces_of_any_size_make_the_same_table():
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
    for _ in range(300):  # numbers inside are wrong: an error or a wrong score, but no crash
        spoilt = np.frombuffer(whole, dtype=np.uint8).copy()
        spoilt[chooser.integers(0, len(spoilt), 4)] = chooser.integers(0, 256, 4)
        try:
            Meteor15(spoilt, "english", False, parameters("en")).score(texts, [[text] for text in texts[::-1]], "")
        except RuntimeError as refusal:
            assert "damaged" in str(refusal)  # noqa: PT017 - not every spoilt byte is noticed


def test_a_table_that_is_not_there_yet_is_made_on_first_use(meteor_home, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    resource = get_resource("meteor-1.5-ru")
    folder = folder_of(resource)
    folder.mkdir(parents=True)
    monkeypatch.setenv("MMEVAL_HOME", str(meteor_home))
    for file in resource.files:
        (folder / file.name).write_bytes((folder_of(resource) / file.name).read_bytes())
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    open_program("ru", "russian-2014")
    assert (folder / TABLE).is_file()


def test_a_damaged_table_says_what_to_do(meteor_home, tmp_path, monkeypatch):
    table = tmp_path / "x.table"
    table.write_bytes(b"nothing of the kind")
    with pytest.raises(UnavailableError, match="Remove it"):
        meteor_data._open(str(table), "en", "english")
