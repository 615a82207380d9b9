"""Several versions of the site in one folder."""

from __future__ import annotations

import json

import pytest

from tools.site.versions import is_release, versions, write_versions


@pytest.fixture
def out(tmp_path):
    for name in ("dev", "0.9.0", "0.10.0", "1.0.0rc1"):
        (tmp_path / name / "metrics").mkdir(parents=True)
        (tmp_path / name / "index.html").touch()
        (tmp_path / name / "metrics" / "bleu.html").touch()
    (tmp_path / "other").mkdir()
    return tmp_path


def test_releases_come_first_and_the_newest_leads(out):
    assert versions(out) == ["0.10.0", "0.9.0", "1.0.0rc1", "dev"]
    assert [is_release(name) for name in versions(out)] == [True, True, False, False]


def test_the_files(out):
    write_versions(out)
    assert 'url=0.10.0/index.html"' in (out / "index.html").read_text()
    records = json.loads((out / "versions.json").read_text())
    assert records[0] == {"name": "0.10.0", "released": True, "pages": ["index.html", "metrics/bleu.html"]}
    script = (out / "versions.js").read_text()
    assert json.loads(script.removeprefix("window.siteVersions = ").removesuffix(";\n")) == records


def test_without_a_release_the_first_page_is_that_of_dev(tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "index.html").touch()
    write_versions(tmp_path)
    assert "url=dev/" in (tmp_path / "index.html").read_text()
