"""Scatter plots: two metrics of one run, or one metric of each of two runs, with a brush that selects samples."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import numpy as np
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.report.viewer.comparison_pages import ComparisonPages, address_of
from multimodal_eval.report.viewer.database import Sql, quoted
from multimodal_eval.report.viewer.pages import refuse_repeated
from multimodal_eval.report.viewer.pair_query import PairQuery, read_pair_query
from multimodal_eval.report.viewer.pair_store import PairStore
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import Parameters, SampleQuery, read_query
from multimodal_eval.report.viewer.scatter_plot import ScatterPlot, scatter_plot
from multimodal_eval.report.viewer.scatter_query import LIMITS, ScatterQuery, read_scatter
from multimodal_eval.report.viewer.store import Store

KEPT_PLOTS = 32
LISTED = 12  # samples below the plot
_OWN = ("x", "y", *LIMITS)


class PlotCache:
    """The latest plots: brushing does not change them."""

    def __init__(self) -> None:
        self._plots: OrderedDict[Any, ScatterPlot | None] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Any, draw: Callable[[], ScatterPlot | None]) -> ScatterPlot | None:
        """A known plot, or a new one."""
        with self._lock:
            if key in self._plots:
                self._plots.move_to_end(key)
                return self._plots[key]
        plot = draw()
        with self._lock:
            self._plots[key] = plot
            while len(self._plots) > KEPT_PLOTS:
                self._plots.popitem(last=False)
        return plot


@dataclass(frozen=True)
class ScatterPages:
    """The request handlers of scatter plots."""

    compared: ComparisonPages
    store: Store
    pair_store: PairStore
    plots: PlotCache = field(default_factory=PlotCache)

    def of_run(self, request: Request) -> Response:
        """Two metrics of one run."""
        run = self.compared.folder.open(request.path_params["name"])
        parameters = refuse_repeated(request)
        content: dict[str, Any] = {"run": run, "here": "/scatter/" + request.path_params["name"]}
        if not run.scores or not run.score_names:
            return self._page("scatter.html", **content, scatter=None, plot=None)
        scatter = read_scatter(parameters, run.score_names, run.score_names)
        base = read_query(_others(parameters), run.score_names)
        base = replace(base, ranges=_without(base, scatter), sort="", descending=False, offset=0)
        chosen = replace(base, ranges=(*base.ranges, *_ranges_of_run(scatter)))
        return self._page(
            "scatter.html",
            **content,
            scatter=scatter,
            plot=self._plot_of_run(run, scatter, base),
            across=run.score_names,
            down=run.score_names,
            kept=base.parameters(),
            page=self.store.page(run, chosen, LISTED) if scatter.brush.is_set else None,
            inside=chosen.address(),
        )

    def of_pair(self, request: Request) -> Response:
        """A metric of one run against a metric of another, sample by sample."""
        runs = self.compared.two_runs(request, "/scatter")
        if isinstance(runs, Response):
            return runs
        first, second = runs
        parameters = refuse_repeated(request)
        scatter = read_scatter(parameters, first.score_names, second.score_names)
        shared = [name for name in (scatter.x, scatter.y) if name in first.score_names and name in second.score_names]
        others = [pair for pair in _others(parameters) if pair[0] != "number"]
        base = read_pair_query([*others, *(("number", name) for name in shared[:1])], first, second)
        base = replace(base, sort="difference", descending=False, offset=0)
        chosen = replace(base, limits=_limits_of_pair(base, scatter))
        kept = [(name, value) for name, value in base.parameters() if name != "number"]
        return self._page(
            "scatter.html",
            runs=runs,
            here="/scatter",
            address=address_of(runs),
            scatter=scatter,
            plot=self._plot_of_pair(scatter, base),
            across=first.score_names,
            down=second.score_names,
            kept=kept,
            page=self.pair_store.page(chosen, LISTED) if scatter.brush.is_set else None,
            query=chosen,
            inside=chosen.address(),
        )

    def _page(self, template: str, **content: Any) -> Response:
        page = self.compared.templates.get_template(template)
        return HTMLResponse(page.render(folder=self.compared.folder, **{"runs": None, "run": None} | content))

    def _plot_of_run(self, run: ViewedRun, scatter: ScatterQuery, base: SampleQuery) -> ScatterPlot | None:
        def draw() -> ScatterPlot | None:
            with self.store.scored(run, base) as (session, source):
                x, y = _values(session.execute(*_finite(source, quoted(scatter.x), quoted(scatter.y))))
            return scatter_plot(x, y, same_scale=False)

        if not run.is_done:
            return draw()
        return self.plots.of((run.identity, scatter.x, scatter.y, base), draw)

    def _plot_of_pair(self, scatter: ScatterQuery, base: PairQuery) -> ScatterPlot | None:
        def draw() -> ScatterPlot | None:
            with self.store.database.session() as session:
                columns = (f"l.{quoted(scatter.x)} first_score", f"r.{quoted(scatter.y)} second_score")
                source = self.pair_store.pairs(session, base, columns, outcome=True)
                x, y = _values(session.execute(*_finite(source, "first_score", "second_score")))
            return scatter_plot(x, y, same_scale=scatter.x == scatter.y)

        key = (*(run.identity for run in base.runs), scatter.x, scatter.y, urlencode(base.parameters()))
        return self.plots.of(key, draw)


def _others(parameters: Parameters) -> list[tuple[str, str]]:
    """The parameters that are filters."""
    return [(name, value) for name, value in parameters if name not in _OWN]


def _without(base: SampleQuery, scatter: ScatterQuery) -> tuple[tuple[str, float | None, float | None], ...]:
    """The score ranges of metrics that the plot does not show."""
    return tuple(limits for limits in base.ranges if limits[0] not in (scatter.x, scatter.y))


def _ranges_of_run(scatter: ScatterQuery) -> tuple[tuple[str, float | None, float | None], ...]:
    across, down = scatter.brush.range_of_x(scatter.x), scatter.brush.range_of_y(scatter.y)
    return across + (down if scatter.y != scatter.x else ())


def _limits_of_pair(base: PairQuery, scatter: ScatterQuery) -> tuple[SampleQuery, SampleQuery]:
    first, second = base.limits
    across = tuple(limits for limits in first.ranges if limits[0] != scatter.x) + scatter.brush.range_of_x(scatter.x)
    down = tuple(limits for limits in second.ranges if limits[0] != scatter.y) + scatter.brush.range_of_y(scatter.y)
    return replace(first, ranges=across), replace(second, ranges=down)


def _finite(source: Sql, x: str, y: str) -> tuple[str, tuple[Any, ...]]:
    where = f"where isfinite({x}) and isfinite({y})"  # not for unscored samples, whose values are null
    return f"select {x} as x, {y} as y from {source.text} {where}", source.values


def _values(cursor: Any) -> tuple[Any, Any]:
    columns = cursor.fetchnumpy()
    return tuple(np.ma.filled(columns[name], np.nan) for name in ("x", "y"))  # type: ignore[return-value]
