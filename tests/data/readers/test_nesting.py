"""Values with very many levels of lists, objects and maps are refused with file and column, through every door."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.datasets.hf_parquet import features_of
from tests.cli.command_line import mmeval

LEVELS = 300  # Python itself stops at 1000 calls, and a level takes several
KINDS = {
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: [("k", value)]),
    "list": (pa.list_, lambda value: [value]),
    "struct": (lambda kind: pa.struct([("k", kind)]), lambda value: {"k": value}),
}
RECORD = {"id": "a", "question": "q", "generated_answer": "x", "references": ["x"]}


def table(kind, levels=LEVELS, column="extra"):
    type_of, value_of = KINDS[kind]
    nested, value = pa.string(), "x"
    for _ in range(levels):
        nested, value = type_of(nested), value_of(value)
    columns = {name: [cell] for name, cell in RECORD.items()}
    return pa.table({**columns, column: pa.array([value], nested)})


def nested_lists(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deep")
    for kind in KINDS:
        pq.write_table(table(kind), folder / f"{kind}.parquet")
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "command",
    [
        ["validate", "{}"],
        ["score", "{}", "--metrics", "exact_match"],
        ["score", "{}", "--metrics", "exact_match", "--workers", "2"],
        ["score", "{}", "{}", "--metrics", "exact_match"],
        ["score", "{}", "--as", "rows", "--metrics", "exact_match"],
        ["validate", "{}", "--as", "hf-parquet"],
        ["import", "{}", "--as", "lighteval"],
        ["run", "{}", "--model", "echo:", "--metrics", "exact_match"],
        ["agree", "{}", "--annotators", "extra"],
    ],
    ids=" ".join,
)
def test_every_command_names_the_file_and_the_column(deep, kind, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = deep / f"{kind}.parquet"
    ended = mmeval(*(part.format(file) for part in command), code=1)
    assert ended.stderr == f"error: {file}: NESTING: the column 'extra' is nested deeper than 100 levels\n"


@pytest.mark.parametrize("kind", KINDS)
def test_tables_in_memory_are_refused_too(kind):
    with pytest.raises(InputError, match="NESTING: the column 'extra' is nested deeper than 100 levels"):
        evaluate(table(kind), metrics=["exact_match"], progress=False)


@pytest.mark.parametrize("levels", [LEVELS, 700, 990, 5_000])
@pytest.mark.parametrize("of", [list, pd.DataFrame])
def test_values_in_memory_are_refused_too(of, levels):
    rows = [{**RECORD, "extra": nested_lists(levels)}]
    with pytest.raises(InputError, match=r"NESTING: `extra` is nested deeper than 100 levels .*\(id 'a'\)"):
        evaluate(of(rows), metrics=["exact_match"], progress=False)


@pytest.mark.parametrize("levels", [LEVELS, 700, 990, 5_000])
@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_json_is_refused_too(form, levels, tmp_path):
    nested = "[" * levels + "1" + "]" * levels
    record = json.dumps(RECORD)[:-1] + f', "metadata": {{"extra": {nested}}}}}'
    file = tmp_path / f"data.{form}"
    cells = f'id,generated_answer,references,metadata\na,x,x,"{{""extra"": {nested}}}"\n'
    file.write_text({"jsonl": f"{record}\n", "json": f"[{record}]", "csv": cells}[form])
    with pytest.raises(InputError, match=r"NESTING: .* nested") as error:
        evaluate(file, metrics=["exact_match"], progress=False)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(("kind", "levels"), [("map", 49), ("list", 49), ("struct", 98)])
def test_the_deepest_accepted_values_are_scored(kind, levels, tmp_path):
    data = table(kind, levels)
    pq.write_table(data, tmp_path / "data.parquet")
    for source in (data, tmp_path / "data.parquet"):
        assert evaluate(source, metrics=["exact_match"], progress=False, skip_lint=True)["exact_match"]["value"] == 1


def test_a_map_whose_keys_are_maps_is_not_a_mapping(tmp_path):
    kind = pa.map_(pa.map_(pa.string(), pa.string()), pa.string())
    columns = {name: [cell] for name, cell in RECORD.items()}
    data = pa.table({**columns, "choices": pa.array([[([("k", "v")], "x")]], kind)})
    pq.write_table(data, tmp_path / "data.parquet")
    for source in (data, tmp_path / "data.parquet"):
        with pytest.raises(InputError, match=r"TYPE: `choices` must be .*Got \[\(\[\('k', 'v'\)\], 'x'\)\]"):
            evaluate(source, metrics=["exact_match"], progress=False)


def test_features_of_hugging_face_that_are_nested_deeply():
    features = '{"info": {"features": {"extra": ' + "[" * 900 + '{"_type": "Image"}' + "]" * 900 + "}}}"
    schema = table("list", 1).schema.with_metadata({"huggingface": features})
    assert features_of(schema).media == {"extra": "image"}
