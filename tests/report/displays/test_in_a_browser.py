"""Displays in Chromium: no text is executed, nothing is loaded, and they are readable without a style sheet."""

from __future__ import annotations

import pytest

from tests.report.displays.results import of_a_run, of_every_class
from tests.report.hostile import ALL
from tests.report.visits import DESKTOP, PHONE

FOREIGN = "script, style, link, iframe, object, embed, form, a, b, base, meta:not([charset]), math, [class], [id]"


@pytest.mark.parametrize(("theme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["light", "dark, phone"])
def test_no_text_is_executed(visit, tmp_path, theme, size):
    results = [*of_every_class(ALL), *of_a_run(tmp_path / "run")]
    colours = "#fff;color:#111" if theme == "light" else "#111;color:#eee"
    body = "<hr>".join(result._repr_html_() for result in results)
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><meta charset="utf-8"><body style="background:{colours}">{body}', encoding="utf-8")
    seen = visit(file.as_uri(), viewport=size)
    seen.page.locator("details").evaluate_all("elements => elements.forEach(details => details.open = true)")
    assert seen.page.evaluate("window.__pwned") is None
    assert seen.page.locator(FOREIGN).count() == 0
    assert (seen.console, seen.loaded) == ([], [])
    assert seen.page.locator("svg").count() > 20
    # A wide table scrolls in its display, and does not widen the page.
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
