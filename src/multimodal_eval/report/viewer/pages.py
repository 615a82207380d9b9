"""The responses of each route: a filled template or a table from run folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.core.errors import ConfigError, MediaError, MultimodalEvalError, OutsideError, RunFolderError
from multimodal_eval.evaluation.choices import options_of
from multimodal_eval.media.content import is_url
from multimodal_eval.media.outgoing import video_file
from multimodal_eval.report.highlight import Highlighted, Span, highlighted
from multimodal_eval.report.media import audio_file, image_file, media_policy
from multimodal_eval.report.samples import marked_letter
from multimodal_eval.report.viewer.exports import Table, download
from multimodal_eval.report.viewer.histograms import Histograms
from multimodal_eval.report.viewer.runs import NoSuchRunError, RunsFolder, ViewedRun
from multimodal_eval.report.viewer.sample_page import (
    REFERENCES,
    SentFrames,
    ShownVideo,
    decoded,
    inputs_of,
    listed,
    media_of,
    metric_of,
    other_fields_of,
    ranged,
)
from multimodal_eval.report.viewer.sample_query import (
    PAGE,
    SampleQuery,
    may_repeat,
    read_query,
    whole_number,
)
from multimodal_eval.report.viewer.samples_view import SWAPPED, ValueLists, reading_of_row, samples_view
from multimodal_eval.report.viewer.store import Store

CACHED = 600  # seconds that a browser keeps an image
IMAGE_SIZE = 1_600  # pixels of the longer side
SIZES = {"small": 96, "middle": 320}  # of thumbnails and cards, by parameter


def refuse_repeated(request: Request, *lists: str) -> list[tuple[str, str]]:
    """The query parameters; only `run`, the values of metadata, and those that are named as lists, may be repeated."""
    parameters = request.query_params.multi_items()
    names = [name for name, _ in parameters if name not in ("run", *lists) and not may_repeat(name)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"`{name[:100]}` is given twice")
    return parameters


@dataclass(frozen=True)
class Pages:
    """The request handlers of the application."""

    folder: RunsFolder
    store: Store
    templates: Environment
    histograms: Histograms
    value_lists: ValueLists
    media_roots: tuple[Path, ...] = ()
    frames: SentFrames = field(default_factory=SentFrames)

    def _page(self, template: str, **content: Any) -> Response:
        return HTMLResponse(self.templates.get_template(template).render(folder=self.folder, **content))

    def _run(self, request: Request) -> ViewedRun:
        return self.folder.open(request.path_params["name"])

    # samples

    def samples(self, request: Request) -> Response:
        """A page of samples, as a table or a gallery."""
        run = self._run(request)
        query = read_query(refuse_repeated(request), run.score_names)
        view = samples_view(self.store, self.histograms, self.value_lists, run, query)
        response = self._page("samples.html", view=view, run=run, query=query, size=PAGE, swapped=SWAPPED)
        if "hx-request" in request.headers:
            response.headers["hx-push-url"] = view.link(query)  # without the empty fields of the form
        return response

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
        named = dict(parameters).get("id")
        row = whole_number(dict(parameters), "row") if named is None else self.store.row_of(run, named)
        sample, scores = self.store.sample(run, row)
        at, total, before, after = self._neighbours(run, query, dict(parameters))
        texts = [text for name in REFERENCES for text in listed(sample[name])]
        media, more_images = media_of(sample)
        outcome = run.outcome_of(row)
        (listed_row,) = self.store.samples(run, [row])
        as_sample, reading = reading_of_row(run, listed_row)
        answer, unique = sample["generated_answer"] or "", list(dict.fromkeys(texts))
        marked = highlighted(answer, unique)
        if reading is not None:
            read = marked_letter(answer, reading.read, [options_of(as_sample).get(reading.read, "")])
            marked = Highlighted(read, [[Span(text)] for text in unique])
        metrics = [metric_of(run, name, scores) for name in run.metrics]
        return self._page(
            "sample.html",
            run=run,
            row=row,
            sample=sample,
            outcome=outcome,
            other_fields=other_fields_of(sample, is_generated=outcome is not None),
            inputs=inputs_of(sample),
            marked=marked,
            reading=reading,
            metadata=decoded(sample["metadata"]) or {},
            metrics=metrics,
            judged=run.verdicts_on(row, {metric.name: metric.details for metric in metrics}),
            media=media,
            more_images=more_images,
            video=self._video(run, row, sample),
            query=query,
            at=at,
            total=total,
            before=before,
            after=after,
        )

    def _neighbours(
        self, run: ViewedRun, query: SampleQuery, parameters: Mapping[str, str]
    ) -> tuple[int, int | None, tuple[int, int] | None, tuple[int, int] | None]:
        """Where the sample is in the table that the user came from: its position, the number of samples, the previous
        and the next sample, each with its position and row."""
        if "at" not in parameters:
            return 0, None, None, None
        position = whole_number(parameters, "at")
        first = max(position - 1, 0)
        rows, total = self.store.rows(run, query.at(first), 3 if position else 2)
        around = dict(enumerate(rows, first))
        before, after = ((at, around[at]) if at in around else None for at in (position - 1, position + 1))
        return position, total if position < total else None, before, after

    def _video(self, run: ViewedRun, row: int, sample: Mapping[str, Any]) -> ShownVideo | None:
        """The video of a sample; None if it has none, or one on the network."""
        source = self.store.media(run, row, "video") if sample.get("has_video") else None
        if source is None or is_url(source):
            return None
        return ShownVideo(self.frames.count(run, source, media_policy(run.folder, run.info, self.media_roots)))

    def media(self, request: Request) -> Response:
        """A re-encoded image of a sample, its audio or video, or a frame as sent. URLs are never fetched."""
        run = self._run(request)
        parameters = dict(refuse_repeated(request))
        kind = parameters.get("kind", "image")
        row, item = whole_number(parameters, "row"), whole_number(parameters, "item")
        source = self.store.media(run, row, "video" if kind == "frames" else kind, item)
        if source is None:
            raise MediaError(f"the sample has no such {kind}")
        policy = media_policy(run.folder, run.info, self.media_roots)
        if kind == "frames":
            frame = self.frames.frame(run, row, item, source, policy)
            return Response(frame, media_type="image/jpeg", headers={"cache-control": f"private, max-age={CACHED}"})
        if kind in ("image", "images"):
            size = next((SIZES[name] for name in SIZES if name in parameters), IMAGE_SIZE)
            media_type, content = image_file(source, policy, size)
            return Response(content, media_type=media_type, headers={"cache-control": f"private, max-age={CACHED}"})
        media_type, content = audio_file(source, policy) if kind == "audio" else video_file(source, policy)
        return ranged(content, media_type, request.headers.get("range"))


def status_of(error: MultimodalEvalError) -> int:
    """The HTTP status code for an error."""
    if isinstance(error, NoSuchRunError | OutsideError | MediaError):
        return 404
    return 409 if isinstance(error, RunFolderError) else 400
