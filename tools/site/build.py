"""Build the site: execute the pages, write its sources, run Sphinx, check the links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tools.site.blocks import parse
from tools.site.execute import Outcome, execute
from tools.site.generated import generated_pages
from tools.site.generated.outputs import executed, has_examples
from tools.site.links import LinkCheck, check_links
from tools.site.pages import ROOT, all_pages, models_home, name_of
from tools.site.records import keep, kept
from tools.site.search import write_texts
from tools.site.sections import unlisted
from tools.site.stage import stage, stage_notebooks
from tools.site.versions import is_release, write_versions

SPHINX = ROOT / "tools" / "site" / "sphinx"


class SiteError(Exception):
    """The site cannot be built."""


@dataclass
class Built:
    """What was built."""

    outcomes: list[Outcome] = field(default_factory=list)
    reused: int = 0
    unexecuted: list[str] = field(default_factory=list)  # pages that need fetched models
    links: LinkCheck = field(default_factory=LinkCheck)
    seconds: dict[str, float] = field(default_factory=dict)

    def summary(self) -> str:
        """What was executed, what was not and why, pages, links, times."""
        executed = sum(outcome.executed for outcome in self.outcomes)
        reasons = Counter(reason for outcome in self.outcomes for _, reason in outcome.not_run)
        lines = [
            f"{self.links.pages} pages; {len(self.outcomes)} of them have examples or are written by hand",
            f"{executed} blocks executed, {reasons.total()} not run:",
            *(f"  {count} {reason}" for reason, count in reasons.most_common()),
            f"{self.reused} pages were executed before, by the tests or an earlier build",
            *(f"  not executed, needs fetched models (--weights): {name}" for name in self.unexecuted),
            f"{self.links.internal} links within the site, {self.links.external} to other sites",
            "seconds: " + ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in self.seconds.items()),
        ]
        return "\n".join(lines)


def build(out: Path, version: str, weights: bool = False, fresh: bool = False) -> Built:
    """Build OUT/VERSION. `fresh`: execute all pages, also those that were executed with the same text and code."""
    built = Built()
    pages = [*all_pages(), ROOT / "CHANGELOG.md"]
    if missing := unlisted(pages):
        raise SiteError(f"no section of tools/site/sections.py names {', '.join(missing)}")
    started = time.perf_counter()
    texts = {page: _current(page, built, weights, fresh) for page in pages}
    generated = {name: _generated(name, text, built, fresh) for name, text in generated_pages().items()}
    built.seconds["executing"] = time.perf_counter() - started
    if faults := [fault for outcome in built.outcomes for fault in (*outcome.problems, *outcome.stale)]:
        raise SiteError("\n".join([*faults, "`python -m tools.site update` writes current outputs"]))
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        sources = Path(scratch)
        stage(texts, generated, sources)
        stage_notebooks(sources)
        run_sphinx(sources, out / version, version)
    built.seconds["Sphinx"] = time.perf_counter() - started
    started = time.perf_counter()
    built.links = check_links(out / version)
    write_versions(out)
    built.seconds["links"] = time.perf_counter() - started
    if built.links.broken:
        raise SiteError("\n".join([*built.links.broken, f"{len(built.links.broken)} broken links"]))
    return built


def _current(page: Path, built: Built, weights: bool, fresh: bool) -> str:
    """The text of a page with the outputs of now."""
    text = page.read_text(encoding="utf-8")
    name = name_of(page)
    if page.name == "CHANGELOG.md":
        return text
    outcome = None if fresh else kept(name, text)
    if outcome is not None:
        built.reused += 1
    else:
        needs = parse(text).needs
        if "weights" in needs and not weights:
            built.unexecuted.append(name)
            return text
        with models_home(needs) as home:
            outcome = execute(text, name, home)
        keep(outcome, text)
    built.outcomes.append(outcome)
    return outcome.text


def _generated(name: str, text: str, built: Built, fresh: bool) -> str:
    """The text of a generated page with the outputs of now."""
    outcome = None if fresh else kept(name, text)
    if outcome is not None:
        built.reused += 1
    elif has_examples(text):
        outcome = executed(name, text)
        keep(outcome, text)
    else:
        return text
    built.outcomes.append(outcome)
    return outcome.text


def run_sphinx(sources: Path, out: Path, version: str) -> None:
    """Run Sphinx; a warning is an error."""
    if out.exists():
        shutil.rmtree(out)
    settings = {"SITE_VERSION": version, "SITE_RELEASED": str(int(is_release(version))), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "sphinx", "-b", "html", "-c", str(SPHINX), "-W", "--keep-going", "-q", "-j", "2"]
    with tempfile.TemporaryDirectory() as doctrees:
        done = subprocess.run(
            [*words, "-d", doctrees, str(sources), str(out)],
            env={**os.environ, **settings},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SiteError(f"Sphinx failed:\n{done.stdout}{done.stderr}".replace(f"{sources}/", ""))
    (out / ".buildinfo").unlink(missing_ok=True)
    shutil.copytree(sources / "images", out / "images", dirs_exist_ok=True)  # links lead to images, too
    write_texts(out)
