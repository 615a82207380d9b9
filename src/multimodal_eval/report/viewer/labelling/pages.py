"""The pages on which people label, the form for tags and notes, and their addresses: all that can be written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.data.labels.append_file import NotSavedError
from multimodal_eval.report.media import Inputs, audio_file, image_file, media_policy
from multimodal_eval.report.viewer.labelling.labels import Entry, now
from multimodal_eval.report.viewer.labelling.queue import Item, LabelOptions
from multimodal_eval.report.viewer.labelling.session import (
    Access,
    LabelSession,
    checked_text,
    cookie,
    open_session,
    see_other,
    set_cookie,
)
from multimodal_eval.report.viewer.labelling.task import LabelTask
from multimodal_eval.report.viewer.run_list import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, RunNote, RunNotes
from multimodal_eval.report.viewer.runs import RunsFolder
from multimodal_eval.report.viewer.sample_page import REFERENCES, Medium, decoded, inputs_of, listed, media_of, ranged
from multimodal_eval.report.viewer.sample_query import whole_number
from multimodal_eval.report.viewer.store import Row, Store

__all__ = ["WRITABLE", "Contents", "LabelPages", "NotesPages", "ShownItem", "written_routes"]


# What an annotator sees of an item. Nothing tells of which run an answer is: no name, no id, no path, no metadata.


_LOGGER = logging.getLogger(__name__)
IMAGE_SIZE = 1_600  # pixels of the longer side
_SHARED = ("question", "choices", *REFERENCES, "image", "images", "audio", "video")


@dataclass(frozen=True, slots=True)
class ShownItem:
    """The content of an item: one answer, or two of which the first is on the left; or why there is none."""

    answers: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()  # question and prompt
    references: tuple[str, ...] = ()
    media: tuple[Medium, ...] = ()
    more_images: int = 0
    inputs: Inputs | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Contents:
    """Reads items and their media from the runs."""

    folder: RunsFolder
    store: Store
    task: LabelTask
    media_roots: tuple[Path, ...] = ()

    def shown(self, item: Item, *, first_left: bool) -> ShownItem:
        """The content. A run that cannot be read is a problem of the item: the terminal says which and why."""
        try:
            return self._shown(item, first_left)
        except MultimodalEvalError as fault:
            _tell(item, fault)
            return ShownItem(problem="this sample cannot be read. Skip it; the terminal of the server says why")

    def _shown(self, item: Item, first_left: bool) -> ShownItem:
        sample, _ = self.store.sample(self.folder.open(item.run), item.row)
        answers = [sample["generated_answer"]]
        if item.other is not None and item.other_row is not None:
            other, _ = self.store.sample(self.folder.open(item.other), item.other_row)
            if any(_differ(sample.get(name), other.get(name)) for name in _SHARED):
                return ShownItem(problem="the two runs have different questions, references or media here. Skip it")
            answers.append(other["generated_answer"])
        elif self.task.baseline is not None:
            answers.append(_second_answer(sample, self.task.baseline))
        if not all(isinstance(answer, str) for answer in answers):
            return ShownItem(problem="an answer is missing. Skip it")
        media, more_images = media_of(sample)
        inputs = inputs_of(sample)
        return ShownItem(
            tuple(answers if first_left else answers[::-1]),
            tuple((name, sample[name]) for name in ("question", "prompt") if sample[name] is not None),
            tuple(dict.fromkeys(text for name in REFERENCES for text in listed(sample[name])))
            if self.task.shows_references
            else (),
            tuple(media),
            more_images,
            replace(inputs, video=None) if len(answers) == 1 else replace(inputs, video=None, boxes=None),
        )

    def medium(self, item: Item, kind: str, index: int) -> tuple[str, bytes]:
        """The type and the bytes of an image or audio. The reason of a failure may name a run: it is not sent."""
        try:
            run = self.folder.open(item.run)
            source = self.store.media(run, item.row, kind, index)
            if source is None:
                raise HTTPException(404)
            policy = media_policy(run.folder, run.info, self.media_roots)
            return audio_file(source, policy) if kind == "audio" else image_file(source, policy, IMAGE_SIZE)
        except MultimodalEvalError as fault:
            _tell(item, fault)
            raise HTTPException(404, "the file cannot be shown; the terminal of the server says why") from None


def _second_answer(sample: Row, column: str) -> object:
    metadata = decoded(sample["metadata"])
    return metadata.get(column) if isinstance(metadata, Mapping) else None


def _differ(first: object, second: object) -> bool:
    """Whether both runs have a value, and not the same."""
    return first is not None and second is not None and first != second


def _tell(item: Item, fault: Exception) -> None:
    """Say on the terminal what an annotator must not see."""
    _LOGGER.warning("warning: %s, row %d: %s", item.run, item.row, fault)


LONGEST_ANNOTATOR = 80
LONGEST_COMMENT = 2_000
LISTED = 200  # of one's own labels, the latest first
_ANNOTATOR = "annotator"


@dataclass(frozen=True, slots=True)
class OwnLabel:
    """A label of the annotator; without a `label`, the item was skipped."""

    position: int
    address: str
    label: str | None
    comment: str


@dataclass(frozen=True)
class LabelPages:
    """The request handlers."""

    session: LabelSession
    access: Access
    contents: Contents | None  # None if there is no task

    def routes(self) -> list[Route]:
        """All addresses below /label."""
        return [
            Route("/label", self.start),
            Route("/label/annotator", self.set_annotator, methods=["POST"]),
            Route("/label/next", self.next),
            Route("/label/skipped", self.skipped),
            Route("/label/mine", self.mine),
            Route("/label/undo", self.undo, methods=["POST"]),
            Route("/label/item/{item}", self.item, methods=["GET"]),
            Route("/label/item/{item}", self.save, methods=["POST"]),
            Route("/label/media/{item}", self.media),
        ]

    # the start page

    def start(self, request: Request) -> Response:
        """What is asked, who has labelled how much, and how well annotators agree."""
        task, annotator = self.session.task, self._annotator(request)
        return self.access.page(
            request,
            "label.html",
            task=task,
            reason=self.session.reason,
            annotator=annotator,
            is_fixed=self.session.annotator is not None,
            summary=None if task is None else self.session.summary(),
            progress=None if task is None or not annotator else self.session.progress(annotator),
            file=self.session.labels.file,
            unreadable=self.session.labels.unreadable,
            longest=LONGEST_ANNOTATOR,
        )

    async def set_annotator(self, request: Request) -> Response:
        """Keep the name of the annotator in a cookie."""
        fields = await self.access.form(request, _ANNOTATOR)
        name = checked_text(fields, _ANNOTATOR, LONGEST_ANNOTATOR)
        if not name or self.session.annotator is not None:
            raise HTTPException(400, "give your name, or any name by which your labels are known")
        response = see_other("/label/next")
        set_cookie(request, response, _ANNOTATOR, name)
        return response

    # items

    def next(self, request: Request) -> Response:
        """Lead to the first item without a label, or to the start page at the end."""
        self._task()
        annotator = self._annotator(request)
        position = self.session.next_position(annotator) if annotator else None
        return see_other("/label" if position is None else self._address(annotator, position))

    def skipped(self, request: Request) -> Response:
        """Lead to the first skipped item."""
        self._task()
        annotator = self._annotator(request)
        position = self.session.skipped(annotator) if annotator else None
        return see_other("/label" if position is None else self._address(annotator, position))

    def item(self, request: Request) -> Response:
        """One item with its scale. A label that it has is marked, and can be replaced."""
        task, annotator = self._task(), self._annotator(request)
        if not annotator:
            return see_other("/label")
        position, item = self._item(request, annotator)
        assert self.contents is not None
        entry = self.session.labels.entries(annotator).get(item.unit)
        last = self.session.last(annotator)
        return self.access.page(
            request,
            "label_item.html",
            task=task,
            annotator=annotator,
            position=position,
            address=self._address(annotator, position),
            media_address=f"/label/media/{self.session.tokens.item(annotator, position)}",
            shown=self.contents.shown(item, first_left=self._first_left(item, annotator)),
            chosen=self.session.shown_value(item, annotator, entry),
            is_skipped=entry is not None and entry.label is None,
            comment="" if entry is None else entry.comment or "",
            progress=self.session.progress(annotator),
            last=None if last is None else self._described(annotator, *last),
            longest=LONGEST_COMMENT,
        )

    async def save(self, request: Request) -> Response:
        """Append a label or a skip, then show the next item."""
        fields = await self.access.form(request, "annotator", "label", "action", "comment")
        return await run_in_threadpool(self._save, request, fields)

    def _save(self, request: Request, fields: dict[str, str]) -> Response:
        task = self._task()
        annotator = self._annotator(request)
        if not annotator or fields.get("annotator") != annotator:
            raise HTTPException(409, "nothing was saved: the page is of another annotator. Open /label again")
        _, item = self._item(request, annotator)
        comment = checked_text(fields, "comment", LONGEST_COMMENT, lines=True)
        try:
            if fields.get("action") == "skip":
                self.session.withdraw(item, annotator, "skip", comment)
            else:
                self.session.label(item, annotator, task.scale.value_of(fields.get("label", "").strip()), comment)
        except ValueError as fault:
            raise HTTPException(400, f"nothing was saved: {fault}") from None
        return self.next(request)

    async def undo(self, request: Request) -> Response:
        """Take the last label or skip back, and show its item again."""
        fields = await self.access.form(request, "annotator")
        return await run_in_threadpool(self._undo, request, fields)

    def _undo(self, request: Request, fields: dict[str, str]) -> Response:
        task = self._task()
        annotator = self._annotator(request)
        if not annotator or fields.get("annotator") != annotator:
            raise HTTPException(409, "nothing was undone: the page is of another annotator. Open /label again")
        last = self.session.last(annotator)
        if last is None:
            return see_other("/label")
        self.session.withdraw(task.queue.items[last[0]], annotator, "undo")
        return see_other(self._address(annotator, last[0]))

    def mine(self, request: Request) -> Response:
        """The labels of the annotator, the latest first, each with a link to change it."""
        self._task()
        annotator = self._annotator(request)
        if not annotator:
            return see_other("/label")
        entries = self.session.labels.entries(annotator)
        latest = [(self.session.units[unit], entry) for unit, entry in entries.items() if unit in self.session.units]
        described = [self._described(annotator, *each) for each in latest[: -LISTED - 1 : -1]]
        return self.access.page(
            request, "label_mine.html", annotator=annotator, labels=described, more=max(0, len(latest) - LISTED)
        )

    def media(self, request: Request) -> Response:
        """An image or the audio of an item, at an address that says nothing about the run."""
        annotator = self._annotator(request)
        _, item = self._item(request, annotator)
        assert self.contents is not None
        parameters = dict(request.query_params)
        kind = parameters.get("kind", "image")
        media_type, content = self.contents.medium(item, kind, whole_number(parameters, "item"))
        if kind == "audio":
            return ranged(content, media_type, request.headers.get("range"))
        return Response(content, media_type=media_type, headers={"cache-control": "private, max-age=60"})

    # what they share

    def _task(self) -> LabelTask:
        if self.session.task is None:
            raise HTTPException(404)
        return self.session.task

    def _annotator(self, request: Request) -> str:
        """The name of the annotator; empty if there is none yet, or if the cookie has none that is allowed."""
        if self.session.annotator is not None:
            return self.session.annotator
        name = cookie(request, _ANNOTATOR)
        try:
            return name if checked_text({_ANNOTATOR: name}, _ANNOTATOR, LONGEST_ANNOTATOR) == name else ""
        except HTTPException:
            return ""

    def _item(self, request: Request, annotator: str) -> tuple[int, Item]:
        task = self._task()
        position = self.session.tokens.position(annotator, request.path_params["item"]) if annotator else None
        if position is None or not 0 <= position < len(task.queue):
            raise HTTPException(404)
        return position, task.queue.items[position]

    def _described(self, annotator: str, position: int, entry: Entry) -> OwnLabel:
        task = self._task()
        value = self.session.shown_value(task.queue.items[position], annotator, entry)
        names = {str(choice.value): choice.name for choice in task.scale.choices}
        shown = None if value is None else names.get(value, value)
        return OwnLabel(position, self._address(annotator, position), shown, entry.comment or "")

    def _address(self, annotator: str, position: int) -> str:
        return f"/label/item/{self.session.tokens.item(annotator, position)}"

    def _first_left(self, item: Item, annotator: str) -> bool:
        task = self._task()
        return not task.is_pairwise or task.queue.shows_first_left(item, annotator)


_LONGEST_TAGS = MOST_TAGS * (LONGEST_TAG + 2)


@dataclass(frozen=True)
class NotesPages:
    """The request handlers."""

    notes: RunNotes
    access: Access
    annotator: str | None

    def routes(self) -> list[Route]:
        """All addresses below /notes."""
        return [
            Route("/notes/{name:path}", self.edit, methods=["GET"]),
            Route("/notes/{name:path}", self.save, methods=["POST"]),
        ]

    def edit(self, request: Request) -> Response:
        """The form."""
        name = self._name(request)
        return self._form(request, name, self.notes.of(name))

    async def save(self, request: Request) -> Response:
        """Append the tags and the note, then show the run."""
        fields = await self.access.form(request, "tags", "note", "version")
        return await run_in_threadpool(self._save, request, fields)

    def _save(self, request: Request, fields: dict[str, str]) -> Response:
        name = self._name(request)
        stored = self.notes.of(name)
        try:
            note = _note(fields, self.annotator or cookie(request, "annotator"))
        except HTTPException as fault:  # the text stays in the form
            typed = RunNote(tags=(fields.get("tags", ""),), note=fields.get("note", ""))
            return self._form(request, name, typed, str(fault.detail), 400, stored.version)
        if fields.get("version") != stored.version:
            message = (
                "somebody has changed them meanwhile. What is stored is shown below the form; save again to replace it"
            )
            return self._form(request, name, note, message, 409, stored.version, stored)
        if (note.tags, note.note) != (stored.tags, stored.note):
            try:
                self.notes.write(name, note)
            except NotSavedError as fault:
                return self._form(request, name, note, str(fault), 507, stored.version)
        return see_other(f"/run/{quote(name, safe='/')}")

    def _form(
        self,
        request: Request,
        name: str,
        note: RunNote,
        problem: str | None = None,
        status: int = 200,
        version: str | None = None,
        stored: RunNote | None = None,
    ) -> Response:
        return self.access.page(
            request,
            "notes.html",
            status,
            name=name,
            note=note,
            problem=problem,
            version=version or note.version,
            stored=stored,
            longest_tags=_LONGEST_TAGS,
            longest_note=LONGEST_NOTE,
        )

    def _name(self, request: Request) -> str:
        """The name of a run that exists."""
        return self.notes.folder.open(request.path_params["name"]).name


def _note(fields: dict[str, str], by: str) -> RunNote:
    text = checked_text(fields, "tags", _LONGEST_TAGS)
    tags = tuple(dict.fromkeys(tag.strip() for tag in text.split(",") if tag.strip()))
    if len(tags) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in tags):
        raise HTTPException(400, f"a run may have {MOST_TAGS} tags of {LONGEST_TAG} characters each")
    note = checked_text(fields, "note", LONGEST_NOTE, lines=True)
    return RunNote(tags=tags, note=note, by=by or None, time=now())


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
    session = open_session(runs, options)
    access = Access(runs, templates, session.tokens)
    contents = None if session.task is None else Contents(runs, store, session.task, tuple(media_roots))
    labels = LabelPages(session, access, contents).routes()
    if options.only:
        return [Route("/", _first_page), *labels]
    return [*labels, *NotesPages(notes, access, options.annotator).routes()]


def _first_page(request: Request) -> Response:
    return see_other("/label")
