"""The texts of the pages as a script, for the excerpts of a search on a disk.

A search shows an excerpt of each page that it finds, and Sphinx's script requests the pages for that. Browsers refuse
such requests for files, but they load scripts. `site.js` loads this one only there.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

FILE = "search-texts.js"
HIDDEN = ("script", "style", "svg")
INLINE = ("a", "abbr", "b", "code", "em", "i", "span", "strong", "sub", "sup")  # parts of a word can be in them


class _MainText(HTMLParser):
    """The text of the element with the role `main`, without the marks of links to headings."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._main = ""  # the tag of the element; its end is that of the outermost one with this tag
        self._depth = 0
        self._hidden = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if not self._main and values.get("role") == "main":
            self._main = tag
        if tag == self._main:
            self._depth += 1
        if tag not in INLINE:
            self.texts.append(" ")
        if tag in HIDDEN or (values.get("class") or "") == "headerlink":
            self._hidden = self._hidden or tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._main:
            self._depth -= 1
        if tag == self._hidden:
            self._hidden = ""

    def handle_data(self, data: str) -> None:
        if self._depth and not self._hidden:
            self.texts.append(data)


def main_text(page: str) -> str:
    """The text of a page, on one line."""
    return " ".join("".join(_MainText(page).texts).split())


def write_texts(site: Path) -> None:
    """Write the script."""
    pages = sorted(site.rglob("*.html"))
    texts = {path.relative_to(site).as_posix(): main_text(path.read_text(encoding="utf-8")) for path in pages}
    script = json.dumps(texts, ensure_ascii=False).replace("</", "<\\/")
    (site / FILE).write_text(f"window.siteTexts = {script};\n", encoding="utf-8")
