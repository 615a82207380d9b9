"""Checksums at the end of JSON files and in the manifest, on a disk, in memory and at a URL."""

from __future__ import annotations

import hashlib
import json
import pickle
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate, load_run
from multimodal_eval.core.errors import DamagedFileError
from multimodal_eval.core.records import to_json
from multimodal_eval.data.runs import checksums, storage
from multimodal_eval.data.runs.checksums import is_intact, sealed
from multimodal_eval.data.runs.run_content import packed, piece_of, with_checksum, without_checksum
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.run_info import run_info

ROWS = [{"id": str(n), "references": [f"a dog {n}", "two cats"], "generated_answer": f"a {n}"} for n in range(20)]
json_objects = st.dictionaries(st.text(), st.none() | st.floats(allow_nan=False) | st.text(), min_size=1)


@given(json_objects, st.none() | st.just("0" * 64), st.data())
def test_every_flipped_bit_of_a_sealed_file_is_noticed(content, manifest, data):
    stored = sealed(to_json(content), manifest)
    assert is_intact(stored)
    assert {key: json.loads(stored)[key] for key in content} == json.loads(to_json(content)) or "sha256" in content
    place, bit = data.draw(st.integers(0, len(stored) - 1)), data.draw(st.integers(0, 7))
    flipped = bytearray(stored)
    flipped[place] ^= 1 << bit
    assert is_intact(bytes(flipped)) is not True


def test_the_checksum_is_the_sha256_of_everything_before_it():
    stored = sealed(b'{\n  "n": 1\n}\n')
    assert stored == b'{\n  "n": 1,\n  "sha256": "%s"\n}\n' % hashlib.sha256(b'{\n  "n": 1').hexdigest().encode()
    assert is_intact(b'{\n  "n": 1\n}\n') is None


@given(st.lists(st.binary(max_size=9), min_size=1), st.data())
def test_pieces_with_a_checksum(pieces, data):
    number = data.draw(st.integers(0, len(pieces) - 1))
    content = packed([with_checksum(piece) for piece in pieces])
    assert without_checksum(piece_of(number, lambda start, stop: content[start:stop])) == pieces[number]
    damaged = bytearray(with_checksum(pieces[number]))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1
    assert without_checksum(bytes(damaged)) is None
    assert without_checksum(b"") is without_checksum(None) is None


def test_the_manifest_lists_the_sha256_of_every_data_file(tmp_path):
    run = evaluate(ROWS, metrics=["cider"], output=tmp_path / "run")
    manifest = json.loads((run.path / "manifest.json").read_bytes())
    names = ["samples/part-00000.parquet", "scores/part-00000.parquet", "state/cider.bin"]
    assert manifest["files"] == {name: hashlib.sha256((run.path / name).read_bytes()).hexdigest() for name in names}
    results = json.loads((run.path / "results.json").read_bytes())
    assert results["manifest"] == hashlib.sha256((run.path / "manifest.json").read_bytes()).hexdigest()
    assert not (run.path / "checksums").exists()


def test_results_are_written_last(tmp_path, monkeypatch):
    written, replace = [], storage.replace

    def recorded(source, target):
        replace(source, target)
        written.append(target.name)

    monkeypatch.setattr(storage, "replace", recorded)
    run = evaluate(ROWS, metrics=["cider"], output=tmp_path / "run")
    assert written[-1] == "results.json"
    times = {file.name: file.stat().st_mtime_ns for file in run.path.rglob("*") if file.is_file()}
    assert times["results.json"] == max(times.values())  # some systems give equal times to files of one tick


def test_a_manifest_of_another_run_is_noticed(tmp_path):
    evaluate(ROWS, metrics=["cider"], output=tmp_path / "first")
    evaluate(ROWS, metrics=["rouge_l"], output=tmp_path / "second")
    manifest = (tmp_path / "second" / "manifest.json").read_bytes()
    (tmp_path / "first" / "manifest.json").write_bytes(manifest)
    with pytest.raises(DamagedFileError, match=r"manifest\.json"):
        load_run(tmp_path / "first").scores()


