"""The tables of a page as texts."""

from __future__ import annotations

import re
from html import unescape


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<svg.*?</svg>", " ", html, flags=re.DOTALL))).split())


def table_of(page: str, *, section: str = "", caption: str = "") -> list[list[str]]:
    """The texts of the cells of the first table of a section, or of that with this caption."""
    if section:
        body = re.search(rf'<section aria-labelledby="{section}">.*?</section>', page, re.DOTALL)
        assert body is not None
        page = body[0]
    tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
    table = next(each for each in tables if not caption or f">{caption}<" in each)
    lines = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    return [[text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line, re.DOTALL)] for line in lines]
