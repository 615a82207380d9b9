"""The responses of each route: a filled template or a table from run folders."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.core.errors import ConfigError, MediaError, MultimodalEvalError, RunFolderError, UnknownNameError
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.highlight import highlighted
from multimodal_eval.report.media import audio_file, image_file, media_policy
from multimodal_eval.report.viewer.exports import Table
from multimodal_eval.report.viewer.ranged import ranged
from multimodal_eval.report.viewer.runs import NoSuchRunError, RunsFolder, ViewedRun
from multimodal_eval.report.viewer.sample_page import (
    REFERENCES,
    decoded,
    inputs_of,
    listed,
    media_of,
    metadata_keys,
    metric_of,
    other_fields_of,
)
from multimodal_eval.report.viewer.sample_query import PAGE, SEARCHED, STATUSES, SampleQuery, read_query, whole_number
from multimodal_eval.report.viewer.store import Store
from multimodal_eval.report.viewer.tables import (
    comparison_table,
    download,
)

Compare = Callable[[Sequence[Run]], RunComparison]

MOST_COMPARED = 8
KEPT_COMPARISONS = 16
IMAGE_SIZE = 1_600  # pixels of the longer side
THUMBNAIL_SIZE = 96


def refuse_repeated(request: Request, *lists: str) -> list[tuple[str, str]]:
    """The query parameters; only `run`, and those that are named as lists, may be repeated."""
    parameters = request.query_params.multi_items()
    names = [name for name, _ in parameters if name not in ("run", *lists)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"`{name[:100]}` is given twice")
    return parameters


@dataclass(frozen=True)
class Pages:
    """The request handlers of the application."""

    folder: RunsFolder
    store: Store
    compare: Compare
    templates: Environment
    comparisons: ComparisonCache
    media_roots: tuple[Path, ...] = ()

    def _page(self, template: str, **content: Any) -> Response:
        return HTMLResponse(self.templates.get_template(template).render(folder=self.folder, **content))

    def _run(self, request: Request) -> ViewedRun:
        return self.folder.open(request.path_params["name"])

    # samples

    def samples(self, request: Request) -> Response:
        """A page of the table of samples."""
        run = self._run(request)
        query = read_query(refuse_repeated(request), run.score_names)
        page = self.store.page(run, query)
        return self._page(
            "samples.html",
            run=run,
            query=query,
            page=page,
            size=PAGE,
            statuses=STATUSES,
            searched_fields=SEARCHED,
            keys=metadata_keys(self.store.metadata_examples(run)),
        )

    def samples_export(self, request: Request) -> Response:
        """The table of samples as a file: every row that matches the search and the filters, in order."""
        run = self._run(request)
        query = read_query(refuse_repeated(request), run.score_names)
        texts = ["question", "generated_answer", *self.store.fields_to_export(run)]
        headers = ["row", "id", *texts, *run.score_names, *(f"{name}:status" for name in run.metrics)]

        def table(most: int | None) -> Table:
            note = "" if most is None else f"at most the first {most:,} rows"
            return Table(headers, self.store.every(run, query, texts, most), note)

        return download(request, f"{run.name}-samples", table)

    def sample(self, request: Request) -> Response:
        """One sample with all its fields and scores."""
        run = self._run(request)
        parameters = refuse_repeated(request)
        query = read_query([pair for pair in parameters if pair[0] != "offset"], run.score_names)
        row = whole_number(dict(parameters), "row")
        sample, scores = self.store.sample(run, row)
        before, after = self._neighbours(run, query, dict(parameters))
        texts = [text for name in REFERENCES for text in listed(sample[name])]
        media, more_images = media_of(sample)
        outcome = run.outcome_of(row)
        metrics = [metric_of(run, name, scores) for name in run.metrics]
        return self._page(
            "sample.html",
            run=run,
            row=row,
            sample=sample,
            outcome=outcome,
            other_fields=other_fields_of(sample, is_generated=outcome is not None),
            inputs=inputs_of(sample),
            marked=highlighted(sample["generated_answer"] or "", list(dict.fromkeys(texts))),
            metadata=decoded(sample["metadata"]) or {},
            metrics=metrics,
            judged=run.verdicts_on(row, {metric.name: metric.details for metric in metrics}),
            media=media,
            more_images=more_images,
            query=query,
            before=before,
            after=after,
        )

    def _neighbours(
        self, run: ViewedRun, query: SampleQuery, parameters: Mapping[str, str]
    ) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The previous and the next sample of the table that the user came from, each with its position and row."""
        if "at" not in parameters:
            return None, None
        position = whole_number(parameters, "at")
        first = max(position - 1, 0)
        rows, _ = self.store.rows(run, query.at(first), 3 if position else 2)
        around = dict(enumerate(rows, first))
        return tuple((at, around[at]) if at in around and at >= 0 else None for at in (position - 1, position + 1))  # type: ignore[return-value]

    def media(self, request: Request) -> Response:
        """A re-encoded image of a sample, or its audio. URLs are never fetched."""
        run = self._run(request)
        parameters = dict(refuse_repeated(request))
        kind = parameters.get("kind", "image")
        source = self.store.media(run, whole_number(parameters, "row"), kind, whole_number(parameters, "item"))
        if source is None:
            raise MediaError(f"the sample has no such {kind}")
        policy = media_policy(run.folder, run.info, self.media_roots)
        if kind != "audio":
            size = THUMBNAIL_SIZE if "small" in parameters else IMAGE_SIZE
            media_type, content = image_file(source, policy, size)
            return Response(content, media_type=media_type, headers={"cache-control": "private, max-age=60"})
        media_type, content = audio_file(source, policy)
        return ranged(content, media_type, request.headers.get("range"))

    # several runs

    def comparison(self, request: Request) -> Response:
        """Runs side by side."""
        runs = self._compared(request)
        return self._page("compare.html", runs=runs, shared=_shared(runs), address=_names(runs))

    def comparison_numbers(self, request: Request) -> Response:
        """The scores of several runs with paired differences. It is slow, so the page loads it separately."""
        runs = self._compared(request)
        return self._page("compare_scores.html", runs=runs, comparison=self.comparisons.of(runs, self.compare))

    def comparison_export(self, request: Request) -> Response:
        """The differences as a file."""
        runs = self._compared(request)
        comparison = self.comparisons.of(runs, self.compare)
        return download(request, "comparison", lambda most: comparison_table(comparison, [run.name for run in runs]))

    def pairs(self, request: Request) -> Response:
        """The samples of two runs, sorted by the difference in a metric."""
        first, second, metric, descending, offset = self._pair(request)
        page = self.store.pairs(first, second, metric, descending=descending, offset=offset)
        runs = [first, second]
        return self._page(
            "pairs.html",
            first=first,
            second=second,
            metric=metric,
            metrics=_shared(runs),
            descending=descending,
            lower=metric in first.run.entries and first.run.entries[metric].direction == "lower",
            page=page,
            size=PAGE,
            address=_names(runs),
        )

    def pairs_export(self, request: Request) -> Response:
        """The samples of two runs as a file."""
        first, second, metric, descending, _ = self._pair(request)
        headers = ["id", f"{metric} of {first.name}", f"{metric} of {second.name}", "difference"]

        def table(most: int | None) -> Table:
            return Table(headers, self.store.every_pair(first, second, metric, descending=descending, most=most))

        return download(request, "pairs", table)

    def _pair(self, request: Request) -> tuple[ViewedRun, ViewedRun, str, bool, int]:
        runs = self._compared(request)
        if len(runs) != 2:
            raise ConfigError(f"samples are compared between exactly two runs. Got {len(runs)} instead")
        parameters = dict(refuse_repeated(request))
        shared = _shared(runs)
        metric = parameters.get("number") or (shared[0] if shared else "")
        if metric not in shared:
            raise UnknownNameError("metric in both runs", metric[:100], shared)
        return runs[0], runs[1], metric, parameters.get("desc") == "1", whole_number(parameters, "offset")

    def _compared(self, request: Request) -> list[ViewedRun]:
        names = list(dict.fromkeys(name for key, name in refuse_repeated(request) if key == "run"))
        if not 2 <= len(names) <= MOST_COMPARED:
            raise ConfigError(f"select two to {MOST_COMPARED} runs to compare. Got {len(names)} instead")
        runs = [self.folder.open(name) for name in names]
        for run in runs:
            if not run.is_done:
                raise RunFolderError(f"the run {run.name} is not finished")
        return runs


class ComparisonCache:
    """A cache of the latest comparisons."""

    def __init__(self) -> None:
        self._comparisons: OrderedDict[Any, RunComparison] = OrderedDict()
        self._lock = Lock()

    def of(self, runs: Sequence[ViewedRun], compare: Compare) -> RunComparison:
        """The comparison of these runs. Comparisons run one at a time, since each takes all cores."""
        with self._lock:
            key = tuple(run.identity for run in runs)
            if key not in self._comparisons:
                self._comparisons[key] = compare([run.run for run in runs])
                while len(self._comparisons) > KEPT_COMPARISONS:
                    self._comparisons.popitem(last=False)
            return self._comparisons[key]


def _shared(runs: Sequence[ViewedRun]) -> list[str]:
    return [name for name in runs[0].score_names if all(name in run.score_names for run in runs)]


def _names(runs: Sequence[ViewedRun]) -> str:
    return urlencode([("run", run.name) for run in runs])


def status_of(error: MultimodalEvalError) -> int:
    """The HTTP status code for an error."""
    if isinstance(error, NoSuchRunError | MediaError):
        return 404
    return 409 if isinstance(error, RunFolderError) else 400
