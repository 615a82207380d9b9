"""No name, title, reason, note, label or path becomes an element of a page, or code."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from multimodal_eval.analysis.leaderboard import Difference, Leaderboard, Refused, Standing
from multimodal_eval.core.figure import Figure
from multimodal_eval.report.site.build import write_site
from tests.report.hostile import ALL, TEXTS, hostile_run
from tests.report.site.conftest import file_server
from tests.report.site.parsed import allowed, broken_links, parsed

TAGS = set(
    "html head meta title link style body a header div span img nav button main h1 h2 p time section label input "
    "select table caption thead tbody tr th td svg path circle line text dl dt dd strong footer script bdi small br "
    "code pre details summary".split()
)
NAMES = [TEXTS[6], TEXTS[0].replace("/", ""), "A", "a"]


@pytest.fixture(scope="module")
def hostile_board(tmp_path_factory):
    """Runs full of hostile texts, under hostile names, and a leaderboard with the texts in every field."""
    runs = tmp_path_factory.mktemp("hostile") / "runs"
    for name in NAMES:
        hostile_run(runs / name)
    figure = {"value": 0.4, "stderr": 0.1, "low": 0.3, "high": 0.5, "method": ALL}
    labels = msgspec.convert({**figure, "labels": 3, "column": ALL, "signature": ALL}, Figure)
    rows = [
        Standing(
            name,
            place,
            tuple(NAMES),
            1,
            0.5,
            0.1,
            0.4,
            0.6,
            0.1,
            0.2,
            {ALL: 0.5},
            labels,
            tuple(Difference(text, 0.1, 0.0, 0.2, 0.3) for text in (*NAMES, ALL)),
            {"error_message": 2, ALL: 1},
        )
        for place, name in enumerate(NAMES, 1)
    ]
    refused = tuple(Refused(text, text, text) for text in TEXTS)
    board = Leaderboard(ALL, "lower", ALL, 7, 1, ALL, 0.95, tuple(rows), refused, ALL, ALL)
    return runs, board


@pytest.fixture(scope="module", params=[False, True], ids=["without samples", "with samples"])
def hostile_site(hostile_board, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile-site") / "site"
    write_site(folder, *hostile_board, title=ALL, with_samples=request.param)
    return folder


def own_pages(site):
    return [site / "index.html", site / "methods.html", *site.glob("submissions/*/index.html")]


def test_no_text_becomes_an_element_or_an_attribute(hostile_site):
    assert len(own_pages(hostile_site)) == 6
    for path in own_pages(hostile_site):
        page = parsed(path)
        tags = {tag for tag, _ in page.elements}
        assert tags <= TAGS, tags - TAGS
        assert [tag for tag, _ in page.code] == ["style", "script"]
        assert all(allowed(code) in page.policy for _, code in page.code)  # a text opens no script that ours closes
        for tag, attrs in page.elements:
            assert not any(name.startswith(("on", "style", "srcdoc", "formaction")) for name in attrs), (tag, attrs)
    assert broken_links(hostile_site) == []


def test_invisible_characters_are_shown_as_codes(hostile_site):
    for path in own_pages(hostile_site):
        text = path.read_text(encoding="utf-8")
        assert not {"\u202e", "\u2066", "\x1b", "\u2028"} & set(text)
    assert "U+202E" in (hostile_site / "index.html").read_text(encoding="utf-8")


def test_spreadsheets_run_no_formula(hostile_board, tmp_path):
    runs, board = hostile_board
    named = replace(board.standings[0], tied_with=("=1+1",))
    write_site(tmp_path / "site", runs, replace(board, number="@SUM(1)", standings=(named,)))
    lines = (tmp_path / "site" / "leaderboard.csv").read_text(encoding="utf-8")
    assert ",'=1+1," in lines
    assert ",'@SUM(1)," in lines


def test_no_text_is_executed(visit, hostile_site):
    with file_server(hostile_site) as host:
        for base, policy in ((hostile_site.as_uri(), True), (host, True), (hostile_site.as_uri(), False)):
            for path in own_pages(hostile_site):
                if not policy:  # escaping alone must be enough
                    page = path.read_text(encoding="utf-8").replace("Content-Security-Policy", "x-no-policy")
                    path = path.with_name("unprotected.html")
                    path.write_text(page, encoding="utf-8")
                seen = visit(f"{base}/{path.relative_to(hostile_site).as_posix()}")
                seen.page.locator("details").evaluate_all("all => all.forEach(details => details.open = true)")
                assert seen.page.evaluate("window.__pwned") is None
                assert seen.page.locator("script").count() == 1
                assert (seen.console, seen.loaded) == ([], [])
                if not policy:
                    path.unlink()


def test_reports_run_nothing_and_load_nothing(visit, hostile_site):
    with file_server(hostile_site) as host:
        path = next(hostile_site.glob("submissions/*/report.html")).relative_to(hostile_site).as_posix()
        for base in (hostile_site.as_uri(), host):
            seen = visit(f"{base}/{path}")
            assert seen.page.evaluate("window.__pwned") is None
            assert (seen.console, seen.loaded) == ([], [])


def test_controls_work_on_hostile_texts(visit, hostile_site):
    page = visit((hostile_site / "index.html").as_uri()).page
    for button in page.locator(".sorter").all()[:8]:
        button.click()
    page.get_by_role("searchbox").fill("<script>")
    page.get_by_role("searchbox").fill("")
    assert page.evaluate("window.__pwned") is None
    assert page.locator("#ranking-table tbody tr:visible").count() == len(NAMES)
