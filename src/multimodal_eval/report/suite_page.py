"""A suite as one page: the heat map of models x tasks, what the tasks say together, and how it was tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from multimodal_eval import __version__
from multimodal_eval.analysis.suite_table import SuiteCell, SuiteTable
from multimodal_eval.core.csv_cells import csv_lines
from multimodal_eval.core.records import to_json
from multimodal_eval.display.html import HtmlRenderer
from multimodal_eval.display.of_suite import suite_table_blocks
from multimodal_eval.report.build import asset, icon
from multimodal_eval.report.site.folder import SiteFolder
from multimodal_eval.report.templating import templates

__all__ = ["suite_html", "write_suite_site"]

TITLE = "Models × tasks"
# The styles of the cells are in their elements. Nothing else may run or be loaded.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def suite_html(table: SuiteTable, title: str = TITLE, downloads: Sequence[str] = ()) -> str:
    """The page, in one file. `downloads` are the names of files beside it."""
    environment = templates(Path(__file__).parent / "templates")
    return environment.get_template("suite.html.j2").render(
        title=title,
        version=__version__,
        policy=_POLICY,
        style=Markup("\n".join(map(asset, ("tokens.css", "style.css", "report.css")))),
        icon=icon(),
        body=HtmlRenderer().joined(list(suite_table_blocks(table))),
        downloads=downloads,
    )


def write_suite_site(folder: SiteFolder, table: SuiteTable, title: str) -> None:
    """The page and its table as CSV and JSON, for any file host. No path of this machine is in them."""
    published = replace(table, rows=tuple(replace(row, cells=tuple(map(_published, row.cells))) for row in table.rows))
    names = ("leaderboard.csv", "leaderboard.json")
    records = published.records()
    rows = [list(records[0]), *(list(record.values()) for record in records)] if records else []
    folder.write(
        {
            "index.html": lambda: suite_html(published, title, names).encode("utf-8", "replace"),
            "leaderboard.csv": lambda: "".join(csv_lines(rows)).encode("utf-8", "replace"),
            "leaderboard.json": lambda: to_json(published.to_dict()),
        }
    )


def _published(cell: SuiteCell) -> SuiteCell:
    """A cell without the folder of its run."""
    if cell.run is None:
        return cell
    remark = None if cell.remark is None else cell.remark.replace(cell.run, "the run")
    return replace(cell, run=None, remark=remark)
