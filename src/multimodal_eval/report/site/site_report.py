"""The report of a submission as a page of the site.

A report is one file, of which the two chart libraries are nine tenths. In a site of 200 submissions they would be 200
copies, 100 MB. Here they are in `assets/`, and the policy of a report allows `'self'` beside the hashes of its own
scripts: the host of the site, or the disk that it is opened from. A hash with `integrity` would be stricter, but
browsers cannot check it in pages that are opened from a disk, and then refuse the file.
"""

from __future__ import annotations

from multimodal_eval.report.render import asset
from multimodal_eval.report.site.pages import hash_source

__all__ = ["LIBRARIES", "as_page_of_the_site"]

LIBRARIES = ("d3.min.js", "plot.umd.min.js")
_ALONE = "The page is self-contained and loads nothing."
_SHARED = "The page loads its chart libraries from this site, and nothing else."
_SECTIONS = '<nav aria-label="Sections">'
_BACK = '<a href="index.html">← Submission</a>'


def as_page_of_the_site(page: str, assets: str) -> str:
    """The report with a link back, and with references to the libraries in a folder.

    A report that does not contain them as they are stays as it is: it also works alone.
    """
    page = page.replace(_SECTIONS, f"{_SECTIONS}\n{_BACK}", 1)
    if not all(_inlined(name) in page and _allowed(name) in page for name in LIBRARIES):
        return page
    for name in LIBRARIES:
        page = page.replace(_inlined(name), f'<script src="{assets}{name}"></script>', 1)
        page = page.replace(f"{_allowed(name)} ", "", 1)
    own_host = _attribute("script-src 'self' ")
    return page.replace("script-src ", own_host, 1).replace(_ALONE, _SHARED, 1)


def _inlined(name: str) -> str:
    return f"<script>{asset(name)}</script>"


def _allowed(name: str) -> str:
    return _attribute(hash_source(asset(name)))


def _attribute(source: str) -> str:
    """A source of the policy as it is in the page: in an attribute, quotes are escaped."""
    return source.replace("'", "&#39;")
