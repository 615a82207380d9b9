"""What each address answers. Every function reads run folders and fills a template or a table."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.core.errors import ConfigError, MediaError, MultimodalEvalError, RunFolderError, UnknownNameError
from multimodal_eval.core.records import Finding
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.highlight import highlighted
from multimodal_eval.report.media import media_policy, picture_file, sound_file
from multimodal_eval.report.remarks import warnings
from multimodal_eval.report.viewer.exports import Table
from multimodal_eval.report.viewer.run_list import listed as listed_runs
from multimodal_eval.report.viewer.runs import NoSuchRunError, RunsFolder, ViewedRun
from multimodal_eval.report.viewer.sample_page import (
    REFERENCES,
    decoded,
    given_of,
    listed,
    media_of,
    metadata_keys,
    metric_of,
    others_of,
)
from multimodal_eval.report.viewer.sample_query import PAGE, PLACES, STATUSES, SampleQuery, read_query, whole_number
from multimodal_eval.report.viewer.store import Store
from multimodal_eval.report.viewer.tables import (
    comparison_table,
    download,
    numbers_table,
    runs_table,
    slices_table,
)

Compare = Callable[[Sequence[Run]], RunComparison]

MOST_COMPARED = 8
KEPT_COMPARISONS = 16
PICTURE = 1_600  # pixels of the longer side
SMALL_PICTURE = 96


def refuse_repeated(request: Request) -> list[tuple[str, str]]:
    """The parameters of an address; one that is given twice would mean two things."""
    given = request.query_params.multi_items()
    names = [name for name, _ in given if name != "run"]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"`{name[:100]}` is given twice")
    return given


@dataclass(frozen=True)
class Pages:
    """The application's answers."""

    folder: RunsFolder
    store: Store
    compare: Compare
    templates: Environment
    kept: KeptComparisons

    def _page(self, template: str, **content: Any) -> Response:
        return HTMLResponse(self.templates.get_template(template).render(folder=self.folder, **content))

    def _run(self, request: Request) -> ViewedRun:
        return self.folder.open(request.path_params["name"])

    # the list of runs

    def runs(self, request: Request) -> Response:
        """All runs of the folder."""
        found = listed_runs(self.folder, dict(refuse_repeated(request)))
        return self._page("runs.html", found=found, address=urlencode(found.parameters()))

    def runs_export(self, request: Request) -> Response:
        """The list as a file."""
        found = listed_runs(self.folder, dict(refuse_repeated(request)))
        return download(request, "runs", lambda most: runs_table(found))

    # one run

    def run(self, request: Request) -> Response:
        """Numbers, warnings, signatures and slices; of a run that goes on, how far it is."""
        run = self._run(request)
        if not run.is_done:
            return self._page("progress.html", run=run, progress=run.progress())
        content = {"results": run.run.outcome, "warnings": warnings(run.run), "lint": _lint(run)}
        return self._page("run.html", run=run, fields=FIELDS, **content)

    def run_export(self, request: Request) -> Response:
        """The numbers, or the slices, as a file."""
        run = self._run(request)
        wanted = dict(refuse_repeated(request)).get("table", "numbers")
        tables = {"numbers": numbers_table, "slices": slices_table}
        if wanted not in tables:
            raise UnknownNameError("table", wanted[:100], tables)
        return download(request, f"{run.name}-{wanted}", lambda most: tables[wanted](run.run))

    # samples

    def samples(self, request: Request) -> Response:
        """A page of the table of samples."""
        run = self._run(request)
        query = read_query(refuse_repeated(request), run.numbers)
        page = self.store.page(run, query)
        return self._page(
            "samples.html",
            run=run,
            query=query,
            page=page,
            size=PAGE,
            statuses=STATUSES,
            places=PLACES,
            keys=metadata_keys(self.store.metadata_examples(run)),
        )

    def samples_export(self, request: Request) -> Response:
        """The table of samples as a file: every row that the search and the filters leave, in order."""
        run = self._run(request)
        query = read_query(refuse_repeated(request), run.numbers)
        texts = ["question", "generated_answer", *self.store.fields_to_export(run)]
        heads = ["row", "id", *texts, *run.numbers, *(f"{name}:status" for name in run.metrics)]

        def table(most: int | None) -> Table:
            note = "" if most is None else f"the first {most:,} rows at most"
            return Table(heads, self.store.every(run, query, texts, most), note)

        return download(request, f"{run.name}-samples", table)

    def sample(self, request: Request) -> Response:
        """One sample with all that is known of it."""
        run = self._run(request)
        given = refuse_repeated(request)
        query = read_query([pair for pair in given if pair[0] != "offset"], run.numbers)
        row = whole_number(dict(given), "row")
        sample, scores = self.store.sample(run, row)
        before, after = self._neighbours(run, query, dict(given))
        texts = [text for name in REFERENCES for text in listed(sample[name])]
        media, more_images = media_of(sample)
        return self._page(
            "sample.html",
            run=run,
            row=row,
            sample=sample,
            others=others_of(sample),
            given=given_of(sample),
            marked=highlighted(sample["generated_answer"] or "", list(dict.fromkeys(texts))),
            metadata=decoded(sample["metadata"]) or {},
            metrics=[metric_of(run, name, scores) for name in run.metrics],
            media=media,
            more_images=more_images,
            query=query,
            before=before,
            after=after,
        )

    def _neighbours(
        self, run: ViewedRun, query: SampleQuery, given: Mapping[str, str]
    ) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The samples before and after in the table that one came from, each with its place and its row."""
        if "at" not in given:
            return None, None
        place = whole_number(given, "at")
        first = max(place - 1, 0)
        rows, _ = self.store.rows(run, query.at(first), 3 if place else 2)
        around = dict(enumerate(rows, first))
        return tuple((at, around[at]) if at in around and at >= 0 else None for at in (place - 1, place + 1))  # type: ignore[return-value]

    def media(self, request: Request) -> Response:
        """A sample's picture, drawn anew, or its sound; from where the run was allowed to open them, never a URL."""
        run = self._run(request)
        given = dict(refuse_repeated(request))
        kind = given.get("kind", "image")
        source = self.store.media(run, whole_number(given, "row"), kind, whole_number(given, "item"))
        if source is None:
            raise MediaError(f"the sample has no such {kind}")
        policy = media_policy(run.info.config)
        if kind != "audio":
            media_type, content = picture_file(source, policy, SMALL_PICTURE if "small" in given else PICTURE)
            return Response(content, media_type=media_type, headers={"cache-control": "private, max-age=60"})
        media_type, content = sound_file(source, policy)
        return _ranged(content, media_type, request.headers.get("range"))

    # progress

    def progress(self, request: Request) -> Response:
        """How far a run is, for a page that asks again and again; when it is done, the page is loaded anew."""
        run = self._run(request)
        if run.is_done:
            return Response(status_code=204, headers={"HX-Refresh": "true"})
        return self._page("progress_bar.html", run=run, progress=run.progress())

    # several runs

    def comparison(self, request: Request) -> Response:
        """Runs side by side."""
        runs = self._compared(request)
        return self._page("compare.html", runs=runs, shared=_shared(runs), address=_names(runs))

    def comparison_numbers(self, request: Request) -> Response:
        """Their numbers with paired differences, which takes a moment: the page loads it when it is shown."""
        runs = self._compared(request)
        return self._page("compare_numbers.html", runs=runs, found=self.kept.of(runs, self.compare))

    def comparison_export(self, request: Request) -> Response:
        """The differences as a file."""
        runs = self._compared(request)
        found = self.kept.of(runs, self.compare)
        return download(request, "comparison", lambda most: comparison_table(found, [run.name for run in runs]))

    def pairs(self, request: Request) -> Response:
        """The samples of two runs in the order of the difference."""
        first, second, number, falling, offset = self._pair(request)
        page = self.store.pairs(first, second, number, falling=falling, offset=offset)
        runs = [first, second]
        return self._page(
            "pairs.html",
            first=first,
            second=second,
            number=number,
            numbers=_shared(runs),
            falling=falling,
            lower=number in first.run.entries and first.run.entries[number].direction == "lower",
            page=page,
            size=PAGE,
            address=_names(runs),
        )

    def pairs_export(self, request: Request) -> Response:
        """The same as a file."""
        first, second, number, falling, _ = self._pair(request)
        heads = ["id", f"{number} of {first.name}", f"{number} of {second.name}", "difference"]

        def table(most: int | None) -> Table:
            return Table(heads, self.store.every_pair(first, second, number, falling=falling, most=most))

        return download(request, "pairs", table)

    def _pair(self, request: Request) -> tuple[ViewedRun, ViewedRun, str, bool, int]:
        runs = self._compared(request)
        if len(runs) != 2:
            raise ConfigError("samples are compared for two runs")
        given = dict(refuse_repeated(request))
        shared = _shared(runs)
        number = given.get("number") or (shared[0] if shared else "")
        if number not in shared:
            raise UnknownNameError("number that both runs have", number[:100], shared)
        return runs[0], runs[1], number, given.get("desc") == "1", whole_number(given, "offset")

    def _compared(self, request: Request) -> list[ViewedRun]:
        names = list(dict.fromkeys(name for key, name in refuse_repeated(request) if key == "run"))
        if not 2 <= len(names) <= MOST_COMPARED:
            raise ConfigError(f"choose two runs or more to compare, up to {MOST_COMPARED}. Got {len(names)}")
        runs = [self.folder.open(name) for name in names]
        for run in runs:
            if not run.is_done:
                raise RunFolderError(f"the run {run.name} is not finished")
        return runs


