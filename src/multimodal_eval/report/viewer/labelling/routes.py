"""Everything that can be written: labels below /label, tags and notes below /notes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from multimodal_eval.report.viewer.labelling.access import Access, see_other
from multimodal_eval.report.viewer.labelling.content import Contents
from multimodal_eval.report.viewer.labelling.desk import open_desk
from multimodal_eval.report.viewer.labelling.notes_pages import NotesPages
from multimodal_eval.report.viewer.labelling.options import LabelOptions
from multimodal_eval.report.viewer.labelling.pages import LabelPages
from multimodal_eval.report.viewer.run_notes import RunNotes
from multimodal_eval.report.viewer.runs import RunsFolder
from multimodal_eval.report.viewer.store import Store

__all__ = ["WRITABLE", "written_routes"]

WRITABLE = ("/label/", "/notes/")  # the guard refuses forms to all other addresses


def written_routes(
    runs: RunsFolder,
    store: Store,
    templates: Environment,
    options: LabelOptions,
    notes: RunNotes,
    media_roots: Sequence[Path],
) -> list[Route]:
    """The addresses of labels, tags and notes. If only labels are served, the first page leads to them."""
    desk = open_desk(runs, options)
    access = Access(runs, templates, desk.tokens)
    contents = None if desk.task is None else Contents(runs, store, desk.task, tuple(media_roots))
    labels = LabelPages(desk, access, contents).routes()
    if options.only:
        return [Route("/", _first_page), *labels]
    return [*labels, *NotesPages(notes, access, options.annotator).routes()]


def _first_page(request: Request) -> Response:
    return see_other("/label")
