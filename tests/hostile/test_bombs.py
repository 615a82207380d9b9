"""`mmeval validate` needs less than 1 GB for every bomb, and no bomb takes minutes. Real data of the same kind pass."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.formats import read_delimited
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import MAX_COUNTED, Problems
from multimodal_eval.data.readers.summary import Summary
from tests.hostile.bombs import BOMBS
from tests.hostile.campaign import EVERY

REPOSITORY = Path(__file__).parents[2]
GIGABYTE_IN_KB = 1_000_000
# A quadratic reader needs hours; the slowest bomb takes about 15 s of a slow core.
LIMITED = (
    "import atexit, resource, shutil, sys; resource.setrlimit(resource.RLIMIT_CPU, (120, 120));"
    # Not the peak of getrusage, which is that of the process that started this one if that was larger.
    "atexit.register(shutil.copyfile, '/proc/self/status', sys.argv.pop(1));"
    "from multimodal_eval.cli.main import main; main()"
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BOMBS][:: 1 if EVERY else 6])
def test_a_bomb_needs_little_memory_and_time(name, tmp_path):
    # In a process of its own: the memory of the generator is not that of the test.
    generator = [sys.executable, "-m", "tests.hostile.bombs", name, str(tmp_path)]
    made = subprocess.run(generator, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    arguments = json.loads(made.stdout)
    with (tmp_path / "output.txt").open("wb") as out:
        child = subprocess.run(
            [sys.executable, "-c", LIMITED, tmp_path / "status", "validate", *arguments],
            stdout=out,
            stderr=out,
            check=False,
        )
    printed = (tmp_path / "output.txt").read_text(errors="replace")
    assert child.returncode in (0, 1), printed[-2000:]
    assert "Traceback" not in printed
    assert child.returncode == 0 or "error: " in printed
    status = (tmp_path / "status").read_text()
    (peak,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak < GIGABYTE_IN_KB


def checked(path, **limit):
    problems, summary = Problems(), Summary()
    with limits.using(**limit):
        for _ in FileInput(path).check(problems, summary):
            pass
    problems.raise_if_any()
    return summary.samples


def refusal(path, **limit):
    with pytest.raises(InputError) as error:
        checked(path, **limit)
    (problem,) = error.value.problems
    return problem


def repetitive(folder, lines, suffix=".jsonl.gz"):
    """Records that differ in nothing but the id."""
    content = b"".join(b'{"id": %d, "generated_answer": "yes", "question": "Is it?"}\n' % n for n in range(lines))
    path = folder / f"data{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else pa.compress(content, "zstd", asbytes=True))
    return path, len(content)


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_the_limit_counts_the_bytes_of_the_content(tmp_path, monkeypatch, suffix):
    path, size = repetitive(tmp_path, 2000, suffix)
    ratio = size // path.stat().st_size
    monkeypatch.setattr(limits, "STREAM", 1000)
    assert checked(path, expansion=ratio + 1) == 2000
    problem = refusal(path, expansion=ratio)
    assert (problem.code, problem.file) == ("EXPANSION", str(path))
    assert f"--max-expansion {10 * ratio}" in problem.hint
    monkeypatch.setattr(limits, "STREAM", size)  # the ratio does not count in a small file
    assert checked(path, expansion=1) == 2000


def test_a_repetitive_file_is_accepted_by_default(tmp_path):
    path, size = repetitive(tmp_path, 20_000)
    assert size > 10 * path.stat().st_size
    assert checked(path) == 20_000


def test_a_json_array_is_limited_as_a_whole(tmp_path, monkeypatch):
    content = json.dumps([{"id": str(n), "answer": "a"} for n in range(2000)]).encode()
    path = tmp_path / "data.json.gz"
    path.write_bytes(gzip.compress(content))
    ratio = len(content) // path.stat().st_size
    monkeypatch.setattr(limits, "DOCUMENT", 1000)
    assert checked(path, expansion=4 * (ratio + 1)) == 2000, "a quarter of the expansion of a stream"
    assert refusal(path, expansion=4 * ratio - 4).code == "EXPANSION"


def test_a_record_of_many_values_is_refused_before_it_is_decoded(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"id": "a", "answer": "b"}\n{"id": "c", "m": [' + b"[]," * 20_000 + b"[]]}\n")
    assert checked(path) == 2
    problem = refusal(path, record_mb=1)
    assert (problem.code, problem.line) == ("TOO_LONG", 2)
    # 1 text, 1 object, 2 keys, 1 list, 20,001 lists after 20,000 commas: 40,005 values of 100 bytes
    assert problem.message == "the record would take about 3 MB of memory."
    assert problem.hint.startswith("Raise the limit, which is 1 MB now: --max-record-mb 10")


def test_text_in_strings_is_not_counted_as_values():
    from multimodal_eval._native import count_values

    assert count_values(b'{"a": "[[[,,,\\"{{{", "b": [1, 2]}') == 5  # the object, two members, the list, 2


@pytest.mark.parametrize("row", [b"," * 300_000, b'"\n",' * 100_000], ids=["cells", "lines"])
def test_a_row_of_csv_is_limited(tmp_path, row):
    """The reader of rows over 16 MB, and of unusual files."""
    path = tmp_path / "data.csv"
    path.write_bytes(b"id,answer\na,b\n" + row + b"\n")
    with limits.using(record_mb=2), pytest.raises(InputError) as error:  # 256 kB of text
        list(read_delimited(path, Problems(), ","))
    (problem,) = error.value.problems
    assert (problem.code, problem.line >= 3) == ("TOO_LONG", True)
    assert "--max-record-mb 20" in problem.hint


def test_problems_are_counted_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("multimodal_eval.data.readers.problems.MAX_COUNTED", 3000)
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"1\n" * 5000)
    with pytest.raises(InputError) as error:
        checked(path)
    assert error.value.total == 3000
    assert error.value.problems[-1].message == "reading stopped after 3,000 problems"
    assert MAX_COUNTED >= 100_000


def test_repeated_keys_are_named_with_their_lines(tmp_path):
    path = tmp_path / "data.json"
    path.write_bytes(b'[{"a": 1,\n"b": 1,\n"a": 2,\n"b": 3}]')
    with pytest.raises(InputError) as error:
        checked(path)
    assert [(p.line, p.field) for p in error.value.problems] == [(3, "a"), (4, "b")]


def test_keys_after_a_line_that_is_nested_too_deeply_are_checked():
    from multimodal_eval._native import repeated_keys

    deep = b'{"a":' * 200_000
    assert repeated_keys(deep + b'\n{"k": 1, "k": 2}\n', True) == [(len(deep) + 10, "k")]


def long_values(folder, **options):
    """300 rows with the same text of 100,000 characters."""
    path = folder / "data.parquet"
    table = pa.table({"id": [str(n) for n in range(300)], "answer": ["x" * 100_000] * 300})
    pq.write_table(table, path, **{"compression": "zstd", **options})
    return path


ENCODINGS: tuple[dict[str, object], ...] = (
    {},
    {"data_page_version": "2.0"},
    {"use_dictionary": False, "data_page_size": 1 << 17, "write_batch_size": 1},
    {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
)


@pytest.mark.parametrize("options", ENCODINGS, ids=str)
def test_few_rows_of_long_values_are_decoded_together(tmp_path, monkeypatch, options):
    from multimodal_eval.data.readers import parquet_file, scanned_blocks

    path = long_values(tmp_path, **options)
    monkeypatch.setattr(parquet_file, "_TOGETHER", 1_000_000)
    sizes = []
    monkeypatch.setattr(scanned_blocks, "check_weight", lambda path, size, weight: sizes.append(weight))
    assert checked(path) == 300
    batches = [after - before for before, after in zip([0, *sizes], sizes, strict=False)]
    assert max(batches) <= 1_200_000, "about 10 of 300 rows"


@pytest.mark.parametrize("options", ENCODINGS, ids=str)
def test_the_content_of_parquet_is_limited(tmp_path, monkeypatch, options):
    from multimodal_eval.data.readers import parquet_file

    path = long_values(tmp_path, **options)
    assert checked(path) == 300
    monkeypatch.setattr(parquet_file, "_FREE", 20_000_000)  # of 30,000,000 bytes
    problem = refusal(path, expansion=1)
    assert (problem.code, "--max-expansion 10" in problem.hint) == ("EXPANSION", True)


def test_a_page_of_parquet_is_limited(tmp_path):
    path = long_values(tmp_path, use_dictionary=False)
    assert checked(path) == 300
    problem = refusal(path, record_mb=50)
    assert problem.message == "a page of column 2 of row group 1 would take about 114 MB of memory."  # 4 * 30,001,200


def test_a_row_of_parquet_is_limited(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "answer": ["c", "d"], "m": [[1], list(range(20_000))]}), path)
    assert checked(path) == 2
    problem = refusal(path, record_mb=1)
    assert (problem.code, problem.line) == ("TOO_LONG", 2)


def test_text_of_parquet_that_is_not_utf8_is_a_problem_of_its_row(tmp_path):
    path = tmp_path / "data.parquet"
    content, ends = b"ok\xff", pa.array([0, 2, 3], pa.int32()).buffers()[1]
    answers = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(content)])
    pq.write_table(pa.table({"id": ["a", "b"], "answer": answers}), path)
    problem = refusal(path)
    assert (problem.code, problem.line, problem.field) == ("ENCODING", 2, "answer")


def test_the_options_of_the_commands(tmp_path, monkeypatch):
    path, size = repetitive(tmp_path, 2000)
    monkeypatch.setattr(limits, "STREAM", 1000)
    ratio = str(size // path.stat().st_size + 1)
    run = CliRunner().invoke
    score = ["score", str(path), "--metrics", "exact_match", "--allow-empty"]
    for command, limit in ((["validate", str(path)], "--max-expansion 20"), (score, "`max_expansion: 20` in the file")):
        out = ["-o", str(tmp_path / "run")] if command[0] == "score" else []
        refused = run(cli, [*command, *out, "--max-expansion", "2"])
        assert isinstance(refused.exception, InputError)
        assert limit in str(refused.exception)
    assert run(cli, ["validate", str(path), "--max-expansion", ratio]).exit_code == 0
    assert limits.current() == limits.Limits()


def test_the_setting_of_a_configuration_reaches_the_reader(tmp_path, monkeypatch):
    from multimodal_eval import evaluate

    path, size = repetitive(tmp_path, 2000)
    monkeypatch.setattr(limits, "STREAM", 1000)
    settings = {"metrics": ["exact_match"], "allow_empty": True}
    with pytest.raises(InputError, match="decompression bomb"):
        evaluate(path, config={**settings, "max_expansion": 2})
    run = evaluate(path, config={**settings, "max_expansion": size // path.stat().st_size + 1})
    assert run.info.counts.samples == 2000


@pytest.mark.parametrize("digits", [309, 400, 4000])
def test_an_integer_beyond_floating_point_numbers_is_refused(tmp_path, digits):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"id": "a", "answer": "b", "n": [%s]}\n' % (b"9" * digits))
    problem = refusal(path)
    assert (problem.code, problem.field) == ("NONFINITE", "n")
    assert problem.message == "`n` is too large to be finite"
