"""Every kind of bad input is reported with a code and a place, and leaves no files behind."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.readers.records import parse_map
from tests.data.readers.reading import GOOD, problems_of, read, write
from tests.edited_runs import accept_changes

ROWS = [
    ("NONFINITE", '{"id": "b", "perplexity": NaN}'),
    ("NONFINITE", '{"id": "b", "perplexity": -Infinity}'),
    ("NONFINITE", '{"id": "b", "perplexity": 1e400}'),
    ("TYPE", '{"id": "b", "perplexity": true}'),
    ("TYPE", '{"id": "b", "perplexity": "2.5"}'),
    ("RANGE", '{"id": "b", "perplexity": 0.5}'),
    ("RANGE", '{"id": "b", "logprobs": [-1, 0.5]}'),
    ("TYPE", '{"id": "b", "logprobs": [-1, "x"]}'),
    ("TYPE", '{"id": "b", "logprobs": 3}'),
    ("DUPLICATE", '{"id": "b", "question": "x", "question": "y"}'),
    ("DUPLICATE", '{"id": "b", "question": "x", "\\u0071uestion": "y"}'),
    ("DUPLICATE", '{"id": "b", "metadata": {"k": 1, "k": 2}}'),
    ("DUPLICATE", '{"id": "b", "generated_answer": "x", "prediction": "y"}'),
    ("NO_REFERENCE", '{"id": "b", "references": []}'),
    ("EMPTY_REFERENCE", '{"id": "b", "references": ["x", " "]}'),
    ("EMPTY_REFERENCE", '{"id": "b", "expected_answer": ""}'),
    ("TYPE", '{"id": "b", "references": {"a": "dog"}}'),
    ("TYPE", '{"id": "b", "references": ["a", 3]}'),
    ("TYPE", '{"id": "b", "generated_answer": 3}'),
    ("TYPE", '{"id": "b", "relevant": "yes"}'),
    ("TYPE", '{"id": "b", "annotations": "x"}'),
    ("TYPE", '{"id": true}'),
    ("TYPE", '{"id": 1.5}'),
    ("TYPE", '{"id": "  "}'),
    ("MISSING_ID", '{"generated_answer": "x"}'),
    ("MISSING_ID", '{"id": null}'),
    ("CONTROL_CHAR", '{"id": "b", "question": "ab\\u0000"}'),
    ("CONTROL_CHAR", '{"id": "b", "question": "\\ud800 alone"}'),
    ("CONTROL_CHAR", '{"id": "b", "question": "\\udc00"}'),
    ("NESTING", '{"id": "b", "k": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    ("RANGE", '{"id": "b", "k": ' + "9" * 5000 + "}"),
    ("TOO_LONG", json.dumps({"id": "b", "generated_answer": "x" * 1_000_001})),
    ("TOO_LONG", json.dumps({"id": "b", "generated_answer": "я" * 500_001})),
    ("SYNTAX", '{"id": "b",}'),
    ("TYPE", '["b"]'),
    ("ENCODING", b'{"id": "b", "question": "\xff"}\n'),
]


@pytest.mark.parametrize(("code", "line"), ROWS, ids=lambda value: str(value)[:40])
def test_a_bad_line_is_reported_and_the_others_are_read(tmp_path, code, line):
    (problem,) = problems_of(tmp_path, GOOD, line, '{"id": "c"}')
    assert problem.code == code
    assert problem.line == 2
    assert problem.file is not None
    assert problem.file.endswith("data.jsonl")
    assert str(problem).startswith(f"{problem.file}:2: {code}: ")


def test_messages_show_the_value_and_a_hint(tmp_path):
    (problem,) = problems_of(tmp_path, '{"id": "b", "references": 5}')
    assert "`references` must be a list of strings. Got 5 instead. (id 'b')" in str(problem)
    (problem,) = problems_of(tmp_path, '{"id": "b", "perplexity": 0.5}')
    assert "Is the minus sign missing?" in str(problem)
    (problem,) = problems_of(tmp_path, '{"id": "b", "question": "ab\\u0000"}')
    assert "offset 2" in problem.message
    (problem,) = problems_of(tmp_path, GOOD, b'{"id": "b", "question": "\xff"}\n')
    assert f"byte {len(GOOD) + 1 + 25} of the file" in problem.message


def test_all_problems_are_counted_and_grouped(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join('{"id": 1.5}\n' for _ in range(1234)))
    with pytest.raises(InputError) as refused:
        evaluate(path, metrics=["cider"])
    assert refused.value.total == 1234
    text = str(refused.value)
    assert text.count("TYPE") == 3
    assert "  997 more like this: line 4, line 5, line 6, line 7, line 8 …\n" in text
    assert text.endswith("… 1,234 problems in total, the first 1,000 listed")


@pytest.mark.parametrize("name", ["data.jsonl", "data.json", "data.csv", "data.parquet"])
def test_a_duplicate_id_names_both_lines(tmp_path, name):
    path = tmp_path / name
    ids = ["a", "b", "a"]
    if name.endswith("jsonl"):
        path.write_text("".join(json.dumps({"id": i}) + "\n" for i in ids))
    elif name.endswith("json"):
        path.write_text("[" + ",\n".join(json.dumps({"id": i}) for i in ids) + "]")
    elif name.endswith("csv"):
        path.write_text("id,question\n" + "".join(f"{i},q\n" for i in ids))
    else:
        pq.write_table(pa.table({"id": ids}), path)
    (problem,) = read(path)[1].kept
    first = 2 if name.endswith("csv") else 1
    assert problem.code == "DUPLICATE"
    assert problem.message == f"the id occurs twice, in lines {first} and {first + 2}"
    assert problem.id == "a"


def test_ids_with_equal_hashes_are_not_duplicates(tmp_path, monkeypatch):
    from multimodal_eval.data.readers import summary

    monkeypatch.setattr(summary, "hash", lambda text: 1, raising=False)
    assert problems_of(tmp_path, '{"id": "a"}', '{"id": "b"}') == []


def test_mixed_types_in_a_column_show_two_examples(tmp_path):
    (problem,) = problems_of(
        tmp_path, '{"id": "a", "year": 2014}', '{"id": "b", "year": "2015"}', '{"id": "c", "year": "x"}'
    )
    assert problem.code == "TYPE"
    assert "2014 (number, line 1)" in problem.message
    assert "'2015' (text, line 2)" in problem.message


def test_ids_may_be_all_numbers_but_not_mixed(tmp_path):
    samples, problems, _ = read(write(tmp_path, '{"id": 7}\n{"id": 8}\n'))
    assert [sample.id for sample in samples] == ["7", "8"]
    assert problems.total == 0
    (problem,) = problems_of(tmp_path, '{"id": 7}', '{"id": "8"}')
    assert problem.code == "TYPE"


def test_whole_and_fractional_numbers_are_one_type(tmp_path):
    assert problems_of(tmp_path, '{"id": "a", "k": 1}', '{"id": "b", "k": 1.5}', '{"id": "c", "k": null}') == []


def test_parallel_lists_of_different_lengths_are_refused():
    with pytest.raises(InputError, match=r"LENGTH.*id has 2, generated_answer has 1"):
        evaluate({"id": ["a", "b"], "generated_answer": ["x"]}, metrics=["cider"])


def test_an_empty_input_is_an_error(tmp_path):
    with pytest.raises(InputError, match="EMPTY"):
        evaluate(write(tmp_path, "\n"), metrics=["cider"])


def test_a_refused_input_leaves_no_folder(tmp_path):
    data = write(tmp_path, GOOD + "\n" + '{"id": 1.5}\n')
    with pytest.raises(InputError):
        evaluate(data, metrics=["cider"], output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_corpus_of_one_image_is_an_error_not_zero(tmp_path):
    with pytest.raises(InputError, match="CORPUS_TOO_SMALL"):
        evaluate(write(tmp_path, GOOD), metrics=["cider"], output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_image_is_enough_with_the_shipped_table(tmp_path):
    run = evaluate(write(tmp_path, GOOD), metrics=["cider"], options={"cider": {"df": "coco-val2014"}})
    assert run["cider"]["signature"].endswith("df:coco-val2014|errors:default@2")


def test_nfd_and_nfc_are_the_same_text(tmp_path):
    samples, _, _ = read(write(tmp_path, '{"id": "a", "question": "e\\u0301", "references": ["e\\u0301"]}'))
    assert samples == [Sample(id="a", question="é", references=["é"])]


def test_ё_is_not_folded(tmp_path):
    samples, _, _ = read(write(tmp_path, '{"id": "a", "question": "ёлка"}'))
    assert samples[0].question == "ёлка"


def test_a_null_answer_is_unscored_and_a_blank_one_counted(tmp_path):
    rows = [
        {"id": "a", "generated_answer": None},
        {"id": "b", "generated_answer": " "},
        {"id": "c", "generated_answer": "a dog"},
    ]
    text = "".join(json.dumps({**row, "references": ["a dog runs", f"a {row['id']}"]}) + "\n" for row in rows)
    entry = evaluate(write(tmp_path, text), metrics=["cider"])["cider"]
    assert (entry["n_scored"], entry["n_total"]) == (2, 3)
    assert entry["unscored"] == {"missing_input": 1}
    assert entry["warnings"] == {"blank_answer": 1}


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "abc"])
def test_numbers_in_csv_are_checked(tmp_path, value):
    _, problems, _ = read(write(tmp_path, f"id,perplexity\na,{value}\n", "data.csv"))
    assert problems.total == 1


def test_a_stored_score_outside_its_range_is_refused(tmp_path):
    from multimodal_eval import rescore

    @metric("half", bounds=(0, 1))
    def half(sample):
        return 0.5

    run = evaluate([Sample(id="a"), Sample(id="b")], metrics=["half"], output=tmp_path / "run")
    part = run.folder.part("scores", 0)
    table = pq.read_table(part)
    pq.write_table(table.set_column(table.column_names.index("half"), "half", pa.array([0.5, -3.0])), part)
    accept_changes(tmp_path / "run")
    with pytest.raises(InputError, match="RANGE") as refused:
        rescore(tmp_path / "run", {"metrics": ["half"]})
    assert refused.value.problems[0].id == "b"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"metrcs": ["x"]}, "Did you mean 'metrics'"),
        ({"tasks": {"captioning": {"weigths": {}}}}, "Did you mean 'weights'"),
        ({"limit": 0}, "limit"),
    ],
)
def test_an_unknown_setting_gets_a_suggestion(setting, message):
    with pytest.raises(ConfigError, match=message):
        evaluate([Sample(id="a")], metrics=["cider"], config=setting)


def test_duplicate_yaml_keys_are_refused(tmp_path):
    path = write(tmp_path, "task: vqa\nseed: 1\ntask: captioning\n", "run.yaml")
    with pytest.raises(ConfigError, match="'task' occurs twice, in lines 1 and 3"):
        evaluate([Sample(id="a")], config=path)


def test_a_duplicate_id_on_one_line_is_found(tmp_path):
    path = write(tmp_path, '[{"id": "1"}, {"id": "1"}]', "data.json")
    (problem,) = read(path)[1].kept
    assert problem.message == "the id occurs twice, both times in line 1"


def test_ids_that_differ_only_in_normal_form_are_one_id(tmp_path):
    (problem,) = problems_of(tmp_path, '{"id": "caf\\u00e9"}', '{"id": "cafe\\u0301"}')
    assert problem.code == "DUPLICATE"


def test_metadata_are_checked_like_other_text(tmp_path):
    codes = [
        problem.code
        for problem in problems_of(
            tmp_path,
            '{"id": "a", "note": "a\\u0000b"}',
            '{"id": "b", "metadata": {"deep": [{"note": "x\\u0000"}]}}',
            '{"id": "c", "annotations": {"one": "\\u0000"}}',
            '{"id": "d", "note": "x", "metadata": {"note": "y"}}',
        )
    ]
    assert codes == ["CONTROL_CHAR", "CONTROL_CHAR", "CONTROL_CHAR", "DUPLICATE"]
    with pytest.raises(InputError, match="NONFINITE"):
        evaluate([{"id": "a", "k": float("nan")}], metrics=["cider"])


def test_a_limit_leaves_the_rest_unread(tmp_path):
    path = write(tmp_path, '{"id": "a"}\n{"id": "b"}\n{"id": "c", "id": "d"}\n')
    assert read(path, limit=2)[1].total == 0
    assert read(path)[1].total == 1


def test_a_refused_row_is_not_also_unmatched(tmp_path):
    data = write(tmp_path, '{"id": "a", "perplexity": 0}\n{"id": "b"}\n')
    predictions = write(tmp_path, '{"id": "a"}\n{"id": "b"}\n', "p.jsonl")
    assert [problem.code for problem in read(data, predictions)[1].kept] == ["RANGE"]


def test_one_column_cannot_be_two_fields():
    with pytest.raises(ConfigError, match="mapped to 2 fields"):
        parse_map({"id": "x", "question": "x"})


def test_an_id_column_that_is_not_mapped_may_have_another_type(tmp_path):
    path = write(tmp_path, '{"image_id": "COCO_1", "id": 7}\n')
    samples, problems, summary = read(path, id="image_id")
    assert problems.total == 0
    assert samples == [Sample(id="COCO_1", metadata={"id": 7})]
    assert summary.metadata == {"id"}


def test_numpy_values_in_memory_are_fine():
    import numpy as np

    rows = [
        {"id": np.int64(i), "references": [f"a {i}"], "generated_answer": "a", "k": np.float32(i)} for i in range(2)
    ]
    run = evaluate(rows, metrics=["cider"])
    assert [sample.metadata for sample in run.samples()] == [{"k": 0.0}, {"k": 1.0}]


def test_the_same_references_twice_are_one_image():
    twice = [Sample(id=i, references=["a red dog"], generated_answer="a red dog") for i in "ab"]
    with pytest.raises(InputError, match="CORPUS_TOO_SMALL"):
        evaluate(twice, metrics=["cider"])
