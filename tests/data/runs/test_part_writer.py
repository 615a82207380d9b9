"""Parts that are written in threads: all of them, and no error is lost."""

from __future__ import annotations

import pytest

from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_folder import writing_parts
from multimodal_eval.data.runs.sample_table import to_table
from multimodal_eval.data.runs.storage import storage_at


class Folder:
    """Takes the place of a run folder."""

    def __init__(self, location, broken=()):
        self.location, self.broken, self.parts = location, broken, {}
        self.storage = storage_at(location)

    def write_part(self, kind, number, table):
        if number in self.broken:
            raise OSError(f"no space for part {number}")
        self.parts[kind, number] = table


def table(number):
    return to_table([Sample(id=str(number))], number)


def write(folder, tables):
    with writing_parts(folder) as write_part:
        for number, content in enumerate(tables):
            write_part(number, content)


@pytest.mark.parametrize("remote", [False, True])
def test_all_parts_are_written(tmp_path, remote):
    folder = Folder("memory://run" if remote else tmp_path)
    write(folder, map(table, range(20)))
    assert folder.parts == {("samples", number): table(number) for number in range(20)}


@pytest.mark.parametrize("broken", [0, 7, 19])
def test_a_part_that_cannot_be_written_is_an_error(tmp_path, broken):
    with pytest.raises(OSError, match=f"part {broken}"):
        write(Folder(tmp_path, {broken}), map(table, range(20)))


def test_an_error_of_the_reader_comes_first(tmp_path):
    def tables():
        yield table(0)
        raise KeyError("the reader's")

    with pytest.raises(KeyError):
        write(Folder(tmp_path, {0}), tables())
