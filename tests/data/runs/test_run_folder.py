"""The parts of a run folder that was written by the same object."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
import pytest

from multimodal_eval.core.errors import MissingFileError
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.run_info import run_info


@pytest.mark.parametrize("place", ["local", "memory"])
def test_a_part_that_was_just_written_is_read_like_the_file(place, tmp_path):
    location = tmp_path / "run" if place == "local" else f"memory://{uuid4().hex}"
    writer, reader = RunFolder.create(location, run_info()), RunFolder(location)
    tables = [pa.table({"id": [f"{part}"], "b": [part], "a": ["x"]}) for part in range(3)]

    def same(part, columns=None):
        read = writer.read_part("scores", part, columns)
        assert read.equals(reader.read_part("scores", part, columns))
        assert read.column_names == reader.read_part("scores", part, columns).column_names
        assert writer.part_schema("scores", part).equals(reader.part_schema("scores", part))
        return read

    writer.write_part("scores", 0, tables[0])
    assert same(0).equals(tables[0])
    assert same(0, ["a", "missing", "id"]).column_names == ["a", "id"]
    writer.write_part("scores", 0, tables[1])  # rewritten with other columns
    assert same(0).equals(tables[1])
    writer.write_part("scores", 1, tables[2])
    assert same(0).equals(tables[1])
    assert same(1).equals(tables[2])


def test_samples_that_were_removed_are_not_remembered(tmp_path):
    folder = RunFolder.create(tmp_path / "run", run_info())
    folder.write_part("samples", 0, pa.table({"id": ["a"]}))
    folder.clear_samples()
    with pytest.raises(MissingFileError):
        folder.read_part("samples", 0)