class KeptComparisons:
    """Comparisons that were made already."""

    def __init__(self) -> None:
        self._found: OrderedDict[Any, RunComparison] = OrderedDict()
        self._lock = Lock()

    def of(self, runs: Sequence[ViewedRun], compare: Compare) -> RunComparison:
        """The comparison of these runs; one at a time, they take all cores."""
        with self._lock:
            wanted = tuple(run.identity for run in runs)
            if wanted not in self._found:
                self._found[wanted] = compare([run.run for run in runs])
                while len(self._found) > KEPT_COMPARISONS:
                    self._found.popitem(last=False)
            return self._found[wanted]


def _lint(run: ViewedRun) -> list[Finding]:
    """What was found doubtful when the run was made; nothing is looked for now, which would read all of it."""
    stored = run.folder.read_lint()
    return [] if stored is None else stored.findings


def _shared(runs: Sequence[ViewedRun]) -> list[str]:
    return [name for name in runs[0].numbers if all(name in run.numbers for run in runs)]


def _names(runs: Sequence[ViewedRun]) -> str:
    return urlencode([("run", run.name) for run in runs])


def _ranged(content: bytes, media_type: str, wanted: str | None) -> Response:
    """A sound, or the piece of it that a player asks for."""
    headers = {"accept-ranges": "bytes", "content-disposition": "inline"}
    unit, _, span = (wanted or "").partition("=")
    start, dash, end = span.partition("-")
    if unit != "bytes" or not dash or not start.isdecimal() or not (end == "" or end.isdecimal()):
        return Response(content, media_type=media_type, headers=headers)
    first, last = int(start), min(int(end or len(content)), len(content) - 1)
    if first > last:
        return Response(status_code=416, headers={"content-range": f"bytes */{len(content)}"})
    headers["content-range"] = f"bytes {first}-{last}/{len(content)}"
    return Response(content[first : last + 1], 206, media_type=media_type, headers=headers)


def status_of(error: MultimodalEvalError) -> int:
    """What a browser is told of an error."""
    if isinstance(error, NoSuchRunError | MediaError):
        return 404
    return 409 if isinstance(error, RunFolderError) else 400
