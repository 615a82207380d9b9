"""The application: routes, error pages and static files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from jinja2 import Environment
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from multimodal_eval import __version__
from multimodal_eval.analysis.columns import chance_level
from multimodal_eval.core.display import DASH, printed
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.data.labels.append_file import NotSavedError
from multimodal_eval.display.page import interval_drawing
from multimodal_eval.display.plain_text import LONGEST_READ, as_html
from multimodal_eval.report.templating import templates
from multimodal_eval.report.viewer.comparison import Compare, ComparisonCache, RunChoices
from multimodal_eval.report.viewer.comparison_pages import ComparisonPages, ScatterPages
from multimodal_eval.report.viewer.database import TooSlowError
from multimodal_eval.report.viewer.guard import Guard
from multimodal_eval.report.viewer.histograms import Histograms
from multimodal_eval.report.viewer.labelling.pages import WRITABLE, written_routes
from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from multimodal_eval.report.viewer.pages import Pages, status_of
from multimodal_eval.report.viewer.pairs import PairStore
from multimodal_eval.report.viewer.run_list import RunNotes, Summaries
from multimodal_eval.report.viewer.run_pages import RunPages, RunReports
from multimodal_eval.report.viewer.runs import RunsFolder
from multimodal_eval.report.viewer.sample_page import choices_line
from multimodal_eval.report.viewer.sample_query import status_label
from multimodal_eval.report.viewer.samples_view import ValueLists
from multimodal_eval.report.viewer.store import Store
from multimodal_eval.report.viewer.suite_pages import SuitePages

_HERE = Path(__file__).parent
# The static files; no other file can be requested.
ASSETS = {
    "tokens.css": (_HERE.parent / "assets", "text/css; charset=utf-8"),
    "logo.svg": (_HERE.parent / "assets", "image/svg+xml"),
    "style.css": (_HERE.parent / "assets", "text/css; charset=utf-8"),
    "viewer.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "charts.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "samples.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "samples.js": (_HERE / "assets", "text/javascript; charset=utf-8"),
    "brush.js": (_HERE / "assets", "text/javascript; charset=utf-8"),
    "compare.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "scatter.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "runs.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "viewer.js": (_HERE / "assets", "text/javascript; charset=utf-8"),
    "brush2d.js": (_HERE / "assets", "text/javascript; charset=utf-8"),
    "htmx.min.js": (_HERE / "assets", "text/javascript; charset=utf-8"),
    "tags.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "labelling.css": (_HERE / "assets", "text/css; charset=utf-8"),
    "labelling.js": (_HERE / "assets", "text/javascript; charset=utf-8"),
}


def create_app(
    folder: Path,
    *,
    compare: Compare,
    accepts_host: Callable[[str], bool],
    media_roots: Sequence[Path] = (),
    label: LabelOptions | None = None,
) -> ASGIApp:
    """The viewer of a folder's runs.

    `compare` compares finished runs. `accepts_host` checks the Host header of a request (`guard.host_check`).
    `media_roots` are the folders that media are read from, see `data.runs.grants`. With `label`, people can write
    labels, tags and notes; without it, nothing can be written.
    """
    templates = _templates()
    runs = RunsFolder(folder)
    store = Store(runs.root)
    values, histograms, notes = ValueLists(store), Histograms(store), RunNotes(runs)
    only_labels = label is not None and label.only
    templates.globals |= {"notes_of": notes.of, "labelling": label is not None, "only_labels": only_labels}
    pages = Pages(runs, store, templates, histograms, values, tuple(media_roots))
    reports = RunReports(__version__, tuple(media_roots))
    run_pages = RunPages(runs, histograms, templates, Summaries(runs), reports, notes)
    pairs = PairStore(store)
    compared = ComparisonPages(runs, store, pairs, templates, ComparisonCache(compare), RunChoices(runs, store), values)
    scatter = ScatterPages(compared, store, pairs)
    suites = SuitePages(runs, templates)

    def failed(request: Request, error: Exception) -> Response:
        code, message = _status_and_message(error)
        page = templates.get_template("error.html").render(folder=runs, code=code, message=message)
        return HTMLResponse(page, code)

    routes = [
        Route("/", run_pages.runs),
        Route("/runs.{format}", run_pages.runs_export),
        Route("/spread/{name:path}", run_pages.spread),
        Route("/assets/{file}", _asset),
        Route("/favicon.ico", lambda request: Response(status_code=204)),
        Route("/compare", compared.comparison),
        Route("/compare/numbers", compared.comparison_numbers),
        Route("/compare/numbers.{format}", compared.comparison_export),
        Route("/why", compared.why),
        Route("/pairs", compared.pairs),
        Route("/pairs.{format}", compared.pairs_export),
        Route("/scatter", scatter.of_pair),
        Route("/suite", suites.suite),
        Route("/suite/tested", suites.tested),
        Route("/suite/compare", suites.compared),
        Route("/scatter/{name:path}", scatter.of_run),
        Route("/run/{name:path}", run_pages.run),
        Route("/histograms/{name:path}", run_pages.histogram_page),
        Route("/slices/{name:path}", run_pages.slice_page),
        Route("/report/{name:path}", run_pages.report),
        Route("/progress/{name:path}", run_pages.progress),
        Route("/export/run.{format}/{name:path}", run_pages.run_export),
        Route("/samples/{name:path}", pages.samples),
        Route("/sample/{name:path}", pages.sample),
        Route("/media/{name:path}", pages.media),
        Route("/export/samples.{format}/{name:path}", pages.samples_export),
    ]
    if label is not None:
        if only_labels:
            routes = [route for route in routes if route.path.startswith(("/assets/", "/favicon.ico"))]
        routes += written_routes(runs, store, templates, label, notes, media_roots)
    handlers: dict[Any, Any] = {MultimodalEvalError: failed, HTTPException: failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    writable = () if label is None else WRITABLE
    return Guard(app, accepts_host=accepts_host, writable=writable)  # error pages get the security headers too


def _status_and_message(error: Exception) -> tuple[int, str]:
    if isinstance(error, TooSlowError):
        return 503, str(error)
    if isinstance(error, NotSavedError):
        return 507, str(error)
    if isinstance(error, MultimodalEvalError):
        return status_of(error), str(error)
    assert isinstance(error, HTTPException)
    return error.status_code, "this page does not exist" if error.status_code == 404 else error.detail


def _asset(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in ASSETS:
        raise HTTPException(404)
    folder, media_type = ASSETS[name]
    return Response((folder / name).read_bytes(), media_type=media_type, headers={"cache-control": "no-cache"})


def _templates() -> Environment:
    environment = templates(_HERE / "templates")
    environment.filters |= {
        "brief": brief,
        "printed": printed,
        "chance": chance_level,
        "dots": interval_drawing,
        "choices": choices_line,
        "breakable": breakable,
        "whole": lambda text: as_html(text, LONGEST_READ),
        "path": lambda name: quote(name, safe="/"),
        "value": lambda text: quote(str(text), safe=""),
        "status_label": status_label,
        "spread_id": spread_id,
        "edge": lambda value: f"{value:.6g}",  # of a bin
        "json": lambda value: msgspec.json.encode(value, enc_hook=str).decode(),
    }
    environment.globals |= {"dash": DASH}
    return environment


def spread_id(run: str, metric: str) -> str:
    """The id of an element with a metric's spread in the list of runs; no part of a name is in it."""
    return f"spread-{sha256(msgspec.json.encode((run, metric))).hexdigest()[:16]}"


def brief(text: str, longest: int = 160) -> Markup:
    """The first `longest` characters of a text."""
    return as_html(text if len(text) <= longest else text[:longest] + " …")


def breakable(name: str) -> Markup:
    """The name of a metric as a column header; a long name may break into two lines."""
    return as_html(name).replace("_", Markup("_<wbr>")) if len(name) > 12 else as_html(name)
