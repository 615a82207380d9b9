"""`--map`: the column of a field, and fields without a column."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import InputError


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    row = '{{"id": "{}", "answer": "a", "references": ["a"], "video": {{"fps": 3}}}}\n'
    path.write_text(row.format(1) + row.format(2))
    return path


def test_a_column_of_another_type_is_refused_with_a_hint(data):
    refused = CliRunner().invoke(cli, ["validate", str(data)])
    assert isinstance(refused.exception, InputError)
    assert "--map video= keeps it as metadata" in str(refused.exception)


def test_a_column_that_is_not_mapped_becomes_metadata(data, tmp_path):
    options = ["--map", "video=", "--map", "generated_answer=answer"]
    out = CliRunner().invoke(cli, ["validate", str(data), *options], catch_exceptions=False)
    assert "2 samples, no problems" in out.output
    assert "metadata columns: video" in out.output
    command = ["score", str(data), "--metrics", "rouge_l", "-o", str(tmp_path / "run"), "--no-report", *options]
    CliRunner().invoke(cli, command, catch_exceptions=False)
    first, _ = load_run(tmp_path / "run").samples()
    assert (first.video, first.metadata, first.generated_answer) == (None, {"video": {"fps": 3}}, "a")


@pytest.mark.parametrize("value", ["video", "=column"])
def test_a_map_needs_a_field_and_an_equals_sign(data, value):
    assert CliRunner().invoke(cli, ["validate", str(data), "--map", value]).exit_code == 2
