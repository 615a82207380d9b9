"""The site that tests open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.site.build import run_sphinx
from tools.site.generated import generated_pages
from tools.site.links import check_links
from tools.site.pages import ROOT, all_pages
from tools.site.stage import stage, stage_notebooks
from tools.site.versions import versions, write_versions


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the versions: $MMEVAL_SITE, as `python -m tools.site build` made it, or a site of these pages."""
    if built := os.environ.get("MMEVAL_SITE"):
        return Path(built).resolve()
    pytest.importorskip("sphinx", reason="needs the extra [docs]")
    sources, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("site")
    pages = {page: page.read_text(encoding="utf-8") for page in [*all_pages(), ROOT / "CHANGELOG.md"]}
    stage(pages, generated_pages(), sources)
    stage_notebooks(sources)
    run_sphinx(sources, out / "dev", "dev")
    assert check_links(out / "dev").broken == []
    write_versions(out)
    return out


@pytest.fixture(scope="session")
def newest(site: Path) -> Path:
    """The folder of the version that is built."""
    return site / versions(site)[0]
