from __future__ import annotations

from pathlib import Path

import pytest

from tools.words import names_in, phrases_in, places

ROOT = Path(__file__).parents[2]


def test_the_project_avoids_its_own_list(monkeypatch):
    if not (ROOT / ".git").exists():
        pytest.skip("the files are listed by git")
    monkeypatch.chdir(ROOT)
    assert [f"{place.file}:{place.line}: {place.what}" for place in places([])] == []


@pytest.mark.parametrize(
    "line",
    [
        "that is no mean",
        "one row a sample",
        "10,000 words a second",
        "unscored where it is missing",
        "the pictures",
        "stands in",
    ],
)
def test_phrases_are_noticed(line):
    assert len(list(phrases_in(Path("x.md"), line))) == 1


@pytest.mark.parametrize(
    "line", ["there is no mean", "it is no longer read", "one row per sample", "10,000 samples, or 256 with a model"]
)
def test_usual_english_is_left_alone(line):
    assert list(phrases_in(Path("x.md"), line)) == []


def test_names_are_noticed():
    code = "found = 1\nfor own in []: pass\nsorted([], key=lambda one: one)\nfoundation = found\n"
    assert [place.what for place in names_in(Path("x.py"), code)] == ["name `found`", "name `own`", "name `one`"]
