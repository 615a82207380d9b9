"""Check the links of a built site: pages, anchors, images and files exist; addresses of other sites are well-formed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ADDRESS = re.compile(r"https?://[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:[/?#]\S*)?", re.ASCII)
OTHER = ("mailto:", "data:", "javascript:")


@dataclass
class LinkCheck:
    """What was checked, and what is broken."""

    pages: int = 0
    internal: int = 0
    external: int = 0
    broken: list[str] = field(default_factory=list)


class _Page(HTMLParser):
    """The ids of a page, and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = {"", "top"}
        self.targets: list[str] = []
        self.loaded: list[str] = []  # by the browser, without a click
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.ids |= {values[name] or "" for name in ("id", "name") if name in values}
        if tag == "a" and values.get("href"):
            self.targets.append(values["href"] or "")
        elif tag == "link" and values.get("rel") not in ("canonical", "alternate"):
            self.loaded.append(values.get("href") or "")
        elif values.get("src"):
            self.loaded.append(values["src"] or "")


def check_links(site: Path) -> LinkCheck:
    """Check every page of a folder."""
    site = site.resolve()
    pages = {str(path): _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    check = LinkCheck(len(pages))

    @cache  # the navigation of all pages of a folder has the same links
    def fault(folder: str, target: str) -> str | None:
        return _fault(folder, target, pages, str(site.parent / "versions.js"))

    for path, page in pages.items():
        name, folder = Path(path).relative_to(site), str(Path(path).parent)
        for target in page.loaded:
            if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
                check.broken.append(f"{name}: {target} is loaded from another site")
        for target in [*page.targets, *(each for each in page.loaded if not urlsplit(each).scheme)]:
            if target.startswith(OTHER):
                continue
            if urlsplit(target).scheme:
                check.external += 1
                if not ADDRESS.fullmatch(target):
                    check.broken.append(f"{name}: {target} is not an address")
            else:
                check.internal += 1
                what = fault(folder, f"{Path(path).name}{target}" if target.startswith("#") else target)
                if what is not None:
                    check.broken.append(f"{name}: {target}{what}")
    return check


def _fault(folder: str, target: str, pages: dict[str, _Page], versions: str) -> str | None:
    parts = urlsplit(target)
    place = os.path.normpath(os.path.join(folder, unquote(parts.path)))  # noqa: PTH118
    if Path(place).is_dir():
        place = str(Path(place, "index.html"))
    if place == versions:  # written after the build of a version
        return None
    if place not in pages:
        return None if Path(place).exists() else " does not exist"
    return None if unquote(parts.fragment) in pages[place].ids else ": the page has no such anchor"
