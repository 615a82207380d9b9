"""The pages on which people label: a start page with the progress, one page per item, and one's own labels."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from multimodal_eval.report.viewer.labelling.access import Access, see_other
from multimodal_eval.report.viewer.labelling.content import Contents
from multimodal_eval.report.viewer.labelling.desk import Desk
from multimodal_eval.report.viewer.labelling.forms import checked_text
from multimodal_eval.report.viewer.labelling.queue import Item
from multimodal_eval.report.viewer.labelling.records import Entry
from multimodal_eval.report.viewer.labelling.task import LabelTask
from multimodal_eval.report.viewer.labelling.tokens import cookie, set_cookie
from multimodal_eval.report.viewer.ranged import ranged
from multimodal_eval.report.viewer.sample_query import whole_number

__all__ = ["LabelPages"]

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

    desk: Desk
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
        task, annotator = self.desk.task, self._annotator(request)
        return self.access.page(
            request,
            "label.html",
            task=task,
            reason=self.desk.reason,
            annotator=annotator,
            is_fixed=self.desk.annotator is not None,
            summary=None if task is None else self.desk.summary(),
            progress=None if task is None or not annotator else self.desk.progress(annotator),
            file=self.desk.book.file,
            unreadable=self.desk.book.unreadable,
            longest=LONGEST_ANNOTATOR,
        )

    async def set_annotator(self, request: Request) -> Response:
        """Keep the name of the annotator in a cookie."""
        fields = await self.access.form(request, _ANNOTATOR)
        name = checked_text(fields, _ANNOTATOR, LONGEST_ANNOTATOR)
        if not name or self.desk.annotator is not None:
            raise HTTPException(400, "give your name, or any name by which your labels are known")
        response = see_other("/label/next")
        set_cookie(request, response, _ANNOTATOR, name)
        return response

    # items

    def next(self, request: Request) -> Response:
        """Lead to the first item without a label, or to the start page at the end."""
        self._task()
        annotator = self._annotator(request)
        position = self.desk.next_position(annotator) if annotator else None
        return see_other("/label" if position is None else self._address(annotator, position))

    def skipped(self, request: Request) -> Response:
        """Lead to the first skipped item."""
        self._task()
        annotator = self._annotator(request)
        position = self.desk.skipped(annotator) if annotator else None
        return see_other("/label" if position is None else self._address(annotator, position))

    def item(self, request: Request) -> Response:
        """One item with its scale. A label that it has is marked, and can be replaced."""
        task, annotator = self._task(), self._annotator(request)
        if not annotator:
            return see_other("/label")
        position, item = self._item(request, annotator)
        assert self.contents is not None
        entry = self.desk.book.entries(annotator).get(item.unit)
        last = self.desk.last(annotator)
        return self.access.page(
            request,
            "label_item.html",
            task=task,
            annotator=annotator,
            position=position,
            address=self._address(annotator, position),
            media_address=f"/label/media/{self.desk.tokens.item(annotator, position)}",
            shown=self.contents.shown(item, first_left=self._first_left(item, annotator)),
            chosen=self.desk.shown_value(item, annotator, entry),
            is_skipped=entry is not None and entry.label is None,
            comment="" if entry is None else entry.comment or "",
            progress=self.desk.progress(annotator),
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
                self.desk.withdraw(item, annotator, "skip", comment)
            else:
                self.desk.label(item, annotator, task.scale.value_of(fields.get("label", "").strip()), comment)
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
        last = self.desk.last(annotator)
        if last is None:
            return see_other("/label")
        self.desk.withdraw(task.queue.items[last[0]], annotator, "undo")
        return see_other(self._address(annotator, last[0]))

    def mine(self, request: Request) -> Response:
        """The labels of the annotator, the latest first, each with a link to change it."""
        self._task()
        annotator = self._annotator(request)
        if not annotator:
            return see_other("/label")
        entries = self.desk.book.entries(annotator)
        latest = [(self.desk.units[unit], entry) for unit, entry in entries.items() if unit in self.desk.units]
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
        if self.desk.task is None:
            raise HTTPException(404)
        return self.desk.task

    def _annotator(self, request: Request) -> str:
        """The name of the annotator; empty if there is none yet, or if the cookie has none that is allowed."""
        if self.desk.annotator is not None:
            return self.desk.annotator
        name = cookie(request, _ANNOTATOR)
        try:
            return name if checked_text({_ANNOTATOR: name}, _ANNOTATOR, LONGEST_ANNOTATOR) == name else ""
        except HTTPException:
            return ""

    def _item(self, request: Request, annotator: str) -> tuple[int, Item]:
        task = self._task()
        position = self.desk.tokens.position(annotator, request.path_params["item"]) if annotator else None
        if position is None or not 0 <= position < len(task.queue):
            raise HTTPException(404)
        return position, task.queue.items[position]

    def _described(self, annotator: str, position: int, entry: Entry) -> OwnLabel:
        task = self._task()
        value = self.desk.shown_value(task.queue.items[position], annotator, entry)
        names = {str(choice.value): choice.name for choice in task.scale.choices}
        shown = None if value is None else names.get(value, value)
        return OwnLabel(position, self._address(annotator, position), shown, entry.comment or "")

    def _address(self, annotator: str, position: int) -> str:
        return f"/label/item/{self.desk.tokens.item(annotator, position)}"

    def _first_left(self, item: Item, annotator: str) -> bool:
        task = self._task()
        return not task.is_pairwise or task.queue.shows_first_left(item, annotator)
