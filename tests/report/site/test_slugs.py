"""Names of submissions as names of folders."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.site.content import slugs_of

RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}


def test_plain_names_stay_as_they_are():
    names = ["alba", "team-1", "a_b", "7", "a" * 40]
    assert slugs_of(names) == {name: name for name in names}


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("A", "a-"),
        ("Équipe n° 3", "equipe-n-3-"),
        ("../../etc/passwd", "etc-passwd-"),
        ("..", "submission-"),
        ("", "submission-"),
        ("команда", "submission-"),
        ("CON", "con-"),
        ("nul", "nul-"),
        ("com7", "com7-"),
        ("_private", "private-"),
        (".hidden", "hidden-"),
        ("a\u202eb\0c", "ab-c-"),
        ("a.b.html", "a-b-html-"),
        ("x" * 5000, "x" * 40 + "-"),
        ("<script>alert(1)</script>", "script-alert-1-script-"),
        ("%2e%2e%2f", "2e-2e-2f-"),
    ],
)
def test_other_names_get_a_digest(name, start):
    slug = slugs_of([name])[name]
    assert slug.startswith(start)
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]*-[0-9a-f]{10}", slug)
    assert len(slug) <= 51


def test_names_that_differ_only_in_case_have_different_folders():
    slugs = slugs_of(["Team", "team", "TEAM", "tEam"])
    assert len({slug.casefold() for slug in slugs.values()}) == 4


def test_a_name_that_is_the_folder_of_another_gets_its_own():
    other = slugs_of(["Team"])["Team"]
    slugs = slugs_of([other, "Team"])
    assert slugs["Team"] == other
    assert slugs[other] != other


def test_equal_digests_are_told_apart(monkeypatch):
    class Constant:
        def __init__(self, content):
            self.content = content

        def hexdigest(self):
            return "0" * 10 + self.content.hex().rjust(54, "0")

    monkeypatch.setattr("multimodal_eval.report.site.content.sha256", Constant)
    slugs = slugs_of(["A!", "A?", "A."])
    assert len(set(slugs.values())) == 3


@given(st.lists(st.text(max_size=80), unique=True, max_size=12))
def test_folders_are_safe_and_unique(names):
    slugs = slugs_of(names)
    assert len({slug.casefold() for slug in slugs.values()}) == len(names)
    for slug in slugs.values():
        assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,120}", slug)
        assert slug not in RESERVED
    assert all(slugs_of([name])[name] == slugs[name] for name in names)  # the others change nothing
