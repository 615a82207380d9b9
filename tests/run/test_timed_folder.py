"""Folders that are named by the time."""

from __future__ import annotations

from datetime import datetime

import pytest

from multimodal_eval.run import opening
from tests.cli.command_line import mmeval


class Noon(datetime):
    """A clock that always says noon."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 17, 12, 0, 0)


@pytest.fixture(autouse=True)
def clock(monkeypatch, tmp_path):
    monkeypatch.setattr(opening, "datetime", Noon)
    monkeypatch.chdir(tmp_path)


def test_a_number_follows_if_the_folder_exists(tmp_path):
    for name in ("20261117-120000-board", "20261117-120000-board-2", "20261117-120000-board-3"):
        assert opening.timed_folder("board", tmp_path) == tmp_path / name
        (tmp_path / name).mkdir()


def test_two_crosswalks_within_a_second(tmp_path):
    sample = '{"id": "1", "generated_answer": "a dog", "references": ["a dog"]}\n'
    (tmp_path / "answers.jsonl").write_text(sample)
    for _ in range(2):
        mmeval("crosswalk", "answers.jsonl", "--metric", "anls")
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["20261117-120000-crosswalk", "20261117-120000-crosswalk-2"]
