"""The pages of several runs: choice, comparison, samples of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, RunFolderError
from multimodal_eval.report.viewer.comparison import ComparisonCache, RunChoices, left_out_lines, preview, verdicts_of
from multimodal_eval.report.viewer.drawings import forests_of
from multimodal_eval.report.viewer.exports import Table
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
from multimodal_eval.report.viewer.sample_query import PAGE, SEARCHED, STATUSES
from multimodal_eval.report.viewer.samples_view import ValueLists, with_chosen
from multimodal_eval.report.viewer.store import Store
from multimodal_eval.report.viewer.tables import comparison_table, download

MOST_COMPARED = 8
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
        names = _shown_names(comparison, runs)
        return {
            "comparison": comparison,
            "names": names,
            "verdicts": verdicts_of(comparison, names),
            "forests": forests_of(comparison, runs[0].info),
            "left_out": left_out_lines(comparison),
        }

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


def _shown_names(comparison: RunComparison, runs: Sequence[ViewedRun]) -> dict[str, str]:
    """The name of each run in the folder, by its name in the comparison."""
    return dict(zip(comparison.runs, (run.name for run in runs), strict=True))
