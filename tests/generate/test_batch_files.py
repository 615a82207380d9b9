"""Batch files: how requests are split into files, and how results are read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.generate import batch_files
from multimodal_eval.generate.batch_files import BatchResults, BatchWriter, custom_id
from multimodal_eval.generate.protocol import RejectedError, Request, Text, Turn

URL = "/v1/chat/completions"


def request_for(text):
    return Request(text, (Turn("user", (Text(text),)),))


def written(path, *bodies):
    writer = BatchWriter(path, URL)
    for number, body in enumerate(bodies):
        writer.write(f"{number}", body)
    writer.close()
    return writer


def result(row, text, status=200, error=None, body=None):
    response = None if error else {"status_code": status, "request_id": "r", "body": body or {"row": row}}
    return json.dumps({"id": "b", "custom_id": custom_id(row, request_for(text)), "response": response, "error": error})


def results(folder, *files):
    paths = []
    for number, lines in enumerate(files):
        paths.append(folder / f"results-{number}.jsonl")
        paths[-1].write_text("\n".join(lines))
    return BatchResults(paths)


def test_a_line_has_exactly_the_bytes_of_the_body(tmp_path):
    body = b'{"model":"m","messages":[{"role":"user","content":"\xc3\xa9 \\" "}],"temperature":0.10}'
    files = written(tmp_path / "requests.jsonl", body).files
    assert files == [tmp_path / "requests.jsonl"]
    assert files[0].read_bytes() == (
        b'{"custom_id":"0","method":"POST","url":"/v1/chat/completions","body":' + body + b"}\n"
    )


def test_files_are_split_at_the_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_files, "MOST_REQUESTS", 2)
    by_count = written(tmp_path / "a.jsonl", *[b"{}"] * 5)
    assert [path.name for path in by_count.files] == ["a-00001.jsonl", "a-00002.jsonl", "a-00003.jsonl"]
    assert [len(path.read_text().splitlines()) for path in by_count.files] == [2, 2, 1]
    size = len(by_count.files[2].read_bytes())
    monkeypatch.setattr(batch_files, "MOST_REQUESTS", 100)
    monkeypatch.setattr(batch_files, "MOST_BYTES", 3 * size)
    by_size = written(tmp_path / "b.jsonl", *[b"{}"] * 7)
    assert [len(path.read_text().splitlines()) for path in by_size.files] == [3, 3, 1]
    assert (by_size.requests, by_size.files[0].stat().st_size) == (7, 3 * size)
    with pytest.raises(RejectedError, match="a batch file at most"):
        written(tmp_path / "c.jsonl", b"{" + b" " * 3 * size + b"}")


def test_the_limits_are_those_of_the_api():
    assert (batch_files.MOST_REQUESTS, batch_files.MOST_BYTES) == (50_000, 200_000_000)


def test_files_appear_only_if_all_is_written(tmp_path):
    writer = BatchWriter(tmp_path / "a.jsonl", URL)
    writer.write("0", b"{}")
    assert not (tmp_path / "a.jsonl").exists()
    writer.close(is_failed=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.jsonl", "a-00003.jsonl"])
def test_nothing_is_overwritten(tmp_path, name):
    (tmp_path / name).write_text("")
    with pytest.raises(ConfigError, match=f"{name} already exists"):
        BatchWriter(tmp_path / "a.jsonl", URL)
    with pytest.raises(ConfigError, match="is not a folder"):
        BatchWriter(tmp_path / "nowhere" / "a.jsonl", URL)


def test_results_come_in_any_order_and_an_answer_replaces_a_failure(tmp_path):
    expired = {"code": "batch_expired", "message": "too late"}
    read = results(
        tmp_path, [result(1, "b", error=expired), result(0, "a")], ["", result(1, "b"), result(2, "c", error=expired)]
    )
    assert len(read) == 3
    first, second, third = (read.get(row, request_for(text)) for row, text in enumerate("abc"))
    assert (first.status, json.loads(first.body)) == (200, {"row": 0})
    assert (second.status, second.place) == (200, f"{tmp_path / 'results-1.jsonl'}:2")
    assert (third.status, third.error) == (None, "batch_expired: too late")
    assert read.get(3, request_for("d")) is None
    read.close()


@given(st.permutations(range(6)), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_neither_order_nor_files_matter(tmp_path_factory, order, files):
    lines = [[result(row, f"q{row}") for row in order if files[row] == file] for file in range(3)]
    read = results(tmp_path_factory.mktemp("results"), *lines)
    bodies = [json.loads(read.get(row, request_for(f"q{row}")).body) for row in range(6)]
    read.close()
    assert bodies == [{"row": row} for row in range(6)]


def test_the_result_of_another_request_is_refused(tmp_path):
    read = results(tmp_path, [result(0, "the old prompt")])
    with pytest.raises(InputError, match=r"results-0.jsonl:1: .* is that of another request .*\(id 'the new prompt'\)"):
        read.get(0, request_for("the new prompt"))


def test_rows_that_the_run_does_not_have_are_refused(tmp_path):
    read = results(tmp_path, [result(0, "a"), result(7, "b")])
    read.refuse_unknown(8)
    with pytest.raises(InputError, match="the result is for sample number 8, and the run has 7 samples"):
        read.refuse_unknown(7)


def test_every_broken_line_is_named(tmp_path):
    lines = [result(0, "a"), "{", '{"custom_id": "request-1"}', '{"custom_id": 3}', "[" * 100_000, result(0, "a")]
    with pytest.raises(InputError) as refusal:
        results(tmp_path, lines)
    assert [problem.line for problem in refusal.value.problems] == [2, 3, 4, 5, 6]
    text = str(refusal.value)
    assert "the custom_id 'request-1' is unknown" in text
    assert f"{custom_id(0, request_for('a'))!r} has a result already, in {tmp_path / 'results-0.jsonl'}:1" in text


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        BatchResults([tmp_path / "none.jsonl"])
