"""Pages that are written from the code: commands, Python names, benchmarks, settings, codes, indexes."""

from __future__ import annotations

from tools.codes import codes_page
from tools.site.generated.api import api_pages
from tools.site.generated.benchmarks import benchmark_pages
from tools.site.generated.commands import command_pages
from tools.site.generated.indexes import index_pages
from tools.site.generated.schema import schema_page

Pages = dict[str, str]  # path in the site -> Markdown


def generated_pages() -> Pages:
    """All of them."""
    return {
        **command_pages(),
        **api_pages(),
        **benchmark_pages(),
        "schema.md": schema_page(),
        "codes.md": codes_page(),
        **index_pages(),
    }
