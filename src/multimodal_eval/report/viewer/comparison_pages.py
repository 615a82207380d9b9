"""The pages of several runs: choice, comparison, samples of two runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import numpy as np
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, RunFolderError, UnknownNameError
from multimodal_eval.display.blocks import Finding, Text, Verdict
from multimodal_eval.display.of_comparison import run_comparison_blocks, scores_of_runs, why_blocks
from multimodal_eval.display.page import ViewerRenderer
from multimodal_eval.report.viewer.comparison import ComparisonCache, RunChoices, preview
from multimodal_eval.report.viewer.database import Sql, quoted
from multimodal_eval.report.viewer.drawings import ScatterPlot, forests_of, scatter_plot
from multimodal_eval.report.viewer.exports import Table, comparison_table, download
from multimodal_eval.report.viewer.pages import refuse_repeated
from multimodal_eval.report.viewer.pairs import (
    ORDERS,
    OUTCOMES,
    PairQuery,
    PairStore,
    read_pair_query,
    shared_metrics,
)
from multimodal_eval.report.viewer.runs import RunsFolder, ViewedRun
from multimodal_eval.report.viewer.sample_query import PAGE, SEARCHED, STATUSES, Parameters, SampleQuery, read_query
from multimodal_eval.report.viewer.samples_view import ValueLists, with_chosen
from multimodal_eval.report.viewer.store import Store
from multimodal_eval.run.why import why

MOST_COMPARED = 8
SHOWN_BY_PART = 5  # samples
COMPARED_AT_ONCE = 20_000  # samples of all runs; larger comparisons are loaded after the page


@dataclass(frozen=True)
class ComparisonPages:
    """The request handlers for several runs."""

    folder: RunsFolder
    store: Store
    pair_store: PairStore
    templates: Environment
    comparisons: ComparisonCache
    choices: RunChoices
    value_lists: ValueLists

    def _page(self, template: str, status: int = 200, **content: Any) -> Response:
        return HTMLResponse(self.templates.get_template(template).render(folder=self.folder, **content), status)

    # comparison

    def comparison(self, request: Request) -> Response:
        """Runs side by side, or a list of runs to choose from."""
        names = chosen_names(request)
        if not 2 <= len(names) <= MOST_COMPARED:
            return self._choice("/compare", names, most=MOST_COMPARED)
        runs = self._finished(names)
        if isinstance(runs, str):
            return self._choice("/compare", names, runs, most=MOST_COMPARED)
        content: dict[str, Any] = {"runs": runs, "shared": shared_metrics(runs), "address": address_of(runs)}
        if not self.comparisons.has(runs) and sum(run.committed for run in runs) > COMPARED_AT_ONCE:
            rows = preview(self.pair_store, runs[0], runs[1]) if len(runs) == 2 else []
            return self._page("compare.html", **content, comparison=None, preview=rows)
        try:
            return self._page("compare.html", **content, **self._compared(runs))
        except MultimodalEvalError as refusal:
            return self._choice("/compare", names, str(refusal), most=MOST_COMPARED)

    def comparison_numbers(self, request: Request) -> Response:
        """The scores of several runs with paired differences, which the page of large runs loads separately."""
        runs = self._two_or_more(request)
        return self._page("compare_scores.html", runs=runs, address=address_of(runs), **self._compared(runs))

    def comparison_export(self, request: Request) -> Response:
        """The differences as a file."""
        runs = self._two_or_more(request)
        comparison = self.comparisons.of(runs)
        return download(request, "comparison", lambda most: comparison_table(comparison, [run.name for run in runs]))

    def _compared(self, runs: Sequence[ViewedRun]) -> dict[str, Any]:
        comparison = self.comparisons.of(runs)
        said = list(run_comparison_blocks(comparison, with_scores=False))
        page = ViewerRenderer()
        return {
            "comparison": comparison,
            "names": dict(zip(comparison.runs, (run.name for run in runs), strict=True)),
            "verdicts": [page.block(block) for block in said if isinstance(block, Verdict)],
            "forests": forests_of(comparison, runs[0].info),
            "scores": page.joined(scores_of_runs(comparison)),
            "remarks": page.joined([block for block in said if isinstance(block, Finding | Text)]),
        }

    def why(self, request: Request) -> Response:
        """Where the difference of two headline numbers comes from, with some samples of each part."""
        names = chosen_names(request)
        runs = self._finished(names) if len(names) == 2 else ""
        if isinstance(runs, str):
            return self._choice("/why", names, runs, most=2)
        try:
            result = why(runs[0].run, runs[1].run, names=names)
        except MultimodalEvalError as refusal:
            return self._choice("/why", names, str(refusal), most=2)
        blocks = ViewerRenderer().joined(list(why_blocks(result, SHOWN_BY_PART)))
        return self._page("why.html", runs=runs, address=address_of(runs), blocks=blocks)

    # samples of two runs

    def pairs(self, request: Request) -> Response:
        """The samples of two runs with both answers."""
        runs = self.two_runs(request, "/pairs")
        if isinstance(runs, Response):
            return runs
        query = read_pair_query(refuse_repeated(request), *runs)
        return self._page(
            "pairs.html",
            query=query,
            page=self.pair_store.page(query),
            metrics=shared_metrics(runs),
            size=PAGE,
            address=address_of(runs),
            outcomes=OUTCOMES,
            orders=ORDERS,
            statuses=STATUSES,
            searched_fields=SEARCHED,
            values=with_chosen(self.value_lists.of(query.first), query.common),
        )

    def pairs_export(self, request: Request) -> Response:
        """The samples of two runs as a file: every pair that matches, in order."""
        query = self.pair_query(request)
        metric = query.metric
        headers = ["id", f"{metric} of {query.first.name}", f"{metric} of {query.second.name}", "difference"]
        return download(request, "pairs", lambda most: Table(headers, self.pair_store.every(query, most)))

    def pair_query(self, request: Request) -> PairQuery:
        """The query of exactly two runs."""
        runs = self._two_or_more(request)
        if len(runs) != 2:
            raise ConfigError(f"samples are compared between exactly two runs. Got {len(runs)} instead")
        return read_pair_query(refuse_repeated(request), runs[0], runs[1])

    # the choice of runs

    def two_runs(self, request: Request, target: str) -> tuple[ViewedRun, ViewedRun] | Response:
        """The two runs of a request for `target`, or a page on which they are chosen."""
        names = chosen_names(request)
        if len(names) != 2:
            return self._choice(target, names, most=2)
        runs = self._finished(names)
        if isinstance(runs, str):
            return self._choice(target, names, runs, most=2)
        if not shared_metrics(runs):
            return self._choice(target, names, "The runs have no metric in common.", most=2)
        return runs[0], runs[1]

    def _choice(self, target: str, names: Sequence[str], problem: str = "", *, most: int) -> Response:
        """A list of runs to choose from. `problem` says why the chosen runs cannot be shown."""
        if not problem and len(names) > most:
            problem = f"Select at most {most} runs. Got {len(names)}."
        content = {"choice": self.choices.choice(names), "chosen": names, "problem": problem}
        return self._page("choice.html", 409 if problem else 200, target=target, most=most, **content)

    def _finished(self, names: Sequence[str]) -> list[ViewedRun] | str:
        """The runs, or why one of them cannot be compared."""
        runs = [self.folder.open(name) for name in names]
        unfinished = [run.name for run in runs if not run.is_done]
        return f"The run {unfinished[0]} is not finished." if unfinished else runs

    def _two_or_more(self, request: Request) -> list[ViewedRun]:
        names = chosen_names(request)
        if not 2 <= len(names) <= MOST_COMPARED:
            raise ConfigError(f"select two to {MOST_COMPARED} runs to compare. Got {len(names)} instead")
        runs = self._finished(names)
        if isinstance(runs, str):
            raise RunFolderError(runs)
        return runs


def chosen_names(request: Request) -> list[str]:
    """The different runs of a request, in order."""
    return list(dict.fromkeys(name for key, name in refuse_repeated(request) if key == "run"))


def address_of(runs: Sequence[ViewedRun]) -> str:
    """The query string that names the runs."""
    return urlencode([("run", run.name) for run in runs])


# Scatter plots: two metrics of one run, or one metric of each of two runs, with a brush that selects samples.

# The query parameters: two metrics and the limits of the brushed rectangle.


LIMITS = ("x0", "x1", "y0", "y1")

Range = tuple[str, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Brush:
    """The limits of the rectangle; None if there is no limit."""

    x0: float | None = None
    x1: float | None = None
    y0: float | None = None
    y1: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return any(limit is not None for limit in (self.x0, self.x1, self.y0, self.y1))

    def range_of_x(self, metric: str) -> tuple[Range, ...]:
        """The limits of the horizontal axis as a score range."""
        return ((metric, self.x0, self.x1),) if (self.x0, self.x1) != (None, None) else ()

    def range_of_y(self, metric: str) -> tuple[Range, ...]:
        """The limits of the vertical axis as a score range."""
        return ((metric, self.y0, self.y1),) if (self.y0, self.y1) != (None, None) else ()

    def shown(self, name: str) -> str:
        """A limit as the form shows it."""
        limit = getattr(self, name)
        return "" if limit is None else f"{limit:.12g}"


@dataclass(frozen=True, slots=True)
class ScatterQuery:
    """The metrics of both axes and the brush."""

    x: str
    y: str
    brush: Brush


def read_scatter(parameters: Parameters, across: Sequence[str], down: Sequence[str]) -> ScatterQuery:
    """Parse `x`, `y` and the limits; `across` and `down` are the metrics that each axis can show."""
    values = dict(parameters)
    x = values.get("x") or across[0]
    others = [name for name in down if name != x] or list(down)
    y = values.get("y") or (x if across is not down and x in down else others[0])
    for axis, name, known in (("x", x, across), ("y", y, down)):
        if name not in known:
            raise UnknownNameError(f"metric for `{axis}`", name[:100], known)
    low_x, high_x, low_y, high_y = (_limit(values, name) for name in LIMITS)
    return ScatterQuery(x, y, Brush(*_ordered(low_x, high_x), *_ordered(low_y, high_y)))


def _limit(values: Mapping[str, str], name: str) -> float | None:
    text = values.get(name, "").strip()
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        raise ConfigError(f"`{name}` must be a number") from None
    if not isfinite(limit):
        raise ConfigError(f"`{name}` must be a finite number")
    return limit


def _ordered(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Limits in the wrong order are swapped."""
    return (high, low) if low is not None and high is not None and low > high else (low, high)


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