def test_a_run_in_memory_gets_checksums_when_it_is_saved(tmp_path):
    run = evaluate(ROWS, metrics=["cider"])
    assert run.folder.storage.defers
    saved = run.save(tmp_path / "saved")
    evaluate(ROWS, metrics=["cider"], output=tmp_path / "stored")
    for name in ("manifest.json", "results.json"):
        assert (saved.path / name).read_bytes() == (tmp_path / "stored" / name).read_bytes()
    assert run.results == saved.results
    assert run.scores().equals(saved.scores())


def test_a_temporary_run_is_freed_at_once():
    """Without a cycle of references, which would keep the tables until the next garbage collection."""
    from weakref import ref

    run = evaluate(ROWS, metrics=["cider"])
    folder = ref(run.folder)
    del run
    assert folder() is None


def test_a_file_at_a_url_is_compared_once_and_then_read_by_column():
    folder = RunFolder.create(f"memory://{uuid4().hex}", run_info())
    folder.write_part("scores", 1, pa.table({"row": [0, 1], "id": ["a", "b"]}))
    assert RunFolder(folder.location).read_part("scores", 1, ["id"]).to_pylist() == [{"id": "a"}, {"id": "b"}]
    content = bytearray(folder.storage.read_bytes("scores/part-00001.parquet"))
    content[20] ^= 1
    folder.storage.write_bytes("scores/part-00001.parquet", bytes(content))
    with pytest.raises(DamagedFileError, match=r"memory://.*/scores/part-00001\.parquet is damaged"):
        RunFolder(folder.location).read_part("scores", 1, ["id"])


def test_page_checksums_notice_damage_after_the_file_was_compared(tmp_path):
    """A file with the same size and time is not compared again, but each page is when it is read."""
    import os

    folder = RunFolder.create(tmp_path / "run", run_info())
    folder.write_part("scores", 1, pa.table({"id": [f"number {n}" for n in range(1000)]}))
    file = tmp_path / "run" / "scores" / "part-00001.parquet"
    assert len(folder.read_part("scores", 1)) == 1000
    status = file.stat()
    with file.open("r+b") as opened:
        opened.seek(status.st_size // 4)
        opened.write(b"\xff\x00\xff\x00")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DamagedFileError, match="cannot be read"):
        folder.read_part("scores", 1)


@pytest.mark.parametrize("place", ["disk", "url"])
def test_another_process_may_write_the_manifest_later(tmp_path, place):
    location = tmp_path / "run" if place == "disk" else f"memory://{uuid4().hex}"
    driver, worker = RunFolder.create(location, run_info()), RunFolder(location)
    for part in (1, 2):
        driver.write_part("samples", part, pa.table({"id": [str(part)]}))
    checksums._checked.clear()
    assert len(worker.read_part("samples", 1)) == 1  # by its note: there is no manifest yet
    driver.record_checksums()
    assert len(worker.read_part("samples", 2)) == 1


def test_a_file_is_read_once_for_its_checksum(tmp_path, monkeypatch):
    run = evaluate(ROWS, metrics=["cider"], output=tmp_path / "run")
    checksums._checked.clear()
    opened, compared = load_run(run.path), []
    digest = checksums.sha256_of_file
    monkeypatch.setattr(checksums, "sha256_of_file", lambda path: compared.append(path.name) or digest(path))
    for _ in range(3):
        opened.scores()
        load_run(run.path).scores(["id"])
    assert compared == ["part-00000.parquet"]


def test_the_error_can_be_sent_to_another_process():
    error = DamagedFileError("runs/first", "scores/part-00000.parquet", "is damaged", "Do this")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.name) == ("runs/first/scores/part-00000.parquet is damaged. Do this", error.name)
