"""The link check finds broken links."""

from __future__ import annotations

import pytest

from tools.site.links import check_links

GOOD = """<!doctype html><link rel="stylesheet" href="a.css"><h1 id="one">A</h1>
<a href="sub/b.html#two">b</a> <a href="#one">one</a> <a href="https://example.org/x?y#z">web</a> <img src="i.png">
<a href="mailto:a@example.org">mail</a> <a href="sub/">folder</a>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(GOOD)
    (tmp_path / "sub" / "b.html").write_text(
        '<p id="two"><a href="../a.html">a</a><script src="../../versions.js"></script>'
    )
    (tmp_path / "sub" / "index.html").write_text("")
    for name in ("a.css", "i.png"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_good_site(site):
    check = check_links(site)
    assert check.broken == []
    assert (check.pages, check.internal, check.external) == (3, 7, 1)


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ('<a href="nothing.html">x</a>', "nothing.html does not exist"),
        ('<a href="a.html#nothing">x</a>', "a.html#nothing: the page has no such anchor"),
        ('<a href="#nothing">x</a>', "#nothing: the page has no such anchor"),
        ('<img src="nothing.png">', "nothing.png does not exist"),
        ('<a href="http:/example.org">x</a>', "http:/example.org is not an address"),
        ('<a href="https://localhost">x</a>', "https://localhost is not an address"),
        (
            '<script src="https://cdn.example.org/x.js"></script>',
            "https://cdn.example.org/x.js is loaded from another site",
        ),
        ('<img src="//example.org/x.png">', "//example.org/x.png is loaded from another site"),
    ],
)
def test_a_broken_link(site, link, fault):
    (site / "c.html").write_text(link)
    assert check_links(site).broken[0] == f"c.html: {fault}"
