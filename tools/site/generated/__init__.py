"""Pages that are written from the code: commands, Python names, settings, codes, indexes."""

from __future__ import annotations

from tools.site.generated.api import api_pages
from tools.site.generated.codes import codes_page
from tools.site.generated.commands import command_pages
from tools.site.generated.indexes import index_pages
from tools.site.generated.schema import schema_page

Pages = dict[str, str]  # path in the site -> Markdown


def generated_pages() -> Pages:
    """All of them."""
    return {
        **command_pages(),
        **api_pages(),
        "schema.md": schema_page(),
        "codes.md": codes_page(),
        **index_pages(),
    }
