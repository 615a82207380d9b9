"""What a page links to, and whether it keeps to its policy."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

Attributes = dict[str, str | None]


class Parsed(HTMLParser):
    """The elements of a page, the content of its scripts and styles, and its visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, Attributes]] = []
        self.code: list[tuple[str, str]] = []
        self.words: list[str] = []
        self._open: str | None = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        if self._open:
            self.code.append((self._open, data))
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """The visible text, with single spaces."""
        return " ".join(" ".join(self.words).split())

    @property
    def policy(self) -> str:
        return next(attrs["content"] or "" for _, attrs in self.elements if attrs.get("http-equiv"))

    @property
    def links(self) -> list[str]:
        """Addresses in attributes, without data in the page and places on the page."""
        addresses = [attrs.get(name) for _, attrs in self.elements for name in ("href", "src")]
        return [link for link in addresses if link and not link.startswith(("#", "data:image/"))]


def parsed(path: Path) -> Parsed:
    return Parsed(path.read_text(encoding="utf-8"))


def files_of(site: Path) -> dict[str, bytes]:
    """Every file of a site by its name."""
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def broken_links(site: Path) -> list[str]:
    """Links that lead nowhere or out of the folder."""
    broken = []
    for page in site.rglob("*.html"):
        for link in parsed(page).links:
            target = (page.parent / unquote(link.partition("#")[0])).resolve()
            is_plain = "://" not in link and not link.startswith("/")
            if not (is_plain and target.is_file() and target.is_relative_to(site.resolve())):
                broken.append(f"{page.name}: {link}")
    return broken


def broken_links_from_the_first_page(site: Path) -> list[str]:
    """Links that a visitor can follow from index.html, over any number of pages, and that lead nowhere."""
    broken, seen, pages = [], set[Path](), [site / "index.html"]
    while pages:
        page = pages.pop()
        if page in seen or page.suffix != ".html":
            continue
        seen.add(page)
        for link in parsed(page).links:
            target = (page.parent / unquote(link)).resolve()
            if target.is_file():
                pages.append(target)
            else:
                broken.append(f"{page.name}: {link}")
    return broken


def allowed(code: str) -> str:
    """The source of a policy that allows this script or style."""
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"
