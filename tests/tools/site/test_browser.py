"""The built site in a browser, from a disk: nothing is loaded from elsewhere, search works, nothing is cut off."""

from __future__ import annotations

import shutil

import pytest

from tools.site.versions import write_versions

PAGES = ["index", "how-to", "metrics/cider", "commands/score", "api/multimodal_eval", "generation", "codes", "schema"]
SIZES = [(1400, 900), (390, 844)]


@pytest.fixture(params=SIZES, ids=lambda size: str(size[0]))
def page(request, chromium):
    """A page that notes requests to other places and errors."""
    width, height = request.param
    context = chromium.new_context(viewport={"width": width, "height": height})
    opened = context.new_page()
    elsewhere, errors = [], []
    opened.on("request", lambda asked: elsewhere.append(asked.url))
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert [url for url in elsewhere if not url.startswith(("file:", "data:"))] == []
    assert errors == []


def scrolls_sideways(page) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_the_screen(page, newest, name):
    page.goto((newest / f"{name}.html").as_uri())
    assert page.locator("h1").first.is_visible()
    assert not scrolls_sideways(page)


def test_search_finds_a_metric(page, newest):
    page.goto(f"{(newest / 'search.html').as_uri()}?q=CIDEr")
    page.locator("#search-results li a").first.wait_for(timeout=600_000)
    links = page.locator("#search-results li a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert any("metrics/cider.html" in link for link in links)
    excerpt = page.locator("#search-results li p.context").first
    excerpt.wait_for(timeout=600_000)
    assert "cider" in excerpt.inner_text().lower()


def test_formulas_are_typeset(page, newest):
    page.goto((newest / "metrics" / "cider.html").as_uri())
    formula = page.locator(".formula math").first
    assert formula.bounding_box()["height"] > 20
    assert page.locator("text=\\frac").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_follow_the_reader(newest, chromium, scheme):
    context = chromium.new_context(color_scheme=scheme)
    opened = context.new_page()
    opened.goto((newest / "index.html").as_uri())
    colour = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    context.close()
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]  # --page of tokens.css


def test_the_menu_leads_to_the_same_page_of_another_version(page, newest, tmp_path):
    for name in ("0.1.0", "dev"):
        shutil.copytree(newest, tmp_path / name)
    write_versions(tmp_path)
    page.goto((tmp_path / "dev" / "metrics" / "cider.html").as_uri())
    options = page.locator("#version-menu option").all_text_contents()
    assert options == ["0.1.0", "dev"]
    page.locator("#version-menu").evaluate(
        "menu => { menu.selectedIndex = 0; menu.dispatchEvent(new Event('change')); }"
    )
    page.wait_for_url("**/0.1.0/metrics/cider.html")
    page.goto((tmp_path / "index.html").as_uri())
    page.wait_for_url("**/0.1.0/index.html")
