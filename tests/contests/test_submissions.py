"""A folder of submissions, and kinds of gold files."""

from __future__ import annotations

import gzip
import json

import pytest

from multimodal_eval.contests.submissions import kind_of, submissions_in
from multimodal_eval.core.errors import ConfigError


def test_a_folder_of_submissions(tmp_path):
    def any_file(path):
        return path.is_file()

    with pytest.raises(ConfigError, match="must be a folder"):
        submissions_in(tmp_path / "absent", any_file)
    with pytest.raises(ConfigError, match="contains no submissions"):
        submissions_in(tmp_path, any_file)
    for name in ("b.json", "a.jsonl.gz", ".hidden.json", "_notes.json"):
        (tmp_path / name).write_text("")
    assert [submission.name for submission in submissions_in(tmp_path, any_file)] == ["a", "b"]
    (tmp_path / "b.csv").write_text("")
    with pytest.raises(ConfigError, match="contains two submissions named 'b'"):
        submissions_in(tmp_path, any_file)


def test_kinds_of_gold(tmp_path):
    gold = {"d1": {"type": "Text2Text", "replies": [["a"]]}}
    contents = {
        "dialogue.json": json.dumps(gold).encode(),
        "bom.json": b"\xef\xbb\xbf \n" + json.dumps(gold).encode(),
        "dialogue.json.gz": gzip.compress(json.dumps(gold).encode()),
        "coco.json": b'{"info": {"year": 2014}, "images": [], "annotations": []}',
        "array.json": b'[{"id": "1", "references": ["a"]}]',
        "rows.jsonl": b'{"id": "1", "replies": ["a"]}\n',
        "evasion.csv": b"index,evasion_label\n1,Explicit\n",
        "clarity.csv": b"index,clarity_label\n1,Clear Reply\n",
        "samples.csv": b"id,references\n1,a\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert {name: kind_of(tmp_path / name) for name in contents} == {
        "dialogue.json": "dialogue",
        "bom.json": "dialogue",
        "dialogue.json.gz": "dialogue",
        "coco.json": "samples",
        "array.json": "samples",
        "rows.jsonl": "samples",
        "evasion.csv": "clarity",
        "clarity.csv": "clarity",
        "samples.csv": "samples",
    }
